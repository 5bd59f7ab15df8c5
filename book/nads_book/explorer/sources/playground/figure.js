// The playground: build a network, see what its random weights prefer, then train it

import PLAYGROUND from "./playground.css";
import { addressNow, parameters, saveAddress } from "../address.js";
import { COLOURS } from "../colours.js";
import { menuOf } from "../controls.js";
import { h, paintSigned, picture } from "../drawing.js";
import { whenNear } from "../load.js";
import { clamp, dot } from "../numbers.js";
import { readPhoto } from "../photos.js";
import { energyColour, energyScale } from "../scales.js";
import { codeBox, copyButton } from "../share.js";
import { define, showIn } from "../theme.js";
import { CHOICES, PIXELS, SIDE, canonical, matters } from "./engine.js";
import { ENOUGH, Ensemble } from "./ensemble.js";
import { Fit, Pace } from "./fit.js";
import { layerRows, sharesOf } from "./layers.js";
import { WaveMap } from "./map.js";
import { networkPicture } from "./picture.js";
import { pool } from "./pool.js";
import { bits, gaussians, keyOf } from "./random.js";
import { FREQUENCIES, NOTHING, waveOf } from "./solve.js";
import { DEFAULT, TITLES, cellOf, changeOf, fromText, inWords, nameOf, percent, python, times, toText, waveAt } from "./state.js";
import { STEPS } from "./tour.js";
import { RECIPE, epochsOf } from "./train.js";

const SHOWN = 8; // NADs
const CERTAIN = 0.5; // certainty above which a NAD counts as reproducible
const PROMISING = 0.01; // share of the largest energy above which a wave should be learned
const RISKY = 0.05; // below it, this often fails with a global average
const FLAT = 0.7; // share of the least energy where no wave is preferred
const MORE = 6; // waves
const PICTURE = "picture"; // a direction that is no wave of the map
const OPTIONS = { // of trainings
  epochs: ["Epochs", [20, 100]], rate: ["Learning rate", [0.02, 0.1, 0.5, 2]], noise: ["Noise", [0.35, 0.7, 1.4]], networks: ["Networks", [1, 5]],
  seed: ["Seed", [1, 2, 3, 4, 5]], delay: ["Speed", [0, 300, 1000]],
};
const OPTION = { delay: { 0: "fast", 300: "slow", 1000: "slower" } };
const START = { epochs: RECIPE.epochs, rate: RECIPE.rate, noise: RECIPE.noise, networks: 1, seed: 1, delay: 0 };

const capital = (text) => text[0].toUpperCase() + text.slice(1);

const WAVES = FREQUENCIES.map(waveOf);
/** The waves that a direction is made of, in words. */
function inWaves(direction) {
  const shares = WAVES.map((wave) => dot(wave, direction) ** 2), order = [...shares.keys()].sort((a, b) => shares[b] - shares[a]);
  return order.slice(0, 2).filter((cell, i) => !i || shares[cell] > 0.1).map((cell) => `${percent(shares[cell])} wave ${inWords(cell)}`).join(", ");
}

/** A picture (PIXELS,) as a direction: without its mean, and of norm 1. */
function pictureOf(name, values) {
  const mean = values.reduce((sum, x) => sum + x, 0) / PIXELS, centred = values.map((x) => x - mean), norm = Math.hypot(...centred) || 1;
  return { name, direction: centred.map((x) => x / norm) };
}

const figures = new Map(); // figure -> whether it is seen

/** What is known of one architecture. */
class Side {
  trained = new Map(); // target -> Fit
  home = null; // what was known before a visit
  tiles = Array.from({ length: SHOWN }, () => picture(""));

  constructor(figure, letter) {
    Object.assign(this, { figure, letter });
    this.map = new WaveMap({ label: `Energies of all waves, network ${letter.toUpperCase()}`,
      look: (cell, stay) => figure.look(this, cell, stay), choose: (cell) => figure.train(this, cell) });
    this.title = h("p", { class: `network ${letter}` });
    this.note = h("p", { class: "count" });
    this.strip = h("div", { class: `first ${letter}`, role: "group", "aria-label": `First NADs of ${letter.toUpperCase()}` },
      h("p", { class: "count" }, "First NADs: what these networks respond to most"),
      h("div", { class: "nads" }, ...this.tiles.map(({ element }) => element)));
    this.words = h("p", { class: "sr" });
  }

  /** Draw networks of another architecture or seed; what was trained belongs to the old one, and returns after a visit. */
  use(config, seed, visit = false) {
    if (this.home && !visit) {
      this.end();
      Object.assign(this, this.home, { home: null });
    }
    if (this.config && toText(config) === toText(this.config) && seed === this.ensemble.seed) return;
    if (visit) Object.assign(this, { home: { config: this.config, ensemble: this.ensemble, trained: this.trained }, trained: new Map() });
    else this.end();
    this.config = config;
    this.ensemble = new Ensemble(config, seed, this.figure.pool, () => this.figure.told());
    this.ensemble.go();
  }

