"""Ask and tell: the only object with mutable state."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.domains.box import moved_inside
from esgroup.groups import Group
from esgroup.options import DEFAULT_MODEL, Algorithm, Auto, Model, Noise, StepSizeRule, chosen, documented
from esgroup.rankings import Ranking, feasible
from esgroup.restarts import Restarts, as_restarts
from esgroup.search import arguments, late, models, tell_input
from esgroup.search.ledger import Ledger, PendingPoint, ids_of
from esgroup.search.runs import Runs
from esgroup.search.visible import VisibleSearch
from esgroup.space import Space
from esgroup.stopping.base import Rule, Stop, as_rules
from esgroup.stopping.budgets import parse_limits
from esgroup.stopping.looking import look_at
from esgroup.strategies.base import Indices, Proposed, Ranked, Strategy, on_plateau

if TYPE_CHECKING:
    from os import PathLike

    from esgroup.running.result import SearchResult


@checks.explained
@documented
class Searcher(VisibleSearch):
    """Search for the minimum of a function: ask for points, evaluate them, tell the values.

    Every value you tell counts, including values of points you never asked for. The distribution moves once it has
    `popsize` values, or more if values arrive generations late.

    A Searcher consists of a `strategy`, which knows the distribution and how it learns; the `state` of that strategy;
    a `ledger` of points and values; `limits`; and a generator `rng`. Only the Searcher changes them.

    Parameters
    ----------
    start
        A point; a `Space` of named parameters, whose points are dicts; a `Gaussian` or another distribution
        (`Wishart`, `MatrixGaussian`, `Mixture`, `Categorical`, a family of scalars);
        another Searcher over vectors, which provides the distribution and bounds; a `Strategy`, which accepts bounds,
        fixed and integer if it is over vectors; or a `Domain`, which accepts every option except these and sigma0. For
        the options that the others accept, see docs/how-to/combinations.md.
    sigma0 : default None
        Standard deviation of the first points: about a quarter of the width of the region in which you expect the
        minimum, one number or one per variable. By default it is a quarter of the range between finite bounds,
        elsewhere 0.3 max|x0|, or 1 if x0 is 0. With a `Space`, a mapping of names to widths or a factor for all widths.
    {options}
    constraints : default None
        The number of constraints g <= 0; `tell` then needs their values along with each fitness. Or another
        `esgroup.rankings.Ranking`, which defines what you tell in addition to values and which points are better.
    equalities : default ()
        Indices of the constraints that must equal 0.
    constraint_tol : default 1e-6
        How much a constraint may be violated, in its own units: one number, or one per constraint.
    restarts : default None
        "ipop", "bipop", or `IPOP(...)`, `BIPOP(...)` from `esgroup.restarts`: where a search without restarts would
        stop for a reason other than a limit, the next `ask` starts another run elsewhere.
    rng
        A seed or a generator.
    max_evals, max_iters, max_time, target
        When to stop: evaluations, generations, seconds, a value that is good enough.
    stop : default ()
        Additional stopping rules, one or a list: rules of `esgroup.stopping`, such as TolX(1e-6), or functions of the
        search that return a string or True to stop it. They are checked from the end of the first generation on.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid; the message names it and says what it must be and what it was.

    Examples
    --------
    >>> import esgroup
    >>> search = esgroup.Searcher([1.0, 1.0, 1.0], 0.5, target=1e-9, rng=1)
    >>> while not search.stop():
    ...     X = search.ask()                 # (popsize, dim), read-only
    ...     search.tell([x @ x for x in X])  # NaN: failed evaluation
    >>> search.result.success                # a scipy.optimize.OptimizeResult
    True
    """

    rules: tuple[Rule, ...] = ()
    accepts: Callable[[Any], bool] | None = None  # of a point as users see it: others are never asked
    _spare: Proposed | None = None  # whose arrays may be reused
    _looked: tuple[Strategy | None, Any] = None, ()  # built-in rules, and their strategy

    def __init__(
        self,
        start: Any,
        sigma0: Any = None,
        *,
        structure: Group | str = "auto",
        popsize: int | None = None,
        bounds: Any = None,
        algorithm: Algorithm = "default",
        decoding: bool | Auto = "auto",
        mirrored: bool = False,
        noise: Noise | None = None,
        step_size: StepSizeRule = "csa",
        model: Model | None = DEFAULT_MODEL,
        cov0: Any = None,
        fixed: Any = None,
        integer: Any = None,
        constraints: int | Ranking | None = None,
        equalities: Any = (),
        constraint_tol: float | list[float] | tuple[float, ...] | Array = 1e-6,
        rng: Any = None,
        max_evals: int | None = None,
        max_iters: int | None = None,
        max_time: float | None = None,
        target: float | None = None,
        stop: Stop = (),
        restarts: Literal["ipop", "bipop"] | Restarts | None = None,
    ) -> None:
        given = locals()
        self.rules = as_rules(stop)
        self.limits = parse_limits(max_evals, max_iters, max_time, target)
        if isinstance(start, Searcher):
            start = arguments.Inherited(start.strategy, start.state)
        self.rng = arguments.generator(rng)
        ranking = arguments.ranking_for(constraints, equalities, constraint_tol)
        strategy = arguments.strategy_for(start, sigma0, chosen(given), self.limits, ranking)
        self.strategy = strategy
        self.state = strategy.start(self.rng)
        self.ledger = Ledger(self.strategy.shape, ranking)
        self.structure_note = self.strategy.traits.note
        self.model_note = "" if strategy is start else models.note(model, strategy)
        self.first_spread = self.strategy.view(self.state).spread()
        self.noted: dict[str, str] = {}  # external reasons to stop
        repeated = as_restarts(restarts)
        self.runs = None if repeated is None else Runs(repeated, strategy, self.rng.spawn(1)[0])

    @classmethod
    def from_data(cls, X: Any, f: Any, sigma0: Any = None, *, space: Space | None = None, **options: Any) -> Self:
        """Start at the best of evaluated points, with their spread.

        Parameters
        ----------
        X
            Points, one per row; dicts with a space.
        f
            Their values; NaN and infinite ones are left out.
        sigma0 : default None
            Rescales the first standard deviations, or replaces them with one per variable.
        space : default None
            The `Space` of named parameters to which the points belong.
        **options
            Options of `Searcher`.

        Returns
        -------
        Searcher
            The best feasible point counts as found, but not as an evaluation. With constraints no point does, because
            the data do not include their values.
        """
        from esgroup.search import warm_start

        if "cov0" in options:
            raise TypeError("from_data() has no argument 'cov0': the points determine it, and sigma0= rescales it")
        if space is not None:
            checks.instance("space", space, Space)
            search = cls(warm_start.space_from_data(space, X, f), sigma0, **options)
            points, values = warm_start.feasible_named(search.strategy, X, f)
        else:
            x0, sigma0, cov0 = warm_start.start_from_data(X, f, sigma0)
            x0 = moved_inside(x0, options.get("bounds"), options.get("integer"))
            search = cls(x0, sigma0, cov0=cov0, **options)
            points, values = warm_start.feasible_rows(search.strategy, X, f)
        if not search.ledger.ranking.columns:  # whose values the data lack
            search.ledger.note_best(points, values[:, None])
        if search.strategy.traits.every_value:
            search._tell_values(points, values[:, None], np.full(len(values), -1), earlier=True)
        return search

    # ---- ask ----------------------------------------------------------------------------------------------------

    def ask(self, n: int | None = None) -> Any:
        """Return points to evaluate; earlier points may still be pending.

        Parameters
        ----------
        n : default None
            How many; the default is one generation, or what is left of `max_evals`.

        Returns
        -------
        array (n, *shape)
            Read-only and within the bounds; a list if points are of another kind, such as dicts.
        """
        since = self.ledger.clock.take_over()
        if self.runs is not None:
            self.begin_next_run()
        strategy, ledger, batch = self.strategy, self.ledger, self.batch_size
        number = self._affordable(batch) if n is None else checks.whole_number("n", n, least=1)
        if strategy.traits.in_parts or (number >= batch and (n is None or ledger.reserve is None)):
            drawn = self._draw(number, self._spare)
            self._spare = None
        else:
            drawn = ledger.drawn_together(number, batch, self._draw)
        if len(ledger.injected):
            drawn = self._with_injected(drawn)
        points = drawn.points
        if points.base is not None:  # through which it could be made writeable again
            points = points.copy()
            drawn = drawn._replace(points=points)
        points.setflags(write=False)
        ledger.hand_out(drawn)
        if strategy.traits.in_parts:
            self.state = strategy.asked(self.state, ids_of(drawn))
        ledger.clock.hand_over(since)
        shown = points[:]  # a view, which cannot be made writeable again
        return strategy.domain.to_user(shown)

    def _draw(self, n: int, spare: Proposed | None = None) -> Proposed:
        """n points of the current distribution; the ranking may have replaced some of them."""
        strategy, ledger = self.strategy, self.ledger
        drawn = strategy.sample(self.state, n, self.rng, spare)
        drawn = ledger.ranking.placed(ledger.standing, drawn, strategy, self.state)
        if self.accepts is None:
            return drawn
        return feasible.accepted(strategy, self.state, self.rng, drawn, self.accepts, ledger.best_x)

    def _affordable(self, n: int) -> int:
        """n, or what `max_evals` leaves if that is less; n if nothing is left but points are asked for anyway."""
        most = self.limits.max_evals
        if most is None:
            return n
        left = most - self.ledger.nfev
        return n if left <= 0 else min(n, left)

    def begin_next_run(self) -> None:
        """Start the next run if the current one has ended and restarts allow another; `ask` does this."""
        runs = self.runs
        if runs is None:
            return
        if runs.judged != self.ledger.nfev:
            self.stop()
        if runs.is_over:
            runs.begin(self)

    def begin_run(self, strategy: Strategy, rng: np.random.Generator) -> None:
        """Continue with a strategy from its start; counts, limits, the best point and pending points remain."""
        self.ledger.begin_run(self.nit)
        self.strategy, self.rng = strategy, rng
        self.state = strategy.start(rng)
        self.structure_note = strategy.traits.note
        self.first_spread, self._spare = strategy.view(self.state).spread(), None

    def inject(self, X: Any) -> None:
        """Return these points from the next asks, in place of samples.

        Parameters
        ----------
        X
            One or more points, in the form in which `ask` returns them.

        Raises
        ------
        ValueError
            If a point is not feasible.
        """
        points = self.strategy.domain.from_user("X", X)
        self.strategy.domain.check("X", points)
        self.ledger.injected = np.concatenate([self.ledger.injected, points])

    def _with_injected(self, drawn: Proposed) -> Proposed:
        ledger, n = self.ledger, len(drawn.points)
        taken, ledger.injected = ledger.injected[:n], ledger.injected[n:]
        drawn.points[: len(taken)], drawn.local[: len(taken)] = taken, self._local(taken)
        tags = None if drawn.tags is None else np.where(np.arange(n) < len(taken), 0, drawn.tags)
        ids = None if drawn.ids is None else np.where(np.arange(n) < len(taken), -1, drawn.ids)
        return drawn._replace(tags=tags, ids=ids, memo=None)

    def _local(self, points: Array) -> Array:
        """Local coordinates of points that were not drawn from the current distribution."""
        return self.strategy.shortened(self.strategy.local(self.state, points))

    # ---- tell ---------------------------------------------------------------------------------------------------

    def tell(self, *told: Any, constraints: Any = None) -> None:
        """Tell values: tell(fitness) for the last ask, tell(X, fitness) for any points, or tell([(x, f), ...]).

        Values may arrive late and in any order, and points need not have been asked for. If points are equal, a value
        goes to the one that was asked for first.

        Parameters
        ----------
        *told
            Values, NaN for a failed evaluation; or points and their values; or pairs of both. In a search with
            constraints, also triples (x, f, g).
        constraints : default None
            In a search with m constraints: their values, an array (n, m), at most 0 where satisfied, NaN where the
            evaluation failed.

        Raises
        ------
        ValueError, TypeError
            If values or points are invalid; the search is then unchanged.
        RuntimeError
            If tell(fitness) has no matching ask.
        """
        clock, before = self.ledger.clock, self.ledger.nfev
        since = clock.take_over()
        self._tell(told, constraints)
        clock.hand_over(since, self.ledger.nfev - before)

    def tell_place(self, place: PendingPoint, fitness: Any) -> None:
        """Tell the value of a pending point that is identified by its place (`ledger.out`) rather than its numbers."""
        ledger = self.ledger
        since = ledger.clock.take_over()
        outcomes = ledger.ranking.outcomes([fitness], None, 1)
        points = place.point[None]
        known = place.row in place.asked.out or place.asked.run < ledger.run  # of an earlier run, forgotten or not
        found = [place if known else None]
        ledger.take_back(found)
        self._add(points, outcomes, found)
        ledger.clock.hand_over(since, 1)

    def _tell(self, told: tuple[Any, ...], constraints: Any) -> None:
        one = told[0] if len(told) == 1 else None
        if constraints is None and self.ledger.ranking.columns and tell_input.are_triples(self.strategy, one):
            X, fitness, constraints = tell_input.from_triples(one)
            self._tell_points(self.strategy.domain.from_user("X", X), fitness, constraints)
        elif len(told) == 1 and (type(one) is np.ndarray or not self.strategy.domain.are_pairs(one)):
            self._tell_last(one, constraints)
        elif len(told) in (1, 2):
            X, fitness = told if len(told) == 2 else tell_input.from_pairs(one)
            self._tell_points(self.strategy.domain.from_user("X", X), fitness, constraints)
        else:
            raise TypeError(f"tell() takes fitness, or X and fitness, got {len(told)} arguments")

    def _tell_last(self, fitness: Any, constraints: Any) -> None:
        ledger, last = self.ledger, self.ledger.last
        if last is None:
            again = "tell(fitness) was called twice for one ask(), or without one: ask() again, or tell(X, fitness)"
            raise RuntimeError(again if ledger.nfev else "tell() was called before ask()")
        drawn = last.drawn
        outcomes = ledger.ranking.outcomes(fitness, constraints, len(drawn.points))
        last.out.clear()
        ledger.last = None
        if ledger.pool or ledger.lag > 1 or last.nit != ledger.nit or len(outcomes) < self.batch_size:
            self._add(drawn.points, outcomes, [PendingPoint(last, row) for row in range(len(outcomes))])
        else:
            strategy = self.strategy
            if ledger.lag:
                _, ledger.lag = late.judged(ledger.lag, [0] * len(outcomes), self.batch_size)
            self._move(drawn.points, drawn.local, drawn.tags, outcomes, outcomes, drawn.ids, drawn.memo)
            self._spare = drawn if self.strategy is strategy else None

    def _tell_points(self, points: Array, fitness: Any, constraints: Any) -> None:
        ledger = self.ledger
        last = ledger.last
        if last is not None and len(ledger.asked) <= 1 and np.array_equal(last.drawn.points, points):
            self._tell_last(fitness, constraints)
            return
        outcomes = ledger.ranking.outcomes(fitness, constraints, len(points))
        if not len(points):
            return
        found = ledger.recognized(points)
        if None in found:
            self.strategy.domain.check("X", points)
        ledger.take_back(found)
        self._add(points, outcomes, found)

    def _add(self, points: Array, outcomes: Array, found: Sequence[PendingPoint | None]) -> None:
        """Add points that were asked for, some in earlier generations, and points that were not (None).

        They are pooled until they make a generation; then the distribution moves with all of them.
        """
        ledger, batch = self.ledger, self.batch_size
        if ledger.run and any(place is not None and place.asked.run < ledger.run for place in found):
            past = [place is not None and place.asked.run < ledger.run for place in found]
            ledger.count_past(points[past], outcomes[past])
            rest = np.logical_not(past)
            points, outcomes, found = points[rest], outcomes[rest], list(itertools.compress(found, rest))
        ages = [0 if place is None else ledger.nit - place.asked.nit for place in found]  # in generations
        moving, ledger.lag = late.judged(ledger.lag, ages, batch)
        if not all(moving):
            ledger.note_best(points, outcomes)  # before the order changes
            still = np.logical_not(moving)
            self._keep(points[still], outcomes[still], list(itertools.compress(found, still)))
            points, outcomes, found = points[moving], outcomes[moving], list(itertools.compress(found, moving))
        if not len(points):
            return
        samples = late.samples(self.strategy, self.state, ledger.nit, points, outcomes, found)
        pool = [*ledger.pool, samples]
        parts = [*zip(*pool, strict=True)]
        if sum(map(len, parts[0])) < late.generation_size(batch, ledger.lag):
            self._keep(points, outcomes, found)
            ledger.pool = pool
            return
        local, tags, pooled = map(np.concatenate, parts)
        self._move(points, local, tags, pooled, samples.outcomes, _ids(found), None)
        ledger.pool = []

    def _keep(self, points: Array, outcomes: Array, found: Sequence[PendingPoint | None]) -> None:
        """Count outcomes that do not move the distribution, or not yet."""
        ledger = self.ledger
        ledger.standing = ledger.ranking.counted(ledger.standing, points, outcomes)
        ledger.count(points, outcomes)
        if self.strategy.traits.every_value:
            self._tell_values(points, outcomes, _ids(found))

    def _tell_values(self, points: Array, outcomes: Array, ids: Any, *, earlier: bool = False) -> None:
        """Tell the strategy values that do not complete a generation."""
        none = np.empty((0, 0)), np.empty(0, dtype=np.int64)
        told = self._with_values(Ranked(*none, first=self.first_spread, earlier=earlier), points, outcomes, ids)
        self.state = self.strategy.update(self.state, told)

    def _with_values(self, told: Ranked, points: Array, outcomes: Array, ids: Any) -> Ranked:
        """Add the values for the strategy, infinite where a point is not feasible."""
        values = outcomes[:, 0]
        counts = self.ledger.ranking.feasible(outcomes) | np.isnan(values)
        return told._replace(points=points, values=np.where(counts, values, math.inf), ids=ids)

    def _move(
        self, points: Array, local: Array, tags: Any, outcomes: Array, new: Array, ids: Any, memo: Any
    ) -> None:
        """Move by one generation; `points` and their `new` outcomes were told last, and failed ones move nothing."""
        strategy, ledger = self.strategy, self.ledger
        ranking, record = ledger.ranking, ledger.best_x
        ledger.standing = ranking.counted(ledger.standing, points, new)
        ledger.standing, scores, best = ranking.scores(ledger.standing, outcomes, tags, strategy, self.state)
        order = scores.argsort(kind="stable")  # NaN last
        ranked = scores[order].tolist()  # a list is faster to index
        all_succeeded = ranked[-1] == ranked[-1]
        ledger.count(points, new, order.item(0) if all_succeeded and ranking.by_values and new is outcomes else None)
        if ranked[0] == ranked[0]:
            plateau = on_plateau(ranked, strategy, self.state, self.first_spread)
            failed = 0 if all_succeeded else sum(value != value for value in ranked)
            first, median = self.first_spread, ranked[len(ranked) // 2]
            least = ranked[0] if best is None else best
            told = Ranked(local, order, plateau, tags, memo, first, failed, least, record, median)
            if strategy.traits.every_value:
                told = self._with_values(told, points, new, ids)
            self.state = strategy.update(self.state, told, self.state)
        elif strategy.traits.every_value:
            self._tell_values(points, new, ids)
        ledger.end_generation(ranked, local.shape[1])
        if (successor := strategy.successor(self.state)) is not None:
            self._hand_over(*successor)

    def _hand_over(self, strategy: Strategy, state: Any) -> None:
        same = self.strategy.traits.keeps_coordinates
        self.strategy, self.state = strategy, state
        self.structure_note = strategy.traits.note or self.structure_note
        for asked in self.ledger.asked:
            drawn = asked.drawn
            asked.drawn = drawn._replace(memo=None) if same else Proposed(drawn.points, self._local(drawn.points))
        spread = strategy.view(state).spread()
        if spread.shape != self.first_spread.shape:  # other coordinates: the comparison starts over
            self.first_spread = spread

    # ---- when to stop, and what was found ------------------------------------------------------------------------

    def stop(self) -> dict[str, str]:
        """Return why the search should stop, by name; empty while it runs. You can still ask and tell afterwards.

        With restarts it is empty as long as another run can start.
        """
        reasons = look_at(self)
        return (reasons if self.runs is None else self.runs.verdict(self, reasons)) | self.noted

    @property
    def result(self) -> SearchResult:
        """Best point, value, counts and why the search stopped."""
        from esgroup.search.result import result

        return result(self)

    def __repr__(self) -> str:
        state = f"{self.nfev:,} evaluations, best value {self.best_f:.6g}" if self.nfev else "no values yet"
        shape = " x ".join(map(str, self.shape)) + " variables" * (len(self.shape) == 1)
        return f"<Searcher over {shape}, {self.structure}, popsize {self.popsize}: {state}>"

    # ---- files --------------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Save everything needed to continue in one .npz file without pickle, either completely or not at all.

        Parameters
        ----------
        path
            The file, which is replaced if it exists.

        Raises
        ------
        OSError
            If it cannot be written; an existing file is kept.
        TypeError
            If the search has a generator, group or strategy that cannot be stored.
        """
        from esgroup.files import npz
        from esgroup.search import snapshot

        npz.write(path, snapshot.KIND, *snapshot.to_file(self))

    @classmethod
    def load(cls, path: str | PathLike[str], *, stop: Stop = (), restarts: Restarts | None = None) -> Self:
        """Load a saved search; it continues bit for bit as if it had not been interrupted.

        This requires the same versions, machine and number of BLAS threads: with dense matrices of a few hundred
        variables, the last digits can depend on the number of threads.

        Parameters
        ----------
        path
            A file written by `save`, or a checkpoint of `minimize`.
        stop : default ()
            Stopping rules, which are not in the file: pass them again.
        restarts : default None
            A restart strategy of your own, which is not in the file; "ipop" and "bipop" are.

        Returns
        -------
        Searcher
            The search, with its pending points.

        Raises
        ------
        CheckpointError
            If the file is something else or damaged.
        """
        from esgroup.files import npz
        from esgroup.search import snapshot

        with npz.reading(path, snapshot.KIND) as (header, arrays):
            search = snapshot.from_file(cls, header, arrays)
        search.rules = as_rules(stop)
        if restarts is not None and search.runs is not None:
            search.runs.restarts = as_restarts(restarts)
        return search

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_spare": None, "_looked": (None, ())}

    def __copy__(self) -> Self:
        return copy.deepcopy(self)  # copies must not share a state or a generator



def _ids(found: Sequence[PendingPoint | None]) -> Indices:
    """The ids of points, -1 for those that were not asked for."""
    return np.array([-1 if place is None else place.id for place in found], dtype=np.int64)
