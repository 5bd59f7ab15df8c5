// The playground's networks: outputs, input gradients, weight gradients and training. Nothing here knows a page.
//
// Arrays are (channel, row, column, lane), where a lane is one image: every loop runs over the lanes last, so that the
// kernels take four images at a time. Weights are one array in PyTorch's order: for each convolution (out, in, row,
// column) and its bias, then those of the linear layer.

import { Heap } from "./kernels.js";
import { gaussians, keyOf, uniformAt } from "./random.js";

export const SIDE = 16, PIXELS = SIDE * SIDE;
export const INPUTS = 16; // per network, in opposite pairs
export const READOUTS = 4; // last layers of one network, which share a forward pass
export const CHOICES = {
  blocks: [1, 2, 3], channels: [4, 8, 16], kernel: [3, 5], pooling: ["none", "average", "max", "stride"],
  activation: ["relu", "tanh", "none"], head: ["flat", "global"], skip: [false, true], padding: ["zeros", "circular"],
};
export const NETWORKS = 8; // that a worker draws at a time
const HEAP = 2 ** 24; // bytes, enough for the largest network and 32 lanes
const MEANS = 2 * READOUTS; // lanes of the gradient at the first layer: two means over inputs for each readout
const WEIGHTS = 0, IMAGES = 1, READOUT = 2; // purposes of random streams; `train.js` has others

/** Sizes of each block: inputs, side of its input, side after its convolution and after its pooling. */
export function shapesOf({ blocks, channels, pooling }) {
  const halves = pooling === "none" ? 1 : 2;
  return Array.from({ length: blocks }, (_, b) => {
    const side = SIDE / halves ** b, pooled = side / halves;
    return { inputs: b ? channels : 1, side, out: pooling === "stride" ? pooled : side, pooled };
  });
}

/** Multiplications of one forward pass of one image through the convolutions. */
export const multiplications = (config) =>
  shapesOf(config).reduce((sum, { inputs, out }) => sum + inputs * config.channels * config.kernel ** 2 * out ** 2, 0);

/** Number of features that the last layer reads. */
export const featuresOf = (config) =>
  config.channels * (config.head === "global" ? 1 : shapesOf(config).at(-1).pooled ** 2);

/** Shapes of all parameters, and the number of inputs of each sum, which fixes the bound of PyTorch's default. */
export function parametersOf(config, outputs) {
  const { channels, kernel } = config, features = featuresOf(config);
  const layers = shapesOf(config).map(({ inputs }) => [channels * inputs * kernel ** 2, channels, inputs * kernel ** 2]);
  return [...layers, [outputs * features, outputs, features]].flatMap(([weights, biases, fanIn]) =>
    [weights, biases].map((size) => ({ size, fanIn })));
}

/** Draw the weights of network `index`: uniform within 1 / sqrt(fan in), weights and biases. */
export function drawWeights(config, outputs, seed, index) {
  const key = keyOf(seed, WEIGHTS, index), parameters = parametersOf(config, outputs);
  const weights = new Float32Array(parameters.reduce((sum, { size }) => sum + size, 0));
  let i = 0;
  for (const { size, fanIn } of parameters)
    for (const end = i + size; i < end; i++) weights[i] = (2 * uniformAt(key, i) - 1) / Math.sqrt(fanIn);
  return weights;
}

