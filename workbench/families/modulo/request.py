"""What a request for noise may say, in exact numbers, checked before anything is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from models.modulo import loss_vector
from models.modulo_constraints import Equations, StatedEquations, UserConstraints, equal_masses, equations_of, zero_mean
from solvers.backend import Options
from workbench.errors import Infeasible, InvalidRequest
from workbench.exact.numbers import Real
from workbench.families.base import Request
from workbench.families.composed import check_runs
from workbench.families.convex_notion import PARAMETERS, without_parameters
from workbench.families.modulo.own_losses import own_losses
from workbench.families.option import spell
from workbench.families.outcome import translated_errors
from workbench.families.requirements import Bounds, ratio_bounds, ratio_notions
from workbench.families.user_constraints import checked_constraints
from workbench.io.files import spelled
from workbench.mechanisms.modulo import ModuloNoise, Shift
from workbench.privacy.claim import Claim
from workbench.privacy.notions import notion

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = ["ModuloRequest", "request"]

MOST_EPSILON = 20  # 2^20 e^20 is the largest coefficient of a scaled program, 5e14
LEAST_EPSILON = Fraction(1, 10**12)
MOST_COLUMNS = 5_000_000
_ONE_BOUND = {"minimise": "loss", "max_loss": None, "delta": None, "method": "fast", "runs": 1}

Budgets = Mapping[Shift, Fraction]


@dataclass(frozen=True, kw_only=True, eq=False)
class ModuloRequest(Request):
    """The least-loss noise within the budget of a notion, or the least δ or ε within max_loss.

    epsilon: one number, or one for each shift; budgets: the same for every difference; alpha, rho, mu, curve, tradeoff:
    of notions of several convex bounds, of which only the loss of one run is minimised.
    delta: where δ is not minimised what may be spent, else an upper limit or None; budget: of the loss, where it is not
    minimised. costs: (N,) or (answers, N), what each noise value costs. constraints: more linear ones on f (N,).
    runs: that the budget is for in all.
    """

    question: ModuloNoise
    epsilon: Fraction | Mapping[Any, Fraction] = None  # type: ignore[assignment]  # of a notion that has none
    delta: Fraction | None = None
    notion: str = "dp"
    alpha: Fraction | None = None
    rho: Fraction | None = None
    mu: Fraction | None = None
    curve: Any = None
    tradeoff: Any = None
    loss: str = "error-rate"
    prior: tuple[Fraction, ...] | None = None
    minimise: str = "loss"
    max_loss: Fraction | None = None
    constraints: UserConstraints | None = None
    method: str = "fast"
    runs: int = 1
    solver: str = "highs"
    options: Options = field(default_factory=Options)
    budgets: Budgets = field(init=False, repr=False)
    losses: NDArray[np.float64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if "losses" not in self.__dict__:  # they do not move with hot options
            prior = None if self.prior is None else np.array([float(p) for p in self.prior])
            with translated_errors():
                object.__setattr__(self, "losses", loss_vector(self.loss, self.question.sizes, prior))
        if self.convex:
            self._check_convex()
            return
        without_parameters({"notion": self.notion, **{name: getattr(self, name) for name in PARAMETERS}})
        if self.minimise == "epsilon":
            if isinstance(self.epsilon, Mapping):
                raise InvalidRequest("epsilon must be one number, an upper limit, where it is minimised.")
            object.__setattr__(self, "epsilon", self.epsilon or Fraction(MOST_EPSILON))
        if self.epsilon is None:
            raise InvalidRequest("epsilon must be given. Got none.")
        object.__setattr__(self, "budgets", budgets_of(self.question, self.epsilon))
        if self.runs > 1:
            check_runs(self)
        if self.minimise == "delta":
            if not notion(self.notion).has_delta:
                raise InvalidRequest(
                    f"minimise must be loss when notion is {self.notion}, which has no delta. Got 'delta'."
                )
            if self.max_loss is None:
                raise InvalidRequest("max_loss must be given when minimise is delta. Got none.")
            return
        if self.minimise == "epsilon" and self.max_loss is None:
            raise InvalidRequest("max_loss must be given when minimise is epsilon. Got none.")
        if self.max_loss is not None and self.minimise == "loss":
            InvalidRequest.must("max_loss", "left out unless delta or epsilon is minimised", spelled(self.max_loss))
        object.__setattr__(self, "delta", self.delta or Fraction(0))
        if self.delta and not notion(self.notion).has_delta:
            InvalidRequest.must("delta", f"0 when notion is {self.notion}", spelled(self.delta))

    def _check_convex(self) -> None:
        """That nothing is given which only notions of one bound on ratios have."""
        for name, plain in _ONE_BOUND.items():
            if (got := getattr(self, name)) != plain:
                shown = repr(got) if isinstance(got, str) else spell(got)
                InvalidRequest.must(name, f"left out when notion is {self.notion}", shown)
        values = self.claim().values
        first = next(iter(values))
        if not values[first]:
            InvalidRequest.must(first, f"> 0 for the notion {self.notion}", "0")

    def at(self, point: Mapping[str, Any]) -> Self:
        """The same request at other values. Raises InvalidRequest."""
        moved = super().at(point)
        assert isinstance(moved, type(self))
        return moved

    @property
    def convex(self) -> bool:
        """Whether the notion is one of several bounds, or of cones."""
        return self.notion not in ratio_notions()

    def claim(self, delta: Fraction | None = None) -> Claim:
        """What a mechanism is audited for. delta: as it is reached, of a notion of one bound on ratios."""
        if self.convex:
            return Claim(self.notion, **notion(self.notion).budget({name: getattr(self, name) for name in PARAMETERS}))
        return Claim(self.notion, self.budgets if isinstance(self.epsilon, Mapping) else self.epsilon, delta)

    @property
    def bounds(self) -> Bounds:
        """What the notion requires of every difference; δ = 1 where it is minimised."""
        return ratio_bounds(self.notion, self.budgets, self.delta if self.minimise != "delta" else None)

    @property
    def loss_limit(self) -> Fraction | None:
        """The budget, at most what any noise costs. Raises Infeasible below what every noise costs."""
        if self.max_loss is None:
            return None
        least = Fraction(float(self.losses.min())) if self.losses.ndim == 1 else Fraction(0)
        if self.max_loss < least:
            raise Infeasible(
                f"No noise has loss {self.loss} below {float(least):g}. Got budget = {float(self.max_loss):g}."
            )
        return min(self.max_loss, Fraction(float(self.losses.max())))


def request(question: ModuloNoise, values: dict[str, Any]) -> ModuloRequest:
    """The request that exact option values amount to. Raises InvalidRequest."""
    values["loss"] = own_losses(values["loss"], question)
    return ModuloRequest(question=question, constraints=constraints_of(question, values), **values)


def constraints_of(question: ModuloNoise, values: dict[str, Any]) -> UserConstraints | None:
    """The constraints that option values amount to, which are taken out of them. Raises InvalidRequest."""
    makers: list[UserConstraints] = []
    if values.pop("zero_mean", False):
        makers.append(zero_mean(question.sizes))
    if (equal := values.pop("equal", None)) is not None:
        if any(len(group) < 2 for group in equal) or not all(0 <= k < question.order for g in equal for k in g):
            groups = ",".join("=".join(map(str, group)) for group in equal)
            InvalidRequest.must("equal", f"groups of noise values in 0..{question.order - 1} such as 1=8", groups)
        makers.append(equal_masses([list(group) for group in equal]))
    if (more := checked_constraints(values.pop("constraints", None), "f")) is not None:
        makers.append(more)
    return None if not makers else makers[0] if len(makers) == 1 else _Together(tuple(makers))


def budgets_of(question: ModuloNoise, epsilon: Real | Mapping[Any, Real]) -> Budgets:
    """ε of every difference, exact. Raises InvalidRequest."""
    budgets = question.budgets(epsilon)
    different = {id(value): value for value in budgets.values()}.values()  # one number for all is one object
    if max(different) > MOST_EPSILON or min(different) < LEAST_EPSILON:
        between = f"between {float(LEAST_EPSILON):g} and {MOST_EPSILON} (e^epsilon is a coefficient of the program)"
        InvalidRequest.must(
            "epsilon", between, spelled(max(different)) if max(different) > MOST_EPSILON else spelled(min(different))
        )
    columns = question.order * (1 + 2 * len(budgets))
    if columns > MOST_COLUMNS:
        raise InvalidRequest(f"The program would have {columns} columns; at most {MOST_COLUMNS} can be stated.")
    return budgets


@dataclass(frozen=True)
class _Together(StatedEquations):
    """Several sets of constraints as one."""

    makers: tuple[UserConstraints, ...]

    def __call__(self, f: cp.Variable) -> Sequence[cp.Constraint]:
        return [row for make in self.makers for row in make(f)]

    def equations(self) -> list[Equations] | None:
        parts = [equations_of(make) for make in self.makers]
        return None if None in parts else [block for part in parts for block in part or ()]
