"""Describe and check a request for modulo noise, in exact numbers, before any model is built.

Notation. N is the number of noise values, f (N,) the masses of the noise, and η a noise value.
PDP, (13) and (15) are those of Kadam et al. 2024 (`workbench.models.modulo.program`).

A field of a request is added in `ModuloAim` (what is minimised) or `ModuloHow` (how it is solved).
If it changes the program, it is also an argument of `_compile_model` and of `ModuloRequest.model`.
The option that sets it is in `workbench.families.modulo.family`.
"""

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
from workbench.pipeline.formula_program import (
    FormulaProgram,
    check_formula_request,
    check_size,
    locate_rationals,
    make_formula_program,
)
from workbench.pipeline.loss_scale import LossScale
from workbench.pipeline.option import check_epsilon_range
from workbench.pipeline.outcome import translate_errors
from workbench.pipeline.request import Aim, How, Request, read_claim, refuse_option
from workbench.pipeline.requirements import HOCKEY_STICK, RatioBounds, make_ratio_bounds
from workbench.pipeline.user_constraints import check_constraints
from workbench.privacy.claim import Claim
from workbench.privacy.repair import Pattern, compute_exact_loss
from workbench.questions.modulo_noise import ModuloNoise, Shift
from workbench.solvers.arrays import Ints, Vector

MAX_EPSILON = 20  # The largest coefficient of a scaled program is then 2^20 e^20, about 5e14.
MIN_EPSILON = Fraction(1, 10**12)  # A smaller ε is refused, because e^ε is then too close to 1.
MAX_COLUMNS = 5_000_000  # Programs with more columns are refused.
_LOSS_RULE = "a finite number >= 0"
_MAX_LOSS_ENTRY = 1e300  # A larger loss is refused, because sums of losses could overflow.

# The ε of every difference.
Budgets = Mapping[Shift, Fraction]


@dataclass(frozen=True, kw_only=True, eq=False)
class ModuloAim(Aim):
    """The loss that a request for modulo noise minimises, and its constraints.

    Attributes:
        loss: the name of a loss of `workbench.models.modulo.program.LOSSES`, or a `UserLosses` with
            one loss for every noise value.
        prior: the probabilities of the answers (N,). Only for the loss prior-squared; None for
            other losses.
        constraints: further linear constraints on f (N,); None without.
    """

    loss: str = "error-rate"
    prior: Rationals | None = None
    constraints: UserConstraints | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class ModuloHow(How):
    """The method, solver and limits with which a request for modulo noise is solved.

    Attributes:
        method: "fast", or "literal" to solve PDP with δ > 0 by the mixed-integer program (13) as it
            is printed.
    """

    method: str = "fast"


