"""Models of torchvision and timm by name, with options, and without their trained weights."""

import importlib.util
import sys
import types

import pytest
import torch
from torch import nn

import nads_core as nc
from nads_core.cli import main
from nads_core.networks.architectures import architecture_named

NAMES = ["resnet18", "resnet34", "tiny_net"]
INSTALLED = importlib.util.find_spec("timm") is not None


class Tiny(nn.Sequential):
    """What the stand-in for timm builds."""

    def __init__(self, in_chans=3, img_size=8, num_classes=3, **options):
        self.options = {
            "in_chans": in_chans,
            "img_size": img_size,
            "num_classes": num_classes,
            **options,
        }
        super().__init__(nn.Flatten(), nn.Linear(in_chans * img_size**2, num_classes))


def create_model(name, *, pretrained, **options):
    assert name in NAMES and pretrained is False
    return Tiny(**options)


@pytest.fixture
def timm(monkeypatch):
    module = types.SimpleNamespace(create_model=create_model, list_models=lambda: NAMES)
    monkeypatch.setitem(sys.modules, "timm", module)


@pytest.mark.parametrize(
    ("query", "channels", "expected"),
    [
        ("", 3, {}),
        ("", 1, {"in_chans": 1}),
        ("?img_size=32", 3, {"img_size": 32}),
        ("?img_size=4&in_chans=2", 1, {"img_size": 4, "in_chans": 2}),
        ("?drop=0.5&flag=True&sizes=(1,2)&act=gelu&none=None", 3,
         {"drop": 0.5, "flag": True, "sizes": (1, 2), "act": "gelu", "none": None}),
    ],
)  # fmt: skip
def test_options_in_the_name(timm, query, channels, expected):
    network = architecture_named(f"timm:tiny_net{query}", (channels, 8, 8))()
    assert network.options == {"in_chans": 3, "img_size": 8, "num_classes": 3} | expected


@pytest.mark.parametrize(("query", "expected"), [("", 5), ("?num_classes=2", 2)])
def test_a_model_has_as_many_outputs_as_asked_for_unless_its_name_says_otherwise(
    timm, query, expected
):
    network = architecture_named(f"timm:tiny_net{query}", (3, 8, 8), 5)()
    assert network.options["num_classes"] == expected


def test_nads_of_a_model_by_name(timm):
    options = {"image_shape": (1, 4, 4), "device": "cpu", "progress": False}
    nads = nc.compute_nads("timm:tiny_net?img_size=4", 16, **options)
    expected = nc.compute_nads(lambda: Tiny(1, 4), 16, **options)
    assert torch.equal(nads.directions, expected.directions)
    assert nads.provenance["architecture"] == "tiny_net?img_size=4"


def test_a_model_by_name_on_the_command_line(timm, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = [
        "--out",
        "x.npz",
        "--num-networks",
        "8",
        "--device",
        "cpu",
        "--image-shape",
        "3",
        "4",
        "4",
    ]
    assert main(["compute", "timm:tiny_net?img_size=4", *arguments]) == 0
    assert nc.NADs.load("x.npz").provenance["architecture"] == "tiny_net?img_size=4"
    assert main(["compute", "timm:resnet19", *arguments]) == 2
    assert "did you mean resnet18, resnet34" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "timm", None)
    assert main(["compute", "timm:resnet18", *arguments]) == 2
    assert "pip install timm" in capsys.readouterr().err


def test_names_that_do_not_exist(timm):
    with pytest.raises(ValueError, match="timm has no classifier 'tynet': did you mean tiny_net"):
        architecture_named("timm:tynet", (3, 8, 8))
    with pytest.raises(
        ValueError, match="torchvision has no classifier 'resnet19': did you mean .*resnet18"
    ):
        architecture_named("torchvision:resnet19?width_per_group=32", (3, 8, 8))
    with pytest.raises(ValueError, match="img_size"):
        architecture_named("timm:tiny_net?img_size", (3, 8, 8))
    for model, option in (
        ("timm:tiny_net", "pretrained=True"),
        ("torchvision:resnet18", "weights=DEFAULT"),
    ):
        with pytest.raises(
            ValueError, match=f"trained weights of {model} .*{option.partition('=')[0]}"
        ):
            architecture_named(f"{model}?{option}", (3, 8, 8))


@pytest.mark.parametrize("library", ["timm", "torchvision"])
def test_a_library_that_is_not_installed(library, monkeypatch):
    for name in (library, f"{library}.models"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        ImportError, match=f"{library}:resnet18 needs {library}.*pip install {library}"
    ):
        architecture_named(f"{library}:resnet18", (3, 8, 8))


REAL = [("torchvision:resnet18?width_per_group=64&num_classes=5", (3, 32, 32), 5)]
REAL += (
    [("timm:vit_tiny_patch16_224?img_size=32&num_classes=7&depth=1", (1, 32, 32), 7)]
    if INSTALLED
    else []
)


@pytest.mark.filterwarnings("default")  # those of other libraries when they are imported
@pytest.mark.parametrize(("name", "shape", "classes"), REAL)
def test_the_libraries_themselves(name, shape, classes):
    network = architecture_named(name, shape)()
    assert network(torch.zeros(2, *shape)).shape == (2, classes)
