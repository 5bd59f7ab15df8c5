// The NAD explorer: one program with two homes. A live notebook calls `render` with an anywidget model; a static page
// holds a <nad-explorer> element, whose model lives in the browser and keeps the view in the page's address.
// Both give `mount` the same interface: model.get, set, save_changes, on, off, and a function that loads arrays.
// (nads_core/explorer/program.py puts STYLE, the style sheet, in front of this file, and makes it a script or a module.)

// ---------------------------------------------------------------------------------------------------------------------
// Colours: the book's colour maps, as tables of 256 RGBA values

const BOOK_COLOURS = {
  diverging: "053061 2065ab 4393c3 90c4dd d1e5f0 f7f7f7 fddbc7 f3a481 d6604d b1182b 67001f",
  magma: "000004 140e36 3b0f70 641a80 8c2981 b73779 de4968 f7705c fe9f6d fecf92 fcfdbf",
  viridis: "440154 482475 414487 355f8d 2a788e 21918c 22a884 44bf70 7ad151 bddf26 fde725",
};

function colourTable(stops) {
  const rgb = stops.split(" ").map((hex) => [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16)));
  return Array.from({ length: 256 }, (_, i) => {
    const position = (i / 255) * (rgb.length - 1);
    const left = Math.min(Math.floor(position), rgb.length - 2);
    return [...rgb[left].map((c, j) => Math.round(c + (rgb[left + 1][j] - c) * (position - left))), 255];
  });
}

const COLOURS = Object.fromEntries(Object.entries(BOOK_COLOURS).map(([name, s]) => [name, colourTable(s)]));

// ---------------------------------------------------------------------------------------------------------------------
// Numbers

const clamp = (x, low, high) => Math.min(Math.max(x, low), high);
const whole = (x, low, high) => clamp(Math.round(x), low, high);
const largest = (values) => values.reduce((most, x) => Math.max(most, Math.abs(x)), 0);

function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

