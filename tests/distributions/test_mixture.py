"""Mixtures against scipy.stats, against the joint Fisher matrix rebuilt by quadrature, and against the Gaussian."""

import pickle

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import kstest, multivariate_normal, norm

from esgroup.distributions import Gaussian, State, Step
from esgroup.distributions.mixture import Mixture, MixtureState, MixtureStep
from esgroup.groups import BlockTriangular, Diagonal, Full, Group, Heisenberg, Triangular
from tests.groups import oracle
from tests.groups.elements import element
from tests.groups.laws import close

PARTS: list[tuple[Group, str]] = [(Full(2), "covariance"), (Triangular(2), "precision"), (Diagonal(2), "covariance")]
PI = np.array([0.5, 0.2, 0.3])


def some(parts: list[tuple[Group, str]], weights: np.ndarray | None, seed: int, learn: bool = True) -> tuple:
    """A mixture over some groups and a state of it that is not its first, with overlapping components."""
    rng = np.random.default_rng(seed)
    components = tuple(Gaussian(group, np.zeros(group.dim), form=form) for group, form in parts)
    mixture = Mixture(components, weights, learn)
    states = [State(0.8 * rng.standard_normal(mixture.dim), element(group, rng)) for group, _ in parts]
    return mixture, mixture.joined(states, mixture.state().log_weights), rng


def logs_of_parts(mixture: Mixture, state: MixtureState, x: np.ndarray) -> np.ndarray:
    """log(pi_k N_k(x)) by SciPy, (n, K)."""
    columns = []
    for gaussian, own, log_weight in zip(
        mixture.components, mixture.component_states(state), state.log_weights, strict=True
    ):
        root = gaussian.group.dense(own.root)
        sigma = root @ root.T if gaussian.form == "covariance" else np.linalg.inv(root @ root.T)
        columns.append(log_weight + np.atleast_1d(multivariate_normal(own.mean, sigma).logpdf(x)))
    return np.stack(columns, axis=-1)


# ---- density ----------------------------------------------------------------------------------------------------


def test_density_and_responsibilities_are_those_of_scipys_normals() -> None:
    mixture, state, rng = some(PARTS, PI, 0)
    x = 2 * rng.standard_normal((7, 2))
    logs = logs_of_parts(mixture, state, x)
    close(mixture.log_density(state, x), logsumexp(logs, axis=1))
    close(mixture.log_density(state, x[3]), logsumexp(logs[3]))
    close(mixture.responsibilities(state, x), np.exp(logs - logsumexp(logs, axis=1)[:, None]))
    close(mixture.responsibilities(state, x[3]), mixture.responsibilities(state, x)[3])


def test_responsibilities_sum_to_one_where_all_densities_underflow() -> None:
    mixture, state, _ = some(PARTS, PI, 0)
    x = np.array([[1e5, -1e5], [3e4, 0.0]])
    assert mixture.log_density(state, x).max() < -1e6
    close(mixture.responsibilities(state, x).sum(axis=1), 1.0)


def test_mean_and_covariance_are_those_of_the_samples() -> None:
    mixture, state, rng = some(PARTS, PI, 1)
    n = 200_000
    x = mixture.sample(state, n, rng).x
    sigma = mixture.dense_covariance(state)
    assert np.abs((x.mean(axis=0) - mixture.mean(state)) / np.sqrt(np.diagonal(sigma) / n)).max() < 5
    centerd = x - x.mean(axis=0)
    products = centerd[:, :, None] * centerd[:, None, :]
    assert np.abs((products.mean(axis=0) - sigma) / (products.std(axis=0) / np.sqrt(n))).max() < 5


def test_samples_of_one_coordinate_have_the_distribution_function_of_the_mixture() -> None:
    mixture = Mixture((Gaussian("full", [-1.0], sigma0=0.5), Gaussian("full", [2.0], sigma0=1.5)), [0.3, 0.7])
    samples = mixture.sample(mixture.state(), 20_000, np.random.default_rng(2))

    def cdf(x: np.ndarray) -> np.ndarray:
        return 0.3 * norm.cdf(x, -1, 0.5) + 0.7 * norm.cdf(x, 2, 1.5)

    assert kstest(samples.x[:, 0], cdf).pvalue > 1e-3
    assert abs((samples.labels == 0).mean() - 0.3) < 5 * np.sqrt(0.21 / 20_000)


