"""Bound the smallest error rate of noise modulo a group, to judge the answers of solvers.

`error_rate_bounds` answers: in which interval is the smallest error rate of a question, and which
statement proves it? The statements come from oracles. An oracle is a closed form or a combinatorial
algorithm with a proven domain: a function from a question to the statements that it can prove. To
add one, write a file and add a line to ORACLES. For questions under PDP that the oracles leave
open, the level search computes the optimum if the group is small enough.

An oracle should not need more time than the answer that it judges. Searches (`column_cut`,
`level_search`) count their operations. They stop, or are not started, if they would need more than
about a second. Operations are counted instead of seconds, so that a verdict is the same on every
machine.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter

from workbench.models.convex.requirements import RatioBound
from workbench.models.oracles import bounded_difference, cuts, hops, level_search, single_distance
from workbench.models.oracles.question import (
    ClosedForm,
    Kind,
    OutsideDomain,
    Question,
    Shift,
    build_question,
    is_close,
)

__all__ = [
    "ORACLES",
    "ClosedForm",
    "ErrorRateBounds",
    "Kind",
    "OutsideDomain",
    "Question",
    "Shift",
    "error_rate_bounds",
]

# The comments say for which notions and shifts an oracle makes which statement. 𝓜 = {..} is the set
# of shifts, μ or u a shift, and μ̄ a number of multiples.
ORACLES: tuple[Callable[[Question], Iterator[ClosedForm]], ...] = (
    # DP, or δ = 0: optimum, any shifts, one ε or one per shift. PDP: lower bound.
    hops.state_dp_law,
    # PDP, {μ} or {μ, -μ}: optimum. Any shifts: lower bound.
    single_distance.state_single_distance,
    # PDP, {u, .., μ̄u}: optimum or upper bound. Shifts containing it: lower bound.
    bounded_difference.state_bounded_difference,
    # PDP, any shifts, one ε: upper bound.
    cuts.state_level_cut,
)


@dataclass(frozen=True)
class ErrorRateBounds:
    """The proven interval of the smallest error rate.

    Attributes:
        lower: the best lower bound, or None if no oracle applies (the trivial bound is 0).
        upper: the best upper bound, or None if no oracle applies (the trivial bound is 1). If the
            optimum is known, both are the same object.
    """

    lower: ClosedForm | None
    upper: ClosedForm | None

    @property
    def strongest(self) -> ClosedForm | None:
        """Return the optimum, else an upper bound with its PMF, else a lower bound, else None."""
        return self.upper or self.lower


def error_rate_bounds(
    sizes: Sequence[int],
    shifts: Sequence[Shift],
    is_directed: bool,
    epsilon: float | Mapping[Shift, float],
    delta: float,
    requires: RatioBound,
    loss: str = "error-rate",
    nodes: int = level_search.DEFAULT_NODES,
) -> ErrorRateBounds:
    """Compute proven bounds on the smallest error rate of noise on Z_{n1} x ... x Z_{nk}.

    Args:
        sizes: orders n1..nk of the cyclic factors of the group.
        shifts: differences of neighbouring answers, each a tuple of k integers. The zero shift is
            ignored.
        is_directed: whether the relation is directed; else it must list -μ beside every μ.
        epsilon: ε, one number or one for each shift.
        delta: budget δ in [0, 1].
        requires: "hockey-stick" (DP) or "mass-above-ratio" (PDP), the same at δ = 0.
        loss: name of the loss. Only "error-rate" has oracles; for others both bounds are None.
        nodes: number of decisions after which the level search stops; 0 leaves it out.

    Returns:
        The best proven bounds. If they meet, both are one optimum.

    Raises:
        OutsideDomain: a shift lacks its negative. It is a ValueError.
    """
    question = build_question(sizes, shifts, is_directed, epsilon, delta, requires)
    if loss != "error-rate":
        return ErrorRateBounds(lower=None, upper=None)
    statements = []
    for statement in chain.from_iterable(oracle(question) for oracle in ORACLES):
        if statement.kind == "optimum":
            return ErrorRateBounds(statement, statement)
        statements.append(statement)
    value = attrgetter("value")
    lower_bounds = [statement for statement in statements if statement.kind == "lower bound"]
    upper_bounds = [statement for statement in statements if statement.kind == "upper bound"]
    lower = max(lower_bounds, key=value, default=None)
    upper = min(upper_bounds, key=value, default=None)
    if lower is not None and upper is not None and is_close(lower.value, upper.value):
        proof = f"{upper.proof} It meets a lower bound. {lower.proof}"
        optimum = replace(upper, kind="optimum", proof=proof)
        return ErrorRateBounds(optimum, optimum)
    if upper is not None and nodes:
        try:
            upper = level_search.search_levels(question, upper, nodes)
        except OutsideDomain as reason:
            note = f"The level search, which could prove it, was left out: {reason}"
            upper = replace(upper, proof=f"{upper.proof} {note}")
    if upper is not None and upper.kind == "optimum":
        return ErrorRateBounds(upper, upper)
    return ErrorRateBounds(lower, upper)
