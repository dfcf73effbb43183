"""The dyadic quantized Laplace mechanism within a bit budget, as a family. No solver takes part.

`objective` is the decoder's ε, found by search over an exact mean length; nothing bounds it from below.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import read_number, read_positive
from workbench.exact.objects import Record, Values
from workbench.io.shown import Facts
from workbench.mechanisms.dyadic_laplace.elias import Code
from workbench.mechanisms.dyadic_laplace.mean_length import UNIFORM_DATA, DataLaw
from workbench.pipeline.design import Design
from workbench.pipeline.family import Family
from workbench.pipeline.frontier_plan import Point
from workbench.pipeline.option import Option, choice_reader, to_json_value
from workbench.pipeline.request import Aim, Request
from workbench.privacy.claim import Claim

_USELESS = 100  # times ε, from where a decoder learns nearly everything


@dataclass(frozen=True, kw_only=True, eq=False)
class LaplaceAim(Aim):
    """What is asked of the Laplace mechanism.

    Attributes:
        bits: the largest mean number of bits of a scalar.
        code: the code of the integers, "gamma" or "delta".
    """

    bits: Fraction
    code: Code = "gamma"


@dataclass(frozen=True, kw_only=True, eq=False)
class LaplaceRequest(Request):
    """The smallest ℓ whose exact mean length is at most `bits`; the question is the law of one scalar.

    The claim is metric privacy of the database, its ε per unit of |x - x'|.
    """

    AIM = LaplaceAim

    question: DataLaw
    aim: LaplaceAim

    @property
    def objective_name(self) -> str:
        """See `Request.minimised`."""
        return "epsilon towards the decoder"

    @property
    def heading(self) -> str:
        """See `Request.heading`."""
        return f"Dyadic quantized Laplace, {self.question.text}"

    @property
    def budget_text(self) -> str:
        """The budget, in words."""
        most = f"at most {float(self.aim.bits):g} bits of Elias {self.aim.code}"
        return f"epsilon = {float(self.claim.epsilon):g} a unit of |x - x'|, {most}"

    def __post_init__(self) -> None:
        from workbench.mechanisms.dyadic_laplace.piecewise_linear import read_positive_float

        read_positive_float(self.claim.epsilon, "epsilon")
        read_positive_float(self.aim.bits, "bits")


class _Laplace(Family):
    name = "laplace"
    title = "exact Laplace noise in few bits"
    summary = "The dyadic quantized Laplace mechanism with the best decoder privacy whose exact mean length fits the budget."
    examples = (
        "design laplace --epsilon 1 --bits 5",
        "design laplace --epsilon 0.1 --bits 8 --low 0 --high 100 --code delta --json",
    )
    options = (
        Option("code", choice_reader("gamma", "delta"), "gamma", "Signed Elias code of the integers: gamma or delta."),
        Option(
            "low", read_number, help="The data are uniform on [low, high]; -1 by default.", kind=float, question=True
        ),
        Option(
            "high", read_number, help="The data are uniform on [low, high]; 1 by default.", kind=float, question=True
        ),
        Option(
            "point", read_number, help="The datum is this number (instead of --low, --high).", kind=float,
            question=True,
        ),
        Option("bits", read_positive, help="Mean bits a scalar, > 0.", required=True, hot=True),
        Option(
            "epsilon", read_positive, help="Database privacy per unit of |x - x'|, > 0.", required=True, hot=True
        ),
    )  # fmt: skip
    certifies = False
    no_formula_reason = "it searches codes of noise whose law is given"

    @property
    def question_class(self) -> type[DataLaw]:
        return DataLaw

    def parse_question(self, values: Values) -> DataLaw:
        low, high, point = (values[name] for name in ("low", "high", "point"))
        if point is not None:
            if low is not None or high is not None:
                raise InvalidRequest("point must be given without low and high.")
            return self.question_class.point(float(point))
        ends = [
            float(default if given is None else given) for given, default in ((low, -1), (high, 1))
        ]
        if not ends[0] < ends[1]:
            must("low and high", "finite numbers with low < high", f"{ends[0]:g} and {ends[1]:g}")
        return self.question_class.uniform(*ends)

    def build_request(self, question: Any, values: Record) -> LaplaceRequest:
        return LaplaceRequest.from_values(question, Claim("metric", values.pop("epsilon")), values)

    def solver_label(self, values: Values) -> str | None:
        """There is none."""
        return None

    def points_per_task(self, values: Values) -> int:
        return 4

    def sweep_key(self, values: Values) -> Record:
        """low and high are spelled out, unless the datum is a point."""
        ends = {} if values["point"] is not None else {"low": -1, "high": 1}
        return super().sweep_key(values) | {
            name: to_json_value(Fraction(end)) for name, end in ends.items() if values[name] is None
        }

    def solve(self, request: Any) -> Design:
        from workbench.families.laplace.least_ell import find_least_ell, judge_decoder_epsilon
        from workbench.mechanisms.dyadic_laplace.dyadic_laplace import DyadicLaplace

        code, epsilon, bits = (
            request.aim.code,
            float(request.claim.epsilon),
            float(request.aim.bits),
        )
        least = find_least_ell(epsilon, bits, code, request.question)
        reachable, mechanism, words = least.ell is not None, None, []
        if least.ell is not None:
            try:
                mechanism = DyadicLaplace(epsilon, least.ell)
            except InvalidRequest:
                words.append(
                    "No stream can be encoded with an ell so close to 1; allow fewer bits."
                )
        reached = math.inf if least.decoder_epsilon is None else least.decoder_epsilon
        if _USELESS * epsilon < reached < math.inf:
            words.append("At this ell the decoder learns nearly everything; allow more bits.")
        details = {
            "epsilon": epsilon,
            "bits": bits,
            "code": code,
            "data": request.question.text,
            "reachable": reachable,
            "ell": least.ell,
            "delta0": least.delta0,
            "decoder_epsilon": least.decoder_epsilon,
            "database_epsilon": epsilon if reachable else None,
            "mse": 2 / epsilon**2 if reachable else None,
            "mean_bits": least.mean_bits,
            "least_bits": least.least_bits,
        }
        verdict = judge_decoder_epsilon(reached, epsilon, bits, code, request.question)
        return Design(
            request,
            mechanism,
            reached,
            None,
            request.audited_claim,
            verdict,
            words=tuple(words),
            details=details,
            route="search over ell",
        )

    # Mechanisms from elsewhere.

    def compute_loss(self, request: Any, mechanism: Any) -> float:
        """The exact mean squared error of a mechanism on real inputs, whose outputs fit the bits, under the data."""
        from workbench.mechanisms.mechanism import has_real_inputs
        from workbench.privacy.expected_error import compute_expected_error

        if not has_real_inputs(mechanism) or len(mechanism.outputs) > 2**request.aim.bits:
            most = f"a mechanism on real inputs with at most 2^{float(request.aim.bits):g} outputs"
            must("baseline", most, repr(mechanism))
        error, low, high = (
            compute_expected_error(mechanism, "squared"),
            request.question.lows[0],
            request.question.highs[-1],
        )
        if error.data != f"uniform on [{low:g}, {high:g}]":
            must(
                "baseline", f"a mechanism on [{low:g}, {high:g}], as the data are", repr(mechanism)
            )
        return float(error.mean_error)

    # What a design shows.

    def describe_status(self, design: Design) -> str:
        return "found" if design.details["reachable"] else "infeasible"

    def exact_values(self, design: Design) -> Record:
        return {"pdp_delta": None, "dp_delta": None, "pure_epsilon": None}

    def extra_columns(self, design: Design) -> Record:
        answer = design.details
        missing = (
            None
            if answer["reachable"]
            else f"no ell brings the mean length to {answer['bits']:g} bits"
        )
        shown = {name: answer[name] for name in ("ell", "mse", "mean_bits", "least_bits")}
        return {"failure": missing, "objective": answer["decoder_epsilon"], **shown}

    def extra_json(self, design: Design) -> Record:
        return {**design.details, "objective": design.details["decoder_epsilon"]}

    def facts(self, design: Design) -> Facts:
        answer = design.details
        if not answer["reachable"]:
            words = (
                "Not reachable: no ell brings the mean length for epsilon = {epsilon:g} and {data} to {bits:g} bits of "
                "Elias {code}; the least is {least_bits:.6g}."
            )
            return [("not reachable", words.format(**answer))]
        # an epsilon in full, because nine digits could understate it
        rows = [
            (
                name,
                f"{value:.9g}"
                if isinstance(value, float) and "epsilon" not in name
                else str(value),
            )
            for name, value in answer.items()
            if name not in ("reachable", "least_bits")
        ]
        return [
            *rows,
            ("guarantee", "of real arithmetic with ideal random numbers, per unit of |x - x'|"),
        ]


FAMILY = _Laplace()


def list_laplace_points(question: Any, values: Values) -> Iterable[Point]:
    """(columns that name a point, its request): every ε within every number of bits."""
    if question is not None and question != UNIFORM_DATA:
        must("question", f"{UNIFORM_DATA!r}, which the bits are counted for", repr(question))
    for size in values["bits"]:
        for epsilon in values["epsilon"]:
            row = {
                "notion": "metric",
                "loss": "squared",
                "epsilon": float(epsilon),
                "delta": 0.0,
                "bits": float(size),
            }
            yield (
                row,
                FAMILY.make_request(UNIFORM_DATA, epsilon=epsilon, bits=size, code=values["code"]),
            )
