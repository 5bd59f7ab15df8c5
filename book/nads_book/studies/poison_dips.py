"""Why two later carriers of the poison, NAD 75 and NAD 200, cost LeNet as much as early ones.

At both, the second NAD of the carrier has a photos' mean of more than two standard deviations. If
this is the reason, a hole at that mean costs at least ten points less than a hole at zero there,
and at neighbours without such a mean (NADs 50 and 300) no hole costs more than three points. The
results of the paper's size refer to version 1 of the NADs, and so does this.
"""

import nads_core as nc
from nads_book.experiments import (
    PHOTO_RECIPE,
    Context,
    Facts,
    FileStudy,
    Results,
    Row,
    StudyFile,
    Unit,
    factorial,
    load_nads,
    reached,
)
from nads_book.photos import load_images
from nads_book.studies import stored
from nads_book.studies.shortcut_injection import ShortcutInjection
from nads_core.directions import NADs

INDICES, SEEDS = (50, 75, 200, 300), (0, 1, 2)
# As stored: name of `ShortcutInjection.inject`, and size.
MODES = {
    "replaced": ("replaced", 0.05),
    "ablated": ("hole", None),
    "mean_ablated": ("hole at mean", None),
}
NUM_TRAIN, NUM_TEST = 10_000, 10_000


def carriers_of_the_paper() -> tuple[Results, NADs]:
    """Return the stored trainings with the poison at the paper's size, and their NADs."""
    results = stored("fig7-lenet")
    return results, load_nads("lenet", results.nads_version)


class PoisonDips(FileStudy):
    """Why do two later carriers cost LeNet as much as early ones? A hole at the mean, at zero, and
    the poison.
    """

    name = "poison-dips"
    needs = ("fig7-lenet",)
    on_photos = True

    def units(self) -> list[Unit]:
        carriers = [{"index": None, "mode": "none"}, *factorial(index=INDICES, mode=MODES)]
        return [carrier | {"seed": seed} for seed in SEEDS for carrier in carriers]

    constants = {"num_train": NUM_TRAIN, "epochs": PHOTO_RECIPE.epochs}

    def content(self, results: StudyFile) -> Facts:
        """Return the content of the file, with the photos' moments along all carriers of the
        paper's size.
        """
        if "carriers" not in results.facts:
            known, nads = carriers_of_the_paper()
            photos = load_images("cifar10", progress=False)
            carriers = []
            for index in sorted({row["index"] for row in known.rows if row["index"] is not None}):
                one = ShortcutInjection(photos.images, nads, index)
                moments = {"mean": one.mean.T.tolist(), "deviation": one.deviation.T.tolist()}
                carriers.append({"index": index, **moments})
            results.facts["carriers"] = carriers
        return super().content(results)

    def run(self, unit: Unit, context: Context) -> Row:
        _, nads = carriers_of_the_paper()
        train = load_images(
            "cifar10", num_images=NUM_TRAIN, seed=unit["seed"], root=context.root, progress=False
        )
        test = load_images("cifar10", train=False, root=context.root, progress=False)
        images = train.images
        if unit["index"] is not None:
            injection = ShortcutInjection(images, nads, unit["index"])
            images = injection.inject(images, train.labels, *MODES[unit["mode"]])
        found = nc.train_networks(
            nc.LENET,
            [(nc.normalize(images), train.labels)],
            [(nc.normalize(test.images), test.labels)],
            recipe=PHOTO_RECIPE,
            num_classes=10,
            seed=unit["seed"],
            device=context.device,
            mixed_precision=context.mixed_precision,
            progress=False,
        )
        return {name: value for name, (value,) in reached(found, 4).items()}
