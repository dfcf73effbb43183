"""Test specifications: errors with their lines before anything runs, and one key for each point."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from workbench.cli import main
from workbench.errors import CorruptFile, InvalidRequest
from workbench.pipeline.option import to_json_value
from workbench.sweeps.ledger import hash_texts
from workbench.sweeps.specification import read_spec

NOISE = """# a comment
[[grid]]
model = "modulo"
n = 8
max_shift = [1, 2]
epsilon = [
  0.5,
  1,
]
delta = "0:0.1:3"
"""


def write_spec(folder: Path, text: str) -> Path:
    """Write a specification and return its path."""
    path = folder / "spec.toml"
    path.write_text(text, "utf-8")
    return path


def replace_in_noise(old: str, new: str) -> str:
    """Return NOISE with one text replaced."""
    assert old in NOISE
    return NOISE.replace(old, new)


@pytest.mark.parametrize(
    ("text", "line", "rule"),
    [
        (replace_in_noise("n = 8", "m = 8"), 4, "for the model modulo. Got 'm'"),
        (replace_in_noise("n = 8", 'n = "8"'), 4, "n must be an integer"),
        (replace_in_noise("n = 8", "n = 8.5"), 4, "n must be an integer"),
        (replace_in_noise("n = 8", "n = true"), 4, "n must be an integer"),
        (replace_in_noise("n = 8", "n = 0"), 4, "n must be an integer"),
        (replace_in_noise("n = 8", "n = []"), 4, "a value or a list"),
        (replace_in_noise("n = 8", "n = {x = 1}"), 4, "n must be an integer"),
        (replace_in_noise("n = 8", 'n = 8\nsizes = "3x3"'), 4, "exactly one of n and sizes"),
        (replace_in_noise("[1, 2]", "[1, 9]"), 5, "max_shift must be an integer in 1..8. Got 9"),
        (replace_in_noise("  1,", "  -1,"), 6, "epsilon must be a finite number > 0. Got -1"),
        (replace_in_noise("  1,", "  21,"), 6, "epsilon must be between"),
        (replace_in_noise("  1,", "  nan,"), 6, "epsilon must be a finite number > 0. Got NaN"),
        (replace_in_noise("  1,", "  false,"), 6, "epsilon must be a finite number > 0"),
        (replace_in_noise("  1,", '  "one",'), 6, "epsilon must be a finite number > 0. Got one"),
        (replace_in_noise("  1,", "  1979-05-27,"), 6, "epsilon must be a finite number > 0"),
        (
            replace_in_noise('"0:0.1:3"', '"0:1.5:3"'),
            10,
            "delta must be a number in [0, 1]. Got 1.5",
        ),
        (replace_in_noise('"0:0.1:3"', '"0:0.1:1"'), 10, "COUNT"),
        (replace_in_noise('"0:0.1:3"', '"0:x:3"'), 10, "delta must be a finite number. Got x"),
        (NOISE + 'notion = "pure"', 10, "delta must be 0 when notion is pure"),
        (
            NOISE + 'notion = ["pdp", "PDP"]',
            11,
            "curve, tradeoff, renyi, zcdp, gdp. Got 'PDP'",
        ),
        (NOISE + 'solver = "hihgs"', 11, "solver must be one of"),
        (NOISE + 'loss = "prior-squared"', 11, "prior must be given"),
        (NOISE + 'check = "yes"', 11, "check must be one of"),
        (NOISE + "max_loss = 0.5", 11, "max_loss must be left out unless minimise is"),
        (
            NOISE + 'solver = ["highs", "ortools:pdlp"]\ngap = 1e-4',
            12,
            "gap must be left out with ortools:pdlp",
        ),
        (NOISE + "time_limit = 0", 11, "time_limit must be a finite number of seconds > 0"),
        (NOISE + "epsilon = 1", 11, "Cannot overwrite a value"),
        (NOISE + "[grid]", 11, "Cannot"),
        (
            NOISE + '[[grid]]\nmodel = "nois"',
            12,
            "model must be one of modulo, noise, channel, quantizer, labels, laplace.",
        ),
        (NOISE + "[[grid]]\nn = 3", 11, "model must be one of"),
        (NOISE + '[[grid]]\nmodel = "modulo"\nn = 3\nmax_shift = 1', 11, "epsilon must be given"),
        (NOISE + '[[grid]]\nmodel = "labels"\nlabels = "5..1"\nepsilon = 1', 13, "LOW..HIGH"),
        (NOISE + '[[grid]]\nmodel = "labels"\nlabels = "0..4"\nepsilon = 31', 14, "at most 30"),
        (
            NOISE + '[[grid]]\nmodel = "labels"\nlabels = "0..4"\nepsilon = 1\nloss = "cubic"',
            15,
            "loss must be one of",
        ),
        (
            NOISE
            + '[[grid]]\nmodel = "labels"\nlabels = "0..4"\nepsilon = 1\nnotion = "metric"\nmethod = "bins"',
            16,
            "lp for other",
        ),
        (
            NOISE + '[[grid]]\nmodel = "quantizer"\nbins = "-3,3"\nlevels = 4\nepsilon = 1',
            13,
            "bins or levels",
        ),
        (
            NOISE + '[[grid]]\nmodel = "quantizer"\nbins = "3,-3"\nepsilon = 1',
            13,
            "strictly increasing",
        ),
        (
            NOISE
            + '[[grid]]\nmodel = "quantizer"\nlevels = 4\nepsilon = 1\nmethod = "mvu"\nknots = 3',
            16,
            "knots must be",
        ),
        (
            NOISE + '[[grid]]\nmodel = "laplace"\nbits = 0\nepsilon = 1',
            13,
            "bits must be a finite number > 0",
        ),
        (
            NOISE + '[[grid]]\nmodel = "laplace"\nbits = 5\nepsilon = 1\ncode = "morse"',
            15,
            "code must be one of",
        ),
        (NOISE + "[extra]\nx = 1", 11, "must be name or grid in a specification. Got 'extra'"),
        ("nme = 'x'\n" + NOISE, 1, "must be name or grid in a specification. Got 'nme'"),
        ("name = 3\n" + NOISE, 1, "name must be a string"),
        ("grid = 3", 1, "at least one [[grid]]"),
        (
            '\ngrid = [{model = "modulo", n = 0, max_shift = 1, epsilon = 1}]',
            2,
            "n must be an integer",
        ),
        ("name = 'x'\nx = [1,\n", 2, "Invalid value"),
        ("name = ", 1, "Invalid value"),
        (replace_in_noise("n = 8", 'n = 8\nloss = """\n\nerror-rate"""'), 5, "loss must be one of"),
    ],
)
def test_an_error_names_its_line_and_the_rule(tmp_path, capsys, text: str, line: int, rule: str):
    path, ledger = write_spec(tmp_path, text), tmp_path / "ledger.sqlite"
    with pytest.raises(SystemExit) as stop:
        main(["sweep", str(path), "--ledger", str(ledger)])
    message = capsys.readouterr().err
    assert stop.value.code == 2
    assert message.count("\n") == 1
    assert f"line {line} of spec.toml: " in message
    assert rule in message
    assert not ledger.exists()


def test_files_without_a_specification_are_refused(tmp_path, capsys):
    (tmp_path / "latin.toml").write_bytes(b"name = '\xe9'")
    for name in ("none.toml", ".", "latin.toml"):
        with pytest.raises((InvalidRequest, CorruptFile), match=r"specification must be|not UTF-8"):
            read_spec(tmp_path / name)
    with pytest.raises(InvalidRequest, match="at least one"):
        read_spec(write_spec(tmp_path, ""))


def test_a_grid_of_more_than_five_million_points_is_refused(tmp_path):
    text = NOISE + 'max_loss = "1:2:6000"\nminimise = "delta"\n'
    with pytest.raises(InvalidRequest, match="at most 5000000 points"):
        read_spec(write_spec(tmp_path, text.replace('"0:0.1:3"', '"0:0.1:3000"')))


def get_delta_and_epsilon(point):
    """Return δ and ε of a point, as texts."""
    return to_json_value(point["delta"]), to_json_value(point["epsilon"])


def test_consecutive_points_of_a_grid_differ_in_one_axis(tmp_path):
    """A chunk is a part of the grid that is solved by one session."""
    spec = read_spec(write_spec(tmp_path, NOISE))
    assert [get_delta_and_epsilon(point) for point in spec.chunks[0].points] == [
        ("0", "0.5"),
        ("0", "1"),
        ("0.05", "1"),
        ("0.05", "0.5"),
        ("0.1", "0.5"),
        ("0.1", "1"),
    ]


def test_every_point_of_a_grid_has_its_own_key(tmp_path):
    spec = read_spec(write_spec(tmp_path, NOISE))
    assert len(spec) == 2 * 2 * 3 == len(set(spec.keys))


def test_a_request_is_canonical_json_with_the_values_of_its_point(tmp_path):
    expected_entries = {"backend", "model", "options", "parameters", "schema", "versions"}
    for chunk in read_spec(write_spec(tmp_path, NOISE)).chunks:
        for point, request, key in zip(chunk.points, chunk.requests, chunk.keys, strict=True):
            assert hash_texts(request) == key
            request_values = json.loads(request)
            assert request == json.dumps(request_values, sort_keys=True, separators=(",", ":"))
            assert set(request_values) == expected_entries
            for name, value in point.items():
                assert request_values["parameters"][name] == to_json_value(value)
            assert request_values["versions"]["highspy"]


def test_the_corners_of_a_grid_are_solved_again_cold(tmp_path):
    spec = read_spec(write_spec(tmp_path, NOISE))
    rechecked_points = {
        get_delta_and_epsilon(chunk.points[index])
        for chunk in spec.chunks
        for index in chunk.recheck
    }
    assert {("0", "0.5"), ("0", "1"), ("0.1", "0.5"), ("0.1", "1")} <= rechecked_points


def test_about_one_percent_of_the_points_is_solved_again_cold(tmp_path):
    text = NOISE.replace('"0:0.1:3"', '"0:0.1:1000"') + 'check = "none"\nnotion = "dp"\n'
    spec = read_spec(write_spec(tmp_path, text))
    recheck_count = sum(len(chunk.recheck) for chunk in spec.chunks)
    assert 0.005 * len(spec) < recheck_count < 0.02 * len(spec)


def test_equal_requests_have_one_key_in_every_spelling(tmp_path):
    spellings = (
        "n = 3\nmax_shift = 2\nepsilon = 0.1\n",
        'sizes = "4"\nshifts = "1,2"\nepsilon = "1/10"\ndelta = 0\n',
        'sizes = [[4]]\nshifts = [[2, 1]]\nepsilon = 1e-1\nsolver = "highs"\ncheck = "audit"\n',
        'n = 3\nshifts = "3,2"\nepsilon = 0.1\n',  # The shift -1 has the same pairs of neighbours as 1.
    )
    keys = {
        tuple(read_spec(write_spec(tmp_path, f'[[grid]]\nmodel = "modulo"\n{s}')).keys)
        for s in spellings
    }
    assert len(keys) == 1
    all_spellings = "".join(f'[[grid]]\nmodel = "modulo"\n{s}' for s in spellings)
    assert len(read_spec(write_spec(tmp_path, all_spellings))) == 1


def test_requests_with_different_options_have_different_keys(tmp_path):
    text = '[[grid]]\nmodel = "modulo"\nn = 3\nmax_shift = 2\nepsilon = 0.1\n'
    (key,) = read_spec(write_spec(tmp_path, text)).keys
    (key_with_seed,) = read_spec(write_spec(tmp_path, text + "seed = 1\n")).keys
    assert key != key_with_seed


def test_opposite_shifts_of_directed_noise_are_different_requests(tmp_path):
    text = (
        '[[grid]]\nmodel = "modulo"\nn = 3\nshifts = ["1,2", "3,2"]\ndirected = true\n'
        "epsilon = 0.1\n"
    )
    assert len(read_spec(write_spec(tmp_path, text))) == 2


def test_ranges_are_exact(tmp_path):
    spec = read_spec(
        write_spec(tmp_path, '[[grid]]\nmodel="modulo"\nn=3\nmax_shift=1\nepsilon="0.1:4:40"\n')
    )
    values = [Fraction(point["epsilon"]) for chunk in spec.chunks for point in chunk.points]
    assert sorted(values) == [Fraction(k, 10) for k in range(1, 41)]


def test_a_mapping_and_a_file_give_the_same_keys(tmp_path):
    table = {
        "grid": {
            "model": "modulo",
            "n": 8,
            "max_shift": [1, 2],
            "epsilon": [0.5, Decimal(1)],
            "delta": "0:0.1:3",
        }
    }
    assert read_spec(table).keys == read_spec(write_spec(tmp_path, NOISE)).keys


def test_a_wrong_value_in_a_mapping_is_refused():
    grid = {"model": "modulo", "n": 0, "max_shift": 1, "epsilon": 1}
    with pytest.raises(InvalidRequest, match=r"^n must be an integer"):
        read_spec({"grid": [grid]})


def test_a_mapping_without_a_grid_is_refused():
    with pytest.raises(InvalidRequest, match="at least one"):
        read_spec({"grid": 3})
