"""A family: the k-ary randomized response that is right most often, min Pr[wrong] over pure ε-DP channels.

Pr[y | y] = e^ε / (e^ε + k - 1),  Pr[o | y] = 1 / (e^ε + k - 1)        (Kairouz et al. 2016)

Its own route is the closed form, for an ε so large that a solver's tolerance hides the small masses.
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


class Answers(Channel):
    """A channel under a kind of its own."""

    kind = "answers"

    def to_dict(self):
        return super().to_dict() | {"kind": "answers"}

    @classmethod
    def from_dict(cls, data):
        found = Channel.from_dict(data | {"kind": "channel"})
        return cls(found.rows, found.neighbours)


@dataclass(frozen=True)
class Symbols:
    k: int


def why_not_closed_form(problem):
    epsilon = problem.request.claim.epsilon
    if epsilon > 10:
        return None
    return f"epsilon is {float(epsilon):g}, at most 10, where the program is as exact"


def closed_form(problem, programs, start):
    k, odds = problem.request.question.k, math.exp(problem.request.claim.epsilon)
    other = 1 / (odds + k - 1)
    rows = np.full((k, k), other)
    np.fill_diagonal(rows, odds * other)
    return Answer(Answers.from_rows(rows), (k - 1) * other * (1 - 1e-9), origin="Kairouz et al.")


class ResponseProblem(Problem):
    routes = (Route("closed form", why_not_closed_form, closed_form), PROGRAM)

    def program(self):
        values = np.arange(self.request.question.k, dtype=float)
        model = ChannelModel(
            values, values, np.full(values.size, 1 / values.size), 1 - np.eye(values.size)
        )
        return model.program, model.values([float(self.request.claim.epsilon)])

    def extract_mechanism(self, solution):
        return Answers.from_rows(np.maximum(solution["M"], 0.0))

    def compute_loss(self, mechanism):
        return mechanism.error_rate

    def judge_by_formula(self, answer):
        k, odds = self.request.question.k, math.exp(float(self.request.claim.epsilon))
        law = (k - 1) / (odds + k - 1)
        if answer.claimed_objective is None:
            return OracleVerdict.without_formula("it is the closed form itself.")
        return OracleVerdict.judge(
            answer.claimed_objective, "randomized response", law, "optimum", "Kairouz et al. 2016."
        )


class Response(Family):
    name, title, summary = (
        "response",
        "k-ary randomized response",
        "The randomized response that is right most often.",
    )
    examples = ("design response --k 3 --epsilon 1",)
    options = (
        Option("k", integer_reader(2, 50), help="How many symbols.", kind=int, required=True, question=True),
        make_check_option("audit", "certify"), CERTIFY, SOLVER, OPTIONS,
        Option("epsilon", read_positive, help="Privacy budget > 0.", required=True, hot=True),
    )  # fmt: skip
    frontier = "workbench_example.response"
    draws, question_class = False, Symbols

    def parse_question(self, values):
        return Symbols(values["k"])

    def build_request(self, question, values):
        return Request.from_values(question, Claim("pure", values.pop("epsilon")), values)

    def open_session(self, request):
        return ProblemSession(request, ResponseProblem)

    def facts(self, design):
        return [("least error rate", f"{design.objective:.9g}")]


FAMILY = Response()


def _plan(question, values):
    def task(epsilon):
        known = {"curve": "point", "mechanism": "optimal", "epsilon": float(epsilon)}
        asked = question or Symbols(values["k"])
        return lambda: [make_design_row(lambda: wb.design(asked, epsilon=epsilon), **known)]

    return Plan("Randomized response", [task(epsilon) for epsilon in values["epsilon"]])


FRONTIER = Frontier("Error rate of randomized response.", (FAMILY.get_option("k"), EPSILON), _plan)
