"""Test user-defined baselines in the frontiers of every family.

The expected losses are sums that the tests compute with NumPy.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import workbench as wb

# Randomized response of five labels.
RANDOMIZED_RESPONSE = np.full((5, 5), 0.15) + 0.25 * np.eye(5)


def baseline_row(result: wb.Result, name: str) -> dict:
    """Return the first row of a baseline in a frontier."""
    rows = [row for row in result if row["mechanism"] == name]
    assert rows, [row["mechanism"] for row in result]
    return rows[0]


def test_labels_accept_a_matrix_a_table_and_noise(tmp_path: Path):
    np.savetxt(tmp_path / "square.csv", RANDOMIZED_RESPONSE, delimiter=",", fmt="%.2f")
    shares = (0.7, 0.6, 0.5, 0.4, 0.3)
    (tmp_path / "table.csv").write_text(
        "label,1,3\n" + "".join(f"{y},{p},{1 - p:.1f}\n" for y, p in enumerate(shares))
    )
    labels = wb.Labels.uniform(0, 4)
    files = [tmp_path / "square.csv", tmp_path / "table.csv"]
    given = {"epsilon": "1,2", "method": "bins", "baselines": False}
    result = wb.frontier(labels, **given, baseline=files)
    y = np.arange(5)
    assert baseline_row(result, "square")["objective"] == pytest.approx(
        (RANDOMIZED_RESPONSE * (y[:, None] - y) ** 2).sum(1).mean()
    )
    rows = np.column_stack([shares, 1 - np.array(shares)])
    table = baseline_row(result, "table")
    assert table["objective"] == pytest.approx(
        (rows * (y[:, None] - np.array([1, 3])) ** 2).sum(1).mean()
    )
    assert table["private"] is True
    assert table["pure_epsilon"] == pytest.approx(np.log(0.7 / 0.3))
    assert {*result.save(tmp_path / "out")}  # The plots contain the baselines.
    spread = baseline_row(
        wb.frontier(labels, **given, baseline={"spread": {-1: 0.25, 0: 0.5, 1: 0.25}}), "spread"
    )
    assert spread["private"] is False  # some outputs are impossible
    few = baseline_row(wb.frontier(labels, **given, baseline={"few": [[0.5, 0.5]] * 5}), "few")
    assert "5 columns" in few["failure"]
    other = tmp_path / "other.csv"
    other.write_text("label,1,3\n7,0.5,0.5\n8,0.4,0.6\n")
    assert (
        "labelled by the 5 labels"
        in baseline_row(wb.frontier(labels, **given, baseline=other), "other")["failure"]
    )


def test_quantizers_accept_a_table_over_knots_and_a_saved_quantizer(tmp_path: Path):
    (tmp_path / "knots.csv").write_text("x,-4,4\n-1,0.625,0.375\n1,0.375,0.625\n")
    given = {"levels": "2", "epsilon": 1, "starts": 1, "baselines": False}
    result = wb.frontier("quantizer", **given, baseline=tmp_path / "knots.csv")
    x = (np.arange(20000) + 0.5) / 10000 - 1
    low = 0.5 - x / 8
    row = baseline_row(result, "knots")
    assert row["objective"] == pytest.approx((low * (x + 4) + (1 - low) * (4 - x)).mean(), rel=1e-6)
    assert row["private"] is True
    assert baseline_row(result, "exact")["objective"] < row["objective"]
    saved = tmp_path / "saved.json"
    wb.design(wb.Quantization(bins=[-3, 3]), epsilon=1).save(saved)
    assert (
        baseline_row(wb.frontier("quantizer", **given, baseline=saved), "saved")["private"] is True
    )
    for bad, words in (({0: 1}, "biased"), ([[1, 0], [0, 1]], "neither knots nor outputs")):
        row = baseline_row(wb.frontier("quantizer", **given, baseline={"bad": bad}), "bad")
        assert words in row["failure"]


def test_noise_on_the_integers_accepts_a_pmf_under_every_notion():
    pmf = {-1: 0.25, 0: 0.5, 1: 0.25}
    given = {"baselines": False, "baseline": {"mine": pmf}}
    row = baseline_row(wb.frontier(wb.IntegerNoise(1), epsilon=1, delta=0.3, **given), "mine")
    assert (row["objective"], row["private"]) == (0.5, True)
    clamped = baseline_row(
        wb.frontier(wb.IntegerNoise(1, clamp=(0, 4)), epsilon=1, delta=0.3, **given), "mine"
    )
    assert (clamped["objective"], clamped["private"]) == (pytest.approx(0.4), True)
    assert (
        baseline_row(wb.frontier(wb.IntegerNoise(1), epsilon=1, delta=0.1, **given), "mine")[
            "private"
        ]
        is False
    )
    assert (
        baseline_row(wb.frontier(wb.IntegerNoise(1), notion="zcdp", rho=0.1, **given), "mine")[
            "private"
        ]
        is False
    )
    reals = baseline_row(
        wb.frontier(wb.RealNoise(1), epsilon=1, delta=0.3, loss="absolute", **given), "mine"
    )
    assert "a PMF of noise" in reals["failure"]


def test_mechanisms_and_functions_that_return_them_are_baselines():
    geometric = wb.design(wb.IntegerNoise(1), epsilon=1, notion="pure").mechanism
    given = {"geometric": geometric, "made": lambda epsilon, delta: geometric}
    result = wb.frontier(
        wb.IntegerNoise(1), epsilon="1,2", delta=1e-5, baselines=False, baseline=given
    )
    alpha = np.exp(-1)
    for name in given:
        row = baseline_row(result, name)
        assert row["objective"] == pytest.approx(2 * alpha / (1 - alpha) ** 2)
        assert row["private"] is True
    wide = wb.frontier(
        wb.FiniteQuery("0..4", max_shift=1),
        notion="zcdp",
        rho=0.5,
        baselines=False,
        baseline={"rr": [[0.6 if i == j else 0.1 for j in range(5)] for i in range(5)]},
    )
    assert baseline_row(wide, "rr")["private"] is False  # 0.6 ln 6 - 0.1 ln 6 = .896 > .5


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
    row = baseline_row(
        wb.frontier(family, **question, epsilon=1, baseline={"mine": law}, baselines=False), "mine"
    )
    assert row["private"] is True
    assert row["pure_epsilon"] <= 1
    assert row["objective"] == pytest.approx(loss, rel=1e-12)
    assert "repaired" in row["note"]
    _, _, law_of_larger_budget, _ = list_rounded_laws(1 + 1e-9)[name]  # more than rounding
    row = baseline_row(
        wb.frontier(
            family, **question, epsilon=1, baseline={"mine": law_of_larger_budget}, baselines=False
        ),
        "mine",
    )
    assert row["private"] is False
    assert row.get("note") is None
