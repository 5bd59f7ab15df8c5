"""Which NADs a trained network uses: predictions that change when a component's sign is turned."""

from matplotlib.figure import Figure

from nads_book.evidence import Evidence, Facts, above
from nads_book.experiments import Estimate, matching
from nads_book.figures import style
from nads_book.pages.scored_rows import registered, rows_of, scored
from nads_book.studies.responses import SEEDS

STUDY = "used-nads"
NAMES = {"resnet": "ResNet-18, quarter width", "vgg11": "VGG-11"}
CONTROLS = {"wave": "waves of equal energy", "random": "random directions, equal change"}


@style.styled
def plot_used() -> Figure:
    """Draw how many more predictions change along a NAD than along its controls."""
    figure, axes = style.panel_row(
        NAMES.values(),
        3.2,
        xlabel="energy of photos along the NAD",
        ylabel="ratio",
        sharey=True,
        sharex=True,
    )
    looks = {"wave": ("o", "full"), "random": ("s", "none")}
    for axis, network in zip(axes, NAMES, strict=True):
        own = matching(rows_of(STUDY), network=network)
        directions = [one for row in own for one in row["directions"]]
        energies = [one["energy"] for one in directions]
        for control, (marker, fill) in looks.items():
            found = [one["nad"]["turn"] / one[control]["turn"] for one in directions]
            label = f"NAD over {CONTROLS[control]}"
            axis.plot(energies, found, marker, fillstyle=fill, label=label)
        style.rule(axis, 1)
        axis.set_yscale("log")
        axis.set_yticks([0.25, 0.5, 1, 2], ["¼", "½", "1", "2"])
        style.log_ticks(axis, [0.2, 1, 5, 20])
    style.legend(figure, axes, ncol=2)
    return figure


def mean_ratio(network: str, control: str) -> Estimate:
    """Return the geometric mean over seeds and NADs 0 to 40, with Student's interval over NADs."""
    return scored(STUDY).estimates[network][control]


FACTS: Facts = {"size": "narrow", "num_seeds": len(SEEDS), "num_trainings": len(SEEDS)}


def follows_data(network: str) -> Evidence:
    """Decide by the registered limits whether a network uses early NADs no more than waves."""
    criterion = f"{network}: does not use NADs more"
    return registered(STUDY, [criterion], mean_ratio(network, "wave"), **FACTS)


CLAIMS = {
    "trained-follow-data": lambda: follows_data("resnet"),
    "vgg-more-than-waves": lambda: above(mean_ratio("vgg11", "wave"), 1, **FACTS),
    "errata-characterize": lambda: above(
        min(mean_ratio(network, "wave") for network in NAMES), 1, **FACTS
    ),
}
