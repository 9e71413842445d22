"""Ctrl-C: where it is let through, where it waits, and that none is lost."""

import signal

import pytest

from esgroup.running.interrupts import Interrupts


def ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


def test_an_interrupt_waits_for_the_next_place_where_it_is_allowed() -> None:
    passed = []
    with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts:
        ctrl_c()
        passed.append("delayed")
        with interrupts.allowed:
            passed.append("inside")
    assert passed == ["delayed"]


def test_after_an_interrupt_that_was_let_through_the_next_one_waits_again() -> None:
    """So that the last checkpoint is written whole."""
    saved = []
    with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts:
        ctrl_c()
        try:
            with interrupts.allowed:
                raise AssertionError("it should not come here")
        except KeyboardInterrupt:
            ctrl_c()
            saved.append("the checkpoint")
    assert saved == ["the checkpoint"]


def test_a_second_interrupt_is_not_delayed() -> None:
    with pytest.raises(KeyboardInterrupt), Interrupts():
        ctrl_c()
        ctrl_c()
        raise AssertionError("it should not come here")


def test_what_may_be_interrupted_is_interrupted_at_once() -> None:
    with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts, interrupts.allowed:
        ctrl_c()
        raise AssertionError("it should not come here")
    with Interrupts() as interrupts, interrupts.allowed:
        pass
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
