import { h } from "./drawing.js";
import { codeBox, copyButton } from "./share.js";
import { quoted } from "./text.js";

/** The line that loads NADs as a variable. */
function loading(variable, { name, label }) {
  if (name) return `${variable} = nc.load_nads("${name}")`;
  return `# ${variable}: your own, ${quoted(label)}, as given to nb.explorer.show`;
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

export function pythonPanel(app) {
  const { box, button, update } = codeBox("Python code for this view", () => python(app));
  const link = copyButton("Copy a link to this view", () => app.model.link());
  return { element: h("div", { class: "footer" }, button, app.model.link ? link : null, box), update };
}
