"""Define the family of unbiased private quantizers: its options, requests and reports.

A quantizer publishes one of a few outputs, with the input as its mean. An option is added in
`_Quantizer.options`, and its meaning in `workbench.families.quantizer.request`.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from workbench.data.intervals import format_range, read_range
from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import (
    read_number,
    read_number_where,
    read_positive,
    read_probability,
    round_up,
    to_jsonable,
)
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
    from workbench.families.quantizer.vectors import VectorPrivacy
    from workbench.pipeline.design import Design, Tables


METHODS = ("exact", "optm", "optm-theorem6", "optm-authors", "product", "mvu", "rqm", "erm")
# These methods search a parameter by the exact audit, and call no solver.
_PARAMETER_METHODS = ("rqm", "erm")
METRICS = ("absolute", "squared")
# Part of the key of a stored sweep. Older keys have no revision: HiGHS solved those requests even
# if they named another solver.
_KEY_REVISION = 2

# Options that keys of older sweeps do not have. A key has them only if they are given.
_LATER_OPTIONS = ("lower_bound", "upper_bound", "slice_width", "dimension", "diameter")

# A baseline with a larger bias is refused. A small one comes from the rounding of its laws.
_MAX_BASELINE_BIAS = 1e-9


def _read_error_loss(value: Any, name: str) -> Any:
    """Read the loss: absolute, squared, or a share of absolute. Raises InvalidRequest."""
    from workbench.mechanisms.quantization_error import error_coefficients

    error_coefficients(value)  # It raises InvalidRequest for an unknown loss.
    if value in ("absolute", "squared"):
        return value
    return read_number(value, name)


def _read_slice_width(value: Any, name: str) -> Fraction:
    """Read the width of a slice. Raises InvalidRequest."""
    rule = "a number from 0.0001 to 0.5"
    return read_number_where(
        value, name, rule, lambda x: Fraction(1, 10_000) <= x <= Fraction(1, 2)
    )


def _get_level_count(values: Values) -> int | None:
    """Return the number of outputs to optimise: levels, or 2^bits. None if outputs are given.

    Raises InvalidRequest if both levels and bits are given.
    """
    levels: int | None = values["levels"]
    bits: int | None = values["bits"]
    if levels is not None and bits is not None:
        raise InvalidRequest(f"bits must be left out with levels. Got {bits}.")
    return levels if bits is None else 1 << bits


class _Quantizer(Family):
    """The family of unbiased private quantizers."""

    name = "quantizer"
    title = "unbiased private quantizers of a number"
    summary = (
        "Design the unbiased private quantizer with the smallest loss, with given or optimised "
        "outputs, and audit it exactly for every real input."
    )
    examples = (
        "design quantizer --bins=-3,-0.5,0.5,3 --epsilon 1",
        "design quantizer --bins=-3,-0.5,0.5,3 --epsilon 1 --knots 41 --plot law.png",
        "design quantizer --levels 4 --epsilon 1 --method exact --json",
        "design quantizer --range 0..200000 --levels 8 --epsilon 1 --save incomes.json",
        "design quantizer --levels 4 --epsilon 1.5 --method mvu",
        "design quantizer --bins=-4,0.2,0.6,4 --epsilon 1 --method optm --density normal:0.5,0.1",
    )
    formulas = ("formula quantizer --bins=-3,-0.5,0.5,3 --epsilon 1",)
    options = (
        Option(
            "bins",
            list_reader(read_number),
            help="Outputs in increasing order, such as --bins=-3,-0.5,0.5,3.",
            question=True,
        ),
        Option(
            "levels",
            integer_reader(minimum=2, maximum=64),
            help="Number of outputs that the design chooses, instead of --bins.",
            kind=int,
            question=True,
        ),
        Option(
            "bits",
            integer_reader(minimum=1, maximum=6),
            help="Number of bits of an output, instead of --levels: 2^BITS outputs are optimised.",
            kind=int,
            question=True,
        ),
        Option(
            "c",
            read_positive,
            help="Largest absolute input: inputs are in [-c, c]. Default: 1, unless --range is "
            "given.",
            question=True,
        ),
        Option(
            "range",
            read_range,
            help="Range LOW..HIGH of the inputs, such as 0..200000, instead of --c.",
            question=True,
        ),
        Option(
            "density",
            read_plain_text,
            "uniform",
            question=True,
            help="Density of the inputs: uniform, normal:MU,SIGMA (clipped to the inputs) or "
            "parts:W,W,... (weights of equal parts).",
        ),
        Option(
            "method",
            choice_reader(*METHODS),
            "exact",
            "Method: exact (the best quantizer, with a proven bound), optm (of Cai et al. 2024; "
            "optm-theorem6 and optm-authors are its other programs), product (the best mechanism "
            "of the kind of optm, proven), mvu (of Chaudhuri et al. 2022), rqm or erm (the best "
            "parameter at the budget).",
        ),
        Option(
            "lower_bound",
            list_reader(read_probability),
            help="Lower bounds o of selection probabilities, for the optm methods with --bins. One "
            "program is then solved. Default: a grid of bounds.",
        ),
        Option(
            "upper_bound",
            list_reader(read_probability),
            help="Upper bounds u of selection probabilities, as --lower-bound.",
        ),
        Option(
            "slice_width",
            _read_slice_width,
            help="Width of the slices of q_2(1) of the methods optm and optm-authors. Default: "
            "0.01, or smaller if no slice has a solution.",
        ),
        Option(
            "knots",
            integer_reader(minimum=0, maximum=2001),
            help="Number of additional knots (inputs at which the law may bend), for --method "
            "exact. Default: 0 with --bins, 41 with --levels.",
            kind=int,
        ),
        Option(
            "loss",
            _read_error_loss,
            help="Loss: absolute, squared, or a number in [0, 1] (the share of absolute in a "
            "mixture of both). Default: absolute, but squared with --method mvu.",
        ),
        Option(
            "metric",
            choice_reader(*METRICS),
            help="Distance of two inputs: absolute or squared. Their budget is then ε times this "
            "distance (metric privacy). Default: ε for every two inputs.",
        ),
        Option(
            "reach",
            read_budget_parameter,
            help="Largest output allowed with --levels. Default: twice the smallest feasible "
            "one (40 times with --method mvu).",
        ),
        Option(
            "dimension",
            integer_reader(1, 10**9),
            help="Number of coordinates of a vector whose coordinates are quantized separately. "
            "The report then states its ε. Needs --diameter.",
            kind=int,
        ),
        Option(
            "diameter",
            read_positive,
            help="Largest Euclidean distance of two vectors, with --dimension.",
        ),
        Option(
            "inputs",
            integer_reader(minimum=2, maximum=1000),
            help="Number of points to which inputs are rounded at random, for --method mvu. "
            "Default: the number of outputs.",
            kind=int,
        ),
        Option(
            "starts",
            integer_reader(minimum=1, maximum=7),
            default=4,
            help="Number of starts of the search for outputs, 1 to 7.",
            kind=int,
        ),
        *SOLVING,
        PROGRESS,
        Option("epsilon", read_positive, help="ε of the budget, > 0.", required=True, hot=True),
        Option(
            "notion",
            choice_reader("dp", "pure"),
            "dp",
            "Privacy notion: dp or pure. Both mean the same, because the budget has no δ.",
        ),
    )
    question_class = Quantization

    # Requests.

    def parse_question(self, values: Values) -> Quantization:
        """Make the question from the values of its options. Raises InvalidRequest."""
        options = {name: values[name] for name in ("c", "density", "range")}
        return self.question_class(values["bins"], levels=_get_level_count(values), **options)

    def sweep_key(self, values: Values) -> Record:
        """Return the key under which a sweep stores a request.

        Options with the same meaning have the same key: bits are stored as levels, and c as 1 if
        there is neither c nor a range. The revision separates results of optm and product from
        older ones, which HiGHS computed whatever solver was named.
        """
        c = values["c"]
        if not c and values["range"] is None:
            c = read_number(1, "c")
        key = super().sweep_key({**values, "levels": _get_level_count(values), "c": c or None})
        if values["method"] in ("optm", "product") and values["solver"] != "highs":
            key["revision"] = _KEY_REVISION
        key.pop("bits", None)
        if not key.get("range"):
            key.pop("range", None)
        for name in _LATER_OPTIONS:
            if key[name] is None:
                del key[name]
        return key

    def build_request(self, question: Any, values: Record) -> QuantizerRequest:
        """Make the request from a question and exact option values. Raises InvalidRequest."""
        from workbench.families.quantizer.request import QuantizerRequest

        if values["loss"] is None:
            values["loss"] = "absolute"
            if values["method"] == "mvu":
                values["loss"] = "squared"
        del values["notion"]  # Both values of this option mean the same.
        notion = "pure" if values["metric"] is None else "metric"
        claim = Claim(notion, values.pop("epsilon"))
        return QuantizerRequest.from_values(question, claim, values)

    def question_to_options(self, question: Any) -> Record:
        """Return the options of a question. See `Family.question_to_options`."""
        if question.bins is not None:
            options = {"bins": question.bins}
        else:
            options = {"levels": question.levels}
        if question.middle != 0:  # The inputs are a range other than [-c, c].
            options["range"] = format_range(question.ends)
        else:
            options["c"] = question.c
        return {**options, "density": question.density.name}

    def open_session(self, request: Any) -> Session:
        """Open the session of a request."""
        from workbench.families.quantizer.problem import QuantizerProblem
        from workbench.pipeline.solve import ProblemSession

        return ProblemSession(request, QuantizerProblem)

    def solver_label(self, values: Values) -> str | None:
        """Return the solver of a request. None for the methods that search a parameter.

        Args:
            values: option -> value.
        """
        return None if values["method"] in _PARAMETER_METHODS else str(values["solver"])

    def describe_status(self, design: Design) -> str:
        """Return how the search ended: "found" for a parameter, which is not proven optimal.

        Args:
            design: a design of this family.
        """
        if design.request.how.method in _PARAMETER_METHODS:
            return "found"
        return super().describe_status(design)

    # Baselines.

    def compute_loss(self, request: Any, mechanism: Any) -> float:
        """Compute the exact error of a baseline.

        Raises InvalidRequest unless it is an unbiased quantizer of the same inputs with at most as
        many outputs.
        """
        from workbench.mechanisms.piecewise_affine import PiecewiseAffine

        question = request.question
        has_same_inputs = (
            isinstance(mechanism, PiecewiseAffine)
            and (mechanism.knots[0], mechanism.knots[-1]) == question.ends
        )
        if (
            not has_same_inputs
            or mechanism.m > question.levels
            or mechanism.bias > _MAX_BASELINE_BIAS
        ):
            rule = (
                f"an unbiased quantizer of the same inputs with at most {question.levels} outputs"
            )
            must("baseline", rule, repr(mechanism))
        return float(mechanism.expected_loss(request.aim.loss, question.density))

    # Reports.

    def _find_least_epsilon(self, design: Design) -> float:
        """Find the least ε of the designed law, by the metric of its request."""
        from workbench.families.quantizer.certify import find_least_epsilon

        request = design.request
        return find_least_epsilon(design.privacy, request.aim.metric, request.claim.epsilon)

    def _find_vector_privacy(self, design: Design) -> VectorPrivacy | None:
        """Return the ε of vectors of the request; None if the request has no vectors.

        It is None as well if the design is not private.
        """
        from workbench.families.quantizer.vectors import compute_vector_privacy

        aim = design.request.aim
        if aim.dimension is None or not design.private:
            return None
        epsilon = design.request.claim.epsilon
        return compute_vector_privacy(
            design.mechanism, epsilon, aim.metric, aim.dimension, aim.diameter
        )

    def loss_unit(self, request: QuantizerRequest) -> float:
        """Return the factor from a loss in the program to the loss in the units of the request."""
        return request.loss_factor

    def exact_values(self, design: Design) -> Record:
        """Return the exact values of the audit.

        δ is 0 if the mechanism is private at the budget; otherwise δ is not computed.
        """
        delta = None
        if design.private:
            delta = 0.0
        epsilon = None
        if design.request.aim.metric is None:
            epsilon = design.privacy.pure_epsilon
        return {
            "pdp_delta": delta,
            "dp_delta": delta,
            "pure_epsilon": epsilon,
            "bias": float(design.mechanism.bias),
        }

    def extra_columns(self, design: Design) -> Record:
        """Return the columns of this family in tables."""
        entries = self.extra_json(design)
        return {
            "mae": entries["mae"],
            "mse": entries["mse"],
            "bins_used": ",".join(map(repr, entries["bins"])),
        }

    def extra_json(self, design: Design) -> Record:
        """Return the entries of this family in JSON."""
        request = design.request
        mechanism = design.mechanism
        density = design.question.density
        exact = {name: to_jsonable(value) for name, value in design.exact.items()}
        exact["epsilon"] = to_jsonable(self._find_least_epsilon(design))
        vectors = self._find_vector_privacy(design)
        vector_entries: Record = {}
        if vectors is not None:
            vector_entries["vector_epsilon"] = round_up(vectors.all_vectors)
            if vectors.knot_vectors is not None:
                vector_entries["vector_epsilon_of_knots"] = round_up(vectors.knot_vectors)
        return {
            **vector_entries,
            "method": request.how.method,
            "bins": mechanism.outputs.tolist(),
            "epsilon": float(request.claim.epsilon),
            "metric": request.aim.metric,
            "density": density.name,
            "loss": to_json_value(request.aim.loss),
            "knots": request.extra_knot_count,
            "mae": mechanism.mae(density),
            # The mean error over 51 inputs is the measure of Cai et al. 2024.
            "mae_51": mechanism.mae_51,
            "mse": mechanism.mse(density),
            "exact": exact,
            "smallest_epsilon": design.details.get("smallest_epsilon"),
        }

    def facts(self, design: Design) -> Facts:
        """Return the rows of the report."""
        entries = self.extra_json(design)
        bound = "none proven"
        if design.bound is not None:
            bound = f"{design.bound:.9g} on the objective"
        epsilon = self._find_least_epsilon(design)
        bias = float(design.mechanism.bias)
        vector_rows: Facts = []
        if "vector_epsilon" in entries:
            aim = design.request.aim
            text = (
                f"epsilon {entries['vector_epsilon']:.9g} for {aim.dimension} coordinates and "
                f"distance at most {float(aim.diameter):g}"
            )
            if "vector_epsilon_of_knots" in entries:
                text += f"; {entries['vector_epsilon_of_knots']:.9g} if all coordinates are knots"
            vector_rows.append(("vectors", text))
        return [
            ("bins", ", ".join(f"{b:.6g}" for b in entries["bins"])),
            (
                "errors",
                f"MAE {entries['mae']:.9g} (51 points {entries['mae_51']:.6g}), mean squared error "
                f"{entries['mse']:.9g}",
            ),
            ("objective", f"{design.objective:.9g}"),
            ("lower bound", bound),
            ("requested", design.request.budget_text),
            ("verified", f"epsilon {epsilon!r}, bias {bias:.3g}"),
            *vector_rows,
        ]

    def list_tables(self, design: Design) -> Tables:
        """Return the table of the law at the ends and in the middle of the inputs."""
        mechanism = design.mechanism
        inputs = [float(x) for x in (mechanism.knots[0], mechanism.middle, mechanism.knots[-1])]
        laws = mechanism.probabilities(inputs)
        rows = []
        for i, output in enumerate(mechanism.outputs):
            rows.append([float(output), *map(float, laws[:, i])])
        names = ["-c", "0", "c"]
        if mechanism.middle != 0:  # The inputs are a range other than [-c, c].
            names = [f"{x:g}" for x in inputs]
        heads = [f"p at x = {name}" for name in names]
        return [("Output law", ["output", *heads], rows)]


FAMILY = _Quantizer()


def list_quantizer_points(question: Any, values: Values) -> Iterable[Point]:
    """List the requests of a frontier: every method with every number of outputs at every ε.

    Args:
        question: a question with levels and inputs in [-1, 1], or None if options describe it.
        values: the exact values of the options.

    Yields:
        (columns, request) pairs. The columns are the entries of the table that name the point:
        notion, loss, epsilon, delta and levels.

    Raises:
        InvalidRequest: the question has given outputs or other inputs.
    """
    if question is not None and (question.bins is not None or question.c != 1):
        must("question", "a Quantization of inputs in [-1, 1] with levels", repr(question))
    options = {name: values[name] for name in ("loss", "starts", "solver")}
    questions = [question]
    if question is None:
        density = values["density"]
        questions = [FAMILY.question_class(levels=m, density=density) for m in values["levels"]]
    for method in values["method"]:
        for quantization in questions:
            for epsilon in values["epsilon"]:
                columns = {
                    "notion": "pure",
                    "loss": str(values["loss"]),
                    "epsilon": float(epsilon),
                    "delta": 0.0,
                    "levels": quantization.levels,
                }
                request = FAMILY.make_request(
                    quantization, epsilon=epsilon, method=method, **options
                )
                yield columns, request
