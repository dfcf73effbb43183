"""Test formulas for a range of n: the table, and the conjecture about all n.

A conjecture states the coefficients of all formulas as polynomials in n. It is fitted on some n and
verified on the others. It may differ by the remainder of n, for example for even and odd n.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from flint import fmpz_poly
from typer.testing import CliRunner

import workbench as wb
from workbench.cli.commands import app
from workbench.formulas import series as formula_series


def test_a_table_has_the_formula_of_each_n() -> None:
    table = wb.formula("modulo", n=range(3, 6), max_shift=1, notion="pure")
    assert table.to_dict() == wb.formula("modulo", n="3..5", max_shift=1, notion="pure").to_dict()
    single_formula = wb.formula(wb.ModuloNoise(n=4, max_shift=1), notion="pure")
    assert str(table[4]) == str(single_formula)
    frame = table.to_frame()
    assert frame["n"].tolist() == [3, 4, 5]
    assert frame["formula"].tolist()[1] == single_formula.pieces[0].to_text()


def test_a_conjecture_states_the_cases_of_its_fit_and_of_its_verification() -> None:
    (conjecture,) = wb.formula("modulo", n=range(3, 21), max_shift=1, notion="pure").pattern()
    text = str(conjecture)
    assert text.startswith("conjecture")
    for fact in ("n = 3..20", "fitted on 8", "verified on the 10 others"):
        assert fact in text
    assert "proven" not in text
    assert conjecture.cases == tuple(range(3, 21))
    formula_of_even_n = (
        "n = 0 mod 2: (Σ_(j=0..n/2 - 1) 2 e^(jε)) / "
        "(Σ_(j=0..n/2) c_j e^(jε), c_j = 2, but 1 at j = n/2)"
    )
    assert conjecture.class_formulas[0] == formula_of_even_n


def test_the_text_of_a_conjecture_has_the_coefficients_of_the_formulas() -> None:
    """Parse the text again and compare it at some even n (counts with squared loss)."""
    table = wb.formula("channel", answers="0..2..0..14", max_shift=1, loss="squared")
    text = table.pattern()[0].class_formulas[0]
    # Each sum has the lowest power, the highest power, and the coefficient of e^(jε).
    numerator, denominator = re.findall(r"Σ_\(j=(.*?)\.\.(.*?)\) \((.*?)\) e\^\(jε\)", text)
    for n in (2, 8, 14):
        value = table[n].pieces[-1].value
        assert value is not None
        for (first, last, coefficient), polynomial in (
            (numerator, value.constant),
            (denominator, value.denominator),
        ):
            low = int(_evaluate(first, n))
            high = int(_evaluate(last, n))
            coefficients = [int(_evaluate(coefficient, n, j)) for j in range(low, high + 1)]
            assert fmpz_poly([0] * low + coefficients) == polynomial


def _evaluate(text: str, n: int, j: int = 0) -> Fraction:
    """Return the value of a written polynomial in n and j."""
    source = re.sub(r"(\d|n)(?=[nj])", r"\1*", text).replace("^", "**")
    value: Any = eval(source, {"n": Fraction(n), "j": Fraction(j)})
    return Fraction(value)


def test_too_few_cases_give_no_conjecture() -> None:
    """Of 9 cases 8 are fitted, which leaves too few for the verification."""
    table = wb.formula("modulo", n=range(3, 12), max_shift=1, notion="pure")
    assert not table.pattern()


def test_only_polynomials_of_degree_up_to_3_are_fitted() -> None:
    # The keys are n, and the values are those of one coefficient.
    polynomial = formula_series._fit_in_n({n: n**2 - 3 for n in range(3, 20)})
    assert polynomial is not None
    assert [*polynomial] == [-3, 0, 1]
    assert formula_series._fit_in_n({n: 2**n for n in range(3, 20)}) is None
    with_one_exception = {n: n**2 - 3 for n in range(3, 20)} | {19: 0}
    assert formula_series._fit_in_n(with_one_exception) is None


def test_the_command_prints_one_table_and_the_conjecture(tmp_path: Path) -> None:
    line = "formula modulo --n 3..20 --max-shift 1 --notion pure --pattern"
    run = CliRunner().invoke(app, [*line.split(), "--save", str(tmp_path / "t.csv")])
    assert run.exit_code == 0
    assert "holds exactly for n = 3..20" in run.stdout
    # A line with the names of the columns, and one for each n.
    assert (tmp_path / "t.csv").read_text().count("\n") == 1 + 18


def test_the_command_prints_the_formulas_of_a_range_of_answers_as_json() -> None:
    line = "formula channel --answers 0..2..0..4 --max-shift 1 --loss absolute --json"
    values = json.loads(CliRunner().invoke(app, line.split()).stdout)
    assert [*values["formulas"]] == ["2", "3", "4"]


def test_an_empty_range_is_refused() -> None:
    with pytest.raises(wb.InvalidRequest, match="n must be a range that rises"):
        wb.formula("modulo", n=range(6, 3), max_shift=1)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--n 8 --pattern", "pattern must be given with a range"),
        ("--n 6..3", "n must be a range that rises"),
        ("--n 3..6 --plot a.png", "plot must be left out"),
        ("--n x", "n must be an integer"),
    ],
)
def test_invalid_options_of_a_range_are_refused(arguments: str, sentence: str) -> None:
    run = CliRunner().invoke(app, f"formula modulo --max-shift 1 {arguments}".split())
    assert run.exit_code
    assert sentence in str(run.exception)


def test_a_range_is_saved_as_one_latex_table(tmp_path: Path) -> None:
    line = f"formula modulo --n 3..5 --max-shift 1 --save {tmp_path / 'table.tex'}"
    assert CliRunner().invoke(app, line.split()).exit_code == 0
    text = (tmp_path / "table.tex").read_text()
    assert text.count(r"\\") == 4
    assert r"\toprule" in text
