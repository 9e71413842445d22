"""Laws of every surrogate: ours, and one that esgroup does not know."""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from esgroup.groups import Diagonal, Full, Heisenberg
from esgroup.surrogates import QuadraticSurrogate, Surrogate
from esgroup.surrogates.base import FORGET, UNJUDGED
from esgroup.surrogates.quadratic import QuadraticState
from tests.surrogates.strangers import Radial

Array = NDArray[np.float64]

SURROGATES = {
    "full": QuadraticSurrogate(Full(3)),
    "diagonal": QuadraticSurrogate(Diagonal(3)),
    "heisenberg": QuadraticSurrogate(Heisenberg(3, 1, 1)),
    "one variable": QuadraticSurrogate(Full(1)),
    "radial": Radial(3),
}
EACH = pytest.mark.parametrize("name", SURROGATES)


def bowl(z: Array) -> Array:
    """A quadratic that every support can hold."""
    found: Array = 7.0 + ((z - 0.4) ** 2 * np.arange(1, z.shape[1] + 1)).sum(axis=1)
    return found


def points(surrogate: Surrogate, n: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).standard_normal((n, surrogate.dim))


def learned(surrogate: Surrogate, z: Array, values: Array, times: int = 1) -> Any:
    state = surrogate.judge(surrogate.start(), z, values, len(values))
    for _ in range(times):
        state = surrogate.fit(state, z, values)
    return state


@EACH
def test_it_predicts_what_it_has_learned(name: str) -> None:
    surrogate = SURROGATES[name]
    z = points(surrogate, surrogate.capacity)
    state = learned(surrogate, z, bowl(z), times=8)
    assert surrogate.size(state) > 0.0
    assert np.allclose(surrogate.predict(state, z), bowl(z), atol=1e-6)


@EACH
def test_it_knows_nothing_at_first_and_of_too_few_points(name: str) -> None:
    surrogate = SURROGATES[name]
    z = points(surrogate, surrogate.least - 1)
    for state in (surrogate.start(), learned(surrogate, z, bowl(z)), learned(surrogate, z[:0], np.empty(0))):
        assert surrogate.size(state) == 0.0 and not surrogate.predict(state, z).any()
        assert surrogate.judgment(state).tolist() == list(UNJUDGED) and surrogate.tau(state) == 0.0
        assert not surrogate.minimizer(state, 1.0).z.any()


@EACH
def test_the_order_of_points_does_not_matter(name: str) -> None:
    surrogate = SURROGATES[name]
    z, other = points(surrogate, surrogate.least + 2), points(surrogate, 20, seed=2)
    backwards = z[::-1].copy()
    one, two = learned(surrogate, z, bowl(z), times=8), learned(surrogate, backwards, bowl(backwards), times=8)
    assert np.allclose(surrogate.predict(one, other), surrogate.predict(two, other), rtol=1e-5, atol=1e-5)


@EACH
@pytest.mark.parametrize("dense", [False, True])
def test_a_change_of_frame_keeps_predictions_and_forgets_a_part_of_what_was_judged(name: str, dense: bool) -> None:
    surrogate = SURROGATES[name]
    if dense and name in ("diagonal", "heisenberg"):
        pytest.skip("its support holds scales only")
    rng, n = np.random.default_rng(3), surrogate.dim
    z = points(surrogate, surrogate.capacity)
    state = learned(surrogate, z, bowl(z) + 0.1 * rng.standard_normal(len(z)))
    state = surrogate.judge(state, z[:9], bowl(z[:9]), 5)
    shift, turn = rng.standard_normal(n), rng.uniform(0.5, 2.0, n)
    T = rng.standard_normal((n, n)) if dense else np.diag(turn)
    moved, here = surrogate.moved(state, shift, T if dense else turn), points(surrogate, 7, seed=4)
    expected = surrogate.predict(state, shift + here @ T.T)
    assert np.allclose(surrogate.predict(moved, here), expected, rtol=1e-9, atol=1e-9)
    agreement, pairs, error = surrogate.judgment(state)
    assert np.allclose(surrogate.judgment(moved), [FORGET * agreement, FORGET * pairs, error]) and pairs > 0


@EACH
@pytest.mark.parametrize("radius", [0.1, 1.0, 10.0])
def test_the_minimizer_is_in_the_ball_and_promised_to_be_no_worse_than_the_center(name: str, radius: float) -> None:
    surrogate = SURROGATES[name]
    for seed in range(5):
        z = points(surrogate, surrogate.capacity, seed)
        state = learned(surrogate, z, np.random.default_rng(seed).standard_normal(len(z)))
        found, center = surrogate.minimizer(state, radius), np.zeros((1, surrogate.dim))
        length = float(np.linalg.norm(found.z))
        assert length <= radius * (1 + 1e-9) and found.at_edge == (length > 0.999 * radius)
        assert found.value == pytest.approx(float(surrogate.predict(state, found.z[None])[0]))
        assert found.value <= surrogate.predict(state, center)[0] + 1e-12


@EACH
def test_it_is_judged_by_pairs_and_errors_of_values_that_are_new_to_it(name: str) -> None:
    surrogate = SURROGATES[name]
    z = points(surrogate, surrogate.capacity)
    state = learned(surrogate, z, bowl(z), times=3)
    new = 2.0 * points(surrogate, 6, seed=5)
    predicted, size = surrogate.predict(state, new), surrogate.size(state)
    values = predicted + 0.5 * size * np.random.default_rng(6).standard_normal(6)
    agreement, pairs, error = surrogate.judgment(state)
    for i in (4, 5):
        for j in range(i):
            agreement += math.copysign(1.0, (values[i] - values[j]) * (predicted[i] - predicted[j]))
            pairs += 1
        far = max(1.0, float(new[i] @ new[i]) / surrogate.dim)
        error = 0.9 * error + 0.1 * min(1.0, abs(values[i] - predicted[i]) / (size * far)) ** 2
    before = [part.copy() for part in state]
    judged = surrogate.judge(state, new, values, 2)
    if isinstance(judged, QuadraticState):
        judged = judged._replace(used=state.used)  # of several models it may now use another one
    assert surrogate.judgment(judged) == pytest.approx([agreement, pairs, error])
    assert all(map(np.array_equal, state, before))


@EACH
def test_no_method_writes_to_a_state(name: str) -> None:
    surrogate = SURROGATES[name]
    z = points(surrogate, surrogate.capacity)
    state = learned(surrogate, z, bowl(z))
    before = [part.copy() for part in state]
    surrogate.fit(state, z, -bowl(z))
    surrogate.judge(state, z, -bowl(z), 3)
    surrogate.moved(state, np.ones(surrogate.dim), np.full(surrogate.dim, 2.0))
    surrogate.minimizer(state, 1.0)
    surrogate.curvature(state)
    assert all(map(np.array_equal, state, before))
