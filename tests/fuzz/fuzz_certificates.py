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
from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import deepcopy
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from unittest import mock

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
from workbench.questions.joint_query import JointQuery

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
        full: whether every weight is positive.
        widths: numbers of bits, of which one is drawn for all weights.
    """
    smallest_weight = 1 if full else 0
    while True:
        bits = rng.choice(widths)
        weights = [rng.getrandbits(bits) + smallest_weight for _ in range(n)]
        common = math.gcd(*weights)
        if common:  # It is 0 if all weights are 0.
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
    """Draw a number that is equal to a value, or differs from it by 10^-k with k in 1..200.

    The number is never negative.
    """
    step = Fraction(1, 10 ** rng.choice([1, 4, 17, 60, 200]))
    near_value = value + rng.choice([0, 0, 1, -1]) * step
    return str(max(near_value, Fraction(0)))


def draw_near_logarithm(rng: random.Random, ratio: Fraction) -> str:
    """Draw a decimal of 5 to 120 digits just below or above ln(ratio), for a ratio >= 1."""
    from flint import arb, ctx, fmpq

    digits = rng.choice([5, 20, 60, 120])
    with ctx.workprec(1000):
        scaled = arb(fmpq(ratio.numerator, ratio.denominator)).log() * arb(10) ** digits
        floor = int(scaled.floor().unique_fmpz())
    return str(Fraction(floor + rng.choice([0, 1]), 10**digits))


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
    rng: random.Random,
    mechanism: Data,
    pairs: Pairs,
    notions: list[str],
    epsilon_of_pairs: Any = None,
) -> Data:
    """Draw a certificate whose δ or ε is near the budget of the mechanism.

    Args:
        rng: the random generator.
        mechanism: the mechanism as in a file.
        pairs: laws of its neighbours.
        notions: notions from which the claim is drawn.
        epsilon_of_pairs: list of [pair, ε], as in a file. None to draw one ε for all pairs.
    """
    if epsilon_of_pairs is None and rng.random() < 0.25:
        return draw_certificate_of_notion(
            rng, mechanism, pairs, rng.choice(["curve", "tradeoff", "renyi", "zcdp", "gdp"])
        )
    notion = rng.choice(notions)
    ratios = [ratio for p, q in pairs for ratio in list_ratios(p, q) if ratio > 1]
    if notion in {"pure", "metric"}:
        # The needed ε is the logarithm of the largest ratio.
        if ratios and rng.random() < 0.8:
            drawn_epsilon = draw_near_logarithm(rng, max(ratios))
        else:
            drawn_epsilon = draw_rational(rng)
        return make_certificate(mechanism, notion, epsilon_of_pairs or drawn_epsilon)

    # At the logarithm of a ratio, the excess of one outcome changes its sign.
    if ratios and rng.random() < 0.6:
        drawn_epsilon = draw_near_logarithm(rng, rng.choice(ratios))
    else:
        drawn_epsilon = draw_rational(rng)
    epsilons = [drawn_epsilon] * len(pairs)
    if epsilon_of_pairs:
        epsilons = [pair_epsilon for _, pair_epsilon in epsilon_of_pairs]
    needed_delta = max(
        compute_delta(pair, notion, checker.read_rational(pair_epsilon, "epsilon"))
        for pair, pair_epsilon in zip(pairs, epsilons, strict=True)
    )
    delta = "1" if rng.random() < 0.2 else draw_near_probability(rng, needed_delta)
    return make_certificate(mechanism, notion, epsilon_of_pairs or drawn_epsilon, delta)


def list_ratios(p: Law, q: Law) -> list[Fraction]:
    """Return P(i)/Q(i) of all outcomes with Q(i) > 0."""
    weights_p, total_p = p
    weights_q, total_q = q
    return [
        Fraction(k * total_q, l * total_p) for k, l in zip(weights_p, weights_q, strict=True) if l
    ]


def draw_near_probability(rng: random.Random, value: Fraction) -> str:
    """Draw a number near a probability, which may lie slightly above 1."""
    return draw_near(rng, min(max(value, Fraction(0)), Fraction(1)))


def draw_certificate_of_notion(
    rng: random.Random, mechanism: Data, pairs: Pairs, notion: str
) -> Data:
    """Draw a certificate of a curve, trade-off, Rényi DP, zCDP or GDP near the needed budget."""
    if notion == "tradeoff":
        return make_certificate_of_claim(
            mechanism, notion=notion, tradeoff=draw_tradeoff(rng, pairs)
        )
    if notion == "curve":
        points = []
        for text in {draw_rational(rng) for _ in range(rng.randrange(1, 4))}:
            epsilon = checker.read_rational(text, "epsilon")
            needed_delta = max(compute_delta(pair, "dp", epsilon) for pair in pairs)
            points.append([text, draw_near_probability(rng, needed_delta)])
        return make_certificate_of_claim(mechanism, notion="curve", curve=points)

    order = rng.choice([Fraction(2), Fraction(3), Fraction(3, 2), Fraction(17)])
    laws_of_pairs = [Laws(*(Distribution(law[0]) for law in pair)) for pair in pairs]
    if notion == "renyi":
        needed = compute_renyi_epsilon(laws_of_pairs, order)
    elif notion == "gdp":
        needed = compute_gdp_mu(laws_of_pairs)
    else:
        needed = compute_zcdp_rho(laws_of_pairs)
    # Claims of zCDP that are tighter than 1e-5 would take both checkers too long.
    exponents = [1, 3, 5] if notion == "zcdp" else [1, 3, 12, 40]
    relative_step = Fraction(1, 10 ** rng.choice(exponents))
    value = max(Fraction(0), needed * (1 + rng.choice([1, 1, -1]) * relative_step))
    claim = {checker.PARAMETERS[notion][0]: str(value.limit_denominator(10**80))}
    if notion == "renyi":
        claim["alpha"] = str(order)
    return make_certificate_of_claim(mechanism, notion=notion, **claim)


def compute_renyi_epsilon(laws_of_pairs: list[Laws], order: Fraction) -> Fraction:
    """Return about the ε that Rényi DP of an order needs, or 1 if it is infinite for all pairs."""
    epsilons = []
    for laws in laws_of_pairs:
        loss = PrivacyLoss(laws)
        if loss.unmatched_outcome is None:  # Otherwise the divergence is infinite.
            low, _ = ball_ends(loss.log_moment(order, 256))
            epsilons.append(low / (order - 1))
    return max(epsilons, default=Fraction(1))


def compute_gdp_mu(laws_of_pairs: list[Laws]) -> Fraction:
    """Return about the μ that Gaussian DP needs, or 0 if it is infinite for all pairs."""
    mus = []
    for laws in laws_of_pairs:
        curve = TradeOffCurve(
            (a.numerator, a.denominator, b.numerator, b.denominator) for _, a, b in laws.steps
        )
        if not curve.is_unbounded:
            mus += [curve.mu_enclosure(vertex, 256)[0] for vertex in curve.vertices]
    return max(mus, default=Fraction(0))


def compute_zcdp_rho(laws_of_pairs: list[Laws]) -> Fraction:
    """Return about the ρ that zCDP needs, or 0 if it is 0 or infinite for all pairs."""
    rhos = []
    for laws in laws_of_pairs:
        loss = ConcentratedLoss(laws)
        if not loss.is_unbounded and not loss.is_same:
            rhos.append(loss.smallest_rho[0])
    return max(rhos, default=Fraction(0))


def draw_tradeoff(rng: random.Random, pairs: Pairs) -> list[list[str]]:
    """Draw points of about the largest trade-off function that all pairs satisfy in both orders.

    Returns:
        Points [α, β] as texts, with increasing α. Some are moved, or one is left out.
    """
    errors = [(Fraction(0), Fraction(1)), (Fraction(1), Fraction(0))]
    for pair in pairs:
        errors += draw_test_errors(rng, *pair)
    errors += [(beta, alpha) for alpha, beta in errors]
    # The function ends at the first point with β = 0, so later points are left out.
    hull = lower_hull(errors)
    points = [point for point in hull if point[1]]
    points.append(next(point for point in hull if not point[1]))
    texts = []
    for alpha, beta in points:
        is_moved = rng.random() < 0.3
        texts.append([str(alpha), draw_near(rng, beta) if is_moved else str(beta)])
    if rng.random() < 0.5 or len(texts) < 4:
        return texts
    # Leave out the second point.
    return texts[:1] + texts[2:]


def draw_test_errors(rng: random.Random, p: Law, q: Law) -> list[tuple[Fraction, Fraction]]:
    """Return (type I error, type II error) of tests of P against Q.

    A test is the set of outcomes at which P is accepted. Four tests are random, and five accept P
    where the likelihood ratio P/Q is above a threshold.
    """
    weights_p, total_p = p
    weights_q, total_q = q
    size = len(weights_p)
    tests = [sorted(rng.sample(range(size), rng.randrange(size + 1))) for _ in range(4)]
    for threshold in (Fraction(1, 8), Fraction(1, 2), 1, 2, 8):
        scaled_q = [threshold * weight * total_p for weight in weights_q]
        accepted = [i for i in range(size) if weights_p[i] * total_q > scaled_q[i]]
        tests.append(accepted)
    errors = []
    for outcomes in tests:
        accepted_p = Fraction(sum(weights_p[i] for i in outcomes), total_p)
        accepted_q = Fraction(sum(weights_q[i] for i in outcomes), total_q)
        errors.append((1 - accepted_p, accepted_q))
    return errors


def lower_hull(points: list[tuple[Fraction, Fraction]]) -> list[tuple[Fraction, Fraction]]:
    """Return the corners of the lower convex hull of points (α, β), in increasing order of α."""
    hull: list[tuple[Fraction, Fraction]] = []
    for alpha in sorted({alpha for alpha, _ in points}):
        beta = min(b for a, b in points if a == alpha)
        while len(hull) > 1 and _is_above_chord(hull[-1], hull[-2], (alpha, beta)):
            hull.pop()
        hull.append((alpha, beta))
    return hull


def _is_above_chord(
    point: tuple[Fraction, Fraction],
    left: tuple[Fraction, Fraction],
    right: tuple[Fraction, Fraction],
) -> bool:
    """Return whether a point lies on or above the chord from a left to a right point."""
    left_rise = (point[1] - left[1]) * (right[0] - point[0])
    right_rise = (right[1] - point[1]) * (point[0] - left[0])
    return left_rise >= right_rise


def make_certificate_of_claim(mechanism: Data, **claim: Any) -> Data:
    """Return a certificate with any claim, which is given by its entries."""
    return make_certificate(mechanism, "pure", "0") | {"claim": claim}


def compute_delta(pair: tuple[Law, Law], notion: str, epsilon: Fraction) -> Fraction:
    """Return the δ of a pair at ε: exact for "pdp", within 2^-400 for "dp"."""
    p, q = pair
    weights_p, total_p = p
    weights_q, total_q = q
    power = checker.Power(epsilon)
    violations = checker.find_violations(p, q, power)
    violating_mass = Fraction(sum(weights_p[i] for i in violations), total_p)
    if notion == "pdp":
        return violating_mass
    # e^ε is about low / 2^w; `bounds` returns (low, high, w).
    low, _, w = power.bounds(3)
    return violating_mass - Fraction(sum(weights_q[i] for i in violations) * low, total_q << w)


def read_law(row: Data) -> Law:
    """Return a row of a file as integers."""
    return tuple(int(k, 16) for k in row["weights"]), int(row["total"], 16)


def read_masses(row: Data) -> list[Fraction]:
    """Return the probabilities of a row."""
    weights, total = read_law(row)
    return [Fraction(k, total) for k in weights]


def draw_noise(rng: random.Random) -> Data:
    """Draw additive noise on a group, sometimes with an ε for each difference and a loss."""
    sizes = rng.choice([[2], [3], [5], [8], [2, 3], [1, 4], [2, 2, 2]])
    points = [[part * rng.choice([1, -1]) for part in point] for point in _list_points(sizes)[1:]]
    shifts = rng.sample(points, rng.randrange(1, min(3, len(points)) + 1))
    mechanism = {
        "kind": "noise",
        "sizes": sizes,
        "shifts": shifts,
        "directed": rng.random() < 0.5,
    }
    mechanism |= draw_row(rng, math.prod(sizes), full=rng.random() < 0.7)
    epsilon = None
    if rng.random() < 0.3:
        epsilon = _draw_epsilon_of_differences(rng, mechanism)
    data = draw_certificate(
        rng,
        mechanism,
        list_pairs(mechanism),
        notions=["pdp", "dp", "pure", "metric"],
        epsilon_of_pairs=epsilon,
    )
    if rng.random() < 0.5:
        data["objective"] = _draw_noise_objective(rng, mechanism)
    return data


def _draw_epsilon_of_differences(rng: random.Random, mechanism: Data) -> list[Any]:
    """Draw pairs [difference, ε] for the differences of noise, sorted as files state them."""
    sizes = mechanism["sizes"]
    epsilons: dict[tuple[int, ...], Fraction] = {}
    for shift in mechanism["shifts"]:
        label = tuple(part % size for part, size in zip(shift, sizes, strict=True))
        reverse_label = tuple(-part % size for part, size in zip(shift, sizes, strict=True))
        epsilon = Fraction(rng.randrange(0, 60), 20)
        # A difference may occur in several shifts. Its first ε counts.
        epsilons.setdefault(label, epsilon)
        if not mechanism["directed"]:
            epsilons.setdefault(reverse_label, epsilon)
    return [[list(label), str(epsilon)] for label, epsilon in sorted(epsilons.items())]


def _draw_noise_objective(rng: random.Random, mechanism: Data) -> Data:
    """Draw a named loss of noise, with its expected value or a number near it."""
    names = [
        "error-rate",
        "squared",
        "eta-squared",
        "circular-squared",
        "own-loss",
        "prior-squared",
    ]
    name = rng.choice(names)
    weights, total = read_law(mechanism)
    if name == "error-rate":
        value = 1 - Fraction(weights[0], total)
        return {"name": name, "value": _draw_claimed_value(rng, value), "losses": None}
    losses = _draw_losses(rng, name, mechanism["sizes"])
    value = _dot_product(losses, weights) / total
    return {
        "name": name,
        "value": _draw_claimed_value(rng, value),
        "losses": [*map(str, losses)],
    }


def draw_channel(rng: random.Random) -> Data:
    """Draw a finite channel, sometimes with an ε for each pair, a bias and a loss."""
    row_count = rng.randrange(2, 5)
    output_count = rng.randrange(1, 5)
    rows = [draw_row(rng, output_count, full=rng.random() < 0.7) for _ in range(row_count)]
    if rng.random() < 0.2:
        rows[1] = deepcopy(rows[0])
    all_pairs = _list_ordered_pairs(row_count)
    pairs = sorted(rng.sample(all_pairs, rng.randrange(1, len(all_pairs) + 1)))
    epsilon = None
    if rng.random() < 0.3:
        epsilon = [[pair, str(Fraction(rng.randrange(0, 60), 20))] for pair in pairs]
    laws_of_pairs = [(read_law(rows[i]), read_law(rows[j])) for i, j in pairs]
    mechanism = {"kind": "channel", "rows": rows, "pairs": pairs}
    data = draw_certificate(
        rng,
        mechanism,
        laws_of_pairs,
        notions=["pdp", "dp", "pure", "metric"],
        epsilon_of_pairs=epsilon,
    )
    outputs = [Fraction(rng.randrange(-20, 20), rng.choice([1, 2, 3])) for _ in range(output_count)]
    if rng.random() < 0.4:
        inputs = [Fraction(rng.randrange(-20, 20), 2) for _ in range(row_count)]
        data["bias"] = _make_bias(rows, outputs, inputs)
    if rng.random() < 0.5:
        data["objective"] = _draw_channel_objective(rng, rows, outputs)
    return data


def _list_ordered_pairs(count: int) -> list[list[int]]:
    """Return all pairs [i, j] of different integers below a number."""
    return [[i, j] for i in range(count) for j in range(count) if i != j]


def _make_bias(rows: list[Data], outputs: list[Fraction], inputs: list[Fraction]) -> Data:
    """Return the entry "bias" of a file, with the exact bias of rows at their inputs."""
    biases = [
        abs(_dot_product(read_masses(row), outputs) - x)
        for row, x in zip(rows, inputs, strict=True)
    ]
    return {
        "outputs": [*map(str, outputs)],
        "inputs": [*map(str, inputs)],
        "worst": str(max(biases)),
    }


def _draw_channel_objective(rng: random.Random, rows: list[Data], outputs: list[Fraction]) -> Data:
    """Draw labels, their prior and rows, and a loss with its expected value or a number near it."""
    label_count = rng.randrange(1, 5)
    labels = [Fraction(rng.randrange(-9, 9), rng.choice([1, 4])) for _ in range(label_count)]
    prior = [Fraction(rng.randrange(0, 9), 7) for _ in labels]
    prior[-1] += 1  # The prior is not 0.
    row_of_label = [rng.randrange(len(rows)) for _ in labels]
    name = rng.choice(
        ["squared", "absolute", "error-rate", "pinball:0.3", "huber:1.5", "huber:2e-1"]
    )
    total = Fraction(0)
    for label, weight, k in zip(labels, prior, row_of_label, strict=True):
        losses = [_compute_loss(name, output - label) for output in outputs]
        total += weight * _dot_product(read_masses(rows[k]), losses)
    return {
        "name": name,
        "value": _draw_claimed_value(rng, total / sum(prior)),
        "labels": [*map(str, labels)],
        "prior": [*map(str, prior)],
        "outputs": [*map(str, outputs)],
        "rows": row_of_label,
    }


def draw_range(rng: random.Random) -> Data:
    """Draw a mechanism on a range of real answers.

    It is a channel on cells, sometimes without a pair that it needs, or the mechanism
    "nearest-outputs".
    """
    end_count = rng.randrange(3, 6)
    ends = sorted(
        {Fraction(rng.randrange(-20, 20), rng.choice([1, 2, 3])) for _ in range(end_count)}
    )
    notions = ["pdp", "dp", "pure"]
    if len(ends) < 3 or rng.random() < 0.5:
        mechanism = _draw_nearest_outputs(rng)
        return draw_certificate(rng, mechanism, list_pairs(mechanism), notions)
    # The channel has a row for each end, or one for each cell between two ends.
    has_rows_at_ends = rng.random() < 0.5
    sensitivity = Fraction(rng.randrange(1, 40), rng.choice([1, 2, 3]))
    row_count = len(ends) if has_rows_at_ends else len(ends) - 1
    output_count = rng.randrange(1, 4)
    pairs = _list_ordered_pairs(row_count)
    if rng.random() < 0.7:
        pairs = [[i, j] for i, j in pairs if abs(i - j) < 3 or rng.random() < 0.8]
    rows = [draw_row(rng, output_count, full=rng.random() < 0.8) for _ in range(row_count)]
    mechanism = {
        "kind": "range",
        "ends": [*map(str, ends)],
        "sensitivity": str(sensitivity),
        "at_ends": has_rows_at_ends,
        "outputs": [str(Fraction(rng.randrange(-20, 20), 2)) for _ in range(output_count)],
        "channel": {"kind": "channel", "rows": rows, "pairs": pairs},
    }
    return draw_certificate(rng, mechanism, list_pairs(mechanism["channel"]), notions)


def _draw_nearest_outputs(rng: random.Random) -> Data:
    """Draw a mechanism on a range whose outputs are likelier if they are near the answer."""
    output_count = rng.randrange(2, 7)
    outputs = sorted(Fraction(rng.randrange(-20, 20), 2) for _ in range(output_count))
    return {
        "kind": "nearest-outputs",
        "ends": [str(outputs[0] - 1), str(outputs[-1] + rng.randrange(2))],
        "outputs": [*map(str, outputs)],
        "own": rng.randrange(1, len(outputs)),
        "odds": str(1 + Fraction(rng.randrange(60), 20)),
        "steps": rng.randrange(1, 9),
        "direct": str(rng.choice([Fraction(0), Fraction(rng.randrange(8), 20)])),
    }


def draw_quantizer(rng: random.Random) -> Data:
    """Draw a quantizer of real inputs, sometimes with continuous laws and with its bias."""
    notion = rng.choice(["pdp", "pdp", "dp", "pure", "metric"])
    piece_count = rng.randrange(1, 4)
    output_count = rng.randrange(1, 5)
    bit_counts: tuple[int, ...] = (1, 3, 3, 8, 60, 300)
    # With three outputs, few bits and a small ε, the needed δ of PDP is often largest between two
    # knots. Such cases are drawn often.
    favours_inside = notion == "pdp" and rng.random() < 0.7
    if favours_inside:
        piece_count = rng.randrange(1, 3)
        output_count = rng.randrange(3, 6)
        bit_counts = (2, 3)
    knots = sorted(Fraction(k, 4) for k in rng.sample(range(-20, 20), piece_count + 1))
    ends = [
        draw_row(rng, output_count, full=rng.random() < 0.8, widths=bit_counts)
        for _ in range(2 * piece_count)
    ]
    is_continuous = rng.random() < 0.5
    if is_continuous:
        for k in range(1, piece_count):
            ends[2 * k] = ends[2 * k - 1]
    outputs = [Fraction(rng.randrange(-20, 20), rng.choice([1, 3])) for _ in range(output_count)]
    mechanism = {
        "kind": "quantizer",
        "knots": [*map(str, knots)],
        "outputs": [*map(str, outputs)],
        "ends": ends,
    }
    if notion == "metric":
        needed_epsilon = compute_largest_slope(knots, ends)
        data = make_certificate(mechanism, notion, draw_near(rng, needed_epsilon))
    elif notion == "pdp":
        epsilons = ["0", "0.05", "1/10", "0.3"]
        if not favours_inside:
            epsilons = ["0", draw_rational(rng, 2)]
        epsilon = rng.choice(epsilons)
        audit = wb.audit(mechanism_from_dict(mechanism), checker.read_rational(epsilon, "epsilon"))
        _, needed_delta = audit.worst_result("pdp").measurement.tight_enclosure()
        data = make_certificate(
            mechanism, notion, epsilon, draw_near(rng, min(needed_delta, Fraction(1)))
        )
    else:
        laws = [*map(read_law, ends)]
        data = draw_certificate(
            rng, mechanism, [(p, q) for p in laws for q in laws], notions=[notion]
        )
    if rng.random() < 0.6:
        end_inputs = [knot for piece in pairwise(knots) for knot in piece]
        data["bias"] = _make_bias(ends, outputs, end_inputs)
    return data


def compute_largest_slope(knots: list[Fraction], ends: list[Data]) -> Fraction:
    """Return the ε that metric privacy of a quantizer needs if no probability is 0.

    It is the largest |p'| / p of a probability p that is affine between two knots.

    Args:
        knots: the knots.
        ends: rows at both ends of each interval between two knots.
    """
    slopes = [Fraction(0)]
    for k, (low, high) in enumerate(pairwise(knots)):
        left_masses = read_masses(ends[2 * k])
        right_masses = read_masses(ends[2 * k + 1])
        for left, right in zip(left_masses, right_masses, strict=True):
            if min(left, right):
                slopes.append(abs(left - right) / ((high - low) * min(left, right)))
    return max(slopes)


def draw_line_noise(rng: random.Random, *, real: bool = False) -> Data:
    """Draw noise on integers or reals, with or without clamps and tails, and sometimes its loss."""
    weight_count = rng.randrange(1, 9)
    mechanism = {
        "first": rng.randrange(-weight_count, 2),
        "period": rng.randrange(1, weight_count + 1),
        "ratio": rng.choice(["0", "0", "1/2", "0.3", "0.99", "2/7"]),
        **draw_row(rng, weight_count, widths=(1, 3, 8, 60)),
    }
    largest_shift = rng.randrange(1, 4)
    if not real and rng.random() < 0.5:
        low = rng.randrange(-2, 3)
        high = low + largest_shift + rng.randrange(0, 4)
        clamp = [low, high] if rng.random() < 0.5 else None
        mechanism |= {"kind": "integer-noise", "sensitivity": largest_shift, "clamp": clamp}
    else:
        # A point mass at 0 needs weights around 0.
        has_zero = mechanism["first"] <= 0 <= mechanism["first"] + weight_count - 1
        point_mass = rng.choice(["0", "1", "5/3"]) if has_zero else "0"
        mechanism |= {
            "kind": "real-noise",
            "sensitivity": "7/2",
            "grid": "0.25",
            "steps": largest_shift,
            "atom": point_mass,
        }
    checker_mechanism = checker.READERS[mechanism["kind"]](mechanism)
    data = draw_certificate(rng, mechanism, list_pairs(mechanism), ["pure", "dp", "pdp"])
    if not checker_mechanism.clamp and rng.random() < 0.4:
        # The checker refuses a loss if a tail contains 0.
        with suppress(checker.Refused):
            name = rng.choice(["absolute", "squared"])
            value = checker.compute_line_loss(name, None, checker_mechanism)
            data["objective"] = {"name": name, "value": str(value), "losses": None}
    return data


def draw_joint(rng: random.Random) -> Data:
    """Draw a joint release with random noise, and sometimes one shift vector that is wrong."""
    is_geometric = rng.random() < 0.3
    weight_count = 1 if is_geometric else rng.randrange(1, 5)
    first = 0 if is_geometric else rng.randrange(-weight_count, 2)
    release = rng.choice(["rows-anywhere", "row-per-bin", "pair-of-sums"])
    query = JointQuery(
        release,
        rng.choice(["add-remove", "replace"]),
        rng.randrange(1, 4),
        rng.randrange(1, 4) if release == "pair-of-sums" else None,
    )
    mechanism = {
        "kind": "joint",
        **query.to_dict(),
        "first": first,
        "period": rng.randrange(1, weight_count + 1),
        "ratio": rng.choice(["1/2", "0.3", "2/7"] if is_geometric else ["0", "0", "1/2", "0.3"]),
        **draw_row(rng, weight_count, widths=(1, 3, 8)),
    }
    data = draw_certificate(rng, mechanism, list_pairs(mechanism), ["pure", "dp", "pdp"])
    if rng.random() < 0.2:
        shifts = mechanism["shifts"]
        position = rng.randrange(len(shifts))
        if rng.random() < 0.5:
            del shifts[position]
        else:
            shifts[position] = [*shifts[position][1:], rng.randrange(-2, 3)]
    return data


def make_notion_generator(notion: str) -> Callable[[random.Random], Data]:
    """Return a function that draws noise or a channel with a claim of one notion."""

    def generate(rng: random.Random) -> Data:
        """Draw a certificate with a claim of the notion."""
        data = rng.choice([draw_noise, draw_channel, draw_line_noise])(rng)
        mechanism = data["mechanism"]
        other_data = draw_certificate_of_notion(rng, mechanism, list_pairs(mechanism), notion)
        return data | {"claim": other_data["claim"]}

    return generate


def list_pairs(mechanism: Data) -> Pairs:
    """Return the laws of each pair of neighbours of noise or a channel, as the checker reads it."""
    parsed = checker.READERS[mechanism["kind"]](mechanism)
    # The labels are what the checker compares: differences of noise, pairs of rows of a channel,
    # vectors of a joint release, pairs of inputs of clamped noise, and shifts of other line noise.
    if mechanism["kind"] == "noise":
        ((weights, total),) = parsed.laws
        pairs = []
        for difference in parsed.labels:
            shifted_weights = tuple(checker.shift_values(weights, parsed.sizes, difference))
            pairs.append(((weights, total), (shifted_weights, total)))
        return pairs
    if mechanism["kind"] in ("channel", "nearest-outputs"):
        return [(parsed.laws[i], parsed.laws[j]) for i, j in parsed.labels]
    if mechanism["kind"] == "joint":
        return [parsed.joint.laws_at(vector) for vector in parsed.labels]
    if parsed.clamp:
        low, high = parsed.clamp
        # The law of each input q, whose noise is clamped so that the output is in [low, high].
        laws = [parsed.line.clamped_law(low - q, high - q) for q in range(low, high + 1)]
        return [(laws[i], laws[j]) for i, j in parsed.labels]
    return [parsed.line.laws_at_shift(*label) for label in parsed.labels]


# Kind of a case -> function that draws a certificate.
GENERATORS: dict[str, Callable[[random.Random], Data]] = {
    "noise": draw_noise,
    "channel": draw_channel,
    "quantizer": draw_quantizer,
    "line": draw_line_noise,
    "real noise": partial(draw_line_noise, real=True),
    "range": draw_range,
    "joint": draw_joint,
    "renyi": make_notion_generator("renyi"),
    "zcdp": make_notion_generator("zcdp"),
    "gdp": make_notion_generator("gdp"),
}


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
    # The loss of one coordinate e of the noise on a cyclic group of the order s.
    compute_part = {
        "squared": lambda e, s: e * (s - e),
        "eta-squared": lambda e, s: e * e,
        "circular-squared": lambda e, s: min(e, s - e) ** 2,
    }[name]
    losses = []
    for point in _list_points(sizes):
        parts = [compute_part(e, s) for e, s in zip(point, sizes, strict=True)]
        losses.append(Fraction(sum(parts)))
    return losses


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
    """Draw the true value, a number above it by an allowed rounding, or a wrong number near it."""
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
    "curve", "tradeoff", "renyi", "zcdp", "gdp", "noise", "channel", "range", "nearest-outputs", "joint",
    "rows-anywhere", "row-per-bin", "pair-of-sums", "add-remove", "replace",
    "quantizer", "squared", "error-rate", "worst-squared", "poisson", "huber:0", "pinball:1", "huber:1", [], {}, [0],
    [[0, 1]], [1, 0], {"a": 1},
]  # fmt: skip


def list_paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value inside a JSON value. For {"a": [5]}: ("a",) and ("a", 0)."""
    paths = [path] if path else []
    entries: Any = ()
    if isinstance(value, dict):
        entries = value.items()
    elif isinstance(value, list):
        entries = enumerate(value)
    for key, entry in entries:
        paths += list_paths(entry, (*path, key))
    return paths


