"""Compare every published mechanism with a calibration that does not use the workbench.

Each mechanism is compared at 20 or more budgets and sizes. The reference is its closed formula, if
there is one. Otherwise the best private parameter is found here by bisection: a law is private if
its hockey stick is at most δ, or for δ = 0 if its largest ratio is at most e^ε. Laws are arrays of
the logarithms of masses, because masses may be smaller than the smallest double.

The decorator `compares` lists the mechanisms that a test compares. The last test fails if a
published mechanism of a family is not listed. In all tests n is the last of the answers 0..n,
`reach` is the largest distance D of two neighbours, and a budget is the pair (ε, δ).
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


def compares(family: str, *names: str) -> Any:
    """Return a decorator that runs a test for each name, and add the names to COMPARED."""
    COMPARED.setdefault(family, set()).update(names)
    return pytest.mark.parametrize("name", names)


def compute_objective(family: str, name: str, request: Any) -> float:
    """Return the expected loss that the workbench computes for a published mechanism."""
    mechanism = index_by_name(get_family(family).published_mechanisms())[name]
    return mechanism.make_reference(request).objective


def make_dp_query(question: Any, epsilon: Any, delta: Any = 0, *, loss: str = "squared") -> Query:
    """Return the query of a question under (ε, δ)-DP that minimises a loss."""
    claim = Claim("dp", Fraction(epsilon), Fraction(delta))
    return Query(question=question, claim=claim, aim=Aim(loss=loss))


def measure_gaps(answers: Any) -> np.ndarray:
    """Return the matrix |answers[i] - answers[j]|. Outputs are the answers as well."""
    return np.abs(np.subtract.outer(np.asarray(answers, float), np.asarray(answers, float)))


def mean_loss(log_table: np.ndarray, losses: np.ndarray) -> float:
    """Return the mean loss over all answers. Both arrays have a row for each answer."""
    return float((np.exp(log_table) * losses).sum() / len(losses))


def mean_clamped_square(noise: np.ndarray, masses: np.ndarray, n: int) -> float:
    """Return the mean squared error of noise that is clamped into 0..n, over the answers 0..n."""
    answers = np.arange(n + 1)[:, None]
    squared_errors = (np.clip(answers + noise, 0, n) - answers) ** 2
    return float((squared_errors @ masses).mean())


def find_largest_private(
    is_private: Callable[[float], bool], low: float, high: float, bisections: int = 64
) -> float:
    """Return the largest private number in [low, high]. All smaller numbers must be private."""
    for _ in range(bisections):
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


def are_within_budget(p: np.ndarray, q: np.ndarray, epsilon: float, delta: float) -> bool:
    """Return whether the laws p are (ε, δ)-private compared with q, in this order only.

    p and q are logarithms of masses, of shape (outcomes,) or (pairs, outcomes).
    """
    if delta:
        return hockey_stick(p, q, epsilon) <= delta
    return float(np.nanmax(np.where(np.isneginf(p), -np.inf, p - q))) <= epsilon


# Selections and clamped noise for the answers 0..n. `gaps[i, j]` is the distance of answer i and
# output j.


def exponential(gaps: np.ndarray, rate: float) -> np.ndarray:
    """Return the logarithms of the exponential mechanism, Pr[j | i] ∝ e^(-rate gaps[i, j])."""
    return -rate * gaps - logsumexp(-rate * gaps, axis=1, keepdims=True)


# The nodes and weights of Gauss-Legendre integration over [-1, 1].
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


def permute_and_flip(gaps: np.ndarray, rate: float) -> np.ndarray:
    """Return the logarithms of permute-and-flip, which visits the outputs in random order.

    Output j is accepted with probability w_j = e^(-rate gap). With t the share of the other outputs
    that come before j, Pr[j] = w_j ∫ Π_{l != j} (1 - w_l t) dt over [0, 1].
    """
    t = (NODES + 1) / 2
    log_factors = np.log1p(-np.exp(-rate * gaps)[:, :, None] * t)  # Finite, because all t < 1.
    log_products = log_factors.sum(axis=1, keepdims=True) - log_factors  # Of all l != j.
    return -rate * gaps + logsumexp(log_products, b=WEIGHTS / 2, axis=2)


# Functions of (gaps, rate) that return the logarithms of the laws, one row for each answer.
SELECTIONS = {"exponential": exponential, "permute-and-flip": permute_and_flip}
# Pairs (n, reach).
SIZES = ((1, 1), (3, 1), (4, 2), (9, 1), (24, 2))


def calibrate_selection(
    name: str, gaps: np.ndarray, neighbours: np.ndarray, budget: tuple[float, float]
) -> float:
    """Return the largest private rate of a selection.

    neighbours: rows (i, j) of answers whose laws must be within the budget, in this order.
    """
    first, second = neighbours.T

    def is_private(rate: float) -> bool:
        """Return whether the selection with this rate is within the budget."""
        log_table = SELECTIONS[name](gaps, rate)
        return are_within_budget(log_table[first], log_table[second], *budget)

    return find_largest_private(is_private, low=0.0, high=90.0)


@compares("channel", *SELECTIONS)
@pytest.mark.parametrize("delta", ["0", "0.01"])
def test_selections_have_the_best_private_parameter(name: str, delta: str):
    for (n, reach), epsilon in product(SIZES, ("0.05", "1", "7", "20")):
        gaps = measure_gaps(range(n + 1))
        neighbours = np.argwhere((gaps > 0) & (gaps <= reach))
        rate = calibrate_selection(name, gaps, neighbours, (float(epsilon), float(delta)))
        expected = mean_loss(SELECTIONS[name](gaps, rate), gaps**2)
        query = make_dp_query(wb.FiniteQuery(range(n + 1), max_shift=reach), epsilon, delta)
        objective = compute_objective("channel", name, query)
        assert objective == pytest.approx(expected, rel=1e-8), (n, reach, epsilon)


@pytest.mark.parametrize("name", SELECTIONS)
def test_a_distant_answer_does_not_change_the_parameter_of_a_selection(name: str):
    """The answer 60 has no neighbour, so only the laws of the answers 0 and 1 are compared."""
    gaps = measure_gaps([0, 1, 60])
    rate = calibrate_selection(name, gaps, np.array([(0, 1), (1, 0)]), budget=(15.0, 0.0))
    expected = mean_loss(SELECTIONS[name](gaps, rate), gaps**2)
    query = make_dp_query(wb.FiniteQuery([0, 1, 60], max_shift=1), epsilon=15)
    assert compute_objective("channel", name, query) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(("n", "epsilon"), [(500, 5), (300, 1), (300, 20)])
def test_the_exponential_mechanism_is_calibrated_for_many_answers(n: int, epsilon: int):
    """The parameter a = e^-rate solves (1 + a - a² - a^n) / (a (1 - a^n)) = e^ε, and a^n is 0."""
    a = 1 / find_largest_private(
        is_private=lambda ratio: ratio + 1 - 1 / ratio <= math.exp(epsilon),
        low=1.0,
        high=math.exp(epsilon) + 1,
    )
    gaps = measure_gaps(range(n + 1))
    expected = mean_loss(exponential(gaps, rate=-math.log(a)), gaps**2)
    query = make_dp_query(wb.FiniteQuery(range(n + 1), max_shift=1), epsilon)
    assert compute_objective("channel", "exponential", query) == pytest.approx(expected, rel=1e-8)


def geometric(rate: float, noise: np.ndarray) -> np.ndarray:
    """Return the logarithms of the masses of geometric noise with the ratio e^-rate."""
    return -rate * np.abs(noise) + math.log(math.tanh(rate / 2))


def gaussian(variance: float, noise: np.ndarray) -> np.ndarray:
    """Return the logarithms of the masses of discrete Gaussian noise on the noise values."""
    logs = -(noise**2) / (2 * variance)
    return logs - logsumexp(logs)


def is_private_on_the_line(law: np.ndarray, reach: int, budget: tuple[float, float]) -> bool:
    """Return whether a law and the law shifted by `reach` are within the budget."""
    no_mass = np.full(reach, -np.inf)
    return are_within_budget(np.append(law, no_mass), np.append(no_mass, law), *budget)


# The next functions return the integer noise values and the masses of the best private law of a
# name.

NoiseLaw = tuple[np.ndarray, np.ndarray]


def fit_geometric_law(reach: int, epsilon: float, delta: float) -> NoiseLaw:
    """Return geometric noise with the largest private rate."""
    noise = make_wide_noise_values(reach, epsilon)
    rate = epsilon / reach
    if delta:
        rate = find_largest_private(
            is_private=lambda r: is_private_on_the_line(
                geometric(r, noise), reach, (epsilon, delta)
            ),
            low=0.0,
            high=4 * rate + 60,
        )
    return noise, np.exp(geometric(rate, noise))


def fit_discrete_gaussian_law(reach: int, epsilon: float, delta: float) -> NoiseLaw:
    """Return discrete Gaussian noise with the smallest private variance."""

    def make_law(log_variance: float) -> NoiseLaw:
        """Return the noise values up to 14 deviations, and the logarithms of the masses."""
        last = math.ceil(14 * math.exp(log_variance / 2)) + 2 * reach
        noise = np.arange(-last, last + 1.0)
        return noise, gaussian(math.exp(log_variance), noise)

    def is_private(log_variance: float) -> bool:
        """Return whether all shifts of neighbours are within the budget."""
        _, log_masses = make_law(log_variance)
        shifts = range(1, reach + 1)
        return all(is_private_on_the_line(log_masses, d, (epsilon, delta)) for d in shifts)

    low, high = -9.0, 13.0
    if epsilon > 3:  # A small variance may be private although a larger one is not.
        scanned = ((log - 0.04, log) for log in np.arange(low, 3, 0.04) if is_private(log))
        low, high = next(scanned, (low, high))
    # The search is for a largest number, so it searches the negated logarithm of the variance.
    negated = find_largest_private(lambda log: is_private(-log), low=-high, high=-low)
    noise, log_masses = make_law(-negated)
    return noise, np.exp(log_masses)


def fit_truncated_geometric_law(reach: int, epsilon: float, delta: float) -> NoiseLaw:
    """Return geometric noise of rate ε/D on the shortest private window -end..end.

    A shift by D moves the last D masses out of the window, so their sum must be at most δ.
    """
    end = (reach + 1) // 2
    while True:
        noise = np.arange(-end, end + 1)
        logs = -epsilon * np.abs(noise) / reach
        masses = np.exp(logs - logsumexp(logs))
        if masses[-reach:].sum() <= delta:
            return noise, masses
        end += 1


def staircase_masses(inner: int, reach: int, epsilon: float, noise: np.ndarray) -> np.ndarray:
    """Return the masses of a staircase. They fall by e^-ε after |noise| < inner, then every D."""
    steps = np.ceil((np.abs(noise) - inner + 1) / reach)
    masses = np.exp(-epsilon * np.maximum(steps, 0))
    return masses / masses.sum()


def fit_staircase_law(reach: int, epsilon: float, power: int) -> NoiseLaw:
    """Return the staircase with the smallest mean of |noise|^power. It is private with δ = 0."""
    noise = make_wide_noise_values(reach, epsilon)
    laws = [staircase_masses(inner, reach, epsilon, noise) for inner in range(1, reach + 1)]
    return noise, min(laws, key=lambda masses: float((np.abs(noise) ** power * masses).sum()))


def make_wide_noise_values(reach: int, epsilon: float) -> np.ndarray:
    """Return the integers -last..last. Noise of rate ε/D has masses below e^-60 beyond them."""
    last = math.ceil(60 * reach / epsilon) + 60 * reach
    return np.arange(-last, last + 1.0)


def fit_noise_law(name: str, reach: int, epsilon: float, delta: float, power: int) -> NoiseLaw:
    """Return the noise values and masses of the best private law of a name.

    Only the staircase depends on `power`: its inner step minimises the mean of |noise|^power.
    """
    if name == "geometric":
        return fit_geometric_law(reach, epsilon, delta)
    if name == "discrete Gaussian":
        return fit_discrete_gaussian_law(reach, epsilon, delta)
    if name == "truncated geometric":
        return fit_truncated_geometric_law(reach, epsilon, delta)
    return fit_staircase_law(reach, epsilon, power)


# Names of the noise on all integers.
INTEGER_NOISES = ("geometric", "truncated geometric", "discrete Gaussian", "staircase")


def list_noise_cases(name: str) -> Iterator[tuple[int, str, str]]:
    """Return at least 20 triples (D, ε, δ) for a law."""
    if name == "staircase":
        yield from product((2, 3, 7, 40), ("0.3", "1", "4", "15", "40"), ("0",))
        return
    deltas = ("1e-12", "1e-6", "0.01", "0.3")
    if name == "geometric":
        deltas = ("0", "0.001", "1e-9", "0.2")
    yield from product((1, 3), ("0.3", "4", "31"), deltas)
    yield from product((2,), ("0.05", "1"), deltas)


@compares("noise", *INTEGER_NOISES)
def test_noise_on_the_integers_has_the_best_private_parameter(name: str):
    family = get_family("noise")
    for reach, epsilon, delta in list_noise_cases(name):
        for loss, power in (("absolute", 1), ("squared", 2)):
            noise, masses = fit_noise_law(name, reach, float(epsilon), float(delta), power)
            expected = float((np.abs(noise) ** power * masses).sum())
            privacy = {"delta": delta} if float(delta) else {"notion": "pure"}
            request = family.make_request(
                wb.IntegerNoise(reach), epsilon=epsilon, loss=loss, **privacy
            )
            objective = compute_objective("noise", name, request)
            case = (reach, epsilon, delta, loss)
            assert objective == pytest.approx(expected, rel=1e-6, abs=1e-300), case


@compares(
    "channel", "clamped geometric", "clamped truncated geometric", "clamped discrete Gaussian"
)
def test_clamped_noise_has_the_best_private_parameter(name: str):
    noise_name = name.removeprefix("clamped ")
    for n, (reach, epsilon, delta) in product((4, 9), [*list_noise_cases(noise_name)][:10]):
        if reach > n or float(epsilon) > 20:
            continue
        noise, masses = fit_noise_law(noise_name, reach, float(epsilon), float(delta), power=2)
        expected = mean_clamped_square(noise, masses, n)
        query = make_dp_query(wb.FiniteQuery(range(n + 1), max_shift=reach), epsilon, delta)
        objective = compute_objective("channel", name, query)
        assert objective == pytest.approx(expected, rel=1e-6), (n, reach, epsilon, delta)


@compares("channel", "clamped staircase")
def test_a_clamped_staircase_has_the_best_inner_step(name: str):
    """The best inner step depends on clamping, so it is found by the loss of the clamped noise."""
    for n, reach, epsilon in product((4, 9, 50), (2, 4), (0.3, 1.0, 4.0, 15.0)):
        noise = np.arange(-400.0 * reach, 400.0 * reach + 1)
        losses = [
            mean_clamped_square(noise, staircase_masses(inner, reach, epsilon, noise), n)
            for inner in range(1, reach + 1)
        ]
        query = make_dp_query(wb.FiniteQuery(range(n + 1), max_shift=reach), epsilon)
        objective = compute_objective("channel", name, query)
        assert objective == pytest.approx(min(losses), rel=1e-8), (n, reach, epsilon)


@compares("channel", "randomized response")
def test_randomized_response_has_its_closed_form_error(name: str):
    for k, epsilon, delta in product((2, 5, 40, 300), ("0.01", "1", "20"), ("0", "0.1")):
        expected = (1 - float(delta)) * (k - 1) / (math.exp(float(epsilon)) + k - 1)
        question = wb.FiniteQuery(range(k), neighbours="all")
        query = make_dp_query(question, epsilon, delta, loss="error-rate")
        objective = compute_objective("channel", name, query)
        assert objective == pytest.approx(expected, rel=1e-12), (k, epsilon, delta)


# Places of the plane, and the planar mechanisms under metric privacy.

GRIDS = (
    [(0, 0), (1, 0)],
    [(x, y) for x in range(3) for y in range(3)],
    [(x, 3 * y) for x in range(4) for y in range(2)],
)


def measure_distances(points: list[tuple[int, int]]) -> np.ndarray:
    """Return the Euclidean distance of every two points, shape (points, points)."""
    x, y = np.array(points, dtype=float).T
    return np.hypot(np.subtract.outer(x, x), np.subtract.outer(y, y))


def make_metric_request(points: list[tuple[int, int]], epsilon: str) -> Any:
    """Return the request of places with the Euclidean distance as metric and loss."""
    question = wb.FiniteQuery(points, neighbours="all")
    return CHANNEL.make_request(question, notion="metric", epsilon=epsilon, loss="euclidean")


def calibrate_planar_exponential(gaps: np.ndarray, epsilon: float) -> float:
    """Return the largest rate with ln p_i(j) - ln p_k(j) <= ε gaps[i, k] for all i, j, k."""

    def is_private(rate: float) -> bool:
        """Return whether no log-ratio exceeds ε times the distance."""
        log_table = exponential(gaps, rate)
        excess = log_table[:, None] - log_table[None] - epsilon * gaps[:, :, None]
        return float(excess[gaps > 0].max()) <= 0

    return find_largest_private(is_private, low=0.0, high=90.0)


@compares("channel", "planar exponential")
def test_planar_exponential_has_the_largest_private_rate(name: str):
    for points, epsilon in product(GRIDS, ("0.01", "0.1", "0.3", "1", "2", "3", "4")):
        gaps = measure_distances(points)
        rate = calibrate_planar_exponential(gaps, float(epsilon))
        expected = mean_loss(exponential(gaps, rate), gaps)
        objective = compute_objective("channel", name, make_metric_request(points, epsilon))
        assert objective == pytest.approx(expected, rel=1e-6), (points, epsilon)


@compares("channel", "planar Laplace, remapped")
def test_planar_laplace_has_the_mean_loss_of_sampled_noise(name: str):
    """The reference is a mean over 200 quantiles of the radius times 180 evenly spaced angles."""
    shares = (np.arange(200) + 0.5) / 200
    # The radius at ε = 1 has the distribution function 1 - (1 + r) e^-r, which is inverted here.
    grid = np.linspace(0, 25, 40_001)
    radii = np.interp(shares, 1 - (1 + grid) * np.exp(-grid), grid)
    angles = (np.arange(180) + 0.5) * 2 * math.pi / 180
    noise_x = np.outer(radii, np.cos(angles)).ravel()
    noise_y = np.outer(radii, np.sin(angles)).ravel()
    noise = np.stack([noise_x, noise_y], axis=1)
    for points, epsilon in product(GRIDS, ("0.1", "0.3", "0.6", "1", "1.5", "2", "3")):
        xy, gaps = np.array(points, dtype=float), measure_distances(points)
        law = np.zeros((len(points), len(points)))
        for i, place in enumerate(xy):
            noisy_places = place + noise / float(epsilon)
            square_distances = ((noisy_places[:, None] - xy[None]) ** 2).sum(axis=2)
            nearest = square_distances.argmin(axis=1)
            law[i] = np.bincount(nearest, minlength=len(points)) / len(noise)
        # Every published cell is remapped to the place with the smallest expected loss.
        expected = float((law.T @ gaps).min(axis=1).sum() / len(points))
        objective = compute_objective("channel", name, make_metric_request(points, epsilon))
        assert objective == pytest.approx(expected, rel=5e-3), (points, epsilon)


# Noise modulo n + 1. The baselines of this family are clamped into 0..n.


def make_modulo_request(question: Any, epsilon: str, delta: str, loss: str) -> Any:
    """Return the request of noise modulo n + 1 under (ε, δ)-DP."""
    return get_family("modulo").make_request(
        question, notion="dp", epsilon=epsilon, delta=delta, loss=loss
    )


@compares("modulo", "data-independent")
def test_data_independent_noise_has_its_closed_form_error(name: str):
    for n, epsilon, delta in product((1, 6, 59, 200), ("0.01", "1", "20"), ("0", "0.1")):
        expected = (1 - float(delta)) * n / (n + math.exp(float(epsilon)))
        question = wb.ModuloNoise(n=n, max_shift=1)
        request = make_modulo_request(question, epsilon, delta, loss="error-rate")
        assert compute_objective("modulo", name, request) == pytest.approx(expected, rel=1e-12)


def clamped_table(law: np.ndarray, n: int) -> np.ndarray:
    """Return the logarithms of even noise that is clamped into 0..n, one row for each answer.

    law: logarithms of the masses of the noise values -last..last.
    """
    last = law.size // 2
    tails = np.logaddexp.accumulate(law)  # The noise is even, so these are both tails.
    rows = []
    for answer in range(n + 1):
        inside = law[last + 1 - answer : last + n - answer]
        rows.append([tails[last - answer], *inside, tails[last - n + answer]])
    return np.array(rows)


def make_modulo_table(name: str, rate: float, n: int) -> np.ndarray:
    """Return the logarithms of a baseline with one row for each answer. Small rates are private.

    The rate of "gaussian" is the reciprocal of its variance.
    """
    if name == "exponential":
        return exponential(measure_gaps(range(n + 1)), rate)
    noise = np.arange(-4000, 4001.0)
    law = geometric(rate, noise) if name == "geometric" else gaussian(1 / rate, noise)
    return clamped_table(law, n)


def calibrate_modulo_baseline(name: str, n: int, budget: tuple[float, float]) -> float:
    """Return the largest private rate of a baseline whose neighbours are consecutive answers."""

    def is_private(log_rate: float) -> bool:
        """Return whether consecutive rows are within the budget in both orders."""
        rows = make_modulo_table(name, math.exp(log_rate), n)
        upwards = are_within_budget(rows[1:], rows[:-1], *budget)
        return upwards and are_within_budget(rows[:-1], rows[1:], *budget)

    low, high = (-11.0, 8.0) if name == "gaussian" else (-8.0, 6.0)
    return math.exp(find_largest_private(is_private, low, high, bisections=36))


@compares("modulo", "geometric", "gaussian", "exponential")
def test_modulo_baselines_have_the_best_private_parameter(name: str):
    for n, epsilon, delta in product((1, 6, 12, 13), ("0.05", "1", "6", "20"), ("0", "1e-4")):
        if name == "gaussian" and (delta == "0" and n > 1):
            continue  # Its ratios at the ends exceed doubles.
        rate = calibrate_modulo_baseline(name, n, (float(epsilon), float(delta)))
        table = make_modulo_table(name, rate, n)
        expected = mean_loss(table, measure_gaps(range(n + 1)) ** 2)
        question = wb.ModuloNoise(n=n, max_shift=1)
        request = make_modulo_request(question, epsilon, delta, loss="squared")
        objective = compute_objective("modulo", name, request)
        assert objective == pytest.approx(expected, rel=1e-6), (n, epsilon, delta)


@pytest.mark.parametrize("name", ["geometric", "exponential"])
def test_two_answers_at_a_small_budget_are_randomized_response(name: str):
    for epsilon in ("1e-6", "0.0003", "0.003"):
        expected = 1 / (1 + math.exp(float(epsilon)))
        question = wb.ModuloNoise(n=1, max_shift=1)
        request = make_modulo_request(question, epsilon, delta="0", loss="error-rate")
        assert compute_objective("modulo", name, request) == pytest.approx(expected, rel=1e-6)


def list_wide_modulo_cases(name: str) -> Iterator[tuple[Any, float]]:
    """Return requests of a baseline for many answers, and its loss as clamped integer noise."""
    for n, epsilon, delta in product((60, 90), ("0.3", "1", "3", "9", "20"), ("1e-6", "0.01")):
        question = wb.ModuloNoise(n=n, shifts=(1, 2))
        noise, masses = fit_noise_law(name, 2, float(epsilon), float(delta), power=2)
        request = make_modulo_request(question, epsilon, delta, loss="squared")
        yield request, mean_clamped_square(noise, masses, n)


@compares("modulo", "truncated geometric")
def test_truncated_geometric_baselines_are_clamped_integer_noise(name: str):
    for request, expected in list_wide_modulo_cases(name):
        assert compute_objective("modulo", name, request) == pytest.approx(expected, rel=1e-6)


@compares("modulo", "staircase")
def test_a_staircase_baseline_is_no_worse_than_the_best_unclamped_staircase(name: str):
    for request, expected in list_wide_modulo_cases(name):
        assert compute_objective("modulo", name, request) <= expected * (1 + 1e-9)


# Noise on the reals.

# Triples (sensitivity, ε, δ).
REAL_CASES = [
    *product(
        (Fraction(1), Fraction("0.25")), ("0.01", "0.5", "4", "50", "700"), ("1e-15", "1e-6", "0.1")
    )
]


def gaussian_deviation(epsilon: float, delta: float) -> float:
    """Return s = σ/Δ with Φ(1/(2s) - εs) - e^ε Φ(-1/(2s) - εs) = δ, from logarithms of tails."""

    def is_private(log_sharpness: float) -> bool:
        """Return whether the noise with σ = e^-log_sharpness (for Δ = 1) is (ε, δ)-private."""
        sigma = math.exp(-log_sharpness)
        first = norm.logcdf(1 / (2 * sigma) - epsilon * sigma)
        second = epsilon + norm.logcdf(-1 / (2 * sigma) - epsilon * sigma)
        return bool(first + math.log(max(-math.expm1(second - first), 1e-300)) <= math.log(delta))

    return math.exp(-find_largest_private(is_private, low=-25.0, high=10.0))


def best_staircase_loss(epsilon: float, power: int) -> float:
    """Return the smallest mean of |noise|^power of staircases over the share γ of the inner step.

    Every step has the width 1, and the density falls by e^-ε from step to step.
    """
    b = math.exp(-epsilon)

    def compute_loss(share: float) -> float:
        """Return the mean of |noise|^power. The share of the inner step is `share`."""
        top = -math.expm1(-epsilon) / (2 * (share + b * (1 - share)))  # the density at 0
        step_count = math.ceil(45 / epsilon) + 3  # The density has then fallen by e^-45.
        total = 0.0
        for k in range(step_count):
            middle = k + share
            end = k + 1
            total += b**k * (middle ** (power + 1) - k ** (power + 1))
            total += b ** (k + 1) * (end ** (power + 1) - middle ** (power + 1))
        return 2 * top * total / (power + 1)

    shares = np.exp(np.linspace(math.log(1e-3) - epsilon / 2, 0, 4000))
    return min(map(compute_loss, shares[shares < 1].tolist()))


def truncated_laplace_loss(epsilon: float, delta: float, power: int) -> float:
    """Return the mean of |noise|^power for Laplace noise of rate ε truncated to [-end, end].

    The end is ln(1 + (e^ε - 1) / (2 δ)) / ε. The integral is a sum over a grid of 400,000 points.
    """
    end = float(np.logaddexp(0, epsilon + math.log(-math.expm1(-epsilon)) - math.log(2 * delta)))
    end /= epsilon
    if epsilon * end < 200:
        edges = np.linspace(0, end, 400_001)
        x = (edges[1:] + edges[:-1]) / 2
    else:  # The density falls by e^-60 long before the end.
        x = np.linspace(0, 60 / epsilon, 400_001)[1:]
    return float((x**power * np.exp(-epsilon * x)).sum() / np.exp(-epsilon * x).sum())


def best_uniform_loss(delta: float, power: int) -> float:
    """Return the smallest mean of |noise|^power of noise with an atom at 0 that is else uniform.

    The atom has the mass p < δ, and the rest is uniform on [-w, w]. A shift by 1 moves the mass δ,
    so w = (1 - p) / (2 (δ - p)). The best p is found on a grid.
    """
    atoms = np.linspace(0, delta, 200_001)[:-1]
    widths = (1 - atoms) / (2 * (delta - atoms))
    return float(((1 - atoms) * widths**power / (power + 1)).min())


def reference_real_loss(name: str, epsilon: float, delta: float, power: int) -> float:
    """Return the mean of |noise|^power of published noise on the reals for the sensitivity 1."""
    if name == "Laplace":
        return math.factorial(power) / (epsilon - 2 * math.log1p(-delta)) ** power
    if name == "staircase (pure)":
        return best_staircase_loss(epsilon, power)
    if name == "truncated Laplace":
        return truncated_laplace_loss(epsilon, delta, power)
    if name == "Gaussian":
        sigma = gaussian_deviation(epsilon, delta)
        return sigma * math.sqrt(2 / math.pi) if power == 1 else sigma**2
    return best_uniform_loss(delta, power)


def list_real_cases(name: str) -> list[tuple[Fraction, str, str]]:
    """Return the cases of a kind of noise.

    The staircase does not depend on δ. At ε = 0.01 its sums are long, and at ε = 700 the grid of
    its shares is too coarse.
    """
    if name == "staircase (pure)":
        return [case for case in REAL_CASES if case[1] in ("0.5", "4", "50") and case[2] == "0.1"]
    return REAL_CASES


@compares("noise", "Laplace", "staircase (pure)", "truncated Laplace", "Gaussian", "uniform")
def test_noise_on_the_reals_has_the_best_private_parameter(name: str):
    family = get_family("noise")
    tolerance = 1e-4 if name == "truncated Laplace" else 1e-5
    for sensitivity, epsilon, delta in list_real_cases(name):
        for loss, power in (("absolute", 1), ("squared", 2)):
            expected = reference_real_loss(name, float(epsilon), float(delta), power)
            request = family.make_request(
                wb.RealNoise(sensitivity), epsilon=epsilon, delta=delta, loss=loss
            )
            objective = compute_objective("noise", name, request) / float(sensitivity) ** power
            assert objective == pytest.approx(expected, rel=tolerance), (epsilon, delta, loss)


@compares("noise", "rounded Gaussian")
def test_rounded_gaussian_noise_has_the_deviation_of_its_budget(name: str):
    family = get_family("noise")
    for reach, mu in product((1, 2, 5, 9), ("0.1", "0.3", "1", "2", "5")):
        sigma, noise = reach / float(mu), np.arange(-4000, 4001)
        masses = norm.cdf((noise + 0.5) / sigma) - norm.cdf((noise - 0.5) / sigma)
        expected = float(noise**2 @ masses)
        request = family.make_request(wb.IntegerNoise(reach), notion="gdp", mu=mu, loss="squared")
        assert compute_objective("noise", name, request) == pytest.approx(expected, rel=1e-9)


# Quantizers, of values in [-1, 1].

RANGE_EPSILONS = ("0.01", "0.1", "0.3", "0.5", "1", "1.5", "2", "3", "5", "8")
# The midpoints of 2000 equal parts of [-1, 1].
X = (np.arange(2000) + 0.5) / 1000 - 1


def piecewise_density(name: str, e: float, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the three intervals of constant density of a piecewise mechanism at ε = e.

    Returns the four ends of the intervals, shape (4, x.size), and the densities on the intervals,
    shape (3,). The density on the middle interval is e^ε times the density on the others.
    """
    a = math.exp(e / 2)
    if name == "piecewise":
        c = (a + 1) / (a - 1)
        left = (c + 1) / 2 * x - (c - 1) / 2
        ends = np.stack([np.full(x.size, -c), left, left + c - 1, np.full(x.size, c)])
        p = (a * a - a) / (2 * a + 2)
    else:
        width = 2 / (a + 1)
        left = np.clip(x - width / 2, -1, 1 - width)
        ends = np.stack([np.full(x.size, -1.0), left, left + width, np.full(x.size, 1.0)])
        p = a / 2
    return ends, np.array([p / math.exp(e), p, p / math.exp(e)])


