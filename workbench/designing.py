"""Question in, Design out: state the model, have a solver answer it, judge the answer, audit the mechanism exactly.

    >>> import workbench as wb
    >>> d = wb.design(wb.ModuloNoise(n=8, shifts=[1, 2, 3], directed=True), epsilon=1.5, delta=0.1212)
    >>> round(d.objective, 9), d.oracle.agrees
    (0.450172331, True)

One kind of question is one class and one designer; `DESIGNERS` maps the one to the other. (This file is not called
design.py: Python would then replace the public function `workbench.design` by the module of that name.)
"""

from __future__ import annotations

import importlib
import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context
from typing import TYPE_CHECKING, Any

from workbench.errors import InvalidRequest
from workbench.numbers import round_up

if TYPE_CHECKING:
    from solvers.solution import Solution
    from workbench.privacy.certificate import Certificate

__all__ = ["DESIGNERS", "Design", "OracleVerdict", "design"]

# kind of question -> module with `design(question, **request) -> Design`; one line per kind
DESIGNERS = {
    "ModuloNoise": "workbench.design_noise",
    "Quantization": "workbench.design_quantizer",
    "Labels": "workbench.design_labels",
}


# Below this, costs are equal: MILPs are solved to an absolute gap of 1e-9.
ABSOLUTE = 2e-9


