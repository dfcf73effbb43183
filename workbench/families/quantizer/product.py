"""The product optimum: branch and bound on boxes of the bounded vectors, with a proven bound.

What OPTM approximates. A node is a box; its LP (workbench.models.quantizer.two_bin) bounds it below, fixing the
bounded vectors at the LP's point bounds it above, and the entry where π is farthest from a product is split there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from workbench.errors import NotProven
from workbench.families.quantizer.laws import LawQuestion, QuantizerAnswer
from workbench.families.quantizer.optm import (
    ProgramSolver,
    list_slice_widths,
    make_rqm_selections,
    make_two_bin_shape,
    solve_optm,
)
from workbench.mechanisms.baselines.two_bin import two_bin
from workbench.mechanisms.quantization_error import compute_error
from workbench.models.quantizer.two_bin import ProductModel, TwoBinShape, VectorKey
from workbench.questions.density import Density, find_pieces
from workbench.solvers.arrays import Pair, Vector
from workbench.solvers.search import OpenNodes

Box = dict[VectorKey, Pair]

_GAP = 1e-5


def _gains(shape: TwoBinShape, density: Density, loss: object) -> tuple[Vector, ...]:
    """What the pairs of bins cost on every piece j, up to their probability. Shapes (j, m - j)."""
    bins = np.array(shape.bins)
    cuts = np.array([*(low for _, low, _ in shape.pieces), 1.0])
    x, w = density.quadrature(cuts[1:-1])
    place = find_pieces(cuts, x)
    gains = []
    for at, (j, _, _) in enumerate(shape.pieces):
        y, v = x[place == at, None, None], w[place == at, None, None]
        left, right = y - bins[:j, None], bins[j:] - y
        both = right * compute_error(np.abs(left), loss) + left * compute_error(np.abs(right), loss)
        gains.append((v * both).sum(axis=0) / (bins[j:] - bins[:j, None]))
    return tuple(gains)


def solve_product_optimum(
    bins: Sequence[Fraction],
    question: LawQuestion,
    *,
    nodes: int = 400,
) -> QuantizerAnswer | None:
    """The best two-bin mechanism for these bins under the exact ε and the exact error; None when there is none.

    It stops at a gap of 1e-5, absolute. nodes: at most so many boxes (then words say so, and the bound still holds).
    """
    law, epsilon = question.density, question.float_epsilon
    shape = make_two_bin_shape(bins, law)
    model = ProductModel(shape, _gains(shape, law, question.loss))
    live = ProgramSolver(question)
    best = None

    def value() -> float:
        return math.inf if best is None else best.objective

    def fixed(q: dict[VectorKey, Vector]) -> None:
        nonlocal best
        point = live.solve(
            model.build_box_program(epsilon, {key: (law, law) for key, law in q.items()})
        )
        if point is not None and point.objective < value() - 1e-12:
            best = point

    boxes: OpenNodes[tuple[Box, Vector]] = OpenNodes()

    def put(box: Box) -> None:
        bound, point = live.solve_with_bound(model.build_box_program(epsilon, box))
        if point is not None:
            fixed({key: shape.read_distribution(point.x, key) for key in shape.bounded_vectors})
            if bound < value() - _GAP:
                boxes.put(bound, (box, point.x))
        elif bound < math.inf:
            raise NotProven(
                f"{question.solver} gave no answer to a program of the product optimum."
            )

    # OPTM's selection is a product: begin with it
    selection = solve_optm(
        bins, question, width=list_slice_widths(question.epsilon)[0], solver=live
    )
    if selection is not None and selection.solution.x is not None:
        fixed(
            {
                key: shape.read_distribution(selection.solution.x, key)
                for key in shape.bounded_vectors
            }
        )
    fixed(make_rqm_selections(shape, 0))
    put({key: (np.zeros(key[1]), np.ones(key[1])) for key in shape.bounded_vectors})
    visited = 0
    while boxes.lower_bound < value() - _GAP and visited < nodes:
        bound, (box, x) = boxes.lower_bound, boxes.first_node
        boxes.pop()
        visited += 1
        for part in _split(model, box, x):
            put(part)
        if visited % 20 == 0:
            reached = "nothing yet" if best is None else f"{value():.6f}"
            question.progress(f"{visited} boxes, between {bound:.6f} and {reached}")
    live.close()
    if best is None:
        return None
    built = two_bin(list(bins), *shape.read_selections(best.x), name="product optimum")
    words: tuple[str, ...] = ()
    proven = min(value() - _GAP, boxes.lower_bound)
    if proven < value() - _GAP:
        left = (value() - proven) / value()
        words = (f"Stopped after {visited} boxes; the optimum is at most {left:.2%} below.",)
    return QuantizerAnswer(value(), proven, built, best.solution, notes=words)


def _split(model: ProductModel, box: Box, x: Vector) -> list[Box]:
    """Two boxes: the most violated entry cut near the LP's point."""
    scores = {
        key: apart * (0.1 + box[key][1] - box[key][0])
        for key, apart in model.product_violation(x).items()
    }
    if not scores:
        return []
    key = max(scores, key=lambda key: float(scores[key].max()))
    k = int(scores[key].argmax())
    low, high = box[key]
    margin = 0.2 * (high[k] - low[k])
    cut = min(max(float(x[model.shape.columns[key][k]]), low[k] + margin), high[k] - margin)
    parts = []
    for least, most in ((low[k], cut), (cut, high[k])):
        lower, upper = low.copy(), high.copy()
        lower[k], upper[k] = least, most
        for _ in range(2):  # the entries sum to 1: bounds of one move the others'
            lower = np.maximum(lower, 1 - (upper.sum() - upper))
            upper = np.minimum(upper, 1 - (lower.sum() - lower))
        if (lower <= upper + 1e-12).all():
            parts.append({**box, key: (lower, np.maximum(lower, upper))})
    return parts
