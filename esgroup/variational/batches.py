"""A log density that consists of a prior and a sum over data, estimated from batches of the data."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.gradients.function import Counts, Gradients, Hessians, Products, Values, must_be_callable, with_args
from esgroup.gradients.rows import RowFunction
from esgroup.variational.log_density import Target, make_target

Arrays = tuple[NDArray[Any], ...]


@dataclass(frozen=True, eq=False)
class Likelihood:
    """The log likelihood of data and its derivatives, each a sum over the rows it is given.

    Parameters
    ----------
    fun : callable
        fun(x, *batch) returns the log likelihood of a batch at the point x: a sum, not a mean, over its rows.
    jac : callable or True, optional
        Its gradient jac(x, *batch); True if fun returns (value, gradient).
    hessp : callable, optional
        The product of its Hessian with a vector, hessp(x, v, *batch).
    hess : callable, optional
        Its Hessian, hess(x, *batch).
    hess_diag : callable, optional
        The diagonal of its Hessian, hess_diag(x, *batch).
    hessp_vectorized : bool
        Whether hessp takes several vectors v as rows for one point x.
    vectorized : bool
        Whether all functions take rows of points x, as in `fit_posterior`.

    Examples
    --------
    >>> import numpy as np
    >>> from esgroup import Likelihood, fit_posterior
    >>> rng = np.random.default_rng(0)
    >>> y = 3 + rng.standard_normal(1000)  # with an unknown mean and the variance 1
    >>> def fun(x, y):
    ...     return -0.5 * np.sum((y - x) ** 2)
    >>> likelihood = Likelihood(fun, jac=lambda x, y: np.sum(y - x, keepdims=True))
    >>> prior = lambda x: -0.5 * x @ x
    >>> batches = {"likelihood": likelihood, "data": y, "batch_size": 100}
    >>> post = fit_posterior(prior, [0.0], jac=lambda x: -x, **batches, rng=1)
    >>> bool(abs(post.mean[0] - y.sum() / 1001) < 0.1 * post.stds[0])
    True
    """

    fun: Callable[..., Any]
    jac: Callable[..., Any] | bool | None = None
    hessp: Callable[..., Any] | None = None
    hess: Callable[..., Any] | None = None
    hess_diag: Callable[..., Any] | None = None
    hessp_vectorized: bool = False
    vectorized: bool = False

    def __post_init__(self) -> None:
        must_be_callable("fun", self.fun)
        for name in ("hessp_vectorized", "vectorized"):
            checks.store_flag(self, name)

    def target(self, batch: Arrays, dim: int) -> Target:
        """The negative log likelihood of a batch."""
        given = {one.name: getattr(self, one.name) for one in fields(self)}
        known: dict[str, Any] = {name: with_args(name, f, batch) if callable(f) else f for name, f in given.items()}
        return make_target(known.pop("fun"), dim, name="likelihood", **known)


# ---- data -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Dataset:
    """Arrays with the same first axis, whose rows are used in batches of `size`.

    Every epoch is a new permutation of the rows, split into batches; rows that do not fill a batch are left out of
    this epoch. So every batch is a uniformly random set of `size` rows, and the batches of an epoch are disjoint.
    """

    arrays: Arrays
    size: int

    def __len__(self) -> int:
        return len(self.arrays[0])

    @property
    def batches(self) -> int:
        """The number of batches in an epoch."""
        return len(self) // self.size

    @property
    def weight(self) -> float:
        """The factor on the sum over a batch that makes its mean the sum over all data."""
        return len(self) / self.size

    def batch(self, number: int, seed: int) -> Arrays:
        """The batch of an iteration: a function of the iteration number and the seed only, so nothing is stored."""
        if self.size == len(self):
            return self.arrays
        epoch, place = divmod(number, self.batches)
        rows = _permutation(len(self), seed, epoch)[place * self.size : (place + 1) * self.size]
        return tuple(array[rows] for array in self.arrays)

    def chunks(self) -> list[Arrays]:
        """All data in order, in chunks of at most the batch size."""
        starts = range(0, len(self), self.size)
        return [tuple(array[start : start + self.size] for array in self.arrays) for start in starts]

    @cached_property
    def checksum(self) -> int:
        """A checksum of the contents, types and shapes."""
        total = 0
        for array in self.arrays:
            total = zlib.crc32(f"{array.dtype.str}{array.shape}".encode(), total)
            total = zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"", total)
        return total


@lru_cache(maxsize=2)
def _permutation(rows: int, seed: int, epoch: int) -> NDArray[np.intp]:
    return checks.read_only(np.random.default_rng([seed, epoch]).permutation(rows))


def make_dataset(data: Any, batch_size: Any) -> Dataset:
    """Check the data and the batch size.

    Parameters
    ----------
    data : array_like or tuple of array_like
        One array, or several with the same first axis.
    batch_size : int or None
        Number of rows in a batch; None: all.
    """
    parts = data if isinstance(data, tuple) else (data,)
    if not parts:
        raise ValueError("data must have at least one array, got an empty tuple")
    arrays = tuple(_as_rows(f"data[{i}]" if len(parts) > 1 else "data", part) for i, part in enumerate(parts))
    lengths = [len(array) for array in arrays]
    if len(set(lengths)) > 1:
        raise ValueError(f"data must be arrays with the same number of rows, got {lengths}")
    if lengths[0] == 0:
        raise ValueError("data must have at least one row, got none")
    size = lengths[0] if batch_size is None else checks.whole_number("batch_size", batch_size, least=1)
    if size > lengths[0]:
        raise ValueError(f"batch_size must be at most the number of rows of data, {lengths[0]}, got {size}")
    return Dataset(arrays, size)


def _as_rows(name: str, value: Any) -> NDArray[Any]:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{name} must be an array, or a tuple of arrays, got rows of unequal length") from error
    if array.ndim == 0:
        raise ValueError(f"{name} must be an array with rows, got {value!r}")
    if array.dtype.kind == "O":
        raise ValueError(f"{name} must be an array of numbers or text, got one of objects")
    return checks.read_only(array.view())


# ---- the target -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DataTarget:
    """f = -(log prior) - weight * (log likelihood of a batch), a new batch in every iteration.

    Attributes
    ----------
    prior : Target
        The negative log prior.
    likelihood : Likelihood or RowFunction
        The log likelihood of a batch.
    data : Dataset
        The data, and how they are split into batches.
    counts : Counts
        Evaluations of the likelihood, on one batch each.
    """

    prior: Target
    likelihood: Likelihood | RowFunction
    data: Dataset
    counts: Counts

    @cached_property
    def function(self) -> Values:
        """The prior or the likelihood, whichever has fewer derivatives."""
        kinds = (Gradients, Products, Hessians)
        return min(self.prior.function, self._first.function, key=lambda f: sum(isinstance(f, kind) for kind in kinds))

    @property
    def knows_diagonal(self) -> bool:
        """Whether the diagonal of the Hessian is known for both."""
        return self.prior.knows_diagonal and self._first.knows_diagonal

    @property
    def batches(self) -> int:
        """The number of batches in an epoch."""
        return self.data.batches

    @property
    def takes_batches(self) -> bool:
        """Whether a batch is smaller than the data."""
        return self.data.size < len(self.data)

    @cached_property
    def _first(self) -> Target:
        """The likelihood of the first chunk, which shows what derivatives it has."""
        return self._likelihood(self.data.chunks()[0])

    def _likelihood(self, batch: Arrays) -> Target:
        dim = self.prior.function.dim
        if isinstance(self.likelihood, RowFunction):
            target = make_target(self.likelihood.with_arguments(*batch), dim, name="likelihood")
        else:
            target = self.likelihood.target(batch, dim)
        return replace(target, function=replace(target.function, counts=self.counts))

    def parts(self, number: int, seed: int) -> list[tuple[Target, float]]:
        """Prior and likelihood with their weights; the likelihood is that of the iteration's batch."""
        return [(self.prior, 1.0), (self._likelihood(self.data.batch(number, seed)), self.data.weight)]

    def values(self, x: Array) -> Array:
        """-(log prior) - (log likelihood of all data) of every row, the data in chunks of the size of a batch."""
        total = self.prior.values(x)
        for chunk in self.data.chunks():
            total = total + self._likelihood(chunk).values(x)
        return total


def make_data_target(prior: Target, likelihood: Any, data: Any, batch_size: Any) -> DataTarget:
    """The target of a prior and a likelihood.

    Parameters
    ----------
    prior : Target
        The negative log prior.
    likelihood : callable, Likelihood or RowFunction
        The log likelihood of a batch; a plain callable provides values only.
    data, batch_size
        As in `fit_posterior`.
    """
    if isinstance(likelihood, Values) and not isinstance(likelihood, RowFunction):
        title = type(likelihood).__name__
        raise TypeError(f"likelihood must be a function, a Likelihood, or made by jax_function, got a {title}")
    if not isinstance(likelihood, (Likelihood, RowFunction)):
        must_be_callable("likelihood", likelihood)
        likelihood = Likelihood(likelihood)
    target = DataTarget(prior, likelihood, make_dataset(data, batch_size), Counts())
    for kind, argument in ((Gradients, "jac"), (Products, "hessp")):
        known = [isinstance(part.function, kind) for part in (prior, target._first)]
        if known == [True, False]:
            raise ValueError(f"likelihood must have {argument}= as logp does: Likelihood(fun, {argument}=...)")
        if known == [False, True]:
            raise ValueError(f"{argument} must be given for logp, the log prior, because the likelihood has it")
    return target
