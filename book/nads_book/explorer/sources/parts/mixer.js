import { mixture } from "../directions.js";
import { h, paintShares, paintSigned, picture } from "../drawing.js";
import { spectrum } from "../fourier.js";
import { rows } from "../rows.js";

export function mixerPart(app) {
  const set = (weights) => app.set({ mix: weights });
  const faders = app.view.mix.map((_, n) => {
    const canvas = h("canvas", { role: "img", width: 1, height: 1 });
    const input = h("input", { type: "range", min: -1, max: 1, step: 0.05, "aria-label": `Weight of NAD ${n}`,
      input: () => set(app.view.mix.map((old, i) => (i === n ? +input.value : old))) });
    return { canvas, input, element: h("label", { class: "fader" }, canvas, h("span", {}, `${n}`), input) };
  });
  const pictures = rows(app, () => {
    const image = picture("the sum"), energy = picture("its energy over frequencies");
    return { image, energy, elements: [image.element, energy.element] };
  });
  const buttons = h("p", { class: "buttons" },
    h("button", { click: () => set(app.view.mix.map(() => Math.round(40 * Math.random() - 20) / 20)) }, "Surprise me"),
    h("button", { click: () => set(app.view.mix.map(() => 0)) }, "Clear"));
  return {
    title: "Mix your own",
    element: h("div", { class: "mixer" },
      h("div", {}, h("div", { class: "faders" }, ...faders.map((fader) => fader.element)), buttons),
      h("div", {}, ...pictures.elements)),
    keys: ["mix"],
    update({ mix }, changed) {
      faders.forEach(({ canvas, input, element }, n) => {
        const known = app.shown.find(({ count }) => n < count);
        element.hidden = !known;
        if (!known) return;
        input.value = mix[n];
        input.setAttribute("aria-valuetext", `${mix[n].toFixed(2)} times NAD ${n}`);
        if (changed.has("architecture"))
          paintSigned(canvas, known.directions[n], known.size, `NAD ${n} of ${known.label}`);
      });
      pictures.update((architecture, { image, energy }) => {
        const { label, size } = architecture, count = Math.min(mix.length, architecture.count);
        const sum = mixture(architecture.directions, mix);
        paintSigned(image.canvas, sum, size, `Mixture of the first ${count} NADs of ${label}`);
        paintShares(energy.canvas, spectrum(sum, size), size, "Energy of the mixture over frequencies");
      });
    },
    code: ({ mix }, { count }) => [
      "# A mixture of the first NADs",
      `weights = torch.tensor([${mix.slice(0, count).join(", ")}])`,
      "mixture = (weights[:, None, None] * nads.directions[: len(weights), 0]).sum(0)  # (H, W)",
    ],
  };
}
