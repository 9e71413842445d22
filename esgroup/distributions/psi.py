"""Differences of logarithms and polygamma functions that cancel for large arguments, without the cancellation."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from esgroup.checks import Array
from esgroup.distributions.univariate import BELOW_ONE


def log1p(r: Array) -> Array:
    """log(1 + r) for r >= -1; numbers below 1e-16 of the mean count as that."""
    return np.log1p(np.maximum(r, -BELOW_ONE))


def bend(r: Array) -> Array:
    """r - log(1 + r) >= 0."""
    return r - log1p(r)


def log_gap(x: float) -> float:
    """x (log x - psi(x)) = 1/2 + 1 / (12 x) - 1 / (120 x^3) + 1 / (252 x^5) - ... (asymptotic series of psi)."""
    if x < 100:  # beyond, the terms left out are below 1e-16
        return x * (math.log(x) - float(special.digamma(x)))
    return 0.5 + (1 / 12 - (1 / 120 - 1 / (252 * x * x)) / (x * x)) / x


def variance_gap(x: float) -> float:
    """x (x psi'(x) - 1) = 1/2 + 1 / (6 x) - 1 / (30 x^3) + 1 / (42 x^5) - ..."""
    if x < 100:
        return x * (x * float(special.polygamma(1, x)) - 1)
    return 0.5 + (1 / 6 - (1 / 30 - 1 / (42 * x * x)) / (x * x)) / x


def trigamma_difference(x: float, y: float) -> float:
    """psi'(x) - psi'(x + y), with psi'(x) = 1 / x + 1 / (2 x^2) + 1 / (6 x^3) - 1 / (30 x^5) + ..."""
    if x < 100:
        return float(special.polygamma(1, x) - special.polygamma(1, x + y))
    return _power_difference((1.0, 1 / 2, 1 / 6, 0.0, -1 / 30, 0.0, 1 / 42), x, y)


def slope_difference(x: float, y: float) -> float:
    """x psi'(x) - (x + y) psi'(x + y)."""
    if x < 100:
        return variance_gap(x) / x - variance_gap(x + y) / (x + y)
    return _power_difference((1 / 2, 1 / 6, 0.0, -1 / 30, 0.0, 1 / 42), x, y)


def _power_difference(coefficients: tuple[float, ...], x: float, y: float) -> float:
    """sum_k c_k (x^-k - (x + y)^-k), k = 1, 2, ...; x^-k - (x + y)^-k = x^-k (1 - (1 + y/x)^-k)."""
    growth = math.log1p(y / x)
    return sum(-c * x**-k * math.expm1(-k * growth) for k, c in enumerate(coefficients, 1))
