"""Tests of tools/check_formula.py, the independent checker of formulas.

It must prove every file that the workbench saves, and refuse a file in which anything is changed. A
file has two parts, both in one JSON object:

* the shown part (`CHECKER.SHOWN_ENTRIES`), which a reader sees: the pieces of the formula, each with
  its interval of ε and its formula as a text;
* the proof: the question, and the regions. A region is an interval of x = e^ε with the optimal bases
  of the linear programs there.

A change is a function that changes such a JSON object in place.
"""

from __future__ import annotations

import ast
import copy
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.cli import main

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "check_formula.py"
COUNTS = wb.FiniteQuery("0..3", max_shift=1)

# Questions and options of `wb.formula`, of every family, notion and kind of loss.
QUESTIONS: list[tuple[Any, dict[str, Any]]] = [
    (COUNTS, {"loss": "absolute"}),
    (COUNTS, {"loss": "squared", "delta": "0..1"}),
    (COUNTS, {"loss": "absolute", "delta": "1/20", "epsilon": "0.5..2"}),
    (
        wb.FiniteQuery("0..3", neighbours="all", prior=[1, 2, 3, 4]),
        {"loss": "error-rate", "epsilon": 1},
    ),
    (wb.FiniteQuery("0..2", "0..3", neighbours="all"), {"loss": "absolute", "delta": "0..0.5"}),
    (wb.ModuloNoise(n=12, max_shift=2), {"loss": "circular-squared"}),
    (wb.ModuloNoise(n=8, max_shift=3, directed=True), {"delta": "0..1"}),
    (
        wb.ModuloNoise(sizes=[3, 4], shifts=[(0, 1), (1, 0)]),
        {"delta": "0.1", "epsilon": "0.5..2", "loss": "squared"},
    ),
    (wb.ModuloNoise(n=5, max_shift=2), {"loss": "worst-squared", "delta": "0.1"}),
    (wb.ModuloNoise(n=5, max_shift=2), {"loss": ["0", "1", "2", "1/3", "2", "1"], "delta": "0.1"}),
    (wb.ModuloNoise(n=5, max_shift=2), {"notion": "metric", "epsilon": {1: "1/2", 2: 1}}),
    (wb.FiniteQuery("0,0.5,2", neighbours="all"), {"notion": "metric", "loss": "absolute"}),
    (COUNTS, {"loss": "absolute", "constraints": ["unbiased"], "delta": "1/20"}),
    (COUNTS, {"loss": "absolute", "constraints": ["row-monotone", "symmetric"], "delta": "0..1"}),
    (COUNTS, {"loss": "absolute", "constraints": ["honest", "column-monotone"], "notion": "pure"}),
    (
        wb.FiniteQuery("0..2", prior="worst", max_shift=1),
        {"loss": [[0, 1, 2], [1, 0, "1/3"], [2, 1, 0]], "delta": "0.1"},
    ),
    (wb.Labels([0, 1, 4], [1, 2, 3]), {"method": "lp", "outputs": (0, 2, 4), "loss": "squared"}),
    (
        wb.Labels(range(4)),
        {"method": "lp", "neighbours": "consecutive", "notion": "dp", "delta": "0.1"},
    ),
    (wb.Quantization("-2,-0.5,0.5,2"), {}),  # infeasible up to ε = ln 3
    (wb.Quantization("-3,-1,1,3", c=2), {"loss": "squared", "knots": 3}),
]


# The checker is a program and not part of a package, so it is imported from its file.
_SPEC = importlib.util.spec_from_file_location("check_formula", TOOL)
assert _SPEC is not None
assert _SPEC.loader is not None
CHECKER = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(CHECKER)


@cache
def _make_saved_formula(*, is_delta_free: bool) -> Any:
    """Compute the formula of `make_file` once, as a JSON object that nobody may change."""
    formula = wb.formula(
        COUNTS, loss="squared", epsilon="0.5..3", delta="0..1" if is_delta_free else "1/20"
    )
    return json.loads(json.dumps(formula.to_dict() | formula.proof()))


def make_file(*, is_delta_free: bool) -> Any:
    """Return a new JSON object of a formula in ε and δ, or in ε at δ = 1/20."""
    return copy.deepcopy(_make_saved_formula(is_delta_free=is_delta_free))


