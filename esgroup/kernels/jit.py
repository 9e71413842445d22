"""The decorator that compiles the package's loops.

`@kernel("in2, in1, int, out2")` states the argument types: `in1`/`in2` are read-only float64 arrays of one and two
dimensions, `out1`/`out2` writeable ones, `idx1` read-only int64 arrays, `int` and `float` scalars. A kernel returns
nothing, checks nothing and draws no random numbers. Numba is imported and the loop compiled when a kernel is first
called; the machine code is kept on disk, so that later processes only load it. The compiled function then takes the
kernel's place in its module: a generation of a small search makes four such calls, and a call in between would cost as
much as the loop. So call kernels as attributes of their module.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

# Sums may be reordered and multiply-adds contracted, which allows a dot product to use vector registers. The other
# "fast" flags stay off: they would let the compiler assume that there is no NaN.
_FLOAT_FLAGS = {"reassoc", "contract"}
_PATIENCE = 2.0  # seconds of compilation in this process after which a line is printed

_lock = threading.RLock()
_seconds_spent = 0.0


class Kernel:
    """A loop over arrays, compiled on its first call. `python` is the same function, not compiled."""

    def __init__(self, python: Callable[..., None], signature: str) -> None:
        self.python = python
        self.signature = signature
        self.__doc__ = python.__doc__
        self.__name__ = python.__name__
        self._compiled: Callable[..., None] | None = None

    def __call__(self, *args: Any) -> None:
        (self._compiled or self.compile())(*args)

    def compile(self) -> Callable[..., None]:
        """Compile the loop, or load it from the disk cache, and return it."""
        global _seconds_spent
        with _lock:
            if self._compiled is None:
                start = time.perf_counter()
                notice = threading.Timer(max(0.0, _PATIENCE - _seconds_spent), _announce, (self.__name__,))
                notice.daemon = True
                notice.start()
                try:
                    self._compiled = _compile(self.python, self.signature)
                finally:
                    notice.cancel()
                    _seconds_spent += time.perf_counter() - start
                self._step_aside(self._compiled)
            return self._compiled

    def _step_aside(self, compiled: Any) -> None:
        """Put the compiled function in the place of this object in its module."""
        module = sys.modules.get(self.python.__module__)
        if module is not None and getattr(module, self.__name__, None) is self:
            compiled.python = self.python
            setattr(module, self.__name__, compiled)


def kernel(signature: str) -> Callable[[Callable[..., None]], Kernel]:
    """Mark a function as a kernel with the given argument types (see the module's docstring)."""
    return lambda python: Kernel(python, signature)


def _compile(python: Callable[..., None], signature: str) -> Callable[..., None]:
    import numba
    from numba import types

    kinds = {
        "in1": types.Array(types.float64, 1, "C", readonly=True),
        "in2": types.Array(types.float64, 2, "C", readonly=True),
        "out1": types.Array(types.float64, 1, "C"),
        "out2": types.Array(types.float64, 2, "C"),
        "idx1": types.Array(types.int64, 1, "C", readonly=True),
        "int": types.intp,
        "float": types.float64,
    }
    arguments = [kinds[word.strip()] for word in signature.split(",")]
    jit = numba.njit([types.void(*arguments)], cache=True, error_model="numpy", fastmath=_FLOAT_FLAGS)
    compiled: Callable[..., None] = jit(python)
    return compiled


_announced = False


def _announce(name: str) -> None:
    global _announced
    if not _announced:
        _announced = True
        print(
            f"esgroup: compiling its loops (now {name}); this happens once per installation and is kept on disk",
            file=sys.stderr,
            flush=True,
        )
