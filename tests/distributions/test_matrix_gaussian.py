"""Matrix Gaussians against scipy.stats.matrix_normal, the Fisher matrix, and vector Gaussians."""

import pickle
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.stats import kstest, matrix_normal, multivariate_normal, norm

from esgroup.distributions import Gaussian, State, Step
from esgroup.distributions.matrix_gaussian import MatrixGaussian
from esgroup.groups import Circulant, Diagonal, Full, Heisenberg, Kronecker, Triangular
from tests.groups import oracle
from tests.groups.elements import element, frozen, local
from tests.groups.laws import close

FORMS = ("covariance", "precision")
SIDES = [
    (Full(2), Full(3)),
    (Triangular(3), Diagonal(2)),
    (Heisenberg(4, 1, 1, lower=False), Triangular(2, lower=False)),
    (Circulant(3), Full(2)),
    (Diagonal(2), Kronecker(Full(2), Diagonal(2))),
    (Full(3), Diagonal(1)),
    (Full(1), Triangular(3)),
]
Rng = np.random.Generator
Array = np.ndarray


def on_both_forms(test):
    """Run a test (family, rng) on groups of several kinds, in both forms."""

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize(("rows", "cols"), SIDES, ids=str)
    def run(form: str, rows, cols) -> None:
        family = MatrixGaussian(np.zeros((rows.dim, cols.dim)), rows=rows, cols=cols, form=form)
        test(family, np.random.default_rng(rows.dim + 10 * cols.dim))

    run.__name__ = test.__name__
    return run


def some_state(family: MatrixGaussian, rng: Rng) -> State:
    return State(frozen(rng.standard_normal(family.shape)), element(family.group, rng))


def dense_roots(family: MatrixGaussian, state: State) -> tuple[Array, Array]:
    """R and C of X = E + R Z C^T, from the packed numbers; a side of length 1 may be left out of them."""
    rows, cols = family.rows, family.cols
    if family.exact and 1 in family.shape:
        whole = family.group.dense(state.root)
        r, c = (whole, np.eye(1)) if cols.dim == 1 else (np.eye(1), whole)
    else:
        r, c = rows.dense(state.root[: rows.size]), cols.dense(state.root[rows.size :])
    return (r, c) if family.form == "covariance" else (np.linalg.inv(r).T, np.linalg.inv(c).T)


def normal_of(family: MatrixGaussian, state: State):
    r, c = dense_roots(family, state)
    return matrix_normal(state.mean, r @ r.T, c @ c.T)


def dense_covariance(family: MatrixGaussian, root: Array) -> Array:
    """Of the entries row by row, for a dense root of them all."""
    return root @ root.T if family.form == "covariance" else np.linalg.inv(root @ root.T)


# ---- against SciPy ----------------------------------------------------------------------------------------------


@on_both_forms
def test_density_and_entropy_are_those_of_scipy(family: MatrixGaussian, rng: Rng) -> None:
    state = some_state(family, rng)
    normal, x = normal_of(family, state), rng.standard_normal((4, *family.shape))
    close(family.log_density(state, x), normal.logpdf(x), 1e-8)
    close(family.log_density(state, x[1]), normal.logpdf(x[1]), 1e-8)
    close(family.entropy(state), normal.entropy(), 1e-8)


@on_both_forms
def test_covariances_are_those_that_scipy_takes(family: MatrixGaussian, rng: Rng) -> None:
    state, x = some_state(family, rng), rng.standard_normal(family.shape)
    row, column = family.covariances(state)
    r, c = dense_roots(family, state)
    close(np.kron(row, column), np.kron(r @ r.T, c @ c.T))
    close(np.diagonal(column).mean(), 1.0)
    close(matrix_normal(state.mean, row, column).logpdf(x), family.log_density(state, x), 1e-8)


@on_both_forms
def test_divergence_is_that_of_the_dense_normals(family: MatrixGaussian, rng: Rng) -> None:
    p, q = some_state(family, rng), some_state(family, rng)
    sigma_p, sigma_q = (np.kron(*family.covariances(s)) for s in (p, q))
    gap, solved = (q.mean - p.mean).ravel(), np.linalg.inv(sigma_q)
    expected = 0.5 * (np.trace(solved @ sigma_p) + gap @ solved @ gap - len(gap))
    expected += 0.5 * (np.linalg.slogdet(sigma_q)[1] - np.linalg.slogdet(sigma_p)[1])
    close(family.kl(p, q), expected, 1e-8)


