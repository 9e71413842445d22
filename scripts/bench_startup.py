"""How long a new installation compiles, and how long later processes take to start.

    python scripts/bench_startup.py

Each figure is the wall time of a fresh process; the kernels go to a temporary folder, so that the first one
finds nothing. What a process prints is shown as well: the first one says that it compiles, and a small search says how
much CPU time it took from the start of Python on, the command also at its lines on the way.
"""
# extras: plot

import os
import subprocess
import sys
import tempfile
import time

COMPILE_ALL = """
import importlib, pkgutil, time
import esgroup.kernels
from esgroup.kernels.jit import Kernel
start, count = time.perf_counter(), 0
for module in pkgutil.iter_modules(esgroup.kernels.__path__):
    for thing in list(vars(importlib.import_module("esgroup.kernels." + module.name)).values()):
        if isinstance(thing, Kernel):
            thing.compile()
            count += 1
print(f"{count} loops in {time.perf_counter() - start:.2f} s")
"""
ONE_STEP = """
import numpy as np
from esgroup import Gaussian
family = Gaussian("heisenberg", mean=np.zeros(100))
samples = family.sample(family.state(), 10, np.random.default_rng(0))
family.move_samples(family.state(), samples, np.linspace(1, -1, 10))
"""
FIRST_SEARCH = """
import time
import numpy as np
import esgroup
esgroup.minimize(lambda x: float(x @ x), np.ones(10), 0.5, max_evals=500, rng=1)
print(f"{time.process_time():.2f} s of CPU time")
"""
COMMAND = """
import contextlib, sys, time
from esgroup.command.cli import app
from esgroup.running.progress import Progress
begins = Progress.begins
def say_when(line, run):
    print(f"{time.process_time():.2f} s of CPU time when a line begins")
    begins(line, run)
Progress.begins = say_when
sys.argv = ["esgroup", *"run rosenbrock --dim 20 --seed 1 --target 1e-8".split(), *MORE]
with contextlib.suppress(SystemExit):
    app()
print(f"{time.process_time():.2f} s of CPU time")
"""


def timed(code: str, cache: str) -> tuple[float, str]:
    start = time.perf_counter()
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, env=environment, cwd=cache, check=True, capture_output=True, text=True)
    return time.perf_counter() - start, (run.stderr + run.stdout).strip()


STEPS = (
    ("a first small search, nothing on disk", FIRST_SEARCH, "< 6 of CPU"),
    ("the same in a later process", FIRST_SEARCH, "< 1.5 of CPU"),
    ("the command `esgroup run`, later process", COMMAND.replace("MORE", "[]"), "< 1.5 of CPU"),
    ("the command with a figure", COMMAND.replace("MORE", '["--plot", "rosenbrock.png"]'), "< 3 of CPU"),
    ("compile every loop, some of them on disk", COMPILE_ALL, "< 60"),
    ("load every loop from disk", COMPILE_ALL, ""),
    ("one step of a Heisenberg search, later process", ONE_STEP, "< 1.5"),
    ("import esgroup.distributions", "import esgroup.distributions", ""),
    ("import esgroup", "import esgroup", ""),
    ("import numpy, for comparison", "import numpy", ""),
)


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:
        for name, code, goal in STEPS:
            seconds, text = timed(code, cache)
            print(f"{name:50}{seconds:7.2f} s  {goal}", flush=True)
            for line in text.splitlines():
                print(f"    | {line}")


if __name__ == "__main__":
    main()
