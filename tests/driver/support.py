"""What the tests of `minimize` share: objectives, a recorder of points, and the loop written by hand."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from esgroup.checks import Array
from esgroup.driver.evaluate import Evaluation, objective
from esgroup.driver.failures import Failures
from esgroup.search.searcher import Searcher

X0 = np.array([1.0, -0.5, 2.0])


def ellipsoid(x: Array, scale: float = 1.0) -> float:
    return float(scale * (x @ (np.array([1.0, 10.0, 100.0]) * x)))


def ellipsoid_rows(X: Array) -> Array:
    return np.array([ellipsoid(x) for x in X])


def squares(x: Any) -> float:
    return float((np.asarray(x) ** 2).sum())


def squares_of_rows(X: Array) -> Array:
    total: Array = (X**2).sum(axis=1)
    return total


def rastrigin(x: Array) -> float:
    return float(10 * len(x) + (x**2 - 10 * np.cos(2 * np.pi * x)).sum())


class Recorder:
    """An objective that keeps its points and may do something at a given call."""

    def __init__(self, fun: Callable[[Array], float], at: int = -1, do: Callable[[], None] | None = None) -> None:
        self.fun, self.at, self.do = fun, at, do
        self.points: list[Array] = []

    def __call__(self, x: Array) -> float:
        if len(self.points) == self.at and self.do is not None:
            self.at = -1
            self.do()
        self.points.append(x)
        return self.fun(x)


def fail(error: BaseException) -> Callable[[], None]:
    def do() -> None:
        raise error

    return do


def same(a: list[Array], b: list[Array]) -> bool:
    """Whether two trajectories are equal bit for bit."""
    return len(a) == len(b) and np.array_equal(np.array(a), np.array(b))


def by_hand(fun: Any, **options: Any) -> Searcher:
    search = Searcher(X0, 0.5, **options)
    while not search.stop():
        search.tell([fun(x) for x in search.ask()])
    return search


def wait_for(path: Path, good: Callable[[Path], bool], every: float = 0.002) -> None:
    end = time.monotonic() + 30
    while not (path.exists() and good(path)):
        assert time.monotonic() < end
        time.sleep(every)


@contextmanager
def evaluator(
    fun: Any, args: Any = (), *, failures: Failures | None = None, **where: Any
) -> Iterator[Callable[..., list[Any]]]:
    """Evaluate generations as `minimize` would: a function of points and, if wanted, of a dict for what arrives."""
    evaluation = Evaluation(objective(fun, args), failures or Failures(), **where)

    def evaluate(X: Array, arrived: dict[int, Any] | None = None, should_stop: Any = None) -> list[Any]:
        arrived = {} if arrived is None else arrived
        generations(X, arrived, should_stop)
        return [arrived[i] for i in sorted(arrived)]

    with ExitStack() as stack:
        generations = evaluation.generations(stack, timed=False)
        yield evaluate
