import { certaintyText, nameText } from "../certainty.js";
import { h, paintShares, paintSigned, picture } from "../drawing.js";
import { spectrum } from "../fourier.js";
import { relative, rows } from "../rows.js";
import { interval, short } from "../text.js";

/** The measured row with the index nearest to this one. */
const nearest = (measured, index) =>
  measured.reduce((best, row) => (Math.abs(row[0] - index) < Math.abs(best[0] - index) ? row : best));

const CLOSE = 0.9; // cos² between a direction of an earlier version and this one, above which its accuracy is shown

function accuracyText({ accuracies }, index) {
  const measured = accuracies?.filter(([, , , , closeness = 1]) => closeness >= CLOSE) ?? [];
  if (!measured.length) return "accuracy not measured yet";
  const row = nearest(measured, index);
  return `accuracy${row[0] === index ? "" : ` at NAD ${row[0]}`}: ${interval(row)}`;
}

export function directionPart(app) {
  const pictures = rows(app, () => {
    const pixels = picture("in pixels"), energy = picture("energy over frequencies");
    const text = h("p", {}), more = h("p", {}), note = h("div", { class: "note" }, text,
      h("details", {}, h("summary", {}, "Name and eigenvalue"), more));
    return { pixels, energy, text, more, elements: [pixels.element, energy.element, note] };
  });
  return {
    title: "One direction",
    element: h("div", {}, ...pictures.elements),
    keys: ["index"],
    update({ index }) {
      pictures.update((architecture, { pixels, energy, text, more }) => {
        const i = Math.min(index, architecture.count - 1), direction = architecture.directions[i];
        const name = `NAD ${i} of ${architecture.label}`;
        paintSigned(pixels.canvas, direction, architecture.size, `${name}, in pixels`);
        paintShares(energy.canvas, spectrum(direction, architecture.size), architecture.size,
          `${name}, its energy over frequencies, zero in the middle`);
        const lines = (parts) => parts.flatMap((part, at) => (at ? [h("br"), part] : [part]));
        text.replaceChildren(...lines([h("strong", {}, `NAD ${i}`), accuracyText(architecture, i), ...certaintyText(architecture, i)]));
        more.replaceChildren(...lines([...nameText(architecture, i), `eigenvalue ${short(relative(architecture, i))} of the first`]));
      });
    },
    code: ({ index }, { count }) => [
      "# One direction",
      `direction = nads.directions[${Math.min(index, count - 1)}, 0]  # (H, W)`,
      "energy = nc.spectrum(direction)  # (H, W), zero frequency in the middle",
    ],
  };
}
