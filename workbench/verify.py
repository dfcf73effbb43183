"""Models against oracles on a grid: every request is solved, judged by its closed form and audited."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from workbench import rooms

# isort: split
from solvers.backend import backend
from workbench.design_noise import NoiseDesigner
from workbench.designing import Design
from workbench.errors import NotProven, SolverUnavailable, WorkbenchError
from workbench.mechanisms.modulo import ModuloNoise

__all__ = ["GRID", "SMALL_GRID", "Grid", "summary", "verify"]


@dataclass(frozen=True)
class Grid:
    """Which requests to check: questions x notions x epsilons x deltas (pure takes delta 0 only)."""

    questions: tuple[ModuloNoise, ...]
    notions: tuple[str, ...] = ("pure", "dp", "pdp")
    epsilons: tuple[float, ...] = (0.5, 1.0, 1.5)
    deltas: tuple[float, ...] = (0.0, 0.01, 0.1, 0.3)

    def requests(self) -> Iterator[tuple[ModuloNoise, str, float, float]]:
        """Every request, grouped so that one live model serves a run of them."""
        for question, notion in itertools.product(self.questions, self.notions):
            for epsilon, delta in itertools.product(self.epsilons, self.deltas):
                if notion != "pure" or delta == 0:
                    yield question, notion, epsilon, delta

    def __len__(self) -> int:
        return sum(1 for _ in self.requests())


def _questions(sizes: Sequence[int], *, vectors: bool) -> tuple[ModuloNoise, ...]:
    made = []
    for n in sizes:
        for directed in (True, False):
            made += [
                ModuloNoise(n=n, shifts=[1], directed=directed),
                ModuloNoise(n=n, shifts=[3], directed=directed),
                ModuloNoise(n=n, max_shift=2, directed=directed),
                ModuloNoise(n=n, max_shift=3, directed=directed),
                ModuloNoise(n=n, shifts=[1, 3], directed=directed),
            ]
    if vectors:
        for directed in (True, False):
            made.append(ModuloNoise(sizes=(3, 3), shifts=[(0, 1), (1, 0)], directed=directed))
            made.append(ModuloNoise(sizes=(2, 5), shifts=[(1, 2), (0, 1)], directed=directed))
    return tuple(made)


GRID = Grid(_questions((4, 6, 8), vectors=True))
SMALL_GRID = Grid(_questions((5,), vectors=True), epsilons=(0.5, 1.5), deltas=(0.0, 0.1))


def verify(
    solvers: Sequence[str] = ("highs",), grid: Grid = GRID, *, progress: Callable[[int, int], None] = lambda i, n: None
) -> list[dict[str, Any]]:
    """Solve every request of a grid on every solver and judge each answer.

    Returns:
        One row per request and solver: the request, status, objective, bound, the oracle's name, kind, value and
        difference, agrees (None without a closed form, and for programs of a kind the solver is not made for), exact
        private, error. A failure is a row.

    Raises:
        SolverUnavailable: a solver is unknown or not installed.
    """
    for solver in solvers:
        with rooms.speaking_our_errors():
            if not backend(solver).installed():
                raise SolverUnavailable(f"solver must be an installed one. Got {solver!r}.")
    rows = []
    total = len(grid) * len(solvers)
    for solver in solvers:
        live: tuple[Any, NoiseDesigner] | None = None
        try:
            for question, notion, epsilon, delta in grid.requests():
                if live is None or live[0] != (question, notion):
                    if live is not None:
                        live[1].close()
                    live = None
                    try:
                        live = ((question, notion), NoiseDesigner(question, notion=notion, solver=solver))
                    except WorkbenchError as error:
                        rows.append(_row(question, notion, epsilon, delta, solver, None, error))
                        continue
                made: Design | None = None
                problem: WorkbenchError | None = None
                try:
                    made = live[1].design(epsilon, delta)
                except NotProven as error:
                    if error.interrupted:
                        raise KeyboardInterrupt from None
                    made, problem = error.design, error
                except WorkbenchError as error:
                    problem = error
                rows.append(_row(question, notion, epsilon, delta, solver, made, problem))
                progress(len(rows), total)
        finally:
            if live is not None:
                live[1].close()
    return rows


def _row(
    question: ModuloNoise, notion: str, epsilon: float, delta: float, solver: str, made: Design | None,
    problem: WorkbenchError | None,
) -> dict[str, Any]:  # fmt: skip
    law = made.oracle if made is not None else None
    cannot = isinstance(problem, SolverUnavailable)  # another kind of program than this solver's
    return {
        "question": repr(question),
        "notion": notion,
        "epsilon": epsilon,
        "delta": delta,
        "solver": solver,
        "status": made.status if made is not None else type(problem).__name__,
        "objective": made.objective if made is not None else None,
        "bound": made.bound if made is not None else None,
        "oracle": law.name if law is not None else "not for this solver" if cannot else None,
        "kind": law.kind if law is not None else None,
        "value": law.value if law is not None else None,
        "difference": law.difference if law is not None else None,
        "agrees": None if cannot else False if problem is not None else law.agrees if law is not None else None,
        "private": made.private if made is not None else None,
        "error": None if problem is None else str(problem),
    }


def summary(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per solver, oracle and kind: how many requests, how many agree, the worst |difference|.

    For an unproven law (an upper bound) the difference counts only where the solver is above it.
    """
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        key = (row["solver"], row["oracle"] or ("failed" if row["error"] else "no closed form"), row["kind"] or "-")
        groups.setdefault(key, []).append(row)
    made = []
    for (solver, oracle, kind), members in sorted(groups.items()):
        differences = [r["difference"] for r in members if r["difference"] is not None]
        if kind == "upper bound":
            differences = [max(0.0, d) for d in differences]
        made.append(
            {
                "solver": solver,
                "oracle": oracle,
                "kind": kind,
                "requests": len(members),
                "agree": sum(r["agrees"] is True for r in members),
                "disagree": sum(r["agrees"] is False for r in members),
                "worst": max(map(abs, differences), default=None),
                "exactly_private": sum(r["private"] is True for r in members),
            }
        )
    return made
