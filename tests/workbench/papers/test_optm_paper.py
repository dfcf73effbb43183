"""Test the paper of Cai et al.: every printed cell, errata, and errors of the loaders.

MAE is the mean absolute error. OPTM, MVU, RQM and ERM are the mechanisms of the paper.
"""

from __future__ import annotations

import math
import struct
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

from workbench.errors import CorruptFile, WorkbenchError
from workbench.families.quantizer.search import find_largest_q_rqm
from workbench.mechanisms.baselines.two_bin import rqm
from workbench.papers.artifact import Artifact
from workbench.papers.optm import PAPER, errata, tables
from workbench.papers.optm.common import (
    design_quantizer,
    get_printed_numbers,
    list_published_mechanisms,
    simulate_quantizer,
)
from workbench.papers.optm.sgd import Training, load_mnist, train
from workbench.papers.optm.tables import compute_standard_error
from workbench.papers.optm.vectors import (
    compute_metric_floor,
    design_squared_error_optm,
    draw_ball_vectors,
    make_ball_density,
)
from workbench.privacy.audit import audit_extremes
from workbench.questions.density import normal_density, uniform_density


@pytest.fixture
def one_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search outputs from fewer starts on fewer knots, which is faster. The facts still hold."""
    monkeypatch.setattr(tables, "design_quantizer", partial(design_quantizer, starts=1, knots=11))


@pytest.mark.usefixtures("one_start")
def test_table_1_has_every_cell_and_no_surprise():
    artifact = PAPER.artifacts["table1"](False)
    assert not [c.what for c in artifact.comparisons if c.surprising]
    printed = get_printed_numbers()["table1"]
    for name in ("OPTM", "MVU", "RQM", "ERM"):
        cells = [c for c in printed[name] if c != "N/A"]
        assert sorted(
            c.printed for c in artifact.comparisons if c.what.startswith(f"MAE of {name}, ")
        ) == sorted(cells)
    close = [c for c in artifact.comparisons if abs(c.difference) <= 0.0005]
    assert len(close) >= 8
    table = artifact.table
    assert table["certified"].all()
    # The errors that the authors' public program returns at these bins.
    code = table[table["mechanism"] == "OPTM, as in the authors' code"]["mae (51 points)"]
    assert code.tolist() == pytest.approx([3.904076, 1.881828, 1.179376], abs=1e-6)
    assert all(c.agrees and c.tolerance == 0.0005 for c in artifact.comparisons if "OPTM" in c.what)
    for _, part in table.groupby("epsilon"):
        best = part[part["mechanism"] == "exact quantizer, OPTM's bins"]["mae"].iloc[0]
        others = part[part["mechanism"].str.startswith(("OPTM,", "MVU", "RQM", "ERM"))]
        assert (others["mae"] > best).all()
        ours = part[part["mechanism"].str.startswith("exact quantizer")]["mae (51 points)"].max()
        assert (pd.to_numeric(part["printed"], errors="coerce").dropna() > ours).all()
        assert (part["mae"] >= part["limit, proven"]).all()


@pytest.mark.parametrize("mechanism", ["MVU", "RQM", "ERM"])
def test_a_cell_of_table_1_has_the_printed_error(mechanism: str):
    (row,) = tables.compare_mechanism(mechanism, 1)
    assert row["mae (51 points)"] == pytest.approx(row["printed"], abs=0.0005)
    assert row["certified"]
    assert row["mae"] >= row["limit, proven"]


@pytest.mark.usefixtures("one_start")
def test_table_2_has_the_verdicts_the_order_and_the_bins_of_the_authors_program():
    """One computation serves all facts, because its searches take most of this file's time."""
    artifact = PAPER.artifacts["table2"](False)
    check_that_the_exact_quantizer_has_the_smallest_error(artifact)
    check_verdicts_of_table_2(artifact)
    check_bins_of_the_authors_program(artifact)


def check_that_the_exact_quantizer_has_the_smallest_error(artifact: Artifact):
    """Compare the exact quantizer with computed and printed errors, and check all verdicts."""
    assert not [c.what for c in artifact.comparisons if c.surprising]
    assert artifact.table["certified"].all()
    for _, part in artifact.table.groupby("sigma"):
        values = part.set_index("mechanism")["mae"]
        printed = part["printed"].dropna()
        assert len(printed) == 3
        names = [name for name in values.index if name.startswith(("OPTM", "MVU", "RQM"))]
        least_error = min(*values[names], *printed)
        assert values["exact quantizer, Table 6's bins"] < least_error
        assert values["exact quantizer, 4 optimised bins"] < least_error


