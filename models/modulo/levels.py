"""Compute the smallest error rate rho*(delta) of PDP noise with one eps, without a solver.

`LevelSearch` searches all level functions, which give every element eta of the group a level
l(eta). f is the PMF of the noise, so rho* = 1 - f(0). mu is a shift (a difference of neighbouring
answers), M the set of shifts. A pair (eta, mu) is broken if f(eta) > e^eps f(eta + mu), otherwise
kept. PDP allows the elements of broken pairs at most mass delta for each mu.

**Level theorem.** Give every element a level l(eta) in {0, 1, ..., infinity} with l(0) = 0, let a =
e^-eps and

    T = sum a^l(eta),     S = max over mu of sum { a^l(eta) : l(eta + mu) > l(eta) + 1 }.

At every delta the largest f(0) is the largest min(1/T, delta/S) over all l (1/T where S = 0). The
proof is in `workbench.models.oracles.level_search`.

So rho* follows from the smallest T for every bound on S: a staircase (`Stairs`). It does not depend
on delta.

`LevelSearch.prove(low, high)` proves the stairs of low <= S < high: no l with S < high lies more
than ERROR_RATE_TOLERANCE below the staircase at max(S, low). All l are enumerated level by level.

Terms of the search. An element is settled if its level is chosen. A state is the set of settled
elements and the set of elements on the last level k. A label of a state is one way to reach it,
with its sums T and S_mu for each mu so far. A decision takes an unsettled element eta + mu that a
shift reaches from level k: it joins level k + 1, or it is delayed to a later level. A delay breaks
pairs, so it adds a^k (the charge) to the S_mu of each mu that leads to the element. A completion of
a label is a choice of all later levels. The search leaves out:

* Labels of a state that are nowhere smaller than another label of it; and states that are mirror
  images, if M = -M.
* Charges that cannot matter. The further charge to mu is at most the mass of the last level plus
  the mass of all later levels, which is largest if nothing more is delayed. If S_mu plus this
  charge stays below max S, all pairs of mu may be broken without increasing max S, which lowers T.
  So mu is dropped: it leads to no element any more.
* Choices by which more elements join the next level than the staircase allows.
* Labels whose completions all lie above the staircase. A chain eta, eta + mu, ... has n unsettled
  elements from the last level on. Either its mass a^(k+1) + ... + a^(k+n) appears in T, or a delay
  with the charge s avoids at most the mass A (1 - a^n) s of it, A = a/(1 - a). Chains of one mu
  never meet. For every s this gives a lower bound on T of the completions with S <= s. While a
  level is chosen, the chain of a delayed element counts as avoided.

| paper (Kadam et al. 2024) | here                       |
|---------------------------|----------------------------|
| e^-eps                    | `LevelSearch.a`            |
| rho*(delta)               | `Stairs.corners`           |
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from workbench.models.modulo.program import shift_positions
from workbench.models.modulo.stairs import ERROR_RATE_TOLERANCE, Stairs
from workbench.solvers.arrays import Ints, Vector
from workbench.solvers.search import Deadline

Members = Ints  # The numbers of the elements on one level.

_SAME_TOLERANCE = 1e-15  # Relative differences below this do not order two labels.
_DROPPED_S = float("-inf")  # S of a shift that is dropped.
# A shift is dropped if its S stays below the largest S by more than this share, so that rounding
# cannot drop the shift where S is largest.
_IDLE_MARGIN = 1e-12
_DECISIONS_BETWEEN_CHECKS = 1024  # The clock is read once in this many decisions.
_BEAM_DECISIONS = 200  # A beam search takes at most this many decisions on each label.
_STATE_BASE_WORK = 10  # A state costs this many decisions, whatever its size.
_STEPS_PER_DECISION = 32  # Following a shift takes as long for this many steps as one decision.
# Levels whose mass is below e^-this of the mass of a level are negligible and skipped.
_NEGLIGIBLE_EXPONENT = 40.0
# The search stops at a state that reaches more elements from one level. There are too many choices,
# and the recursion over them would be too deep.
_MAX_REACHED_ELEMENTS = 250


class OutOfTime(Exception):
    """A search was stopped by its limit. The stairs found so far are right, but not proven."""


class Trace(NamedTuple):
    """The levels 1, 2, ... that the search has chosen, as a linked list from the last one back.

    Attributes:
        earlier: the levels before the last one; None if there are none.
        members: the elements of the last level.
        turns: whether the search went on with the mirror image, so that the members of all later
            levels are the negatives of the true ones.
    """

    earlier: Trace | None
    members: Members
    turns: bool


class _StateKey(NamedTuple):
    """A state: two choices of levels with the same key have the same choices from here on.

    Attributes:
        settled_mask: the settled elements as a bit mask (bit 5 for element 5).
        mirrored_mask: the negatives of the settled elements as a bit mask.
        members: the elements of the last level k.
        dropped_mask: the dropped shifts as a bit mask (bit i for shift i).
    """

    settled_mask: int
    mirrored_mask: int
    members: Members
    dropped_mask: int


class _Label(NamedTuple):
    """One way to reach a state.

    Attributes:
        T: total weight of the settled elements.
        S: charges to every shift, shape (shifts,); -inf if the shift is dropped.
        trace: the levels of the settled elements; None if only 0 is settled.
    """

    T: float
    S: list[float]
    trace: Trace | None


_Layer = dict[_StateKey, list[_Label]]  # The labels of all states with the same last level k.


class _Chains(NamedTuple):
    """The chains of one shift. A chain of n elements has the share 1 - a^n.

    Attributes:
        share: sum of the shares of the chains that no delay has avoided.
        longest_share: share of the longest chain.
        shift: number of the shift.
    """

    share: float
    longest_share: float
    shift: int


class _State(NamedTuple):
    """The facts about a state that all its labels share.

    Attributes:
        chains: the chains of every shift that is not dropped.
        later_mass: mass of the later levels if nothing is delayed, divided by a^k.
        reached: unsettled elements with the shifts that lead to them, most shifts first.
        chains_of_element: for each first element of a chain, (place in `chains`, 1 - a^n).
    """

    chains: list[_Chains]
    later_mass: float
    reached: list[tuple[int, list[int]]]
    chains_of_element: dict[int, list[tuple[int, float]]]


class _ReadyState(NamedTuple):
    """A state that has choices, with its labels.

    Attributes:
        key: the state.
        labels: the labels of the state.
        state: the facts about it.
    """

    key: _StateKey
    labels: list[_Label]
    state: _State


class _Expansion(NamedTuple):
    """A label whose level k + 1 is being chosen.

    Attributes:
        k: the last level of the label.
        key: the state of the label.
        state: the facts about this state.
        trace: the levels of the label.
        next_layer: receives a label for every choice of level k + 1.
        max_decisions: value of `LevelSearch.decisions` after which no more choices are tried.
    """

    k: int
    key: _StateKey
    state: _State
    trace: Trace | None
    next_layer: _Layer
    max_decisions: float


@dataclass
class LevelSearch:
    """A search over all level functions of one problem.

    Attributes:
        sizes: orders of the cyclic factors.
        shifts: the differences; 0 and repetitions are left out.
        epsilon: eps > 0 of every shift.
        deadline: time after which `prove` raises OutOfTime.
        work_limit: work after which `prove` raises OutOfTime. It is counted in decisions, the same
            on every machine. None for no limit.
        tolerance: tolerance of the error rate. Level functions that are better by less need not be
            found.
        stairs: the staircase found so far.
        decisions: decisions taken so far.
        work: decisions plus the work of states, in decisions.
        low: lower end of the window low <= S < high that is being proven.
        high: upper end of this window. `record` may lower it while the search runs.
    """

    sizes: Ints
    shifts: Sequence[Ints]
    epsilon: float
    deadline: Deadline = field(default_factory=Deadline)
    work_limit: int | None = None
    tolerance: float = ERROR_RATE_TOLERANCE
    stairs: Stairs = field(init=False)
    decisions: int = field(default=0, init=False)
    work: int = field(default=0, init=False)
    low: float = field(default=0.0, init=False)
    high: float = field(default=1.0, init=False)

    def __post_init__(self) -> None:
        # The tables of the shifts, as the keys of a dictionary: repetitions are left out.
        tables = {tuple(shift_positions(self.sizes, mu).tolist()): None for mu in self.shifts}
        table_of_zero = tuple(range(math.prod(self.sizes)))
        tables.pop(table_of_zero, None)
        if not tables:
            raise ValueError("a level search needs a shift that is not 0.")
        self.steps = [list(table) for table in tables]  # steps[i][eta] is eta + shift i.
        N = len(self.steps[0])
        # Levels further on have a negligible mass even with N elements.
        self.max_later_levels = 1 + math.ceil((_NEGLIGIBLE_EXPONENT + math.log(N)) / self.epsilon)
        # A state follows every shift that far, which costs this many decisions.
        steps_per_shift = min(N, 2 * self.max_later_levels)
        step_count = steps_per_shift * len(self.steps)
        self.state_work = _STATE_BASE_WORK + step_count // _STEPS_PER_DECISION
        # Shift mu leads from 0 to the element mu = step[0], and from the element -mu to 0.
        shift_to = {step[0]: i for i, step in enumerate(self.steps)}
        opposite_shifts = [shift_to.get(step.index(0)) for step in self.steps]
        # mirrored_shifts[i] is the number of shift -i. None unless M = -M.
        self.mirrored_shifts: list[int] | None = None
        if None not in opposite_shifts:
            self.mirrored_shifts = [int(i) for i in opposite_shifts if i is not None]
        grid = np.arange(N).reshape(self.sizes)
        axes = tuple(range(len(self.sizes)))
        # negative[eta] is the number of the element -eta.
        self.negative = np.roll(np.flip(grid, axes), 1, axes).ravel().tolist()
        self.a = float(np.exp(-self.epsilon))
        self.gain = self.a / float(-np.expm1(-self.epsilon))  # The A = a/(1 - a) of the header.
        self.power = [float(p) for p in np.exp(-self.epsilon * np.arange(N + 2))]
        # The first stairs: nothing is delayed (S = 0), or all mass is on 0 (T = 1, S = 1).
        start = self._make_state(settled_mask=1, members=(0,), dropped_mask=0)
        self.stairs = Stairs([0.0, 1.0], [1.0 + start.later_mass, 1.0])

    def prove(
        self,
        low: float,
        high: float,
        beam_width: int | None = None,
    ) -> None:
        """Prove the stairs of low <= S < high. All stairs from `high` on must be proven before.

        Args:
            low: smallest S of the stairs.
            high: S from which on all stairs are proven. `record` may lower it meanwhile.
            beam_width: only this many states of every level, the most promising ones, are followed.
                Such a search proves nothing but finds good level functions. None for all states.

        Raises:
            OutOfTime: a limit was reached.
        """
        self.low = low
        self.high = high
        start_key = _StateKey(settled_mask=1, mirrored_mask=1, members=(0,), dropped_mask=0)
        layer: _Layer = {start_key: [_Label(T=1.0, S=[0.0] * len(self.steps), trace=None)]}
        k = 0
        while layer:
            next_layer: _Layer = {}
            ready_states = self._prepare_layer(k, layer)
            if beam_width is not None:
                ready_states.sort(key=lambda ready: self._promise(k, ready.labels, ready.state))
                ready_states = ready_states[:beam_width]
            for key, labels, state in ready_states:
                for T, S, trace in labels:
                    if self._is_above_stairs(T, S, k, state.chains):
                        continue
                    max_decisions = math.inf
                    if beam_width is not None:
                        max_decisions = self.decisions + _BEAM_DECISIONS
                    expansion = _Expansion(k, key, state, trace, next_layer, max_decisions)
                    self._choose_members(expansion, i=0, members=(), T=T, S=S, chains=state.chains)
            layer = next_layer
            k = k + 1
        if beam_width is None:
            self.stairs.proven_from = low

    def record(
        self,
        T: float,
        S: float,
        trace: Trace | None,
        dropped_mask: int | None,
    ) -> None:
        """Record a level function that was found. Here it may become a stair.

        Args:
            T: total weight of the level function.
            S: weight of its broken pairs, for the shift where it is largest.
            trace: first levels of the function. After them, the shifts that are not dropped delay
                no element. None if only the level of 0 is chosen.
            dropped_mask: the dropped shifts as a bit mask (bit i for shift i); None if all elements
                without a level are delayed for ever, so that their levels are infinite.
        """
        self.stairs.insert(T, S)

    def rebuild_levels(self, trace: Trace | None, dropped_mask: int | None) -> Vector:
        """Rebuild the levels of all elements of a recorded level function, or of its mirror image.

        Args:
            trace: first levels of the function, as `record` takes them.
            dropped_mask: the dropped shifts as a bit mask, as `record` takes them.

        Returns:
            Levels, infinite for elements without one, shape (N,).
        """
        history = []
        while trace is not None:
            history.append(trace)
            trace = trace.earlier
        level = np.full(len(self.steps[0]), np.inf)
        level[0] = 0.0
        front = [0]
        is_mirrored = False
        k = 0
        for _, members, turns in reversed(history):
            k += 1
            front = [self.negative[x] for x in members] if is_mirrored else list(members)
            level[front] = k
            is_mirrored ^= turns
        if dropped_mask is None:
            return level
        if is_mirrored and self.mirrored_shifts is not None:
            dropped_mask = _mirror_mask(dropped_mask, self.mirrored_shifts)
        live_shifts = self._live_shifts(dropped_mask)
        while front:
            k += 1
            reached = {self.steps[i][y] for i in live_shifts for y in front}
            front = sorted(x for x in reached if level[x] == np.inf)
            level[front] = k
        return level

    def _live_shifts(self, dropped_mask: int) -> list[int]:
        """Return the numbers of the shifts that are not dropped."""
        return [i for i in range(len(self.steps)) if not dropped_mask >> i & 1]

    def _prepare_layer(self, k: int, layer: _Layer) -> list[_ReadyState]:
        """Return the states of a level that have choices, each with its labels.

        For every label the level functions are recorded in which nothing, or everything, is delayed
        from now on. Labels drop the shifts that cannot determine S (see the module header). A label
        that drops a shift changes its state, so it is prepared once more.
        """
        ready = []
        unit = self.power[k]
        waiting = layer
        while waiting:
            reduced_layer: _Layer = {}
            for key, labels in waiting.items():
                self.work += self.state_work
                self._check_limits()
                state = self._make_state(key.settled_mask, key.members, key.dropped_mask)
                if len(state.reached) > _MAX_REACHED_ELEMENTS:
                    raise OutOfTime
                counts = [0] * len(self.steps)
                for _, leading_shifts in state.reached:
                    for i in leading_shifts:
                        counts[i] += 1
                max_charge = unit * (len(key.members) + state.later_mass)
                ready_labels = []
                for T, S, trace in labels:
                    max_S = max(S)
                    self.record(T + unit * state.later_mass, max_S, trace, key.dropped_mask)
                    delayed_S = [s + unit * count for s, count in zip(S, counts, strict=True)]
                    self.record(T, max(delayed_S), trace, dropped_mask=None)
                    if not state.reached:
                        continue
                    idle_limit = max_S * (1.0 - _IDLE_MARGIN)
                    is_idle = [s > _DROPPED_S and s + max_charge < idle_limit for s in S]
                    if any(is_idle):
                        idle_mask = sum(1 << i for i, idle in enumerate(is_idle) if idle)
                        live_S = [
                            _DROPPED_S if idle else s for s, idle in zip(S, is_idle, strict=True)
                        ]
                        reduced_key = key._replace(dropped_mask=key.dropped_mask | idle_mask)
                        _add_label(reduced_layer, reduced_key, _Label(T, live_S, trace))
                    else:
                        ready_labels.append(_Label(T, S, trace))
                if ready_labels:
                    ready.append(_ReadyState(key, ready_labels, state))
            waiting = reduced_layer
        return ready

    def _choose_members(
        self,
        expansion: _Expansion,
        i: int,
        members: Members,
        T: float,
        S: list[float],
        chains: list[_Chains],
    ) -> None:
        """Decide for each reached element, from the i-th on, whether it is delayed or joins.

        `members` are the elements that join the next level so far. T is the total weight without
        them, S has the charges so far, and `chains` the chains that no delay has avoided.
        """
        if self.decisions > expansion.max_decisions:
            return
        self.decisions += 1
        self.work += 1
        if self.decisions % _DECISIONS_BETWEEN_CHECKS == 0:
            self._check_limits()
        state = expansion.state
        k = expansion.k
        min_T = T + len(members) * self.power[k + 1]
        # The stair at the largest S so far: all stairs further on are lower.
        if min_T >= self.stairs.t[bisect_right(self.stairs.s, max(self.low, *S)) - 1]:
            return
        if i == len(state.reached):
            if members:
                self._settle(expansion, members, min_T, S)
            return
        element, leading_shifts = state.reached[i]
        charged_S = S[:]
        for mu in leading_shifts:
            charged_S[mu] += self.power[k]
        if max(charged_S) < self.high:
            free_chains = chains
            if element in state.chains_of_element:
                free_chains = chains[:]
                for place, avoided_share in state.chains_of_element[element]:
                    share, longest_share, mu = free_chains[place]
                    free_chains[place] = _Chains(share - avoided_share, longest_share, mu)
            if not self._is_above_stairs(T, charged_S, k, free_chains):
                self._choose_members(expansion, i + 1, members, T, charged_S, free_chains)
        self._choose_members(expansion, i + 1, members=(*members, element), T=T, S=S, chains=chains)

    def _settle(
        self,
        expansion: _Expansion,
        members: Members,
        T: float,
        S: list[float],
    ) -> None:
        """Add a label to the next level.

        A state and its mirror image have mirrored completions, so only one of the two is kept: the
        one that comes first in the order of (members, settled elements).
        """
        settled_mask, mirrored_mask, _, dropped_mask = expansion.key
        sorted_members = tuple(sorted(members))
        turns = False
        for element in sorted_members:
            settled_mask |= 1 << element
            mirrored_mask |= 1 << self.negative[element]
        if self.mirrored_shifts is not None:
            mirrored_members = tuple(sorted(self.negative[element] for element in sorted_members))
            if (mirrored_members, mirrored_mask) < (sorted_members, settled_mask):
                settled_mask, mirrored_mask = mirrored_mask, settled_mask
                sorted_members = mirrored_members
                S = [S[i] for i in self.mirrored_shifts]
                dropped_mask = _mirror_mask(dropped_mask, self.mirrored_shifts)
                turns = True
        key = _StateKey(settled_mask, mirrored_mask, sorted_members, dropped_mask)
        trace = Trace(expansion.trace, members, turns)
        _add_label(expansion.next_layer, key, _Label(T, S, trace))

    def _is_above_stairs(
        self,
        T: float,
        S: list[float],
        k: int,
        chains: list[_Chains],
    ) -> bool:
        """Check whether all completions lie above the staircase, by the chains of one shift.

        False says nothing: a completion may or may not lie below.
        """
        s = self.stairs.s
        t = self.stairs.t
        high = self.high
        unit = self.power[k]
        begin = bisect_right(s, max(self.low, *S)) - 1
        end = bisect_left(s, high)
        for share, longest_share, mu in chains:
            # If S_mu may rise to s, delays avoid at most the mass gain longest_share (s - S_mu) of
            # the chains. From s = free_S on they can avoid all of it.
            free_S = S[mu] + unit * share / longest_share if share > _SAME_TOLERANCE else 0.0
            i = begin
            while True:
                next_S = min(s[i + 1], high) if i + 1 < end else high
                min_T = T + self.gain * longest_share * max(0.0, free_S - next_S)
                # The error rate is 1 - 1/T, so its tolerance is tolerance * T² in T.
                if min_T < t[i] - self.tolerance * t[i] * t[i]:
                    break
                if min_T == T or next_S >= high:
                    return True
                i += 1
        return False

    def _promise(
        self,
        k: int,
        labels: list[_Label],
        state: _State,
    ) -> float:
        """Return the smallest T of a state's labels if nothing more is delayed.

        A large S counts as a T of the same f(0), so that labels are compared by one number. The
        most promising states have the smallest number.
        """
        later_mass = self.power[k] * state.later_mass
        # If the window is empty (high = 0), any factor does.
        T_per_S = self.stairs.t[0] / (self.high or 1.0)
        return min(max(T + later_mass, max(S) * T_per_S) for T, S, _ in labels)

    def _make_state(
        self,
        settled_mask: int,
        members: Members,
        dropped_mask: int,
    ) -> _State:
        """Compute the facts about a state."""
        power = self.power
        live_shifts = self._live_shifts(dropped_mask)
        # The binary digits of the mask, the lowest bit first.
        is_settled = [digit == "1" for digit in f"{settled_mask:0{len(self.negative)}b}"[::-1]]
        reached: dict[int, list[int]] = {}
        for member in members:
            for i in live_shifts:
                if not is_settled[self.steps[i][member]]:
                    reached.setdefault(self.steps[i][member], []).append(i)
        chains: list[_Chains] = []
        chains_of_element: dict[int, list[tuple[int, float]]] = {}
        for i in live_shifts:
            step = self.steps[i]
            total_share = 0.0
            max_length = 0
            for member in members:
                first = element = step[member]
                length = 0
                while length < self.max_later_levels and not is_settled[element]:
                    length += 1
                    element = step[element]
                if length:
                    share = 1.0 - power[length]
                    total_share += share
                    max_length = max(max_length, length)
                    chains_of_element.setdefault(first, []).append((len(chains), share))
            chains.append(_Chains(total_share, 1.0 - power[max_length], i))
        sorted_reached = sorted(reached.items(), key=_minus_shift_count)
        later_mass = self._later_mass(is_settled, members, live_shifts)
        return _State(chains, later_mass, sorted_reached, chains_of_element)

    def _later_mass(
        self,
        is_settled: list[bool],
        members: Members,
        live_shifts: Sequence[int],
    ) -> float:
        """Return the mass of later levels over a^k if nothing is delayed.

        Changes `is_settled`: the elements of these levels become settled in it.
        """
        total = 0.0
        level = 0
        front = list(members)
        while front and level < self.max_later_levels:
            level += 1
            next_front = []
            for element in front:
                for i in live_shifts:
                    x = self.steps[i][element]
                    if not is_settled[x]:
                        is_settled[x] = True
                        next_front.append(x)
            total += len(next_front) * self.power[level]
            front = next_front
        return total

    def _check_limits(self) -> None:
        """Raise OutOfTime after the deadline or the work limit."""
        if self.deadline.has_passed or (
            self.work_limit is not None and self.work > self.work_limit
        ):
            raise OutOfTime


def _minus_shift_count(reached_element: tuple[int, list[int]]) -> int:
    """Return the sort key of an element with the shifts that lead to it: most shifts first."""
    _, shifts = reached_element
    return -len(shifts)


def _mirror_mask(dropped_mask: int, mirrored_shifts: Sequence[int]) -> int:
    """Return the bit mask of dropped shifts in the mirror image."""
    return sum(1 << i for i, j in enumerate(mirrored_shifts) if dropped_mask >> j & 1)


def _add_label(layer: _Layer, key: _StateKey, label: _Label) -> None:
    """Add a label to a state, unless another label of the state is nowhere larger.

    Other labels of the state that are nowhere smaller than the new one are dropped.
    """
    T, S, _ = label
    labels = layer.setdefault(key, [])
    for other_T, other_S, _ in labels:
        if other_T <= T + _SAME_TOLERANCE and all(
            x <= y * (1 + _SAME_TOLERANCE) for x, y in zip(other_S, S, strict=True)
        ):
            return

    def is_smaller_somewhere(present: _Label) -> bool:
        """Return whether a label of the state has a smaller T or a smaller charge than the new."""
        return present.T < T - _SAME_TOLERANCE or any(
            x < y * (1 - _SAME_TOLERANCE) for x, y in zip(present.S, S, strict=True)
        )

    labels[:] = [present for present in labels if is_smaller_somewhere(present)]
    labels.append(label)
