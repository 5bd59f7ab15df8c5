"""The names of `nads_book.experiments`, which `__init__.py` imports when they are first used."""

from .results import Results, results_path
from .runner import run_study
from .study import Context, Evidence, Study
from .study_files import FileStudy

__all__ = ["Context", "Evidence", "FileStudy", "Results", "Study", "results_path", "run_study"]
