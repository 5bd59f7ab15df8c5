// A guess: which waves will a network learn? From what its random weights say, before what training found is shown

import STYLE from "./explorer.css";
import { menuOf } from "./controls.js";
import { h, paint, paintSigned, picture } from "./drawing.js";
import { fourierDirection } from "./fourier.js";
import { clamp } from "./numbers.js";
import { accuracyColour, accuracyScale, energyColour, energyScale } from "./scales.js";
import { percent, short } from "./text.js";
import { followTheme } from "./theme.js";

const SIDE = 32, CELLS = SIDE / 2; // the published grid has every second frequency
const HIDDEN = [[128, 128, 128, 60], [128, 128, 128, 110]];
const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** The cells of a wave: k and -k are one task, and lie opposite each other. */
const cellsOf = ([ky, kx]) =>
  [1, -1].map((sign) => [ky, kx].map((k) => (((sign * k + SIDE / 2) % SIDE) + SIDE) % SIDE / 2));

/** The share of pairs of a learned wave and another in which the learned one has more energy. */
function ordered(tasks, learned) {
  const [known, others] = [true, false].map((is) => tasks.filter((task) => task[3] > learned === is));
  const wins = known.flatMap(([, , a]) => others.map(([, , b]) => (a > b ? 1 : a === b ? 0.5 : 0)));
  return wins.reduce((sum, win) => sum + win, 0) / (wins.length || 1);
}

class Guess {
  constructor(host, { networks, asked, learned }) {
    Object.assign(this, { networks, asked, learned, network: networks[0], cursor: [CELLS / 2, CELLS / 2 + 1] });
    const listeners = {
      click: (event) => this.choose(this.under(event)),
      pointermove: (event) => event.pointerType === "touch" || this.look(this.under(event)),
      keydown: (event) => this.key(event),
    };
    this.before = this.map("before training: energy in random weights", listeners);
    this.after = this.map("after training: accuracy on new images", listeners);
    this.after.element.classList.add("after");
    this.wave = picture("the wave");
    this.status = h("p", { class: "note", "aria-live": "polite" });
    this.verdict = h("p", { class: "verdict", "aria-live": "polite" });
    this.question = h("p", { class: "question" });
    this.reveal = h("button", { class: "main", click: () => this.show() });
    this.again = h("button", { click: () => this.start() }, "Guess again");
    const names = Object.fromEntries(networks.map(({ label }, i) => [i, label]));
    const choice = menuOf("Network", names, (i) => this.start(networks[i]));
    this.root = h("div", { class: "explorer guess", role: "group", "aria-label": "Guess what a network will learn" },
      h("section", {}, this.question,
        h("div", { class: "maps" }, this.before.element, this.after.element,
          h("div", { class: "wave" }, this.wave.element, this.status)),
        h("div", { class: "buttons" }, this.reveal, this.again, networks.length > 1 ? choice.element : null),
        this.verdict));
    host.attachShadow({ mode: "open" }).replaceChildren(h("style", {}, STYLE), this.root);
    followTheme(host, this.root);
    this.start();
  }

  map(title, listeners) {
    const canvas = h("canvas", { width: CELLS, height: CELLS }), marks = h("div");
    const box = h("div", { class: "map", tabindex: 0, role: "application", ...listeners }, canvas, marks);
    const scale = h("div"), caption = h("figcaption", {}, title, scale);
    return { canvas, marks, box, scale, element: h("figure", {}, box, caption) };
  }

  /** Begin, with another network if one is given. */
  start(network = this.network) {
    Object.assign(this, { network, chosen: new Set(), revealed: false });
    this.byCell = new Map(network.tasks.flatMap((task) => cellsOf(task).map((cell) => [`${cell}`, task])));
    this.draw();
  }

  under(event) {
    const box = event.currentTarget.getBoundingClientRect();
    return [(event.clientY - box.top) / box.height, (event.clientX - box.left) / box.width].map((share) =>
      clamp(Math.floor(share * CELLS), 0, CELLS - 1));
  }

  look(cell) {
    this.cursor = cell;
    this.tell();
  }

  choose(cell) {
    this.cursor = cell;
    const task = this.byCell.get(`${cell}`);
    if (!this.revealed && !this.chosen.delete(task) && this.chosen.size < this.asked) this.chosen.add(task);
    this.draw();
  }

  key(event) {
    if (event.key in STEPS) this.look(this.cursor.map((i, axis) => clamp(i + STEPS[event.key][axis], 0, CELLS - 1)));
    else if (event.key === "Enter" || event.key === " ") this.choose(this.cursor);
    else return;
    event.preventDefault();
  }

