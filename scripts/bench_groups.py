"""CPU time of one generation (sample + project + move) per sample, as a ratio to the machine's limit in the same run.

The linear limit is one call of standard_normal(d) and one axpy per sample; the full limit is that plus one gemm of the
generation, Z A^T. lambda = 4 + 3 ln d. Group and limit take turns, and the figures are means over the whole run, so
that load on the machine meets both. BLAS runs on one thread.

    python scripts/bench_groups.py                 the whole table, about ten minutes
    python scripts/bench_groups.py --quick         small dimensions, short runs
    python scripts/bench_groups.py --memory        peak memory of a step at d = 10^6 (Linux)
"""

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.linalg.blas import daxpy

from esgroup.distributions import Gaussian
from esgroup.groups import BlockTriangular, Diagonal, Full, Group, Heisenberg, Kronecker, Triangular

FULL_DIMS = [10, 40, 100, 200, 640, 1000, 2000]
LINEAR_DIMS = [*FULL_DIMS, 10**4, 10**5, 10**6]
GOALS = {  # group: (dimensions, ratio)
    "diagonal": ([1000, 2000, 10**4, 10**5, 10**6], 1.4),
    "block_triangular:k=4": ([100, 200, 640, 1000, 2000, 10**4], 2.2),
    "heisenberg:k1=4,k2=4": ([100, 200, 640, 1000, 2000, 10**4], 2.2),
    "full": (FULL_DIMS, 2.0),
    "kronecker(full, full)": ([10**4], 6.0),
}


def popsize(dim: int) -> int:
    return 4 + int(3 * np.log(dim))


def kronecker(dim: int) -> Group:
    side = int(np.sqrt(dim))
    return Kronecker(Full(side), Full(side))


GROUPS: dict[str, tuple[Callable[[int], Group], list[int]]] = {
    "diagonal": (Diagonal, LINEAR_DIMS),
    "block_triangular:k=4": (lambda d: BlockTriangular(d, 4), LINEAR_DIMS),
    "heisenberg:k1=4,k2=4": (lambda d: Heisenberg(d, 4, 4), LINEAR_DIMS),
    "kronecker(full, full)": (kronecker, [100, 10**4]),
    "triangular": (Triangular, FULL_DIMS[:-1]),
    "full": (Full, FULL_DIMS),
}


def limit(dim: int, full: bool) -> Callable[[], None]:
    """One generation at the machine's limit."""
    rng, n = np.random.default_rng(0), popsize(dim)
    total, out = np.zeros(dim), np.empty((n, dim))
    z, root = (np.empty((n, dim)), np.eye(dim)) if full else (out, out)

    def generation() -> None:
        for _ in range(n):
            daxpy(rng.standard_normal(dim), total, a=0.5)
        if full:
            np.matmul(z, root.T, out=out)

    if full:
        rng.standard_normal(out=z)
    return generation


def step(group: Group) -> Callable[[], None]:
    """One generation of ours; neutral weights, so that the parameters stay where they are on average."""
    rng, n = np.random.default_rng(0), popsize(group.dim)
    family = Gaussian(group, mean=np.zeros(group.dim))
    state = family.state()
    weights = np.linspace(1, -1, n) / n
    rate = 1.0 / (group.dof + n)

    samples = family.sample(state, n, rng)

    def generation() -> None:
        nonlocal samples
        samples = family.sample(state, n, rng, out=samples)
        family.move_samples(state, samples, weights, 1.0, rate, out=state)

    return generation


def compare(ours: Callable[[], None], theirs: Callable[[], None], seconds: float) -> tuple[float, float]:
    """Mean CPU seconds of a generation of each, taking turns."""
    once = max(_timed(ours, 2) / 2, _timed(theirs, 2) / 2)
    turn = max(1, int(seconds / 40 / once))
    spent, calls, start = np.zeros(2), 0, time.perf_counter()
    while calls == 0 or time.perf_counter() - start < seconds:
        spent += _timed(ours, turn), _timed(theirs, turn)
        calls += turn
    return spent[0] / calls, spent[1] / calls


def _timed(function: Callable[[], None], calls: int) -> float:
    start = time.process_time()
    for _ in range(calls):
        function()
    return time.process_time() - start


def table(seconds: float, largest: int, only: str) -> bool:
    print(f"{'group':24}{'d':>9}{'lambda':>8}{'us/sample':>12}{'limit us':>11}{'ratio':>8}{'goal':>8}")
    good = True
    for name, (make, dims) in ((name, group) for name, group in GROUPS.items() if only in name):
        measured = {}
        for dim in (d for d in dims if d <= largest):
            ours, theirs = compare(step(make(dim)), limit(dim, name in ("full", "triangular")), seconds)
            measured[dim] = ours / popsize(dim)
            goal = next((f"<= {r}" for d, r in [GOALS.get(name, ([], 0))] if dim in d), "")
            ratio = ours / theirs
            good &= not goal or ratio <= float(goal[3:])
            print(f"{name:24}{dim:9}{popsize(dim):8}{1e6 * measured[dim]:12.2f}"
                  f"{1e6 * theirs / popsize(dim):11.2f}{ratio:8.2f}{goal:>8}", flush=True)  # fmt: skip
        if 10**6 in measured and 10**4 in measured:
            growth = np.log(measured[10**6] / measured[10**4]) / np.log(100)
            good &= growth <= 1.1
            print(f"{name:24}time per sample grows as d^{growth:.2f} from 10^4 to 10^6 (goal <= 1.1)", flush=True)
    return good


def memory() -> None:
    """Peak memory of a process that makes two steps at d = 10^6, per group."""
    for name in ("diagonal", "block_triangular:k=4", "heisenberg:k1=4,k2=4"):
        command = [sys.executable, __file__, "--one-step", name]
        peak = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print(f"{name:24}peak memory of a step at d = 10^6: {peak:.2f} GB (goal < 1.5)", flush=True)


def one_step(name: str) -> None:
    generation = step(GROUPS[name][0](10**6))
    generation()
    generation()
    # the peak of this process alone; getrusage would count what its parent had when it was forked
    status = Path("/proc/self/status").read_text()
    print(float(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="dimensions up to 1000, half a second each")
    parser.add_argument("--memory", action="store_true", help="only the peak memory of a step at d = 10^6")
    parser.add_argument("--seconds", type=float, default=8.0, help="wall time of each comparison")
    parser.add_argument("--only", default="", help="only groups whose name contains this text")
    parser.add_argument("--one-step", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one_step:
        one_step(arguments.one_step)
    elif arguments.memory:
        memory()
    else:
        seconds, largest = (0.5, 1000) if arguments.quick else (arguments.seconds, 10**6)
        good = table(seconds, largest, arguments.only)
        if not arguments.quick:
            memory()
        print("every goal is met" if good else "not every goal is met")
        sys.exit(not good)


if __name__ == "__main__":
    main()
