"""The adapters for PyTorch and JAX, with the libraries themselves where they are installed."""

import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from esgroup.gradients import Products, check_derivatives, jax_function, torch_function
from esgroup.gradients.rows import RowFunction
from tests.groups.laws import close

X = np.array([0.3, -1.1, 0.7])
V = np.array([[1.0, 2.0, 0.0], [0.0, -1.0, 0.5]])
ROWS = np.array([X, -2 * X, X[::-1], [1.0, 0.0, -1.0]])
ADAPTERS = pytest.mark.parametrize("adapter", [torch_function, jax_function], ids=["torch", "jax"])
TYPES = pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 2e-5)])


@pytest.fixture(autouse=True)
def libraries(request: pytest.FixtureRequest) -> Iterator[None]:
    """Skip what needs a library that is not there; JAX has 64 bits during a test that takes it, and not after it."""
    adapter = request.node.callspec.params.get("adapter") if hasattr(request.node, "callspec") else None
    if adapter is torch_function:
        pytest.importorskip("torch")
    if adapter is not jax_function:
        yield
        return
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def f(x: Any) -> Any:
    """A function of arrays or tensors."""
    return (x**4).sum() + x[0] * x[1] ** 2 + x[2]


def gradient(x: np.ndarray) -> np.ndarray:
    return 4 * x**3 + [x[1] ** 2, 2 * x[0] * x[1], 1.0]


def hessian(x: np.ndarray) -> np.ndarray:
    mixed = np.array([[0, 2 * x[1], 0], [2 * x[1], 2 * x[0], 0], [0, 0, 0]])
    return np.diag(12 * x**2) + mixed


@ADAPTERS
@TYPES
def test_derivatives_of_one_point_are_those_by_hand(adapter: Callable, dtype: str, tolerance: float) -> None:
    function = adapter(f, 3, dtype=dtype)
    assert isinstance(function, Products)
    close(function.value(X), f(X), tolerance)
    close(function.gradient(X), gradient(X), tolerance)
    close(function.products(X, V), V @ hessian(X), tolerance)
    close(function.diagonal(X, np.random.default_rng(0)), np.diagonal(hessian(X)), tolerance)
    assert function.products(X, V[:0]).shape == (0, 3)
    assert (function.counts.nfev, function.counts.njev, function.counts.nhvp) == (1, 1, 5)
    assert all(part.dtype == np.float64 for part in (function.gradient(X), function.products(X, V)))


@ADAPTERS
@TYPES
def test_rows_of_points_are_computed_as_single_ones(adapter: Callable, dtype: str, tolerance: float) -> None:
    function, vectors = adapter(f, 3, dtype=dtype), np.random.default_rng(0).standard_normal((4, 2, 3))
    close(function.values(ROWS), [f(x) for x in ROWS], tolerance)
    close(function.gradients(ROWS), [gradient(x) for x in ROWS], tolerance)
    values, gradients = function.values_and_gradients(ROWS)
    close(values, [f(x) for x in ROWS], tolerance)
    close(gradients, [gradient(x) for x in ROWS], tolerance)
    expected = [v @ hessian(x) for x, v in zip(ROWS, vectors, strict=True)]
    close(function.row_products(ROWS, vectors), expected, tolerance)
    assert (function.counts.nfev, function.counts.njev, function.counts.nhvp) == (8, 8, 8)
    mean = np.mean([hessian(x) for x in ROWS], axis=0)
    close(function.mean_products(ROWS, V), V @ mean, tolerance)
    close(function.mean_diagonal(ROWS, np.random.default_rng(0)), np.diagonal(mean), tolerance)
    assert function.counts.nhvp == 8 + 8 + 12


@ADAPTERS
def test_an_estimated_diagonal_has_the_mean_of_the_exact_one(adapter: Callable) -> None:
    function, rng = adapter(f, 3, probes=2), np.random.default_rng(0)
    found = [function.mean_diagonal(ROWS, rng) for _ in range(150)]
    exact = np.mean([np.diagonal(hessian(x)) for x in ROWS], axis=0)
    errors = np.std(found, axis=0) / np.sqrt(len(found))
    assert (np.abs(np.mean(found, axis=0) - exact) <= 5 * errors + 1e-12).all() and errors[:2].all()


