// A bet: which waves can a network not learn? First blind, then with what random weights say, then what training found.
// Of a network that learns few waves, the bet is on those that it learned: the rarer outcome is the harder bet.

import { addressNow, parameters, saveAddress } from "./address.js";
import { STEPS, plotOf } from "./axes.js";
import { menuOf } from "./controls.js";
import { h, paint, picture } from "./drawing.js";
import { fourierDirection } from "./fourier.js";
import { clamp, dot } from "./numbers.js";
import { gaussians, keyOf } from "./playground/random.js";
import { accuracyColour, accuracyScale, energyColour, energyScale } from "./scales.js";
import { copyButton } from "./share.js";
import { percent, short } from "./text.js";
import { define, showIn } from "./theme.js";

const SIDE = 32, CELLS = SIDE / 2; // the published grid has every second frequency
const TILE = 40; // pixels of a wave on the blind grid, which shows a quarter of the image
const STRONGER = 100; // times, so that the wave shows
const STEERING = "Arrow keys move through the waves, Enter chooses one.";

/** The cells of a wave: k and -k are one task, and lie opposite each other. */
const cellsOf = ([ky, kx]) =>
  [1, -1].map((sign) => [ky, kx].map((k) => (((sign * k + SIDE / 2) % SIDE) + SIDE) % SIDE / 2));
const nameOf = ([ky, kx]) => `${ky} cycles down, ${kx} across`.replaceAll("-", "−");
const fineness = ([ky, kx]) => ky ** 2 + kx ** 2;

/** The share of pairs of a learned wave and another in which the learned one has more energy. */
function ordered(tasks, learned) {
  const [known, others] = [true, false].map((is) => tasks.filter((task) => task[3] > learned === is));
  const wins = known.flatMap(([, , a]) => others.map(([, , b]) => (a > b ? 1 : a === b ? 0.5 : 0)));
  return wins.reduce((sum, win) => sum + win, 0) / (wins.length || 1);
}

class Guess {
  constructor(host, { networks, asked, learned, margin, noise, shared }) {
    Object.assign(this, { networks, asked, learned, margin, noise, addressed: shared, network: networks[0] });
    this.clouds = [1, 2].map((seed) => gaussians(keyOf(seed), SIDE * SIDE).map((x) => noise * x));
    const listeners = {
      click: (event) => this.choose(this.under(event)),
      pointermove: (event) => event.pointerType === "touch" || this.look(this.under(event)),
      keydown: (event) => this.key(event),
    };
    this.before = this.map(listeners);
    this.after = this.map(listeners);
    this.after.element.classList.add("after");
    this.wave = picture("the wave");
    this.images = ["class A: noise + wave", "class B: noise − wave"].map(picture);
    this.stronger = h("button", { class: "chip", "aria-pressed": "false", click: () => {
      this.stronger.setAttribute("aria-pressed", `${this.stronger.getAttribute("aria-pressed") !== "true"}`);
      this.tell();
    } });
    this.status = h("p", { class: "note", "aria-live": "polite" });
    this.question = h("p", { class: "question" });
    this.verdict = h("div", { class: "verdict", "aria-live": "polite" });
    this.next = h("button", { class: "main", click: () => this.proceed() });
    this.skip = h("button", { click: () => this.show() }, "Show me without a bet");
    this.again = h("button", { click: () => this.restart() });
    this.link = shared ? copyButton("Copy link", addressNow) : "";
    const names = Object.fromEntries(networks.map(({ label }, i) => [i, label]));
    this.menu = menuOf("Network", names, (i) => {
      const shown = this.stage === "done" && !this.chosen.size;
      this.restart(networks[i]);
      if (shown) this.show();
    });
    this.root = h("div", { class: "explorer guess", role: "group", "aria-label": "Bet on what a network will learn" },
      h("section", {}, this.question, this.verdict,
        h("div", { class: "buttons" }, this.next, this.again, this.link),
        h("div", { class: "maps" },
          h("div", { class: "example" }, this.status, this.wave.element, this.stronger, ...this.images.map(({ element }) => element)),
          this.before.element, this.after.element),
        h("div", { class: "buttons" }, this.skip, networks.length > 1 ? this.menu.element : null)));
    showIn(host, this.root);
    (shared && this.restore()) || this.start();
    if (shared) addEventListener("hashchange", () => this.restore());
  }

