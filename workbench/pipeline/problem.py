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
from workbench.pipeline.infeasible import raise_no_point
from workbench.pipeline.loss_scale import LossScale
from workbench.pipeline.outcome import translate_errors
from workbench.pipeline.routes import Answer, Programs, Route, applies_always
from workbench.privacy.audit import Privacy, audit_for_claim
from workbench.privacy.certificate import Certificate
from workbench.privacy.certify import certify
from workbench.privacy.claim import Claim
from workbench.privacy.objective import ExpectedLoss, is_exact_loss
from workbench.solvers.program import Program
from workbench.solvers.solution import Solution, Start, Termination

_MAX_RELATIVE_GAP = 1e-5  # relative gap of what counts as an optimum

ZERO_DELTA_NOTE = "The mechanism is the best one at delta = 0, which is private at every delta."

Repaired = tuple[
    Any, Certificate | None, list[str]
]  # the mechanism, its certificate where there is one, words


class ProgramTooLarge(InvalidRequest):
    """A program too large to be stated; the message says which size would fit."""


def answer_by_program(problem: Problem, programs: Programs | None, start: str) -> Answer:
    """Solve the program of a problem. Raises InvalidRequest, Infeasible, NotProven, SolverUnavailable."""
    assert programs is not None
    with translate_errors():
        program, values = problem.to_program()
        with programs.backend.open(program, problem.request.how.options) as session:
            solution = session.solve(values, start=Start.COLD)
    if solution.x is None:
        raise_no_point(solution, "mechanism meets the request", "")
    mechanism = problem.extract_mechanism(solution)
    return Answer(
        mechanism, problem.prove_bound(solution), solution, claimed_objective=solution.objective
    )


PROGRAM = Route("program", applies_always, answer_by_program)


class Problem(ABC):
    """One request, without control flow: what is stated, repaired, proven.

    SUBJECT: what a solver's mechanism is called; ENOUGH: relative gap up to which a design says between what the
    optimum lies, where the digits are used up; BEST: whether a solver's answer without a bound passes for the best.
    routes: the ways to answer, in order; the first that applies is taken.
    """

    routes: Sequence[Route] = (PROGRAM,)

    SUBJECT: str = "The solver's channel"
    ACCEPTED_GAP = _MAX_RELATIVE_GAP
    CLAIMS_OPTIMUM = True

    def __init__(self, request: Any) -> None:
        self.request = request
        self.reported_request = (
            request  # the request of the design, where this one is underneath another
        )

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

    def find_simpler_candidates(self) -> Iterator[Answer]:
        """Mechanisms that are private by a simpler argument, tried where the program proved nothing."""
        yield from ()

    def find_constant(self, loss_limit: float) -> Answer | None:
        """The best mechanism that tells nothing, where it costs less than a loss and is in the class."""
        return None

    def to_program(self) -> tuple[Program, Values]:
        """The model, stated, and the values of its parameters. Raises InvalidRequest."""
        raise NotImplementedError

    def extract_mechanism(self, solution: Solution) -> Any:
        """The solver's own mechanism, in floats."""
        raise NotImplementedError

    def prove_bound(self, solution: Solution) -> Fraction | float | None:
        """A bound on the optimum, None where nothing is known."""
        return solution.bound

    def repair(self, answer: Answer) -> Repaired:
        """What the exact audit accepts. Raises Infeasible, NotCertified."""
        certificate = certify(answer.mechanism, self.claim.notion, **self.claim.values)
        return certificate.mechanism, certificate, []

    @abstractmethod
    def compute_loss(self, mechanism: Any) -> Fraction | float:
        """What a mechanism costs, exactly where that is rational."""

    @property
    def loss_scale(self) -> LossScale:
        """The scale of what is minimised, by which gaps are judged."""
        return LossScale()

    def audit(self, mechanism: Any) -> Privacy:
        """The exact audit of a mechanism that decides the claim."""
        return audit_for_claim(mechanism, self.claim.adapt_to(mechanism))

    def claim_for_audit(self, privacy: Privacy) -> Claim:
        """The claim on the comparisons of an audit."""
        return self.claim

    def smallest_delta(self, answer: Answer, privacy: Privacy) -> Fraction:
        """The δ of a mechanism that is not certified, where δ is minimised."""
        return Fraction(privacy.dp_delta.upper)

    def judge_by_formula(self, answer: Answer) -> OracleVerdict:
        """What a closed form says."""
        return OracleVerdict.without_formula(
            "no closed form is known for this notion; the bound is proven by multipliers."
        )

    def list_notes(self) -> list[str]:
        """Sentences that a reader must know of every design."""
        return []

    def require_proof(self, design: Design) -> Design:
        """The design, where its exact loss is within the gap of its bound. Raises NotProven, with the design."""
        solution, bound, loss = design.solution, design.bound, design.objective
        if bound is not None and self.loss_scale.settles(loss, bound, _MAX_RELATIVE_GAP):
            if solution is not None and solution.termination is Termination.NUMERICAL:
                # The audit and the bound decide, not the solver.
                return replace(design, solution=replace(solution, termination=Termination.OPTIMAL))
            return design
        between = (
            f"is at most {loss:.9g}"
            if bound is None
            else f"lies between {bound:.9g} and {loss:.9g}"
        )
        if solution is None:
            raise NotProven(
                f"The route {design.route!r} proves no more than that the optimum {between}.",
                design=design,
            )
        if bound is not None and self.loss_scale.settles(loss, bound, self.ACCEPTED_GAP):
            words = f"The solver's digits were used up: the optimum {between}."
            ended = replace(solution, termination=Termination.GAP_LIMIT)
            return replace(design.mark_stopped(), solution=ended, words=(*design.words, words))
        words = f"{solution.solver} ended with {solution.raw_status!r}, which proves no more than that the optimum"
        raise NotProven(f"{words} {between}.", design=design)


def make_certificate(
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
            objective = ExpectedLoss(
                loss, Fraction(0), inputs, tuple(prior), outputs, at
            ).with_value_of(channel)
        bias = None if rows is not None else Bias.measure(channel, outputs, inputs)
    return Certificate(channel, claim, objective=objective, bias=bias, record=record)
