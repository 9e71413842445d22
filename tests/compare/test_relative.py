"""Where the minimum is not known, the best value of all is the measure."""

import math

from esgroup.compare.records import Improvement
from esgroup.compare.report.summary import RELATIVE_TARGETS, measured
from tests.compare.samples import failure, run


def unknown(values: list[float], **more: object):
    points = tuple(Improvement(10**i, 0, value) for i, value in enumerate(values))
    return run(targets=(), hits=(), minimum=math.nan, trajectory=points, **{"problem": "own:f", **more})


def test_gaps_are_shares_of_the_way_to_the_best_value() -> None:
    ours, theirs = measured([unknown([104.0, 14.0, 4.0]), unknown([104.0, 54.0, 5.0], method="esgroup")])
    assert [p.gap for p in ours.trajectory] == [1.0, 0.1, 0.0] and [p.gap for p in theirs.trajectory] == [
        1.0,
        0.5,
        0.01,
    ]
    assert ours.minimum == theirs.minimum == 4.0 and ours.relative and ours.targets == RELATIVE_TARGETS
    assert ours.hits == (10, 100, 100, 100, 100, 100)
    assert theirs.hits == (100, 100, math.inf, math.inf, math.inf, math.inf)


def test_a_function_of_ones_own_is_the_same_for_all_seeds_and_a_problem_may_not_be() -> None:
    runs = [unknown([10.0, 0.0]), unknown([10.0, 5.0], seed=1)]
    assert [one.solved for one in measured(runs)] == [True, False]
    assert [one.solved for one in measured([one._replace(problem="named") for one in runs])] == [True, True]


def test_runs_with_targets_and_failures_stay_as_they_are() -> None:
    runs = [run(), failure("no", targets=(), hits=())]
    assert measured(runs)[0] == runs[0] and measured(runs)[1].targets == ()


def test_a_constant_function_is_solved_at_once() -> None:
    (one,) = measured([unknown([3.0])])
    assert one.hits == (1,) * len(RELATIVE_TARGETS)
