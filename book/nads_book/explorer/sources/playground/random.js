// Random numbers that depend on their key and place alone: the same in every browser, in whatever order they are drawn

/** Mix 32 bits (Wellons' lowbias32). */
function mix(x) {
  x = Math.imul(x ^ (x >>> 16), 0x21f0aaad);
  x = Math.imul(x ^ (x >>> 15), 0x735a2d97);
  return x ^ (x >>> 15);
}

/** The key of a stream, such as (seed, purpose, index of the network): two words. */
export const keyOf = (...parts) =>
  [0x9e3779b9, 0x85ebca6b].map((start) => parts.reduce((key, part) => mix(Math.imul(key, 5) + part + 1), start));

/** 32 random bits. */
export const bits = ([a, b], i) => mix(mix(i + a) ^ b) >>> 0;

/** A number in (0, 1) with 24 bits. */
export const uniformAt = (key, i) => ((bits(key, i) >>> 8) + 0.5) / 2 ** 24;

/** Standard normal numbers (Box and Muller), an even count of them. */
export function gaussians(key, count) {
  const values = new Float32Array(count);
  for (let i = 0; i < count; i += 2) {
    const radius = Math.sqrt(-2 * Math.log((bits(key, i) + 0.5) / 2 ** 32));
    const angle = 2 * Math.PI * (bits(key, i + 1) / 2 ** 32);
    values[i] = radius * Math.cos(angle);
    values[i + 1] = radius * Math.sin(angle);
  }
  return values;
}

/** The numbers 0 to count - 1 in random order (Fisher and Yates). */
export function shuffled(key, count) {
  const order = Int32Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1; i > 0; i--) {
    const j = Math.floor((bits(key, i) / 2 ** 32) * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}
