// A live notebook, whose model is anywidget's

import { App } from "./app.js";
import { h } from "./drawing.js";

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

export function render({ model, el }) {
  const host = h("div");
  el.append(host);
  const app = new App(model, host, loadFromPython(model));
  app.begin();
  return () => app.end();
}