/** Networks of one architecture, one at a time: `load` weights, then ask. */
export class Network {
  constructor(config, { outputs = 1, lanes = INPUTS, plain = false } = {}) {
    Object.assign(this, { config, outputs, lanes, heap: new Heap(HEAP, plain) });
    const { heap } = this, { channels, kernel } = config;
    const pad = (kernel - 1) / 2, stride = config.pooling === "stride" ? 2 : 1;
    this.zeros = heap.words(Math.max(channels, channels * shapesOf(config).at(-1).pooled ** 2));
    this.layers = shapesOf(config).map(({ inputs, side, out, pooled }, b) => {
      const layer = { inputs, side, out, pooled, pad, stride, outs: channels, numWeights: inputs * kernel ** 2 };
      const padded = channels * (out + 2 * pad) ** 2;
      layer.lanes = b ? lanes : MEANS; // of the gradient that is carried back through the convolution
      layer.rows = b ? inputs : 4; // one input, in a group of four for the kernels
      layer.x = heap.words(inputs * (side + 2 * pad) ** 2 * lanes); // input, padded
      layer.d = heap.words(channels * out ** 2 * lanes); // result of the convolution, then derivative of what follows
      layer.g = heap.words(padded * lanes); // gradient of the convolution's result, padded
      layer.carried = b ? layer.g : heap.words(padded * MEANS); // what is carried back, here its means
      layer.back = heap.words(layer.rows * side ** 2 * layer.lanes); // gradient of the input
      layer.w = heap.words(layer.numWeights * channels);
      layer.bias = heap.words(channels);
      layer.dw = heap.words((layer.numWeights + 1) * channels);
      layer.forward = this.forwardTables(layer, 0);
      layer.both = this.forwardTables(layer, pad);
      layer.backward = this.backwardTables(layer);
      layer.members = out === pooled ? [0] : [0, lanes, out * lanes, (out + 1) * lanes];
      layer.windows = this.windowTable(layer, b === config.blocks - 1 ? 0 : pad);
      layer.unpool = this.unpoolTable(layer, lanes);
      layer.average = this.unpoolTable(layer, MEANS);
      return layer;
    });
    const last = this.layers.at(-1);
    this.size = channels * last.pooled ** 2; // features before the global average
    this.averaged = config.head === "global" ? last.pooled ** 2 : 1; // features per weight of the head
    const rows = (this.rows = 4 * Math.ceil(outputs / 4)); // outputs, in groups of four for the kernels
    this.features = heap.words(this.size * lanes);
    this.dFeatures = heap.words(this.size * lanes);
    this.logits = heap.words(rows * lanes);
    this.dLogits = heap.words(rows * lanes);
    this.head = heap.words(this.size * rows);
    this.headBias = heap.words(rows);
    this.headBack = heap.words(this.size * rows);
    this.dHead = heap.words((this.size + 1) * rows);
    this.headTables = this.tables([[0, 0]], Array.from({ length: this.size }, (_, f) => f * lanes));
    this.headBackTables = this.tables([[0, 0]], Array.from({ length: outputs }, (_, o) => o * lanes));
  }

  /** Tables of the kernels; the taps are filled up to an even number, whose last result nobody reads. */
  tables(positions, taps) {
    const { heap } = this, even = taps.length % 2 ? [...taps, taps[0]] : taps;
    return { positions: heap.table(positions.flat()), count: positions.length, taps: heap.table(even), numTaps: taps.length };
  }

  forwardTables({ inputs, side, out, pad, stride }, margin) {
    const { lanes, config: { kernel } } = this, padded = side + 2 * pad, width = out + 2 * margin;
    const positions = [], taps = [];
    for (let y = 0; y < out; y++)
      for (let x = 0; x < out; x++)
        positions.push([stride * (y * padded + x) * lanes, ((y + margin) * width + x + margin) * lanes]);
    for (let c = 0; c < inputs; c++)
      for (let dy = 0; dy < kernel; dy++)
        for (let dx = 0; dx < kernel; dx++) taps.push(((c * padded + dy) * padded + dx) * lanes);
    return this.tables(positions, taps);
  }

