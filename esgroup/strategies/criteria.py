"""Reasons to stop that only the distribution knows, in words and by their names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from esgroup.checks import Array

Looking = Callable[[Any, Array], dict[str, str]]  # state and first `spread` to reasons to stop by name, none to go on

CONDITION = 1e14  # of A A^T at which a search ends: the CMA-ES tutorial's ConditionCov
TOL_X = 1e-12  # of the first standard deviations: the tutorial's TolX
DIVERGENCE = 1e10  # times the first standard deviations


class Criterion(NamedTuple):
    """A reason to stop that only the distribution knows."""

    name: str
    every: int  # generations between two looks, after which the answer stands until the next; 0: always look
    look: Looking
    # Relative size of the distribution at which the reason `stopping.values.NARROW` waits as long as values get better
    # (`still_improving`); then it is "tolx".
    waits_at: float = 0.0


def watching(criteria: tuple[Criterion, ...], look: Callable[..., dict[str, str]]) -> tuple[Criterion, ...]:
    """Return criteria at which `look` looks in place of them, with the look of each as its first argument."""
    # no local function, which could not be pickled
    return tuple(one._replace(look=partial(look, one.look)) for one in criteria)


def relative_spread(relative: Array) -> dict[str, str]:
    """Reasons to stop by standard deviations relative to the first ones: they are points, or beyond all bounds."""
    if not np.isfinite(relative).all() or relative.max() > DIVERGENCE:
        return {"divergence": f"standard deviations grew to more than {DIVERGENCE:g} times their initial values"}
    if relative.max() < TOL_X:
        return {"tolx": f"the standard deviations fell to {relative.max():.1g} times their initial values"}
    return {}
