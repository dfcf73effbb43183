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

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import compress

import numpy as np

from models.quantizer import usual_reach
from solvers.arrays import Vector
from workbench.exact.numbers import Rationals
from workbench.families.quantizer.laws import (
    LawProblem,
    LawQuestion,
    OutputKnots,
    QuantizerAnswer,
    exact_problem,
    exact_quantizer,
    knots_of,
)
from workbench.families.quantizer.outputs import (
    Descents,
    LocalOptimum,
    alphabets,
    asymmetric,
    best_outputs,
    merged,
    oriented,
    spread_starts,
)
from workbench.families.quantizer.search import bin_grid, rqm_bins
from workbench.mechanisms.piecewise_affine import Quantizer

_RUNGS = (*range(2, 17), 24, 36, 54)  # numbers of outputs that are found on the way to more
_FEW = 4  # outputs up to which asymmetric random starts are made
_MANY = 10  # outputs above which one start is followed to the end
_NEAR, _LEAST = 0.01, 8e-7  # of what the least reach has beyond 1: which outermost outputs are moved, and to where
_ROOM = 4e-6  # of the same: how far from the least reach a law by a metric, tight at every link, has room for a proof
_EVEN = 0.01  # how far outputs that are taken for symmetric ones are from being so
_BETTER = 1e-8  # of the value: what one more output must bring, else it is left out


