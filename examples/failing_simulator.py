"""
A simulator that fails
======================

A heater keeps a tank at a set temperature. Its controller has three gains. Which gains bring the tank to the new
temperature fastest, without a large overshoot?

Like many simulators, this one fails for some inputs: for some gains the control loop is unstable, the temperature grows
without bound, and the program stops with an error instead of a value. This tutorial shows how a search handles that.
It only needs ``matplotlib``.
"""

import textwrap
import time
from concurrent.futures import ThreadPoolExecutor

import matplotlib.pyplot as plt
import numpy as np

import esgroup

# %%
# The simulator
# -------------
# The tank is slow (a time constant of 8 minutes), the pipe adds a dead time of one minute, and a PID controller
# measures the temperature and sets the heater. The cost of a run is the mean absolute error over 30 minutes, plus a
# small penalty for abrupt heating. An unstable loop raises ``FloatingPointError``, as a careful simulator does.

STEP, STEPS, DELAY = 0.1, 300, 10  # minutes, number of steps, steps of dead time


def simulate(gains):
    """Temperature of the tank over time after the set point changes from 0 to 1."""
    proportional, integral, derivative = gains
    temperature, slope, total, before = np.zeros(STEPS), 0.0, 0.0, 0.0
    heat = np.zeros(STEPS + DELAY)
    for k in range(STEPS - 1):
        error = 1.0 - temperature[k]
        total += error * STEP
        heat[k + DELAY] = (
            proportional * error
            + integral * total
            - derivative * (temperature[k] - before) / STEP
        )
        before = temperature[k]
        slope += STEP * (heat[k] - temperature[k] - 9.0 * slope) / 8.0
        temperature[k + 1] = temperature[k] + STEP * slope
        if abs(temperature[k + 1]) > 5:
            raise FloatingPointError(f"unstable after {k * STEP:.1f} minutes")
    return temperature, heat[:STEPS]


def cost(gains):
    temperature, heat = simulate(gains)
    return np.abs(1 - temperature).mean() + 0.001 * np.abs(np.diff(heat)).sum()


# %%
# Which exceptions mean "that run failed"
# ---------------------------------------
# By default an exception ends the search, because most exceptions are bugs. Nothing is lost: the exception contains
# the result so far.

START, BOUNDS = [12.0, 1.0, 12.0], [(0, 25), (0, 5), (0, 30)]
WIDTHS = [6.0, 1.0, 6.0]  # initial standard deviations: the gains differ in scale

try:
    esgroup.minimize(cost, START, WIDTHS, bounds=BOUNDS, max_evals=300, rng=6)
except FloatingPointError as error:
    print(
        f"{error}. Evaluations so far: {error.result.nfev}, "
        f"the best: {error.result.fun:.4f}"
    )

# %%
# Name only the exceptions that you expect. A run that raises one of them counts as the worst of its generation; a
# ``TypeError`` in the simulator still ends the search. ``on_error="nan"`` would accept every exception.

result = esgroup.minimize(
    cost,
    START,
    WIDTHS,
    bounds=BOUNDS,
    max_evals=300,
    on_error=FloatingPointError,
    rng=6,
)
print(result.x.round(2), f"{result.fun:.5f}")
print(textwrap.fill(result.message, 80))

# %%
# The same with ask and tell
# --------------------------
# If your program calls the search and not the other way around, tell NaN for a failed run. The search never asks for
# points outside the bounds, so the simulator need not check them. We keep all points for a figure.

search = esgroup.Searcher(START, WIDTHS, bounds=BOUNDS, max_evals=300, rng=6)
points, values = [], []
while not search.stop():
    asked = search.ask()
    told = []
    for gains in asked:
        try:
            told.append(cost(gains))
        except FloatingPointError:
            told.append(np.nan)
    search.tell(told)
    points.extend(asked)
    values.extend(told)

points, failed = np.array(points), np.isnan(values)
print(
    f"{failed.sum()} of {len(points)} runs failed, "
    f"{failed[:100].sum()} of them among the first 100"
)
print("the same result as before:", np.array_equal(search.result.x, result.x))

# %%
# This figure shows where the runs failed, and what the search achieved:

