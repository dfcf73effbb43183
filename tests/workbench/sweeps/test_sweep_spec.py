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


def written(folder: Path, text: str) -> Path:
    path = folder / "spec.toml"
    path.write_text(text, "utf-8")
    return path


def replaced(old: str, new: str) -> str:
    assert old in NOISE
    return NOISE.replace(old, new)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (replaced("n = 8", "m = 8"), 4, "for the model modulo. Got 'm'"),
        (replaced("n = 8", 'n = "8"'), 4, "n must be an integer"),
        (replaced("n = 8", "n = 8.5"), 4, "n must be an integer"),
        (replaced("n = 8", "n = true"), 4, "n must be an integer"),
        (replaced("n = 8", "n = 0"), 4, "n must be an integer"),
        (replaced("n = 8", "n = []"), 4, "a value or a list"),
        (replaced("n = 8", "n = {x = 1}"), 4, "n must be an integer"),
        (replaced("n = 8", 'n = 8\nsizes = "3x3"'), 4, "exactly one of n and sizes"),
        (replaced("[1, 2]", "[1, 9]"), 5, "max_shift must be an integer in 1..8. Got 9"),
        (replaced("  1,", "  -1,"), 6, "epsilon must be a finite number > 0. Got -1"),
        (replaced("  1,", "  21,"), 6, "epsilon must be between"),
        (replaced("  1,", "  nan,"), 6, "epsilon must be a finite number > 0. Got NaN"),
        (replaced("  1,", "  false,"), 6, "epsilon must be a finite number > 0"),
        (replaced("  1,", '  "one",'), 6, "epsilon must be a finite number > 0. Got one"),
        (replaced("  1,", "  1979-05-27,"), 6, "epsilon must be a finite number > 0"),
        (replaced('"0:0.1:3"', '"0:1.5:3"'), 10, "delta must be a number in [0, 1]. Got 1.5"),
        (replaced('"0:0.1:3"', '"0:0.1:1"'), 10, "COUNT"),
        (replaced('"0:0.1:3"', '"0:x:3"'), 10, "delta must be a finite number. Got x"),
        (NOISE + 'notion = "pure"', 10, "delta must be 0 when notion is pure"),
        (
            NOISE + 'notion = ["pdp", "PDP"]',
            11,
            "curve, tradeoff, renyi, zcdp, gdp. Got 'PDP'",
        ),
        (NOISE + 'solver = "hihgs"', 11, "solver must be one of"),
        (NOISE + 'loss = "prior-squared"', 11, "prior must be given"),
        (NOISE + 'check = "yes"', 11, "check must be one of"),
        (NOISE + "max_loss = 0.5", 11, "max_loss must be given if"),
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
        (replaced("n = 8", 'n = 8\nloss = """\n\nerror-rate"""'), 5, "loss must be one of"),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(tmp_path, capsys, text: str, line: int, words: str):
    path, ledger = written(tmp_path, text), tmp_path / "ledger.sqlite"
    with pytest.raises(SystemExit) as stop:
        main(["sweep", str(path), "--ledger", str(ledger)])
    said = capsys.readouterr().err
    assert stop.value.code == 2
    assert said.count("\n") == 1
    assert f"line {line} of spec.toml: " in said
    assert words in said
    assert not ledger.exists()


def test_files_that_are_none_are_refused(tmp_path, capsys):
    (tmp_path / "latin.toml").write_bytes(b"name = '\xe9'")
    for name in ("none.toml", ".", "latin.toml"):
        with pytest.raises((InvalidRequest, CorruptFile), match=r"specification must be|not UTF-8"):
            read_spec(tmp_path / name)
    with pytest.raises(InvalidRequest, match="at least one"):
        read_spec(written(tmp_path, ""))


def test_a_grid_that_cannot_be_counted_is_refused(tmp_path):
    text = NOISE + 'max_loss = "1:2:6000"\nminimise = "delta"\n'
    with pytest.raises(InvalidRequest, match="at most 5000000 points"):
        read_spec(written(tmp_path, text.replace('"0:0.1:3"', '"0:0.1:3000"')))


