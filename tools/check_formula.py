#!/usr/bin/env python3
"""An independent checker of formulas: one file, the standard library, no code of the workbench.

    python check_formula.py FILE...

    proven       exit code 0    every formula of the file is the optimum for every ε and δ that the
                                file gives for it
    false        1              a formula is not the optimum, or the regions leave out ε that the
                                entry `open` does not list
    unreadable   2              there is no such file, or it is no file of a formula
    too large    2              a number, a program or a basis is beyond the limits below, or the
                                check takes more than MAX_CPU_SECONDS
    unknown      2              a question that is not listed below, or a Python older than 3.8:
                                nothing is decided

Everything that a file shows is checked: the question in words, the variable, the open intervals,
and of every piece its interval, its polynomials, its breakpoint and its formula as text. Only a
false file gives exit code 1.

What is decided. Let x = e^(ε/q), where every budget is a multiple of ε/q. A file divides the values
of x into regions, in each of which the same bases are optimal. A question is one of these linear
programs. The line of its name lists the columns. The rows follow in this order.

    modulo: f(η), y_μ(η), the probability of noise η and its excess for the difference μ
        minimise  Σ ρ(η) f(η) for the losses ρ, or the largest expected loss z of an answer
        Σ f = 1
        if z is minimised: Σ_η ρ(a, η) f(η) - z <= 0 for every answer a
        for every difference μ in increasing order, with the budget wε:
            f(η) - x^(qw) f(η + μ) - y_μ(η) <= 0 for all η, and Σ_η y_μ(η) <= δ
    channel: M(i,o), s(i,j,o), the probability of output o for input i and its excess against j
        minimise  Σ p_i ℓ(i,o) M(i,o) for the prior p and the losses ℓ, or the largest expected
                  loss z of an input
        Σ_o M(i,o) = 1, and the constraints that are equations
        for every distance d in increasing order, for both orders of neighbours i, j at d:
            M(i,o) - x^(qd) M(j,o) - s(i,j,o) <= 0 for all o, and Σ_o s(i,j,o) <= δ
        if δ = 0, all inputs are neighbours and the notion is not metric, columns t(o) replace s:
            t(o) <= M(i,o) for all i, o, and then M(i,o) <= x t(o) for all i, o
        the other constraints that the question names
        if z is minimised: Σ_o ℓ(i,o) M(i,o) - z <= 0 for every input i
    labels: as channel (method lp)
    quantizer: the laws at both ends of every piece, see `build_quantizer_program`

The column z comes first. All other columns are in [0, 1]; those of the quantizer have no upper end.
If δ = 0, the columns y, s and the rows Σ y <= δ, Σ s <= δ are left out. Columns and rows are
ordered by output, then by input. Only the rows of three constraints are ordered by input, then by
output: symmetric, row-monotone and column-monotone. The last two state first where masses rise,
then where they fall. If a region has no mechanism, its program minimises the sum of violations,
which must be positive.

A basis names the side at which each column and row is held ("-" lower, "+" upper, "0" basic). Its
equations are solved over the rational functions of x. It is optimal if its point is within all
sides and its multipliers have the right signs. These conditions are polynomials in x. They must be
positive at the region's sample, and have no change of sign in the region by Sturm's theorem. If δ
is free, the formulas of the bases hold one after the other, between the δ at which they meet. Each
formula is a lower bound of the convex optimum if its multipliers have the right signs. The optimum
equals it at both of its ends, and therefore in between.

The workbench builds the same programs from its models. If a program changes there, it must change
here as well.
"""

import sys

if sys.version_info < (3, 8):  # noqa: UP036
    sys.stdout.write("unknown: This checker needs Python 3.8 or newer.\n")
    sys.exit(2)

import hashlib
import json
import math
import os
import re
import signal
import stat
import struct
from contextlib import suppress
from fractions import Fraction
from functools import partial, reduce
from itertools import combinations

FORMAT = "dp-workbench formula"
VERSION = 1
SHOWN_ENTRIES = ("what", "variable", "pieces", "open")
ENTRIES = (*SHOWN_ENTRIES, "format", "version", "question", "epsilon", "delta", "regions")
MAX_BASIS_SIZE = 100  # A basis with more equations is refused; it would take too many seconds.
# A prior of labels with a larger denominator is not decided. The workbench converts the floats of a
# prior to simple rationals only up to this denominator, and keeps all others as they are.
MAX_PRIOR_DENOMINATOR = 10**6
MAX_FILE_BYTES = 16 << 20  # A larger file is refused as too large.
MAX_CPU_SECONDS = 8  # A check is stopped after this CPU time.
MAX_MEMORY_BYTES = 2 << 30  # The process may use this much memory.
MAX_PROBABILITIES = 4000  # A mechanism with more probabilities is refused as too large.
MAX_ENTRIES = 200_000  # A program with more entries is refused as too large.
MAX_POWER = 200  # A program with a higher power of x is refused as too large.
MAX_DEGREE = 2000  # A polynomial of the file with more terms is refused as too large.
# An end is refused as too large if the number of its terms times the bits of its longest number is
# larger than this.
MAX_END_BITS = 200_000
MAX_EPSILON = 100  # A larger epsilon is refused as too large.
MAX_HALVINGS = 400  # Numbers that differ by less than about 2^-400 are not told apart.
FLOAT_TOLERANCE = 1e-14  # A float of the file may differ by this, relatively and absolutely.
SIDE_BY_SIGN = {"-": -1, "0": 0, "+": 1}


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
    lists = [list(values) for values in lists]
    ensure(len({len(values) for values in lists}) < 2, "Two lists differ in length.")
    return list(zip(*lists))  # noqa: B905


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


# Polynomials: lists of integers by rising power, without zeros at the end; [] is 0.


def trim(p):
    """Remove zeros at the end of a list, in place, and return the list.

    Args:
        p: coefficients by rising power.
    """
    while p and not p[-1]:
        p.pop()
    return p


def add(p, q, factor=1):
    """Return p + factor q.

    Args:
        p, q: polynomials.
        factor: an integer or rational.
    """
    size = max(len(p), len(q))
    padded_p = [*p] + [0] * (size - len(p))
    padded_q = [*q] + [0] * (size - len(q))
    return trim([a + factor * b for a, b in zip_equal(padded_p, padded_q)])


def multiply(p, q):
    """Return p q.

    Args:
        p, q: polynomials.
    """
    if not p or not q:
        return []
    product = [0] * (len(p) + len(q) - 1)
    for i, a in enumerate(p):
        if a:
            for j, b in enumerate(q):
                product[i + j] += a * b
    return product


def sign_at(p, x):
    """Return the sign of p(x): -1, 0 or 1.

    Args:
        p: a polynomial.
        x: a rational.
    """
    value = 0
    power = 1
    for entry in reversed(p):
        value = value * x.numerator + entry * power
        power = power * x.denominator
    return (value > 0) - (value < 0)


