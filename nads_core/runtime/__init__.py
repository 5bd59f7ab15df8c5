"""Seeds, files, provenance, processes, memory and interrupts: what knows nothing about networks or directions."""
