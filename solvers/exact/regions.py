"""Divide the (x, δ) plane into regions, with a proven formula of the optimum V(x, δ) in each.

V is the optimum of a `ParametricProgram` (`workbench.solvers.exact.parametric`).

    δ fixed    intervals of x, each with the basis that is optimal in it; for example the formula
               1/(1 + x) for x in [1, 3] and another one for x > 3
    δ free     intervals of x, each with its formulas F_1, F_2, ... in increasing order of δ. Two
               consecutive formulas meet at

                   δ_k(x):  F_k(x, δ_k) = F_k+1(x, δ_k)

Why this is correct. For a fixed x, V is convex in δ, and each F_k is affine in δ. If the
multipliers of a basis have the right signs, then F_k <= V for every δ. If a feasible point has the
value F_k at δ_k-1, and another at δ_k, then V <= F_k at both. By convexity V <= F_k between them.
So V = F_k there, and the chord of the two points is optimal.

All conditions are signs of polynomials in x around a sample
(`workbench.solvers.exact.polynomials`). They hold except at poles, which are finitely many. The
feasible sets of the programs here only grow with x, so V falls with x. At a pole, and at the end of
a region, V is the limit from both sides. (Poles and ends are algebraic numbers. If ε is rational
and not 0, e^ε is not algebraic, so no such ε lies at a pole or an end.)

The search takes a sample in the widest interval that is not yet covered, until all are covered.
Regions are closed, and meet in algebraic numbers that are compared exactly. At a time limit, or if
no basis is proven at the samples of an interval, the interval stays open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from workbench.solvers.arrays import Ints
from workbench.solvers.errors import NoRationalSolution
from workbench.solvers.exact.parametric import Basis, ParametricProgram, Vertex, VertexPart
from workbench.solvers.exact.polynomials import (
    ZERO,
    Affine,
    Interval,
    Poly,
    Root,
    find_sign_interval,
    root_sort_key,
    sign_at,
)
from workbench.solvers.search import Deadline

# A sample is useless if a condition of the basis is exactly 0 there. At most this number of samples
# is tried in each interval.
_MAX_SAMPLES = 16
_REFINED_FROM_SAMPLE = 4  # Bases come from rational refinement from this sample on.
# `ParametricProgram.refine_basis` takes an x whose denominator is a power of two, so its samples
# are rounded to multiples of 1 over this.
_DYADIC_DENOMINATOR = 1 << 60

Ends = tuple[Root, Root | None]  # The ends of an interval of x. None is infinity.


@dataclass(frozen=True)
class Formula:
    """The optimum for low <= δ <= high, where `low` and `high` are functions of x.

    Attributes:
        value: the optimum as a function of x and δ. None if the program is infeasible.
        low: lower end of δ, a function of x. It is a number at the lower end of the search.
        high: upper end of δ, a function of x. If δ is fixed, it is equal to `low`.
        start: vertex that is feasible at the lower end of δ.
        vertex: vertex that is feasible at the upper end of δ. If the program is infeasible, it is
            the vertex of the least violation.
    """

    value: Affine | None
    low: Affine
    high: Affine
    start: Vertex
    vertex: Vertex

    def point(self, column: int) -> Affine:
        """Return a column of a solution that is optimal for every δ between the ends.

        It is the chord of the points at the ends.

        Args:
            column: position of the column.
        """
        end_point = self.vertex.point[column]
        low = self.low
        high = self.high
        low_value = self.start.point[column].substitute_delta(low.constant, low.denominator)
        end_point_at_low = end_point.substitute_delta(low.constant, low.denominator)
        if low == high:
            return end_point_at_low
        if end_point_at_low == low_value:
            return end_point
        # The chord is constant + δ slope, where slope = (difference of the ends) / (high - low).
        rise = end_point.substitute_delta(high.constant, high.denominator) - low_value
        run = high - low
        slope = rise.multiply(run.denominator, run.constant)
        constant = low_value - slope.multiply(low.constant, low.denominator)
        return Affine.from_ratio(
            constant.constant * slope.denominator,
            slope.constant * constant.denominator,
            constant.denominator * slope.denominator,
        )


@dataclass(frozen=True)
class Region:
    """An interval of x with its formulas.

    Attributes:
        low: lower end of x.
        high: upper end of x, or None.
        formulas: formulas in increasing order of δ.
        sample: a rational inside the interval.
    """

    low: Root
    high: Root | None
    formulas: tuple[Formula, ...]
    sample: Fraction

    @property
    def ends(self) -> Ends:
        """Return the ends of x."""
        return self.low, self.high


Conditions = list[Affine]  # Functions of x that must not be negative in a region.
# Returns the optimal vertex at (x, δ), or None where the program is infeasible.
VertexFinder = Callable[[ParametricProgram, Fraction, Fraction], Vertex | None]


class InfeasiblePoint(NoRationalSolution):
    """The program is infeasible at a point inside the interval of δ.

    Attributes:
        x: value of x at the point.
        delta: value of δ at the point.
    """

    def __init__(self, x: Fraction, delta: Fraction) -> None:
        super().__init__(
            f"The program is infeasible at x = {float(x):g}, delta = {float(delta):g}."
        )
        self.x = x
        self.delta = delta


class _BorderSample(Exception):
    """The sample is useless: a condition is violated or 0 there (and not 0 everywhere)."""


def find_regions(
    program: ParametricProgram,
    low: Fraction,
    high: Fraction | None,
    deltas: Interval,
    deadline: Deadline | None = None,
    progress: Callable[[Region], None] | None = None,
) -> tuple[list[Region], list[Ends]]:
    """Find the regions of an interval of x.

    Args:
        program: the program with its parameters x and δ.
        low: lower end of x.
        high: upper end of x, or None for infinity.
        deltas: ends of δ.
        deadline: the search stops after it. None for no limit.
        progress: is called with every new region.

    Returns:
        The regions in increasing order of x, and the open intervals of x. Intervals are open after
        a time limit or Ctrl-C, or if no proposed basis is optimal in exact arithmetic.

    Raises:
        InfeasiblePoint: the program is infeasible for a part of the interval of δ.
        NoRationalSolution: no region was found.
        KeyboardInterrupt: Ctrl-C was pressed before the first region was found.
    """
    regions: list[Region] = []
    gaps = [(Root.from_rational(low), None if high is None else Root.from_rational(high))]
    unproven_gaps: list[Ends] = []
    try:
        while gaps and not (deadline and deadline.has_passed):
            gap = max(gaps, key=_interval_width)
            gaps_without = [other_gap for other_gap in gaps if other_gap is not gap]
            try:
                region = _find_region_in_gap(program, gap, deltas)
            except NoRationalSolution as error:
                has_no_region_left = not regions and not gaps_without
                if isinstance(error, InfeasiblePoint) or has_no_region_left:
                    raise
                unproven_gaps = [*unproven_gaps, gap]
                gaps = gaps_without
                continue
            # New lists are assigned, so that Ctrl-C never leaves a list half changed.
            regions = [*regions, region]
            gaps = gaps_without + _subtract_region(gap, region)
            if progress is not None:
                progress(region)
    except KeyboardInterrupt:
        if not regions:
            raise
    regions.sort(key=lambda region: root_sort_key(region.low))
    open_gaps = sorted(unproven_gaps + gaps, key=lambda gap: root_sort_key(gap[0]))
    return regions, open_gaps


def _interval_width(gap: Ends) -> float:
    """Return the width of an interval of x, as a difference of ln x."""
    low, high = gap
    if high is None:
        return math.inf
    return math.log(high.high / low.low)


def find_region_around(program: ParametricProgram, x: Fraction, deltas: Interval) -> Region:
    """Find the whole region of x > 1 around a rational.

    Args:
        program: the program with its parameters x and δ.
        x: the sample, a rational.
        deltas: ends of δ.

    Raises:
        NoRationalSolution: no proposed basis is optimal in exact arithmetic.
    """
    samples = [x + Fraction(k, _DYADIC_DENOMINATOR) for k in range(_MAX_SAMPLES)]
    ends = (Root.from_rational(Fraction(1)), None)
    return _find_region_of_samples(program, samples, ends, deltas)


def build_region(
    program: ParametricProgram,
    bases: Sequence[Basis],
    x: Fraction,
    ends: Ends,
    deltas: Interval,
    *,
    feasible: bool = True,
) -> Region:
    """Build the region of known bases around a sample, and prove it.

    Args:
        program: the program with its parameters x and δ. If `feasible` is False, it is the relaxed
            program.
        bases: the first is optimal at the lower end of δ, the others belong to one formula each.
        x: the sample.
        ends: the region is cut to these ends of x.
        deltas: ends of δ.
        feasible: whether the program is feasible in the region.

    Raises:
        NoRationalSolution: the conditions do not hold at the sample.
    """
    first, *vertices = map(program.compute_vertex, bases)
    if not feasible:
        if not first.value.with_delta(deltas[0]).constant:
            raise NoRationalSolution("The least violation is 0.")
        formulas, conditions = build_infeasible_formula(first, deltas[0])
    else:
        chain = [first, *vertices] if deltas[0] < deltas[1] else vertices
        formulas, conditions = chain_formulas(chain, deltas)
        if len(formulas) != len(vertices):
            raise NoRationalSolution("The bases have other formulas than one each.")
    try:
        polynomials = _list_sign_polynomials(conditions, x)
    except _BorderSample:
        raise NoRationalSolution(
            f"A condition of a basis does not hold at x = {float(x):g}."
        ) from None
    low, high = find_sign_interval(polynomials, x, *ends)
    return Region(low, high, formulas, sample=x)


def _subtract_region(gap: Ends, region: Region) -> list[Ends]:
    """Return the parts of a gap that a region does not cover."""
    gap_low, gap_high = gap
    uncovered_parts: list[Ends] = []
    if region.low.compare(gap_low) > 0:
        uncovered_parts.append((gap_low, region.low))
    if region.high is not None and (gap_high is None or region.high.compare(gap_high) < 0):
        uncovered_parts.append((region.high, gap_high))
    return uncovered_parts


def _find_region_in_gap(program: ParametricProgram, gap: Ends, deltas: Interval) -> Region:
    """Find the region around a rational within a gap, cut to the gap."""
    samples = _iterate_samples(*gap, max(1, program.degree))
    return _find_region_of_samples(program, samples, gap, deltas)


def _find_region_of_samples(
    program: ParametricProgram, samples: Iterable[Fraction], gap: Ends, deltas: Interval
) -> Region:
    """Find the region around the first sample that is on no border.

    Args:
        program: the program.
        samples: numbers x to try in this order. Those outside the gap are skipped.
        gap: the interval of x to which the region is cut.
        deltas: ends of δ.

    Raises:
        NoRationalSolution: no basis is proven optimal at a sample.
    """
    gap_low, gap_high = gap
    for k, sample in enumerate(samples):
        is_refined = k >= _REFINED_FROM_SAMPLE
        find_vertex = _refine_vertex if is_refined else _propose_vertex
        x = sample
        if is_refined:
            x = Fraction(round(sample * _DYADIC_DENOMINATOR), _DYADIC_DENOMINATOR)
        if not gap_low.is_below(x) or (gap_high is not None and not gap_high.is_above(x)):
            continue
        try:
            formulas, conditions = _find_formulas(program, x, deltas, find_vertex)
            polynomials = _list_sign_polynomials(conditions, x)
        except _BorderSample:
            continue
        low, high = find_sign_interval(polynomials, x, gap_low, gap_high)
        return Region(low, high, formulas, sample=x)
    raise NoRationalSolution(
        f"No basis that the solver proposes is exactly optimal near x = {float(gap_low):g}."
    )


def _iterate_samples(low: Root, high: Root | None, degree: int) -> Iterator[Fraction]:
    """Yield rationals of few digits inside an interval.

    The first sample of a finite interval is the harmonic mean of its ends, because masses are very
    small at large x. The others are multiples of 1/17 of the interval, in a mixed order.

    Args:
        low: lower end.
        high: upper end, or None for infinity. The samples are then near `low`.
        degree: degree of the program in x. The higher it is, the nearer samples are to `low`, so
            that the powers of x have few digits.
    """
    if high is None:
        low = low.refine_to(Fraction(1, degree))
        for k in range(1, _MAX_SAMPLES):
            yield low.high + (low.high + Fraction(k, 7)) / degree
        return
    while low.high >= high.low:
        low = low.halve()
        high = high.halve()
    width = high.low - low.high
    for k in range(_MAX_SAMPLES):
        if k == 0:
            share = low.high / (low.high + high.low)
        else:
            # The share 0, which is an end, is replaced.
            share = Fraction((2 * k + 1) % 17 or 8, 17)
        # The denominator stays small, so that exact arithmetic at the sample is fast.
        yield (low.high + share * width).limit_denominator(int(64 / width) + 1)


def _list_sign_polynomials(conditions: Sequence[Affine], x: Fraction) -> list[Poly]:
    """Return the different polynomials that must keep their sign. Raises _BorderSample."""
    polynomials: dict[Ints, Poly] = {}
    for condition in conditions:
        polynomial = condition.sign_polynomial
        if not polynomial:
            continue
        if sign_at(polynomial, x) <= 0:
            raise _BorderSample
        if polynomial.degree() > 0:
            key = tuple(map(int, polynomial.coeffs()))
            polynomials.setdefault(key, polynomial)
    return list(polynomials.values())


def _find_formulas(
    program: ParametricProgram, x: Fraction, deltas: Interval, find_vertex: VertexFinder
) -> tuple[tuple[Formula, ...], Conditions]:
    """Return the formulas for δ in `deltas` at the sample x = e^ε, and their conditions.

    `find_vertex` finds an optimal vertex of the program at x and one δ.
    """
    first, last = deltas
    if first < last:
        return chain_formulas(_find_vertex_chain(program, x, deltas, find_vertex), deltas)
    vertex = find_vertex(program, x, first)
    if vertex is not None:
        return chain_formulas([vertex], deltas)
    violation_vertex = find_vertex(program.relaxation, x, first)
    if violation_vertex is None or violation_vertex.value(x, first) <= 0:
        raise _BorderSample  # The solver calls the program infeasible, but it is feasible.
    return build_infeasible_formula(violation_vertex, first)


def chain_formulas(
    vertices: Sequence[Vertex], deltas: Interval
) -> tuple[tuple[Formula, ...], Conditions]:
    """Return the formulas of vertices that are optimal one after the other for increasing δ.

    Args:
        vertices: vertices in increasing order of δ. Several may have the same formula: the first of
            them must be optimal only at its lower end of δ, the last only at its upper end.
        deltas: ends of δ.

    Returns:
        The formulas, and the conditions under which they are optimal.
    """
    low_delta, high_delta = deltas
    low = Affine.from_number(low_delta)
    top = Affine.from_number(high_delta)
    if low_delta == high_delta:
        vertex = vertices[0]
        formula = Formula(
            vertex.value.with_delta(low_delta), low=low, high=low, start=vertex, vertex=vertex
        )
        return (formula,), _optimality_conditions(vertex, low_delta)
    runs = _group_by_formula(vertices)
    start = runs[0][0]
    formulas = []
    conditions = [condition.with_delta(low_delta) for condition in start.primal_conditions]
    for k, run in enumerate(runs):
        vertex = run[-1]
        high = top
        if k + 1 < len(runs):
            high = find_meeting_delta(vertex.value, runs[k + 1][0].value)
        conditions += vertex.dual_conditions
        for condition in vertex.primal_conditions:
            conditions.append(condition.substitute_delta(high.constant, high.denominator))
        conditions.append(high - low)
        formulas.append(Formula(vertex.value, low=low, high=high, start=start, vertex=vertex))
        start = vertex
        low = high
    return tuple(formulas), conditions


def build_infeasible_formula(
    violation_vertex: Vertex, delta: Fraction
) -> tuple[tuple[Formula, ...], Conditions]:
    """Return the formula without a value where the program is infeasible.

    Args:
        violation_vertex: the optimal vertex of the relaxed program.
        delta: the fixed δ.

    Returns:
        The formula, and the conditions under which the program is infeasible.
    """
    end = Affine.from_number(delta)
    conditions = [violation_vertex.value.with_delta(delta)]
    conditions += _optimality_conditions(violation_vertex, delta)
    return (
        Formula(value=None, low=end, high=end, start=violation_vertex, vertex=violation_vertex),
    ), conditions


def _optimality_conditions(vertex: Vertex, delta: Fraction) -> Conditions:
    """Return the conditions under which a vertex is optimal at a fixed δ."""
    conditions = [*vertex.dual_conditions]
    conditions += [condition.with_delta(delta) for condition in vertex.primal_conditions]
    return conditions


def find_meeting_delta(first: Affine, second: Affine) -> Affine:
    """Return the δ at which two formulas have the same value, a rational function of x.

    Args:
        first: a formula.
        second: another formula.
    """
    constant = first.constant * second.denominator - second.constant * first.denominator
    slope = second.slope * first.denominator - first.slope * second.denominator
    return Affine.from_ratio(constant, ZERO, slope)


def _group_by_formula(vertices: Sequence[Vertex]) -> list[list[Vertex]]:
    """Group consecutive vertices that have the same formula."""
    runs: list[list[Vertex]] = []
    for vertex in vertices:
        if runs and runs[-1][-1].value == vertex.value:
            runs[-1].append(vertex)
        else:
            runs.append([vertex])
    return runs


def _find_vertex_chain(
    program: ParametricProgram, x: Fraction, deltas: Interval, find_vertex: VertexFinder
) -> list[Vertex]:
    """Return the vertices for δ in `deltas` at the sample x = e^ε, in increasing order of δ.

    Vertices that were computed before are tried before the solver.
    """
    known_parts = program.find_optimal_vertices(x, *deltas)
    parts: list[VertexPart] = []
    gaps = [deltas]
    while gaps:
        low, high = gaps.pop()
        part = _find_known_vertex(known_parts, (low, high))
        if part is None:
            part = _find_optimal_vertex(program, x, (low, high), find_vertex)
        parts.append(part)
        if low < part.low:
            gaps.append((low, part.low))
        if part.high < high:
            gaps.append((part.high, high))
    parts.sort(key=lambda part: part.low)
    return [part.vertex for part in parts]


def _find_known_vertex(known_parts: Sequence[VertexPart], deltas: Interval) -> VertexPart | None:
    """Return the first known vertex that is optimal for a part of an interval, with that part."""
    low, high = deltas
    for known_part in known_parts:
        lowest = max(known_part.low, low)
        highest = min(known_part.high, high)
        if lowest < highest:
            return VertexPart(lowest, highest, known_part.vertex)
    return None


def _find_optimal_vertex(
    program: ParametricProgram, x: Fraction, deltas: Interval, find_vertex: VertexFinder
) -> VertexPart:
    """Return a vertex that is feasible at x for a part of an interval of δ, with that part.

    Raises:
        InfeasiblePoint: the program is infeasible at a sample of δ.
        _BorderSample: every sample gave a vertex that is feasible at one δ only, or at none.
    """
    low, high = deltas
    for k in range(1, _MAX_SAMPLES):
        # The samples are multiples of 1/16 of the interval in a mixed order: 5/16, 10/16, ...
        delta = low + (high - low) * Fraction((5 * k) % 16, 16)
        vertex = find_vertex(program, x, delta)
        if vertex is None:
            raise InfeasiblePoint(x, delta)
        feasible_deltas = vertex.feasible_deltas(x, low, high)
        if feasible_deltas is not None:
            return VertexPart(*feasible_deltas, vertex)
    raise _BorderSample


def _propose_vertex(program: ParametricProgram, x: Fraction, delta: Fraction) -> Vertex | None:
    """Return the vertex of the basis that a solver proposes at (x, δ).

    None if the solver calls the program infeasible. Raises _BorderSample if there is no basis.
    """
    try:
        basis = program.propose_basis(x, delta)
        return None if basis is None else program.compute_vertex(basis)
    except NoRationalSolution:
        raise _BorderSample from None


def _refine_vertex(program: ParametricProgram, x: Fraction, delta: Fraction) -> Vertex | None:
    """Return the vertex of the basis that rational refinement finds at (x, δ).

    None if the solver calls the program infeasible.
    """
    if _may_be_feasible(program, x, delta):
        return program.compute_vertex(program.refine_basis(x, delta))
    return None


def _may_be_feasible(program: ParametricProgram, x: Fraction, delta: Fraction) -> bool:
    """Return False if a solver calls the program infeasible."""
    try:
        return program.propose_basis(x, delta) is not None
    except NoRationalSolution:
        return True
