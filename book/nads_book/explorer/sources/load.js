// Arrays of a static page

import { h } from "./drawing.js";

/** Load arrays with a script, which works from a server and from a file. */
const scripts = new Map();
export async function loadFromPage(name) {
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

/** Call `begin` once an element comes near: arrays are large, and those of a figure that nobody comes to stay away. */
export function whenNear(element, begin) {
  const near = new IntersectionObserver((seen) => {
    if (!seen.some(({ isIntersecting }) => isIntersecting)) return;
    near.disconnect();
    begin();
  }, { rootMargin: "600px" });
  near.observe(element);
}
