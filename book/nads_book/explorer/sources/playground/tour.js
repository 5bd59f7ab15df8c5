// Five steps with a bet each

import { DEFAULT, cellOf } from "./state.js";

const GRID = cellOf([4, 4]);
const percent = (x) => `${(100 * x).toFixed(0)}\u00a0%`;
const shareOf = (energies, within) => {
  const sum = (cells) => cells.reduce((total, cell) => total + Math.max(energies[cell], 0), 0);
  const all = [...energies.keys()];
  return sum(all.filter(within)) / sum(all);
};

/** How much more energy the sine of one cycle across has than its cosine. */
const excess = (energies) => energies[cellOf([0, 1])] / energies[cellOf([0, -1])] - 1;
const signedPercent = (x) => `${Math.abs(100 * x).toFixed(0)}\u00a0% ${x < 0 ? "less" : "more"}`;
const spread = (energies) => Math.max(...energies) / (energies.reduce((sum, x) => sum + x, 0) / energies.length);

/**
 * Each step: title, question, answers, index of the right one, what it shows (config, second, trained cell), and what
 * was found: outcome({energies, second, result}) once the networks are drawn and trained.
 */
export const STEPS = [
  {
    title: "Averages over 2 × 2 pixels",
    question: "This network halves its image twice, by averages over 2 × 2 pixels. A wave with 4 cycles down and 4 across separates " +
      "two classes of images, and a linear classifier would separate them without error. What accuracy will the network reach on new images?",
    answers: ["About 50 %: it guesses", "About 75 %", "About 100 %"], right: 0,
    config: DEFAULT, cell: GRID,
    outcome: ({ energies, result }) => `The network reaches ${percent(result.accuracy)}. The map shows it before any training: the output of ` +
      `random networks hardly changes along this wave. Its energy is ${(100 * Math.max(energies[GRID], 0) / Math.max(...energies)).toFixed(1)}\u00a0% of the largest.`,
  },
  {
    title: "Strides instead of averages",
    question: "Each convolution now has stride 2: it keeps every second pixel, instead of an average of four. The wave, the noise and the rest of the network are the same. " +
      "What accuracy now?",
    answers: ["About 50 %: it guesses", "About 75 %", "About 100 %"], right: 2,
    config: { ...DEFAULT, pooling: "stride" }, cell: GRID,
    outcome: ({ energies, result }) => `The network reaches ${percent(result.accuracy)}. With strides, every wave has at least ` +
      `${percent(Math.min(...energies) / Math.max(...energies))} of the largest energy, and this one has ${percent(energies[GRID] / Math.max(...energies))}. ` +
      "One change of the architecture changed what random networks respond to and what trained networks learn.",
  },
  {
    title: "Strides and a global average",
    question: "Keep the strides, but average each feature map over all places before the last layer, as ResNets do. Which waves will have energy?",
    answers: ["Coarse waves, in the middle", "A regular grid of waves", "Fine waves, at the edge"], right: 1,
    config: { ...DEFAULT, pooling: "stride", head: "global" },
    outcome: ({ energies }) => `Waves whose cycles are multiples of 4 hold ${percent(shareOf(energies, (cell) => (cell >> 4) % 4 === 0 && cell % 4 === 0))} ` +
      "of the energy, though they are 16 of 256 waves. Two strides keep every fourth pixel, on which such a wave is constant, and a global average removes most of what varies. " +
      "ResNet-18 has the same comb: it keeps every eighth of 32 pixels, so that multiples of 4 remain.",
  },
  {
    title: "Zeros or circular padding",
    question: "Back to averages and a flat head, with kernels of 5 × 5. The waves (0, 1) and (0, −1) are the sine and the cosine of one frequency: they differ only in where their crests lie. " +
      "With zeros around the image, these random networks prefer the sine. With circular padding, the left edge continues at the right one. Which do they prefer then?",
    answers: ["The sine", "The cosine", "Neither"], right: 2,
    config: { ...DEFAULT, kernel: 5 }, second: ["padding", "circular"], wave: [0, 1],
    outcome: ({ energies, second }) => `With zeros, the sine has ${signedPercent(excess(energies))} energy than the cosine. With circular padding, ${signedPercent(excess(second))}, ` +
      "which is within the sampling error of 400 networks. Without a border, a shift by 4 pixels, the grid of the two poolings, does not change " +
      "what random networks do on average. It turns this sine into the cosine. Where both numbers of cycles are even, it only flips signs, and a preference may remain.",
  },
  {
    title: "A linear network",
    question: "Remove the down-sampling and the activation from the first network. Convolutions and a last layer remain, all linear. Which waves do its random weights prefer?",
    answers: ["None", "Coarse waves", "Fine waves"], right: 0,
    config: { ...DEFAULT, pooling: "none", activation: "none" }, cell: GRID,
    outcome: ({ energies, result }) => `None: the largest energy is ${spread(energies).toFixed(1)} times the average (with averages over 2 × 2 pixels it was far above it), and ` +
      `the network learns the wave (4, 4), at ${percent(result.accuracy)}. That needs the flat head: bet what a global average changes, and try it.`,
  },
];
