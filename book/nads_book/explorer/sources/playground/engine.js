// The playground's networks: outputs, input gradients, weight gradients and training. Nothing here knows a page.
//
// Arrays are (channel, row, column, lane), where a lane is one image: every loop runs over the lanes last, so that the
// kernels take four images at a time. Weights are one array in PyTorch's order: for each convolution (out, in, row,
// column) and its bias, then those of the linear layer.

import { Heap } from "./kernels.js";
import { gaussians, keyOf, uniformAt } from "./random.js";

export const SIDE = 16, PIXELS = SIDE * SIDE;
export const IMAGES = 1; // purpose of random streams
export const INPUTS = 16; // per network, in opposite pairs
export const READOUTS = 4; // last layers of one network, which share a forward pass
export const CHOICES = {
  layers: ["convolution", "patches", "dense"], blocks: [1, 2, 3], channels: [4, 8, 16], kernel: [3, 5],
  pooling: ["none", "average", "max", "stride"], activation: ["relu", "tanh", "none"], norm: ["none", "layer"],
  head: ["flat", "global"], skip: [false, true], padding: ["zeros", "circular"],
};
// Chips without a meaning for other layers than convolutions, and maps for each channel of the chip
const FIXED = { kernel: 3, pooling: "none", padding: "zeros" };
const KINDS = {
  convolution: { fixed: {}, width: 1 },
  patches: { fixed: FIXED, width: 4, kernel: 4 },
  dense: { fixed: { ...FIXED, head: "flat" }, width: 8, kernel: 16 },
};
export const NETWORKS = 10; // that a worker draws at a time
const HEAP = 2 ** 24; // bytes, enough for the largest network and 32 lanes
const MEANS = 2 * READOUTS; // lanes of the gradient at the first layer: two means over inputs for each readout
const WEIGHTS = 0, READOUT = 2; // purposes of random streams; `train.js` has others

/** Whether a chip matters to this architecture. */
export const matters = (config, key) => !(key in KINDS[config.layers].fixed);

/** An architecture whose chips without a meaning have one value. */
export const canonical = (config) => ({ ...config, ...KINDS[config.layers].fixed });

/**
 * The layers of an architecture: their inputs and outputs (maps), kernel, stride and margin, the sides of their input, of
 * their result and of what pooling leaves of it. One that mixes has all pixels of a map as its inputs, the same for each map.
 */
export function layersOf({ layers, blocks, channels, kernel, pooling, skip }) {
  const { width, kernel: patch } = KINDS[layers], outs = channels * width;
  if (layers === "convolution") {
    const halves = pooling === "none" ? 1 : 2, stride = pooling === "stride" ? 2 : 1;
    return Array.from({ length: blocks }, (_, b) => {
      const side = SIDE / halves ** b, pooled = side / halves;
      return { inputs: b ? outs : 1, outs, kernel, stride, pad: (kernel - 1) / 2, side, out: side / stride, pooled, skip };
    });
  }
  const side = SIDE / patch, next = { inputs: outs, outs, kernel: 1, stride: 1, pad: 0, side, out: side, pooled: side, skip };
  const block = layers === "patches" ? [{ ...next, mixes: true }, next] : [next];
  const first = { ...next, inputs: 1, kernel: patch, stride: patch, side: SIDE, skip: false };
  return [first, ...Array(blocks - (layers === "dense")).fill(block).flat()];
}

/** Weights of each output of a layer. */
const fanIn = ({ mixes, inputs, kernel, side }) => (mixes ? side ** 2 : inputs * kernel ** 2);
const unitsOf = ({ mixes, outs, side }) => (mixes ? side ** 2 : outs);

/** Multiplications of one forward pass of one image through all layers but the last. */
export const multiplications = (config) =>
  layersOf(config).reduce((sum, layer) => sum + layer.outs * layer.out ** 2 * fanIn(layer), 0);

/** Number of features that the last layer reads. */
export function featuresOf(config) {
  const { outs, pooled } = layersOf(config).at(-1);
  return outs * (config.head === "global" ? 1 : pooled ** 2);
}

