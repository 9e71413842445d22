"""Section 5.2: mixtures of Gaussians with structured precisions, fitted to mixtures of Student's t distributions.

The target is a normalized density, so the ELBO is -KL(q || target). Its marginals are mixtures of Student's t as well:
their distances to those of q (Kolmogorov-Smirnov, the largest gap of the distribution functions) are exact. The paper's
text does not fix the shapes V_c: they are A^T A + I here ("wide"), or its inverse, with a larger A, as in the code
published with the article of 2020 that it refers to ("narrow"). K components begin with uniform means and S = I / 100.

Gradients are taken along the paths of 10 samples per component. The paper's estimator has Hessians: the same direction
on average with less noise, but at several times the cost. What an iteration takes with both is measured apart. In 80
variables the full precision is left out to save time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy.special import ndtr

from esgroup.distributions import Gaussian
from esgroup.distributions.mixture import Mixture, MixtureState
from esgroup.gradients import Pathwise, Stein
from esgroup.variational import fit_posterior
from esgroup.variational.fit import Fit
from esgroup.variational.log_density import variances
from esgroup.variational.posterior import Posterior
from esgroup_problems.mixtures import StudentMixture, student_t_mixture
from reproduction.experiment import Array, Experiment, Plan, Row
from reproduction.mixture_drawing import figure
from reproduction.mixture_verdicts import notes, verdicts

FIRST_REPORT = 100
SAMPLES = 10
SPREAD = 20.0  # the paper's s, of centers and of first means
STEPS = np.linspace(-6.0, 6.0, 61)  # in deviations of a component, where distribution functions are compared
COORDINATES = (0, 1)
SHOWN = 1500  # points of a density
PATTERNS = {
    "full": "full",
    "Tri-up": "block_triangular:k={k},upper",
    "Tri-low": "block_triangular:k={k}",
    "Hs-up": "heisenberg:k1={k1},k2={k2},upper",
    "Hs-low": "heisenberg:k1={k1},k2={k2}",
    "diag": "diagonal",
}


@dataclass(frozen=True)
class Setting:
    """A size: p, K, C, k of the structures, iterations, draws of the ELBO, seeds, and the structures to fit."""

    dim: int
    components: int
    centers: int
    k: int
    iterations: int
    seeds: int
    structures: tuple[str, ...] = tuple(PATTERNS)
    draws: int = 4000

    def spelling(self, structure: str) -> str:
        return PATTERNS[structure].format(k=self.k, k1=self.k - self.k // 2, k2=self.k // 2)


SMALL = Setting(20, 10, 5, 5, 300, 3)
PAPERS = Setting(80, 40, 10, 10, 250, 1, ("Tri-up", "Tri-low", "diag"))
QUICK = Setting(4, 3, 2, 2, 4, 1, draws=200)
QUICK_LARGE = Setting(6, 4, 2, 2, 4, 1, ("Tri-up", "Tri-low", "diag"), 200)


class Target:
    """A mixture of Student's t distributions: log density and gradients of rows, and its marginals."""

    def __init__(self, setting: Setting, narrow: bool, seed: int) -> None:
        problem = student_t_mixture(setting.dim, components=setting.centers, narrow=narrow, seed=seed)
        self.problem = problem
        self.function = cast(StudentMixture, problem.batch.__self__)  # type: ignore[attr-defined]
        shapes = np.linalg.inv(self.function.precisions)
        self.scales = np.sqrt(np.einsum("cii->ci", shapes))

    def log_density(self, x: Array) -> Array:
        return -self.problem.batch(x)

    def gradients(self, x: Array) -> Array:
        """Of the log density, of all rows at once: sum_c share_c strength_c P_c (u_c - x)."""
        found, gaps = self.function, x - self.function.centers[:, None, :]
        ahead = gaps @ found.precisions
        distances = (ahead * gaps).sum(axis=-1)
        total = found.degrees + x.shape[1]
        logs = found.heights[:, None] - total / 2 * np.log1p(distances / found.degrees)
        shares = np.exp(logs - logs.max(axis=0))
        weights = shares / shares.sum(axis=0) * total / (found.degrees + distances)
        return -np.einsum("cn,cni->ni", weights, ahead)

    def standardized(self, coordinate: int, x: Array) -> Array:
        return (x[:, None] - self.function.centers[:, coordinate]) / self.scales[:, coordinate]

    def distribution(self, coordinate: int, x: Array) -> Array:
        """P(x_j <= x): with two degrees of freedom Student's is 1/2 + z / (2 sqrt(2 + z^2))."""
        z = self.standardized(coordinate, x)
        return (0.5 + z / (2 * np.sqrt(2 + z**2))).mean(axis=1)

    def density(self, coordinate: int, x: Array) -> Array:
        """The derivative of that."""
        z = self.standardized(coordinate, x)
        return ((2 + z**2) ** -1.5 / self.scales[:, coordinate]).mean(axis=1)


