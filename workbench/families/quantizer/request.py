"""What a request for a quantizer may say, in exact numbers, checked before anything is built."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from models.quantizer import smallest_reach
from solvers.backend import Options
from solvers.search import Deadline
from workbench.errors import InvalidRequest, must
from workbench.exact.objects import Progress
from workbench.families.base import Request
from workbench.families.option import spell
from workbench.families.quantizer.laws import LawQuestion, silent
from workbench.mechanisms.quantization import Quantization
from workbench.privacy.claim import Claim

if TYPE_CHECKING:
    from workbench.families.stated import Stated

OPTIMISED_KNOTS = 41  # of the exact LP where the outputs are optimised
LEAST, LARGEST = Fraction(1, 10**9), 30  # ε on [-1, 1]: e^ε is a coefficient of the program


@dataclass(frozen=True, kw_only=True, eq=False)
class QuantizerRequest(Request):
    """The best unbiased ε-private quantizer for a question.

    epsilon: > 0. method: "exact" (the exact LP), "optm", "product" or "mvu". knots: extra equally spaced knots of the
    exact LP. loss: "absolute", "squared", or λ in [0, 1] for λ|e| + (1 - λ) e²; squared is MVU's own, OPTM minimises a
    proxy of absolute. metric: None for ε-DP; "absolute": p(x) <= e^{ε|x-x'|} p(x') for all real inputs; "squared":
    e^{ε|x-x'|²} between the points inputs are dithered to. reach: the largest output allowed when outputs are
    optimised. inputs: n_in of MVU. starts: of the searches over outputs.
    """

    question: Quantization
    epsilon: Fraction
    method: str = "exact"
    knots: int | None = None
    loss: str | Fraction = "absolute"
    metric: str | None = None
    reach: Fraction | None = None
    inputs: int | None = None
    starts: int = 4
    solver: str = "highs"
    options: Options = field(default_factory=Options)
    progress: Progress | None = None

    @property
    def notion(self) -> str:
        """Of privacy: dp with δ = 0 where no metric is given."""
        return "dp" if self.metric is None else "metric"

    @property
    def claim(self) -> Claim:
        """What a law is audited for."""
        return Claim("pure" if self.metric is None else "metric", self.epsilon)

    @property
    def scale(self) -> Fraction:
        """What ε is multiplied by on [-1, 1]."""
        return self.question.c ** {None: 0, "absolute": 1, "squared": 2}[self.metric]

    @property
    def law(self) -> tuple[LawQuestion, float]:
        """What is asked in units of c, and what losses there are to be multiplied by.

        Solvers' tolerances are absolute, so every program is stated on [-1, 1]. With y = x/c, a law on bins B/c is
        ε-private when it is on bins B; a budget by distance becomes εc (absolute) or εc² (squared), and a|e| + b e²
        becomes ac|e/c| + bc² (e/c)².
        """
        c, loss = self.question.c, self.loss
        share = Fraction(loss == "absolute") if isinstance(loss, str) else loss
        absolute, squared = c * share, c**2 * (1 - share)
        loss = loss if isinstance(loss, str) else absolute / (absolute + squared)
        density, epsilon = replace(self.question.density, c=1.0), self.epsilon * self.scale
        told = self.progress or silent
        deadline = Deadline(self.options.time_limit)
        law = LawQuestion(epsilon, density, loss, self.metric, self.solver, self.options, told, deadline)
        return law, float(absolute + squared)

    @property
    def heading(self) -> str:
        """See `Request.heading`."""
        return f"{self.question}, method {self.method}"

    @property
    def budget_words(self) -> str:
        """The budget, in words."""
        return f"epsilon = {float(self.epsilon):g}" + ("" if self.metric is None else f" ({self.metric} metric)")

    def stated(self) -> Stated:
        """See `Request.stated`."""
        from workbench.families.quantizer.stated import stated

        if self.method != "exact" or self.question.bins is None:
            got = f"method {self.method}" + (" with levels" if self.question.bins is None else "")
            why = "other methods, and searches over outputs, are no linear program in the law"
            raise InvalidRequest(f"A formula needs method exact with given bins: {why}. Got {got}.")
        if self.metric is not None:
            must("metric", "left out, as a formula has powers of e^epsilon alone", self.metric)
        return stated(self.question, self.loss, self.extra_knots)

    @property
    def extra_knots(self) -> int:
        """How many knots are added: 0 with given bins, 41 when bins are optimised; of other methods 0."""
        if self.knots is not None or self.method != "exact":
            return self.knots or 0
        return OPTIMISED_KNOTS if self.question.bins is None else 0

    def __post_init__(self) -> None:
        method, loss, metric = self.method, self.loss, self.metric
        if self.knots == 1:
            must("knots", "0, or at least 2: they are equally spaced from -c to c", self.knots)
        if method == "optm" and loss != "absolute":
            raise InvalidRequest(f"loss must be absolute with method optm, whose LP bounds it. Got {loss}.")
        for name, fits, unless in (
            ("knots", method == "exact", f"unless method is exact, not {method}"),
            ("metric", method in ("exact", "mvu"), f"with method {method}, whose laws jump at bins"),
            ("inputs", method == "mvu", f"unless method is mvu, not {method}"),
            ("reach", self.question.bins is None, "with bins, which say it"),
        ):
            if getattr(self, name) is not None and not fits:
                raise InvalidRequest(f"{name} must be left out {unless}. Got {spell(getattr(self, name))}.")
        if self.epsilon * self.scale < LEAST:
            must("epsilon", f"at least {float(LEAST / self.scale):g}", self.epsilon)
        if self.epsilon * self.scale > LARGEST:
            most = f"at most {LARGEST / float(self.scale):g} (a program has e^epsilon)"
            must("epsilon", most, self.epsilon)
        if self.reach is not None and metric != "squared":
            need = smallest_reach(float(self.epsilon), float(self.question.c), metric)
            if self.reach < need * (1 + 1e-9):
                must("reach", f"above {need:.6g}, the least at this epsilon", float(self.reach))
