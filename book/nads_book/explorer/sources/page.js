// A static page, whose model lives in the browser

import { PageModel, parameters } from "./address.js";
import { App } from "./app.js";
import { loadFromPage, whenNear } from "./load.js";
import { define } from "./theme.js";

class NadExplorer extends HTMLElement {
  connectedCallback() {
    if (this.app) return; // moved within the page
    const number = [...document.querySelectorAll("nad-explorer")].indexOf(this) + 1;
    this.id ||= number > 1 ? `explorer-${number}` : "explorer";
    this.model = new PageModel(JSON.parse(this.getAttribute("view")), this.id);
    const linked = this.model.restore();
    const { keys } = this.model.start; // of arrays that came with this explorer
    if (!this.model.start.shared) addEventListener("click", (event) => this.follow(event));
    this.app = new App(this.model, this, (name) => loadFromPage(Object.hasOwn(keys, name) ? keys[name] : name));
    whenNear(this, () => this.app.begin());
    addEventListener("hashchange", () => this.model.restore() && this.reveal()); // a link to another view
    const note = ({ target }) => (this.model.part = target.closest("section")?.dataset.part ?? ""); // for the address
    for (const event of ["pointerdown", "keydown", "input"]) this.shadowRoot.addEventListener(event, note, true);
    if (!linked || performance.getEntriesByType("navigation")[0]?.type === "reload") return;
    this.reveal();
  }

  /** Links to views in the text of a notebook move its first explorer. */
  follow({ target }) {
    const address = parameters(target.closest?.("a")?.hash ?? "");
    if (![...address].length || document.querySelector("nad-explorer") !== this) return;
    this.model.follow(address);
    this.reveal();
  }

  describe(address) {
    if (this.model?.start.shared) this.model.describe(address);
  }

  /** Scroll to the part that the address names, at once and when all networks of the view have their heights. */
  reveal() {
    const { part } = this.model;
    const scroll = () => (this.shadowRoot.querySelector(`section[data-part="${part}"]`) ?? this).scrollIntoView();
    this.app.begin();
    scroll();
    this.app.arranged.then(() => requestAnimationFrame(() => requestAnimationFrame(scroll)));
  }
}

define("nad-explorer", NadExplorer);
