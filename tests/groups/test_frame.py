"""Frames: the laws of groups as far as directions that move can obey them, and a step against dense matrices."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esgroup import Gaussian, MatrixGaussian, Wishart
from esgroup.checks import Array
from esgroup.files.objects import build, describe
from esgroup.groups import (
    BlockDiagonal,
    Conjugate,
    Diagonal,
    Frame,
    Full,
    Heisenberg,
    Kronecker,
    SingularElementError,
    parse,
)
from esgroup.groups.frame import furthest
from tests.groups.elements import axes_of, covariance, frozen
from tests.groups.laws import close
from tests.groups.strangers import Scalar

Rng = np.random.Generator
sizes = st.integers(1, 9).flatmap(lambda dim: st.tuples(st.just(dim), st.integers(0, dim)))
seeds = st.integers(0, 2**32 - 1)


def element(dim: int, k: int, rng: Rng) -> Array:
    return frozen(Frame.pack(*axes_of(dim, k, rng)))


def definition(bulk: float, ratios: Array, u: Array) -> Array:
    dim = u.shape[1]
    return bulk * (np.eye(dim) + u.T @ np.diag(ratios - 1.0) @ u)


@given(size=sizes, seed=seeds)
def test_an_element_acts_as_its_matrix(size: tuple[int, int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = axes_of(*size, rng)
    frame, a, dense = Frame(*size), frozen(Frame.pack(*parts)), definition(*parts)
    close(frame.dense(a), dense)
    x = frozen(rng.standard_normal((3, frame.dim)))
    close(frame.apply(a, x), x @ dense)
    close(frame.apply_transposed(a, x), x @ dense)
    close(frame.solve(a, x) @ dense, x)
    close(frame.solve_transposed(a, x) @ dense, x)
    close(frame.dense(frame.inverse(a)) @ dense, np.eye(frame.dim))
    close(frame.log_abs_det(a), np.linalg.slogdet(dense)[1])
    close(frame.squared_norm(a), (dense**2).sum())
    close(frame._squared_row_norms(a), np.diagonal(dense @ dense.T))
    close(frame._squared_column_norms(a), np.diagonal(dense.T @ dense))
    close(frame.dense(frame.scale(a, 2.5)), 2.5 * dense)
    close(frame.dense(frame.transpose(a)), dense.T)
    close(frame.dense(frame.identity()), np.eye(frame.dim))
    assert frame.transposed == frame and len(frame.identity()) == frame.size == len(a)


@given(size=sizes, seed=seeds)
def test_points_are_placed_by_the_matrix(size: tuple[int, int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame, a = Frame(*size), element(*size, rng)
    z, y, x = rng.standard_normal((4, size[0])), np.empty((4, size[0])), np.empty((3, size[0]))
    path, mean, scale = (frozen(rng.uniform(0.5, 2.0, size[0])) for _ in range(3))
    frame._place(0, a, path, mean, np.array([0.7]), scale, z, y, x)
    close(z[-1], path)
    close(y, z @ frame.dense(a))
    close(x, mean + 0.7 * scale * (z @ frame.dense(a))[:3])


def test_blocks_of_columns_are_the_same_as_all_at_once() -> None:
    """The loop goes over 2048 columns at a time."""
    rng = np.random.default_rng(3)
    bulk, s, u = axes_of(4500, 3, rng)
    x = rng.standard_normal((2, 4500))
    close(Frame(4500, 3).apply(Frame.pack(bulk, s, u), x), bulk * (x + (x @ u.T) * (s - 1.0) @ u))


@given(size=sizes, seed=seeds)
def test_products_are_exact_where_the_directions_are_the_same(size: tuple[int, int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    bulk, ratios, u = axes_of(*size, rng)
    frame, a, b = Frame(*size), Frame.pack(bulk, ratios, u), Frame.pack(1.3, 1.0 + ratios, u)
    close(frame.dense(frame.product(a, b)), frame.dense(a) @ frame.dense(b), 1e-8)


def nearest(matrix: Array, k: int, bulk: float) -> Array:
    """A A^T with the k axes whose lengths are furthest from the bulk, and that of the bulk elsewhere."""
    values, vectors = np.linalg.eigh(matrix @ matrix.T)
    logs = np.log(values / bulk**2)
    logs[np.argsort(-np.abs(logs))[k:]] = 0.0
    return bulk**2 * (vectors * np.exp(logs)) @ vectors.T


@given(seed=seeds)
def test_products_are_otherwise_the_nearest_with_as_many_directions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame, a, b = Frame(8, 3), element(8, 3, rng), element(8, 3, rng)
    found = frame.dense(frame.product(a, b))
    bulk = float(a[0] * b[0])
    close(found @ found.T, nearest(frame.dense(a) @ frame.dense(b), 3, bulk), 1e-8)


# ---- dense matrices and covariances -------------------------------------------------------------------------------


@given(size=sizes, seed=seeds)
def test_a_matrix_of_the_structure_is_packed_again(size: tuple[int, int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame, a = Frame(*size), element(*size, rng)
    dense = frame.dense(a)
    close(frame.dense(frame.from_dense(dense)), dense, 1e-9)
    found = frame.dense(frame.from_covariance(dense @ dense.T))
    close(found @ found.T, dense @ dense.T, 1e-8)


def test_a_matrix_of_another_structure_is_refused() -> None:
    rng = np.random.default_rng(1)
    for matrix in (rng.standard_normal((6, 6)), covariance(6, rng), -np.eye(6)):
        with pytest.raises(ValueError, match="matrix must have the structure of Frame"):
            Frame(6, 2).from_dense(matrix)


def distance(frame: Frame, a: Array, sigma: Array) -> float:
    """The affine-invariant distance: the length of the logarithms of the eigenvalues of C^-1 Sigma."""
    inverse = np.linalg.inv(frame.dense(a))
    return float(np.linalg.norm(np.log(np.linalg.eigvalsh(inverse @ sigma @ inverse.T))))


@given(seed=seeds)
def test_a_covariance_is_met_as_nearly_as_k_directions_can(seed: int) -> None:
    """By no other choice of its axes, and by no element nearby."""
    rng = np.random.default_rng(seed)
    frame, sigma = Frame(6, 2), covariance(6, rng)
    best = frame.from_covariance(sigma)
    least = distance(frame, best, sigma)
    values, vectors = np.linalg.eigh(sigma)
    for kept in itertools.combinations(range(6), 2):
        others = [i for i in range(6) if i not in kept]
        bulk = np.exp(np.log(values[others]).mean() / 2)
        other = frame.pack(bulk, np.sqrt(values[list(kept)]) / bulk, vectors.T[list(kept)])
        assert distance(frame, other, sigma) > least - 1e-10
    for _ in range(5):
        turned = np.linalg.qr((frame.axes(best).directions + 1e-3 * rng.standard_normal((2, 6))).T)[0].T
        lengths = frame.axes(best).ratios * np.exp(1e-3 * rng.standard_normal(2))
        away = frame.pack(best[0] * np.exp(1e-3 * rng.standard_normal()), lengths, turned)
        assert distance(frame, away, sigma) > least - 1e-7


# ---- the step -----------------------------------------------------------------------------------------------------


def dense_step(
    dim: int, parts: tuple[float, Array, Array], g: Array, *, scaled: bool = True, still: bool = False
) -> tuple[Array, Array, Array]:
    """Q, M and A h(m) h(M - m I) from a symmetric matrix G in local coordinates: long axes, others, short axes.

    `still`: others stay as they are, as where sigma says how large they are.
    """
    _, ratios, u = parts
    longs, shorts = u[ratios >= 1.0], u[ratios < 1.0]
    others = np.linalg.svd(u)[2][len(u) :] if len(u) else np.eye(dim)
    q = np.vstack([longs, others, shorts]).T
    first, last = len(longs), dim - len(shorts)
    inside = q.T @ g @ q
    m = np.tril(np.ones((dim, dim)))
    m[:first, :first] = m[last:, last:] = 0.5
    m[first:last, first:last] = 0.0
    m *= inside
    middle = 0.0
    if last > first and not still:
        middle = 0.5 * np.trace(inside[first:last, first:last]) / (last - first)
        m[first:last, first:last] = middle * np.eye(last - first)
    if scaled:
        outside = g @ u.T - u.T @ (u @ g @ u.T)
        among = np.abs(u @ g @ u.T - 2 * middle * np.eye(len(u))).max(initial=0.0)
        largest = max(1.0, np.abs(outside).max(initial=0.0), among, abs(middle))
        m, middle = m / largest, middle / largest
    rest = m - middle * np.eye(dim)
    step = (1 + middle + middle**2 / 2) * (np.eye(dim) + rest + rest @ rest / 2)
    return q, m, definition(*parts) @ q @ step @ q.T


@given(size=sizes, seed=seeds, strength=st.sampled_from([0.05, 0.3, 3.0]))
def test_a_step_is_the_nearest_element_to_that_of_the_group(size: tuple[int, int], seed: int, strength: float) -> None:
    rng = np.random.default_rng(seed)
    dim, k = size
    parts = axes_of(dim, k, rng)
    frame, a = Frame(dim, k), frozen(Frame.pack(*parts))
    z, weights, shift = rng.standard_normal((5, dim)), strength * rng.standard_normal(5), 0.3 * strength
    g = (z.T * weights) @ z - shift * np.eye(dim)
    _, m, moved = dense_step(dim, parts, g)
    bulk = parts[0]
    if k < dim:
        middle = m[(parts[1] >= 1.0).sum(), (parts[1] >= 1.0).sum()]
        bulk = bulk * (1.0 + middle + middle**2 / 2)
    found = frame.dense(frame.product_h_samples(a, frozen(z), frozen(weights), shift))
    close(found @ found.T, nearest(moved, k, bulk), 1e-5)
    if k < dim:
        close(frame.product_h_samples(a, z, weights, shift)[0], bulk)
    out = a.copy()
    assert frame.product_h_samples(a, z, weights, shift, out=out) is out
    close(frame.dense(out), found)


@given(seed=seeds)
def test_the_step_of_directions_held_in_place_is_that_of_the_heisenberg_group(seed: int) -> None:
    """M is the group's natural gradient, with all other directions alike, and the step is an element of the group."""
    rng = np.random.default_rng(seed)
    parts = 1.0, np.array([2.0, 3.0, 0.4]), np.linalg.qr(rng.standard_normal((7, 3)))[0].T
    z, weights = rng.standard_normal((4, 7)), 0.1 * rng.standard_normal(4)
    q, m, moved = dense_step(7, parts, (z.T * weights) @ z - 0.2 * np.eye(7), scaled=False)
    group = Conjugate(Heisenberg(7, 2, 1), q)
    gradient = q.T @ group.dense_local(group.project(z, weights, 0.2)) @ q
    gradient[2:6, 2:6] = np.trace(gradient[2:6, 2:6]) / 4 * np.eye(4)
    close(m, gradient)
    group.from_dense(moved)


