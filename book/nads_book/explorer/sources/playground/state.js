// Architectures and waves as people, addresses and PyTorch write them

import { CHOICES, SIDE, featuresOf, shapesOf } from "./engine.js";

export const DEFAULT = {
  blocks: 2, channels: 8, kernel: 3, pooling: "average", activation: "relu", head: "flat", skip: false, padding: "zeros",
};
export const TITLES = {
  blocks: "Blocks", channels: "Channels", kernel: "Kernel", pooling: "Down-sampling", activation: "Activation",
  head: "Head", skip: "Skip connections", padding: "Padding",
};
const NAMES = { relu: "ReLU", global: "global average", true: "yes", false: "no", 3: "3 × 3", 5: "5 × 5" };

/** A value of a chip, as the reader sees it. */
export const nameOf = (key, value) => (key === "kernel" || Number.isNaN(+value) || key === "skip" ? NAMES[value] : null) ?? `${value}`;

/** The difference between two architectures, in words. */
export const changeOf = (key, value) => `${TITLES[key].toLowerCase()}: ${nameOf(key, value)}`;

export const toText = (config) => Object.keys(CHOICES).map((key) => `${config[key]}`).join("-");

/** An architecture from a text, or null if it makes no sense. */
export function fromText(text) {
  const parts = (text ?? "").split("-"), config = {};
  for (const [i, [key, values]] of Object.entries(CHOICES).entries()) {
    config[key] = values.find((value) => `${value}` === parts[i]);
    if (config[key] === undefined) return null;
  }
  return parts.length === Object.keys(CHOICES).length ? config : null;
}

/** Cells are counted row by row from wave (-SIDE / 2, -SIDE / 2) on. */
export const waveAt = (cell) => [Math.floor(cell / SIDE) - SIDE / 2, (cell % SIDE) - SIDE / 2];
export const cellOf = ([ky, kx]) => (ky + SIDE / 2) * SIDE + kx + SIDE / 2;
export const inWords = (cell) => `(${waveAt(cell).join(", ")})`.replaceAll("-", "−");

/** A function that builds the network in PyTorch. */
function builder(name, config) {
  const { channels, kernel, pooling, activation, head, skip, padding } = config;
  const options = [`padding=${(kernel - 1) / 2}`, ...(pooling === "stride" ? ["stride=2"] : []),
    ...(padding === "circular" ? ['padding_mode="circular"'] : [])].join(", ");
  const then = [{ relu: "nn.ReLU()", tanh: "nn.Tanh()" }[activation],
    { average: "nn.AvgPool2d(2)", max: "nn.MaxPool2d(2)" }[pooling]].filter(Boolean);
  const blocks = shapesOf(config).map(({ inputs }) =>
    [`${skip ? "Skip" : "nn.Conv2d"}(${inputs}, ${channels}, ${kernel}, ${options})`, ...then].join(", "));
  const last = [...(head === "global" ? ["nn.AdaptiveAvgPool2d(1)"] : []), "nn.Flatten()", `nn.Linear(${featuresOf(config)}, 1)`];
  const layers = [...blocks, last.join(", ")].map((line) => `        ${line},`);
  return ["", "", `def ${name}():`, "    return nn.Sequential(", ...layers, "    )"];
}

/** The networks in PyTorch, one or two that are compared, whose maps are those of the page. */
export function python(...configs) {
  const names = configs.length > 1 ? ["build_a", "build_b"] : ["build"];
  const skip = ["", "", "class Skip(nn.Conv2d):", "    def forward(self, x):",
    "        return super().forward(x) + x[..., :: self.stride[0], :: self.stride[1]]"];
  const map = ["nads = nc.compute_nads(build, 1_600, image_shape=(1, 16, 16))",
    "energies = nads.energy(nc.fourier_basis(16)[0]).reshape(16, 16)  # rows and columns: -8 to 7 cycles",
    "print(energies / energies.max())"];
  return ["from torch import nn", "", "import nads_core as nc", ...(configs.some((config) => config.skip) ? skip : []),
    ...configs.flatMap((config, index) => builder(names[index], config)), "", "",
    ...(configs.length > 1 ? [`for build in (${names.join(", ")}):`, ...map.map((line) => `    ${line}`)] : map), ""].join("\n");
}
