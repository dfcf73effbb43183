#!/usr/bin/env python3
"""A second, independent checker of formulas: one file, the standard library, nothing of the workbench.

    python check_formula.py FILE...

    proven       exit code 0    every formula of the file is the optimum wherever the file says, for every ε and δ there
    false        1              it is not, or ε are left out that the file does not call open
    unreadable   2              there is no such file, or it is no formula's
    too large    2              a number, a program or a basis beyond the limits below, or more than SECONDS of work
    unknown      2              a question that is not below, or a Python older than 3.8: nothing is said about it

All that a file shows is checked: the words, the variable, the open intervals, and of every piece its interval, its
polynomials, its breakpoint and its formula as text. Exit code 1 is given for a false file alone.

What is decided. With x = e^(ε/q) the question is the linear program, rows in this order, columns as they are named:

    modulo    f(η), y_μ(η)        min Σ ρ(η) f(η), or the largest expected loss z of an answer
              Σ f = 1;  for every μ, rising, with its budget w: f(η) - x^(qw) f(η + μ) - y_μ(η) <= 0, Σ y_μ <= δ
    channel   M(i,o), s(i,j,o)    min Σ p_i ℓ(i,o) M(i,o), or the largest expected loss z of an input
              Σ_o M(i,o) = 1;  M(i,o) - x^(qd) M(j,o) - s(i,j,o) <= 0 for both orders of neighbours at distance d,
              Σ_o s(i,j,o) <= δ;  with t(o) in place of s where δ = 0 and all are neighbours: t(o) <= M(i,o) <= x t(o)
    labels    the same (method lp)
    quantizer the laws at both ends of every piece, see `quantizer`

z first, all columns but z in [0, 1]; without y, s and their rows where δ = 0; outputs o outside, inputs inside;
constraints by name after Σ M = 1 where they are equations, else after privacy. Where a region has no mechanism the
program is that of the least sum of violations, which must be positive. A basis names what is
held at which side ("-" lower, "+" upper, "0" basic). Its equations are solved over the rational functions of x. It is
optimal where its point is within all sides and its multipliers have the right signs: polynomials in x, positive at the
region's sample, and without a change of sign in the region by Sturm's theorem. Where δ is free, the formulas of the
bases hold one after the other, between the δ at which they meet: each bounds the convex optimum from below wherever
its multipliers have the right signs, and is reached at both of its ends.
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

FORMAT, VERSION = "dp-workbench formula", 1
SHOWN = ("what", "variable", "pieces", "open")
ENTRIES = (*SHOWN, "format", "version", "question", "epsilon", "delta", "regions")
LARGEST = 100  # equations of a basis: seconds
SIMPLE = 10**6  # of a denominator of a share of labels
BYTES = 16 << 20
SECONDS = 8  # of CPU time for a file
MEMORY = 2 << 30  # bytes
MASSES = 4000  # of a mechanism
NUMBERS = 200_000  # entries of a program
POWERS = 200  # of x, in the entries of a program
DEGREE = 2000  # of a polynomial that a file holds
WIDTH = 200_000  # its terms, times the bits of the longest number of an end
LONGEST = 100  # epsilon
CLOSE = 1e-14  # of floats that are shown, relative and absolute
SIGNS = {"-": -1, "0": 0, "+": 1}


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
    lists = [list(values) for values in lists]
    need(len({len(values) for values in lists}) < 2, "Two lists differ in length.")
    return list(zip(*lists))  # noqa: B905


def gcd(values):
    """The greatest common divisor of integers, 0 of none."""
    return reduce(math.gcd, values, 0)


def lcm(values):
    """The least common multiple of positive integers, 1 of none."""
    return reduce(lambda a, b: a * b // math.gcd(a, b), values, 1)


# Polynomials: lists of integers by rising power, without zeros at the end; [] is 0.


def trimmed(p):
    """Without zeros at the end."""
    while p and not p[-1]:
        p.pop()
    return p


def plus(p, q, factor=1):
    """p + factor q."""
    size = max(len(p), len(q))
    return trimmed(
        [(p[k] if k < len(p) else 0) + factor * (q[k] if k < len(q) else 0) for k in range(size)]
    )


def times(p, q):
    """p q."""
    if not p or not q:
        return []
    product = [0] * (len(p) + len(q) - 1)
    for i, a in enumerate(p):
        if a:
            for j, b in enumerate(q):
                product[i + j] += a * b
    return product


def sign(p, x):
    """-1, 0 or 1 at a rational."""
    value, power = 0, 1
    for entry in reversed(p):
        value, power = value * x.numerator + entry * power, power * x.denominator
    return (value > 0) - (value < 0)


def primitive(p):
    """Divided by the common factor of its coefficients; its sign stays."""
    common = gcd(p) or 1
    return [value // common for value in p]


def remainder(p, q):
    """A positive multiple of the remainder of p by q."""
    p = list(p)
    while len(p) >= len(q):
        top, shift = p[-1], len(p) - len(q)
        scale = abs(q[-1])
        p = [scale * value for value in p]
        for k, value in enumerate(q):
            p[k + shift] -= (top if q[-1] > 0 else -top) * value
        trimmed(p)
        p = primitive(p)
    return p


def common(p, q):
    """The greatest common divisor, with a positive first coefficient."""
    content = gcd([*p, *q])
    p, q = primitive(p), primitive(q)
    while q:
        p, q = q, primitive(remainder(p, q))
    p = p if not p or p[-1] > 0 else [-value for value in p]
    return [content * value for value in p]


def quotient(p, q):
    """p/q, which is a polynomial of integers."""
    p, result = list(p), [0] * (len(p) - len(q) + 1)
    for k in range(len(result) - 1, -1, -1):
        result[k], rest = divmod(p[k + len(q) - 1], q[-1])
        assert not rest
        for j, value in enumerate(q):
            p[k + j] -= result[k] * value
    return trimmed(result)


def slope(p):
    """The derivative."""
    return [k * value for k, value in enumerate(p)][1:]


def odd_part(p):
    """The product of the factors of odd multiplicity, by Yun's algorithm: p changes its sign at its zeros only."""
    product, p = [1], primitive(p)
    first = common(p, slope(p)) if len(p) > 1 else [1]
    b = quotient(p, first)
    d = plus(quotient(slope(p), first), slope(b), -1) if len(p) > 1 else []
    odd = True
    while len(b) > 1:
        factor = common(b, d) if d else b
        b, c = quotient(b, factor), quotient(d, factor) if d else []
        if odd:
            product = times(product, factor)
        d, odd = plus(c, slope(b), -1), not odd
    return primitive(product)


