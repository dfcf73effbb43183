"""A live solver object for one Program: what every backend's session does alike, and what a backend writes.

A backend writes `_build` (load numbers), `_update` (move some of them in place), `_run` (solve and read). Everything
else is here: parameters, validation, scaling, what moved, rebuilds, timing, the second solve that tells infeasible
from unbounded, and the Solution in the units of the model, its certificates checked. Around a native solve a backend
puts `Interruption`, with which Ctrl-C reaches the solver and its incumbent survives.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from workbench.solvers.arrays import Vector
from workbench.solvers.data import Change, Data, compute_row_factors
from workbench.solvers.errors import (
    InvalidProgram,
    SolverError,
    UnsupportedOption,
    format_native_error,
)
from workbench.solvers.program import Program
from workbench.solvers.search import Deadline
from workbench.solvers.solution import (
    DualValues,
    PointStatus,
    Solution,
    Start,
    Termination,
    is_unbounded_direction,
    proves_infeasibility,
    relative_gap,
)

_INFINITY = 1e20  # as solvers have it
_ROUNDING = 1e-9  # an integer column's bound this close to an integer is that integer
_TIGHT = 1e-9 * (
    1 + 1e-6
)  # a MILP whose gap is no larger is optimal, else it stopped at the gap it was given


@dataclass(frozen=True)
class Options:
    """Options every backend understands under one name, or refuses by that name (None: the backend's default).

    Attributes:
        time_limit: seconds of one solve.
        gap: relative MILP gap at which the solver may stop.
        node_limit, iteration_limit: counts.
        threads: solver threads (1 by default: HiGHS keeps one pool per process, and benchmarks are single-threaded).
        seed: of the solver's random choices.
        feasibility_tolerance: absolute violation of rows and bounds, in the dispatched (scaled) units.
        dual_feasibility_tolerance: absolute violation of reduced costs of LPs.
        integrality_tolerance: distance from an integer.
        presolve: on or off.
        algorithm: "simplex" or "interior-point" for LPs.
        native: options under the solver's own names, for what is not listed here.
    """

    time_limit: float | None = None
    gap: float | None = None
    node_limit: int | None = None
    iteration_limit: int | None = None
    threads: int | None = 1
    seed: int | None = None
    feasibility_tolerance: float | None = None
    dual_feasibility_tolerance: float | None = None
    integrality_tolerance: float | None = None
    presolve: bool | None = None
    algorithm: str | None = None
    native: Mapping[str, Any] = field(default_factory=dict)

    def list_set_options(self) -> dict[str, Any]:
        """The named options that are set, without `native`; numbers of the kind that solvers insist on."""
        named = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "native"}
        return {
            name: _KINDS.get(name, float)(value)
            for name, value in named.items()
            if value is not None
        }


_KINDS: dict[str, type] = {
    **dict.fromkeys(("node_limit", "iteration_limit", "threads", "seed"), int),
    "presolve": bool,
    "algorithm": str,
}


@dataclass
class Raw:
    """What a session's `_run` reads off its solver, in dispatched (scaled) units and the backend's own statuses.

    Attributes:
        dual: what the multipliers in `rest` are; NONE when there are none.
        rest: multipliers, reduced costs and basis.
        gap: `relative_gap` of the solver's own objective and bound (MILP): tells GAP_LIMIT from OPTIMAL.
        ray: of an infeasible program multipliers of the rows, of an unbounded one a direction of x (either sign).
        interrupted: Ctrl-C was pressed while the solver ran.
    """

    termination: Termination
    raw_status: str
    x: Vector | None = None
    point: PointStatus = PointStatus.NONE
    dual_values: DualValues = field(default=DualValues())
    dual: PointStatus = PointStatus.NONE
    bound: float | None = None
    gap: float | None = None
    ray: Vector | None = None
    iterations: int | None = None
    nodes: int | None = None
    start: Start = Start.COLD
    is_interrupted: bool = False
    notes: tuple[str, ...] = ()

    def record_bound(self, bound: float, objective: float) -> None:
        """Note the solver's own bound, unless it means infinity, and the gap to its objective where it has a point."""
        if self.termination is not Termination.INFEASIBLE and abs(bound) < _INFINITY:
            self.bound = bound
            self.gap = relative_gap(objective, bound) if self.x is not None else None


class Session(ABC):
    """A live solver object for one program. Not thread-safe. Usable as a context manager. owner: its `Backend`."""

    def __init__(self, owner: Any, program: Program, options: Options) -> None:
        self.owner = owner
        self.program = program
        self.options = options
        self._settings: dict[str, Any] = dict(
            options.native
        )  # the options in force, in the solver's own names
        self._sent: Data | None = (
            None  # the numbers of the live object, dispatched units; None: build afresh
        )
        self._closed = False
        self._cutoff: float | None = None  # of the current solve, in dispatched units
        self._deadline = Deadline()  # of the current solve
        self._factors: Vector | None = None  # of the rows of the current solve
        self._scale = program.scale  # of the columns of the current solve

    @cached_property
    def _version(self) -> str:
        return self.owner.version() or ""

    # What a backend writes.

    @abstractmethod
    def _build(self, data: Data) -> None:
        """Load (scaled) data into a fresh native object, forgetting everything else."""

    def _update(self, change: Change, data: Data) -> bool:
        """Move entries of the live object, to these data. False: it was not done, rebuild instead (the default)."""
        return False

    @abstractmethod
    def _run(self, start: Start, basis: Any) -> Raw:
        """Solve what is loaded; `start` is COLD (just built), BASIS (use `basis`) or HOT (go on from the last one)."""

    def _needs_coarser_units(self, raw: Raw) -> bool:
        """Whether an answer that has no point should be asked for again without the program's scale (never, by
        default)."""
        return False

    def _close(self) -> None:  # noqa: B027
        """Give native resources back."""

    # What every session does alike.

    def build_option_error(
        self, option: str, value: Any, why: str = "; leave it out or change it"
    ) -> UnsupportedOption:
        """What to raise for an option in the solver's own name that it does not take."""
        return UnsupportedOption(
            f"{self.owner.label} cannot honour the option {option} = {value!r}{why}."
        )

    def close(self) -> None:
        """Give native resources back; solutions stay valid, the session is of no further use."""
        if not self._closed:
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
        start = Start(start)
        limits = [limit for limit in (self.options.time_limit, time_limit) if limit is not None]
        clock = self._deadline = Deadline(min(limits, default=None))
        if self._closed:
            raise SolverError(
                f"the session of {self.program.name} by {self.owner.label} is closed."
            )
        usable = (
            cutoff is not None
            and np.isfinite(cutoff)
            and self.program.sense == 1
            and not self.program.is_mip
        )
        self._cutoff = (
            float(cutoff or 0.0) * self.program.scale * self.program.cost if usable else None
        )
        p = self.program.stack_parameters(values or {})
        stated = self.program.data_at(p)
        self._scale = self.program.scale
        data = self._to_dispatched_units(stated)
        trivial = _answer_without_solver(data)
        moved = trivial is None and self._load(data, keep=start is not Start.COLD)
        if not moved and start is Start.HOT:
            start = Start.COLD
        try:
            raw = trivial or self._run(start, basis)
        except (SolverError, KeyboardInterrupt, SystemExit):
            self._sent = None  # the native object is in an unknown state
            raise
        except Exception as error:
            self._sent = None
            raw = Raw(Termination.ERROR, format_native_error(error))
        if self._needs_coarser_units(raw):
            self._scale = 1.0
            self._load(self._to_dispatched_units(stated), keep=False)
            raw = self._run(Start.COLD, None)
            raw.notes = (
                *raw.notes,
                "solved again in units of the model: in finer ones the answer was imprecise",
            )
            self._sent = None  # the next solve begins in the finer units
        seconds = clock.elapsed_seconds
        if raw.is_interrupted and raw.termination is not Termination.INTERRUPTED:
            raise KeyboardInterrupt
        solution = self._solution(raw, p, seconds)
        vars(solution)["data"] = stated  # as it would find them itself
        if raw.termination is Termination.INFEASIBLE_OR_UNBOUNDED:
            solution = self._decide(solution)
        return solution

    def follow(self, program: Program) -> None:
        """Go on with another program of the same pattern; its numbers move in the live object where the backend can,
        which keeps its basis for a hot start.

        Raises:
            InvalidProgram: for another pattern of the matrix, other integer columns, and cones.
        """
        if program.cones is not None or not program.template.has_same_pattern(
            self.program.template
        ):
            raise InvalidProgram(
                f"{program.name} must have the matrix pattern and integer columns of {self.program.name}."
            )
        self.program = program

    def _to_dispatched_units(self, data: Data) -> Data:
        """The numbers as the solver gets them: checked, scaled, bounds of integer columns rounded inwards."""
        self._factors = compute_row_factors(data, self._scale)
        scaled = data.with_scale(self._scale, self.program.cost).with_scaled_rows(self._factors)
        scaled.check()
        if not data.is_mip:
            return scaled
        # HiGHS's MILP presolve returns wrong optima when an integer column has a fractional bound.
        low, high = np.ceil(scaled.lower - _ROUNDING), np.floor(scaled.upper + _ROUNDING)
        whole = data.integrality
        return replace(
            scaled,
            lower=np.where(whole, low, scaled.lower),
            upper=np.where(whole, high, scaled.upper),
        )

    def _load(self, data: Data, *, keep: bool) -> bool:
        """Bring dispatched numbers into the live object; whether they were moved there and not built.

        keep: move them where the backend can. What a native library raises meanwhile becomes a SolverError.
        """
        sent, self._sent = self._sent, None
        try:
            moved = (
                keep and sent is not None and self._update(Change.find_changes(sent, data), data)
            )
            if not moved:
                self._build(data)
        except SolverError:
            raise
        except Exception as error:
            raise SolverError(
                f"{self.owner.label} failed on {self.program.name}: {format_native_error(error)}."
            ) from error
        self._sent = data
        return moved

    def _solution(self, raw: Raw, p: Vector, seconds: float) -> Solution:
        """The answer at the parameters p, in the units of the model."""
        program, x, bound, ray, notes = self.program, raw.x, raw.bound, raw.ray, raw.notes
        rest, factors = raw.dual_values, self._factors
        if factors is not None and rest.row_dual is not None:
            rest = rest._replace(row_dual=rest.row_dual * factors)
        if (
            factors is not None
            and ray is not None
            and ray.size == factors.size
            and raw.termination is not Termination.UNBOUNDED
        ):
            ray = ray * factors
        unit = np.where(program.template.integrality, 1.0, self._scale)  # of the columns
        termination = raw.termination
        if ray is not None and termination is Termination.UNBOUNDED:
            ray = (
                ray / unit
            )  # multipliers of rows, which come with every other termination, have no unit
        if (
            termination is Termination.OPTIMAL
            and program.is_mip
            and raw.gap is not None
            and raw.gap > _TIGHT
        ):
            termination = Termination.GAP_LIMIT
        if ray is not None and termination is not Termination.INFEASIBLE_OR_UNBOUNDED:
            ray = self._proof(program.data_at(p), termination, ray)
            if ray is None:
                notes = (
                    *notes,
                    "the solver's certificate did not survive our check and was dropped",
                )
        own = program.is_mip or raw.dual is PointStatus.NONE  # else the duals prove a bound
        return Solution(
            program=program,
            p=p,
            termination=termination,
            point=raw.point if x is not None else PointStatus.NONE,
            dual=raw.dual,
            x=None if x is None else x / unit,
            dual_values=rest,
            native_bound=bound / (self._scale * program.cost)
            if own and bound is not None and np.isfinite(bound)
            else None,
            ray=ray,
            iterations=raw.iterations,
            nodes=raw.nodes,
            seconds=seconds,
            solver=self.owner.label,
            version=self._version,
            options=self._settings,
            seed=self.options.seed,
            threads=self.options.threads,
            start=raw.start,
            raw_status=raw.raw_status,
            notes=notes,
        )

    def _proof(self, data: Data, termination: Termination, ray: Vector) -> Vector | None:
        """The certificate with its right sign, if it is one."""
        largest = np.abs(ray).max(initial=0.0)
        if not 0 < largest < np.inf:
            return None

        def holds(candidate: Vector) -> bool:
            if termination is Termination.INFEASIBLE:
                return candidate.size == data.row_lower.size and proves_infeasibility(
                    data, candidate
                )
            # a direction would have to be checked in the cones: none is kept
            linear = self.program.cones is None
            improves = (
                termination is Termination.UNBOUNDED and linear and candidate.size == data.c.size
            )
            return improves and is_unbounded_direction(data, candidate)

        return next(
            (candidate for candidate in (ray / largest, -ray / largest) if holds(candidate)), None
        )

    def _decide(self, solution: Solution) -> Solution:
        """Infeasible or unbounded: re-solve with a zero objective and record both answers."""
        clock = Deadline()
        data = solution.data
        self._load(self._to_dispatched_units(data.without_costs), keep=False)
        try:
            raw = self._run(Start.COLD, None)
        finally:
            self._sent = None  # the live object has lost its costs
        if raw.is_interrupted:
            raise KeyboardInterrupt
        second = self._solution(raw, solution.p, solution.seconds)
        decided = {
            Termination.OPTIMAL: Termination.UNBOUNDED,
            Termination.GAP_LIMIT: Termination.UNBOUNDED,
            Termination.INFEASIBLE: Termination.INFEASIBLE,
        }.get(second.termination, Termination.INFEASIBLE_OR_UNBOUNDED)
        ray = second.ray
        if decided is Termination.UNBOUNDED and solution.ray is not None:
            ray = self._proof(data, decided, solution.ray)
        note = f"said {solution.raw_status!r}; with a zero objective {second.raw_status!r}, hence {decided}"
        point = solution if solution.x is not None else second
        return replace(
            solution,
            termination=decided,
            x=point.x,
            point=point.point,
            ray=ray,
            seconds=solution.seconds + clock.elapsed_seconds,
            notes=(*solution.notes, *second.notes, note),
        )


def _answer_without_solver(data: Data) -> Raw | None:
    """The answer to a program that no solver is asked about; None when one is.

    Such are programs without columns (optimal with the empty point when every row admits zero, else infeasible) and
    those with an integer column that has no integer between its bounds.
    """
    if (data.lower > data.upper).any():
        return Raw(Termination.INFEASIBLE, "no integer between the bounds of a column")
    if data.c.size:
        return None
    if (data.row_lower > 0).any() or (data.row_upper < 0).any():
        return Raw(Termination.INFEASIBLE, "no columns")
    nothing = np.zeros(0)
    return Raw(
        Termination.OPTIMAL,
        "no columns",
        x=nothing,
        point=PointStatus.FEASIBLE,
        dual_values=DualValues(np.zeros(data.row_lower.size), nothing),
        dual=PointStatus.FEASIBLE,
    )


class _Watcher:
    """One thread per process that waits for the signal numbers that Python's C handler writes into a pipe."""

    def __init__(self) -> None:
        import socket  # which is slow to import

        self.pid = os.getpid()
        self.reader, self.writer = socket.socketpair()
        self.writer.setblocking(False)
        self.stop: Callable[[], object] | None = None
        threading.Thread(target=self._watch, name="solver-interrupt", daemon=True).start()

    def _watch(self) -> None:
        while True:
            numbers = self.reader.recv(64)
            stop = self.stop
            if stop is not None and signal.SIGINT in numbers:
                with contextlib.suppress(Exception):
                    stop()


_watcher: _Watcher | None = None


def _get_watcher() -> _Watcher:
    global _watcher
    if _watcher is None or _watcher.pid != os.getpid():  # threads do not survive a fork
        _watcher = _Watcher()
    return _watcher


class Interruption:
    """While inside, Ctrl-C calls `stop` (from another thread) instead of raising; `seen` says that it happened.

        with Interruption(stop=model.terminate) as interruption:
            model.optimize()
        interruption.seen       # whether Ctrl-C was pressed meanwhile

    Python runs signal handlers only between bytecodes, so a long native solve swallows Ctrl-C until it ends, and then
    the KeyboardInterrupt throws its answer away. Here the C-level handler writes to a pipe, which a waiting thread
    reads while the main thread is inside the solver; the thread asks the solver to stop, and the solve returns normally
    with what it has. A second Ctrl-C raises KeyboardInterrupt as soon as the native call is back.

    It acts only in the main thread and only when Ctrl-C has Python's default meaning; otherwise it does nothing. The
    native call must release the interpreter lock.
    """

    def __init__(self, stop: Callable[[], object]) -> None:
        self.is_pressed = False
        self._stop = stop
        self._handler: Any = None
        self._fd = -1

    def __enter__(self) -> Interruption:
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        ):
            watcher = _get_watcher()
            watcher.stop = self._stop
            self._fd = signal.set_wakeup_fd(watcher.writer.fileno(), warn_on_full_buffer=False)
            self._handler = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.is_pressed:
            signal.default_int_handler(number, frame)
        self.is_pressed = True

    def __exit__(self, *_: object) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
            signal.set_wakeup_fd(self._fd, warn_on_full_buffer=False)
            _get_watcher().stop = None
            self._handler = None
