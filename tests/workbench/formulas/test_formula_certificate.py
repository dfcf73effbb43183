"""Test files of formulas: proven without a solver, and refused if damaged or changed."""

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


def _flip_basis(data: dict[str, Any]) -> None:
    """Exchange the basic columns of a basis with those at their lower end."""
    columns = data["regions"][0]["bases"][-1][0]
    data["regions"][0]["bases"][-1][0] = columns.translate(str.maketrans("0-", "-0"))


# Changes after which a file is readable but false.
EDITS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a coefficient": lambda data: data["pieces"][0]["numerator"].__setitem__(0, 2),
    "the text": lambda data: data["pieces"][0].__setitem__("formula", "0"),
    "where it holds": lambda data: data["pieces"][0]["epsilon"].__setitem__(1, 0.7),
    "the loss": lambda data: data["question"]["options"].__setitem__("loss", "squared"),
    "the outputs": lambda data: data["question"]["options"].__setitem__(
        "outputs", ["0", "1", "2", "4"]
    ),
    "the end of a region": lambda data: data["regions"][0].__setitem__("high", "1.9"),
    "both ends at a border": lambda data: [
        data["regions"][0].__setitem__("high", "1.9"),
        data["regions"][1].__setitem__("low", "1.9"),
    ],
    "a region less": lambda data: data["regions"].pop(),
    "regions swapped": lambda data: data["regions"].reverse(),
    "a region twice": lambda data: data["regions"].append(data["regions"][1]),
    "another basis": lambda data: data["regions"][0].__setitem__(
        "bases", data["regions"][1]["bases"]
    ),
    "a basis of other columns": _flip_basis,
}
# Changes after which a file is malformed, or invalid for other reasons.
DAMAGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "the answers": lambda data: data["question"]["options"].__setitem__(
        "answers", ["0", "1", "2", "4"]
    ),
    "δ, another program": lambda data: data.__setitem__("delta", ["0.1", "0.1"]),
    "no mechanism": lambda data: data["regions"][0].__setitem__("feasible", False),
    "the version": lambda data: data.__setitem__("version", 2),
    "an entry more": lambda data: data.__setitem__("note", ""),
    "an entry less": lambda data: data.pop("regions"),
    "the family": lambda data: data["question"].__setitem__("family", "none"),
    "an option": lambda data: data["question"]["options"].__setitem__("solver", "highs"),
    "a basis": lambda data: data["regions"][0]["bases"][0].__setitem__(0, "+"),
    "no bases": lambda data: data["regions"][0].__setitem__("bases", []),
    "a sample outside": lambda data: data["regions"][0].__setitem__("sample", "5"),
    "a number": lambda data: data["regions"][0].__setitem__("sample", "1/0"),
    "a double zero": lambda data: data["regions"][0].__setitem__(
        "high", [["4", "-4", "1"], "1.5", "2.5"]
    ),
    "a large epsilon": lambda data: data.__setitem__("epsilon", ["1000000000", "1000000000"]),
    "an epsilon above formulas": lambda data: data.__setitem__("epsilon", ["0.5", "1000"]),
    "an end beyond floats": lambda data: data["regions"][-1].__setitem__("high", "1e400"),
    "many coefficients": lambda data: data["regions"][0].__setitem__(
        "high", [["7"] * 9999, "1.1", "1.9"]
    ),
    "long coefficients": lambda data: data["regions"][0].__setitem__(
        "high", [["9" * 4000] * 900, "1.1", "1.9"]
    ),
    "no zero": lambda data: data["regions"][0].__setitem__(
        "high", [["-1", "-1", "-1", "1"], "3", "4"]
    ),
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
    for wrong in (-0.0, 0, 1e-9, None, False):
        data = copy.deepcopy(valid_record)
        data["pieces"][0]["epsilon"][0] = wrong
        with pytest.raises(wb.CorruptFile, match="pieces"):
            read_formula(data)


def test_the_command_check_proves_a_file_and_refuses_a_false_one(
    valid_record: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "f.json"
    line = f"formula channel --answers 0..3 --max-shift 1 --loss absolute --save {path} --plot {tmp_path / 'f.svg'}"
    assert CliRunner().invoke(app, line.split()).exit_code == 0
    assert (tmp_path / "f.svg").stat().st_size > 10_000
    done = CliRunner().invoke(app, ["check", str(path)])
    assert done.exit_code == 0
    assert "without a solver" in done.stdout
    record = json.loads(CliRunner().invoke(app, ["check", str(path), "--json"]).stdout)
    assert record["proven"] is True
    data = copy.deepcopy(valid_record)
    EDITS["a coefficient"](data)
    path.write_text(json.dumps(data))
    done = CliRunner().invoke(app, ["check", str(path)])
    assert isinstance(done.exception, wb.CorruptFile)
    assert getattr(done.exception, "exit_code", None) == 1
