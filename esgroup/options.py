"""The options of a search, each described once: name, default, accepted values, meaning.

`SearchOptions` is the list. It provides the checks, the documentation of `Searcher` and `minimize`, the options that a
checkpoint holds, and the options of `esgroup run`. A new option is a field here, and a line in the signatures of
`Searcher` and `minimize`, which a test compares with the list.

This module imports nothing heavy, because the command reads it before it knows what to do.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

if TYPE_CHECKING:
    from esgroup.groups import Group

Algorithm = Literal["default", "paper"]
Noise = Literal["adapt"]
StepSizeRule = Literal["csa", "tpa"]
Model = Literal["quadratic", "auto"]
Auto = Literal["auto"]

DEFAULT_MODEL: Model | None = None  # of every search

T = TypeVar("T")


class OnCommandLine(NamedTuple):
    """How `esgroup run` offers an option: the type of its value, and a short help."""

    type: Any
    help: str


def _option(
    default: Any,
    text: str,
    *,
    accepts: tuple[Any, ...] | None = None,  # all accepted values; None if checked elsewhere
    stored: bool = False,  # whether a checkpoint needs it in addition to bounds, structure and popsize
    command: OnCommandLine | None = None,
) -> Any:
    metadata = {"text": text, "accepts": accepts, "stored": stored, "command": command}
    return field(default=default, compare=stored, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """How to search over vectors. A strategy for another distribution accepts the options that it has as fields."""

    structure: Group | str = _option(
        "auto",
        'A group of `esgroup.groups` or its spelling, such as "diagonal" or "block_triangular:k=4". "auto" is the full '
        'matrix below 80 variables, and from 80 on "frame", a few axes that follow the search.',
        command=OnCommandLine(str, "A structure of `esgroup list`."),
    )
    popsize: int | None = _option(
        None,
        "Values per generation; the default is 4 + floor(3 ln dim).",
        command=OnCommandLine(int | None, "Points per generation."),
    )
    bounds: Any = _option(
        None,
        "SciPy's Bounds, a pair of numbers for all variables, or a pair for each; for matrices a pair of numbers or "
        "of matrices. With a `Space`, a mapping of names to pairs, in addition to the bounds of the parameters.",
    )
    algorithm: Algorithm = _option(
        "default",
        '"paper" is the plain published update, without other techniques unless you ask for them.',
        accepts=("default", "paper"),
        stored=True,
        command=OnCommandLine(Algorithm, "paper: the plain update."),
    )
    decoding: bool | Auto = _option(
        "auto",
        'Whether to learn the scales of single variables separately from the structure; "auto" does so for dense ones.',
        accepts=("auto", True, False),
        stored=True,
    )
    mirrored: bool = _option(
        False,
        "Whether samples come in pairs z and -z.",
        accepts=(True, False),
        stored=True,
        command=OnCommandLine(bool, "Draw points in opposite pairs."),
    )
    noise: Noise | None = _option(
        None,
        '"adapt" lowers the learning rates when nearby points differ as much as distant ones, for noisy or multimodal '
        "functions. If the function is noisy, use `xmean` of the result, the mean, rather than x, whose value benefits "
        "from the noise.",
        accepts=(None, "adapt"),
        stored=True,
        command=OnCommandLine(Noise | None, "For noisy or rugged functions."),
    )
    step_size: StepSizeRule = _option(
        "csa",
        'How the step size adapts: "csa", by the length of the path of the mean, or "tpa", by comparing two points, '
        "one ahead of and one behind the last move.",
        accepts=("csa", "tpa"),
        stored=True,
        command=OnCommandLine(StepSizeRule, "Cumulative, or by two test points."),
    )
    model: Model | None = _option(
        DEFAULT_MODEL,
        '"quadratic" learns a quadratic model of the function in addition to the distribution, for functions that take '
        "a millisecond or more to evaluate. `ask` then returns the points worth evaluating next, often fewer than "
        "popsize: a part of a generation, followed by a callback and a line of the history. It works for real "
        "variables, including those of a `Space`, with the structures full, diagonal, block triangular, Heisenberg and "
        "frame. Any integers and choices are searched by ranks; the model then describes the real variables at the "
        "best integers and choices so far. Without real variables there is no model, and the result says so. "
        '"auto" uses the model if evaluations are few: `max_evals` is given and at most 500 per variable, there are '
        "at most 40 variables, all real, with the full structure, and no option that the model does not support. "
        "Otherwise it searches without a model.",
        accepts=(None, "auto", "quadratic"),
        command=OnCommandLine(Model | None, "Learn a model of the function; auto: if max_evals is small."),
    )
    cov0: Any = _option(
        None,
        "The first covariance, which is multiplied by sigma0^2. With a `Space`, the covariance of all its numbers as "
        "they are searched: of logarithms where log=True.",
    )
    fixed: Any = _option(
        None,
        "Variables that stay at x0 (indices or a mask) or at given values (a mapping). With a `Space`, a mapping of "
        "names to values.",
        command=OnCommandLine(str | None, "Variables that stay at the start or at a value: 3,1=0.5."),
    )
    integer: Any = _option(
        None,
        "Variables that are integers: True (all), indices or a mask. With a `Space`, names of Real parameters.",
        command=OnCommandLine(str | None, "Integer variables: 0,2, or all."),
    )

    def __post_init__(self) -> None:
        for one in fields(self):
            value, accepts = getattr(self, one.name), one.metadata["accepts"]
            if accepts is None or any(type(value) is type(known) and value == known for known in accepts):
                continue
            kind = TypeError if accepts == (True, False) else ValueError
            raise kind(f"{one.name} must be {' or '.join(map(repr, accepts))}, got {value!r}")

    def stored(self) -> SearchOptions:
        """The options that a checkpoint holds; the others follow from bounds, structure and popsize."""
        return SearchOptions(**{one.name: getattr(self, one.name) for one in fields(self) if one.metadata["stored"]})

    def given(self) -> dict[str, Any]:
        """The options that differ from their defaults, by name."""
        mine = {one.name: (getattr(self, one.name), one.default) for one in fields(self)}
        return {name: value for name, (value, default) in mine.items() if not _same(value, default)}


NAMES = tuple(one.name for one in fields(SearchOptions))


def chosen(arguments: dict[str, Any]) -> SearchOptions:
    """The options among the arguments of a call, which include all of them."""
    return SearchOptions(**{name: arguments[name] for name in NAMES})


def _same(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, (str, bool)) and value == default)


def documented(owner: T) -> T:
    """Replace the line "{options}" in a docstring with the descriptions of all options."""
    text = owner.__doc__
    if text is not None:  # as it is with python -OO
        line = next(line for line in text.splitlines() if line.strip() == "{options}")
        indent = line[: len(line) - len(line.lstrip())]
        parts = []
        for one in fields(SearchOptions):
            wrapped = textwrap.wrap(one.metadata["text"], 116 - len(indent))
            parts += [f"{indent}{one.name} : default {one.default!r}", *(f"{indent}    {part}" for part in wrapped)]
        owner.__doc__ = text.replace(line, "\n".join(parts))
    return owner
