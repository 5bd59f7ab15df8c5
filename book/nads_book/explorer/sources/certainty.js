// What is known about each direction: its name, how certain it is, and the band that it cannot be distinguished from

/** How reliable NAD `i` is; nothing where there are no certificates. */
export function certaintyText({ certificates }, i) {
  if (!certificates) return [];
  const { certainty, band, bands } = certificates;
  const [size, known] = bands[band[i]] ?? [];
  const alone = `certainty ${certainty[i].toFixed(2)}`;
  return [size ? `${alone}; one of ${size} that cannot be distinguished (together ${known.toFixed(2)})` : alone];
}

/** The name of NAD `i`, which sampling does not change; nothing where it has none. */
export function nameText({ certificates }, i) {
  const name = certificates?.names[i] ?? "";
  return name.includes(" ") ? [`symmetry type ${name.replace(/ (\d+)$/, ", rank $1")}`] : [];
}

/** The next index (or the one before, for -1) that is not of the same band: a band is stepped through as one. */
export function stepped({ certificates, count }, index, by) {
  const band = certificates?.band;
  const first = (i) => (band && band[i] >= 0 ? band.indexOf(band[i]) : i);
  for (let i = index + by; i >= 0 && i < count; i += by) if (first(i) === i && i !== first(index)) return i;
  return by < 0 ? 0 : index;
}
