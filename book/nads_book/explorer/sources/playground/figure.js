// The playground: build a network, see what its random weights prefer, then train it

import STYLE from "../explorer.css";
import PLAYGROUND from "./playground.css";
import { addressNow, parameters, saveAddress } from "../address.js";
import { COLOURS } from "../colours.js";
import { menuOf } from "../controls.js";
import { h, paintSigned, picture } from "../drawing.js";
import { whenNear } from "../load.js";
import { clamp, dot } from "../numbers.js";
import { energyColour, energyScale } from "../scales.js";
import { copyButton, download } from "../share.js";
import { followTheme } from "../theme.js";
import { CHOICES, PIXELS, SIDE } from "./engine.js";
import { ENOUGH, Ensemble } from "./ensemble.js";
import { WaveMap } from "./map.js";
import { networkPicture } from "./picture.js";
import { pool } from "./pool.js";
import { bits, gaussians, keyOf } from "./random.js";
import { waveOf } from "./solve.js";
import { DEFAULT, TITLES, cellOf, changeOf, fromText, inWords, nameOf, python, toText, waveAt } from "./state.js";
import { STEPS } from "./tour.js";
import { RECIPE, epochsOf } from "./train.js";

const SHOWN = 8; // NADs
const CERTAIN = 0.5; // squared cosine above which a NAD counts as reproducible
const PROMISING = 0.01; // share of the largest energy above which a wave should be learned
const LEARNED = 0.75; // accuracy above which it was
const MORE = 6; // waves of a sample
const SEED = 1;

const percent = (x) => `${(100 * x).toFixed(0)} %`;
/** A share in per cent, with two digits where it is small: the limit of the prediction is 1 %. */
const times = (x) => (x >= 0.0995 ? percent(x) : x >= 0.0005 ? `${+(100 * x).toPrecision(2)}\u00a0%` : "less than 0.1\u00a0%");

const figures = new Map(); // figure -> whether it is seen

/** What is known of one architecture. */
class Side {
  trained = new Map(); // cell -> {epoch, loss, accuracy, curve, job, promising}
  tiles = Array.from({ length: SHOWN }, () => picture(""));

  constructor(figure, letter) {
    Object.assign(this, { figure, letter });
    this.map = new WaveMap({ label: `Energies of all waves, network ${letter.toUpperCase()}`,
      look: (cell, stay) => figure.look(this, cell, stay), choose: (cell) => figure.train(this, cell) });
    this.title = h("p", { class: `network ${letter}` });
    this.note = h("p", { class: "count" });
    this.strip = h("div", { class: `first ${letter}`, role: "group" }, h("p", { class: "count" }, "First NADs: what random networks respond to most"),
      h("div", { class: "nads" }, ...this.tiles.map(({ element }) => element)));
    this.words = h("p", { class: "sr" });
  }

  /** Draw networks of another architecture; what was trained belongs to the old one. */
  use(config) {
    if (this.config && toText(config) === toText(this.config)) return;
    this.end();
    this.trained = new Map();
    this.config = config;
    this.ensemble = new Ensemble(config, this.figure.pool, () => this.figure.told(this));
    this.ensemble.go();
  }

  end() {
    this.ensemble?.end();
    for (const { job } of this.trained.values()) if (job) this.figure.pool.stop(job);
    this.config = null;
  }

  get energies() {
    return this.ensemble?.found?.energies;
  }

  get most() {
    return Math.max(...this.energies);
  }

  share(cell) {
    return Math.max(this.energies[cell], 0) / this.most;
  }

  /** Whether the energy predicts that a wave will be learned. */
  promises(cell) {
    return this.share(cell) > PROMISING;
  }
}

export class Playground {
  cursor = cellOf([4, 4]);
  held = this.cursor; // where the cursor returns to
  second = null; // [chip, value] in which B differs
  step = null; // of the tour
  bet = null;

