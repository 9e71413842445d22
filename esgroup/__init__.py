"""Black-box search with evolution strategies whose search distributions have structure."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from esgroup.distributions import Gaussian as Gaussian

# names of the package and where they live: loaded when first used, so that the command starts at once
_HOMES = {"Gaussian": "esgroup.distributions"}

__all__ = ["Gaussian", "__version__"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("esgroup")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'esgroup' has no attribute {name!r}")
