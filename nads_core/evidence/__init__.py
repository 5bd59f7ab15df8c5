"""The paper's sweeps, what they measured, and what the authors published.

What a job is (`experiments`), how it runs, where its results are kept, and the statistics that compare them. How one
network is trained is `training`'s.
"""

from nads_core.evidence import frequency_maps, pending, prediction, published, waves
from nads_core.evidence.experiments import Experiment, Results, experiment, load_results, merge_results, run_experiment
from nads_core.evidence.presets import choose_preset
from nads_core.evidence.waves import grid_frequencies

__all__ = [
    "Experiment",
    "Results",
    "choose_preset",
    "experiment",
    "frequency_maps",
    "grid_frequencies",
    "load_results",
    "merge_results",
    "pending",
    "prediction",
    "published",
    "run_experiment",
    "waves",
]
