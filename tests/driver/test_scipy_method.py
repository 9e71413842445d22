"""esgroup as a method of `scipy.optimize.minimize`."""

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import esgroup
from esgroup.checks import Array
from tests.driver.support import X0, Recorder, ellipsoid


class TestSciPy:
    def solve(self, **arguments: Any) -> Any:
        return scipy.optimize.minimize(
            **{"fun": ellipsoid, "x0": X0, "method": esgroup.scipy_method, "options": {"rng": 1}, **arguments}
        )

    def test_it_is_a_method_of_scipy(self) -> None:
        result = self.solve(options={"sigma0": 0.5, "max_evals": 300, "rng": 1}, args=(2.0,))
        expected = esgroup.minimize(ellipsoid, X0, 0.5, args=(2.0,), max_evals=300, rng=1)
        assert np.array_equal(result.x, expected.x)
        assert result.nfev == expected.nfev
        assert self.solve(args=2.0, options={"max_evals": 10}).nfev >= 10  # SciPy takes a single argument so

    @pytest.mark.parametrize(
        "bounds", [scipy.optimize.Bounds([0.5, -np.inf, -3], [2, 0, np.inf]), [(0.5, 2), (None, 0), (-3, None)]]
    )
    def test_bounds_in_both_spellings(self, bounds: Any) -> None:
        points = Recorder(ellipsoid)
        result = self.solve(fun=points, bounds=bounds, options={"sigma0": 0.5, "rng": 1, "max_evals": 2000})
        assert (np.array(points.points) >= [0.5, -np.inf, -3]).all()
        assert (np.array(points.points) <= [2, 0, np.inf]).all()
        assert result.x == pytest.approx([0.5, 0, 0], abs=1e-3)

    @pytest.mark.parametrize(
        "constraints",
        [
            scipy.optimize.NonlinearConstraint(lambda x: x[0] * x[1], 1.0, np.inf),
            [{"type": "ineq", "fun": lambda x, least: x[0] * x[1] - least, "args": (1.0,)}],
            ({"type": "ineq", "fun": lambda x: x[0] * x[1] - 1}, scipy.optimize.LinearConstraint(np.eye(3), -9, 9)),
        ],
    )
    def test_constraints_in_all_spellings_reach_the_search(self, constraints: Any) -> None:
        options = {"sigma0": 0.5, "rng": 1, "max_evals": 400}
        result = self.solve(x0=[2.0, 2.0, 2.0], constraints=constraints, options=options)
        expected = esgroup.minimize(ellipsoid, [2.0, 2.0, 2.0], constraints=constraints, **options)
        assert np.array_equal(result.x, expected.x)
        assert result.feasible and result.x[0] * result.x[1] > 1 - 1e-4
        assert np.array_equal(result.multipliers[0], expected.multipliers[0])

    def test_no_constraints_are_as_good_as_none(self) -> None:
        options = {"rng": 1, "max_evals": 50}
        assert np.array_equal(self.solve(constraints=[], options=options).x, self.solve(options=options).x)

    def test_the_callback_gets_the_best_point(self) -> None:
        seen: list[Array] = []
        result = self.solve(callback=lambda x: seen.append(x) or True, options={"rng": 1, "max_iters": 20})
        assert len(seen) == 20  # a value that is returned means nothing to SciPy
        assert np.array_equal(seen[-1], result.x)
        assert [ellipsoid(x) for x in seen] == sorted((ellipsoid(x) for x in seen), reverse=True)

    def test_the_callback_may_ask_for_a_result(self) -> None:
        seen = []

        def callback(intermediate_result: Any) -> None:
            seen.append(intermediate_result.fun)
            if len(seen) == 7:
                raise StopIteration

        result = self.solve(callback=callback)
        assert (result.nit, result.fun) == (7, seen[-1])
        assert not result.success

    def test_the_options_that_all_methods_have(self) -> None:
        assert self.solve(options={"maxiter": 6, "disp": False}).nit == 6

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("jac", lambda x: x),
            ("jac", True),
            ("hess", lambda x: x),
            ("hessp", lambda x, p: p),
            ("tol", 1e-6),
        ],
    )
    def test_what_it_cannot_use_is_refused(self, name: str, value: Any) -> None:
        with pytest.raises(ValueError, match=rf"scipy_method.* {name}\b"):
            self.solve(**{name: value})

    def test_an_unknown_option_is_refused(self) -> None:
        with pytest.raises(TypeError, match="maxfun"):
            self.solve(options={"maxfun": 100})