/** Shapes of all parameters, and the number of inputs of each sum, which fixes the bound of PyTorch's default. */
export function parametersOf(config, outputs) {
  const layers = layersOf(config).map((layer) => [unitsOf(layer), fanIn(layer)]);
  return [...layers, [outputs, featuresOf(config)]].flatMap(([units, inputs]) =>
    [units * inputs, units].map((size) => ({ size, fanIn: inputs })));
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
  constructor(given, { outputs = 1, lanes = INPUTS } = {}) {
    const config = canonical(given);
    Object.assign(this, { config, outputs, lanes, heap: new Heap(HEAP) });
    const { heap } = this, plan = layersOf(config), most = plan.at(-1);
    this.zeros = heap.words(Math.max(most.outs, most.outs * most.pooled ** 2));
    this.layers = plan.map((shape, b) => {
      const { mixes, inputs, outs, side, out, pooled, pad } = shape, layer = { ...shape, numWeights: fanIn(shape), units: unitsOf(shape) };
      const padded = outs * (out + 2 * pad) ** 2;
      layer.lanes = b ? lanes : MEANS; // of the gradient that is carried back through the layer
      layer.rows = mixes ? side ** 2 : b ? inputs : 4; // one input, in a group of four for the kernels
      layer.planes = mixes ? Array(3).fill(lanes) // distances between results of one position: forward, padded, and back
        : [out ** 2 * lanes, (out + 2 * pad) ** 2 * lanes, side ** 2 * layer.lanes];
      layer.x = heap.words(inputs * (side + 2 * pad) ** 2 * lanes); // input, padded
      layer.d = heap.words(outs * out ** 2 * lanes); // result, then derivative of what follows
      layer.n = config.norm === "none" ? 0 : heap.words(outs * out ** 2 * lanes); // normalised result
      layer.deviations = new Float64Array(lanes);
      layer.g = heap.words(padded * lanes); // gradient of the result, padded
      layer.carried = b ? layer.g : heap.words(padded * MEANS); // what is carried back, here its means
      layer.back = heap.words((mixes ? outs : layer.rows) * side ** 2 * layer.lanes); // gradient of the input
      layer.w = heap.words(layer.numWeights * layer.units);
      layer.bias = heap.words(layer.units);
      layer.dw = heap.words((layer.numWeights + 1) * layer.units);
      layer.forward = this.forwardTables(layer, 0);
      layer.both = this.forwardTables(layer, pad);
      layer.backward = this.backwardTables(layer);
      layer.members = out === pooled ? [0] : [0, lanes, out * lanes, (out + 1) * lanes];
      layer.windows = this.windowTable(layer, plan[b + 1]?.pad ?? 0);
      layer.unpool = this.unpoolTable(layer);
      return layer;
    });
    const last = this.layers.at(-1);
    this.size = last.outs * last.pooled ** 2; // features before the global average
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

  /** All pixels of each map, for a layer that mixes them. */
  mixingTables({ outs, side }) {
    const { lanes } = this, maps = Array.from({ length: outs }, (_, c) => Array(2).fill(c * side ** 2 * lanes));
    return this.tables(maps, Array.from({ length: side ** 2 }, (_, t) => t * lanes));
  }

  forwardTables(layer, margin) {
    if (layer.mixes) return this.mixingTables(layer);
    const { inputs, kernel, side, out, pad, stride } = layer, { lanes } = this, padded = side + 2 * pad, width = out + 2 * margin;
    const positions = [], taps = [];
    for (let y = 0; y < out; y++)
      for (let x = 0; x < out; x++)
        positions.push([stride * (y * padded + x) * lanes, ((y + margin) * width + x + margin) * lanes]);
    for (let c = 0; c < inputs; c++)
      for (let dy = 0; dy < kernel; dy++)
        for (let dx = 0; dx < kernel; dx++) taps.push(((c * padded + dy) * padded + dx) * lanes);
    return this.tables(positions, taps);
  }

  /** The transposed layer: input pixels of one parity are reached by the same taps, which are summed by one call. */
  backwardTables(layer) {
    const { mixes, rows, outs, kernel, side, out, pad, stride, lanes } = layer, { heap } = this, padded = out + 2 * pad, parts = [];
    if (mixes)
      return [{ ...this.mixingTables(layer), sources: Array.from({ length: rows }, (_, o) => [o, 0]), w: heap.words(rows ** 2) }];
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

  /** For each pixel of a layer's result: its derivative, its padded gradient, and the pooled pixel that it is in. */
  unpoolTable({ outs, out, pooled, pad }) {
    const { lanes, heap } = this, width = out + 2 * pad, step = out / pooled, entries = [];
    for (let c = 0; c < outs; c++)
      for (let y = 0; y < out; y++)
        for (let x = 0; x < out; x++) {
          const window = (c * pooled + Math.floor(y / step)) * pooled + Math.floor(x / step);
          entries.push(((c * out + y) * out + x) * lanes, ((c * width + y + pad) * width + x + pad) * lanes, window * lanes);
        }
    return { table: heap.table(entries), count: entries.length / 3 };
  }

  /** Use these weights. A skip connection adds its input to the layer's result: 1 in the middle of a kernel. */
  load(weights) {
    const { heap: { f32 }, outputs, size, averaged } = this;
    let at = 0;
    for (const layer of this.layers) {
      const { mixes, inputs, units, numWeights, rows, skip, kernel } = layer, area = mixes ? 1 : kernel ** 2, middle = (area - 1) / 2;
      layer.at = at;
      const columns = numWeights / area; // inputs of the layer
      const weight = (o, c, d) => weights[layer.at + (o * columns + c) * area + d] +
        (skip && d === middle && (inputs === 1 || o === c) ? 1 : 0);
      for (let o = 0; o < units; o++)
        for (let t = 0; t < numWeights; t++) f32[layer.w + t * units + o] = weight(o, Math.floor(t / area), t % area);
      f32.set(weights.subarray(at + units * numWeights, at + units * (numWeights + 1)), layer.bias);
      for (const { sources, w } of layer.backward)
        sources.forEach(([o, d], t) => {
          for (let c = 0; c < columns; c++) f32[w + t * rows + c] = weight(o, c, d);
        });
      at += units * (numWeights + 1);
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

  /** Give all lanes of the first layer their images; `pixel(lane, i)` is one number of an image. */
  put(pixel) {
    const { heap: { f32 }, lanes, layers: [{ x: start, pad }] } = this, padded = SIDE + 2 * pad;
    for (let y = 0; y < SIDE; y++)
      for (let x = 0; x < SIDE; x++) {
        const to = start + ((y + pad) * padded + x + pad) * lanes;
        for (let l = 0; l < lanes; l++) f32[to + l] = pixel(l, y * SIDE + x);
      }
  }

  /** Apply a layer without its activation: write its result at `to`. */
  apply({ x, w, bias, forward, units, inputs, side, pad, planes }, to, linear = false) {
    this.wrap(x, inputs, side, pad, this.lanes);
    this.heap.gather(x, to, w, linear ? this.zeros : bias, forward, units, planes[0], this.lanes);
  }

  /** Run images through all layers; `pixel(lane, i)` is one number of an image. */
  forward(pixel) {
    const { heap, lanes, layers, config: { activation, pooling } } = this;
    this.put(pixel);
    layers.forEach((layer, b) => {
      this.apply(layer, layer.d);
      if (layer.n) this.normalise(layer);
      heap.activate(layer.d, layers[b + 1]?.x ?? this.features, layer.windows, lanes, layer.members, activation, pooling);
    });
  }

  /** Subtract the mean of all maps of an image, and divide by their standard deviation. */
  normalise({ d, n, deviations, unpool: { count } }) {
    const { heap: { f32 }, lanes } = this;
    for (let l = 0; l < lanes; l++) {
      let mean = 0, square = 0;
      for (let i = d + l; i < d + count * lanes; i += lanes) mean += f32[i] / count;
      for (let i = d + l; i < d + count * lanes; i += lanes) square += (f32[i] - mean) ** 2 / count;
      deviations[l] = Math.sqrt(square + 1e-5); // as in PyTorch
      for (let i = l; i < count * lanes; i += lanes) f32[n + i] = f32[d + i] = (f32[d + i] - mean) / deviations[l];
    }
  }

  /** Multiply by the derivative of `normalise`, which is symmetric; `column` of the table tells where g has its numbers. */
  denormalise({ n, deviations, unpool: { table, count } }, g, column) {
    if (!n) return;
    const { heap: { f32, i32 }, lanes } = this;
    for (let l = 0; l < lanes; l++) {
      let mean = 0, along = 0;
      for (let p = table; p < table + 3 * count; p += 3) {
        mean += f32[g + i32[p + column] + l] / count;
        along += (f32[g + i32[p + column] + l] * f32[n + i32[p] + l]) / count;
      }
      for (let p = table; p < table + 3 * count; p += 3) {
        const i = g + i32[p + column] + l;
        f32[i] = (f32[i] - mean - along * f32[n + i32[p] + l]) / deviations[l];
      }
    }
  }

  /**
   * What a small change of all images (PIXELS,) changes after each step, after `forward`: `see(layer, step, values)` with
   * the mean over the lanes, (maps, side, side). A gradient needs `forward` again.
   */
  push(change, see) {
    const { heap: { f32, i32 }, lanes, layers, config: { activation, pooling, norm }, averaged, size } = this;
    const mean = (start, pixels) => pixels.map((at) => {
      let sum = 0;
      for (let l = 0; l < lanes; l++) sum += f32[start + at + l];
      return sum / lanes;
    });
    this.put((_, i) => change[i]);
    layers.forEach((layer, b) => {
      const { d, g, members, windows: { table, count } } = layer, to = layers[b + 1]?.x ?? this.features;
      const all = Float32Array.from({ length: layer.outs * layer.out ** 2 }, (_, i) => i * lanes);
      this.apply(layer, g, true);
      see(b, "filter", mean(g, all));
      this.denormalise(layer, g, 0);
      if (norm !== "none") see(b, "norm", mean(g, all));
      for (let i = 0; i < all.length * lanes; i++) f32[g + i] *= f32[d + i];
      const share = pooling === "average" ? members.length : 1;
      if (pooling !== "max" && activation !== "none") see(b, "activation", mean(g, all).map((x) => x * share));
      for (let p = table; p < table + 2 * count; p += 2)
        for (let l = 0; l < lanes; l++) {
          let sum = 0;
          for (const member of members) sum += f32[g + i32[p] + member + l];
          f32[to + i32[p + 1] + l] = sum;
        }
      const pixels = Float32Array.from({ length: count }, (_, p) => i32[table + 2 * p + 1]);
      if (members.length > 1) see(b, "pool", mean(to, pixels));
      f32.fill(0, g, g + layer.outs * (layer.out + 2 * layer.pad) ** 2 * lanes); // its margin must stay zero
    });
    const features = mean(this.features, Float32Array.from({ length: size }, (_, f) => f * lanes));
    see(layers.length, "features", Float32Array.from({ length: size / averaged }, (_, f) =>
      sumOf(features, f * averaged, averaged) / averaged));
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

  /** The gradient of a layer's input (inputs, side, side, lanes) from that of its result. */
  transpose(layer) {
    const { rows, out, outs, pad, lanes, carried, back, planes } = layer;
    this.wrap(carried, outs, out, pad, lanes);
    for (const part of layer.backward) this.heap.gather(carried, back, part.w, this.zeros, part, rows, planes[2], lanes);
  }

  /** The gradient of a layer's result from that of what follows its activation. */
  derive(layer, gradient) {
    this.heap.multiply(layer.d, layer.g, gradient, layer.unpool, this.lanes);
    this.denormalise(layer, layer.g, 1);
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
        this.derive(layer, gradient);
        this.transpose(layer);
        gradient = layer.back;
      }
      this.derive(first, gradient);
      const half = lanes / 2, padded = first.outs * (first.out + 2 * first.pad) ** 2;
      for (let i = 0; i < padded; i++)
        for (const h of [0, 1]) f32[first.carried + i * MEANS + 2 * r + h] = sumOf(f32, first.g + i * lanes + h * half, half) / half;
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
      const layer = layers[b], { units, numWeights, planes, both } = layer;
      this.derive(layer, layers[b + 1]?.back ?? this.dFeatures);
      heap.correlate(layer.x, layer.g, layer.dw, both, units, planes[1], lanes);
      for (let o = 0; o < units; o++) {
        for (let t = 0; t < numWeights; t++) result[layer.at + o * numWeights + t] = f32[layer.dw + t * units + o];
        for (let p = 0; p < both.count; p++)
          result[layer.at + units * numWeights + o] += sumOf(f32, layer.g + heap.i32[both.positions + 2 * p + 1] + o * planes[1], lanes);
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
  constructor() {
    const vectors = NETWORKS * READOUTS, pixels = Int32Array.from({ length: PIXELS }, (_, i) => i * vectors);
    this.heap = new Heap(2 ** 19);
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
