"""Noise under notions of several convex bounds: DP curves, Rényi DP, zCDP, GDP: solved with cuts, repaired, audited.

The last program's answer is repaired until the exact audit accepts it: that, and nothing a solver says, is the claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from models.modulo_notions import ModuloNotionModel
from solvers.program import Program
from solvers.solution import Solution, Termination
from workbench.errors import NotCertified, NotProven
from workbench.families.convex_notion import meets, solve_with_cuts
from workbench.families.design import Design, OracleVerdict
from workbench.families.modulo.certify import record_of, stated_loss
from workbench.families.modulo.request import ModuloRequest
from workbench.families.oracle import ABSOLUTE
from workbench.mechanisms.additive import AdditiveNoise
from workbench.privacy.audit import audit
from workbench.privacy.certificate import Certificate
from workbench.privacy.claim import Claim
from workbench.privacy.repair import exact_loss, raised, repair_noise

__all__ = ["within_curve", "within_notion"]

_FINE, _SEEN = 120, 1e-7  # bits of a repaired mass; masses that a solver knows to some digits
_STEEPER = (1, Fraction(9, 8), Fraction(5, 4), Fraction(3, 2), 2)  # losses of the tails, of the largest loss seen
_CLOSE = 1e-7  # relative gap at which no other repair is tried
_ENOUGH = 1e-5  # relative gap of what counts as an optimum


def within_notion(request: ModuloRequest) -> Design:
    """The least-loss noise within the budget of a notion of several bounds. Raises InvalidRequest, Infeasible,
    NotProven, NotCertified, SolverUnavailable."""
    claim = request.claim()
    solution, bound = _solved(request, claim)
    raw, words = AdditiveNoise.from_pmf(request.question, np.maximum(solution["f"], 0.0)), []
    if request.question.directed:
        words.append("Directed differences protect one side of each pair of neighbours only.")
    mechanism, certificate = raw, None
    if request.certified:
        mechanism = _repaired(request, claim, raw, bound)
        if request.constraints is not None:
            words.append("Privacy is certified; the extra constraints hold within the solver's tolerances only.")
        certificate = Certificate(
            mechanism,
            request.notion,
            objective=stated_loss(request, exact_loss(mechanism, request.losses)),
            record=record_of(request, solution, "repair") | {"bound": bound},
            parameters=claim.values,
        )
        privacy = certificate.privacy
    else:
        privacy = audit(raw, claim.values.get("epsilon", 0))
        if not meets(privacy, claim):
            words.append(privacy.words(claim, "The solver's PMF"))
    loss = float(exact_loss(mechanism, request.losses))
    oracle = OracleVerdict.none("no closed form is known for this notion; the bound is that of the last program.")
    design = Design(
        request,
        mechanism,
        loss,
        bound,
        claim,
        oracle,
        solution,
        tuple(words),
        privacy,
        certificate,
        None if certificate is None else raw,
        "repair",
    )
    if bound is None or loss - bound > _ENOUGH * loss + ABSOLUTE * float(request.losses.max()):
        between = f"is at most {loss:.9g}" if bound is None else f"lies between {bound:.9g} and {loss:.9g}"
        ended = f"{solution.solver} ended with {solution.raw_status!r}, which proves no more than"
        raise NotProven(f"{ended} that the optimum {between}.", incumbent=loss, bound=bound, design=design)
    if solution.termination is Termination.NUMERICAL:  # decided by the audit and the bound, not by the solver
        return replace(design, solution=replace(solution, termination=Termination.OPTIMAL))
    return design


def within_curve(request: ModuloRequest, curve: Sequence[tuple[Fraction, Fraction]]) -> Design:
    """The least-loss noise of one run that is (ε, δ)-private for all points of a curve. Raises as `within_notion`."""
    point = {"notion": "curve", "curve": curve, "epsilon": None, "delta": None, "method": "fast"}
    return within_notion(request.at(point))


def _solved(request: ModuloRequest, claim: Claim) -> tuple[Solution, float | None]:
    """The last answer and the best bound, by cones, cuts and linear programs."""
    question = request.question

    def laws(solution: Solution, shift: tuple[int, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        f = np.maximum(solution["f"], 0.0)
        return f, f[question.index(shift)]

    def columns(program: Program, shift: tuple[int, ...]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        at = program.block("f").start + np.arange(question.order)
        return at, at[question.index(shift)]

    return solve_with_cuts(
        claim,
        question.differences,
        lambda bounds: ModuloNotionModel(question.sizes, bounds, request.losses, request.constraints).program,
        laws,
        request.solver,
        request.options,
        columns,
    )


def _repaired(request: ModuloRequest, claim: Claim, raw: AdditiveNoise, bound: float | None) -> AdditiveNoise:
    """The cheapest of the repaired candidates: the solver's masses, and the same with tails that fall no faster than
    its larger masses do. What is below a solver's tolerance is noise, whose ratios only a large share of uniform noise
    would mend."""
    question, f = request.question, raw.pmf
    weights = [int(mass * 2.0**_FINE) for mass in f.tolist()]
    seen = f > _SEEN
    ratios = [
        np.log(f[both] / f[index][both])
        for index in map(question.index, question.differences)
        for both in [seen & seen[index]]
    ]
    steepest = max((float(ratio.max(initial=0.0)) for ratio in ratios), default=0.0)
    candidates: list[AdditiveNoise] = []
    reasons: list[str] = []
    for share in (None, *_STEEPER):
        values = raw.exact_pmf
        if share is not None:
            most = Fraction(max(steepest, 1e-3) * share).limit_denominator(1 << 20)
            values = [*map(Fraction, raised(question, weights, dict.fromkeys(question.differences, most), None))]
        try:
            repaired = repair_noise(question, values, claim).mechanism
            assert isinstance(repaired, AdditiveNoise)
            candidates.append(repaired)
        except NotCertified as error:
            reasons.append(str(error))
            continue
        loss = float(exact_loss(candidates[-1], request.losses))
        if bound is not None and loss - bound <= _CLOSE * loss:
            break
    if not candidates:
        raise NotCertified(f"No repaired mechanism meets the request exactly: {reasons[0]}")
    return min(candidates, key=lambda candidate: exact_loss(candidate, request.losses))
