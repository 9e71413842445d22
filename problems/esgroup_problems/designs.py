"""Eight engineering designs with constraints: the smallest cost or weight within limits of strength and size.

Several variants of most of them circulate, with different minima; each maker says which one it is. A constraint is
written relative to its limit, as value / limit - 1 <= 0, so that all have similar sizes, whatever their units.
The functions that compute them take one point, (dim,), or several as rows, (n, dim).

The minimizers were computed for this module: by formulas for the three-bar truss and the cantilever, for the others by
Newton's method on the conditions of Karush, Kuhn and Tucker, whose multipliers are positive. SLSQP from 200 random
starts (with integers fixed), SciPy's differential evolution and cma's augmented Lagrangian found nothing better, and
the minima agree with the published ones in all their digits. For the pressure vessel all pairs of plates were tried.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from esgroup.checks import Array
from esgroup.problem_registry import summary
from esgroup_problems.making import fixed_dim
from esgroup_problems.problem import OnPoint, Problem, register

_COELLO = (
    "Coello: Use of a self-adaptive penalty approach for engineering optimization (Computers in Industry 41, 2000); "
    "He, Wang: A hybrid particle swarm optimization with a feasibility-based rule for constrained optimization "
    "(Applied Mathematics and Computation 186, 2007)"
)
_ZHANG = (
    "Zhang, Luo, Wang: Differential evolution with dynamic stochastic selection for constrained optimization "
    "(Information Sciences 178, 2008)"
)


def _design(
    maker: Callable[..., Problem],
    cost: Callable[[Array], Array],
    constraints: Callable[[Array], Array],
    *,
    bounds: list[tuple[float, float]],
    x0: list[float],
    minimizer: list[float],
    minimum: float,
    source: str,
    sigma0: list[float] | None = None,
    integer: tuple[int, ...] = (),
) -> Problem:
    """Make a design with its maker's name and first line; sigma0 is by default a quarter of the range of a variable."""
    low, high = (limits := np.array(bounds)).T
    return Problem(
        name=maker.__name__,
        description=summary(maker),
        source=source,
        fun=OnPoint(cost),
        batch=cost,
        constraints=constraints,
        bounds=limits,
        x0=np.array(x0),
        sigma0=(high - low) / 4 if sigma0 is None else np.array(sigma0),
        minimizer=np.array(minimizer),
        minimum=minimum,
        integer=integer,
    )


def _columns(*columns: Array) -> Array:
    return np.stack(columns, axis=-1)


# ---- a spring -------------------------------------------------------------------------------------------------------


def _spring_weight(x: Array) -> Array:
    wire, coil, active = np.moveaxis(x, -1, 0)
    return (active + 2) * coil * wire**2


def _spring_constraints(x: Array) -> Array:
    wire, coil, active = np.moveaxis(x, -1, 0)
    with np.errstate(divide="ignore"):  # where the coil is as narrow as the wire is thick
        bending = (4 * coil**2 - wire * coil) / (12566 * (coil * wire**3 - wire**4))
    return _columns(
        1 - coil**3 * active / (71785 * wire**4),  # deflection
        bending + 1 / (5108 * wire**2) - 1,  # shear stress
        1 - 140.45 * wire / (coil**2 * active),  # surge frequency
        (wire + coil) / 1.5 - 1,  # outer diameter
    )


@register
def spring(dim: int = 3) -> Problem:
    """Lightest spring under tension: diameters of wire and coil, number of coils; four constraints.

    f = (N + 2) D d^2 with x = (d, D, N), limited deflection, shear stress, surge frequency and outer diameter. Variant:
    all three continuous, 0.05 <= d <= 2, 0.25 <= D <= 1.3, 2 <= N <= 15 (Coello 2000, eqs. of Arora 1989). Published:
    0.0126652 (He, Wang 2007). The start is feasible.
    """
    fixed_dim("spring", dim, 3)
    return _design(
        spring,
        _spring_weight,
        _spring_constraints,
        bounds=[(0.05, 2.0), (0.25, 1.3), (2.0, 15.0)],
        x0=[0.07, 0.7, 9.0],
        sigma0=[0.02, 0.2, 3.0],  # the wire's upper bound is forty times what is needed
        minimizer=[0.051689061082763464, 0.35671773979944105, 11.288965751613329],
        minimum=0.012665232788319417,
        source=f"Belegundu (1982); Arora: Introduction to optimum design (1989); {_COELLO}",
    )


# ---- a welded beam --------------------------------------------------------------------------------------------------

_LOAD, _OVERHANG, _YOUNG, _SHEAR = 6000.0, 14.0, 30e6, 12e6  # lb, in, psi, psi


