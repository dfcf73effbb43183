"""The exact quantizer with optimised outputs: where its searches start, and why more outputs are never worse.

Outputs are found for 2, 3, ... outputs in turn. The searches for m of them start from

    the best m - 1 with one more, wherever it helps most        (so m are never worse than m - 1)
    the bins that the searches of OPTM and of RQM look at       (so neither errs less: the LP at their bins does not)
    even alphabets and nearly the inputs, as MVU's searches     (knots are its inputs too: its law is one of the LP's)
    outputs spread evenly and by powers, symmetric ones
    outputs of a fixed sequence of random numbers, asymmetric   (ε = 2, four outputs: .694815, symmetric ones .700295)
    the best m - 1 with one of them in two                      (squared error, ε = .1, three: 400.209, others 400.333)

A value counts at outputs as they are published, rounded to decimals, in the LP whose knots they are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from models.quantizer import usual_reach
from workbench.families.quantizer.law_program import QuantizerAnswer, exact_quantizer
from workbench.families.quantizer.law_question import LawQuestion
from workbench.families.quantizer.laws import LawProblem, exact_problem
from workbench.families.quantizer.mvu import alphabets, merged
from workbench.families.quantizer.output_knots import OutputKnots
from workbench.families.quantizer.outputs import Descents, LocalOptimum, best_outputs, oriented, spread_starts
from workbench.families.quantizer.published import rqm_bins
from workbench.families.quantizer.search import bin_grid
from workbench.mechanisms.piecewise_affine import Quantizer

__all__ = ["OutputSearch", "optimised_bins"]

Vector = NDArray[np.float64]
Progress = Callable[[str], None]

_EVERY, _FEW = 16, 4  # up to how many outputs are found one by one, and asymmetric random starts are made
_MANY = 10  # outputs above which one start is followed to the end
_NEAR, _LEAST = 0.01, 8e-7  # of what the least reach has beyond c: which outermost outputs are moved, and to where
_ROOM = 4e-6  # of the same: how far from the least reach a law by a metric, tight at every link, has room for a proof
_EVEN = 0.01  # of c, how far outputs that are taken for symmetric ones are from being so
_BETTER = 1e-8  # of the value: what one more output must bring, else it is left out


def optimised_bins(
    levels: int,
    question: LawQuestion,
    *,
    reach: float | None = None,
    knots: int = 41,
    starts: int = 4,
    progress: Progress = lambda line: None,
) -> QuantizerAnswer | None:
    """The exact quantizer with at most `levels` optimised bins in [-reach, reach]; None when none was found.

    reach: the largest output allowed, by default twice the least feasible one, 2 c (e^ε+1)/(e^ε-1): the mean absolute
    error keeps falling slightly as outermost bins go to infinity (their masses vanish), while the squared error grows
    without limit. knots: how many equally spaced ones; the bins inside are knots too.
    """
    limit = usual_reach(float(question.epsilon), float(question.c)) if reach is None else reach
    return OutputSearch(question, limit, knots, starts).best(levels, progress)


@dataclass(frozen=True)
class OutputSearch:
    """What outputs are optimised for, all but their number. limit: the largest output."""

    question: LawQuestion
    limit: float
    knots: int
    starts: int

    def best(self, levels: int, progress: Progress) -> QuantizerAnswer | None:
        """The best answer with at most so many outputs."""
        last: QuantizerAnswer | None = None
        for m in _ladder(levels) if self._reach <= self.limit else ():
            last = self._with(m, last, progress)
        return last

    def _with(self, m: int, last: QuantizerAnswer | None, progress: Progress) -> QuantizerAnswer | None:
        """The answer with at most m outputs, after that with fewer."""
        key = (self, repr(self.question.options), m)
        if key in _KNOWN:
            return _KNOWN[key]
        if m == 2:  # one law for every pair of outputs: the error falls with them to the least reach
            least = Fraction(math.ceil(self._reach * 10**self._digits * (1 + 1e-12)), 10**self._digits)
            answer = self._at(m, (-least, least))
        else:
            answer = self._searched(m, last, progress)
            if last is not None and (answer is None or not answer.objective < last.objective * (1 - _BETTER)):
                answer = last
        if len(_KNOWN) >= 256:
            _KNOWN.clear()
        _KNOWN[key] = answer
        return answer

    @cached_property
    def _excess(self) -> float:
        """What the least reach has beyond c."""
        return self._problem(2, symmetric=False).excess(float(self.question.epsilon), float(self.question.c))

    @property
    def _reach(self) -> float:
        return float(self.question.c) + self._excess

    @property
    def _digits(self) -> int:
        """Decimals of an outermost output: 1e-7 of what the least reach has beyond c, at least 9."""
        return max(9, 7 - math.floor(math.log10(self._excess / float(self.question.c))))

    def _searched(self, m: int, last: QuantizerAnswer | None, progress: Progress) -> QuantizerAnswer | None:
        half, eps, even = float(self.question.c), float(self.question.epsilon), self.question.density.symmetric
        free = self._problem(m, symmetric=False)
        places = [self._places(last, m)] if last is not None else []
        places += [_scan(free, eps, self._published(m))] if self.question.metric is None else []
        if self.question.metric is None and even:
            like = alphabets(m, eps, half, m, 0, self.limit)
            places += [_scan(free, eps, [row for row in like if (np.diff(row) > 0).all()])]
        begin = [start for place in places for start in place[: 2 if m <= _MANY else 1]]
        spread = [np.clip(start, -self.limit, self.limit) for start in spread_starts(m, eps, half, self.starts)]
        optima: list[LocalOptimum] = []
        descents = Descents() if m <= _FEW else Descents(first=10, leaders=2 if m <= _MANY else 1)

        def search(problem: LawProblem, starts: list[Vector], symmetric: bool) -> None:
            try:
                optima.append(
                    best_outputs(
                        problem,
                        eps,
                        half,
                        starts,
                        symmetric=symmetric,
                        limit=self.limit,
                        descents=descents,
                        progress=progress,
                    )
                )
            except ValueError:
                return

        if even and m > _FEW:
            folded = self._problem(m, symmetric=True)
            search(folded, spread, True)
            folded.close()
            begin += [_shaken(optima[0].outputs)] if optima else []
        else:
            begin += spread
        if not even:
            mean = math.fsum(np.prod(self.question.density.grid([0.0]), axis=0))
            begin += [s + mean * (np.abs(s) < 0.9 * np.abs(s).max()) for s in spread]
        if m <= _FEW:
            begin += [*_random(m, self._reach, half, self.limit, 2 * self.starts)]
            begin += _scan(free, eps, self._split(last, m))[:1]
        search(free, begin, False)
        free.close()
        if not optima:
            return None
        best = min(optima, key=lambda optimum: float(f"{optimum.value:.9g}"))
        folded_outputs = (best.outputs - best.outputs[::-1]) / 2
        if even and np.abs(best.outputs - folded_outputs).max() < _EVEN * half:  # half the coordinates: it ends nearer
            folded = self._problem(m, symmetric=True)
            search(folded, [folded_outputs], True)
            folded.close()
            best = min(optima, key=lambda optimum: optimum.value)
        outputs = oriented(best.outputs) if even else best.outputs
        starts = tuple(value for optimum in optima for value in optimum.starts)
        excess = self._excess
        if self.question.metric is not None:
            least = self._reach + _ROOM * excess
            outputs[[0, -1]] = min(outputs[0], -least), max(outputs[-1], least)
            return self._at(m, self._rounded(outputs), starts)
        answer = self._at(m, self._rounded(outputs), starts)
        nearest = outputs.copy()  # descents stop before outermost outputs that want to be at the least reach are
        for k, sign in ((0, -1.0), (-1, 1.0)):
            if abs(outputs[k]) < self._reach + _NEAR * excess:
                nearest[k] = sign * (self._reach + _LEAST * excess)
        nearer = self._at(m, self._rounded(nearest), starts) if (nearest != outputs).any() else None
        answers = [solved for solved in (answer, nearer) if solved is not None]
        # at large ε a cold solve may end above what the search saw; so close to the outputs another need not
        for share in (1e-6, 1e-5, 1e-4):
            if min((solved.objective for solved in answers), default=math.inf) <= best.value * (1 + _BETTER):
                break
            wider = outputs.copy()
            wider[[0, -1]] += share * excess * np.array([-1.0, 1.0])
            again = self._at(m, self._rounded(wider), starts)
            answers += [] if again is None else [again]
        return min(answers, key=lambda solved: solved.objective, default=None)

    def _problem(self, m: int, *, symmetric: bool) -> LawProblem:
        """The LP over m outputs; by distance its knots are fixed, and the laws continuous."""
        q, half = self.question, float(self.question.c)
        if q.metric is not None:
            even = np.linspace(-half, half, max(self.knots, 21))
            return exact_problem(
                even, m, q.density, q.loss, symmetric=symmetric, metric=q.metric, solver=q.solver, options=q.options
            )
        return OutputKnots(
            np.array([float(k) for k in self._even(m)]),
            m,
            q.density,
            q.loss,
            symmetric=symmetric,
            solver=q.solver,
            options=q.options,
        )

    def _even(self, m: int) -> list[Fraction]:
        """The fixed knots: equally spaced ones, and those of MVU with m outputs and inputs, whose law is then one of
        the program's."""
        c, counts = self.question.c, (max(self.knots, 2), m)
        return sorted({2 * c * Fraction(k, n - 1) - c for n in counts for k in range(n)})

    def _places(self, last: QuantizerAnswer, m: int) -> list[Vector]:
        """The outputs found before, with so many more that there are m: each where the LP then errs least."""
        outputs = last.quantizer.outputs
        while outputs.size < m:
            problem = self._problem(outputs.size + 1, symmetric=False)
            ends = np.concatenate([[-self.limit], outputs, [self.limit]])
            middles = ((ends[1:] + ends[:-1]) / 2)[:: -1 if outputs.sum() < 0 else 1]
            grown = [np.sort(np.append(outputs, at)) for at in middles]
            outputs = _scan(problem, float(self.question.epsilon), grown)[0]
            problem.close()
        return [outputs]

    def _split(self, last: QuantizerAnswer | None, m: int) -> list[Vector]:
        """The m - 1 outputs found before, each in turn in two: squared error at small ε asks for an outermost one."""
        if last is None or last.quantizer.outputs.size != m - 1:
            return []
        outputs, apart = last.quantizer.outputs, float(self.question.c) / 3 * np.array([-1.0, 1.0])
        two = [np.sort(np.append(np.delete(outputs, k), at + apart)) for k, at in enumerate(outputs.tolist())]
        return [np.clip(row, -self.limit, self.limit) for row in two]

    def _published(self, m: int) -> list[Vector]:
        """The bins that OPTM's and RQM's searches look at, within the limit."""
        grid = bin_grid(m, self.question.epsilon, self.question.c, self.question.density, self.limit)
        bins = [np.array([float(b) for b in row]) for row in grid]
        c, epsilon = float(self.question.c), self.question.epsilon
        bins += [c * np.array([float(b) for b in row]) for row in rqm_bins(m, epsilon)]
        return [row for row in bins if row[-1] <= self.limit]

    def _rounded(self, outputs: Vector) -> tuple[Fraction, ...]:
        """Outputs in decimals: outermost ones away from zero, since rounding must not lose feasibility."""
        outputs, _ = merged(outputs, np.ones((1, outputs.size)), 2e-6)
        far = 10**self._digits
        inner = {Fraction(round(b * 10**9), 10**9) for b in outputs[1:-1].tolist()}
        ends = -self._outermost(-outputs[0], far), self._outermost(outputs[-1], far)
        return (ends[0], *sorted(b for b in inner if ends[0] < b < ends[1]), ends[1])

    def _outermost(self, output: float, far: int) -> Fraction:
        """In multiples of 1/far: the next one away from zero, or the one before where that is beyond the limit."""
        rounded = Fraction(math.ceil(output * far), far)
        less = rounded - Fraction(1, far)
        return less if rounded > self.limit and less > self._reach else rounded

    def _at(self, m: int, bins: tuple[Fraction, ...], starts: tuple[float, ...] = ()) -> QuantizerAnswer | None:
        """The LP at these bins; outputs that are nowhere drawn need no name."""
        # without those that an output's knot replaces: pieces of 1e-7 are for no solver, and by a metric for no proof
        near = (Fraction(1, 10**6) if self.question.metric is None else Fraction(1, 10**3)) * self.question.c
        knots = [k for k in self._even(m) if all(b == k or abs(b - k) > near for b in bins[1:-1])]
        answer = exact_quantizer(bins, self.question, knots=knots)
        if answer is None:
            return None
        best = answer.quantizer
        used = best.matrix.max(axis=0) > 0
        if not used.all():
            kept = [b for b, keep in zip(bins, used, strict=True) if keep]
            best = Quantizer.from_ends(best.name, kept, best.knots, best.matrix[:, used].reshape(-1, 2, len(kept)))
        return QuantizerAnswer(answer.objective, answer.bound, best, answer.solution, starts)


