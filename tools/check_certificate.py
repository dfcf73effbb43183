#!/usr/bin/env python3
"""A second, independent checker of certificates: one file, the standard library, nothing of the workbench.

    python check_certificate.py FILE...

    proven       exit code 0    everything the file states follows from its integers, by the definitions below
    false        1              it does not: a claim, loss or bias is refuted
    unreadable   2              there is no such file, or it is no certificate or one that makes no sense
    too large    2              the count of work below is beyond the limit: nothing is said about the claim
    unknown      2              another version of the format, a mechanism that this checker does not know, or a claim
                                of renyi, zcdp or gdp so nearly tight that the limit is reached while it is decided

With several files, 1 wins over 2. Nothing under "record" is looked at: it proves nothing.

What is decided. A law is a list of integers over their sum. P against Q at ε >= 0, outcomes i:

    pure, metric    P(i) <= e^ε Q(i) for all i                        (metric: every pair of laws has its own ε)
    dp              Σ max(0, P(i) - e^ε Q(i)) <= δ
    pdp             Σ P(i) over {i : P(i) > e^ε Q(i)} <= δ
    tradeoff        Σ min(u P(i), v Q(i)) >= w for every line u β + v α >= w between points (α, β) of a convex function,
                    u <= v (else they change places): with both orders of a pair, no test of one law against the other
                    has an error of the first kind α and one of the second kind β below the function

    noise        f(·) against f(· + μ) on the group Z_s1 x Z_s2 x ..., for all differences μ (and -μ unless directed)
    channel      row i against row j, for all ordered pairs (i, j) in the file
    range        a channel; all rows that real answers within the sensitivity may fall into are pairs (`read_range`)
    nearest-outputs  real answers whose nearest outputs are likelier; those at both ends of the range (`read_nearest`)
    quantizer    the laws at any two real inputs; between knots a law is affine in the input (`check_real_inputs`)
    integer-noise    f against f(· + s) on all integers, s = ±1..±D; clamped to N answers, rows as of a channel
    real-noise       the same of k cells a sensitivity, and an atom, s = ±1..±k, which decides every real shift (`Line`)

Where the file has a composed claim: T runs together, each on neighbours that what was published before may decide,
meet dp at its ε and δ (`check_runs`).

What is counted, before any of it is done ("too large"). With

    C  ordered comparisons: the differences of noise, the pairs of a channel, L² for L different end laws
    n  outcomes of a law        T  weights in all: n, or n for every row or end law; + k n for k labels
    b  bits of the largest total, + the most bits (numerator and denominator) of ε and of every other number of the
       claim, + those of δ
    w  b + the most factors 2 in a denominator, + the bits of every different odd part of one, + those of the largest
       numerator, among the other numbers: knots, outputs, and what the objective and the bias hold

    Noise on the integers and the reals, weights w over W with tails of ratio r = u/v every P (else t = 0), D shifts
    (k of the reals), n_w weights:  C = 2D, n = n_w + 2D + 2P (tails) + 2 (atom), b counts bits of W, of u and v t
    times, t = ⌈D/P⌉ + 3, and of the atom. Clamped to N answers: C = D (2N - D - 1), n = N, T = N², t = ⌈N/P⌉ + 2.

    audit       C n (a (4 + ⌊b/256⌋²) + s) + 1000 C + (C + 8) ⌊b/64⌋²
                a = 1; the points of a curve; 16 times those of a trade-off function
                s = 0; 5,000 for renyi, 10,000 for zcdp, 20,000 for gdp, whose outcomes take series
                pure, and dp and pdp with δ = 0, on a channel whose rows are all neighbours; these and metric on a
                quantizer: C is at most n; on noise on a line that is even and never rises with |η|: C = 1
    loss, bias  T (4 + ⌊w/256⌋²) + ⌊w/64⌋²
    pdp on K pieces       K² n⁴ (100 + 2 ⌊b/100⌋²) as well
    composed    C n (300 + ⌊b/64⌋²) as well (C without the rule above), and, counted when the a atoms of the dominating
                pair are known, and by itself: a (500 + 10 d) + 7 N (20 + 3 d), for T runs at (ε, δ) on a grid on
                which the finite losses span m points: d = 30 + the digits of T and of ⌊1/δ⌋ + ⌊ε/2⌋ (at most 1300),
                N = m min(T, 4 ⌊√(T d)⌋ + 4)

units of about 10^-7 s, at most LIMIT of them. The workbench counts by the same rule. How many digits and pieces a claim
of renyi, zcdp or gdp needs is seen when it is decided: every enclosure is counted before it is computed, with its terms
(`Enclosed.count_work`), and ENCLOSURES limits them all.
"""

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

FORMAT, VERSION = "dp-workbench certificate", 1
LIMIT = 100_000_000  # units of work that are counted before
ENCLOSURES = 60_000_000  # and those of enclosures, when they are needed
BYTES = 16 << 20  # of a file
PARAMETERS = {  # of each notion, in their order; the first may be one number for each comparison
    "pure": ("epsilon", "delta"), "dp": ("epsilon", "delta"), "pdp": ("epsilon", "delta"),
    "metric": ("epsilon", "delta"), "curve": ("curve",), "tradeoff": ("tradeoff",), "renyi": ("epsilon", "alpha"),
    "zcdp": ("rho",), "gdp": ("mu",),
}  # fmt: skip
SERIES = {"renyi": 5000, "zcdp": 10_000, "gdp": 20_000}  # units for an outcome
DIGITS = 1300  # beyond which a claim of gdp is left undecided
MOST_REFUTED = 24  # comparisons that a composed claim is tried on
CELLS = 4_000_000  # weights that columns may stand for
SECONDS = 9  # of CPU time for a file, should the count of its work be wrong
MEMORY = 4 << 30  # bytes


class Refused(Exception):
    """The verdict (unreadable, false, too large, unknown) and the reason, a sentence."""


def need(condition, sentence, verdict="unreadable"):
    """The verdict unless a condition holds."""
    if not condition:
        raise Refused(verdict, sentence)


# What newer versions of Python have.


def pairwise(values):
    """Each value with the next one."""
    values = list(values)
    return list(zip(values[:-1], values[1:]))  # noqa: B905, RUF007


def together(*lists):
    """The entries of lists of one length side by side."""
    lists = [values if hasattr(values, "__len__") else list(values) for values in lists]
    need(len({len(values) for values in lists}) < 2, "Two lists differ in length.")
    return zip(*lists)  # noqa: B905


def gcd(values):
    """The greatest common divisor of integers, 0 of none."""
    return reduce(math.gcd, values, 0)


