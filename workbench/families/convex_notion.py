"""Convex programs under a notion that several hockey sticks or cones state, or infinitely many of them.

A notion gives the bounds that its budget implies (`Notion.relaxed`); the program over them is solved, and while its
answer breaks the budget those that it breaks most are added (`Notion.cuts`). Every such program is a relaxation, so its
Lagrangian bound (`solvers.solution.lagrangian_bound`, from any multipliers, however a conic solver ended) is one on the
optimum. What is claimed is never the solver's answer: the caller repairs it until the exact audit accepts it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.requirements import Bound
from models.tangent_program import Comparisons, TangentProgram
from solvers.backend import Options, backend, solve
from solvers.errors import SolverError
from solvers.program import Program
from solvers.search import Deadline
from solvers.solution import Solution, Termination, lagrangian_bound
from workbench.errors import Infeasible, InvalidRequest, NotProven
from workbench.families.infeasible import is_proven
from workbench.families.outcome import translated_errors
from workbench.families.requirements import in_numbers
from workbench.families.tangent_cuts import Tangents, polish
from workbench.privacy.audit import Privacy
from workbench.privacy.claim import Claim
from workbench.privacy.notions import Requirement

_EXCESS = 1e-9  # over a limit, relative, that is left to the repair
_CLOSE_ENOUGH = 1e-6  # at which linear programs do not go on
_ROUNDS, _FEW = 40, 3  # of cuts; of them before linear programs go on
_LARGE = 1e6  # limits of cones that are stated
_CONES = 20_000  # outcomes times bounds of a conic program
_CONIC, _NAMES, _FINE = "cvxpy:clarabel", ("tol_gap_abs", "tol_gap_rel", "tol_feas"), (1e-10, 1e-9, 1e-8)

Label = tuple[int, ...]
Columns = tuple[NDArray[np.intp], NDArray[np.intp]]
Masses = NDArray[np.float64]


def solve_with_cuts(
    claim: Claim,
    labels: Iterable[Label],
    state: Callable[[Mapping[Any, Sequence[Bound]]], Program],
    solver: str,
    options: Options,
    columns: Callable[[Program, Label], Columns],
) -> tuple[Solution, float | None]:
    """(the last program's answer, the best bound of all programs).

    labels: of the comparisons; state: the program under some bounds; columns: those of P and Q of a comparison in a
    program. An answer that its bound does not reach is improved by linear programs.
    Raises Infeasible, InvalidRequest, NotProven, SolverUnavailable.
    """
    bounds = {label: [*claim.notion.relaxed(claim.at(label))] for label in labels}
    best: float | None = None
    last: Solution | None = None
    whole = False  # whether the last answer broke no further bound
    for turn in range(_ROUNDS):
        with translated_errors():
            stated = {label: [*map(in_numbers, several)] for label, several in bounds.items()}
            # tangents state what is too large for a solver
            stated = {label: [part for part in several if part.limit < _LARGE] for label, several in stated.items()}
            program = state(stated)
            solution = _solved(program, solver, options)
        if solution.x is None:
            if solution.termination is Termination.INFEASIBLE and is_proven(solution):
                raise Infeasible(f"Nothing meets this request ({solution.solver} says {solution.raw_status!r}).")
            if last is None and program.cones:
                with translated_errors():  # no conic answer to start from: linear programs start without a budget
                    start = _solved(state({label: [] for label in bounds}), solver, options)
                last, best = (None if start.x is None else start), start.bound
            if last is None:
                raise NotProven(f"{solution.solver} says {solution.raw_status!r} and returned no point.", bound=best)
            break  # out of digits: the answer before is repaired
        last, proven_bound = solution, solution.bound
        if proven_bound is None and solution.row_dual is not None:  # any multipliers prove a bound
            proven_bound = lagrangian_bound(solution.data, solution.row_dual, cones=program.cones)
        best = proven_bound if best is None or (proven_bound is not None and proven_bound > best) else best
        before = sum(map(len, bounds.values()))
        for label, several in bounds.items():
            p, q = _in_columns(solution, columns, label)
            several += [cut for cut in claim.notion.cuts(p, q, claim.at(label)) if cut not in several]
        whole = sum(map(len, bounds.values())) == before == sum(map(len, stated.values()))
        if sum(map(len, bounds.values())) == before or (not program.cones and turn >= _FEW):
            break
    assert last is not None
    if whole and best is not None and _reached(last, best):
        return last, best
    return _polished(claim, bounds, state, columns, (solver, options), (last, best))


class ClaimedBounds:
    """The bounds that a claim implies of neighbouring laws: those it states, and further ones as laws break them."""

    def __init__(self, claim: Claim, label: Label) -> None:
        self.claim, self.values = claim, claim.at(label)
        self.bounds: list[Bound] = [*map(in_numbers, claim.notion.relaxed(self.values))]

    def more(self, p: Masses, q: Masses) -> Iterable[Bound]:
        """Further bounds that two laws break, which later programs start from."""
        new = [*map(in_numbers, self.claim.notion.cuts(p, q, self.values))]
        self.bounds += [bound for bound in new if bound not in self.bounds]
        return new


def solve_by_tangents(request: Any, label: Label, base: Program, compared: Comparisons) -> Solution:
    """The answer of the program of a request with the tangents that its claim needs; its bound is one on the optimum.

    label: of any comparison; base: the program without the claim. Raises Infeasible, InvalidRequest, NotProven,
    SolverUnavailable.
    """
    options, solver = request.options, request.solver
    with translated_errors():
        stated = ClaimedBounds(request.claim, label)
        live = TangentProgram(base, compared, stated.bounds, solver, options=replace(options, time_limit=None))
        if solver != "highs":
            live.state_all()
        try:
            live.solve(stated.more, _EXCESS, Deadline(options.time_limit))
            return live.solution()
        except SolverError:
            solution = solve(live.master.program, solver=solver, options=options)
    if solution.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt
    if solution.x is not None:
        return solution
    says = f"{solution.solver} says {solution.raw_status!r}"
    if solution.termination is Termination.INFEASIBLE and is_proven(solution):
        raise Infeasible(f"Nothing meets this request ({says}).")
    raise NotProven(f"{says} and returned no point.", bound=solution.bound)


def _in_columns(
    solution: Solution, columns: Callable[[Program, Label], Columns], label: Label
) -> tuple[Masses, Masses]:
    """(P, Q) of a comparison, as they stand in an answer."""
    assert solution.x is not None
    p, q = columns(solution.program, label)
    return np.maximum(solution.x[p], 0.0), np.maximum(solution.x[q], 0.0)


def _reached(solution: Solution, bound: float) -> bool:
    """Whether a solver's answer is an optimum by its bound."""
    value = solution.objective
    return value is not None and value - bound <= _CLOSE_ENOUGH * max(abs(value), 1e-9)


def _polished(
    claim: Claim,
    bounds: Mapping[Label, Sequence[Requirement]],
    state: Callable[[Mapping[Any, Sequence[Bound]]], Program],
    columns: Callable[[Program, Label], Columns],
    by: tuple[str, Options],
    reached: tuple[Solution, float | None],
) -> tuple[Solution, float | None]:
    """A conic answer and its bound, improved by linear programs where they do."""
    last, best = reached
    with translated_errors():
        program = state({label: [] for label in bounds})
        if program.moves or program.cones:
            return last, best
        tangents = Tangents(program, {label: columns(program, label) for label in bounds})
        answer, better = polish(
            last,
            tangents,
            {label: [*map(in_numbers, several)] for label, several in bounds.items()},
            lambda label, p, q: [*map(in_numbers, claim.notion.cuts(p, q, claim.at(label)))],
            lambda stated: _solved(stated, *by),
        )
    return answer, better if best is None or (better is not None and better > best) else best


def _solved(program: Program, solver: str, options: Options) -> Solution:
    cones = sum(len(cone.columns) for cone in program.cones)
    if cones > _CONES:
        InvalidRequest.must("the program", f"of at most {_CONES} cones", cones)
    if program.cones and solver == "highs":  # the default, which knows no cones
        solver = _CONIC
    tries = [options]
    if program.cones and backend(solver).label == _CONIC:  # what defeats it at one tolerance may be easy at the next
        tries = [replace(options, native={**dict.fromkeys(_NAMES, tolerance), **options.native}) for tolerance in _FINE]
    for options in tries:
        solution = solve(program, solver=solver, options=options)
        if solution.termination not in (Termination.NUMERICAL, Termination.ERROR):
            break
    if solution.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt
    return solution


def meets(privacy: Privacy, claim: Claim) -> bool:
    """Whether the exact audit meets a claim; a tight one may stay undecided."""
    try:
        return privacy.holds(claim)
    except NotProven:
        return False
