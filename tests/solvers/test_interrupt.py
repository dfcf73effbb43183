"""`Interruption` on its own: a signal that arrives while the main thread does not run Python."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from workbench.solvers.session import Interruption


def press():
    os.kill(os.getpid(), signal.SIGINT)


def sleep_until(event, seconds=60.0):
    """A native call that releases the interpreter lock and is not cut short by signals."""
    event.wait(seconds)


def test_stop_is_called_and_nothing_raised():
    stopped = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    with Interruption(stopped.set) as interruption:
        press()
        sleep_until(stopped)
    assert stopped.is_set()
    assert interruption.is_pressed
    assert signal.getsignal(signal.SIGINT) is before
    assert signal.set_wakeup_fd(-1) == -1


def press_and_wait():
    press()
    time.sleep(60)  # which the signal ends


def test_second_press_raises():
    stopped = threading.Event()
    with Interruption(stopped.set):
        press()
        sleep_until(stopped)
        with pytest.raises(KeyboardInterrupt):
            press_and_wait()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_untouched_without_a_press():
    with Interruption(lambda: pytest.fail("stopped")) as interruption:
        pass
    assert not interruption.is_pressed
    with pytest.raises(KeyboardInterrupt):
        press_and_wait()


def test_a_foreign_handler_stays_in_charge():
    pressed = []
    before = signal.signal(signal.SIGINT, lambda *_: pressed.append(1))
    try:
        with Interruption(lambda: pytest.fail("stopped")) as interruption:
            press()
            time.sleep(0.05)
    finally:
        signal.signal(signal.SIGINT, before)
    assert pressed == [1]
    assert not interruption.is_pressed


def test_other_threads_do_nothing():
    seen = []

    def work():
        with Interruption(lambda: None):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_a_stop_that_fails_is_not_fatal():
    def fail():
        raise RuntimeError

    with Interruption(fail) as interruption:
        press()
        time.sleep(0.05)
    assert interruption.is_pressed
    stopped = threading.Event()
    with Interruption(stopped.set):
        press()
        sleep_until(stopped)
    assert stopped.is_set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_works_after_a_fork():
    with Interruption(lambda: None):
        pass
    child = os.fork()
    if child == 0:
        stopped = threading.Event()
        with Interruption(stopped.set):
            press()
            sleep_until(stopped)
        os._exit(0 if stopped.is_set() else 1)
    assert os.waitpid(child, 0)[1] == 0