def optimised_bins(
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
    limit = usual_reach(question.budget) if reach is None else reach
    search = _OutputSearch(question, limit, knots, starts, repr(question.options))
    return _best(search, levels) if search.reach <= limit else None


@lru_cache(maxsize=256)  # a sweep asks for the same outputs again
def _best(search: _OutputSearch, m: int) -> QuantizerAnswer | None:
    """The best answer with at most m outputs, after that with fewer."""
    if m == 2:  # one law for every pair of outputs: the error falls with them to the least reach
        least = Fraction(math.ceil(search.reach * 10**search.digits * (1 + 1e-12)), 10**search.digits)
        return search.at(m, (-least, least), ())
    last = _best(search, max(rung for rung in _RUNGS if rung < m))
    answer = search.searched(m, last)
    better = answer is not None and (last is None or answer.objective < last.objective * (1 - _BETTER))
    return answer if better else last


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
        return self._problem(2, symmetric=False).excess(self.question.budget)

    @property
    def reach(self) -> float:
        """The least that the outermost outputs reach."""
        return 1 + self.excess

    @property
    def digits(self) -> int:
        """Decimals of an outermost output: 1e-7 of what the least reach has beyond 1, at least 9."""
        return max(9, 7 - math.floor(math.log10(self.excess)))

    def searched(self, m: int, last: QuantizerAnswer | None) -> QuantizerAnswer | None:
        """The best answer from all starts; last: with fewer outputs."""
        even, free = self.question.density.symmetric, self._problem(m, symmetric=False)
        descents = Descents() if m <= _FEW else Descents(first=10, leaders=2 if m <= _MANY else 1)
        optima: list[LocalOptimum] = []

        def search(starts: list[Vector], symmetric: bool) -> None:
            problem = self._problem(m, symmetric=True) if symmetric else free
            optimum = best_outputs(
                problem,
                self.question.budget,
                starts,
                symmetric=symmetric,
                limit=self.limit,
                descents=descents,
                progress=self.question.progress,
            )
            if optimum is not None:
                optima.append(optimum)
            problem.close()

        spread = [self._within(start) for start in spread_starts(m, self.question.budget, self.starts)]
        begin = self._known_starts(free, last)
        if even and m > _FEW:
            search(spread, True)
            begin += [_shaken(optimum.outputs) for optimum in optima]
        else:
            begin += spread
        if not even:
            mean = math.fsum(np.prod(self.question.density.grid([0.0]), axis=0))
            begin += [s + mean * (np.abs(s) < 0.9 * np.abs(s).max()) for s in spread]
        if m <= _FEW:
            rng = np.random.default_rng(m)
            begin += [asymmetric(rng, m, (self.reach, self.limit), 1.0) for _ in range(2 * self.starts)]
            begin += self._scan(free, self._split(last, m))[:1]
        search(begin, False)
        if not optima:
            return None
        best = min(optima, key=lambda optimum: float(f"{optimum.value:.9g}"))
        folded = (best.outputs - best.outputs[::-1]) / 2
        if even and np.abs(best.outputs - folded).max() < _EVEN:  # half the coordinates: it ends nearer
            search([folded], True)
            best = min(optima, key=lambda optimum: optimum.value)
        starts = tuple(value for optimum in optima for value in optimum.starts)
        return self._published(m, replace(best, outputs=oriented(best.outputs) if even else best.outputs), starts)

    def _published(self, m: int, best: LocalOptimum, starts: tuple[float, ...]) -> QuantizerAnswer | None:
        """The best answer at outputs in decimals."""
        answer: QuantizerAnswer | None = None
        for needed, there in self._proposed(best.outputs):
            if not needed and answer is not None and answer.objective <= best.value * (1 + _BETTER):
                break
            solved = self.at(m, self._rounded(there), starts)
            if solved is not None and (answer is None or solved.objective < answer.objective):
                answer = solved
        return answer

    def _proposed(self, outputs: Vector) -> Iterator[tuple[bool, Vector]]:
        """What is solved at the end of a search, and whether it is in any case."""
        if self.question.metric is not None:
            least = self.reach + _ROOM * self.excess
            outputs[[0, -1]] = min(outputs[0], -least), max(outputs[-1], least)
            yield True, outputs
            return
        yield True, outputs
        nearest = outputs.copy()  # descents stop before outermost outputs that want to be at the least reach are
        for k, sign in ((0, -1.0), (-1, 1.0)):
            if abs(outputs[k]) < self.reach + _NEAR * self.excess:
                nearest[k] = sign * (self.reach + _LEAST * self.excess)
        if (nearest != outputs).any():
            yield True, nearest
        # at large ε a cold solve may end above what the search saw; so close to the outputs another need not
        for share in (1e-6, 1e-5, 1e-4):
            wider = outputs.copy()
            wider[[0, -1]] += share * self.excess * np.array([-1.0, 1.0])
            yield False, wider

    def _problem(self, m: int, *, symmetric: bool) -> LawProblem:
        """The LP over m outputs; by distance its knots are fixed, and the laws continuous."""
        if self.question.metric is not None:
            return exact_problem(np.linspace(-1.0, 1.0, max(self.knots, 21)), m, self.question, symmetric=symmetric)
        return OutputKnots(np.array(self._even(m), dtype=float), m, self.question, symmetric=symmetric)

    def _even(self, m: int) -> list[Fraction]:
        """The fixed knots: equally spaced ones, and those of MVU with m outputs and inputs, whose law is then one of
        the program's."""
        return sorted({*knots_of((), self.knots), *knots_of((), m)})

    # Starts.

    def _known_starts(self, free: LawProblem, last: QuantizerAnswer | None) -> list[Vector]:
        """The best of each: outputs found before and one more, published bins, MVU's alphabets."""
        m, q, scans = free.outputs, self.question, []
        begin = [] if last is None else [self._grown(last.quantizer.outputs, m)]
        if q.metric is None:
            rows = [np.array(bins, dtype=float) for bins in (*bin_grid(m, q, self.limit), *rqm_bins(m, q.epsilon))]
            scans.append([row for row in rows if row[-1] <= self.limit])
        if q.metric is None and q.density.symmetric:
            like = alphabets(m, q.budget, m, 0, self.limit)
            scans.append([row for row in like if (np.diff(row) > 0).all()])
        return begin + [start for rows in scans for start in self._scan(free, rows)[: 2 if m <= _MANY else 1]]

    def _scan(self, problem: LawProblem, choices: list[Vector]) -> list[Vector]:
        """The two choices of outputs with the least values, of equal ones (nine digits) the first."""
        values = []
        for outputs in choices:
            answer = problem.answer(self.question.budget, outputs)
            values.append(math.inf if answer is None else float(f"{answer.value:.9g}"))
        return [choices[k] for k in np.argsort(values, kind="stable")[:2]]

    def _grown(self, outputs: Vector, m: int) -> Vector:
        """Outputs with so many more that there are m: each where the LP then errs least."""
        while outputs.size < m:
            problem = self._problem(outputs.size + 1, symmetric=False)
            ends = np.concatenate([[-self.limit], outputs, [self.limit]])
            middles = ((ends[1:] + ends[:-1]) / 2)[:: -1 if outputs.sum() < 0 else 1]
            outputs = self._scan(problem, [np.sort(np.append(outputs, at)) for at in middles])[0]
            problem.close()
        return outputs

    def _split(self, last: QuantizerAnswer | None, m: int) -> list[Vector]:
        """The m - 1 outputs found before, each in turn in two: squared error at small ε asks for an outermost one."""
        if last is None or last.quantizer.outputs.size != m - 1:
            return []
        outputs, apart = last.quantizer.outputs, 1 / 3 * np.array([-1.0, 1.0])
        two = [np.sort(np.append(np.delete(outputs, k), at + apart)) for k, at in enumerate(outputs.tolist())]
        return [self._within(row) for row in two]

    def _within(self, outputs: Vector) -> Vector:
        """Outputs, none beyond the limit."""
        return np.clip(outputs, -self.limit, self.limit)

    # What is published.

    def _rounded(self, outputs: Vector) -> Rationals:
        """Outputs in decimals: outermost ones away from zero, since rounding must not lose feasibility."""
        outputs, _ = merged(outputs, np.ones((1, outputs.size)), 2e-6)
        low, high = -self._outermost(-outputs[0]), self._outermost(outputs[-1])
        inner = {Fraction(round(b * 10**9), 10**9) for b in outputs[1:-1].tolist()}
        return (low, *sorted(b for b in inner if low < b < high), high)

    def _outermost(self, output: float) -> Fraction:
        """To its digits: the next one away from zero, or the one before where that is beyond the limit."""
        unit = Fraction(1, 10**self.digits)
        rounded: Fraction = unit * math.ceil(output * 10**self.digits)
        return rounded - unit if rounded > self.limit and rounded - unit > self.reach else rounded

    def at(self, m: int, bins: Rationals, starts: tuple[float, ...]) -> QuantizerAnswer | None:
        """The LP at these bins; outputs that are nowhere drawn need no name."""
        # without those that an output's knot replaces: pieces of 1e-7 are for no solver, and by a metric for no proof
        near = Fraction(1, 10**6 if self.question.metric is None else 10**3)
        knots = [k for k in self._even(m) if all(b == k or abs(b - k) > near for b in bins[1:-1])]
        answer = exact_quantizer(bins, self.question, knots=knots)
        if answer is None:
            return None
        best = answer.quantizer
        used = best.matrix.max(axis=0) > 0
        if not used.all():
            best = Quantizer.from_ends(best.name, [*compress(bins, used)], best.knots, best.matrix[:, used])
        return replace(answer, quantizer=best, starts=starts)


def _shaken(outputs: Vector) -> Vector:
    """Symmetric outputs, no longer symmetric: every inner gap a tenth longer or shorter in turn."""
    return np.sort(outputs + np.resize((0.1, -0.1, 0.05), outputs.size) * np.diff(outputs).min())
