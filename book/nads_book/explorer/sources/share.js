// What a reader takes along: text on the clipboard, and files

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

/** Hand a file to the reader; nothing leaves the browser. */
export function download(name, blob) {
  const href = URL.createObjectURL(blob);
  h("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