  show() {
    this.revealed = true;
    this.draw();
    this.verdict.scrollIntoView?.({ block: "nearest" });
  }

  right = (tasks) => tasks.filter(([, , , accuracy]) => accuracy > this.learned).length;

  draw() {
    const { network: { label, tasks }, chosen, asked, learned, revealed, byCell } = this;
    const at = (i) => byCell.get(`${[Math.floor(i / CELLS), i % CELLS]}`);
    const steering = "Arrow keys move through the waves, Enter chooses one.";
    this.before.box.setAttribute("aria-label", `Energy of ${tasks.length} waves in random ${label}s. ${steering}`);
    this.after.box.setAttribute("aria-label",
      `Accuracy of ${label} after training${revealed ? "" : ": hidden until you have guessed"}. ${steering}`);
    const lowest = Math.min(...tasks.map(([, , energy]) => energy));
    paint(this.before.canvas, CELLS, (i) => energyColour(at(i)[2], -Math.log10(lowest)),
      `energies of waves in random ${label}s`);
    this.before.scale.replaceChildren(energyScale(short(lowest)));
    this.after.scale.replaceChildren(accuracyScale());
    paint(this.after.canvas, CELLS, (i) =>
      revealed ? accuracyColour(at(i)[3]) : HIDDEN[(Math.floor(i / CELLS) + i) % 2], `accuracies of ${label}`);
    const left = asked - chosen.size;
    this.question.replaceChildren(`One wave, hidden in noise, tells two classes of images apart. ${label} was trained on ${
      tasks.length} such tasks, each with another wave, and learned some of them. `,
      h("strong", {}, `Which ${asked} do you bet on? Choose them in the map of its random weights.`));
    this.reveal.textContent = left ? `Reveal (${chosen.size} of ${asked} chosen)` : "Reveal";
    this.reveal.disabled = !chosen.size;
    this.reveal.hidden = revealed;
    this.root.classList.toggle("revealed", revealed);
    this.again.hidden = !revealed;
    this.verdict.hidden = !revealed;
    if (revealed) {
      const n = chosen.size, known = this.right(tasks), chance = (n * known) / tasks.length;
      const brightest = [...tasks].sort((a, b) => b[2] - a[2]).slice(0, n);
      this.verdict.replaceChildren(
        h("strong", {}, `${this.right([...chosen])} of your ${n} ${n > 1 ? "waves were" : "wave was"} learned.`),
        ` Chance would find ${chance.toFixed(1)}, since ${label} learned ${known} of ${tasks.length}; the brightest find ${
          this.right(brightest)} of ${n}. Take any wave that it learned and any that it did not: in ${
          percent(Math.floor(1000 * ordered(tasks, learned)) / 1000)} of these pairs the learned one is the brighter one, in a map made of random `,
        "weights alone. No data, no training.");
    }
    this.tell();
  }

  /** The wave under the pointer or the keyboard's cursor, and all marks. */
  tell() {
    const task = this.byCell.get(`${this.cursor}`), [ky, kx, energy, accuracy] = task;
    paintSigned(this.wave.canvas, fourierDirection([ky, kx], SIDE), SIDE, `Wave of ${ky} cycles down and ${kx} across`);
    const right = accuracy > this.learned ? "learned" : "not learned";
    this.status.replaceChildren(h("strong", {}, `${ky} cycles down, ${kx} across`), h("br"), `energy ${short(energy)}`,
      h("br"), this.revealed ? `accuracy ${percent(accuracy)}: ${right}` : this.chosen.has(task) ? "chosen" : "");
    const mark = (kind) => ([row, column]) => {
      const [top, left, side] = [row, column, 1].map((i) => `${(100 * i) / CELLS}%`);
      return h("span", { class: `mark ${kind}`, style: `top:${top};left:${left};width:${side};height:${side}` });
    };
    for (const { marks } of [this.before, this.after])
      marks.replaceChildren(...[...this.chosen].flatMap((one) => cellsOf(one).map(mark(
        !this.revealed ? "guessed" : one[3] > this.learned ? "guessed right" : "guessed wrong"))),
      ...cellsOf(task).map(mark("cursor")));
  }
}

class NadGuess extends HTMLElement {
  connectedCallback() {
    this.guess ??= new Guess(this, JSON.parse(this.getAttribute("config")));
  }
}

if (!customElements.get("nad-guess")) customElements.define("nad-guess", NadGuess);
