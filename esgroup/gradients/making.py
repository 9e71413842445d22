"""A function with what is known of it, in SciPy's spelling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from esgroup.gradients.function import PROBES, Gradients, Hessians, Products, Values, must_be_callable
from esgroup.gradients.memory import ValueAndGradient


def as_function(
    fun: Callable[..., Any],
    dim: int,
    *,
    args: tuple[Any, ...] = (),
    jac: Callable[..., Any] | bool | None = None,
    hessp: Callable[..., Any] | None = None,
    hess: Callable[..., Any] | None = None,
    hess_diag: Callable[..., Any] | None = None,
    hessp_vectorized: bool = False,
    vectorized: bool = False,
    probes: int = PROBES,
) -> Values | Gradients | Products | Hessians:
    """The function, as the class of what is known of it; names and meaning are those of scipy.optimize.minimize.

    `jac(x)` is the gradient; with jac=True fun returns (value, gradient), which are remembered for the same x.
    `hessp(x, v)` is the product of the Hessian with one vector, or with rows of them if `hessp_vectorized`;
    `hess_diag(x)` its diagonal, otherwise estimated from `probes` products. `hess(x)` is the whole Hessian. All of them
    get `args` at the end. With `vectorized`, fun and jac take rows of points.
    """
    _check_combination(jac, hessp, hess, hess_diag, hessp_vectorized)
    known: dict[str, Any] = {"dim": dim, "vectorized": vectorized, "fun": with_args("fun", fun, args)}
    if jac is True:
        both = ValueAndGradient(known["fun"])
        known |= {"fun": both.fun, "jac": both.jac}
    elif jac:
        known["jac"] = with_args("jac", jac, args)
    if hess is not None:
        return Hessians(**known, hess=with_args("hess", hess, args))
    if hessp is not None:
        diagonal = None if hess_diag is None else with_args("hess_diag", hess_diag, args)
        product = with_args("hessp", hessp, args)
        return Products(**known, hessp=product, hessp_vectorized=hessp_vectorized, hess_diag=diagonal, probes=probes)
    return Gradients(**known) if jac else Values(**known)


def with_args(name: str, fun: Any, args: Any) -> Callable[..., Any]:
    """fun(..., *args), as an object that can be pickled."""
    must_be_callable(name, fun)
    if not isinstance(args, tuple):
        args = (args,)  # as in SciPy
    return _WithArgs(fun, args) if args else fun


@dataclass(frozen=True, eq=False)
class _WithArgs:
    fun: Callable[..., Any]
    args: tuple[Any, ...]

    def __call__(self, *first: Any) -> Any:
        return self.fun(*first, *self.args)


def _check_combination(jac: Any, hessp: Any, hess: Any, hess_diag: Any, hessp_vectorized: bool) -> None:
    if isinstance(jac, str):
        raise ValueError(f"jac must be a function or True, got {jac!r}: differences of values are not offered here")
    for name, given in (("hessp", hessp), ("hess", hess)):
        if given is not None and not jac:
            raise ValueError(f"{name} needs the gradient as well: give jac=")
    if hess is not None and hessp is not None:
        raise ValueError("hess or hessp must be given, not both: the products follow from hess")
    if hess is not None and hess_diag is not None:
        raise ValueError("hess or hess_diag must be given, not both: the diagonal follows from hess")
    if hess_diag is not None and hessp is None:
        raise ValueError("hess_diag needs products with the Hessian as well: give hessp=")
    if hessp_vectorized and hessp is None:
        raise ValueError("hessp_vectorized says how hessp is called: give hessp=")
