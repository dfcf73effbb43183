"""The trade-off between privacy and error of any family, in Python and for `workbench frontier`."""

from __future__ import annotations

import importlib
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from workbench.errors import InvalidRequest, WorkbenchError
from workbench.families.base import Family
from workbench.families.baseline import baseline_tasks
from workbench.families.frontier_plan import COLUMNS, Frontier, Plan, failed_row
from workbench.families.option import Option
from workbench.families.own_baseline import own_baselines, read_baselines
from workbench.families.registry import families, family, family_of
from workbench.io.parameter_grid import Grid
from workbench.io.result import Result, Row

__all__ = ["Progress", "frontier", "frontier_of", "plan_of", "read", "run"]

BASELINE = Option(
    "baseline", read_baselines, kind=list,
    help="Repeatable: your own, a CSV of noise,probability or of a matrix (in Python: or a function of ε, δ).",
)  # fmt: skip
Progress = Callable[[int, int, str], None]  # told (tasks done, tasks, what they are)


def frontier(
    question: Any, *, epsilon: Grid, progress: Progress = lambda done, total, what: None, **options: Any
) -> Result:
    """The trade-off between privacy and error: designs on a grid, closed forms, baselines (`workbench frontier`).

        >>> import workbench as wb
        >>> result = wb.frontier(wb.ModuloNoise(n=4, max_shift=1), epsilon="0.5:1.5:3", delta=[0, 0.1], notion="dp")
        >>> sorted({row["curve"] for row in result})
        ['baseline', 'level', 'piece', 'point']
        >>> table = result.to_frame()

    Args:
        question: what is asked about, or the name of a family, whose question the options then spell.
        epsilon: a grid: a number, a sequence of numbers, or a text such as "0.1:4:40", "0.1:4:40:log" or "0.5,1,2".
        progress: told (tasks done, tasks, title) after each task.
        options: of the family's trade-off, as `workbench frontier FAMILY --help` explains them (those that spell a
            question only beside the name of its family), each with its default:
            OPTIONS

    Returns:
        One row for every point, with the columns of `workbench.families.frontier_plan`; a request that fails is a row
        with its error. Ctrl-C ends it with the rows of the tasks finished so far (`interrupted`).

    Raises:
        InvalidRequest, SolverUnavailable: a wrong value, before anything is solved.
    """
    if not callable(progress):
        InvalidRequest.must("progress", "a function of (done, total, what)", repr(progress))
    by_name = isinstance(question, str)
    kind = _named(question) if by_name else family_of(question)
    offered = frontier_of(kind)
    known = [option for option in offered.options if "python" in option.places and (by_name or not option.question)]
    values = read(known, {**options, "epsilon": epsilon})
    return run(plan_of(kind, None if by_name else question, values), progress)


def frontier_of(kind: Family) -> Frontier:
    """The frontier of a family, with the option for baselines of one's own. Raises InvalidRequest where it has none."""
    if kind.frontier is None:
        InvalidRequest.must("family", f"one of {', '.join(_names())}", repr(kind.name))
    offered: Frontier = importlib.import_module(kind.frontier).FRONTIER
    return offered if offered.points is None else replace(offered, options=(*offered.options, BASELINE))


def plan_of(kind: Family, question: Any, values: Mapping[str, Any]) -> Plan:
    """The plan of a family, with the baselines of other packages. question: None where options spell it."""
    offered = frontier_of(kind)
    plan = offered.plan(question, values)
    own = own_baselines(values.get("baseline") or (), kind.name)
    if offered.points is None or not (own or values.get("baselines", True)):
        return plan
    return replace(plan, tasks=[*plan.tasks, *baseline_tasks(kind, offered.points(question, values), own)])


def _names() -> list[str]:
    return [kind.name for kind in families() if kind.frontier is not None]


def _help() -> str:
    """The options of every family's frontier, as lines of `frontier`'s docstring."""
    lines = []
    for name in _names():
        options = [option for option in frontier_of(family(name)).options if "python" in option.places]
        shown = [f"{option.name}={option.default!r}" for option in options if not option.required]
        text = f"{name}: {', '.join(shown)}"
        lines += textwrap.wrap(text, 119, initial_indent=" " * 12, subsequent_indent=" " * 16)
    return "\n".join(lines)


def _named(name: str) -> Family:
    kind = next((kind for kind in families() if kind.name == name and kind.frontier is not None), None)
    return kind or InvalidRequest.must("family", f"one of {', '.join(_names())}", repr(name))


def read(options: Sequence[Option], given: Mapping[str, Any]) -> dict[str, Any]:
    """The exact value of every option, its default where it is not given. Raises InvalidRequest."""
    named = {name: option for option in options for name in (*option.aliases, option.name)}
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in named:
            InvalidRequest.must("request", f"made of {', '.join(option.name for option in options)}", name)
        values[named[name].name] = named[name].of(value)
    for option in options:
        if values.get(option.name) is None:
            if option.required:
                raise InvalidRequest(f"{option.name} must be given. Got none.")
            values[option.name] = option.of(option.default)
    return values


def run(plan: Plan, progress: Progress = lambda done, total, what: None) -> Result:
    """The rows of a plan; Ctrl-C ends it after those of the tasks finished so far."""
    rows: list[Row] = []
    done, total, begin = 0, len(plan.tasks), time.perf_counter()
    try:
        for task in plan.tasks:
            try:
                rows += task()
            except MemoryError:
                rows.append(failed_row(WorkbenchError("The request needs more memory than there is."), curve="failed"))
            except WorkbenchError as error:
                rows.append(failed_row(error, curve="failed"))
            done += 1
            progress(done, total, plan.title)
    except KeyboardInterrupt:
        pass
    finally:
        plan.close()
    return Result(plan.title, rows, "frontier", COLUMNS, plan.draw, done, total, time.perf_counter() - begin)


if frontier.__doc__ is not None:  # None under python -OO
    frontier.__doc__ = frontier.__doc__.replace("            OPTIONS", _help())
