"""Solve the three linear programs of OPTM, each on a grid of its bounds or with given bounds.

A program needs bounds o <= q <= u on some selection probabilities (Cai et al. 2024, Algorithm 2;
`workbench.models.quantizer.two_bin` defines them).

method          program                                       bounds
optm            Theorem 5 with all pairs                      o and u of the bounded vectors
optm-theorem6   the reduced program of Theorem 6              u of q_{s-1}(s-1); o of q_{t-1}(1) and
                                                              of q_t(1)
optm-authors    that of the authors' public code, four bins   o and u of q_2(1)

The bins B_s < B_t are the ones in [-1, 1] nearest to -1 and 1. A bounded vector q_j of j entries
has bounds of its first j - 1 entries. Its entries sum to 1, which bounds the last one. Without
symmetry there is a left and a right vector, q^l_j and q^r_j.

The exact audit decides on every mechanism, because the authors' programs leave out comparisons that
ε-DP needs. Theorem 6 asks for more than ε-DP, and often has no solution. For example, its rows
q_2(1) <= q_2(2) and q_2(1)/(B_4 - B_3) >= q_1(1)/(B_4 - B_2) need B <= 3b for four bins ±b and ±B,
at every ε.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from workbench.errors import must
from workbench.exact.numbers import ONE, ZERO, Rationals
from workbench.exact.objects import Strings
from workbench.families.quantizer.laws import Bins, LawQuestion, QuantizerAnswer
from workbench.families.quantizer.optm import (
    ProgramOptimum,
    ProgramSolver,
    SliceSearch,
    make_optm_answer,
    make_two_bin_shape,
    solve_optm,
    solve_optm_with_thinner_slices,
)
from workbench.models.quantizer.authors_programs import (
    build_asymmetric_program,
    build_symmetric_program,
)
from workbench.models.quantizer.entrywise_program import EntrywiseProgram
from workbench.models.quantizer.two_bin import TwoBinShape, VectorBounds
from workbench.solvers.arrays import Vector

OPTM_METHODS = ("optm", "optm-theorem6", "optm-authors")

_AUTHORS_BIN_COUNT = 4
_AUTHORS_WIDTH = Fraction(1, 100)  # The slices of the authors' code have this width.
_AUTHORS_STEP = Fraction(1, 20)  # Their asymmetric search takes every slice at this distance.


@dataclass(frozen=True)
class OptmChoices:
    """The program of OPTM, and the bounds that the user chooses.

    Attributes:
        method: one of `OPTM_METHODS`.
        lower: the lower bounds o in the order of `name_bounds`. None: a grid, or all 0 if there are
            upper bounds.
        upper: the upper bounds u. None: a grid, or all 1 if there are lower bounds.
        width: the width of the slices [k width, (k + 1) width] of q_2(1). None: the paper's, or
            thinner ones if those have no solution.
    """

    method: str = "optm"
    lower: Rationals | None = None
    upper: Rationals | None = None
    width: Fraction | None = None

    @property
    def has_bounds(self) -> bool:
        """Return whether bounds are given, so that only one program is solved."""
        return self.lower is not None or self.upper is not None

    def check(self, bins: Bins | None, question: LawQuestion) -> None:
        """Check the choices for given bins.

        Args:
            bins: the outputs in increasing order, in units of c. None if they are searched.
            question: density of the law (see `LawQuestion`).

        Raises:
            InvalidRequest: a choice does not fit the program or the bins.
        """
        if bins is None:
            for name, value in (("lower_bound", self.lower), ("upper_bound", self.upper)):
                if value is not None:
                    must(name, "left out unless bins are given", _format_numbers(value))
            if self.method != "optm":
                must(
                    "method",
                    "optm, rqm or erm without bins (give bins for this method)",
                    self.method,
                )
            return
        shape = self._make_shape(bins, question)
        inner_count = len(shape.inner_bins)
        if self.method == "optm-theorem6" and (not shape.symmetric or inner_count < 2):
            rule = (
                "symmetric for method optm-theorem6, with at least two inside the inputs and a "
                "symmetric density"
            )
            must("bins", rule, _format_numbers(bins))
        if self.method == "optm-authors" and (len(bins), inner_count) != (_AUTHORS_BIN_COUNT, 2):
            rule = "four numbers for method optm-authors, two of them inside the inputs"
            must("bins", rule, _format_numbers(bins))
        self._check_bounds(shape)
        lengths = [length for _, length in shape.bounded_vectors]
        if self.width is not None and self.method == "optm" and lengths != [2]:
            rule = "left out unless q_2(1) alone needs bounds (up to five symmetric outputs)"
            must("slice_width", rule, float(self.width))

    def _check_bounds(self, shape: TwoBinShape) -> None:
        """Check the numbers of bounds, and that o <= u. Raises InvalidRequest."""
        lower_names, upper_names = name_bounds(self.method, shape)
        for name, values, targets in (
            ("lower_bound", self.lower, lower_names),
            ("upper_bound", self.upper, upper_names),
        ):
            if values is not None and len(values) != len(targets):
                targets_text = ", ".join(targets) or "no probability"
                rule = f"{len(targets)} numbers, one each for {targets_text}"
                must(name, rule, _format_numbers(values))
        if self.lower is None or self.upper is None or lower_names != upper_names:
            return
        for o, u, target in zip(self.lower, self.upper, lower_names, strict=True):
            if o > u:
                must("lower_bound", f"at most upper_bound for {target}", float(o))

    def _make_shape(self, bins: Bins, question: LawQuestion) -> TwoBinShape:
        """Make the two-bin family of the program.

        The authors' symmetric program is only for uniform inputs.
        """
        shape = make_two_bin_shape(bins, question.density)
        if self.method == "optm-authors" and question.density.shape is not None:
            return replace(shape, symmetric=False)
        return shape

    def solve(self, bins: Bins, question: LawQuestion) -> QuantizerAnswer | None:
        """Find the best mechanism of the program on given bins.

        Args:
            bins: the outputs in increasing order, in units of c.
            question: ε, density and solver. The loss is not used.

        Returns:
            The answer, without a lower bound. None if no program has a solution.

        Raises:
            NotProven: the time limit ended the search.
        """
        if self.method == "optm" and not self.has_bounds:
            if self.width is None:
                return solve_optm_with_thinner_slices(bins, question)
            return solve_optm(bins, question, width=float(self.width))
        shape = self._make_shape(bins, question)
        optimum: ProgramOptimum | None
        with closing(ProgramSolver(question)) as solver:
            if self.method == "optm-theorem6" and not self.has_bounds:
                search = SliceSearch(shape, question.float_epsilon, solver)
                optimum = search.find_theorem6_optimum()
            else:
                programs = self._list_programs(shape, question.float_epsilon)
                optima = [solver.solve(program) for program in programs]
                solved = [point for point in optima if point is not None]
                optimum = min(solved, key=lambda point: point.objective, default=None)
        if optimum is not None and self.method == "optm-authors":
            # The authors' programs minimise a multiple of (8), without its constant.
            error_bound = float(shape.losses @ optimum.x[: shape.size])
            optimum = optimum._replace(objective=error_bound)
        return make_optm_answer(bins, shape, optimum)

    def _list_programs(self, shape: TwoBinShape, epsilon: float) -> list[EntrywiseProgram]:
        """List the programs with given bounds, or those of the slices of the authors' code."""
        if self.has_bounds:
            lower_names, upper_names = name_bounds(self.method, shape)
            lower = self.lower or (ZERO,) * len(lower_names)
            upper = self.upper or (ONE,) * len(upper_names)
            if self.method == "optm":
                return [shape.theorem5(epsilon, _complete_bounds(shape, lower, upper))]
            if self.method == "optm-theorem6":
                (u,) = map(float, upper)
                o_before, o_last = map(float, lower)
                return [shape.theorem6(epsilon, u, o_before, o_last)]
            slices = [*zip(map(float, lower), map(float, upper), strict=True)]
            return [_build_authors_program(shape, epsilon, slices)]
        width = self.width or _AUTHORS_WIDTH
        step = width if shape.symmetric else _AUTHORS_STEP
        starts = [k * step for k in range(1, int(1 / step)) if k * step + width <= 1]
        slices = [(float(o), float(o + width)) for o in starts]
        if shape.symmetric:
            return [_build_authors_program(shape, epsilon, [part]) for part in slices]
        programs = []
        for left in slices:
            programs += [_build_authors_program(shape, epsilon, [left, right]) for right in slices]
        return programs


