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
import heapq
import itertools
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.output_dual import OutputDual, largest_ratio
from models.quantizer import smallest_reach
from solvers.solution import Termination
from workbench.errors import CorruptFile
from workbench.families.quantizer.laws import LawProblem
from workbench.io.files import is_there, named, parse_json, read_text, write_whole

__all__ = ["OutputProof", "Proven", "prove_outputs"]

Vector = NDArray[np.float64]
Box = tuple[tuple[int, int], ...]  # an interval of grid points for each output
Progress = Callable[[str], None]

_POOL = 600  # duals that are kept to close boxes without a program
_OUTER = 0.15  # how much the width of an interval beyond ±1 counts against one inside, when a box is split


@dataclass(frozen=True)
class Proven:
    """bound: no mechanism of the class errs less; closed: to the tolerance; stopped: by Ctrl-C; boxes: bounded so far;
    seconds: of all runs; from_file: the search went on from a file, whose bounds are taken as they stand there."""

    bound: float
    closed: bool
    stopped: bool
    boxes: int
    seconds: float
    from_file: bool = False


class OutputProof:
    """The state of a proof: open boxes with their bounds.

    outputs: m; epsilon; reach: the largest output in size (>= the least reach); cells: of [-1, 1] in the programs;
    step: of the grid of outputs in [-1, 1].
    """

    def __init__(
        self, outputs: int, epsilon: float, reach: float, *, cells: int = 80, step: float = 0.005, wide: int = 64
    ) -> None:
        self.m, self.epsilon, self.reach = outputs, epsilon, reach
        self.ratio = largest_ratio(math.nextafter(epsilon, math.inf))
        least = max(1.0, math.nextafter(math.nextafter(min(smallest_reach(epsilon, 1.0), reach), 0.0), 0.0))
        inner = np.arange(1, round(1 / step) + 1) * step
        inner[-1] = 1.0
        beyond = np.concatenate([np.linspace(1.0, least, wide // 2 + 1)[1:], np.linspace(least, reach, wide + 1)[1:]])
        beyond[-1] = math.nextafter(reach, math.inf)
        positive = np.concatenate([inner, beyond])
        self.grid = np.concatenate([-positive[::-1], [0.0], positive])
        self.zero = positive.size
        self.least = self.zero + inner.size + wide // 2  # where the least reach is
        # what h may be below its values at two neighbouring points of the grid
        gap = np.diff(self.grid)
        middle = (self.grid[1:] + self.grid[:-1]) / 2
        self.dip = np.where(np.abs(middle) < 1, self.ratio * gap**2 / 6 * (1 + 1e-9), 0.0)
        self.middles: Vector = np.asarray(-1 + 2 / cells * (np.arange(cells) + 0.5), dtype=np.float64)
        points = np.concatenate([[-1.0], self.middles, [1.0]])
        share = np.concatenate([[0.0], np.full(cells, 1 / cells), [0.0]])

        def losses(outputs: Vector) -> tuple[Vector, Vector]:
            gap = outputs[None, :] - points[:, None]
            return share[:, None] * np.abs(gap), share[:, None] * np.sign(gap)

        self._points, self._losses = points, losses
        self._problems: dict[int, LawProblem] = {}
        self.given = {"format": 1, "outputs": outputs, "epsilon": epsilon, "reach": reach, "cells": cells, "step": step}
        self.closed = math.inf  # what is proven of the closed boxes
        self._pending: tuple[float, Box] | None = None
        self.pool: list[tuple[float, Vector]] = []
        self._stacked: tuple[Vector, Vector] | None = None
        self.open: list[tuple[float, Box]] = []
        self.boxes = 0
        self.seconds = 0.0
        last = self.grid.size - 1
        ends = [(0, self.zero - (self.least - self.zero)), (self.least, last)]
        self._put(-math.inf, (ends[0], *[(0, last)] * (outputs - 2), ends[1]))

    def close(self) -> None:
        """Give the solver's resources back."""
        for problem in self._problems.values():
            problem.close()
        self._problems = {}

    # Boxes.

    def _put(self, bound: float, box: Box) -> None:
        """An open box, its intervals in order; nothing when no outputs are in it, or only mirror images."""
        low = list(itertools.accumulate((a for a, _ in box), max))
        high = list(itertools.accumulate((b for _, b in reversed(box)), min))[::-1]
        if any(a > b for a, b in zip(low, high, strict=True)):
            return
        if self.grid[high[0]] + self.grid[high[-1]] < 0:
            return
        heapq.heappush(self.open, (bound, tuple(zip(low, high, strict=True))))

    def _split(self, box: Box, masses: Vector) -> tuple[Box, Box]:
        """The interval that leaves the program most freedom, halved."""
        scores = []
        for (a, b), mass in zip(box, masses, strict=True):
            low, high = self.grid[a], self.grid[b]
            inside = max(0.0, min(high, 1.0) - max(low, -1.0))
            scores.append((inside + _OUTER * (high - low - inside)) * (0.05 + mass) if b > a else -1.0)
        k = int(np.argmax(scores))
        a, b = box[k]
        if b - a <= 1:
            return (*box[:k], (a, a), *box[k + 1 :]), (*box[:k], (b, b), *box[k + 1 :])
        middle = (a + b) // 2
        return (*box[:k], (a, middle), *box[k + 1 :]), (*box[:k], (middle, b), *box[k + 1 :])

    # Bounds.

    def _program(self, outputs: Vector) -> tuple[float, OutputDual, Vector] | None:
        """The program with these outputs: its value, its dual, and how often each output is drawn."""
        if outputs.size not in self._problems:
            self._problems[outputs.size] = LawProblem(self._points, outputs.size, self._losses, symmetric=False)
        problem = self._problems[outputs.size]
        solution = problem.solve(self.epsilon, outputs)
        if solution.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt
        if solution.x is None or solution.objective is None or solution.row_dual is None:
            return None
        drawn = problem.model.laws(solution.x).mean(axis=0)
        return solution.objective, OutputDual.of(self.middles, solution.row_dual), drawn

    def _bounded(self, box: Box, target: float) -> tuple[float, Vector]:
        """A proven bound for a box, and how much its intervals are spread by the program."""
        points = sorted({*itertools.chain.from_iterable(box), *self._between(box)})
        best, masses = -math.inf, np.ones(self.m)
        for _ in range(4):
            program = self._program(self.grid[points])
            if program is None:
                break
            value, dual, drawn = program
            inside = self._cover(box)
            h = dual.price(self.grid[inside], self.ratio)
            low = self._cells_low(inside, h)
            bound = dual.total + min(0.0, float(low.min()))
            masses = self._spread(box, points, drawn)
            best = max(best, bound)
            if best >= target:
                self._keep(dual)
                break
            if value < target:
                break
            more = [int(inside[k]) for k in _valleys(inside, h)][:6]
            if not set(more) - set(points):
                break
            points = sorted({*points, *more})
        return best, masses

    def _between(self, box: Box) -> list[int]:
        """Points inside wide intervals, where costs are not affine."""
        points: list[int] = []
        for a, b in box:
            lower = max(a, int(np.searchsorted(self.grid, -1.0)))
            upper = min(b, int(np.searchsorted(self.grid, 1.0)))
            if upper > lower:
                count = math.ceil((self.grid[upper] - self.grid[lower]) / 0.1)
                points += [round(lower + (upper - lower) * k / count) for k in range(count + 1)]
        return points

    def _cover(self, box: Box) -> NDArray[np.intp]:
        """The grid points of a box's intervals, in order."""
        return np.array(sorted(set().union(*(range(a, b + 1) for a, b in box))), dtype=np.intp)

    def _cells_low(self, inside: NDArray[np.intp], h: Vector) -> Vector:
        """A lower bound of h at and between neighbouring grid points, one for each point."""
        low = h.copy()
        joined = np.diff(inside) == 1
        between = np.minimum(h[:-1], h[1:]) - self.dip[inside[:-1]]
        low[:-1] = np.where(joined, np.minimum(low[:-1], between), low[:-1])
        return low

    def _spread(self, box: Box, points: list[int], drawn: Vector) -> Vector:
        """How often the program draws from the less drawn half of each interval."""
        at, result = np.array(points), []
        for a, b in box:
            within = (at >= a) & (at <= b)
            left = float(drawn[within & (at <= (a + b) / 2)].sum())
            result.append(min(left, float(drawn[within].sum()) - left))
        return np.array(result)

    def _keep(self, dual: OutputDual) -> None:
        """Into the pool: T, and a lower bound of h on every cell of the grid."""
        h = dual.price(self.grid, self.ratio)
        self.pool.append((dual.total, np.minimum(h[:-1], h[1:]) - self.dip))
        if len(self.pool) > _POOL:
            del self.pool[: _POOL // 2]
        self._stacked = None

    def _by_pool(self, box: Box) -> float:
        """The best bound of the duals in the pool."""
        if not self.pool:
            return -math.inf
        if self._stacked is None:
            self._stacked = np.array([t for t, _ in self.pool]), np.array([low for _, low in self.pool])
        totals, low = self._stacked
        worst = np.zeros(totals.size)
        last = self.grid.size - 1
        for a, b in box:
            cells = slice(min(a, last - 1), max(b, min(a, last - 1) + 1))
            worst = np.minimum(worst, low[:, cells].min(axis=1))
        return float((totals + worst).max())

    # The search.

    @property
    def bound(self) -> float:
        """Proven now: the least bound of the open boxes, and of the closed ones."""
        waiting = [self._pending[0]] if self._pending else []
        return min([self.closed, *waiting, *(known for known, _ in self.open[:1])])

    def advance(self, target: float) -> None:
        """Bound the open box with the least bound by its own program, and split it unless that closes it."""
        self._pending = heapq.heappop(self.open)  # open until its halves are, wherever an interrupt comes
        known, box = self._pending
        self.boxes += 1
        bound, masses = max(known, self._by_pool(box)), np.ones(self.m)
        if bound < target:
            proven, masses = self._bounded(box, target)
            bound = max(bound, proven)
        if bound >= target or all(a == b for a, b in box):  # of single outputs nothing is left to split
            self.closed = min(self.closed, bound, target)
        else:
            for half in self._split(box, masses):
                self._put(bound, half)
        self._pending = None

    def to_dict(self) -> dict[str, Any]:
        """The state, for JSON."""
        boxes = [*self.open, *([self._pending] if self._pending else [])]
        finite = {"closed": self.closed if math.isfinite(self.closed) else None}
        return (
            self.given
            | finite
            | {
                "boxes": self.boxes,
                "seconds": self.seconds,
                "open": [
                    [known if math.isfinite(known) else None, [list(pair) for pair in box]] for known, box in boxes
                ],
            }
        )

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `to_dict`. Raises KeyError, TypeError or ValueError for another state."""
        last = self.grid.size - 1
        boxes: list[tuple[float, Box]] = []
        for known, box in state["open"]:
            pairs = tuple((int(a), int(b)) for a, b in box)
            if len(pairs) != self.m or not all(0 <= a <= b <= last for a, b in pairs):
                raise ValueError("boxes of other outputs")
            boxes.append((-math.inf if known is None else float(known), pairs))
        self.closed = math.inf if state["closed"] is None else float(state["closed"])
        self.boxes, self.seconds, self.open = int(state["boxes"]), float(state["seconds"]), boxes
        heapq.heapify(self.open)


def prove_outputs(
    outputs: int,
    epsilon: float,
    reach: float,
    objective: float,
    *,
    tolerance: float = 5e-4,
    seconds: float = 300.0,
    file: Path | str | None = None,
    progress: Progress = lambda line: None,
) -> Proven:
    """A lower bound for at most m outputs in [-reach, reach], inputs in [-1, 1]; see the module.

    objective: what is to be proven optimal; the proof ends within `tolerance` of it (relative), or after so many
    seconds of the processor. file: where the search is kept, every half a minute and when it ends or is interrupted,
    and gone on from. Raises CorruptFile for a file that holds another search.
    """
    target = objective * (1 - tolerance)
    cells = 40 if epsilon < 0.75 else 80 if epsilon < 2.5 else 160
    search = OutputProof(outputs, epsilon, reach, cells=cells, step=0.005 if epsilon < 2.5 else 0.0025)
    from_file = file is not None and is_there(file)
    if file is not None and from_file:
        _read(search, Path(file))
    begin, before = time.process_time(), search.seconds
    shown = saved = begin
    stopped = False
    try:
        while search.open and search.seconds - before < seconds:
            search.advance(target)
            now = time.process_time()
            search.seconds = before + now - begin
            if now - shown > 2:
                shown = now
                progress(
                    f"proof: {search.boxes} boxes, {len(search.open)} open, "
                    f"nothing below {search.bound:.6f} ({objective:.6f} reached)"
                )
            if file is not None and now - saved > 30:
                saved = now
                _write(search, Path(file))
    except KeyboardInterrupt:
        stopped = True
    finally:
        if file is not None:
            _write(search, Path(file))
        search.close()
    closed = not search.open and not stopped and search.bound >= target
    return Proven(search.bound, closed, stopped, search.boxes, search.seconds, from_file)


def _write(search: OutputProof, file: Path) -> None:
    body = json.dumps(search.to_dict(), sort_keys=True)
    digest = hashlib.sha256(body.encode()).hexdigest()
    write_whole(file, f'{{"sha256": "{digest}", "proof": {body}}}\n'.encode())


def _read(search: OutputProof, file: Path) -> None:
    """The state in a file. Its checksum guards against damage, not against somebody who writes another one."""
    with named(file):
        data = parse_json(read_text(file))
        try:
            state = data["proof"]
            whole = hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest() == data["sha256"]
            same = all(state[name] == value for name, value in search.given.items())
            if whole and same:
                search.restore(state)
                return
        except (KeyError, TypeError, ValueError):
            whole = False
        if not whole:
            raise CorruptFile("is not a whole proof over outputs; remove it, or name another proof_file.")
        raise CorruptFile("is a proof of another request; name another proof_file.")


def _valleys(inside: NDArray[np.intp], h: Vector) -> list[int]:
    """Where h is negative and least among its neighbours, the lowest first."""
    padded = np.concatenate([[np.inf], h, [np.inf]])
    low = (h <= padded[:-2]) & (h <= padded[2:]) & (h < 0)
    return sorted(np.flatnonzero(low).tolist(), key=lambda k: float(h[k]))
