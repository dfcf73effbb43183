"""Labelled data are read by their labels: every value belongs to the answer of its label."""

from __future__ import annotations

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

DATA = pd.Series([3] * 6 + [0] + [1] * 2 + [2])
COUNTS = DATA.value_counts()  # The index begins with the most frequent answer, 3.
WEIGHTS = [1, 2, 1, 6]


def compute_optimal_loss(question: Any, **request: Any) -> float:
    """Return the optimal expected loss at ε = 1."""
    return wb.design(question, epsilon=1, **request).objective


def test_counts_of_values_are_a_prior_by_answer() -> None:
    assert COUNTS.index[0] == 3
    shares = tuple(Fraction(weight, 10) for weight in WEIGHTS)
    for prior in (
        COUNTS,
        COUNTS.to_frame(),
        COUNTS.sort_index(),
        COUNTS.astype("Int64"),
        COUNTS.rename(str),
    ):
        assert wb.FiniteQuery("0..3", max_shift=1, prior=prior).prior == shares
        assert wb.Labels([0, 1, 2, 3], prior).prior.tolist() == [0.1, 0.2, 0.1, 0.6]
    clamped = wb.IntegerNoise(1, clamp=(0, 3))
    assert compute_optimal_loss(clamped, prior=COUNTS) == compute_optimal_loss(
        clamped, prior=WEIGHTS
    )
    group = wb.ModuloNoise(3, max_shift=1)
    listed = [Fraction(weight, 10) for weight in WEIGHTS]
    by_label = compute_optimal_loss(group, loss="prior-squared", prior=COUNTS / 10)
    assert by_label == compute_optimal_loss(group, loss="prior-squared", prior=listed)


def test_the_default_index_means_positions() -> None:
    for answers in ("0..3", "5..8", "a,b,c,d"):
        prior = wb.FiniteQuery(answers, neighbours="all", prior=pd.Series(WEIGHTS)).prior
        assert prior == (Fraction(1, 10), Fraction(1, 5), Fraction(1, 10), Fraction(3, 5))
    named = pd.Series(WEIGHTS, index=["d", "c", "b", "a"])
    assert wb.FiniteQuery("a,b,c,d", neighbours="all", prior=named).prior[0] == Fraction(3, 5)
    places = pd.Series([1, 3], index=pd.MultiIndex.from_tuples([(1, 0), (0, 0)]))
    assert wb.FiniteQuery([(0, 0), (1, 0)], neighbours="all", prior=places).prior == (
        Fraction(3, 4),
        Fraction(1, 4),
    )
    computed = pd.Series([1.0, 2.0], index=[0.3, 0.1])
    assert wb.FiniteQuery([0.1, 0.1 + 0.2], neighbours="all", prior=computed).prior == (
        Fraction(2, 3),
        Fraction(1, 3),
    )


