"""The function with products of its Hessian, whatever of them the caller has."""

from __future__ import annotations

from typing import Any

from esgroup.gradients.differences import with_difference_products
from esgroup.gradients.function import Gradients, Products
from esgroup.gradients.making import as_function, with_args


def products_of(
    fun: Any,
    dim: int,
    *,
    args: tuple[Any, ...],
    jac: Any,
    hessp: Any,
    hess: Any,
    hess_diag: Any,
    hessp_vectorized: bool,
    probes: int,
) -> Products:
    """`as_function`, with differences of gradients in the place of products if there is neither hessp nor hess."""
    if not jac:
        raise ValueError("jac must be given: structured Newton needs the gradient")
    if hessp is None and hess is None:
        function = as_function(fun, dim, args=args, jac=jac, hessp_vectorized=hessp_vectorized)
        diagonal = None if hess_diag is None else with_args("hess_diag", hess_diag, args)
        assert isinstance(function, Gradients)  # since there is jac
        return with_difference_products(function, hess_diag=diagonal, probes=probes)
    found = as_function(
        fun,
        dim,
        args=args,
        jac=jac,
        hessp=hessp,
        hess=hess,
        hess_diag=hess_diag,
        hessp_vectorized=hessp_vectorized,
        probes=probes,
    )
    assert isinstance(found, Products)  # since there is hessp or hess
    return found