  /** The transposed convolution: input pixels of one parity are reached by the same taps, which are summed by one call. */
  backwardTables({ rows, outs, side, out, pad, stride, lanes }) {
    const { heap, config: { kernel } } = this, padded = out + 2 * pad, parts = [];
    for (let py = 0; py < stride; py++)
      for (let px = 0; px < stride; px++) {
        const positions = [], taps = [], sources = [];
        for (let y = py; y < side; y += stride)
          for (let x = px; x < side; x += stride)
            positions.push([((y - py) * padded + x - px) / stride * lanes, (y * side + x) * lanes]);
        for (let o = 0; o < outs; o++)
          for (let dy = (py + pad) % stride; dy < kernel; dy += stride)
            for (let dx = (px + pad) % stride; dx < kernel; dx += stride) {
              const row = (py + pad - dy) / stride + pad, column = (px + pad - dx) / stride + pad;
              taps.push(((o * padded + row) * padded + column) * lanes);
              sources.push([o, dy * kernel + dx]);
            }
        parts.push({ ...this.tables(positions, taps), sources, w: heap.words(taps.length * rows) });
      }
    return parts;
  }

  /** For each pooled pixel: the first pixel of its window, and its place in the next, padded input. */
  windowTable({ outs, out, pooled }, margin) {
    const { lanes, heap } = this, width = pooled + 2 * margin, step = out / pooled, entries = [];
    for (let c = 0; c < outs; c++)
      for (let y = 0; y < pooled; y++)
        for (let x = 0; x < pooled; x++)
          entries.push(((c * out + step * y) * out + step * x) * lanes, ((c * width + y + margin) * width + x + margin) * lanes);
    return { table: heap.table(entries), count: entries.length / 2 };
  }

  /** For each pixel of a convolution's result: its derivative, its padded gradient, and the pooled pixel that it is in. */
  unpoolTable({ outs, out, pooled, pad }, lanes) {
    const width = out + 2 * pad, step = out / pooled, entries = [];
    for (let c = 0; c < outs; c++)
      for (let y = 0; y < out; y++)
        for (let x = 0; x < out; x++) {
          const window = (c * pooled + Math.floor(y / step)) * pooled + Math.floor(x / step);
          entries.push(((c * out + y) * out + x) * this.lanes, ((c * width + y + pad) * width + x + pad) * lanes,
            window * this.lanes);
        }
    return { table: this.heap.table(entries), count: entries.length / 3 };
  }

  /** Use these weights. A skip connection adds its input to the convolution's result: 1 in the middle of a kernel. */
  load(weights) {
    const { heap: { f32 }, config: { kernel, skip }, outputs, size, averaged } = this, area = kernel ** 2;
    let at = 0;
    for (const layer of this.layers) {
      const { inputs, outs, numWeights, rows } = layer, middle = (area - 1) / 2;
      layer.at = at;
      const weight = (o, c, d) => weights[layer.at + (o * inputs + c) * area + d] +
        (skip && d === middle && (inputs === 1 || o === c) ? 1 : 0);
      for (let o = 0; o < outs; o++)
        for (let t = 0; t < numWeights; t++) f32[layer.w + t * outs + o] = weight(o, Math.floor(t / area), t % area);
      f32.set(weights.subarray(at + outs * numWeights, at + outs * (numWeights + 1)), layer.bias);
      for (const { sources, w } of layer.backward)
        sources.forEach(([o, d], t) => {
          for (let c = 0; c < inputs; c++) f32[w + t * rows + c] = weight(o, c, d);
        });
      at += outs * (numWeights + 1);
    }
    this.at = at;
    for (let o = 0; o < outputs; o++) {
      for (let f = 0; f < size; f++) {
        const weight = weights[at + o * (size / averaged) + Math.floor(f / averaged)] / averaged;
        f32[this.head + f * this.rows + o] = f32[this.headBack + o * size + f] = weight;
      }
      f32[this.headBias + o] = weights[at + outputs * (size / averaged) + o];
    }
  }

