"""Estimate the runtime and the memory of the block method, and the runtime of the linear program.

The estimates decide which of the two methods answers a request. They are in seconds of one core and
in bytes. The block method (`workbench.models.channel.block_interior`) is an interior-point method
that eliminates the masses of one output (a block) after the other; its floating-point operations
are counted. For the program (`workbench.models.channel.program`) a fit to measurements with HiGHS
is used: 1e-6 c^1.45 seconds for c compared masses. A compared mass is a mass M[y, o] that a privacy
row compares with that of a neighbour.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# The name of the method, as an option value and as the solver of a solution.
BLOCK_METHOD = "block"
# Below this number of compared masses the block method is not used, because the program takes less
# than a second and ends at a vertex.
MIN_BLOCK_COMPARISONS = 2_000

# The interior-point method takes about this many iterations.
_ITERATIONS = 30
# One core performs about this many floating-point operations in a second.
_OPERATIONS_PER_SECOND = 2e9
# Each step of an elimination has this overhead in addition to its operations.
_ELIMINATION_STEP_SECONDS = 4e-6
# Adding one number to the Schur complement (the matrix that couples the outputs) takes this time.
_SCATTER_SECONDS = 4e-9
# Each output takes this time in each iteration if δ > 0, in addition to its operations.
_OUTPUT_SECONDS = 1.5e-4
# The program of c compared masses takes factor * c^exponent seconds.
_PROGRAM_SECONDS_FACTOR = 1e-6
_PROGRAM_SECONDS_EXPONENT = 1.45
# The method stores this many arrays of shape (rows, outputs) at a time.
_STORED_ARRAYS = 12
# An integer of the exact bound takes this much memory.
_EXACT_INTEGER_BYTES = 120
# Inverses and the program itself take this much memory.
_BASE_BYTES = 250_000_000

Pairs = Sequence[tuple[int, int]]


class BlocksSize(NamedTuple):
    """The size of a channel that the block method is to solve.

    Attributes:
        k: number of inputs.
        m: number of outputs.
        pairs: pairs of positions of neighbouring inputs, each pair once. None: every two inputs
            are neighbours.
        inputs_per_output: with δ > 0, the largest number of inputs whose mass at one output is a
            variable (other masses are fixed to 0). None: δ = 0.
        extra_rows: number of rows of user-defined constraints.
    """

    k: int
    m: int
    pairs: Pairs | None
    inputs_per_output: int | None = None
    extra_rows: int = 0

    @property
    def sum_counts(self) -> tuple[float, float]:
        """Return (sums of one output, all sums): numbers of sums over outputs, if δ > 0.

        A sum over outputs is the row sum of an input, the hockey stick of an ordered pair, or a
        user-defined row. It couples the blocks. The first number counts the sums with a variable
        mass of one given output. Both numbers are means over the inputs, so they may be fractions.
        """
        sums_per_input = 1 + (2 * len(self.pairs or ()) + self.extra_rows) / self.k
        return (self.inputs_per_output or 0) * sums_per_input, self.k * sums_per_input


def is_faster_by_blocks(size: BlocksSize, comparison_count: int) -> bool:
    """Return whether the block method is estimated to be faster than the program.

    Args:
        size: size of the channel.
        comparison_count: number of masses that the program compares, at least
            MIN_BLOCK_COMPARISONS.
    """
    return estimate_block_seconds(size) < estimate_program_seconds(comparison_count)


def estimate_program_seconds(comparison_count: int) -> float:
    """Estimate the seconds that the linear program takes.

    Args:
        comparison_count: number of masses that the program compares.
    """
    return float(_PROGRAM_SECONDS_FACTOR * float(comparison_count) ** _PROGRAM_SECONDS_EXPONENT)


def estimate_block_seconds(size: BlocksSize) -> float:
    """Estimate the seconds that the block method takes.

    The cases are: all inputs are neighbours and δ = 0; δ > 0; listed neighbours and δ = 0.

    Args:
        size: size of the channel.
    """
    k, m, pairs, inputs_per_output, extra_rows = size
    # A matrix with a row for each input and each extra row takes 2 (rows)² operations for each
    # output to build, and (rows)³/3 to factorise.
    if pairs is None:
        operations = 2.0 * (k + extra_rows) ** 2 * m + (k + extra_rows) ** 3 / 3
        return _ITERATIONS * operations / _OPERATIONS_PER_SECOND
    if inputs_per_output is not None:
        output_sums, all_sums = size.sum_counts
        elimination_seconds = 2.0 * inputs_per_output**3 / _OPERATIONS_PER_SECOND
        seconds_per_output = (
            _OUTPUT_SECONDS + _SCATTER_SECONDS * output_sums**2 + elimination_seconds
        )
        schur_operations = min(all_sums * output_sums**2, all_sums**3 / 3)
        schur_seconds = schur_operations / _OPERATIONS_PER_SECOND
        return _ITERATIONS * (m * seconds_per_output + schur_seconds)
    # The matrix of one output is banded.
    bandwidth = estimate_bandwidth(pairs)
    operations = m * k * (bandwidth * (2.0 * bandwidth + 2.0 * k) + extra_rows)
    if extra_rows:
        operations += (k + extra_rows) ** 3 / 3
    # Each input takes twelve elimination steps in an iteration.
    overhead_seconds = 12 * k * _ELIMINATION_STEP_SECONDS
    return _ITERATIONS * (operations / _OPERATIONS_PER_SECOND + overhead_seconds)


def estimate_bandwidth(pairs: Pairs) -> int:
    """Estimate the bandwidth of the neighbour graph: the largest difference of positions of
    neighbours in the listed order of the inputs.

    Args:
        pairs: pairs of positions of neighbouring inputs, at least one.
    """
    i, j = np.array(pairs, dtype=int).T
    return int(np.abs(i - j).max())


def estimate_block_memory(size: BlocksSize) -> float:
    """Estimate the largest number of bytes that the block method uses at a time.

    Args:
        size: size of the channel.
    """
    k, m, pairs, inputs_per_output, extra_rows = size
    # The number of rows per output is 2 k for t <= M <= E t, or one for each ordered pair. A float
    # takes 8 bytes.
    rows = 2 * k
    if pairs is not None:
        rows = 2 * len(pairs)
    # Below, factors without a name are numbers of arrays of the same shape.
    if inputs_per_output is not None:
        output_sums, all_sums = size.sum_counts
        numbers = 3 * _STORED_ARRAYS * output_sums * m
        numbers += 4 * inputs_per_output**2 * m + 3 * all_sums**2
        return 8 * numbers + _EXACT_INTEGER_BYTES * rows * m + _BASE_BYTES
    factor_numbers = 0
    if pairs is not None:
        factor_numbers = k * estimate_bandwidth(pairs) * m
    extra_numbers = 4 * extra_rows * (extra_rows + 2 * k)
    return (
        8 * (_STORED_ARRAYS * rows * m + factor_numbers + 8 * k * m + extra_numbers) + _BASE_BYTES
    )


def explain_memory_shortfall(size: BlocksSize) -> str | None:
    """Explain why the block method does not fit into the memory of this machine.

    Args:
        size: size of the channel.

    Returns:
        A sentence that names the number of inputs that would fit. None if the method fits.
    """
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    needed_bytes = estimate_block_memory(size)
    if needed_bytes <= memory_bytes:
        return None
    # Apart from the base, the memory grows about like the square of the number of inputs.
    share = (memory_bytes - _BASE_BYTES) / (needed_bytes - _BASE_BYTES)
    fitting_inputs = int(size.k * share ** (1 / 2))
    return (
        f"The blocks must fit into the {memory_bytes / 1e9:.3g} GB of memory of this machine; "
        f"about {fitting_inputs} inputs would fit. Got {size.k} inputs and {size.m} outputs, "
        f"which need {needed_bytes / 1e9:.3g} GB."
    )
