"""When nobody is left to evaluate points, the run ends with an error: no point has failed, whatever `on_error` says."""

import os
import signal
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import esgroup
from esgroup.checks import Array
from esgroup.driver.failures import Failures
from esgroup.driver.worker_pool import Unavailable
from esgroup.search.searcher import Searcher
from tests.driver.support import X0, ellipsoid

ways = pytest.mark.parametrize("asynchronous", [False, True], ids=["by generations", "asynchronous"])


def kills(x: Array) -> float:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0.0


@ways
def test_an_executor_that_is_shut_down_ends_the_run_and_not_the_budget(asynchronous: bool, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    options: dict[str, Any] = {"sigma0": 0.5, "rng": 5, "max_evals": 200, "asynchronous": asynchronous}
    with ThreadPoolExecutor(2) as pool, pytest.raises(RuntimeError, match="after shutdown") as caught:
        esgroup.minimize(
            ellipsoid,
            X0,
            **options,
            on_error="nan",
            executor=pool,
            checkpoint=path,
            callback=lambda search: pool.shutdown() if search.nfev > 50 else None,
        )
    result = caught.value.result  # type: ignore[attr-defined]
    assert 50 < result.nfev == Searcher.load(path).nfev < 80 and result.nfailed == 0
    with ThreadPoolExecutor(2) as pool:
        result = esgroup.minimize(ellipsoid, X0, **options, executor=pool, checkpoint=path, resume=True)
    assert result.nfev == 200 and result.nfailed == 0


@ways
def test_a_pool_that_is_broken_ends_the_run(asynchronous: bool) -> None:
    options: dict[str, Any] = {"rng": 5, "max_evals": 200, "asynchronous": asynchronous, "on_error": "nan"}
    with ProcessPoolExecutor(2) as pool, pytest.raises(RuntimeError, match=r"executor is broken.*workers=n") as caught:
        esgroup.minimize(kills, X0, 0.5, **options, executor=pool)
    assert caught.value.result.nfailed == 0  # type: ignore[attr-defined]


def test_an_exception_of_the_objective_is_a_failed_run_all_the_same() -> None:
    failures = Failures("nan")
    assert str(failures.value_of(RuntimeError("mine"))) == "nan" and failures.in_a_row == 1
    with pytest.raises(Unavailable, match="gone"):
        failures.value_of(Unavailable("gone"))
    assert failures.in_a_row == 1
