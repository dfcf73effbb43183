"""The exact quantizer with optimised outputs: where its searches start, and why more outputs are never worse.

Outputs are found for 2, 3, ... outputs in turn, among all private unbiased laws on them (window_laws) or, by a metric,
those at knots (outputs). The searches for m of them start from

    the best m - 1 with one more, wherever it helps most        (m are never worse than m - 1, whose outputs then stay)
    even alphabets and nearly the inputs, as MVU's searches     (at large ε)
    outputs spread evenly and by powers
    of few a fixed sequence of random numbers, asymmetric       (ε = 2, four outputs: .694529, symmetric ones .700259)

Outputs are published in decimals, with the laws of the LP whose knots are equally spaced points, the outputs and the
inputs at which the best laws bend.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import compress

import numpy as np

from workbench.exact.numbers import Rationals
from workbench.families.quantizer.laws import (
    LawProblem,
    LawQuestion,
    QuantizerAnswer,
    list_knots,
    make_exact_problem,
    solve_exact_quantizer,
)
from workbench.families.quantizer.limit import compute_two_output_error
from workbench.families.quantizer.outputs import (
    LocalOptimum,
    draw_asymmetric_outputs,
    make_spread_starts,
    make_start_alphabets,
    merge_close_outputs,
    orient_outputs,
    search_best_outputs,
    widen_outermost_outputs,
)
from workbench.families.quantizer.window_laws import search_window_outputs
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.models.quantizer.program import default_reach
from workbench.questions.quantization import are_symmetric
from workbench.solvers.arrays import Vector

_RUNGS = (*range(2, 17), 24, 36, 54)  # numbers of outputs that are found on the way to more
_FEW, _RANDOM = 4, 8  # outputs up to which asymmetric random starts are made, and how many
_EVEN = 0.01  # how far outputs that are taken for symmetric ones are from being so
_BETTER = 1e-7  # of the value: what one more output must bring, else it is left out
_CLOSE = 1e-6  # of the value: how far above the search's a solve may end


def optimise_bins(
    levels: int,
    question: LawQuestion,
    *,
    reach: float | None = None,
    knots: int = 41,
    starts: int = 4,
) -> QuantizerAnswer | None:
    """The exact quantizer with at most `levels` optimised bins in [-reach, reach]; None when none was found.

    reach: the largest output allowed, by default twice the least feasible one, 2 (e^ε+1)/(e^ε-1): the mean absolute
    error keeps falling slightly as outermost bins go to infinity (their masses vanish), while the squared error grows
    without limit. knots: how many equally spaced ones; the bins inside are knots too.
    """
    limit = default_reach(question.float_epsilon) if reach is None else reach
    search = _OutputSearch(question, limit, knots, starts, repr(question.options))
    if search.reach > limit:
        return None
    best: LocalOptimum | None = None
    words: tuple[str, ...] = ()
    for m in (*(rung for rung in _RUNGS if rung < levels), levels):
        try:
            best = _best(search, m)
        except _TimeIsUp:
            outputs = 0 if best is None else best.outputs.size
            words = (
                f"The search over outputs ran out of time: {outputs} outputs of {levels} were found.",
            )
            break
    answer = None if best is None else search.published(best)
    return None if answer is None else replace(answer, notes=(*answer.notes, *words))


class _TimeIsUp(Exception):
    """The deadline of the question has passed; what is raised is not kept by a cache."""


@lru_cache(maxsize=256)  # a sweep asks for the same outputs again
def _best(search: _OutputSearch, m: int) -> LocalOptimum | None:
    """The best at most m outputs, after those of fewer. Raises _TimeIsUp where the search has not ended."""
    if m == 2:  # one law for every pair of outputs: the error falls with them to the least reach
        x, w = search.question.density.quadrature([0.0])
        value = compute_two_output_error(search.reach, search.question.loss, float(w @ x**2))
        return LocalOptimum(search.reach * (1 + 1e-12) * np.array([-1.0, 1.0]), value, ())
    last = _best(search, max(rung for rung in _RUNGS if rung < m))
    best = search.searched(m, last)
    better = best is not None and (last is None or best.value < last.value * (1 - _BETTER))
    return best if better else last


@dataclass(frozen=True)
class _OutputSearch:
    """What outputs are optimised for, all but their number. limit: the largest output; told: to the solver."""

    question: LawQuestion
    limit: float
    knots: int
    starts: int
    told: str

    @cached_property
    def excess(self) -> float:
        """What the least reach has beyond 1."""
        return self._problem(2).compute_reach_excess(self.question.float_epsilon)

    @property
    def reach(self) -> float:
        """The least that the outermost outputs reach."""
        return 1 + self.excess

    @property
    def digits(self) -> int:
        """Decimals of an outermost output: 1e-7 of what the least reach has beyond 1, at least 9."""
        return max(9, 7 - math.floor(math.log10(self.excess)))

    def searched(self, m: int, last: LocalOptimum | None) -> LocalOptimum | None:
        """The best from all starts, of laws at every input or, by a metric, at knots; last: of fewer outputs."""
        question, even = self.question, self.question.density.is_symmetric
        spread = [
            self._within(start)
            for start in make_spread_starts(m, question.float_epsilon, self.starts)
        ]
        begin = [] if last is None else [self._grown(last.outputs, m)]
        if even and question.metric is None:
            like = make_start_alphabets(m, question.float_epsilon, m, 0, self.limit)
            begin += [row for row in like if (np.diff(row) > 0).all()]
        if not even:
            mean = math.fsum(np.prod(question.density.quadrature([0.0]), axis=0))
            begin += [s + mean * (np.abs(s) < 0.9 * np.abs(s).max()) for s in spread]
        if m <= _FEW:
            rng = np.random.default_rng(m)
            begin += [
                draw_asymmetric_outputs(rng, m, (self.reach, self.limit), 1.0)
                for _ in range(_RANDOM)
            ]
        known = None
        if even and m > _FEW and question.metric is not None:
            known = self._local(m, spread, True)
            spread = []
            if (
                known is not None
            ):  # no longer symmetric: every inner gap a tenth longer or shorter in turn
                outputs = known.outputs
                spread = [
                    np.sort(outputs + np.resize((0.1, -0.1, 0.05), m) * np.diff(outputs).min())
                ]
        begin += spread if m <= _FEW else spread[-2:]
        best = self._local(m, begin, False)
        if best is None or not even:
            return best
        best = min(best, known or best, key=lambda optimum: optimum.value)
        folded = (best.outputs - best.outputs[::-1]) / 2
        if (
            question.metric is not None and np.abs(best.outputs - folded).max() < _EVEN
        ):  # half the coordinates
            best = min(
                best, self._local(m, [folded], True) or best, key=lambda optimum: optimum.value
            )
        turned = not np.array_equal(best.outputs, orient_outputs(best.outputs))
        return (
            replace(best, outputs=-best.outputs[::-1], bends=-best.bends[::-1]) if turned else best
        )

    def _local(self, m: int, begin: list[Vector], symmetric: bool) -> LocalOptimum | None:
        """The best from these starts."""
        question, limit, told = self.question, self.limit, self.question.progress
        if question.metric is None:
            return search_window_outputs(question, m, self._in_time(begin), limit, told)
        problem = self._problem(m)
        starts = self._in_time(begin)
        best = search_best_outputs(
            problem, question.float_epsilon, starts, symmetric=symmetric, limit=limit, progress=told
        )
        problem.close()
        return best

    def _in_time(self, starts: Iterable[Vector]) -> Iterator[Vector]:
        """The starts while there is time. Raises _TimeIsUp."""
        for start in starts:
            if self.question.deadline.has_passed:
                raise _TimeIsUp
            yield start

    def published(self, best: LocalOptimum) -> QuantizerAnswer | None:
        """The best answer at outputs in decimals."""
        answer = None
        for needed, there in self._proposed(best.outputs.copy()):
            if not needed and answer is not None and answer.objective <= best.value * (1 + _CLOSE):
                break
            solved = self.at(self._rounded(there), best)
            if solved is not None and (answer is None or solved.objective < answer.objective):
                answer = solved
        return answer

    def _proposed(self, outputs: Vector) -> Iterator[tuple[bool, Vector]]:
        """What is solved at the end of a search, and whether it is in any case."""
        if self.question.metric is not None:
            yield (
                True,
                widen_outermost_outputs(outputs, self._problem(2), self.question.float_epsilon)
                if outputs.size > 2
                else outputs,
            )
            return
        yield True, outputs
        # at large ε a cold solve may end above what the search saw; so close to the outputs another need not
        for share in (1e-6, 1e-5, 1e-4):
            wider = outputs.copy()
            wider[[0, -1]] += share * self.excess * np.array([-1.0, 1.0])
            yield False, self._within(wider)

    def _problem(self, m: int) -> LawProblem:
        """The LP over m outputs, on fixed knots."""
        knots = max(self.knots, 21) if self.question.metric is not None else self.knots
        return make_exact_problem(np.linspace(-1.0, 1.0, knots), m, self.question, symmetric=False)

    # Starts.

    def _grown(self, outputs: Vector, m: int) -> Vector:
        """Outputs with so many more that there are m: each where the LP then errs least."""
        while outputs.size < m:
            ends = np.concatenate([[-self.limit], outputs, [self.limit]])
            middles = ((ends[1:] + ends[:-1]) / 2)[:: -1 if outputs.sum() < 0 else 1]
            if self.question.density.is_symmetric and np.array_equal(
                outputs, -outputs[::-1]
            ):  # mirror images err alike
                middles = middles[: (middles.size + 1) // 2]
            values, problem = [], self._problem(outputs.size + 1)
            for at in self._in_time(middles):
                answer = problem.find_optimum(
                    self.question.float_epsilon, np.sort(np.append(outputs, at))
                )
                values.append(math.inf if answer is None else float(f"{answer.value:.9g}"))
            problem.close()
            outputs = np.sort(np.append(outputs, middles[int(np.argmin(values))]))
        return outputs

    def _within(self, outputs: Vector) -> Vector:
        """Outputs, none beyond the limit."""
        return np.clip(outputs, -self.limit, self.limit)

    # What is published.

    def _rounded(self, outputs: Vector) -> Rationals:
        """Outputs in decimals: outermost ones away from zero, since rounding must not lose feasibility."""
        outputs, _ = merge_close_outputs(outputs, np.ones((1, outputs.size)), 2e-6)
        low, high = -self._outermost(-outputs[0]), self._outermost(outputs[-1])
        inner = {Fraction(round(b * 10**9), 10**9) for b in outputs[1:-1].tolist()}
        return (low, *sorted(b for b in inner if low < b < high), high)

    def _outermost(self, output: float) -> Fraction:
        """To its digits: the next one away from zero, or the one before where that is beyond the limit."""
        unit = Fraction(1, 10**self.digits)
        rounded: Fraction = unit * math.ceil(output * 10**self.digits)
        return rounded - unit if rounded > self.limit and rounded - unit > self.reach else rounded

    def at(self, bins: Rationals, best: LocalOptimum) -> QuantizerAnswer | None:
        """The LP at these bins; outputs that are nowhere drawn need no name."""
        # without those that an output's knot replaces: pieces of 1e-7 are for no solver, and by a metric for no proof
        near = Fraction(1, 10**6 if self.question.metric is None else 10**3)
        bends = [
            Fraction(round(bend * 10**9), 10**9) for bend in best.bends.tolist() if abs(bend) < 1
        ]
        if self.question.density.is_symmetric and are_symmetric(bins):
            bends = [sign * bend for bend in bends if bend > near for sign in (-1, 1)]
        if self.question.metric is not None:  # MVU's inputs, whose law is then one of the program's
            bends = list_knots((), best.outputs.size)
        knots: list[Fraction] = []
        for knot in (*list_knots((), self.knots), *bends):
            if all(abs(other - knot) > near for other in knots) and all(
                b == knot or abs(b - knot) > near for b in bins
            ):
                knots.append(knot)
        answer = solve_exact_quantizer(bins, self.question, knots=knots)
        if answer is None:
            return None
        law = answer.quantizer
        used = law.matrix.max(axis=0) > 0
        if not used.all():
            law = Quantizer.from_ends(
                law.name, [*compress(bins, used)], law.knots, law.matrix[:, used]
            )
        return replace(answer, quantizer=law, start_values=best.start_values)