@on_both_forms
def test_a_sample_is_the_mean_plus_rows_times_white_times_columns(family: MatrixGaussian, rng: Rng) -> None:
    state = some_state(family, rng)
    samples = family.sample(state, 5, rng)
    r, c = dense_roots(family, state)
    assert samples.x.shape == samples.z.shape == (5, *family.shape)
    close(samples.x, np.array([state.mean + r @ z @ c.T for z in samples.z]))
    close(family.local(state, samples.x), samples.z, 1e-8)
    close(family.local(state, samples.x[2]), samples.z[2], 1e-8)
    close(family.points(state, samples.z).x, samples.x)


@pytest.mark.parametrize("form", FORMS)
def test_samples_have_the_distribution_of_scipy(form: str) -> None:
    """Covariances of all pairs of entries within 5 standard errors; entries by Kolmogorov and Smirnov."""
    rng, n = np.random.default_rng(3), 100_000
    family = MatrixGaussian(np.zeros((2, 3)), rows=Triangular(2), cols=Heisenberg(3, 1, 1), form=form)
    state = some_state(family, rng)
    x = family.sample(state, n, rng).x
    normal = normal_of(family, state)
    sigma = np.kron(normal.rowcov, normal.colcov)
    spread = np.sqrt((np.outer(np.diagonal(sigma), np.diagonal(sigma)) + sigma**2) / n)
    assert np.abs((np.cov(x.reshape(n, 6).T) - sigma) / spread).max() < 5
    deviations = np.sqrt(np.diagonal(sigma)).reshape(2, 3)
    assert np.abs((x.mean(axis=0) - state.mean) / deviations * np.sqrt(n)).max() < 5
    for i, j in np.ndindex(2, 3):
        assert kstest(x[:, i, j], norm(state.mean[i, j], deviations[i, j]).cdf).pvalue > 1e-4
    # a combination that mixes rows and columns, against SciPy's own samples
    theirs = normal.rvs(n, random_state=np.random.default_rng(4))
    weights = rng.standard_normal((2, 3))
    assert kstest(np.sum(x * weights, axis=(1, 2)), np.sum(theirs * weights, axis=(1, 2))).pvalue > 1e-4


# ---- natural gradients ------------------------------------------------------------------------------------------


def fisher_and_slope(family: MatrixGaussian, state: State, x: Array, weights: Array, basis: list[Array]):
    """Of steps B_i of the whole root: tr(S^-1 dS_i S^-1 dS_j)/2, and sum_k w_k log q(x_k) by central differences."""
    root, step, flat = family.group.dense(state.root), 1e-5, x.reshape(len(x), -1)

    def slopes(b: Array) -> tuple[Array, float]:
        up, down = (dense_covariance(family, root @ expm(sign * step * b)) for sign in (1, -1))
        densities = [weights @ multivariate_normal(state.mean.ravel(), s).logpdf(flat) for s in (up, down)]
        return (up - down) / (2 * step), float(densities[0] - densities[1]) / (2 * step)

    tangents, slope = zip(*(slopes(b) for b in basis), strict=True)
    solved = [np.linalg.solve(dense_covariance(family, root), t) for t in tangents]
    return np.array([[0.5 * np.trace(s @ t) for t in solved] for s in solved]), np.array(slope)


@on_both_forms
def test_the_natural_score_is_the_slope_of_the_density_over_its_fisher_matrix(family: MatrixGaussian, rng: Rng) -> None:
    state = some_state(family, rng)
    x, weights = rng.standard_normal((3, *family.shape)), rng.standard_normal(3)
    basis = oracle.local_basis(family.group)
    fisher, slope = fisher_and_slope(family, state, x, weights, basis)
    expected = np.tensordot(np.linalg.solve(fisher, slope), basis, 1)
    found = family.natural_score(family.local(state, x), weights)
    scale = np.abs(expected).max() + 1
    close(family.group.dense_local(found.m) / scale, expected / scale, 1e-5)
    # the mean: E + R delta C^T has the Fisher matrix I and the score R^-1 (X - E) C^-T
    r, c = dense_roots(family, state)
    whitened = [np.linalg.solve(r, one - state.mean) @ np.linalg.inv(c).T for one in x]
    close(found.delta, np.tensordot(weights, whitened, 1), 1e-8)


