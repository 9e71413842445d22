"""esgroup.minimize(method="newton"): arguments that reach the method, and arguments that either side refuses."""

from typing import Any

import numpy as np
import pytest

import esgroup
from esgroup.newton import NewtonSettings, minimize_newton
from tests.newton.reference import cosh

X0 = np.random.default_rng(3).standard_normal(6)
FUNCTION = cosh(6)
KNOWN: dict[str, Any] = {"jac": FUNCTION.jac, "hessp": FUNCTION.hessp}


def test_all_arguments_reach_the_method() -> None:
    seen: list[int] = []
    options: dict[str, Any] = {"structure": "full", "max_iters": 7, "rng": 3}
    own = NewtonSettings(rate=0.5, line_search="none")
    found = esgroup.minimize(
        FUNCTION.fun,
        X0,
        method="newton",
        callback=lambda so_far: seen.append(so_far.nit),
        newton=own,
        **KNOWN,
        **options,
    )
    wanted = minimize_newton(FUNCTION.fun, X0, rate=0.5, line_search="none", **KNOWN, **options)
    np.testing.assert_array_equal(found.x, wanted.x)
    assert found.nit == wanted.nit == 7 and seen == list(range(1, 8))


def test_defaults_are_those_of_the_method() -> None:
    found = esgroup.minimize(FUNCTION.fun, X0, method="newton", **KNOWN)
    wanted = minimize_newton(FUNCTION.fun, X0, **KNOWN)
    np.testing.assert_array_equal(found.x, wanted.x)
    assert found.structure == wanted.structure and "Moving" in found.structure


@pytest.mark.parametrize(("options", "kind", "message"), [
    ({"method": "newton", "bounds": (0, 1)}, ValueError, r"bounds .*searches.*method='newton'.*\(0, 1\)"),
    ({"method": "newton", "sigma0": 1.0}, ValueError, "sigma0 .*searches.*1.0"),
    ({"method": "newton", "restarts": "bipop"}, ValueError, "restarts .*searches.*'bipop'"),
    ({"method": "newton", "line_serch": "none"}, TypeError, "'line_serch'"),
    ({"method": "bfgs"}, ValueError, "method must be .*'bfgs'"),
    ({"method": "newton", "jac": None, "hessp": None}, ValueError, "jac must be given"),
])  # fmt: skip
def test_what_newton_does_not_have_is_refused(options: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        esgroup.minimize(FUNCTION.fun, X0, **{**KNOWN, **options})


@pytest.mark.parametrize(("options", "kind", "message"), [
    ({"jac": FUNCTION.jac}, ValueError, "jac .*search.*method='newton'"),
    ({"hessp": FUNCTION.hessp}, ValueError, "hessp .*search"),
    ({"gtol": 1e-8}, TypeError, "'gtol'.*method='newton'"),
    ({"sigam0": 1.0}, TypeError, "'sigam0': did you mean sigma0"),
])  # fmt: skip
def test_what_a_search_does_not_have_is_refused(options: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        esgroup.minimize(FUNCTION.fun, X0, **options)
