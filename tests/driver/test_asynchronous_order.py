"""An asynchronous search depends on the order in which values arrive, and on nothing else."""

import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esgroup
from esgroup.checks import Array
from esgroup.search.searcher import Searcher
from tests.driver.support import X0, Recorder, ellipsoid, same

OUT = 6


class InBursts(Executor):
    """Evaluates points in the order of submission, several at a time, once `OUT` of them wait or none is to come."""

    def __init__(self, burst: int, total: int) -> None:
        self.burst, self.to_come, self.waiting = burst, total, list[tuple[Future[Any], Any, Any]]()

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((future, fn, args))
        self.to_come -= 1
        if len(self.waiting) == OUT or not self.to_come:
            for _ in range(self.burst if self.to_come else len(self.waiting)):
                first, function, arguments = self.waiting.pop(0)
                try:
                    first.set_result(function(*arguments))
                except ZeroDivisionError as error:
                    first.set_exception(error)
        return future


def run(fun: Any, burst: int, total: int = 200, **options: Any) -> Any:
    executor = InBursts(burst, total)
    how: dict[str, Any] = {"executor": executor, "asynchronous": True, "max_pending": OUT, "rng": 3}
    return esgroup.minimize(fun, X0, 0.5, max_evals=total, **how, **options)


@pytest.mark.parametrize("burst", [2, 3, OUT])
def test_values_that_arrive_together_count_as_if_they_came_one_by_one(burst: int) -> None:
    single, several = Recorder(ellipsoid), Recorder(ellipsoid)
    expected, result = run(single, 1), run(several, burst)
    assert same(several.points, single.points)
    assert result.nfev == expected.nfev == 200
    assert np.array_equal(result.xmean, expected.xmean)


def test_values_that_arrive_together_with_the_target_count() -> None:
    """Of a burst of six, one ends the search; the others were evaluated as well."""
    fun = Recorder(ellipsoid)
    result = run(fun, OUT, target=0.5)
    assert "target" in result.stop
    assert result.nfev == len(fun.points) and result.nfev % OUT == 0


def test_values_that_arrive_together_with_an_error_are_saved(tmp_path: Path) -> None:
    path, calls = tmp_path / "run.npz", []

    def fails(x: Array) -> float:
        calls.append(1)
        if len(calls) in (20, 22):  # the second one and the fourth one of a burst
            raise ZeroDivisionError(len(calls))
        return ellipsoid(x)

    with pytest.raises(ZeroDivisionError, match="20") as caught:
        run(fails, OUT, checkpoint=path)
    assert caught.value.result.nfev == Searcher.load(path).nfev == len(calls) - 2  # type: ignore[attr-defined]


def test_values_that_have_arrived_when_the_callback_raises_are_saved(tmp_path: Path) -> None:
    path, fun = tmp_path / "run.npz", Recorder(ellipsoid)

    def callback(search: Searcher) -> None:
        if search.nfev > 20:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run(fun, OUT, checkpoint=path, callback=callback)
    assert Searcher.load(path).nfev == len(fun.points)


def test_nothing_is_told_twice_by_threads_that_answer_together() -> None:
    gate, lock, points = threading.Barrier(4), threading.Lock(), list[bytes]()

    def together(x: Array) -> float:
        with lock:
            points.append(x.tobytes())
        gate.wait(30)
        return ellipsoid(x)

    with ThreadPoolExecutor(4) as pool:
        result = esgroup.minimize(together, X0, 0.5, rng=1, max_evals=80, executor=pool, asynchronous=True)
    assert result.nfev == 80 == len(points) == len(set(points))