  constructor(host, { config, second = null, chips = Object.keys(CHOICES), wave = [4, 4], small = false, shared = false, workers = null }) {
    Object.assign(this, { host, start: { config: { ...DEFAULT, ...config }, second, wave }, chips, small, shared, pool: pool(workers) });
    this.sides = ["a", "b"].map((letter) => new Side(this, letter));
    this.difference = new WaveMap({ label: "Where B has more energy than A, and where less",
      look: (cell, stay) => this.look(this.sides[1], cell, stay), choose: (cell) => this.train(this.sides[1], cell) });
    this.build();
    host.attachShadow({ mode: "open" }).replaceChildren(h("style", {}, STYLE + PLAYGROUND), this.root);
    followTheme(host, this.root);
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
    const chips = this.chips.map((key) => h("fieldset", { class: "chipset" }, h("legend", {}, TITLES[key]),
      h("div", { class: "options" }, ...CHOICES[key].map((value) => {
        const input = h("input", { type: "radio", name: `${group}-${key}`, change: () => this.set({ config: { ...this.config, [key]: value } }) });
        this.chipInputs.set(`${key}=${value}`, input);
        return h("label", { class: "option" }, input, h("span", {}, nameOf(key, value)));
      }))));
    this.drawing = h("div", { class: "drawing", tabindex: 0, role: "group", "aria-label": "The network" });
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
    this.status = h("p", { class: "status", "aria-live": "polite" });
    this.score = h("p", { class: "score", "aria-live": "polite" });
    this.chart = h("svg:svg", { class: "curve", viewBox: "0 0 276 92", role: "img", "aria-label": "No training yet" });
    this.trainButton = h("button", { class: "main", click: () => this.train(this.focus, this.held) }, "Train on this wave");
    this.moreButton = h("button", { click: () => this.trainMore() }, "Train six more");
    this.stopButton = h("button", { click: () => this.stop() }, "Stop");
    const code = h("code"), box = h("div", { class: "python", hidden: true },
      h("pre", { tabindex: 0, role: "region", "aria-label": "This network in Python" }, code), copyButton("Copy", () => code.textContent));
    this.writeCode = () => {
      const { config, second } = this;
      code.textContent = python(config, ...(second ? [{ ...config, [second[0]]: second[1] }] : []));
    };
    const show = h("button", { "aria-expanded": "false", click: () => {
      box.hidden = !box.hidden;
      show.setAttribute("aria-expanded", `${!box.hidden}`);
      show.textContent = box.hidden ? "Show the Python" : "Hide the Python";
    } }, "Show the Python");
    const panel = (side) => h("div", { class: `side ${side.letter}` }, side.title, side.map.element,
      h("div", { class: "under" }, energyScale(), side.note), side.words);
    this.differencePanel = h("div", { class: "side difference" }, h("p", { class: "network" }, "Relative energy, B / A"), this.difference.element,
      h("div", { class: "under" },
      h("p", { class: "scale" }, h("span", {}, "¼"), h("span", { class: "bar diverging" }), h("span", {}, "4"))));
    this.secondPanel = panel(b);
    this.root = h("div", { class: `explorer playground${this.small ? " small" : ""}`, role: "group", "aria-label": "Playground" },
      this.small ? null : this.tour,
      h("section", { "aria-label": "Build" }, h("div", { class: "chipsets" }, ...chips), this.small ? null : this.drawing),
      h("section", { class: "maps", "aria-label": "Draw" }, panel(a), this.secondPanel, this.differencePanel, a.strip, b.strip,
        h("div", { class: "train" },
          h("div", { class: "task" }, this.wave.element, this.example.element, h("div", {}, this.about)),
          h("div", { class: "buttons" }, this.trainButton, this.moreButton, this.stopButton),
          this.chart, this.status, this.score)),
      h("div", { class: "footer" }, this.compare.element, h("div", { class: "buttons" },
        this.shared ? copyButton("Copy link", addressNow) : null,
        this.small ? null : h("button", { class: "save", click: () => this.savePicture() }, "Save picture"), show), box));
    for (const { strip, letter } of this.sides) strip.setAttribute("aria-label", `First NADs of ${letter.toUpperCase()}`);
    this.focus = a;
  }

  /** Change what is shown: config, second, wave, step. */
  set(changes) {
    const { config = this.config, second = this.second, wave } = changes;
    this.config = config;
    this.second = second && second[1] !== config[second[0]] ? second : null;
    if (wave) this.held = this.cursor = cellOf(wave);
    if (!("step" in changes) && typeof this.step === "number") {
      this.step = undefined; // left, but can be taken up
      this.root.classList.remove("betting");
    }
    this.arrange();
  }

