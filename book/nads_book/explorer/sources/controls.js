// Controls. Each writes one key of the view; `sync` shows the view's value.

import { h } from "./drawing.js";
import { whole } from "./numbers.js";

/** With `box`, its number can be typed as well. */
export function slider(app, key, label, { max, show = (x) => `${x}`, text = show, box = false }) {
  const typed = () => {
    if (box && output.value !== "" && Number.isFinite(+output.value)) app.set({ [key]: whole(+output.value, 0, max()) });
  };
  const output = box
    ? h("input", { type: "number", min: 0, "aria-label": `${label}, as a number`, change: typed })
    : h("output", {}, "");
  const input = h("input", { type: "range", min: 0, "aria-label": label,
    input: () => app.set({ [key]: +input.value }) });
  const sync = () => {
    input.max = max();
    input.value = Math.min(app.view[key], max());
    if (box) Object.assign(output, { max: max(), value: input.value });
    else output.textContent = show(+input.value);
    input.setAttribute("aria-valuetext", text(+input.value));
  };
  return { element: h("label", { class: "slider" }, h("span", {}, label), input, output), sync };
}

export function playButton(app, key, last, label = "Play: step through the NADs") {
  let timer = null;
  const stop = () => {
    clearInterval(timer);
    timer = null;
    button.textContent = "▶";
    button.setAttribute("aria-label", label);
  };
  const start = () => {
    button.textContent = "❚❚";
    button.setAttribute("aria-label", "Pause");
    timer = setInterval(() => {
      const now = app.view[key];
      const next = now + Math.max(1, Math.round(now / 40)); // faster, the less neighbours differ
      if (!button.isConnected || now >= last()) stop();
      else app.set({ [key]: Math.min(next, last()) });
    }, 120);
  };
  const toggle = () => {
    if (timer) return stop();
    if (app.view[key] >= last()) app.set({ [key]: 0 });
    start();
  };
  const button = h("button", { class: "play", click: toggle });
  stop();
  return button;
}

/** options: value -> text. */
export function menuOf(label, options, choose) {
  const select = h("select", { "aria-label": label, change: () => choose(select.value) },
    ...Object.entries(options).map(([value, text]) => h("option", { value }, text)));
  return { element: h("label", { class: "menu" }, h("span", {}, label), select), select };
}

export function menu(app, key, label, options) {
  const { element, select } = menuOf(label, options, (value) => app.set({ [key]: value }));
  return { element, sync: () => (select.value = app.view[key]) };
}