def test_a_sample_is_the_point_of_its_local_coordinates_in_its_component() -> None:
    mixture, state, rng = some(PARTS, PI, 3)
    samples, states = mixture.sample(state, 50, rng), mixture.component_states(state)
    for z, x, k in zip(*samples, strict=True):
        close(x, mixture.components[k].points(states[k], z[None]).x[0])
    assert set(samples.labels) == {0, 1, 2}


def test_entropy_is_that_of_an_integral() -> None:
    mixture = Mixture((Gaussian("full", [-1.0], sigma0=0.5), Gaussian("full", [2.0], sigma0=1.5)), [0.3, 0.7])
    state = mixture.state()

    def integrand(x: float) -> float:
        q = 0.3 * norm.pdf(x, -1, 0.5) + 0.7 * norm.pdf(x, 2, 1.5)
        return float(-q * np.log(q))

    exact, n = quad(integrand, -15, 20, limit=200)[0], 100_000
    spread = mixture.log_density(state, mixture.sample(state, n, np.random.default_rng(5)).x).std()
    assert abs(mixture.entropy(state, n, np.random.default_rng(4)) - exact) < 5 * spread / np.sqrt(n)


# ---- natural gradients ------------------------------------------------------------------------------------------


def local_directions(mixture: Mixture) -> list[MixtureStep]:
    """A basis of the local space: deltas, matrices of every group's local space, logits."""
    zero = MixtureStep(np.zeros((mixture.count, mixture.dim)), np.zeros(mixture._cuts[-1]), np.zeros(mixture.count - 1))
    steps = []
    for k, gaussian in enumerate(mixture.components):
        for j in range(mixture.dim):
            deltas = zero.deltas.copy()
            deltas[k, j] = 1.0
            steps.append(zero._replace(deltas=deltas))
        for matrix in oracle.local_basis(gaussian.group):
            ms = zero.ms.copy()
            ms[mixture._cuts[k] : mixture._cuts[k + 1]] = gaussian.group.from_dense(matrix)
            steps.append(zero._replace(ms=ms))
    return steps + [zero._replace(logits=row) for row in np.eye(mixture.count - 1)]


def along(mixture: Mixture, state: MixtureState, direction: MixtureStep, slope_of, step: float = 1e-5):
    """The derivative of a function of the state along a direction."""
    up, down = (mixture.move(state, direction.scaled(s * step), "exp") for s in (1.0, -1.0))
    return (slope_of(up) - slope_of(down)) / (2 * step)


@pytest.mark.parametrize("seed", range(3))
def test_the_natural_score_solves_the_joint_fisher_matrix(seed: int) -> None:
    """F = sum_k pi_k E_k[s s^T], s the slopes of log(pi_k N_k(x)), with 6 x 6 nodes: s has degree 2, so F is exact."""
    mixture, state, rng = some(PARTS, PI, 10 + seed)
    directions = local_directions(mixture)
    nodes, node_weights = np.polynomial.hermite_e.hermegauss(6)
    grid = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
    grid_weights = np.outer(node_weights, node_weights).ravel() / (2 * np.pi)
    fisher = np.zeros((len(directions), len(directions)))
    for k, (gaussian, own) in enumerate(zip(mixture.components, mixture.component_states(state), strict=True)):
        x = gaussian.points(own, grid).x
        scores = np.array(
            [along(mixture, state, d, lambda s, x=x, k=k: logs_of_parts(mixture, s, x)[:, k]) for d in directions]
        )
        fisher += PI[k] * (scores * grid_weights) @ scores.T
    x, weights = 1.5 * rng.standard_normal((5, 2)), rng.standard_normal(5)
    slopes = [
        along(mixture, state, d, lambda s: weights @ logsumexp(logs_of_parts(mixture, s, x), axis=1))
        for d in directions
    ]
    coefficients = np.linalg.solve(fisher, slopes)
    found = mixture.natural_score(state, x, weights)
    for name in MixtureStep._fields:
        expected = sum(c * getattr(d, name) for c, d in zip(coefficients, directions, strict=True))
        close(getattr(found, name), expected, 1e-6)


