"""Decide certificates of every kind, and mutations of them, by both checkers, which must agree.

    python tests/fuzz/fuzz_certificates.py [COUNT] [SEED]

Half of the cases are certificates whose claim is at, just above or just below the budget of the
mechanism. In the others something is changed, from one digit to the bytes of the file. Every claim
is decided by `workbench.check` and by `tools/check_certificate.py`, and counted by both.
"""

from __future__ import annotations

import importlib.util
import json
import math
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import workbench as wb
from workbench.errors import CorruptFile, NotCertified, NotProven
from workbench.exact.distribution import Distribution
from workbench.exact.numbers import ball_ends
from workbench.notions.gdp import TradeOffCurve
from workbench.notions.laws import Laws
from workbench.notions.renyi import PrivacyLoss
from workbench.notions.zcdp import ConcentratedLoss
from workbench.privacy import audit_work
from workbench.privacy.certificate_file import mechanism_from_dict

__all__ = ["GENERATORS", "checker", "compare", "verdicts"]

ROOT = Path(__file__).resolve().parents[2]


def _load() -> ModuleType:
    where = importlib.util.spec_from_file_location(
        "check_certificate", ROOT / "tools" / "check_certificate.py"
    )
    assert where is not None
    assert where.loader is not None
    module = importlib.util.module_from_spec(where)
    where.loader.exec_module(module)
    return module


checker = _load()
Data = dict[str, Any]


# Certificates.


