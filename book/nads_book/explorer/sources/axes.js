// The axes of maps of waves, and the keys that move through them

import { h } from "./drawing.js";

export const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** The plot of a map: `box` between its axes, with ticks at some cycles; `at(k)` is their place, from 0 to 1. */
export function plotOf(box, ticks, at) {
  const axis = (kind) => h("div", { class: `axis-${kind}`, "aria-hidden": "true" }, h("span", { class: "title" }, `cycles ${kind}`),
    ...ticks.map((k) => h("span", { class: "tick", style: `--at:${100 * at(k)}%` }, `${k}`.replace("-", "−"))));
  return h("div", { class: "plot" }, axis("down"), box, axis("across"));
}
