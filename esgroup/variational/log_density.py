"""The two functions of a fit, f = -logp and log q, with their derivatives at many points at once.

Both are evaluated at the rows of one array of points; callers select rows by index and may repeat one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions.base import State
from esgroup.distributions.gaussian import Gaussian
from esgroup.distributions.mixture import Mixture, MixtureState
from esgroup.gradients import as_function
from esgroup.gradients.function import (
    Counts,
    Gradients,
    Hessians,
    Products,
    ValueAndGradient,
    Values,
    as_dense,
    must_be_callable,
    real_value,
)
from esgroup.gradients.rows import RowFunction

Indices = NDArray[np.intp]
Function = Callable[..., Any]

# A component with a smaller responsibility at a point is ignored there: far below rounding, whatever its curvature.
# In high dimensions components hardly overlap, so one or two of them remain at each point.
NEGLIGIBLE = 1e-40


# ---- f = -logp ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Target:
    """f = -logp with its known derivatives.

    Attributes
    ----------
    function : Values
        Evaluates f and counts the evaluations; its class says which derivatives are known.
    hessp, hess, hess_diag : callable or None
        Second derivatives of f that take rows of points, if available; `hessp(x, v)` takes pairs of rows. They
        replace those of the function.
    paired : bool
        Whether one call of logp returns value and gradient.
    """

    batches: ClassVar[int] = 1  # in an epoch: see `DataTarget`
    takes_batches: ClassVar[bool] = False

    function: Values
    hessp: Function | None = None
    hess: Function | None = None
    hess_diag: Function | None = None
    paired: bool = False

    @property
    def counts(self) -> Counts:
        """How often f and its derivatives were evaluated."""
        return self.function.counts

    @property
    def knows_diagonal(self) -> bool:
        """Whether the diagonal of the Hessian is known and need not be estimated."""
        known = self.function
        return isinstance(known, Hessians) or (isinstance(known, Products) and known.hess_diag is not None)

    def values(self, x: Array) -> Array:
        """f of every row."""
        return self.function.values(x)

    def parts(self, number: int, seed: int) -> list[tuple[Target, float]]:
        """Targets and weights whose weighted sum is f: here f itself, in every iteration and for every seed."""
        return [(self, 1.0)]


class TargetAt:
    """f and its derivatives at the rows of x, selected by index; each value is computed once."""

    def __init__(self, target: Target, x: Array) -> None:
        self._target, self._x = target, x
        self._function: Any = target.function  # has the requested derivatives: see `Estimator.check`
        self._dim = target.function.dim
        self._values = np.zeros(len(x))
        self._known = np.zeros(len(x), dtype=bool)

    def values(self, indices: Indices) -> Array:
        """f at the rows, (n,)."""
        new = np.unique(indices[~self._known[indices]])
        if len(new):
            self._values[new] = self._function.values(self._x[new])
            self._known[new] = True
        return self._values[indices]

    def gradients(self, indices: Indices) -> Array:
        """Gradients of f as rows."""
        known = self._function
        if not (self._target.paired or isinstance(known, RowFunction)):
            return known.gradients(self._x[indices])
        rows, back = np.unique(indices, return_inverse=True)
        if isinstance(known, RowFunction):  # values and gradients come from one call
            self._values[rows], once = known.values_and_gradients(self._x[rows])
            self._known[rows] = True
            return once[back]
        if known.vectorized:  # the function caches its last rows: take their values first, each row once
            self.values(rows)
            return known.gradients(self._x[rows])[back]
        found = np.empty((len(indices), known.dim))
        for i, index in enumerate(indices):  # both of one point together: the last pair is cached
            self.values(indices[i : i + 1])
            found[i] = known.gradient(self._x[index])
        return found

    def products(self, indices: Indices, v: Array) -> Array:
        """Rows H(x_j) v_i, j the i-th index."""
        target = self._target
        if target.hessp is not None:
            target.counts.nhvp += len(v)
            found = target.hessp(self._rows(indices), checks.read_only(v.view()))
            return checks.real_array("hessp(rows, rows)", found, v.shape, finite=False)
        known, found = self._function, np.empty(v.shape)
        cuts = np.flatnonzero(np.diff(indices, prepend=-1, append=-1))  # one call for vectors of one point in a row
        if isinstance(known, RowFunction):  # one call for all, if all points have equally many vectors
            alike = len(np.unique(np.diff(cuts))) == 1
            owners = indices[cuts[:-1]] if alike else indices
            return known.row_products(self._x[owners], v.reshape(len(owners), -1, self._dim)).reshape(v.shape)
        for begin, end in pairwise(cuts):
            found[begin:end] = known.products(self._x[indices[begin]], v[begin:end])
        return found

    def diagonals(self, indices: Indices) -> Array:
        """The diagonals of the Hessians as rows, if they are known."""
        target = self._target
        if target.hess_diag is not None:
            target.counts.ndiag += len(indices)
            found = target.hess_diag(self._rows(indices))
            return checks.real_array("hess_diag(rows)", found, (len(indices), self._dim), finite=False)
        known, unused = self._function, np.random.default_rng(0)
        return np.array([known.diagonal(self._x[index], unused) for index in indices]).reshape(len(indices), self._dim)

    def hessians(self, indices: Indices) -> Array:
        """The Hessians, (n, dim, dim)."""
        target, shape = self._target, (len(indices), self._dim, self._dim)
        if target.hess is not None:
            target.counts.nhess += len(indices)
            return checks.real_array("hess(rows)", target.hess(self._rows(indices)), shape, finite=False)
        known = self._function
        return np.array([known.hessian(self._x[index]) for index in indices]).reshape(shape)

    def _rows(self, indices: Indices) -> Array:
        return checks.read_only(self._x[indices])


def make_target(
    logp: Any,
    dim: int,
    *,
    jac: Any = None,
    hessp: Any = None,
    hess: Any = None,
    hess_diag: Any = None,
    hessp_vectorized: bool = False,
    vectorized: bool = False,
    name: str = "logp",
) -> Target:
    """The target of a log density with the given derivatives, either all of one point or all of rows.

    Parameters
    ----------
    logp : callable or Values
        The log density, up to a constant; or a function with its derivatives, made by `jax_function`, `torch_function`
        or `as_function`.
    dim : int
        The number of variables.
    jac, hessp, hess, hess_diag, hessp_vectorized, vectorized
        As in `fit_posterior`.
    name : str
        The name of the log density in error messages.
    """
    given = {"jac": jac, "hessp": hessp, "hess": hess, "hess_diag": hess_diag}
    if isinstance(logp, Values):
        given |= {"hessp_vectorized": hessp_vectorized or None, "vectorized": vectorized or None}
        for title, value in given.items():
            if value is not None:
                raise ValueError(f"{title} must be left out if {name} is a {type(logp).__name__}, got {value!r}")
        if logp.dim != dim:
            raise ValueError(f"{name} must have dim {dim} to match the distribution, got {logp.dim}")
        return Target(_negative(logp, name))
    must_be_callable(name, logp)
    for title, function in given.items():
        if function is not None and not (title == "jac" and isinstance(function, bool)):
            must_be_callable(title, function)
    fun, paired = logp, jac is True
    if paired:
        both = ValueAndGradient(logp, name)
        fun, given["jac"] = both.fun, both.jac
    if not checks.flag("vectorized", vectorized):
        return Target(_negative(as_function(fun, dim, hessp_vectorized=hessp_vectorized, **given), name), paired=paired)
    if hessp_vectorized:
        raise ValueError("hessp_vectorized must be False if vectorized=True, where hessp takes pairs of rows, got True")
    # second derivatives of rows come from the target: the function only records that they are known
    of_rows = as_function(fun, dim, vectorized=True, **given)
    return Target(_negative(of_rows, name), _negated(hessp), _negated(hess), _negated(hess_diag), paired)


def _negative(function: Values, name: str) -> Values:
    """The negative of a function, with its derivatives; `name` is its name in error messages."""
    if isinstance(function, RowFunction):
        return function.negated()

    def values(x: Array) -> Any:
        found = function.fun(x)
        if function.vectorized:
            return -checks.real_array(f"{name}(rows)", found, (len(x),), finite=False)
        return -real_value(f"{name}(x)", found)

    known: dict[str, Any] = {"vectorized": function.vectorized}
    if isinstance(function, Hessians):
        known["hess"] = _negated(lambda x: as_dense(function.hess(x)))
    elif isinstance(function, Products):
        known |= {"hessp": _negated(function.hessp), "hess_diag": _negated(function.hess_diag)}
        known |= {"hessp_vectorized": function.hessp_vectorized, "probes": function.probes}
    if isinstance(function, Gradients):
        known["jac"] = _negated(function.jac)
    return as_function(values, function.dim, **known)


def _negated(function: Any) -> Any:
    return None if function is None else lambda *arguments: -np.asarray(function(*arguments))


# ---- log q ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LogDensity:
    """log q of a mixture and its derivatives at the rows of x.

    With r_k the responsibilities, P_k = Sigma_k^-1 and s_k = -P_k (x - mean_k):

    gradient  s = sum_k r_k s_k,    Hessian  sum_k r_k (s_k s_k^T - P_k) - s s^T.
    """

    mixture: Mixture
    state: MixtureState
    x: Array

    @cached_property
    def _members(self) -> list[tuple[Gaussian, State]]:
        return list(zip(self.mixture.components, self.mixture.component_states(self.state), strict=True))

    @cached_property
    def _whitened(self) -> list[Array]:
        """z_k, the points in the local coordinates of every component."""
        return [gaussian.local(own, self.x) for gaussian, own in self._members]

    @cached_property
    def _logs(self) -> Array:
        """log(pi_k N_k(x)), (n, K)."""
        constant = 0.5 * self.mixture.dim * np.log(2 * np.pi)
        heights = [constant + gaussian._half_log_det(own.root) for gaussian, own in self._members]
        squares = np.stack([np.vecdot(z, z) for z in self._whitened], axis=1)
        return -0.5 * squares - heights + self.state.log_weights

    @cached_property
    def _values(self) -> Array:
        return np.logaddexp.reduce(self._logs, axis=1)

    @cached_property
    def shares(self) -> Array:
        """r_k(x), (n, K)."""
        return np.exp(self._logs - self._values[:, None])

    @cached_property
    def _near(self) -> list[Indices]:
        """For every component, the rows where its responsibility is not negligible."""
        return [np.flatnonzero(column > NEGLIGIBLE) for column in self.shares.T]

    @cached_property
    def _pulls(self) -> list[Array]:
        """s_k at the rows of `_near`."""
        triples = zip(self._members, self._near, self._whitened, strict=True)
        return [-rows_back(gaussian, own, z[near]) for (gaussian, own), near, z in triples]

    @cached_property
    def _gradients(self) -> Array:
        total = np.zeros(self.x.shape)
        for k, (near, pulls) in enumerate(zip(self._near, self._pulls, strict=True)):
            total[near] += self.shares[near, k, None] * pulls
        return total

    def values(self, indices: Indices) -> Array:
        """log q at the rows, (n,)."""
        return self._values[indices]

    def gradients(self, indices: Indices) -> Array:
        """Gradients of log q as rows."""
        return self._gradients[indices]

    def products(self, indices: Indices, v: Array) -> Array:
        """Rows H(x_j) v_i, j the i-th index."""
        slopes = self._gradients[indices]
        total: Array = -np.vecdot(slopes, v)[:, None] * slopes
        for k, (gaussian, own) in enumerate(self._members):
            here = np.flatnonzero(self.shares[indices, k] > NEGLIGIBLE)
            if len(here) == 0:
                continue
            pulls = self._pulls[k][np.searchsorted(self._near[k], indices[here])]
            of_precision = rows_back(gaussian, own, gaussian._whiten(own.root, v[here]))  # rows Sigma^-1 v
            bent = np.vecdot(pulls, v[here])[:, None] * pulls - of_precision
            total[here] += self.shares[indices[here], k, None] * bent
        return total

    def diagonals(self, indices: Indices) -> Array:
        """The diagonals of the Hessians as rows."""
        total: Array = -(self._gradients**2)
        for k, (gaussian, own) in enumerate(self._members):
            near = self._near[k]
            if len(near):
                bent = self._pulls[k] ** 2 - variances(gaussian, own, inverted=True)
                total[near] += self.shares[near, k, None] * bent
        return total[indices]

    def hessians(self, indices: Indices) -> Array:
        """The Hessians, (n, dim, dim)."""
        dim = self.mixture.dim
        rows = self.products(np.repeat(indices, dim), np.tile(np.eye(dim), (len(indices), 1)))
        return rows.reshape(len(indices), dim, dim)


def rows_back(gaussian: Gaussian, state: State, z: Array) -> Array:
    """Rows A^-T z_i, or B z_i in precision form."""
    group = gaussian.group
    return (group._solve_transposed if gaussian.form == "covariance" else group._apply)(state.root, z)


def variances(gaussian: Gaussian, state: State, *, inverted: bool = False) -> Array:
    """The diagonal of Sigma = A A^T, or B^-T B^-1 in precision form; of Sigma^-1 if `inverted`. No matrix is dense."""
    group = gaussian.group
    if (gaussian.form == "precision") == inverted:
        return group._squared_row_norms(state.root)
    return group._squared_column_norms(group._inverse(state.root))


def component_variances(mixture: Mixture, state: MixtureState) -> Array:
    """The variances of the variables under every component, (K, dim)."""
    members = zip(mixture.components, mixture.component_states(state), strict=True)
    return np.array([variances(gaussian, own) for gaussian, own in members])
