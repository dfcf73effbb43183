#!/usr/bin/env python3
"""A second, independent checker of formulas: one file, the standard library, nothing of the workbench.

    python check_formula.py FILE...

    proven       exit code 0    every formula of the file is the optimum wherever the file says, for every ε and δ there
    false        1              it is not, or ε are left out that the file does not call open
    unreadable   2              there is no such file, or it is no formula's
    too large    2              a basis has more than LARGEST equations
    unknown      2              a question that is not below: nothing is said about it

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

from __future__ import annotations

import json
import math
import sys
from fractions import Fraction
from itertools import combinations, pairwise

FORMAT, VERSION = "dp-workbench formula", 1
LARGEST = 100  # equations of a basis: seconds
SIMPLE = 10**6  # of a denominator of a share of labels
BYTES = 16 << 20
SIGNS = {"-": -1, "0": 0, "+": 1}


class Refused(Exception):
    """The verdict (unreadable, false, too large, unknown) and the reason, a sentence."""


def need(condition, sentence, verdict="unreadable"):
    """The verdict unless a condition holds."""
    if not condition:
        raise Refused(verdict, sentence)


# Polynomials: lists of integers by rising power, without zeros at the end; [] is 0.


def trimmed(p):
    """Without zeros at the end."""
    while p and not p[-1]:
        p.pop()
    return p


def plus(p, q, factor=1):
    """p + factor q."""
    size = max(len(p), len(q))
    return trimmed([(p[k] if k < len(p) else 0) + factor * (q[k] if k < len(q) else 0) for k in range(size)])


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


def at(p, x):
    """p(x)."""
    total = Fraction(0)
    for value in reversed(p):
        total = total * x + value
    return total


def sign(p, x):
    """-1, 0 or 1."""
    value = at(p, x)
    return (value > 0) - (value < 0)


def primitive(p):
    """Divided by the common factor of its coefficients; its sign stays."""
    common = math.gcd(*p) if p else 1
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
    content = math.gcd(*p, *q)
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


def zeros(p, low, high):
    """How many different zeros a polynomial has in (low, high], by Sturm's theorem; high None: infinity."""
    chain = [p, slope(p)]
    while chain[-1]:
        chain.append([-value for value in remainder(chain[-2], chain[-1])])
    return changes(chain[:-1], low) - changes(chain[:-1], high)


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
    return ratio(*(plus(times(f[k], g[2]), times(g[k], f[2]), factor) for k in (0, 1)), times(f[2], g[2]))


def scaled(f, p, q=(1,)):
    """f p/q."""
    return ratio(times(f[0], p), times(f[1], p), times(f[2], list(q)))


def number(value):
    """A rational."""
    return trimmed([Fraction(value).numerator]), [], [Fraction(value).denominator]


def put(f, end):
    """f at δ = end, a function of x."""
    return f if not f[1] else ratio(plus(times(f[0], end[2]), times(f[1], end[0])), [], times(f[2], end[2]))


# Questions.


class Program:
    """Rows: ({column: polynomial}, lower, upper), sides affine in δ as (constant, slope) or None; columns between 0 and
    an upper end, or None."""

    def __init__(self, steps, relaxed):
        self.steps, self.relaxed = steps, relaxed
        self.cost, self.upper, self.rows = [], [], []

    def columns(self, costs, upper=Fraction(1)):
        """The first of some columns."""
        self.cost += costs
        self.upper += [upper] * len(costs)
        return len(self.cost) - len(costs)

    def power(self, level, factor=-1):
        """factor e^(level ε), a polynomial in x."""
        return [0] * int(level * self.steps) + [factor]

    def row(self, entries, low, high):
        """Entries are lists of rationals; columns with the entry 0 are left out."""
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
                (entries | {count + i: [1], count + size + i: [-1]}, low, high)
                for i, (entries, low, high) in enumerate(self.rows)
            ]
        rows, self.rows = self.rows, []
        for entries, low, high in rows:
            numbers = [v for p in entries.values() for v in p] + [v for side in (low, high) if side for v in side]
            scale = math.lcm(*(Fraction(v).denominator for v in numbers))
            whole = {j: trimmed([int(v * scale) for v in p]) for j, p in entries.items()}
            sides = [side and (side[0] * scale, side[1] * scale) for side in (low, high)]
            self.rows.append((whole, *sides))
        return self


