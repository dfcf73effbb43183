"""One run of a suite as a file: an instance in numbers and who is to solve it, for a process of its own.

A task is a NumPy archive of plain arrays (objects are refused on reading) with the settings as JSON text; an answer is
JSON. No file of ours holds code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from solvers.data import Data
from solvers.program import Program
from workbench.io.files import write_whole

__all__ = ["read_answer", "read_task", "write_answer", "write_task"]

_NONE: Mapping[str, Any] = {}
_VECTORS = tuple(part.name for part in fields(Data) if part.name not in {"A", "offset"})


def write_task(
    path: Path, program: Program, values: Mapping[str, ArrayLike], solver: str = "", options: Mapping[str, Any] = _NONE
) -> None:
    """Write a program at these parameter values, with who is to solve it."""
    data = program.data(values)
    settings = {
        "name": program.name,
        "sense": program.sense,
        "scale": program.scale,
        "offset": data.offset,
        "shape": program.shape,
        "solver": solver,
        "options": dict(options),
    }
    arrays = {name: getattr(data, name) for name in _VECTORS}
    arrays |= {"entries": data.A.data, "indices": data.A.indices, "indptr": data.A.indptr}
    with path.open("wb") as file:
        np.savez(file, settings=np.array(json.dumps(settings)), **arrays)


def read_task(path: Path) -> tuple[Program, str, dict[str, Any]]:
    """The program, which has no parameters left, the solver and the options."""
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    settings = json.loads(str(arrays["settings"]))
    A = sp.csc_array((arrays["entries"], arrays["indices"], arrays["indptr"]), shape=tuple(settings["shape"]))
    data = Data(A=A, offset=settings["offset"], **{name: arrays[name] for name in _VECTORS})
    program = Program(settings["name"], data, settings["sense"], scale=settings["scale"])
    return program, settings["solver"], settings["options"]


def write_answer(path: Path, row: Mapping[str, Any]) -> None:
    """Write an answer whole or not at all."""
    write_whole(path, json.dumps(dict(row), default=lambda value: value.tolist()).encode())


def read_answer(path: Path) -> dict[str, Any]:
    """What `write_answer` wrote; the point as an array."""
    row: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if row.get("x") is not None:
        row["x"] = np.array(row["x"], dtype=float)
    return row
