"""One natural gradient of L = E_q[f + gamma log q] for all components, with an estimate of -L.

An estimator requests values and derivatives of l = f + gamma log q at one point after another, for one Gaussian. The
points do not depend on the answers. So the estimator runs twice with the same random numbers: first to record its
requests, which are then answered together, in a few calls for all points of all components; then with the answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from esgroup.checks import Array, all_finite
from esgroup.distributions.base import State, Step
from esgroup.distributions.gaussian import Gaussian
from esgroup.distributions.mixture import Mixture, MixtureState, MixtureStep
from esgroup.gradients.estimators import Estimator, Pathwise, Stein
from esgroup.gradients.function import Gradients, Hessians, Products, Values, as_function
from esgroup.gradients.rows import RowFunction
from esgroup.variational.batches import DataTarget
from esgroup.variational.log_density import Indices, LogDensity, Target, TargetAt, rows_back

EXTRA_DRAWS = 10  # draws of a component for the ELBO if the estimator itself draws none

Kind = Literal["values", "gradients", "products", "diagonals", "hessians"]
Of = Literal["f", "q", "both"]
Source = tuple[TargetAt | LogDensity, Of, float]  # a part of l, what it belongs to, and its weight


class GradientEstimate(NamedTuple):
    """The natural gradient of L in local coordinates, and an unbiased estimate of -L."""

    step: MixtureStep
    elbo: float


class ElboEstimate(NamedTuple):
    """An estimate of -L with its standard error, and the number of draws where logp was not finite."""

    elbo: float
    stderr: float
    failed: int


@dataclass(frozen=True, eq=False)
class VariationalObjective:
    """L(q) = E_q[f] + gamma E_q[log q].

    For the parameters of component k its natural gradient, by the joint Fisher matrix, is that of E_{q_k}[l] with
    l = f + gamma log q held fixed: the factor pi_k of both cancels, and E_q of the score is zero. For the logits it is
    E_{q_k}[l] - E_{q_K}[l] (paper, appendix "Finite Mixture of Gaussians"). log q is taken at the samples rather than
    in expectation: where q is the posterior, l is constant, and the estimate has no noise left (Roeder, Wu, Duvenaud:
    Sticking the landing, 2017).
    """

    mixture: Mixture
    target: Target | DataTarget
    estimator: Estimator[Any]
    gamma: float

    def iterate(
        self, state: MixtureState, rng: np.random.Generator, number: int = 0, seed: int = 0
    ) -> GradientEstimate | None:
        """Estimate the natural gradient of L, and -L, at a state.

        Parameters
        ----------
        state : MixtureState
            The parameters of q.
        rng : numpy.random.Generator
            The source of the samples.
        number, seed : int
            The number of the iteration and the seed of the batches, which together determine the data.

        Returns
        -------
        GradientEstimate or None
            None if a requested number is not finite; the random numbers are used up anyway.
        """
        parts = self.target.parts(number, seed)
        if self.mixture.count == 1 and type(self.estimator) in (Stein, Pathwise) and self._estimator_draws:
            compiled = [(part.function, weight) for part, weight in parts if isinstance(part.function, RowFunction)]
            if len(compiled) == len(parts):
                return self._at_once(compiled, state, rng)
        requests = RecordedRequests(self.mixture.dim)
        before = rng.bit_generator.state
        _, draws = self._asked(requests, state, rng)
        after = rng.bit_generator.state
        q = LogDensity(self.mixture, state, requests.points)
        sources: list[Source] = [(TargetAt(part, q.x), "f", weight) for part, weight in parts]
        sources.append((q, "q", self.gamma))
        finite = requests.answer(sources)
        with np.errstate(over="ignore"):  # then it is not finite
            values = [sum(weight * source.values(rows) for source, _, weight in sources) for rows in draws]
            means = np.array([np.mean(of_component) for of_component in values])  # E_{q_k}[l]
        if not finite or not np.isfinite(means).all():
            return None
        rng.bit_generator.state = before
        steps, _ = self._asked(requests, state, rng)
        rng.bit_generator.state = after
        logits = (means[:-1] - means[-1]) * self.mixture.learn_weights
        step = MixtureStep(np.array([s.delta for s in steps]), np.concatenate([s.m for s in steps]), logits)
        if not all(np.isfinite(part).all() for part in step):  # finite derivatives may overflow in local coordinates
            return None
        return GradientEstimate(step, -float(np.exp(state.log_weights) @ means))

    def _at_once(
        self, parts: list[tuple[RowFunction, float]], state: MixtureState, rng: np.random.Generator
    ) -> GradientEstimate | None:
        """The same for one component and compiled functions, which compute all points of a request at once anyway.

        The Hessian of log q is constant for one Gaussian, and the estimator knows its contribution to a Stein step; its
        gradients at pairs of points mean +- A z cancel.
        """
        gaussian, own = self.mixture.components[0], self.mixture.component_states(state)[0]
        by_hessians = isinstance(self.estimator, Stein)
        never: dict[str, Any] = dict.fromkeys(("fun", "jac", "hessp"), _never)
        slopes = not getattr(self.estimator, "antithetic", False)
        of_q: dict[str, Any] = {"gaussian": gaussian, "state": own, "gamma": self.gamma, "slopes": slopes}
        function = _Compiled(dim=gaussian.dim, vectorized=True, parts=parts, **of_q, **never)
        try:
            step = self.estimator.step(gaussian, own, function, rng, self.gamma if by_hessians else 0.0)
        except _NotFiniteError:
            return None
        if not (np.isfinite(step.delta).all() and np.isfinite(step.m).all() and np.isfinite(function.seen[0])):
            return None
        return GradientEstimate(MixtureStep(step.delta[None], step.m, np.zeros(0)), -function.seen[0])

    def _asked(
        self, requests: RecordedRequests, state: MixtureState, rng: np.random.Generator
    ) -> tuple[list[Step], list[Indices]]:
        """The steps of all components, and the indices of the points that are draws of each.

        The steps are meaningless before the requests are answered, the indices afterwards.
        """
        steps, draws = [], []
        function = recording_function(requests, self.target)
        for gaussian, own in zip(self.mixture.components, self.mixture.component_states(state), strict=True):
            begin = requests.count
            steps.append(self.estimator.step(gaussian, own, function, rng))
            if not self._estimator_draws:
                begin = requests.count
                requests.request("values", "both", gaussian.sample(own, EXTRA_DRAWS, rng).x)
            draws.append(np.arange(begin, requests.count))
        return steps, draws

    @property
    def _estimator_draws(self) -> bool:
        """Whether the estimator takes samples; if not, it evaluates at the mean alone."""
        return getattr(self.estimator, "samples", None) != 0

    def elbo(self, state: MixtureState, n: int, rng: np.random.Generator) -> ElboEstimate:
        """Estimate -L from n draws of q."""
        x = self.mixture.sample(state, n, rng).x
        values = -(self.target.values(x) + self.gamma * self.mixture.log_density(state, x))
        failed = n - int(np.isfinite(values).sum())
        with np.errstate(invalid="ignore", over="ignore"):  # of values that are not finite
            return ElboEstimate(float(values.mean()), float(values.std(ddof=1) / np.sqrt(n)), failed)


# ---- requests -------------------------------------------------------------------------------------------------------


class DerivativeRequest(NamedTuple):
    """What is requested, of f, log q or l, and at which points; `vectors` are for products only."""

    of: Of
    indices: Indices
    vectors: Any = None


class RecordedRequests:
    """Records requests for l = f + weight log q and returns zeros; once answered, returns the answers in turn."""

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self._points: list[Array] = []
        self._index_of: dict[bytes, int] = {}
        self._recorded: dict[Kind, list[DerivativeRequest]] = {}
        self._answers: dict[Kind, Iterator[Array]] = {}

    @property
    def points(self) -> Array:
        """The points of all requests, each once, as rows."""
        return np.array(self._points).reshape(-1, self._dim)

    @property
    def count(self) -> int:
        """The number of points so far."""
        return len(self._points)

    def request(self, kind: Kind, of: Of, points: Array, vectors: Array | None = None) -> Array:
        """The next answer: for every row of `points`, or for one point and every row of `vectors`."""
        if self._answers:
            return next(self._answers[kind])
        indices = np.array([self._index(point) for point in points], dtype=np.intp)
        if vectors is not None:
            indices, vectors = np.repeat(indices, len(vectors)), np.array(vectors)
        self._recorded.setdefault(kind, []).append(DerivativeRequest(of, indices, vectors))
        return np.zeros(self._shape(kind, len(indices)))

    def _index(self, point: Array) -> int:
        index = self._index_of.setdefault(point.tobytes(), len(self._points))
        if index == len(self._points):
            self._points.append(np.array(point))
        return index

    def _shape(self, kind: Kind, n: int) -> tuple[int, ...]:
        return {"values": (n,), "hessians": (n, self._dim, self._dim)}.get(kind, (n, self._dim))

    def answer(self, sources: list[Source]) -> bool:
        """Answer all requests and start over with the first; returns whether all answers are finite."""
        finite = True
        for kind, requests in self._recorded.items():
            lengths = [len(request.indices) for request in requests]
            given = [np.concatenate([request.indices for request in requests])]
            if kind == "products":
                given.append(np.concatenate([request.vectors for request in requests]))
            total = np.zeros(self._shape(kind, sum(lengths)))
            for source, name, weight in sources:
                asked = np.repeat([request.of in (name, "both") for request in requests], lengths)
                if asked.any():
                    total[asked] += weight * getattr(source, kind)(*(rows[asked] for rows in given))
            if kind == "hessians":  # where f and log q cancel, only rounding errors are left
                total = (total + total.swapaxes(1, 2)) / 2
            finite = finite and bool(np.isfinite(total).all())
            self._answers[kind] = iter(np.split(total, np.cumsum(lengths)[:-1]))
        return finite


# ---- l as a function whose evaluations are requests -----------------------------------------------------------------


def recording_function(requests: RecordedRequests, target: Target | DataTarget) -> Values:
    """l = f + weight log q for an estimator, with the same derivatives as f: evaluations become requests."""

    def rows(kind: Kind) -> Callable[[Array], Array]:
        return lambda points: requests.request(kind, "both", points)

    def at_point(kind: Kind, of: Of = "both") -> Callable[[Array], Any]:
        return lambda x: requests.request(kind, of, x[None])[0]

    def products(of: Of) -> Callable[[Array, Array], Array]:
        return lambda x, vectors: requests.request("products", of, x[None], vectors)

    known: dict[str, Any] = {"dim": target.function.dim, "vectorized": True, "fun": rows("values")}
    if isinstance(target.function, Gradients):
        known["jac"] = rows("gradients")
    if isinstance(target.function, Hessians):
        return _Symmetric(**known, hess=at_point("hessians"))
    if not isinstance(target.function, Products):
        return as_function(**known)
    known["hessp_vectorized"] = True
    if target.knows_diagonal:
        return _Unchecked(**known, hessp=products("both"), hess_diag=at_point("diagonals"))
    of_f = _Unchecked(**known, hessp=products("f"), probes=target.function.probes)
    return _Probed(**known, hessp=products("both"), of_f=of_f, of_q=at_point("diagonals", "q"))


@dataclass(frozen=True, eq=False, kw_only=True)
class _Symmetric(Hessians):
    """Hessians that need no check: `RecordedRequests` makes all of them symmetric at once."""

    def hessian(self, x: Array) -> Array:
        return np.asarray(self.hess(x))


@dataclass(frozen=True, eq=False, kw_only=True)
class _Unchecked(Products):
    """Products that are requests. Their shapes are correct, and there are many, so nothing is checked."""

    def products(self, x: Array, rows: Array) -> Array:
        return np.asarray(self.hessp(x, rows))


@dataclass(frozen=True, eq=False, kw_only=True)
class _Probed(_Unchecked):
    """Products whose diagonal is estimated for f, from products with it, and known for log q."""

    of_f: Products
    of_q: Callable[[Array], Array]

    def diagonal(self, x: Array, rng: np.random.Generator) -> Array:
        return self.of_f.diagonal(x, rng) + self.of_q(x)


# ---- l as a function that is computed directly ---------------------------------------------------------------------


class _NotFiniteError(Exception):
    """A number that an estimator needs is not finite."""


def _never(*_: Any) -> Any:
    raise RuntimeError("this estimator must take means over points")


@dataclass(frozen=True, eq=False, kw_only=True)
class _Compiled(Products):
    """l = sum_i w_i f_i + gamma log q for one Gaussian q; `seen` has the mean of l.

    Gradients are those of l if it has `slopes`, else of its first part alone; second derivatives are of that part.
    """

    parts: list[tuple[RowFunction, float]]
    gaussian: Gaussian
    state: State
    gamma: float
    slopes: bool
    seen: list[float] = field(default_factory=list)

    def gradients(self, points: Array) -> Array:
        z = self.gaussian.local(self.state, points)
        slopes = -self.gamma * rows_back(self.gaussian, self.state, z) if self.slopes else np.zeros(points.shape)
        height = 0.5 * self.dim * math.log(2 * math.pi) + self.gaussian._half_log_det(self.state.root)
        mean = -self.gamma * (0.5 * float(np.vdot(z, z)) / len(points) + height)
        for function, weight in self.parts:
            values, gradients = function.values_and_gradients(points)
            slopes += weight * gradients
            mean += weight * float(values.mean())
        self.seen.append(mean)
        return _finite(slopes)

    def mean_products(self, points: Array, rows: Array) -> Array:
        found = (weight * function.mean_products(points, rows) for function, weight in self.parts)
        return _finite(sum(found, np.zeros(rows.shape)))

    def mean_diagonal(self, points: Array, rng: np.random.Generator) -> Array:
        found = (weight * function.mean_diagonal(points, rng) for function, weight in self.parts)
        return _finite(sum(found, np.zeros(self.dim)))


def _finite(found: Array) -> Array:
    if not all_finite(found):
        raise _NotFiniteError
    return found
