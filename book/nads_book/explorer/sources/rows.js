// Architectures in view: one or two, each with its `colour`, "a" or "b"

import { h } from "./drawing.js";

/** Rows of pictures, one for each architecture in view. */
export function rows(app, make) {
  const both = ["a", "b"].map((colour) => {
    const name = h("p", { class: `network ${colour}` });
    const row = make();
    const element = h("div", { class: "row" }, name, h("div", { class: "pictures" }, ...row.elements));
    return { ...row, name, element };
  });
  const update = (draw) =>
    both.forEach((row, i) => {
      const architecture = app.shown[i];
      row.element.hidden = !architecture;
      if (!architecture) return;
      row.name.textContent = architecture.label;
      row.name.hidden = app.shown.length < 2;
      draw(architecture, row);
    });
  return { elements: both.map((row) => row.element), update };
}

export const mostNads = (app) => Math.max(...app.shown.map(({ count }) => count));
export const relative = ({ eigenvalues }, i) => eigenvalues[i] / (eigenvalues[0] || 1);
