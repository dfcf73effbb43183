"""A question under a budget: what its request may ask whatever the notion, and how reports and JSON show it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NoReturn, Self

from solvers.backend import Options
from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import ZERO, jsonable
from workbench.exact.objects import Record
from workbench.families.base import Request, Values
from workbench.families.design import Design, exact_words
from workbench.families.option import spell
from workbench.families.requirements import ratio_notions
from workbench.io.files import spelled
from workbench.io.shown import Facts
from workbench.privacy.claim import Claim
from workbench.privacy.notions import OURS, notion


def refuse(name: str, measured: str, got: Any) -> NoReturn:
    """Raise for a budget or an option that a notion has no use for, with the notions that have."""
    of = " or ".join(other for other in OURS if name in notion(other).parameters)
    remark = f" (notion {of} takes it)" if of else ""
    must(name, f"left out when notion is {measured}{remark}", got)


PARAMETERS = ("epsilon", "alpha", "rho", "mu", "curve", "tradeoff")  # of notions of several convex bounds


@dataclass(frozen=True, kw_only=True, eq=False)
class BudgetRequest(Request):
    """The least loss within the budget of a notion, or the least δ or ε within max_loss.

    epsilon, delta: of notions that have them; where one is minimised an upper limit. alpha, rho, mu, curve, tradeoff:
    of notions of several convex bounds, of which only the loss of one run is minimised. max_loss: of the loss, where it
    is not minimised. runs: that the budget is for in all.
    """

    epsilon: Fraction | Mapping[Any, Fraction] | None = None
    delta: Fraction | None = None
    notion: str = "dp"
    alpha: Fraction | None = None
    rho: Fraction | None = None
    mu: Fraction | None = None
    curve: Any = None
    tradeoff: Any = None
    minimise: str = "loss"
    max_loss: Fraction | None = None
    runs: int = 1
    solver: str = "highs"
    options: Options = field(default_factory=Options)

    @property
    def per_distance(self) -> bool:
        """Whether ε is per unit of distance."""
        return False

    @cached_property
    def cut(self) -> bool:
        """Whether the notion states several convex bounds, or more than can be listed, and not one on a ratio."""
        return self.notion not in ratio_notions()

    @property
    def convex_claim(self) -> Claim:
        """What a mechanism is audited for under a notion of several bounds."""
        return Claim(self.notion, **notion(self.notion).budget({name: getattr(self, name) for name in PARAMETERS}))

    @cached_property
    def claim(self) -> Claim:
        """What a mechanism is audited for."""
        return self.convex_claim if self.cut else Claim(self.notion, self.epsilon, self.delta)

    def at(self, point: Values) -> Self:
        """The same request at other values, None where they stay. Raises InvalidRequest."""
        return replace(self, **{name: value for name, value in point.items() if value is not None})

    def left_out(self, defaults: Values) -> None:
        """Refuse what the notion has no use for: option -> its default. Raises InvalidRequest."""
        for name, plain in defaults.items():
            got = getattr(self, name)
            is_default = got is plain or (isinstance(got, Hashable) and got == plain)
            if not is_default and (name != "delta" or got):
                refuse(name, self.notion, spell(got) if isinstance(got, (int, float, Fraction)) else repr(got))

    def check_several_bounds(self, **defaults: Any) -> None:
        """Check the budget of a notion of several bounds. defaults: as `left_out`, further ones. Raises
        InvalidRequest."""
        self.left_out({"minimise": "loss", "max_loss": None, "delta": None, **defaults, "runs": 1})
        first, value = next(iter(self.convex_claim.values.items()))
        if not value:
            must(first, f"> 0 for the notion {self.notion}", "0")

    def check_one_bound(self) -> None:
        """Check the budget, and what is minimised, of a notion of one bound on ratios. Raises InvalidRequest."""
        self.left_out(dict.fromkeys(PARAMETERS[1:]))
        measure, minimise, most = notion(self.notion), self.minimise, self.max_loss
        if self.epsilon is None:
            raise InvalidRequest("epsilon must be given. Got none.")
        if minimise == "delta" and not measure.has_delta:
            without = f"loss or epsilon when notion is {measure.name}, which has no delta"
            must("minimise", without, "'delta'")
        if (most is None) == (minimise != "loss"):
            got = "none" if most is None else spelled(most)
            must("max_loss", "given where delta or epsilon is minimised, and only there", got)
        if self.delta and minimise != "delta" and not measure.has_delta:
            must("delta", f"0 when notion is {measure.name}", spelled(self.delta))

    def check_runs(self) -> None:
        """Refuse what cannot be asked for more than one run. Raises InvalidRequest."""
        if self.runs == 1:
            return
        if not notion(self.notion).composes or self.minimise != "loss" or isinstance(self.epsilon, Mapping):
            must("runs", "1 but for notion dp, one epsilon, and minimise loss", self.runs)
        if not self.certified and self.check != "audit":
            must("runs", f"1 where check is {self.check}", self.runs)

    # In words.

    @property
    def budget_words(self) -> str:
        """The notion, its budget, and what is minimised within which loss."""
        if not set(notion(self.notion).parameters) <= {"epsilon", "delta"}:
            return f"{self.notion}, {parameter_words(self.convex_claim)}"
        epsilon, least = self.epsilon, self.minimise
        per = " per unit of distance" if self.per_distance else ""
        given = {
            "epsilon": jsonable(epsilon) if isinstance(epsilon, Mapping) else f"{float(epsilon or 0):g}{per}",
            "delta": f"{float(self.delta or 0):g}",
        }
        words = [f"{name} = {value}" for name, value in given.items() if name != least]
        if self.max_loss is not None:
            words.append(f"{self.loss_name} loss <= {float(self.max_loss):.9g}")
        what = self.notion if least == "loss" else f"the least {least} for {self.notion}"
        runs = f" for {self.runs} runs in all" if self.runs > 1 else ""
        return f"{what}, {', '.join(words)}{runs}"


def completed(values: Values, largest: int) -> Record:
    """Values of options with the limit of ε, or the δ, that is meant where it is left out. largest: that limit."""
    meant = {"epsilon": Fraction(largest)} if values["minimise"] == "epsilon" else {}
    if values["minimise"] != "delta":
        meant["delta"] = ZERO
    return {name: meant.get(name) if value is None else value for name, value in values.items()}


def parameter_words(claim: Claim) -> str:
    """The budget in words."""
    values = claim.values
    for name, pair in (("curve", "(epsilon, delta)"), ("tradeoff", "(alpha, beta)")):
        if name in values:
            return f"{pair} = " + ", ".join(f"({float(a):g}, {float(b):g})" for a, b in values[name])
    return ", ".join(f"{name} = {float(value):g}" for name, value in values.items())


def budget_facts(design: Design) -> Facts:
    """What was asked of a design, its exact audit, and the composition of many runs, as rows of a report."""
    words = "PDP delta {pdp_delta}, DP delta {dp_delta}, pure epsilon {pure_epsilon}".format(**exact_words(design))
    return [("asked", design.request.budget_words), ("exact", words + audited_at(design)), *composed_facts(design)]


def audited_at(design: Design) -> str:
    """At which ε the exact values are, where that is not the one of the request."""
    return "" if design.claim.in_epsilon_delta else f" (at epsilon = {float(design.privacy.epsilon or 0):g})"


def composed_facts(design: Design) -> Facts:
    """The composition in a report; nothing of one run."""
    composed = design.details.get("composed")
    if composed is None:
        return []
    return [("composed", "{runs} runs: delta at most {delta!r} at epsilon = {epsilon:g} (proven)".format(**composed))]


def budget_json(design: Design) -> Record:
    """The budget and what is minimised, for JSON; of many runs with the composition that the exact audit proved."""
    request, claim = design.request, design.claim
    if request.runs == 1 and not claim.in_epsilon_delta:
        return {**claim.to_dict()}
    entries = {name: jsonable(getattr(request, name)) for name in ("notion", "minimise", "max_loss")}
    if request.runs > 1:
        entries["runs"] = request.runs
    epsilon = claim.epsilon if isinstance(request.epsilon, Mapping) else request.epsilon
    delta = claim.delta if request.runs == 1 else request.delta
    return entries | {"epsilon": jsonable(epsilon), "delta": float(delta or 0)}