@pytest.mark.parametrize(
    ("answers", "prior", "words"),
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
def test_other_labels_are_refused_with_the_sets_that_differ(
    answers: str, prior: Any, words: str
) -> None:
    with pytest.raises(
        wb.InvalidRequest, match=rf"^prior must be labelled by the . answers.*{words}"
    ):
        wb.FiniteQuery(answers, max_shift=1, prior=prior)


LOSS = pd.DataFrame([[0, 1, 4], [2, 0, 1], [5, 3, 0]], index=[*"abc"], columns=[*"abc"])


@pytest.mark.parametrize("rows", ["abc", "cab", "cba"])
@pytest.mark.parametrize("columns", ["abc", "bca", "cba"])
def test_a_matrix_of_losses_is_aligned_on_both_axes(
    rows: str, columns: str, tmp_path: Path
) -> None:
    question = wb.FiniteQuery("a,b,c", neighbours="all", prior=[1, 2, 3])
    moved = LOSS.loc[[*rows], [*columns]]
    expected = make_loss_table(question, read_loss(LOSS.to_numpy(), "loss")).values.tolist()
    assert make_loss_table(question, read_loss(moved, "loss")).values.tolist() == expected
    file = tmp_path / "loss.csv"
    moved.to_csv(file)
    assert make_loss_table(question, read_loss(file, "loss")).values.tolist() == expected
    LOSS[[*columns]].to_csv(file, index=False)
    assert make_loss_table(question, read_loss(file, "loss")).values.tolist() == expected
    LOSS.loc[[*rows]].to_csv(file, header=False)
    assert make_loss_table(question, read_loss(file, "loss")).values.tolist() == expected
    assert compute_optimal_loss(question, loss=moved) == compute_optimal_loss(
        question, loss=LOSS.to_numpy()
    )
    table = wb.recommend(
        answers="a,b,c",
        neighbours="all",
        prior=[1, 2, 3],
        loss=moved,
        epsilon=1,
        only="best channel",
    )
    assert table.rows[0]["objective"] == pytest.approx(0.79419665, rel=1e-8)


def test_a_matrix_of_losses_under_other_labels_is_refused(tmp_path: Path) -> None:
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


def test_whether_a_file_of_losses_has_a_header_is_decided_by_its_shape(tmp_path: Path) -> None:
    """|o - x| on 0..2 begins with 0, 1, 2, as a header of positions does."""
    question = wb.FiniteQuery("0..2", max_shift=1)
    distances = [[abs(i - j) for j in range(3)] for i in range(3)]
    for name, text in {
        "bare": "0,1,2\n1,0,1\n2,1,0\n",
        "header": "0,1,2\n0,1,2\n1,0,1\n2,1,0\n",
        "index": "0,0,1,2\n1,1,0,1\n2,2,1,0\n",
        "both": ",0,1,2\n0,0,1,2\n1,1,0,1\n2,2,1,0\n",
        "moved": ",2,1,0\n2,0,1,2\n1,1,0,1\n0,2,1,0\n",
    }.items():
        file = tmp_path / f"{name}.csv"
        file.write_text(text)
        assert make_loss_table(question, read_loss(file, "loss")).floats.tolist() == distances, name
    for header in ("output 0,output 1,output 2", "a,b,c"):
        file.write_text(f"{header}\n0,1,2\n1,0,1\n2,1,0\n")
        assert make_loss_table(question, read_loss(file, "loss")).floats.tolist() == distances
    file.write_text("output 2,output 1,output 0\n2,1,0\n1,0,1\n0,1,2\n")
    with pytest.raises(wb.InvalidRequest, match="titles in their order"):
        make_loss_table(question, read_loss(file, "loss"))
    file.write_text("0,1,2\n1,0,1\n")
    with pytest.raises(wb.InvalidRequest, match="3 rows and 3 columns"):
        make_loss_table(question, read_loss(file, "loss"))


DISTANCES = pd.DataFrame(
    [[0, 1, 2], [1, 0, np.inf], [2, np.inf, 0]], index=[*"abc"], columns=[*"abc"]
)


def test_a_matrix_of_distances_protects_the_pairs_it_names() -> None:
    for matrix in (
        DISTANCES,
        DISTANCES.loc[[*"cab"], [*"bca"]],
        DISTANCES.loc[[*"cab"]],
        DISTANCES[[*"cba"]],
    ):
        question = wb.FiniteQuery("a,b,c", neighbours=matrix)
        assert (question.pairs, question.distances) == (((0, 1), (0, 2)), (1, 2))
    with pytest.raises(wb.InvalidRequest, match="none of them: z"):
        wb.FiniteQuery("a,b,c", neighbours=DISTANCES.rename(columns={"a": "z"}))
    with pytest.raises(wb.InvalidRequest, match="no label for c"):
        wb.FiniteQuery("a,b,c", neighbours=DISTANCES.iloc[:, :2])
    two = pd.DataFrame([[0, 3], [3, 0]], index=["a", "b"], columns=["b", "a"]).loc[["b", "a"]]
    with pytest.raises(wb.InvalidRequest, match="0 on its diagonal"):
        wb.FiniteQuery("a,b", neighbours=two.iloc[::-1])
    pairs = pd.DataFrame({"from": ["a", "b"], "to": ["b", "c"]}, index=[5, 9])
    assert wb.FiniteQuery("a,b,c", neighbours=pairs).pairs == ((0, 1), (1, 2))
    graph = pd.DataFrame({"from": ["a", "b", "a"], "to": ["b", "c", "c"], "d": [1, 2, 3]})
    assert wb.FiniteQuery("a,b,c", neighbours=graph).distances == (1, 3, 2)


def test_losses_of_noise_values_are_labelled_by_them() -> None:
    group = wb.ModuloNoise(3, max_shift=1)
    assert compute_optimal_loss(
        group, loss=pd.Series({2: 5, 1: 1, 3: 1, 0: 0})
    ) == compute_optimal_loss(group, loss=[0, 1, 5, 1])
    vectors = wb.ModuloNoise(sizes=[2, 2], shifts=[(0, 1)])
    index = pd.MultiIndex.from_tuples([(1, 1), (0, 1), (1, 0), (0, 0)])
    assert compute_optimal_loss(
        vectors, loss=pd.Series([2, 1, 1, 0], index=index)
    ) == compute_optimal_loss(vectors, loss=[0, 1, 1, 2])
    noise = wb.IntegerNoise(1)
    assert compute_optimal_loss(noise, loss=pd.Series({2: 5, 1: 1, 0: 0})) == compute_optimal_loss(
        noise, loss=[0, 1, 5]
    )
    with pytest.raises(
        wb.InvalidRequest, match=r"^loss must be labelled by the 3 sizes of the noise"
    ):
        compute_optimal_loss(noise, loss=pd.Series({2: 5, 1: 1, 7: 0}))
    law = AdditiveNoise.from_pmf(group, pd.Series({1: 0.25, 0: 0.5, 3: 0.25, 2: 0.0}))
    assert law.pmf.tolist() == [0.5, 0.25, 0.0, 0.25]


def test_counts_as_data_of_an_audit_are_weights() -> None:
    channel = wb.design(wb.FiniteQuery("0..3", max_shift=1), epsilon=1).mechanism
    by_rows = wb.audit(channel, loss="absolute", data=DATA).error.mean_error
    assert wb.audit(channel, loss="absolute", data=COUNTS).error.mean_error == by_rows
    assert (
        wb.audit(channel, loss="absolute", data=DATA[DATA > 0].iloc[::-1]).error.mean_error
        != by_rows
    )


def test_labels_are_refused_for_unlabelled_questions() -> None:
    moved = pd.DataFrame([[0.5, 0.5], [0.4, 0.6]], index=[1, 0])
    with pytest.raises(wb.InvalidRequest, match=r"^rows must be read by position"):
        Channel.from_rows(moved)
    assert Channel.from_rows(moved.reset_index(drop=True)) == Channel.from_rows(moved.to_numpy())
    with pytest.raises(wb.InvalidRequest, match=r"^prior must be read by position"):
        wb.recommend(range="0..3", prior=COUNTS, epsilon=1)


class Labelled:
    """An array with coordinates, as xarray has them."""

    dims = ("answer",)

    def __init__(self, values: list[int], labels: list[int]) -> None:
        self.values, self.coords = np.array(values), {"answer": np.array(labels)}

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.values


def test_arrays_with_coordinates_are_aligned() -> None:
    prior = Labelled([6, 2, 1, 1], [3, 1, 0, 2])
    assert (
        wb.FiniteQuery("0..3", max_shift=1, prior=prior).prior
        == wb.FiniteQuery("0..3", max_shift=1, prior=COUNTS).prior
    )


def test_baselines_are_aligned() -> None:
    law = pd.DataFrame(
        [[0.6, 0.2, 0.2], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6]], index=[0, 1, 2], columns=[0, 1, 2]
    )
    asked = {"answers": "0..2", "neighbours": "all", "epsilon": 2, "only": "own"}
    costs = {
        wb.recommend(**asked, baseline=matrix).rows[0]["objective"]
        for matrix in (law.to_numpy(), law, law.loc[[2, 0, 1], [1, 2, 0]])
    }
    assert len(costs) == 1
    noise = {0: 0.5, 1: 0.25, -1: 0.25}
    same = {
        wb.recommend(**asked, baseline=pmf).rows[0]["notes"] for pmf in (noise, pd.Series(noise))
    }
    assert len(same) == 1


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
    shares = [Fraction(weight, 10) for weight in WEIGHTS]
    assert compute_optimal_loss(group, loss="prior-squared", prior=file) == compute_optimal_loss(
        group, loss="prior-squared", prior=shares
    )
    file.write_text("value,loss\n2,5\n1,1\n3,1\n0,0\n")
    assert compute_optimal_loss(group, loss=file) == compute_optimal_loss(group, loss=[0, 1, 5, 1])
    file.write_text("2,5\n1,1\n0,0\n")
    assert compute_optimal_loss(wb.IntegerNoise(1), loss=file) == compute_optimal_loss(
        wb.IntegerNoise(1), loss=[0, 1, 5]
    )
    with pytest.raises(wb.InvalidRequest, match="no label for 3"):
        compute_optimal_loss(group, loss=file)


