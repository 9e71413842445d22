"""Runs of the benchmark with constraints: its problems, how a point is counted, and the methods.

A problem is a function of COCO's suite bbob-constrained or a design of the zoo (problems/esgroup_problems/designs.py).
Its constraints are a vector g(x), and x is feasible if g(x) <= 0. A point counts once, however often its value and its
constraints are asked for: methods that ask for the two separately, or again at the same point, are not charged twice.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from bbob_rows import Row, Run
from bbob_runs import Finished, Recorder, Task, how_it_ended

SIGMA0 = 2.0  # on the suite, as in bench_bbob.py: optima are in [-4, 4] and starts in [-5, 5]
SUITE_TARGETS = (1e2, 1e1, 1.0, 1e-1, 1e-2, 1e-4, 1e-6)  # above the optimum
REMEMBERED = 1000  # points whose values are kept: more than any method asks for before it asks for their constraints
STANDSTILL = 2000  # requests for known points in a row that end a run; COBYQA can continue forever between integers
DESIGN_TARGETS = (1e-2, 1e-3, 1e-4)  # above the optimum, as parts of its absolute value

#: Base functions of the suite; function number 6 b + k + 1 is the k-th of six versions of the b-th, both from zero.
BASES = (
    "sphere",
    "ellipsoid",
    "linear slope",
    "rotated ellipsoid",
    "discus",
    "bent cigar",
    "different powers",
    "Rastrigin",
    "rotated Rastrigin",
)
#: Constraints of the six versions that are active at the optimum; half as many, rounded down, are added that are not.
ACTIVE = ("1", "2", "6", "6 + d/2", "6 + d", "6 + 3d")

#: Names of the designs in the zoo; their numbers in the CSV are their places, from one.
DESIGNS = (
    "spring",
    "welded_beam",
    "pressure_vessel",
    "speed_reducer",
    "three_bar_truss",
    "cantilever_beam",
    "himmelblau",
    "ten_bar_truss",
)


class Case(NamedTuple):
    """A problem with constraints, as all methods get it."""

    fun: Callable[[np.ndarray], float]
    constraints: Callable[[np.ndarray], np.ndarray]  # g(x) <= 0 if x is feasible
    n_constraints: int
    minimum: float
    x0: np.ndarray
    sigma0: np.ndarray  # one for each coordinate
    bounds: np.ndarray | None  # (dim, 2), for the methods that take bounds
    region: np.ndarray  # (dim, 2), where methods without a start look
    integer: tuple[int, ...] = ()

    @property
    def pairs(self) -> list[tuple[float, float]] | None:
        return None if self.bounds is None else [(low, high) for low, high in self.bounds.tolist()]


# ---- problems


class CocoProblem:
    """A problem of the suite."""

    def __init__(self, run: Run) -> None:
        import cocoex

        chosen = f"function_indices:{run.function} dimensions:{run.dim} instance_indices:{run.instance}"
        self.suite = cocoex.Suite("bbob-constrained", "", chosen)  # kept, because the problem is freed with it
        self.problem = self.suite[0]

    def value(self, x: np.ndarray) -> float:
        return float(self.problem(x))

    def constraints(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(self.problem.constraint(x))

    def optimum(self) -> np.ndarray:
        """The best feasible point, which coco-experiment writes, with 16 decimals, to a file in the current folder."""
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            self.problem._best_parameter("print")
            return np.atleast_1d(np.loadtxt(Path("._bbob_problem_best_parameter.txt")))


def suite_case(run: Run) -> Case:
    """A function of the suite from its own start, which is feasible, without bounds."""
    coco = CocoProblem(run)
    best, problem = coco.optimum(), coco.problem
    if (most := coco.constraints(best).max()) > 0:
        raise ValueError(f"the optimum of {problem.id} must be feasible, but a constraint is {most:g}")
    return Case(
        fun=coco.value,
        constraints=coco.constraints,
        n_constraints=problem.number_of_constraints,
        minimum=coco.value(best),
        x0=np.array(problem.initial_solution),
        sigma0=np.full(run.dim, SIGMA0),
        bounds=None,
        region=np.array([problem.lower_bounds, problem.upper_bounds]).T,
    )


def design_case(run: Run) -> Case:
    """A design from a random start: the number of the instance is the seed."""
    import esgroup_problems as zoo

    problem = zoo.get(DESIGNS[run.function - 1])
    assert problem.constraints is not None and problem.minimum is not None
    x0 = np.array(problem.start(np.random.default_rng([run.function, run.instance])))
    whole, bounds = list(problem.integer), np.array(problem.bounds, dtype=float)
    x0[whole] = np.rint(x0[whole])
    return Case(
        fun=problem.fun,
        constraints=problem.constraints,
        n_constraints=problem.n_constraints,
        minimum=problem.minimum,
        x0=x0,
        sigma0=np.array(problem.sigma0),
        bounds=bounds,
        region=bounds,
        integer=problem.integer,
    )


# ---- counting


class FeasibleRecorder(Recorder):
    """Counts points and notes at which of them each target was first hit by a feasible one.

    Feasible means that it is in the bounds and that no constraint exceeds the tolerance. Coordinates that are integers
    are rounded before a point is evaluated, for methods that know none. Raises Finished like a Recorder, and also when
    a method only asks for points that it knows.
    """

    def __init__(self, case: Case, max_evals: int, targets: Sequence[float], tolerance: float) -> None:
        super().__init__(lambda points: [self(np.array(x)) for x in points], case.minimum, max_evals, targets)
        self.case, self.tolerance = case, tolerance
        self.seen: dict[bytes, tuple[float, np.ndarray]] = {}
        self.repeated = 0

    def at(self, x: Any) -> tuple[float, np.ndarray]:
        """Value and constraints of a point."""
        point = np.array(x, dtype=float)
        whole = list(self.case.integer)
        point[whole] = np.rint(point[whole]) + 0.0  # without -0
        key = point.tobytes()
        if key in self.seen:
            self.repeated += 1
            if self.repeated > STANDSTILL:
                raise Finished("repetition")
            return self.seen[key]
        both = float(self.case.fun(point)), np.asarray(self.case.constraints(point), dtype=float)
        self.repeated = 0
        inside = self.case.bounds is None or bool(((self.case.bounds.T - point) * [[1], [-1]] <= 0).all())
        self.seen[key] = both
        if len(self.seen) > REMEMBERED:
            del self.seen[next(iter(self.seen))]
        self.note(both[0] if inside and (both[1] <= self.tolerance).all() else math.inf)
        if self.count >= self.max_evals:
            raise Finished("budget")
        return both

    def __call__(self, x: Any) -> float:
        return self.at(x)[0]

    def constraints(self, x: Any) -> np.ndarray:
        return self.at(x)[1].copy()

    def several(self, points: Any) -> tuple[np.ndarray, np.ndarray]:
        """Values and constraints of rows, (n,) and (n, m)."""
        both = [self.at(x) for x in points]
        return np.array([value for value, _ in both]), np.array([g for _, g in both])


# ---- methods; each returns why it stopped


def search_esgroup(task: Task, fun: FeasibleRecorder, case: Case) -> str:
    """Ours with the task's options."""
    import esgroup

    options = {"bounds": case.pairs, "integer": list(case.integer) or None, **esgroup_options(task)}
    search = esgroup.Searcher(
        case.x0, case.sigma0, constraints=case.n_constraints, rng=task.seed, max_evals=task.max_evals, **options
    )
    while not search.stop():
        values, constraints = fun.several(search.ask())
        search.tell(values, constraints=constraints)
    return "+".join(search.stop())


