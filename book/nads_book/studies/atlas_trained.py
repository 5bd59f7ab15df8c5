"""The atlas: whether what random weights prefer is what training learns."""

from nads_book.atlas import ATLAS
from nads_book.experiments import Context, Row, Study, Unit, train_along
from nads_book.published.waves import fourier_directions
from nads_book.studies.presets import SIZES
from nads_core.runtime.seeds import seed_sequence

SMALL = (
    "cnn",
    "cnn-average",
    "cnn-blurred",
    "cnn-strided",
    "cnn-nopool",
    "cnn-global",
    "cnn-poolfirst",
    "cnn-kernel1",
    "cnn-depth6",
    "cnn-valid",
    "mlp",
    "vit",
)
WAVES = ((0, 2), (4, 4), (0, 8), (6, 10), (8, 8), (12, 4), (16, 0), (14, 14))
NOISE_STD, SEED, SIZE = 3.0, 11, SIZES["laptop"].separable


class AtlasTrainings(Study):
    """Do trained entries of the atlas learn what random weights prefer?"""

    name = "atlas-trained"
    design = {"entry": SMALL, "seed": [0]}
    many_rows = True

    def run(self, unit: Unit, context: Context) -> list[Row]:
        found = train_along(
            ATLAS[unit["entry"]].architecture,
            fourier_directions(WAVES),
            NOISE_STD,
            SIZE,
            unit["seed"],
            context,
            data_seeds=(seed_sequence(SEED + unit["seed"], part) for part in (5, 6)),
        )
        pairs = zip(WAVES, found["test_accuracy"], strict=True)
        return [{"wave": list(wave), "accuracy": accuracy} for wave, accuracy in pairs]
