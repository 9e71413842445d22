"""What a search must not depend on: values beyond their order, the origin, units and axes."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from esgroup import Searcher
from esgroup.groups import Full
from esgroup.strategies.evolution import Evolution, Generation, SearchState
from esgroup.strategies.sampling import Sampling
from tests.groups.laws import close
from tests.strategies.states import BOTH, DECODED, PLAIN, evolution_of

Function = Callable[[np.ndarray], np.ndarray]
START, STEPS = np.array([0.5, -1.0, 2.0, 0.25]), np.array([0.5, 1.0, 0.25, 2.0])
STRUCTURES = ["full", "triangular", "diagonal", "heisenberg:k1=1,k2=1"]


def uneven(x: np.ndarray) -> np.ndarray:
    """A valley that is neither symmetric nor along the axes, for every row of x."""
    return (x[:, 0] - x[:, 1]) ** 2 + 10 * (x[:, 1] + x[:, 2] - 0.3) ** 2 + 3 * x[:, 3] ** 2 + np.abs(x[:, 2]) + x[:, 0]


def after(search: Searcher, f: Function, generations: int = 15) -> Searcher:
    for _ in range(generations):
        search.tell(f(search.ask()))
    return search


def spread(search: Searcher) -> np.ndarray:
    """sigma D A."""
    state = search.state
    return state.sigma[0] * state.scale[:, None] * search.structure.dense(state.root)


@pytest.mark.parametrize("options", [{}, {"noise": "adapt"}, {"algorithm": "paper"}, {"mirrored": True}], ids=str)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_only_the_order_of_values_counts(structure: str, options: dict) -> None:
    functions = (uneven, lambda x: uneven(x) ** 3, lambda x: 1e300 * np.arctan(uneven(x)))
    searches = [after(Searcher(START, STEPS, structure=structure, rng=1, **options), f) for f in functions]
    for other in searches[1:]:
        for one, two in zip(searches[0].state, other.state, strict=True):
            assert np.array_equal(one, two)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_origin_does_not_count(structure: str) -> None:
    away = np.array([3.0, -20.0, 0.5, 7.0])
    one = after(Searcher(START, STEPS, structure=structure, rng=1), uneven)
    two = after(Searcher(START + away, STEPS, structure=structure, rng=1), lambda x: uneven(x - away))
    close(two.mean, one.mean + away, 1e-9)
    close(spread(two), spread(one), 1e-8)


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("units", [np.full(4, 1e6), np.array([1e-3, 5.0, 1e4, 0.7])], ids=["one", "each"])
def test_units_do_not_count_if_sigma0_has_them_too(structure: str, units: np.ndarray) -> None:
    one = after(Searcher(START, STEPS, structure=structure, rng=1), uneven)
    two = after(Searcher(units * START, units * STEPS, structure=structure, rng=1), lambda x: uneven(x / units))
    close(two.mean / units, one.mean, 1e-9)
    close(spread(two) / units[:, None], spread(one), 1e-8)


@dataclass(frozen=True)
class Turned(Sampling):
    """Rotated samples of another search: rows R z."""

    by: object = None

    def draw(self, z: np.ndarray, n: int, rng: np.random.Generator) -> int:
        orthogonal = super().draw(z, n, rng)
        z[:n] = z[:n] @ np.asarray(self.by).T
        return orthogonal


def run(evolution: Evolution, start: np.ndarray, f: Function) -> SearchState:
    state, rng = evolution.start(start, np.full(len(start), 0.7)), np.random.default_rng(3)
    generation, x = Generation.empty(10, len(start)), np.empty((10, len(start)))
    for _ in range(30):
        evolution.sample(state, 10, rng, generation, x)
        evolution.update(state, generation, np.argsort(f(x)))  # M is small: its bound, one for these axes, is not met
    return state


def check_turned(options: tuple, turn: np.ndarray) -> None:
    evolution = evolution_of(Full(4), options)
    one = run(evolution, START, uneven)
    two = run(replace(evolution, sampling=Turned(by=turn)), turn @ START, lambda x: uneven(x @ turn))
    close(two.mean, turn @ one.mean, 1e-8)
    close([two.path_s, two.path_c], [turn @ one.path_s, turn @ one.path_c], 1e-7)
    first, second = (s.sigma[0] * s.scale[:, None] * s.root.reshape(4, 4) for s in (one, two))
    close(second, turn @ first @ turn.T, 1e-8)


def test_axes_do_not_count_for_the_full_group_without_decoding() -> None:
    check_turned(PLAIN, np.linalg.qr(np.random.default_rng(2).standard_normal((4, 4)))[0])


@pytest.mark.parametrize("options", [PLAIN, DECODED, BOTH], ids=["plain", "decoded", "both"])
def test_the_order_and_the_direction_of_axes_do_not_count(options: tuple) -> None:
    check_turned(options, np.eye(4)[[2, 0, 3, 1]] * [1.0, -1.0, 1.0, -1.0])


@pytest.mark.parametrize("options", [{}, {"noise": "adapt"}, {"algorithm": "paper"}], ids=str)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_order_in_which_values_are_told_does_not_count(structure: str, options: dict) -> None:
    """Sums run from best to worst, so that paths and step size are the same to the last bit."""
    one, two = (Searcher(START, STEPS, structure=structure, rng=1, **options) for _ in range(2))
    rng = np.random.default_rng(4)
    for generation in range(5):
        x, same = one.ask(), two.ask()
        close(x, same, 1e-9)
        shuffle = rng.permutation(len(x))
        one.tell(uneven(x))
        two.tell(same[shuffle], uneven(same)[shuffle])
        for name in ("path_s", "path_c", "sigma", "fade") if generation == 0 else ():
            assert np.array_equal(getattr(one.state, name), getattr(two.state, name)), name
        for mine, yours in zip(one.state, two.state, strict=True):
            close(mine, yours, 1e-9)
    assert one.nit == two.nit == 5 and one.nfev == two.nfev
