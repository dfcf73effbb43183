"""Convert the requirements of a notion to the bounds that the models accept.

Linear models need one bound on ratios for every neighbour, of one kind and with one δ. Convex
models need hockey sticks, power cones or relative entropies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import chain
from math import inf, nextafter
from typing import Any, cast

from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import ONE, ZERO, exp_interval, nearest_float, round_down, round_up
from workbench.models.convex.requirements import HOCKEY_STICK as HOCKEY_STICK
from workbench.models.convex.requirements import MASS_ABOVE_RATIO as MASS_ABOVE_RATIO
from workbench.models.convex.requirements import (
    POWER_CONE,
    RATIO_BOUNDS,
    RELATIVE_ENTROPY,
    Bound,
    RatioBound,
)
from workbench.notions import (
    HockeyStick,
    MassAboveRatio,
    Notion,
    PowerCone,
    RelativeEntropy,
    Requirement,
    SlopedHockeyStick,
    get_notion,
    notion_names,
)
from workbench.pipeline.option import choice_reader
from workbench.solvers.arrays import Ints

# The kinds of bounds on the ratio of two probabilities.
_KINDS: dict[type, RatioBound] = {HockeyStick: HOCKEY_STICK, MassAboveRatio: MASS_ABOVE_RATIO}

# e^ε of a hockey stick is a coefficient of a program. Solvers accept coefficients below 10^15.
MAX_STICK_EPSILON = 34
_EXP_BITS = 80  # Bits after the point of an enclosure of e^ε that is rounded up.
# A bound on Σ P^α Q^(1-α) has at most this exponent, so that it is a double.
MAX_POWER_EXPONENT = 700


@dataclass(frozen=True)
class RatioBounds:
    """The bounds on ratios that a budget implies.

    Attributes:
        kind: Kind of the bounds (`workbench.models.convex.requirements`).
        epsilons: ε of every neighbour.
        delta: δ of all neighbours.
    """

    kind: RatioBound
    epsilons: Mapping[Any, Fraction]
    delta: Fraction

    @cached_property
    def epsilon_levels(self) -> tuple[Ints, list[Fraction]]:
        """Return the group of every neighbour, and the ε of every group."""
        epsilons = self.epsilons.values()
        # One ε for all neighbours is one object, which is found without comparing fractions.
        objects = {id(value): value for value in epsilons}.values()
        if len(objects) == 1:
            return (0,) * len(epsilons), [*objects]
        levels = sorted(set(objects))
        return tuple(map(levels.index, epsilons)), levels

    @property
    def bounds_mass(self) -> bool:
        """Return whether the mass above a ratio is bounded, which needs binary variables."""
        return self.kind == MASS_ABOVE_RATIO and bool(self.delta)


def make_ratio_bounds(
    notion: str | Notion, epsilons: Mapping[Any, Fraction], delta: Fraction | None = None
) -> RatioBounds:
    """Return the bounds on ratios that a notion implies.

    Args:
        notion: The notion or its name.
        epsilons: ε of every neighbour.
        delta: δ. None: it is minimised.

    Raises:
        InvalidRequest: The notion implies anything but one bound on the ratio P/Q.
    """
    measure = get_notion(notion)
    allowed_delta = delta
    if allowed_delta is None:
        allowed_delta = Fraction(1 if measure.has_delta else 0)
    # One ε for all neighbours is one object, whose bound is made once.
    bounds = {}
    for epsilon in {id(value): value for value in epsilons.values()}.values():
        requirements = measure.requirements({"epsilon": epsilon, "delta": allowed_delta})
        if len(requirements) != 1 or type(requirements[0]) not in _KINDS:
            kinds = " and ".join(requirement.kind for requirement in requirements)
            rule = f"one that requires {' or '.join(RATIO_BOUNDS)}"
            must("notion", rule, f"{measure.name} ({kinds})")
        bounds[id(epsilon)] = cast("HockeyStick | MassAboveRatio", requirements[0])
    (kind,) = {type(bound) for bound in bounds.values()}
    (bound_delta,) = {bound.delta for bound in bounds.values()}
    bound_epsilons = {label: bounds[id(epsilon)].epsilon for label, epsilon in epsilons.items()}
    return RatioBounds(_KINDS[kind], bound_epsilons, bound_delta)


def get_ratio_kind(notion: str | Notion) -> RatioBound:
    """Return the kind of bound that a notion puts on ratios. Raises InvalidRequest.

    Args:
        notion: The notion or its name.
    """
    # The kind is the same for every ε and every label of a neighbour.
    return make_ratio_bounds(notion, {(): ONE}).kind


def list_ratio_notions() -> Iterator[str]:
    """List the notions that linear models support: a budget (ε, δ) and one bound on ratios."""
    return filter(bounds_one_ratio, notion_names())


def bounds_one_ratio(notion: str | Notion) -> bool:
    """Return whether a notion has a budget (ε, δ) and implies one bound on the ratio P/Q.

    Args:
        notion: The notion or its name.
    """
    if set(get_notion(notion).parameters) != {"epsilon", "delta"}:
        return False
    try:
        get_ratio_kind(notion)
    except InvalidRequest:
        return False
    return True


@lru_cache(maxsize=64)
def is_hockey_stick(notion: str | Notion) -> bool:
    """Return whether a notion implies one hockey stick at its own (ε, δ), for every distance.

    Args:
        notion: The notion or its name.
    """
    measure = get_notion(notion)
    if set(measure.parameters) != {"epsilon", "delta"} or measure.is_per_distance:
        return False
    delta = Fraction(1, 2) if measure.has_delta else ZERO
    try:
        requirements = measure.requirements({"epsilon": ONE, "delta": delta})
    except InvalidRequest:
        return False
    return requirements == (HockeyStick(ONE, delta),)


def list_hockey_stick_notions() -> tuple[str, ...]:
    """List the notions that imply one hockey stick, in alphabetical order."""
    return tuple(sorted(name for name in notion_names() if is_hockey_stick(name)))


def list_convex_notions() -> Iterator[str]:
    """List the notions that only convex models support, because they imply several bounds."""
    for name in notion_names():
        if bounds_one_ratio(name):
            continue
        kind = type(get_notion(name))
        # A notion that overrides none of these methods states no requirements.
        has_initial = kind.initial_requirements is not Notion.initial_requirements
        if has_initial or kind.requirements is not Notion.requirements:
            yield name


# These readers accept the names of notions that linear models support, or linear and convex models.
read_ratio_notion = choice_reader(more_choices=list_ratio_notions)
read_convex_or_ratio_notion = choice_reader(
    more_choices=lambda: chain(list_ratio_notions(), list_convex_notions())
)


def to_model_bound(requirement: Requirement) -> Bound:
    """Convert a requirement to the bound of a model, with its limit rounded up.

    An order α that is no float is replaced by the next smaller float β. D_β <= D_α, as the Rényi
    divergence rises with the order, so the bound at β follows from the requirement.

    Args:
        requirement: A requirement of a notion.

    Raises:
        InvalidRequest: The requirement is not convex, or too large for a program.
    """
    if isinstance(requirement, HockeyStick):
        return _to_stick_bound(requirement)
    if isinstance(requirement, PowerCone):
        if requirement.exponent > MAX_POWER_EXPONENT:
            rule = f"at most {MAX_POWER_EXPONENT} in a program"
            got = f"{nearest_float(requirement.exponent):g}"
            must("(alpha - 1) times the divergence", rule, got)
        order = round_down(requirement.alpha)
        if order <= 1:
            must("alpha", "larger than 1 as a floating-point number", str(requirement.alpha))
        share = (Fraction(order) - 1) / (requirement.alpha - 1)
        return Bound(POWER_CONE, level=order, limit=_round_exp_up(requirement.exponent * share))
    if isinstance(requirement, RelativeEntropy):
        return Bound(
            RELATIVE_ENTROPY, level=1.0, limit=nextafter(nearest_float(requirement.limit), inf)
        )
    kinds = ", ".join((HOCKEY_STICK, POWER_CONE, RELATIVE_ENTROPY))
    return must("notion", f"one that requires {kinds}", requirement.kind)


def _round_exp_up(exponent: Fraction) -> float:
    """Return a float that is at least e^exponent, for an exponent >= 0."""
    return round_up(exp_interval(exponent, _EXP_BITS)[1])


def _to_stick_bound(stick: HockeyStick) -> Bound:
    """Convert a hockey stick to the bound of a model, with its level and limit rounded up."""
    if stick.epsilon > MAX_STICK_EPSILON:
        rule = f"at most {MAX_STICK_EPSILON} in a program"
        must("epsilon", rule, f"{nearest_float(stick.epsilon):g}")
    level = 1.0
    if isinstance(stick, SlopedHockeyStick):
        level = round_up(stick.slope)
    elif stick.epsilon:
        level = _round_exp_up(stick.epsilon)
    limit = 0.0
    if stick.delta:
        limit = nextafter(float(stick.delta), inf)
    return Bound(HOCKEY_STICK, level=level, limit=limit)
