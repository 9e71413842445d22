"""The search update of a frame: a few axes of any direction and length, which are found, turned and dropped.

With x = mu + sigma D A z and A = b (I + U^T (diag(s) - I) U), the mean, the paths, sigma and D move as in evolution.py.
A learns from a generation only through the coordinates a_i = U z_i of the frame: O(k n) per sample. The idea is that
the frame consists of the directions in which the distribution differs most from a ball.

An axis is *kept* by the step of the group in which its direction is fixed (`Frame.step`), after which the k directions
that differ most remain; so directions turn toward what they lack, and axes that appeared by chance stop growing and
fade:

    |log s| <- |log s| - 0.3 c_F,     c_F the rate at which lengths are learned; not for axes with s > 5

An axis *comes* in one of two ways. Long ones come from the path: every 1 / c_c generations the direction of least
effect, if it has next to none, becomes that of the path p_c outside the frame, with s = 1. Short ones come from probes,
orthonormal directions q_j that follow the least eigenvectors of sum_i w_i z_i z_i^T, which are shorter among the better
samples, and the oscillations of the mean, which jumps back and forth across a valley that is too narrow for it:

    q_j <- q_j - eta sum_i w_i (z_i^T q_j) z_i + (1/n) (delta^T q_j) delta,   delta = sqrt(mu_eff) sum_i u_i z_i
    e_j <- (1 - c_e) e_j + c_e sum_i w_i (z_i^T q_j)^2

(Oja's rule). Without selection e_j has the mean 0 and the variance v = 2 sum_i w_i^2 c_e / (2 - c_e). Where it is below
-4 sqrt(v) the axis is shortened, A <- A (I - 0.4 q_j q_j^T), and e_j is halved.

The number k of axes follows those *in use*, |log s| > log 2: there is always one more, and at most three.
A frame is replaced by the full matrix (`outgrown`) if it is no longer small: a search that has taken 2 n^2
evaluations, a tenth of what a full matrix needs for an ellipsoid, and still has n / 20 axes or more in use (at least
five); or if its distribution has shrunk to a point, as along sharp ridges, which the full matrix can still learn; or if
no generation has had a lower median for n^1.5 / 6 generations: noise in the ranks makes axes of a frame, which learns
fast, but hardly moves the full matrix, which learns slowly. In noise the distribution has shrunk as well, so the full
matrix starts with one that is 20 times as wide (`_WIDENED`).

With adapted learning rates, A, D and sigma all move at the rate of the root, axes fade and are exchanged at that rate,
too, and probes keep their pace, because their test is valid at every rate. M has the norm of `_squared_norm`. As axes
turn, its average is projected onto what they can represent. Noise makes no axes then, and standing still for long is
how the search averages: it is no reason to replace a frame.

In the published update A <- A h(M) is the step of the group alone (`Frame.moved`), without paths, probes, fading and
replacement by the full matrix. Axes turn because M has parts outside them. A new axis is added if all but one are in
use, along the last step of the mean, with the length of all other directions, which changes nothing. A step by a model
(`stepped`) is the part of a step of the full covariance that D and A can represent.

The first form of this search and measurements of its parts: docs/LARGE.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.groups import Frame
from esgroup.groups.frame import Gradient, furthest
from esgroup.kernels import frame as kernels
from esgroup.strategies import rates
from esgroup.strategies.base import Indices
from esgroup.strategies.evolution import Evolution, Generation, SearchState
from esgroup.strategies.recombination import Constants, Cumulative, Published
from esgroup.surrogates.base import Axes

PROBES = 8
_INNER = 5.0  # times the rate of directions: that of lengths, of which there are fewer
_FADING = 0.3  # times the rate of lengths
_LASTING = 5.0  # length above which long axes do not fade: if all of them fade, cigars take a third longer
_IN_USE = math.log(2.0)
_IDLE = 0.35  # |log s| up to which a direction may be exchanged
_LEAST, _MOST = 2, 40  # axes
_SHORT_MEMORY = 1000  # number of variables above which the path of the step size has a shorter memory
# Of all axes beyond the eighth together, which bounds time and memory: ten axes of 100,000 variables. There an axis on
# trial hardly fades: without this limit a sphere has 38, and an evaluation takes 8.2 ms instead of 3.4 with ten.
_NUMBERS = 1_000_000
# How fast the share of D's step grows with the ratio r of `Decoding`, where it is 0.5. With n = 80 r is 14 to 18 on
# the separable ellipsoid, 7 to 10 on Rosenbrock's function, but 4 to 6 on the attractive sector and on Schaffer's,
# where D wanders. 0.15 takes 0.85, 0.80 of the evaluations on f6 (n = 80, 160), 1.04 on f2, 1.0, 0.9 on f8.
_SLOPE = 0.15
_TURN = 0.35  # eta n / mu_eff
_SIGNIFICANT = 4.0  # standard deviations of e_j
_SHORTENED = 0.6
_PERIOD = 20  # generations between two refreshes
_PATIENCE = 2.0  # n^2 evaluations, after which a frame with `_CROWDED` axes in use is replaced
_CROWDED = 5  # or a twentieth of the variables, if that is more; at most a quarter of them
_HELD = 30  # generations of a distribution that would become too narrow, after which a frame is replaced as well
# Number of variables up to which a full matrix is used. At 1000 it takes 0.4 ms per evaluation; above, time and memory
# grow with the square.
FULL_UP_TO = 1000
# n^1.5 generations without a lower median, after which a frame is replaced as well. Without noise the longest such
# time was 58 generations with n = 80, 87 with 160, 186 with 320, 2,423 with 1000, all on discuses, while short axes are
# sought (limits: 119, 337, 954, 5,270), and 31 elsewhere, on Schaffer's f17. In noise such times are unlimited.
# Sphere with N(0, 1), n = 160, after 60,000 evaluations (medians of 6 to 12 runs): 4.3 without this limit, 3.5 with it,
# 3.6 with the full matrix from the start; ellipsoid 8.8, 8.5 and 4.5.
_FRUITLESS = 1 / 6
# Factor on sigma if a frame is replaced for that reason. With N(0, e^2) added to a sphere, steps much smaller than
# e / |gradient| come to rest at values of the order of e n / (4 mu_eff), whatever their size, but take about
# e / (4 sigma^2) generations to get there: a search that has shrunk too early stays where it is. Ellipsoid with
# N(0, 1), n = 160, after 60,000 evaluations (medians of 8): 8.9 with 1, 6.5 with 6, 5.2 with 12, 4.5 with 20 and with
# 30, 4.5 with the full matrix from the start; sphere 3.5 with all of these.
_WIDENED = 20.0
_DETERMINED = 0.01  # least eigenvalue of Q o Q in `stepped`: D rests if axes are close to coordinate axes, or are all
_LARGEST = float(np.finfo(float).max)
# What a state stores in `course`: the part of 1 / c_c generations since the last exchange, all evaluations,
# generations of a distribution that would become too narrow, the least median, and the generations since it was found.
BEGIN = (0.0, 0.0, 0.0, _LARGEST, 0.0)


class Evolved(NamedTuple):
    """The result of `Evolution._evolve` for the root, the factor on its learning rates, and the previous p_s."""

    shift: float
    damped: float
    clip: float
    log_step: float
    rate: float
    former: Array


class FrameConstants(NamedTuple):
    """What a generation of n values with k axes needs in addition to `Constants`."""

    both: Array  # weights by rank, 1 in sum for the better half and -1 for the worse
    inner: float  # rate of lengths over that of directions
    pull: float  # sum of c_mu w_i
    c_1: float
    fading: float
    c_1d: float
    c_mud: float
    least: float  # share of the step of D
    eta: float
    c_e: float
    limit: float  # of e_j
    c_c: float
    c_s: float

    def shift(self, evolved: Evolved) -> float:
        """The coefficient of -I among the axes."""
        return evolved.rate * evolved.clip * (self.c_1 * evolved.damped + self.inner * self.pull)


@dataclass(frozen=True)
class Follow(Cumulative):
    """The constants of a search with a frame of k axes; otherwise like `Cumulative`.

    The (k + 1) n numbers of the axes and D are learned at f = max(1, (n + 1) / (3 (k + 1))) times the rates of the full
    group, which has n (n + 1) / 2; the path term at 5 f c_1. The path has a memory of 1 / c_c generations, with
    c_c sqrt(n / (k + 1)) for c_c. The mean moves away from the worse half more than in other searches
    (`_worse_half`), and c_s is that of the better half's mu_eff (n = 80, medians of 3: sphere 4,867 instead of 5,363,
    cigar with two axes 22,600 instead of 28,600), with a shorter memory in large dimensions (`_step_size_rates`).
    """

    def constants(self, n: int, dim: int, dof: int, gathered: int = 0) -> Constants:
        """`dof` is the number of axes."""
        k = dof
        mu_eff = rates.effective(rates.halves(n)[0])
        c_1, c_mu = directions_rates(dim, k, mu_eff)
        negative = _worse_half(dim, mu_eff) if self.negative_mean is None else self.negative_mean
        weights = rates.recombination(n, dim, c_1, c_mu, negative)
        c_c = min(1.0, rates.path_rate(dim, mu_eff) * math.sqrt(dim / (k + 1)))
        c_s, d_s = _step_size_rates(dim, mu_eff)
        damping = rates.damping_factor(dim, mu_eff) if self.damping is None else self.damping
        chi, threshold = rates.expected_norm(dim), 1.4 + 2 / (dim + 1)
        kernel = checks.read_only(np.array([c_s, c_c, c_1, c_mu, weights.mean_mu_eff, threshold * chi, 1.0]))
        drive = c_s / (damping * d_s)
        return Constants(weights.mean, weights.root, kernel, (0.0,) * 5, c_s, drive, chi, threshold)


def _worse_half(dim: int, mu_eff: float) -> float:
    """min(1, 0.6 + n / 1600), times `rates.asymmetry`: how much the mean moves away from the worse half.

    With 1 a steep axis among 1000 coordinates is found after 160,000 to 184,000 evaluations, with 0.7 after 300,000,
    because it is the mean's jumping across the valley that shows it. In noise less is better: a sphere with N(0, 1)
    ends at 2.5 with 1 and at 2.3 with 0.6 (n = 80; medians of 12), at 4.6 and 3.9 (n = 160), at 14.3 and 13.0 with 0.7
    (n = 640). Without noise 0.7 takes 1.03 of the evaluations on spheres, 0.7 on f12 and as many on f2, f6, f8 and f11
    (n = 80, medians of 3).
    """
    return min(1.0, 0.6 + dim / 1600) * rates.asymmetry(dim, mu_eff)


def _step_size_rates(dim: int, mu_eff: float) -> tuple[float, float]:
    """c_s and d_s of `rates.step_size_rates`, but above 1000 coordinates c_s falls as 1 / sqrt(n) only.

    Both rules serve a sphere in the long run. But sigma can change by a factor e in some 3 / c_s generations at best,
    and the best sigma for a distance R is of the order mu_eff R / n: in large dimensions a search begins with a sigma
    that is too large by far, and as long as it is, values get worse than that of the start. With n = 10,000 and
    sigma = 2, where 0.2 would be right, a sphere takes 127,658 evaluations to a thousandth of the first value, and
    199,051 with 1 / n; on another instance, looked at once, an ellipsoid 560,763 and 924,372.
    """
    c_s, d_s = rates.step_size_rates(dim, mu_eff)
    if dim <= _SHORT_MEMORY:
        return c_s, d_s
    shorter = rates.step_size_rates(_SHORT_MEMORY, mu_eff)[0] * math.sqrt(_SHORT_MEMORY / dim)
    return max(c_s, shorter), d_s - c_s + max(c_s, shorter)


def directions_rates(dim: int, k: int, mu_eff: float) -> tuple[float, float]:
    """5 f c_1 and f c_mu, at most 1/2 each: f and the rates of the full group are those of `Follow`."""
    c_1, c_mu = rates.root_rates(dim, dim * (dim + 1) // 2, mu_eff)
    factor = max(1.0, (dim + 1) / (3 * (k + 1)))
    c_1 = min(0.5, 5 * factor * c_1)
    return c_1, min(0.5, 1 - c_1, factor * c_mu)


@dataclass(frozen=True, eq=False)
class FrameEvolution(Evolution):
    """`Evolution` for a frame.

    Where the number of axes follows the search, `exchange` and `stepped` change the size of a state.
    """

    group: Frame

    def constants(self, n: int) -> Constants:
        return self._constants_for(n, self.group.first)[0]

    @cached_property
    def published(self) -> bool:
        """Whether axes follow the published update only."""
        return isinstance(self.recombination, Published)

    def _constants_for(self, n: int, k: int) -> tuple[Constants, FrameConstants | None]:
        """The constants for k axes; the published update needs only the common ones.

        Its rate is f times that of the full group as well (`Follow`). With that of as many degrees of freedom as a
        frame has, twice as much or more, axes turn too fast to be found.
        """
        found, dim = self._known.get((n, k)), self.dim
        if found is None:
            learned = min(dim * (dim + 1), 3 * dim * (k + 1)) // 2 if self.published else k
            common = self.recombination.constants(n, dim, learned)
            own = None if self.published else _frame_constants(n, dim, common)
            found = self._known[n, k] = common, own
        return found

    @cached_property
    def _known(self) -> dict[tuple[int, int], tuple[Constants, FrameConstants | None]]:
        return {}

    # ---- state --------------------------------------------------------------------------------------------------

    def shapes(self) -> dict[str, int]:
        averages = self.averages(self.group._identity())
        own = {"probes": self._probes * (self.dim + 1), "course": len(BEGIN), "average_m": averages}
        return super().shapes() | own

    @property
    def _probes(self) -> int:
        return min(PROBES, self.dim // 2) if self.group.first and not self.published else 0

    def start(self, mean: Array, steps: Array, correlation: Array | None = None) -> SearchState:
        state = super().start(mean, steps, correlation)
        # any directions do, but those of coordinates are special in many functions
        some = np.random.default_rng(0).standard_normal((self.dim, self._probes))
        state.probes[: some.size] = np.linalg.qr(some)[0].T.ravel()
        state.course[:] = BEGIN
        return state

    def averages(self, root: Array) -> int:
        """The number of entries of the average of M that goes with a root."""
        return 0 if self.adaptation is None else self.dim * (1 + len(self.group.axes(root).ratios))

    def check_averages(self, state: SearchState) -> None:
        """Raise ValueError for averages that are not those of as many axes as the root has."""
        k, wanted = len(self.group.axes(state.root).ratios), self.averages(state.root)
        if len(state.average_m) != wanted:
            raise ValueError(f"average_m must have {wanted} numbers for {k} axes, got {len(state.average_m)}")

    def condition(self, state: SearchState) -> float:
        """Condition number of A A^T."""
        _, ratios, _ = self.group.axes(state.root)
        lengths = np.append(ratios, 1.0)
        least = float(lengths.min())
        return (float(lengths.max()) / least) ** 2 if least > 0.0 else math.inf

    def refresh(self, state: SearchState) -> None:
        u = self.group.axes(state.root).directions
        if len(u):
            u[:] = orthonormal(u)
        super().refresh(state)

    def _forget_correlations(self, state: SearchState) -> Array:
        state.scale[:] *= np.sqrt(self.group._squared_row_norms(state.root))
        bulk, ratios, _ = self.group.axes(state.root)
        bulk[:], ratios[:], state.path_c[:] = 1.0, 1.0, 0.0
        return state.root.copy()

    @cached_property
    def _period(self) -> int:
        return _PERIOD

    # ---- update -------------------------------------------------------------------------------------------------

    def update(
        self, state: SearchState, generation: Generation, order: Indices, tags: Indices | None = None
    ) -> None:
        """Move the state by one generation; `RateAdaptation` sees the M of `_squared_norm`."""
        frame, adaptation, former = self.group, self.adaptation, state.path_s.copy()
        rate_mean, rate = (1.0, 1.0) if adaptation is None else state.rates[:2].tolist()
        common, own = self._constants_for(len(order), len(frame.axes(state.root).ratios))
        evolved = Evolved(*self._evolve(state, generation, order, tags, common, rate_mean, rate), rate, former)
        before = state if adaptation is None else state._replace(root=state.root.copy(), scale=state.scale.copy())
        step: Gradient | None
        if own is None:
            step = self._publish(state, generation, evolved, common)
        else:
            step = self._follow(state, generation, order, evolved, own)
        if adaptation is not None and step is not None:
            u = frame.axes(before.root).directions
            of_scales = np.log(state.scale / before.scale) + step.others
            rows = step.among @ u + step.beside
            m = np.concatenate([of_scales / rate + evolved.log_step, rows.ravel() / rate])
            delta = (state.path_s - (1 - common.c_s) * former) / common.gain_s
            adaptation.compare(state.rates, generation.samples, order, tags)
            adaptation.update(state, delta, m, partial(_squared_norm, u))
            state.average_m[:] = _carried(state.average_m, u, frame.axes(state.root).directions)
        self._refresh_if_due(state)

    def _publish(self, state: SearchState, generation: Generation, evolved: Evolved, common: Constants) -> Gradient:
        """A <- A h(M), the published update; returns M."""
        (z, _, _, weights, *_), (shift, damped, clip, _, rate, _), frame = generation, evolved, self.group
        step = frame.gradient(state.root, z, rate * weights, rate * shift)
        self._decode(state, generation, common, damped, clip, rate)
        state.root[:] = frame.moved(state.root, step)
        state.course[:2] += rate * common.kernel[3], len(weights) - 1
        return step

    def _follow(
        self, state: SearchState, generation: Generation, order: Indices, evolved: Evolved, own: FrameConstants
    ) -> Gradient | None:
        """Move axes and D; look for other axes along the path and the probes, whose tests hold at every rate.

        Returns M if rates are adapted.
        """
        frame, n, rate, step = self.group, len(order), evolved.rate, None
        z, both, former = generation.z, own.both, evolved.former
        weights = generation.weights if rate == 1.0 else rate * generation.weights
        if self.adaptation is not None:
            inner = np.append(own.inner * weights[:-1], weights[-1])
            step = frame.gradient(state.root, z, weights, own.shift(evolved), inner)
        pull, decoded = rate * own.c_1d * evolved.damped, float(self.decoding is not None)
        rates_of_d = rate * own.c_mud, rate * own.c_1d, decoded, pull, _SLOPE, own.least
        of_axes = own.inner, own.shift(evolved), rate * own.fading, _LASTING
        constants = np.array([*rates_of_d, *of_axes, own.eta, own.c_e, own.c_s])
        q, e = self._probe_views(state)
        path = generation.y[n].copy()
        steps, fisher, trend, scale = state.path_s, state.fisher, state.trend, state.scale
        kernels.generation(
            z, weights, order, both, constants, steps, former, fisher, q, e, trend, scale, state.root, path
        )
        if e.min(initial=0.0) < own.limit:  # short axes
            for j in np.flatnonzero(e < own.limit):
                state.root[:] = shortened_along(frame, state.root, q[j])
                e[j] *= 0.5
            path = frame._solve(state.root, generation.y[n:])[0]  # its image stays
        state.path_c[:] = path
        state.course[:2] += rate * own.c_c, n
        return step

    def _probe_views(self, state: SearchState) -> tuple[Array, Array]:
        """The probes q (8, dim) and what selection does along them, e (8,)."""
        number = self._probes
        return state.probes[: number * self.dim].reshape(number, self.dim), state.probes[number * self.dim :]

    # ---- exchange -----------------------------------------------------------------------------------------------

    def exchange(self, state: SearchState) -> SearchState:
        """Return the state after every 1 / c_c generations with another direction, and more or fewer of them.

        The published update only adds directions, in which nothing changes: those of the mean's last step.
        """
        if state.course.item(0) < 1.0:
            return state
        state.course[0], frame = 0.0, self.group
        bulk, ratios, u = frame.axes(state.root)
        if (k := len(ratios)) == 0:
            return state
        path = frame._apply(state.root, (state.path_s if self.published else state.path_c)[None])[0]
        used, in_use = np.abs(np.log(ratios)), self._in_use(state.root)
        if frame.k is None and in_use > k - 2 and k < self._most:
            ratios, u = np.append(ratios, 1.0), np.concatenate([u, beside(path, u)[None]])
        elif self.published:
            return state
        elif frame.k is None and in_use < k - 3 and k > _LEAST:
            stays = np.arange(k) != used.argmin()
            ratios, u = ratios[stays], u[stays]
        else:
            ratios, u = ratios.copy(), u.copy()
        j = int(np.abs(np.log(ratios)).argmin())
        if self.published:
            path = np.zeros(self.dim)
        elif abs(math.log(ratios[j])) < _IDLE:
            ratios[j], u[j] = 1.0, beside(path, np.delete(u, j, axis=0))
        return self._with_axes(state, frame.pack(float(bulk[0]), ratios, u), path)

    @property
    def _most(self) -> int:
        """The largest number of axes that a search may reach by itself."""
        return min(self.dim // 4, _MOST, max(8, _NUMBERS // self.dim))

    def _in_use(self, root: Array) -> int:
        """The number of axes that differ from the other directions."""
        return int((np.abs(np.log(self.group.axes(root).ratios)) > _IN_USE).sum())

    def _with_axes(self, state: SearchState, root: Array, path: Array) -> SearchState:
        """Return the state with another root, of any number of axes, and the same image of the path p_c."""
        frame = self.group
        old, new = frame.axes(state.root).directions, frame.axes(root).directions
        averages = _carried(state.average_m, old, new)
        if len(root) == len(state.root):
            state.root[:], state.average_m[:] = root, averages
        else:
            state = state._replace(root=root, average_m=averages)
        state.path_c[:] = frame._solve(root, path[None])[0]
        return state

    def stepped(self, state: SearchState, axes: Axes | None, evaluated: int) -> SearchState:
        """Return the state after a covariance step that a model recommends, as far as D and A can represent it.

        In local coordinates the covariance becomes exp(T), T = 2 V L V^T. Among the directions outside the frame, with
        Q = I - U^T U, a change of log D by e is 2 Q diag(e) Q, so that the natural gradient of D is what comes nearest
        to Q T Q,

            (Q o Q) e = diag(Q T Q) / 2,    Q o Q the squares of the entries,

        and the frame is the nearest to what remains, exp(-e) A exp(T) A exp(-e), if need be with one axis more.
        """
        state.course[1] += evaluated
        if axes is None:
            return state
        frame, (logs, vectors) = self.group, axes
        u, e = frame.axes(state.root).directions, np.zeros(self.dim)
        vectors = np.eye(self.dim) if vectors is None else vectors
        if self.decoding is not None:
            q = np.eye(self.dim) - u.T @ u
            values, basis = np.linalg.eigh(q * q)
            basis = basis[:, values > _DETERMINED]
            e = basis @ ((q @ vectors) ** 2 @ logs @ basis / values[values > _DETERMINED])
            e = np.clip(e, -1.0, 1.0)
        state.scale[:] *= np.exp(e)
        path = np.exp(-e) * frame._apply(state.root, state.path_c[None])[0]
        image = np.exp(-e)[:, None] * frame._dense(state.root) @ (vectors * np.exp(logs))
        covariance, k = image @ image.T, len(u)
        root = Frame(self.dim, k)._from_covariance(covariance)
        if frame.k is None and self._in_use(root) > k - 2 and k < self._most:
            root = Frame(self.dim, k + 1)._from_covariance(covariance)
        return self._with_axes(state, root, path)

    def note_median(self, state: SearchState, value: float) -> None:
        """Count the generations since the last record low of the median."""
        if value < state.course.item(3):
            state.course[3:] = max(value, -_LARGEST), 0.0
        elif value >= state.course.item(3):  # not NaN
            state.course[4] += 1.0

    def outgrown(self, state: SearchState) -> str | None:
        """Why the full matrix is now the better choice; None if it is not, or is too large, or k was given."""
        if self.group.k is not None or self.dim > FULL_UP_TO or self.published:
            return None
        _, values, held, _, since = state.course.tolist()
        if held >= _HELD:
            return "had shrunk to a point"
        if self._is_fruitless(state):
            return f"had found nothing better for {since:,.0f} generations"
        if values < _PATIENCE * self.dim**2:
            return None
        in_use = self._in_use(state.root)
        crowded = min(max(_CROWDED, self.dim / 20), self.dim // 4)
        return f"had {in_use} axes" if in_use >= crowded else None

    def _is_fruitless(self, state: SearchState) -> bool:
        """Whether medians have not improved for so long that noise is the likely reason.

        This does not apply if rates are adapted: then noise makes no axes, and standing still is how the search
        averages.
        """
        return self.adaptation is None and bool(state.course[4] >= _FRUITLESS * self.dim**1.5)

    def as_full(self, state: SearchState, full: Evolution) -> SearchState:
        """Return the state of the full group with the same distribution and paths, widened if it shrank in noise."""
        dense = self.group._dense(state.root)
        other = full.start(state.mean, state.scale * state.sigma)
        for name in ("scale", "sigma", "path_s", "path_c", "fade", "memory", "trend", "rest"):
            getattr(other, name)[:] = getattr(state, name)
        other.root[:] = dense.ravel()
        if self.adaptation is not None:
            u = self.group.axes(state.root).directions
            other.rates[:], other.average_delta[:] = state.rates, state.average_delta
            other.average_m[:] = _dense_step(u, state.average_m).ravel()
        other.sigma[0] *= _WIDENED if self._is_fruitless(state) else 1.0
        full.refresh(other)
        return other


def _squared_norm(u: Array, m: Array) -> float:
    """tr(M^2) of M = diag(e) + P / 2, packed as e and the rows R = U P of P = U^T R + R^T U - U^T R U^T U.

    e are the steps of log D, taken for those of a D to the right of A, which it is next to the axes, and that of sigma.
    Without axes this is the norm of the diagonal group, with as many as coordinates that of the full one.
    """
    dim = u.shape[1]
    e, rows = m[:dim], m[dim:].reshape(u.shape)
    g = rows @ u.T
    square = 2.0 * float(np.vdot(rows, rows)) - float(np.vdot(g, g))  # |P|^2
    diagonal = (u * (2.0 * rows - g @ u)).sum(axis=0)
    return float(e @ (e + diagonal)) + 0.25 * square


def _carried(m: Array, old: Array, new: Array) -> Array:
    """The same for other axes, as far as they can represent it: R' = U' P, the orthogonal projection."""
    if not len(m):
        return m
    dim = old.shape[1]
    rows, inside = m[dim:].reshape(old.shape), new @ old.T
    moved = inside @ rows + (new @ rows.T - inside @ (rows @ old.T)) @ old
    return np.concatenate([m[:dim], moved.ravel()])


def _dense_step(u: Array, m: Array) -> Array:
    """M of `_squared_norm` as a matrix."""
    dim = u.shape[1]
    rows = m[dim:].reshape(u.shape)
    half = u.T @ (rows - 0.5 * (rows @ u.T) @ u)
    dense: Array = np.diag(m[:dim]) + 0.5 * (half + half.T)
    return dense


def _frame_constants(n: int, dim: int, common: Constants) -> FrameConstants:
    better, worse = rates.halves(n)
    mu_eff, both = rates.effective(better), better + worse
    c_s, c_c, c_1, c_mu = common.kernel[:4].tolist()
    inner = min(0.5 / c_mu, _INNER) if c_mu > 0 else 1.0
    c_1d, c_mud, least = rates.decoding_rates(dim, mu_eff)
    eta = min(0.5, _TURN * mu_eff / dim)
    c_e = min(1.0, 2 * eta)
    variance = 2 * float(both @ both) * c_e / (2 - c_e)
    return FrameConstants(
        checks.read_only(both),
        inner,
        c_mu * float(common.root_weights.sum()),
        c_1,
        _FADING * inner * c_mu,
        c_1d,
        c_mud,
        least,
        eta,
        c_e,
        -_SIGNIFICANT * math.sqrt(variance),
        c_c,
        c_s,
    )


def orthonormal(rows: Array) -> Array:
    """Orthonormal rows with the same span, each as far as possible in its old direction from the first on."""
    gram = rows @ rows.T
    scales = 1.0 / np.sqrt(np.maximum(gram.diagonal(), 1e-300))
    try:
        lower = np.linalg.cholesky(gram * scales * scales[:, None])
    except np.linalg.LinAlgError:
        lower = np.zeros((1, 1))
    if lower.diagonal().min() > 1e-3:  # else rounding errors are large
        return np.linalg.solve(lower, rows * scales[:, None])
    q, r = np.linalg.qr(rows.T)
    return np.ascontiguousarray((q * np.where(r.diagonal() < 0, -1.0, 1.0)).T)


def beside(path: Array, u: Array) -> Array:
    """The direction of the path outside the rows of u; where it has none, of the coordinate that is furthest off."""
    for one in (path, np.eye(1, len(path), int((u * u).sum(axis=0).argmin()))[0]):
        rest = one - (u @ one) @ u
        rest -= (u @ rest) @ u
        length = float(np.linalg.norm(rest))
        if length > 1e-9 * float(np.linalg.norm(one)):
            return rest / length
    raise AssertionError("as many directions as coordinates have none outside them")


def shortened_along(frame: Frame, a: Array, q: Array) -> Array:
    """The element nearest to A (I - 0.4 q q^T) that has its shortest axis."""
    bulk, ratios, u = frame.axes(a)
    k, inside = len(ratios), u @ q
    rest = q - inside @ u
    length = float(np.linalg.norm(rest))
    coordinates = np.append(inside, length)
    coordinates /= np.linalg.norm(coordinates)
    small = np.eye(k + 1) - (1 - _SHORTENED) * np.outer(coordinates, coordinates)
    small *= np.append(ratios, 1.0)[:, None]
    basis = np.concatenate([u, (rest / max(length, 1e-300))[None]])
    if length < 1e-6:  # q is within the frame
        small, basis = small[:k, :k], u
    ratios, u = furthest(small, basis, k, shortest=True)
    return frame.pack(float(bulk[0]), ratios, u)
