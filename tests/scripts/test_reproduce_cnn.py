"""The experiment with networks: readers of images, verdicts from made-up numbers, runs that resume, and a quick run."""

from __future__ import annotations

import gzip
import json
import math
import pickle
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reproduce
from reproduction import cnn, cnn_data, cnn_methods, cnn_runs, cnn_verdicts
from reproduction.experiment import Plan, Row, Table, Verdict, plan_rows, read_rows
from reproduction.pages import page
from typer.testing import CliRunner

pytestmark = pytest.mark.scripts


# ---- images


def idx(array: np.ndarray) -> bytes:
    return b"\0\0\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


@pytest.fixture
def clothes(tmp_path: Path) -> Path:
    """A tiny set in the files of Fashion-MNIST: two compressed, two not."""
    rng = np.random.default_rng(0)
    for name, n in (("train", 12), ("t10k", 5)):
        images, labels = rng.integers(0, 256, (n, 6, 6), np.uint8), np.arange(n, dtype=np.uint8) % 3
        (tmp_path / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images)))
        (tmp_path / f"{name}-labels-idx1-ubyte").write_bytes(idx(labels))
    return tmp_path


def test_an_idx_file_is_the_array_that_was_written(tmp_path: Path) -> None:
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    (tmp_path / "a").write_bytes(idx(array))
    (tmp_path / "a.gz").write_bytes(gzip.compress(idx(array)))
    for name in ("a", "a.gz"):
        np.testing.assert_array_equal(cnn_data.read_idx(tmp_path / name), array)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "begins with 0, 0, 8"),
        (b"\0\0\x0d\x01\0\0\0\x01\0", r"got \[0, 0, 13\]"),
        (b"\0\0\x08\x02\0\0\0\x01", "2 lengths of axes"),
        (idx(np.zeros((2, 3), np.uint8))[:-1], r"6 numbers for its shape \(2, 3\), got 5"),
        (idx(np.zeros((2, 3), np.uint8)) + b"\0", "got 7"),
    ],
)
def test_a_broken_idx_file_is_refused(tmp_path: Path, raw: bytes, message: str) -> None:
    (tmp_path / "bad").write_bytes(raw)
    with pytest.raises(ValueError, match=message):
        cnn_data.read_idx(tmp_path / "bad")


def test_a_folder_is_recognized_by_its_files(clothes: Path) -> None:
    found = cnn_data.load(str(clothes))
    assert found.name == "Fashion-MNIST" and found.x.shape == (12, 1, 6, 6) and found.test_x.shape == (5, 1, 6, 6)
    assert found.y.tolist() == [0, 1, 2] * 4 and 0 <= found.x.min() < found.x.max() <= 1


def test_labels_of_other_images_are_refused(clothes: Path) -> None:
    (clothes / "t10k-labels-idx1-ubyte").write_bytes(idx(np.zeros(4, np.uint8)))
    with pytest.raises(ValueError, match=r"\(5, 6, 6\) and labels \(4,\)"):
        cnn_data.load(str(clothes))


def test_a_missing_set_names_its_files_and_their_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match=r"train-images-idx3-ubyte.*dataset-fashion-mnist.*data_batch_1"):
        cnn_data.load(str(tmp_path))
    monkeypatch.setattr(cnn_data, "PLACES", (str(tmp_path / "nowhere"),))
    with pytest.raises(FileNotFoundError, match=r"nowhere.*dataset-fashion-mnist.*t10k-labels"):
        cnn_data.load()


