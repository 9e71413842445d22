"""Estimators of natural gradients against closed forms, in both forms and on every group."""

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss

from esgroup.distributions import Gaussian, State, Step
from esgroup.gradients import Estimator, Pathwise, Reinforce, Stein, SteinDense, as_function
from esgroup.groups import BlockTriangular, Diagonal, Full, Group, Heisenberg
from tests.gradients.quartic import Quartic
from tests.gradients.support import FORMS, ONE_OF_EACH, inner, on_every_group, on_one_of_each, some_state
from tests.groups import oracle
from tests.groups.cases import CASES
from tests.groups.elements import covariance, local
from tests.groups.laws import close

Rng = np.random.Generator


def exact_step(family: Gaussian, state: State, f: Quartic, gamma: float) -> Step:
    """From the closed moments: g_mean = E grad f, g_Sigma = E Hess f / 2 - gamma Sigma^-1 / 2."""
    sigma = family.dense_covariance(state)
    g_sigma = f.mean_hessian(state.mean, sigma) / 2 - gamma / 2 * np.linalg.inv(sigma)
    return family.natural_gradient(state, f.mean_gradient(state.mean, sigma), (g_sigma + g_sigma.T) / 2)


def assert_same(found: Step, expected: Step, tolerance: float = 1e-8) -> None:
    scale = np.abs(expected.m).max() + np.abs(expected.delta).max() + 1
    close(found.m / scale, expected.m / scale, tolerance)
    close(found.delta / scale, expected.delta / scale, tolerance)


# ---- the quartic itself ---------------------------------------------------------------------------------------------


def test_the_moments_of_the_quartic_are_those_of_quadrature() -> None:
    """Products of 5 nodes integrate polynomials of degree 9 exactly."""
    rng = np.random.default_rng(0)
    f, mean, sigma = Quartic.random(3, rng), rng.standard_normal(3), covariance(3, rng)
    nodes, weights = hermegauss(5)
    z = np.stack(np.meshgrid(nodes, nodes, nodes), axis=-1).reshape(-1, 3)
    w = np.prod(np.stack(np.meshgrid(weights, weights, weights), axis=-1).reshape(-1, 3), axis=1)
    w /= w.sum()
    x = mean + z @ np.linalg.cholesky(sigma).T
    close(f.mean_value(mean, sigma), w @ f.fun(x))
    close(f.mean_gradient(mean, sigma), w @ f.jac(x))
    close(f.mean_hessian(mean, sigma), np.tensordot(w, [f.hess(point) for point in x], 1))


def test_the_moments_of_the_quartic_obey_the_theorems_of_bonnet_and_price() -> None:
    """dE f/dmean = E grad f and dE f/dSigma = E Hess f / 2, by differences of E f."""
    rng = np.random.default_rng(1)
    f, mean, sigma, step = Quartic.random(4, rng), rng.standard_normal(4), covariance(4, rng), 1e-5
    v, s = rng.standard_normal(4), covariance(4, rng)
    along_mean = (f.mean_value(mean + step * v, sigma) - f.mean_value(mean - step * v, sigma)) / (2 * step)
    along_sigma = (f.mean_value(mean, sigma + step * s) - f.mean_value(mean, sigma - step * s)) / (2 * step)
    close(along_mean, f.mean_gradient(mean, sigma) @ v, 1e-7)
    close(along_sigma, np.sum(f.mean_hessian(mean, sigma) * s) / 2, 1e-7)


# ---- expectations ---------------------------------------------------------------------------------------------------

MANY = [(Stein(5), "products"), (SteinDense(5), "hessians"), (Pathwise(60), "gradients"), (Reinforce(60), "values")]
FEW = [
    (Stein(1), "products"),
    (Stein(2, antithetic=True), "products"),
    (SteinDense(2), "hessians"),
    (Pathwise(), "gradients"),
    (Pathwise(2), "gradients"),
    (Reinforce(2), "values"),
    (Reinforce(), "values"),
]


def test_there_is_a_group_of_every_kind() -> None:
    assert set(ONE_OF_EACH) == set(CASES)


