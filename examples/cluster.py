"""
A cluster whose workers never wait
==================================

Four machines evaluate points at the same time. If one evaluation takes ten times as long as another, a search by
generations leaves most machines idle: they wait for the slowest point of the generation. How much time is lost, and
how much does it help not to wait? This tutorial needs ``dask[distributed]``.
"""

import logging
import time

import matplotlib.pyplot as plt
import numpy as np
from dask.distributed import Client, LocalCluster, get_task_stream

import esgroup

# %%
# The cluster, and something to do
# --------------------------------
# A cluster on one machine serves as a stand-in: four workers with one thread each, all within this process. That is
# enough here, because the function only sleeps. On a real cluster, cluster and client are created differently, and the
# script needs ``if __name__ == "__main__":`` above them.

logging.getLogger("distributed").setLevel(
    logging.ERROR
)  # do not log every worker that joins or leaves
cluster = LocalCluster(
    n_workers=4, threads_per_worker=1, processes=False, dashboard_address=":0"
)
client = Client(cluster)


def cost(x):
    """A bowl. An evaluation takes 50 to 800 ms, unpredictably."""
    time.sleep(0.05 * 16 ** (0.5 + 0.5 * np.sin(1e4 * x.sum())))
    return float(np.sum([1, 3, 10, 30] * (x - 1) ** 2))


# %%
# By generations, and without
# ---------------------------
# Both searches evaluate 64 points on the same four workers. With ``asynchronous=True`` a worker gets a new point as
# soon as it returns a value. Dask records which worker did what and when, which we draw below.


def search(asynchronous, max_evals=64):
    with get_task_stream(client) as stream:
        begin = time.time()
        result = esgroup.minimize(
            cost,
            np.zeros(4),
            0.5,
            max_evals=max_evals,
            executor=client,
            asynchronous=asynchronous,
            rng=1,
        )
        seconds = time.time() - begin
    work = [
        (task["worker"], part["start"] - begin, part["stop"] - begin)
        for task in stream.data
        for part in task["startstops"]
        if part["action"] == "compute"
    ]
    return result, seconds, work


search(
    True, max_evals=8
)  # so that one-time work, such as loading and compiling, is not timed
runs = {"by generations": search(False), "asynchronous": search(True)}
for name, (result, seconds, work) in runs.items():
    busy = sum(stop - start for _, start, stop in work) / (4 * seconds)
    print(
        f"{name:14} {seconds:4.1f} s, workers busy {busy:3.0%} of the time, "
        f"best value {result.fun:.2g}"
    )

# %%
# Who was busy when
# -----------------
# Every bar is one evaluation. Above, a generation of eight points ends with its slowest one, and the gaps are the times
# when a worker has nothing to do. Below, the short gaps that remain are the time to send a value to the search and
# the next point to the worker.

figure, panels = plt.subplots(2, 1, figsize=(7, 4), sharex=True, layout="constrained")
for panel, (name, (_, seconds, work)) in zip(panels, runs.items(), strict=True):
    for row, worker in enumerate(sorted({worker for worker, _, _ in work})):
        bars = [(start, stop - start) for name, start, stop in work if name == worker]
        panel.broken_barh(
            bars, (row + 0.6, 0.8), color="#0072B2", edgecolor="white", linewidth=0.4
        )
    panel.axvline(seconds, color="#D55E00", linewidth=2)
    panel.annotate(
        "done",
        (seconds, 4.5),
        xytext=(3, 0),
        textcoords="offset points",
        color="#D55E00",
        va="top",
    )
    panel.set(title=name, ylabel="worker", yticks=[1, 2, 3, 4], ylim=(0.4, 4.6))
panels[0].set_xlim(0, 1.08 * max(seconds for _, seconds, _ in runs.values()))
panels[1].set_xlabel("seconds")
plt.show()

client.close()
cluster.close()

# %%
# What it costs
# -------------
# A late value belongs to a point from an older distribution. It still counts, weighted by how far the distribution has
# moved since. If less than a generation is pending (here 4 points, and 8 in a generation), this costs almost no
# additional evaluations; with several generations pending it does. Which of the two values above is better is chance.
#
# On a real cluster
# -----------------
# For a safe long run, say what an exception means, when to abandon a point, and in which file to save the search. With
# ``dask-jobqueue`` you get the cluster from SLURM:
#
# .. code-block:: python
#
#     if __name__ == "__main__":
#         cluster = SLURMCluster(cores=1, processes=1, memory="4GB", walltime="12:00:00")
#         cluster.scale(jobs=32)
#         with Client(cluster) as client:
#             result = esgroup.minimize(
#                 cost, x0, sigma0, max_evals=5000, executor=client, asynchronous=True,
#                 on_error="nan", max_failures=50, eval_timeout=3600,
#                 checkpoint="run.npz", resume=os.path.exists("run.npz"),
#             )
#
# What to watch out for
# ---------------------
# * The order in which values arrive varies, so an asynchronous result does, too. By generations the
#   result depends only on the seed, for any number of workers.
# * Workers may join and leave, and the point of a worker that dies is evaluated again. A function that kills its worker
#   at some point would do so again: after three tries the search reports the point with an error.
# * If all evaluations take equally long, generations lose little: then choose a ``popsize`` that is a multiple of the
#   number of workers, and keep the result reproducible.
# * A function from your script must be importable on the workers, with everything that it imports.
#
# See also: ``esgroup.minimize`` (``executor``, ``workers``, ``asynchronous``, ``max_pending``, ``eval_timeout``). To
# use the cores of one machine without a cluster, pass ``workers=4``.
