"""Under neutral selection, when ranks say nothing, nothing drifts: statistics of many independent generations."""

import numpy as np
import pytest

from esgroup.groups import Diagonal, Full, Group, Triangular
from esgroup.strategies.decoding import Decoding
from esgroup.strategies.evolution import Evolution, Generation
from esgroup.strategies.recombination import Cumulative
from esgroup.strategies.sampling import Sampling
from tests.strategies import dense

DIM, POPSIZE, COUNT = 6, 9, 4000


def generations(group: Group, orthogonal: bool, negative_mean: float) -> dict[str, np.ndarray]:
    """Run COUNT single generations from I with stationary paths and random ranks."""
    rng = np.random.default_rng(1)
    evolution = Evolution(group, Cumulative(negative_mean, 1.0), Decoding(), None, Sampling(orthogonal))
    names = {"mean": DIM, "log_sigma": 1, "log_d": DIM, "path_s": DIM, "path_c": DIM, "root": DIM * DIM}
    found = {name: np.empty((COUNT, size)) for name, size in names.items()}
    state = evolution.start(np.zeros(DIM), np.ones(DIM))
    start = [array.copy() for array in state]
    generation, x, ranks = Generation.empty(POPSIZE, DIM), np.empty((POPSIZE, DIM)), np.arange(POPSIZE)
    for i in range(COUNT):
        for array, first in zip(state, start, strict=True):
            array[:] = first
        state.path_s[:], state.path_c[:] = rng.standard_normal((2, DIM))
        state.fade[0] = 0.0
        evolution.sample(state, POPSIZE, rng, generation, x)
        evolution.update(state, generation, ranks)
        found["mean"][i], found["path_s"][i], found["path_c"][i] = state.mean, state.path_s, state.path_c
        found["log_sigma"][i], found["log_d"][i] = np.log(state.sigma[0]), np.log(state.scale)
        found["root"][i] = group.dense(state.root).ravel()
    return found


def errors_from_zero(samples: np.ndarray) -> float:
    """Return the largest mean, in standard errors."""
    return float(np.abs(samples.mean(axis=0) / (samples.std(axis=0) / np.sqrt(len(samples)) + 1e-300)).max())


def local_steps(root: np.ndarray) -> np.ndarray:
    """M of the symmetric roots h(M) = (I + (I + M)^2) / 2."""
    values, vectors = np.linalg.eigh(root.reshape(-1, DIM, DIM))
    return (vectors * (np.sqrt(2 * values - 1) - 1)[:, None, :]) @ vectors.transpose(0, 2, 1)


@pytest.mark.parametrize("negative_mean", [0.0, 0.5])
@pytest.mark.parametrize("orthogonal", [False, True])
def test_without_selection_the_full_group_stays_where_it_is(orthogonal: bool, negative_mean: float) -> None:
    found = generations(Full(DIM), orthogonal, negative_mean)
    assert errors_from_zero(found["mean"]) < 5
    assert errors_from_zero(found["log_d"]) < 5
    assert errors_from_zero(local_steps(found["root"]).reshape(COUNT, -1)) < 5
    for path in ("path_s", "path_c"):
        assert errors_from_zero(found[path]) < 5
    assert errors_from_zero(found["path_s"] ** 2 - 1) < 5  # mu_eff is that of the mean's weights
    assert errors_from_zero((found["path_c"] ** 2).sum(axis=1)[:, None] - DIM) < 8  # less by h_sigma
    k = dense.numbers(DIM, POPSIZE, DIM * (DIM + 1) // 2, negative_mean)
    drift = found["log_sigma"].mean() * k.d_s / k.c_s
    if orthogonal:  # |p_s|^2 varies less, so that |p_s| is on average nearer to sqrt(n) = chi (1 + 1 / 4n)
        assert 0 < drift < 1 / (4 * DIM) + 0.01
    else:
        assert errors_from_zero(found["log_sigma"]) < 5


@pytest.mark.parametrize("group", [Triangular(DIM), Diagonal(DIM)], ids=str)
def test_without_selection_other_groups_stay_where_they_are_to_first_order(group: Group) -> None:
    found = generations(group, False, 0.3)
    steps = found["root"] - np.eye(DIM).ravel()
    square = np.einsum("nij,njk->nik", steps.reshape(-1, DIM, DIM), steps.reshape(-1, DIM, DIM)).reshape(COUNT, -1)
    if isinstance(group, Diagonal):  # large rates: the step is sqrt(I + 2 M)
        square = -square
    assert errors_from_zero(steps - square / 2) < 5  # M = h - I - M^2/2, up to M^3
    assert errors_from_zero(found["log_d"]) < 5
    assert errors_from_zero(found["log_sigma"]) < 5
