"""Are the NADs of the mixed derivative those of the gradient, and which of the two is more stable?

The paper says both in section 3. ``book/preregistered/mixed_derivative.toml`` has the rules.
"""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

import nads_core as nc
from nads_book.experiments import Context, Row, Rows, Scored, Study, Unit
from nads_core.directions import Estimator

NETWORKS = {each.name: each for each in (nc.LENET, nc.VGG11, nc.RESNET18, nc.DENSENET121)}
KINDS: dict[str, Estimator] = {  # averaged over inputs, and at one input
    "smoothed": nc.SmoothedGradient(num_inputs=16),
    "mixed": nc.MixedDerivative(num_inputs=16),
    "point": nc.PointGradient(),
    "mixed at a point": nc.MixedDerivative(num_inputs=1, antithetic=False),
}
PAIRS = {
    "averaged over inputs": ("smoothed", "mixed"),
    "at one input": ("point", "mixed at a point"),
}
NUM_NETWORKS, NUM_DIRECTIONS, SEED = 512, 10, 40


def overlaps(runs: Mapping[str, Sequence[nc.NADs]]) -> dict[str, float]:
    """Return the overlap of the first directions within each kind of runs, and across each pair of
    kinds.
    """

    def between(pairs: Sequence[tuple[nc.NADs, nc.NADs]]) -> float:
        return round(float(np.mean([a.overlap(b, k=NUM_DIRECTIONS) for a, b in pairs])), 4)

    own = {kind: between([(first, second)]) for kind, (first, second) in runs.items()}
    across = {
        where: between(list(product(runs[gradient], runs[mixed])))
        for where, (gradient, mixed) in PAIRS.items()
    }
    return own | across


def shared(row: Row, where: str) -> float:
    """Return the overlap across kinds, relative to the geometric mean of those within a kind."""
    gradient, mixed = (row["overlaps"][kind] for kind in PAIRS[where])
    return float(row["overlaps"][where] / (gradient * mixed) ** 0.5)


class MixedDerivativeStudy(Study):
    """NADs from the mixed derivative and from the gradient, two runs each, in four networks."""

    name = "mixed-derivative"
    size = "paper"
    design = {"network": NETWORKS}
    constants = {"num_networks": NUM_NETWORKS, "num_directions": NUM_DIRECTIONS}

    def run(self, unit: Unit, context: Context) -> Row:
        runs = {
            kind: [
                nc.compute_nads(
                    NETWORKS[unit["network"]],
                    (1, 32, 32),
                    NUM_NETWORKS,
                    estimator=estimator,
                    seed=SEED + 2 * number + turn,
                    device=context.device,
                    progress=False,
                )
                for turn in range(2)
            ]
            for number, (kind, estimator) in enumerate(KINDS.items())
        }
        return {"overlaps": overlaps(runs)}

    def score(self, rows: Rows) -> Scored:
        """Judge by the registered rules; with too few networks they are undecided."""
        similar, stable = self.registered["criteria"].values()
        where = "averaged over inputs"
        gradient, mixed = PAIRS[where]
        decided = [
            row
            for row in rows
            if min(row["overlaps"][kind] for kind in PAIRS[where]) > similar["itself"]
        ]
        leads = [row["overlaps"][gradient] - row["overlaps"][mixed] for row in rows]

        def most(answers: Sequence[bool], needed: int) -> bool | None:
            """Return whether enough networks agree; None as long as those that are missing could
            decide.
            """
            missing = len(NETWORKS) - len(answers)
            if sum(answers) >= needed:
                return True
            return False if sum(answers) + missing < needed else None

        close = [shared(row, where) >= similar["shared_at_least"] for row in decided]
        met = {
            "very similar for most networks": most(close, similar["networks"]),
            "the gradient is more stable": most(
                [lead > stable["lead_above"] for lead in leads], stable["networks"]
            ),
        }
        return Scored({}, met)