def range_loss(name: str, e: float, power: int) -> float:
    """Return the mean of |output - x|^power for x uniform on [-1, 1]."""
    if name == "Duchi et al.":
        end = 1 / math.tanh(e / 2)
        upper_probability = (1 + X / end) / 2
        upper_losses = upper_probability * np.abs(end - X) ** power
        lower_losses = (1 - upper_probability) * np.abs(end + X) ** power
        return float((upper_losses + lower_losses).mean())
    if name == "hybrid":
        share = 1 - math.exp(-e / 2) if e > 0.61 else 0.0
        piecewise_loss = range_loss("piecewise", e, power)
        duchi_loss = range_loss("Duchi et al.", e, power)
        return share * piecewise_loss + (1 - share) * duchi_loss
    ends, density = piecewise_density(name, e, X)
    # The densities of every x must integrate to 1.
    assert np.allclose((np.diff(ends, axis=0) * density[:, None]).sum(axis=0), 1)
    antiderivative = np.sign(ends - X) * np.abs(ends - X) ** (power + 1) / (power + 1)
    return float((np.diff(antiderivative, axis=0) * density[:, None]).sum(axis=0).mean())


@compares("quantizer", "Duchi et al.", "piecewise", "hybrid", "optimal piecewise")
def test_randomizers_of_a_range_have_the_integral_of_their_density(name: str):
    for epsilon, (loss, power) in product(RANGE_EPSILONS, (("absolute", 1), ("squared", 2))):
        expected = range_loss(name, float(epsilon), power)
        query = make_dp_query(RangeQuery("-1..1"), epsilon, loss=loss)
        objective = compute_objective("quantizer", name, query)
        assert objective == pytest.approx(expected, rel=4e-5), (epsilon, loss)


