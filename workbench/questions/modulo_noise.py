"""Define the question of noise modulo n + 1: the answers, and the differences of neighbours.

Answers are elements of a finite abelian group G = Z_{s1} x ... x Z_{sk}, and the noise η is added
modulo the group (Sec. 3 of Kadam et al. 2024). The answers of neighbouring datasets differ by a
shift μ (equation (6) there). The set of all shifts is M. SD (single distance) and BD (bounded
difference) are the paper's names of two sets M.

    paper                       code
    n, N = n + 1                n (answers 0..n), order
    M (one-sided in the paper)  differences
    SD: M = {μ̂}                 shifts=[μ̂]
    BD: M = {1..μ̄}              max_shift=μ̄

By default both orders of two neighbours are protected, so M also contains the negative of every
shift. directed=True is the one-sided M of the paper. For example, max_shift=1 modulo 9 gives
M = {1, 8}, and with directed=True M = {1}.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from textwrap import shorten
from typing import Any

import numpy as np

from workbench.data.groups import (
    MAX_SHIFTS,
    list_shifts,
    list_shifts_within_norm,
    read_sizes,
)
from workbench.data.plain import is_integer, read_integer
from workbench.errors import InvalidRequest, must
from workbench.exact.arrays import Positions
from workbench.exact.numbers import Real
from workbench.exact.objects import Record
from workbench.io.shown import OneLine
from workbench.mechanisms.mechanism import assign_budgets
from workbench.questions.neighbour_parts import describe_separation

Shift = tuple[int, ...]


@dataclass(frozen=True, init=False, repr=False)
class ModuloNoise(OneLine):
    """A query whose answers form a finite abelian group, and its neighbour relation.

    Args:
        n: The answers are 0..n, of a scalar query.
        shifts: The differences of neighbouring answers, integers for a scalar query, else tuples;
            also as a text "1,2" or "0,1;1,0".
        sizes: Instead of n, the orders of the cyclic factors of a vector query; also as a text
            "5x5".
        max_shift: Instead of shifts: all of 1..max_shift for a scalar query; for a vector query
            all vectors up to a norm, such as "2 L1" or "1 Linf" (not if directed).
        directed: Whether M has only the given shifts. Default: M has their negatives as well.
        origin: A sentence on the origin of the shifts, for the notes of a report.

    Attributes:
        sizes: Orders of the cyclic factors, such as (n + 1,) for a scalar query.
        shifts: The given shifts modulo the sizes, sorted, each once.
        directed: As the argument.
        origin: As the argument. Questions that differ in it alone are equal.

    Raises:
        InvalidRequest: If both or neither of n and sizes, or of shifts and max_shift, are given; if
            a size is below 2; or if a shift is 0 or outside the group.

    >>> ModuloNoise(n=8, max_shift=3).differences
    ((1,), (2,), (3,), (6,), (7,), (8,))
    """

    sizes: tuple[int, ...]
    shifts: tuple[Shift, ...]
    directed: bool
    origin: str = field(compare=False)

    def __init__(
        self,
        n: int | str | None = None,
        shifts: Iterable[int | Iterable[int]] | str | None = None,
        *,
        sizes: Iterable[int] | str | None = None,
        max_shift: int | str | None = None,
        directed: bool = False,
        origin: str = "",
    ) -> None:
        if (n is None) == (sizes is None):
            raise InvalidRequest("A query domain must be given by exactly one of n and sizes.")
        if (shifts is None) == (max_shift is None):
            got = "none" if max_shift is None else "both"
            raise InvalidRequest(f"Give either max_shift or shifts. Got {got}.")
        if not isinstance(directed, bool):
            must("directed", "True or False", directed)
        # The class is frozen, so its attributes are set in `__dict__`.
        self.__dict__.update(sizes=read_sizes(n, sizes), directed=directed, origin=origin)
        if max_shift is not None:
            shifts = self._list_near_shifts(max_shift)
        try:
            shift_set = {self.normalise_shift(shift) for shift in list_shifts(shifts)}
        except InvalidRequest:
            if isinstance(shifts, str):  # The error quotes the whole text.
                must("shifts", "a list of shifts", repr(shifts))
            raise
        if not 1 <= len(shift_set) <= MAX_SHIFTS:
            must("shifts", f"1 to {MAX_SHIFTS} different shifts", len(shift_set))
        self.__dict__["shifts"] = tuple(sorted(shift_set))

    def _list_near_shifts(self, max_shift: Any) -> Iterable[Any]:
        """List the shifts up to max_shift. Raises InvalidRequest."""
        if self.is_scalar and isinstance(max_shift, str) and "l" in max_shift.lower():
            rule = "a whole number for one coordinate; a norm is for several (sizes)"
            must("max_shift", rule, repr(max_shift))
        if self.is_scalar:
            upper_limit = min(self.sizes[0] - 1, MAX_SHIFTS)
            return range(1, read_integer(max_shift, "max_shift", 1, upper_limit) + 1)
        if self.directed:
            raise InvalidRequest(
                "directed must be left out where max_shift is a norm, because a norm gives both "
                "orders of each pair. Give the directed differences by shifts."
            )
        return list_shifts_within_norm(max_shift, self.sizes)

    @property
    def order(self) -> int:
        """Return N, the number of answers."""
        return math.prod(self.sizes)

    @property
    def is_scalar(self) -> bool:
        """Return whether the answers are the numbers 0..n (one cyclic factor)."""
        return len(self.sizes) == 1

    @cached_property
    def differences(self) -> tuple[Shift, ...]:
        """Return M: the shifts and, unless directed, their negatives. They are sorted."""
        if self.directed:
            return self.shifts
        return tuple(sorted({*self.shifts, *map(self.negate_shift, self.shifts)}))

    @cached_property
    def part_count(self) -> int:
        """Return the number of separate parts of the neighbour relation.

        It is the index of the subgroup that the shifts generate. For example, the shift 2 modulo 8
        only connects even answers and odd answers, so there are 2 parts.
        """
        basis: list[list[int]] = np.diag(np.array(self.sizes, dtype=object)).tolist()
        for shift in self.shifts:
            remainder = list(shift)
            # The rows of the basis span the sizes and all shifts so far. Euclid's algorithm adds
            # the next shift and keeps the basis triangular, so its determinant is the index.
            for column, row in enumerate(basis):
                while remainder[column]:
                    factor = row[column] // remainder[column]
                    reduced = [a - factor * b for a, b in zip(row, remainder, strict=True)]
                    row[:] = remainder
                    remainder = reduced
        return abs(math.prod(basis[column][column] for column in range(len(basis))))

    @property
    def separation(self) -> str | None:
        """Describe a neighbour relation of several connected parts. None if there is one part."""
        return describe_separation(self.part_count) if self.part_count > 1 else None

    def negate_shift(self, shift: Shift) -> Shift:
        """Return -shift in the group.

        Args:
            shift: A group element, as a tuple of integers.
        """
        return tuple(-part % size for part, size in zip(shift, self.sizes, strict=True))

    def _read_element(self, value: Any, min_part: Callable[[int], int]) -> Shift | None:
        """Read an integer, or a sequence of integers, as a tuple of parts.

        Args:
            value: One integer, or one integer for each cyclic factor.
            min_part: Maps the size of a factor to the smallest allowed part.

        Returns:
            None unless every part is in min_part(size)..size-1.
        """
        is_vector = isinstance(value, np.ndarray) and value.ndim == 1
        is_sequence = is_vector or isinstance(value, (tuple, list))
        parts = tuple(value) if is_sequence else (value,)
        if len(parts) != len(self.sizes):
            return None
        for part, size in zip(parts, self.sizes, strict=True):
            is_whole = type(part) is int or is_integer(part)
            if not is_whole or not min_part(size) <= part < size:
                return None
        return tuple(map(int, parts))

    def normalise_shift(self, shift: Any) -> Shift:
        """Return a shift as the tuple of its parts modulo the sizes.

        Args:
            shift: An int for a scalar query, else a sequence of ints; every part must lie within
                its factor, and not all be 0.

        Raises:
            InvalidRequest: If the shift has another number of parts, a part is not below its size,
                or all parts are 0.
        """
        parts = self._read_element(shift, min_part=lambda size: 1 - size)
        if parts is None or not any(parts):
            constraint = f"an integer in 1..{self.sizes[0] - 1} or its negative"
            if not self.is_scalar:
                constraint = (
                    f"{len(self.sizes)} integers, each below its size in {self.sizes}, not all 0"
                )
            must("a shift", constraint, shift)
        return tuple(part % size for part, size in zip(parts, self.sizes, strict=True))

    def read_answer(self, x: Any) -> Shift:
        """Read an answer of the query as a group element.

        Args:
            x: An integer or a tuple of them.

        Raises:
            InvalidRequest: If x has another number of parts, or a part is not in 0..size-1.
        """
        parts = self._read_element(x, min_part=lambda size: 0)
        if parts is None:
            constraint = f"an answer of the query, in 0..{self.sizes[0] - 1}"
            if not self.is_scalar:
                constraint = f"{len(self.sizes)} integers, each in 0..size-1 of {self.sizes}"
            must("answer", constraint, x)
        return parts

    def shifted_positions(self, shift: Any) -> Positions:
        """Return the row-major position of η + shift for every η, in row-major order.

        If f is the PMF as a flat array, f[shifted_positions(μ)] is the array of f(η + μ).

        Args:
            shift: As for `normalise_shift`.

        Returns:
            Positions. Shape (N,).

        Raises:
            InvalidRequest: If shift is no shift of the group, or is 0.
        """
        positions = np.arange(self.order, dtype=np.intp).reshape(self.sizes)
        for axis, (part, size) in enumerate(
            zip(self.normalise_shift(shift), self.sizes, strict=True)
        ):
            if part:
                positions = positions.take(np.arange(part, part + size) % size, axis=axis)
        return positions.reshape(-1)

    def element_at(self, position: int) -> Shift:
        """Return the group element at a row-major position.

        Args:
            position: A row-major position, 0..N-1.
        """
        return tuple(int(part) for part in np.unravel_index(position, self.sizes))

    @property
    def elements(self) -> Iterator[int | Shift]:
        """Yield the answers, which are also the noise values, in row-major order.

        They are integers for a scalar query, else tuples.
        """
        for position in range(self.order):
            yield position if self.is_scalar else self.element_at(position)

    def budgets(
        self, epsilon: Real | Mapping[Any, Real], *, or_zero: bool = False
    ) -> dict[Shift, Fraction]:
        """Assign a budget ε to every difference, as exact rationals.

        Args:
            epsilon: One number for all, or a mapping shift -> number that covers every shift
                (metric privacy); unless directed, -μ has the budget of μ, and two different budgets
                are refused.
            or_zero: Whether ε = 0 is allowed as well, as in an audit.

        Returns:
            Difference -> ε, for every element of `differences`.

        Raises:
            InvalidRequest: If a budget is no number, is negative, or is 0 without `or_zero`, if a
                mapping leaves out a difference or names another one, or if it has two budgets for μ
                and -μ although the question is not directed.
        """
        # A directed question has no mirror images: `tuple` returns the shift itself.
        mirror = tuple if self.directed else self.negate_shift
        budgets = assign_budgets(
            self.differences,
            epsilon,
            "shift",
            read_key=self.normalise_shift,
            mirror=mirror,
            format_label=self.format_shift,
            or_zero=or_zero,
        )
        if any(budgets[mirror(shift)] != value for shift, value in budgets.items()):
            raise InvalidRequest("epsilon has two different budgets for a shift and its negative.")
        return budgets

    def format_shift(self, shift: Shift) -> str:
        """Format a shift or group element: 3, or (0, 1).

        Args:
            shift: A group element, as a tuple of integers.
        """
        return str(shift[0]) if self.is_scalar else str(shift)

    def to_dict(self) -> Record:
        """Return sizes, shifts (lists of integers) and directed as data for JSON."""
        return {
            "sizes": list(self.sizes),
            "shifts": [list(shift) for shift in self.shifts],
            "directed": self.directed,
        }

    def __repr__(self) -> str:
        domain = f"sizes={self.sizes}"
        shifts: list[Any] = [*self.shifts]
        if self.is_scalar:
            domain = f"n={self.sizes[0] - 1}"
            shifts = [shift[0] for shift in self.shifts]
        relation = f"shifts={shifts}"
        if shifts == [*range(1, len(shifts) + 1)]:
            relation = f"max_shift={len(shifts)}"
        if self.directed:
            relation += ", directed=True"
        return f"ModuloNoise({domain}, {relation})"

    def __str__(self) -> str:
        # 40 shifts have more than the 40 characters to which their text is shortened.
        shifts = shorten(", ".join(map(self.format_shift, self.shifts[:40])), 40)
        relation = "directed" if self.directed else "symmetric"
        return f"Noise modulo {' x '.join(map(str, self.sizes))}, {relation} differences {shifts}"
