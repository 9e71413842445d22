"""Powell's singular function and Broyden's tridiagonal one: published values."""

import numpy as np
import pytest
from scipy.optimize import fsolve

import esgroup_problems as zoo
from esgroup_problems.chains import BroydenTridiagonal


def test_powells_function_at_its_usual_start_has_the_published_values() -> None:
    problem = zoo.get("powell_singular", 8)
    assert problem.x0.tolist() == [3, -1, 0, 1, 3, -1, 0, 1]
    assert problem.fun(problem.x0) == 2 * 215
    assert problem.gradient(problem.x0).tolist() == [306, -144, -2, -310] * 2


def test_the_hessian_of_powells_function_is_in_blocks_and_singular_at_the_minimum() -> None:
    problem = zoo.get("powell_singular", 8)
    at_start, at_zero = (
        np.stack([problem.hessian_product(x, e) for e in np.eye(8)]) for x in (problem.x0, problem.minimizer)
    )
    block = [[482, 20, 0, -480], [20, 212, -24, 0], [0, -24, 58, -10], [-480, 0, -10, 490]]
    np.testing.assert_array_equal(at_start, np.kron(np.eye(2), block))
    assert np.linalg.matrix_rank(at_zero) == 4


@pytest.mark.parametrize("dim", [2, 6, 21])
def test_powells_function_has_blocks_of_four(dim: int) -> None:
    with pytest.raises(ValueError, match="dim must be "):
        zoo.get("powell_singular", dim)


def test_broydens_function_at_its_usual_start() -> None:
    # the residuals at -1 are -2, -1, ..., -1, -3
    problem = zoo.get("broyden_tridiagonal", 7)
    assert problem.fun(problem.x0) == 4 + 5 + 9


def test_broydens_root_is_scipys() -> None:
    for dim in (1, 2, 9):
        root = fsolve(BroydenTridiagonal().residuals, -np.ones(dim), xtol=1e-14)
        np.testing.assert_allclose(zoo.get("broyden_tridiagonal", dim).minimizer, root, rtol=1e-10)


def test_broydens_root_is_constant_inside_a_long_chain() -> None:
    problem = zoo.get("broyden_tridiagonal", 2000)
    np.testing.assert_allclose(problem.minimizer[100:-100], -(0.5**0.5), rtol=1e-14)
    assert problem.fun(problem.minimizer) < 1e-27
