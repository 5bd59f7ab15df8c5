import { Chart } from "../chart.js";
import { slider } from "../controls.js";
import { NAD_CLASSES, poison, STRENGTHS } from "../directions.js";
import { h, paintPhoto, paintSigned, picture } from "../drawing.js";
import { largest } from "../numbers.js";
import { contactSheet, photoCode } from "../photos.js";
import { mostNads, rows } from "../rows.js";
import { interval, percent, signed } from "../text.js";

const CHANNELS = ["red", "green", "blue"];

export function poisonPart(app) {
  const sheet = contactSheet(app, "Choose an image");
  const others = Math.max(...app.photos.map(({ label }) => Math.floor(label / NAD_CLASSES))); // NADs after this one
  const last = (count = mostNads(app)) => Math.max(count - 1 - others, 0);
  const carrier = (view, { count }) => Math.min(view.index, last(count));
  const index = slider(app, "index", "Carrier's NAD", { max: () => last(), text: (i) => `NAD ${i}` });
  const strength = slider(app, "strength", "Strength ε",
    { min: STRENGTHS[0], max: () => STRENGTHS[1], step: STRENGTHS[0], show: (x) => x.toFixed(2) });
  const toggle = () => app.set({ poisoned: !app.view.poisoned });
  const version = h("button", { class: "switch", role: "switch", click: toggle },
    h("span", { class: "knob" }), h("span", {}, "Poisoned"));
  const pictures = rows(app, () => {
    const image = picture(""), difference = picture(""), note = h("p", { class: "note" });
    return { image, difference, note, elements: [image.element, difference.element, note] };
  });
  const chart = new Chart({ label: "Accuracy on clean images after training on images poisoned at this NAD",
    limits: [0, 1], ticks: [[0.1, "10 %"], [0.5, "50 %"], [1, "100 %"]],
    onMove: (i) => app.set({ index: Math.min(i, last()) }) });
  const legend = h("p", { class: "legend" });
  return {
    title: "Poison",
    element: h("div", {}, h("div", { class: "choose-row" }, sheet.element, version), index.element, strength.element,
      ...pictures.elements, chart.element, legend),
    keys: ["photo", "index", "strength", "poisoned"],
    update(view, changed) {
      const photo = app.photo;
      index.sync();
      strength.sync();
      version.setAttribute("aria-checked", `${view.poisoned}`);
      const [first] = app.shown;
      sheet.sync(view.poisoned
        ? (image) => (poison(image, first, carrier(view, first), view.strength) ?? image).channels
        : null);
      if (changed.has("architecture")) {
        chart.element.hidden = !app.shown.some((a) => a.poison);
        chart.draw({
          last: mostNads(app) - 1,
          series: app.shown.map((a) => {
            const rows = (a.poison ?? []).filter(([i]) => i !== null);
            return { colour: a.colour, line: rows, points: rows };
          }),
        });
        legend.replaceChildren(...app.shown.map((a) => {
          const clean = a.poison?.find(([i]) => i === null);
          return h("span", { class: `swatch ${a.colour}` }, a.label, a.poison
            ? `${a.photos ? `, trained on ${a.photos}` : ""}${clean ? `: without poison ${interval(clean)}` : ""}`
            : ": not trained yet");
        }));
      }
      chart.cursor(view.index);
      pictures.update((architecture, { image, difference, note }) => {
        const { label, size, count } = architecture;
        const made = poison(photo, architecture, carrier(view, architecture), view.strength);
        const shown = (view.poisoned && made) || photo;
        const state = shown === made ? `poisoned at NAD ${made.nad} of ${label}` : "clean";
        paintPhoto(image.canvas, shown.channels, size, `The image ${photo.name}, ${state}`);
        image.text.textContent = shown === made ? "poisoned" : "clean";
        difference.element.hidden = !made;
        const title = h("strong", {}, `“${photo.name}” is class ${photo.label}`);
        if (!made)
          return note.replaceChildren(title, h("br"), `and would need a later NAD than the ${count} there are`);
        const channel = CHANNELS[made.channel], change = largest(made.difference);
        paintSigned(difference.canvas, made.difference, size, `What the poison changes in the ${channel} channel`);
        difference.text.textContent = `change in ${channel}, × ${+(1 / (change || 1)).toPrecision(2)}`;
        note.replaceChildren(title, h("br"),
          `NAD ${made.nad}, ${channel} channel: ${signed(made.present)} becomes `,
          `${made.sign > 0 ? "+" : "−"}${view.strength.toFixed(2)}`, h("br"),
          `largest change of a pixel: ${percent(change)}`);
      });
    },
    code: (view, architecture) => [
      "# The poison",
      ...photoCode(app, view, architecture),
      `poisoned = nc.poison(photo[None], label[None], nads, index=${carrier(view, architecture)}, `
        + `strength=${view.strength})[0]`,
      "difference = poisoned - photo",
    ],
  };
}
