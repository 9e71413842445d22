"""The schedules of restarts follow their publications."""

import json
import math
import re
from typing import Any

import numpy as np
import pytest

from esgroup.restarts import BIPOP, IPOP, Plan, Schedule, as_restarts


class Fixed:
    """A generator that returns given numbers."""

    def __init__(self, *numbers: float) -> None:
        self.numbers = list(numbers)

    def random(self, n: int) -> np.ndarray[Any, Any]:
        taken, self.numbers = self.numbers[:n], self.numbers[n:]
        return np.array(taken)


def plan_after(strategy: Any, schedule: Schedule, evals: int, rng: Any = None) -> tuple[Schedule, Plan]:
    planned = strategy.next(schedule, evals, rng)
    assert planned is not None
    return planned  # type: ignore[no-any-return]


class TestIPOP:
    def test_the_population_doubles_as_often_as_allowed(self) -> None:
        schedule, sizes = Schedule(10), []
        while (planned := IPOP(doublings=4).next(schedule, 1000, np.random.default_rng(0))) is not None:
            schedule, plan = planned
            sizes.append(plan.popsize)
            assert (plan.sigma_factor, plan.max_evals) == (1.0, None)
        assert sizes == [20, 40, 80, 160]

    def test_no_random_number_is_used(self) -> None:
        assert plan_after(IPOP(), Schedule(7), 1)[1] == Plan(14)


class TestBIPOP:
    def test_the_regime_behind_is_next(self) -> None:
        """Evaluations of runs: first 500 (counts for neither), large 2000, small 700 + 900 + 500, then large."""
        bipop, rng = BIPOP(), np.random.default_rng(3)
        schedule, plan = plan_after(bipop, Schedule(10), 500, rng)
        assert (schedule.small, plan) == (False, Plan(20))
        schedule, plan = plan_after(bipop, schedule, 2000, rng)
        assert (schedule.small, schedule.large_evals, schedule.small_evals, plan.max_evals) == (True, 2000, 0, 1000)
        schedule, plan = plan_after(bipop, schedule, 700, rng)
        assert (schedule.small, schedule.large_evals, schedule.small_evals, plan.max_evals) == (True, 2000, 700, 1000)
        schedule, plan = plan_after(bipop, schedule, 900, rng)
        assert (schedule.small, schedule.small_evals) == (True, 1600)
        schedule, plan = plan_after(bipop, schedule, 500, rng)
        assert (schedule.small, schedule.small_evals, plan) == (False, 2100, Plan(40))
        schedule, plan = plan_after(bipop, schedule, 5001, rng)
        assert (schedule.small, schedule.large_evals, plan.max_evals) == (True, 7001, 2500)

    def test_a_small_run_follows_the_published_formula(self) -> None:
        """popsize floor(l0 (lL / (2 l0))^(u^2)) and sigma 10^(-2 v), with l0 = 10 and lL = 160."""
        schedule = Schedule(10, doublings=4, small=False, large_evals=0)
        for u, v in ((0.3, 0.7), (0.9, 0.25), (0.0, 0.0), (1.0, 1.0)):
            _, plan = plan_after(BIPOP(), schedule, 4000, Fixed(u, v))
            assert plan.popsize == math.floor(10 * (160 / 20) ** (u**2))
            assert plan.sigma_factor == pytest.approx(10 ** (-2 * v), rel=1e-15)
            assert plan.max_evals == 2000

    def test_small_populations_are_between_the_first_and_half_the_large(self) -> None:
        rng, sizes = np.random.default_rng(5), set()
        for _ in range(2000):
            _, plan = plan_after(BIPOP(), Schedule(10, doublings=4), 4000, rng)
            sizes.add(plan.popsize)
            assert 0.01 <= plan.sigma_factor <= 1
        assert min(sizes) == 10
        assert 75 <= max(sizes) <= 80

    def test_it_ends_when_another_doubling_would_be_due(self) -> None:
        schedule = Schedule(10, doublings=2, small=True, large_evals=100, small_evals=90)
        assert BIPOP(doublings=2).next(schedule, 10, np.random.default_rng(0)) is None
        assert BIPOP(doublings=2).next(schedule, 9, np.random.default_rng(0)) is not None
        assert BIPOP(doublings=3).next(schedule, 10, np.random.default_rng(0)) is not None

    def test_a_tiny_large_run_still_allows_a_small_one(self) -> None:
        _, plan = plan_after(BIPOP(), Schedule(1, doublings=1), 1, Fixed(0.5, 0.5))
        assert plan.max_evals == 1


class TestState:
    def test_what_a_schedule_remembers_is_json(self) -> None:
        schedule, plan = plan_after(BIPOP(), Schedule(10, doublings=3), 999, np.random.default_rng(1))
        again = json.loads(json.dumps({"schedule": schedule._asdict(), "plan": plan._asdict()}))
        assert (Schedule(**again["schedule"]), Plan(**again["plan"])) == (schedule, plan)

    def test_strategies_are_named_or_given(self) -> None:
        assert as_restarts(None) is None
        assert as_restarts("ipop") == IPOP(9)
        assert as_restarts("bipop") == BIPOP(9)
        assert as_restarts(BIPOP(3)) == BIPOP(3)

    @pytest.mark.parametrize(
        ("error", "wrong"), [(ValueError, "IPOPP"), (ValueError, ""), (TypeError, 3), (TypeError, IPOP)]
    )
    def test_others_are_refused(self, error: type[Exception], wrong: Any) -> None:
        with pytest.raises(error, match=rf"restarts .*'ipop', 'bipop', .* {re.escape(repr(wrong))}"):
            as_restarts(wrong)

    @pytest.mark.parametrize("strategy", [IPOP, BIPOP])
    def test_doublings_are_checked(self, strategy: Any) -> None:
        with pytest.raises(ValueError, match=r"doublings .*0.*30.* -1"):
            strategy(doublings=-1)
        with pytest.raises(TypeError, match="doublings"):
            strategy(doublings=1.5)
