"""Test what all families have in common: options, columns, reports, files and errors.

A family is a kind of question with its designs: "channel", "noise", "labels", "laplace", "modulo"
and "quantizer". A test with the argument `family_name` runs for each of them.
"""

from __future__ import annotations

import html
import inspect
import json
import pickle
import re
import runpy
from fractions import Fraction
from pathlib import Path

import pytest

import workbench as wb
from workbench.pipeline.option import to_json_value
from workbench.pipeline.outcome import OUTCOME_COLUMNS, failure_row
from workbench.pipeline.registry import find_family, get_family, list_families
from workbench.solvers.session import Session

# A question and the options of a fast design, for every family.
REQUESTS = {
    "channel": (wb.FiniteQuery("0..4", max_shift=1), {"epsilon": 1}),
    "noise": (wb.IntegerNoise(2), {"epsilon": 1, "delta": "0.01"}),
    "labels": (wb.Labels.uniform(0, 5), {"epsilon": "1/2"}),
    "laplace": (wb.DataLaw.uniform(-1, 1), {"epsilon": 1, "bits": 5}),
    "modulo": (wb.ModuloNoise(n=6, max_shift=2), {"epsilon": 1.5, "delta": "0.05", "notion": "dp"}),
    "quantizer": (wb.Quantization("-3,-0.5,0.5,3"), {"epsilon": Fraction(1)}),
}


# The mechanism of "laplace" is proven by its construction, so it has no certificate file.
CERTIFIED_FAMILIES = [name for name in REQUESTS if name != "laplace"]


@pytest.fixture(scope="module")
def designs():
    """Return the design of every family, by the name of the family."""
    return {name: wb.design(question, **request) for name, (question, request) in REQUESTS.items()}


def test_every_family_is_listed_and_found_by_name_and_by_question():
    assert sorted(family.name for family in list_families()) == sorted(REQUESTS)
    for name, (question, _) in REQUESTS.items():
        family = get_family(name)
        assert family is find_family(question)
        assert family.question_class.__name__ in repr(family)
    with pytest.raises(wb.InvalidRequest, match="family must be one of modulo"):
        get_family("nois")


def test_a_laplace_design_and_its_mechanism_are_drawn(designs):
    design = designs["laplace"]
    assert len(design.plot().axes) == 1
    for html_text in (design._repr_html_(), design.mechanism._repr_html_()):
        assert re.search("<svg|<img", html_text)
        assert "<script" not in html_text


def test_the_help_and_the_signature_of_design_have_every_option():
    parameters = inspect.signature(wb.design).parameters
    help_text = " ".join(wb.design.__doc__.split())
    for family in list_families():
        for option in family.design_arguments:
            assert option.name in parameters
            assert f"{option.name} (" in str(family)
            assert " ".join(option.python_help.split()) in help_text
    assert parameters["epsilon"].default is None  # A channel can have a minimised epsilon.
    assert parameters["solver"].default == "highs"
    assert parameters["notion"].default == "dp"


def test_the_stub_that_editors_read_is_up_to_date():
    tool = runpy.run_path(str(Path(__file__).parents[3] / "tools" / "stub.py"))
    stub = tool["make_stub"](wb._MODULE_BY_NAME, wb.__doc__)
    assert tool["STUB"].read_text("utf-8") == stub, "run tools/stub.py"


@pytest.mark.parametrize("value", ["0.1", 0.1, Fraction(1, 10), "1/10", "1e-1"])
def test_every_family_reads_all_spellings_of_a_tenth_as_the_same_exact_number(value):
    for family in list_families():
        assert family.get_option("epsilon").read_value(value) == Fraction(1, 10)


def test_every_family_refuses_an_epsilon_that_is_no_number():
    for family in list_families():
        with pytest.raises(wb.InvalidRequest, match=r"^epsilon must be"):
            family.get_option("epsilon").read_value("one")


@pytest.mark.parametrize("family_name", REQUESTS)
def test_every_family_gives_the_same_columns(designs, family_name: str):
    row = designs[family_name].row()
    # The last seven columns may follow columns of the family.
    assert tuple(row)[: len(OUTCOME_COLUMNS) - 7] == OUTCOME_COLUMNS[:-7]
    assert set(OUTCOME_COLUMNS) <= set(row)
    assert list(designs[family_name].to_frame().columns) == list(row)


@pytest.mark.parametrize("family_name", REQUESTS)
def test_every_family_states_its_exact_privacy_in_the_json(designs, family_name: str):
    exact = designs[family_name].to_dict()["exact"]
    assert {"pure_epsilon", "pdp_delta", "dp_delta"} <= set(exact)


@pytest.mark.parametrize("family_name", CERTIFIED_FAMILIES)
def test_designs_with_a_mechanism_file_are_private_and_certified(designs, family_name: str):
    row = designs[family_name].row()
    assert row["private"] is True
    assert row["certified"] is True


@pytest.mark.parametrize("family_name", ["channel", "labels", "quantizer"])
def test_designs_for_delta_0_have_delta_0(designs, family_name: str):
    row = designs[family_name].row()
    assert (row["pdp_delta"], row["dp_delta"]) == (0, 0)


