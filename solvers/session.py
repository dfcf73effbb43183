"""Sessions: a live solver object for one Program, with the parts that all backends share.

    with get_backend("highs").open(program) as session:
        first = session.solve({"delta": 0.1})
        second = session.solve({"delta": 0.2})    # The live object is changed and starts hot.

A backend implements `_build` (load numbers), `_update` (change some of them in place) and `_run`
(solve and read the result). `Session.solve` calls them, and does everything else:

1. stack the parameters, and compute and check the numbers of the program,
2. convert the numbers to dispatched units, and load those that changed,
3. run the solver,
4. convert the result to a Solution in the units of the model, whose certificates are checked,
5. if the solver did not distinguish infeasible from unbounded, decide it by a second solve.

Dispatched units are those in which a solver gets the program: continuous columns times
`Program.scale`, costs times `Program.cost`, and rows times row factors that are powers of two.

A backend runs its native solve inside `workbench.solvers.interruption.Interruption`: Ctrl-C then
stops the solver, and the best point found is returned.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

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

_INFINITY = 1e20  # Solvers treat numbers of this size as infinite.
_INTEGER_BOUND_TOLERANCE = 1e-9  # A bound of an integer column this close to an integer is rounded.
# A MILP solver stops at one of these gaps between objective and bound, unless the user sets a gap.
DEFAULT_RELATIVE_GAP = 1e-9
DEFAULT_ABSOLUTE_GAP = 1e-12
# A MILP whose relative gap is at most this is optimal. Otherwise it stopped at the requested gap.
# The factor admits the rounding of a gap that is at the default limit.
_OPTIMAL_GAP = DEFAULT_RELATIVE_GAP * (1 + 1e-6)


@dataclass(frozen=True)
class Options:
    """Options that have one name for all backends. None means the backend's default.

    A backend refuses an option that it does not have by its name.

    Attributes:
        time_limit: seconds of one solve.
        gap: relative gap at which a MILP may stop.
        node_limit: number of nodes of the branch-and-bound tree.
        iteration_limit: number of iterations of a linear program.
        threads: solver threads. Default: 1, because HiGHS keeps one pool per process, and
            benchmarks are single-threaded.
        seed: seed of the solver's random choices.
        feasibility_tolerance: absolute violation of rows and bounds, in the dispatched (scaled)
            units.
        dual_feasibility_tolerance: absolute violation of reduced costs of LPs.
        integrality_tolerance: distance from an integer.
        presolve: whether the solver simplifies the program first.
        algorithm: "simplex" or "interior-point", for LPs.
        native: other options, under the solver's own names.
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
        """Return the options that are not None, without `native`, in the types solvers expect."""
        options = {}
        for option in fields(self):
            value = getattr(self, option.name)
            if option.name != "native" and value is not None:
                options[option.name] = _OPTION_TYPES.get(option.name, float)(value)
        return options


# Types of the options that are not floats.
_OPTION_TYPES: dict[str, type] = {
    **dict.fromkeys(("node_limit", "iteration_limit", "threads", "seed"), int),
    "presolve": bool,
    "algorithm": str,
}


