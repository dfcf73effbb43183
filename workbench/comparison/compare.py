"""Solvers compared, on one request or on a suite: the answers are judged, not only the times. A failure is a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
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


_TOLERANCE_OPTIONS = (
    "feasibility_tolerance",
    "dual_feasibility_tolerance",
    "integrality_tolerance",
)
_SUITE_OPTIONS = ("time_limit", "repeats", "threads", "tolerance")
FOUND_STATUS = "found"  # the status of the best design that a search without a gap has found
NOT_ASKED_STATUS = "not asked"  # the status of a row whose solver did not answer
TIME_LIMIT_SECONDS = {"request": 60.0, "suite": 20.0}  # seconds of one run

Solvers = str | Sequence[str] | None


def compare(
    question: Any,
    solvers: Solvers = None,
    *,
    instances: str | None = None,
    progress: Progress = ignore_progress,
    **request: Any,
) -> Result:
    """The same on several solvers: status, bound, residual, exact privacy, time, and which one to use.

        >>> import workbench as wb
        >>> result = wb.compare(wb.ModuloNoise(n=8, max_shift=3), ["highs", "ortools:glop"], epsilon=1)
        >>> [row["status"] for row in result]
        ['optimal', 'optimal']
        >>> len(result.sentences)
        1

    Args:
        question: of any family whose requests go to a solver, or the name of one with its options, as `wb.design`
            takes them; or a suite of programs, "small", "default" or
            "library"; or the Path of a folder of MPS files (`workbench programs export`, or your own).
        solvers: names from `workbench doctor`, a list or a text "highs,gurobi"; "all" and None: every installed one.
        instances: of a suite: patterns of instance names, "noise-milp-*,mvu-*".
        progress: told (runs done, runs, what is next).
        request: of a question: as `wb.design`, without solver and certify; of a suite: time_limit, repeats,
            threads and tolerance. See `compare_programs`.

    Returns:
        Of a question one row per solver: the columns of `workbench.pipeline.outcome`, of the mechanism as returned
        (without repair), but for certified: whether a second solve led to a certificate; certified_objective, what that
        one costs; and solver, version, seconds. Of a suite one row per instance and solver, each run in a
        process of its own (`workbench.comparison.report.COLUMNS`). `sentences` say which solver to use and why. After
        Ctrl-C the finished runs.

    Raises:
        InvalidRequest, SolverUnavailable: what is wrong for every solver; what one of them cannot do is a row.
    """
    check_progress(progress)
    if spelled := isinstance(question, str) and question in list_family_names():
        kind = get_family(question)
    elif isinstance(question, (str, Path)):
        if foreign := next((name for name in request if name not in _SUITE_OPTIONS), None):
            must("request", f"made of {', '.join(_SUITE_OPTIONS)} for a suite", foreign)
        return compare_programs(
            question, solvers, instances=instances, progress=progress, **request
        )
    if instances is not None:
        must("instances", "left out, except for a suite", repr(instances))
    if not spelled:
        kind = find_family(question)
    if not any(option.name == "solver" for option in kind.options):
        must("question", "of a family that solves programs", kind.name)
    for name in ("solver", "certify"):
        if name in request:
            must("request", f"made of options of wb.design but {name}, which differs here", name)
    limit = None if {"time_limit", "options"} & set(request) else TIME_LIMIT_SECONDS["request"]
    given = {"certify": False, **request}
    compared_request = (
        kind.make_request_from_options(**given) if spelled else kind.make_request(question, **given)
    )
    return compare_request(
        compared_request, read_solver_names(solvers), limit=limit, progress=progress
    )


def read_solver_names(solvers: Solvers) -> list[str]:
    """The names that are meant; they need not be of solvers. Raises InvalidRequest for other types or none."""
    if solvers is None or (isinstance(solvers, str) and solvers == "all"):
        return list_installed_solvers()
    names = solvers.split(",") if isinstance(solvers, str) else solvers
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        must("solvers", "a list of names of solvers", repr(solvers))
    solvers_given = list(dict.fromkeys(name.strip() for name in names if name.strip()))
    return solvers_given or must("solvers", "at least one name", repr(solvers))


def compare_request(
    request: Request,
    solvers: Sequence[str],
    *,
    limit: float | None = None,
    progress: Progress = ignore_progress,
) -> Result:
    """Design the same mechanism on every solver, cold, as the solver returns it and certified; see `compare`. limit:
    seconds of those that take a time limit, where the request has none.

    A row whose answer is not by its solver says so and has no answer; InvalidRequest where no solver answers. A design
    for many runs is certified at once, because only a private mechanism composes to a budget.
    """
    if request.aim.runs > 1 and request.family.certifies:
        request = request.with_values(check="certify")

    def rows() -> Iterator[Row]:
        for done, solver in enumerate(solvers):
            progress(done, len(solvers), solver)
            clock = Deadline()
            row, design = attempt_design(partial(_design_by_solver, request, solver, limit))
            if design is not None and design.solver != solver:
                yield _make_unused_row(row, solver, design.solver)
                continue
            if (
                row.get("seconds") is None and row["objective"] is not None
            ):  # of a search with several programs
                row["seconds"] = clock.elapsed_seconds
            if request.wants_certificate:
                row["certified_objective"] = row["objective"]
            elif row["objective"] is not None and request.family.certifies:
                _, certified = attempt_design(
                    partial(_design_by_solver, request.with_values(check="certify"), solver, limit)
                )
                if certified and certified.certificate:
                    row |= {"certified": True, "certified_objective": certified.objective}
            yield row | {"solver": solver}

    result = gather_rows(
        f"{request.question!r} on {len(solvers)} solver{'' if len(solvers) == 1 else 's'}",
        rows(),
        len(solvers),
        name="comparison",
        columns=("solver", "version", *OUTCOME_COLUMNS, "certified_objective", "seconds"),
        draw=_make_comparison_plots,
        sentences=lambda answers: [recommend_solver(answers, certified=request.wants_certificate)],
    )
    unasked = [str(row["failure"]) for row in result if row["status"] == NOT_ASKED_STATUS]
    if unasked and not result.is_interrupted and all(row["objective"] is None for row in result):
        must("the request", "one that a solver answers, to compare solvers", unasked[0])
    return result


def _make_unused_row(row: Row, solver: str, answered_by: str | None) -> Row:
    """The row of a solver that did not answer."""
    answered = (
        f"{answered_by} answered"
        if answered_by
        else "a closed form or the workbench's own algorithm answered"
    )
    nothing = dict.fromkeys(row, None)
    return {
        **nothing,
        "status": NOT_ASKED_STATUS,
        "failure": f"{solver} was not asked: {answered}",
        "solver": solver,
    }


def _make_comparison_plots(table: pd.DataFrame) -> Plots:
    """The plots of a comparison of one request."""
    return {"seconds": partial(_draw_solver_seconds, table)}


def _design_by_solver(request: Any, solver: str, limit: float | None) -> Design:
    kind = request.family
    named, options = kind.get_option("solver").read_value(solver), request.how.options
    if options.time_limit is None and "time_limit" in get_backend(named).supported_options:
        options = replace(options, time_limit=limit)
    design: Design = kind.design_request(request.with_values(solver=named, options=options))
    return design


def recommend_solver(rows: Sequence[Row], *, certified: bool = False) -> str:
    """Which solver to use for a request, and why: proven first, then certified, then as `preferred` says.

    certified: whether the rows are of certified designs, not of what solvers returned.
    """
    answered = [
        row
        for row in rows
        if row["objective"] is not None and row.get("oracle_agrees") is not False
    ]
    if not answered:
        return "No solver can be recommended for this request: none of them gave an answer that can be trusted."

    def worth(row: Row) -> tuple[bool, bool, bool]:
        return _is_proven_optimal(row), _is_within_requested_gap(row), bool(row.get("certified"))

    most = max(map(worth, answered))
    best = choose_preferred(
        [row | {"left": _compute_certified_gap(row)} for row in answered if worth(row) == most],
        "left",
        "seconds",
    )
    proven = "does not prove an optimum, and none of the others does"
    if _is_proven_optimal(best):
        proven = "proves the optimum"
    elif best["status"] == FOUND_STATUS and best.get("gap") is not None and best["bound"] > 0:
        proven = f"proves the optimum to within {100 * best['gap']:.2g} %"
    elif _is_within_requested_gap(best):
        proven = f"proves the optimum to within {100 * best['gap']:.2g} %, as was asked"
    private = "is private as returned" if best.get("private") else "is private once it is repaired"
    if certified and best.get("private"):
        private = "is certified"
    if not best.get("private") and not best.get("certified"):
        private = "could not be certified"
    took = [row["seconds"] for row in answered if row.get("seconds") is not None]
    speed = (
        f" ({best['seconds']:.3g} s cold, {best['seconds'] / min(took):.3g} times the fastest)"
        if took
        else ""
    )
    return (
        f"Use {best['solver']} for this request: it {proven}, and its mechanism {private}{speed}."
    )


def _compute_certified_gap(row: Row) -> float | None:
    """The gap of what is certified to the solver's own bound."""
    certified = row.get("certified_objective")
    return relative_gap(row["objective"] if certified is None else certified, row.get("bound"))


