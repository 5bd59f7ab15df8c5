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