def changes(chain, x):
    """Changes of sign of a chain at x, None for infinity."""
    values = [(p[-1] > 0) - (p[-1] < 0) if x is None else sign(p, x) for p in chain]
    values = [value for value in values if value]
    return sum(a != b for a, b in pairwise(values))


CHAINS = {}  # of Sturm, by polynomial


def zeros(p, low, high):
    """How many different zeros a polynomial has in (low, high], by Sturm's theorem; high None: infinity."""
    if tuple(p) not in CHAINS:
        chain = [p, slope(p)]
        while chain[-1]:
            chain.append([-value for value in remainder(chain[-2], chain[-1])])
        CHAINS[tuple(p)] = chain[:-1]
    chain = CHAINS[tuple(p)]
    return changes(chain, low) - changes(chain, high)


# Rational functions, affine in δ: (a, b, d) is (a + δ b)/d.


def ratio(a, b, d):
    """In lowest terms."""
    if not a and not b:
        return [], [], [1]
    divisor = common(common(a, b) if b else a, d)
    if d[-1] < 0:
        divisor = [-value for value in divisor]
    return quotient(a, divisor), quotient(b, divisor), quotient(d, divisor)


def total(f, g, factor=1):
    """f + factor g."""
    if not g[0] and not g[1]:
        return f
    return ratio(
        *(plus(times(f[k], g[2]), times(g[k], f[2]), factor) for k in (0, 1)), times(f[2], g[2])
    )


def scaled(f, p, q=(1,)):
    """f p/q."""
    return ratio(times(f[0], p), times(f[1], p), times(f[2], list(q)))


def number(value):
    """A rational."""
    return trimmed([Fraction(value).numerator]), [], [Fraction(value).denominator]


def put(f, end):
    """f at δ = end, a function of x."""
    return (
        f
        if not f[1]
        else ratio(plus(times(f[0], end[2]), times(f[1], end[0])), [], times(f[2], end[2]))
    )


# Questions.


class Program:
    """Rows: ({column: polynomial}, lower, upper), sides affine in δ as (constant, slope) or None; columns between 0 and
    an upper end, or None."""

    def __init__(self, steps, relaxed):
        self.steps, self.relaxed, self.entries = steps, relaxed, 0
        self.cost, self.upper, self.rows, self.vertices = [], [], [], {}

    def columns(self, costs, upper=Fraction(1)):
        """The first of some columns."""
        self.count(len(costs))
        self.cost += costs
        self.upper += [upper] * len(costs)
        return len(self.cost) - len(costs)

    def count(self, entries):
        """Refuse a program of too many entries."""
        self.entries += entries
        need(self.entries <= NUMBERS, f"The program has more than {NUMBERS} entries.", "too large")

    def power(self, level, factor=-1):
        """factor e^(level ε), a polynomial in x."""
        return [0] * int(level * self.steps) + [factor]

    def row(self, entries, low, high):
        """Entries are lists of rationals; columns with the entry 0 are left out."""
        self.count(len(entries))
        self.rows.append(({j: p for j, p in entries.items() if any(p)}, low, high))

    def below(self, entries):
        """A row that is at most 0."""
        self.row(entries, None, (0, 0))

    def equal(self, entries, side):
        """A row with equal sides."""
        self.row(entries, (side, 0), (side, 0))

    def finished(self):
        """In integers; relaxed: with two columns for every row, whose sum is to be least."""
        if self.relaxed:
            count, size = len(self.cost), len(self.rows)
            self.cost, self.upper = (
                [Fraction(0)] * count + [Fraction(1)] * (2 * size),
                [*self.upper, *[None] * (2 * size)],
            )
            self.rows = [
                ({**entries, count + i: [1], count + size + i: [-1]}, low, high)
                for i, (entries, low, high) in enumerate(self.rows)
            ]
        rows, self.rows = self.rows, []
        for entries, low, high in rows:
            numbers = [v for p in entries.values() for v in p] + [
                v for side in (low, high) if side for v in side
            ]
            scale = lcm(Fraction(v).denominator for v in numbers)
            whole = {j: trimmed([int(v * scale) for v in p]) for j, p in entries.items()}
            sides = [side and (side[0] * scale, side[1] * scale) for side in (low, high)]
            self.rows.append((whole, *sides))
        return self


NUMERAL = re.compile(
    r"-?[0-9]{1,4000}(\.[0-9]{1,4000})?(e-?[0-9]{1,3})?|-?[0-9]{1,4000}/[0-9]{1,4000}"
)
HEXADECIMAL = re.compile("-?0x[0-9a-f]{1,8000}/0x[0-9a-f]{1,8000}")


def typed(value, kind, what):
    """A value of one type of JSON; true and false are no integers."""
    need(type(value) is kind, f"{what} must be of another type.")
    return value


def rational(value):
    """The exact number of a text; of a JSON number what its digits say."""
    text = repr(value) if type(value) in (int, float) else typed(value, str, "A number")
    if HEXADECIMAL.fullmatch(text):
        top, bottom = (int(part, 16) for part in text.split("/"))
        need(bottom, "A number divides by 0.")
        return Fraction(top, bottom)
    need(NUMERAL.fullmatch(text), "A number must be a decimal or a ratio of moderate length.")
    need("/" not in text or int(text.partition("/")[2]), "A number divides by 0.")
    return Fraction(text)


def fractions(values):
    """Rationals of a list."""
    return [rational(value) for value in typed(values, list, "Numbers")]


def integers(values, what):
    """A list of integers."""
    return [typed(value, int, what) for value in typed(values, list, what)]


def coefficient(text):
    """An integer of a text."""
    need(
        isinstance(text, str) and re.fullmatch("-?[0-9]{1,4000}", text),
        "A coefficient must be an integer.",
    )
    return int(text)


def shown_integer(value):
    """An integer of JSON."""
    return typed(value, int, "A coefficient")


def polynomial(values, read_entry):
    """Coefficients by rising power."""
    need(
        len(typed(values, list, "A polynomial")) <= DEGREE,
        f"A polynomial has over {DEGREE} terms.",
        "too large",
    )
    return trimmed([read_entry(value) for value in values])


def shares_of(weights):
    """Weights over their sum."""
    need(
        weights and min(weights) >= 0 and any(weights),
        "A prior must be weights that are not all 0.",
    )
    return [weight / sum(weights) for weight in weights]


def known(options, names, notions):
    """Refuse options that are not of some names."""
    need(set(options) <= set(names), "A question unknown here.", "unknown")
    need(options.get("notion", "dp") in notions, "A notion unknown here.", "unknown")
    typed(options.get("directed", False), bool, "directed")


