"""The arguments of a `Searcher`: checks, defaults, and the strategy they describe."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions import Gaussian
from esgroup.distributions.categorical import Categorical
from esgroup.distributions.matrix_gaussian import MatrixGaussian
from esgroup.domains.base import Arrays, Domain, Place, Shaped
from esgroup.domains.box import Box, Fixed, bounds_of_entries, make_box, moved_inside, parse_bounds
from esgroup.domains.named import Named, free_domain
from esgroup.groups import Diagonal, Frame, Full, Group, as_group, spell
from esgroup.groups.spelling import follows
from esgroup.options import SearchOptions
from esgroup.rankings import AugmentedLagrangian, ByValue, Ranking
from esgroup.search.models import assisted, has_model
from esgroup.space import Space
from esgroup.space.parameters import Angle, Integer, Parameter, Real, spelled
from esgroup.stopping.budgets import Limits
from esgroup.strategies.base import Relocation, Strategy
from esgroup.strategies.categorical import CategoricalSearch
from esgroup.strategies.evolution import SearchState
from esgroup.strategies.frames import FULL_UP_TO
from esgroup.strategies.in_domain import Within, innermost, relocated, within
from esgroup.strategies.model import ModelSearch
from esgroup.strategies.product import ProductSearch
from esgroup.strategies.registry import strategy_class
from esgroup.strategies.vector import VectorSearch, is_decoded

FRAME_FROM = 80  # variables from which "auto" is a frame; below, the full matrix is learned as fast
_OF_A_BOX = "bounds", "fixed", "integer"
_DEVICES = "algorithm", "decoding", "mirrored", "noise", "step_size"  # of Gaussians
_LARGE = 1e300
STEPS = 1e-100, 1e100  # smallest and largest initial standard deviation: squares and products stay finite
MEMORY_SHARE = 0.5  # share of the machine's memory that the matrices of a search may use


class Beginning(NamedTuple):
    """Start of a search before its structure is known, with covariance diag(steps) correlation diag(steps)."""

    box: Box
    mean: Array
    steps: Array
    correlation: Array | None
    group: Group | None = None  # of the distribution or search it starts from
    root: Array | None = None  # an element of this group; the covariance has the root diag(steps) root


def strategy_for(
    start: Any, sigma0: Any, options: SearchOptions, limits: Limits, ranking: Ranking
) -> Strategy:
    """Return the strategy for a start: a point, a distribution, a strategy, or another search as `Inherited`."""
    strategy = _strategy(start, sigma0, options, limits, constrained=not ranking.by_values)
    model = "model='quadratic'" if options.model == "quadratic" else "a model" if has_model(strategy) else ""
    if not ranking.by_values and (needs := model or strategy.traits.needs_values):
        raise ValueError(f"constraints cannot be combined with {needs}: leave one of them out")
    return strategy


def _strategy(start: Any, sigma0: Any, options: SearchOptions, limits: Limits, *, constrained: bool) -> Strategy:
    given = options.given() | ({} if sigma0 is None else {"sigma0": sigma0})
    if options.model in (None, "auto"):  # the search decides
        given.pop("model", None)
    if isinstance(start, Strategy):
        return _within_bounds(start, given, options)
    if isinstance(start, Domain):
        return assisted(_over(start, given, options), options, limits.max_evals, constrained=constrained)
    if isinstance(start, Space | SpaceData):
        space, data = (start, None) if isinstance(start, Space) else (start.space, start)
        named = _space_search(space, data, sigma0, given, options)
        return assisted(named, options, limits.max_evals, constrained=constrained)
    if isinstance(start, MatrixGaussian):
        matrices = _matrix_search(start, sigma0, given, options)
        return assisted(matrices, options, limits.max_evals, constrained=constrained)
    if not isinstance(start, (np.ndarray, list, tuple)) and given.keys() & {*_DEVICES, "structure", "model"}:
        start = _as_gaussian(start)
    kind = None if isinstance(start, (np.ndarray, list, tuple)) else strategy_class(start)
    if kind is None:
        refuse_start(start, options.bounds)
        vectors = _vector_search(start, sigma0, options)
        return assisted(vectors, options, limits.max_evals, constrained=constrained)
    of_gaussians = given.keys() & {*_DEVICES, "cov0", "model"} or follows(options.structure)
    if kind.__name__ == "WishartSearch" and of_gaussians:
        return assisted(_log_search(start, given, options), options, limits.max_evals, constrained=constrained)
    popsize = given.pop("popsize", None)
    if popsize is not None:
        popsize = checks.whole_number("popsize", popsize, least=2)
    made: Any = kind
    begins_with, own = getattr(kind, "begins_with", ()), {field.name for field in fields(made)}
    if "options" in own:
        given = {name: value for name, value in given.items() if name not in _DEVICES} | {"options": options.stored()}
    boxed = set(_OF_A_BOX) - own if kind.__name__ == "UnivariateSearch" else set()
    _refuse(given, own | {*begins_with} | boxed, start)
    strategy: Any = made(start, popsize, **{name: value for name, value in given.items() if name in own})
    if first := {name: given[name] for name in begins_with if name in given}:
        strategy = strategy.beginning(**first)
    return _in_box(strategy, options) if boxed else strategy


def refuse_start(start: Any, bounds: Any = None, *, matrices: bool = False) -> None:
    """Raise ValueError for common mistakes in place of x0, with what to write instead."""
    shape: tuple[int, ...] = ()
    wanted = "x0 must be a point, such as [0.0, 0.0], or a Space of named parameters"
    if start is None:
        raise ValueError(f"{wanted}, got None{_middle(bounds)}")
    if isinstance(start, Mapping):
        names = ", ".join(f"{name!r}: {spelled(value)}" for name, value in start.items()) or "'x': Real(0, 1)"
        raise ValueError(f"{wanted}, got a dict: wrap it, esgroup.Space({{{names}}})")
    if isinstance(start, (str, bytes)):
        raise ValueError(f"{wanted}, got {start!r}")
    if isinstance(start, (list, tuple)) and any(isinstance(one, Parameter) for one in start):
        start = next(one for one in start if isinstance(one, Parameter))
    if isinstance(start, Parameter):
        raise ValueError(f"{wanted}, got a parameter without a name: write esgroup.Space({{'x': {spelled(start)}}})")
    if isinstance(start, type):
        raise ValueError(f"{wanted}, got the class {start.__name__}: write {start.__name__}(...)")
    if callable(start) and strategy_class(start) is None:
        raise ValueError(f"{wanted}, got {start!r}: a function is fun, the first argument of minimize")
    if isinstance(start, (int, float)):
        raise ValueError(f"x0 must have shape (n,), got (), the number {start!r}: write [{start!r}]")
    if not matrices and isinstance(start, (np.ndarray, list, tuple)):
        with suppress(ValueError):  # rows of unequal length
            shape = np.shape(start)
    if len(shape) > 1:
        advice = "flatten it, or give space='matrix' to esgroup.minimize"
        raise ValueError(f"x0 must have shape (n,), got {shape}: {advice}")


def _middle(bounds: Any) -> str:
    """The advice to start in the middle of the bounds, if every variable has them."""
    try:
        pairs = np.column_stack([bounds.lb, bounds.ub]) if hasattr(bounds, "lb") else np.array(bounds, dtype=np.float64)
    except (TypeError, ValueError):
        return ""
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.isfinite(pairs).all():
        return ""
    return f": the middle of the bounds is {checks.shown(pairs.mean(axis=1).tolist())}"


def _refuse(given: dict[str, Any], own: set[str], start: Any) -> None:
    """Raise ValueError for arguments that the start does not allow."""
    for name in given:
        if name not in own:
            why = "has its own" if name in ("sigma0", "structure", "cov0", "popsize") else "has none"
            raise ValueError(f"{name} cannot be given here: leave it out, {type(start).__name__} {why}")


def _over(domain: Domain, given: dict[str, Any], options: SearchOptions) -> Strategy:
    """Return a search over vectors within a user-defined domain."""
    for name in ("sigma0", "bounds", "fixed", "integer"):
        if name in given:
            raise ValueError(f"{name} cannot be given with a domain: {type(domain).__name__} defines it")
    place = domain.begin() or Place(np.zeros(domain.size), np.ones(domain.size))
    vectors = _vector_search(place.mean, place.steps, options)
    moved = relocated(vectors, Relocation(vectors.popsize, place, domain.limits(vectors.popsize)))
    return Within(domain, moved)


def _within_bounds(strategy: Strategy, given: dict[str, Any], options: SearchOptions) -> Strategy:
    """Return a user-defined strategy, which has its own start, within bounds, with fixed and integer variables."""
    bounded = len(strategy.shape) == 1 and not isinstance(strategy, Within)
    _refuse(given, set(_OF_A_BOX) if bounded else set(), strategy)
    return _in_box(strategy, options)


def _in_box(strategy: Strategy, options: SearchOptions) -> Strategy:
    """Return a search over vectors with its own start within bounds, with fixed and integer variables."""
    if all(getattr(options, name) is None for name in _OF_A_BOX):
        return strategy
    state = strategy.start()
    x0 = moved_inside(strategy.mean(state), options.bounds, options.integer)
    box = make_box(x0, options.bounds, options.fixed, options.integer, strategy.stds(state))
    _check_support(strategy, box)
    if not box.fixed.any():
        return within(strategy, box)
    fixed = Fixed(box)
    return Within(fixed, within(strategy, fixed.free))


def _check_support(strategy: Strategy, box: Box) -> None:
    """Refuse a box with points outside the support of the distribution."""
    rule = getattr(strategy.domain, "rule", None)
    if rule is not None:
        ends = np.tile(box.x0, (2, 1))
        ends[:, box.free] = np.clip(box.mirrors, -_LARGE, _LARGE)
        try:
            rule("bounds", ends)
        except ValueError as error:
            kind = f"bounds must lie within the support of {strategy.about}"
            raise ValueError(f"{kind}, with a margin of a fiftieth of their range: {error}") from None


def _matrix_search(start: MatrixGaussian, sigma0: Any, given: dict[str, Any], options: SearchOptions) -> Strategy:
    """Return the search over the entries, read row by row, with the group of both sides, or a frame."""
    _refuse(given, set(given) - (set() if follows(options.structure) else {"structure"}), start)
    shape, free = start.shape, replace(options, bounds=None, fixed=None, integer=None)
    masks = {name: _by_rows(getattr(options, name), shape) for name in ("fixed", "integer")}
    bounds = options.bounds if options.bounds is None else bounds_of_entries(options.bounds, shape)
    found = _in_box(_vector_search(start, sigma0, free), replace(options, bounds=bounds, **masks))
    return Within(Shaped(shape, found.domain), found)


def _log_search(start: Any, given: dict[str, Any], options: SearchOptions) -> Strategy:
    """Return the search with a Gaussian over logarithms of matrices that is a Wishart's to first order."""
    from esgroup.domains.positive import PositiveDefinite

    _refuse(given, {*_DEVICES, "cov0", "model", "sigma0", "structure", "popsize"}, start)
    if not isinstance(start.structure, Full):
        kind = spell(start.structure)
        raise ValueError(f"structure must be full for a Wishart with an option of Gaussians, got {kind!r}")
    dim, sigma0 = len(start.mean), given.get("sigma0")
    width = 1 / math.sqrt(start.first_dof()) if sigma0 is None else sigma0 / math.sqrt(2)
    entries = _vector_search(np.zeros(dim * (dim + 1) // 2), width, options)
    return Within(PositiveDefinite(np.linalg.cholesky(start.mean)), entries)


def _by_rows(mask: Any, shape: tuple[int, ...]) -> Any:
    """A mask of the entries of a matrix as a mask of a vector; anything else unchanged."""
    return np.ravel(mask) if isinstance(mask, (list, tuple, np.ndarray)) and np.shape(mask) == shape else mask


def _vector_search(start: Any, sigma0: Any, options: SearchOptions, named: Named | None = None) -> Strategy:
    """Check all arguments and return a search over vectors, or over the numbers of a space of named parameters."""
    place = _place(start, sigma0, options.bounds, options.fixed, options.integer, options.cov0)
    dim, popsize = len(place.mean), options.popsize
    group, note = _structure(options, dim, place, within=named is not None)
    options = replace(options.stored(), decoding=is_decoded(group, options))
    _check_memory(group, options)
    popsize = checks.whole_number("popsize", default_popsize(dim) if popsize is None else popsize, least=2)
    if popsize == 2 and options.step_size == "tpa":
        why = "two points of a generation lie on one line and test the step size"
        raise ValueError(f'popsize must be at least 3 with step_size="tpa", got 2: {why}')
    _check_steps(place.steps)
    limits = place.box.limits(popsize)
    steps, correlation, root = _first_covariance(group, place)
    search = VectorSearch(
        group, place.mean, steps, limits.least, limits.most, options, popsize, correlation, root, note
    )
    return search if place.box.plain else Within(place.box, search)


def ranking_for(constraints: int | Ranking | None, equalities: Any, tolerance: Any) -> Ranking:
    """Return the ranking: by values, by values and constraints, or the one passed."""
    if isinstance(constraints, Ranking):
        return constraints
    number = 0 if constraints is None else checks.whole_number("constraints", constraints)
    if constraints is None and not _is_empty(equalities):
        text = "equalities are indices of constraints: give the number of constraints as well"
        raise ValueError(f"{text}, got {equalities!r}")
    return AugmentedLagrangian(number, equalities, tolerance) if number else ByValue()


def _is_empty(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and not value


def default_popsize(dim: int) -> int:
    """Return 4 + floor(3 ln dim), the default of CMA-ES."""
    return 4 + int(3 * math.log(dim))


def generator(rng: Any) -> np.random.Generator:
    """Return the random number generator for a seed or generator."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise type(error)(f"rng must be None, a seed (an integer >= 0) or a generator, got {rng!r}") from None


def _structure(options: SearchOptions, dim: int, place: Beginning, *, within: bool) -> tuple[Group, str]:
    """Return the group, and a note if it was chosen automatically."""
    if options.structure != "auto":
        return as_group(options.structure, dim, searched=True), ""
    if place.group is not None:
        return place.group, ""
    modeled = options.model not in (None, "auto")
    plain = not modeled and options.noise is None and options.algorithm != "paper"
    if dim >= FRAME_FROM and plain and place.correlation is None and not within:
        return Frame(dim), "Structure 'frame' was chosen"
    if dim <= FULL_UP_TO:
        return Full(dim), "Structure 'full' was chosen"
    return Diagonal(dim), f"Structure 'diagonal' was chosen because 'full' is slow beyond {FULL_UP_TO:,} variables"


def _check_steps(steps: Array) -> None:
    least, most = STEPS
    if (bad := (steps < least) | (steps > most)).any():
        wanted = f"from {least:g} to {most:g}: choose other units"
        raise ValueError(f"sigma0 must lead to standard deviations {wanted}, got {steps[bad.argmax()]:g}")


def _check_memory(group: Group, options: SearchOptions) -> None:
    """Raise ValueError before anything is allocated; a dense fit or inverse needs temporaries of the same size."""
    copies = 2 + bool(options.decoding and group.carries_inverse) + 2 * (options.noise is not None)
    needed, memory = 8 * copies * group.size, machine_memory()
    if needed > MEMORY_SHARE * memory:
        name = type(group).__name__
        raise ValueError(
            f"structure {name} needs about {needed / 2**30:,.1f} GiB for {group.dim:,} variables, more than "
            f"{MEMORY_SHARE:.0%} of this machine's {memory / 2**30:,.1f} GiB: use structure='frame' or 'diagonal'"
        )


def machine_memory() -> float:
    """Return the bytes of memory of the machine or container; infinity if the system does not report them."""
    try:
        memory = float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        memory = math.inf
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as file:
            return min(memory, float(file.read()))
    except (OSError, ValueError):  # no container, or no limit ("max")
        return memory


def _first_covariance(group: Group, place: Beginning) -> tuple[Array, Array | None, Array | None]:
    """Return steps, and a correlation or a root in the given group, which keeps as much of another one as it can."""
    steps, correlation = place.steps, place.correlation
    if place.root is None or place.group is None:
        return steps, correlation, None
    if place.group == group:
        return steps, None, place.root
    if group.dim > FULL_UP_TO:  # the matrices would be large: only standard deviations are kept
        return steps * np.sqrt(place.group._squared_row_norms(place.root)), correlation, None
    dense = place.group._dense(place.root)  # another structure: the nearest element
    return steps, dense @ dense.T, None


# ---- named parameters --------------------------------------------------------------------------------------------

class SpaceData(NamedTuple):
    """Mean and covariance of evaluated points of a space, for all its numbers in the coordinates u."""

    space: Space
    mean: Array
    covariance: Array
    probabilities: tuple[tuple[float, ...], ...]  # of every choice


def _with_options(space: Space, sigma0: Any, options: SearchOptions) -> Space:
    """Return the space with the widths, kinds and bounds that options give by name."""
    parameters: dict[str, Any] = dict(space.parameters)
    if isinstance(sigma0, Mapping):
        for name, width in sigma0.items():
            parameters[name] = replace(_number(space, "sigma0", name, Real | Integer | Angle), width=width)
    bounds, whole = options.bounds or {}, options.integer or ()
    if not isinstance(bounds, Mapping):
        wanted = "a mapping of names to pairs (lower, upper) with a Space"
        raise ValueError(f"bounds must be {wanted}, got {checks.shown(bounds)}")
    if whole is True:
        whole = [name for name in space if isinstance(space[name], Real)]
    if isinstance(whole, str) or not isinstance(whole, Iterable):
        raise ValueError(f"integer must be True or a list of names with a Space, got {whole!r}")
    for name in whole:
        _number(space, "integer", name, Real)
        parameters[name] = Integer(**{one.name: getattr(parameters[name], one.name) for one in fields(Real)})
    for name, pair in {**dict.fromkeys(whole), **bounds}.items():
        one = _number(space, "bounds", name, Real | Integer)
        (lower,), (upper,), _ = parse_bounds(None if pair is None else [pair], 1)
        lower = lower if one.lower is None else max(lower, one.lower)
        upper = upper if one.upper is None else min(upper, one.upper)
        if isinstance(parameters[name], Integer):
            lower, upper = np.ceil(lower), np.floor(upper)
        sides = (side if math.isfinite(side) else None for side in (lower, upper))
        parameters[name] = replace(parameters[name], **dict(zip(("lower", "upper"), sides, strict=True)))
    return Space(parameters)


def _number(space: Space, what: str, name: str, kinds: Any) -> Any:
    """The parameter with this name, which must be of one of the kinds."""
    space.place(what, name)
    if not isinstance(space[name], kinds):
        raise ValueError(f"{what} must name numbers of the space, got {name!r}, {space[name].noun}")
    return space[name]


def _space_search(
    space: Space, data: SpaceData | None, sigma0: Any, given: dict[str, Any], options: SearchOptions
) -> Strategy:
    """Check all arguments and return a search over named parameters."""
    if data is None:
        space = _with_options(space, sigma0, options)
    else:
        _refuse(given, set(given) - {"bounds", "integer", "cov0"}, space)
    by_name = data is None and isinstance(sigma0, Mapping)
    factor = None if sigma0 is None or by_name else checks.real_number("sigma0", sigma0, positive=True)
    named = free_domain(space, options.fixed)
    searched, among = len(named.numbers) + len(named.choices), np.array(named.free)[~space.is_choice]
    popsize = default_popsize(searched) if options.popsize is None else options.popsize
    popsize = checks.whole_number("popsize", popsize, least=2)
    numbers = choices = None
    if len(named.numbers):
        columns = named.columns
        bounds = np.column_stack([columns.lower, columns.upper])
        inner = replace(options, popsize=popsize, fixed=None, bounds=bounds, integer=columns.integer)
        covariance = None if data is None else data.covariance
        if options.cov0 is not None:
            covariance = checks.covariance("cov0", options.cov0, len(among))
        steps: Any = factor
        if covariance is not None:
            inner = replace(inner, cov0=covariance[np.ix_(among, among)])
        else:
            steps = columns.width * (1.0 if factor is None else factor)
        numbers = _vector_search(columns.start if data is None else data.mean[among], steps, inner, named)
    else:
        for name in given:
            if name not in ("popsize", "fixed", "algorithm", "model"):
                why = "it is for numbers, and there are only choices to search"
                raise ValueError(f"{name} cannot be given here: {why}")
    if len(named.choices):
        all_first = space.probabilities if data is None else data.probabilities
        chosen = np.array(named.free)[space.is_choice]
        first = [q for q, one in zip(all_first, chosen, strict=True) if one]
        choices = CategoricalSearch(Categorical(first), popsize, options.algorithm)
    if numbers is None or choices is None:
        return Within(named, choices if numbers is None else numbers)  # type: ignore[arg-type]  # one is there
    return Within(named, ProductSearch(numbers, choices))


# ---- where to start ---------------------------------------------------------------------------------------------


def _place(start: Any, sigma0: Any, bounds: Any, fixed: Any, integer: Any, cov0: Any) -> Beginning:
    """Return the start at a point, at a distribution, or at the distribution of another search."""
    if isinstance(start, Inherited):
        if isinstance(start.strategy, ModelSearch):
            start = Inherited(start.strategy.plain, start.state.plain)
        if not _is_over_vectors(start.strategy):
            over = f"{start.strategy.about} in a domain of type {type(start.strategy.domain).__name__}"
            text = f"a search passed as start must have a Gaussian over vectors, got {over}"
            raise ValueError(f"{text}: start from a distribution, or save and load the search")
        return _at_search(start.strategy, start.state, sigma0, bounds, fixed, integer, cov0)
    if isinstance(start, Gaussian):
        return _at_gaussian(start, sigma0, bounds, fixed, integer, cov0)
    if isinstance(start, MatrixGaussian):
        first = (1.0 if start.sigma0 is None else start.sigma0) if sigma0 is None else sigma0
        place = _at_point(start.mean.ravel(), first, bounds, fixed, integer, cov0)
        return place._replace(group=start.group if start.form == "covariance" else start.group.transposed)
    return _at_point(start, sigma0, bounds, fixed, integer, cov0)


def _is_over_vectors(strategy: Strategy) -> bool:
    return isinstance(innermost(strategy), VectorSearch) and type(strategy.domain) in (Arrays, Box)


class Inherited(NamedTuple):
    """Another search, from whose distribution a new one starts."""

    strategy: Strategy
    state: Any


def _at_search(
    search: Strategy, state: SearchState, sigma0: Any, bounds: Any, fixed: Any, integer: Any, cov0: Any
) -> Beginning:
    """Return a start at the distribution of another search, in its box unless bounds are given; sigma0 rescales it."""
    if fixed is not None or integer is not None or cov0 is not None:
        raise ValueError("fixed, integer and cov0 are inherited from the search passed as start: leave them out")
    mean, vectors = search.mean(state), innermost(search)
    box = search.domain if isinstance(search.domain, Box) else make_box(mean, sigma0=search.stds(state))
    where = box if bounds is None else box.with_bounds(mean, bounds)
    scale = state.sigma * state.scale
    if sigma0 is not None:
        scale = scale * where.initial_steps(sigma0) / search.view(state).spread()
    return Beginning(where, where.encode(mean[None])[0], scale, None, vectors.traits.structure, state.root.copy())


def _at_point(x0: Any, sigma0: Any, bounds: Any, fixed: Any, integer: Any, cov0: Any) -> Beginning:
    """Return a start at a point; with cov0 the covariance is sigma0^2 cov0 (sigma0 = 1 by default)."""
    correlation = None
    if cov0 is not None:
        factors = make_box(x0, None, fixed, None, 1.0 if sigma0 is None else sigma0).steps0
        covariance = checks.covariance("cov0", cov0, len(factors))
        stds = np.sqrt(np.diagonal(covariance))
        sigma0, correlation = stds * factors, covariance / stds[:, None] / stds
    where = make_box(x0, bounds, fixed, integer, sigma0)
    if correlation is not None:
        correlation = correlation[np.ix_(where.free, where.free)]
    return Beginning(where, where.encode(where.x0[None])[0], where.initial_steps(), correlation)


def _at_gaussian(start: Gaussian, sigma0: Any, bounds: Any, fixed: Any, integer: Any, cov0: Any) -> Beginning:
    """Return a start at a Gaussian that has a mean; its group and square root are kept."""
    if cov0 is not None:
        raise ValueError("cov0 cannot be combined with a distribution as start: its covariance is known")
    state = start.state()
    if start.form == "precision":
        start, state = start.converted(state)
    stds = np.sqrt(start.group._squared_row_norms(state.root))
    where = make_box(state.mean, bounds, fixed, integer, stds if sigma0 is None else sigma0)
    if where.fixed.any():
        return _at_marginal(start, state.root, where)
    steps = where.initial_steps() / stds
    return Beginning(where, where.encode(state.mean[None])[0], steps, None, start.group, state.root)


def _at_marginal(start: Gaussian, root: Array, where: Box) -> Beginning:
    """Return a start at the marginal of the free variables, in a group of the same kind if possible."""
    correlation, group = None, None
    with suppress(ValueError):  # a group that has no spelling
        group = as_group(spell(start.group), where.size, searched=True)
    if start.group.dim <= FULL_UP_TO:
        rows = start.group._dense(root)[where.free]
        stds = np.sqrt((rows**2).sum(axis=1))
        correlation = rows @ rows.T / stds[:, None] / stds
    return Beginning(where, where.encode(where.x0[None])[0], where.initial_steps(), correlation, group)


def _as_gaussian(start: Any) -> Any:
    """Normals as a Gaussian with the diagonal group; anything else unchanged."""
    from esgroup.distributions.families import Normal, Product

    families: Any = start.families if isinstance(start, Product) else (start,)
    if not all(isinstance(one, Normal) for one in families):
        return start
    means, stds = np.array([(one.mean, one.std) for one in families]).T
    return Gaussian("diagonal", means, covariance=np.diag(stds**2))
