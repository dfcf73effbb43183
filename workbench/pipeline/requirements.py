"""What a notion requires, handed to a model: one bound on ratios for every neighbour, of one kind and one δ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import chain
from math import exp, inf, nextafter
from typing import Any, cast

from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import ONE, ZERO, nearest_float, round_up
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

_KINDS: dict[type, RatioBound] = {HockeyStick: HOCKEY_STICK, MassAboveRatio: MASS_ABOVE_RATIO}


MAX_STICK_EPSILON = 34  # ε of a hockey stick: e^ε is a coefficient, which solvers take below 10^15
_MAX_POWER_EXPONENT = 700  # exponent of a bound on Σ P^α Q^(1-α)


@dataclass(frozen=True)
class RatioBounds:
    """kind: of `workbench.models.convex.requirements`; epsilons: ε of every neighbour; delta: one for all."""

    kind: RatioBound
    epsilons: Mapping[Any, Fraction]
    delta: Fraction

    @cached_property
    def epsilon_levels(self) -> tuple[Ints, list[Fraction]]:
        """(the group of every neighbour, the ε of every group)."""
        epsilons = self.epsilons.values()
        different = {
            id(value): value for value in epsilons
        }.values()  # one number for all is one object
        if len(different) == 1:
            return (0,) * len(epsilons), [*different]
        levels = sorted(set(different))
        return tuple(map(levels.index, epsilons)), levels

    @property
    def bounds_mass(self) -> bool:
        """Whether the mass above a ratio is bounded, by binaries, and not the hockey stick."""
        return self.kind == MASS_ABOVE_RATIO and bool(self.delta)


def make_ratio_bounds(
    named: str | Notion, epsilons: Mapping[Any, Fraction], delta: Fraction | None = None
) -> RatioBounds:
    """What a notion requires at budgets ε, neighbour by neighbour, and δ (None: one that is to be minimised).

    Raises InvalidRequest where it is anything but one bound on the ratio P/Q.
    """
    measure = get_notion(named)
    allowed = Fraction(1 if measure.has_delta else 0) if delta is None else delta
    stated = {}  # one number for all is one object
    for epsilon in {id(value): value for value in epsilons.values()}.values():
        required = measure.requirements({"epsilon": epsilon, "delta": allowed})
        if len(required) != 1 or type(required[0]) not in _KINDS:
            kinds = " and ".join(bound.kind for bound in required)
            must(
                "notion",
                f"one that requires {' or '.join(RATIO_BOUNDS)}",
                f"{measure.name} ({kinds})",
            )
        stated[id(epsilon)] = cast("HockeyStick | MassAboveRatio", required[0])
    (kind,), (share,) = (
        {type(bound) for bound in stated.values()},
        {bound.delta for bound in stated.values()},
    )
    return RatioBounds(
        _KINDS[kind],
        {label: stated[id(epsilon)].epsilon for label, epsilon in epsilons.items()},
        share,
    )


def get_ratio_kind(named: str | Notion) -> RatioBound:
    """The kind of bound a notion puts on ratios. Raises InvalidRequest."""
    return make_ratio_bounds(named, {(): ONE}).kind


def list_ratio_notions() -> Iterator[str]:
    """The notions with budgets (ε, δ) that require one bound on ratios: what linear models can be asked for."""
    return filter(bounds_one_ratio, notion_names())


def bounds_one_ratio(named: str | Notion) -> bool:
    """Whether a notion has a budget (ε, δ) and requires one bound on the ratio P/Q."""
    if set(get_notion(named).parameters) != {"epsilon", "delta"}:
        return False
    try:
        get_ratio_kind(named)
    except InvalidRequest:
        return False
    return True


@lru_cache(maxsize=64)
def is_hockey_stick(named: str | Notion) -> bool:
    """Whether a notion with a budget (ε, δ) requires one hockey stick at that very budget, whatever the distance."""
    measure = get_notion(named)
    if set(measure.parameters) != {"epsilon", "delta"} or measure.is_per_distance:
        return False
    epsilon, delta = ONE, Fraction(1, 2) if measure.has_delta else ZERO
    try:
        return measure.requirements({"epsilon": epsilon, "delta": delta}) == (
            HockeyStick(epsilon, delta),
        )
    except InvalidRequest:
        return False


def list_hockey_stick_notions() -> tuple[str, ...]:
    """Their names, in alphabetical order."""
    return tuple(sorted(name for name in notion_names() if is_hockey_stick(name)))


def list_convex_notions() -> Iterator[str]:
    """The notions whose requirements are all hockey sticks or power cones, however many: what convex models can be
    asked for beyond `ratio_notions`."""
    others = (
        (name, type(get_notion(name))) for name in notion_names() if not bounds_one_ratio(name)
    )
    return (
        name
        for name, kind in others
        if kind.initial_requirements is not Notion.initial_requirements
        or kind.requirements is not Notion.requirements
    )


# Readers of options: the name of a notion that linear models state, or linear or convex ones.
read_ratio_notion = choice_reader(more_choices=list_ratio_notions)
read_convex_or_ratio_notion = choice_reader(
    more_choices=lambda: chain(list_ratio_notions(), list_convex_notions())
)


def to_model_bound(required: Requirement) -> Bound:
    """A requirement as a model takes it, its limit rounded up. Raises InvalidRequest for a kind that is not convex."""
    if isinstance(required, HockeyStick):
        if required.epsilon > MAX_STICK_EPSILON:
            must(
                "epsilon",
                f"at most {MAX_STICK_EPSILON} in a program",
                f"{nearest_float(required.epsilon):g}",
            )
        level = nextafter(exp(float(required.epsilon)), inf) if required.epsilon else 1.0
        if isinstance(required, SlopedHockeyStick):
            level = round_up(required.slope)
        return Bound(
            HOCKEY_STICK, level, nextafter(float(required.delta), inf) if required.delta else 0.0
        )
    if isinstance(required, PowerCone):
        if required.exponent > _MAX_POWER_EXPONENT:
            must(
                "(alpha - 1) times the divergence",
                f"at most {_MAX_POWER_EXPONENT} in a program",
                f"{nearest_float(required.exponent):g}",
            )
        return Bound(
            POWER_CONE, float(required.alpha), nextafter(exp(float(required.exponent)), inf)
        )
    if isinstance(required, RelativeEntropy):
        return Bound(RELATIVE_ENTROPY, 1.0, nextafter(nearest_float(required.limit), inf))
    kinds = ", ".join((HOCKEY_STICK, POWER_CONE, RELATIVE_ENTROPY))
    return must("notion", f"one that requires {kinds}", required.kind)
