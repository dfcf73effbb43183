"""Names of types of plain objects. This module imports nothing that is slow to load."""

from collections.abc import Callable, Mapping
from typing import Any

Record = dict[str, Any]  # An object of a JSON file, or keyword arguments.
# A function that is called with lines on the progress of a search.
Progress = Callable[[str], None]
Pair = tuple[int, int]  # Two integers, such as the positions of two neighbours.
Pairs = tuple[Pair, ...]
FloatPair = tuple[float, float]
Strings = tuple[str, ...]
Values = Mapping[str, Any]  # Values by name, before or after they are read.
