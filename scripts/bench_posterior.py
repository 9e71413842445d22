"""Seconds and gradients to the same ELBO: `fit_posterior` on a log density in JAX or PyTorch, beside numpyro's SVI.

    python scripts/bench_posterior.py [--seeds 5] [--gap 0.05] [--quick]

The posteriors are logistic regressions with a prior N(0, I): `rows` cases, `dim` weights, the cases drawn once for each
row of the table. All run in float64 on one thread, in one process. A fit is done when its ELBO, from 20,000 draws that
are the same for all, is at most `gap` nats below the best Gaussian of its family, which is fitted beforehand with many
samples and a small tolerance; a row says how far below the results are.

numpyro: SVI with AutoMultivariateNormal or AutoDiagonalNormal, Adam, one particle, all steps in one compiled loop,
which takes far less time than SVI.run because it is compiled once. Adam's rate falls exponentially to a hundredth of
its first value. First rates 0.01, 0.03 and 0.1 and 125, 250, ..., 8000 steps are tried on a seed of its own, and the
setting that reaches the ELBO with the fewest steps is timed on the others: that is the best case for numpyro, which has
no test of convergence. Its gradients are its steps. Its seconds do not include an ELBO at the end.

esgroup: `fit_posterior` with its defaults, until it says that it has converged, and with the ELBO of its result; once
more with rate=1, which suits posteriors that are nearly normal.
Gradients are all evaluations of gradients and of products with Hessians; values come with gradients but for those of
the ELBO at the end.

Seconds are CPU seconds of the process after compilation, medians over seeds; `compile` is the first run minus a later
one. `ratio` is esgroup's seconds divided by numpyro's. A run counts for the median even if it ends above the gap;
`done` says how many came to it.
"""
# extras: torch

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import torch
import typer
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoDiagonalNormal, AutoMultivariateNormal

from esgroup import Gaussian, Posterior, fit_posterior
from esgroup.gradients import jax_function, torch_function

jax.config.update("jax_enable_x64", True)
torch.set_num_threads(1)

SIZES = [(200, 5), (200, 10), (200, 30), (2000, 10)]
DRAWS = 20_000  # of the ELBO that decides
RATES = (0.01, 0.03, 0.1)
STEPS = tuple(125 * 2**i for i in range(7))
GUIDES = {"full": AutoMultivariateNormal, "diagonal": AutoDiagonalNormal}


