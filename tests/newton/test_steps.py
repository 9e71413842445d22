"""Schedules and line searches against values worked out by hand."""

import numpy as np
import pytest

from esgroup.newton import Constant, Exponential, Inverse, Linear
from esgroup.newton.precision import Breakdown
from esgroup.newton.steps import LinePoint, armijo, as_schedule, full_step


def test_schedules_at_iterations_worked_out_by_hand() -> None:
    assert [Constant().factor(t) for t in (1, 50)] == [1, 1]
    assert [Linear(5, last=0.2).factor(t) for t in (1, 3, 5, 9)] == pytest.approx([1, 0.6, 0.2, 0.2])
    assert [Inverse(2).factor(t) for t in (1, 3, 5)] == pytest.approx([1, 1 / 2, 1 / 3])
    assert [Exponential(0.5).factor(t) for t in (1, 2, 3)] == pytest.approx([0.5, 0.75, 0.875])


def test_schedules_correct_for_momentum() -> None:
    assert Constant().factors(2, 0.5) == pytest.approx((1 / 0.75, 1))
    assert Exponential(0.9).factors(2, 0.5) == pytest.approx((0.19 / 0.75, 0.19 / 0.75))
    assert Constant().factors(1, 0.0) == (1, 1)


def test_schedules_have_names_and_may_be_functions() -> None:
    assert as_schedule("constant", None) == Constant()
    assert as_schedule("linear", 30) == Linear(30)
    assert as_schedule("inverse", None) == Inverse()
    assert as_schedule("exponential", None) == Exponential(0.999)
    assert as_schedule(lambda t: 2.0 / t, None).factor(4) == 0.5


def parabola(x: np.ndarray) -> float:
    return float(x @ x)


HERE = LinePoint(np.array([1.0]), 1.0)


def test_a_step_with_enough_decrease_is_taken_at_once() -> None:
    trial = armijo(parabola, HERE, np.array([-1.0]), -2.0, 1.0)
    assert trial == LinePoint(np.array([0.0]), 0.0)


def test_a_step_too_far_is_shortened_to_the_minimum_of_the_parabola() -> None:
    """From 1 along -3 the parabola x^2 has its minimum at the length 1/3."""
    trial = armijo(parabola, HERE, np.array([-3.0]), -6.0, 1.0)
    assert trial.x == pytest.approx(0.0, abs=1e-15)


def test_a_length_shrinks_to_between_a_tenth_and_a_half() -> None:
    asked = []

    def wall(x: np.ndarray) -> float:
        asked.append(float(1 - x[0]))
        return np.inf if len(asked) == 1 else float(x @ x) if x[0] > 0.9 else 1.0

    armijo(wall, HERE, np.array([-1.0]), -2.0, 1.0)
    ratios = np.divide(asked[1:], asked[:-1])
    assert asked[1] == pytest.approx(0.1)  # after what is not finite
    assert ((ratios >= 0.1 - 1e-12) & (ratios <= 0.5 + 1e-12)).all()


def test_a_smaller_decrease_than_required_is_not_enough() -> None:
    asked = []

    def half_the_promise(x: np.ndarray) -> float:
        asked.append(float(1 - x[0]))
        return 1.0 - 0.5 * asked[-1]

    with pytest.raises(Breakdown, match="no decrease"):
        armijo(half_the_promise, HERE, np.array([-1.0]), -1.0, 1.0, decrease=0.9)
    assert asked[:4] == [1, 1 / 2, 1 / 4, 1 / 8] and len(asked) == 60
    assert armijo(half_the_promise, HERE, np.array([-1.0]), -1.0, 1.0, decrease=0.4).fun == 0.5


def test_a_full_step_evaluates_once_and_takes_any_value() -> None:
    assert full_step(parabola, HERE, np.array([-3.0]), -6.0, 2.0).x == pytest.approx(-5.0)
