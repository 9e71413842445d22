"""Tunings of models of scikit-learn, with real numbers, integers, categories and conditions, beside those of Optuna.

    svc       a support vector machine on 160 rows of breast_cancer; the loss is log(1 + exp(-y f)) with y = -1, 1 and
              the decision function f
    boosting  a few boosted trees on 150 rows of diabetes; the loss is the mean squared error over the variance
    sgd       a linear classifier by stochastic gradients on 160 rows of the digits 0 to 3; the loss is the log loss

A value is the mean loss over three folds, which are the same for all runs. A fit that raises, or whose loss is no
number, is a failed evaluation: NaN for ours, a failed trial for Optuna. Every method has the same space: for Optuna
bounds, logarithms and options become calls of suggest_*, and a parameter is suggested only where it is active.

A row has the best value after so many evaluations. For every tuning, seed and number of evaluations the methods are
ranked, equal values with the mean of their ranks.
"""

from __future__ import annotations

import math
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from bbob_arguments import parse_option
from bbob_rows import append_tuples, read_texts
from bbob_runs import Finished
from bbob_statistics import DRAWS, Estimate
from bbob_tables import Goal, goals_table, interval, markdown_table, spans

from esgroup import Choice, Integer, Real, Space

BUDGETS = (60, 120, 240)
FOLDS = 3
NEVER = 1e300  # in ranks, the value of a run in which every evaluation has failed

Point = Mapping[str, Any]
Fold = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # X and y to fit, X and y to judge by


# ---- tunings


SVC_SPACE = Space(
    {
        "scaler": Choice("standard", "minmax", "none"),
        "kernel": Choice("rbf", "poly", "linear", "sigmoid"),
        "C": Real(1e-3, 1e3, log=True),
        "gamma": Real(1e-4, 10, log=True, when={"kernel": ("rbf", "poly", "sigmoid")}),
        "degree": Integer(2, 5, when={"kernel": "poly"}),
        "coef0": Real(-1, 1, when={"kernel": ("poly", "sigmoid")}),
        "shrinking": Choice(True, False),
    }
)

BOOSTING_SPACE = Space(
    {
        "trees": Integer(2, 8, log=True),
        "learning_rate": Real(0.02, 1, log=True),
        "growth": Choice("depth", "leaves"),
        "max_depth": Integer(1, 6, when={"growth": "depth"}),
        "max_leaf_nodes": Integer(2, 32, log=True, when={"growth": "leaves"}),
        "min_samples_leaf": Integer(1, 32, log=True),
        "rows": Choice("all", "part"),
        "subsample": Real(0.3, 1, when={"rows": "part"}),
        "max_features": Real(0.1, 1),
    }
)

SGD_SPACE = Space(
    {
        "scaler": Choice("standard", "minmax", "none"),
        "penalty": Choice("l2", "l1", "elasticnet"),
        "alpha": Real(1e-6, 1, log=True),
        "l1_ratio": Real(0, 1, when={"penalty": "elasticnet"}),
        "schedule": Choice("optimal", "constant", "invscaling"),
        "eta0": Real(1e-4, 10, log=True, when={"schedule": ("constant", "invscaling")}),
        "power_t": Real(0.1, 1, when={"schedule": "invscaling"}),
        "epochs": Integer(2, 10, log=True),
        "average": Choice(False, True),
    }
)


def scaled(kind: str, fold: Fold) -> Fold:
    """A fold with the columns as they are, with mean 0 and variance 1, or from 0 to 1, where they are fitted."""
    train, y, test, truth = fold
    if kind == "none":
        return fold
    if kind == "standard":
        middle, width = train.mean(axis=0), train.std(axis=0)
    else:
        middle, width = train.min(axis=0), np.ptp(train, axis=0)
    width = np.where(width > 0, width, 1.0)
    return (train - middle) / width, y, (test - middle) / width, truth


def svc_loss(point: Point, fold: Fold) -> float:
    """The mean of log(1 + exp(-y f)) of a support vector machine."""
    from sklearn.svm import SVC

    train, y, test, truth = scaled(point["scaler"], fold)
    model = SVC(
        kernel=point["kernel"],
        C=point["C"],
        gamma=point.get("gamma", "scale"),
        degree=point.get("degree", 3),
        coef0=point.get("coef0", 0.0),
        shrinking=point["shrinking"],
        max_iter=2000,  # columns that are not scaled may take for ever
    ).fit(train, y)
    return float(np.logaddexp(0, -truth * model.decision_function(test)).mean())


