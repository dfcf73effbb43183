"""The product optimum: branch and bound on boxes of the bounded vectors, with a proven bound.

What OPTM approximates. A node is a box; its LP bounds it below, fixing the bounded vectors at the LP's point bounds
it above, and the entry where π is farthest from a product is split there.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count

import numpy as np
from numpy.typing import NDArray

from models.optm import Key
from models.product import ProductModel
from solvers.solution import Solution
from workbench.families.quantizer.law_question import LawQuestion
from workbench.families.quantizer.optm import Live, optm, read_selection, shape_of, widths_for
from workbench.mechanisms.baselines.two_bin import rqm_selection, two_bin
from workbench.mechanisms.density import Density
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.mechanisms.quantization_error import error_function

__all__ = ["ProductAnswer", "product_optimum"]


Vector = NDArray[np.float64]
Box = dict[Key, tuple[Vector, Vector]]


@dataclass(frozen=True)
class ProductAnswer:
    """value: of the best product found; bound: proven for all products; solution: of the LP that gave it."""

    value: float
    bound: float
    quantizer: Quantizer
    solution: Solution
    nodes: int
    closed: bool


def _gains(
    model_pieces: Sequence[tuple[int, float, float]], bins: Vector, density: Density, loss: object
) -> list[Vector]:
    a, b = error_function(loss)
    x, w = density.grid(bins[(bins > -density.c) & (bins < density.c)])
    gains = []
    for at, (_, low, high) in enumerate(model_pieces):
        last = at == len(model_pieces) - 1
        here = (x >= low) & ((x <= high) if last else (x < high))
        y, v = x[here][:, None, None], w[here][:, None, None]
        left, right = y - bins[None, :, None], bins[None, None, :] - y
        width = bins[None, :] - bins[:, None]
        both = right * (a * np.abs(left) + b * left**2) + left * (a * np.abs(right) + b * right**2)
        with np.errstate(divide="ignore", invalid="ignore"):
            gains.append(np.where(width > 0, (v * both).sum(axis=0) / width, 0.0))
    return gains


def product_optimum(
    bins: Sequence[Fraction],
    question: LawQuestion,
    *,
    gap: float = 1e-5,
    nodes: int = 400,
    progress: Callable[[str], None] = lambda line: None,
) -> ProductAnswer | None:
    """The best two-bin mechanism for these bins under the exact ε and the exact error; None when there is none.

    gap: absolute, at which to stop; nodes: at most so many boxes (then `closed` is False and `bound` still holds).
    """
    c, law, loss = question.c, question.density, question.loss
    shape = shape_of(bins, c, law)
    outputs = np.array([float(b) for b in bins])
    model = ProductModel(shape, tuple(_gains(shape.pieces, outputs, law, loss)))
    eps = float(question.epsilon)
    live = Live(question.solver, epsilon=eps)
    best: tuple[float, Solution] | None = None

    def solve(box: Box) -> Solution | None:
        point = live.solve(model.lp(eps, box), ("box",), "two-bin products in a box")
        return point if point.optimal and point.objective is not None else None

    def fixed(q: dict[Key, Vector]) -> None:
        nonlocal best
        point = solve(model.point_box(q))
        if point is not None and point.objective is not None and (best is None or point.objective < best[0] - 1e-12):
            best = point.objective, point

    order = count()
    heap: list[tuple[float, int, Box, Solution]] = []

    def push(box: Box) -> None:
        point = solve(box)
        if point is None or point.objective is None or point.x is None:
            return
        fixed({key: model.read(point.x, key) for key in shape.bounded})
        if best is None or point.objective < best[0] - gap:
            heapq.heappush(heap, (point.objective, next(order), box, point))

    # OPTM's selection is a product: begin with it
    point = optm(bins, question.epsilon, c, law, width=widths_for(question.epsilon)[0], live=live)
    if point is not None and point.solution.x is not None:
        fixed({key: read_selection(shape, point.solution.x, key) for key in shape.bounded})
    outermost = rqm_selection(len(bins), 0)  # two-point randomized response, private whenever anything is
    fixed({key: outermost[key[1] - 1].floats for key in shape.bounded})
    push(model.root())
    visited = 0
    while heap and visited < nodes:
        bound, _, box, node = heapq.heappop(heap)
        if best is not None and bound >= best[0] - gap:
            heap.clear()
            break
        visited += 1
        assert node.x is not None
        for part in _split(model, box, node.x):
            push(part)
        if visited % 20 == 0:
            progress(f"{visited} boxes, between {bound:.6f} and {'nothing yet' if best is None else f'{best[0]:.6f}'}")
    left = min((node[0] for node in heap), default=np.inf)
    live.close()
    if best is None:
        return None
    assert best[1].x is not None
    q_left, q_right = shape.selection(best[1].x)
    built = two_bin(list(bins), q_left, q_right, c=c, name="product optimum")
    bound = min(best[0] - gap, left) if left < best[0] else best[0] - gap
    return ProductAnswer(best[0], bound, built, best[1], visited, not heap)


def _split(model: ProductModel, box: Box, x: Vector) -> list[Box]:
    """Two boxes: the most violated entry cut near the LP's point."""
    worst = max(model.violation(x).items(), key=lambda item: item[1] * (0.1 + _width(box, item[0])), default=None)
    if worst is None:
        return []
    key, k = worst[0]
    lo, hi = box[key]
    width = hi[k - 1] - lo[k - 1]
    at = float(x[model.shape.column[(*key, k)]])
    cut = min(max(at, lo[k - 1] + 0.2 * width), hi[k - 1] - 0.2 * width)
    parts = []
    for low, high in ((lo[k - 1], cut), (cut, hi[k - 1])):
        lower, upper = lo.copy(), hi.copy()
        lower[k - 1], upper[k - 1] = low, high
        # the entries sum to 1: bounds of one move the others'
        for _ in range(2):
            lower = np.maximum(lower, 1 - (upper.sum() - upper))
            upper = np.minimum(upper, 1 - (lower.sum() - lower))
        if (lower <= upper + 1e-12).all():
            parts.append({**box, key: (lower, np.maximum(lower, upper))})
    return parts


def _width(box: Box, name: tuple[Key, int]) -> float:
    lo, hi = box[name[0]]
    return float(hi[name[1] - 1] - lo[name[1] - 1])
