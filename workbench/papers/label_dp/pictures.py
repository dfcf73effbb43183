"""Figs 3, 4 and 6 (error against ε) and the example of Fig. 5."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial

import pandas as pd

from workbench.mechanisms.label_randomizers.labels import Labels
from workbench.papers.artifact import Artifact, Comparison, artifact
from workbench.papers.label_dp.data import DataSet, census, criteo
from workbench.papers.label_dp.learning import EPSILONS, census_errors, count_errors, diabetes_errors
from workbench.papers.label_dp.mechanism_loss import bins_at, continuous, lattice, numbers

__all__ = ["fig3", "fig4", "fig5", "fig6", "signature"]

_DIGITS = {"mse": 7, "std": 5}  # closed forms at a small ε cancel; regressions are solved by linear algebra
Loss = Callable[[float], float]  # of an ε
_NOISES = {"Laplace": "laplace", "staircase": "staircase", "exponential": "exponential"}


def _stack(**panels_: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([part.assign(panel=name) for name, part in panels_.items()], ignore_index=True)


def _losses(data: DataSet, epsilons: Sequence[float], *groups: Mapping[str, Loss]) -> pd.DataFrame:
    """The mechanism's own error: every group of randomizers at every ε, then RR-on-Bins."""
    bins = {"RR-on-Bins": lambda e: bins_at(data, e)}
    rows = [(e, name, loss(e)) for group in (*groups, bins) for e in epsilons for name, loss in group.items()]
    return pd.DataFrame(rows, columns=["epsilon", "mechanism", "mse"])


def _noises(loss: Callable[..., float], labels: Labels) -> dict[str, partial[float]]:
    return {name: partial(loss, labels, kind) for name, kind in _NOISES.items()}


def _picture(name: str, data: DataSet, table: pd.DataFrame) -> Artifact:
    return artifact("label_dp", name, table, digits=_DIGITS, words=data.words, stand_in=data.stand_in)


def fig3(full: bool) -> Artifact:
    """Four randomizers: the labels' own error, and the error of models trained on them."""
    data, tests = criteo(), diabetes_errors(full)
    losses = _losses(data, EPSILONS, _noises(continuous, data.labels))
    return _picture("fig3", data, _stack(a=losses, b=tests[~tests["mechanism"].str.contains("unclipped")]))


def fig4(full: bool) -> Artifact:
    """Census and count labels."""
    data, tests = census(), census_errors(full).query("mechanism != 'RRWithPrior'")
    losses = _losses(data, EPSILONS[3:], _noises(lattice, data.labels))
    return _picture("fig4", data, _stack(a=losses, b=tests, c=count_errors(full)))


def fig6(full: bool) -> Artifact:
    """With and without clipping."""
    data = criteo()
    noises = _noises(continuous, data.labels)
    both = {
        name + end: partial(noises[name], clip=not end)
        for name in ("Laplace", "staircase")
        for end in ("", ", unclipped")
    }
    losses = _losses(data, EPSILONS, both, {"exponential": noises["exponential"]})
    return _picture("fig6", data, _stack(a=losses, b=diabetes_errors(full)))


def signature(matrix: Sequence[Sequence[Fraction]], exp_epsilon: Fraction) -> list[str] | None:
    """Definition 9 for every row of M (0, U, L or S); None when M breaks a constraint of (2)."""
    if any(sum(row) != 1 for row in matrix):
        return None
    columns = list(zip(*matrix, strict=True))
    if any(max(column) > exp_epsilon * min(column) for column in columns):
        return None

    def sign(value: Fraction, column: Sequence[Fraction]) -> str:
        if value == 0:
            return "0"
        if value == max(column) == exp_epsilon * min(column):
            return "U"
        return "L" if value == min(column) == max(column) / exp_epsilon else "S"

    return ["".join(sign(value, column) for value, column in zip(row, columns, strict=True)) for row in matrix]


def fig5(full: bool) -> Artifact:
    """The example of a signature matrix, recomputed from its M."""
    claims = numbers()["fig5"]
    matrix = [[Fraction(0) if d == 0 else Fraction(1, d) for d in row] for row in claims["denominators"]]
    signatures = signature(matrix, Fraction(2)) or [""] * len(matrix)
    rows = [
        (label, *(str(value) for value in row), " ".join(signs), " ".join(printed_signs))
        for label, row, signs, printed_signs in zip(
            claims["labels"], matrix, signatures, claims["signature"], strict=True
        )
    ]
    agree = sum(
        a == b
        for ours, theirs in zip(signatures, claims["signature"], strict=True)
        for a, b in zip(ours, theirs, strict=True)
    )
    right = signature(matrix, Fraction(2)) is not None
    columns = ["label", *(f"M to {output}" for output in claims["outputs"]), "signature", "signature_printed"]
    return artifact(
        "label_dp",
        "fig5",
        pd.DataFrame(rows, columns=columns),
        [
            Comparison("signature entries that agree, of 20", claims["place"], 20, agree, 0.5),
            Comparison(
                "e^ε",
                claims["place"],
                claims["exp_epsilon"],
                2.0 if right else 0.5,
                1e-9,
                expected=False,
                remark="e^ε = 1/2 is a slip for 2",
            ),
        ],
    )
