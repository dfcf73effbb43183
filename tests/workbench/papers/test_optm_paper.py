"""Test the reproduction of Cai et al.: every printed cell, errata, and errors of the loaders.

The paper is about quantizers: mechanisms that publish one of a few outputs ("bins") for a number in
[-1, 1]. OPTM, MVU, RQM and ERM are quantizers of the paper, and the exact quantizer is the optimum
of this program. MAE is the mean absolute error. `workbench.papers.optm` computes the artifacts, the
figures and tables of the paper.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
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

# Half a unit of the last printed digit of a mean absolute error.
HALF_UNIT = 0.0005


def make_artifact(name: str) -> Artifact:
    """Compute an artifact of the paper with its default parameters, which are fast."""
    return PAPER.artifacts[name](full=False)


def list_surprises(artifact: Artifact) -> list[str]:
    """Return the names of printed numbers that differ from ours without a known erratum."""
    return [comparison.what for comparison in artifact.comparisons if comparison.surprising]


@pytest.fixture(scope="module")
def few_starts() -> Iterator[None]:
    """Search outputs from fewer starts on fewer knots, which is faster. The facts still hold."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "design_quantizer", partial(design_quantizer, starts=1, knots=11))
        yield


# Table 1: mean absolute errors for uniform inputs, by mechanism and ε.


@pytest.fixture(scope="module")
def table_1(few_starts: None) -> Artifact:
    """Return Table 1 of the paper, computed with few starts."""
    return make_artifact("table1")


def test_table_1_has_no_surprise(table_1: Artifact):
    assert list_surprises(table_1) == []
    assert table_1.table["certified"].all()


@pytest.mark.parametrize("name", ["OPTM", "MVU", "RQM", "ERM"])
def test_every_printed_cell_of_table_1_is_compared(table_1: Artifact, name: str):
    printed_cells = [cell for cell in get_printed_numbers()["table1"][name] if cell != "N/A"]
    compared_cells = [
        comparison.printed
        for comparison in table_1.comparisons
        if comparison.what.startswith(f"MAE of {name}, ")
    ]
    assert sorted(compared_cells) == sorted(printed_cells)


def test_most_cells_of_table_1_agree_with_ours(table_1: Artifact):
    close_cells = [
        comparison for comparison in table_1.comparisons if abs(comparison.difference) <= HALF_UNIT
    ]
    assert len(close_cells) >= 8


def test_the_cells_of_optm_in_table_1_agree_with_the_authors_program(table_1: Artifact):
    table = table_1.table
    errors = table[table["mechanism"] == "OPTM, as in the authors' code"]["mae (51 points)"]
    # The errors that the authors' public program returns at these bins, for ε = 0.5, 1 and 1.5.
    assert errors.tolist() == pytest.approx([3.904076, 1.881828, 1.179376], abs=1e-6)
    for comparison in table_1.comparisons:
        if "OPTM" in comparison.what:
            assert comparison.agrees
            assert comparison.tolerance == HALF_UNIT


def test_the_exact_quantizer_has_the_smallest_error_in_table_1(table_1: Artifact):
    for _, rows in table_1.table.groupby("epsilon"):
        is_exact = rows["mechanism"].str.startswith("exact quantizer")
        is_published = rows["mechanism"].str.startswith(("OPTM,", "MVU", "RQM", "ERM"))
        optimum = rows[rows["mechanism"] == "exact quantizer, OPTM's bins"]["mae"].iloc[0]
        assert (rows[is_published]["mae"] > optimum).all()
        # The paper computes errors at 51 inputs.
        largest_exact_error = rows[is_exact]["mae (51 points)"].max()
        printed_errors = pd.to_numeric(rows["printed"], errors="coerce").dropna()
        assert (printed_errors > largest_exact_error).all()
        assert (rows["mae"] >= rows["limit, proven"]).all()


@pytest.mark.parametrize("mechanism", ["MVU", "RQM", "ERM"])
def test_a_cell_of_table_1_has_the_printed_error(mechanism: str):
    (row,) = tables.compare_mechanism(mechanism, 1)
    assert row["mae (51 points)"] == pytest.approx(row["printed"], abs=HALF_UNIT)
    assert row["certified"]
    assert row["mae"] >= row["limit, proven"]