_KNOWN: dict[tuple[OutputSearch, str, int], QuantizerAnswer | None] = {}  # a sweep asks for the same outputs again


def _ladder(levels: int) -> Iterator[int]:
    """2, 3, ..., 16, then half as many again each time, to levels."""
    m = 2
    while m < levels:
        yield m
        m = m + 1 if m < _EVERY else 3 * m // 2
    yield levels


def _scan(problem: LawProblem, epsilon: float, choices: list[Vector]) -> list[Vector]:
    """The two choices of outputs with the least values, of equal ones (nine digits) the first."""
    valued = []
    for outputs in choices:
        answer = problem.answer(epsilon, outputs)
        valued.append(math.inf if answer is None else float(f"{answer.value:.9g}"))
    order = sorted(range(len(choices)), key=lambda k: valued[k])
    return [choices[k] for k in order[:2]]


def _shaken(outputs: Vector) -> Vector:
    """Symmetric outputs, no longer symmetric: every inner gap a tenth longer or shorter in turn."""
    signs = np.array([s for s, _ in zip(itertools.cycle((0.1, -0.1, 0.05)), outputs, strict=False)])
    gap = np.diff(outputs).min() if outputs.size > 1 else 0.0
    return np.sort(outputs + signs * gap)


def _random(m: int, reach: float, c: float, limit: float, count: int) -> Iterator[Vector]:
    """Asymmetric outputs: outermost ones at most to the limit, inner ones uniform in [-c, c]."""
    rng = np.random.default_rng(m)
    for _ in range(count):
        far = reach + (limit - reach) * rng.random(2) ** 3
        yield np.concatenate([[-far[0]], np.sort(c * rng.uniform(-1, 1, m - 2)), [far[1]]])
