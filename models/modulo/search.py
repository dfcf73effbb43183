"""Minimise the loss of PDP noise with δ > 0 over all choices of broken inequalities.

`PatternSearch` answers: what is the smallest loss of noise modulo n + 1 (or on a product of cyclic
groups) under (ε, δ)-PDP, and what lower bound is proven? It is a branch and bound. Every node is a
linear program, and every bound is checked. The problem is the mixed-integer program (13) of Kadam
et al. 2024, or a relaxation of it (`workbench.models.modulo.patterns`).

Notation and terms. f(η) is the mass of the noise value η (an element of the group), and μ is a
shift: a difference of neighbouring answers. A pair (η, μ) stands for the privacy inequality
f(η) <= e^ε f(η + μ). A pair is kept if its inequality holds, broken if it does not, and free if
this is undecided. For each shift μ, the elements of broken pairs may have at most mass δ together.
A pattern says for every pair whether it is kept, broken or free. y(η, μ) is the part of f(η) that
the linear program counts towards this limit δ. The pair is paid in full if y(η, μ) = f(η), and
partly paid if y(η, μ) < f(η) although the solution breaks the pair.

Nodes. A node is a pattern. If the broken pairs of one shift weigh more than δ in the solution of
its program, the node is split at a partly paid pair: in one child the pair is kept, in the other it
is broken. A node ends when its bound reaches the incumbent, when it is infeasible, or when its
solution is feasible for (13) and becomes the new incumbent. There are finitely many patterns, so
the search ends. The smallest bound of all ended nodes is a lower bound on the optimum of the
relaxation, and therefore of (13).

Bounds. The bound of a node is not the number that the solver reports. It is the Lagrangian bound of
the dual values, recomputed from the data (`workbench.solvers.solution.lagrangian_bound`). All
variables are bounded, so any dual values give a valid bound, minus possible rounding. If the bound
of the parent is larger, that bound is used. An infeasible node is proven by its ray (a vector of
multipliers of the rows) if the ray passes the check of the session; otherwise
`unchecked_infeasible` counts the node. If the solver fails on a program, the node keeps the largest
bound that is proven for it and is split at the solution of its parent. The proof may then stay
incomplete, but it is never claimed.

Splits at an element. If δ is given, f(η) is more than twice δ, and several pairs of η are free, the
node is split at η instead: in one child f(η) <= δ (the element is light), in the other all pairs of
η are kept. No PMF is lost, because a PMF with f(η) > δ breaks no pair of η. The light child usually
ends at once, and the other child decides several pairs.

Order. The node is split at the pair with the largest product of its mass and the estimated gains of
the two children (pseudocosts, which are learnt from the children, since these are solved at once).
The better child is explored first, the other nodes in the order of their bounds.
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

FREE = 0  # A free pair is undecided.
KEPT = 1  # A kept pair satisfies its inequality.
BROKEN = 2  # A broken pair may violate its inequality, at the price of its mass.

_MAX_NODE_GAP = 1e-10  # A node with a larger relative gap of its own program is solved again, cold.
# If f(eta) is above this times delta, the node is split at the element eta instead of at a pair.
_MIN_HEAVY_RATIO = 2.0
_MAX_FAILED_NODES = 50  # The search stops after this many nodes that the solver cannot manage.
_CLOSING_GAP_SHARE = 0.9  # A node ends when its gap is below this share of the allowed gap.
_MIN_GAIN = 1e-12  # Estimated gains and parts of a pair count at least this.
_TIGHT_DUAL_TOLERANCE = 1e-9  # Dual values are this near to feasible, so that bounds are tight.

# These terminations stop a search with the bound reached so far.
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
    """Return options with which linear programs prove tight bounds.

    Options that are set, and those that the solver does not have, stay as they are. HiGHS's
    presolve finds feasible programs infeasible and bounded ones unbounded near the tolerances, and
    leaves no ray. Dual values within the usual 1e-7 of feasibility prove bounds that are as loose.

    Args:
        options: options of the user.
        solver: the backend.
    """
    tight_options: dict[str, Any] = {
        "presolve": False,
        "dual_feasibility_tolerance": _TIGHT_DUAL_TOLERANCE,
    }

    def can_set(name: str) -> bool:
        """Check whether the solver has an option that the user left open."""
        return name in solver.supported_options and getattr(options, name) is None

    changes = {name: value for name, value in tight_options.items() if can_set(name)}
    return replace(options, **changes)


@dataclass(order=True)
class _Node:
    """A pattern with its bound.

    Attributes:
        bound: proven lower bound on the loss of every PMF with this pattern.
        number: number of the program, which orders nodes of equal bounds.
        pattern: FREE, KEPT or BROKEN for each pair, shape (pairs,).
        is_light: whether f <= delta is imposed on each element, by column of f, shape (masses,).
        x: solution of the program of this node, or of its parent if it is unsolved,
            shape (columns,).
        value: loss of the solution x.
        is_solved: whether x is a solution of its own program.
    """

    bound: float
    number: int
    pattern: Pattern = field(compare=False)
    is_light: Flags = field(compare=False)
    x: Vector = field(compare=False)
    value: float = field(compare=False)
    is_solved: bool = field(compare=False, default=True)


@dataclass
class PatternOutcome:
    """The result of a search.

    Attributes:
        termination: OPTIMAL if the tree is exhausted (up to the gap), INFEASIBLE, or the limit that
            stopped it.
        value: loss of the best solution of the relaxation whose broken pairs weigh at most delta
            for every shift, or the cutoff.
        x: this best solution, shape (columns,), or None.
        bound: proven lower bound on the relaxation, at most `value`.
        nodes: nodes that were split.
        iterations: iterations of the solver.
        programs: linear programs that were solved.
        unchecked_infeasible: infeasible nodes without a checked ray.
        root: solution of the first program, in which no pair is decided, shape (columns,), or None.
        last: last solution of the solver, for its statuses and options, or None.
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