def check_verdicts_of_table_2(artifact: Artifact):
    """Check that only the printed errors of MVU differ, which is an erratum."""
    # The standard error is this small because outputs are averaged exactly, not drawn.
    assert artifact.table["standard error of 1000 inputs"].max() < 0.007
    verdicts = {c.what: c.verdict for c in artifact.comparisons}
    assert {v for what, v in verdicts.items() if "OPTM" in what} == {"agrees"}
    assert {v for what, v in verdicts.items() if "MVU" in what} == {"differs: erratum"}
    assert {v for what, v in verdicts.items() if "RQM" in what} == {"agrees"}


def check_bins_of_the_authors_program(artifact: Artifact):
    """Check the results of osu-srml/DP_Linprog's asy_optm.py, which was run with exact masses.

    Table 6 prints the bins for σ = 0.1 and 0.2.
    """
    table = artifact.table
    code = table[table["mechanism"] == "OPTM, as in the authors' code"].set_index("sigma")
    assert code["mae"].tolist() == pytest.approx([1.7740, 1.8386, 1.9693], abs=1e-4)
    assert code["outputs"].tolist() == ["-4 0.2 0.6 4", "-4 0.2 0.6 4", "-4 -0.2 0.6 4"]


def test_the_standard_error_agrees_with_drawn_inputs():
    quantizer = rqm("-2.7,-0.9,0.9,2.7", "0.22")
    inputs = np.clip(np.random.default_rng(3).normal(0.5, 0.3, 400_000), -1, 1)
    drawn_error = quantizer.error_at(inputs).std() / np.sqrt(1000)
    standard_error = compute_standard_error(quantizer, normal_density(0.5, 0.3))
    assert standard_error == pytest.approx(drawn_error, rel=0.01)


def test_published_mechanisms_are_private_up_to_rounding():
    for epsilon in ("0.5", "1", "1.5"):
        for name, quantizer in list_published_mechanisms(epsilon).items():
            assert audit_extremes(quantizer, 0).pure_epsilon <= float(epsilon) + 1e-9, name


def test_theorem_5_as_printed_allows_a_mechanism_that_is_not_private():
    numbers = errata.check_theorem5()
    # Computed apart from the program, by (4) at the one-sided limits of all bins.
    assert numbers["printed_epsilon"] == pytest.approx(4.327018, abs=1e-6)
    assert numbers["exact_epsilon"] == pytest.approx(5.876422, abs=1e-6)
    assert numbers["is_ordered"]


def test_no_mechanism_satisfies_the_pair_of_theorem_5_at_the_last_bin():
    assert errata.check_theorem5()["last_limit"] == 0


def _satisfies_theorem_6(inner: float, outer: float) -> bool:
    """Return whether any q satisfies the rows of Theorem 6 that do not mention ε.

    The bins are ±inner and ±outer. The variables are q_1(1), q_2(1), q_2(2), q_3(1), q_3(2) and
    q_3(3), and the rows are written as differences that must be >= 0.
    """
    rows = [
        # q_j(i) >= q_{j+1}(i), then q_j(i) <= q_j(i+1).
        [1, -1, 0, 0, 0, 0],
        [0, 1, 0, -1, 0, 0],
        [0, 0, 1, 0, -1, 0],
        [0, -1, 1, 0, 0, 0],
        [0, 0, 0, -1, 1, 0],
        [0, 0, 0, 0, -1, 1],
        # q_2(2) >= q_3(3).
        [0, 0, 1, 0, 0, -1],
        # The two pairs of k = 2, r = 4: B_4 - B_3 = outer - inner, B_4 - B_2 = outer + inner.
        [0, inner - outer, 0, inner + outer, 0, 0],
        [inner - outer, inner + outer, 0, 0, 0, 0],
    ]
    sums = [[1, 0, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]
    result = linprog(np.zeros(6), -np.array(rows), np.zeros(9), sums, np.ones(3), (0, 1))
    return bool(result.status == 0)


@pytest.mark.parametrize("ratio", [1.5, 2.99, 3.01, 5])
def test_theorem_6_excludes_outer_bins_beyond_three_times_the_inner_ones(ratio: float):
    assert _satisfies_theorem_6(0.9, ratio * 0.9) == (ratio <= 3)


def test_vectors_between_knots_exceed_the_squared_distance_budget():
    """At .1 the law is .8 times that of the knot 0 and .2 times that of .5, which differ by e^(1/4).

    Four coordinates have four times the loss of one.
    """
    numbers = errata.check_metric_vectors()
    assert numbers["exact_epsilon"] == pytest.approx(4 * math.log(0.8 + 0.2 * math.exp(0.25)))
    assert numbers["knot_epsilon"] < numbers["exact_epsilon"] <= numbers["proven_epsilon"]


def test_the_best_of_the_family_of_optm_for_the_squared_error_is_private():
    quantizer = design_squared_error_optm("1", uniform_density())
    assert audit_extremes(quantizer, 0).pure_epsilon <= 1
    # `workbench design quantizer --bins=-3,-0.5,0.5,3 --epsilon 1 --method product --loss squared`.
    assert quantizer.mse() == pytest.approx(5.068357, abs=1e-5)


def test_every_erratum_is_shown_by_its_check():
    assert PAPER.errata is not None
    assert [e["place"] for e in PAPER.errata() if not e["holds"]] == []


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("table3", 2),
        ("table4", 4),
        ("table5", 4),
        ("table6", 3),
        ("table7", 2),
        ("table8", 2),
        ("table9", 2),
    ],
)
def test_a_table_of_parameters_has_one_row_for_each_printed_mechanism(name: str, count: int):
    artifact = PAPER.artifacts[name](False)
    assert (artifact.name, len(artifact.table)) == (name, count)
    assert (artifact.table["mae"] > 0).all()


