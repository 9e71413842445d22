"""The decorator that compiles the package's kernels.

`@kernel("in2, in1, int, out2")` states the argument types: `in1`/`in2` are read-only float64 arrays of one and two
dimensions, `out1`/`out2` writeable ones, `idx1` read-only int64 arrays, `int` and `float` scalars. A kernel returns
nothing, checks nothing and draws no random numbers. When a kernel is first called, Numba is imported and the kernel is
compiled; the machine code is cached on disk, so later processes only load it. If no folder is writable, every process
compiles, and a warning says how to change that. The compiled function then replaces the kernel in its module, because
in a small search an intermediate call would cost as much as the kernel itself. So call kernels as attributes of their
module.

A kernel may call other kernels, by name: a call from Python costs a third of a microsecond and a seventh more for every
array, a call between kernels nothing. With `inlined=True` a kernel becomes part of its callers, which compiles faster
if there is only one such call.
"""

from __future__ import annotations

import sys
import threading
import time
import warnings
import zlib
from collections.abc import Callable
from types import FunctionType
from typing import Any

# Sums may be reordered and multiply-adds contracted, which allows a dot product to use vector registers. The other
# "fast" flags stay off: they would let the compiler assume that there is no NaN.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"reassoc", "contract"}}
_PATIENCE = 2.0  # seconds of compilation in this process after which a message is printed

_lock = threading.RLock()
prepared = 0.0


class Kernel:
    """A function of arrays, compiled on its first call. `python` is the same function, not compiled."""

    def __init__(self, python: Callable[..., None], signature: str, *, inlined: bool = False) -> None:
        self.python: Any = python
        self.signature = signature
        self.inlined = inlined
        self.__doc__ = python.__doc__
        self.__name__ = python.__name__
        self._compiled: Any = None
        names = self.python.__code__.co_names
        self.called = {name: k for name in names if isinstance(k := self.python.__globals__.get(name), Kernel)}

    def __call__(self, *args: Any) -> None:
        (self._compiled or self.compile())(*args)

    def compile(self) -> Any:
        """Compile the kernel, or load it from the disk cache, and return it."""
        global prepared
        with _lock:
            if self._compiled is None:
                start, before = time.perf_counter(), prepared
                try:
                    self._compiled = _compile(self.complete(), self.signature)
                finally:  # kernels that this one calls were compiled meanwhile, and their time is part of it
                    prepared = before + time.perf_counter() - start
                self._step_aside(self._compiled)
            return self._compiled

    def complete(self) -> Any:
        """The function with inlined kernels, under a name that changes with the code of everything it calls.

        Numba caches machine code under that name, and checks only this kernel's file to see whether it is stale.
        """
        if not self.called:
            return self.python
        import numba

        inlined = numba.njit(inline="always", **_OPTIONS)
        parts = {name: inlined(kernel.complete()) for name, kernel in self.called.items() if kernel.inlined}
        code, known = self.python.__code__, self.python.__globals__ | parts
        complete = FunctionType(code, known, self.__name__)
        complete.__qualname__, complete.__module__ = f"{self.__name__}_{self.fingerprint:08x}", self.python.__module__
        return complete

    @property
    def _numba_type_(self) -> Any:
        """What Numba requests when it compiles a call to this kernel."""
        return self.compile()._numba_type_

    @property
    def fingerprint(self) -> int:
        """A number that changes with the code of this kernel and of the kernels it calls."""
        code = self.python.__code__
        own = repr((code.co_code, code.co_consts, code.co_names))  # everything it does
        return zlib.crc32("".join([own, *(str(kernel.fingerprint) for kernel in self.called.values())]).encode())

    def _step_aside(self, compiled: Any) -> None:
        """Replace this object in its module by the compiled function."""
        module = sys.modules.get(self.python.__module__)
        if module is not None and getattr(module, self.__name__, None) is self:
            compiled.python = self.python
            setattr(module, self.__name__, compiled)


def kernel(signature: str, *, inlined: bool = False) -> Callable[[Callable[..., None]], Kernel]:
    """Mark a function as a kernel with the given argument types (see the module's docstring)."""
    return lambda python: Kernel(python, signature, inlined=inlined)


def _compile(python: Callable[..., None], signature: str) -> Any:
    import numba
    from numba import types
    from numba.core import event

    here = threading.get_ident()

    class Watch(event.Listener):
        """Observes compilations, but neither kernels loaded from disk nor compilations in other threads."""

        def on_start(self, event: Any) -> None:
            if threading.get_ident() == here:
                _compilations.begin(python.__name__)

        def on_end(self, event: Any) -> None:
            if threading.get_ident() == here:
                _compilations.end()

    kinds = {
        "in1": types.Array(types.float64, 1, "C", readonly=True),
        "in2": types.Array(types.float64, 2, "C", readonly=True),
        "out1": types.Array(types.float64, 1, "C"),
        "out2": types.Array(types.float64, 2, "C"),
        "idx1": types.Array(types.int64, 1, "C", readonly=True),
        "int": types.intp,
        "float": types.float64,
    }
    types_of_arguments = [types.void(*(kinds[word.strip()] for word in signature.split(",")))]
    with event.install_listener("numba:compile", Watch()):
        try:
            return numba.njit(types_of_arguments, cache=True, **_OPTIONS)(python)
        except (RuntimeError, OSError) as error:
            if isinstance(error, RuntimeError) and "cannot cache" not in str(error):
                raise
            _warn_that_nothing_is_kept(error)
            return numba.njit(types_of_arguments, **_OPTIONS)(python)


_warned = False


def _warn_that_nothing_is_kept(error: Exception) -> None:
    """Warn once that Numba finds no folder for machine code, or cannot write to it."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "esgroup cannot cache its compiled kernels on disk, so every process compiles them again, which takes "
            "seconds to minutes: set the environment variable NUMBA_CACHE_DIR to a writable folder "
            f"({' '.join(str(error).split())})",
            RuntimeWarning,
            stacklevel=2,
        )


class _Compilations:
    """The time that this process spends compiling; if it is long, a message is printed. Compilations can be nested."""

    def __init__(self) -> None:
        self.spent = 0.0
        self.announced = False
        self._depth = 0
        self._start = 0.0
        self._notice = threading.Timer(0.0, self._announce)

    def begin(self, name: str) -> None:
        self._depth += 1
        if self._depth == 1:
            self._start = time.perf_counter()
            self._notice = threading.Timer(max(0.0, _PATIENCE - self.spent), self._announce, (name,))
            self._notice.daemon = True
            self._notice.start()

    def end(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._notice.cancel()
            self.spent += time.perf_counter() - self._start

    def _announce(self, name: str) -> None:
        if not self.announced:
            self.announced = True
            kept = "they cannot be cached on disk" if _warned else "they are cached on disk for later runs"
            text = f"esgroup: compiling kernels (now {name}), usually 5 to 20 s in all; {kept}"
            print(text, file=sys.stderr, flush=True)


_compilations = _Compilations()
