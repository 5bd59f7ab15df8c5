"""The report: its sections as one HTML page that needs nothing else."""

from __future__ import annotations

import html
import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nads_book.network_report.facts import classes, no_images, python_code, what_was_drawn
from nads_book.network_report.frequencies import frequencies
from nads_book.network_report.preferences import preferences, similar_networks
from nads_book.network_report.sample import Sample
from nads_book.network_report.sections import Section
from nads_core.data import ImageSet
from nads_core.directions import NADs
from nads_core.runtime.files import atomic_write


@dataclass(frozen=True)
class Report:
    """A report on one network.

    Args:
        name: name of the network.
        sections: sections in their order.
        code: Python that computes it again.
        status: sentence about a computation that goes on; "" when it is done.
    """

    name: str
    sections: list[Section]
    code: str
    status: str = ""

    @property
    def numbers(self) -> dict[str, Any]:
        """The numbers of each section by its title, as the page holds them in JSON."""
        return {section.title: section.numbers for section in self.sections}

    @property
    def html(self) -> str:
        """The page."""
        style = Path(__file__).with_name("page.css").read_text("utf8")
        name, facts = html.escape(self.name), self.numbers["What was drawn"]
        count = facts.get("num_networks")
        meta = f"{count:,} random networks" if count is not None else "random networks"
        opening = [section.opening for section in self.sections if section.opening]
        summary = "".join(f"<li>{sentence}</li>" for sentence in opening)
        content = json.dumps(_plain(self.numbers), allow_nan=False).replace("<", "\\u003c")
        status = f" {html.escape(self.status)}" if self.status else ""
        parts = [
            f"<h1>What {name} prefers before training</h1>",
            f'<p class="meta">{meta}, {facts.get("date", "")}.{status} Parentheses hold 95 % '
            "intervals. Energy along a direction is the variance of the slope of the output along "
            "it, over random weights.</p>",
            f'<div class="open"><h2>In short</h2><ul>{summary}</ul></div>' if summary else "",
            *map(_section, self.sections),
            f"<h2>The Python</h2><pre><code>{html.escape(self.code)}</code></pre>",
            "<h2>The numbers</h2><p>This page holds all its numbers as JSON, in the element "
            "<code>#numbers</code>.</p>",
            f'<script type="application/json" id="numbers">{content}</script>',
        ]
        head = (
            f'<meta charset="utf-8"><title>{name}: NADs</title><style>{style}</style>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
        )
        body = "".join(parts)
        return (
            f'<!doctype html><html lang="en"><head>{head}</head>'
            f"<body><main>{body}</main></body></html>\n"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page, whole or not at all."""
        with atomic_write(Path(path).expanduser(), "w") as file:
            file.write(self.html)

    def _repr_html_(self) -> str:
        page = html.escape(self.html)
        return f'<iframe srcdoc="{page}" style="width:100%;height:80vh;border:0"></iframe>'


def _plain(content: Any) -> Any:
    """Return nested content with None for numbers that JSON does not have."""
    if isinstance(content, dict):
        return {key: _plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def _section(section: Section) -> str:
    sentences = "".join(f"<p>{sentence}</p>" for sentence in section.sentences)
    return f"<section><h2>{section.title}</h2>{sentences}{section.body}</section>"


def report_on(
    nads: NADs,
    images: ImageSet | None = None,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    warnings: Sequence[str] = (),
    call: str = "",
    images_call: str = "",
    status: str = "",
) -> Report:
    """Describe what a network prefers before training, and what that means for classes of inputs.

    Args:
        nads: NADs whose uncertainty is known.
        images: labelled inputs of the shape of the NADs, of at least two classes with 20 each.
        checkpoint: checkpoint of the run that computed the NADs. Its networks give estimates
            without bias and their intervals; without it, those of energies come from the errors of
            the eigenvalues, and are wider.
        warnings: warnings of the run, to be shown.
        call: first arguments of `compute_nads`, as Python, for the code on the page.
        images_call: Python that loads the images, for the code on the page.
        status: sentence about a computation that goes on.

    Raises:
        ValueError: for NADs without an uncertainty, for a part of a basis without a checkpoint, or
            for inputs that do not fit.

    Example:
        >>> import nads_core as nc
        >>> sorted(report_on(nc.load_nads("lenet")).numbers)[:2]
        ['At which frequencies', 'What was drawn']
    """
    if nads.uncertainty is None:
        raise ValueError("these NADs have no uncertainty: compute them again")
    if checkpoint is None and len(nads) < nads.basis.shape[0]:
        raise ValueError(
            f"{len(nads)} of {nads.basis.shape[0]:,} directions hold only a part of the energy: "
            "pass the checkpoint of their run, or compute all"
        )
    sample = Sample.of_checkpoint(checkpoint) if checkpoint else Sample.of_nads(nads)
    if sample.shape != tuple(nads.directions.shape[1:]):
        raise ValueError(
            f"{checkpoint} is of inputs {sample.shape}, the NADs are of "
            f"{tuple(nads.directions.shape[1:])}"
        )
    name = nads.name
    sections = [
        preferences(nads, sample),
        frequencies(sample, name),
        similar_networks(nads, sample, name),
        no_images(sample.shape) if images is None else classes(nads, sample, images),
        what_was_drawn(nads, warnings),
    ]
    code = python_code(nads, call, images_call)
    return Report(name, [section for section in sections if section], code, status)
