// What a layer does to a direction: pictures of its steps in one random network, and amplitudes in several

import { h, paintSigned, picture } from "../drawing.js";
import { largest } from "../numbers.js";
import { canonical, drawWeights, layersOf } from "./engine.js";
import { percent, times } from "./state.js";

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

/** Why a wave (ky, kx) on side x side places is weakened by an average of 2 x 2 of them, and not by a stride. */
function why(wave, side, pooling) {
  const turns = wave.map((k) => (360 * Math.abs(k) / side) % 360).map((turn) => Math.min(turn, 360 - turn));
  return `From one place to the next, the phase of the wave advances by ${turns[0]}° down and ${turns[1]}° across. ` + (pooling === "stride"
    ? "The stride keeps every second place as it is and averages nothing: no neighbours cancel each other, and the wave survives."
    : turns.includes(180) ? "At 180° neighbours have opposite signs, and the average of 2 × 2 cancels them."
    : `The average of 2 × 2 keeps ${percent(turns.reduce((kept, turn) => kept * Math.cos(turn * Math.PI / 360), 1))}.`);
}

/** Rows for a place of the drawing: 0 is the image, and the last one the features. */
export function layerRows(given, found, place, direction, { name, seed, wave, output }) {
  const config = canonical(given), layers = layersOf(config), { amplitudes, pictures } = found;
  if (place === 0) return [row(name, "before any layer", tiles(direction, 16, 1, name))];
  const number = ({ values: [one, most] }, [before, mostBefore] = []) => `${times(one / (most || 1))} of the strongest wave${
    one > 1.005 * most ? " (sampling error)" : ""}${before ? `; this step × ${(one / before).toFixed(2)} (strongest × ${(most / mostBefore).toFixed(2)})` : ""}`;
  if (place > layers.length) {
    const { maps } = pictures.at(-1);
    return [row(config.head === "global" ? "average of each map" : "features", `${times(output)} of the strongest wave`, tiles(maps, 1, maps.length, "feature")),
      h("p", { class: "sum" }, `The last layer adds them all, with random weights. The energy is the mean square of this sum: ${times(output)} of the amplitude are ${times(output ** 2)} of the energy.`)];
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
    if (wave && { average: "pool", stride: "filter" }[config.pooling] === amplitude.step)
      rows.push(h("p", { class: "sum" }, why(wave, layer.side, config.pooling)));
  });
  return rows;
}
