// A map of all waves: a canvas with axes, marks on its cells, and a cursor

import { h, paint } from "../drawing.js";
import { clamp } from "../numbers.js";
import { SIDE } from "./engine.js";
import { cellOf, inWords, waveAt } from "./state.js";

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const TICKS = [-8, -4, 0, 4];

const positionOf = (k) => `--at:${(100 * (k + SIDE / 2 + 0.5)) / SIDE}%`;
const axis = (kind, title) => h("div", { class: `axis-${kind}`, "aria-hidden": "true" }, h("span", { class: "title" }, title),
  ...TICKS.map((k) => h("span", { class: "tick", style: positionOf(k) }, `${k}`.replace("-", "−"))));

export class WaveMap {
  /** `look(cell)` is called as the cursor moves, `choose(cell)` when a wave is chosen. */
  constructor({ label, look, choose }) {
    this.canvas = h("canvas", { width: SIDE, height: SIDE, "aria-hidden": "true" });
    this.marks = h("div", { "aria-hidden": "true" });
    const under = (event) => {
      const { left, top, width, height } = this.box.getBoundingClientRect();
      return cellOf([(event.clientY - top) / height, (event.clientX - left) / width].map((share) =>
        clamp(Math.floor(share * SIDE), 0, SIDE - 1) - SIDE / 2));
    };
    this.box = h("div", { class: "map", tabindex: 0, role: "application", "aria-label": label,
      click: (event) => choose(under(event)),
      pointermove: (event) => event.pointerType === "touch" || look(under(event)),
      pointerleave: () => look(null),
      keydown: (event) => {
        if (STEPS[event.key]) {
          const moved = waveAt(this.cursor).map((k, i) => clamp(k + STEPS[event.key][i], -SIDE / 2, SIDE / 2 - 1));
          this.cursor = cellOf(moved); // the next key may come before the next drawing
          look(this.cursor, true);
        } else if (event.key === "Enter" || event.key === " ") choose(this.cursor);
        else return;
        event.preventDefault();
      } }, this.canvas, this.marks);
    this.element = h("div", { class: "plot" }, axis("down", "cycles down"), this.box, axis("across", "cycles across"));
  }

  /** `colours(cell)` is an RGBA value; marks are {cell, kind, text}. */
  draw(colours, marks, cursor) {
    this.cursor = cursor;
    paint(this.canvas, SIDE, colours, "");
    this.canvas.removeAttribute("aria-label");
    const at = (cell) => {
      const [ky, kx] = waveAt(cell);
      return `left:${(100 * (kx + SIDE / 2)) / SIDE}%;top:${(100 * (ky + SIDE / 2)) / SIDE}%`;
    };
    this.marks.replaceChildren(...marks.map(({ cell, kind }) => h("span", { class: `dot ${kind}`, style: at(cell) })),
      h("span", { class: "dot cursor", style: at(cursor) }));
    this.box.setAttribute("aria-description", `Wave ${inWords(cursor)}. Arrow keys move, Enter trains.`);
  }
}