def boosting_loss(point: Point, fold: Fold) -> float:
    """The mean squared error of boosted trees, over the variance of what they are to predict."""
    from sklearn.ensemble import GradientBoostingRegressor

    train, y, test, truth = fold
    model = GradientBoostingRegressor(
        n_estimators=point["trees"],
        learning_rate=point["learning_rate"],
        max_depth=point.get("max_depth"),
        max_leaf_nodes=point.get("max_leaf_nodes"),
        min_samples_leaf=point["min_samples_leaf"],
        subsample=point.get("subsample", 1.0),
        max_features=point["max_features"],
        random_state=0,
    ).fit(train, y)
    return float(((model.predict(test) - truth) ** 2).mean() / truth.var())


def sgd_loss(point: Point, fold: Fold) -> float:
    """The log loss of a linear classifier."""
    from sklearn.linear_model import SGDClassifier

    train, y, test, truth = scaled(point["scaler"], fold)
    model = SGDClassifier(
        loss="log_loss",
        penalty=point["penalty"],
        alpha=point["alpha"],
        l1_ratio=point.get("l1_ratio", 0.15),
        learning_rate=point["schedule"],
        eta0=point.get("eta0", 0.01),
        power_t=point.get("power_t", 0.5),
        max_iter=point["epochs"],
        average=point["average"],
        tol=None,
        random_state=0,
    ).fit(train, y)
    chances = model.predict_proba(test)[np.arange(len(truth)), truth]
    return float(-np.log(chances.clip(1e-15)).mean())


class Tuning(NamedTuple):
    """A space, the loss of its points on a fold, and the data."""

    space: Space
    loss: Callable[[Point, Fold], float]
    data: str  # load_... of sklearn.datasets
    rows: int


TUNINGS = {
    "svc": Tuning(SVC_SPACE, svc_loss, "breast_cancer", 160),
    "boosting": Tuning(BOOSTING_SPACE, boosting_loss, "diabetes", 150),
    "sgd": Tuning(SGD_SPACE, sgd_loss, "digits", 160),
}


@cache
def folds(name: str) -> tuple[Fold, ...]:
    """The folds of a tuning: rows drawn once for all."""
    from sklearn import datasets

    tuning = TUNINGS[name]
    options = {"n_class": 4} if tuning.data == "digits" else {}
    X, y = getattr(datasets, f"load_{tuning.data}")(return_X_y=True, **options)
    if tuning.data == "breast_cancer":
        y = 2 * y - 1
    among = np.random.default_rng(1).permutation(len(y))[: tuning.rows]
    X, y = X[among], y[among]
    place = np.arange(len(y)) % FOLDS
    return tuple((X[place != k], y[place != k], X[place == k], y[place == k]) for k in range(FOLDS))


def value(name: str, point: Point) -> float:
    """The mean loss of a point over the folds, NaN if a fit fails."""
    import sklearn

    tuning = TUNINGS[name]
    # Checks of parameters and data take a third of the time of such small fits.
    context = sklearn.config_context(skip_parameter_validation=True, assume_finite=True)
    with context, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # fits that do not converge are judged as they are
        try:
            found = float(np.mean([tuning.loss(point, fold) for fold in folds(name)]))
        except Exception:
            return math.nan
    return found if math.isfinite(found) else math.nan


# ---- rows


class TuningRow(NamedTuple):
    """The best value of one run after a number of evaluations; one line of the CSV."""

    label: str
    method: str
    options: str
    tuning: str
    seed: int
    evals: int
    best: float  # NaN if all have failed
    failed: int  # of these evaluations
    used: int  # by the whole run
    seconds: float  # of the whole run
    ended: str

    @property
    def run(self) -> tuple[str, str, int]:
        return self.label, self.tuning, self.seed


def read_tuning_rows(path: Path) -> list[TuningRow]:
    """Rows of a file, none if there is no file."""
    return [
        TuningRow(
            row["label"],
            row["method"],
            row["options"],
            row["tuning"],
            int(row["seed"]),
            int(row["evals"]),
            float(row["best"]),
            int(row["failed"]),
            int(row["used"]),
            float(row["seconds"]),
            row["ended"],
        )
        for row in read_texts(path, TuningRow._fields)
    ]


def append_tuning_rows(path: Path, rows: Iterable[TuningRow]) -> None:
    """Write rows at the end of a file."""
    append_tuples(path, rows, TuningRow._fields)


def finished(rows: Iterable[TuningRow]) -> set[tuple[str, str, int]]:
    """Labels, tunings and seeds that have a row for every number of evaluations."""
    found = defaultdict(set)
    for row in rows:
        found[row.run].add(row.evals)
    return {run for run, evals in found.items() if evals >= set(BUDGETS)}


# ---- methods