def first_family(setting: Setting, structure: str, seed: int) -> Mixture:
    """Where a fit begins, the same means for all structures."""
    means = np.random.default_rng([seed, 1]).uniform(-SPREAD, SPREAD, (setting.components, setting.dim))
    spelling = setting.spelling(structure)
    return Mixture(tuple(Gaussian(spelling, mean, sigma0=SPREAD / 2, form="precision") for mean in means))


def marginal_distances(found: Posterior, target: Target) -> Array:
    """max |F_q - F| for every coordinate."""
    state, family = cast(MixtureState, found.state), cast(Mixture, found.distribution)
    parts = zip(family.components, family.component_states(state), strict=True)
    stds = np.sqrt(np.array([variances(gaussian, part) for gaussian, part in parts]))
    weights = family.mixing_weights(state)
    gaps = []
    for j in range(family.dim):
        middles = np.concatenate([state.means[:, j], target.function.centers[:, j]])
        widths = np.concatenate([stds[:, j], target.scales[:, j]])
        x = (middles[:, None] + widths[:, None] * STEPS).ravel()
        ours = ndtr((x[:, None] - state.means[:, j]) / stds[:, j]) @ weights
        gaps.append(np.abs(ours - target.distribution(j, x)).max())
    return np.array(gaps)


# ---- run ------------------------------------------------------------------------------------------------------------


def run(plan: Plan) -> Iterator[Row]:
    small, large = (QUICK, QUICK_LARGE) if plan.quick else (SMALL, PAPERS)
    for setting in (small, large):
        for narrow in (False, True):
            for i in range(setting.seeds):
                yield from _fitted(setting, narrow, plan.seed + FIRST_REPORT + i, plan, shown=i == 0)
    yield from _costs(large, plan)


def _name(setting: Setting, narrow: bool) -> str:
    return f"p = {setting.dim}, {'narrow' if narrow else 'wide'}"


def _fitted(setting: Setting, narrow: bool, seed: int, plan: Plan, shown: bool) -> Iterator[Row]:
    """All structures on one target."""
    target, case = Target(setting, narrow, seed), _name(setting, narrow)
    known: dict[str, Any] = {"jac": target.gradients, "vectorized": True, "estimator": Pathwise(SAMPLES)}
    for structure in setting.structures:
        family, began = first_family(setting, structure, seed), time.process_time()
        states: dict[int, MixtureState] = {}
        fits: list[Fit] = []

        def look(fit: Fit, states: dict[int, MixtureState] = states, fits: list[Fit] = fits) -> None:
            states[fit.nit], fits[:] = fit.state, [fit]

        fitting = {"rng": seed, "max_iters": setting.iterations, "callback": look}
        found = fit_posterior(target.log_density, family=family, **fitting, **known)
        seconds = time.process_time() - began
        elbo, error = found.elbo_estimate(setting.draws, [seed, 2])
        gaps = marginal_distances(found, target)
        plan.say(f"{case}, seed {seed}, {structure}: ELBO {elbo:.2f}, KS {gaps.mean():.3f}, {seconds:.0f} s")
        numbers = {"ELBO": elbo, "standard error": error, "KS": gaps.mean(), "first KS": gaps[0], "seconds": seconds}
        yield from (Row(part, case, structure, seed, float(value)) for part, value in numbers.items())
        yield Row("iterations", case, structure, seed, found.nit)
        rise, noise = _last_rise(fits[-1], states, setting.draws, seed)
        yield Row("rise", case, structure, seed, rise)
        yield Row("rise error", case, structure, seed, noise)
        if shown:
            yield from _marginals(found, target, case, structure, first=structure == setting.structures[0])


