"""A proof over all outputs: no unbiased ε-private mechanism with at most m outputs within ±reach errs less.

The class: every mechanism on real inputs in [-1, 1] (no knots, no form of the laws), at most m outputs, all in
[-reach, reach]; mean absolute error, uniform inputs. Branch and bound over boxes of outputs o_1 <= ... <= o_m:

* A law exists only if o_1 <= -r and o_m >= r, r the least reach; mirror images (o_1 + o_m < 0) are left out.
* A box is relaxed to a linear program whose outputs are its intervals' ends (and points between, where the box's dual
  prices them below 0), for laws at the middles of cells. Only its dual is used: made into functions α and β, it bounds
  every mechanism whose outputs lie in the box (models.output_dual), computed afresh with rounding accounted for.
* Where h falls below 0, α is lowered by a constant c before that is held against the bound: T loses 2 c, h gains 2 c
  where all g >= 0 and 2 e^ε c where all are below, as for an output that is drawn most often everywhere.
* The box with the least bound is split next, the interval that counts most at its middle, so the least bound of the
  open boxes is proven at any time. Halves share their end: no output is between them.

Outputs in a box are bounded by h at points of its intervals, ±1 among them and finer where |o| < 1, less what
h may fall between two of them. The search can be written to a file and go on from it.

An interval of width w for one output leaves two masses at its ends, of which each input takes the nearer one: the
relaxation loses in proportion to w. Of all four at ε = 4 that is .77 w of the error, so that 1e-3 takes intervals of
1e-3 where the error itself is within 1e-3 over some .03: no proof of minutes. (Duals interpolated between the corners
of a box lose more, as they jump in x by as much as ever where the outputs have hardly moved.)
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
from solvers.arrays import Pair, Positions, Vector
from solvers.search import Deadline, OpenNodes
from solvers.solution import Termination
from workbench.errors import CorruptFile
from workbench.exact.objects import FloatPair, Progress, Record
from workbench.families.quantizer.laws import LawProblem, between_ends, grid_problem, silent
from workbench.io.files import is_there, named, parse_json, read_text, write_whole

Box = tuple[FloatPair, ...]  # an interval for each output

_TOLERANCE = 5e-4  # relative: how near to what is to be proven optimal a proof ends
_LOWERED = 3  # how often α is lowered, at most
_WIDTH = 1e-3  # how much an interval's width counts beside its spread, when a box is split
_STEP = 0.005  # at most between points of [-1, 1] at which h is computed


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

    outputs: m; epsilon; reach: the largest output in size (>= the least reach).
    """

    def __init__(self, outputs: int, epsilon: float, reach: float) -> None:
        self.given = {"format": 2, "outputs": outputs, "epsilon": epsilon, "reach": reach}
        self.m, self.epsilon = outputs, epsilon
        self.ratio = largest_ratio(math.nextafter(epsilon, math.inf))
        least = max(1.0, math.nextafter(math.nextafter(min(smallest_reach(epsilon), reach), 0.0), 0.0))
        far = math.nextafter(reach, math.inf)
        # of four outputs at large ε intervals' widths lose more than cells do
        cells = 40 if epsilon < 0.75 else 80 if epsilon < 2.5 or outputs > 3 else 160
        self._middles: Vector = np.asarray(-1 + 2 / cells * (np.arange(cells) + 0.5), dtype=np.float64)
        self._problems: dict[int, LawProblem] = {}
        self.closed = math.inf  # what is proven of the closed boxes
        self.boxes, self.seconds = 0, 0.0
        self.open: OpenNodes[Box] = OpenNodes()
        self.open.put(-math.inf, ((-far, -least), *[(-far, far)] * (outputs - 2), (least, far)))

    def close(self) -> None:
        """Give the solver's resources back."""
        for problem in self._problems.values():
            problem.close()
        self._problems = {}

    def _put(self, bound: float, box: Box) -> None:
        """An open box, its intervals in order; nothing when no outputs are in it, or only mirror images."""
        low, high = np.array(box).T
        low, high = np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1]
        if (low <= high).all() and high[0] + high[-1] >= 0:
            self.open.put(bound, tuple(zip(low.tolist(), high.tolist(), strict=True)))

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
        return solution.objective, OutputDual.of(self._middles, solution.row_dual), problem.model.laws(solution.x)

    def _bounded(self, box: Box, target: float) -> tuple[float, Vector]:
        """A proven bound for a box, and how far the program is from one output in each interval."""
        places, dips = self.places(box)
        points, best, spread = np.unique(box), -math.inf, np.ones(self.m)
        while program := self._program(points):
            value, dual, laws = program
            spread = self._spread(box, points, laws)
            for _ in range(_LOWERED):
                h = dual.price(places.ravel(), self.ratio).reshape(places.shape)
                lowest = float((np.minimum(h[:-1], h[1:]) - dips).min())
                best = max(best, dual.total + min(0.0, lowest))
                if best >= target or lowest >= 0 or dual.total < target:
                    break
                dual = dual.lowered(-lowest / (2 + 2 * (self.ratio - 1) / self.m))
            if best >= target or value < target:
                break
            valleys = places[_valleys(h)]
            more = valleys[~np.isin(valleys, points)][:6]
            if not more.size:
                break
            points = np.union1d(points, more)
        return best, spread

    def places(self, box: Box) -> Pair:
        """Points of every interval, ±1 among them, and what h may be below its values at two that follow each other.
        Shapes (n, m), (n - 1, m)."""
        low, high = np.array(box).T
        first, last = np.clip(-1.0, low, high), np.clip(1.0, low, high)
        inner = np.linspace(first, last, max(5, 1 + math.ceil(float((last - first).max()) / _STEP)))
        dips = self.ratio * np.diff(inner, axis=0) ** 2 / 6 * (1 + 1e-9)
        return np.concatenate([[low], inner, [high]]), np.pad(dips, ((1, 1), (0, 0)))

    def _spread(self, box: Box, points: Vector, laws: Vector) -> Vector:
        """How far the program is from one output in each interval, which would have one mean for all inputs:
        Σ_x |Σ_o p_x(o) (o - ō)| over the points of the interval, ō their mean."""
        spread = []
        for a, b in box:
            own = laws * ((points >= a) & (points <= b))
            mean = (own @ points).sum() / max(own.sum(), 1e-300)
            spread.append(np.abs(own @ (points - mean)).mean())
        return np.array(spread)

    # The search.

    @property
    def bound(self) -> float:
        """Proven now: the least bound of the open boxes, and of the closed ones."""
        return min(self.closed, self.open.bound)

    def advance(self, target: float) -> None:
        """Bound the open box with the least bound by its own program, and split it unless that closes it."""
        known, box = self.open.bound, self.open.first  # it stays open until its halves are: an interrupt loses nothing
        proven, spread = self._bounded(box, target)
        bound = max(known, proven)
        self.boxes += 1
        self.open.pop()
        if bound >= target:
            self.closed = min(self.closed, bound)
            return
        # the interval whose program is least one output's, in two
        k = int(np.argmax(spread + _WIDTH * np.diff(box)[:, 0]))
        a, b = box[k]
        for half in ((a, (a + b) / 2), ((a + b) / 2, b)):
            self._put(bound, (*box[:k], half, *box[k + 1 :]))

    def to_dict(self) -> Record:
        """The state, for JSON."""
        boxes = [[known if math.isfinite(known) else None, [list(pair) for pair in box]] for known, box in self.open]
        closed = self.closed if math.isfinite(self.closed) else None
        return self.given | {"closed": closed, "boxes": self.boxes, "seconds": self.seconds, "open": boxes}

    def restore(self, state: Record) -> None:
        """Go on from `to_dict`. Raises KeyError, TypeError or ValueError for another state."""
        boxes: OpenNodes[Box] = OpenNodes()
        for known, box in state["open"]:
            pairs = tuple((float(a), float(b)) for a, b in box)
            if len(pairs) != self.m or not all(a <= b for a, b in pairs):
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
    search = OutputProof(outputs, epsilon, reach)
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


def _valleys(h: Vector) -> tuple[Positions, Positions]:
    """Where h is negative and least among its neighbours in a column, the lowest first."""
    padded = np.pad(h, ((1, 1), (0, 0)), constant_values=np.inf)
    row, column = np.nonzero((h <= padded[:-2]) & (h <= padded[2:]) & (h < 0))
    order = np.argsort(h[row, column], kind="stable")
    return row[order], column[order]