class Recorder:
    """A tuning that keeps its values, and ends a run when the last budget is spent."""

    def __init__(self, name: str, function: Callable[[str, Point], float] = value) -> None:
        self.name, self.space = name, TUNINGS[name].space
        self.function = function
        self.values: list[float] = []

    def __call__(self, point: Point) -> float:
        if len(self.values) >= BUDGETS[-1]:
            raise Finished("budget")
        self.values.append(self.function(self.name, point))
        return self.values[-1]

    def best(self, evals: int) -> float:
        """The least of the first values, NaN if all have failed."""
        return min((v for v in self.values[:evals] if not math.isnan(v)), default=math.nan)

    def failed(self, evals: int) -> int:
        return sum(map(math.isnan, self.values[:evals]))


def search_esgroup(problem: Recorder, seed: int, options: dict[str, Any]) -> str:
    """Ours."""
    import esgroup

    result = esgroup.minimize(problem, problem.space, rng=seed, max_evals=BUDGETS[-1], **options)
    return "+".join(result.stop)


def suggested(trial: Any, space: Space) -> dict[str, Any]:
    """A point of a space whose parameters come after those on which they depend, by the calls that Optuna has."""
    point: dict[str, Any] = {}
    for name, parameter in space.parameters:
        wanted = parameter.when or ()
        if not all(
            other in point and point[other] in (values if isinstance(values, tuple) else (values,))
            for other, values in wanted
        ):
            continue
        if isinstance(parameter, Choice):
            point[name] = trial.suggest_categorical(name, parameter.options)
        else:
            suggest = trial.suggest_int if isinstance(parameter, Integer) else trial.suggest_float
            point[name] = suggest(name, parameter.lower, parameter.upper, log=parameter.log)
    return point


def _search_optuna(problem: Recorder, sampler: Any) -> str:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=sampler)
    while True:
        trial = study.ask()
        found = problem(suggested(trial, problem.space))
        if math.isnan(found):
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            study.tell(trial, found)


def search_tpe(problem: Recorder, seed: int, options: dict[str, Any]) -> str:
    """Optuna's tree-structured Parzen estimator."""
    import optuna

    return _search_optuna(problem, optuna.samplers.TPESampler(seed=seed, **options))


def search_random(problem: Recorder, seed: int, options: dict[str, Any]) -> str:
    """Optuna's random search."""
    import optuna

    return _search_optuna(problem, optuna.samplers.RandomSampler(seed=seed, **options))


METHODS: dict[str, Callable[[Recorder, int, dict[str, Any]], str]] = {
    "esgroup": search_esgroup,
    "tpe": search_tpe,
    "random": search_random,
}


def solve(label: str, method: str, options: str, tuning: str, seed: int) -> list[TuningRow]:
    """One run. A failure in mid-run is an end too, and kept."""
    problem, begin = Recorder(tuning), time.process_time()
    own = int(np.random.SeedSequence([sorted(TUNINGS).index(tuning), seed]).generate_state(1)[0])
    given = dict(parse_option(text) for text in options.split(";") if text)
    try:
        ended = METHODS[method](problem, own, given)
    except Finished as end:
        ended = str(end)
    except Exception as error:
        if not problem.values:
            raise
        ended = f"error: {type(error).__name__}: {' '.join(str(error).split())}"
    used, seconds = len(problem.values), round(time.process_time() - begin, 3)
    return [
        TuningRow(label, method, options, tuning, seed, n, problem.best(n), problem.failed(n), used, seconds, ended)
        for n in BUDGETS
    ]


# ---- tables


class Ranks(NamedTuple):
    """Ranks of all labels: for each tuning an array (seeds, budgets, labels)."""

    labels: tuple[str, ...]
    by_tuning: dict[str, np.ndarray]
    seeds: dict[str, list[int]]

    def mean(self, label: str, budgets: Sequence[int], tuning: str | None = None) -> float:
        """The mean rank of a label; every tuning weighs the same."""
        at = [BUDGETS.index(n) for n in budgets]
        names = list(self.by_tuning) if tuning is None else [tuning]
        return float(np.mean([self.by_tuning[name][:, at, self.labels.index(label)].mean() for name in names]))

    def difference(self, label: str, other: str, budgets: Sequence[int], tuning: str | None = None) -> Estimate:
        """The mean rank of a label minus that of another, with its 95 per cent interval by bootstrap.

        The seeds of every tuning are drawn anew, with all labels and budgets of a seed: the ranks of a run after 60
        and 120 evaluations are far from independent.
        """
        at, rng = [BUDGETS.index(n) for n in budgets], np.random.default_rng(0)
        i, j = self.labels.index(label), self.labels.index(other)
        names = list(self.by_tuning) if tuning is None else [tuning]
        each = [(self.by_tuning[name][:, at, i] - self.by_tuning[name][:, at, j]).mean(axis=1) for name in names]
        middle = float(np.mean([d.mean() for d in each]))
        if min(map(len, each)) < 2:
            return Estimate(middle)
        drawn = np.mean([d[rng.integers(len(d), size=(DRAWS, len(d)))].mean(axis=1) for d in each], axis=0)
        return Estimate(middle, *(float(q) for q in np.quantile(drawn, [0.025, 0.975])))


