"""The check of derivatives: right derivatives pass, and every fault is found and named."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der, rosen_hess, rosen_hess_prod

from esgroup.gradients import as_function, check_derivatives, with_difference_products
from tests.gradients.quartic import Quartic

X = np.array([1.3, -0.7, 0.8, 1.9, -1.2])
VALUES, GRADIENTS = "f(x + hv) - f(x) - h g.v", "g(x + hv) - g(x) - h Hv"
CURVATURE = VALUES + " - h^2/2 v.Hv"


def rosen_diag(x: np.ndarray) -> np.ndarray:
    return np.diagonal(rosen_hess(x)).copy()


def changed(fun, index, factor: float):
    """A derivative with one wrong entry."""

    def wrong(x: np.ndarray) -> np.ndarray:
        found = fun(x)
        found[index] *= factor
        return found

    return wrong


def test_right_derivatives_pass_and_remainders_fall_as_they_should() -> None:
    report = check_derivatives(rosen, X, rosen_der, rosen_hess_prod, rosen_hess, rosen_diag)
    assert report.ok and report and report.problems == ()
    assert {r.name: r.order for r in report.remainders} == {VALUES: 2, GRADIENTS: 2, CURVATURE: 3}
    for found in report.remainders:
        assert found.slope == pytest.approx(found.order, abs=0.05)
    assert all(law.error < 1e-12 for law in report.laws)
    assert [law.name for law in report.laws] == [
        "H(au + bv) = a Hu + b Hv", "u.Hv = v.Hu", "hess_diag = diagonal of H", "hess v = hessp v",
    ]  # fmt: skip


def test_everything_that_is_known_is_checked() -> None:
    assert [r.name for r in check_derivatives(rosen, X, rosen_der).remainders] == [VALUES]
    assert len(check_derivatives(rosen, X, rosen_der, hess=rosen_hess).laws) == 2
    assert len(check_derivatives(rosen, X, rosen_der, hess=rosen_hess, hess_diag=rosen_diag).laws) == 3
    assert check_derivatives(lambda x: (rosen(x), rosen_der(x)), X, True).ok


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("dim", [1, 4, 60])
def test_right_derivatives_pass_at_every_scale_and_dimension(dim: int, scale: float) -> None:
    rng = np.random.default_rng(dim)
    f, x = Quartic.random(dim, rng), scale * rng.standard_normal(dim)
    for seed in range(3):
        report = check_derivatives(f.products(), x, rng=seed)
        assert report.ok, str(report)
        assert check_derivatives(f.hessians(), x, rng=seed).ok


@pytest.mark.parametrize("factor", [-1.0, 2.0, 1.001])
@pytest.mark.parametrize("index", [0, 3])
def test_a_wrong_entry_of_the_gradient_is_found_and_named(index: int, factor: float) -> None:
    report = check_derivatives(rosen, X, changed(rosen_der, index, factor))
    assert not report.ok and not report
    assert report.remainders[0].slope == pytest.approx(1.0, abs=0.1)
    right, wrong = f"{rosen_der(X)[index]:.6g}", f"{factor * rosen_der(X)[index]:.6g}"
    assert report.problems[0].startswith(f"|{VALUES}| falls as h^1.")
    assert f"must fall as h^2; at index {index} jac is {wrong}, differences of fun give {right}" in report.problems[0]


@pytest.mark.parametrize("factor", [-1.0, 2.0, 1.0001])
def test_wrong_products_are_found(factor: float) -> None:
    report = check_derivatives(rosen, X, rosen_der, lambda x, v: factor * rosen_hess_prod(x, v))
    slopes = {r.name: r.slope for r in report.remainders}
    assert slopes[VALUES] == pytest.approx(2.0, abs=0.1)
    assert slopes[GRADIENTS] == pytest.approx(1.0, abs=0.1)
    assert any(
        text.startswith(f"|{GRADIENTS}| falls as h^1.") and "must fall as h^2" in text for text in report.problems
    )
    if factor != 1.0001:
        assert slopes[CURVATURE] == pytest.approx(2.0, abs=0.1)
        assert f"|{CURVATURE}| falls as h^{slopes[CURVATURE]:.2f}, must fall as h^3" in report.problems
        assert report.unclear == ()


def test_a_skew_part_of_the_hessian_that_the_values_cannot_show_is_found() -> None:
    """A skew part changes no v.Hv: only the gradients and the law of symmetry show it."""
    skew = np.triu(np.ones((5, 5)), 1) - np.tril(np.ones((5, 5)), -1)
    report = check_derivatives(rosen, X, rosen_der, hess=lambda x: rosen_hess(x) + skew)
    assert [r.ok for r in report.remainders] == [True, False, True]
    assert any(text.startswith("hess: u.Hv = v.Hu fails by ") for text in report.problems)


@pytest.mark.parametrize("row", range(5))
def test_a_wrong_row_of_the_hessian_is_named(row: int) -> None:
    """It changes one coordinate of H v, whatever v is."""
    report = check_derivatives(rosen, X, rosen_der, hess=changed(rosen_hess, row, 2.0))
    assert f"must fall as h^2; at index {row} Hv is " in report.problems[0]


def test_products_that_are_not_linear_are_found() -> None:
    report = check_derivatives(rosen, X, rosen_der, lambda x, v: rosen_hess_prod(x, v) + 0.1 * np.abs(v))
    assert any(text.startswith("hessp: H(au + bv) = a Hu + b Hv fails by ") for text in report.problems)


@pytest.mark.parametrize("dim", [5, 40])
def test_a_wrong_diagonal_is_found_and_named(dim: int) -> None:
    x = np.resize(X, dim)
    report = check_derivatives(rosen, x, rosen_der, rosen_hess_prod, hess_diag=lambda x: 2 * rosen_diag(x))
    assert len(report.problems) == 1
    assert report.problems[0].startswith("hess_diag: hess_diag = diagonal of H fails by ")
    named = int(report.problems[0].split("at index ")[1].split(" ")[0])
    assert f"the product gives {rosen_diag(x)[named]:.6g}" in report.problems[0]


def test_a_matrix_that_differs_from_the_products_is_found() -> None:
    report = check_derivatives(rosen, X, rosen_der, rosen_hess_prod, lambda x: 1.01 * rosen_hess(x))
    assert len(report.problems) == 1
    assert report.problems[0].startswith("hess: hess v = hessp v fails by 0.01")


def test_a_kink_is_not_blamed_on_the_gradient() -> None:
    report = check_derivatives(lambda x: np.abs(x).sum(), X * [1, 0, 1, 1, 1], np.sign)
    assert "fun agree with jac" in report.problems[0] and "smooth" in report.problems[0]


def test_the_report_says_that_a_noisy_function_cannot_be_checked() -> None:
    rng = np.random.default_rng(0)
    report = check_derivatives(lambda x: rosen(x) + rng.standard_normal(), X, rosen_der)
    assert len(report.problems) == 1 and report.problems[0].startswith("fun is not smooth: it varies by ")
    report = check_derivatives(rosen, X, lambda x: rosen_der(x) + rng.standard_normal(), rosen_hess_prod)
    assert any(text.startswith("jac is not smooth: it varies by ") for text in report.problems)


def test_rounding_is_not_mistaken_for_a_fault() -> None:
    assert check_derivatives(lambda x: 1e6 + rosen(x), X, rosen_der, rosen_hess_prod).ok
    assert check_derivatives(lambda x: np.float32(rosen(x.astype(np.float32))), X, rosen_der).ok
    assert check_derivatives(with_difference_products(as_function(rosen, 5, jac=rosen_der)), X).ok
    line = check_derivatives(lambda x: x.sum(), X, np.ones_like, lambda x, v: 0 * v)
    assert line.ok and all(r.slope == np.inf for r in line.remainders)


def test_steps_that_leave_the_domain_are_not_used() -> None:
    report = check_derivatives(lambda x: np.log(x).sum(), np.abs(X), lambda x: 1 / x, lambda x, v: -v / x**2)
    assert report.ok
    assert not np.isfinite(report.remainders[0].values).all()


def test_a_remainder_that_rounding_hides_is_unclear_and_not_a_problem() -> None:
    """A tiny ripple on a bowl: its third order is below rounding until the steps are longer than its waves."""
    size, k = 5e-12, 300.0

    def fun(x: np.ndarray) -> float:
        return x @ x / 2 + size * np.cos(k * x).sum()

    def jac(x: np.ndarray) -> np.ndarray:
        return x - k * size * np.sin(k * x)

    report = check_derivatives(fun, X, jac, lambda x, v: v - k**2 * size * np.cos(k * x) * v)
    assert report.ok and report.unclear == (CURVATURE,)
    assert "unclear" in str(report) and "WRONG" not in str(report)


def test_derivatives_that_are_not_finite_are_problems() -> None:
    report = check_derivatives(rosen, X, changed(rosen_der, 2, np.nan))
    assert report.problems == ("jac(x) must be finite, got nan at index 2",)
    report = check_derivatives(rosen, X, rosen_der, lambda x, v: v * [1, np.inf, 1, 1, 1])
    assert len(report.problems) == 1 and report.problems[0].startswith("hessp(x, v) must be finite, got ")
    assert report.problems[0].endswith("at index 1")


def test_the_text_is_a_short_table() -> None:
    right = str(check_derivatives(rosen, X, rosen_der, rosen_hess_prod)).splitlines()
    assert right[0] == "derivatives in 5 variables: right"
    assert right[1].split() == [*VALUES.split(), "falls", "as", "h^2.00", "h^2", "ok"]
    assert len(right) == 6 and len({line.rindex("ok") for line in right[1:]}) == 1
    report = check_derivatives(rosen, X, changed(rosen_der, 0, 2.0))
    wrong = str(report).splitlines()
    assert wrong[0] == "derivatives in 5 variables: wrong"
    assert wrong[1].endswith("WRONG") and wrong[2].strip() == report.problems[0]


def test_the_check_is_reproducible_and_leaves_the_global_generator_alone() -> None:
    before = np.random.get_state()[1].copy()
    one, two = (check_derivatives(rosen, X, rosen_der) for _ in range(2))
    assert np.array_equal(one.remainders[0].values, two.remainders[0].values)
    other = check_derivatives(rosen, X, rosen_der, rng=np.random.default_rng(5))
    assert not np.array_equal(one.remainders[0].values, other.remainders[0].values)
    assert np.array_equal(before, np.random.get_state()[1])


def test_at_a_stationary_point_the_report_says_what_it_cannot_decide() -> None:
    """There any multiple of the gradient passes."""
    report = check_derivatives(rosen, np.ones(6), lambda x: 2 * rosen_der(x))
    assert len(report.notes) == 1 and "stationary" in report.notes[0] and report.notes[0] in str(report)
    elsewhere = check_derivatives(rosen, np.full(6, 0.5), rosen_der)
    assert elsewhere.ok and not elsewhere.notes


def test_a_function_whose_domain_ends_nearby_gives_no_warning() -> None:
    x = np.array([1e-7, 0.02, 3.0])
    check_derivatives(lambda y: -np.log(y).sum() if (y > 0).all() else np.inf, x, lambda y: -1 / y)


# ---- the figure -----------------------------------------------------------------------------------------------------


def test_the_figure_is_written_and_pyplot_is_left_alone(tmp_path: Path) -> None:
    loaded = "matplotlib.pyplot" in sys.modules
    out = tmp_path / "taylor.png"
    check_derivatives(rosen, X, changed(rosen_der, 0, 1.1), rosen_hess_prod, plot=out)
    assert out.read_bytes().startswith(b"\x89PNG")
    assert ("matplotlib.pyplot" in sys.modules) == loaded


def test_remainders_that_are_all_zero_can_be_drawn(tmp_path: Path) -> None:
    check_derivatives(lambda x: 0.0, X, np.zeros_like, plot=tmp_path / "flat.svg")
    check_derivatives(rosen, X, lambda x: np.full(5, np.nan), plot=str(tmp_path / "none.png"))
    assert (tmp_path / "flat.svg").exists() and (tmp_path / "none.png").exists()


def test_a_figure_that_cannot_be_written_is_refused_before_anything_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(x: np.ndarray) -> float:
        raise RuntimeError("computed")

    with pytest.raises(ValueError, match=r"must end in .png, .svg, .pdf"):
        check_derivatives(never, X, never, plot=tmp_path / "x.gif")
    monkeypatch.setattr("esgroup.plots.style.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"figures need matplotlib: pip install 'esgroup\[plot\]'"):
        check_derivatives(never, X, never, plot=tmp_path / "x.png")


# ---- bad input ------------------------------------------------------------------------------------------------------

BAD = [
    (lambda: check_derivatives(rosen, X), "jac must be given.*None"),
    (lambda: check_derivatives(rosen, X, rosen_der, hess_diag=rosen_diag), "hess_diag needs .*hessp=.*hess="),
    (lambda: check_derivatives(rosen, [X], rosen_der), r"x must have shape \(n,\), got \(1, 5\)"),
    (lambda: check_derivatives(rosen, X * np.nan, rosen_der), "x must be finite, got nan at index 0"),
    (lambda: check_derivatives(lambda x: np.inf, X, rosen_der), "x must be .*finite, got .* inf"),
    (lambda: check_derivatives(as_function(rosen, 5), X), "fun must have derivatives.*jac="),
    (lambda: check_derivatives(as_function(rosen, 5, jac=rosen_der), X, rosen_der), "jac must be left out"),
    (lambda: check_derivatives(as_function(rosen, 4, jac=rosen_der), X), r"x must have shape \(4,\), got \(5,\)"),
    (lambda: check_derivatives(rosen, X, lambda x: x[1:]), r"jac\(x\) must have shape \(5,\), got \(4,\)"),
    (lambda: check_derivatives(rosen, X, rosen_der, hess=lambda x: x), r"hess\(x\) must have shape \(5, 5\)"),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=[b[1] for b in BAD])
def test_bad_input_is_named(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