def make_quantizer_request(levels: int, epsilon: str, loss: str) -> Any:
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
        request = make_quantizer_request(levels, epsilon, "squared")
        assert compute_objective("quantizer", name, request) == pytest.approx(expected, rel=1e-9)


def rqm_rows(bins: np.ndarray, x: np.ndarray, q: float) -> np.ndarray:
    """Return the law of the output of RQM for every x, as a sum over all subsets of inner bins.

    RQM keeps each inner bin with probability q, and both outer bins. It then publishes one of the
    two kept bins around x, without bias.
    """
    last_bin = bins.size - 1
    inner_bins = range(1, last_bin)
    rows = np.zeros((x.size, bins.size))
    for count in range(last_bin):
        for kept_inner_bins in combinations(inner_bins, count):
            kept_bins = np.array([0, *kept_inner_bins, last_bin])
            weight = q**count * (1 - q) ** (len(inner_bins) - count)
            left = np.searchsorted(bins[kept_bins], x, side="right") - 1
            left = np.clip(left, 0, kept_bins.size - 2)
            low, high = kept_bins[left], kept_bins[left + 1]
            share = (x - bins[low]) / (bins[high] - bins[low])
            rows[np.arange(x.size), high] += weight * share
            rows[np.arange(x.size), low] += weight * (1 - share)
    return rows


