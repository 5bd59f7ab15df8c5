"""How executed chapters and Sphinx's pages become what a reader sees: `build` calls these functions
in order.
"""

from __future__ import annotations

import base64
import hashlib
import html
import math
import re
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import torch
from matplotlib.figure import Figure
from PIL import Image

from nads_book import explorer
from nads_book.claims.statements import TAKEAWAY
from nads_book.explorer.wave_bet import Guess, guess_data
from nads_book.figures.variants import MIME, VARIANTS, Variants
from nads_book.report import LABELS
from nads_core.directions import NADs

# Notebooks


def hide_repeated_parameters(notebook: nbformat.NotebookNode) -> None:
    """Hide the cell that papermill adds, where it repeats the cell above it and
    the page's byline.
    """
    for above, cell in zip(notebook.cells, notebook.cells[1:], strict=False):
        if "injected-parameters" in cell.metadata.get("tags", []):
            repeated = (
                line in above.source or line.startswith(("#", "preset ="))
                for line in cell.source.splitlines()
            )
            if all(repeated):
                cell.metadata["tags"].append("remove-cell")


# A line that shows a claim, a stored figure or a widget: a page shows the result alone.
SHOWN = re.compile(r"(nb\.conclude|(nb\.pages\.\w+|page)\.\w+)\(.*\)")


def hide_calls(notebook: nbformat.NotebookNode) -> None:
    """Hide the code of cells in which there is nothing to change."""
    for cell in notebook.cells:
        lines = cell.source.splitlines() if cell.cell_type == "code" else []
        if lines and all(map(SHOWN.fullmatch, lines)):
            cell.metadata.setdefault("tags", []).append("remove-input")


def byline(notebook: nbformat.NotebookNode) -> str:
    """Note how long an executed chapter took, on what, at which preset and when: papermill and
    `execute` noted it.
    """
    record, seconds = notebook.metadata["papermill"], notebook.metadata["papermill"]["duration"]
    duration = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"
    preset, day = record["parameters"]["preset"], record["end_time"][:10]
    return (
        f"This page was computed in {duration} on {notebook.metadata['machine']}, at preset "
        f"`{preset}`, on {day}."
    )


