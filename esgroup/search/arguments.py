"""From the arguments of a search to what it works with: space, structure, strategies, first state."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from esgroup import checks
from esgroup.checks import Array
from esgroup.distributions import Gaussian
from esgroup.groups import Diagonal, Full, Group, Heisenberg, Triangular, as_group, spell
from esgroup.strategies.adaptation import RateAdaptation
from esgroup.strategies.box import Space
from esgroup.strategies.box import space as make_space
from esgroup.strategies.decoding import Decoding
from esgroup.strategies.evolution import SIGMA, Evolution, SearchState
from esgroup.strategies.recombination import Cumulative, Published, Recombination
from esgroup.strategies.sampling import Sampling

if TYPE_CHECKING:
    from esgroup.search.searcher import Searcher

# Coordinates up to which "auto" is the full group. At 1000 it takes no more evaluations than any cheap structure on
# sphere, ellipsoids, Rosenbrock and cigar, for 0.4 ms each; above, time and memory grow with the square.
FULL_UP_TO = 1000
STEPS = 1e-100, 1e100  # smallest and largest standard deviation to begin with: squares and products stay numbers
MEMORY_SHARE = 0.5  # of the machine's memory that a search may use for its matrices


@dataclass(frozen=True)
class Options:
    """The strategies of a search, by name."""

    algorithm: str = "default"
    decoding: bool = False
    mirrored: bool = False
    noise: str | None = None

    def evolution(self, group: Group) -> Evolution:
        """The update that the options describe."""
        recombination: Recombination = Cumulative()
        if self.algorithm == "paper":
            recombination = Published()
        elif self.mirrored or self.noise is not None:  # the worse half of mirrored samples says what the better said
            recombination = Cumulative(negative_mean=0.0, damping=1.0)
        return Evolution(
            group,
            recombination,
            Decoding() if self.decoding else None,
            RateAdaptation() if self.noise == "adapt" else None,
            Sampling(orthogonal=self.algorithm != "paper", mirrored=self.mirrored),
        )


class Setup(NamedTuple):
    """All that a search starts with."""

    space: Space
    options: Options
    evolution: Evolution
    state: SearchState
    popsize: int
    structure_note: str


class Start(NamedTuple):
    """Where a search begins, before its structure is known: covariance = diag(steps) correlation diag(steps)."""

    space: Space
    mean: Array
    steps: Array
    correlation: Array | None
    group: Group | None = None  # of a distribution or another search
    root: Array | None = None  # an element of that group, with `steps` to its left


def configure(
    start: Start,
    *,
    structure: Group | str,
    popsize: int | None,
    algorithm: str,
    decoding: bool | str,
    mirrored: bool,
    noise: str | None,
) -> Setup:
    """Check everything and build the first state."""
    dim = len(start.mean)
    check_names(algorithm, noise)
    _one_of("decoding", decoding, "auto", True, False)
    mirrored = checks.flag("mirrored", mirrored)
    if algorithm == "paper" and (decoding is True or noise is not None):
        raise ValueError("algorithm='paper' is the plain published update: it takes neither decoding nor noise")
    group, note = _structure(structure, dim, start.group)
    decoded = decoding is True or (decoding == "auto" and algorithm != "paper" and isinstance(group, Full | Triangular))
    options = Options(algorithm, decoded and dim > 1, mirrored, noise)
    _check_memory(group, options)
    evolution = options.evolution(group)
    if popsize is None:
        popsize = default_popsize(dim)
    popsize = checks.whole_number("popsize", popsize, least=2)
    _check_steps(start.steps)
    state = _first_state(evolution, start)
    return Setup(start.space, options, evolution, state, popsize, note)


def check_names(algorithm: Any, noise: Any) -> None:
    """Refuse what does not name an algorithm or a treatment of noise."""
    _one_of("algorithm", algorithm, "default", "paper")
    _one_of("noise", noise, None, "adapt")


def default_popsize(dim: int) -> int:
    """4 + floor(3 ln n), that of CMA-ES."""
    return 4 + int(3 * math.log(dim))


def generator(rng: Any) -> np.random.Generator:
    """The generator of random numbers that a seed or generator stands for."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise type(error)(f"rng must be None, a seed (an integer >= 0) or a generator, got {rng!r}") from None


def _one_of(name: str, value: Any, *choices: Any) -> None:
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise ValueError(f"{name} must be {' or '.join(repr(choice) for choice in choices)}, got {value!r}")


def _structure(structure: Group | str, dim: int, inherited: Group | None) -> tuple[Group, str]:
    if structure != "auto":
        group = as_group(structure, dim)
        return group, ""
    if inherited is not None:
        return inherited, ""
    if dim <= FULL_UP_TO:
        return Full(dim), "Structure 'full' was chosen"
    return Diagonal(dim), f"Structure 'diagonal' was chosen, because 'full' is slow beyond {FULL_UP_TO:,} coordinates"


def _check_steps(steps: Array) -> None:
    least, most = STEPS
    if (bad := (steps < least) | (steps > most)).any():
        wanted = f"from {least:g} to {most:g}: choose other units"
        raise ValueError(f"sigma0 must lead to standard deviations {wanted}, got {steps[bad.argmax()]:g}")


