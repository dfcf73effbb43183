"""PDP noise with delta > 0, exactly and fast: model (13), or (15), solved by branch and bound over
violation patterns.

`FastSession` answers like a session of the literal program:

1. For the error rate there is an incumbent from the start (`workbench.models.modulo.level_noise`).
   With one eps and a delta, on groups that are not small, all level functions are searched first
   (`workbench.models.modulo.level_frontier`), within so many decisions: mostly that is the whole
   proof, and no linear program is solved; where it is not, it leaves a better incumbent.
2. Noise values where nothing is expected are summed in one variable (a relaxation,
   `workbench.models.modulo.patterns`). Which is a guess that decides speed only: when the relaxed
   optimum is not a PMF of the whole group, its pattern is lifted (the program of the full group
   with the same broken pairs); when the lifted value does not meet the bound, more noise values are
   kept. With all of them kept the relaxation is the problem itself, so the loop ends.
3. The relaxation is minimised over all patterns (`workbench.models.modulo.search`) by linear
   programs, hot. Its bound is the least of Lagrangian bounds that are recomputed from the data; it
   holds for (13) because every step above either keeps an optimal f or relaxes. The incumbent is a
   solution of one program, a PMF of the full group, or a level function's.

No oracle takes part: the closed forms of `workbench.models.oracles` stay independent judges of the
result.

A backend without duals, whose bounds could not be checked, or whose linear programs end in
numerical trouble, gets the mixed-integer program with the better rows (`patterns.milp`) in one
piece; its bound is then the solver's. The constraints of a user and worst-case costs switch 1 and 2
off, as neither proof covers them.

The answer is stated in the variables f, u_mu, y_mu of the literal model, u = 1 where a pair is
broken.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from workbench.models.modulo.level_frontier import (
    BOUND_MARGIN,
    MAX_DECISIONS,
    is_searchable,
    search_level_optimum,
)
from workbench.models.modulo.level_noise import LevelNoise, distance_weights, simplest_noise
from workbench.models.modulo.patterns import (
    MIN_BROKEN_EXCESS,
    NoiseProblem,
    Relaxation,
    build_milp,
    build_relaxation,
)
from workbench.models.modulo.program import LEVELS, ModuloModel
from workbench.models.modulo.search import (
    LIMIT_TERMINATIONS,
    PatternOutcome,
    PatternSearch,
    with_tight_tolerances,
)
from workbench.solvers.arrays import Flags, Vector
from workbench.solvers.backend import Options
from workbench.solvers.contract import Backend
from workbench.solvers.program import Program
from workbench.solvers.search import Deadline
from workbench.solvers.solution import PointStatus, Solution, Start, Termination, relative_gap

_SMALL = 40  # groups of so few elements are not truncated
_LEVELS = 50_000  # decisions over level functions for every second of the time limit: a quarter of it or less
_BRIEF = 1.0  # seconds of a time limit below which patterns have it whole: their first program is a bound
_GRACE = 0.3  # of the time limit, to make an incumbent of what the search found by then
_PROVEN = 1e-9 * (1 + 1e-6)


class FastSession:
    """Stands in for a session of `model.program`: the same parameters, the same variables, the same optimum."""

    def __init__(
        self, model: ModuloModel, backend: Backend, options: Options | None = None
    ) -> None:
        if not model.is_pattern_model:
            raise ValueError(f"method fast is for PDP with delta > 0. Got {model.kind}.")
        self.model, self.backend, self.options = model, backend, options or Options()
        capabilities = backend.capabilities()
        self.uses_search = (
            capabilities.lp
            and capabilities.milp
            and capabilities.duals
            and capabilities.exact_vertex
        )

    @property
    def program(self) -> Program:
        """The literal program, compiled when asked for; it takes the same values."""
        return self.model.program

    def close(self) -> None:
        """Nothing is kept between solves."""

    def __enter__(self) -> FastSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def solve(
        self,
        values: Mapping[str, ArrayLike],
        *,
        start: str | Start = Start.COLD,
        basis: Any = None,
        time_limit: float | None = None,
    ) -> Solution:
        """Solve at these parameter values; always cold, whatever `start` says.

        time_limit: seconds for this solve, if less than the options'.

        Raises:
            BackendUnavailable, LicenceExceeded, UnsupportedOption: as `Backend.open`.
        """
        limits = [limit for limit in (self.options.time_limit, time_limit) if limit is not None]
        deadline = Deadline(min(limits, default=None))
        model = self.model
        groups = list(model.groups or (0,) * len(model.shifts))
        given = {
            key: float(np.asarray(value)) for key, value in values.items() if key != "exp_epsilon"
        }
        noise = NoiseProblem(
            model.sizes,
            model.shifts,
            np.asarray(values["exp_epsilon"], dtype=float).ravel()[groups],
            model.scaled_loss,
            given.get("delta"),
            given.get("max_loss"),
            model.constraints,
        )
        if self.uses_search:
            solution = _Fast(noise, self, deadline).run()
            if solution.termination not in (Termination.NUMERICAL, Termination.ERROR):
                return solution
        return self._whole(noise, deadline)

    def _whole(self, noise: NoiseProblem, deadline: Deadline) -> Solution:
        """The mixed-integer program in one piece."""
        program = self.with_model_losses(build_milp(noise, _name(self.model)))
        with self.backend.open(
            program, replace(self.options, time_limit=deadline.solver_time_limit)
        ) as session:
            solution = session.solve({}, start=Start.COLD)
        notes = (
            *solution.notes,
            "one mixed-integer program in one piece, whose bound is the solver's own",
        )
        return replace(solution, seconds=deadline.elapsed_seconds, notes=notes)

    def with_model_losses(self, program: Program) -> Program:
        """A program in scaled losses with the losses of the model, still solved in scaled ones."""
        unit, shift, data = self.model.unit, self.model.shift, program.template
        if unit == 1 and not shift:
            return program
        return replace(program, template=replace(data, c=data.c * unit), cost=1 / unit, shift=shift)


def _name(model: ModuloModel) -> str:
    return f"noise {model.kind} by patterns on {'x'.join(map(str, model.sizes))} with {len(model.shifts)} differences"


class _Fast:
    """One solve by search."""

    def __init__(self, noise: NoiseProblem, owner: FastSession, deadline: Deadline) -> None:
        self.noise, self.owner, self.deadline = noise, owner, deadline
        options = owner.options
        self.gap = 1e-9 if options.gap is None else options.gap
        self.options = with_tight_tolerances(
            replace(options, gap=None, node_limit=None, integrality_tolerance=None), owner.backend
        )
        self.total = PatternOutcome(Termination.OPTIMAL, np.inf, None, -np.inf)
        self.broken: Flags = np.zeros(
            (len(noise.shifts), noise.N), dtype=bool
        )  # by the incumbent total.x
        self.first: Flags | None = None  # the pattern of the first relaxation that was solved
        self.w = distance_weights(noise) if noise.is_error_rate else None
        self.known: LevelNoise | None = None
        self.decisions, self.by_levels = (
            0,
            False,
        )  # of the search of all level functions; whether that is the proof
        if self.w is not None:
            self._take(simplest_noise(noise, self.w))

    def _take(self, known: LevelNoise) -> None:
        self.known = known
        self._incumbent(known.value, known.pmf, known.broken_pairs)

    def _incumbent(self, value: float, x: Vector, broken: Flags) -> None:
        if value < self.total.value or self.total.x is None:
            self.total.value, self.total.x, self.broken = value, x, broken

    def run(self) -> Solution:
        """Search until the proof closes or a limit, or Ctrl-C, ends it with what there is."""
        try:
            self._run()
        except KeyboardInterrupt:
            self.total.termination = Termination.INTERRUPTED
        if self.total.x is None and self.total.termination in LIMIT_TERMINATIONS:
            with contextlib.suppress(KeyboardInterrupt):  # pressed again: without, then
                self._something()
        return self._solution()

    def _something(self) -> None:
        """An incumbent for who stops before the search has one: broken is what the first program breaks, or nothing.

        Where there is no time for that it is uniform noise, which breaks nothing.
        """
        noise, nothing = self.noise, np.zeros_like(self.broken)
        for pattern in [nothing] if self.first is None else [self.first, nothing]:
            self._lift(pattern)
        if self.total.x is None and noise.max_loss is None and noise.constraints is None:
            uniform = np.full(noise.N, 1.0 / noise.N)
            self._incumbent(float(np.max(noise.loss @ uniform)), uniform, nothing)

    def _run(self) -> None:
        total = self.total
        self._levels()
        if self.by_levels:
            return
        kept = self._guess()
        while True:
            outcome, relaxed = self._search(kept)
            total.bound = max(total.bound, outcome.bound)
            total.termination = outcome.termination
            if outcome.termination is Termination.INFEASIBLE and total.x is not None:
                total.termination = Termination.OPTIMAL  # nothing is better than the incumbent
                break
            if outcome.x is not None:
                self._offer(outcome, relaxed, kept)
            if kept.all() or outcome.termination is not Termination.OPTIMAL or self._closed():
                break
            kept = self._wider(kept)
        if total.x is None and total.termination is Termination.OPTIMAL:
            total.termination = (
                Termination.INFEASIBLE if total.bound == np.inf else Termination.NUMERICAL
            )
        elif total.termination is Termination.OPTIMAL and not self._closed():
            total.termination = Termination.NUMERICAL

    def _levels(self) -> None:
        """Search all level functions where that takes the question; a user who limits nodes means patterns."""
        limited = self.owner.options.node_limit is not None or self.gap < BOUND_MARGIN
        limited |= self.deadline.seconds is not None and self.deadline.seconds < _BRIEF
        if self.w is None or self.known is None or limited or not is_searchable(self.noise):
            return
        work = MAX_DECISIONS
        if (
            self.deadline.seconds is not None
        ):  # patterns have a bound whenever they are stopped: most time is theirs
            work = min(MAX_DECISIONS, int(_LEVELS * self.deadline.seconds))
        answer = search_level_optimum(
            self.noise, self.w, self.known, self.deadline.rescale(0.5), work
        )
        self._take(answer.best)
        self.decisions, self.by_levels = answer.decisions, answer.is_proven
        if answer.is_proven:
            self.total.bound = max(0.0, self.total.value - BOUND_MARGIN)

    def _closed(self) -> bool:
        gap = relative_gap(self.total.value, min(self.total.bound, self.total.value))
        return self.total.x is not None and gap is not None and gap <= max(self.gap, _PROVEN)

    # Which noise values are kept.

    def _guess(self) -> Flags:
        """The noise values that get a variable at first."""
        noise = self.noise
        everything = np.ones(noise.N, dtype=bool)
        if noise.N <= _SMALL or noise.loss.ndim == 2 or noise.constraints is not None:
            return everything
        relaxed = build_relaxation(noise)
        with self.owner.backend.open(relaxed.program, self.options) as session:
            answer = session.solve(
                relaxed.values(noise), time_limit=self.deadline.solver_time_limit
            )
        self._count(answer)
        if answer.x is None:
            return everything
        kept = self._dilated(answer.x[: noise.N] > 1e-9, 2)
        return everything if kept.sum() > 0.8 * noise.N else kept

    def _dilated(self, kept: Flags, times: int) -> Flags:
        for _ in range(times):
            grown = kept.copy()
            for target in self.noise.targets():
                grown[target[kept]] = True
                grown |= kept[target]
            kept = grown
        return kept

    def _wider(self, kept: Flags) -> Flags:
        """At least half as many again; everything where shifts lead to no more."""
        wider = kept
        while wider.sum() < min(self.noise.N, 1.5 * kept.sum()):
            before, wider = wider, self._dilated(wider, 1)
            if np.array_equal(wider, before):
                return np.ones_like(kept)
        return wider if wider.sum() <= 0.8 * self.noise.N else np.ones_like(kept)

    # The search and what it finds.

    def _search(self, kept: Flags) -> tuple[PatternOutcome, Relaxation]:
        noise = self.noise
        relaxed = build_relaxation(noise, kept)
        with self.owner.backend.open(relaxed.program, self.options) as session:
            gap, node_limit = min(self.gap, 1.0), self.owner.options.node_limit
            outcome = PatternSearch(noise, relaxed, session, gap, self.deadline, node_limit).run(
                self.total.value
            )
        total = self.total
        if self.first is None and outcome.root is not None:
            self.first = relaxed.broken_table(noise, outcome.root)
        for name in ("nodes", "iterations", "programs", "unchecked_infeasible"):
            setattr(total, name, getattr(total, name) + getattr(outcome, name))
        total.last = outcome.last or total.last
        return outcome, relaxed

    def _offer(self, outcome: PatternOutcome, relaxed: Relaxation, kept: Flags) -> None:
        """Take the relaxation's solution as an incumbent if it is, or can be made, a PMF of the whole group."""
        assert outcome.x is not None
        size = int(kept.sum())
        f = np.zeros(self.noise.N)
        f[kept] = outcome.x[:size]
        if not kept.all() and outcome.x[size] > MIN_BROKEN_EXCESS:
            self._lift(relaxed.broken_table(self.noise, outcome.x))
        else:
            self._incumbent(outcome.value, f, relaxed.broken_table(self.noise, outcome.x))

    def _lift(self, pattern: Flags) -> None:
        """Offer the optimum of the full group in which the pairs that are broken inside are broken, and no others."""
        noise = self.noise
        relaxed = build_relaxation(noise)
        broken = pattern[relaxed.shift, relaxed.element]
        with self.owner.backend.open(relaxed.program, self.options) as session:
            limit = self.deadline.rescale(1 + _GRACE).solver_time_limit
            answer = session.solve(relaxed.values(noise, ~broken, broken), time_limit=limit)
        self._count(answer)
        if answer.is_optimal and answer.x is not None and answer.objective is not None:
            self._incumbent(
                answer.objective, answer.x[: noise.N], relaxed.broken_table(noise, answer.x)
            )

    def _count(self, answer: Solution) -> None:
        self.total.programs += 1
        self.total.iterations += answer.iterations or 0
        self.total.last = answer

    # The answer.

    def _solution(self) -> Solution:
        noise, total, options, model = self.noise, self.total, self.owner.options, self.owner.model
        program, last = build_milp(noise, _name(self.owner.model)), total.last
        x = None if total.x is None else _stated(noise, program, total.x, self.broken)
        bound = min(total.bound, total.value)
        termination = total.termination
        if (
            termination is Termination.OPTIMAL
            and (relative_gap(total.value, bound) or 0.0) > _PROVEN
        ):
            termination = Termination.GAP_LIMIT
        notes = [f"proven over violation patterns by {total.programs} linear programs"]
        status = f"{termination} after {total.nodes} patterns"
        solver, version = (
            self.owner.backend.label if last is None else last.solver,
            self.owner.backend.version() or "",
        )
        if self.by_levels:
            solver, version = LEVELS, ""
            notes = [
                f"proven over level functions by {self.decisions} decisions, without a linear program"
            ]
            status = f"{termination} after {self.decisions} decisions"
        if total.unchecked_infeasible:
            notes.append(f"{total.unchecked_infeasible} of them infeasible on the solver's word")
        seconds = self.deadline.elapsed_seconds
        return Solution(
            program=self.owner.with_model_losses(program),
            p=np.zeros(0),
            termination=termination,
            point=PointStatus.NONE if x is None else PointStatus.FEASIBLE,
            x=x,
            native_bound=bound * model.unit if np.isfinite(bound) else None,
            iterations=total.iterations,
            nodes=total.nodes,
            seconds=seconds,
            solver=solver,
            version=version,
            options={} if last is None else last.options,
            seed=options.seed,
            threads=options.threads,
            start=Start.COLD,
            raw_status=status,
            notes=tuple(notes),
        )


def _stated(noise: NoiseProblem, program: Program, f: Vector, pattern: Flags) -> Vector:
    """The point of the mixed-integer program that a PMF stands for: u = 1 where it breaks, y = f u."""
    x = np.zeros(program.shape[1])
    x[: noise.N] = f
    excess = 0.0
    for mu, broken in zip(noise.shifts, pattern, strict=True):
        label = "_".join(map(str, mu))
        u, y = program.block(f"u_{label}"), program.block(f"y_{label}")
        x[u.start : u.start + u.size] = broken
        x[y.start : y.start + y.size] = np.where(broken, f, 0.0)
        excess = max(excess, float(f[broken].sum()))
    names = {block.name: block for block in program.variables}
    if "delta" in names:
        x[names["delta"].start] = excess
    if "worst" in names:
        x[names["worst"].start] = float((noise.loss @ f).max())
    return x
