"""Neural anisotropy directions of any PyTorch architecture."""

from nads_core.architectures import ARCHITECTURES, DENSENET121, LENET, LOGREG, RESNET18, VGG11, Architecture
from nads_core.directions import NADs, compute_nads, load_nads
from nads_core.input_gradients import Dipole, MixedDerivative, PointGradient, SmoothedGradient
