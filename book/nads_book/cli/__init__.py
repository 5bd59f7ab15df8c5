"""The book's command line ``python -m nads_book``, installed as ``nads-book``: one module per
command.
"""

import sys

from nads_core.cli import console as run_console
from nads_core.cli import run_command

COMMANDS = {
    "run": "compute the units of a study: the trainings of a figure, or another one",
    "report": "describe what a network prefers before training, on one page",
    "doctor": "list available optional features",
    "address": "set the address of the repository in all its files",
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status.

    Args:
        arguments: command and options; ``sys.argv[1:]`` by default.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    return run_command("nads_book", COMMANDS, arguments, "Run the book's experiments.")


def console() -> int:
    """Run one command as a program and return its exit status."""
    return run_console(main)
