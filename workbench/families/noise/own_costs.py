"""Costs of one's own for noise: a function of the noise value, a vector, or a CSV file of one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from models.noise import COSTS, OwnCosts
from workbench.errors import InvalidRequest
from workbench.exact.numbers import exact, nearest_float
from workbench.exact.plain import plain_list, refuse_masked
from workbench.io.files import read_rows
from workbench.mechanisms.modulo import ModuloNoise

__all__ = ["own_costs", "read_cost"]

_EACH = "a finite number >= 0"


def read_cost(value: Any, name: str) -> Any:
    """Reader of an option: the name of a cost, a function, or the costs of all noise values as a tuple."""
    if callable(value) or isinstance(value, OwnCosts) or (isinstance(value, str) and value in COSTS):
        return value
    if isinstance(value, Path) or (isinstance(value, str) and Path(value).is_file()):
        value = [cell for row in read_rows(Path(value), name) for cell in row if cell.strip()]
    elif isinstance(value, str):
        InvalidRequest.must(name, f"one of {', '.join(COSTS)}, or a CSV file of costs", repr(value))
    refuse_masked(value, name)
    cells = plain_list(value, name, "a name, a function of the noise value, or costs, one for every noise value")
    return tuple(_cost(cell, "every cost") for cell in cells)


def _cost(value: Any, name: str) -> Fraction:
    cost = exact(value, name, _EACH)
    if cost < 0 or nearest_float(cost) > 1e300:
        InvalidRequest.must(name, _EACH, value)
    return cost


def own_costs(given: Any, question: ModuloNoise) -> Any:
    """The costs of a question's noise values under a name that their digits make; a named cost as it is.

    A function is called with the residue η in 0..n, or with the tuple of residues of a vector. Raises InvalidRequest.
    """
    if isinstance(given, str):
        return given
    if callable(given):
        given = tuple(_called(given, question, k) for k in range(question.order))
    if len(given) != question.order:
        InvalidRequest.must("cost", f"{question.order} numbers, one for every noise value", len(given))
    values = np.array([float(value) for value in given])
    return OwnCosts.of(f"own-{hashlib.sha256(values.tobytes()).hexdigest()[:12]}", values)


def _called(cost: Callable[[Any], Any], question: ModuloNoise, k: int) -> Fraction:
    point = question.point(k)
    eta: Any = point[0] if question.scalar else point
    try:
        value = cost(eta)
    except Exception as error:
        InvalidRequest.must("cost", "a function of the noise value", f"{type(error).__name__}: {error}")
    return _cost(value, f"cost({eta})")
