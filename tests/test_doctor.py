"""The command `nads-book doctor`."""

from nads_book.cli import main


def test_it_lists_features(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("NADS_DATA", str(tmp_path))
    monkeypatch.delenv("NADS_REFERENCE", raising=False)
    assert main(["doctor"]) == 0
    features = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert {"torch", "cores", "Triton", "GPU"} <= features.keys()
    assert features["cifar10"].startswith("no complete") and "64" in features["references"]
    assert {"fashion-mnist", "imagenette"} <= features.keys()
