"""Counts in the budget table: noise modulo n + 1, clamped laws, and the best channel of all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from workbench.families.api import design
from workbench.families.frontier_plan import Row, budget_row, design_row
from workbench.families.modulo.baselines import SCANNED, Scan, data_independent_error
from workbench.families.modulo.family import FAMILY
from workbench.families.modulo.frontier_plots import SERIES
from workbench.families.requirements import HOCKEY_STICK, ratio_kind, ratio_notions
from workbench.mechanisms.label_randomizers.labels import Labels
from workbench.mechanisms.modulo import ModuloNoise
from workbench.privacy.notions import notion as named

__all__ = ["check", "count_rows"]


def check(values: Mapping[str, Any], epsilons: Sequence[Fraction], deltas: Sequence[Fraction]) -> None:
    """Refuse budgets and questions that cannot be answered. Raises InvalidRequest."""
    question = ModuloNoise(n=values["n"], max_shift=values["max_shift"])
    for epsilon in epsilons:
        for delta in deltas:
            FAMILY.request(question, epsilon=epsilon, delta=delta, notion="dp")


def count_rows(
    values: Mapping[str, Any], epsilon: Fraction, delta: Fraction, bits: Sequence[Fraction]
) -> Iterable[Row]:
    """Noise modulo n + 1, clamped laws, and the best channel of all, at one (ε, δ)."""
    question = ModuloNoise(n=values["n"], max_shift=values["max_shift"])
    n, size = question.order - 1, math.log2(question.order)
    distances = [shift[0] for shift in question.shifts]
    for notion in ratio_notions():
        if not named(notion).has_delta:
            continue
        group = f"(ε, δ)-{named(notion).title}, error rate"

        def known(mechanism: str, note: str = "", group: str = group) -> Row:
            return budget_row("count", group, mechanism, epsilon, delta, size, loss="error-rate", note=note)

        row = design_row(
            partial(design, question, epsilon=epsilon, delta=delta, notion=notion),
            **known("optimal modulo noise", "also protects answers that wrap around, which counts do not need"),
        )
        yield row | {"bound": None}  # what it proves holds for noise modulo n + 1
        for family in SCANNED:
            best = Scan(family, n, distances).audited(epsilon, delta, notion)
            if best is not None:
                yield known(SERIES[family].label) | {"objective": best[1].error_rate}
        rho = float(data_independent_error(question.order, epsilon, delta, notion))
        yield known("data-independent noise") | {"objective": rho}
        if ratio_kind(notion) == HOCKEY_STICK:  # what a channel LP states
            pairs = [(q, q + s) for s in distances for q in range(n + 1 - s)]
            yield design_row(
                partial(
                    design,
                    Labels.uniform(0, n),
                    epsilon=epsilon,
                    loss="error-rate",
                    method="lp",
                    neighbours=pairs,
                    notion="dp" if delta else "pure",
                    delta=delta,
                ),
                **known("channel LP", "the optimum over every mechanism with these answers and neighbours"),
            )
