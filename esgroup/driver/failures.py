"""Failed evaluations: which exceptions count as one, and how many in a row end the search."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from esgroup import checks
from esgroup.driver.calling import Call, call_objective
from esgroup.driver.worker_pool import NotEvaluated, TooSlow
from esgroup.rankings.outcomes import Evaluated, number

OnError = Literal["raise", "nan"] | type[Exception] | tuple[type[Exception], ...]


@dataclass(frozen=True)
class Failed:
    """The outcome of an evaluation whose exception counts as a failed evaluation."""

    text: str


class Failures:
    """Turns outcomes of evaluations into values, NaN for failed ones, and counts failures in a row.

    Parameters
    ----------
    on_error
        "raise": exceptions reach the caller. "nan": every Exception is a failed evaluation. Or the exception types that
        are.
    max_failures
        How many failures in a row end the search; None: no limit.
    """

    def __init__(self, on_error: OnError = "raise", max_failures: int | None = None) -> None:
        self.caught = _caught(on_error)
        self.most = checks.whole_number("max_failures", max_failures, least=1) if max_failures is not None else None
        self.in_a_row = 0
        self.last = ""  # text of the last one
        self.too_many = ""  # why the failures end the search; later values do not change this

    def value_of(self, outcome: Any, x: Any = None) -> Any:
        """Return the value of an evaluation; raise its exception unless it counts as a failed evaluation.

        ValueError if the function returned anything but one number at the point x.
        """
        if isinstance(outcome, Failed):
            return self._failed(outcome.text)
        if isinstance(outcome, BaseException):
            # setting eval_timeout implies that timeouts are failed evaluations
            if isinstance(outcome, NotEvaluated) or not isinstance(outcome, (TooSlow, *self.caught)):
                raise outcome
            return self._failed(_text(outcome))
        constrained = isinstance(outcome, Evaluated)
        value = outcome.value if constrained else outcome
        if not isinstance(value, float):
            value = one_number(value, x)
        if constrained and not all(map(math.isfinite, outcome.beside)):
            return self._failed("a constraint was NaN or infinite")
        if value != value:
            return self._failed("the value was NaN")
        self.in_a_row = 0
        return Evaluated(value, outcome.beside) if constrained else value

    def _failed(self, text: str) -> float:
        self.in_a_row += 1
        self.last = text
        if self.most is not None and self.in_a_row >= self.most:
            self.too_many = f"{self.in_a_row:,} evaluations in a row failed, the last one with: {text}"
        return math.nan


def guarded(call: Call, caught: tuple[type[Exception], ...], x: Any) -> Any:
    """Return call(x), or `Failed` if its exception counts as a failed evaluation."""
    try:
        return call_objective(call, x)
    except caught as error:
        return Failed(_text(error))


def one_number(value: Any, x: Any) -> float:
    """Return the value of a function at the point x as a float; ValueError says what it returned instead."""
    found = number(value)
    if found is None:
        wanted = "it must return one real number, NaN if the evaluation failed"
        missing = ": is a return missing?" if value is None else ""
        raise ValueError(f"the function returned {checks.shown(value)} {checks.at(x)}, but {wanted}{missing}")
    return found


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _caught(on_error: Any) -> tuple[type[Exception], ...]:
    if isinstance(on_error, str):
        if on_error not in ("raise", "nan"):
            raise ValueError(f"on_error must be 'raise', 'nan' or exception types, got {on_error!r}")
        return (Exception,) if on_error == "nan" else ()
    kinds = on_error if isinstance(on_error, tuple) else (on_error,)
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise TypeError(f"on_error must be 'raise', 'nan' or exception types, got {on_error!r}")
    return kinds
