// Waves, and what images have of them

import { dot } from "./numbers.js";

/** The share of an image's energy at each frequency, zero in the middle; as `nads_core.spectrum`. */
export function spectrum(image, size) {
  const angle = (2 * Math.PI) / size, energy = new Float64Array(size * size);
  const cos = Float64Array.from({ length: size }, (_, i) => Math.cos(angle * i));
  const sin = Float64Array.from({ length: size }, (_, i) => Math.sin(angle * i));
  let total = 0;
  for (let f = 0; f < size * size; f++) {
    const ky = Math.floor(f / size) + size / 2, kx = (f % size) + size / 2; // up to multiples of the size
    let re = 0, im = 0;
    for (let i = 0; i < size * size; i++) {
      const phase = (ky * Math.floor(i / size) + kx * (i % size)) % size;
      re += image[i] * cos[phase];
      im += image[i] * sin[phase];
    }
    total += energy[f] = re * re + im * im;
  }
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
