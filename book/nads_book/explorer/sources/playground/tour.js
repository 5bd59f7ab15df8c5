// Five steps with a bet each

import { DEFAULT, cellOf } from "./state.js";

const GRID = cellOf([4, 4]);
const percent = (x) => `${(100 * x).toFixed(0)}\u00a0%`;
const ofLargest = (energies, cell) => Math.max(energies[cell], 0) / Math.max(...energies);
const shareOf = (energies, within) => {
  const sum = (cells) => cells.reduce((total, cell) => total + Math.max(energies[cell], 0), 0);
  const all = [...energies.keys()];
  return sum(all.filter(within)) / sum(all);
};

/** How much more energy the sine of one cycle across has than its cosine. */
const excess = (energies) => energies[cellOf([0, 1])] / energies[cellOf([0, -1])] - 1;
const signedPercent = (x) => `${Math.abs(100 * x).toFixed(0)}\u00a0% ${x < 0 ? "less" : "more"}`;
const spread = (energies) => Math.max(...energies) / (energies.reduce((sum, x) => sum + x, 0) / energies.length);

const STRIDES = { ...DEFAULT, pooling: "stride" }, ACCURACIES = ["50 %: it guesses", "About 75 %", "About 100 %"];

/**
 * Each step: title, question, answers, index of the right one, what it shows (config, second, trained cell), and what
 * was found: outcome({energies, second, result}) once the networks are drawn and trained. It is a list of texts and of
 * words that act on the figure, [text, place in the drawing, architecture].
 */
export const STEPS = [
  {
    title: "Averages over 2 × 2 pixels",
    question: "Two classes of images differ by a wave, 4 cycles down and 4 across, hidden in noise. This network halves its image twice, by averages. " +
      "Which accuracy will it reach on new images?",
    answers: ACCURACIES, right: 0, config: DEFAULT, cell: GRID,
    outcome: ({ energies, result }) => [`It reaches ${percent(result.accuracy)}. The map showed it before any training: random networks hardly respond to ` +
      `this wave, with ${(100 * ofLargest(energies, GRID)).toFixed(1)}\u00a0% of the largest energy. Click to see why: the `, ["first average", 1, DEFAULT],
      " leaves half of the wave, the ", ["second average", 2, DEFAULT], " nothing. ", ["With strides", 2, STRIDES], " it stays."],
  },
  {
    title: "Strides instead of averages",
    question: "Each convolution now keeps every second pixel, and nothing is averaged. The wave, the noise and the rest of the network are the same. Which accuracy now?",
    answers: ACCURACIES, right: 2, config: STRIDES, cell: GRID,
    outcome: ({ energies, result }) => [`It reaches ${percent(result.accuracy)}. Every wave has at least ${percent(Math.min(...energies) / Math.max(...energies))} ` +
      `of the largest energy, and this one ${percent(ofLargest(energies, GRID))}. It passes the `, ["second stride", 2, STRIDES],
      " and vanishes in the ", ["second average", 2, DEFAULT], ": one change of the architecture decides what is seen and learned."],
  },
  {
    title: "Strides and a global average",
    question: "Keep the strides, but average each map over all places before the last layer, as ResNets do. Which waves will have energy?",
    answers: ["Coarse ones, in the middle", "A regular grid", "Fine ones, at the edge"], right: 1,
    config: { ...STRIDES, head: "global" }, wave: [4, 2],
    outcome: ({ energies }) => [`Waves whose cycles are multiples of 4 hold ${percent(shareOf(energies, (cell) => (cell >> 4) % 4 === 0 && cell % 4 === 0))} ` +
      "of the energy, and are 16 of 256. Two strides keep every fourth pixel, on which such a wave is constant. Another one passes ",
      ["both strides", 2, { ...STRIDES, head: "global" }], ", then the ", ["global average", 3, { ...STRIDES, head: "global" }], " removes most of it. ResNet-18 has the same comb."],
  },
  {
    title: "Zeros or circular padding",
    question: "Averages again, with kernels of 5 × 5. The waves (0, 1) and (0, −1) are sine and cosine of one frequency. With zeros around the image, " +
      "these networks prefer the sine. And with circular padding, where the left edge continues at the right?",
    answers: ["The sine", "The cosine", "Neither"], right: 2,
    config: { ...DEFAULT, kernel: 5 }, second: ["padding", "circular"], wave: [0, 1],
    outcome: ({ energies, second }) => [`With zeros, the sine has ${signedPercent(excess(energies))} energy than the cosine; with circular padding, ${signedPercent(excess(second))}, ` +
      "within the sampling error. Without a border, a shift by 4 pixels, the grid of both poolings, changes nothing on average, and turns this sine into the cosine."],
  },
  {
    title: "A linear network",
    question: "Remove down-sampling and activation from the first network. Convolutions and a last layer remain, all linear. Which waves do its random weights prefer?",
    answers: ["None", "Coarse waves", "Fine waves"], right: 0,
    config: { ...DEFAULT, pooling: "none", activation: "none" }, cell: GRID,
    outcome: ({ energies, result }) => [`None: the largest energy is ${spread(energies).toFixed(1)} times the average, and the network learns the wave (4, 4), ` +
      `at ${percent(result.accuracy)}. `, ["The layers", 2, { ...DEFAULT, pooling: "none", activation: "none" }], " leave all waves alike. What does a global average change? Try it."],
  },
];