# Table 2: mean absolute errors for normal inputs, by mechanism and standard deviation σ. Its
# searches take most of the time of this file.


@pytest.fixture(scope="module")
def table_2(few_starts: None) -> Artifact:
    """Return Table 2 of the paper, computed with few starts."""
    return make_artifact("table2")


def test_table_2_has_no_surprise(table_2: Artifact):
    assert list_surprises(table_2) == []
    assert table_2.table["certified"].all()


def test_the_exact_quantizer_has_the_smallest_error_in_table_2(table_2: Artifact):
    for _, rows in table_2.table.groupby("sigma"):
        errors = rows.set_index("mechanism")["mae"]
        printed_errors = rows["printed"].dropna()
        assert len(printed_errors) == 3
        is_published = errors.index.str.startswith(("OPTM", "MVU", "RQM"))
        smallest_error = min(*errors[is_published], *printed_errors)
        assert errors["exact quantizer, Table 6's bins"] < smallest_error
        assert errors["exact quantizer, 4 optimised bins"] < smallest_error


@pytest.mark.parametrize(
    ("name", "verdict"), [("OPTM", "agrees"), ("MVU", "differs: erratum"), ("RQM", "agrees")]
)
def test_only_the_printed_errors_of_mvu_differ_in_table_2(
    table_2: Artifact, name: str, verdict: str
):
    verdicts = {c.verdict for c in table_2.comparisons if name in c.what}
    assert verdicts == {verdict}


def test_the_standard_errors_of_table_2_are_small(table_2: Artifact):
    """Outputs are averaged exactly, not drawn."""
    assert table_2.table["standard error of 1000 inputs"].max() < 0.007


def test_optm_in_table_2_has_the_bins_of_the_authors_program(table_2: Artifact):
    """The expected values are results of osu-srml/DP_Linprog's asy_optm.py, run with exact masses.

    Table 6 prints the bins for σ = 0.1 and 0.2.
    """
    table = table_2.table
    optm = table[table["mechanism"] == "OPTM, as in the authors' code"].set_index("sigma")
    assert optm["mae"].tolist() == pytest.approx([1.7740, 1.8386, 1.9693], abs=1e-4)
    assert optm["outputs"].tolist() == ["-4 0.2 0.6 4", "-4 0.2 0.6 4", "-4 -0.2 0.6 4"]


def test_the_standard_error_agrees_with_drawn_inputs():
    """The standard error is the one of the mean of 1000 inputs."""
    quantizer = rqm("-2.7,-0.9,0.9,2.7", "0.22")
    generator = np.random.default_rng(3)
    inputs = np.clip(generator.normal(loc=0.5, scale=0.3, size=400_000), -1, 1)
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
    # The mean squared error that `workbench design quantizer --bins=-3,-0.5,0.5,3 --epsilon 1
    # --method product --loss squared` prints.
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
    artifact = make_artifact(name)
    assert (artifact.name, len(artifact.table)) == (name, count)
    assert (artifact.table["mae"] > 0).all()


def test_published_mechanisms_are_above_the_limit(monkeypatch):
    monkeypatch.setattr(tables, "MAX_OUTPUTS", 6)  # 16 outputs take half a minute at every ε.
    assert len(make_artifact("fig2").table) >= 2
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
    """The inputs of two labels are normal vectors whose means are 2.5 apart in each coordinate.

    `train` returns the accuracy of each run after each of its 25 batches.
    """
    generator = np.random.default_rng(0)
    labels = generator.integers(low=0, high=2, size=200)
    inputs = generator.normal(size=(200, 3)) + 2.5 * labels[:, None]
    training = Training(batch=8, clip=0.1, rate=1.0, runs=6)
    exact_accuracies = train(inputs, labels, None, training)
    quantized_accuracies = train(inputs, labels, rqm("-2.7,-0.9,0.9,2.7", "0.22"), training)
    assert exact_accuracies.shape == (6, 25)
    assert exact_accuracies[:, -1].mean() > 0.85
    assert exact_accuracies[:, -5:].mean() >= quantized_accuracies[:, -5:].mean() - 0.02


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
