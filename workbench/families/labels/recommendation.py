"""RR-on-Bins as a recommendation for a query of which every two answers are neighbours, under a prior.

δ = 0   randomized response on the best bins: a bin's own output with odds e^ε against each other output; least of all
        pure mechanisms with real outputs (Ghazi et al. 2023, Theorem 5); where the outputs are given, no bound is
        claimed
δ > 0   with probability δ the output that is best for the answer itself, else as for δ = 0: a set of outputs has at
        most δ more than e^ε times what any neighbour gives it. Its loss is (1 - δ) that of δ = 0 where publishing the
        answer costs nothing. For two answers every (ε, δ) mechanism is this one, post-processed (Kairouz, Oh and
        Viswanath 2015); for more nothing is claimed of its class.

With q = e^ε - 1, F(o) = Σ_y p_y ℓ(y, o): bins S_1..S_d and their outputs o_j cost Σ_j [F(o_j) + q Σ_{y in S_j} p_y
ℓ(y, o_j)] / (d + q), and for given outputs the best bins are found by dynamic programming for every d.
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
_MAX_AUDITED_MASSES = 3_000_000  # that an audit of all pairs compares
_THRESHOLD_BITS = 112  # as `threshold`


def candidates(query: Query) -> Iterable[Candidate]:
    """RR-on-Bins, where its labels are the answers."""
    q, named = query.question, query.losses.named_loss
    if q.directed:
        yield Candidate(
            _CLASS_NAME,
            reason="it is made for pairs of which both sides are protected, not for directed ones",
        )
        return
    if q.pairs is not None or q.numbers is None or q.prior is None or query.is_per_distance:
        yield Candidate(
            _CLASS_NAME, reason="it is for numbers of which every two are neighbours, under a prior"
        )
        return
    if named is None or named.kind not in BIN_LOSSES or not is_hockey_stick(query.claim.notion):
        yield Candidate(
            _CLASS_NAME,
            reason="it is for the losses squared, absolute, pinball, poisson, under dp or pure",
        )
        return
    given = not q.has_free_outputs and (
        {*q.inputs} != {*q.outputs} or "outputs" in (query.option_texts or {})
    )
    words = "made for the prior; publishes " + (
        "only the outputs" if given else "real numbers of its own"
    )
    if query.claim.delta:
        words += "; with probability δ the best output for the answer itself"
        words += "" if q.k == 2 else "; the best of all (ε, δ) mechanisms is the best channel"
    if query.claim.delta or given:
        yield Candidate(_CLASS_NAME, words, partial(_evaluate_with_delta, query, given))
    else:
        yield _make_pure_candidate(query, words)


def _make_pure_candidate(query: Query, words: str) -> Candidate:
    """The design of the family, at δ = 0."""
    q, named = query.question, query.losses.named_loss
    assert named
    _, inputs, prior = _sort_answers(q)
    labels = Labels([float(x) for x in inputs], [float(p) for p in prior])
    ask = partial(query.make_request, FAMILY, labels, epsilon=query.claim.epsilon, loss=named)
    low, command = inputs[0], None
    plain = inputs == [low + i for i in range(q.k)] and low.denominator == 1 and len({*prior}) == 1
    if plain and query.aim.max_loss is None:
        options = f"--labels {low}..{inputs[-1]} --loss {named.name} --epsilon {float(query.claim.epsilon)!r}"
        command = f"workbench design labels {options}"
    return Candidate.from_request(_CLASS_NAME, words, ask, query.time, command=command)


def _sort_answers(question: FiniteQuery) -> tuple[list[int], list[Fraction], list[Fraction]]:
    """(the positions of the answers from the least on, these answers, their shares)."""
    assert question.numbers
    assert question.prior
    order = sorted(range(question.k), key=question.numbers[0].__getitem__)
    return order, [question.numbers[0][i] for i in order], [question.prior[i] for i in order]


def _evaluate_with_delta(query: Query, given: bool) -> Value:
    """The mechanism of the module's docstring on given outputs, or on the answers and its own. Raises NotCertified."""
    q = query.question
    order, *ordered = _sort_answers(q)
    labels, prior = (np.array(side, dtype=float) for side in ordered)
    if not given:
        with translate_errors():
            own = optimal_bins(
                labels, prior, float(query.claim.epsilon), query.losses.named_loss or "squared"
            ).values
        outputs = [*q.inputs, *({Fraction(float(value)) for value in own} - {*q.inputs})]
        query = replace(
            query,
            question=FiniteQuery(q.inputs, outputs, neighbours="all", prior=[*(q.prior or ())]),
        )
    table, k, m = query.losses.floats, query.question.k, query.question.m
    if k * k * m > _MAX_AUDITED_MASSES:
        raise NotCertified(
            f"its audit compares {k * k * m} masses, more than {_MAX_AUDITED_MASSES}."
        )
    bins = find_listed_bins(table[order], prior, float(query.claim.epsilon))
    channel = _make_bins_channel(
        query, [output for _, output in sorted(zip(order, bins, strict=True))], table
    )
    loss = float(compute_channel_loss(channel, query.losses, query.question.prior))
    bound = loss * (1 - 1e-12) if k == 2 and not given else None
    mechanism = replace(channel, axis_labels=(query.question.inputs, query.question.outputs))
    design = partial(make_certified_design, query, _CLASS_NAME, mechanism)
    return Value(
        loss, bound, satisfies_claim(channel, query.audited_claim), "", False, mechanism, design
    )


def _make_bins_channel(query: Query, own: Sequence[int], table: Vector) -> Channel:
    """Randomized response on the outputs of bins, after what is published with probability δ."""
    odds, used = Fraction(floor_scaled_exp(query.claim.epsilon), 1 << _THRESHOLD_BITS), {*own}
    total = odds + len(used) - 1
    rows = []
    for output, losses in zip(own, table, strict=True):
        row = [Fraction(0)] * losses.size
        for other in used:
            row[other] = (1 - query.claim.delta) * (odds if other == output else 1) / total
        row[int(np.argmin(losses))] += query.claim.delta
        rows.append(row)
    return Channel.from_pairs(rows, list(query.question.neighbour_pairs))


def find_listed_bins(table: Vector, prior: Vector, epsilon: float) -> list[int]:
    """The output of every label, in their order, of the best bins of outputs that are given.

    table: (k, m) of ℓ(y, o); prior: (k,).
    """
    k, q = table.shape[0], math.expm1(epsilon)
    means = prior @ table
    sums = np.vstack([np.zeros(table.shape[1]), np.cumsum(prior[:, None] * table, axis=0)])
    losses, choice = np.full((k, k), np.inf), np.zeros((k, k), dtype=np.int64)
    for start in range(k):
        each = means + q * (sums[start + 1 :] - sums[start])
        choice[start, start:], losses[start, start:] = each.argmin(axis=1), each.min(axis=1)
    starts = best_partition(losses, q)[0].tolist()
    return [
        int(choice[start, end - 1])
        for start, end in pairwise([*starts, k])
        for _ in range(start, end)
    ]