def fractions(values):
    """Rationals of texts."""
    return [Fraction(value) for value in values]


def known(options, names, notions):
    """Refuse options that are not of some names."""
    need(set(options) <= set(names), "A question unknown here.", "unknown")
    need(options.get("notion", "dp") in notions, "A notion unknown here.", "unknown")


def steps_of(levels):
    """q where all levels are multiples of 1/q."""
    return math.lcm(*(level.denominator for level in levels))


def modulo(options, delta, relaxed):
    """The program of noise."""
    known(options, {"sizes", "shifts", "directed", "loss", "notion", "epsilon"}, ("dp", "pure", "metric"))
    sizes, shifts = options["sizes"], [s if isinstance(s, list) else [s] for s in options["shifts"]]
    order = math.prod(sizes)
    places = [[]]
    for size in sizes:
        places = [[*place, k] for place in places for k in range(size)]
    index = {tuple(place): k for k, place in enumerate(places)}
    levels = {tuple(s % size for s, size in zip(shift, sizes, strict=True)): Fraction(1) for shift in shifts}
    budgets = options.get("epsilon", "")
    for part in budgets.split("," if len(sizes) == 1 else ";") if budgets else ():
        move, _, level = part.partition("=")
        levels[tuple(int(s) % size for s, size in zip(move.split(","), sizes, strict=True))] = Fraction(level)
    if not options.get("directed", False):
        levels |= {tuple(-s % n for s, n in zip(move, sizes, strict=True)): level for move, level in levels.items()}
    kinds = {
        "error-rate": lambda place: int(any(place)),
        "squared": lambda place: sum(k * (n - k) for k, n in zip(place, sizes, strict=True)),
        "eta-squared": lambda place: sum(k * k for k in place),
        "circular-squared": lambda place: sum(min(k, n - k) ** 2 for k, n in zip(place, sizes, strict=True)),
    }
    loss = options.get("loss", "error-rate")
    program = Program(steps_of(levels.values()), relaxed)
    if loss == "worst-squared":
        errors = [[squared_error(true, place, sizes) for place in places] for true in places]
        worst, costs = program.columns([Fraction(1)], Fraction(max(map(sum, errors)))), [Fraction(0)] * order
    else:
        need(isinstance(loss, list) or loss in kinds, "A loss unknown here.", "unknown")
        costs = fractions(loss if isinstance(loss, list) else map(kinds[loss], places))
    first = program.columns(costs)
    paid = [program.columns([Fraction(0)] * order) for _ in levels] if delta else []
    program.equal({first + k: [1] for k in range(order)}, 1)
    if loss == "worst-squared":
        for row in errors:
            program.below({first + k: [error] for k, error in enumerate(row)} | {worst: [-1]})
    for k, (move, level) in enumerate(sorted(levels.items())):
        for e, place in enumerate(places):
            there = first + index[tuple((a + b) % n for a, b, n in zip(place, move, sizes, strict=True))]
            entries = {first + e: [1]}
            entries[there] = plus(entries.get(there, []), program.power(level))
            program.below(entries | ({paid[k] + e: [-1]} if delta else {}))
        if delta:
            program.row({paid[k] + e: [1] for e in range(order)}, None, (0, 1))
    return program.finished()


def squared_error(true, noise, sizes):
    """(((true + noise) mod n) - true)², summed over coordinates."""
    return sum(((a + b) % n - a) ** 2 for a, b, n in zip(true, noise, sizes, strict=True))