  forget() {
    for (const fit of this.trained.values()) fit.end();
    this.trained = new Map();
  }

  end() {
    this.ensemble?.end();
    this.forget();
    this.config = null;
  }

  get energies() {
    return this.ensemble?.found?.energies;
  }

  get most() {
    return Math.max(...this.energies);
  }

  get strongest() {
    return this.energies.indexOf(this.most);
  }

  energy(target) {
    return target === PICTURE ? this.ensemble.energy(this.figure.picture.direction) : this.energies[target];
  }

  share(target) {
    return Math.max(this.energy(target), 0) / this.most;
  }

  /** Whether the energy predicts that a direction will be learned. */
  promises(target) {
    return this.share(target) > PROMISING;
  }

  /** The energy and its prediction in words, with what is known against it. */
  says(target) {
    const { config, most, figure: { options } } = this, share = this.share(target), promises = this.promises(target);
    const risky = promises && share < RISKY && config.head === "global" && config.padding === "zeros";
    const usual = options.rate === START.rate && options.noise === START.noise && epochsOf(config, options.epochs) === START.epochs;
    return `${Math.abs(this.energy(target)) < NOTHING * most ? "No energy" : `${times(share)} of the largest energy`}${
      Math.min(...this.energies) > FLAT * most ? "; all waves have nearly the same" : ""}. ${percent(PROMISING)} rule: ${
      promises ? "learned" : "missed"}${risky ? `; with a global average it often fails below ${percent(RISKY)}` : ""}.${
      usual ? "" : ` The rule is for ${START.epochs} epochs, rate ${START.rate}, noise ${START.noise}.`}`;
  }
}

export class Playground {
  cursor = cellOf([4, 4]);
  held = this.cursor; // where the cursor returns to
  chosenWave = this.cursor; // after a picture
  otherWave = null; // that was chosen before
  second = null; // [chip, value] in which B differs
  step = null; // of the tour
  bet = null;
  place = null; // of the drawing, whose layer is shown
  visited = null; // {config, name} of another network whose layer is shown
  options = { ...START };
  pace = new Pace();

  constructor(host, { config, second = null, chips = Object.keys(CHOICES), wave = [4, 4], small = false, shared = false, cat = "" }) {
    Object.assign(this, { host, start: { config: { ...DEFAULT, ...config }, second, wave }, chips, small, shared, pool: pool() });
    this.cat = this.picture = pictureOf("the cat", Float32Array.from(atob(cat), (letter) => letter.charCodeAt(0)));
    this.sides = ["a", "b"].map((letter) => new Side(this, letter));
    this.difference = new WaveMap({ label: "Where B has more energy than A, and where less",
      look: (cell, stay) => this.look(this.sides[1], cell, stay), choose: (cell) => this.train(this.sides[1], cell) });
    this.build();
    showIn(host, this.root, PLAYGROUND);
    this.set(this.start);
    whenNear(host, () => this.begin());
  }

  begin() {
    this.begun = true;
    if (this.shared) {
      this.restore();
      addEventListener("hashchange", () => this.restore());
    }
    const visible = { host: true, page: !document.hidden };
    const pause = () => {
      figures.set(this, visible.host && visible.page);
      this.pool.pause(![...figures.values()].some(Boolean));
    };
    new IntersectionObserver((seen) => ((visible.host = seen.at(-1).isIntersecting), pause()), { rootMargin: "100px" }).observe(this.host);
    document.addEventListener("visibilitychange", () => ((visible.page = !document.hidden), pause()));
    this.arrange();
  }

