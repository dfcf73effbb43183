"""Tests of `Interruption`: Ctrl-C arrives while the main thread waits in a native call."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from workbench.solvers.interruption import Interruption

MAX_WAIT_SECONDS = 60.0  # A test that waits longer fails.
SIGNAL_SECONDS = 0.05  # A signal is delivered within this time.


def press_ctrl_c():
    """Send SIGINT to this process."""
    os.kill(os.getpid(), signal.SIGINT)


def press_ctrl_c_and_wait():
    """Send SIGINT and sleep until a KeyboardInterrupt ends the sleep."""
    press_ctrl_c()
    time.sleep(MAX_WAIT_SECONDS)


def wait_for(event):
    """Wait like a native solver: without the interpreter lock, and not ended by signals."""
    event.wait(MAX_WAIT_SECONDS)


def fail_if_stopped():
    """Fail the test, because the solver must not be stopped."""
    pytest.fail("the solver was stopped")


def test_ctrl_c_calls_stop_and_raises_nothing():
    stopped = threading.Event()
    with Interruption(stopped.set) as interruption:
        press_ctrl_c()
        wait_for(stopped)
    assert stopped.is_set()
    assert interruption.is_pressed


def test_the_signal_handlers_are_restored():
    handler = signal.getsignal(signal.SIGINT)
    with Interruption(lambda: None):
        assert signal.getsignal(signal.SIGINT) is not handler
    assert signal.getsignal(signal.SIGINT) is handler
    assert signal.set_wakeup_fd(-1) == -1  # There was no file descriptor for signals.


def test_a_second_ctrl_c_raises():
    stopped = threading.Event()
    with Interruption(stopped.set):
        press_ctrl_c()
        wait_for(stopped)
        with pytest.raises(KeyboardInterrupt):
            press_ctrl_c_and_wait()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_without_ctrl_c_nothing_is_stopped():
    with Interruption(fail_if_stopped) as interruption:
        pass
    assert not interruption.is_pressed


def test_ctrl_c_raises_again_after_the_context():
    with Interruption(fail_if_stopped):
        pass
    with pytest.raises(KeyboardInterrupt):
        press_ctrl_c_and_wait()


def test_a_handler_of_the_user_is_not_replaced():
    received_signals = []
    saved_handler = signal.signal(signal.SIGINT, lambda number, _: received_signals.append(number))
    try:
        with Interruption(fail_if_stopped) as interruption:
            press_ctrl_c()
            time.sleep(SIGNAL_SECONDS)
    finally:
        signal.signal(signal.SIGINT, saved_handler)
    assert received_signals == [signal.SIGINT]
    assert not interruption.is_pressed


def test_outside_the_main_thread_the_context_does_nothing():
    handlers = []

    def read_handler_in_context():
        with Interruption(lambda: None):
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=read_handler_in_context)
    thread.start()
    thread.join()
    assert handlers == [signal.default_int_handler]


def test_an_error_of_stop_does_not_disable_later_contexts():
    called = threading.Event()

    def raise_error():
        called.set()
        raise RuntimeError

    with Interruption(raise_error) as interruption:
        press_ctrl_c()
        wait_for(called)
    assert called.is_set()
    assert interruption.is_pressed
    stopped = threading.Event()
    with Interruption(stopped.set):
        press_ctrl_c()
        wait_for(stopped)
    assert stopped.is_set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_ctrl_c_calls_stop_in_a_forked_process():
    with Interruption(lambda: None):  # The parent starts its watcher thread.
        pass
    child_pid = os.fork()
    if child_pid == 0:
        stopped = threading.Event()
        with Interruption(stopped.set):
            press_ctrl_c()
            wait_for(stopped)
        os._exit(0 if stopped.is_set() else 1)
    _, exit_status = os.waitpid(child_pid, 0)
    assert exit_status == 0
