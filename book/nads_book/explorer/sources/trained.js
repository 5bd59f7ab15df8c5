// NADs of networks that train: a slider over steps, from stored pictures and cosines

import { Chart } from "./chart.js";
import { menu, playButton, slider } from "./controls.js";
import { h, paintSigned, picture } from "./drawing.js";
import { bytesOf } from "./packets.js";
import { signed } from "./text.js";
import { define, showIn } from "./theme.js";

const SIDE = 32, AREA = SIDE ** 2;
const TICKS = [[-1, "−1"], [0, "0"], [1, "1"]];

class Trained {
  /** entries: "network|data" -> { steps, signal, start } with a cosine per step; pictures follow in their order. */
  constructor(host, { networks, data, entries, shown }, bytes) {
    Object.assign(this, { entries, shown, networks, data, places: {} });
    let place = 0;
    for (const [key, { steps }] of Object.entries(entries)) {
      this.places[key] = place;
      place += steps.length * shown * AREA;
    }
    this.pixels = new Int8Array(bytes.buffer, bytes.byteOffset, bytes.length);
    this.view = { network: Object.keys(networks)[0], data: Object.keys(data)[0], place: 0 };
    const step = slider(this, "place", "Step", { max: () => this.last, show: (i) => this.step(i) });
    this.controls = [menu(this, "network", "Network", networks), menu(this, "data", "Trained on", data), step];
    this.images = Array.from({ length: shown }, (_, i) => picture(`direction ${i}`));
    this.chart = new Chart({ label: "Cosines by step", height: 150, limits: [-1.05, 1.05], ticks: TICKS,
      onMove: (place) => this.set({ place }) });
    this.chart.name = (i) => this.step(i);
    this.told = h("p", { class: "verdict", "aria-live": "polite" });
    this.root = h("div", { class: "explorer trained", role: "group", "aria-label": "NADs of networks while they train" },
      h("section", {},
        h("div", { class: "menus" }, ...this.controls.slice(0, 2).map(({ element }) => element)),
        h("div", { class: "along" }, playButton(this, "place", () => this.last, "Play: train the networks"), step.element),
        h("div", { class: "stacked" }, ...this.images.map(({ element }) => element)),
        h("p", { class: "legend" }, h("span", { class: "a swatch" }, "with G₀"), h("span", { class: "b swatch" }, "with the signal")),
        this.chart.element, this.told));
    showIn(host, this.root);
    this.draw();
  }

  get key() { return `${this.view.network}|${this.view.data}`; }
  get last() { return this.entries[this.key].steps.length - 1; }
  step = (i) => this.entries[this.key].steps[i].toLocaleString("en");

  set(changes) {
    Object.assign(this.view, changes);
    this.view.place = Math.min(this.view.place, this.last);
    this.draw();
  }

  draw() {
    const { place } = this.view, { start, signal } = this.entries[this.key], named = `step ${this.step(place)}`;
    this.controls.forEach((control) => control.sync());
    this.images.forEach(({ canvas }, i) => {
      const from = this.places[this.key] + (place * this.shown + i) * AREA;
      paintSigned(canvas, Float32Array.from(this.pixels.subarray(from, from + AREA)), SIDE, `direction ${i} at ${named}`);
    });
    const line = (values) => values.map((value, i) => [i, value]).filter(([, value]) => value !== null);
    this.chart.position = place;
    const said = (values) => (values[place] === null ? "–" : signed(values[place]));
    const now = [`G₀ ${said(start)}`, ...(signal ? [`the signal ${said(signal)}`] : [])].join(", with ");
    this.chart.draw({ last: this.last, alt: `Cosines at ${named}: with ${now}`,
      series: [{ colour: "a", line: line(start) }, ...(signal ? [{ colour: "b", line: line(signal) }] : [])] });
    this.told.textContent = `At ${named}, the cosine of G with ${now}.`;
  }
}

class NadTrained extends HTMLElement {
  async connectedCallback() {
    if (this.begun) return; // moved within the page
    this.begun = true;
    const config = JSON.parse(this.getAttribute("config"));
    this.trained = new Trained(this, config, await bytesOf(config));
  }
}

define("nad-trained", NadTrained);
