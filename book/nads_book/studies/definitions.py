"""Two definitions of NADs, by long dipoles and by smoothed gradients: small networks on which they can be compared.

The authors' directions are eigenvectors of the second moment of dipoles with an arm of 100, ours of that of gradients
averaged over noise. Where the arm is long, biases and the dipole's centre are negligible: dipole i is the odd
part of what the network without biases makes of pixel i alone, on black. A gradient sees every pixel among others.
"""

from dataclasses import dataclass

from torch import nn

from nads_book.atlas.small_networks import Concatenated

SIZE = 16  # pixels: a dipole takes 512 evaluations


@dataclass(frozen=True)
class SmallNetwork:
    """A network of few and narrow layers, of the parts of VGG-11: convolutions with batch norm, and a hidden layer.

    Args:
        depth: convolutions, each of them followed by a pooling that halves the image.
        pooling: "max", "average" or "none".
        dense: whether convolutions are `Concatenated`.
    """

    depth: int
    pooling: str = "max"
    dense: bool = False

    def build(self, num_classes: int = 1) -> nn.Module:
        """Return a freshly initialised network for images of (1, 16, 16)."""
        layers: list[nn.Module] = []
        channels, size = 1, SIZE
        for _ in range(self.depth):
            block = Concatenated if self.dense else nn.Sequential
            layers.append(block(nn.Conv2d(channels, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()))
            channels = channels + 16 if self.dense else 16
            if self.pooling != "none":
                layers.append({"max": nn.MaxPool2d, "average": nn.AvgPool2d}[self.pooling](2))
                size //= 2
        head = [nn.Flatten(), nn.Linear(channels * size**2, 64), nn.ReLU(), nn.Linear(64, num_classes)]
        return nn.Sequential(*layers, *head)
