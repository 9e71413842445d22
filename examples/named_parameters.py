"""
Tuning a model with named parameters
====================================

How well can a simple model read handwritten digits, if it has seen only 450 of them? Kernel ridge regression may do
it, but it has a kernel to choose, and every kernel has numbers of its own. This tutorial searches for all of them at
once. It needs ``scikit-learn``, which brings the digits along.
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
# A ``Space`` says what there is to choose, by name. Of the regularization ``alpha`` and the width ``gamma`` of a kernel
# nobody knows the order of magnitude, so they are searched on a logarithmic scale. A linear kernel has no ``gamma``:
# ``when`` says for which kernels it exists. The degree of a polynomial is a whole number.

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
# The loss receives a dict with exactly those parameters that exist, which here are the arguments of ``KernelRidge``.
# Each third of the 450 digits is predicted from the other two, and the loss is the mean squared error of these
# predictions. It is better to search with than the number of mistakes, which is the same for many models. The other
# 1,347 digits judge the winner in the end; no search ever sees them.

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
# A search over choices tells how sure it is: ``probabilities`` is its distribution over the options. A callback sees
# the search after every generation; this one notes the chances for a picture.

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
# The standard deviations say how exactly each number is determined, for ``log=True`` as that of the natural logarithm.
# ``gamma`` is known to two per cent. ``alpha`` may be wrong by a factor of ten, since exp(2.6) is 13: regularization of
# this size hardly matters here, and the digits of ``alpha`` above mean nothing.

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
# Now the digits that were put aside. The second line is scikit-learn's default for this kernel.


def share_read(parameters):
    model = KernelRidge(**parameters).fit(pictures[:KNOWN], wanted[:KNOWN])
    return np.mean(model.predict(pictures[KNOWN:]).argmax(axis=1) == digits[KNOWN:])


print(f"tuned:   {share_read(result.x):.1%} of the other digits are read")
print(f"default: {share_read({'kernel': 'rbf'}):.1%}")

# %%
# Some parameters may be given. ``fixed`` takes them by name, and what remains is searched:

polynomial = esgroup.minimize(
    loss, space, fixed={"kernel": "poly", "degree": 3}, max_evals=60, rng=0
)
print(polynomial.x, f"{polynomial.fun:.5f}", f"{share_read(polynomial.x):.1%}")

# %%
# What to watch out for
# ---------------------
# * No option ever loses its last chance, which is 1/16 here. Some evaluations are spent on the others to the end: they
#   are the insurance against a kernel that had bad luck with its numbers in the beginning.
# * A parameter at its bound, as ``alpha`` nearly is here, says that the range may be too narrow, or that it does not
#   matter. Its standard deviation tells which.
# * The loss of the winner is a little too good, because it was chosen by that loss. Judge it with data that were not
#   used.
# * ``start=`` and ``width=`` of a parameter say where the search begins. What you know of your model saves
#   evaluations.
#
# Read on: ``esgroup.Space``, ``esgroup.Real``, ``esgroup.Integer``, ``esgroup.Choice``, ``esgroup.Angle``; and
# ``esgroup.optuna.EsgroupSampler``, the same search for studies of Optuna.
