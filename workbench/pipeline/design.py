"""A designed mechanism and everything that is known about it: what every family returns."""

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


_BOUND_MARGIN = 1e-9  # relative, by which rounding may carry a bound above an objective
_ATTRIBUTE_HINTS = {  # what is sought in a design -> where it is
    "sample": "wb.sample(design, count, answer=...)", "matrix": "design.mechanism.matrix, of a channel or a randomizer",
    "prices": "design.shadow_prices",
}  # fmt: skip
LawsByName = Mapping[str, tuple[Any, Any]]  # name -> (values, masses), of densities (edges, means)
Tables = list[tuple[str, list[str], list[list[Any]]]]  # (title, heads, rows)


class Reports(ABC):
    """How a family's designs are shown, beyond what every design shows.

    name: of the family; certifies: whether its designs have certificates, and files of their mechanisms; draws: whether
    its mechanisms have a picture.
    """

    name: str
    certifies: bool = True
    draws: bool = True

    def describe_status(self, design: Design) -> str:
        """How the search stopped; of many runs nothing better was found."""
        if design.request.aim.runs > 1:
            return "found"
        if design.solution is None:
            return "stopped" if design.details.get("stopped") else "optimal"
        return str(design.solution.termination)

    def loss_unit(self, request: Any) -> float:
        """What a loss of 1 in the solver's program is in the units of the answers."""
        return 1.0

    def exact_values(self, design: Design) -> Record:
        """The exact audit: pure_epsilon, pdp_delta and dp_delta (None: not known), each never understated."""
        privacy = design.privacy
        return {
            "pdp_delta": round_up(privacy.pdp_delta),
            "dp_delta": privacy.dp_delta.upper,
            "pure_epsilon": privacy.pure_epsilon,
        }

    def extra_columns(self, design: Design) -> Record:
        """Columns of a row that only this family has."""
        return {}

    def extra_json(self, design: Design) -> Record:
        """Keys of `--json` that only this family has, or has in its own way."""
        return {}

    @abstractmethod
    def facts(self, design: Design) -> Facts:
        """What a report says before proof, oracle and solver: (label, sentence) rows."""

    def list_tables(self, design: Design) -> Tables:
        """The mechanism as tables: (title, heads, rows)."""
        return []

    def comparison_laws(self, design: Design) -> LawsByName:
        """Laws of published noise at the same budget."""
        return {}

    def uncertified_mechanism(self, design: Design) -> Any:
        """The mechanism as a file knows it, which claims nothing."""
        return design.mechanism

    def figure_caption(self, design: Design) -> str:
        """Above its picture: what was asked, and what it costs."""
        request = design.request
        return f"{request.heading}\n{request.budget_text}: {request.objective_name} {design.objective:.6g}"

    def figure(self, design: Design) -> Figure:
        """A picture of the law, published ones beside it. Raises WorkbenchError where there is none."""
        drawing = getattr(design.mechanism, "drawing", None)
        if drawing is None:
            raise WorkbenchError(f"Mechanisms of the family {self.name} have no picture.")
        return draw_chart(
            overlay_laws(drawing(), self.comparison_laws(design)), self.figure_caption(design)
        )


