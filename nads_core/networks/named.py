"""Architectures by name: ours, torchvision's, and anyone's factory in a module."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable

from torch import nn

from nads_core.networks.architectures import ARCHITECTURES, Architecture


def architecture_named(name: str, image_shape: tuple[int, ...]) -> Architecture | Callable[[], nn.Module]:
    """Return what a name stands for.

    Args:
        name: one of ours, such as "lenet"; "torchvision:" and the name of one of its models, without weights; or
            "module:function", a factory in a module that can be imported from here.
        image_shape: shape of the inputs. A vision transformer of torchvision, which accepts square images of one size,
            is built for that size.

    Raises:
        ValueError: if nothing has that name, torchvision is not there, or a vision transformer cannot take the shape.
    """
    if name in ARCHITECTURES:
        return ARCHITECTURES[name]
    module, _, attribute = name.partition(":")
    if not attribute:
        raise ValueError(
            f"unknown architecture {name!r}: choose from {', '.join(ARCHITECTURES)}, or torchvision:model, or "
            "module:factory"
        )
    if module == "torchvision":
        return _of_torchvision(attribute, image_shape)
    sys.path.insert(0, "")
    try:
        factory: Callable[[], nn.Module] = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"cannot load {name!r}: {error}") from error
    finally:
        sys.path.remove("")
    return factory


def _of_torchvision(model: str, image_shape: tuple[int, ...]) -> Callable[[], nn.Module]:
    """Return a factory of one of torchvision's models, with random weights."""
    try:
        from torchvision import models
        from torchvision.models import get_model, list_models
    except ImportError as error:
        raise ValueError(f"torchvision:{model} needs torchvision: pip install torchvision") from error
    classifiers = list_models(module=models)  # others fetch trained parts, or return no tensor
    if model not in classifiers:
        import difflib

        close = difflib.get_close_matches(model, classifiers, n=5, cutoff=0.4)
        raise ValueError(f"torchvision has no classifier {model!r}: did you mean {', '.join(close) or 'another'}?")
    options = {}
    if model.startswith("vit_"):  # its position embeddings have the length of the image
        if len(image_shape) != 3 or image_shape[1] != image_shape[2]:
            raise ValueError(f"{model} needs square images (C, H, H), got image_shape {image_shape}")
        options["image_size"] = image_shape[-1]

    def factory() -> nn.Module:
        network: nn.Module = get_model(model, weights=None, **options)
        return network

    factory.__qualname__ = model
    return factory
