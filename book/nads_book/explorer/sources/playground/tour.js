// Five steps with a bet each

import { DEFAULT, cellOf, inWords, percent, times } from "./state.js";

const GRID = cellOf([4, 4]);
const ofLargest = (energies, cell) => Math.max(energies[cell], 0) / Math.max(...energies);
const sum = (energies) => energies.reduce((total, x) => total + Math.max(x, 0), 0);
/** Share of waves whose cycles are multiples of 4. */
const ofGrid = (energies) => sum(energies.filter((_, cell) => (cell >> 4) % 4 === 0 && cell % 4 === 0)) / sum(energies);

/** How much more energy the sine of one cycle across has than its cosine. */
const excess = (energies) => energies[SINE] / energies[COSINE] - 1;
const signedPercent = (x) => `${Math.abs(100 * x).toFixed(0)}\u00a0% ${x < 0 ? "less" : "more"}`;
const spread = (energies) => Math.max(...energies) / sum(energies) * energies.length;

const SINE = cellOf([0, 1]), COSINE = cellOf([0, -1]);
const STRIDES = { ...DEFAULT, pooling: "stride" };
const ACCURACIES = ["50\u00a0%: it guesses", "About 75\u00a0%", "About 100\u00a0%"];

/**
 * Each step: title, question, answers, index of the right one, what it shows (config, second, wave, whether that is trained), and what
 * was found: outcome({energies, second, result}) once the networks are drawn and trained. It is a text, and links
 * that act on the figure, [text, place in the drawing, {config, name} of the network if it is another].
 */
export const STEPS = [
  {
    title: "Averages over 2 × 2 pixels",
    question: "Two classes of images differ by the sign of a wave, 4 cycles down and 4 across, in noise. This network halves its image twice, by averages. " +
      "Which accuracy will it reach on new images?",
    answers: ACCURACIES, right: 0, config: DEFAULT, wave: [4, 4], trained: true,
    outcome: ({ energies, result }) => [`It reaches ${percent(result.accuracy)}. The map showed it before training: this wave has only ${times(ofLargest(energies, GRID))} ` +
      "of the largest energy. The first average leaves about half of its amplitude; then neighbours have opposite signs, and the second average cancels them.", ["first average", 1], ["second average", 2]],
  },
  {
    title: "Strides instead of averages",
    question: "Each convolution now keeps every second pixel, and nothing is averaged. All else is the same. Which accuracy now?",
    answers: ACCURACIES, right: 2, config: STRIDES, wave: [4, 4], trained: true,
    outcome: ({ energies, result }) => [`It reaches ${percent(result.accuracy)}. Every wave has at least ${percent(Math.min(...energies) / Math.max(...energies))} ` +
      `of the largest energy, and this one ${percent(ofLargest(energies, GRID))}. A stride keeps one pixel of four, and nothing cancels.`, ["second stride", 2], ["second average", 2, { config: DEFAULT, name: "bet 1’s network, with averages" }]],
  },
  {
    title: "Strides and a global average",
    question: "Keep the strides, but average each map over all places before the last layer, as ResNets do. Which waves will have energy?",
    answers: ["Coarse ones, in the middle", "A regular grid", "Fine ones, at the edge"], right: 1,
    config: { ...STRIDES, head: "global" }, wave: [4, 2],
    outcome: ({ energies }) => [`It is a grid: 16 of 256 waves, whose cycles are multiples of 4, hold ${percent(ofGrid(energies))} ` +
      "of the energy. Two strides keep every fourth pixel, where they are constant; the average removes most others. ResNet-18 has the same grid.", ["second stride", 2], ["global average", 3]],
  },
  {
    title: "Zeros or circular padding",
    question: `Averages again, with kernels of 5 × 5. The waves ${inWords(SINE)} and ${inWords(COSINE)} are sine and cosine of one frequency. With zeros around the image, ` +
      "these networks prefer the sine. Which do they prefer with circular padding, where the left edge continues at the right?",
    answers: ["The sine", "The cosine", "Neither"], right: 2,
    config: { ...DEFAULT, kernel: 5 }, second: ["padding", "circular"], wave: [0, 1],
    outcome: ({ energies, second }) => [`With zeros, the sine has ${signedPercent(excess(energies))} energy than the cosine; with circular padding, ${signedPercent(excess(second))}, ` +
      "within the sampling error. Shifted by 4 pixels, a quarter of its cycle, the sine is the cosine. Without a border, random networks respond to both alike."],
  },
  {
    title: "A linear network",
    question: "Remove down-sampling and activation from the first network. All that remains is linear. Which waves do its random weights prefer?",
    answers: ["None", "Coarse waves", "Fine waves"], right: 0,
    config: { ...DEFAULT, pooling: "none", activation: "none" }, wave: [4, 4], trained: true,
    outcome: ({ energies, result }) => [`They prefer none: the largest energy is only ${spread(energies).toFixed(1)} times the average, and the network learns the wave ${inWords(GRID)}, ` +
      `at ${percent(result.accuracy)}. In the playground, try what a global average changes.`, ["second layer", 2]],
  },
];
