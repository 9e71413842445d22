"""The progress bar: what it shows, and where it stays silent."""

import io
import re
from types import SimpleNamespace
from typing import Any

import pytest

from esgroup.running import progress
from esgroup.running.observers import watched
from esgroup.running.progress import Progress, Speed, duration, line, seconds_left, used
from esgroup.stopping.budgets import Limits


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def search(**more: Any) -> Any:
    fields = {"nfev": 12_400, "nit": 124, "best_f": 1.23456e-5, "sigma": 0.00312, "seconds": 7.4}
    return SimpleNamespace(**fields | more)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock.now)
    return clock


def test_the_line_says_where_the_run_is() -> None:
    text = line(search(), Speed(25_000.0, 250.0), Limits(), 100).plain
    assert text == "best 1.235e-05 · 25,000 evaluations/s · 12,400 evaluations · 7 s · step 0.0031"


def test_with_a_budget_there_are_a_bar_and_the_time_left() -> None:
    limits = Limits(max_evals=20_000, max_time=60.0, target=1e-8)
    assert line(search(restart=2), Speed(0.25, 0.01), limits, 200).plain == (
        f"{'━' * 18}{'─' * 12} 62 %  best 1.235e-05 · 15 evaluations/min · at most 53 s left · target 1e-08 · "
        "12,400 of 20,000 evaluations · 7 s of 1 min 0 s · restart 2 · step 0.0031"
    )


def test_what_matters_most_fits_into_80_columns_and_the_rest_is_left_out_whole() -> None:
    limits = Limits(max_evals=20_000, target=1e-8)
    text = line(search(), Speed(100.0, 1.0), limits, 80).plain
    assert text == "━━━━━━──── 62 %  best 1.235e-05 · 100 evaluations/s · at most 1 min 16 s left"
    assert line(search(), Speed(100.0, 1.0), limits, 50).plain.endswith(" 62 %  best 1.235e-05")


def test_a_terminal_without_unicode_gets_other_letters() -> None:
    text = line(search(), Speed(100.0, 1.0), Limits(max_evals=20_000), 80, ascii_only=True).plain
    assert text.isascii() and text.startswith("######---- 62 %  best 1.235e-05 | 100 evaluations/s | at most")


@pytest.mark.parametrize(
    ("limits", "share", "left"),
    [
        (Limits(), None, None),
        (Limits(target=0.0), None, None),
        (Limits(max_evals=24_800), 0.5, 124.0),
        (Limits(max_iters=1240), 0.1, 1116.0),
        (Limits(max_time=74.0), 0.1, 66.6),
        (Limits(max_evals=24_800, max_time=74.0, max_iters=1240), 0.5, 66.6),  # a share of one, the time of another
        (Limits(max_evals=12_000, max_time=5.0), 1.0, 0.0),  # both have ended
    ],
)
def test_the_budget_that_ends_first_counts(limits: Limits, share: float | None, left: float | None) -> None:
    assert used(search(), limits) == pytest.approx(share)
    assert seconds_left(search(), Speed(100.0, 1.0), limits) == pytest.approx(left)


def test_without_a_speed_only_a_limit_of_time_says_how_long() -> None:
    for speed in (None, Speed(0.0, 0.0)):
        assert seconds_left(search(), speed, Limits(max_evals=20_000, max_iters=500)) is None
        assert seconds_left(search(), speed, Limits(max_time=8.4)) == pytest.approx(1.0)


def test_a_target_of_zero_is_a_target() -> None:
    assert "target 0" in line(search(), None, Limits(target=0.0), 80).plain


def test_durations_are_in_words() -> None:
    assert [duration(s) for s in (0.2, 59.4, 61, 3725)] == ["0 s", "59 s", "1 min 1 s", "1 h 2 min"]


def test_nothing_is_written_where_no_one_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as build servers have it: colors are welcome, a live line is not
    with watched(None, shown := Progress()):
        shown.generation(search())
    assert stderr.getvalue() == ""


def test_a_terminal_gets_one_line_at_most_ten_times_a_second(
    monkeypatch: pytest.MonkeyPatch, clock: SimpleNamespace
) -> None:
    stderr = Terminal()
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    texts: list[Any] = []
    with watched(None, shown := Progress()):
        monkeypatch.setattr(shown, "_show", texts.append)
        for k in range(101):  # a second of generations
            clock.now = 100 + k / 100
            shown.generation(search(nfev=100 * (k + 1), limits=Limits()))
    assert len(texts) in (10, 11)  # 0.1 s is not a multiple of a rounded 0.01 s
    assert " 100 evaluations " in texts[0].plain and re.search(r" (9,\d|10,1)00 evaluations ", texts[-1].plain)


def test_the_speed_is_that_of_this_session(monkeypatch: pytest.MonkeyPatch, clock: SimpleNamespace) -> None:
    monkeypatch.setattr("sys.stderr", Terminal())
    texts: list[Any] = []
    with watched(None, shown := Progress()):
        monkeypatch.setattr(shown, "_show", texts.append)
        shown.generation(search(nfev=1_000_100, limits=Limits(max_evals=1_001_000)))  # resumed after a million
        clock.now += 2.0
        shown.generation(search(nfev=1_000_500, limits=Limits(max_evals=1_001_000)))
    assert "/s" not in texts[0].plain and "left" not in texts[0].plain
    assert " 200 evaluations/s · at most 2 s left" in texts[1].plain


def test_the_line_is_gone_in_the_end_and_the_cursor_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = Terminal()
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setenv("TERM", "xterm")
    with watched(None, shown := Progress()):
        assert "computing the first values" in stderr.getvalue()
        shown.generation(search(limits=Limits(max_evals=20_000)))
    written = stderr.getvalue()
    assert "12,400 of 20,000 evaluations" in written
    assert written.rindex("\x1b[?25h") > written.rindex("evaluations") and written.endswith("\x1b[2K")
