"""The regions of the formulas of a parametric program: which x, and which δ, each of them is the optimum at.

    δ given    intervals of x, each with the basis that is optimal in it
    δ free     intervals of x, and in each the formulas F_1, F_2, ... of δ in their order, which meet at

                   δ_k(x):  F_k(x, δ_k) = F_k+1(x, δ_k)

For given x the optimum V is convex in δ. F_k <= V wherever the multipliers of its basis have the right signs, whatever
δ is; V <= F_k at δ_k-1 and δ_k where the points of the bases are feasible there, hence between them, as F_k is a chord
there: V = F_k for δ between. All of it is signs of polynomials in x around a sample (`solvers.polynomials`).

What is not yet covered is sampled in its middle until nothing is left: regions are closed, and meet in algebraic
numbers that are compared exactly. A time limit leaves the regions that were found, and the intervals that are open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from .errors import NoRationalSolution
from .parametric import Parametric, Vertex
from .polynomials import ZERO, Affine, Poly, Root, interval_around, sign_at
from .search import Deadline

_TRIES = 16  # samples of one gap: the conditions of a basis may be just 0 at some

Ends = tuple[Root, Root | None]  # of an interval of x; None: it has no upper end


@dataclass(frozen=True)
class Formula:
    """One formula: the optimum for δ between the two functions of x (numbers, where δ is given or has an end).

    value: None where the program is infeasible; then the vertex is that of the least violation.
    """

    value: Affine | None
    low: Affine
    high: Affine
    vertex: Vertex


@dataclass(frozen=True)
class Region:
    """An interval of x and its formulas, in the order of δ."""

    low: Root
    high: Root | None
    formulas: tuple[Formula, ...]

    @property
    def ends(self) -> Ends:
        """The interval."""
        return self.low, self.high


class _Touching(Exception):
    """A condition is just 0 at the sample, and not everywhere."""


def regions(
    program: Parametric,
    low: Fraction,
    high: Fraction | None,
    deltas: tuple[Fraction, Fraction],
    deadline: Deadline | None = None,
    found: Callable[[Region], None] | None = None,
) -> tuple[list[Region], list[Ends]]:
    """The regions of an interval of x, by rising x, and what a time limit left open; deltas: the interval of δ.

    Raises NoRationalSolution: a basis is singular, or the solver's is not optimal in exact arithmetic.
    """
    done: list[Region] = []
    gaps: list[Ends] = [(Root.rational(low), None if high is None else Root.rational(high))]
    while gaps and not (deadline and deadline.passed):
        gap = gaps.pop(0)
        region = _sampled(program, gap, deltas)
        done.append(region)
        if found is not None:
            found(region)
        gaps = _without(gap, region) + gaps
    return sorted(done, key=lambda region: float(region.low)), gaps


def region_around(program: Parametric, x: Fraction, deltas: tuple[Fraction, Fraction]) -> Region:
    """The whole region of x > 1 around a rational. Raises NoRationalSolution."""
    return _region(
        program, [x + Fraction(k, 1 << 60) for k in range(_TRIES)], (Root.rational(Fraction(1)), None), deltas
    )


def _without(gap: Ends, region: Region) -> list[Ends]:
    """What of a gap a region leaves."""
    left: list[Ends] = []
    if region.low.against(gap[0]) > 0:
        left.append((gap[0], region.low))
    if region.high is not None and (gap[1] is None or region.high.against(gap[1]) < 0):
        left.append((region.high, gap[1]))
    return left


def _sampled(program: Parametric, gap: Ends, deltas: tuple[Fraction, Fraction]) -> Region:
    """The region around a rational within a gap, cut to the gap."""
    return _region(program, _between(*gap), gap, deltas)


def _region(program: Parametric, samples: Iterable[Fraction], gap: Ends, deltas: tuple[Fraction, Fraction]) -> Region:
    """The region around the first sample that is on no border."""
    for x in samples:
        try:
            formulas, conditions = _walked(program, x, deltas)
            signs = _signs(conditions, x)
        except _Touching:
            continue
        return Region(*interval_around(signs, x, *gap), formulas)
    raise NoRationalSolution(f"The conditions of some basis are 0 wherever it is tried, near x = {float(gap[0]):g}.")


def _between(low: Root, high: Root | None) -> Iterator[Fraction]:
    """Rationals inside an interval, of few digits, its middle first."""
    if high is None:
        yield from (2 * low.high + Fraction(k, 7) for k in range(1, _TRIES))
        return
    while low.high >= high.low:
        low, high = low.refined(), high.refined()
    width = high.low - low.high
    for k in range(_TRIES):
        part = Fraction((2 * k + 1) % 17 or 8, 17) if k else Fraction(1, 2)
        yield (low.high + part * width).limit_denominator(int(64 / width) + 1)


def _signs(conditions: Sequence[Affine], x: Fraction) -> list[Poly]:
    """The different polynomials that must keep their sign. Raises _Touching, NoRationalSolution."""
    signs: dict[tuple[int, ...], Poly] = {}
    for condition in conditions:
        polynomial = condition.sign_of
        if not polynomial:
            continue
        here = sign_at(polynomial, x)
        if here == 0:
            raise _Touching
        if here < 0:
            raise NoRationalSolution("The basis that the solver proposes is not optimal in exact arithmetic.")
        if polynomial.degree() > 0:
            signs.setdefault(tuple(map(int, polynomial.coeffs())), polynomial)
    return list(signs.values())


def _walked(
    program: Parametric, x: Fraction, deltas: tuple[Fraction, Fraction]
) -> tuple[tuple[Formula, ...], list[Affine]]:
    """The formulas for δ in an interval at a sample, and what must keep its sign around it."""
    first, last = deltas
    if first == last:
        vertex = _vertex(program, x, first)
        end = Affine.number(first)
        if vertex is None:
            violated = _infeasible(program.relaxed, x, first)
            return (Formula(None, end, end, violated),), [violated.value.at(first), *_conditions(violated, first)]
        return (Formula(vertex.value.at(first), end, end, vertex),), _conditions(vertex, first)
    runs = _by_formula(_vertices(program, x, first, last))
    conditions, formulas, low = [], [], Affine.number(first)
    conditions += [condition.at(first) for condition in runs[0][0].primal]
    for k, run in enumerate(runs):
        vertex = run[-1]
        if k + 1 < len(runs):
            high = meeting(vertex.value, runs[k + 1][0].value)
            p, q = high.constant, high.over
        else:
            high, p, q = Affine.number(last), *(Affine.number(last).constant, Affine.number(last).over)
        conditions += vertex.dual
        conditions += [condition.where(p, q) for condition in vertex.primal]
        conditions.append(high - low)
        formulas.append(Formula(vertex.value, low, high, vertex))
        low = high
    return tuple(formulas), conditions


def _conditions(vertex: Vertex, delta: Fraction) -> list[Affine]:
    """What makes a basis optimal at a given δ."""
    return [*vertex.dual, *(condition.at(delta) for condition in vertex.primal)]


def _infeasible(relaxed: Parametric, x: Fraction, delta: Fraction) -> Vertex:
    """The least violation of an infeasible program. Raises NoRationalSolution where that is 0."""
    vertex = _vertex(relaxed, x, delta)
    if vertex is None or vertex.value(x, delta) <= 0:
        raise NoRationalSolution(f"The solver calls the program infeasible at x = {float(x):g}, which it is not.")
    return vertex


def meeting(first: Affine, second: Affine) -> Affine:
    """The δ at which two formulas agree, a rational function of x."""
    constant = first.constant * second.over - second.constant * first.over
    slope = second.slope * first.over - first.slope * second.over
    return Affine.reduced(constant, ZERO, slope)


def _by_formula(vertices: Sequence[Vertex]) -> list[list[Vertex]]:
    """Runs of one formula."""
    runs: list[list[Vertex]] = []
    for vertex in vertices:
        if runs and runs[-1][-1].value == vertex.value:
            runs[-1].append(vertex)
        else:
            runs.append([vertex])
    return runs


def _vertices(program: Parametric, x: Fraction, first: Fraction, last: Fraction) -> list[Vertex]:
    """The bases for δ in an interval at a sample, by rising δ."""
    found: list[tuple[Fraction, Vertex]] = []
    gaps = [(first, last)]
    while gaps:
        low, high = gaps.pop()
        for part in range(1, _TRIES):
            delta = low + (high - low) * Fraction((5 * part) % 16 or 1, 16)
            vertex = _vertex(program, x, delta)
            if vertex is None:
                raise NoRationalSolution(f"The program is infeasible at x = {float(x):g}, delta = {float(delta):g}.")
            least, most = vertex.deltas_at(x, low, high)
            if least < most:
                break
        else:
            raise NoRationalSolution("The bases of the solver are not optimal in exact arithmetic.")
        found.append((least, vertex))
        gaps += [(a, b) for a, b in ((low, least), (most, high)) if a < b]
    return [vertex for _, vertex in sorted(found, key=lambda item: item[0])]


def _vertex(program: Parametric, x: Fraction, delta: Fraction) -> Vertex | None:
    """That of the basis a solver proposes; None where the program is infeasible."""
    basis = program.basis_at(x, delta)
    return None if basis is None else program.vertex(basis)