@pytest.mark.parametrize("form", FORMS)
def test_the_approximation_solves_each_diagonal_block_of_the_fisher_matrix(form: str) -> None:
    rng, rows, cols = np.random.default_rng(5), Heisenberg(3, 1, 1), Full(2)
    family = MatrixGaussian(np.zeros((3, 2)), rows=rows, cols=cols, form=form, exact=False)
    state = some_state(family, rng)
    x, weights = rng.standard_normal((3, 3, 2)), rng.standard_normal(3)
    m = family.natural_score(family.local(state, x), weights).m
    row_basis, col_basis = oracle.local_basis(rows), oracle.local_basis(cols)
    lifted = [np.kron(b, np.eye(2)) for b in row_basis], [np.kron(np.eye(3), b) for b in col_basis]
    found = rows.dense_local(m[: rows.size]), cols.dense_local(m[rows.size :])
    for one, basis, whole in zip(found, (row_basis, col_basis), lifted, strict=True):
        fisher, slope = fisher_and_slope(family, state, x, weights, whole)
        close(one, np.tensordot(np.linalg.solve(fisher, slope), basis, 1), 1e-5)


@on_both_forms
def test_the_approximation_doubles_the_step_of_the_scale_and_no_other(family: MatrixGaussian, rng: Rng) -> None:
    exact = replace(family, exact=True)
    approximate = replace(family, exact=False)
    z, weights = rng.standard_normal((4, *family.shape)), rng.standard_normal(4)
    one, two = (f.group.dense_local(f.natural_score(z, weights).m) for f in (exact, approximate))
    scale = np.trace(one) / len(one)
    assert abs(scale) > 1e-3
    close(two - one, scale * np.eye(len(one)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("exact", [True, False])
def test_one_generation_of_dense_factors_is_the_formula(form: str, exact: bool) -> None:
    """N1 = sum w (Z Z^T - k I) / (2 k) and N2 = sum w (Z^T Z - m I) / (2 m), less t/4 I each in the exact gradient."""
    rng, (m, k) = np.random.default_rng(6), (3, 4)
    family = MatrixGaussian(np.zeros((m, k)), form=form, exact=exact)
    state = some_state(family, rng)
    z, w = rng.standard_normal((5, m, k)), 0.1 * rng.standard_normal(5)
    n1, n2, delta = np.zeros((m, m)), np.zeros((k, k)), np.zeros((m, k))
    for weight, one in zip(w, z, strict=True):
        delta += weight * one
        n1 += weight * (one @ one.T - k * np.eye(m)) / (2 * k)
        n2 += weight * (one.T @ one - m * np.eye(k)) / (2 * m)
    t = 2 * np.trace(n1) / m
    if exact:
        n1, n2 = n1 - t / 4 * np.eye(m), n2 - t / 4 * np.eye(k)
    sign = 1 if form == "covariance" else -1
    r, c = family.rows.dense(state.root[: m * m]), family.cols.dense(state.root[m * m :])
    outward = (r, c) if form == "covariance" else (np.linalg.inv(r).T, np.linalg.inv(c).T)
    moved = family.move(state, family.natural_score(z, w))
    close(moved.mean, state.mean + outward[0] @ delta @ outward[1].T)
    close(moved.root[: m * m].reshape(m, m), r @ (np.eye(m) + sign * n1 + n1 @ n1 / 2))
    close(moved.root[m * m :].reshape(k, k), c @ (np.eye(k) + sign * n2 + n2 @ n2 / 2))


@on_both_forms
def test_a_fused_move_is_the_move_along_the_natural_score(family: MatrixGaussian, rng: Rng) -> None:
    for exact in (True, False):
        this = replace(family, exact=exact)
        state = some_state(this, rng)
        samples, weights = this.sample(state, 6, rng), rng.standard_normal(6)
        expected = this.move(state, this.natural_score(samples.z, weights).scaled(0.7, 0.05))
        found = this.move_samples(state, samples, weights, 0.7, 0.05)
        close(found.mean, expected.mean)
        close(found.root, expected.root)


@on_both_forms
def test_moves_along_the_exponential_map_act_on_the_whole_root(family: MatrixGaussian, rng: Rng) -> None:
    state = some_state(family, rng)
    step, group = Step(rng.standard_normal(family.shape), local(family.group, rng, 0.3)), family.group
    moved = family.move(state, step, "exp")
    close(group.dense(moved.root), group.dense(state.root) @ expm(group.dense_local(step.m)))
    r, c = dense_roots(family, state)
    close(moved.mean, state.mean + r @ step.delta @ c.T)


@pytest.mark.parametrize("form", FORMS)
def test_the_sampled_natural_gradient_is_unbiased(form: str) -> None:
    """f = <L, X> + 1/2 |P X Q|^2 has E grad = L + P^T P E Q Q^T and the Hessian P^T P (x) Q Q^T."""
    rng, n = np.random.default_rng(7), 100_000
    family = MatrixGaussian(np.zeros((2, 3)), rows=Full(2), cols=Triangular(3), form=form)
    state = some_state(family, rng)
    lean, p, q = (rng.standard_normal(shape) for shape in ((2, 3), (2, 2), (3, 3)))
    samples = family.sample(state, n, rng)
    f = np.sum(lean * samples.x, axis=(1, 2)) + 0.5 * np.sum((p @ samples.x @ q) ** 2, axis=(1, 2))
    g_mean, g_sigma = lean + p.T @ p @ state.mean @ q @ q.T, np.kron(p.T @ p, q @ q.T) / 2
    exact = Gaussian(family.group, form=form).natural_gradient(
        State(state.mean.ravel(), state.root), g_mean.ravel(), g_sigma
    )
    parts = zip(np.split(samples.z, 100), np.split(f - f.mean(), 100), strict=True)
    steps = [family.natural_score(z, w / len(w)) for z, w in parts]
    for found, expected in (
        ([s.m for s in steps], exact.m),
        ([s.delta for s in steps], exact.delta.reshape(2, 3)),
    ):
        error = np.std(found, axis=0, ddof=1) / 10 + 1e-12
        assert np.abs((np.mean(found, axis=0) - expected) / error).max() < 5


# ---- degenerate cases and forms ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "group", [Full(4), Triangular(4), Heisenberg(4, 1, 2), Kronecker(Full(2), Diagonal(2))], ids=str
)
@pytest.mark.parametrize("upright", [True, False])
def test_one_column_or_one_row_is_the_vector_gaussian(form: str, group, upright: bool) -> None:
    rng = np.random.default_rng(8)
    shape = (4, 1) if upright else (1, 4)
    sides = {"rows": group, "cols": "full"} if upright else {"rows": "full", "cols": group}
    mean = rng.standard_normal(4)
    matrix = MatrixGaussian(mean.reshape(shape), 0.5, form=form, **sides)
    vector = Gaussian(group, mean, 0.5, form=form)
    a, b = matrix.state(), vector.state()
    for _ in range(3):
        one = matrix.sample(a, 6, np.random.default_rng(1))
        two = vector.sample(b, 6, np.random.default_rng(1))
        assert np.array_equal(one.x.reshape(6, 4), two.x)
        close(matrix.log_density(a, one.x), vector.log_density(b, two.x), 1e-14)
        weights = 0.1 * rng.standard_normal(6)
        a, b = matrix.move_samples(a, one, weights), vector.move_samples(b, two, weights)
        assert np.array_equal(a.root, b.root)
        assert np.array_equal(a.mean.ravel(), b.mean)
    row, column = matrix.covariances(a)
    close(np.kron(row, column), vector.dense_covariance(b))


def test_the_transposed_matrix_has_the_groups_exchanged() -> None:
    rng = np.random.default_rng(9)
    one = MatrixGaussian(np.zeros((3, 2)), rows=Triangular(3), cols=Full(2))
    two = MatrixGaussian(np.zeros((2, 3)), rows=Full(2), cols=Triangular(3))
    a = some_state(one, rng)
    b = State(a.mean.T, np.concatenate([a.root[6:], a.root[:6]]))
    z, weights = rng.standard_normal((4, 3, 2)), 0.1 * rng.standard_normal(4)
    x = one.points(a, z).x
    close(two.local(b, x.transpose(0, 2, 1)), z.transpose(0, 2, 1))
    close(two.log_density(b, x.transpose(0, 2, 1)), one.log_density(a, x))
    a, b = (f.move(s, f.natural_score(y, weights)) for f, s, y in ((one, a, z), (two, b, z.transpose(0, 2, 1))))
    close(b.mean, a.mean.T)
    close(b.root, np.concatenate([a.root[6:], a.root[:6]]))


@on_both_forms
def test_the_other_form_is_the_same_distribution(family: MatrixGaussian, rng: Rng) -> None:
    state, x = some_state(family, rng), rng.standard_normal(family.shape)
    for exact in (True, False):
        this = replace(family, exact=exact)
        state = some_state(this, rng)
        other, moved = this.converted(state)
        assert (other.form != this.form, other.exact) == (True, exact)
        close(other.log_density(moved, x), this.log_density(state, x), 1e-8)
        back, returned = other.converted(moved)
        assert (back.group, back.form) == (this.group, this.form)
        close(returned.root, state.root)


@pytest.mark.parametrize("form", FORMS)
def test_a_family_starts_with_its_mean_and_deviation(form: str) -> None:
    mean = np.arange(6.0).reshape(2, 3)
    family = MatrixGaussian(mean, 0.5, rows="triangular", cols="heisenberg:k1=1,k2=1", form=form)
    assert np.array_equal(family.state().mean, mean)
    close(np.kron(*family.covariances(family.state())), 0.25 * np.eye(6))
    assert (family.rows, family.cols) == (Triangular(2), Heisenberg(3, 1, 1))
    close(np.kron(*MatrixGaussian(mean, form=form).covariances(MatrixGaussian(mean).state())), np.eye(6))


# ---- sizes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "cols"), [("full", "full"), ("heisenberg", "diagonal"), ("triangular", "full")])
@pytest.mark.parametrize("form", FORMS)
def test_no_matrix_over_all_entries_is_formed(rows: str, cols: str, form: str) -> None:
    family = MatrixGaussian(np.zeros((60, 50)), 1.0, rows, cols, form)
    state, rng, weights = family.state(), np.random.default_rng(0), np.linspace(-0.01, 0.01, 8)
    family.move_samples(state, family.sample(state, 8, rng), weights)  # compiles
    tracemalloc.start()
    samples = family.sample(state, 8, rng)
    moved = family.move_samples(state, samples, weights)
    family.move(moved, family.natural_score(samples.z, weights))
    family.log_density(moved, samples.x)
    family.covariances(moved)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 3000**2 / 20


# ---- bad input --------------------------------------------------------------------------------------------------

E = np.zeros((2, 3))
BAD = [
    (lambda f, s: MatrixGaussian(np.zeros(3)), r"mean must be a matrix, got an array of shape \(3,\)"),
    (lambda f, s: MatrixGaussian(1.0), r"mean must be a matrix, got an array of shape \(\)"),
    (lambda f, s: MatrixGaussian(np.zeros((2, 2, 2))), r"mean must be a matrix, got an array of shape \(2, 2, 2\)"),
    (lambda f, s: MatrixGaussian([[1.0], [1.0, 2.0]]), "mean must be an array of real numbers, got rows of unequal"),
    (lambda f, s: MatrixGaussian([["a"]]), "mean must be an array of real numbers, got dtype"),
    (lambda f, s: MatrixGaussian(np.zeros((0, 3))), r"mean must have at least one row and one column, got .* \(0, 3\)"),
    (lambda f, s: MatrixGaussian([[0.0, np.nan]]), r"mean must be finite, got nan at index \(0, 1\)"),
    (lambda f, s: MatrixGaussian(E, 0.0), "sigma0 must be a positive finite number, got 0.0"),
    (lambda f, s: MatrixGaussian(E, -1), "sigma0 must be a positive finite number, got -1"),
    (lambda f, s: MatrixGaussian(E, np.nan), "sigma0 must be a positive finite number, got nan"),
    (lambda f, s: MatrixGaussian(E, rows=Full(3)), r"rows must have dimension 2, got Full\(dim=3\)"),
    (lambda f, s: MatrixGaussian(E, cols=Full(2)), r"cols must have dimension 3, got Full\(dim=2\)"),
    (lambda f, s: MatrixGaussian(E, rows="ful"), r"unknown structure 'ful' \(did you mean 'full'\?\)"),
    (lambda f, s: MatrixGaussian(E, form="root"), "form must be 'covariance' or 'precision', got 'root'"),
    (lambda f, s: f.sample(s, -1, np.random.default_rng()), "n must be an integer >= 0, got -1"),
    (lambda f, s: f.log_density(s, np.zeros((3, 2))), r"x must have shape \(2, 3\), got \(3, 2\)"),
    (lambda f, s: f.log_density(s, np.zeros((5, 3, 2))), r"x must have shape \(n, 2, 3\), got \(5, 3, 2\)"),
    (lambda f, s: f.local(s, np.full((2, 3), np.nan)), "x must be finite, got nan"),
    (lambda f, s: f.natural_score(np.zeros((4, 6)), np.ones(4)), r"z must have shape \(n, 2, 3\), got \(4, 6\)"),
    (lambda f, s: f.natural_score(np.zeros((4, 2, 3)), np.ones(3)), r"weights must have shape \(4,\), got \(3,\)"),
    (lambda f, s: f.move(s, Step(np.zeros(6), np.zeros(13))), r"step.delta must have shape \(2, 3\), got \(6,\)"),
    (lambda f, s: f.move(s, Step(E, np.zeros(6))), r"step.m must have shape \(13,\), got \(6,\)"),
    (lambda f, s: f.move(s, Step(E, np.zeros(13)), "log"), "map must be 'h', 'exp' or 'linear', got 'log'"),
    (lambda f, s: f.entropy(State(np.zeros(6), s.root)), r"state.mean must have shape \(2, 3\), got \(6,\)"),
    (lambda f, s: f.entropy(State(E, s.root[:4])), r"state.root must have shape \(13,\), got \(4,\)"),
    (lambda f, s: f.entropy(State(E, 0 * s.root)), "must be invertible"),
]  # fmt: skip
TYPES = [
    (lambda f, s: MatrixGaussian(E, rows=3), "rows must be a group or a spelling such as 'full', got 3"),
    (lambda f, s: MatrixGaussian(E, exact=1), "exact must be True or False, got 1"),
    (lambda f, s: f.sample(s, 2, 1), r"rng must be a numpy.random.Generator, got 1"),
    (lambda f, s: f.entropy((E, s.root)), "state must be a State"),
    (lambda f, s: f.move(s, (E, s.root)), "step must be a Step"),
    (lambda f, s: f.move_samples(s, E, [1.0]), "samples must be a Samples"),
]


@pytest.mark.parametrize(("call", "message"), BAD + TYPES, ids=[m for _, m in BAD + TYPES])
def test_bad_input_is_named(call, message: str) -> None:
    family = MatrixGaussian(E)
    with pytest.raises(TypeError if (call, message) in TYPES else ValueError, match=message):
        call(family, family.state())


def test_arguments_are_neither_modified_nor_kept() -> None:
    mean = np.arange(6.0).reshape(2, 3)
    family = MatrixGaussian(mean, rows="triangular")
    mean[0, 0] = 99.0
    assert family.mean[0, 0] == 0.0
    assert not family.mean.flags.writeable
    state = State(frozen(family.state().mean), frozen(family.state().root))
    samples = family.sample(state, 3, np.random.default_rng(0))
    moved = family.move_samples(state, samples._replace(z=frozen(samples.z), x=frozen(samples.x)), frozen(np.ones(3)))
    assert not np.shares_memory(moved.root, state.root)
    assert not np.shares_memory(family.state().mean, family.mean)


def test_a_family_survives_a_pickle_and_equals_its_copy() -> None:
    family = MatrixGaussian(np.ones((2, 3)), 0.5, "triangular", Diagonal(3), "precision", False)
    copy = pickle.loads(pickle.dumps(family))
    assert copy == family and hash(copy) == hash(family)
    assert not copy.mean.flags.writeable
    for other in ({"sigma0": 1.0}, {"exact": True}, {"cols": "full"}, {"form": "covariance"}, {"mean": 0 * E}):
        assert replace(family, **other) != family
    assert family != 1