def test_the_joint_fisher_matrix_of_the_logits_is_not_that_of_a_diagonal() -> None:
    """With x owned by component 0 alone, F^-1 (r - pi) = (1/pi_0, 0): solve(diag(pi) - pi pi^T, e_0 - pi)."""
    components = tuple(Gaussian("full", [m], sigma0=0.1) for m in (0.0, 100.0, 200.0))
    mixture = Mixture(components, PI, learn_weights=True)
    found = mixture.natural_score(mixture.state(), [[0.05]], [1.0])
    close(found.logits, [1 / PI[0], 0.0])
    found = mixture.natural_score(mixture.state(), [[200.05]], [1.0])
    close(found.logits, [-1 / PI[2], -1 / PI[2]])


def test_the_sampled_natural_gradient_is_unbiased() -> None:
    """Of E f = sum_k pi_k E_k f: in each component that of the Gaussian, in the logits E_k f - E_K f."""
    mixture, state, rng = some(PARTS, PI, 20)
    q = rng.standard_normal((2, 2))
    q, c = q + q.T, rng.standard_normal(2)
    x = mixture.sample(state, 200_000, rng).x
    f = x @ c + 0.5 * np.vecdot(x @ q, x) + (x**3).sum(axis=1) / 6
    deltas, ms, means = [], [], []
    for gaussian, own in zip(mixture.components, mixture.component_states(state), strict=True):
        sigma, mean = gaussian.dense_covariance(own), own.mean
        g_mean = c + q @ mean + (mean**2 + np.diagonal(sigma)) / 2
        step = gaussian.natural_gradient(own, g_mean, (q + np.diag(mean)) / 2)
        deltas.append(step.delta)
        ms.append(step.m)
        cubic = (mean**3 + 3 * mean * np.diagonal(sigma)).sum() / 6
        means.append(mean @ c + 0.5 * (mean @ q @ mean + np.trace(q @ sigma)) + cubic)
    exact = MixtureStep(np.array(deltas), np.concatenate(ms), np.array(means[:-1]) - means[-1])
    f = f - PI @ means  # a baseline lowers the variance and changes no mean
    chunks = [
        mixture.natural_score(state, part, w / len(w))
        for part, w in zip(np.split(x, 100), np.split(f, 100), strict=True)
    ]
    for name in MixtureStep._fields:
        values = np.array([getattr(step, name) for step in chunks])
        error = values.std(axis=0, ddof=1) / 10 + 1e-12
        assert np.abs((values.mean(axis=0) - getattr(exact, name)) / error).max() < 5


def test_components_that_coincide_have_the_natural_score_of_one_gaussian() -> None:
    """The Fisher matrix of q itself is singular there."""
    rng = np.random.default_rng(6)
    gaussian = Gaussian("full", [0.3, -0.2], covariance=[[2.0, 0.5], [0.5, 1.0]])
    mixture = Mixture((gaussian, gaussian, gaussian), PI)
    state, x, weights = mixture.state(), rng.standard_normal((6, 2)), rng.standard_normal(6)
    step, alone = (
        mixture.natural_score(state, x, weights),
        gaussian.natural_score(gaussian.local(gaussian.state(), x), weights),
    )
    for k in range(3):
        close(step.deltas[k], alone.delta)
        close(mixture._part(step.ms, k), alone.m)


def test_weights_stay_unless_they_are_learned() -> None:
    mixture, state, rng = some(PARTS, PI, 7, learn=False)
    step = mixture.natural_score(state, rng.standard_normal((4, 2)), rng.standard_normal(4))
    assert not step.logits.any()
    close(mixture.mixing_weights(mixture.move(state, step)), PI)
    learned, state, _ = some(PARTS, PI, 7, learn=True)
    assert np.abs(learned.natural_score(state, rng.standard_normal((4, 2)), rng.standard_normal(4)).logits).min() > 0


