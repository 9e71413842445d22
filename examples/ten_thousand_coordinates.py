"""
Ten thousand heaters
====================

Can a search that only uses values handle 10,000 unknowns? A covariance matrix of 10,000 x 10,000 numbers would
need 800 MB and far too many evaluations. From 80 variables on, esgroup uses a *frame* instead: a ball with a
few axes, whose directions and lengths follow the search. This tutorial runs it, looks at the axes that it
finds, and shows when it is better to use more knowledge of the problem.
"""

import matplotlib.pyplot as plt
import numpy as np

import esgroup
from esgroup.groups import Diagonal, Kronecker

# %%
# The problem
# -----------
#
# A plate has 100 x 100 heaters. Heat spreads, so the temperature is a blurred image of their powers. We want a
# given temperature everywhere; the value is the mean squared deviation from it. No gradient is used. The values of a
# whole generation are computed together.

N, BUDGET = 100, 9_000
places = np.arange(N)
blur = np.exp(-0.5 * ((places[:, None] - places) / 8) ** 2)
blur /= blur.sum(axis=1).max()
u = (places - 49.5) / 50
wanted = 1.0 + 0.4 * np.exp(-((u[:, None] - 0.3) ** 2 + (u + 0.2) ** 2) / 0.1) + 0.3 * u


def temperature(powers):
    return blur @ powers.reshape(-1, N, N) @ blur.T


def deviation(powers):
    return ((temperature(powers) - wanted) ** 2).mean(axis=(1, 2))


# %%
# The default structure
# ---------------------
#
# The structure is chosen by the number of variables. To watch the search, we use ask and tell.


def follow(search, values):
    course = []
    while not search.stop():
        search.tell(values(search.ask()))
        course.append((search.nfev, search.best_f))
    return np.array(course)


start = np.ones(N * N)
search = esgroup.Searcher(start, 0.05, rng=1, max_evals=BUDGET)
courses = {"frame (default)": follow(search, deviation)}
print(
    f"{search.structure}: {search.state.root.size:,} numbers "
    f"in place of {(N * N) ** 2:,}"
)
print(
    f"deviation at the start {deviation(start)[0]:.4f}, "
    f"after {search.nfev} evaluations {search.best_f:.4f}"
)

# %%
# What the axes show
# ------------------
#
# An axis has a length, relative to all other directions, and a direction of 10,000 numbers: an image of the plate.
# Along a long axis the search makes large steps, because these led to better values.

axes = search.structure.axes(search.state.root)
order = np.argsort(axes.ratios)[::-1]
print("lengths of the axes", axes.ratios[order].round(1))

effects = np.linalg.norm(temperature(axes.directions[order]), axis=(1, 2))
directions = np.random.default_rng(2).standard_normal((200, N * N))
directions /= np.linalg.norm(directions, axis=1, keepdims=True)
usual = np.median(np.linalg.norm(temperature(directions), axis=(1, 2)))
print(
    "what a step along them changes, relative to a random direction",
    (effects / usual).round(1),
)

fig, panels = plt.subplots(1, 4, figsize=(7.6, 2.5), layout="constrained")
longest = [temperature(axes.directions[k])[0] for k in order[:2]]
pictures = (wanted, temperature(search.result.x)[0], *longest)
titles = (
    "wanted",
    "reached",
    *(f"axis, length {axes.ratios[k]:.0f}" for k in order[:2]),
)
for panel, picture, title in zip(panels, pictures, titles, strict=True):
    limits = (
        {"vmin": wanted.min(), "vmax": wanted.max()}
        if title in ("wanted", "reached")
        else {}
    )
    panel.imshow(picture, cmap="cividis", **limits)
    panel.set_title(title, loc="left", fontsize=10)
    panel.set(xticks=[0, 50, 99], yticks=[0, 50, 99])
plt.show()

# %%
# The axes are shown as the temperature that they cause. Blurring makes every image smooth, so the numbers above are
# better evidence: a step along the longest axes changes the temperature more than a step along a random direction,
# where most heaters work against their neighbors. No diagonal matrix can represent such a direction.
#
# When to choose a structure
# --------------------------
#
# A structure determines what can be learned, and learning costs evaluations. So it is worth comparing:
#
# - ``"diagonal"``: one scale for every heater. A step costs half as much as with a frame, or less.
# - ``Kronecker(Diagonal(100), Diagonal(100))``: one scale for every row and every column, 200 numbers.
# - Fewer variables. We know that only smooth patterns matter, so we search the coefficients of 12 x 12 cosines.
#   That is not a structure of the distribution but knowledge of the problem.

waves = np.cos(np.pi * np.outer(places + 0.5, np.arange(12)) / N)


def deviation_of_waves(coefficients):
    return deviation(1.0 + waves @ coefficients.reshape(-1, 12, 12) @ waves.T)


others = {
    "diagonal": (start, "diagonal", deviation),
    "rows and columns": (start, Kronecker(Diagonal(N), Diagonal(N)), deviation),
    "144 coefficients": (np.zeros(144), "auto", deviation_of_waves),
}
for name, (x0, structure, values) in others.items():
    other = esgroup.Searcher(x0, 0.05, structure=structure, rng=1, max_evals=BUDGET)
    courses[name] = follow(other, values)
for name, course in courses.items():
    print(f"{name:20s}{course[-1, 1]:.2e}")

fig, axes = plt.subplots(figsize=(7.0, 3.4), layout="constrained")
looks = (
    ("#1b6ca8", "-"),
    ("#c8642b", (0, (5, 1.5))),
    ("#444444", (0, (1.2, 1.2))),
    ("#7a5195", (0, (5, 1.5, 1, 1.5))),
)
for (name, course), (color, line) in zip(courses.items(), looks, strict=True):
    axes.plot(
        course[:, 0],
        course[:, 1],
        color=color,
        linestyle=line,
        linewidth=1.8,
        label=name,
    )
axes.set(yscale="log", xlabel="evaluations", ylabel="mean squared deviation")
axes.grid(color="#e6e6e6")
axes.legend(frameon=False)
plt.show()

# %%
# Conclusions
# -----------
#
# - The frame is ahead of both diagonal structures here, without any settings.
# - Scales of rows and columns are useless on a plate whose heaters are all alike. They are meant for matrices whose
#   rows and columns have their own units, such as the weights of a network.
# - Knowledge of the problem is worth more than any structure: 144 good variables beat 10,000, until only what they
#   cannot represent is left and their curve becomes flat.
# - This is far from the minimum. 9,000 evaluations are less than one per variable; a search that must converge
#   in 10,000 variables needs hundreds of thousands. These are single runs with one seed.
# - sigma0 is the standard deviation of every variable, so the first steps have a length of sigma0 times 100 here. If
#   the best value does not fall for many generations, it is too large.
#
# ``docs/LARGE.md`` explains the frame and where it is behind; ``docs/measured/large.md`` compares other methods.
