"""Infrastructure that knows no networks or directions: seeds, files, provenance, processes, memory,
interrupts.
"""

__version__ = "0.3.0.dev0"
