"""Designing label randomizers: the best bins, the channel LP and the unbiased randomizer, each judged and audited.

| method   | what is optimised                                                    | how                            |
|----------|----------------------------------------------------------------------|--------------------------------|
| bins     | every ε-DP randomizer with real outputs (Theorem 5)                  | `models.oracles.bins`, exact   |
| printed  | the same, Algorithm 2 as printed, O(k³)                              | `models.oracles.bins`          |
| lp       | every channel onto given outputs; neighbours, δ, metric, constraints | `models.channel`, any solver   |
| unbiased | every unbiased ε-DP randomizer with real outputs, squared loss       | `models.unbiased`, columns     |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from numpy.typing import ArrayLike

from workbench import rooms

# isort: split
from models.losses import Loss, loss_named
from models.oracles.bins import Bins, optimal_bins, printed_bins
from solvers.backend import Options, backend
from workbench.designing import OracleVerdict
from workbench.errors import InvalidRequest
from workbench.labels_certified import audited, certified, missed
from workbench.labels_designed import LabelDesign
from workbench.labels_lp import best_channel, groups_of, pairs_of
from workbench.labels_unbiased import best_unbiased
from workbench.mechanisms.labels import Labels
from workbench.mechanisms.randomized_response import RandomizedResponse, on_bins
from workbench.numbers import Real, positive, probability
from workbench.solver_options import settled

__all__ = ["METHODS", "LabelDesign", "best_bins", "design", "validate"]

METHODS = ("bins", "printed", "lp", "unbiased")
NOTIONS = ("pure", "dp", "metric")
_JUDGED = 128  # labels up to which the printed algorithm judges the fast one


def best_bins(labels: Labels, epsilon: Real, loss: str | Loss = "squared") -> RandomizedResponse:
    """The best RR-on-Bins for labels with their prior, exact. Raises InvalidRequest."""
    with rooms.speaking_our_errors():
        bins = optimal_bins(labels.values, labels.prior, float(positive(epsilon, "epsilon")), loss)
    return on_bins(labels, bins.starts, bins.values, epsilon)


def design(
    question: Labels,
    *,
    epsilon: Real,
    loss: str | Loss = "squared",
    method: str = "bins",
    outputs: ArrayLike | None = None,
    neighbours: str | Iterable[tuple[int, int]] = "all",
    notion: str = "pure",
    delta: Real = 0,
    constraints: Sequence[str] = (),
    solver: str = "highs",
    time_limit: float | None = None,
    options: Options | None = None,
    certify: bool | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> LabelDesign:
    """The least-loss private label randomizer.

    Args:
        question: labels and prior.
        epsilon: in (0, 30]; with notion "metric" the budget per unit of |y - y'|.
        loss: a name of `models.losses.LOSSES`.
        method: see the module; the options below are for "lp" only (solver and options also for "unbiased").
        outputs: (m,) increasing published values; the labels by default.
        neighbours: "all" pairs of labels, "consecutive" ones (counts), or pairs of label positions.
        notion: "pure", "dp" with delta, or "metric".
        constraints: names of `models.channel.CONSTRAINTS`.
        solver: of `workbench solvers`; HiGHS by default takes the interior point for large programs.
        time_limit: seconds of one solve; options: every solver option at once instead.
        certify: True for a certificate or a refusal, False for the solver's own answer, None for one where it is quick.
        progress: told a line every few seconds by "unbiased", which takes minutes from some eighty labels on.

    Raises:
        InvalidRequest, Infeasible, SolverUnavailable, LicenceLimit, NotProven, NotCertified: see `workbench.errors`.
    """
    named, request, options = validate(
        question, epsilon=epsilon, loss=loss, method=method, outputs=outputs, neighbours=neighbours, notion=notion,
        delta=delta, constraints=constraints, solver=solver, time_limit=time_limit, options=options, certify=certify,
    )  # fmt: skip
    if method in ("bins", "printed"):
        return _by_bins(question, named, request)
    if method == "unbiased":
        return best_unbiased(question, named, request, options, progress)
    return best_channel(question, named, request, outputs, neighbours, tuple(constraints), options)


def validate(
    question: Labels,
    *,
    epsilon: Real,
    loss: str | Loss = "squared",
    method: str = "bins",
    outputs: ArrayLike | None = None,
    neighbours: str | Iterable[tuple[int, int]] = "all",
    notion: str = "pure",
    delta: Real = 0,
    constraints: Sequence[str] = (),
    solver: str = "highs",
    time_limit: float | None = None,
    options: Options | None = None,
    certify: bool | None = None,
) -> tuple[Loss, dict[str, Any], Options]:
    """Refuse a request that makes no sense, without solving anything; arguments as `design`.

    Returns the loss, the request in exact numbers and the solver's options. Raises InvalidRequest.
    """
    if not isinstance(question, Labels):
        InvalidRequest.must("question", "a Labels", repr(question))
    if method not in METHODS:
        InvalidRequest.must("method", f"one of {', '.join(METHODS)}", repr(method))
    if notion not in NOTIONS:
        InvalidRequest.must("notion", f"one of {', '.join(NOTIONS)}", repr(notion))
    budget, spent = positive(epsilon, "epsilon"), probability(delta, "delta")
    if budget > 30:
        InvalidRequest.must("epsilon", "at most 30 (e^epsilon is a coefficient of the program)", epsilon)
    if spent and notion != "dp":
        InvalidRequest.must("delta", f"0 when notion is {notion}", delta)
    with rooms.speaking_our_errors():
        named = loss_named(loss)
        named(1.0, question.values[:1])
        backend(solver)
    options = settled(options, time_limit)
    plain = outputs is None and isinstance(neighbours, str) and neighbours == "all" and not constraints
    if method != "lp" and not (plain and notion == "pure"):
        InvalidRequest.must("method", "lp for other outputs, neighbours, notions and constraints", repr(method))
    if method == "printed" and question.k > 4000:
        InvalidRequest.must("method", "bins for more than 4000 labels (printed takes O(k³))", "'printed'")
    if method == "unbiased" and named.kind != "squared":
        InvalidRequest.must("loss", "squared for the unbiased randomizer", repr(named.name))
    if method == "unbiased" and budget > 12:
        InvalidRequest.must("epsilon", "at most 12 for the unbiased randomizer (its program mixes 1 and e^ε)", epsilon)
    if method == "unbiased" and question.k < 2:
        InvalidRequest.must("labels", "at least two for the unbiased randomizer", question.k)
    if method == "lp" and notion == "metric":
        largest = max(groups_of(question, pairs_of(neighbours, notion, question.k), notion, budget)[1], default=0.0)
        if largest > 30:
            InvalidRequest.must("epsilon", "at most 30 for every pair of neighbours", largest)
    request: dict[str, Any] = {
        "asked": budget, "epsilon": budget, "delta": spent, "notion": notion, "loss": named.name, "method": method,
        "neighbours": neighbours if isinstance(neighbours, str) else "listed", "solver": solver,
        "certify": certify,
    }  # fmt: skip
    return named, request, options


def _by_bins(question: Labels, loss: Loss, request: dict[str, Any]) -> LabelDesign:
    epsilon = request["asked"]
    search = optimal_bins if request["method"] == "bins" else printed_bins
    with rooms.speaking_our_errors():
        found = search(question.values, question.prior, float(epsilon), loss)
    mechanism = on_bins(question, found.starts, found.values, epsilon)
    verdict = OracleVerdict.none(f"the printed algorithm judges up to {_JUDGED} labels only.")
    if question.k <= _JUDGED:
        other: Bins = printed_bins(question.values, question.prior, float(epsilon), loss)
        proof = "Algorithm 2 as printed: every partition into intervals, by dynamic programming; Theorem 5."
        verdict = OracleVerdict.judge(found.objective, "Algorithm 2", other.objective, "optimum", proof)
    privacy = audited(mechanism.audit_rows, request)
    certificate = certified(mechanism, request)
    return LabelDesign(
        question, request, mechanism, found.objective, found.bound, privacy, verdict,
        None,  # type: ignore[arg-type]  # no solver was needed
        missed(privacy, request), certificate, None, "exact as constructed",
    )  # fmt: skip
