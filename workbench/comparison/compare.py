"""Solve one request, or a suite of programs, with several solvers, and recommend one of them.

`compare` is `wb.compare`. It has two cases:

    request    every solver designs the same mechanism; the rows are computed and ranked here
    suite      a named set of test programs; `comparison.run` solves and judges them, and
               `comparison.report` summarises the rows

To change the ranking of solvers, edit `_rank_answer` for a request and `report.choose_preferred`
for both cases. The columns of the rows are `workbench.pipeline.outcome.OUTCOME_COLUMNS` for a
request and `report.COLUMNS` for a suite.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, floor, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.comparison.report import choose_preferred
from workbench.comparison.run import GOOD_GAP, list_installed_solvers, run_suite
from workbench.errors import must
from workbench.io.figures import COLOURS, SCREEN_INCHES, apply_style_sheet, make_panels
from workbench.io.result import (
    Plots,
    Progress,
    Result,
    Row,
    check_progress,
    gather_rows,
    ignore_progress,
)
from workbench.pipeline.option import integer_reader
from workbench.pipeline.outcome import OUTCOME_COLUMNS, attempt_design, translate_errors
from workbench.pipeline.programs import SUITES, select_instances
from workbench.pipeline.registry import find_family, get_family, list_family_names
from workbench.pipeline.request import Request
from workbench.solvers.backend import get_backend
from workbench.solvers.search import Deadline
from workbench.solvers.solution import relative_gap

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from workbench.pipeline.design import Design
    from workbench.pipeline.family import Family


_TOLERANCE_OPTIONS = (
    "feasibility_tolerance",
    "dual_feasibility_tolerance",
    "integrality_tolerance",
)
_SUITE_OPTIONS = ("time_limit", "repeats", "threads", "tolerance")
# The status of a design that a search found without a goal for its gap, as for several runs.
FOUND_STATUS = "found"
# The status of a row whose solver was not used, because a closed form answered.
NOT_ASKED_STATUS = "not asked"
# The default time limits, in seconds: of one design, and of one program of a suite.
TIME_LIMIT_SECONDS = {"request": 60.0, "suite": 20.0}
# A longer time limit of a suite is refused: one day.
_MAX_SUITE_SECONDS = 86_400
# A larger tolerance of solvers is refused.
_MAX_TOLERANCE = 0.1
# Shorter runtimes are drawn as this one, because the axis is logarithmic.
_MIN_DRAWN_SECONDS = 1e-6
# The largest time is drawn at least this factor to the left of the right end of the axis.
_AXIS_MARGIN = 1.01
# The opacity of a point in the plot, if the mechanism is private as returned.
_PRIVATE_ALPHA = 1.0
# The opacity of a point in the plot, if the mechanism is not private as returned.
_OTHER_ALPHA = 0.45

Solvers = str | Sequence[str] | None


def compare(
    question: Any,
    solvers: Solvers = None,
    *,
    instances: str | None = None,
    progress: Progress = ignore_progress,
    **request: Any,
) -> Result:
    """Solve the same request or suite with several solvers and recommend one.

        >>> import workbench as wb
        >>> question = wb.ModuloNoise(n=8, max_shift=3)
        >>> result = wb.compare(question, ["highs", "ortools:glop"], epsilon=1)
        >>> [row["status"] for row in result]
        ['optimal', 'optimal']
        >>> len(result.sentences)
        1

    Args:
        question: question of a family that solves programs, or the name of such a family with its
            options, as `wb.design` takes them; or a suite of programs, "small", "default" or
            "library"; or the Path of a folder of MPS files (`workbench programs export`, or
            your own).
        solvers: names that `workbench doctor` lists, as a list or as a text "highs,gurobi". "all"
            and None mean every installed one.
        instances: patterns of names of a suite's instances, "noise-milp-*,mvu-*".
        progress: called with (finished runs, runs, next run).
        request: the options of `wb.design` without solver and certify. For a suite: time_limit,
            repeats, threads and tolerance, see `compare_programs`.

    Returns:
        For a question one row per solver: the columns of `workbench.pipeline.outcome`, about the
        mechanism as the solver returned it (without repair), except `certified`: whether a second
        solve gave a certificate; certified_objective, the loss of the certified mechanism; and
        solver, version, seconds. For a suite one row per instance and solver, each run in a process
        of its own (`workbench.comparison.report.COLUMNS`). `sentences` recommend a solver and say
        why. Ctrl-C returns the finished runs.

    Raises:
        InvalidRequest, SolverUnavailable: the request is wrong for every solver. If it is wrong for
            one of them, its row has the failure.
    """
    check_progress(progress)
    is_family_name = isinstance(question, str) and question in list_family_names()
    if isinstance(question, (str, Path)) and not is_family_name:
        _check_option_names(request, _SUITE_OPTIONS)
        return compare_programs(
            question, solvers, instances=instances, progress=progress, **request
        )
    if instances is not None:
        must("instances", "left out, except for a suite", repr(instances))
    family = get_family(question) if is_family_name else find_family(question)
    _check_compared_family(family, request)
    options = {"certify": False, **request}
    if is_family_name:
        compared_request = family.make_request_from_options(**options)
    else:
        compared_request = family.make_request(question, **options)
    has_own_limit = "time_limit" in request or "options" in request
    limit = None
    if not has_own_limit:
        limit = TIME_LIMIT_SECONDS["request"]
    names = read_solver_names(solvers)
    return compare_request(compared_request, names, limit=limit, progress=progress)


def _check_option_names(options: Mapping[str, Any], known_names: Sequence[str]) -> None:
    """Raise InvalidRequest if an option is none of the known ones."""
    for name in options:
        if name not in known_names:
            must("request", f"made of {', '.join(known_names)} for a suite", name)


def _check_compared_family(family: Family, options: Mapping[str, Any]) -> None:
    """Check that a family solves programs, and that no option is set by the comparison itself.

    Raises InvalidRequest.
    """
    if not any(option.name == "solver" for option in family.options):
        must("question", "of a family that solves programs", family.name)
    for name in ("solver", "certify"):
        if name in options:
            must("request", f"made of options of wb.design without {name}, which is set here", name)


def read_solver_names(solvers: Solvers) -> list[str]:
    """Return the names of solvers that are given, or those of all installed ones.

    Args:
        solvers: names, as a list or as a text with commas; "all" and None mean every installed
            solver. A name that no solver has is returned too.

    Raises:
        InvalidRequest: they are of another type, or none is given.
    """
    if solvers is None or (isinstance(solvers, str) and solvers == "all"):
        return list_installed_solvers()
    parts = solvers
    if isinstance(solvers, str):
        parts = solvers.split(",")
    is_list = isinstance(parts, (list, tuple))
    if not is_list or not all(isinstance(part, str) for part in parts):
        must("solvers", "a list of names of solvers", repr(solvers))
    names = list(dict.fromkeys(part.strip() for part in parts if part.strip()))
    return names or must("solvers", "at least one name", repr(solvers))


def compare_request(
    request: Request,
    solvers: Sequence[str],
    *,
    limit: float | None = None,
    progress: Progress = ignore_progress,
) -> Result:
    """Design the same mechanism with every solver, without repair and with a certificate.

    A design for several runs is certified at once, because only a private mechanism composes to a
    budget.

    Args:
        request: the request, which may be for any solver.
        solvers: names of solvers.
        limit: time limit in seconds for the solvers that have one, if the request has none.
        progress: called with (finished runs, runs, next run).

    Returns:
        One row per solver, with the columns that `compare` describes, and a sentence that
        recommends a solver.

    Raises:
        InvalidRequest: no solver is used for this request.
    """
    if request.aim.runs > 1 and request.family.certifies:
        request = request.with_values(check="certify")
    noun = "solver" if len(solvers) == 1 else "solvers"
    result = gather_rows(
        f"{request.question!r} on {len(solvers)} {noun}",
        _iterate_comparison(request, solvers, limit, progress),
        len(solvers),
        name="comparison",
        columns=("solver", "version", *OUTCOME_COLUMNS, "certified_objective", "seconds"),
        draw=_make_comparison_plots,
        sentences=lambda rows: [recommend_solver(rows, certified=request.wants_certificate)],
    )
    # A closed form may have answered in place of every solver.
    unused = [str(row["failure"]) for row in result if row["status"] == NOT_ASKED_STATUS]
    no_answer = all(row["objective"] is None for row in result)
    if unused and no_answer and not result.is_interrupted:
        must("the request", "one that needs a solver, to compare solvers", unused[0])
    return result


def _iterate_comparison(
    request: Request, solvers: Sequence[str], limit: float | None, progress: Progress
) -> Iterator[Row]:
    """Yield one row per solver.

    Args:
        request: The request, which every solver answers.
        solvers: Names of the solvers.
        limit: Time limit of each solver in seconds. None: no limit.
        progress: Function that is called with (solvers done, solvers, next solver).
    """
    for position, solver in enumerate(solvers):
        progress(position, len(solvers), solver)
        yield _compare_one_solver(request, solver, limit)


def _compare_one_solver(request: Request, solver: str, limit: float | None) -> Row:
    """Design with one solver and return its row."""
    clock = Deadline()
    row, design = attempt_design(partial(_design_by_solver, request, solver, limit))
    if design is not None and design.solver != solver:
        return _make_unused_row(row, solver, design.solver)
    row["solver"] = solver
    if row["objective"] is None:
        # The columns stay the same for every solver.
        if request.wants_certificate:
            row["certified_objective"] = None
        return row
    # A search with several programs has no seconds of its own.
    if row.get("seconds") is None:
        row["seconds"] = clock.elapsed_seconds
    if request.wants_certificate:
        row["certified_objective"] = row["objective"]
    elif request.family.certifies:
        row |= _attempt_certificate(request, solver, limit)
    return row


def _attempt_certificate(request: Request, solver: str, limit: float | None) -> Row:
    """Design again with a certificate. Return its columns, or an empty row if it fails."""
    certified_request = request.with_values(check="certify")
    solve = partial(_design_by_solver, certified_request, solver, limit)
    _, design = attempt_design(solve)
    if design is None or not design.certificate:
        return {}
    return {"certified": True, "certified_objective": design.objective}


def _make_unused_row(row: Row, solver: str, used_solver: str | None) -> Row:
    """Return the row of a solver that another solver or a closed form replaced.

    Args:
        row: the row of the answer. Its columns are kept, and their values are not.
        solver: name of the solver that was not used.
        used_solver: name of the solver that was used instead. None: no solver was used.
    """
    computed_by = used_solver or "a closed form or an algorithm of the workbench"
    return {
        **dict.fromkeys(row, None),
        "status": NOT_ASKED_STATUS,
        "failure": f"{solver} was not used: the answer is by {computed_by}",
        "solver": solver,
    }


def _make_comparison_plots(table: pd.DataFrame) -> Plots:
    """Return the plots of a comparison on one request."""
    return {"seconds": partial(_draw_solver_seconds, table)}


def _design_by_solver(request: Any, solver: str, limit: float | None) -> Design:
    """Design with a solver. `limit` is used unless the request sets a time limit, in seconds."""
    family = request.family
    name = family.get_option("solver").read_value(solver)
    options = request.how.options
    if options.time_limit is None and "time_limit" in get_backend(name).supported_options:
        options = replace(options, time_limit=limit)
    design: Design = family.design_request(request.with_values(solver=name, options=options))
    return design


def recommend_solver(rows: Sequence[Row], *, certified: bool = False) -> str:
    """Write a sentence that recommends a solver.

    A proven optimum comes first, then a certificate, then the order of `choose_preferred`.

    Args:
        rows: rows of `compare_request`.
        certified: whether the rows are about certified designs, not about what solvers returned.
    """
    answers = [row for row in rows if _is_trusted(row)]
    if not answers:
        return (
            "No solver can be recommended for this request: no solver gave an answer that can be "
            "trusted."
        )
    best_rank = max(map(_rank_answer, answers))
    equals = [row for row in answers if _rank_answer(row) == best_rank]
    rows_with_gap = [row | {"remaining_gap": _compute_certified_gap(row)} for row in equals]
    best = choose_preferred(rows_with_gap, "remaining_gap", "seconds")
    proof = _describe_proof(best)
    privacy = _describe_privacy(best, certified)
    speed = _describe_speed(best, answers)
    return f"Use {best['solver']} for this request: it {proof}, and its mechanism {privacy}{speed}."


def _is_trusted(row: Row) -> bool:
    """Return whether a row has an answer that no known formula contradicts."""
    return row["objective"] is not None and row.get("oracle_agrees") is not False


def _rank_answer(row: Row) -> tuple[bool, bool, bool]:
    """Return the sort key of an answer. A larger key is better.

    The key is (is proven optimal, is within the requested gap, is certified).
    """
    return _is_proven_optimal(row), _is_within_requested_gap(row), bool(row.get("certified"))


def _describe_proof(row: Row) -> str:
    """Return the verb phrase that says how much of the optimum an answer proves."""
    if _is_proven_optimal(row):
        return "proves the optimum"
    gap = row.get("gap")
    if gap is not None:
        proof = f"proves the optimum to within {100 * gap:.2g} %"
        # A search for several runs ("found") has no requested gap.
        if row["status"] == FOUND_STATUS and row["bound"] > 0:
            return proof
        if _is_within_requested_gap(row):
            return f"{proof}, as requested"
    return "does not prove an optimum, and none of the others does"


def _describe_privacy(row: Row, all_certified: bool) -> str:
    """Return the verb phrase that says whether the mechanism of an answer is private."""
    if not row.get("private"):
        if row.get("certified"):
            return "is private once it is repaired"
        return "could not be certified"
    return "is certified" if all_certified else "is private as returned"


def _describe_speed(best: Row, answers: Sequence[Row]) -> str:
    """Return the seconds of the best answer in parentheses, or "" if none are known."""
    seconds = [row["seconds"] for row in answers if row.get("seconds") is not None]
    if not seconds:
        return ""
    ratio = best["seconds"] / min(seconds)
    return f" ({best['seconds']:.3g} s cold, {ratio:.3g} times the fastest)"


def _compute_certified_gap(row: Row) -> float | None:
    """Return the relative gap between the certified loss and the solver's own bound.

    Without a certified loss, the returned loss is used. None if there is no bound.
    """
    objective = row.get("certified_objective")
    if objective is None:
        objective = row["objective"]
    return relative_gap(objective, row.get("bound"))


def _is_within_requested_gap(row: Row) -> bool:
    """Return whether the solver reached its requested gap with a feasible point."""
    return row["status"] == "optimal" and row.get("gap") is not None and _is_feasible(row)


def _is_proven_optimal(row: Row) -> bool:
    """Return whether a feasible point has a proven gap of at most GOOD_GAP.

    A search for several runs has the status FOUND_STATUS even if its gap is 0.
    """
    gap = row.get("gap")
    if gap is None or row["status"] not in ("optimal", FOUND_STATUS):
        return False
    return bool(gap <= GOOD_GAP) and _is_feasible(row)


def _is_feasible(row: Row) -> bool:
    """Return whether the residuals of an answer are at most GOOD_GAP, or are not known."""
    residual = row.get("residual")
    return residual is None or residual <= GOOD_GAP


@dataclass(frozen=True)
class _SuiteSettings:
    """The options of a run of a suite, checked.

    Attributes:
        repeats: number of runs of each solve.
        options: options of the solvers: threads and, if it was given, the tolerances.
    """

    repeats: int
    options: dict[str, Any]


def compare_programs(
    source: str | Path,
    solvers: Solvers = None,
    *,
    instances: str | None = None,
    time_limit: float = TIME_LIMIT_SECONDS["suite"],
    repeats: int = 1,
    threads: int = 1,
    tolerance: float | None = None,
    progress: Progress = ignore_progress,
) -> Result:
    """Solve a suite of programs, or the MPS files of a folder, with several solvers.

    The programs of a folder are judged against the optima in the files next to them. Its linear
    programs are also solved again from the first solution.

    Args:
        source: name of a suite, or the path of a folder or file.
        solvers: names of solvers. "all" and None mean every installed one.
        instances: patterns of names of instances, "noise-milp-*,mvu-*".
        time_limit: seconds of one solve.
        repeats: runs of each solve, 1 to 99. The seconds are their median and quartiles.
        threads: threads of every solver, 1 to 64.
        tolerance: absolute tolerance for rows, reduced costs and integers, in (0, 0.1]. None is
            each solver's own.
        progress: called with (finished runs, runs, next run).

    Returns:
        One row per program and solver, with the columns of `workbench.comparison.report`, and
        sentences that recommend a solver for each kind of program or name files that were left
        out.

    Raises:
        InvalidRequest, SolverUnavailable: an option or a solver is wrong.
        CorruptFile: no file of the folder can be read.
    """
    from workbench.comparison.library import folder_instances

    _check_time_limit(time_limit)
    if instances is not None and not isinstance(instances, str):
        must("instances", 'a text of patterns such as "noise-milp-*,mvu-*"', repr(instances))
    settings = _read_suite_settings(repeats, threads, tolerance)
    is_suite = isinstance(source, str)
    left_out: list[str] = []
    if isinstance(source, str):
        programs = select_instances(source, instances)
        title = f"Suite {source}, version {SUITES[source].version}"
    else:
        programs, left_out = folder_instances(source, instances)
        title = f"{len(programs)} programs of {source.name}"
    names = read_solver_names(solvers)
    with translate_errors():
        for name in names:
            get_backend(name)
    result = run_suite(
        programs,
        names,
        title=title,
        time_limit=time_limit,
        progress=progress,
        hot=not is_suite,
        repeats=settings.repeats,
        settings=settings.options,
    )
    has_run = any(row["status"] != "not applicable" for row in result)
    if not has_run and not result.is_interrupted:
        rule = "some that are installed and can solve one of the instances"
        must("solvers", rule, ",".join(names))
    return replace(result, sentences=(*result.sentences, *left_out))


def _check_time_limit(seconds: Any) -> None:
    """Raise InvalidRequest unless a time limit is a number of seconds in (0, 86,400]."""
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not is_number or not 0 < seconds <= _MAX_SUITE_SECONDS:
        must("time_limit", f"seconds in (0, {_MAX_SUITE_SECONDS}]", seconds)


def _read_suite_settings(repeats: Any, threads: Any, tolerance: Any) -> _SuiteSettings:
    """Read the options of a suite. Raises InvalidRequest if one is wrong."""
    runs = integer_reader(minimum=1, maximum=99)(repeats, "repeats")
    options: dict[str, Any] = {"threads": integer_reader(minimum=1, maximum=64)(threads, "threads")}
    if tolerance is not None:
        if not isinstance(tolerance, float) or not 0 < tolerance <= _MAX_TOLERANCE:
            must("tolerance", f"a number in (0, {_MAX_TOLERANCE}]", repr(tolerance))
        options |= dict.fromkeys(_TOLERANCE_OPTIONS, tolerance)
    return _SuiteSettings(runs, options)


@apply_style_sheet
def _draw_solver_seconds(table: pd.DataFrame) -> Figure | None:
    """Draw the seconds of every solver, in full colour if its mechanism is private as returned."""
    answers = table[table["seconds"].notna() & table["objective"].notna()]
    if answers.empty:
        return None
    figure, (axis,) = make_panels(width=SCREEN_INCHES, height=0.8 + 0.25 * len(answers))
    names = answers["solver"].tolist()
    seconds = answers["seconds"].astype(float).clip(lower=_MIN_DRAWN_SECONDS).tolist()
    # The seconds are drawn as points, because a bar has no start on a logarithmic axis.
    for name, value, private in zip(names, seconds, answers["private"], strict=True):
        alpha = _PRIVATE_ALPHA if private is True else _OTHER_ALPHA
        axis.plot([value], [name], "o", color=COLOURS[0], alpha=alpha)
    axis.set_xscale("log")
    # The axis ends at whole powers of ten, so that small differences do not look large. The largest
    # number gets a margin, so that its point is inside the axis.
    left_end = 10 ** floor(log10(min(seconds)))
    right_end = 10 ** ceil(log10(_AXIS_MARGIN * max(seconds)))
    axis.set_xlim(left_end, right_end)
    axis.set_ylim(-0.5, len(names) - 0.5)
    axis.set_xlabel("seconds, cold (pale: not private as returned)")
    return figure
