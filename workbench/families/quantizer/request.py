"""What a request for a quantizer may say, in exact numbers, checked before anything is built."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from workbench.errors import InvalidRequest, must
from workbench.families.quantizer.laws import LawQuestion, ignore_progress
from workbench.models.quantizer.program import smallest_reach
from workbench.pipeline.option import to_json_value
from workbench.pipeline.request import Aim, How, Request
from workbench.questions.quantization import Quantization
from workbench.solvers.search import Deadline

if TYPE_CHECKING:
    from workbench.pipeline.stated import FormulaProgram

OPTIMISED_KNOTS = 41  # of the exact LP where the outputs are optimised
LEAST, LARGEST = Fraction(1, 10**9), 30  # ε on [-1, 1]: e^ε is a coefficient of the program


@dataclass(frozen=True, kw_only=True, eq=False)
class QuantizerAim(Aim):
    """What is asked of a quantizer.

    Attributes:
        loss: "absolute", "squared", or λ in [0, 1] for λ|e| + (1 - λ) e²; squared is MVU's own, OPTM minimises a proxy
            of absolute.
        metric: None for ε-DP; "absolute": p(x) <= e^{ε|x-x'|} p(x') for all real inputs; "squared": e^{ε|x-x'|²}
            between the points inputs are dithered to.
        reach: the largest output allowed when outputs are optimised.
    """

    loss: str | Fraction = "absolute"
    metric: str | None = None
    reach: Fraction | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class QuantizerHow(How):
    """How a quantizer is found.

    Attributes:
        method: "exact" (the exact LP), "optm", "product" or "mvu".
        knots: the number of extra equally spaced knots of the exact LP.
        inputs: n_in of MVU.
        starts: the number of starts of the searches over outputs.
    """

    method: str = "exact"
    knots: int | None = None
    inputs: int | None = None
    starts: int = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class QuantizerRequest(Request):
    """The best unbiased ε-private quantizer for a question."""

    AIM = QuantizerAim
    HOW = QuantizerHow

    question: Quantization
    aim: QuantizerAim
    how: QuantizerHow

    @property
    def scale(self) -> Fraction:
        """What ε is multiplied by on [-1, 1]."""
        return self.question.c ** {None: 0, "absolute": 1, "squared": 2}[self.aim.metric]

    @property
    def law(self) -> tuple[LawQuestion, float]:
        """What is asked in units of c, and what losses there are to be multiplied by.

        Solvers' tolerances are absolute, so every program is stated on [-1, 1]. With y = x/c, a law on bins B/c is
        ε-private when it is on bins B; a budget by distance becomes εc (absolute) or εc² (squared), and a|e| + b e²
        becomes ac|e/c| + bc² (e/c)².
        """
        c, loss = self.question.c, self.aim.loss
        share = Fraction(loss == "absolute") if isinstance(loss, str) else loss
        absolute, squared = c * share, c**2 * (1 - share)
        loss = loss if isinstance(loss, str) else absolute / (absolute + squared)
        density, epsilon = replace(self.question.density, c=1.0), self.claim.epsilon * self.scale
        told = self.how.progress or ignore_progress
        deadline = Deadline(self.how.options.time_limit)
        law = LawQuestion(
            epsilon,
            density,
            loss,
            self.aim.metric,
            self.how.solver,
            self.how.options,
            told,
            deadline,
        )
        return law, float(absolute + squared)

    @property
    def heading(self) -> str:
        """See `Request.heading`."""
        return f"{self.question}, method {self.how.method}"

    @property
    def budget_text(self) -> str:
        """The budget, in words."""
        return f"epsilon = {float(self.claim.epsilon):g}" + (
            "" if self.aim.metric is None else f" ({self.aim.metric} metric)"
        )

    def formula_program(self) -> FormulaProgram:
        """See `Request.stated`."""
        from workbench.families.quantizer.stated import state_exact_program

        if self.how.method != "exact" or self.question.bins is None:
            got = f"method {self.how.method}" + (
                " with levels" if self.question.bins is None else ""
            )
            why = "other methods, and searches over outputs, are no linear program in the law"
            raise InvalidRequest(f"A formula needs method exact with given bins: {why}. Got {got}.")
        if self.aim.metric is not None:
            must("metric", "left out, as a formula has powers of e^epsilon alone", self.aim.metric)
        return state_exact_program(self.question, self.aim.loss, self.extra_knot_count)

    @property
    def extra_knot_count(self) -> int:
        """How many knots are added: 0 with given bins, 41 when bins are optimised; of other methods 0."""
        if self.how.knots is not None or self.how.method != "exact":
            return self.how.knots or 0
        return OPTIMISED_KNOTS if self.question.bins is None else 0

    def __post_init__(self) -> None:
        method, loss, metric = self.how.method, self.aim.loss, self.aim.metric
        if self.how.knots == 1:
            must("knots", "0, or at least 2: they are equally spaced from -c to c", self.how.knots)
        if method == "optm" and loss != "absolute":
            raise InvalidRequest(
                f"loss must be absolute with method optm, whose LP bounds it. Got {loss}."
            )
        for name, value, fits, unless in (
            ("knots", self.how.knots, method == "exact", f"unless method is exact, not {method}"),
            (
                "metric",
                metric,
                method in ("exact", "mvu"),
                f"with method {method}, whose laws jump at bins",
            ),
            ("inputs", self.how.inputs, method == "mvu", f"unless method is mvu, not {method}"),
            ("reach", self.aim.reach, self.question.bins is None, "with bins, which say it"),
        ):
            if value is not None and not fits:
                raise InvalidRequest(
                    f"{name} must be left out {unless}. Got {to_json_value(value)}."
                )
        if self.claim.epsilon * self.scale < LEAST:
            must("epsilon", f"at least {float(LEAST / self.scale):g}", self.claim.epsilon)
        if self.claim.epsilon * self.scale > LARGEST:
            most = f"at most {LARGEST / float(self.scale):g} (a program has e^epsilon)"
            must("epsilon", most, self.claim.epsilon)
        if self.aim.reach is not None and metric != "squared":
            need = smallest_reach(float(self.claim.epsilon), float(self.question.c), metric)
            if self.aim.reach < need * (1 + 1e-9):
                must("reach", f"above {need:.6g}, the least at this epsilon", float(self.aim.reach))
