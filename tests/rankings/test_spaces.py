"""Constraints in searches over points of any kind: the default coordinates of `Strategy`, and minima that are known."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, NonlinearConstraint

import esgroup
from esgroup import Searcher
from esgroup.checks import Array
from esgroup.distributions.categorical import Categorical
from esgroup.distributions.families import Gamma, Normal
from esgroup.distributions.product import Product
from esgroup.strategies.base import INNER
from tests.search.test_strangers import First, OnePlusOne, Plain, Remembering


def squares(x: Array) -> float:
    return float((np.asarray(x) ** 2).sum())


def run(search: Searcher, f: Callable[[Any], float], g: Callable[[Any], float], most: int = 5000) -> Searcher:
    while not search.stop() and search.nfev < most:
        X = search.ask()
        search.tell([f(x) for x in X], constraints=[[g(x)] for x in X])
    return search


# ---- coordinates --------------------------------------------------------------------------------------------------

STARTS: dict[str, Any] = {
    "stranger": Plain(),
    "matrix": esgroup.MatrixGaussian(mean=np.arange(6.0).reshape(2, 3), sigma0=0.7),
    "spd": esgroup.Wishart(mean=np.array([[2.0, 0.5], [0.5, 1.0]])),
    "families": Product([Normal(mean=2.0, std=3.0), Gamma(shape=2.0, rate=1.0)]),
}


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_a_step_has_the_coordinates_that_it_was_taken_in(start: Any) -> None:
    search = Searcher(start, rng=1)
    strategy, state = search.strategy, search.state
    z, others = strategy.coordinates(state).of(search.ask())
    assert others.shape == (search.popsize, 0)
    for one in 0.1 * z:
        point = strategy.coordinates(state).at(one)
        assert point is not None and point.shape == strategy.shape
        assert strategy.coordinates(state).of(point[None])[0][0] == pytest.approx(one, abs=1e-12)
    middle = strategy.coordinates(state).at(np.zeros(z.shape[1]))
    assert np.allclose(middle, search.mean)


def test_samples_of_a_normal_have_standard_coordinates() -> None:
    search = Searcher(esgroup.MatrixGaussian(mean=np.ones((2, 3)), sigma0=0.7), rng=2)
    z, _ = search.strategy.coordinates(search.state).of(search.ask(4000))
    assert np.abs(z.mean(axis=0)).max() < 5 / np.sqrt(4000) and np.abs(z.var(axis=0) - 1).max() < 5 * np.sqrt(2 / 4000)


def test_there_is_no_point_where_the_strategy_has_none() -> None:
    search = Searcher(STARTS["spd"], rng=1)
    assert search.strategy.coordinates(search.state).at(np.array([0.0, 9.0, 9.0, 0.0])) is None


class Half(Plain):
    """The second coordinate does not vary."""

    def stds(self, state: Any) -> Array:
        return np.array([float(state.sigma), 0.0])


def test_what_does_not_vary_has_no_coordinate() -> None:
    strategy = Half()
    state = strategy.start()
    z, _ = strategy.coordinates(state).of(np.array([[5.0, 3.0], [2.0, 3.0]]))
    assert z.tolist() == [[2.0], [-1.0]]
    point = strategy.coordinates(state).at(z[0])
    assert point is not None and point.tolist() == [5.0, 3.0]


def test_categories_are_indicators_beside_the_likeliest() -> None:
    search = Searcher(Categorical([[0.2, 0.5, 0.3], [0.1, 0.9]]), rng=1)
    z, others = search.strategy.coordinates(search.state).of(np.array([[1.0, 1.0], [0.0, 0.0], [2.0, 1.0]]))
    assert z.shape == (3, 0) and others.tolist() == [[0, 0, 0], [1, 0, 1], [0, 1, 0]]


# ---- minima -------------------------------------------------------------------------------------------------------


def test_a_one_plus_one_search_stays_inside_and_goes_to_the_minimum() -> None:
    """It sees no scores: only the least value of feasible points."""
    search = run(Searcher(OnePlusOne(), constraints=1, rng=1), squares, lambda x: 1.0 - x.sum())
    assert search.feasible and search.best_f == pytest.approx(0.5, rel=0.02)


def test_a_strategy_of_somebody_else_is_ranked_by_scores() -> None:
    search = run(Searcher(Plain(popsize=12), constraints=1, rng=1), squares, lambda x: 1.0 - x.sum(), 2000)
    assert search.feasible and search.best_f == pytest.approx(0.5, abs=1e-4)
    assert search.multipliers == pytest.approx([1.0], abs=1e-3)


def test_families_of_scalars() -> None:
    search = run(Searcher(Normal(mean=3.0, std=1.0), constraints=1, rng=1), squares, lambda x: 1.0 - x.sum())
    assert search.feasible and search.best_f == pytest.approx(1.0, abs=1e-4)
    assert search.multipliers == pytest.approx([2.0], abs=1e-3)


def test_positive_definite_matrices_with_a_determinant() -> None:
    """tr(X^2) is least at I where det X >= 1, with the multiplier 2; x0 is not feasible."""
    result = esgroup.minimize(
        squares,
        np.diag([0.5, 0.5, 2.0]),
        0.3,
        space="spd",
        constraints={"type": "ineq", "fun": lambda X: np.linalg.det(X) - 1},
        max_evals=6000,
        rng=1,
    )
    assert result.feasible and result.fun == pytest.approx(3.0, abs=1e-4)
    assert result.x == pytest.approx(np.eye(3), abs=1e-2) and result.multipliers[0] == pytest.approx([2.0], abs=0.01)


def test_matrices_with_two_constraints_of_which_one_is_active() -> None:
    result = esgroup.minimize(
        squares,
        np.zeros((2, 3)),
        0.5,
        space="matrix",
        constraints=[{"type": "ineq", "fun": lambda X: [X[0].sum() - 3, 10 - X[1, 1]]}],
        rng=1,
    )
    assert result.feasible and result.fun == pytest.approx(3.0, abs=1e-4)
    assert result.multipliers[0] == pytest.approx([2.0, 0.0], abs=1e-2)


def test_no_matrix_violates_what_is_kept_feasible() -> None:
    seen: list[float] = []

    def fun(X: Array) -> float:
        seen.append(float(np.trace(X)))
        return squares(X)

    kept = NonlinearConstraint(np.trace, 5.0, 6.0, keep_feasible=True)
    result = esgroup.minimize(fun, np.diag([2.5, 3.0]), 0.5, space="spd", constraints=kept, max_evals=600, rng=1)
    assert min(seen) >= 5.0 and max(seen) <= 6.0 and result.fun == pytest.approx(12.5, rel=0.02)


def test_choices() -> None:
    search = run(Searcher(Categorical([[1 / 3] * 3] * 4), constraints=1, rng=1), sum, lambda x: 3.0 - sum(x))
    assert search.feasible and search.best_f == 3.0


def test_a_strategy_that_remembers_values_hears_infinity_of_points_that_are_not_feasible() -> None:
    search = Searcher(Remembering(), constraints=1, rng=1)
    X = search.ask(3)
    search.tell(X, [1.0, 2.0, np.nan], constraints=[[5.0], [-1.0], [0.0]])
    assert search.state.values.tolist()[:2] == [np.inf, 2.0] and np.isnan(search.state.values[2])


def test_basins_and_models_of_values_are_refused() -> None:
    condition: Any = {"type": "ineq", "fun": lambda x: x[0] - 0.5}
    with pytest.raises(ValueError, match=r"constraints .*basins.* multipliers of its own"):
        esgroup.minimize(squares, [1.0, 1.0], basins=2, constraints=condition)
    with pytest.raises(ValueError, match=r"constraints .*model='quadratic'"):
        esgroup.minimize(squares, [1.0, 1.0], model="quadratic", constraints=condition)
    with pytest.raises(ValueError, match=r"constraints .* with a model"):
        Searcher(Searcher([1.0, 1.0], model="quadratic").strategy, constraints=1)


def test_a_linear_constraint_is_for_vectors() -> None:
    with pytest.raises(ValueError, match=r"constraints must be a function of a point.* LinearConstraint"):
        esgroup.minimize(squares, np.eye(2), space="spd", constraints=LinearConstraint([[1.0, 0.0]], 0.0, 1.0))


def test_a_strategy_hands_over_with_constraints_as_well() -> None:
    search = run(Searcher(First(popsize=12), constraints=1, rng=1), squares, lambda x: 1.0 - x.sum(), 1500)
    assert type(search.strategy) is Plain and search.best_f == pytest.approx(0.5, abs=1e-2)


def test_a_point_tried_beside_samples_has_coordinates_of_its_own_where_its_tag_is_not_known() -> None:
    search = Searcher(Plain(popsize=8), constraints=1, rng=1)
    tried = 0
    while not tried:
        X = search.ask()
        drawn = search.ledger.asked[-1].drawn
        assert np.allclose(drawn.local, search.strategy.local(search.state, X), rtol=0, atol=1e-12)
        tried = 0 if drawn.tags is None else int((drawn.tags == INNER).sum())
        search.tell([squares(x) for x in X], constraints=[[7.0 - x.sum()] for x in X])
    assert tried == 1 and not search.strategy.traits.knows_inner and Searcher([3.0, 3.0]).strategy.traits.knows_inner
