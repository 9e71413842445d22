"""Networks: the matrix Gaussian as an optimiser in PyTorch (extra "torch"). `import esgroup` does not import this."""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("esgroup.torch needs PyTorch: pip install 'esgroup[torch]'") from error

from esgroup.torch.curvature import Curvature, KroneckerFactors, PerExampleGradients, SquaredGradient
from esgroup.torch.optimizer import StructuredNGD
from esgroup.torch.posterior import Calibration, calibration

__all__ = [
    "Calibration",
    "Curvature",
    "KroneckerFactors",
    "PerExampleGradients",
    "SquaredGradient",
    "StructuredNGD",
    "calibration",
]
