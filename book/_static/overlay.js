// Figures open over the page instead of leaving it: a tap enlarges the picture, Escape or a tap beside it closes it.

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a.enlarge");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  const image = Object.assign(new Image(), { src: link.href, alt: link.querySelector("img").alt });
  const close = Object.assign(document.createElement("button"), { type: "button", textContent: "Close" });
  const dialog = Object.assign(document.createElement("dialog"), { className: "overlay" });
  dialog.setAttribute("aria-label", "Enlarged figure");
  dialog.append(close, image);
  dialog.addEventListener("click", ({ target }) => (target === image ? image.classList.toggle("full") : dialog.close()));
  dialog.addEventListener("keydown", ({ key }) => key === "Escape" && dialog.close());
  dialog.addEventListener("close", () => (dialog.remove(), link.focus()));
  document.body.append(dialog);
  dialog.showModal();
});
