"""Searches with integers, categories and conditions, beside other packages.

    python scripts/bench_mixed.py mixint run cma --out cma.csv --instances 1-5
    python scripts/bench_mixed.py mixint run cmawm --out cmawm.csv --instances 1-5
    python scripts/bench_mixed.py mixint run esgroup --out ours.csv --instances 1-5
    python scripts/bench_mixed.py mixint run esgroup --out ours.csv --label mirrored --option mirrored=True
    python scripts/bench_mixed.py mixint table ours.csv cma.csv cmawm.csv --baselines cma,cmawm
    python scripts/bench_mixed.py categories run esgroup --out categories.csv --seeds 1-10
    python scripts/bench_mixed.py categories run catcmawm --out categories.csv --seeds 1-10
    python scripts/bench_mixed.py categories table categories.csv --labels esgroup,catcmawm
    python scripts/bench_mixed.py tuning run all --out tuning.csv --seeds 0-19
    python scripts/bench_mixed.py tuning table tuning.csv

mixint: COCO's suite bbob-mixint (mixed_integers.py has the problems and the methods), 300 d evaluations, with the
targets and the files of bench_bbob.py. Constants were tuned on instances 1-5. A run ends when the last target is hit,
the budget is spent or the method stops by itself.

categories: functions of real numbers, integers and categories (mixed_categories.py), beside CatCMA and CatCMA with
margin. Seeds 1-20 are for tuning, those from 101 on for reports.

tuning: models of scikit-learn on data that it ships (mixed_tuning.py), 240 evaluations, beside Optuna's TPE and random
search. Seeds 0-19 are for reports, those from 1000 on for tuning. 20 seeds of the three methods take about ten minutes.

Files are appended to, and runs that they hold already are left out. BLAS runs on one thread. Needs coco-experiment, and
cma and cmaes for the baselines; tuning needs scikit-learn and optuna.
"""
# extras: bench sim optuna

from __future__ import annotations

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_variable] = "1"

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import mixed_categories
import mixed_integers
import mixed_tuning
import typer
from bbob_arguments import parse_option, parse_part, parse_range
from bbob_rows import Run, Setup
from bench_bbob import run_all, stored

PLAIN = {
    "no_args_is_help": True,
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,  # messages in one piece, not in a box
}
app = typer.Typer(help=(__doc__ or "").replace("    python", "\b\n    python", 1), **PLAIN)  # type: ignore[arg-type]
mixint = typer.Typer(help="COCO's suite bbob-mixint.", **PLAIN)  # type: ignore[arg-type]
categories = typer.Typer(help="Functions of real numbers, integers and categories.", **PLAIN)  # type: ignore[arg-type]
app.add_typer(mixint, name="mixint")
app.add_typer(categories, name="categories")
tuning = typer.Typer(help="Tunings of models of scikit-learn.", **PLAIN)  # type: ignore[arg-type]
app.add_typer(tuning, name="tuning")


class Method(StrEnum):
    esgroup = "esgroup"
    cma = "cma"
    cmawm = "cmawm"  # CMA-ES with margin of cmaes


@mixint.command()
def run(
    method: Method,
    out: Annotated[Path, typer.Option(help="CSV to append to.")],
    label: Annotated[str, typer.Option(help="Name in the CSV; the method's if not given.")] = "",
    option: Annotated[list[str] | None, typer.Option(help="key=value for the Searcher; may be repeated.")] = None,
    functions: str = "1-24",
    dims: str = "5,10,20,40",
    instances: Annotated[str, typer.Option(help="Instances of COCO; constants were tuned on 1-5.")] = "1-5",
    popsize: Annotated[int | None, typer.Option(min=2, help="The method's default if not given.")] = None,
    budget: Annotated[int, typer.Option(min=1, help="Evaluations per coordinate.")] = 300,
    seed: Annotated[int, typer.Option(min=0, help="Runs with another seed are other runs.")] = 0,
    part: Annotated[str, typer.Option(help="2/4: the second of every four runs.")] = "1/1",
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
) -> None:
    """Run one method and append a row per run and target."""
    options = sorted(option or [])
    if options and method is not Method.esgroup:
        raise typer.BadParameter(f"--option must be given for esgroup only, got method {method}")
    for text in options:
        parse_option(text)
    runs = [  # by instances, so that a part of the benchmark has something of everything
        Run(function, dim, instance, popsize, seed)
        for instance in parse_range(instances, "--instances", 1)
        for dim in parse_range(dims, "--dims", 5)
        for function in parse_range(functions, "--functions", 1, 24)
    ][parse_part(part)]
    setup = Setup(str(method), ";".join(options), budget, "none")
    run_all(out, label or str(method), setup, runs, jobs, mixed_integers.solve)


@mixint.command()
def table(
    files: list[Path],
    label: Annotated[str, typer.Option(help="Label that is judged.")] = "esgroup",
    baselines: Annotated[str, typer.Option(help="Labels it is compared with.")] = "cma,cmawm",
) -> None:
    """Compare labels in markdown; exit code 1 if a goal is missed."""
    for path in files:
        if not path.exists():
            raise typer.BadParameter(f"{path} does not exist")
    try:
        rows = [row for path in files for row in stored(path)]
        text, good = mixed_integers.report(rows, label, baselines.split(","))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    typer.echo(text)
    raise typer.Exit(not good)


class CategoryMethod(StrEnum):
    esgroup = "esgroup"
    catcma = "catcma"
    catcmawm = "catcmawm"


