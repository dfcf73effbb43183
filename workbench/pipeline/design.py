"""Define `Design`: a designed mechanism with its loss, bound, audit and certificate.

Every family returns its results as a `Design`. The base class `Reports` has the parts of a report
that a family can change. `OracleVerdict` compares the objective with a closed form.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import WorkbenchError
from workbench.exact.numbers import ExpNumber, round_up, to_jsonable
from workbench.exact.objects import Record, Strings, Values
from workbench.io.files import read_file_path
from workbench.io.plain_figures import draw_chart, overlay_laws
from workbench.io.providers import load_provided
from workbench.io.shown import Facts, OneLine, Shown
from workbench.pipeline.design_program import DesignProgram
from workbench.pipeline.loss_scale import NO_LOSS, LossScale
from workbench.privacy.claim import Claim as Claim

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from workbench.privacy.certificate import Certificate
    from workbench.solvers.solution import Solution


# Rounding may raise a bound above an objective by this share. A larger excess is an error.
_BOUND_MARGIN = 1e-9
# Attributes that users expect of a design, and where they are.
_ATTRIBUTE_HINTS = {
    "sample": "wb.sample(design, count, answer=...)",
    "matrix": "design.mechanism.matrix, of a channel or a randomizer",
    "prices": "design.shadow_prices",
}
# Name of a law -> (its values, their masses). A density has (edges of cells, mean heights) instead.
LawsByName = Mapping[str, tuple[Any, Any]]
Tables = list[tuple[str, list[str], list[list[Any]]]]  # Tables: (title, column heads, rows).


class Reports(ABC):
    """What a family adds to the reports of its designs.

    Attributes:
        name: Name of the family.
        certifies: Whether its designs have certificates and its mechanisms can be saved.
        draws: Whether its mechanisms have a picture.
    """

    name: str
    certifies: bool = True
    draws: bool = True

    def describe_status(self, design: Design) -> str:
        """Return how the search ended.

        Args:
            design: A design.

        Returns:
            "found" for several runs, whose designs have no bound. Otherwise the status of the
            solver, if one was called, or "optimal" or "stopped".
        """
        if design.request.aim.runs > 1:
            return "found"
        if design.solution is not None:
            return str(design.solution.termination)
        if design.details.get("stopped"):
            return "stopped"
        return "optimal"

    def loss_unit(self, request: Any) -> float:
        """Return the factor that converts losses of the solver's program to losses of the answers.

        Args:
            request: A request of the family.
        """
        return 1.0

    def exact_values(self, design: Design) -> Record:
        """Return pure_epsilon, pdp_delta and dp_delta of the exact audit, rounded up.

        Args:
            design: A design. A value is None if it is not known.
        """
        privacy = design.privacy
        return {
            "pdp_delta": round_up(privacy.pdp_delta),
            "dp_delta": privacy.dp_delta.upper,
            "pure_epsilon": privacy.pure_epsilon,
        }

    def extra_columns(self, design: Design) -> Record:
        """Return the columns of a row that only this family has.

        Args:
            design: A design of the family.
        """
        return {}

    def extra_json(self, design: Design) -> Record:
        """Return the keys of `--json` that only this family has, or that it changes.

        Args:
            design: A design of the family.
        """
        return {}

    @abstractmethod
    def facts(self, design: Design) -> Facts:
        """Return the (label, sentence) rows of a report that come before proof, formula and solver.

        Args:
            design: A design of the family.
        """

    def list_tables(self, design: Design) -> Tables:
        """Return the tables that show the mechanism.

        Args:
            design: A design of the family.
        """
        return []

    def comparison_laws(self, design: Design) -> LawsByName:
        """Return the laws of published noise at the same budget.

        Args:
            design: A design of the family.
        """
        return {}

    def uncertified_mechanism(self, design: Design) -> Any:
        """Return the mechanism for a file that claims no privacy.

        Args:
            design: A design of the family.
        """
        return design.mechanism

    def figure_caption(self, design: Design) -> str:
        """Return the text above the picture: the request and the objective.

        Args:
            design: A design of the family.
        """
        request = design.request
        objective = f"{request.objective_name} {design.objective:.6g}"
        return f"{request.heading}\n{request.budget_text}: {objective}"

    def figure(self, design: Design) -> Figure:
        """Draw the law of the mechanism, with published laws for comparison.

        Args:
            design: A design of the family.

        Raises:
            WorkbenchError: Mechanisms of the family have no picture.
        """
        drawing = getattr(design.mechanism, "drawing", None)
        if drawing is None:
            raise WorkbenchError(f"Mechanisms of the family {self.name} have no picture.")
        laws = overlay_laws(drawing(), self.comparison_laws(design))
        return draw_chart(laws, self.figure_caption(design))


@dataclass(frozen=True)
class OracleVerdict(OneLine):
    """What a closed form proves about an objective.

    Attributes:
        name: Name of the closed form. None if none applies.
        value: Value of the closed form in the units of the objective. None if none applies.
        kind: "optimum", or "upper bound" or "lower bound" on it if `value` is not proven optimal.
        proof: Sentence on why and where the closed form holds, or why there is none.
        agrees: Whether the objective is consistent with `value`, within `tolerance`, relative to
            `value` minus the floor of `scale`. None if this is not decided.
        difference: The objective minus `value`. None without a value.
        tolerance: Largest relative difference of an objective that agrees.
        scale: Floor and width of the losses, which relative differences refer to.
    """

    name: str | None
    value: float | None
    kind: str | None
    proof: str
    agrees: bool | None
    difference: float | None
    tolerance: float = 1e-6
    scale: LossScale = NO_LOSS

    @property
    def valid(self) -> bool:
        """Return whether the value is proven to be the optimum of this request."""
        return self.value is not None and self.kind == "optimum"

    @classmethod
    def judge(
        cls,
        objective: float | None,
        name: str,
        value: float,
        kind: str,
        proof: str,
        tolerance: float = 1e-6,
        scale: LossScale | None = None,
    ) -> OracleVerdict:
        """Compare an objective with the value of a closed form.

        It must equal an optimum, not exceed an upper bound, and not fall below a lower bound.

        Args:
            objective: The objective. None: there is nothing to compare.
            name: Name of the closed form.
            value: Optimum or bound that it states, in the units of the objective.
            kind: "optimum", "upper bound" or "lower bound".
            proof: Sentence on why and where the closed form holds.
            tolerance: Largest relative difference.
            scale: Scale of the losses. None: the objective is no loss.
        """
        scale = scale or NO_LOSS
        if objective is None:
            return cls(
                name=name,
                value=value,
                kind=kind,
                proof=proof,
                agrees=None,
                difference=None,
                tolerance=tolerance,
                scale=scale,
            )
        is_not_below = scale.proves(value, objective, tolerance)
        is_not_above = scale.settles(objective, value, tolerance)
        verdicts = {
            "optimum": is_not_below and is_not_above,
            "upper bound": is_not_above,
            "lower bound": is_not_below,
        }
        difference = objective - value
        return cls(
            name=name,
            value=value,
            kind=kind,
            proof=proof,
            agrees=verdicts[kind],
            difference=difference,
            tolerance=tolerance,
            scale=scale,
        )

    def for_stopped_search(self, bound: float | None) -> OracleVerdict:
        """Return the verdict on an objective that is not proven optimal.

        The optimum may then be below the objective. An objective above an optimum or an upper bound
        disagrees only if the proven bound is above it as well. Otherwise nothing is decided.

        Args:
            bound: The proven lower bound, if any.
        """
        if self.agrees is not False or (self.difference or 0.0) <= 0:
            return self
        is_contradicted = False
        if bound is not None:
            is_contradicted = not self.scale.proves(bound, self.value or 0.0, self.tolerance)
        return self if is_contradicted else replace(self, agrees=None)

    @classmethod
    def without_formula(cls, reason: str) -> OracleVerdict:
        """Return the verdict if no closed form applies.

        Args:
            reason: Sentence on why there is none.
        """
        return cls(name=None, value=None, kind=None, proof=reason, agrees=None, difference=None)

    def __str__(self) -> str:
        if self.value is None:
            return f"none: {self.proof}"
        if self.agrees is not None:
            verdict = "agrees" if self.agrees else "DISAGREES"
        elif self.difference is None:
            verdict = "no verdict"
        else:
            verdict = "not decided, because the search stopped"
        return f"{self.name} {self.value:.9g} ({self.kind}), {verdict}. {self.proof}"

    def to_dict(self) -> Record:
        """Return the verdict for JSON."""
        keys = ("name", "value", "kind", "valid", "agrees", "difference", "proof")
        return {key: getattr(self, key) for key in keys}


@dataclass(frozen=True, repr=False)
class Design(Shown):
    """A designed mechanism with its loss, bound, audit and certificate.

    Attributes:
        request: The request in exact numbers. `question` is its question.
        mechanism: The certified mechanism with exact weights, or the solver's with certify=False.
            None if no mechanism satisfies the request and the family reports this as a design.
        objective: Expected loss of `mechanism`, computed exactly and rounded to a float; with
            minimise="delta" the δ that is reached; with certify=False the solver's claim.
        bound: Proven lower bound: from the solver, from the exact program, or from a closed form if
            `words` says so. None if nothing is proven.
        claim: The notion and budget that `mechanism` is audited for. Its δ is the δ that is reached
            if δ is minimised.
        oracle: Comparison of the objective with a closed form.
        solution: The solver's full answer. None if no solver was called.
        words: Notes, sentences that a reader must know, such as a missed budget or a limit reached.
        privacy: The exact audit of `mechanism`. None if it was not audited.
        certificate: The certificate. None with certify=False.
        raw: The solver's mechanism before its repair. None if `mechanism` is that mechanism.
        origin: Where the certified masses come from, as text.
        pattern_optimum: Proven lower bound on the loss of any mechanism that exceeds the budget at
            the same outcomes as this one.
        details: Values that only the family uses.
        route: Name of the route that answered (`workbench.pipeline.routes`). None if the family
            does not use routes.
        scale: Scale of the losses, by which gaps are judged.
    """

    request: Any
    mechanism: Any
    objective: float
    bound: float | None
    claim: Any
    oracle: OracleVerdict
    solution: Solution | None = None
    words: Strings = ()
    privacy: Any = None
    certificate: Certificate | None = None
    raw: Any = None
    origin: str | None = None
    pattern_optimum: float | None = None
    details: Values = field(default_factory=dict)
    route: str | None = None
    scale: LossScale = NO_LOSS

    def __post_init__(self) -> None:
        if self.bound is None or self.certificate is None:
            # A raw mechanism may be below the bound because it is not private.
            return
        if self.bound > self.objective + _BOUND_MARGIN * abs(self.objective):
            note = (
                f"The bound {self.bound:.9g} is above the objective {self.objective:.9g}. It is "
                "therefore no bound on what is minimised, and is not reported."
            )
            # The dataclass is frozen, so its fields are set through __dict__.
            self.__dict__.update(bound=None, words=(*self.words, note))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in _ATTRIBUTE_HINTS:
                hint = _ATTRIBUTE_HINTS[name]
                raise AttributeError(f"Design has no attribute {name!r}: it is {hint}.")
            return object.__getattribute__(self, name)

    @property
    def question(self) -> Any:
        """Return the question of the request."""
        return self.request.question

    @property
    def family(self) -> Reports:
        """Return the family of the question."""
        family: Reports = self.request.family
        return family

    @property
    def claimed(self) -> float:
        """Return the objective that the solver claims, recomputed from its point."""
        # An ε is minimised by many solves, none of which claims an ε.
        if self.solution is None or self.request.aim.minimise == "epsilon":
            return self.objective
        assert self.solution.objective is not None
        return self.solution.objective * self.family.loss_unit(self.request)

    @property
    def above_claimed(self) -> float:
        """Return objective - claimed, the increase by certification. It is negative if it fell."""
        return self.objective - self.claimed

    @property
    def above_bound(self) -> float | None:
        """Return objective - bound: no mechanism can improve the objective by more than this.

        It is None without a bound.
        """
        if self.bound is None:
            return None
        return self.objective - self.bound

    @property
    def gap(self) -> float | None:
        """Return |objective - bound|, relative to the objective minus the loss without privacy.

        The gap of a minimised δ or ε is relative to max(1, |objective|).
        """
        scale = self.scale if self.request.aim.minimise == "loss" else NO_LOSS
        return scale.gap(self.objective, self.bound)

    @property
    def solver(self) -> str | None:
        """Return the label of the solver that answered, None if no solver was called."""
        if self.solution is not None:
            return self.solution.solver
        label: str | None = self.details.get("solver")
        if label is None:
            return None
        return label.split()[0]  # Further words may follow the label.

    @property
    def solver_effort(self) -> Record:
        """Return the solver, its version and its seconds. Empty if no solver was called."""
        if self.solution is None:
            return {}
        return {name: getattr(self.solution, name) for name in ("solver", "version", "seconds")}

    @property
    def status(self) -> str:
        """Return how the search ended."""
        return self.family.describe_status(self)

    @cached_property
    def private(self) -> bool | None:
        """Return whether the exact audit proves the claim, None if it was not audited."""
        if self.privacy is None:
            return None
        return bool(self.privacy.holds(self.claim))

    @cached_property
    def exact(self) -> Record:
        """Return pure_epsilon, pdp_delta and dp_delta of the exact audit, rounded up.

        A value is None if it is not known.
        """
        return self.family.exact_values(self)

    @cached_property
    def shadow_prices(self) -> Any:
        """Return how the loss changes per unit of ε and δ, and which neighbours determine it.

        The object is a `workbench.formulas.shadow_prices.ShadowPrices`.
        """
        return load_provided("design", "shadow_prices")(self)

    @cached_property
    def unique(self) -> Any:
        """Return whether no other mechanism of the class is optimal, in double precision.

        A second linear program over the optimal mechanisms decides it. It is None if this is not
        decided, for example because no single linear program states the request.
        """
        return load_provided("design", "only_optimum")(self)

    @property
    def program(self) -> DesignProgram:
        """Return the program that a solver answered. Raises InvalidRequest if there is none.

        Its numbers are in `data`. `save("mine.mps")` writes it for other solvers.
        """
        return DesignProgram.from_design(self)

    @property
    def proof(self) -> str:
        """Return a sentence on the certificate and on the increase of the loss by certification."""
        if self.certificate is None:
            if self.private is None:
                return "not certified, and not audited"
            if self.private:
                return "not certified; the audit is exact"
            return "not certified: NOT private at the requested budget"
        text = "certified"
        if self.origin:
            text = f"certified ({self.origin})"
        if self.solution is None or self.request.aim.minimise == "epsilon":
            return text
        text = f"{text}; relative to the solver's value {self.above_claimed:+.2g}"
        if self.above_bound is None:
            return text
        return f"{text}, to the proven bound {self.above_bound:+.2g}"

    @property
    def bound_text(self) -> str:
        """Return the bound as text: "unknown" for a bound of 0 on a loss above 0."""
        if self.bound is None and self.request.aim.runs > 1:
            return f"none: not proven optimal among all designs for {self.request.aim.runs} runs"
        if self.bound is not None and (self.bound > 0 or self.objective <= 0):
            return f"{self.bound:.9g}"
        return "unknown"

    def mark_stopped(self) -> Design:
        """Return the design of a search that stopped before it was proven optimal."""
        return replace(self, oracle=self.oracle.for_stopped_search(self.bound))

    # Reports.

    def facts(self) -> Facts:
        """Return the (label, sentence) rows of the report."""
        rows = [*self.family.facts(self)]
        if self.request.loss_name == "squared" and self.details.get("loss") is not None:
            root = float(self.details["loss"]) ** 0.5
            rows.append(("RMSE", f"{root:.9g} (root of the squared loss)"))
        rows.append(("proof", self.proof))
        rows.append(("known formula", str(self.oracle)))
        if self.solution is not None:
            solver = f"{self.solution.solver} {self.solution.version}".rstrip()
            rows.append(("solver", f"{solver}, {self.status}, {self.solution.seconds:.3f} s"))
        if self.route is not None:
            rows.append(("computed by", self.route))
        return rows + [("note", note) for note in self.words]

    def __str__(self) -> str:
        facts = self.facts()
        width = max(len(label) for label, _ in facts)
        lines = [f"  {label:<{width}} {sentence}" for label, sentence in facts]
        return "\n".join([self.heading, *lines])

    def __repr__(self) -> str:
        state = "not certified"
        if self.certificate is not None:
            state = "certified"
        elif self.private:
            state = "private"
        return f"Design({self.heading}: objective={self.objective:.9g}, {self.status}, {state})"

    @property
    def heading(self) -> str:
        """Return the first line of a report."""
        return str(self.request.heading)

    @property
    def drawable(self) -> bool:
        """Return whether the mechanism has a picture."""
        return self.mechanism is not None and self.family.draws

    def figure(self) -> Figure:
        """Draw the mechanism. Raises WorkbenchError if its family has no pictures."""
        return self.family.figure(self)

    def save(self, path: str | Path) -> None:
        """Write the certificate, or with certify=False the mechanism, which claims no privacy.

        Args:
            path: File to write, named .json.
        """
        from workbench.privacy.certificate_file import save

        content = self.certificate
        if content is None:
            content = self.family.uncertified_mechanism(self)
        save(content, read_file_path(path))

    def row(self) -> Record:
        """Return one row of a table, with the columns of `workbench.pipeline.outcome`."""
        residuals = getattr(self.solution, "residuals", None)
        start = "cold"
        if self.solution is not None:
            start = str(self.solution.start)
        is_certified = None
        if self.family.certifies:
            is_certified = self.certificate is not None
        return {
            "status": self.status,
            "failure": None,
            "objective": self.objective,
            "bound": self.bound,
            "gap": self.gap,
            "residual": getattr(residuals, "max_violation", None),
            "start": start,
            "audited": self.privacy is not None,
            "private": self.private,
            "certified": is_certified,
            **self.exact,
            "oracle": self.oracle.name,
            "oracle_kind": self.oracle.kind,
            "oracle_value": self.oracle.value,
            "oracle_agrees": self.oracle.agrees,
            **self.family.extra_columns(self),
        }

    def to_frame(self) -> pd.DataFrame:
        """Return the row as a table."""
        import pandas as pd

        return pd.DataFrame([self.row()])

    def to_dict(self) -> Record:
        """Return the object of `workbench design ... --json`. Infinity is the string "inf"."""
        exact = {name: to_jsonable(value) for name, value in self.exact.items()}
        if self.request.aim.runs > 1:
            exact["composed"] = self.details["composed"]
        entries: Record = {
            "objective": to_jsonable(self.objective),
            "bound": self.bound,
            "gap": self.gap,
            "status": self.status,
            "exact": exact,
            "private": self.private,
            "certified": self.certificate is not None,
            "route": self.route,
            "origin": self.origin,
            "optimum_of_pattern": self.pattern_optimum,
            "oracle": self.oracle.to_dict(),
            "words": list(self.words),
            **self.solver_effort,
        }
        if self.solution is not None:
            entries["claimed"] = self.claimed
            entries["above_claimed"] = self.above_claimed
            entries["above_bound"] = self.above_bound
        return entries | self.family.extra_json(self)


def format_upper_bound(value: float | str | None, *budgets: float) -> str:
    """Format an upper bound with nine significant digits, rounded up.

    Args:
        value: The bound. A text is returned as it is.
        budgets: Numbers that the rounded bound must not exceed if the bound does not. It is then
            shown with all digits.

    >>> format_upper_bound(1.0000000000000002, 1.0), format_upper_bound(0.25, 0.25)
    ('1.00000001', '0.25')
    """
    if value is None:
        return "not known"
    if isinstance(value, str) or math.isinf(value):
        return str(value)
    rounding = Context(prec=9, rounding=ROUND_CEILING)
    short = float(rounding.create_decimal_from_float(value))
    if any(value <= budget < short for budget in budgets):
        return repr(value)
    return f"{short:.9g}"


def format_exact_values(design: Design) -> dict[str, str]:
    """Format the exact values of a design with nine digits, rounded up.

    Args:
        design: A design. A value within the budget stays within it.
    """
    if not design.claim.is_epsilon_delta:
        return {name: format_upper_bound(value) for name, value in design.exact.items()}
    epsilon = design.claim.epsilon
    delta = design.claim.delta
    texts = {}
    for name, value in design.exact.items():
        budgets = [delta]
        if name == "pure_epsilon":
            budgets = [epsilon]
            if isinstance(epsilon, Mapping):
                budgets = [*epsilon.values()]
        else:
            number = getattr(design.privacy, name, None)
            is_within = isinstance(number, (Fraction, ExpNumber)) and number <= delta
            if is_within and value is not None:
                # The next float above a value within the budget may exceed it.
                value = min(value, float(delta))
        texts[name] = format_upper_bound(value, *map(float, budgets))
    return texts