def test_a_move_adds_to_the_logits_and_moves_every_gaussian() -> None:
    mixture, state, rng = some(PARTS, PI, 8)
    step = MixtureStep(rng.standard_normal((3, 2)), 0.1 * rng.standard_normal(mixture._cuts[-1]), np.array([0.5, -1.0]))
    moved = mixture.move(state, step)
    expected = PI * np.exp([0.5, -1.0, 0.0])
    close(mixture.mixing_weights(moved), expected / expected.sum())
    for k, (gaussian, own) in enumerate(zip(mixture.components, mixture.component_states(state), strict=True)):
        alone = gaussian.move(own, Step(step.deltas[k], mixture._part(step.ms, k)))
        close(moved.means[k], alone.mean)
        close(mixture._part(moved.roots, k), alone.root)


def test_a_scaled_step_has_one_rate_or_three() -> None:
    step = MixtureStep(np.ones((2, 1)), np.ones(3), np.ones(1))
    assert [float(part.ravel()[0]) for part in step.scaled(0.5)] == [0.5, 0.5, 0.5]
    assert [float(part.ravel()[0]) for part in step.scaled(0.5, 0.2, 0.1)] == [0.5, 0.2, 0.1]


# ---- one component ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["covariance", "precision"])
@pytest.mark.parametrize("group", [Full(4), Diagonal(4), Heisenberg(4, 1, 1), BlockTriangular(4, 2, False)], ids=repr)
def test_one_component_is_the_gaussian_step_for_step(group: Group, form: str) -> None:
    gaussian = Gaussian(group, np.arange(4.0), sigma0=0.7, form=form)
    mixture = Mixture((gaussian,))
    state, own = mixture.state(), gaussian.state()
    rngs = np.random.default_rng(9), np.random.default_rng(9)
    for _ in range(5):
        samples, alone = mixture.sample(state, 8, rngs[0]), gaussian.sample(own, 8, rngs[1])
        close(samples.x, alone.x, 1e-12)
        weights = np.linspace(0.2, -0.2, 8)
        close(mixture.log_density(state, samples.x), gaussian.log_density(own, alone.x), 1e-12)
        state = mixture.move(state, mixture.natural_score(state, samples.x, weights))
        own = gaussian.move(own, gaussian.natural_score(alone.z, weights))
        close(state.means[0], own.mean)
        close(state.roots, own.root)
    close(mixture.entropy(state, 1, rngs[0]), gaussian.entropy(own))
    close(mixture.mean(state), own.mean)
    close(mixture.dense_covariance(state), gaussian.dense_covariance(own))


# ---- construction -----------------------------------------------------------------------------------------------


def test_mixtures_survive_pickling_and_know_their_equals() -> None:
    mixture = Mixture([Gaussian("full", [0.0, 1.0]), Gaussian("diagonal", [1.0, 0.0])], [0.25, 0.75], True)
    again = pickle.loads(pickle.dumps(mixture))
    assert again == mixture
    assert hash(again) == hash(mixture)
    assert not again.weights.flags.writeable
    assert again != Mixture(mixture.components, [0.75, 0.25], True)
    assert again != Mixture(mixture.components, [0.25, 0.75], False)
    assert Mixture(mixture.components) == Mixture(mixture.components, [0.5, 0.5])
    assert again != "mixture"


def test_what_was_given_is_not_changed_and_not_shared() -> None:
    weights = np.array([0.25, 0.75])
    mixture = Mixture((Gaussian("full", [0.0]), Gaussian("full", [1.0])), weights)
    weights[0] = 0.5
    close(mixture.weights, [0.25, 0.75])
    state = mixture.state()
    state.means[:] = 7.0
    close(mixture.state().means, [[0.0], [1.0]])


def test_components_are_spread_over_a_box() -> None:
    box = [(-1.0, 3.0), (10.0, 11.0)]
    mixture = Mixture.spread(16, bounds=box, structure="diagonal", rng=0)
    means = mixture.state().means
    assert (means >= [-1, 10]).all()
    assert (means <= [3, 11]).all()
    assert len(np.unique(((means - [-1, 10]) / [2, 0.5]).astype(int), axis=0)) == 4  # some in every quarter
    gaps = np.abs((means[:, None] - means) / [4, 1]).max(axis=2) + np.eye(16)
    assert gaps.min() > 0.5 / 4  # on a grid of 16 it would be 1/4
    gaussian = mixture.components[0]
    close(gaussian.dense_covariance(gaussian.state()), np.diag([4.0, 1.0]) ** 2 / 12 / 16)
    assert mixture == Mixture.spread(16, bounds=box, structure="diagonal", rng=0)
    assert mixture != Mixture.spread(16, bounds=box, structure="diagonal", rng=1)


