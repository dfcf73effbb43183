"""A design question as the oracles read it: validated once, shifts reduced, one ε per shift.

| paper     | here                            |
|-----------|---------------------------------|
| n + 1     | `prod(sizes)`                   |
| 𝓜 and ε   | `budgets`: shift -> ε           |
| δ         | `delta`                         |
| PDP, DP   | `requires`: "mass-above-ratio", "hockey-stick" (`models.requirements`) |
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from models.oracles.closed_form import OutsideDomain, Shift, check_budgets, check_delta, check_sizes
from models.requirements import RATIO_BOUNDS, RatioBound


@dataclass(frozen=True)
class Question:
    """Least error rate of additive noise on Z_{n1} x ... x Z_{nk} under a bound on ratios; build it with `ask`."""

    sizes: tuple[int, ...]
    budgets: Mapping[Shift, float]
    delta: float
    requires: RatioBound

    @property
    def shifts(self) -> tuple[Shift, ...]:
        """The distinct non-zero shifts."""
        return tuple(self.budgets)

    @property
    def epsilon(self) -> float | None:
        """The one ε all shifts share, or None when they differ or there is no shift."""
        distinct = set(self.budgets.values())
        return distinct.pop() if len(distinct) == 1 else None


def opposite(sizes: tuple[int, ...], shift: Shift) -> Shift:
    """-μ in the group."""
    return tuple(-step % size for step, size in zip(shift, sizes, strict=True))


def ask(
    sizes: Sequence[int],
    shifts: Sequence[Sequence[int]],
    directed: bool,
    epsilon: float | Mapping[Shift, float],
    delta: float,
    requires: RatioBound,
) -> Question:
    """Validate a question. A relation that is not directed must list -μ beside every μ. Raises OutsideDomain."""
    shape = check_sizes(sizes)
    budgets = check_budgets(shape, shifts, epsilon)
    if requires not in RATIO_BOUNDS:
        raise OutsideDomain(f"requires must be one of {', '.join(RATIO_BOUNDS)}. Got {requires!r}.")
    if not directed:
        for shift in budgets:
            if opposite(shape, shift) not in budgets:
                raise OutsideDomain(
                    f"shifts must be closed under negation unless directed. Missing {opposite(shape, shift)}."
                )
    return Question(shape, budgets, check_delta(delta), requires)
