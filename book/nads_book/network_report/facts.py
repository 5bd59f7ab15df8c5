"""What the classes of images ask for, what was drawn, and the Python that repeats it."""

from __future__ import annotations

import html
from collections.abc import Sequence

from nads_book.network_report.class_pairs import ClassPairs, Sensitivity, class_pairs
from nads_book.network_report.pictures import figures, photo, picture
from nads_book.network_report.preferences import worth_drawing
from nads_book.network_report.sample import Sample
from nads_book.network_report.sections import Section, as_json, decided, shown, table
from nads_book.report import percent, readable
from nads_core.data import ImageSet, class_differences
from nads_core.directions import NADs
from nads_core.directions.run import DENSE_LIMIT

_SHOWN = 3  # pairs of classes, of the least and of the most sensitive ones
_LEADING = 4  # NADs along which class means vary most


def classes(nads: NADs, sample: Sample, images: ImageSet) -> Section:
    """Describe the sensitivity along differences of classes, and the pairs where it is smallest."""
    pairs = class_pairs(images, sample)
    names, known, total = images.class_names, pairs.known, len(pairs.pairs)
    source = images.source if images.source.startswith("images") else f"images of {images.source}"
    overall, sentences = pairs.overall, []
    if decided(overall, 1):
        sentences.append(
            f"Between classes the energy is {shown(overall)} times that along a random direction "
            f"(mean over "
            f"{total} pair{'s' * (total > 1)} of classes, {len(images):,} {html.escape(source)})."
        )
    opening = sentences[0] if sentences else ""
    if len(known) < total:
        sentences.append(
            f"The images do not distinguish the means of {total - len(known)} of {total} pairs, "
            f"which are left out."
        )
    if pairs.deaf:
        deaf = ", ".join(_named(pair, names) for pair in pairs.deaf[:_SHOWN])
        sentences.append(
            f"Deaf: {len(pairs.deaf)} of {total} pairs differ along directions to which the "
            f"network responds less than to a random one: {deaf}."
        )
        opening = sentences[-1]
    elif len(known) == total and known[0].interval[0] > 1:
        sentences.append(
            "No pair of classes lies where the network is deaf: each interval is above 1."
        )
    titles = ("The lowest estimates, not distinguished from the highest", "The highest estimates")
    if len(known) > 1 and known[0].interval[1] < known[-1].interval[0]:
        titles = ("Where the network responds least", "Where it responds most")
        sentences.append(
            f"Least sensitive: {_named(known[0], names)}; most: {_named(known[-1], names)}. The "
            f"intervals hold for all {total} pairs together (Bonferroni), as these two were chosen "
            "afterwards."
        )
    body = "".join(
        f"<h3>{title}</h3>" + "".join(_drawn(pair, pairs, names) for pair in chosen)
        for title, chosen in zip(
            titles, (known[:_SHOWN], known[_SHOWN:][-_SHOWN:][::-1]), strict=True
        )
        if chosen
    )
    content: dict[str, object] = {
        "lift": as_json(overall),
        "pairs": [
            {
                "classes": [names[label] for label in pair.classes],
                "sensitivity": as_json(pair),
                "known": pair.known,
            }
            for pair in pairs.pairs[:200]
        ],
    }
    if len(nads) == nads.basis.shape[0] and nads.directions.dim() == 4:
        differences = class_differences(images, nads)
        leading = [i for i in differences.leading(_LEADING) if worth_drawing(nads, i)]
        content["leading NADs"] = leading
        along = [
            picture(
                nads[i].numpy(),
                f"NAD {i}<br>{percent(float(differences.explained[i]))} explained",
                f"NAD {i}, along which the class means vary most",
            )
            for i in leading
        ]
        caption = (
            "NADs along which the class means vary most, and the share of the images' variance "
            "along each that the classes explain."
        )
        body += figures(along, caption) if along else ""
    body += "<p class=note>Only class means count here, not what else distinguishes classes.</p>"
    return Section("What your classes ask for", sentences, body, content, opening)


def _named(pair: Sensitivity, names: Sequence[str]) -> str:
    first, second = (html.escape(names[label]) for label in pair.classes)
    return f"{first} – {second}, {shown(pair)}"


def _drawn(pair: Sensitivity, pairs: ClassPairs, names: Sequence[str]) -> str:
    """Draw the means of two classes and their difference."""
    first, second = (pairs.means[label] for label in pair.classes)
    one, other = (html.escape(names[label]) for label in pair.classes)
    both = " and ".join(names[label] for label in pair.classes)
    drawings = [
        photo(first.numpy(), one, f"mean of {names[pair.classes[0]]}"),
        photo(second.numpy(), other, f"mean of {names[pair.classes[1]]}"),
        picture((first - second).numpy(), "difference", f"difference of the means of {both}"),
    ]
    return f'<div class="pair">{figures(drawings, f"sensitivity {shown(pair)}", 70)}</div>'


