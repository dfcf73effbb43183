"""A family as a plug-in: the ε-DP channel of k symbols with the smallest error rate.

It is k-ary randomized response (Kairouz et al. 2016). For a symbol y and another output o,

Pr[y | y] = e^ε / (e^ε + k - 1),  Pr[o | y] = 1 / (e^ε + k - 1).

For ε <= 10 the family solves a linear program. For larger ε, the small masses are below the
tolerance of a solver, and the closed form above is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import workbench as wb
from workbench.exact.numbers import read_positive
from workbench.mechanisms.channel import Channel
from workbench.models.channel.program import ChannelModel
from workbench.pipeline.design import OracleVerdict
from workbench.pipeline.family import Family
from workbench.pipeline.frontier_plan import EPSILON, Frontier, Plan, make_design_row
from workbench.pipeline.option import (
    CERTIFY,
    OPTIONS,
    SOLVER,
    Option,
    integer_reader,
    make_check_option,
)
from workbench.pipeline.problem import PROGRAM, Problem
from workbench.pipeline.request import Request
from workbench.pipeline.routes import Answer, Route
from workbench.pipeline.solve import ProblemSession
from workbench.privacy.claim import Claim

MAX_PROGRAM_EPSILON = 10  # For larger ε the closed form is used.


class Answers(Channel):
    """A channel with a kind of its own in certificate files."""

    kind = "answers"

    def to_dict(self):
        """Return the channel as an entry of a certificate file."""
        return super().to_dict() | {"kind": "answers"}

    @classmethod
    def from_dict(cls, data):
        """Read the channel from such an entry."""
        channel = Channel.from_dict(data | {"kind": "channel"})
        return cls(channel.rows, channel.neighbours)


@dataclass(frozen=True)
class Symbols:
    """The question: which of the symbols 0, ..., k - 1? Any two of them are neighbours."""

    k: int


def why_not_closed_form(problem):
    """Return the reason why the closed form is not used, or None if it is used."""
    epsilon = problem.request.claim.epsilon
    if epsilon > MAX_PROGRAM_EPSILON:
        return None
    return (
        f"epsilon is {float(epsilon):g}, at most {MAX_PROGRAM_EPSILON}, "
        "where the program is as exact"
    )


def apply_closed_form(problem, programs, start):
    """Return randomized response and a lower bound that is safe against rounding."""
    k = problem.request.question.k
    ratio = math.exp(problem.request.claim.epsilon)
    error_probability = 1 / (ratio + k - 1)  # The probability of each wrong symbol.
    rows = np.full((k, k), error_probability)
    np.fill_diagonal(rows, ratio * error_probability)
    lower_bound = (k - 1) * error_probability * (1 - 1e-9)
    return Answer(Answers.from_rows(rows), lower_bound, origin="Kairouz et al.")


class ResponseProblem(Problem):
    """The linear program of the error rate, with a uniform prior."""

    routes = (Route("closed form", why_not_closed_form, apply_closed_form), PROGRAM)

    def program(self):
        """Return the linear program and the values of its parameters."""
        k = self.request.question.k
        symbols = np.arange(k, dtype=float)
        prior = np.full(k, 1 / k)
        model = ChannelModel(symbols, symbols, prior, 1 - np.eye(k))
        return model.program, model.values([float(self.request.claim.epsilon)])

    def extract_mechanism(self, solution):
        """Return the channel of a solution. Rounding may leave masses just below 0."""
        return Answers.from_rows(np.maximum(solution["M"], 0.0))

    def compute_loss(self, mechanism):
        """Return the probability of a wrong symbol, for a uniform prior."""
        return mechanism.error_rate

    def judge_by_formula(self, answer):
        """Compare the claimed optimum with the formula of randomized response."""
        if answer.claimed_objective is None:
            return OracleVerdict.without_formula("it is the closed form itself.")
        k = self.request.question.k
        optimum = (k - 1) / (math.exp(float(self.request.claim.epsilon)) + k - 1)
        name = "randomized response"
        source = "Kairouz et al. 2016."
        return OracleVerdict.judge(answer.claimed_objective, name, optimum, "optimum", source)


class Response(Family):
    """Randomized response of k symbols."""

    name = "response"
    title = "k-ary randomized response"
    summary = "The randomized response with the least error rate."
    examples = ("design response --k 3 --epsilon 1",)
    options = (
        Option("k", integer_reader(2, 50), help="How many symbols.", kind=int, required=True, question=True),
        make_check_option("audit", "certify"), CERTIFY, SOLVER, OPTIONS,
        Option("epsilon", read_positive, help="Privacy budget > 0.", required=True, hot=True),
    )  # fmt: skip
    frontier = "workbench_example.response"
    draws = False
    question_class = Symbols

    def parse_question(self, values):
        """Return the question that the values of the options state."""
        return Symbols(values["k"])

    def build_request(self, question, values):
        """Return the request: ε-DP for the question, and the other options."""
        return Request.from_values(question, Claim("pure", values.pop("epsilon")), values)

    def open_session(self, request):
        """Return a session that answers the request, and later ones with other ε."""
        return ProblemSession(request, ResponseProblem)

    def facts(self, design):
        """Return the lines that a report adds to those of every design."""
        return [("minimal error rate", f"{design.objective:.9g}")]


FAMILY = Response()


def _plan_frontier(question, values):
    """Return the tasks of a frontier: one design for each ε."""
    symbols = question or Symbols(values["k"])

    def make_task(epsilon):
        """Return a function that computes the row of one ε."""
        columns = {"curve": "point", "mechanism": "optimal", "epsilon": float(epsilon)}
        return lambda: [make_design_row(lambda: wb.design(symbols, epsilon=epsilon), **columns)]

    return Plan("Randomized response", [make_task(epsilon) for epsilon in values["epsilon"]])


FRONTIER_OPTIONS = (FAMILY.get_option("k"), EPSILON)
FRONTIER = Frontier("Error rate of randomized response.", FRONTIER_OPTIONS, _plan_frontier)
