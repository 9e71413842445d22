"""
All good designs, not just one
==============================

Which of several designs should be built? People decide that, because they know about costs and tastes that are not in
the function. So the search should return every optimum, not the first one that it finds. ``basins=`` does that: it uses
a mixture of Gaussians, each of which searches its own basin, and which share a list of the optima found.
"""

import matplotlib.pyplot as plt
import numpy as np

import esgroup

# %%
# Two landscapes
# --------------
#
# Himmelblau's function has four minima of equal value. The six-hump camel has two global minima and four worse ones.


def himmelblau(x):
    return (x[..., 0] ** 2 + x[..., 1] - 11) ** 2 + (
        x[..., 0] + x[..., 1] ** 2 - 7
    ) ** 2


def camel(x):
    u, v = x[..., 0], x[..., 1]
    return (4 - 2.1 * u**2 + u**4 / 3) * u**2 + u * v + (4 * v**2 - 4) * v**2


landscapes = {
    "Himmelblau": (himmelblau, [(-6.0, 6.0), (-6.0, 6.0)], 4),
    "six-hump camel": (camel, [(-2.2, 2.2), (-1.3, 1.3)], 4),
}

# %%
# One call for each
# -----------------
#
# ``basins`` is the number of Gaussians. It need not be the number of optima: a Gaussian that has found an optimum
# starts again elsewhere. The search ends by itself when many descents in a row have ended at known optima.
# ``mode.weight`` is the fraction of all descents that ended in an optimum, which shows how wide its basin is.

results = {}
for name, (function, bounds, basins) in landscapes.items():
    result = esgroup.minimize(
        function, np.zeros(2), bounds=bounds, basins=basins, max_evals=20_000, rng=1
    )
    results[name] = result
    print(
        f"{name}: {len(result.modes)} optima with {result.nfev} evaluations\n"
        f"    {'; '.join(result.stop.values())}"
    )
    for mode in result.modes:
        print(
            f"    {mode.value:9.5f} at {mode.point.round(4)}, "
            f"{mode.weight:.1%} of the descents"
        )

# %%
# How the mixture works
# ---------------------
#
# Here is the same search with ask and tell, to see its points. Ellipses are the initial Gaussians at one standard
# deviation: together they cover the box once. Dots are the first 400 points; lighter dots are earlier. Stars are the
# optima listed above, large stars the best ones; those without dots around them are found later.

fig, panels = plt.subplots(1, 2, figsize=(7.6, 4.0), layout="constrained")
angles = np.linspace(0, 2 * np.pi, 100)
circle = np.column_stack([np.cos(angles), np.sin(angles)])
for axes, (name, (function, bounds, basins)) in zip(
    panels, landscapes.items(), strict=True
):
    mixture = esgroup.Mixture.spread(basins, bounds=bounds, rng=1)
    search = esgroup.Searcher(mixture, bounds=bounds, rng=1, max_evals=400)
    points = []
    while not search.stop():
        asked = search.ask()
        search.tell(function(asked))
        points.append(asked)
    points = np.concatenate(points)

    x, y = np.meshgrid(np.linspace(*bounds[0], 300), np.linspace(*bounds[1], 300))
    heights = function(np.stack([x, y], axis=-1))
    levels = heights.min() + np.geomspace(0.02, 1, 14) * np.ptp(heights)
    axes.contour(x, y, heights, levels=levels, colors="#ccd3d8", linewidths=0.7)
    axes.scatter(
        *points.T, s=6, c=np.arange(len(points)), cmap="Blues", vmin=-150, linewidths=0
    )
    state = mixture.state()
    for gaussian, own in zip(
        mixture.components, mixture.component_states(state), strict=True
    ):
        outline = (
            own.mean + circle @ np.linalg.cholesky(gaussian.dense_covariance(own)).T
        )
        axes.plot(*outline.T, color="#7a7a7a", linewidth=1.0, linestyle=(0, (4, 2)))
    best = results[name].fun
    for mode in results[name].modes:
        is_best = mode.value < best + 1e-6
        axes.plot(
            *mode.point,
            marker="*",
            markersize=15 if is_best else 9,
            color="#c8642b",
            markeredgecolor="white",
        )
    axes.set(xlim=bounds[0], ylim=bounds[1], xlabel="first coordinate", title=name)
panels[0].set_ylabel("second coordinate")
plt.show()

# %%
# Is it worth it?
# ---------------
#
# Here is the obvious alternative with the same number of evaluations: searches from random points, one after the
# other, until the budget is used up, and a list of their results.


def one_by_one(function, bounds, budget, rng):
    low, high = np.array(bounds).T
    found, spent = [], 0
    while spent < budget:
        start = rng.uniform(low, high)
        run = esgroup.minimize(
            function,
            start,
            (high - low) / 6,
            bounds=bounds,
            max_evals=budget - spent,
            rng=rng,
        )
        spent += run.nfev
        if run.success and all(np.linalg.norm(run.x - other) > 1e-3 for other in found):
            found.append(run.x)
    return len(found)


for name, (function, bounds, basins) in landscapes.items():
    together, single = [], []
    for seed in range(5):
        result = esgroup.minimize(
            function,
            np.zeros(2),
            bounds=bounds,
            basins=basins,
            max_evals=5000,
            rng=seed,
        )
        together.append(len(result.modes))
        single.append(
            one_by_one(function, bounds, result.nfev, np.random.default_rng(seed))
        )
    print(
        f"{name}, optima found with five seeds: basins {together}, one by one {single}"
    )

# %%
# One reason for the difference is that the mixture abandons a descent that heads for a known optimum, while a single
# search continues until it has converged. On the camel both miss some: the two worst optima have small basins, and even
# a search that ends by itself may not find all of them.
#
# What to watch out for
# ---------------------
#
# - More optima need more evaluations, and narrow basins are found by chance. A list of modes is never proved complete.
# - ``most_modes`` optima are kept, 500 by default. For a function with ten thousand, a list is not useful.
# - The budget must be enough for a few descents of every Gaussian, a few hundred evaluations each. If it ends earlier,
#   ``modes`` shows where the Gaussians are, which may not be at optima.
# - Constraints are not for mixtures: see the page on which options combine.
# - Ranks are computed within each Gaussian, not over the mixture. So a better basin does not displace a worse one, and
#   the list contains local optima, too: check ``mode.value``.