def calibrate_rqm(bins: np.ndarray, epsilon: float) -> float | None:
    """Return the largest q at which RQM is ε-private. None if it is not private at q = 0.

    The law is affine in x between bins, so the ends of these pieces are compared.
    """
    inner_bins = bins[np.abs(bins) < 1]
    ends = np.unique(np.concatenate([[-1, 1], inner_bins, inner_bins - 1e-12]))

    def is_private(log: float) -> bool:
        """Return whether RQM with q = 1 - e^-log is ε-private."""
        rows = rqm_rows(bins, ends, -math.expm1(-log))
        highest, lowest = rows.max(axis=0), rows.min(axis=0)
        return bool((highest <= math.exp(epsilon + 1e-9) * lowest).all())

    if not is_private(0.0):
        return None
    return -math.expm1(-find_largest_private(is_private, low=0.0, high=36.0))


@compares("quantizer", "rqm")
def test_rqm_has_the_largest_private_q(name: str):
    """The workbench searches the outer bin and q. Its loss is within 0.3 % of the best on a grid.

    The grid has nine outer bins. q is found by bisection.
    """
    for levels, epsilon in product((2, 3, 4), ("0.1", "0.3", "1", "2", "4", "8", "16")):
        # With two levels there is no q, and the smallest private outer bin is best.
        factors = [1] if levels == 2 else 1 + np.geomspace(1e-4, 1, 9)
        smallest_loss = math.inf
        for factor in factors:
            end = factor / math.tanh(float(epsilon) / 2)
            bins = np.linspace(-end, end, levels)
            q = calibrate_rqm(bins, float(epsilon))
            if q is not None:
                squared_errors = (bins - X[:, None]) ** 2
                loss = float((rqm_rows(bins, X, q) * squared_errors).sum(axis=1).mean())
                smallest_loss = min(smallest_loss, loss)
        request = make_quantizer_request(levels, epsilon, "squared")
        objective = compute_objective("quantizer", name, request)
        assert objective <= smallest_loss * (1 + 3e-3), (levels, epsilon)


