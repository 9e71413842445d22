"""Gaussians over matrices, with one structured square root for the rows and one for the columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions.base import Distribution, Samples, State, Step
from esgroup.distributions.gaussian import Form, Gaussian, Map
from esgroup.groups import Group, Kronecker, as_group


@dataclass(frozen=True)
class BlockwiseKronecker(Kronecker):
    """The group of matrices A1 (x) A2 with the paper's natural gradient, whose Fisher matrix has no cross terms.

    Its blocks 2 p2 I and 2 p1 I (paper, appendix on matrix Gaussians, eq. block_approx_fim) give each factor the whole
    step of the scale that both share. So it is the exact gradient for G + t I, where t is the mean eigenvalue of
    G = sum_i w_i z_i z_i^T - s I: the step of the scale is twice the exact one, and everything else is the same.
    """

    @property
    def transposed(self) -> BlockwiseKronecker:
        return BlockwiseKronecker(self.first.transposed, self.second.transposed)

    def _from_covariance(self, covariance: Array) -> Array:
        """The nearest element, which the exact gradient leads to."""
        return Kronecker(self.first, self.second)._from_covariance(covariance)

    def _project(self, left: Array, right: Array, weights: Array, shift: float) -> Array:
        mean = float(weights @ np.vecdot(left, right)) / self.dim  # s + t, so that the shift of G + t I is s - t
        return super()._project(left, right, weights, 2 * shift - mean)

    def _product_h_samples(
        self, a: Array, z: Array, weights: Array, shift: float, images: Array | None, out: Array | None
    ) -> Array:
        mean = float(weights @ np.vecdot(z, z)) / self.dim
        return super()._product_h_samples(a, z, weights, 2 * shift - mean, images, out)


@dataclass(frozen=True, eq=False)
class MatrixGaussian(Distribution):
    """Matrices X = E + R Z C^T with Z_ij ~ N(0, 1), R in a group of the rows and C in one of the columns.

    In covariance form R and C are the square roots themselves; in precision form R = B^-T and C = A^-T with B and A in
    the groups (paper, appendix on matrix Gaussians, where X = E + B^-T Z A^-1). The covariance of two entries is
    cov(X_ij, X_kl) = (R R^T)_ik (C C^T)_jl. Read row by row, X is a vector Gaussian whose square root is the Kronecker
    product R (x) C, which is how it is computed; no matrix of that size is ever formed. A generation of n samples
    of m x k matrices costs O(n m k (m + k)) with full groups and O(n m k) with those of linear size.

    A `State` has the mean as a matrix and `root`, a packed element of `group`; samples are (n, m, k). A matrix of one
    row or one column is the vector Gaussian of the other group.

    Parameters
    ----------
    mean : array_like, shape (m, k)
        The initial mean E.
    sigma0 : float, optional
        The initial standard deviation of the entries, 1 by default.
    rows, cols : Group or str
        Groups of dimension m and k, or their spellings.
    form : {"covariance", "precision"}
        Whether the square roots of the covariances or of the precision matrices are in the groups.
    exact : bool
        Whether the natural gradient is exact. False uses the paper's block-diagonal approximation of the Fisher matrix,
        which doubles the step of the overall scale.

    Examples
    --------
    >>> import numpy as np
    >>> from esgroup import MatrixGaussian
    >>> family = MatrixGaussian(np.zeros((3, 2)), rows="triangular", cols="diagonal")
    >>> family.sample(family.state(), 5, np.random.default_rng(0)).x.shape
    (5, 3, 2)
    """

    mean: Array
    sigma0: float | None = None
    rows: Group | str = "full"
    cols: Group | str = "full"
    form: Form = "covariance"
    exact: bool = True

    def __post_init__(self) -> None:
        mean = _matrix("mean", self.mean)
        self._store("mean", checks.read_only(mean.copy()))
        self._store("rows", as_group(self.rows, mean.shape[0], name="rows"))
        self._store("cols", as_group(self.cols, mean.shape[1], name="cols"))
        checks.store_flag(self, "exact")
        if self.sigma0 is not None:
            self._store("sigma0", checks.real_number("sigma0", self.sigma0, positive=True))
        _ = self.vector  # checks the form

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (m, k) of one point."""
        rows, columns = self.mean.shape
        return rows, columns

    @cached_property
    def sides(self) -> tuple[Group, Group]:
        """The groups of rows and columns."""
        return as_group(self.rows, self.shape[0]), as_group(self.cols, self.shape[1])

    @cached_property
    def group(self) -> Group:
        """The group of the square root of X read row by row.

        It is a Kronecker product, or one of its factors if the other has dimension 1.
        """
        rows, cols = self.sides
        if not self.exact:
            return BlockwiseKronecker(rows, cols)
        if cols.dim == 1:  # every group contains the numbers, and h of one factor is exact where that of two is not
            return rows
        return cols if rows.dim == 1 else Kronecker(rows, cols)

    @cached_property
    def vector(self) -> Gaussian:
        """The distribution of X read row by row."""
        return Gaussian(self.group, self.mean.ravel(), self.sigma0, form=self.form)

    # ---- parameters ---------------------------------------------------------------------------------------------

    def state(self) -> State:
        """The initial parameters."""
        return self._shaped(self.vector.state())

    def covariances(self, state: State) -> tuple[Array, Array]:
        """R R^T and C C^T as dense matrices, scaled so that the diagonal of the second has the mean 1.

        They are `rowcov` and `colcov` of scipy.stats.matrix_normal.
        """
        if self.form == "precision":
            other, state = self.converted(state)
            return other.covariances(state)
        r, c = (side._dense(root) for side, root in zip(self.sides, self.side_roots(state), strict=True))
        row, column = r @ r.T, c @ c.T
        size = float(np.trace(column)) / len(column)
        return row * size, column / size

    def side_roots(self, state: State) -> tuple[Array, Array]:
        """The packed square roots of the rows and of the columns."""
        root, (rows, cols) = self.vector._checked(self._flat(state)).root, self.sides
        if self.group is rows:
            return root, np.ones(1)
        if self.group is cols:
            return np.ones(1), root
        return root[: rows.size], root[rows.size :]

    def converted(self, state: State) -> tuple[Self, State]:
        """The same distribution in the other form, whose roots lie in the transposed groups."""
        vector, moved = self.vector.converted(self._flat(state))
        rows, cols = self.sides
        other = replace(self, rows=rows.transposed, cols=cols.transposed, form=vector.form)
        return other, self._shaped(moved)

    # ---- density ------------------------------------------------------------------------------------------------

    def sample(self, state: State, n: int, rng: np.random.Generator) -> Samples:
        """Draw n matrices, with their white coordinates Z, in one call."""
        return self._shaped_samples(self.vector.sample(self._flat(state), n, rng))

    def points(self, state: State, z: Any) -> Samples:
        """The points E + R Z C^T for given local coordinates, as samples; undoes `local`."""
        return self._shaped_samples(self.vector.points(self._flat(state), self._rows_of("z", z)))

    def local(self, state: State, x: Any) -> Array:
        """Local coordinates R^-1 (X - E) C^-T of one matrix or of several."""
        x = self._points("x", x)
        return self.vector.local(self._flat(state), self._read_by_rows(x)).reshape(x.shape)

    def log_density(self, state: State, x: Any) -> Array:
        """log q(X) = -|Z|^2/2 - k log|det R| - m log|det C| - m k log(2 pi)/2, of one matrix or of several."""
        return self.vector.log_density(self._flat(state), self._read_by_rows(self._points("x", x)))

    def entropy(self, state: State) -> float:
        """-E[log q(X)]."""
        return self.vector.entropy(self._flat(state))

    def kl(self, p: State, q: State) -> float:
        """KL(p || q) of two members of this family."""
        return self.vector.kl(self._flat(p), self._flat(q))

    # ---- steps --------------------------------------------------------------------------------------------------

    def natural_score(self, z: Any, weights: Any) -> Step:
        """Natural gradient of sum_i weights_i log q(X_i) from the local coordinates Z_i, (n, m, k).

        delta = sum_i w_i Z_i. With G1 = sum_i w_i (Z_i Z_i^T - k I), G2 = sum_i w_i (Z_i^T Z_i - m I) and
        t = tr G1 / (m k), the local steps are +-(C1 (.) kappa1(G1) / k - t/4 I) of the rows and
        +-(C2 (.) kappa2(G2) / m - t/4 I) of the columns, + in covariance and - in precision form. Without the terms in
        t it is the paper's approximation (`exact=False`).

        Parameters
        ----------
        z : array_like, shape (n, m, k)
            Local coordinates of the matrices.
        weights : array_like, shape (n,)
            One weight per matrix.
        """
        step = self.vector.natural_score(self._rows_of("z", z), weights)
        return step._replace(delta=step.delta.reshape(self.shape))

    def move(self, state: State, step: Step, map: Map = "h") -> State:
        """The parameters after a step: E + R delta C^T, and both roots times h(M), Exp(M) or I + M.

        See `Gaussian.move` for the choice of `map`.
        """
        checks.instance("step", step, Step)
        delta = checks.real_array("step.delta", step.delta, self.shape).ravel()
        return self._shaped(self.vector.move(self._flat(state), step._replace(delta=delta), map))

    def move_samples(
        self, state: State, samples: Samples, weights: Any, mean_rate: float = 1.0, root_rate: float = 1.0
    ) -> State:
        """move(state, natural_score(samples.z, weights).scaled(mean_rate, root_rate)) in one fused call."""
        checks.instance("samples", samples, Samples)
        z, x = self._rows_of("samples.z", samples.z), self._rows_of("samples.x", samples.x)
        images = None if samples.images is None else self._rows_of("samples.images", samples.images)
        flat = Samples(z, x, images)
        return self._shaped(self.vector.move_samples(self._flat(state), flat, weights, mean_rate, root_rate))

    # ---- matrices and vectors -----------------------------------------------------------------------------------

    def _flat(self, state: State) -> State:
        checks.instance("state", state, State)
        return State(checks.real_array("state.mean", state.mean, self.shape).ravel(), state.root)

    def _shaped(self, state: State) -> State:
        return State(state.mean.reshape(self.shape), state.root)

    def _shaped_samples(self, samples: Samples) -> Samples:
        z, x, images = samples
        shape = (len(z), *self.shape)
        return Samples(z.reshape(shape), x.reshape(shape), None if images is None else images.reshape(shape))

    def _rows_of(self, name: str, matrices: Any) -> Array:
        """Check matrices (n, m, k) and read them row by row, (n, m k)."""
        return self._read_by_rows(checks.real_array(name, matrices, (None, *self.shape)))

    def _points(self, name: str, x: Any) -> Array:
        """Check one matrix or several."""
        batch = (None,) if len(_shape(x)) == 3 else ()
        return checks.real_array(name, x, (*batch, *self.shape))

    def _read_by_rows(self, x: Array) -> Array:
        return x.reshape(*x.shape[:-2], self.vector.dim)


def _matrix(name: str, value: Any) -> Array:
    if len(shape := _shape(value)) != 2:
        raise ValueError(f"{name} must be a matrix, got an array of shape {shape}")
    matrix = checks.real_array(name, value, (None, None))
    if matrix.size == 0:
        raise ValueError(f"{name} must have at least one row and one column, got shape {matrix.shape}")
    return matrix


def _shape(value: Any) -> tuple[int, ...]:
    try:
        return np.shape(value)
    except ValueError:  # rows of unequal length: the next check reports them
        return 0, 0
