"""Compute the trade-off between privacy and loss for any family: `wb.frontier` and its command.

A family declares its frontier in a `Frontier`: its options, and a function that makes a `Plan`. A
plan is a list of tasks. Each task returns rows of the table. The tasks run here, on several
processes if requested. Published mechanisms and user-defined baselines are further tasks.
"""

from __future__ import annotations

import importlib
import textwrap
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from workbench.data.parameter_grid import Grid
from workbench.errors import WorkbenchError, must
from workbench.exact.objects import Values
from workbench.io.result import Progress, Result, Row, check_progress, ignore_progress
from workbench.mechanisms.baselines.synonyms import SYNONYMS
from workbench.pipeline.family import Family
from workbench.pipeline.frontier_plan import (
    FRONTIER_COLUMNS,
    Frontier,
    Plan,
    Task,
    make_failed_row,
    make_published_tasks,
)
from workbench.pipeline.option import MAX_WORKERS, Option, integer_reader, read_flag, read_options
from workbench.pipeline.published import index_by_name, list_entries
from workbench.pipeline.registry import find_family, list_families
from workbench.pipeline.user_baselines import make_baselines, read_baselines
from workbench.solvers.search import Deadline

# The lines of options in the docstring of `frontier` are wrapped at this many characters.
_DOC_WIDTH = 119

