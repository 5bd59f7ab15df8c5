// From second moments to NADs: symmetry types, eigenvectors of each, and the energies of all waves

import { PIXELS, SIDE } from "./engine.js";

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
 * All layers treat rows and columns alike. Strides read every second pixel, so that flips change what they read.
 */
export function typesOf({ pooling }) {
  if (pooling === "stride")
    return [1, -1].map((sign) => [invariant([[(i) => i, 1], [transposed, sign]])]);
  const flips = (a, b) => [[(i) => i, 1], [down, a], [across, b], [(i) => down(across(i)), a * b]];
  const alone = [1, -1].flatMap((parity) => [1, -1].map((sign) => [invariant([...flips(parity, parity),
    ...flips(parity, parity).map(([map, value]) => [(i) => map(transposed(i)), sign * value])])]));
  const first = invariant(flips(-1, 1));
  return [...alone, [first, { ...first, pixels: first.pixels.map(transposed) }]];
}

/** Eigenvalues and eigenvectors (rows) of a symmetric matrix (n, n), by Jacobi's rotations; the matrix is destroyed. */
export function eigen(matrix, n) {
  const vectors = Float64Array.from({ length: n * n }, (_, i) => +(i % (n + 1) === 0));
  const total = matrix.reduce((sum, x) => sum + x * x, 0);
  for (let sweep = 0; sweep < 30; sweep++) {
    let rest = 0;
    for (let p = 0; p < n; p++)
      for (let q = p + 1; q < n; q++) {
        const off = matrix[p * n + q];
        rest += off * off;
        if (off * off <= 1e-18 * total / (n * n)) continue; // also where all is zero
        const theta = (matrix[q * n + q] - matrix[p * n + p]) / (2 * off);
        const t = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
        const c = 1 / Math.sqrt(t * t + 1), s = t * c;
        for (let k = 0; k < n; k++) {
          const a = matrix[k * n + p], b = matrix[k * n + q];
          matrix[k * n + p] = c * a - s * b;
          matrix[k * n + q] = s * a + c * b;
        }
        for (let k = 0, i = p * n, j = q * n; k < n; k++, i++, j++) {
          const a = matrix[i], b = matrix[j], u = vectors[i], v = vectors[j];
          matrix[i] = c * a - s * b;
          matrix[j] = s * a + c * b;
          vectors[i] = c * u - s * v;
          vectors[j] = s * u + c * v;
        }
      }
    if (rest <= 1e-16 * total) break;
  }
  return { values: Float64Array.from({ length: n }, (_, i) => matrix[i * (n + 1)]), vectors };
}

/** The second moment (PIXELS, PIXELS), x y^T summed over networks, in the basis of a type: symmetric, mean over its members. */
function blockOf(moment, members, networks) {
  const { n } = members[0], block = new Float64Array(n * n);
  for (const basis of members) {
    const part = project(basis, project(basis, moment)); // (PIXELS, PIXELS) -> (n, PIXELS) -> (n, n)
    for (let p = 0; p < n; p++)
      for (let q = 0; q < n; q++) block[p * n + q] += (part[p * n + q] + part[q * n + p]) / (2 * members.length * networks);
  }
  return block;
}

/** Add l_i (u_i . w)^2 for every eigenvector (row of n) and wave w, whose coordinates in its basis are (n, PIXELS). */
function addEnergies(energies, values, vectors, waves) {
  const n = values.length, along = new Float64Array(PIXELS);
  for (let i = 0; i < n; i++) {
    along.fill(0);
    for (let p = 0; p < n; p++) {
      const weight = vectors[i * n + p];
      for (let cell = 0; cell < PIXELS; cell++) along[cell] += weight * waves[p * PIXELS + cell];
    }
    for (let cell = 0; cell < PIXELS; cell++) energies[cell] += values[i] * along[cell] ** 2;
  }
}

const dot = (a, b) => {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
};
const rowsOf = (matrix, n) => Array.from({ length: matrix.length / n }, (_, i) => matrix.subarray(i * n, (i + 1) * n));

/** The row with the largest squared inner product with a direction. */
const nearest = (rows, direction) =>
  rows.reduce((best, row) => (Math.abs(dot(row, direction)) > Math.abs(dot(best, direction)) ? row : best));

/**
 * NADs and energies from the moments of two halves of the networks.
 *
 * The agreement of a NAD is the squared cosine of the two directions that each half alone has in its place: those which
 * agree best with it. Two directions at random in n dimensions have 1 / n.
 *
 * Returns {energies: (PIXELS,) by cell, nads: [{direction, eigenvalue, agreement}] in descending order}.
 */
export function solve(config, halves, networks, count = 8) {
  const energies = new Float64Array(PIXELS), nads = [];
  const waves = Float32Array.from(FREQUENCIES.flatMap((cell) => [...waveOf(cell)]));
  for (const members of typesOf(config)) {
    const { n } = members[0], [first, second] = halves.map((half, h) => blockOf(half, members, networks[h]));
    const mean = first.map((x, i) => (x + second[i]) / 2), { values, vectors } = eigen(mean, n), rows = rowsOf(vectors, n);
    const found = [first, second].map((block) => rowsOf(eigen(block, n).vectors, n));
    for (const basis of members) addEnergies(energies, values, vectors, project(basis, waves));
    const order = [...values.keys()].sort((a, b) => values[b] - values[a]);
    for (const i of order.slice(0, count)) {
      const [one, other] = found.map((own) => nearest(own, rows[i]));
      for (const { pixels, values: weights } of members) {
        const direction = new Float32Array(PIXELS);
        for (let k = 0; k < pixels.length; k++) direction[pixels[k]] += weights[k] * rows[i][Math.floor(k / TERMS)];
        nads.push({ direction, eigenvalue: values[i], agreement: dot(one, other) ** 2 });
      }
    }
  }
  nads.sort((a, b) => b.eigenvalue - a.eigenvalue);
  return { energies, nads: nads.slice(0, count) };
}
