// The book's colour maps, as tables of 256 RGBA values

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

export const COLOURS = Object.fromEntries(Object.entries(BOOK_COLOURS).map(([name, s]) => [name, colourTable(s)]));
