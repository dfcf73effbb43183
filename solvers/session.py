"""A live solver object for one Program: what every backend's session does alike, and what a backend writes.

A backend writes `_build` (load numbers), `_update` (move some of them in place), `_run` (solve and read). Everything
else is here: parameters, validation, scaling, what moved, rebuilds, timing, certificates checked, and the second solve
that tells infeasible from unbounded.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .data import LARGEST, SMALLEST, Data
from .errors import InvalidProgram
from .program import Program
from .solution import PointStatus, Seconds, Solution, Start, Termination, infeasible_by, unbounded_along

if TYPE_CHECKING:
    from .backend import Backend, Options

__all__ = ["Change", "Raw", "Session"]

Vector = NDArray[np.float64]
Positions = NDArray[np.intp]

_TIGHT = 1e-9 * (1 + 1e-6)  # a MILP whose gap is no larger is optimal, else it stopped at the gap it was given


@dataclass
class Raw:
    """What a session's `_run` reads off its solver, in dispatched (scaled) units and the backend's own statuses.

    Attributes:
        gap: `relative_gap` of the solver's own objective and bound (MILP): tells GAP_LIMIT from OPTIMAL.
        ray: of an infeasible program multipliers of the rows, of an unbounded one a direction of x (either sign).
        interrupted: Ctrl-C was pressed while the solver ran.
    """

    termination: Termination
    raw_status: str
    x: Vector | None = None
    point: PointStatus = PointStatus.NONE
    row_dual: Vector | None = None
    reduced_cost: Vector | None = None
    dual: PointStatus = PointStatus.NONE
    bound: float | None = None
    gap: float | None = None
    basis: Any = None
    ray: Vector | None = None
    iterations: int | None = None
    nodes: int | None = None
    start: Start = Start.COLD
    solve_seconds: float | None = None
    interrupted: bool = False
    notes: tuple[str, ...] = ()


class Change:
    """The entries of a live object that move, in dispatched (scaled) units; an attribute is None when none does.

    Attributes:
        cost: (columns, values).
        offset: the new constant of the objective.
        coefficients: (rows, columns, values).
        rows, columns: (which, lower bounds, upper bounds).
    """

    __slots__ = ("coefficients", "columns", "cost", "offset", "rows")

    def __init__(self) -> None:
        self.cost: tuple[Positions, Vector] | None = None
        self.offset: float | None = None
        self.coefficients: tuple[Positions, Positions, Vector] | None = None
        self.rows: tuple[Positions, Vector, Vector] | None = None
        self.columns: tuple[Positions, Vector, Vector] | None = None


class Session(ABC):
    """A live solver object for one program. Not thread-safe. Usable as a context manager."""

    def __init__(self, owner: Backend, program: Program, options: Options) -> None:
        self.owner = owner
        self.program = program
        self.options = options
        self._live: Vector | None = None  # moving entries of the live object, unscaled; None: build afresh
        self._version = owner.version() or ""
        self._factor = _factors(program)
        self._rows = self._columns = (np.zeros(0), np.zeros(0))  # bounds of the live object, dispatched units

    # What a backend writes.

    @abstractmethod
    def _build(self, data: Data) -> None:
        """Load (scaled) data into a fresh native object, forgetting everything else."""

    def _update(self, change: Change) -> bool:
        """Move entries of the live object. False: it was not done, rebuild instead (the default)."""
        return False

    @abstractmethod
    def _run(self, start: Start, basis: Any) -> Raw:
        """Solve what is loaded; `start` is COLD (just built), BASIS (use `basis`) or HOT (go on from the last one)."""

    def _effective_options(self) -> dict[str, Any]:
        """The options in force, in the solver's own names."""
        return dict(self.options.native)

    def close(self) -> None:  # noqa: B027
        """Give native resources back."""

    # What every session does alike.

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def solve(
        self, values: Mapping[str, ArrayLike] | None = None, *, start: str | Start = Start.HOT, basis: Any = None
    ) -> Solution:
        """Solve at these parameter values.

        Args:
            values: parameter name -> value, all of them.
            start: "hot" keeps the live object's state if there is one, "cold" forgets it, "basis" starts from `basis`.
            basis: the `basis` of an earlier Solution of the same backend and program.

        Raises:
            InvalidProgram: for numbers that solvers misread (nan, inf, tiny or huge coefficients) or wrong parameters.
            KeyboardInterrupt: when Ctrl-C was pressed during a solve that ended by itself (one that Ctrl-C ended
                returns its incumbent under Termination.INTERRUPTED).
        """
        start = Start(start)
        begin = time.perf_counter()
        p = self.program.vector(values or {})
        entries = self.program.moves.at(p)
        moved = self._live is not None and start is not Start.COLD and self._move(entries)
        if not moved:
            self._load(self.program.at(p))
            if start is Start.HOT:
                start = Start.COLD
        self._live = entries
        ready = time.perf_counter()
        try:
            raw = self._run(start, basis) if self.program.shape[1] else self._without_columns()
        except BaseException:
            self._live = None  # the native object is in an unknown state
            raise
        stopped = time.perf_counter()
        if raw.interrupted and raw.termination is not Termination.INTERRUPTED:
            raise KeyboardInterrupt
        solving = stopped - ready if raw.solve_seconds is None else raw.solve_seconds
        preparing = ready - begin
        seconds = Seconds(
            build=0.0 if moved else preparing,
            update=preparing if moved else 0.0,
            solve=solving,
            read=max(0.0, stopped - ready - solving),
        )
        solution = self._solution(raw, p, seconds)
        if raw.termination is Termination.INFEASIBLE_OR_UNBOUNDED:
            solution = self._decide(solution)
        return solution

    def _without_columns(self) -> Raw:
        """A program of constants: optimal with the empty point when every row admits zero, else infeasible."""
        low, high = self._rows
        if (low > 0).any() or (high < 0).any():
            return Raw(Termination.INFEASIBLE, "no columns")
        nothing = np.zeros(0)
        return Raw(
            Termination.OPTIMAL, "no columns", x=nothing, point=PointStatus.FEASIBLE, row_dual=np.zeros(low.size),
            reduced_cost=nothing, dual=PointStatus.FEASIBLE,
        )  # fmt: skip

    def _load(self, data: Data) -> None:
        """Check, scale and build."""
        self._live = None
        data.check()
        scaled = data.scaled(self.program.scale)
        if scaled is not data:
            scaled.check()
        self._rows = scaled.row_lower.copy(), scaled.row_upper.copy()
        self._columns = scaled.lower.copy(), scaled.upper.copy()
        if self.program.shape[1]:
            self._build(scaled)

    def _move(self, entries: Vector) -> bool:
        """Move the live object to these entries; False when it must be rebuilt."""
        old, moves = self._live, self.program.moves
        changed = np.flatnonzero(entries != old)
        if not changed.size:
            return True
        self._live = None  # until everything has moved
        values = entries[changed]
        if "A" in moves.sections:
            size = np.abs(values[_within(changed, moves.sections["A"])])
            if ((size > 0) & (size < SMALLEST)).any():
                return False  # the rebuild says which number it is
        if self._factor is not None:
            values = values * self._factor[changed]
        if not (np.abs(values) < LARGEST).all():
            return False
        where = moves.index[changed]
        change = Change()
        for section, run in moves.sections.items():
            part = _within(changed, run)
            index, new = where[part], values[part]
            if not new.size:
                continue
            if section == "A":
                change.coefficients = self.program.template.A.indices[index], self.program.entry_columns[index], new
            elif section == "c":
                change.cost = index, new
            elif section == "offset":
                change.offset = float(new[0])
            elif section in ("row_lower", "row_upper"):
                change.rows = _bounds("row", self._rows, section == "row_lower", index, new, change.rows)
            else:
                change.columns = _bounds("variable", self._columns, section == "lower", index, new, change.columns)
        for name, moved in (("row", change.rows), ("variable", change.columns)):
            if moved is not None and (moved[1] > moved[2]).any():
                j = int(np.argmax(moved[1] > moved[2]))
                raise InvalidProgram(f"{name} {moved[0][j]} has crossed bounds: {moved[1][j]:g} > {moved[2][j]:g}.")
        return self._update(change)

    def _solution(self, raw: Raw, p: Vector, seconds: Seconds) -> Solution:
        program, scale = self.program, self.program.scale
        x, reduced_cost, bound, ray = raw.x, raw.reduced_cost, raw.bound, raw.ray
        if scale != 1.0:
            whole = program.template.integrality
            if x is not None:
                x = np.where(whole, x, x / scale)
            if reduced_cost is not None:
                reduced_cost = np.where(whole, reduced_cost / scale, reduced_cost)
            if ray is not None and raw.termination is not Termination.INFEASIBLE:
                ray = np.where(whole, ray, ray / scale)
            bound = None if bound is None else bound / scale
        termination, notes = raw.termination, raw.notes
        if termination is Termination.OPTIMAL and program.is_mip and raw.gap is not None and raw.gap > _TIGHT:
            termination = Termination.GAP_LIMIT
        if ray is not None and termination is not Termination.INFEASIBLE_OR_UNBOUNDED:
            ray = _proof(program.at(p), termination, ray)
            if ray is None:
                notes = (*notes, "the solver's certificate did not survive our check and was dropped")
        return Solution(
            program=program,
            p=p,
            termination=termination,
            point=raw.point if x is not None else PointStatus.NONE,
            dual=raw.dual if raw.row_dual is not None else PointStatus.NONE,
            x=x,
            row_dual=raw.row_dual,
            reduced_cost=reduced_cost,
            native_bound=bound if program.is_mip and bound is not None and np.isfinite(bound) else None,
            basis=raw.basis,
            ray=ray,
            iterations=raw.iterations,
            nodes=raw.nodes,
            seconds=seconds,
            solver=self.owner.label,
            version=self._version,
            options=self._effective_options(),
            seed=self.options.seed,
            threads=self.options.threads,
            start=raw.start,
            raw_status=raw.raw_status,
            notes=notes,
        )

    def _decide(self, solution: Solution) -> Solution:
        """Infeasible or unbounded: re-solve with a zero objective and record both answers."""
        begin = time.perf_counter()
        data = solution.data
        zero = replace(data, c=np.zeros_like(data.c), offset=0.0)
        self._load(zero)
        try:
            raw = self._run(Start.COLD, None)
        finally:
            self._live = None  # the live object has lost its costs
        second = replace(self._solution(raw, solution.p, solution.seconds), start=solution.start)
        decided = {
            Termination.OPTIMAL: Termination.UNBOUNDED,
            Termination.GAP_LIMIT: Termination.UNBOUNDED,
            Termination.INFEASIBLE: Termination.INFEASIBLE,
        }.get(second.termination, Termination.INFEASIBLE_OR_UNBOUNDED)
        ray = second.ray
        if decided is Termination.UNBOUNDED and solution.ray is not None:
            ray = _proof(data, decided, solution.ray)
        note = f"said {solution.raw_status!r}; with a zero objective {second.raw_status!r}, hence {decided}"
        seconds = replace(solution.seconds, solve=solution.seconds.solve + time.perf_counter() - begin)
        point = solution if solution.x is not None else second
        return replace(
            solution,
            termination=decided,
            x=point.x,
            point=point.point,
            ray=ray,
            seconds=seconds,
            notes=(*solution.notes, *second.notes, note),
        )


