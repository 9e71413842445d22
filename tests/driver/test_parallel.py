"""Every way to evaluate a generation gives the same values and reports errors clearly."""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import esgroup
from esgroup.checks import Array
from esgroup.driver.failures import Failures
from esgroup.driver.worker_pool import TRIES
from tests.driver.support import evaluator

X = np.arange(12.0).reshape(4, 3)
X.flags.writeable = False


def weighted(x: Array, a: float = 2.0, b: float = 0.5) -> float:
    return float(a * x[0] + b * x[1] ** 2 + x[2])


def weighted_rows(X: Array, a: float = 2.0, b: float = 0.5) -> Array:
    return a * X[:, 0] + b * X[:, 1] ** 2 + X[:, 2]


VALUES = [weighted(x) for x in X]
OTHERS = [weighted(x, 3.0, 1.0) for x in X]


class OneWay:
    """An object that can be pickled but not unpickled."""

    def __reduce__(self) -> Any:
        return int, ("no number",)


class Unhappy(Exception):
    """An exception that cannot be sent to another process."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.luggage = OneWay()


def raises_at_six(x: Array) -> float:
    if x[0] == 6:
        raise ZeroDivisionError("at six")
    return weighted(x)


def unhappy(x: Array) -> float:
    raise Unhappy("no luck")


def dies_once(x: Array, flag: str) -> float:
    """Kills its process at the third point, the first time only."""
    if x[0] == 6 and not os.path.exists(flag):
        Path(flag).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return weighted(x)


def dies(x: Array) -> float:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0.0


def sleeps(x: Array) -> float:
    time.sleep(60)
    return 0.0


def evaluate_all(fun: Any, args: Any = (), points: Array = X, **where: Any) -> list[float]:
    arrived: dict[int, Any] = {}
    with evaluator(fun, args, **where) as evaluate:
        values = evaluate(points, arrived)
    assert [arrived[i] for i in range(len(points))] == list(values)
    return list(values)


def arrived_before(error: type[BaseException], fun: Any, args: Any = (), **where: Any) -> tuple[Any, dict[int, Any]]:
    arrived: dict[int, Any] = {}
    with evaluator(fun, args, **where) as evaluate, pytest.raises(error) as caught:
        evaluate(X, arrived)
    return caught.value, arrived


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(abs, range(10)))  # starts its processes, which some tests count
        yield pool


class TestValues:
    def test_a_loop(self) -> None:
        assert evaluate_all(weighted) == VALUES
        assert evaluate_all(weighted, (3.0, 1.0)) == OTHERS
        assert evaluate_all(weighted, workers=1) == VALUES

    def test_one_argument_need_not_be_a_tuple(self) -> None:
        assert evaluate_all(weighted, 3.0) == [weighted(x, 3.0) for x in X]

    def test_one_call_for_the_whole_generation(self) -> None:
        assert evaluate_all(weighted_rows, vectorized=True) == VALUES
        assert evaluate_all(weighted_rows, (3.0, 1.0), vectorized=True) == OTHERS
        assert evaluate_all(lambda X: VALUES, vectorized=True, workers=1) == VALUES

    @pytest.mark.usefixtures("no_process_is_left")
    def test_processes_of_our_own(self) -> None:
        assert evaluate_all(weighted, (3.0, 1.0), workers=2) == OTHERS

    def test_one_process_per_core(self) -> None:
        pids = set(evaluate_all(process_id, points=np.zeros((40, 1)), workers=-1))
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        assert len(pids) <= cores
        assert (os.getpid() in pids) == (cores == 1)

    def test_functions_like_map(self, threads: ThreadPoolExecutor, processes: ProcessPoolExecutor) -> None:
        assert evaluate_all(weighted, (3.0, 1.0), workers=map) == OTHERS
        assert evaluate_all(weighted, (3.0, 1.0), workers=threads.map) == OTHERS
        assert evaluate_all(weighted, (3.0, 1.0), workers=processes.map) == OTHERS
        with ThreadPool(2) as pool:
            assert evaluate_all(lambda x: weighted(x), workers=pool.map) == VALUES

    def test_executors(self, threads: ThreadPoolExecutor, processes: ProcessPoolExecutor) -> None:
        assert evaluate_all(lambda x: weighted(x), executor=threads) == VALUES
        assert evaluate_all(weighted, (3.0, 1.0), executor=threads) == OTHERS
        assert evaluate_all(weighted, (3.0, 1.0), executor=processes) == OTHERS
        assert threads.submit(int).result() == 0  # a caller's executor is left open

    def test_values_may_arrive_in_any_order(self) -> None:
        turns = [threading.Event() for _ in X]
        order = [2, 0, 3, 1]
        turns[order[0]].set()

        def in_turn(x: Array) -> float:
            i = int(x[0]) // 3
            assert turns[i].wait(10)
            k = order.index(i)
            if k + 1 < len(order):
                turns[order[k + 1]].set()
            return weighted(x)

        with ThreadPoolExecutor(4) as pool:
            assert evaluate_all(in_turn, executor=pool) == VALUES

    def test_equal_points_are_separate_tasks(self) -> None:
        """Dask merges equal calls, which would make noise disappear: the tasks must differ."""
        tasks: list[tuple[Any, ...]] = []

        class Recording(Executor):
            def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
                tasks.append(args)
                future: Future[Any] = Future()
                future.set_result(fn(*args))
                return future

        for _ in range(2):
            assert evaluate_all(weighted, points=np.zeros((3, 3)), executor=Recording()) == [0.0] * 3
        assert len({args[2:] for args in tasks}) == 6


def test_one_process_for_each_core_gets_as_many_points_of_a_model_as_that_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    options: dict[str, Any] = {"sigma0": 0.5, "model": "quadratic", "max_evals": 60, "rng": 1}
    three, all_cores, alone = (esgroup.minimize(weighted, np.ones(3), workers=n, **options) for n in (3, -1, None))
    assert np.array_equal(all_cores.x, three.x) and not np.array_equal(alone.x, three.x)


def process_id(x: Array) -> int:
    return os.getpid()


class TestPoints:
    def test_the_objective_may_change_and_keep_its_point(self, threads: ThreadPoolExecutor) -> None:
        kept = []

        def scribbles(x: Array) -> float:
            value = weighted(x)
            x[:] = -1.0
            kept.append(x)
            return value

        before = X.copy()
        assert evaluate_all(scribbles) == VALUES
        assert evaluate_all(scribbles, executor=threads) == VALUES
        assert evaluate_all(scribbles, workers=map) == VALUES
        assert np.array_equal(X, before)
        assert not any(np.may_share_memory(x, X) for x in kept)

    def test_a_vectorized_objective_gets_single_rows_where_points_are_evaluated_one_by_one(self) -> None:
        shapes: list[tuple[int, ...]] = []

        def rows(X: Array) -> Array:
            shapes.append(X.shape)
            return weighted_rows(X)

        with ThreadPoolExecutor(2) as threads:
            for where in ({"workers": map}, {"executor": threads}, {"executor": threads, "max_pending": 1}):
                assert evaluate_all(rows, vectorized=True, **where) == VALUES
        assert evaluate_all(weighted_rows, vectorized=True, workers=2) == VALUES
        assert evaluate_all(weighted_rows, vectorized=True, workers=1, eval_timeout=60.0) == VALUES
        assert set(shapes) == {(1, 3)} and len(shapes) == 12
        with pytest.raises((TypeError, ValueError), match=r"the function .*returned .*\[1, 2\]"):
            evaluate_all(lambda X: [1, 2], vectorized=True, workers=map)

    def test_a_vectorized_objective_may_change_its_points(self) -> None:
        def scribbles(X: Array) -> Array:
            values = weighted_rows(X)
            X[:] = -1.0
            return values

        before = X.copy()
        assert evaluate_all(scribbles, vectorized=True) == VALUES
        assert np.array_equal(X, before)


class TestObjectivesThatRaise:
    def test_a_loop_keeps_what_came_before(self) -> None:
        error = KeyError("mine")

        def fails(x: Array) -> float:
            if x[0] == 6:
                raise error
            return weighted(x)

        caught, arrived = arrived_before(KeyError, fails)
        assert caught is error
        assert arrived == {0: VALUES[0], 1: VALUES[1]}

    def test_stop_iteration_is_an_exception_like_others(self, threads: ThreadPoolExecutor) -> None:
        def fails(x: Array) -> float:
            return float(next(iter([])))

        for where in ({}, {"executor": threads}):
            _, arrived = arrived_before(StopIteration, fails, **where)
            assert arrived == {}

    def test_a_map_keeps_what_came_before(self) -> None:
        _, arrived = arrived_before(ZeroDivisionError, raises_at_six, workers=map)
        assert arrived == {0: VALUES[0], 1: VALUES[1]}

    def test_threads_that_have_begun_are_awaited_and_the_others_called_back(self) -> None:
        error, started = ZeroDivisionError("mine"), []
        failed = threading.Event()

        def fails(x: Array) -> float:
            started.append(x[0])
            if x[0] == 0:
                while len(started) < 2:
                    time.sleep(0.001)
                failed.set()
                raise error
            assert failed.wait(10)
            time.sleep(0.1)
            return weighted(x)

        points = np.arange(300.0).reshape(100, 3)
        arrived: dict[int, Any] = {}
        with ThreadPoolExecutor(2) as pool, evaluator(fails, executor=pool) as evaluate:
            with pytest.raises(ZeroDivisionError) as caught:
                evaluate(points, arrived)
            assert caught.value is error
            assert arrived[1] == VALUES[1]
            assert sorted(started) == [0.0, *(3.0 * i for i in sorted(arrived))]  # nothing that began was dropped
            assert len(started) < 10

    @pytest.mark.usefixtures("no_process_is_left")
    @pytest.mark.parametrize("own", [True, False])
    def test_processes_hand_on_the_exception(self, own: bool, processes: ProcessPoolExecutor) -> None:
        where: dict[str, Any] = {"workers": 2} if own else {"executor": processes}
        caught, arrived = arrived_before(ZeroDivisionError, raises_at_six, **where)
        assert caught.args == ("at six",)
        assert arrived.items() <= dict(enumerate(VALUES)).items()
        assert 2 not in arrived

    @pytest.mark.parametrize("own", [True, False])
    def test_an_exception_that_cannot_travel_does_not_break_the_pool(
        self, own: bool, processes: ProcessPoolExecutor
    ) -> None:
        where: dict[str, Any] = {"workers": 2} if own else {"executor": processes}
        caught, _ = arrived_before(RuntimeError, unhappy, **where)
        assert "Unhappy" in str(caught) and "no luck" in str(caught)
        assert 'raise Unhappy("no luck")' in caught.__notes__[0]  # the place is known
        assert processes.submit(int).result() == 0

    def test_a_generator_of_values_that_is_too_short_is_refused(self) -> None:
        for count in (3, 5):
            short = lambda fun, points, count=count: [0.0] * count  # noqa: E731
            caught, arrived = arrived_before(ValueError, weighted, workers=short)
            assert re.search(rf"workers .* 4 .* {count}$", str(caught))
            assert arrived == {}

    @pytest.mark.parametrize(
        ("answer", "got"),
        [([1.0] * 3, "[1.0, 1.0, 1.0]"), ([], "[]"), (1.5, "1.5"), (None, "None"), (np.ones((4, 2)), "shape (4, 2)")],
    )
    def test_a_vectorized_objective_must_return_a_value_per_row(self, answer: Any, got: str) -> None:
        caught, arrived = arrived_before(ValueError, lambda X: answer, vectorized=True)
        assert re.search(rf"function returned .*{re.escape(got)}, .*vectorized=True .* shape \(4,\)", str(caught))
        assert arrived == {}


@pytest.fixture
def no_cloudpickle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)


class TestObjectivesThatPickleCannotSend:
    ADVICE = r"fun and args .*processes .*top level of a module.*{}.*ThreadPoolExecutor"
    INSTALL = r"install cloudpickle.* lambdas .*pip install \"esgroup\[workers\]\""

    def refused(self, **where: Any) -> None:
        begin = time.monotonic()
        with pytest.raises(TypeError, match=self.ADVICE.format(self.INSTALL)), evaluator(lambda x: 0.0, **where):
            pytest.fail("it was accepted")
        assert time.monotonic() - begin < 1

    @pytest.mark.usefixtures("no_process_is_left", "no_cloudpickle")
    def test_processes_of_our_own_refuse_at_once_and_name_what_would_help(self) -> None:
        self.refused(workers=2)

    @pytest.mark.usefixtures("no_cloudpickle")
    def test_pools_of_the_caller_refuse_at_once(self, processes: ProcessPoolExecutor) -> None:
        self.refused(executor=processes)
        self.refused(workers=processes.map)

    @pytest.mark.usefixtures("no_process_is_left")
    def test_lambdas_and_closures_work_with_cloudpickle(self, processes: ProcessPoolExecutor) -> None:
        pytest.importorskip("cloudpickle")
        a, b = 3.0, 1.0

        def closure(x: Array) -> float:
            return weighted(x, a, b)

        for where in ({"workers": 2}, {"executor": processes}, {"workers": processes.map}):
            assert evaluate_all(lambda x: weighted(x), **where) == VALUES
            assert evaluate_all(closure, **where) == OTHERS

    @pytest.mark.usefixtures("no_process_is_left")
    def test_an_exception_that_is_defined_in_a_function_keeps_its_type(self) -> None:
        pytest.importorskip("cloudpickle")

        class Local(Exception):
            pass

        def fails(x: Array) -> float:
            raise Local("mine")

        caught, _ = arrived_before(Local, fails, workers=2)
        assert caught.args == ("mine",)
        with evaluator(fails, workers=2, failures=Failures(Local)) as evaluate:
            assert np.isnan(evaluate(X)).all()

    def test_what_nobody_can_send_is_refused_and_no_installation_is_advised(self) -> None:
        pytest.importorskip("cloudpickle")
        with (
            pytest.raises(TypeError, match=self.ADVICE.format("")) as caught,
            evaluator(weighted, (threading.Lock(),), workers=2),
        ):
            pytest.fail("it was accepted")
        assert "install" not in str(caught.value)

    def test_threads_take_everything(self, threads: ThreadPoolExecutor) -> None:
        assert evaluate_all(lambda x: 1.0, executor=threads) == [1.0] * 4

    TYPED_IN = """
        import multiprocessing, sys
        import numpy as np
        from concurrent.futures import ProcessPoolExecutor
        from esgroup.driver.failures import Failures
        from tests.driver.support import evaluator
        multiprocessing.set_start_method("{}")
        class Mine(Exception): pass
        def typed_in(x):
            if x[0] == 2: raise Mine
            return float(x[0])
        X = np.arange(4.0)[:, None]
        try:
            with evaluator(typed_in, workers=2, failures=Failures(Mine)) as evaluate:
                print(evaluate(X, {{}}))
            if sys.modules.get("cloudpickle"):
                with ProcessPoolExecutor(2) as pool, evaluator(lambda x: typed_in(0 * x), executor=pool) as evaluate:
                    print(evaluate(X, {{}}))
        except TypeError as error:
            print(error)
    """

    def typed_in(self, method: str, *paths: Path) -> str:
        """What is printed if a function is typed in, as at a prompt or in a notebook, where no file has it."""
        code = textwrap.dedent(self.TYPED_IN.format(method))
        root = Path(__file__).parents[2]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*paths, root]))}
        command = [sys.executable, "-c", code]
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
        assert not run.stderr
        return run.stdout

    @pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
    def test_a_function_that_was_typed_in_works_with_cloudpickle(self, method: str) -> None:
        pytest.importorskip("cloudpickle")
        first, *second = self.typed_in(method).splitlines()
        assert first == "[0.0, 1.0, nan, 3.0]"
        assert second in ([], ["[0.0, 0.0, 0.0, 0.0]"]) and (second or method == "fork")  # fork needs no cloudpickle

    def test_a_function_that_workers_cannot_find_is_reported_and_kills_no_worker(self, tmp_path: Path) -> None:
        """Where processes are not forked it is pickled by its name, but cannot be imported."""
        (tmp_path / "cloudpickle.py").write_text("raise ImportError('as if it were not installed')")
        told = self.typed_in("spawn", tmp_path)
        assert "the worker processes cannot load fun" in told
        assert re.search(r"define it in a module that they can import.*install cloudpickle.*esgroup\[workers\]", told)


AFRESH = """
import multiprocessing
import numpy as np
from tests.driver.support import evaluator
from tests.driver.test_parallel import X, weighted, VALUES

