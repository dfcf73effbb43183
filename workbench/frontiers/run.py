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
from workbench.io.result import Progress, Result, Row, check_progress, ignore_progress
from workbench.pipeline.family import Family
from workbench.pipeline.frontier_plan import (
    FRONTIER_COLUMNS,
    Frontier,
    Plan,
    Task,
    make_failed_row,
    make_published_tasks,
)
from workbench.pipeline.option import Option, integer_reader, read_flag, read_options
from workbench.pipeline.published import index_by_name, list_entries
from workbench.pipeline.registry import find_family, list_families
from workbench.pipeline.user_baselines import make_baselines, read_baselines
from workbench.solvers.search import Deadline

BASELINE_OPTIONS = (
    Option(
        "baselines",
        read_flag,
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
    progress: Progress = ignore_progress,
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
    integer_reader(1, 1024)(jobs, "jobs")
    by_name = isinstance(question, str)
    kind = _find_frontier_family(question) if by_name else find_family(question)
    offered = get_frontier(kind)
    known = [
        option
        for option in offered.options
        if "python" in option.places and (by_name or not option.question)
    ]
    values = read_options(known, {**options, **({} if epsilon is None else {"epsilon": epsilon})})
    return run_frontier_plan(
        make_frontier_plan(kind, None if by_name else question, values), progress, jobs
    )


def get_frontier(kind: Family) -> Frontier:
    """The frontier of a family, with the options for what it is compared with. Raises InvalidRequest where it has
    none."""
    offered: Frontier = importlib.import_module(
        _find_frontier_family(kind.name).frontier or ""
    ).FRONTIER
    return (
        offered
        if offered.points is None
        else replace(offered, options=(*offered.options, *BASELINE_OPTIONS))
    )


def make_frontier_plan(kind: Family, question: Any, values: Values) -> Plan:
    """Make the plan of a family's frontier, beside what the registry of published mechanisms has for it.

    Args:
        kind: The family.
        question: Question of the frontier. None where options spell it.
        values: Values of the frontier's options.

    Raises:
        InvalidRequest: A baseline is neither a file nor the name of a published mechanism.
    """
    offered = get_frontier(kind)
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
        tasks=[
            *plan.tasks,
            *make_published_tasks(entries, offered.points(question, values), names),
        ],
    )


def _find_names(names: Iterable[str], word: str) -> list[str]:
    """Find the published mechanisms that a word names, whole or in part. Raises InvalidRequest."""
    matches = [name for name in names if name.lower() == word.lower()]
    matches = matches or [name for name in names if word.lower() in name.lower()]
    return matches or must("baseline", f"a file, or one of {', '.join(names)}", repr(word))


def list_frontier_families(name: str | None = None) -> dict[str, Family]:
    """The families (of a name) that have a frontier, by name."""
    return {kind.name: kind for kind in list_families(name) if kind.frontier is not None}


def _describe_options() -> str:
    """The options of every family's frontier, as lines of `frontier`'s docstring."""
    lines = []
    for name, kind in list_frontier_families().items():
        options = [option for option in get_frontier(kind).options if "python" in option.places]
        shown = [f"{option.name}={option.default!r}" for option in options if not option.required]
        text = f"{name}: {', '.join(shown)}"
        lines += textwrap.wrap(text, 119, initial_indent=" " * 12, subsequent_indent=" " * 16)
    return "\n".join(lines)


def _find_frontier_family(name: str) -> Family:
    return list_frontier_families(name).get(name) or must(
        "family", f"one of {', '.join(list_frontier_families())}", repr(name)
    )


def run_frontier_plan(plan: Plan, progress: Progress = ignore_progress, jobs: int = 1) -> Result:
    """The rows of a plan; Ctrl-C ends it after those of the tasks finished so far. jobs: processes; 1 is this one.

    Raises WorkbenchError where tasks cannot be sent to other processes.
    """
    answered = {}
    total, clock = len(plan.tasks), Deadline()
    try:
        for at, rows in _run_tasks(plan.tasks, jobs):
            answered[at] = rows
            progress(len(answered), total, plan.title)
    except KeyboardInterrupt:
        pass
    rows = [row for at in sorted(answered) for row in answered[at]]
    parts = len(answered), total, clock.elapsed_seconds
    return Result(
        plan.title, rows, "frontier", FRONTIER_COLUMNS, plan.draw, *parts, sentences=plan.sentences
    )


def _run_tasks(tasks: Sequence[Task], jobs: int) -> Iterator[tuple[int, list[Row]]]:
    """(position, rows) of every task, as they end."""
    from workbench.sweeps.workers import run_on_processes

    try:
        for at, rows in run_on_processes(tasks, jobs, _run_task):
            died = WorkbenchError("The processes that worked on it died again and again.")
            yield at, [make_failed_row(died, curve="failed")] if rows is None else rows
    except Exception as error:
        if type(error).__name__ != "PicklingError":
            raise
        raise WorkbenchError(
            f"These tasks cannot be sent to other processes; leave out jobs. ({error})"
        ) from None


def _run_task(task: Task) -> list[Row]:
    """The rows of a task; of one that fails the error."""
    try:
        return list(task())
    except MemoryError:
        return [
            make_failed_row(
                WorkbenchError("The request needs more memory than there is."), curve="failed"
            )
        ]
    except WorkbenchError as error:
        return [make_failed_row(error, curve="failed")]


if frontier.__doc__ is not None:  # None under python -OO
    frontier.__doc__ = frontier.__doc__.replace("            OPTIONS", _describe_options())
