"""The sampler in threads and in processes that work on one study."""

import hashlib
import multiprocessing
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

optuna = pytest.importorskip("optuna")

from optuna.trial import TrialState  # noqa: E402

from esgroup.optuna import EsgroupSampler  # noqa: E402
from esgroup.optuna.following import ASKED  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.ERROR)

EACH, PROCESSES = 60, 3
NAME = "shared"


def sphere(trial: Any) -> float:
    """A function of three numbers."""
    return float(sum((trial.suggest_float(f"x{i}", -5, 5) - 1) ** 2 for i in range(3)))


def half(trial: Any) -> float:
    """The same where x0 <= 0: the minimum is 1."""
    value = sphere(trial)
    trial.set_constraint("left", trial.params["x0"])
    return value


def storage(kind: str, folder: Path) -> Any:
    """A storage in files, as every process opens it."""
    if kind == "sqlite":
        return optuna.storages.RDBStorage(
            f"sqlite:///{folder / 'study.db'}", engine_kwargs={"connect_args": {"timeout": 60}}
        )
    return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(folder / "journal")))


def digest(study: Any) -> str:
    """A checksum of the search of a study's sampler, after it was told all trials in their order."""
    following = study.sampler._following
    following._again_at = 0  # it need not wait for more trials
    following.follow(study.get_trials(deepcopy=False))
    search = following.search
    found = hashlib.sha256()
    for part in [*search.state, *search.ledger.standing]:
        found.update(np.ascontiguousarray(part).tobytes())
    return f"{search.nfev} {search.nit} {found.hexdigest()}"


def work(kind: str, folder: Path, constrained: bool, seed: int, barrier: Any, results: Any) -> None:
    """A process: its share of the trials, then what its search is when all have finished."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")  # the journal is experimental in some versions
    study = optuna.load_study(study_name=NAME, storage=storage(kind, folder), sampler=EsgroupSampler(seed=seed))
    study.optimize(half if constrained else sphere, n_trials=EACH)
    barrier.wait(120)
    results.put(digest(study))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("kind", "constrained"), [("sqlite", True), ("journal", False)])
def test_processes_on_one_storage_have_one_search(kind: str, constrained: bool, tmp_path: Path) -> None:
    optuna.create_study(study_name=NAME, storage=storage(kind, tmp_path))
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(PROCESSES), context.SimpleQueue()
    seeds = [4, 4, 5]  # two of them have the same one
    workers = [
        context.Process(target=work, args=(kind, tmp_path, constrained, seed, barrier, results)) for seed in seeds
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(200)
    assert [worker.exitcode for worker in workers] == [0] * PROCESSES
    study = optuna.load_study(study_name=NAME, storage=storage(kind, tmp_path), sampler=EsgroupSampler(seed=9))
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * EACH * PROCESSES
    assert len({tuple(trial.params.values()) for trial in study.trials}) == EACH * PROCESSES
    if constrained:
        assert 1.0 <= study.best_value < 1.02
    else:
        assert study.best_value < 1e-3
    assert len({trial.system_attrs[ASKED][2] for trial in study.trials[-EACH:]}) == 1  # the seed of the search
    study.ask().suggest_float("x0", -5, 5)  # by a worker that comes last
    assert {results.get() for _ in workers} == {digest(study)}


@pytest.mark.parametrize("constrained", [False, True])
def test_threads_with_one_sampler_tell_every_trial_once_and_converge(constrained: bool) -> None:
    study = optuna.create_study(sampler=EsgroupSampler(seed=1))
    study.optimize(half if constrained else sphere, n_trials=200, n_jobs=4)
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 200
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 200
    assert study.best_value < (1.02 if constrained else 1e-3)
    told = digest(study)
    assert told.startswith("200 ")
    other = optuna.load_study(study_name=study.study_name, storage=study._storage, sampler=EsgroupSampler(seed=2))
    other.ask().suggest_float("x0", -5, 5)
    assert digest(other) == told
