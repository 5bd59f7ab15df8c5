// What the colours of the Fourier maps mean

import { COLOURS } from "./colours.js";
import { h } from "./drawing.js";
import { clamp } from "./numbers.js";

export const accuracyColour = (accuracy) => COLOURS.viridis[Math.round(255 * clamp((accuracy - 0.5) / 0.5, 0, 1))];

/** Some decades of energy, relative to the map's largest. */
export const energyColour = (energy, decades = 3) =>
  COLOURS.magma[Math.round(255 * clamp(Math.log10(Math.max(energy, 1e-9)) / decades + 1, 0, 1))];

const scale = (name, from, to) =>
  h("span", { class: "scale" }, h("span", {}, from), h("span", { class: `bar ${name}` }), h("span", {}, to));
export const accuracyScale = () => scale("viridis", "50 %", "100 %");
export const energyScale = (lowest = "10⁻³") => scale("magma", lowest, "1");
