"""Gaussians against scipy.stats and against the Fisher matrix rebuilt from first principles."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.stats import multivariate_normal

from esgroup.distributions import Gaussian, State, Step, standard_ngd
from esgroup.groups import (
    BlockDiagonal,
    BlockTriangular,
    Circulant,
    Conjugate,
    Diagonal,
    Full,
    Group,
    Heisenberg,
    Kronecker,
    Sparse,
    ToeplitzTriangular,
    Triangular,
)
from tests.groups import oracle
from tests.groups.cases import CASES
from tests.groups.elements import covariance, element, frozen, local
from tests.groups.laws import close

FORMS = ("covariance", "precision")
Rng = np.random.Generator


def on_every_group(test):
    """Run a test (form, group, rng) in both forms on groups of every kind."""

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("name", CASES)
    @given(data=st.data(), seed=st.integers(0, 2**32 - 1))
    def run(form: str, name: str, data: st.DataObject, seed: int) -> None:
        group = data.draw(CASES[name].filter(lambda g: g.dim <= 9))
        test(form, group, np.random.default_rng(seed))

    run.__name__ = test.__name__
    return run


def some_state(family: Gaussian, rng: np.random.Generator) -> State:
    return State(frozen(rng.standard_normal(family.dim)), element(family.group, rng))


def sigma_of(form: str, root: np.ndarray) -> np.ndarray:
    return root @ root.T if form == "covariance" else np.linalg.inv(root @ root.T)


@on_every_group
def test_density_entropy_and_divergence_are_those_of_the_dense_normal(form: str, group: Group, rng: Rng) -> None:
    family = Gaussian(group, form=form)
    p, q = some_state(family, rng), some_state(family, rng)
    sigma_p, sigma_q = (sigma_of(form, group.dense(s.root)) for s in (p, q))
    close(family.dense_covariance(p), sigma_p)
    normal = multivariate_normal(p.mean, sigma_p)
    x = rng.standard_normal((3, group.dim))
    close(family.log_density(p, x), normal.logpdf(x).reshape(3), 1e-8)
    close(family.log_density(p, x[0]), normal.logpdf(x[0]), 1e-8)
    close(family.entropy(p), normal.entropy(), 1e-8)
    difference = q.mean - p.mean
    solved = np.linalg.inv(sigma_q)
    expected = 0.5 * (np.trace(solved @ sigma_p) + difference @ solved @ difference - group.dim)
    expected += 0.5 * (np.linalg.slogdet(sigma_q)[1] - np.linalg.slogdet(sigma_p)[1])
    close(family.kl(p, q), expected, 1e-8)
    close(family.kl(p, p), 0.0)


@on_every_group
def test_local_coordinates_undo_sampling(form: str, group: Group, rng: Rng) -> None:
    family = Gaussian(group, form=form)
    state = some_state(family, rng)
    samples = family.sample(state, 4, rng)
    root = group.dense(state.root)
    outward = root if form == "covariance" else np.linalg.inv(root).T
    close(samples.x, state.mean + samples.z @ outward.T)
    close(family.local(state, samples.x), samples.z, 1e-8)
    close(family.local(state, samples.x[1]), samples.z[1], 1e-8)


@on_every_group
def test_the_natural_gradient_solves_the_fisher_matrix_of_the_density(form: str, group: Group, rng: Rng) -> None:
    """F_ij = tr(S^-1 dS_i S^-1 dS_j)/2 of the normal, with dS by differences along a basis of the local space."""
    family = Gaussian(group, form=form)
    state = some_state(family, rng)
    root, basis, step = group.dense(state.root), oracle.local_basis(group), 1e-6
    sigma = sigma_of(form, root)
    tangents = [
        (sigma_of(form, root @ expm(step * b)) - sigma_of(form, root @ expm(-step * b))) / (2 * step) for b in basis
    ]
    solved = [np.linalg.solve(sigma, t) for t in tangents]
    fisher = np.array([[0.5 * np.trace(s @ t) for t in solved] for s in solved])
    g_mean, g_sigma = rng.standard_normal(group.dim), rng.standard_normal((group.dim, group.dim))
    g_sigma = g_sigma + g_sigma.T
    gradient = [np.sum(g_sigma * t) for t in tangents]
    expected = np.tensordot(np.linalg.solve(fisher, gradient), basis, 1)
    found = family.natural_gradient(state, g_mean, g_sigma)
    scale = np.abs(expected).max() + 1
    close(group.dense_local(found.m) / scale, expected / scale, 1e-6)
    # the mean: F(delta) = T^T Sigma^-1 T = I, gradient T^T g
    outward = root if form == "covariance" else np.linalg.inv(root).T
    close(outward.T @ np.linalg.solve(sigma, outward), np.eye(group.dim), 1e-8)
    close(found.delta, outward.T @ g_mean, 1e-8)


@on_every_group
def test_the_natural_score_is_the_slope_of_the_log_density_over_fisher(form: str, group: Group, rng: Rng) -> None:
    family = Gaussian(group, form=form)
    state = some_state(family, rng)
    root, basis, step = group.dense(state.root), oracle.local_basis(group), 1e-5
    x, weights = rng.standard_normal((3, group.dim)), rng.standard_normal(3)
    outward = root if form == "covariance" else np.linalg.inv(root).T

    def score(mean: np.ndarray, moved_root: np.ndarray) -> float:
        return float(weights @ np.atleast_1d(multivariate_normal(mean, sigma_of(form, moved_root)).logpdf(x)))

    moved = [(root @ expm(step * b), root @ expm(-step * b)) for b in basis]
    slope = [(score(state.mean, up) - score(state.mean, down)) / (2 * step) for up, down in moved]
    symmetric = np.array([(b + b.T).ravel() for b in basis])
    expected = np.tensordot(np.linalg.solve(symmetric @ symmetric.T / 2, slope), basis, 1)
    found = family.natural_score(family.local(state, x), weights)
    scale = np.abs(expected).max() + 1
    close(group.dense_local(found.m) / scale, expected / scale, 1e-5)
    shifts = [(score(state.mean + step * t, root) - score(state.mean - step * t, root)) / (2 * step) for t in outward.T]
    close(found.delta / scale, np.array(shifts) / scale, 1e-5)


@on_every_group
def test_hessian_vector_products_give_the_step_of_the_dense_hessian(form: str, group: Group, rng: Rng) -> None:
    family = Gaussian(group, form=form)
    state = some_state(family, rng)
    hessian = rng.standard_normal((group.dim, group.dim))
    hessian = hessian + hessian.T
    g_mean, gamma = rng.standard_normal(group.dim), 0.7
    asked = []

    def hvp(rows: np.ndarray) -> np.ndarray:
        asked.append(len(rows))
        return rows @ hessian

    few = family.natural_gradient_hvp(state, g_mean, hvp, np.diagonal(hessian), entropy_weight=gamma)
    g_sigma = hessian / 2 - gamma / 2 * np.linalg.inv(family.dense_covariance(state))
    dense = family.natural_gradient(state, g_mean, (g_sigma + g_sigma.T) / 2)
    scale = np.abs(dense.m).max() + 1
    close(few.m / scale, dense.m / scale, 1e-8)
    close(few.delta, dense.delta)
    assert sum(asked) == len(group.hub)


@pytest.mark.parametrize("form", FORMS)
def test_block_groups_need_as_many_hessian_products_as_the_paper_says(form: str) -> None:
    for lower in (True, False):
        assert len(BlockTriangular(9, 3, lower).hub) == 3
        assert len(Heisenberg(9, 2, 3, lower).hub) == 5
    assert len(Diagonal(9).hub) == 0
    assert len(Conjugate(Heisenberg(9, 2, 3), np.arange(9)[::-1]).hub) == 5


@on_every_group
def test_a_fused_move_is_the_move_along_the_natural_score(form: str, group: Group, rng: Rng) -> None:
    family = Gaussian(group, form=form)
    state = some_state(family, rng)
    samples, weights = family.sample(state, 6, rng), rng.standard_normal(6)
    expected = family.move(state, family.natural_score(samples.z, weights).scaled(0.7, 0.05))
    found = family.move_samples(state, samples, weights, 0.7, 0.05)
    close(found.mean, expected.mean)
    close(found.root, expected.root)
    own = State(state.mean.copy(), state.root.copy())
    again = family.move_samples(own, samples, weights, 0.7, 0.05, out=own)
    assert again.mean is own.mean
    assert again.root is own.root
    close(own.mean, expected.mean)
    close(own.root, expected.root)


@on_every_group
def test_moves_follow_their_maps(form: str, group: Group, rng: Rng) -> None:
    family = Gaussian(group, form=form)
    state = some_state(family, rng)
    step = Step(rng.standard_normal(group.dim), local(group, rng, 0.3))
    root, m = group.dense(state.root), group.dense_local(step.m)
    close(group.dense(family.move(state, step, "exp").root), root @ expm(m))
    outward = root if form == "covariance" else np.linalg.inv(root).T
    close(family.move(state, step).mean, state.mean + outward @ step.delta)
    if not oracle.has_kronecker(group):
        close(group.dense(family.move(state, step).root), root @ (np.eye(group.dim) + m + m @ m / 2))
        close(group.dense(family.move(state, step, "linear").root), root @ (np.eye(group.dim) + m))


@on_every_group
def test_both_forms_make_the_same_step_to_first_order(form: str, group: Group, rng: Rng) -> None:
    """B = A^-T lies in the transposed group; the two updates of Sigma differ by O(rate^2) only."""
    family = Gaussian(group, form=form)
    state = some_state(family, rng)
    other, other_state = family.converted(state)
    close(other.dense_covariance(other_state), family.dense_covariance(state), 1e-8)
    g_mean, g_sigma = rng.standard_normal(group.dim), rng.standard_normal((group.dim, group.dim))
    g_sigma = g_sigma + g_sigma.T
    gaps = []
    for rate in (1e-3, 1e-4):
        one = family.move(state, family.natural_gradient(state, g_mean, g_sigma).scaled(-rate))
        two = other.move(other_state, other.natural_gradient(other_state, g_mean, g_sigma).scaled(-rate))
        close(one.mean, two.mean, 1e-8)
        moved = np.abs(family.dense_covariance(one) - family.dense_covariance(state)).max()
        gaps.append(np.abs(family.dense_covariance(one) - other.dense_covariance(two)).max())
        assert moved > 0
    assert gaps[1] < 0.02 * gaps[0] + 1e-13


def test_converting_twice_returns_the_same_distribution() -> None:
    rng = np.random.default_rng(0)
    family = Gaussian(Heisenberg(9, 2, 3))
    state = some_state(family, rng)
    back, returned = (lambda pair: pair[0].converted(pair[1]))(family.converted(state))
    assert (back.form, back.group) == ("covariance", family.group)
    close(returned.root, state.root)


def test_one_generation_with_the_full_group_is_xnes_as_published() -> None:
    """Glasmachers et al. 2010, algorithm 1: z, utilities, G_delta, G_M, mu + eta A G_delta, A exp(eta/2 G_M)."""
    rng = np.random.default_rng(3)
    dim, n = 4, 7
    family = Gaussian("full", mean=np.zeros(dim))
    state = some_state(family, rng)
    samples = family.sample(state, n, rng)
    a = family.group.dense(state.root)
    ranks = np.argsort(np.argsort([((x - 1) ** 2 @ np.arange(1, dim + 1)) for x in samples.x])) + 1
    u = np.maximum(0, np.log(n / 2 + 1) - np.log(ranks))
    u = u / u.sum() - 1 / n
    eta_mean, eta_a = 1.0, (9 + 3 * np.log(dim)) / (5 * dim * np.sqrt(dim))
    g_delta, g_m = np.zeros(dim), np.zeros((dim, dim))
    for u_i, z in zip(u, samples.z, strict=True):
        g_delta += u_i * z
        g_m += u_i * (np.outer(z, z) - np.eye(dim))
    moved = family.move(state, family.natural_score(samples.z, u).scaled(eta_mean, eta_a), "exp")
    close(moved.mean, state.mean + eta_mean * a @ g_delta)
    close(family.group.dense(moved.root), a @ expm(eta_a / 2 * g_m))


def test_block_triangular_roots_induce_low_rank_plus_diagonal_and_arrowheads() -> None:
    rng = np.random.default_rng(5)
    k, dim = 2, 7

    def rest_is_diagonal(matrix: np.ndarray) -> bool:
        rest = matrix[k:, k:]
        return bool(np.allclose(rest, np.diag(np.diagonal(rest)), atol=1e-12))

    for form in FORMS:
        for lower in (True, False):
            group = BlockTriangular(dim, k, lower)
            family = Gaussian(group, form=form)
            state = some_state(family, rng)
            sigma = family.dense_covariance(state)
            own, other = (sigma, np.linalg.inv(sigma)) if form == "covariance" else (np.linalg.inv(sigma), sigma)
            low_rank, arrowhead = (own, other) if lower else (other, own)
            assert rest_is_diagonal(arrowhead)
            # rank k plus a diagonal that is zero on the hub
            v = low_rank[:, :k] @ np.linalg.inv(np.linalg.cholesky(low_rank[:k, :k])).T
            remainder = low_rank - v @ v.T
            assert np.abs(remainder[:k]).max() < 1e-10
            assert rest_is_diagonal(remainder)
            # a precision root that is lower gives S = V V^T + diag(0, D^2): the square, where the paper prints D
            if lower:
                close(np.diagonal(remainder)[k:], group.blocks(state.root).d ** 2)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("group", [
    Full(3), Diagonal(3), Triangular(3), Heisenberg(5, 1, 2), BlockTriangular(4, 1, False), Circulant(4),
    ToeplitzTriangular(4), Sparse.from_edges(4, [(1, 0), (3, 1)], close=True), Kronecker(Full(2), Diagonal(2)),
    BlockDiagonal([Full(2), Triangular(2)]), Conjugate(Heisenberg(4, 1, 1), [2, 0, 3, 1]),
], ids=repr)  # fmt: skip
def test_the_sampled_natural_gradient_is_unbiased(form: str, group: Group) -> None:
    """E[natural_score weighted by f] is the natural gradient of E f = c mean + m^T Q m / 2 + tr(Q Sigma)/2 + cubic."""
    rng = np.random.default_rng(11)
    family = Gaussian(group, form=form)
    state = some_state(family, rng)
    q = rng.standard_normal((group.dim, group.dim))
    q, c = q + q.T, rng.standard_normal(group.dim)
    n = 200_000
    samples = family.sample(state, n, rng)
    x = samples.x
    f = x @ c + 0.5 * np.vecdot(x @ q, x) + (x**3).sum(axis=1) / 6
    sigma, mean = family.dense_covariance(state), state.mean
    g_mean = c + q @ mean + (mean**2 + np.diagonal(sigma)) / 2  # E grad f
    g_sigma = (q + np.diag(mean)) / 2  # E Hess f / 2
    exact = family.natural_gradient(state, g_mean, g_sigma)
    f = f - f.mean()
    chunks = [
        family.natural_score(z, w / len(w)) for z, w in zip(np.split(samples.z, 100), np.split(f, 100), strict=True)
    ]
    for found, expected in (([s.m for s in chunks], exact.m), ([s.delta for s in chunks], exact.delta)):
        error = np.std(found, axis=0, ddof=1) / 10 + 1e-12
        assert np.abs((np.mean(found, axis=0) - expected) / error).max() < 5


@pytest.mark.parametrize("form", FORMS)
def test_samples_have_the_mean_and_the_covariance_of_the_state(form: str) -> None:
    rng = np.random.default_rng(2)
    family = Gaussian(Heisenberg(4, 1, 2), form=form)
    state = some_state(family, rng)
    n = 200_000
    x = family.sample(state, n, rng).x
    sigma = family.dense_covariance(state)
    assert np.abs((x.mean(axis=0) - state.mean) / np.sqrt(np.diagonal(sigma) / n)).max() < 5
    spread = np.sqrt((np.outer(np.diagonal(sigma), np.diagonal(sigma)) + sigma**2) / n)
    assert np.abs((np.cov(x.T) - sigma) / spread).max() < 5


@pytest.mark.parametrize("group", [Full(4), Diagonal(4), Triangular(4), Triangular(4, False), Circulant(5)], ids=repr)
def test_standard_ngd_is_the_additive_update_of_the_global_parameters(group: Group) -> None:
    """mean - rate Sigma g; Sigma - 2 rate Sigma g_Sigma Sigma, or S + 2 rate g_Sigma, projected on the family."""
    rng = np.random.default_rng(7)
    g_mean, g_sigma = rng.standard_normal(group.dim), rng.standard_normal((group.dim, group.dim))
    g_sigma = 0.1 * (g_sigma + g_sigma.T)
    for form in FORMS:
        family = Gaussian(group, form=form)
        state = some_state(family, rng)
        sigma, rate = family.dense_covariance(state), 0.05
        new = standard_ngd(family, state, g_mean, g_sigma, rate)
        close(new.mean, state.mean - rate * sigma @ g_mean)
        # the Fisher matrix of theta on a basis E_i of the family's covariances (precisions): tr(P E_i P E_j)/2
        theta = sigma if form == "covariance" else np.linalg.inv(sigma)
        basis = oracle.independent([b + b.T for b in oracle.local_basis(group)])
        inverse = np.linalg.inv(theta)
        fisher = np.array([[0.5 * np.trace(inverse @ s @ inverse @ t) for t in basis] for s in basis])
        g_theta = g_sigma if form == "covariance" else -sigma @ g_sigma @ sigma
        natural = np.tensordot(np.linalg.solve(fisher, [np.sum(g_theta * e) for e in basis]), basis, 1)
        expected = theta - rate * natural
        found = family.dense_covariance(new)
        close(found if form == "covariance" else np.linalg.inv(found), expected, 1e-8)


def test_standard_ngd_says_when_it_leaves_the_cone_or_the_family() -> None:
    family = Gaussian("full", mean=np.zeros(3))
    with pytest.raises(ValueError, match=r"rate must be smaller than 10: the step left the positive-definite cone"):
        standard_ngd(family, family.state(), np.zeros(3), np.eye(3), 10)
    family = Gaussian(BlockTriangular(5, 2), mean=np.zeros(5))
    g = np.arange(25.0).reshape(5, 5)
    with pytest.raises(ValueError, match="closed under addition"):
        standard_ngd(family, family.state(), np.zeros(5), g + g.T, 1e-4)


def test_a_family_starts_at_the_given_mean_and_covariance() -> None:
    rng = np.random.default_rng(1)
    mean = rng.standard_normal(6)
    for form in FORMS:
        family = Gaussian("heisenberg:k1=1,k2=2", mean=mean, sigma0=0.5, form=form)
        close(family.dense_covariance(family.state()), 0.25 * np.eye(6))
        close(family.state().mean, mean)
        sigma = family.dense_covariance(some_state(family, rng))
        close(Gaussian(family.group, mean, covariance=sigma, form=form).dense_covariance(
            Gaussian(family.group, mean, covariance=sigma, form=form).state()), sigma, 1e-8)  # fmt: skip
    # any covariance: the nearest member of the family, whatever the form
    sigma = covariance(6, rng)
    one = Gaussian(BlockTriangular(6, 2, False), mean, covariance=sigma)
    two = Gaussian(BlockTriangular(6, 2, True), mean, covariance=sigma, form="precision")
    close(two.dense_covariance(two.state()), one.dense_covariance(one.state()), 1e-8)
    late = Gaussian("diagonal", sigma0=2.0)
    close(late.state(mean).root, 2 * np.ones(6))
    kron = Gaussian(Kronecker(Full(2), Diagonal(3)), mean=mean, sigma0=0.1)
    close(kron.dense_covariance(kron.state()), 0.01 * np.eye(6))


BAD = [
    (lambda f, s: Gaussian("full", mean=[[1.0, 2.0]]), r"mean must have shape \(n,\), got \(1, 2\)"),
    (lambda f, s: Gaussian("full", mean=[1.0, np.nan]), "mean must be finite, got nan at index 1"),
    (lambda f, s: Gaussian("full", mean=[1j, 2]), "mean must be an array of real numbers, got dtype complex128"),
    (lambda f, s: Gaussian("full", mean=np.zeros(2), sigma0=0), "sigma0 must be a positive finite number, got 0"),
    (lambda f, s: Gaussian("full", np.zeros(2), np.nan), "sigma0 must be a positive finite number, got nan"),
    (lambda f, s: Gaussian("full", np.zeros(2), covariance=[[1, 2], [2, 1]]), "must be positive definite.*-1"),
    (lambda f, s: Gaussian("full", np.zeros(2), covariance=[[1, 2], [0, 9]]), "covariance must be symmetric"),
    (lambda f, s: Gaussian("full", np.zeros(2), form="root"), "form must be 'covariance' or 'precision', got 'root'"),
    (lambda f, s: Gaussian(Full(3), np.zeros(2)), "structure must have dimension 2"),
    (lambda f, s: Gaussian("fulll"), "unknown structure 'fulll'"),
    (lambda f, s: Gaussian("full", []), "mean must have at least one variable, got none"),
    (lambda f, s: Gaussian("full", [0.0], 2.0, covariance=[[1.0]]), "sigma0 or covariance must be given, not both"),
    (lambda f, s: Gaussian("full", [0.0], 10**400), "sigma0 must be a positive finite number, got 1000"),
    (lambda f, s: Gaussian("full").dim, "dimension of .* is not known"),
    (lambda f, s: Gaussian(Full(2)).state(), "mean must be given"),
    (lambda f, s: f.sample(s, -1, np.random.default_rng()), "n must be an integer >= 0, got -1"),
    (lambda f, s: f.log_density(s, np.zeros((2, 4))), r"x must have shape \(n, 3\), got \(2, 4\)"),
    (lambda f, s: f.log_density(State(s.mean, s.root * 0), np.zeros(3)), "must be invertible"),
    (lambda f, s: f.kl(s, State(s.mean, np.zeros(4))), r"state.root must have shape \(9,\), got \(4,\)"),
    (lambda f, s: f.natural_score(np.zeros((2, 3)), [1.0]), r"weights must have shape \(2,\), got \(1,\)"),
    (lambda f, s: f.natural_gradient(s, np.zeros(3), np.arange(9.0).reshape(3, 3)), "g_covariance must be symmetric"),
    (lambda f, s: f.move(s, Step(np.zeros(3), np.zeros(9)), "log"), "map must be 'h', 'exp' or 'linear', got 'log'"),
    (lambda f, s: f.move(s, Step(np.zeros(2), np.zeros(9))), r"step.delta must have shape \(3,\), got \(2,\)"),
    (lambda f, s: f.natural_gradient_hvp(s, np.zeros(3), lambda v: v[:1]), r"hvp\(rows\) must have shape \(3, 3\)"),
]


@np.errstate(over="ignore", invalid="ignore")
def test_a_gradient_that_overflows_in_local_coordinates_is_refused() -> None:
    family = Gaussian("full", np.zeros(3))
    wide = family.state()._replace(root=1e200 * family.state().root)
    with pytest.raises(ValueError, match="g_covariance in local coordinates must be finite, got inf"):
        family.natural_gradient(wide, np.zeros(3), np.eye(3))


@pytest.mark.parametrize(("call", "message"), BAD, ids=[m for _, m in BAD])
def test_bad_input_is_named(call, message: str) -> None:
    family = Gaussian("full", mean=np.zeros(3))
    with pytest.raises(ValueError, match=message):
        call(family, family.state())


def test_a_generator_is_needed_and_the_global_one_is_not_touched() -> None:
    family = Gaussian("full", mean=np.zeros(3))
    with pytest.raises(TypeError, match=r"rng must be a numpy.random.Generator, got 1"):
        family.sample(family.state(), 2, 1)
    before = np.random.get_state()[1].copy()
    family.sample(family.state(), 2, np.random.default_rng(0))
    assert np.array_equal(before, np.random.get_state()[1])


def test_a_missing_hessian_diagonal_is_named() -> None:
    family = Gaussian("block_triangular:k=1", mean=np.zeros(4))
    with pytest.raises(ValueError, match="hessian_diagonal must be given"):
        family.natural_gradient_hvp(family.state(), np.zeros(4), lambda v: v)


def test_arguments_are_not_modified() -> None:
    rng = np.random.default_rng(0)
    mean = rng.standard_normal(4)
    family = Gaussian("heisenberg", mean=mean)
    mean[0] = 99.0  # ours is a copy
    assert family.state().mean[0] != 99.0
    state = State(frozen(family.state().mean), frozen(family.state().root))
    samples = family.sample(state, 3, rng)
    frozen(samples.z)
    moved = family.move_samples(state, samples, frozen(np.ones(3)))
    assert not np.shares_memory(moved.root, state.root)
    with pytest.raises(ValueError, match=r"out.mean must be a writeable .* got a read-only float64 array"):
        family.move_samples(state, samples, np.ones(3), out=state)


@pytest.mark.filterwarnings("ignore:invalid value")  # NumPy's own word on inf - inf, before ours
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("group", [
    Diagonal(4), Full(4), Full(60), Full(520), Triangular(4), Heisenberg(4, 1, 1, False)
], ids=repr)  # fmt: skip
def test_what_is_not_finite_is_refused_and_nothing_is_written(group: Group, form: str) -> None:
    family = Gaussian(group, mean=np.zeros(group.dim), form=form)
    state, rng = family.state(), np.random.default_rng(0)
    samples, weights = family.sample(state, 5, rng), np.full(5, 0.2)
    before, drawn = State(state.mean.copy(), state.root.copy()), rng.bit_generator.state
    for value in (np.nan, np.inf):
        for at in (0, group.size // 2, group.size - 1):
            bad = State(state.mean, state.root.copy())
            bad.root[at] = value
            with pytest.raises(ValueError, match=r"state.root must be finite"):
                family.sample(bad, 5, rng, out=samples)
            with pytest.raises(ValueError, match=r"state.root must be finite"):
                family.move_samples(bad, samples, weights, out=state)
        z = samples.z.copy()
        z[2, 1] = value
        for images in (None, samples.images):
            with pytest.raises(ValueError, match="are they finite"):
                family.move_samples(state, samples._replace(z=z, images=images), weights, out=state)
    with pytest.raises(ValueError, match="are they finite"):
        family.move_samples(state, samples, weights * 1e200, out=state)
    with pytest.raises(ValueError, match="are they finite"):
        family.move_samples(state, samples._replace(z=1e200 * samples.z), weights, out=state)
    assert rng.bit_generator.state == drawn
    assert np.array_equal(state.root, before.root)
    assert np.array_equal(state.mean, before.mean)


def test_output_arrays_must_not_overlap() -> None:
    family = Gaussian("diagonal", mean=np.zeros(3))
    state, rng = family.state(), np.random.default_rng(0)
    samples = family.sample(state, 4, rng)
    with pytest.raises(ValueError, match=r"out.x must not overlap out.z"):
        family.sample(state, 4, rng, out=samples._replace(x=samples.z))
    room = np.ones(4)
    with pytest.raises(ValueError, match=r"out.root must not overlap state.root"):
        family.move_samples(State(state.mean, room[:3]), samples, np.zeros(4), out=State(np.zeros(3), room[1:]))


def test_families_and_states_survive_a_pickle() -> None:
    family = Gaussian("heisenberg:k1=1,k2=1", mean=np.arange(4.0), covariance=np.diag(np.arange(1.0, 5.0)))
    copy = pickle.loads(pickle.dumps(family))
    assert copy == family
    assert hash(copy) == hash(family)
    assert family != Gaussian("heisenberg:k1=1,k2=1", mean=np.arange(4.0))
    assert Gaussian(Full(4)) != Gaussian(Full(4), np.arange(4.0)) != family
    assert family != "gaussian"
    assert not copy.mean.flags.writeable
    assert not copy.covariance.flags.writeable
    state = pickle.loads(pickle.dumps(family.state()))
    samples = copy.sample(state, 3, np.random.default_rng(0))
    copy.move_samples(state, samples, np.ones(3), out=state)  # unpickled arrays work like others


def test_points_are_the_inverse_of_local_coordinates() -> None:
    rng = np.random.default_rng(0)
    for form in FORMS:
        for group in (Full(4), Heisenberg(4, 1, 1)):
            family = Gaussian(group, form=form)
            state, z = some_state(family, rng), frozen(rng.standard_normal((3, 4)))
            samples = family.points(state, z)
            close(family.local(state, samples.x), z)
            close(family.move_samples(state, samples, np.ones(3), 1.0, 0.01).root,
                  family.move(state, family.natural_score(z, np.ones(3)).scaled(1.0, 0.01)).root)  # fmt: skip


def test_a_large_mean_does_not_swallow_the_spread() -> None:
    """Terms of the size of the mean's last digit are added up before they meet the mean."""
    group = BlockTriangular(400, 20)
    root = group.product_h(group.identity(), group.project(np.ones((1, 400)), [0.5]))
    mean = np.full(400, 2.0**53)
    samples = Gaussian(group).sample(State(mean, root), 200, np.random.default_rng(0))
    exact = samples.z @ group.dense(root).T
    assert np.abs(samples.x - mean - exact).max() <= 1.5


