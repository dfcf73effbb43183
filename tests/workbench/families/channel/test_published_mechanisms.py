"""Test that published mechanisms have their best private parameter, and user-defined baselines.

`ENTRIES` has the published mechanisms by name. An entry that does not apply to a query
gives a reason.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.errors import NotApplicable
from workbench.exact.integer_law import IntegerLaw
from workbench.families.channel.family import FAMILY as CHANNEL
from workbench.families.channel.published import PUBLISHED
from workbench.pipeline.integer_laws import (
    LAW_NAMES,
    compute_clamped_rows,
    compute_masses,
    fit_laws,
)
from workbench.pipeline.published import index_by_name, published_for
from workbench.pipeline.recommendation import Query
from workbench.pipeline.request import Aim
from workbench.privacy.claim import Claim

ENTRIES = index_by_name(PUBLISHED)
# The laws of noise on an interval -A..A.
BOUNDED_LAW_NAMES = sorted({*LAW_NAMES} - {"geometric", "discrete Gaussian", "staircase"})
PLANAR = {"planar Laplace, remapped", "planar exponential"}


def make_query(answers: str, epsilon: str, delta: str = "0", **options) -> Query:
    """Make a query at a budget.

    options: notion (default dp), loss (default squared), and the options of a FiniteQuery.
    """
    claim = Claim(options.pop("notion", "dp"), Fraction(epsilon), Fraction(delta))
    aim = Aim(loss=options.pop("loss", "squared"))
    return Query(question=wb.FiniteQuery(answers, **options), claim=claim, aim=aim)


def compute_hockey_stick(masses: np.ndarray, epsilon: float, reach: int) -> float:
    """Compute the largest hockey stick of a law and the law shifted by 1 to `reach` steps.

    masses: the law on a window that contains nearly all of its mass.
    """
    hockey_sticks = []
    for shift in range(1, reach + 1):
        p = np.append(masses, np.zeros(shift))
        q = np.append(np.zeros(shift), masses)
        hockey_sticks.append(float(np.maximum(p - math.exp(epsilon) * q, 0).sum()))
    return max(hockey_sticks)


# Published laws of noise that are fitted to ε = 1/2 and δ = 1/100. `reach` is the largest difference
# of neighbouring answers. Nearly all of the mass lies on -400..400.


def fit(name: str, reach: int) -> Any:
    """Fit the laws of a name. All are private."""
    fits = fit_laws(name, reach, epsilon=Fraction(1, 2), delta=Fraction(1, 100), notion="dp")
    assert all(fit.is_private() for fit in fits)
    return fits


def compute_fitted_masses(fitted: Any) -> np.ndarray:
    """Return the masses of a fitted law on -400..400. Shape (801,)."""
    masses = compute_masses(fitted.law, low=-400, high=400)
    assert masses.sum() == pytest.approx(1)
    return masses


@pytest.mark.parametrize("reach", [1, 3])
@pytest.mark.parametrize("name", ["geometric", "discrete Gaussian"])
def test_a_law_with_a_real_parameter_uses_the_whole_delta(name: str, reach: int):
    masses = compute_fitted_masses(fit(name, reach)[0])
    delta = compute_hockey_stick(masses, epsilon=0.5, reach=reach)
    assert delta == pytest.approx(0.01, rel=1e-4)


def test_there_is_a_staircase_without_delta_for_each_width_up_to_the_reach():
    fits = fit("staircase", reach=3)
    assert len(fits) == 3
    masses = compute_fitted_masses(fits[0])
    assert compute_hockey_stick(masses, epsilon=0.5, reach=3) == pytest.approx(0, abs=1e-12)


def test_the_staircase_for_reach_1_is_refused_because_it_is_geometric_noise():
    with pytest.raises(NotApplicable, match="it equals geometric noise"):
        fit("staircase", reach=1)


@pytest.mark.parametrize("reach", [1, 3])
@pytest.mark.parametrize("name", BOUNDED_LAW_NAMES)
def test_a_law_on_an_interval_has_the_shortest_private_one(name: str, reach: int):
    """The support is -A..A with an integer A. Without both ends it is not private."""
    fitted = fit(name, reach)[0]
    masses = compute_fitted_masses(fitted)
    assert compute_hockey_stick(masses, epsilon=0.5, reach=reach) <= 0.01
    largest_noise = int(fitted.value)
    shorter_masses = masses.copy()
    shorter_masses[[400 - largest_noise, 400 + largest_noise]] = 0
    shorter_masses /= shorter_masses.sum()
    assert compute_hockey_stick(shorter_masses, epsilon=0.5, reach=reach) > 0.01


def test_clamped_rows_sum_the_law_beyond_the_ends():
    """Geometric noise η has the mass (1 - α)/(1 + α) α^|η|, and the answers are 0..4."""
    fits = fit_laws("geometric", reach=2, epsilon=Fraction(1), delta=Fraction(0), notion="pure")
    law = fits[0].law
    alpha = float(law.ratio)
    expected_rows = np.zeros((5, 5))
    for answer, noise in itertools.product(range(5), range(-300, 301)):
        mass = (1 - alpha) / (1 + alpha) * alpha ** abs(noise)
        output = min(4, max(0, answer + noise))
        expected_rows[answer, output] += mass
    assert np.allclose([*compute_clamped_rows(law, 5)], expected_rows, rtol=1e-12, atol=0)


@pytest.mark.parametrize("epsilon", [1, 20, 40, 300])
@pytest.mark.parametrize("prior", [None, "worst"])
def test_the_loss_of_clamped_geometric_noise_is_exact_at_large_epsilon(
    epsilon: int, prior: str | None
):
    """At ε = 300 the masses beside the diagonal are 1e-130, so the loss is computed in rationals."""
    fits = fit_laws("geometric", reach=1, epsilon=Fraction(epsilon), delta=Fraction(0), notion="dp")
    alpha = fits[0].law.ratio
    query = make_query("0..10", str(epsilon), max_shift=1, prior=prior)

    def compute_mass(output: int, answer: int) -> Fraction:
        """Return the probability of an output at an answer."""
        # The ends also have the mass of all noise beyond them.
        end_factor = 1 if output in (0, 10) else 1 - alpha
        return alpha ** abs(output - answer) / (1 + alpha) * end_factor

    def compute_loss(answer: int) -> Fraction:
        """Return the expected squared error at an answer."""
        masses = [compute_mass(output, answer) for output in range(11)]
        assert sum(masses) == 1
        losses = [(output - answer) ** 2 for output in range(11)]
        return sum(mass * loss for mass, loss in zip(masses, losses, strict=True))

    losses = [compute_loss(answer) for answer in range(11)]
    expected_loss = max(losses) if prior == "worst" else sum(losses) / 11
    reference = ENTRIES["clamped geometric"].make_reference(query)
    assert reference.objective == float(expected_loss)


@pytest.mark.parametrize("epsilon", [1, 20, 40, 300])
@pytest.mark.parametrize("prior", [None, "worst"])
def test_the_loss_of_randomized_response_is_exact_at_large_epsilon(epsilon: int, prior: str | None):
    query = make_query("0..10", str(epsilon), max_shift=1, prior=prior)
    reference = ENTRIES["randomized response"].make_reference(query)
    first_row = reference.mechanism.rows[0]
    other_mass = Fraction(first_row.integers[1], first_row.total)
    answers = range(11)
    losses = [other_mass * sum((output - answer) ** 2 for output in answers) for answer in answers]
    expected_loss = max(losses) if prior == "worst" else sum(losses) / 11
    assert reference.objective == float(expected_loss)


@pytest.mark.parametrize("neighbours", [{"max_shift": 1}, {"neighbours": "all"}])
@pytest.mark.parametrize("loss", ["squared", "absolute", "error-rate"])
@pytest.mark.parametrize("delta", ["0", "1e-9", "0.1"])
@pytest.mark.parametrize("epsilon", ["0.5", "20"])
def test_no_published_mechanism_has_a_loss_below_the_bound_of_its_class(
    epsilon: str, delta: str, loss: str, neighbours: dict
):
    rows = wb.recommend(answers="0..5", epsilon=epsilon, delta=delta, loss=loss, **neighbours)
    bounds = {row["class"]: row["bound"] or 0.0 for row in rows}
    # RR-on-Bins chooses its outputs, so it is not a channel on the answers.
    channel_rows = [
        row for row in rows if row["objective"] is not None and row["class"] != "RR-on-Bins"
    ]
    assert len(channel_rows) > 3
    for row in channel_rows:
        assert row["objective"] >= bounds["best channel"], row["class"]
        if row["class"].startswith("clamped"):
            assert row["objective"] >= bounds["integer noise, clamped"], row["class"]


@pytest.mark.parametrize(
    ("question", "loss"),
    [(wb.IntegerNoise(1), "squared"), (wb.IntegerNoise(2, clamp=(0, 6)), "absolute")],
)
@pytest.mark.parametrize("delta", ["0", "1e-9", "0.1"])
@pytest.mark.parametrize("epsilon", ["0.5", "20"])
def test_no_baseline_of_a_frontier_has_a_loss_below_the_bound_of_the_design(
    epsilon: str, delta: str, question: wb.IntegerNoise, loss: str
):
    rows = [*wb.frontier(question, epsilon=epsilon, delta=delta, notion="dp", loss=loss)]
    # Rows that do not apply have no bound or no loss.
    bounds = [row.get("bound") for row in rows if row["curve"] == "point"]
    known_bounds = [bound for bound in bounds if bound is not None]
    losses = [row.get("objective") for row in rows if row["curve"] == "baseline"]
    known_losses = [loss for loss in losses if loss is not None]
    assert known_losses
    assert min(known_losses) >= max(known_bounds, default=0.0)


def test_the_loss_of_geometric_noise_is_exact_where_floats_round_its_parameter():
    """At ε >= 37, 1 - e^-ε is 1 in floats."""
    rows = wb.frontier(wb.IntegerNoise(1), epsilon="40", delta="0", notion="dp", loss="squared")
    fits = fit_laws("geometric", reach=1, epsilon=Fraction(40), delta=Fraction(0), notion="dp")
    alpha = fits[0].law.ratio
    (geometric,) = (row for row in rows if row["mechanism"] == "geometric")
    assert geometric["objective"] == float(2 * alpha / (1 - alpha) ** 2)


def test_noise_modulo_9_and_clamped_noise_have_the_same_loss_at_large_epsilon():
    """At ε = 20 the noise is nearly always -1, 0 or 1. The parameter of noise modulo 9 is scanned."""
    rows = wb.frontier(
        wb.ModuloNoise(n=8, max_shift=1),
        epsilon="20",
        delta="0",
        notion="dp",
        loss="squared",
        level="none",
    )
    (scanned,) = (row for row in rows if row["mechanism"] == "geometric")
    query = make_query("0..8", "20", max_shift=1)
    clamped = ENTRIES["clamped geometric"].make_reference(query)
    assert scanned["objective"] == pytest.approx(clamped.objective, rel=1e-4)


@pytest.mark.parametrize(
    ("query", "applying_names"),
    [
        (
            make_query("0..300", "1", "1e-5", max_shift=1),
            set(ENTRIES) - PLANAR - {"permute-and-flip", "clamped staircase"},
        ),
        (
            make_query("0..1000", "1", neighbours="all", loss="error-rate"),
            {"clamped geometric", "randomized response"},
        ),
        (
            make_query("0..6", "1", "0.01", max_shift=2, notion="pdp", prior="worst"),
            {
                "clamped geometric",
                "clamped staircase",
                "exponential",
                "permute-and-flip",
                "randomized response",
            },
        ),
        (
            make_query("a,b,c", "1", "0.2", neighbours="all", loss="error-rate"),
            {"randomized response"},
        ),
    ],
)
def test_every_published_mechanism_is_certified_or_states_why_it_does_not_apply(
    query: Query, applying_names: set[str]
):
    assert {entry.name for entry in published_for(query, CHANNEL)} == {*ENTRIES} - PLANAR
    for name, entry in ENTRIES.items():
        if name in applying_names:
            reference = entry.make_reference(query)
            assert reference.is_certified
            assert reference.objective > 0
        else:
            with pytest.raises(NotApplicable, match=r"\w+ \w+"):
                entry.make_reference(query)


def test_the_loss_of_clamped_gaussian_noise_is_the_mean_over_answers_and_noise():
    weights = np.array([1, 2, 3, 4, 5, 4, 3, 2, 1])
    query = make_query("0..8", "1", "0.05", max_shift=2, prior=weights.tolist())
    reference = ENTRIES["clamped discrete Gaussian"].make_reference(query)
    noise = np.arange(-60, 61)
    masses = np.exp(-(noise**2) / (2 * reference.value))
    masses /= masses.sum()
    losses = [masses @ (np.clip(q + noise, 0, 8) - q) ** 2 for q in range(9)]
    assert reference.objective == pytest.approx(np.average(losses, weights=weights), rel=1e-9)


def test_a_modulo_frontier_of_201_answers_has_all_baselines():
    rows = wb.frontier(
        wb.ModuloNoise(n=200, max_shift=1), epsilon="1", delta="0.001", notion="dp", level="none"
    )
    baselines = {row["mechanism"]: row for row in rows if row["curve"] == "baseline"}
    assert set(baselines) == {
        "data-independent",
        "geometric",
        "gaussian",
        "exponential",
        "truncated geometric",
        "staircase",
    }
    staircase = baselines.pop("staircase")
    assert staircase["failure"] == "for neighbours one step apart it equals geometric noise"
    assert all(row["objective"] > 0 for row in baselines.values())


def test_no_baseline_of_a_modulo_frontier_applies_to_the_worst_case_loss():
    rows = wb.frontier(
        wb.ModuloNoise(n=12, max_shift=1),
        epsilon="1",
        delta="0.001",
        notion="dp",
        loss="worst-squared",
    )
    statuses = {row["status"] for row in rows if row["curve"] == "baseline"}
    assert statuses == {"not applicable"}


@pytest.fixture
def pmf_file(tmp_path: Path) -> Path:
    """Write noise on -1, 0, 1 to a file. At ε = 1 it is private with δ = 0.3."""
    path = tmp_path / "pmf.csv"
    path.write_text("noise,probability\n-1,0.25\n0,0.5\n1,0.25\n")
    return path


def test_user_defined_baselines_are_evaluated_or_state_their_failure(pmf_file: Path):
    baselines = {
        "a file": pmf_file,
        "a function": lambda epsilon, delta: {0: 1 - delta, 1: delta},
        "raises": lambda epsilon, delta: 1 / 0,
    }
    table = wb.recommend(answers="0..4", max_shift=1, epsilon=1, delta="0.3", baseline=baselines)
    rows = {row["class"]: row for row in table}
    # Three answers have two neighbours, and the two ends one. Each has probability 1/4.
    assert rows["a file"]["objective"] == pytest.approx((3 * 0.5 + 2 * 0.25) / 5)
    assert rows["a file"]["certified"] is True
    assert rows["best channel"]["objective"] < rows["a file"]["objective"]
    assert "not private at this budget" in rows["a function"]["notes"]
    assert "ZeroDivisionError" in rows["raises"]["notes"]


def test_a_matrix_file_is_a_baseline_named_after_the_file(tmp_path: Path):
    path = tmp_path / "rows.csv"
    path.write_text("0.5,0.5\n0.25,0.75\n")
    table = wb.recommend(answers="0,1", max_shift=1, epsilon=2, baseline=path, loss="absolute")
    losses = {row["class"]: row["objective"] for row in table}
    assert losses["rows"] == pytest.approx((0.5 + 0.25) / 2)


@pytest.mark.parametrize(
    ("question", "loss"),
    [
        (wb.ModuloNoise(n=4, max_shift=1), 0.5),  # error rate: the noise is not 0
        (wb.FiniteQuery("0..4", max_shift=1), 0.4),  # squared: (3 · 1/2 + 2 · 1/4)/5
    ],
)
def test_a_frontier_has_a_user_defined_baseline(question, loss: float, pmf_file: Path):
    table = wb.frontier(question, epsilon="1", delta="0.3", notion="dp", baseline=pmf_file)
    (row,) = [row for row in table if row["mechanism"] == "pmf"]
    assert row["private"] is True
    assert row["objective"] == pytest.approx(loss)


@pytest.mark.parametrize(
    "baseline", [{0: 0.5}, {0.5: 1}, [[1, 0], [1]], "nowhere.csv", 3, {0: -1, 1: 2}]
)
def test_an_invalid_baseline_is_refused(baseline):
    with pytest.raises(wb.WorkbenchError):
        wb.recommend(answers="0..4", max_shift=1, epsilon=1, baseline=baseline)


def compute_permute_and_flip_law(weights: list[Fraction]) -> list[Fraction]:
    """Compute the law of permute-and-flip from its definition.

    The outputs are visited in a random order. Output j is published with probability weights[j],
    else the next one is visited.
    """
    masses = [Fraction(0)] * len(weights)
    for order in itertools.permutations(range(len(weights))):
        remaining_mass = Fraction(1, math.factorial(len(weights)))
        for j in order:
            masses[j] += remaining_mass * weights[j]
            remaining_mass *= 1 - weights[j]
    return masses


def test_permute_and_flip_has_the_law_of_its_definition():
    query = make_query("0..4", "1", max_shift=2)
    reference = ENTRIES["permute-and-flip"].make_reference(query)
    ratio = Fraction(reference.value)
    for i, row in enumerate(reference.mechanism.rows):
        masses = compute_permute_and_flip_law([ratio ** abs(i - j) for j in range(5)])
        assert [*map(float, masses)] == pytest.approx(row.floats.tolist(), rel=1e-9)


def test_the_rate_of_permute_and_flip_is_about_epsilon_over_twice_the_sensitivity():
    query = make_query("0..4", "1", max_shift=2)
    reference = ENTRIES["permute-and-flip"].make_reference(query)
    assert reference.value == pytest.approx(math.exp(-1 / 4), abs=0.2)
    assert wb.audit(reference.mechanism, 1).pure_epsilon <= 1


@pytest.mark.parametrize(
    "law",
    [
        IntegerLaw(first=0, weights=[1], period=1, ratio=Fraction(8, 11)),
        IntegerLaw(first=-2, weights=[1, 2, 5, 2, 1]),
        IntegerLaw(first=-3, weights=[1, 2, 3, 4, 3, 2, 1], period=2, ratio=Fraction(1, 7)),
    ],
)
def test_clamped_rows_in_rationals_are_the_clamped_law_at_every_answer(law: IntegerLaw):
    assert [[*row] for row in compute_clamped_rows(law, count=10, number=Fraction)] == [
        [*law.clamp(-q, 9 - q)] for q in range(10)
    ]
