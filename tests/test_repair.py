"""The repair of architectures: its networks."""

import torch
from nads_book.studies import repair


def test_flat_networks_tell_places_apart():
    """A global average of a periodic network gives shifted images one output; the last layer of a
    flat one does not.
    """
    for name, build in repair.NETWORKS.items():
        torch.manual_seed(0)
        network = build(1, 32, 2).eval()
        image = torch.randn(1, 1, 32, 32)
        features = network.head(
            network.features(image) if hasattr(network, "features") else _body(network, image)
        )
        assert network.linear(features).shape == (1, 2)
        assert (features.shape[1] > 200) == ("flat" in name), name


def _body(network, image):
    for name, layer in network.named_children():
        if name == "head":
            return image
        image = layer(image)
    raise AssertionError("there is no head")
