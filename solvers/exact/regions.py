"""The regions of the formulas of a parametric program: which x, and which δ, each of them is the optimum at.

    δ given    intervals of x, each with the basis that is optimal in it
    δ free     intervals of x, and in each the formulas F_1, F_2, ... of δ in their order, which meet at

                   δ_k(x):  F_k(x, δ_k) = F_k+1(x, δ_k)

For given x the optimum V is convex in δ. F_k <= V wherever the multipliers of its basis have the right signs, whatever
δ is; V <= F_k at δ_k-1 and δ_k where the points of the bases are feasible there, hence between them, as F_k is a chord
there: V = F_k for δ between, and the chord of the two points attains it. All of it is signs of polynomials in x around
a sample (`workbench.solvers.exact.polynomials`), and holds outside of poles, which are finitely many. The feasible
sets of the programs here only grow with x, so V falls, and at a pole, as at the end of a region, it is the limit that
both sides share. (Poles and ends are algebraic, and e^ε is not where ε is a rational but 0: no such ε is at one.)

The widest interval that is not yet covered is sampled inside, until nothing is left: regions are closed, and meet in
algebraic numbers that are compared exactly. A time limit leaves the regions that were found, and intervals that are
open; so does a sample for which no basis is proven.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key

from workbench.solvers.arrays import Ints
from workbench.solvers.errors import NoRationalSolution
from workbench.solvers.exact.parametric import Basis, ParametricProgram, Vertex
from workbench.solvers.exact.polynomials import (
    ZERO,
    Affine,
    Interval,
    Poly,
    Root,
    find_sign_interval,
    sign_at,
)
from workbench.solvers.search import Deadline

_TRIES = 16  # samples of one gap: the conditions of a basis may be just 0 at some
_REFINE = 4  # after so many

_DYADIC = 1 << 60

Ends = tuple[Root, Root | None]  # of an interval of x; None: it has no upper end


@dataclass(frozen=True)
class Formula:
    """One formula: the optimum for δ between the two functions of x (numbers, where δ is given or has an end).

    value: None where the program is infeasible; then the vertex is that of the least violation. start, vertex: their
    points are feasible at the lower and at the upper end of δ.
    """

    value: Affine | None
    low: Affine
    high: Affine
    start: Vertex
    vertex: Vertex

    def point(self, column: int) -> Affine:
        """A column of a solution that is optimal for every δ between the ends: the chord of those at the ends."""
        own, low, high = self.vertex.point[column], self.low, self.high
        first = self.start.point[column].substitute_delta(low.constant, low.denominator)
        if low == high or own.substitute_delta(low.constant, low.denominator) == first:
            return own.substitute_delta(low.constant, low.denominator) if low == high else own
        rise, run = own.substitute_delta(high.constant, high.denominator) - first, high - low
        slope = rise.multiply(run.denominator, run.constant)
        constant = first - slope.multiply(low.constant, low.denominator)
        return Affine.from_ratio(
            constant.constant * slope.denominator,
            slope.constant * constant.denominator,
            constant.denominator * slope.denominator,
        )


@dataclass(frozen=True)
class Region:
    """An interval of x, a rational within it, and its formulas, in the order of δ."""

    low: Root
    high: Root | None
    formulas: tuple[Formula, ...]
    sample: Fraction

    @property
    def ends(self) -> Ends:
        """The interval."""
        return self.low, self.high


Proposed = Callable[[ParametricProgram, Fraction, Fraction], Vertex | None]  # at x and δ


class InfeasiblePoint(NoRationalSolution):
    """Within an interval of δ there is a part, around this δ at this x, where the program is infeasible."""

    def __init__(self, x: Fraction, delta: Fraction) -> None:
        super().__init__(
            f"The program is infeasible at x = {float(x):g}, delta = {float(delta):g}."
        )
        self.x, self.delta = x, delta


class _BorderSample(Exception):
    """A condition is just 0 at the sample, and not everywhere, or it does not hold there."""


def find_regions(
    program: ParametricProgram,
    low: Fraction,
    high: Fraction | None,
    deltas: Interval,
    deadline: Deadline | None = None,
    progress: Callable[[Region], None] | None = None,
) -> tuple[list[Region], list[Ends]]:
    """The regions of an interval of x, by rising x, and what is open: after a time limit or Ctrl-C, or where no basis
    that a solver proposes is optimal in exact arithmetic.

    deltas: the interval of δ. Ctrl-C before the first region is a KeyboardInterrupt. Raises NoPoint; NoRationalSolution
    where there is no region at all.
    """
    done: list[Region] = []
    gaps = [(Root.from_rational(low), None if high is None else Root.from_rational(high))]
    left: list[Ends] = []
    try:
        while gaps and not (deadline and deadline.has_passed):
            gap = max(gaps, key=_interval_width)
            others = [other for other in gaps if other is not gap]
            try:
                region = _find_region_in_gap(program, gap, deltas)
            except NoRationalSolution as error:
                if isinstance(error, InfeasiblePoint) or not (done or others):
                    raise
                left, gaps = [*left, gap], others
                continue
            done, gaps = [*done, region], others + _subtract_region(gap, region)
            if progress is not None:
                progress(region)
    except KeyboardInterrupt:
        if not done:
            raise
    return sorted(done, key=lambda region: _root_order(region.low)), sorted(
        left + gaps, key=lambda gap: _root_order(gap[0])
    )


def _interval_width(gap: Ends) -> float:
    """Of an interval of x, as one of ε."""
    return math.inf if gap[1] is None else math.log(gap[1].high / gap[0].low)


_root_order = cmp_to_key(Root.compare)


def find_region_around(program: ParametricProgram, x: Fraction, deltas: Interval) -> Region:
    """The whole region of x > 1 around a rational. Raises NoRationalSolution."""
    return _find_region_of_samples(
        program,
        [x + Fraction(k, 1 << 60) for k in range(_TRIES)],
        (Root.from_rational(Fraction(1)), None),
        deltas,
    )


def build_region(
    program: ParametricProgram,
    bases: Sequence[Basis],
    x: Fraction,
    ends: Ends,
    deltas: Interval,
    *,
    feasible: bool = True,
) -> Region:
    """The region of given bases around a sample, within ends: the first is that of the least δ, the others one for
    every formula; without feasible ones those of the relaxed program. Raises NoRationalSolution where the conditions do
    not hold at the sample."""
    first, *others = map(program.compute_vertex, bases)
    if not feasible:
        if not first.value.with_delta(deltas[0]).constant:
            raise NoRationalSolution("The least violation is 0.")
        formulas, conditions = build_infeasible_formula(first, deltas[0])
    else:
        formulas, conditions = chain_formulas(
            [first, *others] if deltas[0] < deltas[1] else others, deltas
        )
        if len(formulas) != len(others):
            raise NoRationalSolution("The bases have other formulas than one each.")
    try:
        signs = _list_sign_polynomials(conditions, x)
    except _BorderSample:
        raise NoRationalSolution(
            f"A condition of a basis does not hold at x = {float(x):g}."
        ) from None
    return Region(*find_sign_interval(signs, x, *ends), formulas, x)


def _subtract_region(gap: Ends, region: Region) -> list[Ends]:
    """What of a gap a region leaves."""
    left: list[Ends] = []
    if region.low.compare(gap[0]) > 0:
        left.append((gap[0], region.low))
    if region.high is not None and (gap[1] is None or region.high.compare(gap[1]) < 0):
        left.append((region.high, gap[1]))
    return left


def _find_region_in_gap(program: ParametricProgram, gap: Ends, deltas: Interval) -> Region:
    """The region around a rational within a gap, cut to the gap."""
    return _find_region_of_samples(
        program, _iterate_samples(*gap, max(1, program.degree)), gap, deltas
    )


def _find_region_of_samples(
    program: ParametricProgram, samples: Iterable[Fraction], gap: Ends, deltas: Interval
) -> Region:
    """The region around the first sample that is on no border."""
    for k, sample in enumerate(samples):
        proposed = _propose_vertex if k < _REFINE else _refine_vertex
        x = sample if k < _REFINE else Fraction(round(sample * _DYADIC), _DYADIC)
        if not gap[0].is_below(x) or (gap[1] is not None and not gap[1].is_above(x)):
            continue
        try:
            formulas, conditions = _find_formulas(program, x, deltas, proposed)
            signs = _list_sign_polynomials(conditions, x)
        except _BorderSample:
            continue
        return Region(*find_sign_interval(signs, x, *gap), formulas, x)
    raise NoRationalSolution(
        f"No basis that the solver proposes is exactly optimal near x = {float(gap[0]):g}."
    )


def _iterate_samples(low: Root, high: Root | None, degree: int) -> Iterator[Fraction]:
    """Rationals inside an interval, of few digits; its harmonic middle first, as large x have small masses. degree: of
    x, whose powers are small numbers where it is near 1."""
    if high is None:
        low = low.refine_to(Fraction(1, degree))
        yield from (low.high + (low.high + Fraction(k, 7)) / degree for k in range(1, _TRIES))
        return
    while low.high >= high.low:
        low, high = low.halve(), high.halve()
    width = high.low - low.high
    for k in range(_TRIES):
        part = Fraction((2 * k + 1) % 17 or 8, 17) if k else low.high / (low.high + high.low)
        yield (low.high + part * width).limit_denominator(int(64 / width) + 1)


def _list_sign_polynomials(conditions: Sequence[Affine], x: Fraction) -> list[Poly]:
    """The different polynomials that must keep their sign. Raises _Touching."""
    signs: dict[Ints, Poly] = {}
    for condition in conditions:
        polynomial = condition.sign_polynomial
        if not polynomial:
            continue
        if sign_at(polynomial, x) <= 0:
            raise _BorderSample
        if polynomial.degree() > 0:
            signs.setdefault(tuple(map(int, polynomial.coeffs())), polynomial)
    return list(signs.values())


def _find_formulas(
    program: ParametricProgram, x: Fraction, deltas: Interval, proposed: Proposed
) -> tuple[tuple[Formula, ...], list[Affine]]:
    """The formulas for δ in an interval at a sample, and what must keep its sign around it."""
    first, last = deltas
    if first < last:
        return chain_formulas(_find_vertex_chain(program, x, deltas, proposed), deltas)
    vertex = proposed(program, x, first)
    if vertex is not None:
        return chain_formulas([vertex], deltas)
    violated = proposed(program.relaxation, x, first)
    if violated is None or violated.value(x, first) <= 0:
        raise _BorderSample  # the solver calls it infeasible, which it is not
    return build_infeasible_formula(violated, first)


def chain_formulas(
    vertices: Sequence[Vertex], deltas: Interval
) -> tuple[tuple[Formula, ...], list[Affine]]:
    """The formulas of vertices that are optimal one after the other for rising δ, and the conditions of that.

    Of the vertices of one formula the first must be optimal at its lower end only, and the last at its upper end.
    """
    low, last = (Affine.from_number(delta) for delta in deltas)
    if deltas[0] == deltas[1]:
        vertex = vertices[0]
        return (
            Formula(vertex.value.with_delta(deltas[0]), low, low, vertex, vertex),
        ), _optimality_conditions(vertex, deltas[0])
    runs = _group_by_formula(vertices)
    start, formulas = runs[0][0], []
    conditions = [condition.with_delta(deltas[0]) for condition in start.primal_conditions]
    for k, run in enumerate(runs):
        vertex = run[-1]
        high = find_meeting_delta(vertex.value, runs[k + 1][0].value) if k + 1 < len(runs) else last
        conditions += vertex.dual_conditions
        conditions += [
            condition.substitute_delta(high.constant, high.denominator)
            for condition in vertex.primal_conditions
        ]
        conditions.append(high - low)
        formulas.append(Formula(vertex.value, low, high, start, vertex))
        start, low = vertex, high
    return tuple(formulas), conditions


def build_infeasible_formula(
    violated: Vertex, delta: Fraction
) -> tuple[tuple[Formula, ...], list[Affine]]:
    """No formula, where the program is infeasible, and the conditions of that. violated: of the relaxed program."""
    end = Affine.from_number(delta)
    return (Formula(None, end, end, violated, violated),), [
        violated.value.with_delta(delta),
        *_optimality_conditions(violated, delta),
    ]


def _optimality_conditions(vertex: Vertex, delta: Fraction) -> list[Affine]:
    """What makes a basis optimal at a given δ."""
    return [
        *vertex.dual_conditions,
        *(condition.with_delta(delta) for condition in vertex.primal_conditions),
    ]


def find_meeting_delta(first: Affine, second: Affine) -> Affine:
    """The δ at which two formulas agree, a rational function of x."""
    constant = first.constant * second.denominator - second.constant * first.denominator
    return Affine.from_ratio(
        constant, ZERO, second.slope * first.denominator - first.slope * second.denominator
    )


def _group_by_formula(vertices: Sequence[Vertex]) -> list[list[Vertex]]:
    """Runs of one formula."""
    runs: list[list[Vertex]] = []
    for vertex in vertices:
        if runs and runs[-1][-1].value == vertex.value:
            runs[-1].append(vertex)
        else:
            runs.append([vertex])
    return runs


def _find_vertex_chain(
    program: ParametricProgram, x: Fraction, deltas: Interval, proposed: Proposed
) -> list[Vertex]:
    """The bases for δ in an interval at a sample, by rising δ; those that are known are tried before a solver is."""
    known = program.find_optimal_vertices(x, *deltas)
    chain = []
    gaps = [deltas]
    while gaps:
        low, high = gaps.pop()
        inside = [(max(least, low), min(most, high), vertex) for least, most, vertex in known]
        least, most, vertex = next(
            (part for part in inside if part[0] < part[1]), None
        ) or _find_optimal_vertex(program, x, (low, high), proposed)
        chain.append((least, vertex))
        gaps += [(a, b) for a, b in ((low, least), (most, high)) if a < b]
    return [vertex for _, vertex in sorted(chain, key=lambda item: item[0])]


def _find_optimal_vertex(
    program: ParametricProgram, x: Fraction, deltas: Interval, proposed: Proposed
) -> tuple[Fraction, Fraction, Vertex]:
    """A vertex that is feasible at x for a part of an interval of δ, with that part. Raises NoRationalSolution."""
    low, high = deltas
    for part in range(1, _TRIES):
        delta = low + (high - low) * Fraction((5 * part) % 16 or 1, 16)
        vertex = proposed(program, x, delta)
        if vertex is None:
            raise InfeasiblePoint(x, delta)
        least, most = vertex.feasible_deltas(x, low, high)
        if least < most:
            return least, most, vertex
    raise _BorderSample


def _propose_vertex(program: ParametricProgram, x: Fraction, delta: Fraction) -> Vertex | None:
    """That of the basis a solver proposes; None where the program is infeasible. Raises _Touching for no basis."""
    try:
        basis = program.propose_basis(x, delta)
        return None if basis is None else program.compute_vertex(basis)
    except NoRationalSolution:
        raise _BorderSample from None


def _refine_vertex(program: ParametricProgram, x: Fraction, delta: Fraction) -> Vertex | None:
    """The same, of rational refinement."""
    if _may_be_feasible(program, x, delta):
        return program.compute_vertex(program.refine_basis(x, delta))
    return None


def _may_be_feasible(program: ParametricProgram, x: Fraction, delta: Fraction) -> bool:
    """Whether a solver does not say otherwise."""
    try:
        return program.propose_basis(x, delta) is not None
    except NoRationalSolution:
        return True
