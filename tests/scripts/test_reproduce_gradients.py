"""The experiments with gradients, `newton` and `mixture`: quick runs, verdicts from other numbers, known answers."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from bench_newton import Ours, SciPys, Task
from reproduction import mixture, mixture_verdicts, newton, newton_verdicts
from reproduction.experiment import Row, Table, Verdict, read_rows
from scipy.stats import ks_2samp, t

import esgroup_problems as zoo
from esgroup.gradients import Pathwise
from esgroup.variational import fit_posterior

pytestmark = pytest.mark.scripts


@pytest.fixture(scope="module")
def tables(quick_runs: Path) -> dict[str, Table]:
    return {name: read_rows(quick_runs / name / f"{name}.csv") for name in ("newton", "mixture")}


def words(verdicts: list[Verdict]) -> dict[str, str]:
    return {verdict.claim: verdict.word for verdict in verdicts}


def test_quick_runs_have_all_methods_and_finite_ends(tables: dict[str, Table]) -> None:
    assert set(tables["newton"].series("iterations")) == {*newton.STRUCTURES, "BFGS", "Adam"}
    assert all(math.isfinite(row.value) for row in tables["newton"].where("end").rows)
    assert set(tables["mixture"].series("ELBO")) == set(mixture.PATTERNS)
    assert all(0 < row.value < 1 for row in tables["mixture"].where("KS").rows)


def test_drawing_needs_the_numbers_only(tables: dict[str, Table], tmp_path: Path) -> None:
    newton.NEWTON.figure(tables["newton"], tmp_path / "a.png")
    mixture.MIXTURE.figure(tables["mixture"], tmp_path / "b.png")
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in ("a.png", "b.png"))


# ---- newton: verdicts


CASES = ("rosenbrock, U(0,2)", "rosenbrock, zeros", "dixon_price, U(0,2)")


def newton_table(numbers: dict[str, float], other: dict[str, float] | None = None) -> Table:
    """Methods take these numbers of everything in all cases, or others from zeros; all the rest takes 50."""
    rows = []
    for case in CASES:
        for name in (*newton.STRUCTURES, "BFGS", "Adam"):
            value = ((other if case.endswith("zeros") else None) or numbers).get(name, 50.0)
            rows += [Row(part, case, name, seed, value) for part in newton_verdicts.UNITS for seed in (1, 2, 3)]
            rows += [Row("end", case, name, seed, 0.5) for seed in (1, 2, 3)]
    return Table([*rows, Row("tuning", CASES[0], "Adam", 0.1, 5.0), Row("chosen", CASES[0], "Adam", 0, 0.1)])


@pytest.mark.parametrize(
    ("ours", "zeros", "expected"),
    [
        (10.0, None, "holds"),
        (90.0, None, "does not hold"),
        (47.0, None, "does not hold"),  # level
        (math.inf, None, "does not hold"),
        (10.0, math.inf, "holds when Rosenbrock from U(0,2) or Dixon-Price from U(0,2)"),
        (90.0, 10.0, "holds when Rosenbrock from zeros"),
    ],
)
def test_who_is_faster_is_read_from_the_table(ours: float, zeros: float | None, expected: str) -> None:
    table = newton_table({"Hs-low": ours}, None if zeros is None else {"Hs-low": zeros})
    found = words(newton_verdicts.verdicts(table))
    against_others = [word for claim, word in found.items() if "Tri-low" not in claim]
    assert len(found) == 8 and set(against_others) == {expected}
    assert found["The same of Tri-low and Tri-up."] == "does not hold"


def test_a_method_that_is_solved_beats_one_that_is_not() -> None:
    found = words(newton_verdicts.verdicts(newton_table({"BFGS": math.inf, "Tri-up": 70.0})))
    assert found["Hs-low converges faster than BFGS: fewer iterations."] == "holds"
    assert found["The same of Tri-low and Tri-up."] == "holds"
    assert found["Hs-low converges faster than Adam: fewer iterations."] == "does not hold"


def test_runs_that_were_not_solved_count_as_infinite_in_the_median() -> None:
    rows = [Row("iterations", "a, b", "m", seed, value) for seed, value in enumerate((10.0, math.inf, 30.0))]
    assert newton_verdicts.typical(Table(rows), "iterations", "a, b", "m") == 30.0
    assert newton_verdicts.typical(Table([*rows, rows[1], rows[1]]), "iterations", "a, b", "m") == math.inf


def test_the_notes_count_what_the_moving_block_solved() -> None:
    table = newton_table({"moving block": 20.0, "BFGS": 30.0}, {"moving block": math.inf})
    first, *_, last = newton_verdicts.notes(table)
    assert "6 of 9 runs solved" in first and "of 3 cases, fewer iterations in 2," in first
    assert "| Rosenbrock from zeros | 3 of 3, 50 / 50 / 50000 |" in last and "0 of 3, f = 0.5" in last


# ---- newton: runs


def test_random_starts_are_those_of_their_seed_and_fixed_ones_are_fixed() -> None:
    for kind in newton.KINDS:
        first, second = (newton.start(kind, 6, seed) for seed in (1, 2))
        assert first.shape == (6,) and np.array_equal(first, second) == (kind in newton.FIXED)
    np.testing.assert_array_equal(newton.start("(-1.2, 1, ...)", 4, 0), [-1.2, 1.0, -1.2, 1.0])


def test_adam_takes_its_rate_in_every_coordinate_at_first_and_ends_at_the_target() -> None:
    problem, x0 = zoo.get("rosenbrock", 5), np.full(5, 2.0)
    task, moved = Task(problem, -1.0), x0 - 0.01 * np.sign(zoo.get("rosenbrock", 5).gradient(x0))
    values = list(newton.adam_values(task, x0, 0.01, 20))
    assert values[0] == pytest.approx(problem.fun(moved), rel=1e-6)
    assert len(values) == task.counts.njev == 20 and task.counts.nfev == 0
    assert newton.Adams(0.01, 20)(Task(problem, values[7]), x0) == (values[7], 8)


def test_tuning_prefers_the_rate_that_arrives_first() -> None:
    rate, rows = newton.tuned(newton.QUICK, "rosenbrock", "1.5", 7)
    scores = {row.x: row.value for row in rows}
    assert set(scores) == {0.01, 0.1} and scores[rate] == min(scores.values()) < max(scores.values())


def test_paths_agree_with_the_runs_that_are_counted() -> None:
    problem, x0 = zoo.get("rosenbrock", 10), newton.start("U(0,2)", 10, 4)
    value, iterations = Ours("diagonal")(Task(problem, 0.1), x0)
    values = newton.newton_values(Task(problem, 0.1), x0, "diagonal")
    assert values[-1] == value and len(values) == iterations
    value, iterations = SciPys("BFGS", ("gtol",))(Task(problem, 0.1), x0)
    values = newton.bfgs_values(Task(problem, 0.1), x0)
    assert values[-1] == value and len(values) == iterations


# ---- mixture: verdicts


def mixture_table(elbos: dict[str, float], distances: dict[str, float], seconds: dict[str, float]) -> Table:
    """Two seeds in one setting. What is not given is -5, 0.2 and 1."""
    rows = []
    for name in mixture.PATTERNS:
        for seed in (1, 2):
            rows.append(Row("ELBO", "p = 9, wide", name, seed, elbos.get(name, -5.0)))
            rows.append(Row("standard error", "p = 9, wide", name, seed, 0.1))
            rows += [Row(part, "p = 9, wide", name, seed, distances.get(name, 0.2)) for part in ("KS", "first KS")]
            rows.append(Row("rise", "p = 9, wide", name, seed, 0.1))
            rows.append(Row("rise error", "p = 9, wide", name, seed, 0.1))
        rows.append(Row("iteration seconds", "gradients", name, 9, seconds.get(name, 1.0)))
    return Table(rows)


@pytest.mark.parametrize(
    ("claim", "elbos", "distances", "seconds", "expected"),
    [
        ("A structured", {"diag": -9.0}, {}, {}, "holds"),
        ("A structured", {"diag": -1.0}, {}, {}, "does not hold"),
        ("A structured", {"diag": -9.0, "Hs-up": -9.1}, {}, {}, "holds when it is not Hs-up, p = 9, wide"),
        ("An upper", {"Tri-up": -4.0}, {}, {}, "holds"),
        ("An upper", {"Tri-up": -6.0}, {}, {}, "does not hold"),
        ("An upper", {"Tri-up": -4.8}, {}, {}, "does not hold"),  # not more than the error of the estimate
        ("The same of Hs", {"Hs-low": -6.0}, {}, {}, "holds"),
        ("The same of Hs", {"Hs-low": -4.0}, {}, {}, "does not hold"),
        ("By its marginals Tri-up is better than Tri", {}, {"Tri-low": 0.3}, {}, "holds"),
        ("By its marginals Tri-up is better than Tri", {}, {"Tri-low": 0.1}, {}, "does not hold"),
        ("By its marginals Tri-up is better than the", {}, {"diag": 0.3}, {}, "holds"),
        ("By its marginals Tri-up is better than the", {}, {"diag": 0.1}, {}, "does not hold"),
        ("Tri-up performs", {}, {"full": 0.19}, {}, "holds"),
        ("Tri-up performs", {}, {"full": 0.1}, {}, "does not hold"),
        ("The same by", {"full": -4.5}, {}, {}, "holds"),
        ("The same by", {"full": -1.0}, {}, {}, "does not hold"),
        ("Tri-up costs", {}, {}, {"full": 2.0}, "holds"),
        ("Tri-up costs", {}, {}, {"full": 0.5}, "does not hold"),
    ],
)
def test_other_numbers_of_mixtures_give_another_word(
    claim: str, elbos: dict[str, float], distances: dict[str, float], seconds: dict[str, float], expected: str
) -> None:
    found = words(mixture_verdicts.verdicts(mixture_table(elbos, distances, seconds)))
    (word,) = (word for text, word in found.items() if text.startswith(claim))
    assert word == expected


@pytest.mark.parametrize("part", ["rise", "rise error"])
def test_fits_that_still_rise_or_were_not_looked_at_decide_nothing(part: str) -> None:
    """One fit that has not converged leaves open every claim about it, and no other."""
    rows = [row for row in mixture_table({}, {}, {}).rows if not (row.part == part and row.series == "Tri-up")]
    rising = [Row(part, "p = 9, wide", "Tri-up", seed, 1.0 if part == "rise" else 0.01) for seed in (1, 2)]
    for others in ([], rising):
        found = words(mixture_verdicts.verdicts(Table([*rows, *others])))
        decided = {claim for claim, word in found.items() if word != "undecided"}
        assert decided == {"The same of Hs-up and Hs-low.", "Tri-up costs less than the full precision."}


def test_a_quick_run_says_how_its_fits_still_rise(tables: dict[str, Table]) -> None:
    rises, fits = tables["mixture"].where("rise").rows, tables["mixture"].where("ELBO").rows
    assert len(rises) == len(fits) and all(math.isfinite(row.value) for row in rises)


# ---- mixture: target and distances


@pytest.fixture(scope="module", params=[False, True], ids=["wide", "narrow"])
def target(request: pytest.FixtureRequest) -> mixture.Target:
    return mixture.Target(mixture.QUICK_LARGE, request.param, 3)


def test_gradients_of_rows_are_those_of_the_problem(target: mixture.Target) -> None:
    x = np.random.default_rng(0).uniform(-20, 20, (7, 6))
    expected = np.array([-target.problem.gradient(row) for row in x])
    np.testing.assert_allclose(target.gradients(x), expected, rtol=1e-9, atol=1e-12)


def test_the_marginals_of_the_target_are_mixtures_of_students(target: mixture.Target) -> None:
    x = np.linspace(-30, 30, 50)
    parts = [
        t(2, loc=u[1], scale=np.sqrt(np.linalg.inv(precision)[1, 1]))
        for u, precision in zip(target.function.centers, target.function.precisions, strict=True)
    ]
    np.testing.assert_allclose(target.distribution(1, x), np.mean([part.cdf(x) for part in parts], axis=0), rtol=1e-10)
    np.testing.assert_allclose(target.density(1, x), np.mean([part.pdf(x) for part in parts], axis=0), rtol=1e-10)


def students(target: mixture.Target, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draws of the target: u_c + V_c^1/2 z sqrt(2 / chi^2_2)."""
    chosen = rng.integers(len(target.function.centers), size=n)
    roots = np.linalg.cholesky(np.linalg.inv(target.function.precisions))[chosen]
    z = rng.standard_normal((n, 6)) * np.sqrt(2 / rng.chisquare(2, n))[:, None]
    return target.function.centers[chosen] + np.einsum("nij,nj->ni", roots, z)


def test_distances_of_marginals_are_those_of_samples() -> None:
    target, rng = mixture.Target(mixture.QUICK_LARGE, False, 3), np.random.default_rng(1)
    family = mixture.first_family(mixture.QUICK_LARGE, "Tri-low", 3)
    known = {"jac": target.gradients, "vectorized": True, "estimator": Pathwise(10)}
    found = fit_posterior(target.log_density, family=family, rng=0, max_iters=5, **known)
    exact = mixture.marginal_distances(found, target)
    x, y = found.sample(20_000, rng), students(target, 20_000, rng)
    sampled = [ks_2samp(x[:, j], y[:, j]).statistic for j in range(6)]
    np.testing.assert_allclose(exact, sampled, atol=0.02)


def test_the_structures_have_the_hub_of_the_paper() -> None:
    for name, lower in (("Tri-up", False), ("Tri-low", True)):
        group = mixture.first_family(mixture.PAPERS, name, 0).components[0].group
        assert (group.k, group.lower) == (10, lower)
    component = mixture.first_family(mixture.SMALL, "Hs-up", 0).components[0]
    assert (component.group.k1, component.group.k2, component.group.lower) == (3, 2, False)
    assert component.form == "precision"
