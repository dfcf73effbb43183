"""Closed forms and combinatorial algorithms that judge a solver's answer, each with its domain of validity.

`bounds` gives the interval that is proven of the least error rate of a question, and its strongest statement.
Every oracle is a function from a question to the statements it can prove; adding one is a file and a line in ORACLES.
What they leave open under PDP, the level search settles when the group is small enough.

An oracle should cost no more than what it judges. What searches (`column_cut`, `level_search`) counts its work and
stops, or is left out, at about a second of it. The work is counted and not timed, so that a verdict is the same on
every machine.
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

ORACLES: tuple[Callable[[Question], Iterator[ClosedForm]], ...] = (
    hops.state_dp_law,  # DP, or δ = 0: optimum, any shifts, one ε or one per shift; PDP: lower bound
    single_distance.state_single_distance,  # PDP, {μ} or {μ, -μ}: optimum; any shifts: lower bound
    bounded_difference.state_bounded_difference,  # PDP, {u, .., μ̄u}: optimum or upper bound; shifts containing it: lower bound
    cuts.state_level_cut,  # PDP, any shifts, one ε: upper bound
)


@dataclass(frozen=True)
class ErrorRateBounds:
    """The proven interval of the least error rate; `lower` and `upper` are one object where the optimum is known.

    Either side is None when no oracle applies; the trivial bounds are then 0 and 1.
    """

    lower: ClosedForm | None
    upper: ClosedForm | None

    @property
    def strongest(self) -> ClosedForm | None:
        """The optimum, else an upper bound with its PMF, else a lower bound, else None."""
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
    """The best proven lower and upper bound on the least error rate of additive noise on Z_{n1} x ... x Z_{nk}.

    `sizes` holds n1..nk; every shift is a tuple of k whole numbers, the zero shift constraining nothing; a relation
    that is not directed lists -μ beside every μ; `epsilon` is one number or one per shift; `requires` is
    "hockey-stick" (DP) or "mass-above-ratio" (PDP), the same at δ = 0. A loss other than "error-rate" has no oracle
    yet. `nodes` limits the level search, 0 leaves it out.

    Raises OutsideDomain, a ValueError, for shifts that lack a -μ.
    """
    question = build_question(sizes, shifts, is_directed, epsilon, delta, requires)
    if loss != "error-rate":
        return ErrorRateBounds(None, None)
    statements = []
    for statement in chain.from_iterable(oracle(question) for oracle in ORACLES):
        if statement.kind == "optimum":
            return ErrorRateBounds(statement, statement)
        statements.append(statement)
    value = attrgetter("value")
    lower = max(
        (each for each in statements if each.kind == "lower bound"), key=value, default=None
    )
    upper = min(
        (each for each in statements if each.kind == "upper bound"), key=value, default=None
    )
    if lower is not None and upper is not None and is_close(lower.value, upper.value):
        met = replace(
            upper, kind="optimum", proof=f"{upper.proof} It meets a lower bound. {lower.proof}"
        )
        return ErrorRateBounds(met, met)
    if upper is not None and nodes:
        try:
            upper = level_search.search_levels(question, upper, nodes)
        except OutsideDomain as reason:
            upper = replace(
                upper,
                proof=f"{upper.proof} The level search, which could prove it, was left out: {reason}",
            )
    return (
        ErrorRateBounds(upper, upper)
        if upper is not None and upper.kind == "optimum"
        else ErrorRateBounds(lower, upper)
    )
