"""Functions multiplied by a number: the same run, or a reason to stop that says what went wrong; no wrong success."""

import warnings

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der, rosen_hess

from esgroup.newton import minimize_newton

X0 = np.array([-1.2, 1.0, -1.2, 1.0])
STRUCTURES = ("full", "heisenberg:k1=1,k2=1", "moving:k=4")


def solve(scale: float, structure: str, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return minimize_newton(
            lambda x: float(scale * rosen(x)),
            X0,
            jac=lambda x: scale * rosen_der(x),
            hess=lambda x: scale * rosen_hess(x),
            structure=structure,
            **given,
        )


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("power", [-996, -300, 300, 990])  # of 2: from 1e-300 to 1e298
def test_iterations_do_not_depend_on_a_factor_of_the_function(power: int, structure: str) -> None:
    plain, scaled = solve(1.0, structure, max_iters=8), solve(2.0**power, structure, max_iters=8)
    assert scaled.nit == 8 and np.allclose(scaled.x, plain.x, rtol=1e-9)


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("scale", [1e-300, 1e-100, 1e-7, 1e300])
def test_a_success_is_a_minimum_whatever_the_factor(scale: float, structure: str) -> None:
    found = solve(scale, structure)
    assert found.success and np.abs(found.x - 1.0).max() < 0.05 and np.isfinite(found.jac).all()


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_flat_start_is_no_minimum(structure: str) -> None:
    """-exp(-|x|^2 / 2) far from its minimum has a gradient below gtol, and a curvature below it, too."""
    x0 = np.array([4.0, -4.0])

    def fun(x: np.ndarray) -> float:
        return -float(np.exp(-0.5 * x @ x))

    structure = structure.replace("k1=1,k2=1", "k1=0,k2=1")
    found = minimize_newton(
        fun, x0, jac=lambda x: -fun(x) * x, hess=lambda x: -fun(x) * (np.eye(2) - np.outer(x, x)), structure=structure
    )
    assert not found.success or np.abs(found.x).max() < 1e-4
    assert found.nit > 0


def test_a_precision_that_overflows_is_a_reason_to_stop() -> None:
    found = minimize_newton(
        lambda x: float(1e305 * (x @ x)),
        [1.0, -1.0],
        jac=lambda x: 2e305 * x,
        hess=lambda x: 2e305 * np.eye(2) * 100,
        structure="moving:k=1",
    )
    assert list(found.stop) == ["not_finite"] and not found.success


def test_a_deep_minimum_of_large_values_is_one() -> None:
    scale = 1e80
    found = minimize_newton(
        lambda x: float(scale * (x @ x - 1.0)),
        [2.0, 1.0],
        jac=lambda x: 2 * scale * x,
        hess=lambda x: 2 * scale * np.eye(2),
    )
    assert found.success and found.fun == -scale
