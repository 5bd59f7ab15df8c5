"""How estimators order directions that none of them chose: energies of the waves of Fig. 1 and of
our NADs, for LeNet.

The chapter on the computation of NADs compares those of waves at a point and smoothed.
"""

import nads_core as nc
from nads_book.experiments import Context, Facts, Row, Study, Unit, rounded
from nads_book.studies import stored
from nads_book.theory.first_step import Family

SEED = 7
ESTIMATORS = {  # with their numbers of networks; "smoothed, as few" has those of the dipole
    "point": (nc.PointGradient(), 4_096),
    "smoothed": (nc.SmoothedGradient(num_inputs=16), 4_096),
    "mixed": (nc.MixedDerivative(num_inputs=16), 4_096),
    "dipole": (nc.Dipole(step=100.0), 256),
    "smoothed, as few": (nc.SmoothedGradient(num_inputs=16), 256),
}
FAMILIES = {"DFT": "fig1-lenet", "our NADs": "fig6-lenet"}


def families() -> dict[str, Family]:
    """Return the directions of both families."""
    return {label: Family.of(stored(name)) for label, name in FAMILIES.items()}


class EstimatorOrders(Study):
    """In which order do estimators put directions that none of them chose?"""

    name = "estimator-orders"
    design = {"estimator": ESTIMATORS}
    needs = tuple(FAMILIES.values())

    def facts(self, photos: str | None = None) -> Facts:
        keys = {kind: list(family.keys) for kind, family in families().items()}
        counts = {label: count for label, (_, count) in ESTIMATORS.items()}
        return {"num_networks": counts, "seed": SEED, "keys": keys}

    def run(self, unit: Unit, context: Context) -> Row:
        estimator, count = ESTIMATORS[unit["estimator"]]
        nads = nc.compute_nads(
            nc.LENET,
            (1, 32, 32),
            count,
            estimator=estimator,
            seed=SEED,
            device=context.device,
            progress=False,
        )
        row: Row = {}
        for kind, family in families().items():
            found = nads.energy(family.directions)
            row[kind] = rounded(found / found.mean(), 6, significant=True)
        return row
