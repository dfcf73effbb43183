"""The only file here that knows where the workbench keeps things: after a move, these lines change and nothing else."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest import mock

import typer

import workbench as wb
from workbench.cli import app, main

__all__ = [
    "FILLED_COLUMNS",
    "RENAMED_COLUMNS",
    "Outcome",
    "certificates",
    "commands",
    "describe",
    "requests",
    "run",
    "versions",
]

# A column of an exported ledger that has a new name since: recorded name -> today's name. Each family had its own
# column for its exact ε; now all have the same.
RENAMED_COLUMNS: dict[str, str] = {
    "agrees": "oracle_agrees", "reason": "error", "exact_epsilon": "pure_epsilon", "exact_pure_epsilon": "pure_epsilon",
    "exact_dp_delta": "dp_delta", "exact_delta": "dp_delta", "exact_pdp_delta": "pdp_delta", "exact_bias": "bias",
}  # fmt: skip
# What every family reports now, and only some did when the outputs were recorded.
FILLED_COLUMNS = ("pure_epsilon", "dp_delta", "pdp_delta")


@dataclass(frozen=True)
class Outcome:
    """What a command left: its exit code and what it printed."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """The one object on stdout. Raises ValueError for anything else."""
        return json.loads(self.stdout)


_tree = functools.cache(typer.main.get_command)  # building it takes longer than most commands


def run(command: str) -> Outcome:
    """A command line in this process, in the current folder."""
    out, err = io.StringIO(), io.StringIO()
    code: object = 0
    same_tree = mock.patch("typer.main.get_command", _tree)
    with same_tree, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(shlex.split(command))
        except SystemExit as stop:
            code = stop.code
    return Outcome(int(code) if isinstance(code, int) else int(code is not None), out.getvalue(), err.getvalue())


def requests(specification: Path) -> list[tuple[str, str]]:
    """(request as canonical JSON, its key) of every point of a sweep, in order; nothing is solved."""
    from workbench.sweeps.specification import read_spec

    spec = read_spec(specification)
    return [pair for chunk in spec.chunks for pair in zip(chunk.requests, chunk.keys, strict=True)]


def versions() -> dict[str, str]:
    """What stands in keys and may change without a change of ours."""
    return {"workbench": wb.__version__, "highspy": metadata.version("highspy"), "ortools": metadata.version("ortools")}


def commands() -> Iterator[tuple[str, Any]]:
    """("design noise", click command) for every command of the tree, the root as ""."""

    def walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
        yield name, command
        for key, child in sorted(getattr(command, "commands", {}).items()):
            yield from walk(f"{name} {key}".strip(), child)

    return walk("", _tree(app))


def describe(parameter: Any) -> dict[str, Any]:
    """The contract of an option or argument, JSON-ready; without its prose."""
    annotation = parameter.type_descriptor.annotation
    default = parameter.default
    return {
        "opts": sorted([*parameter.opts, *parameter.secondary_opts]), "kind": parameter.param_type_name,
        "type": getattr(annotation, "__name__", str(annotation)),
        "default": str(default) if isinstance(default, Path) else default, "required": parameter.required,
        "multiple": parameter.multiple, "nargs": parameter.nargs, "flag": getattr(parameter, "is_flag", False),
        "min": parameter.min, "max": parameter.max,
    }  # fmt: skip


def certificates() -> dict[str, Any]:
    """Certificates of given mechanisms, of the kinds that no design writes: exact numbers in, exact numbers out."""
    third = Fraction(1, 3)
    ends = [[2 * third, third], [third, 2 * third]]
    rows = [["0.6", "0.4"], ["0.5", "0.5"], ["0.4", "0.6"]]
    exact_rows = [[Fraction(cell) for cell in row] for row in rows]
    hole = wb.AdditiveNoise(wb.ModuloNoise(n=4, shifts=[1], directed=True), [54, 24, 10, 0, 12])
    vector = wb.AdditiveNoise(wb.ModuloNoise(sizes=(2, 3), shifts=[(0, 1), (1, 0)]), [6, 4, 4, 5, 4, 4])
    return {
        "given-noise-pdp": wb.certify(hole, "pdp", 1, "0.1", record={"source": "golden"}),
        "given-noise-repaired": wb.certify(hole, "pdp", "0.5", "0.05"),
        "given-noise-vector-dp": wb.certify(vector, "dp", {(0, 1): Fraction(1, 2), (1, 0): "0.2"}, "0.01"),
        "given-channel-pure": wb.certify_channel(exact_rows, epsilon="0.5"),
        "given-channel-dp-directed": wb.certify_channel(
            exact_rows, [(0, 1), (1, 2)], notion="dp", epsilon="0.1", delta="0.1", directed=True
        ),
        "given-channel-pdp": wb.certify_channel(exact_rows, [(0, 2)], notion="pdp", epsilon="0.3", delta="0.8"),
        "given-channel-biased": wb.certify_channel(
            exact_rows, notion="metric", epsilon="0.15", metric=lambda i, j: abs(i - j), outputs=[-1, 3],
            unbiased_for=[Fraction("0.6"), 1, Fraction("1.4")], allow_bias=True,
        ),
        "given-quantizer-pure": wb.certify_quantizer([-1, 1], [-3, 3], ends, epsilon="0.7"),
        "given-quantizer-metric": wb.certify_quantizer([-1, 1], [-3, 3], ends, notion="metric", epsilon="0.7"),
        "given-quantizer-dp": wb.certify_quantizer([-1, 1], [-3, 3], ends, notion="dp", epsilon="0.5", delta="0.2"),
        "given-quantizer-pdp": wb.certify_quantizer([-1, 1], [-3, 3], ends, notion="pdp", epsilon="0.5", delta="0.9"),
        "given-quantizer-biased": wb.certify_quantizer(
            [-1, 1], [-2, 2], ends, epsilon="0.6", unbiased=False
        ),
    }  # fmt: skip
