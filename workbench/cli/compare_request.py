"""`workbench compare FAMILY`: one request of any family on several solvers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.cli.console import Json, emit_json, epilog, err, interrupted, out, table
from workbench.cli.options import command, keyword, parameter, values_of
from workbench.comparison.compare import TIME_LIMITS, compare_request, solver_names
from workbench.families.base import Family
from workbench.families.design import upward
from workbench.families.outcome import STATUS
from workbench.families.registry import families
from workbench.io.result import Result

__all__ = ["compare_commands"]

_SOLVERS = Annotated[
    str, typer.Option("--solvers", help="Names from `workbench doctor`, comma-separated; all: every installed one.")
]
_MORE = (" --solvers highs,gurobi,scip", " --solvers all --json")
_HEADS = {
    "solver": "solver",
    "status": "status",
    "objective": "objective",
    "bound": "bound",
    "residual": "residual",
    "pdp_delta": "PDP δ",
    "dp_delta": "DP δ",
    "pure_epsilon": "pure ε",
    "private": "private",
    "oracle_agrees": "agrees",
    "seconds": "seconds",
}
_LIMIT = f"Seconds; {TIME_LIMITS['request']:g} by default for solvers that take a limit."
_ROUNDED_UP = ("pdp_delta", "dp_delta", "pure_epsilon")
_FORMATS = {"residual": ".1g", "seconds": ".3f"}


def compare_commands() -> list[tuple[str, Callable[..., None], str]]:
    """(name, function, epilog) of the command of every family whose requests go to a solver."""
    kinds = [kind for kind in families() if any(option.name == "solver" for option in kind.options)]
    return [(kind.name, _command(kind), _examples(kind)) for kind in kinds]


def _examples(kind: Family) -> str:
    """The examples of designing, on several solvers."""
    lines = [line.split(" --plot")[0].split(" --save")[0] for line in kind.examples if line.startswith("design ")]
    stems = [line.replace(f"design {kind.name}", f"compare {kind.name}", 1).replace(" --json", "") for line in lines]
    return epilog(stem + more for stem, more in zip(stems, _MORE, strict=False))


def _command(kind: Family) -> Callable[..., None]:
    def run(*, solvers: str, json: bool, **given: Any) -> None:
        names = solver_names(solvers)
        request = kind.request_of(values_of(kind, given, check="audit"))
        result = compare_request(
            request,
            names,
            limit=TIME_LIMITS["request"],
            progress=lambda done, total, solver: err.print(f"{solver} ..."),
        )
        if json:
            if given.get("time_limit") is None:
                given["time_limit"] = TIME_LIMITS["request"]
            emit_json(_json(request.question, given, result))
        else:
            _report(result)
        if result.interrupted:
            interrupted(f"{result.finished} of {result.total} solvers have answered.")
        if all(row["objective"] is None for row in result):
            raise typer.Exit(1)

    parameters = [
        parameter(replace(option, help=_LIMIT) if option.name == "time_limit" else option)
        for option in kind.given_in("command")
        if option.name != "solver"
    ]
    parameters += [keyword("solvers", _SOLVERS, "highs,gurobi"), keyword("json", Json, False)]
    summary = f"One request of {kind.name} on several solvers: status, bound, exact privacy, and which one to use."
    return command(run, parameters, summary)


def _json(question: Any, given: Mapping[str, Any], result: Result) -> dict[str, Any]:
    """The request as it was given, and the rows; kind and agrees are older names for the error and oracle_agrees."""
    kinds = {word: kind.__name__ for kind, word in STATUS.items()}
    rows = [
        row | {"kind": kinds.get(row["status"]) if row["failure"] else None, "agrees": row["oracle_agrees"]}
        for row in result.to_dict()["rows"]
    ]
    options = {name: str(value) if isinstance(value, Path) else value for name, value in given.items()}
    spelled = question.to_dict() if hasattr(question, "to_dict") else repr(question)
    return options | {
        "question": spelled,
        "rows": rows,
        "recommendation": result.sentences[0],
        "interrupted": result.interrupted,
    }


def _report(result: Result) -> None:
    """The rows as a table, what went wrong in words, and which solver to use."""
    cells = [[_cell(name, row.get(name)) for name in _HEADS] for row in result]
    caption = "δ, ε and private are of the mechanism as returned, in exact arithmetic; agrees: with the closed form."
    out.print(table(result.title, list(_HEADS.values()), cells, caption=caption))
    for row in result:
        if row["failure"]:
            name = "" if row["failure"].startswith(row["solver"]) else f"{row['solver']}: "
            out.print(f"{name}{row['failure']}", highlight=False, markup=False)
    out.print(result.sentences[0], highlight=False, markup=False)


def _cell(name: str, value: Any) -> Any:
    if name in _ROUNDED_UP and value is not None:
        return upward(value)
    return format(value, _FORMATS[name]) if name in _FORMATS and isinstance(value, float) else value