def _is_within_requested_gap(row: Row) -> bool:
    """Whether the gap that was asked for is reached, by a point that is feasible."""
    return row["status"] == "optimal" and row.get("gap") is not None and _is_feasible(row)


def _is_proven_optimal(row: Row) -> bool:
    """Whether the optimum is proven, by a point that is feasible; of many runs no gap is asked for."""
    gap = row.get("gap")
    return (
        row["status"] in ("optimal", FOUND_STATUS)
        and gap is not None
        and bool(gap <= GOOD_GAP)
        and _is_feasible(row)
    )


def _is_feasible(row: Row) -> bool:
    residual = row.get("residual")
    return residual is None or residual <= GOOD_GAP


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
    """A versioned suite of programs, or the MPS files of a folder, which are judged against the optima beside them, on
    several solvers; see `compare`.

    Linear programs of a folder are re-solved hot as well. repeats: runs of each, 1 to 99, whose median and quartiles
    are its seconds. threads: of every solver, 1 to 64. tolerance: absolute, of rows, reduced costs and
    integers, in (0, 0.1]; None: each solver's own. Raises of a folder also CorruptFile.
    """
    from workbench.comparison.library import folder_instances

    if (
        isinstance(time_limit, bool)
        or not isinstance(time_limit, (int, float))
        or not 0 < time_limit <= 86_400
    ):
        must("time_limit", "seconds in (0, 86400]", time_limit)
    if instances is not None and not isinstance(instances, str):
        must("instances", 'a text of patterns such as "noise-milp-*,mvu-*"', repr(instances))
    repeats, threads = (
        integer_reader(1, 99)(repeats, "repeats"),
        integer_reader(1, 64)(threads, "threads"),
    )
    if tolerance is not None and not (isinstance(tolerance, float) and 0 < tolerance <= 0.1):
        must("tolerance", "a number in (0, 0.1]", repr(tolerance))
    suite = isinstance(source, str)
    left_out: list[str] = []
    if isinstance(source, str):
        taken = select_instances(source, instances)
        title = f"Suite {source}, version {SUITES[source][0]}"
    else:
        taken, left_out = folder_instances(source, instances)
        title = f"{len(taken)} programs of {source.name}"
    labels = read_solver_names(solvers)
    with translate_errors():
        for label in labels:
            get_backend(label)
    result = run_suite(
        taken,
        labels,
        title=title,
        time_limit=time_limit,
        progress=progress,
        hot=not suite,
        repeats=repeats,
        settings={
            "threads": threads,
            **({} if tolerance is None else dict.fromkeys(_TOLERANCE_OPTIONS, tolerance)),
        },
    )
    if all(row["status"] == "not applicable" for row in result) and not result.is_interrupted:
        must(
            "solvers",
            "some that are installed and can state one of the instances",
            ",".join(labels),
        )
    return replace(result, sentences=(*result.sentences, *left_out))


@apply_style_sheet
def _draw_solver_seconds(table: pd.DataFrame) -> Figure | None:
    """Seconds of every solver that answered; full colour where the mechanism is private as returned."""
    answered = table[table["seconds"].notna() & table["objective"].notna()]
    if answered.empty:
        return None
    figure, (axis,) = make_panels(width=SCREEN_INCHES, height=0.8 + 0.25 * len(answered))
    looks = [1.0 if private is True else 0.45 for private in answered["private"]]
    bars = axis.barh(
        answered["solver"].tolist(), answered["seconds"].astype(float).tolist(), color=COLOURS[0]
    )
    for bar, alpha in zip(bars, looks, strict=True):
        bar.set_alpha(alpha)
    axis.set_xscale("log")
    axis.set_xlabel("seconds, cold (pale: not private as returned)")
    return figure
