"""Old names, forwarded for one release: what moved to `nads_book`, and modules that were renamed."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_BOOK = "nads_book"
# Names of `nads_core` up to 0.2, and where they are now.
NAMES = {
    **{name: f"{_BOOK}.experiments" for name in (
        "Experiment", "Results", "choose_preset", "experiment", "frequency_maps", "grid_frequencies", "load_results",
        "merge_results", "prediction", "published", "run_experiment", "waves",
    )},
    **{name: _BOOK for name in ("atlas", "checks", "explorer", "figures")},
    "errata": f"{_BOOK}.checks", "readable": f"{_BOOK}.report",
}  # fmt: skip
ALIASES = {
    "bench": f"{_BOOK}.benchmarks", "costs": f"{_BOOK}.benchmarks", "evidence": f"{_BOOK}.experiments",
    "machinery": "nads_core.runtime", "readout": "nads_core.theory.regression",
}  # fmt: skip
# Modules that moved, the longest names first. The members of a package follow it.
MODULES = {
    "nads_core.machinery.numbers": f"{_BOOK}.report",
    "nads_core.machinery.timing": f"{_BOOK}.benchmarks.roofline",
    "nads_core.machinery": "nads_core.runtime",
    "nads_core.networks.crew": "nads_core.networks.ensembles",
    "nads_core.networks.silent": "nads_core.networks.zero_init",
    "nads_core.networks.small": f"{_BOOK}.atlas.small_networks",
    "nads_core.networks.layers": f"{_BOOK}.atlas.small_networks",
    "nads_core.networks.atlas": f"{_BOOK}.atlas.entries",
    "nads_core.directions.certainty": "nads_core.directions.uncertainty",
    "nads_core.directions.likeness": "nads_core.directions.similarity",
    "nads_core.directions.input_gradients": "nads_core.directions.estimators",
    "nads_core.data.maps": f"{_BOOK}.experiments.orthogonal_transforms",
    "nads_core.data.notes": f"{_BOOK}.experiments.shortcut_injection",
    "nads_core.training.in_turn": "nads_core.training.many",
    "nads_core.training.datasets": "nads_core.training.recipes",
    "nads_core.training.call": "nads_core.training.run",
    "nads_core.training.interrupted": "nads_core.training.state",
    "nads_core.training.accuracies": "nads_core.training.evaluation",
    "nads_core.training.predictions": "nads_core.training.evaluation",
    "nads_core.training.trial": f"{_BOOK}.benchmarks.training",
    "nads_core.theory.checks": f"{_BOOK}.checks",
    "nads_core.theory.errata": f"{_BOOK}.checks.errata",
    "nads_core.costs": f"{_BOOK}.benchmarks",
    "nads_core.figures.bounds": f"{_BOOK}.figures.theory",
    "nads_core.figures.classes": f"{_BOOK}.figures.bases",
    "nads_core.figures.scale": f"{_BOOK}.figures.bases",
    "nads_core.figures": f"{_BOOK}.figures",
    "nads_core.explorer.guess": f"{_BOOK}.explorer.gallery",
    "nads_core.explorer.pictures": f"{_BOOK}.explorer.data",
    "nads_core.explorer": f"{_BOOK}.explorer",
    "nads_core.evidence.atlas": f"{_BOOK}.atlas",
    "nads_core.evidence.experiments": f"{_BOOK}.experiments.jobs",
    "nads_core.evidence.together": f"{_BOOK}.experiments.distributed_run",
    "nads_core.evidence.pending": f"{_BOOK}.experiments.queue",
    "nads_core.evidence.notes": f"{_BOOK}.experiments.injection_statistics",
    "nads_core.evidence.maps": f"{_BOOK}.experiments.transform_experiments",
    "nads_core.evidence.definitions": f"{_BOOK}.experiments.estimator_definitions",
    "nads_core.evidence.law": f"{_BOOK}.experiments.gain_correction",
    "nads_core.evidence.reliability": f"{_BOOK}.experiments.calibration",
    "nads_core.evidence.photos": f"{_BOOK}.experiments.photo_experiments",
    "nads_core.evidence": f"{_BOOK}.experiments",
    "nads_core.doctor": "nads_core.cli.doctor",
}
# Members of these modules that were renamed, by their old names.
MEMBERS = {
    "Settings": "NetworkFamily", "Call": "TrainingRun", "train_in_turn": "train_sequentially",
    "Crew": "ThreadedEnsemble", "Likeness": "SubspaceSimilarity", "GainLaw": "GainCorrection",
    "NUMBERS_VERSION": "RNG_VERSION", "falling_fit": "isotonic_fit", "replacing": "atomic_write",
    "silent_parts": "find_zero_init", "Beside": "Concatenated",
    "Notes": "ShortcutInjection", "WRITTEN": "INJECTION_MODES", "COMMON": "COMMON_DEVIATION", "FIGURES": "EXPERIMENTS",
    "Luck": "SeedVariance", "pooled": "pooled_variance", "run_together": "run_distributed", "Pending": "QueuedJob",
    "run_pending": "run_queue", "map_units": "transform_units",
    "Certificates": "DirectionUncertainty", "Certificate": "TypeUncertainty", "Band": "DegenerateCluster",
    "Rest": "BulkSpectrum", "likeness": "subspace_similarity", "looks": "check_schedule",
}  # fmt: skip


def module_getattr(package: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of `nads_core` (PEP 562), which imports what moved when it is asked for."""

    def forward(name: str) -> Any:
        if name in ALIASES:
            home, value = ALIASES[name], importlib.import_module(ALIASES[name])
        elif name in NAMES:
            home = f"{NAMES[name]}.{name}"
            module = importlib.import_module(NAMES[name])
            value = getattr(module, name, None) or importlib.import_module(home)
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        warnings.warn(f"{package}.{name} moved to {home}", DeprecationWarning, stacklevel=2)
        return value

    return forward


def renamed_getattr(package: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package (PEP 562), which forwards members by their old names."""

    def forward(name: str) -> Any:
        value = vars(sys.modules[package]).get(MEMBERS.get(name, ""))
        if value is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        warnings.warn(f"{package}.{name} is now {MEMBERS[name]}", DeprecationWarning, stacklevel=2)
        return value

    return forward


class _MovedModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Import a module by its old name: a module that forwards its members from the new one."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        moved = next((old for old in MODULES if f"{fullname}.".startswith(f"{old}.")), None)
        if moved is None:
            return None
        home = MODULES[moved] + fullname.removeprefix(moved)
        try:
            if importlib.util.find_spec(home) is None:
                return None
        except ModuleNotFoundError:  # A member that does not exist is asked for as a module as well.
            return None
        return ModuleSpec(fullname, self, origin=home, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return ModuleType(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        home = str(module.__spec__ and module.__spec__.origin)
        target = importlib.import_module(home)
        warnings.warn(f"{module.__name__} moved to {home}", DeprecationWarning, stacklevel=2)
        vars(module)["__getattr__"] = lambda name: getattr(target, MEMBERS.get(name) or name)


sys.meta_path.append(_MovedModules())
