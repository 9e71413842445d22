"""The figure docs/posterior.png: logistic regression with three weights, fitted, beside a long Markov chain.

    python scripts/figure_posterior.py [--out posterior.png]        some seconds; needs matplotlib
"""
# extras: plot

from __future__ import annotations

from pathlib import Path

import numpy as np
import typer

import esgroup

OUT = Path(__file__).parents[1] / "docs" / "posterior.png"


class Regression:
    """log p(w | data) up to a constant, with a standard normal prior, and its gradient; of rows of weights."""

    def __init__(self, rng: np.random.Generator) -> None:
        features = rng.standard_normal((40, 3))
        labels = np.where(features @ [1.0, -2.0, 0.5] + rng.logistic(size=40) > 0, 1.0, -1.0)
        self.signed = labels[:, None] * features

    def logp(self, w: np.ndarray) -> np.ndarray:
        return -np.logaddexp(0, -w @ self.signed.T).sum(axis=-1) - 0.5 * (w**2).sum(axis=-1)

    def gradient(self, w: np.ndarray) -> np.ndarray:
        return (1 / (1 + np.exp(w @ self.signed.T))) @ self.signed - w


def chain(target: Regression, post: esgroup.Posterior, steps: int, rng: np.random.Generator) -> np.ndarray:
    """Independence Metropolis with the fit, twice as wide, as proposal: fifty chains side by side."""
    spread = 2 * np.linalg.cholesky(post.covariance())
    z = rng.standard_normal((steps, 50, 3))
    proposals = post.mean + z @ spread.T
    weights = target.logp(proposals) + 0.5 * (z**2).sum(axis=-1)
    now, weight, kept = proposals[0], weights[0], []
    for proposal, other, u in zip(proposals[1:], weights[1:], np.log(rng.random((steps - 1, 50))), strict=True):
        accepted = u < other - weight
        now, weight = np.where(accepted[:, None], proposal, now), np.where(accepted, other, weight)
        kept.append(now)
    return np.concatenate(kept[100:])


def main(out: Path = OUT, steps: int = 2000) -> None:
    """Fit, run the chain and draw both."""
    rng = np.random.default_rng(0)
    target = Regression(rng)
    post = esgroup.fit_posterior(target.logp, np.zeros(3), jac=target.gradient, vectorized=True, rng=1, tol=1e-3)
    samples = chain(target, post, steps, rng)
    print(f"means {post.mean.round(3)}, of the chain {samples.mean(axis=0).round(3)}")
    print(f"deviations {post.stds.round(3)}, of the chain {samples.std(axis=0).round(3)}")
    print(f"ELBO {post.elbo:.3f} +- {post.elbo_stderr:.3f}; {post.message}")
    print(f"figure {post.plot_marginals(out, samples=samples)}")


if __name__ == "__main__":
    typer.run(main)
