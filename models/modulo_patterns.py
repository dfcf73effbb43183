"""The violation patterns of PDP noise: one linear program for every partly decided pattern.

Write a pair (eta, mu) for the inequality f(eta) <= e^eps_mu f(eta + mu). PDP allows some pairs to be broken, for each
mu at elements of mass delta in all. A pattern says of every pair: kept, broken, or free (undecided). Its program is

    min rho'f   s.t.  sum f = 1, f >= 0,  y >= f(eta) - e^eps f(eta + mu), y >= 0,  sum_eta y_mu(eta) <= delta,
                      y = 0 on kept pairs,  y >= f(eta) on broken pairs.

* It is a relaxation of (13) restricted to the PMFs that keep the kept and break the broken pairs: such a PMF enters it
  with y = f on all pairs that it breaks, y = 0 elsewhere. Every PMF keeps a pair or breaks it, so deciding a free pair
  both ways loses none.
* With no pair decided it is the DP-LP, as PDP implies DP.
* When its solution f breaks, for every mu, pairs of mass delta at most, f is feasible for (13), and optimal among the
  completions of the pattern.
* An element of f(eta) > delta breaks no pair, as f(eta) is among what a broken pair at eta sums to. So every feasible
  PMF has f(eta) <= delta, a bound of the program, or keeps all pairs at eta: this splits a pattern as well.

Two more ways to state less than (13), both optional (`Facts`):

* Outside a set `kept` of noise values all masses are summed in one variable s. It is a relaxation: pairs that start
  outside are dropped; a pair that leads outside, y >= f(eta) - e^eps f(eta + mu), implies y >= f(eta) - e^eps s; the
  loss of s is the least loss outside. A solution with s = 0 is, extended by zeros, a PMF of the whole group whose pairs
  that start outside hold trivially (0 <= anything), at the same loss.
* Elements with a proven lower bound f(eta) >= lower(eta) > delta cannot be broken: their pairs are kept for good.

| paper             | here                                      |
|-------------------|-------------------------------------------|
| (eta, mu)         | `source`, `target`, `shift` of a pair     |
| y(eta), u(eta)    | columns "y_mu", "u_mu" of `milp`          |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from models.modulo import MASS_SCALE
from models.modulo_constraints import UserConstraints, constraint_program
from models.modulo_instance import Facts, Noise
from solvers.arrays import Flags, Positions, Vector
from solvers.data import Data
from solvers.program import Block, Move, Program

__all__ = ["BREAK", "Facts", "Noise", "Relaxation", "milp", "relaxation"]


BREAK = 5e-12  # a smaller excess f(eta) - e^eps f(eta + mu) is the solver's rounding, not a broken pair


def _spread(value: Any, size: int) -> Vector:
    """A number, or (size,) of them, as (size,) floats."""
    return np.full(size, value, dtype=float)


class _Rows:
    """Sparse rows, collected block by block."""

    def __init__(self) -> None:
        self.parts: list[tuple[Positions, Positions, Vector]] = []
        self.lower: list[Vector] = []
        self.upper: list[Vector] = []
        self.count = 0

    def add_rows(self, columns: list[Positions], values: list[Any], lower: float, upper: Any) -> Positions:
        """Row i has values[k][i] at columns[k][i]; the row numbers."""
        size = columns[0].size
        rows = np.arange(self.count, self.count + size)
        for column, value in zip(columns, values, strict=True):
            self.parts.append((rows, column, _spread(value, size)))
        self.lower.append(np.full(size, lower))
        self.upper.append(_spread(upper, size))
        self.count += size
        return rows

    def add_row(self, columns: Positions, values: Any, lower: float, upper: float) -> None:
        """One row."""
        self.parts.append((np.full(columns.size, self.count), columns, _spread(values, columns.size)))
        self.lower.append(np.array([lower]))
        self.upper.append(np.array([upper]))
        self.count += 1

    def matrix(self, columns: int) -> sp.csc_array:
        rows, cols, values = (np.concatenate(part) for part in zip(*self.parts, strict=True))
        table = sp.csc_array((values, (rows, cols)), shape=(self.count, columns))
        table.eliminate_zeros()
        return table


class _Frame:
    """What the relaxation and the MILP have in common: masses, objective, the user's constraints, the pairs."""

    def __init__(self, noise: Noise, facts: Facts) -> None:
        self.noise, self.facts, self.rows = noise, facts, _Rows()
        kept = facts.kept
        self.masses = int(kept.sum())
        self.outside = not bool(kept.all())
        self.position = np.full(noise.N, self.masses)  # of every element's column; outside elements share the last
        self.position[kept] = np.arange(self.masses)
        size = self.masses + self.outside
        self.lower: list[Vector] = [facts.lower[kept], np.zeros(int(self.outside))]
        self.upper: list[Vector] = [np.ones(size)]
        self.loss: list[Vector] = [np.zeros(size)]
        self.columns = size
        self.blocks = [Block("f", 0, (size,))]
        self.names: list[tuple[str, int]] = []
        f = np.arange(size)
        self.rows.add_row(f, 1.0, 1.0, 1.0)  # (13b)
        self._objective(f)
        if facts.weights is not None:
            heavy = np.flatnonzero(kept)[1:]
            self.rows.add_rows([self.position[heavy], np.zeros_like(heavy)], [1.0, -facts.weights[heavy]], -np.inf, 0.0)
        if noise.constraints is not None:
            self._user(noise.constraints)

    def add(self, name: str, size: int, upper: Any, loss: float = 0.0) -> Positions:
        """New columns in [0, upper]."""
        columns = np.arange(self.columns, self.columns + size)
        self.blocks.append(Block(name, self.columns, (size,)))
        self.lower.append(np.zeros(size))
        self.upper.append(_spread(upper, size))
        self.loss.append(np.full(size, loss))
        self.columns += size
        return columns

    def _objective(self, f: Positions) -> None:
        noise, kept = self.noise, self.facts.kept
        table = np.atleast_2d(noise.loss)
        if self.outside:
            table = np.column_stack([table[:, kept], table[:, ~kept].min(axis=1)])
        self.delta: Positions | None = None
        if noise.max_loss is not None:
            self.delta = self.add("delta", 1, 1.0, loss=1.0)
            for row in table:
                self.rows.add_row(f, row, -np.inf, noise.max_loss)  # (15b)
            return
        if noise.delta is None:
            self.delta = self.add("delta", 1, noise.span[1], loss=-noise.slope)
            self.lower[-1][:] = noise.span[0]
        if len(table) == 1:
            self.loss[0] = table[0].copy()
        else:
            worst = self.add("worst", 1, float(table.max()), loss=1.0)
            for row in table:
                self.rows.add_row(np.append(f, worst), np.append(row, -1.0), -np.inf, 0.0)

    def _user(self, constraints: UserConstraints) -> None:
        """Append the user's constraints, compiled by themselves over f and whatever variables they bring."""
        program = constraint_program(constraints, self.noise.N)
        data = program.template
        start = program.block("f").start
        place = np.arange(data.c.size) + self.columns - np.where(np.arange(data.c.size) > start, self.noise.N, 0)
        place[start : start + self.noise.N] = np.arange(self.noise.N)
        own = np.ones(data.c.size, dtype=bool)
        own[start : start + self.noise.N] = False
        self.blocks.append(Block("aux", self.columns, (int(own.sum()),)))
        self.lower.append(data.lower[own])
        self.upper.append(data.upper[own])
        self.loss.append(np.zeros(int(own.sum())))
        self.columns += int(own.sum())
        matrix = data.A.tocoo()
        row, column = (np.asarray(part, dtype=np.intp) for part in matrix.coords)
        self.rows.parts.append((row + self.rows.count, place[column], matrix.data))
        self.rows.lower.append(data.row_lower)
        self.rows.upper.append(data.row_upper)
        self.rows.count += data.row_lower.size

    def pairs(self) -> list[tuple[Positions, Positions, Positions, Flags]]:
        """For every shift: elements kept, columns of source and target, and whether the pair may be broken."""
        elements = np.flatnonzero(self.facts.kept)
        able = self.facts.lower[elements] <= self.facts.delta * (1 + 1e-9)
        return [(elements, self.position[elements], self.position[t[elements]], able) for t in self.noise.targets()]

    def limit_excess(self, y: Positions) -> None:
        """sum y <= delta, (13c)."""
        if self.delta is None:
            self.rows.add_row(y, 1.0, -np.inf, float(self.noise.delta or 0.0))
        else:
            self.rows.add_row(np.append(y, self.delta), np.append(np.ones(y.size), -1.0), -np.inf, 0.0)

    def data(self, integer: Callable[[Block], bool]) -> Data:
        whole = np.concatenate([np.full(block.size, integer(block)) for block in self.blocks])
        return Data(
            np.concatenate(self.loss),
            0.0,
            self.rows.matrix(self.columns),
            np.concatenate(self.rows.lower),
            np.concatenate(self.rows.upper),
            np.concatenate(self.lower),
            np.concatenate(self.upper),
            whole,
        )


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The program of every pattern: parameters "room" (upper bound of y) and "least" (of y - f), one per pair.

    With a given delta a third parameter "most", one per element kept, is the upper bound of f: 1, or delta. With
    `delta` a variable that is not minimised, a third parameter "span" bounds it.

    A free pair has room delta (1 when delta is a variable) and least -1, a kept pair room 0, a broken pair least 0.

    Attributes:
        source, target: columns of f at eta and eta + mu, one per pair that may be broken.
        shift: the shift of every pair; y: its column.
        element: eta of every pair.
    """

    program: Program
    source: Positions
    target: Positions
    shift: Positions
    y: Positions
    element: Positions

    def broken(self, noise: Noise, x: Vector) -> Flags:
        """Which pairs a solution breaks: y pays for the excess f(eta) - e^eps f(eta + mu).

        An excess that nothing pays for is the solver's rounding: on rows with e^15 it reaches 1e-9.
        """
        excess = x[self.source] - noise.exp_epsilon[self.shift] * x[self.target]
        return (excess > BREAK) & (x[self.y] > BREAK)

    def pattern(self, noise: Noise, x: Vector) -> Flags:
        """The same as a table, (shifts, N)."""
        table = np.zeros((len(noise.shifts), noise.N), dtype=bool)
        broken = self.broken(noise, x)
        table[self.shift[broken], self.element[broken]] = True
        return table


def relaxation(noise: Noise, facts: Facts) -> Relaxation:
    """State the program of this module's docstring."""
    frame = _Frame(noise, facts)
    rows, cuts = frame.rows, []
    least: list[Positions] = []
    for k, (elements, source, target, able) in enumerate(frame.pairs()):
        e = noise.exp_epsilon[k]
        rows.add_rows([source[~able], target[~able]], [1.0, -e], -np.inf, 0.0)
        source, target = source[able], target[able]
        y = frame.add(f"y_{k}", source.size, noise.span[1] if noise.delta is None else noise.delta)
        rows.add_rows([source, target, y], [1.0, -e, -1.0], -np.inf, 0.0)
        if y.size:
            frame.limit_excess(y)
        least.append(rows.add_rows([y, source], [1.0, -1.0], -1.0, np.inf))
        cuts.append((source, target, np.full(y.size, k), y, elements[able]))
    source, target, shift, y, element = (np.concatenate(part) for part in zip(*cuts, strict=True))
    row = np.concatenate(least)
    data = frame.data(lambda block: False)
    pairs = y.size
    # every moving entry and which entry of the parameters it is
    lower, upper, size = [], [(y, np.arange(pairs))], 2 * pairs
    parameters: dict[str, tuple[int, ...]] = {"room": (pairs,), "least": (pairs,)}
    if noise.delta is not None:
        parameters["most"] = (frame.masses,)
        upper.append((np.arange(frame.masses), np.arange(size, size + frame.masses)))
        size += frame.masses
    elif noise.max_loss is None:
        assert frame.delta is not None
        parameters["span"] = (2,)
        lower.append((frame.delta, np.array([size])))
        upper.append((frame.delta, np.array([size + 1])))
        size += 2

    def part(entries: list[tuple[Positions, Positions]]) -> Move:
        index, of = (np.concatenate([np.zeros(0, dtype=np.intp), *column]) for column in zip(*entries, strict=True))
        order = np.argsort(index, kind="stable")
        matrix = sp.csr_array((np.ones(of.size), (np.arange(of.size), of[order])), (of.size, size))
        return Move(index[order], np.zeros(of.size), matrix)

    moves = {"upper": part(upper), "row_lower": part([(row, np.arange(pairs, 2 * pairs))])}
    if lower:
        moves["lower"] = part(lower)
    program = Program(
        f"patterns of PDP noise on {'x'.join(map(str, noise.sizes))}",
        data,
        variables=tuple(frame.blocks),
        parameters=parameters,
        scale=MASS_SCALE,
        moves=moves,
    )
    return Relaxation(program, source, target, shift, y, element)