@dataclass(frozen=True, kw_only=True, eq=False)
class ModuloRequest(Request):
    """A request for the least-loss noise at a budget, or for the least δ or ε within max_loss.

    The ε of the claim is one number, or a mapping with one number for each shift. A shift is a
    difference of neighbouring answers.

    Attributes:
        question: the group and its shifts.
        aim: the loss, what is minimised, and the constraints.
        how: method, solver and limits.
    """

    AIM = ModuloAim
    HOW = ModuloHow

    question: ModuloNoise
    aim: ModuloAim
    how: ModuloHow

    def __post_init__(self) -> None:
        _ = self.losses  # Computing the losses checks them.
        self.check_aim()
        if self.has_several_bounds:
            if self.how.method != "fast":
                refuse_option("method", self.claim.notion.name, repr(self.how.method))
            return
        if self.aim.minimise == "epsilon" and isinstance(self.claim.epsilon, Mapping):
            raise InvalidRequest(
                "epsilon must be one number, an upper limit, where it is minimised."
            )
        _ = self.budgets  # Computing the budgets checks every ε.
        self.check_runs()

    # Losses.

    @cached_property
    def losses(self) -> Vector:
        """Return the loss of each noise value.

        Shape (N,), or (N, N) for the loss of the worst answer: one row for each true answer.

        Raises:
            InvalidRequest: the loss does not fit the question.
        """
        with translate_errors():
            return _compute_losses(self.aim.loss, self.question.sizes, self.aim.prior)

    @cached_property
    def loss_scale(self) -> LossScale:
        """Return the scale on which losses and gaps are compared; the default one for δ and ε."""
        if self.aim.minimise == "loss":
            return _compute_scale(self.losses)
        return LossScale()

    @property
    def loss_limit(self) -> Fraction | None:
        """Return max_loss, lowered to the largest loss of any noise value; None without max_loss.

        Raises:
            Infeasible: max_loss is below the smallest loss of any noise.
        """
        if self.aim.max_loss is None:
            return None
        least_loss = Fraction(float(self.losses.min())) if self.losses.ndim == 1 else ZERO
        if self.aim.max_loss < least_loss:
            raise Infeasible(
                f"No noise has loss {self.aim.loss} below {float(least_loss):g}. "
                f"Got max_loss = {float(self.aim.max_loss):g}."
            )
        return min(self.aim.max_loss, Fraction(float(self.losses.max())))

    def check_max_loss(self) -> None:
        """Refuse a max_loss that uniform noise already meets, because then every ε is enough.

        Raises:
            InvalidRequest: the loss of uniform noise is at most max_loss.
            Infeasible: max_loss is below the smallest loss of any noise.
        """
        uniform = compute_exact_loss(
            AdditiveNoise(self.question, [1] * self.question.order), self.losses
        )
        limit = self.loss_limit
        if limit is not None and uniform <= limit and self.aim.constraints is None:
            rule = (
                f"less than {float(uniform):.9g}, the loss of uniform noise (any epsilon is enough)"
            )
            must("max_loss", rule, f"{float(limit):g}")

    def with_scaled_losses(self) -> ModuloRequest:
        """Return the request with user-defined losses and their limit divided by a unit.

        This only changes requests for the least δ, where the limit on the loss is a row of the
        program. A solver's tolerance for rows is an absolute number, which is only meaningful if
        the losses are of moderate size.
        """
        if self.aim.minimise != "delta" or not isinstance(self.aim.loss, UserLosses):
            return self
        unit, offset = _choose_unit_and_offset(self.losses)
        if unit == 1 and not offset:
            return self
        values = (self.losses - offset) / unit
        exact_values = [*map(Fraction, values.tolist())]
        losses = UserLosses.from_values(f"{self.aim.loss} in its unit", exact_values, values)
        assert self.aim.max_loss is not None
        limit = (self.aim.max_loss - Fraction(offset)) / Fraction(unit)
        return self.with_values(loss=losses, max_loss=limit)

    # Budgets.

    @cached_property
    def budgets(self) -> Budgets:
        """Return the mapping from every difference to its exact ε. Raises InvalidRequest."""
        return compute_shift_budgets(self.question, self.claim.epsilon)

    @cached_property
    def audited_claim(self) -> Claim:
        """Return the claim that is audited. See `Request.audited_claim`.

        If the ε of the request differ between shifts, the claim has the ε of every difference.
        """
        claim = super().audited_claim
        if isinstance(claim.epsilon, Mapping):
            return claim.with_values(epsilon=self.budgets)
        return claim

    @cached_property
    def bounds(self) -> RatioBounds:
        """Return the bound on ratios for every difference. If δ is minimised, the δ in it is 1."""
        delta = None if self.aim.minimise == "delta" else self.claim.delta or ZERO
        return make_ratio_bounds(self.claim.notion, self.budgets, delta)

    # Models.

    def formula_program(self, broken: Pattern | None = None) -> FormulaProgram:
        """Return the program in polynomials of e^ε.

        Args:
            broken: for each shift, the noise values (N,) at which the ratio bound of PDP may be
                violated. None for requests without such a pattern.

        Raises:
            InvalidRequest: the request has no such program.
        """
        check_formula_request(self, allow_patterns=broken is not None)
        check_size(self.question.order)
        program = self.model(broken).program
        first = program.block("f").start
        order = self.question.order
        losses = self._list_exact_losses()
        entries = program.template.A.data.tolist()
        exact_numbers = {"A": locate_rationals(entries, {float(loss): loss for loss in losses})}
        if self.losses.ndim == 1:
            exact_numbers["c"] = {first + k: loss for k, loss in enumerate(losses)}
        names = {f"f({k})": (first + k,) for k in range(order)}
        sizes = "x".join(map(str, self.question.sizes))
        title = f"best noise modulo {sizes}, {self.aim.loss} loss"
        _, epsilons = self.bounds.epsilon_levels
        return make_formula_program(
            program, epsilons, masses=names, title=title, exact=exact_numbers
        )

    def _list_exact_losses(self) -> list[Fraction]:
        """List the losses of all noise values as exact numbers, row by row for (N, N)."""
        if self.aim.prior is not None:
            # The table has a row for each answer, its transpose one for each noise value.
            matrix = np.array(loss_vector("worst-squared", self.question.sizes), dtype=int)
            rows = matrix.T.tolist()
            return [sum(map(operator.mul, self.aim.prior, row), ZERO) for row in rows]
        if isinstance(self.aim.loss, UserLosses):
            return [read_number(value, "loss") for value in self.aim.loss.exact]
        return [read_number(value, "loss") for value in self.losses.ravel().tolist()]

    def parameters(self) -> Values:
        """Return the values of the model's parameters: name -> value. Raises Infeasible."""
        limit = self.loss_limit
        _, group_epsilons = self.bounds.epsilon_levels
        epsilons = [float(epsilon) for epsilon in group_epsilons]
        max_loss = None if limit is None else float(limit)
        return self.model().values(epsilons, float(self.bounds.delta), max_loss)

    def model(self, broken: Pattern | None = None) -> ModuloModel:
        """Return the model of the request.

        If the notion has several bounds, such as zCDP, the model has no privacy rows. They are then
        stated by tangents that are added while the program is solved.

        Args:
            broken: for each shift, the noise values (N,) at which the ratio bound of PDP may be
                violated. None if the program chooses them by binary variables.

        Raises:
            ValueError: the model cannot state the request.
        """
        loss = (self.aim.loss, self.aim.prior)
        sizes = self.question.sizes
        constraints = self.aim.constraints
        if self.has_several_bounds:
            return _compile_model(
                sizes=sizes,
                shifts=(),
                kind=HOCKEY_STICK,
                loss=loss,
                minimise="loss",
                has_delta=False,
                groups=(),
                constraints=constraints,
            )
        groups, _ = self.bounds.epsilon_levels
        model = _compile_model(
            sizes=sizes,
            shifts=tuple(self.budgets),
            kind=self.bounds.kind,
            loss=loss,
            minimise=self.aim.minimise,
            has_delta=bool(self.bounds.delta),
            groups=groups,
            constraints=constraints,
        )
        if broken is None:
            return model
        return replace(model, broken_pairs=np.stack([broken[shift] for shift in self.budgets]))


