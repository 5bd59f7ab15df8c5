"""The numbered statements of the paper, and the verdicts on them; ``errata.toml`` has the
statements.
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from nads_book.experiments import formatting
from nads_book.experiments.evidence import Evidence
from nads_book.experiments.formatting import readable
from nads_book.theory import deep_linear, lemma2, pooling
from nads_book.theory.checks import deep_linear as checks_of_model
from nads_book.theory.checks import lemma2 as checks_of_lemma2
from nads_book.theory.checks import pooling as checks_of_pooling
from nads_book.theory.checks.check import (
    LIMIT,
    Check,
    CheckFunction,
    passed,
    readable_z,
    worst,
)


@dataclass(frozen=True)
class Statement:
    """One statement of the paper, in one reading.

    Args:
        title: number in the paper, and the reading.
        check: function that checks the statement.
        example: the smallest counter-example to the printed form, in words, up to its two numbers;
            None where there is no counter-example.
        numbers: function that computes the right number for the example, and the printed one.
        otherwise: verdict if the checks contradict the printed form but not ours.
        is_printed: whether the main text prints the statement at all.
        is_exact: whether the paper states it as exact; an approximation that it announces is not
            falsified.
        is_random: whether the checks draw samples of a random quantity; otherwise only rounding
            errors remain.
    """

    title: str
    check: CheckFunction
    example: str | None = None
    numbers: Callable[[], tuple[float, float]] | None = None
    otherwise: str = "holds with a changed constant"
    is_printed: bool = True
    is_exact: bool = True
    is_random: bool = True

    def verdict(self, results: Sequence[Check]) -> str:
        """Return the outcome of the checks in words."""
        if not passed(results):
            return "not settled: the simulation contradicts our form too"
        if not self.is_printed:
            return "not in the main text; our form is confirmed"
        return "holds as printed" if passed(results, printed=True) else self.otherwise

    def evidence(self, results: Sequence[Check]) -> str:
        """Return the number of settings, and how far both forms are from the simulation."""
        text = f"{len(results)} settings; "
        if results[0].is_bound:
            ours, printed = (
                sum(c.z >= LIMIT for c in results),
                sum(c.z_printed >= LIMIT for c in results),
            )
            return f"{text}our bound is exceeded in {ours}, the printed one in {printed}."
        if not self.is_random:
            ours = readable(max(abs(c.simulated - c.formula) for c in results))
            printed = readable(max(abs(c.simulated - c.printed) for c in results))
            text += (
                f"the output differs by at most {ours} from our form and by {printed} from the "
                "printed one."
            )
            return (
                f"{text} Rounding errors are below "
                f"{readable(LIMIT * max(c.standard_error for c in results))}."
            )
        printed_z = (
            f", the printed one {readable_z(worst(results, printed=True))}"
            if self.is_printed
            else ""
        )
        return (
            f"{text}our form is off by at most {readable_z(worst(results))} standard "
            f"errors{printed_z}."
        )

    def counterexample(self) -> str | None:
        """Return the counter-example with its numbers, which are computed."""
        if self.numbers is None:
            return None
        ours, printed = (readable(number, 3) for number in self.numbers())
        return f"{self.example} {ours}; printed {printed}"


def decide(key: str, results: Sequence[Check]) -> Evidence:
    """Return the evidence that checks give for a statement of the paper as printed, or for ours
    where none is printed.

    Args:
        key: key of `STATEMENTS`.
        results: results of its check.
    """
    statement = STATEMENTS[key]
    as_stated = passed(results, printed=statement.is_printed) or (
        False if statement.is_exact else None
    )
    return Evidence(
        as_stated if passed(results) else None,
        statement.evidence(results),
        answer=statement.verdict(results),
        counterexample=statement.counterexample() or "none",
    )


def decisions(
    results: Callable[[], Mapping[str, Sequence[Check]]], keys: Iterable[str]
) -> dict[str, Callable[[], Evidence]]:
    """Return what a page decides about statements of the paper: id of the claim -> function.

    Args:
        results: function that returns the results of the checks.
        keys: keys of `STATEMENTS`.
    """
    return {f"errata-{key}": partial(_decide_by, results, key) for key in keys}


def _decide_by(results: Callable[[], Mapping[str, Sequence[Check]]], key: str) -> Evidence:
    return decide(key, results()[key])


def show_verdicts(results: Mapping[str, Sequence[Check]]) -> None:
    """Display the verdict on each statement.

    Args:
        results: key of `STATEMENTS` -> results of its check.
    """
    rows = []
    for key, found in results.items():
        statement = STATEMENTS[key]
        formatting.publish(f"errata-{key}")
        rows.append((statement.title, f"**{statement.verdict(found)}**", statement.evidence(found)))
    formatting.table(rows, ("statement of the paper", "verdict", "evidence"))


def _indivisible() -> tuple[float, float]:
    x = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    spectrum = torch.fft.fft(x, norm="ortho")
    printed = float((spectrum[0] + spectrum[2]).real) / 2**0.5  # t = 0, M = 2: entries 0 and 2
    return float(torch.fft.fft(x[::2], norm="ortho")[0].real), printed


def _pooled(
    frequency: int, size: int, stride: int, accuracy: Callable[..., Tensor]
) -> tuple[float, float]:
    arguments = (frequency, pooling.prefilter("identity", size, stride), stride, 1.0, 1.0)
    return float(accuracy(*arguments)), float(pooling.bayes_accuracy_printed(*arguments))


def _corners(ours: Tensor, printed: Tensor) -> tuple[float, float]:
    return float(ours[0, 0]), float(printed[0, 0])


def _slope_bound() -> tuple[float, float]:
    slopes, rates = (
        torch.tensor([-1.0, 1.0], dtype=torch.float64),
        torch.ones(2, dtype=torch.float64),
    )
    norms = lemma2.dipole_gradient_norms(lambda t: t.square() / 4, slopes, rates)
    return float(norms.mean()), float(lemma2.lemma2_bound_printed(slopes, rates, 0.5, 0.0))


def _dipole_bound() -> tuple[float, float]:
    zeros, ones = torch.zeros(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64)
    left_side = float(lemma2.dipole_gradient_norms(torch.square, ones, ones).mean())
    return left_side, float(lemma2.lemma2_bound_printed(zeros, zeros, 2.0, 0.0))


def _dipole_tail() -> tuple[float, float]:
    theta = torch.tensor([-1.0, 1.0], dtype=torch.float64)
    # At x = 0, v = 1: q = (theta (x + v)^2 - theta x^2)^2 = theta^2, and the slope 2 theta x = 0.
    return float((theta.square() >= 1).double().mean()), float((2 * theta * 0.0).square().mean())


_ONES = torch.ones(2)
_HESSIANS = deep_linear.expected_hessian, deep_linear.expected_hessian_printed
_MOMENTS = deep_linear.mixed_second_moment, deep_linear.mixed_second_moment_printed
_NUMBERS: dict[str, Callable[[], tuple[float, float]]] = {
    "eq1-indivisible": _indivisible,
    "theorem1": lambda: _pooled(0, 3, 3, pooling.bayes_accuracy),
    "theorem1-folded": lambda: _pooled(1, 4, 2, pooling.bayes_accuracy),
    "theorem1-complex": lambda: _pooled(0, 2, 2, pooling.bayes_accuracy_complex),
    "lemma1": lambda: _corners(*(hessian(0, _ONES, 2, 1.0, 1.0) for hessian in _HESSIANS)),
    "eq4": lambda: _corners(
        deep_linear.gradient_covariance(_ONES, 2), deep_linear.gradient_covariance_printed(_ONES)
    ),
    "eq5": lambda: _corners(*(moment(_ONES, 2) for moment in _MOMENTS)),
    "lemma2": _slope_bound,
    "lemma2-dipole": _dipole_bound,
    "eq6-dipole": _dipole_tail,
}
CHECKS: dict[str, CheckFunction] = {  # "lemma1-theta" -> `check_lemma1_theta`
    name.removeprefix("check_").replace("_", "-"): getattr(module, name)
    for module in (checks_of_pooling, checks_of_model, checks_of_lemma2)
    for name in dir(module)
    if name.startswith("check_") and name != "check_function"
}
STATEMENTS = {
    key: Statement(check=CHECKS[key], numbers=_NUMBERS.get(key), **texts)
    for key, texts in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf8")).items()
}
