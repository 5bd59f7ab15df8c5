// A wave before and after pooling with stride 2, whose frequency the reader drags until it folds

import STYLE from "./explorer.css";
import { menu, slider } from "./controls.js";
import { h } from "./drawing.js";
import { percent } from "./text.js";
import { followTheme } from "./theme.js";

const SAMPLES = 32, STRIDE = 2, OUTPUTS = SAMPLES / STRIDE;
const PHASE = 0.7; // with 0, the finest wave would be zero at every sample
const WIDTH = 640, HEIGHT = 120, EDGE = 10;
const POOLS = {
  keep: { text: "keep every second sample", of: (pair) => pair[0], centre: 0 },
  average: { text: "average pairs", of: (pair) => (pair[0] + pair[1]) / 2, centre: 0.5 },
  max: { text: "take the maximum of pairs", of: (pair) => Math.max(...pair), centre: 0.5 },
};

const wave = (cycles) => (place) => Math.cos((2 * Math.PI * cycles * place) / SAMPLES - PHASE);

/** The amplitude and phase of each frequency of a real signal, from 0 to half its length. */
export function amplitudes(signal) {
  const n = signal.length;
  return Array.from({ length: n / 2 + 1 }, (_, k) => {
    let re = 0, im = 0;
    signal.forEach((value, j) => {
      re += value * Math.cos((2 * Math.PI * k * j) / n);
      im -= value * Math.sin((2 * Math.PI * k * j) / n);
    });
    const twice = k === 0 || 2 * k === n ? 1 : 2; // k and -k
    return [(twice * Math.hypot(re, im)) / n, Math.atan2(im, re)];
  });
}

/** What pooling makes of a wave: its outputs, and the strongest frequency among them apart from the mean. */
export function pooled(cycles, pool) {
  const samples = Array.from({ length: SAMPLES }, (_, n) => wave(cycles)(n));
  const outputs = Array.from({ length: OUTPUTS }, (_, j) => POOLS[pool].of(samples.slice(STRIDE * j, STRIDE * (j + 1))));
  const found = amplitudes(outputs), heights = found.map(([height]) => height);
  const first = pool === "max" ? 1 : 0, heard = heights.indexOf(Math.max(...heights.slice(first)), first);
  return { samples, outputs, heard, height: heights[heard], phase: found[heard][1], mean: heights[0] * Math.cos(found[0][1]) };
}

class Fold {
  view = { cycles: 5, pool: "keep" };

  constructor(host) {
    this.controls = [
      slider(this, "cycles", "Frequency (cycles)", { min: 1, max: () => OUTPUTS, text: (k) => `${k} cycles` }),
      menu(this, "pool", "Pooling", Object.fromEntries(Object.entries(POOLS).map(([key, { text }]) => [key, text]))),
    ];
    this.before = plot("before pooling: 32 samples");
    this.after = plot("after pooling: 16 samples, and the slowest wave through them");
    this.told = h("p", { class: "verdict", "aria-live": "polite" });
    this.root = h("div", { class: "explorer fold", role: "group", "aria-label": "Drag a frequency until it folds" },
      h("section", {}, ...this.controls.map(({ element }) => element), this.before.element, this.after.element, this.told));
    host.attachShadow({ mode: "open" }).replaceChildren(h("style", {}, STYLE), this.root);
    followTheme(host, this.root);
    this.draw();
  }

  set(changes) {
    Object.assign(this.view, changes);
    this.draw();
  }

  draw() {
    const { cycles, pool } = this.view, { centre } = POOLS[pool];
    const { samples, outputs, heard, height, phase, mean } = pooled(cycles, pool);
    this.controls.forEach((control) => control.sync());
    this.before.draw(wave(cycles), samples.map((value, n) => [n, value]), "a", `A wave of ${cycles} cycles`);
    const slow = (place) => {
      const angle = (2 * Math.PI * heard * (place - centre)) / SAMPLES + phase;
      return (heard ? mean : 0) + height * Math.cos(angle);
    };
    this.after.draw(slow, outputs.map((value, j) => [STRIDE * j + centre, value]), "b", `A wave of ${heard} cycles`);
    this.told.replaceChildren(...verdict(cycles, heard, height, pool));
  }
}

function verdict(cycles, heard, height, pool) {
  const left = `${percent(height, 0)} of its height`, word = (k) => (k ? `${k} ${k === 1 ? "cycle" : "cycles"}` : "a constant");
  if (height < 1e-9) return [h("strong", {}, "Nothing is left of the wave."),
    pool === "max" ? " Every pair has the same maximum." : " Every pair has the mean zero."];
  const phase = heard % (OUTPUTS / 2) ? "" : " At this frequency the height depends on the wave's phase.";
  if (cycles === heard) return [h("strong", {}, `Not folded: ${word(cycles)} before and after`), `, at ${left}.${phase}`];
  const fold = `${OUTPUTS} − ${cycles} = ${OUTPUTS - cycles}`;
  if (heard === OUTPUTS - cycles)
    return [h("strong", {}, `Folded: ${word(cycles)} now look like ${word(heard)}`), ` (${fold}), at ${left}.${phase}`];
  return [h("strong", {}, `${word(cycles)} became ${word(heard)}`), `, at ${left}. The maximum also makes new frequencies.`];
}

/** A panel with a line and dots over the samples, between -1 and 1. */
function plot(title) {
  const svg = h("svg:svg", { role: "img", class: "signal", viewBox: `0 0 ${WIDTH} ${HEIGHT}` });
  const x = (place) => EDGE + (place / SAMPLES) * (WIDTH - 2 * EDGE), y = (value) => HEIGHT / 2 - value * (HEIGHT / 2 - EDGE);
  const draw = (line, dots, colour, alt) => {
    const places = Array.from({ length: 8 * SAMPLES + 1 }, (_, i) => i / 8);
    const points = places.map((place) => `${x(place).toFixed(1)},${y(line(place)).toFixed(1)}`).join(" ");
    svg.setAttribute("aria-label", alt);
    svg.replaceChildren(
      h("svg:line", { class: "grid", x1: EDGE, x2: WIDTH - EDGE, y1: y(0), y2: y(0) }),
      h("svg:polyline", { class: colour, points }),
      ...dots.map(([place, value]) => h("svg:circle", { class: colour, cx: x(place), cy: y(value), r: 4 })));
  };
  return { draw, element: h("figure", {}, h("figcaption", {}, title), svg) };
}

class NadFold extends HTMLElement {
  connectedCallback() {
    this.fold ??= new Fold(this);
  }
}

if (!customElements.get("nad-fold")) customElements.define("nad-fold", NadFold);
