"""Every certificate that a test saves or verifies is decided by the second checker as well."""

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

# One thread of linear algebra a process, set before numpy is loaded: there are as many processes as
# cores, and threads that wait for each other cost the numerical tests a quarter.
# `workbench/papers/test_same_bytes.py` sets other numbers.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# Runners of tests say how wide their own terminal is; tables of commands have room unless a test
# asks for less.
os.environ.pop("COLUMNS", None)

# A shell's background job ignores Ctrl-C, and so would every child of the tests, those that are
# interrupted included.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TOOL = Path(__file__).resolve().parents[1] / "tools" / "check_certificate.py"


def _checker() -> ModuleType:
    where = importlib.util.spec_from_file_location("check_certificate", TOOL)
    assert where is not None
    assert where.loader is not None
    module = importlib.util.module_from_spec(where)
    where.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True, scope="session")
def refuse_second_copies() -> Iterator[None]:
    """Fail if a test imported `models` or `solvers` by the names of the top-level folders.

    The modules are `workbench.models` and `workbench.solvers`; under another name they would be
    loaded twice.
    """
    yield
    assert not {"models", "solvers"} & sys.modules.keys(), (
        "import workbench.models, workbench.solvers"
    )


@pytest.fixture(autouse=True, scope="session")
def both_checkers() -> Iterator[None]:
    """`save_certificate` and `verify_certificate` ask `tools/check_certificate.py`, and fail where
    it disagrees.
    """
    from workbench.errors import CorruptFile
    from workbench.privacy import certificate as certificate_module
    from workbench.privacy import certificate_file

    checker = _checker()
    read, write = certificate_file.certificate_from_dict, certificate_module.write_atomically

    def verdict(data: Any) -> str:
        try:
            checker.prove_statement(data)
        except checker.Refused as refused:
            return ": ".join(refused.args)
        return "proven"

    def decided(data: Any) -> bool:
        """Whether the claim is of a notion that the second checker knows."""
        return data["claim"]["notion"] in ("pure", "dp", "pdp", "metric")

    def from_dict(data: Any) -> Any:
        try:
            found = read(data)
        except CorruptFile as error:
            if (
                "too large" not in str(error) and verdict(data) == "proven"
            ):  # a test may have lowered our limit
                raise AssertionError(f"only the second checker accepts: {error}") from error
            raise
        if decided(data):
            assert verdict(data) == "proven"
        return found

    def write_whole(path: Path, content: bytes) -> None:
        data = json.loads(content)
        if data["format"] == certificate_module.CERTIFICATE_FORMAT and decided(data):
            assert verdict(data) == "proven"
        write(path, content)

    certificate_file.certificate_from_dict, certificate_module.write_atomically = (
        from_dict,
        write_whole,
    )
    yield
    certificate_file.certificate_from_dict, certificate_module.write_atomically = read, write
