"""A proof over all outputs: no unbiased ε-private mechanism with at most m outputs within ±reach errs less.

The class: every mechanism on real inputs in [-1, 1] (no knots, no form of the laws), at most m outputs, all in
[-reach, reach]; mean absolute error, uniform inputs. Branch and bound over boxes of outputs o_1 <= ... <= o_m:

* A law exists only if o_1 <= -r and o_m >= r, r the least reach; mirror images (o_1 + o_m < 0) are left out.
* A box is relaxed to a linear program whose outputs are its intervals' ends (and points between, where the box's dual
  prices them below 0), for laws at the middles of cells. Only its dual is used: made into functions α and β, it bounds
  every mechanism whose outputs lie in the box (models.output_dual), computed afresh with rounding accounted for.
* A dual that closes one box closes others: those of the last boxes are tried before a program is solved.
* The box with the least bound is split next, so the least bound of the open boxes is proven at any time.

The ends of intervals are points of one grid, finer where |o| < 1; h between two of its points is bounded from its
values there. The search can be written to a file and go on from it.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from models.output_dual import OutputDual, largest_ratio
from models.quantizer import smallest_reach
from solvers.arrays import Positions, Vector
from solvers.search import Deadline, OpenNodes
from solvers.solution import Termination
from workbench.errors import CorruptFile
from workbench.exact.objects import Progress, Record
from workbench.families.quantizer.laws import LawProblem, between_ends, grid_problem, silent
from workbench.io.files import is_there, named, parse_json, read_text, write_whole

Box = tuple[tuple[int, int], ...]  # an interval of grid points for each output

_TOLERANCE = 5e-4  # relative: how near to what is to be proven optimal a proof ends
_POOL = 600  # duals that are kept to close boxes without a program
_WIDTH = 1e-3  # how much an interval's width counts beside its spread, when a box is split


@dataclass(frozen=True)
class Proven:
    """bound: no mechanism of the class errs less; closed: to the tolerance; stopped: by Ctrl-C; boxes: bounded so far;
    from_file: the search went on from a file, whose bounds are taken as they stand there."""

    bound: float
    closed: bool
    stopped: bool
    boxes: int
    from_file: bool = False


class OutputProof:
    """The state of a proof: open boxes with their bounds.

    outputs: m; epsilon; reach: the largest output in size (>= the least reach); cells: of [-1, 1] in the programs;
    step: of the grid of outputs in [-1, 1].
    """

    def __init__(
        self, outputs: int, epsilon: float, reach: float, *, cells: int = 80, step: float = 0.005, wide: int = 64
    ) -> None:
        self.given = {"format": 1, "outputs": outputs, "epsilon": epsilon, "reach": reach, "cells": cells, "step": step}
        self.m, self.epsilon = outputs, epsilon
        self.ratio = largest_ratio(math.nextafter(epsilon, math.inf))
        least = max(1.0, math.nextafter(math.nextafter(min(smallest_reach(epsilon), reach), 0.0), 0.0))
        inner = np.arange(1, round(1 / step) + 1) * step
        inner[-1] = 1.0
        beyond = np.concatenate([np.linspace(1.0, least, wide // 2 + 1)[1:], np.linspace(least, reach, wide + 1)[1:]])
        beyond[-1] = math.nextafter(reach, math.inf)
        positive = np.concatenate([inner, beyond])
        self.grid = np.concatenate([-positive[::-1], [0.0], positive])
        # what h may be below its values at two neighbouring points of the grid
        middle = (self.grid[1:] + self.grid[:-1]) / 2
        self.dip = np.where(np.abs(middle) < 1, self.ratio * np.diff(self.grid) ** 2 / 6 * (1 + 1e-9), 0.0)
        self._middles: Vector = np.asarray(-1 + 2 / cells * (np.arange(cells) + 0.5), dtype=np.float64)
        self._problems: dict[int, LawProblem] = {}
        self._totals, self._low = np.zeros(0), np.zeros((0, self.grid.size - 1))  # of the duals in the pool
        self.closed = math.inf  # what is proven of the closed boxes
        self.boxes, self.seconds = 0, 0.0
        self.open: OpenNodes[Box] = OpenNodes()
        last = self.grid.size - 1
        edge = inner.size + wide // 2  # of the least reach, from 0
        zero = positive.size
        self._put(-math.inf, ((0, zero - edge), *[(0, last)] * (outputs - 2), (zero + edge, last)))

    def close(self) -> None:
        """Give the solver's resources back."""
        for problem in self._problems.values():
            problem.close()
        self._problems = {}

    # Boxes.

    def _put(self, bound: float, box: Box) -> None:
        """An open box, its intervals in order; nothing when no outputs are in it, or only mirror images."""
        low = np.maximum.accumulate([a for a, _ in box]).tolist()
        high = np.minimum.accumulate([b for _, b in reversed(box)])[::-1].tolist()
        ordered = all(a <= b for a, b in zip(low, high, strict=True))
        if ordered and self.grid[high[0]] + self.grid[high[-1]] >= 0:
            self.open.put(bound, tuple(zip(low, high, strict=True)))

    def _split(self, box: Box, spread: Vector) -> tuple[Box, Box]:
        """The interval whose program is least one output's, in two."""
        at = np.array(box)
        low, high = self.grid[at.T]
        scores = np.where(at[:, 0] == at[:, 1], -1.0, spread + _WIDTH * (high - low))
        k = int(np.argmax(scores))
        (a, b), middle = box[k], sum(box[k]) // 2
        halves = ((a, middle), (middle if b - a > 1 else b, b))
        first, second = ((*box[:k], half, *box[k + 1 :]) for half in halves)
        return first, second

    # Bounds.

    def _program(self, outputs: Vector) -> tuple[float, OutputDual, Vector] | None:
        """The program with these outputs: its value, its dual, and its laws."""
        if outputs.size not in self._problems:
            points, share = between_ends(self._middles)
            problem = grid_problem(points, outputs.size, "absolute", weights=share, symmetric=False)
            self._problems[outputs.size] = problem
        problem = self._problems[outputs.size]
        solution = problem.solve(self.epsilon, outputs)
        if solution.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt
        if solution.x is None or solution.objective is None or solution.row_dual is None:
            return None
        laws = problem.model.laws(solution.x)
        return solution.objective, OutputDual.of(self._middles, solution.row_dual), laws

    def _bounded(self, box: Box, target: float) -> tuple[float, Vector]:
        """A proven bound for a box, and how far the program is from one output in each interval."""
        points = np.union1d(np.array(box).ravel(), self._between(box))
        inside = np.unique(np.concatenate([np.arange(a, b + 1) for a, b in box]))
        best, spread = -math.inf, np.ones(self.m)
        for _ in range(4):
            program = self._program(self.grid[points])
            if program is None:
                break
            value, dual, laws = program
            h = dual.price(self.grid[inside], self.ratio)
            between = np.minimum(h[:-1], h[1:]) - self.dip[inside[:-1]]
            lowest = min(float(h.min()), float(between[np.diff(inside) == 1].min(initial=math.inf)))
            spread = self._spread(box, points, laws)
            best = max(best, dual.total + min(0.0, lowest))
            if best >= target:
                self._keep(dual)
            if best >= target or value < target:
                break
            more = np.union1d(points, inside[_valleys(h)[:6]])
            if more.size == points.size:
                break
            points = more
        return best, spread

    def _between(self, box: Box) -> Positions:
        """Points inside wide intervals, where costs are not affine."""
        points = []
        first, last = np.searchsorted(self.grid, [-1.0, 1.0]).tolist()
        for a, b in box:
            lower, upper = max(a, first), min(b, last)
            if upper > lower:
                count = math.ceil((self.grid[upper] - self.grid[lower]) / 0.1)
                points += [round(lower + (upper - lower) * k / count) for k in range(count + 1)]
        return np.array(points, dtype=np.intp)

    def _spread(self, box: Box, points: Positions, laws: Vector) -> Vector:
        """How far the program is from one output in each interval, which would have one mean for all inputs:
        Σ_x |Σ_o p_x(o) (o - ō)| over the points of the interval, ō their mean."""
        outputs = self.grid[points]
        spread = []
        for a, b in box:
            own = laws * ((points >= a) & (points <= b))
            mean = (own @ outputs).sum() / max(own.sum(), 1e-300)
            spread.append(np.abs(own @ (outputs - mean)).mean())
        return np.array(spread)

    def _keep(self, dual: OutputDual) -> None:
        """Into the pool: T, and a lower bound of h on every cell of the grid."""
        h = dual.price(self.grid, self.ratio)
        low = np.minimum(h[:-1], h[1:]) - self.dip
        self._totals = np.append(self._totals[-_POOL:], dual.total)
        self._low = np.concatenate([self._low[-_POOL:], low[None]])

    def _by_pool(self, box: Box) -> float:
        """The best bound of the duals in the pool."""
        last, worst = self.grid.size - 2, np.zeros(self._totals.size)
        for a, b in box:
            cells = slice(min(a, last), max(b, min(a, last) + 1))
            worst = np.minimum(worst, self._low[:, cells].min(axis=1))
        return float((self._totals + worst).max(initial=-math.inf))

    # The search.

    @property
    def bound(self) -> float:
        """Proven now: the least bound of the open boxes, and of the closed ones."""
        return min(self.closed, self.open.bound)

    def advance(self, target: float) -> None:
        """Bound the open box with the least bound by its own program, and split it unless that closes it."""
        known, box = self.open.bound, self.open.first  # it stays open until its halves are: an interrupt loses nothing
        bound, spread = max(known, self._by_pool(box)), np.ones(self.m)
        if bound < target:
            proven, spread = self._bounded(box, target)
            bound = max(bound, proven)
        self.boxes += 1
        self.open.pop()
        if bound >= target or all(a == b for a, b in box):  # of single outputs nothing is left to split
            self.closed = min(self.closed, bound, target)
        else:
            for half in self._split(box, spread):
                self._put(bound, half)

    def to_dict(self) -> Record:
        """The state, for JSON."""
        boxes = [[known if math.isfinite(known) else None, [list(pair) for pair in box]] for known, box in self.open]
        closed = self.closed if math.isfinite(self.closed) else None
        return self.given | {"closed": closed, "boxes": self.boxes, "seconds": self.seconds, "open": boxes}

    def restore(self, state: Record) -> None:
        """Go on from `to_dict`. Raises KeyError, TypeError or ValueError for another state."""
        boxes: OpenNodes[Box] = OpenNodes()
        for known, box in state["open"]:
            pairs = tuple((int(a), int(b)) for a, b in box)
            if len(pairs) != self.m or not all(0 <= a <= b < self.grid.size for a, b in pairs):
                raise ValueError("boxes of other outputs")
            boxes.put(-math.inf if known is None else float(known), pairs)
        self.closed = math.inf if state["closed"] is None else float(state["closed"])
        self.boxes, self.seconds, self.open = int(state["boxes"]), float(state["seconds"]), boxes

    def write(self, file: Path | str) -> None:
        """Write the state, with a checksum that guards against damage, not against somebody who writes another one."""
        body = json.dumps(self.to_dict(), sort_keys=True)
        digest = hashlib.sha256(body.encode()).hexdigest()
        write_whole(file, f'{{"sha256": "{digest}", "proof": {body}}}\n'.encode())

    def read(self, file: Path | str) -> None:
        """Go on from a file. Raises CorruptFile."""
        with named(file):
            data = parse_json(read_text(file))
            try:
                state, digest = data["proof"], data["sha256"]
                if hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest() != digest:
                    raise ValueError("damaged")
                if any(state[name] != value for name, value in self.given.items()):
                    raise CorruptFile("is a proof of another request; name another proof_file.")
                self.restore(state)
            except (KeyError, TypeError, ValueError):
                raise CorruptFile("is not a whole proof over outputs; remove it, or name another proof_file.") from None


