"""The order of commands, examples of groups, and completion."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

WORKBENCH = Path(sys.executable).with_name("workbench")


def run(*words: str, **environment: str) -> str:
    ran = subprocess.run([WORKBENCH, *words], capture_output=True, text=True, timeout=60, check=True,
                         env={**os.environ, **environment})  # fmt: skip
    return ran.stdout


def test_commands_stand_in_the_order_of_work() -> None:
    shown = run("--help")
    order = ["explore", "design", "audit", "sample", "sweep", "reproduce", "solvers"]
    places = [shown.index(f"│ {name} ") for name in order]
    assert places == sorted(places)


@pytest.mark.parametrize("group", ["design", "frontier", "evaluate", "privatise"])
def test_groups_have_examples(group: str) -> None:
    shown = " ".join(run(group, "--help").split())
    assert f"Examples: workbench {group} " in shown


@pytest.mark.parametrize(
    ("words", "expected"), [("workbench fro", "frontier"), ("workbench design noise --max", "--max-shift")]
)
def test_a_shell_completes_commands_and_options(words: str, expected: str) -> None:
    count = str(len(words.split()) - 1)
    assert run(_WORKBENCH_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=count).split() == [expected]
