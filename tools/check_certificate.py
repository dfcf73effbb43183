#!/usr/bin/env python3
"""An independent checker of certificates: one file, the standard library, no code of the workbench.

    python check_certificate.py FILE...

    proven       exit code 0    everything the file states follows from its integers
    false        1              a claim, loss or bias in the file is refuted
    unreadable   2              there is no such file, it is no certificate, or contradicts itself
    too large    2              the check needs more work than the limit: nothing is decided
    unknown      2              another version of the format, an unknown kind of mechanism, or a
                                claim of renyi, zcdp or gdp so nearly tight that the limit is
                                reached

With several files, exit code 1 wins over 2. The entry "record" is ignored: it proves nothing.

What is decided. A law is a probability distribution: a list of integers over their sum. The law P
is compared with the law Q at ε >= 0, over all outcomes i:

    pure, metric    P(i) <= e^ε Q(i) for all i    (metric: every pair of laws has its own ε)
    dp              Σ max(0, P(i) - e^ε Q(i)) <= δ
    pdp             Σ P(i) over {i : P(i) > e^ε Q(i)} <= δ
    tradeoff        Σ min(u P(i), v Q(i)) >= w for every line u β + v α >= w through two consecutive
                    points (α, β) of a convex function (P and Q change places if u > v). If this
                    holds for both orders of a pair, every test of one law against the other with
                    a type I error α has a type II error of at least the function's value at α

    noise           f(·) against f(· + μ) on the group Z_s1 x Z_s2 x ..., for all differences μ
                    (and -μ unless directed)
    channel         row i against row j, for all ordered pairs (i, j) in the file
    range           a channel; the file must pair all rows that neighbouring real answers may use
                    (`read_range`)
    nearest-outputs real answers whose nearest outputs are likelier; the pair of answers at both
                    ends of the range (`read_nearest`)
    quantizer       the laws at any two real inputs; between knots a law is affine in the input
                    (`check_real_inputs`)
    integer-noise   f against f(· + s) on all integers, s = ±1..±D; clamped to N answers, rows as
                    of a channel
    real-noise      the same for k cells per sensitivity and a point mass, s = ±1..±k, which
                    decides every real shift (`LineLaw`)
    joint           independent noise of one law on every coordinate of a vector of integers: f × f
                    × ... against the same, moved by v, for all shift vectors v of a relation. They
                    are derived here, and a file with others is false (`list_shift_vectors`)

A file of another format states the laws of the integers of dyadic quantized Laplace noise and a
guarantee per unit of the distance of the inputs (`prove_dyadic_law`). It has no limit of work.

If the file has a composed claim: T adaptive runs, each on neighbours that may depend on the
published results of the earlier runs, are together dp at its ε and δ (`check_runs`).

What is counted before the check ("too large"). With

    C  number of ordered comparisons: the differences of noise, the pairs of a channel, or L² for a
       quantizer with L different end laws
    n  number of outcomes of a law
    T  total number of weights: n for noise, n for every row or end law otherwise; k n more for k
       labels
    b  sum of three sizes in bits: of the largest sum of a law; of the longest number of the claim
       except δ (numerator and denominator together); of δ
    w  b plus three sizes of the other numbers (knots, outputs, numbers of the objective and the
       bias): the exponent of the largest power of 2 in a denominator, the bits of all different
       odd parts of denominators, and the bits of the largest numerator

    Noise on the integers and the reals has n_w weights with the sum W. Its tails fall by the ratio
    r = u/v after every P values. D is the number of shifts (on the reals: k cells).
    C = 2D, n = n_w + 2D + 2P (only with tails) + 2 (only with a point mass). In b, the size of a
    law is that of W, plus t times those of u and v with t = ⌈D/P⌉ + 3 (t = 0 without tails), plus
    that of the point mass. Clamped to N answers: C = D (2N - D - 1), n = N, T = N², t = ⌈N/P⌉ + 2.

    For a joint release, C is the number of shift vectors, n the largest number of different ratios
    of one of them, and the size of a law is that of its sum (`JointLaw`). For geometric noise a^|η|
    with the largest L1 norm N, n = N + 1 and the size is N + 2 times that of a. C = 1 and n = 2 by
    the rule for geometric noise below. Convolutions are limited by MAX_GEOMETRIC_UNITS for
    geometric noise. For other noise that needs more than MAX_CONVOLUTION_UNITS, only a claim of dp
    with δ > 0 is decided, on a grid of privacy losses (`check_joint_on_grid`). This is also done if
    an audit needs more than MAX_JOINT_AUDIT_UNITS.

    audit       C n (a (4 + ⌊b/256⌋²) + s) + 1000 C + (C + 8) ⌊b/64⌋²
                a = 1; the points of a curve; 16 times those of a trade-off function
                s = 0; 5,000 for renyi, 10,000 for zcdp, 20,000 for gdp, whose terms are computed
                from series
                C is at most n for pure (and dp, pdp with δ = 0) on a channel whose rows are all
                neighbours, and for these notions and metric on a quantizer. C = 1 for them on
                noise on a line that is even and never rises with |η|, and on a joint release with
                geometric noise
    loss, bias  T (4 + ⌊w/256⌋²) + ⌊w/64⌋²
    pdp on K pieces       K² n⁴ (100 + 2 ⌊b/100⌋²) as well
    composed    C n (300 + ⌊b/64⌋²) as well (C without the rule above). A second count follows when
                the number a of atoms of the dominating pair is known: a (500 + 10 d) +
                7 N (20 + 3 d), for T runs at (ε, δ) on a grid on which the finite losses span m
                points: d = 30 + the digits of T and of ⌊1/δ⌋ + ⌊ε/2⌋ (at most 1300),
                N = m min(T, 4 ⌊√(T d)⌋ + 4)

the work is the sum, in units of about 10^-7 s, and must be at most MAX_WORK_UNITS. The workbench
counts by the same rule (`workbench.privacy.audit_work`): a change of the rule must be made in both
files. The digits and pieces that a claim of renyi, zcdp or gdp needs are not known beforehand: the
work of every enclosure is counted just before it is computed (`IntervalArithmetic.count_work`), and
MAX_ENCLOSURE_UNITS limits their sum."""

import sys

if sys.version_info < (3, 8):  # noqa: UP036
    sys.stdout.write("unknown: This checker needs Python 3.8 or newer.\n")
    sys.exit(2)

import json
import math
import os
import re
import signal
import stat
from collections import Counter
from contextlib import contextmanager, suppress
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_CEILING,
    ROUND_FLOOR,
    Context,
    Decimal,
    DivisionByZero,
    Inexact,
    InvalidOperation,
    Overflow,
)
from fractions import Fraction
from functools import cmp_to_key, partial, reduce
from itertools import combinations, groupby, permutations, product
from statistics import NormalDist
from types import SimpleNamespace

FORMAT = "dp-workbench certificate"
DYADIC_FORMAT = "dp-workbench dyadic law"  # The format of files that `prove_dyadic_law` checks.
VERSION = 1
MAX_LEVELS = 200  # A dyadic law may have this many levels.
MAX_WORK_UNITS = 100_000_000  # A file whose counted work exceeds this is refused as too large.
MAX_ENCLOSURE_UNITS = 60_000_000  # A claim whose enclosures need more work stays undecided.
MAX_CONVOLUTION_UNITS = 4_000_000  # Privacy losses with more work are convolved on a grid.
MAX_JOINT_AUDIT_UNITS = 95_000_000  # So is a claim of dp with δ > 0 whose proof needs more work.
MAX_GEOMETRIC_UNITS = 60_000_000  # The limit for geometric noise.
MAX_SHIFT_VECTORS = 100_000  # A joint release may have this many shift vectors.
MAX_FILE_BYTES = 16 << 20  # A larger file is refused as too large.
# The parameters of each notion, in their order. The first may be one number for each comparison.
PARAMETERS = {
    "pure": ("epsilon", "delta"),
    "dp": ("epsilon", "delta"),
    "pdp": ("epsilon", "delta"),
    "metric": ("epsilon", "delta"),
    "curve": ("curve",),
    "tradeoff": ("tradeoff",),
    "renyi": ("epsilon", "alpha"),
    "zcdp": ("rho",),
    "gdp": ("mu",),
}
# Units of work for each outcome under the notions whose outcomes take series.
SERIES_UNITS = {"renyi": 5000, "zcdp": 10_000, "gdp": 20_000}
MAX_DIGITS = 1300  # A claim of gdp that needs more digits stays undecided.
MAX_REFUTATIONS = 24  # At most this many comparisons are tried to refute a composed claim.
MAX_COLUMN_WEIGHTS = 4_000_000  # A channel given by columns may expand to this many weights.
MAX_CPU_SECONDS = 9  # A check is stopped after this CPU time, in case the count of work is wrong.
MAX_MEMORY_BYTES = 4 << 30  # The process may use this much memory.


class Refused(Exception):
    """The verdict (unreadable, false, too large, unknown) and the reason, a sentence."""


def ensure(condition, sentence, verdict="unreadable"):
    """Raise Refused with a verdict unless a condition holds.

    Args:
        condition: the condition, true or false.
        sentence: the reason that is printed.
        verdict: one of the verdicts of `Refused`.
    """
    if not condition:
        raise Refused(verdict, sentence)


# Replacements for functions of newer versions of Python.


def pairwise(values):
    """Return each value with the next one, as a list of pairs.

    Args:
        values: any iterable.
    """
    values = list(values)
    return list(zip(values[:-1], values[1:]))  # noqa: B905, RUF007


def zip_equal(*lists):
    """Zip lists, and refuse lists of different lengths."""
    lists = [values if hasattr(values, "__len__") else list(values) for values in lists]
    ensure(len({len(values) for values in lists}) < 2, "Two lists differ in length.")
    return zip(*lists)  # noqa: B905


def gcd(values):
    """Return the greatest common divisor.

    Args:
        values: integers; without any the result is 0.
    """
    return reduce(math.gcd, values, 0)