def _bounds(
    name: str,
    live: tuple[Vector, Vector],
    lower: bool,
    index: Positions,
    values: Vector,
    before: tuple[Positions, Vector, Vector] | None,
) -> tuple[Positions, Vector, Vector]:
    """Enter one side's new bounds into the live ones; the triple of a `Change`, together with the other side's."""
    live[0 if lower else 1][index] = values
    if before is not None and not np.array_equal(before[0], index):
        index = np.union1d(before[0], index)
    return index, live[0][index], live[1][index]


def _within(changed: Positions, run: slice) -> slice:
    """The part of the sorted positions that lies in a run."""
    first, last = changed.searchsorted((run.start, run.stop))
    return slice(first, last)


def _factors(program: Program) -> Vector | None:
    """What dispatching multiplies each moving entry by (see Data.scaled); None without scaling."""
    scale, template, moves = program.scale, program.template, program.moves
    if scale == 1.0:
        return None
    column = np.where(template.integrality, scale, 1.0)
    bound = np.where(template.integrality, 1.0, scale)
    factors = np.full(moves.index.size, scale)
    for section, run in moves.sections.items():
        index = moves.index[run]
        if section == "A":
            factors[run] = column[program.entry_columns[index]]
        elif section in ("c", "lower", "upper"):
            factors[run] = (column if section == "c" else bound)[index]
    return factors


def _proof(data: Data, termination: Termination, ray: Vector) -> Vector | None:
    """The certificate with its right sign, if it is one."""
    largest = np.abs(ray).max(initial=0.0)
    if not 0 < largest < np.inf:
        return None
    unit: Vector = ray / largest
    proves = {
        Termination.INFEASIBLE: (data.row_lower.size, infeasible_by),
        Termination.UNBOUNDED: (data.c.size, unbounded_along),
    }
    size, holds = proves.get(termination, (-1, unbounded_along))
    if unit.size != size:
        return None
    return next((candidate for candidate in (unit, -unit) if holds(data, candidate)), None)
