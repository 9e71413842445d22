"""Stand-ins for PyTorch and JAX with just the calls that the adapters make, by differences on NumPy arrays."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np


class Tensor(np.ndarray):
    """An array with the few methods of a tensor."""

    def detach(self) -> "Tensor":
        return self

    def cpu(self) -> "Tensor":
        return self

    def numpy(self) -> np.ndarray:
        return np.asarray(self)


def gradient(f: Callable) -> Callable:
    """By complex steps, exact to rounding for analytic functions."""

    def found(x: np.ndarray) -> np.ndarray:
        moved = x + 1e-30j * np.eye(len(x))
        return np.array([np.asarray(f(row)).item().imag / 1e-30 for row in moved]).view(type(x))

    return found


def derivative(f: Callable, x: np.ndarray, v: np.ndarray) -> np.ndarray:
    return (f(x + 1e-5 * v) - f(x - 1e-5 * v)) / 2e-5


def torch() -> SimpleNamespace:
    def tensor(array: np.ndarray, dtype: Any, device: Any) -> Tensor:
        assert dtype in ("32 bits", "64 bits") and device in (None, "cpu")
        kind = np.float32 if dtype == "32 bits" else np.float64
        return np.array(array, dtype=kind).view(Tensor)

    def vjp(f: Callable, x: Tensor) -> tuple[Tensor, Callable]:
        return f(x), lambda v: (derivative(f, x, v),)

    func = SimpleNamespace(grad=gradient, vjp=vjp)
    return SimpleNamespace(float32="32 bits", float64="64 bits", tensor=tensor, func=func)


def jax(*, x64: bool = True) -> SimpleNamespace:
    def jvp(f: Callable, primals: tuple, tangents: tuple) -> tuple:
        return f(*primals), derivative(f, *primals, *tangents)

    def vmap(f: Callable, in_axes: tuple) -> Callable:
        assert in_axes == (None, 0)
        return lambda x, rows: np.array([f(x, row) for row in rows]).reshape(rows.shape)

    config, numpy = SimpleNamespace(jax_enable_x64=x64), SimpleNamespace(asarray=np.asarray)
    return SimpleNamespace(grad=gradient, jvp=jvp, vmap=vmap, jit=lambda f: f, config=config, numpy=numpy)
