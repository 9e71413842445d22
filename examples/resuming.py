"""
Resuming a run that was killed
==============================

A run has taken hours when the power fails, or the cluster's queue ends the job. How much is lost? And can you trust
that the second half is the same search as the first? This tutorial kills a run and finds out.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import esgroup
from esgroup.running.history import read

# %%
# A run with two files
# --------------------
# Two arguments are enough. ``checkpoint`` is one file with everything that the search needs to continue, rewritten
# during the run. ``history`` is a text file with a line for every generation, for figures. We put this into a script,
# as you would for a long run: when you start the script again, it continues. The function ends its own process at the
# 2,000th evaluation, without a message or cleanup, as a power failure would. It does so only once.

temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)
script = folder / "long_run.py"
script.write_text("""
import os
import time
import numpy as np
import esgroup

calls = 0

def cost(x):
    global calls
    calls += 1
    if calls == 2000 and not os.path.exists("killed"):
        open("killed", "w").close()
        os._exit(1)  # no exception, no cleaning up
    time.sleep(0.001)  # stands for a computation
    return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))

result = esgroup.minimize(
    cost, np.zeros(10), 0.5, target=1e-10, rng=1,
    checkpoint="run.npz", history="run.jsonl", resume=os.path.exists("run.npz"),
)
print("evaluations:", result.nfev)
print("best value: ", result.fun)
print("in this process:", calls)
""")


def start():
    return subprocess.run(
        [sys.executable, script.name], cwd=folder, capture_output=True, text=True
    )


first = start()
print("exit status", first.returncode)
print("files:", *sorted(path.name for path in folder.iterdir()))

# %%
# What is left
# ------------
# The checkpoint contains the complete search, and you can inspect it first. It is never half written, because a
# new file replaces the old one in one step. Writing takes at most a tenth of the running time, so the checkpoint can be
# slightly older than the last line of the history.

saved = esgroup.Searcher.load(folder / "run.npz")
with open(folder / "run.jsonl") as file:
    header, *before = [json.loads(line) for line in file if line.endswith("\n")]
print("evaluations in the checkpoint:", saved.nfev)
print("evaluations in the history:   ", before[-1]["nfev"])

# %%
# Start the script again
# ----------------------

second = start()
print(second.stdout)

# %%
# The evaluations since the last checkpoint were repeated; nothing else was lost.
#
# Is it the same search?
# ----------------------
# The checkpoint also contains the state of the random number generator. Here is an uninterrupted run, in this process:


def cost(x):
    return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


whole = esgroup.minimize(cost, np.zeros(10), 0.5, target=1e-10, rng=1)
resumed = esgroup.Searcher.load(folder / "run.npz").result
print("evaluations equal:", whole.nfev == resumed.nfev)
print("best point equal, to the last bit:", np.array_equal(whole.x, resumed.x))
print(
    "standard deviations equal, to the last bit:",
    np.array_equal(whole.stds, resumed.stds),
)

# %%
# A figure of both halves
# -----------------------
# The second run continued the history of the first. ``read`` omits the generations that were repeated.

joined = read(folder / "run.jsonl")
cut = before[-1]["nfev"]
first_half = joined.nfev <= saved.nfev
BLUE, ORANGE = "#0072B2", "#D55E00"
figure, (above, below) = plt.subplots(
    2, 1, figsize=(7, 4.4), sharex=True, layout="constrained"
)
for panel, values in ((above, joined.best_f), (below, joined.sigma)):
    panel.plot(
        joined.nfev[first_half],
        values[first_half],
        color=BLUE,
        linewidth=2,
        label="first run",
    )
    panel.plot(
        joined.nfev[~first_half],
        values[~first_half],
        color=ORANGE,
        linewidth=2,
        label="resumed",
    )
    panel.axvline(cut, color="black", linestyle="--", linewidth=1)
    panel.set_yscale("log")
    panel.grid(color="#e6e6e6")
above.annotate(
    "killed",
    (cut, 0.9),
    xycoords=("data", "axes fraction"),
    xytext=(5, 0),
    textcoords="offset points",
)
above.set(ylabel="best value", title="One search in two processes")
above.legend(loc="lower left")
below.set(xlabel="evaluations", ylabel="step size")
plt.show()

# %%
# On the command line, ``esgroup plot run.jsonl`` draws more.
#
# With ask and tell
# -----------------
# In your own loop, save whenever you like. The file also contains the pending points.

search = esgroup.Searcher(np.zeros(10), 0.5, target=1e-10, rng=1)
for _ in range(20):
    search.tell([cost(x) for x in search.ask()])
search.save(folder / "mine.npz")
twin = esgroup.Searcher.load(folder / "mine.npz")
print("the next points are equal:", np.array_equal(search.ask(), twin.ask()))
temporary.cleanup()

# %%
# What to watch out for
# ---------------------
# * "To the last bit" holds on the same machine with the same versions and the same number of BLAS threads, which
#   ``OPENBLAS_NUM_THREADS=1`` fixes. Elsewhere the run also continues, but differs because of rounding.
# * The function must not have state: its counters or files are not in the checkpoint.
# * A start, seed or structure that differs from that of the file is refused with a message. Limits can change: a larger
#   ``max_evals`` continues a run that has used up its budget.
# * Without ``resume=True`` an existing checkpoint is not overwritten; the call is refused.
#
# See also: ``esgroup.minimize`` (``checkpoint``, ``resume``, ``history``), ``esgroup.Searcher.save``,
# ``esgroup.Searcher.load``, ``esgroup.CheckpointError``.
