// What a layer does to a direction: pictures of its steps in one random network, and amplitudes in several

import { h, paintSigned, picture } from "../drawing.js";
import { largest } from "../numbers.js";
import { PIXELS, canonical, drawWeights, layersOf } from "./engine.js";
import { shareText } from "./picture.js";

const SHOWN = 8; // maps

const NAMES = { norm: "normalised", activation: { relu: "ReLU", tanh: "tanh" }, pool: { average: "average 2 × 2", max: "max 2 × 2" } };
const nameOf = (step, { mixes, kernel, stride }, { activation, pooling }) => step === "filter"
  ? mixes ? "all places" : kernel > 1 ? `${kernel} × ${kernel} filter${stride > 1 ? `, stride ${stride}` : ""}` : "all maps"
  : step === "activation" ? NAMES.activation[activation] : step === "pool" ? NAMES.pool[pooling] : NAMES[step];

/** Amplitude of a direction after each layer, relative to that of the strongest wave, and before all: 1. */
export const sharesOf = ({ amplitudes }) => [1, ...amplitudes.filter(({ layer, step }, i) =>
  step !== "features" && amplitudes[i + 1].layer !== layer).map(({ values: [one, most] }) => one / (most || 1))];

function row(name, note, maps) {
  return h("div", { class: "maps-row" }, h("p", {}, h("strong", {}, name), h("span", {}, note)), h("div", { class: "responses" }, ...maps));
}

/** Maps with one scale, by default that of the largest number. */
function tiles(values, side, count, alt, limit = largest(values) || 1) {
  return Array.from({ length: Math.min(count, SHOWN) }, (_, m) => {
    const { canvas } = picture("");
    paintSigned(canvas, values.subarray(m * side ** 2, (m + 1) * side ** 2), side, `${alt} ${m + 1}`, limit);
    return canvas;
  });
}

/** Rows for a place of the drawing: 0 is the image, and the last one the features. */
export function layerRows(given, found, place, direction, { name, seed }) {
  const config = canonical(given), layers = layersOf(config), { amplitudes, pictures } = found;
  if (place === 0) return [row(name, "before any layer", tiles(direction, 16, 1, name))];
  const ofImage = (x) => shareText(x * Math.sqrt(PIXELS)); // a direction has the norm 1
  const number = ({ values: [one, most] }, [before] = []) =>
    `${ofImage(one)} left${before ? `, × ${(one / before).toFixed(2)}` : ""} (strongest wave: ${ofImage(most)})`;
  if (place > layers.length) {
    const { maps } = pictures.at(-1);
    return [row(config.head === "global" ? "average of each map" : "features", number(amplitudes.at(-1)), tiles(maps, 1, maps.length, "feature")),
      h("p", { class: "sum" }, "The last layer adds them all, with random weights. Over many networks, the mean square of the sum is the energy of the map.")];
  }
  const layer = layers[place - 1], rows = [];
  let before = null, limit;
  if (place === 1) {
    const weights = drawWeights(config, 1, seed, 0), size = layer.kernel;
    rows.push(row("filters", "random weights", tiles(weights.subarray(0, layer.outs * size ** 2), size, layer.outs, "filter")));
  }
  amplitudes.forEach((amplitude, i) => {
    if (amplitude.layer !== place - 1 || amplitude.step === "features") return;
    const { maps } = pictures[i], side = Math.sqrt(maps.length / layer.outs);
    limit ??= largest(maps); // of all steps, so that what they remove becomes pale
    rows.push(row(nameOf(amplitude.step, layer, config), number(amplitude, before?.values), tiles(maps, side, layer.outs, `${name} after the ${amplitude.step}, map`, limit)));
    before = amplitude;
  });
  return rows;
}
