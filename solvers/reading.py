"""From what a run read off its solver to a Solution: in the units of the model, certificates checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .arrays import Vector
from .cones import Cones
from .data import Data
from .exchange import Raw
from .program import Program
from .solution import Later, PointStatus, Rest, Seconds, Solution, Termination, infeasible_by, unbounded_along

if TYPE_CHECKING:
    from .backend import Options

__all__ = ["SolverRun", "later", "proof", "solution"]


_TIGHT = 1e-9 * (1 + 1e-6)  # a MILP whose gap is no larger is optimal, else it stopped at the gap it was given


class SolverRun(NamedTuple):
    """Who answers and how. options: as asked; effective: in the solver's own names."""

    solver: str
    version: str
    options: Options
    effective: Mapping[str, Any]


def solution(program: Program, p: Vector, raw: Raw, held: Later, seconds: Seconds, run: SolverRun) -> Solution:
    """The answer to a program at the parameters p. held: the rest of it, by `later`."""
    scale, whole = program.scale, program.template.integrality
    x, bound, ray, notes = raw.x, raw.bound, raw.ray, raw.notes
    if scale != 1.0:
        if x is not None:
            x = np.where(whole, x, x / scale) if program.is_mip else x / scale
        # a direction of the columns; multipliers of rows, which come with every other termination, have no unit
        if ray is not None and raw.termination is Termination.UNBOUNDED:
            ray = np.where(whole, ray, ray / scale)
        bound = None if bound is None else bound / scale
    termination = raw.termination
    if termination is Termination.OPTIMAL and program.is_mip and raw.gap is not None and raw.gap > _TIGHT:
        termination = Termination.GAP_LIMIT
    if ray is not None and termination is not Termination.INFEASIBLE_OR_UNBOUNDED:
        ray = proof(program.at(p), termination, ray, program.cones)
        if ray is None:
            notes = (*notes, "the solver's certificate did not survive our check and was dropped")
    own = program.is_mip or raw.dual is PointStatus.NONE  # else the duals prove a bound
    return Solution(
        program=program,
        p=p,
        termination=termination,
        point=raw.point if x is not None else PointStatus.NONE,
        dual=raw.dual,
        x=x,
        later=held,
        native_bound=bound if own and bound is not None and np.isfinite(bound) else None,
        ray=ray,
        iterations=raw.iterations,
        nodes=raw.nodes,
        seconds=seconds,
        solver=run.solver,
        version=run.version,
        options=run.effective,
        seed=run.options.seed,
        threads=run.options.threads,
        start=raw.start,
        raw_status=raw.raw_status,
        notes=notes,
    )


def later(program: Program, rest: Rest | Callable[[], Rest] | None) -> Later:
    """The rest of an answer in unscaled units; what is still in the solver stays there until somebody asks."""
    whole, scale = program.template.integrality, program.scale

    def unscaled(rest: Rest) -> Rest:
        if scale == 1.0 or rest.reduced_cost is None:
            return rest
        return rest._replace(reduced_cost=np.where(whole, rest.reduced_cost / scale, rest.reduced_cost))

    if not callable(rest):
        return Later(None, None if rest is None else unscaled(rest))
    return Later((lambda: unscaled(rest())) if scale != 1.0 else rest)


def proof(data: Data, termination: Termination, ray: Vector, cones: Sequence[Cones] = ()) -> Vector | None:
    """The certificate with its right sign, if it is one."""
    largest = np.abs(ray).max(initial=0.0)
    if not 0 < largest < np.inf:
        return None
    unit: Vector = ray / largest
    proves: dict[Termination, tuple[int, Callable[[Data, Vector], bool]]] = {
        Termination.INFEASIBLE: (data.row_lower.size, partial(infeasible_by, cones=cones)),
        # a direction of a conic program would have to be checked in the cones: none is kept
        Termination.UNBOUNDED: (-1 if cones else data.c.size, unbounded_along),
    }
    size, holds = proves.get(termination, (-1, unbounded_along))
    if unit.size != size:
        return None
    return next((candidate for candidate in (unit, -unit) if holds(data, candidate)), None)