TYPES = [
    (lambda f, s: f.sample((s.mean, s.root), 3, np.random.default_rng()), "state must be a State, got"),
    (lambda f, s: f.entropy(None), "state must be a State, got None"),
    (lambda f, s: f.move(s, (np.zeros(3), np.zeros(9))), "step must be a Step, got"),
    (lambda f, s: f.move_samples(s, np.zeros((2, 3)), [1, 2]), "samples must be a Samples, got"),
    (lambda f, s: f.sample(s, 2, np.random.default_rng(), out=3), "out must be a Samples, got 3"),
    (lambda f, s: f.natural_gradient_hvp(s, np.zeros(3), None), "hvp must be a function of rows, got None"),
    (lambda f, s: Gaussian(3), "structure must be a str, got 3"),
    (lambda f, s: Gaussian(3, np.zeros(2)), "structure must be a group or a spelling"),
]


@pytest.mark.parametrize(("call", "message"), TYPES, ids=[m for _, m in TYPES])
def test_a_bad_type_is_named(call, message: str) -> None:
    family = Gaussian("full", mean=np.zeros(3))
    with pytest.raises(TypeError, match=message):
        call(family, family.state())


def test_a_form_may_be_a_text_of_numpy_and_must_be_one_of_two() -> None:
    assert Gaussian("diagonal", np.zeros(2), form=np.str_("precision")).form == "precision"
    for form in ("cov", True, np.zeros(2)):
        with pytest.raises(ValueError, match="form must be 'covariance' or 'precision', got"):
            Gaussian("diagonal", np.zeros(2), form=form)