  build() {
    const { sides: [a, b] } = this;
    this.chipInputs = new Map();
    const group = `playground-${figures.size}`; // radio buttons of one figure belong together
    figures.set(this, false);
    this.chipSets = new Map(this.chips.map((key) => [key, h("fieldset", { class: "chipset" }, h("legend", {}, TITLES[key]),
      h("div", { class: "options" }, ...CHOICES[key].map((value) => {
        const input = h("input", { type: "radio", name: `${group}-${key}`, change: () => this.set({ config: { ...this.config, [key]: value } }) });
        this.chipInputs.set(`${key}=${value}`, input);
        return h("label", { class: "option" }, input, h("span", {}, nameOf(key, value)));
      })))]));
    this.drawing = h("div", { class: "drawing" });
    this.tour = h("section", { class: "tour", "aria-label": "Guided tour", tabindex: -1 });
    this.verdict = h("p", { class: "verdict", "aria-live": "polite" });
    this.compare = menuOf("Compare with", { "": "nothing", ...Object.fromEntries(this.chips.flatMap((key) =>
      CHOICES[key].map((value) => [`${key}=${value}`, changeOf(key, value)]))) }, (text) => {
      const [key, value] = text.split("=");
      this.set({ second: text ? [key, CHOICES[key].find((other) => `${other}` === value)] : null });
    });
    this.wave = picture("the wave");
    this.example = picture("an image");
    this.about = h("p", { class: "about" });
    this.spoken = h("p", { class: "sr", "aria-live": "polite" });
    this.status = h("p", { class: "status" });
    this.score = h("p", { class: "score" });
    this.chart = h("svg:svg", { class: "curve", viewBox: "0 0 276 96", role: "img", "aria-label": "No training yet" });
    this.trainButton = h("button", { class: "main", click: () => this.train(this.focus, this.held) }, "Train");
    this.pauseButton = h("button", { click: () => this.pause(!this.pace.paused) }, "Pause");
    this.stepButton = h("button", { click: () => this.stepOnce() }, "Step");
    this.moreButton = h("button", { click: () => this.trainMore() }, "Train six more");
    this.stopButton = h("button", { click: () => this.stop() }, "Stop");
    this.menus = Object.entries(OPTIONS).map(([key, [title, values]]) => {
      const { element, select } = menuOf(title, Object.fromEntries(values.map((value) => [`_${value}`, OPTION[key]?.[value] ?? `${value}`])),
        (text) => {
          this.setOptions({ [key]: +text.slice(1) });
          this.arrange();
        }); // keys that are no numbers keep their order
      return { element, sync: () => (select.value = `_${this.options[key]}`) };
    });
    const file = h("input", { type: "file", accept: "image/*", "aria-label": "A photo of your own", click: () => (file.value = ""),
      change: () => this.readPhoto(file.files[0]) });
    this.bothButton = h("button", { click: ({ target: { textContent } }) => {
      const [one, other] = [this.chosenWave, this.otherWave].map((cell) => WAVES[cell]);
      this.showPicture(pictureOf(textContent.toLowerCase(), one.map((x, i) => x + other[i])));
    } });
    this.pictures = h("div", { class: "buttons pictures" }, this.bothButton, h("button", { click: () => this.showPicture(this.cat) }, "The cat"),
      h("label", { class: "button" }, "Your photo…", file));
    this.code = codeBox("This network in Python", () => python(this.config, ...(this.second ? [this.configOfB] : [])));
    const panel = (side) => h("div", { class: `side ${side.letter}` }, side.title, side.map.element,
      h("div", { class: "under" }, energyScale(), side.note), side.words);
    this.differencePanel = h("div", { class: "side difference" }, h("p", { class: "network" }, "Relative energy, B / A"), this.difference.element,
      h("div", { class: "under" }, h("p", { class: "scale" }, h("span", {}, "¼"), h("span", { class: "bar diverging" }), h("span", {}, "4"))));
    this.secondPanel = panel(b);
    this.layer = h("div", { class: "layer-panel", role: "region", "aria-label": "What this layer does", "aria-live": "polite", hidden: true });
    this.task = h("div", { class: "train" },
      this.layer, h("div", { class: "task" }, this.wave.element, this.example.element, this.about),
      h("div", { class: "outcome" }, this.chart, this.status, this.score),
      h("div", { class: "controls" }, h("div", { class: "buttons" }, this.trainButton, this.pauseButton, this.stepButton, this.stopButton), this.moreButton),
      h("details", { class: "settings" }, h("summary", {}, "Epochs, learning rate, noise, several networks, speed"),
        h("div", { class: "menus" }, ...this.menus.map(({ element }) => element))));
    const chips = h("details", { class: "build", open: true }, h("summary", {}, "Change the network"), h("div", { class: "chipsets" }, ...this.chipSets.values()));
    this.root = h("div", { class: `explorer playground${this.small ? " small" : ""}`, role: "group", "aria-label": "Playground",
      keydown: ({ key }) => key === "Escape" && this.place !== null && this.close() },
      this.small ? null : this.tour,
      this.stage = h("section", { class: "stage" },
        h("div", { class: "maps", role: "group", "aria-label": "Draw" }, panel(a), this.secondPanel, this.differencePanel, a.strip, b.strip),
        h("div", { class: "side-panel" }, chips, this.drawing, this.task, this.spoken)),
      h("div", { class: "footer" }, this.compare.element, h("div", { class: "buttons" },
        this.shared ? copyButton("Copy link", addressNow) : null, this.code.button), this.code.box));
    if (matchMedia("(max-width: 600px)").matches && !this.small) chips.open = false;
    this.focus = a;
  }

