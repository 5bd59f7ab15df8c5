// Training on D(v): images +-v with noise across v, in two classes

import { Network, PIXELS, drawWeights, multiplications } from "./engine.js";
import { bits, gaussians, keyOf, shuffled } from "./random.js";

export const RECIPE = { samples: 512, epochs: 20, batch: 32, rate: 0.5, clip: 0.5, noise: 0.7, test: 512 };
const MOST = 2e10; // multiplications of a training, which has fewer epochs where the network is large
const TRAIN = 3, TEST = 4, ORDER = 5; // purposes of random streams; `engine.js` has the others

/** Images (count, PIXELS) and labels (count,) of D(v): x = y v + w, with w ~ N(0, noise^2 (I - v v^T)), y = -1 or 1. */
export function samples(wave, noise, seed, purpose, count, paired = false) {
  const key = keyOf(seed, purpose), different = paired ? count / 2 : count;
  const clouds = gaussians(key, different * PIXELS), images = new Float32Array(count * PIXELS);
  const labels = new Int8Array(count), labelKey = keyOf(seed, purpose, 1);
  for (let n = 0; n < count; n++) {
    const cloud = clouds.subarray((n % different) * PIXELS, (n % different + 1) * PIXELS);
    labels[n] = paired ? +(n >= different) : bits(labelKey, n) >>> 31;
    let along = 0;
    for (let i = 0; i < PIXELS; i++) along += cloud[i] * wave[i];
    const shift = 2 * labels[n] - 1 - noise * along;
    for (let i = 0; i < PIXELS; i++) images[n * PIXELS + i] = noise * cloud[i] + shift * wave[i];
  }
  return { images, labels };
}

/** Share of images that the network classifies correctly. */
function accuracy(network, { images, labels }) {
  const { lanes } = network;
  let right = 0;
  for (let start = 0; start < labels.length; start += lanes) {
    network.forward((l, i) => images[(start + l) * PIXELS + i]);
    const logits = network.evaluate();
    for (let l = 0; l < lanes; l++) right += (logits[lanes + l] > logits[l]) === (labels[start + l] === 1);
  }
  return right / labels.length;
}

/** Write the gradient of the cross-entropy of logits (2, lanes). */
function slopesOf(logits, labels, gradient) {
  const lanes = labels.length;
  for (let l = 0; l < lanes; l++) {
    const sign = 1 - 2 * labels[l], margin = sign * (logits[l] - logits[lanes + l]);
    gradient[lanes + l] = sign / (1 + Math.exp(margin)) / lanes; // times the probability of the other class
    gradient[l] = -gradient[lanes + l];
  }
}

/** Epochs that fit the time. */
export const epochsOf = (config, wanted = RECIPE.epochs) =>
  Math.max(1, Math.floor(wanted * Math.min(1, MOST / (3 * RECIPE.samples * RECIPE.epochs * multiplications(config)))));

/** Order of the samples in an epoch. */
export const orderOf = (seed, epoch) => shuffled(keyOf(seed, ORDER, epoch), RECIPE.samples);

/**
 * One network while it is trained: stochastic gradient descent with clipped gradients, and a rate that falls linearly to
 * zero. It begins at its random weights; `advance` trains for one epoch, and returns the accuracy on all test images.
 */
export class Training {
  epoch = 0;

  constructor(config, wave, { seed = 0, rate = RECIPE.rate, noise = RECIPE.noise, epochs = epochsOf(config), network = null } = {}) {
    Object.assign(this, { config, seed, rate, epochs });
    this.network = network ?? new Network(config, { outputs: 2, lanes: RECIPE.batch });
    this.data = samples(wave, noise, seed, TRAIN, RECIPE.samples);
    this.test = samples(wave, noise, seed, TEST, RECIPE.test, true);
    this.weights = drawWeights(config, 2, seed, 0);
  }

  advance() {
    const { samples: count, batch, clip } = RECIPE, { network, weights, data, rate } = this;
    const order = orderOf(this.seed, this.epoch), steps = (this.epochs * count) / batch;
    const labels = new Int8Array(batch), gradient = new Float32Array(2 * batch);
    for (let start = 0, step = (this.epoch * count) / batch; start < count; start += batch, step++) {
      network.load(weights);
      network.forward((l, i) => data.images[order[start + l] * PIXELS + i]);
      for (let l = 0; l < batch; l++) labels[l] = data.labels[order[start + l]];
      slopesOf(network.evaluate(), labels, gradient);
      const slopes = network.weightGradient(gradient);
      let norm = 0;
      for (const slope of slopes) norm += slope * slope;
      const factor = rate * (1 - step / steps) * Math.min(1, clip / (Math.sqrt(norm) + 1e-6));
      for (let i = 0; i < weights.length; i++) weights[i] -= factor * slopes[i];
    }
    this.epoch++;
    network.load(weights);
    return accuracy(network, this.test);
  }
}
