"""Which strategy searches with which distribution."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from esgroup.files import objects
from esgroup.strategies.base import Strategy

# by the class of the distribution, as "module:class": loaded when one is searched with
_STRATEGIES: dict[str, str] = {
    "esgroup.distributions.matrix_gaussian:MatrixGaussian": "esgroup.strategies.matrix_gaussian:MatrixGaussianSearch",
    "esgroup.distributions.mixture:Mixture": "esgroup.strategies.mixture:MixtureSearch",
    "esgroup.distributions.product:Product": "esgroup.strategies.univariate:UnivariateSearch",
    "esgroup.distributions.univariate:Univariate": "esgroup.strategies.univariate:UnivariateSearch",
    "esgroup.distributions.wishart:Wishart": "esgroup.strategies.wishart:WishartSearch",
}


def register_all() -> None:
    """Let all strategies and distributions be stored."""
    from esgroup.distributions import families, gaussian

    classes = {_loaded(name) for pair in _STRATEGIES.items() for name in pair} | {gaussian.Gaussian}
    univariate = _loaded("esgroup.distributions.univariate:Univariate")
    classes |= {value for value in vars(families).values() if isinstance(value, type) and issubclass(value, univariate)}
    for cls in classes:
        objects.store_too(cls)


def _loaded(name: str) -> Any:
    module, _, inner = name.partition(":")
    return getattr(import_module(module), inner)


def strategy_class(distribution: Any) -> type[Strategy] | None:
    """The class of the strategy for a distribution; None for what is none, or is searched as a vector."""
    for kind in type(distribution).__mro__:
        found = _STRATEGIES.get(f"{kind.__module__}:{kind.__qualname__}")
        if found is not None:
            loaded: type[Strategy] = _loaded(found)
            return loaded
    return None
