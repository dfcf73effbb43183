"""Tests of tools/check_certificate.py: it needs only Python and agrees with the workbench."""

from __future__ import annotations

import ast
import json
import math
import os
import random
import resource
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest

import workbench as wb
from workbench.exact.numbers import exp_bounds

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "check_certificate.py"
sys.path.insert(0, str(ROOT / "tests" / "fuzz"))
from fuzz_certificates import (  # noqa: E402
    GENERATORS,
    checker,
    compare_checkers,
    decide_by_both,
    make_certificate,
    make_row,
)


def run_checker(*paths: Path) -> subprocess.CompletedProcess[str]:
    """Run the checker on files, without any installed package."""
    command = [sys.executable, "-I", "-S", str(TOOL), *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def make_noise(
    weights: list[int], notion: str, epsilon: str, delta: str = "0", **mechanism: object
) -> dict:
    """Return a certificate of noise modulo the number of weights, with neighbours ±1.

    Other entries of the mechanism can be given by name.
    """
    shape = {
        "kind": "noise",
        "sizes": [len(weights)],
        "shifts": [[1]],
        "directed": False,
        **make_row(weights),
    }
    return make_certificate(shape | mechanism, notion, epsilon, delta)


def make_quantizer(ends: list[list[int]], notion: str, epsilon: str, delta: str = "0") -> dict:
    """Return a certificate of a quantizer with knots 0, 1, ... and outputs 0, 1, ...

    `ends` has the weights of the outputs at both ends of each interval between two knots.
    """
    knots = [*map(str, range(len(ends) // 2 + 1))]
    outputs = [*map(str, range(len(ends[0])))]
    shape = {
        "kind": "quantizer",
        "knots": knots,
        "outputs": outputs,
        "ends": [*map(make_row, ends)],
    }
    return make_certificate(shape, notion, epsilon, delta)


def decide(data: dict) -> str:
    """Return "proven", or the kind of refusal: false, unknown, unreadable or too large."""
    try:
        checker.prove_statement(data)
    except checker.Refused as refused:
        return refused.args[0]
    return "proven"


# The needed ε is ln(5/3) = 0.511.
GOOD = make_noise([5, 3, 2, 3], "pure", "0.6")


@pytest.mark.parametrize(
    ("data", "code", "sentence"),
    [
        (GOOD, 0, "proven: Noise modulo 4, 2 differences (of either sign): pure at epsilon = 0.6"),
        (make_noise([5, 3, 2, 3], "pure", "0.51"), 1, "false: Neighbours"),
        (GOOD | {"version": 5}, 2, "unknown: Version 5: this checker knows version 1."),
        (GOOD | {"mechanism": {"kind": "spline"}}, 2, "unknown: A mechanism of kind 'spline'"),
        (make_noise([1 << 200_000] * 60 + [1], "pure", "0.6"), 2, "too large: It would take"),
        (GOOD | {"format": "other"}, 2, "unreadable: The format"),
        ([], 2, "unreadable: A certificate"),
        (
            GOOD | {"objective": {"name": "error-rate", "value": "0", "losses": None}},
            1,
            "false: The error-rate is 0.6",
        ),
    ],
)
def test_the_verdict_on_a_file_is_printed_with_its_exit_code(data, code, sentence, tmp_path: Path):
    path = tmp_path / "c.json"
    path.write_text(json.dumps(data))
    process = run_checker(path)
    assert (process.returncode, process.stderr) == (code, "")
    assert f"{path}: {sentence}" in process.stdout


def test_the_exit_code_is_that_of_the_worst_file(tmp_path: Path):
    paths = [tmp_path / f"{k}.json" for k in range(3)]
    for path, data in zip(
        paths, (GOOD, GOOD | {"version": 9}, make_noise([5, 3, 2, 3], "pure", "0.51")), strict=True
    ):
        path.write_text(json.dumps(data))
    assert run_checker(paths[0], paths[0]).returncode == 0
    assert run_checker(*paths[:2]).returncode == 2
    assert run_checker(*paths).returncode == 1
    assert run_checker(*paths).stdout.count("\n") == 3
    assert run_checker().returncode != 0


def test_the_checker_imports_only_the_standard_library():
    names = set()
    for node in ast.walk(ast.parse(TOOL.read_text("utf-8"))):
        names |= {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
        names |= {node.module} if isinstance(node, ast.ImportFrom) else set()
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b'{"a": 1, "a": 2}',
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b"[" * 200_000,
        b'{"a": "\\ud800"}',
        b'{"a": ' + b"9" * 5000 + b"}",
    ],
)
def test_bytes_that_are_no_json_object_are_unreadable(content, tmp_path: Path):
    path = tmp_path / "c.json"
    path.write_bytes(content)
    assert decide_by_both(path) == ("unreadable", "unreadable")
    assert run_checker(path).returncode == 2


def test_paths_that_are_no_usable_files_are_undecided(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "big").write_bytes(b" " * (checker.MAX_FILE_BYTES + 1))
    for name in ("missing", ".", "pipe", "big"):
        assert run_checker(tmp_path / name).returncode == 2


def test_powers_enclose_the_exponential():
    rng, widest = random.Random(1), 0.0
    for _ in range(200):
        epsilon = Fraction(rng.randrange(1, 10 ** rng.randrange(1, 9)), 10 ** rng.randrange(0, 9))
        if epsilon > 5000:
            continue
        power = checker.Power(epsilon)
        for level in range(4):
            low, high, w = power.bounds(level)
            below, above = exp_bounds(epsilon, w + 64)  # flint's balls
            assert low << 64 <= below
            assert above <= high << 64
            assert (high - low) << (64 << level) <= low
            widest = max(widest, math.log2(high - low))
    assert widest > 10  # the enclosure is no point, so the test could have failed


def test_pdp_of_quantizers_is_decided_at_its_exact_supremum():
    refused = 0
    for seed in range(120):
        rng = random.Random(seed)
        m, top = rng.choice([3, 4, 5]), rng.choice([4, 8, 12])
        ends = [[rng.randrange(0, top) + (k == 0) for k in range(m)] for _ in range(4)]
        ends = [[x // math.gcd(*law) for x in law] for law in ends]
        law = wb.PiecewiseAffine.from_laws(
            range(3), range(m), [[Fraction(x, sum(law)) for x in law] for law in ends]
        )
        at_zero = wb.audit(law, 0).worst_result("pdp").measurement
        assert at_zero.b == 0  # a rational, so δ can be exactly that
        assert decide(make_quantizer(ends, "pdp", "0", str(at_zero.a))) == "proven"
        epsilon = rng.choice(["0", "0.05", "0.1", "0.3"])
        below, above = wb.audit(law, epsilon).worst_result("pdp").measurement.tight_enclosure()
        assert decide(make_quantizer(ends, "pdp", epsilon, str(above))) == "proven", seed
        if below > 0:
            refused += 1
            assert (
                decide(make_quantizer(ends, "pdp", epsilon, str(below * (1 - Fraction(1, 10**15)))))
                == "false"
            ), seed
    assert refused > 50


def test_pdp_of_a_quantizer_is_larger_between_its_knots():
    ends = [[1, 7, 3], [1, 3, 8], [9, 7, 9], [4, 9, 8]]  # 2/3 between end laws, 0.9141576379 inside
    assert decide(make_quantizer(ends, "pdp", "0.3", "0.91")) == "false"
    assert decide(make_quantizer(ends, "pdp", "0.3", "0.9141577")) == "proven"


def test_an_expected_loss_over_labels_is_unreadable_for_noise():
    data = GOOD | {
        "objective": {
            "name": "error-rate",
            "value": "8/13",
            "labels": ["0"],
            "prior": ["1"],
            "outputs": ["0"] * 4,
            "rows": [0],
        }
    }
    assert decide(data) == "unreadable"
    assert (
        decide(GOOD | {"objective": {"name": "error-rate", "value": "8/13", "losses": None}})
        == "proven"
    )


def test_losses_that_the_file_defines_are_reported_as_such(tmp_path: Path):
    path = tmp_path / "c.json"
    path.write_text(
        json.dumps(GOOD | {"objective": {"name": "mine", "value": "0", "losses": ["0"] * 4}})
    )
    assert "mine at most 0 by numbers that this file states." in run_checker(path).stdout
    sentence = "Its loss is 0.0 by numbers that this file states, under the name 'mine'."
    assert wb.check(path).sentences[-1] == sentence
    row = {"first": 0, "period": 1, "ratio": "0", "total": "0x3", "weights": ["0x1"] * 3}
    line = make_certificate(
        {"kind": "integer-noise", "sensitivity": 1, "clamp": None, **row}, "dp", "0", "1"
    )
    for name, expected in (
        ("mine", "proven"),
        ("eta-squared", "unreadable"),
        ("error-rate", "unreadable"),
    ):
        path.write_text(
            json.dumps(line | {"objective": {"name": name, "value": "0", "losses": ["0"] * 3}})
        )
        assert decide_by_both(path) == (expected, expected), name


@pytest.mark.parametrize("kind", GENERATORS)
def test_both_checkers_agree_on_mutations(kind, tmp_path: Path):
    found = compare_checkers(200, 20, tmp_path, kind)  # 10,000 and more: make fuzz
    assert found["proven"] > 20
    assert found["false"] > 20


@pytest.mark.parametrize(
    "data",
    [
        make_noise([1 << 200_000, (1 << 200_000) + 1] + [3] * 99, "pure", "1e-100"),
        make_noise([1, 2, 3], "dp", "0x1" + "0" * 65_000 + "1/0x1" + "0" * 65_000, "1"),
        make_noise([k + 1 for k in range(8000)], "pure", "9", shifts=[[k] for k in range(1, 4001)]),
        make_quantizer(
            [[k + 1 for k in range(100)], [101 - k for k in range(100)]], "pdp", "1", "1"
        ),
        make_quantizer([[k + 1, 1] for k in range(500)], "dp", "9", "0.1"),
    ],
    ids=["wide", "epsilon", "differences", "pdp", "pieces"],
)
def test_both_checkers_refuse_files_that_are_too_large(data, tmp_path: Path):
    path = tmp_path / "c.json"
    path.write_text(json.dumps(data))
    assert decide_by_both(path) == ("too large", "too large")


def test_quantizers_with_many_pieces_are_decided(tmp_path: Path):
    jumps = [[k + 1, 1] for k in range(4000)]  # ln of (1/2) / (1/4001): 7.6013
    halves = [
        (3000 + k, math.gcd(3000 + k, 6000)) for k in range(2001)
    ]  # |p'| / p at the last knot: 1/1000
    laws = [[up // common, (6000 - up) // common] for up, common in halves]
    ends = [end for a, b in pairwise(laws) for end in (a, b)]
    for found, notion, enough, too_little in (
        (jumps, "pure", "7.602", "7.6"),
        (ends, "metric", "0.001", "0.000999"),
    ):
        for epsilon, expected in ((enough, "proven"), (too_little, "false")):
            path = tmp_path / "c.json"
            path.write_text(json.dumps(make_quantizer(found, notion, epsilon)))
            assert decide_by_both(path) == (expected, expected)


def test_the_normal_distribution_is_enclosed():
    from flint import arb, ctx, fmpq

    rng, widest = random.Random(3), 0.0
    with ctx.workprec(600):
        for k in range(60):
            x = Fraction(rng.randrange(-4000, 4000), 100 if k % 2 else 10 ** rng.randrange(2, 9))
            digits = rng.choice([40, 100])
            ends = checker.enclose_normal_cdf(
                Decimal(x.numerator) / Decimal(x.denominator), checker.IntervalArithmetic(digits)
            )
            low, high = (arb(fmpq(*Fraction(end).as_integer_ratio())) for end in ends)
            true = (-arb(fmpq(x.numerator, x.denominator)) / arb(2).sqrt()).erfc() / 2
            assert not true < low
            assert not true > high
            widest = max(widest, float(ends[1] - ends[0]) * 10**digits)
    assert widest > 10


# Notion -> budget of a design, and a smaller budget that the design does not satisfy.
BUDGETS = {
    "zcdp": ({"rho": "0.1"}, {"rho": "0.0999"}),
    "renyi": ({"alpha": "4", "epsilon": "0.5"}, {"alpha": "4", "epsilon": "0.4999"}),
    "gdp": ({"mu": "1"}, {"mu": "0.9999"}),
    "curve": (
        {"curve": [["0.5", "0.1"], ["1", "0.01"]]},
        {"curve": [["0.5", "0.099"], ["1", "0.0099"]]},
    ),
    "tradeoff": (
        {"tradeoff": [["0", "1"], ["0.1", "0.6"], ["0.4", "0.2"], ["1", "0"]]},
        {"tradeoff": [["0", "1"], ["0.1", "0.601"], ["0.4", "0.201"], ["1", "0"]]},
    ),
}


@pytest.mark.parametrize("notion", BUDGETS)
@pytest.mark.parametrize("family", ["noise", "labels"])
def test_designs_of_other_notions_are_proven_and_smaller_budgets_false(notion, family):
    given, missed = BUDGETS[notion]
    question = wb.ModuloNoise(n=6, max_shift=1) if family == "noise" else wb.Labels([0, 1])
    design = wb.design(
        question, notion=notion, **given, **({} if family == "noise" else {"method": "lp"})
    )
    data = json.loads(json.dumps(design.certificate.to_dict()))
    assert decide(data) == "proven"
    assert checker.prove_statement(data).count(notion) == 1
    assert decide(data | {"claim": {"notion": notion, **missed}}) == "false"
    assert decide(data | {"claim": {"notion": notion, **given, "delta": "0"}}) == "unreadable"


def test_budgets_without_a_meaning_are_unreadable():
    for claim in (
        {"notion": "renyi", "epsilon": "1", "alpha": "1"},
        {"notion": "zcdp", "rho": "-1"},
        {"notion": "curve", "curve": []},
        {"notion": "curve", "curve": [["1", "0.1"], ["1", "0.2"]]},
        {"notion": "curve", "curve": [["1", "2"]]},
        {"notion": "tradeoff", "tradeoff": [["0", "1"]]},
        {"notion": "tradeoff", "tradeoff": [["0", "0.9"], ["0.5", "0.5"], ["1", "0"]]},
        {"notion": "tradeoff", "tradeoff": [["0", "0"], ["1", "0"]]},
        {"notion": "tradeoff", "tradeoff": [["0", "0.1"], ["0.5", "0"], ["1", "0"], ["1/2", "0"]]},
        {
            "notion": "tradeoff",
            "tradeoff": [["0", "0.1"], ["0.5", "0"], ["0.6", "0.1"], ["1", "0"]],
        },
        {"notion": "tradeoff", "tradeoff": [["0.1", "0.1"], ["0.5", "0"]]},
    ):
        assert decide(GOOD | {"claim": claim}) == "unreadable", claim
    for claim in ({"notion": "gdp", "mu": "0"}, {"notion": "zcdp", "rho": "0"}):
        assert decide(GOOD | {"claim": claim}) == "false", claim


def test_a_claim_at_the_exact_limit_is_not_proven():
    """D_α/α falls from KL at α = 1, so that ρ = KL is the boundary: no enclosure reaches it."""
    loss = checker.Divergence(((3, 1), 4), ((1, 3), 4))
    low, high = loss.mean_loss(80)
    claim = {"notion": "zcdp", "rho": str(high + (high - low))}
    assert decide(make_noise([3, 1], "pure", "0") | {"claim": claim}) in ("unknown", "false")


def make_discrete_gaussian(n: int, sigma: int, excess: str) -> dict:
    """The discrete Gaussian modulo n with a claim of ρ a little above 1/2σ².

    The claim is nearly tight at most orders.
    """
    weights = [round(2**50 * math.exp(-(min(k, n - k) ** 2) / (2 * sigma**2))) for k in range(n)]
    rho = Fraction(1, 2 * sigma**2) * (1 + Fraction(excess))
    return make_noise(weights, "pure", "0") | {"claim": {"notion": "zcdp", "rho": str(rho)}}


BELL = [1 << 40, 1 << 38, 1 << 36, (1 << 35) + 1, 1 << 36, 1 << 38]


@pytest.mark.parametrize(
    ("data", "codes"),
    [
        (make_noise(BELL, "pure", "0") | {"claim": {"notion": "gdp", "mu": "1000000"}}, (0, 0)),
        (make_noise(BELL, "pure", "0") | {"claim": {"notion": "gdp", "mu": "1000"}}, (0, 0)),
        (
            make_noise([1, 1 << 200, 1 << 400], "pure", "0")
            | {"claim": {"notion": "gdp", "mu": "1"}},
            (1, 1),
        ),
        (
            make_noise([1, 1 << 1500, 1 << 3000], "pure", "0")
            | {"claim": {"notion": "gdp", "mu": "1"}},
            (1, 2),
        ),
        (make_discrete_gaussian(300, 25, "1e-4"), (0, 0)),
        (make_discrete_gaussian(1200, 100, "1e-6"), (2, 2)),
        (make_noise(BELL, "pure", "0") | {"claim": {"notion": "zcdp", "rho": "1e-5000"}}, (1, 1)),
        (
            make_noise([1 << 80, (1 << 80) + 1], "pure", "0")
            | {"claim": {"notion": "zcdp", "rho": "1e-40"}},
            (2, 2),
        ),
    ],
    ids=["far μ", "μ", "tail", "long tail", "nearly tight", "tighter", "tiny ρ", "far orders"],
)
def test_hard_claims_are_decided_or_refused_in_fifteen_seconds(data, codes, tmp_path: Path):
    """Both checkers decide long series, extreme quantiles and many orders alike.

    The exit codes are 0, 1 and 2.
    """
    path = tmp_path / "c.json"
    path.write_text(json.dumps(data))
    for command, code in zip(
        ([sys.executable, "-m", "workbench", "check"], [sys.executable, "-I", "-S", str(TOOL)]),
        codes,
        strict=True,
    ):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        process = subprocess.run(
            [*command, str(path)], capture_output=True, text=True, check=False, timeout=600
        )
        assert process.returncode == code, process.stdout + process.stderr
        assert "Bug" not in process.stderr
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        assert seconds < 15  # It takes up to ten seconds on an idle machine.


def test_only_epsilon_may_have_a_value_for_each_pair(tmp_path: Path):
    path = tmp_path / "c.json"
    path.write_text(
        json.dumps(
            GOOD | {"claim": {"notion": "dp", "epsilon": "1", "delta": [[[1], "0"], [[3], "0"]]}}
        )
    )
    assert decide_by_both(path) == ("unreadable", "unreadable")
