"""Search over matrices: against the vector search, the published formulas, and on functions of matrices."""

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import Bounds

from esgroup import Searcher, minimize
from esgroup.distributions.matrix_gaussian import MatrixGaussian
from esgroup.groups import Diagonal, Full, Group, Heisenberg, Kronecker, Triangular
from esgroup.strategies.base import Ranked, Strategy
from esgroup.strategies.evolution import Evolution, SearchState
from esgroup.strategies.in_domain import Within, elsewhere, innermost
from esgroup.strategies.vector import VectorSearch
from esgroup_problems.matrices import kronecker_ellipsoid
from tests.groups.elements import frozen
from tests.groups.laws import close
from tests.strategies import dense
from tests.strategies.states import copied, some_state

Array = np.ndarray


def searching(distribution: MatrixGaussian, popsize: int | None = None, algorithm: str = "default") -> Strategy:
    return Searcher(distribution, popsize=popsize, algorithm=algorithm).strategy


def evolution_of(strategy: Strategy) -> Evolution:
    vectors = innermost(strategy)
    assert isinstance(vectors, VectorSearch)
    return vectors.evolution


def two_sided(x: Array) -> Array:
    """A bowl around the matrix of ones, longer in some rows and columns than in others."""
    m, k = x.shape[1:]
    return np.sum((np.linspace(1, 5, m)[:, None] * (x - 1) * np.linspace(3, 1, k)) ** 2, axis=(1, 2))


def search(strategy: Strategy, f: Callable, seed: int, max_evals: int, target: float) -> tuple[int, float]:
    state, rng, evals, best = strategy.start(), np.random.default_rng(seed), 0, np.inf
    while evals < max_evals and best > target:
        drawn = strategy.sample(state, strategy.popsize, rng)
        values = f(drawn.points)
        evals, best = evals + len(values), min(best, float(values.min()))
        state = strategy.update(state, Ranked(drawn.local, np.argsort(values, kind="stable")))
    return evals, best


def assert_same_search(strategy: Strategy, vector: Searcher, generations: int = 120) -> None:
    """Compare every generation, past the first refresh of derived arrays, which comes after 100."""
    state, rng, shape = strategy.start(), np.random.default_rng(7), strategy.shape
    assert strategy.popsize == vector.popsize
    for _ in range(generations):
        drawn, asked = strategy.sample(state, strategy.popsize, rng), vector.ask()
        close(drawn.points.reshape(asked.shape), asked, 1e-9)
        values = two_sided(asked.reshape(-1, *shape))
        vector.tell(values)
        state = strategy.update(state, Ranked(drawn.local, np.argsort(values, kind="stable")))
    close(strategy.mean(state).ravel(), vector.mean, 1e-9)
    close(strategy.stds(state).ravel(), vector.stds, 1e-9)
    close(strategy.view(state).fields()["sigma"], vector.sigma, 1e-9)


# ---- degenerate cases -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["default", "paper"])
@pytest.mark.parametrize(("rows", "cols"), [(Full(3), Full(4)), (Heisenberg(5, 1, 2), Triangular(2, False))], ids=str)
def test_it_is_the_vector_search_with_a_kronecker_product(rows: Group, cols: Group, algorithm: str) -> None:
    mean = np.arange(float(rows.dim * cols.dim)).reshape(rows.dim, cols.dim)
    strategy = searching(MatrixGaussian(mean, 0.7, rows, cols), algorithm=algorithm)
    vector = Searcher(mean.ravel(), 0.7, structure=Kronecker(rows, cols), algorithm=algorithm, rng=7)
    assert_same_search(strategy, vector)


@pytest.mark.parametrize("algorithm", ["default", "paper"])
@pytest.mark.parametrize("group", [Full(5), Triangular(5), Diagonal(5), Heisenberg(5, 1, 2)], ids=str)
@pytest.mark.parametrize("upright", [True, False])
def test_one_column_or_row_is_the_vector_search_of_the_same_group(group: Group, algorithm: str, upright: bool) -> None:
    mean = np.arange(5.0)
    sides = {"rows": group} if upright else {"cols": group}
    family = MatrixGaussian(mean[:, None] if upright else mean[None], 0.7, **sides)
    vector = Searcher(mean, 0.7, structure=group, algorithm=algorithm, rng=7)
    assert_same_search(searching(family, algorithm=algorithm), vector)


