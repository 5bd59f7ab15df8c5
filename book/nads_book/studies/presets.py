"""How large the experiments of the book are: names, and what they stand for."""

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from nads_book.atlas.entries import ATLAS
from nads_book.experiments import TrainingSize
from nads_core.networks.architectures import ARCHITECTURES, Architecture
from nads_core.runtime.arguments import Facts
from nads_core.training import CIFAR10_RECIPE, SEPARABLE_RECIPE

PRESETS = ("smoke", "demo", "paper")  # of the chapters
MODELS = ARCHITECTURES | {"cnn": ATLAS["cnn"].architecture}
ON_CPUS = (
    "laptop",
    "narrow",
)  # sizes for a CPU at its limit, at which deep networks train in bfloat16


@dataclass(frozen=True)
class Size:
    """How large the jobs of a preset are, see `nads_book.studies.experiment`.

    Args:
        separable: size of a training on D(v).
        photos: size of a training on CIFAR-10.
        num_directions: number of NADs of Fig. 6, and of random directions.
        poison_indices: NADs of Fig. 7.
        num_waves: number of waves of Figs. 1 to 3, from the beginning of their order; None for all.
        stratified: whether any beginning of the waves of the published grid is a stratified sample.
        seeds: seeds with each of which all units are trained.
        injection: size of a training on photos with injected shortcuts; None for ``photos``.
        injection_indices: NADs along which shortcuts are injected.
        injection_conditions: positions of the conditions in their list; None for all.
        num_transforms: number of orthogonal transforms, from the beginning of their list; None for
            all.
        paired_seeds: ``seeds`` of the experiments on injection and on transforms, which compare
            networks that begin with equal weights.
        thinned: the only architectures of this size, with the options that make them thin, if any;
            None for all, as they are.
        others: whether architectures that are not in ``thinned`` have this size too, as they are.
    """

    separable: TrainingSize
    photos: TrainingSize
    num_directions: int
    poison_indices: tuple[int, ...]
    num_waves: int | None = None
    stratified: bool = False
    seeds: tuple[int, ...] = (0,)
    injection_indices: tuple[int, ...] = (0, 1000)
    paired_seeds: tuple[int, ...] = (0,)
    injection_conditions: tuple[int, ...] | None = None
    num_transforms: int | None = None
    injection: TrainingSize | None = None
    thinned: dict[str, dict[str, int]] | None = None
    others: bool = False

    def architecture(self, name: str) -> Architecture:
        """Return an architecture at this size.

        Raises:
            ValueError: for an architecture that this size does not have.
        """
        architecture = MODELS[name]
        if self.thinned is None or (self.others and name not in self.thinned):
            return architecture
        if name not in self.thinned:
            raise ValueError(
                f"this preset is for {', '.join(self.thinned)}, not for {name}: choose another one"
            )
        return architecture.variant(
            name=name, symmetries=architecture.symmetries, **self.thinned[name]
        )


_RECIPES = {"separable": SEPARABLE_RECIPE, "photos": CIFAR10_RECIPE, "injection": CIFAR10_RECIPE}


def _size(values: Facts) -> Size:
    """Return the size that a table of ``presets.toml`` describes."""
    fields: Facts = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
    for kind, recipe in _RECIPES.items():
        if own := fields.get(kind):  # lists what differs from the paper's recipe
            changed = replace(recipe, **own.get("recipe", {}))
            fields[kind] = TrainingSize(**own | {"recipe": changed})
    return Size(**fields)


_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf8"))


def _table(name: str) -> Facts:
    """Return a table of ``presets.toml``, completed by the table that it is like."""
    table = dict(_TABLES[name])
    like = table.pop("like", None)
    return (_table(like) if like else {}) | table


# Of the jobs, by preset: the three of the chapters, and those that run for long.
SIZES = {name: _size(_table(name)) for name in _TABLES}
