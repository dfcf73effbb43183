"""What `models.block_interior` takes, in seconds of one core and bytes, beside the program of `models.channel`.

Of the method the steps of its eliminations and products are counted; the program is as measured of HiGHS, 1e-6 c^1.45
seconds for c compared masses.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

NAME, METHODS = "block", ("auto", "block", "program")
FEW = 2_000  # compared masses up to which a program is solved in a moment, to a vertex
_TURNS, _FLOPS, _CALL = 30, 2e9, 4e-6  # iterations, operations a second, seconds of a step of an elimination
_PROGRAM, _POWER = 1e-6, 1.45
_HELD = 12  # arrays of (rows, outputs) that are held at a time
_BESIDE = 250_000_000  # bytes of inverses and of the program itself

Pairs = Sequence[tuple[int, int]]


def less(k: int, m: int, pairs: Pairs | None, compared: int) -> bool:
    """Whether the method takes less time than the program, from FEW masses compared on. pairs: None for all."""
    return bool(seconds(k, m, pairs) < _PROGRAM * float(compared) ** _POWER)


def seconds(k: int, m: int, pairs: Pairs | None) -> float:
    """What the method takes, about."""
    if pairs is None:
        return _TURNS * (2.0 * k * k * m + k**3 / 3) / _FLOPS
    b = bandwidth(pairs)
    return _TURNS * (m * k * b * (2.0 * b + 2.0 * k) / _FLOPS + 12 * k * _CALL)


def bandwidth(pairs: Pairs) -> int:
    """Of the neighbour graph, about: in the order given."""
    i, j = np.array(pairs, dtype=int).T
    return int(np.abs(i - j).max())


def memory(k: int, m: int, pairs: Pairs | None) -> int:
    """Bytes that the method holds at most, about."""
    rows = 2 * k if pairs is None else 2 * len(pairs)
    factors = 0 if pairs is None else k * bandwidth(pairs) * m
    return 8 * (_HELD * rows * m + factors + 8 * k * m) + _BESIDE


def too_large(k: int, m: int, pairs: Pairs | None) -> str | None:
    """Why blocks do not fit into the memory of this machine, and what would; None where they do."""
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    need = memory(k, m, pairs)
    if need <= free:
        return None
    fit = int(k * ((free - _BESIDE) / (need - _BESIDE)) ** (1 / 2))
    return (
        f"The blocks must fit into the {free / 1e9:.3g} GB of memory of this machine; about {fit} inputs would. "
        f"Got {k} inputs and {m} outputs, which need {need / 1e9:.3g} GB."
    )
