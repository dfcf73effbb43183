"""State the linear program of PDP noise for a given choice of broken inequalities (a pattern).

`build_relaxation` gives the program that all patterns share, `build_milp` the mixed-integer program
that chooses the pattern itself.

Notation. f is the PMF of the noise eta, mu a shift (a difference of neighbouring answers) with the
budget eps_mu, and rho the vector of losses of the noise values. (13) and (15) are the mixed-integer
programs of Kadam et al. 2024: the smallest loss at a given delta, and the smallest delta at a given
loss. y_mu(eta) is the part of f(eta) that counts towards delta.

A pair (eta, mu) stands for the inequality f(eta) <= e^eps_mu f(eta + mu). PDP allows some pairs to
be broken: for each mu, the elements of the broken pairs may have mass delta together. A pattern
says whether every pair is kept, broken, or free (undecided). Its program is

    min rho'f   s.t.  sum f = 1, f >= 0,  y >= f(eta) - e^eps f(eta + mu), y >= 0,
                      sum_eta y_mu(eta) <= delta,
                      y = 0 on kept pairs,  y >= f(eta) on broken pairs.

* It is a relaxation of (13) restricted to the PMFs that keep the kept and break the broken pairs:
  such a PMF is feasible with y = f on all pairs that it breaks and y = 0 elsewhere. Every PMF keeps
  a pair or breaks it, so deciding a free pair both ways loses no PMF.
* If no pair is decided, it is the linear program of (ε, δ)-DP, as PDP implies DP.
* If the pairs that its solution f breaks have mass at most delta for every mu, f is feasible for
  (13), and optimal among all ways to decide the free pairs of the pattern.
* An element with f(eta) > delta breaks no pair, as a broken pair at eta would add f(eta) to a sum
  that is at most delta. So a feasible PMF keeps all pairs at eta, or has f(eta) <= delta (eta is
  light, and delta becomes an upper bound of the program). A pattern may be split in this way too.

All masses outside a set of noise values may be replaced by one variable s, their sum. This relaxes
(13): the inequalities of pairs that start outside are dropped; a pair that leads outside,
y >= f(eta) - e^eps f(eta + mu), implies y >= f(eta) - e^eps s; and the loss of s is the smallest
loss outside. A solution with s = 0, extended by zeros, is a PMF of the whole group with the same
loss. Its pairs that start outside hold trivially, since their left side is 0.

User-defined constraints and further columns are added in `_MassFrame`, which both programs share.

| paper             | here                                          |
|-------------------|-----------------------------------------------|
| e^eps_mu          | `NoiseProblem.exp_epsilon`                    |
| rho_eta           | `NoiseProblem.loss`                           |
| delta, rho-bar    | `NoiseProblem.delta`, `NoiseProblem.max_loss` |
| (eta, mu)         | `source`, `target`, `shift` of a pair         |
| y(eta), u(eta)    | columns "y_mu", "u_mu" of `build_milp`        |
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

# A smaller excess f(eta) - e^eps f(eta + mu) is the solver's rounding and breaks no pair.
MIN_BROKEN_EXCESS = 5e-12


@dataclass(frozen=True, eq=False)
class NoiseProblem:
    """One instance of (13) or (15) in numbers.

    Attributes:
        sizes: orders of the cyclic factors.
        shifts: the differences mu.
        exp_epsilon: e^eps of every shift, shape (shifts,).
        loss: loss of every noise value, shape (N,), or (N, N) for the worst true answer.
        delta: given delta, or None if it is a variable.
        max_loss: largest loss if delta is minimised, else None.
        constraints: user-defined constraints, or None.
        delta_span: interval of delta. With neither delta nor max_loss, delta is a variable in this
            interval, and loss - delta_slope delta is minimised
            (see `workbench.models.modulo.frontier`).
        delta_slope: slope of that objective.
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
        """Return the order of the group."""
        return math.prod(self.sizes)

    @property
    def is_error_rate(self) -> bool:
        """Check whether the loss is the error rate without constraints.

        The level theorem applies to these problems.
        """
        if self.loss.ndim != 1 or self.loss[0] != 0.0:
            return False
        return bool((self.loss[1:] == 1.0).all()) and self.constraints is None

    def targets(self) -> tuple[Positions, ...]:
        """Return the read-only positions of eta + mu for every shift, each of shape (N,)."""
        return _shift_targets(self.sizes, self.shifts)

    def steps(self) -> list[tuple[float, Positions]]:
        """Return e^eps and the positions of eta + mu for every shift."""
        return list(zip(self.exp_epsilon.tolist(), self.targets(), strict=True))