def test_without_axes_a_step_is_that_of_multiples_of_the_identity() -> None:
    rng = np.random.default_rng(8)
    frame, z, weights = Frame(5, 0), rng.standard_normal((4, 5)), 0.1 * rng.standard_normal(4)
    a = np.array([1.7])
    close(frame.product_h_samples(a, z, weights, 0.2), Scalar(5).product_h_samples(a, z, weights, 0.2))


def test_with_as_many_long_axes_as_coordinates_a_step_is_that_of_the_full_group() -> None:
    rng = np.random.default_rng(9)
    bulk, _, u = axes_of(5, 5, rng)
    frame, full = Frame(5), Full(5)
    a = frame.pack(bulk, 1.0 + rng.random(5), u)
    z, weights = rng.standard_normal((4, 5)), 0.1 * rng.standard_normal(4)
    found = frame.dense(frame.product_h_samples(a, z, weights, 0.2))
    wanted = full.dense(full.product_h_samples(frame.dense(a).ravel(), z, weights, 0.2))
    close(found @ found.T, wanted @ wanted.T)


def test_long_and_short_axes_keep_the_volume_that_the_step_gives_them() -> None:
    """A short axis in the lower block would shrink with every turn: its determinant is not that of what is kept."""
    rng = np.random.default_rng(2)
    for ratio in (0.05, 20.0):
        frame = Frame(30, 1)
        a = frame.pack(1.0, np.array([ratio]), np.eye(1, 30))
        logs = []
        for _ in range(400):
            z = rng.standard_normal((2, 30))
            weights = np.array([0.05, -0.05])  # nothing to learn
            moved = frame.product_h_samples(a, z, weights, 0.0)
            logs.append(np.log(frame.axes(moved).ratios[0] / ratio))  # relative to the others
        assert abs(np.mean(logs)) < 5 * np.std(logs) / np.sqrt(len(logs)) + 2e-3


