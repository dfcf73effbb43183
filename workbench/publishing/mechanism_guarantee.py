"""Describe what a mechanism guarantees in plain words, for each kind of neighbour relation.

The sentences are those of `workbench.publishing.guarantee`, with the relation of the mechanism:

    mechanism                        what is equally likely beforehand
    joint release                    the person is in the data or not; or the rows of the person
                                     are one of two given sets of rows
    noise, channel with neighbours   the true answer is one of two neighbours. The relation of the
                                     table is not known here
    channel without neighbours       the true value is one of any two values
    label randomizer, quantizer      the person's value is one of any two values
    channel with several budgets     the true answer is one of two neighbours with the smallest
    (metric privacy)                 budget. The number for other answers is a limit

The number p of right guesses is that of the worst such pair, and exact. If an exact audit would
take too long, p is the bound that (ε, δ) imply. δ(0) = Σ max(0, P - Q) is the same in both orders
of a pair, so an exact p also holds for one-sided neighbours. If only one order is (ε, δ)-private,

    P(A) <= e^ε Q(A) + δ for every set A of outputs, so P(A) - Q(A) <= 1 - (1 - δ) e^-ε

because P(A) <= 1 as well: at Q(A) = (1 - δ) e^-ε both bounds are equal, and below it the first one
rises with Q(A).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from workbench.data.points import format_point
from workbench.errors import InvalidRequest
from workbench.exact.numbers import ONE, exp_interval
from workbench.exact.objects import Record
from workbench.io.shown import Facts
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.baselines.poisson_binomial import PoissonBinomial
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.mechanisms.joint_noise import JointNoise
from workbench.mechanisms.label_randomizers.randomized_response import RandomizedResponse
from workbench.mechanisms.mechanism import as_mechanism
from workbench.mechanisms.nearest_outputs import NearestOutputs
from workbench.mechanisms.piecewise_affine import PiecewiseAffine
from workbench.mechanisms.range_mechanism import RangeMechanism
from workbench.mechanisms.real_noise import AdditiveRealNoise
from workbench.privacy.audit import PairAudit, audit
from workbench.privacy.audit_work import count_work_units
from workbench.privacy.claim import Claim
from workbench.privacy.composition import ComposedClaim
from workbench.publishing.guarantee import (
    EXP_BITS,
    MAX_EPSILON,
    bound_advantage,
    count_right_guesses,
    describe_guarantee,
    list_limits,
    write_sentences,
)
from workbench.questions.modulo_noise import ModuloNoise
from workbench.questions.unbounded_noise import IntegerNoise, UnboundedNoise

# An audit of more units of work is replaced by the bound that the claim implies. A unit takes about
# 10^-7 s.
_MAX_WORK_UNITS = 10_000_000
_BOUNDING_NOTIONS = ("dp", "pure", "pdp")  # Their ε and δ bound δ(0).
_MAX_LISTED_DIFFERENCES = 4  # More differences of neighbours are not listed.

_ONE_SIDED_LIMIT = (
    "Neighbours are protected in one order only. Rare outputs may still identify one of them with "
    "certainty."
)
_RELATION_LIMIT = (
    "A person is protected if this person's data can change the true answer only to a neighbour. "
    "Answers that are not neighbours may be easier to tell apart."
)
_OUTPUT_LIMIT = "Only one output is counted. Further outputs about the same person reveal more"
_MAX_NAME_CHARACTERS = 60  # Longer names of inputs are cut.
_EXAMPLE_ANSWER = 30  # An example of an answer, for noise on all integers.


@dataclass(frozen=True)
class Guarantee:
    """What a mechanism guarantees, in plain words.

    Attributes:
        sentences: The prior, and how often the best attacker guesses right.
        limits: What the guarantee does not protect from, one sentence or two each.
        right_guesses: Right guesses of 100, rounded up.
        is_exact: Whether `right_guesses` is exact before it is rounded. False: it is a bound.
    """

    sentences: tuple[str, str]
    limits: tuple[str, ...]
    right_guesses: int
    is_exact: bool

    def facts(self) -> Facts:
        """Return the guarantee as rows (label, text) of a report."""
        return [
            ("in plain words", " ".join(self.sentences)),
            *(("limits", text) for text in self.limits),
        ]

    def to_dict(self) -> Record:
        """Return the guarantee as data for JSON."""
        return {
            "sentences": [*self.sentences],
            "not_promised": [*self.limits],
            "right_guesses_of_100": self.right_guesses,
            "exact": self.is_exact,
        }


@dataclass(frozen=True)
class _Relation:
    """The neighbours of a mechanism in words.

    Attributes:
        prior: Clause after "it is equally likely beforehand".
        knowledge: What the attacker knows.
        limits: Sentences on values that are not compared.
    """

    prior: str
    knowledge: str
    limits: tuple[str, ...] = ()


def describe_mechanism_guarantee(subject: Any, claim: Claim | None = None) -> Guarantee | None:
    """Describe the guarantee of one output of a mechanism.

    Args:
        subject: A mechanism, or a Design or Certificate of one.
        claim: A claim that is proven for the mechanism. Default: the claim of the certificate, or
            none. It is used for metric privacy, and if an exact audit would take too long.

    Returns:
        None if an exact audit would take too long, and no (ε, δ) is proven.
    """
    mechanism: Any = as_mechanism(subject)
    certificate = getattr(subject, "certificate", subject)
    if claim is None:
        claim = getattr(certificate, "claim", None)
    pairs = _audit_pairs(mechanism)
    is_channel = isinstance(mechanism, Channel)
    budgets = claim.epsilon if claim is not None and is_channel else None
    has_several_budgets = isinstance(budgets, Mapping) and len(set(budgets.values())) > 1
    worst = None
    if pairs is None:
        bound = _bound_by_claim(mechanism, claim)
        if bound is None:
            return None
        advantage = bound
    else:
        if isinstance(budgets, Mapping) and has_several_budgets:
            least_budget = min(budgets.values())
            pairs = [pair for pair in pairs if budgets[pair.label] == least_budget]
        if not pairs:
            return None
        worst = max(pairs, key=_read_advantage)
        advantage = _read_advantage(worst)
    right_guesses = count_right_guesses(advantage)
    if isinstance(mechanism, JointNoise):
        limits = [*list_limits(mechanism.question.rows)]
        # A joint release has several numbers. How many does not change the sentences.
        sentences = describe_guarantee(advantage, mechanism.question.neighbours, numbers=2)
    else:
        limits = [*list_limits()]
        nearest = ""
        if has_several_budgets and claim is not None:
            nearest = "with the smallest budget"
            if claim.notion.is_per_distance:
                nearest = "at the smallest distance"
        relation = _describe_relation(mechanism, worst, nearest)
        sentences = write_sentences(
            relation.prior, relation.knowledge, "this output", right_guesses
        )
        output_limit = _describe_runs(mechanism, getattr(certificate, "composed", None))
        limits += [*relation.limits, output_limit]
    if mechanism.is_one_sided:
        limits.append(_ONE_SIDED_LIMIT)
    return Guarantee(sentences, tuple(limits), right_guesses, is_exact=pairs is not None)


def _audit_pairs(mechanism: Any) -> list[PairAudit] | None:
    """Audit all comparisons at ε = 0. None if this would take too long."""
    if getattr(mechanism, "needs_grid", False):
        return None
    try:
        if count_work_units(mechanism) > _MAX_WORK_UNITS:
            return None
        return [*audit(mechanism, 0).pairs]
    except InvalidRequest:
        # The comparisons of this mechanism have too many outcomes.
        return None


def _read_advantage(pair: PairAudit) -> Fraction:
    """Return δ(0) of one comparison at ε = 0, exactly."""
    # δ is a - b e^ε, and ε is 0.
    return pair.dp_delta.a - pair.dp_delta.b


def _bound_by_claim(mechanism: Any, claim: Claim | None) -> Fraction | None:
    """Return a bound on δ(0) that a proven (ε, δ) implies. None without one."""
    if claim is None or claim.notion.name not in _BOUNDING_NOTIONS:
        return None
    if isinstance(claim.epsilon, Mapping):
        return None
    if mechanism.is_one_sided:
        return bound_one_sided_advantage(claim.epsilon, claim.delta)
    return bound_advantage(claim.epsilon, claim.delta)


def bound_one_sided_advantage(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Bound δ(0) of two laws of which one order is (ε, δ)-private.

    Args:
        epsilon: ε >= 0.
        delta: δ in [0, 1].

    Returns:
        A rational number that is at least 1 - (1 - δ) e^-ε, and at most 1.
    """
    if epsilon > MAX_EPSILON:
        return ONE
    _, factor = exp_interval(epsilon, EXP_BITS)  # At least e^ε, so that the bound is rounded up.
    return min(ONE, 1 - (1 - delta) / factor)