def test_weights_follow_the_labels_as_they_are_listed(tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text("4\n0\n1\n")
    right = [1 / 6, 2 / 6, 3 / 6]  # of 0, 1, 4
    by_label = pd.Series([1, 2, 3], index=[0, 1, 4])
    positions = pd.Series([3, 1, 2], index=[0, 1, 2])
    for listed in ("4,0,1", file, str(file)):
        for prior in (
            [3, 1, 2],
            "3,1,2",
            np.array([3.0, 1.0, 2.0]),
            pd.Series([3, 1, 2]),
            positions,
            by_label,
        ):
            assert wb.Labels(listed, prior=prior).prior.tolist() == right
        asked = wb.design("labels", labels=str(listed), prior=[3, 1, 2], epsilon=1)
        assert asked.question.prior.tolist() == right
    with pytest.raises(wb.InvalidRequest, match="one weight for each of the 3 labels"):
        wb.Labels("4,0,1", prior=[3, 1])


def test_arrays_beside_reordered_labels_are_aligned_or_refused() -> None:
    listed = wb.Labels("4,0,1", prior=[3, 1, 2])
    rows = pd.DataFrame([[0, 8, 6], [8, 0, 2], [6, 2, 0]], index=[4, 0, 1], columns=[4, 0, 1])
    right = compute_optimal_loss(
        wb.Labels([0, 1, 4], prior=[1, 2, 3]), loss=[[0, 2, 8], [2, 0, 6], [8, 6, 0]]
    )
    assert compute_optimal_loss(listed, loss=rows) == right
    for given in ({"loss": rows.to_numpy()}, {"neighbours": [(0, 1)]}):
        with pytest.raises(
            wb.InvalidRequest, match=r"^labels must be in increasing order if .* by position"
        ):
            compute_optimal_loss(listed, **given)
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
def test_a_file_of_distances_protects_the_pairs_it_names(text: str, tmp_path: Path) -> None:
    file = tmp_path / "distances.csv"
    file.write_text(text)
    question = wb.FiniteQuery("a,b,c", neighbours=file)
    assert (question.pairs, question.distances) == (((0, 1), (0, 2)), (1, 2))
    file.write_text(text.replace("c", "z"))
    if "c" in text:
        with pytest.raises(wb.InvalidRequest, match=r"none of them: z|z, which is no input"):
            wb.FiniteQuery("a,b,c", neighbours=file)


def test_an_audit_reads_a_table_by_its_labels(tmp_path: Path) -> None:
    """Rows 0 and 2 are no neighbours at a distance of 1, wherever they stand."""
    file = tmp_path / "table.csv"
    bodies = ["x,0,5\n0,.1,.9\n1,.5,.5\n2,.9,.1\n", "x,5,0\n2,.1,.9\n0,.9,.1\n1,.5,.5\n"]
    for body in bodies:
        file.write_text(body)
        found = wb.audit(read_mechanism_file(file).with_neighbours(max_shift=1), loss="absolute")
        assert found.pure_epsilon == pytest.approx(1.6094379124)
        assert found.error.mean_error == pytest.approx(
            (0.9 * 5 + (0.5 + 0.5 * 4) + (0.9 * 2 + 0.1 * 3)) / 3
        )
    with pytest.raises(wb.InvalidRequest, match="pairs count rows"):
        read_mechanism_file(file).with_neighbours(pairs=[(0, 1)])
    file.write_text("x,0,5\n0,.1,.9\n0,.5,.5\n2,.9,.1\n")
    with pytest.raises(wb.CorruptFile, match="different label"):
        read_mechanism_file(file)


def test_noise_is_no_baseline_of_answers_in_another_order(tmp_path: Path) -> None:
    noise = {0: 0.5, 1: 0.25, -1: 0.25}
    asked = {"neighbours": "all", "epsilon": 2, "only": "own"}
    assert (
        "its expected loss"
        in wb.recommend(answers="0..2", baseline=noise, **asked).rows[0]["notes"]
    )
    row = wb.recommend(answers="2,0,1", baseline=noise, **asked).rows[0]
    assert "increasing order" in row["notes"]
    labels = wb.frontier(
        "labels", labels="2,0,1", epsilon=2, method="lp", baselines=False, baseline=np.eye(3)
    )
    assert ["increasing order" in str(row["failure"]) for row in labels] == [False, True]
