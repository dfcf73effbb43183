"""The best channel from labels to given outputs: a channel underneath, judged by RR-on-Bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from models.oracles.bins import BIN_LOSSES, optimal_bins
from solvers.errors import NoRationalSolution
from solvers.rational_lp import RationalLP
from solvers.rational_refinement import solve_rational
from solvers.solution import Solution
from workbench.errors import NotProven
from workbench.exact.distribution import Distribution
from workbench.exact.numbers import round_down
from workbench.families.channel.losses import Integers
from workbench.families.channel.problem import ChannelProblem
from workbench.families.design import Design, OracleVerdict
from workbench.families.labels.request import LabelRequest
from workbench.families.pipeline import design
from workbench.families.problem import Answer, Programs
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.label_randomizers.label_channel import LabelChannel
from workbench.mechanisms.label_randomizers.randomized_response import with_prior

__all__ = ["best_channel", "within_curve"]

_REFINED, _DIGITS, _LOST = 500, 160, 1e-9  # cells that rationals refine, bits there, of the loss what is worth it
_PATIENCE = 10.0  # seconds for that


class _LabelProblem(ChannelProblem):
    """The channel of a request for labels."""

    ENOUGH: ClassVar[float] = 1e-5

    def __init__(self, labels: LabelRequest) -> None:
        super().__init__(labels.channel)
        self.labels = labels

    def answered(self, programs: Programs | None, start: str) -> Answer:
        """With the means to be kept, in rationals where a repair of the solver's last digits costs."""
        answer = super().answered(programs, start)
        request, solution = self.request, answer.solution
        kept = "unbiased" in request.constraints and request.losses.values.size <= _REFINED
        if not kept or request.cut or not request.certified or solution is None:
            return answer
        loss = float(self.loss(self.repaired(answer)[0]))
        if answer.bound is not None and loss - float(answer.bound) <= _LOST * loss:
            return answer
        refined = _refined(solution, min(_PATIENCE, request.options.time_limit or _PATIENCE))
        if refined is None:
            return answer
        rows, bound = refined
        proven = max(Fraction(known) for known in (bound, answer.bound) if known is not None and known > -np.inf)
        closer = replace(answer, bound=proven, law=(_integers(rows), None))
        better = float(self.loss(self.repaired(closer)[0])) < loss
        return closer if better else replace(answer, bound=proven)

    def oracle(self, answer: Answer) -> OracleVerdict:
        """RRTop-k and RR-on-Bins."""
        if self.request.cut:
            return super().oracle(answer)
        return _judge_lp(self.labels, float(self.loss(answer.mechanism)) if answer.claimed is None else answer.claimed)


def best_channel(request: LabelRequest) -> Design:
    """The least-loss channel of a request. Raises InvalidRequest, Infeasible, NotProven, NotCertified."""
    programs = Programs(request.solver)
    try:
        return _of_labels(request, design(_LabelProblem(request), programs))
    except NotProven as error:
        if error.design is not None:
            error.design = _of_labels(request, error.design)
        raise
    finally:
        programs.close()


def within_curve(request: LabelRequest, curve: Sequence[tuple[Fraction, Fraction]]) -> Design:
    """The least-loss channel of one run that is (ε, δ)-private for all points of a curve. Raises as its session."""
    return best_channel(replace(request, notion="curve", curve=curve, epsilon=None, delta=Fraction(0)))


def _of_labels(request: LabelRequest, reached: Design) -> Design:
    """The design of a channel as one of labels."""

    def named(channel: Channel | None) -> Any:
        return None if channel is None else LabelChannel(request.question, request.grid, channel)

    return replace(reached, request=request, mechanism=named(reached.mechanism), raw=named(reached.raw))


def _integers(channel: Channel) -> Integers:
    """Rows over one sum."""
    bits = _DIGITS
    K: Integers = np.array([[(v << bits) // row.total for v in row.integers] for row in channel.rows], dtype=object)
    for row in K:
        row[int(np.argmax(row))] += (1 << bits) - int(row.sum())
    return K


def _refined(solution: Solution, time_limit: float) -> tuple[Channel, float] | None:
    """The channel and the bound of the same program in rationals; None where refining has no answer.

    What keeps the means is mixed with rows that cost much, so a solver's last digits cost much.
    """
    try:
        point = solve_rational(RationalLP.of(solution.data, _DIGITS), accuracy=_DIGITS - 30, time_limit=time_limit)
    except NoRationalSolution:
        return None
    block = solution.program.block("M")
    masses = np.array(point.x[block.start : block.start + block.size], dtype=object).reshape(block.shape, order="F")
    rows = [Distribution([max(mass, Fraction(0)) for mass in row], "a row of the channel") for row in masses]
    return Channel(tuple(rows)), -np.inf if point.bound is None else round_down(point.bound)


def _judge_lp(request: LabelRequest, objective: float) -> OracleVerdict:
    question, loss = request.question, request.named_loss
    if request.neighbours != "all" or not request.measure.ratio_decides:
        return OracleVerdict.none("no closed form is known for this relation.")
    plain = request.outputs is None and not request.constraints
    if loss.kind == "error-rate" and plain:
        value = with_prior(question, request.claim.epsilon).loss(loss)
        proof = "RRTop-k with the best k is optimal for the error-rate loss (Ghazi et al. 2021a, Theorem 3)."
        return OracleVerdict.judge(objective, "RRWithPrior", value, "optimum", proof)
    if loss.kind not in BIN_LOSSES:
        return OracleVerdict.none(f"no closed form is known for the loss {loss.name}.")
    value = optimal_bins(question.values, question.prior, float(request.claim.epsilon), loss).objective
    exact = loss.kind in ("absolute", "pinball") and plain
    reason = "its values are labels, so the grid loses nothing." if exact else "fewer outputs or more constraints."
    proof = f"Theorem 5: RR-on-Bins is optimal over all outputs; {reason}"
    return OracleVerdict.judge(objective, "RR-on-Bins", value, "optimum" if exact else "lower bound", proof)
