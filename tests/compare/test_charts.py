"""Charts go there and back, keep what they promise, and pull gradients back rightly."""

import numpy as np
import pytest
from scipy.linalg import expm, logm

from esgroup.compare.charts import CholeskyFactor, Flat, Logarithm, chart

SPD = (Logarithm, CholeskyFactor)


def spd(dim: int, seed: int = 1) -> np.ndarray:
    root = np.random.default_rng(seed).normal(size=(dim, dim))
    return root @ root.T + 0.3 * np.eye(dim)


@pytest.mark.parametrize("kind", SPD)
@pytest.mark.parametrize("dim", [1, 2, 5])
def test_coordinates_lead_back_to_the_point(kind: type, dim: int) -> None:
    here, w = kind((dim, dim)), spd(dim)
    vector = here.vector(w)
    assert vector.shape == (dim * (dim + 1) // 2,)
    np.testing.assert_allclose(here.points(vector), w, rtol=1e-12)


@pytest.mark.parametrize("kind", SPD)
def test_every_vector_is_a_positive_definite_matrix(kind: type) -> None:
    vectors = np.random.default_rng(3).normal(size=(50, 10))
    points = kind((4, 4)).points(vectors)
    assert points.shape == (50, 4, 4)
    np.testing.assert_array_equal(points, points.swapaxes(1, 2))
    assert np.linalg.eigvalsh(points).min() > 0
    np.testing.assert_allclose(points[7], kind((4, 4)).points(vectors[7]), rtol=1e-13)


def test_the_logarithm_is_scipys_and_an_isometry() -> None:
    here, w = Logarithm((4, 4)), spd(4)
    vector = here.vector(w)
    np.testing.assert_allclose(np.linalg.norm(vector), np.linalg.norm(logm(w)), rtol=1e-12)
    s = np.array([[0.3, -0.7], [-0.7, 1.1]])
    np.testing.assert_allclose(Logarithm((2, 2)).points(np.array([0.3, -0.7 * np.sqrt(2), 1.1])), expm(s), rtol=1e-13)


def test_the_cholesky_factor_has_logarithms_on_its_diagonal() -> None:
    factor = np.array([[np.exp(0.5), 0], [-2.0, np.exp(-1.0)]])
    np.testing.assert_allclose(CholeskyFactor((2, 2)).points(np.array([0.5, -2.0, -1.0])), factor @ factor.T)


@pytest.mark.parametrize("kind", [*SPD, Flat])
def test_gradients_are_pulled_back_as_finite_differences_have_them(kind: type) -> None:
    here, w, target = kind((3, 3)), spd(3), spd(3, seed=5)

    def f(vector: np.ndarray) -> float:
        return float(((here.points(vector) - target) ** 2).sum() / 2)

    vector = here.vector(w)
    step = 1e-6
    differences = [(f(vector + step * e) - f(vector - step * e)) / (2 * step) for e in np.eye(len(vector))]
    np.testing.assert_allclose(here.pull_back(vector, w - target), differences, rtol=1e-7, atol=1e-7)


def test_the_logarithm_pulls_back_where_eigenvalues_coincide() -> None:
    here, gradient = Logarithm((3, 3)), spd(3)
    np.testing.assert_allclose(here.pull_back(np.zeros(6), gradient), here.vector(expm(gradient)), rtol=1e-10)


def test_flat_is_row_by_row() -> None:
    here, x = Flat((2, 3)), np.arange(6.0)
    assert here.points(x).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert here.points(np.stack([x, x])).shape == (2, 2, 3)
    assert here.vector(here.points(x)).tolist() == x.tolist()


def test_a_space_has_a_usual_chart_and_refuses_others() -> None:
    assert isinstance(chart(None, "spd", (2, 2)), Logarithm)
    assert isinstance(chart("cholesky", "spd", (2, 2)), CholeskyFactor)
    with pytest.raises(
        ValueError, match=r"unknown chart 'colesky' \(did you mean 'cholesky'\?\): .*spd.* log"
    ):
        chart("colesky", "spd", (2, 2))
