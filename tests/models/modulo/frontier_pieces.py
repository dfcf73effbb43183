"""Read the pieces of a frontier at one δ, for the tests of modulo frontiers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.models.modulo.level_frontier import FrontierPiece


def piece_at(pieces: Sequence[FrontierPiece], delta: float) -> FrontierPiece:
    """Return the frontier piece whose interval contains δ."""
    return next(piece for piece in pieces[::-1] if piece.delta_low <= delta)


def bound_at(piece: FrontierPiece, delta: float) -> float:
    """Return the proven lower bound of a frontier piece at δ. It is linear on the piece."""
    ends = (piece.delta_low, piece.delta_high)
    return float(np.interp(delta, ends, (piece.bound_low, piece.bound_high)))
