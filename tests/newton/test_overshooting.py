"""Estimates that would leave the Hessian: updates that overshoot, and estimates that break down and are begun again."""

from dataclasses import replace

import numpy as np
import pytest

from esgroup.gradients.function import as_function
from esgroup.groups import Group, parse
from esgroup.newton import NewtonSettings, minimize_newton
from esgroup.newton.budget import CallBudget
from esgroup.newton.options import parse_options
from esgroup.newton.precision import GroupPrecision, UpdateData, group_precision
from esgroup.newton.run import begin_run
from esgroup.running.loop import run_to_end
from esgroup.stopping.budgets import parse_limits

DIM = 20
BORDERED = ("heisenberg", "heisenberg:k1=0,k2=4", "block_triangular:k=4,upper")
RNG = np.random.default_rng(3)
TURN = np.linalg.qr(RNG.standard_normal((DIM, DIM)))[0]
HESSIAN = (TURN * np.logspace(0, 6, DIM)) @ TURN.T


def data_of(rate: float) -> UpdateData:
    return UpdateData(np.ones(DIM), lambda rows: rows @ HESSIAN, np.diagonal(HESSIAN).copy(), 0.0, rate, None)


def divergence(precision: GroupPrecision) -> float:
    """KL of the Gaussians with precisions H and S up to a constant: tr(X) / 2 + log det B, X = B^-1 H B^-T."""
    root = precision.family.group.dense(precision.root)
    x = np.linalg.solve(root, np.linalg.solve(root, HESSIAN).T)
    return float(np.trace(x) / 2 + np.linalg.slogdet(root)[1])


def first(group: Group) -> GroupPrecision:
    return group_precision(group, "precision", float(np.diagonal(HESSIAN).max()), 1.0, True)


@pytest.mark.parametrize("spelling", BORDERED)
def test_updates_approach_a_hessian_whose_middle_the_group_cannot_hold(spelling: str) -> None:
    """With a constant rate the rows of the last block overshoot until the root is singular."""
    precision = first(parse(spelling, DIM))
    start = divergence(precision)
    for _ in range(150):
        precision = precision.advance(data_of(0.9))
    slow = first(parse(spelling, DIM))
    for _ in range(150):
        slow = slow.advance(data_of(0.1))
    assert np.linalg.cond(precision.family.group.dense(precision.root)) < 1e3
    assert start - divergence(precision) > 0.8 * (start - divergence(slow))


def test_the_step_is_the_inverse_of_the_curvature_along_the_last_one_if_that_is_large() -> None:
    precision = first(parse("heisenberg", DIM))
    before = precision.advance(data_of(0.9))
    gradient = before._natural_gradient(data_of(0.9))
    m = before.last.m
    steep = before.last._replace(gradient=gradient + 5.0 * m)  # as if G had fallen by 5 M
    object.__setattr__(before, "last", steep)
    np.testing.assert_allclose(before.advance(data_of(0.9)).last.m, gradient / 5.0, rtol=1e-12)
    object.__setattr__(before, "last", steep._replace(gradient=gradient + 2.0 * m))
    np.testing.assert_allclose(before.advance(data_of(0.9)).last.m, 0.9 * gradient, rtol=1e-12)
    object.__setattr__(before, "last", steep._replace(gradient=gradient, curvature=8.0))  # what it was before fades
    np.testing.assert_allclose(before.advance(data_of(0.9)).last.m, gradient / 4.0, rtol=1e-12)


# ---- standard problems: More, Garbow and Hillstrom 1981 -----------------------------------------------------------


class LeastSquares:
    """f = |r|^2 with r, its Jacobian and sum_i r_i Hess r_i."""

    def __init__(self, residual, jacobian, second) -> None:
        self.residual, self.jacobian, self.second = residual, jacobian, second

    def fun(self, x):
        return float(self.residual(x) @ self.residual(x))

    def jac(self, x):
        return 2 * self.jacobian(x).T @ self.residual(x)

    def hess(self, x):
        return 2 * (self.jacobian(x).T @ self.jacobian(x) + self.second(x, self.residual(x)))


