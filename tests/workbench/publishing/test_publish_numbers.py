"""Test counts, sums and means of a private table: their values, errors, budgets and certificates.

`wb.publish.count(table, ...)` and its siblings return a release: the noisy value, its RMSE, an
interval that holds the true value in 95 of 100 cases, the guarantee in words, and the certificate
of the noise. With dry_run=True no data are read.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.data.private_table import PrivateCellError, read_private_table
from workbench.errors import InvalidRequest
from workbench.exact.random_source import Source
from workbench.publishing import statistic as statistic_module
from workbench.publishing.request import BudgetOptions, StatisticOptions
from workbench.publishing.statistic import Statistic, compute_answer

ROOT = Path(__file__).parents[3]
CHECKER = ROOT / "tools" / "check_certificate.py"
PEOPLE = {
    "age": [20, 30, 40, 99],
    "smoker": ["yes", "no", " Yes ", "no"],
    "patient": ["a", "a", "b", "c"],
}
# ε at which the noise is 0 but for a probability below 1e-80, so that values can be compared.
NO_NOISE = 200


def test_a_count_without_noise_is_the_number_of_rows_that_match() -> None:
    release = wb.publish.count(PEOPLE, where="smoker=yes", epsilon=NO_NOISE)
    assert release.value == 2


def test_a_sum_clips_its_values_to_the_range() -> None:
    statistic = StatisticOptions(column="age", range="18..95").read("sum")
    assert compute_answer(statistic, read_private_table(PEOPLE), None).values == [185]


def test_a_person_counts_with_at_most_k_rows() -> None:
    options = {"person": "patient", "rows_per_person": 1}
    assert wb.publish.count(PEOPLE, epsilon=NO_NOISE, **options).value == 3


@pytest.mark.parametrize(("dtype", "first_id"), [("float64", 2**53), ("float32", 2**24)])
def test_a_float_that_has_lost_digits_of_an_id_is_refused(dtype: str, first_id: int) -> None:
    """In a column of floats, the IDs of two persons may be the same number."""
    options = {"person": "id", "rows_per_person": 1, "epsilon": NO_NOISE}
    wide = {"id": np.array([first_id, first_id + 1], dtype=dtype)}
    with pytest.raises(PrivateCellError, match="a float of this size has lost digits"):
        wb.publish.count(wide, **options)
    assert wb.publish.count({"id": [first_id, first_id + 1]}, **options).value == 2
    short = {"id": np.array([first_id - 1, first_id - 2], dtype=dtype)}
    assert wb.publish.count(short, **options).value == 2


def test_the_rows_with_the_least_values_of_a_person_count() -> None:
    options = StatisticOptions(column="age", range="18..95", person="patient", rows_per_person=1)
    answer = compute_answer(options.read("sum"), read_private_table(PEOPLE), None)
    assert answer.values == [20 + 40 + 95]


def test_the_error_of_a_count_is_that_of_geometric_noise() -> None:
    """For a = e^(-1/2) RMSE is √(2a) / (1 - a), and Pr[|noise| > 6] = 2 a^7 / (1 + a) < .05."""
    release = wb.publish.count("no.csv", epsilon="0.5", dry_run=True)
    assert (round(release.rmse, 4), release.width) == (2.7992, 6)


def test_the_error_of_a_mean_with_public_n_is_that_of_the_best_noise() -> None:
    """The best noise is a staircase. Its mean absolute error is Δ e^(ε/2) / (e^ε - 1).

    Source: Geng and Viswanath 2014. Here ε = 1 and Δ = (95 - 18) / 2000 = .0385.
    """
    release = wb.publish.mean(
        "no.csv", "age", range="18..95", rows=2000, epsilon=1, loss="absolute", dry_run=True
    )
    error = release.certificate.mechanism.loss("absolute")
    assert float(error) == pytest.approx(0.0385 * math.exp(0.5) / math.expm1(1), abs=5e-8)


def test_the_error_of_a_mean_with_private_n_is_half_the_variance_of_laplace() -> None:
    """Laplace noise for a public n = 2000 has the standard deviation √2 · .0385 at ε = 1."""
    values = [18, 95] * 1000
    release = wb.publish.mean(values, range="18..95", epsilon=1)
    assert release.rmse == pytest.approx(0.0385, rel=0.01)


@pytest.mark.parametrize(("epsilon", "right_guesses"), [("0.5", 63), (1, 74)])
def test_the_guarantee_names_the_largest_share_of_right_guesses(
    epsilon: object, right_guesses: int
) -> None:
    """Of two equally likely neighbours, a guess is right with probability e^ε / (1 + e^ε)."""
    release = wb.publish.count("no.csv", epsilon=epsilon, dry_run=True)
    assert f"at most {right_guesses} of 100 cases" in release.guarantee[1]


def test_max_rmse_gives_the_least_epsilon_with_four_digits() -> None:
    release = wb.publish.count("no.csv", max_rmse=3, dry_run=True)
    smaller_epsilon = release.epsilon - Fraction(1, 10_000)
    noisier = wb.publish.count("no.csv", epsilon=smaller_epsilon, dry_run=True)
    assert release.rmse <= 3 < noisier.rmse


def test_max_rmse_may_need_an_epsilon_between_64_and_100() -> None:
    """The geometric noise of a count has the RMSE √(2a)/(1 - a), a = e^-ε, 2.2e-20 at ε = 92."""
    release = wb.publish.count("no.csv", max_rmse="2.2e-20", dry_run=True)
    assert 90 < release.epsilon < 100


def test_max_rmse_below_the_error_at_epsilon_100_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="an error that epsilon <= 100 allows"):
        wb.publish.count("no.csv", max_rmse="1e-25", dry_run=True)


def test_a_mean_with_public_n_refuses_another_number_of_rows() -> None:
    with pytest.raises(InvalidRequest, match="rows must be the number of rows of the data"):
        wb.publish.mean(PEOPLE, "age", range="18..95", rows=5, epsilon=1)


def test_a_count_with_public_n_does_not_ask_that_all_rows_count() -> None:
    with pytest.raises(
        InvalidRequest, match=r"rows must be the number of rows of the data\. Got 5"
    ):
        wb.publish.count(PEOPLE, neighbours="replace", rows=5, epsilon=1)


def test_a_public_number_of_rows_is_refused_if_persons_are_added() -> None:
    with pytest.raises(InvalidRequest, match="rows must be left out if persons are added"):
        wb.publish.count(PEOPLE, rows=4, epsilon=1)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("count", {"where": "smoker=yes"}),
        ("sum", {"column": "age", "range": "18..95"}),
        ("mean", {"column": "age", "range": "18..95"}),
        ("mean", {"column": "age", "range": "18..95", "rows": 4}),
    ],
)
def test_both_checkers_prove_the_certificate(
    kind: str, options: dict[str, object], tmp_path: Path
) -> None:
    release = getattr(wb.publish, kind)(PEOPLE, epsilon=1, **options)
    path = tmp_path / "release.json"
    release.save(path)
    assert wb.check(path).holds()
    command = [sys.executable, str(CHECKER), str(path)]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0


def test_a_release_is_json_without_private_numbers() -> None:
    release = wb.publish.count(PEOPLE, where="smoker=yes", epsilon=1)
    record = json.loads(release.to_json())
    assert record["statistic"] == "count where smoker=yes"
    assert "rows that count" not in release.to_json()


@pytest.mark.parametrize("epsilon", ["0.01", "0.3", "2"])
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_noise_on_the_reals_is_within_the_interval_in_95_of_100_cases(
    epsilon: str, loss: str
) -> None:
    """The width is compared with 4,000 draws, whose share has a standard deviation of .0035."""
    release = wb.publish.sum(
        "no.csv", "age", range="0..1", epsilon=epsilon, loss=loss, dry_run=True
    )
    draws = wb.sample(release.certificate, 4_000, answer=0, insecure_seed=1)
    assert np.mean(np.abs(draws) <= release.width) == pytest.approx(0.95, abs=0.012)


@pytest.mark.parametrize("epsilon", ["1e-9", "1e-6"])
def test_noise_that_is_too_wide_to_be_drawn_is_refused(epsilon: str) -> None:
    with pytest.raises(InvalidRequest, match="too wide to be drawn"):
        wb.publish.count("no.csv", epsilon=epsilon, dry_run=True)


@pytest.mark.parametrize("epsilon", ["1e-20", "1e-6"])
def test_noise_of_a_histogram_that_is_too_wide_to_be_drawn_is_refused(epsilon: str) -> None:
    """At the smaller ε the ratio of the noise is rounded to 1 in floats."""
    with pytest.raises(InvalidRequest, match="too wide to be drawn"):
        wb.publish.histogram("no.csv", "age", values=["1"], epsilon=epsilon, dry_run=True)


def test_a_table_without_rows_has_a_mean_in_the_range() -> None:
    release = wb.publish.mean({"age": []}, "age", range="18..95", epsilon=1)
    assert 18 <= release.value <= 95


def test_groups_have_a_mean_each() -> None:
    release = wb.publish.mean(
        PEOPLE, "age", range="0..100", by="smoker", values="yes,no", epsilon=NO_NOISE
    )
    assert [release.value["yes"], release.value["no"]] == pytest.approx([30, 64.5], abs=1)


def test_groups_with_several_rows_of_a_person_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="by must be used with one row of a person"):
        wb.publish.mean(
            PEOPLE,
            "age",
            range="0..100",
            by="smoker",
            values="yes,no",
            epsilon=1,
            person="patient",
            rows_per_person=2,
        )


def test_the_usual_noise_has_the_error_of_laplace() -> None:
    """Source: Dwork et al. 2006. The standard deviation of Laplace noise at ε = 1/2 is 2 √2."""
    release = wb.publish.count("no.csv", epsilon="0.5", dry_run=True)
    laplace = release.usual[1]
    assert (laplace.name, laplace.rmse) == ("Laplace", pytest.approx(8**0.5))


def test_the_usual_noise_of_a_count_has_the_error_of_geometric_noise() -> None:
    """Source: Ghosh et al. 2009. With a = e^(-1/2), √(2a) / (1 - a) = 2.7992, the optimum."""
    release = wb.publish.count("no.csv", epsilon="0.5", dry_run=True)
    geometric = release.usual[0]
    ratio = math.exp(-0.5)
    expected = math.sqrt(2 * ratio) / (1 - ratio)
    assert (geometric.name, geometric.rmse) == ("geometric", pytest.approx(expected))
    assert "geometric noise 2.799 (the same error)" in str(release)


def test_the_usual_mean_with_private_n_has_twice_the_variance() -> None:
    """The usual sum and count have the L1 norm 2, the pair of sums has 1."""
    values = [18, 95] * 1000
    release = wb.publish.mean(values, range="18..95", epsilon=1)
    (laplace,) = release.usual
    assert laplace.rmse / release.rmse == pytest.approx(2**0.5, rel=0.01)


def test_the_interval_of_a_mean_holds_the_true_mean_in_95_of_100_cases() -> None:
    """Of 200 intervals with a coverage of .95, fewer than 178 hold with a probability of 2e-4."""
    values = [18, 30, 95, 60] * 50
    request = BudgetOptions(epsilon=20).read(StatisticOptions(range="18..95").read("mean"))
    noise = request.choose_noise()
    answer = compute_answer(request.statistic, read_private_table(values), noise.grid)
    hit_count = 0
    source = Source(insecure_seed=1)
    for _ in range(200):
        ((low, high),) = noise.publish(answer, source).intervals
        hit_count += low <= sum(values) / len(values) <= high
    assert hit_count >= 178


def test_a_table_of_two_columns_has_a_number_for_each_pair() -> None:
    release = wb.publish.histogram(
        {"region": ["a", "b", "b"], "year": [1, 2, 2]},
        ["region", "year"],
        values={"region": "a,b", "year": "1,2"},
        epsilon=NO_NOISE,
    )
    assert release.value == {"a, 1": 1, "a, 2": 0, "b, 1": 0, "b, 2": 2}


def test_cells_whose_names_look_alike_stay_apart() -> None:
    release = wb.publish.histogram(
        {"x": ["a"], "y": ["b, c"]},
        ["x", "y"],
        values={"x": ["a", "a, b"], "y": ["c", "b, c"]},
        epsilon=NO_NOISE,
    )
    assert sorted(release.value.values()) == [0, 0, 0, 1]


def test_every_bin_that_is_paid_for_has_a_value() -> None:
    """Six digits would give the four bins of a quarter one name each but two."""
    table = {"x": ["123456.1", "123456.3", "123456.6", "123456.9"]}
    release = wb.publish.histogram(table, "x", bins="123456..123457:0.25", epsilon=NO_NOISE)
    assert [*release.value.values()] == [1, 1, 1, 1]
    assert [value for _, value, _ in release.rows] == ["1", "1", "1", "1"]


def test_the_names_of_cells_are_not_made_again_for_every_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At 4,000 cells, this took 20 s after the budget was used."""
    release = wb.publish.histogram({"x": [1]}, "x", bins="0..50:1", epsilon=NO_NOISE)
    labels = release.statistic.labels
    calls = []

    def count_calls(statistic: Statistic) -> tuple[tuple[str, ...], ...]:
        """Record the call, and return the labels that were made before."""
        calls.append(statistic)
        return labels

    monkeypatch.setattr(Statistic, "labels", property(count_calls))
    assert len(release.rows) == 50
    assert len(calls) < 5