@ADAPTERS
def test_differences_agree_with_the_derivatives(adapter: Callable) -> None:
    assert check_derivatives(adapter(f, 3), X).ok
    assert not adapter(lambda x: x.sum(), 3).products(X, V).any()  # the gradient does not depend on x


@ADAPTERS
def test_further_arguments_are_passed_on_and_integers_stay_integers(adapter: Callable) -> None:
    weights, places = np.array([[2.0, 1.0], [0.5, 3.0]]), np.array([2, 0])
    seen = []

    def g(x: Any, w: Any, i: Any) -> Any:
        seen.append((str(w.dtype), str(i.dtype)))
        return (w @ x[i] ** 3).sum()

    def expected(x: np.ndarray) -> np.ndarray:
        slope = np.zeros(3)
        slope[places] = 3 * weights.sum(axis=0) * x[places] ** 2
        return slope

    function = adapter(g, 3, dtype="float32").with_arguments(weights, places)
    close(function.values(ROWS), [float((weights @ x[places] ** 3).sum()) for x in ROWS], 2e-5)
    close(function.gradients(ROWS), [expected(x) for x in ROWS], 2e-5)
    assert all("float32" in floats and "int64" in whole for floats, whole in seen)


@ADAPTERS
def test_the_negative_of_a_function_has_its_derivatives_with_the_other_sign(adapter: Callable) -> None:
    function = adapter(f, 3)
    negative = function.negated()
    close(negative.values(ROWS), -function.values(ROWS))
    close(negative.gradients(ROWS), -function.gradients(ROWS))
    close(negative.values_and_gradients(ROWS)[1], -function.gradients(ROWS))
    close(negative.products(X, V), -function.products(X, V))
    close(negative.mean_products(ROWS, V), -function.mean_products(ROWS, V))
    assert negative.counts is not function.counts


@ADAPTERS
def test_functions_receive_the_type_that_is_asked_for(adapter: Callable) -> None:
    seen: list[str] = []
    for dtype in ("float32", "float64"):
        adapter(lambda x: seen.append(str(x.dtype)) or f(x), 3, dtype=dtype).value(X)
    assert [name.removeprefix("torch.") for name in seen] == ["float32", "float64"]


def test_a_torch_function_that_vmap_refuses_is_computed_point_by_point() -> None:
    torch = pytest.importorskip("torch")

    def branching(x: Any) -> Any:
        return (x**2).sum() if float(x.detach()[0]) > 0 else torch.exp(x).sum()

    function = torch_function(lambda x: branching(x), 3)
    close(function.values(ROWS), [np.sum(x**2) if x[0] > 0 else np.exp(x).sum() for x in ROWS])


def test_an_error_of_a_torch_function_reaches_the_caller() -> None:
    pytest.importorskip("torch")

    def broken(x: Any) -> Any:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        torch_function(broken, 3).values(ROWS)


def test_jax_must_have_64_bits_for_float64() -> None:
    jax = pytest.importorskip("jax")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.raises(ValueError, match=r"jax.config.update\('jax_enable_x64', True\)"):
            jax_function(f, 3)
        assert jax_function(f, 3, dtype="float32").value(X) == pytest.approx(f(X), rel=1e-5)
    finally:
        jax.config.update("jax_enable_x64", before)


@ADAPTERS
def test_bad_input_is_named(adapter: Callable) -> None:
    with pytest.raises(ValueError, match="dtype must be 'float32' or 'float64', got 'int8'"):
        adapter(f, 3, dtype="int8")
    with pytest.raises(TypeError, match="f must be a function, got 3"):
        adapter(3, 3)
    assert isinstance(adapter(f, 3), RowFunction)


def test_an_absent_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ImportError, match=r"torch_function needs PyTorch: pip install 'esgroup\[torch\]'"):
        torch_function(f, 3)
    with pytest.raises(ImportError, match="jax_function needs JAX: pip install jax"):
        jax_function(f, 3)


def test_nothing_is_computed_before_the_arguments_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """With stand-ins that have nothing at all: any use of the library would fail."""
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace())
    for adapter in (torch_function, jax_function):
        with pytest.raises(ValueError, match="dtype must be"):
            adapter(f, 3, dtype="int8")