def ranks(rows: Sequence[TuningRow], labels: Sequence[str]) -> Ranks:
    """Rank labels on the tunings and seeds that all of them have."""
    from scipy.stats import rankdata

    known = {row.label for row in rows}
    if missing := [label for label in labels if label not in known]:
        raise ValueError(f"label {missing[0]!r} must be one of {sorted(known)}")
    best = {(row.run, row.evals): row.best for row in rows}
    done = finished(rows)
    by_tuning, seeds = {}, {}
    for tuning in TUNINGS:
        common = sorted({s for _, name, s in done if name == tuning})
        common = [s for s in common if all((label, tuning, s) in done for label in labels)]
        if common:
            values = np.array(
                [[[best[(label, tuning, s), n] for label in labels] for n in BUDGETS] for s in common], dtype=float
            )
            by_tuning[tuning] = rankdata(np.nan_to_num(values, nan=NEVER), axis=2)
            seeds[tuning] = common
    if not by_tuning:
        raise ValueError(f"labels {', '.join(labels)} must have runs in common, got none")
    return Ranks(tuple(labels), by_tuning, seeds)


def report(rows: Sequence[TuningRow], labels: Sequence[str], label: str, baseline: str) -> tuple[str, bool]:
    """Mean ranks and medians in markdown, and whether a label is no worse than the baseline within the interval."""
    if label not in labels or baseline not in labels or label == baseline:
        raise ValueError(f"{label!r} and {baseline!r} must be two of the labels {', '.join(labels)}")
    found = ranks(rows, labels)
    head = ["evaluations", *labels, f"{label} - {baseline}"]
    spans_of = [(str(n), [n]) for n in BUDGETS] + [("all", list(BUDGETS))]
    lines = [
        [text, *(f"{found.mean(one, n):.2f}" for one in labels), interval(found.difference(label, baseline, n))]
        for text, n in spans_of
    ]
    by_tuning = [
        [
            f"{tuning}, {text}",
            *(f"{_median(rows, one, tuning, n[0], found.seeds[tuning]):.4g}" for one in labels),
            *(f"{found.mean(one, n, tuning):.2f}" for one in labels),
            interval(found.difference(label, baseline, n, tuning)),
        ]
        for tuning in found.by_tuning
        for text, n in spans_of[:-1]
    ]
    total = found.difference(label, baseline, BUDGETS)
    # A mean rank that is higher, but not by more than chance, is no worse.
    low = total.value if math.isnan(total.low) else total.low
    goal = Goal(f"mean rank no worse than that of {baseline} within its interval", interval(total), low <= 0)
    counted = "; ".join(f"{tuning}: seeds {spans(found.seeds[tuning])}" for tuning in found.by_tuning)
    parts = [
        "## Tunings",
        f"{counted}.\n\n" + "\n".join(f"- {_described(rows, one)}" for one in labels),
        goals_table([goal]),
        f"### Mean ranks, 1 to {len(labels)}",
        markdown_table(head, lines),
        "### Medians of the best values, and mean ranks",
        markdown_table(["", *(f"{one}, {what}" for what in ("value", "rank") for one in labels), head[-1]], by_tuning),
    ]
    return "\n\n".join(parts) + "\n", goal.met


def _median(rows: Sequence[TuningRow], label: str, tuning: str, evals: int, seeds: Sequence[int]) -> float:
    values = {row.seed: row.best for row in rows if row.run[:2] == (label, tuning) and row.evals == evals}
    return float(np.median([values[seed] for seed in seeds]))


def _described(rows: Sequence[TuningRow], label: str) -> str:
    runs = {row.run: row for row in rows if row.label == label and row.evals == BUDGETS[-1]}
    one = next(iter(runs.values()))
    failed = sum(row.failed for row in runs.values())
    total = sum(row.used for row in runs.values())
    seconds = sum(row.seconds for row in runs.values())
    early = sum(row.used < BUDGETS[-1] for row in runs.values())
    return (
        f"{label}: {f'{one.method} {one.options}'.strip()}; {len(runs)} runs, {seconds:.0f} s, {early} ended early; "
        f"{failed} of {total} evaluations failed"
    )
