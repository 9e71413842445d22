"""The progress line: what it shows, and where it stays silent."""

import io
from types import SimpleNamespace
from typing import Any

import pytest

from esgroup.running import progress
from esgroup.running.progress import Progress, line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def search(**more: Any) -> Any:
    fields = {"nfev": 12_400, "best_f": 1.23456e-5, "sigma": 0.00312, "seconds": 7.4, "popsize": 100}
    return SimpleNamespace(**fields | more)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock.now)
    return clock


def test_the_line_says_where_the_run_is() -> None:
    assert line(search(), 25_000.0) == "12,400 evaluations · best 1.235e-05 · step 0.0031 · 25,000/s · 7 s"


def test_limits_and_restarts_are_shown_if_there_are_any() -> None:
    assert line(search(restart=2), 0.25, 20_000, 1e-8, 60.0) == (
        "12,400 of 20,000 evaluations · best 1.235e-05 (target 1e-08) · step 0.0031 · 0.25/s · 7 s of 60 s · restart 2"
    )


def test_a_target_of_zero_is_a_target() -> None:
    assert "(target 0)" in line(search(), 1.0, target=0.0)


def test_nothing_is_written_where_no_one_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as build servers have it: colours are welcome, a live line is not
    with Progress() as shown:
        shown.update(search())
    assert stderr.getvalue() == ""


def test_a_terminal_gets_one_line_at_most_ten_times_a_second(
    monkeypatch: pytest.MonkeyPatch, clock: SimpleNamespace
) -> None:
    stderr = Terminal()
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    texts: list[str] = []
    with Progress() as shown:
        monkeypatch.setattr(shown, "_show", texts.append)
        for k in range(101):  # a second of generations
            clock.now = 100 + k / 100
            shown.update(search(nfev=100 * (k + 1)))
    assert len(texts) in (10, 11)  # 0.1 s is not a multiple of a rounded 0.01 s
    assert texts[0].startswith("100 evaluations") and texts[-1].startswith(("9,", "10,"))


def test_the_speed_is_that_of_this_session(monkeypatch: pytest.MonkeyPatch, clock: SimpleNamespace) -> None:
    monkeypatch.setattr("sys.stderr", Terminal())
    texts: list[str] = []
    with Progress() as shown:
        monkeypatch.setattr(shown, "_show", texts.append)
        shown.update(search(nfev=1_000_100))  # resumed after a million
        clock.now += 2.0
        shown.update(search(nfev=1_000_500))
    assert "/s" not in texts[0] and " 200/s " in texts[1]


def test_the_line_is_gone_in_the_end_and_the_cursor_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = Terminal()
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setenv("TERM", "xterm")
    with Progress() as shown:
        shown.update(search(), max_evals=20_000)
    written = stderr.getvalue()
    assert "12,400 of 20,000 evaluations" in written
    assert written.rindex("\x1b[?25h") > written.rindex("evaluations") and written.endswith("\x1b[2K")
