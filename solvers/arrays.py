"""Type names of arrays that all packages use; docstrings give the shapes."""

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Positions = NDArray[np.intp]
Flags = NDArray[np.bool_]
Integers = NDArray[np.int64]
Pair = tuple[Vector, Vector]
Ints = tuple[int, ...]  # A shape, the orders of the factors of a group, or an element of a group.
