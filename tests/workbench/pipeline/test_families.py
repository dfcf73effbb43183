"""Test that every family has its options in Python, on the command line and in sweeps.

The designs of all families have the same columns and reports.
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

REQUESTS = {
    "channel": (wb.FiniteQuery("0..4", max_shift=1), {"epsilon": 1}),
    "noise": (wb.IntegerNoise(2), {"epsilon": 1, "delta": "0.01"}),
    "labels": (wb.Labels.uniform(0, 5), {"epsilon": "1/2"}),
    "laplace": (wb.DataLaw.uniform(-1, 1), {"epsilon": 1, "bits": 5}),
    "modulo": (wb.ModuloNoise(n=6, max_shift=2), {"epsilon": 1.5, "delta": "0.05", "notion": "dp"}),
    "quantizer": (wb.Quantization("-3,-0.5,0.5,3"), {"epsilon": Fraction(1)}),
}


@pytest.fixture(scope="module")
def designs():
    return {name: wb.design(question, **request) for name, (question, request) in REQUESTS.items()}


def test_every_family_is_listed_and_found_by_name_and_by_question():
    assert sorted(kind.name for kind in list_families()) == sorted(REQUESTS)
    for name, (question, _) in REQUESTS.items():
        assert get_family(name) is find_family(question)
        assert get_family(name).question_class.__name__ in repr(get_family(name))
    laplace = wb.design(*REQUESTS["laplace"][:1], **REQUESTS["laplace"][1])
    assert len(laplace.plot().axes) == 1
    for shown in (laplace, laplace.mechanism):
        assert re.search("<svg|<img", shown._repr_html_())
        assert "<script" not in shown._repr_html_()
    with pytest.raises(wb.InvalidRequest, match="family must be one of modulo"):
        get_family("nois")


def test_help_and_completion_show_every_option():
    shown = inspect.signature(wb.design).parameters
    for kind in list_families():
        for option in kind.design_arguments:
            assert option.name in shown
            assert f"{option.name} (" in str(kind)
            assert " ".join(option.python_help.split()) in " ".join(wb.design.__doc__.split())
    assert shown["epsilon"].default is None  # a channel's may be what is minimised
    assert shown["solver"].default == "highs"
    assert shown["notion"].default == "dp"  # of every family


def test_the_stub_that_editors_read_is_up_to_date():
    made = runpy.run_path(str(Path(__file__).parents[3] / "tools" / "stub.py"))
    assert made["STUB"].read_text("utf-8") == made["make_stub"](wb._MODULE_BY_NAME, wb.__doc__), (
        "write it again: tools/stub.py"
    )


@pytest.mark.parametrize("value", ["0.1", 0.1, Fraction(1, 10), "1/10", "1e-1"])
def test_one_reader_makes_one_exact_number_of_all_spellings(value):
    for kind in list_families():
        assert kind.get_option("epsilon").read_value(value) == Fraction(1, 10)
        with pytest.raises(wb.InvalidRequest, match=r"^epsilon must be"):
            kind.get_option("epsilon").read_value("one")


def test_every_family_gives_the_same_columns(designs):
    for name, design in designs.items():
        row = design.row()
        assert tuple(row)[: len(OUTCOME_COLUMNS) - 7] == OUTCOME_COLUMNS[:-7]
        assert set(OUTCOME_COLUMNS) <= set(row)
        assert list(design.to_frame().columns) == list(row)
        exact = design.to_dict()["exact"]
        assert {"pure_epsilon", "pdp_delta", "dp_delta"} <= set(exact)
        if name != "laplace":
            assert row["private"] is True
            assert row["certified"] is True
            assert (row["pdp_delta"], row["dp_delta"]) == (0.0, 0.0) or name in ("modulo", "noise")


def test_a_design_has_a_report_json_row_plot_and_file(designs, tmp_path: Path):
    for name, design in designs.items():
        assert "\n" not in repr(design)
        assert len(repr(design)) < 200
        page = design._repr_html_()
        assert not re.search(
            rf"\w=|{type(design.question).__name__}", design.heading
        )  # words, no call of Python
        assert design.heading in repr(design)
        assert str(design).startswith(f"{design.heading}\n")
        assert html.escape(design.heading) in page
        if design.drawable:
            assert design.family.figure_caption(design).startswith(
                f"{design.heading}\n{design.request.budget_text}: "
            )
        assert "<script" not in page
        assert bool(re.search("<svg|<img", page)) == get_family(name).draws
        for label, sentence in design.facts():
            assert label in str(design)
            assert sentence in str(design)
        json.dumps(design.to_dict(), allow_nan=False)
        if name != "laplace":
            design.save(tmp_path / f"{name}.json")
            assert wb.check(tmp_path / f"{name}.json").notion == design.claim.notion.name
            design.plot(tmp_path / f"{name}.svg")
            assert (tmp_path / f"{name}.svg").stat().st_size > 1000


def test_a_design_can_be_pickled(designs):
    """A pickle of it says the same; its certificate is proven again where it arrives."""
    raw = [
        wb.design(question, **request, certify=False)
        for name, (question, request) in REQUESTS.items()
        if name != "laplace"
    ]
    more = [
        wb.design(
            wb.ModuloNoise(n=5, shifts=[1]),
            epsilon=1,
            loss="squared",
            zero_mean=True,
            equal="1=5,2=4",
        ),
        wb.design(wb.Labels.uniform(0, 3), epsilon=1, method="lp"),
    ]
    for design in (*designs.values(), *raw, *more):
        again = pickle.loads(pickle.dumps(design))
        assert again.family is design.family
        assert (str(again), again.row(), again.to_dict()) == (
            str(design),
            design.row(),
            design.to_dict(),
        )
        assert again.claim == design.claim
        assert again.certificate == design.certificate


def test_an_unreachable_number_of_bits_is_reported_as_a_design():
    design = wb.design(wb.DataLaw.uniform(-1, 1), epsilon=1, bits=1)
    assert (design.mechanism, design.status, design.row()["objective"]) == (
        None,
        "infeasible",
        None,
    )
    assert "no ell brings" in str(design)
    assert design.to_dict()["reachable"] is False


def test_a_request_is_typed_exact_and_frozen():
    request = get_family("modulo").make_request(
        wb.ModuloNoise(n=6, shifts=[1, 2]), epsilon={1: "0.1", 2: 1}, time_limit="2.5"
    )
    assert request.budgets == {(1,): Fraction(1, 10), (2,): 1, (5,): 1, (6,): Fraction(1, 10)}
    assert (request.claim.delta, request.how.options.time_limit, request.how.check) == (
        0,
        2.5,
        "certify",
    )
    with pytest.raises(AttributeError):
        request.claim = None
    moved = request.at_point({"epsilon": Fraction(2)})
    assert set(moved.budgets.values()) == {2}
    assert request.budgets[1,] == Fraction(1, 10)


def test_canonical_json_spells_exact_values():
    value = {"a": Fraction(1, 3), (1, 2): (Fraction(1, 10), None, True)}
    assert to_json_value(value) == {"a": "1/3", "1,2": ["0.1", None, True]}


def test_ctrl_c_is_not_caught(monkeypatch):
    from workbench.solvers.session import Session

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Session, "solve", stop)
    for name in ("modulo", "quantizer"):
        question, request = REQUESTS[name]
        with pytest.raises(KeyboardInterrupt):
            wb.design(question, **request)
    with pytest.raises(KeyboardInterrupt):  # what a solver made of Ctrl-C is no failed row
        failure_row(wb.NotProven("stopped", interrupted=True))