@dataclass
class Raw:
    """Result of a session's `_run`, in dispatched (scaled) units and the solver's own statuses.

    Attributes:
        termination: why the solver stopped.
        raw_status: status in the solver's own words.
        x: (columns,) point, or None.
        point: whether `x` is feasible, by the solver's own status.
        dual_values: multipliers, reduced costs and basis.
        dual: whether the multipliers in `dual_values` are feasible; NONE without multipliers.
        bound: bound on the optimum that the solver proved, or None.
        gap: `relative_gap` of the solver's own objective and bound (MILP). It distinguishes
            GAP_LIMIT from OPTIMAL.
        ray: for an infeasible program multipliers of the rows, for an unbounded program a direction
            of x; either sign.
        iterations, nodes: None if the solver does not count them.
        start: where the solve started.
        is_interrupted: whether Ctrl-C was pressed while the solver ran.
        notes: sentences about the solve.
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
        """Store the solver's own bound, unless it means infinity, and the gap if there is a point.

        Args:
            bound: bound on the optimum, in dispatched units.
            objective: objective of the point, in dispatched units.
        """
        if self.termination is not Termination.INFEASIBLE and abs(bound) < _INFINITY:
            self.bound = bound
            self.gap = relative_gap(objective, bound) if self.x is not None else None


class _Dispatch(NamedTuple):
    """Numbers of a linear program in units of the model, and in scaled units after their check."""

    data: Data
    scale: float
    cost: float
    scaled_data: Data

    def applies_to(self, data: Data, scale: float, cost: float) -> bool:
        """Return whether these are numbers of a program in the same units and of the same size."""
        return (
            (scale, cost) == (self.scale, self.cost)
            and data.A.shape == self.data.A.shape
            and not data.is_mip
        )


class Session(ABC):
    """A live solver object for one program. Not thread-safe. Usable as a context manager.

    Attributes:
        owner: the `Backend` that opened it.
        program: the `Program` to solve.
        options: options of every solve, such as gap and time limit.
    """

    def __init__(self, owner: Any, program: Program, options: Options) -> None:
        self.owner = owner
        self.program = program
        self.options = options
        # The options in force, under the solver's own names.
        self._settings: dict[str, Any] = dict(options.native)
        # The numbers of the live object in dispatched units. None if it must be built.
        self._loaded_data: Data | None = None
        self._is_closed = False
        # `solve` sets the next fields anew for each solve. A backend's `_run` may read them.
        self._cutoff: float | None = None  # Cutoff in dispatched units, or None.
        self._deadline = Deadline()  # Time limit of this solve.
        self._row_factors: Vector | None = None  # Factors (rows,) in the solver, or None for 1.
        self._scale = program.scale  # Factor of the continuous columns in the solver.
        # The last numbers of a linear program whose rows have no factors. None before there are.
        self._last_dispatch: _Dispatch | None = None

    @cached_property
    def _version(self) -> str:
        """Return the version of the solver's library, "" if it is unknown."""
        return self.owner.version() or ""

    # Methods that a backend implements.

    @abstractmethod
    def _build(self, data: Data) -> None:
        """Load (scaled) data into a new native object, forgetting everything else."""

    def _update(self, change: Change, data: Data) -> bool:
        """Change entries of the live object in place.

        Args:
            change: the entries that moved.
            data: all numbers after the change.

        Returns:
            Whether it was done. If False (the default), the object is built again.
        """
        return False

    @abstractmethod
    def _run(self, start: Start, basis: Any) -> Raw:
        """Solve the loaded program.

        Args:
            start: COLD (just built), BASIS (use `basis`) or HOT (continue from the last solve).
            basis: a basis of the same backend, or None.
        """

    def _needs_unscaled_solve(self, raw: Raw) -> bool:
        """Return whether to solve again without the program's scale. Default: never.

        Args:
            raw: the result in the scaled units.
        """
        return False

    def _close(self) -> None:  # noqa: B027
        """Release native resources. Does nothing unless a backend overrides it."""

    # Methods that all sessions share.

    def build_option_error(
        self, option: str, value: Any, reason: str = "; leave it out or change it"
    ) -> UnsupportedOption:
        """Return the error for an option that the solver does not accept.

        Args:
            option: the option, under the solver's own name.
            value: the value got.
            reason: appended to the message.
        """
        return UnsupportedOption(
            f"{self.owner.label} cannot honour the option {option} = {value!r}{reason}."
        )

    def close(self) -> None:
        """Release native resources. Solutions stay valid, but the session cannot solve again."""
        if not self._is_closed:
            self._is_closed = True
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
        """Solve at parameter values.

        Args:
            values: parameter name -> value, for all parameters.
            start: "hot" keeps the state of the live object if there is one, "cold" forgets it,
                "basis" starts from `basis`.
            basis: the `basis` of an earlier Solution of the same backend and program.
            cutoff: a linear program may stop when its dual values prove that its minimum is at
                least this. The termination is then CUTOFF, with the dual values and without a
                point. Backends that do not support it solve to the optimum.
            time_limit: seconds for this solve, including the time to load the program. The limit of
                the options applies if it is smaller.

        Raises:
            InvalidProgram: parameters are wrong, or numbers are not usable (nan, inf, coefficients
                that are too small or too large).
            SolverError: the session is closed, or the solver fails while it loads the program. If
                it fails while it solves, the termination is ERROR instead.
            KeyboardInterrupt: Ctrl-C was pressed during a solve that ended by itself. A solve that
                was ended by Ctrl-C returns its best point with termination INTERRUPTED.
        """
        start = Start(start)
        limits = [limit for limit in (self.options.time_limit, time_limit) if limit is not None]
        clock = self._deadline = Deadline(min(limits, default=None))
        if self._is_closed:
            raise SolverError(
                f"the session of {self.program.name} by {self.owner.label} is closed."
            )
        self._cutoff = self._dispatch_cutoff(cutoff)
        p = self.program.stack_parameters(values or {})
        model_data = self.program.data_at(p)
        self._scale = self.program.scale
        data = self._to_dispatched_units(model_data)
        raw = _answer_without_solver(data)
        if raw is None:
            is_updated = self._load(data, keep=start is not Start.COLD)
            if not is_updated and start is Start.HOT:
                start = Start.COLD
            raw = self._run_safely(start, basis)
        if self._needs_unscaled_solve(raw):
            raw = self._solve_unscaled(model_data)
        seconds = clock.elapsed_seconds
        if raw.is_interrupted and raw.termination is not Termination.INTERRUPTED:
            raise KeyboardInterrupt
        solution = self._make_solution(raw, p, seconds)
        # `Solution.data` is a cached property, which would compute the same numbers again.
        vars(solution)["data"] = model_data
        if raw.termination is Termination.INFEASIBLE_OR_UNBOUNDED:
            solution = self._decide_feasibility(solution)
        return solution

    def _run_safely(self, start: Start, basis: Any) -> Raw:
        """Call `_run`, and return an error of the native library as a result."""
        try:
            return self._run(start, basis)
        except (SolverError, KeyboardInterrupt, SystemExit):
            self._loaded_data = None  # The native object is in an unknown state.
            raise
        except Exception as error:
            self._loaded_data = None
            return Raw(Termination.ERROR, format_native_error(error))

    def _dispatch_cutoff(self, cutoff: float | None) -> float | None:
        """Return a cutoff in dispatched units, or None if it does not apply to the program."""
        if cutoff is None or not np.isfinite(cutoff):
            return None
        if self.program.sense != 1 or self.program.is_mip:
            return None
        return float(cutoff) * self.program.scale * self.program.cost

    def _solve_unscaled(self, model_data: Data) -> Raw:
        """Solve again without the program's scale, from a cold start."""
        self._scale = 1.0
        self._load(self._to_dispatched_units(model_data), keep=False)
        raw = self._run(Start.COLD, basis=None)
        note = "solved again in units of the model: the answer in scaled units was imprecise"
        raw.notes = (*raw.notes, note)
        self._loaded_data = None  # The next solve uses the scaled units again.
        return raw

    def follow(self, program: Program) -> None:
        """Continue with another program of the same matrix pattern.

        The backend changes the numbers of the live object where it can, and keeps its basis for a
        hot start.

        Args:
            program: the next program.

        Raises:
            InvalidProgram: the program has another matrix pattern, other integer columns, or cones.
        """
        if program.cones is not None or not program.template.has_same_pattern(
            self.program.template
        ):
            raise InvalidProgram(
                f"{program.name} must have the matrix pattern and integer columns of "
                f"{self.program.name}."
            )
        self.program = program

    def _to_dispatched_units(self, data: Data) -> Data:
        """Scale and check data, and round the bounds of integer columns inwards.

        Stores the factors of the rows in `self._row_factors`.
        """
        scale = self._scale
        cost = self.program.cost
        self._row_factors = compute_row_factors(data, scale)
        last = self._last_dispatch
        if last is not None and last.applies_to(data, scale, cost) and self._row_factors is None:
            scaled_data = last.scaled_data.scale_next(last.data, data, scale, cost)
            scaled_data.check(last.scaled_data)
        else:
            scaled_data = data.with_scale(scale, cost).with_scaled_rows(self._row_factors)
            scaled_data.check()
        if not data.is_mip:
            if self._row_factors is None:
                self._last_dispatch = _Dispatch(data, scale, cost, scaled_data)
            return scaled_data
        # HiGHS's MILP presolve returns wrong optima when an integer column has a fractional bound.
        low = np.ceil(scaled_data.lower - _INTEGER_BOUND_TOLERANCE)
        high = np.floor(scaled_data.upper + _INTEGER_BOUND_TOLERANCE)
        return replace(
            scaled_data,
            lower=np.where(data.integrality, low, scaled_data.lower),
            upper=np.where(data.integrality, high, scaled_data.upper),
        )

    def _load(self, data: Data, *, keep: bool) -> bool:
        """Load dispatched data into the live object.

        Args:
            data: numbers of the program.
            keep: whether to change the live object in place where the backend can.

        Returns:
            Whether the object was changed in place and not built.

        Raises:
            SolverError: the native library raised an error.
        """
        loaded_data = self._loaded_data
        self._loaded_data = None
        try:
            is_updated = False
            if keep and loaded_data is not None:
                is_updated = self._update(Change.find_changes(loaded_data, data), data)
            if not is_updated:
                self._build(data)
        except SolverError:
            raise
        except Exception as error:
            raise SolverError(
                f"{self.owner.label} failed on {self.program.name}: {format_native_error(error)}."
            ) from error
        self._loaded_data = data
        return is_updated

    def _make_solution(self, raw: Raw, p: Vector, seconds: float) -> Solution:
        """Convert a raw result to a solution in the units of the model, and check its ray.

        Args:
            raw: result of `_run` in dispatched units.
            p: stacked parameters of the solve.
            seconds: runtime of the solve.
        """
        program = self.program
        row_factors = self._row_factors
        column_factors = np.where(program.template.integrality, 1.0, self._scale)
        dual_values = raw.dual_values
        if row_factors is not None and dual_values.row_dual is not None:
            dual_values = dual_values._replace(row_dual=dual_values.row_dual * row_factors)

        ray = raw.ray
        if ray is not None and raw.termination is Termination.UNBOUNDED:
            ray = ray / column_factors  # This is a direction of x.
        elif ray is not None and row_factors is not None and ray.size == row_factors.size:
            ray = ray * row_factors  # These are multipliers of rows, and the scale is irrelevant.

        termination = raw.termination
        has_open_gap = program.is_mip and raw.gap is not None and raw.gap > _OPTIMAL_GAP
        if termination is Termination.OPTIMAL and has_open_gap:
            termination = Termination.GAP_LIMIT
        notes = raw.notes
        if ray is not None and termination is not Termination.INFEASIBLE_OR_UNBOUNDED:
            ray = self._check_ray(program.data_at(p), termination, ray)
            if ray is None:
                notes += ("the solver's certificate failed its check and was dropped",)

        # Dual values of a linear program prove its bound, so the solver's own bound is not used.
        native_bound = None
        has_no_duals = program.is_mip or raw.dual is PointStatus.NONE
        if has_no_duals and raw.bound is not None and np.isfinite(raw.bound):
            native_bound = raw.bound / (self._scale * program.cost)

        return Solution(
            program=program,
            p=p,
            termination=termination,
            point=raw.point if raw.x is not None else PointStatus.NONE,
            dual=raw.dual,
            x=None if raw.x is None else raw.x / column_factors,
            dual_values=dual_values,
            native_bound=native_bound,
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

    def _check_ray(self, data: Data, termination: Termination, ray: Vector) -> Vector | None:
        """Return the certificate with size one and its right sign, or None if it proves nothing.

        Args:
            data: numbers of the program in the units of the model.
            termination: INFEASIBLE or UNBOUNDED, which the certificate must prove.
            ray: multipliers (rows,) or a direction (columns,), with either sign.
        """
        size = np.abs(ray).max(initial=0.0)
        if not 0 < size < np.inf:
            return None

        def is_proof(candidate: Vector) -> bool:
            """Return whether the scaled ray, with this sign, proves the termination."""
            if termination is Termination.INFEASIBLE:
                has_row_size = candidate.size == data.row_lower.size
                return has_row_size and proves_infeasibility(data, candidate)
            # With cones a direction would have to be checked in the cones, so it is dropped.
            if termination is not Termination.UNBOUNDED or self.program.cones is not None:
                return False
            return candidate.size == data.c.size and is_unbounded_direction(data, candidate)

        candidates: tuple[Vector, Vector] = (ray / size, -ray / size)
        for candidate in candidates:
            if is_proof(candidate):
                return candidate
        return None

    def _decide_feasibility(self, solution: Solution) -> Solution:
        """Decide between infeasible and unbounded by solving again with a zero objective."""
        clock = Deadline()
        data = solution.data
        self._load(self._to_dispatched_units(data.without_costs), keep=False)
        try:
            raw = self._run(Start.COLD, basis=None)
        finally:
            self._loaded_data = None  # The live object has lost its costs.
        if raw.is_interrupted:
            raise KeyboardInterrupt
        zero_solution = self._make_solution(raw, solution.p, solution.seconds)
        if zero_solution.termination in (Termination.OPTIMAL, Termination.GAP_LIMIT):
            termination = Termination.UNBOUNDED
        elif zero_solution.termination is Termination.INFEASIBLE:
            termination = Termination.INFEASIBLE
        else:
            termination = Termination.INFEASIBLE_OR_UNBOUNDED
        ray = zero_solution.ray
        if termination is Termination.UNBOUNDED and solution.ray is not None:
            ray = self._check_ray(data, termination, solution.ray)
        note = (
            f"solver status {solution.raw_status!r}; "
            f"with a zero objective {zero_solution.raw_status!r}, hence {termination}"
        )
        point_solution = solution if solution.x is not None else zero_solution
        return replace(
            solution,
            termination=termination,
            x=point_solution.x,
            point=point_solution.point,
            ray=ray,
            seconds=solution.seconds + clock.elapsed_seconds,
            notes=(*solution.notes, *zero_solution.notes, note),
        )


def _answer_without_solver(data: Data) -> Raw | None:
    """Return the result of a trivial program, or None if a solver is needed.

    Trivial are programs without columns: they are optimal with the empty point if every row admits
    zero, else infeasible. So are programs with an integer column that has no integer between its
    bounds.
    """
    if (data.lower > data.upper).any():
        return Raw(Termination.INFEASIBLE, "no integer between the bounds of a column")
    if data.c.size:
        return None
    if (data.row_lower > 0).any() or (data.row_upper < 0).any():
        return Raw(Termination.INFEASIBLE, "no columns")
    empty_point = np.zeros(0)
    return Raw(
        Termination.OPTIMAL,
        "no columns",
        x=empty_point,
        point=PointStatus.FEASIBLE,
        dual_values=DualValues(np.zeros(data.row_lower.size), empty_point),
        dual=PointStatus.FEASIBLE,
    )
