"""Unbiased private quantizers as a family: its options, its requests, what its designs show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from workbench.data.intervals import format_range, read_range
from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import read_number, read_positive, to_jsonable
from workbench.exact.objects import Record, Values
from workbench.io.shown import Facts
from workbench.pipeline.family import Family, Session
from workbench.pipeline.frontier_plan import Point
from workbench.pipeline.option import (
    PROGRESS,
    SOLVING,
    Option,
    choice_reader,
    integer_reader,
    list_reader,
    read_budget_parameter,
    read_plain_text,
    to_json_value,
)
from workbench.privacy.claim import Claim
from workbench.questions.quantization import Quantization

if TYPE_CHECKING:
    from workbench.families.quantizer.request import QuantizerRequest
    from workbench.pipeline.design import Design, Tables


METHODS = ("exact", "optm", "product", "mvu")
METRICS = ("absolute", "squared")
_REVISION = 2  # Requests of revision 1, which have none in their key, were answered by HiGHS whatever was named.
_UNBIASED = 1e-9  # of a baseline from outside, whose laws may have been floats


def _loss(value: Any, name: str) -> Any:
    """absolute, squared, or a share of absolute."""
    from workbench.mechanisms.quantization_error import error_coefficients

    error_coefficients(value)
    return value if value in ("absolute", "squared") else read_number(value, name)


def _levels(values: Values) -> int | None:
    """How many outputs are to be optimised. Raises InvalidRequest where bits say it too."""
    levels: int | None = values["levels"]
    bits: int | None = values["bits"]
    if levels is not None and bits is not None:
        raise InvalidRequest(f"bits must be left out with levels. Got {bits}.")
    return levels if bits is None else 1 << bits


class _Quantizer(Family):
    name = "quantizer"
    title = "unbiased private quantizers of a number"
    summary = "The best unbiased private quantizer: given outputs or optimised ones, audited exactly for every real input."
    examples = (
        "design quantizer --bins=-3,-0.5,0.5,3 --epsilon 1",
        "design quantizer --bins=-3,-0.5,0.5,3 --epsilon 1 --knots 41 --plot law.png",
        "design quantizer --levels 4 --epsilon 1 --method exact --json",
        "design quantizer --range 0..200000 --levels 8 --epsilon 1 --save incomes.json",
        "design quantizer --levels 4 --epsilon 1.5 --method mvu",
        "design quantizer --bins=-4,0.2,0.6,4 --epsilon 1 --method optm --density normal:0.5,0.1",
    )
    options = (
        Option("bins", list_reader(read_number), help='Outputs, increasing: "--bins=-3,-0.5,0.5,3".', question=True),
        Option(
            "levels", integer_reader(2, 64), help="How many outputs to optimise, instead of --bins.", kind=int, question=True
        ),
        Option("bits", integer_reader(1, 6), help="2^bits outputs to optimise, instead of --levels.", kind=int, question=True),
        Option("c", read_positive, help="Inputs are in [-c, c]; 1 unless there is a range.", question=True),
        Option("range", read_range, help="Inputs are in LOW..HIGH, instead of --c: 0..200000.", question=True),
        Option(
            "density", read_plain_text, "uniform", question=True,
            help="Of the inputs: uniform, normal:MU,SIGMA clipped to them, or parts:W,W,...: weights of equal parts.",
        ),
        Option("method", choice_reader(*METHODS), "exact", "exact, optm, product or mvu."),
        Option(
            "knots", integer_reader(0, 2001), help="Extra knots of the exact LP (0 with --bins, 41 with --levels).", kind=int
        ),
        Option(
            "loss", _loss, help="absolute (the default), squared (that of mvu), or a share of absolute in [0, 1]."
        ),
        Option(
            "metric", choice_reader(*METRICS),
            help="absolute or squared: privacy in proportion to the inputs' distance.",
        ),
        Option("reach", read_budget_parameter, help="Largest output allowed with --levels."),
        Option("inputs", integer_reader(2, 1000), help="Points MVU dithers inputs to (as many as outputs).", kind=int),
        Option("starts", integer_reader(1, 7), 4, "Starts of the search over outputs, 1 to 7.", kind=int),
        *SOLVING,
        PROGRESS,
        Option("epsilon", read_positive, help="Privacy budget > 0.", required=True, hot=True),
        Option("notion", choice_reader("dp", "pure"), "dp", "dp or pure: the same, as its budget has no delta."),
    )  # fmt: skip

    question_class = Quantization

    def parse_question(self, values: Values) -> Quantization:
        names = ("c", "density", "range")
        return self.question_class(
            values["bins"], levels=_levels(values), **{name: values[name] for name in names}
        )

    def sweep_key(self, values: Values) -> Record:
        """Bits are spelled as levels, and c where there is no range.

        A revision tells requests of methods that once ran HiGHS whatever solver was named from those of before.
        """
        half = values["c"] or (read_number(1, "c") if values["range"] is None else None)
        named = super().sweep_key({**values, "levels": _levels(values), "c": half})
        if values["method"] in ("optm", "product") and values["solver"] != "highs":
            named["revision"] = _REVISION
        return {
            name: value
            for name, value in named.items()
            if name != "bits" and (name != "range" or value)
        }

    def build_request(self, question: Any, values: Record) -> QuantizerRequest:
        from workbench.families.quantizer.request import QuantizerRequest

        if values["loss"] is None:
            values["loss"] = "squared" if values["method"] == "mvu" else "absolute"
        del values["notion"]  # It only has one value.
        claim = Claim("pure" if values["metric"] is None else "metric", values.pop("epsilon"))
        return QuantizerRequest.from_values(question, claim, values)

    def question_to_options(self, question: Any) -> Record:
        """See `Family.question_options`."""
        given = (
            {"bins": question.bins} if question.bins is not None else {"levels": question.levels}
        )
        where = {"range": format_range(question.ends)} if question.middle else {"c": question.c}
        return {**given, **where, "density": question.density.name}

    def open_session(self, request: Any) -> Session:
        from workbench.families.quantizer.problem import QuantizerProblem
        from workbench.pipeline.solve import ProblemSession

        return ProblemSession(request, QuantizerProblem)

    # Mechanisms from elsewhere.

    def compute_loss(self, request: Any, mechanism: Any) -> float:
        """The exact error of an unbiased quantizer of the same inputs with at most as many outputs."""
        from workbench.mechanisms.piecewise_affine import PiecewiseAffine

        question = request.question
        fits = (
            isinstance(mechanism, PiecewiseAffine)
            and (mechanism.knots[0], mechanism.knots[-1]) == question.ends
        )
        if not fits or mechanism.m > question.levels or mechanism.bias > _UNBIASED:
            wanted = (
                f"an unbiased quantizer of the same inputs with at most {question.levels} outputs"
            )
            must("baseline", wanted, repr(mechanism))
        return float(mechanism.expected_loss(request.aim.loss, question.density))

    # What a design shows.

    def _least_epsilon(self, design: Design) -> float:
        """The least ε of its law, by the metric of its request."""
        from workbench.families.quantizer.certify import find_least_epsilon

        return find_least_epsilon(
            design.privacy, design.request.aim.metric, design.request.claim.epsilon
        )

    def loss_unit(self, request: QuantizerRequest) -> float:
        return request.law[1]

    def exact_values(self, design: Design) -> Record:
        known = (
            0.0 if design.private else None
        )  # within the budget every δ at it is 0; beyond it none is computed
        epsilon = design.privacy.pure_epsilon if design.request.aim.metric is None else None
        return {
            "pdp_delta": known,
            "dp_delta": known,
            "pure_epsilon": epsilon,
            "bias": float(design.mechanism.bias),
        }

    def extra_columns(self, design: Design) -> Record:
        shown = self.extra_json(design)
        return {
            "mae": shown["mae"],
            "mse": shown["mse"],
            "bins_used": ",".join(map(repr, shown["bins"])),
        }

    def extra_json(self, design: Design) -> Record:
        request, mechanism, density = design.request, design.mechanism, design.question.density
        return {
            "method": request.how.method,
            "bins": mechanism.outputs.tolist(),
            "epsilon": float(request.claim.epsilon),
            "metric": request.aim.metric,
            "density": density.name,
            "loss": to_json_value(request.aim.loss),
            "knots": request.extra_knot_count,
            "mae": mechanism.mae(density),
            "mae_51": mechanism.mae_51,
            "mse": mechanism.mse(density),
            "exact": {name: to_jsonable(value) for name, value in design.exact.items()}
            | {"epsilon": to_jsonable(self._least_epsilon(design))},
            "smallest_epsilon": design.details.get("smallest_epsilon"),
        }

    def facts(self, design: Design) -> Facts:
        shown, request = self.extra_json(design), design.request
        return [
            ("bins", ", ".join(f"{b:.6g}" for b in shown["bins"])),
            (
                "errors",
                f"MAE {shown['mae']:.9g} (51 points {shown['mae_51']:.6g}), mean squared error {shown['mse']:.9g}",
            ),
            ("objective", f"{design.objective:.9g}"),
            (
                "bound",
                "none proven" if design.bound is None else f"{design.bound:.9g} on the objective",
            ),
            ("asked", request.budget_text),
            (
                "exact",
                f"epsilon {self._least_epsilon(design)!r}, bias {float(design.mechanism.bias):.3g}",
            ),
        ]

    def list_tables(self, design: Design) -> Tables:
        mechanism = design.mechanism
        places = [float(x) for x in (mechanism.knots[0], mechanism.middle, mechanism.knots[-1])]
        shown = mechanism.probabilities(places)
        cells = [[float(b), *map(float, shown[:, i])] for i, b in enumerate(mechanism.outputs)]
        heads = (
            [f"p at x = {x:g}" for x in places]
            if mechanism.middle
            else [f"p at x = {x}" for x in ("-c", "0", "c")]
        )
        return [("Output law", ["output", *heads], cells)]


FAMILY = _Quantizer()


def list_quantizer_points(question: Any, values: Values) -> Iterable[Point]:
    """(columns that name a point, its request): every method with every number of outputs at every ε."""
    if question is not None and (question.bins is not None or question.c != 1):
        must("question", "a Quantization of inputs in [-1, 1] with levels", repr(question))
    common = {name: values[name] for name in ("loss", "starts", "solver")}
    for method in values["method"]:
        for m in values["levels"] if question is None else [question.levels]:
            quantization = question or FAMILY.question_class(levels=m, density=values["density"])
            for epsilon in values["epsilon"]:
                row = {
                    "notion": "pure",
                    "loss": str(values["loss"]),
                    "epsilon": float(epsilon),
                    "delta": 0.0,
                }
                request = FAMILY.make_request(
                    quantization, epsilon=epsilon, method=method, **common
                )
                yield row | {"levels": m}, request
