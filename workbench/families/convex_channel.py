"""What channels of any family share under notions of several convex bounds: their programs' laws, and their repair."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.channel_notions import ChannelNotionModel
from solvers.solution import Solution
from workbench.errors import NotProven
from workbench.families.convex_notion import solve_with_cuts
from workbench.families.convex_request import ConvexRequest
from workbench.families.tangent_cuts import row_columns
from workbench.mechanisms.channel import Channel
from workbench.privacy.claim import Claim
from workbench.privacy.measure import holds
from workbench.privacy.repair_channel import repair_rows

__all__ = ["repair_channel", "solve_channel"]


def solve_channel(
    request: ConvexRequest, pairs: Iterable[tuple[int, int]], model: Callable[[Mapping[Any, Any]], ChannelNotionModel]
) -> tuple[Solution, float | None]:
    """The last program's answer and the best bound. pairs: unordered neighbours; model: of bounds. Errors as
    `workbench.families.convex_notion.solve_with_cuts`."""

    def laws(solution: Solution, pair: tuple[int, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        M = np.maximum(solution["M"], 0.0)
        return M[pair[0]], M[pair[1]]

    return solve_with_cuts(
        request.claim, [ordered for i, j in pairs for ordered in ((i, j), (j, i))],
        lambda bounds: model(bounds).program, laws, request.solver, request.options, row_columns,
    )  # fmt: skip


def repair_channel(
    raw: Channel, claim: Claim, kept: tuple[Sequence[Fraction], Sequence[Fraction]] | None
) -> tuple[Channel, Fraction]:
    """The nearest mixture that is proven private, and the share mixed in. kept: the means and outputs of an unbiased
    channel. Raises NotCertified."""

    def private(rows: Channel) -> bool:
        try:
            return holds(rows, claim)
        except NotProven:  # tight: a channel a little further away can be proven
            return False

    means, outputs = kept or (None, None)
    return repair_rows(raw, private, outputs=outputs, means=means, allow_bias=True)
