"""Recombination rules: the rank weights and learning rates of one generation, computed from its sizes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.strategies import rates

# Up to this c_1 + c_mu a root moves by A h(M). The flow (`Group._flow`) is better by 2 to 3 percent from 0.1 to 0.2
# (ten bbob-like functions, 30 runs: n = 2, 3, 5; bbob f1, f2, 20 runs, n = 5, 10, other groups: by 0 to 7 percent), by
# 20 to 30 percent beyond 0.8 (n = 10, popsize 512).
_FIRST_ORDER = 0.1


class Constants(NamedTuple):
    """Weights by rank and rates of one generation."""

    mean_weights: Array
    root_weights: Array
    kernel: Array  # c_s, c_c, c_1, c_mu, mu_eff, threshold chi, whether weights are rescaled: for the kernel `evolve`
    # rates of D over those of A, for samples and path; coefficients of -1; the least share of its step
    decoding: tuple[float, float, float, float, float]
    c_s: float
    drive: float  # c_s / d_s
    chi: float  # E|N(0, I)|
    threshold: float  # h_sigma is 1 while |p_s| < threshold chi sqrt(1 - (1 - c_s)^(2 t))
    flows: bool = False  # whether the root follows the whole flow with the samples held in place, not A h(M)

    @property
    def gain_s(self) -> float:
        """sqrt(c_s (2 - c_s) mu_eff), the factor of the mean's step in the path p_s."""
        c_s, mass = self.c_s, self.kernel[4]
        return math.sqrt(c_s * (2 - c_s) * mass) if c_s > 0 else 1.0


class Recombination(Protocol):
    """A rule that sets the weights of ranks and the learning rates."""

    def constants(self, n: int, dim: int, dof: int, gathered: int = 0) -> Constants:
        """Return the constants for n values, dim variables and dof degrees of freedom of the root.

        `gathered` is the number of variables that a row of the root may combine: see `rates.root_rates`.
        """
        ...


@dataclass(frozen=True)
class Cumulative:
    """The update of CMA-ES in local coordinates: paths, cumulative step size, negative weights, rates by dof.

    Parameters
    ----------
    negative_mean : float, optional
        Weight of the worse half in the mean, by default that of `rates.negative_share`.
    damping : float, optional
        The factor of d_s, by default that of `rates.damping_factor`.
    """

    negative_mean: float | None = None
    damping: float | None = None

    def constants(self, n: int, dim: int, dof: int, gathered: int = 0) -> Constants:
        mu_eff = rates.effective(rates.halves(n)[0])
        c_1, c_mu = rates.root_rates(dim, dof, mu_eff, gathered)
        weights = rates.recombination(n, dim, c_1, c_mu, self.negative_mean)
        mass = weights.mean_mu_eff
        c_c = rates.path_rate(dim, mu_eff)
        c_s, d_s = rates.step_size_rates(dim, mass)
        damping = rates.damping_factor(dim, mu_eff) if self.damping is None else self.damping
        drive = c_s / (damping * d_s)
        chi, threshold = rates.expected_norm(dim), 1.4 + 2 / (dim + 1)  # tutorial, below eq. 42
        numbers = [c_s, c_c, c_1, c_mu, mass, threshold * chi, 1.0]
        c_1d, c_mud, least = rates.decoding_rates(dim, mu_eff)
        ratios = (c_mud / c_mu if c_mu > 0 else 0.0, c_1d / c_1)
        pulls = (c_mud * float(weights.root.sum()), c_1d)
        decoding, flows = (*ratios, *pulls, least), c_1 + c_mu > _FIRST_ORDER
        kernel = checks.read_only(np.array(numbers))
        return Constants(weights.mean, weights.root, kernel, decoding, c_s, drive, chi, threshold, flows)


@dataclass(frozen=True)
class Published:
    """The plain published update by ranks: utilities, one rate, no paths; xNES for the full group."""

    def constants(self, n: int, dim: int, dof: int, gathered: int = 0) -> Constants:
        weights, rate = checks.read_only(rates.utilities(n)), rates.utility_rate(dim, dof)
        # c_s = 1 and c_1 = 0: p_s is the last step, and there is no other path; the step size is learned with A
        numbers = [1.0, 0.0, 0.0, rate, 1.0, 0.0, 0.0]
        _, c_mud, least = rates.decoding_rates(dim, rates.effective(rates.halves(n)[0]))
        decoding = (c_mud / rate, 0.0, c_mud * float(weights.sum()), 0.0, least)
        return Constants(weights, weights, checks.read_only(np.array(numbers)), decoding, 1.0, 0.0, 1.0, 0.0)
