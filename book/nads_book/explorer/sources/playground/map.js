// A map of all waves: a canvas with axes, marks on its cells, and a cursor

import { h, paint } from "../drawing.js";
import { clamp } from "../numbers.js";
import { SIDE } from "./engine.js";
import { cellOf, waveAt } from "./state.js";

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const TICKS = [-8, -4, 0, 4];

const positionOf = (k) => `--at:${(100 * (k + SIDE / 2 + 0.5)) / SIDE}%`;
const axis = (kind, title) => h("div", { class: `axis-${kind}`, "aria-hidden": "true" }, h("span", { class: "title" }, title),
  ...TICKS.map((k) => h("span", { class: "tick", style: positionOf(k) }, `${k}`.replace("-", "−"))));

export class WaveMap {
  /** `look(cell, stay)` is called as the cursor moves, and stays where a key or a finger moved it; `choose(cell)` trains. */
  constructor({ label, look, choose }) {
    this.canvas = h("canvas", { width: SIDE, height: SIDE, "aria-hidden": "true" });
    this.marks = h("div", { "aria-hidden": "true" });
    this.cell = h("span", { role: "gridcell", class: "dot cursor" });
    const under = (event) => {
      const { left, top, width, height } = this.box.getBoundingClientRect();
      return cellOf([(event.clientY - top) / height, (event.clientX - left) / width].map((share) =>
        clamp(Math.floor(share * SIDE), 0, SIDE - 1) - SIDE / 2));
    };
    let touched = false;
    this.box = h("div", { class: "map", tabindex: 0, role: "grid", "aria-label": label, "aria-rowcount": SIDE, "aria-colcount": SIDE,
      "aria-description": "Arrow keys move through the waves, Enter trains.",
      pointerdown: ({ pointerType }) => (touched = pointerType === "touch"),
      click: (event) => (touched ? look(under(event), true) : choose(under(event))), // a finger hides what it would train
      pointermove: (event) => event.pointerType === "touch" || look(under(event)),
      pointerleave: ({ pointerType }) => pointerType === "touch" || look(null),
      keydown: (event) => {
        if (STEPS[event.key]) {
          const moved = waveAt(this.cursor).map((k, i) => clamp(k + STEPS[event.key][i], -SIDE / 2, SIDE / 2 - 1));
          this.cursor = cellOf(moved); // the next key may come before the next drawing
          look(this.cursor, true);
        } else if (event.key === "Enter" || event.key === " ") choose(this.cursor);
        else return;
        event.preventDefault();
      } }, this.canvas, this.marks, h("div", { role: "row" }, this.cell));
    this.element = h("div", { class: "plot" }, axis("down", "cycles down"), this.box, axis("across", "cycles across"));
  }

  /** `colours(cell)` is an RGBA value; marks are {cell, kind}; `words` are those of the cell under the cursor. */
  draw(colours, marks, cursor, words) {
    this.cursor = cursor ?? this.cursor;
    paint(this.canvas, SIDE, colours, "");
    this.canvas.removeAttribute("aria-label");
    const at = (cell) => {
      const [ky, kx] = waveAt(cell);
      return `left:${(100 * (kx + SIDE / 2)) / SIDE}%;top:${(100 * (ky + SIDE / 2)) / SIDE}%`;
    };
    this.marks.replaceChildren(...marks.map(({ cell, kind }) => h("span", { class: `dot ${kind}`, style: at(cell) })));
    this.cell.style = at(this.cursor);
    this.cell.hidden = cursor === null;
    this.cell.setAttribute("aria-label", words);
    this.cell.setAttribute("aria-rowindex", Math.floor(this.cursor / SIDE) + 1);
    this.cell.setAttribute("aria-colindex", (this.cursor % SIDE) + 1);
  }
}
