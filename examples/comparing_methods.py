"""
Is it better on problems like mine?
===================================

Tables in papers compare methods on other people's functions. One command compares them on yours: every method gets the
same starts and the same budget, and the evaluations are counted outside the methods. This tutorial does so for a
spectrum with three overlapping peaks, and interprets the result. It needs ``cma``, ``matplotlib`` and ``Jinja2``
(``pip install 'esgroup[compare]'``).
"""

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from esgroup.compare.records import read

# %%
# Your function in a file
# -----------------------
# The command takes any function of a point as MODULE:FUNCTION. Starts are drawn around zero, so scale the variables so
# that zero is a reasonable guess and one is a large step. Here nine variables describe three
# peaks: their positions, and the logarithms of their heights and widths, relative to a guess by eye.

temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)
with open(folder / "spectrum.py", "w") as file:
    file.write("""
import numpy as np

energy = np.linspace(0, 10, 60)

def peaks(x):
    places = np.array([3.0, 5.0, 7.0]) + x[0:3]
    heights, widths = 2 * np.exp(x[3:6]), 0.8 * np.exp(x[6:9])
    shapes = np.exp(-0.5 * ((energy[:, None] - places) / widths) ** 2)
    return (heights * shapes).sum(axis=1)

true = np.array([0.4, -0.3, 0.5, 0.3, -0.6, 0.2, -0.4, 0.3, 0.2])
measured = peaks(true) + np.random.default_rng(0).normal(0, 0.05, 60)

def misfit(x):
    return float(np.sum((peaks(x) - measured) ** 2))
""")

# %%
# One command
# -----------
# In a terminal, this is::
#
#     esgroup compare spectrum:misfit --dims 9 --max-evals 3000 --out peaks \
#         --methods esgroup,esgroup-model,cma,nelder-mead,bfgs-fd
#
# Every method makes five runs from random starts, the same five for all. Afterwards a folder contains all results: an
# HTML page, a table, and a line for each run.

METHODS = ["esgroup", "esgroup-model", "cma", "nelder-mead", "bfgs-fd"]
command = "compare spectrum:misfit --dims 9 --max-evals 3000 --out peaks --jobs 1"
methods = ["--methods", ",".join(METHODS)]
done = subprocess.run(
    [sys.executable, "-m", "esgroup", *shlex.split(command), *methods],
    cwd=folder,
    capture_output=True,
    text=True,
)
print(f"exit status {done.returncode}", done.stderr if done.returncode else "")
print("files:", *sorted(path.name for path in (folder / "peaks").iterdir()))

# %%
# The command prints a table, which is also in ``table.md``. Here are its last columns:

for line in (folder / "peaks" / "table.md").read_text().splitlines():
    columns = line.split("|")
    if len(columns) > 7:  # the table of each problem; the one before it is shorter
        print("|".join(columns[3:8]))

# %%
# How to read it
# --------------
# The minimum of this function is unknown, so each run is compared with the best value that any method has found,
# and the target is a millionth of the way from the start to it.
#
# * *Solved* comes first. A method that reaches the target in three of five runs is not as good as one that always does,
#   however fast those three were.
# * *Evaluations to target* are medians of runs. BFGS with finite differences is ahead here, as it often is on smooth
#   functions of few variables; the search with a model comes second.
# * *The ratio* compares with cma, and has an interval. These intervals include 1: five runs are too few to distinguish
#   the methods. That does not mean that they are equal. ``--seeds 15 --extend`` adds ten seeds to the existing runs.
# * *CPU* is the method's own time. If your function takes a second, it does not matter; if it takes ten microseconds,
#   it is all that matters.
#
# The individual runs show why some fail.

COLORS = dict(
    zip(METHODS, ["#0072B2", "#56B4E9", "#E69F00", "#6b6b6b", "#D55E00"], strict=True)
)
LINES = dict(zip(METHODS, ["-", "--", "-.", ":", "-"], strict=True))
runs = read(folder / "peaks" / "runs.csv")
best = min(run.best for run in runs)
grid = np.geomspace(10, 3000, 200)


def best_so_far(run):
    """The misfit over evaluations; after the end it stays constant."""
    evaluations, values = np.array([(step.cost, step.gap) for step in run.trajectory]).T
    return np.interp(grid, evaluations, values)


figure, (left, right) = plt.subplots(
    1, 2, figsize=(7, 3.8), width_ratios=(1.2, 1), layout="constrained"
)
for row, method in enumerate(METHODS):
    mine = [run for run in runs if run.method == method]
    left.plot(
        grid,
        np.median([best_so_far(run) for run in mine], axis=0),
        color=COLORS[method],
        linestyle=LINES[method],
        linewidth=2,
        label=method,
    )
    final = [run.best for run in mine]
    right.scatter(
        final, row + np.linspace(-0.25, 0.25, len(final)), color=COLORS[method], s=30
    )
    print(f"{method:14}", *(f"{value:8.4f}" for value in sorted(final)))
left.set(
    xlabel="evaluations",
    ylabel="misfit",
    xscale="log",
    yscale="log",
    title="Medians of five runs",
)
left.legend(loc="lower left")
right.set_yticks(range(len(METHODS)), METHODS)
right.invert_yaxis()
right.axvline(best, color="black", linewidth=0.8)
right.set(xlabel="misfit in the end", xscale="log", title="Where each run ended")
plt.show()
temporary.cleanup()

# %%
# Some runs ended at 1.7: there, two peaks fit the data of three, and the third has become a needle between two
# measurements. Every method ended there at least once. From one bad start both searches of esgroup ended
# with a single broad peak, at 31.6. A faster method does not help. A better guess does, or bounds on the widths, or
# restarts with a budget for several runs (``esgroup-bipop``, ``cma-bipop``).
#
# What to watch out for
# ---------------------
# * Compare on functions like the one that you will search, in cost and in size. The winner on a smooth stand-in tells
#   little about a simulator with noise.
# * The command compares the methods' defaults, with the same first step for all. A method that you have tuned for years
#   deserves its own entry: ``--methods mymodule:name`` takes an ``esgroup.compare.methods.Method``, which is a name and
#   a function.
# * All evaluations count, including those for finite differences.
# * You can use a built-in problem instead of MODULE:FUNCTION: ``esgroup list`` names them.
#
# See also: ``esgroup compare --help``; the page ``index.html`` in the folder, which works offline; the columns of
# ``runs.csv`` are those of ``esgroup.compare.records.RunRecord``.
