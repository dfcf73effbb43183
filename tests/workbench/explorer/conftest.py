"""Fixtures of the explorer's tests: a server with its workers, and a browser."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bench.chromium import EXECUTABLE, Chromium
from workbench.explorer.server import Server

# The time limit of a task. On a busy machine a worker may be slow.
_TASK_SECONDS = 300.0


# The limits of `tasks` that decide which parts a page has.
_PAGE_LIMITS = (
    "_CURVE_PASS_SECONDS",
    "_MAX_CURVE_PASS_SECONDS",
    "_DESIGN_PAGE_SECONDS",
    "_EXPORT_SECONDS",
)


@pytest.fixture(autouse=True)
def give_tasks_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pages of this process have the same parts on a busy machine as well."""
    monkeypatch.setattr("workbench.explorer.formula_map._TIME_LIMIT_SECONDS", _TASK_SECONDS)
    for name in _PAGE_LIMITS:
        monkeypatch.setattr(f"workbench.explorer.tasks.{name}", _TASK_SECONDS)


@contextmanager
def run_server() -> Iterator[Server]:
    """Run a server in a thread."""
    with Server() as started_server:
        for lane in started_server.lanes._lanes.values():
            lane._limit = _TASK_SECONDS
        thread = threading.Thread(
            target=started_server.serve_forever, kwargs={"poll_interval": 0.05}
        )
        thread.start()
        yield started_server
        started_server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Yield a server that all tests share."""
    with run_server() as started_server:
        yield started_server


@pytest.fixture
def new_server() -> Iterator[Server]:
    """Yield a server without connections of other tests' browsers."""
    with run_server() as started_server:
        yield started_server


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """Yield a browser that all tests share. Without Chromium, tests that use it are skipped."""
    if EXECUTABLE is None:
        if os.environ.get("REQUIRE_CHROMIUM"):
            pytest.fail("Chromium is missing, and REQUIRE_CHROMIUM is set.")
        pytest.skip("Chromium is missing: apt-get install chromium")
    with Chromium(tmp_path_factory.mktemp("profile")) as started_browser:
        yield started_browser
