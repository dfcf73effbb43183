"""Find the optimal two-bin mechanism on given outputs, with a proof.

`solve_product_optimum` answers: which two-bin mechanism has the smallest expected loss at ε, and
what lower bound is proven? OPTM (`optm`) approximates this optimum.

A two-bin mechanism draws one output left of the input and one right of it, independently, from two
selection distributions, and publishes one of the two such that the mean is the input (Cai et al.
2024; `workbench.models.quantizer.two_bin`). The pair has a joint law π, which is the product of the
two distributions. Everything but this product is linear in π.

The search is a branch and bound on boxes. A box has a lower and an upper bound for every entry of
the selection distributions that need bounds ("bounded vectors"). The linear program of a box
relaxes the product, so its optimum is a lower bound on the loss of all mechanisms in the box. With
the bounded vectors fixed at the solution, the program has a mechanism as its solution, and so gives
an upper bound. A box is split at the entry where π is farthest from a product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from fractions import Fraction

import numpy as np

from workbench.errors import NotProven
from workbench.families.quantizer.laws import LawQuestion, QuantizerAnswer
from workbench.families.quantizer.optm import (
    ProgramOptimum,
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

# The lower and upper bounds of every bounded vector.
Box = dict[VectorKey, Pair]

_MAX_GAP = 1e-5  # The search ends at this absolute gap.
_MIN_GAIN = 1e-12  # A mechanism replaces the best one if its loss is smaller by more than this.
_SPLIT_MARGIN = 0.2  # A box is not split closer to its ends than this share of its width.
_WIDTH_OFFSET = 0.1  # This is added to the width of an entry, so that narrow ones count as well.
_EMPTY_TOLERANCE = 1e-12  # A box is empty if a lower bound exceeds an upper one by more than this.
_REPORTED_BOXES = 20  # Progress is reported after every this many boxes.


def _compute_pair_losses(shape: TwoBinShape, density: Density, loss: object) -> tuple[Vector, ...]:
    """Compute the losses of all pairs of bins on every piece of the inputs.

    Piece j consists of the inputs with j bins at or left of them. The expected loss is the sum of
    these numbers times the probabilities π of the pairs.

    Returns:
        For each piece, an array with a row for every left bin and a column for every right bin,
        shape (j, m - j).
    """
    bins = np.array(shape.bins)
    cuts = np.array([*(low for _, low, _ in shape.pieces), 1.0])
    x, w = density.quadrature(cuts[1:-1])
    piece_indices = find_pieces(cuts, x)
    losses = []
    for k, (j, _, _) in enumerate(shape.pieces):
        inputs = x[piece_indices == k, None, None]
        weights = w[piece_indices == k, None, None]
        left = inputs - bins[:j, None]
        right = bins[j:] - inputs
        left_losses = right * compute_error(np.abs(left), loss)
        right_losses = left * compute_error(np.abs(right), loss)
        totals = (weights * (left_losses + right_losses)).sum(axis=0)
        losses.append(totals / (bins[j:] - bins[:j, None]))
    return tuple(losses)


class _ProductSearch:
    """Branch and bound for the optimal two-bin mechanism.

    Args:
        shape: the bins, pieces and selection distributions.
        question: density, loss, metric and ε of the law, with the solver (see `LawQuestion`).
        solver: solves the programs.

    Attributes:
        best: the best mechanism found, as the optimum of its program.
        visited: the number of boxes split.
    """

    def __init__(self, shape: TwoBinShape, question: LawQuestion, solver: ProgramSolver) -> None:
        losses = _compute_pair_losses(shape, question.density, question.loss)
        self.shape = shape
        self.question = question
        self.solver = solver
        self.model = ProductModel(shape, losses)
        self.best: ProgramOptimum | None = None
        self.visited = 0
        self._boxes: OpenNodes[tuple[Box, Vector]] = OpenNodes()

    @property
    def best_value(self) -> float:
        """Return the least error so far."""
        return math.inf if self.best is None else self.best.objective

    @property
    def lower_bound(self) -> float:
        """Return the proven lower bound on the error of all two-bin mechanisms."""
        return min(self.best_value - _MAX_GAP, self._boxes.lower_bound)

    def try_selection(self, selection: dict[VectorKey, Vector]) -> None:
        """Solve for the best mechanism with fixed bounded vectors."""
        box = {key: (law, law) for key, law in selection.items()}
        program = self.model.build_box_program(self.question.float_epsilon, box)
        optimum = self.solver.solve(program)
        if optimum is not None and optimum.objective < self.best_value - _MIN_GAIN:
            self.best = optimum

    def try_point(self, x: Vector) -> None:
        """Solve for the best mechanism with the bounded vectors of a point."""
        shape = self.shape
        selection = {key: shape.read_distribution(x, key) for key in shape.bounded_vectors}
        self.try_selection(selection)

    def add_box(self, box: Box) -> None:
        """Bound a box, and keep it if it may contain a better mechanism. Raises NotProven."""
        program = self.model.build_box_program(self.question.float_epsilon, box)
        bound, optimum = self.solver.solve_with_bound(program)
        if optimum is not None:
            self.try_point(optimum.x)
            if bound < self.best_value - _MAX_GAP:
                self._boxes.put(bound, (box, optimum.x))
        elif bound < math.inf:
            raise NotProven(
                f"{self.question.solver} gave no answer to a program of the product optimum."
            )

    def run(self, max_boxes: int) -> None:
        """Split boxes until the gap is closed, or `max_boxes` are split. Raises NotProven."""
        while self._boxes.lower_bound < self.best_value - _MAX_GAP and self.visited < max_boxes:
            bound = self._boxes.lower_bound
            box, x = self._boxes.first_node
            self._boxes.pop()
            self.visited += 1
            for part in _split_box(self.model, box, x):
                self.add_box(part)
            if self.visited % _REPORTED_BOXES == 0:
                value = "nothing yet" if self.best is None else f"{self.best_value:.6f}"
                self.question.progress(f"{self.visited} boxes, between {bound:.6f} and {value}")


def solve_product_optimum(
    bins: Sequence[Fraction],
    question: LawQuestion,
    *,
    nodes: int = 400,
) -> QuantizerAnswer | None:
    """Find the optimal two-bin mechanism on given bins under its exact ε and exact error.

    The search ends at an absolute gap of 1e-5.

    Args:
        bins: the outputs in increasing order, in units of c.
        question: density, loss, metric and ε of the law, with the solver (see `LawQuestion`).
        nodes: the largest number of boxes that are split.

    Returns:
        The answer, with a lower bound on the loss of all two-bin mechanisms on these bins, and a
        note if the search stopped at `nodes` boxes. None if no mechanism was found.

    Raises:
        NotProven: the solver gave no answer, or the time limit ended it.
    """
    shape = make_two_bin_shape(bins, question.density)
    with closing(ProgramSolver(question)) as solver:
        search = _ProductSearch(shape, question, solver)
        # The selection of OPTM is a product, so it gives a first mechanism and a first upper bound.
        width, *_ = list_slice_widths(question.epsilon)
        optm_answer = solve_optm(bins, question, width=width, solver=solver)
        solution = None if optm_answer is None else optm_answer.solution
        if solution is not None and solution.x is not None:
            search.try_point(solution.x)
        search.try_selection(make_rqm_selections(shape, rqm_q=0))  # Two-point randomized response.
        # The first box contains all selections: every probability is in [0, 1].
        first_box = {}
        for side, length in shape.bounded_vectors:
            first_box[side, length] = (np.zeros(length), np.ones(length))
        search.add_box(first_box)
        search.run(nodes)
    best = search.best
    if best is None:
        return None
    quantizer = two_bin(list(bins), *shape.read_selections(best.x), name="product optimum")
    notes: tuple[str, ...] = ()
    value = search.best_value
    bound = search.lower_bound
    if bound < value - _MAX_GAP:
        gap = (value - bound) / value
        notes = (f"Stopped after {search.visited} boxes; the optimum is at most {gap:.2%} below.",)
    return QuantizerAnswer(value, bound, quantizer, best.solution, notes=notes)


def _split_box(model: ProductModel, box: Box, x: Vector) -> list[Box]:
    """Split a box in two at one entry of a bounded vector, near the value of the LP's solution.

    It is the entry at which π is farthest from a product, weighted by the width of its bounds.
    Returns no box if π is a product everywhere, and leaves out empty parts.
    """
    scores = {}
    for key, violation in model.product_violation(x).items():
        low, high = box[key]
        scores[key] = violation * (_WIDTH_OFFSET + high - low)
    if not scores:
        return []
    key = max(scores, key=lambda key: float(scores[key].max()))
    k = int(scores[key].argmax())
    low, high = box[key]
    margin = _SPLIT_MARGIN * (high[k] - low[k])
    point = float(x[model.shape.columns[key][k]])
    cut = min(max(point, low[k] + margin), high[k] - margin)
    parts = []
    for entry_low, entry_high in ((low[k], cut), (cut, high[k])):
        lower = low.copy()
        upper = high.copy()
        lower[k] = entry_low
        upper[k] = entry_high
        # The entries sum to 1, so the bounds of one entry limit the others. The second round uses
        # the bounds of the first one.
        for _ in range(2):
            lower = np.maximum(lower, 1 - (upper.sum() - upper))
            upper = np.minimum(upper, 1 - (lower.sum() - lower))
        if (lower <= upper + _EMPTY_TOLERANCE).all():
            parts.append({**box, key: (lower, np.maximum(lower, upper))})
    return parts