def _beam_cost(x: Array) -> Array:
    weld, length, height, width = np.moveaxis(x, -1, 0)
    return 1.10471 * weld**2 * length + 0.04811 * height * width * (_OVERHANG + length)


def _beam_constraints(x: Array) -> Array:
    weld, length, height, width = np.moveaxis(x, -1, 0)
    radius2 = length**2 / 4 + ((weld + height) / 2) ** 2
    inertia = 2 * np.sqrt(2) * weld * length * (length**2 / 12 + ((weld + height) / 2) ** 2)
    direct = _LOAD / (np.sqrt(2) * weld * length)
    torsion = _LOAD * (_OVERHANG + length / 2) * np.sqrt(radius2) / inertia
    shear = np.sqrt(direct**2 + direct * torsion * length / np.sqrt(radius2) + torsion**2)
    bending = 6 * _LOAD * _OVERHANG / (width * height**2)
    deflection = 4 * _LOAD * _OVERHANG**3 / (_YOUNG * height**3 * width)
    slender = 1 - height / (2 * _OVERHANG) * np.sqrt(_YOUNG / (4 * _SHEAR))
    buckling = 4.013 * _YOUNG * height * width**3 / (6 * _OVERHANG**2) * slender
    return _columns(
        shear / 13600 - 1,
        bending / 30000 - 1,
        weld / width - 1,
        (0.10471 * weld**2 + 0.04811 * height * width * (_OVERHANG + length)) / 5 - 1,
        1 - weld / 0.125,
        deflection / 0.25 - 1,
        1 - buckling / _LOAD,
    )


@register
def welded_beam(dim: int = 4) -> Problem:
    """Cheapest welded beam: height and length of the weld, height and width of the beam; seven constraints.

    Limited shear stress of the weld, bending stress, deflection, buckling load and cost of material; the weld is not
    thicker than the beam, and at least 0.125 in. Variant of Coello 2000, with the polar moment 2 sqrt(2) w l (l^2 / 12
    + (w + h)^2 / 4). Published: 1.724852 (He, Wang 2007). With half this moment and the buckling load 64746 (1 - 0.0282
    h) h b^3, as in Ragsdell and Phillips 1976, the minimum is 2.381; variants with 1.670 also circulate. The start is
    feasible.
    """
    fixed_dim("welded_beam", dim, 4)
    return _design(
        welded_beam,
        _beam_cost,
        _beam_constraints,
        bounds=[(0.1, 2.0), (0.1, 10.0), (0.1, 10.0), (0.1, 2.0)],
        x0=[0.5, 4.0, 8.0, 0.6],
        sigma0=[0.2, 1.5, 1.5, 0.2],
        minimizer=[0.20572963978607944, 3.470488665628001, 9.036623910357635, 0.20572963978607944],
        minimum=1.7248523085973648,
        source=f"Ragsdell, Phillips (Journal of Engineering for Industry 98, 1976); {_COELLO}",
    )


# ---- a pressure vessel ----------------------------------------------------------------------------------------------

_PLATE = 0.0625  # in, the steps in which rolled steel plates are sold


def _vessel_cost(x: Array) -> Array:
    shell, head, radius, length = np.moveaxis(x, -1, 0)
    shell, head = _PLATE * shell, _PLATE * head
    plates = 0.6224 * shell * radius * length + 1.7781 * head * radius**2
    return plates + 3.1661 * shell**2 * length + 19.84 * shell**2 * radius


def _vessel_constraints(x: Array) -> Array:
    shell, head, radius, length = np.moveaxis(x, -1, 0)
    return _columns(
        0.0193 * radius / (_PLATE * shell) - 1,
        0.00954 * radius / (_PLATE * head) - 1,
        1 - np.pi * radius**2 * (length + 4 / 3 * radius) / 1_296_000,
        length / 240 - 1,
    )


