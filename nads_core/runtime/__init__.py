"""Infrastructure that knows no networks or directions: seeds, files, provenance, processes, memory, interrupts."""
