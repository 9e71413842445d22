"""The command `esgroup`. Every subcommand imports what it needs when it is called, so that `--help` is fast."""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer

from esgroup.command import streams
from esgroup.command.job import END, FILES, SEARCH, Job, complete_problem, option
from esgroup.options import SearchOptions

FAILED, WRONG_INPUT, INTERRUPTED = 1, 2, 130


class Command(typer.Typer):
    """A command that tolerates standard streams that are closed, full or not read."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Run the command line and exit."""
        streams.open_missing()
        try:
            with streams.forgiving_output():
                return super().__call__(*args, **options)
        except streams.OutputError as error:
            print(f"error: the output could not be written: {error.strerror}", file=sys.stderr)
            sys.exit(FAILED)


app = Command(
    help="Black-box search with evolution strategies whose search distributions have structure.",
    no_args_is_help=True,
    epilog="""[bold]Examples[/bold]

$ esgroup run rosenbrock --dim 20 --target 1e-8 --plot rosenbrock.png

$ esgroup run mymodule:f --dim 12 --max-evals 5000

$ esgroup list

For details: `esgroup COMMAND --help`. `esgroup --install-completion` enables Tab completion of commands, options, \
problems and presets in bash, zsh, fish and PowerShell.""",
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from esgroup.version import __version__

        typer.echo(f"esgroup {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def _fail(message: object, code: int = WRONG_INPUT) -> NoReturn:
    """Print one red line and exit with this code."""
    typer.secho(f"error: {' '.join(str(message).split())}", fg="red", err=True)
    raise typer.Exit(code)


@contextlib.contextmanager
def _input_errors() -> Iterator[None]:
    """Turn exceptions that wrong arguments raise into one line and an exit code."""
    try:
        yield
    except streams.OutputError:
        raise  # no argument is to blame
    except OSError as error:
        _fail(f"{error.strerror}: {error.filename}" if error.strerror and error.filename else error)
    except (ValueError, TypeError, ImportError, OverflowError) as error:
        _fail(error)
    except MemoryError as error:
        _fail(f"not enough memory: {error}")


def _examples(*lines: str) -> str:
    """Examples below the help of a command; empty lines, because typer joins lines that follow each other."""
    return "\n\n".join(["[bold]Examples[/bold]", *(f"$ {line}" for line in lines)])


# ---- completion -------------------------------------------------------------------------------------------------


def _complete_preset(incomplete: str) -> list[tuple[str, str]]:
    """Presets that start with the typed text, each with its description."""
    from esgroup.compare.presets import PRESETS

    return [(name, preset.about) for name, preset in PRESETS.items() if name.startswith(incomplete)]


# ---- run --------------------------------------------------------------------------------------------------------


def _with_options_of_a_job(command: Callable[[Job], None]) -> Callable[..., None]:
    """Turn a function of a job into a command, with the job's fields and the options from `esgroup.options`."""
    own = list(inspect.signature(Job, eval_str=True).parameters.values())[:-1]  # the last are the options of a search
    more = []
    for one in fields(SearchOptions):
        offered = one.metadata["command"]
        if offered is not None:
            names = [f"--{one.name.replace('_', '-')}"] if offered.type is bool else []  # no --no-...
            annotation = Annotated[offered.type, option(SEARCH, *names, help=offered.help)]  # type: ignore[name-defined]
            more.append(inspect.Parameter(one.name, own[-1].kind, default=one.default, annotation=annotation))

    @functools.wraps(command)
    def typed(**arguments: Any) -> None:
        command(Job(**{p.name: arguments[p.name] for p in own}, options={p.name: arguments[p.name] for p in more}))

    typed.__signature__ = inspect.Signature(own + more)  # type: ignore[attr-defined]
    typed.__annotations__ = {p.name: p.annotation for p in own + more}
    return typed


@app.command(
    epilog=_examples(
        "esgroup run rosenbrock --dim 20 --target 1e-8 --plot figure.png",
        "esgroup run mymodule:f --dim 12 --bounds=-5,5 --max-evals 5000 --workers 4",
        "esgroup run mymodule:f --x0 0.5,1,-2 --max-time 600 --checkpoint run.npz",
        "esgroup run mymodule:f --x0 0.5,1,-2 --checkpoint run.npz --resume",
        "esgroup run rosenbrock --method newton --json",
    )
)
@_with_options_of_a_job
def run(job: Job) -> None:
    """Minimize a function. Ctrl-C prints the best point so far and keeps the checkpoint, if there is one."""
    from esgroup.command import run

    output = streams.stdout_to_stderr() if job.as_json else contextlib.nullcontext()
    try:
        with _input_errors(), streams.short_warnings(), output:  # what an objective prints is not JSON
            outcome = run.run(job)
    except run.ObjectiveError as error:
        typer.echo(str(error), err=True, nl=False)
        saved = "" if job.checkpoint is None else f"; {job.checkpoint} has all earlier values"
        which = job.problem if job.constraints is None else f"{job.problem} or {job.constraints}"
        _fail(f"{which} raised an exception{saved}; use --on-error nan to count it as a failed evaluation", FAILED)
    except KeyboardInterrupt:
        _fail("interrupted before the search began", INTERRUPTED)
    if job.as_json:
        typer.echo(json.dumps(outcome.json(), allow_nan=False))
    else:
        for label, text in outcome.lines():
            typer.echo(typer.style(f"{label:<9}", bold=True) + text)
    if outcome.trouble:
        _fail(outcome.trouble, INTERRUPTED if outcome.interrupted else FAILED)
    if outcome.interrupted:
        raise typer.Exit(INTERRUPTED)
    if outcome.all_failed:
        _fail("all evaluations failed: none returned a number other than NaN", FAILED)


# ---- compare ----------------------------------------------------------------------------------------------------

_WHAT = "What to compare"


@app.command(
    epilog=_examples(
        "esgroup compare --preset quick",
        "esgroup compare rosenbrock ellipsoid --dims 10,40 --methods esgroup,cma,bfgs",
        "esgroup compare mymodule:f --dims 12 --seeds 15 --out mine",
    )
)
def compare(
    problems: Annotated[
        list[str] | None,
        typer.Argument(
            help="Problems of `esgroup list`, or MODULE:FUNCTION for your own f(x).", autocompletion=complete_problem
        ),
    ] = None,
    preset: Annotated[
        str | None, option(_WHAT, help="quick, paper, bbob, largescale or spd.", autocompletion=_complete_preset)
    ] = None,
    dims: Annotated[
        str | None, option(_WHAT, help="Numbers of variables, such as 10,40,200; default: those of the problems.")
    ] = None,
    methods: Annotated[str | None, option(_WHAT, help="Methods, such as esgroup,esgroup:diagonal,cma,bfgs.")] = None,
    seeds: Annotated[str | None, option(_WHAT, help="Number of seeds, or a list such as 5-9; default: 5.")] = None,
    starts: Annotated[
        Literal["random", "default"] | None, option(_WHAT, help="A random start for each seed, or the problem's own.")
    ] = None,
    reference: Annotated[str | None, option(_WHAT, help="Method to compare the others with; default: cma.")] = None,
    targets: Annotated[str | None, option(END, help="Distances to the minimum, such as 1,1e-3,1e-8.")] = None,
    max_evals: Annotated[
        int | None, option(END, min=1, help="Maximum number of evaluations per run; default: 3000 per variable.")
    ] = None,
    max_time: Annotated[float | None, option(END, help="Maximum number of seconds per run; default: 600.")] = None,
    out: Annotated[Path | None, option(FILES, help="Folder for all files.")] = None,
    jobs: Annotated[int | None, option(FILES, help="Number of parallel runs; default: one per core.")] = None,
    extend: Annotated[bool, option(FILES, "--extend", help="Add to the comparison that is in the folder.")] = False,
    markdown: Annotated[
        bool, option(FILES, "--markdown", help="Print Markdown on a terminal too; files and pipes always get it.")
    ] = False,
) -> None:
    """Compare methods on problems: a table, figures and a page. After an interrupt, rerun the command to continue."""
    from esgroup.compare import command

    request = command.Request(
        problems or (), preset, dims, methods, seeds, targets, max_evals, max_time, starts, reference, out, jobs, extend
    )
    with _input_errors():
        runs, table = command.compare(request)
    if table is None:
        _fail(f"interrupted: {len(runs):,} runs are in {request.folder}; continue with the same command", INTERRUPTED)
    if markdown or not sys.stdout.isatty():
        typer.echo(table)
    else:
        from rich.console import Console

        from esgroup.compare.report import terminal

        terminal.show(table, Console())
    for label, name in (("page", "index.html"), ("details", "table.md"), ("runs", "runs.csv")):
        typer.echo(typer.style(f"{label:<9}", bold=True) + str(request.folder / name))
    failures = sum(run.failed for run in runs)
    if failures:
        typer.secho(f"{failures} of {len(runs)} runs failed: see the table for the reasons", fg="yellow", err=True)


# ---- plot and list ----------------------------------------------------------------------------------------------


@app.command(
    epilog=_examples(
        "esgroup run rosenbrock --dim 20 --target 1e-8 --history full.jsonl",
        "esgroup plot full.jsonl",
        "esgroup plot full.jsonl diagonal.jsonl --out both.svg",
    )
)
def plot(
    histories: Annotated[
        list[Path], typer.Argument(help="Files written by `esgroup run --history`; several are drawn in one figure.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Figure (.png, .svg or .pdf); default: .png next to the history; for several, overlay.png."),
    ] = None,
) -> None:
    """Draw a history: best value, step size, axis ratio, mean, standard deviations. For several: the best values."""
    from esgroup.plots.overlay import overlay
    from esgroup.plots.run import plot

    first = histories[0]
    with _input_errors():
        if len(histories) == 1:
            path = plot(first, first.with_suffix(".png") if out is None else out)
        else:
            path = overlay(histories, first.with_name("overlay.png") if out is None else out)
    typer.echo(f"figure   {path}")


@app.command(
    epilog=_examples(
        "esgroup run rosenbrock --dim 50 --history run.jsonl",
        "esgroup watch run.jsonl",
        "esgroup watch run.jsonl --once --out now.html",
    )
)
def watch(
    history: Annotated[Path, typer.Argument(help="File that `esgroup run --history` writes; it need not exist yet.")],
    out: Annotated[Path | None, typer.Option(help="Page to write; default: a .html next to the history.")] = None,
    every: Annotated[float, typer.Option(help="Seconds between updates.")] = 5.0,
    once: Annotated[bool, typer.Option("--once", help="Write the page once and exit.")] = False,
) -> None:
    """Show a running search on a page that updates itself: one file, no server. Ends with the search or on Ctrl-C."""
    from esgroup.command import watch as watching

    if not 0.1 <= every <= 86_400:
        _fail(f"--every must be between 0.1 and 86400 seconds, got {every:g}")
    with _input_errors():
        ended = watching.watch(history, out, every, once=once, say=typer.echo)
    if not ended:
        raise typer.Exit(INTERRUPTED)


@app.command("list", epilog=_examples("esgroup list", "esgroup list --dim 1000"))
def list_all(
    dim: Annotated[int, typer.Option(min=1, help="Number of variables at which to count stored numbers.")] = 100,
) -> None:
    """List problems, structures and methods."""
    from esgroup.command import listing

    listing.show(dim)
