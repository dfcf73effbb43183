"""Names of the types of plain objects that are passed on everywhere above; needs nothing that is slow to import."""

from collections.abc import Callable, Mapping
from typing import Any

Record = dict[str, Any]  # an object of a JSON file, or keyword arguments
Progress = Callable[[str], None]  # told a line of what a search has reached
Pair = tuple[int, int]  # of positions, or others
Pairs = tuple[Pair, ...]
FloatPair = tuple[float, float]
Strings = tuple[str, ...]
Values = Mapping[str, Any]  # anything by name, to be read