  /** Have networks of both sides, and show the controls as they are. */
  arrange() {
    const { config, second, sides: [a, b] } = this;
    for (const [name, input] of this.chipInputs) {
      const [key, value] = name.split("=");
      input.checked = `${config[key]}` === value;
    }
    this.compare.select.querySelectorAll("option").forEach((option) => {
      const [key, value] = option.value.split("=");
      option.hidden = option.disabled = !!value && `${config[key]}` === value;
    });
    this.compare.select.value = second ? `${second[0]}=${second[1]}` : "";
    this.drawing.replaceChildren(networkPicture(config));
    this.root.classList.toggle("comparing", !!second);
    this.secondPanel.hidden = this.differencePanel.hidden = b.strip.hidden = !second;
    a.title.textContent = second ? `A: ${changeOf(second[0], config[second[0]])}` : "Energy of every wave";
    b.title.textContent = second ? `B: ${changeOf(...second)}` : "";
    this.writeCode();
    if (!second && this.focus === b) this.focus = a;
    this.showTour();
    if (!this.begun) return this.show();
    a.use(config);
    if (second) b.use({ ...config, [second[0]]: second[1] });
    else b.end();
    this.show();
    if (this.shared) saveAddress();
  }

  /** More is known of the networks of a side. */
  told(side) {
    this.show();
    if (!side.energies) return;
    if (side === this.sides[0] && side.ensemble.found.networks <= 16) performance.mark("nad-playground:picture");
    if (side.ensemble.found.networks >= ENOUGH) this.settleTour();
  }