BASELINE_OPTIONS = (
    Option(
        "baselines",
        read_flag,
        default=True,
        help="Include published mechanisms, also from other packages, at the same budgets.",
        kind=bool,
    ),
    Option(
        "baseline",
        read_baselines,
        kind=list,
        help="Mechanism to compare with (repeatable): the name of a published mechanism, which "
        "hides the other published ones, or a file (CSV of noise,probability, CSV matrix, or "
        ".json) (in Python also a function of ε, δ).",
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
    """Compute the trade-off between privacy and loss on a grid of budgets (`workbench frontier`).

    The result has designs, closed forms and baselines.

        >>> import workbench as wb
        >>> question = wb.ModuloNoise(n=4, max_shift=1)
        >>> result = wb.frontier(question, epsilon="0.5:1.5:3", delta=[0, 0.1], notion="dp")
        >>> sorted({row["curve"] for row in result})
        ['baseline', 'level', 'piece', 'point']
        >>> table = result.to_frame()

    Args:
        question: a question, or the name of a family. With a name, the options describe the
            question.
        epsilon: a grid: a number, a sequence of numbers, or a text such as "0.1:4:40",
            "0.1:4:40:log" or "0.5,1,2".
        jobs: number of processes. 1 is the current process only.
        progress: called with (finished tasks, tasks, title) after each task.
        options: options of the family's frontier, as `workbench frontier FAMILY --help` explains
            them. Options that describe a question are only for the name of its family. The
            defaults are:
            OPTIONS

    Returns:
        One row per point, with the columns of `workbench.pipeline.frontier_plan`. A request that
        fails is a row with its `failure`. Ctrl-C returns the rows of the finished tasks
        (`is_interrupted`).

    Raises:
        InvalidRequest, SolverUnavailable: an option is wrong. This is found before any solve.
    """
    check_progress(progress)
    integer_reader(minimum=1, maximum=MAX_WORKERS)(jobs, "jobs")
    is_family_name = isinstance(question, str)
    family = _find_frontier_family(question) if is_family_name else find_family(question)
    known_options = [
        option for option in _list_python_options(family) if is_family_name or not option.question
    ]
    if epsilon is not None:
        options["epsilon"] = epsilon
    values = read_options(known_options, options)
    plan = make_frontier_plan(family, None if is_family_name else question, values)
    return run_frontier_plan(plan, progress, jobs)


def get_frontier(kind: Family) -> Frontier:
    """Return the frontier of a family. The options of baselines are added if it has baselines.

    Args:
        kind: the family.

    Raises:
        InvalidRequest: the family has no frontier.
    """
    path = _find_frontier_family(kind.name).frontier or ""
    family_frontier: Frontier = importlib.import_module(path).FRONTIER
    if family_frontier.points is None:
        return family_frontier
    return replace(family_frontier, options=(*family_frontier.options, *BASELINE_OPTIONS))


def make_frontier_plan(kind: Family, question: Any, values: Values) -> Plan:
    """Make the plan of a family's frontier, with the published mechanisms as baselines.

    Args:
        kind: the family.
        question: question of the frontier, or None if the options describe it.
        values: value of each option of the frontier, by name.

    Raises:
        InvalidRequest: a baseline is neither a file nor the name of a published mechanism.
    """
    family_frontier = get_frontier(kind)
    plan = family_frontier.plan(question, values)
    if family_frontier.points is None:
        return plan
    # The option `baseline` has a law for a file or function, and None for a published name.
    baseline_laws = values.get("baseline") or ()
    show_published = bool(values["baselines"])
    if not baseline_laws and not show_published:
        return plan
    user_laws = tuple((name, law) for name, law in baseline_laws if law is not None)
    user_entries = make_baselines(user_laws, kind.name)
    names = {baseline.name for baseline in user_entries}
    entries = list_entries(kind, user_entries)
    entries_by_name = index_by_name(entries)
    name_parts = [name for name, law in baseline_laws if law is None]
    for name_part in name_parts:
        names.update(_find_names(entries_by_name, name_part))
    if name_parts:
        entries = [entry for name, entry in entries_by_name.items() if name in names]
    elif not show_published:
        # Only the published mechanisms of the workbench itself have no package.
        entries = [entry for entry in entries if entry.package]
    points = family_frontier.points(question, values)
    return replace(plan, tasks=[*plan.tasks, *make_published_tasks(entries, points, names)])


def _find_names(published_names: Collection[str], name_part: str) -> list[str]:
    """Find published mechanisms by a synonym or a part of their names, without regard to capitals.

    Returns only the name that equals `name_part`, if there is one, and otherwise all names that
    contain it. Raises InvalidRequest if no name contains it.
    """
    lower = SYNONYMS.get(name_part.lower(), name_part.lower())
    exact_matches = [name for name in published_names if name.lower() == lower]
    matches = exact_matches or [name for name in published_names if lower in name.lower()]
    return matches or must(
        "baseline", f"a file, or one of {', '.join(published_names)}", repr(name_part)
    )


def list_frontier_families(name: str | None = None) -> dict[str, Family]:
    """Return the families that have a frontier, by name.

    Args:
        name: name of a family. Only this family is returned.
    """
    return {family.name: family for family in list_families(name) if family.frontier is not None}


def _list_python_options(family: Family) -> list[Option]:
    """Return the options of a family's frontier that the Python function takes."""
    return [option for option in get_frontier(family).options if "python" in option.places]


def _describe_options() -> str:
    """Return the options of every family's frontier as lines of `frontier`'s docstring."""
    lines = []
    for name, family in list_frontier_families().items():
        options = [option for option in _list_python_options(family) if not option.required]
        defaults = ", ".join(f"{option.name}={option.default!r}" for option in options)
        lines += textwrap.wrap(
            f"{name}: {defaults}",
            _DOC_WIDTH,
            initial_indent=" " * 12,
            subsequent_indent=" " * 16,
        )
    return "\n".join(lines)


def _find_frontier_family(name: str) -> Family:
    """Return the family of a name. Raises InvalidRequest if it has no frontier."""
    family = list_frontier_families(name).get(name)
    return family or must("family", f"one of {', '.join(list_frontier_families())}", repr(name))


def run_frontier_plan(plan: Plan, progress: Progress = ignore_progress, jobs: int = 1) -> Result:
    """Run the tasks of a plan and return their rows in the order of the tasks.

    Ctrl-C returns the rows of the finished tasks.

    Args:
        plan: the tasks, their title and the plots.
        progress: called with (finished tasks, tasks, title) after each task.
        jobs: number of processes. 1 is the current process only.

    Raises:
        WorkbenchError: the tasks cannot be sent to other processes.
    """
    rows_by_position: dict[int, list[Row]] = {}
    total = len(plan.tasks)
    clock = Deadline()
    with suppress(KeyboardInterrupt):
        for position, task_rows in _run_tasks(plan.tasks, jobs):
            rows_by_position[position] = task_rows
            progress(len(rows_by_position), total, plan.title)
    rows = [row for position in sorted(rows_by_position) for row in rows_by_position[position]]
    return Result(
        plan.title,
        rows,
        "frontier",
        FRONTIER_COLUMNS,
        plan.draw,
        len(rows_by_position),
        total,
        clock.elapsed_seconds,
        sentences=plan.sentences,
    )


def _run_tasks(tasks: Sequence[Task], jobs: int) -> Iterator[tuple[int, list[Row]]]:
    """Yield (position, rows) of every task when it ends."""
    from workbench.sweeps.workers import run_on_processes

    try:
        for position, rows in run_on_processes(tasks, jobs, _run_task):
            if rows is None:
                rows = _make_failed_rows("The processes that ran this task died repeatedly.")
            yield position, rows
    except Exception as error:
        if type(error).__name__ != "PicklingError":
            raise
        raise WorkbenchError(
            f"These tasks cannot be sent to other processes. Leave out jobs. ({error})"
        ) from None


def _run_task(task: Task) -> list[Row]:
    """Return the rows of a task, or one row with its error."""
    try:
        return list(task())
    except MemoryError:
        return _make_failed_rows("The request needs more memory than there is.")
    except WorkbenchError as error:
        return [make_failed_row(error, curve="failed")]


def _make_failed_rows(failure: str) -> list[Row]:
    """Return the one row of a task that failed for a reason."""
    return [make_failed_row(WorkbenchError(failure), curve="failed")]


if frontier.__doc__ is not None:  # python -OO removes docstrings
    frontier.__doc__ = frontier.__doc__.replace("            OPTIONS", _describe_options())
