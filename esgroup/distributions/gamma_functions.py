"""Gamma functions, and differences of them computed without cancellation for large arguments.

First of one variable: log x - psi(x), x psi'(x) - 1 and the like, which the exponential families need.

Then the multivariate gamma function Gamma_p(x) = pi^(p (p - 1) / 4) prod_i Gamma(x - i/2), i = 0 ... p - 1 (Muirhead
1982, theorem 2.1.12), and psi_p(x) = sum_i psi(x - i/2) and psi'_p(x), the derivatives of its logarithm. A Wishart
distribution needs how far these are from p log x and p / x: differences that vanish as x grows, up to x = 1e15. They
are taken from the remainder of Stirling's formula,
mu(y) = log Gamma(y) - (y - 1/2) log y + y - log(2 pi) / 2 = sum_k B_2k / (2k (2k - 1) y^(2k - 1)), and its derivatives,
so that nothing large is subtracted (series: Abramowitz and Stegun 1964, 6.1.40, 6.3.18, 6.4.12). In all of these, x is
given by y = x - (p - 1)/2 > 0, the last and smallest x - i/2: a small y would be lost in x.

Last, the derivative of a gamma sample with respect to its shape.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from esgroup.checks import Array
from esgroup.lazy import Lazy

special: Any = Lazy("scipy.special")

_BERNOULLI = np.array([1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730])  # B_2 ... B_12
_SERIES_FROM = 20.0  # where the first term left out, B_14 y^-14 of the sum, is below 1e-17
_EXPANSION_FROM = 1e4  # where the expansion of a gamma sample is accurate to 1e-9, within seven deviations


# ---- one variable ---------------------------------------------------------------------------------------------------


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


# ---- how far psi_p(x) and psi'_p(x) are from p log x and p / x -----------------------------------------------------


def shapes(least: float, p: int) -> Array:
    """x - i/2 for i = 0 ... p - 1, where x - (p - 1)/2 is `least`."""
    return least + np.arange(p - 1, -1, -1) / 2


def remainder(y: Array, order: int) -> Array:
    """mu(y), mu'(y) or mu''(y) for order 0, 1, 2; y > 0."""
    far = np.maximum(y, _SERIES_FROM)
    doubled = 2.0 * np.arange(1, len(_BERNOULLI) + 1)  # 2k
    factor = (1 / (doubled * (doubled - 1)), -1 / doubled, np.ones(len(doubled)))[order]
    # sum_k coefficient_k y^(-2k), times y, 1 or 1/y
    series = np.polyval((factor * _BERNOULLI)[::-1], far**-2.0) * far ** -(1.0 + order)
    near = np.minimum(y, _SERIES_FROM)
    if order == 0:
        direct = special.gammaln(near) - (near - 0.5) * np.log(near) + near - 0.5 * math.log(2 * math.pi)
    elif order == 1:
        direct = special.psi(near) - np.log(near) + 0.5 / near
    else:
        direct = special.polygamma(1, near) - 1 / near - 0.5 / near**2
    return np.where(y < _SERIES_FROM, direct, series)


def log_normalizer(least: float, p: int) -> float:
    """p x log x - p x - log Gamma_p(x), of the order p^2 log x.

    Term by term with y = x - i/2: x log(x / y) - i/2 + (i + 1)/2 log y - log(2 pi)/2 - mu(y).
    """
    y, i = shapes(least, p), np.arange(p)
    bent = y[0] * np.log1p(i / (2 * y)) - i / 2
    terms = bent + (i + 1) / 2 * np.log(y) - 0.5 * math.log(2 * math.pi) - remainder(y, 0)
    return float(terms.sum()) - p * (p - 1) / 4 * math.log(math.pi)


def digamma_gap(least: float, p: int) -> float:
    """p log x - psi_p(x), about p (p + 1) / (4 x): with psi_p itself it would be lost for large x."""
    y, i = shapes(least, p), np.arange(p)
    logs = np.log1p(i / (2 * y))  # log(x / y)
    return float((logs + 0.5 / y - remainder(y, 1)).sum())


def trigamma_gap(least: float, p: int) -> float:
    """D = psi'_p(x) - p / x, about p (p + 1) / (4 x^2): with psi'_p itself it would be lost for large x."""
    y, i = shapes(least, p), np.arange(p)
    return float((i / (2 * y[0] * y) + 0.5 / y**2 + remainder(y, 2)).sum())


