"""Fixtures of the explorer's tests: a server with its workers, and a browser."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bench.chromium import EXECUTABLE, Chromium
from workbench.explorer.server import Server


@contextmanager
def running() -> Iterator[Server]:
    with Server() as made:
        for lane in made.lanes._lanes.values():
            lane._limit = 300.0  # On a busy machine a worker may be slow.
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with running() as made:
        yield made


@pytest.fixture
def alone() -> Iterator[Server]:
    """Yield a server without connections of other tests' browsers."""
    with running() as made:
        yield made


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    if EXECUTABLE is None:
        if os.environ.get("REQUIRE_CHROMIUM"):
            pytest.fail("Chromium is missing, and REQUIRE_CHROMIUM is set.")
        pytest.skip("Chromium is missing: apt-get install chromium")
    with Chromium(tmp_path_factory.mktemp("profile")) as made:
        yield made
