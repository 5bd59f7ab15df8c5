"""Models of torchvision and timm by name, with options, and without their trained weights."""

import sys
from types import SimpleNamespace
from unittest.mock import Mock, call

import pytest
import torch
from torch import nn

from nads_core.networks.architectures import architecture_named, with_drawn_head

NAMES = ["resnet18", "resnet34", "tiny_net", "vit_b_16"]


@pytest.fixture
def create(monkeypatch):
    """Return what builds the models of both libraries."""
    create = Mock(return_value=nn.Flatten())
    models = {"create_model": create, "get_model": create, "list_models": lambda **_: NAMES}
    for library in ("timm", "torchvision.models"):
        monkeypatch.setitem(sys.modules, library, SimpleNamespace(**models))
    return create


OPTIONS = {"drop": 0.5, "flag": True, "sizes": (1, 2), "act": "gelu", "none": None}


@pytest.mark.parametrize(
    ("name", "channels", "options"),
    [
        ("timm:tiny_net", 1, {"pretrained": False, "in_chans": 1}),
        ("timm:tiny_net?in_chans=2", 1, {"pretrained": False, "in_chans": 2}),
        (
            "timm:tiny_net?drop=0.5&flag=True&sizes=(1,2)&act=gelu&none=None",
            3,
            {"pretrained": False} | OPTIONS,
        ),
        ("torchvision:vit_b_16", 3, {"weights": None, "image_size": 8}),
    ],
)
def test_options_in_the_name(create, name, channels, options):
    factory = architecture_named(name, (channels, 8, 8), 5)
    model = factory.__qualname__
    assert name.endswith(f":{model}") and factory() is create.return_value
    assert create.mock_calls == [call(model.partition("?")[0], num_classes=5, **options)]


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
def test_names_that_do_not_exist(create, name, shown):
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


@pytest.mark.filterwarnings("default")  # those of torchvision when it is imported
def test_torchvision_itself():
    name = "torchvision:resnet18?width_per_group=64&num_classes=5"
    network = architecture_named(name, (3, 32, 32))()
    assert network(torch.zeros(2, 3, 32, 32)).shape == (2, 5)
