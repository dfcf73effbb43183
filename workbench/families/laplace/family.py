"""Define the family of dyadic quantized Laplace noise: its options, requests and reports.

The mechanism adds Laplace noise to a number, and sends the result as an integer in an Elias code.
The decoded numbers have the guarantee ε per unit of distance. The sent integers have the weaker
guarantee ℓε with ℓ > 1. A smaller ℓ needs more bits. A design has the smallest ℓ at which the mean
number of bits is within a limit. It is found by a search (`workbench.families.laplace.least_ell`)
without a solver. No lower bound on ℓε is proven.
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

_REVEALING_FACTOR = 100  # The report has a warning if the decoder's ε exceeds this multiple of ε.
_POINTS_PER_TASK = 4  # A sweep gives each process this many points at a time.


@dataclass(frozen=True, kw_only=True, eq=False)
class LaplaceAim(Aim):
    """The limits of a request for the Laplace mechanism.

    Attributes:
        bits: the largest mean number of bits per scalar, > 0.
        code: the Elias code of the integers, "gamma" or "delta".
    """

    bits: Fraction
    code: Code = "gamma"


@dataclass(frozen=True, kw_only=True, eq=False)
class LaplaceRequest(Request):
    """A request for the smallest ℓ whose exact mean length is at most `bits`.

    The question is the law of one scalar. The claim is metric privacy of the database, with ε per
    unit of |x - x'|.
    """

    AIM = LaplaceAim

    question: DataLaw
    aim: LaplaceAim

    @property
    def objective_name(self) -> str:
        """Return the name of the objective. See `Request.objective_name`."""
        return "epsilon towards the decoder"

    @property
    def heading(self) -> str:
        """Return the first line of reports. See `Request.heading`."""
        return f"Dyadic quantized Laplace, {self.question.text}"

    @property
    def budget_text(self) -> str:
        """Return the budget for reports."""
        limit = f"at most {float(self.aim.bits):g} bits of Elias {self.aim.code}"
        return f"epsilon = {float(self.claim.epsilon):g} per unit of |x - x'|, {limit}"

    def __post_init__(self) -> None:
        from workbench.mechanisms.dyadic_laplace.piecewise_linear import read_positive_float

        read_positive_float(self.claim.epsilon, "epsilon")
        read_positive_float(self.aim.bits, "bits")


class _Laplace(Family):
    """The family of the dyadic quantized Laplace mechanism."""

    name = "laplace"
    title = "exact Laplace noise in few bits"
    summary = (
        "Design the dyadic quantized Laplace mechanism with the best privacy against the "
        "decoder, for a given mean number of bits."
    )
    examples = (
        "design laplace --epsilon 1 --bits 5",
        "design laplace --epsilon 0.1 --bits 8 --low 0 --high 100 --code delta --json",
    )
    options = (
        Option(
            "code",
            choice_reader("gamma", "delta"),
            "gamma",
            "Elias code of the transmitted integers: gamma or delta.",
        ),
        Option(
            "low",
            read_number,
            help="Lower end of the data. They are uniform on [low, high]. Default: -1.",
            kind=float,
            question=True,
        ),
        Option(
            "high",
            read_number,
            help="Upper end of the data. They are uniform on [low, high]. Default: 1.",
            kind=float,
            question=True,
        ),
        Option(
            "point",
            read_number,
            help="Common value of all data, instead of --low and --high.",
            kind=float,
            question=True,
        ),
        Option(
            "bits",
            read_positive,
            help="Mean number of bits per number, > 0.",
            required=True,
            hot=True,
        ),
        Option(
            "epsilon",
            read_positive,
            help="ε of the database privacy, per unit of |x - x'|, > 0.",
            required=True,
            hot=True,
        ),
    )
    certifies = False
    no_formula_reason = "it searches codes of noise whose law is given"

    # Requests.

    @property
    def question_class(self) -> type[DataLaw]:
        """Return the class of questions."""
        return DataLaw

    def parse_question(self, values: Values) -> DataLaw:
        """Make the question from the values of its options. Raises InvalidRequest."""
        given_ends = {name: values[name] for name in ("low", "high") if values[name] is not None}
        if values["point"] is not None:
            if given_ends:
                raise InvalidRequest("point must be given without low and high.")
            return self.question_class.point(float(values["point"]))
        ends = {"low": -1, "high": 1} | given_ends
        low = float(ends["low"])
        high = float(ends["high"])
        if not low < high:
            must("low and high", "finite numbers with low < high", f"{low:g} and {high:g}")
        return self.question_class.uniform(low, high)

    def build_request(self, question: Any, values: Record) -> LaplaceRequest:
        """Make the request from a question and exact option values. Raises InvalidRequest."""
        claim = Claim("metric", values.pop("epsilon"))
        return LaplaceRequest.from_values(question, claim, values)

    def solver_label(self, values: Values) -> str | None:
        """Return None: there is no solver."""
        return None

    def points_per_task(self, values: Values) -> int:
        """Return the number of points of a task of a sweep."""
        return _POINTS_PER_TASK

    def sweep_key(self, values: Values) -> Record:
        """Return the key under which a sweep stores a request.

        The defaults of low and high are written out, unless all data have one value (point).
        """
        key = super().sweep_key(values)
        if values["point"] is None:
            for name, default in (("low", -1), ("high", 1)):
                if values[name] is None:
                    key[name] = to_json_value(Fraction(default))
        return key

    def solve(self, request: Any) -> Design:
        """Find the smallest ℓ within the bits, and make its mechanism."""
        from workbench.families.laplace.least_ell import find_least_ell, judge_decoder_epsilon
        from workbench.mechanisms.dyadic_laplace.dyadic_laplace import DyadicLaplace

        code = request.aim.code
        epsilon = float(request.claim.epsilon)
        bits = float(request.aim.bits)
        smallest = find_least_ell(epsilon, bits, code, request.question)
        mechanism = None
        notes = []
        if smallest.ell is not None:
            try:
                mechanism = DyadicLaplace(epsilon, smallest.ell)
            except InvalidRequest:
                notes.append(
                    "No stream can be encoded with an ell so close to 1; allow fewer bits."
                )
        decoder_epsilon = math.inf
        if smallest.decoder_epsilon is not None:
            decoder_epsilon = smallest.decoder_epsilon
        if _REVEALING_FACTOR * epsilon < decoder_epsilon < math.inf:
            notes.append("At this ell the decoder learns nearly everything; allow more bits.")
        is_reachable = smallest.ell is not None
        details = {
            "epsilon": epsilon,
            "bits": bits,
            "code": code,
            "data": request.question.text,
            "reachable": is_reachable,
            "ell": smallest.ell,
            "delta0": smallest.delta0,
            "decoder_epsilon": smallest.decoder_epsilon,
            "database_epsilon": epsilon if is_reachable else None,
            "mse": 2 / epsilon**2 if is_reachable else None,
            "mean_bits": smallest.mean_bits,
            "least_bits": smallest.least_bits,
        }
        verdict = judge_decoder_epsilon(decoder_epsilon, epsilon, bits, code, data=request.question)
        return Design(
            request,
            mechanism,
            objective=decoder_epsilon,
            bound=None,
            claim=request.audited_claim,
            oracle=verdict,
            words=tuple(notes),
            details=details,
            route="search over ell",
        )

    # Baselines.

    def compute_loss(self, request: Any, mechanism: Any) -> float:
        """Compute the exact mean squared error of a baseline under the data.

        Raises InvalidRequest unless it is a mechanism on the same real inputs whose outputs fit the
        bits.
        """
        from workbench.mechanisms.mechanism import has_real_inputs
        from workbench.privacy.expected_error import compute_expected_error

        bits = request.aim.bits
        if not has_real_inputs(mechanism) or len(mechanism.outputs) > 2**bits:
            rule = f"a mechanism on real inputs with at most 2^{float(bits):g} outputs"
            must("baseline", rule, repr(mechanism))
        error = compute_expected_error(mechanism, "squared")
        low = request.question.lows[0]
        high = request.question.highs[-1]
        if error.data != f"uniform on [{low:g}, {high:g}]":
            rule = f"a mechanism on [{low:g}, {high:g}], as the data are"
            must("baseline", rule, repr(mechanism))
        return float(error.mean_error)

    # Reports.

    def describe_status(self, design: Design) -> str:
        """Return the status of a design in tables."""
        return "found" if design.details["reachable"] else "infeasible"

    def exact_values(self, design: Design) -> Record:
        """Return no exact values: the mechanism is not audited."""
        return {"pdp_delta": None, "dp_delta": None, "pure_epsilon": None}

    def extra_columns(self, design: Design) -> Record:
        """Return the columns of this family in tables."""
        details = design.details
        failure = None
        if not details["reachable"]:
            failure = f"no ell brings the mean length to {details['bits']:g} bits"
        columns = {"failure": failure, "objective": details["decoder_epsilon"]}
        for name in ("ell", "mse", "mean_bits", "least_bits"):
            columns[name] = details[name]
        return columns

    def extra_json(self, design: Design) -> Record:
        """Return the entries of this family in JSON."""
        return {**design.details, "objective": design.details["decoder_epsilon"]}

    def facts(self, design: Design) -> Facts:
        """Return the rows of the report."""
        details = design.details
        if not details["reachable"]:
            text = (
                "Not reachable: no ell brings the mean length for epsilon = {epsilon:g} and {data} "
                "to {bits:g} bits of Elias {code}; the least is {least_bits:.6g}."
            )
            return [("not reachable", text.format(**details))]
        rows = []
        for name, value in details.items():
            if name in ("reachable", "least_bits"):
                continue
            # An ε is shown in full, because nine digits may be less than its value.
            is_rounded = isinstance(value, float) and "epsilon" not in name
            rows.append((name, f"{value:.9g}" if is_rounded else str(value)))
        guarantee = "of real arithmetic with ideal random numbers, per unit of |x - x'|"
        return [*rows, ("guarantee", guarantee)]


FAMILY = _Laplace()


def list_laplace_points(question: Any, values: Values) -> Iterable[Point]:
    """List the requests of a frontier: every ε with every number of bits.

    Args:
        question: the law of the data, uniform on [-1, 1]. None means the same.
        values: option -> exact value.

    Yields:
        (columns, request) pairs. The columns are the entries of the table that name the point:
        notion, loss, epsilon, delta and bits.

    Raises:
        InvalidRequest: the question is another one.
    """
    if question is not None and question != UNIFORM_DATA:
        must("question", f"{UNIFORM_DATA!r}, for which the bits are computed", repr(question))
    for bits in values["bits"]:
        for epsilon in values["epsilon"]:
            columns = {
                "notion": "metric",
                "loss": "squared",
                "epsilon": float(epsilon),
                "delta": 0.0,
                "bits": float(bits),
            }
            code = values["code"]
            request = FAMILY.make_request(UNIFORM_DATA, epsilon=epsilon, bits=bits, code=code)
            yield columns, request
