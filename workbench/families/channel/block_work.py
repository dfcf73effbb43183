"""What `workbench.models.channel.block_interior` takes, in seconds of one core and bytes, beside the program of
`workbench.models.channel.program`.

Of the method the steps of its eliminations and products are counted; the program is as measured of HiGHS, 1e-6 c^1.45
seconds for c compared masses.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

NAME, METHODS = "block", ("auto", "block", "program")
MIN_BLOCK_COMPARISONS = (
    2_000  # compared masses up to which a program is solved in a moment, to a vertex
)
_ITERATIONS, _OPERATIONS_PER_SECOND, _ELIMINATION_STEP_SECONDS = (
    30,
    2e9,
    4e-6,
)  # iterations, operations a second, seconds of a step of an elimination
_SCATTER_SECONDS, _OUTPUT_SECONDS = (
    4e-9,
    1.5e-4,
)  # seconds of a number that is added to the Schur complement, of an output with δ > 0
_PROGRAM_SECONDS_FACTOR, _PROGRAM_SECONDS_EXPONENT = 1e-6, 1.45
_STORED_ARRAYS = 12  # arrays of (rows, outputs) that are held at a time
_EXACT_INTEGER_BYTES = 120  # bytes of an integer of the exact bound
_BASE_BYTES = 250_000_000  # bytes of inverses and of the program itself

Pairs = Sequence[tuple[int, int]]


class BlocksSize(NamedTuple):
    """k inputs, m outputs; pairs: None for all; width: with δ > 0 the inputs whose masses an output states, at most;
    extra: rows of one's own."""

    k: int
    m: int
    pairs: Pairs | None
    inputs_per_output: int | None = None
    extra_rows: int = 0

    @property
    def sum_counts(self) -> tuple[float, float]:
        """(of an output, of all): sums over outputs where δ > 0, of an input and of the pairs that it begins."""
        each = 1 + (2 * len(self.pairs or ()) + self.extra_rows) / self.k
        return (self.inputs_per_output or 0) * each, self.k * each


def is_faster_by_blocks(size: BlocksSize, compared: int) -> bool:
    """Whether the method takes less time than the program, from MIN_BLOCK_COMPARISONS masses compared on."""
    return estimate_block_seconds(size) < estimate_program_seconds(compared)


def estimate_program_seconds(compared: int) -> float:
    """Estimate the seconds that the program of so many compared masses takes."""
    return float(_PROGRAM_SECONDS_FACTOR * float(compared) ** _PROGRAM_SECONDS_EXPONENT)


def estimate_block_seconds(size: BlocksSize) -> float:
    """What the method takes, about."""
    k, m, pairs, width, extra = size
    if pairs is None:
        return (
            _ITERATIONS
            * (2.0 * (k + extra) ** 2 * m + (k + extra) ** 3 / 3)
            / _OPERATIONS_PER_SECOND
        )
    if width is not None:
        own, all_ = size.sum_counts
        of_output = (
            _OUTPUT_SECONDS + _SCATTER_SECONDS * own**2 + 2.0 * width**3 / _OPERATIONS_PER_SECOND
        )
        return _ITERATIONS * (
            m * of_output + min(all_ * own**2, all_**3 / 3) / _OPERATIONS_PER_SECOND
        )
    b = estimate_bandwidth(pairs)
    own = m * k * (b * (2.0 * b + 2.0 * k) + extra) + (extra and (k + extra) ** 3 / 3)
    return _ITERATIONS * (own / _OPERATIONS_PER_SECOND + 12 * k * _ELIMINATION_STEP_SECONDS)


def estimate_bandwidth(pairs: Pairs) -> int:
    """Of the neighbour graph, about: in the order given."""
    i, j = np.array(pairs, dtype=int).T
    return int(np.abs(i - j).max())


def estimate_block_memory(size: BlocksSize) -> float:
    """Bytes that the method holds at most, about."""
    k, m, pairs, width, extra = size
    rows = 2 * k if pairs is None else 2 * len(pairs)
    if width is not None:
        own, all_ = size.sum_counts
        return (
            8 * (3 * _STORED_ARRAYS * own * m + 4 * width**2 * m + 3 * all_**2)
            + _EXACT_INTEGER_BYTES * rows * m
            + _BASE_BYTES
        )
    factors = 0 if pairs is None else k * estimate_bandwidth(pairs) * m
    return (
        8 * (_STORED_ARRAYS * rows * m + factors + 8 * k * m + 4 * extra * (extra + 2 * k))
        + _BASE_BYTES
    )


def explain_memory_shortfall(size: BlocksSize) -> str | None:
    """Why blocks do not fit into the memory of this machine, and what would; None where they do."""
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    need = estimate_block_memory(size)
    if need <= free:
        return None
    fit = int(size.k * ((free - _BASE_BYTES) / (need - _BASE_BYTES)) ** (1 / 2))
    return (
        f"The blocks must fit into the {free / 1e9:.3g} GB of memory of this machine; about {fit} inputs would. "
        f"Got {size.k} inputs and {size.m} outputs, which need {need / 1e9:.3g} GB."
    )