def losses_of(loss, answers, outputs):
    """ℓ(i, o) as rows."""
    powers = {"absolute": 1, "squared": 2, "error-rate": 0}
    if isinstance(loss, list):
        return [fractions(row) for row in loss]
    need(loss in powers, "A loss unknown here.", "unknown")
    return [[abs(y - o) ** powers[loss] if powers[loss] else Fraction(y != o) for o in outputs] for y in answers]


def relation(near, answers, metric):
    """(pairs, their distances): on a line the budgets of consecutive answers add up."""
    if near != "all":
        need(isinstance(near, list) and all(len(pair) == 2 for pair in near), "Neighbours unknown here.", "unknown")
        pairs = [tuple(answers.index(Fraction(value)) for value in pair) for pair in near]
    elif metric:
        order = sorted(range(len(answers)), key=answers.__getitem__)
        pairs = sorted((min(pair), max(pair)) for pair in pairwise(order))
    else:
        pairs = list(combinations(range(len(answers)), 2))
    return pairs, [abs(answers[i] - answers[j]) if metric else Fraction(1) for i, j in pairs]


def channel(options, delta, relaxed):
    """The program of a channel."""
    names = {"answers", "outputs", "neighbours", "prior", "loss", "notion", "max_shift", "constraints", "directed"}
    known(options, names, ("dp", "pure", "metric"))
    directed = options.get("directed", False)
    need(not directed or options["neighbours"] != "all", "Directed neighbours are listed.")
    answers = fractions(options["answers"])
    outputs = fractions(options.get("outputs") or options["answers"])
    k, m, prior = len(answers), len(outputs), options.get("prior", "uniform")
    losses = losses_of(options.get("loss", "squared"), answers, outputs)
    metric, near = options.get("notion") == "metric", options["neighbours"]
    pairs, levels = relation(near, answers, metric)
    program = Program(steps_of(levels), relaxed)
    if prior == "worst":
        worst, weights = program.columns([Fraction(1)], max(map(max, losses))), [Fraction(0)] * k
    else:
        weights = [Fraction(1)] * k if prior == "uniform" else fractions(prior)
        weights = [weight / sum(weights) for weight in weights]
    first = program.columns([weights[i] * losses[i][o] for o in range(m) for i in range(k)])

    def mass(i, o):
        return first + i + k * o

    for i in range(k):
        program.equal({mass(i, o): [1] for o in range(m)}, 1)
    constraints(program, options.get("constraints", ()), mass, answers, outputs, ("unbiased", "symmetric"))
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
            own = [pair for pair, other in zip(pairs, levels, strict=True) if other == level]
            ratios(program, own if directed else [*own, *((j, i) for i, j in own)], mass, m, level, delta)
    order = ("row-monotone", "column-monotone", "honest")
    constraints(program, options.get("constraints", ()), mass, answers, outputs, order)
    if prior == "worst":
        for i in range(k):
            program.below({mass(i, o): [losses[i][o]] for o in range(m)} | {worst: [-1]})
    return program.finished()


def ratios(program, ordered, mass, m, level, delta):
    """The privacy of ordered pairs with one budget."""
    paid = program.columns([Fraction(0)] * (len(ordered) * m)) if delta else 0
    for o in range(m):
        for p, (i, j) in enumerate(ordered):
            slack = {paid + p + len(ordered) * o: [-1]} if delta else {}
            program.below({mass(i, o): [1], mass(j, o): program.power(level)} | slack)
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
            for near in (True, False):  # towards the answer's own output masses rise, away from it they fall
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
    given = options["labels"]
    low, dots, high = given.partition("..")
    places = [Fraction(k) for k in range(int(low), int(high) + 1)] if dots else fractions(given.split(","))
    own = {name: options[name] for name in ("loss", "notion", "constraints") if name in options}
    prior = options.get("prior", "uniform")
    weights = [Fraction(1)] * len(places) if prior == "uniform" else fractions(prior)
    shares = [weight / sum(weights) for weight in weights]
    need(max(share.denominator for share in shares) <= SIMPLE, "A prior unknown here.", "unknown")
    near = options.get("neighbours", "all")
    pairs = list(pairwise(range(len(places)))) if near == "consecutive" else near
    whole = len(places) * (len(places) - 1) // 2
    if near != "all":
        near = "all" if len(pairs) == whole else [[places[i], places[j]] for i, j in pairs]
    outputs = options.get("outputs")
    return channel(
        own | {"answers": places, "outputs": outputs or places, "prior": shares, "neighbours": near}, delta, relaxed
    )


