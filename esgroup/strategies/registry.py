"""Which strategy searches with which distribution, and which classes can be saved: ours, and those of other packages.

Another package lists its strategies in the entry-point group `esgroup.strategies`:

    [project.entry-points."esgroup.strategies"]
    categorical = "their_package:CategoricalSearch"

The class has an attribute `distribution_class`, the distribution that it searches with. Without a package, call
`register`, which does the same for the running process.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from pkgutil import resolve_name
from typing import Any, TypeVar

from esgroup.files import objects
from esgroup.strategies.base import Strategy

S = TypeVar("S", bound=type[Strategy])

GROUP = "esgroup.strategies"

# by the class of the distribution, as "module:class": loaded when first used in a search
_OURS: dict[str, str] = {
    "esgroup.distributions.categorical:Categorical": "esgroup.strategies.categorical:CategoricalSearch",
    "esgroup.distributions.mixture:Mixture": "esgroup.strategies.mixture:MixtureSearch",
    "esgroup.distributions.product:Product": "esgroup.strategies.univariate:UnivariateSearch",
    "esgroup.distributions.univariate:Univariate": "esgroup.strategies.univariate:UnivariateSearch",
    "esgroup.distributions.wishart:Wishart": "esgroup.strategies.wishart:WishartSearch",
}
_registered: dict[type, type[Strategy]] = {}


def register(cls: S) -> S:
    """Allow a strategy class to be saved, and searches to start from instances of its `distribution_class`.

    Works as a class decorator. An installable package should declare the class as an entry point instead, so that a
    saved search can be loaded before the package is imported.
    """
    objects.register_derived(cls, Strategy)
    distribution = getattr(cls, "distribution_class", None)
    if distribution is not None:
        _registered[distribution] = cls
        objects.register_class(distribution)
    return cls


@cache
def _load_entry_points() -> None:
    """Register the strategies of installed packages; an error names the package whose strategy fails to load."""
    for point in entry_points(group=GROUP):
        try:
            register(point.load())
        except Exception as error:
            package = point.dist.name if point.dist is not None else "a package"
            raise ImportError(f"{package} offers the strategy {point.value!r}, which fails to load: {error}") from error


def register_all() -> None:
    """Allow all strategies and distributions to be saved."""
    from esgroup import options, restarts
    from esgroup.distributions import families, gaussian
    from esgroup.distributions.matrix_gaussian import BlockwiseKronecker
    from esgroup.domains import Affine, Arrays, Box, Fixed, Named, PositiveDefinite, Shaped
    from esgroup.space import Angle, Choice, Integer, Real, Space
    from esgroup.strategies import in_domain, model, product, vector
    from esgroup.surrogates import QuadraticSurrogate

    classes = {resolve_name(name) for pair in _OURS.items() for name in pair}
    classes |= {gaussian.Gaussian, options.SearchOptions, vector.VectorSearch, in_domain.Within, model.ModelSearch}
    classes |= {product.ProductSearch, QuadraticSurrogate, Space, Real, Integer, Angle}
    classes |= {Affine, Arrays, Box, Fixed, Named, PositiveDefinite, Shaped, restarts.IPOP, restarts.BIPOP}
    univariate = resolve_name("esgroup.distributions.univariate:Univariate")
    classes |= {value for value in vars(families).values() if isinstance(value, type) and issubclass(value, univariate)}
    for cls in classes - {univariate}:  # which is abstract
        objects.register_class(cls)
    objects.register_class(Choice, Choice.stored)
    objects.register_serial(BlockwiseKronecker)
    _load_entry_points()


def strategy_class(distribution: Any) -> type[Strategy] | None:
    """The strategy class for a distribution; None if it is not a distribution, or is searched as a vector."""
    kinds = type(distribution).__mro__
    for kind in kinds:
        found = _OURS.get(f"{kind.__module__}:{kind.__qualname__}")
        if found is not None:
            return resolve_name(found)
    if kinds[0].__module__.split(".")[0] in ("builtins", "numpy", "esgroup"):
        return None  # not from another package: no need to check what is installed
    _load_entry_points()
    return next((_registered[kind] for kind in kinds if kind in _registered), None)
