import { h } from "./drawing.js";
import { clamp, whole } from "./numbers.js";

/** A small chart over an integer axis, with a cursor that the reader can drag. */
export class Chart {
  constructor({ label, height = 120, log = false, limits, ticks, onMove }) {
    const margin = { left: 46, right: 8, top: 8, bottom: 22 };
    Object.assign(this, { height, log, limits, ticks, label, onMove, margin });
    this.svg = h("svg:svg", { role: "img", "aria-label": label, class: "chart" });
    this.title = h("p", { class: "title" }, label);
    this.element = h("div", { class: "chart-box" }, this.title, this.svg);
    const move = (event) => {
      const { left } = this.svg.getBoundingClientRect();
      const x = (event.clientX - left - this.margin.left) / (this.width - this.margin.left - this.margin.right);
      this.onMove(whole(x * this.last, 0, this.last));
    };
    let start = null;
    this.svg.addEventListener("pointerdown", (event) => {
      start = event;
      if (event.pointerType === "touch") return; // it may be a swipe, which scrolls the page
      this.svg.setPointerCapture(event.pointerId);
      move(event);
    });
    this.svg.addEventListener("pointermove", (event) => {
      const upright = Math.abs(event.clientX - start?.clientX) < Math.abs(event.clientY - start?.clientY);
      if (event.buttons && !(event.pointerType === "touch" && upright)) move(event);
    });
    this.svg.addEventListener("click", move);
    new ResizeObserver(() => this.series && this.redraw()).observe(this.element);
  }

  /** What stands at a place of the axis. */
  name = (i) => `${i}`;

  x = (i) => this.margin.left + (i / (this.last || 1)) * (this.width - this.margin.left - this.margin.right);

  y = (value) => {
    const { height, margin: { top, bottom } } = this;
    const [low, high] = this.log ? this.limits.map(Math.log10) : this.limits;
    const share = ((this.log ? Math.log10(Math.max(value, 1e-12)) : value) - low) / (high - low);
    return height - bottom - clamp(share, -0.02, 1.02) * (height - top - bottom);
  };

  /** series: [{colour, line: [[i, value]...], points: [[i, value, low, high]...]}]; last: end of the axis. */
  draw({ series, last, alt }) {
    Object.assign(this, { series, last });
    this.svg.setAttribute("aria-label", alt ?? this.label);
    this.redraw();
  }

  redraw() {
    this.width = this.element.clientWidth || 300;
    const { svg, width, height, margin } = this;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.style.height = `${height}px`;
    const bottom = height - margin.bottom;
    const grid = this.ticks.map(([value, name]) => [
      h("svg:line", { class: "grid", x1: margin.left, x2: width - margin.right, y1: this.y(value), y2: this.y(value) }),
      h("svg:text", { x: margin.left - 6, y: this.y(value) + 4, "text-anchor": "end" }, name),
    ]);
    const step = width < 420 ? this.last / 2 : this.last / 4;
    const marks = new Set([0, 1, 2, 3, 4].filter((i) => i * step <= this.last).map((i) => Math.round(i * step)));
    const anchor = (i) => (i === 0 ? "start" : i > 0.9 * this.last ? "end" : "middle");
    const axis = [...marks].map((i) =>
      h("svg:text", { x: this.x(i), y: bottom + 16, "text-anchor": anchor(i) }, this.name(i)));
    const path = (line) => line.map(([i, v]) => `${this.x(i).toFixed(1)},${this.y(v).toFixed(1)}`).join(" ");
    const shapes = this.series.flatMap(({ colour, line = [], points = [] }) => [
      line.length > 1 && h("svg:polyline", { class: colour, points: path(line) }),
      ...points.flatMap(([i, v, low, high]) => [
        h("svg:line", { class: colour, x1: this.x(i), x2: this.x(i), y1: this.y(low), y2: this.y(high) }),
        h("svg:circle", { class: colour, cx: this.x(i), cy: this.y(v), r: 2.5 }),
      ]),
    ]);
    this.line = h("svg:line", { class: "cursor", y1: margin.top - 4, y2: bottom });
    svg.replaceChildren(...grid.flat(), ...axis, ...shapes.filter(Boolean), this.line);
    this.cursor(this.position ?? 0);
  }

  cursor(position) {
    this.position = position;
    if (!this.line) return;
    this.line.setAttribute("x1", this.x(position));
    this.line.setAttribute("x2", this.x(position));
  }
}
