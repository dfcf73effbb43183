"""What a family knows of one request: a `Problem`, which `workbench.pipeline.solve` takes to a design.

    program()                (the model, stated; the values of its parameters)
    mechanism(solution)      the solver's own mechanism, in floats
    repaired(answer)         what the exact audit accepts, its certificate, and words; any mechanism by default
    loss(mechanism)          what it costs, exactly where that is rational
    bound(solution)          a bound on the optimum; by default that of the solver's multipliers
    oracle(answer)           what a closed form says

These six are the whole of a family with one program. A family that answers in other ways (closed forms, cuts, several
algorithms, a search) lists them as `routes`, in place of program, mechanism and bound (`workbench.pipeline.routes`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from workbench.errors import InvalidRequest, NotProven
from workbench.exact.objects import Values
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.mechanism import Bias
from workbench.pipeline.design import Design, OracleVerdict
from workbench.pipeline.infeasible import no_point
from workbench.pipeline.loss_scale import LossScale
from workbench.pipeline.outcome import translated_errors
from workbench.pipeline.routes import Answer, Programs, Route, always
from workbench.privacy.audit import Privacy, audit_for
from workbench.privacy.certificate import Certificate
from workbench.privacy.certify import certify
from workbench.privacy.claim import Claim
from workbench.privacy.objective import ExpectedLoss, is_exact_loss
from workbench.solvers.program import Program
from workbench.solvers.solution import Solution, Start, Termination

_ENOUGH = 1e-5  # relative gap of what counts as an optimum

PRIVATE_WITHOUT_DELTA = (
    "The mechanism is the best one at delta = 0, which is private at every delta."
)

Repaired = tuple[
    Any, Certificate | None, list[str]
]  # the mechanism, its certificate where there is one, words


class ProgramTooLarge(InvalidRequest):
    """A program too large to be stated; the message says which size would fit."""


def answer_by_program(problem: Problem, programs: Programs | None, start: str) -> Answer:
    """Solve the program of a problem. Raises InvalidRequest, Infeasible, NotProven, SolverUnavailable."""
    assert programs is not None
    with translated_errors():
        program, values = problem.program()
        with programs.backend.open(program, problem.request.how.options) as session:
            solution = session.solve(values, start=Start.COLD)
    if solution.x is None:
        no_point(solution, "mechanism meets the request", "")
    mechanism = problem.mechanism(solution)
    return Answer(mechanism, problem.bound(solution), solution, claimed=solution.objective)


PROGRAM = Route("program", always, answer_by_program)


class Problem(ABC):
    """One request, without control flow: what is stated, repaired, proven.

    SUBJECT: what a solver's mechanism is called; ENOUGH: relative gap up to which a design says between what the
    optimum lies, where the digits are used up; BEST: whether a solver's answer without a bound passes for the best.
    routes: the ways to answer, in order; the first that applies is taken.
    """

    routes: Sequence[Route] = (PROGRAM,)

    SUBJECT: str = "The solver's channel"
    ENOUGH = _ENOUGH
    BEST = True

    def __init__(self, request: Any) -> None:
        self.request = request
        self.outer = request  # the request of the design, where this one is underneath another

    @property
    def claim(self) -> Claim:
        """What a mechanism is audited for."""
        claim: Claim = self.request.audited_claim
        return claim

    def without_delta(self) -> Problem | None:
        """The same problem at δ = 0, whose mechanisms are private at every δ; None where it is no candidate."""
        return None

    def bound_at_delta(self, bound: Fraction | float) -> Fraction | None:
        """A bound at δ from one on the optimum at δ = 0; None where none is known."""
        return None

    def stronger(self) -> Iterator[Answer]:
        """Mechanisms that are private by a simpler argument, tried where the program proved nothing."""
        yield from ()

    def constant(self, below: float) -> Answer | None:
        """The best mechanism that tells nothing, where it costs less than a loss and is in the class."""
        return None

    def program(self) -> tuple[Program, Values]:
        """The model, stated, and the values of its parameters. Raises InvalidRequest."""
        raise NotImplementedError

    def mechanism(self, solution: Solution) -> Any:
        """The solver's own mechanism, in floats."""
        raise NotImplementedError

    def bound(self, solution: Solution) -> Fraction | float | None:
        """A bound on the optimum, None where nothing is known."""
        return solution.bound

    def repaired(self, answer: Answer) -> Repaired:
        """What the exact audit accepts. Raises Infeasible, NotCertified."""
        certificate = certify(answer.mechanism, self.claim.notion, **self.claim.values)
        return certificate.mechanism, certificate, []

    @abstractmethod
    def loss(self, mechanism: Any) -> Fraction | float:
        """What a mechanism costs, exactly where that is rational."""

    @property
    def loss_scale(self) -> LossScale:
        """The scale of what is minimised, by which gaps are judged."""
        return LossScale()

    def audited(self, mechanism: Any) -> Privacy:
        """The exact audit of a mechanism that decides the claim."""
        return audit_for(mechanism, self.claim.on(mechanism))

    def claim_of(self, privacy: Privacy) -> Claim:
        """The claim on the comparisons of an audit."""
        return self.claim

    def least_delta(self, answer: Answer, privacy: Privacy) -> Fraction:
        """The δ of a mechanism that is not certified, where δ is minimised."""
        return Fraction(privacy.dp_delta.upper)

    def oracle(self, answer: Answer) -> OracleVerdict:
        """What a closed form says."""
        return OracleVerdict.none(
            "no closed form is known for this notion; the bound is proven by multipliers."
        )

    def words(self) -> list[str]:
        """Sentences that a reader must know of every design."""
        return []

    def proven(self, reached: Design) -> Design:
        """The design, where its exact loss is within the gap of its bound. Raises NotProven, with the design."""
        solution, bound, loss = reached.solution, reached.bound, reached.objective
        if bound is not None and self.loss_scale.settles(loss, bound, _ENOUGH):
            if solution is not None and solution.termination is Termination.NUMERICAL:
                # The audit and the bound decide, not the solver.
                return replace(reached, solution=replace(solution, termination=Termination.OPTIMAL))
            return reached
        between = (
            f"is at most {loss:.9g}"
            if bound is None
            else f"lies between {bound:.9g} and {loss:.9g}"
        )
        if solution is None:
            raise NotProven(
                f"The route {reached.route!r} proves no more than that the optimum {between}.",
                design=reached,
            )
        if bound is not None and self.loss_scale.settles(loss, bound, self.ENOUGH):
            words = f"The solver's digits were used up: the optimum {between}."
            ended = replace(solution, termination=Termination.GAP_LIMIT)
            return replace(reached.stopped(), solution=ended, words=(*reached.words, words))
        words = f"{solution.solver} ended with {solution.raw_status!r}, which proves no more than that the optimum"
        raise NotProven(f"{words} {between}.", design=reached)


def stated_certificate(
    channel: Channel,
    claim: Claim,
    loss: str | None,
    numbers: tuple[Sequence[Fraction], Sequence[Fraction]] | None,
    prior: Sequence[Fraction] | None,
    record: Values,
    rows: Sequence[int] | None = None,
) -> Certificate:
    """The certificate of a channel that meets a claim, with its means and its loss where a file can state them.

    loss: its name, None where it is not stated; numbers: (inputs, outputs), None where some are none; prior: of the
    inputs, None for the worst one; rows: of every input, where inputs share them. Raises NotCertified.
    """
    objective = bias = None
    if numbers is not None:
        inputs, outputs = map(tuple, numbers)
        if loss is not None and prior is not None and is_exact_loss(loss):
            at = tuple(range(len(inputs)) if rows is None else rows)
            objective = ExpectedLoss(loss, Fraction(0), inputs, tuple(prior), outputs, at).at(
                channel
            )
        bias = None if rows is not None else Bias.of(channel, outputs, inputs)
    return Certificate(channel, claim, objective=objective, bias=bias, record=record)
