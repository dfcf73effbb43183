"""What some 370 commands answer, as numbers; `python -m tests.golden.values` records them into
values.json.

After a first line on the processor, each line of that file is a command, how it ended, and the
numbers of its `--json` answer that carry meaning: objectives, bounds, exact budgets, verdicts.
Names of options, columns and keys may change with the words; these numbers may not. A recording is
a decision: whoever records again says in the commit why.
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
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import typer

from workbench.cli import main

__all__ = [
    "VALUES",
    "arithmetic",
    "folder_of_inputs",
    "observed",
    "recorded",
    "recorded_arithmetic",
]

HERE = Path(__file__).resolve().parent
VALUES = HERE / "values.json"
# keys of an answer that are kept, wherever they stand in it
KEPT = frozenset(
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

_tree = functools.cache(typer.main.get_command)  # building it takes longer than most commands


@contextlib.contextmanager
def folder_of_inputs(folder: Path) -> Iterator[Path]:
    """Be in a folder with copies of the small tables of inputs/."""
    shutil.copytree(HERE / "inputs", folder, dirs_exist_ok=True)
    with contextlib.chdir(folder):
        yield folder


def recorded() -> list[dict[str, Any]]:
    """What was recorded, in the order in which it must run: files that later commands read are
    written by earlier.
    """
    return [json.loads(line) for line in VALUES.read_text().splitlines()[1:]]


def recorded_arithmetic() -> str:
    """How the processor of the recording rounds."""
    return str(json.loads(VALUES.read_text().splitlines()[0])["arithmetic"])


def arithmetic() -> str:
    """A fingerprint of how this processor rounds in numpy, its BLAS and libm, whose kernels differ
    in the last bit.

    Solvers then stop at points that differ in the last bits too, and so do the answers that are not
    refined exactly.
    """
    x = np.random.default_rng(0).random((60, 60))
    parts = [
        x @ x,
        x @ x[0],
        np.linalg.solve(x, x[0]),
        np.exp(x),
        np.log(x),
        np.sin(x),
        x.sum(axis=0),
        x.ravel().sum(),
    ]
    parts += [np.array([f(v) for v in x[0]]) for f in (math.exp, math.log)]
    return hashlib.sha256(b"".join(np.asarray(part).tobytes() for part in parts)).hexdigest()


def observed(command: str) -> dict[str, Any]:
    """How a command ends today, in the current folder."""
    out, code = io.StringIO(), 0
    same_tree = mock.patch("typer.main.get_command", _tree)
    with same_tree, contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        try:
            main([*shlex.split(command), "--json"])
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    answer = json.loads(out.getvalue()) if out.getvalue() else {}
    seen: dict[str, Any] = {"command": command, "exit": code}
    return seen | ({"failure": answer.get("error")} if code else {"values": dict(_kept(answer))})


def _kept(answer: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, value) of every kept number, verdict or "inf"; rows of a table go by what they are
    about.
    """
    if isinstance(answer, dict):
        for key, value in answer.items():
            if isinstance(value, (dict, list)):
                yield from _kept(value, f"{path}{key}.")
            elif key in KEPT:
                yield path + key, value
    elif isinstance(answer, list):
        for k, value in enumerate(answer):
            if isinstance(value, dict):
                yield from _kept(value, f"{path}{value.get('class', k)}.")


def record(commands: list[str]) -> None:
    """Record what the given commands, or those recorded, answer today."""
    with tempfile.TemporaryDirectory() as folder, folder_of_inputs(Path(folder)):
        lines = [json.dumps({"arithmetic": arithmetic()})]
        for command in commands or [line["command"] for line in recorded()]:
            lines.append(json.dumps(observed(command), ensure_ascii=False))
            print(lines[-1][:150], flush=True)
    VALUES.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    record(Path(sys.argv[1]).read_text().splitlines() if len(sys.argv) > 1 else [])
