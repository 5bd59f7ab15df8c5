"""What is left of the bias without pooling (Fig. 3)."""

from matplotlib.figure import Figure

from nads_book import explorer, figures
from nads_book.analysis import published
from nads_book.analysis.frequency_maps import LEARNED
from nads_book.evidence import Evidence, evidence
from nads_book.pages.directional_bias.maps import accuracies, in_percent, sweep
from nads_book.report import percent

EQUAL = (
    0.05  # largest difference of two accuracies that counts as equal: of test images and of seeds
)


def show_playground() -> explorer.Playground:
    """Show a network for images of 16 x 16 pixels, beside one without pooling, which the reader
    trains.
    """
    return explorer.Playground(chips=["pooling"], second=("pooling", "none"))


def plot_without_pooling() -> Figure:
    """Draw our test accuracies of LeNet with and without pooling."""
    panels = {
        "LeNet": in_percent(accuracies("lenet")),
        "LeNet without pooling": in_percent(accuracies("lenet", figure="fig3")),
    }
    return figures.plot_frequency_maps({"": panels})


def pooling_part() -> Evidence:
    """Decide whether no wave stays at chance without pooling, and some do with it."""
    least = min(accuracies("lenet", figure="fig3").values())
    holds = least > 0.6 and min(accuracies("lenet").values()) < LEARNED
    return evidence(holds, least, results=[sweep("lenet", figure="fig3"), sweep("lenet")])


def errata_equalized() -> Evidence:
    """Decide whether LeNet's accuracies are equal over frequencies without pooling, as the paper
    writes.
    """
    values = accuracies("lenet", figure="fig3").values()
    spread = max(values) - min(values)
    text = (
        f"LeNet without pooling reaches {percent(min(values), 1)} to {percent(max(values), 1)} "
        f"over {len(values)} waves; the paper's Fig. 3 shows "
        f"{percent(published.NO_POOLING['lenet'][0])} everywhere. Our layers ran in bfloat16, "
        "which was not compared with float32; the caption does not state σ, and we use 3."
    )
    results = [sweep("lenet", figure="fig3")]
    return evidence(spread <= EQUAL, 100 * spread, sentence=text, results=results)