def get_value(value: Any, path: Sequence[Any]) -> Any:
    """Return the value at a path."""
    for key in path:
        value = value[key]
    return value


# The changes of `mutate`.
MUTATIONS = (
    "odd value",
    "value from another place",
    "other character",
    "other list",
    "other weight",
    "neighbouring number",
    "other claim or key",
)


def mutate(rng: random.Random, data: Data) -> Data:
    """Return a copy of a certificate with one random change.

    The change is an odd value, a value from another place, another character in a text, another
    list, another weight, a number plus or minus 1, a renamed key, or another claim. A drawn change
    that does not fit the value (no character of a number can change) is replaced by a change of the
    key or of the claim.
    """
    data = deepcopy(data)
    path = rng.choice(list_paths(data))
    parent = get_value(data, path[:-1])
    key = path[-1]
    old = parent[key]
    mutation = rng.choice(MUTATIONS)
    if mutation == "odd value":
        parent[key] = deepcopy(rng.choice(ODD_VALUES))
    elif mutation == "value from another place":
        parent[key] = deepcopy(get_value(data, rng.choice(list_paths(data))))
    elif mutation == "other character" and isinstance(old, str) and old:
        k = rng.randrange(len(old))
        middle = rng.choice(["", *"0123456789abcdef/.-ex", old[k] * 2])
        parent[key] = old[:k] + middle + old[k + 1 :]
    elif mutation == "other list" and isinstance(old, list) and old:
        k = rng.randrange(len(old))
        list_action = rng.choice(["remove", "repeat", "shuffle"])
        if list_action == "remove":
            old.pop(k)
        elif list_action == "repeat":
            old.insert(k, deepcopy(old[k]))
        else:
            rng.shuffle(old)
    elif mutation == "other weight":
        rows = [
            get_value(data, row_path)
            for *row_path, name in list_paths(data)
            if name == "total" and row_path and row_path[0] == "mechanism"
        ]
        if rows:
            _change_weights(rng, rng.choice(rows))
    elif mutation == "neighbouring number" and isinstance(old, int) and not isinstance(old, bool):
        parent[key] = old + rng.choice([1, -1])
    elif isinstance(parent, dict) and rng.random() < 0.2:
        parent["extra" if rng.random() < 0.5 else key] = parent.pop(key)
    else:
        _change_claim(rng, data)
    return data