def test_a_number_is_searched_as_a_vector_of_one() -> None:
    assert_same_search(searching(MatrixGaussian([[3.0]], 0.5)), Searcher([3.0], 0.5, rng=7), 20)


@pytest.mark.parametrize("algorithm", ["default", "paper"])
def test_the_transposed_problem_has_the_transposed_search(algorithm: str) -> None:
    rng = np.random.default_rng(0)
    one = searching(MatrixGaussian(np.zeros((3, 4)), 1.0, "triangular", "full"), algorithm=algorithm)
    two = searching(MatrixGaussian(np.zeros((4, 3)), 1.0, "full", "triangular"), algorithm=algorithm)
    a, b = one.start(), two.start()
    for _ in range(5):
        z, order = rng.standard_normal((9, 3, 4)), rng.permutation(9)
        a = one.update(a, Ranked(z.reshape(9, 12), order))
        b = two.update(b, Ranked(z.transpose(0, 2, 1).reshape(9, 12), order))
    close(two.mean(b), one.mean(a).T)
    close(two.stds(b), one.stds(a).T)


@pytest.mark.parametrize(("rows", "cols"), [(Triangular(3), Heisenberg(4, 1, 1)), (Full(5), Full(1))], ids=str)
def test_the_precision_form_is_searched_in_the_transposed_groups(rows: Group, cols: Group) -> None:
    mean = np.ones((rows.dim, cols.dim))
    precise = searching(MatrixGaussian(mean, 0.3, rows, cols, "precision"))
    plain = searching(MatrixGaussian(mean, 0.3, rows.transposed, cols.transposed))
    close(precise.stds(precise.start()), 0.3)
    a, b, order = precise.start(), plain.start(), np.random.default_rng(2).permutation(8)
    z = np.random.default_rng(1).standard_normal((8, mean.size))
    for _ in range(3):
        a, b = precise.update(a, Ranked(z, order)), plain.update(b, Ranked(z, order))
    for one, two in zip(a, b, strict=True):
        close(one, two)


# ---- one generation ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("form", ["covariance", "precision"])
def test_the_published_update_is_a_natural_gradient_step_with_utilities(form: str, exact: bool) -> None:
    """E + R sum u Z C^T; roots times h(eta N) of the distribution itself, in covariance form."""
    rng, (m, k) = np.random.default_rng(3), (3, 4)
    family = MatrixGaussian(np.ones((m, k)), 0.5, form=form, exact=exact)
    strategy = searching(family, 7, "paper")
    if form == "precision":
        family, _ = family.converted(family.state())
    state, first = strategy.start(), family.state()
    z, order = 0.8 * rng.standard_normal((7, m, k)), rng.permutation(7)
    u = np.maximum(0, np.log(4.5) - np.log(np.arange(1, 8)))
    u, dof = u / u.sum() - 1 / 7, m * (m + 1) // 2 + k * (k + 1) // 2 - 1
    eta = (3 + np.log(m * k)) / (5 * np.sqrt(m * k)) * min(1, 3 * (m * k + 1) / (2 * dof))
    expected = family.move(first, family.natural_score(z[order], u).scaled(1.0, eta))
    moved = strategy.update(state, Ranked(z.reshape(7, -1), order))
    close(strategy.mean(moved), expected.mean)
    row, column = family.covariances(expected)
    close(strategy.stds(moved), np.sqrt(np.outer(np.diagonal(row), np.diagonal(column))))
    close(family.group.dense(moved.root) * moved.sigma[0], family.group.dense(expected.root))