def assert_unbiased(group: Group, form: str, estimator: Estimator, known: str, times: int) -> None:
    """The mean of many steps is within 5 standard errors of the closed form, with the entropy."""
    rng = np.random.default_rng(7)
    family, f, gamma = Gaussian(group, form=form), Quartic.random(group.dim, rng), 0.7
    state, function = some_state(family, rng), getattr(f, known)()
    exact = exact_step(family, state, f, gamma)
    steps = [estimator.step(family, state, function, rng, gamma) for _ in range(times)]
    for part in ("m", "delta"):
        found, expected = np.array([getattr(step, part) for step in steps]), getattr(exact, part)
        error = found.std(axis=0, ddof=1) / np.sqrt(times) + 1e-9 * (1 + np.abs(expected))
        assert np.abs((found.mean(axis=0) - expected) / error).max() < 5


@on_one_of_each
@pytest.mark.parametrize(("estimator", "known"), MANY, ids=[str(s[0]) for s in MANY])
def test_every_estimator_is_unbiased(form: str, group: Group, estimator: Estimator, known: str) -> None:
    """So all of them agree in expectation."""
    assert_unbiased(group, form, estimator, known, 25)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("estimator", "known"), FEW, ids=[str(s[0]) for s in FEW])
def test_the_fewest_samples_are_unbiased_as_well(form: str, estimator: Estimator, known: str) -> None:
    """Where a baseline that is not independent of its sample would show."""
    assert_unbiased(Heisenberg(4, 1, 1), form, estimator, known, 150)


def test_the_default_number_of_samples_of_reinforce_is_that_of_a_search() -> None:
    family = Gaussian(Diagonal(20), mean=np.zeros(20))
    function = Quartic.random(20, np.random.default_rng(0)).values()
    Reinforce().step(family, family.state(), function, np.random.default_rng(1))
    assert function.counts.nfev == 4 + 8  # 3 ln 20 = 8.99


def test_a_baseline_removes_a_constant_and_a_slope() -> None:
    """Adding a constant to f changes nothing for Reinforce; adding a slope changes no root for Pathwise."""
    rng = np.random.default_rng(3)
    family, f = Gaussian(Full(3)), Quartic.random(3, rng)
    state, slope = some_state(family, rng), 1e3 * rng.standard_normal(3)

    def step(estimator: Estimator, constant: float, slope: np.ndarray | float) -> Step:
        jac = lambda x: f.jac(x) + slope  # noqa: E731
        function = as_function(lambda x: f.fun(x) + constant, 3, jac=jac, vectorized=True)
        return estimator.step(family, state, function, np.random.default_rng(4))

    assert_same(step(Reinforce(4), 1e6, 0.0), step(Reinforce(4), 0.0, 0.0))
    close(step(Pathwise(2), 0.0, slope).m, step(Pathwise(2), 0.0, 0.0).m, 1e-9)


# ---- exact laws -----------------------------------------------------------------------------------------------------


@on_every_group
def test_products_and_whole_hessians_give_the_same_step(form: str, group: Group, rng: Rng) -> None:
    family, f, seed = Gaussian(group, form=form), Quartic.random(group.dim, rng), int(rng.integers(2**32))
    state = some_state(family, rng)

    def step(estimator: Estimator, known: str) -> Step:
        return estimator.step(family, state, getattr(f, known)(), np.random.default_rng(seed), 0.7)

    for samples, antithetic in ((0, False), (3, False), (4, True)):
        dense = step(SteinDense(samples, antithetic), "hessians")
        assert_same(step(Stein(samples, antithetic), "products"), dense)
        assert_same(step(Stein(samples, antithetic), "hessians"), dense)


@on_one_of_each
def test_stein_at_the_mean_is_the_gradient_and_half_the_hessian_there(form: str, group: Group) -> None:
    rng = np.random.default_rng(9)
    family, f = Gaussian(group, form=form), Quartic.random(group.dim, rng)
    state = some_state(family, rng)
    expected = family.natural_gradient(state, f.jac(state.mean), f.hess(state.mean) / 2)
    assert_same(Stein().step(family, state, f.products(), rng), expected)


