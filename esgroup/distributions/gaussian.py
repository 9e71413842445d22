"""Gaussians whose covariance or precision has a square root in a group."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions.base import Samples, State, Step
from esgroup.distributions.curvature import local_curvature
from esgroup.groups import Group, as_group

Form = Literal["covariance", "precision"]
Map = Literal["h", "exp", "linear"]
Hook = Callable[[Array, Array], Array]


@dataclass(frozen=True, eq=False)
class Gaussian:
    """N(mean, Sigma) with Sigma = A A^T (covariance form) or Sigma^-1 = B B^T (precision form), A or B in a group.

    A sample is mean + A z or mean + B^-T z with z ~ N(0, I). The local map at the current parameters is
    mean + A delta, A h(M) (paper, eqs. gauss_ex_map and gauss_xnes_prec); its Fisher matrix at 0 is the identity for
    delta and <M + M^T, M' + M'^T> / 2 for M, whatever the group and the form.

    `structure` is a group or its spelling; mean and covariance (or the standard deviation sigma0) are where `state()`
    begins and may be left out until then. The object itself never changes.
    """

    structure: Group | str = "full"
    mean: Array | None = None
    sigma0: float = 1.0
    covariance: Array | None = None
    form: Form = "covariance"

    def __post_init__(self) -> None:
        if self.form not in ("covariance", "precision"):
            raise ValueError(f"form must be 'covariance' or 'precision', got {self.form!r}")
        checks.real_number("sigma0", self.sigma0, positive=True)
        if self.mean is not None:
            mean = checks.real_array("mean", self.mean, (None,)).copy()
            object.__setattr__(self, "mean", checks.read_only(mean))
        dim = self._known_dim()
        if dim is not None:
            object.__setattr__(self, "structure", as_group(self.structure, dim))
        if self.covariance is not None and dim is not None:
            covariance = checks.covariance("covariance", self.covariance, dim)
            object.__setattr__(self, "covariance", checks.read_only(covariance))

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
        """The number of coordinates."""
        return self.group.dim

    # With T = A, or T = B^-T in precision form: T x, T^T x and T^-1 x, as functions of the root and of rows x.

    @cached_property
    def _outward(self) -> Hook:
        return self.group._apply if self.form == "covariance" else self.group._solve_transposed

    @cached_property
    def _pull(self) -> Hook:
        return self.group._apply_transposed if self.form == "covariance" else self.group._solve

    @cached_property
    def _whiten(self) -> Hook:
        return self.group._solve if self.form == "covariance" else self.group._apply_transposed

    # ---- parameters ---------------------------------------------------------------------------------------------

    def state(self, mean: Any = None) -> State:
        """The initial parameters; `mean` if none was given at construction."""
        if mean is not None:
            return replace(self, mean=mean).state()
        if self.mean is None:
            raise ValueError(f"mean must be given, either to {type(self).__name__}(...) or to state(mean)")
        if self.covariance is None:
            scale = self.sigma0 if self.form == "covariance" else 1.0 / self.sigma0
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

    def converted(self, state: State) -> tuple[Gaussian, State]:
        """The same distribution in the other form: B = A^-T, which lies in the transposed group."""
        state, group = self._checked(state), self.group
        form: Form = "precision" if self.form == "covariance" else "covariance"
        other = Gaussian(group.transposed, sigma0=self.sigma0, form=form)
        return other, State(state.mean.copy(), group._transpose(group._inverse(state.root)))

    # ---- density ------------------------------------------------------------------------------------------------

    def sample(self, state: State, n: int, rng: np.random.Generator, *, out: Samples | None = None) -> Samples:
        """n points, a whole generation in one call; `out` are samples whose arrays may be used again."""
        if not isinstance(rng, np.random.Generator):
            raise TypeError(f"rng must be a numpy.random.Generator, got {rng!r}")
        state = self._checked(state, finite=False)
        shape = checks.whole_number("n", n), self.dim
        if out is None:
            z, x = np.empty(shape), np.empty(shape)
        else:
            z, x = checks.writeable("out.z", out.z, shape), checks.writeable("out.x", out.x, shape)
        rng.standard_normal(out=z)  # ~ N(0, I)
        images = None
        if self.form == "covariance" and not self.group.uses_images:
            self.group._affine(state.root, z, state.mean, x)  # ~ N(mean, Sigma)
        else:
            images = self._outward(state.root, z)
            np.add(images, state.mean, out=x)
        if n > 0:
            _must_be_finite("state", x[0])  # a NaN anywhere in the state is in every sample
        return Samples(z, x, images if self.form == "covariance" else None)

    def local(self, state: State, x: Any) -> Array:
        """z with x = mean + A z (mean + B^-T z): the local coordinates of any points."""
        state, x = self._checked(state), checks.points("x", x, self.dim)
        return self._whiten(state.root, (x - state.mean).reshape(-1, self.dim)).reshape(x.shape)

    def _half_log_det(self, root: Array) -> float:
        """log|Sigma| / 2."""
        value = self.group.log_abs_det(root)
        return value if self.form == "covariance" else -value

    def log_density(self, state: State, x: Any) -> Array:
        """log N(x | mean, Sigma) of a point or of rows of points."""
        z = self.local(state, x)
        constant = 0.5 * self.dim * np.log(2 * np.pi) + self._half_log_det(state.root)
        density: Array = -0.5 * np.vecdot(z, z) - constant
        return density

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

    # ---- natural gradients in local coordinates -----------------------------------------------------------------

    def natural_score(self, z: Any, weights: Any) -> Step:
        """Natural gradient of sum_i weights_i log q(x_i): delta = sum w z, M = +-C (.) kappa(sum w (z z^T - I)).

        The sign of M is + in covariance form and - in precision form.
        """
        z = checks.real_array("z", z, (None, self.dim))
        weights = checks.real_array("weights", weights, (len(z),))
        m = self.group._project(z, z, self._sign * weights, self._sign * float(weights.sum()))
        return Step(weights @ z, m)

    @cached_property
    def _sign(self) -> float:
        return 1.0 if self.form == "covariance" else -1.0

    def natural_gradient(self, state: State, g_mean: Any, g_covariance: Any) -> Step:
        """From dL/dmean and dL/dSigma: delta = A^T g, M = C (.) kappa(2 A^T g_Sigma A).

        In precision form delta = B^-1 g, M = -C (.) kappa(2 B^-1 g_Sigma B^-T) (paper, section 4). The gradient of
        L, so that `move(state, step.scaled(-rate))` descends.
        """
        state = self._checked(state)
        g_mean = checks.real_array("g_mean", g_mean, (self.dim,))
        g_covariance = checks.symmetric("g_covariance", g_covariance, self.dim)
        half = np.ascontiguousarray(self._pull(state.root, g_covariance).T)
        m = self.group.project_dense(_symmetrised(2 * self._sign * self._pull(state.root, half)))
        return Step(self._pull(state.root, g_mean[None])[0], m)

    def natural_gradient_hvp(
        self,
        state: State,
        g_mean: Any,
        hvp: Callable[[Array], Any],
        hessian_diagonal: Any = None,
        *,
        entropy_weight: float = 0.0,
    ) -> Step:
        """The same for g_Sigma = H/2 (Stein) - entropy_weight Sigma^-1 / 2, from products with H only.

        `hvp` maps rows v_i to rows H v_i; it is called once, with as many rows as the group's hub has coordinates
        (k for BlockTriangular(k), k1 + k2 for Heisenberg). The diagonal of H is needed unless the hub is everything.
        """
        state = self._checked(state)
        g_mean = checks.real_array("g_mean", g_mean, (self.dim,))
        if hessian_diagonal is not None:
            hessian_diagonal = checks.real_array("hessian_diagonal", hessian_diagonal, (self.dim,))
        m = local_curvature(self.group, state.root, hvp, hessian_diagonal, precision=self.form == "precision")
        m -= 0.5 * checks.real_number("entropy_weight", entropy_weight) * self.group._local_identity()
        return Step(self._pull(state.root, g_mean[None])[0], self._sign * m)

    # ---- moves --------------------------------------------------------------------------------------------------

    def move(self, state: State, step: Step, map: Map = "h") -> State:
        """mean + A delta and A h(M), A Exp(M), or A (I + M) for map = "h", "exp", "linear".

        "linear" is standard natural-gradient descent in the global parameter A itself, which is the special case
        theta = theta_t + eta of the local maps; it may make A singular, h and Exp cannot.
        """
        state, group = self._checked(state), self.group
        delta = checks.real_array("step.delta", step.delta, (self.dim,))
        m = checks.real_array("step.m", step.m, (group.size,))
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

        `out` is a state whose arrays may be overwritten, `state` itself for a move in place.
        """
        state, group = self._checked(state, finite=False), self.group
        z = checks.real_array("samples.z", samples.z, (None, self.dim), finite=False)
        weights = checks.real_array("weights", weights, (len(z),))
        mean_rate = checks.real_number("mean_rate", mean_rate)
        factor = self._sign * checks.real_number("root_rate", root_rate)
        mean = self._mean_shift(state.root, z, samples.images, mean_rate * weights)
        mean += state.mean
        _must_be_finite("samples and state", mean)  # a NaN anywhere in them is in the new mean
        shift = factor * float(weights.sum())
        root = None
        if out is not None:
            root = checks.writeable("out.root", out.root, (group.size,))
            own = checks.writeable("out.mean", out.mean, (self.dim,))
            own[:] = mean
            mean = own
        return State(mean, group._product_h_samples(state.root, z, factor * weights, shift, samples.images, root))

    def _mean_shift(self, root: Array, z: Array, images: Array | None, weights: Array) -> Array:
        if images is None:
            drift: Array = self._outward(root, (weights @ z)[None])[0]
            return drift
        _must_be_finite("samples.z", z)
        drift = weights.dot(checks.real_array("samples.images", images, z.shape, finite=False))
        return drift

    def _checked(self, state: State, *, finite: bool = True) -> State:
        mean = checks.real_array("state.mean", state.mean, (self.dim,), finite=finite)
        return State(mean, checks.real_array("state.root", state.root, (self.group.size,), finite=finite))


def _must_be_finite(name: str, result: Array) -> None:
    if not checks.all_finite(result):
        raise ValueError(f"{name} must be finite, got NaN or infinity")


def _symmetrised(matrix: Array) -> Array:
    return (matrix + matrix.T) / 2
