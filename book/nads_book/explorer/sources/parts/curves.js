import { Chart } from "../chart.js";
import { h } from "../drawing.js";
import { mostNads, relative } from "../rows.js";
import { percent, short } from "../text.js";

export function curvesPart(app) {
  const onMove = (index) => app.set({ index });
  const eigenvalues = new Chart({ label: "Eigenvalue, relative to the first", log: true, limits: [1e-4, 1],
    ticks: [[1, "1"], [0.1, "0.1"], [0.01, "0.01"], [0.001, "0.001"], [0.0001, "10⁻⁴"]], onMove });
  const accuracies = new Chart({ label: "Test accuracy after training on data that differ along this NAD",
    limits: [0.45, 1], ticks: [[0.5, "50 %"], [0.75, "75 %"], [1, "100 %"]], onMove });
  const legend = h("p", { class: "legend" });
  const axis = h("p", { class: "axis" }, "NAD index");
  return {
    title: "Along the order",
    element: h("div", {}, legend, eigenvalues.element, accuracies.element, axis),
    keys: ["index"],
    update({ index }, changed) {
      if (changed.has("architecture")) {
        const last = mostNads(app) - 1;
        eigenvalues.draw({
          last,
          alt: `Eigenvalues over the NAD index, relative to the first: ${app.shown.map((a) =>
            `${a.label} falls to ${short(relative(a, a.count - 1))}`).join("; ")}.`,
          series: app.shown.map((a) =>
            ({ colour: a.colour, line: Array.from(a.eigenvalues, (_, i) => [i, relative(a, i)]) })),
        });
        accuracies.element.hidden = !app.shown.some((a) => a.accuracies);
        accuracies.draw({
          last,
          alt: `Test accuracies over the NAD index: ${app.shown.map((a) => a.accuracies
            ? `${a.label} from ${percent(a.accuracies[0][1])} to ${percent(a.accuracies.at(-1)[1])}`
            : `${a.label} not measured yet`).join("; ")}.`,
          series: app.shown.map((a) => ({ colour: a.colour, line: a.accuracies ?? [], points: a.accuracies ?? [] })),
        });
        legend.replaceChildren(...app.shown.map((a) =>
          h("span", { class: `swatch ${a.colour}` }, a.label, a.accuracies ? "" : ": accuracies not measured yet")));
      }
      eigenvalues.cursor(index);
      accuracies.cursor(index);
    },
    code: ({ index }, { name, count }) => [
      "# Along the order",
      `eigenvalue = nads.eigenvalues[${Math.min(index, count - 1)}] / nads.eigenvalues[0]`,
      ...(name ? [
        `results = nb.load_results("fig6-${name}")  # None where it has not been measured`,
        'accuracies = {row["index"]: row["test_accuracy"] for row in results.rows} if results else {}',
      ] : []),
    ],
  };
}
