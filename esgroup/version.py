"""The version of the package, from its metadata."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("esgroup")
except PackageNotFoundError:  # a source tree that is not installed
    __version__ = "0+unknown"
