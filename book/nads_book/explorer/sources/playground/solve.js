// From second moments to NADs: symmetry types, eigenvectors of each, and the energies of all waves

import { PIXELS, SIDE, canonical } from "./engine.js";

/**
 * The wave of a cell (ky, kx), cycles per image in [-SIDE / 2, SIDE / 2): a unit image, the sine for half of the plane and
 * the cosine for the opposite half, as in `nc.fourier_basis`.
 */
export function waveOf([ky, kx]) {
  const positive = (k) => ((k % SIDE) + SIDE) % SIDE, [a, b, c, d] = [ky, kx, -ky, -kx].map(positive);
  const sine = a < c || (a === c && b < d), wave = new Float32Array(PIXELS);
  let square = 0;
  for (let i = 0; i < PIXELS; i++) {
    const angle = (2 * Math.PI / SIDE) * positive(ky * Math.floor(i / SIDE) + kx * (i % SIDE));
    wave[i] = sine ? Math.sin(angle) : Math.cos(angle);
    square += wave[i] ** 2;
  }
  return wave.map((x) => x / Math.sqrt(square));
}

export const FREQUENCIES = Array.from({ length: PIXELS }, (_, i) => [Math.floor(i / SIDE) - SIDE / 2, (i % SIDE) - SIDE / 2]);

const down = (i) => (SIDE - 1 - Math.floor(i / SIDE)) * SIDE + (i % SIDE); // flipped
const across = (i) => Math.floor(i / SIDE) * SIDE + SIDE - 1 - (i % SIDE);
const transposed = (i) => (i % SIDE) * SIDE + Math.floor(i / SIDE);

export const GROUPS = 8; // of networks, which differ by chance alone
export const NOTHING = 1e-6; // of the largest eigenvalue: rounding errors of float32
const TERMS = 8; // pixels of a basis vector, at most

/**
 * Orthonormal vectors that each map, listed with its sign, multiplies by that sign: the pixels (n, TERMS) and values
 * (n, TERMS) of each, filled up with zeros.
 */
function invariant(maps) {
  const pixels = [], values = [];
  for (let pixel = 0; pixel < PIXELS; pixel++) {
    const row = new Map();
    for (const [map, sign] of maps) row.set(map(pixel), (row.get(map(pixel)) ?? 0) + sign);
    const norm = Math.hypot(...row.values());
    if (!norm || Math.min(...row.keys()) < pixel) continue; // it is zero, or was met before
    const entries = [...row, ...Array(TERMS - row.size).fill([0, 0])];
    entries.forEach(([at, value]) => (pixels.push(at), values.push(value / norm)));
  }
  return { n: pixels.length / TERMS, pixels: Int32Array.from(pixels), values: Float64Array.from(values) };
}

/** Inner products of the basis with rows of PIXELS numbers, (n, rows). */
function project({ n, pixels, values }, rows) {
  const count = rows.length / PIXELS, result = new Float64Array(n * count);
  for (let r = 0; r < count; r++)
    for (let i = 0, k = 0; i < n; i++) {
      let sum = 0;
      for (const end = k + TERMS; k < end; k++) sum += values[k] * rows[r * PIXELS + pixels[k]];
      result[i * count + r] = sum;
    }
  return result;
}

/**
 * The types of images that symmetries of the networks separate: bases of the subspaces, one for each member of a type.
 * All layers treat rows and columns alike. Convolutions with strides read every second pixel, so that flips change what they read.
 */
export function typesOf(config) {
  if (canonical(config).pooling === "stride")
    return [1, -1].map((sign) => [invariant([[(i) => i, 1], [transposed, sign]])]);
  const flips = (a, b) => [[(i) => i, 1], [down, a], [across, b], [(i) => down(across(i)), a * b]];
  const alone = [1, -1].flatMap((parity) => [1, -1].map((sign) => [invariant([...flips(parity, parity),
    ...flips(parity, parity).map(([map, value]) => [(i) => map(transposed(i)), sign * value])])]));
  const first = invariant(flips(-1, 1));
  return [...alone, [first, { ...first, pixels: first.pixels.map(transposed) }]];
}

/**
 * Eigenvalues, descending, and eigenvectors (rows) of a symmetric matrix (n, n), which is destroyed: Householder's
 * tridiagonal form, then QL steps with implicit shifts (Golub and Van Loan, Matrix Computations, 8.3).
 */
