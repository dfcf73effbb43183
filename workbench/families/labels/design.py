"""Designing label randomizers: the best bins, the channel LP and the unbiased randomizer, each judged and audited.

| method   | what is optimised                                                    | how                            |
|----------|----------------------------------------------------------------------|--------------------------------|
| bins     | every ε-DP randomizer with real outputs (Theorem 5)                  | `models.oracles.bins`, exact   |
| printed  | the same, Algorithm 2 as printed, O(k³)                              | `models.oracles.bins`          |
| lp       | every channel onto given outputs; neighbours, δ, metric, constraints | `models.channel`, any solver   |
| unbiased | every unbiased ε-DP randomizer with real outputs, squared loss       | `models.unbiased`, cones       |
"""

from __future__ import annotations

from models.losses import Loss
from models.oracles.bins import Bins, optimal_bins, printed_bins
from workbench.exact.numbers import Real, nearest_float, positive
from workbench.families.design import Design, OracleVerdict
from workbench.families.labels.certify import audited, certified, shortfall
from workbench.families.labels.channel_program import best_channel
from workbench.families.labels.request import LabelRequest
from workbench.families.labels.unbiased import best_unbiased
from workbench.families.outcome import translated_errors
from workbench.mechanisms.label_randomizers.labels import Labels
from workbench.mechanisms.label_randomizers.randomized_response import RandomizedResponse, on_bins

__all__ = ["best_bins", "design"]

_JUDGED = 128  # labels up to which the printed algorithm judges the fast one


def best_bins(labels: Labels, epsilon: Real, loss: str | Loss = "squared") -> RandomizedResponse:
    """The best RR-on-Bins for labels with their prior, exact. Raises InvalidRequest."""
    with translated_errors():
        bins = optimal_bins(labels.values, labels.prior, nearest_float(positive(epsilon, "epsilon")), loss)
    return on_bins(labels, bins.starts, bins.values, epsilon)


def design(request: LabelRequest) -> Design:
    """The least-loss private label randomizer, judged and audited.

    Raises InvalidRequest, Infeasible, SolverUnavailable, LicenceLimit, NotProven, NotCertified.
    """
    if request.method in ("bins", "printed"):
        return _by_bins(request)
    return best_unbiased(request) if request.method == "unbiased" else best_channel(request)


def _by_bins(request: LabelRequest) -> Design:
    question, epsilon, loss = request.question, request.claim.epsilon, request.named_loss
    search = optimal_bins if request.method == "bins" else printed_bins
    with translated_errors():
        bins = search(question.values, question.prior, float(epsilon), loss)
    mechanism = on_bins(question, bins.starts, bins.values, epsilon)
    verdict = OracleVerdict.none(f"the printed algorithm judges up to {_JUDGED} labels only.")
    if question.k <= _JUDGED:
        other: Bins = printed_bins(question.values, question.prior, float(epsilon), loss)
        proof = "Algorithm 2 as printed: every partition into intervals, by dynamic programming; Theorem 5."
        verdict = OracleVerdict.judge(bins.objective, "Algorithm 2", other.objective, "optimum", proof)
    privacy = audited(mechanism.audit_rows, request)
    return Design(
        request,
        mechanism,
        bins.objective,
        bins.bound,
        request.claim,
        verdict,
        None,
        shortfall(privacy, request),
        privacy,
        certified(mechanism, request),
        None,
        "exact as constructed",
    )
