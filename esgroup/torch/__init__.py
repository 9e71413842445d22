"""Networks: the matrix Gaussian as an optimizer in PyTorch (extra "torch"). `import esgroup` does not import this."""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("esgroup.torch needs PyTorch: pip install 'esgroup[torch]'") from error

from esgroup.torch.curvature import Curvature as Curvature
from esgroup.torch.curvature import KroneckerFactors as KroneckerFactors
from esgroup.torch.curvature import PerExampleGradients as PerExampleGradients
from esgroup.torch.curvature import SquaredGradient as SquaredGradient
from esgroup.torch.optimizer import StructuredNGD as StructuredNGD
from esgroup.torch.posterior import Calibration as Calibration
from esgroup.torch.posterior import calibration as calibration
