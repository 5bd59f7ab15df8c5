// Two networks while they train, side by side, from stored curves; and their images, in which the wave can be raised

import STYLE from "./explorer.css";
import { Chart } from "./chart.js";
import { playButton, slider } from "./controls.js";
import { h, paintSigned, picture } from "./drawing.js";
import { fourierDirection } from "./fourier.js";
import { dot } from "./numbers.js";
import { percent } from "./text.js";
import { followTheme } from "./theme.js";

const SIDE = 32, NOISE = 3, LOUDEST = 100;
const TICKS = [[0.5, "50 %"], [0.75, "75 %"], [1, "100 %"]];

/** Gaussian numbers that are the same on every page (mulberry32, Box and Muller). */
function gaussians(count, seed = 7) {
  const uniform = () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  return Float64Array.from({ length: count }, () =>
    Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform()));
}

/** x = strength v + w: noise in every direction but that of the wave. */
export function sample(wave, strength, noise = gaussians(wave.length)) {
  const along = dot(wave, noise);
  return wave.map((v, i) => strength * v + NOISE * (noise[i] - along * v));
}

class Training {
  constructor(host, { steps, epochs, waves }) {
    Object.assign(this, { steps, epochs, waves, last: steps.length - 1, view: { place: 0, strength: 1 } });
    this.panels = Object.entries(waves).map(([name, { frequency }]) => this.panel(name, fourierDirection(frequency, SIDE)));
    const strength = slider(this, "strength", "Strength ε", { min: 1, max: () => LOUDEST });
    const place = slider(this, "place", "Epoch", { max: () => this.last, show: (i) => this.epoch(i) });
    this.controls = [strength, place];
    const play = playButton(this, "place", () => this.last, "Play: train both networks");
    this.told = h("p", { class: "verdict", "aria-live": "off" });
    this.root = h("div", { class: "explorer training", role: "group", "aria-label": "Two networks training side by side" },
      h("section", {}, h("p", { class: "step" }, "Raise the wave until you see it"), strength.element,
        h("div", { class: "pair" }, ...this.panels.map(({ image }) => image.element))),
      h("section", {}, h("p", { class: "step" }, "Then train two LeNets at strength 1"),
        h("div", { class: "along" }, play, place.element),
        h("p", { class: "legend" }, h("span", { class: "b swatch" }, "training images"), h("span", { class: "a swatch" }, "new images")),
        h("div", { class: "pair" }, ...this.panels.map(({ chart }) => chart.element)), this.told));
    host.attachShadow({ mode: "open" }).replaceChildren(h("style", {}, STYLE), this.root);
    followTheme(host, this.root);
    this.draw();
  }

  epoch = (i) => (this.steps[i] * this.epochs / this.steps[this.last]).toFixed(1);

  panel(name, wave) {
    const chart = new Chart({ label: `${name} wave: accuracy by epoch`, height: 150, limits: [0.45, 1.02], ticks: TICKS,
      onMove: (place) => this.set({ place }) });
    chart.name = (i) => `${Math.round(this.epoch(i))}`;
    return { name, wave, chart, image: picture(`${name} wave`) };
  }

  set(changes) {
    Object.assign(this.view, changes);
    this.draw(changes);
  }

  draw(changes = this.view) {
    const { place, strength } = this.view, now = this.panels.map(({ name }) => this.waves[name].test[place]);
    this.controls.forEach((control) => control.sync());
    for (const { name, wave, chart, image } of this.panels) {
      const line = (kind) => this.waves[name][kind].slice(0, place + 1).map((value, i) => [i, value]);
      if ("strength" in changes)
        paintSigned(image.canvas, sample(wave, strength), SIDE, `An image with the ${name} wave at strength ${strength}`);
      const [train, test] = [line("train"), line("test")];
      chart.position = place;
      chart.draw({ series: [{ colour: "b", line: train }, { colour: "a", line: test }], last: this.last,
        alt: `${name} wave, epoch ${this.epoch(place)}: ${percent(train[place][1])} of training images, ${percent(test[place][1])} of new ones` });
    }
    this.told.textContent = `Epoch ${this.epoch(place)}, new images classified correctly: ${
      this.panels.map(({ name }, i) => `${percent(now[i])} (${name} wave)`).join(", ")}.`;
  }
}

class NadTraining extends HTMLElement {
  connectedCallback() {
    this.training ??= new Training(this, JSON.parse(this.getAttribute("config")));
  }
}

if (!customElements.get("nad-training")) customElements.define("nad-training", NadTraining);
