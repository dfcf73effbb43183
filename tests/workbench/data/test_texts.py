"""Test that Python accepts every argument and option also as the text of the command line."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

import workbench as wb
from workbench.pipeline.family import Family
from workbench.pipeline.registry import list_families

# Functions that make the same question from texts and from numbers.
QUESTIONS: list[tuple[Any, Any]] = [
    (
        # The semicolon makes "0,1" one shift of two components, not two shifts.
        lambda: wb.ModuloNoise(sizes="5x5", shifts="0,1;"),
        lambda: wb.ModuloNoise(None, [(0, 1)], sizes=(5, 5)),
    ),
    (lambda: wb.ModuloNoise(n="8", max_shift="3"), lambda: wb.ModuloNoise(8, max_shift=3)),
    (lambda: wb.ModuloNoise("8", "1, 2,-3"), lambda: wb.ModuloNoise(8, [1, 2, -3])),
    (lambda: wb.IntegerNoise("3", clamp="-2..50"), lambda: wb.IntegerNoise(3, clamp=(-2, 50))),
    (
        lambda: wb.RealNoise("2", "0.125", "0..200"),
        lambda: wb.RealNoise(sensitivity=2, grid=0.125, clamp=(0, 200)),
    ),
    (lambda: wb.Quantization(levels="4", c="2"), lambda: wb.Quantization(levels=4, c=2)),
    (lambda: wb.Quantization("-3,-0.5,0.5,3"), lambda: wb.Quantization([-3, -0.5, 0.5, 3])),
    (lambda: wb.FiniteQuery("0..3", max_shift="1"), lambda: wb.FiniteQuery(range(4), max_shift=1)),
]


@pytest.mark.parametrize(("make_from_texts", "make_from_numbers"), QUESTIONS)
def test_a_question_from_texts_equals_the_question_from_numbers(
    make_from_texts: Any, make_from_numbers: Any
) -> None:
    assert make_from_texts() == make_from_numbers()


@pytest.mark.parametrize(
    "labels", [wb.Labels("0..3", "1,2,1,1"), wb.Labels([0, 1, 2, 3], [1, 2, 1, 1])]
)
def test_labels_and_their_prior_are_read_from_texts(labels: wb.Labels) -> None:
    assert labels.values.tolist() == [0, 1, 2, 3]
    assert labels.prior.tolist() == [0.2, 0.4, 0.2, 0.2]


def test_uniform_labels_are_read_from_texts() -> None:
    assert wb.Labels("0..3", "uniform").prior.tolist() == [0.25] * 4
    assert wb.Labels.uniform("0", "3").k == 4


# The families, each with a command line that its help shows.
DESIGN_EXAMPLES = [
    (family, line)
    for family in list_families()
    for line in family.design_examples
    if ".csv" not in line
]


def parse_options(line: str, family: Family) -> dict[str, Any]:
    """Return the options of a command line by their Python names: texts, and True for flags.

    Example: "design modulo --n=8 --max-shift 3" -> {"n": "8", "max_shift": "3"}
    """
    python_names = {option.command or option.name: option.name for option in family.options}
    words: list[str] = []
    for word in shlex.split(line)[2:]:
        words += word.split("=", 1) if word.startswith("--") else [word]
    options: dict[str, Any] = {}
    while words:
        name = python_names[words.pop(0).removeprefix("--").replace("-", "_")]
        is_flag = not words or words[0].startswith("--")
        options[name] = True if is_flag else words.pop(0)
    return options


@pytest.mark.parametrize(
    ("family", "line"), DESIGN_EXAMPLES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_the_texts_of_every_example_make_a_request_in_python(family: Family, line: str) -> None:
    # Wrong texts would raise InvalidRequest here. The budget is read from them too.
    request = family.make_request_from_options(**parse_options(line, family))
    assert request.budget_text is not None


# Python's int() accepts "1_0", and "\uff11", the digit 1 in full width.
@pytest.mark.parametrize("text", ["1_0", "1.5", "x", "", "\uff11", "5x"])
@pytest.mark.parametrize(
    "read_integer_option",
    [
        lambda text: wb.ModuloNoise(text, max_shift=1),
        lambda text: wb.ModuloNoise(sizes=f"{text}x5", shifts="0,1;1,0"),
        lambda text: wb.ModuloNoise(8, shifts=text),
        lambda text: wb.IntegerNoise(text),
        lambda text: wb.IntegerNoise(1, clamp=f"0..{text}"),
        lambda text: wb.design(wb.IntegerNoise(1), epsilon=1, runs=text),
    ],
    ids=["n", "sizes", "shifts", "sensitivity", "clamp", "runs"],
)
def test_a_text_that_is_no_integer_is_refused(read_integer_option: Any, text: str) -> None:
    with pytest.raises(wb.InvalidRequest):
        read_integer_option(text)
