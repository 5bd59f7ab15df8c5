// What NADs do to images: they mix, rebuild and poison

import { dot } from "./numbers.js";

export function mixture(directions, weights) {
  const image = new Float32Array(directions[0].length);
  weights.forEach((weight, n) => {
    if (weight && directions[n]) for (let i = 0; i < image.length; i++) image[i] += weight * directions[n][i];
  });
  return image;
}

export const GREY = 0.5; // photos are rebuilt around it

/** A photo's coordinates in the NAD basis, channel by channel: three Float32Arrays (n). */
export const coordinates = (photo, directions) =>
  photo.channels.map((channel) => {
    const centred = channel.map((x) => x - GREY);
    return Float32Array.from(directions, (direction) => dot(direction, centred));
  });

export const rebuilt = (coords, directions, kept) =>
  coords.map((c) => mixture(directions, c.subarray(0, kept)).map((x) => x + GREY));

export const NAD_CLASSES = 6; // that one NAD distinguishes: three channels, two signs
export const STRENGTHS = [0.01, 2];

/** Replace the coordinate that carries the photo's label, as `nads_core.poison`; null where its NAD is not known. */
export function poison(photo, architecture, index, strength) {
  const t = photo.label, nad = index + Math.floor(t / NAD_CLASSES), channel = t % 3, sign = 2 * (t % 2) - 1;
  const direction = architecture.directions[nad];
  if (!direction) return null;
  const present = dot(direction, photo.channels[channel]);
  const difference = direction.map((u) => (sign * strength - present) * u);
  const channels = photo.channels.map((c, i) => (i === channel ? c.map((x, j) => x + difference[j]) : c));
  return { channels, difference, nad, channel, sign, present };
}