def steps_of(levels):
    """q where all levels are multiples of 1/q."""
    steps = lcm(level.denominator for level in levels)
    need(all(level >= 0 for level in levels), "A budget must be at least 0.")
    need(max(levels) * steps <= POWERS, f"A power of x is above {POWERS}.", "too large")
    return steps


def modulo(options, delta, relaxed):
    """The program of noise."""
    known(
        options,
        {"sizes", "shifts", "directed", "loss", "notion", "epsilon"},
        ("dp", "pure", "metric"),
    )
    sizes = integers(options["sizes"], "A size")
    need(0 < len(sizes) <= 32 and min(sizes) > 0, "There must be 1 to 32 positive sizes.")
    order = math.prod(sizes)
    need(order <= MASSES, f"The mechanism has more than {MASSES} probabilities.", "too large")
    shifts = [
        integers(s if isinstance(s, list) else [s], "A shift")
        for s in typed(options["shifts"], list, "shifts")
    ]
    need(shifts and len(shifts) <= MASSES, f"There must be 1 to {MASSES} shifts.")
    places = [[]]
    for size in sizes:
        places = [[*place, k] for place in places for k in range(size)]
    index = {tuple(place): k for k, place in enumerate(places)}
    levels = {
        tuple(s % size for s, size in together(shift, sizes)): Fraction(1) for shift in shifts
    }
    budgets = typed(options.get("epsilon", ""), str, "epsilon")
    for part in budgets.split("," if len(sizes) == 1 else ";") if budgets else ():
        move, _, level = part.partition("=")
        need(re.fullmatch("-?[0-9]{1,40}(,-?[0-9]{1,40})*", move), "A shift must be integers.")
        parts = [int(s) for s in move.split(",")]
        levels[tuple(s % size for s, size in together(parts, sizes))] = rational(level)
    need(all(any(move) for move in levels), "A shift must not be 0.")
    if not options.get("directed", False):
        opposite = {
            tuple(-s % n for s, n in together(move, sizes)): level for move, level in levels.items()
        }
        need(
            all(levels.get(move, level) == level for move, level in opposite.items()),
            "Two budgets for one shift.",
        )
        levels.update(opposite)
    kinds = {
        "error-rate": lambda place: int(any(place)),
        "squared": lambda place: sum(k * (n - k) for k, n in together(place, sizes)),
        "eta-squared": lambda place: sum(k * k for k in place),
        "circular-squared": lambda place: sum(
            min(k, n - k) ** 2 for k, n in together(place, sizes)
        ),
    }
    loss = options.get("loss", "error-rate")
    program = Program(steps_of(levels.values()), relaxed)
    if loss == "worst-squared":
        need(order**2 <= NUMBERS, f"The program has more than {NUMBERS} entries.", "too large")
        errors = [[squared_error(true, place, sizes) for place in places] for true in places]
        worst, costs = (
            program.columns([Fraction(1)], Fraction(max(map(sum, errors)))),
            [Fraction(0)] * order,
        )
    else:
        need(isinstance(loss, list) or loss in kinds, "A loss unknown here.", "unknown")
        costs = (
            fractions(loss)
            if isinstance(loss, list)
            else [Fraction(kinds[loss](place)) for place in places]
        )
        need(len(costs) == order, "There must be one loss for every noise value.")
    first = program.columns(costs)
    paid = [program.columns([Fraction(0)] * order) for _ in levels] if delta else []
    program.equal({first + k: [1] for k in range(order)}, 1)
    if loss == "worst-squared":
        for row in errors:
            program.below({**{first + k: [error] for k, error in enumerate(row)}, worst: [-1]})
    for k, (move, level) in enumerate(sorted(levels.items())):
        for e, place in enumerate(places):
            there = first + index[tuple((a + b) % n for a, b, n in together(place, move, sizes))]
            entries = {first + e: [1]}
            entries[there] = plus(entries.get(there, []), program.power(level))
            program.below({**entries, **({paid[k] + e: [-1]} if delta else {})})
        if delta:
            program.row({paid[k] + e: [1] for e in range(order)}, None, (0, 1))
    return program.finished()


def squared_error(true, noise, sizes):
    """(((true + noise) mod n) - true)², summed over coordinates."""
    return sum(((a + b) % n - a) ** 2 for a, b, n in together(true, noise, sizes))


def losses_of(loss, answers, outputs):
    """ℓ(i, o) as rows."""
    powers = {"absolute": 1, "squared": 2, "error-rate": 0}
    if isinstance(loss, list):
        need(
            [len(row) for row in loss] == [len(outputs)] * len(answers),
            "A loss is no matrix of answers and outputs.",
        )
        return [fractions(row) for row in loss]
    need(loss in powers, "A loss unknown here.", "unknown")
    return [
        [abs(y - o) ** powers[loss] if powers[loss] else Fraction(y != o) for o in outputs]
        for y in answers
    ]


def relation(near, answers, metric):
    """(pairs, their distances): on a line the budgets of consecutive answers add up."""
    if near != "all":
        need(
            isinstance(near, list) and all(len(pair) == 2 for pair in near),
            "Neighbours unknown here.",
            "unknown",
        )
        need(near and len(near) <= NUMBERS, "There must be neighbours, and not too many.")
        index = {answer: place for place, answer in enumerate(answers)}
        pairs = [tuple(index[rational(value)] for value in pair) for pair in near]
        need(all(i != j for i, j in pairs), "Neighbours must be different answers.")
    elif metric:
        order = sorted(range(len(answers)), key=answers.__getitem__)
        pairs = sorted((min(pair), max(pair)) for pair in pairwise(order))
    else:
        pairs = list(combinations(range(len(answers)), 2))
    return pairs, [abs(answers[i] - answers[j]) if metric else Fraction(1) for i, j in pairs]


