"""Reasons to stop that depend on the distribution, by name and in words."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from esgroup.checks import Array

Looking = Callable[[Any, Array], dict[str, str]]  # maps state and initial `spread` to reasons to stop, by name

CONDITION = 1e14  # of A A^T at which a search ends: the CMA-ES tutorial's ConditionCov
TOL_X = 1e-12  # of the initial standard deviations: the tutorial's TolX
DIVERGENCE = 1e10  # times the initial standard deviations


class Criterion(NamedTuple):
    """A reason to stop that depends on the distribution."""

    name: str
    every: int  # generations between two checks; the last answer is used in between; 0: check every time
    look: Looking
    # Relative size of the distribution at which the reason `stopping.values.NARROW` waits as long as values improve
    # (`still_improving`); then it is "tolx".
    waits_at: float = 0.0


def watching(criteria: tuple[Criterion, ...], look: Callable[..., dict[str, str]]) -> tuple[Criterion, ...]:
    """Return criteria in which `look` replaces each check and receives the original check as its first argument."""
    # not a local function, because it could not be pickled
    return tuple(one._replace(look=partial(look, one.look)) for one in criteria)


def relative_spread(relative: Array) -> dict[str, str]:
    """Reasons to stop from standard deviations relative to the initial ones: shrunk to a point, or diverged."""
    if not np.isfinite(relative).all() or relative.max() > DIVERGENCE:
        return {"divergence": f"standard deviations grew to more than {DIVERGENCE:g} times their initial values"}
    if relative.max() < TOL_X:
        return {"tolx": f"the standard deviations fell to {relative.max():.1g} times their initial values"}
    return {}