# Labels 0..k-1 with the weights 1, 2, 3, 4, 1, ... Any two labels are neighbours.

LABEL_COUNTS = (2, 5, 9, 21)


def make_label_request(k: int, epsilon: str, loss: str) -> Any:
    """Return the request of a label randomizer."""
    prior = [Fraction(1 + i % 4) for i in range(k)]
    return get_family("labels").make_request(
        wb.Labels(range(k), prior=prior), epsilon=epsilon, loss=loss
    )


def label_prior(k: int) -> np.ndarray:
    """Return the probability of every label."""
    weights = np.array([1 + i % 4 for i in range(k)], dtype=float)
    return weights / weights.sum()


def label_noise_integral(name: str, distances: np.ndarray, width: float, e: float) -> np.ndarray:
    """Return Pr[0 < noise < distance] at every distance, for the sensitivity `width` at ε = e."""
    if name != "staircase":
        # The density of the exponential mechanism is normalised later, so it has twice the scale.
        scale = width / e * (2 if name == "exponential" else 1)
        return -np.expm1(-distances / scale) / 2
    # The density is `top` up to γ D, and falls by b = e^-ε there. Distances are at most D.
    b = math.exp(-e)
    gamma = best_step_share(e)
    top = -math.expm1(-e) / (2 * width * (gamma + b * (1 - gamma)))
    inner = np.minimum(distances, gamma * width)
    return top * (inner + b * (distances - inner))


