"""Compare our formulas of the optimum with the closed forms of papers, as functions of e^ε.

Both are rational functions of E = e^ε. For example, ours and that of randomized response for three
answers are 2/(E + 2). A verdict compares their polynomials, so it holds for every ε and not only at
sampled values. Each `compare_...` function makes the rows of one artifact of
declared/formulas.toml. A "piece" is an interval of ε (or δ) on which one formula holds.

    artifact             closed forms
    single_distance      SD of Kadam et al.: Lemma 3 (pure), (1 - δ) times it (DP), Theorem 2 (PDP
                         at one ε)
    bounded_difference   BD of Kadam et al.: Lemma 4 (pure), each region of the printed Theorem 3
                         (PDP at one ε)
    counts               post-processing of geometric noise (Ghosh et al.)
    responses            randomized response
    bins                 RR-on-Bins (Ghazi et al.) onto given outputs
    quantizer            4 outputs and 5 to 9 knots: Theorem 5 of Cai et al.
    map                  the (ε, δ) plane of a count, with a region for each formula

The closed forms are in `workbench.models.oracles.rational_forms`. SD (single distance):
neighbouring answers differ by one number μ. BD (bounded difference): they differ by 1..μ̄. Papers:
Kadam et al. 2024, Ghosh et al. 2009, Ghazi et al. 2023, Cai et al. 2024.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pandas as pd

from workbench.errors import Infeasible, InvalidRequest
from workbench.formulas.formula import formula
from workbench.formulas.pattern_formulas import find_pattern_value
from workbench.formulas.pieces import finite_or_none
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

# The columns of verdicts.
_VERDICT_COLUMNS = ("lemma 3", "dp", "theorem 2", "lemma 4", "theorem 3", "verdict")

# The exponents of losses |error|^exponent. Other losses are 1 for every wrong output.
_LOSS_EXPONENTS = {"absolute": 1, "squared": 2}

_MAX_DENOMINATOR = 10**9  # The middle of a region is rounded to a denominator up to this one.
_MAX_INNER_DISTANCE = 2  # An inner point is chosen at most this far above the start, in ε.


def _compare_values(ours: Sequence[Affine | None], theirs: Sequence[Affine]) -> str:
    """Return "equal" if both have the same functions in the same order, else "DIFFERS".

    None, the value of a piece without a mechanism, differs from every function.
    """
    is_equal = len(ours) == len(theirs) and all(map(Affine.__eq__, ours, theirs))
    return "equal" if is_equal else "DIFFERS"


def _list_piece_values(solved_formula: Formula) -> list[Affine | None]:
    """Return the optimum on each piece of a formula, a function of E; None without a mechanism."""
    return [piece.value for piece in solved_formula.pieces]


def compare_single_distance(n: Sequence[int], epsilon: float) -> Iterator[Row]:
    """Compare the formulas of modulo noise for a single distance. Yield a row for every n and μ.

    Theorem 2 is compared for μ = 1 only, because every other μ gives the same formulas on its
    cycle.

    Args:
        n: The smallest and the largest n.
        epsilon: The ε at which the PDP formulas, which are functions of δ, are compared.

    Yields:
        n, mu, cycle (the number of multiples of μ), formula (for pure DP), the verdicts "lemma 3"
        and "dp", and for μ = 1 "theorem 2" and pieces (their number).
    """
    first, last = n
    for size in range(first, last + 1):
        for mu in range(1, size + 1):
            question = ModuloNoise(n=size, shifts=[mu], directed=True)
            cycle = shift_order((size + 1,), (mu,))
            pure = formula(question, notion="pure")
            dp = formula(question, delta="0..1")
            lemma3 = rational_forms.lemma3(cycle)
            dp_law = rational_forms.hop_law((size + 1,), ((mu,),))
            row: Row = {
                "n": size,
                "mu": mu,
                "cycle": cycle,
                "formula": pure.pieces[0].to_text(),
                "lemma 3": _compare_values(_list_piece_values(pure), [lemma3]),
                "dp": _compare_values(_list_piece_values(dp), [dp_law]),
            }
            if mu == 1:
                row |= _compare_theorem2(question, cycle, epsilon)
            yield row


def _compare_theorem2(question: ModuloNoise, cycle: int, epsilon: float) -> Row:
    """Compare the pieces of a PDP formula with Theorem 2: their values, and their upper ends in δ.

    Returns the columns "theorem 2" and "pieces" of `compare_single_distance`.
    """
    printed_formula = rational_forms.theorem2(cycle)
    solved_formula = formula(question, notion="pdp", epsilon=epsilon, delta="0..1")
    ends = [end for _, end in (piece.delta for piece in solved_formula.pieces)]
    outcomes = (
        _compare_values(
            _list_piece_values(solved_formula), [value for _, value in printed_formula]
        ),
        _compare_values(ends, [end for end, _ in printed_formula]),
    )
    verdict = "DIFFERS" if "DIFFERS" in outcomes else "equal"
    return {"theorem 2": verdict, "pieces": len(printed_formula)}


def compare_bounded_difference(n: Sequence[int], epsilon: float) -> Iterator[Row]:
    """Compare the formulas for differences 1..μ̄. Yield a row for every n and μ̄.

    The flat regions of the printed Theorem 3 are compared in order, until one is refuted.

    Args:
        n: The smallest and the largest n.
        epsilon: The ε at which the PDP formulas, which are functions of δ, are compared.

    Yields:
        n, mu_bar, formula (for pure DP), the verdicts "lemma 4" and "theorem 3", and the columns of
        the first wrong region.
    """
    first, last = n
    for size in range(first, last + 1):
        for mu_bar in range(1, size + 1):
            question = ModuloNoise(n=size, max_shift=mu_bar, directed=True)
            pure = formula(question, notion="pure")
            lemma4 = rational_forms.lemma4(size, mu_bar)
            row: Row = {
                "n": size,
                "mu_bar": mu_bar,
                "formula": pure.pieces[0].to_text(),
                "lemma 4": _compare_values(_list_piece_values(pure), [lemma4]),
            }
            if mu_bar > 1:
                row |= _check_theorem3(question, size, mu_bar, epsilon)
            else:
                row["theorem 3"] = "one distance"
            yield row


def _check_theorem3(question: ModuloNoise, n: int, mu_bar: int, epsilon: float) -> Row:
    """Compare the flat regions of the printed Theorem 3 with the optimum in their middles.

    Returns the columns "theorem 3" (the verdict) and "right regions" (the number of correct regions
    before the first wrong one). For a wrong region also from_delta, to_delta, printed and optimum.
    """
    printed_regions = staircases(n, mu_bar, epsilon)
    regions = [region for region in printed_regions if region.h and region.lower < region.upper]
    for k, stairs in enumerate(regions):
        printed_formula = rational_forms.staircase_error_rate(stairs.lengths)
        middle = Fraction((stairs.lower + stairs.upper) / 2).limit_denominator(_MAX_DENOMINATOR)
        ours = find_pattern_value(question, epsilon, middle)
        if ours != printed_formula:
            return {
                "theorem 3": "REFUTED",
                "right regions": k,
                "from_delta": stairs.lower,
                "to_delta": stairs.upper,
                "printed": write_affine(printed_formula),
                "optimum": "not proven" if ours is None else write_affine(ours),
            }
    return {"theorem 3": "equal" if regions else "no region", "right regions": len(regions)}


def compare_counts(n: Sequence[int], losses: Sequence[str]) -> Iterator[Row]:
    """Yield a row for every piece of the formulas of counts 0..n with a uniform prior.

    Args:
        n: The smallest and the largest n.
        losses: Names of losses, such as "absolute".

    Yields:
        answers, loss, from_epsilon, to_epsilon (None: no end), formula and verdict.
    """
    first, last = n
    for size in range(first, last + 1):
        answers = range(size + 1)
        for loss in losses:
            solved_formula = formula(FiniteQuery(answers, max_shift=1), loss=loss, notion="pure")
            matrix = _weighted_loss_matrix(answers, answers, loss)
            theirs = [
                rational_forms.geometric_post_processing(matrix, _choose_inner_point(piece))
                for piece in solved_formula.pieces
            ]
            labels: Row = {"answers": f"0..{size}", "loss": loss}
            yield from _make_piece_rows(solved_formula, theirs, labels)


def compare_responses(n: Sequence[int]) -> Iterator[Row]:
    """Yield a row for every number of answers, all of them neighbours, for the error rate.

    Args:
        n: The smallest and the largest number of answers.

    Yields:
        answers (their number), from_epsilon, to_epsilon (None: no end), formula and verdict.
    """
    first, last = n
    for count in range(first, last + 1):
        solved_formula = formula(FiniteQuery(range(count), neighbours="all"), loss="error-rate")
        matrix = _weighted_loss_matrix(range(count), range(count), "error-rate")
        # There is one piece, so any e^ε > 1 gives the same closed form.
        theirs = [rational_forms.bins_loss(matrix, Fraction(2))]
        yield from _make_piece_rows(solved_formula, theirs, {"answers": count})


def compare_bins(labels: str, outputs: Sequence[str], losses: Sequence[str]) -> Iterator[Row]:
    """Yield a row for every piece of the formulas of labels with a uniform prior.

    Args:
        labels: The smallest and the largest label: "0..6".
        outputs: Sets of outputs, each as text: "0,3,6".
        losses: Names of losses, such as "absolute".

    Yields:
        outputs, loss, from_epsilon, to_epsilon (None: no end), formula and verdict.
    """
    low, high = map(int, labels.split(".."))
    for text in outputs:
        points = tuple(Fraction(value) for value in text.split(","))
        for loss in losses:
            question = Labels(range(low, high + 1))
            solved_formula = formula(question, method="lp", outputs=points, loss=loss)
            matrix = _weighted_loss_matrix(range(low, high + 1), points, loss)
            theirs = [
                rational_forms.bins_loss(matrix, _choose_inner_point(piece))
                for piece in solved_formula.pieces
            ]
            yield from _make_piece_rows(solved_formula, theirs, {"outputs": text, "loss": loss})


def compare_quantizer(outputs: str, knots: Sequence[int]) -> Iterator[Row]:
    """Yield a row for every piece of the formulas of unbiased quantizers.

    Theorem 5 is evaluated in the middle of the piece, for the mean absolute error and uniform
    inputs.

    Args:
        outputs: The outputs of the quantizer, as text: "-3,-1,1,3".
        knots: The smallest and the largest number of knots.

    Yields:
        knots, from_epsilon, to_epsilon (None: no end), formula, epsilon (in the middle), loss (of
        the formula there) and "theorem 5" (the loss of its program there; missing if it has no
        solution).
    """
    question = Quantization(outputs)
    first, last = knots
    for count in range(first, last + 1):
        for piece in formula(question, knots=count).pieces:
            low, high = piece.epsilon
            middle = round((low + high) / 2 if math.isfinite(high) else low + 1, 3)
            row: Row = {
                "knots": count,
                "from_epsilon": low,
                "to_epsilon": finite_or_none(high),
                "formula": piece.to_text(),
                "epsilon": middle,
            }
            if piece.value is not None:
                row["loss"] = float(piece.value(Fraction(math.exp(middle))))
                # For small ε, Theorem 5 has no feasible solution.
                with suppress(Infeasible, InvalidRequest):
                    theirs = design(question, method="optm", epsilon=middle, certify=False)
                    row["theorem 5"] = theirs.objective
            yield row


def _weighted_loss_matrix(
    answers: Iterable[int], outputs: Iterable[Any], loss: str
) -> list[list[Fraction]]:
    """Return the loss of output o at answer y times the probability of y under a uniform prior.

    Rows are answers, columns outputs.
    """
    output_list = [*outputs]
    answer_list = [*answers]
    weight = Fraction(1, len(answer_list))
    return [[weight * _error_loss(y - o, loss) for o in output_list] for y in answer_list]


def _error_loss(error: Any, loss: str) -> Fraction:
    """Return the exact loss of an error: |error|, error², or 1 for every error that is not 0."""
    exponent = _LOSS_EXPONENTS.get(loss)
    if exponent is None:
        return Fraction(error != 0)
    return abs(Fraction(error)) ** exponent


def _choose_inner_point(piece: Any) -> Fraction:
    """Return a rational e^ε inside a piece (`workbench.formulas.pieces.Piece`)."""
    start, end = piece.epsilon
    low = Fraction(math.exp(start))
    high = Fraction(math.exp(min(end, start + _MAX_INNER_DISTANCE)))
    return (low + high) / 2


def _make_piece_rows(
    solved_formula: Formula, theirs: Sequence[Affine], labels: Row
) -> Iterator[Row]:
    """Yield a row for every piece of a formula, compared with the closed form for this piece.

    `labels` are the first columns of each row.
    """
    for piece, closed_form in zip(solved_formula.pieces, theirs, strict=True):
        low, high = piece.epsilon
        yield {
            **labels,
            "from_epsilon": low,
            "to_epsilon": finite_or_none(high),
            "formula": piece.to_text(),
            "verdict": _compare_values([piece.value], [closed_form]),
        }


def summarise_verdicts(table: pd.DataFrame) -> Row:
    """Return how often each verdict was given, in words.

    Args:
        table: The table of an artifact.

    Returns:
        "verdicts": a text for the caption, such as "lemma 4: 28 equal; theorem 3: 20 equal, 1
        REFUTED".
    """
    parts = []
    for column in _VERDICT_COLUMNS:
        if column in table:
            counts = table[column].value_counts().items()
            parts.append(
                f"{column}: " + ", ".join(f"{count} {verdict}" for verdict, count in counts)
            )
    return {"verdicts": "; ".join(parts)}


def _make_map(full: bool) -> Artifact:
    """Make the map of the formulas of a count."""
    declaration = read_declaration("formulas")["map"]
    arguments = declaration["arguments"]
    solved_formula = formula("channel", max_shift=1, **arguments)
    table = solved_formula.to_frame()

    def draw(_: pd.DataFrame) -> Any:
        """Draw the plane of the formula; the table is not used."""
        return solved_formula.plot(title=declaration["plot_title"])

    return make_artifact("formulas", "map", table, draw=draw, count=len(solved_formula.pieces))


PAPER = build_declared_paper("formulas", {"map": _make_map}, globals())
