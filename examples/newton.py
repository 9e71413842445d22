"""
A gradient, and products with the Hessian
=========================================

If you have more than values, which method should you use? Structured Newton keeps an estimate of the Hessian in a
small group of matrices and updates it with a few products in every iteration. SciPy has BFGS, which learns from
gradients alone, L-BFGS-B, which uses little memory, and Newton-CG, which solves with products. This tutorial runs all
of them on Rosenbrock's function with 200 variables and counts everything that they evaluate.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.optimize
from scipy.optimize import rosen, rosen_der, rosen_hess_prod

import esgroup

DIM, TARGET = 200, 1e-6


def hessian_diagonal(x):
    diagonal = np.zeros(len(x))
    diagonal[:-1] += 1200 * x[:-1] ** 2 - 400 * x[1:] + 2
    diagonal[1:] += 200
    return diagonal


# %%
# First: are the derivatives right?
# ---------------------------------
#
# When Newton's method fails, the cause is usually a wrong derivative. One call compares them with finite differences.

x0 = np.random.default_rng(1).uniform(0, 2, DIM)
print(esgroup.gradients.check_derivatives(rosen, x0, rosen_der, rosen_hess_prod))

# %%
# Counting
# --------
#
# Every method gets the same functions, which count their calls and record the best value so far. At the target, an
# exception that no method catches ends the run.


class Reached(Exception):
    pass


class Counted:
    """Rosenbrock's function with its derivatives.

    It counts calls and iterations, and ends the run at the target.
    """

    def __init__(self):
        self.values = self.gradients = self.products = self.diagonals = 0
        self.best, self.iterations, self.course = np.inf, 0, []

    def fun(self, x):
        self.values += 1
        self.best = min(self.best, rosen(x))
        self.note()
        if self.best <= TARGET:
            raise Reached
        return rosen(x)

    def jac(self, x):
        self.gradients += 1
        return rosen_der(x)

    def hess_diag(self, x):
        self.diagonals += 1
        return hessian_diagonal(x)

    def hessp(self, x, v):
        self.products += 1
        return rosen_hess_prod(x, v)

    def note(self, *_):
        asked = self.values + self.gradients + self.products + self.diagonals
        self.course.append((self.iterations, asked, self.best))

    def iterated(self, *_):
        self.iterations += 1


def run(method, x0):
    f = Counted()
    try:
        if method.startswith("esgroup"):
            structure = method.partition(" ")[2]
            esgroup.minimize(
                f.fun,
                x0,
                method="newton",
                structure=structure,
                jac=f.jac,
                hessp=f.hessp,
                hess_diag=f.hess_diag,
                callback=f.iterated,
                max_iters=3000,
            )
        else:
            more = {"hessp": f.hessp} if method == "Newton-CG" else {}
            options = {"maxiter": 3000} | (
                {"xtol": 1e-12} if method == "Newton-CG" else {}
            )  # otherwise it ends too soon
            scipy.optimize.minimize(
                f.fun,
                x0,
                method=method,
                jac=f.jac,
                callback=f.iterated,
                options=options,
                **more,
            )
    except Reached:
        pass
    return f


# %%
# Two starts
# ----------
#
# The first start is random between 0 and 2, near the valley that leads to the minimum. The second is near 0, from
# where the path is long and curved. ``moving`` is the default of structured Newton, a small dense block that moves to
# where it is needed; ``heisenberg:k1=0,k2=1`` has a fixed hub, here the last variable.

METHODS = {
    "esgroup moving": ("#1b6ca8", "-"),
    "esgroup heisenberg:k1=0,k2=1": ("#3aa0c9", (0, (6, 1.5))),
    "BFGS": ("#c8642b", (0, (4, 1.5))),
    "L-BFGS-B": ("#7a5195", (0, (1.2, 1.2))),
    "Newton-CG": ("#444444", (0, (5, 1.5, 1, 1.5))),
}
starts = {"U(0, 2)": x0, "near 0": 0.1 * np.random.default_rng(2).standard_normal(DIM)}
runs = {}
for start, point in starts.items():
    print(
        f"\nfrom {start}: iterations, values, gradients, products, diagonals "
        f"to {TARGET:g}"
    )
    for method in METHODS:
        f = runs[start, method] = run(method, point)
        ending = "" if f.best <= TARGET else f"   not reached: {f.best:.2g}"
        print(
            f"{method:30s}{f.iterations:6d}{f.values:8d}{f.gradients:8d}"
            f"{f.products:8d}{f.diagonals:8d}{ending}"
        )

# %%
# The upper row shows the best value over iterations, the lower row over all evaluations: a value, a gradient and a
# product count one each. The order of the methods differs.

fig, panels = plt.subplots(2, 2, figsize=(7.6, 5.6), sharey=True, layout="constrained")
for row, column in np.ndindex(2, 2):
    count, start = ("iterations", "evaluations")[row], list(starts)[column]
    axes = panels[row, column]
    for method, (color, line) in METHODS.items():
        course = np.array(runs[start, method].course)
        values = np.maximum(course[:, 2], TARGET)
        look = {"color": color, "linestyle": line, "linewidth": 1.7}
        axes.plot(course[:, row], values, label=method, **look)
    axes.set(yscale="log", xlabel=count, xscale="log" if row else "linear")
    axes.grid(color="#e6e6e6")
    if row == 0:
        axes.set_title(f"start {start}", loc="left", fontsize=10)
for axes in panels[:, 0]:
    axes.set_ylabel("best value")
fig.legend(
    *panels[0, 0].get_legend_handles_labels(),
    loc="outside lower center",
    ncols=3,
    frameon=False,
)
plt.show()

# %%
# A note on BFGS
# --------------
#
# From the first start BFGS looks worse than it is. It starts with the identity as its Hessian, so the scale of the
# function matters; a Newton step does not depend on it. If the function is divided by the number of variables, BFGS
# needs far fewer iterations.


def scaled_bfgs(factor):
    def at_target(intermediate_result):
        if intermediate_result.fun <= TARGET * factor:
            raise StopIteration

    found = scipy.optimize.minimize(
        lambda x: factor * rosen(x),
        x0,
        jac=lambda x: factor * rosen_der(x),
        method="BFGS",
        callback=at_target,
        options={"gtol": 0.0},
    )
    return found.nit, found.fun / factor


for factor in (1.0, 1 / DIM):
    iterations, value = scaled_bfgs(factor)
    print(
        f"BFGS on {factor:g} times Rosenbrock's function: "
        f"{iterations} iterations to {value:.1e}"
    )

# %%
# Which method to use
# -------------------
#
# - Near the minimum a structure that fits is hard to beat: the Heisenberg group takes as many iterations here as
#   L-BFGS-B, with one product each. Far away the same group fails, because a fixed hub cannot represent the
#   curvature of the path.
# - The moving block reaches the target from both starts, with a fifth and two fifths of the iterations of BFGS. But
#   each iteration uses ten products, so by evaluations it is the most expensive method that reaches the target.
# - L-BFGS-B needs the fewest evaluations from both starts. Newton-CG needs the fewest iterations. If you have SciPy
#   and a smooth function, try these two first.
# - Structured Newton is worthwhile if products are cheap compared with the rest of an iteration, if the work and memory
#   of an iteration must be linear in the number of variables, or if you know the structure of the Hessian.
#
# Without ``hess_diag`` the diagonal is estimated from random products, and without ``hessp`` products are estimated
# from differences of gradients. Further settings are in :class:`esgroup.newton.NewtonSettings`.
