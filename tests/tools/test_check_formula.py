"""The independent checker of formulas proves the files of the workbench, and refuses others."""

from __future__ import annotations

import ast
import copy
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
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


_SPEC = importlib.util.spec_from_file_location("check_formula", TOOL)
assert _SPEC is not None
assert _SPEC.loader is not None
CHECKER = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(CHECKER)


@cache
def saved(free: bool) -> Any:
    """The file of a formula, with δ free or given."""
    formula = wb.formula(COUNTS, loss="squared", epsilon="0.5..3", delta="0..1" if free else "1/20")
    return json.loads(json.dumps(formula.to_dict() | formula.proof()))


def run(path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-S", str(TOOL), str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


COMMANDS = [
    "channel --answers 0..2 --max-shift 1 --loss absolute",
    "channel --answers 0..2 --max-shift 1 --loss absolute --directed --prior 1,2,3",
    "modulo --n 8 --max-shift 3 --directed",
    "labels --labels 0,1,4 --prior 1,2,3 --method lp",
    "quantizer --bins -2,-0.5,0.5,2",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_it_reads_what_the_command_line_saved(command: str, tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    with pytest.raises(SystemExit, match="0"):
        main(["formula", *command.split(), "--save", str(path)])
    done = run(path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert wb.check(path)


def test_it_is_one_file_of_the_standard_library() -> None:
    names = set()
    for node in ast.walk(ast.parse(TOOL.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module)
    assert names <= {"__future__", *sys.stdlib_module_names}


@pytest.mark.parametrize(("question", "options"), QUESTIONS)
def test_it_proves_what_the_workbench_finds(
    question: Any, options: dict[str, Any], tmp_path: Path
) -> None:
    formula = wb.formula(question, **options)
    (path,) = formula.save(tmp_path / "f.json")
    done = run(path)
    assert done.returncode == 0, done.stdout + done.stderr
    one_way = " (one side of each pair only)" if getattr(question, "directed", False) else ""
    assert f"proven: {formula.what}{one_way}: {len(formula.pieces)} formulas" in done.stdout
    assert "without gap" in done.stdout


def _numerator(data: Any) -> None:
    data["pieces"][0]["numerator"][0] += 1


def _delta(data: Any) -> None:
    data["delta"][1] = "1/2"


def _loss(data: Any) -> None:
    data["question"]["options"]["loss"] = "absolute"


def _region(data: Any) -> None:
    del data["regions"][1]


def _end(data: Any) -> None:
    data["regions"][0]["high"] = data["regions"][1]["low"] = "5"


def _basis(data: Any) -> None:
    data["regions"][0]["bases"] = data["regions"][1]["bases"]


def _wider(data: Any) -> None:
    data["regions"] = [{**data["regions"][0], "high": None}]


@pytest.mark.parametrize("change", [_numerator, _delta, _loss, _region, _end, _basis, _wider])
@pytest.mark.parametrize("free", [True, False])
def test_it_refuses_what_is_changed(
    change: Callable[[Any], None], free: bool, tmp_path: Path
) -> None:
    (path,) = wb.formula(COUNTS, loss="squared", delta="0..1" if free else "1/20").save(
        tmp_path / "f.json"
    )
    data = json.loads(path.read_text())
    changed = copy.deepcopy(data)
    change(changed)
    assert changed != data
    path.write_text(json.dumps(changed))
    done = run(path)
    assert done.returncode == 1, done.stdout
    assert "false" in done.stdout


def _feasible(data: Any) -> None:
    data["regions"][0]["feasible"] = True


def _violated(data: Any) -> None:
    data["regions"][-1]["feasible"] = False


def _outputs(data: Any) -> None:
    data["question"]["options"]["bins"] = ["-2", "-0.5", "0.5", "3"]


def _scale(data: Any) -> None:
    data["question"]["options"]["c"] = "3/2"


def _power(data: Any) -> None:
    data["variable"] = "x = exp(epsilon/2)"


@pytest.mark.parametrize("change", [_feasible, _violated, _outputs, _scale, _power, _region])
def test_it_refuses_a_changed_quantizer(change: Callable[[Any], None], tmp_path: Path) -> None:
    (path,) = wb.formula(wb.Quantization("-2,-0.5,0.5,2")).save(tmp_path / "f.json")
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    assert run(path).returncode in (1, 2)
    assert "proven" not in run(path).stdout


def _set(*path: Any) -> Callable[[Any], None]:
    """Put the last argument at the place that the others lead to."""
    *places, last, value = path

    def change(data: Any) -> None:
        for place in places:
            data = data[place]
        data[last] = value

    return change


def _extra_piece(data: Any) -> None:
    data["pieces"].append(data["pieces"][0])


SHOWN: list[Callable[[Any], None]] = [
    _set("what", "best noise for everything, no loss"),
    _set("what", "best channel, squared loss\nother.json: proven: everything"),
    _set("variable", "x = exp(epsilon/2)"),
    _set("pieces", 0, "epsilon", [0, None]),
    _set("pieces", 0, "epsilon", [0.0, None]),
    _set("pieces", 0, "epsilon", [0.0, 20.0]),
    _set("pieces", 0, "epsilon", 1, 1.0120),
    _set("pieces", 0, "epsilon", [False, 1]),
    _set("pieces", 0, "delta", [0.0, 1.0]),
    _set("pieces", 0, "delta", 0, None),
    _set("pieces", 0, "formula", "1 / 2"),
    _set("pieces", 0, "formula", "infeasible"),
    _set("pieces", 0, "formula", ["1"]),
    _set("pieces", 0, "proven", False),
    _set("pieces", 0, "proven", 1),
    _set("pieces", 0, "more", "words"),
    _set("pieces", 0, "denominator", [0]),
    _set("pieces", 0, "breakpoint", {"polynomial": [-2, 1], "value": [2.0, 2.0]}),
    _set("pieces", 0, "breakpoint", "value", [2.0, 3.0]),
    _set("pieces", 0, {}),
    _set("pieces", []),
    _set("open", [[0.5, 1.0]]),
    _set("more", "words"),
    _extra_piece,
    lambda data: data["pieces"].pop(),
    lambda data: data["pieces"].reverse(),
    lambda data: data["pieces"][0].pop("breakpoint"),
    lambda data: data["pieces"][0].pop("formula"),
]


@pytest.mark.parametrize("change", SHOWN)
@pytest.mark.parametrize("free", [True, False])
def test_everything_that_is_shown_is_checked(change: Callable[[Any], None], free: bool) -> None:
    data = copy.deepcopy(saved(free))
    assert CHECKER.prove_statement(data).startswith("best channel, squared loss")
    change(data)
    with pytest.raises(CHECKER.Refused):
        CHECKER.prove_statement(data)


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a value of JSON."""
    entries = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    for key, value in entries:
        yield (*path, key)
        yield from places(value, (*path, key))


def variants(value: Any) -> list[Any]:
    """Other values than one that stands somewhere."""
    others: list[Any] = [None, [value], str(value) + " "]
    if type(value) in (int, float):
        others += [
            str(value),
            -value if value else -0.0,
            value + 1,
            value * 2 if value else 0.5,
            not value,
        ]
    if isinstance(value, list):
        others += [value[::-1], value[:-1], value * 2]
    return [other for other in others if json.dumps(other) != json.dumps(value)]


def test_no_change_of_what_is_shown_is_proven() -> None:
    """Every place of the shown part, by every variant of what stands there, and without it."""
    formula = wb.formula(
        wb.FiniteQuery("0..1", "0..2", neighbours="all"), loss="absolute", delta="0..1/2"
    )
    data = json.loads(json.dumps(formula.to_dict() | formula.proof()))
    assert CHECKER.prove_statement(data)
    count = 0
    for path in list(places({name: data[name] for name in CHECKER.SHOWN_ENTRIES})):
        *outer, last = path
        value: Any = data
        for key in path:
            value = value[key]
        for other in (*variants(value), CHECKER):  # the last stands for its removal
            changed = copy.deepcopy(data)
            holder = changed
            for key in outer:
                holder = holder[key]
            if other is CHECKER:
                del holder[last]
            else:
                holder[last] = other
            count += 1
            with suppress(
                CHECKER.Refused, TypeError, ValueError, KeyError, AttributeError, IndexError
            ):
                CHECKER.prove_statement(changed)
                raise AssertionError((path, other))
    assert count > 120


def test_a_formula_as_text_is_read() -> None:
    data = copy.deepcopy(saved(True))
    texts = [piece["formula"] for piece in data["pieces"]] + data["pieces"][1]["delta_formula"]
    for piece in data["pieces"]:
        top, line, below = piece["formula"].partition(" / ")
        piece["formula"] = f"(2 ({top}){line}({below})) / 2"  # the same in other words
    assert "proven" not in CHECKER.prove_statement(data)
    assert len(set(texts)) > 4
    for text in ("e^ε", "e^(2ε) (1 - δ) / 3", "-(e^(ε/2) + 1) 2δ", "((1))"):
        assert CHECKER.FormulaParser(text, 2).parse()
    for text in (
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
    ):
        with pytest.raises(CHECKER.Refused):
            CHECKER.FormulaParser(text, 2).parse()


KNOTS = {"family": "quantizer", "options": {"bins": ["-2", "2"], "knots": 10**9}}
HUGE: list[tuple[Callable[[Any], None], str]] = [
    (_set("question", "options", "answers", ["0", "1", "2", "1e300000000"]), "moderate"),
    (_set("question", "options", "answers", [str(k) for k in range(9000)]), "4000"),
    (_set("question", "options", "prior", ["1e-300000000", "1", "1", "1"]), "moderate"),
    (_set("question", "options", "prior", ["9" * 5000, "1", "1", "1"]), "moderate"),
    (_set("question", "options", "prior", ["1/0", "1", "1", "1"]), "divides"),
    (_set("epsilon", ["1000000000", "1000000000"]), "above 100"),
    (_set("epsilon", ["0", "1e300000000"]), "moderate"),
    (_set("delta", ["0", "1e-300000000"]), "moderate"),
    (_set("regions", 0, "sample", "1e300000000"), "moderate"),
    (_set("regions", 0, "low", "1e300000000"), "moderate"),
    (_set("regions", 0, "high", [["1"] * 100_000, "1", "2"]), "terms"),
    (
        _set("question", {"family": "modulo", "options": {"sizes": [1e9], "shifts": [1]}}),
        "another type",
    ),
    (_set("question", {"family": "modulo", "options": {"sizes": [10**9], "shifts": [1]}}), "4000"),
    (
        _set("question", {"family": "modulo", "options": {"sizes": [10**9] * 40, "shifts": [1]}}),
        "32",
    ),
    (
        _set(
            "question",
            {"family": "modulo", "options": {"sizes": [4000], "shifts": [*range(1, 4000)]}},
        ),
        "entries",
    ),
    (
        _set(
            "question",
            {
                "family": "modulo",
                "options": {"sizes": [9], "shifts": [1, 2], "epsilon": "1=1e-300"},
            },
        ),
        "power",
    ),
    (
        _set(
            "question",
            {"family": "modulo", "options": {"sizes": [9], "shifts": [1], "epsilon": "1=999"}},
        ),
        "power",
    ),
    (
        _set(
            "question", {"family": "labels", "options": {"labels": "0..1000000000", "method": "lp"}}
        ),
        "4000",
    ),
    (lambda data: data.update(delta=["0", "0"], question=KNOTS), "knots"),
]


@pytest.mark.parametrize(("change", "reason"), HUGE)
def test_what_is_too_large_is_refused_before_it_is_built(
    change: Callable[[Any], None], reason: str
) -> None:
    data = copy.deepcopy(saved(False))
    change(data)
    with pytest.raises(CHECKER.Refused, match=reason) as refused:
        CHECKER.prove_statement(data)
    assert refused.value.args[0] in ("unreadable", "too large")


def test_the_ends_of_an_interval_are_compared_exactly() -> None:
    """A region that begins 5e-16 above e^0.5 was said to cover it."""
    data = copy.deepcopy(saved(False))
    low = Fraction(data["regions"][0]["low"])
    for moved, good in ((Fraction(-1, 10**18), True), (Fraction(5, 10**16), False)):
        data["regions"][0]["low"] = str(low + moved)
        with nullcontext() if good else pytest.raises(CHECKER.Refused, match="left out"):
            assert CHECKER.prove_statement(data)


def test_what_it_does_not_know_it_says(tmp_path: Path) -> None:
    (path,) = wb.formula(COUNTS, loss="pinball:0.3", epsilon=1).save(tmp_path / "f.json")
    assert (run(path).returncode, "unknown" in run(path).stdout) == (2, True)
    path.write_text("{}")
    assert run(path).returncode == 2
    assert run(tmp_path / "none.json").returncode == 2


def test_an_interval_that_is_open_is_said(tmp_path: Path) -> None:
    data = copy.deepcopy(saved(False))
    data["regions"].pop()
    last = data["pieces"].pop()
    data["open"] = [last["epsilon"]]
    assert "1 intervals are open" in CHECKER.prove_statement(data)
    path = tmp_path / "f.json"
    path.write_text(json.dumps(data))
    assert wb.check(path).unproven == (tuple(last["epsilon"]),)
    for wrong in ([], [[0.5, 3.0]], [last["epsilon"]] * 2, [[last["epsilon"][0], None]]):
        data["open"] = wrong
        with pytest.raises(CHECKER.Refused):
            CHECKER.prove_statement(data)