def test_both_versions_of_cifar_10_are_the_same_images(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for name in cnn_data.BATCHES:
        pixels, labels = rng.integers(0, 256, (4, 3072), np.uint8), [3, 1, 2, 0]
        (tmp_path / "python").mkdir(exist_ok=True)
        (tmp_path / "binary").mkdir(exist_ok=True)
        (tmp_path / "python" / name).write_bytes(pickle.dumps({b"data": pixels, b"labels": labels}, protocol=3))
        records = np.hstack([np.array(labels, np.uint8)[:, None], pixels])
        (tmp_path / "binary" / f"{name}.bin").write_bytes(records.tobytes())
    first, second = (cnn_data.load(str(tmp_path / kind)) for kind in ("python", "binary"))
    assert first.name == second.name == "CIFAR-10" and first.x.shape == (20, 3, 32, 32)
    for one, other in zip(first[1:], second[1:], strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_batch_with_a_program_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "batch").write_bytes(pickle.dumps({b"data": print}))
    with pytest.raises(pickle.UnpicklingError, match=r"arrays only, but asks for builtins\.print"):
        cnn_data._pickled_batch(tmp_path / "batch")


def test_stl_10_is_stored_by_columns_and_made_smaller(tmp_path: Path) -> None:
    pixels = np.zeros((2, 3, 96, 96), np.uint8)
    pixels[0, 1, 6:9, 90] = 90  # rows 6 to 8, one column: a third of a square of 3 x 3
    for part in ("train", "test"):
        (tmp_path / f"{part}_X.bin").write_bytes(pixels.swapaxes(2, 3).tobytes())
        (tmp_path / f"{part}_y.bin").write_bytes(bytes([1, 10]))
    found = cnn_data.load(str(tmp_path))
    assert found.name == "STL-10" and found.y.tolist() == [0, 9]
    assert found.x[0, 1, 2, 30] == pytest.approx(30 / 255) and np.count_nonzero(found.x) == 1
    (tmp_path / "test_X.bin").write_bytes(b"\0" * 100)
    with pytest.raises(ValueError, match="whole records of 27648 bytes, got 100"):
        cnn_data.load(str(tmp_path))


def test_a_seed_has_its_own_images_and_all_have_the_same_test(clothes: Path) -> None:
    images = cnn_data.load(str(clothes))
    first, again, other = (cnn_data.split(images, 6, 3, 5, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.x, again.x)
    assert not np.array_equal(first.y, other.y)
    np.testing.assert_allclose([first.x.mean(), first.x.std()], [0, 1], atol=1e-5)
    every = {image.tobytes() for image in (*first.x, *first.valid_x)}
    assert len(every) == 9 and first.x.dtype == np.float32
    with pytest.raises(ValueError, match=r"12 images .* 10 \+ 3"):
        cnn_data.split(images, 10, 3, 5, 0)


def test_the_command_says_what_is_missing_and_fails(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="networks need torch")
    arguments = ["cnn", "--quick", "--data", str(tmp_path / "none"), "--out", str(tmp_path)]
    result = CliRunner().invoke(reproduce.app, arguments)
    assert result.exit_code == 1 and "cnn: --data must be 'digits' or a folder" in result.stderr


# ---- verdicts

OURS = tuple(f"ours, {name}" for name in ("diagonal", "Tri-low", "k = 4", "k = 16", "dense", "k = 16, sampled"))
SAMPLES = "Our goal: predictions with 16 samples of the weights have a test NLL no higher than"
SOONER = "Our goal: dense factors reach Adam's last validation loss in"
NOISE = np.array([0.3, -0.2, 0.1, -0.3, 0.1])  # of the seeds, with mean zero


ALL = ("Adam", "SOAP", *OURS)
USUAL = {"accuracy": 0.88, "loss": 0.3, "speed": 1.0, "ms": 30.0, "own": 2.0, "NLL": 0.3, "sampled": 0.3, "ECE": 0.03}


def made_up(names: tuple[str, ...] = ALL, noise: float = 0.001, **changes: dict[str, float]) -> Table:
    """Five seeds. Without changes all methods have the same numbers, but for noise of each seed and method."""
    rows = list(plan_rows(Plan()))
    rows += [Row("size", "made up", name, 0, 10.0) for name in ("train", "valid", "test", "epochs", "batch", "seeds")]
    rows.append(Row("network", "8-8 channels", "weights", 0, 45.0))
    for i, name in enumerate(names):
        number = {key: changes.get(key, {}).get(name, value) for key, value in USUAL.items()}
        rows += [Row("tuning", "lr 1", name, 100, 0.5), Row("chosen", "lr 1", name, 0, 1.0)]
        for seed, offset in enumerate(noise * np.random.default_rng(i).permutation(NOISE)):
            for epoch in range(1, 11):
                loss = number["loss"] + 0.05 * (10 - number["speed"] * epoch) + offset
                rows.append(Row("validation loss", f"seed {seed}", name, epoch, loss))
                rows.append(Row("validation accuracy", f"seed {seed}", name, epoch, 1 - loss))
                rows.append(Row("seconds", f"seed {seed}", name, epoch, epoch * number["ms"] / 5))
            rows.append(Row("optimizer ms", "", name, seed, number["own"] + offset))
            rows.append(Row("step ms", "", name, seed, number["ms"] + offset))
            ends = {"accuracy": number["accuracy"], "NLL": number["NLL"], "ECE": 0.03}
            rows += [Row(f"test {part}", "mean", name, seed, value + offset) for part, value in ends.items()]
            if "sampled" in name:
                ends = {"accuracy": 0.88, "NLL": number["sampled"], "ECE": number["ECE"]}
                rows += [Row(f"test {part}", "samples", name, seed, value - offset) for part, value in ends.items()]
        order = changes.get("order", {}).get(name, 1.0)
        rows += [Row("cost", "", name, weights, weights**order) for weights in (1000.0, 4000.0, 16000.0)]
    return Table(rows)


def all_ours(value: float) -> dict[str, float]:
    return dict.fromkeys(OURS, value)


def found(table: Table, beginning: str) -> Verdict:
    (verdict,) = (verdict for verdict in cnn_verdicts.verdicts(table) if verdict.claim.startswith(beginning))
    return verdict


@pytest.mark.parametrize(
    ("claim", "changes", "word"),
    [
        ("Our updates", {"accuracy": all_ours(0.9)}, "holds"),
        ("Our updates", {"accuracy": all_ours(0.86)}, "does not hold"),
        ("Our updates", {}, "undecided"),
        ("Our updates", {"accuracy": {"ours, k = 16": 0.9}}, "holds when k = 16"),
        ("Our goal: by 0.5", {"accuracy": all_ours(0.9)}, "holds"),
        ("Our goal: by 0.5", {"accuracy": all_ours(0.887)}, "holds when k = 4 or k = 16"),
        ("Our goal: by 0.5", {"accuracy": all_ours(0.882)}, "does not hold"),
        ("Our goal: by 0.5", {"accuracy": all_ours(0.885)}, "undecided"),
        ("An iteration", {"ms": all_ours(40.0)}, "holds"),
        ("An iteration", {"ms": all_ours(60.0)}, "does not hold"),
        ("An iteration", {"ms": {"ours, k = 16": 60.0}}, "holds when Tri-low or k = 4"),
        ("The cost", {}, "holds"),
        ("The cost", {"order": all_ours(1.5)}, "does not hold"),
        ("The cost", {"order": {"ours, dense": 1.5}}, "holds"),
        (f"{SOONER} 0.67", {"speed": {"ours, dense": 2.0}}, "holds"),
        (f"{SOONER} 0.67", {}, "does not hold"),
        (f"{SOONER} 0.8", {"speed": {"ours, dense": 2.0}}, "holds"),
        (f"{SOONER} 0.8", {"speed": {"ours, dense": 2.0}, "ms": {"ours, dense": 60.0}}, "does not hold"),
        ("Our goal: a test accuracy", {}, "holds"),
        ("Our goal: a test accuracy", {"accuracy": all_ours(0.87)}, "does not hold"),
        ("Our goal: a test accuracy", {"accuracy": all_ours(0.877)}, "undecided"),
        ("Our goal: a test accuracy", {"accuracy": dict.fromkeys(OURS[:4], 0.87)}, "holds when the factors are dense"),
        ("Our goal: k = 4 and 16 end", {}, "holds"),
        ("Our goal: k = 4 and 16 end", {"loss": {"ours, k = 4": 0.35}}, "holds when k = 16"),
        ("Our goal: k = 4 and 16 end", {"loss": {"ours, dense": 0.2}}, "does not hold"),
        ("Our goal: k = 4 and 16 end", {"loss": {"ours, dense": 0.29}}, "undecided"),
        (f"{SAMPLES} the", {}, "undecided"),
        (f"{SAMPLES} Adam", {}, "undecided"),
        (f"{SAMPLES} the", {"sampled": all_ours(0.2)}, "holds"),
        (f"{SAMPLES} Adam", {"NLL": {"Adam": 0.2}}, "does not hold"),
        ("Our goal: their", {"ECE": all_ours(0.01)}, "holds"),
        ("Our goal: their", {}, "does not hold"),
    ],
)
def test_other_numbers_give_another_word(claim: str, changes: dict[str, dict[str, float]], word: str) -> None:
    assert found(made_up(**changes), claim).word == word


def test_more_noise_leaves_the_same_means_undecided() -> None:
    quiet, loud = (made_up(accuracy=all_ours(0.885), noise=noise) for noise in (0.001, 0.1))
    assert found(quiet, "Our updates").word == "holds"
    verdict = found(loud, "Our updates")
    assert verdict.word == "undecided" and verdict.why.count("(cannot be told apart)") == 3


def test_what_was_not_run_is_named_and_decides_nothing() -> None:
    table = made_up(("Adam", "SOAP"))
    verdicts = cnn_verdicts.verdicts(table)
    assert len(verdicts) == 11 and {verdict.word for verdict in verdicts} == {"undecided"}
    assert "ours, Tri-low: not run" in verdicts[0].why
    assert found(made_up(OURS), "Our goal: a test accuracy").why == "SOAP: not run"


def test_a_run_that_failed_makes_no_claim() -> None:
    table = made_up(accuracy=all_ours(0.9), speed={"ours, dense": 2.0})
    lost = table.where("validation loss", "seed 3", "ours, dense").rows
    broken = Table(row._replace(value=math.inf) if row in lost else row for row in table.rows)
    assert found(broken, "Our goal: k = 4 and 16 end").word == "undecided"
    verdict = found(broken, f"{SOONER} 0.67")
    assert verdict.word == "does not hold" and "not reached on 1 of 5 seeds" in verdict.why


def test_the_interval_is_that_of_students_t() -> None:
    from scipy.stats import ttest_1samp

    values = np.array([0.2, 0.5, 0.1, 0.4, 0.9])
    expected = ttest_1samp(values, 0).confidence_interval(0.95)
    assert cnn_verdicts.interval(values)[1:3] == pytest.approx((expected.low, expected.high))
    assert cnn_verdicts.interval(values[:1])[1:3] == (-math.inf, math.inf)


def test_the_figure_and_the_page_need_the_table_only(tmp_path: Path) -> None:
    for names in (("Adam", "SOAP", *OURS), ("Adam", "SOAP"), OURS):
        cnn.CNN.figure(made_up(names), tmp_path / "a.png")
        assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    text = page(cnn.CNN, made_up(), "a.png")
    assert "| Adam | lr 1 (edge of the rates) | lr 1: 0.500 |" in text and "ours, k = 16, sampled: 16 samples" in text


# ---- methods and runs


def test_every_method_has_eight_different_settings() -> None:
    for method in cnn_methods.METHODS.values():
        assert len({cnn_methods.label(setting) for setting in method.grid}) == len(method.grid) == 8, method.name
    grid = cnn_methods.METHODS["Adam"].grid
    assert [cnn_methods.at_edge(grid, setting) for setting in grid] == [True] * 2 + [False] * 4 + [True] * 2


def task(method: str = "Adam", setting: int = 0, seed: int = 0) -> cnn_runs.Task:
    return cnn_runs.Task("digits", cnn.QUICK, method, setting, seed, 2)


def counted() -> tuple[list[cnn_runs.Task], Callable[[cnn_runs.Task], dict[str, Any]]]:
    """The tasks that were performed, and something that pretends to train."""
    calls: list[cnn_runs.Task] = []

    def perform(one: cnn_runs.Task) -> dict[str, Any]:
        calls.append(one)
        return {"failed": "", "validation loss": [math.inf, 0.5 + one.seed]}

    return calls, perform


def test_finished_runs_are_not_repeated(tmp_path: Path) -> None:
    path, (calls, perform) = tmp_path / "runs.jsonl", counted()
    first = cnn_runs.perform_all([task(), task(seed=1)], path, perform, 1, lambda text: None)
    lines: list[str] = []
    second = cnn_runs.perform_all([task(seed=1), task(), task(seed=2)], path, perform, 1, lines.append)
    assert calls == [task(), task(seed=1), task(seed=2)]
    assert {key: second[key] for key in first} == first
    assert lines[0].startswith("2 of 3 runs are in") and lines[1].startswith("1 of 1 runs, about 0 min left; Adam, lr")


def test_another_setting_seed_or_size_is_another_run() -> None:
    other = replace(cnn.QUICK, batch=5)
    keys = [task(), task(setting=1), task(seed=1), task("SGD"), replace(task(), size=other), replace(task(), epochs=3)]
    assert len({json.dumps(one.key(), sort_keys=True) for one in keys}) == len(keys)
    more_seeds = replace(task(), size=replace(cnn.QUICK, seeds=9, epochs=7))
    assert more_seeds.key() == task().key()


def test_a_line_that_was_cut_off_is_run_again_and_spoils_no_other(tmp_path: Path) -> None:
    path, (calls, perform) = tmp_path / "runs.jsonl", counted()
    cnn_runs.perform_all([task(), task(seed=1)], path, perform, 1, lambda text: None)
    path.write_bytes(path.read_bytes()[:-10])
    for _ in range(2):
        cnn_runs.perform_all([task(), task(seed=1)], path, perform, 1, lambda text: None)
    assert calls == [task(), task(seed=1), task(seed=1)]


def test_the_experiments_are_known_without_loading_torch() -> None:
    root = Path(__file__).parents[2]
    program = f"""
import sys
sys.path[:0] = {[str(root / part) for part in ("scripts", "", "problems")]!r}
import reproduce
assert "cnn" in [experiment.name for experiment in reproduce.EXPERIMENTS]
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_without_torch_a_run_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cnn, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"needs torch: pip install 'esgroup\[torch\]'"):
        list(cnn.run(Plan(quick=True)))


# ---- with torch


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    pytest.importorskip("torch", reason="networks need torch")
    pytest.importorskip("sklearn", reason="the digits need scikit-learn")
    folder, begin = tmp_path_factory.mktemp("cnn"), time.process_time()
    result = CliRunner().invoke(reproduce.app, ["cnn", "--quick", "--out", str(folder)])
    assert result.exit_code == 0, result.output
    return folder, time.process_time() - begin


def test_a_quick_run_writes_its_files_in_time(quick: tuple[Path, float]) -> None:
    folder, seconds = quick
    assert {path.name for path in folder.iterdir()} == {"cnn.csv", "cnn.png", "cnn.md", "runs.jsonl"}
    assert seconds < 40
    table = read_rows(folder / "cnn.csv")
    ran = {name for name, method in cnn_methods.METHODS.items() if method.available}
    assert set(table.series("test accuracy")) == ran
    assert set(table.series("skipped")) == set(cnn_methods.METHODS) - ran
    assert all(0 <= row.value <= 1 for row in table.where("test accuracy").rows)
    assert len(cnn_verdicts.verdicts(table)) == 11


def test_a_repeated_command_trains_nothing(quick: tuple[Path, float], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, _ = quick
    runs, rows = (folder / "runs.jsonl").read_bytes(), read_rows(folder / "cnn.csv")

    def never(one: cnn_runs.Task) -> dict[str, Any]:
        raise AssertionError(f"{one} was run again")

    monkeypatch.setattr(cnn, "perform", never)
    assert CliRunner().invoke(reproduce.app, ["cnn", "--quick", "--out", str(folder)]).exit_code == 0
    assert (folder / "runs.jsonl").read_bytes() == runs
    again = read_rows(folder / "cnn.csv")
    assert [row for row in again.rows if row.part != "cost"] == [row for row in rows.rows if row.part != "cost"]


def test_a_run_depends_on_its_seed_only_and_all_methods_begin_alike() -> None:
    torch = pytest.importorskip("torch", reason="networks need torch")
    pytest.importorskip("sklearn", reason="the digits need scikit-learn")
    first, again, other = (cnn.perform(one) for one in (task(), task(), task(seed=1)))
    parts = ("validation loss", "validation accuracy", "mean")
    assert [first[part] for part in parts] == [again[part] for part in parts] != [other[part] for part in parts]
    # without any step all methods are the same network
    with pytest.MonkeyPatch.context() as patch:
        for name, other in (("SGD", "l2"), ("AdamW", "decay")):
            still = replace(cnn_methods.METHODS[name], grid=({"lr": 0.0, other: 0.5},))
            patch.setitem(cnn_methods.METHODS, name, still)
        ends = [cnn.perform(task(name))["mean"]["NLL"] for name in ("SGD", "AdamW")]
    assert ends[0] == ends[1] and torch.get_num_threads() == 1


def test_a_diverging_run_ends_as_infinitely_bad() -> None:
    pytest.importorskip("torch", reason="networks need torch")
    pytest.importorskip("sklearn", reason="the digits need scikit-learn")
    with pytest.MonkeyPatch.context() as patch:
        wild = replace(cnn_methods.METHODS["SGD"], grid=({"lr": 1e30, "l2": 0.0},))
        patch.setitem(cnn_methods.METHODS, "SGD", wild)
        result = cnn.perform(task("SGD"))
    assert result["validation loss"] == [math.inf] * 2 and result["mean"]["NLL"] == math.inf and result["failed"]


def test_the_network_has_the_layers_of_the_paper_and_fewer_poolings_for_small_images() -> None:
    training = pytest.importorskip("reproduction.cnn_training", reason="networks need torch")
    from torch import nn

    size = cnn_runs.Size()
    made = training.network(1, 28, 10, size.widths, size.dense)
    counts = [sum(isinstance(layer, kind) for layer in made) for kind in (nn.Conv2d, nn.Linear, nn.AvgPool2d, nn.GELU)]
    assert counts == [6, 4, 3, 9] and training.weights(made) == 45_506
    small = training.network(1, 8, 10, size.widths, size.dense)
    assert sum(isinstance(layer, nn.AvgPool2d) for layer in small) == 2
    assert all(not bool(layer.bias.any()) for layer in made if isinstance(layer, nn.Conv2d))
    with pytest.raises(ValueError, match="'kaiming' or 'torch', got 'x'"):
        training.network(1, 8, 10, size.widths, size.dense, "x")


def test_calibration_is_the_gap_between_confidence_and_accuracy() -> None:
    training = pytest.importorskip("reproduction.cnn_training", reason="networks need torch")
    p = np.array([[0.9, 0.1]] * 10 + [[0.45, 0.55]] * 10)
    y = np.array([0] * 9 + [1] + [1] * 3 + [0] * 7)  # 90 % of the first are right, 30 % of the second
    result = training.judged(p, y)
    assert result["accuracy"] == pytest.approx(0.6) and result["ECE"] == pytest.approx(0.5 * 0.25)
    assert result["NLL"] == pytest.approx(-np.mean(np.log([0.9] * 9 + [0.1] + [0.55] * 3 + [0.45] * 7)))


@pytest.mark.parametrize("name", ["Adam", "SGD", "SINGD", "SOAP"])
def test_the_penalty_is_part_of_every_gradient(name: str) -> None:
    """With gradients of zero, only the penalty moves the weights: toward zero, and not at all without it."""
    torch = pytest.importorskip("torch", reason="networks need torch")
    method = cnn_methods.METHODS[name]
    if not method.available:
        pytest.skip(f"{method.package} is not installed")
    for penalty in (0.0, 0.1):
        made = torch.nn.Sequential(torch.nn.Linear(3, 2))
        made[0].weight.data.sign_()  # far from zero for a few steps
        running = method.make(made, method.grid[0] | {"l2": penalty}, 10, 5)
        before = made[0].weight.detach().clone()
        for _ in range(3):
            running.optimizer.zero_grad()
            (0.0 * made(torch.ones(5, 3))).sum().backward()
            running.step()
        moved = made[0].weight.detach() - before
        assert bool((moved * before <= 0).all()) and bool(moved.any()) == (penalty > 0)
