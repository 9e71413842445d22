"""Variational inference with structured Gaussians and mixtures of them."""

from esgroup.variational.batches import Likelihood as Likelihood
from esgroup.variational.posterior import Posterior as Posterior
from esgroup.variational.posterior import fit_posterior as fit_posterior
