// Architectures and waves as people, addresses and PyTorch write them

import { CHOICES, SIDE, canonical, featuresOf, layersOf } from "./engine.js";

export const DEFAULT = {
  layers: "convolution", blocks: 2, channels: 8, kernel: 3, pooling: "average", activation: "relu", norm: "none", head: "flat",
  skip: false, padding: "zeros",
};
export const TITLES = {
  layers: "Layers", blocks: "Blocks", channels: "Channels", kernel: "Kernel", pooling: "Down-sampling", activation: "Activation",
  norm: "Normalisation", head: "Head", skip: "Skip connections", padding: "Padding",
};
const NAMES = { relu: "ReLU", global: "global average", true: "yes", false: "no", 3: "3 × 3", 5: "5 × 5", patches: "patches (mixer)", dense: "dense (MLP)" };

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
export const inWords = (cell) => `(${waveAt(cell).join(",\u00a0")})`.replaceAll("-", "−");

export const percent = (x) => `${(100 * x).toFixed(0)}\u00a0%`;
/** A share in per cent, with two digits where it is small: the limit of the prediction is 1 %. */
export const times = (x) => (x >= 0.0995 ? percent(x) : x >= 0.0005 ? `${+(100 * x).toPrecision(2)}\u00a0%` : "<\u00a00.1\u00a0%");

/** A function that builds the network in PyTorch. */
function builder(name, given) {
  const config = canonical(given), { layers, pooling, activation, norm, head, padding } = config, dense = layers === "dense";
  const after = (outs) => [norm === "layer" && `nn.GroupNorm(1, ${outs}, affine=False)`,
    { relu: "nn.ReLU()", tanh: "nn.Tanh()" }[activation], { average: "nn.AvgPool2d(2)", max: "nn.MaxPool2d(2)" }[pooling]];
  const lines = layersOf(config).map(({ mixes, inputs, outs, kernel, stride, pad, side, skip }) => {
    const options = [pad && `padding=${pad}`, stride > 1 && `stride=${stride}`, padding === "circular" && 'padding_mode="circular"'];
    const layer = mixes ? `${skip ? "SkipTokens" : "Tokens"}(${side ** 2}, ${side ** 2})`
      : dense ? `${skip ? "SkipLinear" : "nn.Linear"}(${inputs * kernel ** 2}, ${outs})`
      : `${skip ? "SkipConv2d" : "nn.Conv2d"}(${[inputs, outs, kernel, ...options.filter(Boolean)].join(", ")})`;
    return [layer, ...after(outs)].filter(Boolean).join(", ");
  });
  const last = [head === "global" && "nn.AdaptiveAvgPool2d(1)", !dense && "nn.Flatten()", `nn.Linear(${featuresOf(config)}, 1)`];
  return ["", "", `def ${name}():`, "    return nn.Sequential(", ...(dense ? ["        nn.Flatten(),"] : []),
    ...[...lines, last.filter(Boolean).join(", ")].map((line) => `        ${line},`), "    )"];
}

// Layers that PyTorch lacks
const CLASSES = {
  Tokens: ["nn.Linear", "super().forward(x.flatten(2)).view_as(x)"],
  SkipTokens: ["nn.Linear", "super().forward(x.flatten(2)).view_as(x) + x"],
  SkipLinear: ["nn.Linear", "super().forward(x) + x"],
  SkipConv2d: ["nn.Conv2d", "super().forward(x) + x[..., :: self.stride[0], :: self.stride[1]]"],
};

/** The networks in PyTorch, one or two that are compared, whose maps are those of the page. */
export function python(...configs) {
  const names = configs.length > 1 ? ["build_a", "build_b"] : ["build"];
  const builders = configs.flatMap((config, index) => builder(names[index], config)), text = builders.join();
  const classes = Object.entries(CLASSES).filter(([name]) => new RegExp(`\\b${name}\\(`).test(text)).flatMap(([name, [base, result]]) =>
    ["", "", `class ${name}(${base}):`, "    def forward(self, x):", `        return ${result}`]);
  return ["from torch import nn", "", "import nads_core as nc", ...classes, ...builders, "", "",
    ...(configs.length > 1 ? [`for build in (${names.join(", ")}):`, ...MAP.map((line) => `    ${line}`)] : MAP), ""].join("\n");
}

const MAP = [
  "nads = nc.compute_nads(build, image_shape=(1, 16, 16), num_networks=1_600)",
  "energies = nads.energy(nc.fourier_basis(16)[0]).reshape(16, 16)  # rows and columns: -8 to 7 cycles",
  "print(energies / energies.max())",
];
