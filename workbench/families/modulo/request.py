"""What a request for noise may say, in exact numbers, checked before anything is built."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from workbench.data.labels import LabelledTuple, align_container
from workbench.data.points import list_labelled_cells
from workbench.errors import Infeasible, InvalidRequest, must
from workbench.exact.numbers import ZERO, Rationals, Real, nearest_float, read_number
from workbench.exact.objects import Record, Values
from workbench.io.files import names_file
from workbench.mechanisms.additive import AdditiveNoise
from workbench.models.convex.requirements import RatioBound
from workbench.models.modulo.constraints import NoiseEquations, UserConstraints
from workbench.models.modulo.program import LOSSES, ModuloModel, UserLosses, loss_vector
from workbench.pipeline.loss_scale import LossScale
from workbench.pipeline.option import check_epsilon_range
from workbench.pipeline.outcome import translate_errors
from workbench.pipeline.request import Aim, How, Request, read_claim, refuse_option
from workbench.pipeline.requirements import HOCKEY_STICK, RatioBounds, make_ratio_bounds
from workbench.pipeline.stated import (
    FormulaProgram,
    check_formula_request,
    check_size,
    locate_rationals,
    make_formula_program,
)
from workbench.pipeline.user_constraints import check_constraints
from workbench.privacy.claim import Claim
from workbench.privacy.repair import Pattern, compute_exact_loss
from workbench.questions.modulo_noise import ModuloNoise, Shift
from workbench.solvers.arrays import Ints, Vector

MAX_EPSILON = 20  # 2^20 e^20 is the largest coefficient of a scaled program, 5e14
MIN_EPSILON = Fraction(1, 10**12)
MAX_COLUMNS = 5_000_000
_EACH = "a finite number >= 0"

Budgets = Mapping[Shift, Fraction]


@dataclass(frozen=True, kw_only=True, eq=False)
class ModuloAim(Aim):
    """What is asked of noise.

    Attributes:
        loss: a name, or losses of the user under a name.
        prior: the probabilities of the answers, with the loss prior-squared.
        constraints: further linear constraints on f (N,).
    """

    loss: str = "error-rate"
    prior: Rationals | None = None
    constraints: UserConstraints | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class ModuloHow(How):
    """How noise is found. method: "fast" or "literal"."""

    method: str = "fast"


@dataclass(frozen=True, kw_only=True, eq=False)
class ModuloRequest(Request):
    """The least-loss noise within the budget of a notion, or the least δ or ε within max_loss.

    The ε of the claim is one number, or one for each shift; `budgets` has one for every difference. `losses` are those
    of the noise values, (N,) or (answers, N).
    """

    AIM = ModuloAim
    HOW = ModuloHow

    question: ModuloNoise
    aim: ModuloAim
    how: ModuloHow

    def __post_init__(self) -> None:
        _ = self.losses
        self.check_aim()
        if self.has_several_bounds:
            if self.how.method != "fast":
                refuse_option("method", self.claim.notion.name, repr(self.how.method))
            return
        if self.aim.minimise == "epsilon" and isinstance(self.claim.epsilon, Mapping):
            raise InvalidRequest(
                "epsilon must be one number, an upper limit, where it is minimised."
            )
        _ = self.budgets
        self.check_runs()

    @cached_property
    def losses(self) -> Vector:
        """What each noise value costs, (N,), or (answers, N) for the worst answer. Raises InvalidRequest."""
        with translate_errors():
            return _losses(self.aim.loss, self.question.sizes, self.aim.prior)

    @cached_property
    def scale(self) -> LossScale:
        """That of the losses, None of a δ that is minimised."""
        return _scale(self.losses) if self.aim.minimise == "loss" else LossScale()

    @cached_property
    def budgets(self) -> Budgets:
        """ε of every difference. Raises InvalidRequest."""
        return compute_shift_budgets(self.question, self.claim.epsilon)

    @cached_property
    def audited_claim(self) -> Claim:
        """See `Request.audited_claim`; with a budget for every difference where shifts have their own."""
        claim = super().audited_claim
        return (
            claim.with_values(epsilon=self.budgets) if isinstance(claim.epsilon, Mapping) else claim
        )

    @cached_property
    def bounds(self) -> RatioBounds:
        """What the notion requires of every difference; δ = 1 where it is minimised."""
        delta = None if self.aim.minimise == "delta" else self.claim.delta or ZERO
        return make_ratio_bounds(self.claim.notion, self.budgets, delta)

    @property
    def loss_limit(self) -> Fraction | None:
        """max_loss, at most what any noise costs. Raises Infeasible below what every noise costs."""
        if self.aim.max_loss is None:
            return None
        least = Fraction(float(self.losses.min())) if self.losses.ndim == 1 else ZERO
        if self.aim.max_loss < least:
            raise Infeasible(
                f"No noise has loss {self.aim.loss} below {float(least):g}. "
                f"Got max_loss = {float(self.aim.max_loss):g}."
            )
        return min(self.aim.max_loss, Fraction(float(self.losses.max())))

    def check_max_loss(self) -> None:
        """Refuse a largest loss that needs no ε at all. Raises InvalidRequest, Infeasible."""
        uniform = compute_exact_loss(
            AdditiveNoise(self.question, [1] * self.question.order), self.losses
        )
        most = self.loss_limit
        if most is not None and uniform <= most and self.aim.constraints is None:
            need = (
                f"less than {float(uniform):.9g}, what uniform noise costs (any epsilon is enough)"
            )
            must("max_loss", need, f"{float(most):g}")

    def with_scaled_losses(self) -> ModuloRequest:
        """The same request for the least δ with losses of one's own, and their limit, in their unit."""
        if self.aim.minimise != "delta" or not isinstance(self.aim.loss, UserLosses):
            return self
        unit, shift = _unit_and_shift(self.losses)
        if unit == 1 and not shift:
            return self
        values = (self.losses - shift) / unit
        losses = UserLosses.from_values(
            f"{self.aim.loss} in its unit", [*map(Fraction, values.tolist())], values
        )
        assert self.aim.max_loss is not None
        limit = (self.aim.max_loss - Fraction(shift)) / Fraction(unit)
        return self.with_values(loss=losses, max_loss=limit)

    # The model.

    def formula_program(self, broken: Pattern | None = None) -> FormulaProgram:
        """The program in polynomials of e^ε; broken: of PDP, given the pattern. Raises InvalidRequest."""
        check_formula_request(self, allow_patterns=broken is not None)
        check_size(self.question.order)
        program = self.model(broken).program
        first, order = program.block("f").start, self.question.order
        if self.aim.prior is None:
            values = (
                self.aim.loss.exact
                if isinstance(self.aim.loss, UserLosses)
                else self.losses.ravel().tolist()
            )
            costs = [read_number(value, "loss") for value in values]
        else:
            squares = np.array(
                loss_vector("worst-squared", self.question.sizes), dtype=int
            ).T.tolist()
            costs = [sum(map(operator.mul, self.aim.prior, row), ZERO) for row in squares]
        entries = program.template.A.data.tolist()
        known = {"A": locate_rationals(entries, {float(v): v for v in costs})}
        if self.losses.ndim == 1:
            known["c"] = {first + k: cost for k, cost in enumerate(costs)}
        names = {f"f({k})": (first + k,) for k in range(order)}
        what = f"best noise modulo {'x'.join(map(str, self.question.sizes))}, {self.aim.loss} loss"
        return make_formula_program(program, self.bounds.epsilon_levels[1], names, what, known)

    def parameters(self) -> Values:
        """The model's parameters. Raises Infeasible."""
        limit, levels = self.loss_limit, [float(level) for level in self.bounds.epsilon_levels[1]]
        return self.model().values(
            levels, float(self.bounds.delta), None if limit is None else float(limit)
        )

    def model(self, broken: Pattern | None = None) -> ModuloModel:
        """The model, without differences where the notion states several bounds. broken: the pairs that may be broken,
        where they are known. Raises ValueError."""
        if self.has_several_bounds:
            loss = self.aim.loss, self.aim.prior
            return _model(
                self.question.sizes, (), HOCKEY_STICK, loss, "loss", False, (), self.aim.constraints
            )
        model = _model(
            self.question.sizes,
            tuple(self.budgets),
            self.bounds.kind,
            (self.aim.loss, self.aim.prior),
            self.aim.minimise,
            bool(self.bounds.delta),
            self.bounds.epsilon_levels[0],
            self.aim.constraints,
        )
        return (
            model
            if broken is None
            else replace(model, broken_pairs=np.stack([broken[shift] for shift in self.budgets]))
        )