@pytest.mark.parametrize("family_name", REQUESTS)
def test_the_repr_of_a_design_is_one_short_line(designs, family_name: str):
    text = repr(designs[family_name])
    assert "\n" not in text
    assert len(text) < 200


@pytest.mark.parametrize("family_name", REQUESTS)
def test_the_heading_of_a_design_is_a_text_and_begins_its_reports(designs, family_name: str):
    design = designs[family_name]
    # The heading is no call in Python.
    assert not re.search(rf"\w=|{type(design.question).__name__}", design.heading)
    assert design.heading in repr(design)
    assert str(design).startswith(f"{design.heading}\n")
    assert html.escape(design.heading) in design._repr_html_()
    if design.drawable:
        caption = design.family.figure_caption(design)
        assert caption.startswith(f"{design.heading}\n{design.request.budget_text}: ")


@pytest.mark.parametrize("family_name", REQUESTS)
def test_a_notebook_shows_a_picture_of_a_design_without_script(designs, family_name: str):
    page = designs[family_name]._repr_html_()
    assert "<script" not in page
    assert bool(re.search("<svg|<img", page)) == get_family(family_name).draws


@pytest.mark.parametrize("family_name", REQUESTS)
def test_the_report_of_a_design_has_all_its_facts(designs, family_name: str):
    design = designs[family_name]
    for label, sentence in design.facts():
        assert label in str(design)
        assert sentence in str(design)


@pytest.mark.parametrize("family_name", REQUESTS)
def test_the_json_of_a_design_is_strict(designs, family_name: str):
    json.dumps(designs[family_name].to_dict(), allow_nan=False)


@pytest.mark.parametrize("family_name", CERTIFIED_FAMILIES)
def test_a_design_is_saved_as_a_certificate_and_a_plot(designs, family_name: str, tmp_path: Path):
    design = designs[family_name]
    design.save(tmp_path / "design.json")
    assert wb.check(tmp_path / "design.json").notion == design.claim.notion.name
    design.plot(tmp_path / "design.svg")
    assert (tmp_path / "design.svg").stat().st_size > 1000


def test_a_design_can_be_pickled(designs):
    """The copy has the same report. Its certificate is proven again when it is loaded."""
    raw_designs = [
        wb.design(question, **request, certify=False)
        for name, (question, request) in REQUESTS.items()
        if name != "laplace"
    ]
    other_designs = [
        wb.design(
            wb.ModuloNoise(n=5, shifts=[1]),
            epsilon=1,
            loss="squared",
            zero_mean=True,
            equal="1=5,2=4",
        ),
        wb.design(wb.Labels.uniform(0, 3), epsilon=1, method="lp"),
    ]
    for design in (*designs.values(), *raw_designs, *other_designs):
        copy = pickle.loads(pickle.dumps(design))
        assert copy.family is design.family
        assert str(copy) == str(design)
        assert copy.row() == design.row()
        assert copy.to_dict() == design.to_dict()
        assert copy.claim == design.claim
        assert copy.certificate == design.certificate


def test_an_unreachable_number_of_bits_is_reported_as_a_design():
    design = wb.design(wb.DataLaw.uniform(-1, 1), epsilon=1, bits=1)
    assert design.mechanism is None
    assert design.status == "infeasible"
    assert design.row()["objective"] is None
    assert "no ell brings" in str(design)
    assert design.to_dict()["reachable"] is False


def test_a_request_is_typed_exact_and_frozen():
    request = get_family("modulo").make_request(
        wb.ModuloNoise(n=6, shifts=[1, 2]), epsilon={1: "0.1", 2: 1}, time_limit="2.5"
    )
    assert request.budgets == {(1,): Fraction(1, 10), (2,): 1, (5,): 1, (6,): Fraction(1, 10)}
    assert request.claim.delta == 0
    assert request.how.options.time_limit == 2.5
    assert request.how.check == "certify"
    with pytest.raises(AttributeError):
        request.claim = None
    other_request = request.at_point({"epsilon": Fraction(2)})
    assert set(other_request.budgets.values()) == {2}
    assert request.budgets[1,] == Fraction(1, 10)


def test_canonical_json_spells_exact_values():
    value = {"a": Fraction(1, 3), (1, 2): (Fraction(1, 10), None, True)}
    assert to_json_value(value) == {"a": "1/3", "1,2": ["0.1", None, True]}


def test_ctrl_c_is_not_caught(monkeypatch):
    def press_ctrl_c(*_, **__):
        """Raise the error of Ctrl-C."""
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "solve", press_ctrl_c)
    for name in ("modulo", "quantizer"):
        question, request = REQUESTS[name]
        with pytest.raises(KeyboardInterrupt):
            wb.design(question, **request)
    # A solver may turn Ctrl-C into NotProven. Then it is no row of a failed point.
    with pytest.raises(KeyboardInterrupt):
        failure_row(wb.NotProven("stopped", interrupted=True))
