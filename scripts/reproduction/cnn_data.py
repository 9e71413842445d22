"""Images for the networks, from files that are on this machine already: nothing is ever downloaded.

A set is recognized by its files. Pixels are divided by 255 and, once a seed has its training images, standardized by
their mean and deviation in each channel.
"""

from __future__ import annotations

import gzip
import io
import math
import pickle
import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np

from reproduction.experiment import Array

IDX = tuple(f"{part}-{kind}" for part in ("train", "t10k") for kind in ("images-idx3-ubyte", "labels-idx1-ubyte"))
BATCHES = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
STL = ("train_X.bin", "train_y.bin", "test_X.bin", "test_y.bin")
#: Where the package of Debian, and others by hand, put Fashion-MNIST.
PLACES = ("/usr/share/datasets/fashion-mnist", "/usr/share/dataset-fashion-mnist", "/usr/local/share/fashion-mnist")
KNOWN = (
    f"Fashion-MNIST: {', '.join(IDX)}, with or without .gz (Debian and Ubuntu: package dataset-fashion-mnist); "
    f"CIFAR-10: {', '.join(BATCHES)}, or the same with .bin; STL-10: {', '.join(STL)}"
)


class Images(NamedTuple):
    """A set as it is stored: images (n, channels, side, side) in [0, 1] and labels from 0."""

    name: str
    x: Array
    y: Array
    test_x: Array
    test_y: Array


class Split(NamedTuple):
    """What one seed has: standardized images, and their labels."""

    x: Array
    y: Array
    valid_x: Array
    valid_y: Array
    test_x: Array
    test_y: Array


def load(where: str | None = None) -> Images:
    """The set in a folder; "digits" is scikit-learn's; without a word Fashion-MNIST, where a package has put it."""
    if where == "digits":
        return digits()
    if where is None:
        found = [place for place in map(Path, PLACES) if _idx_files(place)]
        if not found:
            raise FileNotFoundError(
                f"Fashion-MNIST must be in one of {', '.join(PLACES)}, or --data must name a folder; it is the "
                f"package dataset-fashion-mnist of Debian and Ubuntu. Files looked for: {', '.join(IDX)}, with or "
                "without .gz"
            )
        return fashion_mnist(found[0])
    folder = Path(where)
    if _idx_files(folder):
        return fashion_mnist(folder)
    for suffix in ("", ".bin"):
        if all((folder / (name + suffix)).exists() for name in BATCHES):
            return cifar_10(folder, suffix)
    if all((folder / name).exists() for name in STL):
        return stl_10(folder)
    raise FileNotFoundError(f"--data must be 'digits' or a folder with one of these sets, got {where!r}. {KNOWN}")


def split(images: Images, train: int, valid: int, test: int, seed: int) -> Split:
    """Own training and validation images for every seed, and the first images of the test set for all."""
    if train + valid > len(images.x) or test > len(images.test_x):
        raise ValueError(
            f"{images.name} has {len(images.x)} images to train and validate and {len(images.test_x)} to test, "
            f"but {train} + {valid} and {test} are asked for"
        )
    chosen = np.random.default_rng([seed, 0]).permutation(len(images.x))[: train + valid]
    x = images.x[chosen[:train]]
    mean, deviation = (getattr(x, name)(axis=(0, 2, 3), keepdims=True) for name in ("mean", "std"))
    parts = (x, images.x[chosen[train:]], images.test_x[:test])
    x, valid_x, test_x = (((part - mean) / deviation).astype(np.float32) for part in parts)
    return Split(x, images.y[chosen[:train]], valid_x, images.y[chosen[train:]], test_x, images.test_y[:test])


# ---- the sets -------------------------------------------------------------------------------------------------------


def fashion_mnist(folder: Path) -> Images:
    """70,000 gray images of clothes, 28 x 28 (Xiao, Rasul and Vollgraf, 2017)."""
    x, y, test_x, test_y = map(read_idx, _idx_files(folder))
    for images, labels in ((x, y), (test_x, test_y)):
        if images.ndim != 3 or labels.shape != images.shape[:1]:
            raise ValueError(f"{folder}: images {images.shape} and labels {labels.shape} do not belong together")
    return Images("Fashion-MNIST", _scaled(x[:, None]), y.astype(int), _scaled(test_x[:, None]), test_y.astype(int))


