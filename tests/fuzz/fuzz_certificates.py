"""Compare both checkers on random certificates and on changed copies of them.

    python tests/fuzz/fuzz_certificates.py [COUNT] [SEED]

Default: 10000 cases of each kind with seed 1. The claim of a certificate is at, just above or just
below the budget of its mechanism. In many cases something is changed, from one digit to the bytes
of the file. `workbench.check` and `tools/check_certificate.py` must reach the same verdict and
count the same work units.

A row is a distribution as files state it, for example {"total": "0x3", "weights": ["0x1", "0x2"]}.
A law is the same as integers, ((1, 2), 3).
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
from typing import Any, NamedTuple

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

__all__ = ["GENERATORS", "checker", "compare_checkers", "decide_by_both"]

ROOT = Path(__file__).resolve().parents[2]


def _import_checker() -> ModuleType:
    """Import tools/check_certificate.py, which is not part of a package."""
    spec = importlib.util.spec_from_file_location(
        "check_certificate", ROOT / "tools" / "check_certificate.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


checker = _import_checker()
Data = dict[str, Any]  # A JSON object.
Law = tuple[tuple[int, ...], int]  # Weights and their sum.
Pairs = list[tuple[Law, Law]]  # The laws of each pair of neighbours.


# Certificates.


def draw_row(
    rng: random.Random,
    n: int,
    *,
    full: bool = False,
    widths: tuple[int, ...] = (1, 3, 3, 8, 60, 300),
) -> Data:
    """Draw a row of n weights.

    Args:
        rng: the random generator.
        n: number of weights.
        full: whether no weight is 0.
        widths: numbers of bits of the weights, of which one is drawn.
    """
    while True:
        bits = rng.choice(widths)
        weights = [rng.getrandbits(bits) + full for _ in range(n)]
        common = math.gcd(*weights)
        if common:
            return make_row([k // common for k in weights])


def make_row(weights: list[int]) -> Data:
    """Return weights as a row of a file."""
    return {"total": hex(sum(weights)), "weights": [*map(hex, weights)]}


def draw_rational(rng: random.Random, top: int = 3) -> str:
    """Draw a number in [0, top] in one of the spellings that files allow."""
    value = Fraction(rng.randrange(0, 40 * top), 40)
    ways = [
        str(value),
        f"{rng.randrange(0, 10 * top) / 10}",
        f"{rng.randrange(1, 99)}e-{rng.randrange(1, 30)}",
        f"{hex(value.numerator)}/{hex(value.denominator)}",
        f"{value.numerator} / {value.denominator}",
    ]
    return rng.choice(ways)


def draw_near(rng: random.Random, value: Fraction) -> str:
    """Draw a number equal to a value, or up to 1e-200 near it; never negative."""
    step = Fraction(1, 10 ** rng.choice([1, 4, 17, 60, 200]))
    moved = value + rng.choice([0, 0, 1, -1]) * step
    return str(max(moved, Fraction(0)))


def draw_near_logarithm(rng: random.Random, ratio: Fraction) -> str:
    """Draw a decimal of 5 to 120 digits just below or above ln(ratio), for a ratio >= 1."""
    from flint import arb, ctx, fmpq

    digits = rng.choice([5, 20, 60, 120])
    with ctx.workprec(1000):
        scaled = arb(fmpq(ratio.numerator, ratio.denominator)).log() * arb(10) ** digits
        near = int(scaled.floor().unique_fmpz())
    return str(Fraction(near + rng.choice([0, 1]), 10**digits))


def make_certificate(mechanism: Data, notion: str, epsilon: Any, delta: str = "0") -> Data:
    """Return a certificate with a claim in ε and δ, without a loss and a bias."""
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


def draw_certificate(
    rng: random.Random, mechanism: Data, pairs: Pairs, notions: list[str], epsilon: Any = None
) -> Data:
    """Draw a certificate whose δ or ε is near the budget of the mechanism.

    Args:
        rng: the random generator.
        mechanism: the mechanism as in a file.
        pairs: laws of its neighbours.
        notions: notions from which the claim is drawn.
        epsilon: value of each pair, as in a file. None to draw one ε for all pairs.
    """
    if epsilon is None and rng.random() < 0.25:
        return draw_certificate_of_notion(
            rng, mechanism, pairs, rng.choice(["curve", "tradeoff", "renyi", "zcdp", "gdp"])
        )
    notion = rng.choice(notions)
    ratios = [
        Fraction(k * q[1], l * p[1]) for p, q in pairs for k, l in zip(p[0], q[0], strict=True) if l
    ]
    losses = [ratio for ratio in ratios if ratio > 1]
    if notion in {"pure", "metric"}:
        at = (
            draw_near_logarithm(rng, max(losses))
            if losses and rng.random() < 0.8
            else draw_rational(rng)
        )
        return make_certificate(mechanism, notion, epsilon or at)
    at = (
        draw_near_logarithm(rng, rng.choice(losses))
        if losses and rng.random() < 0.6
        else draw_rational(rng)
    )
    budgets = [item[1] for item in epsilon] if epsilon else [at] * len(pairs)
    reached = max(
        compute_delta(pair, notion, checker.read_rational(value, "epsilon"))
        for pair, value in zip(pairs, budgets, strict=True)
    )
    delta = (
        "1" if rng.random() < 0.2 else draw_near(rng, min(max(reached, Fraction(0)), Fraction(1)))
    )
    return make_certificate(mechanism, notion, epsilon or at, delta)


def draw_certificate_of_notion(
    rng: random.Random, mechanism: Data, pairs: Pairs, notion: str
) -> Data:
    """Draw a certificate of a curve, trade-off, Rényi DP, zCDP or GDP near the needed budget."""
    if notion == "tradeoff":
        return make_certificate_of_claim(
            mechanism, notion=notion, tradeoff=draw_tradeoff(rng, pairs)
        )
    if notion == "curve":
        epsilons = {draw_rational(rng) for _ in range(rng.randrange(1, 4))}
        reached = [
            max(compute_delta(pair, "dp", checker.read_rational(text, "epsilon")) for pair in pairs)
            for text in epsilons
        ]
        points = [
            [text, draw_near(rng, min(max(at, Fraction(0)), Fraction(1)))]
            for text, at in zip(epsilons, reached, strict=True)
        ]
        return make_certificate_of_claim(mechanism, notion="curve", curve=points)
    order = rng.choice([Fraction(2), Fraction(3), Fraction(3, 2), Fraction(17)])
    moments = [Laws(*(Distribution(law[0]) for law in pair)) for pair in pairs]
    far = Fraction(1, 10 ** rng.choice([1, 3, 5] if notion == "zcdp" else [1, 3, 12, 40]))
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
    value = max(Fraction(0), least * (1 + rng.choice([1, 1, -1]) * far)).limit_denominator(10**80)
    others = {"alpha": str(order)} if notion == "renyi" else {}
    return make_certificate_of_claim(
        mechanism, notion=notion, **{checker.PARAMETERS[notion][0]: str(value)}, **others
    )


def draw_tradeoff(rng: random.Random, pairs: Pairs) -> list[list[str]]:
    """Draw points of about the largest trade-off function that all pairs satisfy in both orders."""
    errors = [(Fraction(0), Fraction(1)), (Fraction(1), Fraction(0))]
    for (p, p_sum), (q, q_sum) in pairs:
        tests = [sorted(rng.sample(range(len(p)), rng.randrange(len(p) + 1))) for _ in range(4)]
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
        [str(alpha), draw_near(rng, beta) if rng.random() < 0.3 else str(beta)]
        for alpha, beta in ends
    ]
    return moved if rng.random() < 0.5 or len(moved) < 4 else moved[:1] + moved[2:]


def make_certificate_of_claim(mechanism: Data, **claim: Any) -> Data:
    """Return a certificate with any claim, which is given by its entries."""
    return make_certificate(mechanism, "pure", "0") | {"claim": claim}


def compute_delta(pair: tuple[Law, Law], notion: str, epsilon: Fraction) -> Fraction:
    """Return the δ of a pair at ε: exact for "pdp", within 2^-400 for "dp"."""
    p, q = pair
    power = checker.Power(epsilon)
    broken = checker.find_violations(p, q, power)
    mass = Fraction(sum(p[0][i] for i in broken), p[1])
    if notion == "pdp":
        return mass
    low, _, w = power.bounds(3)
    return mass - Fraction(sum(q[0][i] for i in broken) * low, q[1] << w)


def read_law(row: Data) -> Law:
    """Return a row of a file as integers."""
    return tuple(int(k, 16) for k in row["weights"]), int(row["total"], 16)


def read_masses(row: Data) -> list[Fraction]:
    """Return the probabilities of a row."""
    weights, total = read_law(row)
    return [Fraction(k, total) for k in weights]


def draw_noise(rng: random.Random) -> Data:
    """Draw additive noise on a group, sometimes with a budget for each difference and a loss."""
    sizes = rng.choice([[2], [3], [5], [8], [2, 3], [1, 4], [2, 2, 2]])
    n = math.prod(sizes)
    points = [[part * rng.choice([1, -1]) for part in point] for point in _list_points(sizes)[1:]]
    shifts = rng.sample(points, rng.randrange(1, min(3, len(points)) + 1))
    mechanism = {
        "kind": "noise",
        "sizes": sizes,
        "shifts": shifts,
        "directed": rng.random() < 0.5,
    }
    mechanism |= draw_row(rng, n, full=rng.random() < 0.7)
    epsilon = None
    if rng.random() < 0.3:
        found: dict[tuple[int, ...], Fraction] = {}
        for shift in shifts:
            label = tuple(part % size for part, size in zip(shift, sizes, strict=True))
            back = tuple(-part % size for part, size in zip(shift, sizes, strict=True))
            value = Fraction(rng.randrange(0, 60), 20)
            for key in {label} if mechanism["directed"] else {label, back}:
                found[key] = found.get(key, value)
        epsilon = [[list(label), str(value)] for label, value in sorted(found.items())]
    f = read_law(mechanism)
    data = draw_certificate(
        rng, mechanism, list_pairs(mechanism), ["pdp", "dp", "pure", "metric"], epsilon
    )
    if rng.random() < 0.5:
        name = rng.choice(
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
        losses = None if name == "error-rate" else _draw_losses(rng, name, sizes)
        value = (
            Fraction(sum(weights) - weights[0]) if losses is None else _dot_product(losses, weights)
        )
        data["objective"] = {
            "name": name,
            "value": _draw_claimed_value(rng, value / sum(weights)),
            "losses": None if losses is None else [*map(str, losses)],
        }
    return data


def draw_channel(rng: random.Random) -> Data:
    """Draw a finite channel, sometimes with a budget for each pair, a bias and a loss."""
    count, n = rng.randrange(2, 5), rng.randrange(1, 5)
    rows = [draw_row(rng, n, full=rng.random() < 0.7) for _ in range(count)]
    if rng.random() < 0.2:
        rows[1] = deepcopy(rows[0])
    pairs = [[i, j] for i in range(count) for j in range(count) if i != j]
    pairs = sorted(rng.sample(pairs, rng.randrange(1, len(pairs) + 1)))
    epsilon = (
        [[pair, str(Fraction(rng.randrange(0, 60), 20))] for pair in pairs]
        if rng.random() < 0.3
        else None
    )
    compared = [(read_law(rows[i]), read_law(rows[j])) for i, j in pairs]
    mechanism = {"kind": "channel", "rows": rows, "pairs": pairs}
    data = draw_certificate(rng, mechanism, compared, ["pdp", "dp", "pure", "metric"], epsilon)
    laws = [*map(read_masses, rows)]
    outputs = [Fraction(rng.randrange(-20, 20), rng.choice([1, 2, 3])) for _ in range(n)]
    if rng.random() < 0.4:
        inputs = [Fraction(rng.randrange(-20, 20), 2) for _ in range(count)]
        worst = max(
            abs(_dot_product(law, outputs) - y) for law, y in zip(laws, inputs, strict=True)
        )
        data["bias"] = {
            "outputs": [*map(str, outputs)],
            "inputs": [*map(str, inputs)],
            "worst": str(worst),
        }
    if rng.random() < 0.5:
        labels = [
            Fraction(rng.randrange(-9, 9), rng.choice([1, 4])) for _ in range(rng.randrange(1, 5))
        ]
        prior = [Fraction(rng.randrange(0, 9), 7) for _ in labels]
        prior[-1] += 1
        at = [rng.randrange(count) for _ in labels]
        name = rng.choice(
            ["squared", "absolute", "error-rate", "pinball:0.3", "huber:1.5", "huber:2e-1"]
        )
        total = sum(
            p * _dot_product(laws[k], [_compute_loss(name, o - y) for o in outputs])
            for y, p, k in zip(labels, prior, at, strict=True)
        )
        data["objective"] = {
            "name": name, "value": _draw_claimed_value(rng, total / sum(prior)), "labels": [*map(str, labels)],
            "prior": [*map(str, prior)], "outputs": [*map(str, outputs)], "rows": at,
        }  # fmt: skip
    return data


def draw_range(rng: random.Random) -> Data:
    """Draw a mechanism on a range of real answers.

    It is a channel on cells, sometimes without a pair that it needs, or the mechanism
    "nearest-outputs".
    """
    ends = sorted(
        {
            Fraction(rng.randrange(-20, 20), rng.choice([1, 2, 3]))
            for _ in range(rng.randrange(3, 6))
        }
    )
    if len(ends) < 3 or rng.random() < 0.5:
        outputs = sorted(Fraction(rng.randrange(-20, 20), 2) for _ in range(rng.randrange(2, 7)))
        data = {"kind": "nearest-outputs", "ends": [str(outputs[0] - 1), str(outputs[-1] + rng.randrange(2))],
                "outputs": [*map(str, outputs)], "own": rng.randrange(1, len(outputs)),
                "odds": str(1 + Fraction(rng.randrange(60), 20)), "steps": rng.randrange(1, 9),
                "direct": str(rng.choice([Fraction(0), Fraction(rng.randrange(8), 20)]))}  # fmt: skip
        return draw_certificate(rng, data, list_pairs(data), ["pdp", "dp", "pure"])
    at_ends, reach = (
        rng.random() < 0.5,
        Fraction(rng.randrange(1, 40), rng.choice([1, 2, 3])),
    )
    count, n = len(ends) - (not at_ends), rng.randrange(1, 4)
    pairs = [[i, j] for i in range(count) for j in range(count) if i != j]
    if rng.random() < 0.7:
        pairs = [[i, j] for i, j in pairs if abs(i - j) < 3 or rng.random() < 0.8]
    rows = [draw_row(rng, n, full=rng.random() < 0.8) for _ in range(count)]
    outputs = [str(Fraction(rng.randrange(-20, 20), 2)) for _ in range(n)]
    data = {"kind": "range", "ends": [*map(str, ends)], "sensitivity": str(reach), "at_ends": at_ends,
            "outputs": outputs, "channel": {"kind": "channel", "rows": rows, "pairs": pairs}}  # fmt: skip
    return draw_certificate(rng, data, list_pairs(data["channel"]), ["pdp", "dp", "pure"])


def draw_quantizer(rng: random.Random) -> Data:
    """Draw a quantizer of real inputs, sometimes with continuous laws and with its bias."""
    notion = rng.choice(["pdp", "pdp", "dp", "pure", "metric"])
    pieces, m, widths = rng.randrange(1, 4), rng.randrange(1, 5), (1, 3, 3, 8, 60, 300)
    crossing = (
        notion == "pdp" and rng.random() < 0.7
    )  # three outcomes and a small ε: the supremum is often inside
    if crossing:
        pieces, m, widths = rng.randrange(1, 3), rng.randrange(3, 6), (2, 3)
    knots = sorted(Fraction(k, 4) for k in rng.sample(range(-20, 20), pieces + 1))
    ends = [draw_row(rng, m, full=rng.random() < 0.8, widths=widths) for _ in range(2 * pieces)]
    if rng.random() < 0.5:
        for k in range(1, pieces):
            ends[2 * k] = ends[2 * k - 1]
    outputs = [Fraction(rng.randrange(-20, 20), rng.choice([1, 3])) for _ in range(m)]
    mechanism = {
        "kind": "quantizer",
        "knots": [*map(str, knots)],
        "outputs": [*map(str, outputs)],
        "ends": ends,
    }
    places = [x for k in range(pieces) for x in (knots[k], knots[k + 1])]
    laws = [*map(read_masses, ends)]
    if notion == "metric":
        slopes = [Fraction(0)] + [
            abs(x - y) / ((places[k + 1] - places[k]) * min(x, y))
            for k in range(0, 2 * pieces, 2)
            for x, y in zip(laws[k], laws[k + 1], strict=True)
            if min(x, y)
        ]
        data = make_certificate(mechanism, notion, draw_near(rng, max(slopes)))
    elif notion == "pdp":
        epsilon = rng.choice(
            ["0", "0.05", "1/10", "0.3"] if crossing else ["0", draw_rational(rng, 2)]
        )
        audit = wb.audit(mechanism_from_dict(mechanism), checker.read_rational(epsilon, "epsilon"))
        reached = audit.worst_result("pdp").measurement.tight_enclosure()[1]
        data = make_certificate(
            mechanism, notion, epsilon, draw_near(rng, min(reached, Fraction(1)))
        )
    else:
        pairs = [(read_law(one), read_law(two)) for one in ends for two in ends]
        data = draw_certificate(rng, mechanism, pairs, [notion])
    if rng.random() < 0.6:
        worst = max(
            abs(_dot_product(law, outputs) - x) for law, x in zip(laws, places, strict=True)
        )
        data["bias"] = {
            "outputs": mechanism["outputs"],
            "inputs": [*map(str, places)],
            "worst": str(worst),
        }
    return data


def draw_line_noise(rng: random.Random, *, real: bool = False) -> Data:
    """Draw noise on integers or reals, with or without clamps and tails, and sometimes its loss."""
    count = rng.randrange(1, 9)
    data = {
        "first": rng.randrange(-count, 2), "period": rng.randrange(1, count + 1),
        "ratio": rng.choice(["0", "0", "1/2", "0.3", "0.99", "2/7"]), **draw_row(rng, count, widths=(1, 3, 8, 60)),
    }  # fmt: skip
    reach = rng.randrange(1, 4)
    if not real and rng.random() < 0.5:
        ends = [low := rng.randrange(-2, 3), low + reach + rng.randrange(0, 4)]
        clamp = ends if rng.random() < 0.5 else None
        data |= {"kind": "integer-noise", "sensitivity": reach, "clamp": clamp}
    else:
        around = data["first"] <= 0 <= data["first"] + count - 1
        atom = rng.choice(["0", "1", "5/3"]) if around else "0"
        data |= {
            "kind": "real-noise",
            "sensitivity": "7/2",
            "grid": "0.25",
            "steps": reach,
            "atom": atom,
        }
    made = checker.READERS[data["kind"]](data)
    found = draw_certificate(rng, data, list_pairs(data), ["pure", "dp", "pdp"])
    if not made.clamp and rng.random() < 0.4:
        with suppress(checker.Refused):
            name = rng.choice(["absolute", "squared"])
            found["objective"] = {
                "name": name,
                "value": str(checker.compute_line_loss(name, None, made)),
                "losses": None,
            }
    return found


def make_notion_generator(notion: str) -> Callable[[random.Random], Data]:
    """Return a function that draws noise or a channel with a claim of one notion."""

    def generate(rng: random.Random) -> Data:
        data = rng.choice([draw_noise, draw_channel, draw_line_noise])(rng)
        return data | {
            "claim": draw_certificate_of_notion(
                rng, data["mechanism"], list_pairs(data["mechanism"]), notion
            )["claim"]
        }

    return generate


def list_pairs(mechanism: Data) -> Pairs:
    """Return the laws of each pair of neighbours of noise or a channel."""
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


# Kind of a case -> function that draws a certificate.
GENERATORS: dict[str, Callable[[random.Random], Data]] = {
    "noise": draw_noise, "channel": draw_channel, "quantizer": draw_quantizer, "line": draw_line_noise,
    "real noise": partial(draw_line_noise, real=True), "range": draw_range, "renyi": make_notion_generator("renyi"), "zcdp": make_notion_generator("zcdp"), "gdp": make_notion_generator("gdp"),
}  # fmt: skip


def _list_points(sizes: list[int]) -> list[tuple[int, ...]]:
    """Return the elements of a group: for [1, 2] they are (0, 0) and (0, 1)."""
    points: list[tuple[int, ...]] = [()]
    for size in sizes:
        points = [(*point, part) for point in points for part in range(size)]
    return points


def _draw_losses(rng: random.Random, name: str, sizes: list[int]) -> list[Fraction]:
    """Return the loss of each element of a group, or random losses for other names."""
    if rng.random() < 0.15 or name not in {"squared", "eta-squared", "circular-squared"}:
        return [Fraction(rng.randrange(-3, 30), rng.choice([1, 7])) for _ in _list_points(sizes)]
    loss_of_part = {
        "squared": lambda e, s: e * (s - e),
        "eta-squared": lambda e, s: e * e,
        "circular-squared": lambda e, s: min(e, s - e) ** 2,
    }[name]
    return [
        Fraction(sum(loss_of_part(e, s) for e, s in zip(point, sizes, strict=True)))
        for point in _list_points(sizes)
    ]


def _dot_product(first: Any, second: Any) -> Fraction:
    """Return the sum of the products of two lists of numbers."""
    return sum((x * y for x, y in zip(first, second, strict=True)), Fraction(0))


def _compute_loss(name: str, r: Fraction) -> Fraction:
    """Return the named loss, such as "huber:1.5", at a difference r."""
    kind, _, text = name.partition(":")
    h = Fraction(text or 1)
    return {
        "squared": r * r,
        "absolute": abs(r),
        "error-rate": Fraction(r != 0),
        "pinball": max(-h * r, (1 - h) * r),
        "huber": r * r / 2 if abs(r) <= h else h * (abs(r) - h / 2),
    }[kind]


def _draw_claimed_value(rng: random.Random, value: Fraction) -> str:
    """Draw a claimed value: the true one, an allowed rounding of it, or slightly too much or little."""
    slack = max(abs(value), Fraction(1, 10**300)) / 10**15
    return str(
        value + slack * rng.choice([0, 0, Fraction(1, 2), 1, Fraction(11, 10), Fraction(-1, 100)])
    )


# Mutations.

# Values that replace an entry of a file.
ODD_VALUES: list[Any] = [
    None, True, False, 0, 1, 2, 3, -1, 7, 0.5, 10**30, "", "0", "1", "-1", "0x0", "0x1", "0x01", "0xg", "1e400",
    "1e-400", "1/3", "1/0", "-0", "+1", ".5", "5.", "1_0", "１", " 1", "1 /2", "nan", "Infinity", "0x1/0x3",
    "-0x1/0x3", "0x1/0x0", "1e6", "1000001", "0e99999", "1e-5001", "pdp", "dp", "pure", "metric",
    "curve", "tradeoff", "renyi", "zcdp", "gdp", "noise", "channel", "range", "nearest-outputs",
    "quantizer", "squared", "error-rate", "worst-squared", "poisson", "huber:0", "pinball:1", "huber:1", [], {}, [0],
    [[0, 1]], [1, 0], {"a": 1},
]  # fmt: skip


def list_paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value inside a JSON value. For {"a": [5]}: ("a",) and ("a", 0)."""
    found = [path] if path else []
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in items:
        found += list_paths(item, (*path, key))
    return found


