"""Describe and check a request for a quantizer, in exact numbers, before any model is built.

e is the error (published minus true value), c half the width of the inputs, and p(x) the law of the
output at the input x. A field is added in `QuantizerAim` (what is minimised) or `QuantizerHow` (how
it is solved); the option that sets it is in `workbench.families.quantizer.family`. If the field
concerns the law, `LawQuestion` and `QuantizerRequest.law_question` have it too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import Rationals
from workbench.families.quantizer.laws import LawQuestion, ignore_progress
from workbench.families.quantizer.optm_programs import OPTM_METHODS, OptmChoices
from workbench.models.quantizer.program import smallest_reach
from workbench.pipeline.option import to_json_value
from workbench.pipeline.request import Aim, How, Request
from workbench.questions.quantization import Quantization
from workbench.solvers.search import Deadline

if TYPE_CHECKING:
    from workbench.pipeline.formula_program import FormulaProgram

OPTIMISED_KNOTS = 41  # The exact LP has this many equally spaced knots if outputs are optimised.
MIN_SCALED_EPSILON = Fraction(1, 10**9)  # ε on [-1, 1] is at least this.
MAX_SCALED_EPSILON = 30  # ε on [-1, 1] is at most this: e^ε is a coefficient of the program.
_REACH_MARGIN = 1e-9  # A reach is larger than the least one by at least this share.


@dataclass(frozen=True, kw_only=True, eq=False)
class QuantizerAim(Aim):
    """The loss that a request for a quantizer minimises, with its metric.

    Attributes:
        loss: "absolute", "squared", or λ in [0, 1] for λ|e| + (1 - λ) e². With method mvu the
            default is "squared"; with method optm only "absolute" is allowed.
        metric: None for ε-DP; "absolute": p(x) <= e^{ε|x-x'|} p(x') for all real inputs;
            "squared": p(x) <= e^{ε|x-x'|²} p(x') between the points to which inputs are dithered.
        dimension: the number of coordinates of a vector for which a report states ε. None: none.
        diameter: the largest Euclidean distance of two such vectors, in the units of the inputs.
        reach: the largest output allowed if outputs are optimised, in the units of the inputs.
            None: twice the least feasible one (40 times with method mvu).
    """

    loss: str | Fraction = "absolute"
    metric: str | None = None
    reach: Fraction | None = None
    dimension: int | None = None
    diameter: Fraction | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class QuantizerHow(How):
    """The method, solver and limits with which a request for a quantizer is solved.

    Attributes:
        method: "exact" (the exact LP), "optm", "optm-theorem6", "optm-authors", "product", "mvu",
            "rqm" or "erm".
        knots: the number of extra equally spaced knots of the exact linear program: 0, or at least
            2. None: `QuantizerRequest.extra_knot_count` chooses it.
        inputs: the number of points to which MVU dithers inputs. None: the number of outputs.
        starts: the number of starts of the searches over outputs.
        lower_bound: for OPTM, the lower bounds o of selection probabilities (`optm_programs`).
        upper_bound: for OPTM, the upper bounds u of selection probabilities.
        slice_width: for OPTM, the width of the slices of q_2(1).
    """

    method: str = "exact"
    knots: int | None = None
    inputs: int | None = None
    starts: int = 4
    lower_bound: Rationals | None = None
    upper_bound: Rationals | None = None
    slice_width: Fraction | None = None

    @property
    def optm_choices(self) -> OptmChoices:
        """Return the program of OPTM and the bounds that the user chooses."""
        return OptmChoices(
            self.method,
            lower=self.lower_bound,
            upper=self.upper_bound,
            width=self.slice_width,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class QuantizerRequest(Request):
    """A request for the unbiased ε-private quantizer of least error."""

    AIM = QuantizerAim
    HOW = QuantizerHow

    question: Quantization
    aim: QuantizerAim
    how: QuantizerHow

    def __post_init__(self) -> None:
        if self.how.knots == 1:
            must("knots", "0, or at least 2: they are equally spaced from -c to c", self.how.knots)
        method = self.how.method
        if method in OPTM_METHODS and self.aim.loss != "absolute":
            rule = f"absolute with method {method}, whose LP bounds it"
            must("loss", rule, self.aim.loss)
        if (self.aim.dimension is None) != (self.aim.diameter is None):
            given_name = "diameter" if self.aim.dimension is None else "dimension"
            missing_name = "dimension" if self.aim.dimension is None else "diameter"
            must(missing_name, f"given with {given_name}", "none")
        self._check_options_of_other_methods()
        self._check_epsilon()
        self._check_reach()
        if method in OPTM_METHODS:
            self.how.optm_choices.check(self.question.centred_bins, self.law_question)
        if method == "erm":
            self._check_symmetry()

    def _check_options_of_other_methods(self) -> None:
        """Check that no option of another method is given. Raises InvalidRequest."""
        method = self.how.method
        if method != "exact":
            self._require_none("knots", self.how.knots, f"unless method is exact, not {method}")
        if method not in ("exact", "mvu"):
            reason = f"with method {method}, whose laws jump at bins"
            self._require_none("metric", self.aim.metric, reason)
        if method != "mvu":
            self._require_none("inputs", self.how.inputs, f"unless method is mvu, not {method}")
        if self.question.bins is not None:
            self._require_none("reach", self.aim.reach, "with bins, which say it")
        if method not in OPTM_METHODS:
            for name in ("lower_bound", "upper_bound", "slice_width"):
                reason = f"unless method is {' or '.join(OPTM_METHODS)}, not {method}"
                self._require_none(name, getattr(self.how, name), reason)
        if self.how.lower_bound is not None or self.how.upper_bound is not None:
            reason = "with bounds, which leave one program"
            self._require_none("slice_width", self.how.slice_width, reason)
        if method == "optm-theorem6":
            reason = "with method optm-theorem6, which has no slices"
            self._require_none("slice_width", self.how.slice_width, reason)
        if method in ("rqm", "erm"):
            reason = f"with method {method}, whose bins are on a grid"
            self._require_none("reach", self.aim.reach, reason)
            if self.how.solver != "highs":
                must("solver", f"left out with method {method}, which uses none", self.how.solver)

    def _check_symmetry(self) -> None:
        """Check that the bins of ERM are symmetric. Raises InvalidRequest."""
        bins = self.question.centred_bins
        if bins is not None and any(a != -b for a, b in zip(bins, reversed(bins), strict=True)):
            given_bins = self.question.bins or ()
            text = ", ".join(f"{float(b):g}" for b in given_bins)
            must("bins", "symmetric around the middle of the inputs for method erm", text)

    @staticmethod
    def _require_none(name: str, value: object, reason: str) -> None:
        """Raise InvalidRequest unless an option is left out."""
        if value is not None:
            entries = value if isinstance(value, (list, tuple)) else [value]
            value_text = ", ".join(str(to_json_value(entry)) for entry in entries)
            raise InvalidRequest(f"{name} must be left out {reason}. Got {value_text}.")

    def _check_epsilon(self) -> None:
        """Check that ε on [-1, 1] is within the range of the programs. Raises InvalidRequest."""
        epsilon = self.claim.epsilon
        if epsilon * self.epsilon_scale < MIN_SCALED_EPSILON:
            least_value = float(MIN_SCALED_EPSILON / self.epsilon_scale)
            must("epsilon", f"at least {least_value:g}", epsilon)
        if epsilon * self.epsilon_scale > MAX_SCALED_EPSILON:
            largest_value = MAX_SCALED_EPSILON / float(self.epsilon_scale)
            must("epsilon", f"at most {largest_value:g} (a program has e^epsilon)", epsilon)

    def _check_reach(self) -> None:
        """Check that the reach allows a private quantizer. Raises InvalidRequest."""
        metric = self.aim.metric
        if self.aim.reach is None or metric == "squared":
            return
        least_value = smallest_reach(float(self.claim.epsilon), float(self.question.c), metric)
        if self.aim.reach < least_value * (1 + _REACH_MARGIN):
            rule = f"above {least_value:.6g}, the least at this epsilon"
            must("reach", rule, float(self.aim.reach))

    # The question in units of c.
    #
    # Solvers' tolerances are absolute, so every program is stated on [-1, 1]. With y = x/c, a law
    # on bins B/c is ε-private when it is on bins B. A budget by distance becomes εc (absolute) or
    # εc² (squared), and the loss a|e| + b e² becomes ac|e/c| + bc² (e/c)².

    @property
    def epsilon_scale(self) -> Fraction:
        """Return the factor by which ε is multiplied if inputs are rescaled to [-1, 1]."""
        powers = {None: 0, "absolute": 1, "squared": 2}
        return self.question.c ** powers[self.aim.metric]

    @property
    def _scaled_loss_shares(self) -> tuple[Fraction, Fraction]:
        """Return the coefficients of the absolute and the squared error in units of c."""
        loss = self.aim.loss
        share = Fraction(loss == "absolute") if isinstance(loss, str) else loss
        return self.question.c * share, self.question.c**2 * (1 - share)

    @property
    def loss_factor(self) -> float:
        """Return the factor from losses in units of c to losses of the request."""
        return float(sum(self._scaled_loss_shares))

    @property
    def law_question(self) -> LawQuestion:
        """Return the question of the law with inputs, outputs and ε rescaled to [-1, 1].

        Its deadline starts now.
        """
        absolute, squared = self._scaled_loss_shares
        loss: str | Fraction = self.aim.loss
        if not isinstance(loss, str):
            loss = absolute / (absolute + squared)
        return LawQuestion(
            epsilon=self.claim.epsilon * self.epsilon_scale,
            density=replace(self.question.density, c=1.0),
            loss=loss,
            metric=self.aim.metric,
            solver=self.how.solver,
            options=self.how.options,
            progress=self.how.progress or ignore_progress,
            deadline=Deadline(self.how.options.time_limit),
        )

    # Reports and formulas.

    @property
    def heading(self) -> str:
        """Return the first line of reports. See `Request.heading`."""
        return f"{self.question}, method {self.how.method}"

    @property
    def budget_text(self) -> str:
        """Return the budget for reports."""
        metric = "" if self.aim.metric is None else f" ({self.aim.metric} metric)"
        return f"epsilon = {float(self.claim.epsilon):g}{metric}"

    def formula_program(self) -> FormulaProgram:
        """Return the program in polynomials of e^ε. See `Request.formula_program`.

        Raises:
            InvalidRequest: the request has no linear program, or a metric.
        """
        from workbench.families.quantizer.stated import state_exact_program

        if self.how.method != "exact" or self.question.bins is None:
            levels = " with levels" if self.question.bins is None else ""
            raise InvalidRequest(
                "A formula needs method exact with given bins: other methods, and searches over "
                f"outputs, are no linear program in the law. Got method {self.how.method}{levels}."
            )
        if self.aim.metric is not None:
            must("metric", "left out, as a formula has powers of e^epsilon alone", self.aim.metric)
        return state_exact_program(self.question, self.aim.loss, self.extra_knot_count)

    @property
    def extra_knot_count(self) -> int:
        """Return the number of extra knots of the exact LP; 0 for other methods.

        Default: 0 with given bins, 41 if outputs are optimised.
        """
        if self.how.knots is not None or self.how.method != "exact":
            return self.how.knots or 0
        if self.question.bins is None:
            return OPTIMISED_KNOTS
        return 0