@register
def pressure_vessel(dim: int = 4) -> Problem:
    """Cheapest vessel for 750 cubic feet: thickness of shell and heads in sixteenths of an inch, radius and length.

    Variant: the first two variables are integers n from 1 to 99, for plates of n / 16 in, radius and length are from
    10 to 200 in (Kannan, Kramer 1994, as in Coello 2000; some bound the length by 240). Published: 6059.714335 (Yang
    et al. 2013). With continuous thicknesses from 0.0625 in the minimum is 5885.33. Four constraints: two thicknesses
    against the pressure, the volume, and the length, which its bound implies. The start is feasible.
    """
    fixed_dim("pressure_vessel", dim, 4)
    return _design(
        pressure_vessel,
        _vessel_cost,
        _vessel_constraints,
        bounds=[(1.0, 99.0), (1.0, 99.0), (10.0, 200.0), (10.0, 200.0)],
        x0=[20.0, 12.0, 55.0, 100.0],
        sigma0=[5.0, 4.0, 15.0, 40.0],
        minimizer=[13.0, 7.0, 42.09844559585492, 176.63659584243942],
        minimum=6059.714335048436,
        integer=(0, 1),
        source="Kannan, Kramer (Journal of Mechanical Design 116, 1994); "
        "Yang et al.: True global optimality of the pressure vessel design problem (IJBIC 5, 2013)",
    )


# ---- a speed reducer ------------------------------------------------------------------------------------------------


def _reducer_weight(x: Array) -> Array:
    face, module, teeth, length1, length2, shaft1, shaft2 = np.moveaxis(x, -1, 0)
    gears = 0.7854 * face * module**2 * (3.3333 * teeth**2 + 14.9334 * teeth - 43.0934)
    holes = -1.508 * face * (shaft1**2 + shaft2**2)
    shafts = 7.4777 * (shaft1**3 + shaft2**3) + 0.7854 * (length1 * shaft1**2 + length2 * shaft2**2)
    return gears + holes + shafts


def _reducer_constraints(x: Array) -> Array:
    face, module, teeth, length1, length2, shaft1, shaft2 = np.moveaxis(x, -1, 0)
    pitch = module * teeth
    return _columns(
        27 / (face * module**2 * teeth) - 1,  # bending stress of the teeth
        397.5 / (face * pitch**2) - 1,  # surface stress
        1.93 * length1**3 / (pitch * shaft1**4) - 1,  # deflections of the shafts
        1.93 * length2**3 / (pitch * shaft2**4) - 1,
        np.sqrt((745 * length1 / pitch) ** 2 + 16.9e6) / (110 * shaft1**3) - 1,  # stresses of the shafts
        np.sqrt((745 * length2 / pitch) ** 2 + 157.5e6) / (85 * shaft2**3) - 1,
        pitch / 40 - 1,  # sizes
        5 * module / face - 1,
        face / (12 * module) - 1,
        (1.5 * shaft1 + 1.9) / length1 - 1,
        (1.1 * shaft2 + 1.9) / length2 - 1,
    )


@register
def speed_reducer(dim: int = 7) -> Problem:
    """Lightest gearbox: face width, module, number of teeth, lengths and diameters of two shafts; 11 constraints.

    Variant: the number of teeth is an integer from 17 to 28, and the second shaft is at least 7.3 long, as the first.
    Published: 2994.471066 (Zhang, Luo, Wang 2008). With at least 7.8 (Mezura-Montes, Coello 2005) the minimum is
    2996.348. The start is not feasible: its gears are too narrow.
    """
    fixed_dim("speed_reducer", dim, 7)
    return _design(
        speed_reducer,
        _reducer_weight,
        _reducer_constraints,
        bounds=[(2.6, 3.6), (0.7, 0.8), (17.0, 28.0), (7.3, 8.3), (7.3, 8.3), (2.9, 3.9), (5.0, 5.5)],
        x0=[3.1, 0.75, 22.0, 7.8, 7.8, 3.4, 5.25],
        minimizer=[3.5, 0.7, 17.0, 7.3, 7.715319911478245, 3.350214666096447, 5.286654464980222],
        minimum=2994.47106614682,
        integer=(2,),
        source=f"Golinski (Journal of Mechanisms 5, 1970); {_ZHANG}",
    )


# ---- a truss of three bars ------------------------------------------------------------------------------------------


def _three_bars_volume(x: Array) -> Array:
    outer, middle = np.moveaxis(x, -1, 0)
    return 100 * (2 * np.sqrt(2) * outer + middle)


def _three_bars_constraints(x: Array) -> Array:
    outer, middle = np.moveaxis(x, -1, 0)
    both = np.sqrt(2) * outer**2 + 2 * outer * middle
    with np.errstate(divide="ignore", invalid="ignore"):  # without outer bars the truss falls: infinite stress
        stresses = [(np.sqrt(2) * outer + middle) / both, middle / both, 1 / (outer + np.sqrt(2) * middle)]
        return _columns(*(np.where(outer > 0, stress, np.inf) - 1 for stress in stresses))


