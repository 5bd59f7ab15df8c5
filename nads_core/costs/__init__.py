"""What NADs cost: measured, beside what the device allows; the suite behind ``python -m nads_core bench``."""

from nads_core.costs.measuring import first_directions, measure_eigenvectors, measure_network, torchvision_resnet18
from nads_core.costs.suite import CASES, load_costs, load_first_directions, results_folder, run_suite

__all__ = [
    "CASES", "first_directions", "load_costs", "load_first_directions", "measure_eigenvectors", "measure_network",
    "results_folder", "run_suite", "torchvision_resnet18",
]  # fmt: skip
