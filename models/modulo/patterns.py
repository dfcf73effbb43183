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

Outside a set `kept` of noise values all masses may be summed in one variable s, which states less than (13): pairs
that start outside are dropped; a pair that leads outside, y >= f(eta) - e^eps f(eta + mu), implies y >= f(eta) -
e^eps s; the loss of s is the least loss outside. A solution with s = 0 is, extended by zeros, a PMF of the whole group
whose pairs that start outside hold trivially (0 <= anything), at the same loss.

| paper             | here                                      |
|-------------------|-------------------------------------------|
| e^eps_mu          | `Noise.exp_epsilon`                       |
| rho_eta           | `Noise.loss`                              |
| delta, rho-bar    | `Noise.delta`, `Noise.max_loss`           |
| (eta, mu)         | `source`, `target`, `shift` of a pair     |
| y(eta), u(eta)    | columns "y_mu", "u_mu" of `milp`          |
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from workbench.models import statement as cp
from workbench.models.modulo.constraints import UserConstraints, build_constraint_rows
from workbench.models.modulo.program import MASS_SCALE, shift_positions
from workbench.solvers.arrays import Flags, Ints, Positions, Vector
from workbench.solvers.program import Program

MIN_BROKEN_EXCESS = (
    5e-12  # a smaller excess f(eta) - e^eps f(eta + mu) is the solver's rounding, not a broken pair
)


@dataclass(frozen=True, eq=False)
class NoiseProblem:
    """One instance of (13) or (15) in numbers.

    Attributes:
        sizes, shifts: as `workbench.models.modulo.program.ModuloModel`.
        exp_epsilon: (shifts,) e^eps of every shift.
        loss: (N,), or (N, N) for the worst true answer.
        delta: given, or None when it is a variable.
        max_loss: of the loss when delta is minimised, else None.
        constraints: the user's own.
        span, slope: with neither delta nor max_loss, delta is a variable in this interval and loss - slope delta is
            minimised (see `workbench.models.modulo.frontier`).
    """

    sizes: Ints
    shifts: tuple[Ints, ...]
    exp_epsilon: Vector
    loss: Vector
    delta: float | None = None
    max_loss: float | None = None
    constraints: UserConstraints | None = None
    delta_span: tuple[float, float] = (0.0, 1.0)
    delta_slope: float = 0.0

    @property
    def N(self) -> int:
        """Order of the group."""
        return math.prod(self.sizes)

    @property
    def is_error_rate(self) -> bool:
        """Whether the loss is the error rate and nothing else is asked, so that the level theorem applies."""
        error_rate = (
            self.loss.ndim == 1 and self.loss[0] == 0.0 and bool((self.loss[1:] == 1.0).all())
        )
        return error_rate and self.constraints is None

    def targets(self) -> tuple[Positions, ...]:
        """For every shift the positions of eta + mu, (N,), read-only."""
        return _targets(self.sizes, self.shifts)

    def steps(self) -> list[tuple[float, Positions]]:
        """For every shift e^eps and its `targets`."""
        return list(zip(self.exp_epsilon.tolist(), self.targets(), strict=True))


@lru_cache(maxsize=4)
def _targets(sizes: Ints, shifts: tuple[Ints, ...]) -> tuple[Positions, ...]:
    """`Noise.targets`: those of one group serve every relaxation of a frontier."""
    targets = tuple(shift_positions(sizes, mu) for mu in shifts)
    for target in targets:
        target.setflags(write=False)
    return targets


