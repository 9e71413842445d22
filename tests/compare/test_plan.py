"""A plan is checked before the first run, and a folder belongs to one plan."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from esgroup.compare.folder import Folder
from esgroup.compare.plan import ComparisonPlan, plan
from esgroup.compare.records import COLUMNS, Cell
from esgroup.compare.report import outputs
from tests.compare.samples import run


def small(**more: object) -> ComparisonPlan:
    arguments = {"problems": ["sphere", "ellipsoid"], "dims": [3], "methods": ["esgroup", "cma"], "seeds": [0, 1]}
    return plan(**(arguments | {"targets": (10.0, 1.0)} | more))  # type: ignore[arg-type]


def test_every_method_runs_on_every_problem_from_every_seed() -> None:
    cells = small(dims=[2, 3]).cells
    assert len(cells) == len(set(cells)) == 2 * 2 * 2 * 2
    assert cells[:3] == [Cell("sphere", 2, "esgroup", 0), Cell("sphere", 2, "cma", 0), Cell("sphere", 3, "esgroup", 0)]
    assert [cell.seed for cell in cells] == [0] * 8 + [1] * 8


def test_a_problem_without_dims_has_its_own() -> None:
    assert plan(["sphere"]).problems == (("sphere", 20),)


def test_what_is_named_twice_runs_once() -> None:
    assert len(small(problems=["sphere", "sphere"], methods=["cma", "cma"], seeds=[0, 0]).cells) == 1


def test_targets_are_sorted_the_largest_first() -> None:
    assert small(targets=(1e-8, 10.0, 1.0, 1.0)).settings.targets == (10.0, 1.0, 1e-8)


def test_the_reference_is_cma_or_the_first() -> None:
    assert small().reference == "cma"
    assert small(methods=["bfgs", "esgroup"]).reference == "bfgs"
    with pytest.raises(ValueError, match="reference must be one of the methods esgroup, cma, got 'bfgs'"):
        small(reference="bfgs")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"problems": ["rosenbruck"]}, r"unknown problem 'rosenbruck' \(did you mean 'rosenbrock'"),
        ({"problems": []}, "problems must not be empty"),
        ({"methods": ["cmaa"]}, r"unknown method 'cmaa' \(did you mean 'cma'"),
        ({"methods": ["esgroup:hiesenberg"]}, "heisenberg"),
        ({"methods": ["esgroup:block_triangular:k=9"]}, "k must be"),
        ({"methods": ["cma@colesky"]}, "unknown chart 'colesky'"),
        ({"methods": ["wishart"]}, "the method wishart searches positive-definite matrices; sphere has vectors"),
        (
            {"problems": ["kronecker_ellipsoid", "metric_nearness"], "methods": ["matrix-gaussian:diagonal"]},
            "the method matrix-gaussian:diagonal searches matrices; metric_nearness has positive-definite matrices",
        ),
        ({"problems": ["metric_nearness"], "methods": ["wishart@log"]}, "wishart searches .* chart"),
        ({"problems": ["metric_nearness"], "methods": ["wishart:auto"]}, "unknown structure 'auto'"),
        ({"problems": ["metric_nearness"], "methods": ["wishart:block_triangular:k=4"]}, "k must be .* 3.*, got 4"),
        (
            {"problems": ["kronecker_ellipsoid"], "methods": ["matrix-gaussian:block_triangular:k=4"]},
            "k must be .* 3.*, got 4",
        ),
        (
            {"methods": ["tests.compare.oddities:absent"]},
            r"needs no_such_package_at_all: pip install 'esgroup\[bench\]'",
        ),
        ({"dims": [0]}, "dim must be an integer >= 1, got 0"),
        ({"seeds": []}, "seeds must not be empty"),
        ({"seeds": [-1]}, "a seed must be an integer >= 0, got -1"),
        ({"targets": [float("nan")]}, "a target must be a finite number, got nan"),
        ({"max_time": 0.0}, "max_time must be a positive finite number, got 0.0"),
        ({"targets": [1.0, -2.0]}, "targets must be distances to the minimum, got -2"),
        ({"problems": ["tests.compare.oddities:sphere"], "dims": []}, "oddities:sphere needs .* variables.* --dims"),
    ],
)
def test_what_cannot_be_done_is_refused_before_the_first_run(bad: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small(**bad)


def test_structures_are_those_of_the_sides_of_a_matrix_or_of_its_coordinates() -> None:
    methods = ("wishart:block_triangular:k=3", "esgroup:block_triangular:k=6@log")
    assert small(problems=["metric_nearness"], methods=methods).methods == methods


# ---- the folder -----------------------------------------------------------------------------------------------------


def test_a_folder_goes_on_where_it_was(tmp_path: Path) -> None:
    first = Folder(tmp_path / "out", small(), "the command")
    assert len(first.missing) == 8 and first.runs == []
    first.add(run(problem="ellipsoid", method="cma", seed=1))
    first.close()
    again = Folder(tmp_path / "out", small(), "the command")
    assert len(again.missing) == 7 and again.runs == first.runs
    assert Cell("ellipsoid", 3, "cma", 1) not in again.missing


def test_an_interrupted_write_is_mended(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "out", small(), "c")
    folder.add(run())
    folder.close()
    with (tmp_path / "out" / "runs.csv").open("a") as file:
        file.write("sphere,3,esg")
    again = Folder(tmp_path / "out", small(), "c")
    again.add(run(seed=1))
    again.close()
    assert [one.seed for one in Folder(tmp_path / "out", small(), "c").runs] == [0, 1]


def test_a_folder_whose_runs_are_empty_goes_on_and_has_no_report_before(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "out", small(), "c")
    folder.close()
    for content in ("", ",".join(COLUMNS) + "\n", "problem,di"):
        (tmp_path / "out" / "runs.csv").write_text(content)
        with closing(Folder(tmp_path / "out", small(), "c")) as again:
            assert again.runs == [] and len(again.missing) == 8
            with pytest.raises(ValueError, match=r"out.runs\.csv: .*got"):
                outputs.write(again, "title", "c")


def test_a_folder_with_runs_that_cannot_be_is_refused_with_their_file_and_line(tmp_path: Path) -> None:
    with closing(Folder(tmp_path / "out", small(), "c")) as folder:
        folder.add(run(size=0))  # by which costs would be divided
    for _ in range(2):  # the folder is not locked by a failure
        with pytest.raises(ValueError, match=r"line 2 of .*runs\.csv is not a run: size"):
            Folder(tmp_path / "out", small(), "c")


def test_runs_are_in_the_order_of_the_plan_whenever_they_ended(tmp_path: Path) -> None:
    folder = Folder(tmp_path, small(), "c")
    for seed, method in ((1, "cma"), (0, "cma"), (0, "esgroup")):
        folder.add(run(seed=seed, method=method))
    assert [(one.seed, one.method) for one in folder.runs] == [(0, "esgroup"), (0, "cma"), (1, "cma")]


def test_another_comparison_is_not_overwritten(tmp_path: Path) -> None:
    Folder(tmp_path / "out", small(), "c").add(run())
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    for other in (small(max_evals=7), small(targets=(1.0,)), small(starts="default")):
        with pytest.raises(ValueError, match=r"out .*another comparison \(.*, now .*\): choose another --out"):
            Folder(tmp_path / "out", other, "d", extend=True)
    with pytest.raises(ValueError, match=r"\(methods esgroup, cma, now esgroup, bfgs.*\): .*--extend"):
        Folder(tmp_path / "out", small(methods=["esgroup", "bfgs"], reference="esgroup"), "d")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_a_comparison_may_be_extended(tmp_path: Path) -> None:
    with closing(Folder(tmp_path, small(), "c")) as first:
        first.add(run())
    more = Folder(tmp_path, small(problems=["sphere"], methods=["cma", "bfgs"], seeds=[0, 4]), "d", extend=True)
    assert more.plan.methods == ("esgroup", "cma", "bfgs") and more.plan.seeds == (0, 1, 4)
    assert more.plan.problems == (("sphere", 3), ("ellipsoid", 3))
    assert len(more.plan.cells) == 18 and len(more.missing) == 17
    assert json.loads((tmp_path / "command.json").read_text())["plan"]["methods"] == ["esgroup", "cma", "bfgs"]


def test_folders_of_something_else_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match=r"is not empty .*: choose another --out"):
        Folder(tmp_path, small(), "c")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(ValueError, match=r"--out must be a folder, but .*thesis\.tex is a file"):
        Folder(tmp_path / "thesis.tex", small(), "c")


def test_a_folder_is_for_one_comparison_at_a_time(tmp_path: Path) -> None:
    first = Folder(tmp_path, small(), "c")
    with pytest.raises(ValueError, match=r"another comparison is running in .*: wait for it, or choose another --out"):
        Folder(tmp_path, small(), "c")
    first.close()
    Folder(tmp_path, small(), "c").close()


def test_a_broken_plan_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "command.json").write_text("{")
    with pytest.raises(ValueError, match=r"command.json cannot be read \(.*\): choose another --out"):
        Folder(tmp_path, small(), "c")