def channel(options, delta, relaxed):
    """The program of a channel."""
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
    known(options, names, ("dp", "pure", "metric"))
    directed = options.get("directed", False)
    need(not directed or options["neighbours"] != "all", "Directed neighbours are listed.")
    answers = fractions(options["answers"])
    outputs = fractions(options.get("outputs") or options["answers"])
    k, m, prior = len(answers), len(outputs), options.get("prior", "uniform")
    need(
        len(set(answers)) == k > 1 and len(set(outputs)) == m > 0,
        "Answers and outputs must differ.",
    )
    need(
        k * m <= MASSES and k * k <= 2 * NUMBERS,
        f"The mechanism has more than {MASSES} probabilities.",
        "too large",
    )
    losses = losses_of(options.get("loss", "squared"), answers, outputs)
    metric, near = options.get("notion") == "metric", options["neighbours"]
    pairs, levels = relation(near, answers, metric)
    program = Program(steps_of(levels), relaxed)
    if prior == "worst":
        worst, weights = program.columns([Fraction(1)], max(map(max, losses))), [Fraction(0)] * k
    else:
        weights = shares_of([Fraction(1)] * k if prior == "uniform" else fractions(prior))
        need(len(weights) == k, "There must be one weight for every answer.")
    first = program.columns([weights[i] * losses[i][o] for o in range(m) for i in range(k)])

    def mass(i, o):
        return first + i + k * o

    for i in range(k):
        program.equal({mass(i, o): [1] for o in range(m)}, 1)
    constraints(
        program, options.get("constraints", ()), mass, answers, outputs, ("unbiased", "symmetric")
    )
    if near == "all" and not delta and not metric:
        column = program.columns([Fraction(0)] * m)
        for o in range(m):
            for i in range(k):
                program.below({mass(i, o): [-1], column + o: [1]})
        for o in range(m):
            for i in range(k):
                program.below({mass(i, o): [1], column + o: program.power(1)})
    else:
        for level in sorted(set(levels)):
            own = [pair for pair, other in together(pairs, levels) if other == level]
            ratios(
                program,
                own if directed else [*own, *((j, i) for i, j in own)],
                mass,
                m,
                level,
                delta,
            )
    order = ("row-monotone", "column-monotone", "honest")
    constraints(program, options.get("constraints", ()), mass, answers, outputs, order)
    if prior == "worst":
        for i in range(k):
            program.below({**{mass(i, o): [losses[i][o]] for o in range(m)}, worst: [-1]})
    return program.finished()


def ratios(program, ordered, mass, m, level, delta):
    """The privacy of ordered pairs with one budget."""
    paid = program.columns([Fraction(0)] * (len(ordered) * m)) if delta else 0
    for o in range(m):
        for p, (i, j) in enumerate(ordered):
            slack = {paid + p + len(ordered) * o: [-1]} if delta else {}
            program.below({mass(i, o): [1], mass(j, o): program.power(level), **slack})
    for p in range(len(ordered)) if delta else ():
        program.row({paid + p + len(ordered) * o: [1] for o in range(m)}, None, (0, 1))


