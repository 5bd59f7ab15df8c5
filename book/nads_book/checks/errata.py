"""The numbered statements of the paper, what our checks say of each, and how the chapters hand that to the errata page.

A chapter runs the checks of a statement and calls `publish`; `book/errata.md` pastes what was published, so its
verdicts cannot differ from what the chapters show.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from nads_book import checks
from nads_book.checks import LIMIT, Check, passed, readable_z, worst
from nads_core.theory import deep_linear, lemma2, pooling


@dataclass(frozen=True)
class Statement:
    """One statement of the paper, in one reading.

    Args:
        title: its number in the paper, and the reading.
        check: function from (num_samples, seed=, factor=) to a list of `checks.Check`.
        counterexample: returns the smallest counter-example to the printed form, with its numbers computed; None where
            there is none.
        otherwise: the verdict if the checks contradict the printed form but not ours.
        is_printed: whether the text prints the statement at all.
    """

    title: str
    check: Callable[..., list[Check]]
    counterexample: Callable[[], str] | None = None
    otherwise: str = "holds with a changed constant"
    is_printed: bool = True

    def verdict(self, results: Sequence[Check]) -> str:
        """Say in words what the checks found."""
        if not passed(results):
            return "not settled: the simulation contradicts our form too"
        if not self.is_printed:
            return "not printed; our form is confirmed"
        return "holds as printed" if passed(results, printed=True) else self.otherwise


def summary(key: str, results: Sequence[Check]) -> str:
    """Return one sentence for a chapter: verdict, number of settings, largest absolute z of both forms."""
    statement = STATEMENTS[key]
    text = f"**{statement.title}: {statement.verdict(results)}.** {len(results)} settings; "
    if results[0].is_bound:
        broken = sum(check.z_printed >= LIMIT for check in results)
        return text + f"our bound is exceeded in {sum(c.z >= LIMIT for c in results)}, the printed one in {broken}."
    text += f"largest |z| of our form {readable_z(worst(results))}"
    printed = f", of the printed form {readable_z(worst(results, printed=True))}" if statement.is_printed else ""
    return f"{text}{printed}."


def publish(key: str, results: Sequence[Check]) -> None:
    """Store verdict, evidence and counter-example in the notebook, for the errata page to paste; shows nothing.

    The outputs carry the metadata of `myst_nb.glue`, which therefore need not be installed where a chapter runs.

    Args:
        key: of `STATEMENTS`.
        results: of its check.
    """
    statement = STATEMENTS[key]
    title, _, evidence = summary(key, results).removeprefix("**").partition(".** ")
    _store(key, {
        "verdict": f"<strong>{html.escape(title.removeprefix(statement.title).removeprefix(': '))}</strong>",
        "evidence": html.escape(evidence),
        "counterexample": html.escape(statement.counterexample()) if statement.counterexample else "none",
    })  # fmt: skip


def publish_claim(key: str, verdict: str, evidence: str) -> None:
    """Store what a chapter measured about a sentence of the paper, as `publish` does for a statement; shows nothing.

    Args:
        key: of `CLAIMS`.
        verdict: in a few words.
        evidence: the numbers, computed.

    Raises:
        ValueError: for an unknown key.
    """
    if key not in CLAIMS:
        raise ValueError(f"unknown claim {key!r}: choose from {sorted(CLAIMS)}")
    _store(key, {"verdict": f"<strong>{html.escape(verdict)}</strong>", "evidence": html.escape(evidence)})


def _store(key: str, parts: dict[str, str]) -> None:
    """Publish HTML under the names that `book/errata.md` pastes."""
    from IPython.display import publish_display_data

    prefix = "application/papermill.record/"
    for part, text in parts.items():
        metadata = {"scrapbook": {"name": f"{key}-{part}", "mime_prefix": prefix}}
        publish_display_data({f"{prefix}text/html": f"<span>{text}</span>"}, metadata)


def _eq1_indivisible() -> str:
    x = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    spectrum = torch.fft.fft(x, norm="ortho")
    printed = float((spectrum[0] + spectrum[2]).real) / 2**0.5  # t = 0, M = 2: entries 0 and 2
    actual = float(torch.fft.fft(x[::2], norm="ortho")[0].real)
    return f"D = 3, S = 2, x = (1, 0, 0), no filter: ẑ[0] = {actual:.3f}, eq. (1) gives {printed:.3f}"


def _theorem1() -> str:
    impulse = pooling.prefilter("identity", 3, 3)
    ours = float(pooling.bayes_accuracy(0, impulse, 3, 1.0, 1.0))
    printed = float(pooling.bayes_accuracy_printed(0, impulse, 3, 1.0, 1.0))
    return (
        f"D = S = 3, no filter, ℓ = 0, ε = σ = 1: pooling keeps x[0] = ±1/√3 + noise of variance 2/3, so {ours:.3f}; "
        f"printed {printed:.3f}"
    )


def _theorem1_folded() -> str:
    impulse = pooling.prefilter("identity", 4, 2)
    ours = float(pooling.bayes_accuracy(1, impulse, 2, 1.0, 1.0))
    printed = float(pooling.bayes_accuracy_printed(1, impulse, 2, 1.0, 1.0))
    example = "D = 4, S = 2, no filter, the sine (0, 1, 0, −1)/√2, ε = σ = 1: the kept pixels are 0"
    return f"{example}, so {ours:.3f}; printed {printed:.3f}"


def _theorem1_complex() -> str:
    impulse = pooling.prefilter("identity", 2, 2)
    ours = float(pooling.bayes_accuracy_complex(0, impulse, 2, 1.0, 1.0))
    printed = float(pooling.bayes_accuracy_printed(0, impulse, 2, 1.0, 1.0))
    return f"D = S = 2, no filter, ℓ = 0, ε = σ = 1: {ours:.3f}; printed {printed:.3f}"


def _lemma1() -> str:
    ours = float(deep_linear.expected_hessian(0, torch.ones(2), 2, 1.0, 1.0)[0, 0])
    printed = float(deep_linear.expected_hessian_printed(0, torch.ones(2), 2, 1.0, 1.0)[0, 0])
    example = "D = S = 2, m = (1, 1), ℓ = 0, all of ε, σ and the standard deviations 1"
    return f"{example}: entry [0, 0] is {ours:g}; printed {printed:g}"


def _eq4() -> str:
    ours = float(deep_linear.gradient_covariance(torch.ones(2), 2)[0, 0])
    printed = float(deep_linear.gradient_covariance_printed(torch.ones(2))[0, 0])
    example = "D = S = 2, m = (1, 1), standard deviations 1: f = θ(φ₀x₀ + φ₁x₁)/√2"
    return f"{example}, entry [0, 0] is {ours:g}; printed {printed:g}"


def _eq5() -> str:
    ours = float(deep_linear.mixed_second_moment(torch.ones(2), 2)[0, 0])
    printed = float(deep_linear.mixed_second_moment_printed(torch.ones(2), 2)[0, 0])
    return f"D = S = 2, m = (1, 1), standard deviations 1: entry [0, 0] is {ours:g}; printed {printed:g}"


def _lemma2() -> str:
    slopes = torch.tensor([-1.0, 1.0], dtype=torch.float64)
    rates = torch.ones(2, dtype=torch.float64)
    norms = lemma2.dipole_gradient_norms(lambda t: t.square() / 4, slopes, rates)
    printed = float(lemma2.lemma2_bound_printed(slopes, rates, 0.5, 0.0))
    example = "f = θx, θ = ±1, v = 1, g = t²/4 (α = 1/2, β = 0)"
    return f"{example}: the left side is {float(norms.mean()):g}, the printed bound {printed:g}"


def _lemma2_dipole() -> str:
    zeros, ones = torch.zeros(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64)
    left = float(lemma2.dipole_gradient_norms(torch.square, ones, ones).mean())
    right = float(lemma2.lemma2_bound_printed(zeros, zeros, 2.0, 0.0))
    return f"f = θx², θ = ±1, x = 0, v = 1, g = t²: the left side is {left:g}, the right side {right:g}"


def _eq6_dipole() -> str:
    theta = torch.tensor([-1.0, 1.0], dtype=torch.float64)
    share = float((theta.square() >= 1).double().mean())  # q = (theta (x + v)^2 - theta x^2)^2 at x = 0, v = 1
    bound = float((2 * theta * 0.0).square().mean())
    return f"f = θx², θ = ±1, x = 0, v = 1, η = 1: the probability is {share:g}, the right side {bound:g}"


STATEMENTS = {
    "eq1": Statement("Eq. (1), S divides D", checks.check_eq1),
    "eq1-indivisible": Statement(
        "Eq. (1), S does not divide D", checks.check_eq1_indivisible, _eq1_indivisible, otherwise="fails"
    ),
    "theorem1": Statement("Theorem 1 and eq. (2), real signals", checks.check_theorem1, _theorem1),
    "theorem1-folded": Statement(
        "Theorem 1, real signals, ℓ and −ℓ alias", checks.check_theorem1_folded, _theorem1_folded, otherwise="fails"
    ),
    "theorem1-complex": Statement(
        "Theorem 1, complex direction and noise", checks.check_theorem1_complex, _theorem1_complex
    ),
    "lemma1": Statement("Lemma 1", checks.check_lemma1, _lemma1),
    "lemma1-theta": Statement("Lemma 1 for θ, and the mixed block", checks.check_lemma1_theta, is_printed=False),
    "zeta": Statement("ζ(ℓ), below Lemma 1", checks.check_zeta),
    "eq4": Statement("Eq. (4)", checks.check_eq4, _eq4),
    "eq5": Statement("Eq. (5)", checks.check_eq5, _eq5),
    "lemma2": Statement("Lemma 2 and eq. (3), for the slope", checks.check_lemma2, _lemma2),
    "lemma2-dipole": Statement(
        "Lemma 2, for the dipole itself", checks.check_lemma2_dipole, _lemma2_dipole, otherwise="fails"
    ),
    "eq6": Statement("Eq. (6), for the slope", checks.check_eq6),
    "eq6-dipole": Statement("Eq. (6), for the dipole itself", checks.check_eq6_dipole, _eq6_dipole, otherwise="fails"),
}

CLAIMS = {  # sentences of the paper about its experiments, which no simulation settles; chapters say what they measured
    "similar": "the bases derived from [the mixed derivative and the gradient] are surprisingly very similar for most "
    "networks (section 3)",
    "stable": "the approximation of NADs through the eigendecomposition of the gradient covariance is numerically more "
    "stable (section 3)",
    "monotone": "the performance of these architectures monotonically decreases for higher NADs (section 4.1)",
    "decay": "for the networks with [...] a faster decay on its eigenvalues, the drop in accuracy happens at earlier "
    "indices (section 4.1)",
    "poison-separable": "this small modification [...] renders the training set linearly separable using only the "
    "poisonous features (section 4.2)",
    "poison-order": "NADs define the order of selection of different discriminative features (section 4.2, Fig. 7)",
    "poison-ignores": "A possible explanation [...] the network can only identify those generalizing features spanned "
    "by the NADs before the carrier, and ignores all those after it (section 4.2)",
    "flip": "misaligning the inductive bias of these architectures with the datasets makes them prone to overfit "
    "(section 4.2, Fig. 8)",
}
