// A formula that is too wide for its place scrolls: then the keyboard reaches it.

const watch = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const scrolls = target.scrollWidth > target.clientWidth;
    for (const [name, value] of [["tabindex", "0"], ["role", "group"], ["aria-label", "Formula, which scrolls"]]) {
      if (scrolls) target.setAttribute(name, value);
      else target.removeAttribute(name);
    }
  }
});
addEventListener("load", () => document.querySelectorAll("div.formula").forEach((formula) => watch.observe(formula)));

// The theme looks for other boxes that scroll when the window changes: folded ones it comes to when they are opened.
document.addEventListener("toggle", () => dispatchEvent(new Event("resize")), true);
