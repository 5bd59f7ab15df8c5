"""What any research code needs, and nothing about networks or directions.

Seeds that don't collide, files that are whole at every moment, where results come from, processes, memory, Ctrl-C. What
knows what a network, a direction or an image is belongs in the room that does.
"""

from nads_core.machinery.numbers import readable

__all__ = ["readable"]
