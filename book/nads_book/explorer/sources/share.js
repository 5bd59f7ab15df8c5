// What a reader takes along: text on the clipboard

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