def test_published_mechanisms_are_above_the_limit(monkeypatch):
    monkeypatch.setattr(tables, "MAX_OUTPUTS", 6)  # 16 outputs take half a minute at every ε.
    assert len(PAPER.artifacts["fig2"](False).table) >= 2
    assert all(row["above it, %"] > 0 for row in tables.measure_distance_to_limit("1"))


def test_rqm_with_the_largest_q_is_private_if_one_exists():
    quantizer = find_largest_q_rqm("-3,-1,1,3", 1)
    assert quantizer is not None
    assert audit_extremes(quantizer, 0).meets("pure", 1)
    assert find_largest_q_rqm("-1.5,-1,1,1.5", 1) is None


def test_vectors_of_the_ball_have_the_variance_of_their_density():
    drawn = draw_ball_vectors(2000, np.random.default_rng(0))
    assert np.linalg.norm(drawn, axis=1).max() <= 1
    density = make_ball_density()
    t, weights = density.quadrature([0.0])
    # In dimension d = 100 the variance E t² of a coordinate t is 1/(d + 2).
    assert float(weights @ t**2) == pytest.approx(1 / 102, rel=1e-6)
    assert drawn.var() == pytest.approx(1 / 102, rel=0.03)


def test_the_floor_of_metric_privacy_on_two_points():
    """For n = 2 and B = 3 the bound (n - 1) ln((B + 1)/(B - 1))/4 is ln(2)/4."""
    assert compute_metric_floor(2, 3.0) == pytest.approx(np.log(2) / 4)


def test_training_learns_and_quantization_does_not_help():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    x = rng.normal(size=(200, 3)) + 2.5 * y[:, None]
    training = Training(batch=8, clip=0.1, rate=1.0, runs=6)
    clean = train(x, y, None, training)
    noisy = train(x, y, rqm("-2.7,-0.9,0.9,2.7", "0.22"), training)
    assert clean.shape == (6, 25)
    assert clean[:, -1].mean() > 0.85
    assert clean[:, -5:].mean() >= noisy[:, -5:].mean() - 0.02


def write_idx(path: Path, array: np.ndarray) -> None:
    """Write an array of bytes in the IDX format, MNIST's format."""
    path.write_bytes(
        struct.pack(">HBB", 0, 8, array.ndim)
        + struct.pack(f">{array.ndim}I", *array.shape)
        + array.tobytes()
    )


def test_missing_files_of_mnist_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("WORKBENCH_MNIST", raising=False)
    with pytest.raises(WorkbenchError, match="MNIST is not on this machine"):
        load_mnist()
    monkeypatch.setenv("WORKBENCH_MNIST", str(tmp_path))
    with pytest.raises(WorkbenchError, match="train-images-idx3-ubyte"):
        load_mnist()


def test_mnist_is_read_or_refused_as_corrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WORKBENCH_MNIST", str(tmp_path))
    write_idx(tmp_path / "train-images-idx3-ubyte", np.full((3, 28, 28), 255, np.uint8))
    write_idx(tmp_path / "train-labels-idx1-ubyte", np.array([1, 2, 3], np.uint8))
    x, y = load_mnist()
    assert x.shape == (3, 784)
    assert x.max() == 1
    assert y.tolist() == [1, 2, 3]
    # The header announces nine labels, but three bytes follow.
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01\0\0\0\x09abc")
    with pytest.raises(CorruptFile, match="IDX"):
        load_mnist()


def test_a_simulated_output_is_the_quantile_of_a_uniform_number():
    """Inputs are on both sides of the inner outputs, at which the law jumps, and outside ±1."""
    quantizer = rqm(["-2", "-1/2", "1/2", "2"], "0.4")
    x = np.linspace(-1.2, 1.2, 2401).reshape(7, 343)
    outputs = simulate_quantizer(quantizer, x, np.random.default_rng(0))
    uniforms = np.random.default_rng(0).random(x.shape)
    cumulative = np.cumsum(quantizer.probabilities(x, clip=True), axis=-1)[..., :-1]
    expected_indices = (uniforms[..., None] >= cumulative).sum(axis=-1)
    assert np.array_equal(outputs, quantizer.outputs[expected_indices])
