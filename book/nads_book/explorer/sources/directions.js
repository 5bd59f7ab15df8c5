// What NADs do to images: they rebuild them

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
