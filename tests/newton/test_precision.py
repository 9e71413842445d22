"""The group update against dense matrices, known fixed points and the paper's expansion."""

import numpy as np
import pytest

from esgroup.groups import Group, parse
from esgroup.newton.precision import GroupPrecision, UpdateData, group_precision
from tests.groups.elements import element
from tests.newton import reference
from tests.newton.reference import MASKS, pattern, positive_definite, symmetric

DIM = 6
FORMS = ("precision", "covariance")


def rng_of(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def data_of(hessian: np.ndarray, rate: float, damping: float = 0.0) -> UpdateData:
    diagonal = np.diagonal(hessian).copy()
    return UpdateData(np.ones(len(hessian)), lambda rows: rows @ hessian, diagonal, damping, rate, None)


def plain(group: Group, form: str = "precision", root: np.ndarray | None = None) -> GroupPrecision:
    """Without safeguards, at a generic root."""
    start = group_precision(group, form, 1.0, None, False)
    return GroupPrecision(start.family, element(group, rng_of(1)) if root is None else root, None, False)


def dense(precision: GroupPrecision) -> np.ndarray:
    return precision.family.group.dense(precision.root)


def estimate(precision: GroupPrecision) -> np.ndarray:
    """S as a matrix."""
    root = dense(precision)
    return root @ root.T if precision.family.form == "precision" else np.linalg.inv(root @ root.T)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("spelling", MASKS)
def test_the_update_equals_that_of_dense_matrices(spelling: str, form: str) -> None:
    before, hessian = plain(parse(spelling, DIM), form), symmetric(DIM, rng_of(2))
    after = dense(before.advance(data_of(hessian, 0.3)))
    wanted = reference.update(dense(before), hessian, pattern(spelling, DIM), 0.3, form)
    np.testing.assert_allclose(after, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("spelling", MASKS)
def test_an_update_takes_as_many_products_as_the_hub_has_coordinates(spelling: str) -> None:
    asked, group = [], parse(spelling, DIM)
    seen = data_of(np.eye(DIM), 0.5)._replace(products=lambda rows: asked.append(len(rows)) or rows)
    plain(group).advance(seen)
    wanted = {"diagonal": 0, "full": DIM, "triangular": DIM, "block": 2, "heisenberg": 3}
    assert sum(asked) == wanted[spelling.split("_")[0].split(":")[0]]


def test_the_full_update_agrees_with_the_papers_expansion_to_second_order() -> None:
    """S + beta G + beta^2/2 G S^-1 G with G = H - S (eq. gauss_prec_at_S): what is left falls as beta^3."""
    before, hessian = plain(parse("full", DIM)), positive_definite(DIM, rng_of(3))
    s = estimate(before)
    g = hessian - s

    def left(beta: float) -> float:
        second_order = s + beta * g + beta**2 / 2 * g @ np.linalg.solve(s, g)
        return float(np.abs(estimate(before.advance(data_of(hessian, beta))) - second_order).max())

    small = 1e-3 / np.abs(np.linalg.solve(s, g)).max()
    assert left(small) / left(small / 2) == pytest.approx(8, rel=0.02)


def test_the_first_order_alone_is_not_the_update() -> None:
    before, hessian = plain(parse("full", DIM)), positive_definite(DIM, rng_of(3))
    s = estimate(before)
    first_order = s + 0.01 * (hessian - s)
    assert np.abs(estimate(before.advance(data_of(hessian, 0.01))) - first_order).max() > 1e-4


@pytest.mark.parametrize("form", FORMS)
def test_a_block_of_all_coordinates_is_the_full_group(form: str) -> None:
    root, hessian = rng_of(4).standard_normal((DIM, DIM)) + 3 * np.eye(DIM), symmetric(DIM, rng_of(5))
    ends = []
    for spelling in ("full", f"block_triangular:k={DIM}"):
        group = parse(spelling, DIM)
        ends.append(dense(plain(group, form, group.from_dense(root)).advance(data_of(hessian, 0.4))))
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-12)
    np.testing.assert_allclose(ends[0], reference.update(root, hessian, pattern("full", DIM), 0.4, form), rtol=1e-9)


def test_the_diagonal_update_is_a_formula_per_coordinate() -> None:
    hessian, b = np.diag([3.0, 0.1, -2.0, 5.0, 1.0, 7.0]), np.array([1.0, 2.0, 1.5, 0.8, 1.0, 3.0])
    precision = GroupPrecision(plain(parse("diagonal", DIM)).family, b, None, True)
    m = 0.9 / 2 * (np.abs(np.diagonal(hessian)) / b**2 - 1)
    np.testing.assert_allclose(precision.advance(data_of(hessian, 0.9)).root, b * (1 + m + m**2 / 2), rtol=1e-14)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("spelling", MASKS)
def test_a_hessian_of_the_structure_is_a_fixed_point(spelling: str, form: str) -> None:
    group = parse(spelling, DIM)
    start = group_precision(group, form, 1.0, 1.0, True)
    there = GroupPrecision(start.family, element(group, rng_of(6)))
    after = there.advance(data_of(estimate(there), 0.9))
    np.testing.assert_allclose(after.root, there.root, atol=1e-9 * np.abs(there.root).max())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("spelling", MASKS)
def test_from_a_multiple_of_the_identity_it_converges_to_that_fixed_point(spelling: str, form: str) -> None:
    group = parse(spelling, DIM)
    mild = group.from_dense(
        np.where(pattern(spelling, DIM), 0.4 * rng_of(7).uniform(-1, 1, (DIM, DIM)), 0) + np.eye(DIM)
    )
    hessian = estimate(plain(group, form, mild))
    precision = group_precision(group, form, float(np.diagonal(hessian).max()), 1.0, True)
    for _ in range(80):
        precision = precision.advance(data_of(hessian, 0.9))
    np.testing.assert_allclose(estimate(precision), hessian, rtol=1e-7, atol=1e-7)


def test_at_the_fixed_point_the_step_is_newtons() -> None:
    there = plain(parse("heisenberg:k1=2,k2=1", DIM))
    g = rng_of(8).standard_normal(DIM)
    np.testing.assert_allclose(there.solve(g), np.linalg.solve(estimate(there), g), rtol=1e-9, atol=1e-12)
    other = plain(parse("heisenberg:k1=2,k2=1", DIM), "covariance")
    np.testing.assert_allclose(other.solve(g), dense(other) @ dense(other).T @ g, rtol=1e-12)


def test_damping_is_a_multiple_of_the_identity_added_to_the_hessian() -> None:
    hessian, group = positive_definite(DIM, rng_of(9)), parse("heisenberg:k1=2,k2=1", DIM)
    damped = plain(group).advance(data_of(hessian, 0.5, damping=0.7))
    added = plain(group).advance(data_of(hessian + 0.7 * np.eye(DIM), 0.5))
    np.testing.assert_allclose(damped.root, added.root, rtol=1e-10, atol=1e-12)


# ---- safeguards ---------------------------------------------------------------------------------------------------


def one(curvature: float, precision: float, rate: float, steps: int, **safeguards) -> float:
    """S after some updates in one dimension."""
    form = safeguards.pop("form", "precision")
    now = group_precision(parse("diagonal", 1), form, precision, safeguards["clip"], safeguards["absolute"])
    for _ in range(steps):
        now = now.advance(data_of(np.array([[curvature]]), rate))
    return float(estimate(now)[0, 0])


def test_without_safeguards_negative_curvature_has_a_meaningless_fixed_point() -> None:
    """h(m) = 1 at m = -2 as well, where |H| / S = 4 / beta - 1."""
    spurious = 3.0 / (4 / 0.9 - 1)
    assert one(-3.0, spurious, 0.9, 1, clip=None, absolute=False) == pytest.approx(spurious, rel=1e-12)
    assert one(-3.0, spurious, 0.9, 1, clip=1.0, absolute=True) != pytest.approx(spurious, rel=0.1)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("start", [0.01, 1.0, 100.0])
def test_with_safeguards_negative_curvature_counts_by_its_size(form: str, start: float) -> None:
    assert one(-3.0, start, 0.9, 80, clip=1.0, absolute=True, form=form) == pytest.approx(3.0, rel=1e-8)


def test_the_clip_bounds_how_much_one_update_changes_the_precision() -> None:
    assert one(1e6, 1.0, 0.9, 1, clip=1.0, absolute=True) == pytest.approx(2.5**2)
    assert one(1e6, 1.0, 0.9, 1, clip=0.5, absolute=True) == pytest.approx(1.625**2)
    assert one(1e6, 1.0, 0.9, 1, clip=1.0, absolute=True, form="covariance") == pytest.approx(4.0)  # h(-1) = 1/2
    assert one(1e6, 1.0, 0.9, 1, clip=None, absolute=True) > 1e20


def test_the_clip_scales_the_step_as_a_whole() -> None:
    """All entries by the same factor: the direction stays."""
    hessian, group = 50 * positive_definite(DIM, rng_of(10)), parse("full", DIM)
    start = group_precision(group, "precision", 1.0, 1.0, True)
    m = 0.9 / 2 * (hessian - np.eye(DIM))
    after = dense(start.advance(data_of(hessian, 0.9)))
    np.testing.assert_allclose(after, reference.h(m / np.abs(m).max()), rtol=1e-10)


def test_a_block_of_negative_curvature_counts_by_the_size_of_its_eigenvalues() -> None:
    hessian = symmetric(DIM, rng_of(11))
    e, u = np.linalg.eigh(hessian)
    assert e.min() < -0.1
    precision = group_precision(parse("full", DIM), "precision", 3.0, 1.0, True)
    for _ in range(200):
        precision = precision.advance(data_of(hessian, 0.9))
    np.testing.assert_allclose(estimate(precision), (u * np.abs(e)) @ u.T, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("spelling", MASKS)
def test_the_estimate_stays_positive_definite_on_indefinite_hessians(spelling: str) -> None:
    precision, rng = group_precision(parse(spelling, DIM), "precision", 1.0, 1.0, True), rng_of(12)
    for _ in range(30):
        precision = precision.advance(data_of(5 * symmetric(DIM, rng), 0.9))
        assert np.linalg.eigvalsh(estimate(precision)).min() > 0
