"""Solve for the optimal noise modulo n + 1 under PDP with δ > 0, fast and with a proven bound.

`FastSession` solves the mixed-integer programs (13) and (15) of Kadam et al. 2024: find the PMF f
with the smallest loss at a given δ (13), or with the smallest δ at a given loss (15). It has the
interface of a solver session of these programs, but uses its own branch and bound.

Terms. The literal program is the mixed-integer program as printed in the paper
(`workbench.models.modulo.program`). A pair (η, μ) of a noise value η and a shift μ stands for the
privacy inequality f(η) <= e^ε f(η + μ), and is broken if this does not hold. PDP allows a mass of
at most δ on the broken pairs of each shift. A pattern says for every pair whether it is kept,
broken or undecided (`workbench.models.modulo.patterns`). A level function says how many factors
e^-ε the mass of each noise value lies below f(0) (`workbench.models.modulo.levels`).

The steps:

1. If the loss is the error rate, `workbench.models.modulo.level_noise` gives an incumbent (the best
   noise so far). With a single ε and a given δ, on groups that are not small, all level functions
   are searched first (`workbench.models.modulo.level_frontier`), within a limited number of
   decisions. This search usually proves the optimum without a linear program. If it does not, it
   still improves the incumbent.
2. Noise values where no mass is expected are summed in one variable. This is a relaxation
   (`workbench.models.modulo.patterns`), and the choice of the values affects speed only. If the
   relaxed optimum is not a PMF of the whole group, its pattern is lifted: the program of the full
   group is solved with the same broken pairs. If the lifted loss does not meet the bound, more
   noise values get a variable. Once all have one, the relaxation is the problem itself, so the loop
   ends.
3. The relaxation is minimised over all patterns (`workbench.models.modulo.search`) by linear
   programs, each of which continues from the last basis. The bound is the smallest of the
   Lagrangian bounds, which are recomputed from the data. It holds for (13) because every step above
   either keeps an optimal f or relaxes the problem. The incumbent is a solution of one program that
   is a PMF of the full group, or the noise of a level function.

No oracle takes part: the closed forms of `workbench.models.oracles` stay independent judges of the
result.

If a backend returns no dual values, its bounds could not be checked. In this case, and if linear
programs end in numerical trouble, the solver gets the whole mixed-integer program (with the tighter
rows of `patterns.build_milp`). The bound is then the solver's. Steps 1 and 2 are skipped for
user-defined constraints and worst-case losses, as neither proof covers them.

The solution has the variables f, u_mu and y_mu of the literal program; u_mu = 1 where a pair is
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

_MAX_UNTRUNCATED_ELEMENTS = 40  # In groups of at most this order every noise value has a variable.
_MAX_TRUNCATED_SHARE = 0.8  # If more noise values need a variable, all get one.
# Noise values with more mass in the relaxation that decides no pair get a variable, and so do those
# that are reached from them by _FIRST_DILATIONS shifts.
_MIN_GUESSED_MASS = 1e-9
_FIRST_DILATIONS = 2
_GROWTH_FACTOR = 1.5  # Each further relaxation has at least this many times as many variables.
# Each second of the time limit allows this many decisions over level functions, which takes a
# quarter of the limit or less.
_DECISIONS_PER_SECOND = 50_000
_LEVEL_TIME_SHARE = 0.5  # The search over level functions gets at most this share of the time.
# Under a shorter time limit only patterns are searched: their first program gives a bound.
_MIN_LEVEL_SEARCH_SECONDS = 1.0
# After the time limit this share of it may be spent to make an incumbent.
_GRACE_SHARE = 0.3
_DEFAULT_GAP = 1e-9  # The search ends at this relative gap, unless the options have another one.
# A solution with this relative gap counts as proven. It allows for rounding at the default gap.
_PROVEN_GAP = _DEFAULT_GAP * (1 + 1e-6)


class FastSession:
    """A session that solves `model.program` by search, with the same parameters and variables.

    Args:
        model: a model of noise under PDP with delta > 0.
        backend: the solver of the linear programs.
        options: options of every solve; None for the defaults.

    Raises:
        ValueError: the model is not one of PDP with delta > 0.
    """

    def __init__(
        self,
        model: ModuloModel,
        backend: Backend,
        options: Options | None = None,
    ) -> None:
        if not model.is_pattern_model:
            raise ValueError(f"method fast is for PDP with delta > 0. Got {model.kind}.")
        self.model = model
        self.backend = backend
        self.options = options or Options()
        capabilities = backend.capabilities()
        self.uses_search = (
            capabilities.lp
            and capabilities.milp
            and capabilities.duals
            and capabilities.exact_vertex
        )

    @property
    def program(self) -> Program:
        """Return the literal program, compiled on demand. It has the same parameters."""
        return self.model.program

    def close(self) -> None:
        """Do nothing, since no solver object lives between solves."""

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
        """Solve at these parameter values.

        Args:
            values: values of the parameters of the literal program, by name.
            start: accepted for the interface of sessions; every solve is cold.
            basis: accepted for the interface of sessions and ignored.
            time_limit: seconds for this solve, if less than the limit of the options.

        Returns:
            The solution in the variables of the mixed-integer program, with the proven bound.

        Raises:
            BackendUnavailable, LicenceExceeded, UnsupportedOption: as `Backend.open`.
        """
        limits = [limit for limit in (self.options.time_limit, time_limit) if limit is not None]
        deadline = Deadline(min(limits, default=None))
        model = self.model
        # Shifts of one group share one entry of the parameter "exp_epsilon".
        groups = list(model.groups or (0,) * len(model.shifts))
        scalars = {
            key: float(np.asarray(value)) for key, value in values.items() if key != "exp_epsilon"
        }
        noise = NoiseProblem(
            model.sizes,
            model.shifts,
            np.asarray(values["exp_epsilon"], dtype=float).ravel()[groups],
            model.scaled_loss,
            delta=scalars.get("delta"),
            max_loss=scalars.get("max_loss"),
            constraints=model.constraints,
        )
        if self.uses_search:
            solution = _FastSolve(noise, self, deadline).run()
            if solution.termination not in (Termination.NUMERICAL, Termination.ERROR):
                return solution
        return self._solve_milp(noise, deadline)

    def _solve_milp(self, noise: NoiseProblem, deadline: Deadline) -> Solution:
        """Solve the whole mixed-integer program by the backend."""
        program = self.with_model_losses(build_milp(noise, _program_name(self.model)))
        options = replace(self.options, time_limit=deadline.solver_time_limit)
        with self.backend.open(program, options) as session:
            solution = session.solve({}, start=Start.COLD)
        note = "one mixed-integer program in one piece, whose bound is the solver's own"
        return replace(solution, seconds=deadline.elapsed_seconds, notes=(*solution.notes, note))

    def with_model_losses(self, program: Program) -> Program:
        """Restate a program in scaled losses in the losses of the model.

        It is still solved in scaled losses.

        Args:
            program: a program in scaled losses.
        """
        unit = self.model.unit
        shift = self.model.shift
        if unit == 1 and not shift:
            return program
        data = program.template
        return replace(program, template=replace(data, c=data.c * unit), cost=1 / unit, shift=shift)


def _program_name(model: ModuloModel) -> str:
    """Return the name of the program of a model."""
    group = "x".join(map(str, model.sizes))
    return f"noise {model.kind} by patterns on {group} with {len(model.shifts)} differences"


class _FastSolve:
    """One solve by search.

    A table says whether each pair is broken, shape (shifts, N). A support (`has_own_mass`) says
    whether each noise value has a variable of its own, shape (N,).

    Attributes:
        owner: the session, with the model, the backend and the options.
        deadline: time limit of this solve.
        lp_options: options of the linear programs, with tight tolerances.
        outcome: the incumbent, the bound and the counts of nodes, programs and iterations.
        broken_table: whether the incumbent breaks each pair, shape (shifts, N).
        noise: group, shifts, budgets and loss of the noise.
        gap: relative gap at which a solution counts as optimal.
        first_table: whether the first solved relaxation breaks each pair, shape (shifts, N), or
            None before it is solved.
        w: weights e^-d, shape (N,), where d is the length of the shortest path of shifts from 0
            (`workbench.models.modulo.level_noise`). None if the loss is not the error rate.
        level_noise: the best noise of a level function, or None.
        decisions: number of decisions of the search over level functions.
        is_proven_by_levels: whether the search over level functions proves the optimum.
    """

    def __init__(
        self,
        noise: NoiseProblem,
        owner: FastSession,
        deadline: Deadline,
    ) -> None:
        self.noise = noise
        self.owner = owner
        self.deadline = deadline
        options = owner.options
        self.gap = _DEFAULT_GAP if options.gap is None else options.gap
        lp_options = replace(options, gap=None, node_limit=None, integrality_tolerance=None)
        self.lp_options = with_tight_tolerances(lp_options, owner.backend)
        self.outcome = PatternOutcome(Termination.OPTIMAL, np.inf, x=None, bound=-np.inf)
        self.broken_table: Flags = np.zeros((len(noise.shifts), noise.N), dtype=bool)
        self.first_table: Flags | None = None
        self.w = distance_weights(noise) if noise.is_error_rate else None
        self.level_noise: LevelNoise | None = None
        self.decisions = 0
        self.is_proven_by_levels = False
        if self.w is not None:
            self._accept_level_noise(simplest_noise(noise, self.w))

    def _accept_level_noise(self, level_noise: LevelNoise) -> None:
        """Keep the noise of a level function, as incumbent if it is better."""
        self.level_noise = level_noise
        self._offer_incumbent(level_noise.value, level_noise.pmf, level_noise.broken_pairs)

    def _offer_incumbent(
        self,
        value: float,
        x: Vector,
        broken_table: Flags,
    ) -> None:
        """Keep a PMF of the whole group if it is better than the incumbent."""
        # The first incumbent is accepted even at an infinite value.
        if value < self.outcome.value or self.outcome.x is None:
            self.outcome.value = value
            self.outcome.x = x
            self.broken_table = broken_table

    def run(self) -> Solution:
        """Search until the proof closes, or a limit or Ctrl-C ends it with the result so far."""
        try:
            self._run()
        except KeyboardInterrupt:
            self.outcome.termination = Termination.INTERRUPTED
        if self.outcome.x is None and self.outcome.termination in LIMIT_TERMINATIONS:
            # A second Ctrl-C ends the solve without an incumbent.
            with contextlib.suppress(KeyboardInterrupt):
                self._make_incumbent()
        return self._build_solution()

    def _make_incumbent(self) -> None:
        """Make an incumbent after the search stopped before it had one.

        The broken pairs are those of the first program, or none. If there is no time for that, the
        incumbent is uniform noise, which breaks nothing.
        """
        noise = self.noise
        no_pairs = np.zeros_like(self.broken_table)
        tables = [no_pairs] if self.first_table is None else [self.first_table, no_pairs]
        for table in tables:
            self._lift(table)
        if self.outcome.x is None and noise.max_loss is None and noise.constraints is None:
            uniform = np.full(noise.N, 1.0 / noise.N)
            self._offer_incumbent(float(np.max(noise.loss @ uniform)), uniform, no_pairs)

    def _run(self) -> None:
        """Search level functions, then patterns on relaxations of growing size."""
        total = self.outcome
        self._search_levels()
        if self.is_proven_by_levels:
            return
        has_own_mass = self._guess_support()
        while True:
            outcome, relaxation = self._search_patterns(has_own_mass)
            total.bound = max(total.bound, outcome.bound)
            total.termination = outcome.termination
            if outcome.termination is Termination.INFEASIBLE and total.x is not None:
                total.termination = Termination.OPTIMAL  # No PMF is better than the incumbent.
                break
            if outcome.x is not None:
                self._offer_relaxed_solution(outcome, relaxation, has_own_mass)
            is_optimal = outcome.termination is Termination.OPTIMAL
            if has_own_mass.all() or not is_optimal or self._is_gap_closed():
                break
            has_own_mass = self._widen_support(has_own_mass)
        if total.termination is not Termination.OPTIMAL:
            return
        if total.x is None:
            is_infeasible = total.bound == np.inf
            total.termination = Termination.INFEASIBLE if is_infeasible else Termination.NUMERICAL
        elif not self._is_gap_closed():
            total.termination = Termination.NUMERICAL

    def _search_levels(self) -> None:
        """Search all level functions if the level theorem applies.

        Patterns are searched instead if the user limits nodes or time is short.
        """
        seconds = self.deadline.seconds
        is_limited = self.owner.options.node_limit is not None or self.gap < BOUND_MARGIN
        is_limited |= seconds is not None and seconds < _MIN_LEVEL_SEARCH_SECONDS
        if self.w is None or self.level_noise is None or is_limited:
            return
        if not is_searchable(self.noise):
            return
        max_decisions = MAX_DECISIONS
        if seconds is not None:
            # Patterns have a bound whenever they are stopped, so they get most of the time.
            max_decisions = min(MAX_DECISIONS, int(_DECISIONS_PER_SECOND * seconds))
        answer = search_level_optimum(
            self.noise,
            self.w,
            best_known=self.level_noise,
            deadline=self.deadline.rescale(_LEVEL_TIME_SHARE),
            max_decisions=max_decisions,
        )
        self._accept_level_noise(answer.best)
        self.decisions = answer.decisions
        self.is_proven_by_levels = answer.is_proven
        if answer.is_proven:
            self.outcome.bound = max(0.0, self.outcome.value - BOUND_MARGIN)

    def _is_gap_closed(self) -> bool:
        """Check whether the incumbent meets the bound."""
        value = self.outcome.value
        # A bound above the value is due to rounding.
        gap = relative_gap(value, min(self.outcome.bound, value))
        return self.outcome.x is not None and gap is not None and gap <= max(self.gap, _PROVEN_GAP)

    # The next three methods choose which noise values have a variable of their own.

    def _guess_support(self) -> Flags:
        """Return the noise values that get a variable at first, shape (N,)."""
        noise = self.noise
        everything = np.ones(noise.N, dtype=bool)
        is_small = noise.N <= _MAX_UNTRUNCATED_ELEMENTS
        if is_small or noise.loss.ndim == 2 or noise.constraints is not None:
            return everything
        relaxation = build_relaxation(noise)
        with self.owner.backend.open(relaxation.program, self.lp_options) as session:
            answer = session.solve(
                relaxation.values(noise), time_limit=self.deadline.solver_time_limit
            )
        self._count(answer)
        if answer.x is None:
            return everything
        support = self._dilate(answer.x[: noise.N] > _MIN_GUESSED_MASS, _FIRST_DILATIONS)
        return everything if support.sum() > _MAX_TRUNCATED_SHARE * noise.N else support

    def _dilate(self, support: Flags, times: int) -> Flags:
        """Add the elements that one step of a shift, forwards or backwards, reaches.

        This is repeated `times` times.
        """
        for _ in range(times):
            wider_support = support.copy()
            for target in self.noise.targets():
                wider_support[target[support]] = True
                wider_support |= support[target]
            support = wider_support
        return support

    def _widen_support(self, support: Flags) -> Flags:
        """Add neighbours until the support is at least _GROWTH_FACTOR times as large.

        All elements are returned if the shifts reach no more, or if the support becomes too large
        to save time.
        """
        wider_support = support
        while wider_support.sum() < min(self.noise.N, _GROWTH_FACTOR * support.sum()):
            last_support = wider_support
            wider_support = self._dilate(wider_support, 1)
            if np.array_equal(wider_support, last_support):
                return np.ones_like(support)
        if wider_support.sum() <= _MAX_TRUNCATED_SHARE * self.noise.N:
            return wider_support
        return np.ones_like(support)

    # The next methods search patterns and collect the results.

    def _search_patterns(self, has_own_mass: Flags) -> tuple[PatternOutcome, Relaxation]:
        """Minimise the relaxation of a support over all patterns, and add its counts to the total.

        Returns the outcome and the relaxation.
        """
        noise = self.noise
        total = self.outcome
        relaxation = build_relaxation(noise, has_own_mass)
        gap = min(self.gap, 1.0)
        node_limit = self.owner.options.node_limit
        with self.owner.backend.open(relaxation.program, self.lp_options) as session:
            search = PatternSearch(
                noise,
                relaxation,
                session,
                gap=gap,
                deadline=self.deadline,
                node_limit=node_limit,
            )
            outcome = search.run(total.value)
        if self.first_table is None and outcome.root is not None:
            self.first_table = relaxation.broken_table(noise, outcome.root)
        total.nodes += outcome.nodes
        total.iterations += outcome.iterations
        total.programs += outcome.programs
        total.unchecked_infeasible += outcome.unchecked_infeasible
        total.last = outcome.last or total.last
        return outcome, relaxation

    def _offer_relaxed_solution(
        self,
        outcome: PatternOutcome,
        relaxation: Relaxation,
        has_own_mass: Flags,
    ) -> None:
        """Offer the relaxation's solution as an incumbent, lifted if it is no PMF of the group.

        Column `size` has the mass of all noise values without a variable of their own.
        """
        assert outcome.x is not None
        size = int(has_own_mass.sum())
        f = np.zeros(self.noise.N)
        f[has_own_mass] = outcome.x[:size]
        broken_table = relaxation.broken_table(self.noise, outcome.x)
        if not has_own_mass.all() and outcome.x[size] > MIN_BROKEN_EXCESS:
            self._lift(broken_table)
        else:
            self._offer_incumbent(outcome.value, f, broken_table)

    def _lift(self, broken_table: Flags) -> None:
        """Offer the optimum of the full group that breaks the pairs of a table and no others."""
        noise = self.noise
        relaxation = build_relaxation(noise)
        is_broken = broken_table[relaxation.shift, relaxation.element]
        values = relaxation.values(noise, ~is_broken, is_broken)
        with self.owner.backend.open(relaxation.program, self.lp_options) as session:
            limit = self.deadline.rescale(1 + _GRACE_SHARE).solver_time_limit
            answer = session.solve(values, time_limit=limit)
        self._count(answer)
        if answer.is_optimal and answer.x is not None and answer.objective is not None:
            table = relaxation.broken_table(noise, answer.x)
            self._offer_incumbent(answer.objective, answer.x[: noise.N], table)

    def _count(self, answer: Solution) -> None:
        """Count a linear program that was solved outside the search."""
        self.outcome.programs += 1
        self.outcome.iterations += answer.iterations or 0
        self.outcome.last = answer

    def _build_solution(self) -> Solution:
        """Return the result as a solution of the mixed-integer program."""
        total = self.outcome
        options = self.owner.options
        model = self.owner.model
        program = build_milp(self.noise, _program_name(model))
        last = total.last
        x = None
        if total.x is not None:
            x = _milp_point(self.noise, program, total.x, self.broken_table)
        bound = min(total.bound, total.value)
        termination = total.termination
        gap = relative_gap(total.value, bound) or 0.0
        if termination is Termination.OPTIMAL and gap > _PROVEN_GAP:
            termination = Termination.GAP_LIMIT
        # The incumbent may be found after a limit stopped the search, and may be good enough.
        is_stopped = (
            termination in LIMIT_TERMINATIONS and termination is not Termination.INTERRUPTED
        )
        if is_stopped and self._is_gap_closed():
            termination = Termination.GAP_LIMIT
        if self.is_proven_by_levels:
            solver = LEVELS
            version = ""
            proof = f"level functions by {self.decisions} decisions, without a linear program"
            status = f"{termination} after {self.decisions} decisions"
        else:
            solver = self.owner.backend.label if last is None else last.solver
            version = self.owner.backend.version() or ""
            proof = f"violation patterns by {total.programs} linear programs"
            status = f"{termination} after {total.nodes} patterns"
        notes = [f"proven over {proof}"]
        if total.unchecked_infeasible:
            notes.append(
                f"{total.unchecked_infeasible} of them infeasible by the solver's status alone"
            )
        return Solution(
            program=self.owner.with_model_losses(program),
            p=np.zeros(0),
            termination=termination,
            point=PointStatus.NONE if x is None else PointStatus.FEASIBLE,
            x=x,
            native_bound=bound * model.unit if np.isfinite(bound) else None,
            iterations=total.iterations,
            nodes=total.nodes,
            seconds=self.deadline.elapsed_seconds,
            solver=solver,
            version=version,
            options={} if last is None else last.options,
            seed=options.seed,
            threads=options.threads,
            start=Start.COLD,
            raw_status=status,
            notes=tuple(notes),
        )


def _milp_point(
    noise: NoiseProblem,
    program: Program,
    f: Vector,
    broken_table: Flags,
) -> Vector:
    """Return the point of the mixed-integer program for a PMF f: u = 1 at broken pairs, y = f u."""
    x = np.zeros(program.shape[1])
    x[: noise.N] = f
    largest_excess = 0.0
    for mu, is_broken in zip(noise.shifts, broken_table, strict=True):
        label = "_".join(map(str, mu))
        u = program.block(f"u_{label}")
        y = program.block(f"y_{label}")
        x[u.start : u.start + u.size] = is_broken
        x[y.start : y.start + y.size] = np.where(is_broken, f, 0.0)
        largest_excess = max(largest_excess, float(f[is_broken].sum()))
    starts = {block.name: block.start for block in program.variables}
    if "delta" in starts:
        x[starts["delta"]] = largest_excess
    if "worst" in starts:
        x[starts["worst"]] = float((noise.loss @ f).max())
    return x