def quantizer(options, delta, relaxed):
    """The program of unbiased laws affine between knots, inputs uniform on [-c, c]: in units of c

        s_e(i), low(i) >= 0     min Σ_e Σ_i (∫ |x - B_i|^p h_e(x) dx / 2) (s_e(i) + low(i))
        Σ_i s_e(i) + low(i) = 1,  Σ_i B_i (s_e(i) + low(i)) = x_e,  s_e(i) <= (x - 1) low(i)

    where every piece [a, b] has two points e, a and b, with h_e the affine function that is 1 there and 0 at the other.
    """
    known(options, {"bins", "c", "loss", "knots", "notion"}, ("dp", "pure"))
    need(not delta, "delta unknown here.", "unknown")
    c, loss = Fraction(options.get("c", 1)), options.get("loss", "absolute")
    outputs = [value / c for value in fractions(options["bins"])]
    share = {"absolute": Fraction(1), "squared": Fraction(0)}.get(loss)
    share = Fraction(loss) if share is None else share
    extra, m = options.get("knots", 0), len(outputs)
    spread = {Fraction(2 * k, extra - 1) - 1 for k in range(extra)} if extra else set()
    knots = sorted({Fraction(-1), Fraction(1), *(b for b in outputs if -1 < b < 1), *spread})
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
    s = program.columns([costs[e][i] for i in range(m) for e in range(n)], None)
    low = program.columns([sum(costs[e][i] for e in range(n)) for i in range(m)], None)
    for factors, sides in (([1] * m, [1] * n), (outputs, points)):
        for e in range(n):
            entries = {column: [f] for i, f in enumerate(factors) for column in (s + e + n * i, low + i)}
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
    need(len(rows) <= LARGEST, f"A basis has {len(rows)} equations; at most {LARGEST} are allowed.", "too large")
    left = [
        ({j: times(p, right[2]) for j, p in row.items()}, right[0], right[1])
        for row, right in zip(rows, rights, strict=True)
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
                    i: plus(times(up, other.get(i, [])), times(down, row.get(i, [])), -1) for i in {*other, *row} - {j}
                }
                entries = {i: p for i, p in entries.items() if p}
                c, s = (plus(times(up, a), times(down, b), -1) for a, b in ((c, constant), (s, rise)))
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
    need(len(free) == len(tight), "A basis has another number of equations than of unknowns.", "false")
    ends = {j: Fraction(0) if held < 0 else program.upper[j] for j, held in enumerate(columns) if held}
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
    point |= solved(equations, rights)
    transposed = [{i: program.rows[i][0][j] for i in tight if j in program.rows[i][0]} for j in free]
    dual = solved(transposed, [number(program.cost[j]) for j in free])
    value = number(0)
    for j, cost in enumerate(program.cost):
        value = total(value, scaled(point[j], trimmed([cost.numerator]), [cost.denominator]))
    primal = [point[j] for j in free]
    primal += [total(number(program.upper[j]), point[j], -1) for j in free if program.upper[j] is not None]
    for (entries, low, high), held in zip(program.rows, rows, strict=True):
        if not held:
            activity = number(0)
            for j, p in entries.items():
                activity = total(activity, scaled(point[j], p))
            for side, factor in ((low, 1), (high, -1)):
                if side is not None:
                    gap = total(activity, total(number(side[0]), ([], trimmed([side[1]]), [1])), -1)
                    primal.append(scaled(gap, [factor]))
    signs = [scaled(y, [-rows[i]]) for i, y in dual.items() if program.rows[i][1] != program.rows[i][2]]
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
            self.low = self.high = Fraction(data)
            self.p = [-self.low.numerator, self.low.denominator]
            return
        self.p, self.low, self.high = [int(v) for v in data[0]], Fraction(data[1]), Fraction(data[2])
        need(len(self.p) > 1 and self.p[-1], "An end is no zero of a polynomial.")
        need(self.low < self.high and sign(self.p, self.low) and sign(self.p, self.high), "An end is no zero.")
        need(zeros(self.p, self.low, self.high) == 1, "An end is not the one zero of its polynomial.")
        need(sign(self.p, self.low) != sign(self.p, self.high), "An end is a double zero.")

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
        own = len(shared) > 1 and (self.low == self.high or bool(zeros(shared, self.low, self.high)))
        for _ in range(400):
            if self.low == self.high or zeros(p, self.low, self.high) + (not sign(p, self.low)) == own:
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
        need(not inside, f"A condition changes its sign in the region of x = {float(x):.6g}.", "false")


