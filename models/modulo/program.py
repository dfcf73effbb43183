"""State the programs of optimal additive noise on a finite abelian group, for PDP and DP.

`ModuloModel(...).program` is one of the programs below. (13) to (15) are those of Kadam et al.
2024.

Notation. The answer is an element of G = Z_{n1} x ... x Z_{nk} (a scalar query is k = 1), and N is
the order of G (n + 1 for answers 0..n). Noise eta is added in G, f is its PMF, rho the vector of
losses of the noise values, and rho'f the expected loss. Neighbouring databases move the answer by a
difference mu in M. (u, y) are auxiliary variables: u(eta) = 1 if the inequality of (eta, mu) may be
broken, and y(eta) is f(eta) if it may, else 0. MILP is a mixed-integer and LP a linear program.

    literal MILP (13)   min rho'f   s.t.  sum f = 1, and for every mu in M a pair (u, y) with, for
                                          every eta,
                        sum y <= delta, y <= u, u + f - y <= 1, u - f + y <= 1,      (13c)-(13e)
                        f(eta) - e^eps f(eta + mu) <= u(eta),                        (13f)
                        e^eps f(eta + mu) - f(eta) + e^eps u(eta) <= e^eps,          (13g)
                        f, y in [0, 1], u in {0, 1}                                  (13h)
    LP (14)             min rho'f   s.t.  sum f = 1, f(eta) <= e^eps f(eta + mu)
    DP-LP               min rho'f   s.t.  sum f = 1, y >= f(eta) - e^eps f(eta + mu), y >= 0,
                                          sum y <= delta
    minimum delta (15)  the same constraints with delta a variable to minimise and rho'f <= max_loss
    of a pattern        (14) except for given pairs (eta, mu), which may be broken, with mass at
                        most delta for every mu
    convex bounds       min rho'f   s.t.  sum f = 1, and bounds on (f, f(. + mu)), which are stated
                                          by tangents

(13) bounds the mass on which the privacy loss exceeds eps. The DP-LP bounds the hockey-stick
divergence. At delta = 0 both are LP (14). Every model accepts one eps per difference (metric
privacy) and user-defined linear constraints. Under convex bounds the model states no differences,
because `workbench.models.convex.tangent_program` adds the tangents as they are needed.

| paper                | here                                          |
|----------------------|-----------------------------------------------|
| n, [n]               | sizes = (n + 1,)                              |
| mathcal{M}, mu_XX'   | shifts                                        |
| f(eta), u(eta), y    | variables "f", "u_mu", "y_mu"                 |
| e^eps, delta, rho-bar| parameters "exp_epsilon", "delta", "max_loss" |
| rho_eta              | loss                                          |
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

# Programs are solved in units of 2^-20 of probability, so that solvers' absolute tolerances (1e-6
# or 1e-7) are small beside a delta of 1e-8. Unscaled, HiGHS calls feasible problems infeasible, and
# Gurobi returns 1.57e-6 for 1e-6.
MASS_SCALE = 2.0**20
# Solutions that `workbench.models.modulo.fast` proves by level functions name this as their solver.
LEVELS = "level functions"
_MAX_PRIOR_SUM_ERROR = 1e-9  # The probabilities of a prior sum to 1 up to this.

# The losses by name, with their definition for one cyclic factor.
LOSSES = {
    "error-rate": "probability that the answer is wrong, 1 - f(0)",
    "eta-squared": (
        "the paper's E[eta^2] with eta in 0..n; misleading when noise may wrap downwards"
    ),
    "squared": (
        "E(answer - truth)^2 over uniform true answers; the sum wraps, so it is eta (N - eta)"
    ),
    "circular-squared": "E of the squared circular distance, min(eta, N - eta)^2",
    "prior-squared": "E(answer - truth)^2 over the true answers' prior",
    "worst-squared": "E(answer - truth)^2 for the worst true answer (epigraph)",
}


def shift_positions(sizes: Sequence[int], shift: Shift) -> Positions:
    """Return the row-major positions of eta + shift for every eta, shape (N,).

    With them f[shift_positions(sizes, mu)] is f(eta + mu).

    Args:
        sizes: orders of the cyclic factors.
        shift: the difference mu.
    """
    grid = np.arange(math.prod(sizes)).reshape(tuple(sizes))
    return np.roll(grid, tuple(-k for k in shift), axis=tuple(range(len(sizes)))).ravel()


class UserLosses(str):
    """User-defined losses. The object is a string, a unique name, that also carries the losses.

    So it can stand wherever a key of LOSSES can.

    Attributes:
        exact: losses >= 0 of the noise values, row-major, length N.
        values: the same losses in floats, shape (N,).
    """

    exact: tuple[Fraction, ...]
    values: Vector

    @classmethod
    def from_values(
        cls,
        name: str,
        exact: Sequence[Fraction],
        values: Vector,
    ) -> UserLosses:
        """Build the losses.

        Args:
            name: name derived from the values, so that equal names have equal losses.
            exact: losses >= 0 of the noise values, row-major, length N.
            values: the same losses in floats, shape (N,).
        """
        losses = cls(name)
        losses.exact = tuple(exact)
        losses.values = values
        return losses


def loss_vector(loss: str, sizes: Sequence[int], prior: Vector | None = None) -> Vector:
    """Compute the loss (distortion) rho_eta of every noise value.

    For vector queries squared errors are summed over the coordinates, and "error-rate" counts an
    answer with any wrong coordinate.

    Args:
        loss: a key of LOSSES, or an object of `UserLosses`.
        sizes: orders of the cyclic factors.
        prior: weights of the true answer, row-major, shape (N,). Required by "prior-squared" and
            refused by all others.

    Returns:
        Distortions in row-major order, shape (N,); for "worst-squared" a matrix of answers by noise
        values, shape (N, N).

    Raises:
        ValueError: unknown loss, or a missing, superfluous or invalid prior.
    """
    N = math.prod(sizes)
    if isinstance(loss, UserLosses):
        return loss.values
    if loss not in LOSSES:
        raise ValueError(f"loss must be one of {', '.join(LOSSES)}. Got {loss!r}.")
    if (prior is None) == (loss == "prior-squared"):
        count = "none" if prior is None else "one"
        raise ValueError(
            f"prior must be given with loss prior-squared, and only there. Got {count}."
        )
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
    published = np.mod(truth + eta[:, None, :], order[:, :, None])
    errors = (published - truth) ** 2
    losses_by_answer = errors.sum(axis=0)  # The shape is (answers, noise values).
    if loss == "worst-squared":
        return np.asarray(losses_by_answer)
    p = np.asarray(prior, dtype=float)
    is_distribution = (
        p.shape == (N,)
        and np.isfinite(p).all()
        and not (p < 0).any()
        and math.isclose(p.sum(), 1.0, abs_tol=_MAX_PRIOR_SUM_ERROR)
    )
    if not is_distribution:
        raise ValueError(
            f"prior must be {N} probabilities that sum to 1. Got shape {p.shape}, sum {p.sum():g}."
        )
    return np.asarray(p @ losses_by_answer)


@dataclass(frozen=True, eq=False)
class ModuloModel:
    """One of the programs of the module header, compiled once for all eps, delta and max_loss.

    Attributes:
        sizes: orders of the cyclic factors.
        shifts: the differences M, closed under negation if the relation is symmetric.
        requires: the bound on neighbouring distributions, one of
            `workbench.models.convex.requirements.RATIO_BOUNDS`.
        loss: distortion of every noise value, shape (N,), or (N, N) for the worst true answer.
        minimise: "loss" for a given delta, or "delta" for a given max_loss.
        has_delta: False states LP (14), True the model with delta.
        groups: entry of the parameter "exp_epsilon" for each shift; empty for one eps.
        constraints: user-defined linear constraints, a function of the CVXPY variable f (N,), or
            None.
        broken_pairs: the pairs that may be broken, shape (shifts, N), which makes the model linear.
            None if the model chooses them.
        unit: a program that minimises a loss of shape (N,) is solved in (loss - shift) / unit.
        shift: number that is subtracted from the loss before it is divided by `unit`.
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
        """Return the name of the model in reports, such as "MILP (13)"."""
        if not self.has_delta:
            return "LP (14)"
        model = "DP-LP" if self.requires == HOCKEY_STICK else "MILP (13)"
        if self.minimise == "delta":
            return f"minimum delta by {model}"
        return model

    @property
    def is_pattern_model(self) -> bool:
        """Check whether `workbench.models.modulo.fast` solves the model.

        It solves models that bound a mass above a ratio, with a positive or minimised delta.
        """
        return self.requires == MASS_ABOVE_RATIO and self.has_delta

    @ignore_float_warnings
    def problem(self, cp: Any) -> Any:
        """State the model as it stands in the paper.

        Args:
            cp: the language of the statement: CVXPY, or a module with the same names
                (`workbench.models.statement`).
        """
        groups = self.groups or (0,) * len(self.shifts)
        f = cp.Variable(math.prod(self.sizes), name="f", bounds=[0, 1])
        epsilon_count = max(groups, default=0) + 1
        exp_epsilon = cp.Parameter(epsilon_count, name="exp_epsilon", nonneg=True)
        distortion = self.loss @ f
        if self.loss.ndim == 2:
            distortion = cp.max(distortion)
        rows = [cp.sum(f) == 1]  # (13b)
        delta = None
        if self.has_delta and self.minimise == "delta":
            delta = cp.Variable(name="delta", bounds=[0, 1])
        elif self.has_delta:
            delta = cp.Parameter(name="delta", nonneg=True)
        for k, (mu, group) in enumerate(zip(self.shifts, groups, strict=True)):
            shifted_f = f[shift_positions(self.sizes, mu)]
            rows += self._privacy_rows(
                cp, f, shifted_f, e=exp_epsilon[group], delta=delta, shift_number=k
            )
        if self.constraints is not None:
            rows += self.constraints(f)
        if self.minimise == "delta":
            rows.append(distortion <= cp.Parameter(name="max_loss"))  # (15b)
            return cp.Problem(cp.Minimize(delta), rows)
        return cp.Problem(cp.Minimize(distortion), rows)

    def _privacy_rows(
        self,
        cp: Any,
        f: Any,
        shifted_f: Any,
        e: Any,
        delta: Any,
        shift_number: int,
    ) -> list[Any]:
        """Return the privacy rows of the difference mu with this number in `shifts`.

        `cp` is the module cvxpy, `f` the PMF, `shifted_f` is f(eta + mu), and `e` is e^eps.
        """
        label = "_".join(map(str, self.shifts[shift_number]))
        if not self.has_delta:
            return [f <= e * shifted_f]  # (14c)
        if self.broken_pairs is not None:
            is_broken = self.broken_pairs[shift_number]
            broken = np.flatnonzero(is_broken)
            intact = np.flatnonzero(~is_broken)
            rows = [f[intact] <= e * shifted_f[intact]]
            if broken.size:
                rows.append(cp.sum(f[broken]) <= delta)
            return rows
        y = cp.Variable(f.size, name=f"y_{label}", bounds=[0, 1])
        if self.requires == HOCKEY_STICK:
            return [y >= f - e * shifted_f, cp.sum(y) <= delta]
        u = cp.Variable(f.size, name=f"u_{label}", boolean=True)
        return [
            cp.sum(y) <= delta,  # (13c)
            y <= u,  # (13c)
            u + f - y <= 1,  # (13d)
            u - f + y <= 1,  # (13e)
            f - e * shifted_f <= u,  # (13f)
            e * shifted_f - f + e * u <= e,  # (13g)
        ]

    @cached_property
    def program(self) -> Program:
        """Compile the model, without CVXPY unless user-defined constraints need it."""
        group = "x".join(map(str, self.sizes))
        name = f"noise {self.kind} on {group} with {len(self.shifts)} differences"
        without_cvxpy = is_stated_without_cvxpy(self.constraints)
        program = build_program(self.problem, name, MASS_SCALE, without_cvxpy=without_cvxpy)
        if self.unit == 1 and not self.shift:
            return program
        data = program.template
        block = program.block("f")
        costs = data.c.copy()
        # The masses sum to 1, so the shift of the costs is a constant.
        costs[block.start : block.start + block.size] -= self.shift
        return replace(
            program, template=replace(data, c=costs), cost=1 / self.unit, shift=self.shift
        )

    @property
    def scaled_loss(self) -> Vector:
        """Return the distortions in which a program is solved, in the shape of `loss`."""
        return (np.asarray(self.loss, dtype=float) - self.shift) / self.unit

    def build_comparisons(self, shifts: Sequence[Shift]) -> Comparisons:
        """Return the pairs of laws f and f(. + mu), for bounds that are stated by tangents.

        Args:
            shifts: the differences mu.
        """
        from workbench.models.convex.tangent_program import Comparisons

        f = self.program.block("f")
        entries = sp.csr_array(sp.eye_array(self.program.shape[1]))
        second = np.stack([f.start + shift_positions(self.sizes, mu) for mu in shifts])
        return Comparisons(entries, f.start + np.arange(f.size), second)

    def values(
        self,
        epsilons: Sequence[float],
        delta: float | None = None,
        max_loss: float | None = None,
    ) -> Mapping[str, Any]:
        """Return the values of the parameters "exp_epsilon", "delta" and "max_loss" by name.

        Only the parameters that the model has are returned.

        Args:
            epsilons: eps of every group.
            delta: budget delta; None unless the model has it as a parameter.
            max_loss: largest loss; None unless delta is minimised.
        """
        values: dict[str, Any] = {"exp_epsilon": np.exp(np.asarray(epsilons, dtype=float))}
        if self.minimise == "delta":
            values["max_loss"] = max_loss
        elif self.has_delta:
            values["delta"] = delta
        return values
