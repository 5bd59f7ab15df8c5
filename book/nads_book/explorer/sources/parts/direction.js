import { certaintyText } from "../certainty.js";
import { h, paintShares, paintSigned, picture } from "../drawing.js";
import { spectrum } from "../fourier.js";
import { relative, rows } from "../rows.js";
import { interval, short } from "../text.js";

/** The measured row with the index nearest to this one. */
const nearest = (measured, index) =>
  measured.reduce((best, row) => (Math.abs(row[0] - index) < Math.abs(best[0] - index) ? row : best));

function accuracyText(architecture, index) {
  if (!architecture.accuracies) return "accuracy not measured yet";
  const row = nearest(architecture.accuracies, index);
  const [at, , , , closeness] = row; // of the direction that was measured, where it is one of another version
  const other = closeness === undefined ? "" : ` (measured along a direction of an earlier version, cos² ${closeness.toFixed(2)} with this one)`;
  return `accuracy${at === index ? "" : ` at NAD ${at}`}: ${interval(row)}${other}`;
}

export function directionPart(app) {
  const pictures = rows(app, () => {
    const pixels = picture("in pixels"), energy = picture("energy over frequencies");
    const note = h("p", { class: "note" });
    return { pixels, energy, note, elements: [pixels.element, energy.element, note] };
  });
  return {
    title: "One direction",
    element: h("div", {}, ...pictures.elements),
    keys: ["index"],
    update({ index }) {
      pictures.update((architecture, { pixels, energy, note }) => {
        const i = Math.min(index, architecture.count - 1), direction = architecture.directions[i];
        const name = `NAD ${i} of ${architecture.label}`;
        paintSigned(pixels.canvas, direction, architecture.size, `${name}, in pixels`);
        paintShares(energy.canvas, spectrum(direction, architecture.size), architecture.size,
          `${name}, its energy over frequencies, zero in the middle`);
        note.replaceChildren(h("strong", {}, `NAD ${i}`), h("br"),
          ...certaintyText(architecture, i).flatMap((line) => [line, h("br")]),
          `eigenvalue ${short(relative(architecture, i))} of the first`, h("br"), accuracyText(architecture, i));
      });
    },
    code: ({ index }, { count }) => [
      "# One direction",
      `direction = nads.directions[${Math.min(index, count - 1)}, 0]  # (H, W)`,
      "energy = nc.spectrum(direction)  # (H, W), zero frequency in the middle",
    ],
  };
}