  /** Run images through all blocks; `pixel(lane, i)` is one number of an image. */
  forward(pixel) {
    const { heap, lanes, layers, config: { activation, pooling } } = this, { f32 } = heap;
    const [first] = layers, padded = SIDE + 2 * first.pad;
    for (let y = 0; y < SIDE; y++)
      for (let x = 0; x < SIDE; x++) {
        const to = first.x + ((y + first.pad) * padded + x + first.pad) * lanes;
        for (let l = 0; l < lanes; l++) f32[to + l] = pixel(l, y * SIDE + x);
      }
    layers.forEach((layer, b) => {
      const { inputs, outs, side, out, pad } = layer, result = layers[b + 1]?.x ?? this.features;
      this.wrap(layer.x, inputs, side, pad, lanes);
      heap.gather(layer.x, layer.d, layer.w, layer.bias, layer.forward, outs, out ** 2 * lanes, lanes);
      heap.activate(layer.d, result, layer.windows, lanes, layer.members, activation, pooling);
    });
  }

  /** Fill the margin of padded planes (planes, side + 2 pad, side + 2 pad, lanes); with zeros it stays as it was made. */
  wrap(start, planes, side, pad, lanes) {
    if (this.config.padding !== "circular") return;
    const { heap: { f32 } } = this, width = side + 2 * pad, inside = (i) => ((i - pad + 2 * side) % side) + pad;
    for (let c = 0; c < planes; c++)
      for (let y = 0; y < width; y++)
        for (let x = 0; x < width; x++) {
          const row = inside(y), column = inside(x);
          if (row === y && column === x) continue;
          const from = start + ((c * width + row) * width + column) * lanes;
          f32.copyWithin(start + ((c * width + y) * width + x) * lanes, from, from + lanes);
        }
  }

  /** The gradient of a block's input (inputs, side, side, lanes) from that before its activation. */
  transpose(layer) {
    const { rows, side, out, outs, pad, lanes, carried, back } = layer;
    this.wrap(carried, outs, out, pad, lanes);
    for (const part of layer.backward)
      this.heap.gather(carried, back, part.w, this.zeros, part, rows, side ** 2 * lanes, lanes);
  }

  /** Outputs (outputs, lanes) of the images that `forward` has seen. */
  evaluate() {
    const { heap, lanes, outputs, rows } = this;
    heap.gather(this.features, this.logits, this.head, this.headBias, this.headTables, rows, lanes, lanes);
    return heap.f32.subarray(this.logits, this.logits + outputs * lanes);
  }

  /**
   * Input gradients for up to READOUTS last layers (readouts, features), after `forward`: for each readout the means over
   * both halves of the lanes, (readouts, 2, PIXELS). The first layer is linear, so the means are taken before it.
   */
  inputGradients(readouts) {
    const { heap, lanes, layers, size, averaged } = this, { f32 } = heap, [first] = layers;
    const features = size / averaged, count = readouts.length / features;
    for (let r = 0; r < count; r++) {
      for (let f = 0; f < size; f++)
        f32.fill(readouts[r * features + Math.floor(f / averaged)] / averaged, this.dFeatures + f * lanes, this.dFeatures + (f + 1) * lanes);
      let gradient = this.dFeatures;
      for (const layer of layers.slice(1).reverse()) {
        heap.multiply(layer.d, layer.g, gradient, layer.unpool, lanes);
        this.transpose(layer);
        gradient = layer.back;
      }
      heap.average(first.d, first.carried + 2 * r, gradient, first.average, lanes);
    }
    this.transpose(first);
    const result = new Float32Array(count * 2 * PIXELS);
    for (let i = 0; i < result.length; i++) result[i] = f32[first.back + (i % PIXELS) * MEANS + (i >> 8)];
    return result;
  }

