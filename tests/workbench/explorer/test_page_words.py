"""Test the words of the page: texts that people type, names of notions, and facts.

The texts are read by texts.js, which Node.js runs. Without it, these tests are skipped.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from typing import Any

import pytest

from workbench.explorer.figures import make_curve_figure
from workbench.explorer.given import make_suggestions
from workbench.explorer.page import read_asset
from workbench.explorer.tasks import Tasks
from workbench.notions import notion_names
from workbench.pipeline.registry import get_family

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="Node.js is missing: apt-get install nodejs")


def run_javascript(expression: str) -> Any:
    """Return the value of an expression that uses the functions of texts.js."""
    assert NODE is not None
    script = f"{read_asset('texts.js')}\nconsole.log(JSON.stringify({expression}));"
    output = subprocess.run([NODE, "-e", script], capture_output=True, text=True, check=True)
    return json.loads(output.stdout)


@needs_node
def test_texts_with_one_meaning_get_their_plain_form() -> None:
    # (name of the field, text that a person types) -> text that the workbench reads.
    texts = {
        ("range", "0 to 50"): "0..50",
        ("answers", "0-50"): "0..50",
        ("answers", "-5 – 5"): "-5..5",
        ("range", "[0, 2.5]"): "0..2.5",
        ("epsilon", "1,5"): "1.5",
        ("delta", "10^-5"): "1e-5",
        ("delta", "2*10^-6"): "2e-6",
        ("delta", "5 %"): "5/100",
    }
    pairs = [[name, text] for name, text in texts]
    plain_texts = run_javascript(f"{json.dumps(pairs)}.map((pair) => readPlainText(...pair))")
    assert dict(zip(texts, plain_texts, strict=True)) == texts


@needs_node
def test_other_texts_are_not_changed() -> None:
    """A comma separates two answers, and may separate thousands. Plain texts stay as they are."""
    pairs = [
        ["answers", "1,5"],
        ["answers", "[1, 5]"],
        ["epsilon", "1,500"],
        ["epsilon", "1/3"],
        ["epsilon", "ln(3)"],
        ["loss", "10^-5"],
        ["answers", "0..50"],
    ]
    plain_texts = run_javascript(f"{json.dumps(pairs)}.map((pair) => readPlainText(...pair))")
    assert plain_texts == [text for _, text in pairs]


@needs_node
@pytest.mark.parametrize(
    ("text", "value"), [("ln(3)", math.log(3)), ("log 2", math.log(2)), ("sqrt(2)", math.sqrt(2))]
)
def test_a_budget_that_must_be_rounded_is_proposed_and_rounded_down(
    text: str, value: float
) -> None:
    proposal = run_javascript(f"proposePlainText('epsilon', {json.dumps(text)})")
    assert value - 1e-8 < float(proposal["text"]) <= value
    assert "rounded down" in proposal["note"]


@needs_node
def test_a_text_with_two_meanings_is_proposed() -> None:
    assert run_javascript("proposePlainText('epsilon', '1,500')") == {"text": "1.500", "note": ""}
    assert run_javascript("proposePlainText('epsilon', 'abc')") is None


def test_notions_have_their_full_names() -> None:
    labels = make_suggestions(get_family("modulo"))["labels"]["notion"]
    assert labels["zcdp"] == "zero-concentrated differential privacy (ρ)"
    assert labels.keys() <= set(notion_names())
    assert all("differential privacy" in label or "curve" in label for label in labels.values())


def test_the_page_of_laplace_noise_has_no_letters_of_the_paper() -> None:
    given = {"epsilon": "1", "bits": "5"}
    view = Tasks().run("design", {"family": "laplace", "given": given})
    words = {word for fact in view["facts"] for text in fact for word in text.split()}
    assert not words & {"ell", "delta0", "decoder_epsilon"}
    assert ["ε towards the decoder", repr(view["objective"])] in view["facts"]


@pytest.mark.parametrize(("count", "look"), [(3, "points"), (9, "hollow")])
def test_no_line_is_drawn_through_few_points(count: int, look: str) -> None:
    rows = [
        {"epsilon": k + 1.0, "objective": 1 / (k + 1), "oracle_kind": None} for k in range(count)
    ]
    figure = make_curve_figure("epsilon", "error rate", rows, scale="log", steps=False)
    (series,) = figure["series"]
    assert series["look"] == look
    assert ("lines" in figure["note"]) == (look == "hollow")