@categories.command("run")
def run_categories(
    method: CategoryMethod,
    out: Annotated[Path, typer.Option(help="CSV to append to.")],
    label: Annotated[str, typer.Option(help="Name in the CSV; the method's if not given.")] = "",
    functions: Annotated[str, typer.Option(help="Names; all that the method can do if not given.")] = "",
    sizes: Annotated[str, typer.Option(help="Numbers of variables of each kind.")] = "5,10",
    seeds: Annotated[str, typer.Option(help="1-20 are for tuning, those from 101 on for reports.")] = "1-20",
    budget: Annotated[int, typer.Option(min=1, help="Evaluations for each variable.")] = 1000,
) -> None:
    """Run one method and append a row per run."""
    able = [name for name in mixed_categories.FUNCTIONS if method is not CategoryMethod.catcma or "_int_" not in name]
    names = functions.split(",") if functions else able
    if unknown := sorted(set(names) - set(able)):
        raise typer.BadParameter(f"--functions must be some of {', '.join(able)}, got {', '.join(unknown)}")
    try:
        rows = mixed_categories.read_category_rows(out)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    name = label or str(method)
    for row in rows:
        if row.label == name and (row.method, row.budget) != (method, budget):
            raise typer.BadParameter(f"label {name!r} stands for {row.method} with budget {row.budget} in {out}")
    done = {row.run for row in rows}
    for seed in parse_range(seeds, "--seeds", 0):
        for size in parse_range(sizes, "--sizes", 2):
            for function in names:
                if (name, function, size, seed) not in done:
                    new = mixed_categories.solve(name, str(method), function, size, seed, budget)
                    mixed_categories.append_category_rows(out, [new])
                    print(f"{function} n {size} seed {seed}: {new.used} evaluations, {new.ended}", file=sys.stderr)


@categories.command("table")
def table_categories(
    files: list[Path],
    labels: Annotated[str, typer.Option(help="Labels to show.")] = "esgroup,catcma,catcmawm",
) -> None:
    """Show successes and evaluations in markdown."""
    try:
        rows = [row for path in files for row in mixed_categories.read_category_rows(path)]
        typer.echo(mixed_categories.report(rows, labels.split(",")))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


class TuningMethod(StrEnum):
    esgroup = "esgroup"
    tpe = "tpe"
    random = "random"
    all = "all"


@tuning.command("run")
def run_tuning(
    method: TuningMethod,
    out: Annotated[Path, typer.Option(help="CSV to append to.")],
    label: Annotated[str, typer.Option(help="Name in the CSV; the method's if not given.")] = "",
    option: Annotated[list[str] | None, typer.Option(help="key=value for the method; may be repeated.")] = None,
    tunings: Annotated[str, typer.Option(help="Names; all if not given.")] = "",
    seeds: Annotated[str, typer.Option(help="0-19 are for reports, those from 1000 on for tuning.")] = "1000-1004",
    part: Annotated[str, typer.Option(help="2/4: the second of every four runs.")] = "1/1",
) -> None:
    """Run one method, or all of them, and append a row per run and number of evaluations."""
    methods = list(mixed_tuning.METHODS) if method is TuningMethod.all else [str(method)]
    options = ";".join(sorted(option or []))
    if len(methods) > 1 and (label or options):
        raise typer.BadParameter("--label and --option must be given for one method only, got all")
    for text in option or []:
        parse_option(text)
    names = tunings.split(",") if tunings else list(mixed_tuning.TUNINGS)
    if unknown := sorted(set(names) - set(mixed_tuning.TUNINGS)):
        known = ", ".join(mixed_tuning.TUNINGS)
        raise typer.BadParameter(f"--tunings must be some of {known}, got {', '.join(unknown)}")
    try:
        rows = mixed_tuning.read_tuning_rows(out)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    labels = {label or one: one for one in methods}
    for row in rows:
        if row.label in labels and (row.method, row.options) != (labels[row.label], options):
            raise typer.BadParameter(f"label {row.label!r} stands for {row.method} {row.options} in {out}")
    done = mixed_tuning.finished(rows)
    runs = [
        (name, seed, one) for seed in parse_range(seeds, "--seeds", 0) for name in names for one in labels
    ]  # by seeds, so that a part of the benchmark has something of everything
    for name, seed, one in runs[parse_part(part)]:
        if (one, name, seed) not in done:
            new = mixed_tuning.solve(one, labels[one], options, name, seed)
            mixed_tuning.append_tuning_rows(out, new)
            print(f"{one} {name} seed {seed}: {new[-1].best:.6g}, {new[-1].ended}", file=sys.stderr)


@tuning.command("table")
def table_tuning(
    files: list[Path],
    labels: Annotated[str, typer.Option(help="Labels that are ranked.")] = "esgroup,tpe,random",
    label: Annotated[str, typer.Option(help="Label that is judged.")] = "esgroup",
    baseline: Annotated[str, typer.Option(help="Label it is compared with.")] = "tpe",
) -> None:
    """Show mean ranks in markdown; exit code 1 if the goal is missed."""
    for path in files:
        if not path.exists():
            raise typer.BadParameter(f"{path} does not exist")
    try:
        rows = [row for path in files for row in mixed_tuning.read_tuning_rows(path)]
        text, good = mixed_tuning.report(rows, labels.split(","), label, baseline)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    typer.echo(text)
    raise typer.Exit(not good)


if __name__ == "__main__":
    app()
