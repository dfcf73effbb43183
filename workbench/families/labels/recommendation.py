"""Offer RR-on-Bins to a recommendation: randomized response on intervals (bins) of the answers.

It applies to numeric answers that are all neighbours, under a prior. The output of an answer's bin
has e^ε times the probability of each other output.

δ = 0   Randomized response on the optimal bins. It is optimal among all pure mechanisms with real
        outputs (Ghazi et al. 2022, Theorem 5). For listed outputs no bound is claimed.
δ > 0   With probability δ the best output for the answer itself is published, else the mechanism
        for δ = 0 is used. The probability of a set of outputs exceeds e^ε times that of a neighbour
        by at most δ. The loss is (1 - δ) times that of δ = 0 if publishing the answer has no loss.
        For two answers every (ε, δ) mechanism is a post-processing of this one (Kairouz, Oh and
        Viswanath 2015). For more answers no bound is claimed for the class.

Let p_y be the prior of answer y, ℓ(y, o) the loss of output o, q = e^ε - 1 and F(o) =
Σ_y p_y ℓ(y, o). With d bins S_j and outputs o_j, each of the d outputs has the probability
1/(d + q), and that of the own bin q/(d + q) more. So the expected loss is
Σ_j [F(o_j) + q Σ_{y in S_j} p_y ℓ(y, o_j)] / (d + q). For listed outputs the best bins are found by
dynamic programming for every d.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np

from workbench.errors import NotCertified
from workbench.families.channel.query_channels import make_certified_design
from workbench.families.channel.repair import compute_channel_loss
from workbench.families.labels.family import FAMILY
from workbench.mechanisms.channel import Channel
from workbench.models.oracles.bins import BIN_LOSSES, best_partition, optimal_bins
from workbench.pipeline.outcome import translate_errors
from workbench.pipeline.recommendation import Candidate, Query, Value
from workbench.pipeline.requirements import is_hockey_stick
from workbench.privacy.audit import satisfies_claim
from workbench.privacy.repair import floor_scaled_exp
from workbench.questions.finite_query import FiniteQuery
from workbench.questions.labels import Labels
from workbench.solvers.arrays import Vector

_CLASS_NAME = "RR-on-Bins"
# An audit of all pairs compares at most this many masses.
_MAX_AUDITED_MASSES = 3_000_000
# The odds e^ε are rounded down to a multiple of 2^-112, like `floor_scaled_exp`.
_THRESHOLD_BITS = 112
# For two answers the bound is the loss lowered by this share, because the loss is rounded.
_BOUND_MARGIN = 1e-12


def candidates(query: Query) -> Iterable[Candidate]:
    """Yield RR-on-Bins, or the reason why it does not apply.

    Args:
        query: a finite query.
    """
    reason = _explain_refusal(query)
    if reason is not None:
        yield Candidate(_CLASS_NAME, reason=reason)
        return
    question = query.question
    has_other_outputs = {*question.inputs} != {*question.outputs}
    has_listed_outputs = not question.has_free_outputs and (
        has_other_outputs or "outputs" in (query.option_texts or {})
    )
    outputs = "only the outputs" if has_listed_outputs else "real numbers that it chooses"
    note = f"designed for the prior; publishes {outputs}"
    if query.claim.delta:
        note += "; with probability δ the best output for the answer itself"
        if question.k != 2:
            note += "; the best of all (ε, δ) mechanisms is the best channel"
    if query.claim.delta or has_listed_outputs:
        evaluate = partial(_evaluate_with_delta, query, has_listed_outputs)
        yield Candidate(_CLASS_NAME, note, evaluate)
    else:
        yield _make_pure_candidate(query, note)


def _explain_refusal(query: Query) -> str | None:
    """Return why RR-on-Bins does not apply to a query. None if it applies."""
    question = query.question
    named_loss = query.losses.named_loss
    if question.directed:
        return "it protects both orders of every pair; the neighbours are directed"
    has_all_neighbours = question.pairs is None and not query.is_per_distance
    if not has_all_neighbours or question.numbers is None or question.prior is None:
        return "it needs numeric answers, all of them neighbours, and a prior"
    has_bin_loss = named_loss is not None and named_loss.kind in BIN_LOSSES
    if not has_bin_loss or not is_hockey_stick(query.claim.notion):
        return "it needs the loss squared, absolute, pinball or poisson, and the notion dp or pure"
    return None


def _make_pure_candidate(query: Query, note: str) -> Candidate:
    """Return the class whose design the family makes, at δ = 0."""
    named_loss = query.losses.named_loss
    assert named_loss
    _, inputs, prior = _sort_answers(query.question)
    labels = Labels([float(x) for x in inputs], [float(p) for p in prior])
    epsilon = query.claim.epsilon
    make_request = partial(query.make_request, FAMILY, labels, epsilon=epsilon, loss=named_loss)
    command = None
    low = inputs[0]
    are_consecutive = inputs == [low + i for i in range(len(inputs))] and low.denominator == 1
    if are_consecutive and len({*prior}) == 1 and query.aim.max_loss is None:
        command = (
            f"workbench design labels --labels {low}..{inputs[-1]} --loss {named_loss.name} "
            f"--epsilon {float(epsilon)!r}"
        )
    return Candidate.from_request(_CLASS_NAME, note, make_request, query.time, command=command)


def _sort_answers(question: FiniteQuery) -> tuple[list[int], list[Fraction], list[Fraction]]:
    """Return (positions, answers, prior), all in increasing order of the answers."""
    assert question.numbers
    assert question.prior
    inputs, _ = question.numbers
    order = sorted(range(question.k), key=inputs.__getitem__)
    return order, [inputs[i] for i in order], [question.prior[i] for i in order]


def _evaluate_with_delta(query: Query, has_listed_outputs: bool) -> Value:
    """Evaluate the mechanism for δ >= 0 on listed outputs, or on the answers and the outputs of
    bins.

    Raises NotCertified.
    """
    order, inputs, shares = _sort_answers(query.question)
    prior = np.array(shares, dtype=float)
    epsilon = float(query.claim.epsilon)
    if not has_listed_outputs:
        query = _add_bin_outputs(query, np.array(inputs, dtype=float), prior)
    question = query.question
    table = query.losses.floats
    compared_masses = question.k * question.k * question.m
    if compared_masses > _MAX_AUDITED_MASSES:
        raise NotCertified(
            f"its audit compares {compared_masses} masses, more than {_MAX_AUDITED_MASSES}."
        )
    sorted_outputs = find_listed_bins(table[order], prior, epsilon)
    # The bins are found for increasing answers. Sorting by `order` restores the order of the query.
    bin_outputs = [output for _, output in sorted(zip(order, sorted_outputs, strict=True))]
    channel = _make_bins_channel(query, bin_outputs, table)
    loss = float(compute_channel_loss(channel, query.losses, question.prior))
    bound = None
    if question.k == 2 and not has_listed_outputs:
        bound = loss * (1 - _BOUND_MARGIN)
    mechanism = replace(channel, axis_labels=(question.inputs, question.outputs))
    design = partial(make_certified_design, query, _CLASS_NAME, mechanism)
    is_certified = satisfies_claim(channel, query.audited_claim)
    return Value(
        loss,
        bound,
        is_certified,
        parameter="",
        is_stopped=False,
        mechanism=mechanism,
        design=design,
    )


def _add_bin_outputs(query: Query, labels: Vector, prior: Vector) -> Query:
    """Return a query whose outputs are the answers and the outputs of the optimal bins at δ = 0."""
    question = query.question
    loss = query.losses.named_loss or "squared"
    with translate_errors():
        values = optimal_bins(labels, prior, float(query.claim.epsilon), loss).values
    new_outputs = {Fraction(float(value)) for value in values} - {*question.inputs}
    outputs = [*question.inputs, *new_outputs]
    shares = [*(question.prior or ())]
    extended_question = FiniteQuery(question.inputs, outputs, neighbours="all", prior=shares)
    return replace(query, question=extended_question)


def _make_bins_channel(query: Query, bin_outputs: Sequence[int], table: Vector) -> Channel:
    """Make randomized response on the outputs of bins, mixed with the best outputs in the share δ.

    bin_outputs: the output of the bin of every answer; table: losses, shape (k, m).
    """
    delta = query.claim.delta
    odds = Fraction(floor_scaled_exp(query.claim.epsilon), 1 << _THRESHOLD_BITS)
    used_outputs = {*bin_outputs}
    total_odds = odds + len(used_outputs) - 1
    rows = []
    for bin_output, losses in zip(bin_outputs, table, strict=True):
        row = [Fraction(0)] * losses.size
        for output in used_outputs:
            row[output] = (1 - delta) / total_odds
        row[bin_output] = (1 - delta) * odds / total_odds
        row[int(np.argmin(losses))] += delta
        rows.append(row)
    return Channel.from_pairs(rows, list(query.question.neighbour_pairs))


def find_listed_bins(table: Vector, prior: Vector, epsilon: float) -> list[int]:
    """Find the best bins for listed outputs.

    Args:
        table: losses ℓ(y, o) of answers in increasing order, shape (k, m).
        prior: prior of the answers in this order, shape (k,).
        epsilon: ε > 0.

    Returns:
        For every answer, the column of the output of its bin.
    """
    k, m = table.shape
    q = math.expm1(epsilon)
    means = prior @ table
    sums = np.vstack([np.zeros(m), np.cumsum(prior[:, None] * table, axis=0)])
    losses = np.full((k, k), np.inf)
    best_outputs = np.zeros((k, k), dtype=np.int64)
    for start in range(k):
        interval_losses = means + q * (sums[start + 1 :] - sums[start])
        best_outputs[start, start:] = interval_losses.argmin(axis=1)
        losses[start, start:] = interval_losses.min(axis=1)
    bin_starts, _ = best_partition(losses, q)
    label_outputs: list[int] = []
    for start, end in pairwise([*bin_starts.tolist(), k]):
        label_outputs += [int(best_outputs[start, end - 1])] * (end - start)
    return label_outputs