def best_step_share(e: float) -> float:
    """Return the share γ of the inner step of the staircase with the smallest mean square."""
    b = math.exp(-e)
    return -1 / math.expm1(e) + (b * (1 + b) / 2) ** (1 / 3) / -math.expm1(-e)


def integrate_label_loss(name: str, k: int, e: float) -> float:
    """Return the mean squared error of noisy labels that are clamped into [0, k - 1], at ε = e.

    It is a sum over the cells of a fine grid, and the mass beyond both ends. The exponential
    mechanism has no mass beyond the ends.
    """
    width = k - 1.0
    knots = np.array([-1, 0, 1]) * best_step_share(e) * width
    total = 0.0
    for label, share in enumerate(label_prior(k).tolist()):
        # The noise values at the edges of the cells. The outer edges lead to the ends of the range.
        grid = np.linspace(0, width, 20_001) - label
        edges = np.unique(np.clip([*grid, *knots], -label, width - label))
        integral = label_noise_integral(name, np.abs(edges), width, e)
        masses = np.diff(np.sign(edges) * integral)
        low, high = edges[:-1], edges[1:]
        loss = float((low**2 + low * high + high**2) @ masses) / 3
        if name == "exponential":
            loss /= masses.sum()
        else:
            loss += label**2 * (0.5 - integral[0]) + (width - label) ** 2 * (0.5 - integral[-1])
        total += share * loss
    return total