@dataclass(frozen=True)
class OracleVerdict(OneLine):
    """What a closed form says about an objective.

    Attributes:
        name: of the law.
        value: of the law, in the units of the objective; None when no closed form applies.
        kind: "optimum", or "upper bound" / "lower bound" on the optimum where the law is not proven to be one.
        valid: whether `value` is proven to be the optimum of this very request.
        agrees: whether the objective is consistent with it, within `tolerance`, relative to the value minus the floor
            of the `scale`; None without a value, and where a solve stopped before it could tell (`stopped`).
        difference: objective - value.
        proof: in one sentence, why and where the law holds (or why there is none).
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
        """Whether the value is a proven optimum."""
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
        """Compare an objective with a law: equal to an optimum, not above an upper bound, not below a lower one."""
        scale = scale or NO_LOSS
        if objective is None:
            return cls(name, value, kind, proof, None, None, tolerance, scale)
        above, below = (
            scale.proves(value, objective, tolerance),
            scale.settles(objective, value, tolerance),
        )
        consistent = {"optimum": above and below, "upper bound": below, "lower bound": above}[kind]
        return cls(name, value, kind, proof, consistent, objective - value, tolerance, scale)

    def for_stopped_search(self, bound: float | None) -> OracleVerdict:
        """The verdict on an objective that was not proven to be an optimum: it decides nothing that the objective is
        above the law, which may lie between the bound and the objective."""
        law, above = self.value or 0.0, self.agrees is False and (self.difference or 0.0) > 0
        below = (
            self.kind == "optimum"
            and bound is not None
            and not self.scale.proves(bound, law, self.tolerance)
        )
        return replace(self, agrees=None) if above and not below else self

    @classmethod
    def without_formula(cls, reason: str) -> OracleVerdict:
        """No closed form applies."""
        return cls(None, None, None, reason, None, None)

    def __str__(self) -> str:
        if self.value is None:
            return f"none: {self.proof}"
        undecided = "no verdict" if self.difference is None else "not decided: stopped"
        verdict = "agrees" if self.agrees else undecided if self.agrees is None else "DISAGREES"
        return f"{self.name} {self.value:.9g} ({self.kind}), {verdict}. {self.proof}"

    def to_dict(self) -> Record:
        """JSON-ready."""
        shown = ("name", "value", "kind", "valid", "agrees", "difference", "proof")
        return {name: getattr(self, name) for name in shown}


@dataclass(frozen=True, repr=False)
class Design(Shown):
    """A designed mechanism and everything that is known about it.

    Attributes:
        request: what was asked, in exact numbers; `question` is its question.
        mechanism: its weights exact: the certified one, or the solver's own with certify=False; None where no mechanism
            meets the request and the family has that as an answer.
        objective: what `mechanism` costs (with minimise="delta": the delta it reaches; with certify=False the one the
            solver claims), exactly, as a float.
        bound: what the solver proved (None: nothing) or the exact program that was certified, or the closed form where
            `words` says so.
        claim: what `mechanism` is audited for: the request's notion and budgets, with δ as it was reached where it is
            minimised.
        oracle: the closed form's verdict on what the solver claims.
        solution: the solver's full answer, None where none took part.
        words: sentences a reader must know (missed privacy, one-sided relations, limits reached).
        privacy: the exact audit of `mechanism`, None where it was not audited.
        certificate: the proof, None with certify=False.
        raw: the solver's own answer as a mechanism, None where `mechanism` is it.
        origin: where the certified masses come from, in words.
        optimum: a proven lower bound on the loss of any mechanism that breaks the budget where this one does.
        details: what only its family knows.
        route: the way that the request was answered (`workbench.pipeline.routes`), None where there is only one.
        scale: that of the losses, by which gaps are judged.
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
            return  # A raw answer may be below the bound because it is not private.
        if self.bound > self.objective + _BOUND_MARGIN * abs(self.objective):
            words = (
                f"The bound {self.bound:.9g} is above the {self.objective:.9g} that was reached: it is no bound on "
                f"what is minimised, and is not claimed."
            )
            self.__dict__.update(bound=None, words=(*self.words, words))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in _ATTRIBUTE_HINTS:
                raise AttributeError(
                    f"Design has no attribute {name!r}: it is {_ATTRIBUTE_HINTS[name]}."
                )
            return object.__getattribute__(self, name)

    @property
    def question(self) -> Any:
        """What was asked about."""
        return self.request.question

    @property
    def family(self) -> Reports:
        """The kind of question."""
        family: Reports = self.request.family
        return family

    @property
    def claimed(self) -> float:
        """What the solver claims to have reached, recomputed from its point."""
        searched = (
            self.request.aim.minimise == "epsilon"
        )  # by many solves, none of which claims an ε
        if self.solution is None or searched:
            return self.objective
        assert self.solution.objective is not None
        return self.solution.objective * self.family.loss_unit(self.request)

    @property
    def above_claimed(self) -> float:
        """objective - claimed: what certifying costs (negative: it improved). A claim may be out of reach."""
        return self.objective - self.claimed

    @property
    def above_bound(self) -> float | None:
        """objective - bound: no mechanism is better than the one returned by more, if the bound is right."""
        return None if self.bound is None else self.objective - self.bound

    @property
    def gap(self) -> float | None:
        """|objective - bound|, relative to the objective minus the loss without privacy; of a δ or ε that is minimised,
        to max(1, |objective|)."""
        scale = self.scale if self.request.aim.minimise == "loss" else NO_LOSS
        return scale.gap(self.objective, self.bound)

    @property
    def solver(self) -> str | None:
        """The label of the solver that answered; None where no solver took part."""
        if self.solution is not None:
            return self.solution.solver
        named: str | None = self.details.get("solver")
        return None if named is None else named.split()[0]

    @property
    def solver_effort(self) -> Record:
        """Who solved it, in which version and how many seconds; nothing where no solver took part."""
        known = self.solution
        return (
            {}
            if known is None
            else {name: getattr(known, name) for name in ("solver", "version", "seconds")}
        )

    @property
    def status(self) -> str:
        """How the search stopped."""
        return self.family.describe_status(self)

    @cached_property
    def private(self) -> bool | None:
        """Whether the exact audit of the mechanism as returned meets the claim; None: it was not audited."""
        return None if self.privacy is None else bool(self.privacy.holds(self.claim))

    @cached_property
    def exact(self) -> Record:
        """The exact audit: pure_epsilon, pdp_delta and dp_delta (None: not known), each never understated."""
        return self.family.exact_values(self)

    @cached_property
    def shadow_prices(self) -> Any:
        """What one unit of ε and of δ is worth, and which neighbours decide (`families.shadow_prices.ShadowPrices`)."""
        return load_provided("design", "shadow_prices")(self)

    @cached_property
    def unique(self) -> Any:
        """Whether no other mechanism of the class is optimal, in doubles, by a second linear program over those that
        are; None: not decided, as without a linear program that states the whole request."""
        return load_provided("design", "only_optimum")(self)

    @property
    def program(self) -> DesignProgram:
        """The program that a solver answered: `data`, and `save("mine.mps")` for any other. Raises InvalidRequest where
        there is none."""
        return DesignProgram.from_design(self)

    @property
    def proof(self) -> str:
        """Whether there is a certificate, and what it costs, in one sentence."""
        if self.certificate is None:
            if self.private is None:
                return "not certified, and not audited"
            return (
                "not certified; the audit is exact"
                if self.private
                else "not certified: MISSES the request"
            )
        words = f"certified ({self.origin})" if self.origin else "certified"
        if self.solution is None or self.request.aim.minimise == "epsilon":
            return words
        more = "" if self.above_bound is None else f", {self.above_bound:+.2g} to the proven bound"
        return f"{words}, {self.above_claimed:+.2g} to the solver's claim{more}"

    @property
    def bound_text(self) -> str:
        """The bound in words; one that is no more than 0 says nothing of a loss above it."""
        if self.bound is None and self.request.aim.runs > 1:
            return f"none: not proven optimal among all designs for {self.request.aim.runs} runs"
        known = self.bound is not None and (self.bound > 0 or self.objective <= 0)
        return f"{self.bound:.9g}" if known else "unknown"

    def mark_stopped(self) -> Design:
        """The same, which was not proven to be an optimum: its closed form judges it as such."""
        return replace(self, oracle=self.oracle.for_stopped_search(self.bound))

    # Reports.

    def facts(self) -> Facts:
        """A report: (label, sentence) rows."""
        solution, rows = self.solution, self.family.facts(self)
        if self.request.loss_name == "squared" and self.details.get("loss") is not None:
            rows = [
                *rows,
                ("RMSE", f"{float(self.details['loss']) ** 0.5:.9g} (root of the squared loss)"),
            ]
        rows = [*rows, ("proof", self.proof), ("oracle", str(self.oracle))]
        if solution is not None:
            name, seconds = f"{solution.solver} {solution.version}".rstrip(), solution.seconds
            rows.append(("solver", f"{name}, {self.status}, {seconds:.3f} s"))
        if self.route is not None:
            rows.append(("route", self.route))
        return rows + [("note", sentence) for sentence in self.words]

    def __str__(self) -> str:
        facts = self.facts()
        width = max(len(label) for label, _ in facts)
        return "\n".join(
            [self.heading, *(f"  {label:<{width}} {sentence}" for label, sentence in facts)]
        )

    def __repr__(self) -> str:
        state = (
            "certified"
            if self.certificate is not None
            else "private"
            if self.private
            else "not certified"
        )
        return f"Design({self.heading}: objective={self.objective:.9g}, {self.status}, {state})"

    @property
    def heading(self) -> str:
        """The first line of a report."""
        return str(self.request.heading)

    @property
    def drawable(self) -> bool:
        """Whether there is a mechanism, of a family that draws."""
        return self.mechanism is not None and self.family.draws

    def figure(self) -> Figure:
        """A picture of the mechanism. Raises WorkbenchError for a family without one."""
        return self.family.figure(self)

    def save(self, path: str | Path) -> None:
        """Write the certificate; with certify=False the bare mechanism, which claims nothing."""
        from workbench.privacy.certificate_file import save

        save(
            self.family.uncertified_mechanism(self)
            if self.certificate is None
            else self.certificate,
            read_file_path(path),
        )

    def row(self) -> Record:
        """One row of a table: the columns of `workbench.pipeline.outcome`."""
        family, oracle, solution = self.family, self.oracle, self.solution
        return {
            "status": self.status,
            "failure": None,
            **{name: getattr(self, name) for name in ("objective", "bound", "gap")},
            "residual": getattr(getattr(solution, "residuals", None), "max_violation", None),
            "start": "cold" if solution is None else str(solution.start),
            "audited": self.privacy is not None,
            "private": self.private,
            "certified": self.certificate is not None if family.certifies else None,
            **self.exact,
            "oracle": oracle.name,
            **{f"oracle_{name}": getattr(oracle, name) for name in ("kind", "value", "agrees")},
            **family.extra_columns(self),
        }

    def to_frame(self) -> pd.DataFrame:
        """The row as a table."""
        import pandas as pd

        return pd.DataFrame([self.row()])

    def to_dict(self) -> Record:
        """JSON-ready: the keys of `workbench design ... --json`. Infinite values are the string "inf"."""
        claims = () if self.solution is None else ("claimed", "above_claimed", "above_bound")
        exact = {name: to_jsonable(value) for name, value in self.exact.items()}
        if self.request.aim.runs > 1:
            exact["composed"] = self.details["composed"]
        return {
            "objective": to_jsonable(self.objective), "bound": self.bound, "gap": self.gap, "status": self.status,
            "exact": exact, "private": self.private,
            "certified": self.certificate is not None, "route": self.route, "origin": self.origin,
            "optimum_of_pattern": self.pattern_optimum,
            "oracle": self.oracle.to_dict(), "words": list(self.words),
            **self.solver_effort, **{name: getattr(self, name) for name in claims}, **self.family.extra_json(self),
        }  # fmt: skip


