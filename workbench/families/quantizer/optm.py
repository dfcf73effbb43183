"""OPTM's search (Algorithm 2): over the bounds of q, and over bins, with proven pruning.

Slices. With one vector of two entries to bound (m <= 5 with the outer bins outside, any density) the bounds are
slices [l, l + width] of its first entry. A range of slices is discarded when even its optimistic LP (a relaxation of
every slice in it, models.optm) is worse than the best slice found: the result is that of the full search, tested so.

Larger m. Theorem 6's reduced LP on a grid of its three bounds gives a start; then all bounds are slices around the
incumbent (Theorem 5), recentred while it improves and narrowed when it does not. A local search: no bound is claimed.

Small ε, or nothing found. Both bounds of a slice enter one privacy constraint, so u/o <= e^ε is necessary: slices must
be thin in proportion to ε, and the mass of inner bins is itself of the order of ε (at two bins left of x, q_2(2) <=
about ε/2). Then slices are thin relative to q and their centres are RQM's selections: q = 0, which is two-point
randomized response on the outermost bins and private whenever any law on these bins is, and q in proportion to ε,
best of a geometric grid, then by golden section. That a law exists is thus never denied for want of a slice.

Every winner is a `two_bin` mechanism in exact rationals; its exact ε is the judge, and a design above the request is
mixed back or dropped by the caller.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from models.entrywise_program import EntrywiseProgram
from models.optm import Bounds, Key, TwoBinShape
from solvers.backend import Options, Session, backend
from solvers.solution import Solution
from workbench.families.outcome import translated_errors
from workbench.mechanisms.baselines.two_bin import rqm_selection, two_bin
from workbench.mechanisms.density import Density, uniform
from workbench.mechanisms.piecewise_affine import Quantizer

__all__ = [
    "Live",
    "OptmAnswer",
    "optm",
    "optm_thinner",
    "read_selection",
    "shape_of",
    "widths_for",
]

Vector = NDArray[np.float64]
Progress = Callable[[str], None]
WIDTHS = (0.01, 0.002, 0.0004)  # of slices: the paper's, then thinner where that leaves no solution
_SMALL = 0.1  # ε below which slices of the paper's width are too thick: q is resolved relative to ε
_THICKNESS = 1e-3  # of ε: how far ln q may be from the centre of a relative slice
_RATIO = 2.0  # between neighbouring centres
_CENTRES = 12
_FINE = 2.0**20  # at a small ε masses are small: in units of 2^-20 a tolerance of 1e-7 is 1e-13 of probability


@dataclass(frozen=True)
class OptmAnswer:
    """proxy: the upper bound on the MAE that the LP minimises, (8) halved; solution: of the winning LP;
    quantizer: the mechanism, exact; bounds: of the winning LP; lps: how many were solved."""

    proxy: float
    solution: Solution
    quantizer: Quantizer
    bounds: Bounds | None
    lps: int


def shape_of(bins: Sequence[Fraction], c: Fraction, density: Density) -> TwoBinShape:
    """The two-bin family on these bins, symmetric when bins and density are."""
    outputs = tuple(float(b) for b in bins)
    symmetric = density.symmetric and all(a == -b for a, b in zip(bins, reversed(bins), strict=True))
    half = float(c)
    inside = [b for b in outputs if -half < b < half]
    return TwoBinShape(outputs, half, tuple(density.masses([-half, *inside, half]).tolist()), symmetric)


class Live:
    """Sheets of one pattern on one live solver object. Sheets of another pattern open another."""

    def __init__(self, solver: str = "highs", options: Options | None = None, *, epsilon: float = 1.0) -> None:
        self.solver, self.options = solver, options or Options()
        self.scale = _FINE if epsilon < _SMALL else 1.0
        self._open: dict[tuple[object, ...], tuple[EntrywiseProgram, Session]] = {}
        self.solves = 0

    def solve(self, lp: EntrywiseProgram, pattern: tuple[object, ...], name: str) -> Solution:
        """The solver's answer. pattern: equal for programs written in the same way."""
        self.solves += 1
        with translated_errors():
            if pattern not in self._open:
                self._open[pattern] = lp, backend(self.solver).open(lp.program(name, scale=self.scale), self.options)
            first, session = self._open[pattern]
            return session.solve(lp.values(first))

    def close(self) -> None:
        """Give the solvers' resources back."""
        for _, session in self._open.values():
            session.close()
        self._open.clear()


def _pattern(shape: TwoBinShape, what: str) -> tuple[object, ...]:
    return (
        what,
        shape.m,
        shape.symmetric,
        tuple(j for j, _, _ in shape.pieces),
        tuple(-shape.c < b < shape.c for b in shape.bins),
    )


def _pair(low: float, high: float) -> tuple[Vector, Vector]:
    """The bounds that a slice [low, high] of the first of two entries means."""
    return np.array([low, 1 - high]), np.array([high, 1 - low])


