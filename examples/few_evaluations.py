"""
Two hundred evaluations, not twenty thousand
============================================

A reactor turns A into B and B into C. How fast, and how does that depend on the temperature? Six parameters answer
this, and a simulation of the reactor shows how badly given parameters fit the measurements. The real simulation takes
ten minutes, so about two hundred runs are possible in a night.

This tutorial compares methods for so few evaluations. A cheap stand-in replaces the simulation: it has the same shape,
and takes microseconds. It is a good idea to try this before any expensive run.
"""

import textwrap

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import least_squares, minimize

import esgroup

# %%
# The stand-in
# ------------
# The rates of both reactions follow Arrhenius' law, each with two parameters; the others are the initial amount and the
# zero of the instrument. Here the concentration of B has a closed form. The measurements are synthetic, with an
# error of 0.02, and the misfit is a sum of squares in units of that error: with 63 measurements and 6 parameters a good
# fit has about 57.

HOURS, KELVIN, ERROR = (
    np.linspace(0, 10, 21),
    np.array([[300.0], [320.0], [340.0]]),
    0.02,
)
TRUE = np.array([-1.0, 15.0, -2.0, 25.0, 1.0, 0.2])


def concentration(x):
    """B at three temperatures over time.

    log k = log k(320 K) + activation (1 - 320 K / T)
    """
    log_k1, activation1, log_k2, activation2, log_amount, zero = x
    k1 = np.exp(log_k1 + activation1 * (1 - 320 / KELVIN))
    k2 = np.exp(log_k2 + activation2 * (1 - 320 / KELVIN))
    return zero + np.exp(log_amount) * k1 / (k2 - k1) * (
        np.exp(-k1 * HOURS) - np.exp(-k2 * HOURS)
    )


MEASURED = concentration(TRUE) + np.random.default_rng(0).normal(
    0, ERROR, (3, len(HOURS))
)


def misfit(x):
    return float(np.sum(((concentration(x) - MEASURED) / ERROR) ** 2))


# %%
# One argument
# ------------
# With ``model="quadratic"`` the search fits a quadratic model of the function, and asks for the points that the model
# recommends. ``model="auto"`` does the same if the budget is small for the number of variables, and says so
# in the message. The search starts at a guess, with a standard deviation for each of the six variables: about a quarter
# of the width of the region in which you expect the minimum.

WIDTHS = np.array([0.3, 1.5, 0.3, 1.5, 0.3, 0.3])


def guess(seed):
    return TRUE + WIDTHS * np.random.default_rng([1, seed]).normal(0, 1.6, 6)


plain = esgroup.minimize(misfit, guess(0), WIDTHS, max_evals=200, rng=0)
with_model = esgroup.minimize(
    misfit, guess(0), WIDTHS, max_evals=200, rng=0, model="auto"
)
print(f"at the guess {misfit(guess(0)):9.1f}")
print(f"plain search {plain.fun:9.1f}")
print(f"with a model {with_model.fun:9.1f}")
print(textwrap.fill(with_model.message, 80))

# %%
# Comparison with other methods
# -----------------------------
# SciPy has two suitable methods: BFGS, which estimates gradients by finite differences, and COBYQA, which also builds
# quadratic models. All methods start at the same three guesses with the same scales, and every call of the function
# counts, including those for differences.
#
# The second panel shows the same function as a real simulator would return it. Its solver chooses its own time steps,
# so the fourth digit of the value is arbitrary.


def misfit_of_a_solver(x):
    return misfit(x) * (1 + 1e-3 * np.sin(1e7 * np.sum(x)))


class Enough(Exception):
    """The budget is spent."""