@lru_cache(maxsize=16)
def _losses(loss: str, sizes: Ints, prior: Rationals | None) -> Vector:
    return loss_vector(loss, sizes, None if prior is None else np.array([float(p) for p in prior]))


@lru_cache(maxsize=64)
def _model(
    sizes: Ints,
    shifts: tuple[Shift, ...],
    kind: RatioBound,
    loss: tuple[str, Rationals | None],
    minimise: str,
    positive: bool,
    groups: Ints,
    constraints: UserConstraints | None,
) -> ModuloModel:
    """The compiled model of what is no parameter of a request (loss: with its prior); slower than most solves."""
    losses = _losses(loss[0], sizes, loss[1])
    model = ModuloModel(sizes, shifts, kind, losses, minimise, positive, groups, constraints)
    if minimise != "loss" or losses.ndim > 1:
        return model
    unit, shift = _unit_and_shift(losses)
    return replace(model, unit=unit, shift=shift)


def _unit_and_shift(losses: Vector) -> tuple[float, float]:
    """(the unit of losses (N,) in programs, the least of them, or 0 where the differences are no doubles)."""
    least = float(losses.min())
    moved = [
        Fraction(value) - Fraction(least) == Fraction(value - least) for value in losses.tolist()
    ]
    return _scale(losses).unit, least if all(moved) else 0.0


