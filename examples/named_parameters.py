"""
Tuning a model with named parameters
====================================

How well can a simple model read handwritten digits after seeing only 450 of them? Kernel ridge regression can do it,
but you have to choose a kernel, and every kernel has its own parameters. This tutorial searches for all of them
together. It needs ``scikit-learn``, which includes the digits.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_ridge import KernelRidge

import esgroup
from esgroup import Choice, Integer, Real

# %%
# The space
# ---------
# A ``Space`` lists the parameters by name. The orders of magnitude of the regularization ``alpha`` and of the kernel
# width ``gamma`` are unknown, so they are searched on a logarithmic scale. A linear kernel has no ``gamma``:
# ``when`` says for which kernels it exists. The degree of a polynomial is an integer.

space = esgroup.Space(
    {
        "kernel": Choice("linear", "rbf", "laplacian", "poly"),
        "alpha": Real(1e-5, 1e2, log=True),
        "gamma": Real(
            1e-4, 1e1, log=True, when={"kernel": ("rbf", "laplacian", "poly")}
        ),
        "degree": Integer(2, 6, when={"kernel": "poly"}),
    }
)

# %%
# The loss
# --------
# The loss receives a dict with only the active parameters, which here are the arguments of ``KernelRidge``.
# Each third of the 450 digits is predicted from the other two, and the loss is the mean squared error of these
# predictions. It is a better objective than the number of mistakes, which is the same for many models. The other
# 1,347 digits are for the final test; no search ever sees them.

pictures, digits = load_digits(return_X_y=True)
pictures, wanted = (
    pictures / 16,
    2 * np.eye(10)[digits] - 1,
)  # +1 for the digit, -1 for the nine others
KNOWN = 450
tried = []


def loss(parameters):
    thirds = np.arange(KNOWN) % 3
    errors = []
    for third in range(3):
        use, keep = np.flatnonzero(thirds != third), np.flatnonzero(thirds == third)
        model = KernelRidge(**parameters).fit(pictures[use], wanted[use])
        errors.append(np.mean((model.predict(pictures[keep]) - wanted[keep]) ** 2))
    tried.append((parameters, float(np.mean(errors))))
    return tried[-1][1]


# %%
# The search
# ----------
# A search over choices shows how sure it is: ``probabilities`` is its distribution over the options. A callback
# receives the search after every generation; this one records the probabilities for a figure.

course = []


def note(search):
    course.append([search.nfev, *search.result.probabilities["kernel"].values()])


result = esgroup.minimize(loss, space, max_evals=200, callback=note, rng=0)
print(result.x)
print(f"loss {result.fun:.5f} after {result.nfev} evaluations")
for name, chance in result.probabilities["kernel"].items():
    print(f"chance of {name:9} {chance:6.3f}")
for name in ("alpha", "gamma"):
    print(f"deviation of {name} {result.stds[name]:6.3f}")

# %%
# The standard deviations show how precisely each parameter is determined; with ``log=True`` they refer to the natural
# logarithm. ``gamma`` is known to two percent. ``alpha`` could be wrong by a factor of ten, since exp(2.6) is 13:
# regularization of this size hardly matters here, and the digits of ``alpha`` above are meaningless.

COLORS = {
    "linear": "#6b6b6b",
    "rbf": "#0072B2",
    "laplacian": "#E69F00",
    "poly": "#D55E00",
}
MARKERS = {"linear": "s", "rbf": "o", "laplacian": "^", "poly": "D"}
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.6), layout="constrained")
evaluations, *chances = np.array(course).T
for name, chance in zip(COLORS, chances, strict=True):
    left.plot(
        evaluations,
        chance,
        color=COLORS[name],
        linewidth=2,
        marker=MARKERS[name],
        markevery=4,
        markersize=5,
        label=name,
    )
left.set(
    xlabel="evaluations",
    ylabel="chance of the kernel",
    title="From four kernels to one",
    ylim=(0, 1),
)
left.legend(loc="center right")
for name in ("rbf", "laplacian", "poly"):
    points = np.array(
        [(p["gamma"], value) for p, value in tried if p["kernel"] == name]
    )
    right.scatter(*points.T, color=COLORS[name], marker=MARKERS[name], s=16, alpha=0.8)
linear = min(value for p, value in tried if p["kernel"] == "linear")
right.axhline(linear, color=COLORS["linear"], linestyle="--", linewidth=1)
right.text(
    1.1e-2, linear, "the best linear", color=COLORS["linear"], ha="center", va="bottom"
)
right.set(
    xlabel="gamma",
    ylabel="loss",
    title="All models that were tried",
    xscale="log",
    yscale="log",
)
right.set_yticks([0.03, 0.05, 0.1, 0.2, 0.4], ["0.03", "0.05", "0.1", "0.2", "0.4"])
right.minorticks_off()
plt.show()

# %%
# How good is it?
# ---------------
# Now we use the test digits. The second line is scikit-learn's default for this kernel.


def share_read(parameters):
    model = KernelRidge(**parameters).fit(pictures[:KNOWN], wanted[:KNOWN])
    return np.mean(model.predict(pictures[KNOWN:]).argmax(axis=1) == digits[KNOWN:])


print(f"tuned:   {share_read(result.x):.1%} of the other digits are read")
print(f"default: {share_read({'kernel': 'rbf'}):.1%}")

# %%
# You can fix some parameters by name with ``fixed``; the others are searched:

polynomial = esgroup.minimize(
    loss, space, fixed={"kernel": "poly", "degree": 3}, max_evals=60, rng=0
)
print(polynomial.x, f"{polynomial.fun:.5f}", f"{share_read(polynomial.x):.1%}")

# %%
# What to watch out for
# ---------------------
# * Every option keeps a minimum probability, here 1/16. Some evaluations are spent on the other options to the end, in
#   case a good kernel did badly at first because of its parameters.
# * If a parameter is at its bound, as ``alpha`` nearly is here, the range may be too narrow, or the parameter does not
#   matter. Its standard deviation tells which.
# * The loss of the winner is slightly too good, because the winner was chosen by that loss. Evaluate it on data that
#   the search did not use.
# * ``start=`` and ``width=`` of a parameter set where the search starts. What you know about your model saves
#   evaluations.
#
# See also: ``esgroup.Space``, ``esgroup.Real``, ``esgroup.Integer``, ``esgroup.Choice``, ``esgroup.Angle``; and
# ``esgroup.optuna.EsgroupSampler``, the same search for Optuna studies.
