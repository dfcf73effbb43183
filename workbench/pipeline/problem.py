"""Define the interface of a problem: how a family solves and proves one request.

`workbench.pipeline.solve` makes a design from a `Problem` by these methods:

    program()                     the program with the values of its parameters
    extract_mechanism(solution)   the solver's mechanism, in floats
    repair(answer)                a mechanism that the exact audit accepts, its certificate, notes
    compute_loss(mechanism)       the expected loss, exact if it is rational
    prove_bound(solution)         a lower bound on the optimum; default: by the solver's multipliers
    judge_by_formula(answer)      the comparison with a closed form

A family with one program needs nothing else. A family that answers in other ways (closed forms,
cuts, several algorithms, a search) lists them as `routes`, in place of program,
extract_mechanism and prove_bound (`workbench.pipeline.routes`).
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

# A bound within this relative gap proves that an objective is optimal.
_MAX_RELATIVE_GAP = 1e-5

ZERO_DELTA_NOTE = (
    "The mechanism was designed for delta = 0 and is therefore private at every delta."
)

# The repaired mechanism, its certificate (None if the class has none), and sentences for reports.
Repaired = tuple[Any, Certificate | None, list[str]]


class ProgramTooLarge(InvalidRequest):
    """A program is too large to be built. The message says which size fits."""


def answer_by_program(problem: Problem, programs: Programs | None, start: str) -> Answer:
    """Solve the program of a problem.

    Args:
        problem: The `Problem` of the request.
        programs: The compiled programs of the session.
        start: "hot" or "cold".

    Raises:
        InvalidRequest, Infeasible, NotProven, SolverUnavailable: The solver returned no mechanism.
    """
    assert programs is not None
    with translate_errors():
        program, values = problem.program()
        with programs.backend.open(program, problem.request.how.options) as session:
            solution = session.solve(values, start=Start.COLD)
    if solution.x is None:
        raise_no_point(solution, "mechanism meets the request", "")
    mechanism = problem.extract_mechanism(solution)
    bound = problem.prove_bound(solution)
    return Answer(mechanism, bound, solution, claimed_objective=solution.objective)


PROGRAM = Route("program", applies_always, answer_by_program)


class Problem(ABC):
    """One request with its program, repair and proof.

    Args:
        request: The request: its question, claim, aim and how.

    Attributes:
        SUBJECT: Name of a solver's mechanism in sentences.
        ACCEPTED_GAP: Relative gap up to which a design that is not proven optimal is returned, with
            a note on the interval of the optimum. A larger gap raises NotProven.
        CLAIMS_OPTIMUM: Whether a report must say so if a solver gives no bound.
        routes: Ways to answer, in order. The first one that applies is used.
        reported_request: The request of the design, if this problem is part of another one.
    """

    routes: Sequence[Route] = (PROGRAM,)

    SUBJECT: str = "The solver's channel"
    ACCEPTED_GAP = _MAX_RELATIVE_GAP
    CLAIMS_OPTIMUM = True

    def __init__(self, request: Any) -> None:
        self.request = request
        self.reported_request = request

    @property
    def claim(self) -> Claim:
        """Return the claim that a mechanism is audited for."""
        claim: Claim = self.request.audited_claim
        return claim

    def without_delta(self) -> Problem | None:
        """Return the same problem at δ = 0, None if its optimum is no candidate.

        A mechanism that is private at δ = 0 is private at every δ.
        """
        return None

    def bound_at_delta(self, bound: Fraction | float) -> Fraction | None:
        """Return a lower bound on the optimum at δ, None if none is known.

        Args:
            bound: A lower bound on the optimum at δ = 0.
        """
        return None

    def find_simpler_candidates(self) -> Iterator[Answer]:
        """Yield mechanisms that a simpler argument proves private.

        They are tried if the program proved nothing.
        """
        yield from ()

    def find_constant(self, loss_limit: float) -> Answer | None:
        """Return the best mechanism with a constant output, if it belongs to the class.

        Args:
            loss_limit: None is returned if its loss is not smaller.
        """
        return None

    def program(self) -> tuple[Program, Values]:
        """Return the program and the values of its parameters. Raises InvalidRequest."""
        raise NotImplementedError

    def extract_mechanism(self, solution: Solution) -> Any:
        """Return the solver's mechanism, in floats.

        Args:
            solution: The solver's answer.
        """
        raise NotImplementedError

    def prove_bound(self, solution: Solution) -> Fraction | float | None:
        """Return a lower bound on the optimum, None if none is known.

        Args:
            solution: The solver's answer.
        """
        return solution.bound

    def repair(self, answer: Answer) -> Repaired:
        """Return a mechanism that the exact audit accepts, its certificate, and notes.

        Args:
            answer: The answer of a route.

        Raises:
            Infeasible: No mechanism satisfies the request.
            NotCertified: The mechanism cannot be repaired.
        """
        certificate = certify(answer.mechanism, self.claim.notion, **self.claim.values)
        return certificate.mechanism, certificate, []

    @abstractmethod
    def compute_loss(self, mechanism: Any) -> Fraction | float:
        """Return the expected loss of a mechanism, exact if it is rational.

        Args:
            mechanism: A mechanism of the class.
        """

    @property
    def loss_scale(self) -> LossScale:
        """Return the scale of the objective, by which gaps are judged."""
        return LossScale()

    def audit(self, mechanism: Any) -> Privacy:
        """Return the exact audit that decides the claim.

        Args:
            mechanism: A mechanism of the class.
        """
        return audit_for_claim(mechanism, self.claim.adapt_to(mechanism))

    def claim_for_audit(self, privacy: Privacy) -> Claim:
        """Return the claim with a budget for each comparison of an audit.

        Args:
            privacy: The result of the exact audit.
        """
        return self.claim

    def smallest_delta(self, answer: Answer, privacy: Privacy) -> Fraction:
        """Return the δ of a mechanism without a certificate, if δ is minimised.

        Args:
            answer: The answer of a route.
            privacy: The audit of its mechanism.
        """
        return Fraction(privacy.dp_delta.upper)

    def judge_by_formula(self, answer: Answer) -> OracleVerdict:
        """Compare an answer with a closed form.

        Args:
            answer: The answer of a route.
        """
        return OracleVerdict.without_formula(
            "no closed form is known for this notion; the bound is proven by multipliers."
        )

    def list_notes(self) -> list[str]:
        """Return sentences that a reader of every design must know."""
        return []

    def require_proof(self, design: Design) -> Design:
        """Return a design if its exact loss is within the gap of its bound.

        Args:
            design: The `Design`, with its request and mechanism.

        Raises:
            NotProven: It is not. The error has the design.
        """
        solution = design.solution
        bound = design.bound
        loss = design.objective
        if bound is not None and self.loss_scale.settles(loss, bound, _MAX_RELATIVE_GAP):
            if solution is not None and solution.termination is Termination.NUMERICAL:
                # The audit and the bound decide, not the solver.
                optimal = replace(solution, termination=Termination.OPTIMAL)
                return replace(design, solution=optimal)
            return design
        interval = f"is at most {loss:.9g}"
        if bound is not None:
            interval = f"lies between {bound:.9g} and {loss:.9g}"
        is_accepted = bound is not None and self.loss_scale.settles(loss, bound, self.ACCEPTED_GAP)
        if solution is None:
            if is_accepted:
                note = f"The precision of the method is exhausted: the optimum {interval}."
                details = {**design.details, "stopped": True}
                return replace(design.mark_stopped(), words=(*design.words, note), details=details)
            raise NotProven(
                f"The route {design.route!r} proves only that the optimum {interval}. More time "
                "(time_limit) may narrow the interval.",
                design=design,
            )
        if is_accepted:
            note = f"The solver's precision is exhausted: the optimum {interval}."
            limited = replace(solution, termination=Termination.GAP_LIMIT)
            notes = (*design.words, note)
            return replace(design.mark_stopped(), solution=limited, words=notes)
        raise NotProven(
            f"{solution.solver} ended with {solution.raw_status!r}, which proves only that the "
            f"optimum {interval}.",
            design=design,
        )


def make_certificate(
    channel: Channel,
    claim: Claim,
    loss: str | None,
    numbers: tuple[Sequence[Fraction], Sequence[Fraction]] | None,
    prior: Sequence[Fraction] | None,
    record: Values,
    rows: Sequence[int] | None = None,
) -> Certificate:
    """Make the certificate of a channel, with its means and its loss if a file can state them.

    Args:
        channel: A channel that satisfies the claim.
        claim: The claim: a notion with its budget.
        loss: Name of the loss. None: the loss is not stated.
        numbers: The inputs and the outputs. None if some of them are not numbers.
        prior: Weights of the inputs. None: the worst input counts.
        record: Recorded entries, which are not proven.
        rows: Row of every input, if inputs share rows.

    Raises:
        NotCertified: The channel does not satisfy the claim.
    """
    objective = None
    bias = None
    if numbers is not None:
        inputs, outputs = map(tuple, numbers)
        if loss is not None and prior is not None and is_exact_loss(loss):
            row_indices = tuple(range(len(inputs)) if rows is None else rows)
            loss_statement = ExpectedLoss(
                name=loss,
                value=Fraction(0),
                labels=inputs,
                prior=tuple(prior),
                outputs=outputs,
                rows=row_indices,
            )
            objective = loss_statement.with_value_of(channel)
        if rows is None:
            bias = Bias.measure(channel, outputs, inputs)
    return Certificate(channel, claim, objective=objective, bias=bias, record=record)
