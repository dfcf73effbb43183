"""The end of a convex program by linear ones: tangents of its bounds, cut at points between the program's answer and
each linear optimum (in-out separation, Ben-Ameur and Neto 2007).

A conic solver ends where its tolerances do, or sooner. From its answer on, every bound that a budget implies is stated
by tangents (`models.tangents`). Linear programs over them are relaxations whose bounds are exact, and their optima
approach the budget from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from models.requirements import Bound
from models.tangents import excess, tangent
from solvers.data import SMALLEST
from solvers.program import Program
from solvers.solution import Solution

Label = tuple[int, ...]
Vector = NDArray[np.float64]
Columns = tuple[NDArray[np.intp], NDArray[np.intp]]

_ROUNDS, _STAYS = 200, 4  # of linear programs; rounds that an unused tangent is kept
_AT_ONCE = 4  # bounds of one comparison, those that are broken most
_MET = 1e-12  # of a row
_EVEN = 1e-3  # of the masses that are the same everywhere, spread over all outcomes
_HALVINGS = 30  # of the way to an optimum
_INWARDS = 0.4  # of the way that is inside, by which the point inside follows
_AT_LAST = (0.0, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0)  # shares of the last way back inside
_GAIN, _IDLE, _SMALL = 1e-10, 3, 1e-6  # of a bound; rounds without it, when so little of the way is outside


@dataclass
class Tangents:
    """Rows a'P + b'Q <= limit of a program. columns: of P and Q of a comparison."""

    program: Program
    columns: Mapping[Label, Columns]
    rows: list[tuple[NDArray[np.intp], Vector, float]] = field(default_factory=list)
    unused: list[int] = field(default_factory=list)

    def add(self, label: Label, bound: Bound, laws: tuple[Vector, Vector], broken_by: tuple[Vector, Vector]) -> bool:
        """Add the tangent of a bound at laws (P, Q), if others break it."""
        a, b, limit = tangent(bound, *laws)
        if a @ broken_by[0] + b @ broken_by[1] <= limit:
            return False
        at = np.concatenate(self.columns[label])
        self.rows.append((at, np.concatenate([a, b]), limit))
        self.unused.append(0)
        return True

    def stated(self) -> Program:
        """The program with the rows."""
        data = self.program.template
        lengths = [at.size for at, _, _ in self.rows]
        entries = [part for _, part, _ in self.rows] or [np.zeros(0)]
        where = [at for at, _, _ in self.rows] or [np.zeros(0, dtype=np.intp)]
        shape = (len(lengths), data.c.size)
        more = sp.coo_array(
            (np.concatenate(entries), (np.repeat(np.arange(len(lengths)), lengths), np.concatenate(where))), shape
        )
        more.sum_duplicates()
        tiny = np.abs(more.data) < SMALLEST  # solvers drop them: beside masses of at most 1 the limits make up for it
        slack = np.bincount(more.row[tiny], np.abs(more.data[tiny]), len(lengths))
        more.data[tiny] = 0.0
        limits = np.array([limit for _, _, limit in self.rows]) + 2 * slack
        stacked = replace(
            data,
            A=sp.csc_array(sp.vstack([data.A, more])),
            row_lower=np.concatenate([data.row_lower, np.full(limits.size, -np.inf)]),
            row_upper=np.concatenate([data.row_upper, limits]),
        )
        stacked.A.eliminate_zeros()
        return replace(self.program, template=stacked)

    def equal_laws(self, x: Vector) -> Vector:
        """Masses near x that are the same in P and in Q of every comparison, none of them tiny: no notion has a bound
        that they break."""
        here, there = (np.concatenate([columns[k] for columns in self.columns.values()]) for k in (0, 1))
        size = self.program.shape[1]
        links = sp.coo_array((np.ones(here.size), (here, there)), (size, size))
        count, part = connected_components(links, directed=False)
        sums, sizes = np.bincount(part, x, count), np.bincount(part, minlength=count)
        same = (sums / sizes)[part]
        even = same.copy()
        for law in (law for pair in self.columns.values() for law in pair):
            even[law] = same[law].mean()
        return np.asarray((1 - _EVEN) * same + _EVEN * even)

    def completed(self, x: Vector, solve: Callable[[Program], Solution]) -> Vector:
        """Masses x with the columns that no comparison has, such as a largest loss, at their best beside them; x itself
        where none fit."""
        data = self.program.template
        compared = np.zeros(x.size, dtype=bool)
        for pair in self.columns.values():
            compared[np.concatenate(pair)] = True
        if compared.all():
            return x
        held = replace(data, lower=np.where(compared, x, data.lower), upper=np.where(compared, x, data.upper))
        beside = solve(replace(self.program, template=held)).x
        return x if beside is None else np.asarray(np.where(compared, x, beside[: x.size]))

    def nearest(self, within: Vector, optimum: Vector) -> Vector:
        """The point within the budget where it meets the rows of the program, else the optimum."""
        data, full = self.program.template, optimum.copy()
        full[: within.size] = within
        rows = data.A @ within
        off = max(np.max(rows - data.row_upper, initial=0.0), np.max(data.row_lower - rows, initial=0.0))
        return full if off <= _MET else optimum

    def forget(self, row_dual: Vector | None) -> None:
        """Leave out rows that had no multiplier for some rounds."""
        if row_dual is None:
            return
        used = row_dual[self.program.shape[0] :] != 0
        self.unused = [0 if use else count + 1 for use, count in zip(used, self.unused, strict=True)]
        kept = [k for k, count in enumerate(self.unused) if count <= _STAYS]
        self.rows, self.unused = [self.rows[k] for k in kept], [self.unused[k] for k in kept]


def row_columns(program: Program, pair: Label) -> Columns:
    """The columns of two rows of a channel M (k, m)."""
    block = program.block("M")
    rows = np.arange(block.start, block.start + block.size).reshape(block.shape, order="F")
    return rows[pair[0]], rows[pair[1]]


def polish(
    first: Solution,
    tangents: Tangents,
    bounds: Mapping[Label, Sequence[Bound]],
    more: Callable[[Label, Vector, Vector], Iterable[Bound]],
    solve: Callable[[Program], Solution],
) -> tuple[Solution, float | None]:
    """(the answer whose part within the budget costs least, the best bound; None where no linear program was solved).

    first: the answer to start from; bounds: of every comparison; more: those that laws break beyond these.
    """
    assert first.x is not None
    known = {label: [*several] for label, several in bounds.items()}
    x = first.x[: tangents.program.shape[1]]
    middle = tangents.completed(tangents.equal_laws(x), solve)
    share = _cut(tangents, known, more, middle, x)
    losses = tangents.program.template.c
    reached = middle + share * (x - middle)
    least = float(losses @ reached) if _meets(tangents, more, reached) else np.inf
    inside = middle + _INWARDS * share * (x - middle)
    best: float | None = None
    answer, last, idle, start = first, first, 0, middle
    for _ in range(_ROUNDS):
        solution = solve(tangents.stated())
        if solution.x is None:
            break
        last, x = solution, solution.x[: inside.size]
        gain = np.inf if best is None or solution.bound is None else solution.bound - best
        if solution.bound is not None and (best is None or solution.bound > best):
            best = solution.bound
        tangents.forget(solution.row_dual)
        before = len(tangents.rows)
        share = _cut(tangents, known, more, inside, x)
        start, reached = inside, inside + share * (x - inside)
        inside = inside + _INWARDS * share * (x - inside) if share else (inside + middle) / 2  # it breaks a new bound
        idle = idle + 1 if gain < _GAIN * max(abs(best or 0.0), 1e-9) else 0
        if losses @ reached < least and _meets(tangents, more, reached):
            answer, least = replace(solution, x=tangents.nearest(reached, solution.x)), float(losses @ reached)
        if len(tangents.rows) == before or (idle >= _IDLE and share > 1 - _SMALL):
            break
    if best is not None and least - best <= _SMALL * max(abs(best), 1e-9):
        return answer, best
    for inwards in _AT_LAST:  # what is outside by some digits
        moved = reached + inwards * (start - reached)
        if losses @ moved < least and _meets(tangents, more, moved):
            return replace(last, x=tangents.nearest(moved, _whole(last))), best
    return (answer if least < np.inf else replace(last, x=tangents.nearest(inside, _whole(last)))), best


def _whole(solution: Solution) -> Vector:
    """The answer, which there is."""
    assert solution.x is not None
    return solution.x


def _meets(tangents: Tangents, more: Callable[[Label, Vector, Vector], Iterable[Bound]], x: Vector) -> bool:
    """Whether laws break no more bounds of the budget."""
    return not any(more(label, *_laws(x, columns)) for label, columns in tangents.columns.items())


def _cut(
    tangents: Tangents,
    known: dict[Label, list[Bound]],
    more: Callable[[Label, Vector, Vector], Iterable[Bound]],
    inside: Vector,
    x: Vector,
) -> float:
    """Add tangents where the way from a point inside to an optimum leaves each bound; the share of the way that meets
    all of them."""
    least = 1.0
    for label, several in known.items():
        laws = [_laws(point, tangents.columns[label]) for point in (inside, x)]
        several += [bound for bound in more(label, *laws[1]) if bound not in several]
        broken = sorted(((excess(bound, *laws[1]), k) for k, bound in enumerate(several)), reverse=True)
        for bound in [several[k] for size, k in broken[:_AT_ONCE] if size > 0]:
            low, high = 0.0, 1.0
            for _ in range(_HALVINGS):
                middle = (low + high) / 2
                low, high = (low, middle) if excess(bound, *_between(laws, middle)) > 0 else (middle, high)
            least = min(least, low)
            if not tangents.add(label, bound, _between(laws, high), laws[1]):
                tangents.add(label, bound, laws[1], laws[1])
    return least


def _between(laws: Sequence[tuple[Vector, Vector]], share: float) -> tuple[Vector, Vector]:
    (p, q), (r, s) = laws
    return (1 - share) * p + share * r, (1 - share) * q + share * s


def _laws(x: Vector, columns: Columns) -> tuple[Vector, Vector]:
    p, q = columns
    return np.maximum(x[p], 0.0), np.maximum(x[q], 0.0)
