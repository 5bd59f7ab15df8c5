// The view: what the reader moves

import { whole } from "./numbers.js";

export const KEYS = ["architecture", "second", "index", "frequency", "photo", "kept"];

/** The view as it can be drawn: an address or a program may ask for what these NADs and images do not have. */
export function drawable(view, { shown, photos, ownPhoto }) {
  if (!shown.length) return view;
  const count = Math.max(...shown.map((architecture) => architecture.count)), { size } = shown[0];
  return {
    ...view,
    index: whole(view.index, 0, count - 1),
    kept: whole(view.kept, 0, count),
    // frequencies are the same up to multiples of the size
    frequency: view.frequency.map((k) => (((Math.round(k) + size / 2) % size) + size) % size - size / 2),
    photo: whole(view.photo, ownPhoto ? -1 : 0, photos ? photos.length - 1 : 0),
  };
}