def _branching_scores(
    gains: Vector,
    counts: Vector,
    parts: Pair,
    pairs: Positions,
) -> Vector:
    """Compute the score of each candidate pair; the node is split at the largest score.

    The score is the product of f(η) and of the estimated gains of both children, so heavy elements
    are decided first. `gains` and `counts` are the pseudocosts, shape (2, all pairs). `parts` are
    the paid and the unpaid part of f(η), and `pairs` the numbers of the candidates. The result has
    the shape (candidates,).
    """
    paid_masses, unpaid_masses = parts
    product = paid_masses + unpaid_masses
    for side, part in enumerate(parts):
        pair_counts = counts[side, pairs]
        mean_rate = gains[side].sum() / max(1.0, counts[side].sum())
        pair_rates = gains[side, pairs] / np.maximum(pair_counts, 1.0)
        rates = np.where(pair_counts > 0, pair_rates, mean_rate)
        product = product * np.maximum(rates * part, _MIN_GAIN)
    return product


@dataclass
class PatternSearch:
    """A search for the minimum over all patterns.

    Another kind of split goes into `split_node`, which returns the patterns of the children; its
    program must be able to state them (`Relaxation.values`).

    Attributes:
        noise: group, shifts, budgets and loss of the noise.
        relaxation: linear program that all patterns share; a pattern changes its numbers.
        session: solver session of `relaxation.program`.
        gap: a node ends when its bound is within this gap of the value of the incumbent, relative
            to max(1, |value|).
        deadline: deadline at which the search stops.
        node_limit: largest number of nodes to split, or None.
        can_stop_early: whether a node's program may end when its duals prove that it cannot be
            better.
        outcome: the result so far.
        element_count: number of elements with a mass of their own, 0 if delta is a variable.
        ended_bound: smallest bound of the nodes that ended.
        failed_nodes: number of nodes on which the solver failed.
        gains: pseudocosts: sum of the gains per unit of mass that were observed when a pair was
            kept (row 0) or broken (row 1), shape (2, pairs).
        counts: number of these observations, shape (2, pairs).
        waiting: nodes that are still to be split.
        node: the node that is split now, or None.
    """

    noise: NoiseProblem
    relaxation: Relaxation
    session: Session
    gap: float = 1e-9
    deadline: Deadline = field(default_factory=Deadline)
    node_limit: int | None = None
    can_stop_early: bool = True

    def __post_init__(self) -> None:
        # The parameter "most" has the largest mass of each element.
        (self.element_count,) = self.relaxation.program.parameters.get("most", (0,))
        self.outcome = PatternOutcome(Termination.OPTIMAL, np.inf, x=None, bound=np.inf)
        self.ended_bound = np.inf
        self.failed_nodes = 0
        self.gains = np.zeros((2, self.relaxation.y.size))
        self.counts = np.zeros((2, self.relaxation.y.size))
        self.waiting: OpenNodes[_Node] = OpenNodes()
        self.node: _Node | None = None

    def run(self, cutoff: float = np.inf) -> PatternOutcome:
        """Run the search.

        Args:
            cutoff: only solutions of smaller values are searched.
        """
        outcome = self.outcome
        outcome.value = cutoff
        try:
            self.node = self.solve_root()
            if self.node is None:
                outcome.termination = Termination.INFEASIBLE
            elif self.node.is_solved:
                outcome.root = self.node.x
            while self.node is not None or self.waiting:
                if self.node is None:
                    self.node = self.waiting.first_node
                    self.waiting.pop()
                self.node = self._explore(self.node)
        except _SearchStopped as stopped:
            # A stopped node keeps its own bound, whichever of its children were solved.
            outcome.termination = stopped.termination
        except KeyboardInterrupt:
            outcome.termination = Termination.INTERRUPTED
        bounds = [self.ended_bound, outcome.value, self.waiting.lower_bound]
        if self.node is not None:
            bounds.append(self.node.bound)
        outcome.bound = min(bounds)
        has_ended = outcome.termination in (Termination.OPTIMAL, Termination.INFEASIBLE)
        if not has_ended and self.node is None:
            outcome.bound = -np.inf  # The search stopped before the root was solved.
        return outcome

    def _explore(self, node: _Node) -> _Node | None:
        """Split a node. Returns its better child and queues the other one, or None at its end."""
        outcome = self.outcome
        has_closed = node.bound >= self.closing_bound
        choices = np.zeros(0, dtype=np.intp)
        if not has_closed:
            choices = self.branching_pairs(node)
        if not choices.size:
            self.ended_bound = min(self.ended_bound, node.bound)
            if not has_closed and node.is_solved and node.value < outcome.value:
                outcome.value = node.value
                outcome.x = node.x
            return None
        if self.node_limit is not None and outcome.nodes >= self.node_limit:
            raise _SearchStopped(Termination.NODE_LIMIT)
        outcome.nodes += 1
        paid_masses = node.x[self.relaxation.y[choices]]
        unpaid_masses = node.x[self.relaxation.source[choices]] - paid_masses
        parts = (paid_masses, unpaid_masses)
        chosen_index = int(np.argmax(_branching_scores(self.gains, self.counts, parts, choices)))
        pair = choices[chosen_index]
        children = []
        child_patterns, is_single_pair = self.split_node(node, pair)
        # If one pair is decided, side 0 keeps it and side 1 breaks it.
        for side, (pattern, is_light) in enumerate(child_patterns):
            child = self.solve_node(pattern, is_light, node)
            if child is None:
                continue
            children.append(child)
            if is_single_pair and node.is_solved and (child.is_solved or self.can_stop_early):
                # For a child that was cut off, the bound gives a lower bound on the gain.
                child_value = child.value if child.is_solved else child.bound
                gain = max(0.0, child_value - node.value)
                self.gains[side, pair] += gain / max(float(parts[side][chosen_index]), _MIN_GAIN)
                self.counts[side, pair] += 1
        children.sort()
        for child in children[1:]:
            self.waiting.put(child.bound, child)
        if not children:
            return None
        return children[0]

    @property
    def closing_bound(self) -> float:
        """Return the bound at which a node ends, slightly within the gap because of rounding.

        It is infinite or NaN without an incumbent, so that no bound reaches it.
        """
        value = self.outcome.value
        return value - _CLOSING_GAP_SHARE * self.gap * max(1.0, abs(value))

    def solve_root(self) -> _Node | None:
        """Solve the node in which nothing is decided. Returns None if it is infeasible."""
        free = np.full(self.relaxation.y.size, FREE, dtype=np.int8)
        return self.solve_node(free, np.zeros(self.element_count, dtype=bool), parent=None)

    def split_node(self, node: _Node, pair: int) -> tuple[list[tuple[Pattern, Flags]], bool]:
        """Return the children of a node as patterns, and whether only one pair is decided.

        Args:
            node: the node.
            pair: number of the pair at which it is split.

        Returns:
            For both children (pattern, is_light), and whether they differ from the node in this one
            pair only.
        """
        element = self.relaxation.source[pair]
        delta = self.noise.delta
        kept_pattern = node.pattern.copy()
        is_heavy = delta is not None and node.x[element] > _MIN_HEAVY_RATIO * delta
        if is_heavy and not node.is_light[element]:
            is_free = (self.relaxation.source == element) & (node.pattern == FREE)
            if np.count_nonzero(is_free) > 1:
                kept_pattern[is_free] = KEPT
                is_light = node.is_light.copy()
                is_light[element] = True
                return [(kept_pattern, node.is_light), (node.pattern, is_light)], False
        broken_pattern = node.pattern.copy()
        kept_pattern[pair] = KEPT
        broken_pattern[pair] = BROKEN
        return [(kept_pattern, node.is_light), (broken_pattern, node.is_light)], True

    def solve_node(
        self,
        pattern: Pattern,
        is_light: Flags,
        parent: _Node | None,
    ) -> _Node | None:
        """Solve the program of a pattern.

        Args:
            pattern: FREE, KEPT or BROKEN for each pair, shape (pairs,).
            is_light: whether f <= delta is imposed on each element, shape (masses,).
            parent: the node that was split, or None for the root.

        Returns:
            The node, or None if it is infeasible.

        Raises:
            _SearchStopped: at a limit or after too much numerical trouble.
        """
        values = self.relaxation.values(self.noise, pattern == KEPT, pattern == BROKEN, is_light)
        bound = -np.inf if parent is None else parent.bound
        best_node = None
        cutoff = self.outcome.value if self.can_stop_early else None
        for start in (Start.HOT, Start.COLD):
            answer = self._solve_program(values, start, cutoff)
            if answer.termination is Termination.CUTOFF:
                if answer.bound is not None and answer.bound >= self.closing_bound:
                    return self._unsolved_node(pattern, is_light, max(bound, answer.bound), parent)
                # By rounding, the bound falls short of the cutoff that it should prove.
                answer = self._solve_program(values, start)
            has_ray = answer.ray is not None
            is_final = has_ray or start is Start.COLD
            if answer.termination is Termination.INFEASIBLE and is_final:
                self.outcome.unchecked_infeasible += not has_ray
                return None
            if answer.bound is not None:
                bound = max(bound, answer.bound)
            if (
                answer.is_optimal
                and answer.x is not None
                and answer.objective is not None
                and bound > -np.inf
            ):
                value = answer.objective
                programs = self.outcome.programs
                best_node = _Node(bound, programs, pattern, is_light, answer.x, value)
                if value - bound <= _MAX_NODE_GAP * max(1.0, abs(value)):
                    break
        if best_node is not None:
            best_node.bound = bound
            return best_node
        self.failed_nodes += 1
        is_root_unbounded = parent is None and bound == -np.inf
        if self.failed_nodes > _MAX_FAILED_NODES or is_root_unbounded:
            raise _SearchStopped(Termination.NUMERICAL)
        # A failed root has no solution to split, but its bound may suffice.
        return self._unsolved_node(pattern, is_light, bound, parent)

    def _solve_program(
        self,
        values: dict[str, Vector],
        start: Start,
        cutoff: float | None = None,
    ) -> Solution:
        """Solve the program at these values, up to a cutoff. Raises _SearchStopped at a limit."""
        if self.deadline.has_passed:
            raise _SearchStopped(Termination.TIME_LIMIT)
        answer = self.session.solve(
            values,
            start=start,
            cutoff=cutoff,
            time_limit=self.deadline.solver_time_limit,
        )
        self.outcome.last = answer
        self.outcome.programs += 1
        self.outcome.iterations += answer.iterations or 0
        if answer.termination in LIMIT_TERMINATIONS:
            raise _SearchStopped(answer.termination)
        return answer

    def _unsolved_node(
        self,
        pattern: Pattern,
        is_light: Flags,
        bound: float,
        parent: _Node | None,
    ) -> _Node:
        """Return a node that has the solution of its parent, since it has none of its own."""
        if parent is None:
            x = np.zeros(self.relaxation.program.shape[1])
            value = bound
        else:
            x = parent.x
            value = parent.value
        return _Node(bound, self.outcome.programs, pattern, is_light, x, value, is_solved=False)

    def branching_pairs(self, node: _Node) -> Positions:
        """Return the free pairs that are broken and partly paid, for shifts above the limit δ.

        The node is split at one of these pairs. If the solution is feasible for the mixed-integer
        program (13) of Kadam et al. 2024, there are none.

        Args:
            node: the node.
        """
        relaxation = self.relaxation
        x = node.x
        f = x[relaxation.source]
        is_broken = relaxation.broken_pairs(self.noise, x)
        limit = self.noise.delta
        if limit is None:
            limit = float(x[relaxation.program.block("delta").start])
        broken_shifts = relaxation.shift[is_broken]
        masses = np.bincount(broken_shifts, f[is_broken], minlength=len(self.noise.shifts))
        is_over = masses > limit + MIN_BROKEN_EXCESS
        is_unpaid = (f - x[relaxation.y] > MIN_BROKEN_EXCESS) & (node.pattern == FREE)
        return np.flatnonzero(is_broken & is_over[relaxation.shift] & is_unpaid)


class _SearchStopped(Exception):
    """A search was stopped by a limit or by numerical trouble."""

    def __init__(self, termination: Termination) -> None:
        self.termination = termination
