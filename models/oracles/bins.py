"""Find the optimal bins of RR-on-Bins, the label randomizer with the smallest expected loss.

RR-on-Bins divides the labels into intervals (bins), each with one output. It publishes the output
of the label's bin with a larger probability, by the factor e^ε, than each other output.
`optimal_bins` returns the bins, their outputs and the expected loss. For example, the labels 0, 1
and 5 with equal weights, squared loss and ε = 2 have the bins {0, 1} and {5} with the outputs 0.785
and 4.041.

The paper is Ghazi et al. 2022, "Regression with Label Differential Privacy". `printed_bins` is its
Algorithm 2, `optimal_bins` is faster. Both are exact.

Notation. y is a label with the prior probability p_y, o an output, ℓ(o, y) the loss, k the number
of labels and d the number of bins.

With q = e^ε - 1, F(o) = Σ_y p_y ℓ(o, y) and, for a set S of labels,

    L(S) = min_o F(o) + q Σ_{y in S} p_y ℓ(o, y),

the objective of a partition of the labels into d intervals is

    Σ_S L(S) / (d + q),    d + q = d - 1 + e^ε.

By Theorem 5 of the paper its minimum is the smallest loss of any ε-DP randomizer, for every loss
that satisfies Assumption 4 of the paper.

| paper            | code                                              |
|------------------|---------------------------------------------------|
| 𝒴, P, ε          | labels (k,), prior (k,), epsilon                  |
| L[r][i]          | `interval_losses`, 0-based, r..i inclusive        |
| A[i][j], d       | `best_partition`                                  |
| Φ                | starts (d,): first label of each bin              |
| 𝒴^               | values (d,)                                       |

The two algorithms:

* `printed_bins`: Algorithm 2 as printed. Erratum: it takes O(k³) steps, not O(k²), because A[i][j]
  is a minimum over r for every pair (i, j). It is easy to read, and serves to check `optimal_bins`
  for small k.
* `optimal_bins`: the objective is a ratio, which Dinkelbach's iteration minimises. It starts at
  λ = min_o F(o), the loss with a single bin. Each round solves B(λ) = min over partitions of
  Σ_S (L(S) - λ) - λ q, and sets λ to the ratio of the minimiser. The iteration ends when λ stops
  falling. The loss L(r, i) of the labels r..i is not Monge: it violates the quadrangle inequality
  that a fast search needs (`workbench.models.oracles.monge`). The clamped loss L_c(r, i), whose
  output o lies between the labels next to the bin, is Monge for every loss unimodal in o. The
  optimum is the same: if the output of a bin lies beyond the next label, that label can be moved
  into the bin without a larger loss.
  So each round is one pass of `monge.least_partition`, in O(k log k) steps. The value B(λ) of the
  last round proves the lower bound λ + B(λ) / e^ε.

The algorithms are valid for the losses squared, absolute, poisson, poisson-deviance and pinball.
The Poisson loss violates Assumption 4, but it differs from the deviance by the same constant for
every mechanism, so both have the same bins. The optimal randomizer for the error rate does not use
intervals: see RRTop-k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from workbench.models.losses import Loss, parse_loss
from workbench.solvers.arrays import Integers, Pair, Vector

BIN_LOSSES = ("squared", "absolute", "poisson", "poisson-deviance", "pinball")
_SUM_ROUNDING = 1e-12  # Float sums over a million labels have at most this relative error.
# Dinkelbach's iteration ends after this many rounds. It converges superlinearly; 3 to 6 are usual.
_MAX_ROUNDS = 100
# Sums of this many terms or more use compensated running sums, which are faster than `math.fsum`.
_MAX_FSUM_TERMS = 10_000
_MAX_BIN_EPSILON = 30  # A larger ε is refused, because the weights then have too few digits.


@dataclass(frozen=True)
class Bins:
    """An RR-on-Bins mechanism and its loss.

    Attributes:
        starts: position of the first label of each bin, the first 0, shape (d,).
        values: output that is published for each bin, in label units, shape (d,).
        objective: expected loss under the prior of the design, computed from starts and values.
        bound: lower bound on the loss of every ε-DP randomizer. `optimal_bins` subtracts the
            rounding of its sums (1e-12 relative); `printed_bins` does not.
        rounds: rounds of Dinkelbach's iteration, 0 for Algorithm 2 as printed.
        steps: amount of work, which is the same on every machine: for `optimal_bins`, the number of
            interval losses evaluated; for `printed_bins`, the number of pairs (r, j) compared over
            all i.
    """

    starts: Integers
    values: Vector
    objective: float
    bound: float
    rounds: int
    steps: int

    @property
    def d(self) -> int:
        """Return the number of bins."""
        return int(self.starts.size)


def _sum_accurately(terms: Vector) -> float:
    """Sum terms, correct to about an ulp."""
    if terms.size < _MAX_FSUM_TERMS:
        return math.fsum(terms)
    from workbench.models.oracles.monge import prefix_pairs

    high_sums, _ = prefix_pairs(terms)
    return float(high_sums[-1])


def _normalise(labels: ArrayLike, prior: ArrayLike | None) -> Pair:
    """Return labels (k,) and their probabilities; uniform ones if the prior is None."""
    y = np.asarray(labels, dtype=float)
    p = np.full(y.size, 1.0 / y.size) if prior is None else np.asarray(prior, dtype=float)
    return y, p / _sum_accurately(p)


def evaluate_partition(
    labels: Vector,
    prior: Vector,
    epsilon: float,
    loss: Loss,
    starts: Integers,
) -> tuple[float, Vector]:
    """Compute the objective and the best outputs of a partition of the labels into bins.

    The objective is Σ_j (F(o_j) + q Σ_{y in bin j} p_y ℓ(o_j, y)) / (d + q) over the bins j, with
    the best output o_j of each.

    Args:
        labels: increasing labels, shape (k,).
        prior: probabilities of the labels, shape (k,).
        epsilon: budget ε > 0.
        loss: a loss of BIN_LOSSES.
        starts: first label of each bin, shape (d,).

    Returns:
        The objective (the expected loss) and the best output of each bin, shape (d,).
    """
    q = math.expm1(epsilon)
    ends = np.append(starts[1:], labels.size)
    values = _best_values(labels, prior, q, loss, starts, ends)
    bin_losses = prior * loss(np.repeat(values, ends - starts), labels)
    mean_loss_sum = _sum_accurately(_mean_losses(labels, prior, loss, values))
    objective = (mean_loss_sum + q * _sum_accurately(bin_losses)) / (starts.size + q)
    return objective, values


def _mean_losses(
    labels: Vector,
    prior: Vector,
    loss: Loss,
    outputs: Vector,
) -> Vector:
    """Compute F(o) for each output by closed forms and running sums, shape (d,)."""
    mean = _sum_accurately(prior * labels)
    if loss.kind == "squared":
        return _sum_accurately(prior * (labels - mean) ** 2) + (outputs - mean) ** 2
    if loss.is_poisson:
        if loss.kind == "poisson":
            return loss(outputs, mean)
        # The deviance is a Bregman divergence, for which means add up.
        return _sum_accurately(prior * loss(mean, labels)) + loss(outputs, mean)
    tau, scale = _quantile_form(loss)
    weight_sums = np.append(0.0, np.cumsum(prior))
    label_sums = np.append(0.0, np.cumsum(prior * (labels - mean)))
    count = np.searchsorted(labels, outputs, side="right")
    o = outputs - mean
    lower_part = (1 - tau) * (o * weight_sums[count] - label_sums[count])
    upper_labels = label_sums[-1] - label_sums[count]
    upper_weights = weight_sums[-1] - weight_sums[count]
    upper_part = tau * (upper_labels - o * upper_weights)
    return np.asarray(scale * (lower_part + upper_part))


def _quantile_form(loss: Loss) -> tuple[float, float]:
    """Return (τ, c) of a loss that is c times pinball:τ; "absolute" is 2 times pinball:0.5."""
    if loss.parameter is None:
        return 0.5, 2.0
    return float(loss.parameter), 1.0


def _best_values(
    labels: Vector,
    prior: Vector,
    q: float,
    loss: Loss,
    starts: Integers,
    ends: Integers,
) -> Vector:
    """Return argmin_o F(o) + q Σ_S p ℓ(o, y) for each bin S, shape (d,).

    `starts` are the first labels of the bins, `ends` the first labels behind them. The minimiser is
    the mean or the smallest quantile of the labels, with the weights p (1 + q) in the bin and p
    outside.
    """
    bin_weights = np.add.reduceat(prior, starts)
    if loss.kind in ("squared", "poisson", "poisson-deviance"):
        mean = _sum_accurately(prior * labels)
        bin_sums = np.add.reduceat(prior * (labels - mean), starts)
        return mean + q * bin_sums / (1.0 + q * bin_weights)
    tau, _ = _quantile_form(loss)
    weight_sums = np.cumsum(prior)
    start_sums = np.concatenate([[0.0], weight_sums])[starts]
    target = tau * (1.0 + q * bin_weights)
    # The cumulative weight is P left of the bin, P + q (P - P[start]) in it, and P + q Σ_S p right
    # of it.
    place_left = np.searchsorted(weight_sums, target)
    place_in_bin = np.searchsorted(weight_sums, (target + q * start_sums) / (1.0 + q))
    place_right = np.searchsorted(weight_sums, target - q * bin_weights)
    place_from_start = np.where(
        place_in_bin < ends,
        np.maximum(place_in_bin, starts),
        np.maximum(place_right, ends),
    )
    place = np.where(place_left < starts, place_left, place_from_start)
    return labels[np.minimum(place, labels.size - 1)]


def optimal_bins(
    labels: ArrayLike,
    prior: ArrayLike | None,
    epsilon: float,
    loss: str | Loss = "squared",
) -> Bins:
    """Find the optimal bins by Dinkelbach's iteration (see the module header).

    It takes seconds for 10^6 labels.

    Args:
        labels: strictly increasing labels, shape (k,).
        prior: weights >= 0, shape (k,), or None for uniform weights.
        epsilon: ε in (0, 30].
        loss: a loss of BIN_LOSSES, or its name.

    Raises:
        ValueError: epsilon or loss is outside its domain.
    """
    from workbench.models.oracles.monge import least_partition

    loss = _parse_bin_loss(loss)
    y, p = _normalise(labels, prior)
    q = math.expm1(_check_bin_epsilon(epsilon))
    problem = _build_partition_problem(y, p, q, loss)
    starts = np.zeros(1, dtype=np.int64)
    objective, values = evaluate_partition(y, p, epsilon, loss, starts)
    constant = 0.0
    if loss.kind == "poisson":
        # The partition problem has the deviance, which differs by this constant.
        constant = _sum_accurately(p * loss.deviance_constant(y))
    bound = -math.inf
    rounds = 0
    steps = 0
    while rounds < _MAX_ROUNDS:
        rounds += 1
        rate = objective + constant  # λ of the module header.
        least_value, least_starts, evaluations = least_partition(problem, rate)
        steps += int(evaluations)
        # This is λ + B(λ) / e^ε of the module header, as 1 + q = e^ε.
        bound = max(bound, objective + min(0.0, least_value - rate * q) / (1.0 + q))
        new_objective, new_values = evaluate_partition(y, p, epsilon, loss, least_starts)
        if not new_objective < objective:
            break
        objective = new_objective
        starts = least_starts
        values = new_values
    bound = min(bound, objective)
    return Bins(
        starts,
        values,
        objective,
        bound=bound - _SUM_ROUNDING * abs(bound),
        rounds=rounds,
        steps=steps,
    )


def _build_partition_problem(
    y: Vector,
    p: Vector,
    q: float,
    loss: Loss,
) -> tuple[int, Vector, Vector, tuple[float, ...]]:
    """Return the problem of `monge.least_partition`: (kind, table, weight sums, numbers).

    Row i of the table has running sums before label i (of weights, of weights times positions, and
    of a third term, each as a pair of floats), then the position of the label, and for quantiles
    F at the label. The numbers are (q, mean, spread, tau, scale): the mean of the labels (0 if they
    are centred), the smallest mean loss of a single output (0 for pinball), and τ and c of a loss
    that is c times pinball:τ.
    """
    from workbench.models.oracles.monge import POISSON, QUANTILE, SQUARED, prefix_pairs

    mean = _sum_accurately(p * y)
    spread = 0.0
    tau = 0.5
    scale = 1.0
    table = np.zeros((y.size + 1, 8))
    if loss.is_poisson:
        kind = POISSON
        positions = y
        third_terms = p * (loss.deviance_constant(y) + y)
        if mean > 0:
            spread = max(_sum_accurately(p * Loss("poisson-deviance")(mean, y)), 0.0)
    else:
        kind = SQUARED if loss.kind == "squared" else QUANTILE
        positions = y - mean
        third_terms = p * positions**2
        if kind == SQUARED:
            spread = _sum_accurately(third_terms)
    for column, terms in ((0, p), (2, p * positions), (4, third_terms)):
        table[:, column], table[:, column + 1] = prefix_pairs(terms)
    table[:-1, 6] = positions
    if kind == QUANTILE:
        tau, scale = _quantile_form(loss)
        table[:-1, 7] = _mean_losses(y, p, loss, y)
    numbers = (q, mean if loss.is_poisson else 0.0, spread, tau, scale)
    return kind, table, np.ascontiguousarray(table[:, 0]), numbers


def printed_bins(
    labels: ArrayLike,
    prior: ArrayLike | None,
    epsilon: float,
    loss: str | Loss = "squared",
) -> Bins:
    """Find the optimal bins by Algorithm 2 as printed, in O(k³) time and O(k²) memory.

    It is readable and serves as an oracle for `optimal_bins`. The two inner loops (over j and over
    r) are one array operation.

    Args:
        labels: strictly increasing labels, shape (k,).
        prior: weights >= 0, shape (k,), or None for uniform weights.
        epsilon: ε in (0, 30].
        loss: a loss of BIN_LOSSES, or its name.

    Raises:
        ValueError: epsilon or loss is outside its domain.
    """
    loss = _parse_bin_loss(loss)
    y, p = _normalise(labels, prior)
    k = y.size
    q = math.expm1(_check_bin_epsilon(epsilon))
    starts, partition_value = best_partition(interval_losses(y, p, epsilon, loss), q)
    objective, values = evaluate_partition(y, p, epsilon, loss, starts)
    steps = k * (k + 1) * (2 * k + 1) // 6  # This is Σ i²: i² pairs (r, j) for each i.
    return Bins(
        starts, values, objective, bound=min(partition_value, objective), rounds=0, steps=steps
    )


def best_partition(losses: Vector, q: float) -> tuple[Integers, float]:
    """Find the partition into d intervals, for any d, with the smallest Σ L / (d + q).

    Args:
        losses: L[r, i] of the interval r..i, shape (k, k).
        q: the number e^ε - 1.

    Returns:
        The first label of each bin, shape (d,), and Σ L / (d + q) of the partition.
    """
    k = len(losses)
    A = np.full((k + 1, k + 1), np.inf)
    last_start = np.zeros((k + 1, k + 1), dtype=np.int32)
    A[0, 0] = 0.0
    for i in range(1, k + 1):
        # A[i][j] is the minimum over 0 <= r < i of A[r][j-1] + L[r+1][i].
        options = A[:i, :i] + losses[:i, i - 1, None]
        last_start[i, 1 : i + 1] = options.argmin(axis=0)
        A[i, 1 : i + 1] = options.min(axis=0)
    ratios = A[k, 1:] / (np.arange(1, k + 1) + q)
    d = int(np.argmin(ratios)) + 1
    starts = np.zeros(d, dtype=np.int64)
    i = k
    for j in range(d, 0, -1):
        i = int(last_start[i, j])
        starts[j - 1] = i
    return starts, float(ratios[d - 1])


def interval_losses(
    y: Vector,
    p: Vector,
    epsilon: float,
    loss: Loss,
) -> Vector:
    """Compute L[r, i] = min_o F(o) + q Σ_{r <= j <= i} p_j ℓ(o, y_j), without clamping.

    Args:
        y: labels, shape (k,).
        p: probabilities of the labels, shape (k,).
        epsilon: budget ε > 0.
        loss: a loss of BIN_LOSSES.

    Returns:
        L, infinite for i < r, shape (k, k).
    """
    q = math.expm1(epsilon)
    k = y.size
    is_squared = loss.kind == "squared"
    L = np.full((k, k), np.inf)
    if is_squared or loss.is_poisson:
        positions = y - _sum_accurately(p * y) if is_squared else y
        third_terms = p * 0.0
        if is_squared:
            third_terms = p * positions**2
        elif loss.kind == "poisson-deviance":
            third_terms = p * loss.deviance_constant(y)
        terms = [(_sum_accurately(part), part) for part in (p, p * positions, third_terms)]
        for r in range(k):
            w, m, third = (total + q * np.cumsum(part[r:]) for total, part in terms)
            if is_squared:
                # The loss is Σwy² - (Σwy)²/Σw. The print lacks Σw on the last term of
                # Σwy² - 2(Σwy)x + x².
                L[r, r:] = third - m * m / w
            else:
                L[r, r:] = third + (m - m * np.log(np.where(m > 0, m / w, 1.0)))
        return L
    # A minimiser is a label. The shape is (labels, outputs).
    losses_at_labels = loss.matrix(y, y) * p[:, None]
    mean_losses = losses_at_labels.sum(axis=0)
    for r in range(k):
        bin_losses = q * np.cumsum(losses_at_labels[r:], axis=0)
        L[r, r:] = (mean_losses + bin_losses).min(axis=1)
    return L


def _parse_bin_loss(loss: str | Loss) -> Loss:
    """Return the loss of a name. Raises ValueError if RR-on-Bins is not optimal for it."""
    parsed_loss = parse_loss(loss)
    if parsed_loss.kind not in BIN_LOSSES:
        names = ", ".join([*BIN_LOSSES[:-1], "pinball:τ"])
        raise ValueError(f"loss must be one of {names} for RR-on-Bins. Got {parsed_loss.name!r}.")
    return parsed_loss


def _check_bin_epsilon(epsilon: float) -> float:
    """Return ε. Raises ValueError outside (0, 30]."""
    if not 0 < epsilon <= _MAX_BIN_EPSILON:
        raise ValueError(f"epsilon must be in (0, 30] for RR-on-Bins. Got {epsilon}.")
    return float(epsilon)
