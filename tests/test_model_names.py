"""Models of torchvision and timm by name, with options, and without their trained weights."""

import importlib.util
import sys
import types

import pytest
import torch
from torch import nn

from nads_core.networks.architectures import architecture_named, with_drawn_head

NAMES = ["resnet18", "resnet34", "tiny_net"]


class Tiny(nn.Sequential):
    """What the stand-in for timm builds."""

    def __init__(self, in_chans=3, img_size=8, num_classes=3, **options):
        known = {"in_chans": in_chans, "img_size": img_size, "num_classes": num_classes}
        self.options = known | options
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
        ("", 1, {"in_chans": 1}),
        ("?img_size=4&in_chans=2", 1, {"img_size": 4, "in_chans": 2}),
        (
            "?drop=0.5&flag=True&sizes=(1,2)&act=gelu&none=None",
            3,
            {"drop": 0.5, "flag": True, "sizes": (1, 2), "act": "gelu", "none": None},
        ),
    ],
)
def test_options_in_the_name(timm, query, channels, expected):
    network = architecture_named(f"timm:tiny_net{query}", (channels, 8, 8), 5)()
    assert network.options == {"in_chans": 3, "img_size": 8, "num_classes": 5} | expected


class Zeros(nn.Linear):
    """A head that its library begins with zeros."""

    def reset_parameters(self):
        nn.init.zeros_(self.weight)
        nn.init.zeros_(self.bias)


def test_heads_of_zeros_are_drawn():
    factory = with_drawn_head(lambda: nn.Sequential(nn.Linear(9, 400), Zeros(400, 5)))
    drawn = factory()[1].weight.detach()
    assert float(drawn.std()) == pytest.approx((3 * 400) ** -0.5, rel=0.1)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("timm:tynet", "'tynet': did you mean tiny_net"),
        ("torchvision:resnet19?width_per_group=32", "'resnet19': did you mean .*resnet18"),
        ("timm:tiny_net?img_size", "img_size"),
        ("timm:tiny_net?pretrained=True", "trained weights of timm:tiny_net .*pretrained"),
        (
            "torchvision:resnet18?weights=DEFAULT",
            "trained weights of torchvision:resnet18 .*weights",
        ),
    ],
)
def test_names_that_do_not_exist(timm, name, shown):
    with pytest.raises(ValueError, match=shown):
        architecture_named(name, (3, 8, 8))


@pytest.mark.parametrize("library", ["timm", "torchvision"])
def test_a_library_that_is_not_installed(library, monkeypatch):
    for name in (library, f"{library}.models"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        ImportError, match=f"{library}:resnet18 needs {library}.*pip install {library}"
    ):
        architecture_named(f"{library}:resnet18", (3, 8, 8))


REAL = [("torchvision:resnet18?width_per_group=64&num_classes=5", (3, 32, 32), 5)]
if importlib.util.find_spec("timm"):
    REAL += [("timm:vit_tiny_patch16_224?img_size=32&num_classes=7&depth=1", (1, 32, 32), 7)]


@pytest.mark.filterwarnings("default")  # those of other libraries when they are imported
@pytest.mark.parametrize(("name", "shape", "classes"), REAL)
def test_the_libraries_themselves(name, shape, classes):
    network = architecture_named(name, shape)()
    assert network(torch.zeros(2, *shape)).shape == (2, classes)
