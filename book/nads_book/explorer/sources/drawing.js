// Elements, and images on canvases

import { COLOURS } from "./colours.js";
import { clamp, largest } from "./numbers.js";

/** Make an element: h("p", { class: "note" }, "text", child, ...); a function is an event listener. */
export function h(tag, attributes = {}, ...children) {
  const element = tag.startsWith("svg:")
    ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

export function paint(canvas, size, colourAt, alt) {
  if (canvas.width !== size) canvas.width = canvas.height = size;
  const context = canvas.getContext("2d");
  const image = context.createImageData(size, size);
  for (let i = 0; i < size * size; i++) image.data.set(colourAt(i), 4 * i);
  context.putImageData(image, 0, 0);
  canvas.setAttribute("aria-label", alt);
}

/** A signed image, zero in the middle of the colour map. */
export function paintSigned(canvas, image, size, alt, limit = largest(image) || 1) {
  const table = COLOURS.diverging;
  paint(canvas, size, (i) => table[Math.round(127.5 + 127.5 * clamp(image[i] / limit, -1, 1))], alt);
}

/** Numbers from 0 on. */
export function paintShares(canvas, values, size, alt) {
  const most = largest(values);
  paint(canvas, size, (i) => COLOURS.magma[Math.round((255 * values[i]) / most)], alt);
}

export function paintPhoto(canvas, channels, size, alt) {
  paint(canvas, size, (i) => [...channels.map((c) => Math.round(255 * clamp(c[i], 0, 1))), 255], alt);
}

/** A picture with its caption. */
export function picture(caption) {
  const canvas = h("canvas", { role: "img", "aria-label": "Not drawn yet", width: 1, height: 1 });
  const text = h("figcaption", {}, caption);
  return { canvas, text, element: h("figure", {}, canvas, text) };
}