  show() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      performance.mark("nad-playground:frame");
      this.sides.forEach((side) => side.config && this.showSide(side));
      if (this.second) this.showDifference();
      this.showTask();
      performance.measure("nad-playground:frame", "nad-playground:frame");
    });
  }

  marksOf(side) {
    return [...side.trained].map(([cell, { job, accuracy }]) =>
      ({ cell, kind: job ? "running" : accuracy > LEARNED ? "learned" : "missed" }));
  }

  showSide(side) {
    const { energies, ensemble } = side, cursor = this.cursor, found = ensemble.found;
    const empty = COLOURS.magma[0];
    side.map.draw((cell) => (energies ? energyColour(side.share(cell)) : empty), this.marksOf(side), cursor);
    const certain = found?.nads.filter(({ agreement }) => agreement > CERTAIN).length ?? 0;
    side.note.textContent = found
      ? `${found.networks} of ${ENOUGH} networks. ${certain} of ${SHOWN} NADs reproducible.`
      : ensemble.trouble ? `The networks cannot be drawn: ${ensemble.trouble}.` : "Drawing networks …";
    if (found && found !== side.drawn)
      found.nads.forEach(({ direction, agreement }, i) => {
        const known = agreement > CERTAIN, { canvas, text, element } = side.tiles[i];
        paintSigned(canvas, direction, SIDE, `NAD ${i}${known ? "" : ", not yet reproducible"}`);
        text.textContent = `${i}`;
        element.classList.toggle("unsure", !known);
      });
    side.drawn = found;
    if (found?.networks >= ENOUGH && side.described !== found) {
      side.described = found;
      const order = [...energies.keys()].sort((a, b) => energies[b] - energies[a]);
      side.words.textContent = `The map shows most energy at wave ${inWords(order[0])} and least at ${inWords(order.at(-1))}; ` +
        `${order.filter((cell) => side.promises(cell)).length} of ${PIXELS} waves have at least ${percent(PROMISING)} of the largest. ` +
        `${certain} of the first ${SHOWN} NADs are reproducible.`;
    }
  }

  showDifference() {
    const [a, b] = this.sides, ready = a.energies && b.energies;
    const ratio = (cell) => Math.log(Math.max(b.share(cell), 1e-3) / Math.max(a.share(cell), 1e-3)) / Math.log(4);
    this.difference.draw((cell) => COLOURS.diverging[ready ? Math.round(127.5 + 127.5 * clamp(ratio(cell), -1, 1)) : 127], [], this.cursor);
  }

  /** The wave under the cursor, and its training. */
  showTask() {
    const { cursor, focus } = this, wave = waveOf(waveAt(cursor));
    if (this.painted !== cursor) {
      this.painted = cursor;
      this.noise ??= gaussians(keyOf(SEED, 99), PIXELS);
      const along = dot(this.noise, wave), image = wave.map((v, i) => v + RECIPE.noise * (this.noise[i] - along * v));
      paintSigned(this.wave.canvas, wave, SIDE, `Wave ${inWords(cursor)}`);
      paintSigned(this.example.canvas, image, SIDE, "The wave in noise");
      this.wave.text.textContent = `wave ${inWords(cursor)}`;
      this.example.text.textContent = "in noise";
    }
    const letter = this.second ? ` in ${focus.letter.toUpperCase()}` : "", { energies } = focus;
    this.about.textContent = energies
      ? `Energy${letter}: ${times(focus.share(cursor))} of the largest. Prediction: ${focus.promises(cursor) ? "learned" : "not learned"}.`
      : "";
    const training = focus.trained.get(cursor) ?? focus.trained.get(this.held);
    this.showCurve(training);
    const busy = this.sides.some(({ trained }) => [...trained.values()].some(({ job }) => job));
    this.stopButton.disabled = !busy;
    this.trainButton.disabled = !energies;
    this.moreButton.disabled = !energies || busy;
    const done = this.sides.flatMap(({ trained }) => [...trained.values()].filter(({ job }) => !job));
    const right = done.filter(({ accuracy, side, cell }) => side.energies && accuracy > LEARNED === side.promises(cell)).length;
    this.score.textContent = done.length ? `The energy predicted ${right} of ${done.length} correctly.` : "";
  }

  showCurve(training) {
    const curve = training?.curve ?? [], epochs = epochsOf(this.focus.config ?? this.config);
    const x = (epoch) => 34 + (epoch / epochs) * 180, y = (share) => 74 - 62 * share;
    const line = (name, value) => h("svg:polyline", { class: name,
      points: curve.map((one) => `${x(one.epoch).toFixed(1)},${y(value(one)).toFixed(1)}`).join(" ") });
    const end = curve.at(-1);
    const label = (name, text, share) => h("svg:text", { class: name, x: x(end.epoch) + 5, y: y(share) + 4 }, text);
    const close = end && Math.abs(2 * end.accuracy - 1 - end.loss / 0.8) < 0.2;
    this.chart.replaceChildren(
      ...[[0, "50 %"], [1, "100 %"]].flatMap(([share, text]) => [
        h("svg:line", { class: "grid", x1: 34, x2: 214, y1: y(share), y2: y(share) }),
        h("svg:text", { x: 30, y: y(share) + 4, "text-anchor": "end" }, text)]),
      h("svg:text", { x: 34, y: 89 }, "0"), h("svg:text", { x: 214, y: 89, "text-anchor": "end" }, `${epochs} epochs`),
      ...(end ? [line("loss", ({ loss }) => clamp(loss / 0.8, 0, 1)), line("accuracy", ({ accuracy }) => clamp(2 * accuracy - 1, 0, 1)),
        label("accuracy", "accuracy", clamp(2 * end.accuracy - 1, 0, 1)),
        label("loss", "loss", close ? clamp(2 * end.accuracy - 1, 0, 1) + (end.accuracy > 0.75 ? -0.2 : 0.2) : clamp(end.loss / 0.8, 0, 1))] : []));
    this.chart.setAttribute("aria-label", end ? `Accuracy on new images ${percent(end.accuracy)} after ${end.epoch} of ${epochs} epochs, loss ${end.loss.toFixed(2)}` : "No training yet");
    if (training) this.status.textContent = training.job
      ? `Training on ${inWords(training.cell)}: ${percent(training.accuracy)} on new images, epoch ${training.epoch} of ${epochs}.`
      : `Wave ${inWords(training.cell)}: ${percent(training.accuracy)} on new images, ${training.accuracy > LEARNED ? "learned" : "not learned"}.`;
    else this.status.textContent = "Choose a wave on the map to train a network on it.";
  }

  /** The cursor moves to a wave; null where the pointer leaves. `stay` if it was moved by the keyboard. */
  look(side, cell, stay = false) {
    if (cell !== null && side.config) this.focus = side;
    if (stay) this.held = cell;
    this.cursor = cell ?? this.held;
    this.show();
  }

  /** Train one network of a side on a wave. */
  train(side, cell) {
    if (!side.config) return null;
    Object.assign(this, { focus: side, held: cell, cursor: cell });
    const known = side.trained.get(cell);
    const done = known ? known.job?.done ?? Promise.resolve() : this.fit(side, cell);
    this.show();
    if (this.shared) saveAddress();
    return done;
  }

  fit(side, cell) {
    const training = { cell, epoch: 0, loss: Math.LN2, accuracy: 0.5, curve: [], side };
    const { config, trained } = side, wave = waveOf(waveAt(cell));
    const progress = (state) => {
      Object.assign(training, state);
      training.curve.push(state);
      this.show();
    };
    training.job = this.pool.run({ kind: "train", config, wave, seed: SEED }, { priority: 2, progress });
    trained.set(cell, training);
    return training.job.done.then((result) => {
      training.job = null;
      if (!result) trained.delete(cell); // it was stopped
      if (!result && this.shared) saveAddress();
      this.show();
      this.settleTour();
    });
  }

  /** Train on a sample of waves: half of them predicted to be learned, as far as there are any. */
  trainMore() {
    const side = this.focus, key = keyOf(SEED, 98, side.trained.size);
    const free = [...Array(PIXELS).keys()].filter((cell) => !side.trained.has(cell)).sort((a, b) => bits(key, a) - bits(key, b));
    const promising = free.filter((cell) => side.promises(cell)), others = free.filter((cell) => !promising.includes(cell));
    const half = Math.min(MORE / 2, others.length), chosen = [...promising.slice(0, MORE - half), ...others].slice(0, MORE);
    chosen.forEach((cell) => this.fit(side, cell));
    this.held = this.cursor = chosen[0];
    this.show();
    if (this.shared) saveAddress();
  }

  stop() {
    for (const { trained } of this.sides) for (const { job } of trained.values()) if (job) this.pool.stop(job);
  }

  // The tour

  showTour() {
    const { step, bet } = this, focused = this.tour.contains(this.host.shadowRoot.activeElement);
    this.fillTour(step, bet);
    if (focused) this.tour.focus({ preventScroll: true }); // the focused button was replaced
  }

  fillTour(step, bet) {
    this.tour.classList.toggle("on", typeof step === "number");
    if (step === null || step === undefined) {
      this.tour.replaceChildren(h("div", { class: "buttons" },
        h("p", {}, "Build a network, see which waves its random weights prefer, then train it."),
        h("button", { class: step === null ? "main" : "", click: () => this.goTo(this.left ?? 0) }, step === null ? "Guided: five bets" : "Back to the bets")));
      return;
    }
    this.left = step;
    const { title, question, answers, right } = STEPS[step];
    this.tour.replaceChildren(
      h("h3", {}, h("span", { class: "count" }, `${step + 1} of ${STEPS.length}`), title), h("p", {}, question),
      h("div", { class: "chips", role: "group", "aria-label": "Your bet" }, ...answers.map((text, i) => h("button", {
        class: `chip${bet !== null && this.outcome ? (i === right ? " right" : i === bet ? " wrong" : "") : ""}`,
        "aria-pressed": `${bet === i}`, disabled: bet !== null, click: () => this.place(i) }, text))),
      this.verdict,
      h("div", { class: "buttons" },
        step + 1 < STEPS.length ? h("button", { class: this.outcome ? "main" : "", click: () => this.goTo(step + 1) }, this.outcome ? "Next bet" : "Skip this one") : null,
        step ? h("button", { click: () => this.goTo(step - 1) }, "Back") : null,
        h("button", { click: () => this.leave() }, this.outcome && step + 1 === STEPS.length ? "To the playground" : "Leave the tour")));
    this.verdict.textContent = this.outcome ?? (bet === null ? "" : "Drawing and training …");
  }

  goTo(step) {
    Object.assign(this, { step, bet: null, outcome: null });
    this.root.classList.add("betting"); // the map stays covered until the bet is placed
    const { config, wave = [4, 4] } = STEPS[step];
    this.set({ config, second: null, wave, step });
  }

  leave() {
    this.root.classList.remove("betting");
    this.step = undefined;
    this.arrange();
  }

  place(bet) {
    this.bet = bet;
    this.root.classList.remove("betting");
    const { second = null } = STEPS[this.step];
    this.set({ second, step: this.step });
    this.settleTour();
  }

  /** Say what came out, once the networks of the step are drawn and trained. */
  settleTour() {
    if (this.bet === null || this.outcome || typeof this.step !== "number") return;
    const { cell, second, right, outcome } = STEPS[this.step], [a, b] = this.sides;
    const done = (side) => side.ensemble?.found?.networks >= ENOUGH;
    if (!done(a) || (second && !done(b))) return;
    if (cell !== undefined && !a.trained.has(cell)) return void this.train(a, cell);
    const result = a.trained.get(cell);
    if (result?.job) return;
    this.outcome = `${this.bet === right ? "You win the bet. " : "You lose the bet. "}${outcome({ energies: a.energies, second: b.energies, result })}`;
    this.showTour();
  }

  // What a reader takes along

  describe(address) {
    if (!this.shared) return;
    const { config, second, step, sides: [a, b], start, held } = this;
    if (typeof step === "number") return address.set("playground.bet", `${step + 1}`);
    const text = toText(config), trained = (side) => [...side.trained.keys()].map((cell) => waveAt(cell).join(",")).join(";");
    if (text !== toText(start.config)) address.set("playground.network", text);
    if (second) address.set("playground.against", second.join("-"));
    if (held !== cellOf(start.wave)) address.set("playground.wave", waveAt(held).join(","));
    for (const side of [a, b]) if (side.trained.size) address.set(`playground.trained-${side.letter}`, trained(side));
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
    this.set({ config: fromText(get("network")) ?? this.start.config, second: other === undefined ? null : [key, other], wave });
    for (const side of this.sides)
      for (const one of cells(get(`trained-${side.letter}`)))
        if (side.config && !side.trained.has(cellOf(one))) this.fit(side, cellOf(one));
    this.focus = this.sides.find(({ trained }) => trained.has(this.held)) ?? this.sides[0];
    this.show();
  }

  savePicture() {
    const sides = this.sides.filter((side) => side.config && side.energies), scale = 20, pad = 16, width = SIDE * scale;
    const canvas = h("canvas", { width: sides.length * (width + pad) + pad, height: width + width / 4 + 80 }), context = canvas.getContext("2d");
    context.fillStyle = "#fff";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.imageSmoothingEnabled = false;
    sides.forEach((side, i) => {
      const left = pad + i * (width + pad);
      Object.assign(context, { fillStyle: "#000", font: "11px sans-serif" });
      const names = Object.entries(side.config).map(([key, value]) => changeOf(key, value));
      [names.slice(0, 4), names.slice(4)].forEach((line, k) => context.fillText(line.join(" · "), left, 16 + 15 * k, width));
      context.drawImage(side.map.canvas, left, 40, width, width);
      side.tiles.slice(0, 4).forEach(({ canvas: tile }, k) => context.drawImage(tile, left + (k * width) / 4, 48 + width, width / 4 - 6, width / 4 - 6));
      for (const { cell, kind } of this.marksOf(side)) {
        const [ky, kx] = waveAt(cell);
        context.beginPath();
        context.arc(left + (kx + SIDE / 2 + 0.5) * scale, 40 + (ky + SIDE / 2 + 0.5) * scale, 6, 0, 2 * Math.PI);
        Object.assign(context, { fillStyle: "#fff", strokeStyle: "#fff", lineWidth: 2.5 });
        context[kind === "learned" ? "fill" : "stroke"]();
      }
      context.fillStyle = "#000";
      context.font = "13px sans-serif";
      context.fillText("Energy of each wave, and the first NADs. Dots: trained; filled: learned.", left, 48 + width + width / 4 + 18, width);
    });
    canvas.toBlob((blob) => download("nad-playground.png", blob));
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

if (!customElements.get("nad-playground")) customElements.define("nad-playground", NadPlayground);
