"""A live solver object for one Program: what every backend's session does alike, and what a backend writes.

A backend writes `_build` (load numbers), `_update` (move some of them in place), `_run` (solve and read). Everything
else is here: parameters, validation, scaling, what moved, rebuilds, timing, and the second solve that tells infeasible
from unbounded. `reading` makes the Solution.
"""

from __future__ import annotations

import contextlib
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from . import reading
from .arrays import Vector
from .data import LARGEST, SMALLEST, Data
from .errors import InvalidProgram, SolverError, one_line
from .exchange import Change, Raw, factors, moved_bounds
from .program import Program
from .search import Deadline
from .solution import Later, PointStatus, Rest, Seconds, Solution, Start, Termination

if TYPE_CHECKING:
    from .backend import Backend, Options

__all__ = ["Change", "Raw", "Session"]


_ROUNDING = 1e-9  # an integer column's bound this close to an integer is that integer


class Session(ABC):
    """A live solver object for one program. Not thread-safe. Usable as a context manager."""

    def __init__(self, owner: Backend, program: Program, options: Options) -> None:
        self.owner = owner
        self.program = program
        self.options = options
        self._settings: dict[str, Any] = dict(options.native)  # the options in force, in the solver's own names
        self._live: Vector | None = None  # moving entries of the live object, unscaled; None: build afresh
        self._closed = False
        self._void = False  # an integer column has no integer between its bounds
        self._whole = program.template.integrality
        self._last: Callable[[], Later | None] = lambda: None
        self._cutoff: float | None = None  # of the current solve, in dispatched units
        self._deadline = Deadline()  # of the current solve
        self._version = owner.version() or ""
        self._factor = factors(program)
        self._order = {section: k for k, section in enumerate(program.moves.sections)}
        self._cuts = np.array([0] + [run.stop for run in program.moves.sections.values()])
        self._pattern = program.template.A.indices
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

    def _close(self) -> None:  # noqa: B027
        """Give native resources back."""

    # What every session does alike.

    def close(self) -> None:
        """Give native resources back; solutions stay valid, the session is of no further use."""
        if not self._closed:
            self._settle()
            self._closed = True
            self._close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def solve(
        self,
        values: Mapping[str, ArrayLike] | None = None,
        *,
        start: str | Start = Start.HOT,
        basis: Any = None,
        cutoff: float | None = None,
        time_limit: float | None = None,
    ) -> Solution:
        """Solve at these parameter values.

        Args:
            values: parameter name -> value, all of them.
            start: "hot" keeps the live object's state if there is one, "cold" forgets it, "basis" starts from `basis`.
            basis: the `basis` of an earlier Solution of the same backend and program.
            cutoff: a linear program may end as soon as its duals prove that its minimum is no less than this, with
                Termination.CUTOFF, those duals and no point. Backends that cannot solve on.
            time_limit: seconds for this solve, loading the program included, if less than the options'.

        Raises:
            InvalidProgram: for numbers that solvers misread (nan, inf, tiny or huge coefficients) or wrong parameters.
            SolverError: when the session is closed, or the solver fails on the numbers it is given. (Where it fails
                while it solves, the answer is Termination.ERROR, in the solver's words.)
            KeyboardInterrupt: when Ctrl-C was pressed during a solve that ended by itself (one that Ctrl-C ended
                returns its incumbent under Termination.INTERRUPTED).
        """
        start = start if type(start) is Start else Start(start)
        limits = [limit for limit in (self.options.time_limit, time_limit) if limit is not None]
        clock = self._deadline = Deadline(min(limits, default=None))
        if self._closed:
            raise SolverError(f"the session of {self.program.name} by {self.owner.label} is closed.")
        self._settle()
        usable = cutoff is not None and np.isfinite(cutoff) and self.program.sense == 1 and not self.program.is_mip
        self._cutoff = float(cutoff or 0.0) * self.program.scale if usable else None
        p = self.program.vector(values or {})
        entries = self.program.moves.at(p)
        moved = self._live is not None and start is not Start.COLD and self._move(entries)
        if not moved:
            self._load(self.program.at(p))
            if start is Start.HOT:
                start = Start.COLD
        self._live = entries
        ready = clock.elapsed
        try:
            raw = self._trivial() or self._run(start, basis)
        except (SolverError, KeyboardInterrupt, SystemExit):
            self._live = None  # the native object is in an unknown state
            raise
        except Exception as error:
            self._live = None
            raw = Raw(Termination.ERROR, one_line(error))
        stopped = clock.elapsed
        if raw.interrupted and raw.termination is not Termination.INTERRUPTED:
            raise KeyboardInterrupt
        solving = stopped - ready if raw.solve_seconds is None else raw.solve_seconds
        seconds = Seconds(
            build=0.0 if moved else ready,
            update=ready if moved else 0.0,
            solve=solving,
            read=max(0.0, stopped - ready - solving),
        )
        solution = self._solution(raw, p, seconds)
        if raw.termination is Termination.INFEASIBLE_OR_UNBOUNDED:
            solution = self._decide(solution)
        return solution

    def follow(self, program: Program) -> None:
        """Go on with another linear program on the same matrix, whose numbers no parameter moves.

        Costs and bounds move in the live object where the backend can, which keeps its basis for a hot start.

        Raises:
            InvalidProgram: for another matrix, integer columns, parameters or scaling, and numbers solvers misread.
        """
        old, new = self.program, program
        bare = all(not (p.parameters or p.is_mip or p.cones) and p.scale == 1.0 for p in (old, new))
        if not bare or new.template.A is not old.template.A:
            raise InvalidProgram(f"{new.name} must be a plain program on the matrix of {old.name}.")
        self._settle()
        self.program, data = program, program.template
        if self._live is None:
            return  # the next solve loads it
        data.check(matrix=False)
        every = (np.arange(data.row_lower.size), np.arange(data.c.size))
        self._rows = data.row_lower.copy(), data.row_upper.copy()
        self._columns = data.lower.copy(), data.upper.copy()
        change = Change()
        change.cost, change.offset = (every[1], data.c), data.offset
        change.rows, change.columns = (every[0], *self._rows), (every[1], *self._columns)
        with self._speaking():
            if not self._update(change):
                self._live = None

    def _settle(self) -> None:
        """Read what is left of the last solution, if anybody still holds it, before the live object changes."""
        last = self._last()
        if last is not None:
            last.get()

    def _trivial(self) -> Raw | None:
        """The answer to a program that no solver is asked about; None when one is.

        Such are programs without columns (optimal with the empty point when every row admits zero, else infeasible) and
        those with an integer column that has no integer between its bounds.
        """
        if self._void:
            return Raw(Termination.INFEASIBLE, "no integer between the bounds of a column")
        if self.program.shape[1]:
            return None
        low, high = self._rows
        if (low > 0).any() or (high < 0).any():
            return Raw(Termination.INFEASIBLE, "no columns")
        nothing = np.zeros(0)
        return Raw(
            Termination.OPTIMAL,
            "no columns",
            x=nothing,
            point=PointStatus.FEASIBLE,
            rest=Rest(np.zeros(low.size), nothing),
            dual=PointStatus.FEASIBLE,
        )

    def _load(self, data: Data) -> None:
        """Check, scale and build."""
        self._live = None
        data.check()
        scaled = data.scaled(self.program.scale)
        if scaled is not data:
            scaled.check()
        self._rows = scaled.row_lower.copy(), scaled.row_upper.copy()
        self._columns = low, high = scaled.lower.copy(), scaled.upper.copy()
        if self.program.is_mip:
            # HiGHS's MILP presolve returns wrong optima when an integer column has a fractional bound.
            low[self._whole] = np.ceil(low[self._whole] - _ROUNDING)
            high[self._whole] = np.floor(high[self._whole] + _ROUNDING)
            scaled = replace(scaled, lower=low.copy(), upper=high.copy())
        self._void = bool((low > high).any())
        if self._trivial() is None:
            with self._speaking():
                self._build(scaled)

    def _move(self, entries: Vector) -> bool:
        """Move the live object to these entries; False when it must be rebuilt (which also says what is wrong)."""
        moves, old = self.program.moves, self._live
        changed = (entries != old).nonzero()[0]
        if not changed.size:
            return True
        self._live = None  # until everything has moved
        values = entries[changed]
        cuts = changed.searchsorted(self._cuts)
        k = self._order.get("A")
        if k is not None and cuts[k] < cuts[k + 1]:
            size = np.abs(values[cuts[k] : cuts[k + 1]])
            if np.count_nonzero(size < SMALLEST) > np.count_nonzero(size == 0):
                return False
        if self._factor is not None:
            values = values * self._factor[changed]
        if not np.maximum.reduce(np.abs(values)) < LARGEST:  # nan is not
            return False
        where = moves.index[changed]
        change = Change()
        for section, k in self._order.items():
            if cuts[k] == cuts[k + 1]:
                continue
            part = slice(cuts[k], cuts[k + 1])
            index, new = where[part], values[part]
            if section == "A":
                change.coefficients = self._pattern[index], self.program.entry_columns[index], new
                change.positions = index
            elif section == "c":
                change.cost = index, new
            elif section == "offset":
                change.offset = float(new[0])
            elif section in ("row_lower", "row_upper"):
                change.rows = moved_bounds(self._rows, section == "row_lower", index, new, change.rows)
            elif self.program.is_mip and self._whole[index].any():
                return False  # bounds of integer columns are rounded when they are loaded
            else:
                change.columns = moved_bounds(self._columns, section == "lower", index, new, change.columns)
        for name, moved in (("row", change.rows), ("variable", change.columns)):
            if moved is not None and np.count_nonzero(moved[1] > moved[2]):
                j = int(np.argmax(moved[1] > moved[2]))
                raise InvalidProgram(f"{name} {moved[0][j]} has crossed bounds: {moved[1][j]:g} > {moved[2][j]:g}.")
        with self._speaking():
            return self._update(change)

    @contextlib.contextmanager
    def _speaking(self) -> Iterator[None]:
        """Turn what a native library raises while it is given numbers into a SolverError."""
        try:
            yield
        except SolverError:
            raise
        except Exception as error:
            raise SolverError(f"{self.owner.label} failed on {self.program.name}: {one_line(error)}.") from error

    def _solution(self, raw: Raw, p: Vector, seconds: Seconds) -> Solution:
        later = reading.later(self.program, raw.rest)
        if callable(raw.rest):
            self._last = weakref.ref(later)  # to be read before the live object moves on
        run = reading.SolverRun(self.owner.label, self._version, self.options, self._settings)
        return reading.solution(self.program, p, raw, later, seconds, run)

    def _decide(self, solution: Solution) -> Solution:
        """Infeasible or unbounded: re-solve with a zero objective and record both answers."""
        clock = Deadline()
        self._settle()
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
            ray = reading.proof(data, decided, solution.ray, self.program.cones)
        note = f"said {solution.raw_status!r}; with a zero objective {second.raw_status!r}, hence {decided}"
        seconds = replace(solution.seconds, solve=solution.seconds.solve + clock.elapsed)
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
