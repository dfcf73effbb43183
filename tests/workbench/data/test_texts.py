"""Python accepts the texts of the command line for every argument and option."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

import workbench as wb
from workbench.pipeline.family import Family
from workbench.pipeline.registry import list_families

SAME: list[tuple[Any, Any]] = [
    (
        lambda: wb.ModuloNoise(sizes="5x5", shifts="0,1;"),
        lambda: wb.ModuloNoise(None, [(0, 1)], sizes=(5, 5)),
    ),
    (lambda: wb.ModuloNoise(n="8", max_shift="3"), lambda: wb.ModuloNoise(8, max_shift=3)),
    (lambda: wb.ModuloNoise("8", "1, 2,-3"), lambda: wb.ModuloNoise(8, [1, 2, -3])),
    (lambda: wb.IntegerNoise("3", clamp="-2..50"), lambda: wb.IntegerNoise(3, clamp=(-2, 50))),
    (lambda: wb.RealNoise("2", "0.125", "0..200"), lambda: wb.RealNoise(2, 0.125, (0, 200))),
    (lambda: wb.Quantization(levels="4", c="2"), lambda: wb.Quantization(levels=4, c=2)),
    (lambda: wb.Quantization("-3,-0.5,0.5,3"), lambda: wb.Quantization([-3, -0.5, 0.5, 3])),
    (lambda: wb.FiniteQuery("0..3", max_shift="1"), lambda: wb.FiniteQuery(range(4), max_shift=1)),
]


@pytest.mark.parametrize(("spelled", "built"), SAME)
def test_questions_from_texts(spelled: Any, built: Any) -> None:
    assert spelled() == built()


def test_labels_from_texts() -> None:
    for labels in (wb.Labels("0..3", "1,2,1,1"), wb.Labels([0, 1, 2, 3], [1, 2, 1, 1])):
        assert labels.values.tolist() == [0, 1, 2, 3]
        assert labels.prior.tolist() == [0.2, 0.4, 0.2, 0.2]
    assert wb.Labels("0..3", "uniform").prior.tolist() == [0.25] * 4
    assert wb.Labels.uniform("0", "3").k == 4


DESIGNS = [
    (family, line)
    for family in list_families()
    for line in family.design_examples
    if ".csv" not in line
]


@pytest.mark.parametrize(
    ("family", "line"), DESIGNS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_example_of_a_command_line_is_a_request_in_python(family: Family, line: str) -> None:
    names = {option.command or option.name: option.name for option in family.options}
    given: dict[str, Any] = {}
    words = [
        part
        for word in shlex.split(line)[2:]
        for part in (word.split("=", 1) if word[:2] == "--" else [word])
    ]
    while words:
        name = names[words.pop(0).removeprefix("--").replace("-", "_")]
        given[name] = True if not words or words[0].startswith("--") else words.pop(0)
    assert family.make_request_from_options(**given).budget_text is not None


@pytest.mark.parametrize("wrong", ["1_0", "1.5", "x", "", "\uff11", "5x"])
def test_other_texts_are_no_integers(wrong: str) -> None:
    for call in (
        lambda: wb.ModuloNoise(wrong, max_shift=1),
        lambda: wb.ModuloNoise(sizes=f"{wrong}x5", shifts="0,1;1,0"),
        lambda: wb.ModuloNoise(8, shifts=wrong),
        lambda: wb.IntegerNoise(wrong),
        lambda: wb.IntegerNoise(1, clamp=f"0..{wrong}"),
        lambda: wb.design(wb.IntegerNoise(1), epsilon=1, runs=wrong),
    ):
        with pytest.raises(wb.InvalidRequest):
            call()