@dataclass(frozen=True)
class OracleVerdict:
    """What a closed form says about an objective.

    Attributes:
        name: of the law.
        value: of the law, in the units of the objective; None when no closed form applies.
        kind: "optimum", or "upper bound" / "lower bound" on the optimum where the law is not proven to be one.
        valid: whether `value` is proven to be the optimum of this very request.
        agrees: whether the objective is consistent with it, within `tolerance` (relative) plus ABSOLUTE; of a solve
            that stopped early, whether the law lies between its bound and its incumbent. None without a value.
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

    @property
    def valid(self) -> bool:
        """Whether the value is a proven optimum."""
        return self.value is not None and self.kind == "optimum"

    @classmethod
    def judge(
        cls, objective: float | None, name: str, value: float, kind: str, proof: str, tolerance: float = 1e-6,
        *, proven: bool = True, bound: float | None = None,
    ) -> OracleVerdict:  # fmt: skip
        """Compare an objective with a law: equal to an optimum, not above an upper bound, not below a lower one.

        proven: whether the solver claims an optimum; otherwise an optimum by law must lie in [bound, objective].
        """
        if objective is None:
            return cls(name, value, kind, proof, None, None, tolerance)
        difference = objective - value
        slack = tolerance * abs(value) + ABSOLUTE
        above, below = difference >= -slack, difference <= slack
        if not proven:
            consistent = kind == "upper bound" or (
                above and (kind != "optimum" or (bound or -math.inf) <= value + slack)
            )
        else:
            consistent = {"optimum": above and below, "upper bound": below, "lower bound": above}[kind]
        return cls(name, value, kind, proof, consistent, difference, tolerance)

    @classmethod
    def none(cls, reason: str) -> OracleVerdict:
        """No closed form applies."""
        return cls(None, None, None, reason, None, None)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "name": self.name, "value": self.value, "kind": self.kind, "valid": self.valid,
            "agrees": self.agrees, "difference": self.difference, "proof": self.proof,
        }  # fmt: skip


@dataclass(frozen=True)
class Design:
    """A designed mechanism and everything that is known about it.

    Attributes:
        question: what was asked about.
        request: epsilon, delta, notion, cost, minimise, budget, solver, ... as asked.
        mechanism: the mechanism, its weights exact: the certified one, or the solver's own with certify=False.
        objective: what `mechanism` costs (with minimise="delta": the delta it reaches; with certify=False the one the
            solver claims), exactly, as a float.
        bound: what the solver proved (None: nothing).
        privacy: the exact audit of `mechanism`.
        oracle: the closed form's verdict on what the solver claims.
        solution: the solver's full answer.
        words: sentences a reader must know (missed privacy, one-sided relations, limits reached).
        certificate: the proof, None with certify=False.
        raw: the solver's own answer as a mechanism, None where `mechanism` is it.
        route: where the certified masses come from, in words.
        optimum: a proven lower bound on the cost of any mechanism that breaks the budget where this one does.
    """

    question: Any
    request: Mapping[str, Any]
    mechanism: Any
    objective: float
    bound: float | None
    privacy: Any
    oracle: OracleVerdict
    solution: Solution = field(repr=False)
    words: tuple[str, ...] = ()
    certificate: Certificate | None = field(default=None, repr=False)
    raw: Any = field(default=None, repr=False)
    route: str | None = None
    optimum: float | None = None

    @property
    def claimed(self) -> float:
        """What the solver claims to have reached, recomputed from its point."""
        assert self.solution.objective is not None
        return self.solution.objective

    @property
    def loss(self) -> float:
        """objective - claimed: what certifying cost (negative: it improved). A claim may be out of reach."""
        return self.objective - self.claimed

    @property
    def loss_to_bound(self) -> float | None:
        """objective - bound: no mechanism is better than the one returned by more, if the solver's bound is right."""
        return None if self.bound is None else self.objective - self.bound

    @property
    def gap(self) -> float | None:
        """|objective - bound| / max(1, |objective|)."""
        from solvers.solution import relative_gap

        return relative_gap(self.objective, self.bound)

    @property
    def status(self) -> str:
        """How the solver stopped."""
        return str(self.solution.termination)

    @property
    def private(self) -> bool:
        """Whether the exact audit of the mechanism as returned meets the request."""
        return bool(self.privacy.meets(self.request["notion"], self.request["epsilon"], self.request["delta"]))

    @property
    def proof(self) -> str:
        """Whether there is a certificate, and what it cost, in one sentence."""
        if self.certificate is None:
            return "not certified" if self.private else "not certified: the mechanism MISSES the request"
        more = "" if self.loss_to_bound is None else f", {self.loss_to_bound:+.2g} to the proven bound"
        return f"certified ({self.route}), {self.loss:+.2g} to the solver's claim{more}"

    @property
    def asked(self) -> str:
        """The request in words."""
        r = self.request
        epsilon = jsonable(r["epsilon"])
        if r["minimise"] == "delta":
            return f"the least delta for {r['notion']}, epsilon = {epsilon}, {r['cost']} <= {float(r['budget']):.9g}"
        return f"{r['notion']}, epsilon = {epsilon}, delta = {float(r['delta']):g}"

    @property
    def exact_words(self) -> dict[str, str]:
        """The exact values of `to_dict` in nine digits, rounded up, and on the right side of what was asked."""
        r = self.to_dict()
        budgets = r["epsilon"].values() if isinstance(r["epsilon"], dict) else [r["epsilon"]]
        return {
            name: upward(value, *(budgets if name == "pure_epsilon" else [r["delta"]]))
            for name, value in r["exact"].items()
        }

    def __str__(self) -> str:
        r, exact = self.to_dict(), self.exact_words
        what = "delta" if r["minimise"] == "delta" else r["cost"]
        bound = "bound unknown" if self.bound is None else f"bound {self.bound:.9g}"
        law = self.oracle
        oracle = law.proof if law.value is None else f"{law.name} {law.value:.9g} ({law.kind}), agrees: {law.agrees}"
        lines = [
            f"{self.question!r}: least {what} {self.objective:.9g}, {bound}",
            f"  asked    {self.asked}",
            f"  exact    PDP delta {exact['pdp_delta']}, DP delta {exact['dp_delta']}, "
            f"pure epsilon {exact['pure_epsilon']}",
            f"  proof    {self.proof}",
            f"  oracle   {oracle}",
            f"  solver   {r['solver']} {r['version']}, {r['status']}, {r['seconds']:.3f} s",
        ]
        return "\n".join(lines + [f"  note     {sentence}" for sentence in self.words])

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: the keys of `workbench design ... --json`. Infinite values are the string "inf"."""
        exact = {
            "pdp_delta": round_up(self.privacy.pdp_delta),
            "dp_delta": self.privacy.dp_delta.upper,
            "pure_epsilon": self.privacy.pure_epsilon,
        }
        return {
            "objective": self.objective,
            "bound": self.bound,
            "gap": self.gap,
            "status": self.status,
            "question": self.question.to_dict(),
            "solver": self.solution.solver,
            "version": self.solution.version,
            "pmf": self.mechanism.pmf.tolist(),
            **{
                key: jsonable(self.request[key]) for key in ("epsilon", "delta", "notion", "cost", "minimise", "budget")
            },
            "directed": self.question.directed,
            "exact": {key: jsonable(value) for key, value in exact.items()},
            "private": self.private,
            "certified": self.certificate is not None,
            "claimed": self.claimed,
            "loss": self.loss,
            "loss_to_bound": self.loss_to_bound,
            "optimum_of_pattern": self.optimum,
            "route": self.route,
            "oracle": self.oracle.to_dict(),
            "seconds": self.solution.seconds.total,
            "words": list(self.words),
        }


def upward(value: float | str, *asked: float) -> str:
    """A bound in nine significant digits, rounded up; in full where that would cross a budget it keeps.

    >>> upward(1.0000000000000002, 1.0), upward(0.25, 0.25)
    ('1.00000001', '0.25')
    """
    if isinstance(value, str) or math.isinf(value):
        return str(value)
    short = float(Context(prec=9, rounding=ROUND_CEILING).create_decimal_from_float(value))
    return repr(value) if any(value <= budget < short for budget in asked) else f"{short:.9g}"


def jsonable(value: Any) -> Any:
    """Strict JSON for one request value: rationals as floats, infinities as "inf", shifts as strings."""
    from fractions import Fraction

    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else ",".join(map(str, key)): jsonable(v) for key, v in value.items()}
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def design(question: Any, **request: Any) -> Design:
    """Design the best mechanism for a question, certified unless certify=False.

    See the designer of its kind (`workbench.design_noise.design`).

    Raises:
        InvalidRequest, Infeasible, SolverUnavailable, LicenceLimit, NotProven, NotCertified: see `workbench.errors`.
    """
    home = DESIGNERS.get(type(question).__name__)
    if home is None:
        InvalidRequest.must("question", f"one of {', '.join(DESIGNERS)}", repr(question))
    designer = importlib.import_module(home).design
    known = inspect.signature(designer).parameters
    for name in request:
        if name not in known:
            InvalidRequest.must("request", f"made of {', '.join(list(known)[1:])}", name)
    for name, parameter in list(known.items())[1:]:
        if parameter.default is parameter.empty and parameter.kind is parameter.KEYWORD_ONLY and name not in request:
            raise InvalidRequest(f"{name} must be given. Got none.")
    designed: Design = designer(question, **request)
    return designed
