"""Losses of one's own for noise: a function of the noise value, a vector, or a CSV file of one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from models.modulo import LOSSES, OwnLosses
from workbench.errors import InvalidRequest
from workbench.exact.numbers import exact, nearest_float
from workbench.exact.plain import refuse_marked
from workbench.io.files import names_file
from workbench.mechanisms.modulo import ModuloNoise
from workbench.mechanisms.points import cells_of

__all__ = ["own_losses", "read_loss"]

_EACH = "a finite number >= 0"


def read_loss(value: Any, name: str) -> Any:
    """Reader of an option: the name of a loss, a function, or the losses of all noise values as a tuple."""
    if callable(value) or isinstance(value, OwnLosses) or (isinstance(value, str) and value in LOSSES):
        return value
    if isinstance(value, str) and not names_file(value):
        InvalidRequest.must(name, f"one of {', '.join(LOSSES)}, or a CSV file of losses", repr(value))
    refuse_marked(value, name)
    wanted = "a name, a function of the noise value, or losses, one for every noise value"
    return tuple(_loss(cell, "every loss") for cell in cells_of(value, name, wanted))


def _loss(value: Any, name: str) -> Fraction:
    loss = exact(value, name, _EACH)
    if loss < 0 or nearest_float(loss) > 1e300:
        InvalidRequest.must(name, _EACH, value)
    return loss


def own_losses(given: Any, question: ModuloNoise) -> Any:
    """The losses of a question's noise values under a name that their digits make; a named loss as it is.

    A function is called with the residue η in 0..n, or with the tuple of residues of a vector. Raises InvalidRequest.
    """
    if isinstance(given, str):
        return given
    if callable(given):
        given = tuple(_called(given, question, k) for k in range(question.order))
    if len(given) != question.order:
        InvalidRequest.must("loss", f"{question.order} numbers, one for every noise value", len(given))
    values = np.array([float(value) for value in given])
    return OwnLosses.of(f"own-{hashlib.sha256(values.tobytes()).hexdigest()[:12]}", values)


def _called(loss: Callable[[Any], Any], question: ModuloNoise, k: int) -> Fraction:
    point = question.point(k)
    eta: Any = point[0] if question.scalar else point
    try:
        value = loss(eta)
    except Exception as error:
        InvalidRequest.must("loss", "a function of the noise value", f"{type(error).__name__}: {error}")
    return _loss(value, f"loss({eta})")
