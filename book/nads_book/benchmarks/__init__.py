"""The cost of NADs: counted, measured, and compared with limits of the device; the suite behind ``nads-book bench``.

Here are the work of a network, the limits of a device, and times and memory measured against them; also NADs of large
inputs, computed to measure their cost and their certainty (`first_directions`). How long a training takes is in
`training`; the tables of the repository's own measurements are made by its ``benchmarks/``.
"""

from nads_book.benchmarks.measuring import first_directions, measure_eigenvectors, measure_network, torchvision_resnet18
from nads_book.benchmarks.suite import CASES, load_costs, load_first_directions, results_folder, run_suite

__all__ = [
    "CASES", "first_directions", "load_costs", "load_first_directions", "measure_eigenvectors", "measure_network",
    "results_folder", "run_suite", "torchvision_resnet18",
]  # fmt: skip
