"""
The cheapest beam that is strong enough
=======================================

A beam is welded to a wall and carries a load at its free end. A thicker beam and a longer weld are safer, but cost
more. What is the cheapest beam that is safe? Which of the safety rules determine its size? And what would a better
steel be worth?

This is the welded beam, a standard problem of structural design (Ragsdell and Phillips 1976, in the variant of Coello
2000, whose published minimum is 1.724852). It uses SciPy's constraints.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import NonlinearConstraint

import esgroup

# %%
# The beam
# --------
# Four lengths in inches describe it: height and length of the weld, depth and thickness of the beam. The cost is the
# cost of the weld and the steel. The rules are a shear stress in the weld of at most 13,600 psi, a bending stress of at
# most 30,000 psi, a deflection of at most a quarter of an inch, and a load of at least 6,000 pounds before the beam
# buckles.

LOAD, OVERHANG, YOUNG, SHEAR = 6000.0, 14.0, 30e6, 12e6
LIMITS = np.array([13_600.0, 30_000.0, 0.25, 6000.0])
RULES = ["shear in the weld", "bending", "deflection", "buckling"]


def cost(x):
    weld, length, depth, thickness = x
    return 1.10471 * weld**2 * length + 0.04811 * depth * thickness * (14 + length)


def strains(x):
    """Shear stress, bending stress, deflection, and the load that buckles the beam."""
    weld, length, depth, thickness = x
    arm = np.sqrt(length**2 / 4 + (weld + depth) ** 2 / 4)
    moment = LOAD * (OVERHANG + length / 2)
    inertia = (
        2 * np.sqrt(2) * weld * length * (length**2 / 12 + (weld + depth) ** 2 / 4)
    )
    direct, turning = LOAD / (np.sqrt(2) * weld * length), moment * arm / inertia
    shear = np.sqrt(direct**2 + direct * turning * length / arm + turning**2)
    bending = 6 * LOAD * OVERHANG / (thickness * depth**2)
    deflection = 4 * LOAD * OVERHANG**3 / (YOUNG * depth**3 * thickness)
    slender = 1 - depth / (2 * OVERHANG) * np.sqrt(YOUNG / (4 * SHEAR))
    buckling = 4.013 * YOUNG * depth * thickness**3 / (6 * OVERHANG**2) * slender
    return np.array([shear, bending, deflection, buckling])


# %%
# SciPy's constraints
# -------------------
# The rules are upper limits, except for the load, which has a lower limit. A fifth rule is different: a weld
# thicker than the beam cannot be made, and a simulator might not even accept it. It is cheap to check, so
# ``keep_feasible=True`` checks it first, and no point that violates it is ever evaluated. The start
# must satisfy it; it may violate the other rules.

INFINITE = np.inf
strong = NonlinearConstraint(
    strains, [-INFINITE, -INFINITE, -INFINITE, LIMITS[3]], [*LIMITS[:3], INFINITE]
)
possible = NonlinearConstraint(lambda x: x[0] - x[3], -INFINITE, 0, keep_feasible=True)
BOUNDS = [(0.1, 2), (0.1, 10), (0.1, 10), (0.1, 2)]
START, WIDTHS = [0.4, 6.0, 9.0, 0.5], [0.1, 1.0, 1.0, 0.1]

tried = []


def cost_noted(x):
    tried.append(x)
    return cost(x)


result = esgroup.minimize(
    cost_noted,
    START,
    WIDTHS,
    bounds=BOUNDS,
    constraints=[strong, possible],
    max_evals=4000,
    rng=1,
)
tried = np.array(tried)
print("weld, length, depth, thickness:", result.x.round(4))
print(f"cost {result.fun:.5f}, feasible: {result.feasible}, evaluations: {result.nfev}")
print(
    "welds thicker than the beam that were tried:",
    int(np.sum(tried[:, 0] > tried[:, 3])),
)

# %%
# Which rules are active?
# -----------------------
# ``constr`` has the values of all constraints at the best point, in the order in which you passed them, and
# ``multipliers`` what they cost: 0 if a rule is not active, and otherwise how much the cost falls if the limit is
# relaxed by one unit.

for rule, value, limit, multiplier in zip(
    RULES, result.constr[0], LIMITS, result.multipliers[0], strict=True
):
    print(f"{rule:18} {value:10.4g}   limit {limit:8g}   multiplier {multiplier:.3g}")

# %%
# A multiplier answers the question about the better steel without another search: a weld that bears 1,000 psi more
# should save 1,000 times the first multiplier. Another search confirms it.

stronger = NonlinearConstraint(
    strains, strong.lb, [LIMITS[0] + 1000, *LIMITS[1:3], INFINITE]
)
better = esgroup.minimize(
    cost,
    START,
    WIDTHS,
    bounds=BOUNDS,
    constraints=[stronger, possible],
    max_evals=4000,
    rng=1,
)
saving = 1000 * result.multipliers[0][0]
print(
    f"cost with the better weld: {result.fun - saving:.4f} predicted, "
    f"{better.fun:.4f} found"
)

# %%
# The prediction is linear: exact for a small change, and slightly too optimistic for a large one.
#
# A figure of the corner
# ----------------------
# Low cost means a small beam; the rules stop the search in a corner. The figure shows the weld at the best depth and
# thickness: shaded regions violate a rule, and gray lines have equal cost. Dots are points of the search with
# nearly the same beam. The bars show how much of each limit is used.

BLUE, ORANGE, GRAY = "#0072B2", "#D55E00", "#6b6b6b"
figure, (left, right) = plt.subplots(
    1, 2, figsize=(7, 3.6), width_ratios=(1.25, 1), layout="constrained"
)
weld, length = np.meshgrid(np.linspace(0.1, 0.32, 150), np.linspace(1.5, 6.5, 150))
depth, thickness = result.x[2:]
grid = (weld, length, np.full_like(weld, depth), np.full_like(weld, thickness))
shear = strains(grid)[0]
left.contourf(weld, length, shear, levels=[LIMITS[0], shear.max()], colors=["#cfe3f1"])
left.contourf(weld, length, weld, levels=[thickness, 1.0], colors=["#f6ddcf"])
lines = left.contour(
    weld,
    length,
    cost(grid),
    levels=np.arange(1.3, 2.6, 0.2),
    colors=GRAY,
    linewidths=0.8,
)
left.clabel(lines, fontsize=8)
near = tried[np.abs(tried[:, 2:] - result.x[2:]).max(axis=1) < 0.3]
left.scatter(*near[:, :2].T, s=5, color="black", alpha=0.35, linewidth=0)
left.plot(
    *result.x[:2],
    marker="*",
    markersize=15,
    color=BLUE,
    markeredgecolor="white",
    linestyle="none",
)
left.text(0.108, 2.25, "shear stress\ntoo large", color=BLUE, va="center")
left.text(
    0.31, 2.25, "weld thicker\nthan the beam", color=ORANGE, ha="right", va="center"
)
left.set(
    xlabel="height of the weld (inches)",
    ylabel="length of the weld (inches)",
    title="The corner",
    xlim=(0.1, 0.32),
)
used = [
    *result.constr[0][:3] / LIMITS[:3],
    LIMITS[3] / result.constr[0][3],
    result.x[0] / result.x[3],
]
active = np.array(used) > 0.999
names = [*RULES, "weld to beam"]
right.barh(names, used, color=np.where(active, BLUE, "#b8cbd8"))
right.axvline(1, color="black", linewidth=1)
right.invert_yaxis()
right.set(
    xlabel="share of the limit that is used",
    title="Four rules are active",
    xlim=(0, 1.1),
)
plt.show()

# %%
# What to watch out for
# ---------------------
# * A point counts as feasible if it violates no rule by more than ``constraint_tol``, by default 1e-6 in the units of
#   the constraint. If your rules are strict, choose 0, or put the margin into the limits.
# * ``result.x`` is the best feasible point. If none was found, it is the point with the least violation, and
#   ``result.feasible`` is false: check it before you use ``x``.
# * Use ``keep_feasible=True`` only for very cheap constraints: they can be called many times for each point that is
#   evaluated.
# * An equality is a constraint with ``lb = ub``.
#
# See also: ``esgroup.minimize`` (``constraints``, ``constraint_tol``), ``scipy.optimize.NonlinearConstraint``,
# ``LinearConstraint``, and ``Searcher(..., constraints=m)``, where you tell constraint values together with each value.