def lcm(values):
    """The least common multiple of positive integers, 1 of none."""
    return reduce(lambda a, b: a * b // math.gcd(a, b), values, 1)


@contextmanager
def deciding():
    """What fails inside is false, not unreadable."""
    try:
        yield
    except Refused as error:
        verdict, sentence = error.args
        raise Refused("false" if verdict == "unreadable" else verdict, sentence) from None


# ---------------------------------------------------------------------------------------------------- e^ε, enclosed


class Power:
    """E = e^ε for a rational ε >= 0, enclosed in integers: low <= 2^w E <= high, as tightly as a comparison needs.

    e^y = Σ y^n/n! for y = ε/2^s <= 1/2, in m columns (which saves products) of integers that are rounded down, with a
    bound on what that loses; then e^ε by squaring s times. E is irrational for rational ε != 0 (Lindemann), so a
    comparison of rationals with it always ends.
    """

    def __init__(self, epsilon):
        """epsilon: Fraction >= 0."""
        self.epsilon = epsilon
        self.levels = []

    def bounds(self, level):
        """(low, high, w) with about 64 * 2^level correct bits."""
        while len(self.levels) <= level:
            self.levels.append(self._enclose(64 << len(self.levels)))
        return self.levels[level]

    def _enclose(self, bits):
        halvings = round(bits ** (1 / 3)) + math.ceil(self.epsilon).bit_length() + 1
        w, m = bits + 3 * halvings + 32, max(1, math.isqrt(bits // halvings))
        y = (self.epsilon.numerator << w) // (self.epsilon.denominator << halvings)
        power = 1 << w
        for _ in range(m):
            power = power * y >> w
        columns, term, n = (
            [0] * m,
            1 << w,
            0,
        )  # column i: Σ (y^m)^j / (j m + i)!, so that e^y = Σ column_i y^i
        while term:
            columns[n % m] += term
            n += 1
            term //= n
            if n % m == 0:
                term = term * power >> w
        low = 0
        for column in reversed(columns):
            low = (low * y >> w) + column
        # All was rounded down. A power or term lacks less than 8: a product passes on half of what its factor lacks and
        # adds at most 5, a quotient adds 1. So the sum lacks 8 for each of its n terms, and 24 for those left out and
        # for the last products.
        e = 8 * n + 24
        for _ in range(halvings):  # (low + e)² / 2^w
            low, e = low * low >> w, ((2 * low + e) * e >> w) + 2
        return low, low + e, w

    def sign(self, x, y):
        """The sign of x + y E, for integers x and y."""
        if self.epsilon == 0:
            return sign(x + y)
        of_x, of_y = sign(x), sign(y)
        if of_x * of_y >= 0:
            return of_x or of_y
        x, y = abs(x), abs(y)
        if self.epsilon > x.bit_length():  # E > 2^ε > x, and y >= 1
            return of_y
        level = 0
        while True:
            low, high, w = self.bounds(level)
            if x << w < y * low:
                return of_y
            if x << w > y * high:
                return of_x
            level += 1


def sign(x):
    """-1, 0 or 1."""
    return (x > 0) - (x < 0)


# ---------------------------------------------------------------------------------------- one law against another


def violations(p, q, power):
    """The outcomes i with P(i) > E Q(i). p, q: (integers, their sum)."""
    (k, k_sum), (l, l_sum) = p, q
    if (
        power.epsilon > k_sum.bit_length() + l_sum.bit_length()
    ):  # E exceeds every ratio of two masses that are not 0
        return [i for i, (x, y) in enumerate(together(k, l)) if x and not y]
    low, high, w = power.bounds(0)
    left, right_low, right_high = (
        l_sum << w,
        k_sum * low,
        k_sum * high,
    )  # P > E Q is k l_sum > E l k_sum
    outcomes = []
    for i, (x, y) in enumerate(together(k, l)):
        mass = x * left
        if mass > y * right_high or (
            mass > y * right_low and power.sign(x * l_sum, -y * k_sum) > 0
        ):
            outcomes.append(i)
    return outcomes


class Demand:
    """A notion with its budget for one comparison, or for all: notion, power (e^ε), delta, and the other numbers."""

    def __init__(self, notion, values):
        self.notion, self.delta = notion, values.get("delta")
        self.power = Power(values["epsilon"]) if "epsilon" in values else None
        self.alpha, self.rho, self.mu = (values.get(name) for name in ("alpha", "rho", "mu"))
        self.points = [Demand("dp", {"epsilon": e, "delta": d}) for e, d in values.get("curve", ())]
        self.function = values.get("tradeoff", ())


def check_pair(p, q, demand, name):
    """Refuse unless P against Q meets the demand."""
    others = {
        "curve": check_curve,
        "tradeoff": check_tradeoff,
        "renyi": check_renyi,
        "zcdp": check_concentrated,
        "gdp": check_gaussian,
    }
    if demand.notion in others:
        others[demand.notion](p, q, demand, name)
        return
    notion, power, delta = demand.notion, demand.power, demand.delta
    broken = violations(p, q, power)
    if notion in ("pure", "metric"):
        need(
            not broken,
            f"{name}: outcome {broken[:1]} exceeds e^epsilon times its mass in the other law.",
        )
        return
    a, b = sum(p[0][i] for i in broken), sum(q[0][i] for i in broken)
    u, v = delta.numerator, delta.denominator
    if notion == "pdp":
        need(
            a * v <= u * p[1], f"{name}: the outcomes that exceed e^epsilon weigh more than delta."
        )
    else:  # a/p_sum - E b/q_sum - u/v <= 0, times p_sum q_sum v
        excess = power.sign(a * q[1] * v - u * p[1] * q[1], -b * p[1] * v)
        need(excess <= 0, f"{name}: the hockey stick exceeds delta.")


def check_curve(p, q, demand, name):
    """Refuse unless P against Q meets every point (ε, δ)."""
    for point in demand.points:
        check_pair(p, q, point, name)


def check_tradeoff(p, q, demand, name):
    """Refuse unless Σ min(u P, v Q) >= w for every line u β + v α >= w of the function, the larger factor at Q.

    A test that errs on S and not on the others has α + β in these weights: least where it errs where that costs less.
    """
    (k, k_sum), (l, l_sum) = p, q
    for (a, b), (a2, b2) in pairwise(demand.function):
        if b == b2:
            continue
        u, v, w = a2 - a, b - b2, b * a2 - a * b2
        scale = lcm([u.denominator, v.denominator, w.denominator])
        light, heavy = sorted((int(u * scale), int(v * scale)))
        least = sum(min(light * i * l_sum, heavy * j * k_sum) for i, j in together(k, l))
        need(
            least >= int(w * scale) * k_sum * l_sum,
            f"{name}: a test errs less than the trade-off function allows.",
        )


# --------------------------------------------------------------------- logarithms, exponentials and Φ, enclosed


class Enclosed:
    """Arithmetic on pairs (low, high) of decimals of so many digits, rounded outwards by the methods of `down` and `up`
    (operators would round to 28 digits).

    `decimal` rounds ln, exp and sqrt correctly, so that the next decimal on either side encloses them.
    """

    left = ENCLOSURES  # for one certificate: `check` sets it

    def __init__(self, digits):
        wide = {"prec": digits, "Emin": MIN_EMIN, "Emax": MAX_EMAX}
        traps = [InvalidOperation, DivisionByZero, Overflow]
        self.down = Context(rounding=ROUND_FLOOR, traps=traps, **wide)
        self.up = Context(rounding=ROUND_CEILING, traps=traps, **wide)
        self.digits = digits

    def count_work(self, functions, products=0):
        """Count functions, and products with a quotient and a sum, before they are computed."""
        d = self.digits
        units = functions * (30 * d + d**3 // 2250) + products * (50 + d * d // 3300)
        Enclosed.left -= units
        if Enclosed.left < 0:
            raise Refused(
                "unknown", f"{ENCLOSURES} units of work do not decide whether the budget is enough."
            )

    def of(self, x):
        """A rational."""
        top, bottom = Decimal(x.numerator), Decimal(x.denominator)
        return self.down.divide(top, bottom), self.up.divide(top, bottom)

    def sum(self, x, y):
        """x + y."""
        return self.down.add(x[0], y[0]), self.up.add(x[1], y[1])

    def times(self, x, y):
        """x y, for x >= 0."""
        return (
            self.down.multiply(x[y[0] < 0], y[0]),
            self.up.multiply(x[y[1] >= 0], y[1]),
        )

    def quotient(self, x, y):
        """x / y, for x >= 0 and y > 0."""
        return self.down.divide(x[0], y[1]), self.up.divide(x[1], y[0])

    def outwards(self, function, x):
        """An increasing function of a context, correctly rounded: "ln", "exp" or "sqrt"."""
        low, high = getattr(self.down, function)(x[0]), getattr(self.up, function)(x[1])
        tiny = Decimal(
            (0, (1,), -self.digits)
        )  # beside 0 the next decimal has an exponent of some 10^18
        return (
            self.down.next_minus(low) if low else tiny.copy_negate(),
            self.up.next_plus(high) if high else tiny,
        )


class Divergence:
    """P against Q by the ratios of their masses: what Rényi divergences are sums over."""

    def __init__(self, p, q):
        (k, k_sum), (l, l_sum) = p, q
        counts = Counter((x, y) for x, y in together(k, l) if x)
        self.unbounded = any(not y for _, y in counts)
        self.same = all(x * l_sum == y * k_sum for x, y in together(k, l))
        self.masses = [
            (Fraction(x * count, k_sum), Fraction(x * l_sum, y * k_sum))
            for (x, y), count in counts.items()
            if y
        ]
        self.known = {}

    def losses(self, digits):
        """[(mass of P, ln P/Q)], enclosed, and the arithmetic."""
        if digits not in self.known:
            real = Enclosed(digits)
            real.count_work(len(self.masses))
            terms = [
                (real.of(mass), real.outwards("ln", real.of(ratio))) for mass, ratio in self.masses
            ]
            self.known = {digits: (real, terms)}
        return self.known[digits]

    def moment(self, alpha, digits):
        """g(α) = ln Σ P^α Q^(1-α) = (α-1) D_α, between two rationals."""
        real, terms = self.losses(digits)
        power, total = real.of(alpha - 1), (Decimal(0), Decimal(0))
        real.count_work(len(terms) + 1)
        for mass, loss in terms:
            total = real.sum(total, real.times(mass, real.outwards("exp", real.times(power, loss))))
        return tuple(map(Fraction, real.outwards("ln", total)))

    def mean(self, digits):
        """Σ P ln P/Q, between two rationals."""
        real, terms = self.losses(digits)
        total = (Decimal(0), Decimal(0))
        for mass, loss in terms:
            total = real.sum(total, real.times(mass, loss))
        return tuple(map(Fraction, total))


def check_renyi(p, q, demand, name):
    """Refuse unless Σ P^α Q^(1-α) <= e^((α-1) ε): never equal for ε > 0, as the left side is algebraic."""
    loss, alpha, epsilon = Divergence(p, q), demand.alpha, demand.power.epsilon
    if loss.same:
        return
    need(not loss.unbounded and epsilon, f"{name}: the Rényi divergence exceeds epsilon.")
    digits = 40
    while True:
        low, high = loss.moment(alpha, digits)
        need(
            low <= (alpha - 1) * epsilon,
            f"{name}: the Rényi divergence of order {shown(alpha)} exceeds epsilon.",
        )
        if high <= (alpha - 1) * epsilon:
            return
        digits *= 2


def check_concentrated(p, q, demand, name):
    """Refuse unless g(α) = (α-1) D_α <= ρ α (α-1) for every α > 1.

    D_α does not fall in α and is at most the largest ln P/Q: orders from that over ρ on are decided, and those in
    (1, b] when D_b <= ρ. On [a, b], g is convex, so below its chord, whose excess over the right side is a concave
    quadratic in α. A piece that neither decides is halved; what breaks ρ at an end of a piece refutes the claim. The
    powers (P/Q)^(α-1) in the middle are the geometric means of those at both ends, all rounded up.
    """
    loss, rho = Divergence(p, q), demand.rho
    if loss.same:
        return
    sentence = f"{name}: a Rényi divergence exceeds rho times its order."
    need(not loss.unbounded and rho, sentence)
    need(loss.mean(80)[0] <= rho, sentence)
    largest = max(Fraction(high) for _, (_, high) in loss.losses(80)[1])
    last = max(Fraction(2), Fraction(math.ceil(largest / rho)))
    if last > 10**15:
        raise Refused(
            "unknown", f"{name}: rho is too small beside the largest ratio to be decided."
        )
    real, terms = loss.losses(80)
    up = real.up

    def end(alpha, powers):
        """(α, the powers, g(α)), the latter rounded up."""
        total = Decimal(0)
        for (mass, _), power in together(terms, powers):
            total = up.fma(mass[1], power, total)
        moment = Fraction(real.outwards("ln", (total, total))[1])
        if moment > rho * alpha * (alpha - 1):
            need(loss.moment(alpha, 80)[0] <= rho * alpha * (alpha - 1), sentence)
        return alpha, powers, moment

    real.count_work(len(terms))
    powers = [real.outwards("exp", real.times(real.of(last - 1), ratio))[1] for _, ratio in terms]
    pieces = [((Fraction(1), [Decimal(1)] * len(terms), Fraction(0)), end(last, powers))]
    while pieces:
        low, high = pieces.pop()
        (a, left, start), (b, right, stop) = low, high
        if a == 1:
            decided = stop <= rho * (b - 1)
        else:
            slope = (stop - start) / (b - a)
            worst = min(max((slope / rho + 1) / 2, a), b)
            decided = start + slope * (worst - a) <= rho * worst * (worst - 1)
        if not decided:
            real.count_work(1, len(terms))
            powers = [up.next_plus(up.sqrt(up.multiply(x, y))) for x, y in together(left, right)]
            middle = end((a + b) / 2, powers)
            pieces += [(low, middle), (middle, high)]


def normal(x, real):
    """Φ(x) for a decimal x, enclosed: 1/2 - φ(t) Σ t^(2n+1)/(1·3·…·(2n+1)) for t = -x >= 0, and Φ(x) < e^(-t²/2)."""
    if x > 0:
        low, high = normal(x.copy_negate(), real)
        return real.down.subtract(1, high), real.up.subtract(1, low)
    t = x.copy_negate(), x.copy_negate()
    square = real.times(t, t)
    if square[0] > 5 * real.digits:
        return Decimal(0), Decimal((0, (1,), -real.digits))
    real.count_work(1)
    half = real.quotient(square, (Decimal(2), Decimal(2)))
    density = real.outwards("exp", (half[1].copy_negate(), half[0].copy_negate()))
    density = real.quotient(
        density, real.outwards("sqrt", real.times((Decimal(2), Decimal(2)), PI))
    )
    term, total, n = t, t, 0
    tiny = Decimal((0, (1,), -real.digits - 5))
    while (
        real.up.multiply(2, square[1]) > 2 * n + 3 or real.up.multiply(term[1], density[1]) > tiny
    ):
        n += 1
        real.count_work(0, 1)
        odd = Decimal(2 * n + 1)
        term = real.quotient(real.times(term, square), (odd, odd))
        total = real.sum(total, term)
    total = (
        total[0],
        real.up.add(total[1], term[1]),
    )  # each further term is at most half of the one before it
    mass = real.times(density, total)
    return real.down.subtract(Decimal("0.5"), mass[1]), real.up.subtract(Decimal("0.5"), mass[0])


def pi(digits):
    """π between two decimals: 16 arctan 1/5 - 4 arctan 1/239 in integers, each division off by less than 1."""
    unit, terms = 10 ** (digits + 20), 0

    def arctan(k):
        nonlocal terms
        power, total, n = unit // k, 0, 1
        while power:
            total += power // n if n % 4 == 1 else -(power // n)
            power //= k * k
            n += 2
        terms += n
        return total

    whole_number = 16 * arctan(5) - 4 * arctan(239)
    wide = 100 * terms
    scale = Context(prec=digits + 40, Emax=MAX_EMAX, Emin=MIN_EMIN)
    return tuple(
        scale.scaleb(Decimal(whole_number + sign * wide), -digits - 20) for sign in (-1, 1)
    )


PI = pi(DIGITS)


def check_gaussian(p, q, demand, name):
    """Refuse unless Φ^-1(P(A)) - Φ^-1(Q(A)) <= μ for every set A of outcomes.

    For each Q(A), P(A) is largest for a set of the outcomes of largest ratio (Neyman and Pearson); between two such
    sets the curve of (Q(A), P(A)) is straight and Φ(Φ^-1(·) + μ) concave, so the sets themselves decide.
    """
    (k, k_sum), (l, l_sum) = p, q
    outcomes = [
        (Fraction(x * l_sum, y * k_sum) if y else math.inf, x, y)
        for x, y in together(k, l)
        if x or y
    ]
    above, below = 0, 0
    for _, group in groupby(sorted(outcomes, reverse=True), key=lambda outcome: outcome[0]):
        for _, x, y in group:
            above, below = above + x, below + y
        if above * l_sum > below * k_sum:
            a, b = Fraction(above, k_sum), Fraction(below, l_sum)
            sentence = f"{name}: the trade-off curve falls below the Gaussian one."
            need(a < 1 and b > 0 and demand.mu, sentence)
            need(within_gaussian(a, b, demand.mu, name), sentence)


def within_gaussian(a, b, mu, name):
    """Whether a <= Φ(Φ^-1(b) + μ), for 0 < b < a < 1: Φ at both ends of a small interval around Φ^-1(b)."""
    small = min(b, 1 - a)
    digits = 40 + 2 * len(str(small.denominator // small.numerator))
    while digits <= DIGITS:
        real = Enclosed(digits)
        z, step = quantile(b, real), Decimal((0, (1,), -digits // 2))
        low, high = real.down.subtract(z, step), real.up.add(z, step)
        enclosed, shift, (least, most) = real.of(b), real.of(mu), real.of(a)
        if (
            normal(low, real)[1] <= enclosed[0]
            and most <= normal(real.down.add(low, shift[0]), real)[0]
        ):
            return True
        if (
            normal(high, real)[0] >= enclosed[1]
            and least > normal(real.up.add(high, shift[1]), real)[1]
        ):
            return False
        digits *= 2
    raise Refused("unknown", f"{name}: {DIGITS} digits do not decide whether mu is enough.")


def quantile(b, real):
    """About Φ^-1(b): Newton's steps on ln Φ, from the float or, far out, from the tail's size."""
    if 2 * b > 1:
        return quantile(1 - b, real).copy_negate()
    low, _ = real.of(b)
    context, far = real.down, b < Fraction(1, 10**300)
    tail = context.multiply(-2, context.ln(low))
    z = context.sqrt(tail).copy_negate() if far else Decimal(NormalDist().inv_cdf(float(b)))
    for _ in range(60):
        real.count_work(2)
        z = context.plus(z)
        reached = normal(z, real)[1]
        density = context.exp(context.divide(context.multiply(z, z).copy_negate(), 2))
        density = context.divide(density, context.sqrt(context.multiply(2, PI[0])))
        step = context.multiply(
            context.divide(reached, density), context.ln(context.divide(reached, low))
        )
        z = context.subtract(z, step)
        if step.copy_abs() < Decimal((0, (1,), -real.digits // 2 - 3)):
            break
    return z


# ------------------------------------------------------------------------------------- laws affine in a real input


def check_real_inputs(quantizer, demand):
    """Refuse unless the laws at every two real inputs meet the demand.

    pure, dp    max(0, P - E Q) is convex in P and in Q, and both are affine in their inputs on a piece: its sum is
                largest, and the ratio exceeds E first, at ends of pieces. All ordered pairs of end laws decide; pure is
                decided by each output's largest and least mass among them, and so is δ = 0 (`check_columns`).
    curve, tradeoff, renyi, zcdp, gdp    so are hockey sticks, which trade-off curves follow from, and Σ P^α Q^(1-α):
                as above.
    metric      P(i|x) <= e^(ε |x - x'|) P(i|x') for all x, x' holds just when every mass p is continuous, with
                |p'| <= ε p. On a piece p' is constant and p is least at an end.
    pdp         is convex in neither: see `check_pdp`.
    """
    knots, ends, notion, power = quantizer.knots, quantizer.laws, demand.notion, demand.power
    pieces = [*together(ends[::2], ends[1::2])]
    if notion == "metric":
        for (_, right), (left, _) in pairwise(pieces):
            need(right == left, "The law jumps at a knot, so no distance bounds its ratio.")
        for (a, b), (left_law, right_law) in together(pairwise(knots), pieces):
            for x, y in together(left_law[0], right_law[0]):
                p, q = Fraction(x, left_law[1]), Fraction(y, right_law[1])
                need(
                    abs(q - p) <= power.epsilon * (b - a) * min(p, q),
                    "A mass changes faster than epsilon allows.",
                )
    elif notion == "pdp":
        for p, q in product(dict.fromkeys(pieces), repeat=2):
            check_pdp(p, q, power, demand.delta)
    else:
        for p, q in product(dict.fromkeys(ends), repeat=2):
            check_pair(p, q, demand, "Two end laws")


def check_pdp(p_ends, q_ends, power, delta):
    """Refuse unless Σ p_i(s) over {i : p_i(s) > E q_i(t)} <= δ for all s, t in [0, 1].

    p_i is affine in s on its piece, q_i in t. The lines p_i(s) = E q_i(t) cut the unit square into cells. Inside a
    cell the set of violations is fixed, so its mass is affine in s: on the closed cell it is largest at the least or
    the largest s. On the lines themselves violations are only lost (the inequality is strict), so cells decide.

    The cells above an open interval of s keep their order in t as long as no two lines cross there and none enters or
    leaves the square: those s are `critical`. Between two neighbours of them one rational s shows all sets of
    violations, t upwards; each is then weighed at both neighbours. Every s and E t here is (x + y E)/z in integers.
    """
    p, p_sum = integer_lines(*p_ends)
    q, q_sum = integer_lines(*q_ends)
    # P > E Q  <=>  (a + da s) q_sum > E (b + db t) p_sum: the scales go into the numbers
    lines = [(a * q_sum, da * q_sum, b * p_sum, db * p_sum) for (a, da), (b, db) in together(p, q)]
    scale, u, v = p_sum * q_sum, delta.numerator, delta.denominator  # of a mass, and δ = u/v
    critical = {(0, 0, 1), (1, 0, 1)}
    for a, da, b, db in lines:
        if da:  # the line meets t = 0 and t = 1: a + da s = E b, = E (b + db)
            critical |= {number(-a, b, da), number(-a, b + db, da)}
    for (a, da, b, db), (c, dc, d, dd) in combinations(lines, 2):
        slope = da * dd - dc * db
        if db and dd and slope:  # they cross: (a + da s - E b)/db = (c + dc s - E d)/dd
            critical.add(number(c * db - a * dd, b * dd - d * db, slope))
    inside = [
        s for s in critical if compare(s, (0, 0, 1), power) >= 0 >= compare(s, (1, 0, 1), power)
    ]
    for low, high in pairwise(ordered(inside, power)):
        for mass, slope in violating_masses(lines, between(low, high, power), power):
            x, y, z = (
                high if slope > 0 else low
            )  # mass + slope s <= u/v scale, with s = (x + y E)/z
            need(
                power.sign(v * (mass * z + slope * x) - u * scale * z, v * slope * y) <= 0,
                "Two real inputs have violating outcomes that weigh more than delta.",
            )


def violating_masses(lines, s, power):
    """(mass, slope) of Σ a + da s over the violations, for every set of them that t in (0, 1) shows at s = (n, d)."""
    n, d = s
    mass = slope = 0
    events = []  # (E t, whether the line's outcome violates after it, mass, slope)
    for a, da, b, db in lines:
        here = a * d + da * n  # times d
        if not db:
            first = power.sign(here, -b * d) > 0
        else:  # here/d = E (b + db t) at E t = (here - E b d)/(d db); violations where E t is less (db > 0), or more
            at = number(here, -b * d, d * db)
            starts, ends = compare(at, (0, 0, 1), power) > 0, compare(at, (0, 1, 1), power) < 0
            first = starts if db > 0 else not starts
            if starts and ends:
                events.append((at, db < 0, a, da))
        if first:
            mass, slope = mass + a, slope + da
    events.sort(key=cmp_to_key(lambda event, other: compare(event[0], other[0], power)))
    yield mass, slope
    for k, (at, enters, a, da) in enumerate(events):
        mass, slope = (mass + a, slope + da) if enters else (mass - a, slope - da)
        if k + 1 == len(events) or compare(
            at, events[k + 1][0], power
        ):  # lines that meet here change together
            yield mass, slope


def integer_lines(p, q):
    """[(a, da)] with the mass at s equal to (a + da s)/scale, and the scale. p, q: the laws at s = 0 and 1."""
    return [(x * q[1], y * p[1] - x * q[1]) for x, y in together(p[0], q[0])], p[1] * q[1]


def number(x, y, z):
    """(x + y E)/z with z > 0."""
    return (x, y, z) if z > 0 else (-x, -y, -z)


def compare(a, b, power):
    """The sign of a - b, numbers (x + y E)/z."""
    (x, y, z), (p, q, r) = a, b
    return power.sign(x * r - p * z, y * r - q * z)


def ordered(numbers, power):
    """The different ones of numbers (x + y E)/z, least first."""
    values = sorted(numbers, key=cmp_to_key(lambda a, b: compare(a, b, power)))
    return values[:1] + [b for a, b in pairwise(values) if compare(a, b, power)]


def between(low, high, power):
    """(n, d): a rational n/d strictly between two numbers (x + y E)/z."""
    x, y, z = low
    level = 0
    while True:
        bits = 32 << level
        down, up, w = power.bounds(level)
        near = ((x << w) + y * (up if y > 0 else down) << bits) // (z << w)
        for n in (near, near + 1):  # about low 2^bits
            middle = n, 0, 1 << bits
            if compare(low, middle, power) < 0 < compare(high, middle, power):
                return n, 1 << bits
        level += 1


# ------------------------------------------------------------------------- noise on the integers and on the reals


class Line:
    """A law on all integers: f(first + i) = w_i; beyond the weights f(η ± P) = r f(η), outwards, r the ratio.

    P = f and Q = f(· + s) are compared on the integers of a window, and merged outside it: there P/Q depends on η
    modulo P alone, and outcomes of one ratio may be merged, as ratios of masses are all that a notion looks at.

    Noise on the reals has density f(j)/β on the cell [(j - 1/2)β, (j + 1/2)β), β = Δ/k, and a point mass (atom) at 0.
    At a shift (i + t)β, 0 <= t < 1, a share 1 - t of cell j faces cell j + i of the other law and a share t faces cell
    j + i + 1; the atom faces no mass. So what a notion sums there is (1 - t) that of shift i + t that of shift i + 1,
    and a largest ratio is one of theirs: k integer shifts decide.

    Where f is even and never rises with |η|, f(η + s) >= f(|η| + D) for every |s| <= D: the largest ratio of all is
    that at the shift D.
    """

    def __init__(self, first, weights, period, ratio, atom=Fraction(0)):
        self.first, self.w, self.period, self.r, self.atom = first, weights, period, ratio, atom
        self.last = first + len(weights) - 1
        ends = sum(weights[:period]) + sum(weights[-period:])
        self.all = sum(weights) + ratio / (1 - ratio) * ends + atom

    def f(self, eta):
        """Not normalised."""
        out = max(self.first - eta, eta - self.last, 0)
        blocks = -(-out // self.period)
        if blocks and not self.r:
            return Fraction(0)
        inside = eta + blocks * self.period if eta < self.first else eta - blocks * self.period
        return self.r**blocks * self.w[inside - self.first]

    def falls(self):
        """Whether f is even and never rises with |η|, as is seen where the last period, which repeats, is at η >= 0."""
        if self.first != -self.last or self.period > self.last + 1 or self.w != self.w[::-1]:
            return False
        right = [*self.w[self.last :], self.r * self.w[-self.period]]
        return right == sorted(right, reverse=True)

    def pair(self, s):
        """P and Q at a shift, as laws."""
        low, high = self.first - abs(s), self.last + abs(s)
        outcomes = [(self.f(eta), self.f(eta + s)) for eta in range(low, high + 1)]
        if self.r:
            tails = [*range(low - self.period, low), *range(high + 1, high + 1 + self.period)]
            outcomes += [
                (self.f(eta) / (1 - self.r), self.f(eta + s) / (1 - self.r)) for eta in tails
            ]
        if self.atom:
            outcomes += [(self.atom, Fraction(0)), (Fraction(0), self.atom)]
        return tuple(map(law_of, together(*outcomes)))

    def row(self, low, high):
        """The law of min(high, max(low, η)) on low..high."""
        inside = [self.f(eta) for eta in range(low, high + 1)]
        start = min(low, self.first)  # all below: down to where tails begin, and the tail itself
        below = sum(self.f(eta) for eta in range(start, low)) + self.tail(
            range(start - self.period, start)
        )
        inside[0] += below
        inside[-1] += self.all - below - sum(inside[1:], inside[0] - below)
        return law_of(inside)

    def tail(self, block):
        """Of one block and all those beyond it."""
        return sum(map(self.f, block)) / (1 - self.r) if self.r else Fraction(0)

    def mean(self, loss, tails):
        """E loss(η) of the weights, and of tails whose loss is Σ tails_k |η|^k, k <= 2."""
        total = sum(w * loss(self.first + i) for i, w in enumerate(self.w))
        if self.r:
            r, s = self.r, self.period
            sums = r / (1 - r), r / (1 - r) ** 2, r * (1 + r) / (1 - r) ** 3  # Σ b^k r^b, b >= 1
            right = [(w, self.last - i) for i, w in enumerate(reversed(self.w[-s:]))]
            left = [(w, -self.first - i) for i, w in enumerate(self.w[:s])]
            for w, a in right + left:  # |η| = a + b s in block b
                need(a > -s, "The tails must lie on either side of 0.")
                moments = (
                    sums[0],
                    a * sums[0] + s * sums[1],
                    a * a * sums[0] + 2 * a * s * sums[1] + s * s * sums[2],
                )
                total += w * sum(c * m for c, m in zip(tails, moments))  # noqa: B905
        return total / self.all


def law_of(masses):
    """Rationals as (integers, their sum) without a common factor."""
    masses = [*map(Fraction, masses)]
    common = lcm(x.denominator for x in masses)
    whole_numbers = [int(x * common) for x in masses]
    divisor = gcd(whole_numbers)
    return tuple(x // divisor for x in whole_numbers), sum(whole_numbers) // divisor


def line_loss(name, losses, mechanism):
    """The exact loss of unclamped noise: E|η|, E η², or the mean of losses that the file states for the weights."""
    line, beta, zero = mechanism.line, mechanism.width, Fraction(0)
    if losses is not None:
        own = (
            name not in {"absolute", "error-rate", *KNOWN}
            and mechanism.kind == "integer-noise"
            and not line.r
        )
        need(
            own and len(losses) == len(line.w),
            "There must be one loss for every weight of noise without tails.",
        )
        return line.mean(lambda eta: losses[eta - line.first], ())
    need(
        name in ("absolute", "squared"),
        "The loss of such noise is absolute, squared, or has costs in the file.",
    )
    if mechanism.kind == "integer-noise":
        return (
            line.mean(abs, (zero, 1))
            if name == "absolute"
            else line.mean(lambda j: j * j, (zero, zero, 1))
        )
    if name == "absolute":  # |x| has mean |j| β over cell j != 0, and β/4 over cell 0
        return beta * line.mean(lambda j: abs(j) or Fraction(1, 4), (zero, 1))
    return beta**2 * line.mean(lambda j: j * j + Fraction(1, 12), (Fraction(1, 12), zero, 1))


# ----------------------------------------------------------------------------------------------------- many runs


def check_runs(claim, mechanism):
    """Refuse unless T adaptive runs meet dp at (ε, δ) together.

    They do where no run has a ratio above e^(ε/T), and only then for δ = 0. Else, from above: the points (Q(A), P(A))
    of all comparisons, A the outcomes of largest ratio, lie under a concave curve, that of one pair of laws whose
    hockey stick is never less; T runs are no worse than T of that pair (`ratio_curve`, `Losses`). From below: T runs on
    the same neighbours (`costliest`).
    """
    runs, epsilon, delta = claim.runs, claim.epsilon, claim.delta
    share = Power(epsilon / runs)
    if not any(violations(p, q, share) for _, p, q in comparisons(mechanism)):
        return
    need(delta, f"{runs} runs: the largest losses add up to more than epsilon.")
    digits = 30 + len(str(runs)) + int(epsilon / 2)
    digits += len(str(int(1 / delta))) if delta * 10**DIGITS > 1 else DIGITS
    if digits > DIGITS:
        raise Refused("too large", f"{runs} runs would take more than {DIGITS} digits.")
    unit = 10**digits
    pair = ratio_curve(mechanism, unit)
    if composed_work(pair, claim.step, runs, digits) > LIMIT:
        raise Refused("too large", f"{runs} runs would take more than {LIMIT} units of work.")
    upper = Losses.of(pair, claim.step, digits, up=True).power(runs)
    if upper.excess(epsilon) <= delta * unit:
        return
    fine = claim.step / 8
    units = 0
    for p, q in costliest(mechanism, runs, epsilon):
        pair = [(x * unit // p[1], -(-y * unit // q[1])) for x, y in together(p[0], q[0]) if x]
        units += composed_work(pair, fine, runs, digits)
        if units <= LIMIT:
            least = Losses.of(pair, fine, digits, up=False).power(runs).excess(epsilon)
            need(
                least <= delta * unit,
                f"{runs} runs: delta is at least {shown(Fraction(least, unit))}.",
            )
    raise Refused(
        "unknown",
        f"{runs} runs: this grid of losses does not decide whether they are within delta.",
    )


def ratio_curve(mechanism, unit):
    """[(mass of P, mass of Q)] in integers over the unit, of the pair of laws whose curve of largest P(A) at each Q(A)
    is the least concave one above all comparisons' points, P(A) rounded up and Q(A) down; a Q of 0 is no rounding of
    its own: ratios beyond the unit count as infinite."""
    curve, seen = [(0, 0), (unit, unit)], set()
    for _, (k, k_sum), (l, l_sum) in comparisons(mechanism):
        if (k, l) in seen:
            continue
        seen.add((k, l))
        masses = [mass for mass in together(k, l) if any(mass)]
        points, above, below = [], 0, 0
        for x, y in sorted(
            masses, key=cmp_to_key(lambda a, b: b[0] * a[1] - a[0] * b[1])
        ):  # largest ratio first
            above, below = above + x, below + y
            points.append((below * unit // l_sum, -(-above * unit // k_sum)))
        hull = []
        for x, y in sorted(curve + points):
            while hull and (
                hull[-1][0] == x or (len(hull) > 1 and not turns_down(*hull[-2:], (x, y)))
            ):
                hull.pop()
            if not hull or y > hull[-1][1]:
                hull.append((x, y))
        curve = hull
    return [(curve[0][1], 0)] + [(b - a, y - x) for (x, a), (y, b) in pairwise(curve)]


def turns_down(a, b, c):
    """Whether b lies above the line from a to c."""
    return (b[1] - a[1]) * (c[0] - b[0]) > (c[1] - b[1]) * (b[0] - a[0])


def composed_work(pair, step, runs, digits):
    """The count of the module's docstring for a composition."""
    losses = [math.log(x) - math.log(y) for x, y in pair if x and y]
    points = math.ceil(Fraction(max(losses) - min(losses)) / step) + 1 if losses else 1
    longest = points * min(runs, 4 * math.isqrt(runs * digits) + 4)
    return len(pair) * (500 + 10 * digits) + 7 * longest * (20 + 3 * digits)


def costliest(mechanism, runs, epsilon):
    """The comparisons that T runs may exceed ε most on, judged in floats: by what Q never shows, and by the least of
    (Σ P (P/Q)^λ)^T e^(-λ ε) over λ."""
    scores = {}
    for _, p, q in comparisons(mechanism):
        masses = [
            (x / p[1], math.log(x) - math.log(y) - math.log(p[1]) + math.log(q[1]))
            for x, y in together(p[0], q[0])
            if x and y
        ]
        infinite = sum(x for x, y in together(p[0], q[0]) if not y) / p[1]
        largest = max((abs(loss) for _, loss in masses), default=0) or 1
        bounds = []
        for k in range(-4, 10):
            order = 2.0**k / largest
            moment = sum(mass * math.exp(min(order * loss, 600)) for mass, loss in masses)
            bounds.append(runs * math.log(moment) - order * float(epsilon) if moment else -math.inf)
        scores[p, q] = runs * infinite + math.exp(min(0.0, *bounds))
    return sorted(scores, key=scores.get, reverse=True)[:MOST_REFUTED]


class Losses:
    """Masses of P by the loss ln P/Q, (first + i) h, and where Q has none, in integers of 10^-digits, all rounded up or
    all down.

    An atom (p, q) between two points of the grid is, upwards, cut into two, at the points, of the same p and q in all,
    which a merger of the two undoes; downwards it moves to the lower point. A tail of less than 10^(8 - digits) goes,
    upwards, to the nearest point that is kept or to infinity, else it is dropped.
    """

    def __init__(self, first, masses, infinite, step, digits, up):
        self.first, self.masses, self.infinite, self.step, self.digits, self.up = (
            first,
            masses,
            infinite,
            step,
            digits,
            up,
        )

    @classmethod
    def of(cls, pair, step, digits, up):
        """pair: [(mass of P, mass of Q)] in integers of 10^-digits, a Q of 0 an infinite loss."""
        real, atoms, infinite = Enclosed(digits + 10), Counter(), 0
        unit = Fraction(1)

        def decay(index):  # e^(-index h)
            return (
                tuple(map(Fraction, real.outwards("exp", real.of(-index * step))))
                if index
                else (unit, unit)
            )

        for p, q in pair:
            if not q:
                infinite += p
                continue
            if not p:
                continue
            low, high = map(
                Fraction, real.outwards("ln", real.of(Fraction(p, q))) if p != q else (0, 0)
            )
            if not up:
                atoms[math.floor(low / step)] += p
                continue
            above = math.ceil(high / step)
            left, right = decay(above - 1), decay(above)
            if left[0] <= right[1]:  # a step beyond the digits
                atoms[above] += p
                continue
            most, least = (
                (q - p * right[0]) / (left[0] - right[1]),
                (q - p * right[1]) / (left[1] - right[0]),
            )
            atoms[above - 1] += math.ceil(
                min(p, max(0, most))
            )  # of p, the share at the lower point
            atoms[above] += math.ceil(p - min(p, max(0, least)))
        first = min(atoms, default=0)
        masses = [atoms[i] for i in range(first, max(atoms, default=0) + 1)]
        return cls(first, masses, infinite, step, digits, up)

    def __mul__(self, other):
        """Of both runs: the product of two polynomials, in one of two decimals whose digits hold the coefficients."""
        width, digits = 2 * self.digits + 8, self.digits
        longest = len(self.masses) + len(other.masses)
        exactly = Context(
            prec=longest * width, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[InvalidOperation, Inexact]
        )
        factors = [
            Decimal("".join(f"{x:0{width}d}" for x in reversed(law.masses)))
            for law in (self, other)
        ]
        digits_of = f"{exactly.multiply(*factors):f}".zfill((longest - 1) * width)
        masses = [
            int(digits_of[at : at + width - digits]) + self.up
            for at in range(0, len(digits_of), width)
        ]
        mine, others = sum(self.masses), sum(other.masses)
        if max(mine, others) > 2 * 10**digits:
            raise Refused("unknown", "The step is too small for the digits of the losses.")
        infinite = self.infinite * (other.infinite + others) + mine * other.infinite
        infinite = -(-infinite // 10**digits) if self.up else infinite // 10**digits
        first, masses = self.first + other.first, masses[::-1]
        low, high, below, above = 0, len(masses), 0, 0
        while low < high and below + masses[low] <= 10**8:
            below, low = below + masses[low], low + 1
        while low < high and above + masses[high - 1] <= 10**8:
            above, high = above + masses[high - 1], high - 1
        masses = masses[low:high] or [0]
        if self.up:
            masses[0], infinite = masses[0] + below, infinite + above
        return Losses(first + low, masses, infinite, self.step, digits, self.up)

    def power(self, runs):
        """Of so many runs."""
        half = self.power(runs // 2) if runs > 1 else None
        twice = self if half is None else half * half
        return twice * self if half is not None and runs % 2 else twice

    def excess(self, epsilon):
        """δ at ε in the unit of the masses, rounded to its side: what is infinite, + Σ mass (1 - e^(ε - loss))."""
        start = max(0, int(epsilon // self.step) + 1 - self.first)  # the first loss above ε
        beyond = self.masses[start:]
        real, scale, side = (
            Enclosed(self.digits + 20),
            10 ** (self.digits + 10),
            0 if self.up else 1,
        )

        def power(exponent):  # e^exponent for exponent <= 0, over the scale, to the other side
            value = Fraction(real.outwards("exp", real.of(exponent))[side]) * scale
            return math.ceil(value) if side else math.floor(value)

        factor, tilted = power(-self.step), 0
        for mass in reversed(beyond):
            tilted = tilted * factor
            tilted = (-(-tilted // scale) if side else tilted // scale) + mass * 10**10
        tilted *= power(epsilon - self.step * (self.first + start))
        return self.infinite + sum(beyond) - Fraction(tilted, scale * 10**10)


# ------------------------------------------------------------------------------------------------- loss and bias


def check_objective(objective, mechanism):
    """Refuse unless the stated value is the exact loss, rounded up by at most 1e-15 of it."""
    name, value, losses = objective.name, objective.value, objective.losses
    law = mechanism.laws[0] if mechanism.laws else None
    if objective.rows is not None:
        need(mechanism.kind == "channel" or mechanism.clamp, "Only a channel has an expected loss.")
        exact = expected_loss(objective, mechanism.laws)
    elif mechanism.line is not None:
        need(not mechanism.clamp, "The loss of clamped noise is an expected loss.")
        exact = line_loss(name, losses, mechanism)
    else:
        need(
            mechanism.kind == "noise" and name != "worst-squared",
            "This is no objective of such a mechanism.",
        )
        need(
            (losses is None) == (name == "error-rate"),
            "Losses belong to every objective but error-rate.",
        )
        losses = (0,) + (1,) * (len(law[0]) - 1) if losses is None else losses
        need(len(losses) == len(law[0]), "There must be one loss for every noise value.")
        if name in KNOWN:
            parts = [[KNOWN[name](part, size) for part in range(size)] for size in mechanism.sizes]
            known = all(c == sum(point) for c, point in together(losses, product(*parts)))
            need(known, f"The losses are not those of {name}.")
        exact = mean(law, losses)
    slack = max(abs(exact), Fraction(1, 10**300)) / 10**15
    need(
        exact <= value <= exact + slack,
        f"The {name} is {shown(exact)}, not {shown(value)}.",
        "false",
    )


KNOWN = {  # summed over the factors of the group
    "squared": lambda part, size: (
        part * (size - part)
    ),  # E (answer - truth)² over uniform truths in 0..size-1
    "eta-squared": lambda part, size: part**2,
    "circular-squared": lambda part, size: min(part, size - part) ** 2,
}


def mean(law, values):
    """Σ P(i) values_i."""
    return sum((x * value for x, value in together(law[0], values)), Fraction(0)) / law[1]


def expected_loss(objective, laws):
    """Σ_y prior(y) Σ_o Pr[o | row of y] loss(o - y), over Σ_y prior(y)."""
    labels, prior, outputs, rows = (
        objective.labels,
        objective.prior,
        objective.outputs,
        objective.rows,
    )
    need(len(labels) == len(prior) == len(rows), "Labels, prior and rows differ in length.")
    need(min(prior, default=0) >= 0 and any(prior), "The prior must be weights >= 0, not all 0.")
    need(len(outputs) == len(laws[0][0]), "There must be one value for every output.")
    need(all(0 <= row < len(laws) for row in rows), "A label has no such row.")
    loss, scale, unit = loss_named(objective.name, (*labels, *outputs))
    outputs, total = [int(o * scale) for o in outputs], Fraction(0)
    for y, weight, row in together((int(y * scale) for y in labels), prior, rows):
        k, k_sum = laws[row]
        total += weight * Fraction(
            sum(x * loss(o - y) for x, o in together(k, outputs) if x), k_sum
        )
    return total / sum(prior) / unit


def loss_named(name, values):
    """(f, scale, unit): loss(r) = f(r scale)/unit for r = output - label, with integers r scale for all the values."""
    kind, colon, text = name.partition(":")
    number = re.fullmatch(r"[0-9]{1,40}(\.[0-9]{1,40})?(e-?[0-9]{1,3})?", text)
    h = Fraction(text) if number else Fraction(1)
    scale = lcm([h.denominator, *(x.denominator for x in values)])
    u, v, top = h.numerator, h.denominator, int(h * scale)
    losses = {
        "squared": (not colon, lambda r: r * r, scale, scale**2),
        "absolute": (not colon, abs, scale, scale),
        "error-rate": (not colon, lambda r: int(r != 0), scale, 1),
        "pinball": (number and 0 < h < 1, lambda r: -u * r if r < 0 else (v - u) * r, scale, v * scale),
        "huber": (
            number and h > 0, lambda r: r * r if abs(r) <= top else top * (2 * abs(r) - top), scale, 2 * scale**2
        ),
    }  # fmt: skip
    need(kind in losses and losses[kind][0], f"There is no loss {name!r}.")
    return losses[kind][1:]


def check_bias(bias, mechanism):
    """Refuse unless the largest |mean of the output - input| is as stated; it is affine in a real input."""
    laws = mechanism.laws
    need(mechanism.kind in ("channel", "quantizer"), "Noise has no bias.")
    about = len(bias.outputs) == len(laws[0][0]) and len(bias.inputs) == len(laws)
    if mechanism.kind == "quantizer":
        places = tuple(x for piece in pairwise(mechanism.knots) for x in piece)
        about = (bias.outputs, bias.inputs) == (mechanism.outputs, places)
    wrong = (
        "false" if mechanism.kind == "quantizer" else "unreadable"
    )  # a quantizer has inputs and outputs of its own
    need(about, "The bias is about other inputs or outputs.", wrong)
    worst = max(abs(mean(law, bias.outputs) - x) for law, x in together(laws, bias.inputs))
    need(worst == bias.worst, f"The bias is {shown(worst)}, not {shown(bias.worst)}.", "false")


# ---------------------------------------------------------------------------------------- neighbours and the count


def negative(shift, sizes):
    """-shift in the group."""
    return tuple(-part % size for part, size in together(shift, sizes))


def moved(values, sizes, shift):
    """[f(η + shift)] in row-major order: rotated along every axis."""
    stride = len(values)
    for size, part in together(sizes, shift):
        block, stride = stride, stride // size
        starts, cut = range(0, len(values), block), part * stride
        values = [x for at in starts for x in values[at + cut : at + block] + values[at : at + cut]]
    return values


def check_privacy(mechanism, notion, budgets, others):
    """Refuse unless every comparison of the mechanism meets the notion.

    budgets: {label: first parameter}, or {None: it} for all; others: the other parameters.
    """
    first = PARAMETERS[notion][0]
    demands = {value: Demand(notion, {first: value, **others}) for value in budgets.values()}
    if by_columns(mechanism, notion, budgets, others):
        check_columns(mechanism.laws, demands[budgets[None]].power)
        return
    if mechanism.kind == "quantizer":
        check_real_inputs(mechanism, demands[budgets[None]])
        return
    farthest = [(mechanism.reach,)] if by_farthest(mechanism, notion, budgets, others) else None
    for label, p, q in comparisons(mechanism, farthest):
        demand = demands[budgets[None] if None in budgets else budgets[label]]
        check_pair(p, q, demand, f"Neighbours {label}")


def comparisons(mechanism, labels=None):
    """(label, P, Q) of every comparison; of a quantizer those of its end laws, which decide all hockey sticks. labels:
    of the comparisons that decide, where others do not."""
    if mechanism.kind == "quantizer":
        for p, q in product(dict.fromkeys(mechanism.laws), repeat=2):
            yield None, p, q
    for label in labels or mechanism.labels:
        if mechanism.kind == "noise":
            p = mechanism.laws[0]
            q = tuple(moved(p[0], mechanism.sizes, label)), p[1]
        elif mechanism.line is not None and not mechanism.clamp:
            p, q = mechanism.line.pair(*label)
        else:
            p, q = (mechanism.laws[row] for row in label)
        yield label, p, q


def by_columns(mechanism, notion, budgets, given):
    """Whether each output's largest and least mass decide: pure ε, or δ = 0, every two rows (end laws) neighbours."""
    rows = len(mechanism.laws)
    every = mechanism.kind == "quantizer" or (
        mechanism.kind == "channel" and len(mechanism.labels) == rows**2 - rows
    )
    return every and by_ratio(notion, budgets, given)


def by_farthest(mechanism, notion, budgets, given):
    """Whether the largest shift alone decides: pure ε, or δ = 0, of noise that never rises with its size (`Line`)."""
    noise = mechanism.line is not None and not mechanism.clamp
    return noise and by_ratio(notion, budgets, given) and mechanism.line.falls()


def by_ratio(notion, budgets, given):
    """Whether no outcome may exceed e^epsilon times its mass in the other law, with one epsilon for all."""
    return (
        notion == "pure" or (notion in ("dp", "pdp") and not given["delta"])
    ) and None in budgets


def check_columns(laws, power):
    """Refuse unless no output is more than E times as likely in one row as in another."""
    for output, column in enumerate(together(*(k for k, _ in laws))):
        most, least = (column[0], laws[0][1]), (column[0], laws[0][1])
        for x, (_, total) in together(column, laws):
            if x * most[1] > most[0] * total:
                most = x, total
            if x * least[1] < least[0] * total:
                least = x, total
        fits = power.sign(most[0] * least[1], -least[0] * most[1]) <= 0
        need(fits, f"Output {output} exceeds e^epsilon times its mass in another row.")


def bits_of(x):
    """Of the numerator and the denominator."""
    return x.numerator.bit_length() + x.denominator.bit_length()


def work(mechanism, notion, budgets, given, objective, bias, composed=None):
    """The count of the module's docstring. given: the other parameters of the claim."""
    laws, labels = mechanism.laws, ()
    points = budgets.get(None) if notion in ("curve", "tradeoff") else None
    numbers = [number for name, number in given.items() if name != "delta"]
    numbers += (
        [*budgets.values()] if points is None else [number for point in points for number in point]
    )
    others = [*mechanism.knots, *mechanism.outputs] if mechanism.kind == "quantizer" else []
    if objective is not None:
        labels = objective.labels
        others += [
            objective.value,
            *(objective.losses or ()),
            *labels,
            *objective.prior,
            *objective.outputs,
        ]
    if bias is not None:
        others += [*bias.outputs, *bias.inputs, bias.worst]
    if mechanism.line is None:
        c = len({*laws}) ** 2 if mechanism.kind == "quantizer" else len(mechanism.labels)
        n, count, b = len(laws[0][0]), len(laws), max(total.bit_length() for _, total in laws)
    else:
        c, n, count, b = mechanism.size
    b += bits_of(given.get("delta", Fraction(0))) + max(map(bits_of, numbers))
    twos = [(x.denominator & -x.denominator).bit_length() - 1 for x in others]
    odd = {x.denominator >> two for x, two in together(others, twos)}
    w = b + max(twos, default=0) + sum(part.bit_length() for part in odd)
    w += max((x.numerator.bit_length() for x in others), default=0)
    extra = c * n * (300 + (b // 64) ** 2) if composed is not None else 0
    if by_columns(mechanism, notion, budgets, given) or (
        mechanism.kind == "quantizer" and notion == "metric"
    ):
        c = min(c, n)
    if by_farthest(mechanism, notion, budgets, given):
        c = 1
    t = n * (count + len(labels))
    each = 1 if points is None else len(points) * (16 if notion == "tradeoff" else 1)
    each = each * (4 + (b // 256) ** 2) + SERIES.get(notion, 0)
    units = c * n * each + 1000 * c + (c + 8) * (b // 64) ** 2
    units += t * (4 + (w // 256) ** 2) + (w // 64) ** 2
    if mechanism.kind == "quantizer" and notion == "pdp":
        units += (len(laws) // 2) ** 2 * n**4 * (100 + 2 * (b // 100) ** 2)
    return units + extra


# ------------------------------------------------------------------------------------------------- reading a file
# A reader takes a JSON value and what to call it, and returns what is meant.


def typed(kind):
    """The reader of values of one JSON type, true and false not being integers."""

    def read_typed(data, what):
        need(type(data) is kind, f"{what} must be of another type than {type(data).__name__}.")
        return data

    return read_typed


def items(reader):
    """The reader of lists of such values, as tuples."""
    return lambda data, what: tuple(
        reader(x, f"An entry of {what}") for x in typed(list)(data, what)
    )


def fields(data, what, **readers):
    """An object that has exactly these entries, each read by its reader."""
    need(
        isinstance(data, dict) and data.keys() == readers.keys(),
        f"{what} must have the entries {', '.join(readers)}.",
    )
    return SimpleNamespace(**{name: reader(data[name], name) for name, reader in readers.items()})


def whole(data, what):
    """An integer >= 0 in hexadecimal, "0x1f"."""
    fits = (
        isinstance(data, str)
        and len(data) <= 65538
        and re.fullmatch("0x(0|[1-9a-fA-F][0-9a-fA-F]*)", data)
    )
    need(fits, f"{what} must be a hexadecimal integer.")
    return int(data, 16)


def rational(data, what, characters=5000):
    """An exact number: "0.1", "1e-9", "-1/3", "0x1f/0x20"."""
    top, *bottom = typed(str)(data, what).split("/")
    if len(bottom) == 1 and data.lstrip("-").startswith("0x"):
        x, y = whole(top[top.startswith("-") :], what), whole(bottom[0], what)
        x = -x if data[0] == "-" else x
    else:
        short = (
            len(bottom) <= 1 and len(data) <= characters and data.isascii() and data == data.strip()
        )
        need(short, f"{what} must be an exact number.")
        x, y = decimal(top, what), decimal(bottom[0], what) if bottom else 1
    need(y != 0, f"{what} divides by zero.")
    return Fraction(x) / y


def decimal(text, what):
    """A decimal of at most 5000 digits before or after the point."""
    try:
        value = Decimal("nan" if "_" in text else text.strip())
    except InvalidOperation:
        value = Decimal("nan")
    need(
        value.is_finite() and (value == 0 or abs(value.adjusted()) <= 5000),
        f"{what} must be an exact number.",
    )
    return Fraction(value) if value else Fraction(0)


def read_law(data, what):
    """(integers, their sum), without a common factor."""
    law = fields(data, what, total=whole, weights=items(whole))
    need(law.total == sum(law.weights) > 0, f"{what}: the weights do not add up to the total.")
    need(gcd(law.weights) == 1, f"{what}: the weights have a common factor.")
    return law.weights, law.total


text, integers, rationals, anything = (
    typed(str),
    items(typed(int)),
    items(rational),
    lambda data, what: data,
)


def read_noise(data):
    """The group, one law, and the differences that are compared as labels."""
    shape = {"kind": text, "sizes": integers, "shifts": items(integers), "directed": typed(bool)}
    noise = fields(data, "The noise", **shape, total=anything, weights=anything)
    noise.laws = [read_law({"total": noise.total, "weights": noise.weights}, "The noise")]
    sizes = noise.sizes
    need(
        len(sizes) <= 32 and all(0 < size < 1 << 40 for size in sizes),
        "There may be 32 positive sizes.",
    )
    need(math.prod(sizes) == len(noise.weights) > 1, "The weights do not fill the group.")
    given = set()
    for shift in noise.shifts:
        inside = len(shift) == len(sizes) and all(
            abs(part) < size for part, size in together(shift, sizes)
        )
        need(inside and any(shift), "A shift must lie in the group and not be 0.")
        given.add(tuple(part % size for part, size in together(shift, sizes)))
    need(1 <= len(given) <= 1_000_000, "There must be 1 to 1000000 shifts.")
    noise.labels = sorted(
        given if noise.directed else given | {negative(shift, sizes) for shift in given}
    )
    return noise


def read_column(column, rows):
    """The weights of runs (so many rows of this weight)."""
    weights = []
    for run, weight in zip(column[::2], column[1::2]):  # noqa: B905
        need(
            type(run) is int and 0 < run <= rows - len(weights),
            "A run must be of rows that are left.",
        )
        weights += [whole(weight, "A weight")] * run
    need(
        len(weights) == rows and len(column) % 2 == 0,
        "A column must be runs and weights for every row.",
    )
    return weights


def lowest_terms(weights):
    """(integers without a common factor, their sum)."""
    factor = gcd(weights)
    need(factor, "Every row must be a law.")
    return tuple(x // factor for x in weights), sum(weights) // factor


def read_channel(data, _="The channel"):
    """The rows as laws, and the ordered pairs that are compared as labels; of a large channel by columns."""
    if isinstance(data, dict) and "columns" in data:
        readers = {
            "kind": text,
            "rows": typed(int),
            "columns": items(items(anything)),
            "pairs": text,
        }
        channel = fields(data, "The channel", **readers)
        need(
            channel.pairs == "all" and channel.rows > 1,
            "Columns are those of two rows or more, all neighbours.",
        )
        need(0 < channel.rows * len(channel.columns) <= CELLS, f"There may be {CELLS} weights.")
        rows = together(*(read_column(column, channel.rows) for column in channel.columns))
        channel.laws, channel.labels = (
            [*map(lowest_terms, rows)],
            [*permutations(range(channel.rows), 2)],
        )
        return channel
    channel = fields(data, "The channel", kind=text, rows=items(read_law), pairs=items(integers))
    channel.laws, channel.labels = channel.rows, sorted(set(channel.pairs))
    need(len({len(k) for k, _ in channel.laws}) == 1, "The rows must have one length.")
    for pair in channel.labels:
        different = (
            len(pair) == 2
            and pair[0] != pair[1]
            and all(0 <= row < len(channel.laws) for row in pair)
        )
        need(different, "A pair must be two different rows.")
    need(channel.labels, "There must be a pair of neighbouring rows.")
    return channel


def read_range(data):
    """A channel, of which real answers its rows are, and which of these are neighbours: those within the sensitivity.

    Answers x < x' of neighbours are in rows a <= b: in cells end_a <= x < end_a+1 and x' >= end_b, so that two are
    neighbours where end_b - end_a+1 < sensitivity. At ends an answer goes to one of the two around it, with one draw
    for all answers and itself as the mean: then where end_b-1 - end_a < sensitivity as well.
    """
    readers = {
        "ends": rationals,
        "sensitivity": rational,
        "at_ends": typed(bool),
        "outputs": rationals,
    }
    law = fields(data, "The range", kind=text, channel=read_channel, **readers)
    channel, ends, reach = law.channel, law.ends, law.sensitivity
    need(len(ends) > 1 and all(a < b for a, b in pairwise(ends)), "The ends must increase.")
    need(reach > 0, "The sensitivity must be positive.")
    need(
        len(channel.laws) == len(ends) - (not law.at_ends),
        "There must be a row for each cell, or each end.",
    )
    need(len(channel.laws[0][0]) == len(law.outputs), "Every law must be one on the outputs.")
    rows, compared = len(channel.laws), set(channel.labels)
    for a, b in () if len(compared) == rows**2 - rows else combinations(range(rows), 2):
        near = ends[b] - ends[a + 1] < reach or (law.at_ends and ends[b - 1] - ends[a] < reach)
        need(
            not near or {(a, b), (b, a)} <= compared,
            f"Rows {a} and {b} are of neighbouring answers.",
        )
    channel.kind, channel.mixed = "channel", law.at_ends
    channel.range = f"all real answers in [{shown(ends[0])}, {shown(ends[-1])}], those at most {shown(reach)} apart"
    return channel


def read_nearest(data):
    """m outputs in order, of which the `own` that are nearest to a real answer weigh odds to 1 of any other; with
    probability `direct` instead that of n steps in which the answer lies.

    Two answers have at most r = min(own, m - own) own outputs each that are not the other's. Those of one answer, those
    of the other, and all others are outcomes of one ratio each: (r odds, r, rest) against (r, r odds, rest). Where they
    have fewer, part of the first two outcomes is moved to the third, which exceeds nothing. Steps are two more.
    """
    readers = {
        "ends": rationals,
        "outputs": rationals,
        "own": typed(int),
        "odds": rational,
        "direct": rational,
        "steps": typed(int),
    }
    law = fields(data, "The nearest outputs", kind=text, **readers)
    m, odds = len(law.outputs), law.odds
    need(
        len(law.ends) == 2 and law.ends[0] < law.ends[1], "The ends must be two increasing numbers."
    )
    steps = [law.ends[0], *law.outputs, law.ends[1]]
    need(
        all(a <= b for a, b in pairwise(steps)), "The outputs must not fall, and lie in the range."
    )
    need(1 <= law.own < m, "Some outputs must be own, and some others.")
    need(odds >= 1, "The odds must be at least 1.")
    need(0 <= law.direct <= 1, "The probability of a step must lie in [0, 1].")
    need(law.steps >= 1, "There must be a step.")
    # some may be published as one double
    law.mixed = law.direct > 0 or 1 < len({float(output) for output in law.outputs}) < m
    r, direct, unit = min(law.own, m - law.own), law.direct.numerator, law.direct.denominator
    a, b = (unit - direct) * odds.numerator, (unit - direct) * odds.denominator
    step = direct * (law.own * odds.numerator + (m - law.own) * odds.denominator)
    rest, steps = (law.own - r) * a + (m - law.own - r) * b, (step, 0) if step else ()
    law.laws = [
        lowest_terms((r * a, r * b, rest, *steps)),
        lowest_terms((r * b, r * a, rest, *steps[::-1])),
    ]
    law.labels = [(0, 1), (1, 0)]
    law.range = f"all real answers in [{shown(law.ends[0])}, {shown(law.ends[1])}], the {law.own} nearest of {m} outputs"
    return law


def read_quantizer(data):
    """The knots, the outputs, and the laws at both ends of every piece."""
    readers = {"kind": text, "knots": rationals, "outputs": rationals, "ends": items(read_law)}
    quantizer = fields(data, "The quantizer", **readers)
    knots, quantizer.laws, quantizer.labels = quantizer.knots, quantizer.ends, ()
    need(len(knots) >= 2 and all(a < b for a, b in pairwise(knots)), "The knots must increase.")
    need(len(quantizer.laws) == 2 * len(knots) - 2, "There must be two laws for each piece.")
    need(
        all(len(k) == len(quantizer.outputs) for k, _ in quantizer.laws),
        "Every law must be one on the outputs.",
    )
    return quantizer


def read_line(data, reach, point_mass, **others):
    """A law on the integers, compared at the shifts ±1..±reach(fields)."""
    fields_of_law = {
        "first": typed(int),
        "period": typed(int),
        "ratio": rational,
        "total": anything,
        "weights": anything,
    }
    line = fields(data, "The noise", kind=text, **others, **fields_of_law)
    weights, total = read_law({"total": line.total, "weights": line.weights}, "The noise")
    need(
        abs(line.first) < 1 << 40 and 1 <= line.period <= len(weights),
        "The tails must repeat some of the weights.",
    )
    need(0 <= line.ratio < 1, "The ratio must lie in [0, 1).")
    line.reach, line.clamp, line.width, line.laws = reach(line), None, None, ()
    need(1 <= line.reach <= 1 << 14, "There must be 1 to 16384 shifts.")
    mass, bits, d, tailed = point_mass(line), bits_of(line.ratio), line.reach, line.ratio > 0
    need(mass >= 0, "The atom must be at least 0.")
    line.line = Line(line.first, weights, line.period, line.ratio, mass)
    b = (
        total.bit_length()
        + (bits * (-(-d // line.period) + 3) if tailed else 0)
        + (bits_of(mass) if mass else 0)
    )
    line.size = (
        2 * d,
        len(weights) + 2 * d + (2 * line.period if tailed else 0) + (2 if mass else 0),
        1,
        b,
    )
    line.labels = [(s,) for s in range(-d, d + 1) if s]
    line.total = total
    return line


def read_integer_noise(data):
    """Noise on the integers; clamped, its rows and their ordered pairs."""
    noise = read_line(
        data,
        lambda line: line.sensitivity,
        lambda line: Fraction(0),
        sensitivity=typed(int),
        clamp=anything,
    )
    ends = data["clamp"]
    if ends is None:
        return noise
    low, high = integers(ends, "clamp") if len(typed(list)(ends, "clamp")) == 2 else (0, 0)
    answers, d = high - low + 1, noise.reach
    need(
        1 < answers <= 10_001 and d < answers,
        "There must be 2 to 10001 answers, and more than the sensitivity.",
    )
    count = d * (2 * answers - d - 1)
    if 1000 * count > LIMIT:
        raise Refused(
            "too large", f"It would take {1000 * count} units of work or more; {LIMIT} are allowed."
        )
    tails = (-(-answers // noise.period) + 2) * bits_of(noise.ratio) if noise.ratio else 0
    noise.clamp, noise.size = (
        (low, high),
        (count, answers, answers, noise.total.bit_length() + tails),
    )
    near = ((i, j) for i in range(answers) for j in range(max(0, i - d), min(answers, i + d + 1)))
    noise.labels = [pair for pair in near if pair[0] != pair[1]]
    return noise


def read_real_noise(data):
    """Noise on the reals: the cells, the atom at 0, and the width of a cell."""
    readers = {"sensitivity": rational, "grid": rational, "steps": typed(int), "atom": rational}
    if isinstance(data, dict) and "clamp" in data:  # of what is published, after the noise
        readers["clamp"] = rationals
    noise = read_line(data, lambda line: line.steps, lambda line: line.atom, **readers)
    if "clamp" in data:
        need(len(data["clamp"]) == 2, "The clamp must be two numbers.")
        low, high = rationals(data["clamp"], "clamp")
        need(low < high, "The clamp must be two increasing numbers.")
    need(noise.sensitivity > 0 and noise.grid > 0, "Sensitivity and grid must be positive.")
    need(
        Fraction(1, 10**100) < noise.sensitivity < 10**100,
        "The sensitivity must lie between 1e-100 and 1e100.",
    )
    need(
        not noise.atom or noise.line.first <= 0 <= noise.line.last,
        "The cells must lie around the atom.",
    )
    noise.width = noise.sensitivity / noise.steps
    return noise


KINDS = {
    "noise": read_noise,
    "channel": read_channel,
    "range": read_range,
    "nearest-outputs": read_nearest,
    "quantizer": read_quantizer,
    "integer-noise": read_integer_noise,
    "real-noise": read_real_noise,
}


def read_budgets(data, mechanism, name):
    """{label: number}, the label None meaning all comparisons."""
    if isinstance(data, str):
        budgets = {None: rational(data, name)}
    else:
        listed = items(items(anything))(data, name)
        need(
            all(len(item) == 2 for item in listed), f"{name} must be a list of labels and numbers."
        )
        budgets = {integers(label, "A label"): rational(value, name) for label, value in listed}
        need(len(budgets) == len(listed), f"{name} must be given once for each label.")
        need(
            budgets and {*budgets} == {*mechanism.labels},
            f"{name} must be given for every comparison, no others.",
        )
        if mechanism.kind == "noise" and not mechanism.directed:
            same = all(
                budgets[negative(shift, mechanism.sizes)] == value
                for shift, value in budgets.items()
            )
            need(same, f"{name} differs between a shift and its negative.")
    need(
        all(0 <= value <= 10**6 for value in budgets.values()), f"{name} must lie in [0, 1000000]."
    )
    return budgets


def read_function(data):
    """The points (α, β) of a trade-off function, from α = 0 to β = 0."""
    points = tuple(items(rationals)(data, "The function"))
    need(
        len(points) > 1 and all(len(point) == 2 for point in points),
        "The function must be pairs of alpha and beta.",
    )
    need(all(0 <= x <= 1 for point in points for x in point), "Alpha and beta must lie in [0, 1].")
    points = tuple(sorted(points))
    need(
        all(a < a2 for (a, _), (a2, _) in pairwise(points)),
        "The function must have each alpha once.",
    )
    need(
        points[0][0] == 0 < points[0][1] and points[-1][1] == 0,
        "The function must go from alpha = 0 to beta = 0.",
    )
    need(all(a + b <= 1 for a, b in points), "The function must be at most 1 - alpha.")
    slopes = [(b2 - b) / (a2 - a) for (a, b), (a2, b2) in pairwise(points)]
    need(slopes[-1] <= 0 and sorted(slopes) == slopes, "The function must be convex and not rise.")
    return points


def read_claim(data, mechanism):
    """The notion, {label: first parameter} (None: all comparisons), and {name: other parameter}."""
    notion = data.get("notion") if isinstance(data, dict) else None
    need(
        isinstance(notion, str) and notion in PARAMETERS,
        f"The notion must be one of {', '.join(PARAMETERS)}.",
    )
    first, *rest = PARAMETERS[notion]
    readers = {"notion": text, first: anything, **dict.fromkeys(rest, rational)}
    claim = vars(fields(data, "The claim", **readers))
    if notion == "curve":
        points = tuple(items(rationals)(claim["curve"], "The curve"))
        need(
            points and all(len(point) == 2 for point in points),
            "The curve must be pairs of epsilon and delta.",
        )
        inside = all(0 <= epsilon <= 10**6 and 0 <= delta <= 1 for epsilon, delta in points)
        need(inside, "Epsilon must lie in [0, 1000000], delta in [0, 1].")
        need(
            len({epsilon for epsilon, _ in points}) == len(points),
            "The curve must have each epsilon once.",
        )
        deltas = [delta for _, delta in sorted(points)]
        need(
            deltas == sorted(deltas, reverse=True),
            "The delta of a curve must not grow with epsilon.",
        )
        return notion, {None: points}, {}
    if notion == "tradeoff":
        return notion, {None: read_function(claim["tradeoff"])}, {}
    others = {name: claim[name] for name in rest}
    if "delta" in others:
        delta, most = others["delta"], notion in ("dp", "pdp")
        need(0 <= delta <= most, "Delta must lie in [0, 1], and be 0 for pure and metric.")
    need(1 < others.get("alpha", 2) <= 10**6, "Alpha must lie in (1, 1000000].")
    return notion, read_budgets(claim[first], mechanism, first), others


def read_composed(data):
    """runs, epsilon, delta, and the step of the grid."""
    claim = fields(
        data, "The composed claim", runs=typed(int), epsilon=rational, delta=rational, step=rational
    )
    need(1 <= claim.runs <= 10**6, "There must be 1 to 1000000 runs.")
    need(
        0 <= claim.epsilon <= 10**6 and 0 <= claim.delta <= 1,
        "Epsilon must lie in [0, 1000000], delta in [0, 1].",
    )
    need(0 < claim.step <= 10**6, "The step must lie in (0, 1000000].")
    need(
        claim.step.denominator.bit_length() <= 256,
        "The step must have a denominator of at most 256 bits.",
    )
    return claim


def read_objective(data):
    """The losses of noise (None: error-rate), or labels, prior, outputs and rows of a channel."""
    if data is None:
        return None
    entries = {"losses": None, "labels": (), "prior": (), "outputs": (), "rows": None}
    if not isinstance(data, dict) or "losses" in data:
        losses = anything if isinstance(data, dict) and data.get("losses") is None else rationals
        entries.update(
            vars(fields(data, "The objective", name=text, value=rational, losses=losses))
        )
        need(
            re.fullmatch("[a-z][a-z0-9-]{0,39}", entries["name"]),
            "The name of an objective must be a word.",
        )
    else:
        lists = {"labels": rationals, "prior": rationals, "outputs": rationals, "rows": integers}
        entries.update(vars(fields(data, "The objective", name=text, value=rational, **lists)))
    return SimpleNamespace(**entries)


def read_bias(data):
    """outputs, inputs and worst."""
    if data is None:
        return None
    long = partial(rational, characters=10_000)
    return fields(data, "The bias", outputs=rationals, inputs=rationals, worst=long)


def read(path):
    """Strict JSON from a regular file: no key twice, no NaN or Infinity, no number of more than 400 characters."""

    def entries(pairs):
        need(len(dict(pairs)) == len(pairs), "A key appears twice in one object.")
        return dict(pairs)

    def limited(word, kind):
        need(len(word) <= 400 and abs(kind(word)) != math.inf, "A number is too large.")
        return kind(word)

    try:
        need(
            stat.S_ISREG(os.stat(path).st_mode), "It is no regular file."
        )  # a device may act when it is opened
        handle = os.open(
            path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        )
        with os.fdopen(handle, "rb") as file:
            need(stat.S_ISREG(os.fstat(handle).st_mode), "It is no regular file.")
            content = file.read(BYTES + 1)
        need(content is not None, "It cannot be read without waiting.")
        need(len(content) <= BYTES, f"The file is larger than {BYTES} bytes.", "too large")
        data = json.loads(
            content.decode("utf-8"),
            object_pairs_hook=entries,
            parse_int=partial(limited, kind=int),
            parse_float=partial(limited, kind=float),
            parse_constant=lambda word: need(False, f"{word} is no number."),
        )
        json.dumps(data, ensure_ascii=False).encode()  # fails for half a character
    except (OSError, ValueError, RecursionError) as error:
        raise Refused("unreadable", f"It cannot be read: {str(error)[:200]}.") from None
    return data


def check(data):
    """What a certificate proves, in words. data: its JSON value. Raises Refused."""
    if isinstance(data, dict):  # early files claim nothing of many runs, and call losses costs
        data = {"composed": None, **data}
        objective = data.get("objective")
        if isinstance(objective, dict) and "costs" in objective and "losses" not in objective:
            data["objective"] = {
                "losses" if name == "costs" else name: value for name, value in objective.items()
            }
    parts = dict.fromkeys(
        ("format", "mechanism", "claim", "composed", "objective", "bias"), anything
    )
    file = fields(data, "A certificate", **parts, version=typed(int), record=typed(dict))
    need(file.format == FORMAT, f"The format must be {FORMAT!r}.")
    if file.version != VERSION:
        raise Refused("unknown", f"Version {file.version}: this checker knows version {VERSION}.")
    kind = file.mechanism.get("kind") if isinstance(file.mechanism, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise Refused(
            "unknown",
            f"A mechanism of kind {str(kind)[:40]!r}: this checker knows {', '.join(KINDS)}.",
        )
    mechanism = KINDS[kind](file.mechanism)
    for name in ("line", "clamp", "mixed", "range"):
        vars(mechanism).setdefault(name, None)
    notion, budgets, others = read_claim(file.claim, mechanism)
    rounded = (
        (mechanism.kind == "real-noise" or mechanism.mixed) and notion == "pdp" and others["delta"]
    )
    need(
        not rounded,
        "Noise on the reals, answers between ends and equal outputs are rounded: pdp does not survive it.",
    )
    single = mechanism.range is None or (notion != "metric" and None in budgets)
    need(single, "The budget of a range must be one number, and not one per distance.")
    objective, bias = read_objective(file.objective), read_bias(file.bias)
    composed = None if file.composed is None else read_composed(file.composed)
    units = work(mechanism, notion, budgets, others, objective, bias, composed)
    if units > LIMIT:
        raise Refused("too large", f"It would take {units} units of work; {LIMIT} are allowed.")
    if mechanism.clamp:
        low, high = mechanism.clamp
        mechanism.laws = [mechanism.line.row(low - q, high - q) for q in range(low, high + 1)]
    Enclosed.left = ENCLOSURES
    with deciding():
        check_privacy(mechanism, notion, budgets, others)
        if composed is not None:
            check_runs(composed, mechanism)
    if objective is not None:
        check_objective(objective, mechanism)
    if bias is not None:
        check_bias(bias, mechanism)
    claim = f"{notion} at {budget_words(notion, budgets, others)}"
    if composed is not None:
        claim += f"; {composed.runs} runs together: dp at epsilon = {shown(composed.epsilon)}, "
        claim += f"delta = {shown(composed.delta)}"
    return words(mechanism, claim, objective, bias)


def budget_words(notion, budgets, others):
    """ "epsilon = 1, delta = 0.1", or what the notion has."""
    if notion == "curve":
        return ", ".join(f"(epsilon = {shown(e)}, delta = {shown(d)})" for e, d in budgets[None])
    if notion == "tradeoff":
        return ", ".join(f"(alpha = {shown(a)}, beta = {shown(b)})" for a, b in budgets[None])
    first = PARAMETERS[notion][0]
    each = (
        f"{first} = {shown(budgets[None])}" if None in budgets else f"each comparison's own {first}"
    )
    return ", ".join([each, *(f"{name} = {shown(value)}" for name, value in others.items())])


def words(mechanism, claim, objective, bias):
    """What has been proven, in one sentence. claim: in words."""
    count, size = (
        len(mechanism.labels),
        " x ".join(str(len(x)) for x in (mechanism.laws, *(k for k, _ in mechanism.laws[:1]))),
    )
    what = {
        "channel": f"A channel of {size}, {count} ordered pairs",
        "quantizer": "Any two real inputs",
    }
    if mechanism.kind == "channel" and not {(j, i) for i, j in mechanism.labels} <= {
        *mechanism.labels
    }:
        what["channel"] += " (one side of each alone)"
    what["nearest-outputs"] = f"Likelier outputs for {mechanism.range}, any two answers neighbours"
    if mechanism.range:
        what["channel"] += f" of rows, for {mechanism.range} being neighbours"
    if mechanism.kind == "noise":
        relation = "directed" if mechanism.directed else "of either sign"
        what["noise"] = (
            f"Noise modulo {' x '.join(map(str, mechanism.sizes))}, {count} differences ({relation})"
        )
    if mechanism.line is not None:
        what["integer-noise"] = f"Noise on the integers, {count} " + (
            "pairs of clamped answers" if mechanism.clamp else "shifts"
        )
        what["real-noise"] = (
            f"Noise on the reals, {count} shifts by cells, which decide all real shifts"
        )
    loss = (
        "no loss is stated"
        if objective is None
        else f"{objective.name} at most {shown(objective.value)}"
    )
    stated = ""
    if objective is not None and objective.rows is not None:
        stated = " for labels, a prior and outputs that this file states"
    elif objective is not None and objective.losses is not None and objective.name not in KNOWN:
        stated = " by numbers that this file states"
    return f"{what[mechanism.kind]}: {claim}; {loss}{stated}" + (
        f"; largest bias {shown(bias.worst)}." if bias is not None else "."
    )


def shown(x):
    """A rational for people to read."""
    return f"{float(x):.12g}" if abs(x) < 1 << 1000 else "beyond 1e300"


def decide(path):
    """(verdict, reason) of a file; whatever goes wrong says nothing about what it claims."""

    def out_of_time(*_):
        raise Refused("too large", f"It takes more than {SECONDS} seconds.")

    timed = hasattr(signal, "setitimer")
    try:
        if timed:
            signal.signal(signal.SIGPROF, out_of_time)
            signal.setitimer(signal.ITIMER_PROF, SECONDS, 1)
        return "proven", check(read(path))
    except Refused as error:
        return error.args
    except MemoryError:
        return "too large", "It takes more memory than there is."
    except Exception as error:
        return "unreadable", f"It cannot be read: {type(error).__name__}: {str(error)[:200]}."
    finally:
        if timed:
            signal.setitimer(signal.ITIMER_PROF, 0)


def plain(text):
    """Printable characters alone, in the terminal's encoding: a file decides neither lines nor colours."""
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"  # there may be no stdout
    return text.encode(encoding, "backslashreplace").decode(encoding)


def main(paths):
    """Print one line for each file; the exit code."""
    verdicts = set()
    for path in paths:
        verdict, reason = decide(path)
        verdicts.add(verdict)
        print(plain(f"{path}: {verdict}: {reason}"), flush=True)
    return 1 if "false" in verdicts else 0 if verdicts == {"proven"} else 2


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        sys.exit(2)
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    try:
        code = main(sys.argv[1:])
    except OSError:  # the verdict could not be printed, as its reader has left
        sys.stdout = None
        code = 2
    sys.exit(code)
