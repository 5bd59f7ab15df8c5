// The loops that take most of the time, in WebAssembly with four numbers at a time

import CODE from "./kernels_code.js"; // kernels.wat, assembled

const PAGE = 2 ** 16; // bytes

let module = null;

/** Memory of one network, and the kernels that work on it. All offsets and table entries count words of four bytes. */
export class Heap {
  next = 4; // no offset is zero

  constructor(bytes) {
    module ??= new WebAssembly.Module(Uint8Array.from(atob(CODE), (letter) => letter.charCodeAt(0)));
    const memory = new WebAssembly.Memory({ initial: Math.ceil(bytes / PAGE) });
    this.f32 = new Float32Array(memory.buffer);
    this.i32 = new Int32Array(memory.buffer);
    this.wasm = new WebAssembly.Instance(module, { env: { memory } }).exports;
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
    this.wasm.gather(4 * x, 4 * y, 4 * w, 4 * bias, 4 * positions, count, 4 * taps, 4 * numTaps, 4 * outs, 4 * plane, 4 * lanes);
  }

  /** w[t outs + o] = sum over positions p and lanes l of g[to_p + o plane + l] x[from_p + tap_t + l]. */
  correlate(x, g, w, { positions, count, taps, numTaps }, outs, plane, lanes) {
    this.wasm.correlate(4 * x, 4 * g, 4 * w, 4 * positions, count, 4 * taps, 4 * numTaps, 4 * outs, 4 * plane, 4 * lanes);
  }

  /**
   * Activation and pooling of windows (at, to): write the results, and replace their arguments, d, by the derivative.
   * `members` are the distances of a window's pixels from its first one.
   */
  activate(d, result, { table, count }, lanes, members, activation, pooling) {
    const share = pooling === "average" ? 0.25 : 1, floor = activation === "relu" ? 0 : -Infinity, { f32, i32 } = this;
    const max = pooling === "max", tanh = activation === "tanh", many = members.length;
    for (let p = table; p < table + 2 * count; p += 2) {
      const at = d + i32[p], to = result + i32[p + 1];
      for (let l = 0; l < lanes; l++) {
        let sum = 0, winner = 0;
        for (let m = 0; m < many; m++) {
          const i = at + members[m] + l, before = f32[i];
          const value = tanh ? Math.tanh(before) : before > floor ? before : floor;
          const slope = tanh ? 1 - value * value : before > floor ? share : 0;
          if (!max) {
            sum += value;
            f32[i] = tanh ? share * slope : slope;
          } else if (m && value <= sum) f32[i] = 0; // the first of the largest wins, as in PyTorch
          else {
            if (m) f32[winner] = 0;
            f32[i] = slope;
            sum = value;
            winner = i;
          }
        }
        f32[to + l] = share * sum;
      }
    }
  }

  /** g[to_p + l] = d[at_p + l] from[of_p + l]; the table holds (at, to, of) of each position. */
  multiply(d, g, from, { table, count }, lanes) {
    const { f32, i32 } = this;
    for (let p = table; p < table + 3 * count; p += 3) {
      const a = d + i32[p], b = g + i32[p + 1], c = from + i32[p + 2];
      for (let l = 0; l < lanes; l++) f32[b + l] = f32[a + l] * f32[c + l];
    }
  }
}