def test_with_as_many_directions_as_coordinates_nothing_is_lost() -> None:
    rng = np.random.default_rng(4)
    parts = axes_of(5, 5, rng)
    frame, a = Frame(5), Frame.pack(*parts)
    for _ in range(5):
        z, weights = rng.standard_normal((4, 5)), 0.1 * rng.standard_normal(4)
        expected = dense_step(5, tuple(frame.axes(a)), (z.T * weights) @ z)[2]
        a = frame.product_h_samples(a, z, weights, 0.0)
        close(frame.dense(a) @ frame.dense(a).T, expected @ expected.T)


def test_the_directions_stay_orthonormal_over_many_steps() -> None:
    rng = np.random.default_rng(5)
    frame, a = Frame(40, 6), element(40, 6, rng)
    for _ in range(200):
        a = frame.product_h_samples(a, rng.standard_normal((10, 40)), 0.02 * rng.standard_normal(10), 0.0)
    u = frame.axes(a).directions
    close(u @ u.T, np.eye(6), 1e-6)


def test_the_shortest_axis_may_be_kept_in_any_case() -> None:
    small = np.diag([3.0, 0.9, 2.0])
    assert sorted(furthest(small, np.eye(3), 2)[0]) == pytest.approx([2.0, 3.0])
    assert sorted(furthest(small, np.eye(3), 2, shortest=True)[0]) == pytest.approx([0.9, 3.0])


