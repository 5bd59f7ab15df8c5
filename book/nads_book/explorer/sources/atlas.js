// The atlas: architectures that differ in one thing, sorted, filtered and compared

import { addressNow, parameters, saveAddress } from "./address.js";
import { Chart } from "./chart.js";
import { menuOf } from "./controls.js";
import { COLOURS } from "./colours.js";
import { h, paint, picture } from "./drawing.js";
import { loadFromPage, whenNear } from "./load.js";
import { bytesOf } from "./packets.js";
import { copyButton } from "./share.js";
import { signed } from "./text.js";
import { define, showIn } from "./theme.js";

const TILE = 32, AREA = TILE * TILE;
const written = (x) => (Math.abs(x) >= 100 ? x.toFixed(0) : Math.abs(x) >= 10 ? x.toFixed(1)
  : Math.abs(x) < 0.0995 ? signed(x, 3) : signed(x));

/** What Python's `pack_atlas` packed. */
async function unpackAtlas(packet) {
  const bytes = await bytesOf(packet), { entries, shown } = packet;
  const waves = entries.length * shown * AREA;
  entries.forEach((entry, i) => {
    entry.nads = Array.from({ length: shown }, (_, j) =>
      new Int8Array(bytes.buffer, bytes.byteOffset + (i * shown + j) * AREA, AREA));
    entry.waves = bytes.subarray(waves + i * AREA, waves + (i + 1) * AREA);
  });
  return packet;
}

const paintNad = (canvas, nad, alt) => paint(canvas, TILE, (i) => COLOURS.diverging[nad[i] + 128], alt);
// A card shows four NADs on one canvas: hundreds of canvases take a browser long. Where each pixel is from, or -1.
const GAP = 3;
const SIDE = 2 * TILE + GAP;
const SQUARE = Int16Array.from({ length: SIDE * SIDE }, (_, i) => {
  const y = Math.floor(i / SIDE), x = i % SIDE, [down, right] = [y, x].map((at) => at >= TILE + GAP);
  const [row, column] = [[y, down], [x, right]].map(([at, second]) => at - second * (TILE + GAP));
  return row < TILE && column < TILE ? (2 * down + right) * AREA + row * TILE + column : -1;
});
const EMPTY = [0, 0, 0, 0];
const paintFour = (canvas, nads) => paint(canvas, SIDE,
  (i) => (SQUARE[i] < 0 ? EMPTY : COLOURS.diverging[nads[Math.floor(SQUARE[i] / AREA)][SQUARE[i] % AREA] + 128]), "");
const paintWaves = (canvas, waves, alt) => paint(canvas, TILE, (i) => COLOURS.magma[waves[i]], alt);