  /** Change what is shown: config, second, wave, step. */
  set(changes) {
    const { config = this.config, second = this.second, wave } = changes;
    this.config = config;
    this.second = second && second[1] !== config[second[0]] ? second : null;
    this.visited = null;
    if (wave) this.choose(cellOf(wave));
    if (!("step" in changes) && this.touring) {
      this.step = undefined; // left, but can be taken up
      this.root.classList.remove("betting");
    }
    this.arrange();
  }

  get configOfB() {
    const { config, second: [key, value] } = this;
    return { ...config, [key]: value };
  }

  /** How networks are trained. */
  setOptions(changes) {
    if (Object.keys(changes).some((key) => key !== "delay" && changes[key] !== this.options[key])) this.sides.forEach((side) => side.forget());
    Object.assign(this.options, changes);
    this.pace.delay = this.options.delay;
  }

  /** Have networks of both sides, and show the controls as they are. */
  arrange() {
    const { config, second, sides: [a, b] } = this;
    for (const [name, input] of this.chipInputs) {
      const [key, value] = name.split("=");
      input.checked = `${config[key]}` === value;
    }
    for (const [key, element] of this.chipSets) element.hidden = !matters(config, key);
    this.compare.select.querySelectorAll("option").forEach((option) => {
      const [key, value] = option.value.split("=");
      option.hidden = option.disabled = !!value && (`${config[key]}` === value || !matters(config, key));
    });
    this.compare.select.value = second ? `${second[0]}=${second[1]}` : "";
    this.menus.forEach(({ sync }) => sync());
    this.root.classList.toggle("comparing", !!second);
    this.secondPanel.hidden = this.differencePanel.hidden = b.strip.hidden = !second;
    b.title.textContent = second ? `B: ${changeOf(...second)}` : "";
    this.code.update();
    if (!second && this.focus === b) this.focus = a;
    this.showTour();
    this.drawNetworks();
    if (this.begun && this.shared) saveAddress();
  }

  drawNetworks() {
    const { config, second, visited, options: { seed }, sides: [a, b] } = this;
    a.title.textContent = second ? `A: ${changeOf(second[0], config[second[0]])}` : visited ? `Energies in ${visited.name}` : "Energy of every wave";
    if (this.begun) {
      a.use(canonical(visited?.config ?? config), seed, !!visited);
      if (second) b.use(canonical(this.configOfB), seed);
      else b.end();
    }
    this.show();
  }

  /** More is known of the networks. */
  told() {
    this.show();
    this.settleTour();
  }

