"""Functions that PyTorch or JAX can differentiate: gradients and products with the Hessian come from them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.gradients.function import PROBES, Products, must_be_callable


def torch_function(
    f: Callable[[Any], Any], dim: int, *, dtype: str = "float64", device: Any = None, probes: int = PROBES
) -> Products:
    """f of a tensor of shape (dim,), which returns a tensor with one number, with derivatives by PyTorch.

    Products are H v = (v^T d/dx) grad f: backwards twice, one graph for all vectors at a point. Where f holds tensors
    of its own, `dtype` and `device` must be theirs.
    """
    must_be_callable("f", f)
    torch: Any = _module("torch", "torch_function", "PyTorch", "pip install 'esgroup[torch]'")
    kind = _torch_kind(torch, dtype)
    gradient = torch.func.grad(lambda x: f(x).reshape(()))

    def tensor(array: Array) -> Any:
        return torch.tensor(array, dtype=kind, device=device)  # a copy: ours are read-only

    def value(x: Array) -> Array:
        return _from_torch(f(tensor(x)))

    def products(x: Array, rows: Array) -> Array:
        _, pull = torch.func.vjp(gradient, tensor(x))
        return np.array([_from_torch(pull(tensor(v))[0]) for v in rows]).reshape(rows.shape)

    return Products(
        dim=dim,
        fun=value,
        jac=lambda x: _from_torch(gradient(tensor(x))),
        hessp=products,
        hessp_vectorized=True,
        probes=probes,
    )


def jax_function(f: Callable[[Any], Any], dim: int, *, dtype: str = "float64", probes: int = PROBES) -> Products:
    """f of an array of shape (dim,), with derivatives by JAX, compiled.

    Products are forward through the gradient, all vectors at once. float64 must be switched on in JAX by its user.
    """
    must_be_callable("f", f)
    jax: Any = _module("jax", "jax_function", "JAX", "pip install jax")
    _check_jax_dtype(jax, dtype)
    gradient = jax.grad(lambda x: f(x).reshape(()))

    def product(x: Any, v: Any) -> Any:
        return jax.jvp(gradient, (x,), (v,))[1]

    value, slope = jax.jit(f), jax.jit(gradient)
    several = jax.jit(jax.vmap(product, in_axes=(None, 0)))

    def array(x: Array) -> Any:
        return jax.numpy.asarray(x, dtype=dtype)

    return Products(
        dim=dim,
        fun=lambda x: _float64(value(array(x))),
        jac=lambda x: _float64(slope(array(x))),
        hessp=lambda x, rows: _float64(several(array(x), array(rows))),
        hessp_vectorized=True,
        probes=probes,
    )


def _module(name: str, caller: str, title: str, how: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"{caller} needs {title}: {how}") from error


def _torch_kind(torch: Any, dtype: str) -> Any:
    _check_dtype(dtype)
    return getattr(torch, dtype)


def _check_jax_dtype(jax: Any, dtype: str) -> None:
    _check_dtype(dtype)
    if dtype == "float64" and not jax.config.jax_enable_x64:
        raise ValueError(
            "dtype must be 'float32' unless JAX has 64 bits: call jax.config.update('jax_enable_x64', True) first"
        )


def _check_dtype(dtype: str) -> None:
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype must be 'float32' or 'float64', got {dtype!r}")


def _from_torch(tensor: Any) -> Array:
    return _float64(tensor.detach().cpu().numpy())


def _float64(array: Any) -> Array:
    return checks.real_array("the result", np.asarray(array), np.shape(array), finite=False)