def optm(
    bins: Sequence[Fraction],
    epsilon: Fraction,
    c: Fraction = Fraction(1),
    density: Density | None = None,
    *,
    width: float | None = 0.01,
    full: bool = False,
    hint: Bounds | None = None,
    live: Live | None = None,
) -> OptmAnswer | None:
    """The best two-bin mechanism by OPTM's LPs on these bins; None when no LP has a solution.

    width: slices are [k width, (k + 1) width] within [0, 1], k >= 1, or None for relative ones; full: solve all of
    them; hint: the bounds that won elsewhere, tried first (they change the work, not the result).
    """
    shape = shape_of(bins, c, density or uniform(float(c)))
    session = live or Live(epsilon=float(epsilon))
    before = session.solves
    wide = [key for key in shape.bounded if key[1] > 1]
    if not wide:
        solution = session.solve(shape.theorem5(float(epsilon), {}), _pattern(shape, "theorem 5"), "OPTM")
        won: tuple[Solution, Bounds] | None = (solution, {}) if solution.optimal else None
    elif width is None:
        won = _relative(shape, float(epsilon), session)
    elif len(wide) == 1 and wide[0][1] == 2:
        first = None if hint is None or wide[0] not in hint else float(hint[wide[0]][0][0])
        won = _slices(shape, float(epsilon), wide[0], width, full, first, session)
    else:
        won = _adaptive(shape, float(epsilon), session)
    lps = session.solves - before
    if live is None:
        session.close()
    if won is None:
        return None
    solution, bounds = won
    assert solution.objective is not None
    return OptmAnswer(solution.objective, solution, _mechanism(shape, bins, c, solution), bounds, lps)


def optm_thinner(
    bins: Sequence[Fraction],
    epsilon: Fraction,
    c: Fraction = Fraction(1),
    density: Density | None = None,
) -> OptmAnswer | None:
    """`optm` at the first of `widths_for` ε that gives a solution: a small ε, or bins just within reach, need thin
    slices."""
    for width in widths_for(epsilon):
        result = optm(bins, epsilon, c, density, width=width)
        if result is not None:
            return result
    return None


def widths_for(epsilon: Fraction) -> tuple[float | None, ...]:
    """The widths of slices to try in turn; None: relative ones."""
    return (None,) if epsilon < _SMALL else (*WIDTHS, None)


def _mechanism(shape: TwoBinShape, bins: Sequence[Fraction], c: Fraction, solution: Solution) -> Quantizer:
    assert solution.x is not None
    left, right = shape.selection(solution.x)
    return two_bin(list(bins), left, right, c=c, name="OPTM")


def _slices(
    shape: TwoBinShape,
    epsilon: float,
    key: Key,
    width: float,
    full: bool,
    first: float | None,
    live: Live,
) -> tuple[Solution, Bounds] | None:
    count = int(1 / width + 1e-9) - 1
    edges = width * np.arange(1, count + 2)
    best: tuple[float, Solution, Bounds] | None = None
    pattern = _pattern(shape, "theorem 5")

    def run(first: int, last: int, optimistic: bool) -> tuple[Solution, Bounds]:
        bounds = {key: _pair(float(edges[first]), float(edges[last]))}
        lp = shape.theorem5(epsilon, bounds, optimistic=optimistic)
        return live.solve(lp, pattern, "OPTM"), bounds

    def relax(parts: list[tuple[int, int]]) -> list[tuple[int, int, float]]:
        solutions = []
        for a, b in parts:
            relaxed, _ = run(a, b, True)
            if relaxed.optimal and relaxed.objective is not None:
                # 1e-9 covers the solver's tolerance: a slice is discarded only when it is clearly worse
                solutions.append((a, b, relaxed.objective - 1e-9))
        return sorted(solutions, key=lambda part: -part[2])

    stack = [(k, k + 1, -np.inf) for k in reversed(range(count))] if full else [(0, count, -np.inf)]
    if first is not None and not full:
        k = int(np.clip(round(first / width - 1), 0, count - 1))
        cuts = sorted({0, max(0, k - 1), k, k + 1, min(count, k + 2), count})
        parts = [part for part in pairwise(cuts) if part != (k, k + 1)]
        stack = [*[(a, b, -np.inf) for a, b in parts], (k, k + 1, -np.inf)]
    while stack:
        start, stop, bound = stack.pop()
        if best is not None and bound >= best[0]:
            continue
        if stop - start == 1:
            solution, bounds = run(start, stop, False)
            if solution.optimal and solution.objective is not None and (best is None or solution.objective < best[0]):
                best = solution.objective, solution, bounds
        elif bound == -np.inf and stop - start < count:
            stack += relax([(start, stop)])
        else:
            middle = (start + stop) // 2
            stack += relax([(start, middle), (middle, stop)])
    return None if best is None else (best[1], best[2])