def constraints(program, names, mass, answers, outputs, kinds):
    """The rows of constraints of some kinds, in the order they were asked for."""
    k, m = len(answers), len(outputs)
    for name in [name for name in names if name in kinds]:
        if name == "unbiased":
            for i, answer in enumerate(answers):
                program.equal({mass(i, o): [output] for o, output in enumerate(outputs)}, answer)
        elif name == "symmetric":
            for i in range((k + 1) // 2):
                for o in range(m):
                    own, other = mass(i, o), mass(k - 1 - i, m - 1 - o)
                    program.equal({own: [1], other: [-1]} if own != other else {}, 0)
        elif name == "honest":
            for o, output in enumerate(outputs):
                for i, answer in enumerate(answers):
                    own = mass(i, outputs.index(answer))
                    program.below({mass(i, o): [1], own: [-1]} if output != answer else {})
        else:
            by_row = name == "row-monotone"
            steps = [(i, o) for i in range(k - (not by_row)) for o in range(m - by_row)]
            for near in (
                True,
                False,
            ):  # towards the answer's own output masses rise, away from it they fall
                for i, o in steps:
                    start, end = (i, o), (i, o + 1) if by_row else (i + 1, o)
                    at_i, at_o = end if near else start
                    beyond = (outputs[at_o] - answers[at_i]) * (1 if by_row else -1)
                    if beyond <= 0 if near else beyond >= 0:
                        low, high = (start, end) if near else (end, start)
                        program.below({mass(*low): [1], mass(*high): [-1]})
    unknown = set(names) - {"unbiased", "symmetric", "honest", "row-monotone", "column-monotone"}
    need(not unknown, "A constraint unknown here.", "unknown")


def labels(options, delta, relaxed):
    """The program of labels with method lp: that of a channel."""
    known(options, {"labels", "prior", "outputs", "neighbours", "notion", "loss", "method", "constraints"},
          ("dp", "pure", "metric"))  # fmt: skip
    need(options.get("method") == "lp", "A method unknown here.", "unknown")
    given = typed(options["labels"], str, "labels")
    low, dots, high = given.partition("..")
    if dots:
        first, last = int(rational(low)), int(rational(high))
        need(0 < last - first < MASSES, f"There must be 2 to {MASSES} labels.")
        places = [Fraction(k) for k in range(first, last + 1)]
    else:
        places = [rational(part.strip()) for part in given.split(",")]
    own = {name: options[name] for name in ("loss", "notion", "constraints") if name in options}
    prior = options.get("prior", "uniform")
    shares = shares_of([Fraction(1)] * len(places) if prior == "uniform" else fractions(prior))
    need(max(share.denominator for share in shares) <= SIMPLE, "A prior unknown here.", "unknown")
    near = options.get("neighbours", "all")
    whole = len(places) * (len(places) - 1) // 2
    if near != "all":
        pairs = (
            pairwise(range(len(places)))
            if near == "consecutive"
            else [integers(pair, "A label") for pair in near]
        )
        need(
            all(len(pair) == 2 and min(pair) >= 0 and max(pair) < len(places) for pair in pairs),
            "No such label.",
        )
        different = {tuple(sorted(pair)) for pair in pairs}
        near = (
            "all"
            if len(different) == whole
            else [[str(places[i]), str(places[j])] for i, j in pairs]
        )
    channel_options = {
        "answers": [str(place) for place in places],
        "outputs": options.get("outputs") or [str(place) for place in places],
        "prior": [str(share) for share in shares],
        "neighbours": near,
    }
    return channel({**own, **channel_options}, delta, relaxed)


def quantizer(options, delta, relaxed):
    """The program of unbiased laws affine between knots, inputs uniform on [-c, c]: in units of c

        s_e(i), low(i) >= 0     min Σ_e Σ_i (∫ |x - B_i|^p h_e(x) dx / 2) (s_e(i) + low(i))
        Σ_i s_e(i) + low(i) = 1,  Σ_i B_i (s_e(i) + low(i)) = x_e,  s_e(i) <= (x - 1) low(i)

    where every piece [a, b] has two points e, a and b, with h_e the affine function that is 1 there and 0 at the other.
    """
    known(options, {"bins", "c", "loss", "knots", "notion"}, ("dp", "pure"))
    need(not delta, "delta unknown here.", "unknown")
    c, loss = rational(options.get("c", 1)), options.get("loss", "absolute")
    need(c > 0, "c must be positive.")
    outputs = [value / c for value in fractions(options["bins"])]
    need(
        1 < len(outputs) <= MASSES and all(a < b for a, b in pairwise(outputs)),
        "The bins must increase.",
    )
    share = Fraction(loss == "absolute") if loss in ("absolute", "squared") else rational(loss)
    need(0 <= share <= 1, "The share of the absolute error must lie in [0, 1].")
    extra, m = typed(options.get("knots", 0), int, "knots"), len(outputs)
    need(extra == 0 or 1 < extra <= MASSES, "There must be two knots or more.")
    spread = {Fraction(2 * k, extra - 1) - 1 for k in range(extra)} if extra else set()
    knots = sorted({Fraction(-1), Fraction(1), *(b for b in outputs if -1 < b < 1), *spread})
    need(
        2 * len(knots) * m <= MASSES,
        f"The mechanism has more than {MASSES} probabilities.",
        "too large",
    )
    points, costs = [], []
    for a, b in pairwise(knots):
        for own, other in ((a, b), (b, a)):
            points.append(own)
            hat = [-other / (own - other), 1 / (own - other)]
            ways = [[(-output, 1), 1 if output <= a else -1] for output in outputs]
            costs.append([
                (share * c * sign * integral(times_any(hat, error), a, b)
                 + (1 - share) * c**2 * integral(times_any(hat, times_any(error, error)), a, b)) / 2
                for error, sign in ways
            ])  # fmt: skip
    n, program = len(points), Program(1, relaxed)
    program.knots = len(knots)
    s = program.columns([costs[e][i] for i in range(m) for e in range(n)], None)
    low = program.columns([sum(costs[e][i] for e in range(n)) for i in range(m)], None)
    for factors, sides in (([1] * m, [1] * n), (outputs, points)):
        for e in range(n):
            entries = {
                column: [f] for i, f in enumerate(factors) for column in (s + e + n * i, low + i)
            }
            program.equal(entries, sides[e])
    for i in range(m):
        for e in range(n):
            program.below({s + e + n * i: [1], low + i: [1, -1]})
    return program.finished()


def times_any(p, q):
    """A product of polynomials of rationals."""
    product = [Fraction(0)] * (len(p) + len(q) - 1)
    for i, a in enumerate(p):
        for j, b in enumerate(q):
            product[i + j] += a * b
    return product


def integral(p, a, b):
    """Of a polynomial from a to b."""
    return sum(value * (b ** (k + 1) - a ** (k + 1)) / (k + 1) for k, value in enumerate(p))


# Bases.


def solved(rows, rights):
    """The solution of square equations {unknown: polynomial} = rational function, by fraction-free elimination."""
    need(
        len(rows) <= LARGEST,
        f"A basis has {len(rows)} equations; at most {LARGEST} are allowed.",
        "too large",
    )
    left = [
        ({j: times(p, right[2]) for j, p in row.items()}, right[0], right[1])
        for row, right in together(rows, rights)
    ]
    order = []
    while left:
        left.sort(key=lambda part: len(part[0]))
        row, constant, rise = left.pop(0)
        need(row, "A basis is singular.", "false")
        counts = {j: sum(j in other for other, _, _ in left) for j in row}
        j = min(row, key=lambda k: (counts[k], len(row[k])))
        order.append((j, row, constant, rise))
        for k, (other, c, s) in enumerate(left):
            if j in other:
                divisor = common(row[j], other[j])
                up, down = quotient(row[j], divisor), quotient(other[j], divisor)
                entries = {
                    i: plus(times(up, other.get(i, [])), times(down, row.get(i, [])), -1)
                    for i in {*other, *row} - {j}
                }
                entries = {i: p for i, p in entries.items() if p}
                c, s = (
                    plus(times(up, a), times(down, b), -1) for a, b in ((c, constant), (s, rise))
                )
                divisor = []
                for p in (*entries.values(), c, s):
                    divisor = common(divisor, p) if p and divisor else divisor or p
                if divisor:
                    entries = {i: quotient(p, divisor) for i, p in entries.items()}
                    c, s = (quotient(p, divisor) if p else [] for p in (c, s))
                left[k] = entries, c, s
    values = {}
    for j, row, constant, rise in reversed(order):
        value = ratio(constant, rise, [1])
        for k, p in row.items():
            if k != j:
                value = total(value, scaled(values[k], p), -1)
        values[j] = scaled(value, [1], row[j])
    return values


def vertex(program, columns, rows):
    """(value, what must not be negative and is affine in δ, what must not be negative) of a basis."""
    free = [j for j, held in enumerate(columns) if not held]
    tight = [i for i, held in enumerate(rows) if held]
    need(
        len(free) == len(tight),
        "A basis has another number of equations than of unknowns.",
        "false",
    )
    ends = {
        j: Fraction(0) if held < 0 else program.upper[j] for j, held in enumerate(columns) if held
    }
    need(None not in ends.values(), "A basis holds a column where it has no end.", "false")
    point = {j: number(end) for j, end in ends.items()}
    equations, rights = [], []
    for i in tight:
        entries, low, high = program.rows[i]
        side = high if rows[i] > 0 else low
        need(side is not None, "A basis holds a row where it has no side.", "false")
        right = total(number(side[0]), ([], trimmed([side[1]]), [1]))
        for j, p in entries.items():
            if columns[j] > 0:
                right = total(right, scaled(point[j], p), -1)
        equations.append({j: p for j, p in entries.items() if not columns[j]})
        rights.append(right)
    point.update(solved(equations, rights))
    transposed = [
        {i: program.rows[i][0][j] for i in tight if j in program.rows[i][0]} for j in free
    ]
    dual = solved(transposed, [number(program.cost[j]) for j in free])
    value = number(0)
    for j, cost in enumerate(program.cost):
        value = total(value, scaled(point[j], trimmed([cost.numerator]), [cost.denominator]))
    primal = [point[j] for j in free]
    primal += [
        total(number(program.upper[j]), point[j], -1) for j in free if program.upper[j] is not None
    ]
    for (entries, low, high), held in together(program.rows, rows):
        if not held:
            activity = number(0)
            for j, p in entries.items():
                activity = total(activity, scaled(point[j], p))
            for side, factor in ((low, 1), (high, -1)):
                if side is not None:
                    gap = total(activity, total(number(side[0]), ([], trimmed([side[1]]), [1])), -1)
                    primal.append(scaled(gap, [factor]))
    signs = [
        scaled(y, [-rows[i]]) for i, y in dual.items() if program.rows[i][1] != program.rows[i][2]
    ]
    for j, held in enumerate(columns):
        if held:
            reduced = number(program.cost[j])
            for i, y in dual.items():
                if j in program.rows[i][0]:
                    reduced = total(reduced, scaled(y, program.rows[i][0][j]), -1)
            signs.append(scaled(reduced, [-held]))
    return value, primal, signs


# Regions.


class End:
    """The one zero of a polynomial between two rationals, or a rational."""

    def __init__(self, data):
        if isinstance(data, str):
            self.low = self.high = rational(data)
            self.p = [-self.low.numerator, self.low.denominator]
            self.given = self.p
            need(0 <= self.low <= 10**300, "An end must lie in [0, 1e300].")
            return
        need(
            isinstance(data, list) and len(data) == 3,
            "An end must be a number, or a polynomial and two numbers.",
        )
        self.p, self.low, self.high = (
            polynomial(data[0], coefficient),
            rational(data[1]),
            rational(data[2]),
        )
        self.given = self.p
        need(len(self.p) > 1, "An end is no zero of a polynomial.")
        numbers = [*self.p, self.low.denominator, self.high.denominator]
        width = len(self.p) * max(number.bit_length() for number in numbers)
        need(width <= WIDTH, "An end is the zero of too large a polynomial.", "too large")
        need(0 <= self.low < self.high <= 10**300, "An end must lie in [0, 1e300].")
        need(sign(self.p, self.low) and sign(self.p, self.high), "An end is no zero.")
        need(
            zeros(self.p, self.low, self.high) == 1, "An end is not the one zero of its polynomial."
        )
        need(sign(self.p, self.low) != sign(self.p, self.high), "An end is a double zero.")

    def value(self):
        """The float next to it, or the one beside that."""
        while self.high - self.low > Fraction(1, 1 << 60):
            self.halve()
        return float((self.low + self.high) / 2)

    def at_most(self, x):
        """Whether it is at most a rational, which is none of its polynomial's zeros unless it is this very number."""
        for _ in range(400):
            if self.high <= x or self.low > x:
                break
            self.halve()
        return self.high <= x

    def halve(self):
        """The same in half the interval."""
        if self.low < self.high:
            middle = (self.low + self.high) / 2
            here = sign(self.p, middle)
            if not here:
                self.low = self.high = middle
                self.p = [-middle.numerator, middle.denominator]
            elif here == sign(self.p, self.high):
                self.high = middle
            else:
                self.low = middle

    def alone(self, p):
        """Refined until p has no other zero in the closed interval around it."""
        shared = common(p, self.p)
        own = len(shared) > 1 and (
            self.low == self.high or bool(zeros(shared, self.low, self.high))
        )
        for _ in range(400):
            if (
                self.low == self.high
                or zeros(p, self.low, self.high) + (not sign(p, self.low)) == own
            ):
                return
            self.halve()
        raise Refused("too large", "Two numbers are too near to each other.")

    def same(self, other):
        """Whether they are the same number."""
        shared = common(self.p, other.p)
        low, high = max(self.low, other.low), min(self.high, other.high)
        if low > high or len(shared) < 2:
            return False
        return bool(zeros(shared, low, high)) or not sign(shared, low)


def steady(conditions, x, low, high):
    """Refuse conditions that do not hold at x, or change their sign in the region."""
    seen = set()
    for a, b, d in conditions:
        need(not b, "A condition depends on δ.", "false")
        p = times(a, d)
        if not p or tuple(p) in seen:
            continue
        seen.add(tuple(p))
        need(sign(p, x) > 0, f"A condition does not hold at x = {float(x):.6g}.", "false")
        odd = odd_part(p)
        if len(odd) < 2:
            continue
        low.alone(odd)
        inside = zeros(odd, low.high, x)
        if high is None:
            inside += zeros(odd, x, None)
        else:
            high.alone(odd)
            inside += zeros(odd, x, high.low) - (high.low == high.high and not sign(odd, high.low))
        need(
            not inside,
            f"A condition changes its sign in the region of x = {float(x):.6g}.",
            "false",
        )


def formulas(program, entry, delta, low, high):
    """[(value, lower end, upper end)] of a region, proven; the value is None where there is no mechanism."""
    x = rational(typed(entry["sample"], str, "A sample"))
    for _ in range(400):
        if low.high < x and (high is None or high.low > x):
            break
        need(low.low < x and (high is None or high.high > x), "A sample is outside of its region.")
        low.halve()
        if high is not None:
            high.halve()
    else:
        raise Refused("false", "A sample is an end of its region.")
    feasible, parts = entry["feasible"], []
    need(
        feasible is True or (feasible is False and delta[0] == delta[1]),
        "Feasible must be true, or false at one delta.",
    )
    for columns, rows in entry["bases"]:
        need(isinstance(columns, str) and isinstance(rows, str), "A basis must be two texts.")
        need(
            len(columns) == len(program.cost) and len(rows) == len(program.rows),
            "A basis of another size.",
        )
        if (columns, rows) not in program.vertices:
            program.vertices[columns, rows] = vertex(
                program, [SIGNS[s] for s in columns], [SIGNS[s] for s in rows]
            )
        parts.append(program.vertices[columns, rows])
    first, *rest = parts
    bottom, top = map(number, delta)
    if delta[0] == delta[1]:
        (value, primal, signs) = rest[0]
        need(len(rest) == 1, "A region has more than one formula.", "false")
        value = put(value, bottom)
        need(feasible or value[0], "The least violation is 0.", "false")
        steady(
            [*signs, *(put(f, bottom) for f in primal), *([] if feasible else [value])],
            x,
            low,
            high,
        )
        return [(value if feasible else None, bottom, bottom)]
    conditions = [put(f, bottom) for f in first[1]]
    need(
        first[0] == rest[0][0] or first is rest[0], "The first basis has another formula.", "false"
    )
    result, start = [], bottom
    for k, (value, primal, signs) in enumerate(rest):
        end = top
        if k + 1 < len(rest):
            other = rest[k + 1][0]
            gap = total(value, other, -1)
            need(gap[1], "Two formulas are the same.", "false")
            end = ratio([-v for v in gap[0]], [], gap[1])
        conditions += [*signs, *(put(f, end) for f in primal), total(end, start, -1)]
        result.append((value, start, end))
        start = end
    steady(conditions, x, low, high)
    return result


def exp_bounds(epsilon):
    """Rationals around e^ε, ε >= 0, about 1e-40 of it wide."""
    halved, times_halved = epsilon, 0
    while halved > 1:
        halved, times_halved = halved / 2, times_halved + 1
    if not halved:
        return Fraction(1), Fraction(1)
    halved = (
        Fraction(math.floor(halved * 10**60), 10**60),
        Fraction(math.ceil(halved * 10**60), 10**60),
    )
    (low, _), (high, term) = series(halved[0]), series(halved[1])
    high += 2 * term
    for _ in range(times_halved):
        low, high = (
            Fraction(math.floor(low**2 * 10**60), 10**60),
            Fraction(math.ceil(high**2 * 10**60), 10**60),
        )
    return low, high


# What a file shows.


def series(x):
    """(the sum of the first terms of e^x, the last of them)."""
    term = low = Fraction(1)
    for k in range(1, 40):
        term = term * x / k
        low += term
    return low, term


def near(shown, value):
    """Whether a number of a file is the float of a value, None that of infinity."""
    if shown is None or math.isinf(value):
        return shown is None and math.isinf(value)
    same_sign = type(shown) is float and math.copysign(1, shown) == math.copysign(1, value)
    return same_sign and math.isclose(shown, value, rel_tol=CLOSE, abs_tol=CLOSE)


def near_epsilons(shown, low, high, steps):
    """Whether two numbers of a file are the ε of two ends of x."""
    ends = [math.inf if end is None else steps * math.log(end.value()) for end in (low, high)]
    return (
        isinstance(shown, list)
        and len(shown) == 2
        and all(near(a, b) for a, b in together(shown, ends))
    )


TOKEN = re.compile(r"\s*(?:e\^\(([0-9]*)ε(?:/([0-9]+))?\)|(e\^ε)|(δ)|([0-9]+)|([-+/()]))")


class Text:
    """A formula as text: sums, products without a sign, quotients, numbers, δ, e^ε and e^(2ε/3)."""

    def __init__(self, text, steps):
        need(isinstance(text, str) and len(text) <= 1 << 20, "A formula must be a text.")
        need(text == " ".join(text.split()), "A formula has spaces that none has.", "false")
        self.tokens, place = [], 0
        while text[place:].strip():
            match = TOKEN.match(text, place)
            need(match, "A formula has a word that none has.", "false")
            self.tokens.append(self.token(match, steps))
            place = match.end()
        self.tokens.append(None)
        self.tokens.reverse()

    @staticmethod
    def token(match, steps):
        """A sign, or a function of x and δ."""
        top, below, power, delta, digits, mark = match.groups()
        if mark:
            return mark
        if digits:
            need(len(digits) <= 4000, "A number must be of moderate length.")
            return number(int(digits))
        if delta:
            return [], [1], [1]
        level = Fraction(1)
        if not power:
            need(len(top) < 9 and len(below or "") < 9, "A power of e^ε is too large.", "too large")
            level = Fraction(int(top or 1), int(below or 1) or 1)
        need((level * steps).denominator == 1, "A power of e^ε is none of x.", "false")
        need(level * steps <= DEGREE, "A power of e^ε is too large.", "too large")
        return [0] * int(level * steps) + [1], [], [1]

    def take(self, *marks):
        """The next token, where it is one of some signs."""
        return (
            self.tokens.pop()
            if isinstance(self.tokens[-1], str) and self.tokens[-1] in marks
            else None
        )

    def sum(self):
        """Terms with signs."""
        mark = self.take("-")
        result = number(0)
        while True:
            result = total(result, self.product(), -1 if mark == "-" else 1)
            mark = self.take("+", "-")
            if not mark:
                return result

    def product(self):
        """Factors beside each other, and divisors."""
        result = self.factor()
        while True:
            if self.take("/"):
                other = self.factor()
                need(not other[1] and other[0], "A formula divides by δ, or by 0.", "false")
                result = scaled(result, other[2], other[0])
            elif self.tokens[-1] == "(" or isinstance(self.tokens[-1], tuple):
                other = self.factor()
                need(not (result[1] and other[1]), "A formula has a square of δ.", "false")
                result, other = (other, result) if other[1] else (result, other)
                result = scaled(result, other[0], other[2])
            else:
                return result

    def factor(self):
        """A number, a power, δ, or a sum in brackets."""
        if self.take("("):
            inner = self.sum()
            need(self.take(")"), "A bracket of a formula is not closed.", "false")
            return inner
        need(isinstance(self.tokens[-1], tuple), "A formula ends in the middle.", "false")
        return self.tokens.pop()

    def value(self):
        """What it says, in lowest terms."""
        result = self.sum()
        need(self.tokens == [None], "A formula goes on after its end.", "false")
        return result


def shows(text, value, steps):
    """Whether a text is a formula's; None is the value where there is no mechanism."""
    return text == "infeasible" if value is None else Text(text, steps).value() == value


def shown_value(piece, names):
    """A ratio of polynomials that a piece shows."""
    parts = [polynomial(piece.get(name, []), shown_integer) for name in names]
    need(parts[-1], "A formula divides by 0.", "false")
    return (parts[0], [], parts[1]) if len(parts) == 2 else tuple(parts)


def shows_end(data, end):
    """Whether the end of an interval of δ is the file's: a number, or a ratio of polynomials."""
    if len(end[0]) <= 1 and len(end[2]) == 1:
        return near(data, float(Fraction(sum(end[0]), end[2][0])))
    if not isinstance(data, dict) or set(data) != {"numerator", "denominator"}:
        return False
    return shown_value(data, ("numerator", "denominator")) == end


def joined(regions):
    """The pieces [low, high, value, start, end] of regions: neighbouring intervals of one formula as one."""
    pieces = []
    for low, high, parts in regions:
        for value, start, end in parts:
            for piece in pieces:
                if piece[2:] == [value, start, end] and piece[1] is not None and piece[1].same(low):
                    piece[1] = high
                    break
            else:
                pieces.append([low, high, value, start, end])
    return pieces


def check_piece(shown, low, high, value, start, end, steps):
    """Refuse a piece that shows anything but what is proven."""

    def must(condition, what):
        need(condition, f"What a piece shows as {what} is not what is proven.", "false")

    must(isinstance(shown, dict), "itself")
    names = {"epsilon", "delta", "formula", "proven"}
    if value is not None:
        names |= {"numerator", "denominator"} | ({"numerator_delta"} if value[1] else set())
        ratio_shown = shown_value(shown, ("numerator", "numerator_delta", "denominator"))
        must(ratio_shown == value, "its polynomials")
    names |= ({"delta_formula"} if start != end else set()) | (
        {"breakpoint"} if high is not None else set()
    )
    must(set(shown) == names, "its entries")
    must(shown["proven"] is True, "proven")
    must(near_epsilons(shown["epsilon"], low, high, steps), "epsilon")
    ends = shown["delta"]
    must(isinstance(ends, list) and len(ends) == 2, "delta")
    must(shows_end(ends[0], start) and shows_end(ends[1], end), "delta")
    if start != end:
        texts = shown["delta_formula"]
        must(isinstance(texts, list) and len(texts) == 2, "delta_formula")
        must(shows(texts[0], start, steps) and shows(texts[1], end, steps), "delta_formula")
    if high is not None:
        point = shown["breakpoint"]
        must(isinstance(point, dict) and set(point) == {"polynomial", "value"}, "breakpoint")
        must(polynomial(point["polynomial"], shown_integer) == high.given, "breakpoint")
        around = point["value"]
        must(isinstance(around, list) and len(around) == 2, "breakpoint")
        must(all(near(number, high.value()) for number in around), "breakpoint")
    must(shows(shown["formula"], value, steps), "formula")


def text_of(value):
    """A rational as an exact decimal where it has one, else as a ratio."""
    places = next((k for k in range(401) if 10**k % value.denominator == 0), None)
    if places is None:
        return f"{value.numerator}/{value.denominator}"
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    decimal = digits if not places else f"{digits[:-places]}.{digits[-places:]}"
    return f"{'-' if value < 0 else ''}{decimal}"


def question_words(kind, options, program):
    """What is asked, in the words of a file."""
    loss = options.get(
        "loss", {"modulo": "error-rate", "quantizer": "absolute"}.get(kind, "squared")
    )
    if kind == "quantizer":
        if loss not in ("absolute", "squared"):
            share = rational(loss)
            loss = f"{text_of(share)} absolute, {text_of(1 - share)} squared"
        return f"best unbiased law affine between {program.knots} knots, {loss} loss"
    if kind == "modulo":
        if isinstance(loss, list):
            floats = [float(value) for value in fractions(loss)]
            loss = (
                f"own-{hashlib.sha256(struct.pack(f'<{len(floats)}d', *floats)).hexdigest()[:12]}"
            )
        budgets = f", budgets {options['epsilon']} times ε" if options.get("epsilon") else ""
        return f"best noise modulo {'x'.join(map(str, options['sizes']))}, {loss} loss{budgets}"
    loss = "own matrix" if isinstance(loss, list) else loss
    return f"best channel, {loss} loss{', directed neighbours' if options.get('directed', False) else ''}"


# Files.


def left_out(regions, limits):
    """[(low, high)] of what regions leave of an interval of x, as ends. limits: (bounds of its low end, of its high
    end), None without an end."""
    first, last = limits
    low, high = regions[0][0], regions[-1][1]
    gaps = [] if low.at_most(first[0]) else [(End(str(first[0])), low)]
    for (_, above, _), (below, _, _) in pairwise(regions):
        need(above is not None, "Regions overlap.", "false")
        if not above.same(below):
            need(separated(above, below), "Regions overlap.", "false")
            gaps.append((above, below))
    if high is not None and (last is None or high.at_most(last[1])):
        gaps.append((high, None if last is None else End(str(last[1]))))
    return gaps


def separated(above, below):
    """Whether of two different ends the first is less, refined until their intervals part."""
    for _ in range(400):
        if above.high <= below.low or above.low >= below.high:
            break
        above.halve()
        below.halve()
    return above.high <= below.low


def check(data):
    """What a file proves, in words. data: its JSON value. Raises Refused."""
    CHAINS.clear()
    need(isinstance(data, dict) and data.get("format") == FORMAT, f"The format must be {FORMAT!r}.")
    need(type(data.get("version")) is int, "The version must be an integer.")
    need(data["version"] == VERSION, f"This checker knows version {VERSION}.", "unknown")
    need(set(data) == set(ENTRIES), f"A formula must have the entries {', '.join(ENTRIES)}.")
    need(
        set(typed(data["question"], dict, "The question")) == {"family", "options"},
        "The question has other entries.",
    )
    kind, options = (
        data["question"]["family"],
        typed(data["question"]["options"], dict, "The options"),
    )
    kinds = {"modulo": modulo, "channel": channel, "labels": labels, "quantizer": quantizer}
    need(
        isinstance(kind, str) and kind in kinds,
        f"The family {str(kind)[:40]!r} is unknown here.",
        "unknown",
    )
    delta = [rational(typed(end, str, "delta")) for end in typed(data["delta"], list, "delta")]
    need(len(delta) == 2 and 0 <= delta[0] <= delta[1] <= 1, "delta must be two numbers in order.")
    epsilons = None
    if data["epsilon"] is not None:
        epsilons = [
            rational(typed(end, str, "epsilon")) for end in typed(data["epsilon"], list, "epsilon")
        ]
        need(
            len(epsilons) == 2 and 0 <= epsilons[0] <= epsilons[1] > 0,
            "epsilon must be two numbers in order.",
        )
        need(epsilons[1] <= LONGEST, f"epsilon is above {LONGEST}.", "too large")
    programs = [kinds[kind](options, bool(delta[1]), relaxed) for relaxed in (False, True)]
    steps, regions = programs[0].steps, []
    variable = "x = exp(epsilon)" if steps == 1 else f"x = exp(epsilon/{steps})"
    need(data["variable"] == variable, f"The variable must be {variable}.", "false")
    what = question_words(kind, options, programs[0])
    need(data["what"] == what, f"The question must be called {what!r}.", "false")
    for entry in typed(data["regions"], list, "The regions"):
        names = {"low", "high", "sample", "feasible", "bases"}
        need(set(typed(entry, dict, "A region")) == names, "A region has other entries.")
        low = End(entry["low"])
        high = None if entry["high"] is None else End(entry["high"])
        regions.append(
            (low, high, formulas(programs[entry["feasible"] is False], entry, delta, low, high))
        )
    need(regions, "There are no regions.", "false")
    bounds = [exp_bounds(end / steps) for end in epsilons or ()]
    gaps = left_out(regions, bounds or ((Fraction(1), Fraction(1)), None))
    single = epsilons is not None and epsilons[0] == epsilons[1]
    need(not (single and gaps), "The one epsilon is not within the region.", "false")
    shown_gaps, pieces = (
        typed(data["open"], list, "open"),
        typed(data["pieces"], list, "The pieces"),
    )
    sentence = f"{len(gaps)} intervals of epsilon are left out, {len(shown_gaps)} are called open."
    need(len(gaps) == len(shown_gaps), sentence, "false")
    for shown, (low, high) in together(shown_gaps, gaps):
        need(
            near_epsilons(shown, low, high, steps),
            "Another interval of epsilon is left out.",
            "false",
        )
    proven = joined(regions)
    need(
        len(pieces) == len(proven), f"There are {len(proven)} formulas, not {len(pieces)}.", "false"
    )
    for shown, piece in together(pieces, proven):
        check_piece(shown, *piece, steps)
    one_way = " (one side of each pair alone)" if options.get("directed", False) else ""
    words = f"{what}{one_way}: {len(pieces)} formulas in {len(regions)} intervals of epsilon"
    return words + (f", {len(gaps)} intervals are open." if gaps else ", without gap.")


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
