"""What `nads doctor` says."""

import pytest
import torch
from nads_book.__main__ import main

from nads_core.cli import doctor


def test_it_says_what_is_at_hand(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("NADS_DATA", str(tmp_path))
    monkeypatch.delenv("NADS_REFERENCE", raising=False)
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    for words in (
        "torch",
        "cores",
        "photos       none, so that chapters 7 and 8",
        "references   none: chapters 5 and 6",
        "bfloat16",
        "Triton",
        "GPU",
        "browser",
        "book",
    ):
        assert words in said


SLOW_ON_A_CPU = (doctor._weights, doctor._moments, doctor._deep_gradients)  # two of them run in Triton's interpreter


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=check[1].__name__, marks=[pytest.mark.slow] * (check[1] in SLOW_ON_A_CPU))
        for check in doctor.CHECKS
        if check[1] is not doctor._graph
    ],
)
def test_a_cpu_agrees_with_itself(check):
    """The checks of a GPU, on a CPU: its kernels run in Triton's interpreter."""
    if check[1] in (doctor._weights, doctor._moments):
        pytest.importorskip("triton", reason="there is no Triton for this platform")
    _, run, rounding, _ = check
    assert run(torch.device("cpu")) <= rounding


def test_what_differs_is_named_with_what_not_to_trust(capsys, monkeypatch):
    def broken(_):
        raise RuntimeError("an illegal memory access")

    checks = (
        ("one", lambda _: 0.0, 1e-9, "one"),
        ("two", lambda _: 0.5, 1e-9, "two"),
        ("three", broken, 1e-9, "three"),
    )
    monkeypatch.setattr(doctor, "CHECKS", checks)
    assert main(["doctor", "--device", "cpu"]) == 1
    said = capsys.readouterr().out
    assert "ok    one" in said and "FAIL  two: differs by 5.0e-01" in said and "do not trust two" in said
    assert "FAIL  three: RuntimeError: an illegal memory access" in said and "not everything agrees" in said


@pytest.mark.skipif(torch.cuda.is_available(), reason="asks what is said where there is no GPU")
def test_without_a_gpu_it_says_so(capsys):
    assert main(["doctor", "--gpu"]) == 2 and "cuda" in capsys.readouterr().err
