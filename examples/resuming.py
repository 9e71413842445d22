"""
Resuming a run that was killed
==============================

The run has been going for hours when the power fails, or the queue of the cluster ends the job. How much is lost? And
can the second half be trusted to be the same search as the first? This tutorial kills a run and finds out.
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
# Two arguments are enough. ``checkpoint`` is one file with all that the search needs to go on, rewritten as the run
# goes. ``history`` is a text file with a line for every generation, for pictures. We put this into a script, as one
# would for a long run: if the script is started again, it continues. The function ends its own process at the 2,000th
# evaluation, without a word and without cleaning up, as a power failure would. It does so only once.

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
    time.sleep(0.001)  # as if it had something to compute
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
# The checkpoint is a whole search, and can be looked at before anything is decided. It is never half written, because a
# new one replaces the old one in one step. Writing it takes at most a tenth of the running time, so that it may be a
# little older than the last line of the history.

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
# The evaluations since the last checkpoint were done twice, and nothing else was lost.
#
# Is it the same search?
# ----------------------
# The checkpoint also has the state of the random numbers. Here is the run that was never interrupted, in this process:


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
# The picture of both halves
# --------------------------
# The second run has continued the history of the first one. ``read`` leaves out the generations that were done twice.

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
# ``esgroup plot run.jsonl`` draws more of it from the command line.
#
# With ask and tell
# -----------------
# A loop of your own saves when it likes. What was asked and not yet told is in the file as well.

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
#   ``OPENBLAS_NUM_THREADS=1`` fixes. Elsewhere the run goes on as well, and rounding makes it another one.
# * The function must not remember anything: a counter or a file of its own is not in the checkpoint.
# * Another start, seed or structure than that of the file is refused with a message. Limits may change: a larger
#   ``max_evals`` continues a run that has spent its budget.
# * Without ``resume=True`` a checkpoint that exists is not overwritten; the call is refused.
#
# Read on: ``esgroup.minimize`` (``checkpoint``, ``resume``, ``history``), ``esgroup.Searcher.save``,
# ``esgroup.Searcher.load``, ``esgroup.CheckpointError``.