def formulas(program, entry, delta, low, high):
    """[(value, lower end, upper end)] of a region, proven; the value is None where there is no mechanism."""
    x = Fraction(entry["sample"])
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
        need(len(columns) == len(program.cost) and len(rows) == len(program.rows), "A basis of another size.")
        parts.append(vertex(program, [SIGNS[s] for s in columns], [SIGNS[s] for s in rows]))
    first, *rest = parts
    bottom, top = map(number, delta)
    if delta[0] == delta[1]:
        (value, primal, signs) = rest[0]
        need(len(rest) == 1, "A region has more than one formula.", "false")
        value = put(value, bottom)
        need(feasible or value[0], "The least violation is 0.", "false")
        steady([*signs, *(put(f, bottom) for f in primal), *([] if feasible else [value])], x, low, high)
        return [(value if feasible else None, bottom, bottom)]
    conditions = [put(f, bottom) for f in first[1]]
    need(first[0] == rest[0][0] or first is rest[0], "The first basis has another formula.", "false")
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
    """Rationals around e^ε, ε >= 0."""
    halved, times_halved = Fraction(epsilon), 0
    while halved > 1:
        halved, times_halved = halved / 2, times_halved + 1
    term = low = Fraction(1)
    for k in range(1, 40):
        term = term * halved / k
        low += term
    high = low + 2 * term
    for _ in range(times_halved):
        low, high = Fraction(math.floor(low**2 * 10**40), 10**40), Fraction(math.ceil(high**2 * 10**40), 10**40)
    return low, high


# Files.


def shown_end(data):
    """A δ of a piece: a number or a function."""
    if isinstance(data, (int, float)):
        return None
    return ratio(trimmed(data["numerator"][:]), [], data["denominator"])


def shown_value(piece):
    """What a piece shows as the optimum; None for none."""
    if "numerator" not in piece:
        return None
    return ratio(trimmed(piece["numerator"][:]), piece.get("numerator_delta", []), piece["denominator"])


def check_pieces(pieces, regions, steps):
    """Refuse pieces that are not those of the regions, and regions that no piece shows."""
    for low, high, parts in regions:
        for value, start, end in parts:
            middle = steps * math.log(float(low.high + 1) if high is None else float(low.high + high.low) / 2)
            fits = [
                piece
                for piece in pieces
                if piece["epsilon"][0] <= middle <= (piece["epsilon"][1] or math.inf)
                and shown_value(piece) == value
                and all(
                    shown_end(shown) == own
                    or (shown_end(shown) is None and abs(float(at(own[0], 1) / at(own[2], 1)) - shown) < 1e-12)
                    for shown, own in zip(piece["delta"], (start, end), strict=True)
                )
            ]
            need(fits, f"No piece shows the formula at epsilon = {middle:.6g}.", "false")
    for piece in pieces:
        begin, stop = piece["epsilon"]
        inside = any(
            shown_value(piece) == value
            and steps * math.log(float(low.low)) <= (stop or math.inf) + 1e-9
            and begin - 1e-9 <= (math.inf if high is None else steps * math.log(float(high.high)))
            for low, high, parts in regions
            for value, _, _ in parts
        )
        need(inside, f"A piece that begins at epsilon = {begin:.6g} is of no region.", "false")


