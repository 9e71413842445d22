"""
A posterior of four doses
=========================

How toxic is a substance that was only tested on twenty animals? A point estimate answers with one number. The
posterior answers with all numbers that are consistent with the data. Here ``fit_posterior`` approximates it by a
Gaussian, we compare that Gaussian with the exact answer, and we see where it is not enough.

The data are a bioassay by Racine and others (1986), well known from *Bayesian Data Analysis* by Gelman and others:
four doses, five animals each, and the number of deaths.
"""

import matplotlib.pyplot as plt
import numpy as np

import esgroup

log_dose = np.array([-0.86, -0.30, -0.05, 0.73])  # natural logarithm of g / ml
animals = np.array([5, 5, 5, 5])
deaths = np.array([0, 1, 3, 5])

# %%
# The model
# ---------
#
# An animal dies with probability 1 / (1 + exp(-(a + b log dose))). The prior is wide: a has standard deviation 5,
# b has 10. ``fit_posterior`` needs the logarithm of prior times likelihood, up to a constant, and preferably its
# gradient. Both functions here take rows of points, so one call evaluates all samples of an iteration
# (``vectorized=True``).

features = np.column_stack([np.ones(4), log_dose])
prior_std = np.array([5.0, 10.0])


def log_posterior(w):
    logits = w @ features.T
    log_likelihood = deaths * logits - animals * np.logaddexp(0, logits)
    return log_likelihood.sum(axis=-1) - 0.5 * ((w / prior_std) ** 2).sum(axis=-1)


def gradient(w):
    logits = w @ features.T
    return (deaths - animals / (1 + np.exp(-logits))) @ features - w / prior_std**2


fit = esgroup.fit_posterior(
    log_posterior, [0.0, 5.0], jac=gradient, vectorized=True, rng=1
)
print("mean", fit.mean.round(2), "standard deviations", fit.stds.round(2))
print(f"ELBO {fit.elbo:.3f} +- {fit.elbo_stderr:.3f}; {fit.message}")

# %%
# Is it right?
# ------------
#
# With two unknowns we can compute the exact density on a grid. Its sum also gives the logarithm of the evidence,
# log Z. The ELBO is always below log Z, and the gap is the divergence of the fit from the posterior, in nats. So the
# gap shows how good the fit is. (For larger problems a grid is impossible. A Markov chain can check the shape there,
# and differences of ELBOs still show which of two fits is better.)

a, b = np.linspace(-5, 12, 500), np.linspace(-5, 50, 600)
grid = np.stack(np.meshgrid(a, b, indexing="ij"), axis=-1)
log_values = log_posterior(grid)
cell = (a[1] - a[0]) * (b[1] - b[0])
peak = log_values.max()
log_evidence = peak + np.log(np.exp(log_values - peak).sum() * cell)
density = np.exp(log_values - log_evidence)

print(
    f"log Z {log_evidence:.3f}, so the Gaussian is "
    f"{log_evidence - fit.elbo:.2f} nats from the posterior"
)

# %%
# When a Gaussian is not enough
# -----------------------------
#
# There is a gap because the posterior is skewed: four doses exclude small slopes, but hardly any large one. A
# Gaussian is symmetric and cannot represent that. A mixture of Gaussians can. Its components start at samples of the
# Gaussian, each with a fraction of its covariance.

starts = fit.sample(5, 2)
components = tuple(
    esgroup.Gaussian("full", mean, covariance=fit.covariance() / 3) for mean in starts
)
mixture = esgroup.fit_posterior(
    log_posterior,
    jac=gradient,
    vectorized=True,
    family=esgroup.Mixture(components, learn_weights=True),
    rng=1,
    max_iters=1500,
)
print(
    f"ELBO of five Gaussians {mixture.elbo:.3f} +- {mixture.elbo_stderr:.3f}; "
    f"{mixture.message}"
)
print(f"they are {log_evidence - mixture.elbo:.2f} nats from the posterior")

# %%
# The figure
# ----------
#
# Shaded: the exact posterior. Lines: densities of both fits at the same levels, and their marginals of the slope.

fig, (both, slope) = plt.subplots(1, 2, figsize=(7.6, 3.5), layout="constrained")
GAUSSIAN, MIXTURE = "#c8642b", "#1b6ca8"
heights = density.max() * np.array([0.05, 0.3, 0.8])
both.contourf(
    a,
    b,
    density.T,
    levels=[*heights, density.max()],
    colors=["#e4e7ea", "#c6cdd3", "#a5b0b9"],
)
fits = ((fit, GAUSSIAN, "--", "Gaussian"), (mixture, MIXTURE, "-", "five Gaussians"))
for found, color, line, name in fits:
    q = np.exp(found.log_density(grid.reshape(-1, 2))).reshape(grid.shape[:2])
    both.contour(
        a, b, q.T, levels=heights, colors=color, linestyles=line, linewidths=1.3
    )
    slope.plot(
        b,
        found.marginal_density(1, b),
        color=color,
        linestyle=line,
        linewidth=1.8,
        label=name,
    )
slope.fill_between(
    b, density.sum(axis=0) * (a[1] - a[0]), color="#c6cdd3", label="exact, from a grid"
)
both.set(
    xlabel="a, at log dose 0", ylabel="b, the slope", xlim=(-2.5, 5), ylim=(-1, 24)
)
slope.set(xlabel="b, the slope", ylabel="density", xlim=(-3, 28), ylim=(0, None))
slope.legend(frameon=False)
plt.show()

# %%
# The lethal dose
# ---------------
#
# The dose that kills half of the animals is exp(-a / b). Samples of the fit answer this, or any other question, in
# one line. If b is small or negative the ratio is meaningless, so the probability of that is part of the answer.

for name, found in (("Gaussian", fit), ("five Gaussians", mixture)):
    draws = found.sample(20_000, 3)
    toxic = draws[:, 1] > 0
    low, middle, high = np.exp(
        np.quantile(-draws[toxic, 0] / draws[toxic, 1], [0.05, 0.5, 0.95])
    )
    print(
        f"{name}: lethal dose {middle:.2f} [{low:.2f}, {high:.2f}] g/ml, "
        f"chance that b <= 0: {1 - toxic.mean():.4f}"
    )

toxic = grid[..., 1] > 0  # the same from the grid, whose points have weights
log_doses, weights = -grid[toxic][:, 0] / grid[toxic][:, 1], density[toxic] * cell
order = np.argsort(log_doses)
shares = np.cumsum(weights[order])
low, middle, high = np.exp(
    np.interp(np.array([0.05, 0.5, 0.95]) * shares[-1], shares, log_doses[order])
)
print(
    f"exact: lethal dose {middle:.2f} [{low:.2f}, {high:.2f}] g/ml, "
    f"chance that b <= 0: {1 - shares[-1]:.4f}"
)

# %%
# What to watch out for
# ---------------------
#
# - A fit of this kind misses a part of the posterior rather than putting mass where there is none. So its intervals
#   tend to be too narrow. Compare the ELBO of a richer family before you trust them.
# - ``logp`` must be finite wherever the fit may sample. For a positive parameter, use its logarithm.
# - It also works without a gradient, from values alone, but needs more samples.
# - ``converged`` and ``message`` say whether the fit has converged. Do not use a fit that has not.
#
# Large data sets are fitted in batches (``likelihood=`` and ``data=``), and functions in JAX or PyTorch have their own
# gradients: see :func:`esgroup.fit_posterior`.
