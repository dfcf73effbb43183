"""Names of the arrays that everybody here and above passes on; docstrings say their shapes."""

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Positions = NDArray[np.intp]
Flags = NDArray[np.bool_]
Integers = NDArray[np.int64]
Pair = tuple[Vector, Vector]
Ints = tuple[int, ...]  # the shape of an array, the orders of a group's factors, an element of it
