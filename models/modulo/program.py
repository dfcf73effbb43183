"""Optimal additive noise on a finite abelian group: the models of Kadam et al. 2024, and their DP
counterparts.

The answer q lives in G = Z_{n1} x ... x Z_{nk} (a scalar query is k = 1, N = n + 1), noise is added
in G, and neighbouring databases move the answer by a difference mu in M. With f the noise's PMF on
G the models are

    literal MILP (13)   min rho'f   s.t.  sum f = 1, and for every mu in M a pair (u, y) with, for every eta,
                        sum y <= delta, y <= u, u + f - y <= 1, u - f + y <= 1,            (13c)-(13e)
                        f(eta) - e^eps f(eta + mu) <= u(eta),                              (13f)
                        e^eps f(eta + mu) - f(eta) + e^eps u(eta) <= e^eps,                (13g)
                        f, y in [0, 1], u in {0, 1}                                        (13h)
    LP (14)             min rho'f   s.t.  sum f = 1, f(eta) <= e^eps f(eta + mu)
    DP-LP               min rho'f   s.t.  sum f = 1, y >= f(eta) - e^eps f(eta + mu), y >= 0, sum y <= delta
    minimum delta (15)  the same constraints with delta a variable to minimise and rho'f <= max_loss
    of a pattern        (14) but for given pairs (eta, mu), which may be broken, with mass delta at most for every mu
    convex bounds       min rho'f   s.t.  sum f = 1, and tangents of the bounds on (f, f(. + mu)), as they are needed

(13) bounds the mass on which the privacy loss exceeds eps, the DP-LP the hockey-stick divergence;
both are LP (14) at delta = 0. Every model takes one eps per difference (metric privacy) and linear
constraints of the user's own. Under convex bounds the model has no differences;
`workbench.models.convex.tangent_program` states them.

| paper                | here                        |
|----------------------|-----------------------------|
| n, [n]               | sizes = (n + 1,)            |
| mathcal{M}, mu_XX'   | shifts                      |
| f(eta), u(eta), y    | variables "f", "u_mu", "y_mu" |
| e^eps, delta, rho-bar| parameters "exp_epsilon", "delta", "max_loss" |
| rho_eta              | loss                        |
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from workbench.models.convex.requirements import HOCKEY_STICK, MASS_ABOVE_RATIO
from workbench.models.modulo.constraints import (
    UserConstraints,
    group_coordinates,
    is_stated_without_cvxpy,
)
from workbench.models.statement import build_program
from workbench.solvers.arrays import Flags, Ints, Positions, Vector
from workbench.solvers.program import Program, ignore_float_warnings

if TYPE_CHECKING:
    from workbench.models.convex.tangent_program import Comparisons


Shift = Ints

# Programs are dispatched in units of 2^-20 of probability, so that solvers' absolute tolerances (1e-6 or 1e-7) do not
# swallow a delta of 1e-8: unscaled, HiGHS calls feasible problems infeasible and Gurobi returns 1.57e-6 for 1e-6.
MASS_SCALE = 2.0**20
LEVELS = "level functions"  # the solver of what they prove (`workbench.models.modulo.fast`)

LOSSES = {
    "error-rate": "probability that the answer is wrong, 1 - f(0)",
    "eta-squared": "the paper's E[eta^2] with eta in 0..n; misleading when noise may wrap downwards",
    "squared": "E(answer - truth)^2 over uniform true answers; the sum wraps, so it is eta (N - eta)",
    "circular-squared": "E of the squared circular distance, min(eta, N - eta)^2",
    "prior-squared": "E(answer - truth)^2 over the true answers' prior",
    "worst-squared": "E(answer - truth)^2 for the worst true answer (epigraph)",
}


def shift_positions(sizes: Sequence[int], shift: Shift) -> Positions:
    """Positions of eta + shift, row-major, for every eta in the group: f[shifted(...)] is f(eta + mu)."""
    grid = np.arange(math.prod(sizes)).reshape(tuple(sizes))
    return np.roll(grid, tuple(-k for k in shift), axis=tuple(range(len(sizes)))).ravel()


class UserLosses(str):
    """Losses that are no key of LOSSES, under a name that no others have. exact: (N,), row-major, finite, >= 0; values:
    the same in floats."""

    exact: tuple[Fraction, ...]
    values: Vector

    @classmethod
    def from_values(cls, name: str, exact: Sequence[Fraction], values: Vector) -> UserLosses:
        """name: made of the values, so that equal names are equal costs."""
        losses = cls(name)
        losses.exact, losses.values = tuple(exact), values
        return losses


def loss_vector(loss: str, sizes: Sequence[int], prior: Vector | None = None) -> Vector:
    """Distortion rho_eta of every noise value (N,), row-major; for "worst-squared" a matrix (N, N), answers by noise.

    Vector queries sum squared errors over their coordinates (and "error-rate" counts any wrong coordinate).

    Args:
        loss: a key of LOSSES, or OwnLosses.
        sizes: orders of the cyclic factors.
        prior: (N,) distribution of the true answer, row-major; needed by "prior-squared" and refused elsewhere.

    Raises:
        ValueError: unknown loss, missing, superfluous or invalid prior.
    """
    N = math.prod(sizes)
    if isinstance(loss, UserLosses):
        return loss.values
    if loss not in LOSSES:
        raise ValueError(f"loss must be one of {', '.join(LOSSES)}. Got {loss!r}.")
    if (prior is None) == (loss == "prior-squared"):
        got = "none" if prior is None else "one"
        raise ValueError(f"prior must be given with loss prior-squared, and only there. Got {got}.")
    if loss == "error-rate":
        return np.concatenate([[0.0], np.ones(N - 1)])
    eta = group_coordinates(sizes).astype(float)
    order = np.asarray(sizes, dtype=float)[:, None]
    if loss == "eta-squared":
        return np.asarray((eta**2).sum(axis=0))
    if loss == "squared":
        return np.asarray((eta * (order - eta)).sum(axis=0))
    if loss == "circular-squared":
        return np.asarray((np.minimum(eta, order - eta) ** 2).sum(axis=0))
    truth = eta[:, :, None]
    errors = (np.mod(truth + eta[:, None, :], order[:, :, None]) - truth) ** 2
    by_answer = errors.sum(axis=0)  # (N answers, N noise values)
    if loss == "worst-squared":
        return np.asarray(by_answer)
    p = np.asarray(prior, dtype=float)
    if (
        p.shape != (N,)
        or not np.isfinite(p).all()
        or (p < 0).any()
        or not math.isclose(p.sum(), 1.0, abs_tol=1e-9)
    ):
        raise ValueError(
            f"prior must be {N} probabilities that sum to 1. Got shape {p.shape}, sum {p.sum():g}."
        )
    return np.asarray(p @ by_answer)


@dataclass(frozen=True, eq=False)
class ModuloModel:
    """One model of the family, stated in CVXPY and compiled once; eps, delta and max_loss are its parameters.

    Attributes:
        sizes: orders of the cyclic factors.
        shifts: the differences M, closed under negation when the relation is symmetric.
        requires: of neighbouring distributions, one of `workbench.models.convex.requirements.RATIO_BOUNDS`.
        loss: (N,) distortion of every noise value, or (N, N) for a worst case over true answers.
        minimise: "loss" for given delta, or "delta" for a given max_loss.
        positive_delta: False states LP (14), True the model with delta.
        groups: which eps each shift takes (positions in the parameter "exp_epsilon"); all 0 for one eps.
        constraints: more linear constraints on f, as a function of the CVXPY variable (N,).
        broken: (shifts, N) the pairs that may be broken, where they are given: then the model is linear.
        unit, shift: a program that minimises a loss (N,) is solved in (loss - shift) / unit.
    """

    sizes: Ints
    shifts: tuple[Shift, ...]
    requires: str
    loss: Vector
    minimise: str = "loss"
    has_delta: bool = True
    groups: Ints = ()
    constraints: UserConstraints | None = None
    broken_pairs: Flags | None = None
    unit: float = 1.0
    shift: float = 0.0

    @property
    def kind(self) -> str:
        """Which of the models this is."""
        if not self.has_delta:
            return "LP (14)"
        model = "DP-LP" if self.requires == HOCKEY_STICK else "MILP (13)"
        return model if self.minimise == "loss" else f"minimum delta by {model}"

    @property
    def is_pattern_model(self) -> bool:
        """Whether `workbench.models.modulo.fast` solves it: a mass above a ratio, with a positive or minimised
        delta."""
        return self.requires == MASS_ABOVE_RATIO and self.has_delta

    @ignore_float_warnings
    def problem(self, cp: Any) -> Any:
        """The model as it stands in the paper, in CVXPY or another language of the same names
        (`workbench.models.statement`)."""
        groups = self.groups or (0,) * len(self.shifts)
        f = cp.Variable(math.prod(self.sizes), name="f", bounds=[0, 1])
        exp_epsilon = cp.Parameter(max(groups, default=0) + 1, name="exp_epsilon", nonneg=True)
        distortion = cp.max(self.loss @ f) if self.loss.ndim == 2 else self.loss @ f
        rows = [cp.sum(f) == 1]  # (13b)
        delta = None
        if self.has_delta and self.minimise == "delta":
            delta = cp.Variable(name="delta", bounds=[0, 1])
        elif self.has_delta:
            delta = cp.Parameter(name="delta", nonneg=True)
        for k, (mu, group) in enumerate(zip(self.shifts, groups, strict=True)):
            moved, label = f[shift_positions(self.sizes, mu)], "_".join(map(str, mu))  # f(eta + mu)
            rows += self._privacy(cp, f, moved, exp_epsilon[group], delta, (label, k))
        rows += self.constraints(f) if self.constraints else []
        if self.minimise == "delta":
            rows.append(distortion <= cp.Parameter(name="max_loss"))  # (15b)
            return cp.Problem(cp.Minimize(delta), rows)
        return cp.Problem(cp.Minimize(distortion), rows)

    def _privacy(
        self, cp: Any, f: Any, moved: Any, e: Any, delta: Any, which: tuple[str, int]
    ) -> list[Any]:
        """The rows of a difference. which: its name and position."""
        label, k = which
        if not self.has_delta:
            return [f <= e * moved]  # (14c)
        if self.broken_pairs is not None:
            some, kept = np.flatnonzero(self.broken_pairs[k]), np.flatnonzero(~self.broken_pairs[k])
            return [f[kept] <= e * moved[kept], *([cp.sum(f[some]) <= delta] if some.size else [])]
        y = cp.Variable(f.size, name=f"y_{label}", bounds=[0, 1])
        if self.requires == HOCKEY_STICK:
            return [y >= f - e * moved, cp.sum(y) <= delta]
        u = cp.Variable(f.size, name=f"u_{label}", boolean=True)
        return [
            cp.sum(y) <= delta,  # (13c)
            y <= u,  # (13c)
            u + f - y <= 1,  # (13d)
            u - f + y <= 1,  # (13e)
            f - e * moved <= u,  # (13f)
            e * moved - f + e * u <= e,  # (13g)
        ]

    @cached_property
    def program(self) -> Program:
        """The model as a program, without CVXPY unless a user's constraints are stated in it."""
        where = "x".join(map(str, self.sizes))
        name = f"noise {self.kind} on {where} with {len(self.shifts)} differences"
        program = build_program(
            self.problem, name, MASS_SCALE, without_cvxpy=is_stated_without_cvxpy(self.constraints)
        )
        if self.unit == 1 and not self.shift:
            return program
        data, block = program.template, program.block("f")
        costs = data.c.copy()
        costs[block.start : block.start + block.size] -= self.shift  # of masses that sum to 1
        return replace(
            program, template=replace(data, c=costs), cost=1 / self.unit, shift=self.shift
        )

    @property
    def scaled_loss(self) -> Vector:
        """The distortions in which a program is solved."""
        return (np.asarray(self.loss, dtype=float) - self.shift) / self.unit

    def build_comparisons(self, shifts: Sequence[Shift]) -> Comparisons:
        """f and f(. + mu) of differences, where bounds on them are stated by tangents."""
        from workbench.models.convex.tangent_program import Comparisons

        f, columns = self.program.block("f"), self.program.shape[1]
        moved = np.stack([f.start + shift_positions(self.sizes, mu) for mu in shifts])
        return Comparisons(sp.csr_array(sp.eye_array(columns)), f.start + np.arange(f.size), moved)

    def values(
        self, epsilons: Sequence[float], delta: float | None = None, max_loss: float | None = None
    ) -> Mapping[str, Any]:
        """Parameter values of the program: one eps per group, and delta or max_loss as the model asks."""
        named = {"exp_epsilon": np.exp(np.asarray(epsilons, dtype=float))}
        if self.minimise == "delta":
            return named | {"max_loss": max_loss}
        return named | {"delta": delta} if self.has_delta else named