export function eigen(a, n) {
  const v = Float64Array.from({ length: n * n }, (_, i) => +(i % (n + 1) === 0)); // rows become eigenvectors
  const d = new Float64Array(n), e = new Float64Array(n), u = new Float64Array(n), q = new Float64Array(n);
  const reflect = (m, first) => { // every row of m times I - 2 u u^T
    for (let i = 0; i < n; i++) {
      let sum = 0;
      for (let j = first; j < n; j++) sum += m[i * n + j] * u[j];
      for (let j = first; j < n; j++) m[i * n + j] -= 2 * sum * u[j];
    }
  };
  for (let k = 0; k < n - 2; k++) {
    let square = 0;
    for (let i = k + 1; i < n; i++) square += (u[i] = a[k * n + i]) ** 2;
    const rest = square - u[k + 1] ** 2;
    if (rest <= 1e-300) continue;
    u[k + 1] += Math.sign(u[k + 1] || 1) * Math.sqrt(square);
    const norm = Math.sqrt(rest + u[k + 1] ** 2);
    for (let i = k + 1; i < n; i++) u[i] /= norm;
    let along = 0; // a <- a - 2 u w^T - 2 w u^T with w = a u - (u . a u) u
    for (let i = k; i < n; i++) {
      q[i] = 0;
      for (let j = k + 1; j < n; j++) q[i] += a[i * n + j] * u[j];
      if (i > k) along += q[i] * u[i];
    }
    u[k] = 0;
    for (let i = k; i < n; i++) q[i] -= along * u[i];
    for (let i = k; i < n; i++)
      for (let j = k; j < n; j++) a[i * n + j] -= 2 * (u[i] * q[j] + q[i] * u[j]);
    reflect(v, k + 1); // columns of v are transposed below
  }
  for (let i = 0; i < n; i++) d[i] = a[i * (n + 1)];
  for (let i = 0; i + 1 < n; i++) e[i] = a[i * n + i + 1];
  for (let i = 0; i < n; i++)
    for (let j = 0; j < i; j++) [v[i * n + j], v[j * n + i]] = [v[j * n + i], v[i * n + j]];
  const size = Math.max(...d.map(Math.abs), ...e.map(Math.abs));
  for (let l = 0; l < n; l++)
    for (let sweep = 0; sweep < 60; sweep++) {
      let m = l;
      while (m < n - 1 && Math.abs(e[m]) > 1e-16 * size) m++;
      if (m === l) break;
      let g = (d[l + 1] - d[l]) / (2 * e[l]), s = 1, c = 1, p = 0;
      g = d[m] - d[l] + e[l] / (g + Math.sign(g || 1) * Math.hypot(g, 1));
      for (let i = m - 1; i >= l; i--) {
        const f = s * e[i], b = c * e[i], r = (e[i + 1] = Math.hypot(f, g));
        if (!r) {
          d[i + 1] -= p;
          break;
        }
        s = f / r;
        c = g / r;
        g = d[i + 1] - p;
        const t = (d[i] - g) * s + 2 * c * b;
        d[i + 1] = g + (p = s * t);
        g = c * t - b;
        for (let k = 0, x = i * n, y = x + n; k < n; k++, x++, y++) {
          const z = v[y];
          v[y] = s * v[x] + c * z;
          v[x] = c * v[x] - s * z;
        }
      }
      d[l] -= p;
      e[l] = g;
      e[m] = 0;
    }
  const order = [...d.keys()].sort((i, j) => d[j] - d[i]), vectors = new Float64Array(n * n);
  order.forEach((from, to) => vectors.set(v.subarray(from * n, (from + 1) * n), to * n));
  return { values: Float64Array.from(order, (i) => d[i]), vectors };
}

/** The second moment (PIXELS, PIXELS), x y^T summed over networks, in the basis of a type: symmetric, mean over its members. */
function blockOf(moment, members) {
  const { n } = members[0], block = new Float64Array(n * n);
  for (const basis of members) {
    const part = project(basis, project(basis, moment)); // (PIXELS, PIXELS) -> (n, PIXELS) -> (n, n)
    for (let p = 0; p < n; p++)
      for (let q = 0; q < n; q++) block[p * n + q] += (part[p * n + q] + part[q * n + p]) / (2 * members.length);
  }
  return block;
}

const sumOf = (blocks) => blocks[0].map((_, i) => blocks.reduce((sum, block) => sum + block[i], 0));

/** v_i' B v_i for rows v_i of n numbers. */
function energiesOf(block, rows, n) {
  return Float64Array.from({ length: rows.length / n }, (_, i) => {
    let energy = 0;
    for (let p = 0; p < n; p++) {
      let sum = 0;
      for (let q = 0; q < n; q++) sum += block[p * n + q] * rows[i * n + q];
      energy += sum * rows[i * n + p];
    }
    return energy;
  });
}