def _last_rise(fit: Fit, states: dict[int, MixtureState], draws: int, seed: int) -> tuple[float, float]:
    """By how much the ELBO has risen in the last quarter of the iterations, and the standard error of that."""
    last = max(states)
    ends = [states[max(1, last - last // 4)], states[last]]
    before, after = (fit.objective.elbo(state, draws, np.random.default_rng([seed, 3])) for state in ends)
    return after.elbo - before.elbo, float(np.hypot(before.stderr, after.stderr))


def _marginals(found: Posterior, target: Target, case: str, structure: str, first: bool) -> Iterator[Row]:
    """Densities of some coordinates; those of the target with the first structure."""
    for j in COORDINATES:
        middles, reach = target.function.centers[:, j], 4 * target.scales[:, j]
        x = np.linspace((middles - reach).min(), (middles + reach).max(), SHOWN)
        lines = {structure: found.marginal_density(j, x)}
        if first:
            lines["target"] = target.density(j, x)
        for name, values in lines.items():
            for a, b in zip(x, values, strict=True):
                yield Row(f"density {j}", case, name, a, b)


def _costs(setting: Setting, plan: Plan) -> Iterator[Row]:
    """CPU time of an iteration with gradients, and with products with the Hessian as in the paper."""
    target = Target(setting, False, plan.seed + FIRST_REPORT)
    problem = target.problem
    products = {
        "jac": lambda x: -problem.gradient(x),
        "hessp": lambda x, v: -problem.hessian_product(x, v),
        "hess_diag": lambda x: -problem.hessian_diagonal(x),
        "estimator": Stein(SAMPLES),
    }
    gradients = {"jac": target.gradients, "vectorized": True, "estimator": Pathwise(SAMPLES)}
    for structure in ("full", "Tri-up"):
        family = first_family(setting, structure, plan.seed + FIRST_REPORT)
        for name, known, count in (("gradients", gradients, 6), ("Hessians", products, 2)):
            times: list[float] = []
            logp = target.log_density if name == "gradients" else lambda x: -problem.fun(x)
            fit_posterior(
                logp,
                family=family,
                rng=0,
                max_iters=count,
                callback=lambda fit, times=times: times.append(time.process_time()),
                **known,
            )
            seconds = (times[-1] - times[0]) / (len(times) - 1)
            plan.say(f"an iteration with {name}, {structure}: {1000 * seconds:.0f} ms")
            yield Row("iteration seconds", name, structure, setting.dim, seconds)


MIXTURE = Experiment(
    name="mixture",
    title="Mixtures of Gaussians with structured precisions (section 5.2)",
    about=(
        "Fits to mixtures of Student's t distributions: p = 20, K = 10, C = 5 (three seeds, 300 iterations) and the "
        "paper's p = 80, K = 40, C = 10 (one seed, 250 iterations). ELBO = -KL(q || target), and the "
        "Kolmogorov-Smirnov distances of the marginals. Narrow: shapes as in the authors' published code."
    ),
    run=run,
    figure=figure,
    verdicts=verdicts,
    notes=notes,
)
