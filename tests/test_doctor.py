"""The command `nads-book doctor`."""

from types import SimpleNamespace

from nads_book.cli import doctor, main


def test_it_lists_features(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("NADS_DATA", str(tmp_path))
    monkeypatch.delenv("NADS_REFERENCE", raising=False)
    assert main(["doctor"]) == 0
    features = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert {"torch", "cores", "Triton", "GPU"} <= features.keys()
    assert features["cifar10"].startswith("no complete") and "64" in features["references"]
    assert {"fashion-mnist", "imagenette"} <= features.keys()


def test_photos_are_counted_in_both_parts(capsys, monkeypatch):
    def opened(name, root, train):
        return SimpleNamespace(source=name, labels=range(3 if train else 2))

    monkeypatch.setattr(doctor, "open_published", opened)
    assert main(["doctor"]) == 0
    assert "cifar10, 3 training and 2 test images" in capsys.readouterr().out