@register
def three_bar_truss(dim: int = 2) -> Problem:
    """Smallest volume of a truss of three bars, the outer two alike; three limits of stress.

    Load 2 kN / cm^2, limit of stress 2 kN / cm^2, length 100 cm, areas from 0 to 1 (Ray, Saini 2001; Ray, Liew 2003).
    The minimum is 100 (sqrt(2) + sqrt(6) / 2) = 263.8958434 at ((1 + 1 / sqrt(3)) / 2, 1 / sqrt(6)), where only the
    stress of the first bar is at its limit; published 263.8958434 (Zhang, Luo, Wang 2008). The start is feasible.
    """
    fixed_dim("three_bar_truss", dim, 2)
    return _design(
        three_bar_truss,
        _three_bars_volume,
        _three_bars_constraints,
        bounds=[(0.0, 1.0), (0.0, 1.0)],
        x0=[0.9, 0.6],
        sigma0=[0.1, 0.1],
        minimizer=[(1 + 3**-0.5) / 2, 6**-0.5],
        minimum=100 * (2**0.5 + 6**0.5 / 2),
        source="Nowacki (1974); Ray, Liew: Society and civilization, an optimization algorithm based on the simulation "
        f"of social behavior (IEEE Transactions on Evolutionary Computation 7, 2003); {_ZHANG}",
    )


# ---- a cantilever beam ----------------------------------------------------------------------------------------------

_BENDING = np.array([61.0, 37.0, 19.0, 7.0, 1.0])  # deflection of the tip by each of the five parts, of thickness 1


def _cantilever_weight(x: Array) -> Array:
    return 0.0624 * x.sum(axis=-1)


def _cantilever_constraints(x: Array) -> Array:
    return _columns((_BENDING / x**3).sum(axis=-1) - 1)


@register
def cantilever_beam(dim: int = 5) -> Problem:
    """Heights of five hollow parts of the lightest cantilever; one limit of deflection.

    f = 0.0624 sum x_i and g = 61 / x_1^3 + 37 / x_2^3 + 19 / x_3^3 + 7 / x_4^3 + 1 / x_5^3 - 1 (Svanberg 1987).
    By Lagrange x_i = c_i^(1/4) s^(1/3) and f = 0.0624 s^(4/3), with the numerators c and s = sum c_i^(1/4): 1.339956;
    published 1.340 (Svanberg). Papers with 0.6224 or 0.06224 instead of 0.0624 have other minima. The start is
    Svanberg's, on the boundary of the feasible set.
    """
    fixed_dim("cantilever_beam", dim, 5)
    roots = _BENDING**0.25
    return _design(
        cantilever_beam,
        _cantilever_weight,
        _cantilever_constraints,
        bounds=[(0.01, 100.0)] * 5,
        x0=[5.0] * 5,
        sigma0=[1.0] * 5,
        minimizer=(roots * roots.sum() ** (1 / 3)).tolist(),
        minimum=float(0.0624 * roots.sum() ** (4 / 3)),
        source="Fleury, Braibant (1986); Svanberg: The method of moving asymptotes (International Journal for "
        "Numerical Methods in Engineering 24, 1987), section 6",
    )


# ---- Himmelblau's function ------------------------------------------------------------------------------------------


def _himmelblau_value(x: Array) -> Array:
    a, _, c, _, e = np.moveaxis(x, -1, 0)
    return 5.3578547 * c**2 + 0.8356891 * a * e + 37.293239 * a - 40792.141


def _himmelblau_constraints(x: Array) -> Array:
    a, b, c, d, e = np.moveaxis(x, -1, 0)
    u = 85.334407 + 0.0056858 * b * e + 0.0006262 * a * d - 0.0022053 * c * e
    v = 80.51249 + 0.0071317 * b * e + 0.0029955 * a * b + 0.0021813 * c**2
    w = 9.300961 + 0.0047026 * c * e + 0.0012547 * a * c + 0.0019085 * c * d
    return _columns(u / 92 - 1, -u / 92, v / 110 - 1, 1 - v / 90, w / 25 - 1, 1 - w / 20)


@register
def himmelblau(dim: int = 5) -> Problem:
    """Himmelblau's quadratic function of five variables with three quantities between limits: six constraints, G04.

    Variant: the coefficient of x_1 x_4 in the first quantity is 0.0006262 (Himmelblau 1972; g04 of Runarsson and Yao
    2000). Published: -30665.539 (Runarsson, Yao 2000). With 0.00026, an error that has spread, it is -31025.56.
    The start is feasible.
    """
    fixed_dim("himmelblau", dim, 5)
    return _design(
        himmelblau,
        _himmelblau_value,
        _himmelblau_constraints,
        bounds=[(78.0, 102.0), (33.0, 45.0), (27.0, 45.0), (27.0, 45.0), (27.0, 45.0)],
        x0=[78.62, 33.44, 31.07, 44.18, 35.22],
        minimizer=[78.0, 33.0, 29.99525602568160, 45.0, 36.77581290578820],
        minimum=-30665.53867178332,
        source="Himmelblau: Applied nonlinear programming (1972); Runarsson, Yao: Stochastic ranking for constrained "
        "evolutionary optimization (IEEE Transactions on Evolutionary Computation 4, 2000), g04",
    )


