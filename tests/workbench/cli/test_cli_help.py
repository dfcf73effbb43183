"""Test help screens: the order of commands, examples, completion, and the width of tables."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from workbench.cli.commands import app

WORKBENCH = Path(sys.executable).with_name("workbench")


def run(*words: str, **environment: str) -> str:
    """Run a command that must succeed, and return its text on stdout."""
    completed = subprocess.run(
        [WORKBENCH, *words],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        env={**os.environ, **environment},
    )
    return completed.stdout


def test_help_lists_commands_in_the_order_of_work() -> None:
    help_screen = run("--help")
    order = ["explore", "design", "audit", "sample", "sweep", "reproduce", "doctor"]
    positions = [help_screen.index(f"│ {name} ") for name in order]
    assert positions == sorted(positions)


def test_the_summary_of_a_command_is_one_line_of_its_docstring() -> None:
    # A list of commands keeps the line breaks of a docstring.
    commands = get_command(app).commands.items()
    assert len(commands) > 10
    assert [name for name, command in commands if "\n" in command.help.split("\n\n")[0]] == []


@pytest.mark.parametrize("group", ["design", "frontier", "laplace", "privatise"])
def test_the_help_of_a_group_has_examples(group: str) -> None:
    help_text = " ".join(run(group, "--help").split())
    assert f"Examples: workbench {group} " in help_text


@pytest.mark.parametrize(
    ("words", "expected"),
    [("workbench fro", "frontier"), ("workbench design modulo --max-s", "--max-shift")],
)
def test_a_shell_completes_commands_and_options(words: str, expected: str) -> None:
    last_index = str(len(words.split()) - 1)
    completions = run(_WORKBENCH_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=last_index)
    assert completions.split() == [expected]


def test_tables_in_a_file_have_the_width_COLUMNS_and_whole_numbers() -> None:
    """No column is cut off: both widths show the same numbers."""
    command = shlex.split("design channel --answers 0..6 --max-shift 1 --epsilon 1 --loss absolute")
    wide = run(*command, COLUMNS="150")
    narrow = run(*command, COLUMNS="24")
    title = "Probability of every output"
    numbers = re.compile(r"0\.\d{3,}")
    wide_numbers = set(numbers.findall(wide[wide.index(title) :]))
    narrow_numbers = set(numbers.findall(narrow[narrow.index(title) :]))
    assert wide_numbers == narrow_numbers != set()
    assert max(len(line) for line in wide.splitlines()) > 120
    assert max(len(line) for line in narrow[: narrow.index(title)].splitlines()) <= 24


def test_help_into_a_closed_pipe_prints_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "workbench", "design", "modulo", "--help"]
    completed = subprocess.run(
        command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert (completed.returncode, completed.stderr) == (2, "")
