"""Compare the loss of modulo noise with closed forms, and use their lower bounds.

A closed form ("law") is a known formula for the smallest loss, or for a bound on it, with the
masses of its noise if there are any. The formulas themselves are in `workbench.models.oracles`; a
new formula is added there.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from workbench.exact.numbers import round_up
from workbench.families.modulo.request import ModuloRequest
from workbench.models import oracles
from workbench.models.convex.requirements import RatioBound
from workbench.models.modulo.program import LEVELS
from workbench.models.oracles.level_search import DEFAULT_NODES
from workbench.models.oracles.question import ROUNDING
from workbench.pipeline.design import Design, OracleVerdict
from workbench.pipeline.outcome import translate_errors
from workbench.pipeline.requirements import make_ratio_bounds
from workbench.questions.modulo_noise import ModuloNoise, Shift
from workbench.solvers.search import bisect
from workbench.solvers.solution import Solution

_DELTA_BISECTION_TOLERANCE = 1e-15  # The δ of a closed form is found up to this.


def find_strongest_law(
    request: ModuloRequest, delta: float, nodes: int = DEFAULT_NODES
) -> oracles.ClosedForm | None:
    """Find the strongest closed form: an optimum, otherwise an upper or a lower bound.

    Args:
        request: the request, whose notion, ε and loss decide which closed forms apply.
        delta: the budget δ in [0, 1].
        nodes: the largest number of nodes of the level search; 0 skips it.

    Returns:
        The closed form, None if none is known.
    """
    return _find_laws(request, delta, nodes).strongest


def _find_laws(
    request: ModuloRequest, delta: float, nodes: int = DEFAULT_NODES
) -> oracles.ErrorRateBounds:
    """Find the closed forms for a request at a δ: the strongest one, and the best lower bound."""
    bounds = make_ratio_bounds(request.claim.notion, request.budgets, Fraction(delta))
    budgets = tuple((shift, float(value)) for shift, value in bounds.epsilons.items())
    return _compute_laws(
        request.question, budgets, float(bounds.delta), bounds.kind, request.aim.loss, nodes
    )


@lru_cache(maxsize=16)
def _compute_laws(
    question: ModuloNoise,
    budgets: tuple[tuple[Shift, float], ...],
    delta: float,
    kind: RatioBound,
    loss: str,
    nodes: int,
) -> oracles.ErrorRateBounds:
    """Compute the closed forms. The result is cached.

    Args:
        question: the group of the noise.
        budgets: (shift, ε) pairs, one for every difference of neighbours.
        delta: the budget δ in [0, 1].
        kind: the bound on ratios: the hockey stick (dp) or the mass above the ratio (pdp).
        loss: the name of the loss.
        nodes: the largest number of nodes of the level search; 0 skips it.
    """
    epsilons = dict(budgets)
    epsilon: float | dict[Shift, float] = epsilons
    if len(set(epsilons.values())) == 1:
        _, epsilon = budgets[0]
    with translate_errors():
        return oracles.error_rate_bounds(
            question.sizes,
            question.differences,
            question.directed,
            epsilon,
            delta,
            kind,
            loss,
            nodes,
        )


def find_closed_form_bound(request: ModuloRequest) -> tuple[float, str] | None:
    """Find a lower bound on the loss of all private noise from a closed form.

    Args:
        request: the checked request of the design.

    Returns:
        The bound, lowered by the rounding of its evaluation, and a note that names its source.
        None if no closed form gives a bound.
    """
    if request.aim.minimise != "loss":
        return None
    # The loss of a closed form falls as δ grows, so a lower bound needs δ rounded up.
    law = _find_laws(request, round_up(request.claim.delta or Fraction(0))).lower
    if law is None:
        return None
    note = f"The bound is the closed form's: {law.name}. {law.proof}"
    return law.value * (1 - ROUNDING), note


def judge_by_closed_form(
    request: ModuloRequest, solution: Solution, is_proven: bool
) -> OracleVerdict:
    """Compare the objective of a solution with the closed form for its request.

    Args:
        request: the request for the least loss or the least δ.
        solution: the solution that the solver returned.
        is_proven: whether the solver proved its objective optimal.

    Returns:
        The verdict; one without a formula if none is known.
    """
    if request.aim.minimise == "delta":
        return _judge_least_delta(request, solution, float(request.loss_limit or 0))
    # The level search must not judge what it found itself.
    nodes = 0 if solution.solver == LEVELS else DEFAULT_NODES
    law = find_strongest_law(request, float(request.claim.delta or 0), nodes)
    if law is None:
        notion = request.claim.notion.name
        return OracleVerdict.without_formula(
            f"no closed form is known for {notion} with loss {request.aim.loss} here."
        )
    kind = str(law.kind)
    proof = law.proof
    # Constraints can only raise the optimum. It is then at least the value of a form that was an
    # optimum or a lower bound, and an upper bound says nothing about it.
    if request.aim.constraints is not None:
        if kind == "upper bound":
            return OracleVerdict.without_formula("the extra constraints leave no closed form.")
        kind = "lower bound"
        proof = f"{proof} The extra constraints can only raise the error above it."
    verdict = OracleVerdict.judge(
        solution.objective, law.name, law.value, kind, proof, scale=request.loss_scale
    )
    if is_proven:
        return verdict
    return verdict.for_stopped_search(solution.bound)


def _judge_least_delta(
    request: ModuloRequest, solution: Solution, max_loss: float
) -> OracleVerdict:
    """Compare a least δ with the δ at which the loss of the closed form is max_loss.

    That loss falls as δ grows, so this δ is found by bisection.
    """
    law_at_zero = find_strongest_law(request, 0.0)
    law_at_one = find_strongest_law(request, 1.0)
    if request.aim.constraints is not None or law_at_zero is None or law_at_one is None:
        notion = request.claim.notion.name
        return OracleVerdict.without_formula(
            f"no closed form is known for the least delta in {notion} here."
        )

    def is_within_limit(delta: float) -> bool:
        """Return whether the closed form at `delta` has at most the allowed loss."""
        law = find_strongest_law(request, delta)
        return law is not None and law.value <= max_loss

    delta = 0.0
    if law_at_zero.value > max_loss:
        _, delta = bisect(is_within_limit, low=0.0, high=1.0, tolerance=_DELTA_BISECTION_TOLERANCE)
    law = find_strongest_law(request, delta) or law_at_one
    is_optimum = law_at_zero.kind == "optimum" and law.kind == "optimum"
    kind = "optimum" if is_optimum else "upper bound"
    proof = f"{law.proof} Inverted in delta."
    return OracleVerdict.judge(solution.objective, f"{law.name}, inverted", delta, kind, proof)


def is_proven_optimal(design: Design) -> bool:
    """Check whether the bound proves a design optimal, certified if a certificate is requested.

    Args:
        design: a design of modulo noise.
    """
    if design.request.wants_certificate and design.certificate is None:
        return False
    if design.bound is None:
        return False
    return design.scale.settles(design.objective, design.bound)


def add_closed_form_bound(design: Design) -> Design:
    """Replace the lower bound of a design by the bound of the closed form, if that is larger.

    Args:
        design: a design that its solver did not prove optimal.

    Returns:
        The design. If the bound proves it optimal, its verdict compares the certified loss with
        the closed form.
    """
    verdict = design.oracle
    closed_form = find_closed_form_bound(design.request)
    if closed_form is not None:
        bound, note = closed_form
        if design.bound is None or bound > design.bound:
            details = {**design.details, "bound": Fraction(bound)}
            design = replace(design, bound=bound, words=(*design.words, note), details=details)
    if verdict.value is None or verdict.kind is None or not is_proven_optimal(design):
        return design
    notes = design.words
    if design.bound is not None and not design.scale.settles(design.claimed, design.bound):
        notes += (
            f"The solver's own answer, {design.claimed:.9g}, is not optimal; the certified one is.",
        )
    better_verdict = OracleVerdict.judge(
        design.objective,
        str(verdict.name),
        verdict.value,
        verdict.kind,
        verdict.proof,
        scale=design.scale,
    )
    return replace(design, oracle=better_verdict, words=notes)
