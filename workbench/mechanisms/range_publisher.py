"""What mechanisms of all real answers in a range share: many answers are clamped into it, each
published on its own."""

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
    """ends: increasing, the first and the last of the range."""

    ends: Rationals

    can_publish_reals: ClassVar[bool] = True

    def _draw(self, x: Vector, given: NDArray[Any], source: Source) -> NDArray[np.float64]:
        """One draw for each of the clamped answers x, which decide but where they are an end that
        given is not."""
        raise NotImplementedError

    def publish(
        self, answers: ArrayLike, *, insecure_seed: int | None = None
    ) -> NDArray[np.float64]:
        """One draw for each of many answers, clamped into the range, independently. answers: (n,)
        finite numbers, exact, a float being the decimal it shows.

        Shape (n,). Raises InvalidRequest.
        """
        return self.sample(answers, Source(insecure_seed))

    def sample(self, values: ArrayLike, source: Source | None = None) -> NDArray[np.float64]:
        """The same. source: of randomness, the system's by default."""
        x, given = read_floats_and_entries(values, "answers", "finite numbers, one for each row")
        if x.ndim != 1:
            must("answers", "finite numbers, one for each row", repr(values))
        return self._draw(
            np.clip(x, float(self.ends[0]), float(self.ends[-1])), given, source or Source()
        )

    def with_neighbours_over(self, low: Fraction, high: Fraction) -> Any:
        """The mechanism where every two numbers from low to high are neighbours: itself."""
        return self

    @property
    def column_inputs(self) -> ColumnInputs:
        """The numbers of the range, of which none is wrong where all are neighbours."""
        low = float(self.ends[0])
        high = float(self.ends[-1])
        return ColumnInputs("channel", low, high, f"in [{low:g}, {high:g}]", False, is_exact=True)

    def published_error(self) -> None:
        """None: it depends on the answer."""