@lru_cache(maxsize=16)
def _compute_losses(loss: str, sizes: Ints, prior: Rationals | None) -> Vector:
    """Compute the losses of all noise values. Shape (N,), or (N, N) for the worst answer."""
    weights = None
    if prior is not None:
        weights = np.array([float(p) for p in prior])
    return loss_vector(loss, sizes, weights)


@lru_cache(maxsize=64)
def _compile_model(
    sizes: Ints,
    shifts: tuple[Shift, ...],
    kind: RatioBound,
    loss: tuple[str, Rationals | None],
    minimise: str,
    has_delta: bool,
    groups: Ints,
    constraints: UserConstraints | None,
) -> ModuloModel:
    """Compile the model, which has ε, δ and max_loss as parameters.

    This takes longer than most solves, so models are cached.

    Args:
        sizes: the numbers of answers of the coordinates; N is their product.
        shifts: the differences of neighbouring answers. Empty if privacy is stated by tangents.
        kind: the bound on ratios: the hockey stick (dp) or the mass above the ratio (pdp).
        loss: the name of the loss (or a `UserLosses`), and its prior or None.
        minimise: "loss", or "delta" for a limit on the loss.
        has_delta: whether δ > 0, so that the model has variables for violations.
        groups: for each shift, the index of its ε in the parameter "exp_epsilon".
        constraints: further linear constraints on f (N,); None without.
    """
    loss_name, prior = loss
    losses = _compute_losses(loss_name, sizes, prior)
    model = ModuloModel(
        sizes,
        shifts,
        requires=kind,
        loss=losses,
        minimise=minimise,
        has_delta=has_delta,
        groups=groups,
        constraints=constraints,
    )
    if minimise != "loss" or losses.ndim > 1:
        return model
    unit, offset = _choose_unit_and_offset(losses)
    return replace(model, unit=unit, shift=offset)