def with_byline(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Put the byline under the title of an executed chapter, and below it what cells tagged
    ``under-title`` display.
    """
    title, _, rest = notebook.cells[0].source.partition("\n")
    lifted = [cell for cell in notebook.cells if "under-title" in cell.metadata.get("tags", [])]
    notes = "".join(
        f"\n{output['data']['text/markdown']}\n" for cell in lifted for output in cell.outputs
    )
    line = f":::{{div}} byline\n{byline(notebook)}\n:::"
    notebook.cells[0].source = f"{title}\n\n{line}\n{notes}{rest}"
    notebook.cells = [cell for cell in notebook.cells if cell not in lifted]
    return notebook


def with_takeaway(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Put the takeaway of a chapter into a box, which Jupyter and Colab would show as its
    source.
    """
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            box = r":::{admonition} Takeaway\n:class: takeaway\n\1\n:::"
            cell.source = TAKEAWAY.sub(box, cell.source)
    return notebook


FOLD = 70  # characters of a fold's name, at most
HEADING, DETAILS = re.compile(r"#{1,6} "), re.compile(r"<!-- details: (.+) -->$")
END = "<!-- end of details -->"


def with_details(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Fold what follows a line ``<!-- details: LABEL -->``, up to the next heading or ``<!-- end of
    details -->``.

    A page then reads like an article; a notebook has it all.

    Raises:
        ValueError: for details in details.
    """
    inside = False
    for cell in (cell for cell in notebook.cells if cell.cell_type == "markdown"):
        lines, fenced = [], False
        for line in cell.source.splitlines():
            fenced ^= line.startswith("```")
            begins = DETAILS.match(line)
            if begins and inside:
                raise ValueError(f"details begin within others: {line}")
            if inside and (line == END or HEADING.match(line) and not fenced):
                lines += ["</details>", ""]
                inside = False
            if begins:
                lines += [
                    "<details>",
                    f"<summary>{html.escape(begins[1])}</summary>",
                    "",
                ]
                inside = True
            elif line != END:
                lines.append(line)
        cell.source = "\n".join(lines)
    if inside:
        notebook.cells = [*notebook.cells, nbformat.v4.new_markdown_cell("</details>")]
    return notebook


def name_folds(notebook: nbformat.NotebookNode) -> None:
    """Name the folds of code after what is in them: the caption of a figure, or
    the first comment.
    """
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        if cell.cell_type != "code" or not {"hide-input", "hide-cell"} & set(tags):
            continue
        options = cell.metadata.setdefault("mystnb", {})
        caption = options.get("figure", {}).get("caption", "")
        comment = re.search(r"^# *(.+)$", cell.source, re.MULTILINE)
        title = caption or (comment[1] if comment else "")
        title = re.split(r"(?<=[^.])\. |[.:;]$", title.replace("{", "").replace("}", ""))[0]
        label = f"In Python: {title[:FOLD].rsplit(' ', 1)[0] if len(title) > FOLD else title}"
        label = label if title else "Set-up in Python"
        options.setdefault("code_prompt_show", label)
        options.setdefault("code_prompt_hide", label)


# What the first page shows


def draw_intro(path: Path) -> None:
    """Draw the introduction's figure from the directions that ship with the library."""
    from nads_book import figures
    from nads_core import load_nads

    names = ("lenet", "vgg11", "resnet18", "densenet121")
    nads = {LABELS[name]: load_nads(name) for name in names}
    _draw_variants(path, Variants(figures.plot_directions, nads))


def combine_pictures() -> dict[str, np.ndarray]:
    """Compute what the strip shows of ResNet-18: title -> signed picture, or logarithms of
    energies.

    These are the first filters of one random network, its gradient, the energies of the waves in
    the gradients of thousands of networks, and the first directions.
    """
    from nads_book.theory.reference import average_gradient
    from nads_core import RESNET18, load_nads

    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = RESNET18.build().eval()
        gradient = average_gradient(network, torch.randn(16, 1, 32, 32)).view(32, 32)
    filters = next(weight for weight in network.parameters() if weight.dim() == 4).detach()[:, 0]
    waves = np.empty((16, 16))
    for ky, kx, energy, _ in guess_data("resnet18")["tasks"]:
        for sign in (-1, 1):
            waves[(sign * ky + 16) % 32 // 2, (sign * kx + 16) % 32 // 2] = energy
    return {
        "One network with\nrandom weights": mosaic(filters.numpy()),
        "Its gradient: how much\neach pixel matters": gradient.numpy(),
        "Thousands of gradients:\nthe energy of each wave": np.log10(waves),
        "What they share:\nthe first four NADs": mosaic(
            load_nads("resnet18").directions[:4, 0].numpy()
        ),
    }


def mosaic(pictures: np.ndarray) -> np.ndarray:
    """Put n pictures (n, H, W) into a square, each scaled to its largest value, with a line of NaN
    between them.
    """
    count, (height, width) = math.isqrt(len(pictures)), pictures.shape[1:]
    scaled = pictures / np.abs(pictures).max((1, 2), keepdims=True)
    padded = np.pad(scaled, ((0, 0), (0, 1), (0, 1)), constant_values=np.nan)
    rows = padded.reshape(count, count, height + 1, width + 1).swapaxes(1, 2)
    return rows.reshape(count * (height + 1), count * (width + 1))[:-1, :-1]


def plot_strip(pictures: dict[str, np.ndarray]) -> Figure:
    """Draw how NADs are made, one picture after another."""
    figure, axes = plt.subplots(1, len(pictures), figsize=(7.6, 2.25), layout="constrained")
    for axis, (number, (title, picture)) in zip(axes, enumerate(pictures.items(), 1), strict=True):
        if np.nanmax(picture) <= 0:
            axis.imshow(picture, cmap="magma")
        else:
            largest = np.nanmax(np.abs(picture))
            axis.imshow(picture, cmap="RdBu_r", vmin=-largest, vmax=largest)
        axis.set_title(f"{number}. {title}", fontsize=8, loc="left")
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
        if number < len(pictures):
            place = {"xycoords": "axes fraction", "va": "center", "annotation_clip": False}
            axis.annotate("→", (1.02, 0.5), fontsize=14, **place)
    return figure


def draw_strip(path: Path) -> None:
    """Draw the strip with its variants for dark and narrow pages."""
    _draw_variants(path, Variants(plot_strip, combine_pictures()))


def _draw_variants(path: Path, variants: Variants) -> None:
    """Save a figure, and its variants for dark and narrow pages."""
    figures = {"": variants.light} | {f".{name}": variants.variant(name) for name in VARIANTS}
    for name, figure in figures.items():
        assert figure is not None, f"{path.stem} has no variant {name}"
        figure.savefig(path.with_suffix(f"{name}.png"), dpi=200, facecolor=figure.get_facecolor())


def draw_certainty(path: Path) -> None:
    """Draw the picture of the page *How certain is a NAD?* with its variants."""
    from nads_core import load_nads

    _draw_variants(path, Variants(plot_certainty, load_nads("lenet"), "++s"))


def plot_certainty(nads: NADs, kind: str) -> Figure:
    """Draw the eigenvalues of one symmetry type with their errors, above the certainties."""
    chosen = [index for index, name in enumerate(nads.types) if name == kind][:48]
    ranks = range(len(chosen))
    figure, (upper, lower) = plt.subplots(
        2, 1, sharex=True, figsize=(7.6, 3.6), layout="constrained"
    )
    values, errors = nads.eigenvalues[chosen].numpy(), nads.eigenvalue_std[chosen].numpy()
    upper.errorbar(ranks, values, 2 * errors, fmt=".", color="tab:blue", markersize=4, linewidth=1)
    upper.set(yscale="log", ylabel="eigenvalue")
    lower.bar(ranks, nads.certainty[chosen].numpy(), color="tab:blue", width=0.7)
    lower.set(ylim=(0, 1), ylabel="certainty", xlabel=f"rank within the type {kind}")
    return figure


def draw_question(path: Path) -> None:
    """Draw the waves of the bet, as its reader sees them first: the preview of the first page shows
    no answer.
    """
    places = np.arange(-16, 0)
    frequencies = np.arange(-16, 16, 2)  # the published grid, in 32 x 32 pixels
    rows, columns = np.meshgrid(places, places, indexing="ij")
    tiles = [
        [np.sin(2 * np.pi * (ky * rows + kx * columns) / 32) for kx in frequencies]
        for ky in frequencies
    ]
    framed = [[np.pad(tile, 1, constant_values=np.nan) for tile in row] for row in tiles]
    picture = np.kron(np.block(framed), np.ones((2, 2)))
    grey = np.where(np.isnan(picture), 255, 135 + 85 * np.nan_to_num(picture))
    Image.fromarray(grey.astype(np.uint8)).save(path, optimize=True)


def page_figures() -> dict[str, Guess | explorer.Page | explorer.Playground]:
    """Return what moves on pages that are no chapters.

    On the introduction these are a guess, a picture from its first NADs, and two architectures.
    """
    view, source = explorer.View, explorer.Source()
    return {
        "guess": Guess(),
        "photo": explorer.Page(view(("photo",), photo=8, kept=20), source, book=True),
        "directions": explorer.Page(
            view(("direction",), second="resnet18", index=3), source, book=True
        ),
        "playground": explorer.Playground(wave=(2, 1), small=False, shared=True, book=True),
    }


# Pages


ICON = re.compile(r'(?:"([\w-]+)"|\b([a-z]\w*)):\[\d+,\d+,\[([^\]]*)\],"[0-9a-f]+","[^"]*"\],?')


def figure_variants(folder: Path) -> dict[str, dict[str, bytes]]:
    """Return the variants of each picture of the executed chapters: hash of the PNG ->
    name -> PNG.
    """
    found = {}
    for path in folder.glob("*.ipynb"):
        for cell in nbformat.read(path, as_version=4).cells:
            for data in (output.get("data", {}) for output in cell.get("outputs", [])):
                stored = {name: data.get(MIME.format(name)) for name in VARIANTS}
                others = {name: base64.b64decode(text) for name, text in stored.items() if text}
                if others:
                    found[_hash(base64.b64decode(data["image/png"]))] = others
    return found


def without_variants(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Leave out what Sphinx does not know."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            for name in VARIANTS:
                output.get("data", {}).pop(MIME.format(name), None)
    return notebook


def static_variants(folder: Path) -> dict[str, dict[str, bytes]]:
    """Return the same of pictures in a folder, ``NAME.png`` with ``NAME.dark.png`` and others in
    the same folder.
    """
    found: dict[str, dict[str, bytes]] = {}
    for name in VARIANTS:
        for path in sorted(folder.glob(f"*.{name}.png")):
            picture = path.with_name(path.name.replace(f".{name}", "")).read_bytes()
            found.setdefault(_hash(picture), {})[name] = path.read_bytes()
    return found


def _hash(picture: bytes) -> str:
    return hashlib.sha256(picture).hexdigest()


def place_variants(pages: Path, variants: dict[str, dict[str, bytes]]) -> None:
    """Write the variants of pictures into their folder, and let pages show the one that fits the
    theme and the screen.

    A picture without a dark variant is shown as it is; each leads to its file, where it can be
    enlarged.
    """
    names: dict[str, set[str]] = {}
    for path in sorted(pages.glob("_images/*.png")):
        others = variants.get(_hash(path.read_bytes()), {})
        names[path.stem] = set(others)
        for name, content in others.items():
            path.with_suffix(f".{name}.png").write_bytes(content)
    sizes = {}  # in HTML, so that a page does not move while its pictures arrive
    for path in pages.glob("_images/*.png"):
        with Image.open(path) as picture:
            sizes[path.stem] = 'width="{}" height="{}"'.format(*picture.size)

    def shown(image: re.Match[str]) -> str:
        tag, address, stem = image[0].replace("<img ", '<img loading="lazy" '), image[1], image[2]
        dark = "dark" in names.get(stem, ())

        def picture(name: str, narrow: str, kind: str) -> str:
            source = f"{address}{stem}{name}.png"
            fits = narrow in names.get(stem, ())
            small = f'<source media="(max-width: 576px)" srcset="{address}{stem}.{narrow}.png" '
            small = f"{small}{sizes[f'{stem}.{narrow}']}>" if fits else ""
            inner = tag.replace(f"{address}{stem}.png", source).replace(
                "<img ", f"<img {sizes[stem + name]} "
            )
            kinds = f"enlarge{'' if fits else ' wide'}{kind}"
            return f'<a class="{kinds}" href="{source}"><picture>{small}{inner}</picture></a>'

        light = picture("", "narrow", " for-light" if dark else "")
        return light + (picture(".dark", "narrow-dark", " for-dark") if dark else "")

    for path in pages.rglob("*.html"):
        text = path.read_text("utf8")
        changed = re.sub(r'<img [^>]*src="([^"]*_images/)([^"/]+)\.png"[^>]*>', shown, text)
        if changed != text:
            path.write_text(changed, "utf8")
    for path in pages.glob("_images/*.png"):
        shrink(path)


def polish(pages: Path) -> None:
    """Mend what the theme and Sphinx leave.

    These are an icon font of 1.5 MB, lists that are none to a screen reader, lone signs, and a
    script that measures folded cells, for which the browser has to lay out each of them.
    """
    used = set()
    for path in pages.rglob("*.html"):
        page = text = path.read_text("utf8")
        text = text.replace('role="doc-biblioentry"', 'role="listitem"')
        text = re.sub(
            r'<dl>\s*(<dd><em class="sig-param".*?)</dl>', _signature, text, flags=re.DOTALL
        )
        # A narrow cell keeps a number and its sign on one line, and a mantissa and its power of ten
        text = re.sub(r"(?<=\d) %(?!\w)", "\u00a0%", text)
        text = re.sub(r"(?<=\d) · (?=10[⁻⁰¹²³⁴-⁹])", "\u00a0·\u00a0", text)
        if text != page:
            path.write_text(text, "utf8")
        used.update(re.findall(r"\bfa-([a-z0-9-]+)", page))

    def kept(icon: re.Match[str]) -> str:
        names = {icon[1] or icon[2], *re.findall(r'"([\w-]+)"', icon[3])}  # and its older ones
        return icon[0] if names & used else ""

    for path in pages.glob("_static/scripts/pydata-sphinx-theme.js"):
        measures = ".forEach(e=>{e.tabIndex=e.scrollWidth"
        shown = measures.replace("e.tabIndex", "if(e.checkVisibility())e.tabIndex")
        path.write_text(path.read_text("utf8").replace(measures, shown), "utf8")
    for path in pages.glob("_static/scripts/fontawesome.js"):
        path.write_text(ICON.sub(kept, path.read_text("utf8")), "utf8")


def shrink(path: Path) -> None:
    """Write a picture with a palette of 256 colours, a third of its size, unless it has more, as
    photos do.
    """
    full, method = Image.open(path).convert("RGBA"), Image.Quantize.FASTOCTREE
    if full.getchannel("A").getextrema() == (255, 255):  # it is transparent nowhere
        full, method = full.convert("RGB"), Image.Quantize.MEDIANCUT
    few = full.quantize(256, method=method, dither=Image.Dither.NONE)
    lost = np.asarray(full, np.int16) - np.asarray(few.convert(full.mode), np.int16)
    if np.abs(lost).mean() < 0.5:  # of 255 levels
        few.save(path, optimize=True)


def _signature(parameters: re.Match[str]) -> str:
    """Make the parameters of a long signature lines, where Sphinx makes them a list of definitions
    without terms.
    """
    lines = parameters[1].replace("<dd>", '<span class="sig-line">').replace("</dd>", "</span>")
    return f'<span class="sig-lines">{lines}</span>'
