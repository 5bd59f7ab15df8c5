// What is known about each direction: its name, how certain it is, and the band that it cannot be distinguished from

/** What to say about NAD `i`; nothing where there are no certificates. */
export function certaintyText({ certificates }, i) {
  if (!certificates) return [];
  const { names, certainty, band, bands } = certificates;
  const [size, known] = bands[band[i]] ?? [];
  const alone = `certainty ${certainty[i].toFixed(2)}`;
  const name = names[i].includes(" ") ? [`symmetry type ${names[i].replace(/ (\d+)$/, ", rank $1")}`] : [];
  return [...name, size ? `${alone}; one of ${size} that cannot be distinguished (together ${known.toFixed(2)})` : alone];
}

/** The next index (or the one before, for -1) that is not of the same band: a band is stepped through as one. */
export function stepped({ certificates, count }, index, by) {
  const band = certificates?.band;
  const first = (i) => (band && band[i] >= 0 ? band.indexOf(band[i]) : i);
  for (let i = index + by; i >= 0 && i < count; i += by) if (first(i) === i && i !== first(index)) return i;
  return by < 0 ? 0 : index;
}
