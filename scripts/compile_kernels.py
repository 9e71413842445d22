"""Compile all loops of the package on all cores, so that processes that start later only load them.

    python scripts/compile_kernels.py

Where they are on disk already, this takes a second or two.
"""

from __future__ import annotations

import pkgutil
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path

from esgroup import kernels
from esgroup.kernels.jit import Kernel


def compile_all_of(name: str) -> int:
    """Compile the kernels of one module, and return how many there are."""
    module = import_module(f"{kernels.__name__}.{name}")
    own = [k for k in vars(module).values() if isinstance(k, Kernel) and k.python.__module__ == module.__name__]
    for kernel in own:
        if not kernel.inlined:  # those are compiled as parts of others
            kernel.compile()
    return len(own)


def names() -> list[str]:
    """The modules with kernels, the longest first: the others fill the time beside them."""
    return sorted(
        (module.name for module in pkgutil.iter_modules(kernels.__path__)),
        key=lambda name: -Path(kernels.__path__[0], f"{name}.py").stat().st_size,
    )


if __name__ == "__main__":
    with ProcessPoolExecutor() as pool:
        print(f"{sum(pool.map(compile_all_of, names()))} kernels are compiled")
