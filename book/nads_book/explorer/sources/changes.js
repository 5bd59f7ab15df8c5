// Pictures changed along NADs: the note and the hole of the poison, and the flip. A reader's picture stays in the page.

import { Chart } from "./chart.js";
import { menuOf, slider } from "./controls.js";
import { coordinates, GREY, mixture, NAD_CLASSES } from "./directions.js";
import { h, paintPhoto, paintSigned, picture } from "./drawing.js";
import { loadFromPage, whenNear } from "./load.js";
import { dot } from "./numbers.js";
import { keeping, unpackNads, unpackPhotos } from "./packets.js";
import { contactSheet } from "./photos.js";
import { percent, signed } from "./text.js";
import { define, showIn } from "./theme.js";

const unpackOnce = keeping(loadFromPage);

/** Accuracies as labelled bars, of which one is chosen: rows are [key, label, accuracy]. Others wait until they are. */
function accuracyBars(rows, chosen, tried) {
  tried.add(chosen);
  return rows.map(([key, label, accuracy]) => {
    const shown = tried.has(key);
    return h("li", { class: key === chosen ? "chosen" : null, "aria-current": key === chosen ? "true" : null },
      h("span", {}, label), h("span", { class: "track" }, h("span", { style: `width:${shown ? 100 * accuracy : 0}%` })),
      h("strong", { "aria-label": shown ? null : "not tried yet" }, shown ? percent(accuracy) : "?"));
  });
}

/** A choice of pictures beside accuracies that are stored. */
class Changes {
  tried = new Set(); // states whose accuracy the reader has asked for

  constructor(host, config, name) {
    Object.assign(this, config, { network: config.networks[0] });
    this.root = h("div", { class: "explorer changes", role: "group", "aria-label": name, "aria-busy": "true" });
    showIn(host, this.root);
    whenNear(host, () => this.begin());
  }

  get photo() {
    return this.view.photo < 0 ? this.ownPhoto : this.photos[this.view.photo];
  }

  set(changes) {
    Object.assign(this.view, changes);
    this.draw();
  }

  refresh() {
    this.draw();
  }

  async begin(network = this.network) {
    try {
      const [photos, nads] = await Promise.all([unpackOnce("photos", unpackPhotos), unpackOnce(network.key, unpackNads)]);
      Object.assign(this, { photos, nads, network });
    } catch (error) {
      return this.root.replaceChildren(h("p", { role: "alert" }, `This figure cannot be shown. ${error.message}`));
    }
    if (!this.sheet) {
      this.sheet = contactSheet(this, "Choose a picture");
      this.bars = h("ul", { class: "accuracies" });
      this.verdict = h("p", { class: "verdict", "aria-live": "polite" });
      this.build();
      this.root.removeAttribute("aria-busy");
    }
    this.draw();
  }
}

/** The two parts of the poison, switched on and off. */
class Note extends Changes {
  view = { photo: 4, carrier: 0, hole: false, number: false };

  build() {
    this.switches = [["hole", "Hole: remove the picture’s own coordinate"], ["number", "Number: write the class in"]].map(
      ([key, label]) => [key, h("button", { class: "switch", role: "switch",
        click: () => this.set({ [key]: !this.view[key] }) }, h("span", { class: "knob" }), h("span", {}, label))]);
    const { carriers } = this.network;
    this.carrier = slider(this, "carrier", "Along NAD", { max: () => carriers.length - 1,
      show: (i) => `${carriers[i]}`, text: (i) => `NAD ${carriers[i]}` });
    this.image = picture("");
    this.difference = picture("");
    this.note = h("p", { class: "note" });
    this.root.append(h("section", {}, this.sheet.element, this.carrier.element,
      h("div", { class: "switches" }, ...this.switches.map(([, button]) => button)),
      h("div", { class: "beside" },
        h("div", { class: "pictures" }, this.image.element, this.difference.element, this.note),
        h("div", {}, h("p", { class: "note" }, this.network.caption), this.bars, this.verdict))));
  }

