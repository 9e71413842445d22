"""What watches a run, by event: histories, lines of progress, writers of checkpoints and callbacks are observers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Observer(Protocol):
    """What `minimize(callback=)` and a run of another kind tell of themselves, event by event.

    Derive from it and replace the events that you need. `run` is the running search, with its counts and its best point
    over all restarts and every other attribute of a `Searcher`; of Newton and `fit_posterior` their running state.

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
        """Note the beginning of a run: nothing has been evaluated yet, and what this raises prevents it."""
        return None

    def generation(self, run: Any) -> Any:
        """Note that a generation is complete. A true value ends the run."""
        return None

    def ends(self, run: Any, error: BaseException | None) -> None:
        """Note the end of a run that has begun, with the exception or interrupt that has ended it, None without one."""
        return None


@dataclass(frozen=True)
class Callback(Observer):
    """Calls a function with what it is to see of the run; a true value or StopIteration ends the run."""

    function: Callable[[Any], Any]
    shown: Callable[[Any], Any]

    def generation(self, run: Any) -> Any:
        """Call the function."""
        try:
            return self.function(self.shown(run))
        except StopIteration:
            return True


def as_observers(callback: Any, kind: str, shown: Callable[[Any], Any] = lambda run: run) -> list[Observer]:
    """Return what the argument `callback` means: nothing, an observer, or a function of a `kind` that `shown` makes."""
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
