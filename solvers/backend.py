"""The contract of a backend, and the registry of those this workbench knows.

A backend is one file. It says what it can do without importing its native library or touching a licence, and opens
sessions: a live solver object for one Program, re-solved hot as the parameters move.

    session = backend("highs").open(program, Options(gap=1e-9))
    first = session.solve({"delta": 0.1})
    second = session.solve({"delta": 0.2})         # moves the entries that changed and runs hot
    again = session.solve({"delta": 0.2}, start="cold")

To add a backend, write one file with a `Backend` subclass and add its line to `REGISTRY`.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import BackendUnavailable, InvalidProgram, UnsupportedOption
from .program import LARGEST, SMALLEST, Data, Program
from .solution import PointStatus, Seconds, Solution, Start, Termination

__all__ = [
    "REGISTRY",
    "Backend",
    "Capabilities",
    "Licence",
    "Options",
    "Raw",
    "Session",
    "backend",
    "names",
    "solve",
]

Vector = NDArray[np.float64]

# backend -> module and class; one line per backend
REGISTRY: dict[str, tuple[str, str]] = {
    "highs": ("solvers.highs", "Highs"),
    "gurobi": ("solvers.gurobi", "Gurobi"),
    "ortools": ("solvers.ortools", "OrTools"),
    "cvxpy": ("solvers.cvxpy", "Cvxpy"),
    "scip": ("solvers.scip", "Scip"),
}


@dataclass(frozen=True)
class Capabilities:
    """What a backend (with its variant) can do."""

    lp: bool = True
    milp: bool = False
    duals: bool = False
    hot_start: bool = False
    infeasibility_certificate: bool = False
    exact_vertex: bool = False
    integer_only: bool = False

    def words(self) -> str:
        """The capabilities as a short list."""
        return ", ".join(f.name.replace("_", " ") for f in fields(self) if getattr(self, f.name))


@dataclass(frozen=True)
class Licence:
    """Licence state: `kind` in words; the largest program it admits (None: no limit)."""

    kind: str
    max_columns: int | None = None
    max_rows: int | None = None
    usable: bool = True


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
    integrality_tolerance: float | None = None
    presolve: bool | None = None
    algorithm: str | None = None
    native: Mapping[str, Any] = field(default_factory=dict)

    def given(self) -> dict[str, Any]:
        """The named options that are set, without `native`."""
        return {
            f.name: value
            for f in fields(self)
            if f.name != "native" and (value := getattr(self, f.name)) is not None
        }  # fmt: skip


@dataclass
class Raw:
    """What a session's `_run` reads off its solver, in dispatched (scaled) units and the backend's own statuses."""

    termination: Termination
    raw_status: str
    x: Vector | None = None
    point: PointStatus = PointStatus.NONE
    row_dual: Vector | None = None
    reduced_cost: Vector | None = None
    dual: PointStatus = PointStatus.NONE
    bound: float | None = None
    basis: Any = None
    ray: Vector | None = None
    iterations: int | None = None
    nodes: int | None = None
    start: Start = Start.COLD
    solve_seconds: float | None = None
    notes: tuple[str, ...] = ()


class Backend(ABC):
    """A solver behind the one contract. `variant` picks an algorithm or engine ("glop" in "ortools:glop")."""

    name: ClassVar[str]
    distribution: ClassVar[str]  # of the native library on PyPI
    module: ClassVar[str]  # its import name
    variants: ClassVar[tuple[str, ...]] = ()
    supported_options: ClassVar[frozenset[str]]

    def __init__(self, variant: str | None = None) -> None:
        if variant is not None and variant not in self.variants:
            choices = f"one of {', '.join(self.variants)}" if self.variants else "left out"
            raise BackendUnavailable(f"the variant of {self.name} must be {choices}. Got {variant!r}.")
        self.variant = variant

    @property
    def label(self) -> str:
        """The name as a user writes it: "highs", "ortools:glop"."""
        return self.name if self.variant is None else f"{self.name}:{self.variant}"

    @abstractmethod
    def capabilities(self) -> Capabilities:
        """What this backend and variant can do; needs no import of the native library."""

    @classmethod
    def installed(cls) -> bool:
        """Whether the native library is installed; takes no licence and imports nothing."""
        try:
            return importlib.util.find_spec(cls.module) is not None
        except (ImportError, ValueError):
            return False

    @classmethod
    def version(cls) -> str | None:
        """Version of the native library, or None when it is not installed."""
        try:
            return importlib.metadata.version(cls.distribution)
        except importlib.metadata.PackageNotFoundError:
            return None

    def licence(self) -> Licence:
        """The licence state; may probe the native library."""
        return Licence("open source")

    def open(self, program: Program, options: Options | None = None) -> Session:
        """A live session for one program.

        Raises:
            BackendUnavailable: not installed, or the program is of a kind it cannot solve.
            LicenceExceeded: the program is larger than the licence admits (known before anything is built).
            UnsupportedOption: an option it cannot honour.
        """
        options = options or Options()
        if not self.installed():
            raise BackendUnavailable(f"{self.label} is not installed (pip install {self.distribution}).")
        capabilities = self.capabilities()
        if program.is_mip and not capabilities.milp:
            raise BackendUnavailable(f"{self.label} cannot solve mixed-integer programs, and {program.name} is one.")
        if not program.is_mip and not capabilities.lp:
            raise BackendUnavailable(f"{self.label} cannot solve linear programs, and {program.name} is one.")
        if capabilities.integer_only and not program.template.integrality.all():
            raise BackendUnavailable(f"{self.label} solves programs in integers only, and {program.name} is not one.")
        for option in options.given():
            if option not in self.supported_options:
                raise UnsupportedOption(f"{self.label} cannot honour the option {option}; leave it out.")
        self.admit(program)
        return self._open(program, options)

    def admit(self, program: Program) -> None:  # noqa: B027  (most backends admit every size)
        """Refuse programs larger than the licence admits, by raising LicenceExceeded."""

    @abstractmethod
    def _open(self, program: Program, options: Options) -> Session:
        """The session itself, after all checks."""


class Session(ABC):
    """A live solver object for one program. Not thread-safe. Usable as a context manager."""

    def __init__(self, owner: Backend, program: Program, options: Options) -> None:
        self.owner = owner
        self.program = program
        self.options = options
        self._p: Vector | None = None  # parameter vector of the live object
        self._multiplier = _multipliers(program)
        self._version = owner.version() or ""

    # What a backend writes.

    @abstractmethod
    def _build(self, data: Data) -> None:
        """Load (scaled) data into a fresh native object, forgetting everything else."""

    def _update(self, section: str, index: NDArray[np.intp], values: Vector, data: Data) -> bool:
        """Change entries of a section of the live object ("A": positions in the CSC data array). `data` is the whole
        instance, unscaled. False: rebuild instead (the default)."""
        return False

    @abstractmethod
    def _run(self, start: Start, basis: Any) -> Raw:
        """Solve what is loaded; `start` is COLD (forget the last solve), BASIS (use `basis`) or HOT."""

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
        """
        start = Start(start)
        begin = time.perf_counter()
        p = self.program.vector(values or {})
        data = self.program.at(p)
        live = self._p is not None
        if not live:
            data.check()
        moved = self._move(p, data) if live and start is not Start.COLD else False
        if not moved:
            if live:
                data.check()
            self._p = None
            self._build(data.scaled(self.program.scale))
            if start is Start.HOT:
                start = Start.COLD
        self._p = p
        ready = time.perf_counter()
        try:
            raw = self._run(start, basis)
        except KeyboardInterrupt:
            self._p = None  # the native object is in an unknown state
            raise
        stopped = time.perf_counter()
        solution = self._solution(raw, data, ready - begin, 0.0 if moved else 1.0, ready, stopped)
        if raw.termination is Termination.INFEASIBLE_OR_UNBOUNDED:
            solution = self._decide(solution, values)
        return solution

    def _move(self, p: Vector, data: Data) -> bool:
        """Move the live object from its parameter vector to p; False when it must be rebuilt."""
        if self._p is not None and np.array_equal(p, self._p):
            return True
        old = self._p
        assert old is not None
        for section, move in self.program.moves.items():
            new = move.at(p)
            changed = np.flatnonzero(new != move.at(old))
            if not changed.size:
                continue
            values = new[changed]
            _check_moved(section, values)
            if self.program.scale != 1.0:
                values = values * self._multiplier[section][changed]
            if not self._update(section, move.index[changed], values, data):
                return False
        return True

    def _solution(self, raw: Raw, data: Data, ready: float, built: float, begin: float, stopped: float) -> Solution:
        scale = self.program.scale
        x, row_dual, reduced_cost, bound = raw.x, raw.row_dual, raw.reduced_cost, raw.bound
        if scale != 1.0:
            if x is not None:
                x = np.where(data.integrality, x, x / scale)
            if reduced_cost is not None:
                reduced_cost = np.where(data.integrality, reduced_cost / scale, reduced_cost)
            bound = None if bound is None else bound / scale
        if bound is not None and not np.isfinite(bound):
            bound = None
        solving = raw.solve_seconds if raw.solve_seconds is not None else stopped - begin
        seconds = Seconds(
            build=ready * built, update=ready * (1.0 - built), solve=solving, read=max(0.0, stopped - begin - solving)
        )
        return Solution(
            program=self.program,
            data=data,
            termination=raw.termination,
            point=raw.point if x is not None else PointStatus.NONE,
            dual=raw.dual if row_dual is not None else PointStatus.NONE,
            x=x,
            row_dual=row_dual,
            reduced_cost=reduced_cost,
            native_bound=bound if data.is_mip else None,
            basis=raw.basis,
            ray=raw.ray,
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
            notes=raw.notes,
        )

    def _decide(self, solution: Solution, values: Mapping[str, ArrayLike] | None) -> Solution:
        """Infeasible or unbounded: re-solve with a zero objective and record both answers."""
        from dataclasses import replace

        data = solution.data
        self._p = None
        zero = replace(data, c=np.zeros_like(data.c), offset=0.0)
        self._build(zero.scaled(self.program.scale))
        second = self._run(Start.COLD, None)
        decided = {
            Termination.OPTIMAL: Termination.UNBOUNDED,
            Termination.INFEASIBLE: Termination.INFEASIBLE,
        }.get(second.termination, Termination.INFEASIBLE_OR_UNBOUNDED)
        note = f"said {solution.raw_status!r}; with a zero objective {second.raw_status!r}, hence {decided}"
        return replace(solution, termination=decided, notes=(*solution.notes, note))


