"""Find the outputs of the exact quantizer with the smallest loss, for 2, 3, ... outputs in turn.

`optimise_bins` answers: which outputs (at most `levels`), with which private unbiased laws, have
the smallest expected loss? The search is local: it does not prove that the outputs are optimal.

Terms. A law is the distribution of the output at one input. The least reach is the smallest size of
the outermost outputs at which a private unbiased law exists. Laws bend at an input if their slope
in the input changes there. A knot is an input at which a law of the program is a variable; between
knots the laws are affine.

The outputs are optimised for all private unbiased laws (`window_laws`) or, for metric privacy, for
laws that are affine between knots (`outputs`). The searches for m outputs start from

    start                                  when, and why
    the best m - 1 outputs and one more    where one more lowers the loss most; so m outputs are
                                           never worse than m - 1
    equally spaced outputs and outputs     at large ε
    near the inputs, as MVU's searches
    equally spaced outputs and powers      always
    random asymmetric outputs              for few outputs; the random sequence is fixed (ε = 2,
                                           four outputs: the loss is 0.694529, with symmetric
                                           outputs 0.700259)

Outputs are published as decimals. Their laws are those of the linear program whose knots are
equally spaced points, the outputs, and the inputs at which the best laws bend.
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

# Numbers of outputs that are searched for on the way to more outputs ("rungs" of the search). Above
# 16, not every number is searched, to save time.
_RUNGS = (*range(2, 17), 24, 36, 54)


@dataclass(frozen=True)
class OutputSearchLimits:
    """Limits and tolerances of the search for outputs.

    Attributes:
        max_random_outputs: searches for at most this many outputs have random asymmetric starts.
        random_start_count: the number of random starts.
        fold_distance: the distance to symmetric outputs within which symmetric outputs are also
            searched.
        min_gain: an additional output is kept if it lowers the loss by more than this share.
        max_loss_share: the share by which the loss of published decimals may exceed the loss of the
            search.
        inner_decimals: the number of decimals of inner outputs and of bends.
        merge_distance: the distance below which two outputs are merged.
        min_metric_knots: the smallest number of knots of a program for metric privacy.
        two_output_margin: two outputs are this share beyond the least reach, so that rounding
            does not bring them below it.
        inner_share: outputs below this share of the outermost one are inner outputs, which are
            moved to the mean of an asymmetric density.
        wider_shares: outermost outputs are moved out by these shares of the excess, in turn, if the
            program at the outputs of the search ends above the value of the search.
        asymmetry: outputs are moved by these shares of the smallest gap, in turn, to make symmetric
            outputs asymmetric.
    """

    max_random_outputs: int = 4
    random_start_count: int = 8
    fold_distance: float = 0.01
    min_gain: float = 1e-7
    max_loss_share: float = 1e-6
    inner_decimals: int = 9
    merge_distance: float = 2e-6
    min_metric_knots: int = 21
    two_output_margin: float = 1e-12
    inner_share: float = 0.9
    wider_shares: tuple[float, ...] = (1e-6, 1e-5, 1e-4)
    asymmetry: tuple[float, ...] = (0.1, -0.1, 0.05)


_LIMITS = OutputSearchLimits()


def optimise_bins(
    levels: int,
    question: LawQuestion,
    *,
    reach: float | None = None,
    knots: int = 41,
    starts: int = 4,
) -> QuantizerAnswer | None:
    """Search for the exact quantizer with at most `levels` outputs in [-reach, reach].

    Args:
        levels: the largest number of outputs.
        question: density, loss, metric and ε of the law, with the solver (see `LawQuestion`).
        reach: the largest output allowed in size. None: twice the least reach,
            2 (e^ε+1)/(e^ε-1). A limit is needed because the mean absolute error keeps falling
            slightly as outermost outputs go to infinity (their masses vanish).
        knots: the number of equally spaced knots. Outputs in (-1, 1) are knots too.
        starts: the number of starts with evenly spread outputs, at most 7.

    Returns:
        The answer, or None if no outputs were found.
    """
    limit = default_reach(question.float_epsilon) if reach is None else reach
    search = _OutputSearch(question, limit, knots, starts, solver_options=repr(question.options))
    if search.least_reach > limit:
        return None
    best: LocalOptimum | None = None
    notes: tuple[str, ...] = ()
    for m in (*(rung for rung in _RUNGS if rung < levels), levels):
        try:
            best = _find_best_outputs(search, m)
        except _TimeIsUpError:
            found_count = 0 if best is None else best.outputs.size
            notes = (
                f"The search over outputs ran out of time: {found_count} outputs of {levels} were "
                "found.",
            )
            break
    answer = None
    if best is not None:
        answer = search.publish(best)
    if answer is None:
        return None
    return replace(answer, notes=(*answer.notes, *notes))


class _TimeIsUpError(Exception):
    """Signal that the deadline of the question has passed. A cache does not keep exceptions."""


@lru_cache(maxsize=256)  # A sweep asks for the same outputs again.
def _find_best_outputs(search: _OutputSearch, m: int) -> LocalOptimum | None:
    """Find the best outputs, at most m of them. Searches for fewer outputs are done first.

    Returns None if no outputs were found. Raises _TimeIsUpError if time ended before the search.
    """
    if m == 2:
        # There is one law for two outputs, whose error falls with them to the least reach.
        x, w = search.question.density.quadrature([0.0])
        reach = search.least_reach
        value = compute_two_output_error(reach, search.question.loss, float(w @ x**2))
        output = reach * (1 + _LIMITS.two_output_margin)
        return LocalOptimum(np.array([-output, output]), value, start_values=())
    previous = _find_best_outputs(search, max(rung for rung in _RUNGS if rung < m))
    best = search.search_outputs(m, previous)
    if best is None:
        return previous
    if previous is not None and best.value >= previous.value * (1 - _LIMITS.min_gain):
        return previous
    return best


@dataclass(frozen=True)
class _OutputSearch:
    """A search for outputs, for any number of them.

    Attributes:
        question: density, loss, metric and ε of the law, with the solver (see `LawQuestion`).
        limit: the largest output allowed.
        knots: the number of equally spaced knots.
        starts: the number of spread starts.
        solver_options: the options of the solver, which distinguish searches in a cache.
    """

    question: LawQuestion
    limit: float
    knots: int
    starts: int
    solver_options: str

    @cached_property
    def excess(self) -> float:
        """Return how far the least reach is beyond 1."""
        return self._make_problem(2).compute_reach_excess(self.question.float_epsilon)

    @property
    def least_reach(self) -> float:
        """Return the least reach of the outermost outputs."""
        return 1 + self.excess

    @property
    def outermost_decimals(self) -> int:
        """Return the number of decimals of a published outermost output.

        They resolve 1e-7 of the excess, and are at least 9.
        """
        return max(9, 7 - math.floor(math.log10(self.excess)))

    def search_outputs(self, m: int, previous: LocalOptimum | None) -> LocalOptimum | None:
        """Search for the best m outputs from all starts.

        Args:
            m: the number of outputs.
            previous: the best optimum with fewer outputs, None for the first search.

        Raises:
            _TimeIsUpError: the deadline passed before the search ended.
        """
        is_symmetric = self.question.density.is_symmetric
        spread_starts = self._list_spread_starts(m)
        starts = self._list_other_starts(m, previous, spread_starts)
        symmetric_best = None
        has_many_outputs = m > _LIMITS.max_random_outputs
        if is_symmetric and has_many_outputs and self.question.metric is not None:
            symmetric_best = self._search_locally(m, spread_starts, symmetric=True)
            spread_starts = []
            if symmetric_best is not None:
                spread_starts = [_break_symmetry(symmetric_best.outputs)]
        starts += spread_starts[-2:] if has_many_outputs else spread_starts
        best = self._search_locally(m, starts, symmetric=False)
        if best is None or not is_symmetric:
            return best
        best = min(best, symmetric_best or best, key=lambda optimum: optimum.value)
        return _orient_optimum(self._search_folded(best))

    def _list_spread_starts(self, m: int) -> list[Vector]:
        """List outputs that are spread evenly and by powers, within the limit."""
        starts = make_spread_starts(m, self.question.float_epsilon, self.starts)
        return [self._clip(start) for start in starts]

    def _list_other_starts(
        self, m: int, previous: LocalOptimum | None, spread_starts: list[Vector]
    ) -> list[Vector]:
        """List the starts besides the spread ones: more outputs, alphabets, random outputs."""
        question = self.question
        starts = []
        if previous is not None:
            starts.append(self._add_outputs(previous.outputs, m))
        if question.density.is_symmetric and question.metric is None:
            alphabets = make_start_alphabets(
                m, question.float_epsilon, inputs=m, starts=0, reach=self.limit
            )
            starts += [alphabet for alphabet in alphabets if (np.diff(alphabet) > 0).all()]
        if not question.density.is_symmetric:
            inputs, weights = question.density.quadrature([0.0])
            mean = math.fsum(inputs * weights)
            for start in spread_starts:
                is_inner = np.abs(start) < _LIMITS.inner_share * np.abs(start).max()
                starts.append(start + mean * is_inner)
        if m <= _LIMITS.max_random_outputs:
            rng = np.random.default_rng(m)
            reaches = (self.least_reach, self.limit)
            for _ in range(_LIMITS.random_start_count):
                starts.append(draw_asymmetric_outputs(rng, m, reaches, inner_reach=1.0))
        return starts

    def _search_folded(self, best: LocalOptimum) -> LocalOptimum:
        """Search from the symmetric outputs close to the best ones, if privacy is by a metric.

        A symmetric search has half as many variables, so it ends closer to the optimum. Returns the
        better of the two results.
        """
        if self.question.metric is None:
            return best
        folded_outputs = (best.outputs - best.outputs[::-1]) / 2
        if np.abs(best.outputs - folded_outputs).max() >= _LIMITS.fold_distance:
            return best
        folded_best = self._search_locally(best.outputs.size, [folded_outputs], symmetric=True)
        return min(best, folded_best or best, key=lambda optimum: optimum.value)

    def _search_locally(
        self, m: int, starts: list[Vector], *, symmetric: bool
    ) -> LocalOptimum | None:
        """Search for the best m outputs from these starts.

        Without a metric all private unbiased laws are considered, and `symmetric` is not used.

        Args:
            m: the number of outputs.
            starts: the outputs from which the search starts, (m,) each.
            symmetric: whether outputs stay symmetric, for privacy by a metric.
        """
        question = self.question
        starts_in_time = self._stop_at_deadline(starts)
        if question.metric is None:
            return search_window_outputs(question, m, starts_in_time, self.limit, question.progress)
        problem = self._make_problem(m)
        best = search_best_outputs(
            problem,
            question.float_epsilon,
            starts_in_time,
            symmetric=symmetric,
            limit=self.limit,
            progress=question.progress,
        )
        problem.close()
        return best

    def _stop_at_deadline(self, starts: Iterable[Vector]) -> Iterator[Vector]:
        """Yield the starts while there is time. Raises _TimeIsUpError."""
        for start in starts:
            if self.question.deadline.has_passed:
                raise _TimeIsUpError
            yield start

    def _make_problem(self, m: int) -> LawProblem:
        """Make the LP over m outputs, on fixed knots."""
        knot_count = self.knots
        if self.question.metric is not None:
            knot_count = max(self.knots, _LIMITS.min_metric_knots)
        knots = np.linspace(-1.0, 1.0, knot_count)
        return make_exact_problem(knots, m, self.question, symmetric=False)

    # Starts.

    def _add_outputs(self, outputs: Vector, m: int) -> Vector:
        """Add outputs until there are m, one after the other.

        Each is added in the middle between two outputs (or an output and the limit), where the LP
        with one more output has the least error.
        """
        epsilon = self.question.float_epsilon
        while outputs.size < m:
            ends = np.concatenate([[-self.limit], outputs, [self.limit]])
            middles = (ends[1:] + ends[:-1]) / 2
            if outputs.sum() < 0:
                # The first of equally good middles is used, so mirrored outputs give mirrored ones.
                middles = middles[::-1]
            is_mirrored = np.array_equal(outputs, -outputs[::-1])
            if self.question.density.is_symmetric and is_mirrored:
                # Mirror images have the same error.
                middles = middles[: (middles.size + 1) // 2]
            problem = self._make_problem(outputs.size + 1)
            values = []
            for middle in self._stop_at_deadline(middles):
                answer = problem.find_optimum(epsilon, np.sort(np.append(outputs, middle)))
                # Nine digits are the same on every machine, and so is the best place.
                values.append(math.inf if answer is None else float(f"{answer.value:.9g}"))
            problem.close()
            outputs = np.sort(np.append(outputs, middles[int(np.argmin(values))]))
        return outputs

    def _clip(self, outputs: Vector) -> Vector:
        """Move outputs within the limit."""
        return np.clip(outputs, -self.limit, self.limit)

    # Published outputs.

    def publish(self, best: LocalOptimum) -> QuantizerAnswer | None:
        """Round the outputs of a search to decimals and solve the LP at them.

        Args:
            best: the result of the search.

        Returns:
            The answer of least loss. None if the LP has no solution at any rounded outputs.
        """
        best_answer = None
        for is_required, outputs in self._propose_outputs(best.outputs.copy()):
            if not is_required and best_answer is not None:
                limit = best.value * (1 + _LIMITS.max_loss_share)
                if best_answer.objective <= limit:
                    break
            answer = self._solve_at(self._round_outputs(outputs), best)
            if answer is None:
                continue
            if best_answer is None or answer.objective < best_answer.objective:
                best_answer = answer
        return best_answer

    def _propose_outputs(self, outputs: Vector) -> Iterator[tuple[bool, Vector]]:
        """Yield outputs to solve for at the end of a search, and whether they must be solved."""
        if self.question.metric is not None:
            if outputs.size > 2:
                problem = self._make_problem(2)
                epsilon = self.question.float_epsilon
                outputs = widen_outermost_outputs(outputs, problem, epsilon)
            yield True, outputs
            return
        yield True, outputs
        # At large ε a cold solve may end above the value of the search. Outputs slightly farther
        # out need not.
        for share in _LIMITS.wider_shares:
            wider_outputs = outputs.copy()
            wider_outputs[[0, -1]] += share * self.excess * np.array([-1.0, 1.0])
            yield False, self._clip(wider_outputs)

    def _round_outputs(self, outputs: Vector) -> Rationals:
        """Round outputs to decimals, outermost ones away from zero, so that they stay feasible."""
        # With mass 1 everywhere, no output counts as not drawn.
        masses = np.ones((1, outputs.size))
        outputs, _ = merge_close_outputs(outputs, masses, _LIMITS.merge_distance)
        low = -self._round_outermost(-outputs[0])
        high = self._round_outermost(outputs[-1])
        unit = 10**_LIMITS.inner_decimals
        inner = {Fraction(round(b * unit), unit) for b in outputs[1:-1].tolist()}
        return (low, *sorted(b for b in inner if low < b < high), high)

    def _round_outermost(self, output: float) -> Fraction:
        """Round an outermost output up, or down if the next decimal is beyond the limit."""
        unit = Fraction(1, 10**self.outermost_decimals)
        rounded: Fraction = unit * math.ceil(output * 10**self.outermost_decimals)
        if rounded > self.limit and rounded - unit > self.least_reach:
            return rounded - unit
        return rounded

    def _solve_at(self, bins: Rationals, best: LocalOptimum) -> QuantizerAnswer | None:
        """Solve the LP at outputs. Outputs that are never drawn are left out of the answer."""
        answer = solve_exact_quantizer(bins, self.question, knots=self._list_knots(bins, best))
        if answer is None:
            return None
        law = answer.quantizer
        is_used = law.matrix.max(axis=0) > 0
        if not is_used.all():
            used_bins = [*compress(bins, is_used)]
            law = Quantizer.from_ends(law.name, used_bins, law.knots, law.matrix[:, is_used])
        return replace(answer, quantizer=law, start_values=best.start_values)

    def _list_knots(self, bins: Rationals, best: LocalOptimum) -> list[Fraction]:
        """List the knots of the LP: equally spaced ones and those at which the best laws bend.

        A knot close to another knot or to an output is left out: solvers do not resolve pieces of
        1e-7, and by a metric neither does a proof.
        """
        min_distance = Fraction(1, 10**6 if self.question.metric is None else 10**3)
        if self.question.metric is None:
            bends = self._list_bends(bins, best, min_distance)
        else:
            # With these knots, every law of MVU with as many inputs as outputs is feasible.
            bends = list_knots((), best.outputs.size)
        knots: list[Fraction] = []
        for knot in (*list_knots((), self.knots), *bends):
            if any(abs(other_knot - knot) <= min_distance for other_knot in knots):
                continue
            if all(b == knot or abs(b - knot) > min_distance for b in bins):
                knots.append(knot)
        return knots

    def _list_bends(
        self, bins: Rationals, best: LocalOptimum, min_distance: Fraction
    ) -> list[Fraction]:
        """List the inputs at which the best laws bend, in decimals; mirrored if outputs are."""
        unit = 10**_LIMITS.inner_decimals
        inner_bends = [bend for bend in best.bends.tolist() if abs(bend) < 1]
        bends = [Fraction(round(bend * unit), unit) for bend in inner_bends]
        if not self.question.density.is_symmetric or not are_symmetric(bins):
            return bends
        mirrored_bends = []
        for bend in bends:
            if bend > min_distance:
                mirrored_bends += [-bend, bend]
        return mirrored_bends


def _break_symmetry(outputs: Vector) -> Vector:
    """Make symmetric outputs asymmetric by moves that are small compared with the gaps."""
    smallest_gap = np.diff(outputs).min()
    return np.sort(outputs + np.resize(_LIMITS.asymmetry, outputs.size) * smallest_gap)


def _orient_optimum(best: LocalOptimum) -> LocalOptimum:
    """Return an optimum or its mirror image, as `orient_outputs`."""
    if np.array_equal(best.outputs, orient_outputs(best.outputs)):
        return best
    return replace(best, outputs=-best.outputs[::-1], bends=-best.bends[::-1])