def _change_weights(rng: random.Random, row: Data) -> None:
    """Change a weight of a row, and its total."""
    # An earlier change may have replaced a weight by something else.
    texts = [text for text in row["weights"] if isinstance(text, str) and text.startswith("0x")]
    weights = [int(text, 16) for text in texts] or [1]
    k = rng.randrange(len(weights))
    weights[k] = max(0, weights[k] + rng.choice([1, -1, 5, -weights[k]]))
    if rng.random() >= 0.9:
        # Files must state weights without a common factor.
        weights = [2 * weight for weight in weights]
    row |= make_row(weights)


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
    k = rng.randrange(len(content))
    length = rng.randrange(1, 20)
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

    def count_and_refuse(*args: Any) -> Any:
        unit_counts.append(original_count_work(*args))
        return checker.MAX_WORK_UNITS + 1  # The file is then refused before the proof.

    with (
        mock.patch.object(checker, "count_work", count_and_refuse),
        suppress(checker.Refused),
    ):
        checker.prove_statement(json.loads(json.dumps(data)))
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
    for limit, verdict in ((units, "proven"), (units - 1, "too large")):
        with (
            mock.patch.object(audit_work, "MAX_WORK_UNITS", limit),
            mock.patch.object(checker, "MAX_WORK_UNITS", limit),
        ):
            verdicts = decide_by_both(path)
        assert verdicts == (verdict, verdict), f"limit {limit}: {content.decode()}"


def compare_all(count: int = 10_000, seed: int = 1) -> None:
    """Compare both checkers on files of each kind, and print the numbers of verdicts."""
    with tempfile.TemporaryDirectory() as folder:
        for kind in GENERATORS:
            counts = compare_checkers(count, seed, Path(folder), kind)
            print(f"{kind}: {dict(counts)} of {count}", flush=True)


if __name__ == "__main__":
    compare_all(*map(int, sys.argv[1:3]))
