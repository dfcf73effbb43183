"""Test rounded floats: which answers are neighbours, and to which answer a number belongs.

Answers such as 0.1 + 0.2 are slightly wrong decimals. They must have the neighbours of the decimals
that they stand for.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import workbench as wb
from workbench.cli import main
from workbench.data.tolerance import PointIndex, find_nearest_positions
from workbench.mechanisms.channel import Channel
from workbench.questions.neighbour_parts import label_connected_parts

ROOT = Path(__file__).parents[3]
TENTHS = np.linspace(0, 1, 11)  # 0, 0.1, ..., 1. The entry of 0.3 is 0.30000000000000004.
EDGES = np.histogram_bin_edges(TENTHS, bins=10)
SINGLE = np.arange(0, 1.01, 0.1, dtype=np.float32)  # The same numbers as float32.


def count_neighbour_pairs(values: object, max_shift: object) -> int:
    """Return the number of pairs of answers that differ by at most max_shift."""
    return len(wb.FiniteQuery(values, max_shift=max_shift).neighbour_pairs)


@pytest.mark.parametrize(
    ("values", "max_shift", "pair_count"),
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
def test_rounded_answers_have_the_neighbours_of_the_decimals(
    values: object, max_shift: object, pair_count: int
) -> None:
    assert count_neighbour_pairs(values, max_shift) == pair_count


def test_the_design_of_a_computed_grid_has_the_loss_of_the_design_of_the_decimals() -> None:
    computed = wb.design(wb.FiniteQuery(TENTHS, max_shift=0.1), epsilon=1, loss="absolute")
    decimals = wb.design(wb.FiniteQuery("0..1:0.1", max_shift="0.1"), epsilon=1, loss="absolute")
    assert computed.objective == pytest.approx(decimals.objective, rel=1e-9)
    integers = wb.design(wb.FiniteQuery("0..10", max_shift=1), epsilon=1, loss="absolute")
    assert computed.objective == pytest.approx(integers.objective / 10, rel=1e-8)
    assert "10 pairs of neighbours" in str(computed)


def test_the_certificate_and_both_checkers_name_the_neighbours_of_the_decimals(
    tmp_path: Path,
) -> None:
    file = tmp_path / "tenths.json"
    wb.design(wb.FiniteQuery(TENTHS, max_shift=0.1), epsilon=1).save(file)
    pairs = json.loads(file.read_text())["mechanism"]["pairs"]
    assert {tuple(sorted(pair)) for pair in pairs} == {(i, i + 1) for i in range(10)}
    assert len(wb.check(file).mechanism.pairs) == 20
    checker = subprocess.run(
        [sys.executable, ROOT / "tools" / "check_certificate.py", file],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checker.returncode == 0
    assert "20" in checker.stdout


@pytest.mark.parametrize("seed", range(20))
def test_all_neighbours_of_an_exact_comparison_are_neighbours(seed: int) -> None:
    generator = np.random.default_rng(seed)
    decimals = int(generator.integers(1, 4))
    values = np.unique(np.round(generator.uniform(low=-5, high=5, size=30), decimals))
    max_shift = float(np.round(generator.uniform(0.5, 3), 1))
    exact_values = [Fraction(repr(x)) for x in values.tolist()]
    exact_max_shift = Fraction(repr(max_shift))
    exact_pairs = set()
    for j, i in itertools.combinations(range(len(exact_values)), 2):
        if exact_values[i] - exact_values[j] <= exact_max_shift:
            exact_pairs.add(frozenset((i, j)))
    pairs = wb.FiniteQuery(values, max_shift=max_shift).neighbour_pairs
    assert exact_pairs <= set(map(frozenset, pairs))


@pytest.mark.parametrize(
    "values", [[0, 1e-10, 1], [0, 1e-12, 1], [Fraction(0), Fraction(1, 10**12), 1]]
)
def test_a_tolerance_that_could_join_different_answers_is_refused(values: list[object]) -> None:
    with pytest.raises(wb.InvalidRequest, match=r"^inputs must be at least .* list of pairs"):
        wb.FiniteQuery(values, max_shift=1)
    assert wb.FiniteQuery(values, neighbours="consecutive").neighbour_pairs == ((0, 1), (1, 2))


@pytest.mark.parametrize(
    ("relation", "pair_count"),
    [
        ("within 0.1 L1", 220),
        ("within 0.1 L2", 220),
        ("within 0.1 Linf", 420),
        ("within 0.2 L1", 618),
    ],
)
def test_grids_of_places_keep_their_neighbours(
    relation: str, pair_count: int, tmp_path: Path
) -> None:
    grid = np.array([(a, b) for a in TENTHS for b in TENTHS])
    file = tmp_path / "places.csv"
    pd.DataFrame(grid, columns=["x", "y"]).to_csv(file, index=False)
    for places in (grid, grid.tolist(), grid.astype(np.float32), pd.DataFrame(grid), file):
        assert len(wb.FiniteQuery(places, neighbours=relation).neighbour_pairs) == pair_count


def test_computed_answers_in_a_csv_file_keep_their_neighbours(tmp_path: Path) -> None:
    file = tmp_path / "answers.csv"
    pd.Series(np.arange(0, 1.01, 0.1), name="x").to_csv(file, index=False)
    assert "0.30000000000000004" in file.read_text()
    assert count_neighbour_pairs(file, "0.1") == 10


def test_the_answers_themselves_are_not_changed() -> None:
    assert wb.FiniteQuery(TENTHS, max_shift=0.1).inputs[3] == Fraction("0.30000000000000004")


@pytest.fixture(scope="module")
def channel_of_tenths() -> Channel:
    """Return a channel whose answers are TENTHS."""
    channel = wb.design(wb.FiniteQuery(TENTHS, max_shift=0.1), epsilon=1).mechanism
    assert isinstance(channel, Channel)
    return channel


def test_a_number_is_the_answer_within_the_tolerance(channel_of_tenths: Channel) -> None:
    for value in (
        0.3,
        "0.3",
        0.30000000000000004,
        np.float32(0.3),
        float(np.float32(0.3)),
        Fraction(3, 10),
    ):
        assert channel_of_tenths.find_row(value) == 3
    for value in (0.31, "0.300001", 0.35):
        with pytest.raises(wb.InvalidRequest, match=r"^answer must be one of"):
            channel_of_tenths.find_row(value)


def test_decimals_can_be_published_and_audited_with_computed_answers(
    channel_of_tenths: Channel,
) -> None:
    assert wb.sample(channel_of_tenths, 1, answer=0.7).shape == (1,)
    assert channel_of_tenths.sample(np.array([0.1, 0.2, 0.3, 0.7])).shape == (4,)
    exact = wb.audit(channel_of_tenths, loss="absolute", data=[0.3]).error
    computed = wb.audit(channel_of_tenths, loss="absolute", data=[0.30000000000000004]).error
    assert exact.mean_error == computed.mean_error


def test_a_number_is_the_label_within_the_tolerance() -> None:
    column = [0.1, 0.2, 0.3, 0.7]
    labels = wb.Labels(TENTHS)
    assert labels.find_positions(column).tolist() == [1, 2, 3, 7]
    assert labels.find_positions(np.array(column, dtype=np.float32)).tolist() == [1, 2, 3, 7]
    with pytest.raises(wb.InvalidRequest, match=r"^every label must be one of the 11 labels"):
        labels.find_positions([0.15])


@pytest.mark.parametrize("snap", ["", " --snap"])
def test_privatise_reads_a_decimal_as_the_computed_label(
    snap: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """0.3 is the label 0.30000000000000004, and is not snapped to the label below it.

    ε = 30 is so large that the randomizer practically never changes a label.
    """
    column = tmp_path / "column.csv"
    out = tmp_path / "out.csv"
    column.write_text("x\n" + "0.3\n" * 40)
    options = f"--column x --labels 0.1,0.2,0.30000000000000004 --epsilon 30{snap}"
    with pytest.raises(SystemExit) as stop:
        main(["privatise", "labels", str(column), *options.split(), "--out", str(out)])
    assert stop.value.code == 0, capsys.readouterr().err
    assert [float(cell) for cell in out.read_text().split()[1:]] == pytest.approx([0.3] * 40)


def test_listed_pairs_name_computed_answers() -> None:
    question = wb.FiniteQuery(TENTHS, neighbours=[(0.2, 0.3), (0.3, 0.4)])
    assert question.neighbour_pairs == ((2, 3), (3, 4))
    with pytest.raises(wb.InvalidRequest, match="which is no input"):
        wb.FiniteQuery(TENTHS, neighbours=[(0.2, 0.31)])


# Answers in two parts, {0, 1} and {5, 6}, that are connected by no neighbours.
SEPARATE_PARTS = wb.FiniteQuery([0, 1, 5, 6], max_shift=1)


def test_designs_and_certificates_state_the_numbers_of_pairs_and_parts(tmp_path: Path) -> None:
    file = tmp_path / "design.json"
    design = wb.design(SEPARATE_PARTS, epsilon=1)
    design.save(file)
    assert "2 pairs of neighbours" in str(design)
    assert "2 separate parts" in str(design)
    assert "4 ordered pairs of neighbours, in 2 separate parts" in str(wb.check(file))
    assert "2 separate parts" in str(wb.design(SEPARATE_PARTS, notion="zcdp", rho=0.5))


def test_recommendations_and_questions_state_the_number_of_pairs() -> None:
    result = wb.recommend(answers=[0, 1, 5, 6], max_shift=1, epsilon=1)
    assert "2 pairs of neighbours" in result.title
    assert any("2 separate parts" in sentence for sentence in result.sentences)
    assert "(6 pairs)" in str(wb.FiniteQuery([0, 1, 5, 6], neighbours="all"))


@pytest.mark.parametrize("seed", range(20))
def test_the_label_of_a_part_is_its_first_answer(seed: int) -> None:
    """The parts of a random graph of 30 answers are also found by powers of its matrix."""
    generator = np.random.default_rng(seed)
    pair_count = int(generator.integers(1, 25))
    pairs = generator.integers(0, 30, (pair_count, 2)).tolist()
    is_connected = np.eye(30, dtype=bool)
    for i, j in pairs:
        is_connected[i, j] = True
        is_connected[j, i] = True
    # Five squarings cover all paths of at most 32 steps.
    for _ in range(5):
        is_connected = is_connected @ is_connected
    assert label_connected_parts(30, pairs).tolist() == is_connected.argmax(axis=1).tolist()


def test_numbers_that_are_closer_than_the_tolerance_are_found_exactly() -> None:
    adjacent_floats = np.array([1.0, np.nextafter(1.0, 2)])
    assert find_nearest_positions(adjacent_floats, adjacent_floats).tolist() == [0, 1]
    index = PointIndex([Fraction(1), Fraction(10**20 + 1, 10**20), "a"])
    assert [index.find(Fraction(1)), index.find("a"), index.find("b")] == [0, 2, None]
    assert index.find(Fraction(2 * 10**20 + 1, 2 * 10**20)) is None


@pytest.mark.parametrize("question", [SEPARATE_PARTS, wb.ModuloNoise(5, shifts=[2])])
def test_a_frontier_states_the_number_of_separate_parts(question: object) -> None:
    result = wb.frontier(question, epsilon=1, baselines=False)
    assert "2 separate parts" in " ".join(result.sentences)


def test_a_frontier_of_connected_answers_has_no_sentence_on_parts() -> None:
    result = wb.frontier(wb.FiniteQuery("0..3", max_shift=1), epsilon=1, baselines=False)
    assert not result.sentences


@pytest.mark.parametrize(
    ("question", "part_count"),
    [
        (wb.ModuloNoise(5, shifts=[2]), 2),
        (wb.ModuloNoise(5, shifts=[2, 3]), 1),
        (wb.ModuloNoise(11, shifts=[8]), 4),
        (wb.ModuloNoise(sizes=[4, 6], shifts=[(2, 0), (0, 4)]), 4),
        (wb.ModuloNoise(sizes=[4, 6], shifts=[(1, 1)]), 2),
    ],
)
def test_shifts_that_generate_a_subgroup_leave_several_parts(
    question: wb.ModuloNoise, part_count: int
) -> None:
    assert question.part_count == part_count
    notes = wb.design(question, epsilon=1).words
    has_note = any(f"{part_count} separate parts" in note for note in notes)
    assert has_note == (part_count > 1)


@pytest.mark.parametrize("step", [1 / 3, 0.1, 1 / 7, 3.141592653589793])
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("to_text", [str, lambda number: repr(float(number))])
def test_answers_of_float32_may_have_a_shift_of_float64(
    step: float, times: int, to_text: Callable[[np.float32], str]
) -> None:
    """Answers that are at most `times` steps apart are neighbours."""
    answers = [to_text(x) for x in np.linspace(0, 16 * step, 17, dtype=np.float32)]
    question = wb.FiniteQuery(answers, max_shift=sum([step] * times))
    expected_count = sum(17 - distance for distance in range(1, times + 1))
    assert len(question.neighbour_pairs) == expected_count
