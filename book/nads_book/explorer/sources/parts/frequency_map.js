import { fourierDirection } from "../fourier.js";
import { clamp } from "../numbers.js";
import { h, paint, paintSigned, picture } from "../drawing.js";
import { rows } from "../rows.js";
import { accuracyColour, accuracyScale, energyColour, energyScale } from "../scales.js";
import { interval, short } from "../text.js";

const UNMEASURED = [[128, 128, 128, 90], [128, 128, 128, 150]]; // two greys, in stripes
const LOWEST = [1e-6, 0.1]; // each network has its own scale, of one to six decades
const STEERING = "A click or the arrow keys choose a frequency.";

/** The frequency that the reader points at or chooses, on maps of `cells`² cells for images of side `size`. */
class Picker {
  hovered = null; // under the pointer, which shows it and chooses nothing

  constructor(app) {
    this.app = app;
  }

  cell = (frequency) => frequency.map((k) => (k + this.size / 2) / 2); // odd frequencies lie between two
  frequency = (row, column) => [row, column].map((i) => 2 * clamp(i, 0, this.cells - 1) - this.size / 2);

  under(event) {
    const box = event.currentTarget.getBoundingClientRect();
    return this.frequency(Math.floor(((event.clientY - box.top) / box.height) * this.cells),
      Math.floor(((event.clientX - box.left) / box.width) * this.cells));
  }

  hover(frequency) {
    this.hovered = frequency;
    this.app.refresh(["frequency"]);
  }

  choose(frequency) {
    this.hover(null);
    this.app.set({ frequency });
  }

  listeners = {
    pointermove: (event) => event.pointerType === "touch" || this.hover(this.under(event)),
    pointerleave: () => this.hover(null),
    click: (event) => this.choose(this.under(event)),
    keydown: (event) => {
      const [row, column] = this.cell(this.app.view.frequency);
      const steps = {
        ArrowUp: [Math.ceil(row) - 1, column], ArrowDown: [Math.floor(row) + 1, column],
        ArrowLeft: [row, Math.ceil(column) - 1], ArrowRight: [row, Math.floor(column) + 1],
      };
      if (!(event.key in steps)) return;
      this.choose(this.frequency(...steps[event.key]));
      event.preventDefault();
    },
  };
}

function frequencyMap(picker) {
  const canvas = h("canvas", { width: 1, height: 1 });
  const mark = h("span", { class: "mark" });
  const box = h("div", { class: "map", tabindex: 0, role: "application", ...picker.listeners }, canvas, mark);
  const text = h("figcaption");
  return { canvas, mark, box, text, element: h("figure", {}, box, text) };
}

/** What was measured, by cell of the map. */
function measuredCells({ size, fourier }) {
  const known = new Map(), cells = size / 2;
  for (const [k, ...row] of fourier ?? []) // k and -k are one direction up to its sign
    for (const sign of [-1, 1]) {
      const [r, c] = k.map((f) => ((((sign * f + size / 2) % size) + size) % size) / 2);
      known.set(r * cells + c, [k, ...row]);
    }
  return known;
}

function drawMaps(architecture, { accuracy, energy }) {
  const { label, size, fourier, published, energies, known } = architecture, cells = size / 2;
  paint(accuracy.canvas, cells, (i) => {
    const row = known.get(i);
    if (!row) return UNMEASURED[(Math.floor(i / cells) + i) % 2];
    return accuracyColour(row[1]);
  }, `accuracies of ${label}`);
  const at = (i) => energies[2 * Math.floor(i / cells)][2 * (i % cells)];
  const lowest = clamp(Math.min(...Array.from({ length: cells * cells }, (_, i) => at(i))), ...LOWEST);
  const colour = (i) => energyColour(at(i), -Math.log10(lowest));
  paint(energy.canvas, cells, colour, `energies of ${label}`);
  accuracy.box.setAttribute("aria-label", `Accuracy of ${label} after training, by frequency. ${STEERING}`);
  energy.box.setAttribute("aria-label", `Energy of each frequency in the NADs of untrained ${label}. ${STEERING}`);
  accuracy.element.hidden = !fourier;
  accuracy.text.replaceChildren("accuracy after training", accuracyScale(),
    published ? "as the paper's authors published it" : known.size === cells * cells ? "" : "striped: not measured yet");
  energy.text.replaceChildren("energy before any training", energyScale(short(lowest)));
}

export function fourierPart(app) {
  const wave = picture("the wave");
  const readout = h("p", { class: "note", "aria-live": "polite" });
  const picker = new Picker(app);
  const pictures = rows(app, () => {
    const accuracy = frequencyMap(picker), energy = frequencyMap(picker);
    return { accuracy, energy, elements: [accuracy.element, energy.element] };
  });
  return {
    title: "Which waves can be learned?",
    element: h("div", { class: "fourier" }, h("div", {}, ...pictures.elements), h("div", {}, wave.element, readout)),
    keys: ["frequency"],
    update(view, changed) {
      if (changed.has("architecture"))
        pictures.update((architecture, maps) => {
          architecture.known = measuredCells(architecture);
          Object.assign(picker, { size: architecture.size, cells: architecture.size / 2 });
          drawMaps(architecture, maps);
        });
      const { size, cells } = picker;
      const [ky, kx] = picker.hovered ?? view.frequency;
      const [row, column] = picker.cell([ky, kx]);
      const onMap = ky % 2 === 0 && kx % 2 === 0;
      pictures.update((_, { accuracy, energy }) => {
        for (const { mark } of [accuracy, energy]) {
          const [left, top, side] = [column, row, 1].map((i) => `${(100 * i) / cells}%`);
          Object.assign(mark.style, { left, top, width: side, height: side });
        }
      });
      paintSigned(wave.canvas, fourierDirection([ky, kx], size), size,
        `Wave of vertical frequency ${ky} and horizontal frequency ${kx}`);
      readout.replaceChildren(h("strong", {}, `${ky} cycles down, ${kx} across`), ...app.shown.flatMap((a) => {
        const found = onMap && a.known.get(row * cells + column);
        const accuracy = found ? interval(found) : `accuracy not measured ${onMap ? "yet" : "at odd frequencies"}`;
        const energy = short(a.energies[ky + size / 2][kx + size / 2]);
        return [h("br"), `${a.label}: ${accuracy}, energy ${energy} of the map's largest`];
      }));
    },
    code: ({ frequency }, { name, published }) => [
      "# A wave",
      `wave = nc.fourier_direction((${frequency.join(", ")}), ${picker.size ?? 32})[0]  # (H, W)`,
      "wave_energy = nads.energy(wave[None])",
      ...(published ? [`by_frequency = nb.published.fourier_accuracies("${name}")`] : name ? [
        `results = nb.load_results("fig1-${name}")  # None where it has not been measured`,
        'by_frequency = {tuple(row["frequency"]): row["test_accuracy"] for row in results.rows} if results else {}',
      ] : []),
    ],
  };
}
