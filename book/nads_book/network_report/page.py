"""The report: its sections as one HTML page that needs nothing else."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from nads_book.experiments.formatting import fixed, readable
from nads_book.network_report.classes import classes
from nads_book.network_report.frequencies import frequencies
from nads_book.network_report.parts import Section
from nads_book.network_report.preferences import preferences
from nads_book.network_report.sample import Sample
from nads_core.data import ImageSet
from nads_core.directions import SecondMoment
from nads_core.runtime.files import atomic_write

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Report:
    """A report on one network.

    Args:
        name: name of the network.
        sections: sections in their order.
        facts: provenance of the NADs.
        warnings: warnings of the run.
        status: sentence about a computation that goes on; "" when it is done.
    """

    name: str
    sections: list[Section]
    facts: dict[str, Any]
    warnings: Sequence[str] = ()
    status: str = ""

    @property
    def numbers(self) -> dict[str, Any]:
        """The numbers of each section by its title, as the page holds them in JSON.

        Floats have five digits, and None stands for those that are not finite.
        """
        numbers = {section.title: section.numbers for section in self.sections}
        numbers["What was drawn"] = self.facts | {"warnings": self.warnings}
        plain: dict[str, Any] = json.loads(
            json.dumps(numbers, default=list),  # an estimate with its interval
            parse_float=lambda text: float(f"{float(text):.5g}"),
            parse_constant=lambda _: None,
        )
        return plain

    @property
    def html(self) -> str:
        """The page."""
        template, style = ((_FOLDER / f"page.{kind}").read_text("utf8") for kind in ("html", "css"))
        page = jinja2.Template(template, autoescape=True, trim_blocks=True)
        return page.render(report=self, readable=readable, fixed=fixed, style=Markup(style))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page, whole or not at all."""
        with atomic_write(Path(path).expanduser(), "w") as file:
            file.write(self.html)

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escape(self.html)}" '
            'style="width:100%;height:80vh;border:0"></iframe>'
        )


def report_on(moment: SecondMoment, images: ImageSet | None = None, *, status: str = "") -> Report:
    """Describe what a network prefers before training, and what that means for classes of inputs.

    Args:
        moment: second moment of the networks, whose groups give estimates without bias and their
            intervals.
        images: labelled inputs of the shape of the networks', of at least two classes with 20 each.
        status: sentence about a computation that goes on.

    Raises:
        ValueError: for inputs that do not fit.

    Example:
        >>> import nads_core as nc
        >>> moment = nc.second_moment(nc.LOGREG, (1, 8, 8), 16, workers=1, progress=False)
        >>> sorted(report_on(moment).numbers)[:2]
        ['At which frequencies', 'What was drawn']
    """
    with warnings.catch_warnings(record=True) as caught:  # which the page shows
        warnings.simplefilter("always", UserWarning)
        nads = moment.nads()
    texts = [str(one.message) for one in caught if issubclass(one.category, UserWarning)]
    sample = Sample.of_moment(moment)
    sections = [preferences(nads, sample), frequencies(sample, nads.name)]
    if images:
        sections.append(classes(sample, images))
    return Report(nads.name, sections, nads.provenance, texts, status)
