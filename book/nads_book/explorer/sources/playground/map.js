// A map of all waves: a canvas with axes, marks on its cells, and a cursor

import { STEPS, plotOf } from "../axes.js";
import { h, paint } from "../drawing.js";
import { clamp } from "../numbers.js";
import { SIDE } from "./engine.js";
import { cellOf, waveAt } from "./state.js";

export class WaveMap {
  /** `look(cell, stay)` is called as the cursor moves, and stays where a click or a key moved it; `choose(cell)` trains. */
  constructor({ label, look, choose }) {
    this.canvas = h("canvas", { width: SIDE, height: SIDE, "aria-hidden": "true" });
    this.marks = h("div", { "aria-hidden": "true" });
    this.cell = h("span", { role: "gridcell", class: "dot cursor" });
    const under = (event) => {
      const { left, top, width, height } = this.box.getBoundingClientRect();
      return cellOf([(event.clientY - top) / height, (event.clientX - left) / width].map((share) =>
        clamp(Math.floor(share * SIDE), 0, SIDE - 1) - SIDE / 2));
    };
    this.box = h("div", { class: "map", tabindex: 0, role: "grid", "aria-label": label, "aria-rowcount": SIDE, "aria-colcount": SIDE,
      "aria-description": "Arrow keys or a click choose a wave, Enter trains.",
      click: (event) => look(under(event), true),
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
    this.element = plotOf(this.box, [-8, -4, 0, 4], (k) => (k + SIDE / 2 + 0.5) / SIDE);
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
