// Sliders that call Python: each change goes to the kernel, which answers with a picture.

/** One row: label, slider and value. A change is sent while one drags, and the newest one once Python has answered. */
function slider(model, key, { label, min, max, step }) {
  const row = document.createElement("label");
  const input = Object.assign(document.createElement("input"), { type: "range", min, max, step });
  const output = document.createElement("output");
  input.setAttribute("aria-label", label);
  input.dataset.lmSuppressShortcuts = ""; // JupyterLab's, to which the arrow keys belong
  const show = () => {
    input.value = model.get(key);
    output.textContent = input.value;
  };
  input.addEventListener("input", () => {
    model.set(key, Number(input.value));
    model.save_changes();
  });
  model.on(`change:${key}`, show);
  show();
  row.append(label, input, output);
  return { row, forget: () => model.off(`change:${key}`, show) };
}

export default {
  render({ model, el }) {
    el.classList.add("nad-sliders");
    const image = document.createElement("img");
    let address;
    const draw = () => {
      URL.revokeObjectURL(address);
      address = URL.createObjectURL(new Blob([model.get("png")], { type: "image/png" }));
      Object.assign(image, { src: address, alt: model.get("alt") });
    };
    const rows = Object.entries(model.get("sliders")).map(([key, range]) => slider(model, key, range));
    model.on("change:png", draw);
    draw();
    el.append(...rows.map(({ row }) => row), image);
    return () => {
      model.off("change:png", draw);
      for (const { forget } of rows) forget();
      URL.revokeObjectURL(address);
    };
  },
};
