"""A stationary point says nothing about the length of a gradient."""

import numpy as np
from scipy.optimize import rosen, rosen_der

from esgroup.gradients import check_derivatives


def test_at_a_stationary_point_the_report_says_what_it_cannot_tell() -> None:
    report = check_derivatives(rosen, np.ones(6), lambda x: 2 * rosen_der(x))
    assert "x is stationary to rounding" in str(report)
    elsewhere = check_derivatives(rosen, np.full(6, 0.5), rosen_der)
    assert elsewhere.ok and not elsewhere.notes


def test_a_function_that_ends_nearby_gives_no_warning() -> None:
    x = np.array([1e-7, 0.02, 3.0])
    check_derivatives(lambda y: -np.log(y).sum() if (y > 0).all() else np.inf, x, lambda y: -1 / y)
