// One explorer: it loads what its view needs, and draws its parts as the view changes

import { menu, playButton, slider } from "./controls.js";
import { h } from "./drawing.js";
import { keeping, unpackNads, unpackPhotos } from "./packets.js";
import { curvesPart } from "./parts/curves.js";
import { directionPart } from "./parts/direction.js";
import { fourierPart } from "./parts/frequency_map.js";
import { photoPart } from "./parts/photo.js";
import { pythonPanel } from "./python.js";
import { mostNads } from "./rows.js";
import { showIn } from "./theme.js";
import { drawable, KEYS } from "./view.js";

// Each returns {title, element, keys, update, code}: update(view) runs when one of its keys has changed.
const PARTS = { direction: directionPart, curves: curvesPart, fourier: fourierPart, photo: photoPart };

/** The explorer in `host`. Its model has get, set, save_changes and on; `load(name)` gives a packet. */
export class App {
  shown = [];
  photos = null;
  ownPhoto = null;
  parts = [];
  toolbar = [];
  changed = new Set();
  frame = null;
  begun = false;
  root = h("div", { class: "explorer", role: "group", "aria-label": "NAD explorer", "aria-busy": "true" });
  trouble = h("p", { role: "alert", hidden: true });
  arranged = Promise.resolve(); // once the networks of the view are loaded

  constructor(model, host, load) {
    Object.assign(this, { model, load: keeping(load) });
    showIn(host, this.root);
    for (const key of KEYS)
      model.on(`change:${key}`, () => {
        if (key === "architecture" || key === "second") this.arrange();
        else this.refresh([key]);
      });
  }

  /** Load and draw, when somebody is about to look. */
  begin() {
    if (this.begun) return;
    this.begun = true;
    this.arrange();
  }

  get view() {
    return drawable(Object.fromEntries(KEYS.map((key) => [key, this.model.get(key)])), this);
  }

  get photo() {
    const { photo } = this.view;
    return photo < 0 ? this.ownPhoto : this.photos[photo];
  }

  set(changes) {
    if ("architecture" in changes || "second" in changes) this.trouble.hidden = true;
    for (const [key, value] of Object.entries(changes)) this.model.set(key, value);
    this.model.save_changes();
  }

  refresh(keys) {
    keys.forEach((key) => this.changed.add(key));
    this.frame ??= requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.frame = null;
    if (!this.shown.length) return;
    const { view } = this;
    const keys = new Set(this.changed);
    this.changed.clear();
    this.toolbar.forEach((control) => control.sync());
    for (const part of this.parts)
      if (keys.has("architecture") || part.keys.some((key) => keys.has(key))) part.update(view, keys);
    this.python.update();
  }

  build() {
    const labels = this.model.get("labels"), names = this.model.get("parts");
    const last = () => mostNads(this) - 1;
    this.parts = names.map((name) => ({ name, ...PARTS[name](this) }));
    const controls = [];
    if (Object.keys(labels).length > 1) {
      const network = menu(this, "architecture", "Network", labels);
      const second = menu(this, "second", "Compare with", { "": "none", ...labels });
      this.toolbar.push(network, second);
      controls.push(h("div", { class: "menus" }, network.element, second.element));
    }
    if (names.includes("direction") || names.includes("curves")) {
      const index = slider(this, "index", "NAD", { max: last, box: true,
        text: (i) => `NAD ${i} of ${this.shown[0].label}` });
      this.toolbar.push(index);
      controls.push(h("div", { class: "along" }, playButton(this, "index", last), index.element));
    }
    this.python = pythonPanel(this);
    const sections = this.parts.map(({ name, title, element }) =>
      h("section", { "aria-label": title, "data-part": name }, names.length > 1 ? h("h3", {}, title) : null, element));
    this.root.replaceChildren(this.trouble, h("div", { class: "toolbar" }, ...controls), ...sections,
      this.python.element);
  }

  get wanted() {
    return [...new Set([this.model.get("architecture"), this.model.get("second")].filter(Boolean))];
  }

  /** Load what the view needs; a menu that moves on meanwhile wins. What cannot be loaded leaves the view as it was. */
  arrange() {
    if (this.begun) this.arranged = this.loadView();
  }

  async loadView() {
    const names = this.wanted;
    const late = () => `${names}` !== `${this.wanted}`;
    this.root.setAttribute("aria-busy", "true");
    try {
      const needed = await Promise.all([...names.map((name) => this.load(name, unpackNads)),
        this.model.get("parts").includes("photo") && this.load("photos", unpackPhotos)]);
      if (late()) return;
      this.photos = needed.pop() || null;
      this.shown = needed.map((architecture, i) => ({ ...architecture, key: names[i], colour: "ab"[i] }));
      if (!this.parts.length) this.build();
      this.refresh(["architecture"]);
      this.root.setAttribute("aria-busy", "false");
    } catch (error) {
      if (late()) return;
      this.root.setAttribute("aria-busy", "false");
      this.refuse(names, error);
    }
  }

  /** Say that these architectures cannot be shown, and go back to those that are. */
  refuse(names, { message }) {
    if (!this.shown.length) {
      this.root.replaceChildren(this.trouble);
      return this.say(`The explorer cannot be shown. ${message}`, () => this.arrange());
    }
    const { model, shown } = this, [architecture, second] = ["architecture", "second"].map((key) => model.get(key));
    this.say(`${names.map((name) => model.get("labels")[name]).join(" and ")} cannot be shown. ${message}`,
      () => this.set({ architecture, second }));
    model.set("architecture", shown[0].key);
    model.set("second", shown[1]?.key ?? "");
    model.save_changes();
  }

  say(text, again) {
    const { trouble } = this;
    const close = () => ((trouble.hidden = true), again?.());
    trouble.replaceChildren(`${text} `, h("button", { click: close }, again ? "Try again" : "Close"));
    trouble.hidden = false;
  }
}
