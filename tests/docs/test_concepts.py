"""The pages about concepts and about the paper: their examples run, and their numbers are those that they print."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import esgroup
from esgroup.distributions import Gaussian
from esgroup.groups import SPELLINGS, Diagonal, Full, Group, Triangular
from esgroup.stopping import budgets

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted([*(DOCS / "concepts").glob("*.md"), *(DOCS / "paper").glob("*.md")])
EXAMPLES = {
    f"{page.parent.name}-{page.stem}-{i}": code
    for page in PAGES
    for i, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
}


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """The notice that loops are being compiled, on a slow machine, is not the examples' fault."""
    for structure in ("full", "diagonal", "block_triangular", "triangular"):
        esgroup.minimize(lambda x: float(x @ x), np.ones(4), 0.5, structure=structure, max_evals=50, rng=1)


def run(name: str, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, object], str]:
    """Run an example; return its names and what it has printed."""
    names: dict[str, object] = {}
    exec(compile(EXAMPLES[name], name, "exec"), names)
    out, err = capsys.readouterr()
    assert err == ""
    return names, out


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_and_says_something(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(name, capsys)[1].strip()


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


# ---- what the pages say of their examples


def test_the_loop_by_hand_finds_the_minimum(capsys: pytest.CaptureFixture[str]) -> None:
    names, _ = run("concepts-generation-0", capsys)
    np.testing.assert_allclose(names["state"].mean, [1.0, 1.0], atol=1e-6)  # type: ignore[attr-defined]


@pytest.mark.parametrize("group", [Full(2), Triangular(2), Diagonal(2)], ids=str)
def test_the_matrices_of_the_worked_example_are_those_of_the_library(group: Group) -> None:
    a = group.from_dense(np.diag([2.0, 1.0]))
    m = group.project([[2.0, 1.0]], [0.2], shift=0.2)
    root = group.dense(group.product_h(a, m))
    name = type(group).__name__.lower()
    (line,) = (line for line in text_of("concepts/local-coordinates.md").splitlines() if line.startswith(f"| {name} |"))
    printed = [
        np.array([[float(x) for x in row.split("&")] for row in matrix.split(r"\\")])
        for matrix in re.findall(r"\\begin\{pmatrix\}(.*?)\\end\{pmatrix\}", line)
    ]
    np.testing.assert_allclose(printed[0], group.dense_local(m), atol=1e-12)
    np.testing.assert_allclose(printed[1], group.dense(group.h(m)), atol=1e-12)
    np.testing.assert_allclose(printed[2], root, atol=1e-12)
    np.testing.assert_allclose(printed[3], root @ root.T, atol=0.0051)


def test_full_and_triangular_steps_of_the_covariance_agree_to_first_order() -> None:
    def covariance(group: Group, weight: float) -> np.ndarray:
        a = group.from_dense(np.diag([2.0, 1.0]))
        root = group.dense(group.product_h(a, group.project([[2.0, 1.0]], [weight], shift=weight)))
        return root @ root.T

    gaps = [np.abs(covariance(Full(2), w) - covariance(Triangular(2), w)).max() for w in (0.02, 0.002)]
    assert 90 < gaps[0] / gaps[1] < 110


def test_scores_in_local_coordinates_are_z_and_z_zt_less_i() -> None:
    """By differences of log densities, at a mean and a root that are nothing special."""
    family = Gaussian("triangular", mean=[0.3, -0.7])
    group, state = family.group, family.state()._replace(root=np.array([1.3, -0.4, 0.8]))
    z = np.array([2.0, 1.0])
    x = family.points(state, z[None]).x[0]
    rate = 1e-6
    for i, j in ((0, 0), (1, 0), (1, 1)):
        m = group.from_dense(np.eye(2) + rate * np.outer(np.eye(2)[i], np.eye(2)[j])) - group.identity()
        moved = state._replace(root=group.product_h(state.root, m))
        slope = (family.log_density(moved, x) - family.log_density(state, x)) / rate
        assert slope == pytest.approx((np.outer(z, z) - np.eye(2))[i, j], abs=1e-4)


def test_ranks_and_weights_are_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("concepts-ranks-0", capsys)[1].strip() == "True"
    _, out = run("concepts-ranks-1", capsys)
    said = re.findall(r"# +((?:-?\d\.\d+ *){10})", EXAMPLES["concepts-ranks-1"])
    assert [line.split() for line in said] == [line.strip("[] ").split() for line in out.splitlines()[:2]]


def test_the_reasons_to_stop_are_those_that_the_page_names() -> None:
    text = text_of("concepts/stopping.md")
    for name in (budgets.TARGET, *budgets.TOLERANCES, *budgets.CONTRADICTIONS, *budgets.BUDGETS):
        assert f"`{name}`" in text


def test_the_examples_of_stopping_stop_for_the_reasons_beside_them(capsys: pytest.CaptureFixture[str]) -> None:
    _, out = run("concepts-stopping-0", capsys)
    reasons = [set(re.findall(r"'(\w+)': ", line)) for line in out.splitlines()]
    assert reasons == [{"target"}, {"max_evals"}, {"tolx"}, {"divergence"}, {"flat", "tolfun"}]


def test_every_structure_with_a_spelling_is_on_the_page_of_groups() -> None:
    text = text_of("concepts/groups.md")
    assert [name for name in SPELLINGS if f'`"{name}' not in text] == []


def test_the_known_hubs_save_evaluations(capsys: pytest.CaptureFixture[str]) -> None:
    _, out = run("concepts-groups-0", capsys)
    full, diagonal, hubs = (int(line.split()[-2]) for line in out.splitlines())
    assert hubs < full < diagonal == 40_000
    assert run("concepts-groups-1", capsys)[1].splitlines()[-1] == "10"


def test_a_long_path_means_that_steps_are_too_short(capsys: pytest.CaptureFixture[str]) -> None:
    names, _ = run("concepts-step-size-0", capsys)
    path_after = names["path_after"]
    assert path_after(lambda x: x[0], 1.0, 30)[0] > 1.5  # type: ignore[operator]
    assert path_after(lambda x: x @ x, 100.0, 10)[0] < 0.8  # type: ignore[operator]


def test_the_errata_that_are_computed_come_out_as_said(capsys: pytest.CaptureFixture[str]) -> None:
    ratio, determinant = (float(line) for line in run("paper-index-0", capsys)[1].splitlines())
    assert ratio == pytest.approx(3.29, abs=0.01) and determinant == 0.0


# ---- links


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_links_lead_to_files(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    absent = [link for link in links if link and not (page.parent / link).exists()]
    assert absent == []


def test_places_in_the_code_exist() -> None:
    pattern = r"`((?:esgroup|scripts|tests)/[\w/.*]+)`"
    places = {place for page in PAGES for place in re.findall(pattern, page.read_text(encoding="utf-8"))}
    root = DOCS.parent
    assert places and [place for place in sorted(places) if not list(root.glob(place))] == []