@on_every_group
def test_stein_is_exact_for_a_quadratic_function(form: str, group: Group, rng: Rng) -> None:
    """The square root's part at any sample; the mean's part as well if the samples come in pairs."""
    family, f, gamma = Gaussian(group, form=form), Quartic.random(group.dim, rng, quadratic=True), 0.7
    state = some_state(family, rng)
    exact = exact_step(family, state, f, gamma)
    scale = np.abs(exact.m).max() + 1
    close(Stein(1).step(family, state, f.products(), rng, gamma).m / scale, exact.m / scale, 1e-8)
    assert_same(Stein(2, antithetic=True).step(family, state, f.products(), rng, gamma), exact)


@on_every_group
def test_the_step_descends_as_fast_as_it_is_long(form: str, group: Group, rng: Rng) -> None:
    """dL(move along -t step)/dt = -|step|^2 in the Fisher metric, with L in closed form: E f - gamma entropy."""
    family, f, gamma, t = Gaussian(group, form=form), Quartic.random(group.dim, rng, quadratic=True), 0.7, 1e-5
    state = some_state(family, rng)
    step = Stein(2, antithetic=True).step(family, state, f.products(), rng, gamma)

    def loss(rate: float) -> float:
        moved = family.move(state, step.scaled(rate))
        return f.mean_value(moved.mean, family.dense_covariance(moved)) - gamma * family.entropy(moved)

    length = step.delta @ step.delta + inner(group, step.m, step.m)
    close((loss(-t) - loss(t)) / (2 * t) / (1 + length), -length / (1 + length), 1e-5)


@on_one_of_each
def test_the_entropy_term_is_the_slope_of_the_entropy(form: str, group: Group) -> None:
    """Of f = 0, whatever the estimator: d(-gamma entropy) along b is <step, b>, and the mean stays."""
    rng = np.random.default_rng(9)
    family, gamma, t = Gaussian(group, form=form), 0.7, 1e-5
    state, dim = some_state(family, rng), group.dim
    nothing = as_function(lambda x: 0.0, dim, jac=np.zeros_like, hess=lambda x: np.zeros((dim, dim)))
    b = local(group, rng, 0.5)
    up, down = (family.entropy(family.move(state, Step(np.zeros(dim), s * b), "exp")) for s in (t, -t))
    for estimator in (Stein(), Stein(2), SteinDense(2), Pathwise(2), Pathwise(0), Reinforce(3)):
        step = estimator.step(family, state, nothing, rng, gamma)
        close(inner(group, step.m, b), -gamma * (up - down) / (2 * t), 1e-7)
        close(step.delta, np.zeros(dim))


@pytest.mark.parametrize("group", [
    Full(5), Diagonal(5), BlockTriangular(5, 2), BlockTriangular(5, 2, False), Heisenberg(6, 1, 2, False),
], ids=repr)  # fmt: skip
def test_one_iteration_is_the_published_update(group: Group) -> None:
    """mean - beta S^-1 g, B h(beta C (.) kappa(B^-1 H B^-T - I)) (paper, section 4), written out on dense matrices."""
    rng = np.random.default_rng(5)
    family, f, beta = Gaussian(group, form="precision"), Quartic.random(group.dim, rng), 0.1
    state = some_state(family, rng)
    b, pattern = group.dense(state.root), oracle.pattern(group)
    inverse = np.linalg.inv(b)
    c = np.where(pattern & pattern.T, 0.5, np.where(pattern, 1.0, 0.0))
    m = beta * c * (inverse @ f.hess(state.mean) @ inverse.T - np.eye(group.dim))
    moved = family.move(state, Stein().step(family, state, f.products(), rng, 1.0).scaled(-beta))
    close(moved.mean, state.mean - beta * inverse.T @ inverse @ f.jac(state.mean))
    close(group.dense(moved.root), b @ (np.eye(group.dim) + m + m @ m / 2))


@on_one_of_each
def test_pathwise_at_the_mean_moves_the_mean_only(form: str, group: Group) -> None:
    rng = np.random.default_rng(9)
    family, f = Gaussian(group, form=form), Quartic.random(group.dim, rng)
    state = some_state(family, rng)
    step = Pathwise(0).step(family, state, f.gradients(), rng)
    close(step.m, np.zeros(group.size))
    close(step.delta, Stein().step(family, state, f.products(), rng).delta)