  /**
   * The gradient of the weights, in their order, from that of the outputs (outputs, lanes), after `forward`; a new array.
   */
  weightGradient(dOutputs) {
    const { heap, lanes, layers, outputs, rows, size, averaged } = this, { f32 } = heap;
    const features = size / averaged, result = new Float32Array(this.at + outputs * (features + 1));
    f32.set(dOutputs, this.dLogits);
    heap.correlate(this.features, this.dLogits, this.dHead, this.headTables, rows, lanes, lanes);
    for (let o = 0; o < outputs; o++) {
      for (let f = 0; f < size; f++)
        result[this.at + o * features + Math.floor(f / averaged)] += f32[this.dHead + f * rows + o] / averaged;
      result[this.at + outputs * features + o] = sumOf(dOutputs, o * lanes, lanes);
    }
    heap.gather(this.dLogits, this.dFeatures, this.headBack, this.zeros, this.headBackTables, size, lanes, lanes);
    for (let b = layers.length - 1; b >= 0; b--) {
      const layer = layers[b], { outs, numWeights, out, pad } = layer, width = out + 2 * pad;
      heap.multiply(layer.d, layer.g, layers[b + 1]?.back ?? this.dFeatures, layer.unpool, lanes);
      heap.correlate(layer.x, layer.g, layer.dw, layer.both, outs, width ** 2 * lanes, lanes);
      for (let o = 0; o < outs; o++) {
        for (let t = 0; t < numWeights; t++) result[layer.at + o * numWeights + t] = f32[layer.dw + t * outs + o];
        let bias = 0;
        for (let y = 0; y < out; y++)
          bias += sumOf(f32, layer.g + ((o * width + y + pad) * width + pad) * lanes, out * lanes);
        result[layer.at + outs * numWeights + o] = bias;
      }
      if (b) this.transpose(layer);
    }
    return result;
  }
}

function sumOf(values, start, count) {
  let sum = 0;
  for (let i = start; i < start + count; i++) sum += values[i];
  return sum;
}

/** What network `index` contributes to the second moment: (READOUTS, 2, PIXELS), means over halves of its inputs. */
export function contributions(network, seed, index) {
  const { config, lanes } = network, features = featuresOf(config), key = keyOf(seed, READOUT, index);
  const noise = gaussians(keyOf(seed, IMAGES, index), (lanes / 2) * PIXELS);
  network.load(drawWeights(config, 1, seed, index));
  network.forward((lane, pixel) => (lane % 2 ? -1 : 1) * noise[(lane >> 1) * PIXELS + pixel]);
  const readouts = new Float32Array(READOUTS * features);
  for (let i = 0; i < readouts.length; i++) readouts[i] = (2 * uniformAt(key, i) - 1) / Math.sqrt(features);
  return network.inputGradients(readouts);
}

/** Sums of x y^T over the contributions x and y of some networks, (PIXELS, PIXELS). */
export class Moments {
  constructor(plain = false) {
    const vectors = NETWORKS * READOUTS, pixels = Int32Array.from({ length: PIXELS }, (_, i) => i * vectors);
    this.heap = new Heap(2 ** 19, plain);
    this.halves = [0, 1].map(() => this.heap.words(PIXELS * vectors)); // (PIXELS, vectors)
    this.sums = this.heap.words(PIXELS * PIXELS);
    this.tables = { positions: this.heap.table([0, 0]), count: 1, taps: this.heap.table(pixels), numTaps: PIXELS };
  }

  /** Take in network `index + place`, for place from 0 to NETWORKS - 1. */
  add(network, seed, index, place) {
    const { heap, halves: [x, y] } = this, vectors = NETWORKS * READOUTS, found = contributions(network, seed, index + place);
    for (let r = 0; r < READOUTS; r++)
      for (let i = 0; i < PIXELS; i++) {
        heap.f32[x + i * vectors + place * READOUTS + r] = found[2 * r * PIXELS + i];
        heap.f32[y + i * vectors + place * READOUTS + r] = found[(2 * r + 1) * PIXELS + i];
      }
  }

  /** The sum over all places: one half of a symmetric matrix, whose other half is its transpose. */
  sum() {
    const { heap, halves: [x, y], sums } = this, vectors = NETWORKS * READOUTS;
    heap.correlate(y, x, sums, this.tables, PIXELS, vectors, vectors);
    return heap.f32.slice(sums, sums + PIXELS * PIXELS).map((sum) => sum / READOUTS);
  }
}