def _multipliers(program: Program) -> dict[str, Vector]:
    """Factors that scale the entries that move, section by section (see Data.scaled)."""
    scale, template = program.scale, program.template
    columns = np.where(template.integrality, scale, 1.0)
    per_entry = {
        "c": columns,
        "offset": np.array([scale]),
        "A": np.repeat(columns, np.diff(template.A.indptr)),
        "row_lower": np.full(template.row_lower.size, scale),
        "row_upper": np.full(template.row_upper.size, scale),
        "lower": np.where(template.integrality, 1.0, scale),
        "upper": np.where(template.integrality, 1.0, scale),
    }
    return {section: per_entry[section][move.index] for section, move in program.moves.items()}


def _check_moved(section: str, values: Vector) -> None:
    """`Data.check` for the entries of one section that moved."""
    size = np.abs(values)
    if not (size < LARGEST).all():  # false for nan as well
        raise InvalidProgram(f"every entry of {section} must be finite and below 1e15 in size. Got {values.max()}.")
    if section == "A" and ((size > 0) & (size < SMALLEST)).any():
        raise InvalidProgram(f"every non-zero coefficient must be at least 1e-9 in size. Got {size[size > 0].min():g}.")


def names() -> list[str]:
    """Every backend and variant this workbench knows, as a user writes them."""
    listed = []
    for name in REGISTRY:
        variants = _class(name).variants
        listed += [f"{name}:{variant}" for variant in variants] if variants else [name]
    return listed


def backend(label: str) -> Backend:
    """The backend of a label such as "highs" or "ortools:glop".

    Raises:
        BackendUnavailable: for an unknown backend or variant.
    """
    name, _, variant = label.partition(":")
    if name not in REGISTRY:
        raise BackendUnavailable(f"solver must be one of {', '.join(names())}. Got {label!r}.")
    return _class(name)(variant or None)


def _class(name: str) -> type[Backend]:
    module, attribute = REGISTRY[name]
    found: type[Backend] = getattr(importlib.import_module(module), attribute)
    return found


def solve(
    program: Program,
    values: Mapping[str, ArrayLike] | None = None,
    solver: str = "highs",
    options: Options | None = None,
) -> Solution:
    """Solve once, cold."""
    with backend(solver).open(program, options) as session:
        return session.solve(values, start=Start.COLD)