def _choose_unit_and_offset(losses: Vector) -> tuple[float, float]:
    """Choose the unit by which a program divides the losses (N,), and the offset it subtracts.

    Returns:
        The unit, and the offset: the smallest loss, or 0 if a difference to the smallest loss is
        not an exact double.
    """
    least_loss = float(losses.min())
    values = losses.tolist()
    are_exact = all(Fraction(v) - Fraction(least_loss) == Fraction(v - least_loss) for v in values)
    return _compute_scale(losses).unit, least_loss if are_exact else 0.0


def _compute_scale(losses: Vector) -> LossScale:
    """Compute the scale of losses (N,) or (N, N).

    Its floor is the loss of the best single noise value; for (N, N) a lower bound on the loss of
    the worst answer. Its width reaches to the loss of uniform noise.
    """
    if losses.ndim > 1:
        floor = losses.min(axis=1).max()
        top = losses.mean(axis=1).max()
    else:
        floor = losses.min()
        top = losses.mean()
    return LossScale(Fraction(float(floor)), float(top - floor))


def make_modulo_request(question: ModuloNoise, values: Record) -> ModuloRequest:
    """Make the request from a question and exact option values.

    Args:
        question: the group and its differences.
        values: option -> exact value. The dictionary is changed: losses are resolved, and the
            options of the constraints are taken out.

    Raises:
        InvalidRequest: the values do not fit together.
    """
    values["loss"] = resolve_losses(values["loss"], question)
    prior = values.get("prior")
    if prior is not None:
        values["prior"] = tuple(
            align_container(prior, prior, answers=lambda: question.elements, name="prior")
        )
    values["constraints"] = take_constraints(question, values)
    claim = read_claim(values, max_epsilon=Fraction(MAX_EPSILON))
    return ModuloRequest.from_values(question, claim, values)


def take_constraints(question: ModuloNoise, values: Record) -> UserConstraints | None:
    """Take the constraints out of the option values.

    Args:
        question: the group of the noise.
        values: option -> exact value; zero_mean, equal and constraints are removed.

    Returns:
        The constraints as a model takes them, None if there are none.

    Raises:
        InvalidRequest: a group of equal masses is invalid.
    """
    has_zero_mean = values.pop("zero_mean", False)
    equal_groups = values.pop("equal", None) or ()
    for group in equal_groups:
        if len(group) < 2 or not all(0 <= k < question.order for k in group):
            text = ",".join("=".join(map(str, group)) for group in equal_groups)
            rule = f"groups of noise values in 0..{question.order - 1} such as 1=8"
            must("equal", rule, text)
    user_constraints = check_constraints(values.pop("constraints", None), "f")
    if not has_zero_mean and not equal_groups:
        return user_constraints
    # Without sizes there is no equation for the mean.
    sizes = question.sizes if has_zero_mean else ()
    return NoiseEquations(sizes, tuple(map(tuple, equal_groups)), user_constraints)