BLUE, ORANGE, GRAY = "#0072B2", "#D55E00", "#6b6b6b"


def is_stable(*gains):
    try:
        simulate(gains)
    except FloatingPointError:
        return False
    return True


figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
across, up = np.linspace(*BOUNDS[0], 26), np.linspace(*BOUNDS[2], 21)
stable = [[is_stable(p, result.x[1], d) for p in across] for d in up]
left.contourf(across, up, stable, levels=[-0.5, 0.5], colors=["#f6ddcf"])
left.text(24, 29, "unstable", ha="right", va="top", color=ORANGE)
shown = left.scatter(
    *points[~failed][:, [0, 2]].T,
    c=np.flatnonzero(~failed),
    s=14,
    cmap="viridis",
    vmax=100,
)
left.scatter(
    *points[failed][:, [0, 2]].T,
    color=ORANGE,
    marker="x",
    s=28,
    linewidth=1.4,
    label="failed",
    clip_on=False,
)
left.set(
    xlabel="proportional gain",
    ylabel="derivative gain",
    title="Failures teach the search",
    xlim=BOUNDS[0],
    ylim=BOUNDS[2],
)
left.legend(loc="lower right")
figure.colorbar(shown, ax=left, label="evaluation", extend="max")
minutes = STEP * np.arange(STEPS)
right.plot(
    minutes, simulate(START)[0], color=GRAY, linestyle="--", label="at the start"
)
right.plot(minutes, simulate(result.x)[0], color=BLUE, linewidth=2, label="found")
right.axhline(1.0, color="black", linewidth=0.8)
right.set(
    xlabel="minutes",
    ylabel="temperature",
    title="The tank after a new set point",
    xlim=(0, 30),
)
right.legend(loc="lower right")
plt.show()

# %%
# When everything fails
# ---------------------
# A license server goes down at night, and from then on every run fails. ``max_failures`` ends the search after this
# many failures in a row; the message contains the last one, so you find the reason in the log in the morning.

calls = 0


def cost_with_license(gains):
    global calls
    calls += 1
    if calls > 150:
        raise ConnectionError("no license")
    return cost(gains)


night = esgroup.minimize(
    cost_with_license,
    START,
    WIDTHS,
    bounds=BOUNDS,
    max_evals=300,
    on_error="nan",
    max_failures=20,
    rng=6,
)
print(night.stop["failures"])
print(f"{night.nfev} evaluations, the best {night.fun:.5f}")

# %%
# Runs that hang
# --------------
# You can catch an exception, but not a run that never ends. ``eval_timeout`` abandons such a run after this many
# seconds. It requires processes (``workers=4``) or an executor. Processes are the better choice for a real simulator,
# because a process that hangs is ended and replaced; in your own script, put the call under
# ``if __name__ == "__main__":``. A thread cannot be ended; the search only stops waiting for it. This page uses
# threads, because they work without a script.


def cost_that_hangs(gains):
    if gains[2] > 15:
        time.sleep(1)  # stands for a run that never ends
    return cost(gains)


with ThreadPoolExecutor(8) as pool:
    hanging = esgroup.minimize(
        cost_that_hangs,
        START,
        WIDTHS,
        bounds=BOUNDS,
        max_evals=60,
        executor=pool,
        on_error=FloatingPointError,
        eval_timeout=0.5,
        rng=6,
    )
print(textwrap.fill(hanging.message, 80))

# %%
# What to watch out for
# ---------------------
# * A failed run should be NaN or an exception, not a large number. Both count as worst, but 1e10 is a value: it is
#   ranked among the others, it can become the best value so far, and the number of failures no longer tells you that
#   something is wrong.
# * If the whole first generation fails, the search learns nothing. Start from gains that work, with a smaller
#   initial standard deviation.
# * Failures on one side of a boundary push the search away from it. If the best point lies at the boundary, a
#   constraint (``constraints=``) tells the search more than NaN does: how far a point is from being feasible.
#
# See also: ``esgroup.minimize`` (``on_error``, ``max_failures``, ``eval_timeout``), ``esgroup.Searcher``,
# ``SearchResult.nfailed``.
