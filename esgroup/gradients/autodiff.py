"""Functions written in PyTorch or JAX, which supply the gradients and the products with the Hessian."""

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
    """Make a function with derivatives from one that is written in PyTorch.

    Products are H v = (v^T d/dx) grad f: two backward passes, with one graph for all vectors at a point.

    Parameters
    ----------
    f : callable
        Takes a tensor of shape (dim,) and returns a tensor with one number.
    dim : int
        Number of coordinates.
    dtype : {"float64", "float32"}
        Type of the tensors that f receives. If f holds tensors of its own, theirs.
    device : torch.device or str, optional
        Device of the tensors that f receives. If f holds tensors of its own, theirs.
    probes : int
        Number of random products from which the diagonal of the Hessian is estimated.

    Returns
    -------
    Products
        The function, its gradient, and products with its Hessian, on NumPy arrays.

    Raises
    ------
    ImportError
        If PyTorch is not installed (extra "torch").
    ValueError, TypeError
        If an argument is not valid.
    """
    must_be_callable("f", f)
    torch: Any = _imported("torch", "torch_function", "PyTorch", "pip install 'esgroup[torch]'")
    _check_dtype(dtype)
    kind = getattr(torch, dtype)
    gradient = torch.func.grad(lambda x: f(x).reshape(()))

    def tensor(array: Array) -> Any:
        return torch.tensor(array, dtype=kind, device=device)  # a copy, since x is read-only

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
    """Make a function with derivatives from one that is written in JAX, and compile it.

    Products differentiate the gradient in forward mode, for all vectors at once.

    Parameters
    ----------
    f : callable
        Takes a JAX array of shape (dim,) and returns one number.
    dim : int
        Number of coordinates.
    dtype : {"float64", "float32"}
        Type of the arrays that f receives. For float64, call jax.config.update("jax_enable_x64", True) first.
    probes : int
        Number of random products from which the diagonal of the Hessian is estimated.

    Returns
    -------
    Products
        The function, its gradient, and products with its Hessian, on NumPy arrays.

    Raises
    ------
    ImportError
        If JAX is not installed.
    ValueError, TypeError
        If an argument is not valid, or float64 is not enabled in JAX.
    """
    must_be_callable("f", f)
    jax: Any = _imported("jax", "jax_function", "JAX", "pip install jax")
    _check_dtype(dtype)
    if dtype == "float64" and not jax.config.jax_enable_x64:
        text = "dtype must be 'float32' unless float64 is enabled in JAX, got 'float64'"
        raise ValueError(f"{text}: call jax.config.update('jax_enable_x64', True) first")
    gradient = jax.grad(lambda x: f(x).reshape(()))

    def product(x: Any, v: Any) -> Any:
        return jax.jvp(gradient, (x,), (v,))[1]

    value, compiled_gradient = jax.jit(f), jax.jit(gradient)
    products = jax.jit(jax.vmap(product, in_axes=(None, 0)))

    def array(x: Array) -> Any:
        return jax.numpy.asarray(x, dtype=dtype)

    return Products(
        dim=dim,
        fun=lambda x: _float64(value(array(x))),
        jac=lambda x: _float64(compiled_gradient(array(x))),
        hessp=lambda x, rows: _float64(products(array(x), array(rows))),
        hessp_vectorized=True,
        probes=probes,
    )


def _imported(name: str, caller: str, title: str, how: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"{caller} needs {title}: {how}") from error


def _check_dtype(dtype: str) -> None:
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype must be 'float32' or 'float64', got {dtype!r}")


def _from_torch(tensor: Any) -> Array:
    return _float64(tensor.detach().cpu().numpy())


def _float64(array: Any) -> Array:
    return checks.real_array("the result", np.asarray(array), np.shape(array), finite=False)
