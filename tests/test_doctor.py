"""The command `nads doctor`."""

import pytest
import torch

from nads_core.cli import doctor, main


def test_it_lists_features(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("NADS_DATA", str(tmp_path))
    monkeypatch.delenv("NADS_REFERENCE", raising=False)
    assert main(["doctor"]) == 0
    features = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert {"torch", "cores", "bfloat16", "Triton", "GPU", "browser", "book"} <= features.keys()
    assert features["photos"].startswith("none") and features["references"].startswith("none")


@pytest.mark.parametrize(
    "check", [check for check in doctor.CHECKS if check[1] is not doctor._graph], ids=lambda c: c[1].__name__
)
def test_a_cpu_agrees_with_itself(check):
    """Each check of a GPU also runs on a CPU, with the kernels in Triton's interpreter."""
    if check[1] in (doctor._weights, doctor._moments):
        pytest.importorskip("triton", reason="there is no Triton for this platform")
    _, run, rounding, _ = check
    assert run(torch.device("cpu")) <= rounding


def test_a_failed_check_is_named_with_its_advice(capsys, monkeypatch):
    def broken(_):
        raise RuntimeError("an illegal memory access")

    checks = (
        ("one", lambda _: 0.0, 1e-9, "avoid one"),
        ("two", lambda _: 0.5, 1e-9, "avoid two"),
        ("three", broken, 1e-9, "avoid three"),
    )
    monkeypatch.setattr(doctor, "CHECKS", checks)
    findings = list(doctor.examine("cpu"))
    assert [finding.ok for finding in findings] == [True, False, False]
    assert main(["doctor", "--device", "cpu"]) == 1
    printed = capsys.readouterr().out
    assert "FAIL  two: differs by 5.0e-01" in printed and "-> avoid two" in printed and "avoid one" not in printed
    assert "RuntimeError: an illegal memory access" in printed


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_is_an_error(capsys):
    assert main(["doctor", "--gpu"]) == 2 and "cuda" in capsys.readouterr().err
