import { Chart } from "../chart.js";
import { slider } from "../controls.js";
import { coordinates, GREY, rebuilt } from "../directions.js";
import { h, paintPhoto, picture } from "../drawing.js";
import { contactSheet, photoCode } from "../photos.js";
import { mostNads, rows } from "../rows.js";
import { percent } from "../text.js";

export function photoPart(app) {
  const sheet = contactSheet(app, "Choose an image");
  const kept = slider(app, "kept", "NADs kept", { max: () => mostNads(app), box: true,
    text: (n) => `the first ${n} NADs` });
  const pictures = rows(app, () => {
    const original = picture("the image"), image = picture("rebuilt"), rest = picture("the remainder");
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
      const photo = app.photo;
      kept.sync();
      if (changed.has("architecture") || changed.has("photo")) {
        sheet.sync();
        pictures.update((_, { original }) =>
          paintPhoto(original.canvas, photo.channels, app.photos.size, `The image: ${photo.name}`));
        found = app.shown.map((a) => {
          const coords = coordinates(photo, a.directions);
          const energy = Float64Array.from({ length: a.count }, (_, i) =>
            coords.reduce((sum, c) => sum + c[i] ** 2, 0));
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
        const { label, size, directions } = architecture, count = Math.min(view.kept, architecture.count);
        const channels = rebuilt(coords, directions, count);
        const missing = channels.map((c, k) => c.map((x, i) => GREY + photo.channels[k][i] - x));
        paintPhoto(image.canvas, channels, size, `The image from the first ${count} NADs of ${label}`);
        paintPhoto(rest.canvas, missing, size, "The remainder, around grey");
        note.replaceChildren(h("strong", {}, `${count} of ${architecture.count} NADs`), h("br"),
          `hold ${percent(shares[count])}`);
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
