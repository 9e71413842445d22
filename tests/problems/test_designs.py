"""The engineering designs: values and constraints worked out by hand or by other formulas, and published optima."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import minimize

import esgroup_problems as zoo
from esgroup import problem_registry
from esgroup.checks import Array
from esgroup_problems import designs

#: Minima as the sources named in the makers' docstrings print them.
PUBLISHED = {
    "spring": 0.0126652,
    "welded_beam": 1.724852,
    "pressure_vessel": 6059.714335,
    "speed_reducer": 2994.471066,
    "three_bar_truss": 263.8958434,
    "cantilever_beam": 1.340,
    "himmelblau": -30665.539,
    "ten_bar_truss": 5060.85,
}


def best_nearby(problem: zoo.Problem, x: Array, bounds: Array | None = None) -> float:
    """The best value that SLSQP finds from x, in coordinates relative to x, with integers as they are."""
    limits = (np.asarray(problem.bounds) if bounds is None else bounds) / x[:, None]
    for i in problem.integer:
        limits[i] = 1.0
    low, high = limits.T
    found = minimize(
        lambda u: problem.fun(u * x) / abs(problem.minimum),
        np.clip(1.02, low, high),
        method="SLSQP",
        bounds=limits,
        constraints={"type": "ineq", "fun": lambda u: -problem.constraints(u * x)},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert problem.constraints(found.x * x).max() < 1e-8
    return float(problem.fun(found.x * x))


def test_every_design_is_in_the_table_with_its_published_minimum() -> None:
    assert set(PUBLISHED) == {name for name in zoo.PROBLEMS if zoo.PROBLEMS[name].__module__ == designs.__name__}
    for name, value in PUBLISHED.items():
        digits = len(f"{value}".partition(".")[2])
        assert zoo.get(name).minimum == pytest.approx(value, abs=0.51 * 10.0**-digits)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_local_search_finds_the_minimum_and_nothing_better(name: str) -> None:
    problem = zoo.get(name)
    assert best_nearby(problem, problem.minimizer) == pytest.approx(problem.minimum, rel=1e-7)


@pytest.mark.parametrize("name", PUBLISHED)
def test_starts_are_feasible_but_for_the_speed_reducer(name: str) -> None:
    problem = zoo.get(name)
    assert (problem.constraints(problem.x0).max() <= 0) == (name != "speed_reducer")


def test_the_registry_passes_constraints_and_integers_on() -> None:
    task = problem_registry.find("pressure_vessel")
    assert task.integer == (0, 1) and task.constraints is not None
    assert task.constraints(task.x0).shape == (4,)
    plain = problem_registry.find("sphere", 3)
    assert plain.constraints is None and plain.integer == ()


def test_a_problem_without_constraints_has_none() -> None:
    assert zoo.sphere(3).n_constraints == 0 and zoo.get("ten_bar_truss").n_constraints == 18


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"integer must be indices below 3, got \(3,\)"):
        dataclasses.replace(zoo.sphere(3), integer=(3,))
    with pytest.raises(ValueError, match=r"sigma0 must have shape \(3,\), got \(2,\)"):
        dataclasses.replace(zoo.sphere(3), sigma0=np.ones(2))
    with pytest.raises(ValueError, match="sigma0 must be positive, got -1"):
        dataclasses.replace(zoo.sphere(3), sigma0=np.array([1.0, -1.0, 2.0]))
    with pytest.raises(ValueError, match="dim must be 3 for spring, got 4"):
        zoo.get("spring", 4)


# ---- values by hand --------------------------------------------------------------------------------------------------


def test_the_spring_at_a_round_point() -> None:
    problem, x = zoo.get("spring"), np.array([0.1, 1.0, 10.0])
    assert problem.fun(x) == pytest.approx(0.12)
    by_hand = [1 - 10 / 7.1785, 3.9 / 11.3094 + 1 / 51.08 - 1, 1 - 14.045 / 10, 1.1 / 1.5 - 1]
    assert problem.constraints(x) == pytest.approx(by_hand)


def test_a_spring_as_narrow_as_its_wire_is_not_feasible() -> None:
    assert zoo.get("spring").constraints(np.array([0.5, 0.5, 2.0]))[1] == np.inf


def test_the_beam_obeys_the_formulas_of_statics() -> None:
    # a beam of height 10 and width 1: section modulus b h^2 / 6, second moment b h^3 / 12, deflection P L^3 / (3 E I)
    problem, x = zoo.get("welded_beam"), np.array([0.5, 5.0, 10.0, 1.0])
    g = problem.constraints(x)
    assert g[1] == pytest.approx(6000 * 14 / (100 / 6) / 30000 - 1)
    assert g[5] == pytest.approx(6000 * 14**3 / (3 * 30e6 * 1000 / 12) / 0.25 - 1)
    assert (g[2], g[4]) == pytest.approx((-0.5, -3.0))
    assert problem.fun(x) == pytest.approx(1.10471 * 1.25 + 0.04811 * 10 * 19)
    # shear of the weld as vectors: the direct one along y, the one of torsion at right angles to the arm of the corner
    arm = np.array([2.5, 5.25])
    inertia = 2 * (2**0.5 * 0.5 * 5 * (25 / 12 + 5.25**2))
    turning = 6000 * 16.5 / inertia * np.array([-arm[1], arm[0]])
    total = turning + np.array([0, 6000 / (2**0.5 * 0.5 * 5)])
    assert g[0] == pytest.approx(np.linalg.norm(total) / 13600 - 1)


def test_the_vessel_has_the_volume_of_a_cylinder_and_a_sphere() -> None:
    problem, x = zoo.get("pressure_vessel"), np.array([16.0, 8.0, 50.0, 120.0])  # plates of 1 and 1/2 in
    cylinder, sphere = np.pi * 2500 * 120, 4 / 3 * np.pi * 125_000
    assert problem.constraints(x) == pytest.approx([0.965 - 1, 0.954 - 1, 1 - (cylinder + sphere) / 1_296_000, -0.5])
    assert problem.fun(x) == pytest.approx(0.6224 * 6000 + 1.7781 * 1250 + 3.1661 * 120 + 19.84 * 50)


def test_no_other_plates_make_a_cheaper_vessel() -> None:
    # with given plates the radius is limited, and the shortest vessel of a radius is the cheapest
    problem = zoo.get("pressure_vessel")
    best = []
    for shell, head in np.ndindex(40, 20):
        radius = np.linspace(10, min((shell + 1) / 16 / 0.0193, (head + 1) / 16 / 0.00954, 200), 300)
        length = np.maximum((1_296_000 - 4 / 3 * np.pi * radius**3) / (np.pi * radius**2), 10)
        x = np.stack([np.full(300, shell + 1.0), np.full(300, head + 1.0), radius, length], axis=-1)
        best += problem.batch(x[(length <= 200) & (radius >= 10)]).tolist()
    assert min(best) == pytest.approx(problem.minimum, rel=1e-9)


def test_with_any_thickness_the_vessel_has_the_other_published_minimum() -> None:
    problem = dataclasses.replace(zoo.get("pressure_vessel"), integer=())
    x = np.array([0.7781 * 16, 0.3846 * 16, 40.32, 200.0])
    assert best_nearby(problem, x) == pytest.approx(5885.33, abs=0.01)


def test_the_reducer_with_a_longer_shaft_has_the_other_published_minimum() -> None:
    problem = zoo.get("speed_reducer")
    bounds = np.array(problem.bounds)
    bounds[4, 0] = 7.8
    assert best_nearby(problem, problem.minimizer, bounds) == pytest.approx(2996.348165, abs=1e-5)


def test_the_reducer_at_a_round_point() -> None:
    problem, x = zoo.get("speed_reducer"), np.array([3.0, 0.75, 20.0, 8.0, 8.0, 3.0, 5.0])
    stresses = [27 / 33.75, 397.5 / 675, 1.93 * 512 / 1215, 1.93 * 512 / 9375]  # m z = 15
    shafts = [(157_873.7778 + 16.9e6) ** 0.5 / 2970, (157_873.7778 + 157.5e6) ** 0.5 / 10_625]  # (745 * 8 / 15)^2
    sizes = [15 / 40, 3.75 / 3, 3 / 9, 6.4 / 8, 7.4 / 8]
    assert problem.constraints(x) + 1 == pytest.approx([*stresses, *shafts, *sizes])
    gears = 0.7854 * 1.6875 * (1333.32 + 298.668 - 43.0934)
    assert problem.fun(x) == pytest.approx(gears - 1.508 * 3 * 34 + 7.4777 * 152 + 0.7854 * 8 * 34)


def test_the_three_bars_are_in_equilibrium() -> None:
    # the outer bars at 45 degrees, areas a, the middle one b; the load has components 1 / sqrt(2) to the side and down
    problem, (a, b) = zoo.get("three_bar_truss"), (0.7, 0.3)
    rods = np.array([[-1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])  # from the joint to the ceiling at height 1
    lengths = np.linalg.norm(rods, axis=1)
    units = rods / lengths[:, None]
    stiffness = sum(area / length * np.outer(u, u) for area, length, u in zip((a, b, a), lengths, units, strict=True))
    moved = np.linalg.solve(stiffness, 2 * np.array([1.0, -1.0]) / 2**0.5)
    stresses = -(units @ moved) / lengths
    limits = problem.constraints(np.array([a, b]))
    assert sorted(np.abs(stresses) / 2 - 1) == pytest.approx(sorted(limits), abs=1e-12)


def test_a_truss_without_outer_bars_is_not_feasible() -> None:
    assert (zoo.get("three_bar_truss").constraints(np.array([[0.0, 0.5], [0.0, 0.0]])) == np.inf).all()


def test_the_cantilever_at_svanbergs_start_and_minimum() -> None:
    problem = zoo.get("cantilever_beam")
    assert problem.fun(problem.x0) == pytest.approx(1.56)
    assert problem.constraints(problem.x0) == pytest.approx([0.0])  # 125 / 5^3 = 1
    assert problem.minimizer == pytest.approx([6.016, 5.309, 4.494, 3.502, 2.153], abs=1e-3)


def test_himmelblaus_quantities_at_the_published_minimizer() -> None:
    problem = zoo.get("himmelblau")
    x = np.array([78, 33, 29.9952560256815985, 45, 36.7758129057882073])
    g = problem.constraints(x)
    assert problem.fun(x) == pytest.approx(-30665.5386717834, abs=1e-9)
    assert g[[0, 5]] == pytest.approx([0, 0], abs=1e-12)
    assert 92 * (g[0] + 1) == pytest.approx(-92 * g[1]) and 25 * (g[4] + 1) == pytest.approx(20 * (1 - g[5]))
    assert 110 * (g[2] + 1) == pytest.approx(98.8405, abs=1e-4) and 90 * (1 - g[3]) == pytest.approx(98.8405, abs=1e-4)


def test_the_ten_bars_obey_the_theorem_of_clapeyron_and_equilibrium() -> None:
    # the work of the loads is the energy stored in the bars, and the forces of the bars at a node carry its load
    problem = zoo.get("ten_bar_truss")
    x = np.random.default_rng(1).uniform(1, 30, 10)
    g = problem.constraints(x)
    stresses, moved = 25e3 * (g[:10] + 1), 2.0 * (g[10:] + 1)
    lengths = 360 * np.array([1, 1, 1, 1, 1, 1, *[2**0.5] * 4])
    assert problem.fun(x) == pytest.approx(0.1 * x @ lengths)
    assert 100e3 * (moved[3] + moved[7]) == pytest.approx((stresses**2 * x * lengths).sum() / 1e7)
    # at node 1 there is no load: bar 2 along x, bar 6 along y, and bar 10 at 45 degrees
    forces = stresses * x
    assert forces[[1, 5]] == pytest.approx(forces[[9, 9]] / 2**0.5)


def test_ten_bars_without_redundant_ones_are_statically_determinate() -> None:
    # with bars 2, 5, 6 and 10 almost away, in units of a load: at node 2 bar 9 carries sqrt(2) and bar 4 carries 1; at
    # node 3 bar 8 carries sqrt(2) against bar 9, and bar 1 the sum of their horizontal parts, 2; at node 4 bar 7
    # carries sqrt(2), and bar 3 its horizontal part and that of bar 4, 2
    x = np.array([20, 1e-7, 20, 20, 1e-7, 1e-7, 20, 20, 20, 1e-7])
    stresses = 25e3 * (designs._ten_bars_constraints(x)[:10] + 1)
    expected = 100e3 / 20 * np.array([2, 2, 1, 2**0.5, 2**0.5, 2**0.5])
    assert stresses[[0, 2, 3, 6, 7, 8]] == pytest.approx(expected, rel=1e-5)


def test_the_second_load_case_has_its_published_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    # 150 kip down at the nodes 2 and 4 and 50 kip up at 1 and 3: 4676.9 lb
    monkeypatch.setattr(designs, "_FORCES", 1e3 * np.array([0, 50, 0, -150, 0, 50, 0, -150]))
    x = np.array([23.5, 0.1, 25.3, 14.4, 0.1, 1.97, 12.4, 12.9, 20.3, 0.1])
    assert best_nearby(zoo.get("ten_bar_truss"), x) == pytest.approx(4676.93, abs=0.05)
