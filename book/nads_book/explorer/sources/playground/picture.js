// A drawing of a network: an image, then the maps of each layer, then the output. A click chooses a layer.

import { h } from "../drawing.js";
import { SIDE, canonical, featuresOf, layersOf } from "./engine.js";
import { times } from "./state.js";

const UNIT = 3, DEPTH = 2, HEIGHT = 62, SHEETS = 8; // pixels per pixel of a map, between maps, of the drawing; maps drawn
const MIDDLE = 34;

/** A pile of maps in front of each other. */
function pile(x, side, maps) {
  const size = Math.max(side * UNIT, 6), sheets = Math.min(maps, SHEETS), shift = (sheets - 1) * DEPTH;
  const rects = Array.from({ length: sheets }, (_, c) => h("svg:rect", { class: "sheet", width: size, height: size,
    x: x + c * DEPTH, y: MIDDLE - size / 2 + shift / 4 - (c * DEPTH) / 2 }));
  return { rects: rects.reverse(), end: x + size + shift, middle: x + (size + shift) / 2 };
}

/** `left`: share of an amplitude after each place, the image first and the output last; `choose(place)` is called on a click. */
export function networkPicture(given, { left = [], chosen = null, choose = null, words = "" } = {}) {
  const config = canonical(given), { activation, norm, pooling, head } = config, parts = [];
  const place = (number, name, caption, { rects, middle }, width) => {
    const share = left[number], known = share !== undefined;
    const says = `${name}${known ? `: ${times(share)} ${words}` : ""}`;
    const pick = (event) => {
      if (event.key && event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      choose(number);
    };
    return h("svg:g", { class: `place${chosen === number ? " chosen" : ""}`, "data-place": number, ...(choose ? { tabindex: 0, role: "button",
      "aria-pressed": `${chosen === number}`, "aria-label": says, click: pick, keydown: pick } : {}) },
      h("svg:title", {}, choose ? `${says}. Choose it to see what it does.` : says),
      h("svg:rect", { class: "target", x: middle - width / 2, y: 0, width, height: HEIGHT + 34 }), ...rects,
      h("svg:text", { x: middle, y: HEIGHT + 9, "text-anchor": "middle" }, caption),
      known ? h("svg:rect", { class: "share", x: middle - 20, y: HEIGHT + 13, width: 40 * Math.min(share, 1), height: 3 }) : null,
      known ? h("svg:text", { class: "left", x: middle, y: HEIGHT + 27, "text-anchor": "middle" }, times(share)) : null);
  };
  let now = pile(8, SIDE, 1), start = 0;
  parts.push(place(0, "The image", `${SIDE} × ${SIDE}`, now, 56));
  const arrow = (labels) => {
    start = now.end + 5;
    parts.push(h("svg:path", { class: "arrow", d: `M${start} ${MIDDLE}h38m-5 -4l5 4l-5 4` }), ...labels.map((text, i) =>
      h("svg:text", { class: "layer", x: start + 19, y: MIDDLE + [-17, -6, 14, 25][i + (labels.length < 4)], "text-anchor": "middle" }, text)));
  };
  layersOf(config).forEach(({ mixes, kernel, outs, pooled, skip }, i) => {
    const step = { average: "average", max: "max", stride: "stride 2" }[pooling], before = now.middle;
    arrow([mixes ? "places" : kernel > 1 ? `${kernel} × ${kernel}` : "maps", ...[norm === "layer" ? "normalise" : "",
      { relu: "ReLU", tanh: "tanh", none: "" }[activation], step].filter(Boolean)]);
    now = pile(start + 46, pooled, outs);
    if (skip) parts.push(h("svg:path", { class: "arrow skip", d: `M${before} 9 C${before} 0 ${now.middle} 0 ${now.middle} 9` }));
    parts.push(place(i + 1, `Layer ${i + 1}, ${outs} maps of ${pooled} × ${pooled}`, `${outs} × ${pooled} × ${pooled}`, now, 56));
  });
  arrow([head === "global" ? "average" : "all", `${featuresOf(config)} → 1`]);
  const circle = h("svg:circle", { class: "sheet", cx: start + 52, cy: MIDDLE, r: 6 });
  parts.push(place(layersOf(config).length + 1, "The output", "output", { rects: [circle], middle: start + 52 }, 44));
  const width = Math.ceil(start + 76);
  return h("svg:svg", { class: "network-picture", role: "group", "aria-label": "The network, layer by layer", viewBox: `0 -2 ${width} ${HEIGHT + 34}`,
    style: `aspect-ratio:${width} / ${HEIGHT + 34};max-width:${1.45 * width}px;min-width:${0.85 * width}px` }, ...parts);
}
