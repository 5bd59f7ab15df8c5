import { h } from "./drawing.js";
import { nadsFile, nadsTable } from "./npz.js";
import { copyButton, download } from "./share.js";
import { quoted } from "./text.js";

/** The line that loads NADs as a variable. */
function loading(variable, { name, file, label }) {
  if (name) return `${variable} = nc.load_nads("${name}")`;
  return file ? `${variable} = nc.load_nads(${quoted(file)})  # your own file`
    : `# ${variable}: your own, ${quoted(label)}, as given to nb.explorer.show`;
}

/** The Python code of the present view. */
function python(app) {
  const [first, second] = app.shown;
  const body = app.parts.flatMap((part) => ["", ...part.code(app.view, first)]);
  const imports = [...(body.some((line) => line.includes("np.")) ? ["import numpy as np"] : []),
    ...(body.some((line) => line.includes("torch.")) ? ["import torch"] : [])];
  const nads = loading("nads", first);
  const compared = second
    ? ["", loading("other", second), "print(nads.overlap(other, k=10))  # of the first ten directions"] : [];
  const book = [nads, ...body].some((line) => /^[^#]*\bnb\./.test(line)) ? ["import nads_book as nb"] : [];
  return [...imports, ...(imports.length ? [""] : []), ...book, "import nads_core as nc", "", nads, ...body, ...compared, ""].join("\n");
}

/** Buttons that hand over the NADs in view. */
function downloads(app) {
  if (!app.model.get("parts").includes("direction")) return [];
  const names = { npz: nadsFile, csv: nadsTable };
  return Object.entries(names).map(([kind, make]) => h("button", { click: () => {
    for (const nads of app.shown) download(`nads-${nads.key}.${kind}`, make(nads));
  } }, `Download NADs (.${kind})`));
}

export function pythonPanel(app) {
  const code = h("code");
  const copy = copyButton("Copy", () => code.textContent);
  const text = h("pre", { tabindex: 0, role: "region", "aria-label": "Python code for this view" }, code);
  const box = h("div", { class: "python", hidden: true }, text, copy);
  const button = h("button", { "aria-expanded": "false", click: () => {
    box.hidden = !box.hidden;
    button.setAttribute("aria-expanded", `${!box.hidden}`);
    button.textContent = box.hidden ? "Show the Python" : "Hide the Python";
    update();
  } }, "Show the Python");
  const update = () => box.hidden || (code.textContent = python(app));
  const link = copyButton("Copy a link to this view", () => app.model.link());
  return { element: h("div", { class: "footer" }, button, app.model.link ? link : null, ...downloads(app), box), update };
}
