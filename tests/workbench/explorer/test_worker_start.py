"""Test that the process that starts workers ends without a traceback if the explorer is stopped."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(("error", "is_printed"), [("EOFError", False), ("OSError", True)])
def test_the_end_of_a_connection_is_no_error_of_the_fork_server(
    error: str, *, is_printed: bool
) -> None:
    code = f"import workbench.explorer.worker_start\nraise {error}('unexpected EOF')"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert ("unexpected EOF" in process.stderr) == is_printed


def test_the_fork_server_loads_the_module_first() -> None:
    from workbench.explorer.processes import _PRELOADED_MODULES

    assert _PRELOADED_MODULES[0] == "workbench.explorer.worker_start"