def esgroup_options(task: Task) -> dict[str, Any]:
    """Arguments of esgroup that differ from its defaults; the tolerance is the benchmark's."""
    return {key: value for key, value in task.options.items() if key != "tolerance"}


def search_cma(task: Task, fun: FeasibleRecorder, case: Case) -> str:
    """cma.fmin_con2, an augmented Lagrangian, with its defaults."""
    import cma

    scale = float(np.median(case.sigma0))
    options: dict[str, Any] = {"maxfevals": task.max_evals, "verbose": -9, "verb_log": 0, "seed": task.seed}
    options["CMA_stds"] = (case.sigma0 / scale).tolist()
    if case.bounds is not None:
        options["bounds"] = case.bounds.T.tolist()
    if case.integer:
        options["integer_variables"] = list(case.integer)
    unwatched = {"archives": False}  # they only record the run, and warn if a package is missing
    _, search = cma.fmin_con2(
        fun, case.x0, scale, constraints=fun.constraints, kwargs_confit=unwatched, options=options
    )
    return "+".join(search.stop())


class Scaled(NamedTuple):
    """A problem in coordinates in which its bounds are [-1, 1], for methods that treat all coordinates alike.

    The option `scale` of COBYQA is of no use here: in SciPy 1.17 it scales the points of f, but not those of g.
    """

    fun: FeasibleRecorder
    case: Case

    def point(self, u: np.ndarray) -> np.ndarray:
        if self.case.bounds is None:
            return np.asarray(u)
        low, high = self.case.bounds.T
        return np.clip((low + high) / 2 + (high - low) / 2 * u, low, high)

    def value(self, u: np.ndarray) -> float:
        return self.fun(self.point(u))

    def constraints(self, u: np.ndarray) -> np.ndarray:
        return self.fun.constraints(self.point(u))

    @property
    def start(self) -> np.ndarray:
        if self.case.bounds is None:
            return self.case.x0
        low, high = self.case.bounds.T
        return (2 * self.case.x0 - low - high) / (high - low)

    @property
    def bounds(self) -> list[tuple[float, float]] | None:
        return None if self.case.bounds is None else [(-1.0, 1.0)] * len(self.case.x0)


