"""Restarts of `minimize`: what the runs share, how they differ, and how the result combines them."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import esgroup
from esgroup.checks import Array
from esgroup.restarts import BIPOP, IPOP
from esgroup.search import runs
from esgroup.search.searcher import Searcher
from esgroup.stopping import Rule
from esgroup.strategies import register
from tests.driver.support import X0, Recorder, by_hand, ellipsoid, rastrigin, same
from tests.search.support import first_spread
from tests.search.test_strangers import Plain


class SeenRun(NamedTuple):
    """What a callback saw of a run at last."""

    popsize: int
    nfev: int
    nit: int
    mean: Array
    stds: Array
    strategy: Any
    first_spread: Array


class TestRestarts:
    def runs(self, restarts: Any, **options: Any) -> tuple[Any, list[SeenRun], Recorder]:
        """The result, the runs that the callback saw, and the objective."""
        fun, seen = Recorder(rastrigin), []

        def callback(search: Searcher) -> None:
            began = search.ledger.began
            counts = search.popsize, search.nfev - began.nfev, search.nit - began.generations
            run = SeenRun(*counts, search.mean, search.stds, search.strategy, first_spread(search).copy())
            seen[search.restart :] = [run]

        result = esgroup.minimize(
            fun, **{"x0": X0, "sigma0": 0.5, "rng": 4, "restarts": restarts, "callback": callback, **options}
        )
        return result, seen, fun

    def test_the_result_is_that_of_all_runs(self) -> None:
        result, runs, fun = self.runs(IPOP(3))
        assert result.restarts == 3 == len(runs) - 1
        assert [run.popsize for run in runs] == [runs[0].popsize * 2**i for i in range(4)]
        assert result.nfev == sum(run.nfev for run in runs) == len(fun.points)
        assert result.nit == sum(run.nit for run in runs)
        values = [rastrigin(x) for x in fun.points]
        assert result.fun == min(values)
        assert np.array_equal(result.x, fun.points[int(np.argmin(values))])
        assert np.array_equal(result.xmean, runs[-1].mean)
        assert np.array_equal(result.stds, runs[-1].stds)
        assert "Restarts: 3; xmean and stds are from the last run" in result.message
        assert "restarts" in result.stop

    @pytest.mark.parametrize("kind", [IPOP(30), BIPOP(30)])
    @pytest.mark.parametrize("target", [None, -1.0])
    def test_without_a_budget_they_end_all_the_same(
        self, kind: Any, target: float | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(runs, "WITHOUT_BUDGET", 1000)
        result, seen, fun = self.runs(kind, target=target)
        made = 1000 * len(X0)
        assert sum(run.nfev for run in seen[:-1]) < made <= result.nfev == len(fun.points)
        assert "max_evals" in result.stop["restarts"] and result.success  # of the last run
        for budget in ({"max_evals": 9000}, {"max_iters": 500}, {"max_time": 1e-3}):
            assert "restarts" not in self.runs(kind, **budget)[0].stop

    def test_the_best_of_an_earlier_run_is_kept(self) -> None:
        """The first run finds the minimum, later ones see a worse function."""
        calls = []

        def worse_later(x: Array) -> float:
            calls.append(1)
            return ellipsoid(x) + (0.0 if len(calls) <= first.nfev else 5.0)

        first = esgroup.minimize(ellipsoid, X0, 0.5, rng=4)
        result = esgroup.minimize(worse_later, X0, 0.5, rng=4, restarts=IPOP(2))
        assert result.restarts == 2
        assert result.fun == first.fun
        assert np.array_equal(result.x, first.x)
        assert result.nfev > first.nfev

    def test_the_first_run_is_the_one_without_restarts(self) -> None:
        fun = Recorder(rastrigin)
        esgroup.minimize(fun, X0, 0.5, rng=4)
        _, _, more = self.runs("bipop", max_evals=4000)
        assert same(fun.points, more.points[: len(fun.points)])

    def test_failed_evaluations_of_all_runs_are_counted(self) -> None:
        failed = []

        def fails(x: Array) -> float:
            if x[0] > 1:
                failed.append(1)
                return math.nan
            return rastrigin(x)

        result = esgroup.minimize(fails, X0, 0.5, rng=4, restarts=IPOP(2))
        assert result.restarts == 2
        assert result.nfailed == len(failed) > 0

    def test_they_start_uniformly_in_the_box(self) -> None:
        result, runs, fun = self.runs("ipop", bounds=(-4.0, 5.0), max_evals=6000)
        begins = np.cumsum([0, *(run.nfev for run in runs)])[:-1]
        assert result.restarts >= 2
        points = np.array(fun.points)
        assert ((points >= -4) & (points <= 5)).all()
        means = [points[b : b + run.popsize].mean(0) for b, run in zip(begins, runs, strict=True)]
        assert max(np.abs(mean - X0).max() for mean in means[1:]) > 1.5  # further than sigma0 reaches

    @pytest.mark.parametrize(
        "options",
        [{}, {"sigma0": [0.5, 1.0, 2.0]}, {"cov0": np.diag([1.0, 2.0, 3.0])}, {"sigma0": 2, "cov0": np.eye(3)}],
    )
    def test_step_sizes_are_those_of_the_first_run(self, options: dict[str, Any]) -> None:
        """The default sigma0 depends on the first x0, not on that of each restart."""
        _, runs, _ = self.runs(IPOP(3), **{"sigma0": None, **options})
        assert len(runs) == 4
        for run in runs:
            assert np.allclose(run.first_spread, runs[0].first_spread, rtol=1e-12)

    def test_fixed_and_integer_coordinates_stay_so(self) -> None:
        bounds = [(-4, 4), (None, None), (-3, 6)]
        _, runs, fun = self.runs(IPOP(3), fixed={0: 0.25}, integer=[2], bounds=bounds)
        assert len(runs) == 4
        points = np.array(fun.points)
        assert (points[:, 0] == 0.25).all()
        assert (points[:, 2] == np.rint(points[:, 2])).all()
        assert len({run.strategy.domain.x0[2] for run in runs}) > 1

    def test_small_runs_have_their_share_and_a_smaller_step(self) -> None:
        _, runs, _ = self.runs(BIPOP(5), max_evals=40_000)
        first, large, small = runs[0], [runs[1]], []
        spent = {"large": runs[1].nfev, "small": 0}
        for run in runs[2:]:
            if spent["small"] < spent["large"]:
                small.append(run)
                limit = large[-1].nfev // 2
                assert run.nfev < limit + run.popsize
                assert first.popsize <= run.popsize <= max(first.popsize, large[-1].popsize // 2)
                factors = run.first_spread / first.first_spread
                assert np.allclose(factors, factors[0])
                assert 0.01 <= factors[0] < 1
                spent["small"] += run.nfev
            else:
                assert run.popsize == 2 * large[-1].popsize
                large.append(run)
                spent["large"] += run.nfev
        assert len(large) >= 2
        assert len(small) >= 3

    def test_the_same_seed_gives_the_same_runs(self) -> None:
        a, b, c = (self.runs("bipop", max_evals=8000, rng=seed)[2].points for seed in (5, 5, 6))
        assert same(a, b)
        assert not same(a[: len(c)], c)

    def test_a_search_or_a_distribution_may_be_the_start_and_others_begin_at_its_samples(self) -> None:
        for start in (Searcher(X0, 0.5), esgroup.Gaussian(mean=X0, covariance=0.25 * np.eye(len(X0)))):
            result = esgroup.minimize(lambda x: 1.0, start, restarts="ipop", rng=1, max_evals=3000)
            assert result.restarts >= 1

    def test_they_need_a_search_that_can_begin_elsewhere(self) -> None:
        start = esgroup.Mixture.spread(2, mean=[0.0, 0.0], sigma0=1.0)
        with pytest.raises(ValueError, match=r"restarts need a search that can start elsewhere.* Mixture"):
            esgroup.minimize(lambda x: 1.0, start, restarts="ipop")

    def test_a_search_may_be_the_start_of_a_single_run(self) -> None:
        search = by_hand(ellipsoid, rng=1, max_iters=10)
        result = esgroup.minimize(ellipsoid, search, rng=2, max_iters=1)
        assert result.fun < ellipsoid(X0) / 10


@dataclass(frozen=True)
class Early(Rule):
    """Ends every run after five generations."""

    name = "early"
    of_run = True

    def look(self, view: Any) -> str | None:
        return "five generations" if view.nit >= 5 * (view.restart + 1) else None


@pytest.mark.parametrize("restarts", ["ipop", "bipop"])
@pytest.mark.parametrize("options", [{}, {"bounds": (-5, 5)}], ids=str)
def test_a_stranger_is_resumed_after_restarts(restarts: Any, options: dict[str, Any], tmp_path: Path) -> None:
    """Without bounds its later runs are moved by a map, and are other strategies than the first one."""
    given: Any = {"rng": 1, "restarts": restarts, "stop": Early(), **options}
    path = tmp_path / "run.npz"
    register(Plain)
    begun = esgroup.minimize(ellipsoid, Plain(dim=3), max_evals=70, checkpoint=path, **given)
    resumed = esgroup.minimize(ellipsoid, Plain(dim=3), max_evals=150, checkpoint=path, resume=True, **given)
    whole = esgroup.minimize(ellipsoid, Plain(dim=3), max_evals=150, **given)
    assert 0 < begun.restarts < resumed.restarts == whole.restarts
    assert np.array_equal(resumed.x, whole.x) and np.array_equal(resumed.xmean, whole.xmean)
