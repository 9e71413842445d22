"""Searches with a model of functions whose values are very large, very small, failed, or all the same."""

import copy
import math
import warnings
from collections.abc import Callable

import numpy as np
import pytest

from esgroup import Searcher
from esgroup.checks import Array
from esgroup.files.states import flattened
from esgroup.strategies.model_state import Numbers


def wild(x: Array) -> float:
    """Anything, depending on the digits of x."""
    outcomes = (1e308, -1e308, 0.0, math.inf, -math.inf, math.nan, float(x @ x))
    return outcomes[int(1e6 * abs(float(x.sum()))) % len(outcomes)]


FUNCTIONS: dict[str, Callable[[Array], float]] = {
    "huge": lambda x: 1e300 * float(x @ x),
    "tiny": lambda x: 1e-300 * float(x @ x),
    "of every size": lambda x: math.exp(min(700.0, 50.0 * float(x @ x))),
    "constant": lambda x: 7.0,
    "without a minimum": lambda x: -1e10 * float(x @ x),
    "steps": lambda x: float(np.sign(x).sum()),
    "wild": wild,
}


@pytest.mark.parametrize("structure", ["full", "diagonal", "heisenberg:k1=1,k2=1"])
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("batch", [None, 1, 9])
def test_a_search_goes_on_with_finite_numbers_and_without_warnings(
    function: str, structure: str, batch: int | None
) -> None:
    search = Searcher([1.0, -2.0, 0.5], 3.0, structure=structure, model="quadratic", rng=1, max_evals=250)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        while not search.stop():
            points = search.ask(batch) if batch else search.ask()
            search.tell(points, [FUNCTIONS[function](x) for x in points])
    assert np.isfinite(search.mean).all() and np.isfinite(search.stds).all()
    for name, array in flattened("state", search.state).items():
        if name not in ("state/numbers", "state/outcomes", "state/other_values"):
            assert np.isfinite(array).all(), name
    if function in ("huge", "tiny") and batch != 1:
        best = search.best_x
        assert best is not None and float(best @ best) < 0.5


def test_the_end_is_judged_by_parts_of_generations() -> None:
    """10 + 30 n / lambda generations of equal values are an end, with the size of a part in the place of lambda."""
    search = Searcher(np.ones(10), 1.0, model="quadratic", rng=1)
    sizes = []
    for _ in range(30):
        points = search.ask()
        search.tell(points, [float((x**4).sum()) for x in points])
        sizes.append(len(points))
    part = search.strategy.traits.least_batch
    assert part == 3 < search.popsize and part in sizes
    search.ledger.record.best.clear()
    first, generations = search.ledger.nit, search.nit
    while "tolfun" not in search.stop():
        points = search.ask()
        search.tell(points, [0.0] * len(points))
        assert search.ledger.nit < 500
    assert search.ledger.nit - first >= 10 + 30 * 10 / part
    assert search.nit - generations < search.ledger.nit - first
    assert "parts of generations" in search.stop()["tolfun"]


def test_earlier_evaluations_of_any_size_are_no_obstacle() -> None:
    points = np.random.default_rng(1).standard_normal((20, 3))
    values = np.where(np.arange(20) % 3 == 0, 1e300, (points**2).sum(axis=1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search = Searcher.from_data(points, values, model="quadratic", rng=1, max_evals=120)
        while not search.stop():
            X = search.ask()
            search.tell(X, [float(x @ x) for x in X])
    assert search.best_f is not None and search.best_f < 1e-8


def test_stored_numbers_that_are_none_are_refused() -> None:
    search = Searcher([1.0, 2.0], model="quadratic", rng=1)
    for place in range(len(search.state.numbers)):
        state = copy.deepcopy(search.state)
        is_record = place == Numbers._fields.index("record")
        state.numbers[place] = math.inf if is_record else math.nan
        if is_record:  # infinite as long as no point near the mean has a value
            search.strategy.checked(state)
            continue
        with pytest.raises(ValueError, match="numbers' must be finite"):
            search.strategy.checked(state)