  map(listeners) {
    const canvas = h("canvas", { width: CELLS, height: CELLS }), marks = h("div");
    const box = h("div", { class: "map", tabindex: 0, role: "application", ...listeners }, canvas, marks);
    const caption = h("figcaption");
    return { canvas, marks, box, caption, element: h("figure", {},
      plotOf(box, [-16, -8, 0, 8], (k) => ((k + SIDE / 2) / 2 + 0.5) / CELLS), caption) };
  }

  /** Begin, with another network if one is given. */
  start(network = this.network) {
    Object.assign(this, { network, chosen: new Set(), blind: null, stage: "blind", rival: null,
      cursor: [CELLS / 2, CELLS / 2 + 1] });
    const learned = network.tasks.filter(([, , , accuracy]) => accuracy > this.learned).length;
    this.onLearned = 2 * learned < network.tasks.length;
    this.byCell = new Map(network.tasks.flatMap((task) => cellsOf(task).map((cell) => [`${cell}`, task])));
    this.menu.select.value = this.networks.indexOf(network);
    this.draw();
  }

  restart(network) {
    this.start(network);
    if (this.addressed) saveAddress();
  }

  /** Add a bet that was decided to the address. */
  describe(address) {
    if (this.stage !== "done" || !this.addressed || !this.chosen.size) return;
    address.set("bet.network", this.network.name);
    address.set("bet.waves", JSON.stringify([...this.chosen].map(([ky, kx]) => [ky, kx])));
  }

  /** Begin a bet against the one that the address describes, whose waves stay hidden, if it makes sense. */
  restore() {
    const address = parameters(), network = this.networks.find(({ name }) => name === address.get("bet.network"));
    if (!network) return false;
    this.start(network);
    try {
      const found = JSON.parse(address.get("bet.waves")).map((k) => this.byCell.get(`${cellsOf(k)[0]}`));
      if (found.every(Boolean) && new Set(found).size === this.asked) this.rival = this.right(found);
    } catch {
      return true;
    }
    this.draw();
    return true;
  }

  under(event) {
    const box = event.currentTarget.getBoundingClientRect();
    return [(event.clientY - box.top) / box.height, (event.clientX - box.left) / box.width].map((share) =>
      clamp(Math.floor(share * CELLS), 0, CELLS - 1));
  }

  look(cell) {
    if (`${cell}` === `${this.cursor}`) return;
    this.cursor = cell;
    this.tell();
  }

  choose(cell) {
    this.cursor = cell;
    const task = this.byCell.get(`${cell}`);
    if (this.stage !== "done" && !this.chosen.delete(task) && this.chosen.size < this.asked) this.chosen.add(task);
    this.ask();
    this.tell();
  }

  key(event) {
    if (event.key in STEPS) this.look(this.cursor.map((i, at) => clamp(i + STEPS[event.key][at], 0, CELLS - 1)));
    else if (event.key === "Enter" || event.key === " ") this.choose(this.cursor);
    else return;
    event.preventDefault();
  }

  /** From the blind bet to the map of random weights, and from there to what training found. */
  proceed() {
    if (this.stage === "blind") Object.assign(this, { stage: "map", blind: new Set(this.chosen) });
    else Object.assign(this, { stage: "done" });
    this.draw();
    if (this.addressed) saveAddress();
    this.root.scrollIntoView?.({ block: "nearest" });
  }

  /** Both maps at once, for a reader who does not bet. */
  show() {
    Object.assign(this, { stage: "done", chosen: new Set(), blind: new Set() });
    this.draw();
    this.root.scrollIntoView?.({ block: "nearest" });
  }

  /** Whether a bet on a wave is right. */
  wins = ([, , , accuracy]) => (accuracy > this.learned) === this.onLearned;

  right = (tasks) => [...tasks].filter(this.wins).length;

  draw() {
    const { network: { label, tasks }, stage } = this;
    const at = (i) => this.byCell.get(`${[Math.floor(i / CELLS), i % CELLS]}`);
    const lowest = Math.min(...tasks.map(([, , energy]) => energy));
    this.before.box.classList.toggle("waves", stage === "blind");
    if (stage === "blind") {
      this.before.box.setAttribute("aria-label", `${tasks.length} waves to bet on. ${STEERING}`);
      this.paintTiles(this.before.canvas);
      this.before.caption.replaceChildren("Every square is a wave: coarse in the middle, fine at the edge. Opposite squares hold the same wave.");
    } else {
      this.before.box.setAttribute("aria-label", `Energy of ${tasks.length} waves in random ${label}s. ${STEERING}`);
      paint(this.before.canvas, CELLS, (i) => energyColour(at(i)[2], -Math.log10(lowest)),
        `energies of waves in random ${label}s`);
      this.before.caption.replaceChildren(h("strong", {}, "Before training: energy"), energyScale(short(lowest)), h("em", {}, "Energy"),
        " is how strongly the output of a random network changes along the wave, squared and averaged over thousands of networks.");
    }
    this.after.box.setAttribute("aria-label", `Accuracy of ${label} after training. ${STEERING}`);
    if (stage === "done") paint(this.after.canvas, CELLS, (i) => accuracyColour(at(i)[3]), `accuracies of ${label}`);
    this.after.caption.replaceChildren(h("strong", {}, "After training: accuracy"), accuracyScale(), "on new images; one training per wave.");
    this.root.dataset.stage = stage;
    this.ask();
    this.conclude();
    this.tell();
  }