# ---- a truss of ten bars --------------------------------------------------------------------------------------------

#   5 --1-- 3 --2-- 1     Nodes 5 and 6 are fixed to the wall, one bay is a square of 360 in. Bars are numbered in the
#   wall    |5      |6    order of _BARS; 7 to 10 are the diagonals.
#   6 --3-- 4 --4-- 2
_NODES = 360.0 * np.array([[2, 1], [2, 0], [1, 1], [1, 0], [0, 1], [0, 0]])
_BARS = np.array([[3, 5], [1, 3], [4, 6], [2, 4], [3, 4], [1, 2], [4, 5], [3, 6], [2, 3], [1, 4]]) - 1
_ELASTICITY, _DENSITY = 1e7, 0.1  # psi, lb / in^3
_STRESS, _DISPLACEMENT = 25e3, 2.0  # psi and in, in both directions
_FORCES = np.array([0, 0, 0, -100e3, 0, 0, 0, -100e3])  # lb, at the nodes 1 to 4 in x and y: case 1


def _stretching() -> tuple[Array, Array]:
    """Lengths of the bars, and the matrix (10, 8) from displacements of the free nodes to elongations."""
    sides = _NODES[_BARS[:, 1]] - _NODES[_BARS[:, 0]]
    lengths = np.linalg.norm(sides, axis=1)
    matrix = np.zeros((len(_BARS), len(_NODES), 2))
    for bar, (first, second) in enumerate(_BARS):
        matrix[bar, second] = sides[bar] / lengths[bar]
        matrix[bar, first] = -sides[bar] / lengths[bar]
    return lengths, matrix.reshape(len(_BARS), -1)[:, : len(_FORCES)]


_LENGTHS, _STRETCH = _stretching()


def _ten_bars_weight(x: Array) -> Array:
    return _DENSITY * (x @ _LENGTHS)


def _ten_bars_constraints(x: Array) -> Array:
    # the stiffness is sum_i E A_i / L_i b_i b_i^T over the bars, with the rows b_i of the matrix of elongations
    stiffness = np.einsum("...i,ij,ik->...jk", _ELASTICITY * x / _LENGTHS, _STRETCH, _STRETCH)
    moved = np.linalg.solve(stiffness, np.broadcast_to(_FORCES, (*x.shape[:-1], len(_FORCES)))[..., None])[..., 0]
    stresses = _ELASTICITY * (moved @ _STRETCH.T) / _LENGTHS
    return np.concatenate([np.abs(stresses) / _STRESS, np.abs(moved) / _DISPLACEMENT], axis=-1) - 1


@register
def ten_bar_truss(dim: int = 10) -> Problem:
    """Lightest truss of ten bars in a plane: areas of the bars; limits of ten stresses and eight displacements.

    Variant: case 1, loads of 100 kip at the nodes 2 and 4, one limit of stress for all bars, continuous areas from 0.1
    to 35 in^2 (Schmit, Farshi 1974; Haftka, Guerdal 1992). Published: 5060.85 lb; lighter published designs, such as
    5057.88 lb of Lee and Geem 2004, violate limits a little. Case 2, 150 kip down there and 50 kip up at the nodes 1
    and 3, has the minimum 4676.93 lb. Displacements are those of linear elasticity, by solving with the stiffness
    matrix of the eight degrees of freedom. The start is feasible.
    """
    fixed_dim("ten_bar_truss", dim, 10)
    return _design(
        ten_bar_truss,
        _ten_bars_weight,
        _ten_bars_constraints,
        bounds=[(0.1, 35.0)] * 10,
        x0=[20.0] * 10,
        sigma0=[5.0] * 10,
        minimizer=[
            *(30.521806666353413, 0.1, 23.199887917186533, 15.22290712320598, 0.1),
            *(0.5513555936079158, 7.457200301035998, 21.03642789760314, 21.528441712383913, 0.1),
        ],
        minimum=5060.853660338464,
        source="Schmit, Farshi: Some approximation concepts for structural synthesis (AIAA Journal 12, 1974); Haftka, "
        "Guerdal: Elements of structural optimization (1992)",
    )