def test_a_generation_of_matrices_is_the_formula_on_dense_matrices() -> None:
    rng, popsize = np.random.default_rng(4), 9
    strategy = searching(MatrixGaussian(np.zeros((2, 3)), rows=Full(2), cols=Triangular(3)), popsize)
    state, group = some_state(evolution_of(strategy), rng), Kronecker(Full(2), Triangular(3))
    numbers = dense.numbers(6, popsize, 3 + 6 - 1, 0.5 - 1 / 6, 0.7)
    sigma, root = float(state.sigma[0]), group.dense(state.root)
    twin = dense.Dense(group, numbers, state.mean.copy(), sigma, state.scale.copy(), root)
    for scale in (1.0, 0.5, 3.0):
        z, order = scale * rng.standard_normal((popsize, 6)), rng.permutation(popsize)
        close(strategy.local(state, twin.points(z).reshape(-1, 2, 3)), z, 1e-8)
        state = strategy.update(state, Ranked(z, order))
        twin.move(z, order)
        close(strategy.mean(state).ravel(), twin.mean, 1e-8)
        spread = twin.sigma * twin.d[:, None] * twin.a
        close(strategy.stds(state).ravel(), np.sqrt(np.sum(spread**2, axis=1)), 1e-8)
        close(state.path_s, twin.p_s)
        close(state.path_c, twin.p_c)


def test_the_approximate_gradient_steps_twice_as_far_in_the_scale() -> None:
    """This holds to first order for the part that comes from samples; the published update has no other."""
    rng = np.random.default_rng(5)
    family = MatrixGaussian(np.zeros((3, 4)))
    z, order = 1.0 + 1e-3 * rng.standard_normal((40, 12)), np.arange(40)
    z *= np.linspace(0.99, 1.01, 40)[:, None]  # the best are shorter: the scale falls
    steps = []
    for exact in (True, False):
        strategy = searching(replace(family, exact=exact), algorithm="paper")
        moved = strategy.update(strategy.start(), Ranked(z, order))
        steps.append(evolution_of(strategy).group.log_abs_det(moved.root))
    assert steps[0] < 0
    assert steps[1] / steps[0] == pytest.approx(2, rel=0.02)


# ---- the protocol -----------------------------------------------------------------------------------------------


def frozen_state(state: SearchState) -> SearchState:
    return SearchState(*(frozen(array) for array in copied(state)))


@pytest.mark.parametrize("form", ["covariance", "precision"])
@pytest.mark.parametrize("shape", [(3, 4), (5, 1)])
def test_the_methods_are_pure(form: str, shape: tuple[int, int]) -> None:
    family = MatrixGaussian(np.zeros(shape), form=form)
    strategy = searching(family)
    state = frozen_state(strategy.start())
    for _ in range(2):
        drawn = strategy.sample(state, 8, np.random.default_rng(0))
        frozen(drawn.local)
        order = np.argsort(two_sided(drawn.points))
        order.flags.writeable = False
        ranked = Ranked(drawn.local, order)
        once, twice = strategy.update(state, ranked), strategy.update(state, ranked)
        other = searching(family).update(state, ranked)
        for name, a, b, c in zip(SearchState._fields, once, twice, other, strict=True):
            assert a.dtype == np.float64
            assert np.array_equal(a, b) and np.array_equal(a, c), name
        mean = strategy.mean(state)
        mean += 1.0
        state = frozen_state(once)
    assert reasons(strategy, state) == {}


@pytest.mark.parametrize("form", ["covariance", "precision"])
def test_local_coordinates_undo_sampling(form: str) -> None:
    rng = np.random.default_rng(6)
    strategy = searching(MatrixGaussian(np.zeros((3, 4)), rows=Heisenberg(3, 1, 1), form=form))
    state = strategy.start()
    for n in (8, 5, 30):  # any number of points
        drawn = strategy.sample(state, n, rng)
        assert drawn.points.shape == (n, 3, 4)
        close(strategy.local(state, drawn.points), drawn.local, 1e-9)
        state = strategy.update(state, Ranked(drawn.local, rng.permutation(n)))
    points = np.asfortranarray(rng.standard_normal((5, 3, 4)))
    r = evolution_of(strategy).group.dense(state.root) * state.sigma[0]
    close(strategy.mean(state).ravel() + strategy.local(state, points) @ r.T, points.reshape(5, 12), 1e-9)


def test_sizes_and_the_default_population_are_those_of_the_entries() -> None:
    strategy = searching(MatrixGaussian(np.zeros((5, 7))))
    assert (strategy.shape, strategy.size, strategy.popsize) == ((5, 7), 35, 4 + int(3 * np.log(35)))
    assert searching(MatrixGaussian(np.zeros((5, 7))), 6).popsize == 6
    assert pickle.loads(pickle.dumps(strategy)).shape == (5, 7)
    strategy.domain.check("X", np.zeros((2, 5, 7)))
    with pytest.raises(ValueError, match=r"X .*\(n, 5, 7\).* \(2, 35\)"):
        strategy.domain.check("X", np.zeros((2, 35)))


