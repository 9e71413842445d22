"""Positive-definite matrices as a domain of vectors."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

import esgroup
from esgroup import Searcher, Wishart
from esgroup.domains import PositiveDefinite
from esgroup.strategies.in_domain import innermost
from tests.groups.laws import close

ROOT = np.array([[2.0, 0.0, 0.0], [0.3, 1.0, 0.0], [-0.5, 0.2, 0.7]])
MEAN = ROOT @ ROOT.T
DOMAIN = PositiveDefinite(ROOT)
TARGET = np.diag([4.0, 1.0, 0.3]) + 0.1
DEVICES: list[dict[str, Any]] = [
    {"mirrored": True},
    {"step_size": "tpa"},
    {"noise": "adapt"},
    {"decoding": True},
    {"algorithm": "paper"},
    {"cov0": np.diag(np.arange(1.0, 7.0))},
]


def distance(w: np.ndarray) -> float:
    return float(((w - TARGET) ** 2).sum())


def test_a_point_is_the_exponential_between_the_roots() -> None:
    y = np.random.default_rng(1).standard_normal(6)
    s = np.array([[np.sqrt(2) * y[0], y[1], y[3]], [y[1], np.sqrt(2) * y[2], y[4]], [y[3], y[4], np.sqrt(2) * y[5]]])
    close(DOMAIN.decode(y[None])[0], ROOT @ expm(s) @ ROOT.T)
    close(DOMAIN.decode(np.zeros((1, 6)))[0], MEAN)


def test_encoding_undoes_decoding_and_any_vector_is_a_point() -> None:
    y = np.random.default_rng(2).standard_normal((20, 6))
    points = DOMAIN.decode(y)
    close(DOMAIN.encode(points), y, 1e-9)
    DOMAIN.check("X", points)
    assert DOMAIN.inside(points).all() and not DOMAIN.inside(-points).any()
    far = DOMAIN.decode(np.full((1, 6), 1e6))
    assert np.isfinite(far).all() and np.isfinite(DOMAIN.encode(far)).all()
    for bad, message in ((np.diag([1.0, -1.0, 1.0]), "positive definite"), (np.triu(np.ones((3, 3))), "symmetric")):
        with pytest.raises(ValueError, match=message):
            DOMAIN.check("X", bad[None])


def test_samples_have_the_variances_of_a_wishart_to_first_order() -> None:
    dof, rng = 1e4, np.random.default_rng(3)
    points = DOMAIN.decode(rng.standard_normal((100_000, 6)) / np.sqrt(dof))
    variances = (MEAN**2 + np.outer(np.diag(MEAN), np.diag(MEAN))) / dof
    np.testing.assert_allclose(points.var(axis=0), variances, rtol=0.03)
    close(DOMAIN.stds(np.zeros(6), np.full(6, dof**-0.5)), np.sqrt(variances))


@pytest.mark.parametrize("options", DEVICES, ids=lambda one: next(iter(one)))
def test_with_a_device_of_gaussians_logarithms_are_searched(options: dict[str, Any], tmp_path: Path) -> None:
    found = esgroup.minimize(distance, np.eye(3), space="spd", target=1e-8, max_evals=6000, rng=1, **options)
    assert found.success and np.linalg.eigvalsh(found.x).min() > 0
    search, plain = Searcher(Wishart(mean=MEAN), rng=1, **options), Searcher(Wishart(mean=MEAN), rng=1)
    close(search.mean, plain.mean)
    if "cov0" not in options:
        close(search.stds, plain.stds)
        close(Searcher(Wishart(mean=MEAN), 0.01, **options).stds, Searcher(Wishart(mean=MEAN), 0.01).stds)
    vectors = innermost(search.strategy)
    if "cov0" in options:
        close(vectors.stds(search.state) ** 2 * 120, np.arange(1.0, 7.0))
    else:
        name, value = next(iter(options.items()))
        assert getattr(vectors.options, name) == value  # type: ignore[attr-defined]
    search.tell([distance(x) for x in search.ask()])
    search.save(tmp_path / "run.npz")
    assert np.array_equal(Searcher.load(tmp_path / "run.npz").ask(), search.ask())


def test_what_no_box_can_be_is_refused() -> None:
    for option in ({"bounds": (0, 1)}, {"fixed": [0]}, {"integer": [0]}):
        with pytest.raises(ValueError, match=rf"{next(iter(option))} .*Wishart"):
            Searcher(Wishart(mean=MEAN), mirrored=True, **option)
    with pytest.raises(ValueError, match=r"structure must be full .*'diagonal'"):
        Searcher(Wishart(mean=MEAN, structure="diagonal"), mirrored=True)