def _describe_runs(mechanism: Any, composed: ComposedClaim | None) -> str:
    """Describe how much several outputs about one person reveal, as far as it is proven."""
    if composed is None:
        return f"{_OUTPUT_LIMIT} (`workbench compose`)."
    bound = bound_one_sided_advantage if mechanism.is_one_sided else bound_advantage
    right_guesses = count_right_guesses(bound(composed.epsilon, composed.delta))
    return f"{_OUTPUT_LIMIT}: {composed.runs} outputs up to {right_guesses} of 100 cases."


# Relations.


def _describe_relation(mechanism: Any, worst: PairAudit | None, nearest: str) -> _Relation:
    """Describe the neighbours of a mechanism that is no joint release.

    Args:
        mechanism: The mechanism.
        worst: The comparison with the largest δ(0). None if it is not known.
        nearest: Clause that says for which neighbours of a channel the number holds. Empty: for
            all.
    """
    # A range is a channel too, so it comes first.
    if isinstance(mechanism, AdditiveNoise):
        return _relate_answers(f"answers that {_describe_differences(mechanism.question)}")
    if isinstance(mechanism, (AdditiveIntegerNoise, AdditiveRealNoise)):
        return _relate_answers(_describe_distance(mechanism.question))
    if isinstance(mechanism, RangeMechanism):
        sensitivity = float(mechanism.sensitivity)
        return _relate_answers(f"numbers that differ by at most {sensitivity:g}")
    if isinstance(mechanism, Channel):
        return _relate_rows(mechanism, worst, nearest)
    if isinstance(mechanism, RandomizedResponse):
        return _relate_values("label")
    if isinstance(mechanism, (PiecewiseAffine, NearestOutputs, PoissonBinomial)):
        return _relate_values("value")
    # The neighbours of a mechanism of another package are not known here.
    return _relate_answers("answers that are neighbours")