@lru_cache(maxsize=4)
def _shift_targets(sizes: Ints, shifts: tuple[Ints, ...]) -> tuple[Positions, ...]:
    """Return `NoiseProblem.targets`, cached for all relaxations of a frontier."""
    targets = tuple(shift_positions(sizes, mu) for mu in shifts)
    for target in targets:
        target.setflags(write=False)
    return targets


class _MassFrame:
    """The part that both programs share: masses, objective, constraints and pairs.

    Args:
        noise: group, shifts, budgets and loss of the noise.
        has_own_mass: whether each noise value has a variable of its own, shape (N,). The others
            share the column "outside", which follows.
        upper: upper bound of the masses that have a variable, a number or a parameter.

    Attributes:
        masses: the masses of all noise values.
        leading_variables: variables whose columns come first.
        position: column of every element, shape (N,).
        rows: the rows stated so far.
        delta: delta, a number or a variable.
        objective: the objective.
    """

    def __init__(
        self,
        noise: NoiseProblem,
        has_own_mass: Flags,
        upper: Any = 1.0,
    ) -> None:
        self.noise = noise
        self.has_own_mass = has_own_mass
        count = int(has_own_mass.sum())
        self.position = np.full(noise.N, count)
        self.position[has_own_mass] = np.arange(count)
        f = cp.Variable(count, "f", (0.0, upper))
        self.masses: cp.Affine = f
        self.leading_variables = [f]
        total = cp.sum(f)
        table = np.atleast_2d(noise.loss)
        losses = table[:, has_own_mass] @ f
        if count < noise.N:
            outside = cp.Variable(1, "outside")
            self.leading_variables.append(outside)
            is_inside = self.position < count
            # Elements outside have no column of f. They take the last one, times 0.
            inside_masses = f[np.minimum(self.position, count - 1)] * is_inside
            self.masses = inside_masses + outside * ~is_inside
            total = total + cp.sum(outside)
            losses = losses + outside * table[:, ~has_own_mass].min(axis=1)
        self.rows = [(total == 1).set_label("total")]  # (13b)
        self.delta: Any = noise.delta
        self.objective = self._state_objective(losses, float(table.max()))
        if noise.constraints is not None:
            self.rows += build_constraint_rows(noise.constraints, self.masses)

    def _state_objective(self, losses: cp.Affine, max_loss: float) -> cp.Affine:
        """Return the objective; state its rows and the variable of delta if it needs one."""
        noise = self.noise
        if noise.max_loss is not None:
            self.delta = cp.Variable(1, "delta")
            self.rows.append((losses <= noise.max_loss).set_label("max_loss"))  # (15b)
            return cp.sum(self.delta)
        objective = cp.sum(losses)
        if losses.size > 1:
            objective = cp.Variable(1, "worst", (0.0, max_loss))
            self.rows.append((losses <= objective).set_label("losses"))
        if noise.delta is None:
            span = cp.Parameter(2, "span")
            slope = cp.Parameter((), "slope")
            self.delta = cp.Variable(1, "delta", (span[0], span[1]))
            objective = objective - cp.sum(slope * self.delta)
        return objective

    def pairs(self) -> list[tuple[float, Positions, Positions]]:
        """Return e^eps of every shift, the elements with a mass of their own, and their targets."""
        elements = np.flatnonzero(self.has_own_mass)
        return [
            (exp_epsilon, elements, target[elements]) for exp_epsilon, target in self.noise.steps()
        ]

    def state_excess(
        self,
        exp_epsilon: float,
        source: Positions,
        target: Positions,
        y: Any,
    ) -> None:
        """State f(eta) - e^eps f(eta + mu) <= y."""
        excess = self.masses[source] - self.masses[target] * exp_epsilon
        self.rows.append((excess <= y).set_label("ratio"))

    def limit_excess(self, y: cp.Affine) -> None:
        """State sum y <= delta, (13c)."""
        self.rows.append((cp.sum(y) <= self.delta).set_label("excess"))

    def to_program(self, name: str) -> Program:
        """Compile the collected objective, rows and columns into a program."""
        problem = cp.Problem(self.objective, self.rows, self.leading_variables)
        return problem.to_program(name, MASS_SCALE)


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The program that all patterns share.

    A pattern only changes the values of these parameters:

    | parameter | one for each | bound    | free pair            | kept pair | broken pair |
    |-----------|--------------|----------|----------------------|-----------|-------------|
    | "room"    | pair         | y <=     | delta (or its limit) | 0         | as free     |
    | "least"   | pair         | y - f >= | -1                   | as free   | 0           |

    With a given delta a third parameter "most", one for each element with a mass of its own, is the
    upper bound of f: delta for a light element, else 1. If delta is a variable that is not
    minimised, the parameters "span" and "slope" are those of the problem.

    Attributes:
        program: the program.
        source: column of f(eta), shape (pairs,).
        target: column of f(eta + mu), shape (pairs,).
        shift: number of the shift, shape (pairs,).
        y: column of y, shape (pairs,).
        element: eta, shape (pairs,).
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
        """Return the parameter values of a pattern.

        Args:
            noise: group, shifts, budgets and loss of the noise.
            is_kept: whether each pair is kept, shape (pairs,), or one value for all.
            is_broken: whether each pair is broken, shape (pairs,), or one value for all.
            is_light: whether f <= delta is imposed on each element, shape (masses,), or one value.
        """
        parameters = self.program.parameters
        pair_count = self.y.size
        _, max_delta = noise.delta_span
        free_room = max_delta if noise.delta is None else noise.delta
        values = {
            "room": np.where(is_kept, 0.0, np.full(pair_count, free_room)),
            "least": np.where(is_broken, 0.0, np.full(pair_count, -1.0)),
        }
        if "span" in parameters:
            values["span"] = np.array(noise.delta_span)
            values["slope"] = np.array(noise.delta_slope)
        if noise.delta is not None:
            values["most"] = np.where(is_light, noise.delta, np.ones(parameters["most"]))
        return values

    def broken_pairs(self, noise: NoiseProblem, x: Vector) -> Flags:
        """Find the pairs that a solution breaks, where y covers the excess of f.

        An excess that y does not cover is the solver's rounding: on rows with e^15 it reaches 1e-9.

        Args:
            noise: group, shifts, budgets and loss of the noise.
            x: solution of the program, shape (columns,).

        Returns:
            Which pairs are broken, shape (pairs,).
        """
        excess = x[self.source] - noise.exp_epsilon[self.shift] * x[self.target]
        return (excess > MIN_BROKEN_EXCESS) & (x[self.y] > MIN_BROKEN_EXCESS)

    def broken_table(self, noise: NoiseProblem, x: Vector) -> Flags:
        """Return the pairs that a solution breaks as a table, shape (shifts, N).

        Args:
            noise: group, shifts, budgets and loss of the noise.
            x: solution of the program, shape (columns,).
        """
        table = np.zeros((len(noise.shifts), noise.N), dtype=bool)
        is_broken = self.broken_pairs(noise, x)
        table[self.shift[is_broken], self.element[is_broken]] = True
        return table


