// The atlas: architectures that differ in one thing, sorted, filtered and compared

import STYLE from "./explorer.css";
import { Chart } from "./chart.js";
import { menuOf } from "./controls.js";
import { COLOURS } from "./colours.js";
import { h, paint, picture } from "./drawing.js";
import { loadFromPage, whenNear } from "./load.js";
import { bytesOf } from "./packets.js";
import { signed } from "./text.js";
import { followTheme } from "./theme.js";

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
const paintWaves = (canvas, waves, alt) => paint(canvas, TILE, (i) => COLOURS.magma[waves[i]], alt);

class Atlas {
  constructor(host, { entries, sorted, points, chosen, sort }) {
    Object.assign(this, { entries, sorted, points, sort, on: true, off: new Set() });
    this.byName = new Map(entries.map((entry) => [entry.name, entry]));
    this.chosen = this.byName.get(chosen);
    this.other = this.byName.get(this.chosen.base) ?? entries[0];
    const sorting = menuOf("Sort by", sorted, (key) => (this.sort = key, this.draw()));
    sorting.select.value = sort;
    const factors = [...new Set(entries.map(({ factor }) => factor))].filter(Boolean);
    this.factors = factors.map((factor) => h("button", { class: "chip", "aria-pressed": "true", "data-factor": factor,
      click: () => this.toggle(factor) }, factor));
    this.all = h("button", { class: "chip", click: () => (this.off = new Set(this.off.size ? [] : factors), this.draw()) });
    this.gallery = h("div", { class: "gallery", role: "group", "aria-label": "Architectures; choose one to see it large" });
    this.cards = new Map(entries.map((entry) => [entry.name, this.card(entry)]));
    const names = Object.fromEntries(entries.map(({ name, change }) => [name, `${change} (${name})`]));
    this.beside = menuOf("Compare with", names, (name) => (this.other = this.byName.get(name), this.draw()));
    this.change = h("button", { class: "switch", role: "switch", click: () => (this.on = !this.on, this.draw()) },
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
      h("div", { class: "toolbar" }, h("div", { class: "menus" }, sorting.element),
        h("div", { class: "chips", role: "group", "aria-label": "Factors shown" }, this.all, ...this.factors)),
      h("section", {}, this.gallery),
      h("section", {}, h("div", { class: "choose" }, this.change, this.beside.element), this.status,
        ...this.rows.map(({ element }) => element), this.chart.element, this.table));
    host.shadowRoot.replaceChildren(h("style", {}, STYLE), this.root);
    followTheme(host, this.root);
    this.draw();
  }

  card(entry) {
    const canvases = [0, 1, 2, 3].map(() => h("canvas", {})), value = h("span", { class: "value" });
    canvases.forEach((canvas, i) => paintNad(canvas, entry.nads[i]));
    const element = h("button", { class: "card", title: entry.name, "data-name": entry.name,
      click: () => this.choose(entry) },
    h("span", { class: "tiles" }, ...canvases), h("span", { class: "kind" }, entry.base ? entry.family : ""), h("span", { class: "name" }, entry.change), value);
    return { element, value };
  }

  choose(entry) {
    Object.assign(this, { chosen: entry, on: true });
    this.other = this.byName.get(entry.base) ?? (this.other === entry ? this.entries[0] : this.other);
    this.draw();
  }

  toggle(factor) {
    if (!this.off.delete(factor)) this.off.add(factor);
    this.draw();
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
    const base = this.byName.get(chosen.base);
    this.change.hidden = !base;
    this.change.setAttribute("aria-checked", `${on}`);
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
  connectedCallback() {
    if (this.shadowRoot) return; // moved within the page
    this.attachShadow({ mode: "open" }).append(h("p", {}, "The atlas is loading …"));
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

if (!customElements.get("nad-atlas")) customElements.define("nad-atlas", NadAtlas);