def prove_outputs(
    outputs: int,
    epsilon: float,
    reach: float,
    objective: float,
    *,
    seconds: float = 300.0,
    file: Path | str | None = None,
    progress: Progress = silent,
) -> Proven:
    """A lower bound for at most m outputs in [-reach, reach], inputs in [-1, 1]; see the module.

    objective: what is to be proven optimal; the proof ends within 5e-4 of it (relative), or after so many
    seconds of the processor. file: where the search is kept, every half a minute and when it ends or is interrupted,
    and gone on from. Raises CorruptFile for a file that holds another search.
    """
    target = objective * (1 - _TOLERANCE)
    cells = 40 if epsilon < 0.75 else 80 if epsilon < 2.5 else 160
    search = OutputProof(outputs, epsilon, reach, cells=cells, step=0.005 if epsilon < 2.5 else 0.0025)
    from_file = file is not None and is_there(file)
    if file is not None and from_file:
        search.read(file)
    before, stopped = search.seconds, False
    whole, shown, saved = Deadline(seconds, cpu=True), Deadline(2), Deadline(30)
    try:
        while search.open and not whole.passed:
            search.advance(target)
            search.seconds = before + whole.elapsed
            if shown.passed:
                shown = Deadline(2)
                progress(
                    f"proof: {search.boxes} boxes, {len(search.open)} open, nothing below {search.bound:.6f} "
                    f"({objective:.6f} reached)"
                )
            if file is not None and saved.passed:
                saved = Deadline(30)
                search.write(file)
    except KeyboardInterrupt:
        stopped = True
    finally:
        if file is not None:
            search.write(file)
        search.close()
    closed = not search.open and not stopped and search.bound >= target
    return Proven(search.bound, closed, stopped, search.boxes, from_file)


def _valleys(h: Vector) -> Positions:
    """Where h is negative and least among its neighbours, the lowest first."""
    padded = np.concatenate([[np.inf], h, [np.inf]])
    low = np.flatnonzero((h <= padded[:-2]) & (h <= padded[2:]) & (h < 0))
    return low[np.argsort(h[low], kind="stable")]
