"""Stopping rules and their composition."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from esgroup import checks
from esgroup.checks import Array

if TYPE_CHECKING:
    from esgroup.stopping.budgets import Limits
    from esgroup.stopping.values import Record

TOLERANCE, REACHED, BUDGET, OTHER = range(4)  # status of a result that stopped for this kind of reason

Answer = str | dict[str, str] | None


class View(Protocol):
    """A search as stopping rules, progress bars and histories see it: a Searcher, with all its runs together.

    `restart`, the number of restarts so far, may be missing.
    """

    nfev: int
    nit: int
    seconds: float
    best_f: float
    generation_best: float
    feasible: bool
    sigma: float
    axis_ratio: float
    mean: Array
    stds: Array
    dim: int
    record: Record
    strategy: Any
    shape: tuple[int, ...]
    labels: list[str] | None
    constraints: Any
    best_constraints: Array | None
    structure: Any
    limits: Limits
    result: Any


class Rule(ABC):
    """A stopping rule: it looks at a search and has no state.

    Combine two rules, either of which may be a function: `first & second` holds if both do, `first | second` if either
    does.

    Examples
    --------
    >>> import esgroup
    >>> from esgroup.stopping import Rule
    >>> class Long(Rule):
    ...     name = "long"
    ...
    ...     def look(self, view):
    ...         if view.axis_ratio > 5:
    ...             return "one axis is five times as long as another"
    >>> f = lambda x: x[0] ** 2 + 100 * x[1] ** 2
    >>> esgroup.minimize(f, [3.0, 1.0], 0.5, stop=Long(), rng=1).stop
    {'long': 'one axis is five times as long as another'}
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The key of its reason in `result.stop`; in a class of your own usually a line `name = "..."`."""

    @property
    def status(self) -> int:
        """The status of the result: 0 a tolerance or 1 a target, which are successes; 2 a budget; 3 anything else."""
        return OTHER

    @property
    def of_run(self) -> bool:
        """Whether, with restarts, it ends only the current run and the next one starts; other rules end the search."""
        return False

    @abstractmethod
    def look(self, view: Any) -> Answer:
        """Return the reason to stop as a string, several as a dict, or None to continue. `view` is the search."""

    def __and__(self, other: Rule | Callable[[Any], str | bool | None]) -> Rule:
        return Both(self, as_rule(other))

    def __rand__(self, other: Callable[[Any], str | bool | None]) -> Rule:
        return Both(as_rule(other), self)

    def __or__(self, other: Rule | Callable[[Any], str | bool | None]) -> Rule:
        return Either(self, as_rule(other))

    def __ror__(self, other: Callable[[Any], str | bool | None]) -> Rule:
        return Either(as_rule(other), self)


@dataclass(frozen=True)
class _Pair(Rule):
    first: Rule
    second: Rule
    sign: ClassVar[str]

    @property
    def name(self) -> str:
        return f"{self.first.name} {self.sign} {self.second.name}"

    @property
    def of_run(self) -> bool:
        return self.first.of_run and self.second.of_run


class Both(_Pair):
    """Holds if both rules do; a success if either is."""

    sign = "&"

    @property
    def status(self) -> int:
        return min(self.first.status, self.second.status)

    def look(self, view: Any) -> str | None:
        first = _text(self.first.look(view))
        second = _text(self.second.look(view)) if first else ""
        return f"{first} and {second}" if second else None


class Either(_Pair):
    """Holds if either rule does; a success if both are."""

    sign = "|"

    @property
    def status(self) -> int:
        return max(self.first.status, self.second.status)

    def look(self, view: Any) -> str | None:
        texts = [_text(self.first.look(view)), _text(self.second.look(view))]
        return ", ".join(filter(None, texts)) or None


def _text(answer: Answer) -> str:
    return ", ".join(answer.values()) if isinstance(answer, dict) else answer or ""


@dataclass(frozen=True)
class ByFunction(Rule):
    """A function of a search as a rule: it returns a string or True to stop, None or False to continue."""

    function: Callable[[Any], str | bool | None]

    @property
    def name(self) -> str:
        return self.function.__name__

    def look(self, view: Any) -> str | None:
        answer = self.function(view)
        if isinstance(answer, (bool, np.bool_)):
            return f"{self.name}() returned True" if answer else None
        if answer is None or isinstance(answer, str):
            return answer
        raise TypeError(f"{self.name}(), passed as stop, must return a string, True, False or None, got {answer!r}")


OwnRule = Rule | Callable[[Any], str | bool | None]
Stop = OwnRule | Sequence[OwnRule]  # what an argument `stop` may be


def as_rule(given: Any) -> Rule:
    """Return a rule, or wrap a named function as one; TypeError if it is neither."""
    if isinstance(given, Rule):
        return given
    if callable(given) and not isinstance(given, type) and getattr(given, "__name__", "<").isidentifier():
        return ByFunction(given)
    what = "a rule of esgroup.stopping, a named function of the search, or a list of these"
    raise TypeError(f"stop must be {what}, got {checks.shown(given)}")


def as_rules(stop: Any) -> tuple[Rule, ...]:
    """Return what a caller gave as `stop`: one rule or function, or a list of them."""
    return tuple(as_rule(one) for one in (stop if isinstance(stop, (list, tuple)) else [stop]))
