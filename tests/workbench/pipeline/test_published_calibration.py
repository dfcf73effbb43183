"""Compare every published mechanism with an independent calibration that does not use the workbench.

Each mechanism is compared at 20 or more budgets and sizes. The reference is its closed formula, if
there is one. Otherwise the best private parameter is found here by bisection: a law is private if
its hockey stick is at most δ, or for δ = 0 if its largest ratio is at most e^ε. Laws are arrays of
the logarithms of masses, because masses may be smaller than the smallest double.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

import workbench as wb
from workbench.families.channel.family import FAMILY as CHANNEL
from workbench.pipeline.published import index_by_name
from workbench.pipeline.recommendation import Query
from workbench.pipeline.registry import get_family, list_builtin_families
from workbench.pipeline.request import Aim
from workbench.privacy.claim import Claim
from workbench.questions.range_query import RangeQuery

# Names of the published mechanisms that some test compares, by family.
COMPARED: dict[str, set[str]] = {}


def compares(kind: str, *names: str) -> Any:
    """Return a decorator that runs a test for each name, and add the names to COMPARED."""
    COMPARED.setdefault(kind, set()).update(names)
    return pytest.mark.parametrize("name", names)


def objective(kind: str, name: str, request: Any) -> float:
    """Return the expected loss that the workbench computes for a published mechanism."""
    entry = index_by_name(get_family(kind).published_mechanisms())[name]
    return entry.make_reference(request).objective


def largest(is_private: Callable[[float], bool], low: float, high: float) -> float:
    """Return the largest private number in [low, high]. All smaller numbers must be private."""
    for _ in range(64):
        middle = (low + high) / 2
        if is_private(middle):
            low = middle
        else:
            high = middle
    return low


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    """Return the largest hockey stick of several pairs of laws at ε.

    p and q are logarithms of masses, of shape (outcomes,) or (pairs, outcomes).
    """
    with np.errstate(invalid="ignore"):
        privacy_losses = np.where(np.isneginf(p), -np.inf, p - q)
    shares = -np.expm1(np.minimum(epsilon - privacy_losses, 0))
    terms = np.where(privacy_losses > epsilon, np.exp(p) * shares, 0)
    return float(terms.sum(axis=-1).max())


def within(p: np.ndarray, q: np.ndarray, epsilon: float, delta: float) -> bool:
    """Return whether pairs of laws, given by logarithms, are within the budget in one order."""
    if delta:
        return hockey_stick(p, q, epsilon) <= delta
    return float(np.nanmax(np.where(np.isneginf(p), -np.inf, p - q))) <= epsilon


# Selections and clamped noise for the answers 0..n, with neighbours at most D (`reach`) apart.
# `gaps[i, j]` is the distance of answer i and output j.


def exponential(gaps: np.ndarray, rate: float) -> np.ndarray:
    """Return the logarithms of the exponential mechanism, Pr[j | i] ∝ e^(-rate gaps[i, j])."""
    return -rate * gaps - logsumexp(-rate * gaps, axis=1, keepdims=True)


NODES, SHARES = np.polynomial.legendre.leggauss(16)


def permute_and_flip(gaps: np.ndarray, rate: float) -> np.ndarray:
    """Return the logarithms of permute-and-flip, which visits the outputs in random order.

    Output j is accepted with probability w_j = e^(-rate gap). With t the share of the other outputs
    that come before j, Pr[j] = w_j ∫ Π_{l != j} (1 - w_l t) dt over [0, 1].
    """
    t = (NODES + 1) / 2
    logs = np.log1p(-np.exp(-rate * gaps)[:, :, None] * t)  # No node is 1.
    others = logs.sum(axis=1, keepdims=True) - logs
    return -rate * gaps + logsumexp(others, b=SHARES / 2, axis=2)


SELECTED = {"exponential": exponential, "permute-and-flip": permute_and_flip}
SIZES = ((1, 1), (3, 1), (4, 2), (9, 1), (24, 2))


@compares("channel", *SELECTED)
@pytest.mark.parametrize("delta", ["0", "0.01"])
def test_selections_have_the_best_private_parameter(name: str, delta: str):
    for (n, reach), epsilon in product(SIZES, ("0.05", "1", "7", "20")):
        gaps = np.abs(np.subtract.outer(np.arange(n + 1.0), np.arange(n + 1.0)))
        first, second = np.array(
            [(i, j) for i in range(n + 1) for j in range(n + 1) if 0 < abs(i - j) <= reach]
        ).T
        budget = float(epsilon), float(delta)

        def is_private(rate: float, gaps=gaps, first=first, second=second, budget=budget) -> bool:
            table = SELECTED[name](gaps, rate)
            return within(table[first], table[second], *budget)

        rate = largest(is_private, low=0.0, high=90.0)
        expected = float((np.exp(SELECTED[name](gaps, rate)) * gaps**2).sum() / (n + 1))
        question = wb.FiniteQuery(range(n + 1), max_shift=reach)
        query = Query(question=question, claim=Claim("dp", Fraction(epsilon), Fraction(delta)))
        assert objective("channel", name, query) == pytest.approx(expected, rel=1e-8), (
            n,
            reach,
            epsilon,
        )


@pytest.mark.parametrize("name", SELECTED)
def test_a_distant_answer_does_not_change_the_parameter_of_a_selection(name: str):
    answers = np.array([0.0, 1.0, 60.0])
    gaps = np.abs(np.subtract.outer(answers, answers))

    def is_private(rate: float) -> bool:
        table = SELECTED[name](gaps, rate)
        return within(table[:2], table[1::-1], epsilon=15.0, delta=0.0)

    rate = largest(is_private, low=0.0, high=90.0)
    expected = float((np.exp(SELECTED[name](gaps, rate)) * gaps**2).sum() / 3)
    query = Query(question=wb.FiniteQuery([0, 1, 60], max_shift=1), claim=Claim("dp", Fraction(15)))
    assert objective("channel", name, query) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(("n", "epsilon"), [(500, 5), (300, 1), (300, 20)])
def test_the_exponential_mechanism_is_calibrated_for_many_answers(n: int, epsilon: int):
    """The parameter a = e^-rate solves (1 + a - a² - a^n) / (a (1 - a^n)) = e^ε, and a^n is 0."""
    a = 1 / largest(
        is_private=lambda ratio: ratio + 1 - 1 / ratio <= math.exp(epsilon),
        low=1.0,
        high=math.exp(epsilon) + 1,
    )
    gaps = np.abs(np.subtract.outer(np.arange(n + 1.0), np.arange(n + 1.0)))
    expected = float((np.exp(exponential(gaps, -math.log(a))) * gaps**2).sum() / (n + 1))
    query = Query(
        question=wb.FiniteQuery(range(n + 1), max_shift=1), claim=Claim("dp", Fraction(epsilon))
    )
    assert objective("channel", "exponential", query) == pytest.approx(expected, rel=1e-8)


def geometric(rate: float, window: np.ndarray) -> np.ndarray:
    """Return the logarithms of the masses of geometric noise with the ratio e^-rate."""
    return -rate * np.abs(window) + math.log(math.tanh(rate / 2))


def gaussian(variance: float, window: np.ndarray) -> np.ndarray:
    """Return the logarithms of the masses of discrete Gaussian noise on the noise values."""
    logs = -(window**2) / (2 * variance)
    return logs - logsumexp(logs)


def is_private_on_the_line(law: np.ndarray, reach: int, budget: tuple[float, float]) -> bool:
    """Return whether a law and the law shifted by `reach` are within the budget."""
    no_mass = np.full(reach, -np.inf)
    return within(np.append(law, no_mass), np.append(no_mass, law), *budget)


def noise_law(
    name: str, reach: int, epsilon: float, delta: float, power: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the noise values and masses of the best private law of a name.

    Only the staircase depends on `power`: its inner step minimises the mean of |noise|^power.
    """
    far = math.ceil(60 * reach / epsilon) + 60 * reach
    window = np.arange(-far, far + 1.0)
    budget = epsilon, delta
    if name == "geometric":
        rate = epsilon / reach
        if delta:
            rate = largest(
                is_private=lambda r: is_private_on_the_line(geometric(r, window), reach, budget),
                low=0.0,
                high=4 * rate + 60,
            )
        return window, np.exp(geometric(rate, window))
    if name == "discrete Gaussian":

        def law(log_variance: float) -> tuple[np.ndarray, np.ndarray]:
            last = math.ceil(14 * math.exp(log_variance / 2)) + 2 * reach
            values = np.arange(-last, last + 1.0)
            return values, gaussian(math.exp(log_variance), values)

        def is_private(log_variance: float) -> bool:
            _, masses = law(log_variance)
            return all(
                is_private_on_the_line(masses, shift, budget) for shift in range(1, reach + 1)
            )

        low, high = -9.0, 13.0
        if epsilon > 3:  # A small variance may be private although a larger one is not.
            scanned = ((log - 0.04, log) for log in np.arange(low, 3, 0.04) if is_private(log))
            low, high = next(scanned, (low, high))
        values, masses = law(-largest(lambda log: is_private(-log), -high, -low))
        return values, np.exp(masses)
    if name == "truncated geometric":
        for end in range((reach + 1) // 2, far):
            kept = np.arange(-end, end + 1)
            logs = -epsilon * np.abs(kept) / reach
            masses = np.exp(logs - logsumexp(logs))
            if masses[-reach:].sum() <= delta:
                return kept, masses
    laws = []
    for inner in range(1, reach + 1):
        steps = np.ceil((np.abs(window) - inner + 1) / reach)
        masses = np.exp(-epsilon * np.maximum(steps, 0))
        laws.append(masses / masses.sum())
    return window, min(laws, key=lambda masses: float((np.abs(window) ** power * masses).sum()))


LINE = ("geometric", "truncated geometric", "discrete Gaussian", "staircase")


def line_cases(name: str) -> Iterator[tuple[int, str, str]]:
    """Return at least 20 triples (D, ε, δ) for a law."""
    deltas = {"geometric": ("0", "0.001", "1e-9", "0.2"), "staircase": ("0",)}.get(
        name, ("1e-12", "1e-6", "0.01", "0.3")
    )
    if name == "staircase":
        yield from product((2, 3, 7, 40), ("0.3", "1", "4", "15", "40"), deltas)
    else:
        yield from product((1, 3), ("0.3", "4", "31"), deltas)
        yield from product((2,), ("0.05", "1"), deltas)


@compares("noise", *LINE)
def test_noise_on_the_integers_has_the_best_private_parameter(name: str):
    kind = get_family("noise")
    for reach, epsilon, delta in line_cases(name):
        for loss, power in (("absolute", 1), ("squared", 2)):
            window, masses = noise_law(
                name, reach, epsilon=float(epsilon), delta=float(delta), power=power
            )
            expected = float((np.abs(window) ** power * masses).sum())
            notion = {} if float(delta) else {"notion": "pure"}
            budget = {"epsilon": epsilon} | ({"delta": delta} if float(delta) else {})
            request = kind.make_request(wb.IntegerNoise(reach), **budget, **notion, loss=loss)
            got = objective("noise", name, request)
            assert got == pytest.approx(expected, rel=1e-6, abs=1e-300), (
                reach,
                epsilon,
                delta,
                loss,
            )


@compares("channel", *(f"clamped {name}" for name in LINE))
def test_clamped_noise_has_the_best_private_parameter(name: str):
    inner = name.removeprefix("clamped ")
    for n, (reach, epsilon, delta) in product((4, 9), [*line_cases(inner)][:10]):
        if reach > n or float(epsilon) > 20:
            continue
        answers = np.arange(n + 1)
        window, masses = noise_law(
            inner, reach, epsilon=float(epsilon), delta=float(delta), power=2
        )
        if inner == "staircase":
            continue  # Its best inner step depends on clamping. The next test compares it.
        published_values = np.clip(answers[:, None] + window, 0, n)
        expected = float(((published_values - answers[:, None]) ** 2 @ masses).mean())
        query = Query(
            question=wb.FiniteQuery(range(n + 1), max_shift=reach),
            claim=Claim("dp", Fraction(epsilon), Fraction(delta)),
        )
        assert objective("channel", name, query) == pytest.approx(expected, rel=1e-6), (
            n,
            reach,
            epsilon,
            delta,
        )


def test_a_clamped_staircase_has_the_best_inner_step():
    for n, reach, epsilon in product((4, 9, 50), (2, 4), (0.3, 1.0, 4.0, 15.0)):
        answers, window = np.arange(n + 1), np.arange(-400.0 * reach, 400.0 * reach + 1)
        square = (np.clip(answers[:, None] + window, 0, n) - answers[:, None]) ** 2
        losses = []
        for inner in range(1, reach + 1):
            masses = np.exp(-epsilon * np.maximum(np.ceil((np.abs(window) - inner + 1) / reach), 0))
            losses.append(float((square @ (masses / masses.sum())).mean()))
        query = Query(
            question=wb.FiniteQuery(range(n + 1), max_shift=reach),
            claim=Claim("dp", Fraction(epsilon)),
        )
        assert objective("channel", "clamped staircase", query) == pytest.approx(
            min(losses), rel=1e-8
        )


@compares("channel", "randomized response")
def test_randomized_response_has_its_closed_form_error(name: str):
    for k, epsilon, delta in product((2, 5, 40, 300), ("0.01", "1", "20"), ("0", "0.1")):
        odds, share = math.exp(float(epsilon)), float(delta)
        expected = (1 - share) * (k - 1) / (odds + k - 1)
        question = wb.FiniteQuery(range(k), neighbours="all")
        query = Query(
            question=question,
            claim=Claim("dp", Fraction(epsilon), Fraction(delta)),
            aim=Aim(loss="error-rate"),
        )
        assert objective("channel", name, query) == pytest.approx(expected, rel=1e-12), (
            k,
            epsilon,
            delta,
        )


# Places of the plane.

GRIDS = (
    [(0, 0), (1, 0)],
    [(x, y) for x in range(3) for y in range(3)],
    [(x, 3 * y) for x in range(4) for y in range(2)],
)


def distances(points: list[tuple[int, int]]) -> np.ndarray:
    """Return the Euclidean distance of every two points."""
    xy = np.array(points, dtype=float)
    return np.hypot(*(xy[:, None] - xy[None]).transpose(2, 0, 1))


@compares("channel", "planar exponential")
def test_planar_exponential_has_the_largest_private_rate(name: str):
    for points, epsilon in product(GRIDS, ("0.01", "0.1", "0.3", "1", "2", "3", "4")):
        gaps, budget = distances(points), float(epsilon)

        def is_private(rate: float, gaps=gaps, budget=budget) -> bool:
            table = exponential(gaps, rate)
            excess = table[:, None] - table[None] - budget * gaps[:, :, None]
            return float(excess[gaps > 0].max()) <= 0

        rate = largest(is_private, low=0.0, high=90.0)
        expected = float((np.exp(exponential(gaps, rate)) * gaps).sum() / len(points))
        request = CHANNEL.make_request(
            wb.FiniteQuery(points, neighbours="all"),
            notion="metric",
            epsilon=epsilon,
            loss="euclidean",
        )
        assert objective("channel", name, request) == pytest.approx(expected, rel=1e-6), (
            points,
            epsilon,
        )


@compares("channel", "planar Laplace, remapped")
def test_planar_laplace_has_the_mean_loss_of_sampled_noise(name: str):
    """The reference is a mean over 200 quantiles of the radius times 180 evenly spaced angles."""
    shares = (np.arange(200) + 0.5) / 200
    grid = np.linspace(0, 25, 40_001)
    radii = np.interp(shares, 1 - (1 + grid) * np.exp(-grid), grid)
    angles = (np.arange(180) + 0.5) * 2 * math.pi / 180
    noise = np.stack(
        [np.outer(radii, np.cos(angles)).ravel(), np.outer(radii, np.sin(angles)).ravel()], axis=1
    )
    for points, epsilon in product(GRIDS, ("0.1", "0.3", "0.6", "1", "1.5", "2", "3")):
        xy, gaps = np.array(points, dtype=float), distances(points)
        law = np.zeros((len(points), len(points)))
        for i, place in enumerate(xy):
            got = place + noise / float(epsilon)
            nearest = ((got[:, None] - xy[None]) ** 2).sum(axis=2).argmin(axis=1)
            law[i] = np.bincount(nearest, minlength=len(points)) / len(noise)
        # Every published cell is remapped to the place with the smallest expected loss.
        expected = float((law.T @ gaps).min(axis=1).sum() / len(points))
        request = CHANNEL.make_request(
            wb.FiniteQuery(points, neighbours="all"),
            notion="metric",
            epsilon=epsilon,
            loss="euclidean",
        )
        assert objective("channel", name, request) == pytest.approx(expected, rel=5e-3), (
            points,
            epsilon,
        )


# Noise modulo n + 1. The baselines of this family are clamped into 0..n.


@compares("modulo", "data-independent")
def test_data_independent_noise_has_its_closed_form_error(name: str):
    for n, epsilon, delta in product((1, 6, 59, 200), ("0.01", "1", "20"), ("0", "0.1")):
        expected = (1 - float(delta)) * n / (n + math.exp(float(epsilon)))
        request = get_family("modulo").make_request(
            wb.ModuloNoise(n=n, max_shift=1),
            notion="dp",
            epsilon=epsilon,
            delta=delta,
            loss="error-rate",
        )
        assert objective("modulo", name, request) == pytest.approx(expected, rel=1e-12)


def clamped_table(law: np.ndarray, n: int) -> np.ndarray:
    """Return the logarithms of even noise that is clamped into 0..n, one row for each answer.

    law: logarithms of the masses of the noise values -far..far.
    """
    far, below = law.size // 2, np.logaddexp.accumulate(law)
    rows = []
    for q in range(n + 1):
        inside = law[far + 1 - q : far + n - q]
        rows.append([below[far - q], *inside, below[far - n + q]])
    return np.array(rows)


@compares("modulo", "geometric", "gaussian", "exponential")
def test_modulo_baselines_have_the_best_private_parameter(name: str):
    for n, epsilon, delta in product((1, 6, 12, 13), ("0.05", "1", "6", "20"), ("0", "1e-4")):
        if name == "gaussian" and (delta == "0" and n > 1):
            continue  # Its ratios at the ends exceed doubles.
        far = n + 2 if name == "exponential" else 4000
        window = np.arange(-far, far + 1.0)
        gaps = np.abs(np.subtract.outer(np.arange(n + 1.0), np.arange(n + 1.0)))

        def table(rate: float, window=window, gaps=gaps, n=n) -> np.ndarray:
            if name == "exponential":
                return exponential(gaps, rate)
            law = geometric(rate, window) if name == "geometric" else gaussian(1 / rate, window)
            return clamped_table(law, n)

        def is_private(log_rate: float, table=table, budget=(float(epsilon), float(delta))) -> bool:
            rows = table(math.exp(log_rate))
            return within(rows[1:], rows[:-1], *budget) and within(rows[:-1], rows[1:], *budget)

        low, high = (-11.0, 8.0) if name == "gaussian" else (-8.0, 6.0)
        for _ in range(36):
            middle = (low + high) / 2
            low, high = (middle, high) if is_private(middle) else (low, middle)
        expected = float((np.exp(table(math.exp(low))) * gaps**2).sum() / (n + 1))
        request = get_family("modulo").make_request(
            wb.ModuloNoise(n=n, max_shift=1),
            notion="dp",
            epsilon=epsilon,
            delta=delta,
            loss="squared",
        )
        assert objective("modulo", name, request) == pytest.approx(expected, rel=1e-6), (
            n,
            epsilon,
            delta,
        )


@pytest.mark.parametrize("name", ["geometric", "exponential"])
def test_two_answers_at_a_small_budget_are_randomized_response(name: str):
    for epsilon in ("1e-6", "0.0003", "0.003"):
        request = get_family("modulo").make_request(
            wb.ModuloNoise(n=1, max_shift=1),
            notion="dp",
            epsilon=epsilon,
            delta=0,
            loss="error-rate",
        )
        assert objective("modulo", name, request) == pytest.approx(
            1 / (1 + math.exp(float(epsilon))), rel=1e-6
        )


@compares("modulo", "truncated geometric", "staircase")
def test_modulo_baselines_of_many_answers_are_clamped_integer_noise(name: str):
    for n, epsilon, delta in product((60, 90), ("0.3", "1", "3", "9", "20"), ("1e-6", "0.01")):
        request = get_family("modulo").make_request(
            wb.ModuloNoise(n=n, shifts=(1, 2)),
            notion="dp",
            epsilon=epsilon,
            delta=delta,
            loss="squared",
        )
        window, masses = noise_law(
            name, reach=2, epsilon=float(epsilon), delta=float(delta), power=2
        )
        answers = np.arange(n + 1)
        expected = float(
            ((np.clip(answers[:, None] + window, 0, n) - answers[:, None]) ** 2 @ masses).mean()
        )
        if name == "staircase":
            assert objective("modulo", name, request) <= expected * (1 + 1e-9)
        else:
            assert objective("modulo", name, request) == pytest.approx(expected, rel=1e-6)


# Noise on the reals.

REALS = [
    *product(
        (Fraction(1), Fraction("0.25")), ("0.01", "0.5", "4", "50", "700"), ("1e-15", "1e-6", "0.1")
    )
]


def gaussian_deviation(epsilon: float, delta: float) -> float:
    """Return σ/Δ with Φ(1/2σ - εσ) - e^ε Φ(-1/2σ - εσ) = δ, from logarithms of the tails."""

    def is_private(log_sharpness: float) -> bool:
        sigma = math.exp(-log_sharpness)
        first = norm.logcdf(1 / (2 * sigma) - epsilon * sigma)
        second = epsilon + norm.logcdf(-1 / (2 * sigma) - epsilon * sigma)
        return bool(first + math.log(max(-math.expm1(second - first), 1e-300)) <= math.log(delta))

    return math.exp(-largest(is_private, low=-25.0, high=10.0))


def power_of_staircase(epsilon: float, power: int) -> float:
    """Return the smallest mean of |noise|^power of staircases over the share γ of the inner step.

    Every step has the width 1, and the density falls by e^-ε from step to step.
    """
    b = math.exp(-epsilon)

    def loss(share: float) -> float:
        top = -math.expm1(-epsilon) / (2 * (share + b * (1 - share)))  # the density at 0
        total, falls = 0.0, math.ceil(45 / epsilon) + 3
        for k in range(falls):
            middle, end = k + share, k + 1
            total += b**k * (middle ** (power + 1) - k ** (power + 1))
            total += b ** (k + 1) * (end ** (power + 1) - middle ** (power + 1))
        return 2 * top * total / (power + 1)

    shares = np.exp(np.linspace(math.log(1e-3) - epsilon / 2, 0, 4000))
    return min(map(loss, shares[shares < 1].tolist()))


@compares("noise", "Laplace", "staircase (pure)", "truncated Laplace", "Gaussian", "uniform")
def test_noise_on_the_reals_has_the_best_private_parameter(name: str):
    kind = get_family("noise")
    for (spread, epsilon, delta), (loss, power) in product(
        REALS, (("absolute", 1), ("squared", 2))
    ):
        e, d = float(epsilon), float(delta)
        if name == "Laplace":
            expected = math.factorial(power) / (e - 2 * math.log1p(-d)) ** power
        elif name == "staircase (pure)":
            if delta != "0.1" or e > 300 or e < 0.1:
                continue
            expected = power_of_staircase(e, power)
        elif name == "truncated Laplace":
            end = np.logaddexp(0, (e + math.log(-math.expm1(-e)) - math.log(2 * d))) / e
            x = np.linspace(0, float(end), 400_001)
            x = (x[1:] + x[:-1]) / 2 if e * end < 200 else np.linspace(0, 60 / e, 400_001)[1:]
            expected = float((x**power * np.exp(-e * x)).sum() / np.exp(-e * x).sum())
        elif name == "Gaussian":
            sigma = gaussian_deviation(e, d)
            expected = sigma * math.sqrt(2 / math.pi) if power == 1 else sigma**2
        else:  # Mass p at 0 and the rest uniform on [-w, w], so that a shift moves δ. p is optimal.
            atoms = np.linspace(0, d, 200_001)[:-1]
            widths = (1 - atoms) / (2 * (d - atoms))
            expected = float(((1 - atoms) * widths**power / (power + 1)).min())
        request = kind.make_request(wb.RealNoise(spread), epsilon=epsilon, delta=delta, loss=loss)
        got = objective("noise", name, request) / float(spread) ** power
        assert got == pytest.approx(expected, rel=1e-4 if name == "truncated Laplace" else 1e-5), (
            epsilon,
            delta,
            loss,
        )


@compares("noise", "rounded Gaussian")
def test_rounded_gaussian_noise_has_the_deviation_of_its_budget(name: str):
    kind = get_family("noise")
    for reach, mu in product((1, 2, 5, 9), ("0.1", "0.3", "1", "2", "5")):
        sigma, window = reach / float(mu), np.arange(-4000, 4001)
        masses = norm.cdf((window + 0.5) / sigma) - norm.cdf((window - 0.5) / sigma)
        request = kind.make_request(wb.IntegerNoise(reach), notion="gdp", mu=mu, loss="squared")
        assert objective("noise", name, request) == pytest.approx(
            float(window**2 @ masses), rel=1e-9
        )


# Quantizers, of values in [-1, 1].

EPSILONS = ("0.01", "0.1", "0.3", "0.5", "1", "1.5", "2", "3", "5", "8")
X = (np.arange(2000) + 0.5) / 1000 - 1


def steps(name: str, e: float, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the four ends of three intervals for every x, and the densities on the intervals."""
    a = math.exp(e / 2)
    if name == "piecewise":
        c = (a + 1) / (a - 1)
        left = (c + 1) / 2 * x - (c - 1) / 2
        ends, p = (
            np.stack([np.full(x.size, -c), left, left + c - 1, np.full(x.size, c)]),
            (a * a - a) / (2 * a + 2),
        )
    else:
        width = 2 / (a + 1)
        left = np.clip(x - width / 2, -1, 1 - width)
        ends, p = np.stack([np.full(x.size, -1.0), left, left + width, np.full(x.size, 1.0)]), a / 2
    return ends, np.array([p / math.exp(e), p, p / math.exp(e)])


def range_loss(name: str, e: float, power: int) -> float:
    """Return the mean of |output - x|^power for x uniform on [-1, 1]."""
    if name == "Duchi et al.":
        end = 1 / math.tanh(e / 2)
        high = (1 + X / end) / 2
        return float(
            (high * np.abs(end - X) ** power + (1 - high) * np.abs(end + X) ** power).mean()
        )
    if name == "hybrid":
        share = 1 - math.exp(-e / 2) if e > 0.61 else 0.0
        piecewise_loss = range_loss("piecewise", e, power)
        duchi_loss = range_loss("Duchi et al.", e, power)
        return share * piecewise_loss + (1 - share) * duchi_loss
    ends, density = steps(name, e, X)
    assert np.allclose((np.diff(ends, axis=0) * density[:, None]).sum(axis=0), 1)
    antiderivative = np.sign(ends - X) * np.abs(ends - X) ** (power + 1) / (power + 1)
    return float((np.diff(antiderivative, axis=0) * density[:, None]).sum(axis=0).mean())


@compares("quantizer", "Duchi et al.", "piecewise", "hybrid", "optimal piecewise")
def test_randomizers_of_a_range_have_the_integral_of_their_density(name: str):
    for epsilon, (loss, power) in product(EPSILONS, (("absolute", 1), ("squared", 2))):
        expected = range_loss(name, float(epsilon), power)
        query = Query(
            question=RangeQuery("-1..1"), claim=Claim("dp", Fraction(epsilon)), aim=Aim(loss=loss)
        )
        assert objective("quantizer", name, query) == pytest.approx(expected, rel=4e-5), (
            epsilon,
            loss,
        )


def quantizer_request(levels: int, epsilon: str, loss: str) -> Any:
    """Return the request of a quantizer with optimised outputs."""
    return get_family("quantizer").make_request(
        wb.Quantization(levels=levels), epsilon=epsilon, loss=loss
    )


@compares("quantizer", "pbm", "laplace")
def test_quantizers_have_the_errors_of_their_formulas(name: str):
    for levels, epsilon in product((2, 3, 5, 16), ("0.1", "1", "4", "10", "25")):
        e = float(epsilon)
        theta = math.tanh(e / (2 * (levels - 1))) / 2
        expected = 8 / e**2 if name == "laplace" else (1 / (4 * theta**2) - 1 / 3) / (levels - 1)
        assert objective(
            "quantizer", name, quantizer_request(levels, epsilon, "squared")
        ) == pytest.approx(expected, rel=1e-9)


def rqm_rows(bins: np.ndarray, x: np.ndarray, q: float) -> np.ndarray:
    """Return the law of the output of RQM for every x, as a sum over all subsets of inner bins.

    RQM keeps each inner bin with probability q, and both outer bins. It then publishes one of the
    two kept bins around x, without bias.
    """
    inner, rows = range(1, bins.size - 1), np.zeros((x.size, bins.size))
    for count in range(bins.size - 1):
        for chosen in combinations(inner, count):
            kept = np.array([0, *chosen, bins.size - 1])
            weight = q**count * (1 - q) ** (bins.size - 2 - count)
            left = np.clip(np.searchsorted(bins[kept], x, side="right") - 1, 0, kept.size - 2)
            low, high = kept[left], kept[left + 1]
            share = (x - bins[low]) / (bins[high] - bins[low])
            rows[np.arange(x.size), high] += weight * share
            rows[np.arange(x.size), low] += weight * (1 - share)
    return rows


@compares("quantizer", "rqm")
def test_rqm_has_the_largest_private_q(name: str):
    """The workbench searches the outer bin and q. Its loss is within 0.3 % of the best on a grid."""
    for levels, epsilon in product((2, 3, 4), ("0.1", "0.3", "1", "2", "4", "8", "16")):
        e = float(epsilon)
        least = math.inf
        for factor in [1] if levels == 2 else 1 + np.geomspace(1e-4, 1, 9):
            end = factor / math.tanh(e / 2)
            bins = np.linspace(-end, end, levels)
            near = bins[np.abs(bins) < 1]
            ends = np.unique(np.concatenate([[-1, 1], near, near - 1e-12]))

            def is_private(log: float, bins=bins, ends=ends, e=e) -> bool:
                rows = rqm_rows(bins, ends, -math.expm1(-log))
                highest, lowest = rows.max(axis=0), rows.min(axis=0)
                return bool((highest <= math.exp(e + 1e-9) * lowest).all())

            if is_private(0.0):
                q = -math.expm1(-largest(is_private, low=0.0, high=36.0))
                rows = rqm_rows(bins, X, q)
                least = min(least, float((rows * (bins - X[:, None]) ** 2).sum(axis=1).mean()))
        got = objective("quantizer", name, quantizer_request(levels, epsilon, "squared"))
        assert got <= least * (1 + 3e-3), (levels, epsilon)


# Labels 0..k-1 with the weights 1, 2, 3, 4, 1, ... Any two labels are neighbours.

COUNTS = (2, 5, 9, 21)


def label_request(k: int, epsilon: str, loss: str) -> Any:
    """Return the request of a label randomizer."""
    prior = [Fraction(1 + i % 4) for i in range(k)]
    return get_family("labels").make_request(
        wb.Labels(range(k), prior=prior), epsilon=epsilon, loss=loss
    )


def label_prior(k: int) -> np.ndarray:
    """Return the probability of every label."""
    weights = np.array([1 + i % 4 for i in range(k)], dtype=float)
    return weights / weights.sum()


@compares("labels", "laplace", "exponential", "staircase")
def test_noisy_labels_have_the_integral_of_their_density(name: str):
    """The reference sums over the cells of a fine grid of [0, D], and the mass beyond both ends."""
    for k, epsilon in product(COUNTS, ("0.1", "1", "3", "9", "20")):
        e, width, total = float(epsilon), k - 1.0, 0.0
        b = math.exp(-e)
        gamma = -1 / math.expm1(e) + (b * (1 + b) / 2) ** (1 / 3) / -math.expm1(-e)
        top = -math.expm1(-e) / (2 * width * (gamma + b * (1 - gamma)))
        scale = width / e * (2 if name == "exponential" else 1)
        for y, share in zip(range(k), label_prior(k).tolist(), strict=True):
            knots = [-gamma * width, 0.0, gamma * width]
            edges = np.unique(np.clip([*np.linspace(0, width, 20_001) - y, *knots], -y, width - y))
            far = np.abs(edges)
            within_reach = -np.expm1(-far / scale) / 2  # Pr[0 < noise < far]
            if name == "staircase":
                inner = np.minimum(far, gamma * width)
                within_reach = top * (inner + b * (far - inner))
            masses = np.diff(np.sign(edges) * within_reach)
            low, high = edges[:-1], edges[1:]
            loss = float((low**2 + low * high + high**2) @ masses) / 3
            if name == "exponential":
                loss /= masses.sum()
            else:
                loss += y**2 * (0.5 - within_reach[0]) + (width - y) ** 2 * (0.5 - within_reach[-1])
            total += share * loss
        got = objective("labels", name, label_request(k, epsilon, "squared"))
        assert got == pytest.approx(total, rel=1e-5), (k, epsilon)


@compares("labels", "RRWithPrior", "k-ary RR")
def test_randomized_labels_have_their_closed_form_error(name: str):
    for k, epsilon in product(COUNTS, ("0.01", "0.5", "2", "8", "30")):
        prior, odds = np.sort(label_prior(k))[::-1], math.exp(float(epsilon))
        sizes = range(1, k + 1) if name == "RRWithPrior" else [k]
        expected = 1 - max(odds / (odds + m - 1) * float(prior[:m].sum()) for m in sizes)
        got = objective("labels", name, label_request(k, epsilon, "error-rate"))
        assert got == pytest.approx(expected, rel=1e-9, abs=1e-15), (k, epsilon)


@compares("laplace", "Laplace", "dithering without local noise")
def test_laplace_noise_and_dithering_have_the_variance_of_laplace_noise(name: str):
    for epsilon in ("0.2", "1", "6"):
        request = wb.design("laplace", epsilon=epsilon, bits=5).request
        assert objective("laplace", name, request) == pytest.approx(2 / float(epsilon) ** 2)


@compares("laplace", "quantized Laplace")
def test_quantized_laplace_has_the_error_of_a_simulation(name: str):
    """500,000 draws: the standard error of the mean squared error is below 0.4 %."""
    request = wb.design("laplace", epsilon=1, bits=5).request
    entry = index_by_name(get_family("laplace").published_mechanisms())[name]
    width = entry.make_reference(request).extra_columns["step"]
    rng = np.random.default_rng(7)
    x = rng.uniform(-1, 1, 500_000)
    published = width * np.round((x + rng.laplace(scale=1, size=x.size)) / width)
    error = float(((published - x) ** 2).mean())
    assert objective("laplace", name, request) == pytest.approx(error, rel=0.02)


def test_every_published_mechanism_of_every_family_is_compared():
    names = {
        kind.name: {*index_by_name(kind.published_mechanisms())} for kind in list_builtin_families()
    }
    assert {name: listed for name, listed in names.items() if listed} == COMPARED
