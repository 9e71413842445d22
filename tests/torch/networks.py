"""Small networks, data and gradients for the tests of the optimizer."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from esgroup.torch import PerExampleGradients, StructuredNGD
from esgroup.torch.groups import TensorGroup

#: rows and cols of every structure
STRUCTURES = {
    "frame": {"rows": "diagonal", "cols": "frame:k=3"},
    "frames": {"rows": "frame:k=2", "cols": "frame:k=2"},
    "block_triangular": {"rows": "block_triangular:k=2", "cols": "block_triangular:k=3"},
    "heisenberg": {"rows": "heisenberg:k1=1,k2=1", "cols": "heisenberg:k1=2,k2=1"},
    "triangular": {"rows": "triangular", "cols": "triangular"},
    "toeplitz": {"rows": "toeplitz_triangular", "cols": "toeplitz_triangular"},
    "full": {"rows": "full", "cols": "full"},
}


def moved_one(group: TensorGroup, a: Tensor, m: Tensor, less: float = 0.0) -> Tensor:
    """h(M - less I)^-1 A of one element."""
    return group.moved_together([group], [a], [m], less)[0]


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def network(dtype: torch.dtype = torch.float64, seed: int = 0) -> nn.Sequential:
    """A convolution, a norm and two linear layers, with the same weights for the same seed."""
    model = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.Tanh(), nn.Flatten(), nn.Linear(36, 5), nn.Tanh(),
        nn.Linear(5, 3),
    )  # fmt: skip
    return filled(model, seed).to(dtype)


def filled(model: nn.Module, seed: int) -> nn.Module:
    """The model with other weights: all are random, and those of vectors are not zero."""
    source = seeded(seed)
    with torch.no_grad():
        for p in model.parameters():
            scale = 0.5 if p.ndim < 2 else p[0].numel() ** -0.5
            p.copy_(torch.randn(p.shape, generator=source, dtype=torch.float64) * scale)
    return model


def images(n: int = 12, dtype: torch.dtype = torch.float64, seed: int = 1) -> tuple[Tensor, Tensor]:
    """Images of 2 x 3 x 3 and labels of three classes that depend on them."""
    x = torch.randn(n, 2, 3, 3, generator=seeded(seed), dtype=torch.float64)
    y = torch.stack([x[:, 0, 0].sum(1), x[:, 1, :, 2].sum(1), x[:, 0, 2, 1] * 2], 1).argmax(1)
    return x.to(dtype), y


def gradients(model: nn.Module, seed: int, scale: float = 0.3) -> None:
    """Give every parameter a random gradient."""
    source = seeded(seed)
    for p in model.parameters():
        p.grad = (torch.randn(p.shape, generator=source, dtype=torch.float64) * scale).to(p.dtype)


def train(model: nn.Module, optimizer: StructuredNGD, first: int, last: int) -> None:
    """Steps with a batch of its own for every number."""
    dtype = next(model.parameters()).dtype
    for number in range(first, last):
        x, y = images(dtype=dtype, seed=100 + number)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def learned(model: nn.Module, optimizer: StructuredNGD, x: Tensor, y: Tensor, steps: int) -> float:
    """The last loss over the first one, after steps with all of the data."""
    losses = []
    for _ in range(steps):
        if isinstance(optimizer.curvature, PerExampleGradients):
            optimizer.curvature.observe(x, y)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses[-1] / losses[0]


def values(model: nn.Module) -> list[Tensor]:
    return [p.detach().clone() for p in model.parameters()]


def snapshot(optimizer: StructuredNGD) -> list[Tensor]:
    """Copies of all parameters and of all that is stored for them."""
    found = []
    for group in optimizer.param_groups:
        for p in group["params"]:
            found.append(p.detach().clone())
            found.extend(value.clone() for _, value in sorted(optimizer.state[p].items()))
    return found


def same(one: list[Tensor], other: list[Tensor]) -> bool:
    """Whether two lists of tensors are equal bit for bit."""
    return len(one) == len(other) and all(
        a.dtype == b.dtype and torch.equal(a, b) for a, b in zip(one, other, strict=True)
    )
