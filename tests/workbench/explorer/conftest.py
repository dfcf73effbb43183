"""A server of the explorer in this process, with its workers, for tests that talk to it."""

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
            lane._limit = (
                300.0  # on a loaded machine a worker may take longer than a reader would wait
            )
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
    """A server without the connections that a browser of another test keeps open."""
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