def check(data):
    """What a file proves, in words. data: its JSON value. Raises Refused."""
    need(isinstance(data, dict) and data.get("format") == FORMAT, f"The format must be {FORMAT!r}.")
    need(data.get("version") == VERSION, f"This checker knows version {VERSION}.", "unknown")
    kind, options = data["question"]["family"], data["question"]["options"]
    kinds = {"modulo": modulo, "channel": channel, "labels": labels, "quantizer": quantizer}
    need(kind in kinds, f"The family {str(kind)[:40]} is unknown here.", "unknown")
    delta = fractions(data["delta"])
    need(0 <= delta[0] <= delta[1] <= 1 and len(delta) == 2, "delta must be two numbers in order.")
    programs = [kinds[kind](options, bool(delta[1]), relaxed) for relaxed in (False, True)]
    steps, regions = programs[0].steps, []
    variable = "x = exp(epsilon)" if steps == 1 else f"x = exp(epsilon/{steps})"
    need(data["variable"] == variable, f"The variable must be {variable}.", "false")
    for entry in data["regions"]:
        low = End(entry["low"])
        high = None if entry["high"] is None else End(entry["high"])
        regions.append((low, high, formulas(programs[entry["feasible"] is False], entry, delta, low, high)))
    need(regions, "There are no regions.", "false")
    gaps = 0
    first, last = (Fraction(1), None) if data["epsilon"] is None else (
        exp_bounds(Fraction(data["epsilon"][0]) / steps)[0], exp_bounds(Fraction(data["epsilon"][1]) / steps)[1]
    )  # fmt: skip
    single = data["epsilon"] is not None and data["epsilon"][0] == data["epsilon"][1]
    gaps += regions[0][0].low > first + Fraction(1, 10**15)
    gaps += regions[-1][1] is not None and (last is None or regions[-1][1].high < last - Fraction(1, 10**15))
    for (_, high, _), (low, _, _) in pairwise(regions):
        need(high is not None and high.low <= low.high, "Regions overlap.", "false")
        gaps += not high.same(low)
    need(not (single and gaps), "The one epsilon is not within the region.", "false")
    need(
        gaps <= len(data["open"]),
        f"{gaps} intervals of epsilon are left out, {len(data['open'])} are called open.",
        "false",
    )
    check_pieces(data["pieces"], regions, steps)
    one_way = " (one side of each pair alone)" if options.get("directed", False) else ""
    words = f"{data['what']}{one_way}: {len(data['pieces'])} formulas in {len(regions)} intervals of epsilon"
    return words + (f", {len(data['open'])} intervals are open." if gaps else ", without gap.")


def main(paths):
    """Print one line for each file; the exit code."""
    verdicts = set()
    for path in paths:
        try:
            with open(path, "rb") as file:
                content = file.read(BYTES + 1)
            need(len(content) <= BYTES, "The file is too large.", "too large")
            verdict, reason = "proven", check(json.loads(content))
        except Refused as error:
            verdict, reason = error.args
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
            IndexError,
            AttributeError,
            ZeroDivisionError,
            RecursionError,
        ) as error:
            verdict, reason = "unreadable", f"It cannot be read: {type(error).__name__}: {str(error)[:200]}."
        verdicts.add(verdict)
        print(f"{path}: {verdict}: {reason}".encode(errors="backslashreplace").decode())
    return 1 if "false" in verdicts else 0 if verdicts == {"proven"} else 2


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