def _relate_answers(neighbours: str) -> _Relation:
    """Describe neighbouring true answers of a query."""
    prior = f"that the true answer is one of two given {neighbours}"
    return _Relation(prior, "these two answers", (_RELATION_LIMIT,))


def _relate_values(noun: str) -> _Relation:
    """Describe a mechanism for the value of one person, with every two values as neighbours."""
    prior = f"that the person's {noun} is one of two given {noun}s"
    return _Relation(prior, "all other data")


def _describe_distance(question: UnboundedNoise) -> str:
    """Describe the neighbours of noise on the integers or the reals."""
    distance = f"{float(question.sensitivity):g}"
    if not isinstance(question, IntegerNoise):
        return f"numbers that differ by at most {distance}"
    low = _EXAMPLE_ANSWER if question.clamp is None else question.clamp[0]
    condition = "differ by 1" if question.sensitivity == 1 else f"differ by at most {distance}"
    return f"integers that {condition}, such as {low} and {low + question.sensitivity}"


def _describe_differences(question: ModuloNoise) -> str:
    """Describe the differences of neighbours of noise on a group."""
    modulus = " x ".join(map(str, question.sizes))
    # Of a difference and its negative, the one with the smaller numbers is listed.
    differences = set(question.differences)
    if not question.directed:
        differences = {min(shift, question.negate_shift(shift)) for shift in differences}
    shifts = sorted(differences)
    is_interval = question.is_scalar and shifts == [(k,) for k in range(1, len(shifts) + 1)]
    if is_interval and len(shifts) > 1 and not question.directed:
        return f"differ by at most {len(shifts)} modulo {modulus}"
    if len(shifts) > _MAX_LISTED_DIFFERENCES:
        return f"differ by one of the {len(shifts)} given differences modulo {modulus}"
    names = [question.format_shift(shift) for shift in shifts]
    return f"differ by {' or '.join(names)} modulo {modulus}"


def _relate_rows(channel: Channel, worst: PairAudit | None, nearest: str) -> _Relation:
    """Describe the neighbours of a finite channel, with the worst pair as an example."""
    example = ""
    if worst is not None:
        first, second = (_name_row(channel, row) for row in sorted(worst.label))
        example = f", such as {first} and {second}"
    if nearest:
        limit = f"Other answers are easier to tell apart{_count_any(channel)}."
        relation = _relate_answers(f"answers {nearest}{example}")
        return replace(relation, limits=(limit,))
    if channel.neighbours is None:
        prior = f"that the true value is one of two given values{example}"
        return _Relation(prior, "these two values")
    return _relate_answers(f"answers that are neighbours{example}")


def _name_row(channel: Channel, row: int) -> str:
    """Return the name of an input of a channel."""
    if channel.axis_labels is None:
        return f"input {row}"
    point = format_point(channel.axis_labels[0][row])
    if isinstance(point, float):
        return f"{point:g}"
    if isinstance(point, list):
        parts = [f"{part:g}" if isinstance(part, float) else str(part) for part in point]
        return f"({', '.join(parts)})"
    # The labels of a file may contain anything.
    text = "".join(c if c.isprintable() else "?" for c in str(point))
    return text[:_MAX_NAME_CHARACTERS]


def _count_any(channel: Channel) -> str:
    """Return a clause on the right guesses between any two inputs of a channel."""
    pairs = _audit_pairs(Channel(channel.rows))
    if pairs is None:
        return ""
    right_guesses = count_right_guesses(max(map(_read_advantage, pairs)))
    return f", the most distinguishable ones in {right_guesses} of 100 cases"
