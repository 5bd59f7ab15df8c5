"""The command line: ``python -m nads_core``."""

import sys

from nads_core.cli import console

if __name__ == "__main__":
    sys.exit(console())
