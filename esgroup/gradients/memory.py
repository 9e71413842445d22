"""What was found at the last point, so that it is not computed twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from esgroup.checks import Array


class LastPoint:
    """Remembers one result, that of the last point (or rows of points)."""

    def __init__(self) -> None:
        self._x: Array | None = None
        self._found: Any = None

    def at(self, x: Array, compute: Callable[[Array], Any]) -> Any:
        """compute(x), or what it returned if x is the last point."""
        if self._x is None or not np.array_equal(x, self._x):
            self._found = compute(x)
            self._x = x.copy()  # after a success only; a copy, since callers may move their point in place
        return self._found


class ValueAndGradient:
    """A function that returns (f, g), as two: `fun` and `jac`. The pair is computed once for the same x."""

    def __init__(self, both: Callable[[Array], Any]) -> None:
        self._both = both
        self._last = LastPoint()

    def fun(self, x: Array) -> Any:
        return self._pair(x)[0]

    def jac(self, x: Array) -> Any:
        return self._pair(x)[1]

    def _pair(self, x: Array) -> tuple[Any, Any]:
        return self._last.at(x, self._computed)  # type: ignore[no-any-return]

    def _computed(self, x: Array) -> tuple[Any, Any]:
        found = self._both(x)
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise ValueError(f"with jac=True fun(x) must return (value, gradient), got {found!r}")
        gradient = np.array(found[1])  # a copy: fun may return the same array every time
        gradient.flags.writeable = False
        return found[0], gradient