def divide_by_content(p):
    """Divide a polynomial by the common factor of its coefficients; its sign stays.

    Args:
        p: a polynomial.
    """
    content = gcd(p) or 1
    return [value // content for value in p]


def positive_remainder(p, q):
    """Return a positive multiple of the remainder of p by q.

    Args:
        p, q: polynomials, q not 0.
    """
    p = list(p)
    scale = abs(q[-1])
    while len(p) >= len(q):
        shift = len(p) - len(q)
        factor = p[-1] if q[-1] > 0 else -p[-1]
        p = [scale * value for value in p]
        for k, value in enumerate(q):
            p[k + shift] -= factor * value
        trim(p)
        p = divide_by_content(p)
    return p


def polynomial_gcd(p, q):
    """Return the greatest common divisor, with a positive leading coefficient.

    Args:
        p, q: polynomials.
    """
    content = gcd([*p, *q])
    p = divide_by_content(p)
    q = divide_by_content(q)
    while q:
        p, q = q, divide_by_content(positive_remainder(p, q))
    if p and p[-1] < 0:
        p = [-value for value in p]
    return [content * value for value in p]


def exact_quotient(p, q):
    """Return p/q, which must be a polynomial of integers.

    Args:
        p, q: polynomials, q not 0.
    """
    p = list(p)
    result = [0] * (len(p) - len(q) + 1)
    for k in range(len(result) - 1, -1, -1):
        result[k], remainder = divmod(p[k + len(q) - 1], q[-1])
        assert not remainder
        for j, value in enumerate(q):
            p[k + j] -= result[k] * value
    return trim(result)


def derivative(p):
    """Return the derivative.

    Args:
        p: a polynomial.
    """
    return [k * value for k, value in enumerate(p)][1:]


def odd_part(p):
    """Return the product of the factors of odd multiplicity: p changes its sign at its zeros only.

    The factors are found by Yun's algorithm.

    Args:
        p: a polynomial that is not 0.
    """
    product = [1]
    p = divide_by_content(p)
    if len(p) < 2:
        return product
    repeated = polynomial_gcd(p, derivative(p))
    b = exact_quotient(p, repeated)
    d = add(exact_quotient(derivative(p), repeated), derivative(b), -1)
    is_odd = True
    while len(b) > 1:
        factor = b
        if d:
            factor = polynomial_gcd(b, d)
        b = exact_quotient(b, factor)
        c = exact_quotient(d, factor) if d else []
        if is_odd:
            product = multiply(product, factor)
        d = add(c, derivative(b), -1)
        is_odd = not is_odd
    return divide_by_content(product)


def count_sign_changes(chain, x):
    """Return how often the values of polynomials change their sign along a chain.

    Args:
        chain: polynomials.
        x: a rational; None for infinity.
    """
    if x is None:
        signs = [(p[-1] > 0) - (p[-1] < 0) for p in chain]
    else:
        signs = [sign_at(p, x) for p in chain]
    signs = [value for value in signs if value]
    return sum(a != b for a, b in pairwise(signs))


STURM_CHAINS = {}  # Sturm's chain of each polynomial, which `prove_statement` clears.


def count_zeros(p, low, high):
    """Return how many different zeros a polynomial has in (low, high], by Sturm's theorem.

    Args:
        p: a polynomial that is not constant.
        low: a rational.
        high: a rational; None for infinity.
    """
    if tuple(p) not in STURM_CHAINS:
        chain = [p, derivative(p)]
        while chain[-1]:
            chain.append([-value for value in positive_remainder(chain[-2], chain[-1])])
        STURM_CHAINS[tuple(p)] = chain[:-1]
    chain = STURM_CHAINS[tuple(p)]
    return count_sign_changes(chain, low) - count_sign_changes(chain, high)


# Rational functions, affine in δ: (a, b, d) is (a + δ b)/d.


def make_function(a, b, d):
    """Return (a + δ b)/d in lowest terms.

    Args:
        a, b, d: polynomials, d not 0.
    """
    if not a and not b:
        return [], [], [1]
    divisor = polynomial_gcd(polynomial_gcd(a, b) if b else a, d)
    if d[-1] < 0:
        divisor = [-value for value in divisor]
    return exact_quotient(a, divisor), exact_quotient(b, divisor), exact_quotient(d, divisor)


def add_functions(f, g, factor=1):
    """Return f + factor g.

    Args:
        f, g: rational functions.
        factor: an integer.
    """
    if not g[0] and not g[1]:
        return f
    return make_function(
        add(multiply(f[0], g[2]), multiply(g[0], f[2]), factor),
        add(multiply(f[1], g[2]), multiply(g[1], f[2]), factor),
        multiply(f[2], g[2]),
    )


def scale_function(f, p, q=(1,)):
    """Return f p/q.

    Args:
        f: a rational function.
        p, q: polynomials, q not 0.
    """
    return make_function(multiply(f[0], p), multiply(f[1], p), multiply(f[2], list(q)))


def constant_function(value):
    """Return a rational as a function.

    Args:
        value: Fraction or int.
    """
    return trim([Fraction(value).numerator]), [], [Fraction(value).denominator]


def substitute_delta(f, end):
    """Return f at δ = end.

    Args:
        f: a rational function.
        end: a rational function without δ.
    """
    if not f[1]:
        return f
    numerator = add(multiply(f[0], end[2]), multiply(f[1], end[0]))
    return make_function(numerator, [], multiply(f[2], end[2]))


# Questions.


class Program:
    """A linear program in x and δ, whose columns are at least 0.

    Attributes:
        steps: q of x = e^(ε/q).
        is_relaxed: whether the sum of violations is minimised.
        entry_count: number of columns and entries of rows until now, for the limit.
        costs: one rational for each column.
        upper: the upper end of each column. None for no end.
        knot_count: number of knots of a quantizer. None for other families.
        rows: each is ({column: polynomial in x}, lower side, upper side). A side is (constant,
            slope in δ), or None. For example, x z_0 - z_1 <= δ is ({0: [0, 1], 1: [-1]}, None,
            (0, 1)).
        vertices: basis -> the result of `compute_vertex`.
    """

    def __init__(self, steps, is_relaxed):
        """Begin a program without columns and rows.

        Args:
            steps: q of x = e^(ε/q).
            is_relaxed: whether the sum of violations is to be minimised.
        """
        self.steps = steps
        self.is_relaxed = is_relaxed
        self.entry_count = 0
        self.costs = []
        self.upper = []
        self.knot_count = None
        self.rows = []
        self.vertices = {}

    def add_columns(self, costs, upper=Fraction(1)):
        """Add columns, and return the position of the first one.

        Args:
            costs: one rational for each column.
            upper: the upper end of all of them; None for no end.
        """
        self._count_entries(len(costs))
        self.costs += costs
        self.upper += [upper] * len(costs)
        return len(self.costs) - len(costs)

    def _count_entries(self, count):
        """Count entries before they are added, and refuse too many."""
        self.entry_count += count
        sentence = f"The program has more than {MAX_ENTRIES} entries."
        ensure(self.entry_count <= MAX_ENTRIES, sentence, "too large")

    def power(self, level, factor):
        """Return factor * e^(level * ε), a polynomial in x.

        Args:
            level: a multiple of 1/q.
            factor: a rational, such as -1 in rows f - e^(level ε) g <= 0.
        """
        return [0] * int(level * self.steps) + [factor]

    def add_row(self, entries, low, high):
        """Add a row; columns with the entry 0 are left out.

        Args:
            entries: column -> list of rationals by rising power of x.
            low: the lower side, or None.
            high: the upper side, or None.
        """
        self._count_entries(len(entries))
        self.rows.append(({j: p for j, p in entries.items() if any(p)}, low, high))

    def add_upper_row(self, entries):
        """Add a row that is at most 0.

        Args:
            entries: numbers of the row by column, as in `add_row`.
        """
        self.add_row(entries, None, (0, 0))

    def add_equation(self, entries, side):
        """Add a row with equal sides.

        Args:
            entries: numbers of the row by column, as in `add_row`.
            side: a rational.
        """
        self.add_row(entries, (side, 0), (side, 0))

    def finish(self):
        """Convert all rows to integers and return self.

        A relaxed program gains the columns of violations.
        """
        if self.is_relaxed:
            self._add_violations()
        rows = self.rows
        self.rows = []
        for entries, low, high in rows:
            numbers = []
            for polynomial in entries.values():
                numbers += polynomial
            for side in (low, high):
                numbers += side or ()
            scale = lcm(Fraction(v).denominator for v in numbers)
            integers = {j: trim([int(v * scale) for v in p]) for j, p in entries.items()}
            sides = [side and (side[0] * scale, side[1] * scale) for side in (low, high)]
            self.rows.append((integers, *sides))
        return self

    def _add_violations(self):
        """Add two columns for every row, whose sum is to be minimised."""
        column_count = len(self.costs)
        row_count = len(self.rows)
        self.costs = [Fraction(0)] * column_count + [Fraction(1)] * (2 * row_count)
        self.upper = [*self.upper, *[None] * (2 * row_count)]
        self.rows = [
            ({**entries, column_count + i: [1], column_count + row_count + i: [-1]}, low, high)
            for i, (entries, low, high) in enumerate(self.rows)
        ]


NUMERAL = re.compile(
    r"-?[0-9]{1,4000}(\.[0-9]{1,4000})?(e-?[0-9]{1,3})?|-?[0-9]{1,4000}/[0-9]{1,4000}"
)
HEXADECIMAL = re.compile("-?0x[0-9a-f]{1,8000}/0x[0-9a-f]{1,8000}")


def read_typed(value, json_type, name):
    """Return a value of one type of JSON. True and false are not integers.

    Args:
        value: a JSON value.
        json_type: a type such as str or int.
        name: name of the value in messages.
    """
    ensure(type(value) is json_type, f"{name} must be of another type.")
    return value


def read_rational(value):
    """Read the exact number of a text, or of a JSON number by its digits.

    Args:
        value: a JSON value.
    """
    text = repr(value) if type(value) in (int, float) else read_typed(value, str, "A number")
    if HEXADECIMAL.fullmatch(text):
        top, bottom = (int(part, 16) for part in text.split("/"))
        ensure(bottom, "A number divides by 0.")
        return Fraction(top, bottom)
    ensure(NUMERAL.fullmatch(text), "A number must be a decimal or a ratio of moderate length.")
    ensure("/" not in text or int(text.partition("/")[2]), "A number divides by 0.")
    return Fraction(text)


def read_rationals(values):
    """Read a list of rationals.

    Args:
        values: a JSON value.
    """
    return [read_rational(value) for value in read_typed(values, list, "Numbers")]


def read_integers(values, name):
    """Read a list of integers.

    Args:
        values: a JSON value.
        name: name of the value in messages.
    """
    return [read_typed(value, int, name) for value in read_typed(values, list, name)]


def read_integer_text(text):
    """Read an integer that is written as a text.

    Args:
        text: a JSON value.
    """
    is_integer = isinstance(text, str) and re.fullmatch("-?[0-9]{1,4000}", text)
    ensure(is_integer, "A coefficient must be an integer.")
    return int(text)


def read_integer(value):
    """Read an integer of JSON.

    Args:
        value: a JSON value.
    """
    return read_typed(value, int, "A coefficient")


def read_polynomial(values, read_entry):
    """Read the coefficients of a polynomial by rising power.

    Args:
        values: a JSON value.
        read_entry: the reader of a coefficient.
    """
    is_short = len(read_typed(values, list, "A polynomial")) <= MAX_DEGREE
    ensure(is_short, f"A polynomial has over {MAX_DEGREE} terms.", "too large")
    return trim([read_entry(value) for value in values])


def normalise_weights(weights):
    """Return weights over their sum.

    Args:
        weights: rationals >= 0, not all 0.
    """
    ensure(
        weights and min(weights) >= 0 and any(weights),
        "A prior must be weights that are not all 0.",
    )
    return [weight / sum(weights) for weight in weights]


def require_known_options(options, names, notions):
    """Refuse other options and notions.

    Args:
        options: options of the question.
        names: the options that a question may have.
        notions: the notions that it may have.
    """
    ensure(
        set(options) <= set(names),
        "This checker does not know an option of this question.",
        "unknown",
    )
    ensure(
        options.get("notion", "dp") in notions, "This checker does not know this notion.", "unknown"
    )
    read_typed(options.get("directed", False), bool, "directed")


def find_steps(levels):
    """Return the least q such that all levels are multiples of 1/q.

    Args:
        levels: budgets as multiples of ε, rationals >= 0.
    """
    steps = lcm(level.denominator for level in levels)
    ensure(all(level >= 0 for level in levels), "A budget must be at least 0.")
    ensure(max(levels) * steps <= MAX_POWER, f"A power of x is above {MAX_POWER}.", "too large")
    return steps


def read_modulo_levels(options, sizes):
    """Read the differences of noise and their budgets: {difference: multiple of ε}.

    Args:
        options: options of the question. Its entry "epsilon" is a text shift=multiple of ε for the
            shifts whose budget is not ε, such as "1=1,2=3/2" for one factor and "1,0=1;0,1=2" for
            two.
        sizes: orders of the factors of the group.
    """

    def reduce_shift(shift):
        """Return a shift as an element of the group."""
        return tuple(s % size for s, size in zip_equal(shift, sizes))

    shifts = [
        read_integers(s if isinstance(s, list) else [s], "A shift")
        for s in read_typed(options["shifts"], list, "shifts")
    ]
    ensure(
        shifts and len(shifts) <= MAX_PROBABILITIES,
        f"There must be 1 to {MAX_PROBABILITIES} shifts.",
    )
    levels = {reduce_shift(shift): Fraction(1) for shift in shifts}
    budgets = read_typed(options.get("epsilon", ""), str, "epsilon")
    for part in budgets.split("," if len(sizes) == 1 else ";") if budgets else ():
        shift, _, level = part.partition("=")
        ensure(re.fullmatch("-?[0-9]{1,40}(,-?[0-9]{1,40})*", shift), "A shift must be integers.")
        levels[reduce_shift([int(s) for s in shift.split(",")])] = read_rational(level)
    ensure(all(any(shift) for shift in levels), "A shift must not be 0.")
    if not options.get("directed", False):
        opposite = {
            tuple(-s % n for s, n in zip_equal(shift, sizes)): level
            for shift, level in levels.items()
        }
        ensure(
            all(levels.get(shift, level) == level for shift, level in opposite.items()),
            "Two budgets for one shift.",
        )
        levels.update(opposite)
    return levels


def build_modulo_program(options, delta, is_relaxed):
    """Build the program of noise, as the module's docstring describes it.

    Args:
        options: options of the question.
        delta: whether δ may be positive.
        is_relaxed: whether the sum of violations is to be minimised.

    Returns:
        A finished `Program`.
    """
    require_known_options(
        options,
        {"sizes", "shifts", "directed", "loss", "notion", "epsilon"},
        ("dp", "pure", "metric"),
    )
    sizes = read_integers(options["sizes"], "A size")
    ensure(0 < len(sizes) <= 32 and min(sizes) > 0, "There must be 1 to 32 positive sizes.")
    order = math.prod(sizes)
    ensure(
        order <= MAX_PROBABILITIES,
        f"The mechanism has more than {MAX_PROBABILITIES} probabilities.",
        "too large",
    )
    levels = read_modulo_levels(options, sizes)
    values = [[]]
    for size in sizes:
        values = [[*value, k] for value in values for k in range(size)]
    index = {tuple(value): k for k, value in enumerate(values)}
    loss = options.get("loss", "error-rate")
    program = Program(find_steps(levels.values()), is_relaxed)
    if loss == "worst-squared":
        ensure(
            order**2 <= MAX_ENTRIES,
            f"The program has more than {MAX_ENTRIES} entries.",
            "too large",
        )
        errors = [[squared_error(answer, noise, sizes) for noise in values] for answer in values]
        # z is at most the sum of all errors of an answer, as every probability is at most 1.
        worst = program.add_columns([Fraction(1)], Fraction(max(map(sum, errors))))
        costs = [Fraction(0)] * order
    else:
        costs = read_noise_losses(loss, values, sizes)
    first = program.add_columns(costs)
    excesses = [program.add_columns([Fraction(0)] * order) for _ in levels] if delta else []
    program.add_equation({first + k: [1] for k in range(order)}, 1)
    if loss == "worst-squared":
        for row in errors:
            entries = {first + k: [error] for k, error in enumerate(row)}
            program.add_upper_row({**entries, worst: [-1]})
    for k, (shift, level) in enumerate(sorted(levels.items())):
        for e, value in enumerate(values):
            shifted = tuple((a + b) % n for a, b, n in zip_equal(value, shift, sizes))
            column = first + index[shifted]
            entries = {first + e: [1]}
            entries[column] = add(entries.get(column, []), program.power(level, factor=-1))
            if delta:
                entries[excesses[k] + e] = [-1]
            program.add_upper_row(entries)
        if delta:
            program.add_row({excesses[k] + e: [1] for e in range(order)}, None, (0, 1))
    return program.finish()


def read_noise_losses(loss, values, sizes):
    """Return the loss of every noise value.

    Args:
        loss: a name, or a list of numbers.
        values: the noise values, in row-major order.
        sizes: orders of the factors of the group.
    """
    losses = {
        "error-rate": lambda value: int(any(value)),
        "squared": lambda value: sum(k * (n - k) for k, n in zip_equal(value, sizes)),
        "eta-squared": lambda value: sum(k * k for k in value),
        "circular-squared": lambda value: sum(
            min(k, n - k) ** 2 for k, n in zip_equal(value, sizes)
        ),
    }
    ensure(
        isinstance(loss, list) or loss in losses, "This checker does not know this loss.", "unknown"
    )
    if isinstance(loss, list):
        costs = read_rationals(loss)
    else:
        costs = [Fraction(losses[loss](value)) for value in values]
    ensure(len(costs) == len(values), "There must be one loss for every noise value.")
    return costs


def squared_error(answer, noise, sizes):
    """Return (((answer + noise) mod n) - answer)², summed over coordinates.

    Args:
        answer, noise: elements of the group.
        sizes: orders of the factors of the group.
    """
    return sum(((a + b) % n - a) ** 2 for a, b, n in zip_equal(answer, noise, sizes))


def read_loss_matrix(loss, answers, outputs):
    """Return ℓ(i, o) as rows.

    Args:
        loss: a name, or a matrix of numbers.
        answers, outputs: rationals.
    """
    powers = {"absolute": 1, "squared": 2, "error-rate": 0}
    if isinstance(loss, list):
        ensure(
            [len(row) for row in loss] == [len(outputs)] * len(answers),
            "A loss is no matrix of answers and outputs.",
        )
        return [read_rationals(row) for row in loss]
    ensure(loss in powers, "This checker does not know this loss.", "unknown")
    power = powers[loss]
    if power == 0:
        return [[Fraction(y != o) for o in outputs] for y in answers]
    return [[abs(y - o) ** power for o in outputs] for y in answers]


def read_neighbours(neighbours, answers, is_metric):
    """Return pairs of neighbours as positions, and their distances.

    On a line the budgets of consecutive answers add up.

    Args:
        neighbours: "all", or a list of pairs of answers.
        answers: rationals.
        is_metric: whether the distance is that of the answers, else it is 1.
    """
    if neighbours != "all":
        ensure(
            isinstance(neighbours, list) and all(len(pair) == 2 for pair in neighbours),
            "This checker does not know these neighbours.",
            "unknown",
        )
        ensure(
            neighbours and len(neighbours) <= MAX_ENTRIES,
            "There must be neighbours, and not too many.",
        )
        index = {answer: position for position, answer in enumerate(answers)}
        pairs = [tuple(index[read_rational(value)] for value in pair) for pair in neighbours]
        ensure(all(i != j for i, j in pairs), "Neighbours must be different answers.")
    elif is_metric:
        order = sorted(range(len(answers)), key=answers.__getitem__)
        pairs = sorted((min(pair), max(pair)) for pair in pairwise(order))
    else:
        pairs = list(combinations(range(len(answers)), 2))
    if is_metric:
        return pairs, [abs(answers[i] - answers[j]) for i, j in pairs]
    return pairs, [Fraction(1)] * len(pairs)


def build_channel_program(options, delta, is_relaxed):
    """Build the program of a channel. Arguments: see `build_modulo_program`."""
    names = {
        "answers",
        "outputs",
        "neighbours",
        "prior",
        "loss",
        "notion",
        "max_shift",
        "constraints",
        "directed",
    }
    require_known_options(options, names, ("dp", "pure", "metric"))
    neighbours = options["neighbours"]
    is_directed = options.get("directed", False)
    ensure(not is_directed or neighbours != "all", "Directed neighbours are listed.")
    answers = read_rationals(options["answers"])
    outputs = read_rationals(options.get("outputs") or options["answers"])
    k = len(answers)
    m = len(outputs)
    prior = options.get("prior", "uniform")
    ensure(
        len(set(answers)) == k > 1 and len(set(outputs)) == m > 0,
        "Answers and outputs must differ.",
    )
    ensure(
        k * m <= MAX_PROBABILITIES and k * k <= 2 * MAX_ENTRIES,
        f"The mechanism has more than {MAX_PROBABILITIES} probabilities.",
        "too large",
    )
    losses = read_loss_matrix(options.get("loss", "squared"), answers, outputs)
    is_metric = options.get("notion") == "metric"
    pairs, levels = read_neighbours(neighbours, answers, is_metric)
    program = Program(find_steps(levels), is_relaxed)
    if prior == "worst":
        worst = program.add_columns([Fraction(1)], max(map(max, losses)))
        weights = [Fraction(0)] * k
    else:
        weights = normalise_weights(
            [Fraction(1)] * k if prior == "uniform" else read_rationals(prior)
        )
        ensure(len(weights) == k, "There must be one weight for every answer.")
    first = program.add_columns([weights[i] * losses[i][o] for o in range(m) for i in range(k)])

    def mass_column(i, o):
        """Return the position of the column M(i, o)."""
        return first + i + k * o

    for i in range(k):
        program.add_equation({mass_column(i, o): [1] for o in range(m)}, 1)
    constraints = options.get("constraints", ())
    add_constraints(program, constraints, mass_column, answers, outputs, ("unbiased", "symmetric"))
    if neighbours == "all" and not delta and not is_metric:
        column = program.add_columns([Fraction(0)] * m)
        for o in range(m):
            for i in range(k):
                program.add_upper_row({mass_column(i, o): [-1], column + o: [1]})
        for o in range(m):
            for i in range(k):
                program.add_upper_row(
                    {mass_column(i, o): [1], column + o: program.power(1, factor=-1)}
                )
    else:
        for level in sorted(set(levels)):
            ordered = [pair for pair, distance in zip_equal(pairs, levels) if distance == level]
            if not is_directed:
                ordered += [(j, i) for i, j in ordered]
            add_ratio_rows(program, ordered, mass_column, m, level, delta)
    kinds = ("row-monotone", "column-monotone", "honest")
    add_constraints(program, constraints, mass_column, answers, outputs, kinds)
    if prior == "worst":
        for i in range(k):
            entries = {mass_column(i, o): [losses[i][o]] for o in range(m)}
            program.add_upper_row({**entries, worst: [-1]})
    return program.finish()


def add_ratio_rows(program, ordered_pairs, mass_column, output_count, level, delta):
    """Add the privacy of ordered pairs with one budget.

    Args:
        program: the program that gains rows, and columns where δ may be positive.
        ordered_pairs: pairs (i, j) of inputs.
        mass_column: (i, o) -> the column of M(i, o).
        output_count: the number of outputs.
        level: the budget, a multiple of ε.
        delta: whether δ may be positive.
    """
    pair_count = len(ordered_pairs)
    if delta:
        excess = program.add_columns([Fraction(0)] * (pair_count * output_count))
    for o in range(output_count):
        for p, (i, j) in enumerate(ordered_pairs):
            entries = {mass_column(i, o): [1], mass_column(j, o): program.power(level, factor=-1)}
            if delta:
                entries[excess + p + pair_count * o] = [-1]
            program.add_upper_row(entries)
    if delta:
        for p in range(pair_count):
            columns = {excess + p + pair_count * o: [1] for o in range(output_count)}
            program.add_row(columns, None, (0, 1))


def add_constraints(program, names, mass_column, answers, outputs, kinds):
    """Add the rows of constraints of some kinds, in the order of their names.

    Args:
        program: the program that gains rows.
        names: names of the constraints of the question.
        mass_column: (i, o) -> the column of M(i, o).
        answers, outputs: rationals.
        kinds: the names that are added; others are skipped.
    """
    k = len(answers)
    m = len(outputs)
    for name in names:
        if name not in kinds:
            continue
        if name == "unbiased":
            for i, answer in enumerate(answers):
                entries = {mass_column(i, o): [output] for o, output in enumerate(outputs)}
                program.add_equation(entries, answer)
        elif name == "symmetric":
            for i in range((k + 1) // 2):
                for o in range(m):
                    column = mass_column(i, o)
                    mirror = mass_column(k - 1 - i, m - 1 - o)
                    entries = {column: [1], mirror: [-1]} if column != mirror else {}
                    program.add_equation(entries, 0)
        elif name == "honest":
            for o, output in enumerate(outputs):
                for i, answer in enumerate(answers):
                    entries = {}
                    if output != answer:
                        answer_column = mass_column(i, outputs.index(answer))
                        entries = {mass_column(i, o): [1], answer_column: [-1]}
                    program.add_upper_row(entries)
        else:
            add_monotone_rows(program, mass_column, answers, outputs, name == "row-monotone")
    unknown = set(names) - {"unbiased", "symmetric", "honest", "row-monotone", "column-monotone"}
    ensure(not unknown, "This checker does not know a constraint of this question.", "unknown")


def add_monotone_rows(program, mass_column, answers, outputs, is_by_row):
    """Add the rows by which masses rise towards the answer's own output, and fall away from it.

    Args:
        program: the program that gains rows.
        mass_column: (i, o) -> the column of M(i, o).
        answers, outputs: rationals.
        is_by_row: whether outputs are compared within a row, else answers within a column.
    """
    k = len(answers)
    m = len(outputs)
    steps = [(i, o) for i in range(k - (not is_by_row)) for o in range(m - is_by_row)]
    for is_rising in (True, False):
        for i, o in steps:
            start = (i, o)
            end = (i, o + 1) if is_by_row else (i + 1, o)
            at_i, at_o = end if is_rising else start
            distance = (outputs[at_o] - answers[at_i]) * (1 if is_by_row else -1)
            if is_rising and distance <= 0:
                program.add_upper_row({mass_column(*start): [1], mass_column(*end): [-1]})
            if not is_rising and distance >= 0:
                program.add_upper_row({mass_column(*end): [1], mass_column(*start): [-1]})


def build_labels_program(options, delta, is_relaxed):
    """Build the program of labels with method lp, which is that of a channel.

    Arguments: see `build_modulo_program`.
    """
    names = {
        "labels",
        "prior",
        "outputs",
        "neighbours",
        "notion",
        "loss",
        "method",
        "constraints",
    }
    require_known_options(options, names, ("dp", "pure", "metric"))
    ensure(options.get("method") == "lp", "This checker does not know this method.", "unknown")
    text = read_typed(options["labels"], str, "labels")
    low, dots, high = text.partition("..")
    if dots:
        first = int(read_rational(low))
        last = int(read_rational(high))
        ensure(
            0 < last - first < MAX_PROBABILITIES, f"There must be 2 to {MAX_PROBABILITIES} labels."
        )
        values = [Fraction(k) for k in range(first, last + 1)]
    else:
        values = [read_rational(part.strip()) for part in text.split(",")]
    prior = options.get("prior", "uniform")
    shares = normalise_weights(
        [Fraction(1)] * len(values) if prior == "uniform" else read_rationals(prior)
    )
    ensure(
        max(share.denominator for share in shares) <= MAX_PRIOR_DENOMINATOR,
        "This checker does not know this prior.",
        "unknown",
    )
    texts = [str(value) for value in values]
    channel_options = {
        "answers": texts,
        "outputs": options.get("outputs") or texts,
        "prior": [str(share) for share in shares],
        "neighbours": read_label_neighbours(options.get("neighbours", "all"), texts),
    }
    for name in ("loss", "notion", "constraints"):
        if name in options:
            channel_options[name] = options[name]
    return build_channel_program(channel_options, delta, is_relaxed)


def read_label_neighbours(neighbours, texts):
    """Return neighbouring labels as pairs of texts, or "all" if they are all pairs.

    Args:
        neighbours: "all", "consecutive", or pairs of positions.
        texts: the labels.
    """
    if neighbours == "all":
        return "all"
    if neighbours == "consecutive":
        pairs = pairwise(range(len(texts)))
    else:
        pairs = [read_integers(pair, "A label") for pair in neighbours]
    ensure(
        all(len(pair) == 2 and min(pair) >= 0 and max(pair) < len(texts) for pair in pairs),
        "No such label.",
    )
    if len({tuple(sorted(pair)) for pair in pairs}) == len(texts) * (len(texts) - 1) // 2:
        return "all"
    return [[texts[i], texts[j]] for i, j in pairs]


def build_quantizer_program(options, delta, is_relaxed):
    """Build the program of unbiased laws affine between knots, for inputs u uniform on [-c, c].

    The probability of output i at the point e is s_e(i) + low(i), where low(i) is at most its
    smallest probability at any point. In units of c the program is

        minimise  Σ_e Σ_i (∫ ℓ(u - B_i) h_e(u) du / 2) (s_e(i) + low(i))
        Σ_i (s_e(i) + low(i)) = 1,  Σ_i B_i (s_e(i) + low(i)) = u_e      for every point e
        s_e(i) <= (x - 1) low(i)                                         for every e and i
        s_e(i), low(i) >= 0

    Every piece [a, b] between two knots has two points e, at u_e = a and at u_e = b. The affine
    function h_e is 1 at its point and 0 at the other point of the piece. B_i are the outputs. The
    loss is ℓ(r) = λ |c r| + (1 - λ) (c r)², with the share λ = 1 for the absolute and λ = 0 for the
    squared error. Arguments: see `build_modulo_program`.
    """
    require_known_options(options, {"bins", "c", "loss", "knots", "notion"}, ("dp", "pure"))
    ensure(not delta, "This checker does not know quantizers with delta > 0.", "unknown")
    c = read_rational(options.get("c", 1))
    loss = options.get("loss", "absolute")
    ensure(c > 0, "c must be positive.")
    outputs = [value / c for value in read_rationals(options["bins"])]
    ensure(
        1 < len(outputs) <= MAX_PROBABILITIES and all(a < b for a, b in pairwise(outputs)),
        "The bins must increase.",
    )
    is_named = loss in ("absolute", "squared")
    share = Fraction(loss == "absolute") if is_named else read_rational(loss)
    ensure(0 <= share <= 1, "The share of the absolute error must lie in [0, 1].")
    knot_count = read_typed(options.get("knots", 0), int, "knots")
    m = len(outputs)
    ensure(
        knot_count == 0 or 1 < knot_count <= MAX_PROBABILITIES, "There must be two knots or more."
    )
    knots = {Fraction(-1), Fraction(1), *(b for b in outputs if -1 < b < 1)}
    if knot_count:
        knots |= {Fraction(2 * k, knot_count - 1) - 1 for k in range(knot_count)}
    knots = sorted(knots)
    ensure(
        2 * len(knots) * m <= MAX_PROBABILITIES,
        f"The mechanism has more than {MAX_PROBABILITIES} probabilities.",
        "too large",
    )
    points = []
    costs = []
    for a, b in pairwise(knots):
        for point, other_point in ((a, b), (b, a)):
            points.append(point)
            hat = [-other_point / (point - other_point), 1 / (point - other_point)]
            costs.append([hat_cost(hat, a, b, output, share, c) for output in outputs])
    n = len(points)
    program = Program(1, is_relaxed)
    program.knot_count = len(knots)
    s = program.add_columns([costs[e][i] for i in range(m) for e in range(n)], None)
    low = program.add_columns([sum(costs[e][i] for e in range(n)) for i in range(m)], None)
    for factors, sides in (([1] * m, [1] * n), (outputs, points)):
        for e in range(n):
            entries = {}
            for i, factor in enumerate(factors):
                entries[s + e + n * i] = [factor]
                entries[low + i] = [factor]
            program.add_equation(entries, sides[e])
    for i in range(m):
        for e in range(n):
            program.add_upper_row({s + e + n * i: [1], low + i: [1, -1]})
    return program.finish()


def hat_cost(hat, a, b, output, share, c):
    """Return half of the error of an output, integrated with a hat function over a piece.

    Args:
        hat: the affine function, [constant, slope].
        a, b: the ends of the piece.
        output: published value, in units of c.
        share: share of the absolute error; the rest is the squared error.
        c: the unit.
    """
    error = (-output, 1)
    sign = 1 if output <= a else -1
    absolute = sign * integrate(multiply_rationals(hat, error), a, b)
    squared = integrate(multiply_rationals(hat, multiply_rationals(error, error)), a, b)
    return (share * c * absolute + (1 - share) * c**2 * squared) / 2


def multiply_rationals(p, q):
    """Return the product of polynomials of rationals.

    Args:
        p, q: coefficients by rising power, zeros at the end allowed.
    """
    product = [Fraction(0)] * (len(p) + len(q) - 1)
    for i, a in enumerate(p):
        for j, b in enumerate(q):
            product[i + j] += a * b
    return product


def integrate(p, a, b):
    """Return the integral of a polynomial from a to b.

    Args:
        p: coefficients by rising power.
        a, b: rationals.
    """
    return sum(value * (b ** (k + 1) - a ** (k + 1)) / (k + 1) for k, value in enumerate(p))


# Bases.


def solve_equations(rows, rights):
    """Solve square equations by fraction-free elimination: {unknown: rational function}.

    Args:
        rows: {unknown: polynomial} for each equation.
        rights: a rational function for each equation.
    """
    ensure(
        len(rows) <= MAX_BASIS_SIZE,
        f"A basis has {len(rows)} equations; at most {MAX_BASIS_SIZE} are allowed.",
        "too large",
    )
    remaining = [
        ({j: multiply(p, right[2]) for j, p in row.items()}, right[0], right[1])
        for row, right in zip_equal(rows, rights)
    ]
    pivots = []
    while remaining:
        remaining.sort(key=lambda part: len(part[0]))
        row, constant, rise = remaining.pop(0)
        ensure(row, "A basis is singular.", "false")
        counts = {j: sum(j in other_row for other_row, _, _ in remaining) for j in row}
        j = min(row, key=lambda k: (counts[k], len(row[k])))
        pivots.append((j, row, constant, rise))
        for k, equation in enumerate(remaining):
            if j in equation[0]:
                remaining[k] = eliminate(equation, (row, constant, rise), j)
    values = {}
    for j, row, constant, rise in reversed(pivots):
        value = make_function(constant, rise, [1])
        for k, p in row.items():
            if k != j:
                value = add_functions(value, scale_function(values[k], p), -1)
        values[j] = scale_function(value, [1], row[j])
    return values


def eliminate(equation, pivot_equation, j):
    """Return an equation without an unknown, divided by the common factor of its polynomials.

    Args:
        equation, pivot_equation: (row, constant, slope in δ), both with the unknown.
        j: the unknown.
    """
    row, constant, rise = equation
    pivot_row, pivot_constant, pivot_rise = pivot_equation
    divisor = polynomial_gcd(pivot_row[j], row[j])
    row_factor = exact_quotient(pivot_row[j], divisor)
    pivot_factor = exact_quotient(row[j], divisor)

    def combine(p, pivot_p):
        return add(multiply(row_factor, p), multiply(pivot_factor, pivot_p), -1)

    entries = {i: combine(row.get(i, []), pivot_row.get(i, [])) for i in {*row, *pivot_row} - {j}}
    entries = {i: p for i, p in entries.items() if p}
    constant = combine(constant, pivot_constant)
    rise = combine(rise, pivot_rise)
    divisor = []
    for p in (*entries.values(), constant, rise):
        divisor = polynomial_gcd(divisor, p) if p and divisor else divisor or p
    if divisor:
        entries = {i: exact_quotient(p, divisor) for i, p in entries.items()}
        constant = exact_quotient(constant, divisor) if constant else []
        rise = exact_quotient(rise, divisor) if rise else []
    return entries, constant, rise


def side_function(side):
    """Return a side (constant, slope in δ) as a rational function.

    Args:
        side: two rationals.
    """
    return add_functions(constant_function(side[0]), ([], trim([side[1]]), [1]))


def compute_vertex(program, column_sides, row_sides):
    """Return (value, primal conditions, dual conditions) of a basis.

    All conditions are functions that must not be negative; the primal ones are affine in δ.

    Args:
        program: a finished `Program`.
        column_sides, row_sides: -1 (lower), 0 (basic) or 1 (upper) for every column and row.
    """
    basic_columns = [j for j, side in enumerate(column_sides) if not side]
    tight_rows = [i for i, side in enumerate(row_sides) if side]
    ensure(
        len(basic_columns) == len(tight_rows),
        "A basis has another number of equations than of unknowns.",
        "false",
    )
    point = {}
    for j, side in enumerate(column_sides):
        if side:
            end = Fraction(0) if side < 0 else program.upper[j]
            ensure(end is not None, "A basis holds a column where it has no end.", "false")
            point[j] = constant_function(end)
    equations = []
    rights = []
    for i in tight_rows:
        entries, low, high = program.rows[i]
        side = low
        if row_sides[i] > 0:
            side = high
        ensure(side is not None, "A basis holds a row where it has no side.", "false")
        right = side_function(side)
        for j, p in entries.items():
            if column_sides[j] > 0:
                right = add_functions(right, scale_function(point[j], p), -1)
        equations.append({j: p for j, p in entries.items() if not column_sides[j]})
        rights.append(right)
    point.update(solve_equations(equations, rights))
    transposed = [
        {i: program.rows[i][0][j] for i in tight_rows if j in program.rows[i][0]}
        for j in basic_columns
    ]
    costs = [constant_function(program.costs[j]) for j in basic_columns]
    multipliers = solve_equations(transposed, costs)
    value = constant_function(0)
    for j, cost in enumerate(program.costs):
        term = scale_function(point[j], trim([cost.numerator]), [cost.denominator])
        value = add_functions(value, term)
    primal = list_primal_conditions(program, basic_columns, row_sides, point)
    dual = list_dual_conditions(program, column_sides, row_sides, multipliers)
    return value, primal, dual


def list_primal_conditions(program, basic_columns, row_sides, point):
    """Return the distances of basic columns and rows from their sides.

    Args:
        program: a finished `Program`.
        basic_columns: their positions.
        row_sides: side at which each row is held, as in `compute_vertex`.
        point: the function of every column.
    """
    conditions = [point[j] for j in basic_columns]
    bounded_columns = [j for j in basic_columns if program.upper[j] is not None]
    for j in bounded_columns:
        upper = constant_function(program.upper[j])
        conditions += [add_functions(upper, point[j], -1)]
    for (entries, low, high), held_side in zip_equal(program.rows, row_sides):
        if not held_side:
            activity = constant_function(0)
            for j, p in entries.items():
                activity = add_functions(activity, scale_function(point[j], p))
            for side, factor in ((low, 1), (high, -1)):
                if side is not None:
                    gap = add_functions(activity, side_function(side), -1)
                    conditions.append(scale_function(gap, [factor]))
    return conditions


def list_dual_conditions(program, column_sides, row_sides, multipliers):
    """Return the multipliers of inequalities and the reduced costs of held columns.

    Their signs are changed where needed, so that each must be >= 0 for the basis to be optimal.

    Args:
        program: a finished `Program`.
        column_sides, row_sides: see `compute_vertex`.
        multipliers: the function of every tight row.
    """
    conditions = []
    for i, multiplier in multipliers.items():
        _, low, high = program.rows[i]
        if low != high:
            conditions.append(scale_function(multiplier, [-row_sides[i]]))
    for j, side in enumerate(column_sides):
        if side:
            reduced_cost = constant_function(program.costs[j])
            for i, multiplier in multipliers.items():
                if j in program.rows[i][0]:
                    term = scale_function(multiplier, program.rows[i][0][j])
                    reduced_cost = add_functions(reduced_cost, term, -1)
            conditions.append(scale_function(reduced_cost, [-side]))
    return conditions


# Regions.


class End:
    """An end of a region: the one zero of a polynomial between two rationals, or a rational.

    For example, ["-2", "0", "1"], "1", "2" in a file is the square root of 2: the coefficients of
    x² - 2, and an interval.

    Attributes:
        polynomial: a polynomial of which the end is a simple zero.
        low, high: rationals around the end. `halve` makes the interval smaller. They are equal if
            the end is known to be rational.
        file_polynomial: the polynomial in the file.
    """

    def __init__(self, data):
        """Read an end, and refuse one that is no simple zero.

        Args:
            data: a rational as text, or [coefficients, low, high].
        """
        if isinstance(data, str):
            self.low = read_rational(data)
            self.high = self.low
            self.polynomial = [-self.low.numerator, self.low.denominator]
            self.file_polynomial = self.polynomial
            ensure(0 <= self.low <= 10**300, "An end must lie in [0, 1e300].")
            return
        ensure(
            isinstance(data, list) and len(data) == 3,
            "An end must be a number, or a polynomial and two numbers.",
        )
        self.polynomial = read_polynomial(data[0], read_integer_text)
        self.low = read_rational(data[1])
        self.high = read_rational(data[2])
        self.file_polynomial = self.polynomial
        ensure(len(self.polynomial) > 1, "An end is no zero of a polynomial.")
        numbers = [*self.polynomial, self.low.denominator, self.high.denominator]
        size = len(self.polynomial) * max(number.bit_length() for number in numbers)
        ensure(size <= MAX_END_BITS, "An end is the zero of too large a polynomial.", "too large")
        ensure(0 <= self.low < self.high <= 10**300, "An end must lie in [0, 1e300].")
        low_sign = sign_at(self.polynomial, self.low)
        high_sign = sign_at(self.polynomial, self.high)
        ensure(low_sign and high_sign, "An end is no zero.")
        ensure(
            count_zeros(self.polynomial, self.low, self.high) == 1,
            "An end is not the one zero of its polynomial.",
        )
        ensure(low_sign != high_sign, "An end is a double zero.")

    def value(self):
        """Return a float within one unit in the last place of the end."""
        while self.high - self.low > Fraction(1, 1 << 60):
            self.halve()
        return float((self.low + self.high) / 2)

    def is_at_most(self, x):
        """Decide whether the end is at most x.

        Args:
            x: a rational, which is no zero of the polynomial unless it is this end.
        """
        for _ in range(MAX_HALVINGS):
            if self.high <= x or self.low > x:
                break
            self.halve()
        return self.high <= x

    def halve(self):
        """Halve the interval around the end."""
        if self.low < self.high:
            middle = (self.low + self.high) / 2
            middle_sign = sign_at(self.polynomial, middle)
            if not middle_sign:
                self.low = middle
                self.high = middle
                self.polynomial = [-middle.numerator, middle.denominator]
            elif middle_sign == sign_at(self.polynomial, self.high):
                self.high = middle
            else:
                self.low = middle

    def isolate_from(self, p):
        """Halve the interval until p has no other zero in it, ends included.

        Args:
            p: a polynomial without multiple zeros.
        """
        divisor = polynomial_gcd(p, self.polynomial)
        is_zero_of_p = len(divisor) > 1 and (
            self.low == self.high or bool(count_zeros(divisor, self.low, self.high))
        )
        for _ in range(MAX_HALVINGS):
            if self.low == self.high:
                return
            zero_count = count_zeros(p, self.low, self.high) + (not sign_at(p, self.low))
            if zero_count == is_zero_of_p:
                return
            self.halve()
        raise Refused("too large", "Two numbers are too near to each other.")

    def equals(self, other):
        """Decide whether two ends are the same number.

        Args:
            other: an `End`.
        """
        divisor = polynomial_gcd(self.polynomial, other.polynomial)
        low = max(self.low, other.low)
        high = min(self.high, other.high)
        if low > high or len(divisor) < 2:
            return False
        return bool(count_zeros(divisor, low, high)) or not sign_at(divisor, low)


def require_constant_signs(conditions, x, low, high):
    """Refuse conditions that do not hold at x, or change their sign in the region.

    Args:
        conditions: rational functions without δ.
        x: the sample of the region, a rational.
        low: the lower `End`.
        high: the upper `End`, or None.
    """
    done = set()
    for a, b, d in conditions:
        ensure(not b, "A condition depends on δ.", "false")
        p = multiply(a, d)
        if not p or tuple(p) in done:
            continue
        done.add(tuple(p))
        ensure(sign_at(p, x) > 0, f"A condition does not hold at x = {float(x):.6g}.", "false")
        odd = odd_part(p)
        if len(odd) < 2:
            continue
        low.isolate_from(odd)
        zero_count = count_zeros(odd, low.high, x)
        if high is None:
            zero_count += count_zeros(odd, x, None)
        else:
            high.isolate_from(odd)
            zero_count += count_zeros(odd, x, high.low)
            if high.low == high.high and not sign_at(odd, high.low):
                zero_count -= 1  # The end itself is a zero, which the count includes.
        ensure(
            not zero_count,
            f"A condition changes its sign in the region of x = {float(x):.6g}.",
            "false",
        )


def separate_sample(x, low, high):
    """Halve the ends of a region until its sample lies outside of their intervals.

    Args:
        x: the sample, a rational.
        low: the lower `End`.
        high: the upper `End`, or None.
    """
    for _ in range(MAX_HALVINGS):
        if low.high < x and (high is None or high.low > x):
            return
        is_inside = low.low < x and (high is None or high.high > x)
        ensure(is_inside, "A sample is outside of its region.")
        low.halve()
        if high is not None:
            high.halve()
    raise Refused("false", "A sample is an end of its region.")


def prove_region(program, entry, delta, low, high):
    """Return the proven formulas of a region by rising δ, [(value, start, end)].

    The value is None if there is no mechanism. The module's docstring describes the proof. The
    first basis proves optimality at the lower end of δ, and is not used if δ is fixed. Each other
    basis proves one formula.

    Args:
        program: a finished `Program`. Where the file says that there is no mechanism, it minimises
            the sum of violations.
        entry: the region in the file.
        delta: the interval of δ, two rationals.
        low: the lower `End` of x.
        high: the upper `End` of x, or None.
    """
    x = read_rational(read_typed(entry["sample"], str, "A sample"))
    separate_sample(x, low, high)
    is_feasible = entry["feasible"]
    ensure(
        is_feasible is True or (is_feasible is False and delta[0] == delta[1]),
        "Feasible must be true, or false at one delta.",
    )
    vertices = []
    for columns, rows in entry["bases"]:
        ensure(isinstance(columns, str) and isinstance(rows, str), "A basis must be two texts.")
        ensure(
            len(columns) == len(program.costs) and len(rows) == len(program.rows),
            "A basis of another size.",
        )
        if (columns, rows) not in program.vertices:
            column_sides = [SIDE_BY_SIGN[sign] for sign in columns]
            row_sides = [SIDE_BY_SIGN[sign] for sign in rows]
            program.vertices[columns, rows] = compute_vertex(program, column_sides, row_sides)
        vertices.append(program.vertices[columns, rows])
    first, *formula_vertices = vertices
    bottom, top = map(constant_function, delta)
    if delta[0] == delta[1]:
        ensure(len(formula_vertices) == 1, "A region has more than one formula.", "false")
        conditions, value = list_conditions_at_delta(formula_vertices[0], bottom, is_feasible)
        require_constant_signs(conditions, x, low, high)
        return [(value if is_feasible else None, bottom, bottom)]
    first_value, first_primal, _ = first
    ensure(
        first_value == formula_vertices[0][0],
        "The first basis has another formula.",
        "false",
    )
    conditions = [substitute_delta(f, bottom) for f in first_primal]
    formulas = []
    start = bottom
    for k, (value, primal, dual) in enumerate(formula_vertices):
        end = top
        if k + 1 < len(formula_vertices):
            # The two formulas meet where their difference (a + δ b)/d is 0: at δ = -a/b.
            next_value, _, _ = formula_vertices[k + 1]
            a, b, _ = add_functions(value, next_value, -1)
            ensure(b, "Two formulas are the same.", "false")
            end = make_function([-v for v in a], [], b)
        conditions += dual
        conditions += [substitute_delta(f, end) for f in primal]
        conditions.append(add_functions(end, start, -1))
        formulas.append((value, start, end))
        start = end
    require_constant_signs(conditions, x, low, high)
    return formulas


def list_conditions_at_delta(vertex, delta, is_feasible):
    """Return the conditions of optimality of a vertex at one δ, and its value there.

    The conditions are functions of x that must not be negative.

    Args:
        vertex: (value, primal conditions, dual conditions), as of `compute_vertex`.
        delta: δ as a function.
        is_feasible: whether there is a mechanism. If not, the value is the least sum of violations,
            which must be positive.
    """
    value, primal, dual = vertex
    value = substitute_delta(value, delta)
    conditions = [*dual, *(substitute_delta(f, delta) for f in primal)]
    if not is_feasible:
        ensure(value[0], "The least violation is 0.", "false")
        conditions.append(value)
    return conditions, value


def enclose_exp(epsilon):
    """Return rationals around e^ε, whose difference is about 1e-40 of e^ε.

    Args:
        epsilon: a rational >= 0.
    """
    if not epsilon:
        return Fraction(1), Fraction(1)
    scale = 10**60
    halved = epsilon
    halvings = 0
    while halved > 1:
        halved = halved / 2
        halvings += 1
    low, _ = sum_exp_series(Fraction(math.floor(halved * scale), scale))
    high, last_term = sum_exp_series(Fraction(math.ceil(halved * scale), scale))
    high += 2 * last_term
    for _ in range(halvings):
        low = Fraction(math.floor(low**2 * scale), scale)
        high = Fraction(math.ceil(high**2 * scale), scale)
    return low, high


def sum_exp_series(x):
    """Return the sum of the first terms of e^x, and the last of them.

    Args:
        x: a rational in [0, 1].
    """
    term = Fraction(1)
    total = Fraction(1)
    for k in range(1, 40):
        term = term * x / k
        total += term
    return total, term


# The part of a file that people read.


def is_float_of(data, value):
    """Decide whether a number of a file is the float of a value; None is the float of infinity.

    Args:
        data: a JSON value.
        value: a float.
    """
    if data is None or math.isinf(value):
        return data is None and math.isinf(value)
    has_same_sign = type(data) is float and math.copysign(1, data) == math.copysign(1, value)
    return has_same_sign and math.isclose(
        data, value, rel_tol=FLOAT_TOLERANCE, abs_tol=FLOAT_TOLERANCE
    )


def are_epsilons_of(data, low, high, steps):
    """Decide whether two numbers of a file are the ε of two ends of x.

    Args:
        data: a JSON value.
        low: an `End`.
        high: an `End`, or None.
        steps: q of x = e^(ε/q).
    """
    epsilons = [math.inf if end is None else steps * math.log(end.value()) for end in (low, high)]
    return (
        isinstance(data, list)
        and len(data) == 2
        and all(is_float_of(a, b) for a, b in zip_equal(data, epsilons))
    )


TOKEN = re.compile(r"\s*(?:e\^\(([0-9]*)ε(?:/([0-9]+))?\)|(e\^ε)|(δ)|([0-9]+)|([-+/()]))")


class FormulaParser:
    """A parser of formulas as text.

    A formula consists of sums, products without a sign, quotients, numbers, δ, e^ε and e^(2ε/3).
    """

    def __init__(self, text, steps):
        """Split a text into tokens.

        Args:
            text: the formula.
            steps: q of x = e^(ε/q).
        """
        ensure(isinstance(text, str) and len(text) <= 1 << 20, "A formula must be a text.")
        ensure(
            text == " ".join(text.split()),
            "A formula must have single spaces between its words.",
            "false",
        )
        self.tokens = []
        position = 0
        while text[position:].strip():
            match = TOKEN.match(text, position)
            ensure(match, "A formula has a word that no formula can have.", "false")
            self.tokens.append(self._read_token(match, steps))
            position = match.end()
        self.tokens.append(None)
        self.tokens.reverse()

    @staticmethod
    def _read_token(match, steps):
        """Return a sign, or a function of x and δ."""
        numerator, denominator, power, delta, digits, sign = match.groups()
        if sign:
            return sign
        if digits:
            ensure(len(digits) <= 4000, "A number must be of moderate length.")
            return constant_function(int(digits))
        if delta:
            return [], [1], [1]
        level = Fraction(1)
        if not power:
            is_short = len(numerator) < 9 and len(denominator or "") < 9
            ensure(is_short, "A power of e^ε is too large.", "too large")
            level = Fraction(int(numerator or 1), int(denominator or 1) or 1)
        ensure((level * steps).denominator == 1, "A power of e^ε is none of x.", "false")
        ensure(level * steps <= MAX_DEGREE, "A power of e^ε is too large.", "too large")
        return [0] * int(level * steps) + [1], [], [1]

    def _take(self, *signs):
        """Take the next token if it is one of some signs, else return None."""
        token = self.tokens[-1]
        if isinstance(token, str) and token in signs:
            return self.tokens.pop()
        return None

    def _parse_sum(self):
        """Parse terms with signs."""
        sign = self._take("-")
        result = constant_function(0)
        while True:
            result = add_functions(result, self._parse_product(), -1 if sign == "-" else 1)
            sign = self._take("+", "-")
            if not sign:
                return result

    def _parse_product(self):
        """Parse factors beside each other, and divisors."""
        result = self._parse_factor()
        while True:
            if self._take("/"):
                divisor = self._parse_factor()
                ensure(not divisor[1] and divisor[0], "A formula divides by δ, or by 0.", "false")
                result = scale_function(result, divisor[2], divisor[0])
            elif self.tokens[-1] == "(" or isinstance(self.tokens[-1], tuple):
                factor = self._parse_factor()
                ensure(not (result[1] and factor[1]), "A formula has a square of δ.", "false")
                if factor[1]:
                    result, factor = factor, result
                result = scale_function(result, factor[0], factor[2])
            else:
                return result

    def _parse_factor(self):
        """Parse a number, a power, δ, or a sum in brackets."""
        if self._take("("):
            inner_sum = self._parse_sum()
            ensure(self._take(")"), "A bracket of a formula is not closed.", "false")
            return inner_sum
        ensure(isinstance(self.tokens[-1], tuple), "A formula ends in the middle.", "false")
        return self.tokens.pop()

    def parse(self):
        """Return the rational function of the text, in lowest terms."""
        result = self._parse_sum()
        ensure(self.tokens == [None], "A formula goes on after its end.", "false")
        return result


def is_text_of(text, value, steps):
    """Decide whether a text is the formula of a value.

    Args:
        text: a JSON value.
        value: a rational function; None where there is no mechanism.
        steps: q of x = e^(ε/q).
    """
    if value is None:
        return text == "infeasible"
    return FormulaParser(text, steps).parse() == value


def read_function(piece, names):
    """Read a rational function from the polynomials that a piece shows.

    Args:
        piece: a JSON object.
        names: names of the entries: numerator, slope in δ (optional) and denominator.
    """
    parts = [read_polynomial(piece.get(name, []), read_integer) for name in names]
    ensure(parts[-1], "A formula divides by 0.", "false")
    if len(parts) == 2:
        return parts[0], [], parts[1]
    return tuple(parts)


def is_delta_end(data, end):
    """Decide whether an end of δ in the file is a function.

    The file has a number, or a ratio of polynomials.

    Args:
        data: a JSON value.
        end: a rational function without δ.
    """
    if len(end[0]) <= 1 and len(end[2]) == 1:
        return is_float_of(data, float(Fraction(sum(end[0]), end[2][0])))
    if not isinstance(data, dict) or set(data) != {"numerator", "denominator"}:
        return False
    return read_function(data, ("numerator", "denominator")) == end


def merge_regions(regions):
    """Return the pieces that a file must show.

    Neighbouring regions with the same formula become one piece.

    Args:
        regions: (low, high, formulas) in increasing order of x.

    Returns:
        Lists [low end of x, high end of x, value, lower end of δ, upper end of δ].
    """
    pieces = []
    for low, high, formulas in regions:
        for formula in formulas:
            for piece in pieces:
                has_same_formula = piece[2:] == [*formula]
                if has_same_formula and piece[1] is not None and piece[1].equals(low):
                    piece[1] = high
                    break
            else:
                pieces.append([low, high, *formula])
    return pieces


def check_piece(data, low, high, value, start, end, steps):
    """Refuse a piece that shows anything but what is proven.

    Args:
        data: the piece in the file.
        low: the lower `End` of x.
        high: the upper `End` of x, or None.
        value: the optimum, a rational function; None where there is no mechanism.
        start, end: the interval of δ, rational functions.
        steps: q of x = e^(ε/q).
    """

    def require(condition, name):
        """Refuse the file unless the shown entry agrees with the proof."""
        ensure(condition, f"What a piece shows as {name} is not what is proven.", "false")

    ensure(isinstance(data, dict), "A piece must be a JSON object.", "false")
    names = {"epsilon", "delta", "formula", "proven"}
    if value is not None:
        names |= {"numerator", "denominator"}
        if value[1]:
            names.add("numerator_delta")
        parts = ("numerator", "numerator_delta", "denominator")
        require(read_function(data, parts) == value, "its polynomials")
    if start != end:
        names.add("delta_formula")
    if high is not None:
        names.add("breakpoint")
    require(set(data) == names, "its entries")
    require(data["proven"] is True, "proven")
    require(are_epsilons_of(data["epsilon"], low, high, steps), "epsilon")
    ends = data["delta"]
    require(isinstance(ends, list) and len(ends) == 2, "delta")
    require(is_delta_end(ends[0], start) and is_delta_end(ends[1], end), "delta")
    if start != end:
        texts = data["delta_formula"]
        require(isinstance(texts, list) and len(texts) == 2, "delta_formula")
        agrees = is_text_of(texts[0], start, steps) and is_text_of(texts[1], end, steps)
        require(agrees, "delta_formula")
    if high is not None:
        point = data["breakpoint"]
        require(isinstance(point, dict) and set(point) == {"polynomial", "value"}, "breakpoint")
        shown_polynomial = read_polynomial(point["polynomial"], read_integer)
        require(shown_polynomial == high.file_polynomial, "breakpoint")
        interval = point["value"]
        require(isinstance(interval, list) and len(interval) == 2, "breakpoint")
        require(all(is_float_of(number, high.value()) for number in interval), "breakpoint")
    require(is_text_of(data["formula"], value, steps), "formula")


def format_rational(value):
    """Return a rational as an exact decimal where it has one, else as a ratio.

    Args:
        value: Fraction.
    """
    places = next((k for k in range(401) if 10**k % value.denominator == 0), None)
    if places is None:
        return f"{value.numerator}/{value.denominator}"
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    if places:
        digits = f"{digits[:-places]}.{digits[-places:]}"
    if value < 0:
        return f"-{digits}"
    return digits


def describe_question(family, options, program):
    """Return the question as the file must name it.

    Args:
        family: "modulo", "channel", "labels" or "quantizer".
        options: options of the question.
        program: the program of the question.
    """
    default_losses = {"modulo": "error-rate", "quantizer": "absolute"}
    loss = options.get("loss", default_losses.get(family, "squared"))
    if family == "quantizer":
        if loss not in ("absolute", "squared"):
            share = read_rational(loss)
            loss = f"{format_rational(share)} absolute, {format_rational(1 - share)} squared"
        return f"best unbiased law affine between {program.knot_count} knots, {loss} loss"
    if family == "modulo":
        if isinstance(loss, list):
            floats = [float(value) for value in read_rationals(loss)]
            content = struct.pack(f"<{len(floats)}d", *floats)
            loss = f"own-{hashlib.sha256(content).hexdigest()[:12]}"
        text = f"best noise modulo {'x'.join(map(str, options['sizes']))}, {loss} loss"
        if options.get("epsilon"):
            text += f", budgets {options['epsilon']} times ε"
        return text
    if isinstance(loss, list):
        loss = "own matrix"
    text = f"best channel, {loss} loss"
    if options.get("directed", False):
        text += ", directed neighbours"
    return text


# Files.


def find_gaps(regions, limits):
    """Return [(low, high)], the intervals of x that regions do not cover, as ends.

    Args:
        regions: (low, high, formulas) in increasing order of x.
        limits: (rationals around the lower end of x, rationals around the upper end), the latter
            None for no end.
    """
    low_limits, high_limits = limits
    low = regions[0][0]
    high = regions[-1][1]
    gaps = []
    if not low.is_at_most(low_limits[0]):
        gaps.append((End(str(low_limits[0])), low))
    for (_, upper, _), (lower, _, _) in pairwise(regions):
        ensure(upper is not None, "Regions overlap.", "false")
        if not upper.equals(lower):
            ensure(is_less(upper, lower), "Regions overlap.", "false")
            gaps.append((upper, lower))
    if high is not None and (high_limits is None or high.is_at_most(high_limits[1])):
        gaps.append((high, None if high_limits is None else End(str(high_limits[1]))))
    return gaps


def is_less(left, right):
    """Decide whether the first of two different ends is less.

    Their intervals are halved until they part.

    Args:
        left, right: ends.
    """
    for _ in range(MAX_HALVINGS):
        if left.high <= right.low or left.low >= right.high:
            break
        left.halve()
        right.halve()
    return left.high <= right.low


def read_question(data):
    """Read the family and the options of a file's question.

    Args:
        data: the JSON value of the file.
    """
    question = read_typed(data["question"], dict, "The question")
    ensure(set(question) == {"family", "options"}, "The question has other entries.")
    family = question["family"]
    options = read_typed(question["options"], dict, "The options")
    is_known = isinstance(family, str) and family in PROGRAM_BUILDERS
    ensure(is_known, f"This checker does not know the family {str(family)[:40]!r}.", "unknown")
    return family, options


# The function that builds the program of each family.
PROGRAM_BUILDERS = {
    "modulo": build_modulo_program,
    "channel": build_channel_program,
    "labels": build_labels_program,
    "quantizer": build_quantizer_program,
}


def read_interval(values, name):
    """Read the two ends of an interval.

    Args:
        values: a JSON value.
        name: name of the value in messages.
    """
    ends = [read_rational(read_typed(end, str, name)) for end in read_typed(values, list, name)]
    ensure(len(ends) == 2 and 0 <= ends[0] <= ends[1], f"{name} must be two numbers in order.")
    return ends


def read_budget_intervals(data):
    """Read the intervals of δ and of ε; the latter is None for all ε.

    Args:
        data: the JSON value of the file.
    """
    delta = read_interval(data["delta"], "delta")
    ensure(delta[1] <= 1, "delta must be two numbers in order.")
    if data["epsilon"] is None:
        return delta, None
    epsilon = read_interval(data["epsilon"], "epsilon")
    ensure(epsilon[1] > 0, "epsilon must be two numbers in order.")
    ensure(epsilon[1] <= MAX_EPSILON, f"epsilon is above {MAX_EPSILON}.", "too large")
    return delta, epsilon


def prove_regions(data, programs, delta):
    """Return (low, high, formulas) of every region.

    Args:
        data: the JSON value of the file.
        programs: the program, and the one of the least sum of violations.
        delta: the interval of δ, two rationals.
    """
    regions = []
    for entry in read_typed(data["regions"], list, "The regions"):
        names = {"low", "high", "sample", "feasible", "bases"}
        ensure(set(read_typed(entry, dict, "A region")) == names, "A region has other entries.")
        low = End(entry["low"])
        high = None if entry["high"] is None else End(entry["high"])
        program = programs[entry["feasible"] is False]
        regions.append((low, high, prove_region(program, entry, delta, low, high)))
    ensure(regions, "There are no regions.", "false")
    return regions


def check_open_intervals(data, gaps, steps):
    """Refuse a file that calls other intervals open than those that its regions do not cover.

    Args:
        data: the JSON value of the file.
        gaps: uncovered intervals, as `find_gaps` returns them.
        steps: q of x = e^(ε/q).
    """
    intervals = read_typed(data["open"], list, "open")
    sentence = f"{len(gaps)} intervals of epsilon are left out, {len(intervals)} are called open."
    ensure(len(gaps) == len(intervals), sentence, "false")
    for interval, (low, high) in zip_equal(intervals, gaps):
        agrees = are_epsilons_of(interval, low, high, steps)
        ensure(agrees, "Another interval of epsilon is left out.", "false")


def prove_statement(data):
    """Return the statement that a file proves, a sentence.

    Args:
        data: the JSON value of the file.

    Raises:
        Refused: the file is false, unreadable, too large or unknown.
    """
    STURM_CHAINS.clear()
    ensure(
        isinstance(data, dict) and data.get("format") == FORMAT, f"The format must be {FORMAT!r}."
    )
    ensure(type(data.get("version")) is int, "The version must be an integer.")
    ensure(data["version"] == VERSION, f"This checker knows version {VERSION}.", "unknown")
    ensure(set(data) == set(ENTRIES), f"A formula must have the entries {', '.join(ENTRIES)}.")
    family, options = read_question(data)
    delta, epsilon = read_budget_intervals(data)
    build_program = PROGRAM_BUILDERS[family]
    programs = [build_program(options, bool(delta[1]), relaxed) for relaxed in (False, True)]
    steps = programs[0].steps
    variable = "x = exp(epsilon)" if steps == 1 else f"x = exp(epsilon/{steps})"
    ensure(data["variable"] == variable, f"The variable must be {variable}.", "false")
    question = describe_question(family, options, programs[0])
    ensure(data["what"] == question, f"The question must be called {question!r}.", "false")
    regions = prove_regions(data, programs, delta)
    limits = ((Fraction(1), Fraction(1)), None)
    if epsilon is not None:
        limits = [enclose_exp(end / steps) for end in epsilon]
    gaps = find_gaps(regions, limits)
    has_one_epsilon = epsilon is not None and epsilon[0] == epsilon[1]
    ensure(not (has_one_epsilon and gaps), "The one epsilon is not within the region.", "false")
    shown_pieces = read_typed(data["pieces"], list, "The pieces")
    check_open_intervals(data, gaps, steps)
    pieces = merge_regions(regions)
    ensure(
        len(shown_pieces) == len(pieces),
        f"There are {len(pieces)} formulas, not {len(shown_pieces)}.",
        "false",
    )
    for shown_piece, piece in zip_equal(shown_pieces, pieces):
        check_piece(shown_piece, *piece, steps)
    if options.get("directed", False):
        question += " (one side of each pair only)"
    text = f"{question}: {len(pieces)} formulas in {len(regions)} intervals of epsilon"
    if gaps:
        return f"{text}, {len(gaps)} intervals are open."
    return f"{text}, without gap."


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
