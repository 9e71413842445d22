"""Values as they are: which of them is the best, where some are equal, infinite or failed."""

import numpy as np
import pytest

from esgroup import Searcher
from esgroup.rankings import ByValue

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ("values", "than", "best"),
    [
        ([3.0, 1.0, 1.0, 2.0], None, 1),
        ([NAN, 2.0, NAN, 1.0, 1.0], None, 3),
        ([NAN, NAN], None, None),
        ([], None, None),
        ([INF, INF], None, 0),
        ([NAN, INF], None, 1),
        ([5.0, -INF], 1.0, 1),
        ([2.0, 1.0], 1.0, None),
        ([0.0], -0.0, None),
        ([INF], INF, None),
        ([1.0], INF, 0),
    ],
)
def test_the_best_is_the_first_of_the_least_and_better_than_what_was_there(
    values: list[float], than: float | None, best: int | None
) -> None:
    row = None if than is None else np.array([than])
    assert ByValue().best(np.array(values).reshape(-1, 1), row) == best


def test_of_equal_values_the_first_point_remains_the_best() -> None:
    search = Searcher([1.0, 2.0], rng=1)
    first, second = search.ask(), search.ask()
    search.tell(second, np.ones(len(second)))
    search.tell(first, np.ones(len(first)))
    assert np.array_equal(search.best_x, second[0]) and search.best_f == 1.0
    assert search.best_outcome is not None and not search.best_outcome.flags.writeable
