"""Gaussians whose square root lies in a group: density, samples, natural gradients in local coordinates, and moves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions.base import Distribution, RowMap, Samples, State, Step, checked_parts
from esgroup.distributions.curvature import local_hessian
from esgroup.groups import Group, as_group, named

Form = Literal["covariance", "precision"]
Map = Literal["h", "exp", "linear"]


@dataclass(frozen=True, eq=False)
class Gaussian(Distribution):
    """N(mean, Sigma) with Sigma = A A^T (covariance form) or Sigma^-1 = B B^T (precision form), A or B in a group.

    A sample is mean + A z or mean + B^-T z with z ~ N(0, I). The local map at the current parameters is
    mean + A delta, A h(M) (paper, eqs. gauss_ex_map and gauss_xnes_prec); its Fisher matrix at 0 is the identity for
    delta and <M + M^T, M' + M'^T> / 2 for M, whatever the group and the form.

    The object itself is immutable; the parameters that change are in a `State`.

    Parameters
    ----------
    structure : Group or str
        The group of the square root, or its spelling, for example "block_triangular:k=2".
    mean : array_like, optional
        The initial mean. You can pass it to `state` instead.
    sigma0 : float, optional
        The initial standard deviation of all variables; 1 if `covariance` is not given either.
    covariance : array_like, optional
        The initial covariance, instead of `sigma0`. A structure that cannot represent it starts at the nearest
        covariance that it can represent (`Group.from_covariance`).
    form : {"covariance", "precision"}
        Whether the square root of the covariance or of the precision matrix is in the group.

    Examples
    --------
    >>> import numpy as np
    >>> from esgroup.distributions import Gaussian
    >>> gaussian = Gaussian("diagonal", mean=[1.0, 2.0], sigma0=0.5)
    >>> state = gaussian.state()
    >>> gaussian.sample(state, 4, np.random.default_rng(0)).x.shape
    (4, 2)
    >>> gaussian.dense_covariance(state).tolist()
    [[0.25, 0.0], [0.0, 0.25]]
    """

    structure: Group | str = "full"
    mean: Array | None = None
    sigma0: float | None = None
    covariance: Array | None = None
    form: Form = "covariance"

    def __post_init__(self) -> None:
        checks.one_of("form", self.form, "covariance", "precision")
        if self.sigma0 is not None and self.covariance is not None:
            raise ValueError("sigma0 or covariance must be given, not both")
        if self.sigma0 is not None:
            self._store("sigma0", checks.real_number("sigma0", self.sigma0, positive=True))
        if self.mean is not None:
            self._store("mean", checks.read_only(checks.real_array("mean", self.mean, (None,)).copy()))
        dim = self._known_dim()
        if dim == 0:
            raise ValueError("mean must have at least one variable, got none")
        if dim is not None:
            self._store("structure", as_group(self.structure, dim))
        else:
            named(self.structure)  # type: ignore[arg-type]  # a spelling; its name can be checked already
        if self.covariance is not None and dim is not None:
            self._store("covariance", checks.read_only(checks.covariance("covariance", self.covariance, dim)))

    def _known_dim(self) -> int | None:
        if self.mean is not None:
            return len(self.mean)
        if self.covariance is not None:
            return len(np.atleast_1d(self.covariance))
        return self.structure.dim if isinstance(self.structure, Group) else None

    @cached_property
    def group(self) -> Group:
        """The group of the square root."""
        if not isinstance(self.structure, Group):
            raise ValueError(f"the dimension of {self} is not known: give mean=, or a group instead of a spelling")
        return self.structure

    @cached_property
    def dim(self) -> int:
        """The number of variables."""
        return self.group.dim

    # With T = A, or T = B^-T in precision form: T x, T^T x and T^-1 x, as functions of the root and of rows x.

    @cached_property
    def _outward(self) -> RowMap:
        return self.group._apply if self.form == "covariance" else self.group._solve_transposed

    @cached_property
    def _pull(self) -> RowMap:
        return self.group._apply_transposed if self.form == "covariance" else self.group._solve

    @cached_property
    def _whiten(self) -> RowMap:
        return self.group._solve if self.form == "covariance" else self.group._apply_transposed

    # ---- parameters ---------------------------------------------------------------------------------------------

    def state(self, mean: Any = None) -> State:
        """The initial parameters.

        Parameters
        ----------
        mean : array_like, optional
            The initial mean; required if none was given at construction.

        Raises
        ------
        ValueError
            If there is no mean.
        """
        if mean is not None:
            return replace(self, mean=mean).state()
        if self.mean is None:
            raise ValueError(f"mean must be given, either to {type(self).__name__}(...) or to state(mean)")
        if self.covariance is None:
            sigma0 = self.sigma0 or 1.0
            scale = sigma0 if self.form == "covariance" else 1.0 / sigma0
            return State(self.mean.copy(), self.group._scale(self.group._identity(), scale))
        if self.form == "covariance":
            return State(self.mean.copy(), self.group.from_covariance(self.covariance))
        transposed = self.group.transposed  # of A = B^-T
        a = transposed.from_covariance(self.covariance)
        return State(self.mean.copy(), transposed._transpose(transposed._inverse(a)))

    def dense_covariance(self, state: State) -> Array:
        """Sigma as a (dim, dim) matrix."""
        state = self._checked(state)
        root_t = self._outward(state.root, np.eye(self.dim))
        return root_t.T @ root_t

    def converted(self, state: State) -> tuple[Self, State]:
        """The same distribution in the other form: B = A^-T, which lies in the transposed group.

        Returns
        -------
        gaussian : Gaussian
            The family of the other form.
        state : State
            Its parameters.
        """
        state, group = self._checked(state), self.group
        form: Form = "precision" if self.form == "covariance" else "covariance"
        other = type(self)(group.transposed, form=form)
        return other, State(state.mean.copy(), group._transpose(group._inverse(state.root)))

    def _checked(self, state: State, *, finite: bool = True) -> State:
        checks.instance("state", state, State)
        mean = checks.real_array("state.mean", state.mean, (self.dim,), finite=finite)
        return State(mean, checks.real_array("state.root", state.root, (self.group.size,), finite=finite))

    # ---- samples and density ------------------------------------------------------------------------------------

    def sample(self, state: State, n: int, rng: np.random.Generator, *, out: Samples | None = None) -> Samples:
        """Draw n points, a whole generation in one call.

        Parameters
        ----------
        state : State
            The parameters.
        n : int
            The number of points.
        rng : numpy.random.Generator
            The source of random numbers.
        out : Samples, optional
            Samples whose arrays z and x may be overwritten.
        """
        if not isinstance(rng, np.random.Generator):
            raise TypeError(f"rng must be a numpy.random.Generator, got {rng!r}")
        shape = checks.whole_number("n", n), self.dim
        # checking a large dense root would cost a tenth of a generation: its samples show a NaN, too
        large = self.group.uses_images and self.form == "covariance" and self.group.size > 2**18 and n > 0
        state = self._checked(state, finite=not large)
        if out is None:
            z, x = np.empty(shape), np.empty(shape)
        else:
            checks.instance("out", out, Samples)
            z, x = checks.writeable("out.z", out.z, shape), checks.writeable("out.x", out.x, shape)
            checks.must_not_overlap("out.x", x, "out.z", z)
        before = rng.bit_generator.state if large else {}
        rng.standard_normal(out=z)  # ~ N(0, I)
        samples = Samples(z, x, self._map(state, z, x))
        if large and not checks.all_finite(x[0]):
            rng.bit_generator.state = before
            self._checked(state)
            raise ValueError("state must give finite points, but they overflow")
        return samples

    def points(self, state: State, z: Any) -> Samples:
        """The points x = mean + A z (mean + B^-T z) for given local coordinates, as samples; undoes `local`."""
        state, z = self._checked(state), checks.real_array("z", z, (None, self.dim))
        x = np.empty(z.shape)
        return Samples(z, x, self._map(state, z, x))

    def _map(self, state: State, z: Array, x: Array) -> Array | None:
        """Fill x ~ N(mean, Sigma); return x - mean where the group can use it again."""
        if self.form == "covariance" and not self.group.uses_images:
            self.group._affine(state.root, z, state.mean, x)
            return None
        images = self._outward(state.root, z)
        np.add(images, state.mean, out=x)
        return images if self.form == "covariance" else None

    def local(self, state: State, x: Any) -> Array:
        """Local coordinates z of any points: x = mean + A z (mean + B^-T z)."""
        state, x = self._checked(state), checks.points("x", x, self.dim)
        return self._whiten(state.root, (x - state.mean).reshape(-1, self.dim)).reshape(x.shape)

    def _half_log_det(self, root: Array) -> float:
        """log|Sigma| / 2."""
        value = self.group.log_abs_det(root)
        return value if self.form == "covariance" else -value

    def log_density(self, state: State, x: Any) -> Array:
        """log N(x | mean, Sigma) of one point or of rows of points."""
        z = self.local(state, x)
        constant = 0.5 * self.dim * np.log(2 * np.pi) + self._half_log_det(state.root)
        return -0.5 * np.vecdot(z, z) - constant

    def entropy(self, state: State) -> float:
        """-E[log N(x | mean, Sigma)]."""
        return 0.5 * self.dim * (1 + math.log(2 * math.pi)) + self._half_log_det(self._checked(state).root)

    def kl(self, p: State, q: State) -> float:
        """KL(p || q) of two members of this family."""
        p, q, group = self._checked(p), self._checked(q), self.group
        pair = (q.root, p.root) if self.form == "covariance" else (p.root, q.root)
        spread = group._squared_norm(group._product(group._inverse(pair[0]), pair[1]))  # tr(Sigma_q^-1 Sigma_p)
        z = self.local(q, p.mean)
        determinants = self._half_log_det(q.root) - self._half_log_det(p.root)
        return 0.5 * (spread + float(z @ z) - self.dim) + determinants

    # ---- natural gradients --------------------------------------------------------------------------------------

    @cached_property
    def _sign(self) -> float:
        return 1.0 if self.form == "covariance" else -1.0

    def natural_score(self, z: Any, weights: Any) -> Step:
        """Natural gradient of sum_i weights_i log q(x_i): delta = sum w z, M = +-C (.) kappa(sum w (z z^T - I)).

        The sign of M is + in covariance form and - in precision form.

        Parameters
        ----------
        z : array_like, shape (n, dim)
            Local coordinates of the points x_i.
        weights : array_like, shape (n,)
            One weight per point.
        """
        z = checks.real_array("z", z, (None, self.dim))
        weights = checks.real_array("weights", weights, (len(z),))
        m = self.group._project(z, z, self._sign * weights, self._sign * float(weights.sum()))
        return Step(weights @ z, m)

    def natural_gradient(self, state: State, g_mean: Any, g_covariance: Any) -> Step:
        """Natural gradient of L from dL/dmean and dL/dSigma: delta = A^T g, M = C (.) kappa(2 A^T g_Sigma A).

        In precision form delta = B^-1 g, M = -C (.) kappa(2 B^-1 g_Sigma B^-T) (paper, section 4). It points uphill:
        `move(state, step.scaled(-rate))` descends.

        Parameters
        ----------
        state : State
            The parameters.
        g_mean : array_like, shape (dim,)
            dL/dmean.
        g_covariance : array_like, shape (dim, dim)
            dL/dSigma, symmetric.
        """
        state = self._checked(state)
        g_mean = checks.real_array("g_mean", g_mean, (self.dim,))
        g_covariance = checks.symmetric("g_covariance", g_covariance, self.dim)
        half = np.ascontiguousarray(self._pull(state.root, g_covariance).T)
        pulled = self._pull(state.root, half)
        local = checks.symmetric("g_covariance in local coordinates", self._sign * (pulled + pulled.T), self.dim)
        return Step(self._pull(state.root, g_mean[None])[0], self.group._project_dense(local))

    def natural_gradient_hvp(
        self,
        state: State,
        g_mean: Any,
        hvp: Callable[[Array], Any],
        hessian_diagonal: Any = None,
        *,
        entropy_weight: float = 0.0,
    ) -> Step:
        """Natural gradient for dL/dSigma = H/2 (Stein) - entropy_weight Sigma^-1 / 2, from products with H only.

        Parameters
        ----------
        state : State
            The parameters.
        g_mean : array_like, shape (dim,)
            dL/dmean.
        hvp : callable
            Maps rows v_i to rows H v_i. It is called once, with one row for each coordinate of the group's hub (k for
            BlockTriangular(k), k1 + k2 for Heisenberg).
        hessian_diagonal : array_like, shape (dim,), optional
            The diagonal of H. It is required unless the hub contains all coordinates.
        entropy_weight : float
            The weight of the entropy of q in L.
        """
        state = self._checked(state)
        g_mean = checks.real_array("g_mean", g_mean, (self.dim,))
        if hessian_diagonal is not None:
            hessian_diagonal = checks.real_array("hessian_diagonal", hessian_diagonal, (self.dim,))
        precision = self.form == "precision"
        rows, diagonal = local_hessian(self.group, state.root, hvp, hessian_diagonal, precision=precision)
        m = self.group._project_columns(np.ascontiguousarray(rows.T), diagonal)
        m -= 0.5 * checks.real_number("entropy_weight", entropy_weight) * self.group._local_identity()
        return Step(self._pull(state.root, g_mean[None])[0], self._sign * m)

    # ---- moves --------------------------------------------------------------------------------------------------

    def move(self, state: State, step: Step, map: Map = "h") -> State:
        """The parameters after a step: mean + A delta, and A h(M), A Exp(M) or A (I + M).

        Parameters
        ----------
        state : State
            The parameters before the step.
        step : Step
            A vector of the local space.
        map : {"h", "exp", "linear"}
            The map of M. "linear" is standard natural-gradient descent in the global parameter A itself, which is the
            special case theta = theta_t + eta of the local maps (factor by factor for Kronecker groups); it can make A
            singular, unlike h and Exp.
        """
        state, group = self._checked(state), self.group
        delta, m = checked_parts("step", step, Step, (self.dim,), (group.size,))
        if map == "h":
            root = group._product_h(state.root, m)
        elif map == "exp":
            root = group._product(state.root, group._exp(m))
        elif map == "linear":
            root = group._product(state.root, group._identity() + m)
        else:
            raise ValueError(f"map must be 'h', 'exp' or 'linear', got {map!r}")
        return State(state.mean + self._outward(state.root, delta[None])[0], root)

    def move_samples(
        self,
        state: State,
        samples: Samples,
        weights: Any,
        mean_rate: float = 1.0,
        root_rate: float = 1.0,
        *,
        out: State | None = None,
    ) -> State:
        """move(state, natural_score(samples.z, weights).scaled(mean_rate, root_rate)) in one fused call.

        Parameters
        ----------
        state : State
            The parameters before the move.
        samples : Samples
            Samples drawn from `state`.
        weights : array_like, shape (n,)
            One weight per sample.
        mean_rate, root_rate : float
            The rates of the mean and of the square root.
        out : State, optional
            A state whose arrays may be overwritten; `state` itself for a move in place. A move in place along samples
            with images trusts the root, which `sample` has already checked.
        """
        checks.instance("samples", samples, Samples)
        group, in_place = self.group, out is state
        state = self._checked(state, finite=not in_place or samples.images is None)
        z = checks.real_array("samples.z", samples.z, (len(samples.z), self.dim), finite=False)
        weights = checks.real_array("weights", weights, (len(z),))
        mean_rate = checks.real_number("mean_rate", mean_rate)
        factor = self._sign * checks.real_number("root_rate", root_rate)
        if out is not None:
            self._check_out(out, None if in_place else state)
        if samples.images is None:  # mean_rate A sum_i w_i z_i
            mean = self._outward(state.root, (mean_rate * weights @ z)[None])[0]
        else:
            images = checks.real_array("samples.images", samples.images, z.shape, finite=False)
            mean = (mean_rate * weights).dot(images)
        mean += state.mean
        if not checks.all_finite(mean):  # a NaN anywhere in z shows here
            raise ValueError("samples and weights must give a finite mean: are they finite?")
        shift = factor * float(weights.sum())
        lent = None if out is None else out.root
        root = group._product_h_samples(state.root, z, factor * weights, shift, samples.images, lent)
        if out is None:
            return State(mean, root)
        out.mean[:] = mean
        return out

    def _check_out(self, out: State, state: State | None) -> None:
        checks.instance("out", out, State)
        checks.writeable("out.mean", out.mean, (self.dim,))
        checks.writeable("out.root", out.root, (self.group.size,))
        if state is not None:
            checks.must_not_overlap("out.mean", out.mean, "state.mean", state.mean)
            checks.must_not_overlap("out.root", out.root, "state.root", state.root)


def standard_ngd(family: Gaussian, state: State, g_mean: Any, g_covariance: Any, rate: float) -> State:
    """One step of standard natural-gradient descent: theta - rate F(theta)^-1 dL/dtheta.

    theta is (mean, Sigma), or (mean, Sigma^-1) in precision form. So the step is mean - rate Sigma g and
    Sigma - 2 rate Sigma g_Sigma Sigma, or S + 2 rate g_Sigma: the local map theta_t + eta, with I + M + M^T in place of
    h(M) h(M)^T (paper, appendix "Standard NGD is a Special Case").

    Parameters
    ----------
    family : Gaussian
        The family. Its covariances must be closed under addition.
    state : State
        The parameters before the step.
    g_mean : array_like, shape (dim,)
        dL/dmean.
    g_covariance : array_like, shape (dim, dim)
        dL/dSigma, symmetric.
    rate : float
        The step size.

    Raises
    ------
    ValueError
        If the rate is so large that the step leaves the positive-definite cone, or if the covariances of the group are
        not closed under addition.
    """
    group = family.group
    state = family._checked(state)
    step = family.natural_gradient(state, g_mean, g_covariance).scaled(-checks.real_number("rate", rate))
    m = group.dense_local(step.m)
    target = np.eye(group.dim) + m + m.T
    try:
        factor = group.from_covariance(target)
    except ValueError as error:
        raise ValueError(f"rate must be smaller than {rate}: the step left the positive-definite cone") from error
    reached = group.dense(factor)
    if np.abs(reached @ reached.T - target).max() > 1e-9 * np.abs(target).max():
        raise ValueError(f"structure {group} must have covariances that are closed under addition")
    mean = family.move(state, step._replace(m=0.0 * step.m)).mean
    return State(mean, group.product(state.root, factor))