def digits() -> Images:
    """scikit-learn's 1,797 digits, 8 x 8; the last 400, by other writers, are the test set."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError("the digits are part of scikit-learn: pip install scikit-learn") from error
    found = load_digits()
    x, y = (found.images[:, None] / 16).astype(np.float32), found.target.astype(int)
    return Images("digits", x[:-400], y[:-400], x[-400:], y[-400:])


def cifar_10(folder: Path, suffix: str) -> Images:
    """60,000 color images, 32 x 32 (Krizhevsky, 2009): Python's batches, or the binary version."""
    read = _binary_batch if suffix else _pickled_batch
    *train, (test_x, test_y) = [read(folder / (name + suffix)) for name in BATCHES]
    x, y = (np.concatenate(parts) for parts in zip(*train, strict=True))
    return Images("CIFAR-10", _scaled(x), y, _scaled(test_x), test_y)


def stl_10(folder: Path) -> Images:
    """13,000 color images, 96 x 96 (Coates, Lee and Ng, 2011), as means of 3 x 3 pixels; stored by columns."""

    def images(name: str) -> Array:
        raw = _whole(folder / name, 3 * 96 * 96).reshape(-1, 3, 96, 96).swapaxes(2, 3)
        return raw.reshape(-1, 3, 32, 3, 32, 3).mean(axis=(3, 5), dtype=np.float32)

    x, y, test_x, test_y = (images(n) if "_X" in n else _whole(folder / n, 1).astype(int) - 1 for n in STL)
    if len(x) != len(y) or len(test_x) != len(test_y):
        raise ValueError(f"{folder}: {len(x)} and {len(test_x)} images, but {len(y)} and {len(test_y)} labels")
    return Images("STL-10", _scaled(x), y, _scaled(test_x), test_y)


def _scaled(pixels: Array) -> Array:
    return pixels.astype(np.float32) / 255


# ---- files ----------------------------------------------------------------------------------------------------------


def read_idx(path: Path) -> Array:
    """An array of bytes in the IDX format: 0, 0, 8 (bytes), the number of axes, their lengths, then the data."""
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if len(raw) < 4 or raw[:3] != b"\0\0\x08":
        raise ValueError(f"{path} must be an IDX file of bytes, which begins with 0, 0, 8; got {list(raw[:3])}")
    begin = 4 + 4 * raw[3]
    if len(raw) < begin:
        raise ValueError(f"{path} must have {raw[3]} lengths of axes, but ends before them")
    shape = struct.unpack(f">{raw[3]}I", raw[4:begin])
    if len(raw) - begin != (count := math.prod(shape)):
        raise ValueError(f"{path} must have {count} numbers for its shape {shape}, got {len(raw) - begin}")
    return np.frombuffer(raw, np.uint8, offset=begin).reshape(shape)


def _idx_files(folder: Path) -> list[Path]:
    """The four files, or nothing if one is missing."""
    found = [next((p for p in (folder / name, folder / f"{name}.gz") if p.exists()), None) for name in IDX]
    return [path for path in found if path] if all(found) else []


def _whole(path: Path, record: int) -> Array:
    raw = np.fromfile(path, np.uint8)
    if raw.size == 0 or raw.size % record:
        raise ValueError(f"{path} must have whole records of {record} bytes, got {raw.size} bytes")
    return raw


def _binary_batch(path: Path) -> tuple[Array, Array]:
    """A label and 3 x 32 x 32 pixels in each record."""
    records = _whole(path, 3073).reshape(-1, 3073)
    return records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0].astype(int)


class _Arrays(pickle.Unpickler):
    """Reads arrays of numbers and refuses everything else: a pickle may contain any program."""

    def find_class(self, module: str, name: str) -> object:
        if (module, name) in {("numpy", "ndarray"), ("numpy", "dtype")}:
            return getattr(np, name)
        if name == "_reconstruct" and module in ("numpy.core.multiarray", "numpy._core.multiarray"):
            return np._core.multiarray._reconstruct  # type: ignore[attr-defined]
        raise pickle.UnpicklingError(f"a batch of images must have arrays only, but asks for {module}.{name}")


def _pickled_batch(path: Path) -> tuple[Array, Array]:
    found = _Arrays(io.BytesIO(path.read_bytes()), encoding="bytes").load()
    return np.asarray(found[b"data"], np.uint8).reshape(-1, 3, 32, 32), np.asarray(found[b"labels"], int)
