"""The grid that the dyadic quantized Laplace mechanism is verified on: Theorem 8 bounds the search from above."""

from __future__ import annotations

import itertools

from workbench.families.verification import Group
from workbench.mechanisms.dyadic_laplace.mean_length import UNIFORM, DataLaw

__all__ = ["groups"]


def groups(small: bool) -> list[Group]:
    """Laws of the data, each at every ε and number of bits."""
    epsilons, bits = ((1.0,), (12, 16)) if small else ((0.1, 1.0, 4.0), (10, 12, 16, 24))
    questions = (UNIFORM,) if small else (UNIFORM, DataLaw.point(3.0), DataLaw.uniform(0.0, 100.0))
    points = [{"epsilon": epsilon, "bits": size} for epsilon, size in itertools.product(epsilons, bits)]
    return [Group(question, {"code": "delta"}, points) for question in questions]
