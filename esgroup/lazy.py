"""Modules imported at first use: importing SciPy's takes longer than running a small search."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Lazy:
    """A placeholder for a module that is imported at the first access to an attribute; attributes are cached."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copy and inspect look for these
            raise AttributeError(name)
        value = getattr(import_module(self._module), name)
        setattr(self, name, value)
        return value


blas: Any = Lazy("scipy.linalg.blas")
lapack: Any = Lazy("scipy.linalg.lapack")
fft: Any = Lazy("scipy.fft")