class _Frame:
    """What the relaxation and the MILP have in common: masses, objective, the user's constraints, the pairs.

    kept: (N,) the noise values with a variable of their own; masses: of all noise values; first: the columns that come
    first; position: of every element's column, outside elements share the last. most: the upper bound of f.
    """

    def __init__(self, noise: NoiseProblem, kept: Flags, most: Any = 1.0) -> None:
        self.noise, self.kept = noise, kept
        count = int(kept.sum())
        self.position = np.full(noise.N, count)
        self.position[kept] = np.arange(count)
        self.masses: cp.Affine
        f = self.masses = cp.Variable(count, "f", (0.0, most))
        self.first, total, table = [f], cp.sum(f), np.atleast_2d(noise.loss)
        losses = table[:, kept] @ f
        if count < noise.N:
            outside = cp.Variable(1, "outside")
            self.first.append(outside)
            inside = self.position < count
            self.masses = f[np.minimum(self.position, count - 1)] * inside + outside * ~inside
            total, losses = total + cp.sum(outside), losses + outside * table[:, ~kept].min(axis=1)
        self.rows = [(total == 1).set_label("total")]  # (13b)
        self.delta: Any = noise.delta
        self.objective = self._objective(losses, float(table.max()))
        if noise.constraints is not None:
            self.rows += build_constraint_rows(noise.constraints, self.masses)

    def _objective(self, losses: cp.Affine, most: float) -> cp.Affine:
        """The costs; their rows, and the column of delta where that is no number."""
        noise = self.noise
        if noise.max_loss is not None:
            self.delta = cp.Variable(1, "delta")
            self.rows.append((losses <= noise.max_loss).set_label("max_loss"))  # (15b)
            return cp.sum(self.delta)
        objective = cp.sum(losses)
        if losses.size > 1:
            objective = cp.Variable(1, "worst", (0.0, most))
            self.rows.append((losses <= objective).set_label("losses"))
        if noise.delta is None:
            span, slope = cp.Parameter(2, "span"), cp.Parameter((), "slope")
            self.delta = cp.Variable(1, "delta", (span[0], span[1]))
            objective = objective - cp.sum(slope * self.delta)
        return objective

    def pairs(self) -> list[tuple[float, Positions, Positions]]:
        """For every shift: e^eps, elements kept, and where they lead."""
        elements = np.flatnonzero(self.kept)
        return [(e, elements, target[elements]) for e, target in self.noise.steps()]

    def state(self, e: float, source: Positions, target: Positions, y: Any) -> None:
        """f(eta) - e^eps f(eta + mu) <= y."""
        self.rows.append((self.masses[source] - self.masses[target] * e <= y).set_label("ratio"))

    def limit_excess(self, y: cp.Affine) -> None:
        """sum y <= delta, (13c)."""
        self.rows.append((cp.sum(y) <= self.delta).set_label("excess"))

    def program(self, name: str) -> Program:
        """What is stated."""
        return cp.Problem(self.objective, self.rows, self.first).to_program(name, MASS_SCALE)


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The program of every pattern: parameters "room" (upper bound of y) and "least" (of y - f), one per pair.

    With a given delta a third parameter "most", one per element kept, is the upper bound of f: 1, or delta. With
    `delta` a variable that is not minimised, parameters "span" and "slope" are those of the noise.

    A free pair has room delta (1 when delta is a variable) and least -1, a kept pair room 0, a broken pair least 0.

    Attributes:
        source, target: columns of f at eta and eta + mu, one per pair.
        shift: the shift of every pair; y: its column.
        element: eta of every pair.
    """

    program: Program
    source: Positions
    target: Positions
    shift: Positions
    y: Positions
    element: Positions

    def values(
        self,
        noise: NoiseProblem,
        is_kept: Flags | bool = False,
        is_broken: Flags | bool = False,
        is_light: Flags | bool = False,
    ) -> dict[str, Vector]:
        """The parameters of a pattern: the pairs that are kept and broken, and the elements with f <= delta."""
        parameters, pairs = self.program.parameters, self.y.size
        free = np.full(pairs, noise.delta_span[1] if noise.delta is None else noise.delta)
        values = {
            "room": np.where(is_kept, 0.0, free),
            "least": np.where(is_broken, 0.0, np.full(pairs, -1.0)),
        }
        if "span" in parameters:
            values |= {"span": np.array(noise.delta_span), "slope": np.array(noise.delta_slope)}
        if noise.delta is not None:
            values["most"] = np.where(is_light, noise.delta, np.ones(parameters["most"]))
        return values

    def broken_pairs(self, noise: NoiseProblem, x: Vector) -> Flags:
        """Which pairs a solution breaks: y pays for the excess f(eta) - e^eps f(eta + mu).

        An excess that nothing pays for is the solver's rounding: on rows with e^15 it reaches 1e-9.
        """
        excess = x[self.source] - noise.exp_epsilon[self.shift] * x[self.target]
        return (excess > MIN_BROKEN_EXCESS) & (x[self.y] > MIN_BROKEN_EXCESS)

    def broken_table(self, noise: NoiseProblem, x: Vector) -> Flags:
        """The same as a table, (shifts, N)."""
        table = np.zeros((len(noise.shifts), noise.N), dtype=bool)
        broken = self.broken_pairs(noise, x)
        table[self.shift[broken], self.element[broken]] = True
        return table


def build_relaxation(noise: NoiseProblem, has_own_mass: Flags | None = None) -> Relaxation:
    """State the program of this module's docstring. kept: (N,) the noise values with a variable of their own, else
    all."""
    has_own_mass = np.ones(noise.N, dtype=bool) if has_own_mass is None else has_own_mass
    count = int(has_own_mass.sum()) * len(noise.shifts)
    most, least = cp.Parameter(count, "room"), cp.Parameter(count, "least")
    frame = _Frame(
        noise,
        has_own_mass,
        1.0 if noise.delta is None else cp.Parameter(int(has_own_mass.sum()), "most"),
    )
    pairs, first = [], 0
    for k, (e, source, target) in enumerate(frame.pairs()):
        pair = first + np.arange(source.size)
        y = cp.Variable(source.size, f"y_{k}", (0.0, most[pair]))
        frame.state(e, source, target, y)
        frame.limit_excess(y)
        frame.rows.append((frame.masses[source] - y <= least[pair] * -1.0).set_label("broken"))
        pairs.append((frame.position[source], frame.position[target], np.full(y.size, k), source))
        first += y.size
    program = frame.program(f"patterns of PDP noise on {'x'.join(map(str, noise.sizes))}")
    at = [
        block.start + np.arange(block.size)
        for block in program.variables
        if block.name.startswith("y_")
    ]
    sources, targets, shifts, elements = (np.concatenate(part) for part in zip(*pairs, strict=True))
    return Relaxation(program, sources, targets, shifts, np.concatenate(at), elements)


def build_milp(noise: NoiseProblem, name: str) -> Program:
    """(13) or (15) with better rows, in the variables f, u_mu, y_mu of the literal model, all shifts and elements.

        y >= f(eta) - e^eps f(eta + mu),   sum y <= delta,   y <= min(delta, 1) u,   f - y <= 1 - u,   u in {0, 1}.

    Equivalent to (13): u = 1 gives y = f on a broken pair or more, u = 0 gives y = 0 and the pair is kept; conversely
    y = f u is feasible. (13e) and (13g) are not needed: they only force u = 0 on pairs that are kept anyway. The LP
    relaxation, which in (13) allows f - e^eps f(eta + mu) <= u at will, implies the DP-LP here.
    """
    frame = _Frame(noise, np.ones(noise.N, dtype=bool))
    delta = 1.0 if noise.delta is None else min(noise.delta, 1.0)
    for mu, (e, source, target) in zip(noise.shifts, frame.pairs(), strict=True):
        label = "_".join(map(str, mu))
        y = cp.Variable(source.size, f"y_{label}", (0.0, delta))
        u = cp.Variable(source.size, f"u_{label}", (0.0, 1.0), boolean=True)
        frame.state(e, source, target, y)
        frame.limit_excess(y)
        frame.rows += [
            row.set_label("decided") for row in (y <= u * delta, frame.masses[source] - y + u <= 1)
        ]
    return frame.program(name)