def _scale(losses: Vector) -> LossScale:
    """The scale of losses (N,) or (answers, N): from the best single noise value to uniform noise."""
    if losses.ndim > 1:
        floor, width = losses.min(axis=1).max(), losses.mean(axis=1).max()
    else:
        floor, width = losses.min(), losses.mean()
    return LossScale(Fraction(float(floor)), float(width - floor))


def make_modulo_request(question: ModuloNoise, values: Record) -> ModuloRequest:
    """The request that exact option values amount to. Raises InvalidRequest."""
    values["loss"] = resolve_losses(values["loss"], question)
    if values.get("prior") is not None:
        values["prior"] = tuple(
            align_container(values["prior"], values["prior"], lambda: question.elements, "prior")
        )
    values["constraints"] = take_constraints(question, values)
    claim = read_claim(values, max_epsilon=Fraction(MAX_EPSILON))
    return ModuloRequest.from_values(question, claim, values)


def take_constraints(question: ModuloNoise, values: Record) -> UserConstraints | None:
    """The constraints that option values amount to, which are taken out of them. Raises InvalidRequest."""
    mean, equal = values.pop("zero_mean", False), values.pop("equal", None) or ()
    if any(len(group) < 2 for group in equal) or not all(
        0 <= k < question.order for g in equal for k in g
    ):
        groups = ",".join("=".join(map(str, group)) for group in equal)
        must("equal", f"groups of noise values in 0..{question.order - 1} such as 1=8", groups)
    more = check_constraints(values.pop("constraints", None), "f")
    if not mean and not equal:
        return more
    return NoiseEquations(question.sizes if mean else (), tuple(map(tuple, equal)), more)


def compute_shift_budgets(question: ModuloNoise, given: Real | Mapping[Any, Real]) -> Budgets:
    """ε of every difference, exact. Raises InvalidRequest."""
    budgets = question.budgets(given)
    different = {
        id(value): value for value in budgets.values()
    }.values()  # one number for all is one object
    for epsilon in (max(different), min(different)):
        check_epsilon_range(
            epsilon, MIN_EPSILON, MAX_EPSILON, " (e^epsilon is a coefficient of the program)"
        )
    columns = question.order * (1 + 2 * len(budgets))
    if columns > MAX_COLUMNS:
        raise InvalidRequest(
            f"The program would have {columns} columns; at most {MAX_COLUMNS} can be stated."
        )
    return budgets


def read_loss(value: Any, name: str) -> Any:
    """Reader of an option: the name of a loss, a function, or the losses of all noise values as a tuple."""
    if (
        callable(value)
        or isinstance(value, UserLosses)
        or (isinstance(value, str) and value in LOSSES)
    ):
        return value
    if isinstance(value, str) and not names_file(value):
        must(name, f"one of {', '.join(LOSSES)}, or a CSV file of losses", repr(value))
    wanted = "a name, a function of the noise value, or losses, one for every noise value"
    cells = list_labelled_cells(value, name, wanted)
    return LabelledTuple.with_labels_of(cells, (_loss(cell, "every loss") for cell in cells))


def _loss(value: Any, name: str) -> Fraction:
    loss = read_number(value, name, _EACH)
    if loss < 0 or nearest_float(loss) > 1e300:
        must(name, _EACH, value)
    return loss


def resolve_losses(given: Any, question: ModuloNoise) -> Any:
    """The losses of a question's noise values under a name that their digits make; a named loss as it is.

    A function is called with the residue η in 0..n, or with the tuple of residues of a vector. Raises InvalidRequest.
    """
    if isinstance(given, str):
        return given
    if callable(given):
        from workbench.data.losses import call_loss

        own, points = given, map(question.element_at, range(question.order))
        given = tuple(
            call_loss(own, "the noise value", point[0] if question.is_scalar else point)
            for point in points
        )
    given = tuple(align_container(given, given, lambda: question.elements, "loss", "noise values"))
    if len(given) != question.order:
        must("loss", f"{question.order} numbers, one for every noise value", len(given))
    values = np.array([float(value) for value in given])
    return UserLosses.from_values(
        f"own-{hashlib.sha256(values.tobytes()).hexdigest()[:12]}", given, values
    )
