"""The paper's sweeps, what they measured, and what the authors published.

What a job is (`experiments`, at the sizes of `presets`), how it runs (`runner`, by several processes `together`), where
its results are kept (`results`), which are missing (`pending`), and what they say: `statistics`, what random weights
predict (`prediction`), maps over `waves` (`frequency_maps`), all beside what was `published`. What single changes of an
architecture do is the `atlas`'s. How one network is
trained is `training`'s, how results are drawn `figures`'s.
"""

from nads_book.experiments import frequency_maps, prediction, published, queue, waves
from nads_book.experiments.base import Experiment
from nads_book.experiments.jobs import experiment
from nads_book.experiments.presets import choose_preset
from nads_book.experiments.results import Results, load_results, merge_results, results_path
from nads_book.experiments.runner import run_experiment
from nads_book.experiments.waves import grid_frequencies

__all__ = [
    "Experiment",
    "Results",
    "choose_preset",
    "experiment",
    "frequency_maps",
    "grid_frequencies",
    "load_results",
    "merge_results",
    "queue",
    "prediction",
    "published",
    "results_path",
    "run_experiment",
    "waves",
]
