"""Test user-defined baselines in the frontiers of every family.

The expected losses are sums that the tests compute with NumPy.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import workbench as wb

# Randomized response of five labels: the true label has probability 0.4, each other one 0.15.
RANDOMIZED_RESPONSE = np.full((5, 5), 0.15) + 0.25 * np.eye(5)


def find_baseline_row(result: wb.Result, name: str) -> dict:
    """Return the first row of a baseline in a frontier."""
    rows = [row for row in result if row["mechanism"] == name]
    assert rows, [row["mechanism"] for row in result]
    return rows[0]


LABELS = wb.Labels.uniform(0, 4)
LABEL_OPTIONS = {"epsilon": "1,2", "method": "bins", "baselines": False}


def test_labels_accept_a_matrix_and_a_table(tmp_path: Path):
    np.savetxt(tmp_path / "square.csv", RANDOMIZED_RESPONSE, delimiter=",", fmt="%.2f")
    shares = (0.7, 0.6, 0.5, 0.4, 0.3)
    (tmp_path / "table.csv").write_text(
        "label,1,3\n" + "".join(f"{y},{p},{1 - p:.1f}\n" for y, p in enumerate(shares))
    )
    files = [tmp_path / "square.csv", tmp_path / "table.csv"]
    result = wb.frontier(LABELS, **LABEL_OPTIONS, baseline=files)
    labels = np.arange(5)[:, None]
    square_errors = RANDOMIZED_RESPONSE * (labels - np.arange(5)) ** 2
    square = find_baseline_row(result, "square")
    assert square["objective"] == pytest.approx(square_errors.sum(axis=1).mean())
    probabilities = np.column_stack([shares, 1 - np.array(shares)])
    table_errors = probabilities * (labels - np.array([1, 3])) ** 2
    table = find_baseline_row(result, "table")
    assert table["objective"] == pytest.approx(table_errors.sum(axis=1).mean())
    assert table["private"] is True
    assert table["pure_epsilon"] == pytest.approx(np.log(0.7 / 0.3))
    assert {*result.save(tmp_path / "out")}  # The plots contain the baselines.


def test_noise_on_labels_is_not_private_because_some_outputs_are_impossible():
    noise = {"noise": {-1: 0.25, 0: 0.5, 1: 0.25}}
    result = wb.frontier(LABELS, **LABEL_OPTIONS, baseline=noise)
    assert find_baseline_row(result, "noise")["private"] is False


def test_a_matrix_with_fewer_columns_than_labels_is_a_failed_row():
    result = wb.frontier(LABELS, **LABEL_OPTIONS, baseline={"narrow": [[0.5, 0.5]] * 5})
    assert "5 columns" in find_baseline_row(result, "narrow")["failure"]


def test_a_table_of_other_labels_is_a_failed_row(tmp_path: Path):
    (tmp_path / "other.csv").write_text("label,1,3\n7,0.5,0.5\n8,0.4,0.6\n")
    result = wb.frontier(LABELS, **LABEL_OPTIONS, baseline=tmp_path / "other.csv")
    assert "labelled by the 5 labels" in find_baseline_row(result, "other")["failure"]


QUANTIZER_OPTIONS = {"levels": "2", "epsilon": 1, "starts": 1, "baselines": False}


def test_quantizers_accept_a_table_over_knots(tmp_path: Path):
    (tmp_path / "knots.csv").write_text("x,-4,4\n-1,0.625,0.375\n1,0.375,0.625\n")
    result = wb.frontier("quantizer", **QUANTIZER_OPTIONS, baseline=tmp_path / "knots.csv")
    x = (np.arange(20000) + 0.5) / 10000 - 1
    low = 0.5 - x / 8  # The probability of the output -4 at the input x.
    row = find_baseline_row(result, "knots")
    mean_error = (low * (x + 4) + (1 - low) * (4 - x)).mean()
    assert row["objective"] == pytest.approx(mean_error, rel=1e-6)
    assert row["private"] is True
    assert find_baseline_row(result, "exact")["objective"] < row["objective"]


def test_quantizers_accept_a_saved_quantizer(tmp_path: Path):
    saved = tmp_path / "saved.json"
    wb.design(wb.Quantization(bins=[-3, 3]), epsilon=1).save(saved)
    result = wb.frontier("quantizer", **QUANTIZER_OPTIONS, baseline=saved)
    assert find_baseline_row(result, "saved")["private"] is True


@pytest.mark.parametrize(
    ("law", "words"),
    [({0: 1}, "biased"), ([[1, 0], [0, 1]], "neither knots nor outputs")],
    ids=["biased", "no knots"],
)
def test_a_law_that_is_no_unbiased_quantizer_is_a_failed_row(law: object, words: str):
    result = wb.frontier("quantizer", **QUANTIZER_OPTIONS, baseline={"mine": law})
    assert words in find_baseline_row(result, "mine")["failure"]


# Its squared error is 2/4, and its δ is 1/4 at every ε >= ln 2, because outputs may be impossible.
NOISE_BASELINE = {"baselines": False, "baseline": {"mine": {-1: 0.25, 0: 0.5, 1: 0.25}}}


@pytest.mark.parametrize(
    ("budget", "is_private"),
    [
        ({"epsilon": 1, "delta": 0.3}, True),
        ({"epsilon": 1, "delta": 0.1}, False),
        ({"notion": "zcdp", "rho": 0.1}, False),
    ],
    ids=str,
)
def test_a_pmf_of_integer_noise_is_audited_at_the_budget(budget: dict, is_private: bool):
    row = find_baseline_row(wb.frontier(wb.IntegerNoise(1), **budget, **NOISE_BASELINE), "mine")
    assert row["private"] is is_private


def test_a_pmf_of_integer_noise_has_its_loss_with_and_without_a_clamp():
    """For answers 0..4 the clamp removes the error 1/4 at each end: (5/2 - 2/4)/5 = 0.4."""
    unclamped = wb.frontier(wb.IntegerNoise(1), epsilon=1, delta=0.3, **NOISE_BASELINE)
    assert find_baseline_row(unclamped, "mine")["objective"] == 0.5
    question = wb.IntegerNoise(1, clamp=(0, 4))
    clamped = wb.frontier(question, epsilon=1, delta=0.3, **NOISE_BASELINE)
    assert find_baseline_row(clamped, "mine")["objective"] == pytest.approx(0.4)
    assert find_baseline_row(clamped, "mine")["private"] is True


def test_a_pmf_of_noise_on_the_reals_is_a_failed_row():
    result = wb.frontier(wb.RealNoise(1), epsilon=1, loss="absolute", **NOISE_BASELINE)
    assert "a PMF of noise" in find_baseline_row(result, "mine")["failure"]


def test_mechanisms_and_functions_that_return_them_are_baselines():
    geometric = wb.design(wb.IntegerNoise(1), epsilon=1, notion="pure").mechanism
    entries = {"mechanism": geometric, "function": lambda epsilon, delta: geometric}
    result = wb.frontier(
        wb.IntegerNoise(1), epsilon="1,2", delta=1e-5, baselines=False, baseline=entries
    )
    alpha = np.exp(-1)
    for name in entries:
        row = find_baseline_row(result, name)
        assert row["objective"] == pytest.approx(2 * alpha / (1 - alpha) ** 2)
        assert row["private"] is True


def test_a_matrix_is_audited_under_zcdp():
    """Its KL divergence is 0.6 ln 6 - 0.1 ln 6 = 0.896, which exceeds ρ = 0.5."""
    result = wb.frontier(
        wb.FiniteQuery("0..4", max_shift=1),
        notion="zcdp",
        rho=0.5,
        baselines=False,
        baseline={"rr": [[0.6 if i == j else 0.1 for j in range(5)] for i in range(5)]},
    )
    assert find_baseline_row(result, "rr")["private"] is False


def list_rounded_laws(epsilon: float = 1.0) -> dict[str, tuple]:
    """Return laws that are private at an ε except for the rounding of doubles.

    Returns:
        (family, options of the question, law, expected loss) by name.
    """
    heavy = np.e**epsilon / (np.e**epsilon + 4)
    light = 1 / (np.e**epsilon + 4)
    ratio = np.exp(-epsilon)
    distance = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    geometric = np.array(
        [
            [ratio**d * (1 if j in (0, 4) else 1 - ratio) for j, d in enumerate(row)]
            for row in distance
        ]
    )
    geometric /= geometric.sum(axis=1, keepdims=True)
    circular = ratio ** np.minimum(np.arange(11), 11 - np.arange(11))
    circular /= circular.sum()
    response = np.full((5, 5), light) + (heavy - light) * np.eye(5)
    return {
        "all pairs": (
            "channel",
            {"answers": "0..4", "neighbours": "all"},
            response,
            (response * distance**2).sum() / 5,
        ),
        "line": (
            "channel",
            {"answers": "0..4", "max_shift": 1},
            geometric,
            (geometric * distance**2).sum() / 5,
        ),
        "labels": ("labels", {"labels": "0..4"}, response, (response * distance**2).sum() / 5),
        "modulo": (
            "modulo",
            {"n": 10, "max_shift": 1},
            dict(enumerate(circular.tolist())),
            1 - circular[0],
        ),
    }


@pytest.mark.parametrize("name", list_rounded_laws())
def test_a_law_that_exceeds_its_budget_by_rounding_alone_is_repaired(name: str):
    family, question, law, loss = list_rounded_laws()[name]
    row = find_baseline_row(
        wb.frontier(family, **question, epsilon=1, baseline={"mine": law}, baselines=False), "mine"
    )
    assert row["private"] is True
    assert row["pure_epsilon"] <= 1
    assert row["objective"] == pytest.approx(loss, rel=1e-12)
    assert "repaired" in row["note"]


@pytest.mark.parametrize("name", list_rounded_laws())
def test_a_law_that_exceeds_its_budget_by_more_than_rounding_is_not_repaired(name: str):
    family, question, law_of_larger_budget, _ = list_rounded_laws(1 + 1e-9)[name]
    row = find_baseline_row(
        wb.frontier(
            family, **question, epsilon=1, baseline={"mine": law_of_larger_budget}, baselines=False
        ),
        "mine",
    )
    assert row["private"] is False
    assert row.get("note") is None
