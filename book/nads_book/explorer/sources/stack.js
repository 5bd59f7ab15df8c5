// Directions from more and more random networks: a slider adds networks, and noise becomes NADs

import { h, paintSigned, picture } from "./drawing.js";
import { define, showIn } from "./theme.js";

const SIDE = 32;

class NadStack extends HTMLElement {
  connectedCallback() {
    if (this.shadowRoot) return; // moved within the page
    const { labels, shared, pictures } = JSON.parse(this.getAttribute("config"));
    const bytes = Int8Array.from(atob(pictures), (letter) => letter.charCodeAt(0));
    const shown = bytes.length / labels.length / SIDE ** 2;
    const images = Array.from({ length: shown }, (_, i) => picture(`direction ${i}`));
    const text = h("p", { class: "note", "aria-live": "polite" });
    const draw = () => {
      const row = +input.value, label = labels[row];
      images.forEach(({ canvas }, i) => {
        const start = (row * shown + i) * SIDE ** 2;
        paintSigned(canvas, Float32Array.from(bytes.subarray(start, start + SIDE ** 2)), SIDE, `direction ${i} from ${label}`);
      });
      output.textContent = label;
      input.setAttribute("aria-valuetext", label);
      text.textContent = `The first ten directions share ${Math.round(100 * shared[row])} % with the shipped NADs.`;
    };
    const input = h("input", { type: "range", min: 0, max: labels.length - 1, step: 1, value: 0,
      "aria-label": "Number of random networks", input: draw });
    const output = h("output", {}, "");
    const root = h("div", { class: "explorer stack", role: "group", "aria-label": "Gradients of random networks stack up into NADs" },
      h("section", {}, h("label", { class: "slider" }, h("span", {}, "Add networks"), input, output),
        h("div", { class: "stacked" }, ...images.map(({ element }) => element)), text));
    showIn(this, root);
    draw();
  }
}

define("nad-stack", NadStack);
