"""The closed form's verdict on a designed noise: which law answers the request, and whether the solver agrees."""

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


def find_strongest_law(
    request: ModuloRequest, delta: float, nodes: int = DEFAULT_NODES
) -> oracles.ClosedForm | None:
    """The strongest closed form at a delta: the optimum, else an upper bound, else a lower one. nodes: of the level
    search."""
    return _proven(request, delta, nodes).strongest


def _proven(
    request: ModuloRequest, delta: float, nodes: int = DEFAULT_NODES
) -> oracles.ErrorRateBounds:
    bounds = make_ratio_bounds(request.claim.notion, request.budgets, Fraction(delta))
    levels = tuple((shift, float(value)) for shift, value in bounds.epsilons.items())
    return _bounds(
        request.question, levels, float(bounds.delta), bounds.kind, request.aim.loss, nodes
    )


@lru_cache(maxsize=16)
def _bounds(
    q: ModuloNoise,
    levels: tuple[tuple[Shift, float], ...],
    delta: float,
    kind: RatioBound,
    loss: str,
    nodes: int,
) -> oracles.ErrorRateBounds:
    each = dict(levels)
    epsilon = levels[0][1] if len(set(each.values())) == 1 else each
    with translate_errors():
        return oracles.error_rate_bounds(
            q.sizes, q.differences, q.directed, epsilon, delta, kind, loss, nodes
        )


def find_closed_form_bound(request: ModuloRequest) -> tuple[float, str] | None:
    """A lower bound on the error of every mechanism that meets a request, with a sentence that says whose it is.

    It is lowered by what its evaluation may be off.
    """
    if request.aim.minimise != "loss":
        return None
    law = _proven(
        request, round_up(request.claim.delta or Fraction(0))
    ).lower  # which falls with delta
    if law is None:
        return None
    return law.value * (1 - ROUNDING), f"The bound is the closed form's: {law.name}. {law.proof}"


def judge_by_closed_form(
    request: ModuloRequest, solution: Solution, is_proven: bool
) -> OracleVerdict:
    """Of the least error or δ that a solver claims, and proves or not."""
    if request.aim.minimise == "delta":
        return _of_least_delta(request, solution, float(request.loss_limit or 0))
    # level functions do not judge what they found
    law = find_strongest_law(
        request, float(request.claim.delta or 0), 0 if solution.solver == LEVELS else DEFAULT_NODES
    )
    if law is None:
        return OracleVerdict.without_formula(
            f"no closed form is known for {request.claim.notion.name} with loss {request.aim.loss} here."
        )
    kind, proof = str(law.kind), law.proof
    if request.aim.constraints is not None:
        if kind == "upper bound":
            return OracleVerdict.without_formula("the extra constraints leave no closed form.")
        kind, proof = (
            "lower bound",
            f"{proof} The extra constraints can only raise the error above it.",
        )
    verdict = OracleVerdict.judge(
        solution.objective, law.name, law.value, kind, proof, scale=request.scale
    )
    return verdict if is_proven else verdict.for_stopped_search(solution.bound)


def _of_least_delta(request: ModuloRequest, solution: Solution, budget: float) -> OracleVerdict:
    """Of the least delta whose least error is within the budget: the law, which falls with delta, inverted."""
    ends = [find_strongest_law(request, 0.0), find_strongest_law(request, 1.0)]
    if request.aim.constraints is not None or ends[0] is None or ends[1] is None:
        return OracleVerdict.without_formula(
            f"no closed form is known for the least delta in {request.claim.notion.name} here."
        )

    def within(delta: float) -> bool:
        law = find_strongest_law(request, delta)
        return law is not None and law.value <= budget

    high = 0.0 if ends[0].value <= budget else bisect(within, 0.0, 1.0, tolerance=1e-15)[1]
    law = find_strongest_law(request, high) or ends[1]
    proven = all(each.kind == "optimum" for each in (ends[0], law) if each is not None)
    kind, proof = "optimum" if proven else "upper bound", f"{law.proof} Inverted in delta."
    return OracleVerdict.judge(solution.objective, f"{law.name}, inverted", high, kind, proof)


def is_proven_optimal(design: Design) -> bool:
    """Whether the bound proves that nothing costs less, certified where that was asked for."""
    certified = design.certificate is not None or not design.request.wants_certificate
    return (
        certified
        and design.bound is not None
        and design.scale.settles(design.objective, design.bound)
    )


def add_closed_form_bound(design: Design) -> Design:
    """The design with the closed form's bound, where that is the better one, and a verdict on what it costs."""
    oracle, known = design.oracle, find_closed_form_bound(design.request)
    if known is not None and (design.bound is None or known[0] > design.bound):
        details = {**design.details, "bound": Fraction(known[0])}
        design = replace(design, bound=known[0], words=(*design.words, known[1]), details=details)
    if oracle.value is None or oracle.kind is None or not is_proven_optimal(design):
        return design
    words, bound = design.words, design.bound
    if bound is not None and not design.scale.settles(design.claimed, bound):
        words += (
            f"The solver's own answer, {design.claimed:.9g}, is no optimum; what is certified is one.",
        )
    better = OracleVerdict.judge(
        design.objective,
        str(oracle.name),
        oracle.value,
        oracle.kind,
        oracle.proof,
        scale=design.scale,
    )
    return replace(design, oracle=better, words=words)
