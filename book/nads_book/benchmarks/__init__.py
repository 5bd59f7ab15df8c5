"""The cost of NADs: counted, measured, and compared with limits of the device.

Here are the work per network, and times and memory measured against a lower bound; the scripts of
the repository's ``benchmarks/`` write results files, of which ``costs.py`` measures every
architecture and estimator.
"""

from nads_book.benchmarks.measuring import measure_eigenvectors, measure_network, prepared
from nads_book.benchmarks.stored import load_costs
