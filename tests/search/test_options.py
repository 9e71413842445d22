"""Every option of a search is described once: what is written elsewhere agrees with the list."""

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

import esgroup
from esgroup import Searcher, options
from esgroup.command.cli import app
from esgroup.newton import NewtonSettings, minimize_newton
from esgroup.options import SearchOptions
from tests.search.support import OPTIONS

LIST = {one.name: one for one in fields(SearchOptions)}


@pytest.mark.parametrize("call", [Searcher, esgroup.minimize])
def test_signatures_have_every_option_with_its_default_and_type(call: object) -> None:
    parameters = inspect.signature(call).parameters  # type: ignore[arg-type]
    assert [name for name in parameters if name in LIST] == list(LIST)
    for name, one in LIST.items():
        assert parameters[name].default == one.default, name
        assert parameters[name].annotation == one.type, name
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("call", [Searcher, esgroup.minimize])
def test_every_option_is_documented(call: object) -> None:
    text = " ".join((call.__doc__ or "").split())
    assert "{options}" not in text
    for name, one in LIST.items():
        assert f"{name} : default {one.default!r}" in text and one.metadata["text"] in text


def test_the_command_offers_what_the_list_says() -> None:
    command = typer.main.get_command(app).commands["run"]  # type: ignore[attr-defined]
    offered = {parameter.name: parameter for parameter in command.params}
    for name, one in LIST.items():
        if one.metadata["command"] is None:
            assert name not in offered or name == "bounds"  # a text, which the command parses
        else:
            assert offered[name].default == one.default and offered[name].help == one.metadata["command"].help


def test_stored_options_are_those_of_the_checkpoint() -> None:
    from esgroup.search import snapshot

    described = snapshot.described(Searcher([1.0, 2.0], 1.0).strategy)[0]
    stored = [name for name, one in LIST.items() if one.metadata["stored"]]
    assert list(described["fields"]["options"]["fields"]) == stored


def test_every_option_that_is_accepted_makes_a_search() -> None:
    for name, one in LIST.items():
        for value in one.metadata["accepts"] or ():
            assert getattr(options.chosen(dict.fromkeys(LIST) | defaults() | {name: value}), name) == value
            search = Searcher(np.ones(6), 0.5, rng=1, **{name: value})
            search.tell([float(x @ x) for x in search.ask()])
    tried = {name for chosen in OPTIONS.values() for name in chosen}
    assert set(LIST) - tried <= {"structure", "step_size", "model", "cov0"}  # which have tests of their own


@pytest.mark.parametrize(("first", "then", "text"), [
    ({"mirrored": True}, {}, "mirrored is True, not False"),
    ({}, {"step_size": "tpa"}, "step_size is 'csa', not 'tpa'"),
])  # fmt: skip
def test_a_run_continues_with_its_own_options(
    first: dict[str, Any], then: dict[str, Any], text: str, tmp_path: Path
) -> None:
    common: dict[str, Any] = {"checkpoint": tmp_path / "run.npz", "rng": 1}
    esgroup.minimize(quadratic, [1.0, 2.0], 0.5, max_evals=30, **common, **first)
    with pytest.raises(ValueError, match=text):
        esgroup.minimize(quadratic, [1.0, 2.0], 0.5, max_evals=60, resume=True, **common, **then)


def defaults() -> dict[str, object]:
    return {name: one.default for name, one in LIST.items()}


def test_what_an_option_does_not_accept_is_refused_by_name() -> None:
    for name, one in LIST.items():
        if one.metadata["accepts"] is not None:
            with pytest.raises((ValueError, TypeError), match=rf"{name} .* 'something'"):
                Searcher([1.0, 2.0], 1.0, **{name: "something"})


# ---- Newton's own -------------------------------------------------------------------------------------------------


def quadratic(x: np.ndarray) -> float:
    return float(x @ x)


def slope(x: np.ndarray) -> np.ndarray:
    return 2 * x


def test_the_settings_of_newton_are_arguments_of_its_call() -> None:
    parameters = inspect.signature(minimize_newton).parameters
    for one in fields(NewtonSettings):
        assert parameters[one.name].default == one.default, one.name
    shared = set(inspect.signature(esgroup.minimize).parameters)
    assert set(parameters) - {one.name for one in fields(NewtonSettings)} <= shared


def test_settings_reach_newton() -> None:
    loose = esgroup.minimize(quadratic, [3.0, 4.0], method="newton", jac=slope, newton=NewtonSettings(gtol=1e3))
    tight = esgroup.minimize(quadratic, [3.0, 4.0], method="newton", jac=slope, newton=NewtonSettings(gtol=1e-9))
    assert loose.nit == 0 < tight.nit


@pytest.mark.parametrize("name", ["gtol", "momentum", "line_search"])
def test_an_error_says_where_settings_of_newton_belong(name: str) -> None:
    with pytest.raises(TypeError, match=rf"argument '{name}'.*newton=.*NewtonSettings"):
        esgroup.minimize(quadratic, [3.0, 4.0], method="newton", jac=slope, **{name: 1.0})


def test_newton_must_be_settings_and_is_for_newton() -> None:
    with pytest.raises(TypeError, match=r"newton .*NewtonSettings.* 3"):
        esgroup.minimize(quadratic, [3.0], method="newton", jac=slope, newton=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"newton .*search"):
        esgroup.minimize(quadratic, [3.0], newton=NewtonSettings())