def law(
    source: random.Random,
    n: int,
    *,
    full: bool = False,
    widths: tuple[int, ...] = (1, 3, 3, 8, 60, 300),
) -> Data:
    """A random row of n weights: short, long, or with zeros."""
    while True:
        bits = source.choice(widths)
        weights = [source.getrandbits(bits) + full for _ in range(n)]
        common = math.gcd(*weights)
        if common:
            return row([k // common for k in weights])


def row(weights: list[int]) -> Data:
    return {"total": hex(sum(weights)), "weights": [*map(hex, weights)]}


def rational(source: random.Random, top: int = 3) -> str:
    """A number in [0, top] in one of the spellings of a file."""
    value = Fraction(source.randrange(0, 40 * top), 40)
    ways = [
        str(value),
        f"{source.randrange(0, 10 * top) / 10}",
        f"{source.randrange(1, 99)}e-{source.randrange(1, 30)}",
        f"{hex(value.numerator)}/{hex(value.denominator)}",
        f"{value.numerator} / {value.denominator}",
    ]
    return source.choice(ways)


def nearly(source: random.Random, value: Fraction) -> str:
    """A number, or one next to it, a little or extremely little."""
    step = Fraction(1, 10 ** source.choice([1, 4, 17, 60, 200]))
    moved = value + source.choice([0, 0, 1, -1]) * step
    return str(max(moved, Fraction(0)))


def logarithm(source: random.Random, ratio: Fraction) -> str:
    """A decimal on one side of ln(ratio) or the other, 5 to 120 digits away. ratio: >= 1."""
    from flint import arb, ctx, fmpq

    digits = source.choice([5, 20, 60, 120])
    with ctx.workprec(1000):
        scaled = arb(fmpq(ratio.numerator, ratio.denominator)).log() * arb(10) ** digits
        near = int(scaled.floor().unique_fmpz())
    return str(Fraction(near + source.choice([0, 1]), 10**digits))


def certificate(mechanism: Data, notion: str, epsilon: Any, delta: str = "0") -> Data:
    return {
        "format": "dp-workbench certificate",
        "version": 1,
        "mechanism": mechanism,
        "claim": {"notion": notion, "epsilon": epsilon, "delta": delta},
        "composed": None,
        "objective": None,
        "bias": None,
        "record": {},
    }


Law = tuple[tuple[int, ...], int]
Pairs = list[tuple[Law, Law]]


def claimed(
    source: random.Random, mechanism: Data, pairs: Pairs, notions: list[str], epsilon: Any = None
) -> Data:
    """Draw a certificate whose δ or ε is near that of the compared distributions.

    epsilon has one value for each pair, as in a file.
    """
    if epsilon is None and source.random() < 0.25:
        return beyond(
            source, mechanism, pairs, source.choice(["curve", "tradeoff", "renyi", "zcdp", "gdp"])
        )
    notion = source.choice(notions)
    ratios = [
        Fraction(k * q[1], l * p[1]) for p, q in pairs for k, l in zip(p[0], q[0], strict=True) if l
    ]
    losses = [ratio for ratio in ratios if ratio > 1]
    if notion in {"pure", "metric"}:
        at = (
            logarithm(source, max(losses)) if losses and source.random() < 0.8 else rational(source)
        )
        return certificate(mechanism, notion, epsilon or at)
    at = (
        logarithm(source, source.choice(losses))
        if losses and source.random() < 0.6
        else rational(source)
    )
    budgets = [item[1] for item in epsilon] if epsilon else [at] * len(pairs)
    reached = max(
        delta_of(pair, notion, checker.read_rational(value, "epsilon"))
        for pair, value in zip(pairs, budgets, strict=True)
    )
    delta = (
        "1"
        if source.random() < 0.2
        else nearly(source, min(max(reached, Fraction(0)), Fraction(1)))
    )
    return certificate(mechanism, notion, epsilon or at, delta)


def beyond(source: random.Random, mechanism: Data, pairs: Pairs, notion: str) -> Data:
    """Draw a certificate of another notion, with a budget near the one that is needed."""
    if notion == "tradeoff":
        return claim_of(mechanism, notion=notion, tradeoff=function(source, pairs))
    if notion == "curve":
        epsilons = {rational(source) for _ in range(source.randrange(1, 4))}
        reached = [
            max(delta_of(pair, "dp", checker.read_rational(text, "epsilon")) for pair in pairs)
            for text in epsilons
        ]
        points = [
            [text, nearly(source, min(max(at, Fraction(0)), Fraction(1)))]
            for text, at in zip(epsilons, reached, strict=True)
        ]
        return claim_of(mechanism, notion="curve", curve=points)
    order = source.choice([Fraction(2), Fraction(3), Fraction(3, 2), Fraction(17)])
    moments = [Laws(*(Distribution(law[0]) for law in pair)) for pair in pairs]
    far = Fraction(1, 10 ** source.choice([1, 3, 5] if notion == "zcdp" else [1, 3, 12, 40]))
    if notion == "renyi":
        finite = [
            ball_ends(loss.log_moment(order, 256))[0] / (order - 1)
            for laws in moments
            if (loss := PrivacyLoss(laws)).unmatched_outcome is None
        ]
        least = max(finite, default=Fraction(1))
    elif notion == "gdp":
        curves = [TradeOffCurve((a.numerator, a.denominator, b.numerator, b.denominator) for _, a, b in laws.steps)
                  for laws in moments]  # fmt: skip
        needed = [
            curve.mu_enclosure(vertex, 256)[0]
            for curve in curves
            if not curve.is_unbounded
            for vertex in curve.vertices
        ]
        least = max(needed, default=Fraction(0))
    else:
        bounds = [ConcentratedLoss(laws) for laws in moments]
        least = max(
            (b.smallest_rho[0] for b in bounds if not b.is_unbounded and not b.is_same),
            default=Fraction(0),
        )
    value = max(Fraction(0), least * (1 + source.choice([1, 1, -1]) * far)).limit_denominator(
        10**80
    )
    others = {"alpha": str(order)} if notion == "renyi" else {}
    return claim_of(
        mechanism, notion=notion, **{checker.PARAMETERS[notion][0]: str(value)}, **others
    )


def function(source: random.Random, pairs: Pairs) -> list[list[str]]:
    """Draw points of about the largest trade-off function that all pairs satisfy in both orders."""
    errors = [(Fraction(0), Fraction(1)), (Fraction(1), Fraction(0))]
    for (p, p_sum), (q, q_sum) in pairs:
        tests = [
            sorted(source.sample(range(len(p)), source.randrange(len(p) + 1))) for _ in range(4)
        ]
        tests += [
            [i for i in range(len(p)) if p[i] * q_sum * 8 > t * q[i] * p_sum]
            for t in (1, 4, 8, 16, 64)
        ]
        errors += [
            (1 - Fraction(sum(p[i] for i in s), p_sum), Fraction(sum(q[i] for i in s), q_sum))
            for s in tests
        ]
    errors += [(b, a) for a, b in errors]
    hull: list[tuple[Fraction, Fraction]] = []
    for alpha, beta in sorted(
        {alpha: min(b for a, b in errors if a == alpha) for alpha, _ in errors}.items()
    ):
        while len(hull) > 1 and (hull[-1][1] - hull[-2][1]) * (alpha - hull[-1][0]) >= (
            beta - hull[-1][1]
        ) * (hull[-1][0] - hull[-2][0]):
            hull.pop()
        hull.append((alpha, beta))
    ends = [point for point in hull if point[1]] + [next(point for point in hull if not point[1])]
    moved = [
        [str(alpha), nearly(source, beta) if source.random() < 0.3 else str(beta)]
        for alpha, beta in ends
    ]
    return moved if source.random() < 0.5 or len(moved) < 4 else moved[:1] + moved[2:]


def claim_of(mechanism: Data, **claim: Any) -> Data:
    return certificate(mechanism, "pure", "0") | {"claim": claim}


def delta_of(pair: tuple[Law, Law], notion: str, epsilon: Fraction) -> Fraction:
    """The δ of one comparison: exact for "pdp", within 2^-400 for "dp"."""
    p, q = pair
    power = checker.Power(epsilon)
    broken = checker.find_violations(p, q, power)
    mass = Fraction(sum(p[0][i] for i in broken), p[1])
    if notion == "pdp":
        return mass
    low, _, w = power.bounds(3)
    return mass - Fraction(sum(q[0][i] for i in broken) * low, q[1] << w)


def law_of(row: Data) -> Law:
    return tuple(int(k, 16) for k in row["weights"]), int(row["total"], 16)


def masses(row: Data) -> list[Fraction]:
    weights, total = law_of(row)
    return [Fraction(k, total) for k in weights]


def noise(source: random.Random) -> Data:
    """Additive noise on a group, sometimes with a budget for each difference and a loss."""
    sizes = source.choice([[2], [3], [5], [8], [2, 3], [1, 4], [2, 2, 2]])
    n = math.prod(sizes)
    points = [[part * source.choice([1, -1]) for part in point] for point in _points(sizes)[1:]]
    shifts = source.sample(points, source.randrange(1, min(3, len(points)) + 1))
    mechanism = {
        "kind": "noise",
        "sizes": sizes,
        "shifts": shifts,
        "directed": source.random() < 0.5,
    }
    mechanism |= law(source, n, full=source.random() < 0.7)
    epsilon = None
    if source.random() < 0.3:
        found: dict[tuple[int, ...], Fraction] = {}
        for shift in shifts:
            label = tuple(part % size for part, size in zip(shift, sizes, strict=True))
            back = tuple(-part % size for part, size in zip(shift, sizes, strict=True))
            value = Fraction(source.randrange(0, 60), 20)
            for key in {label} if mechanism["directed"] else {label, back}:
                found[key] = found.get(key, value)
        epsilon = [[list(label), str(value)] for label, value in sorted(found.items())]
    f = law_of(mechanism)
    data = claimed(source, mechanism, pairs_of(mechanism), ["pdp", "dp", "pure", "metric"], epsilon)
    if source.random() < 0.5:
        name = source.choice(
            [
                "error-rate",
                "squared",
                "eta-squared",
                "circular-squared",
                "own-loss",
                "prior-squared",
            ]
        )
        weights = f[0]
        losses = None if name == "error-rate" else _losses(source, name, sizes)
        value = Fraction(sum(weights) - weights[0]) if losses is None else _dot(losses, weights)
        data["objective"] = {
            "name": name,
            "value": _rounded(source, value / sum(weights)),
            "losses": None if losses is None else [*map(str, losses)],
        }
    return data


def channel(source: random.Random) -> Data:
    """Draw a finite channel, sometimes with its own budgets, a bias and the loss of labels."""
    count, n = source.randrange(2, 5), source.randrange(1, 5)
    rows = [law(source, n, full=source.random() < 0.7) for _ in range(count)]
    if source.random() < 0.2:
        rows[1] = deepcopy(rows[0])
    pairs = [[i, j] for i in range(count) for j in range(count) if i != j]
    pairs = sorted(source.sample(pairs, source.randrange(1, len(pairs) + 1)))
    epsilon = (
        [[pair, str(Fraction(source.randrange(0, 60), 20))] for pair in pairs]
        if source.random() < 0.3
        else None
    )
    compared = [(law_of(rows[i]), law_of(rows[j])) for i, j in pairs]
    mechanism = {"kind": "channel", "rows": rows, "pairs": pairs}
    data = claimed(source, mechanism, compared, ["pdp", "dp", "pure", "metric"], epsilon)
    laws = [*map(masses, rows)]
    outputs = [Fraction(source.randrange(-20, 20), source.choice([1, 2, 3])) for _ in range(n)]
    if source.random() < 0.4:
        inputs = [Fraction(source.randrange(-20, 20), 2) for _ in range(count)]
        worst = max(abs(_dot(law, outputs) - y) for law, y in zip(laws, inputs, strict=True))
        data["bias"] = {
            "outputs": [*map(str, outputs)],
            "inputs": [*map(str, inputs)],
            "worst": str(worst),
        }
    if source.random() < 0.5:
        labels = [
            Fraction(source.randrange(-9, 9), source.choice([1, 4]))
            for _ in range(source.randrange(1, 5))
        ]
        prior = [Fraction(source.randrange(0, 9), 7) for _ in labels]
        prior[-1] += 1
        at = [source.randrange(count) for _ in labels]
        name = source.choice(
            ["squared", "absolute", "error-rate", "pinball:0.3", "huber:1.5", "huber:2e-1"]
        )
        total = sum(
            p * _dot(laws[k], [_loss(name, o - y) for o in outputs])
            for y, p, k in zip(labels, prior, at, strict=True)
        )
        data["objective"] = {
            "name": name, "value": _rounded(source, total / sum(prior)), "labels": [*map(str, labels)],
            "prior": [*map(str, prior)], "outputs": [*map(str, outputs)], "rows": at,
        }  # fmt: skip
    return data


def real_range(source: random.Random) -> Data:
    """A channel of real answers, now and then without a pair that it needs; or nearest outputs."""
    ends = sorted(
        {
            Fraction(source.randrange(-20, 20), source.choice([1, 2, 3]))
            for _ in range(source.randrange(3, 6))
        }
    )
    if len(ends) < 3 or source.random() < 0.5:
        outputs = sorted(
            Fraction(source.randrange(-20, 20), 2) for _ in range(source.randrange(2, 7))
        )
        data = {"kind": "nearest-outputs", "ends": [str(outputs[0] - 1), str(outputs[-1] + source.randrange(2))],
                "outputs": [*map(str, outputs)], "own": source.randrange(1, len(outputs)),
                "odds": str(1 + Fraction(source.randrange(60), 20)), "steps": source.randrange(1, 9),
                "direct": str(source.choice([Fraction(0), Fraction(source.randrange(8), 20)]))}  # fmt: skip
        return claimed(source, data, pairs_of(data), ["pdp", "dp", "pure"])
    at_ends, reach = (
        source.random() < 0.5,
        Fraction(source.randrange(1, 40), source.choice([1, 2, 3])),
    )
    count, n = len(ends) - (not at_ends), source.randrange(1, 4)
    pairs = [[i, j] for i in range(count) for j in range(count) if i != j]
    if source.random() < 0.7:
        pairs = [[i, j] for i, j in pairs if abs(i - j) < 3 or source.random() < 0.8]
    rows = [law(source, n, full=source.random() < 0.8) for _ in range(count)]
    outputs = [str(Fraction(source.randrange(-20, 20), 2)) for _ in range(n)]
    data = {"kind": "range", "ends": [*map(str, ends)], "sensitivity": str(reach), "at_ends": at_ends,
            "outputs": outputs, "channel": {"kind": "channel", "rows": rows, "pairs": pairs}}  # fmt: skip
    return claimed(source, data, pairs_of(data["channel"]), ["pdp", "dp", "pure"])


def quantizer(source: random.Random) -> Data:
    """A mechanism on real inputs, some laws continuous, with its bias."""
    notion = source.choice(["pdp", "pdp", "dp", "pure", "metric"])
    pieces, m, widths = source.randrange(1, 4), source.randrange(1, 5), (1, 3, 3, 8, 60, 300)
    crossing = (
        notion == "pdp" and source.random() < 0.7
    )  # three outcomes and a small ε: the supremum is often inside
    if crossing:
        pieces, m, widths = source.randrange(1, 3), source.randrange(3, 6), (2, 3)
    knots = sorted(Fraction(k, 4) for k in source.sample(range(-20, 20), pieces + 1))
    ends = [law(source, m, full=source.random() < 0.8, widths=widths) for _ in range(2 * pieces)]
    if source.random() < 0.5:
        for k in range(1, pieces):
            ends[2 * k] = ends[2 * k - 1]
    outputs = [Fraction(source.randrange(-20, 20), source.choice([1, 3])) for _ in range(m)]
    mechanism = {
        "kind": "quantizer",
        "knots": [*map(str, knots)],
        "outputs": [*map(str, outputs)],
        "ends": ends,
    }
    places = [x for k in range(pieces) for x in (knots[k], knots[k + 1])]
    laws = [*map(masses, ends)]
    if notion == "metric":
        slopes = [Fraction(0)] + [
            abs(x - y) / ((places[k + 1] - places[k]) * min(x, y))
            for k in range(0, 2 * pieces, 2)
            for x, y in zip(laws[k], laws[k + 1], strict=True)
            if min(x, y)
        ]
        data = certificate(mechanism, notion, nearly(source, max(slopes)))
    elif notion == "pdp":
        epsilon = source.choice(
            ["0", "0.05", "1/10", "0.3"] if crossing else ["0", rational(source, 2)]
        )
        audit = wb.audit(mechanism_from_dict(mechanism), checker.read_rational(epsilon, "epsilon"))
        reached = audit.worst_result("pdp").measurement.tight_enclosure()[1]
        data = certificate(mechanism, notion, epsilon, nearly(source, min(reached, Fraction(1))))
    else:
        pairs = [(law_of(one), law_of(two)) for one in ends for two in ends]
        data = claimed(source, mechanism, pairs, [notion])
    if source.random() < 0.6:
        worst = max(abs(_dot(law, outputs) - x) for law, x in zip(laws, places, strict=True))
        data["bias"] = {
            "outputs": mechanism["outputs"],
            "inputs": [*map(str, places)],
            "worst": str(worst),
        }
    return data


def line(source: random.Random, *, real: bool = False) -> Data:
    """Draw noise on integers or reals, with or without clamps and tails, and sometimes its loss."""
    count = source.randrange(1, 9)
    data = {
        "first": source.randrange(-count, 2), "period": source.randrange(1, count + 1),
        "ratio": source.choice(["0", "0", "1/2", "0.3", "0.99", "2/7"]), **law(source, count, widths=(1, 3, 8, 60)),
    }  # fmt: skip
    reach = source.randrange(1, 4)
    if not real and source.random() < 0.5:
        ends = [low := source.randrange(-2, 3), low + reach + source.randrange(0, 4)]
        clamp = ends if source.random() < 0.5 else None
        data |= {"kind": "integer-noise", "sensitivity": reach, "clamp": clamp}
    else:
        around = data["first"] <= 0 <= data["first"] + count - 1
        atom = source.choice(["0", "1", "5/3"]) if around else "0"
        data |= {
            "kind": "real-noise",
            "sensitivity": "7/2",
            "grid": "0.25",
            "steps": reach,
            "atom": atom,
        }
    made = checker.READERS[data["kind"]](data)
    found = claimed(source, data, pairs_of(data), ["pure", "dp", "pdp"])
    if not made.clamp and source.random() < 0.4:
        with suppress(checker.Refused):
            name = source.choice(["absolute", "squared"])
            found["objective"] = {
                "name": name,
                "value": str(checker.compute_line_loss(name, None, made)),
                "losses": None,
            }
    return found


def of_notion(notion: str) -> Callable[[random.Random], Data]:
    """Noise or a channel with a claim of one notion."""

    def generate(source: random.Random) -> Data:
        data = source.choice([noise, channel, line])(source)
        return data | {
            "claim": beyond(source, data["mechanism"], pairs_of(data["mechanism"]), notion)["claim"]
        }

    return generate


def pairs_of(mechanism: Data) -> Pairs:
    """The laws that noise or a channel has compared."""
    made = checker.READERS[mechanism["kind"]](mechanism)
    if mechanism["kind"] == "noise":
        (f,) = made.laws
        return [
            (f, (tuple(checker.shift_values(f[0], made.sizes, label)), f[1]))
            for label in made.labels
        ]
    if mechanism["kind"] in ("channel", "nearest-outputs"):
        return [(made.laws[i], made.laws[j]) for i, j in made.labels]
    if made.clamp:
        rows = [
            made.line.clamped_law(made.clamp[0] - q, made.clamp[1] - q)
            for q in range(made.clamp[0], made.clamp[1] + 1)
        ]
        return [(rows[i], rows[j]) for i, j in made.labels]
    return [made.line.laws_at_shift(*label) for label in made.labels]


GENERATORS: dict[str, Callable[[random.Random], Data]] = {
    "noise": noise, "channel": channel, "quantizer": quantizer, "line": line, "real noise": partial(line, real=True),
    "range": real_range, "renyi": of_notion("renyi"), "zcdp": of_notion("zcdp"), "gdp": of_notion("gdp"),
}  # fmt: skip


def _points(sizes: list[int]) -> list[tuple[int, ...]]:
    points: list[tuple[int, ...]] = [()]
    for size in sizes:
        points = [(*point, part) for point in points for part in range(size)]
    return points


def _losses(source: random.Random, name: str, sizes: list[int]) -> list[Fraction]:
    if source.random() < 0.15 or name not in {"squared", "eta-squared", "circular-squared"}:
        return [Fraction(source.randrange(-3, 30), source.choice([1, 7])) for _ in _points(sizes)]
    at = {
        "squared": lambda e, s: e * (s - e),
        "eta-squared": lambda e, s: e * e,
        "circular-squared": lambda e, s: min(e, s - e) ** 2,
    }[name]
    return [
        Fraction(sum(at(e, s) for e, s in zip(point, sizes, strict=True)))
        for point in _points(sizes)
    ]


def _dot(one: Any, two: Any) -> Fraction:
    return sum((x * y for x, y in zip(one, two, strict=True)), Fraction(0))


def _loss(name: str, r: Fraction) -> Fraction:
    kind, _, text = name.partition(":")
    h = Fraction(text or 1)
    return {
        "squared": r * r,
        "absolute": abs(r),
        "error-rate": Fraction(r != 0),
        "pinball": max(-h * r, (1 - h) * r),
        "huber": r * r / 2 if abs(r) <= h else h * (abs(r) - h / 2),
    }[kind]


def _rounded(source: random.Random, value: Fraction) -> str:
    """The value, rounded up by nothing, by what is allowed, or by a little more or less."""
    slack = max(abs(value), Fraction(1, 10**300)) / 10**15
    return str(
        value
        + slack * source.choice([0, 0, Fraction(1, 2), 1, Fraction(11, 10), Fraction(-1, 100)])
    )


# Mutations.

ODD: list[Any] = [
    None, True, False, 0, 1, 2, 3, -1, 7, 0.5, 10**30, "", "0", "1", "-1", "0x0", "0x1", "0x01", "0xg", "1e400",
    "1e-400", "1/3", "1/0", "-0", "+1", ".5", "5.", "1_0", "１", " 1", "1 /2", "nan", "Infinity", "0x1/0x3",
    "-0x1/0x3", "0x1/0x0", "1e6", "1000001", "0e99999", "1e-5001", "pdp", "dp", "pure", "metric",
    "curve", "tradeoff", "renyi", "zcdp", "gdp", "noise", "channel", "range", "nearest-outputs",
    "quantizer", "squared", "error-rate", "worst-squared", "poisson", "huber:0", "pinball:1", "huber:1", [], {}, [0],
    [[0, 1]], [1, 0], {"a": 1},
]  # fmt: skip


def spots(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value but the root."""
    found = [path] if path else []
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in items:
        found += spots(item, (*path, key))
    return found


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def mutated(source: random.Random, data: Data) -> Data:
    """Something in a certificate changed."""
    data = deepcopy(data)
    path = source.choice(spots(data))
    parent, key = at(data, path[:-1]), path[-1]
    old = parent[key]
    how = source.randrange(7)
    if how == 0:
        parent[key] = deepcopy(source.choice(ODD))
    elif how == 1:
        parent[key] = deepcopy(at(data, source.choice(spots(data))))
    elif how == 2 and isinstance(old, str) and old:
        k = source.randrange(len(old))
        middle = source.choice(["", *"0123456789abcdef/.-ex", old[k] * 2])
        parent[key] = old[:k] + middle + old[k + 1 :]
    elif how == 3 and isinstance(old, list) and old:
        k = source.randrange(len(old))
        source.choice(
            [
                lambda: old.pop(k),
                lambda: old.insert(k, deepcopy(old[k])),
                lambda: source.shuffle(old),
            ]
        )()
    elif how == 4:
        rows = [
            at(data, spot[:-1])
            for spot in spots(data)
            if spot[-1] == "total" and spot[0] == "mechanism"
        ]
        if rows:
            _reweighed(source, source.choice(rows))
    elif how == 5 and isinstance(old, int) and not isinstance(old, bool):
        parent[key] = old + source.choice([1, -1])
    elif isinstance(parent, dict) and source.random() < 0.2:
        parent["extra" if source.random() < 0.5 else key] = parent.pop(key)
    else:
        _claim_changed(source, data)
    return data


def _reweighed(source: random.Random, law: Data) -> None:
    """A weight changed, with its total."""
    weights = [
        int(str(k), 16) for k in law["weights"] if isinstance(k, str) and k.startswith("0x")
    ] or [1]
    k = source.randrange(len(weights))
    weights[k] = max(0, weights[k] + source.choice([1, -1, 5, -weights[k]]))
    law |= row(weights if source.random() < 0.9 else [2 * k for k in weights])


def _claim_changed(source: random.Random, data: Data) -> None:
    claim = data["claim"]
    name = source.choice([*claim])
    if name == "notion":
        claim["notion"] = source.choice([*checker.PARAMETERS])
    elif not isinstance(claim[name], list):
        claim[name] = rational(source, 3 if name == "epsilon" else 1)
    elif claim[name]:
        source.choice(claim[name])[1] = rational(source)


def damaged(source: random.Random, content: bytes) -> bytes:
    """The bytes of a file changed."""
    k, length = source.randrange(len(content)), source.randrange(1, 20)
    extra = bytes(
        source.choice(b'0123456789abcdefx",:[]{}-/. \n\\u\xff') for _ in range(source.randrange(4))
    )
    return source.choice(
        [
            content[:k],
            content[:k] + extra + content[k:],
            content[:k] + content[k + length :],
            content[:k] + extra + content[k + len(extra) :],
            content + extra,
            b"\xef\xbb\xbf" + content,
        ]
    )


# Comparison.


def verdicts(path: Path) -> tuple[str, str]:
    """Return our verdict and the checker's. Both raise no other error.

    A verdict is proven, false, unknown, unreadable or too large.
    """
    try:
        wb.check(path)
        ours = "proven"
    except CorruptFile as error:
        causes = {NotCertified: "false", NotProven: "unknown", type(None): "unreadable"}
        ours = (
            "too large" if "refused as too large" in str(error) else causes[type(error.__cause__)]
        )
    try:
        checker.prove_statement(checker.read_json_file(path))
        theirs = "proven"
    except checker.Refused as error:
        theirs = error.args[0]
    return ours, theirs


def counted(data: Data) -> int | None:
    """Return the work units that both checkers count for a valid file."""
    found: list[int] = []
    counting, checker.count_work = (
        checker.count_work,
        lambda *args: found.append(counting(*args)) or checker.MAX_WORK_UNITS + 1,
    )
    try:
        checker.prove_statement(json.loads(json.dumps(data)))
    except checker.Refused:
        pass
    finally:
        checker.count_work = counting
    return found[0] if found else None


def compare(count: int, seed: int, folder: Path, kind: str | None = None) -> Counter[str]:
    """How often both checkers gave each verdict on `count` files of a kind (None: all in turn).

    Raises AssertionError with the file when they differ, in the verdict or in the count of work.
    """
    path, found = folder / "certificate.json", Counter[str]()
    names = [*GENERATORS] if kind is None else [kind]
    for case in range(count):
        source = random.Random(f"{seed} {case}")
        data = GENERATORS[names[case % len(names)]](source)
        for _ in range(source.choice([0, 0, 1, 1, 1, 2])):
            with suppress(
                AttributeError, LookupError, TypeError, ValueError
            ):  # nothing left there to change
                data = mutated(source, data)
        content = json.dumps(data).encode()
        if source.random() < 0.1:
            content = damaged(source, content)
        path.write_bytes(content)
        ours, theirs = verdicts(path)
        foreign = (ours, theirs) == (
            "unreadable",
            "unknown",
        )  # a version or a kind that neither knows
        both = {ours, theirs} == {
            "false",
            "unreadable",
        }  # a false claim with a loss that makes no sense
        assert ours == theirs or foreign or both, (
            f"case {case} of seed {seed}: ours {ours}, the checker's {theirs}: {content.decode(errors='replace')}"
        )
        found[theirs] += 1
        if theirs == "proven":
            _same_count(path, counted(json.loads(content)), content)
    return found


def _same_count(path: Path, units: int | None, content: bytes) -> None:
    """Both accept with this limit, and both refuse with one less."""
    assert units is not None
    for limit, expected in ((units, "proven"), (units - 1, "too large")):
        before = audit_work.MAX_WORK_UNITS, checker.MAX_WORK_UNITS
        audit_work.MAX_WORK_UNITS = checker.MAX_WORK_UNITS = limit
        try:
            assert verdicts(path) == (expected, expected), f"limit {limit}: {content.decode()}"
        finally:
            audit_work.MAX_WORK_UNITS, checker.MAX_WORK_UNITS = before


if __name__ == "__main__":
    cases, start = (int(text) for text in (sys.argv[1:] + ["10000", "1"][len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as temporary:
        for each in GENERATORS:
            print(
                f"{each}: {dict(compare(cases, start, Path(temporary), each))} of {cases}",
                flush=True,
            )
