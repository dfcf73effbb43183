"""RR-on-Bins with the best bins: Algorithm 2 of "Regression with Label Differential Privacy", and a fast exact one.

With q = e^ε - 1, F(o) = Σ_y p_y ℓ(o, y) and, for a set S of labels, L(S) = min_o F(o) + q Σ_{y in S} p_y ℓ(o, y), a
partition of the labels into d intervals is worth

    Σ_S L(S) / (d + q)                                                       (the objective; d + q = d - 1 + e^ε)

and by Theorem 5 the least such value is the least loss of any ε-DP randomizer, for every loss of Assumption 4.

| paper            | code                                              |
|------------------|---------------------------------------------------|
| 𝒴, P, ε          | labels (k,), prior (k,), epsilon                  |
| L[r][i]          | `interval_losses`, 0-based, r..i inclusive         |
| A[i][j], d       | `printed_bins`                                    |
| Φ                | starts (d,): first label of each bin              |
| 𝒴^               | values (d,)                                       |

Two algorithms, both exact:

* `printed_bins`: Algorithm 2 as it stands. Erratum: it takes O(k³), not O(k²), because A[i][j] is a minimum over r for
  every pair (i, j). It is the readable oracle, for small k.
* `optimal_bins`: the objective is a fractional programme. Dinkelbach: start at λ = min_o F(o) (one bin); solve
  B(λ) = min over partitions of Σ_S (L(S) - λ) - λ q; set λ to the ratio of the minimiser; repeat until it stops
  falling. L(r, i) itself is not Monge; clamping repairs it: L_c(r, i) takes o between the labels next to the bin. It is
  Monge for every loss unimodal in o, and the optimum is the same, for a clamped bin's label is served better by the
  neighbour. So each round is one pass of `monge.least_partition`, O(k log k). B(λ) >= B(the last) proves the bound
  λ + B(λ) / e^ε.

Valid for squared, absolute, poisson, poisson-deviance and pinball. (ℓ_Poi itself violates Assumption 4; it differs
from the deviance by one constant for every mechanism, so its bins are the deviance's.) Zero-one loss has no interval
structure: see RRTop-k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from workbench.models.losses import Loss, parse_loss
from workbench.solvers.arrays import Integers, Pair, Vector

BIN_LOSSES = ("squared", "absolute", "poisson", "poisson-deviance", "pinball")
_ROUNDED = 1e-12  # relative, what sums over a million labels lose in floats at most
_ROUNDS = 100  # Dinkelbach converges superlinearly; 3 to 6 are usual


@dataclass(frozen=True)
class Bins:
    """An RR-on-Bins mechanism and its worth.

    Attributes:
        starts: (d,) position of the first label of each bin; the first is 0.
        values: (d,) what each bin publishes.
        objective: expected loss under the prior it was designed for, evaluated from starts and values.
        bound: lower bound on the loss of every ε-DP randomizer; the rounding of its sums, 1e-12 relative, is taken off.
        rounds: of Dinkelbach's iteration (0 as printed).
        steps: how many candidates for the last bin were weighed, or interval costs taken: the work, on any machine.
    """

    starts: Integers
    values: Vector
    objective: float
    bound: float
    rounds: int
    steps: int

    @property
    def d(self) -> int:
        """Number of bins."""
        return int(self.starts.size)


def _total(terms: Vector) -> float:
    """The sum of terms, correct to about an ulp."""
    if terms.size < 10_000:
        return math.fsum(terms)
    from workbench.models.oracles.monge import prefix_pairs

    return float(prefix_pairs(terms)[0][-1])


def _shares(labels: ArrayLike, prior: ArrayLike | None) -> Pair:
    """Labels (k,) and their probabilities, which are divided by their sum; uniform where None."""
    y = np.asarray(labels, dtype=float)
    p = np.full(y.size, 1.0 / y.size) if prior is None else np.asarray(prior, dtype=float)
    return y, p / _total(p)


def evaluate_partition(
    labels: Vector, prior: Vector, epsilon: float, loss: Loss, starts: Integers
) -> tuple[float, Vector]:
    """(objective, best values) of a partition, evaluated label by label.

    The objective is Σ_j (F(o_j) + q Σ_{y in bin j} p_y ℓ(o_j, y)) / (d + q). Shapes: starts (d,), values (d,).
    """
    q = math.expm1(epsilon)
    ends = np.append(starts[1:], labels.size)
    values = _best_values(labels, prior, q, loss, starts, ends)
    inside = prior * loss(np.repeat(values, ends - starts), labels)
    return (_total(_average(labels, prior, loss, values)) + q * _total(inside)) / (
        starts.size + q
    ), values


def _average(labels: Vector, prior: Vector, loss: Loss, outputs: Vector) -> Vector:
    """F(o) for each output, by closed forms and running sums. Shape (d,)."""
    mean = _total(prior * labels)
    if loss.kind == "squared":
        return _total(prior * (labels - mean) ** 2) + (outputs - mean) ** 2
    if loss.is_poisson:
        if loss.kind == "poisson":
            return loss(outputs, mean)
        return _total(prior * loss(mean, labels)) + loss(
            outputs, mean
        )  # a Bregman divergence: means add up
    tau, scale = _quantile(loss)
    below0, below1 = (
        np.append(0.0, np.cumsum(terms)) for terms in (prior, prior * (labels - mean))
    )
    count = np.searchsorted(labels, outputs, side="right")
    o = outputs - mean
    below = (1 - tau) * (o * below0[count] - below1[count])
    above = tau * (below1[-1] - below1[count] - o * (below0[-1] - below0[count]))
    return np.asarray(scale * (below + above))


def _quantile(loss: Loss) -> tuple[float, float]:
    """(τ, c): the loss is c times pinball:τ."""
    return (float(loss.parameter), 1.0) if loss.parameter is not None else (0.5, 2.0)


def _best_values(
    labels: Vector, prior: Vector, q: float, loss: Loss, starts: Integers, ends: Integers
) -> Vector:
    """argmin_o F(o) + q Σ_S p ℓ(o, y) for each bin: the weighted mean, or the weighted quantile (least minimiser)."""
    inside0 = np.add.reduceat(prior, starts)
    if loss.kind in ("squared", "poisson", "poisson-deviance"):
        mean = _total(prior * labels)
        return mean + q * np.add.reduceat(prior * (labels - mean), starts) / (1.0 + q * inside0)
    tau, _ = _quantile(loss)
    below = np.cumsum(prior)
    before = np.concatenate([[0.0], below])[starts]
    target = tau * (1.0 + q * inside0)
    # cumulative weight before the bin is P, inside it is P + q (P - P[start]), behind it P + q Σ_S p
    inside = np.searchsorted(below, (target + q * before) / (1.0 + q))
    behind = np.searchsorted(below, target - q * inside0)
    at = np.searchsorted(below, target)
    at = np.where(
        at < starts,
        at,
        np.where(inside < ends, np.maximum(inside, starts), np.maximum(behind, ends)),
    )
    return labels[np.minimum(at, labels.size - 1)]


def optimal_bins(
    labels: ArrayLike, prior: ArrayLike | None, epsilon: float, loss: str | Loss = "squared"
) -> Bins:
    """The best bins by Dinkelbach's iteration over Monge partitions (module docstring). 10^6 labels in seconds.

    labels: (k,) strictly increasing; prior: (k,) weights >= 0 or None for uniform; epsilon: in (0, 30].
    Raises ValueError.
    """
    from workbench.models.oracles.monge import least_partition

    loss = _bin_loss(loss)
    y, p = _shares(labels, prior)
    q = math.expm1(_budget(epsilon))
    problem = _table(y, p, q, loss)
    starts = np.zeros(1, dtype=np.int64)
    objective, values = evaluate_partition(y, p, epsilon, loss, starts)
    constant = (
        _total(p * loss.deviance_constant(y)) if loss.kind == "poisson" else 0.0
    )  # the kernel knows the deviance
    bound, rounds, steps = -math.inf, 0, 0
    while rounds < _ROUNDS:
        rounds += 1
        rate = objective + constant
        least, least_starts, taken = least_partition(problem, rate)
        steps += int(taken)
        bound = max(bound, objective + min(0.0, least - rate * q) / (1.0 + q))
        worth, best = evaluate_partition(y, p, epsilon, loss, least_starts)
        if not worth < objective:
            break
        objective, starts, values = worth, least_starts, best
    bound = min(bound, objective)
    return Bins(starts, values, objective, bound - _ROUNDED * abs(bound), rounds, steps)


def _table(
    y: Vector, p: Vector, q: float, loss: Loss
) -> tuple[int, Vector, Vector, tuple[float, ...]]:
    """The problem of `least_partition`: kind, table, below, (q, mean, spread, tau, scale)."""
    from workbench.models.oracles.monge import POISSON, QUANTILE, SQUARED, prefix_pairs

    mean = _total(p * y)
    spread, tau, scale = 0.0, 0.5, 1.0
    table = np.zeros((y.size + 1, 8))
    if loss.is_poisson:
        kind, shown, third = POISSON, y, p * (loss.deviance_constant(y) + y)
        spread = max(_total(p * Loss("poisson-deviance")(mean, y)), 0.0) if mean > 0 else 0.0
    else:
        kind, shown = (SQUARED if loss.kind == "squared" else QUANTILE), y - mean
        third = p * shown**2
        if kind == SQUARED:
            spread = _total(third)
    for column, terms in ((0, p), (2, p * shown), (4, third)):
        table[:, column], table[:, column + 1] = prefix_pairs(terms)
    table[:-1, 6] = shown
    if kind == QUANTILE:
        tau, scale = _quantile(loss)
        table[:-1, 7] = _average(y, p, loss, y)
    numbers = q, (mean if loss.is_poisson else 0.0), spread, tau, scale
    return kind, table, np.ascontiguousarray(table[:, 0]), numbers


def printed_bins(
    labels: ArrayLike, prior: ArrayLike | None, epsilon: float, loss: str | Loss = "squared"
) -> Bins:
    """Algorithm 2 as printed: O(k³) time and O(k²) memory, the readable oracle. Arguments as `optimal_bins`.

    The two inner loops (over j and over r) are one array operation.
    """
    loss = _bin_loss(loss)
    y, p = _shares(labels, prior)
    k, q = y.size, math.expm1(_budget(epsilon))
    starts, worth = best_partition(interval_losses(y, p, epsilon, loss), q)
    objective, values = evaluate_partition(y, p, epsilon, loss, starts)
    steps = k * (k + 1) * (2 * k + 1) // 6  # Σ i² options
    return Bins(starts, values, objective, min(worth, objective), 0, steps)


def best_partition(losses: Vector, q: float) -> tuple[Integers, float]:
    """(starts (d,), Σ L / (d + q)) of the partition into intervals for which that is least. losses: L[r, i] of the
    interval r..i, (k, k)."""
    k = len(losses)
    A = np.full((k + 1, k + 1), np.inf)
    came = np.zeros((k + 1, k + 1), dtype=np.int32)
    A[0, 0] = 0.0
    for i in range(1, k + 1):
        # A[i][j] = min over 0 <= r < i of A[r][j-1] + L[r+1][i]
        options = A[:i, :i] + losses[:i, i - 1, None]
        came[i, 1 : i + 1] = options.argmin(axis=0)
        A[i, 1 : i + 1] = options.min(axis=0)
    ratios = A[k, 1:] / (np.arange(1, k + 1) + q)
    d = int(np.argmin(ratios)) + 1
    starts = np.zeros(d, dtype=np.int64)
    i = k
    for j in range(d, 0, -1):
        i = int(came[i, j])
        starts[j - 1] = i
    return starts, float(ratios[d - 1])


def interval_losses(y: Vector, p: Vector, epsilon: float, loss: Loss) -> Vector:
    """L[r, i] = min_o F(o) + q Σ_{r <= j <= i} p_j ℓ(o, y_j), without clamping; inf for i < r. Shape (k, k)."""
    q, k, squared = math.expm1(epsilon), y.size, loss.kind == "squared"
    L = np.full((k, k), np.inf)
    if squared or loss.is_poisson:
        shown = y - _total(p * y) if squared else y
        constant = loss.deviance_constant(y) if loss.kind == "poisson-deviance" else 0.0
        terms = [
            (_total(each), each) for each in (p, p * shown, p * (shown**2 if squared else constant))
        ]
        for r in range(k):
            w, m, rest = (total + q * np.cumsum(each[r:]) for total, each in terms)
            # squared: Σwy² - (Σwy)²/Σw; the print lacks Σw on the last term of Σwy² - 2(Σwy)x + x²
            L[r, r:] = (
                rest - m * m / w
                if squared
                else rest + (m - m * np.log(np.where(m > 0, m / w, 1.0)))
            )
        return L
    at_labels = loss.matrix(y, y) * p[:, None]  # a minimiser is a label; (labels, outputs)
    everywhere = at_labels.sum(axis=0)
    for r in range(k):
        L[r, r:] = (everywhere + q * np.cumsum(at_labels[r:], axis=0)).min(axis=1)
    return L


def _bin_loss(loss: str | Loss) -> Loss:
    named = parse_loss(loss)
    if named.kind not in BIN_LOSSES:
        allowed = [*BIN_LOSSES[:-1], "pinball:τ"]
        raise ValueError(
            f"loss must be one of {', '.join(allowed)} for RR-on-Bins. Got {named.name!r}."
        )
    return named


def _budget(epsilon: float) -> float:
    if not 0 < epsilon <= 30:
        raise ValueError(f"epsilon must be in (0, 30] for RR-on-Bins. Got {epsilon}.")
    return float(epsilon)
