"""Observers of a run: histories, progress bars, checkpoint writers and callbacks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Observer(Protocol):
    """Receives the events of a run: an argument of `minimize(callback=)` and of other kinds of runs.

    Derive from it and override the events that you need. `run` is the running search, a `Searcher` whose counts and
    best point cover all restarts; for Newton and `fit_posterior` it is their running state.

    Examples
    --------
    >>> import esgroup
    >>> class Traces(esgroup.Observer):
    ...     def begins(self, run):
    ...         self.best = []
    ...     def generation(self, run):
    ...         self.best.append(run.best_f)
    >>> traces = Traces()
    >>> f = lambda x: x @ x
    >>> result = esgroup.minimize(f, [1.0, 2.0], 0.5, max_iters=5, callback=traces, rng=1)
    >>> len(traces.best), traces.best[-1] == result.fun
    (5, True)
    """

    def begins(self, run: Any) -> None:
        """Called before the first evaluation; an exception raised here prevents the run."""
        return None

    def generation(self, run: Any) -> Any:
        """Called after each generation. A true value ends the run."""
        return None

    def ends(self, run: Any, error: BaseException | None) -> None:
        """Called at the end of a run that has begun, with the exception or interrupt that ended it, or None."""
        return None


@dataclass(frozen=True)
class Callback(Observer):
    """Calls a function with a view of the run; a true value or StopIteration ends the run."""

    function: Callable[[Any], Any]
    shown: Callable[[Any], Any]

    def generation(self, run: Any) -> Any:
        """Call the function."""
        try:
            return self.function(self.shown(run))
        except StopIteration:
            return True


def as_observers(callback: Any, kind: str, shown: Callable[[Any], Any] = lambda run: run) -> list[Observer]:
    """Return the observers for the argument `callback`: None, an observer, or a function of `shown(run)`, a `kind`."""
    if callback is None:
        return []
    if not isinstance(callback, type):
        if isinstance(callback, Observer):
            return [callback]
        if callable(callback):
            return [Callback(callback, shown)]
    raise TypeError(f"callback must be a function of a {kind} or an Observer, got {callback!r}")


def watched(run: Any, *observers: Observer) -> ExitStack:
    """Return a context in which observers watch a run that has just begun; they end in reverse order."""
    with ExitStack() as begun:
        for observer in observers:
            observer.begins(run)
            begun.push(partial(_end, observer, run))
        return begun.pop_all()


def _end(observer: Observer, run: Any, kind: object, error: BaseException | None, traceback: object) -> None:
    observer.ends(run, error)