def search_cobyqa(task: Task, fun: FeasibleRecorder, case: Case) -> str:
    """SciPy's COBYQA; the first radius is the step size on the suite, and the median of the scaled ones with bounds."""
    from scipy.optimize import NonlinearConstraint, minimize

    scaled = Scaled(fun, case)
    widths = 1.0 if case.bounds is None else (case.bounds[:, 1] - case.bounds[:, 0]) / 2
    options = {
        "maxfev": task.max_evals,
        "maxiter": task.max_evals,
        "initial_tr_radius": float(np.median(case.sigma0 / widths)),
        "final_tr_radius": 1e-9,  # the default, 1e-6, ends before the last target
    }
    limit = NonlinearConstraint(scaled.constraints, -np.inf, 0)
    found = minimize(
        scaled.value, scaled.start, method="COBYQA", bounds=scaled.bounds, constraints=limit, options=options
    )
    return f"status {found.status}"


def search_slsqp(task: Task, fun: FeasibleRecorder, case: Case) -> str:
    """SciPy's SLSQP with derivatives by forward differences, and a tolerance that lets it reach the last target."""
    from scipy.optimize import minimize

    scaled = Scaled(fun, case)
    limit = {"type": "ineq", "fun": lambda u: -scaled.constraints(u)}
    options = {"maxiter": task.max_evals, "ftol": 1e-12}
    found = minimize(
        scaled.value, scaled.start, method="SLSQP", bounds=scaled.bounds, constraints=limit, options=options
    )
    return f"status {found.status}"


def search_de(task: Task, fun: FeasibleRecorder, case: Case) -> str:
    """SciPy's differential evolution in the region, with the start as a member, until values agree to ten digits."""
    from scipy.optimize import NonlinearConstraint, differential_evolution

    found = differential_evolution(
        fun,
        case.region,
        constraints=NonlinearConstraint(fun.constraints, -np.inf, 0),
        x0=case.x0,
        rng=task.seed,
        maxiter=task.max_evals,
        tol=1e-10,
        polish=False,
        integrality=np.isin(np.arange(len(case.x0)), case.integer),
    )
    return "convergence" if found.success else "maxiter"


def search_isres(task: Task, fun: FeasibleRecorder, case: Case) -> str:
    """The evolution strategy with stochastic ranking of pymoo (Runarsson and Yao 2005), with its defaults."""
    from pymoo.algorithms.soo.nonconvex.isres import ISRES
    from pymoo.core.problem import Problem
    from pymoo.optimize import minimize

    class Described(Problem):  # type: ignore[misc]
        def _evaluate(self, x: np.ndarray, out: dict[str, Any], *_: Any, **__: Any) -> None:
            out["F"], out["G"] = fun.several(x)

    low, high = case.region.T
    described = Described(n_var=len(low), n_obj=1, n_ieq_constr=case.n_constraints, xl=low, xu=high)
    minimize(described, ISRES(), ("n_eval", task.max_evals), seed=task.seed, verbose=False)
    return "convergence"


METHODS: dict[str, Callable[[Task, FeasibleRecorder, Case], str]] = {
    "esgroup": search_esgroup,
    "cma": search_cma,
    "cobyqa": search_cobyqa,
    "slsqp": search_slsqp,
    "de": search_de,
    "isres": search_isres,
}


# ---- one run


def solve_suite(task: Task) -> list[Row]:
    """One run on the suite, a row for each target."""
    return _solve(task, suite_case(task.run), SUITE_TARGETS, SUITE_TARGETS)


def solve_design(task: Task) -> list[Row]:
    """One run on a design, a row for each target."""
    case = design_case(task.run)
    return _solve(task, case, DESIGN_TARGETS, [target * abs(case.minimum) for target in DESIGN_TARGETS])


def _solve(task: Task, case: Case, names: Sequence[float], targets: Sequence[float]) -> list[Row]:
    fun = FeasibleRecorder(case, task.max_evals, targets, float(task.options["tolerance"]))
    since = time.process_time()
    ended = how_it_ended(lambda: METHODS[task.setup.method](task, fun, case), fun)
    cpu = round(time.process_time() - since, 3)
    return [
        Row(task.label, *task.run, name, evals, fun.count, ended, cpu, *task.setup)
        for name, evals in zip(names, fun.evals(), strict=True)
    ]
