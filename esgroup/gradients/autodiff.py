"""Functions written in PyTorch or JAX, which supply gradients and products with the Hessian.

All points of a call are evaluated at once: the library maps the function over rows, and JAX compiles it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.gradients.function import PROBES, must_be_callable
from esgroup.gradients.rows import RowCalls, RowFunction, row_function


def torch_function(
    f: Callable[..., Any], dim: int, *, dtype: str = "float64", device: Any = None, probes: int = PROBES
) -> RowFunction:
    """Make a function with derivatives from a PyTorch function.

    Products are H v = (v^T d/dx) grad f: two backward passes, with one graph for all vectors at a point. Several points
    are evaluated together by torch.func.vmap, or one by one if f uses operations that vmap does not support.

    Parameters
    ----------
    f : callable
        Takes a tensor of shape (dim,) and returns a tensor with one number. As the likelihood of `fit_posterior` it
        also takes the arrays of a batch, f(x, *batch).
    dim : int
        Number of variables.
    dtype : {"float64", "float32"}
        Type of the tensors that f receives, including those of a batch unless they hold integers. If f uses tensors of
        its own, choose their type.
    device : torch.device or str, optional
        Device of the tensors that f receives. If f uses tensors of its own, choose their device.
    probes : int
        Number of random products used to estimate the diagonal of the Hessian.

    Returns
    -------
    RowFunction
        The function, its gradient, and products with its Hessian, on NumPy arrays.

    Raises
    ------
    ImportError
        If PyTorch is not installed (extra "torch").
    ValueError, TypeError
        If an argument is not valid.
    """
    torch = _library("torch", "torch_function", "PyTorch", "pip install 'esgroup[torch]'", f, dtype)
    kind = getattr(torch, dtype)

    def number(x: Any, *args: Any) -> Any:
        return f(x, *args).reshape(())

    both = torch.func.grad_and_value(number)

    def products(x: Any, v: Any, *args: Any) -> Any:
        _, pull = torch.func.vjp(lambda point: both(point, *args)[0], x)
        return torch.func.vmap(lambda row: pull(row)[0])(v)

    def tensor(array: Array) -> Any:
        floats = np.asarray(array).dtype.kind == "f"
        return torch.tensor(array, dtype=kind if floats else None, device=device)  # a copy, since x is read-only

    def on_arrays(mapped: int, compute: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arrays: _from_torch(_over_rows(torch, compute, mapped, [tensor(array) for array in arrays]))

    def gradients(*arrays: Array) -> tuple[Array, Array]:
        slopes, values = _over_rows(torch, both, 1, [tensor(array) for array in arrays])
        return _from_torch(values), _from_torch(slopes)

    def mean_products(x: Array, v: Array, *args: Array) -> Array:
        repeated = np.broadcast_to(v, (len(x), *v.shape))
        return on_rows(x, repeated, *args).mean(axis=0)

    on_rows = on_arrays(2, products)
    calls = RowCalls(on_arrays(1, number), gradients, on_rows, mean_products)
    return row_function(calls, dim, probes=probes)


def _over_rows(torch: Any, compute: Callable[..., Any], mapped: int, arrays: list[Any]) -> Any:
    """Apply `compute` to every row of the first `mapped` tensors; the others are passed unchanged."""
    rows, rest = arrays[:mapped], arrays[mapped:]
    if len(rows[0]) > 1:
        try:
            return torch.func.vmap(lambda *own: compute(*own, *rest))(*rows)
        except RuntimeError:  # not supported by vmap; an error in f itself is raised again below
            pass
    found = [compute(*own, *rest) for own in zip(*rows, strict=True)]
    if isinstance(found[0], tuple):
        return tuple(torch.stack(part) for part in zip(*found, strict=True))
    return torch.stack(found)


def jax_function(f: Callable[..., Any], dim: int, *, dtype: str = "float64", probes: int = PROBES) -> RowFunction:
    """Make a function with derivatives from a JAX function, and compile it.

    Products differentiate the gradient in forward mode, for all vectors at once. JAX compiles at the first call with
    each number of points, and keeps the compiled code as long as the returned object exists.

    Parameters
    ----------
    f : callable
        Takes a JAX array of shape (dim,) and returns one number. As the likelihood of `fit_posterior` it also takes the
        arrays of a batch, f(x, *batch).
    dim : int
        Number of variables.
    dtype : {"float64", "float32"}
        Type of the arrays that f receives, including those of a batch unless they hold integers. For float64, call
        jax.config.update("jax_enable_x64", True) first.
    probes : int
        Number of random products used to estimate the diagonal of the Hessian.

    Returns
    -------
    RowFunction
        The function, its gradient, and products with its Hessian, on NumPy arrays.

    Raises
    ------
    ImportError
        If JAX is not installed.
    ValueError, TypeError
        If an argument is not valid, or float64 is not enabled in JAX.
    """
    jax = _library("jax", "jax_function", "JAX", "pip install jax", f, dtype)
    if dtype == "float64" and not jax.config.jax_enable_x64:
        text = "dtype must be 'float32' unless float64 is enabled in JAX, got 'float64'"
        raise ValueError(f"{text}: call jax.config.update('jax_enable_x64', True) first")

    def number(x: Any, *args: Any) -> Any:
        return jax.numpy.reshape(f(x, *args), ())

    def products(x: Any, v: Any, *args: Any) -> Any:
        _, push = jax.linearize(lambda point: jax.grad(number)(point, *args), x)
        return jax.vmap(push)(v)

    def over_rows(mapped: int, compute: Callable[..., Any]) -> Callable[..., Any]:
        """Apply `compute` to every row of the first `mapped` arrays; the others are passed unchanged."""
        return lambda *arrays: jax.vmap(lambda *own: compute(*own, *arrays[mapped:]))(*arrays[:mapped])

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        fast = jax.jit(function)

        def call(*arrays: Any) -> Any:
            # convert floats to the type of the function; pass others, such as integers, unchanged
            found = fast(*[array.astype(dtype, copy=False) if array.dtype.kind == "f" else array for array in arrays])
            return tuple(map(np.asarray, found)) if isinstance(found, tuple) else np.asarray(found)

        return call

    def mean_products(x: Any, v: Any, *args: Any) -> Any:
        """Derivatives along v of the mean gradient of shifted points."""

        def mean_gradient(shift: Any) -> Any:
            return jax.vmap(lambda own: jax.grad(number)(own + shift, *args))(x).mean(axis=0)

        return jax.vmap(jax.linearize(mean_gradient, jax.numpy.zeros_like(x[0]))[1])(v)

    both = compiled(over_rows(1, jax.value_and_grad(number)))
    hessp, mean_hessp = compiled(over_rows(2, products)), compiled(mean_products)
    return row_function(RowCalls(compiled(over_rows(1, number)), both, hessp, mean_hessp), dim, probes=probes)


def _library(name: str, caller: str, title: str, how: str, f: Any, dtype: Any) -> Any:
    """Import a library for a function written in it, and check the arguments that describe the function."""
    must_be_callable("f", f)
    try:
        library = import_module(name)
    except ImportError as error:
        raise ImportError(f"{caller} needs {title}: {how}") from error
    checks.one_of("dtype", dtype, "float32", "float64")
    return library


def _from_torch(tensor: Any) -> Array:
    return np.ascontiguousarray(tensor.detach().cpu().double().numpy())