def reasons(strategy: Strategy, state: SearchState) -> dict[str, str]:
    first = strategy.view(strategy.start()).spread()
    return {name: text for one in strategy.criteria for name, text in one.look(state, first).items()}


def test_an_ill_conditioned_covariance_ends_the_search() -> None:
    strategy = searching(MatrixGaussian(np.zeros((2, 3))))
    state = strategy.start()
    state.root[:] = np.concatenate([np.diag([1e4, 1.0]).ravel(), np.diag([1.0, 1.0, 1e-4]).ravel()])
    assert "is 1e+16, above 1e+14" in reasons(strategy, state)["condition"]
    state.root[:] = np.concatenate([np.diag([4e3, 1.0]).ravel(), np.diag([1.0, 1.0, 1 / 2000]).ravel()])
    assert reasons(strategy, state) == {}  # 6.4e13, although tr(C) tr(C^-1) is above
    state.root[0] = 0.0
    assert "is inf" in reasons(strategy, state)["condition"]


def test_samples_too_large_for_float64_are_refused() -> None:
    strategy = searching(MatrixGaussian(np.zeros((2, 3))))
    z = np.ones((6, 6))
    z[1, 1] = 1e60
    with pytest.raises(ValueError, match="1e50 standard deviations"):
        strategy.update(frozen_state(strategy.start()), Ranked(z, np.arange(6)))


# ---- bounds, fixed and integer entries --------------------------------------------------------------------------


def test_bounds_of_entries_are_numbers_or_matrices() -> None:
    upper = np.arange(1.0, 7.0).reshape(2, 3)
    for bounds, is_open in (((-1.0, upper), False), (Bounds(-1.0, upper), False), ([None, upper.tolist()], True)):
        search = Searcher(MatrixGaussian(np.zeros((2, 3)), 2.0), bounds=bounds, rng=1)
        X = search.ask()
        assert np.all(upper >= X) and bool((X < -1).any()) is is_open
        with pytest.raises(ValueError, match=r"X\[0, 1\] must be .* to 2.0, got 2.5"):
            search.tell([upper + np.eye(2, 3, 1) * 0.5], [1.0])
    for bad in (1.0, (0.0, np.ones((3, 2))), [(0, 1)] * 6, ("a", 1)):
        with pytest.raises(ValueError, match=r"bounds must be a pair .* arrays of shape \(2, 3\)"):
            Searcher(MatrixGaussian(np.zeros((2, 3))), bounds=bad)
    tall = Searcher(MatrixGaussian(np.full((2, 1), 0.5)), bounds=([[0], [0]], [[1], [5]]), rng=1)  # not pairs
    X = np.concatenate([tall.ask() for _ in range(30)])
    assert X[:, 0].max() <= 1 < X[:, 1].max()


def test_fixed_and_integer_entries_are_flat_indices_or_masks() -> None:
    mean = np.arange(6.0).reshape(2, 3)
    for fixed, integer in (([4], [0, 5]), (mean == 4, ((mean == 0) | (mean == 5)).tolist()), ({4: 4.0}, [0, 5])):
        search = Searcher(MatrixGaussian(mean, 0.6), fixed=fixed, integer=integer, bounds=(-2, 9), rng=1)
        X = np.concatenate([search.ask() for _ in range(3)])
        assert (X[:, 1, 1] == 4).all() and (X[:, [0, 1], [0, 2]] == np.rint(X[:, [0, 1], [0, 2]])).all()
        assert (X[:, 0, 1] != np.rint(X[:, 0, 1])).all() and search.stds[1, 1] == 0.0
        assert search.stds[0, 1] > 0 and len(np.unique(X[:, 0, 0])) > 1


def test_a_search_with_a_fixed_entry_converges_in_the_others() -> None:
    result = minimize(
        lambda x: float(two_sided(x[None])[0]), np.zeros((2, 3)), 1.0, space="matrix", fixed={1: 0.5}, rng=1
    )
    assert result.success and result.x[0, 1] == 0.5 and result.nfev < 3000
    close(np.delete(result.x, 1), 1.0, 1e-6)


