// A drawing of a network: an image, then the feature maps of each block, then the output

import { h } from "../drawing.js";
import { SIDE, featuresOf, shapesOf } from "./engine.js";

const UNIT = 3.2, DEPTH = 2.2, HEIGHT = 96; // pixels per pixel of a map, between channels, and of the drawing

/** A pile of maps in front of each other. */
function pile(x, side, channels) {
  const size = side * UNIT, middle = HEIGHT / 2 - 4, shift = (channels - 1) * DEPTH;
  const maps = Array.from({ length: channels }, (_, c) => h("svg:rect", { class: "sheet", width: size, height: size,
    x: x + c * DEPTH, y: middle - size / 2 + shift / 4 - (c * DEPTH) / 2 }));
  const caption = h("svg:text", { x: x + (size + shift) / 2, y: HEIGHT + 8, "text-anchor": "middle" },
    `${channels > 1 ? `${channels} × ` : ""}${side} × ${side}`);
  return { element: h("svg:g", {}, ...maps.reverse(), caption), end: x + size + shift, middle: x + (size + shift) / 2 };
}

export function networkPicture(config) {
  const { channels, kernel, pooling, activation, skip, head } = config, parts = [];
  let { element, end, middle } = pile(6, SIDE, 1), left = middle;
  parts.push(element);
  const step = { none: "", average: "average", max: "max", stride: "stride 2" }[pooling];
  for (const { pooled } of shapesOf(config)) {
    const start = end + 6, next = pile(end + 54, pooled, channels);
    const labels = [`${kernel} × ${kernel}`, { relu: "ReLU", tanh: "tanh", none: "linear" }[activation], step].filter(Boolean);
    parts.push(h("svg:path", { class: "arrow", d: `M${start} ${HEIGHT / 2 - 4}h40m-5 -4l5 4l-5 4` }), next.element,
      ...labels.map((text, i) => h("svg:text", { class: "layer", x: start + 20, y: HEIGHT / 2 + [-10, 10, 23][i], "text-anchor": "middle" }, text)));
    if (skip) parts.push(h("svg:path", { class: "arrow skip", d: `M${left} 12 C${left} -8 ${next.middle} -8 ${next.middle} 12` }));
    ({ end, middle: left } = next);
  }
  const features = featuresOf(config), start = end + 6;
  parts.push(h("svg:path", { class: "arrow", d: `M${start} ${HEIGHT / 2 - 4}h40m-5 -4l5 4l-5 4` }),
    h("svg:text", { class: "layer", x: start + 20, y: HEIGHT / 2 - 14, "text-anchor": "middle" }, head === "global" ? "average," : "flatten,"),
    h("svg:text", { class: "layer", x: start + 20, y: HEIGHT / 2 + 10, "text-anchor": "middle" }, `${features} → 1`),
    h("svg:circle", { class: "sheet", cx: start + 52, cy: HEIGHT / 2 - 4, r: 7 }),
    h("svg:text", { x: start + 52, y: HEIGHT + 8, "text-anchor": "middle" }, "output"));
  const width = Math.ceil(start + 74);
  const words = `A network of ${config.blocks} block${config.blocks > 1 ? "s" : ""} with ${channels} channels each; its last layer reads ${features} features.`;
  return h("svg:svg", { class: "network-picture", role: "img", "aria-label": words, viewBox: `0 0 ${width} ${HEIGHT + 16}`,
    style: `aspect-ratio:${width} / ${HEIGHT + 16};max-width:${width * 1.2}px;min-width:${width * 0.92}px` }, ...parts);
}