def get_value(value: Any, path: tuple[Any, ...]) -> Any:
    """Return the value at a path."""
    for key in path:
        value = value[key]
    return value


def mutate(rng: random.Random, data: Data) -> Data:
    """Return a certificate with one random change."""
    data = deepcopy(data)
    path = rng.choice(list_paths(data))
    parent, key = get_value(data, path[:-1]), path[-1]
    old = parent[key]
    action = rng.randrange(7)
    if action == 0:
        parent[key] = deepcopy(rng.choice(ODD_VALUES))
    elif action == 1:
        parent[key] = deepcopy(get_value(data, rng.choice(list_paths(data))))
    elif action == 2 and isinstance(old, str) and old:
        k = rng.randrange(len(old))
        middle = rng.choice(["", *"0123456789abcdef/.-ex", old[k] * 2])
        parent[key] = old[:k] + middle + old[k + 1 :]
    elif action == 3 and isinstance(old, list) and old:
        k = rng.randrange(len(old))
        rng.choice(
            [
                lambda: old.pop(k),
                lambda: old.insert(k, deepcopy(old[k])),
                lambda: rng.shuffle(old),
            ]
        )()
    elif action == 4:
        rows = [
            get_value(data, spot[:-1])
            for spot in list_paths(data)
            if spot[-1] == "total" and spot[0] == "mechanism"
        ]
        if rows:
            _change_weights(rng, rng.choice(rows))
    elif action == 5 and isinstance(old, int) and not isinstance(old, bool):
        parent[key] = old + rng.choice([1, -1])
    elif isinstance(parent, dict) and rng.random() < 0.2:
        parent["extra" if rng.random() < 0.5 else key] = parent.pop(key)
    else:
        _change_claim(rng, data)
    return data


