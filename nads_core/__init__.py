"""Neural anisotropy directions of any PyTorch architecture.

The public names are those of `__init__.pyi`. Each is imported when it is first used, so that a
command line that only prints its help does not wait for torch.
"""

import lazy_loader

from nads_core.runtime import __version__ as __version__

SUBPACKAGES = {"data", "directions", "kernels", "networks", "runtime", "training"}

__getattr__, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = [name for name in _names if name not in SUBPACKAGES]