def run_checker(path: Path) -> subprocess.CompletedProcess[str]:
    """Run the checker on a file, without any installed package."""
    command = [sys.executable, "-I", "-S", str(TOOL), str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


# Arguments of `workbench formula`, one or two for each family.
COMMANDS = [
    "channel --answers 0..2 --max-shift 1 --loss absolute",
    "channel --answers 0..2 --max-shift 1 --loss absolute --directed --prior 1,2,3",
    "modulo --n 8 --max-shift 3 --directed",
    "labels --labels 0,1,4 --prior 1,2,3 --method lp",
    "quantizer --bins -2,-0.5,0.5,2",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_of_the_command_line_is_proven(command: str, tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    with pytest.raises(SystemExit, match="0"):
        main(["formula", *command.split(), "--save", str(path)])
    process = run_checker(path)
    assert process.returncode == 0, process.stdout + process.stderr
    assert wb.check(path)


def test_the_checker_imports_only_the_standard_library() -> None:
    names = set()
    for node in ast.walk(ast.parse(TOOL.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module)
    assert names <= {"__future__", *sys.stdlib_module_names}


@pytest.mark.parametrize(("question", "options"), QUESTIONS)
def test_a_formula_of_the_workbench_is_proven(
    question: Any, options: dict[str, Any], tmp_path: Path
) -> None:
    formula = wb.formula(question, **options)
    (path,) = formula.save(tmp_path / "f.json")
    process = run_checker(path)
    assert process.returncode == 0, process.stdout + process.stderr
    direction_note = " (one side of each pair only)" if getattr(question, "directed", False) else ""
    assert (
        f"proven: {formula.what}{direction_note}: {len(formula.pieces)} formulas" in process.stdout
    )
    assert "without gap" in process.stdout


def _change_numerator(data: Any) -> None:
    """Add 1 to the first coefficient of the numerator of the first piece."""
    data["pieces"][0]["numerator"][0] += 1


def _change_delta(data: Any) -> None:
    """Claim the formula for δ up to 1/2."""
    data["delta"][1] = "1/2"


def _change_loss(data: Any) -> None:
    """Claim the formula of the squared loss for the absolute loss."""
    data["question"]["options"]["loss"] = "absolute"


def _remove_region(data: Any) -> None:
    """Remove the second region, so that its values of x are not covered."""
    del data["regions"][1]


def _move_end(data: Any) -> None:
    """Move the border between the first two regions to x = 5."""
    data["regions"][0]["high"] = data["regions"][1]["low"] = "5"


def _change_basis(data: Any) -> None:
    """Give the first region the bases of the second one."""
    data["regions"][0]["bases"] = data["regions"][1]["bases"]


def _widen_region(data: Any) -> None:
    """Claim the first region for all larger x, and remove all others."""
    data["regions"] = [{**data["regions"][0], "high": None}]


@pytest.mark.parametrize(
    "change",
    [
        _change_numerator,
        _change_delta,
        _change_loss,
        _remove_region,
        _move_end,
        _change_basis,
        _widen_region,
    ],
)
@pytest.mark.parametrize("is_delta_free", [True, False])
def test_a_change_of_the_proof_makes_a_file_false(
    change: Callable[[Any], None], is_delta_free: bool, tmp_path: Path
) -> None:
    formula = wb.formula(COUNTS, loss="squared", delta="0..1" if is_delta_free else "1/20")
    (path,) = formula.save(tmp_path / "f.json")
    data = json.loads(path.read_text())
    changed_data = copy.deepcopy(data)
    change(changed_data)
    assert changed_data != data
    path.write_text(json.dumps(changed_data))
    process = run_checker(path)
    assert process.returncode == 1, process.stdout
    assert "false" in process.stdout


def _claim_feasible(data: Any) -> None:
    """Claim that the first region, which is infeasible, has a solution."""
    data["regions"][0]["feasible"] = True


def _claim_infeasible(data: Any) -> None:
    """Claim that the last region has no solution."""
    data["regions"][-1]["feasible"] = False


def _change_outputs(data: Any) -> None:
    """Move the last bin of the quantizer from 2 to 3."""
    data["question"]["options"]["bins"] = ["-2", "-0.5", "0.5", "3"]


def _change_scale(data: Any) -> None:
    """Claim the formula for inputs within 3/2 instead of 1."""
    data["question"]["options"]["c"] = "3/2"


def _change_power(data: Any) -> None:
    """Claim that x is e^(ε/2) instead of e^ε."""
    data["variable"] = "x = exp(epsilon/2)"


@pytest.mark.parametrize(
    "change",
    [
        _claim_feasible,
        _claim_infeasible,
        _change_outputs,
        _change_scale,
        _change_power,
        _remove_region,
    ],
)
def test_a_changed_quantizer_is_not_proven(change: Callable[[Any], None], tmp_path: Path) -> None:
    (path,) = wb.formula(wb.Quantization("-2,-0.5,0.5,2")).save(tmp_path / "f.json")
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    process = run_checker(path)
    assert process.returncode in (1, 2)
    assert "proven" not in process.stdout


def _make_change(*path: Any) -> Callable[[Any], None]:
    """Return a change that sets one entry. The last argument is the value, the others are its path.

    For example, _make_change("pieces", 0, "proven", False) sets data["pieces"][0]["proven"].
    """
    *places, last, value = path

    def change(data: Any) -> None:
        """Set the entry at the path to the value."""
        for place in places:
            data = data[place]
        data[last] = value

    return change


def _repeat_piece(data: Any) -> None:
    """Append the first piece a second time."""
    data["pieces"].append(data["pieces"][0])


# Every change contradicts the proof, has another type, or adds or removes an entry.
CHANGES_OF_SHOWN_PART: list[Callable[[Any], None]] = [
    _make_change("what", "best noise for everything, no loss"),
    _make_change("what", "best channel, squared loss\nother.json: proven: everything"),
    _make_change("variable", "x = exp(epsilon/2)"),
    _make_change("pieces", 0, "epsilon", [0, None]),
    _make_change("pieces", 0, "epsilon", [0.0, None]),
    _make_change("pieces", 0, "epsilon", [0.0, 20.0]),
    _make_change("pieces", 0, "epsilon", 1, 1.0120),
    _make_change("pieces", 0, "epsilon", [False, 1]),
    _make_change("pieces", 0, "delta", [0.0, 1.0]),
    _make_change("pieces", 0, "delta", 0, None),
    _make_change("pieces", 0, "formula", "1 / 2"),
    _make_change("pieces", 0, "formula", "infeasible"),
    _make_change("pieces", 0, "formula", ["1"]),
    _make_change("pieces", 0, "proven", False),
    _make_change("pieces", 0, "proven", 1),
    _make_change("pieces", 0, "more", "words"),
    _make_change("pieces", 0, "denominator", [0]),
    _make_change("pieces", 0, "breakpoint", {"polynomial": [-2, 1], "value": [2.0, 2.0]}),
    _make_change("pieces", 0, "breakpoint", "value", [2.0, 3.0]),
    _make_change("pieces", 0, {}),
    _make_change("pieces", []),
    _make_change("open", [[0.5, 1.0]]),
    _make_change("more", "words"),
    _repeat_piece,
    lambda data: data["pieces"].pop(),
    lambda data: data["pieces"].reverse(),
    lambda data: data["pieces"][0].pop("breakpoint"),
    lambda data: data["pieces"][0].pop("formula"),
]


@pytest.mark.parametrize("is_delta_free", [True, False])
def test_the_file_that_is_changed_below_is_proven(is_delta_free: bool) -> None:
    data = make_file(is_delta_free=is_delta_free)
    assert CHECKER.prove_statement(data).startswith("best channel, squared loss")


@pytest.mark.parametrize("change", CHANGES_OF_SHOWN_PART)
@pytest.mark.parametrize("is_delta_free", [True, False])
def test_a_change_of_the_shown_part_is_refused(
    change: Callable[[Any], None], is_delta_free: bool
) -> None:
    data = make_file(is_delta_free=is_delta_free)
    change(data)
    with pytest.raises(CHECKER.Refused):
        CHECKER.prove_statement(data)


def list_paths(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value inside a JSON value. For {"a": [5]}: ("a",) and ("a", 0)."""
    entries: Any = ()
    if isinstance(data, dict):
        entries = data.items()
    elif isinstance(data, list):
        entries = enumerate(data)
    for key, value in entries:
        yield (*path, key)
        yield from list_paths(value, (*path, key))


def get_value(data: Any, path: tuple[Any, ...]) -> Any:
    """Return the value at a path. The empty path is the path of `data`."""
    for key in path:
        data = data[key]
    return data


def list_variants(value: Any) -> list[Any]:
    """Return values that differ from a JSON value, some of them only in their type."""
    variants: list[Any] = [None, [value], str(value) + " "]
    if type(value) in (int, float):
        variants += [str(value), value + 1, not value]
        # Zero has another sign only as a float, and twice zero is zero.
        variants += [-value, value * 2] if value else [-0.0, 0.5]
    if isinstance(value, list):
        variants += [value[::-1], value[:-1], value * 2]
    return [variant for variant in variants if json.dumps(variant) != json.dumps(value)]


def require_not_proven(data: Any, description: Any) -> None:
    """Require that the checker fails on a JSON object.

    Errors other than `Refused` count as failures too: the program reports them as "unreadable".
    """
    with suppress(CHECKER.Refused, TypeError, ValueError, KeyError, AttributeError, IndexError):
        CHECKER.prove_statement(data)
        raise AssertionError(description)


def test_no_other_value_in_the_shown_part_is_proven() -> None:
    """Every value of the shown part is replaced by every variant, and removed."""
    formula = wb.formula(
        wb.FiniteQuery("0..1", "0..2", neighbours="all"), loss="absolute", delta="0..1/2"
    )
    data = json.loads(json.dumps(formula.to_dict() | formula.proof()))
    assert CHECKER.prove_statement(data)
    change_count = 0
    for path in list(list_paths({name: data[name] for name in CHECKER.SHOWN_ENTRIES})):
        *parent_path, key = path
        for variant in list_variants(get_value(data, path)):
            changed_data = copy.deepcopy(data)
            get_value(changed_data, tuple(parent_path))[key] = variant
            require_not_proven(changed_data, (path, variant))
            change_count += 1
        changed_data = copy.deepcopy(data)
        del get_value(changed_data, tuple(parent_path))[key]
        require_not_proven(changed_data, (path, "removed"))
        change_count += 1
    assert change_count > 120  # The loop has really visited the values.


def test_a_shown_formula_may_be_written_in_another_form() -> None:
    data = make_file(is_delta_free=True)
    for piece in data["pieces"]:
        numerator, slash, denominator = piece["formula"].partition(" / ")
        piece["formula"] = f"(2 ({numerator}){slash}({denominator})) / 2"
    assert CHECKER.prove_statement(data)


def test_the_formulas_of_the_example_differ() -> None:
    pieces = make_file(is_delta_free=True)["pieces"]
    texts = {piece["formula"] for piece in pieces} | {*pieces[1]["delta_formula"]}
    assert len(texts) > 4


# q of x = e^(ε/q) in the texts below. A text may only have powers of x: e^ε is x², e^(ε/2) is x.
EPSILON_STEPS = 2


@pytest.mark.parametrize("text", ["e^ε", "e^(2ε) (1 - δ) / 3", "-(e^(ε/2) + 1) 2δ", "((1))"])
def test_a_formula_text_is_parsed(text: str) -> None:
    assert CHECKER.FormulaParser(text, EPSILON_STEPS).parse()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "e",
        "1 +",
        "(1",
        "1)",
        "1 / 0",
        "1 / δ",
        "δ δ",
        "e^(ε/3)",
        "1 1 1 x",
        "--1",
        "e^(99999999ε)",
    ],
)
def test_a_malformed_formula_text_is_refused(text: str) -> None:
    with pytest.raises(CHECKER.Refused):
        CHECKER.FormulaParser(text, EPSILON_STEPS).parse()


QUESTION_WITH_MANY_KNOTS = {
    "family": "quantizer",
    "options": {"bins": ["-2", "2"], "knots": 10**9},
}
# Changes that would make a program or a number huge, and a word of the reason for the refusal.
HUGE_CHANGES: list[tuple[Callable[[Any], None], str]] = [
    (_make_change("question", "options", "answers", ["0", "1", "2", "1e300000000"]), "moderate"),
    (_make_change("question", "options", "answers", [str(k) for k in range(9000)]), "4000"),
    (_make_change("question", "options", "prior", ["1e-300000000", "1", "1", "1"]), "moderate"),
    (_make_change("question", "options", "prior", ["9" * 5000, "1", "1", "1"]), "moderate"),
    (_make_change("question", "options", "prior", ["1/0", "1", "1", "1"]), "divides"),
    (_make_change("epsilon", ["1000000000", "1000000000"]), "above 100"),
    (_make_change("epsilon", ["0", "1e300000000"]), "moderate"),
    (_make_change("delta", ["0", "1e-300000000"]), "moderate"),
    (_make_change("regions", 0, "sample", "1e300000000"), "moderate"),
    (_make_change("regions", 0, "low", "1e300000000"), "moderate"),
    (_make_change("regions", 0, "high", [["1"] * 100_000, "1", "2"]), "terms"),
    (
        _make_change("question", {"family": "modulo", "options": {"sizes": [1e9], "shifts": [1]}}),
        "another type",
    ),
    (
        _make_change(
            "question", {"family": "modulo", "options": {"sizes": [10**9], "shifts": [1]}}
        ),
        "4000",
    ),
    (
        _make_change(
            "question", {"family": "modulo", "options": {"sizes": [10**9] * 40, "shifts": [1]}}
        ),
        "32",
    ),
    (
        _make_change(
            "question",
            {"family": "modulo", "options": {"sizes": [4000], "shifts": [*range(1, 4000)]}},
        ),
        "entries",
    ),
    (
        _make_change(
            "question",
            {
                "family": "modulo",
                "options": {"sizes": [9], "shifts": [1, 2], "epsilon": "1=1e-300"},
            },
        ),
        "power",
    ),
    (
        _make_change(
            "question",
            {"family": "modulo", "options": {"sizes": [9], "shifts": [1], "epsilon": "1=999"}},
        ),
        "power",
    ),
    (
        _make_change(
            "question", {"family": "labels", "options": {"labels": "0..1000000000", "method": "lp"}}
        ),
        "4000",
    ),
    (lambda data: data.update(delta=["0", "0"], question=QUESTION_WITH_MANY_KNOTS), "knots"),
]


@pytest.mark.parametrize(("change", "reason"), HUGE_CHANGES)
def test_a_program_that_is_too_large_is_refused_before_it_is_built(
    change: Callable[[Any], None], reason: str
) -> None:
    data = make_file(is_delta_free=False)
    change(data)
    with pytest.raises(CHECKER.Refused, match=reason) as refused:
        CHECKER.prove_statement(data)
    assert refused.value.args[0] in ("unreadable", "too large")


def _move_lowest_end(data: Any, difference: Fraction) -> None:
    """Add a number to the lower end of the first region, a rational x just below e^0.5."""
    region = data["regions"][0]
    region["low"] = str(Fraction(region["low"]) + difference)


def test_a_region_may_begin_just_below_its_interval() -> None:
    data = make_file(is_delta_free=False)
    _move_lowest_end(data, Fraction(-1, 10**18))
    assert CHECKER.prove_statement(data)


def test_a_region_that_begins_just_above_its_interval_is_refused() -> None:
    data = make_file(is_delta_free=False)
    _move_lowest_end(data, Fraction(5, 10**16))
    with pytest.raises(CHECKER.Refused, match="left out"):
        CHECKER.prove_statement(data)


def test_a_formula_with_an_unknown_loss_is_undecided(tmp_path: Path) -> None:
    (path,) = wb.formula(COUNTS, loss="pinball:0.3", epsilon=1).save(tmp_path / "f.json")
    process = run_checker(path)
    assert process.returncode == 2
    assert "unknown" in process.stdout


def test_a_file_without_a_formula_is_undecided(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text("{}")
    assert run_checker(path).returncode == 2


def test_a_missing_file_is_undecided(tmp_path: Path) -> None:
    assert run_checker(tmp_path / "none.json").returncode == 2


def _open_last_interval(data: Any) -> list[float]:
    """Remove the last region, and return its interval of ε, which is now listed as open."""
    data["regions"].pop()
    interval: list[float] = data["pieces"].pop()["epsilon"]
    data["open"] = [interval]
    return interval


def test_open_intervals_are_reported(tmp_path: Path) -> None:
    data = make_file(is_delta_free=False)
    interval = _open_last_interval(data)
    assert "1 intervals are open" in CHECKER.prove_statement(data)
    path = tmp_path / "f.json"
    path.write_text(json.dumps(data))
    assert wb.check(path).unproven == (tuple(interval),)


def test_a_wrong_list_of_open_intervals_is_refused() -> None:
    data = make_file(is_delta_free=False)
    interval = _open_last_interval(data)
    for wrong_intervals in ([], [[0.5, 3.0]], [interval] * 2, [[interval[0], None]]):
        data["open"] = wrong_intervals
        with pytest.raises(CHECKER.Refused):
            CHECKER.prove_statement(data)
