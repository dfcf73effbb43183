"""Record the numbers that about 350 commands return, and read the recorded numbers.

    python -m tests.golden.values            records the commands of values.json again
    python -m tests.golden.values FILE       records the commands of a text file, one a line

The first line of values.json describes the arithmetic of the processor. Every other line is a
command, its exit code, and the important numbers of its `--json` answer: objectives, bounds, exact
budgets and verdicts. Options, columns and keys may be renamed, but these numbers may not change. A
new recording needs a reason in the commit.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import json
import math
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import typer

from workbench.cli import main

__all__ = [
    "VALUES",
    "Recording",
    "fingerprint_arithmetic",
    "folder_of_inputs",
    "read_recorded_fingerprint",
    "read_recordings",
    "run_command",
]

HERE = Path(__file__).resolve().parent
VALUES = HERE / "values.json"
# Keys of an answer whose values are recorded, at any depth of the answer.
RECORDED_KEYS = frozenset(
    (
        "objective",
        "bound",
        "pure_epsilon",
        "pdp_delta",
        "dp_delta",
        "metric_epsilon",
        "bias",
        "private",
        "certified",
        "proven",
        "epsilon_low",
        "delta_low",
        "epsilon",
        "delta",
        "agrees",
        "value",
        "oracle_value",
        "oracle_agrees",
    )
)

# The tree of commands is built once, because building it takes longer than most commands.
_get_command_once = functools.cache(typer.main.get_command)


@dataclass(frozen=True)
class Recording:
    """The result of one command.

    Attributes:
        command: the command line without "workbench".
        exit: exit code.
        failure: kind of the error if the exit code is not 0, else None.
        values: name -> number, verdict or "inf", such as "exact.epsilon" -> 1.0. Empty if the exit
            code is not 0.
    """

    command: str
    exit: int
    failure: str | None
    values: Mapping[str, Any]

    @classmethod
    def from_line(cls, line: str) -> Recording:
        """Read a line of values.json."""
        data = json.loads(line)
        return cls(data["command"], data["exit"], data.get("failure"), data.get("values", {}))

    def to_line(self) -> str:
        """Return the line of values.json."""
        data: dict[str, Any] = {"command": self.command, "exit": self.exit}
        if self.exit:
            data["failure"] = self.failure
        else:
            data["values"] = dict(self.values)
        return json.dumps(data, ensure_ascii=False)


@contextlib.contextmanager
def folder_of_inputs(folder: Path) -> Iterator[Path]:
    """Enter a folder, with copies of the small tables of inputs/ in it."""
    shutil.copytree(HERE / "inputs", folder, dirs_exist_ok=True)
    with contextlib.chdir(folder):
        yield folder


def read_recordings() -> list[Recording]:
    """Return the recordings in the order in which the commands must run.

    Some commands read files that earlier commands have written.
    """
    return [Recording.from_line(line) for line in VALUES.read_text().splitlines()[1:]]


@functools.cache
def read_recorded_fingerprint() -> str:
    """Return `fingerprint_arithmetic` of the processor of the recording."""
    return str(json.loads(VALUES.read_text().splitlines()[0])["arithmetic"])


@functools.cache
def fingerprint_arithmetic() -> str:
    """Return a hash of results of numpy, its BLAS and libm that depend on the processor.

    The results differ in the last bit between processors. Solvers then stop at slightly different
    points, and so do answers that are not refined exactly.
    """
    x = np.random.default_rng(0).random((60, 60))
    results = [
        x @ x,
        x @ x[0],
        np.linalg.solve(x, x[0]),
        np.exp(x),
        np.log(x),
        np.sin(x),
        x.sum(axis=0),
        x.ravel().sum(),
    ]
    results += [np.array([function(v) for v in x[0]]) for function in (math.exp, math.log)]
    return hashlib.sha256(b"".join(np.asarray(result).tobytes() for result in results)).hexdigest()


def run_command(command: str) -> Recording:
    """Run a command in this process and the current folder, and return its result."""
    stdout = io.StringIO()
    exit_code = 0
    with (
        mock.patch("typer.main.get_command", _get_command_once),
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        try:
            main([*shlex.split(command), "--json"])
        except SystemExit as stop:
            exit_code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    answer = json.loads(stdout.getvalue()) if stdout.getvalue() else {}
    if exit_code:
        return Recording(command, exit_code, answer.get("error"), {})
    return Recording(command, exit_code, failure=None, values=dict(_iterate_numbers(answer)))


def _iterate_numbers(answer: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of every key in RECORDED_KEYS.

    The name is the path of the key. For example, {"exact": {"epsilon": 1}} yields ("exact.epsilon",
    1). A row of a table is named by its class, or else by its position.
    """
    if isinstance(answer, dict):
        for key, value in answer.items():
            if isinstance(value, (dict, list)):
                yield from _iterate_numbers(value, f"{path}{key}.")
            elif key in RECORDED_KEYS:
                yield path + key, value
    elif isinstance(answer, list):
        for position, value in enumerate(answer):
            if isinstance(value, dict):
                yield from _iterate_numbers(value, f"{path}{value.get('class', position)}.")


def record(commands: list[str]) -> None:
    """Run commands and write values.json.

    Args:
        commands: command lines. If empty, the recorded commands run again.
    """
    with tempfile.TemporaryDirectory() as folder, folder_of_inputs(Path(folder)):
        lines = [json.dumps({"arithmetic": fingerprint_arithmetic()})]
        for command in commands or [recording.command for recording in read_recordings()]:
            lines.append(run_command(command).to_line())
            print(lines[-1][:150], flush=True)  # The beginning of the line shows the progress.
    VALUES.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    record(Path(sys.argv[1]).read_text().splitlines() if len(sys.argv) > 1 else [])