def build_relaxation(noise: NoiseProblem, has_own_mass: Flags | None = None) -> Relaxation:
    """Build the linear program of the module header, with the pattern in its parameters.

    Args:
        noise: group, shifts, budgets and loss of the noise.
        has_own_mass: whether each noise value has a variable of its own, shape (N,). The masses of
            the others are summed in one variable. None for all.
    """
    if has_own_mass is None:
        has_own_mass = np.ones(noise.N, dtype=bool)
    mass_count = int(has_own_mass.sum())
    pair_count = mass_count * len(noise.shifts)
    excess_upper = cp.Parameter(pair_count, "room")
    excess_minus_mass_lower = cp.Parameter(pair_count, "least")
    mass_upper = 1.0 if noise.delta is None else cp.Parameter(mass_count, "most")
    frame = _MassFrame(noise, has_own_mass, mass_upper)
    pair_arrays = []  # The columns of f(eta) and f(eta + mu), the shift, and eta of all pairs.
    first = 0
    for k, (exp_epsilon, source, target) in enumerate(frame.pairs()):
        pair_numbers = first + np.arange(source.size)
        y = cp.Variable(source.size, f"y_{k}", (0.0, excess_upper[pair_numbers]))
        frame.state_excess(exp_epsilon, source, target, y)
        frame.limit_excess(y)
        # y - f >= "least", with both sides times -1.
        uncovered_mass = frame.masses[source] - y
        max_uncovered_mass = excess_minus_mass_lower[pair_numbers] * -1.0
        frame.rows.append((uncovered_mass <= max_uncovered_mass).set_label("broken"))
        shift = np.full(y.size, k)
        pair_arrays.append((frame.position[source], frame.position[target], shift, source))
        first += y.size
    program = frame.to_program(f"patterns of PDP noise on {'x'.join(map(str, noise.sizes))}")
    excess_columns = [
        block.start + np.arange(block.size)
        for block in program.variables
        if block.name.startswith("y_")
    ]
    sources, targets, shifts, elements = (
        np.concatenate(arrays) for arrays in zip(*pair_arrays, strict=True)
    )
    return Relaxation(
        program,
        source=sources,
        target=targets,
        shift=shifts,
        y=np.concatenate(excess_columns),
        element=elements,
    )