class Regression(NamedTuple):
    """Logistic regression: rows of `signed` are the cases times +-1, as the answer is yes or no."""

    signed: np.ndarray

    @classmethod
    def some(cls, rows: int, dim: int) -> Regression:
        rng = np.random.default_rng([rows, dim])
        x, weights = rng.standard_normal((rows, dim)), 2 * rng.standard_normal(dim) / np.sqrt(dim)
        return cls(np.where(rng.random(rows) < 1 / (1 + np.exp(-x @ weights)), 1.0, -1.0)[:, None] * x)

    @property
    def dim(self) -> int:
        return self.signed.shape[1]

    def in_jax(self) -> Callable[[Any], Any]:
        signed = jnp.asarray(self.signed)
        return lambda x: -jnp.sum(jnp.logaddexp(0.0, -(signed @ x))) - 0.5 * jnp.sum(x**2)

    def in_torch(self) -> Callable[[Any], Any]:
        signed = torch.tensor(self.signed)
        return lambda x: -torch.nn.functional.softplus(-(signed @ x)).sum() - 0.5 * (x**2).sum()

    def model(self) -> None:
        """The same for numpyro; `factor` spares it the constants of the distributions."""
        x = numpyro.sample("x", dist.Normal(jnp.zeros(self.dim), 1.0).to_event(1))
        numpyro.factor("likelihood", -jnp.sum(jnp.logaddexp(0.0, -(jnp.asarray(self.signed) @ x))))

    def elbo(self, mean: np.ndarray, root: np.ndarray) -> float:
        """The ELBO of N(mean, root root^T), with the same draws at every call."""
        z = np.random.default_rng(7).standard_normal((DRAWS // 2, self.dim))
        z = np.concatenate([z, -z])
        x = mean + z @ root.T
        logp = -np.logaddexp(0.0, -(x @ self.signed.T)).sum(axis=1) - 0.5 * (x**2).sum(axis=1)
        entropy = 0.5 * self.dim * (1 + np.log(2 * np.pi)) + np.linalg.slogdet(root)[1]
        return float(logp.mean() + entropy)


class Run(NamedTuple):
    """One fit: CPU seconds, gradients, ELBO."""

    seconds: float
    gradients: float
    elbo: float


def of_posterior(found: Posterior, regression: Regression) -> float:
    return regression.elbo(found.mean, np.linalg.cholesky(found.covariance()))


def ours(function: Any, regression: Regression, structure: str, seed: int, rate: float | None) -> Run:
    begin = time.process_time()
    found = fit_posterior(function, np.zeros(regression.dim), family=Gaussian(structure), rng=seed, rate=rate)
    seconds = time.process_time() - begin
    return Run(seconds, found.njev + found.nhvp, of_posterior(found, regression))


class Numpyros:
    """SVI, compiled once for all rates and numbers of steps."""

    def __init__(self, regression: Regression, structure: str) -> None:
        self.regression, self.structure = regression, structure
        self.guide = GUIDES[structure](regression.model)
        SVI(regression.model, self.guide, numpyro.optim.Adam(0.1), Trace_ELBO()).init(jax.random.PRNGKey(0))  # shapes

        def run(key: Any, rate: Any, steps: Any) -> Any:
            adam = numpyro.optim.Adam(lambda i: rate * 0.01 ** (i / steps))
            svi = SVI(regression.model, self.guide, adam, Trace_ELBO())
            state = jax.lax.fori_loop(0, steps, lambda _, s: svi.update(s)[0], svi.init(key))
            return svi.get_params(state)

        self.run = jax.jit(run)

    def __call__(self, seed: int, rate: float, steps: int) -> Run:
        begin = time.process_time()
        params = jax.block_until_ready(self.run(jax.random.PRNGKey(seed), rate, steps))
        seconds = time.process_time() - begin
        normal = self.guide.get_posterior(params)
        normal = getattr(normal, "base_dist", normal) if self.structure == "diagonal" else normal
        root = np.diag(normal.scale) if self.structure == "diagonal" else np.asarray(normal.scale_tril)
        mean = normal.loc
        return Run(seconds, steps, self.regression.elbo(np.asarray(mean), root))


def best_setting(method: Numpyros, target: float) -> tuple[float, int] | None:
    """The rate and the number of steps that reach the target with the fewest steps, on a seed that is not timed."""
    for steps in STEPS:
        for rate in RATES:
            if method(999, rate, steps).elbo >= target:
                return rate, steps
    return None


def row(name: str, first: float, runs: list[Run], best: float, gap: float, theirs: float | None) -> float:
    seconds, gradients, elbo = (float(np.median([getattr(run, field) for run in runs])) for field in Run._fields)
    done = sum(run.elbo >= best - gap for run in runs)
    ratio = "" if theirs is None else f"{seconds / theirs:6.2f}"
    compile_time = max(0.0, first - seconds)
    print(
        f"  {name:22} {seconds:8.3f} {gradients:10,.0f} {best - elbo:9.3f} {done:3d} of {len(runs)}"
        f" {compile_time:8.1f} {ratio}",
        flush=True,
    )
    return seconds


def compare(rows: int, dim: int, structure: str, seeds: int, gap: float) -> None:
    regression = Regression.some(rows, dim)
    functions = {"esgroup, jax": jax_function(regression.in_jax(), dim)}
    functions["esgroup, torch"] = torch_function(regression.in_torch(), dim)
    start = {"family": Gaussian(structure), "rng": 12345, "samples": 200, "tol": 1e-4, "elbo_samples": 2}
    best = of_posterior(fit_posterior(functions["esgroup, jax"], np.zeros(dim), **start), regression)
    print(f"{rows} rows, {dim} weights, {structure}; best ELBO {best:.3f}")
    print(f"  {'':22} {'seconds':>8} {'gradients':>10} {'below':>9} {'done':>8} {'compile':>8}  ratio")
    method, theirs = Numpyros(regression, structure), None
    first = method(0, RATES[0], STEPS[0]).seconds
    setting = best_setting(method, best - gap)
    if setting is None:
        print(f"  numpyro        does not come to the gap in {STEPS[-1]} steps")
    else:
        theirs = row("numpyro", first, [method(seed, *setting) for seed in range(seeds)], best, gap, None)
    for name, function in functions.items():
        jax.clear_caches()
        for rate in (None, 1.0):
            first = ours(function, regression, structure, 0, rate).seconds
            runs = [ours(function, regression, structure, seed, rate) for seed in range(seeds)]
            row(name if rate is None else f"{name}, rate=1", first, runs, best, gap, theirs)


def main(seeds: int = 5, gap: float = 0.05, quick: bool = False) -> None:
    """Print the table."""
    print(f"jax {jax.__version__}, numpyro {numpyro.__version__}, torch {torch.__version__}; seeds 0 to {seeds - 1}")
    for rows, dim in SIZES[:1] if quick else SIZES:
        for structure in ("full", "diagonal"):
            compare(rows, dim, structure, seeds, gap)


if __name__ == "__main__":
    typer.run(main)