def compute_shift_budgets(question: ModuloNoise, epsilon: Real | Mapping[Any, Real]) -> Budgets:
    """Compute the exact ε of every difference.

    Args:
        question: the group and its differences.
        epsilon: one ε > 0, or a mapping with one ε for each shift.

    Returns:
        A mapping from every difference, also the negated ones if they are not directed, to its ε.

    Raises:
        InvalidRequest: an ε is too small or too large, or the program has too many columns.
    """
    budgets = question.budgets(epsilon)
    # There may be millions of differences, all with the same object as ε.
    distinct = {id(value): value for value in budgets.values()}.values()
    for value in (max(distinct), min(distinct)):
        check_epsilon_range(
            value, MIN_EPSILON, MAX_EPSILON, " (e^epsilon is a coefficient of the program)"
        )
    column_count = question.order * (1 + 2 * len(budgets))
    if column_count > MAX_COLUMNS:
        raise InvalidRequest(
            f"The program may have at most {MAX_COLUMNS} columns. Got {column_count}. "
            "Use fewer answers or differences."
        )
    return budgets


def read_loss(value: Any, name: str) -> Any:
    """Read the option of the loss.

    Args:
        value: the name of a loss, a function, a list of losses or the name of a CSV file.
        name: the name of the option, for errors.

    Returns:
        The name, the function or the `UserLosses` as it is; otherwise a tuple of exact losses, one
        for every noise value.

    Raises:
        InvalidRequest: the value is no loss.
    """
    if callable(value) or isinstance(value, UserLosses):
        return value
    if isinstance(value, str) and value in LOSSES:
        return value
    if isinstance(value, str) and not names_file(value):
        must(name, f"one of {', '.join(LOSSES)}, or a CSV file of losses", repr(value))
    rule = "a name, a function of the noise value, or losses, one for every noise value"
    cells = list_labelled_cells(value, name, rule)
    return LabelledTuple.with_labels_of(
        cells, (_read_one_loss(cell, "every loss") for cell in cells)
    )


def _read_one_loss(value: Any, name: str) -> Fraction:
    """Read one loss as an exact number. Raises InvalidRequest."""
    loss = read_number(value, name, _LOSS_RULE)
    if loss < 0 or nearest_float(loss) > _MAX_LOSS_ENTRY:
        must(name, _LOSS_RULE, value)
    return loss


def resolve_losses(loss: Any, question: ModuloNoise) -> Any:
    """Turn user-defined losses into losses with a unique name.

    Args:
        loss: the name of a loss, the losses of all noise values, or a function. A function is
            called with the residue η in 0..n, or with the tuple of residues of a vector.
        question: the group of the noise.

    Returns:
        The name of a loss as it is, otherwise a `UserLosses`. Equal losses have equal names.

    Raises:
        InvalidRequest: there is not one loss >= 0 for every noise value.
    """
    if isinstance(loss, str):
        return loss
    if callable(loss):
        loss = _tabulate_loss_function(loss, question)
    losses = tuple(
        align_container(
            loss, loss, answers=lambda: question.elements, name="loss", points_name="noise values"
        )
    )
    if len(losses) != question.order:
        must("loss", f"{question.order} numbers, one for every noise value", len(losses))
    values = np.array([float(value) for value in losses])
    digest = hashlib.sha256(values.tobytes()).hexdigest()[:12]
    return UserLosses.from_values(f"own-{digest}", losses, values)


def _tabulate_loss_function(function: Any, question: ModuloNoise) -> Rationals:
    """Compute a user-defined loss at every noise value, row-major (N,). Raises InvalidRequest."""
    from workbench.data.losses import call_loss

    losses = []
    for k in range(question.order):
        point = question.element_at(k)
        value = point[0] if question.is_scalar else point
        losses.append(call_loss(function, "the noise value", value))
    return tuple(losses)
