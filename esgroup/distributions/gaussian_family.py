"""A Gaussian with a square root in a group: its parameters, its density and its samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions.base import Samples, State
from esgroup.groups import Group, as_group, named

Form = Literal["covariance", "precision"]
Hook = Callable[[Array, Array], Array]


@dataclass(frozen=True, eq=False)
class GaussianFamily:
    """N(mean, Sigma) with Sigma = A A^T (covariance form) or Sigma^-1 = B B^T (precision form), A or B in a group.

    A sample is mean + A z or mean + B^-T z with z ~ N(0, I). `structure` is a group or its spelling; mean and
    covariance (or the standard deviation sigma0) are where `state()` begins and may be left out until then. The object
    itself never changes.
    """

    structure: Group | str = "full"
    mean: Array | None = None
    sigma0: float | None = None  # 1 if there is no covariance either
    covariance: Array | None = None
    form: Form = "covariance"

    def __post_init__(self) -> None:
        if self.form not in ("covariance", "precision"):
            raise ValueError(f"form must be 'covariance' or 'precision', got {self.form!r}")
        if self.sigma0 is not None and self.covariance is not None:
            raise ValueError("sigma0 or covariance must be given, not both")
        if self.sigma0 is not None:
            self._store("sigma0", checks.real_number("sigma0", self.sigma0, positive=True))
        if self.mean is not None:
            self._store("mean", checks.read_only(checks.real_array("mean", self.mean, (None,)).copy()))
        dim = self._known_dim()
        if dim == 0:
            raise ValueError("mean must have at least one coordinate, got none")
        if dim is not None:
            self._store("structure", as_group(self.structure, dim))
        else:
            named(self.structure)  # type: ignore[arg-type]  # at least its name is right
        if self.covariance is not None and dim is not None:
            self._store("covariance", checks.read_only(checks.covariance("covariance", self.covariance, dim)))

    def _store(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _known_dim(self) -> int | None:
        if self.mean is not None:
            return len(self.mean)
        if self.covariance is not None:
            return len(np.atleast_1d(self.covariance))
        return self.structure.dim if isinstance(self.structure, Group) else None

    def _fields(self) -> tuple[Any, ...]:
        return self.structure, self.mean, self.sigma0, self.covariance, self.form

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GaussianFamily):
            return NotImplemented
        pairs = zip(self._fields(), other._fields(), strict=True)
        return all(np.array_equal(a, b) if isinstance(a, np.ndarray) else a is b or a == b for a, b in pairs)

    def __hash__(self) -> int:
        return hash((self.structure, self.sigma0, self.form))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._fields()  # through the constructor, so that shared arrays stay read-only

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
        """The same distribution in the other form: B = A^-T, which lies in the transposed group."""
        state, group = self._checked(state), self.group
        form: Form = "precision" if self.form == "covariance" else "covariance"
        other = type(self)(group.transposed, form=form)
        return other, State(state.mean.copy(), group._transpose(group._inverse(state.root)))

    # ---- density ------------------------------------------------------------------------------------------------

    def sample(self, state: State, n: int, rng: np.random.Generator, *, out: Samples | None = None) -> Samples:
        """n points, a whole generation in one call; `out` are samples whose arrays may be used again."""
        if not isinstance(rng, np.random.Generator):
            raise TypeError(f"rng must be a numpy.random.Generator, got {rng!r}")
        shape = checks.whole_number("n", n), self.dim
        # reading a large dense root once more would cost a tenth of a generation: its samples show what it holds
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

    def _checked(self, state: State, *, finite: bool = True) -> State:
        checks.instance("state", state, State)
        mean = checks.real_array("state.mean", state.mean, (self.dim,), finite=finite)
        return State(mean, checks.real_array("state.root", state.root, (self.group.size,), finite=finite))
