"""Verify solvers and models on requests whose optimum is known from a formula (`workbench verify`).

Each request is designed, and the loss of the design is compared with the formula, which is called
the oracle of the design. The requests are in the file `workbench/pipeline/verification.toml`, by
family.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from workbench.comparison.compare import Solvers, read_solver_names
from workbench.comparison.report import FIGURES
from workbench.data.plain import read_list
from workbench.errors import SolverUnavailable, must
from workbench.exact.objects import Values
from workbench.io.result import Progress, Result, Row, check_progress, gather_rows, ignore_progress
from workbench.pipeline.family import Family
from workbench.pipeline.outcome import attempt_design, translate_errors
from workbench.pipeline.registry import list_families
from workbench.pipeline.verification import has_grid, list_grid_requests
from workbench.solvers.backend import get_backend

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


VERIFICATION_COLUMNS = (
    "question",
    "solver",
    "status",
    "objective",
    "bound",
    "oracle",
    "oracle_kind",
    "oracle_value",
    "difference",
    "agrees",
    "private",
    "failure",
)
_NO_SOLVER = "none"  # The column "solver" has this value if a request needs no solver.


@dataclass(frozen=True)
class _Run:
    """One request to verify.

    Attributes:
        family: family of the request.
        question: question of the request.
        options: options of the request.
        solver: name of a solver, or _NO_SOLVER.
    """

    family: Family
    question: Any
    options: Values
    solver: str


def verify(
    solvers: Solvers = ("highs",),
    *,
    family: str | Sequence[str] = "modulo",
    small: bool = False,
    progress: Progress = ignore_progress,
) -> Result:
    """Solve requests whose optimum is known, and compare the answers (`workbench verify`).

        >>> import workbench as wb
        >>> result = wb.verify("highs", small=True)                 # doctest: +SKIP
        >>> [row for row in result if row["agrees"] is False]       # doctest: +SKIP
        []

    Args:
        solvers: names, as for `wb.compare`.
        family: names of families (a sequence, or one text with commas), or "all".
        small: whether to use the small grid (seconds) instead of the full one.
        progress: called with (finished requests, requests, solver).

    Returns:
        One row per request and solver, or per request with solver "none" if it needs no solver:
        question, the request, status, objective, bound, oracle (name of the known formula),
        oracle_kind, oracle_value, difference, agrees (None without a known formula, and for
        programs of a kind that the solver is not made for), private (exactly), failure. Ctrl-C
        returns the finished rows.

    Raises:
        InvalidRequest: an option is wrong.
        SolverUnavailable: a solver is unknown or not installed.
    """
    names = read_solver_names(solvers)
    for name in names:
        with translate_errors():
            if not get_backend(name).is_installed():
                raise SolverUnavailable(f"solver must be an installed one. Got {name!r}.")
    if not isinstance(small, bool):
        must("small", "True or False", repr(small))
    check_progress(progress)
    runs = _list_runs(_read_families(family), names, small)

    def rows() -> Iterator[Row]:
        """Yield the row of every request as it is verified."""
        for position, run in enumerate(runs, 1):
            yield _verify_request(run)
            progress(position, len(runs), run.solver)

    return gather_rows(
        "Models against known formulas",
        rows(),
        len(runs),
        name="verification",
        columns=VERIFICATION_COLUMNS,
        draw=lambda table: {"differences": partial(_draw_differences, table)},
        sentences=_describe_agreement,
    )


def _list_runs(families: Sequence[Family], solvers: Sequence[str], small: bool) -> list[_Run]:
    """List the requests for every solver. A request that needs no solver is listed once."""
    runs = list[_Run]()
    for solver in solvers:
        for family in families:
            for question, options in list_grid_requests(family, small):
                if _needs_solver(family, options):
                    runs.append(_Run(family, question, options, solver))
                elif solver == solvers[0]:
                    runs.append(_Run(family, question, options, _NO_SOLVER))
    return runs


def _describe_agreement(rows: list[Row]) -> Iterator[str]:
    """Yield the sentence that counts the answers that agree."""
    verdicts = [row["agrees"] for row in rows if row["agrees"] is not None]
    yield f"{sum(verdicts)} of {len(verdicts)} answers agree with a known formula."


def _read_families(names: str | Sequence[str]) -> list[Family]:
    """Return the named families that have requests to verify. Raises InvalidRequest."""
    families = {family.name: family for family in list_families() if has_grid(family)}
    if names == "all":
        return list(families.values())
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",")]
    names = read_list(names, "family", "the name of a family, or all")
    for name in names:
        if not isinstance(name, str) or name not in families:
            must("family", f"all, or some of {', '.join(families)}", repr(name))
    return [families[name] for name in dict.fromkeys(names)]


def _needs_solver(family: Family, options: Values) -> bool:
    """Return whether the answer to a request needs a solver."""
    defaults = {option.name: option.default for option in family.options}
    return family.solver_label(defaults | dict(options)) is not None


def _verify_request(run: _Run) -> Row:
    """Design one request and compare the answer with the known formula."""
    known_options = {option.name for option in run.family.design_arguments}
    common_options: dict[str, Any] = {"certify": False}
    if run.solver != _NO_SOLVER:
        common_options["solver"] = run.solver
    common_options = {
        name: value for name, value in common_options.items() if name in known_options
    }

    def solve() -> Any:
        """Design the mechanism of the request."""
        request = run.family.make_request(run.question, **common_options, **run.options)
        return run.family.design_request(request)

    row, design = attempt_design(solve)
    # The first two columns, question and solver, are added below.
    answer = {name: row.get(name) for name in VERIFICATION_COLUMNS[2:]}
    answer["difference"] = design.oracle.difference if design else None
    if row["status"] in ("unavailable", "licence"):
        # The solver is not made for this kind of program.
        answer["oracle"] = "not for this solver"
        answer["agrees"] = None
    elif row["failure"] is not None:
        answer["agrees"] = False
    else:
        answer["agrees"] = row["oracle_agrees"]
    return {"question": repr(run.question), **run.options, "solver": run.solver, **answer}


def _draw_differences(table: pd.DataFrame) -> Figure | None:
    """Draw |objective - oracle| of every answer by solver. A difference of 0 is drawn at 1e-17."""
    from workbench.io.drawing import Drawing, draw_declared_figure

    rows = table[table["difference"].notna()].astype({"difference": float})
    if rows.empty:
        return None
    return draw_declared_figure(Drawing(FIGURES["differences"]), rows)


def summarise_verification(rows: Sequence[Row]) -> list[Row]:
    """Count the requests that agree, for every solver and known formula.

    Args:
        rows: rows of `verify`.

    Returns:
        One row per solver, formula (`oracle`) and `kind` of formula, with the numbers of
        `requests`, of those that `agree` and `disagree`, and of mechanisms that are
        `exactly_private`. `worst` is the largest |difference|. If the formula is a bound, only a
        difference on the wrong side of it counts.
    """
    ordered_rows = sorted(rows, key=_make_group_key)
    return [
        _count_agreements(solver, oracle=oracle, kind=kind, rows=[*members])
        for (solver, oracle, kind), members in groupby(ordered_rows, _make_group_key)
    ]


def _make_group_key(row: Row) -> tuple[str, str, str]:
    """Return (solver, known formula, kind of formula) of a row."""
    without_formula = "failed" if row["failure"] else "no known formula"
    return row["solver"], row["oracle"] or without_formula, row["oracle_kind"] or "-"


def _count_agreements(solver: str, oracle: str, kind: str, rows: Sequence[Row]) -> Row:
    """Return the row of `summarise_verification` for one group of rows.

    Args:
        solver: Name of the solver of the group.
        oracle: Name of the oracle, or why there is none.
        kind: Kind of the oracle. A value beyond a bound is no difference.
        rows: The rows of the group.
    """
    differences = [row["difference"] for row in rows if row["difference"] is not None]
    if kind == "upper bound":
        differences = [max(0.0, difference) for difference in differences]
    elif kind.endswith("bound"):
        differences = [max(0.0, -difference) for difference in differences]
    agrees = [row["agrees"] for row in rows]
    return {
        "solver": solver,
        "oracle": oracle,
        "kind": kind,
        "requests": len(rows),
        "agree": agrees.count(True),
        "disagree": agrees.count(False),
        "worst": max(map(abs, differences), default=None),
        "exactly_private": [row["private"] for row in rows].count(True),
    }
