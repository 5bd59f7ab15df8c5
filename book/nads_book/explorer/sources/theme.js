// A figure in its element, light or dark

import STYLE from "./explorer.css";
import { h } from "./drawing.js";

/** Show a figure in the shadow of its element, with the host's theme. Returns a function that ends it. */
export function showIn(host, root, style = "") {
  (host.shadowRoot ?? host.attachShadow({ mode: "open" })).replaceChildren(h("style", {}, STYLE + style), root);
  return followTheme(host, root);
}

/** Define an element, once in a page. */
export const define = (tag, kind) => customElements.get(tag) || customElements.define(tag, kind);

/** The host's theme is read off the colour of its text. Returns a function that ends it. */
function followTheme(host, root) {
  const update = () => {
    const channels = getComputedStyle(host).color.match(/[\d.]+/g);
    if (!channels) return; // outside the document an element has no colour, and anywidget adds it after `render`
    const [r, g, b] = channels.map(Number);
    root.classList.toggle("dark", 0.3 * r + 0.6 * g + 0.1 * b > 128);
  };
  const placed = new ResizeObserver(update); // called when the host gets its place in the document
  placed.observe(host);
  const observer = new MutationObserver(update);
  for (const element of [document.documentElement, document.body]) observer.observe(element, { attributes: true });
  const media = matchMedia("(prefers-color-scheme: dark)");
  media.addEventListener("change", update);
  update();
  return () => (observer.disconnect(), placed.disconnect(), media.removeEventListener("change", update));
}
