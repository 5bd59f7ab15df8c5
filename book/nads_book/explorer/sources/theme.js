// A figure in its element, light or dark

import STYLE from "./explorer.css";
import { h } from "./drawing.js";

/** Show a figure in the shadow of its element, with the host's theme. */
export function showIn(host, root, style = "") {
  (host.shadowRoot ?? host.attachShadow({ mode: "open" })).replaceChildren(h("style", {}, STYLE + style), root);
  followTheme(host, root);
}

/** Define an element, once in a page. */
export const define = (tag, kind) => customElements.get(tag) || customElements.define(tag, kind);

/** The host's theme is read off the colour of its text. */
function followTheme(host, root) {
  const update = () => {
    const channels = getComputedStyle(host).color.match(/[\d.]+/g);
    if (!channels) return; // outside the document an element has no colour
    const [r, g, b] = channels.map(Number);
    root.classList.toggle("dark", 0.3 * r + 0.6 * g + 0.1 * b > 128);
  };
  new ResizeObserver(update).observe(host); // called when the host gets its place in the document
  const observer = new MutationObserver(update);
  for (const element of [document.documentElement, document.body]) observer.observe(element, { attributes: true });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", update);
  update();
}