def _change_weights(rng: random.Random, law: Data) -> None:
    """Change a weight of a row, and its total."""
    weights = [
        int(str(k), 16) for k in law["weights"] if isinstance(k, str) and k.startswith("0x")
    ] or [1]
    k = rng.randrange(len(weights))
    weights[k] = max(0, weights[k] + rng.choice([1, -1, 5, -weights[k]]))
    law |= make_row(weights if rng.random() < 0.9 else [2 * k for k in weights])


def _change_claim(rng: random.Random, data: Data) -> None:
    """Change the notion or a parameter of the claim."""
    claim = data["claim"]
    name = rng.choice([*claim])
    if name == "notion":
        claim["notion"] = rng.choice([*checker.PARAMETERS])
    elif not isinstance(claim[name], list):
        claim[name] = draw_rational(rng, 3 if name == "epsilon" else 1)
    elif claim[name]:
        rng.choice(claim[name])[1] = draw_rational(rng)


def damage(rng: random.Random, content: bytes) -> bytes:
    """Return a file with bytes removed, replaced or inserted."""
    k, length = rng.randrange(len(content)), rng.randrange(1, 20)
    extra = bytes(
        rng.choice(b'0123456789abcdefx",:[]{}-/. \n\\u\xff') for _ in range(rng.randrange(4))
    )
    return rng.choice(
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


class Verdicts(NamedTuple):
    """Verdicts on a file: proven, false, unknown, unreadable or too large.

    Attributes:
        workbench: verdict of `workbench.check`.
        checker: verdict of `tools/check_certificate.py`.
    """

    workbench: str
    checker: str


def decide_by_both(path: Path) -> Verdicts:
    """Return the verdicts of both checkers. Other errors than refusals are not caught."""
    workbench_verdict = "proven"
    try:
        wb.check(path)
    except CorruptFile as error:
        verdict_by_cause = {NotCertified: "false", NotProven: "unknown", type(None): "unreadable"}
        workbench_verdict = verdict_by_cause[type(error.__cause__)]
        if "refused as too large" in str(error):
            workbench_verdict = "too large"
    checker_verdict = "proven"
    try:
        checker.prove_statement(checker.read_json_file(path))
    except checker.Refused as error:
        checker_verdict = error.args[0]
    return Verdicts(workbench_verdict, checker_verdict)


def count_checker_work(data: Data) -> int:
    """Return the work units that the independent checker counts for a valid file."""
    unit_counts: list[int] = []
    original_count_work = checker.count_work

    def note_and_refuse(*args: Any) -> Any:
        unit_counts.append(original_count_work(*args))
        return checker.MAX_WORK_UNITS + 1  # So that the file is refused before the proof.

    checker.count_work = note_and_refuse
    try:
        checker.prove_statement(json.loads(json.dumps(data)))
    except checker.Refused:
        pass
    finally:
        checker.count_work = original_count_work
    return unit_counts[0]


def compare_checkers(count: int, seed: int, folder: Path, kind: str | None = None) -> Counter[str]:
    """Compare both checkers on random files.

    Args:
        count: number of files.
        seed: seed of the random generators.
        folder: folder of the files.
        kind: key of GENERATORS. None for all kinds in turn.

    Returns:
        Verdict -> number of files.

    Raises:
        AssertionError: the verdicts or the counted work units differ. The message has the file.
    """
    path = folder / "certificate.json"
    counts: Counter[str] = Counter()
    kinds = [*GENERATORS] if kind is None else [kind]
    for case in range(count):
        rng = random.Random(f"{seed} {case}")
        data = GENERATORS[kinds[case % len(kinds)]](rng)
        for _ in range(rng.choice([0, 0, 1, 1, 1, 2])):
            # An earlier change may have removed what this one needs.
            with suppress(AttributeError, LookupError, TypeError, ValueError):
                data = mutate(rng, data)
        content = json.dumps(data).encode()
        if rng.random() < 0.1:
            content = damage(rng, content)
        path.write_bytes(content)
        verdicts = decide_by_both(path)
        # Neither checker knows the version or the kind of mechanism.
        is_unknown_version = verdicts == ("unreadable", "unknown")
        # The claim is false and the loss has no meaning. The checkers find one of them first.
        has_two_errors = {*verdicts} == {"false", "unreadable"}
        is_same = verdicts.workbench == verdicts.checker
        assert is_same or is_unknown_version or has_two_errors, (
            f"case {case} of seed {seed}: {verdicts}: {content.decode(errors='replace')}"
        )
        counts[verdicts.checker] += 1
        if verdicts.checker == "proven":
            _require_same_work(path, count_checker_work(json.loads(content)), content)
    return counts


def _require_same_work(path: Path, units: int, content: bytes) -> None:
    """Require that both accept a file with this limit of work units, and refuse it with one less."""
    for limit, expected in ((units, "proven"), (units - 1, "too large")):
        saved_limits = audit_work.MAX_WORK_UNITS, checker.MAX_WORK_UNITS
        audit_work.MAX_WORK_UNITS = checker.MAX_WORK_UNITS = limit
        try:
            verdicts = decide_by_both(path)
            assert verdicts == (expected, expected), f"limit {limit}: {content.decode()}"
        finally:
            audit_work.MAX_WORK_UNITS, checker.MAX_WORK_UNITS = saved_limits


def compare_all(count: int = 10_000, seed: int = 1) -> None:
    """Compare both checkers on files of each kind, and print the numbers of verdicts."""
    with tempfile.TemporaryDirectory() as folder:
        for kind in GENERATORS:
            counts = compare_checkers(count, seed, Path(folder), kind)
            print(f"{kind}: {dict(counts)} of {count}", flush=True)


if __name__ == "__main__":
    compare_all(*map(int, sys.argv[1:3]))
