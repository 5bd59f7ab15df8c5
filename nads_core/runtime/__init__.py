"""Infrastructure that knows no networks or directions: seeds, files, provenance, processes, memory, interrupts."""

__version__ = "0.2.0"
