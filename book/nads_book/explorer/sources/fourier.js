// The discrete Fourier transform

import { dot } from "./numbers.js";

/** The discrete Fourier transform of an image, not normalised, zero first. */
export function transform(image, size) {
  const angle = (2 * Math.PI) / size;
  const cos = Float64Array.from({ length: size }, (_, i) => Math.cos(angle * i));
  const sin = Float64Array.from({ length: size }, (_, i) => Math.sin(angle * i));
  const re = new Float64Array(size * size), im = new Float64Array(size * size);
  const all = { re: new Float64Array(size * size), im: new Float64Array(size * size) };
  for (let y = 0; y < size; y++) // rows: (y, x) -> (y, k)
    for (let k = 0; k < size; k++)
      for (let x = 0; x < size; x++) {
        re[y * size + k] += image[y * size + x] * cos[(k * x) % size];
        im[y * size + k] -= image[y * size + x] * sin[(k * x) % size];
      }
  for (let l = 0; l < size; l++) // columns: (y, k) -> (l, k)
    for (let k = 0; k < size; k++) {
      let a = 0, b = 0;
      for (let y = 0; y < size; y++) {
        const c = cos[(l * y) % size], s = sin[(l * y) % size], i = y * size + k;
        a += re[i] * c + im[i] * s;
        b += im[i] * c - re[i] * s;
      }
      all.re[l * size + k] = a;
      all.im[l * size + k] = b;
    }
  return all;
}

/** The share of an image's energy at each frequency, zero in the middle; as `nads_core.spectrum`. */
export function spectrum(image, size) {
  const { re, im } = transform(image, size), energy = new Float64Array(size * size);
  const middle = (k) => (k + size / 2) % size;
  let total = 0;
  for (let l = 0; l < size; l++)
    for (let k = 0; k < size; k++)
      total += energy[middle(l) * size + middle(k)] = re[l * size + k] ** 2 + im[l * size + k] ** 2;
  return energy.map((e) => e / (total || 1));
}

/** The real unit image of one frequency; as `nads_core.fourier_direction`. */
export function fourierDirection([ky, kx], size) {
  const own = (2 * ky) % size === 0 && (2 * kx) % size === 0;
  const wave = new Float64Array(size * size);
  for (let i = 0; i < size; i++)
    for (let j = 0; j < size; j++) {
      const phase = (((ky * i + kx * j) % size) + size) % size;
      wave[i * size + j] = (own ? Math.cos : Math.sin)(((2 * Math.PI) / size) * phase);
    }
  const norm = Math.sqrt(dot(wave, wave));
  return wave.map((x) => x / norm);
}
