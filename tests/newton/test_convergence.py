"""The paper's valleys: what the defaults reach, on seeds that they were not chosen on."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import esgroup_problems as zoo
from esgroup.newton import minimize_newton


def solve(name: str, x0: np.ndarray, **given):
    problem = zoo.get(name, len(x0))
    known = {"jac": problem.gradient, "hessp": problem.hessian_product, "hess_diag": problem.hessian_diagonal}
    return minimize_newton(problem.fun, x0, target=1e-6, **known, **{"structure": "heisenberg"} | given)


@pytest.mark.parametrize("name", ["rosenbrock", "dixon_price"])
def test_the_defaults_mostly_solve_the_valleys_in_fifty_iterations(name: str) -> None:
    found = [solve(name, np.random.default_rng(seed).uniform(0, 2, 200)) for seed in range(50, 55)]
    assert [one.status for one in found] == [1] * 5
    assert np.median([one.nit for one in found]) <= 50


@pytest.mark.parametrize("seed", [50, 51])
def test_the_papers_plain_iteration_solves_them_too(seed: int) -> None:
    found = solve(
        "rosenbrock",
        np.random.default_rng(seed).uniform(0, 2, 200),
        line_search="none",
        clip=None,
        absolute=False,
        rate=0.7,
    )
    assert found.status == 1 and found.nit <= 80


def test_the_last_coordinate_is_what_rosenbrocks_valley_needs() -> None:
    x0 = np.random.default_rng(50).uniform(0, 2, 200)
    assert solve("rosenbrock", x0, structure="heisenberg:k1=0,k2=1", max_iters=50).success
    assert not solve("rosenbrock", x0, structure="block_triangular:k=4", max_iters=50).success


@pytest.mark.parametrize("middle", [[0.0, 0.0], [-1.2, 1.0]])
@pytest.mark.parametrize("structure", ["moving:k=10", "moving:k=5,residual"])
def test_the_moving_block_follows_the_front_through_the_whole_valley(middle: list[float], structure: str) -> None:
    x0 = np.resize(middle, 60) + 0.1 * np.random.default_rng(51).standard_normal(60)
    found = solve("rosenbrock", x0, structure=structure)
    assert found.status == 1 and found.nit <= 230
    assert solve("rosenbrock", x0, structure="diagonal", max_iters=300).fun > 0.1


def test_covariance_form_works_as_well() -> None:
    x0 = np.random.default_rng(52).uniform(0, 2, 40)
    found = solve("rosenbrock", x0, form="covariance", structure="heisenberg:upper")
    assert found.status == 1 and found.nit <= 80


def test_the_benchmark_counts_what_it_calls() -> None:
    bench = _bench()
    problem, x0 = zoo.get("rosenbrock", 10), bench.start("U(0,2)", 10, 100)
    for name in ("Hs-low(4,4)", "moving(10)", "BFGS", "Newton-CG"):
        found = bench.run(bench.METHODS[name], problem, 1e-6, x0)
        assert found.solved and found.counts.njev > 0 and found.iterations > 0
        assert (found.counts.nhvp > 0) == (name != "BFGS")
        assert len(bench.row(name, [found, found._replace(solved=False)]).split("1 of  2")[1].split()) == 7


def _bench():
    path = Path(__file__).parents[2] / "scripts" / "bench_newton.py"
    spec = importlib.util.spec_from_file_location("bench_newton", path)
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["bench_newton"] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module
