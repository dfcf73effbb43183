"""Unbiased private quantizers as a family: its options, its requests, what its designs show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.errors import InvalidRequest
from workbench.exact.numbers import exact, jsonable, positive
from workbench.families.base import Family, Session
from workbench.families.option import PROGRESS, SOLVING, Option, count, flag, listed, one_of, parameter, spell, text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from workbench.families.design import Design
    from workbench.families.quantizer.request import QuantizerRequest
    from workbench.families.stated import Stated
    from workbench.mechanisms.quantization import Quantization


METHODS = ("exact", "optm", "product", "mvu")
METRICS = ("absolute", "squared")
_UNBIASED = 1e-9  # of a baseline from outside, whose laws may have been floats


def _loss(value: Any, name: str) -> Any:
    """absolute, squared, or a share of absolute."""
    from workbench.mechanisms.quantization_error import error_function

    error_function(value)
    return value if value in ("absolute", "squared") else exact(value, name)


def _bins(value: Any, name: str) -> tuple[Any, ...]:
    return tuple(listed(exact)(value, name))


def _levels(values: Mapping[str, Any]) -> int | None:
    """How many outputs are to be optimised. Raises InvalidRequest where bits say it too."""
    levels: int | None = values["levels"]
    bits: int | None = values["bits"]
    if levels is not None and bits is not None:
        raise InvalidRequest(f"bits must be left out with levels. Got {bits}.")
    return levels if bits is None else 1 << bits


class _Quantizer(Family):
    name = "quantizer"
    title = "unbiased private quantizers of a number"
    summary = (
        "The best unbiased private quantizer: given outputs or optimised ones, audited exactly for every real input."
    )
    examples = (
        "design quantizer --bins=-3,-0.5,0.5,3 --epsilon 1",
        "design quantizer --bins=-3,-0.5,0.5,3 --epsilon 1 --knots 41 --plot law.png",
        "design quantizer --levels 4 --epsilon 1 --method exact --json",
        "design quantizer --levels 4 --epsilon 1 --prove --proof-file four-outputs.json",
        "design quantizer --levels 4 --epsilon 1.5 --method mvu",
        "design quantizer --bins=-4,0.2,0.6,4 --epsilon 1 --method optm --density normal:0.5,0.1",
    )
    options = (
        Option("bins", _bins, help='Outputs, increasing: "--bins=-3,-0.5,0.5,3".', question=True),
        Option(
            "levels", count(2, 64), help="How many outputs to optimise, instead of --bins.", kind=int, question=True
        ),
        Option("bits", count(1, 6), help="2^bits outputs to optimise, instead of --levels.", kind=int, question=True),
        Option("c", positive, exact(1, "c"), "Inputs are in [-c, c].", question=True),
        Option(
            "density", text, "uniform", "Of the inputs: uniform, or normal:MU,SIGMA clipped to [-c, c].", question=True
        ),
        Option("method", one_of(*METHODS), "exact", "exact, optm, product or mvu."),
        Option(
            "knots", count(0, 2001), help="Extra knots of the exact LP (0 with --bins, 41 with --levels).", kind=int
        ),
        Option(
            "loss", _loss, help="absolute (the default), squared (that of mvu), or a share of absolute in [0, 1]."
        ),
        Option(
            "metric", one_of(*METRICS),
            help="absolute or squared: privacy in proportion to the inputs' distance.",
        ),
        Option("reach", parameter, help="Largest output allowed with --levels."),
        Option("inputs", count(2, 1000), help="Points MVU dithers inputs to (as many as outputs).", kind=int),
        Option("starts", count(1, 7), 4, "Starts of the search over outputs.", kind=int, least=1, most=7),
        Option(
            "prove", flag, False,
            "Also search all outputs for a lower bound (uniform inputs, absolute loss, at most 4 levels).", kind=bool,
        ),
        Option("proof_file", text, help="Where the search of --prove is kept, and gone on from."),
        Option(
            "proof_time", positive, exact(300, "proof_time"), "Seconds of the processor for --prove.", kind=float,
        ),
        *SOLVING,
        PROGRESS,
        Option("epsilon", positive, help="Privacy budget > 0.", required=True, hot=True),
    )  # fmt: skip
    frontier = "workbench.families.quantizer.frontier_options"
    programs = "workbench.families.quantizer.programs"
    recommendation = "workbench.families.quantizer.budgets"

    @property
    def question(self) -> type[Quantization]:
        from workbench.mechanisms.quantization import Quantization

        return Quantization

    def spelled_question(self, values: Mapping[str, Any]) -> Quantization:
        return self.question(values["bins"], levels=_levels(values), c=values["c"], density=values["density"])

    def key(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Bits are spelled as levels."""
        named = super().key({**values, "levels": _levels(values)})
        return {name: value for name, value in named.items() if name != "bits"}

    def checked(self, question: Any, values: dict[str, Any]) -> QuantizerRequest:
        from workbench.families.quantizer.request import QuantizerRequest

        if values["loss"] is None:
            values["loss"] = "squared" if values["method"] == "mvu" else "absolute"
        return QuantizerRequest(question=question, **values)

    def question_options(self, question: Any) -> dict[str, Any]:
        """See `Family.question_options`."""
        given = {"bins": question.bins} if question.bins is not None else {"levels": question.levels}
        return {**given, "c": question.c, "density": question.density.name}

    def stated(self, request: Any) -> Stated:
        """See `Family.stated`."""
        from workbench.families.quantizer.stated import stated

        return stated(request)

    def open(self, request: Any) -> Session:
        from workbench.families.pipeline import ProblemSession
        from workbench.families.quantizer.problem import QuantizerProblem

        return ProblemSession(request, QuantizerProblem)

    # Mechanisms from elsewhere.

    def loss(self, request: Any, mechanism: Any) -> float:
        """The exact error of an unbiased quantizer of the same inputs with at most as many outputs."""
        from workbench.mechanisms.piecewise_affine import PiecewiseAffine

        question = request.question
        fits = isinstance(mechanism, PiecewiseAffine) and (mechanism.knots[0], mechanism.knots[-1]) == (
            -question.c,
            question.c,
        )
        if not fits or mechanism.m > question.levels or mechanism.bias > _UNBIASED:
            wanted = f"an unbiased quantizer of inputs in [-c, c] with at most {question.levels} outputs"
            InvalidRequest.must("baseline", wanted, repr(mechanism))
        return float(mechanism.expected(request.loss, question.density))

    # What a design shows.

    def _least_epsilon(self, design: Design) -> float:
        """The least ε of its law, by the metric of its request."""
        from workbench.families.quantizer.certify import least_epsilon

        return least_epsilon(design.privacy, design.request.metric, design.request.epsilon)

    def exact(self, design: Design) -> dict[str, Any]:
        known = 0.0 if design.private else None  # within the budget every δ at it is 0; beyond it none is computed
        epsilon = design.privacy.pure_epsilon if design.request.metric is None else None
        return {"pdp_delta": known, "dp_delta": known, "pure_epsilon": epsilon, "bias": float(design.mechanism.bias)}

    def columns(self, design: Design) -> dict[str, Any]:
        shown = self.json(design)
        return {"mae": shown["mae"], "mse": shown["mse"], "bins_used": ",".join(map(repr, shown["bins"]))}

    def json(self, design: Design) -> dict[str, Any]:
        request, mechanism, density = design.request, design.mechanism, design.question.density
        return {
            "method": request.method,
            "bins": mechanism.outputs.tolist(),
            "epsilon": float(request.epsilon),
            "metric": request.metric,
            "density": density.name,
            "loss": spell(request.loss),
            "knots": request.extra_knots,
            "mae": mechanism.mae(density),
            "mae_51": mechanism.mae_51,
            "mse": mechanism.mse(density),
            "exact": {name: jsonable(value) for name, value in design.exact.items()}
            | {"epsilon": jsonable(self._least_epsilon(design))},
            "smallest_epsilon": design.details.get("smallest_epsilon"),
        }

    def heading(self, design: Design) -> str:
        return f"{design.question!r} by {design.request.method}"

    def facts(self, design: Design) -> list[tuple[str, str]]:
        shown, request = self.json(design), design.request
        metric = "" if request.metric is None else f" ({request.metric} metric)"
        return [
            ("bins", ", ".join(f"{b:.6g}" for b in shown["bins"])),
            (
                "errors",
                f"MAE {shown['mae']:.9g} (51 points {shown['mae_51']:.6g}), mean squared error {shown['mse']:.9g}",
            ),
            ("objective", f"{design.objective:.9g}"),
            ("bound", "none proven" if design.bound is None else f"{design.bound:.9g} on the objective"),
            ("asked", f"epsilon = {float(request.epsilon):g}{metric}"),
            ("exact", f"epsilon {self._least_epsilon(design)!r}, bias {float(design.mechanism.bias):.3g}"),
        ]

    def tables(self, design: Design) -> list[tuple[str, list[str], list[list[Any]]]]:
        mechanism = design.mechanism
        shown = mechanism.probabilities([-float(mechanism.c), 0.0, float(mechanism.c)])
        cells = [[float(b), *map(float, shown[:, i])] for i, b in enumerate(mechanism.outputs)]
        return [("Output law", ["output", "p at x = -c", "p at x = 0", "p at x = c"], cells)]

    def figure(self, design: Design) -> Figure:
        figure: Figure = design.mechanism.figure(f"{design.request.method} at ε = {float(design.request.epsilon):g}")
        return figure


FAMILY = _Quantizer()
