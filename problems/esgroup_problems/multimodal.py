"""Functions with many local minima that are not sums over coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup_problems import making
from esgroup_problems.functions import Function, Length
from esgroup_problems.problem import Problem, register


@dataclass(frozen=True)
class Ackley(Function):
    """f(x) = 20 [1 - exp(-r/5)] + e - exp(c), r = sqrt(1/d sum_i x_i^2), c = 1/d sum_i cos 2 pi x_i.

    It is smooth except for a kink at x = 0, where the derivatives of r are taken as zero. Near it f is computed
    without cancellation: with expm1, and c - 1 from sin^2.
    """

    def rows(self, x: Array) -> Array:
        r = np.sqrt((x**2).mean(axis=-1))
        below_one = -2 * (np.sin(np.pi * x) ** 2).mean(axis=-1)  # c - 1
        return -20 * np.expm1(-r / 5) - np.e * np.expm1(below_one)

    def gradient(self, x: Array) -> Array:
        slope, _, height = _ackley_parts(x)
        return slope * _rms(x).gradient() - height * _waves(x)

    def product(self, x: Array, v: Array) -> Array:
        slope, bend, height = _ackley_parts(x)
        r, waves = _rms(x), _waves(x)
        bowl = slope * r.product(v) + bend * (r.gradient() * v).sum() * r.gradient()
        return bowl - height * (_wave_bends(x) * v + (waves * v).sum() * waves)

    def diagonal(self, x: Array) -> Array:
        slope, bend, height = _ackley_parts(x)
        r = _rms(x)
        bowl = slope * r.diagonal() + bend * r.gradient() ** 2
        return bowl - height * (_wave_bends(x) + _waves(x) ** 2)


def _rms(x: Array) -> Length:
    return Length(x, scale=len(x) ** -0.5)


def _ackley_parts(x: Array) -> tuple[float, float, float]:
    """First and second derivative of 20 [1 - exp(-r/5)] with respect to r, and exp(c)."""
    decay = float(np.exp(-_rms(x).value / 5))
    return 4 * decay, -0.8 * decay, float(np.exp(np.cos(2 * np.pi * x).mean()))


def _waves(x: Array) -> Array:
    """Gradient of c."""
    return -2 * np.pi / len(x) * np.sin(2 * np.pi * x)


def _wave_bends(x: Array) -> Array:
    """Diagonal of the Hessian of c."""
    return -4 * np.pi**2 / len(x) * np.cos(2 * np.pi * x)


@dataclass(frozen=True)
class Griewank(Function):
    """f(x) = 1/4000 sum_i x_i^2 + 1 - P, P = prod_i cos(x_i / sqrt i).

    With t_i = tan(x_i / sqrt i) / sqrt i the derivatives of P are -P t_i, P t_i t_j for i != j, and -P / i for i = j.
    """

    def rows(self, x: Array) -> Array:
        return (x**2).sum(axis=-1) / 4000 + (1 - np.cos(x / _roots(x)).prod(axis=-1))

    def gradient(self, x: Array) -> Array:
        height, tangents = _griewank_parts(x)
        return x / 2000 + height * tangents

    def product(self, x: Array, v: Array) -> Array:
        height, tangents = _griewank_parts(x)
        others = tangents * ((tangents * v).sum() - tangents * v)  # sum over j != i of t_i t_j v_j
        return v / 2000 - height * (others - v / _roots(x) ** 2)

    def diagonal(self, x: Array) -> Array:
        height, _ = _griewank_parts(x)
        return 1 / 2000 + height / _roots(x) ** 2


def _roots(x: Array) -> Array:
    return np.sqrt(np.arange(1, x.shape[-1] + 1))


def _griewank_parts(x: Array) -> tuple[float, Array]:
    """P and t."""
    angles = x / _roots(x)
    return float(np.cos(angles).prod()), np.tan(angles) / _roots(x)


@dataclass(frozen=True)
class Lunacek(Function):
    """f(x) = min(sum_i (x_i - m)^2, d + s sum_i (x_i - n)^2) + 10 sum_i [1 - cos 2 pi (x_i - m)], m = 2.5.

    s = 1 - 1/(2 sqrt(d + 20) - 8.2) and n = -sqrt((m^2 - 1)/s). It is smooth except where the two bowls meet.
    """

    dim: int
    deep: float = 2.5  # m: the center of the better bowl

    @property
    def width(self) -> float:
        """s: the second bowl is wider."""
        return 1 - 1 / (2 * math.sqrt(self.dim + 20) - 8.2)

    @property
    def shallow(self) -> float:
        """n: the center of the second bowl; the two meet at 0 on the diagonal."""
        return -math.sqrt((self.deep**2 - 1) / self.width)

    def rows(self, x: Array) -> Array:
        waves = 20 * (np.sin(np.pi * (x - self.deep)) ** 2).sum(axis=-1)
        return np.minimum(*self._bowls(x)) + waves

    def gradient(self, x: Array) -> Array:
        scale, center = self._bowl_at(x)
        return 2 * scale * (x - center) + 20 * np.pi * np.sin(2 * np.pi * (x - self.deep))

    def product(self, x: Array, v: Array) -> Array:
        return self.diagonal(x) * v

    def diagonal(self, x: Array) -> Array:
        scale, _ = self._bowl_at(x)
        return 2 * scale + 40 * np.pi**2 * np.cos(2 * np.pi * (x - self.deep))

    def _bowls(self, x: Array) -> tuple[Array, Array]:
        near, far = ((x - self.deep) ** 2).sum(axis=-1), ((x - self.shallow) ** 2).sum(axis=-1)
        return near, self.dim + self.width * far

    def _bowl_at(self, x: Array) -> tuple[float, float]:
        """Scale and center of the bowl that is lower at x."""
        near, far = self._bowls(x)
        return (1.0, self.deep) if near <= far else (self.width, self.shallow)


@register
def ackley(dim: int = 20) -> Problem:
    """A nearly flat plain of small waves with a deep funnel at zero."""
    dim = checks.whole_number("dim", dim, least=1)
    source = "Ackley: A connectionist machine for genetic hillclimbing (1987)"
    return making.problem(ackley, Ackley(), minimizer=np.zeros(dim), box=(-32.768, 32.768), source=source)


@register
def griewank(dim: int = 20) -> Problem:
    """A wide bowl with fine waves that fade as the dimension grows."""
    dim = checks.whole_number("dim", dim, least=1)
    source = "Griewank: Generalized descent for global optimization (JOTA 34, 1981)"
    return making.problem(griewank, Griewank(), minimizer=np.zeros(dim), box=(-600.0, 600.0), source=source)


@register
def lunacek(dim: int = 20) -> Problem:
    """Bi-Rastrigin: two bowls under Rastrigin's waves; the minimum is not in the wider one."""
    dim = checks.whole_number("dim", dim, least=2)
    function = Lunacek(dim)
    source = "Lunacek, Whitley, Sutton: The impact of global structure on search (PPSN X, 2008)"
    return making.problem(lunacek, function, minimizer=np.full(dim, 2.5), box=(-5.0, 5.0), source=source)
