// A file of the reader's own NADs, as NADs.save writes it: an npz, read as data only. Nothing leaves the browser

import { transform } from "./fourier.js";

const MOST = { file: 64e6, content: 256e6 }; // bytes of the file, and of what is packed in it
const READERS = {
  "<f4": (view, i) => view.getFloat32(4 * i, true), "<f8": (view, i) => view.getFloat64(8 * i, true),
  "<i2": (view, i) => view.getInt16(2 * i, true), "|i1": (view, i) => view.getInt8(i),
};

/** The files of a zip archive, by name: functions that inflate them. */
function archive(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let end = bytes.length - 22;
  while (end >= Math.max(0, bytes.length - 65_557) && view.getUint32(end, true) !== 0x06054b50) end--;
  if (end < 0 || view.getUint32(end, true) !== 0x06054b50) throw new Error("it is no npz file, or a part of one");
  const files = new Map();
  let at = view.getUint32(end + 16, true), total = 0;
  for (let n = view.getUint16(end + 10, true); n > 0; n--) {
    if (view.getUint32(at, true) !== 0x02014b50) throw new Error("it is damaged");
    const [packed, size] = [20, 24].map((offset) => view.getUint32(at + offset, true));
    const [name, extra, comment] = [28, 30, 32].map((offset) => view.getUint16(at + offset, true));
    const method = view.getUint16(at + 10, true), start = view.getUint32(at + 42, true);
    if ((total += size) > MOST.content) throw new Error(`it unpacks to more than ${MOST.content / 1e6} MB`);
    files.set(new TextDecoder().decode(bytes.subarray(at + 46, at + 46 + name)), async () => {
      const head = start + 30 + view.getUint16(start + 26, true) + view.getUint16(start + 28, true);
      const content = bytes.subarray(head, head + packed);
      return method === 0 ? content : inflate(content, size);
    });
    at += 46 + name + extra + comment;
  }
  return files;
}

/** Inflate to exactly `size` bytes; more than that is not read. */
async function inflate(content, size) {
  const found = new Uint8Array(size);
  const reader = new Blob([content]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  for (let filled = 0; ; ) {
    const { done, value } = await reader.read();
    if (done && filled === size) return found;
    if (done || filled + value.length > size) throw new Error("it is damaged");
    found.set(value, filled);
    filled += value.length;
  }
}

/** An array of numbers: its shape and values. */
function array(bytes, name) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 10 || view.getUint32(0) !== 0x934e554d) throw new Error(`its ${name} is damaged`);
  const wide = bytes[6] > 1, length = wide ? view.getUint32(8, true) : view.getUint16(8, true);
  const begin = (wide ? 12 : 10) + length;
  const header = new TextDecoder("latin1").decode(bytes.subarray(wide ? 12 : 10, begin));
  const [, kind] = /'descr': *'([^']*)'/.exec(header) ?? [], [, dimensions] = /'shape': *\(([^)]*)\)/.exec(header) ?? [];
  const shape = (dimensions ?? "").split(",").filter((text) => text.trim()).map(Number);
  const count = shape.reduce((product, n) => product * n, 1), read = READERS[kind];
  if (!read || /'fortran_order': *True/.test(header)) throw new Error(`its ${name} has numbers of the kind ${kind}`);
  const data = new DataView(bytes.buffer, bytes.byteOffset + begin, bytes.length - begin);
  if (!Number.isSafeInteger(count) || count * +kind[2] > data.byteLength) throw new Error(`its ${name} is damaged`);
  return { shape, values: Float32Array.from({ length: count }, (_, i) => read(data, i)) };
}

/** Read NADs for a figure of images of side `size`; raise an Error that says what is wrong with them. */
export async function readNads(file, size) {
  if (file.size > MOST.file) throw new Error(`it has ${(file.size / 1e6).toFixed(0)} MB, and may have ${MOST.file / 1e6}`);
  const files = archive(new Uint8Array(await file.arrayBuffer()));
  const missing = ["directions", "eigenvalues"].filter((name) => !files.has(`${name}.npy`));
  if (missing.length) throw new Error(`it lacks ${missing.join(" and ")}: NADs.save writes such a file`);
  const load = async (name) => array(await files.get(`${name}.npy`)(), name);
  const [stored, eigenvalues] = [await load("directions"), await load("eigenvalues")];
  const scale = files.has("scale.npy") ? (await load("scale")).values : [1];
  const [count, channels, height, width] = stored.shape;
  if (channels !== 1 || height !== size || width !== size)
    throw new Error(`its directions have the shape (${stored.shape.join(", ")}), and this figure draws (n, 1, ${size}, ${
      size}): nb.explorer.show draws other sizes`);
  if (!count || count > size * size || eigenvalues.values.length !== count) throw new Error("it has too few or too many numbers");
  const directions = Array.from({ length: count }, (_, i) =>
    stored.values.subarray(i * size * size, (i + 1) * size * size).map((x) => x * scale[scale.length > 1 ? i : 0]));
  for (const direction of directions) {
    const norm = Math.hypot(...direction);
    if (!(Math.abs(norm - 1) < 0.01)) throw new Error(`one of its directions has the length ${norm}, and not 1`);
  }
  if (!eigenvalues.values.every((value) => value >= 0)) throw new Error("one of its eigenvalues is negative, or no number");
  const label = file.name.replace(/\.npz$/i, "").slice(0, 40) || "yours";
  return { label, file: file.name, name: null, size, count, directions, eigenvalues: eigenvalues.values, certificates: null,
    energies: energiesOf(directions, eigenvalues.values, size) };
}

/** v'Cv of every wave, rows from -size / 2 up, relative to the largest of the map; as `_energies` of data.py. */
function energiesOf(directions, eigenvalues, size) {
  const energies = new Float64Array(size * size), half = size / 2;
  directions.forEach((direction, i) => {
    const { re, im } = transform(direction, size);
    for (let y = 0; y < size; y++)
      for (let x = 0; x < size; x++) {
        const own = (2 * y) % size === 0 && (2 * x) % size === 0, j = y * size + x;
        energies[((y + half) % size) * size + ((x + half) % size)] +=
          (eigenvalues[i] * (own ? re[j] ** 2 : 2 * im[j] ** 2)) / size ** 2;
      }
  });
  const rows = Array.from({ length: size }, (_, y) => Array.from(energies.subarray(y * size, (y + 1) * size)));
  const largest = Math.max(...rows.filter((_, y) => y % 2 === 0).flatMap((row) => row.filter((_, x) => x % 2 === 0)));
  return rows.map((row) => row.map((energy) => energy / (largest || 1)));
}
