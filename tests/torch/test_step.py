"""One step and several against the paper's equation (gauss_newton_matgauss), written out with dense matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: the tests of networks are skipped")

from esgroup.groups import Group, parse  # noqa: E402
from esgroup.torch import StructuredNGD  # noqa: E402
from esgroup.torch.frames import TensorFrame  # noqa: E402
from esgroup.torch.groups import tensor_group  # noqa: E402
from esgroup.torch.layers import LARGEST_LOCAL, Factors, Gradients, MatrixLayers, Roots, Side, shorten  # noqa: E402
from esgroup.torch.plan import side  # noqa: E402

D, P = 4, 6
SIDES = [
    "diagonal",
    "block_triangular:k=2",
    "block_triangular:k=1,upper",
    "heisenberg:k1=1,k2=2",
    "heisenberg:k1=2,k2=1,upper",
    "triangular",
    "triangular:upper",
    "toeplitz_triangular",
    "toeplitz_triangular:upper",
    "full",
]
# every structure on both sides, and no structure always with the same one
PAIRS = [(rows, SIDES[(i + shift) % len(SIDES)]) for i, rows in enumerate(SIDES) for shift in (0, 3)]
NUMBERS: dict[str, Any] = {
    "lr": 0.02,
    "momentum": 0.8,
    "curvature_lr": 0.07,
    "damping": 0.03,
    "first_precision": 0.6,
    "l2": 5e-4,
    "entropy": 0.7,
}
BATCH = 3


def h(m: np.ndarray) -> np.ndarray:
    return np.eye(len(m)) + m + m @ m / 2


class Dense:
    """The update with dense A and B, for all groups in covariance or precision form alike.

    M = rate / (2 d) {...} holds for symmetric M; with a group it is rate / d C (.) kappa{...}.
    """

    def __init__(self, mean: np.ndarray, rows: Group, cols: Group, refresh: int = 1, warm_up: float = 0.0) -> None:
        self.e, self.rows, self.cols, self.refresh, self.warm_up = mean.copy(), rows, cols, refresh, warm_up
        d, p = mean.shape
        self.b, self.a = (np.eye(n) * NUMBERS["first_precision"] ** 0.25 for n in (d, p))
        self.z, self.t = np.zeros_like(mean), 0

    def step(self, g: np.ndarray) -> None:
        (d, p), n = self.e.shape, NUMBERS
        self.t += 1
        warm = 1 - self.warm_up**self.t
        if (self.t - 1) % self.refresh == 0:
            rate, ridge = n["curvature_lr"] * warm, n["l2"] + n["damping"]
            u, v = np.linalg.inv(self.b @ self.b.T), np.linalg.inv(self.a @ self.a.T)
            ai, bi = np.linalg.inv(self.a), np.linalg.inv(self.b)
            gamma = n["entropy"]
            m_a = -d * gamma * np.eye(p) + ridge * np.trace(u) * ai @ ai.T + BATCH * ai @ g.T @ u @ g @ ai.T
            m_b = -p * gamma * np.eye(d) + ridge * np.trace(v) * bi @ bi.T + BATCH * bi @ g @ v @ g.T @ bi.T
            self.a = self.a @ h(rate / d * self.cols.dense_local(self.cols.project_dense(m_a)))
            self.b = self.b @ h(rate / p * self.rows.dense_local(self.rows.project_dense(m_b)))
        c1 = n["momentum"]
        self.z = c1 * self.z + (1 - c1) * (g + n["l2"] * self.e)
        beta = n["lr"] * warm / (1 - c1**self.t)
        self.e = self.e - beta * np.linalg.inv(self.b @ self.b.T) @ self.z @ np.linalg.inv(self.a @ self.a.T)


def gradients(count: int, shape: tuple[int, ...] = (D, P)) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [0.1 * rng.standard_normal(shape) for _ in range(count)]


def parameter(shape: tuple[int, ...] = (D, P)) -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.from_numpy(300 * np.random.default_rng(1).standard_normal(shape)))


def trained(p: torch.nn.Parameter, steps: list[np.ndarray], **options: Any) -> StructuredNGD:
    optimizer = StructuredNGD([p], batch_size=BATCH, **{**NUMBERS, **options})
    for g in steps:
        p.grad = torch.from_numpy(g)
        optimizer.step()
    return optimizer


def precision(optimizer: StructuredNGD, p: torch.nn.Parameter) -> np.ndarray:
    """A A^T (x) B B^T rows first, from the state."""
    layers, roots = optimizer._roots(p)
    grams = []
    for group, root, n in zip((layers.rows, layers.cols), roots, (D, P), strict=True):
        k = group.apply(root[None], torch.eye(n, dtype=torch.float64)[None])[0].mT.numpy()
        grams.append(np.linalg.inv(k.T @ k))
    return np.kron(*grams)


@pytest.mark.parametrize(("rows", "cols"), PAIRS)
def test_steps_are_the_papers_equation(rows: str, cols: str) -> None:
    p, steps = parameter(), gradients(4)
    wanted = Dense(p.detach().numpy(), parse(rows, D), parse(cols, P))
    optimizer = trained(p, steps, rows=rows, cols=cols, refresh=1)
    for g in steps:
        wanted.step(g)
    np.testing.assert_allclose(p.detach().numpy(), wanted.e, rtol=0, atol=1e-10)
    dense = np.kron(wanted.b @ wanted.b.T, wanted.a @ wanted.a.T)
    np.testing.assert_allclose(precision(optimizer, p), dense, rtol=0, atol=1e-10)
    assert np.abs(dense - np.eye(D * P) * NUMBERS["first_precision"]).max() > 0.02  # it has moved


@pytest.mark.parametrize("refresh", [2, 3])
def test_factors_move_in_every_step_with_the_given_distance(refresh: int) -> None:
    p, steps = parameter(), gradients(5)
    wanted = Dense(p.detach().numpy(), parse("full", D), parse("triangular", P), refresh=refresh)
    trained(p, steps, rows="full", cols="triangular", refresh=refresh)
    for g in steps:
        wanted.step(g)
    np.testing.assert_allclose(p.detach().numpy(), wanted.e, rtol=0, atol=1e-10)


def test_the_papers_step_sizes_are_an_option() -> None:
    p, steps = parameter(), gradients(4)
    wanted = Dense(p.detach().numpy(), parse("full", D), parse("full", P), warm_up=0.9)
    trained(p, steps, rows="full", cols="full", refresh=1, warm_up=0.9)
    for g in steps:
        wanted.step(g)
    np.testing.assert_allclose(p.detach().numpy(), wanted.e, rtol=0, atol=1e-10)


def test_the_first_step_in_a_frame_is_that_of_its_group() -> None:
    """Before the first turn the frame is a reflection of the first k coordinates; the mean moves in the turned one."""
    p, (g, *_) = parameter(), gradients(1)
    frame = TensorFrame(P, 2)
    first = frame.identity(torch.empty(0, dtype=torch.float64))
    wanted = Dense(p.detach().numpy(), parse("diagonal", D), frame.group_of(first))
    wanted.step(g)
    optimizer = trained(p, [g], rows="diagonal", cols="frame:k=2", refresh=1)
    layers, roots = optimizer._roots(p)
    f, d, _ = frame.parts(roots.cols[None])
    core = np.linalg.svd(np.linalg.inv(wanted.a), compute_uv=False)
    found = np.sort(np.concatenate([torch.linalg.svdvals(f[0]).numpy(), d[0, 0].numpy()]))[::-1]
    np.testing.assert_allclose(found, core, rtol=0, atol=1e-10)
    rows = np.linalg.inv(wanted.b @ wanted.b.T)
    k = layers.cols.apply(roots.cols[None], torch.eye(P, dtype=torch.float64)[None])[0].mT.numpy()
    z = g + NUMBERS["l2"] * parameter().detach().numpy()
    moved = parameter().detach().numpy() - NUMBERS["lr"] * rows @ z @ (k.T @ k)
    np.testing.assert_allclose(p.detach().numpy(), moved, rtol=0, atol=1e-10)


@pytest.mark.parametrize("wide", ["block_triangular:k=6", "block_triangular:k=40", "frame:k=6", "frame:k=40"])
def test_a_hub_of_all_coordinates_is_the_full_group(wide: str) -> None:
    one, other, steps = parameter(), parameter(), gradients(4)
    trained(one, steps, rows=wide, cols=wide, refresh=1)
    trained(other, steps, rows="full", cols="full", refresh=1)
    torch.testing.assert_close(one, other, rtol=0, atol=1e-12)


def test_convolutions_are_matrices() -> None:
    conv, matrix, steps = parameter((4, 3, 2, 1)), parameter((4, 3, 2, 1)).detach().reshape(4, 6), gradients(3, (4, 6))
    flat = torch.nn.Parameter(matrix.clone())
    trained(conv, [g.reshape(4, 3, 2, 1) for g in steps])
    trained(flat, steps)
    torch.testing.assert_close(conv.reshape(4, 6), flat, rtol=0, atol=0)


def test_vectors_have_a_diagonal_gaussian() -> None:
    p, steps, n = parameter((5,)), gradients(4, (5,)), NUMBERS
    e, s, z = p.detach().numpy().copy(), np.full(5, n["first_precision"]), np.zeros(5)
    trained(p, steps, refresh=1)
    for t, g in enumerate(steps, 1):
        m = n["curvature_lr"] / 2 * ((BATCH * g**2 + n["l2"] + n["damping"]) / s - n["entropy"])
        s = s * (1 + m + m**2 / 2) ** 2
        z = n["momentum"] * z + (1 - n["momentum"]) * (g + n["l2"] * e)
        e = e - n["lr"] / (1 - n["momentum"] ** t) * z / s
    np.testing.assert_allclose(p.detach().numpy(), e, rtol=0, atol=1e-10)


# ---- bounds on a step -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lr", "part"), [(1e3, 0.02), (0.003, 0.003)])
def test_a_matrix_changes_by_at_most_a_part_of_its_norm(lr: float, part: float) -> None:
    """Of the bound, the first step has one fiftieth."""
    p = parameter()
    before = p.detach().clone()
    trained(p, gradients(1), lr=lr, first_precision=1e-6, damping=0.0, l2=0.0)
    assert float((p.detach() - before).norm() / before.norm()) == pytest.approx(part / 50, rel=1e-6)


def test_the_bound_on_a_change_grows_over_fifty_steps() -> None:
    p, parts = parameter(), []
    optimizer = StructuredNGD([p], batch_size=BATCH, lr=1e3, first_precision=1e-6, damping=0.0, refresh=1000)
    for g in gradients(60):
        before = p.detach().clone()
        p.grad = torch.from_numpy(g)
        optimizer.step()
        parts.append(float((p.detach() - before).norm() / before.norm()))
    np.testing.assert_allclose(parts, 0.02 * np.minimum(np.arange(1, 61) / 50, 1), rtol=1e-6)


def test_zeros_can_be_left() -> None:
    p = torch.nn.Parameter(torch.zeros(D, P, dtype=torch.float64))
    trained(p, gradients(1), lr=1e3)
    assert float(p.detach().norm()) == pytest.approx(0.02 / 50 * 1e-2 * (D * P) ** 0.5, rel=1e-6)


def test_a_whitened_gradient_is_no_longer_than_that_of_a_mini_batch() -> None:
    p, (g, *_) = parameter(), gradients(1)
    before = p.detach().clone()
    big = trained(p, [1e6 * g], lr=1e-3, l2=0.0, rows="diagonal", cols="diagonal", refresh=1)
    moved = (before - p).detach().numpy() / 1e-3
    white = moved.ravel() @ precision(big, p) @ moved.ravel()  # |S^-1 Z|_S^2 = |K Z K^T|^2
    assert white == pytest.approx(D * P * NUMBERS["entropy"] / BATCH, rel=1e-6)


def test_factors_change_by_at_most_h_of_one() -> None:
    p, (g, *_) = parameter(), gradients(1)
    optimizer = trained(p, [1e8 * g], rows="full", cols="full", refresh=1)
    largest = np.linalg.eigvalsh(precision(optimizer, p)).max() / NUMBERS["first_precision"]
    assert 1 < largest <= 2.5**4 * (1 + 1e-9)
    assert torch.isfinite(p).all()


# ---- the Fisher matrix ----------------------------------------------------------------------------------------------


def test_fisher_blocks_are_those_of_the_paper() -> None:
    """F(M, M) = 2 d |M|^2 of symmetric M and 2 p |N|^2 of symmetric N: the Hessian of KL(q_0 || q_(M, N)) at 0."""
    rng = np.random.default_rng(2)
    a, b = (torch.from_numpy(rng.standard_normal((n, n)) + 2 * np.eye(n)) for n in (P, D))

    def gaussian(m: torch.Tensor, n: torch.Tensor) -> torch.distributions.MultivariateNormal:
        roots = [root @ torch.linalg.matrix_exp(step) for root, step in ((b, n), (a, m))]
        precision = torch.kron(*(root @ root.mT for root in roots))
        mean = torch.zeros(D * P, dtype=torch.float64)
        return torch.distributions.MultivariateNormal(mean, precision_matrix=precision)

    def symmetric(x: torch.Tensor, n: int) -> torch.Tensor:
        """Orthonormal coordinates of symmetric matrices."""
        rows, columns = torch.triu_indices(n, n)
        scale = torch.where(rows == columns, 1.0, 0.5**0.5).double()
        upper = torch.zeros(n, n, dtype=torch.float64).index_put((rows, columns), x * scale)
        return upper + upper.mT - torch.diag(upper.diagonal())

    zero_m, zero_n = torch.zeros(P, P, dtype=torch.float64), torch.zeros(D, D, dtype=torch.float64)
    start = gaussian(zero_m, zero_n)
    for size, block in ((P, 2 * D), (D, 2 * P)):

        def divergence(x: torch.Tensor, size: int = size) -> torch.Tensor:
            step = symmetric(x, size)
            other = gaussian(step, zero_n) if size == P else gaussian(zero_m, step)
            return torch.distributions.kl_divergence(start, other)

        count = size * (size + 1) // 2
        fisher = torch.func.hessian(divergence)(torch.zeros(count, dtype=torch.float64))
        torch.testing.assert_close(fisher, block * torch.eye(count, dtype=torch.float64), rtol=0, atol=1e-5)


def test_local_vectors_are_multiplied_by_the_rate_and_bounded_after_that() -> None:
    local = torch.tensor([[0.1, 0.0, 0.0], [3.0, 4.0, 0.0], [300.0, -400.0, 0.0]], dtype=torch.float64)
    shorten([Side(tensor_group("rows", parse("diagonal", 3)), torch.ones_like(local), local)], 0.1)
    wanted = LARGEST_LOCAL * torch.tensor([[0.01, 0.0, 0.0], [0.3, 0.4, 0.0], [0.6, -0.8, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(local, wanted, rtol=1e-12, atol=0)


@pytest.mark.parametrize("sides", [("diagonal", "frame:k=2"), ("block_triangular:k=2", "full")], ids=str)
def test_factors_of_a_curvature_move_a_layer_as_all_their_products_do(sides: tuple[str, str]) -> None:
    """(sum a a^T) (x) (sum b b^T) is the sum over all g = b a^T."""
    layers = MatrixLayers(side("rows", sides[0], D), side("cols", sides[1], P))
    source = torch.Generator().manual_seed(0)
    a, b = (torch.randn(2, n, size, generator=source, dtype=torch.float64) for n, size in ((3, P), (5, D)))
    roots = Roots(*(root.repeat(2, 1) for root in layers.first_roots(0.3, a)))
    products = torch.einsum("lip,ljd->lijdp", a, b).flatten(1, 2)
    found = layers.local_curvature(roots, Factors(a, b, 0.7), 0.2)
    for one, other in zip(found, layers.local_curvature(roots, Gradients(products, 0.7), 0.2), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
