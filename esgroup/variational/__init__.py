"""Variational inference with structured Gaussians and mixtures of them."""

from esgroup.variational.fitting import fit_posterior as fit_posterior
from esgroup.variational.posterior import Posterior as Posterior

__all__ = ["Posterior", "fit_posterior"]
