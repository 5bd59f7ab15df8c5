"""The command line ``python -m nads_core``, installed as ``nads``: one module per command.

A command's module has `add_arguments`, which describes its options, and `run`, which is called with
them. Options that are not given are not passed on, so that every default is the one of the function
that is called; the help repeats it. Only the module of the requested command is imported, and torch
with it: the list of commands, and errors in a command's name, are immediate.
"""

import argparse
import importlib
import signal
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

COMMANDS = {
    "compute": "compute the NADs of an architecture",
}


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status.

    Args:
        arguments: command and options; ``sys.argv[1:]`` by default.

    Returns:
        0 on success, 2 after an error, 130 after an interrupt.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    return run_command(
        "nads_core", COMMANDS, arguments, "Compute neural anisotropy directions (NADs)."
    )


def run_command(
    package: str, commands: Mapping[str, str], arguments: list[str], description: str
) -> int:
    """Parse the options of a command, run it and return its exit status.

    Args:
        package: name of the package whose ``cli`` has the commands.
        commands: one-line description of each command by its name.
        arguments: command and options.
        description: first sentence of the help.

    Returns:
        The command's exit status; 2 after an error, 130 after an interrupt.
    """
    called = Path(sys.argv[0]).stem
    program = called if called in ("nads", "nads-book") else f"python -m {package}"
    parser = argparse.ArgumentParser(prog=program, description=description)
    choices = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    module: ModuleType | None = None
    for name, summary in commands.items():
        options = choices.add_parser(
            name, help=summary, description=f"{summary[:1].upper()}{summary[1:]}."
        )
        if arguments[:1] == [name]:
            module = importlib.import_module(f"{package}.cli.{name}")
            options.argument_default = argparse.SUPPRESS
            module.add_arguments(options)
    given = vars(parser.parse_args(arguments))
    del given["command"]
    import torch  # after parsing, so that a mistyped option is reported at once

    assert module is not None, "the parser requires a known command"
    try:
        return int(module.run(**given))
    except (
        TypeError,
        ValueError,
        OSError,
        ImportError,
        MemoryError,
        torch.OutOfMemoryError,
    ) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupt:
        print(f"\n{interrupt}", file=sys.stderr)
        return 130


def output_file(text: str) -> Path:
    """Return the path of a file to write; raise an ArgumentTypeError for that of a folder."""
    if (path := Path(text).expanduser()).is_dir():
        raise argparse.ArgumentTypeError(f"{text} is a folder: name a file in it")
    return path


def console(run: Callable[[], int] = main) -> int:
    """Run one command as a program and return its exit status."""
    # Without the place in the code, which says nothing to who called a program
    warnings.formatwarning = lambda message, *_: f"warning: {message}\n"
    status = int(run())
    # The work is stored, so an interrupt needs no traceback
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return status