# ---- a gamma sample as a function of its shape ----------------------------------------------------------------------


def sample_elasticity(a: Array, g: Array, excess: Array) -> Array:
    """q = d log g / d log a - 1 of samples g ~ Gamma(a, 1) at a fixed probability P(a, g); excess is g - a.

    The three arrays have one shape. Both g and g - a are arguments because rounding may lose either in the other.

    Implicit differentiation: dg/da = -(dP/da) / (dP/dg) (Figurnov, Mohamed and Mnih 2018, eq. 5). Up to a = 1e4, for
    g < exp(psi(a + 1)), from P's power series, all of whose terms then have one sign, and above from an integral over
    the upper tail whose integrand has; from a = 1e4 on, where q is a small difference, by a Cornish-Fisher expansion.
    """
    q = np.empty(a.shape)
    far = a >= _EXPANSION_FROM
    low = ~far & (g <= np.exp(special.psi(np.minimum(a, _EXPANSION_FROM) + 1)))
    high = ~far & ~low
    q[far] = _expanded(a[far], excess[far])
    q[low] = _below(a[low], g[low])
    q[high] = _above(a[high], g[high])
    return q


def _below(a: Array, g: Array) -> Array:
    """From dg/da = g sum_k g^k / (a)_(k+1) (psi(a + k + 1) - log g): P(a, g) term by term."""
    if a.size == 0:
        return a
    with np.errstate(divide="ignore"):
        lead = special.psi(a + 1) - np.log(g)
    term, total, k = np.ones(a.shape), lead, 0  # g^k a / (a)_(k+1), and the sum
    while np.any(term * np.maximum(lead, 1.0) > 1e-17 * total):
        k += 1
        term = term * (g / (a + k))
        lead = lead + 1 / (a + k)
        total = total + term * lead
    return total - 1.0


def _above(a: Array, g: Array) -> Array:
    """From dg/da = int_0^inf (log(g + t) - psi(a)) (1 + t/g)^(a - 1) e^-t dt, by the double-exponential rule.

    t = w exp(y - e^-y) (Takahasi and Mori 1974), w the width of the integrand.
    """
    y = np.arange(-3.7, 5.3, 1 / 16)
    grow = np.exp(y - np.exp(-y))
    slope = grow * (1 + np.exp(-y)) / 16
    width = 1 / (np.maximum(0.0, 1 - (a - 1) / g) + 1 / np.sqrt(g))
    t = width[..., None] * grow
    logs = np.log1p(t / g[..., None])
    height = (np.log(g) - special.psi(a))[..., None] + logs
    weights = np.exp((a[..., None] - 1) * logs - t)
    return a / g * (width * ((height * weights) @ slope)) - 1.0


def _expanded(a: Array, excess: Array) -> Array:
    """From g = a + sum_k p_k(x) a^((1 - k)/2) for the normal deviate x at P(a, g).

    p_0 = x, p_1 = (x^2 - 1)/3, p_2 = (x^3 - 7 x)/36, p_3 = -(3 x^4 + 7 x^2 - 16)/810,
    p_4 = (9 x^5 + 256 x^3 - 433 x)/38880 (Abramowitz and Stegun 1964, 26.4.11 and 26.2.49).
    Then a dg/da - g = -sum_k (k + 1)/2 p_k(x) a^((1 - k)/2).
    """
    root = np.sqrt(a)
    x = r = excess / root
    for _ in range(8):  # each brings the factor |x| / root, at most 1/10
        _, *later = _cornish_fisher(x, root)
        x = r - sum(later)
    return -root * sum((k + 1) / 2 * part for k, part in enumerate(_cornish_fisher(x, root))) / (a + excess)


def _cornish_fisher(x: Array, root: Array) -> tuple[Array, ...]:
    """p_k(x) / root^k."""
    square = x * x
    return (
        x,
        (square - 1) / (3 * root),
        x * (square - 7) / (36 * root**2),
        -(square * (3 * square + 7) - 16) / (810 * root**3),
        x * (square * (9 * square + 256) - 433) / (38880 * root**4),
    )