@on_one_of_each
def test_one_pathwise_sample_is_the_formula_of_the_paper(form: str, group: Group) -> None:
    """g_Sigma = (K + K^T) / 4 with K = Sigma^-1 (x - mean) grad^T."""
    rng = np.random.default_rng(9)
    family, f, seed = Gaussian(group, form=form), Quartic.random(group.dim, rng), int(rng.integers(2**32))
    state = some_state(family, rng)
    x = family.sample(state, 1, np.random.default_rng(seed)).x[0]
    k = np.outer(np.linalg.solve(family.dense_covariance(state), x - state.mean), f.jac(x))
    found = Pathwise(1).step(family, state, f.gradients(), np.random.default_rng(seed))
    assert_same(found, family.natural_gradient(state, f.jac(x), (k + k.T) / 4))


# ---- costs ----------------------------------------------------------------------------------------------------------

COSTS = [
    (BlockTriangular(12, 3), 3, 1),
    (BlockTriangular(12, 3, False), 3, 1),
    (Heisenberg(12, 2, 3), 5, 1),
    (Diagonal(12), 0, 1),
    (Full(12), 12, 0),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("samples", [0, 4])
@pytest.mark.parametrize(("group", "products", "diagonals"), COSTS, ids=[repr(c[0]) for c in COSTS])
def test_a_point_costs_the_products_of_the_hub_and_one_diagonal(
    group: Group, products: int, diagonals: int, samples: int, form: str
) -> None:
    rng, points = np.random.default_rng(0), max(1, samples)
    family, f = Gaussian(group, mean=np.zeros(12), form=form), Quartic.random(12, rng)
    function = f.products()
    Stein(samples).step(family, family.state(), function, rng)
    counts = function.counts
    assert (counts.nfev, counts.njev, counts.nhess) == (0, points, 0)
    assert (counts.nhvp, counts.ndiag) == (products * points, diagonals * points)
    assert counts.gradient_equivalents == points * (1 + products + diagonals)


@pytest.mark.parametrize("estimator", [Stein(3), SteinDense(3)], ids=str)
def test_hessians_are_computed_once_per_point(estimator: Estimator) -> None:
    function = Quartic.random(6, np.random.default_rng(0)).hessians()
    family = Gaussian(Heisenberg(6, 1, 2), mean=np.zeros(6))
    estimator.step(family, family.state(), function, np.random.default_rng(1))
    assert (function.counts.nhess, function.counts.nhvp, function.counts.ndiag) == (3, 0, 0)


@pytest.mark.parametrize("estimator", [Stein(4, antithetic=True), SteinDense(4, antithetic=True)], ids=str)
def test_antithetic_samples_have_the_requested_number_and_are_balanced(estimator: Estimator) -> None:
    seen, f = [], Quartic.random(3, np.random.default_rng(0))
    function = as_function(
        f.fun, 3, jac=lambda x: seen.append(x.copy()) or f.jac(x), hess=f.hess, vectorized=True
    )  # fmt: skip
    family = Gaussian(Full(3), mean=np.array([1.0, -2.0, 0.5]))
    estimator.step(family, family.state(), function, np.random.default_rng(1))
    points = np.concatenate(seen)
    assert len(points) == len(np.unique(points, axis=0)) == 4
    close(points.mean(axis=0), family.state().mean)


def test_an_unknown_diagonal_costs_its_probes() -> None:
    f = Quartic.random(12, np.random.default_rng(0))
    family = Gaussian(BlockTriangular(12, 3), mean=np.zeros(12))
    function = as_function(f.fun, 12, jac=f.jac, hessp=f.hessp, probes=4)
    Stein().step(family, family.state(), function, np.random.default_rng(1))
    assert (function.counts.nhvp, function.counts.ndiag) == (3 + 4, 0)


def test_gradient_and_value_estimators_evaluate_nothing_else() -> None:
    f, rng = Quartic.random(4, np.random.default_rng(0)), np.random.default_rng(1)
    family, function = Gaussian(Full(4), mean=np.zeros(4)), f.products()
    Pathwise(5).step(family, family.state(), function, rng)
    assert (function.counts.njev, function.counts.gradient_equivalents) == (5, 5)
    Reinforce(6).step(family, family.state(), function, rng)
    assert (function.counts.nfev, function.counts.gradient_equivalents) == (6, 11)


def test_steps_depend_on_the_generator_alone_and_change_nothing() -> None:
    f = Quartic.random(4, np.random.default_rng(0))
    family = Gaussian(Heisenberg(4, 1, 1))
    state = some_state(family, np.random.default_rng(1))  # its arrays are read-only
    before = np.random.get_state()[1].copy()
    for estimator in (Stein(2), SteinDense(2), Pathwise(2), Reinforce(3)):
        one, two = (estimator.step(family, state, f.hessians(), np.random.default_rng(2)) for _ in range(2))
        assert np.array_equal(one.m, two.m) and np.array_equal(one.delta, two.delta)
    assert np.array_equal(before, np.random.get_state()[1])


# ---- bad input ------------------------------------------------------------------------------------------------------

PAIRINGS = [
    (Pathwise(), "values", "Pathwise needs gradients.*jac="),
    (Stein(), "values", "Stein needs products .*hessp=.*hess="),
    (Stein(), "gradients", "Stein needs products .*hessp=.*hess="),
    (SteinDense(), "products", "SteinDense needs Hessians.*hess="),
]


@pytest.mark.parametrize(("estimator", "known", "message"), PAIRINGS, ids=[p[2] for p in PAIRINGS])
def test_a_function_of_which_too_little_is_known_is_refused(estimator: Estimator, known: str, message: str) -> None:
    family = Gaussian(Full(3), mean=np.zeros(3))
    function = getattr(Quartic.random(3, np.random.default_rng(0)), known)()
    with pytest.raises(TypeError, match=message):
        estimator.check(function)
    with pytest.raises(TypeError, match=message):
        estimator.step(family, family.state(), function, np.random.default_rng(0))
    assert function.counts.gradient_equivalents == 0


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: Stein(-1), ValueError, "samples must be an integer >= 0, got -1"),
    (lambda: Stein(1.5), TypeError, "samples must be an integer >= 0, got 1.5"),
    (lambda: Stein(3, antithetic=True), ValueError, "samples must be even and at least 2 for antithetic pairs, got 3"),
    (lambda: SteinDense(0, antithetic=True), ValueError, "samples must be even and at least 2 .* got 0"),
    (lambda: Stein(2, antithetic=1), TypeError, "antithetic must be True or False, got 1"),
    (lambda: Pathwise(-2), ValueError, "samples must be an integer >= 0, got -2"),
    (lambda: Reinforce(1), ValueError, "samples must be an integer >= 2, got 1"),
])  # fmt: skip
def test_a_bad_option_is_named(make, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("estimator", [Stein(2), SteinDense(2), Pathwise(2), Reinforce(2)], ids=str)
def test_arguments_that_cannot_be_used_are_named(estimator: Estimator) -> None:
    family, rng = Gaussian(Full(3), mean=np.zeros(3)), np.random.default_rng(0)
    with pytest.raises(TypeError, match=r"function must .*as_function, got <function"):
        estimator.step(family, family.state(), lambda x: 0.0, rng)
    with pytest.raises(ValueError, match=r"function must have dim 3.*got 4"):
        estimator.step(family, family.state(), Quartic.random(4, rng).hessians(), rng)
    broken = as_function(
        lambda x: np.nan, 3, jac=lambda x: np.full(3, np.nan), hess=lambda x: np.full((3, 3), np.nan)
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"(fun|jac)\(x\) must be finite, got nan at index"):
        estimator.step(family, family.state(), broken, rng)
    with pytest.raises(ValueError, match="entropy_weight must be a finite number, got nan"):
        estimator.step(family, family.state(), Quartic.random(3, rng).hessians(), rng, np.nan)
    with pytest.raises(TypeError, match=r"rng must be a numpy.random.Generator, got 5"):
        estimator.step(family, family.state(), Quartic.random(3, rng).hessians(), 5)
