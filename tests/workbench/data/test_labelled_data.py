"""Test that labelled data are read by their labels: every value belongs to the answer of its label.

A pandas Series or DataFrame with an index, and a CSV file with a column of labels, may have any
order. The default index 0, 1, 2, ... is no label: it means positions.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import workbench as wb
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.channel import Channel
from workbench.pipeline.loss_tables import make_loss_table, read_loss
from workbench.privacy.loading import read_mechanism_file

DATA = pd.Series([3] * 6 + [0] + [1] * 2 + [2])  # One answer of 0..3 for each person.
COUNTS = DATA.value_counts()  # The index begins with the most frequent answer, 3.
WEIGHTS = [1, 2, 1, 6]  # The same counts in the order of the answers 0, 1, 2, 3.
SHARES = tuple(Fraction(weight, 10) for weight in WEIGHTS)


def compute_optimal_loss(question: Any, **request: Any) -> float:
    """Return the optimal expected loss at ε = 1."""
    return wb.design(question, epsilon=1, **request).objective


@pytest.mark.parametrize(
    "prior",
    [
        COUNTS,
        COUNTS.to_frame(),
        COUNTS.sort_index(),
        COUNTS.astype("Int64"),
        COUNTS.rename(str),
    ],
)
def test_counts_of_values_are_a_prior_by_answer(prior: Any) -> None:
    assert wb.FiniteQuery("0..3", max_shift=1, prior=prior).prior == SHARES
    assert wb.Labels([0, 1, 2, 3], prior).prior.tolist() == [0.1, 0.2, 0.1, 0.6]


def test_counts_of_values_are_a_prior_of_clamped_noise() -> None:
    clamped = wb.IntegerNoise(1, clamp=(0, 3))
    by_label = compute_optimal_loss(clamped, prior=COUNTS)
    assert by_label == compute_optimal_loss(clamped, prior=WEIGHTS)


def test_counts_of_values_are_a_prior_of_noise_modulo_n_plus_1() -> None:
    group = wb.ModuloNoise(3, max_shift=1)
    by_label = compute_optimal_loss(group, loss="prior-squared", prior=COUNTS / 10)
    assert by_label == compute_optimal_loss(group, loss="prior-squared", prior=SHARES)


@pytest.mark.parametrize("answers", ["0..3", "5..8", "a,b,c,d"])
def test_the_default_index_means_positions(answers: str) -> None:
    prior = wb.FiniteQuery(answers, neighbours="all", prior=pd.Series(WEIGHTS)).prior
    assert prior == SHARES


def test_texts_are_labels() -> None:
    by_text = pd.Series(WEIGHTS, index=["d", "c", "b", "a"])
    question = wb.FiniteQuery("a,b,c,d", neighbours="all", prior=by_text)
    assert question.prior == SHARES[::-1]


def test_tuples_are_labels_of_places() -> None:
    by_place = pd.Series([1, 3], index=pd.MultiIndex.from_tuples([(1, 0), (0, 0)]))
    question = wb.FiniteQuery([(0, 0), (1, 0)], neighbours="all", prior=by_place)
    assert question.prior == (Fraction(3, 4), Fraction(1, 4))


def test_a_rounded_float_is_the_label_of_its_decimal() -> None:
    by_float = pd.Series([1.0, 2.0], index=[0.3, 0.1])
    question = wb.FiniteQuery([0.1, 0.1 + 0.2], neighbours="all", prior=by_float)
    assert question.prior == (Fraction(2, 3), Fraction(1, 3))


@pytest.mark.parametrize(
    ("answers", "prior", "message_pattern"),
    [
        (
            "0..4",
            COUNTS,
            r"no label for 4; where that means 0: prior\.reindex\(answers, fill_value=0\)",
        ),
        ("0..2", COUNTS, "labels that are none of them: 3"),
        (
            "5..8",
            pd.Series(WEIGHTS).sort_values(),
            "none of them: 0, 2, 1, 3; no label for 5, 6, 7, 8",
        ),
        ("0..3", pd.Series(WEIGHTS, index=[0, 1, 1, 2]), "a label twice: 1, 1; no label for 3"),
        ("0..3", pd.Series(WEIGHTS, index=[True, False, "x", None]), "none of them"),
        ("5..8", pd.Series([0, *WEIGHTS])[1:], "none of them: 1, 2, 3, 4"),
    ],
)
def test_an_error_lists_the_labels_that_are_no_answers_and_the_answers_without_a_label(
    answers: str, prior: Any, message_pattern: str
) -> None:
    pattern = rf"^prior must be labelled by the . answers.*{message_pattern}"
    with pytest.raises(wb.InvalidRequest, match=pattern):
        wb.FiniteQuery(answers, max_shift=1, prior=prior)


# Loss of each output (column) at each answer (row).
LOSS = pd.DataFrame([[0, 1, 4], [2, 0, 1], [5, 3, 0]], index=[*"abc"], columns=[*"abc"])


def read_loss_table(question: Any, loss: Any) -> list[list[Fraction]]:
    """Return the rows of the loss table that a question reads from a table or a file."""
    return make_loss_table(question, read_loss(loss, "loss")).values.tolist()


@pytest.mark.parametrize("rows", ["abc", "cab", "cba"])
@pytest.mark.parametrize("columns", ["abc", "bca", "cba"])
def test_a_table_of_losses_is_read_by_the_labels_of_its_rows_and_columns(
    rows: str, columns: str, tmp_path: Path
) -> None:
    question = wb.FiniteQuery("a,b,c", neighbours="all", prior=[1, 2, 3])
    expected = read_loss_table(question, LOSS.to_numpy())
    reordered = LOSS.loc[[*rows], [*columns]]
    assert read_loss_table(question, reordered) == expected
    file = tmp_path / "loss.csv"
    reordered.to_csv(file)
    assert read_loss_table(question, file) == expected
    LOSS[[*columns]].to_csv(file, index=False)
    assert read_loss_table(question, file) == expected
    LOSS.loc[[*rows]].to_csv(file, header=False)
    assert read_loss_table(question, file) == expected


def test_designs_and_recommendations_read_a_reordered_table_of_losses() -> None:
    reordered = LOSS.loc[[*"cab"], [*"bca"]]
    request = {"answers": "a,b,c", "neighbours": "all", "prior": [1, 2, 3]}
    by_label = wb.design("channel", epsilon=1, loss=reordered, **request).objective
    by_position = wb.design("channel", epsilon=1, loss=LOSS.to_numpy(), **request).objective
    assert by_label == by_position
    # Value of the current program, pinned.
    assert by_position == pytest.approx(0.79419665, rel=1e-8)
    result = wb.recommend(loss=reordered, epsilon=1, only="best channel", **request)
    assert result.rows[0]["objective"] == pytest.approx(by_position, rel=1e-8)


def test_a_table_of_losses_with_unknown_labels_is_refused(tmp_path: Path) -> None:
    question = wb.FiniteQuery("a,b,c", neighbours="all")
    with pytest.raises(
        wb.InvalidRequest, match=r"^the rows of loss must be .* none of them: z; no label for a"
    ):
        wb.design(question, epsilon=1, loss=LOSS.rename(index={"a": "z"}))
    with pytest.raises(wb.InvalidRequest, match=r"^the columns of loss must be .* none of them: z"):
        wb.design(question, epsilon=1, loss=LOSS.rename(columns={"a": "z"}))
    file = tmp_path / "loss.csv"
    LOSS.rename(columns={"a": "z"}).to_csv(file, index=False)
    with pytest.raises(wb.InvalidRequest, match=r"^the columns of loss must be .* none of them: z"):
        wb.design(question, epsilon=1, loss=file)


@pytest.mark.parametrize(
    "text",
    [
        "0,1,2\n1,0,1\n2,1,0\n",
        "0,1,2\n0,1,2\n1,0,1\n2,1,0\n",
        "0,0,1,2\n1,1,0,1\n2,2,1,0\n",
        ",0,1,2\n0,0,1,2\n1,1,0,1\n2,2,1,0\n",
        ",2,1,0\n2,0,1,2\n1,1,0,1\n0,2,1,0\n",
        "output 0,output 1,output 2\n0,1,2\n1,0,1\n2,1,0\n",
        "a,b,c\n0,1,2\n1,0,1\n2,1,0\n",
    ],
    ids=[
        "no labels",
        "header",
        "index",
        "header and index",
        "reordered labels",
        "titles",
        "names",
    ],
)
def test_the_shape_of_a_file_of_losses_decides_whether_it_has_labels(
    text: str, tmp_path: Path
) -> None:
    """Every file means |o - x| on 0..2, whose first row looks like a header: 0, 1, 2."""
    file = tmp_path / "loss.csv"
    file.write_text(text)
    question = wb.FiniteQuery("0..2", max_shift=1)
    assert read_loss_table(question, file) == [[abs(o - x) for o in range(3)] for x in range(3)]


@pytest.mark.parametrize(
    ("text", "message_pattern"),
    [
        ("output 2,output 1,output 0\n2,1,0\n1,0,1\n0,1,2\n", "titles in their order"),
        ("0,1,2\n1,0,1\n", "3 rows and 3 columns"),
    ],
)
def test_a_file_of_losses_in_another_order_or_shape_is_refused(
    text: str, message_pattern: str, tmp_path: Path
) -> None:
    file = tmp_path / "loss.csv"
    file.write_text(text)
    with pytest.raises(wb.InvalidRequest, match=message_pattern):
        read_loss_table(wb.FiniteQuery("0..2", max_shift=1), file)


# Distances of answers. b and c are no neighbours.
DISTANCES = pd.DataFrame(
    [[0, 1, 2], [1, 0, np.inf], [2, np.inf, 0]], index=[*"abc"], columns=[*"abc"]
)


@pytest.mark.parametrize(
    "matrix",
    [
        DISTANCES,
        DISTANCES.loc[[*"cab"], [*"bca"]],
        DISTANCES.loc[[*"cab"]],
        DISTANCES[[*"cba"]],
    ],
)
def test_a_matrix_of_distances_is_read_by_its_labels(matrix: pd.DataFrame) -> None:
    question = wb.FiniteQuery("a,b,c", neighbours=matrix)
    assert question.pairs == ((0, 1), (0, 2))
    assert question.distances == (1, 2)


def test_a_matrix_of_distances_with_other_labels_is_refused() -> None:
    with pytest.raises(wb.InvalidRequest, match="none of them: z"):
        wb.FiniteQuery("a,b,c", neighbours=DISTANCES.rename(columns={"a": "z"}))
    with pytest.raises(wb.InvalidRequest, match="no label for c"):
        wb.FiniteQuery("a,b,c", neighbours=DISTANCES.iloc[:, :2])
    crossed = pd.DataFrame([[0, 3], [3, 0]], index=["a", "b"], columns=["b", "a"])
    with pytest.raises(wb.InvalidRequest, match="0 on its diagonal"):
        wb.FiniteQuery("a,b", neighbours=crossed)


def test_the_index_of_a_table_of_pairs_is_ignored() -> None:
    pairs = pd.DataFrame({"from": ["a", "b"], "to": ["b", "c"]}, index=[5, 9])
    assert wb.FiniteQuery("a,b,c", neighbours=pairs).pairs == ((0, 1), (1, 2))
    graph = pd.DataFrame({"from": ["a", "b", "a"], "to": ["b", "c", "c"], "d": [1, 2, 3]})
    question = wb.FiniteQuery("a,b,c", neighbours=graph)
    assert question.pairs == ((0, 1), (0, 2), (1, 2))
    assert question.distances == (1, 3, 2)


def test_losses_of_noise_modulo_4_are_labelled_by_noise_values() -> None:
    group = wb.ModuloNoise(3, max_shift=1)
    by_label = compute_optimal_loss(group, loss=pd.Series({2: 5, 1: 1, 3: 1, 0: 0}))
    assert by_label == compute_optimal_loss(group, loss=[0, 1, 5, 1])


def test_losses_of_noise_of_vectors_are_labelled_by_vectors() -> None:
    vectors = wb.ModuloNoise(sizes=[2, 2], shifts=[(0, 1)])
    index = pd.MultiIndex.from_tuples([(1, 1), (0, 1), (1, 0), (0, 0)])
    by_label = compute_optimal_loss(vectors, loss=pd.Series([2, 1, 1, 0], index=index))
    assert by_label == compute_optimal_loss(vectors, loss=[0, 1, 1, 2])


def test_losses_of_noise_on_the_integers_are_labelled_by_sizes() -> None:
    noise = wb.IntegerNoise(1)
    by_label = compute_optimal_loss(noise, loss=pd.Series({2: 5, 1: 1, 0: 0}))
    assert by_label == compute_optimal_loss(noise, loss=[0, 1, 5])
    pattern = r"^loss must be labelled by the 3 sizes of the noise"
    with pytest.raises(wb.InvalidRequest, match=pattern):
        compute_optimal_loss(noise, loss=pd.Series({2: 5, 1: 1, 7: 0}))


def test_probabilities_of_noise_are_labelled_by_noise_values() -> None:
    group = wb.ModuloNoise(3, max_shift=1)
    law = AdditiveNoise.from_pmf(group, pd.Series({1: 0.25, 0: 0.5, 3: 0.25, 2: 0.0}))
    assert law.pmf.tolist() == [0.5, 0.25, 0.0, 0.25]


def test_counts_as_data_of_an_audit_are_weights() -> None:
    channel = wb.design(wb.FiniteQuery("0..3", max_shift=1), epsilon=1).mechanism
    error_of_rows = wb.audit(channel, loss="absolute", data=DATA).error.mean_error
    error_of_counts = wb.audit(channel, loss="absolute", data=COUNTS).error.mean_error
    assert error_of_counts == error_of_rows
    # Without the answer 0 the mean error differs, so the equality above is no coincidence.
    error_without_zeros = wb.audit(channel, loss="absolute", data=DATA[DATA > 0]).error.mean_error
    assert error_without_zeros != error_of_rows


def test_labels_are_refused_where_only_positions_have_a_meaning() -> None:
    labelled = pd.DataFrame([[0.5, 0.5], [0.4, 0.6]], index=[1, 0])
    with pytest.raises(wb.InvalidRequest, match=r"^rows must be read by position"):
        Channel.from_rows(labelled)
    unlabelled = labelled.reset_index(drop=True)
    assert Channel.from_rows(unlabelled) == Channel.from_rows(labelled.to_numpy())
    with pytest.raises(wb.InvalidRequest, match=r"^prior must be read by position"):
        wb.recommend(range="0..3", prior=COUNTS, epsilon=1)


class LabelledArray:
    """An array with coordinates, like a DataArray of xarray, which the tests do not need."""

    dims = ("answer",)

    def __init__(self, values: list[int], labels: list[int]) -> None:
        self.values = np.array(values)
        self.coords = {"answer": np.array(labels)}

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.values


def test_an_array_with_coordinates_is_read_by_them() -> None:
    prior = LabelledArray([6, 2, 1, 1], labels=[3, 1, 0, 2])
    assert wb.FiniteQuery("0..3", max_shift=1, prior=prior).prior == SHARES


def test_a_table_of_a_baseline_is_read_by_its_labels() -> None:
    law = pd.DataFrame(
        [[0.6, 0.2, 0.2], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6]], index=[0, 1, 2], columns=[0, 1, 2]
    )
    request = {"answers": "0..2", "neighbours": "all", "epsilon": 2, "only": "own"}
    expected = wb.recommend(**request, baseline=law.to_numpy()).rows[0]["objective"]
    for matrix in (law, law.loc[[2, 0, 1], [1, 2, 0]]):
        assert wb.recommend(**request, baseline=matrix).rows[0]["objective"] == expected


def test_the_index_of_a_series_of_a_baseline_contains_noise_values() -> None:
    request = {"answers": "0..2", "neighbours": "all", "epsilon": 2, "only": "own"}
    noise = {0: 0.5, 1: 0.25, -1: 0.25}
    expected = wb.recommend(**request, baseline=noise).rows[0]["notes"]
    assert wb.recommend(**request, baseline=pd.Series(noise)).rows[0]["notes"] == expected


@pytest.mark.parametrize(
    "text", ["answer,weight\n3,6\n1,2\n0,1\n2,1\n", "3,6\n1,2\n0,1\n2,1\n", "1\n2\n1\n6\n"]
)
def test_a_file_of_answers_and_weights_is_read_by_its_answers(text: str, tmp_path: Path) -> None:
    file = tmp_path / "prior.csv"
    file.write_text(text)
    clamped = wb.IntegerNoise(1, clamp=(0, 3))
    assert compute_optimal_loss(clamped, prior=file) == compute_optimal_loss(clamped, prior=WEIGHTS)
    labels = wb.design("labels", labels="0..3", prior=str(file), epsilon=1)
    assert labels.question.prior.tolist() == [0.1, 0.2, 0.1, 0.6]
    assert wb.FiniteQuery("0..3", max_shift=1, prior=file).prior[3] == Fraction(6, 10)


def test_a_file_of_noise_values_and_losses_is_read_by_its_values(tmp_path: Path) -> None:
    file = tmp_path / "numbers.csv"
    file.write_text("answer,share\n3,.6\n1,.2\n0,.1\n2,.1\n")
    group = wb.ModuloNoise(3, max_shift=1)
    by_label = compute_optimal_loss(group, loss="prior-squared", prior=file)
    assert by_label == compute_optimal_loss(group, loss="prior-squared", prior=SHARES)
    file.write_text("value,loss\n2,5\n1,1\n3,1\n0,0\n")
    assert compute_optimal_loss(group, loss=file) == compute_optimal_loss(group, loss=[0, 1, 5, 1])
    file.write_text("2,5\n1,1\n0,0\n")
    noise = wb.IntegerNoise(1)
    assert compute_optimal_loss(noise, loss=file) == compute_optimal_loss(noise, loss=[0, 1, 5])
    with pytest.raises(wb.InvalidRequest, match="no label for 3"):
        compute_optimal_loss(group, loss=file)


def test_weights_have_the_order_in_which_the_labels_are_listed(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text("4\n0\n1\n")
    expected = [1 / 6, 2 / 6, 3 / 6]  # The probabilities of the labels 0, 1, 4.
    by_label = pd.Series([1, 2, 3], index=[0, 1, 4])
    by_position = pd.Series([3, 1, 2], index=[0, 1, 2])
    for labels in ("4,0,1", file, str(file)):
        for prior in ([3, 1, 2], "3,1,2", np.array([3.0, 1.0, 2.0]), by_position, by_label):
            assert wb.Labels(labels, prior=prior).prior.tolist() == expected
        design = wb.design("labels", labels=str(labels), prior=[3, 1, 2], epsilon=1)
        assert design.question.prior.tolist() == expected


def test_too_few_weights_of_labels_are_refused() -> None:
    with pytest.raises(wb.InvalidRequest, match="one weight for each of the 3 labels"):
        wb.Labels("4,0,1", prior=[3, 1])


def test_only_tables_with_labels_are_accepted_for_labels_that_are_not_increasing() -> None:
    labels = wb.Labels("4,0,1", prior=[3, 1, 2])
    loss = pd.DataFrame([[0, 8, 6], [8, 0, 2], [6, 2, 0]], index=[4, 0, 1], columns=[4, 0, 1])
    increasing_labels = wb.Labels([0, 1, 4], prior=[1, 2, 3])
    expected = compute_optimal_loss(increasing_labels, loss=[[0, 2, 8], [2, 0, 6], [8, 6, 0]])
    assert compute_optimal_loss(labels, loss=loss) == expected
    pattern = r"^labels must be in increasing order if .* by position"
    for option in ({"loss": loss.to_numpy()}, {"neighbours": [(0, 1)]}):
        with pytest.raises(wb.InvalidRequest, match=pattern):
            compute_optimal_loss(labels, **option)
    with pytest.raises(wb.InvalidRequest, match=r"increasing"):
        compute_optimal_loss(wb.Labels("0,1,4"), outputs="4,0,1")


@pytest.mark.parametrize(
    "text",
    [
        ",c,a,b\nc,0,2,inf\na,2,0,1\nb,inf,1,0\n",
        "a,b,c\n0,1,2\n1,0,inf\n2.0,inf,0\n",
        "a,0,1,2\nb,1,0,inf\nc,2,inf,0\n",
        "0,1,2\n1,0,inf\n2,inf,0\n",
        "from,to,d\nc,a,2\na,b,1\n",
    ],
)
def test_a_file_of_distances_is_read_by_its_labels(text: str, tmp_path: Path) -> None:
    file = tmp_path / "distances.csv"
    file.write_text(text)
    question = wb.FiniteQuery("a,b,c", neighbours=file)
    assert question.pairs == ((0, 1), (0, 2))
    assert question.distances == (1, 2)
    file.write_text(text.replace("c", "z"))
    if "c" in text:
        with pytest.raises(wb.InvalidRequest, match=r"none of them: z|z, which is no input"):
            wb.FiniteQuery("a,b,c", neighbours=file)


def test_an_audit_reads_a_table_by_its_labels(tmp_path: Path) -> None:
    """Both tables are the same channel on the answers 0, 1, 2, in two orders of rows and columns.

    The answers 0 and 2 are no neighbours, although their rows are adjacent in the second table.
    """
    file = tmp_path / "table.csv"
    tables = ["x,0,5\n0,.1,.9\n1,.5,.5\n2,.9,.1\n", "x,5,0\n2,.1,.9\n0,.9,.1\n1,.5,.5\n"]
    # The mean of |output - answer|, answer by answer.
    mean_error = (0.9 * 5 + (0.5 * 1 + 0.5 * 4) + (0.9 * 2 + 0.1 * 3)) / 3
    for text in tables:
        file.write_text(text)
        audit = wb.audit(read_mechanism_file(file).with_neighbours(max_shift=1), loss="absolute")
        assert audit.pure_epsilon == pytest.approx(math.log(5))
        assert audit.error.mean_error == pytest.approx(mean_error)


def test_pairs_of_rows_of_a_table_with_labels_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text("x,5,0\n2,.1,.9\n0,.9,.1\n1,.5,.5\n")
    with pytest.raises(wb.InvalidRequest, match="pairs count rows"):
        read_mechanism_file(file).with_neighbours(pairs=[(0, 1)])


def test_a_table_with_a_repeated_label_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text("x,0,5\n0,.1,.9\n0,.5,.5\n2,.9,.1\n")
    with pytest.raises(wb.CorruptFile, match="different label"):
        read_mechanism_file(file)


def test_noise_is_a_baseline_only_if_the_answers_are_increasing() -> None:
    noise = {0: 0.5, 1: 0.25, -1: 0.25}
    request = {"neighbours": "all", "epsilon": 2, "only": "own"}
    row = wb.recommend(answers="0..2", baseline=noise, **request).rows[0]
    assert "its expected loss" in row["notes"]
    row = wb.recommend(answers="2,0,1", baseline=noise, **request).rows[0]
    assert "increasing order" in row["notes"]


def test_a_matrix_is_a_baseline_only_if_the_labels_are_increasing() -> None:
    design, baseline = wb.frontier(
        "labels", labels="2,0,1", epsilon=2, method="lp", baselines=False, baseline=np.eye(3)
    )
    assert design["failure"] is None
    assert "increasing order" in baseline["failure"]