def test_the_grid_is_the_product_of_its_axes_in_small_steps(tmp_path):
    spec = read_spec(written(tmp_path, NOISE))
    assert len(spec) == 2 * 2 * 3 == len(set(spec.keys))
    walk = [(to_json_value(p["delta"]), to_json_value(p["epsilon"])) for p in spec.chunks[0].points]
    assert walk == [
        ("0", "0.5"),
        ("0", "1"),
        ("0.05", "1"),
        ("0.05", "0.5"),
        ("0.1", "0.5"),
        ("0.1", "1"),
    ]
    for chunk in spec.chunks:
        for point, request, key in zip(chunk.points, chunk.requests, chunk.keys, strict=True):
            assert hash_texts(request) == key
            asked = json.loads(request)
            assert {name: asked["parameters"][name] for name in point} == {
                name: to_json_value(value) for name, value in point.items()
            }
            assert request == json.dumps(asked, sort_keys=True, separators=(",", ":"))
            assert set(asked) == {"backend", "model", "options", "parameters", "schema", "versions"}
            assert asked["versions"]["highspy"]
    corners = {
        (to_json_value(p["delta"]), to_json_value(p["epsilon"]))
        for c in spec.chunks
        for k, p in enumerate(c.points)
        if k in c.recheck
    }
    assert {("0", "0.5"), ("0", "1"), ("0.1", "0.5"), ("0.1", "1")} <= corners


def test_about_one_percent_is_checked_again(tmp_path):
    text = NOISE.replace('"0:0.1:3"', '"0:0.1:1000"') + 'check = "none"\nnotion = "dp"\n'
    spec = read_spec(written(tmp_path, text))
    checked = sum(len(chunk.recheck) for chunk in spec.chunks)
    assert 0.005 * len(spec) < checked < 0.02 * len(spec)


def test_one_question_has_one_key_however_it_is_spelled(tmp_path):
    spellings = (
        "n = 3\nmax_shift = 2\nepsilon = 0.1\n",
        'sizes = "4"\nshifts = "1,2"\nepsilon = "1/10"\ndelta = 0\n',
        'sizes = [[4]]\nshifts = [[2, 1]]\nepsilon = 1e-1\nsolver = "highs"\ncheck = "audit"\n',
        'n = 3\nshifts = "3,2"\nepsilon = 0.1\n',  # The shift -1 has the same pairs of neighbours as 1.
    )
    keys = {
        tuple(read_spec(written(tmp_path, f'[[grid]]\nmodel = "modulo"\n{s}')).keys)
        for s in spellings
    }
    assert len(keys) == 1
    twice = "".join(f'[[grid]]\nmodel = "modulo"\n{s}' for s in spellings)
    assert len(read_spec(written(tmp_path, twice))) == 1
    other = read_spec(
        written(
            tmp_path, '[[grid]]\nmodel = "modulo"\nn = 3\nmax_shift = 2\nepsilon = 0.1\nseed = 1\n'
        )
    )
    assert set(other.keys) not in keys
    one_way = '[[grid]]\nmodel = "modulo"\nn = 3\nshifts = ["1,2", "3,2"]\ndirected = true\nepsilon = 0.1\n'
    assert len(read_spec(written(tmp_path, one_way))) == 2


def test_ranges_are_exact(tmp_path):
    spec = read_spec(
        written(tmp_path, '[[grid]]\nmodel="modulo"\nn=3\nmax_shift=1\nepsilon="0.1:4:40"\n')
    )
    values = [Fraction(point["epsilon"]) for chunk in spec.chunks for point in chunk.points]
    assert sorted(values) == [Fraction(k, 10) for k in range(1, 41)]


def test_a_mapping_says_the_same_as_a_file(tmp_path):
    table = {
        "grid": {
            "model": "modulo",
            "n": 8,
            "max_shift": [1, 2],
            "epsilon": [0.5, Decimal(1)],
            "delta": "0:0.1:3",
        }
    }
    assert read_spec(table).keys == read_spec(written(tmp_path, NOISE)).keys
    with pytest.raises(InvalidRequest, match=r"^n must be an integer"):
        read_spec({"grid": [{**table["grid"], "n": 0}]})
    with pytest.raises(InvalidRequest, match="at least one"):
        read_spec({"grid": 3})