class Atlas {
  constructor(host, { entries, sorted, points, chosen, sort, shared }) {
    Object.assign(this, { entries, sorted, points, sort, on: true, off: new Set(), shared, start: { chosen, sort } });
    this.byName = new Map(entries.map((entry) => [entry.name, entry]));
    this.chosen = this.byName.get(chosen);
    this.other = this.byName.get(this.chosen.base) ?? entries[0];
    this.sorting = menuOf("Sort by", sorted, (key) => this.change({ sort: key }));
    this.names = [...new Set(entries.map(({ factor }) => factor))].filter(Boolean);
    this.factors = this.names.map((factor) => h("button", { class: "chip", "aria-pressed": "true", "data-factor": factor,
      click: () => this.toggle(factor) }, factor));
    this.all = h("button", { class: "chip", 
      click: () => this.change({ off: new Set(this.off.size ? [] : this.names) }) });
    this.gallery = h("div", { class: "gallery", role: "group", "aria-label": "Architectures; choose one to see it large" });
    this.cards = new Map(entries.map((entry) => [entry.name, this.card(entry)]));
    const names = Object.fromEntries(entries.map(({ name, change }) => [name, `${change} (${name})`]));
    this.beside = menuOf("Compare with", names, (name) => this.change({ other: this.byName.get(name) }));
    this.switch = h("button", { class: "switch", role: "switch", click: () => this.change({ on: !this.on }) },
      h("span", { class: "knob" }), this.changed = h("span"));
    this.rows = ["a", "b"].map((colour) => {
      const head = h("p", { class: `network ${colour}` });
      const pictures = entries[0].nads.map((_, i) => picture(`NAD ${i}`)), waves = picture("waves");
      return { head, pictures, waves, element: h("div", { class: "row" }, head,
        h("div", { class: "strip" }, ...pictures.map(({ element }) => element), waves.element)) };
    });
    this.chart = new Chart({ label: "eigenvalue, relative to the first; NAD on a logarithmic axis", log: true, height: 130,
      limits: [1e-6, 1], ticks: [[1, "1"], [1e-2, "10⁻²"], [1e-4, "10⁻⁴"], [1e-6, "10⁻⁶"]], onMove: () => {} });
    this.chart.name = (i) => `${points[Math.min(i, points.length - 1)]}`;
    this.table = h("table", { class: "measures" });
    this.status = h("p", { class: "note", "aria-live": "polite" });
    this.root = h("div", { class: "explorer atlas", role: "group", "aria-label": "An atlas of architectures" },
      h("div", { class: "toolbar" }, h("div", { class: "menus" }, this.sorting.element),
        h("div", { class: "chips", role: "group", "aria-label": "Factors shown" }, this.all, ...this.factors)),
      h("section", {}, this.gallery),
      h("section", {}, h("div", { class: "choose" }, this.switch, this.beside.element), this.status,
        ...this.rows.map(({ element }) => element), this.chart.element, this.table),
      shared ? h("div", { class: "footer" }, copyButton("Copy a link to this view", addressNow)) : "");
    showIn(host, this.root);
    if (shared) this.restore();
    this.draw();
    if (shared) addEventListener("hashchange", () => this.restore() && this.draw());
  }

  /** What the reader does: it is drawn, and kept in the address. */
  change(state) {
    Object.assign(this, state);
    this.draw();
    if (this.shared) saveAddress(); // the address of a notebook is not ours
  }

  /** Add to the address what differs from the start. */
  describe(address) {
    const { chosen, other, sort, on, off, start, names } = this;
    const state = { chosen: [chosen.name, start.chosen], sort: [sort, start.sort],
      beside: [other.name, (this.byName.get(chosen.base) ?? this.entries[0]).name], off: [[...off].map((name) => names.indexOf(name)).join(","), ""],
      on: [`${on}`, "true"] };
    for (const [key, [now, before]] of Object.entries(state)) if (now !== before) address.set(`atlas.${key}`, now);
  }

  /** Take over what the address says, if anything; what makes no sense is left out. */
  restore() {
    const address = parameters(), get = (key) => address.get(`atlas.${key}`) ?? "";
    if (!["chosen", "sort", "beside", "off", "on"].some((key) => address.has(`atlas.${key}`))) return false;
    this.chosen = this.byName.get(get("chosen")) ?? this.byName.get(this.start.chosen);
    this.other = this.byName.get(get("beside")) ?? this.byName.get(this.chosen.base) ?? this.entries[0];
    this.sort = Object.hasOwn(this.sorted, get("sort")) ? get("sort") : this.start.sort;
    this.off = new Set(get("off").split(",").map((i) => (i === "" ? undefined : this.names[i])).filter(Boolean));
    this.on = get("on") !== "false";
    return true;
  }

  card(entry) {
    const canvas = h("canvas", {}), value = h("span", { class: "value" });
    paintFour(canvas, entry.nads);
    const element = h("button", { class: "card", title: entry.name, "data-name": entry.name,
      click: () => this.choose(entry) },
    canvas, h("span", { class: "kind" }, entry.base ? entry.family : ""), h("span", { class: "name" }, entry.change), value);
    return { element, value };
  }

  choose(entry) {
    const other = this.byName.get(entry.base) ?? (this.other === entry ? this.entries[0] : this.other);
    this.change({ chosen: entry, on: true, other });
  }