def name_bounds(method: str, shape: TwoBinShape) -> tuple[Strings, Strings]:
    """Name the probabilities that need a lower bound, and those that need an upper bound.

    Args:
        method: one of `OPTM_METHODS`.
        shape: the bins, pieces and selection distributions.
    """
    if method == "optm-theorem6":
        s = shape.inner_bins[0]
        t = shape.inner_bins[-1]
        return (f"q_{t - 1}(1)", f"q_{t}(1)"), (f"q_{s - 1}({s - 1})",)
    names = []
    keys = shape.bounded_vectors
    if method == "optm-authors" and not shape.symmetric:
        keys = [("l", 2), ("r", 2)]
    for side, size in keys:
        superscript = "" if shape.symmetric else f"^{side}"
        names += [f"q{superscript}_{size}({i})" for i in range(1, size)]
    return tuple(names), tuple(names)


def _complete_bounds(
    shape: TwoBinShape, lower: Sequence[Fraction], upper: Sequence[Fraction]
) -> VectorBounds:
    """Return the bounds of all entries of the bounded vectors.

    The sum of a vector is 1, so the bounds of the last entry follow from the others.
    """
    bounds = {}
    start = 0
    for key in shape.bounded_vectors:
        _, length = key
        stop = start + length - 1
        o = [*lower[start:stop], max(ZERO, 1 - sum(upper[start:stop], ZERO))]
        u = [*upper[start:stop], max(ZERO, 1 - sum(lower[start:stop], ZERO))]
        bounds[key] = (_to_vector(o), _to_vector(u))
        start = stop
    return bounds


def _build_authors_program(
    shape: TwoBinShape, epsilon: float, slices: Sequence[tuple[float, float]]
) -> EntrywiseProgram:
    """Build the program of the authors' code for a slice, or for a left and a right slice."""
    if shape.symmetric:
        return build_symmetric_program(shape, epsilon, *slices[0])
    return build_asymmetric_program(shape, epsilon, *slices)


def _to_vector(values: Sequence[Fraction]) -> Vector:
    """Return numbers as floats."""
    return np.array([float(value) for value in values])


def _format_numbers(values: Sequence[Fraction]) -> str:
    """Format numbers for an error message."""
    return ", ".join(f"{float(value):g}" for value in values)
