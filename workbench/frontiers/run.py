"""The trade-off between privacy and error of any family, in Python and for `workbench frontier`."""

from __future__ import annotations

import importlib
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from workbench.data.parameter_grid import Grid
from workbench.errors import WorkbenchError, must
from workbench.exact.objects import Values
from workbench.io.result import Progress, Result, Row, check_progress, silent
from workbench.pipeline.family import Family
from workbench.pipeline.frontier_plan import (
    COLUMNS,
    Frontier,
    Plan,
    Task,
    failed_row,
    published_tasks,
)
from workbench.pipeline.option import Option, count, flag, read
from workbench.pipeline.published import index_by_name, list_entries
from workbench.pipeline.registry import families, family_of
from workbench.pipeline.user_baselines import make_baselines, read_baselines
from workbench.solvers.search import Deadline

COMPARED = (
    Option(
        "baselines",
        flag,
        True,
        "What is published, by other packages too, at the same budgets.",
        kind=bool,
    ),
    Option(
        "baseline",
        read_baselines,
        kind=list,
        help="Repeatable: a published one by name (then those named alone), or your own: a CSV of noise,probability or "
        "a matrix, or .json (Python: or a function of ε, δ).",
    ),
)


def frontier(
    question: Any,
    *,
    epsilon: Grid | None = None,
    jobs: int = 1,
    progress: Progress = silent,
    **options: Any,
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
        jobs: processes of this machine; 1 stays in this one.
        progress: told (tasks done, tasks, title) after each task.
        options: of the family's trade-off, as `workbench frontier FAMILY --help` explains them (those that spell a
            question only beside the name of its family), each with its default:
            OPTIONS

    Returns:
        One row for every point, with the columns of `workbench.pipeline.frontier_plan`; a request that fails is a row
        with its `failure`. Ctrl-C ends it with the rows of the tasks finished so far (`interrupted`).

    Raises:
        InvalidRequest, SolverUnavailable: a wrong value, before anything is solved.
    """
    check_progress(progress)
    count(1, 1024)(jobs, "jobs")
    by_name = isinstance(question, str)
    kind = _named(question) if by_name else family_of(question)
    offered = frontier_of(kind)
    known = [
        option
        for option in offered.options
        if "python" in option.places and (by_name or not option.question)
    ]
    values = read(known, {**options, **({} if epsilon is None else {"epsilon": epsilon})})
    return run(plan_of(kind, None if by_name else question, values), progress, jobs)


def frontier_of(kind: Family) -> Frontier:
    """The frontier of a family, with the options for what it is compared with. Raises InvalidRequest where it has
    none."""
    offered: Frontier = importlib.import_module(_named(kind.name).frontier or "").FRONTIER
    return (
        offered
        if offered.points is None
        else replace(offered, options=(*offered.options, *COMPARED))
    )


def plan_of(kind: Family, question: Any, values: Values) -> Plan:
    """Make the plan of a family's frontier, beside what the registry of published mechanisms has for it.

    Args:
        kind: The family.
        question: Question of the frontier. None where options spell it.
        values: Values of the frontier's options.

    Raises:
        InvalidRequest: A baseline is neither a file nor the name of a published mechanism.
    """
    offered = frontier_of(kind)
    plan = offered.plan(question, values)
    baselines = values.get("baseline") or ()
    if offered.points is None or not (baselines or values["baselines"]):
        return plan
    user_baselines = make_baselines(
        tuple((name, law) for name, law in baselines if law is not None), kind.name
    )
    entries = list_entries(kind, user_baselines)
    entries_by_name = index_by_name(entries)
    words = [name for name, law in baselines if law is None]
    names = {name for word in words for name in _find_names(entries_by_name, word)}
    names |= {baseline.name for baseline in user_baselines}
    if words:
        entries = [entry for name, entry in entries_by_name.items() if name in names]
    elif not values["baselines"]:
        entries = [entry for entry in entries if entry.package]
    return replace(
        plan,
        tasks=[*plan.tasks, *published_tasks(entries, offered.points(question, values), names)],
    )


def _find_names(names: Iterable[str], word: str) -> list[str]:
    """Find the published mechanisms that a word names, whole or in part. Raises InvalidRequest."""
    matches = [name for name in names if name.lower() == word.lower()]
    matches = matches or [name for name in names if word.lower() in name.lower()]
    return matches or must("baseline", f"a file, or one of {', '.join(names)}", repr(word))


def with_frontiers(name: str | None = None) -> dict[str, Family]:
    """The families (of a name) that have a frontier, by name."""
    return {kind.name: kind for kind in families(name) if kind.frontier is not None}


def _help() -> str:
    """The options of every family's frontier, as lines of `frontier`'s docstring."""
    lines = []
    for name, kind in with_frontiers().items():
        options = [option for option in frontier_of(kind).options if "python" in option.places]
        shown = [f"{option.name}={option.default!r}" for option in options if not option.required]
        text = f"{name}: {', '.join(shown)}"
        lines += textwrap.wrap(text, 119, initial_indent=" " * 12, subsequent_indent=" " * 16)
    return "\n".join(lines)


def _named(name: str) -> Family:
    return with_frontiers(name).get(name) or must(
        "family", f"one of {', '.join(with_frontiers())}", repr(name)
    )


def run(plan: Plan, progress: Progress = silent, jobs: int = 1) -> Result:
    """The rows of a plan; Ctrl-C ends it after those of the tasks finished so far. jobs: processes; 1 is this one.

    Raises WorkbenchError where tasks cannot be sent to other processes.
    """
    answered = {}
    total, clock = len(plan.tasks), Deadline()
    try:
        for at, rows in _answers(plan.tasks, jobs):
            answered[at] = rows
            progress(len(answered), total, plan.title)
    except KeyboardInterrupt:
        pass
    rows = [row for at in sorted(answered) for row in answered[at]]
    parts = len(answered), total, clock.elapsed
    return Result(
        plan.title, rows, "frontier", COLUMNS, plan.draw, *parts, sentences=plan.sentences
    )


def _answers(tasks: Sequence[Task], jobs: int) -> Iterator[tuple[int, list[Row]]]:
    """(position, rows) of every task, as they end."""
    from workbench.sweeps.workers import on_processes

    try:
        for at, rows in on_processes(tasks, jobs, _rows):
            died = WorkbenchError("The processes that worked on it died again and again.")
            yield at, [failed_row(died, curve="failed")] if rows is None else rows
    except Exception as error:
        if type(error).__name__ != "PicklingError":
            raise
        raise WorkbenchError(
            f"These tasks cannot be sent to other processes; leave out jobs. ({error})"
        ) from None


def _rows(task: Task) -> list[Row]:
    """The rows of a task; of one that fails the error."""
    try:
        return list(task())
    except MemoryError:
        return [
            failed_row(
                WorkbenchError("The request needs more memory than there is."), curve="failed"
            )
        ]
    except WorkbenchError as error:
        return [failed_row(error, curve="failed")]


if frontier.__doc__ is not None:  # None under python -OO
    frontier.__doc__ = frontier.__doc__.replace("            OPTIONS", _help())