def best_values(method, function, seed, budget=250):
    """The best value after every evaluation."""
    best = []

    def counted(scaled):
        if len(best) == budget:
            raise Enough
        best.append(min([function(WIDTHS * scaled), *best[-1:]]))
        return function(WIDTHS * scaled)

    start = guess(seed) / WIDTHS
    try:
        if method == "BFGS":
            minimize(counted, start, method="BFGS")
        elif method == "COBYQA":
            minimize(
                counted,
                start,
                method="COBYQA",
                options={"initial_tr_radius": 1.0, "maxfev": budget},
            )
        else:
            model = "quadratic" if method == "with a model" else None
            esgroup.minimize(
                counted, start, 1.0, model=model, max_evals=budget, rng=seed
            )
    except Enough:
        pass
    return np.pad(best, (0, budget - len(best)), mode="edge")


STYLES = {
    "plain search": ("#6b6b6b", "--"),
    "with a model": ("#0072B2", "-"),
    "COBYQA": ("#E69F00", "-."),
    "BFGS": ("#D55E00", ":"),
}
FUNCTIONS = {"Smooth": misfit, "With the noise of a solver": misfit_of_a_solver}
curves = {
    (title, method): np.array(
        [best_values(method, function, seed) for seed in range(3)]
    )
    for title, function in FUNCTIONS.items()
    for method in STYLES
}
for title in FUNCTIONS:
    print(
        f"\n{title}: median misfit of three guesses after 100 and after 250 evaluations"
    )
    for method in STYLES:
        print(
            f"  {method:13}",
            *(
                f"{np.median(curves[title, method][:, n - 1]):10.1f}"
                for n in (100, 250)
            ),
        )

# %%

figure, panels = plt.subplots(1, 2, figsize=(7, 3.6), sharey=True, layout="constrained")
for panel, title in zip(panels, FUNCTIONS, strict=True):
    for method, (color, line) in STYLES.items():
        runs = curves[title, method]
        evaluations = np.arange(1, runs.shape[1] + 1)
        panel.plot(evaluations, runs.T, color=color, linewidth=0.7, alpha=0.5)
        panel.plot(
            evaluations,
            np.median(runs, axis=0),
            color=color,
            linestyle=line,
            linewidth=2.2,
            label=method,
        )
    panel.set(title=title, xlabel="evaluations", yscale="log", xlim=(0, 250))
    panel.grid(color="#e6e6e6")
panels[0].set_ylabel("misfit, best so far")
panels[0].legend(loc="upper right")
plt.show()

# %%
# How to read this
# ----------------
# If the function is smooth, the model, COBYQA and BFGS are all far better than the plain search, and which of them
# is best depends on the function and the start. BFGS fails with noise in the fourth digit, because a difference of two
# values is then mostly noise. Three guesses are an illustration, not a measurement.
#
# Know the structure of your problem before you choose. This misfit is a sum of squares, and a method that uses its 63
# terms instead of their sum needs far fewer evaluations:

calls = 0


def residuals(x):
    global calls
    calls += 1
    return ((concentration(x) - MEASURED) / ERROR).ravel()


fit = least_squares(residuals, guess(0), x_scale=WIDTHS)
print(f"least squares: misfit {2 * fit.cost:.1f} after {calls} evaluations")

# %%
# What to watch out for
# ---------------------
# * The model needs as many evaluations as it has coefficients, 28 with 6 variables and 66 with 10. With fewer
#   evaluations than that, expect little from it.
# * It costs most of a millisecond per evaluation. If your function is faster than that, use more evaluations of the
#   plain search.
# * On rugged functions, where a quadratic cannot predict which of two points is better, the search notices this and
#   continues without the model. You gain nothing there, but lose little.
# * Constraints and ``noise="adapt"`` cannot be combined with a model and are refused.
# * Scale the variables: a ``sigma0`` for each variable says how uncertain the guess is.
#
# See also: ``esgroup.minimize`` (``model``, ``sigma0``, ``max_evals``), ``esgroup.Searcher.ask``, which returns the
# points worth evaluating next, and ``ask(n)`` for n workers; ``scipy.optimize.least_squares``.
