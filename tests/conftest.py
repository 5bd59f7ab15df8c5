"""Set-up shared by all tests."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings

# On a busy machine two threads that wait for each other make a network ten times slower.
torch.set_num_threads(1)
settings.register_profile("nads", deadline=None, max_examples=25, derandomize=True, print_blob=True)
settings.load_profile("nads")

# Without a GPU, Triton's kernels run in its interpreter: it is chosen when triton is first imported.
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

_ROOT = Path(__file__).resolve().parent.parent
_PUBLISHED = {"lenet": "LeNet_published_nads.npz", "resnet18": "ResNet18_published_nads.npz"}


@pytest.fixture(scope="session")
def published() -> Callable[[str], torch.Tensor]:
    """Give the authors' directions of "lenet" or "resnet18", (1023, 1, 32, 32); skip without NADS_REFERENCE."""
    folder = os.environ.get("NADS_REFERENCE")
    if not folder:
        pytest.skip("NADS_REFERENCE is not set: it names the folder with the authors' published directions")

    def load(name: str) -> torch.Tensor:
        with np.load(Path(folder) / _PUBLISHED[name]) as file:
            return torch.from_numpy(file["nads"]).double().view(-1, 1, 32, 32)

    return load


@pytest.fixture(scope="session")
def distributions(tmp_path_factory) -> Path:
    """Build sdist and wheel as a release does, without a network, from a copy that no earlier build has touched."""
    folder = tmp_path_factory.mktemp("release")
    for name in ("pyproject.toml", "README.md", "LICENSE", "CITATION.cff", "MANIFEST.in"):
        shutil.copy(_ROOT / name, folder)
    for name in ("nads_core", "tests"):
        shutil.copytree(_ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist", "."]  # the wheel from the sdist
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return folder / "dist"
