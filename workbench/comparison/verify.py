"""Models against oracles on a grid: every request is solved, judged by its closed form and audited."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


def verify(
    solvers: Solvers = ("highs",),
    *,
    family: str | Sequence[str] = "modulo",
    small: bool = False,
    progress: Progress = ignore_progress,
) -> Result:
    """Solve requests whose closed forms are known on every solver, and judge each answer (`workbench verify`).

        >>> import workbench as wb
        >>> result = wb.verify("highs", small=True)                 # doctest: +SKIP
        >>> [row for row in result if row["agrees"] is False]       # doctest: +SKIP
        []

    Args:
        solvers: names, as for `wb.compare`.
        family: whose requests: names of families (a sequence, or one text with commas), or "all".
        small: the small grid (seconds) instead of the full one.
        progress: told (requests done, requests, what is solved).

    Returns:
        One row per request and solver, or per request with solver "none" where none takes part: question, the request,
        status, objective, bound, oracle (its name), oracle_kind, oracle_value, difference, agrees (None without a
        closed form, and for programs of a kind the solver is not made for), private (exactly), error. A failure is a
        row. After Ctrl-C the requests answered so far.

    Raises:
        InvalidRequest; SolverUnavailable: a solver is unknown or not installed.
    """
    names = read_solver_names(solvers)
    for name in names:
        with translate_errors():
            if not get_backend(name).is_installed():
                raise SolverUnavailable(f"solver must be an installed one. Got {name!r}.")
    if not isinstance(small, bool):
        must("small", "True or False", repr(small))
    check_progress(progress)
    runs = [
        (solver if takes_part else "none", kind, question, options)
        for k, solver in enumerate(names)
        for kind in _read_families(family)
        for question, options in list_grid_requests(kind, small)
        if (takes_part := _needs_solver(kind, options)) or not k
    ]

    def rows() -> Iterator[Row]:
        for done, (solver, kind, question, options) in enumerate(runs, 1):
            yield _verify_request(kind, question, options, solver)
            progress(done, len(runs), solver)

    return gather_rows(
        "Models against oracles",
        rows(),
        len(runs),
        name="verification",
        columns=VERIFICATION_COLUMNS,
        draw=lambda table: {"differences": partial(_draw_differences, table)},
        sentences=_describe_agreement,
    )


def _describe_agreement(rows: list[Row]) -> Iterator[str]:
    compared = [row["agrees"] for row in rows if row["agrees"] is not None]
    yield f"{sum(compared)} of {len(compared)} answers with a closed form agree with it."


def _read_families(named: str | Sequence[str]) -> list[Family]:
    """The families of these names that have something to verify. Raises InvalidRequest."""
    offered = {kind.name: kind for kind in list_families() if has_grid(kind)}
    if isinstance(named, str):
        named = [*offered] if named == "all" else [name.strip() for name in named.split(",")]
    names = read_list(named, "family", "the name of a family, or all")
    for name in names:
        if not isinstance(name, str) or name not in offered:
            must("family", f"all, or some of {', '.join(offered)}", repr(name))
    return [offered[name] for name in dict.fromkeys(names)]


def _needs_solver(kind: Family, options: Values) -> bool:
    """Whether a solver takes part in the answer to a request."""
    return (
        kind.solver_label({option.name: option.default for option in kind.options} | dict(options))
        is not None
    )


def _verify_request(kind: Family, question: Any, options: Values, solver: str) -> Row:
    known = {option.name for option in kind.design_arguments}
    ours = {"certify": False} | ({} if solver == "none" else {"solver": solver})
    taken = {name: value for name, value in ours.items() if name in known}
    row, design = attempt_design(
        lambda: kind.design_request(kind.make_request(question, **taken, **options))
    )
    cannot = row["status"] in (
        "unavailable",
        "licence",
    )  # another kind of program than this solver's
    agrees = None if cannot else False if row["failure"] is not None else row["oracle_agrees"]
    oracle = "not for this solver" if cannot else row.get("oracle")
    judgement = {
        "oracle": oracle,
        "difference": design.oracle.difference if design else None,
        "agrees": agrees,
    }
    answer = {name: row.get(name) for name in VERIFICATION_COLUMNS[2:]} | judgement
    return {"question": repr(question), **options, "solver": solver, **answer}


def _draw_differences(table: pd.DataFrame) -> Figure | None:
    """|objective - oracle| of every answer (1e-17: none), by solver."""
    from workbench.io.drawing import Drawing, draw_declared_figure

    compared = table[table["difference"].notna()].astype({"difference": float})
    return (
        None if compared.empty else draw_declared_figure(Drawing(FIGURES["differences"]), compared)
    )


def summarise_verification(rows: Sequence[Row]) -> list[Row]:
    """One row per solver, oracle and kind: how many requests, how many agree, the worst |difference|.

    For an unproven law (a bound) the difference counts only where the solver is beyond it.
    """

    def key(row: Row) -> tuple[str, str, str]:
        oracle = row["oracle"] or ("failed" if row["failure"] else "no closed form")
        return row["solver"], oracle, row["oracle_kind"] or "-"

    return [
        _count_agreements(*named, [*members])
        for named, members in groupby(sorted(rows, key=key), key)
    ]


def _count_agreements(solver: str, oracle: str, kind: str, rows: Sequence[Row]) -> Row:
    differences = [row["difference"] for row in rows if row["difference"] is not None]
    if kind.endswith("bound"):  # what is beyond it
        differences = [max(0.0, d if kind == "upper bound" else -d) for d in differences]
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