def build_milp(noise: NoiseProblem, name: str) -> Program:
    """Build the mixed-integer program (13) or (15), with rows that give a tighter relaxation.

    The variables are f, u_mu and y_mu of the paper; u_mu(eta) = 1 if the pair may be broken.

        y >= f(eta) - e^eps f(eta + mu),   sum y <= delta,   y <= min(delta, 1) u,
        f - y <= 1 - u,   u in {0, 1},   for all shifts and elements.

    The program is equivalent to (13). If u = 1, then y >= f, so all of f(eta) counts towards delta.
    If u = 0, then y = 0 and the pair is kept. Conversely, for a PMF that is feasible for (13),
    y = f u is feasible. (13e) and (13g) are not needed: they only force u = 0 on pairs that are
    kept anyway. The linear relaxation implies the linear program of (ε, δ)-DP. The relaxation of
    (13) does not, because a fractional u allows any f - e^eps f(eta + mu) <= u.

    Args:
        noise: group, shifts, budgets and loss of the noise.
        name: name of the program, for files and reports.
    """
    frame = _MassFrame(noise, np.ones(noise.N, dtype=bool))
    delta = 1.0 if noise.delta is None else min(noise.delta, 1.0)
    for mu, (exp_epsilon, source, target) in zip(noise.shifts, frame.pairs(), strict=True):
        label = "_".join(map(str, mu))
        y = cp.Variable(source.size, f"y_{label}", (0.0, delta))
        u = cp.Variable(source.size, f"u_{label}", (0.0, 1.0), boolean=True)
        frame.state_excess(exp_epsilon, source, target, y)
        frame.limit_excess(y)
        frame.rows.append((y <= u * delta).set_label("decided"))
        frame.rows.append((frame.masses[source] - y + u <= 1).set_label("decided"))
    return frame.to_program(name)
