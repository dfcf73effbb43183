"""Settings of all tests: threads, signals, and a second verification of every certificate.

The fixtures below apply to every test without being named. `compare_checkers` makes each
certificate that a test saves or verifies also pass `tools/check_certificate.py`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

# Each process uses one thread for linear algebra. There are as many processes as cores, and more
# threads would make the numerical tests a third slower. This must be set before numpy is loaded.
# `workbench/papers/test_same_bytes.py` sets other numbers.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# The width of the terminal in which the tests run must not change the tables of commands.
os.environ.pop("COLUMNS", None)

# A background job of a shell ignores Ctrl-C, and its child processes inherit this. Some tests send
# Ctrl-C to a child process.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The tests that `make test` leaves to `make test-all`, one identifier a line. Add a test that takes
# more than half a second of one core, if a faster test asks about the same behaviour. Tests in a
# browser and tests with the mark `slow` need no line.
SLOW_TESTS_PATH = Path(__file__).with_name("slow_tests.txt")
_LINES_WITHOUT_TEST = pytest.StashKey[list[str]]()

CHECKER_PATH = Path(__file__).resolve().parents[1] / "tools" / "check_certificate.py"
# The independent checker decides every claim of these notions. Tight claims of the others may stay
# undecided.
CHECKED_NOTIONS = ("pure", "dp", "pdp", "metric")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the slow tests with `pytest.mark.slow`, and note which lines of the list have no test."""
    slow_names = set(SLOW_TESTS_PATH.read_text("utf-8").splitlines())
    names = set()
    for item in items:
        names.add(item.nodeid)
        if item.nodeid in slow_names or "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
    # Without arguments, pytest collects the configured folders.
    is_whole_suite = {Path(name).name for name in config.args} == set(config.getini("testpaths"))
    config.stash[_LINES_WITHOUT_TEST] = sorted(slow_names - names) if is_whole_suite else []


@pytest.fixture
def lines_without_test(pytestconfig: pytest.Config) -> list[str]:
    """Return the lines of the list of slow tests that are no test.

    The list is empty if only a part of the suite was collected.
    """
    return pytestconfig.stash[_LINES_WITHOUT_TEST]


def _import_checker() -> ModuleType:
    """Import tools/check_certificate.py, which is not part of a package."""
    spec = importlib.util.spec_from_file_location("check_certificate", CHECKER_PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True, scope="session")
def refuse_second_copies() -> Iterator[None]:
    """Fail if a test imported `models` or `solvers` by the names of the top-level folders.

    The modules are `workbench.models` and `workbench.solvers`. Under another name they would be
    loaded twice.
    """
    yield
    assert not {"models", "solvers"} & sys.modules.keys(), (
        "import workbench.models, workbench.solvers"
    )


@pytest.fixture(autouse=True, scope="session")
def compare_checkers() -> Iterator[None]:
    """Fail a test if the independent checker decides otherwise on a certificate.

    The functions that read and write certificates are replaced for the whole session.
    """
    from workbench.errors import CorruptFile
    from workbench.privacy import certificate as certificate_module
    from workbench.privacy import certificate_file

    checker = _import_checker()
    original_read = certificate_file.certificate_from_dict
    original_write = certificate_module.write_atomically

    def judge(data: Any) -> str:
        """Return "proven", or the reason why the independent checker refuses a file."""
        try:
            checker.prove_statement(data)
        except checker.Refused as refused:
            return ": ".join(refused.args)
        return "proven"

    def read_and_compare(data: Any) -> Any:
        """Read a certificate, and fail unless both programs accept it or both refuse it."""
        try:
            certificate = original_read(data)
        except CorruptFile as error:
            # A test may have lowered the workbench's limit of the size of a file.
            is_size_refused = "too large" in str(error)
            if not is_size_refused and judge(data) == "proven":
                message = f"only the independent checker accepts the file: {error}"
                raise AssertionError(message) from error
            raise
        if data["claim"]["notion"] in CHECKED_NOTIONS:
            assert judge(data) == "proven"
        return certificate

    def compare_and_write(path: Path, content: bytes) -> None:
        """Write a file, and fail if the independent checker refuses the certificate in it."""
        data = json.loads(content)
        is_certificate = data["format"] == certificate_module.CERTIFICATE_FORMAT
        if is_certificate and data["claim"]["notion"] in CHECKED_NOTIONS:
            assert judge(data) == "proven"
        original_write(path, content)

    certificate_file.certificate_from_dict = read_and_compare
    certificate_module.write_atomically = compare_and_write
    yield
    certificate_file.certificate_from_dict = original_read
    certificate_module.write_atomically = original_write
