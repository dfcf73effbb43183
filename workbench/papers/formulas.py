"""The optimum as a formula beside closed forms: equal as rational functions of e^ε, or where they differ.

    single_distance      SD of Kadam et al.: Lemma 3 (pure), (1 - δ) times it (dp), Theorem 2 (PDP at one ε)
    bounded_difference   BD: Lemma 4 (pure); the printed Theorem 3 (PDP at one ε), region by region
    counts               geometric post-processing (Ghosh et al.)
    responses            randomized response
    bins                 RR-on-Bins (Ghazi et al.) onto given outputs
    quantizer            4 outputs and 5 to 9 knots beside Theorem 5 of Cai et al.
    map                  the (ε, δ) plane of a count: a region for each formula

Closed forms: `workbench.models.oracles.rational_forms`. A verdict is a comparison of polynomials, never of values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pandas as pd

from workbench.errors import Infeasible, InvalidRequest
from workbench.formulas.formula import formula
from workbench.formulas.pattern_formulas import find_pattern_value
from workbench.formulas.text import write_affine
from workbench.io.result import Row
from workbench.models.oracles import rational_forms
from workbench.models.oracles.hops import shift_order
from workbench.models.oracles.printed_theorem3 import staircases
from workbench.papers.artifact import (
    Artifact,
    build_declared_paper,
    make_artifact,
    read_declaration,
)
from workbench.pipeline.api import design
from workbench.questions.finite_query import FiniteQuery
from workbench.questions.labels import Labels
from workbench.questions.modulo_noise import ModuloNoise
from workbench.questions.quantization import Quantization
from workbench.solvers.exact.polynomials import Affine

if TYPE_CHECKING:
    from workbench.formulas.formula_object import Formula


def _compare_values(ours: Sequence[Affine | None], theirs: Sequence[Affine]) -> str:
    return (
        "equal" if len(ours) == len(theirs) and all(map(Affine.__eq__, ours, theirs)) else "DIFFERS"
    )


def _list_piece_values(solved: Formula) -> list[Affine | None]:
    return [piece.value for piece in solved.pieces]


def single_distance(n: Sequence[int], epsilon: float) -> Iterable[Row]:
    """Every n and μ; PDP for μ = 1 alone, as any other μ is the same on its cycle."""
    for last in range(n[0], n[1] + 1):
        for mu in range(1, last + 1):
            question = ModuloNoise(n=last, shifts=[mu], directed=True)
            length = shift_order((last + 1,), (mu,))
            printed, law = (
                rational_forms.lemma3(length),
                rational_forms.hop_law((last + 1,), ((mu,),)),
            )
            pure, dp = formula(question, notion="pure"), formula(question, delta="0..1")
            row = {"n": last, "mu": mu, "cycle": length, "formula": pure.pieces[0].to_text()}
            row |= {
                "lemma 3": _compare_values(_list_piece_values(pure), [printed]),
                "dp": _compare_values(_list_piece_values(dp), [law]),
            }
            if mu == 1:
                known = rational_forms.theorem2(length)
                solved = formula(question, notion="pdp", epsilon=epsilon, delta="0..1")
                same = [value for _, value in known], [end for end, _ in known]
                ends = [piece.delta[1] for piece in solved.pieces]
                both = {
                    _compare_values(_list_piece_values(solved), same[0]),
                    _compare_values(ends, same[1]),
                }
                row |= {
                    "theorem 2": "DIFFERS" if "DIFFERS" in both else "equal",
                    "pieces": len(known),
                }
            yield row


def bounded_difference(n: Sequence[int], epsilon: float) -> Iterable[Row]:
    """Every n and μ̄; the flat regions of the printed Theorem 3 in their order up to the first that is refuted."""
    for last in range(n[0], n[1] + 1):
        for mu_bar in range(1, last + 1):
            question = ModuloNoise(n=last, max_shift=mu_bar, directed=True)
            pure = formula(question, notion="pure")
            row = {"n": last, "mu_bar": mu_bar, "formula": pure.pieces[0].to_text()}
            row["lemma 4"] = _compare_values(
                _list_piece_values(pure), [rational_forms.lemma4(last, mu_bar)]
            )
            yield row | (
                _check_theorem3(question, last, mu_bar, epsilon)
                if mu_bar > 1
                else {"theorem 3": "one distance"}
            )


def _check_theorem3(question: ModuloNoise, n: int, mu_bar: int, epsilon: float) -> Row:
    """How many printed flat regions are right, and the first that is not: its δ, what is printed, what is true."""
    regions = [
        stairs
        for stairs in staircases(n, mu_bar, epsilon)
        if stairs.h and stairs.lower < stairs.upper
    ]
    for k, stairs in enumerate(regions):
        printed = rational_forms.staircase_error_rate(stairs.lengths)
        ours = find_pattern_value(
            question, epsilon, Fraction((stairs.lower + stairs.upper) / 2).limit_denominator(10**9)
        )
        if ours != printed:
            region = {"from_delta": stairs.lower, "to_delta": stairs.upper}
            shown = {
                "printed": write_affine(printed),
                "optimum": "not proven" if ours is None else write_affine(ours),
            }
            return {"theorem 3": "REFUTED", "right regions": k, **region, **shown}
    return {"theorem 3": "equal" if regions else "no region", "right regions": len(regions)}


def counts(n: Sequence[int], losses: Sequence[str]) -> Iterable[Row]:
    """A uniform prior on 0..n."""
    for last in range(n[0], n[1] + 1):
        for loss in losses:
            solved = formula(FiniteQuery(range(last + 1), max_shift=1), loss=loss, notion="pure")
            table = _weighted_loss_matrix(range(last + 1), range(last + 1), loss)
            theirs = [
                rational_forms.geometric_post_processing(table, x)
                for x in map(_choose_inner_point, solved.pieces)
            ]
            yield from _make_piece_rows(solved, theirs, {"answers": f"0..{last}", "loss": loss})


def responses(n: Sequence[int]) -> Iterable[Row]:
    """The error rate of k answers, all neighbours."""
    for k in range(n[0], n[1] + 1):
        yield from _make_piece_rows(
            formula(FiniteQuery(range(k), neighbours="all"), loss="error-rate"),
            [
                rational_forms.bins_loss(
                    _weighted_loss_matrix(range(k), range(k), "error-rate"), Fraction(2)
                )
            ],
            {"answers": k},
        )


def bins(labels: str, outputs: Sequence[str], losses: Sequence[str]) -> Iterable[Row]:
    """A uniform prior on labels in lo..hi."""
    low, high = map(int, labels.split(".."))
    for given in outputs:
        places = [Fraction(value) for value in given.split(",")]
        for loss in losses:
            solved = formula(
                Labels(range(low, high + 1)), method="lp", outputs=tuple(places), loss=loss
            )
            table = _weighted_loss_matrix(range(low, high + 1), places, loss)
            theirs = [
                rational_forms.bins_loss(table, _choose_inner_point(piece))
                for piece in solved.pieces
            ]
            yield from _make_piece_rows(solved, theirs, {"outputs": given, "loss": loss})


def quantizer(outputs: str, knots: Sequence[int]) -> Iterable[Row]:
    """Mean absolute error, uniform inputs; Theorem 5's in the middle of every piece."""
    question = Quantization(outputs)
    for count in range(knots[0], knots[1] + 1):
        for piece in formula(question, knots=count).pieces:
            low, high = piece.epsilon
            at = round((low + high) / 2 if math.isfinite(high) else low + 1, 3)
            row: Row = {
                "knots": count,
                "from_epsilon": low,
                "to_epsilon": high if math.isfinite(high) else None,
            }
            row |= {"formula": piece.to_text(), "epsilon": at}
            if piece.value is not None:
                row["loss"] = float(piece.value(Fraction(math.exp(at))))
                with suppress(Infeasible, InvalidRequest):  # of small ε there is none
                    row["theorem 5"] = design(
                        question, method="optm", epsilon=at, certify=False
                    ).objective
            yield row


