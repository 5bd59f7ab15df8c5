"""The cost of NADs: counted, measured, and compared with limits of the device.

Here are the work per network, the limits of a device, and times and memory measured against them;
the scripts of the repository's ``benchmarks/`` write results files, of which ``costs.py`` measures
every architecture and estimator.
"""

from nads_book.benchmarks.measuring import (
    measure_eigenvectors,
    measure_network,
    prepared,
    torchvision_resnet18,
)
from nads_book.benchmarks.stored import load_costs
