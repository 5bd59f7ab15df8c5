// What Python packed: arrays with their headers

/** Undo `as_script` of data.py: base64, then zlib. */
export async function bytesOf(packet) {
  if (typeof DecompressionStream === "undefined")
    throw new Error("This browser is too old for the explorer: it lacks DecompressionStream.");
  const text = atob(packet.bytes), packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i); // a callback per byte takes ten times as long
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** `load`, whose packets are unpacked and kept. */
export function keeping(load) {
  const loaded = new Map(); // name -> promise
  return (name, unpack) => {
    if (!loaded.has(name)) {
      const found = load(name).then(async (packet) => unpack(packet, await bytesOf(packet)));
      loaded.set(name, found);
      found.catch(() => loaded.delete(name)); // it can be tried again
    }
    return loaded.get(name);
  };
}

/** An architecture: its header, eigenvalues (n) and directions, Float32Arrays (H²). The inverse of `pack_nads`. */
export function unpackNads(header, bytes) {
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
export function unpackPhotos({ count, size, labels, names }, bytes) {
  const area = size * size;
  const photos = Array.from({ length: count }, (_, i) => ({
    name: names[i],
    label: labels[i],
    channels: [0, 1, 2].map((c) =>
      Float32Array.from(bytes.subarray((3 * i + c) * area, (3 * i + c + 1) * area), (x) => x / 255)),
  }));
  return Object.assign(photos, { size });
}
