"""The tables of "Migrating from ..." have every option of the packages that are installed, and name our options."""

import inspect
import re
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import scipy.optimize

import esgroup
from esgroup.newton import NewtonSettings
from esgroup.restarts import IPOP
from esgroup.strategies import Strategy

PAGES = Path(__file__).parents[2] / "docs" / "how-to"


def rows(page: str) -> list[tuple[str, str]]:
    """First and second cell of every row of every table on a page."""
    lines = [line for line in (PAGES / f"{page}.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    cells = [line.strip().strip("|").split(" | ") for line in lines]
    return [(row[0], row[1]) for row in cells]


def named(page: str) -> set[str]:
    """The names in the first column, without what follows them in the same backticks: `restarts=9` is restarts."""
    words = [word for first, _ in rows(page) for word in re.findall(r"`([^`]+)`", first)]
    return {match.group() for word in words if (match := re.match(r"[\w.]+", word))}


def parameters(function: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(function).parameters) - {"self"}


def cma_options() -> set[str]:
    import cma

    return set(cma.CMAOptions())


def cma_fmin2() -> set[str]:
    import cma

    return parameters(cma.fmin2)


def cmaes_classes() -> set[str]:
    import cmaes

    found = {name for name in vars(cmaes) if re.match(r"[A-Z]\w*$", name)}
    for name in found.copy():
        found |= parameters(getattr(cmaes, name).__init__)
    return found


def optuna_sampler() -> set[str]:
    import optuna

    return parameters(optuna.samplers.CmaEsSampler.__init__)


def optuna_study() -> set[str]:
    import optuna

    wanted = parameters(optuna.create_study) | parameters(optuna.Study.optimize)
    return wanted - {"func", "directions"}  # the objective; several objectives have their line


def scipy_minimize() -> set[str]:
    return parameters(scipy.optimize.minimize)


def scipy_evolution() -> set[str]:
    return parameters(scipy.optimize.differential_evolution)


SOURCES = {
    "cma options": ("cma", "from-cma", cma_options),
    "cma fmin2": ("cma", "from-cma", cma_fmin2),
    "cmaes": ("cmaes", "from-cmaes", cmaes_classes),
    "optuna sampler": ("optuna", "from-optuna", optuna_sampler),
    "optuna study": ("optuna", "from-optuna", optuna_study),
    "scipy minimize": ("scipy", "from-scipy", scipy_minimize),
    "scipy differential_evolution": ("scipy", "from-scipy", scipy_evolution),
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_option_has_its_line(source: str) -> None:
    package, page, options = SOURCES[source]
    pytest.importorskip(package, reason=f"{package} is not installed: its table is not compared")
    assert sorted(options() - named(page)) == []


def test_the_table_of_cma_has_no_option_that_is_gone() -> None:
    pytest.importorskip("cma", reason="cma is not installed: its table is not compared")
    text = (PAGES / "from-cma.md").read_text(encoding="utf-8")
    (wanted,) = re.findall(r"`cma` \(pycma\) (\d+\.\d+)", text)
    if not version("cma").startswith(f"{wanted}."):
        pytest.skip(f"the table is that of cma {wanted}")
    last = text[text.index("## Options") :]
    options = re.findall(r"^\| (`.*?) \| ", last, re.MULTILINE)
    assert {name for cell in options for name in re.findall(r"`(\w+)`", cell)} == cma_options()


def ours() -> set[str]:
    functions: list[Callable[..., Any]] = [
        esgroup.minimize,
        esgroup.Searcher,
        esgroup.Searcher.from_data,
        esgroup.Searcher.tell,
        esgroup.Real,
        esgroup.Choice,
        IPOP,
        NewtonSettings,
        scipy.optimize.NonlinearConstraint,
    ]
    found = {name for function in functions for name in parameters(function)}
    try:
        from esgroup.optuna import EsgroupSampler
    except ImportError:
        return found | {"seed", "n_startup_trials", "independent_sampler", "warn_independent_sampling"}
    return found | parameters(EsgroupSampler)


@pytest.mark.parametrize("page", ["from-cma", "from-cmaes", "from-optuna", "from-scipy"])
def test_what_the_tables_recommend_is_there(page: str) -> None:
    spelled = [code for _, second in rows(page) for code in re.findall(r"`([^`]+)`", second)]
    arguments = {name for code in spelled for name in re.findall(r"\b([a-z_]\w*)=", code)}
    assert len(arguments) > 5
    assert sorted(arguments - ours()) == []


@pytest.mark.parametrize("page", ["from-cma", "from-cmaes"])
def test_attributes_of_a_search_that_the_tables_name_are_there(page: str) -> None:
    attributes = [
        word
        for first, second in rows(page)
        for code in re.findall(r"`([^`]+)`", second)
        for word in re.findall(r"^(?:search|Searcher)\.(\w+)|^res(?:ult)?\.(\w+)", code)
    ]
    search = esgroup.Searcher([1.0, 1.0], 0.5, constraints=1, rng=1)
    assert len(attributes) > 1
    for of_search, of_result in attributes:
        assert hasattr(search, of_search) if of_search else of_result in search.result
    assert issubclass(type(search.strategy), Strategy)