// All ways to split the groups into halves: the half with group 0. Those closed under exclusive or come first: among these
// seven, every two groups are together equally often.
const closed = (half) => half.every((a) => half.every((b) => half.includes(a ^ b)));
const SPLITS = Array.from({ length: 2 ** (GROUPS - 1) }, (_, bits) => [...Array(GROUPS).keys()].filter((g) => !((2 * bits) >> g & 1)))
  .filter((half) => half.length === GROUPS / 2).sort((a, b) => closed(b) - closed(a));
const BALANCED = SPLITS.filter(closed).length;
const LARGE = 64; // directions of a type, above which the other splits take too long
const FEW = 3; // splits while more networks are drawn

/**
 * The expected squared cosine of each eigenvector (rows) of the sum of the groups' blocks with the exact one, as in the library:
 * the mean squared overlaps A of the eigenvectors of both halves, over all splits, are Q Q^T, where Q belongs to one half; all
 * groups together know more, c = q + (1 - q) q^2 / 2. Nothing is claimed below 0.3, nor from the first direction on whose energy
 * is held by fewer than half of the groups.
 */
export function certaintiesOf(blocks, vectors, n, splits = SPLITS) {
  const overlaps = new Float64Array(n * n), claimed = new Float64Array(n);
  for (const half of splits) {
    const [u, v] = [true, false].map((inside) => eigen(sumOf(blocks.filter((_, g) => half.includes(g) === inside)), n).vectors);
    for (let j = 0; j < n; j++)
      for (let k = 0; k < n; k++) {
        let cosine = 0;
        for (let i = 0; i < n; i++) cosine += u[j * n + i] * v[k * n + i];
        overlaps[j * n + k] += cosine ** 2 / (2 * splits.length);
        overlaps[k * n + j] += cosine ** 2 / (2 * splits.length);
      }
  }
  const roots = eigen(overlaps, n), energies = blocks.map((block) => energiesOf(block, vectors, n).map((x) => Math.max(x, 0)));
  for (let j = 0; j < n; j++) {
    const held = energies.reduce((sum, energy) => sum + energy[j], 0) ** 2 / (energies.reduce((sum, energy) => sum + energy[j] ** 2, 0) || 1);
    if (held < GROUPS / 2) break;
    let q = 0;
    for (let i = 0; i < n; i++) q += Math.sqrt(Math.max(roots.values[i], 0)) * roots.vectors[i * n + j] ** 2;
    q = Math.min(q, 1);
    const certainty = q + ((1 - q) * q ** 2) / 2;
    claimed[j] = certainty < 0.3 ? 0 : certainty;
  }
  return claimed;
}

/**
 * NADs and energies from the moments of the groups of networks, sums (PIXELS, PIXELS) each. Certainties are zero as long as a
 * group is empty; before the `last` networks are drawn they come from fewer splits, or wait.
 *
 * Returns {energies: (PIXELS,) by cell, nads: [{direction, eigenvalue, certainty}] in descending order}. There are fewer NADs
 * than `count` where the other directions have no energy.
 */
export function solve(config, groups, counts, { count = 8, last = true } = {}) {
  const energies = new Float64Array(PIXELS), nads = [], networks = counts.reduce((sum, x) => sum + x, 0);
  const waves = Float32Array.from(FREQUENCIES.flatMap((cell) => [...waveOf(cell)]));
  for (const members of typesOf(config)) {
    const { n } = members[0], blocks = groups.filter((_, g) => counts[g]).map((moment) => blockOf(moment, members)), total = sumOf(blocks);
    for (const basis of members) {
      const along = project(basis, waves), rows = Float64Array.from({ length: n * PIXELS }, (_, i) => along[(i % n) * PIXELS + Math.floor(i / n)]);
      energiesOf(total, rows, n).forEach((energy, cell) => (energies[cell] += energy / networks));
    }
    const { values, vectors } = eigen(total, n), splits = SPLITS.slice(0, last ? (n <= LARGE ? SPLITS.length : BALANCED) : FEW);
    const certainties = counts.every(Boolean) && (last || n <= LARGE) ? certaintiesOf(blocks, vectors, n, splits) : null;
    for (let i = 0; i < Math.min(count, n); i++)
      for (const { pixels, values: weights } of members) {
        const direction = new Float32Array(PIXELS);
        for (let k = 0; k < pixels.length; k++) direction[pixels[k]] += weights[k] * vectors[i * n + Math.floor(k / TERMS)];
        nads.push({ direction, eigenvalue: values[i] / networks, certainty: certainties?.[i] ?? 0 });
      }
  }
  nads.sort((a, b) => b.eigenvalue - a.eigenvalue);
  return { energies, nads: nads.slice(0, count).filter(({ eigenvalue }) => eigenvalue > NOTHING * nads[0].eigenvalue) };
}
