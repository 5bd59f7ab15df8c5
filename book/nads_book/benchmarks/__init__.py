"""The cost of NADs: the work per network is counted, times and memory are measured.

The scripts of the repository's ``benchmarks/`` write results files, of which ``costs.py`` measures
every architecture and estimator.
"""

from nads_book.benchmarks.measuring import measure_eigenvectors, measure_network, prepared
from nads_book.benchmarks.stored import load_costs
