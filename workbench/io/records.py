"""Parts of a JSON record, read strictly: exact entries, lists, exact numbers, laws of integer weights.

{"total": "0x10", "weights": ["0x3", "0xd"]}        a law: weights without a common factor, and their sum
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from workbench.errors import CorruptFile
from workbench.exact.distribution import Distribution
from workbench.io.files import ratio, whole

__all__ = ["float_array", "floats", "law_record", "listed", "numbers", "read_law", "refuse", "short_text", "take"]


def take(data: Any, what: str, names: set[str]) -> dict[str, Any]:
    """A record with exactly these entries. Raises CorruptFile."""
    if not isinstance(data, dict) or set(data) != names:
        raise CorruptFile(f"{what} must have exactly the entries {', '.join(sorted(names))}.")
    return data


def listed(data: Any, what: str) -> list[Any]:
    """A list. Raises CorruptFile."""
    if not isinstance(data, list):
        refuse(what, "a list")
    return data


def numbers(data: Any, what: str) -> tuple[Fraction, ...]:
    """A list of exact numbers in strings. Raises CorruptFile."""
    return tuple(ratio(item, f"An entry of {what}") for item in listed(data, what))


def floats(values: Any) -> list[str]:
    """Doubles as strings that read back the same (`float_array`)."""
    return [repr(value) for value in values.tolist()]


def float_array(data: Any, what: str) -> NDArray[np.float64]:
    """Finite doubles written by `floats`. Raises CorruptFile."""
    return np.array([float(ratio(item, f"An entry of {what}", 30)) for item in listed(data, what)], dtype=np.float64)


def short_text(data: Any, what: str) -> str:
    """A string of at most 100 characters. Raises CorruptFile."""
    if not isinstance(data, str) or len(data) > 100:
        refuse(what, "a short string")
    return data


def law_record(law: Distribution) -> dict[str, Any]:
    """A law as `law` reads it."""
    return {"total": hex(law.total), "weights": [hex(k) for k in law.integers]}


def read_law(data: Any, what: str) -> Distribution:
    """Weights that add up to the total beside them. Raises CorruptFile."""
    entries = take(data, what, {"total", "weights"})
    weights = [whole(k, "A weight") for k in listed(entries["weights"], "weights")]
    total = whole(entries["total"], "The total")
    if sum(weights) != total or not total:
        raise CorruptFile(f"{what}: the weights do not add up to the total.")
    read = Distribution(weights)
    if read.total != total:
        raise CorruptFile(f"{what}: the weights have a common factor.")
    return read


def refuse(what: str, constraint: str) -> NoReturn:
    """Raise CorruptFile: what must be constraint."""
    raise CorruptFile(f"{what} must be {constraint}.")
