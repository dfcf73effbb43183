"""Describe the guarantee and the error of a release in plain words.

Guess. A person is in the data with probability 1/2, and an attacker knows all other rows. The best
attacker names the right case with probability (1 + δ(0))/2, where δ(0) = Σ max(0, P - Q) is the
hockey stick of the worst neighbours at ε = 0. Under "replace" the two cases are two given sets of
rows. If only (ε, δ) is known, the two hockey sticks of (ε, δ) bound it:

    P(A) <= e^ε Q(A) + δ and 1 - Q(A) <= e^ε (1 - P(A)) + δ for every set A of outputs, so
    P(A) - Q(A) <= (e^ε - 1 + 2δ) / (e^ε + 1)

Width. The published number lies within w of the true one with probability at least 95 %, where w is
the least integer with P(|η| <= w) >= 19/20 for the exact law of the noise η, before any clamping.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from workbench.data.plain import read_integer
from workbench.errors import must
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import ONE, Real, exp_interval, read_positive, read_probability
from workbench.mechanisms.mechanism import as_mechanism
from workbench.privacy.audit import audit
from workbench.questions.joint_query import NEIGHBOURS, REPLACE
from workbench.solvers.search import bisect_integers

COVERAGE = Fraction(19, 20)  # Probability that an interval contains the true value.
EXP_BITS = 128  # Bits of the enclosure of e^ε.
MAX_EPSILON = 1000  # Above this ε, e^ε is not computed. The guess is then 100 of 100.

# What is equally likely beforehand under each relation.
_PRIORS = {
    "add-remove": "that the person is in the data or not",
    "replace": "that the rows of the person are one of two given sets of rows",
}
_ONE_ROW_PRIOR = "that the row of the person is one of two given rows"
_STATISTIC_LIMIT = (
    "The statistic can reveal facts about people in general. Such a fact, for example that smokers "
    "fall ill more often, also holds for people who are not in the table."
)
_NO_LEDGER_LIMIT = (
    "Each further release about the same people tells more about them. The budgets add up, also "
    "if a release is in no ledger."
)
_LEDGER_LIMIT = (
    "The ledger knows only its own releases. Any other release about the same people tells more "
    "about them."
)
_WARNED_RIGHT_GUESSES = 100  # From this many right guesses of 100, a report has a warning.
_WARNING = (
    "This guarantee protects almost nothing, as an attacker may be right in nearly every case. "
    "Choose a smaller epsilon."
)


def bound_advantage(epsilon: Real, delta: Real = 0) -> Fraction:
    """Bound δ(0), the largest P(A) - Q(A), of any release that is (ε, δ)-private in both orders.

    Args:
        epsilon: ε >= 0.
        delta: δ in [0, 1].

    Returns:
        A rational number that is at least (e^ε - 1 + 2δ) / (e^ε + 1), and at most 1.

    Raises:
        InvalidRequest: If ε or δ is outside its range.
    """
    exact_epsilon = read_positive(epsilon, "epsilon", or_zero=True)
    exact_delta = read_probability(delta, "delta")
    if exact_epsilon > MAX_EPSILON:
        return ONE
    # The bound rises with e^ε, as its derivative has the sign of 1 - δ.
    _, factor = exp_interval(exact_epsilon, EXP_BITS)
    return min(ONE, (factor - 1 + 2 * exact_delta) / (factor + 1))


def measure_advantage(mechanism: Any) -> Fraction:
    """Compute δ(0) of the worst neighbours of a mechanism, exactly.

    Args:
        mechanism: A mechanism, or a Design or Certificate of one.

    Raises:
        InvalidRequest: If the mechanism has too many outcomes for an exact audit.
    """
    delta = audit(as_mechanism(mechanism), 0).dp_delta
    # δ is a - b e^ε, and ε is 0.
    return delta.a - delta.b


def count_right_guesses(advantage: Fraction) -> int:
    """Return in how many of 100 cases the best attacker guesses right, rounded up.

    Args:
        advantage: δ(0) of the worst neighbours, or an upper bound, in [0, 1].

    Raises:
        InvalidRequest: If the advantage is outside [0, 1].
    """
    # The probability (1 + δ(0))/2 is 50 (1 + δ(0)) of 100.
    return math.ceil(50 * (1 + read_probability(advantage, "advantage")))


def list_warnings(advantage: Fraction) -> tuple[str, ...]:
    """List a warning about a guarantee that protects almost nothing, or no warning.

    Args:
        advantage: δ(0) of the worst neighbours, or an upper bound, in [0, 1].
    """
    if count_right_guesses(advantage) < _WARNED_RIGHT_GUESSES:
        return ()
    return (_WARNING,)


def describe_guarantee(
    advantage: Fraction, neighbours: str, numbers: int = 1, *, has_one_row: bool = False
) -> tuple[str, str]:
    """Describe a guarantee in two sentences for people who do not know differential privacy.

    Args:
        advantage: δ(0) of the worst neighbours, or an upper bound, in [0, 1]. For several releases
            it is δ(0) of their composition.
        neighbours: "add-remove" or "replace", the relation of the release.
        numbers: How many numbers are published.
        has_one_row: Whether every row of the table is one person.

    Returns:
        The sentence of the prior, and those of the right guesses.

    Raises:
        InvalidRequest: If an argument is outside its range.
    """
    if neighbours not in NEIGHBOURS:
        must("neighbours", f"one of {', '.join(NEIGHBOURS)}", neighbours)
    subject = "these numbers"
    if read_integer(numbers, "numbers", 1) == 1:
        subject = "this number"
    right_guesses = count_right_guesses(advantage)
    prior = _PRIORS[neighbours]
    if has_one_row and neighbours == REPLACE:
        prior = _ONE_ROW_PRIOR
    return write_sentences(prior, "all other rows", subject, right_guesses)


def write_sentences(
    prior: str, knowledge: str, subject: str, right_guesses: int
) -> tuple[str, str]:
    """Write the sentence of the prior, and those of the right guesses.

    Args:
        prior: What is equally likely beforehand, a clause that begins with "that".
        knowledge: What the attacker knows beforehand.
        subject: What is published, such as "this number".
        right_guesses: Right guesses of 100, rounded up.
    """
    return (
        f"Suppose it is equally likely beforehand {prior}.",
        f"An attacker who knows {knowledge} and sees {subject} guesses which of the two is true, "
        f"and is right in at most {right_guesses} of 100 cases. Without {subject}, it is 50 of "
        "100 cases.",
    )


def list_limits(max_rows: int | None = None, *, has_ledger: bool = False) -> tuple[str, ...]:
    """List sentences on the limits of every guarantee of differential privacy.

    Args:
        max_rows: K, the largest number of rows of a person that are protected. None: all rows of a
            person are protected, or K is not known, as the mechanism is not tied to a table.
        has_ledger: Whether the release is booked in a ledger.
    """
    limits = [_STATISTIC_LIMIT]
    if max_rows is not None:
        number = "more than one row" if max_rows == 1 else f"more than {max_rows} rows"
        limits.append(f"A person with {number} is protected less than stated.")
    return (*limits, _LEDGER_LIMIT if has_ledger else _NO_LEDGER_LIMIT)


def find_noise_width(noise: IntegerLaw, coverage: Fraction = COVERAGE) -> int:
    """Find the least w with P(|η| <= w) >= coverage, exactly.

    Args:
        noise: The law of η.
        coverage: A probability in [0, 1).

    Raises:
        InvalidRequest: If the coverage is outside [0, 1).
    """
    if not 0 <= coverage < 1:
        must("coverage", "a number in [0, 1)", coverage)

    def is_covered(width: int) -> bool:
        """Return whether |η| <= width has at least the requested probability."""
        return compute_coverage(noise, width) >= coverage

    high = 1
    while not is_covered(high):
        high *= 2
    # The search begins at -1, because it does not try its lower end, and the width may be 0.
    _, least_width = bisect_integers(is_covered, -1, high)
    return least_width


def compute_coverage(noise: IntegerLaw, width: int) -> Fraction:
    """Compute P(|η| <= width), exactly.

    Args:
        noise: The law of η.
        width: An integer >= 0.
    """
    return (noise.weight_below(width + 1) - noise.weight_below(-width)) / noise.total
