"""Infrastructure without knowledge of networks or directions: seeds, files, provenance, processes, memory, interrupts."""