def format_upper_bound(value: float | str | None, *budgets: float) -> str:
    """A bound in nine significant digits, rounded up; in full where that would cross a budget it keeps.

    >>> upward(1.0000000000000002, 1.0), upward(0.25, 0.25)
    ('1.00000001', '0.25')
    """
    if value is None:
        return "not known"
    if isinstance(value, str) or math.isinf(value):
        return str(value)
    short = float(Context(prec=9, rounding=ROUND_CEILING).create_decimal_from_float(value))
    return repr(value) if any(value <= budget < short for budget in budgets) else f"{short:.9g}"


def format_exact_values(design: Design) -> dict[str, str]:
    """The exact values of a design in nine digits, rounded up, and on the right side of what was asked."""
    if not design.claim.is_epsilon_delta:
        return {name: format_upper_bound(value) for name, value in design.exact.items()}
    epsilon, delta = design.claim.epsilon, design.claim.delta
    words = {}
    for name, value in design.exact.items():
        budgets = [delta]
        if name == "pure_epsilon":
            budgets = [*epsilon.values()] if isinstance(epsilon, Mapping) else [epsilon]
        elif (
            isinstance(whole := getattr(design.privacy, name, None), (Fraction, ExpNumber))
            and whole <= delta
        ):
            value = (
                None if value is None else min(value, float(delta))
            )  # within the budget, though the next float above it may not be
        words[name] = format_upper_bound(value, *map(float, budgets))
    return words