def _relative(shape: TwoBinShape, epsilon: float, live: Live) -> tuple[Solution, Bounds] | None:
    """The best of thin slices around RQM's selections, q = 0 and q in proportion to tanh(ε/2)."""
    best: tuple[float, Solution, Bounds] | None = None
    spread = math.exp(_THICKNESS * min(epsilon, 1.0))

    def value(q: float) -> float:
        nonlocal best
        rows = rqm_selection(shape.m, Fraction(q))
        bounds: Bounds = {key: _thin(rows[key[1] - 1].floats, spread) for key in shape.bounded}
        solution = live.solve(shape.theorem5(epsilon, bounds), _pattern(shape, "theorem 5"), "OPTM")
        if not solution.optimal or solution.objective is None:
            return math.inf
        if best is None or solution.objective < best[0]:
            best = solution.objective, solution, bounds
        return solution.objective

    value(0.0)
    top = math.tanh(epsilon / 2)
    values = [value(top * _RATIO**-k) for k in range(-1, _CENTRES)]
    k = min(range(len(values)), key=values.__getitem__) - 1
    if min(values) < math.inf:
        _golden(value, top * _RATIO ** -(k + 1), min(1.0, top * _RATIO ** -(k - 1)))
    return None if best is None else (best[1], best[2])


def _thin(q: Vector, spread: float) -> tuple[Vector, Vector]:
    """Bounds around a selection: each entry within the factor `spread`, and so is each of what is left to 1."""
    far = (spread - 1) * np.minimum(q, 1 - q)
    return np.maximum(q - far, 0.0), np.minimum(q + far, 1.0)


def _golden(value: Callable[[float], float], low: float, high: float) -> None:
    """Golden section for the least value on [low, high], to a thousandth of it; `value` keeps the best point."""
    share = (math.sqrt(5) - 1) / 2
    left, right = high - share * (high - low), low + share * (high - low)
    at_left, at_right = value(left), value(right)
    while high - low > 1e-3 * high:
        if at_left <= at_right and at_left < math.inf:
            high, right, at_right = right, left, at_left
            left = high - share * (high - low)
            at_left = value(left)
        elif at_right < math.inf:
            low, left, at_left = left, right, at_right
            right = low + share * (high - low)
            at_right = value(right)
        else:  # neither has a law: smaller q have
            high = left
            left, right = high - share * (high - low), low + share * (high - low)
            at_left, at_right = value(left), value(right)


def _around(q: Vector, width: float) -> tuple[Vector, Vector]:
    return np.maximum(q - width, 0.0), np.minimum(q + width, 1.0)


def _adaptive(shape: TwoBinShape, epsilon: float, live: Live) -> tuple[Solution, Bounds] | None:
    """Slices of every bounded vector around the incumbent, from Theorem 6's best and from RQM."""
    best: tuple[float, Solution, Bounds] | None = None
    for start in _starts(shape, epsilon, live):
        here, width, value = start, 0.04, np.inf
        while width > 2e-4:
            bounds = {key: _around(here[key], width) for key in shape.bounded}
            solution = live.solve(shape.theorem5(epsilon, bounds), _pattern(shape, "theorem 5"), "OPTM")
            if solution.optimal and solution.objective is not None and solution.x is not None:
                if best is None or solution.objective < best[0]:
                    best = solution.objective, solution, bounds
                gain, value = value - solution.objective, min(value, solution.objective)
                here = {key: read_selection(shape, solution.x, key) for key in shape.bounded}
                if gain > 1e-4:
                    continue
            width /= 2
    return None if best is None else (best[1], best[2])


def read_selection(shape: TwoBinShape, x: Vector, key: Key) -> Vector:
    """One selection distribution of an LP's point, a distribution again."""
    first = shape.column[(*key, 1)]
    q = np.maximum(x[first : first + key[1]], 0.0)
    return np.asarray(q / q.sum())


def _starts(shape: TwoBinShape, epsilon: float, live: Live) -> Iterator[dict[Key, Vector]]:
    """Selections of the bounded vectors to start from: Theorem 6's best points, then RQM's at several q."""
    try:
        reduced = list(_theorem6(shape, epsilon, live))
    except ValueError:
        reduced = []
    for _, x in sorted(reduced, key=lambda pair: pair[0])[:1]:
        yield {key: read_selection(shape, x, key) for key in shape.bounded}
    for q in (0.03, 0.1, 0.2, 0.35, 0.5):
        rows = rqm_selection(shape.m, q)
        yield {key: rows[key[1] - 1].floats for key in shape.bounded}


def _theorem6(shape: TwoBinShape, epsilon: float, live: Live) -> Iterator[tuple[float, Vector]]:
    """(objective, point) of Theorem 6's LPs on a grid of its bounds."""
    pattern = _pattern(shape, "theorem 6")
    inside = [k for k in range(1, shape.m + 1) if -shape.c < shape.bins[k - 1] < shape.c]
    if len(inside) < 2:
        raise ValueError("Theorem 6 needs two bins inside.")
    uppers = (1.0,) if inside[0] == 2 else (0.1, 0.3, 0.6, 1.0)
    lasts = (0.0,) if inside[-1] == shape.m - 1 else (0.05, 0.15, 0.3, 0.5, 0.8)
    for u in uppers:
        for o_last in lasts:
            for before in np.arange(0.02, 1.0, 0.02 if len(uppers) == 1 else 0.06):
                lp = shape.theorem6(epsilon, u, float(before), o_last)
                solution = live.solve(lp, pattern, "OPTM (Theorem 6)")
                if solution.optimal and solution.objective is not None and solution.x is not None:
                    yield solution.objective, solution.x
