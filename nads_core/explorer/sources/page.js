// A static page, whose model lives in the browser

import { PageModel } from "./address.js";
import { App } from "./app.js";
import { h } from "./drawing.js";

/** Load arrays with a script, which works from a server and from a file. */
const scripts = new Map();
async function loadFromPage(name) {
  const data = (globalThis.nadExplorerData ??= {});
  if (!Object.hasOwn(data, name)) {
    if (!scripts.has(name))
      scripts.set(name, new Promise((resolve, reject) => {
        const src = `${document.documentElement.dataset.content_root ?? ""}_static/explorer/${name}.js`;
        const script = h("script", { src, load: resolve, error: () => {
          scripts.delete(name);
          script.remove();
          reject(new Error(`${src} is missing.`));
        } });
        document.head.append(script);
      }));
    await scripts.get(name);
  }
  return data[name];
}

class NadExplorer extends HTMLElement {
  connectedCallback() {
    if (this.app) return; // moved within the page
    const number = [...document.querySelectorAll("nad-explorer")].indexOf(this) + 1;
    this.id ||= number > 1 ? `explorer-${number}` : "explorer";
    this.model = new PageModel(JSON.parse(this.getAttribute("view")), this.id);
    const linked = this.model.restore();
    const { keys } = this.model.start; // of arrays that came with this explorer
    this.app = new App(this.model, this, (name) => loadFromPage(Object.hasOwn(keys, name) ? keys[name] : name),
      this.model.start.shared);
    const near = new IntersectionObserver((seen) => {
      if (!seen.some(({ isIntersecting }) => isIntersecting)) return;
      near.disconnect();
      this.app.begin();
    }, { rootMargin: "600px" });
    near.observe(this); // arrays are large: those of a figure that nobody comes to are not loaded
    addEventListener("hashchange", () => this.model.restore() && this.reveal()); // a link to another view
    const note = ({ target }) => (this.model.part = target.closest("section")?.dataset.part ?? ""); // for the address
    for (const event of ["pointerdown", "keydown", "input"]) this.shadowRoot.addEventListener(event, note, true);
    if (!linked || performance.getEntriesByType("navigation")[0]?.type === "reload") return;
    this.reveal();
    this.app.ready.then(() => this.reveal()); // now the parts have their heights
  }

  /** Scroll to the part that the address names. */
  reveal() {
    this.app.begin();
    (this.shadowRoot.querySelector(`section[data-part="${this.model.part}"]`) ?? this).scrollIntoView();
  }
}

if (!customElements.get("nad-explorer")) customElements.define("nad-explorer", NadExplorer);