  toggle(factor) {
    if (!this.off.delete(factor)) this.off.add(factor);
    this.change({});
  }

  draw() {
    const { entries, sort, off, chosen, other, on, sorted } = this;
    const rank = ({ measures }) => measures[sort]?.[0] ?? -Infinity;
    const seen = entries.filter(({ factor }) => !off.has(factor)).sort((a, b) => rank(b) - rank(a));
    for (const entry of seen) {
      const { element, value } = this.cards.get(entry.name), found = entry.measures[sort];
      value.textContent = found ? written(found[0]) : "–";
      element.setAttribute("aria-pressed", `${entry === chosen}`);
      element.classList.toggle("beside", entry === other && entry !== chosen);
    }
    const focused = this.root.getRootNode().activeElement;
    this.gallery.replaceChildren(...seen.map(({ name }) => this.cards.get(name).element));
    focused?.focus?.({ preventScroll: true });
    for (const chip of this.factors) chip.setAttribute("aria-pressed", `${!off.has(chip.dataset.factor)}`);
    this.all.textContent = off.size ? "all" : "none";
    this.beside.select.value = other.name;
    this.sorting.select.value = sort;
    const base = this.byName.get(chosen.base);
    this.switch.hidden = !base;
    this.switch.setAttribute("aria-checked", `${on}`);
    this.changed.textContent = base ? `${chosen.change}${on ? "" : " switched off"}` : "";
    const shown = on || !base ? chosen : base;
    for (const [row, entry] of [[this.rows[0], shown], [this.rows[1], other]]) {
      row.head.textContent = `${entry.change} (${entry.name})`;
      row.pictures.forEach(({ canvas }, i) => paintNad(canvas, entry.nads[i], `${entry.name}, NAD ${i}`));
      paintWaves(row.waves.canvas, entry.waves, `Energies of waves of ${entry.name}, the constant in the middle`);
    }
    this.rows[1].element.hidden = other === shown;
    this.chart.draw({ last: this.points.length - 1, alt: `Eigenvalues of ${shown.name} and ${other.name}`,
      series: [[shown, "a"], [other, "b"]].map(([{ spectrum }, colour]) =>
        ({ colour, line: spectrum.map((value, i) => [i, Math.max(value, 1e-7)]) })) });
    const similarity = shown.alike[entries.indexOf(other)];
    this.status.textContent = other === shown ? `${shown.networks.toLocaleString("en")} networks.`
      : `The second moments of the two have a cosine of ${similarity.toFixed(2)}: 1 for the same directions in the same order.`;
    const cell = ({ measures }, key) => (measures[key]
      ? `${written(measures[key][0])} (${written(measures[key][1])} to ${written(measures[key][2])})` : "–");
    const columns = other === shown ? [shown] : [shown, other];
    this.table.replaceChildren(
      h("tr", {}, h("th", {}, "95 % intervals"), ...columns.map(({ name }) => h("th", {}, name))),
      ...Object.entries(sorted).map(([key, title]) =>
        h("tr", {}, h("th", { scope: "row" }, title), ...columns.map((entry) => h("td", {}, cell(entry, key))))));
  }
}

class NadAtlas extends HTMLElement {
  describe(address) {
    if (this.atlas?.shared) this.atlas.describe(address);
  }

  connectedCallback() {
    if (this.shadowRoot) return; // moved within the page
    this.attachShadow({ mode: "open" }).append(h("p", {}, "The atlas is loading …"));
    if ([...parameters().keys()].some((key) => key.startsWith("atlas."))) this.scrollIntoView();
    whenNear(this, async () => {
      try {
        const packet = await unpackAtlas(await loadFromPage("atlas"));
        this.atlas = new Atlas(this, { ...packet, ...JSON.parse(this.getAttribute("config")) });
      } catch (error) {
        this.shadowRoot.replaceChildren(h("p", { role: "alert" }, `The atlas could not be shown. ${error.message}`));
      }
    });
  }
}

define("nad-atlas", NadAtlas);