/** Undo `as_script` of data.py: base64, then zlib. A widget sends plain bytes. */
async function bytesOf(packet) {
  if (typeof packet.bytes !== "string") return packet.bytes.buffer
    ? new Uint8Array(packet.bytes.buffer, packet.bytes.byteOffset, packet.bytes.byteLength)
    : new Uint8Array(packet.bytes);
  if (typeof DecompressionStream === "undefined")
    throw new Error("This browser is too old for the explorer: it lacks DecompressionStream.");
  const packed = Uint8Array.from(atob(packet.bytes), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** An architecture: its header, eigenvalues (n) and directions, each a Float32Array (H²). The inverse of `pack_nads`. */
function unpackNads(header, bytes) {
  const { count, size } = header;
  const floats = new DataView(bytes.buffer, bytes.byteOffset);
  const scales = Float32Array.from({ length: count }, (_, i) => floats.getFloat32(4 * i, true));
  const eigenvalues = Float32Array.from({ length: count }, (_, i) => floats.getFloat32(4 * (count + i), true));
  const pixels = new Int8Array(bytes.buffer, bytes.byteOffset + 8 * count, count * size * size);
  const directions = Array.from(scales, (scale, i) => {
    const direction = new Float32Array(size * size);
    for (let j = 0, k = i * size * size; j < direction.length; j++) direction[j] = pixels[k + j] * scale;
    return direction;
  });
  return { ...header, eigenvalues, directions };
}

/** Photos: each {name, label, channels: three Float32Arrays (H²) in [0, 1]}. The inverse of `pack_photos`. */
function unpackPhotos({ count, size, labels, names }, bytes) {
  const area = size * size;
  return Array.from({ length: count }, (_, i) => ({
    name: names[i],
    label: labels[i],
    channels: [0, 1, 2].map((c) =>
      Float32Array.from(bytes.subarray((3 * i + c) * area, (3 * i + c + 1) * area), (x) => x / 255)),
  }));
}

/** The share of an image's energy at each frequency, zero in the middle; as `nads_core.spectrum`. */
function spectrum(image, size) {
  const angle = (2 * Math.PI) / size;
  const cos = Float64Array.from({ length: size }, (_, i) => Math.cos(angle * i));
  const sin = Float64Array.from({ length: size }, (_, i) => Math.sin(angle * i));
  const re = new Float64Array(size * size), im = new Float64Array(size * size), energy = new Float64Array(size * size);
  for (let y = 0; y < size; y++)
    for (let k = 0; k < size; k++)
      for (let x = 0; x < size; x++) {
        re[y * size + k] += image[y * size + x] * cos[(k * x) % size];
        im[y * size + k] -= image[y * size + x] * sin[(k * x) % size];
      }
  let total = 0;
  for (let l = 0; l < size; l++)
    for (let k = 0; k < size; k++) {
      let a = 0, b = 0;
      for (let y = 0; y < size; y++) {
        const c = cos[(l * y) % size], s = sin[(l * y) % size], i = y * size + k;
        a += re[i] * c + im[i] * s;
        b += im[i] * c - re[i] * s;
      }
      const i = ((l + size / 2) % size) * size + ((k + size / 2) % size);
      total += energy[i] = a * a + b * b;
    }
  return energy.map((e) => e / (total || 1));
}

/** The real unit image of one frequency; as `nads_core.fourier_direction`. */
function fourierDirection([ky, kx], size) {
  const own = (2 * ky) % size === 0 && (2 * kx) % size === 0;
  const wave = new Float64Array(size * size);
  for (let i = 0; i < size; i++)
    for (let j = 0; j < size; j++) {
      const phase = (((ky * i + kx * j) % size) + size) % size;
      wave[i * size + j] = (own ? Math.cos : Math.sin)(((2 * Math.PI) / size) * phase);
    }
  const norm = Math.sqrt(dot(wave, wave));
  return wave.map((x) => x / norm);
}

function mixture(directions, weights) {
  const image = new Float32Array(directions[0].length);
  weights.forEach((weight, n) => {
    if (weight && directions[n]) for (let i = 0; i < image.length; i++) image[i] += weight * directions[n][i];
  });
  return image;
}

const GREY = 0.5; // photos are rebuilt around it

/** A photo's coordinates in the NAD basis, channel by channel: three Float32Arrays (n). */
const coordinates = (photo, directions) =>
  photo.channels.map((channel) => {
    const centred = channel.map((x) => x - GREY);
    return Float32Array.from(directions, (direction) => dot(direction, centred));
  });

const rebuilt = (coords, directions, kept) =>
  coords.map((c) => mixture(directions, c.subarray(0, kept)).map((x) => x + GREY));

const NAD_CLASSES = 6; // that one NAD tells apart: three channels, two signs
const STRENGTHS = [0.01, 2];

/** Replace the coordinate that carries the photo's label, as `nads_core.poison`; null where its NAD is not known. */
function poison(photo, architecture, index, strength) {
  const t = photo.label, nad = index + Math.floor(t / NAD_CLASSES), channel = t % 3, sign = 2 * (t % 2) - 1;
  const direction = architecture.directions[nad];
  if (!direction) return null;
  const present = dot(direction, photo.channels[channel]);
  const difference = direction.map((u) => (sign * strength - present) * u);
  const channels = photo.channels.map((c, i) => (i === channel ? c.map((x, j) => x + difference[j]) : c));
  return { channels, difference, nad, channel, sign, present };
}

// ---------------------------------------------------------------------------------------------------------------------
// Drawing

/** Make an element: h("p", { class: "note" }, "text", child, ...); a function is an event listener. */
function h(tag, attributes = {}, ...children) {
  const element = tag.startsWith("svg:")
    ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

function paint(canvas, size, colourAt, alt) {
  if (canvas.width !== size) canvas.width = canvas.height = size;
  const context = canvas.getContext("2d");
  const image = context.createImageData(size, size);
  for (let i = 0; i < size * size; i++) image.data.set(colourAt(i), 4 * i);
  context.putImageData(image, 0, 0);
  canvas.setAttribute("aria-label", alt);
}

/** A signed image, zero in the middle of the colour map. */
function paintSigned(canvas, image, size, alt, limit = largest(image) || 1) {
  const table = COLOURS.diverging;
  paint(canvas, size, (i) => table[Math.round(127.5 + 127.5 * clamp(image[i] / limit, -1, 1))], alt);
}

/** Numbers from 0 to `limit`. */
function paintShares(canvas, values, size, alt, limit = largest(values) || 1) {
  paint(canvas, size, (i) => COLOURS.magma[Math.round(255 * clamp(values[i] / limit, 0, 1))], alt);
}

function paintPhoto(canvas, channels, size, alt) {
  paint(canvas, size, (i) => [...channels.map((c) => Math.round(255 * clamp(c[i], 0, 1))), 255], alt);
}

/** A picture with its caption. */
function picture(caption) {
  const canvas = h("canvas", { role: "img", width: 1, height: 1 });
  const text = h("figcaption", {}, caption);
  return { canvas, text, element: h("figure", {}, canvas, text) };
}

const percent = (x, digits = 1) => `${(100 * x).toFixed(digits)} %`;
const interval = ([, accuracy, low, high]) => {
  const digits = high - low < 0.002 ? 2 : 1;
  return `${percent(accuracy, digits)} (${(100 * low).toFixed(digits)} to ${(100 * high).toFixed(digits)})`;
};

/** Numbers for people: 0.12, 0.0034, 5.6 × 10⁻⁷, 0. */
function short(x) {
  if (x >= 0.00095 || x === 0) return x >= 0.0995 ? x.toFixed(2) : `${+x.toPrecision(2)}`;
  const [digits, exponent] = x.toExponential(1).split("e-");
  return `${digits} × 10⁻${[...exponent].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("")}`;
}

const signed = (x) => `${x <= -0.005 ? "−" : ""}${Math.abs(x).toFixed(2)}`;

/** A small chart over an integer axis, with a cursor that the reader can drag. */
class Chart {
  constructor({ label, height = 120, log = false, limits, ticks, onMove }) {
    Object.assign(this, { height, log, limits, ticks, label, onMove, margin: { left: 46, right: 8, top: 8, bottom: 22 } });
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

  x = (i) => this.margin.left + (i / (this.last || 1)) * (this.width - this.margin.left - this.margin.right);

  y = (value) => {
    const [low, high] = this.log ? this.limits.map(Math.log10) : this.limits;
    const share = ((this.log ? Math.log10(Math.max(value, 1e-12)) : value) - low) / (high - low);
    return this.height - this.margin.bottom - clamp(share, -0.02, 1.02) * (this.height - this.margin.top - this.margin.bottom);
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
    const axis = [...marks].map((i) =>
      h("svg:text", { x: this.x(i), y: bottom + 16, "text-anchor": i === 0 ? "start" : i > 0.9 * this.last ? "end" : "middle" }, `${i}`));
    const shapes = this.series.flatMap(({ colour, line = [], points = [] }) => [
      line.length > 1 && h("svg:polyline", { class: colour, points: line.map(([i, v]) => `${this.x(i).toFixed(1)},${this.y(v).toFixed(1)}`).join(" ") }),
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

// ---------------------------------------------------------------------------------------------------------------------
// Controls. Each writes one key of the view; `sync` shows the view's value.

function slider(app, key, label, { min = 0, max = () => 1023, step = 1, show = (x) => `${x}`, text = show } = {}) {
  const output = h("output", {}, "");
  const input = h("input", { type: "range", min, step, "aria-label": label, input: () => app.set({ [key]: +input.value }) });
  const sync = () => {
    input.max = max();
    input.value = Math.min(app.view[key], max());
    output.textContent = show(+input.value);
    input.setAttribute("aria-valuetext", text(+input.value));
  };
  return { element: h("label", { class: "slider" }, h("span", {}, label), input, output), sync };
}

function playButton(app, key, last) {
  let timer = null;
  const stop = () => {
    clearInterval(timer);
    timer = null;
    button.textContent = "▶";
    button.setAttribute("aria-label", "Play: step through the NADs");
  };
  const start = () => {
    button.textContent = "❚❚";
    button.setAttribute("aria-label", "Pause");
    timer = setInterval(() => {
      const now = app.view[key];
      const next = now + Math.max(1, Math.round(now / 40)); // faster, the less neighbours differ
      if (!button.isConnected || now >= last()) stop();
      else app.set({ [key]: Math.min(next, last()) });
    }, 120);
  };
  const toggle = () => {
    if (timer) return stop();
    if (app.view[key] >= last()) app.set({ [key]: 0 });
    start();
  };
  const button = h("button", { class: "play", click: toggle });
  stop();
  return button;
}

function menu(app, key, label, options) {
  const select = h("select", { "aria-label": label, change: () => app.set({ [key]: select.value }) },
    ...Object.entries(options).map(([value, text]) => h("option", { value }, text)));
  return { element: h("label", { class: "menu" }, h("span", {}, label), select), sync: () => (select.value = app.view[key]) };
}

// ---------------------------------------------------------------------------------------------------------------------
// The parts. Each returns {element, keys, update}: update(view) runs when one of its keys has changed.
// `app.shown` are the architectures in view: one or two, each with its `colour`, "a" or "b".

/** Rows of pictures, one for each architecture in view. */
function rows(app, make) {
  const both = ["a", "b"].map((colour) => {
    const name = h("p", { class: `network ${colour}` });
    const row = make();
    return { ...row, name, element: h("div", { class: "row" }, name, h("div", { class: "pictures" }, ...row.elements)) };
  });
  const update = (draw) =>
    both.forEach((row, i) => {
      const architecture = app.shown[i];
      row.element.hidden = !architecture;
      if (!architecture) return;
      row.name.textContent = architecture.label;
      row.name.hidden = app.shown.length < 2;
      draw(architecture, row);
    });
  return { elements: both.map((row) => row.element), update };
}

const mostNads = (app) => Math.max(...app.shown.map(({ count }) => count));
const relative = ({ eigenvalues }, i) => eigenvalues[i] / (eigenvalues[0] || 1);

/** The measured row with the index nearest to this one. */
const nearest = (measured, index) =>
  measured.reduce((best, row) => (Math.abs(row[0] - index) < Math.abs(best[0] - index) ? row : best));

function accuracyText(architecture, index) {
  if (!architecture.accuracies) return "accuracy not measured yet";
  const row = nearest(architecture.accuracies, index);
  return `accuracy${row[0] === index ? "" : ` at NAD ${row[0]}`}: ${interval(row)}`;
}

function directionPart(app) {
  const pictures = rows(app, () => {
    const pixels = picture("in pixels"), energy = picture("energy over frequencies");
    const note = h("p", { class: "note" });
    return { pixels, energy, note, elements: [pixels.element, energy.element, note] };
  });
  return {
    title: "One direction",
    element: h("div", {}, ...pictures.elements),
    keys: ["index"],
    update({ index }) {
      pictures.update((architecture, { pixels, energy, note }) => {
        const i = Math.min(index, architecture.count - 1), direction = architecture.directions[i];
        const name = `NAD ${i} of ${architecture.label}`;
        paintSigned(pixels.canvas, direction, architecture.size, `${name}, in pixels`);
        paintShares(energy.canvas, spectrum(direction, architecture.size), architecture.size,
          `${name}, its energy over frequencies, zero in the middle`);
        note.replaceChildren(h("strong", {}, `NAD ${i}`), h("br"), `eigenvalue ${short(relative(architecture, i))} of the first`, h("br"),
          accuracyText(architecture, i));
      });
    },
    code: ({ index }, { count }) => [
      "# One direction",
      `direction = nads.directions[${Math.min(index, count - 1)}, 0]  # (H, W)`,
      "energy = nc.spectrum(direction)  # (H, W), zero frequency in the middle",
    ],
  };
}

function curvesPart(app) {
  const onMove = (index) => app.set({ index });
  const eigenvalues = new Chart({ label: "Eigenvalue, relative to the first", log: true, limits: [1e-4, 1],
    ticks: [[1, "1"], [0.1, "0.1"], [0.01, "0.01"], [0.001, "0.001"], [0.0001, "10⁻⁴"]], onMove });
  const accuracies = new Chart({ label: "Test accuracy after training on data that differ along this NAD", limits: [0.45, 1],
    ticks: [[0.5, "50 %"], [0.75, "75 %"], [1, "100 %"]], onMove });
  const legend = h("p", { class: "legend" });
  const axis = h("p", { class: "axis" }, "NAD index");
  return {
    title: "Along the order",
    element: h("div", {}, legend, eigenvalues.element, accuracies.element, axis),
    keys: ["index"],
    update({ index }, changed) {
      if (changed.has("architecture")) {
        const last = mostNads(app) - 1;
        eigenvalues.draw({
          last,
          alt: `Eigenvalues over the NAD index, relative to the first: ${app.shown.map((a) =>
            `${a.label} falls to ${short(relative(a, a.count - 1))}`).join("; ")}.`,
          series: app.shown.map((a) => ({ colour: a.colour, line: Array.from(a.eigenvalues, (_, i) => [i, relative(a, i)]) })),
        });
        accuracies.draw({
          last,
          alt: `Test accuracies over the NAD index: ${app.shown.map((a) => a.accuracies
            ? `${a.label} from ${percent(a.accuracies[0][1])} to ${percent(a.accuracies.at(-1)[1])}`
            : `${a.label} not measured yet`).join("; ")}.`,
          series: app.shown.map((a) => ({ colour: a.colour, line: a.accuracies ?? [], points: a.accuracies ?? [] })),
        });
        legend.replaceChildren(...app.shown.map((a) =>
          h("span", { class: `swatch ${a.colour}` }, a.label, a.accuracies ? "" : ": accuracies not measured yet")));
      }
      eigenvalues.cursor(index);
      accuracies.cursor(index);
    },
    code: ({ index }, { name, count }) => [
      "# Along the order",
      `eigenvalue = nads.eigenvalues[${Math.min(index, count - 1)}] / nads.eigenvalues[0]`,
      ...(name ? [
        `results = nc.load_results("fig6-${name}")  # None where it has not been measured`,
        'accuracies = {row["index"]: row["test_accuracy"] for row in results.rows} if results else {}',
      ] : []),
    ],
  };
}

const UNMEASURED = [[128, 128, 128, 90], [128, 128, 128, 150]]; // two greys, in stripes

function fourierPart(app) {
  const wave = picture("the wave");
  const readout = h("p", { class: "note", "aria-live": "polite" });
  const describe = "Arrow keys move through the frequencies, Home goes to zero. A click holds one; another on it, or Escape, lets go.";
  let live = null; // the grid: number of cells a side, size of the images
  let held = false; // by a click or a key: then the pointer shows no other
  let hovered = null; // under the pointer, which shows it and chooses nothing

  const cell = (frequency) => frequency.map((k) => (k + live.size / 2) / 2); // odd frequencies lie between two
  const frequency = (row, column) => [row, column].map((i) => 2 * clamp(i, 0, live.cells - 1) - live.size / 2);
  const under = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    return frequency(Math.floor(((event.clientY - box.top) / box.height) * live.cells),
      Math.floor(((event.clientX - box.left) / box.width) * live.cells));
  };
  const hover = (frequency) => {
    hovered = frequency;
    app.refresh(["frequency"]);
  };
  const hold = (on, frequency) => {
    held = on;
    hover(null);
    if (frequency) app.set({ frequency });
  };
  const point = (event) => held || event.pointerType === "touch" || hover(under(event));
  const click = (event) => {
    const chosen = under(event);
    hold(!(held && `${chosen}` === `${app.view.frequency}`), chosen);
  };
  const steer = (event) => {
    const [row, column] = cell(app.view.frequency);
    const steps = {
      ArrowUp: [Math.ceil(row) - 1, column], ArrowDown: [Math.floor(row) + 1, column],
      ArrowLeft: [row, Math.ceil(column) - 1], ArrowRight: [row, Math.floor(column) + 1],
    };
    if (event.key === "Home") hold(true, [0, 0]);
    else if (event.key in steps) hold(true, frequency(...steps[event.key]));
    else if (event.key === "Escape" && held) hold(false);
    else return;
    event.preventDefault();
  };
  const map = () => {
    const canvas = h("canvas", { width: 1, height: 1 });
    const mark = h("span", { class: "mark" });
    const box = h("div", { class: "map", tabindex: 0, role: "application",
      pointermove: point, pointerleave: () => hover(null), click, keydown: steer }, canvas, mark);
    const text = h("figcaption");
    return { canvas, mark, box, text, element: h("figure", {}, box, text) };
  };
  const pictures = rows(app, () => {
    const accuracy = map(), energy = map();
    return { accuracy, energy, elements: [accuracy.element, energy.element] };
  });
  const bar = (name, from, to) => [h("span", {}, from), h("span", { class: `bar ${name}` }), h("span", {}, to)];

  const draw = (architecture, { accuracy, energy }) => {
    const { size, fourier, energies } = architecture, cells = size / 2;
    live = { size, cells };
    const known = new Map();
    for (const [k, ...row] of fourier ?? []) // k and -k are one direction up to its sign
      for (const sign of [-1, 1]) {
        const [r, c] = k.map((f) => ((((sign * f + size / 2) % size) + size) % size) / 2);
        known.set(r * cells + c, [k, ...row]);
      }
    architecture.known = known;
    paint(accuracy.canvas, cells, (i) => {
      const row = known.get(i);
      if (!row) return UNMEASURED[(Math.floor(i / cells) + i) % 2];
      return COLOURS.viridis[Math.round(255 * clamp((row[1] - 0.5) / 0.5, 0, 1))];
    });
    paint(energy.canvas, cells, (i) => {
      const share = Math.log10(Math.max(energies[2 * Math.floor(i / cells)][2 * (i % cells)], 1e-9)) / 3 + 1; // three decades
      return COLOURS.magma[Math.round(255 * clamp(share, 0, 1))];
    });
    accuracy.box.setAttribute("aria-label", `Accuracy of ${architecture.label} after training, by frequency. ${describe}`);
    energy.box.setAttribute("aria-label", `Energy of each frequency in the NADs of untrained ${architecture.label}. ${describe}`);
    accuracy.text.replaceChildren("accuracy after training", h("span", { class: "scale" }, ...bar("viridis", "50 %", "100 %")),
      known.size === cells * cells ? "" : fourier ? "striped: not measured yet" : "not measured yet");
    energy.text.replaceChildren("energy before any training", h("span", { class: "scale" }, ...bar("magma", "10⁻³", "1")));
  };

  return {
    title: "Which waves can be learnt?",
    element: h("div", { class: "fourier" }, h("div", {}, ...pictures.elements), h("div", {}, wave.element, readout)),
    keys: ["frequency"],
    update(view, changed) {
      if (changed.has("architecture")) pictures.update(draw);
      const { size, cells } = live;
      const [ky, kx] = hovered ?? view.frequency;
      const [row, column] = cell([ky, kx]);
      const onMap = ky % 2 === 0 && kx % 2 === 0;
      pictures.update((_, { accuracy, energy }) => {
        for (const { mark } of [accuracy, energy]) {
          mark.classList.toggle("held", held);
          Object.assign(mark.style, { left: `${(100 * column) / cells}%`, top: `${(100 * row) / cells}%`, width: `${100 / cells}%`, height: `${100 / cells}%` });
        }
      });
      paintSigned(wave.canvas, fourierDirection([ky, kx], size), size, `Wave of vertical frequency ${ky} and horizontal frequency ${kx}`);
      readout.replaceChildren(h("strong", {}, `${ky} cycles down, ${kx} across`), ...app.shown.flatMap((a) => {
        const found = onMap && a.known.get(row * cells + column);
        const accuracy = found ? interval(found) : `accuracy not measured ${onMap ? "yet" : "at odd frequencies"}`;
        return [h("br"), `${a.label}: ${accuracy}, energy ${short(a.energies[ky + size / 2][kx + size / 2])} of the map's largest`];
      }), held ? h("span", { class: "held" }, "Held, until you click it again or press Escape.") : "");
    },
    code: ({ frequency }, { name }) => [
      "# A wave",
      `wave = nc.fourier_direction((${frequency.join(", ")}), ${live?.size ?? 32})[0]  # (H, W)`,
      "wave_energy = nads.energy(wave[None])",
      ...(name ? [
        `results = nc.load_results("fig1-${name}")  # None where it has not been measured`,
        'by_frequency = {tuple(row["frequency"]): row["test_accuracy"] for row in results.rows} if results else {}',
      ] : []),
    ],
  };
}

function mixerPart(app) {
  const set = (weights) => app.set({ mix: weights });
  const faders = app.view.mix.map((_, n) => {
    const canvas = h("canvas", { role: "img", width: 1, height: 1 });
    const input = h("input", { type: "range", min: -1, max: 1, step: 0.05, "aria-label": `Weight of NAD ${n}`,
      input: () => set(app.view.mix.map((old, i) => (i === n ? +input.value : old))) });
    return { canvas, input, element: h("label", { class: "fader" }, canvas, h("span", {}, `${n}`), input) };
  });
  const pictures = rows(app, () => {
    const image = picture("the sum"), energy = picture("its energy over frequencies");
    return { image, energy, elements: [image.element, energy.element] };
  });
  const buttons = h("p", { class: "buttons" },
    h("button", { click: () => set(app.view.mix.map(() => Math.round(40 * Math.random() - 20) / 20)) }, "Surprise me"),
    h("button", { click: () => set(app.view.mix.map(() => 0)) }, "Clear"));
  return {
    title: "Mix your own",
    element: h("div", { class: "mixer" }, h("div", {}, h("div", { class: "faders" }, ...faders.map((f) => f.element)), buttons), h("div", {}, ...pictures.elements)),
    keys: ["mix"],
    update({ mix }, changed) {
      faders.forEach(({ canvas, input, element }, n) => {
        const known = app.shown.find(({ count }) => n < count);
        element.hidden = !known;
        if (!known) return;
        input.value = mix[n];
        input.setAttribute("aria-valuetext", `${mix[n].toFixed(2)} times NAD ${n}`);
        if (changed.has("architecture")) paintSigned(canvas, known.directions[n], known.size, `NAD ${n} of ${known.label}`);
      });
      pictures.update((architecture, { image, energy }) => {
        const sum = mixture(architecture.directions, mix);
        const count = Math.min(mix.length, architecture.count);
        paintSigned(image.canvas, sum, architecture.size, `Mixture of the first ${count} NADs of ${architecture.label}`);
        paintShares(energy.canvas, spectrum(sum, architecture.size), architecture.size, `Energy of the mixture over frequencies`);
      });
    },
    code: ({ mix }, { count }) => [
      "# A mixture of the first NADs",
      `weights = torch.tensor([${mix.slice(0, count).join(", ")}])`,
      "mixture = (weights[:, None, None] * nads.directions[: len(weights), 0]).sum(0)  # (H, W)",
    ],
  };
}

/** The photos to choose from, and one of the reader's own. */
function contactSheet(app, label) {
  const choose = (photo) => app.set({ photo });
  const buttons = new Map();
  const sheet = h("div", { class: "sheet", role: "group", "aria-label": label });
  const trouble = h("p", { class: "note", role: "alert" });
  const read = async () => {
    const chosen = file.files[0];
    if (!chosen) return;
    try {
      app.ownPhoto = await readPhoto(chosen, app.photos.size);
    } catch {
      trouble.textContent = `${chosen.name} is no image that this browser can read.`;
      return;
    }
    trouble.textContent = "";
    app.set({ photo: -1 });
    app.refresh(["photo"]);
  };
  const file = h("input", { type: "file", accept: "image/*", "aria-label": "An image of your own",
    click: () => (file.value = ""), change: read }); // emptied, so that the same file can be chosen again
  const own = h("label", { class: "button" }, "Your own image…", file);
  const sync = (version) => {
    const all = [...app.photos.map((photo, i) => [i, photo]), ...(app.ownPhoto ? [[-1, app.ownPhoto]] : [])];
    for (const [i, photo] of all) {
      if (!buttons.has(i)) {
        const canvas = h("canvas", { role: "img", width: 1, height: 1 });
        buttons.set(i, { canvas, button: h("button", { class: "thumb", click: () => choose(i) }, canvas) });
        sheet.append(buttons.get(i).button);
      }
      const { canvas, button } = buttons.get(i);
      button.setAttribute("aria-pressed", `${i === app.view.photo}`);
      paintPhoto(canvas, version ? version(photo) : photo.channels, app.photos.size, photo.name);
    }
  };
  return { element: h("div", { class: "choose" }, sheet, own, trouble), sync };
}

/** Scale any image to the size of the NADs, cropped to its middle square. */
async function readPhoto(file, size) {
  const bitmap = await createImageBitmap(file);
  const side = Math.min(bitmap.width, bitmap.height);
  const context = h("canvas", { width: size, height: size }).getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, (bitmap.width - side) / 2, (bitmap.height - side) / 2, side, side, 0, 0, size, size);
  const { data } = context.getImageData(0, 0, size, size);
  const channels = [0, 1, 2].map((c) => Float32Array.from({ length: size * size }, (_, i) => data[4 * i + c] / 255));
  return { name: file.name, label: 0, channels };
}

/** A text as Python and JavaScript write it, on one line whatever it holds. */
const quoted = JSON.stringify;

/** Python that makes `photo` (3, H, W) and its label. */
const photoCode = (app, { photo }, { size }) => photo < 0
  ? [
    "from PIL import Image, ImageOps",
    `picture = ImageOps.exif_transpose(Image.open(${quoted(app.ownPhoto.name)})).convert("RGB")  # your own`,
    `picture = ImageOps.fit(picture, (${size}, ${size}))`,
    "photo, label = torch.from_numpy(np.array(picture)).permute(2, 0, 1).float() / 255, torch.tensor(0)",
  ]
  : [
    app.photos.own ? "# photos: your own images, as given to nc.explorer.show" : `photos = nc.explorer.load_pictures(${size})`,
    `photo, label = photos.images[${photo}], photos.labels[${photo}]`,
  ];

function photoPart(app) {
  const sheet = contactSheet(app, "Choose an image");
  const kept = slider(app, "kept", "NADs kept", { max: () => mostNads(app), text: (n) => `the first ${n} NADs` });
  const pictures = rows(app, () => {
    const original = picture("the image"), image = picture("rebuilt"), rest = picture("what is missing");
    const note = h("p", { class: "note" });
    return { original, image, rest, note, elements: [original.element, image.element, rest.element, note] };
  });
  const chart = new Chart({ label: "Share of the image that the first NADs hold", limits: [0, 1], height: 110,
    ticks: [[0, "0 %"], [0.5, "50 %"], [1, "100 %"]], onMove: (i) => app.set({ kept: i }) });
  let found = []; // coordinates, and shares of energy, for each architecture in view
  return {
    title: "A photo, NAD by NAD",
    element: h("div", {}, sheet.element, kept.element, ...pictures.elements, chart.element),
    keys: ["photo", "kept"],
    update(view, changed) {
      const photo = app.photo();
      kept.sync();
      if (changed.has("architecture") || changed.has("photo")) {
        sheet.sync();
        pictures.update((_, { original }) =>
          paintPhoto(original.canvas, photo.channels, app.photos.size, `The image: ${photo.name}`));
        found = app.shown.map((a) => {
          const coords = coordinates(photo, a.directions);
          const energy = Float64Array.from({ length: a.count }, (_, i) => coords.reduce((sum, c) => sum + c[i] ** 2, 0));
          let sum = 0;
          const total = energy.reduce((s, e) => s + e, 0) || 1;
          return { coords, shares: [0, ...Array.from(energy, (e) => (sum += e) / total)] };
        });
        chart.draw({ last: mostNads(app), alt: "Share of the image's energy around grey, by number of NADs",
          series: app.shown.map((a, i) => ({ colour: a.colour, line: found[i].shares.map((s, n) => [n, s]) })) });
      }
      chart.cursor(view.kept);
      pictures.update((architecture, { image, rest, note }) => {
        const { coords, shares } = found[app.shown.indexOf(architecture)];
        const count = Math.min(view.kept, architecture.count);
        const channels = rebuilt(coords, architecture.directions, count);
        paintPhoto(image.canvas, channels, architecture.size, `The image from the first ${count} NADs of ${architecture.label}`);
        paintPhoto(rest.canvas, channels.map((c, k) => c.map((x, i) => GREY + photo.channels[k][i] - x)), architecture.size,
          "What is missing, around grey");
        note.replaceChildren(h("strong", {}, `${count} of ${architecture.count} NADs`), h("br"), `hold ${percent(shares[count])}`);
      });
    },
    code: (view, architecture) => [
      "# An image from its first NADs, channel by channel, around grey",
      ...photoCode(app, view, architecture),
      `basis = nads.basis[:, :${view.kept}]`,
      "rebuilt = 0.5 + ((photo.flatten(1) - 0.5) @ basis @ basis.T).view_as(photo)  # (3, H, W)",
    ],
  };
}

const CHANNELS = ["red", "green", "blue"];

function poisonPart(app) {
  const sheet = contactSheet(app, "Choose an image");
  const others = Math.max(...app.photos.map(({ label }) => Math.floor(label / NAD_CLASSES))); // NADs after the carrier's
  const last = (count = mostNads(app)) => Math.max(count - 1 - others, 0);
  const carrier = (view, { count }) => Math.min(view.index, last(count));
  const index = slider(app, "index", "Carrier's NAD", { max: () => last(), text: (i) => `NAD ${i}` });
  const strength = slider(app, "strength", "Strength ε", { min: STRENGTHS[0], max: () => STRENGTHS[1], step: STRENGTHS[0], show: (x) => x.toFixed(2) });
  const version = h("button", { class: "switch", role: "switch", click: () => app.set({ poisoned: !app.view.poisoned }) }, h("span", { class: "knob" }), h("span", {}, "Poisoned"));
  const pictures = rows(app, () => {
    const image = picture(""), difference = picture(""), note = h("p", { class: "note" });
    return { image, difference, note, elements: [image.element, difference.element, note] };
  });
  const chart = new Chart({ label: "Accuracy on clean images after training on images poisoned at this NAD", limits: [0, 1], height: 120,
    ticks: [[0.1, "10 %"], [0.5, "50 %"], [1, "100 %"]], onMove: (i) => app.set({ index: Math.min(i, last()) }) });
  const legend = h("p", { class: "legend" });
  return {
    title: "Poison",
    element: h("div", {}, h("div", { class: "choose-row" }, sheet.element, version), index.element, strength.element, ...pictures.elements,
      chart.element, legend),
    keys: ["photo", "index", "strength", "poisoned"],
    update(view, changed) {
      const photo = app.photo();
      index.sync();
      strength.sync();
      version.setAttribute("aria-checked", `${view.poisoned}`);
      sheet.sync(view.poisoned ? (p) => (poison(p, app.shown[0], carrier(view, app.shown[0]), view.strength) ?? p).channels : null);
      if (changed.has("architecture")) {
        chart.draw({
          last: mostNads(app) - 1,
          series: app.shown.map((a) => {
            const rows = (a.poison ?? []).filter(([i]) => i !== null);
            return { colour: a.colour, line: rows, points: rows };
          }),
        });
        legend.replaceChildren(...app.shown.map((a) => {
          const clean = a.poison?.find(([i]) => i === null);
          return h("span", { class: `swatch ${a.colour}` }, a.label, a.poison
            ? `${a.photos ? `, trained on ${a.photos}` : ""}${clean ? `: without poison ${interval(clean)}` : ""}`
            : ": not trained yet");
        }));
      }
      chart.cursor(view.index);
      pictures.update((architecture, { image, difference, note }) => {
        const made = poison(photo, architecture, carrier(view, architecture), view.strength);
        const shown = (view.poisoned && made) || photo;
        const state = shown === made ? `poisoned at NAD ${made.nad} of ${architecture.label}` : "clean";
        paintPhoto(image.canvas, shown.channels, architecture.size, `The image ${photo.name}, ${state}`);
        image.text.textContent = shown === made ? "poisoned" : "clean";
        difference.element.hidden = !made;
        const title = h("strong", {}, `“${photo.name}” is class ${photo.label}`);
        if (!made) return note.replaceChildren(title, h("br"), `and would need a later NAD than the ${architecture.count} there are`);
        const change = largest(made.difference);
        paintSigned(difference.canvas, made.difference, architecture.size, `What the poison changes in the ${CHANNELS[made.channel]} channel`);
        difference.text.textContent = `what changes in ${CHANNELS[made.channel]}, × ${(1 / (change || 1)).toPrecision(2)}`;
        note.replaceChildren(title, h("br"), `NAD ${made.nad}, ${CHANNELS[made.channel]} channel: ${signed(made.present)} becomes `,
          `${made.sign > 0 ? "+" : "−"}${view.strength.toFixed(2)}`, h("br"), `largest change of a pixel: ${percent(change)}`);
      });
    },
    code: (view, architecture) => [
      "# The poison",
      ...photoCode(app, view, architecture),
      `poisoned = nc.poison(photo[None], label[None], nads, index=${carrier(view, architecture)}, strength=${view.strength})[0]`,
      "difference = poisoned - photo",
    ],
  };
}

const PARTS = { direction: directionPart, curves: curvesPart, fourier: fourierPart, mixer: mixerPart, photo: photoPart, poison: poisonPart };

// ---------------------------------------------------------------------------------------------------------------------
// The Python code of the present view

function python(app, parts) {
  const first = app.shown[0];
  const body = parts.flatMap((part) => ["", ...part.code(app.view, first)]);
  const imports = [...(body.some((line) => line.includes("np.")) ? ["import numpy as np"] : []),
    ...(body.some((line) => line.includes("torch.")) ? ["import torch"] : [])];
  const nads = first.name ? `nads = nc.load_nads("${first.name}")` : `# nads: your own, ${quoted(first.label)}, as given to nc.explorer.show`;
  return [...imports, ...(imports.length ? [""] : []), "import nads_core as nc", "", nads, ...body, ""].join("\n");
}

function pythonPanel(app, parts) {
  const code = h("code");
  const copy = h("button", { click: async () => {
    await navigator.clipboard.writeText(code.textContent);
    copy.textContent = "Copied";
    setTimeout(() => (copy.textContent = "Copy"), 1500);
  } }, "Copy");
  const box = h("div", { class: "python", hidden: true }, h("pre", { tabindex: 0, role: "region", "aria-label": "Python code for this view" }, code), copy);
  const button = h("button", { "aria-expanded": "false", click: () => {
    box.hidden = !box.hidden;
    button.setAttribute("aria-expanded", `${!box.hidden}`);
    button.textContent = box.hidden ? "Show the Python" : "Hide the Python";
    update();
  } }, "Show the Python");
  const update = () => box.hidden || (code.textContent = python(app, parts));
  return { element: h("div", { class: "footer" }, button, box), update };
}

// ---------------------------------------------------------------------------------------------------------------------
// Putting it together

const KEYS = ["architecture", "second", "index", "frequency", "mix", "photo", "kept", "strength", "poisoned"];

/** The view as it can be drawn: an address or a program may ask for what these NADs and images do not have. */
function drawable(view, { shown, photos, ownPhoto }) {
  if (!shown.length) return view;
  const count = Math.max(...shown.map((architecture) => architecture.count)), { size } = shown[0];
  return {
    ...view,
    index: whole(view.index, 0, count - 1),
    kept: whole(view.kept, 0, count),
    // frequencies are the same up to multiples of the size
    frequency: view.frequency.map((k) => (((Math.round(k) + size / 2) % size) + size) % size - size / 2),
    mix: view.mix.map((weight) => clamp(weight, -1, 1)),
    photo: whole(view.photo, ownPhoto ? -1 : 0, photos ? photos.length - 1 : 0),
    strength: clamp(Math.round(100 * view.strength) / 100, ...STRENGTHS),
  };
}

/** The host's theme is read off the colour of its text. */
function followTheme(host, root) {
  const update = () => {
    const [r, g, b] = getComputedStyle(host).color.match(/[\d.]+/g).map(Number);
    root.classList.toggle("dark", 0.3 * r + 0.6 * g + 0.1 * b > 128);
  };
  const observer = new MutationObserver(update);
  for (const element of [document.documentElement, document.body]) observer.observe(element, { attributes: true });
  const media = matchMedia("(prefers-color-scheme: dark)");
  media.addEventListener("change", update);
  update();
  return () => (observer.disconnect(), media.removeEventListener("change", update));
}

/** Draw the explorer into `host`; returns a function that cleans up. `load(name)` gives a packet. */
function mount(model, host, load) {
  const shadow = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const root = h("div", { class: "explorer", role: "group", "aria-label": "NAD explorer", "aria-busy": "true" });
  shadow.replaceChildren(h("style", {}, STYLE), root);
  const forgetTheme = followTheme(host, root);

  const loaded = new Map(); // name -> promise
  const fetchOnce = (name, unpack) => {
    if (!loaded.has(name)) {
      const found = load(name).then(async (packet) => unpack(packet, await bytesOf(packet)));
      loaded.set(name, found);
      found.catch(() => loaded.delete(name)); // it can be tried again
    }
    return loaded.get(name);
  };

  const app = {
    shown: [],
    photos: null,
    ownPhoto: null,
    get view() {
      return drawable(Object.fromEntries(KEYS.map((key) => [key, model.get(key)])), app);
    },
    photo: () => (app.view.photo < 0 ? app.ownPhoto : app.photos[app.view.photo]),
    set(changes) {
      if ("architecture" in changes || "second" in changes) trouble.hidden = true;
      for (const [key, value] of Object.entries(changes)) model.set(key, value);
      model.save_changes();
    },
    refresh(keys) {
      keys.forEach((key) => changed.add(key));
      frame ??= requestAnimationFrame(draw);
    },
  };

  const trouble = h("p", { role: "alert", hidden: true });
  const say = (text, again) => {
    trouble.replaceChildren(`${text} `, h("button", { click: () => ((trouble.hidden = true), again()) }, "Try again"));
    trouble.hidden = false;
  };
  const changed = new Set();
  let frame = null, parts = [], toolbar = [], code = null, ended = false, tellReady;
  const ready = new Promise((resolve) => (tellReady = resolve));

  const draw = () => {
    frame = null;
    if (ended || !app.shown.length) return;
    performance.mark("nad-explorer:frame");
    const { view } = app;
    const keys = new Set(changed);
    changed.clear();
    toolbar.forEach((control) => control.sync());
    for (const part of parts)
      if (keys.has("architecture") || part.keys.some((key) => keys.has(key))) part.update(view, keys);
    code.update();
    performance.measure("nad-explorer:frame", "nad-explorer:frame");
    tellReady();
  };

  const build = () => {
    const labels = model.get("labels");
    const last = () => mostNads(app) - 1;
    const names = model.get("parts");
    parts = names.map((name) => ({ name, ...PARTS[name](app) }));
    const controls = [];
    if (Object.keys(labels).length > 1) {
      const network = menu(app, "architecture", "Network", labels);
      const second = menu(app, "second", "Compare with", { "": "none", ...labels });
      toolbar.push(network, second);
      controls.push(h("div", { class: "menus" }, network.element, second.element));
    }
    if (names.includes("direction") || names.includes("curves")) {
      const index = slider(app, "index", "NAD", { max: last, text: (i) => `NAD ${i} of ${app.shown[0].label}` });
      toolbar.push(index);
      controls.push(h("div", { class: "along" }, playButton(app, "index", last), index.element));
    }
    code = pythonPanel(app, parts);
    root.replaceChildren(trouble, h("div", { class: "toolbar" }, ...controls),
      ...parts.map((part) => h("section", { "aria-label": part.title, "data-part": part.name }, parts.length > 1 ? h("h3", {}, part.title) : null, part.element)),
      code.element);
  };

  /** Load what the view needs; a menu that moves on meanwhile wins. What cannot be loaded leaves the view as it was. */
  const arrange = async () => {
    const wanted = () => [...new Set([model.get("architecture"), model.get("second")].filter(Boolean))];
    const names = wanted();
    const late = () => ended || `${names}` !== `${wanted()}`;
    root.setAttribute("aria-busy", "true");
    try {
      const needed = await Promise.all([...names.map((name) => fetchOnce(name, unpackNads)),
        model.get("parts").some((name) => name === "photo" || name === "poison") &&
          fetchOnce("photos", (header, bytes) => Object.assign(unpackPhotos(header, bytes), { size: header.size, own: header.own }))]);
      if (late()) return;
      app.photos = needed.pop() || null;
      app.shown = needed.map((architecture, i) => ({ ...architecture, key: names[i], colour: "ab"[i] }));
      if (!parts.length) build();
      app.refresh(["architecture"]);
      root.setAttribute("aria-busy", "false");
    } catch (error) {
      if (late()) return;
      root.setAttribute("aria-busy", "false");
      if (!app.shown.length) {
        root.replaceChildren(trouble);
        return say(`The explorer cannot be shown. ${error.message}`, arrange);
      }
      const [architecture, second] = [model.get("architecture"), model.get("second")];
      say(`${names.map((name) => model.get("labels")[name]).join(" and ")} cannot be shown. ${error.message}`,
        () => app.set({ architecture, second }));
      model.set("architecture", app.shown[0].key);
      model.set("second", app.shown[1]?.key ?? "");
      model.save_changes();
    }
  };

  const listeners = KEYS.map((key) => {
    const listener = () => {
      if (key === "architecture" || key === "second") arrange();
      else app.refresh([key]);
    };
    model.on(`change:${key}`, listener);
    return [`change:${key}`, listener];
  });
  arrange();
  const end = () => {
    ended = true;
    forgetTheme();
    listeners.forEach(([event, listener]) => model.off(event, listener));
  };
  return { end, ready };
}

// ---------------------------------------------------------------------------------------------------------------------
// Home one: a live notebook

const PATIENCE = 60_000; // milliseconds

/** Ask Python for arrays: it answers by adding them to `_packets`. */
const loadFromPython = (model) => (name) =>
  new Promise((resolve, reject) => {
    const look = () => {
      const packets = model.get("_packets");
      if (!Object.hasOwn(packets, name)) return false;
      clearTimeout(timer);
      model.off("change:_packets", look);
      resolve(packets[name]);
      return true;
    };
    const timer = setTimeout(() => {
      model.off("change:_packets", look);
      reject(new Error("Python does not answer: is the kernel busy, or gone?"));
    }, PATIENCE);
    model.on("change:_packets", look);
    if (look()) return;
    model.set("_wanted", [...new Set([...model.get("_wanted"), name])]);
    model.save_changes();
  });

function render({ model, el }) {
  const host = h("div");
  el.append(host);
  return mount(model, host, loadFromPython(model)).end;
}

// ---------------------------------------------------------------------------------------------------------------------
// Home two: a static page

/** A model in the browser, with the interface of a widget's. What differs from the start is kept in the address. */
class PageModel {
  constructor(start, id) {
    Object.assign(this, { start, id, state: { ...start }, listeners: new Map() });
  }

  get = (key) => this.state[key];

  set(key, value) {
    if (JSON.stringify(this.state[key]) === JSON.stringify(value)) return;
    this.state[key] = value;
    (this.listeners.get(`change:${key}`) ?? []).forEach((listener) => listener());
  }

  on(event, listener) {
    this.listeners.set(event, [...(this.listeners.get(event) ?? []), listener]);
  }

  off(event, listener) {
    this.listeners.set(event, (this.listeners.get(event) ?? []).filter((other) => other !== listener));
  }

  /** Browsers limit how often an address may change, so it waits until the reader pauses. */
  save_changes() {
    if (!this.start.shared) return; // the address of a notebook is not ours
    clearTimeout(PageModel.timer);
    PageModel.timer = setTimeout(writeAddress, 150);
  }

  /** Add to the address what differs from the start: but an image of the reader's own cannot be found again. */
  describe(address) {
    const moved = KEYS.map((key) => [key, JSON.stringify(this.state[key])])
      .filter(([key, value]) => value !== JSON.stringify(this.start[key]) && !(key === "photo" && this.state.photo < 0));
    if (moved.length && this.part) address.set(`${this.id}.part`, this.part);
    for (const [key, value] of moved) address.set(`${this.id}.${key}`, value.replaceAll('"', ""));
  }

  /** Take over what the address says of this explorer, if anything; a key or value that makes no sense is left out. */
  restore() {
    if (!this.start.shared) return false;
    const address = parameters();
    if (!["part", ...KEYS].some((key) => address.has(`${this.id}.${key}`))) return false;
    for (const key of KEYS) this.set(key, parsed(address.get(`${this.id}.${key}`), this.start[key], key, this.start.labels));
    const part = address.get(`${this.id}.part`);
    this.part = this.start.parts.includes(part) ? part : "";
    return true;
  }
}

const parameters = () => new URLSearchParams(/^#explorer(-\d+)?\./.test(location.hash) ? location.hash.slice(1) : "");

/** The address says what every explorer of the page shows. */
function writeAddress() {
  const address = new URLSearchParams();
  for (const { model } of document.querySelectorAll("nad-explorer")) if (model?.start.shared) model.describe(address);
  const hash = address.toString().replaceAll("%2C", ",").replaceAll("%5B", "[").replaceAll("%5D", "]");
  if (hash || [...parameters()].length) history.replaceState(null, "", `#${hash}`);
}

function parsed(text, fallback, key, labels) {
  if (text === null) return fallback;
  if (typeof fallback === "string") return Object.hasOwn(labels, text) || (key === "second" && text === "") ? text : fallback;
  try {
    const value = JSON.parse(text);
    const like = Array.isArray(fallback)
      ? Array.isArray(value) && value.length === fallback.length && value.every(Number.isFinite)
      : typeof value === typeof fallback && (typeof value !== "number" || (Number.isFinite(value) && value >= 0));
    return like ? value : fallback;
  } catch {
    return fallback;
  }
}

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
    if (this.unmount) return; // moved within the page
    const number = [...document.querySelectorAll("nad-explorer")].indexOf(this) + 1;
    this.id ||= number > 1 ? `explorer-${number}` : "explorer";
    this.model = new PageModel(JSON.parse(this.getAttribute("view")), this.id);
    const linked = this.model.restore();
    const { keys } = this.model.start; // of arrays that came with this explorer
    const { end, ready } = mount(this.model, this, (name) => loadFromPage(Object.hasOwn(keys, name) ? keys[name] : name));
    this.unmount = end;
    addEventListener("hashchange", () => this.model.restore() && this.reveal()); // a link to another view
    for (const event of ["pointerdown", "keydown", "input"]) // where the reader is, for the address
      this.shadowRoot.addEventListener(event, ({ target }) => (this.model.part = target.closest("section")?.dataset.part ?? ""), true);
    if (!linked || performance.getEntriesByType("navigation")[0]?.type === "reload") return;
    this.reveal();
    ready.then(() => this.reveal()); // now the parts have their heights
  }

  /** Scroll to the part that the address names. */
  reveal() {
    (this.shadowRoot.querySelector(`section[data-part="${this.model.part}"]`) ?? this).scrollIntoView();
  }
}

if (!customElements.get("nad-explorer")) customElements.define("nad-explorer", NadExplorer);
