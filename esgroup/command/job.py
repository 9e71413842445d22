"""The arguments of `esgroup run`: a field for each option of the command line, with its help."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

SEARCH, EVALUATIONS, END, FILES = "How to search", "How to evaluate", "When to stop", "Files and output"

# options passed to `minimize` as typed, under the same names
_PASSED_ON = (
    *("basins", "restarts", "asynchronous", "max_pending", "max_failures", "eval_timeout"),
    *("max_evals", "max_iters", "max_time", "target"),
)


def option(panel: str, *names: str, **more: Any) -> Any:
    """An option in one of the panels of the help text."""
    return typer.Option(*names, rich_help_panel=panel, **more)


def complete_problem(incomplete: str) -> list[tuple[str, str]]:
    """Problems that start with the typed text, each with the first line of its description."""
    from esgroup.problem_registry import known, summary

    makers = known().makers
    return [(name, summary(makers[name])) for name in makers if name.startswith(incomplete)]


@dataclass(frozen=True)
class Job:
    """What was typed; `options` has those described in `esgroup.options`."""

    problem: Annotated[
        str,
        typer.Argument(
            help="A problem of `esgroup list`, or MODULE:FUNCTION for your own f(x).", autocompletion=complete_problem
        ),
    ]
    dim: Annotated[int | None, typer.Option(min=1, help="Number of variables; default: the problem's.")] = None
    x0: Annotated[str | None, typer.Option(help="Start, such as 0.5,1,-2; default: the problem's, or zeros.")] = None
    space: Annotated[str | None, typer.Option(help="A Space of named parameters, as MODULE:NAME.")] = None
    bounds: Annotated[str | None, typer.Option(help="LOW,HIGH for all variables, or one pair each: 0,1;-5,5.")] = None
    constraints: Annotated[
        str | None, typer.Option(help="MODULE:FUNCTION of x that returns a vector; x is feasible if all are <= 0.")
    ] = None
    method: Annotated[Literal["search", "newton"], option(SEARCH, help="newton uses gradients.")] = "search"
    jac: Annotated[str | None, option(SEARCH, help="Gradient for --method newton, as MODULE:FUNCTION.")] = None
    hessp: Annotated[str | None, option(SEARCH, help="Hessian at x times v, as MODULE:FUNCTION of x and v.")] = None
    sigma0: Annotated[
        float | None,
        option(
            SEARCH,
            help="Standard deviation of the first points: about a quarter of the width of the region in which you "
            "expect the minimum.",
        ),
    ] = None
    basins: Annotated[
        int | None, option(SEARCH, min=1, help="Search for several optima with this many Gaussians.")
    ] = None
    restarts: Annotated[Literal["ipop", "bipop"] | None, option(SEARCH, help="Restart elsewhere when stuck.")] = None
    seed: Annotated[int | None, option(SEARCH, min=0, help="Seed of the random numbers.")] = None
    workers: Annotated[int | None, option(EVALUATIONS, help="Worker processes; -1 for one per core.")] = None
    asynchronous: Annotated[
        bool, option(EVALUATIONS, "--asynchronous", help="Start a new point whenever one finishes; with --workers.")
    ] = False
    max_pending: Annotated[
        int | None, option(EVALUATIONS, min=1, help="Maximum number of pending points; with --workers.")
    ] = None
    on_error: Annotated[
        str, option(EVALUATIONS, help="raise; nan: exceptions count as failed; or only these: ValueError,OSError.")
    ] = "raise"
    max_failures: Annotated[
        int | None, option(EVALUATIONS, min=1, help="Stop after this many failed evaluations in a row.")
    ] = None
    eval_timeout: Annotated[
        float | None, option(EVALUATIONS, help="Seconds after which an evaluation counts as failed.")
    ] = None
    max_evals: Annotated[int | None, option(END, min=1, help="Maximum number of evaluations.")] = None
    max_iters: Annotated[int | None, option(END, min=1, help="Maximum number of generations.")] = None
    max_time: Annotated[float | None, option(END, help="Maximum number of seconds.")] = None
    target: Annotated[float | None, option(END, help="Value at which to stop.")] = None
    tolx: Annotated[float | None, option(END, help="Stop when all standard deviations are below this.")] = None
    tolfun: Annotated[float | None, option(END, help="Stop when values differ by no more than this.")] = None
    checkpoint: Annotated[Path | None, option(FILES, help="File for the state of the search (.npz).")] = None
    resume: Annotated[bool, option(FILES, "--resume", help="Continue from the checkpoint.")] = False
    history: Annotated[Path | None, option(FILES, help="File for the history, one JSON line per generation.")] = None
    plot: Annotated[Path | None, option(FILES, help="Figure of the run (.png, .svg or .pdf).")] = None
    as_json: Annotated[bool, option(FILES, "--json", help="Print the result as one JSON object.")] = False
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def passed_on(self) -> dict[str, Any]:
        """Arguments of `minimize` that need not be translated."""
        from esgroup.stopping import TolFun, TolX

        tolerances = ((TolX, self.tolx), (TolFun, self.tolfun))
        stop = tuple(rule(value) for rule, value in tolerances if value is not None)
        same = {name: getattr(self, name) for name in _PASSED_ON}
        return {**same, "rng": self.seed, "stop": stop, **self.options}