  /** All waves as small pictures, of a quarter of the image each. */
  paintTiles(canvas) {
    const part = SIDE / 2, side = CELLS * part, image = new ImageData(side, side), pixels = new Uint32Array(image.data.buffer);
    const greys = [Math.sin, Math.cos].map((shape) => Uint32Array.from({ length: SIDE }, (_, i) =>
      0x010101 * Math.round(135 + 85 * shape((2 * Math.PI * i) / SIDE)) + 0xff000000));
    for (let y = 0; y < side; y++)
      for (let x = 0; x < side; x++) {
        const [ky, kx] = [y, x].map((at) => 2 * Math.floor(at / part) - SIDE / 2);
        const own = (2 * ky) % SIDE === 0 && (2 * kx) % SIDE === 0, phase = ky * (y % part) + kx * (x % part);
        pixels[y * side + x] = greys[own ? 1 : 0][((phase % SIDE) + SIDE) % SIDE];
      }
    const small = h("canvas", { width: side, height: side }), size = CELLS * TILE;
    small.getContext("2d").putImageData(image, 0, 0);
    canvas.width = canvas.height = size;
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = false;
    context.drawImage(small, 0, 0, size, size);
    for (let i = 0; i <= CELLS; i++) { // lines between them
      context.clearRect(i * TILE - 2, 0, 4, size);
      context.clearRect(0, i * TILE - 2, size, 4);
    }
    canvas.setAttribute("aria-label", "all waves");
  }

  /** The question of this stage, and its buttons. */
  ask() {
    const { network: { label, tasks }, chosen, asked, stage } = this, left = asked - chosen.size;
    this.question.replaceChildren(...(stage === "blind" ? [
      this.rival === null ? "" : h("strong", {}, `Somebody scored ${this.rival}. Beat it. `),
      `${label} was trained ${tasks.length} times, each time to find another wave in noise. The wave is added in class A and subtracted in class B. `,
      `${label} learned some waves and stayed at chance for the others. `, h("strong", {}, `Bet on ${asked} waves that it ${this.goal}.`),
    ] : stage === "map" ? [
      h("strong", {}, "A hint: "), `this map comes from ${label}s with random weights. No training, no data. Bright waves have a high energy. `,
      h("strong", {}, "You may change your bet."),
    ] : []));
    this.next.hidden = stage === "done";
    this.skip.hidden = stage !== "blind";
    this.next.disabled = left > 0;
    this.next.textContent = left ? `Choose ${left} more` : stage === "blind" ? "Lock in the bet" : `Reveal what ${label} learned`;
    const bet = chosen.size > 0;
    this.again.textContent = bet ? "Bet again" : "Make a bet";
    this.again.hidden = stage !== "done";
    if (this.link) this.link.hidden = stage !== "done" || !bet;
  }

  /** The score, and what it is to be compared with. */
  score() {
    const { network: { tasks }, asked, onLearned } = this, sign = onLearned ? 1 : -1;
    const first = (by) => this.right([...tasks].sort(by).slice(0, asked));
    return {
      own: this.right(this.chosen), blind: this.right(this.blind), chance: (asked * this.right(tasks)) / tasks.length,
      obvious: first((a, b) => sign * ((fineness(a) || (onLearned ? 1e9 : 0)) - (fineness(b) || (onLearned ? 1e9 : 0)))),
      map: first((a, b) => sign * (b[2] - a[2])),
    };
  }

  /** What the bet is on, as the end of a sentence. */
  get goal() {
    return this.onLearned ? "learned" : "cannot learn";
  }

