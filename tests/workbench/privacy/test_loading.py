"""Test loading mechanisms from files of the workbench and from PMFs and matrices of users."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

import workbench as wb
from workbench.exact.distribution import Distribution
from workbench.mechanisms.channel import Channel
from workbench.privacy.certificate_file import save
from workbench.privacy.loading import read_mechanism_file

# The PMF of all files of `test_a_pmf_is_read_in_every_format`.
PMF = [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "0.5,0.25,0.25\n"),
        ("a.csv", "0.5;0.25;0.25"),
        ("a.txt", "0.5 0.25 0.25"),
        ("a.csv", "probability\n0.5\n0.25\n0.25\n"),
        ("a.csv", "# a comment\n\n2,1,1"),
        ("a.csv", "# a comment\nx,y,z\n2,1,1"),
        ("a.csv", "\ufeff2,1,1"),
        ("a.csv", "\ufeffp\n2\n1\n1"),
        ("a.json", "\ufeff[2, 1, 1]"),
        ("a.tsv", "2\t1\t1"),
        ("a.csv", "1/2,1/4,1/4"),
        ("a.json", "[0.5, 0.25, 0.25]"),
        ("a.json", '{"pmf": [2, 1, 1]}'),
        ("a.json", '["1/2", "1/4", "0.25"]'),
    ],
)
def test_a_pmf_is_read_in_every_format(name, text, tmp_path: Path):
    (tmp_path / name).write_text(text)
    law = wb.load(tmp_path / name)
    assert isinstance(law, Distribution)
    assert [law[i] for i in range(3)] == PMF


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("m.csv", "a,b\n0.75,0.25\n0.25,0.75\n"),
        ("m.csv", "\ufeff0.75,0.25\r\n0.25,0.75\r\n"),  # Spreadsheets save this form.
        ("m.json", "[[0.75, 0.25], [0.25, 0.75]]"),
        ("m.json", '{"rows": [[3, 1], [1, 3]]}'),
        ("m.json", '{"matrix": [[3, 1], [1, 3]]}'),
    ],
)
def test_a_matrix_is_read_in_every_format(name, text, tmp_path: Path):
    (tmp_path / name).write_text(text)
    assert wb.load(tmp_path / name) == Channel.from_rows([[3, 1], [1, 3]])
    channel = read_mechanism_file(tmp_path / name).with_neighbours()
    assert float(wb.audit(channel, 0).pure_ratio) == 3


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "0.1,0.9"),
        ("a.csv", "1e-1\n.9"),
        ("a.json", "[0.1, 0.9]"),
        ("a.json", '{"pmf": [0.1, "0.9"]}'),
        ("a.csv", "0.1,0.9,0e-7"),
    ],
)
def test_decimals_are_read_exactly(name, text, tmp_path: Path):
    (tmp_path / name).write_text(text)
    law = wb.load(tmp_path / name)
    assert law[0] == Fraction(1, 10)
    assert law[1] == Fraction(9, 10)


@pytest.mark.parametrize("name", ["a.csv", "a.json"])
def test_every_digit_of_a_decimal_counts(name, tmp_path: Path):
    # The nearest float is 0. An outcome of mass 0 would exclude a neighbour.
    small = Fraction(1, 10**400)
    cells = ["0.1000000000000000000000000001", "0.8999999999999999999999999999", "1e-400"]
    (tmp_path / name).write_text(", ".join(cells) if name == "a.csv" else f"[{', '.join(cells)}]")
    law = wb.load(tmp_path / name)
    assert law[0] == Fraction(10**27 + 1, 10**28) / (1 + small)
    assert law[2] == small / (1 + small) > 0


def test_decimals_that_are_rounded_are_divided_by_their_sum(tmp_path: Path):
    (tmp_path / "a.csv").write_text("0.3333333,0.3333333,0.3333333")
    assert [wb.load(tmp_path / "a.csv")[i] for i in range(3)] == [Fraction(1, 3)] * 3


@pytest.mark.parametrize("name", ["m.csv", "m.json"])
def test_the_risk_of_a_matrix_of_decimals_is_exact(name, tmp_path: Path):
    """The total variation of two rows is 2/5, and the largest ratio of probabilities is 3."""
    rows = ["0.6,0.2,0.2", "0.2,0.6,0.2", "0.2,0.2,0.6"]
    (tmp_path / name).write_text(
        "\n".join(rows) if name == "m.csv" else f"[{','.join(f'[{row}]' for row in rows)}]"
    )
    channel = read_mechanism_file(tmp_path / name).with_neighbours()
    risk = wb.risk(channel)
    assert risk.advantage == Fraction(2, 5)
    assert dict(risk.facts())["attack advantage"].startswith("0.4 at most")
    assert wb.audit(channel, 0).pure_ratio == 3


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no numbers"),
        ("0.5,0.2", "add up"),
        ("0.5,-0.1,0.6", "negative"),
        ("0.5,nan", "Line 1"),
        ("1,2\n1,x", "Line 2"),
        ("1,2\n3", "one length"),
        ("0,0", "zero"),
        ("1e999,1", "Line 1"),
        # "nan" is no name of a column. As a header, the row would be left out.
        ("nan,0.5,0.5\n0.4,0.6,0\n0.3,0.7,0", "Line 1"),
        ("0.5,0.5x\n0.4,0.6\n0.3,0.7", "Line 1"),
        ("a,b\nc,d\n1,2", "Line 2"),
        # Without their empty cells these two rows would be equal.
        ("0.5,,0.5\n,0.5,0.5", "Line 1"),
        ("0.5\t\t0.5\n\t0.5\t0.5", "Line 1"),
        ("0,5;0,5\n0,2;0,8", "Line 1"),  # These are decimal commas.
        ("0.5,1e308,1e308", "add up to inf"),
        ("0.5," + "9" * 380, "add up to inf"),
        ("-" + "9" * 380 + ",1", "negative"),
        ("[1, [2]]", "finite number"),
        ("[[1, 2], 3]", "list of numbers"),
        ("[]", "list"),
        ("{}", "one of the entries pmf"),
        ('{"pmf": [1], "rows": [[1]]}', "one of the entries pmf"),
        ("[true, 1]", "finite number"),
        ('{"format": "dp-workbench mechanism"}', "exactly"),
        ('{"format": "dp-workbench mechanism", "version": 1, "mechanism": {"kind": "x"}}', "kind"),
    ],
)
def test_each_error_names_its_reason(text, reason, tmp_path: Path):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(wb.CorruptFile, match=reason):
        wb.load(tmp_path / "a.csv")


def test_a_saved_mechanism_file_claims_no_privacy(tmp_path: Path):
    noise = wb.AdditiveNoise(wb.ModuloNoise(n=3, max_shift=1), [4, 2, 1, 2])
    save(noise, tmp_path / "m.json")
    contents = read_mechanism_file(tmp_path / "m.json")
    assert contents.mechanism == noise
    assert contents.certificate is None
    with pytest.raises(wb.CorruptFile, match="exactly"):
        wb.check(tmp_path / "m.json")


def test_a_claim_in_a_mechanism_file_is_refused(tmp_path: Path):
    save(wb.AdditiveNoise(wb.ModuloNoise(n=3, max_shift=1), [4, 2, 1, 2]), tmp_path / "m.json")
    data = json.loads((tmp_path / "m.json").read_text())
    data["claim"] = {"epsilon": "0"}
    (tmp_path / "m.json").write_text(json.dumps(data))
    with pytest.raises(wb.CorruptFile):
        wb.load(tmp_path / "m.json")


def test_a_loaded_pmf_gets_the_stated_neighbours(tmp_path: Path):
    (tmp_path / "pmf.csv").write_text("4,2,1,2,1,2")
    pmf = read_mechanism_file(tmp_path / "pmf.csv")
    assert pmf.with_neighbours(max_shift=2).question == wb.ModuloNoise(n=5, max_shift=2)
    assert pmf.with_neighbours(sizes=[2, 3], shifts=[(0, 1)], directed=True).question.directed
    with pytest.raises(wb.InvalidRequest, match="which answers are neighbours"):
        pmf.with_neighbours()
    with pytest.raises(wb.InvalidRequest, match="pairs are for channels"):
        pmf.with_neighbours(pairs=[(0, 1)])


def test_a_loaded_matrix_gets_the_stated_neighbours_or_all_pairs(tmp_path: Path):
    (tmp_path / "m.csv").write_text("3,1\n2,2\n1,3\n")
    channel = read_mechanism_file(tmp_path / "m.csv")
    assert len(channel.with_neighbours().pairs) == 6
    assert channel.with_neighbours(max_shift=1).pairs == ((0, 1), (1, 0), (1, 2), (2, 1))
    assert channel.with_neighbours(pairs=[(0, 2)], directed=True).pairs == ((0, 2),)
    for options in ({"shifts": [1]}, {"max_shift": 3}, {"max_shift": 1, "pairs": [(0, 1)]}):
        with pytest.raises(wb.InvalidRequest):
            channel.with_neighbours(**options)


def test_a_saved_channel_has_its_own_neighbours(tmp_path: Path):
    save(wb.Channel.from_pairs([[3, 1], [1, 3]], [(0, 1)]), tmp_path / "c.json")
    with pytest.raises(wb.InvalidRequest, match="own neighbour relation"):
        read_mechanism_file(tmp_path / "c.json").with_neighbours(max_shift=1)


def test_rows_that_add_up_are_a_channel_and_no_noise(tmp_path: Path):
    file = tmp_path / "m.csv"
    file.write_text("0.5,0.5\n0.5,0.5\n")
    assert isinstance(wb.load(file), Channel)
    file.write_text("1,0\n0,1\n")
    assert isinstance(wb.load(file), Channel)
