"""Frames that turn: the algebra of the reflected group, and where the frame ends up."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: the tests of networks are skipped")

from esgroup.torch.frames import TensorFrame  # noqa: E402
from tests.torch.networks import moved_one  # noqa: E402

FRAMES = [TensorFrame(7, 2), TensorFrame(5, 4), TensorFrame(6, 1), TensorFrame(9, 3)]
frames = pytest.mark.parametrize("frame", FRAMES, ids=[f"k={f.k} of {f.dim}" for f in FRAMES])
ONE = torch.empty(0, dtype=torch.float64)


def generic(frame: TensorFrame, seed: int = 0, layers: int = 2) -> torch.Tensor:
    """Elements far from the identity, with frames far from the first coordinates."""
    rng = torch.Generator().manual_seed(seed)
    a = frame.identity(ONE).repeat(layers, 1)
    for _ in range(4):
        x = torch.randn(layers, 5, frame.dim, generator=rng, dtype=torch.float64)
        a = moved_one(frame, a, frame.project(frame.apply(a, x), 0.2), less=0.3)
    return a


def coupling(frame: TensorFrame, c_t: torch.Tensor) -> torch.Tensor:
    """The local vector that turns the frame and does nothing else."""
    m = torch.zeros(len(c_t), frame.k * frame.dim + frame.dim - frame.k, dtype=torch.float64)
    frame.local_parts(m)[2].copy_(c_t)
    return m


def dense(frame: TensorFrame, a: torch.Tensor) -> torch.Tensor:
    """[[F, 0], [0, D]] Q, written out."""
    f, d, v = frame.parts(a)
    q = torch.eye(frame.dim, dtype=torch.float64) - v @ v.mT
    return torch.stack([torch.block_diag(f[i], torch.diag(d[i, 0])) for i in range(len(a))]) @ q


def close(found: torch.Tensor, wanted: torch.Tensor, tolerance: float = 1e-12) -> None:
    torch.testing.assert_close(found, wanted, rtol=tolerance, atol=tolerance)


@frames
def test_the_basis_is_a_reflection_whose_first_columns_are_the_frame(frame: TensorFrame) -> None:
    v = frame.parts(generic(frame))[2]
    q = torch.eye(frame.dim, dtype=torch.float64) - v @ v.mT
    close(v.mT @ v, 2 * torch.eye(frame.k, dtype=torch.float64).expand(2, -1, -1))
    close(q @ q, torch.eye(frame.dim, dtype=torch.float64).expand(2, -1, -1))
    assert (q - torch.eye(frame.dim)).norm() > 0.5


@frames
def test_products_and_gram_matrices_are_those_of_the_written_out_root(frame: TensorFrame) -> None:
    a = generic(frame)
    k, rng = dense(frame, a), torch.Generator().manual_seed(1)
    x = torch.randn(2, 4, frame.dim, generator=rng, dtype=torch.float64)
    close(frame.apply(a, x), x @ k.mT)
    close(frame.apply_transposed(a, x), x @ k)
    close(frame.gram_right(frame.gram(a), x), x @ k.mT @ k)
    close(frame.gram_left(frame.gram(a), x.mT), k.mT @ k @ x.mT)
    close(frame.squared_norm(a), k.square().sum((1, 2)))
    gram = k @ k.mT
    hub, rest = slice(0, frame.k), slice(frame.k, None)
    wanted = [gram[:, hub, hub].flatten(1) / 2, gram.diagonal(dim1=1, dim2=2)[:, rest] / 2]
    m = coupling(frame, torch.ones(2, frame.k, frame.dim - frame.k))
    frame.add_gram(m, a, torch.tensor([[1.0], [3.0]], dtype=torch.float64), 0.5)
    f, d, c_t = frame.local_parts(m)
    close(torch.cat([f.flatten(1), d.flatten(1)], 1), torch.cat(wanted, 1) * torch.tensor([[0.5], [1.5]]))
    assert bool((c_t == 1).all()) and a.shape[1] == frame.size


@frames
def test_it_is_the_conjugated_group_on_arrays(frame: TensorFrame) -> None:
    a = generic(frame, layers=1)
    group = frame.group_of(a[0])
    root = group.dense(frame.numbers(a[0]).numpy())
    k = dense(frame, a)[0].numpy()
    np.testing.assert_allclose(root.T @ root, k.T @ k, rtol=0, atol=1e-12)
    m = frame.project(frame.apply(a, torch.ones(1, 2, frame.dim, dtype=torch.float64)), 0.3)
    f, d, c_t = frame.local_parts(m)
    c_t.zero_()  # the frame stays, and the step is that of the group
    moved = moved_one(frame, a, m)[0]
    local = torch.cat([f.flatten(), d.flatten()]).numpy()
    wanted = group.product(group.inverse(group.h(local)), frame.numbers(a[0]).numpy())
    found = frame.group_of(moved)
    np.testing.assert_allclose(found.by, group.by, rtol=0, atol=1e-12)
    step = found.dense(frame.numbers(moved).numpy())
    np.testing.assert_allclose(step.T @ step, group.dense(wanted).T @ group.dense(wanted), rtol=0, atol=1e-11)


@frames
def test_turning_carries_the_numbers_along(frame: TensorFrame) -> None:
    a = generic(frame)
    c_t = 0.1 * torch.randn(2, frame.k, frame.dim - frame.k, dtype=torch.float64)
    moved = moved_one(frame, a, coupling(frame, c_t))
    before, after = dense(frame, a), dense(frame, moved)
    close(torch.linalg.svdvals(after), torch.linalg.svdvals(before))
    close(frame.parts(moved)[1], frame.parts(a)[1])
    assert (after.mT @ after - before.mT @ before).norm() > 1e-3


@frames
def test_the_dense_block_keeps_its_directions_when_the_frame_turns(frame: TensorFrame) -> None:
    """The first k rows are F B^T before and after the turn, to B = Q [I; T] (I + T^T T)^-1/2 with T = D^-1 C F."""
    a = generic(frame)
    f, d, v = frame.parts(a)
    c_t = 0.1 * torch.randn(2, frame.k, frame.dim - frame.k, generator=torch.Generator().manual_seed(2)).double()
    one = torch.eye(frame.k, dtype=torch.float64).expand(2, -1, -1)
    directions = torch.cat([one, (f.mT @ c_t / d).mT], 1)
    upper = torch.linalg.cholesky(directions.mT @ directions).mT
    span = directions @ torch.linalg.inv(upper)  # orthonormal, in another basis than the symmetric root gives
    left, _, right = torch.linalg.svd(span.mT @ directions)
    q = torch.eye(frame.dim, dtype=torch.float64) - v @ v.mT
    wanted = f @ (q @ span @ left @ right).mT
    close(dense(frame, moved_one(frame, a, coupling(frame, c_t)))[:, : frame.k], wanted)


def test_frames_of_several_sizes_move_together_as_they_do_alone() -> None:
    several = [TensorFrame(7, 2), TensorFrame(5, 2), TensorFrame(9, 2)]
    elements = [generic(frame, layers=layers) for frame, layers in zip(several, (1, 3, 2), strict=True)]
    local = [
        frame.project(torch.randn(len(a), 3, frame.dim).double(), 0.1)
        for frame, a in zip(several, elements, strict=True)
    ]
    together = TensorFrame.moved_together(several, elements, local, 0.1)
    for frame, a, m, found in zip(several, elements, local, together, strict=True):
        close(found, moved_one(frame, a, m, 0.1))


def test_one_turn_is_a_step_of_the_power_method() -> None:
    frame = TensorFrame(6, 2)
    a = generic(frame, layers=1)
    f, _, v = frame.parts(a)
    x = torch.randn(1, 3, 6, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    m = frame.project(frame.apply(a, x), 1e-4)
    moved = moved_one(frame, a, m)
    q = torch.eye(6, dtype=torch.float64) - v[0] @ v[0].mT
    u = q[:, :2]
    power = u + 1e-4 * (torch.eye(6, dtype=torch.float64) - u @ u.mT) @ x[0].mT @ x[0] @ u @ f[0].mT @ f[0]
    w = frame.parts(moved)[2][0]
    span = (torch.eye(6, dtype=torch.float64) - w @ w.mT)[:, :2]
    close(span @ span.mT, power @ torch.linalg.inv(power.mT @ power) @ power.mT, 1e-10)


def test_the_frame_finds_the_dominant_directions() -> None:
    frame, rng = TensorFrame(12, 2), torch.Generator().manual_seed(5)
    basis = torch.linalg.qr(torch.randn(12, 12, generator=rng, dtype=torch.float64))[0]
    scales = torch.tensor([30.0, 10.0] + [1.0] * 10, dtype=torch.float64)
    a = frame.identity(ONE)[None]
    for _ in range(300):
        x = torch.randn(1, 8, 12, generator=rng, dtype=torch.float64) * scales @ basis.mT
        m = frame.project(frame.apply(a, x), 0.1 / 8)
        a = moved_one(frame, a, m / m.norm().clamp(min=1), less=0.05)
    v = frame.parts(a)[2][0]
    span = (torch.eye(12, dtype=torch.float64) - v @ v.mT)[:, :2]
    cosines = torch.linalg.svdvals(span.mT @ basis[:, :2])
    assert cosines.min() > 0.99
    precision = torch.linalg.inv(dense(frame, a)[0].mT @ dense(frame, a)[0])
    assert precision.diagonal().sum() == pytest.approx(float((scales**2).sum()), rel=0.35)


def test_sizes_must_fit() -> None:
    with pytest.raises(ValueError, match="k must be an integer from 1 to 4, got 5"):
        TensorFrame(5, 5)
