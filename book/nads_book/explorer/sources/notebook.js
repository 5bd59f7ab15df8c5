// A live notebook, whose model is anywidget's

import { parameters, viewIn } from "./address.js";
import { App } from "./app.js";
import { h } from "./drawing.js";
import { KEYS } from "./view.js";

const PATIENCE = 60_000; // milliseconds

/** Ask Python for arrays: it answers by adding them to `_packets`. */
const loadFromPython = (model) => (name) =>
  new Promise((resolve, reject) => {
    const look = () => {
      const packets = model.get("_packets");
      if (!Object.hasOwn(packets, name)) return false;
      clearTimeout(timer);
      model.off("change:_packets", look);
      resolve(packets[name]);
      return true;
    };
    const timer = setTimeout(() => {
      model.off("change:_packets", look);
      reject(new Error("Python does not answer: is the kernel busy, or gone?"));
    }, PATIENCE);
    model.on("change:_packets", look);
    if (look()) return;
    model.set("_wanted", [...new Set([...model.get("_wanted"), name])]);
    model.save_changes();
  });

/** Links to views in the text of the notebook move its first explorer. Returns a function that ends it. */
function followLinks(model, host) {
  const start = Object.fromEntries(KEYS.map((key) => [key, model.get(key)]));
  const follow = ({ target }) => {
    const address = parameters(target.closest?.("a")?.hash ?? "");
    if (![...address].length || document.querySelector(".nad-explorer") !== host) return;
    for (const [key, value] of Object.entries(viewIn(address, "explorer", start, model.get("labels")))) model.set(key, value);
    model.save_changes();
    (host.shadowRoot.querySelector(`section[data-part="${address.get("explorer.part")}"]`) ?? host).scrollIntoView();
  };
  addEventListener("click", follow);
  return () => removeEventListener("click", follow);
}

export function render({ model, el }) {
  const host = h("div", { class: "nad-explorer", "data-lm-suppress-shortcuts": "" }); // JupyterLab's, for arrow keys too
  el.append(host);
  const app = new App(model, host, loadFromPython(model));
  const forgetLinks = followLinks(model, host);
  app.begin();
  return () => (forgetLinks(), app.end());
}
