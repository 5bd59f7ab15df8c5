import { h, paintPhoto } from "./drawing.js";
import { quoted } from "./text.js";

/** The photos to choose from, and one of the reader's own. */
export function contactSheet(app, label) {
  const choose = (photo) => app.set({ photo });
  const buttons = new Map();
  const sheet = h("div", { class: "sheet", role: "group", "aria-label": label });
  const trouble = h("p", { class: "note", role: "alert" });
  const read = async (chosen) => {
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
    click: () => (file.value = ""), change: () => read(file.files[0]) }); // cleared, so that the same file can be chosen again
  const own = h("label", { class: "button" }, "Your own image…", file);
  const sync = () => {
    const all = [...app.photos.map((photo, i) => [i, photo]), ...(app.ownPhoto ? [[-1, app.ownPhoto]] : [])];
    for (const [i, photo] of all) {
      if (!buttons.has(i)) {
        const canvas = h("canvas", { role: "img", width: 1, height: 1 });
        buttons.set(i, { canvas, button: h("button", { class: "thumb", click: () => choose(i) }, canvas) });
        sheet.append(buttons.get(i).button);
      }
      const { canvas, button } = buttons.get(i);
      button.setAttribute("aria-pressed", `${i === app.view.photo}`);
      paintPhoto(canvas, photo.channels, app.photos.size, photo.name);
    }
  };
  return { element: h("div", { class: "choose" }, sheet, own, trouble), sync };
}

/** Scale any image to `size`, cropped to its middle square. */
export async function readPhoto(file, size) {
  const bitmap = await createImageBitmap(file);
  const side = Math.min(bitmap.width, bitmap.height);
  const context = h("canvas", { width: size, height: size }).getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, (bitmap.width - side) / 2, (bitmap.height - side) / 2, side, side, 0, 0, size, size);
  const { data } = context.getImageData(0, 0, size, size);
  const channels = [0, 1, 2].map((c) => Float32Array.from({ length: size * size }, (_, i) => data[4 * i + c] / 255));
  return { name: file.name, label: 0, channels };
}

/** Python that makes `photo` (3, H, W) and its label. */
export const photoCode = (app, { photo }, { size }) => photo < 0
  ? [
    "from PIL import Image, ImageOps",
    `picture = ImageOps.exif_transpose(Image.open(${quoted(app.ownPhoto.name)})).convert("RGB")  # your own`,
    `picture = ImageOps.fit(picture, (${size}, ${size}))`,
    "photo, label = torch.from_numpy(np.array(picture)).permute(2, 0, 1).float() / 255, torch.tensor(0)",
  ]
  : [
    `photos = nb.explorer.load_pictures(${size})`,
    `photo, label = photos.images[${photo}], photos.labels[${photo}]`,
  ];
