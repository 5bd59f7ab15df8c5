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

// And back: NADs as files

const CRC = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; k++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
  return n;
});
const crc32 = (bytes) => {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ CRC[(crc ^ byte) & 255];
  return (crc ^ 0xffffffff) >>> 0;
};

/** The file that numpy reads: a header of a multiple of 64 bytes, and the values. */
function npy(kind, shape, bytes) {
  const start = `{'descr': '${kind}', 'fortran_order': False, 'shape': (${shape.map((n) => `${n},`).join(" ")}), }`;
  const header = `${start.padEnd(64 * Math.ceil((start.length + 11) / 64) - 11)}\n`;
  const file = new Uint8Array(10 + header.length + bytes.length);
  file.set([0x93, ...new TextEncoder().encode("NUMPY"), 1, 0, header.length & 255, header.length >> 8]);
  file.set(new TextEncoder().encode(header), 10);
  file.set(bytes, 10 + header.length);
  return file;
}

/** A zip archive of files that are not compressed: name -> bytes. */
function zip(files) {
  const parts = [], directory = [];
  let at = 0;
  const record = (signature, fields) => { // fields: [value, bytes]
    const view = new DataView(new ArrayBuffer(4 + fields.reduce((sum, [, size]) => sum + size, 0)));
    view.setUint32(0, signature, true);
    let offset = 4;
    for (const [value, size] of fields) {
      if (size === 2) view.setUint16(offset, value, true);
      else view.setUint32(offset, value, true);
      offset += size;
    }
    return new Uint8Array(view.buffer);
  };
  for (const [name, bytes] of Object.entries(files)) {
    const text = new TextEncoder().encode(name), day = (46 << 9) | (1 << 5) | 1; // a day that does not depend on a clock
    const common = [[20, 2], [0, 2], [0, 2], [0, 2], [day, 2], [crc32(bytes), 4], [bytes.length, 4], [bytes.length, 4],
      [text.length, 2], [0, 2]];
    parts.push(record(0x04034b50, common), text, bytes);
    directory.push(record(0x02014b50, [[20, 2], ...common, [0, 2], [0, 2], [0, 2], [0, 4], [at, 4]]), text);
    at += 30 + text.length + bytes.length;
  }
  const size = directory.reduce((sum, { length }) => sum + length, 0), count = Object.keys(files).length;
  return new Blob([...parts, ...directory, record(0x06054b50,
    [[0, 2], [0, 2], [count, 2], [count, 2], [size, 4], [at, 4], [0, 2]])], { type: "application/zip" });
}

/** Every character as four bytes, as numpy stores text. */
const utf32 = (text) => new Uint8Array(Uint32Array.from([...text], (letter) => letter.codePointAt(0)).buffer);
const bytesOfFloats = (floats) => new Uint8Array(Float32Array.from(floats).buffer);

/** A file that `load_nads` reads. Its scale of ones lets that make the directions orthonormal again after rounding. */
export function nadsFile({ label, name, size, count, directions, eigenvalues }) {
  const values = new Float32Array(count * size * size);
  directions.forEach((direction, i) => values.set(direction, i * size * size));
  const provenance = JSON.stringify({ architecture: name ?? label, image_shape: [1, size, size],
    note: "downloaded from the explorer, 8 bits per pixel" });
  return zip({
    "directions.npy": npy("<f4", [count, 1, size, size], new Uint8Array(values.buffer)),
    "eigenvalues.npy": npy("<f4", [count], bytesOfFloats(eigenvalues)),
    "scale.npy": npy("<f4", [count, 1, 1, 1], bytesOfFloats(Array(count).fill(1))),
    "provenance.npy": npy(`<U${[...provenance].length}`, [], utf32(provenance)),
  });
}

/** A table: one row per direction, with its eigenvalue and its pixels, row by row. */
export function nadsTable({ size, directions, eigenvalues }) {
  const pixels = Array.from({ length: size * size }, (_, i) => `pixel_${Math.floor(i / size)}_${i % size}`);
  const lines = directions.map((direction, i) =>
    [i, eigenvalues[i].toPrecision(6), ...Array.from(direction, (x) => +x.toPrecision(4))].join(","));
  return new Blob([["nad", "eigenvalue", ...pixels].join(","), "\n", lines.join("\n"), "\n"], { type: "text/csv" });
}
