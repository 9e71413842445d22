"""
A covariance that outliers do not move
======================================

What is the covariance of these data, if some of them are wrong? The unknown is a matrix that must stay symmetric and
positive definite, and the criterion below has kinks, so only its values are useful. A search over vectors would
need a trick: a Cholesky factor, or a logarithm. esgroup searches the matrices themselves. Its distribution is a
Wishart, all of whose samples are positive definite.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import chi2

import esgroup

# %%
# The data
# --------
#
# There are 200 measurements with two instruments. In 40 of them a cable was swapped: the second value has the wrong
# sign and is too large.

rng = np.random.default_rng(3)
truth = np.array([[2.0, 1.2], [1.2, 1.0]])
data = rng.multivariate_normal([0, 0], truth, 200)
data[:40, 1] *= -2.5
center = np.median(data, axis=0)
differences = data - center

# %%
# The criterion
# -------------
#
# The criterion is the negative log-likelihood of a Gaussian for the 120 points that fit best. Which points these are
# depends on the matrix: hence the kinks. A matrix fitted to the inner points of a Gaussian is too small by a known
# factor, which we apply at the end.

kept = 120
share = kept / len(data)
factor = share / chi2.cdf(chi2.ppf(share, df=2), df=4)


def trimmed(W):
    distances = np.einsum("ni,ni->n", differences, np.linalg.solve(W, differences.T).T)
    return np.partition(distances, kept)[:kept].mean() + np.log(np.linalg.det(W))


# %%
# The search
# ----------
#
# It starts with the covariance of all points. ``ask`` returns matrices, and ``tell`` takes one value for each.

start = np.cov(data.T)
search = esgroup.Searcher(esgroup.Wishart(mean=start), rng=1, max_evals=600)
generations = []
while not search.stop():
    matrices = search.ask()
    generations.append(matrices)
    search.tell([trimmed(W) for W in matrices])
result = search.result
found = factor * result.x


def described(W):
    short, long = np.sqrt(np.linalg.eigvalsh(W))
    correlation = W[0, 1] / np.sqrt(W[0, 0] * W[1, 1])
    return f"axes {long:.2f} and {short:.2f}, correlation {correlation:+.2f}"


print(f"{result.nfev} evaluations; {result.message}")
print("of all points   ", described(start))
print("of good points  ", described(np.cov(data[40:].T)))
print("found           ", described(found))
print("truth           ", described(truth))

# %%
# Ellipses that move
# ------------------
#
# Every matrix is drawn as its ellipse of two standard deviations. The ellipses of a generation lie close together
# at first because the Wishart is narrow; they move, turn and settle.

angles = np.linspace(0, 2 * np.pi, 100)
circle = 2 * np.column_stack([np.cos(angles), np.sin(angles)])


def ellipse(W):
    return center + circle @ np.linalg.cholesky(W).T


fig, panels = plt.subplots(
    1, 3, figsize=(7.6, 3.5), sharex=True, sharey=True, layout="constrained"
)
for axes, number in zip(panels, (0, 10, len(generations) - 1), strict=True):
    axes.scatter(*data[40:].T, s=5, color="#8a949c", linewidths=0)
    axes.scatter(*data[:40].T, s=12, marker="x", color="#c8642b", linewidths=0.9)
    for W in generations[number]:
        axes.plot(*ellipse(factor * W).T, color="#1b6ca8", linewidth=1.0, alpha=0.7)
    axes.plot(*ellipse(truth).T, color="#222222", linewidth=1.3, linestyle=(0, (4, 2)))
    axes.set_title(f"generation {number + 1}", loc="left", fontsize=10)
    axes.set(xlabel="first coordinate", aspect="equal", xlim=(-6, 6), ylim=(-6.5, 6.5))
panels[0].set_ylabel("second coordinate")
for name, color, line in (
    ("samples of the search", "#1b6ca8", "-"),
    ("truth", "#222222", (0, (4, 2))),
):
    panels[0].plot([], [], color=color, linestyle=line, label=name)
panels[0].scatter([], [], s=12, marker="x", color="#c8642b", label="wrong points")
fig.legend(
    *panels[0].get_legend_handles_labels(),
    loc="outside lower center",
    ncols=3,
    frameon=False,
)
plt.show()

# %%
# Where to start
# --------------
#
# A start that is a hundred times too large or too small costs little with 2 x 2 matrices:

for scale in (1e-4, 1e-2, 1.0, 1e2, 1e4):
    again = esgroup.minimize(
        trimmed,
        scale * start,
        space="spd",
        target=result.fun + 1e-4,
        max_evals=3000,
        rng=1,
    )
    print(
        f"start times {scale:<6g} {again.nfev:5d} evaluations "
        f"to {again.fun - result.fun:+.1e}"
    )

# %%
# What to watch out for
# ---------------------
#
# - With larger matrices start too large rather than too small. An eigenvalue far below the best one hardly affects
#   the function, and may stay small.
# - The search has one step size for all directions of the cone. In tests with 3 x 3 matrices whose best eigenvalues
#   differed by four orders of magnitude it did not reach the minimum.
# - A minimum at the boundary of the cone, a singular matrix, is only approached.
# - The criterion has local minima: another set of 120 points may fit well, too. Try several seeds.
# - ``esgroup.minimize(f, matrix, space="spd")`` does the same in one call, and a structure keeps large matrices cheap:
#   ``esgroup.Wishart(mean, structure="block_triangular:k=2")``.
#
# For matrices that need not be positive definite, use :class:`esgroup.MatrixGaussian`.
