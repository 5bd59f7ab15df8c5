// A view in the page's address

import { KEYS } from "./view.js";

/** The state of an explorer. What differs from the start is kept in the address. */
export class PageModel {
  constructor(start, id) {
    Object.assign(this, { start, id, state: { ...start }, listeners: new Map() });
  }

  get = (key) => this.state[key];

  set(key, value) {
    if (JSON.stringify(this.state[key]) === JSON.stringify(value)) return;
    this.state[key] = value;
    (this.listeners.get(`change:${key}`) ?? []).forEach((listener) => listener());
  }

  on(event, listener) {
    this.listeners.set(event, [...(this.listeners.get(event) ?? []), listener]);
  }

  /** The address of the page as it is seen. */
  get link() {
    return this.start.shared ? addressNow : null;
  }

  save_changes() {
    if (this.start.shared) saveAddress(); // the address of a notebook is not ours
  }

  /** Add to the address what differs from the start, but a photo of the reader's own cannot be found again. */
  describe(address) {
    const moved = KEYS.filter((key) => !(key === "photo" && this.state.photo < 0))
      .map((key) => [key, JSON.stringify(this.state[key])])
      .filter(([key, value]) => value !== JSON.stringify(this.start[key]));
    if (moved.length && this.part) address.set(`${this.id}.part`, this.part);
    for (const [key, value] of moved) address.set(`${this.id}.${key}`, value.replaceAll('"', ""));
  }

  /** Take over what the address of the page says of this explorer, if anything. */
  restore() {
    return Boolean(this.start.shared) && this.follow(parameters());
  }

  /** Take over what an address says; a key or value that makes no sense is left out. */
  follow(address) {
    if (!["part", ...KEYS].some((key) => address.has(`${this.id}.${key}`))) return false;
    const view = viewIn(address, this.id, this.start, this.start.labels);
    for (const key of KEYS) this.set(key, view[key]);
    const part = address.get(`${this.id}.part`);
    this.part = this.start.parts.includes(part) ? part : "";
    return true;
  }
}

/** What the address says of the figures of this page, which is nothing where it names a section. */
export const parameters = (hash = location.hash) =>
  new URLSearchParams(/^#(explorer(-\d+)?|bet|atlas|playground)\./.test(hash) ? hash.slice(1) : "");

/** The view of a figure in an address; what is not there, or makes no sense, is that of the start. */
export const viewIn = (address, id, start, labels) =>
  Object.fromEntries(KEYS.map((key) => [key, parsed(address.get(`${id}.${key}`), start[key], key, labels)]));

/** The address says what every figure of the page shows. */
function writeAddress() {
  const address = new URLSearchParams();
  for (const figure of document.querySelectorAll("nad-explorer, nad-guess, nad-atlas, nad-playground")) figure.describe?.(address);
  const hash = address.toString().replaceAll("%2C", ",").replaceAll("%5B", "[").replaceAll("%5D", "]").replaceAll("%3B", ";");
  if (hash || [...parameters()].length) history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
}

/** Browsers limit how often an address may change, so it waits until the reader pauses. */
export function saveAddress() {
  clearTimeout(saveAddress.timer);
  saveAddress.timer = setTimeout(writeAddress, 150);
}

/** The address of the page as it is seen. */
export const addressNow = () => (writeAddress(), location.href);

function parsed(text, fallback, key, labels) {
  if (text === null) return fallback;
  if (typeof fallback === "string")
    return Object.hasOwn(labels, text) || (key === "second" && text === "") ? text : fallback;
  try {
    const value = JSON.parse(text);
    const like = Array.isArray(fallback)
      ? Array.isArray(value) && value.length === fallback.length && value.every(Number.isFinite)
      : typeof value === typeof fallback && (typeof value !== "number" || (Number.isFinite(value) && value >= 0));
    return like ? value : fallback;
  } catch {
    return fallback;
  }
}