  show() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.sides.forEach((side) => side.config && this.showSide(side));
      if (this.second) this.showDifference();
      this.showTask();
      this.lookInside();
    });
  }

  /** All trainings. */
  get fits() {
    return this.sides.flatMap(({ trained }) => [...trained.values()]);
  }

  // Directions: waves of the map, and a picture

  directionOf = (target) => (target === PICTURE ? this.picture.direction : WAVES[target]);

  nameOf = (target) => (target === PICTURE ? this.picture.name : `wave ${inWords(target)}`);

  showPicture(picture) {
    if (picture !== this.picture) {
      for (const { trained } of this.sides) {
        trained.get(PICTURE)?.end();
        trained.delete(PICTURE);
      }
      Object.assign(this, { picture, painted: "", inside: null });
    }
    this.hold(this.sides[0], PICTURE);
  }

  async readPhoto(file) {
    if (!file) return;
    try {
      const { channels: [red, green, blue] } = await readPhoto(file, SIDE);
      this.showPicture(pictureOf("your photo", red.map((x, i) => x + green[i] + blue[i])));
    } catch {
      this.about.textContent = `${file.name} is no image that this browser can read.`;
    }
  }

  choose(target) {
    this.held = this.cursor = target;
    if (target === PICTURE || target === this.chosenWave) return;
    this.otherWave = this.chosenWave;
    this.chosenWave = target;
  }

  /** A direction stays chosen. */
  hold(side, target) {
    this.focus = side;
    this.choose(target);
    this.show();
    if (this.shared) saveAddress();
  }

  /** The cursor moves to a wave; null where the pointer leaves. `stay` if a click or a key chose it. */
  look(side, cell, stay = false) {
    if (!side.config) return;
    if (stay && side.energies) this.spoken.textContent = this.says(side, cell);
    if (stay) return this.hold(side, cell);
    if (cell !== null) this.focus = side;
    this.cursor = cell ?? this.held;
    this.show();
  }

  says(side, target) {
    const fit = side.trained.get(target);
    return `${capital(this.nameOf(target))}: ${side.says(target)}${fit && !fit.running ? ` Trained: ${fit.result}.` : ""}`;
  }

  // What is seen

  marksOf(side) {
    return [...side.trained].filter(([cell, { ended }]) => cell !== PICTURE && !ended).map(([cell, { mark }]) => ({ cell, kind: mark }));
  }

  showSide(side) {
    const { energies, ensemble } = side, found = ensemble.found, cursor = this.cursor === PICTURE ? null : this.cursor;
    side.map.draw((cell) => (energies ? energyColour(side.share(cell)) : COLOURS.magma[0]), this.marksOf(side), cursor,
      energies && cursor !== null ? this.says(side, cursor) : "");
    const certain = found?.nads.filter(({ certainty }) => certainty > CERTAIN).length ?? 0, none = found && found.nads.length < SHOWN;
    const counts = none ? `${found.nads.length} NAD${found.nads.length > 1 ? "s" : ""}; the rest has no energy.` : `${certain} of ${SHOWN} NADs reproducible.`;
    side.note.textContent = found
      ? `${found.networks} of ${ENOUGH} networks. ${found.networks >= ENOUGH || certain ? counts : ""}`
      : ensemble.trouble ? `The networks cannot be drawn: ${ensemble.trouble}.` : "Drawing networks …";
    if (found && found !== side.drawn)
      side.tiles.forEach(({ canvas, text, element }, i) => {
        const { direction, certainty } = found.nads[i] ?? {};
        element.hidden = !direction;
        if (!direction) return;
        paintSigned(canvas, direction, SIDE, `NAD ${i}: ${inWaves(direction)}${certainty > CERTAIN ? "" : "; not reproducible"}`);
        element.title = canvas.getAttribute("aria-label");
        text.textContent = `${i}`;
        element.classList.toggle("unsure", certainty <= CERTAIN);
      });
    side.drawn = found;
    if (found?.networks >= ENOUGH && side.described !== found) {
      side.described = found;
      const order = [...energies.keys()].sort((a, b) => energies[b] - energies[a]);
      side.words.textContent = `The map shows most energy at wave ${inWords(order[0])} and least at ${inWords(order.at(-1))}; ` +
        `${order.filter((cell) => side.promises(cell)).length} of ${PIXELS} waves have at least ${percent(PROMISING)} of the largest. ${counts}`;
    }
  }

  showDifference() {
    const [a, b] = this.sides, ready = a.energies && b.energies;
    const ratio = (cell) => Math.log(Math.max(b.share(cell), 1e-3) / Math.max(a.share(cell), 1e-3)) / Math.log(4);
    const cursor = this.cursor === PICTURE ? null : this.cursor;
    this.difference.draw((cell) => COLOURS.diverging[ready ? Math.round(127.5 + 127.5 * clamp(ratio(cell), -1, 1)) : 127], [], cursor,
      ready && cursor !== null ? `${this.nameOf(cursor)}: ${times(a.share(cursor))} in A, ${times(b.share(cursor))} in B` : "");
  }

  /** The direction under the cursor, and its training. */
  showTask() {
    const { cursor, focus, options: { noise } } = this, direction = this.directionOf(cursor), { energies } = focus;
    if (this.painted !== `${this.nameOf(cursor)} ${noise}`) {
      this.painted = `${this.nameOf(cursor)} ${noise}`;
      this.cloud ??= gaussians(keyOf(1, 99), PIXELS);
      const along = dot(this.cloud, direction), image = direction.map((v, i) => v + noise * (this.cloud[i] - along * v));
      paintSigned(this.wave.canvas, direction, SIDE, this.nameOf(cursor), cursor === PICTURE ? undefined : 0.1);
      paintSigned(this.example.canvas, image, SIDE, `${this.nameOf(cursor)} in noise`);
      this.wave.text.textContent = this.nameOf(cursor);
      this.example.text.textContent = "in noise";
    }
    this.about.textContent = energies ? `${this.second ? `In ${focus.letter.toUpperCase()}: ` : ""}${focus.says(cursor)}` : "";
    const { fits } = this, busy = fits.some(({ running }) => running);
    this.showCurve(focus.trained.get(cursor) ?? focus.trained.get(this.held));
    this.stopButton.disabled = this.pauseButton.disabled = !busy;
    this.pauseButton.textContent = this.pace.paused ? "Go on" : "Pause";
    this.trainButton.disabled = this.stepButton.disabled = !energies;
    this.trainButton.textContent = `Train on ${this.nameOf(this.held)}`;
    this.moreButton.disabled = !energies || busy;
    const right = fits.filter(({ running, ended, side }) => !running && !ended && side.energies)
      .flatMap(({ verdicts, side, target }) => verdicts.map((learned) => learned === side.promises(target)));
    this.score.textContent = right.length ? `The ${percent(PROMISING)} rule predicted ${right.filter(Boolean).length} of ${right.length} trainings correctly.` : "";
  }

  showCurve(fit) {
    const wanted = this.options.epochs, epochs = fit?.epochs ?? epochsOf(this.focus.config ?? this.config, wanted), short = epochs < wanted;
    const x = (epoch) => 34 + (epoch / epochs) * 170, y = (accuracy) => 78 - 112 * (clamp(accuracy, 0.5, 1) - 0.5);
    const lines = (fit?.runs ?? []).map(({ accuracies }) => h("svg:polyline", {
      points: accuracies.map((accuracy, epoch) => `${x(epoch).toFixed(1)},${y(accuracy).toFixed(1)}`).join(" ") }));
    this.chart.replaceChildren(
      h("svg:text", { x: 34, y: 9 }, "Accuracy on new images"),
      ...[0.5, 0.75, 1].flatMap((value) => [
        h("svg:line", { class: "grid", x1: 34, x2: 204, y1: y(value), y2: y(value) }),
        h("svg:text", { x: 30, y: y(value) + 4, "text-anchor": "end" }, percent(value))]),
      h("svg:text", { x: 34, y: 92 }, "0"), h("svg:text", { x: 204, y: 92, "text-anchor": "end" }, short ? `${epochs} of ${wanted} epochs` : `${epochs} epochs`),
      ...lines, ...(fit?.epoch ? [h("svg:text", { class: "end", x: x(fit.epoch) + 5, y: y(fit.accuracy) + 4 }, lines.length > 1 ? `${fit.learned} of ${lines.length}` : percent(fit.accuracy))] : []));
    const cut = short ? " The network is large, so its training is shortened." : "";
    const result = fit ? `${capital(this.nameOf(fit.target))}, epoch ${fit.epoch} of ${epochs}: ${fit.result}.` : "";
    this.status.textContent = (result || (this.touring ? "" : "Choose a wave on the map, and train a network to distinguish its two signs.")) + cut;
    this.chart.setAttribute("aria-label", result || "No training yet");
  }

  // The layers

  /** Ask what the layers leave of the chosen direction, and draw the network. */
  lookInside() {
    const { focus, held } = this, { energies, config, ensemble } = focus;
    const betting = this.root.classList.contains("betting"), ready = energies && !betting && (ensemble.found.networks >= ENOUGH || this.inside?.key.startsWith(toText(config)));
    const key = ready ? [toText(config), ensemble.seed, this.nameOf(held), focus.strongest].join() : "";
    if (ready && this.inside?.key !== key) {
      if (this.inside?.job) this.pool.stop(this.inside.job);
      const inside = (this.inside = { key, found: null });
      const directions = [this.directionOf(held), WAVES[focus.strongest]];
      inside.job = this.pool.run({ kind: "look", config, seed: ensemble.seed, directions }, { priority: 1 });
      inside.job.done.then((found) => {
        Object.assign(inside, { found, job: null });
        this.show();
      });
    }
    const { inside, place, opener, visited } = this, found = inside?.key === key ? inside.found : null, drawn = [toText(config ?? this.config), key, !!found, place, betting].join();
    for (const link of this.verdict.querySelectorAll(".words")) link.setAttribute("aria-expanded", `${place !== null && link === opener}`);
    if (this.drawn === drawn) return;
    this.drawn = drawn;
    this.stage.style.minHeight = place === null ? "" : `${this.stage.offsetHeight}px`; // the page below stays where it is
    const focused = this.host.shadowRoot.activeElement?.dataset?.place;
    const name = this.nameOf(held), strongest = ready ? `wave ${inWords(focus.strongest)}` : "";
    const output = found ? Math.sqrt(focus.share(held)) : 0, left = found ? [...sharesOf(found), output] : [];
    const last = networkPicture(config ?? this.config, { left, chosen: place, choose: betting ? null : (one) => (one === place ? this.close() : this.inspect(one, null, visited)),
      words: `of the amplitude of ${name} left, relative to ${strongest}` });
    this.drawing.replaceChildren(last, h("p", { class: "count" }, found
      ? `Amplitude of ${name} that is left, relative to ${strongest}, the strongest; its square at the output is the energy.${
        Math.max(...left) > 1.005 ? " Above 100\u00a0%: sampling error." : ""} Choose a layer to see how.` : "\u00a0"));
    if (focused !== undefined) this.drawing.querySelector(`[data-place="${focused}"]`)?.focus();
    this.root.classList.toggle("looking", place !== null);
    this.layer.hidden = place === null;
    if (place === null) return;
    this.bothButton.hidden = this.otherWave === null;
    if (this.otherWave !== null) this.bothButton.textContent = `Waves ${inWords(this.chosenWave)} and ${inWords(this.otherWave)}`;
    this.layer.replaceChildren(h("div", { class: "buttons" }, h("p", { class: "network" }, `What is left of ${name}${visited ? ` in ${visited.name}` : ""} `, h("span", { class: "count" }, "random weights; red and blue: opposite signs")),
      this.pictures, h("button", { click: () => this.close() }, "Close")),
    ...(found ? layerRows(config, found, place, this.directionOf(held), { name, seed: ensemble.seed, wave: held === PICTURE ? null : waveAt(held), output }) : [h("p", {}, "Computing …")]));
  }

  /** Show what a place of the drawing does; null for none. `opener` is the link that asked, and `visited` the network if it is another. */
  inspect(place, opener = null, visited = null) {
    Object.assign(this, { place, opener, visited });
    this.drawNetworks();
  }

  /** Return from a layer to what opened it. */
  close() {
    const { opener, place } = this;
    this.choose(this.chosenWave);
    this.inspect(null);
    (opener?.isConnected ? opener : this.drawing.querySelector(`[data-place="${place}"]`))?.focus();
  }

  // Trainings

  /** Train networks of a side along a direction. */
  train(side, target) {
    if (!side.config || !side.energies) return null;
    this.inspect(null);
    const known = side.trained.get(target), fit = known && !known.ended ? known : this.fit(side, target);
    if (this.pace.paused && fit.epoch) this.pause(false);
    this.hold(side, target);
    return fit.done;
  }

  fit(side, target) {
    const { pool: workers, pace, options: { epochs, rate, noise, seed, networks } } = this;
    const fit = new Fit({ target, side, wave: this.directionOf(target), recipe: { epochs: epochsOf(side.config, epochs), rate, noise, seed }, networks, pool: workers, pace, tell: () => this.show() });
    side.trained.set(target, fit);
    if (!this.touring) this.spoken.textContent = `Training on ${this.nameOf(target)} …`;
    fit.done.then(() => {
      if (this.shared) saveAddress();
      this.showTask();
      if (!this.touring && this.fits.includes(fit) && !this.fits.some(({ running }) => running)) this.spoken.textContent = `${this.status.textContent} ${this.score.textContent}`;
      this.show();
      this.settleTour();
    });
    return fit;
  }

  /** Train on a sample of waves: half of them predicted to be learned, as far as there are any. */
  trainMore() {
    const side = this.focus, key = keyOf(1, 98, side.trained.size);
    const free = [...Array(PIXELS).keys()].filter((cell) => !side.trained.has(cell)).sort((a, b) => bits(key, a) - bits(key, b));
    const promising = free.filter((cell) => side.promises(cell)), others = free.filter((cell) => !promising.includes(cell));
    const half = Math.min(MORE / 2, others.length), chosen = [...promising.slice(0, MORE - half), ...others].slice(0, MORE);
    chosen.forEach((cell) => this.fit(side, cell));
    this.hold(side, chosen[0]);
  }

  pause(paused) {
    this.pace.pause(paused);
    this.show();
  }

  /** One epoch, then pause. */
  stepOnce() {
    this.pace.pause(true);
    if (this.focus.trained.get(this.held)?.running) this.pace.step();
    else this.fit(this.focus, this.held);
    this.show();
  }

  stop() {
    this.fits.forEach((fit) => fit.end());
    this.pause(false);
  }

  // The tour

  get touring() {
    return typeof this.step === "number";
  }

  showTour() {
    const focused = this.tour.contains(this.host.shadowRoot.activeElement);
    this.fillTour();
    if (focused) this.tour.focus({ preventScroll: true }); // the focused button was replaced
  }

  fillTour() {
    const { step, bet } = this;
    this.root.classList.toggle("touring", this.touring);
    if (!this.touring) {
      this.tour.setAttribute("aria-label", "Guided tour");
      this.tour.replaceChildren(h("div", { class: "buttons" },
        h("p", { class: "lead" }, "Build a network, see which waves its random weights prefer, then train it."),
        h("button", { class: step === null ? "main" : "", click: () => this.goTo(this.left ?? 0) }, step === null ? "Guided: five bets" : "Back to the bets")));
      return;
    }
    this.left = step;
    const { title, question, answers } = STEPS[step], next = step + 1 < STEPS.length;
    this.tour.setAttribute("aria-label", `Bet ${step + 1} of ${STEPS.length}: ${title}. ${bet === null ? question : ""}`); // spoken with the focus
    const button = (text, act, main) => h("button", { class: main ? "main" : "", click: act }, text);
    this.tour.replaceChildren(
      h("div", { class: "buttons" }, h("h3", {}, h("span", { class: "count" }, `${step + 1} of ${STEPS.length}`), h("span", { class: "title" }, title)),
        step ? button("Back", () => this.goTo(step - 1)) : "",
        button(this.outcome && !next ? "To the playground" : "Leave", () => this.leave()),
        next ? button(this.outcome ? "Next bet" : "Skip", () => this.goTo(step + 1), this.outcome) : ""),
      ...(this.outcome ? [] : [h("p", {}, question), h("div", { class: "chips", role: "group", "aria-label": "Your bet" }, ...answers.map((text, i) =>
        h("button", { class: "chip", "aria-pressed": `${bet === i}`, disabled: bet !== null, click: () => this.placeBet(i) }, text)))]),
      this.verdict);
    if (!this.outcome) this.verdict.textContent = bet === null ? "" : "Drawing and training …";
  }

  goTo(step) {
    Object.assign(this, { step, bet: null, outcome: null, place: null });
    this.setOptions(START);
    this.root.classList.add("betting"); // the map stays covered until the bet is placed
    this.turnTo(null);
    requestAnimationFrame(() => this.host.scrollIntoView({ block: "start", behavior: "instant" }));
  }

  /** Show what the step is about. */
  turnTo(second) {
    const { step } = this, { config, wave } = STEPS[step];
    this.set({ config, second, wave, step });
  }

  leave() {
    this.place = null;
    this.set({});
  }

  placeBet(bet) {
    this.bet = bet;
    this.root.classList.remove("betting");
    this.turnTo(STEPS[this.step].second ?? null);
    this.settleTour();
  }

  /** Say what came out, once the networks of the step are drawn and trained. */
  settleTour() {
    if (this.bet === null || this.outcome || !this.touring) return;
    const { wave, trained, second, right, outcome } = STEPS[this.step], cell = cellOf(wave), [a, b] = this.sides;
    const done = (side) => side.ensemble?.found?.networks >= ENOUGH;
    if (!done(a) || (second && !done(b))) return;
    if (trained && !a.trained.has(cell)) return void this.train(a, cell);
    const result = a.trained.get(cell);
    if (result?.running || result?.ended) return;
    const [text, ...links] = outcome({ energies: a.energies, second: b.energies, result });
    this.verdict.replaceChildren(`You ${this.bet === right ? "win" : "lose"}. ${text}`, links.length ? h("span", { class: "links" }, " Look: ", ...links.map((link) => this.link(link))) : "");
    this.outcome = this.verdict.textContent;
    this.showTour();
  }

  /** Words of the tour that act on the figure. */
  link([text, place, visited = null]) {
    return h("button", { class: "words", click: ({ currentTarget }) => {
      if (currentTarget === this.opener) return this.close();
      this.choose(cellOf(STEPS[this.step].wave));
      this.inspect(place, currentTarget, visited);
    } }, text);
  }

  // What a reader takes along

  describe(address) {
    if (!this.shared) return;
    const { config, second, step, options, sides: [a, b], start, held } = this;
    if (this.touring) return address.set("playground.bet", `${step + 1}`);
    const text = toText(config), cells = (side) => [...side.trained].filter(([cell, { ended }]) => cell !== PICTURE && !ended).map(([cell]) => cell);
    if (text !== toText(start.config)) address.set("playground.network", text);
    if (second) address.set("playground.against", second.join("-"));
    for (const key of Object.keys(START)) if (options[key] !== START[key]) address.set(`playground.${key}`, options[key]);
    if (held !== cellOf(start.wave) && held !== PICTURE) address.set("playground.wave", waveAt(held).join(","));
    for (const side of [a, b]) if (cells(side).length) address.set(`playground.trained-${side.letter}`, cells(side).map((cell) => waveAt(cell).join(",")).join(";"));
  }

  /** Show what the address describes, as far as it makes sense. */
  restore() {
    const address = parameters(), get = (name) => address.get(`playground.${name}`);
    if (![...address.keys()].some((key) => key.startsWith("playground."))) return;
    const cells = (text) => (text ?? "").split(";").map((wave) => wave.split(",").map(Number))
      .filter((wave) => wave.length === 2 && wave.every((k) => Number.isInteger(k) && k >= -SIDE / 2 && k < SIDE / 2));
    const [wave = this.start.wave] = cells(get("wave")), [key, value] = (get("against") ?? "").split("-");
    const step = Number(get("bet")) - 1;
    if (STEPS[step] && step !== this.step) return this.goTo(step);
    if (STEPS[step]) return;
    const other = CHOICES[key]?.find((one) => `${one}` === value);
    this.setOptions(Object.fromEntries(Object.entries(OPTIONS).map(([name, [, values]]) => [name, values.find((one) => `${one}` === get(name)) ?? START[name]])));
    this.set({ config: fromText(get("network")) ?? this.start.config, second: other === undefined ? null : [key, other], wave });
    for (const side of this.sides)
      for (const one of cells(get(`trained-${side.letter}`)))
        if (side.config && !side.trained.has(cellOf(one))) this.fit(side, cellOf(one));
    this.focus = this.sides.find(({ trained }) => trained.has(this.held)) ?? this.sides[0];
    this.show();
  }
}

class NadPlayground extends HTMLElement {
  connectedCallback() {
    this.figure ??= new Playground(this, JSON.parse(this.getAttribute("config") || "{}"));
  }

  describe(address) {
    this.figure?.describe(address);
  }
}

define("nad-playground", NadPlayground);
