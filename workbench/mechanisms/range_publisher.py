"""Define the base class of mechanisms that publish real answers in a range.

Every answer is clamped into the range and published independently of the others. A subclass states
how one clamped answer is published (`RangePublisher._draw`).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workbench.data.plain import read_floats_and_entries
from workbench.errors import must
from workbench.exact.arrays import Vector
from workbench.exact.numbers import Rationals
from workbench.exact.random_source import Source
from workbench.mechanisms.mechanism import ColumnInputs


class RangePublisher:
    """A mechanism of all real answers in a range.

    Attributes:
        ends: Increasing numbers. The first and the last are the ends of the range.
    """

    ends: Rationals

    can_publish_reals: ClassVar[bool] = True

    def _draw(self, x: Vector, exact_answers: NDArray[Any], source: Source) -> NDArray[np.float64]:
        """Draw once for each of the answers. Shape (n,).

        Args:
            x: The clamped answers as floats, shape (n,).
            exact_answers: The same answers as the user gave them, shape (n,), neither rounded to
                floats nor clamped. If a float is equal to a number of `ends`, the exact answer
                decides on which side of the number it lies.
            source: The source of randomness.
        """
        raise NotImplementedError

    def publish(
        self, answers: ArrayLike, *, insecure_seed: int | None = None
    ) -> NDArray[np.float64]:
        """Draw once for each of many answers, clamped into the range, independently.

        Shape (n,). `sample` is the same with a source that a caller may use for several draws.

        Args:
            answers: Finite numbers, shape (n,). A float means the decimal number that it prints.
            insecure_seed: A seed >= 0 that makes the draws repeatable, for experiments only.
                Default: the randomness of the operating system.

        Raises:
            InvalidRequest: If an answer is no finite number, if answers is not 1-D, or if
                insecure_seed is negative.
        """
        return self.sample(answers, Source(insecure_seed))

    def sample(self, values: ArrayLike, source: Source | None = None) -> NDArray[np.float64]:
        """Draw once for each of many answers, clamped into the range. Shape (n,).

        Args:
            values: Answers as of `publish`, shape (n,).
            source: The source of randomness, default: the operating system.

        Raises:
            InvalidRequest: If a value is no finite number, or values is not 1-D.
        """
        x, exact_answers = read_floats_and_entries(
            values, "answers", "finite numbers, one for each row"
        )
        if x.ndim != 1:
            must("answers", "finite numbers, one for each row", repr(values))
        return self._draw(
            np.clip(x, float(self.ends[0]), float(self.ends[-1])), exact_answers, source or Source()
        )

    def with_neighbours_over(self, low: Fraction, high: Fraction) -> Any:
        """Return the mechanism itself, because all numbers of the range are already neighbours.

        Args:
            low: The lower end of the interval.
            high: The upper end of the interval.
        """
        return self

    @property
    def column_inputs(self) -> ColumnInputs:
        """Return the numbers of the range."""
        low = float(self.ends[0])
        high = float(self.ends[-1])
        return ColumnInputs(
            "channel",
            low,
            high,
            constraint=f"in [{low:g}, {high:g}]",
            is_whole=False,
            is_exact=True,
        )

    def published_error(self) -> None:
        """Return None: the error depends on the answer."""