def test_the_sums_of_many_groups_take_one_pass_over_the_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passes = []

    class CountedRows(list[int]):
        """Rows that count the passes over them."""

        def __iter__(self) -> Iterator[int]:
            passes.append(len(self))
            return super().__iter__()

    select_rows = statistic_module._RowCounting.select_rows
    monkeypatch.setattr(
        statistic_module._RowCounting,
        "select_rows",
        lambda counting: CountedRows(select_rows(counting)),
    )
    options = StatisticOptions(column="x", range="0..1", by="g", bins="0..50:0.1")
    statistic = options.read("sum")
    table = read_private_table({"x": [1] * 50, "g": [*range(50)]})
    assert sum(compute_answer(statistic, table, None).values) == 50
    assert passes == [50]


@pytest.mark.parametrize("spelling", ["A1", "a1 ", "Ａ1"])
def test_spellings_of_one_person_are_one_person(spelling: str) -> None:
    table = {"id": ["A1", spelling, "B"]}
    release = wb.publish.count(table, person="id", rows_per_person=1, epsilon=NO_NOISE)
    assert release.value == 2


def test_a_row_without_a_person_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="column id"):
        wb.publish.count({"id": ["A1", " "]}, person="id", rows_per_person=1, epsilon=1)


@pytest.mark.parametrize("cell", ["NA", " null ", "nan", "N\u200bA", None, float("nan")])
def test_rows_without_a_person_are_not_the_rows_of_one_person(cell: object) -> None:
    table = {"id": [cell, cell, cell, "x"]}
    with pytest.raises(InvalidRequest, match="NA and null are missing"):
        wb.publish.count(table, person="id", rows_per_person=1, epsilon=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"person": "id"}, "rows_per_person must be given"),
        ({"rows_per_person": 2}, "person must be given"),
        ({"person": "id", "rows_per_person": 65}, "rows_per_person must be an integer in 1..64"),
        ({"bins_per_person": 2}, "bins_per_person must be left out"),
        ({"column": "age"}, "column must be left out for a count"),
        ({"epsilom": 1}, "option must be one"),
        ({"delta": 1}, "delta must be in"),
        ({"loss": "cubic"}, "loss must be one of squared, absolute"),
        ({"max_rmse": 3}, "epsilon must be given, or else max_rmse"),
        ({"total": 1}, "total must be given with a ledger"),
        ({"neighbours": "both"}, "neighbours must be one of"),
        ({"where": "smoker"}, "where must be COLUMN=VALUE"),
        ({"header": 0}, "header must be True or False. Got 0"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        wb.publish.count(PEOPLE, epsilon=1, **options)


def test_a_mean_with_private_n_refuses_delta_and_names_rows() -> None:
    with pytest.raises(InvalidRequest, match=r"delta must be left out .* \(give rows if"):
        wb.publish.mean(PEOPLE, "age", range="18..95", epsilon=1, delta="1e-6")


def test_a_clamped_count_has_a_clamped_interval() -> None:
    """Under replace with public n = 4, neither end is outside 0..4."""
    for _ in range(5):
        release = wb.publish.count(
            PEOPLE, where="smoker=yes", neighbours="replace", rows=4, epsilon="0.1"
        )
        assert 0 <= release.interval[0] <= release.value <= release.interval[1] <= 4


def test_a_histogram_is_compared_with_ripple_noise() -> None:
    """For one row of a person, ripple noise is geometric noise, which is published."""
    table = {"region": ["north", "south"]}
    release = wb.publish.histogram(table, "region", values=["north", "south"], epsilon=1)
    (ripple,) = [usual for usual in release.usual if usual.name == "ripple"]
    assert ripple.rmse == pytest.approx(release.rmse, rel=1e-6)


def test_a_mean_refuses_an_epsilon_that_is_too_large_to_certify() -> None:
    with pytest.raises(InvalidRequest, match="epsilon must be between 1e-09 and 700"):
        wb.publish.mean({"age": [20]}, "age", range="18..95", epsilon=10**6)