def main():
    multiprocessing.set_start_method("METHOD")
    with evaluator(weighted, workers=2) as evaluate:
        print(evaluate(X, {}) == VALUES)

GUARD
    main()
"""


class TestWorkersThatDie:
    @pytest.mark.usefixtures("no_process_is_left")
    def test_our_own_pool_is_replaced_and_no_value_is_lost(self, tmp_path: Path) -> None:
        flag = str(tmp_path / "died")
        with evaluator(dies_once, (flag,), workers=2) as evaluate:
            assert evaluate(X, {}) == VALUES
            assert os.path.exists(flag)
            assert evaluate(X, {}) == VALUES

    @pytest.mark.usefixtures("no_process_is_left")
    def test_a_point_that_always_kills_ends_in_a_clear_error(self) -> None:
        caught, arrived = arrived_before(RuntimeError, dies, workers=2)
        assert re.search(rf"lost with its worker {TRIES} times; .*out of memory.*crash", str(caught))
        assert arrived == {}

    def test_a_broken_pool_of_the_callers_is_named(self) -> None:
        with ProcessPoolExecutor(2) as pool:
            caught, _ = arrived_before(RuntimeError, dies, executor=pool)
            assert re.search(r"executor is broken.*workers=n", str(caught))
            caught, _ = arrived_before(RuntimeError, weighted, executor=pool)
            assert re.search(r"executor is broken.*workers=n", str(caught))

    def test_an_executor_that_was_shut_down_says_so(self) -> None:
        pool = ThreadPoolExecutor(1)
        pool.shutdown()
        caught, _ = arrived_before(RuntimeError, weighted, executor=pool)
        assert str(caught) == "cannot schedule new futures after shutdown"

    @pytest.mark.parametrize("losses", [TRIES - 1, TRIES])
    def test_a_point_whose_task_was_cancelled_is_submitted_again(self, losses: int) -> None:
        """As when a cluster drops a task: it is submitted twice more."""
        names: list[str] = []

        class Losing(Executor):
            def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
                future: Future[Any] = Future()
                names.append(args[2])
                if args[1][0] == 6 and sum(1 for _ in filter(None, lost)) < losses:
                    lost.append(True)
                    future.cancel()
                else:
                    future.set_result(fn(*args))
                return future

        lost: list[bool] = []
        if losses < TRIES:
            assert evaluate_all(weighted, executor=Losing()) == VALUES
        else:
            caught, arrived = arrived_before(RuntimeError, weighted, executor=Losing())
            assert f"lost with its worker {TRIES} times" in str(caught)
            assert arrived == {0: VALUES[0], 1: VALUES[1], 3: VALUES[3]}
        assert len(set(names)) == len(names) == len(X) - 1 + min(losses + 1, TRIES)

    @pytest.mark.parametrize("method", ["spawn", "forkserver"])
    @pytest.mark.parametrize("guarded", [True, False])
    def test_processes_that_start_afresh(self, guarded: bool, method: str, tmp_path: Path) -> None:
        """With the guard they work; without it the error says that it is missing."""
        script = tmp_path / "script.py"
        guard = "if __name__ == '__main__':" if guarded else "if True:"
        script.write_text(AFRESH.replace("METHOD", method).replace("GUARD", guard))
        root = str(Path(__file__).parents[2])
        environment = {**os.environ, "PYTHONPATH": root}
        run = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, env=environment)
        if guarded:
            assert run.stdout.split() == ["True"], run.stderr
        else:
            assert "a script without `if __name__ == '__main__':`" in run.stderr


class TestInterrupts:
    def test_an_interrupt_ends_our_own_processes_at_once(self) -> None:
        begin = time.monotonic()
        before = set(multiprocessing.active_children())
        timer = threading.Timer(1.0, signal.raise_signal, (signal.SIGINT,))
        timer.start()
        with pytest.raises(KeyboardInterrupt), evaluator(sleeps, workers=2) as evaluate:
            evaluate(np.zeros((30, 3)), {})
        timer.join()
        while set(multiprocessing.active_children()) - before:
            assert time.monotonic() - begin < 10
            time.sleep(0.01)


class TestArguments:
    @pytest.mark.parametrize(
        ("error", "text", "arguments"),
        [
            (TypeError, r"fun .*function.* 3", {"fun": 3}),
            (TypeError, r"executor .*submit.* 5", {"executor": 5}),
            (TypeError, r"workers .*number.*map.* 'two'", {"workers": "two"}),
            (TypeError, r"workers .*number.*map.* True", {"workers": True}),
            (ValueError, r"workers .*1.*-1.* 0", {"workers": 0}),
            (ValueError, r"workers .*-1.* -2", {"workers": -2}),
            (ValueError, r"workers .*imap, not imap_unordered", {"workers": ThreadPool.imap_unordered}),
            (ValueError, "workers and executor", {"workers": 2, "executor": map}),
            (TypeError, r"vectorized .*True or False.* 1", {"vectorized": 1}),
        ],
    )
    def test_bad_ones_are_refused(self, error: type[Exception], text: str, arguments: dict[str, Any]) -> None:
        with pytest.raises(error, match=text), evaluator(**{"fun": weighted, **arguments}):
            pytest.fail("they were accepted")


def bowl(x: Array) -> float:
    return float(x @ x + (x**4).sum())


def test_every_worker_gets_a_point_where_a_model_says_how_many_are_worth_evaluating() -> None:
    """By itself a search over three coordinates asks for two points at a time."""
    counts: list[int] = []
    options: dict[str, Any] = {"model": "quadratic", "max_evals": 42, "rng": 1}
    esgroup.minimize(bowl, [1.0, 2.0, 3.0], workers=5, callback=lambda search: counts.append(search.nfev), **options)
    assert np.diff(counts).min() >= 5
    alone: list[int] = []
    esgroup.minimize(bowl, [1.0, 2.0, 3.0], callback=lambda search: alone.append(search.nfev), **options)
    assert np.diff(alone).min() < 5
