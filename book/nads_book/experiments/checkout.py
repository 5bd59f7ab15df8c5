"""Where the files of the checkout are."""

from pathlib import Path


def checkout_folder(name: str) -> Path:
    """Return a folder, such as ``book/results``, of the checkout around the working folder, or
    around this package.

    If neither has it, return its path in the working folder, where a caller may create it.
    """
    here = Path.cwd()
    candidates = [parent / name for parent in (here, *here.parents, Path(__file__).parents[3])]
    return next((folder for folder in candidates if folder.is_dir()), candidates[0])