def milp(noise: Noise, facts: Facts, name: str) -> Program:
    """(13) or (15) with better rows, in the variables f, u_mu, y_mu of the literal model, all shifts and elements.

        y >= f(eta) - e^eps f(eta + mu),   sum y <= delta,   y <= min(delta, 1) u,   f - y <= 1 - u,   u in {0, 1}.

    Equivalent to (13): u = 1 gives y = f on a broken pair or more, u = 0 gives y = 0 and the pair is kept; conversely
    y = f u is feasible. (13e) and (13g) are not needed: they only force u = 0 on pairs that are kept anyway. The LP
    relaxation, which in (13) allows f - e^eps f(eta + mu) <= u at will, implies the DP-LP here.
    """
    frame = _Frame(noise, facts)
    if frame.outside:
        raise ValueError("the mixed-integer program needs every noise value.")
    delta = 1.0 if noise.delta is None else min(noise.delta, 1.0)
    for mu, e, (_, source, target, able) in zip(noise.shifts, noise.exp_epsilon, frame.pairs(), strict=True):
        label = "_".join(map(str, mu))
        y = frame.add(f"y_{label}", source.size, np.where(able, delta, 0.0))
        u = frame.add(f"u_{label}", source.size, np.where(able, 1.0, 0.0))
        frame.rows.add_rows([source, target, y], [1.0, -e, -1.0], -np.inf, 0.0)
        frame.limit_excess(y)
        frame.rows.add_rows([y, u], [1.0, -delta], -np.inf, 0.0)
        frame.rows.add_rows([source, y, u], [1.0, -1.0, 1.0], -np.inf, 1.0)
    data = frame.data(lambda block: block.name.startswith("u_"))
    return Program(name, data, variables=tuple(frame.blocks), scale=MASS_SCALE)