# ---- what a frame is, and what it refuses -------------------------------------------------------------------------


def test_a_spelling_fixes_the_number_of_directions_or_leaves_it_open() -> None:
    assert parse("frame", 50) == Frame(50) and parse("frame:k=8", 50) == Frame(50, 8)
    assert Frame(50).first == 4 and Frame(5).first == 2 and Frame(1).first == 0 and Frame(5, 5).first == 5
    assert Frame(50).size == 1 + 4 * 51 and Frame(50, 2).dof == 1 + 2 * 50 - 1 and Frame(4, 4).dof == 10


@pytest.mark.parametrize("frame", [Frame(6), Frame(6, 2)])
def test_a_frame_comes_back_from_json(frame: Frame) -> None:
    description, arrays = describe(frame)
    assert build(json.loads(json.dumps(description)), arrays) == frame


def test_elements_may_have_another_number_of_directions_unless_it_was_given() -> None:
    rng = np.random.default_rng(6)
    a = element(6, 3, rng)
    close(Frame(6).dense(a), Frame(6, 3).dense(a))
    with pytest.raises(ValueError, match=r"a must have 15 numbers for Frame\(dim=6, k=2\), got 22"):
        Frame(6, 2).dense(a)
    with pytest.raises(ValueError, match=r"a must have 1 \+ 7 k numbers .* got 10"):
        Frame(6).dense(np.ones(10))


def test_what_needs_a_local_space_is_refused_by_name() -> None:
    frame = Frame(4, 1)
    for call in (
        lambda: frame.project(np.ones((1, 4)), [1.0]),
        lambda: frame.project_dense(np.eye(4)),
        lambda: frame.h(np.ones(frame.size)),
        lambda: frame.exp(np.ones(frame.size)),
        lambda: frame.product_h(frame.identity(), np.ones(frame.size)),
        lambda: frame.dense_local(np.ones(frame.size)),
    ):
        with pytest.raises(ValueError, match=r"Frame.* has no local space, because its directions follow a search"):
            call()


def test_nothing_but_a_search_takes_a_frame() -> None:
    for make in (
        lambda: Kronecker(Frame(3), Diagonal(2)),
        lambda: BlockDiagonal((Diagonal(2), Frame(3))),
        lambda: Conjugate(Frame(3), [2, 0, 1]),
    ):
        with pytest.raises(ValueError, match="must be a group with a projection, got Frame"):
            make()
    for use in (
        lambda: Gaussian(mean=np.ones(3), sigma0=1.0, structure="frame"),
        lambda: Wishart(mean=np.eye(3), structure="frame:k=1"),
        lambda: MatrixGaussian(np.ones((2, 3)), 1.0, "diagonal", "frame"),
    ):
        with pytest.raises(ValueError, match=r"structure 'frame.*' is for searches"):
            use()


def test_an_axis_of_length_zero_has_no_inverse() -> None:
    frame = Frame(4, 1)
    a = frame.pack(1.0, np.zeros(1), np.eye(1, 4))
    with pytest.raises(SingularElementError, match="length of an axis is 0"):
        frame.solve(a, np.ones(4))
    with pytest.raises(SingularElementError):
        frame.log_abs_det(a)


def test_a_step_that_would_overflow_changes_nothing() -> None:
    frame = Frame(4, 1)
    a = frame.identity()
    with pytest.raises(ValueError, match="size below 1e50"):
        frame.product_h_samples(a, np.full((1, 4), 1e40), np.ones(1), out=a)
    assert np.array_equal(a, frame.identity())