def test_a_first_covariance_is_that_of_the_entries_as_far_as_the_group_can_hold_it() -> None:
    rows, cols = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([[1.0, -0.3, 0], [-0.3, 3.0, 0.2], [0, 0.2, 0.5]])
    strategy = Searcher(MatrixGaussian(np.zeros((2, 3)), 0.7), cov0=np.kron(rows, cols)).strategy
    state = strategy.start()
    root = state.scale[:, None] * evolution_of(strategy).group.dense(state.root) * state.sigma
    close(root @ root.T, 0.49 * np.kron(rows, cols), 1e-6)


def test_a_restart_begins_at_another_matrix() -> None:
    starts = []

    def flat(x: Array) -> float:
        starts.append(x.copy())
        return 1.0

    result = minimize(flat, np.zeros((2, 3)), 1.0, space="matrix", restarts="ipop", rng=1, max_evals=2500)
    assert result.restarts >= 2 and result.x.shape == (2, 3)
    first = Searcher(MatrixGaussian(np.zeros((2, 3)), 2.0)).strategy
    other = elsewhere(first, 20, 0.5, np.random.default_rng(1))
    assert isinstance(other, Within) and other.popsize == 20 and other.shape == (2, 3)
    close(other.stds(other.start()), 1.0)
    assert np.abs(other.mean(other.start())).max() > 0.5


def test_a_search_of_matrices_continues_from_its_file(tmp_path: Path) -> None:
    for options in ({}, {"bounds": (-1, 3), "fixed": [0], "integer": [1]}, {"cov0": np.diag(np.arange(1.0, 7.0))}):
        for exact in (True, False):
            search = Searcher(MatrixGaussian(np.ones((2, 3)), exact=exact), rng=1, **options)
            for _ in range(3):
                search.tell(two_sided(search.ask()))
            search.save(tmp_path / "run.npz")
            loaded = Searcher.load(tmp_path / "run.npz")
            for one in (search, loaded):
                for _ in range(3):
                    one.tell(two_sided(one.ask()))
            assert np.array_equal(search.mean, loaded.mean) and search.result.sigma == loaded.result.sigma
            with pytest.raises(ValueError, match="X"):
                loaded.inject(np.full((2, 3), 99.5) if options.get("bounds") else np.ones(6))


BAD = [
    ({"popsize": 1}, ValueError, "popsize .*>= 2.* 1$"),
    ({"popsize": 2.5}, TypeError, "popsize .*integer.* 2.5$"),
    ({"algorithm": "best"}, ValueError, "algorithm .*'default' or 'paper'.* 'best'$"),
    ({"structure": "full"}, ValueError, "structure .*MatrixGaussian has its own"),
]


@pytest.mark.parametrize(("options", "error", "message"), BAD, ids=[m for *_, m in BAD])
def test_bad_input_is_named(options: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Searcher(MatrixGaussian(np.zeros((2, 2))), **options)


# ---- convergence, last ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["covariance", "precision"])
def test_it_finds_the_minimum_of_a_two_sided_ellipsoid(form: str) -> None:
    problem = kronecker_ellipsoid(5, 7, seed=100)
    strategy = searching(MatrixGaussian(problem.x0, problem.sigma0, form=form))
    evals, best = search(strategy, problem.batch, 100, 8_000, 1e-6)  # takes 3,700 in covariance form
    assert best <= 1e-6, evals


def test_the_published_update_finds_the_minimum_too() -> None:
    strategy = searching(MatrixGaussian(np.zeros((3, 3)), 1.0), 12, "paper")
    assert search(strategy, two_sided, 1, 20_000, 1e-6)[1] <= 1e-6


@pytest.mark.slow
def test_thirty_by_thirty_is_solved_where_the_diagonal_search_is_not() -> None:
    problem, evals = kronecker_ellipsoid(30, seed=100), 130_000
    strategy = searching(MatrixGaussian(problem.x0, problem.sigma0))
    assert search(strategy, problem.batch, 100, evals, 1e-6)[1] <= 1e-6
    vector = Searcher(problem.x0.ravel(), problem.sigma0, structure="diagonal", rng=100, max_evals=evals, target=1e-6)
    while not vector.stop():
        vector.tell(problem.batch(vector.ask().reshape(-1, 30, 30)))
    assert "target" not in vector.stop()