def what_was_drawn(nads: NADs, warnings: Sequence[str]) -> Section:
    """List the networks, their initialisation, silent branches, symmetries and warnings."""
    facts = nads.provenance
    count, effective = facts.get("num_networks"), facts.get("effective_networks")
    rows: list[tuple[str, str]] = [("input", " × ".join(map(str, nads.directions.shape[1:])))]
    if count is not None:
        counted = f", which count as {readable(effective)} (effective number)" if effective else ""
        rows.append(("networks", f"{count:,}{counted}"))
    if "num_parameters" in facts:
        rows.append(("weights that vary", f"{facts['num_parameters']:,} per network"))
    if drawn := facts.get("initialisation"):
        kinds = [
            f"{number} tensor{'s' * (number > 1)} {_KINDS[kind]}" for kind, number in drawn.items()
        ]
        rows.append(("initialisation found", "; ".join(kinds)))
    if "fixed_weights" in facts:
        rows.append(("weights that do not vary", f"{facts['fixed_weights']:,}"))
    silent = facts.get("silent_parts", {})
    parts = [f"{html.escape(name)} = {value:g}" for name, value in silent.items()]
    more = f" and {len(parts) - 3} more" if len(parts) > 3 else ""
    rows.append(("silent branches", ", ".join(parts[:3]) + more or "none found"))
    if "silent_networks" in facts:
        rows.append(("networks without response", percent(facts["silent_networks"], 1)))
    if facts.get("reinit_readout"):
        rows.append(
            (
                "last layer",
                "starts at zero; drawn as nn.Linear draws it, so that there is a gradient",
            )
        )
    if "symmetries" in facts:
        rows.append(
            ("averaged over", ", ".join(facts["symmetries"]).replace("_", " ") or "no symmetry")
        )
    for key in ("estimator", "seed", "dtype", "seconds", "device", "torch", "date"):
        if key in facts:
            rows.append((key, html.escape(str(facts[key]))))
    body = table(["", ""], [[key, value] for key, value in rows])
    if tests := facts.get("symmetry_tests"):
        tested = [
            [
                name.replace("_", " "),
                f"{test['p_value']:.3f}",
                f"{test['asymmetry']:.3f}"
                + ("" if test["limit"] is None else f" (below {test['limit']:.3f})"),
                "yes" if name in facts.get("symmetries", ()) else "no",
            ]
            for name, test in tests.items()
        ]
        body += table(["symmetry tested", "p", "asymmetry (95 % limit)", "averaged"], tested)
    sentences = [html.escape(f"Warning: {text.rstrip('.')}.") for text in dict.fromkeys(warnings)]
    if silent and not warnings:
        sentences.append(
            "Branches that start at or near zero contribute almost nothing to these NADs."
        )
    return Section("What was drawn", sentences, body, {**facts, "warnings": list(warnings)})


_KINDS = {
    "uniform": "uniform around 0",
    "normal": "normal around 0",
    "other": "in several steps, such as a truncated normal",
    "by the factory": "by the factory itself, in a way that cannot be repeated",
}


def no_images(shape: tuple[int, ...]) -> Section:
    """Say how to get the section about classes, for inputs of this shape."""
    how = "Pass <code>--images FOLDER</code>, with one folder of images per class,"
    if len(shape) < 3:
        how = "Pass labelled inputs to <code>nb.report_on</code> in Python"
    sentence = f"{how} to see which classes differ where the network hardly responds."
    return Section("What your classes ask for", [sentence])


def python_code(nads: NADs, call: str, images: str) -> str:
    """Return the Python that computes the NADs again and draws the report.

    Args:
        nads: NADs, whose provenance names what was drawn.
        call: first arguments of `compute_nads`, as Python; "" where they are not known.
        images: expression that loads the images; "" without.
    """
    facts = nads.provenance
    lines = ["import nads_book as nb", "import nads_core as nc", ""]
    if call:
        options = [
            call,
            f"num_networks={facts.get('num_networks')}",
            f"image_shape={tuple(nads.directions.shape[1:])}",
        ]
        options += [f"seed={facts['seed']}"] if facts.get("seed") else []
        options += ["reinit_readout=True"] if facts.get("reinit_readout") else []
        if nads.basis.shape[0] > DENSE_LIMIT:
            options.append(f"estimator=nc.{facts['estimator']}")
        options.append('checkpoint="nads.ckpt"')
        lines += ["nads = nc.compute_nads(", *(f"    {option}," for option in options), ")"]
    else:
        lines.append('nads = nc.NADs.load("nads.npz")')
    lines += [f"images = {images}"] if images else []
    arguments = ["nads", *["images"] * bool(images), *['checkpoint="nads.ckpt"'] * bool(call)]
    lines.append(f'nb.report_on({", ".join(arguments)}).save("report.html")')
    lines.append('nads.plot(10).savefig("nads.png")')
    return "\n".join(lines)
