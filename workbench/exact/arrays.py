"""Names of array types. Docstrings state the shapes."""

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]
Positions = NDArray[np.intp]
Flags = NDArray[np.bool_]
