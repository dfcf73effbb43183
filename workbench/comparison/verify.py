"""Models against oracles on a grid: every request is solved, judged by its closed form and audited."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from workbench.comparison.compare import Solvers, solver_names
from workbench.comparison.report import FIGURES
from workbench.data.plain import plain_list
from workbench.errors import SolverUnavailable, must
from workbench.exact.objects import Values
from workbench.io.result import Progress, Result, Row, check_progress, gathered, silent
from workbench.pipeline.family import Family
from workbench.pipeline.outcome import attempt, translated_errors
from workbench.pipeline.registry import families
from workbench.pipeline.verification import requests, verified
from workbench.solvers.backend import backend

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


COLUMNS = (
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
    progress: Progress = silent,
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
    names = solver_names(solvers)
    for name in names:
        with translated_errors():
            if not backend(name).installed():
                raise SolverUnavailable(f"solver must be an installed one. Got {name!r}.")
    if not isinstance(small, bool):
        must("small", "True or False", repr(small))
    check_progress(progress)
    runs = [
        (solver if takes_part else "none", kind, question, options)
        for k, solver in enumerate(names)
        for kind in _kinds(family)
        for question, options in requests(kind, small)
        if (takes_part := _asked(kind, options)) or not k
    ]

    def rows() -> Iterator[Row]:
        for done, (solver, kind, question, options) in enumerate(runs, 1):
            yield _row(kind, question, options, solver)
            progress(done, len(runs), solver)

    return gathered(
        "Models against oracles",
        rows(),
        len(runs),
        name="verification",
        columns=COLUMNS,
        draw=lambda table: {"differences": partial(_draw, table)},
        sentences=_agreement,
    )


def _agreement(rows: list[Row]) -> Iterator[str]:
    compared = [row["agrees"] for row in rows if row["agrees"] is not None]
    yield f"{sum(compared)} of {len(compared)} answers with a closed form agree with it."


def _kinds(named: str | Sequence[str]) -> list[Family]:
    """The families of these names that have something to verify. Raises InvalidRequest."""
    offered = {kind.name: kind for kind in families() if verified(kind)}
    if isinstance(named, str):
        named = [*offered] if named == "all" else [name.strip() for name in named.split(",")]
    names = plain_list(named, "family", "the name of a family, or all")
    for name in names:
        if not isinstance(name, str) or name not in offered:
            must("family", f"all, or some of {', '.join(offered)}", repr(name))
    return [offered[name] for name in dict.fromkeys(names)]


def _asked(kind: Family, options: Values) -> bool:
    """Whether a solver takes part in the answer to a request."""
    return (
        kind.backend({option.name: option.default for option in kind.options} | dict(options))
        is not None
    )


def _row(kind: Family, question: Any, options: Values, solver: str) -> Row:
    known = {option.name for option in kind.arguments}
    ours = {"certify": False} | ({} if solver == "none" else {"solver": solver})
    taken = {name: value for name, value in ours.items() if name in known}
    row, design = attempt(lambda: kind.designed(kind.request(question, **taken, **options)))
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
    answer = {name: row.get(name) for name in COLUMNS[2:]} | judgement
    return {"question": repr(question), **options, "solver": solver, **answer}


def _draw(table: pd.DataFrame) -> Figure | None:
    """|objective - oracle| of every answer (1e-17: none), by solver."""
    from workbench.io.drawing import Drawing, draw

    compared = table[table["difference"].notna()].astype({"difference": float})
    return None if compared.empty else draw(Drawing(FIGURES["differences"]), compared)


def summary(rows: Sequence[Row]) -> list[Row]:
    """One row per solver, oracle and kind: how many requests, how many agree, the worst |difference|.

    For an unproven law (a bound) the difference counts only where the solver is beyond it.
    """

    def key(row: Row) -> tuple[str, str, str]:
        oracle = row["oracle"] or ("failed" if row["failure"] else "no closed form")
        return row["solver"], oracle, row["oracle_kind"] or "-"

    return [_counts(*named, [*members]) for named, members in groupby(sorted(rows, key=key), key)]


def _counts(solver: str, oracle: str, kind: str, rows: Sequence[Row]) -> Row:
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