def test_components_are_spread_around_a_point() -> None:
    mixture = Mixture.spread(400, mean=[5.0, -5.0, 0.0], sigma0=2.0, rng=0)
    means = mixture.state().means
    close(means.mean(axis=0), [5, -5, 0], 0.05)
    close(means.std(axis=0), 2.0, 0.05)
    close(mixture.components[3].sigma0, 2.0 * 400 ** (-1 / 3))
    assert mixture.components[0].group == Full(3)


def two(**options) -> Mixture:
    return Mixture((Gaussian("full", [0.0, 0.0]), Gaussian("full", [1.0, 1.0])), **options)


@pytest.mark.parametrize(("make", "message"), [
    (lambda: two(weights=[0.5, 0.6]), "weights must sum to 1, got a sum of 1.1"),
    (lambda: two(weights=[1.5, -0.5]), "weights must be positive, got -0.5 at index 1"),
    (lambda: two(weights=[1.0, 0.0]), "weights must be positive, got 0.0 at index 1"),
    (lambda: two(weights=[1.0]), r"weights must have shape \(2,\), got \(1,\)"),
    (lambda: two(weights=[np.nan, 1.0]), "weights must be finite"),
    (lambda: two(learn_weights=1), "learn_weights must be True or False, got 1"),
    (lambda: Mixture(()), "components must be a tuple of at least one Gaussian"),
    (lambda: Mixture(Gaussian("full", [0.0])), "components must be a tuple of at least one Gaussian"),
    (lambda: Mixture((Gaussian("full", [0.0]), "full")), r"components\[1\] must be a Gaussian, got 'full'"),
    (lambda: Mixture((Gaussian("full", [0.0]), Gaussian(Full(1)))), r"components\[1\] must have a mean"),
    (lambda: Mixture((Gaussian("full", [0.0]), Gaussian("full", [0.0, 1.0]))),
     r"components\[1\] must have the dimension of components\[0\], 1, got 2"),
    (lambda: Mixture.spread(0, bounds=[(0, 1)]), "count must be an integer >= 1, got 0"),
    (lambda: Mixture.spread(3), "either bounds or mean .* must be given, got bounds=None and mean=None"),
    (lambda: Mixture.spread(3, mean=[0.0]), "sigma0 must be a positive finite number, got None"),
    (lambda: Mixture.spread(3, mean=[0.0], bounds=[(0, 1)]), r"either bounds or mean .* got bounds=\[\(0, 1\)\]"),
    (lambda: Mixture.spread(3, sigma0=1.0, bounds=[(0, 1)]), "sigma0 must be left out if bounds are given, .* got 1.0"),
    (lambda: Mixture.spread(3, bounds=[(0, 1), (2, 2)]), r"bounds must have lower < upper, got \(2.0, 2.0\) for"),
    (lambda: Mixture.spread(3, bounds=(0, 1)), r"bounds must have shape \(n, 2\), got \(2,\)"),
    (lambda: two().sample(two().state(), -1, np.random.default_rng(0)), "n must be an integer >= 0, got -1"),
    (lambda: two().sample(two().state(), 1, 3), "rng must be a numpy.random.Generator, got 3"),
    (lambda: two().log_density(Gaussian("full", [0.0]).state(), [[0.0, 0.0]]), "state must be a MixtureState"),
    (lambda: two().log_density(two().state(), [0.0]), r"x must have shape"),
    (lambda: two().natural_score(two().state(), [[0.0, 0.0]], [1.0, 2.0]), r"weights must have shape \(1,\)"),
    (lambda: two().move(two().state(), None), "step must be a MixtureStep, got None"),
    (lambda: two().move(two().state(), MixtureStep(np.zeros((2, 2)), np.zeros(8), np.zeros(2))),
     r"step.logits must have shape \(1,\), got \(2,\)"),
])  # fmt: skip
def test_what_is_wrong_is_refused_with_a_reason(make, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make()
