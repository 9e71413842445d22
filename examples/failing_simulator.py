"""
A simulator that fails
======================

A heater keeps a tank at a set temperature. Its controller has three gains. Which gains bring the tank to the new
temperature fastest, without a large overshoot?

The simulator that answers this has the manners of most simulators: for some gains the loop is unstable, the numbers
grow without end, and the program stops with an error instead of a value. This tutorial lets a search live with that.
It needs ``matplotlib`` and nothing else.
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
# The tank is slow (a time constant of 8 minutes), the pipe adds a dead time of one minute, and a PID controller sees
# the temperature and sets the heater. The cost of a run is the mean absolute error over 30 minutes, with a little
# added for violent heating. An unstable loop raises ``FloatingPointError``, as a careful simulator does.

STEP, STEPS, DELAY = 0.1, 300, 10  # minutes, number of steps, steps of dead time


def simulate(gains):
    """Temperature of the tank over time after the set point has gone from 0 to 1."""
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
# By default an exception ends the search, because most exceptions are mistakes in the program. Nothing is lost: the
# exception carries the result so far.

START, BOUNDS = [12.0, 1.0, 12.0], [(0, 25), (0, 5), (0, 30)]
WIDTHS = [6.0, 1.0, 6.0]  # first standard deviations: the gains have different sizes

try:
    esgroup.minimize(cost, START, WIDTHS, bounds=BOUNDS, max_evals=300, rng=6)
except FloatingPointError as error:
    print(
        f"{error}. Evaluations so far: {error.result.nfev}, "
        f"the best: {error.result.fun:.4f}"
    )

# %%
# Name the exceptions that you expect, and only these. Such a run then counts as the worst of its generation; a
# ``TypeError`` in the simulator would still reach you. ``on_error="nan"`` would accept every exception.

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
# If your program calls the search and not the other way round, a failed run is the value NaN. Points outside of the
# bounds are never asked for, so the simulator need not check them. We keep all points for a picture.

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
# Where the runs failed, and what was gained:

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
# A license server goes down at night, and from then on every run fails. ``max_failures`` ends the search after so many
# failures in a row; the message has the last one, so that the reason is in the log of the morning.

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
# An exception can be caught, a run that never ends cannot. ``eval_timeout`` gives up such a run after so many seconds.
# It needs somebody else who evaluates: processes (``workers=4``) or an executor. Processes are the better choice for a
# real simulator, because the process that hangs is ended and replaced; in your own script, the call then belongs under
# ``if __name__ == "__main__":``. A thread cannot be ended, it only stops being waited for. This page uses threads,
# which need no script of their own.


def cost_that_hangs(gains):
    if gains[2] > 15:
        time.sleep(1)  # as if it never ended
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
#   ranked among the others, it may become "the best value so far", and the number of failures no longer tells you that
#   something is wrong.
# * If the first generation fails as a whole, the search has learned nothing. Start from gains that work, with a smaller
#   first standard deviation.
# * Failures on one side of a boundary push the search away from it. Where the best point lies at the boundary, a
#   constraint (``constraints=``) says more than NaN does: it tells how far a point is from being allowed.
#
# Read on: ``esgroup.minimize`` (``on_error``, ``max_failures``, ``eval_timeout``), ``esgroup.Searcher``,
# ``SearchResult.nfailed``.