def _check_memory(group: Group, options: Options) -> None:
    """Refuse before anything is allocated; a dense fit or inverse needs temporaries of the same size."""
    copies = 2 + (options.decoding and group.carries_inverse) + 2 * (options.noise is not None)
    needed, memory = 8 * copies * group.size, machine_memory()
    if needed > MEMORY_SHARE * memory:
        name = type(group).__name__
        cheap = spell(Heisenberg(group.dim, 4, 4) if group.dim >= 8 else Diagonal(group.dim))
        raise ValueError(
            f"structure {name} needs about {needed / 2**30:,.1f} GiB for {group.dim:,} coordinates, more than "
            f"{MEMORY_SHARE:.0%} of this machine's {memory / 2**30:,.1f} GiB: use structure={cheap!r} or 'diagonal'"
        )


def machine_memory() -> float:
    """Bytes of memory, of the container if there is one; unlimited where the system does not say."""
    try:
        memory = float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        memory = math.inf
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as file:
            return min(memory, float(file.read()))
    except (OSError, ValueError):  # no container, or "max"
        return memory


def _first_state(evolution: Evolution, start: Start) -> SearchState:
    if start.root is None or start.group != evolution.group:
        correlation, steps = start.correlation, start.steps
        if start.root is not None and start.group is not None:  # another structure: the nearest element
            if evolution.dim > FULL_UP_TO:  # the matrices would be large: standard deviations alone are kept
                steps = steps * np.sqrt(start.group._squared_row_norms(start.root))
            else:
                dense = start.group._dense(start.root)
                correlation = dense @ dense.T
        return evolution.start(start.mean, steps, correlation)
    state = evolution.start(start.mean, start.steps)
    state.root[:] = start.root
    evolution.refresh(state)
    return state


# ---- where to start ---------------------------------------------------------------------------------------------


def begin(start: Any, sigma0: Any, bounds: Any, fixed: Any, integer: Any, cov0: Any) -> Start:
    """Where to begin: at a point, a distribution, or where another search is."""
    from esgroup.search.searcher import Searcher

    if isinstance(start, Searcher):
        if not hasattr(start, "_space"):
            text = f"start must not be a search over another space, got {start!r}"
            raise ValueError(f"{text}: begin with a distribution, or save and load the search")
        return at_search(start, sigma0, bounds, fixed, integer, cov0)
    if isinstance(start, Gaussian):
        return at_gaussian(start, sigma0, bounds, fixed, integer, cov0)
    return at_point(start, sigma0, bounds, fixed, integer, cov0)


def at_search(start: Searcher, sigma0: Any, bounds: Any, fixed: Any, integer: Any, cov0: Any) -> Start:
    """A start at the distribution of another search, in its space unless bounds are given; sigma0 rescales it."""
    if fixed is not None or integer is not None or cov0 is not None:
        raise ValueError("fixed, integer and cov0 are taken from the search that is the start: leave them out")
    where = start._space if bounds is None else start._space.with_bounds(start.mean, bounds)
    evolution, state = start._evolution, start._state
    scale = state.scalars[SIGMA] * state.scale
    if sigma0 is not None:
        stds = np.sqrt(evolution.variances(state))
        scale = scale * where.initial_steps(sigma0) / stds
    mean = where.encode(start.mean[None])[0]
    return Start(where, mean, scale, None, evolution.group, state.root.copy())


def at_point(x0: Any, sigma0: Any, bounds: Any, fixed: Any, integer: Any, cov0: Any) -> Start:
    """A start at a point; with cov0 the covariance is sigma0^2 cov0 (sigma0 = 1 if left out)."""
    correlation = None
    if cov0 is not None:
        factors = make_space(x0, None, fixed, None, 1.0 if sigma0 is None else sigma0).steps0
        covariance = checks.covariance("cov0", cov0, len(factors))
        stds = np.sqrt(np.diagonal(covariance))
        sigma0, correlation = stds * factors, covariance / stds[:, None] / stds
    where = make_space(x0, bounds, fixed, integer, sigma0)
    if correlation is not None:
        correlation = correlation[np.ix_(where.free, where.free)]
    return Start(where, where.encode(where.x0[None])[0], where.initial_steps(), correlation)


def at_gaussian(start: Gaussian, sigma0: Any, bounds: Any, fixed: Any, integer: Any, cov0: Any) -> Start:
    """A start at a Gaussian with a mean, whose group and square root are kept."""
    if fixed is not None or cov0 is not None:
        raise ValueError("fixed and cov0 cannot be combined with a distribution as start: its covariance is known")
    state = start.state()
    if start.form == "precision":
        start, state = start.converted(state)
    stds = np.sqrt(start.group._squared_row_norms(state.root))
    where = make_space(state.mean, bounds, None, integer, stds if sigma0 is None else sigma0)
    steps = where.initial_steps() / stds
    return Start(where, where.encode(state.mean[None])[0], steps, None, start.group, state.root)
