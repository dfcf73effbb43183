"""Rounded floats: which answers are neighbours, and which answer a value of the data is."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import workbench as wb
from workbench.data.tolerance import PointIndex, find_nearest_positions
from workbench.mechanisms.channel import Channel
from workbench.questions.neighbour_parts import label_connected_parts

ROOT = Path(__file__).parents[3]
TENTHS = np.linspace(0, 1, 11)
EDGES = np.histogram_bin_edges(TENTHS, bins=10)
SINGLE = np.arange(0, 1.01, 0.1, dtype=np.float32)


def count_neighbour_pairs(values: object, max_shift: object) -> int:
    """Return the number of pairs of answers that differ by at most max_shift."""
    return len(wb.FiniteQuery(values, max_shift=max_shift).neighbour_pairs)


@pytest.mark.parametrize(
    ("values", "max_shift", "pairs"),
    [
        (TENTHS, 0.1, 10),
        (TENTHS, 0.2, 19),
        (TENTHS, "0.1", 10),
        (TENTHS, 0.3 - 0.2, 10),
        (np.arange(0, 1.01, 0.1), 0.1, 10),
        ([i * 0.1 for i in range(11)], 0.1, 10),
        ([i / 3 for i in range(7)], 1 / 3, 6),
        (np.arange(0, 7.1, 0.7), 0.7, 10),
        ((EDGES[1:] + EDGES[:-1]) / 2, 0.1, 9),
        (np.cumsum([0.1] * 11), 0.1, 10),
        (TENTHS * 1e-9, 1e-10, 10),
        (TENTHS * 1e9, 1e8, 10),
        (-TENTHS, 0.1, 10),
        (np.linspace(5e6, 5e6 + 1, 11), 0.1, 10),
        (1.7e9 + np.arange(11) / 10, 0.1, 10),
        (",".join(map(repr, TENTHS.tolist())), "0.1", 10),
        ([repr(x) for x in TENTHS.tolist()], 0.1, 10),
        (pd.Series(TENTHS), 0.1, 10),
        (SINGLE, 0.1, 10),
        (SINGLE, np.float32(0.1), 10),
        (SINGLE.tolist(), 0.1, 10),
        (",".join(map(str, SINGLE)), 0.1, 10),
        (",".join(map(str, SINGLE.tolist())), 0.1, 10),
        (np.arange(0, 1.01, 0.1, dtype=np.float16), 0.1, 10),
        (np.linspace(1e6, 1e6 + 10, 11, dtype=np.float32), 1, 10),
        ([Fraction(i, 3) for i in range(4)], Fraction(1, 3), 3),
        ("0..1:0.1", "0.1", 10),
        (range(100), 1, 99),
        ("0..10", 1e10, 55),
    ],
)
def test_no_neighbour_is_lost_to_rounding(values: object, max_shift: object, pairs: int) -> None:
    assert count_neighbour_pairs(values, max_shift) == pairs


def test_the_design_of_a_computed_grid_is_that_of_the_decimals() -> None:
    computed = wb.design(wb.FiniteQuery(TENTHS, max_shift=0.1), epsilon=1, loss="absolute")
    decimals = wb.design(wb.FiniteQuery("0..1:0.1", max_shift="0.1"), epsilon=1, loss="absolute")
    assert computed.objective == pytest.approx(decimals.objective, rel=1e-9)
    assert computed.objective == pytest.approx(0.0728544476, rel=1e-8)
    assert "10 pairs of neighbours" in str(computed)


def test_certificate_and_both_checkers_claim_the_intended_pairs(tmp_path: Path) -> None:
    file = tmp_path / "tenths.json"
    wb.design(wb.FiniteQuery(TENTHS, max_shift=0.1), epsilon=1).save(file)
    pairs = json.loads(file.read_text())["mechanism"]["pairs"]
    assert {tuple(sorted(pair)) for pair in pairs} == {(i, i + 1) for i in range(10)}
    assert len(wb.check(file).mechanism.pairs) == 20
    checked = subprocess.run(
        [sys.executable, ROOT / "tools" / "check_certificate.py", file],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0
    assert "20" in checked.stdout


@pytest.mark.parametrize("seed", range(20))
def test_no_relation_has_fewer_pairs_than_an_exact_comparison(seed: int) -> None:
    draw = np.random.default_rng(seed)
    values = np.unique(np.round(draw.uniform(-5, 5, 30), int(draw.integers(1, 4))))
    shift = float(np.round(draw.uniform(0.5, 3), 1))
    exact = [Fraction(repr(x)) for x in values.tolist()]
    near = {
        (i, j)
        for i in range(len(exact))
        for j in range(i)
        if abs(exact[i] - exact[j]) <= Fraction(repr(shift))
    }
    assert {
        tuple(sorted(pair, reverse=True))
        for pair in wb.FiniteQuery(values, max_shift=shift).neighbour_pairs
    } >= near


@pytest.mark.parametrize(
    "values", [[0, 1e-10, 1], [0, 1e-12, 1], [Fraction(0), Fraction(1, 10**12), 1]]
)
def test_a_tolerance_that_could_join_different_answers_is_refused(values: list[object]) -> None:
    with pytest.raises(wb.InvalidRequest, match=r"^inputs must be at least .* list of pairs"):
        wb.FiniteQuery(values, max_shift=1)
    assert wb.FiniteQuery(values, neighbours="consecutive").neighbour_pairs == ((0, 1), (1, 2))


@pytest.mark.parametrize(
    ("relation", "pairs"),
    [
        ("within 0.1 L1", 220),
        ("within 0.1 L2", 220),
        ("within 0.1 Linf", 420),
        ("within 0.2 L1", 618),
    ],
)
def test_grids_of_places_keep_their_neighbours(relation: str, pairs: int, tmp_path: Path) -> None:
    grid = np.array([(a, b) for a in TENTHS for b in TENTHS])
    file = tmp_path / "places.csv"
    pd.DataFrame(grid, columns=["x", "y"]).to_csv(file, index=False)
    for places in (grid, grid.tolist(), grid.astype(np.float32), pd.DataFrame(grid), file):
        assert len(wb.FiniteQuery(places, neighbours=relation).neighbour_pairs) == pairs


def test_a_csv_of_pandas_keeps_its_neighbours(tmp_path: Path) -> None:
    file = tmp_path / "answers.csv"
    pd.Series(np.arange(0, 1.01, 0.1), name="x").to_csv(file, index=False)
    assert "0.30000000000000004" in file.read_text()
    assert count_neighbour_pairs(file, "0.1") == 10


def test_values_are_not_changed() -> None:
    assert wb.FiniteQuery(TENTHS, max_shift=0.1).inputs[3] == Fraction("0.30000000000000004")


def test_published_values_match_answers_within_the_tolerance() -> None:
    channel = wb.design(wb.FiniteQuery(TENTHS, max_shift=0.1), epsilon=1).mechanism
    assert isinstance(channel, Channel)
    for value in (
        0.3,
        "0.3",
        0.30000000000000004,
        np.float32(0.3),
        float(np.float32(0.3)),
        Fraction(3, 10),
    ):
        assert channel.find_row(value) == 3
    for value in (0.31, "0.300001", 0.35):
        with pytest.raises(wb.InvalidRequest, match=r"^answer must be one of"):
            channel.find_row(value)
    column = [0.1, 0.2, 0.3, 0.7]
    assert wb.sample(channel, 1, answer=0.7).shape == (1,)
    exact = wb.audit(channel, loss="absolute", data=[0.3]).error
    computed = wb.audit(channel, loss="absolute", data=[0.30000000000000004]).error
    assert exact.mean_error == computed.mean_error
    assert channel.sample(np.array(column)).shape == (4,)
    labels = wb.Labels(TENTHS)
    assert labels.find_positions(column).tolist() == [1, 2, 3, 7]
    assert labels.find_positions(np.array(column, dtype=np.float32)).tolist() == [1, 2, 3, 7]
    with pytest.raises(wb.InvalidRequest, match=r"^every label must be one of the 11 labels"):
        labels.find_positions([0.15])


def test_a_column_of_labels_matches_computed_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """0.3 is the label 0.30000000000000004, and is not snapped to the one below it."""
    from workbench.cli import main

    column, out = tmp_path / "column.csv", tmp_path / "out.csv"
    column.write_text("x\n" + "0.3\n" * 40)
    labels = "0.1,0.2,0.30000000000000004"
    for snap in ([], ["--snap"]):
        line = [
            "privatise",
            "labels",
            str(column),
            "--column",
            "x",
            "--labels",
            labels,
            "--epsilon",
            "30",
        ]
        with pytest.raises(SystemExit) as stop:
            main([*line, *snap, "--out", str(out), "--overwrite"])
        assert stop.value.code == 0, capsys.readouterr().err
        assert [float(cell) for cell in out.read_text().split()[1:]] == pytest.approx([0.3] * 40)


def test_listed_pairs_and_weights_name_computed_answers() -> None:
    assert wb.FiniteQuery(TENTHS, neighbours=[(0.2, 0.3), (0.3, 0.4)]).neighbour_pairs == (
        (2, 3),
        (3, 4),
    )
    with pytest.raises(wb.InvalidRequest, match="which is no input"):
        wb.FiniteQuery(TENTHS, neighbours=[(0.2, 0.31)])


def test_the_number_of_pairs_and_parts_is_reported(tmp_path: Path) -> None:
    apart = wb.FiniteQuery([0, 1, 5, 6], max_shift=1)
    design = wb.design(apart, epsilon=1)
    assert "2 pairs of neighbours" in str(design)
    assert "2 separate parts" in str(design)
    design.save(tmp_path / "apart.json")
    assert "4 ordered pairs of neighbours, in 2 separate parts" in str(
        wb.check(tmp_path / "apart.json")
    )
    table = wb.recommend(answers=[0, 1, 5, 6], max_shift=1, epsilon=1)
    assert "2 pairs of neighbours" in table.title
    assert any("2 separate parts" in sentence for sentence in table.sentences)
    assert "(6 pairs)" in str(wb.FiniteQuery([0, 1, 5, 6], neighbours="all"))
    curved = wb.design(apart, notion="zcdp", rho=0.5)
    assert "2 separate parts" in str(curved)


def test_separate_parts_of_relations_are_counted() -> None:
    draw = np.random.default_rng(0)
    for _ in range(20):
        pairs = draw.integers(0, 30, (int(draw.integers(1, 25)), 2)).tolist()
        reached = np.eye(30, dtype=bool)
        for i, j in pairs:
            reached[i, j] = reached[j, i] = True
        for _ in range(5):
            reached = reached @ reached
        assert label_connected_parts(30, pairs).tolist() == reached.argmax(axis=1).tolist()


def test_positions_of_close_numbers_are_exact() -> None:
    close = np.array([1.0, np.nextafter(1.0, 2)])
    assert find_nearest_positions(close, close).tolist() == [0, 1]
    index = PointIndex([Fraction(1), Fraction(10**20 + 1, 10**20), "a"])
    assert [index.find(Fraction(1)), index.find("a"), index.find("b")] == [0, 2, None]
    assert index.find(Fraction(2 * 10**20 + 1, 2 * 10**20)) is None


def test_a_frontier_reports_separate_parts_of_its_relation() -> None:
    apart = wb.frontier(wb.FiniteQuery([0, 1, 5, 6], max_shift=1), epsilon=1, baselines=False)
    assert "2 separate parts" in " ".join(apart.sentences)
    assert not wb.frontier(
        wb.FiniteQuery("0..3", max_shift=1), epsilon=1, baselines=False
    ).sentences
    even = wb.frontier(wb.ModuloNoise(5, shifts=[2]), epsilon=1, baselines=False)
    assert "2 separate parts" in " ".join(even.sentences)


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (wb.ModuloNoise(5, shifts=[2]), 2),
        (wb.ModuloNoise(5, shifts=[2, 3]), 1),
        (wb.ModuloNoise(11, shifts=[8]), 4),
        (wb.ModuloNoise(sizes=[4, 6], shifts=[(2, 0), (0, 4)]), 4),
        (wb.ModuloNoise(sizes=[4, 6], shifts=[(1, 1)]), 2),
    ],
)
def test_differences_that_generate_a_subgroup_leave_parts(
    question: wb.ModuloNoise, parts: int
) -> None:
    assert question.part_count == parts
    words = wb.design(question, epsilon=1).words
    assert any(f"{parts} separate parts" in word for word in words) == (parts > 1)


@pytest.mark.parametrize("step", [1 / 3, 0.1, 1 / 7, 3.141592653589793])
@pytest.mark.parametrize("times", [1, 3])
def test_a_file_of_float32_may_have_a_shift_of_float64(step: float, times: int) -> None:
    """The shift is no float32, which says nothing about the answers."""
    for spell in (str, lambda x: repr(float(x))):
        answers = [spell(x) for x in np.linspace(0, 16 * step, 17, dtype=np.float32)]
        question = wb.FiniteQuery(answers, max_shift=sum([step] * times))
        assert len(question.neighbour_pairs) == sum(17 - apart for apart in range(1, times + 1))
