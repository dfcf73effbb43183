"""Test modulo noise and channels under notions of several bounds.

These are curve (a list of (ε, δ) pairs that all hold), tradeoff, Rényi DP, zCDP and GDP.
"""

from __future__ import annotations

import functools
import json
import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.cli import main
from workbench.families.modulo.family import FAMILY
from workbench.mechanisms.additive import AdditiveNoise
from workbench.privacy.audit import audit

THREE_ANSWERS = wb.ModuloNoise(n=2, max_shift=1)
TEN_ANSWERS = wb.ModuloNoise(n=9, max_shift=2)
LABELS = wb.Labels.uniform(0, 3)
# Notion -> the options of its budget.
BUDGETS = {
    "curve": {"curve": "0.5:0.1,1:0.01"},
    "tradeoff": {"tradeoff": "0:1,0.1:0.6,0.4:0.2,1:0"},
    "renyi": {"alpha": 4, "epsilon": "0.5"},
    "zcdp": {"rho": "0.1"},
    "gdp": {"mu": 1},
}
# Smaller budgets, under which the designs are not private.
SMALLER_BUDGETS = {
    "curve": {"curve": "0.5:0.09,1:0.005"},
    "renyi": {"alpha": 4, "epsilon": "0.45"},
    "tradeoff": {"tradeoff": "0:1,0.1:0.61,0.4:0.21,1:0"},
    "zcdp": {"rho": "0.09"},
    "gdp": {"mu": "0.9"},
}
CHECKER = Path(__file__).parents[4] / "tools" / "check_certificate.py"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run a command line in this process.

    Returns:
        The exit code, standard output and standard error.
    """
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


@pytest.mark.parametrize("notion", BUDGETS)
def test_optimum_on_three_values_equals_bisection(notion):
    """By symmetry f = (1 - 2a, a, a), with the least a that the exact audit accepts."""
    design = wb.design(THREE_ANSWERS, notion=notion, **BUDGETS[notion])
    low = Fraction(0)
    high = Fraction(1, 3)
    for _ in range(30):
        a = (low + high) / 2
        privacy = audit(AdditiveNoise(THREE_ANSWERS, [1 - 2 * a, a, a]), 0)
        if privacy.meets(notion, **BUDGETS[notion]):
            high = a
        else:
            low = a
    assert design.objective == pytest.approx(float(2 * high), rel=1e-6)
    assert design.bound <= design.objective <= design.bound * (1 + 1e-5)


@functools.cache
def design_ten_answers(notion: str, loss: str) -> wb.Design:
    """Design noise for TEN_ANSWERS at the budget of a notion."""
    return wb.design(TEN_ANSWERS, notion=notion, loss=loss, **BUDGETS[notion])


ALL_NOTIONS_AND_LOSSES = [
    (notion, loss) for notion in BUDGETS for loss in ("squared", "error-rate")
]


@pytest.mark.parametrize(("notion", "loss"), ALL_NOTIONS_AND_LOSSES)
def test_design_is_private_and_within_its_gap(notion: str, loss: str):
    design = design_ten_answers(notion, loss)
    assert design.private
    assert design.status == "optimal"
    assert design.bound <= design.objective * (1 + 1e-12)
    assert design.objective <= design.bound * (1 + 1e-5)


@pytest.mark.parametrize(("notion", "loss"), ALL_NOTIONS_AND_LOSSES)
def test_design_is_not_private_at_a_smaller_budget(notion: str, loss: str):
    design = design_ten_answers(notion, loss)
    assert not design.privacy.meets(notion, **SMALLER_BUDGETS[notion])


@pytest.mark.parametrize(("notion", "loss"), ALL_NOTIONS_AND_LOSSES)
def test_design_is_certified_by_both_checkers(notion: str, loss: str, tmp_path: Path):
    path = tmp_path / "design.json"
    design_ten_answers(notion, loss).save(path)
    certificate = wb.check(path)
    assert certificate.claim.notion.name == notion
    assert certificate.objective.name == loss
    command = [sys.executable, "-I", str(CHECKER), str(path)]
    process = subprocess.run(command, capture_output=True)
    assert process.returncode == 0
    assert b": proven: " in process.stdout


def test_curve_of_one_point_equals_dp():
    curve = wb.design(TEN_ANSWERS, loss="squared", notion="curve", curve=[(1, "0.05")])
    dp = wb.design(TEN_ANSWERS, loss="squared", notion="dp", epsilon=1, delta="0.05")
    assert curve.objective == pytest.approx(dp.objective, rel=1e-9)


def test_optima_of_implied_notions_are_ordered():
    """Pure ε implies ε²/2-zCDP, and ρ-zCDP implies (2, 2ρ)-Rényi DP.

    A notion that is implied has the smaller optimum.
    """

    def find_optimum(**options: object) -> float:
        """Return the smallest squared error at the budget of these options."""
        return wb.design(TEN_ANSWERS, loss="squared", **options).objective

    pure = find_optimum(notion="pure", epsilon="0.5")
    zcdp = find_optimum(notion="zcdp", rho="0.125")
    renyi = find_optimum(notion="renyi", alpha=2, epsilon="0.25")
    assert renyi <= zcdp * (1 + 1e-7)
    assert zcdp <= pure * (1 + 1e-7)


def test_a_design_with_user_constraints_is_private():
    design = wb.design(
        TEN_ANSWERS, notion="zcdp", rho="0.1", loss="squared", constraints=lambda f: [f[1] == f[9]]
    )
    assert design.private


def test_a_design_for_vectors_is_private():
    question = wb.ModuloNoise(sizes=(3, 3), shifts=[(0, 1), (1, 0)])
    assert wb.design(question, notion="renyi", alpha="1.5", epsilon=1).private


def test_directed_differences_have_no_larger_loss():
    options = {"notion": "gdp", "mu": 1, "loss": "squared"}
    directed = wb.design(wb.ModuloNoise(n=8, max_shift=2, directed=True), **options)
    symmetric = wb.design(wb.ModuloNoise(n=8, max_shift=2), **options)
    assert directed.objective <= symmetric.objective * (1 + 1e-6)


def test_session_answers_several_budgets():
    request = FAMILY.make_request(TEN_ANSWERS, notion="renyi", alpha=2, epsilon=1, loss="squared")
    with FAMILY.open_session(request) as session:
        errors = [session.design({"epsilon": Fraction(e)}).objective for e in ("0.25", "0.5", "1")]
        assert errors == sorted(errors, reverse=True)
        assert session.row({"epsilon": Fraction(1, 2)})["certified"]
        with pytest.raises(wb.InvalidRequest, match="delta must be left out when notion is renyi"):
            session.design({"delta": Fraction(1, 2)})


def test_uncertified_designs_are_audited():
    design = wb.design(TEN_ANSWERS, notion="zcdp", rho="0.1", loss="squared", certify=False)
    assert design.certificate is None
    assert design.objective == pytest.approx(design.bound, rel=1e-5)
    assert isinstance(design.private, bool)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--notion", "zcdp"), "rho must be given for the notion zcdp"),
        (("--notion", "zcdp", "--rho", "0"), "rho must be a finite number > 0"),
        (
            ("--notion", "renyi", "--alpha", "1", "--epsilon", "1"),
            "alpha must be a finite number > 1",
        ),
        (("--notion", "renyi", "--alpha", "2"), "epsilon must be given"),
        (
            ("--notion", "gdp", "--mu", "1", "--epsilon", "1"),
            "epsilon must be left out when notion is gdp",
        ),
        (("--notion", "curve", "--curve", "x"), "curve must be a list of pairs"),
        (("--notion", "curve", "--curve", "1e300:0.1"), "epsilon must be at most 34"),
        (("--notion", "gdp", "--mu", "1e9"), "mu must be at most 20"),
        (
            ("--notion", "tradeoff", "--tradeoff", "0:1,0.5:0.6,1:0"),
            "tradeoff must be at most 1 - alpha",
        ),
        (
            ("--notion", "tradeoff", "--tradeoff", "0:0.5,0.1:0.4,0.5:0.1,0.6:0"),
            "tradeoff must be convex. Got (0.5",
        ),
        (
            ("--notion", "tradeoff", "--tradeoff", "0:0.5,0.1:0.2,0.2:0.3,0.6:0"),
            "tradeoff must be a function that does",
        ),
        (
            ("--notion", "tradeoff", "--tradeoff", "0.1:0.5,0.6:0"),
            "tradeoff must be a function from alpha = 0",
        ),
        (
            ("--notion", "tradeoff", "--tradeoff", "0:1,1e-200:1e-150,1:0"),
            "epsilon must be at most 34",
        ),
        (
            ("--notion", "pdp", "--epsilon", "1", "--tradeoff", "0:1,1:0"),
            "tradeoff must be left out when notion is pdp",
        ),
        (
            ("--notion", "pdp", "--epsilon", "1", "--rho", "1"),
            "rho must be left out when notion is pdp",
        ),
        (
            ("--notion", "zcdp", "--rho", "1", "--minimise", "delta", "--max-loss", "1"),
            "minimise must be left out",
        ),
        (("--notion", "pdp"), "epsilon must be given"),
    ],
)
def test_invalid_requests_print_one_line(capsys, options, message):
    code, out, err = run(capsys, "design", "modulo", "--n", "6", "--max-shift", "1", *options)
    assert code == 2
    assert out == ""
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_command_line_prints_json(capsys):
    code, out, err = run(
        capsys,
        "design",
        "modulo",
        "--n",
        "6",
        "--max-shift",
        "1",
        "--notion",
        "zcdp",
        "--rho",
        "0.5",
        "--loss",
        "squared",
        "--json",
    )
    design = json.loads(out)
    assert code == 0, err
    assert (design["notion"], design["rho"], design["certified"]) == ("zcdp", "0.5", True)
    assert math.isclose(sum(design["pmf"]), 1)
    assert np.all(np.array(design["pmf"]) > 0)


@functools.cache
def design_channel(notion: str, **options: str) -> wb.Design:
    """Design a channel of LABELS at the budget of a notion."""
    return wb.design(LABELS, method="lp", notion=notion, **BUDGETS[notion], **options)


@pytest.mark.parametrize("notion", BUDGETS)
def test_a_channel_is_private_and_within_its_gap(notion: str):
    design = design_channel(notion)
    assert design.private
    assert design.objective <= design.bound * (1 + 1e-5)
    assert design.bound <= design.objective * (1 + 1e-12)


@pytest.mark.parametrize("notion", BUDGETS)
def test_the_report_and_the_certificate_of_a_channel_name_its_notion(notion: str, tmp_path: Path):
    design = design_channel(notion)
    assert str(design)
    assert design.to_dict()["notion"] == notion
    design.save(tmp_path / "design.json")
    assert wb.check(tmp_path / "design.json").claim.notion.name == notion


@pytest.mark.parametrize("notion", BUDGETS)
def test_a_channel_with_fewer_neighbours_has_no_larger_loss(notion: str):
    design = design_channel(notion)
    with_fewer_neighbours = design_channel(notion, neighbours="consecutive")
    assert with_fewer_neighbours.objective <= design.objective * (1 + 1e-6)


def test_channel_under_curve_of_one_point_equals_dp():
    curve = wb.design(LABELS, method="lp", notion="curve", curve=[(1, "0.05")])
    dp = wb.design(LABELS, method="lp", notion="dp", epsilon=1, delta="0.05")
    assert curve.objective == pytest.approx(dp.objective, rel=1e-7)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"notion": "zcdp"}, "rho must be given"),
        ({"notion": "zcdp", "rho": 1, "method": "bins"}, "method must be lp"),
        ({"notion": "pure", "epsilon": 1, "mu": 1}, "mu must be left out"),
        ({}, "epsilon must be given"),
    ],
)
def test_invalid_channel_requests_raise(options, message):
    with pytest.raises(wb.InvalidRequest, match=message):
        wb.design(LABELS, **{"method": "lp"} | options)
