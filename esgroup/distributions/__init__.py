"""Search distributions: parameters, sampling, natural gradients in local coordinates, moves."""

from esgroup.distributions.base import Samples as Samples
from esgroup.distributions.base import State as State
from esgroup.distributions.base import Step as Step
from esgroup.distributions.gaussian import Gaussian as Gaussian
from esgroup.distributions.gaussian import standard_ngd as standard_ngd
