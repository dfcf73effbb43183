"""Test modulo noise under notions of several bounds: curve, Rényi DP, zCDP and GDP."""

from __future__ import annotations

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

SMALL, LINE = wb.ModuloNoise(n=2, max_shift=1), wb.ModuloNoise(n=9, max_shift=2)
BUDGETS = {
    "curve": {"curve": "0.5:0.1,1:0.01"},
    "tradeoff": {"tradeoff": "0:1,0.1:0.6,0.4:0.2,1:0"},
    "renyi": {"alpha": 4, "epsilon": "0.5"},
    "zcdp": {"rho": "0.1"},
    "gdp": {"mu": 1},
}


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
    design = wb.design(SMALL, notion=notion, **BUDGETS[notion])
    low, high = Fraction(0), Fraction(1, 3)
    for _ in range(30):
        a = (low + high) / 2
        privacy = audit(AdditiveNoise(SMALL, [1 - 2 * a, a, a]), 0)
        low, high = (low, a) if privacy.meets(notion, **BUDGETS[notion]) else (a, high)
    assert design.objective == pytest.approx(float(2 * high), rel=1e-6)
    assert design.bound <= design.objective <= design.bound * (1 + 1e-5)


@pytest.mark.parametrize("notion", BUDGETS)
@pytest.mark.parametrize("loss", ["squared", "error-rate"])
def test_design_is_certified_and_within_its_gap(notion, loss, tmp_path: Path):
    design = wb.design(LINE, notion=notion, loss=loss, **BUDGETS[notion])
    assert design.private
    assert design.status == "optimal"
    assert design.bound <= design.objective * (1 + 1e-12)
    assert design.objective <= design.bound * (1 + 1e-5)
    design.save(tmp_path / "design.json")
    proof = wb.check(tmp_path / "design.json")
    assert proof.claim.notion.name == notion
    assert proof.objective.name == loss
    tool = Path(__file__).parents[4] / "tools" / "check_certificate.py"
    done = subprocess.run(
        [sys.executable, "-I", str(tool), str(tmp_path / "design.json")], capture_output=True
    )
    assert (done.returncode, b": proven: " in done.stdout) == (0, True)
    tighter = {
        "curve": {"curve": "0.5:0.09,1:0.005"},
        "renyi": {"alpha": 4, "epsilon": "0.45"},
        "tradeoff": {"tradeoff": "0:1,0.1:0.61,0.4:0.21,1:0"},
        "zcdp": {"rho": "0.09"},
        "gdp": {"mu": "0.9"},
    }[notion]
    assert not design.privacy.meets(notion, **tighter)


def test_curve_of_one_point_equals_dp():
    both = [
        wb.design(LINE, loss="squared", **{"notion": name} | max_loss)
        for name, max_loss in (
            ("curve", {"curve": [(1, "0.05")]}),
            ("dp", {"epsilon": 1, "delta": "0.05"}),
        )
    ]
    assert both[0].objective == pytest.approx(both[1].objective, rel=1e-9)


def test_optima_of_implied_notions_are_ordered():
    """ρ-zCDP implies D_2 <= 2ρ, and pure ε implies ε²/2-zCDP, which orders the optima."""
    loss = {"loss": "squared"}
    concentrated = wb.design(LINE, notion="zcdp", rho="0.125", **loss).objective
    assert wb.design(
        LINE, notion="renyi", alpha=2, epsilon="0.25", **loss
    ).objective <= concentrated * (1 + 1e-7)
    assert concentrated <= wb.design(LINE, notion="pure", epsilon="0.5", **loss).objective * (
        1 + 1e-7
    )


def test_constraints_vectors_and_directed_differences_are_supported():
    design = wb.design(
        LINE, notion="zcdp", rho="0.1", loss="squared", constraints=lambda f: [f[1] == f[9]]
    )
    assert design.private
    vector = wb.design(
        wb.ModuloNoise(sizes=(3, 3), shifts=[(0, 1), (1, 0)]),
        notion="renyi",
        alpha="1.5",
        epsilon=1,
    )
    assert vector.private
    one_sided = wb.design(
        wb.ModuloNoise(n=8, max_shift=2, directed=True), notion="gdp", mu=1, loss="squared"
    )
    both = wb.design(wb.ModuloNoise(n=8, max_shift=2), notion="gdp", mu=1, loss="squared")
    assert one_sided.objective <= both.objective * (1 + 1e-6)


def test_session_answers_several_budgets():
    with FAMILY.open_session(
        FAMILY.make_request(LINE, notion="renyi", alpha=2, epsilon=1, loss="squared")
    ) as session:
        errors = [session.design({"epsilon": Fraction(e)}).objective for e in ("0.25", "0.5", "1")]
        assert errors == sorted(errors, reverse=True)
        assert session.row({"epsilon": Fraction(1, 2)})["certified"]
        with pytest.raises(wb.InvalidRequest, match="delta must be left out when notion is renyi"):
            session.design({"delta": Fraction(1, 2)})


def test_uncertified_designs_are_audited():
    design = wb.design(LINE, notion="zcdp", rho="0.1", loss="squared", certify=False)
    assert design.certificate is None
    assert design.objective == pytest.approx(design.bound, rel=1e-5)
    assert isinstance(design.private, bool)


@pytest.mark.parametrize(
    ("more", "message"),
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
def test_invalid_requests_raise_one_sentence(capsys, more, message):
    code, out, err = run(capsys, "design", "modulo", "--n", "6", "--max-shift", "1", *more)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_command_line_prints_json(capsys):
    import json

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


LABELS = wb.Labels.uniform(0, 3)


@pytest.mark.parametrize("notion", BUDGETS)
def test_channels_support_the_same_notions(notion, tmp_path: Path):
    design = wb.design(LABELS, method="lp", notion=notion, **BUDGETS[notion])
    assert design.private
    assert design.objective <= design.bound * (1 + 1e-5)
    assert design.bound <= design.objective * (1 + 1e-12)
    design.save(tmp_path / "design.json")
    assert wb.check(tmp_path / "design.json").claim.notion.name == notion
    assert str(design)
    assert design.to_dict()["notion"] == notion
    near = wb.design(
        LABELS, method="lp", notion=notion, neighbours="consecutive", **BUDGETS[notion]
    )
    assert near.objective <= design.objective * (1 + 1e-6)


def test_channel_under_curve_of_one_point_equals_dp():
    one = wb.design(LABELS, method="lp", notion="curve", curve=[(1, "0.05")])
    assert one.objective == pytest.approx(
        wb.design(LABELS, method="lp", notion="dp", epsilon=1, delta="0.05").objective, rel=1e-7
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"notion": "zcdp"}, "rho must be given"),
        ({"notion": "zcdp", "rho": 1, "method": "bins"}, "method must be lp"),
        ({"notion": "pure", "epsilon": 1, "mu": 1}, "mu must be left out"),
        ({}, "epsilon must be given"),
    ],
)
def test_invalid_channel_requests_raise(given, message):
    with pytest.raises(wb.InvalidRequest, match=message):
        wb.design(LABELS, **{"method": "lp"} | given)
