"""Bounds, fixed and integer variables: a box as a domain.

`Box` holds them and translates points and standard deviations; `make_box` builds one from a user's arguments, and
`parse_bounds` reads bounds as users write them: SciPy's Bounds, a pair for all variables, or a pair for each. `bend.py`
keeps points within bounds without a kink.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.domains.base import Domain, Limits, Mask, Place
from esgroup.domains.bend import Bend

# Largest bent part of the range at a bound. In 24 searches of bbob's f10 with 10 variables between -5 and 5 (instances
# 1-3, 2000 evaluations) the median gap is 26 with 0.1, 16 with 0.05, 6.5 with 0.02 and 5.2 with 0.01: a quadratic
# function stays quadratic only where x = y. A sphere with half its variables at bounds: 1,240 to 1,320 evaluations.
_MARGIN = 0.02
_WIDEST = 1 / 3  # largest useful standard deviation over the range; the uniform distribution has 0.29
# Standard deviations from the mean to a bound that is tried: with 2 the corner of a linear function of 10 to 40
# variables takes 15 to 30 percent more evaluations, with 4 up to 5 percent less; the longer it runs, the more.
_WITHIN = 3.0
_DEFAULT_SHARE = 0.25  # of the range: the first standard deviation by default
_NO_RANGE = 1e20  # bounds this far apart are obeyed, but do not set the scale
_RESOLVED = 0.1  # part of a step that must change x; with 0.2, 10 of 24 searches on a grid falsely reported success
_OPEN = 1e300  # no bound beyond: many write the largest float for infinity, and ranges must not overflow
_KINDS = "None, scipy.optimize.Bounds, a pair (lower, upper), or one such pair for each variable"


@dataclass(frozen=True, eq=False)
class Box(Domain):
    """Bounds, fixed and integer variables of the user's x, and the map from the search's y, which has none of them.

    y has the variables that are not fixed. At a bound x is bent (`Bend`): x = y except within a margin of
    min(0.02 range, max(sigma0, |x0 - bound|) / 2). Samples approach a bound without reaching it, so the search also
    tries points exactly on the bounds near its mean (`tried`). Integers are rounded, with mirrors at their bounds, so
    that each integer has an interval of length 1 in y.
    """

    x0: Array  # (dim,), feasible
    lower: Array  # (dim,), -inf where open
    upper: Array
    fixed: Mask  # (dim,): these stay at x0
    integer: Mask
    steps0: Array  # (dim,), default of the first standard deviations of x

    def __post_init__(self) -> None:
        for name in ("x0", "lower", "upper", "fixed", "integer", "steps0"):
            array, kind = getattr(self, name), "b" if name in ("fixed", "integer") else "f"
            if not isinstance(array, np.ndarray) or array.dtype.kind != kind or array.shape != (len(self.x0),):
                wanted = f"{len(self.x0)} {'numbers' if kind == 'f' else 'flags'}, as many as x0"
                raise ValueError(f"{name} must be a vector of {wanted}, got {array!r}")
        if not np.isfinite(self.x0).all() or not (self.steps0 > 0)[~self.fixed].all():
            raise ValueError(f"x0 must be finite and steps0 positive, got {self.x0} and {self.steps0}")
        if self.fixed.all():
            raise ValueError("fixed and bounds must leave a variable to search, but all are fixed")
        self.check("x0", self.x0)

    # ---- sizes --------------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return self.x0.shape

    @cached_property
    def free(self) -> NDArray[np.int64]:
        """Indices of the variables that are searched."""
        return np.flatnonzero(~self.fixed)

    @cached_property
    def size(self) -> int:
        return len(self.free)

    @cached_property
    def plain(self) -> bool:
        """Whether x = y: no bounds, nothing fixed, no integers."""
        bounded = np.isfinite(self.lower).any() or np.isfinite(self.upper).any()
        return not (bounded or self.fixed.any() or self.integer.any())

    # ---- points -------------------------------------------------------------------------------------------------

    def decode(self, y: Array) -> Array:
        x = self._bend.out(y)
        if self._whole.size:
            x[:, self._whole] = np.rint(x[:, self._whole])
        if self.size == len(self.x0):
            return x
        full = np.tile(self.x0, (len(x), 1))
        full[:, self.free] = x
        return full

    def encode(self, points: Array, near: Array | None = None) -> Array:
        """Return y (n, size) with decode(y) = x for feasible x (n, dim); other x are first moved to feasible ones.

        Of all mirror images this is the y between the mirrors, or the one nearest to the point `near` (size,), for
        example the mean of the search. Integers become the middle of their interval; fixed variables are ignored.
        """
        y = self._bend.back(self.feasible(points)[:, self.free])
        return y if near is None else self._bend.nearest_image(y, near)

    def tried(self, mean: Array, stds: Array) -> Array | None:
        """Return the y (size,) of the mean moved onto all bounds within three standard deviations, None if none is.

        Integers stay unchanged.
        """
        mirror = self._bend.nearest_mirror(mean)
        near = np.abs(mirror - mean) < _WITHIN * stds
        return np.where(near, mirror, mean) if near.any() else None

    def behind(self, y: Array, mean: Array) -> Mask:
        """Return which points y (n, size) are separated from the point `mean` (size,) by a mirror."""
        low, high = self.mirrors
        here = (mean >= low) & (mean <= high)  # otherwise the mean itself is behind a mirror
        return np.any(((y < low) | (y > high)) & here, axis=1)

    def feasible(self, x: Array) -> Array:
        """Return the nearest feasible points."""
        whole = np.where(self.integer, np.rint(x), x)
        return np.where(self.fixed, self.x0, np.clip(whole, self.lower, self.upper))

    def inside(self, points: Array) -> Mask:
        return (self.feasible(points) == points).all(axis=1)

    def check(self, name: str, points: Array) -> None:
        """Refuse points, (dim,) or (n, dim), that are out of bounds, not integer, or not at a fixed value."""
        lower, upper, x0, x = self.lower, self.upper, self.x0, points
        if (at := _first((x < lower) | (x > upper))) is not None:
            j = at[-1]
            raise ValueError(f"{_name(name, at)} must be from {lower[j]} to {upper[j]}, got {x[at]}")
        if (at := _first(self.integer & (x != np.rint(x)))) is not None:
            raise ValueError(f"{_name(name, at)} must be an integer, got {x[at]}: round it")
        if (at := _first(self.fixed & (x != x0))) is not None:
            raise ValueError(f"{_name(name, at)} must be {x0[at[-1]]}, its fixed value, got {x[at]}")

    def begin(self) -> Place:
        return Place(self.encode(self.x0[None])[0], self.initial_steps())

    def elsewhere(self, factor: float, rng: np.random.Generator, first: Place) -> tuple[Box, Place]:
        """Start at a random point: uniform between two finite bounds, elsewhere x0 + s N(0, I), mirrored.

        s are the standard deviations of x in the first place.
        """
        normal = self.x0 + self.stds(*first) * rng.standard_normal(len(self.x0))
        x0 = self.decode(normal[None, self.free])[0]
        share, ranged = rng.random(len(self.x0)), _ranged(self.lower, self.upper)
        grown = self.integer[ranged] * 0.5  # every integer is equally likely
        low, high = self.lower[ranged] - grown, self.upper[ranged] + grown
        x0[ranged] = low + share[ranged] * (high - low)
        x0 = self.feasible(x0)
        steps0 = np.maximum(self.steps0 * factor, 10 * np.spacing(np.abs(x0)))  # x0 may be far from the first one
        box = replace(self, x0=x0, steps0=steps0)
        return box, box.begin()

    def with_bounds(self, x0: Array, bounds: Any) -> Box:
        """Return a box with other bounds and the same fixed and integer variables; x0 is moved inside them."""
        lower, upper, hint = parse_bounds(bounds, len(self.x0), self.integer)
        if (same := (lower == upper) & ~self.fixed).any():
            raise ValueError(f"bounds must leave room, got lower = upper for variable {int(same.argmax())}{hint}")
        x0 = np.where(self.fixed, self.x0, np.clip(x0, lower, upper))
        return replace(self, x0=x0, lower=lower, upper=upper)

    # ---- standard deviations ------------------------------------------------------------------------------------

    def initial_steps(self, sigma0: Any = None) -> Array:
        """Return the first standard deviations of y (size,): sigma0, a positive number or (dim,), or `steps0`.

        They are at most the upper limits of `limits`, and larger than sigma0 where x0 lies in the margin of a bound, so
        that the points still spread by sigma0. Steps below the rounding error of x0 raise a ValueError.
        """
        wanted = (self.steps0 if sigma0 is None else _parse_steps(sigma0, self.fixed))[self.free]
        steps, x0 = np.minimum(wanted, self._most_steps), self.x0[self.free]
        if (at := _first(unresolved(x0, steps))) is not None:
            j = int(self.free[at])
            where = f"numbers near x0[{j}] = {self.x0[j]:.6g} are {np.spacing(abs(self.x0[j])):.3g} apart"
            if unresolved(self.x0[j], _DEFAULT_SHARE * (self.upper[j] - self.lower[j])):
                room = f"({self.lower[j]}, {self.upper[j]}) for variable {j}: {where}"
                raise ValueError(f"bounds must leave room to search, or be equal to fix a variable, got {room}")
            raise ValueError(f"sigma0 must be large enough to change x0, got {wanted[at]:.3g}: {where}")
        return self._bend.steps(x0, steps)

    @property
    def folds(self) -> bool:
        """With integers, equal points do not mean a corner: wider steps lead to others."""
        return not (self.plain or self._whole.size)

    def limits(self, popsize: int) -> Limits:
        """Limits of standard deviations: lower ones for integers, 0 elsewhere; the largest useful ones, inf if open.

        A sample leaves the interval of the current integer, even from its middle, with probability
        P(|N(0, s^2)| > 1/2) >= alpha = 1 / (size popsize), so that a generation changes about one variable when all are
        at their lower limit (the margin of Hamano et al. 2022, CMA-ES with margin): s = 1 / (2 q) with the
        (1 - alpha / 2)-quantile q of the normal distribution; alpha is at most 0.3, s below 1/2.

        The upper limits are a third of the range (1/2 for integers if that is more). Samples of wider distributions are
        nearly uniform: a search between mirrors would not notice its step size growing without bound.
        """
        least = np.where(self.integer[self.free], margin(self.size, popsize), 0.0) if self._whole.size else None
        return Limits(None, least, None if np.isinf(self._most_steps).all() else self._most_steps)

    def stds(self, mean: Array, stds: Array) -> Array:
        """Return the standard deviations (dim,) of x, of integers before rounding, 0 where fixed."""
        found = np.zeros(len(self.x0))
        found[self.free] = self._bend.stds(mean, stds)
        return found

    # ---- derived ------------------------------------------------------------------------------------------------

    @cached_property
    def _whole(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.integer[self.free])

    @cached_property
    def mirrors(self) -> tuple[Array, Array]:
        """The least and the largest y (size,) before points repeat; half an integer is rounded to its bound."""
        bend, half = self._bend, 0.5 * self.integer[self.free]
        return bend.lower - bend.lower_margin - half, bend.upper + bend.upper_margin + half

    @cached_property
    def _most_steps(self) -> Array:
        most = _WIDEST * (self.upper - self.lower)
        return checks.read_only(np.where(self.integer, np.maximum(most, 0.5), most)[self.free])

    @cached_property
    def _bend(self) -> Bend:
        lower, upper, x0, free = self.lower, self.upper, self.x0, self.free
        most = np.where(self.integer, 0.0, _MARGIN * (upper - lower))
        steps = np.minimum(self.steps0, _WIDEST * (upper - lower))
        low, high = (np.minimum(most, 0.5 * np.maximum(steps, gap)) for gap in (x0 - lower, upper - x0))
        low, high = np.where(np.isfinite(lower), low, 0.0), np.where(np.isfinite(upper), high, 0.0)
        return Bend(lower[free], upper[free], low[free], high[free])


@dataclass(frozen=True, eq=False)
class Fixed(Domain):
    """Points of a box with fixed variables, while y has all variables: for a strategy that searches all of them.

    The fixed entries of y have no effect. (The y of a `Box` has no such entries.)
    """

    box: Box

    @property
    def shape(self) -> tuple[int, ...]:
        return self.box.shape

    @property
    def size(self) -> int:
        return len(self.box.x0)

    @cached_property
    def free(self) -> Box:
        """The box of all variables, without limits where they are fixed."""
        box, fixed = self.box, self.box.fixed
        lower, upper = np.where(fixed, -math.inf, box.lower), np.where(fixed, math.inf, box.upper)
        return replace(box, lower=lower, upper=upper, fixed=np.zeros_like(fixed), integer=box.integer & ~fixed)

    def decode(self, y: Array) -> Array:
        return np.where(self.box.fixed, self.box.x0, y)

    def encode(self, points: Array, near: Array | None = None) -> Array:
        return np.where(self.box.fixed, self.box.x0 if near is None else near, points)

    def check(self, name: str, points: Array) -> None:
        self.box.check(name, points)

    def inside(self, points: Array) -> Mask:
        return self.box.inside(points)

    def stds(self, mean: Array, stds: Array) -> Array:
        return np.where(self.box.fixed, 0.0, stds)

    def idle(self, mean: Array) -> Mask:
        return self.box.fixed


def margin(size: int, popsize: int) -> float:
    """The least standard deviation of an integer among `size` numbers: see `Box.limits`."""
    alpha = min(0.3, 1 / (size * popsize))
    return 0.5 / NormalDist().inv_cdf(1 - alpha / 2)


# ---- from a user's arguments ------------------------------------------------------------------------------------


def make_box(x0: Any, bounds: Any = None, fixed: Any = None, integer: Any = None, sigma0: Any = None) -> Box:
    """Return the box that a user's arguments describe.

    Parameters
    ----------
    x0 : array_like
        A feasible point.
    bounds : optional
        scipy.optimize.Bounds, a pair of numbers for all variables, or a pair for each; None or infinite where open.
        Variables with equal bounds are fixed.
    fixed : optional
        Indices or a mask of the variables that stay at x0, or a mapping of indices to values.
    integer : optional
        True, or indices or a mask of the integer variables.
    sigma0 : float or array_like, optional
        A positive number, or one per variable: what `initial_steps` starts from, and the scale of the margins at the
        bounds. The default is a quarter of the range where both bounds are finite, elsewhere 0.3 max|x0| over such
        variables, or 1 if they are all zero; for integers at least 0.5.

    Returns
    -------
    Box
        The box, with x0 as its first point.

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type, or x0 is not feasible.

    Examples
    --------
    >>> box = make_box([1.0, 2.0, 3.0], bounds=(0, 5), fixed=[1])
    >>> box.size
    2
    """
    point: Array = np.array(checks.real_array("x0", x0, (None,)))
    dim = len(point)
    if dim == 0:
        raise ValueError("x0 must have at least one variable, got none")
    whole = np.full(dim, integer) if isinstance(integer, (bool, np.bool_)) else parse_mask("integer", integer, dim)
    stays = _parse_fixed(fixed, point)
    lower, upper, hint = parse_bounds(bounds, dim, whole)
    stays |= lower == upper
    steps = _default_steps(point, lower, upper, stays, whole) if sigma0 is None else _parse_steps(sigma0, stays)
    try:
        return Box(point, lower, upper, stays, whole, steps)
    except ValueError as error:
        raise ValueError(f"{error}{hint}") from None


def moved_inside(x: Array, bounds: Any, integer: Any) -> Array:
    """Return the nearest point within the bounds, with integers where required."""
    whole = make_box(np.zeros(len(x)), integer=integer).integer
    lower, upper, _ = parse_bounds(bounds, len(x), whole)
    return np.clip(np.where(whole, np.rint(x), x), lower, upper)


def _parse_fixed(fixed: Any, point: Array) -> Mask:
    """Return the mask of fixed variables; the values of a mapping are written to the point."""
    if not isinstance(fixed, Mapping):
        return parse_mask("fixed", fixed, len(point))
    mask = np.zeros(len(point), dtype=bool)
    for index, value in fixed.items():
        j = _parse_index("fixed", index, len(point))
        if mask[j]:
            raise ValueError(f"fixed must name a variable once, got variable {j} twice")
        point[j], mask[j] = checks.real_number(f"fixed[{index!r}]", value), True
    return mask


def parse_mask(name: str, value: Any, dim: int) -> Mask:
    """Return a mask from None, a mask, or indices."""
    mask = np.zeros(dim, dtype=bool)
    if value is None:
        return mask
    if not isinstance(value, Iterable) or isinstance(value, (str, bytes, Mapping)):
        raise TypeError(f"{name} must be None, indices or a mask, got {value!r}")
    entries = list(value)
    if entries and all(isinstance(entry, (bool, np.bool_)) for entry in entries):
        if len(entries) != dim:
            raise ValueError(f"{name} must have {dim} entries if it is a mask, got {len(entries)}")
        return np.array(entries, dtype=bool)
    mask[[_parse_index(name, entry, dim) for entry in entries]] = True
    return mask


def _parse_index(name: str, value: Any, dim: int) -> int:
    return checks.whole_number(f"an index in {name}", value, least=-dim, most=dim - 1) % dim


def _parse_steps(sigma0: Any, fixed: Mask) -> Array:
    if not isinstance(sigma0, (list, tuple)) and np.ndim(sigma0) == 0:
        return np.full(len(fixed), checks.real_number("sigma0", sigma0, positive=True))
    steps = np.array(checks.real_array("sigma0 (one number, or one for each variable)", sigma0, (len(fixed),)))
    if (at := _first((steps <= 0) & ~fixed)) is not None:
        raise ValueError(f"sigma0 must be positive, got {steps[at]} at index {at[0]}")
    return steps


def _default_steps(x0: Array, lower: Array, upper: Array, fixed: Mask, integer: Mask) -> Array:
    ranged = _ranged(lower, upper)
    typical = 0.3 * float(np.abs(x0[~ranged & ~fixed]).max(initial=0.0))
    steps = np.where(ranged, _DEFAULT_SHARE * (upper - lower), typical if typical > 0 else 1.0)
    return np.where(integer, np.maximum(steps, 0.5), steps)


def _ranged(lower: Array, upper: Array) -> Mask:
    """Which variables have bounds that set a scale."""
    return upper - lower < _NO_RANGE


def unresolved(x: Any, steps: Any) -> Any:
    """Return where steps are below the rounding error of x: the search would not move, or only by chance."""
    size = np.abs(x)
    return size + _RESOLVED * steps == size


def _first(bad: Mask) -> tuple[int, ...] | None:
    """Return the index of the first true entry, None if there is none."""
    return tuple(int(i) for i in np.argwhere(bad)[0]) if bad.any() else None


def _name(name: str, at: tuple[int, ...]) -> str:
    """Return how messages name an entry: x0[1]."""
    return f"{name}[{', '.join(map(str, at))}]"


# ---- bounds as users write them ---------------------------------------------------------------------------------


def parse_bounds(bounds: Any, dim: int, integer: Any = False) -> tuple[Array, Array, str]:
    """Read bounds as users write them.

    A 2 x 2 array for two variables can be read by rows or by columns. It is read as one pair per variable; if that
    leads to an error, the hint shows both spellings.

    Parameters
    ----------
    bounds
        None, scipy.optimize.Bounds, a pair (lower, upper), or one such pair per variable. None and infinite numbers
        mean no bound.
    dim : int
        Number of variables.
    integer : array (dim,) of bool, optional
        Which variables are integers: their bounds are tightened to integers.

    Returns
    -------
    lower, upper : array
        The bounds of all variables, infinite where open.
    hint : str
        What to append to a later error message about these bounds; usually empty.

    Raises
    ------
    TypeError, ValueError
        If `bounds` is none of these, contains NaN, or leaves no finite number between a lower and an upper bound.

    Examples
    --------
    >>> lower, upper, _ = parse_bounds((0, None), 2)
    >>> lower.tolist(), upper.tolist()
    ([0.0, 0.0], [inf, inf])
    """
    lower, upper, hint = _read_bounds(bounds, dim)
    lower[lower < -_OPEN], upper[upper > _OPEN] = -math.inf, math.inf
    low, high = np.where(integer, np.ceil(lower), lower), np.where(integer, np.floor(upper), upper)
    for bad, wanted in (
        (np.isnan(lower) | np.isnan(upper), "must not be NaN"),
        (lower > upper, "must have lower <= upper"),
        ((lower == math.inf) | (upper == -math.inf), "must leave room for finite numbers"),
        (low > high, "must have an integer between them where a variable is an integer"),
    ):
        if bad.any():
            j = int(bad.argmax())
            raise ValueError(f"bounds {wanted}, got ({lower[j]}, {upper[j]}) for variable {j}{hint}")
    return low, high, hint


def bounds_of_entries(bounds: Any, shape: tuple[int, ...]) -> Array:
    """Return pairs (lower, upper) of the entries of an array, read row by row, from numbers or arrays of its shape."""
    sides = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") and hasattr(bounds, "ub") else bounds
    wanted = f"bounds must be a pair (lower, upper) of numbers or of arrays of shape {shape}"
    if not isinstance(sides, (list, tuple)) or len(sides) != 2:
        raise ValueError(f"{wanted}, got {bounds!r}")
    open_at = -math.inf, math.inf
    try:
        given = [open_at[i] if side is None else side for i, side in enumerate(sides)]
        return np.column_stack([np.broadcast_to(np.asarray(side, np.float64), shape).ravel() for side in given])
    except (TypeError, ValueError):
        raise ValueError(f"{wanted}, got {bounds!r}") from None


def _read_bounds(bounds: Any, dim: int) -> tuple[Array, Array, str]:
    """Return the bounds of all variables as they are written, and the hint of `parse_bounds`."""
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):  # scipy.optimize.Bounds, without importing SciPy
        parts, pairs = [_as_lists(bounds.lb), _as_lists(bounds.ub)], False
    else:
        parts = [None, None] if bounds is None else _as_lists(bounds)
        if not isinstance(parts, list):
            raise TypeError(f"bounds must be {_KINDS}, got {bounds!r}")
        pairs = all(isinstance(part, list) and len(part) == 2 for part in parts)
    if len(parts) != (dim if pairs else 2):
        got = f"{len(parts)} {'pairs' if pairs and parts else 'entries'}"
        raise ValueError(f"bounds must be {_KINDS}: got {got} for {dim} variables")
    sides = [list(side) for side in zip(*parts, strict=True)] if pairs else parts
    lower, upper = _parse_side(sides[0], dim, -math.inf), _parse_side(sides[1], dim, math.inf)
    return lower, upper, _two_spellings(lower, upper) if pairs and dim == 2 else ""


def _two_spellings(lower: Array, upper: Array) -> str:
    (a, b), (c, d) = zip(lower.tolist(), upper.tolist(), strict=True)
    if not (a < c and b < d):  # the other reading leaves no room
        return ""
    return (
        f"; bounds=[({a:g}, {b:g}), ({c:g}, {d:g})] is read as a pair (lower, upper) for each of two variables: if "
        f"({a:g}, {b:g}) are lower and ({c:g}, {d:g}) upper bounds, write bounds=[({a:g}, {c:g}), ({b:g}, {d:g})]"
    )


def _as_lists(value: Any) -> Any:
    """Return an iterable or array as nested lists; numbers and None stay as they are."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (str, bytes, dict, set, frozenset)) or not isinstance(value, Iterable):
        return value
    return [_as_lists(part) for part in value]


def _parse_side(value: Any, dim: int, none: float) -> Array:
    """Return one side of the bounds, given as one number for all variables or one for each, None where open."""
    entries = value if isinstance(value, list) else [value]
    if len(entries) == 1:  # also in a list: SciPy broadcasts
        entries = entries * dim
    if len(entries) != dim:
        side = "lower" if none < 0 else "upper"
        raise ValueError(f"bounds must be {_KINDS}: got {len(entries)} {side} bounds for {dim} variables")
    for entry in entries:
        if not (entry is None or isinstance(entry, numbers.Real)):  # NumPy's numbers are registered as such
            raise TypeError(f"bounds must be real numbers, or None for no bound, got {entry!r}")
    return np.array([none if entry is None else float(entry) for entry in entries])
