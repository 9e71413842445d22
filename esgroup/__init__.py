"""Black-box search with evolution strategies whose search distributions have structure."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from esgroup import distributions as distributions
    from esgroup import gradients as gradients
    from esgroup import groups as groups
    from esgroup import newton as newton
    from esgroup import optuna as optuna
    from esgroup import restarts as restarts
    from esgroup import stopping as stopping
    from esgroup import strategies as strategies
    from esgroup import variational as variational
    from esgroup.distributions import Gaussian as Gaussian
    from esgroup.distributions.matrix_gaussian import MatrixGaussian as MatrixGaussian
    from esgroup.distributions.mixture import Mixture as Mixture
    from esgroup.distributions.wishart import Wishart as Wishart
    from esgroup.driver.minimize import minimize as minimize
    from esgroup.driver.scipy_methods import newton_method as newton_method
    from esgroup.driver.scipy_methods import scipy_method as scipy_method
    from esgroup.files.npz import CheckpointError as CheckpointError
    from esgroup.running.observers import Observer as Observer
    from esgroup.search.searcher import Searcher as Searcher
    from esgroup.space import Angle as Angle
    from esgroup.space import Choice as Choice
    from esgroup.space import Integer as Integer
    from esgroup.space import Real as Real
    from esgroup.space import Space as Space
    from esgroup.variational import Likelihood as Likelihood
    from esgroup.variational import Posterior as Posterior
    from esgroup.variational import fit_posterior as fit_posterior
    from esgroup.version import __version__ as __version__

# public names and their modules, loaded at first use so that the command starts at once
_HOMES = {
    "Angle": "esgroup.space",
    "CheckpointError": "esgroup.files.npz",
    "Choice": "esgroup.space",
    "Gaussian": "esgroup.distributions",
    "Integer": "esgroup.space",
    "Likelihood": "esgroup.variational",
    "MatrixGaussian": "esgroup.distributions.matrix_gaussian",
    "Mixture": "esgroup.distributions.mixture",
    "Observer": "esgroup.running.observers",
    "Real": "esgroup.space",
    "Searcher": "esgroup.search.searcher",
    "Space": "esgroup.space",
    "Wishart": "esgroup.distributions.wishart",
    "__version__": "esgroup.version",
    "Posterior": "esgroup.variational",
    "fit_posterior": "esgroup.variational",
    "minimize": "esgroup.driver.minimize",
    "newton_method": "esgroup.driver.scipy_methods",
    "scipy_method": "esgroup.driver.scipy_methods",
}
_MODULES = (
    "distributions", "gradients", "groups", "newton", "optuna", "restarts", "stopping", "strategies", "variational",
)  # fmt: skip

__all__ = sorted({*_HOMES, *_MODULES} - {"optuna"})  # it needs a package that may be missing


if not TYPE_CHECKING:  # a name that is not listed above is an error for type checkers

    def __getattr__(name):
        if name in _MODULES:
            return import_module(f"esgroup.{name}")
        if name in _HOMES:
            return getattr(import_module(_HOMES[name]), name)
        raise AttributeError(f"module 'esgroup' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