def lcm(values):
    """Return the least common multiple.

    Args:
        values: positive integers; without any the result is 1.
    """
    return reduce(lambda a, b: a * b // math.gcd(a, b), values, 1)


@contextmanager
def report_failures_as_false():
    """Call a file false, not unreadable, if `ensure` fails inside this context."""
    try:
        yield
    except Refused as error:
        verdict, sentence = error.args
        if verdict == "unreadable":
            verdict = "false"
        raise Refused(verdict, sentence) from None


# ---------- e^ε, enclosed


class Power:
    """E = e^ε for a rational ε >= 0, enclosed as tightly as a comparison needs.

    The enclosures are integers, low <= 2^w E <= high.

    e^y = Σ y^n/n! for y = ε/2^s <= 1/2, in m columns (which saves products) of integers that are
    rounded down, with a bound on the rounding errors; then e^ε by squaring s times. E is irrational
    for rational ε != 0 (Lindemann), so a comparison of rationals with it always ends."""

    def __init__(self, epsilon):
        """Start without any enclosure.

        Args:
            epsilon: Fraction >= 0.
        """
        self.epsilon = epsilon
        self.enclosures = []

    def bounds(self, level):
        """Return (low, high, w) with about 64 * 2^level correct bits.

        Args:
            level: integer >= 0.
        """
        while len(self.enclosures) <= level:
            self.enclosures.append(self._enclose(64 << len(self.enclosures)))
        return self.enclosures[level]

    def _enclose(self, bits):
        """Return (low, high, w) with about `bits` correct bits."""
        halvings = round(bits ** (1 / 3)) + math.ceil(self.epsilon).bit_length() + 1
        w = bits + 3 * halvings + 32
        m = max(1, math.isqrt(bits // halvings))
        y = (self.epsilon.numerator << w) // (self.epsilon.denominator << halvings)
        power = 1 << w
        for _ in range(m):
            power = power * y >> w
        # Column i is Σ (y^m)^j / (j m + i)!, so that e^y = Σ column_i y^i.
        columns = [0] * m
        term = 1 << w
        n = 0
        while term:
            columns[n % m] += term
            n += 1
            term //= n
            if n % m == 0:
                term = term * power >> w
        low = 0
        for column in reversed(columns):
            low = (low * y >> w) + column
        # All was rounded down. A power or term lacks less than 8: a product passes on half of what
        # its factor lacks and adds at most 5, a quotient adds 1. So the sum lacks 8 for each of its
        # n terms, and 24 for those left out and for the last products.
        error = 8 * n + 24
        for _ in range(halvings):  # Each step computes (low + error)² / 2^w.
            error = ((2 * low + error) * error >> w) + 2
            low = low * low >> w
        return low, low + error, w

    def sign_of_sum(self, x, y):
        """Return the sign of x + y E.

        Args:
            x, y: integers.
        """
        if self.epsilon == 0:
            return sign_of(x + y)
        x_sign = sign_of(x)
        y_sign = sign_of(y)
        if x_sign * y_sign >= 0:
            return x_sign or y_sign
        x = abs(x)
        y = abs(y)
        if self.epsilon > x.bit_length():  # Then E > 2^ε > x, and y >= 1.
            return y_sign
        level = 0
        while True:
            low, high, w = self.bounds(level)
            if x << w < y * low:
                return y_sign
            if x << w > y * high:
                return x_sign
            level += 1


def sign_of(x):
    """Return -1, 0 or 1.

    Args:
        x: a real number.
    """
    return (x > 0) - (x < 0)


# ---------- one law against another


def find_violations(p, q, power):
    """Return the outcomes i with P(i) > E Q(i).

    Args:
        p, q: laws, each (integers, their sum).
        power: E, a `Power`.
    """
    k, k_sum = p
    l, l_sum = q
    if power.epsilon > k_sum.bit_length() + l_sum.bit_length():
        # E exceeds every ratio of two masses that are not 0.
        return [i for i, (x, y) in enumerate(zip_equal(k, l)) if x and not y]
    low, high, w = power.bounds(0)
    # P > E Q is k l_sum > E l k_sum.
    left = l_sum << w
    right_low = k_sum * low
    right_high = k_sum * high
    outcomes = []
    for i, (x, y) in enumerate(zip_equal(k, l)):
        mass = x * left
        if mass > y * right_high or (
            mass > y * right_low and power.sign_of_sum(x * l_sum, -y * k_sum) > 0
        ):
            outcomes.append(i)
    return outcomes


class Requirement:
    """A notion with its budget, for one comparison or for all.

    Numbers that the notion does not have are None or empty.

    Attributes:
        notion: name of the notion.
        power: e^ε, a `Power`.
        delta, alpha, rho, mu: numbers of the budget.
        points: points of a curve, each a Requirement.
        function: points (α, β) of a trade-off function.
    """

    def __init__(self, notion, values):
        """Collect the numbers of a budget.

        Args:
            notion: a key of PARAMETERS.
            values: name of each parameter -> its value.
        """
        self.notion = notion
        self.delta = values.get("delta")
        self.power = Power(values["epsilon"]) if "epsilon" in values else None
        self.alpha = values.get("alpha")
        self.rho = values.get("rho")
        self.mu = values.get("mu")
        self.points = [
            Requirement("dp", {"epsilon": epsilon, "delta": delta})
            for epsilon, delta in values.get("curve", ())
        ]
        self.function = values.get("tradeoff", ())


def check_pair(p, q, requirement, name):
    """Refuse unless P against Q meets a requirement.

    Args:
        p, q: laws, each (integers, their sum).
        requirement: a `Requirement`.
        name: name of the pair, for the sentence of a refusal.
    """
    checks = {
        "curve": check_curve,
        "tradeoff": check_tradeoff,
        "renyi": check_renyi,
        "zcdp": check_concentrated,
        "gdp": check_gaussian,
    }
    if requirement.notion in checks:
        checks[requirement.notion](p, q, requirement, name)
        return
    power = requirement.power
    violations = find_violations(p, q, power)
    if requirement.notion in ("pure", "metric"):
        ensure(
            not violations,
            f"{name}: outcome {violations[:1]} exceeds e^epsilon times its mass in the other law.",
        )
        return
    weights_p, p_sum = p
    weights_q, q_sum = q
    a = sum(weights_p[i] for i in violations)
    b = sum(weights_q[i] for i in violations)
    u = requirement.delta.numerator
    v = requirement.delta.denominator
    if requirement.notion == "pdp":
        ensure(
            a * v <= u * p_sum, f"{name}: the outcomes that exceed e^epsilon weigh more than delta."
        )
    else:  # The condition a/p_sum - E b/q_sum - u/v <= 0 is multiplied by p_sum q_sum v.
        excess_sign = power.sign_of_sum(a * q_sum * v - u * p_sum * q_sum, -b * p_sum * v)
        ensure(excess_sign <= 0, f"{name}: the hockey stick exceeds delta.")


def check_curve(p, q, requirement, name):
    """Refuse unless P against Q meets every point (ε, δ) of a curve.

    Arguments: see `check_pair`.
    """
    for point in requirement.points:
        check_pair(p, q, point, name)


def check_tradeoff(p, q, requirement, name):
    """Refuse unless every test of P against Q has errors above the trade-off function.

    The function is the largest of its lines u β + v α = w. A test makes one of two errors at each
    outcome i, with weight u P(i) or v Q(i). So its u β + v α is at least Σ min(u P, v Q), and some
    test reaches this sum. The test is compared with P and Q in the order in which Q has the larger
    factor; the pair (Q, P) is another comparison. Arguments: see `check_pair`.
    """
    k, k_sum = p
    l, l_sum = q
    for (a, b), (next_a, next_b) in pairwise(requirement.function):
        if b == next_b:
            continue
        u = next_a - a
        v = b - next_b
        w = b * next_a - a * next_b
        scale = lcm([u.denominator, v.denominator, w.denominator])
        p_factor, q_factor = sorted((int(u * scale), int(v * scale)))
        smallest = sum(min(p_factor * i * l_sum, q_factor * j * k_sum) for i, j in zip_equal(k, l))
        ensure(
            smallest >= int(w * scale) * k_sum * l_sum,
            f"{name}: a test errs less than the trade-off function allows.",
        )


# ---------- logarithms, exponentials and Φ, enclosed


class IntervalArithmetic:
    """Arithmetic on intervals (low, high) of decimals with a number of digits, rounded outwards.

    Operations are methods of the contexts `round_down` and `round_up`, because operators would
    round to 28 digits. `decimal` rounds ln, exp and sqrt correctly, so that the next decimal on
    either side encloses them."""

    remaining_units = MAX_ENCLOSURE_UNITS  # Shared by one certificate: `prove_statement` resets it.

    def __init__(self, digits):
        """Make both contexts.

        Args:
            digits: significant digits of every number.
        """
        exponents = {"prec": digits, "Emin": MIN_EMIN, "Emax": MAX_EMAX}
        traps = [InvalidOperation, DivisionByZero, Overflow]
        self.round_down = Context(rounding=ROUND_FLOOR, traps=traps, **exponents)
        self.round_up = Context(rounding=ROUND_CEILING, traps=traps, **exponents)
        self.digits = digits

    def count_work(self, functions, products=0):
        """Count the work of operations before they are computed, and refuse beyond the limit.

        Args:
            functions: the number of logarithms, exponentials and roots.
            products: the number of products, each with a quotient and a sum.
        """
        d = self.digits
        units = functions * (30 * d + d**3 // 2250) + products * (50 + d * d // 3300)
        IntervalArithmetic.remaining_units -= units
        if IntervalArithmetic.remaining_units < 0:
            raise Refused(
                "unknown",
                f"{MAX_ENCLOSURE_UNITS} units of work do not decide whether the budget is enough.",
            )

    def from_rational(self, x):
        """Return the enclosure of a rational number.

        Args:
            x: Fraction or int.
        """
        top = Decimal(x.numerator)
        bottom = Decimal(x.denominator)
        return self.round_down.divide(top, bottom), self.round_up.divide(top, bottom)

    def add(self, x, y):
        """Return the enclosure of x + y.

        Args:
            x, y: intervals.
        """
        return self.round_down.add(x[0], y[0]), self.round_up.add(x[1], y[1])

    def multiply(self, x, y):
        """Return the enclosure of x y.

        Args:
            x: an interval of numbers >= 0.
            y: an interval.
        """
        return (
            self.round_down.multiply(x[y[0] < 0], y[0]),
            self.round_up.multiply(x[y[1] >= 0], y[1]),
        )

    def divide(self, x, y):
        """Return the enclosure of x / y.

        Args:
            x: an interval of numbers >= 0.
            y: an interval of positive numbers.
        """
        return self.round_down.divide(x[0], y[1]), self.round_up.divide(x[1], y[0])

    def apply(self, function, x):
        """Return the enclosure of an increasing function that `decimal` rounds correctly.

        Args:
            function: "ln", "exp" or "sqrt".
            x: an interval.
        """
        low = getattr(self.round_down, function)(x[0])
        high = getattr(self.round_up, function)(x[1])
        # The next decimal after 0 would have an exponent of about 10^18.
        next_to_zero = Decimal((0, (1,), -self.digits))
        return (
            self.round_down.next_minus(low) if low else next_to_zero.copy_negate(),
            self.round_up.next_plus(high) if high else next_to_zero,
        )


class Divergence:
    """Rényi divergences of P from Q, computed from the ratios of their masses.

    Attributes:
        is_infinite: whether some outcome of P has no mass in Q.
        is_zero: whether P = Q.
        masses: for each different ratio P/Q the pair (mass of P with it, the ratio).
    """

    def __init__(self, p, q):
        """Collect the different ratios.

        Args:
            p, q: laws, each (integers, their sum).
        """
        k, k_sum = p
        l, l_sum = q
        counts = Counter((x, y) for x, y in zip_equal(k, l) if x)
        self.is_infinite = any(not y for _, y in counts)
        self.is_zero = all(x * l_sum == y * k_sum for x, y in zip_equal(k, l))
        self.masses = [
            (Fraction(x * count, k_sum), Fraction(x * l_sum, y * k_sum))
            for (x, y), count in counts.items()
            if y
        ]
        self.losses_by_digits = {}

    def losses(self, digits):
        """Return the interval arithmetic, and for each ratio the enclosed (mass of P, ln P/Q).

        Args:
            digits: number of digits of the arithmetic. The last result is stored.
        """
        if digits not in self.losses_by_digits:
            arithmetic = IntervalArithmetic(digits)
            arithmetic.count_work(len(self.masses))
            terms = [
                (
                    arithmetic.from_rational(mass),
                    arithmetic.apply("ln", arithmetic.from_rational(ratio)),
                )
                for mass, ratio in self.masses
            ]
            self.losses_by_digits = {digits: (arithmetic, terms)}
        return self.losses_by_digits[digits]

    def log_moment(self, alpha, digits):
        """Return the enclosure of g(α) = ln Σ P^α Q^(1-α) = (α-1) D_α between two rationals.

        Args:
            alpha: the order, a Fraction > 1.
            digits: number of digits of the arithmetic.
        """
        arithmetic, terms = self.losses(digits)
        power = arithmetic.from_rational(alpha - 1)
        total = (Decimal(0), Decimal(0))
        arithmetic.count_work(len(terms) + 1)
        for mass, loss in terms:
            factor = arithmetic.apply("exp", arithmetic.multiply(power, loss))
            total = arithmetic.add(total, arithmetic.multiply(mass, factor))
        return tuple(map(Fraction, arithmetic.apply("ln", total)))

    def mean_loss(self, digits):
        """Return the enclosure of Σ P ln P/Q between two rationals.

        Args:
            digits: number of digits of the arithmetic.
        """
        arithmetic, terms = self.losses(digits)
        total = (Decimal(0), Decimal(0))
        for mass, loss in terms:
            total = arithmetic.add(total, arithmetic.multiply(mass, loss))
        return tuple(map(Fraction, total))


def check_renyi(p, q, requirement, name):
    """Refuse unless Σ P^α Q^(1-α) <= e^((α-1) ε).

    Both sides are never equal for ε > 0, as the left side is algebraic. Arguments: see
    `check_pair`."""
    divergence = Divergence(p, q)
    alpha = requirement.alpha
    epsilon = requirement.power.epsilon
    if divergence.is_zero:
        return
    ensure(not divergence.is_infinite and epsilon, f"{name}: the Rényi divergence exceeds epsilon.")
    digits = 40
    while True:
        low, high = divergence.log_moment(alpha, digits)
        ensure(
            low <= (alpha - 1) * epsilon,
            f"{name}: the Rényi divergence of order {format_number(alpha)} exceeds epsilon.",
        )
        if high <= (alpha - 1) * epsilon:
            return
        digits *= 2


def check_concentrated(p, q, requirement, name):
    """Refuse unless g(α) = (α-1) D_α <= ρ α (α-1) for every α > 1.

    D_α never falls with α, and is at most the largest ln P/Q. So the condition holds for all α >=
    (largest ln P/Q) / ρ. Smaller orders are divided into pieces [a, b]:

    * The first piece has a = 1. The condition holds in it if D_b <= ρ.
    * In any other piece, g is convex, so it is below its chord. The difference of the chord and ρ α
      (α-1) is a concave quadratic in α. If its maximum is <= 0, the condition holds in the piece.
    * Otherwise the piece is halved. The claim is false if the condition fails at an end of a piece.

    The powers (P/Q)^(α-1) at the middle of a piece are the geometric means of those at both ends.
    All are rounded up. Arguments: see `check_pair`.
    """
    divergence = Divergence(p, q)
    rho = requirement.rho
    if divergence.is_zero:
        return
    sentence = f"{name}: a Rényi divergence exceeds rho times its order."
    ensure(not divergence.is_infinite and rho, sentence)
    ensure(divergence.mean_loss(80)[0] <= rho, sentence)
    max_loss = max(Fraction(high) for _, (_, high) in divergence.losses(80)[1])
    last_order = max(Fraction(2), Fraction(math.ceil(max_loss / rho)))
    if last_order > 10**15:
        raise Refused(
            "unknown", f"{name}: rho is too small beside the largest ratio to be decided."
        )
    arithmetic, terms = divergence.losses(80)
    round_up = arithmetic.round_up

    def make_end(alpha, powers):
        """Return (α, the powers, g(α) rounded up). Refuse a claim that fails at α.

        Args:
            alpha: the order, a Fraction > 1.
            powers: (P/Q)^(α-1) of every ratio, rounded up.
        """
        total = Decimal(0)
        for (mass, _), power in zip_equal(terms, powers):
            total = round_up.fma(mass[1], power, total)
        moment = Fraction(arithmetic.apply("ln", (total, total))[1])
        if moment > rho * alpha * (alpha - 1):
            ensure(divergence.log_moment(alpha, 80)[0] <= rho * alpha * (alpha - 1), sentence)
        return alpha, powers, moment

    arithmetic.count_work(len(terms))
    exponent = arithmetic.from_rational(last_order - 1)
    powers = [arithmetic.apply("exp", arithmetic.multiply(exponent, loss))[1] for _, loss in terms]
    first_end = (Fraction(1), [Decimal(1)] * len(terms), Fraction(0))
    pieces = [(first_end, make_end(last_order, powers))]
    while pieces:
        low, high = pieces.pop()
        a, low_powers, low_moment = low
        b, high_powers, high_moment = high
        if a == 1:
            is_decided = high_moment <= rho * (b - 1)
        else:
            slope = (high_moment - low_moment) / (b - a)
            worst_order = min(max((slope / rho + 1) / 2, a), b)
            chord = low_moment + slope * (worst_order - a)
            is_decided = chord <= rho * worst_order * (worst_order - 1)
        if not is_decided:
            arithmetic.count_work(1, len(terms))
            powers = [
                round_up.next_plus(round_up.sqrt(round_up.multiply(x, y)))
                for x, y in zip_equal(low_powers, high_powers)
            ]
            middle = make_end((a + b) / 2, powers)
            pieces += [(low, middle), (middle, high)]


def enclose_normal_cdf(x, arithmetic):
    """Return the enclosure of Φ(x).

    Φ(x) = 1/2 - φ(t) Σ t^(2n+1)/(1·3·…·(2n+1)) for t = -x >= 0, and Φ(x) < e^(-t²/2).

    Args:
        x: Decimal.
        arithmetic: an `IntervalArithmetic`.
    """
    round_down = arithmetic.round_down
    round_up = arithmetic.round_up
    if x > 0:
        low, high = enclose_normal_cdf(x.copy_negate(), arithmetic)
        return round_down.subtract(1, high), round_up.subtract(1, low)
    t = (x.copy_negate(), x.copy_negate())
    square = arithmetic.multiply(t, t)
    if square[0] > 5 * arithmetic.digits:
        return Decimal(0), Decimal((0, (1,), -arithmetic.digits))
    arithmetic.count_work(1)
    two = (Decimal(2), Decimal(2))
    half_square = arithmetic.divide(square, two)
    density = arithmetic.apply("exp", (half_square[1].copy_negate(), half_square[0].copy_negate()))
    density = arithmetic.divide(density, arithmetic.apply("sqrt", arithmetic.multiply(two, PI)))
    term = t
    total = t
    n = 0
    smallest_term = Decimal((0, (1,), -arithmetic.digits - 5))
    while (
        round_up.multiply(2, square[1]) > 2 * n + 3
        or round_up.multiply(term[1], density[1]) > smallest_term
    ):
        n += 1
        arithmetic.count_work(0, 1)
        odd = Decimal(2 * n + 1)
        term = arithmetic.divide(arithmetic.multiply(term, square), (odd, odd))
        total = arithmetic.add(total, term)
    # Each further term is at most half of the one before it.
    total = (total[0], round_up.add(total[1], term[1]))
    mass = arithmetic.multiply(density, total)
    half = Decimal("0.5")
    return round_down.subtract(half, mass[1]), round_up.subtract(half, mass[0])


def enclose_pi(digits):
    """Return the enclosure of π = 16 arctan 1/5 - 4 arctan 1/239.

    It is computed in integers, with each division off by less than 1.

    Args:
        digits: number of correct digits after the point.
    """
    unit = 10 ** (digits + 20)
    term_count = 0

    def arctan_of_inverse(k):
        """Return about arctan(1/k) times the unit, by its series, and count the terms."""
        nonlocal term_count
        power = unit // k
        total = 0
        n = 1
        while power:
            total += power // n if n % 4 == 1 else -(power // n)
            power //= k * k
            n += 2
        term_count += n
        return total

    center = 16 * arctan_of_inverse(5) - 4 * arctan_of_inverse(239)
    radius = 100 * term_count
    context = Context(prec=digits + 40, Emax=MAX_EMAX, Emin=MIN_EMIN)
    return (
        context.scaleb(Decimal(center - radius), -digits - 20),
        context.scaleb(Decimal(center + radius), -digits - 20),
    )


PI = enclose_pi(MAX_DIGITS)


def check_gaussian(p, q, requirement, name):
    """Refuse unless Φ^-1(P(A)) - Φ^-1(Q(A)) <= μ for every set A of outcomes.

    For each value of Q(A), P(A) is largest if A consists of the outcomes with the largest ratios
    P/Q (Neyman and Pearson). Between two such sets, the curve of the points (Q(A), P(A)) is
    straight, and the bound Φ(Φ^-1(·) + μ) is concave. So these sets decide. Arguments: see
    `check_pair`.
    """
    k, k_sum = p
    l, l_sum = q
    outcomes = [
        (Fraction(x * l_sum, y * k_sum) if y else math.inf, x, y)
        for x, y in zip_equal(k, l)
        if x or y
    ]
    p_mass = 0
    q_mass = 0
    for _, group in groupby(sorted(outcomes, reverse=True), key=lambda outcome: outcome[0]):
        for _, x, y in group:
            p_mass += x
            q_mass += y
        if p_mass * l_sum > q_mass * k_sum:
            a = Fraction(p_mass, k_sum)
            b = Fraction(q_mass, l_sum)
            sentence = f"{name}: the trade-off curve falls below the Gaussian one."
            ensure(a < 1 and b > 0 and requirement.mu, sentence)
            ensure(is_within_gaussian(a, b, requirement.mu, name), sentence)


def is_within_gaussian(a, b, mu, name):
    """Decide whether a <= Φ(Φ^-1(b) + μ).

    Φ is enclosed at both ends of a small interval around Φ^-1(b).

    Args:
        a, b: Fractions, 0 < b < a < 1.
        mu: Fraction > 0.
        name: name of the pair, for the sentence of a refusal.
    """
    smaller_tail = min(b, 1 - a)
    digits = 40 + 2 * len(str(smaller_tail.denominator // smaller_tail.numerator))
    while digits <= MAX_DIGITS:
        arithmetic = IntervalArithmetic(digits)
        round_down = arithmetic.round_down
        round_up = arithmetic.round_up
        z = approximate_normal_quantile(b, arithmetic)
        step = Decimal((0, (1,), -digits // 2))
        low = round_down.subtract(z, step)
        high = round_up.add(z, step)
        b_enclosure = arithmetic.from_rational(b)
        shift = arithmetic.from_rational(mu)
        a_low, a_high = arithmetic.from_rational(a)
        if (
            enclose_normal_cdf(low, arithmetic)[1] <= b_enclosure[0]
            and a_high <= enclose_normal_cdf(round_down.add(low, shift[0]), arithmetic)[0]
        ):
            return True
        if (
            enclose_normal_cdf(high, arithmetic)[0] >= b_enclosure[1]
            and a_low > enclose_normal_cdf(round_up.add(high, shift[1]), arithmetic)[1]
        ):
            return False
        digits *= 2
    raise Refused("unknown", f"{name}: {MAX_DIGITS} digits do not decide whether mu is enough.")


def approximate_normal_quantile(b, arithmetic):
    """Return about Φ^-1(b), by Newton's method on ln Φ. The result is not proven.

    The method starts from the value in floats. If b is below the range of floats, it starts from
    -√(-2 ln b).

    Args:
        b: Fraction in (0, 1).
        arithmetic: an `IntervalArithmetic`.
    """
    if 2 * b > 1:
        return approximate_normal_quantile(1 - b, arithmetic).copy_negate()
    low, _ = arithmetic.from_rational(b)
    context = arithmetic.round_down
    tail = context.multiply(-2, context.ln(low))
    if b < Fraction(1, 10**300):
        z = context.sqrt(tail).copy_negate()
    else:
        z = Decimal(NormalDist().inv_cdf(float(b)))
    for _ in range(60):
        arithmetic.count_work(2)
        z = context.plus(z)
        value = enclose_normal_cdf(z, arithmetic)[1]
        density = context.exp(context.divide(context.multiply(z, z).copy_negate(), 2))
        density = context.divide(density, context.sqrt(context.multiply(2, PI[0])))
        step = context.multiply(
            context.divide(value, density), context.ln(context.divide(value, low))
        )
        z = context.subtract(z, step)
        if step.copy_abs() < Decimal((0, (1,), -arithmetic.digits // 2 - 3)):
            break
    return z


# ---------- laws affine in a real input


def check_real_inputs(quantizer, requirement):
    """Refuse unless the laws at every two real inputs meet a requirement.

    A piece is the interval between two knots. On it the laws are affine in the input, from one end
    law to the other.

    pure, dp    Σ max(0, P - E Q) is convex in P and in Q, so it is largest at ends of pieces. All
                ordered pairs of end laws decide. For pure, and for δ = 0, the largest and the
                smallest mass of each output among them decide (`check_columns`).
    curve, tradeoff, renyi, zcdp, gdp
                All ordered pairs of end laws decide, too: the hockey sticks and Σ P^α Q^(1-α) are
                convex in P and in Q, and trade-off curves follow from the hockey sticks.
    metric      P(i|x) <= e^(ε |x - x'|) P(i|x') holds for all x, x' if and only if every mass p is
                continuous, with |p'| <= ε p. On a piece, p' is constant and p is smallest at an
                end.
    pdp         The sum is not convex: see `check_pdp`.

    Args:
        quantizer: quantizer, as `read_quantizer` returns it.
        requirement: a `Requirement`.
    """
    end_laws = quantizer.laws
    power = requirement.power
    pieces = [*zip_equal(end_laws[::2], end_laws[1::2])]
    if requirement.notion == "metric":
        for (_, right), (left, _) in pairwise(pieces):
            ensure(right == left, "The law jumps at a knot, so no distance bounds its ratio.")
        for (a, b), (left_law, right_law) in zip_equal(pairwise(quantizer.knots), pieces):
            for x, y in zip_equal(left_law[0], right_law[0]):
                p = Fraction(x, left_law[1])
                q = Fraction(y, right_law[1])
                ensure(
                    abs(q - p) <= power.epsilon * (b - a) * min(p, q),
                    "A mass changes faster than epsilon allows.",
                )
    elif requirement.notion == "pdp":
        for p, q in product(dict.fromkeys(pieces), repeat=2):
            check_pdp(p, q, power, requirement.delta)
    else:
        for p, q in product(dict.fromkeys(end_laws), repeat=2):
            check_pair(p, q, requirement, "Two end laws")


def check_pdp(p_ends, q_ends, power, delta):
    """Refuse unless Σ p_i(s) over {i : p_i(s) > E q_i(t)} <= δ for all s, t in [0, 1].

    p_i is affine in s on its piece, and q_i is affine in t on its piece. The lines p_i(s) = E
    q_i(t) cut the unit square of (s, t) into cells. Inside a cell the set of violations is fixed,
    so its mass is affine in s. On the closed cell the mass is largest at the smallest or the
    largest s. A point on a line has no violation that a cell beside it lacks, because the
    inequality is strict. So the cells decide.

    An s is `critical` if two lines cross there, or if a line enters or leaves the square. Between
    two critical s that follow each other, the cells keep their order in t. One rational s between
    them therefore shows all sets of violations, in the order of increasing t. The mass of each set
    is then computed at both critical s. Every s and E t here is a number (x + y E)/z with integers
    x, y, z.

    Args:
        p_ends, q_ends: the two end laws of each piece.
        power: E, a `Power`.
        delta: Fraction in [0, 1].
    """
    p, p_sum = to_integer_lines(*p_ends)
    q, q_sum = to_integer_lines(*q_ends)
    # P > E Q  <=>  (a + da s) q_sum > E (b + db t) p_sum: the scales go into the numbers.
    lines = [(a * q_sum, da * q_sum, b * p_sum, db * p_sum) for (a, da), (b, db) in zip_equal(p, q)]
    scale = p_sum * q_sum  # A mass is an integer over this.
    u = delta.numerator
    v = delta.denominator
    zero = (0, 0, 1)
    one = (1, 0, 1)
    critical = {zero, one}
    for a, da, b, db in lines:
        if da:  # The line meets t = 0 and t = 1: a + da s = E b, = E (b + db).
            critical |= {exp_number(-a, b, da), exp_number(-a, b + db, da)}
    for (a, da, b, db), (c, dc, d, dd) in combinations(lines, 2):
        slope = da * dd - dc * db
        if db and dd and slope:  # They cross: (a + da s - E b)/db = (c + dc s - E d)/dd.
            critical.add(exp_number(c * db - a * dd, b * dd - d * db, slope))
    inputs = [
        s
        for s in critical
        if compare_exp_numbers(s, zero, power) >= 0 >= compare_exp_numbers(s, one, power)
    ]
    for low, high in pairwise(sort_exp_numbers(inputs, power)):
        sample = find_rational_between(low, high, power)
        for mass, slope in iterate_violating_masses(lines, sample, power):
            # The condition is mass + slope s <= u/v scale, with s = (x + y E)/z.
            x, y, z = high if slope > 0 else low
            ensure(
                power.sign_of_sum(v * (mass * z + slope * x) - u * scale * z, v * slope * y) <= 0,
                "Two real inputs have violating outcomes that weigh more than delta.",
            )


def iterate_violating_masses(lines, s, power):
    """Yield (mass, slope) of Σ a + da s over the violations, for every set of them at s.

    The sets are those of all t in (0, 1).

    Args:
        lines: (a, da, b, db) of each outcome, as in `check_pdp`.
        s: (n, d), the rational n/d.
        power: E, a `Power`.
    """
    n, d = s
    mass = 0
    slope = 0
    # An event is a crossing of the line of an outcome: (E t, whether the outcome violates after it,
    # a, da).
    events = []
    for a, da, b, db in lines:
        p_mass = a * d + da * n  # This is the mass times d.
        if not db:
            violates_at_0 = power.sign_of_sum(p_mass, -b * d) > 0
        else:
            # p_mass/d = E (b + db t) at E t = (p_mass - E b d)/(d db). The outcome violates where
            # E t is less (db > 0), or more.
            crossing = exp_number(p_mass, -b * d, d * db)
            is_above_0 = compare_exp_numbers(crossing, (0, 0, 1), power) > 0
            is_below_1 = compare_exp_numbers(crossing, (0, 1, 1), power) < 0
            violates_at_0 = is_above_0 if db > 0 else not is_above_0
            if is_above_0 and is_below_1:
                events.append((crossing, db < 0, a, da))
        if violates_at_0:
            mass += a
            slope += da
    events.sort(key=cmp_to_key(lambda one, two: compare_exp_numbers(one[0], two[0], power)))
    yield mass, slope
    for k, (crossing, enters, a, da) in enumerate(events):
        if enters:
            mass += a
            slope += da
        else:
            mass -= a
            slope -= da
        # Lines that meet at one point change together.
        if k + 1 == len(events) or compare_exp_numbers(crossing, events[k + 1][0], power):
            yield mass, slope


def to_integer_lines(p, q):
    """Return [(a, da)] and a scale, such that the mass of each outcome at s is (a + da s)/scale.

    Args:
        p, q: the laws at s = 0 and s = 1.
    """
    return [(x * q[1], y * p[1] - x * q[1]) for x, y in zip_equal(p[0], q[0])], p[1] * q[1]


def exp_number(x, y, z):
    """Return the number (x + y E)/z as a triple with z > 0.

    Args:
        x, y: integers.
        z: an integer that is not 0.
    """
    if z > 0:
        return (x, y, z)
    return (-x, -y, -z)


def compare_exp_numbers(a, b, power):
    """Return the sign of a - b.

    Args:
        a, b: triples of `exp_number`.
        power: E, a `Power`.
    """
    x, y, z = a
    p, q, r = b
    return power.sign_of_sum(x * r - p * z, y * r - q * z)


def sort_exp_numbers(numbers, power):
    """Return the different numbers in increasing order.

    Args:
        numbers: triples of `exp_number`.
        power: E, a `Power`.
    """
    values = sorted(numbers, key=cmp_to_key(lambda a, b: compare_exp_numbers(a, b, power)))
    return values[:1] + [b for a, b in pairwise(values) if compare_exp_numbers(a, b, power)]


def find_rational_between(low, high, power):
    """Return (n, d) with a rational n/d strictly between two numbers.

    Args:
        low, high: triples of `exp_number`, low < high.
        power: E, a `Power`.
    """
    x, y, z = low
    level = 0
    while True:
        bits = 32 << level
        power_low, power_high, w = power.bounds(level)
        bound = power_low
        if y > 0:
            bound = power_high
        scaled_low = ((x << w) + y * bound << bits) // (z << w)  # This is about low 2^bits.
        for n in (scaled_low, scaled_low + 1):
            middle = (n, 0, 1 << bits)
            if (
                compare_exp_numbers(low, middle, power)
                < 0
                < compare_exp_numbers(high, middle, power)
            ):
                return n, 1 << bits
        level += 1


# ---------- noise on the integers and on the reals


class LineLaw:
    """A law on all integers: weights f(first + i) = w_i, and geometric tails beyond them.

    In the tails, P steps outwards multiply f by the ratio r: f(η ± P) = r f(η).

    The laws f and f(· + s) are compared on the integers of a window, and merged outside it. There
    the ratio f(η)/f(η + s) depends only on η modulo P. Outcomes of the same ratio may be merged,
    because a notion uses only the ratios and their masses.

    Noise on the reals has density f(j)/β on the cell [(j - 1/2)β, (j + 1/2)β), where β is the
    sensitivity divided by k, and a point mass (atom) at 0. At a shift (i + t)β, 0 <= t < 1, a share
    1 - t of cell j is compared with cell j + i of the other law, and a share t with cell j + i + 1.
    The atom is compared with no mass. So the sum of a notion at this shift is (1 - t) times the sum
    at shift i plus t times the sum at shift i + 1, and a largest ratio is one of theirs. Therefore
    k integer shifts decide every real shift.

    If f is even and never rises with |η|, then f(η + s) >= f(|η| + D) for every |s| <= D. The
    largest ratio of all shifts is then the largest ratio at the shift D.

    Attributes:
        first, last: first and last integer with a weight.
        weights: the weights w_i.
        period: P, the number of weights that the tails repeat.
        ratio: r.
        atom: mass of the point 0.
        total: sum of all masses.
    """

    def __init__(self, first, weights, period, ratio, atom=Fraction(0)):
        """State a law that is not normalised.

        Args:
            first: the integer of the first weight.
            weights: integers >= 0.
            period: P, how many weights the tails repeat.
            ratio: r, Fraction in [0, 1); 0 for no tails.
            atom: mass of the point 0, Fraction >= 0.
        """
        self.first = first
        self.weights = weights
        self.period = period
        self.ratio = ratio
        self.atom = atom
        self.last = first + len(weights) - 1
        end_weights = sum(weights[:period]) + sum(weights[-period:])
        self.total = sum(weights) + ratio / (1 - ratio) * end_weights + atom

    def mass_at(self, eta):
        """Return f(η), not normalised.

        Args:
            eta: an integer.
        """
        distance = max(self.first - eta, eta - self.last, 0)
        blocks = -(-distance // self.period)
        if blocks and not self.ratio:
            return Fraction(0)
        shift = blocks * self.period
        inner_eta = eta + shift if eta < self.first else eta - shift
        return self.ratio**blocks * self.weights[inner_eta - self.first]

    def is_unimodal(self):
        """Decide whether f is even and never rises with |η|.

        The last period, which repeats, must be at η >= 0.
        """
        is_even = self.first == -self.last and self.weights == self.weights[::-1]
        if not is_even or self.period > self.last + 1:
            return False
        right = [*self.weights[self.last :], self.ratio * self.weights[-self.period]]
        return right == sorted(right, reverse=True)

    def laws_at_shift(self, s):
        """Return P = f and Q = f(· + s) as laws.

        Args:
            s: an integer that is not 0.
        """
        low = self.first - abs(s)
        high = self.last + abs(s)
        outcomes = [(self.mass_at(eta), self.mass_at(eta + s)) for eta in range(low, high + 1)]
        if self.ratio:
            unit = 1 - self.ratio
            tails = [*range(low - self.period, low), *range(high + 1, high + 1 + self.period)]
            outcomes += [(self.mass_at(eta) / unit, self.mass_at(eta + s) / unit) for eta in tails]
        if self.atom:
            outcomes += [(self.atom, Fraction(0)), (Fraction(0), self.atom)]
        return tuple(map(make_law, zip_equal(*outcomes)))

    def clamped_law(self, low, high):
        """Return the law of min(high, max(low, η)) on low..high.

        Args:
            low, high: integers, low < high.
        """
        masses = [self.mass_at(eta) for eta in range(low, high + 1)]
        # The mass below is summed down to where the tail begins; the tail itself is added.
        start = min(low, self.first)
        below = sum(self.mass_at(eta) for eta in range(start, low))
        below += self.tail_mass(range(start - self.period, start))
        masses[0] += below
        masses[-1] += self.total - below - sum(masses[1:], masses[0] - below)
        return make_law(masses)

    def tail_mass(self, block):
        """Return the mass of one block and of all blocks beyond it.

        Args:
            block: `period` integers outside the weights.
        """
        if self.ratio:
            return sum(map(self.mass_at, block)) / (1 - self.ratio)
        return Fraction(0)

    def mean_loss(self, loss, tail_coefficients):
        """Return E loss(η), normalised.

        Args:
            loss: a function of the integers that have weights.
            tail_coefficients: coefficients c_k of the loss of tails, Σ c_k |η|^k, k <= 2.
        """
        total = sum(w * loss(self.first + i) for i, w in enumerate(self.weights))
        if self.ratio:
            r = self.ratio
            s = self.period
            sums = (r / (1 - r), r / (1 - r) ** 2, r * (1 + r) / (1 - r) ** 3)  # Σ b^k r^b, b >= 1
            right = [(w, self.last - i) for i, w in enumerate(reversed(self.weights[-s:]))]
            left = [(w, -self.first - i) for i, w in enumerate(self.weights[:s])]
            for w, a in right + left:  # In block b, |η| = a + b s.
                ensure(a > -s, "The tails must lie on either side of 0.")
                moments = (
                    sums[0],
                    a * sums[0] + s * sums[1],
                    a * a * sums[0] + 2 * a * s * sums[1] + s * s * sums[2],
                )
                total += w * sum(c * m for c, m in zip(tail_coefficients, moments))  # noqa: B905
        return total / self.total


def make_law(masses):
    """Return masses as a law: integers without a common factor, and their sum.

    Args:
        masses: rationals >= 0, not normalised.
    """
    masses = [*map(Fraction, masses)]
    common = lcm(x.denominator for x in masses)
    integers = [int(x * common) for x in masses]
    divisor = gcd(integers)
    return tuple(x // divisor for x in integers), sum(integers) // divisor


def compute_line_loss(name, losses, mechanism):
    """Return the exact loss of unclamped noise: E|η|, E η², or the mean of losses in the file.

    Args:
        name: name of the loss.
        losses: one loss for each weight, or None.
        mechanism: noise on the integers or the reals.
    """
    line = mechanism.line
    beta = mechanism.width
    zero = Fraction(0)
    if losses is not None:
        has_losses = (
            name not in {"absolute", "error-rate", *PART_LOSSES}
            and mechanism.kind == "integer-noise"
            and not line.ratio
        )
        ensure(
            has_losses and len(losses) == len(line.weights),
            "There must be one loss for every weight of noise without tails.",
        )
        return line.mean_loss(lambda eta: losses[eta - line.first], ())
    ensure(
        name in ("absolute", "squared"),
        "The loss of such noise is absolute, squared, or has costs in the file.",
    )
    if mechanism.kind == "integer-noise":
        if name == "absolute":
            return line.mean_loss(abs, (zero, 1))
        return line.mean_loss(lambda j: j * j, (zero, zero, 1))
    if name == "absolute":  # |x| has mean |j| β over cell j != 0, and β/4 over cell 0.
        return beta * line.mean_loss(lambda j: abs(j) or Fraction(1, 4), (zero, 1))
    twelfth = Fraction(1, 12)
    return beta**2 * line.mean_loss(lambda j: j * j + twelfth, (twelfth, zero, 1))


# ---------- joint releases


def list_partitions(total, max_part):
    """Return the ways to write a number as a sum of positive integers, as falling tuples.

    Args:
        total: an integer >= 0.
        max_part: no part is larger.
    """
    if total == 0:
        return [()]
    partitions = []
    for part in range(1, min(total, max_part) + 1):
        partitions += [(part, *rest) for rest in list_partitions(total - part, part)]
    return partitions


def count_partitions(max_total):
    """Return how many partitions 0, 1, ..., max_total have together.

    Args:
        max_total: an integer >= 0.
    """
    counts = [1] + [0] * max_total
    for part in range(1, max_total + 1):
        for total in range(part, max_total + 1):
            counts[total] += counts[total - part]
    return sum(counts)


def list_shift_vectors(release, neighbours, rows, span):
    """Return all vectors by which one person moves the true answers, sorted.

    A histogram has a bin for each coordinate. A vector stands for all its orders, so its entries
    fall, and zeros are left out. Adding a person adds K rows or fewer to the bins, removing a
    person subtracts them. Replacing does both, so the bins that gain and the bins that lose get at
    most K rows each.

    rows-anywhere    the rows may share bins: gains and losses are partitions of numbers up to K
    row-per-bin      no two rows share a bin: every part is 1
    pair-of-sums     the sums of x and of D - x over the rows, with x in 0..D on the grid

    Args:
        release: one of the three names.
        neighbours: "add-remove" or "replace".
        rows: K.
        span: D for a pair of sums, else None.
    """
    vectors = set()
    if release == "pair-of-sums":
        if neighbours == "add-remove":
            for j in range(1, rows + 1):
                vectors |= {(a, j * span - a) for a in range(j * span + 1)}
        else:
            # j new rows replace k old ones; the difference t of their sums of x can be any integer
            # from -k D to j D. More new rows with the same j - k only add further t.
            for m in range(rows + 1):
                k = rows - m
                vectors |= {(t, m * span - t) for t in range(-k * span, rows * span + 1)}
        vectors |= {(-a, -b) for a, b in vectors}
        vectors.discard((0, 0))
        return sorted(vectors)
    sides = []
    for total in range(rows + 1):
        sides += list_partitions(total, total if release == "rows-anywhere" else 1)
    losses = [tuple(-part for part in reversed(side)) for side in sides]
    if neighbours == "add-remove":
        vectors = {*sides, *losses}
    else:
        vectors = {gain + loss for gain in sides for loss in losses}
    vectors.discard(())
    return sorted(vectors)


class JointLaw:
    """Independent noise of one law f on every coordinate, compared with itself at shift vectors.

    Outcomes with the same ratio of masses are merged, as a notion uses only ratios and their
    masses. One coordinate at the shift s has an atom for each ratio k/l in lowest terms; its masses
    are g k and g l with an integer g. Atoms are written {(k, l): g}. The outcomes of several
    coordinates are products: (k k', l l') with g g', again in lowest terms.

    Attributes:
        line: f, a `LineLaw`.
        is_geometric: whether f(η) = a^|η|, with one weight. Then the largest ratio of a vector is
            a^-N with its L1 norm N.
        units: the work of the convolutions so far.
    """

    def __init__(self, line):
        """Start without any convolution.

        Args:
            line: f, a `LineLaw`.
        """
        self.line = line
        self.is_geometric = line.first == 0 and len(line.weights) == 1 and line.ratio > 0
        self.is_even = line.first == -line.last and line.weights == line.weights[::-1]
        self.bits = sum(line.weights).bit_length()
        self.units = 0
        self.atoms_by_shift = {}
        self.atoms_by_vector = {(): {(1, 1): 1}}
        self.laws_by_key = {}

    def count(self, products, bits, multiplicity_units=0):
        """Count the work of products of atoms, and refuse beyond the limit.

        Args:
            products: number of products.
            bits: size of the ratio of a product.
            multiplicity_units: work of the multiplicity of a product.
        """
        self.units += products * (20 + (bits // 256) ** 2 + multiplicity_units)
        max_units = MAX_GEOMETRIC_UNITS if self.is_geometric else MAX_CONVOLUTION_UNITS
        if self.units > max_units:
            raise Refused("too large", f"The convolutions take more than {max_units} units.")

    def key_of(self, vector):
        """Return the sorted shifts; vectors with the same result have the same losses.

        Args:
            vector: a shift vector.
        """
        return tuple(sorted(abs(s) if self.is_even else s for s in vector if s))

    def atoms_at(self, shift):
        """Return the atoms of one coordinate.

        Args:
            shift: an integer that is not 0.
        """
        if shift not in self.atoms_by_shift:
            (k, k_sum), (l, l_sum) = self.line.laws_at_shift(shift)
            unit = math.gcd(k_sum, l_sum)
            atoms = Counter()
            for x, y in zip_equal(k, l):
                x *= l_sum // unit
                y *= k_sum // unit
                g = math.gcd(x, y)
                if g:
                    atoms[x // g, y // g] += g
            self.atoms_by_shift[shift] = atoms
        return self.atoms_by_shift[shift]

    def atoms_of(self, vector):
        """Return the atoms of a shift vector. An even law has the same atoms at s and -s.

        Args:
            vector: a shift vector.
        """
        key = self.key_of(vector)
        if key not in self.atoms_by_vector:
            left = self.atoms_of(key[:-1])
            if key[-1] not in self.atoms_by_shift:
                self.count(len(self.line.weights) + 2 * abs(key[-1]), self.bits)
            right = self.atoms_at(key[-1])
            bits = sum(
                max(k.bit_length() + l.bit_length() for k, l in atoms) for atoms in (left, right)
            )
            left_bits, right_bits = (max(atoms.values()).bit_length() for atoms in (left, right))
            multiplicity_units = (left_bits // 256) * (right_bits // 256)
            self.count(len(left) * len(right), bits, multiplicity_units)
            merged = Counter()
            for (k, l), g in left.items():
                for (x, y), h in right.items():
                    common = math.gcd(k * x, l * y)
                    if common:
                        merged[k * x // common, l * y // common] += g * h * common
            self.atoms_by_vector[key] = merged
        return self.atoms_by_vector[key]

    def laws_at(self, vector):
        """Return P and Q of a shift vector as laws.

        Args:
            vector: a shift vector.
        """
        key = self.key_of(vector)
        if key not in self.laws_by_key:
            atoms = self.atoms_of(vector).items()
            self.laws_by_key[key] = tuple(
                reduce_weights(weights)
                for weights in zip_equal(*((g * k, g * l) for (k, l), g in atoms))
            )
        return self.laws_by_key[key]

    def extreme_laws(self, norm):
        """Return the largest ratio of geometric noise beside all other outcomes, as P and Q.

        In one coordinate at the shift N, it is the ratio a^-N of all η >= 0. They have the mass
        1/(1 + a) under P and a^N/(1 + a) under Q.

        Args:
            norm: N, the largest L1 norm of a shift vector.
        """
        a = self.line.ratio
        return make_law((1, a)), make_law((a**norm, 1 + a - a**norm))


def check_joint_on_grid(mechanism, epsilon, delta):
    """Refuse unless every shift vector of a joint release meets dp, on a grid of privacy losses.

    The losses of all coordinates are rounded to a grid and convolved (`LossDistribution`), once
    upwards for all vectors. If the largest δ is too large, the same vector is convolved with losses
    rounded down, which may refute the claim. The basic step is h = 7 L / (10 * 1024), where L is
    the largest |bits of k - bits of l| + 1 over the ratios k/l of one coordinate in lowest terms,
    without 0. With N, the largest L1 norm of a vector, the first step that is tried is
    ε / (N ⌈ε/(N h)⌉), if it is at least h/4. If it decides nothing, h is tried.

    Args:
        mechanism: a joint release, as `read_joint` returns it.
        epsilon: Fraction >= 0.
        delta: Fraction > 0.
    """
    joint = mechanism.joint
    one_over_delta = delta.denominator // delta.numerator
    digits = 30 + len(str(one_over_delta))
    if digits > MAX_DIGITS:
        raise Refused("too large", f"The convolutions would take more than {MAX_DIGITS} digits.")
    unit = 10**digits
    atoms_by_shift = {}
    units = 0
    for shift in {abs(s) if joint.is_even else s for v in mechanism.labels for s in v if s}:
        units += (len(joint.line.weights) + 2 * abs(shift)) * (500 + 10 * digits)
        check_grid_work(units)
        atoms_by_shift[shift] = joint.atoms_at(shift)
    largest = 1
    for atoms in atoms_by_shift.values():
        for k, l in atoms:
            if k and l:
                largest = max(largest, abs(k.bit_length() - l.bit_length()) + 1)
    basic_step = Fraction(7 * largest, 10 * 1024)
    share = epsilon / max(sum(map(abs, vector)) for vector in mechanism.labels)
    step = basic_step
    if 4 * share >= basic_step:
        step = share / math.ceil(share / basic_step)
    first_units = units

    def place(shift, rounds_up):
        """Return the distribution of the loss of one coordinate.

        If `rounds_up`, δ is at most that of the distribution. Otherwise it is at least that.
        """
        atoms = atoms_by_shift[shift].items()
        total = sum(g * k for (k, _), g in atoms)
        if rounds_up:
            pair = [(-(-g * k * unit // total), g * l * unit // total) for (k, l), g in atoms]
        else:
            pair = [(g * k * unit // total, -(-g * l * unit // total)) for (k, l), g in atoms]
        return LossDistribution.from_pair(pair, step, digits, rounds_up)

    def convolve(key, laws, rounds_up):
        """Return the distribution of the loss of a sorted vector, with all laws so far."""
        nonlocal units
        if key not in laws:
            if len(key) == 1:
                laws[key] = place(key[0], rounds_up)
            else:
                left = convolve(key[:-1], laws, rounds_up)
                right = convolve(key[-1:], laws, rounds_up)
                points = len(left.masses) + len(right.masses)
                units += 7 * points * (20 + 3 * digits)
                check_grid_work(units)
                laws[key] = left * right
        return laws[key]

    def find_worst():
        """Return the largest upper bound on δ in units, and its vector, with the present step."""
        laws = {}
        worst = (Fraction(-1), ())
        for key in sorted({joint.key_of(vector) for vector in mechanism.labels}):
            worst = max(worst, (convolve(key, laws, rounds_up=True).delta_at(epsilon), key))
        return worst

    upper_bound, worst_vector = find_worst()
    if upper_bound <= delta * unit:
        return
    units = first_units
    lower_bound = convolve(worst_vector, {}, rounds_up=False).delta_at(epsilon)
    smallest_delta = format_number(Fraction(lower_bound, unit))
    ensure(
        lower_bound <= delta * unit,
        f"The shifts {worst_vector}: delta is at least {smallest_delta}.",
    )
    if step != basic_step:
        step = basic_step
        units = first_units
        upper_bound, _ = find_worst()
        if upper_bound <= delta * unit:
            return
    raise Refused("unknown", "The grid of losses does not decide whether delta is enough.")


def check_grid_work(units):
    """Refuse convolutions on a grid beyond the limit.

    Args:
        units: units of work so far.
    """
    if units > MAX_WORK_UNITS:
        raise Refused("too large", f"Convolutions take more than {MAX_WORK_UNITS} units of work.")


# ---------- many runs


def check_runs(claim, mechanism):
    """Refuse unless T adaptive runs meet dp at (ε, δ) together.

    If no outcome of one run has a ratio above e^(ε/T), they do. For δ = 0 this is also necessary.
    Otherwise δ is bounded from both sides:

    * From above: one pair of laws has hockey sticks that are at least those of all comparisons
      (`compute_ratio_curve`). T runs are no worse than T independent draws from this pair
      (`LossDistribution`). If their δ is small enough, the claim is true.
    * From below: T runs on the same two neighbours (`rank_comparisons`). If their δ is too large,
      the claim is false.

    Args:
        claim: claim, as `read_composed_claim` returns it.
        mechanism: mechanism of one run.
    """
    runs = claim.runs
    epsilon = claim.epsilon
    delta = claim.delta
    epsilon_of_a_run = Power(epsilon / runs)
    if not any(find_violations(p, q, epsilon_of_a_run) for _, p, q in comparisons(mechanism)):
        return
    ensure(delta, f"{runs} runs: the largest losses add up to more than epsilon.")
    digits = 30 + len(str(runs)) + int(epsilon / 2)
    digits += len(str(int(1 / delta))) if delta * 10**MAX_DIGITS > 1 else MAX_DIGITS
    if digits > MAX_DIGITS:
        raise Refused("too large", f"{runs} runs would take more than {MAX_DIGITS} digits.")
    unit = 10**digits
    pair = compute_ratio_curve(mechanism, unit)
    if count_composition_work(pair, claim.step, runs, digits) > MAX_WORK_UNITS:
        sentence = f"{runs} runs would take more than {MAX_WORK_UNITS} units of work."
        raise Refused("too large", sentence)
    upper = LossDistribution.from_pair(pair, claim.step, digits, rounds_up=True).compose(runs)
    if upper.delta_at(epsilon) <= delta * unit:
        return
    fine_step = claim.step / 8
    units = 0
    for p, q in rank_comparisons(mechanism, runs, epsilon):
        pair = [(x * unit // p[1], -(-y * unit // q[1])) for x, y in zip_equal(p[0], q[0]) if x]
        units += count_composition_work(pair, fine_step, runs, digits)
        if units <= MAX_WORK_UNITS:
            losses = LossDistribution.from_pair(pair, fine_step, digits, rounds_up=False)
            lower_bound = losses.compose(runs).delta_at(epsilon)
            ensure(
                lower_bound <= delta * unit,
                f"{runs} runs: delta is at least {format_number(Fraction(lower_bound, unit))}.",
            )
    raise Refused(
        "unknown",
        f"{runs} runs: this grid of losses does not decide whether they are within delta.",
    )


def compute_ratio_curve(mechanism, unit):
    """Return a pair of laws that dominates all comparisons, as [(mass of P, mass of Q)].

    For each comparison, let A be the outcomes whose ratio is above a threshold. The points (Q(A),
    P(A)), with P(A) rounded up and Q(A) down, lie under a smallest concave curve. The pair has this
    curve: each of its straight parts is one outcome. A ratio beyond the unit counts as infinite:
    its Q is 0.

    Args:
        mechanism: mechanism of one run.
        unit: masses are integers over this.
    """
    curve = [(0, 0), (unit, unit)]
    done = set()
    for _, (k, k_sum), (l, l_sum) in comparisons(mechanism):
        if (k, l) in done:
            continue
        done.add((k, l))
        masses = [mass for mass in zip_equal(k, l) if any(mass)]
        masses.sort(key=cmp_to_key(lambda a, b: b[0] * a[1] - a[0] * b[1]))  # Largest ratio first.
        points = []
        p_mass = 0
        q_mass = 0
        for x, y in masses:
            p_mass += x
            q_mass += y
            points.append((q_mass * unit // l_sum, -(-p_mass * unit // k_sum)))
        hull = []
        for x, y in sorted(curve + points):
            while hull and (
                hull[-1][0] == x or (len(hull) > 1 and not is_above_chord(*hull[-2:], (x, y)))
            ):
                hull.pop()
            if not hull or y > hull[-1][1]:
                hull.append((x, y))
        curve = hull
    return [(curve[0][1], 0)] + [(b - a, y - x) for (x, a), (y, b) in pairwise(curve)]


def is_above_chord(a, b, c):
    """Decide whether b lies above the line from a to c.

    Args:
        a, b, c: points (x, y) with increasing x.
    """
    return (b[1] - a[1]) * (c[0] - b[0]) > (c[1] - b[1]) * (b[0] - a[0])


def count_composition_work(pair, step, runs, digits):
    """Return the units of work of a composition, as the module's docstring counts them.

    Args:
        pair: [(mass of P, mass of Q)] in integers.
        step: step of the grid of losses.
        runs: T.
        digits: number of digits of the masses.
    """
    losses = [math.log(x) - math.log(y) for x, y in pair if x and y]
    points = 1
    if losses:
        points = math.ceil(Fraction(max(losses) - min(losses)) / step) + 1
    grid_size = points * min(runs, 4 * math.isqrt(runs * digits) + 4)
    return len(pair) * (500 + 10 * digits) + 7 * grid_size * (20 + 3 * digits)


def rank_comparisons(mechanism, runs, epsilon):
    """Return the comparisons on which T runs are most likely to exceed ε, worst first.

    This is judged in floats, and proves nothing.

    The score is the mass of outcomes that Q does not have, plus the least of (Σ P (P/Q)^λ)^T e^(-λ
    ε) over λ.

    Args:
        mechanism: mechanism of one run.
        runs: T.
        epsilon: ε of all runs together.
    """
    scores = {}
    for _, p, q in comparisons(mechanism):
        log_totals = math.log(p[1]), math.log(q[1])
        masses = [
            (x / p[1], math.log(x) - math.log(y) - log_totals[0] + log_totals[1])
            for x, y in zip_equal(p[0], q[0])
            if x and y
        ]
        infinite_mass = sum(x for x, y in zip_equal(p[0], q[0]) if not y) / p[1]
        max_loss = max((abs(loss) for _, loss in masses), default=0) or 1
        log_bounds = []
        for k in range(-4, 10):
            order = 2.0**k / max_loss
            moment = sum(mass * math.exp(min(order * loss, 600)) for mass, loss in masses)
            if moment:
                log_bounds.append(runs * math.log(moment) - order * float(epsilon))
            else:
                log_bounds.append(-math.inf)
        scores[p, q] = runs * infinite_mass + math.exp(min(0.0, *log_bounds))
    return sorted(scores, key=scores.get, reverse=True)[:MAX_REFUTATIONS]


class LossDistribution:
    """Masses of P by the privacy loss ln P/Q on a grid.

    They are integers in units of 10^-digits, all rounded up or all rounded down.

    An atom is an outcome with the masses p under P and q under Q. Its loss may lie between two
    points of the grid. If masses are rounded up, it is split into two atoms at these points, with
    the same sums of p and of q. This only helps an attacker, because merging the two atoms gives
    the first one back. If masses are rounded down, the atom moves to the lower point. A tail of
    less than 10^(8 - digits) moves up to the nearest point that stays, or to infinity, if masses
    are rounded up. Otherwise it is dropped.

    Attributes:
        first: masses[i] has the loss (first + i) step.
        masses: integers in units of 10^-digits.
        infinite: the mass without a finite loss, in the same unit.
        step: step of the grid of losses.
        digits: number of digits after the point.
        rounds_up: whether masses are rounded up.
    """

    def __init__(self, first, masses, infinite, step, digits, rounds_up):
        """Store a distribution.

        Args:
            first: the smallest loss is first * step.
            masses: integers of 10^-digits.
            infinite: the mass of an infinite loss.
            step: step of the grid, a Fraction.
            digits: number of digits after the point.
            rounds_up: whether all roundings are upwards.
        """
        self.first = first
        self.masses = masses
        self.infinite = infinite
        self.step = step
        self.digits = digits
        self.rounds_up = rounds_up

    @classmethod
    def from_pair(cls, pair, step, digits, rounds_up):
        """Put the losses of a pair of laws on a grid.

        Args:
            pair: [(mass of P, mass of Q)] in integers of 10^-digits; a Q of 0 has an infinite loss.
            step: step of the grid, a Fraction.
            digits: number of digits after the point.
            rounds_up: whether all roundings are upwards.
        """
        arithmetic = IntervalArithmetic(digits + 10)
        atoms = Counter()
        infinite = 0
        for p, q in pair:
            if not q:
                infinite += p
            elif p:
                low, high = (0, 0)
                if p != q:
                    low, high = arithmetic.apply("ln", arithmetic.from_rational(Fraction(p, q)))
                if rounds_up:
                    cls._split_upwards(atoms, p, q, Fraction(high), step, arithmetic)
                else:
                    atoms[math.floor(Fraction(low) / step)] += p
        first = min(atoms, default=0)
        masses = [atoms[i] for i in range(first, max(atoms, default=0) + 1)]
        return cls(first, masses, infinite, step, digits, rounds_up)

    @staticmethod
    def _split_upwards(atoms, p, q, loss, step, arithmetic):
        """Split an atom into two points of the grid around its loss, with masses rounded up.

        Args:
            atoms: number of a point of the grid -> mass of P, changed in place.
            p, q: masses of the atom.
            loss: an upper bound on ln(p/q).
            step: step of the grid.
            arithmetic: an `IntervalArithmetic`.
        """

        def decay(index):
            """Return the enclosure of e^(-index step) between two rationals."""
            if not index:
                return Fraction(1), Fraction(1)
            return tuple(
                map(Fraction, arithmetic.apply("exp", arithmetic.from_rational(-index * step)))
            )

        upper = math.ceil(loss / step)
        left = decay(upper - 1)
        right = decay(upper)
        if left[0] <= right[1]:  # The digits do not tell the two points apart.
            atoms[upper] += p
            return
        # The share of p at the lower point lies between these two.
        max_share = (q - p * right[0]) / (left[0] - right[1])
        min_share = (q - p * right[1]) / (left[1] - right[0])
        atoms[upper - 1] += math.ceil(min(p, max(0, max_share)))
        atoms[upper] += math.ceil(p - min(p, max(0, min_share)))

    def __mul__(self, other):
        """Compose two runs: convolve the masses of their finite losses.

        The convolution is one product of two decimals. A decimal holds all masses of a run, each in
        `width` digits, so that the sums of products do not overlap. For example, the masses (2, 3)
        and (4, 5) give 0203 * 0405 = 00082215, with the masses 8, 22, 15.
        """
        digits = self.digits
        width = 2 * digits + 8
        length = len(self.masses) + len(other.masses)
        exact_context = Context(
            prec=length * width, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[InvalidOperation, Inexact]
        )
        factors = [
            Decimal("".join(f"{x:0{width}d}" for x in reversed(law.masses)))
            for law in (self, other)
        ]
        product_digits = f"{exact_context.multiply(*factors):f}".zfill((length - 1) * width)
        masses = [
            int(product_digits[start : start + width - digits]) + self.rounds_up
            for start in range(0, len(product_digits), width)
        ]
        self_total = sum(self.masses)
        other_total = sum(other.masses)
        if max(self_total, other_total) > 2 * 10**digits:
            raise Refused("unknown", "The step is too small for the digits of the losses.")
        infinite = self.infinite * (other.infinite + other_total) + self_total * other.infinite
        unit = 10**digits
        infinite = -(-infinite // unit) if self.rounds_up else infinite // unit

        # Cut both tails, as the docstring of the class describes.
        masses = masses[::-1]
        low = 0
        low_tail = 0
        high = len(masses)
        high_tail = 0
        while low < high and low_tail + masses[low] <= 10**8:
            low_tail += masses[low]
            low += 1
        while low < high and high_tail + masses[high - 1] <= 10**8:
            high_tail += masses[high - 1]
            high -= 1
        masses = masses[low:high] or [0]
        if self.rounds_up:
            masses[0] += low_tail
            infinite += high_tail
        first = self.first + other.first + low
        return LossDistribution(first, masses, infinite, self.step, digits, self.rounds_up)

    def compose(self, runs):
        """Return the distribution of several runs.

        Args:
            runs: an integer >= 1.
        """
        if runs == 1:
            return self
        half = self.compose(runs // 2)
        doubled = half * half
        if runs % 2:
            return doubled * self
        return doubled

    def delta_at(self, epsilon):
        """Return δ at ε: the infinite mass + Σ mass (1 - e^(ε - loss)), in the unit of the masses.

        Args:
            epsilon: Fraction >= 0.
        """
        start = max(0, int(epsilon // self.step) + 1 - self.first)  # The first loss above ε.
        tail = self.masses[start:]
        arithmetic = IntervalArithmetic(self.digits + 20)
        scale = 10 ** (self.digits + 10)

        def power(exponent):
            """Return e^exponent for exponent <= 0, over the scale.

            It is subtracted from δ, so it is rounded down if masses are rounded up.
            """
            low, high = arithmetic.apply("exp", arithmetic.from_rational(exponent))
            if self.rounds_up:
                return math.floor(Fraction(low) * scale)
            return math.ceil(Fraction(high) * scale)

        # Σ mass e^(ε - loss) by Horner's rule, from the largest loss down.
        factor = power(-self.step)
        discounted = 0
        for mass in reversed(tail):
            discounted = discounted * factor
            discounted = discounted // scale if self.rounds_up else -(-discounted // scale)
            discounted += mass * 10**10
        discounted *= power(epsilon - self.step * (self.first + start))
        return self.infinite + sum(tail) - Fraction(discounted, scale * 10**10)


# ---------- loss and bias


def check_objective(objective, mechanism):
    """Refuse unless the stated value is the exact loss, rounded up by at most 1e-15 of it.

    Args:
        objective: objective, as `read_objective` returns it.
        mechanism: the mechanism whose loss is stated.
    """
    name = objective.name
    value = objective.value
    losses = objective.losses
    ensure(mechanism.kind != "joint", "A joint release states no loss.")
    if objective.rows is not None:
        is_channel = mechanism.kind == "channel" or mechanism.clamp
        ensure(is_channel, "Only a channel has an expected loss.")
        exact = compute_expected_loss(objective, mechanism.laws)
    elif mechanism.line is not None:
        ensure(not mechanism.clamp, "The loss of clamped noise is an expected loss.")
        exact = compute_line_loss(name, losses, mechanism)
    else:
        law = mechanism.laws[0]
        ensure(
            mechanism.kind == "noise" and name != "worst-squared",
            "This is no objective of such a mechanism.",
        )
        ensure(
            (losses is None) == (name == "error-rate"),
            "Losses belong to every objective but error-rate.",
        )
        if losses is None:
            losses = (0,) + (1,) * (len(law[0]) - 1)
        ensure(len(losses) == len(law[0]), "There must be one loss for every noise value.")
        if name in PART_LOSSES:
            check_part_losses(name, losses, mechanism.sizes)
        exact = compute_mean(law, losses)
    slack = max(abs(exact), Fraction(1, 10**300)) / 10**15
    ensure(
        exact <= value <= exact + slack,
        f"The {name} is {format_number(exact)}, not {format_number(value)}.",
        "false",
    )


# The loss of each factor of the group, by the name of the loss; the losses of all factors are
# added.
PART_LOSSES = {
    # E (answer - truth)² over uniform truths in 0..size-1.
    "squared": lambda part, size: part * (size - part),
    "eta-squared": lambda part, size: part**2,
    "circular-squared": lambda part, size: min(part, size - part) ** 2,
}


def check_part_losses(name, losses, sizes):
    """Refuse unless losses are those of a name in PART_LOSSES.

    Args:
        name: name of the loss.
        losses: one number for each noise value, in row-major order.
        sizes: orders of the factors of the group.
    """
    parts = [[PART_LOSSES[name](part, size) for part in range(size)] for size in sizes]
    agrees = all(loss == sum(point) for loss, point in zip_equal(losses, product(*parts)))
    ensure(agrees, f"The losses are not those of {name}.")


def compute_mean(law, values):
    """Return Σ P(i) values_i.

    Args:
        law: P.
        values: one rational for each outcome.
    """
    return sum((x * value for x, value in zip_equal(law[0], values)), Fraction(0)) / law[1]


def compute_expected_loss(objective, laws):
    """Return Σ_y prior(y) Σ_o Pr[o | row of y] loss(o - y), over Σ_y prior(y).

    Args:
        objective: labels, prior, outputs and rows.
        laws: the rows of the channel.
    """
    labels = objective.labels
    prior = objective.prior
    outputs = objective.outputs
    rows = objective.rows
    ensure(len(labels) == len(prior) == len(rows), "Labels, prior and rows differ in length.")
    ensure(min(prior, default=0) >= 0 and any(prior), "The prior must be weights >= 0, not all 0.")
    ensure(len(outputs) == len(laws[0][0]), "There must be one value for every output.")
    ensure(all(0 <= row < len(laws) for row in rows), "A label has no such row.")
    loss, scale, unit = make_loss(objective.name, (*labels, *outputs))
    outputs = [int(o * scale) for o in outputs]
    total = Fraction(0)
    for y, weight, row in zip_equal((int(y * scale) for y in labels), prior, rows):
        k, k_sum = laws[row]
        row_loss = sum(x * loss(o - y) for x, o in zip_equal(k, outputs) if x)
        total += weight * Fraction(row_loss, k_sum)
    return total / sum(prior) / unit


def make_loss(name, values):
    """Return (f, scale, unit) with loss(r) = f(r scale)/unit for r = output - label.

    The scale makes all labels and outputs integers, so f is computed in integers. For example, the
    squared loss of half-integers is (r * r, 2, 4).

    Args:
        name: name of the loss, such as "squared", "pinball:0.9" or "huber:2".
        values: all labels and outputs.
    """
    kind, colon, text = name.partition(":")
    has_number = re.fullmatch(r"[0-9]{1,40}(\.[0-9]{1,40})?(e-?[0-9]{1,3})?", text)
    h = Fraction(text) if has_number else Fraction(1)
    scale = lcm([h.denominator, *(x.denominator for x in values)])
    u = h.numerator
    v = h.denominator
    bend = int(h * scale)

    def huber(r):
        """Compute the Huber loss of the scaled difference r, times 2 scale²."""
        if abs(r) <= bend:
            return r * r
        return bend * (2 * abs(r) - bend)

    def pinball(r):
        """Compute the pinball loss of the scaled difference r, times v scale."""
        if r < 0:
            return -u * r
        return (v - u) * r

    # Whether the name is complete, f, scale and unit.
    losses = {
        "squared": (not colon, lambda r: r * r, scale, scale**2),
        "absolute": (not colon, abs, scale, scale),
        "error-rate": (not colon, lambda r: int(r != 0), scale, 1),
        "pinball": (has_number and 0 < h < 1, pinball, scale, v * scale),
        "huber": (has_number and h > 0, huber, scale, 2 * scale**2),
    }
    ensure(kind in losses and losses[kind][0], f"There is no loss {name!r}.")
    return losses[kind][1:]


def check_bias(bias, mechanism):
    """Refuse unless the largest |mean of the output - input| is as stated.

    The difference is affine in a real input.

    Args:
        bias: bias, as `read_bias` returns it.
        mechanism: a channel or a quantizer.
    """
    laws = mechanism.laws
    ensure(mechanism.kind in ("channel", "quantizer"), "Noise has no bias.")
    agrees = len(bias.outputs) == len(laws[0][0]) and len(bias.inputs) == len(laws)
    verdict = "unreadable"
    if mechanism.kind == "quantizer":  # A quantizer states its own inputs and outputs.
        ends = tuple(x for piece in pairwise(mechanism.knots) for x in piece)
        agrees = (bias.outputs, bias.inputs) == (mechanism.outputs, ends)
        verdict = "false"
    ensure(agrees, "The bias is about other inputs or outputs.", verdict)
    worst = max(abs(compute_mean(law, bias.outputs) - x) for law, x in zip_equal(laws, bias.inputs))
    ensure(
        worst == bias.worst,
        f"The bias is {format_number(worst)}, not {format_number(bias.worst)}.",
        "false",
    )


# ---------- neighbours and the count


def negate_shift(shift, sizes):
    """Return -shift in the group.

    Args:
        shift: an element of the group.
        sizes: orders of the factors of the group.
    """
    return tuple(-part % size for part, size in zip_equal(shift, sizes))


def shift_values(values, sizes, shift):
    """Return [f(η + shift)] in row-major order: f is rotated along every axis.

    Args:
        values: f in row-major order.
        sizes: orders of the factors of the group.
        shift: an element of the group.
    """
    stride = len(values)
    for size, part in zip_equal(sizes, shift):
        block = stride
        stride = stride // size
        cut = part * stride
        rotated = []
        for start in range(0, len(values), block):
            rotated += values[start + cut : start + block]
            rotated += values[start : start + cut]
        values = rotated
    return values


def check_privacy(mechanism, notion, budgets, other_parameters):
    """Refuse unless every comparison of the mechanism meets the notion.

    Args:
        mechanism: mechanism, as a reader of READERS returns it.
        notion: a key of PARAMETERS.
        budgets: {label: first parameter}, or {None: it} for all comparisons.
        other_parameters: name -> value of the other parameters.
    """
    name = PARAMETERS[notion][0]
    requirements = {
        value: Requirement(notion, {name: value, **other_parameters}) for value in budgets.values()
    }
    if is_decided_by_columns(mechanism, notion, budgets, other_parameters):
        check_columns(mechanism.laws, requirements[budgets[None]].power)
        return
    if mechanism.kind == "quantizer":
        check_real_inputs(mechanism, requirements[budgets[None]])
        return
    if mechanism.kind == "joint" and mechanism.needs_grid:
        check_joint_on_grid(mechanism, budgets[None], other_parameters["delta"])
        return
    labels = None
    if is_decided_by_largest_shift(mechanism, notion, budgets, other_parameters):
        labels = [() if mechanism.kind == "joint" else (mechanism.reach,)]
    for label, p, q in comparisons(mechanism, labels):
        requirement = requirements[budgets[None] if None in budgets else budgets[label]]
        check_pair(p, q, requirement, f"Neighbours {label}")


def comparisons(mechanism, labels=None):
    """Yield (label, P, Q) of every comparison.

    For a quantizer, all ordered pairs of end laws are yielded, with the label None. They decide all
    hockey sticks.

    Args:
        mechanism: mechanism, as a reader of READERS returns it.
        labels: labels of the comparisons. Default: all.
    """
    if mechanism.kind == "quantizer":
        for p, q in product(dict.fromkeys(mechanism.laws), repeat=2):
            yield None, p, q
    for label in labels or mechanism.labels:
        if mechanism.kind == "joint":
            p, q = mechanism.joint.laws_at(label) if label else mechanism.extreme_laws
        elif mechanism.kind == "noise":
            p = mechanism.laws[0]
            q = tuple(shift_values(p[0], mechanism.sizes, label)), p[1]
        elif mechanism.line is not None and not mechanism.clamp:
            p, q = mechanism.line.laws_at_shift(*label)
        else:
            p, q = (mechanism.laws[row] for row in label)
        yield label, p, q


def is_decided_by_columns(mechanism, notion, budgets, other_parameters):
    """Decide whether `check_columns` decides the claim.

    It does for pure ε, or δ = 0, if every two rows (or end laws) are neighbours. Arguments: see
    `check_privacy`.
    """
    row_count = len(mechanism.laws)
    has_all_pairs = mechanism.kind == "quantizer" or (
        mechanism.kind == "channel" and len(mechanism.labels) == row_count**2 - row_count
    )
    return has_all_pairs and is_ratio_bound(notion, budgets, other_parameters)


def is_decided_by_largest_shift(mechanism, notion, budgets, other_parameters):
    """Decide whether the comparison at the largest shift decides the claim.

    It does for pure ε, or δ = 0, of even noise that never rises with its size (`LineLaw`), and of
    geometric noise of a joint release. Arguments: see `check_privacy`.
    """
    if mechanism.kind == "joint":
        return mechanism.joint.is_geometric and is_ratio_bound(notion, budgets, other_parameters)
    is_noise = mechanism.line is not None and not mechanism.clamp
    return (
        is_noise
        and is_ratio_bound(notion, budgets, other_parameters)
        and mechanism.line.is_unimodal()
    )


def is_ratio_bound(notion, budgets, other_parameters):
    """Decide whether every outcome must be at most e^epsilon times its mass in the other law.

    One epsilon must apply to all comparisons.

    Arguments: see `check_privacy`.
    """
    has_no_delta = notion == "pure" or (notion in ("dp", "pdp") and not other_parameters["delta"])
    return has_no_delta and None in budgets


def check_columns(laws, power):
    """Refuse unless no output is more than E times as likely in one row as in another.

    Args:
        laws: the rows.
        power: E, a `Power`.
    """
    for output, column in enumerate(zip_equal(*(k for k, _ in laws))):
        largest = (column[0], laws[0][1])
        smallest = (column[0], laws[0][1])
        for x, (_, total) in zip_equal(column, laws):
            if x * largest[1] > largest[0] * total:
                largest = (x, total)
            if x * smallest[1] < smallest[0] * total:
                smallest = (x, total)
        fits = power.sign_of_sum(largest[0] * smallest[1], -smallest[0] * largest[1]) <= 0
        ensure(fits, f"Output {output} exceeds e^epsilon times its mass in another row.")


def count_bits(x):
    """Return the bits of the numerator and the denominator.

    Args:
        x: Fraction or int.
    """
    return x.numerator.bit_length() + x.denominator.bit_length()


def count_work(mechanism, notion, budgets, other_parameters, objective, bias, composed=None):
    """Return the units of work of a certificate, as the module's docstring counts them.

    The letters c, n, t, b, w are C, n, T, b, w there.

    Args:
        mechanism, notion, budgets, other_parameters: see `check_privacy`.
        objective: objective, as `read_objective` returns it.
        bias: bias, as `read_bias` returns it.
        composed: claim of many runs, as `read_composed_claim` returns it. None without one.
    """
    laws = mechanism.laws
    points = budgets.get(None) if notion in ("curve", "tradeoff") else None
    claim_numbers = [number for name, number in other_parameters.items() if name != "delta"]
    if points is None:
        claim_numbers += budgets.values()
    else:
        for point in points:
            claim_numbers += point
    other_numbers = []
    if mechanism.kind == "quantizer":
        other_numbers += [*mechanism.knots, *mechanism.outputs]
    labels = ()
    if objective is not None:
        labels = objective.labels
        other_numbers += [objective.value, *(objective.losses or ()), *labels]
        other_numbers += [*objective.prior, *objective.outputs]
    if bias is not None:
        other_numbers += [*bias.outputs, *bias.inputs, bias.worst]
    if mechanism.line is None and mechanism.kind != "joint":
        c = len(mechanism.labels)
        if mechanism.kind == "quantizer":
            c = len({*laws}) ** 2
        n = len(laws[0][0])
        law_count = len(laws)
        b = max(total.bit_length() for _, total in laws)
    else:
        c, n, law_count, b = mechanism.size
    b += count_bits(other_parameters.get("delta", Fraction(0))) + max(
        map(count_bits, claim_numbers)
    )
    twos = [(x.denominator & -x.denominator).bit_length() - 1 for x in other_numbers]
    odd_parts = {x.denominator >> two for x, two in zip_equal(other_numbers, twos)}
    w = b + max(twos, default=0) + sum(part.bit_length() for part in odd_parts)
    w += max((x.numerator.bit_length() for x in other_numbers), default=0)
    composed_units = 0
    if composed is not None:
        composed_units = c * n * (300 + (b // 64) ** 2)
    is_metric_quantizer = mechanism.kind == "quantizer" and notion == "metric"
    if is_metric_quantizer or is_decided_by_columns(mechanism, notion, budgets, other_parameters):
        c = min(c, n)
    if is_decided_by_largest_shift(mechanism, notion, budgets, other_parameters):
        c = 1
        if mechanism.kind == "joint":
            n = 2
    t = n * (law_count + len(labels))
    outcome_units = 1
    if points is not None:
        outcome_units = len(points) * (16 if notion == "tradeoff" else 1)
    outcome_units = outcome_units * (4 + (b // 256) ** 2) + SERIES_UNITS.get(notion, 0)
    units = c * n * outcome_units + 1000 * c + (c + 8) * (b // 64) ** 2
    units += t * (4 + (w // 256) ** 2) + (w // 64) ** 2
    if mechanism.kind == "quantizer" and notion == "pdp":
        units += (len(laws) // 2) ** 2 * n**4 * (100 + 2 * (b // 100) ** 2)
    return units + composed_units


# ---------- reading a file
# A reader takes a JSON value and a name for messages, and returns the value.


def make_type_reader(json_type):
    """Return the reader of values of one JSON type. True and false are not integers.

    Args:
        json_type: a type such as str or int.
    """

    def read_typed(data, name):
        """Return a value of the type, and refuse others."""
        given_type = type(data).__name__
        ensure(type(data) is json_type, f"{name} must be of another type than {given_type}.")
        return data

    return read_typed


def make_tuple_reader(reader):
    """Return the reader of lists, as tuples.

    Args:
        reader: the reader of the entries.
    """

    def read_tuple(data, name):
        """Return the entries of a list."""
        entries = make_type_reader(list)(data, name)
        return tuple(reader(x, f"An entry of {name}") for x in entries)

    return read_tuple


def read_object(data, subject, **readers):
    """Read an object that has exactly some entries.

    Args:
        data: a JSON value.
        subject: the object, for messages.
        readers: name of each entry -> its reader.
    """
    ensure(
        isinstance(data, dict) and data.keys() == readers.keys(),
        f"{subject} must have the entries {', '.join(readers)}.",
    )
    return SimpleNamespace(
        **{entry: reader(data[entry], entry) for entry, reader in readers.items()}
    )


def read_hex_integer(data, name):
    """Read an integer >= 0 in hexadecimal, "0x1f".

    Args:
        data: a JSON value.
        name: name of the value in messages.
    """
    is_hexadecimal = (
        isinstance(data, str)
        and len(data) <= 65538
        and re.fullmatch("0x(0|[1-9a-fA-F][0-9a-fA-F]*)", data)
    )
    ensure(is_hexadecimal, f"{name} must be a hexadecimal integer.")
    return int(data, 16)


def read_rational(data, name, max_characters=5000):
    """Read an exact number: "0.1", "1e-9", "-1/3", "0x1f/0x20".

    Args:
        data: a JSON value.
        name: name of the value in messages.
        max_characters: largest length of a number that is not hexadecimal.
    """
    top, *bottom = read_text(data, name).split("/")
    if len(bottom) == 1 and data.lstrip("-").startswith("0x"):
        x = read_hex_integer(top[top.startswith("-") :], name)
        y = read_hex_integer(bottom[0], name)
        if data[0] == "-":
            x = -x
    else:
        is_plain = (
            len(bottom) <= 1
            and len(data) <= max_characters
            and data.isascii()
            and data == data.strip()
        )
        ensure(is_plain, f"{name} must be an exact number.")
        x = parse_decimal(top, name)
        y = 1
        if bottom:
            y = parse_decimal(bottom[0], name)
    ensure(y != 0, f"{name} divides by zero.")
    return Fraction(x) / y


def parse_decimal(text, name):
    """Parse a decimal of at most 5000 digits before or after the point.

    Args:
        text: the decimal.
        name: name of the value in messages.
    """
    try:
        value = Decimal("nan" if "_" in text else text.strip())
    except InvalidOperation:
        value = Decimal("nan")
    ensure(
        value.is_finite() and (value == 0 or abs(value.adjusted()) <= 5000),
        f"{name} must be an exact number.",
    )
    if value:
        return Fraction(value)
    return Fraction(0)


def read_integer_law(data, name):
    """Read a law: (integers, their sum), without a common factor.

    Args:
        data: a JSON value.
        name: name of the value in messages.
    """
    law = read_object(
        data, name, total=read_hex_integer, weights=make_tuple_reader(read_hex_integer)
    )
    ensure(law.total == sum(law.weights) > 0, f"{name}: the weights do not add up to the total.")
    ensure(gcd(law.weights) == 1, f"{name}: the weights have a common factor.")
    return law.weights, law.total


def read_anything(data, name):
    """Return a value as it is, to be read later.

    Args:
        data: a JSON value.
        name: ignored.
    """
    return data


read_text = make_type_reader(str)
read_integer = make_type_reader(int)
read_bool = make_type_reader(bool)
read_integers = make_tuple_reader(read_integer)
read_rationals = make_tuple_reader(read_rational)


def read_noise(data):
    """Read noise on a group: the sizes, one law, and the differences that are compared as labels.

    Args:
        data: a JSON value.
    """
    noise = read_object(
        data,
        "The noise",
        kind=read_text,
        sizes=read_integers,
        shifts=make_tuple_reader(read_integers),
        directed=read_bool,
        total=read_anything,
        weights=read_anything,
    )
    noise.laws = [read_integer_law({"total": noise.total, "weights": noise.weights}, "The noise")]
    sizes = noise.sizes
    ensure(
        len(sizes) <= 32 and all(0 < size < 1 << 40 for size in sizes),
        "There may be 32 positive sizes.",
    )
    ensure(math.prod(sizes) == len(noise.weights) > 1, "The weights do not fill the group.")
    shifts = set()
    for shift in noise.shifts:
        is_inside = len(shift) == len(sizes) and all(
            abs(part) < size for part, size in zip_equal(shift, sizes)
        )
        ensure(is_inside and any(shift), "A shift must lie in the group and not be 0.")
        shifts.add(tuple(part % size for part, size in zip_equal(shift, sizes)))
    ensure(1 <= len(shifts) <= 1_000_000, "There must be 1 to 1000000 shifts.")
    if not noise.directed:
        shifts |= {negate_shift(shift, sizes) for shift in shifts}
    noise.labels = sorted(shifts)
    return noise


def read_weight_column(column, row_count):
    """Read a column of weights from its runs.

    Args:
        column: run, weight, run, weight, ...: how many rows have the weight that follows.
        row_count: number of rows of the channel.
    """
    weights = []
    for run, weight in zip(column[::2], column[1::2]):  # noqa: B905
        ensure(
            type(run) is int and 0 < run <= row_count - len(weights),
            "A run must be of rows that are left.",
        )
        weights += [read_hex_integer(weight, "A weight")] * run
    ensure(
        len(weights) == row_count and len(column) % 2 == 0,
        "A column must be runs and weights for every row.",
    )
    return weights


def reduce_weights(weights):
    """Return a law: integers without a common factor, and their sum.

    Args:
        weights: integers >= 0.
    """
    factor = gcd(weights)
    ensure(factor, "Every row must be a law.")
    return tuple(x // factor for x in weights), sum(weights) // factor


def read_channel(data, _="The channel"):
    """Read a channel: the rows as laws, and the ordered pairs that are compared as labels.

    Args:
        data: a JSON value. A large channel is given by columns.
    """
    if isinstance(data, dict) and "columns" in data:
        channel = read_object(
            data,
            "The channel",
            kind=read_text,
            rows=read_integer,
            columns=make_tuple_reader(make_tuple_reader(read_anything)),
            pairs=read_text,
        )
        ensure(
            channel.pairs == "all" and channel.rows > 1,
            "Columns are those of two rows or more, all neighbours.",
        )
        weight_count = channel.rows * len(channel.columns)
        ensure(
            0 < weight_count <= MAX_COLUMN_WEIGHTS, f"There may be {MAX_COLUMN_WEIGHTS} weights."
        )
        columns = [read_weight_column(column, channel.rows) for column in channel.columns]
        channel.laws = [*map(reduce_weights, zip_equal(*columns))]
        channel.labels = [*permutations(range(channel.rows), 2)]
        return channel
    channel = read_object(
        data,
        "The channel",
        kind=read_text,
        rows=make_tuple_reader(read_integer_law),
        pairs=make_tuple_reader(read_integers),
    )
    channel.laws = channel.rows
    channel.labels = sorted(set(channel.pairs))
    ensure(len({len(k) for k, _ in channel.laws}) == 1, "The rows must have one length.")
    for pair in channel.labels:
        is_pair = (
            len(pair) == 2
            and pair[0] != pair[1]
            and all(0 <= row < len(channel.laws) for row in pair)
        )
        ensure(is_pair, "A pair must be two different rows.")
    ensure(channel.labels, "There must be a pair of neighbouring rows.")
    return channel


def read_range(data):
    """Read the channel of a range.

    Refuse it unless it pairs all rows that neighbouring real answers may use.

    Let x < x' be neighbouring answers in the rows a <= b. If rows are cells, end_a <= x < end_(a+1)
    and x' >= end_b, so rows a and b are neighbours if end_b - end_(a+1) < sensitivity. If `at_ends`
    is true, an answer is rounded at random to one of the two ends around it, with the answer as the
    mean and the same draw for all answers. Then rows a and b are neighbours also if
    end_(b-1) - end_a < sensitivity.

    Args:
        data: a JSON value.
    """
    law = read_object(
        data,
        "The range",
        kind=read_text,
        channel=read_channel,
        ends=read_rationals,
        sensitivity=read_rational,
        at_ends=read_bool,
        outputs=read_rationals,
    )
    channel = law.channel
    ends = law.ends
    reach = law.sensitivity
    ensure(len(ends) > 1 and all(a < b for a, b in pairwise(ends)), "The ends must increase.")
    ensure(reach > 0, "The sensitivity must be positive.")
    row_count = len(channel.laws)
    ensure(
        row_count == len(ends) - (not law.at_ends),
        "There must be a row for each cell, or each end.",
    )
    ensure(len(channel.laws[0][0]) == len(law.outputs), "Every law must be one on the outputs.")
    pairs = set(channel.labels)
    if len(pairs) < row_count**2 - row_count:
        for a, b in combinations(range(row_count), 2):
            are_neighbours = ends[b] - ends[a + 1] < reach or (
                law.at_ends and ends[b - 1] - ends[a] < reach
            )
            ensure(
                not are_neighbours or {(a, b), (b, a)} <= pairs,
                f"Rows {a} and {b} are of neighbouring answers.",
            )
    channel.kind = "channel"
    channel.is_rounded = law.at_ends
    low = format_number(ends[0])
    high = format_number(ends[-1])
    channel.range = (
        f"all real answers in [{low}, {high}], those at most {format_number(reach)} apart"
    )
    return channel


def read_nearest(data):
    """Read a mechanism that prefers the outputs nearest to a real answer, as two laws.

    There are m outputs in order. Each answer has `own` outputs, which are nearest to it. Each of
    them is `odds` times as likely as any other output. With probability `direct`, the mechanism
    publishes instead in which of n steps of the range the answer lies.

    The two laws are those of the worst two answers. They have r = min(own, m - own) own outputs
    each that the other does not have. The own outputs of the first answer, those of the second, and
    all others have one ratio each, so they are merged: the weights are (r odds, r, rest) and (r, r
    odds, rest). If two answers have fewer such outputs, some weight moves from the first two
    outcomes to the third, whose ratio is 1, so every notion is satisfied more easily. Two different
    steps are two more outcomes.

    Args:
        data: a JSON value.
    """
    law = read_object(
        data,
        "The nearest outputs",
        kind=read_text,
        ends=read_rationals,
        outputs=read_rationals,
        own=read_integer,
        odds=read_rational,
        direct=read_rational,
        steps=read_integer,
    )
    m = len(law.outputs)
    odds = law.odds
    ensure(
        len(law.ends) == 2 and law.ends[0] < law.ends[1], "The ends must be two increasing numbers."
    )
    points = [law.ends[0], *law.outputs, law.ends[1]]
    ensure(
        all(a <= b for a, b in pairwise(points)), "The outputs must not fall, and lie in the range."
    )
    ensure(1 <= law.own < m, "Some outputs must be own, and some others.")
    ensure(odds >= 1, "The odds must be at least 1.")
    ensure(0 <= law.direct <= 1, "The probability of a step must lie in [0, 1].")
    ensure(law.steps >= 1, "There must be a step.")
    # Different outputs may be published as one double.
    law.is_rounded = law.direct > 0 or 1 < len({float(output) for output in law.outputs}) < m
    r = min(law.own, m - law.own)
    direct = law.direct.numerator
    unit = law.direct.denominator
    a = (unit - direct) * odds.numerator
    b = (unit - direct) * odds.denominator
    step = direct * (law.own * odds.numerator + (m - law.own) * odds.denominator)
    rest = (law.own - r) * a + (m - law.own - r) * b
    steps = (step, 0) if step else ()
    law.laws = [
        reduce_weights((r * a, r * b, rest, *steps)),
        reduce_weights((r * b, r * a, rest, *steps[::-1])),
    ]
    law.labels = [(0, 1), (1, 0)]
    low = format_number(law.ends[0])
    high = format_number(law.ends[1])
    law.range = f"all real answers in [{low}, {high}], the {law.own} nearest of {m} outputs"
    return law


def read_quantizer(data):
    """Read a quantizer: the knots, the outputs, and the laws at both ends of every piece.

    Args:
        data: a JSON value.
    """
    quantizer = read_object(
        data,
        "The quantizer",
        kind=read_text,
        knots=read_rationals,
        outputs=read_rationals,
        ends=make_tuple_reader(read_integer_law),
    )
    knots = quantizer.knots
    quantizer.laws = quantizer.ends
    quantizer.labels = ()
    ensure(len(knots) >= 2 and all(a < b for a, b in pairwise(knots)), "The knots must increase.")
    ensure(len(quantizer.laws) == 2 * len(knots) - 2, "There must be two laws for each piece.")
    ensure(
        all(len(k) == len(quantizer.outputs) for k, _ in quantizer.laws),
        "Every law must be one on the outputs.",
    )
    return quantizer


def read_line_noise(data, get_reach, get_atom, **readers):
    """Read a law on the integers, compared at the shifts ±1..±reach.

    Args:
        data: a JSON value.
        get_reach: a function of the entries that returns the largest shift.
        get_atom: a function of the entries that returns the mass of the point 0.
        readers: readers of the entries besides those of the law.
    """
    line = read_object(
        data,
        "The noise",
        kind=read_text,
        **readers,
        first=read_integer,
        period=read_integer,
        ratio=read_rational,
        total=read_anything,
        weights=read_anything,
    )
    weights, total = read_integer_law({"total": line.total, "weights": line.weights}, "The noise")
    ensure(
        abs(line.first) < 1 << 40 and 1 <= line.period <= len(weights),
        "The tails must repeat some of the weights.",
    )
    ensure(0 <= line.ratio < 1, "The ratio must lie in [0, 1).")
    line.reach = get_reach(line)
    line.clamp = None
    line.width = None
    line.laws = ()
    ensure(1 <= line.reach <= 1 << 14, "There must be 1 to 16384 shifts.")
    atom = get_atom(line)
    ensure(atom >= 0, "The atom must be at least 0.")
    line.line = LineLaw(line.first, weights, line.period, line.ratio, atom)
    bits = total.bit_length()
    outcomes = len(weights) + 2 * line.reach
    if line.ratio:
        bits += count_bits(line.ratio) * (-(-line.reach // line.period) + 3)
        outcomes += 2 * line.period
    if atom:
        bits += count_bits(atom)
        outcomes += 2
    line.size = (2 * line.reach, outcomes, 1, bits)
    line.labels = [(s,) for s in range(-line.reach, line.reach + 1) if s]
    line.total = total
    return line


def read_integer_noise(data):
    """Read noise on the integers; clamped noise has rows, and their ordered pairs as labels.

    Args:
        data: a JSON value.
    """
    noise = read_line_noise(
        data,
        lambda line: line.sensitivity,
        lambda line: Fraction(0),
        sensitivity=read_integer,
        clamp=read_anything,
    )
    ends = data["clamp"]
    if ends is None:
        return noise
    low, high = (0, 0)
    if len(make_type_reader(list)(ends, "clamp")) == 2:
        low, high = read_integers(ends, "clamp")
    answers = high - low + 1
    d = noise.reach
    ensure(
        1 < answers <= 10_001 and d < answers,
        "There must be 2 to 10001 answers, and more than the sensitivity.",
    )
    count = d * (2 * answers - d - 1)
    if 1000 * count > MAX_WORK_UNITS:
        raise Refused(
            "too large",
            f"It would take {1000 * count} units of work or more; {MAX_WORK_UNITS} are allowed.",
        )
    bits = noise.total.bit_length()
    if noise.ratio:
        bits += (-(-answers // noise.period) + 2) * count_bits(noise.ratio)
    noise.clamp = (low, high)
    noise.size = (count, answers, answers, bits)
    noise.labels = []
    for i in range(answers):
        neighbours = range(max(0, i - d), min(answers, i + d + 1))
        noise.labels += [(i, j) for j in neighbours if j != i]
    return noise


def read_real_noise(data):
    """Read noise on the reals: the cells, the atom at 0, and the width of a cell.

    Args:
        data: a JSON value.
    """
    readers = {
        "sensitivity": read_rational,
        "grid": read_rational,
        "steps": read_integer,
        "atom": read_rational,
    }
    if isinstance(data, dict) and "clamp" in data:  # The sum of answer and noise is clamped.
        readers["clamp"] = read_rationals
    noise = read_line_noise(data, lambda line: line.steps, lambda line: line.atom, **readers)
    if "clamp" in data:
        ensure(len(data["clamp"]) == 2, "The clamp must be two numbers.")
        low, high = read_rationals(data["clamp"], "clamp")
        ensure(low < high, "The clamp must be two increasing numbers.")
    ensure(noise.sensitivity > 0 and noise.grid > 0, "Sensitivity and grid must be positive.")
    ensure(
        Fraction(1, 10**100) < noise.sensitivity < 10**100,
        "The sensitivity must lie between 1e-100 and 1e100.",
    )
    ensure(
        not noise.atom or noise.line.first <= 0 <= noise.line.last,
        "The cells must lie around the atom.",
    )
    noise.width = noise.sensitivity / noise.steps
    return noise


def read_joint(data):
    """Read a joint release: one law, the relation, and its shift vectors as labels.

    Args:
        data: a JSON value.
    """
    readers = {
        "release": read_text,
        "neighbours": read_text,
        "rows": read_integer,
        "span": read_anything,
        "shifts": make_tuple_reader(read_integers),
    }
    law = read_line_noise(data, lambda line: 1, lambda line: Fraction(0), **readers)
    is_pair = law.release == "pair-of-sums"
    ensure(
        law.release in ("rows-anywhere", "row-per-bin", "pair-of-sums"),
        "The release must be rows-anywhere, row-per-bin or pair-of-sums.",
    )
    ensure(law.neighbours in ("add-remove", "replace"), "Neighbours are add-remove or replace.")
    ensure(1 <= law.rows <= 64, "A person may have 1 to 64 rows.")
    ensure((law.span is None) != is_pair, "A pair of sums has a span, no other release has one.")
    rows = law.rows
    is_replaced = law.neighbours == "replace"
    if is_pair:
        span = read_integer(law.span, "span")
        ensure(1 <= span <= 10_000, "The span must be 1 to 10000 steps.")
        count = rows * (rows + 1) * span + 2 * rows
        if is_replaced:
            count = 2 * (rows + 1) * (2 * rows * span + 1)
    else:
        span = 1
        sides = rows + 1
        if law.release == "rows-anywhere":
            sides = count_partitions(rows)
        count = sides**2 - 1 if is_replaced else 2 * (sides - 1)
    ensure(
        count <= MAX_SHIFT_VECTORS,
        f"There may be {MAX_SHIFT_VECTORS} shift vectors.",
    )
    law.labels = list_shift_vectors(law.release, law.neighbours, rows, law.span)
    ensure(
        list(law.shifts) == law.labels,
        f"The shift vectors must be all {len(law.labels)} of the relation, in order.",
        "false",
    )
    law.joint = JointLaw(law.line)
    law.line = None
    law.needs_grid = False
    law.prefers_grid = False
    if law.joint.is_geometric:
        norm = rows * span * (2 if is_replaced else 1)
        law.extreme_laws = law.joint.extreme_laws(norm)
        law.size = (len(law.labels), norm + 1, 1, (norm + 2) * count_bits(law.ratio))
        return law
    counts = []
    bits = []
    try:
        for vector in law.labels:
            atoms = law.joint.atoms_of(vector)
            counts.append(len(atoms))
            bits.append(sum(g * k for (k, _), g in atoms.items()).bit_length())
    except Refused:  # The privacy losses are too many for an exact convolution.
        law.needs_grid = True
        law.size = (0, 0, 0, 0)
        return law
    c, n, b = len(law.labels), max(counts), max(bits)
    law.size = (c, n, 1, b)
    units = c * (n * (4 + (b // 256) ** 2) + 1000) + (c + 8) * (b // 64) ** 2
    law.prefers_grid = units > MAX_JOINT_AUDIT_UNITS
    return law


# The reader of each kind of mechanism. It returns a namespace, called `mechanism` in this program,
# with the entries of the file and at least
#     kind      name of the kind
#     laws      laws, each a pair (integers, their sum): the rows of a channel, the one law of noise
#               on a group, the laws at both ends of every piece of a quantizer; else empty
#     labels    labels of the comparisons: shifts of noise, ordered pairs of rows; empty for a
#               quantizer
# Noise on the integers and the reals also has `line` (a `LineLaw`), `reach` (the largest shift),
# `clamp` (the ends of the range, or None), `size` (what the count of work needs) and, on the reals,
# `width` (the width of a cell). Quantizers have `knots` and `outputs`. Joint releases have `joint`
# (a `JointLaw`), `size` and, with geometric noise, `extreme_laws`.
READERS = {
    "noise": read_noise,
    "channel": read_channel,
    "range": read_range,
    "nearest-outputs": read_nearest,
    "quantizer": read_quantizer,
    "integer-noise": read_integer_noise,
    "real-noise": read_real_noise,
    "joint": read_joint,
}


def read_budgets(data, mechanism, name):
    """Read the first parameter of a claim as {label: number}; the label None means all comparisons.

    Args:
        data: a JSON value.
        mechanism: whose labels must all have a number.
        name: name of the parameter.
    """
    if isinstance(data, str):
        budgets = {None: read_rational(data, name)}
    else:
        entries = make_tuple_reader(make_tuple_reader(read_anything))(data, name)
        ensure(
            all(len(item) == 2 for item in entries), f"{name} must be a list of labels and numbers."
        )
        budgets = {
            read_integers(label, "A label"): read_rational(value, name) for label, value in entries
        }
        ensure(len(budgets) == len(entries), f"{name} must be given once for each label.")
        ensure(
            budgets and {*budgets} == {*mechanism.labels},
            f"{name} must be given for every comparison, no others.",
        )
        if mechanism.kind == "noise" and not mechanism.directed:
            is_even = all(
                budgets[negate_shift(shift, mechanism.sizes)] == value
                for shift, value in budgets.items()
            )
            ensure(is_even, f"{name} differs between a shift and its negative.")
    ensure(
        all(0 <= value <= 10**6 for value in budgets.values()), f"{name} must lie in [0, 1000000]."
    )
    return budgets


def read_tradeoff_function(data):
    """Read the points (α, β) of a trade-off function, from α = 0 to β = 0.

    Args:
        data: a JSON value.
    """
    points = tuple(make_tuple_reader(read_rationals)(data, "The function"))
    ensure(
        len(points) > 1 and all(len(point) == 2 for point in points),
        "The function must be pairs of alpha and beta.",
    )
    ensure(
        all(0 <= x <= 1 for point in points for x in point), "Alpha and beta must lie in [0, 1]."
    )
    points = tuple(sorted(points))
    ensure(
        all(a < a2 for (a, _), (a2, _) in pairwise(points)),
        "The function must have each alpha once.",
    )
    ensure(
        points[0][0] == 0 < points[0][1] and points[-1][1] == 0,
        "The function must go from alpha = 0 to beta = 0.",
    )
    ensure(all(a + b <= 1 for a, b in points), "The function must be at most 1 - alpha.")
    slopes = [(b2 - b) / (a2 - a) for (a, b), (a2, b2) in pairwise(points)]
    ensure(
        slopes[-1] <= 0 and sorted(slopes) == slopes, "The function must be convex and not rise."
    )
    return points


def read_curve(data):
    """Read the points (ε, δ) of a curve.

    Args:
        data: a JSON value.
    """
    points = tuple(make_tuple_reader(read_rationals)(data, "The curve"))
    ensure(
        points and all(len(point) == 2 for point in points),
        "The curve must be pairs of epsilon and delta.",
    )
    is_inside = all(0 <= epsilon <= 10**6 and 0 <= delta <= 1 for epsilon, delta in points)
    ensure(is_inside, "Epsilon must lie in [0, 1000000], delta in [0, 1].")
    ensure(
        len({epsilon for epsilon, _ in points}) == len(points),
        "The curve must have each epsilon once.",
    )
    deltas = [delta for _, delta in sorted(points)]
    ensure(
        deltas == sorted(deltas, reverse=True),
        "The delta of a curve must not grow with epsilon.",
    )
    return points


def read_claim(data, mechanism):
    """Read a claim of one run.

    Args:
        data: a JSON value.
        mechanism: the mechanism, whose labels may have different budgets.

    Returns:
        notion: a key of PARAMETERS.
        budgets: label -> first parameter. The only label is None if it is the same for all.
        other_parameters: name -> value of the other parameters, such as {"delta": 0}.
    """
    notion = data.get("notion") if isinstance(data, dict) else None
    ensure(
        isinstance(notion, str) and notion in PARAMETERS,
        f"The notion must be one of {', '.join(PARAMETERS)}.",
    )
    first, *rest = PARAMETERS[notion]
    readers = {"notion": read_text, first: read_anything, **dict.fromkeys(rest, read_rational)}
    claim = vars(read_object(data, "The claim", **readers))
    if notion == "curve":
        return notion, {None: read_curve(claim["curve"])}, {}
    if notion == "tradeoff":
        return notion, {None: read_tradeoff_function(claim["tradeoff"])}, {}
    other_parameters = {name: claim[name] for name in rest}
    if "delta" in other_parameters:
        max_delta = notion in ("dp", "pdp")
        ensure(
            0 <= other_parameters["delta"] <= max_delta,
            "Delta must lie in [0, 1], and be 0 for pure and metric.",
        )
    ensure(1 < other_parameters.get("alpha", 2) <= 10**6, "Alpha must lie in (1, 1000000].")
    return notion, read_budgets(claim[first], mechanism, first), other_parameters


def read_composed_claim(data):
    """Read a claim of many runs: runs, epsilon, delta, and the step of the grid.

    Args:
        data: a JSON value.
    """
    claim = read_object(
        data,
        "The composed claim",
        runs=read_integer,
        epsilon=read_rational,
        delta=read_rational,
        step=read_rational,
    )
    ensure(1 <= claim.runs <= 10**6, "There must be 1 to 1000000 runs.")
    ensure(
        0 <= claim.epsilon <= 10**6 and 0 <= claim.delta <= 1,
        "Epsilon must lie in [0, 1000000], delta in [0, 1].",
    )
    ensure(0 < claim.step <= 10**6, "The step must lie in (0, 1000000].")
    ensure(
        claim.step.denominator.bit_length() <= 256,
        "The step must have a denominator of at most 256 bits.",
    )
    return claim


def read_objective(data):
    """Read the loss of a mechanism with its stated expected value.

    Args:
        data: a JSON value.

    Returns:
        None if no loss is stated. Otherwise a namespace with name and value, and with
            losses: the loss of each noise value. None for error-rate and for channels.
            labels, prior, outputs, rows: the expected loss of a channel. rows is None for noise.
    """
    if data is None:
        return None
    entries = {"losses": None, "labels": (), "prior": (), "outputs": (), "rows": None}
    readers = {"name": read_text, "value": read_rational}
    if not isinstance(data, dict) or "losses" in data:
        is_error_rate = isinstance(data, dict) and data.get("losses") is None
        readers["losses"] = read_anything if is_error_rate else read_rationals
        entries.update(vars(read_object(data, "The objective", **readers)))
        ensure(
            re.fullmatch("[a-z][a-z0-9-]{0,39}", entries["name"]),
            "The name of an objective must be a word.",
        )
    else:
        readers.update(dict.fromkeys(("labels", "prior", "outputs"), read_rationals))
        readers["rows"] = read_integers
        entries.update(vars(read_object(data, "The objective", **readers)))
    return SimpleNamespace(**entries)


def read_bias(data):
    """Read outputs, inputs and the worst bias.

    Args:
        data: a JSON value.
    """
    if data is None:
        return None
    read_long_rational = partial(read_rational, max_characters=10_000)
    return read_object(
        data, "The bias", outputs=read_rationals, inputs=read_rationals, worst=read_long_rational
    )


def read_json_file(path):
    """Read strict JSON from a regular file.

    No key may appear twice, NaN and Infinity are no numbers, and no number may have more than 400
    characters.

    Args:
        path: path of the file.
    """

    def read_entries(pairs):
        """Return an object from its (key, value) pairs, and refuse a key that appears twice."""
        ensure(len(dict(pairs)) == len(pairs), "A key appears twice in one object.")
        return dict(pairs)

    def read_number(text, kind):
        """Return a number as an int or float (`kind`), and refuse a huge one."""
        ensure(len(text) <= 400 and abs(kind(text)) != math.inf, "A number is too large.")
        return kind(text)

    def refuse_constant(text):
        """Refuse NaN and Infinity, which Python's reader of JSON accepts."""
        raise Refused("unreadable", f"{text} is no number.")

    try:
        # A device may act when it is opened, so the kind of file is checked before.
        ensure(stat.S_ISREG(os.stat(path).st_mode), "It is no regular file.")
        handle = os.open(
            path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        )
        with os.fdopen(handle, "rb") as file:
            ensure(stat.S_ISREG(os.fstat(handle).st_mode), "It is no regular file.")
            content = file.read(MAX_FILE_BYTES + 1)
        ensure(content is not None, "It cannot be read without waiting.")
        is_small = len(content) <= MAX_FILE_BYTES
        ensure(is_small, f"The file is larger than {MAX_FILE_BYTES} bytes.", "too large")
        data = json.loads(
            content.decode("utf-8"),
            object_pairs_hook=read_entries,
            parse_int=partial(read_number, kind=int),
            parse_float=partial(read_number, kind=float),
            parse_constant=refuse_constant,
        )
        json.dumps(data, ensure_ascii=False).encode()  # This fails for half of a surrogate pair.
    except (OSError, ValueError, RecursionError) as error:
        raise Refused("unreadable", f"It cannot be read: {str(error)[:200]}.") from None
    return data


def update_format(data):
    """Return a certificate in the present format.

    Early files have no composed claim, and their losses are called costs.

    Args:
        data: a JSON value.
    """
    if not isinstance(data, dict):
        return data
    data = {"composed": None, **data}
    objective = data.get("objective")
    if isinstance(objective, dict) and "costs" in objective and "losses" not in objective:
        data["objective"] = {
            "losses" if name == "costs" else name: value for name, value in objective.items()
        }
    return data


def read_mechanism(data):
    """Read the mechanism of a certificate by its kind.

    Args:
        data: a JSON value.
    """
    kind = data.get("kind") if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in READERS:
        raise Refused(
            "unknown",
            f"A mechanism of kind {str(kind)[:40]!r}: this checker knows {', '.join(READERS)}.",
        )
    mechanism = READERS[kind](data)
    for name in ("line", "clamp", "is_rounded", "range"):
        vars(mechanism).setdefault(name, None)
    return mechanism


def prove_dyadic_law(data):
    """Return the statement that the file of a dyadic law proves, a sentence.

    An input x is published as the integer M. The level T and the number U are known:

        y = ε x / step - U,  M = ⌊y⌋ + K + 1 with probability y - ⌊y⌋, else M = ⌊y⌋ + K
        Pr[K = k] ∝ a_k = s q^(|k|/2) for even k, q^((|k| - 1)/2) for odd k

    So Pr[M = m | x] is the linear interpolation of the numbers a_k at m - y. Between two integers
    its slope is a difference of neighbours, and it is at least the smaller of them. The slope of
    its logarithm in x is therefore at most (ε / step) max (a_j / a_i - 1) over |i - j| = 1. These
    ratios are s, q s and their reciprocals.

    Args:
        data: the JSON value of the file.

    Raises:
        Refused: the guarantee is false, or the file is unreadable or unknown.
    """
    file = read_object(
        data,
        "A dyadic law",
        format=read_text,
        version=read_integer,
        epsilon=read_rational,
        decoder_epsilon=read_rational,
        levels=make_tuple_reader(read_dyadic_level),
    )
    if file.version != VERSION:
        raise Refused("unknown", f"Version {file.version}: this checker knows version {VERSION}.")
    ensure(file.epsilon > 0 and file.decoder_epsilon > 0, "Both epsilon must be positive.")
    ensure(1 <= len(file.levels) <= MAX_LEVELS, f"There must be 1 to {MAX_LEVELS} levels.")
    for number, level in enumerate(file.levels):
        s = level.first_ratio
        ratios = (s, 1 / s, s * level.period_ratio, 1 / (s * level.period_ratio))
        ensure(
            file.epsilon * (max(ratios) - 1) <= file.decoder_epsilon * level.step,
            f"The law of level {number} changes faster than the guarantee allows.",
            "false",
        )
    return (
        f"Integers of dyadic quantized Laplace noise, {len(file.levels)} levels, any real inputs: "
        f"metric at epsilon = {format_number(file.decoder_epsilon)}; no loss is stated."
    )


def read_dyadic_level(data, _):
    """Read a level: its step, s = a_0 / a_1 and q = a_(k+2) / a_k.

    Args:
        data: a JSON value.
    """
    level = read_object(
        data, "A level", step=read_rational, first_ratio=read_rational, period_ratio=read_rational
    )
    ensure(level.step > 0 and level.first_ratio > 0, "The step and the ratio must be positive.")
    ensure(0 < level.period_ratio < 1, "The period ratio must lie in (0, 1).")
    return level


def prove_statement(data):
    """Return the statement that a certificate proves, a sentence.

    Args:
        data: the JSON value of the file.

    Raises:
        Refused: the certificate is false, unreadable, too large or unknown.
    """
    if isinstance(data, dict) and data.get("format") == DYADIC_FORMAT:
        return prove_dyadic_law(data)
    data = update_format(data)
    parts = ("format", "mechanism", "claim", "composed", "objective", "bias")
    file = read_object(
        data,
        "A certificate",
        **dict.fromkeys(parts, read_anything),
        version=read_integer,
        record=make_type_reader(dict),
    )
    ensure(file.format == FORMAT, f"The format must be {FORMAT!r}.")
    if file.version != VERSION:
        raise Refused("unknown", f"Version {file.version}: this checker knows version {VERSION}.")
    mechanism = read_mechanism(file.mechanism)
    notion, budgets, other_parameters = read_claim(file.claim, mechanism)
    if mechanism.kind == "joint":
        if mechanism.prefers_grid and notion == "dp" and other_parameters["delta"]:
            mechanism.needs_grid = True
            mechanism.size = (0, 0, 0, 0)
        ensure(None in budgets, "A joint release has one budget for all shift vectors.")
        if mechanism.needs_grid and (notion != "dp" or not other_parameters["delta"]):
            raise Refused("too large", "Only dp with delta > 0 is decided for so many losses.")
    is_rounded = mechanism.kind == "real-noise" or mechanism.is_rounded
    ensure(
        not (is_rounded and notion == "pdp" and other_parameters["delta"]),
        "Noise on the reals, answers between ends and equal outputs are rounded: "
        "pdp does not survive it.",
    )
    has_one_budget = notion != "metric" and None in budgets
    ensure(
        mechanism.range is None or has_one_budget,
        "The budget of a range must be one number, and not one per distance.",
    )
    objective = read_objective(file.objective)
    bias = read_bias(file.bias)
    composed = None if file.composed is None else read_composed_claim(file.composed)
    units = count_work(mechanism, notion, budgets, other_parameters, objective, bias, composed)
    if units > MAX_WORK_UNITS:
        sentence = f"It would take {units} units of work; {MAX_WORK_UNITS} are allowed."
        raise Refused("too large", sentence)
    if mechanism.clamp:
        low, high = mechanism.clamp
        mechanism.laws = [
            mechanism.line.clamped_law(low - q, high - q) for q in range(low, high + 1)
        ]
    IntervalArithmetic.remaining_units = MAX_ENCLOSURE_UNITS
    with report_failures_as_false():
        check_privacy(mechanism, notion, budgets, other_parameters)
        if composed is not None:
            check_runs(composed, mechanism)
    if objective is not None:
        check_objective(objective, mechanism)
    if bias is not None:
        check_bias(bias, mechanism)
    claim = f"{notion} at {format_budget(notion, budgets, other_parameters)}"
    if composed is not None:
        claim += f"; {composed.runs} runs together: dp at epsilon = "
        claim += f"{format_number(composed.epsilon)}, delta = {format_number(composed.delta)}"
    return format_statement(mechanism, claim, objective, bias)


# ---------- printing


def format_budget(notion, budgets, other_parameters):
    """Return a budget such as "epsilon = 1, delta = 0.1". Arguments: see `check_privacy`."""
    if notion in ("curve", "tradeoff"):
        names = ("epsilon", "delta") if notion == "curve" else ("alpha", "beta")
        return ", ".join(
            f"({names[0]} = {format_number(x)}, {names[1]} = {format_number(y)})"
            for x, y in budgets[None]
        )
    name = PARAMETERS[notion][0]
    if None in budgets:
        parts = [f"{name} = {format_number(budgets[None])}"]
    else:
        parts = [f"a separate {name} for each comparison"]
    parts += [f"{name} = {format_number(value)}" for name, value in other_parameters.items()]
    return ", ".join(parts)


def format_mechanism(mechanism):
    """Return the name and the size of a mechanism, and what is compared.

    Args:
        mechanism: mechanism, as a reader of READERS returns it.
    """
    count = len(mechanism.labels)
    if mechanism.kind == "quantizer":
        return "Any two real inputs"
    if mechanism.kind == "nearest-outputs":
        return f"Likelier outputs for {mechanism.range}, any two answers neighbours"
    if mechanism.kind == "noise":
        relation = "of either sign"
        if mechanism.directed:
            relation = "directed"
        sizes = " x ".join(map(str, mechanism.sizes))
        return f"Noise modulo {sizes}, {count} differences ({relation})"
    if mechanism.kind == "integer-noise":
        compared = "shifts"
        if mechanism.clamp:
            compared = "pairs of clamped answers"
        return f"Noise on the integers, {count} {compared}"
    if mechanism.kind == "joint":
        span = f" of {mechanism.span} steps" if mechanism.span else ""
        return (
            f"A joint release, {mechanism.release}{span}, K = {mechanism.rows} rows of a "
            f"person, neighbours by {mechanism.neighbours}, all {count} shift vectors"
        )
    if mechanism.kind == "real-noise":
        return f"Noise on the reals, {count} shifts by cells, which decide all real shifts"
    text = (
        f"A channel of {len(mechanism.laws)} x {len(mechanism.laws[0][0])}, {count} ordered pairs"
    )
    if not {(j, i) for i, j in mechanism.labels} <= {*mechanism.labels}:
        text += " (one side of each pair only)"
    if mechanism.range:
        text += f" of rows, for {mechanism.range} being neighbours"
    return text


def format_statement(mechanism, claim, objective, bias):
    """Return what has been proven, in one sentence.

    Args:
        mechanism: mechanism, as a reader of READERS returns it.
        claim: the claim as text.
        objective: objective, as `read_objective` returns it.
        bias: bias, as `read_bias` returns it.
    """
    if objective is None:
        loss = "no loss is stated"
    else:
        loss = f"{objective.name} at most {format_number(objective.value)}"
        if objective.rows is not None:
            loss += " for labels, a prior and outputs that this file states"
        elif objective.losses is not None and objective.name not in PART_LOSSES:
            loss += " by numbers that this file states"
    text = f"{format_mechanism(mechanism)}: {claim}; {loss}"
    if bias is not None:
        text += f"; largest bias {format_number(bias.worst)}"
    return f"{text}."


def format_number(x):
    """Return a rational as a decimal for people to read.

    Args:
        x: Fraction or int.
    """
    if abs(x) < 1 << 1000:
        return f"{float(x):.12g}"
    return "beyond 1e300"


def decide_file(path):
    """Return (verdict, reason) of a file. An unexpected error never counts as a refutation.

    Args:
        path: path of the file.
    """

    def stop(*_):
        raise Refused("too large", f"It takes more than {MAX_CPU_SECONDS} seconds.")

    has_timer = hasattr(signal, "setitimer")
    try:
        if has_timer:
            signal.signal(signal.SIGPROF, stop)
            signal.setitimer(signal.ITIMER_PROF, MAX_CPU_SECONDS, 1)
        return "proven", prove_statement(read_json_file(path))
    except Refused as error:
        return error.args
    except MemoryError:
        return "too large", "It takes more memory than there is."
    except Exception as error:
        return "unreadable", f"It cannot be read: {type(error).__name__}: {str(error)[:200]}."
    finally:
        if has_timer:
            signal.setitimer(signal.ITIMER_PROF, 0)


def make_printable(text):
    """Return printable characters in the terminal's encoding.

    A file can therefore control neither lines nor colours of the terminal.

    Args:
        text: the line to print.
    """
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"  # There may be no stdout.
    return text.encode(encoding, "backslashreplace").decode(encoding)


def main(paths):
    """Print one line for each file, and return the exit code.

    Args:
        paths: paths of the files.
    """
    verdicts = set()
    for path in paths:
        verdict, reason = decide_file(path)
        verdicts.add(verdict)
        print(make_printable(f"{path}: {verdict}: {reason}"), flush=True)
    if "false" in verdicts:
        return 1
    if verdicts == {"proven"}:
        return 0
    return 2


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        sys.exit(2)
    with suppress(ImportError, OSError, ValueError):
        import resource

        hard_limit = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, hard_limit))
    try:
        code = main(sys.argv[1:])
    except OSError:  # The verdict could not be printed, as its reader has left.
        sys.stdout = None
        code = 2
    sys.exit(code)
