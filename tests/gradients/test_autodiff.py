"""The adapters for PyTorch and JAX, with stand-ins, and with the libraries themselves if they are installed."""

import sys

import numpy as np
import pytest

from esgroup.gradients import Products, check_derivatives, jax_function, torch_function
from tests.gradients import fakes
from tests.groups.laws import close

X = np.array([0.3, -1.1, 0.7])
V = np.array([[1.0, 2.0, 0.0], [0.0, -1.0, 0.5]])


def f(x):
    """A function of arrays or tensors."""
    return (x**4).sum() + x[0] * x[1] ** 2 + x[2]


def gradient(x: np.ndarray) -> np.ndarray:
    return 4 * x**3 + [x[1] ** 2, 2 * x[0] * x[1], 1.0]


def hessian(x: np.ndarray) -> np.ndarray:
    mixed = np.array([[0, 2 * x[1], 0], [2 * x[1], 2 * x[0], 0], [0, 0, 0]])
    return np.diag(12 * x**2) + mixed


def assert_right(function: Products, tolerance: float) -> None:
    assert isinstance(function, Products)
    close(function.value(X), f(X))
    close(function.gradient(X), gradient(X), tolerance)
    close(function.products(X, V), V @ hessian(X), tolerance)
    close(function.diagonal(X, np.random.default_rng(0)), np.diagonal(hessian(X)), tolerance)
    assert function.products(X, V[:0]).shape == (0, 3)
    assert (function.counts.nfev, function.counts.njev, function.counts.nhvp) == (1, 1, 5)


@pytest.mark.parametrize(("name", "adapter"), [("torch", torch_function), ("jax", jax_function)])
def test_derivatives_come_from_the_library(name: str, adapter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, getattr(fakes, name)())
    assert_right(adapter(f, 3), 1e-8)


def test_tensors_have_the_type_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", fakes.torch())
    seen = []
    torch_function(lambda x: seen.append(x.dtype) or f(x), 3, dtype="float32", device="cpu").value(X)
    torch_function(lambda x: seen.append(x.dtype) or f(x), 3).value(X)
    assert seen == [np.float32, np.float64]


def test_jax_must_have_64_bits_for_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", fakes.jax(x64=False))
    with pytest.raises(ValueError, match=r"jax.config.update\('jax_enable_x64', True\)"):
        jax_function(f, 3)
    assert jax_function(f, 3, dtype="float32").value(X) == pytest.approx(f(X), rel=1e-6)


@pytest.mark.parametrize(("name", "adapter"), [("torch", torch_function), ("jax", jax_function)])
def test_bad_input_is_named(name: str, adapter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, getattr(fakes, name)())
    with pytest.raises(ValueError, match="dtype must be 'float32' or 'float64', got 'int8'"):
        adapter(f, 3, dtype="int8")
    with pytest.raises(TypeError, match="f must be a function, got 3"):
        adapter(3, 3)


def test_an_absent_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ImportError, match=r"torch_function needs PyTorch: pip install 'esgroup\[torch\]'"):
        torch_function(f, 3)
    with pytest.raises(ImportError, match="jax_function needs JAX: pip install jax"):
        jax_function(f, 3)


def test_the_real_pytorch_agrees() -> None:
    pytest.importorskip("torch")
    function = torch_function(f, 3)
    assert_right(function, 1e-10)
    assert check_derivatives(function, X).ok
    assert not torch_function(lambda x: x.sum(), 3).products(X, V).any()  # the gradient does not depend on x


def test_the_real_jax_agrees() -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    function = jax_function(f, 3)
    assert_right(function, 1e-10)
    assert check_derivatives(function, X).ok
