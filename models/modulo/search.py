"""Branch and bound over violation patterns: every node is a linear program, every bound is checked.

The nodes are the patterns of `workbench.models.modulo.patterns`. A node whose solution breaks too
much for some shift is split at one partly paid pair (y < f although the pair is broken): kept on
one side, broken on the other. A node ends when its bound reaches the incumbent, when it is
infeasible, or when its solution is feasible for (13): a new incumbent. There are finitely many
patterns, so the search ends; the least bound of all ends is a lower bound on the optimum of the
relaxation, and so of (13).

A node's bound is not the solver's word: it is the Lagrangian bound of the duals, recomputed from
the data (`workbench.solvers.solution.lagrangian_bound`; all variables are bounded, so any duals
give a valid one, less what rounding can have added), or its parent's where that is larger. An
infeasible node is proven by its ray when that survives our check; otherwise `on_word` counts it. A
node whose program the solver cannot manage keeps what bound there is and is split like its parent;
the proof may then stay open, but is never claimed.

Where the pair's element has f(eta) far above a given delta and several of its pairs are free, the
split is at the element instead: f(eta) <= delta, or all its pairs kept. No PMF is lost, as one with
f(eta) > delta breaks no pair at eta. The light side mostly ends at once, and the heavy one decides
several pairs.

Branching: the pair with the largest product of its mass and the estimated gains of its two sides
(pseudocosts, learnt from the children, which are solved at once). The better child is explored
first, the rest by best bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.models.modulo.patterns import MIN_BROKEN_EXCESS, NoiseProblem, Relaxation
from workbench.solvers.arrays import Flags, Pair, Positions, Vector
from workbench.solvers.backend import Options
from workbench.solvers.contract import Backend
from workbench.solvers.search import Deadline, OpenNodes
from workbench.solvers.session import Session
from workbench.solvers.solution import Solution, Start, Termination

Pattern = NDArray[np.int8]

FREE, KEPT, BROKEN = 0, 1, 2
_LOOSE = 1e-10  # relative gap of a node's own program from which it is solved again, cold
_HEAVY = 2.0  # times delta: from this f(eta) on a node is split at the element
_TROUBLES = 50  # nodes that the solver cannot manage, at most
LIMIT_TERMINATIONS = frozenset(
    {
        Termination.TIME_LIMIT,
        Termination.ITERATION_LIMIT,
        Termination.NODE_LIMIT,
        Termination.INTERRUPTED,
        Termination.LICENCE,
    }
)


def with_tight_tolerances(options: Options, solver: Backend) -> Options:
    """Options with which linear programs prove what they should, as far as the solver has them and none is given.

    HiGHS's presolve finds feasible programs infeasible and bounded ones unbounded near the tolerances, and leaves no
    ray; dual values within the usual 1e-7 of feasibility prove bounds that are as loose.
    """
    wanted: dict[str, Any] = {"presolve": False, "dual_feasibility_tolerance": 1e-9}
    return replace(
        options,
        **{
            name: value
            for name, value in wanted.items()
            if name in solver.supported_options and getattr(options, name) is None
        },
    )


@dataclass(order=True)
class _Node:
    """A pattern with its bound; x and value are of its program or, unsolved, of its parent's.

    light: by column of f, the elements with f <= delta.
    """

    bound: float
    number: int
    pattern: Pattern = field(compare=False)
    light: Flags = field(compare=False)
    x: Vector = field(compare=False)
    value: float = field(compare=False)
    solved: bool = field(compare=False, default=True)


@dataclass
class PatternOutcome:
    """What a search found.

    Attributes:
        termination: OPTIMAL when the tree is exhausted (up to the gap), INFEASIBLE, or the limit that stopped it.
        value, x: the best solution of the relaxation that breaks at most delta, or the cutoff and None.
        bound: proven lower bound on the relaxation (capped by `value`).
        nodes, iterations, programs: work done; on_word: infeasible nodes without a checked ray.
        root: the solution of the first program, in which no pair is decided.
        last: the last answer of the solver, for its statuses and options.
    """

    termination: Termination
    value: float
    x: Vector | None
    bound: float
    nodes: int = 0
    iterations: int = 0
    programs: int = 0
    unchecked_infeasible: int = 0
    root: Vector | None = None
    last: Solution | None = None


def _scores(gains: Vector, counts: Vector, parts: Pair, pairs: Positions) -> Vector:
    """Product of the expected gains of both sides, times the mass at stake (heavy elements are decided first)."""
    product = parts[0] + parts[1]
    for side, part in enumerate(parts):
        known = counts[side, pairs]
        average = gains[side].sum() / max(1.0, counts[side].sum())
        rate = np.where(known > 0, gains[side, pairs] / np.maximum(known, 1.0), average)
        product = product * np.maximum(rate * part, 1e-12)
    return product


@dataclass
class PatternSearch:
    """The minimum over all patterns.

    gap: relative to max(1, |value|), as everywhere; nodes within it of the incumbent end.
    node_limit: nodes to branch on at most.
    early: let a node's program end where its duals prove that it cannot be better.
    """

    noise: NoiseProblem
    relaxation: Relaxation
    session: Session
    gap: float = 1e-9
    deadline: Deadline = field(default_factory=Deadline)
    node_limit: int | None = None
    can_stop_early: bool = True

    def __post_init__(self) -> None:
        self.elements = self.relaxation.program.parameters.get("most", (0,))[0]
        self.out = PatternOutcome(Termination.OPTIMAL, np.inf, None, np.inf)
        self.ends = np.inf  # least bound of the nodes that ended
        self.troubles = 0
        self.gains, self.counts = np.zeros((2, 2, self.relaxation.y.size))  # pseudocosts
        self.waiting: OpenNodes[_Node] = OpenNodes()
        self.node: _Node | None = None  # that is looked at

    def run(self, cutoff: float = np.inf) -> PatternOutcome:
        """The search; only solutions better than `cutoff` are looked for."""
        out = self.out
        out.value = cutoff
        try:
            self.node = self.solve_root()
            if self.node is None:
                out.termination = Termination.INFEASIBLE
            elif self.node.solved:
                out.root = self.node.x
            while self.node is not None or self.waiting:
                if self.node is None:
                    self.node = self.waiting.first_node
                    self.waiting.pop()
                self.node = self._next(self.node)
        except _Stopped as stopped:
            out.termination = stopped.why
            # an interrupted node keeps its own bound, whichever of its children were solved
        except KeyboardInterrupt:
            out.termination = Termination.INTERRUPTED
        left = [] if self.node is None else [self.node.bound]
        out.bound = min([self.ends, out.value, self.waiting.lower_bound, *left])
        if (
            out.termination not in (Termination.OPTIMAL, Termination.INFEASIBLE)
            and self.node is None
        ):
            out.bound = -np.inf  # stopped before the root was solved
        return out

    def _next(self, node: _Node) -> _Node | None:
        """The better child of a node, the other one open; None where the node ends."""
        out, ended = self.out, node.bound >= self.closing_bound
        choice = np.zeros(0, dtype=np.intp) if ended else self.branching_pairs(node)
        if not choice.size:
            self.ends = min(self.ends, node.bound)
            if not ended and node.solved and node.value < out.value:
                out.value, out.x = node.value, node.x
            return None
        if self.node_limit is not None and out.nodes >= self.node_limit:
            raise _Stopped(Termination.NODE_LIMIT)
        out.nodes += 1
        paid = node.x[self.relaxation.y[choice]]
        parts = (paid, node.x[self.relaxation.source[choice]] - paid)
        pick = int(np.argmax(_scores(self.gains, self.counts, parts, choice)))
        pair = choice[pick]
        children = []
        sides, alone = self.split_node(node, pair)
        for side, (pattern, light) in enumerate(sides):
            child = self.solve_node(pattern, light, node)
            if child is None:
                continue
            children.append(child)
            if alone and node.solved and (child.solved or self.can_stop_early):
                # a cut off child's gain is at least what its bound says
                gain = max(0.0, (child.value if child.solved else child.bound) - node.value)
                self.gains[side, pair] += gain / max(float(parts[side][pick]), 1e-12)
                self.counts[side, pair] += 1
        children.sort()
        for child in children[1:]:
            self.waiting.put(child.bound, child)
        return children[0] if children else None

    @property
    def closing_bound(self) -> float:
        """The bound from which a node ends; no number without an incumbent."""
        return self.out.value - 0.9 * self.gap * max(1.0, abs(self.out.value))

    def solve_root(self) -> _Node | None:
        """The node in which nothing is decided, or None when it is infeasible."""
        free = np.full(self.relaxation.y.size, FREE, dtype=np.int8)
        return self.solve_node(free, np.zeros(self.elements, dtype=bool), None)

    def split_node(self, node: _Node, pair: int) -> tuple[list[tuple[Pattern, Flags]], bool]:
        """The patterns that a node is split into at a pair, and whether only that pair is decided."""
        element, delta = self.relaxation.source[pair], self.noise.delta
        kept = node.pattern.copy()
        if delta is not None and node.x[element] > _HEAVY * delta and not node.light[element]:
            free = (self.relaxation.source == element) & (node.pattern == FREE)
            if np.count_nonzero(free) > 1:
                kept[free] = KEPT
                light = node.light.copy()
                light[element] = True
                return [(kept, node.light), (node.pattern, light)], False
        broken = node.pattern.copy()
        kept[pair], broken[pair] = KEPT, BROKEN
        return [(kept, node.light), (broken, node.light)], True

    def solve_node(self, pattern: Pattern, light: Flags, parent: _Node | None) -> _Node | None:
        """A node, or None when it is infeasible. Raises _Stopped at a limit or in too much numerical trouble."""
        values = self.relaxation.values(self.noise, pattern == KEPT, pattern == BROKEN, light)
        bound, best = -np.inf if parent is None else parent.bound, None
        for start in (Start.HOT, Start.COLD):
            answer = self._answer(values, start, self.out.value if self.can_stop_early else None)
            if answer.termination is Termination.CUTOFF:
                if answer.bound is not None and answer.bound >= self.closing_bound:
                    return self._unsolved(pattern, light, max(bound, answer.bound), parent)
                answer = self._answer(
                    values, start
                )  # by rounding the bound falls short of what it should prove
            if answer.termination is Termination.INFEASIBLE and (
                answer.ray is not None or start is Start.COLD
            ):
                self.out.unchecked_infeasible += answer.ray is None
                return None
            bound = max(bound, -np.inf if answer.bound is None else answer.bound)
            if (
                answer.is_optimal
                and answer.x is not None
                and answer.objective is not None
                and bound > -np.inf
            ):
                best = _Node(bound, self.out.programs, pattern, light, answer.x, answer.objective)
                if answer.objective - bound <= _LOOSE * max(1.0, abs(answer.objective)):
                    break
        if best is not None:
            best.bound = bound
            return best
        self.troubles += 1
        if self.troubles > _TROUBLES or (parent is None and bound == -np.inf):
            raise _Stopped(Termination.NUMERICAL)
        return self._unsolved(
            pattern, light, bound, parent
        )  # the root has nothing to split, but its bound may do

    def _answer(
        self, values: dict[str, Vector], start: Start, cutoff: float | None = None
    ) -> Solution:
        """The program at these values, as far as a cutoff. Raises _Stopped at a limit."""
        if self.deadline.has_passed:
            raise _Stopped(Termination.TIME_LIMIT)
        answer = self.session.solve(
            values, start=start, cutoff=cutoff, time_limit=self.deadline.solver_time_limit
        )
        self.out.last = answer
        self.out.programs += 1
        self.out.iterations += answer.iterations or 0
        if answer.termination in LIMIT_TERMINATIONS:
            raise _Stopped(answer.termination)
        return answer

    def _unsolved(
        self, pattern: Pattern, light: Flags, bound: float, parent: _Node | None
    ) -> _Node:
        """A node without a solution of its own; it has its parent's."""
        x = np.zeros(self.relaxation.program.shape[1]) if parent is None else parent.x
        return _Node(
            bound,
            self.out.programs,
            pattern,
            light,
            x,
            bound if parent is None else parent.value,
            solved=False,
        )

    def branching_pairs(self, node: _Node) -> Positions:
        """Pairs to branch on: broken but not paid in full, of shifts that break more than delta; none when feasible."""
        relaxed, x = self.relaxation, node.x
        f = x[relaxed.source]
        broken = relaxed.broken_pairs(self.noise, x)
        delta = self.noise.delta
        limit = float(x[relaxed.program.block("delta").start]) if delta is None else delta
        mass = np.bincount(relaxed.shift[broken], f[broken], minlength=len(self.noise.shifts))
        over = mass > limit + MIN_BROKEN_EXCESS
        unpaid = (f - x[relaxed.y] > MIN_BROKEN_EXCESS) & (node.pattern == FREE)
        return np.flatnonzero(broken & over[relaxed.shift] & unpaid)


class _Stopped(Exception):
    def __init__(self, why: Termination) -> None:
        self.why = why