def _weighted_loss_matrix(
    answers: Iterable[int], outputs: Iterable[Any], loss: str
) -> list[list[Fraction]]:
    """p_y ℓ(y,o) of a uniform prior."""
    places, rows = [*outputs], [*answers]
    powers = {"absolute": 1, "squared": 2}
    return [[_error_loss(y - o, powers.get(loss)) / len(rows) for o in places] for y in rows]


def _error_loss(error: Any, power: int | None) -> Fraction:
    return Fraction(error != 0) if power is None else abs(Fraction(error)) ** power


def _choose_inner_point(piece: Any) -> Fraction:
    """A rational e^ε inside a piece."""
    low, high = (
        Fraction(math.exp(end))
        for end in (piece.epsilon[0], min(piece.epsilon[1], piece.epsilon[0] + 2))
    )
    return (low + high) / 2


def _make_piece_rows(solved: Formula, theirs: Sequence[Affine], named: Row) -> Iterable[Row]:
    """A row for every piece of a formula, beside a closed form."""
    for piece, other in zip(solved.pieces, theirs, strict=True):
        low, high = piece.epsilon
        row = {**named, "from_epsilon": low, "to_epsilon": high if math.isfinite(high) else None}
        yield row | {
            "formula": piece.to_text(),
            "verdict": _compare_values([piece.value], [other]),
        }


def verdicts(table: pd.DataFrame) -> Row:
    """How often each verdict was given, in words."""
    counted = [
        f"{column}: "
        + ", ".join(f"{count} {word}" for word, count in table[column].value_counts().items())
        for column in _VERDICTS
        if column in table
    ]
    return {"verdicts": "; ".join(counted)}


def _make_map(full: bool) -> Artifact:
    given = read_declaration("formulas")["map"]["given"]
    solved = formula(
        "channel", answers=given["answers"], max_shift=1, loss=given["loss"], delta=given["delta"]
    )
    return make_artifact(
        "formulas", "map", solved.to_frame(), draw=lambda _: solved.plot(), count=len(solved.pieces)
    )


_VERDICTS = ("lemma 3", "dp", "theorem 2", "lemma 4", "theorem 3", "verdict")
PAPER = build_declared_paper("formulas", {"map": _make_map}, globals())
