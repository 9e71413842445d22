"""A long Markov chain for the posterior of the breast cancer regression, as a reference for approximations of it.

Hamiltonian Monte Carlo (Neal: MCMC using Hamiltonian dynamics, 2011) on logistic_breast_cancer, in coordinates whitened
by the Hessian at the mode: there the posterior is nearly N(0, I). Several chains from overdispersed starts; trajectory
lengths are drawn, so that no chain goes round in circles. Prints the acceptance, split R-hat and the effective sample
size (Vehtari et al. 2021, without ranks), and writes means, covariance and how exact they are to an .npz file.

    python scripts/mcmc_breast_cancer.py [out.npz]
"""
# extras: sim

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from esgroup_problems.inference import logistic_breast_cancer

CHAINS, WARM_UP, DRAWS = 8, 500, 5000
STEP, LONGEST = 0.25, 12  # about 3 time units at most, half a period of the whitened oscillator
SEED = 1
OUT = Path(__file__).resolve().parents[1] / "tests" / "variational" / "data" / "breast_cancer_mcmc.npz"


def whitening() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The data's rows y_i x_i, the mode, and T with T T^T the inverse Hessian there."""
    problem = logistic_breast_cancer()
    signed, mode = problem.gradient.__self__.signed, problem.minimizer
    hessian = np.array([problem.hessian_product(mode, e) for e in np.eye(len(mode))])
    return signed, mode, np.linalg.inv(np.linalg.cholesky((hessian + hessian.T) / 2)).T


class Whitened:
    """The negative log posterior and its gradient as functions of rows u, w = mode + T u."""

    def __init__(self) -> None:
        self.signed, self.mode, self.root = whitening()

    def weights(self, u: np.ndarray) -> np.ndarray:
        return self.mode + u @ self.root.T

    def value(self, u: np.ndarray) -> np.ndarray:
        w = self.weights(u)
        return np.logaddexp(0.0, -(w @ self.signed.T)).sum(axis=1) + 0.5 * (w**2).sum(axis=1)

    def gradient(self, u: np.ndarray) -> np.ndarray:
        w = self.weights(u)
        wrong = 0.5 - 0.5 * np.tanh(0.5 * (w @ self.signed.T))
        return (w - wrong @ self.signed) @ self.root


def transition(target: Whitened, u: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """One step of all chains, (chains, dim), and which of them accepted."""
    momentum = rng.standard_normal(u.shape)
    step, steps = STEP * rng.uniform(0.8, 1.0), int(rng.integers(LONGEST // 2, LONGEST + 1))
    new, velocity = u, momentum - 0.5 * step * target.gradient(u)
    for i in range(steps):  # leapfrog
        new = new + step * velocity
        velocity = velocity - (step if i < steps - 1 else 0.5 * step) * target.gradient(new)
    before = target.value(u) + 0.5 * (momentum**2).sum(axis=1)
    after = target.value(new) + 0.5 * (velocity**2).sum(axis=1)
    accepted = np.log(rng.random(len(u))) < before - after
    return np.where(accepted[:, None], new, u), accepted


def split_rhat(draws: np.ndarray) -> np.ndarray:
    """Of (chains, draws, dim): the square root of total over within variance of half chains."""
    half = draws.shape[1] // 2
    halves = np.concatenate([draws[:, :half], draws[:, half : 2 * half]])
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    return np.sqrt((half - 1) / half + between / within)


def effective_size(draws: np.ndarray) -> np.ndarray:
    """Of (chains, draws, dim): n / (1 + 2 sum of autocorrelations), up to the first negative pair (Geyer 1992)."""
    chains, n, dim = draws.shape
    centerd = draws - draws.mean(axis=1, keepdims=True)
    spectrum = np.abs(np.fft.rfft(centerd, 2 * n, axis=1)) ** 2
    covariances = np.fft.irfft(spectrum, axis=1)[:, :n] / n
    within = covariances[:, 0].mean(axis=0) * n / (n - 1)
    total = within * (n - 1) / n + draws.mean(axis=1).var(axis=0, ddof=1)
    rho = 1 - (within - covariances.mean(axis=0)) / total
    pairs = rho[: n // 2 * 2].reshape(-1, 2, dim).sum(axis=1)
    pairs = np.where(np.logical_and.accumulate(pairs > 0, axis=0), pairs, 0.0)
    return chains * n / np.maximum(2 * pairs.sum(axis=0) - 1, 1 / np.log10(chains * n))


def run(draws: int = DRAWS, seed: int = SEED) -> tuple[np.ndarray, float]:
    """All draws after the warm-up, (chains, draws, dim), as weights; and the share of accepted steps."""
    rng, target = np.random.default_rng(seed), Whitened()
    u = 2 * rng.standard_normal((CHAINS, len(target.mode)))
    kept, accepted = np.empty((CHAINS, draws, len(target.mode))), 0
    for t in range(-WARM_UP, draws):
        u, moved = transition(target, u, rng)
        if t >= 0:
            kept[:, t] = target.weights(u)
            accepted += int(moved.sum())
    return kept, accepted / (CHAINS * draws)


def main() -> None:
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else OUT
    kept, acceptance = run()
    rhat, size, size_of_squares = split_rhat(kept), effective_size(kept), effective_size(kept**2)
    print(f"accepted {acceptance:.3f}, largest R-hat {rhat.max():.5f}")
    print(f"smallest effective sample size {size.min():.0f}, of squares {size_of_squares.min():.0f}")
    flat = kept.reshape(-1, kept.shape[-1])
    stds = flat.std(axis=0, ddof=1)
    errors = stds / np.sqrt(size)
    print(f"largest standard error of a mean, in standard deviations: {(errors / stds).max():.4f}")
    np.savez(out, mean=flat.mean(axis=0), covariance=np.cov(flat.T), mean_errors=errors, rhat=rhat, size=size)


if __name__ == "__main__":
    main()
