"""The frontier rho*(delta) of PDP noise for the error rate and one eps, from level functions: no
solver takes part.

**Level theorem.** Give every element a level l(eta) in {0, 1, ..., infinity} with l(0) = 0, let a =
e^-eps and

    T = sum a^l(eta),     S = max over mu of sum { a^l(eta) : l(eta + mu) > l(eta) + 1 }.

At every delta the largest f(0) is the largest min(1/T, delta/S) over all l (1/T where S = 0).
Proof. (<=) Let f be feasible and l(eta) the least number of pairs that f keeps and that lead from 0
to eta. Then f >= a^l f(0), so T f(0) <= 1; pairs with l(eta + mu) > l(eta) + 1 are broken, so S
f(0) <= delta. (>=) The proof of `workbench.models.modulo.level_noise`, with v = a^l and l raised to
the shortest path lengths over the pairs that it keeps. []

So rho* is known once the least T is known for every bound on S: a staircase (`Stairs`). It does not
depend on delta.

`LevelSearch.prove(lo, hi)` proves the stairs of lo <= S < hi: no l with S < hi lies more than
TOLERANCE (of the error rate) below the staircase at max(S, lo). All l are enumerated level by
level. A state is what is settled and who is on the last level; a label is its (T, S_1, S_2, ...).
From level k every unsettled eta + mu joins level k + 1 or is delayed, which charges a^k to each mu
that leads to it. What is not enumerated:

* Labels of one state that another one of it does not exceed anywhere; states that are mirror
  images, if M = -M.
* Charges that cannot decide: what is still to be charged to mu is at most the mass of the last
  level and of what every later level can weigh, and that is the least where nothing more is
  delayed. Where S_mu and all of it stay below max S, the pairs of mu may all be broken at no loss,
  which lowers T: mu is dropped.
* Choices by which more elements join the next level than the staircase has room for.
* Labels whose completions all lie above the staircase. Along a chain eta, eta + mu, ... of n
  unsettled elements from the last level on, either the mass a^(k+1) + ... + a^(k+n) appears, or a
  charge of s buys off A (1 - a^n) s of it at most, A = a/(1 - a). Chains of one mu never meet. For
  every s that gives a lower bound on T of the completions with S <= s. While a level is chosen, a
  delayed element's chain is bought off.

| paper       | here                       |
|-------------|----------------------------|
| e^-eps      | `LevelSearch.a`            |
| rho*(delta) | `Stairs.corners`           |
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from workbench.models.modulo.program import shift_positions
from workbench.models.modulo.stairs import ERROR_RATE_TOLERANCE, Stairs
from workbench.solvers.arrays import Ints, Vector
from workbench.solvers.search import Deadline

Members = Ints
Key = tuple[
    int, int, Members, int
]  # assigned, its mirror image, the last level, the shifts that were dropped
Trace = (
    tuple[Any, Members, bool] | None
)  # of the levels before, the last level, whether what follows is mirrored
Label = tuple[
    float, list[float], Trace
]  # T, S of every shift (-inf where dropped), and what made them
Layer = dict[Key, list[Label]]
Chains = tuple[
    float, float, int
]  # of a shift: sum of 1 - a^n over them, 1 - a^n of the longest, the shift

_EQUAL = 1e-15
_OUT = float("-inf")
_TRIED = 200  # decisions on a label where not all are looked at
_NOTHING = 40.0  # e^-40 of a level's mass is nothing: levels so much farther on are not looked at
_WIDEST = 250  # elements reached from one level: more are beyond any search, and the recursion is no deeper


class OutOfTime(Exception):
    """A search was stopped by its limit; the stairs found so far are right, but not proven."""


class _State(NamedTuple):
    """What is known about a state: chains by shift, what all later levels weigh, what can be reached.

    Attributes:
        chains: those of every shift that is not dropped.
        rest: the mass of later levels where nothing is delayed, over a^k.
        reached: unsettled elements with the shifts that lead to them, those of most shifts first.
        on: element -> the chains that it is the first of: (place in `chains`, 1 - a^n).
    """

    chains: list[Chains]
    rest: float
    reached: list[tuple[int, list[int]]]
    on: dict[int, list[tuple[int, float]]]


@dataclass
class LevelSearch:
    """All level functions of one question.

    Args:
        sizes: orders of the cyclic factors.
        shifts: the differences; 0 and repetitions are left out.
        epsilon: > 0, of every shift.
        deadline: after which `prove` raises OutOfTime.
        limit: of the work from which on it does, in decisions, which every machine counts alike.
        tolerance: of the error rate; what is better by less need not be found.
    """

    sizes: Ints
    shifts: Sequence[Ints]
    epsilon: float
    deadline: Deadline = field(default_factory=Deadline)
    work_limit: int | None = None
    tolerance: float = ERROR_RATE_TOLERANCE
    stairs: Stairs = field(init=False)
    decisions: int = field(default=0, init=False)
    work: int = field(default=0, init=False)  # decisions, and states by what they cost of those

    def __post_init__(self) -> None:
        tables = {tuple(shift_positions(self.sizes, mu).tolist()): None for mu in self.shifts}
        tables.pop(tuple(range(len(next(iter(tables))))), None)
        if not tables:
            raise ValueError("a level search needs a shift that is not 0.")
        self.steps = [list(table) for table in tables]
        N = len(self.steps[0])
        self.far = 1 + math.ceil(
            (_NOTHING + math.log(N)) / self.epsilon
        )  # levels on from which N masses are nothing
        self.weight = (
            10 + min(N, 2 * self.far) * len(self.steps) // 32
        )  # of a state, which follows every shift so far
        first = {step[0]: i for i, step in enumerate(self.steps)}
        opposite = [first.get(step.index(0)) for step in self.steps]
        self.mirrored = None if None in opposite else [int(i) for i in opposite if i is not None]
        grid = np.arange(N).reshape(self.sizes)
        axes = tuple(range(len(self.sizes)))
        self.negative = np.roll(np.flip(grid, axes), 1, axes).ravel().tolist()
        self.a = float(np.exp(-self.epsilon))
        self.gain = self.a / float(-np.expm1(-self.epsilon))
        self.power = [float(p) for p in np.exp(-self.epsilon * np.arange(N + 2))]
        whole = 1.0 + self._state(1, (0,), 0).rest
        self.stairs = Stairs([0.0, 1.0], [whole, 1.0])

    def prove(self, low: float, high: float, beam_width: int | None = None) -> None:
        """Prove the stairs of low <= S < high, where all from high on are proven. Raises OutOfTime.

        width: of every level only so many states, those that promise most: that proves nothing and finds much.
        """
        self.low, self.high = low, high
        layer: Layer = {(1, 1, (0,), 0): [(1.0, [0.0] * len(self.steps), None)]}
        k = 0
        while layer:
            self.later: Layer = {}
            ready = self._ready(k, layer)
            if beam_width is not None:
                ready = sorted(ready, key=lambda at: self._promise(k, *at[1:]))[:beam_width]
            for key, labels, state in ready:
                for T, S, trace in labels:
                    if not self._above(T, S, k, state.chains):
                        self.key, self.state, self.k, self.trace = key, state, k, trace
                        self.until = math.inf if beam_width is None else self.decisions + _TRIED
                        self._choose(0, (), T, S, state.chains)
            layer, k = self.later, k + 1
        self.stairs.proven_from = low if beam_width is None else self.stairs.proven_from

    def record(self, T: float, S: float, trace: Trace, dropped: int | None) -> None:
        """Take note of a level function: the levels of a trace, then nothing is delayed by the shifts that were not
        dropped (None: everything is)."""
        self.stairs.insert(T, S)

    def rebuild_levels(self, trace: Trace, dropped: int | None) -> Vector:
        """The level function that was entered so, (N,), or its mirror image; infinity where an element has no level."""
        history = []
        while trace is not None:
            history.append(trace)
            trace = trace[0]
        level = np.full(len(self.steps[0]), np.inf)
        level[0] = 0.0
        front, mirror, k = [0], False, 0
        for _, members, turned in reversed(history):
            k += 1
            front = [self.negative[x] for x in members] if mirror else list(members)
            level[front] = k
            mirror ^= turned
        if dropped is None:
            return level
        if mirror and self.mirrored is not None:
            dropped = _turned(dropped, self.mirrored)
        live = [i for i in range(len(self.steps)) if not dropped >> i & 1]
        while front:
            k += 1
            after = sorted(
                {x for i in live for x in (self.steps[i][y] for y in front) if level[x] == np.inf}
            )
            level[after] = k
            front = after
        return level

    def _ready(self, k: int, layer: Layer) -> list[tuple[Key, list[Label], _State]]:
        """The labels of a level, after all of them have entered what they are when nothing, or everything, is delayed
        from now on, and have dropped the shifts that cannot decide."""
        ready = []
        unit, work = self.power[k], layer
        while work:
            fewer: Layer = {}
            for (assigned, image, members, dropped), labels in work.items():
                self.work += self.weight
                self._check_limits()
                state = self._state(assigned, members, dropped)
                if len(state.reached) > _WIDEST:
                    raise OutOfTime
                counts = [
                    sum(i in leading for _, leading in state.reached)
                    for i in range(len(self.steps))
                ]
                still = unit * (len(members) + state.rest)
                here = []
                for T, S, trace in labels:
                    most = max(S)
                    self.record(T + unit * state.rest, most, trace, dropped)
                    self.record(
                        T,
                        max(s + unit * count for s, count in zip(S, counts, strict=True)),
                        trace,
                        None,
                    )
                    if not state.reached:
                        continue
                    idle = [s > _OUT and s + still < most * (1.0 - 1e-12) for s in S]
                    if any(idle):
                        mask = dropped | sum(1 << i for i, out in enumerate(idle) if out)
                        rest = [_OUT if out else s for s, out in zip(S, idle, strict=True)]
                        _put(fewer, (assigned, image, members, mask), (T, rest, trace))
                    else:
                        here.append((T, S, trace))
                if here:
                    ready.append(((assigned, image, members, dropped), here, state))
            work = fewer
        return ready

    def _choose(
        self, i: int, joined: Members, T: float, S: list[float], chains: list[Chains]
    ) -> None:
        """Delay or admit what can be reached, from the i-th element on."""
        if self.decisions > self.until:
            return
        self.decisions += 1
        self.work += 1
        if not self.decisions & 1023:
            self._check_limits()
        state, k = self.state, self.k
        least = T + len(joined) * self.power[k + 1]
        if least >= self.stairs.t[bisect_right(self.stairs.s, max(self.low, *S)) - 1]:
            return
        if i == len(state.reached):
            if joined:
                self._settle(joined, least, S)
            return
        element, leading = state.reached[i]
        charged = S[:]
        for mu in leading:
            charged[mu] += self.power[k]
        if max(charged) < self.high:
            left = chains
            if element in state.on:
                left = chains[:]
                for at, part in state.on[element]:
                    mass, longest, mu = left[at]
                    left[at] = (mass - part, longest, mu)
            if not self._above(T, charged, k, left):
                self._choose(i + 1, joined, T, charged, left)
        self._choose(i + 1, (*joined, element), T, S, chains)

    def _settle(self, joined: Members, T: float, S: list[float]) -> None:
        """Enter a label of the next level, in the mirror image that comes first."""
        assigned, image, _, dropped = self.key
        members = tuple(sorted(joined))
        turned = False
        for element in members:
            assigned |= 1 << element
            image |= 1 << self.negative[element]
        if self.mirrored is not None:
            other = tuple(sorted(self.negative[element] for element in members))
            if (other, image) < (members, assigned):
                assigned, image, members = image, assigned, other
                S = [S[i] for i in self.mirrored]
                dropped = _turned(dropped, self.mirrored)
                turned = True
        _put(self.later, (assigned, image, members, dropped), (T, S, (self.trace, joined, turned)))

    def _above(self, T: float, S: list[float], k: int, chains: list[Chains]) -> bool:
        """Whether no completion lies below the staircase, by the chains of one shift."""
        s, t, high, unit = self.stairs.s, self.stairs.t, self.high, self.power[k]
        begin = bisect_right(s, max(self.low, *S)) - 1
        end = bisect_left(s, high)
        for mass, part, mu in chains:
            # their mass falls with the bound on S, by gain (1 - a^n), until it is bought off
            none = S[mu] + unit * mass / part if mass > _EQUAL else 0.0
            i = begin
            while True:
                S_next = min(s[i + 1], high) if i + 1 < end else high
                bound = T + self.gain * part * max(0.0, none - S_next)
                if bound < t[i] - self.tolerance * t[i] * t[i]:
                    break
                if bound == T or S_next >= high:
                    return True
                i += 1
        return False

    def _promise(self, k: int, labels: list[Label], state: _State) -> float:
        """The least T of the labels of a state where nothing more is delayed, or as much as their S is worth."""
        later, worth = self.power[k] * state.rest, self.stairs.t[0] / (self.high or 1.0)
        return min(max(T + later, max(S) * worth) for T, S, _ in labels)

    def _state(self, assigned: int, members: Members, dropped: int) -> _State:
        power = self.power
        live = [i for i in range(len(self.steps)) if not dropped >> i & 1]
        taken = [digit == "1" for digit in f"{assigned:0{len(self.negative)}b}"[::-1]]
        reached: dict[int, list[int]] = {}
        for member in members:
            for i in live:
                if not taken[self.steps[i][member]]:
                    reached.setdefault(self.steps[i][member], []).append(i)
        chains: list[Chains] = []
        on: dict[int, list[tuple[int, float]]] = {}
        for i in live:
            step, mass, longest = self.steps[i], 0.0, 0
            for member in members:
                first = element = step[member]
                length = 0
                while length < self.far and not taken[element]:
                    length += 1
                    element = step[element]
                if length:
                    mass += 1.0 - power[length]
                    longest = max(longest, length)
                    on.setdefault(first, []).append((len(chains), 1.0 - power[length]))
            chains.append((mass, 1.0 - power[longest], i))
        ordered = sorted(reached.items(), key=_fewest)
        return _State(chains, self._rest(taken, members, live), ordered, on)

    def _rest(self, taken: list[bool], members: Members, live: Sequence[int]) -> float:
        """What later levels weigh, over a^k, when nothing is delayed, which settles all."""
        total, level, front = 0.0, 0, list(members)
        while front and level < self.far:
            level += 1
            after = []
            for element in front:
                for i in live:
                    x = self.steps[i][element]
                    if not taken[x]:
                        taken[x] = True
                        after.append(x)
            total += len(after) * self.power[level]
            front = after
        return total

    def _check_limits(self) -> None:
        if self.deadline.has_passed or (
            self.work_limit is not None and self.work > self.work_limit
        ):
            raise OutOfTime


def _fewest(choice: tuple[int, list[int]]) -> int:
    return -len(choice[1])


def _turned(dropped: int, mirrored: Sequence[int]) -> int:
    """The shifts that were dropped, in the mirror image."""
    return sum(1 << i for i, j in enumerate(mirrored) if dropped >> j & 1)


def _put(layer: Layer, key: Key, label: Label) -> None:
    """Enter a label unless one of its state is nowhere larger; those that are nowhere smaller go."""
    T, S, _ = label
    labels = layer.setdefault(key, [])
    for other, charges, _ in labels:
        if other <= T + _EQUAL and all(
            x <= y * (1 + _EQUAL) for x, y in zip(charges, S, strict=True)
        ):
            return
    labels[:] = [
        old
        for old in labels
        if not (
            old[0] >= T - _EQUAL
            and all(x >= y * (1 - _EQUAL) for x, y in zip(old[1], S, strict=True))
        )
    ]
    labels.append(label)
