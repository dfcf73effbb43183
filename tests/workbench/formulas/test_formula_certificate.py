"""Test files of formulas: proven without a solver, and refused if damaged or changed.

A file has the pieces of a formula and its proof: regions, intervals of x = e^ε on which one sequence
of bases of the program is optimal. `workbench.formulas.certificate` describes the file.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import workbench as wb
from workbench.cli.commands import app
from workbench.errors import NotCertified
from workbench.formulas.certificate import read_formula
from workbench.solvers.exact.parametric import ParametricProgram

Change = Callable[[dict[str, Any]], Any]  # A function that changes the JSON object of a file.

# Each row has a question (or a family with options of a question) and options of `wb.formula`.
QUESTIONS: list[tuple[Any, dict[str, Any]]] = [
    (wb.FiniteQuery("0..3", max_shift=1), {"loss": "absolute"}),
    (wb.FiniteQuery("0..2", max_shift=1, prior="worst"), {"loss": "squared", "delta": "0..1"}),
    (
        wb.FiniteQuery("0,0.5,2", neighbours="all", prior=[1, 2, 3]),
        {"loss": "absolute", "notion": "metric"},
    ),
    (
        wb.FiniteQuery("a,b,c", "u,v", neighbours="all"),
        {"loss": [[0, 1], [1, 0], ["1/3", 2]], "delta": "0..0.5"},
    ),
    (
        wb.ModuloNoise(n=8, shifts=[1, 2], directed=True),
        {"loss": "squared", "delta": "0..0.5", "epsilon": "0.1..4"},
    ),
    (wb.ModuloNoise(sizes=[3, 3], shifts=[(0, 1), (1, 0)]), {"loss": "error-rate", "epsilon": 1}),
    (wb.Labels([0, 1, 4], [1, 2, 3]), {"method": "lp", "outputs": (0, 2, 4)}),
    (wb.Quantization("-2,-0.5,0.5,2"), {"epsilon": "0.5..3"}),
    (
        "channel",
        {"answers": "0..3", "max_shift": 1, "constraints": ["unbiased"], "epsilon": "0.5..2"},
    ),
]


@pytest.mark.parametrize(("question", "options"), QUESTIONS)
def test_a_file_is_proven_without_a_solver(
    question: Any, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    formula = wb.formula(question, **options)
    (path,) = formula.save(tmp_path / "f.json")

    def fail_on_solver(*_: object) -> None:
        raise AssertionError("a solver is started")

    monkeypatch.setattr(ParametricProgram, "propose_basis", fail_on_solver)
    monkeypatch.setattr(ParametricProgram, "refine_basis", fail_on_solver)
    proven = wb.check(path)
    assert str(proven) == str(formula)
    assert proven.to_dict() == formula.to_dict()


def test_a_saved_formula_keeps_the_intervals_that_are_not_proven(tmp_path: Path) -> None:
    formula = wb.formula(
        wb.FiniteQuery("0..4", max_shift=1), loss="absolute", delta="0..1", time_limit=0.02
    )
    assert formula.unproven
    (path,) = formula.save(tmp_path / "f.json")
    assert [*wb.check(path).unproven[0]] == pytest.approx([*formula.unproven[0]])


def test_a_formula_with_a_function_as_constraint_cannot_be_saved(tmp_path: Path) -> None:
    formula = wb.formula(
        wb.FiniteQuery("0..2", max_shift=1),
        loss="absolute",
        constraints=lambda M: [M[0, 0] >= M[0, 1]],
        epsilon="1..2",
    )
    with pytest.raises(wb.InvalidRequest, match="a value that is filed"):
        formula.save(tmp_path / "f.json")


def set_entry(*keys: str | int, to: Any) -> Change:
    """Return a change that sets the entry at a path of keys and indices to a value."""

    def change(data: dict[str, Any]) -> None:
        """Set the entry."""
        entry: Any = data
        for key in keys[:-1]:
            entry = entry[key]
        entry[keys[-1]] = to

    return change


def move_first_border(data: dict[str, Any]) -> None:
    """Move the border of the first two regions."""
    data["regions"][0]["high"] = "1.9"
    data["regions"][1]["low"] = "1.9"


def copy_bases(data: dict[str, Any]) -> None:
    """Give the first region the bases of the second one."""
    data["regions"][0]["bases"] = data["regions"][1]["bases"]


def flip_basis(data: dict[str, Any]) -> None:
    """Exchange the basic columns of a basis with those at their lower end."""
    columns = data["regions"][0]["bases"][-1][0]
    data["regions"][0]["bases"][-1][0] = columns.translate(str.maketrans("0-", "-0"))


# Changes after which a file is readable but false.
EDITS: dict[str, Change] = {
    "a coefficient": set_entry("pieces", 0, "numerator", 0, to=2),
    "the text": set_entry("pieces", 0, "formula", to="0"),
    "where it holds": set_entry("pieces", 0, "epsilon", 1, to=0.7),
    "the loss": set_entry("question", "options", "loss", to="squared"),
    "the outputs": set_entry("question", "options", "outputs", to=["0", "1", "2", "4"]),
    "the end of a region": set_entry("regions", 0, "high", to="1.9"),
    "both ends at a border": move_first_border,
    "a region less": lambda data: data["regions"].pop(),
    "regions swapped": lambda data: data["regions"].reverse(),
    "a region twice": lambda data: data["regions"].append(data["regions"][1]),
    "another basis": copy_bases,
    "a basis of other columns": flip_basis,
}
# Changes after which a file is malformed, or invalid for other reasons.
DAMAGES: dict[str, Change] = {
    "the answers": set_entry("question", "options", "answers", to=["0", "1", "2", "4"]),
    "δ, another program": set_entry("delta", to=["0.1", "0.1"]),
    "no mechanism": set_entry("regions", 0, "feasible", to=False),
    "the version": set_entry("version", to=2),
    "an entry more": set_entry("note", to=""),
    "an entry less": lambda data: data.pop("regions"),
    "the family": set_entry("question", "family", to="none"),
    "an option": set_entry("question", "options", "solver", to="highs"),
    "a basis": set_entry("regions", 0, "bases", 0, 0, to="+"),
    "no bases": set_entry("regions", 0, "bases", to=[]),
    "a sample outside": set_entry("regions", 0, "sample", to="5"),
    "a number": set_entry("regions", 0, "sample", to="1/0"),
    "a double zero": set_entry("regions", 0, "high", to=[["4", "-4", "1"], "1.5", "2.5"]),
    "a large epsilon": set_entry("epsilon", to=["1000000000", "1000000000"]),
    "an epsilon above formulas": set_entry("epsilon", to=["0.5", "1000"]),
    "an end beyond floats": set_entry("regions", -1, "high", to="1e400"),
    "many coefficients": set_entry("regions", 0, "high", to=[["7"] * 9999, "1.1", "1.9"]),
    "long coefficients": set_entry("regions", 0, "high", to=[["9" * 4000] * 900, "1.1", "1.9"]),
    "no zero": set_entry("regions", 0, "high", to=[["-1", "-1", "-1", "1"], "3", "4"]),
}


@pytest.fixture(scope="module")
def valid_record() -> dict[str, Any]:
    """Return the JSON object of a valid file."""
    formula = wb.formula(wb.FiniteQuery("0..3", max_shift=1), loss="absolute")
    return dict(json.loads(json.dumps(formula.to_dict() | formula.proof())))


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_file_is_false(name: str, valid_record: dict[str, Any]) -> None:
    data = copy.deepcopy(valid_record)
    EDITS[name](data)
    with pytest.raises(wb.CorruptFile) as caught:
        read_formula(data)
    assert isinstance(caught.value.__cause__, NotCertified), caught.value


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file_is_refused(name: str, valid_record: dict[str, Any]) -> None:
    data = copy.deepcopy(valid_record)
    DAMAGES[name](data)
    with pytest.raises(wb.CorruptFile):
        read_formula(data)


def test_a_certificate_that_names_a_file_is_refused(
    valid_record: dict[str, Any], tmp_path: Path
) -> None:
    """Whoever writes a certificate must not make `check` read files of the machine."""
    path = tmp_path / "prior.csv"
    path.write_text("1\n1\n1\n1\n")
    for name in ("prior", "answers", "neighbours", "loss"):
        data = copy.deepcopy(valid_record)
        data["question"]["options"][name] = str(path)
        with pytest.raises(wb.CorruptFile) as caught:
            read_formula(data)
        assert not isinstance(caught.value.__cause__, NotCertified)


def test_a_changed_end_of_an_interval_is_refused(valid_record: dict[str, Any]) -> None:
    # The end is 0.0, whose text differs from those of the first two numbers.
    for changed_end in (-0.0, 0, 1e-9, None, False):
        data = copy.deepcopy(valid_record)
        data["pieces"][0]["epsilon"][0] = changed_end
        with pytest.raises(wb.CorruptFile, match="pieces"):
            read_formula(data)


def test_the_command_formula_writes_a_file_and_a_plot(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    plot_path = tmp_path / "f.svg"
    line = "formula channel --answers 0..3 --max-shift 1 --loss absolute"
    options = ["--save", str(path), "--plot", str(plot_path)]
    assert CliRunner().invoke(app, [*line.split(), *options]).exit_code == 0
    assert not wb.check(path).unproven
    assert plot_path.stat().st_size > 10_000


def test_the_command_check_proves_a_file(valid_record: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text(json.dumps(valid_record))
    run = CliRunner().invoke(app, ["check", str(path)])
    assert run.exit_code == 0
    assert "without a solver" in run.stdout
    record = json.loads(CliRunner().invoke(app, ["check", str(path), "--json"]).stdout)
    assert record["proven"] is True


def test_the_command_check_refuses_a_false_file(
    valid_record: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "f.json"
    data = copy.deepcopy(valid_record)
    EDITS["a coefficient"](data)
    path.write_text(json.dumps(data))
    run = CliRunner().invoke(app, ["check", str(path)])
    assert isinstance(run.exception, wb.CorruptFile)
    assert getattr(run.exception, "exit_code", None) == 1
