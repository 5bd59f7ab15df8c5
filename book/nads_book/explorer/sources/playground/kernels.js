// The loops that take most of the time, in WebAssembly with four numbers at a time, or in JavaScript

import CODE from "./kernels_code.js"; // kernels.wat, assembled

const PAGE = 2 ** 16; // bytes

/** Memory of one network, and the kernels that work on it. All offsets and table entries count words of four bytes. */
export class Heap {
  next = 4; // no offset is zero

  /** With `plain`, or without WebAssembly and vectors, the loops are those of JavaScript. */
  constructor(bytes, plain = false) {
    const memory = plain || !hasVectors() ? null : new WebAssembly.Memory({ initial: Math.ceil(bytes / PAGE) });
    const buffer = memory?.buffer ?? new ArrayBuffer(bytes);
    this.f32 = new Float32Array(buffer);
    this.i32 = new Int32Array(buffer);
    if (memory) this.wasm = new WebAssembly.Instance(assembled(), { env: { memory } }).exports;
  }

  /** Reserve words, at a multiple of four. */
  words(count) {
    const start = this.next;
    this.next += Math.ceil(count / 4) * 4;
    if (this.next > this.f32.length) throw new Error(`the network needs more than ${4 * this.f32.length} bytes`);
    return start;
  }

  table(entries) {
    const start = this.words(entries.length);
    this.i32.set(entries, start);
    return start;
  }

  /**
   * y[to_p + o plane + l] = bias[o] + sum_t w[t outs + o] x[from_p + tap_t + l], for every position p, output o, lane l.
   * A convolution, its transpose and a linear layer differ in their tables of positions and taps alone.
   */
  gather(x, y, w, bias, { positions, count, taps, numTaps }, outs, plane, lanes) {
    if (this.wasm && outs % 4 === 0)
      return this.wasm.gather(x, y, w, bias, positions, count, taps, numTaps, outs, plane, lanes);
    const { f32, i32 } = this;
    for (let p = 0; p < count; p++) {
      const from = x + i32[positions + 2 * p], to = y + i32[positions + 2 * p + 1];
      for (let o = 0; o < outs; o++)
        for (let l = 0; l < lanes; l++) {
          let sum = f32[bias + o];
          for (let t = 0; t < numTaps; t++) sum += f32[w + t * outs + o] * f32[from + i32[taps + t] + l];
          f32[to + o * plane + l] = sum;
        }
    }
  }

  /** w[t outs + o] = sum over positions p and lanes l of g[to_p + o plane + l] x[from_p + tap_t + l]. */
  correlate(x, g, w, { positions, count, taps, numTaps }, outs, plane, lanes) {
    if (this.wasm) return this.wasm.correlate(x, g, w, positions, count, taps, numTaps, outs, plane, lanes);
    const { f32, i32 } = this;
    for (let t = 0; t < numTaps; t++)
      for (let o = 0; o < outs; o++) {
        let sum = 0;
        for (let p = 0; p < count; p++) {
          const from = x + i32[positions + 2 * p] + i32[taps + t], to = g + i32[positions + 2 * p + 1] + o * plane;
          for (let l = 0; l < lanes; l++) sum += f32[to + l] * f32[from + l];
        }
        f32[w + t * outs + o] = sum;
      }
  }

  /**
   * Activation and pooling of windows (at, to): write the results, and replace their arguments, d, by the derivative.
   * `members` are the distances of a window's pixels from its first one.
   */
  activate(d, result, { table, count }, lanes, members, activation, pooling) {
    const share = pooling === "average" ? 0.25 : 1, relu = activation === "relu", tanh = activation === "tanh";
    const [, right = 0, below = 0] = members, { f32, i32 } = this;
    if (this.wasm && !tanh)
      return this.wasm.activate(d, result, table, count, lanes, right, below, relu ? 0 : -Infinity, share, pooling === "max");
    for (let p = table; p < table + 2 * count; p += 2)
      for (let l = 0; l < lanes; l++) {
        const at = d + i32[p] + l;
        let sum = 0, winner = -1;
        for (let m = 0; m < members.length; m++) {
          const i = at + members[m], before = f32[i];
          const value = relu ? Math.max(before, 0) : tanh ? Math.tanh(before) : before;
          f32[i] = relu ? (before > 0 ? share : 0) : tanh ? share * (1 - value * value) : share;
          if (pooling !== "max") sum += value;
          else if (m && value <= sum) f32[i] = 0; // the first of the largest wins, as in PyTorch
          else {
            if (m) f32[winner] = 0;
            sum = value;
            winner = i;
          }
        }
        f32[result + i32[p + 1] + l] = share * sum;
      }
  }

  /** g[to_p + l] = d[at_p + l] from[of_p + l]; the table holds (at, to, of) of each position. */
  multiply(d, g, from, { table, count }, lanes) {
    if (this.wasm) return this.wasm.multiply(d, g, from, table, count, lanes);
    const { f32, i32 } = this;
    for (let p = table; p < table + 3 * count; p += 3)
      for (let l = 0; l < lanes; l++) f32[g + i32[p + 1] + l] = f32[d + i32[p] + l] * f32[from + i32[p + 2] + l];
  }

  /** g[to_p] and g[to_p + 1] are the means of d[at_p + l] from[of_p + l] over both halves of the lanes. */
  average(d, g, from, { table, count }, lanes) {
    if (this.wasm) return this.wasm.average(d, g, from, table, count, lanes, 2 / lanes);
    const { f32, i32 } = this;
    for (let p = table; p < table + 3 * count; p += 3)
      for (let half = 0, l = 0; half < 2; half++) {
        let sum = 0;
        for (; l < ((half + 1) * lanes) / 2; l++) sum += f32[d + i32[p] + l] * f32[from + i32[p + 2] + l];
        f32[g + i32[p + 1] + half] = (2 * sum) / lanes;
      }
  }
}

let module = null;
function assembled() {
  module ??= new WebAssembly.Module(Uint8Array.from(atob(CODE), (letter) => letter.charCodeAt(0)));
  return module;
}

/** Whether this browser has WebAssembly with vectors, and allows it. */
function hasVectors() {
  try {
    return !!assembled();
  } catch {
    return false;
  }
}
