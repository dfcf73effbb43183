"""From a problem to a design, the same way for every family and notion.

    closed form, or programs ──▶ exact mechanism ──▶ repair ──▶ one audit ──▶ loss, bound, oracle ──▶ Design or an error

What is claimed is the exact audit of the repaired mechanism, and nothing a solver says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from solvers.solution import Start
from workbench.errors import InvalidRequest, NotProven
from workbench.exact.numbers import round_down
from workbench.families.base import Request, Session, Values
from workbench.families.convex_notion import meets
from workbench.families.design import Design
from workbench.families.least_epsilon import Tried, least_epsilon
from workbench.families.problem import Answer, Problem, Programs
from workbench.privacy.claim import Claim


def design(problem: Problem, programs: Programs | None = None, start: str = "cold") -> Design:
    """Solve, repair, audit, bound, judge. Raises InvalidRequest, Infeasible, NotProven, NotCertified,
    SolverUnavailable."""
    answer = problem.closed_form() or problem.answered(programs, start)
    return problem.proven(_designed(problem, answer))


def _designed(problem: Problem, answer: Answer) -> Design:
    """The design that an answer makes, proven optimal or not."""
    request, mechanism = problem.request, answer.mechanism
    certificate, words = None, [*problem.words(), *answer.words]
    if request.certified:
        mechanism, certificate, more = problem.repaired(answer)
        words += more
    privacy = problem.audited(mechanism) if certificate is None else certificate.deciding
    claim, loss = problem.claim_of(privacy), problem.loss(mechanism)
    minimised = certificate is None or answer.proxy
    objective = answer.claimed if minimised and answer.claimed is not None else loss
    if getattr(request, "minimise", "loss") == "delta":
        objective = problem.least_delta(answer, privacy) if certificate is None else certificate.delta or Fraction(0)
        claim = Claim(claim.notion, claim.epsilon, objective)
    if certificate is None and not meets(privacy, claim):
        words.append(privacy.words(claim, problem.SUBJECT))
    if answer.bound is None and answer.solution is not None and problem.BEST:
        words.append(f"{request.solver} gives no bound: that nothing is better rests on its word.")
    return Design(
        problem.outer,
        mechanism,
        float(objective),
        None if answer.bound is None else round_down(Fraction(answer.bound)),
        claim,
        problem.oracle(answer),
        answer.solution,
        tuple(words),
        privacy,
        certificate,
        None if certificate is None or answer.mechanism is mechanism else answer.mechanism,
        answer.route,
        details={**answer.details, "loss": loss, "bound": answer.bound},
    )


class ProblemSession(Session):
    """The session of a family's requests. problem: of one request; least: the least ε that is tried."""

    def __init__(self, request: Request, problem: Callable[[Any], Problem], least: Fraction = Fraction(0)) -> None:
        super().__init__(request)
        self._problem, self._tried = problem, least
        self._programs = Programs(getattr(request, "solver", "highs"))

    def close(self) -> None:
        """Give the solvers' resources back."""
        self._programs.close()

    def design(self, point: Values | None = None, *, start: str = "hot") -> Design:
        """The design at a point, or the least ε there."""
        InvalidRequest.unless_among([*Start], "start", start)
        request: Any = self.request if point is None else self.request.at(point)
        if getattr(request, "minimise", "loss") == "epsilon":
            return self._least(request, "epsilon", self._tried)
        return design(self._problem(request), self._programs, start)

    def _least(self, request: Any, name: str, least: Fraction) -> Design:
        """The design at the least ε (or δ) found, with it as its objective and the largest one excluded as its bound.
        least: of those that are tried."""
        request.check_max_loss()

        def at(value: Fraction) -> Tried:
            tried = replace(request, minimise="loss", max_loss=None, **{name: value})
            try:
                design_there = design(self._problem(tried), self._programs, "hot")
            except NotProven as error:
                if error.design is None or error.interrupted:
                    raise
                design_there = error.design
            return design_there, design_there.details["loss"], design_there.details["bound"]

        words, limit = f"Loss {request.loss_name}", getattr(request, name)
        optimum = least_epsilon(at, request.max_loss, words, limit, least, name)
        return replace(optimum, request=replace(request, **{name: getattr(optimum.request, name)}))