I = np.arange(1.0, DIM + 1.0)  # noqa: E741
PENALTY_I = LeastSquares(
    lambda x: np.append(1e-2**1.25 * (x - 1), x @ x - 0.25),
    lambda x: np.vstack([1e-2**1.25 * np.eye(DIM), 2 * x]),
    lambda x, r: 2 * r[-1] * np.eye(DIM),
)
VARIABLY_DIMENSIONED = LeastSquares(
    lambda x: np.concatenate([x - 1, [I @ (x - 1), (I @ (x - 1)) ** 2]]),
    lambda x: np.vstack([np.eye(DIM), I, 2 * (I @ (x - 1)) * I]),
    lambda x, r: 2 * r[-1] * np.outer(I, I),
)
TRIGONOMETRIC = LeastSquares(
    lambda x: DIM - np.cos(x).sum() + I * (1 - np.cos(x)) - np.sin(x),
    lambda x: np.sin(x)[None] + np.diag(I * np.sin(x) - np.cos(x)),
    lambda x, r: np.diag(np.cos(x) * r.sum() + r * (I * np.cos(x) + np.sin(x))),
)
STANDARD = {
    "penalty I": (PENALTY_I, I),
    "variably dimensioned": (VARIABLY_DIMENSIONED, 1 - I / DIM),
    "trigonometric": (TRIGONOMETRIC, np.full(DIM, 1 / DIM)),
}


@pytest.mark.parametrize("name", STANDARD)
@pytest.mark.parametrize("structure", ["heisenberg", "full", "triangular"])
def test_standard_problems_are_solved(name: str, structure: str) -> None:
    function, x0 = STANDARD[name]
    found = minimize_newton(function.fun, x0, jac=function.jac, hess=function.hess, structure=structure, rng=1)
    assert list(found.stop) == ["gtol"] and np.abs(function.jac(found.x)).max() <= 1e-5


@pytest.mark.parametrize("structure", ["heisenberg", "heisenberg:k1=0,k2=1", "block_triangular", "diagonal"])
def test_no_standard_problem_ends_with_an_estimate_that_broke_down(structure: str) -> None:
    for function, x0 in STANDARD.values():
        found = minimize_newton(
            function.fun, x0, jac=function.jac, hess=function.hess, structure=structure, max_iters=150, rng=1
        )
        assert found.stop.keys() <= {"gtol", "max_iters"}


def test_a_logistic_regression_is_solved_from_far_away() -> None:
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((100, DIM)) * np.logspace(0, 2, DIM)
    signs = np.where(rng.random(100) < 0.5, 1.0, -1.0)

    def wrong(x: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(np.clip(signs * (rows @ x), -700, 700)))

    found = minimize_newton(
        lambda x: float(np.logaddexp(0, -signs * (rows @ x)).sum() + 0.5 * x @ x),
        np.full(DIM, 1.0),
        jac=lambda x: -rows.T @ (signs * wrong(x)) + x,
        hess=lambda x: (rows.T * (wrong(x) * (1 - wrong(x)))) @ rows + np.eye(DIM),
        structure="heisenberg",
        rng=1,
    )
    assert found.stop.keys() <= {"gtol", "max_iters"} and found.fun < 70


# ---- an estimate that breaks down ---------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [0.0, 1e-170, 1e40, 1e150, np.nan])
def test_an_estimate_that_is_singular_or_far_from_the_hessian_is_begun_again(factor: float) -> None:
    """Its steps are no numbers or no more than rounding; the function has no such fault, nor is it solved."""
    function, x0 = STANDARD["variably dimensioned"]
    options = parse_options(NewtonSettings(), "full", DIM, 200)
    budget, rng = CallBudget(parse_limits(None, 200, None, None)), np.random.default_rng(1)
    known = as_function(budget.guarded(function.fun, counts=True), DIM, jac=function.jac, hess=function.hess)
    run = begin_run(known, x0, options, rng, budget)
    run.iterate()
    run.precision = replace(run.precision, root=factor * run.precision.root)
    found = run_to_end(run, [])
    assert list(found.stop) == ["gtol"] and np.abs(function.jac(found.x)).max() <= 1e-5
