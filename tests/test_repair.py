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
        features = []
        network.linear.register_forward_pre_hook(lambda _, given, kept=features: kept.extend(given))
        assert network(torch.randn(1, 1, 32, 32)).shape == (1, 2)
        assert (features[0].shape[1] > 200) == ("flat" in name), name