  conclude() {
    this.verdict.hidden = this.stage !== "done";
    if (this.verdict.hidden) return;
    const { network: { label, tasks }, asked, learned } = this, { own, blind, chance, obvious, map } = this.score();
    const changed = [...this.chosen].some((task) => !this.blind.has(task));
    const failed = tasks.filter((task) => task[3] <= learned).sort((a, b) => fineness(a) - fineness(b) || b[0] + b[1] - a[0] - a[1])[0];
    const finer = [4, 1].map((times) => tasks.filter((task) => task[3] > learned && fineness(task) > times * fineness(failed))
      .sort((a, b) => Math.round(10 * b[2]) - Math.round(10 * a[2]) || fineness(a) - fineness(b))[0]).find(Boolean); // twice as many cycles, if there is one
    const share = ordered(tasks, learned), score = (number, text, kind) =>
      h("li", { class: kind }, h("strong", {}, `${number}`), h("span", {}, text));
    this.verdict.replaceChildren(
      h("p", {}, h("strong", {}, this.chosen.size ? `${own} of ${asked}: waves that ${label} ${this.goal}.`
        : `${label} learned ${tasks.filter((task) => task[3] > learned).length} of ${tasks.length} waves. How many would a bet on ${asked} get right?`)),
      h("ul", { class: "scores", "aria-label": `Right bets of ${asked}` },
        this.chosen.size ? score(own, changed ? "your bet with the map" : "your bet", "own") : null,
        changed ? score(blind, "your blind bet", "own") : null, this.rival === null ? null : score(this.rival, "somebody's bet"),
        score(chance.toFixed(1), "chance"), score(obvious, `the ${asked} ${this.onLearned ? "coarsest" : "finest"}`),
        score(map, `the ${asked} ${this.onLearned ? "brightest" : "darkest"} in the map`)),
      h("p", {}, ...(finer ? [`${label} learns ${nameOf(finer)} (${percent(finer[3])}), but not the coarser ${nameOf(failed)} (${
        percent(failed[3])}). `] : []), `Compare any learned wave with any failed one: ${
        share === 1 ? "in all pairs" : `in ${percent(Math.floor(1000 * share) / 1000)} of the pairs`
      } the learned one is brighter in the map of random weights.`));
  }

  /** The wave under the pointer or the keyboard's cursor, its task, and all marks. */
  tell() {
    const task = this.byCell.get(`${this.cursor}`), [ky, kx, energy, accuracy] = task, { stage } = this;
    const wave = fourierDirection([ky, kx], SIDE), loud = this.stronger.getAttribute("aria-pressed") === "true";
    const peak = Math.max(...wave.map(Math.abs));
    this.stronger.textContent = loud ? "Real strength again" : `Wave ${STRONGER} times stronger`;
    paint(this.wave.canvas, SIDE, (j) => [...Array(3).fill(128 + (110 * wave[j]) / peak), 255], `Wave of ${ky} cycles down and ${kx} across`);
    if (stage !== "done") this.images.forEach(({ canvas }, i) => {
      const cloud = this.clouds[i], along = dot(cloud, wave), size = (i ? -1 : 1) * this.margin * (loud ? STRONGER : 1);
      const grey = (j) => clamp(128 + (42 * (cloud[j] + (size - along) * wave[j])) / this.noise, 0, 255);
      paint(canvas, SIDE, (j) => [grey(j), grey(j), grey(j), 255], `Noise ${i ? "minus" : "plus"} the wave${loud ? ", made stronger" : ""}`);
    });
    this.status.replaceChildren(h("strong", {}, nameOf(task)),
      ...(stage === "blind" ? [] : [h("br"), `energy ${short(energy)}`]),
      ...(stage === "done" ? [h("br"), `accuracy ${percent(accuracy)}: ${accuracy > this.learned ? "learned" : "not learned"}`]
        : this.chosen.has(task) ? [h("br"), "in your bet"] : []));
    const mark = (kind) => ([row, column]) => {
      const [top, left, side] = [row, column, 1].map((i) => `${(100 * i) / CELLS}%`);
      return h("span", { class: `mark ${kind}`, style: `top:${top};left:${left};width:${side};height:${side}` });
    };
    for (const { marks } of [this.before, this.after])
      marks.replaceChildren(...[...this.chosen].flatMap((one) => cellsOf(one).map(mark(
        stage !== "done" ? "guessed" : this.wins(one) ? "guessed right" : "guessed wrong"))),
      ...cellsOf(task).map(mark("cursor")));
  }
}

class NadGuess extends HTMLElement {
  connectedCallback() {
    this.guess ??= new Guess(this, JSON.parse(this.getAttribute("config")));
  }

  describe(address) {
    this.guess?.describe(address);
  }
}

define("nad-guess", NadGuess);
