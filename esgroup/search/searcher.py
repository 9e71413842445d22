"""Ask and tell: the one object that changes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.groups import Group
from esgroup.running.limits import parse_limits
from esgroup.search import arguments, late, stopping, tell_input
from esgroup.search.late import Asked
from esgroup.search.saving import Saving
from esgroup.strategies.evolution import SIGMA, Generation

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

_STEPS = np.array(1e-120), np.array(1e120)  # standard deviations whose squares are numbers


class Searcher(Saving):
    """Search for the minimum of a function by asking for points and telling their values.

        search = Searcher(x0, sigma0=0.5)
        while not search.stop():
            X = search.ask()                               # (popsize, dim), read-only
            search.tell([f(x) for x in X])                 # NaN = that run failed
        search.result                                      # scipy.optimize.OptimizeResult

    Arguments: `start`, a point, a `Gaussian`, another distribution (a Wishart, say: see space_searcher.py), or another
    Searcher, whose distribution and space are taken; `sigma0`, the standard deviation of the first points, one number
    or one for each coordinate (by default a quarter of the bounds, else 0.3 max|x0|); `structure`, a group or its
    spelling; `popsize`, values in a generation; `bounds`, SciPy's Bounds, a pair of numbers or d pairs; `algorithm`,
    "default" or "paper" (the plain published update); `decoding`, whether scales of single coordinates are learnt apart
    ("auto": for dense structures); `mirrored`, samples in pairs +-z; `noise="adapt"`, learning rates from the
    signal-to-noise ratio, for noisy or multimodal functions; `cov0`, a first covariance, multiplied by sigma0^2;
    `fixed`, coordinates that stay at x0 (indices or mask) or at values (mapping); `integer`, coordinates that are whole
    numbers; `rng`, a seed or generator; and what ends the search.

    All values told count, those of points never asked as well: the distribution moves as soon as `popsize` values are
    there.
    """

    def __new__(cls, start: Any = None, *_: Any, **__: Any) -> Self:
        if cls is Searcher and not isinstance(start, (np.ndarray, list, tuple, Searcher)):
            from esgroup.strategies.spaces import strategy_class

            if strategy_class(start) is not None:
                from esgroup.search.space_searcher import SpaceSearcher

                return super().__new__(SpaceSearcher)  # type: ignore[return-value]  # which is a Searcher
        return super().__new__(cls)

    def __init__(
        self,
        start: Any,
        sigma0: Any = None,
        *,
        structure: Group | str = "auto",
        popsize: int | None = None,
        bounds: Any = None,
        algorithm: str = "default",
        decoding: bool | str = "auto",
        mirrored: bool = False,
        noise: str | None = None,
        cov0: Any = None,
        fixed: Any = None,
        integer: Any = None,
        rng: Any = None,
        max_evals: int | None = None,
        max_iters: int | None = None,
        max_time: float | None = None,
        target: float | None = None,
    ) -> None:
        self._limits = parse_limits(max_evals, max_iters, max_time, target)
        begin = arguments.begin(start, sigma0, bounds, fixed, integer, cov0)
        made = arguments.configure(
            begin,
            structure=structure,
            popsize=popsize,
            algorithm=algorithm,
            decoding=decoding,
            mirrored=mirrored,
            noise=noise,
        )
        self._space, self._options, self._evolution, self._state, self.popsize, self.structure_note = made
        self.rng = arguments.generator(rng)
        self._first_stds = np.sqrt(self._evolution.variances(self._state))
        self._find_step_limits()
        self._clear()

    @classmethod
    def from_data(cls, X: Any, f: Any, sigma0: Any = None, **options: Any) -> Self:
        """A search from where the best of evaluated points are and as they are spread (warm_start); options as above.

        The best feasible point counts as found, but not as an evaluation.
        """
        from esgroup.search import warm_start

        x0, sigma0, cov0 = warm_start.start_from_data(X, f, sigma0)
        x0 = warm_start.moved_inside(x0, options.get("bounds"), options.get("integer"))
        search = cls(x0, sigma0, cov0=cov0, **options)
        search.best_x, search.best_f = warm_start.best_feasible(search._space, X, f)
        return search

    def _find_step_limits(self) -> None:
        self._least_steps, self._most_steps = self._space.least_steps(self.popsize), self._space.most_steps()
        self._limited = self._least_steps is not None or self._most_steps is not None

    # ---- ask ----------------------------------------------------------------------------------------------------

    def ask(self, n: int | None = None) -> Array:
        """n points (popsize by default), read-only and feasible; earlier ones may still be out."""
        n = self.popsize if n is None else checks.whole_number("n", n, least=1)
        dim = self._evolution.dim
        generation, self._spare = self._spare, None
        if generation is None or len(generation.z) != n + 1:
            generation = Generation.empty(n, dim)
        points = np.empty((n, dim))
        self._evolution.sample(self._state, n, self.rng, generation, points)
        taken = self._take_injected(generation, points) if len(self._injected) else None
        x = points if self._space.plain else self._space.decode(points)
        if taken is not None:
            x[: len(taken)] = taken  # exactly, although a long step counts as a shorter one
        x.flags.writeable = False
        self._last = Asked(x, generation, self.nit)
        self._asked.append(self._last)
        return x[:]  # a view, which cannot be made writeable again

    def inject(self, X: Any) -> None:
        """Put points into the next asks, in place of samples; they must be feasible."""
        points = tell_input.points(X, self.shape)
        self._check_feasible(points)
        self._injected = np.concatenate([self._injected, points])

    def _check_feasible(self, points: Array) -> None:
        self._space.check_feasible("X", points)

    def _take_injected(self, generation: Generation, points: Array) -> Array:
        taken, self._injected = self._injected[: len(points)], self._injected[len(points) :]
        generation.z[: len(taken)] = self._whitened(taken)
        self._evolution.place(self._state, generation, points)
        return taken

    # ---- local coordinates and the update --------------------------------------------------------------------------

    def _whitened(self, x: Array) -> Array:
        return late.whitened(self._space, self._evolution, self._state, x)

    def _rows(self, generation: Any) -> Array:
        """The local coordinates of the points of a generation."""
        rows: Array = generation.z[:-1]
        return rows

    def _gathered(self, z: Array) -> Any:
        """The generation of points with these local coordinates."""
        generation = Generation.empty(len(z), self._evolution.dim)
        generation.z[:-1] = z
        self._evolution.place(self._state, generation, np.empty((len(z), self._evolution.dim)))
        return generation

    def _advance(self, generation: Any, order: Any, ranked: list[float]) -> None:
        """Move the distribution by a generation, best first."""
        self._evolution.update(self._state, generation, order)
        if ranked[0] == ranked[int(0.7 * len(ranked))] and self._may_leave_plateau():
            self._evolution.leave_plateau(self._state, len(ranked))
        if self._limited:
            self._evolution.limit_steps(self._state, self._least_steps, self._most_steps)
        if self.nit % 20 == 19 and not 1e-60 < self._state.scalars[SIGMA] < 1e60:  # past all reasons to stop
            self._evolution.limit_steps(self._state, *_STEPS)

    def _may_leave_plateau(self) -> bool:
        """Not the plain published update, and not for ever: a constant function is no reason to diverge."""
        first = math.exp(float(np.log(self._first_stds).mean()))
        return self._options.algorithm != "paper" and self.sigma < 1e5 * first

    # ---- what is known ------------------------------------------------------------------------------------------

    @property
    def dim(self) -> int:
        """Coordinates of a point."""
        return self._space.dim

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a point."""
        return (self.dim,)

    @property
    def structure(self) -> Group:
        """The group of the square root A."""
        return self._evolution.group

    @property
    def mean(self) -> Array:
        """The mean of the distribution, as a feasible point."""
        mean: Array = self._space.decode(self._state.mean[None])[0].copy()  # decode may return what it was given
        return mean

    @property
    def stds(self) -> Array:
        """Standard deviation of every coordinate, 0 where it is fixed."""
        return self._space.to_user_stds(self._state.mean, np.sqrt(self._evolution.variances(self._state)))

    @property
    def sigma(self) -> float:
        """The overall step size: the geometric mean of the standard deviations of the searched coordinates."""
        return math.exp(0.5 * float(np.log(self._evolution.variances(self._state)).mean()))

    @property
    def axis_ratio(self) -> float:
        """Longest to shortest axis of the distribution; beyond 100 coordinates that of single coordinates."""
        return self._evolution.axis_ratio(self._state)

    def stop(self) -> dict[str, str]:
        """Why the search should end: empty while it runs; asking and telling still work afterwards."""
        return stopping.reasons(self)

    @property
    def details(self) -> dict[str, Any]:
        """What the result of a search over this space has besides, by name: nothing over vectors."""
        return {}

    @property
    def result(self) -> OptimizeResult:
        """Best point, value, counts and why the search stopped."""
        from esgroup.search.result import result

        return result(self)

    def __repr__(self) -> str:
        state = f"{self.nfev:,} evaluations, best value {self.best_f:.6g}" if self.nfev else "no values yet"
        return f"<Searcher over {self.dim} coordinates, {self.structure!r}, popsize {self.popsize}: {state}>"