  draw() {
    const { photo, view: { carrier, hole, number }, nads, network, strength } = this;
    const first = network.carriers[carrier], t = photo.label;
    const nad = first + Math.floor(t / NAD_CLASSES), channel = t % 3, sign = 2 * (t % 2) - 1;
    const direction = nads.directions[nad], present = dot(direction, photo.channels[channel]);
    const change = (hole ? -present : 0) + (number ? sign * strength : 0);
    const difference = direction.map((u) => change * u);
    this.switches.forEach(([key, button]) => button.setAttribute("aria-checked", `${this.view[key]}`));
    this.carrier.sync();
    this.sheet.sync();
    const key = hole ? (number ? "both" : "hole") : number ? "number" : "clean";
    const state = { clean: "unchanged", hole: "hole only", number: "number only", both: "hole and number" }[key];
    paintPhoto(this.image.canvas, photo.channels.map((c, i) => (i === channel ? c.map((x, j) => x + difference[j]) : c)),
      nads.size, `The picture ${photo.name}, ${state}, NAD ${nad}`);
    this.image.text.textContent = state;
    paintSigned(this.difference.canvas, difference, nads.size, `The change in the ${["red", "green", "blue"][channel]} channel`);
    this.difference.text.textContent = change ? "the change, amplified" : "no change";
    this.note.textContent = `Coordinate along NAD ${nad}: ${signed(present)} becomes ${signed(present + change)}.`;
    const found = network.accuracies[carrier];
    this.bars.replaceChildren(...accuracyBars([["clean", "unchanged", found.clean], ["number", "number only", found.number],
      ["hole", "hole only", found.hole], ["both", "hole and number", found.both]], key, this.tried));
    this.verdict.textContent = key === "clean" ? "Guess what each costs, then remove the coordinate, write a number in, or do both."
      : `Trained on photos changed like this at NAD ${first}, ${network.label} loses ${
        signed(100 * (found.clean - found[key]), 1)} points on unchanged photos.`;
  }
}

const SIGNS = Array.from({ length: 4096 }, ((state) => () => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return state >>> 31 ? 1 : -1;
})(1)); // the same ones for everybody

/** A picture whose NAD coordinates keep their order, lose their signs, or are reversed. */
class Flip extends Changes {
  view = { photo: 4, how: "upright" };

  build() {
    this.choices = [["upright", "as it is"], ["signs", "random signs"], ["flipped", "flipped"]].map(([key, label]) =>
      [key, h("button", { class: "chip", click: () => this.set({ how: key }) }, label)]);
    this.before = picture("your picture");
    this.after = picture("");
    this.chart = new Chart({ label: "Energy of the picture along the NADs, first to last", log: true, limits: [1e-5, 10],
      ticks: [[1e-4, "10⁻⁴"], [1e-2, "10⁻²"], [1, "1"]], onMove: () => {} });
    this.caption = h("p", { class: "note" });
    const menu = menuOf("NADs of", Object.fromEntries(this.networks.map(({ label }, i) => [i, label])),
      (i) => this.begin(this.networks[i]));
    this.root.append(h("section", {}, this.sheet.element,
      h("div", { class: "chips", role: "group", "aria-label": "What happens to the coordinates" },
        ...this.choices.map(([, button]) => button), this.networks.length > 1 ? menu.element : null),
      h("div", { class: "beside" },
        h("div", { class: "pictures" }, this.before.element, this.after.element),
        h("div", {}, this.caption, this.bars, this.verdict)), this.chart.element));
  }

  draw() {
    const { photo, view: { how }, nads, network } = this, last = nads.count - 1;
    const moved = coordinates(photo, nads.directions).map((c) => c.map((x, i) =>
      how === "flipped" ? c[last - i] : how === "signs" ? SIGNS[i % SIGNS.length] * x : x));
    this.sheet.sync();
    this.choices.forEach(([key, button]) => button.setAttribute("aria-pressed", `${key === how}`));
    const label = this.choices.find(([key]) => key === how)[1].textContent;
    paintPhoto(this.before.canvas, photo.channels, nads.size, `The picture ${photo.name}`);
    paintPhoto(this.after.canvas, moved.map((c) => mixture(nads.directions, c).map((x) => x + GREY)), nads.size,
      `The same picture, ${label}`);
    this.after.text.textContent = label;
    const line = Array.from({ length: Math.ceil(nads.count / 16) }, (_, k) => {
      const part = moved.flatMap((c) => [...c.subarray(16 * k, 16 * k + 16)]);
      return [16 * k + 8, part.reduce((sum, x) => sum + x * x, 0) / part.length];
    });
    this.chart.draw({ last, series: [{ colour: "a", line }], alt: how === "flipped"
      ? "Energy rises from the first NADs to the last" : "Energy falls from the first NADs to the last" });
    this.caption.textContent = network.caption;
    const found = network.accuracies;
    this.bars.replaceChildren(...accuracyBars(this.choices.map(([key, b]) => [key, b.textContent, found[key]]), how, this.tried));
    this.verdict.textContent = how === "upright" ? "Guess what each change costs, then choose it."
      : `Trained and tested on such images, ${network.label} loses ${signed(100 * (found.upright - found[how]), 1)} points.`;
  }
}

for (const [tag, Kind, name] of [["nad-note", Note, "The number and the hole"], ["nad-flip", Flip, "The flip"]])
  define(tag, class extends HTMLElement {
    connectedCallback() {
      this.figure ??= new Kind(this, JSON.parse(this.getAttribute("config")), name);
    }
  });
