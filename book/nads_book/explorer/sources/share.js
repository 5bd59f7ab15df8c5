// What a reader takes along: text on the clipboard, and Python

import { h } from "./drawing.js";

export function copyButton(label, text) {
  const button = h("button", { click: async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "This browser does not let the page copy";
    }
    setTimeout(() => (button.textContent = label), 1500);
  } }, label);
  return button;
}

/** A folded box with Python, and the button that opens it: `write()` returns the code. */
export function codeBox(label, write) {
  const code = h("code"), box = h("div", { class: "python", hidden: true },
    h("pre", { tabindex: 0, role: "region", "aria-label": label }, code), copyButton("Copy", () => code.textContent));
  const update = () => box.hidden || (code.textContent = write());
  const button = h("button", { "aria-expanded": "false", click: () => {
    box.hidden = !box.hidden;
    button.setAttribute("aria-expanded", `${!box.hidden}`);
    button.textContent = box.hidden ? "Show the Python" : "Hide the Python";
    update();
  } }, "Show the Python");
  return { box, button, update };
}