@compares("labels", "laplace", "exponential", "staircase")
def test_noisy_labels_have_the_integral_of_their_density(name: str):
    for k, epsilon in product(LABEL_COUNTS, ("0.1", "1", "3", "9", "20")):
        expected = integrate_label_loss(name, k, float(epsilon))
        objective = compute_objective("labels", name, make_label_request(k, epsilon, "squared"))
        assert objective == pytest.approx(expected, rel=1e-5), (k, epsilon)


@compares("labels", "RRWithPrior", "k-ary RR")
def test_randomized_labels_have_their_closed_form_error(name: str):
    for k, epsilon in product(LABEL_COUNTS, ("0.01", "0.5", "2", "8", "30")):
        prior, odds = np.sort(label_prior(k))[::-1], math.exp(float(epsilon))
        sizes = range(1, k + 1) if name == "RRWithPrior" else [k]
        expected = 1 - max(odds / (odds + m - 1) * float(prior[:m].sum()) for m in sizes)
        objective = compute_objective("labels", name, make_label_request(k, epsilon, "error-rate"))
        assert objective == pytest.approx(expected, rel=1e-9, abs=1e-15), (k, epsilon)


@compares("laplace", "Laplace", "dithering without local noise")
def test_laplace_noise_and_dithering_have_the_variance_of_laplace_noise(name: str):
    for epsilon in ("0.2", "1", "6"):
        request = wb.design("laplace", epsilon=epsilon, bits=5).request
        assert compute_objective("laplace", name, request) == pytest.approx(2 / float(epsilon) ** 2)


@compares("laplace", "quantized Laplace")
def test_quantized_laplace_has_the_error_of_a_simulation(name: str):
    """500,000 draws: the standard error of the mean squared error is below 0.4 %."""
    request = wb.design("laplace", epsilon=1, bits=5).request
    mechanism = index_by_name(get_family("laplace").published_mechanisms())[name]
    width = mechanism.make_reference(request).extra_columns["step"]
    rng = np.random.default_rng(7)
    x = rng.uniform(low=-1, high=1, size=500_000)
    published = width * np.round((x + rng.laplace(scale=1, size=x.size)) / width)
    error = float(((published - x) ** 2).mean())
    assert compute_objective("laplace", name, request) == pytest.approx(error, rel=0.02)


def test_every_published_mechanism_of_every_family_is_compared():
    names = {
        family.name: {*index_by_name(family.published_mechanisms())}
        for family in list_builtin_families()
    }
    assert {name: listed for name, listed in names.items() if listed} == COMPARED
