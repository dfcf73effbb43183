"""Tests of tools/check_certificate.py, the independent checker of certificates.

It must need only Python, and reach the same verdict as the workbench on every file. A certificate
is a JSON object with a mechanism and a claim. The tests make certificates, decide them with the
checker or with both checkers, and compare the verdicts.
"""

from __future__ import annotations

import ast
import json
import math
import os
import random
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
    """Return the checker's verdict: proven, false, unknown, unreadable or too large."""
    try:
        checker.prove_statement(data)
    except checker.Refused as refused:
        return refused.args[0]
    return "proven"


# The needed ε is ln(5/3) = 0.511, because 5 and 3 are the masses of neighbours.
GOOD = make_noise([5, 3, 2, 3], "pure", "0.6")
FALSE = make_noise([5, 3, 2, 3], "pure", "0.51")
UNKNOWN_VERSION = GOOD | {"version": 9}


@pytest.mark.parametrize(
    ("data", "code", "sentence"),
    [
        (GOOD, 0, "proven: Noise modulo 4, 2 differences (of either sign): pure at epsilon = 0.6"),
        (FALSE, 1, "false: Neighbours"),
        (UNKNOWN_VERSION, 2, "unknown: Version 9: this checker knows version 1."),
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
    good = tmp_path / "good.json"
    unknown = tmp_path / "unknown.json"
    false = tmp_path / "false.json"
    good.write_text(json.dumps(GOOD))
    unknown.write_text(json.dumps(UNKNOWN_VERSION))
    false.write_text(json.dumps(FALSE))
    assert run_checker(good, good).returncode == 0
    assert run_checker(good, unknown).returncode == 2
    process = run_checker(good, unknown, false)
    assert process.returncode == 1
    assert process.stdout.count("\n") == 3  # One line for each file.


def test_a_run_without_files_fails():
    assert run_checker().returncode != 0


def test_the_checker_imports_only_the_standard_library():
    modules = set()
    for node in ast.walk(ast.parse(TOOL.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module)
    assert {module.split(".")[0] for module in modules} <= sys.stdlib_module_names


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
    """The bounds lie around the narrower bounds that the workbench computes by another method."""
    rng = random.Random(1)
    largest_width = 0
    for _ in range(200):
        epsilon = Fraction(rng.randrange(1, 10 ** rng.randrange(1, 9)), 10 ** rng.randrange(0, 9))
        if epsilon > 5000:
            continue
        power = checker.Power(epsilon)
        for level in range(4):
            low, high, w = power.bounds(level)
            narrow_low, narrow_high = exp_bounds(epsilon, w + 64)
            assert low << 64 <= narrow_low
            assert narrow_high <= high << 64
            assert (high - low) << (64 << level) <= low
            largest_width = max(largest_width, high - low)
    assert largest_width > 2**10  # A wrong bound would have been noticed.


def draw_end_weights(rng: random.Random) -> list[list[int]]:
    """Draw the four end laws of a quantizer with two pieces, as integers without common factor."""
    output_count = rng.choice([3, 4, 5])
    top = rng.choice([4, 8, 12])
    ends = []
    for _ in range(4):
        weights = [rng.randrange(0, top) for _ in range(output_count)]
        weights[0] += 1  # Not all weights are 0.
        ends.append([weight // math.gcd(*weights) for weight in weights])
    return ends


def make_quantizer_mechanism(ends: list[list[int]]) -> wb.PiecewiseAffine:
    """Return the mechanism of `make_quantizer`."""
    laws = [[Fraction(weight, sum(weights)) for weight in weights] for weights in ends]
    return wb.PiecewiseAffine.from_laws(range(len(ends) // 2 + 1), range(len(ends[0])), laws)


def test_pdp_of_quantizers_is_proven_at_the_exact_delta_for_epsilon_zero():
    for seed in range(120):
        ends = draw_end_weights(random.Random(seed))
        needed_delta = wb.audit(make_quantizer_mechanism(ends), 0).worst_result("pdp").measurement
        assert needed_delta.b == 0  # It is rational, so a file can state it exactly.
        assert decide(make_quantizer(ends, "pdp", "0", str(needed_delta.a))) == "proven", seed


def test_pdp_of_quantizers_is_decided_just_above_and_below_the_needed_delta():
    refuted_count = 0
    for seed in range(120):
        rng = random.Random(seed)
        ends = draw_end_weights(rng)
        epsilon = rng.choice(["0", "0.05", "0.1", "0.3"])
        audit = wb.audit(make_quantizer_mechanism(ends), epsilon)
        low, high = audit.worst_result("pdp").measurement.tight_enclosure()
        assert decide(make_quantizer(ends, "pdp", epsilon, str(high))) == "proven", seed
        if low > 0:
            refuted_count += 1
            small_delta = low * (1 - Fraction(1, 10**15))
            assert decide(make_quantizer(ends, "pdp", epsilon, str(small_delta))) == "false", seed
    assert refuted_count > 50


def test_pdp_of_a_quantizer_is_larger_between_its_knots():
    # The end laws need δ = 2/3. Inputs between the knots need 0.9141576379.
    ends = [[1, 7, 3], [1, 3, 8], [9, 7, 9], [4, 9, 8]]
    assert decide(make_quantizer(ends, "pdp", "0.3", "0.91")) == "false"
    assert decide(make_quantizer(ends, "pdp", "0.3", "0.9141577")) == "proven"


# The error rate of GOOD is 1 - 5/13.
ERROR_RATE_OF_GOOD = {"name": "error-rate", "value": "8/13"}


def test_the_exact_error_rate_of_noise_is_proven():
    assert decide(GOOD | {"objective": {**ERROR_RATE_OF_GOOD, "losses": None}}) == "proven"


def test_an_expected_loss_over_labels_is_unreadable_for_noise():
    labels = {"labels": ["0"], "prior": ["1"], "outputs": ["0"] * 4, "rows": [0]}
    assert decide(GOOD | {"objective": {**ERROR_RATE_OF_GOOD, **labels}}) == "unreadable"


def test_losses_that_the_file_defines_are_reported_as_such(tmp_path: Path):
    path = tmp_path / "c.json"
    objective = {"name": "mine", "value": "0", "losses": ["0"] * 4}
    path.write_text(json.dumps(GOOD | {"objective": objective}))
    assert "mine at most 0 by numbers that this file states." in run_checker(path).stdout
    sentence = "Its loss is 0.0 by numbers that this file states, under the name 'mine'."
    assert wb.check(path).sentences[-1] == sentence


@pytest.mark.parametrize(
    ("name", "verdict"),
    [("mine", "proven"), ("eta-squared", "unreadable"), ("error-rate", "unreadable")],
)
def test_integer_noise_may_not_define_losses_under_a_known_name(name, verdict, tmp_path: Path):
    weights = {"first": 0, "period": 1, "ratio": "0", "total": "0x3", "weights": ["0x1"] * 3}
    mechanism = {"kind": "integer-noise", "sensitivity": 1, "clamp": None, **weights}
    objective = {"name": name, "value": "0", "losses": ["0"] * 3}
    path = tmp_path / "c.json"
    path.write_text(
        json.dumps(make_certificate(mechanism, "dp", "0", "1") | {"objective": objective})
    )
    assert decide_by_both(path) == (verdict, verdict)


@pytest.mark.parametrize("kind", GENERATORS)
def test_both_checkers_agree_on_mutations(kind, tmp_path: Path):
    verdict_counts = compare_checkers(200, 20, tmp_path, kind)  # `make fuzz` compares more files.
    assert verdict_counts["proven"] > 20
    assert verdict_counts["false"] > 20


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


@pytest.mark.parametrize(("epsilon", "verdict"), [("7.602", "proven"), ("7.6", "false")])
def test_pure_privacy_of_a_quantizer_with_2000_pieces_is_decided(epsilon, verdict, tmp_path: Path):
    # The needed ε is the logarithm of (1/2) / (1/4001), which is 7.6013.
    ends = [[k + 1, 1] for k in range(4000)]
    path = tmp_path / "c.json"
    path.write_text(json.dumps(make_quantizer(ends, "pure", epsilon)))
    assert decide_by_both(path) == (verdict, verdict)


@pytest.mark.parametrize(("epsilon", "verdict"), [("0.001", "proven"), ("0.000999", "false")])
def test_metric_privacy_of_a_quantizer_with_2000_pieces_is_decided(
    epsilon, verdict, tmp_path: Path
):
    # At knot k the laws are (3000 + k, 3000 - k) / 6000. The needed ε is the largest relative slope
    # of a probability, 1/1000 at the last knot.
    laws = []
    for k in range(2001):
        common = math.gcd(3000 + k, 6000)
        laws.append([(3000 + k) // common, (3000 - k) // common])
    ends = [end for piece in pairwise(laws) for end in piece]
    path = tmp_path / "c.json"
    path.write_text(json.dumps(make_quantizer(ends, "metric", epsilon)))
    assert decide_by_both(path) == (verdict, verdict)


def test_the_normal_distribution_is_enclosed():
    """The bounds lie around the distribution function that flint computes to 600 bits."""
    from flint import arb, ctx, fmpq

    rng = random.Random(3)
    largest_width = 0.0  # In units of the last digit.
    with ctx.workprec(600):
        for k in range(60):
            x = Fraction(rng.randrange(-4000, 4000), 100 if k % 2 else 10 ** rng.randrange(2, 9))
            digits = rng.choice([40, 100])
            ends = checker.enclose_normal_cdf(
                Decimal(x.numerator) / Decimal(x.denominator), checker.IntervalArithmetic(digits)
            )
            low, high = (arb(fmpq(*Fraction(end).as_integer_ratio())) for end in ends)
            true_value = (-arb(fmpq(x.numerator, x.denominator)) / arb(2).sqrt()).erfc() / 2
            # A comparison of flint is true only if it is certain.
            assert not true_value < low
            assert not true_value > high
            largest_width = max(largest_width, float(ends[1] - ends[0]) * 10**digits)
    assert largest_width > 10  # A wrong bound would have been noticed.


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
    budget, smaller_budget = BUDGETS[notion]
    if family == "noise":
        design = wb.design(wb.ModuloNoise(n=6, max_shift=1), notion=notion, **budget)
    else:
        design = wb.design(wb.Labels([0, 1]), notion=notion, method="lp", **budget)
    data = json.loads(json.dumps(design.certificate.to_dict()))
    assert decide(data) == "proven"
    assert checker.prove_statement(data).count(notion) == 1
    assert decide(data | {"claim": {"notion": notion, **smaller_budget}}) == "false"
    # None of these notions has a δ.
    assert decide(data | {"claim": {"notion": notion, **budget, "delta": "0"}}) == "unreadable"


@pytest.mark.parametrize(
    "claim",
    [
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
    ],
    ids=str,
)
def test_budgets_without_a_meaning_are_unreadable(claim):
    assert decide(GOOD | {"claim": claim}) == "unreadable"


@pytest.mark.parametrize("claim", [{"notion": "gdp", "mu": "0"}, {"notion": "zcdp", "rho": "0"}])
def test_a_budget_of_zero_is_false_for_noise_that_is_not_uniform(claim):
    assert decide(GOOD | {"claim": claim}) == "false"


def test_a_claim_at_the_exact_limit_is_not_proven():
    """The smallest ρ of zCDP is sup D_α/α over α > 1. Here it is the KL divergence, at α -> 1.

    A claim of exactly this ρ is true. No enclosure can show it, because every enclosure contains
    values on both sides.
    """
    loss = checker.Divergence(((3, 1), 4), ((1, 3), 4))
    low, high = loss.mean_loss(80)
    claim = {"notion": "zcdp", "rho": str(high + (high - low))}
    assert decide(make_noise([3, 1], "pure", "0") | {"claim": claim}) in ("unknown", "false")


def make_discrete_gaussian(n: int, sigma: int, excess: str) -> dict:
    """Return the discrete Gaussian modulo n with the claim ρ = (1 + excess) / (2σ²).

    The claim is nearly tight at most orders α.
    """
    weights = [round(2**50 * math.exp(-(min(k, n - k) ** 2) / (2 * sigma**2))) for k in range(n)]
    rho = Fraction(1, 2 * sigma**2) * (1 + Fraction(excess))
    return make_noise(weights, "pure", "0") | {"claim": {"notion": "zcdp", "rho": str(rho)}}


def make_noise_with_claim(weights: list[int], **claim: str) -> dict:
    """Return noise modulo the number of weights, with a claim that is given by its entries."""
    return make_noise(weights, "pure", "0") | {"claim": claim}


BELL = [1 << 40, 1 << 38, 1 << 36, (1 << 35) + 1, 1 << 36, 1 << 38]
PROVEN = 0
REFUTED = 1
UNDECIDED = 2


@pytest.mark.parametrize(
    ("data", "workbench_code", "checker_code"),
    [
        (make_noise_with_claim(BELL, notion="gdp", mu="1000000"), PROVEN, PROVEN),
        (make_noise_with_claim(BELL, notion="gdp", mu="1000"), PROVEN, PROVEN),
        (make_noise_with_claim([1, 1 << 200, 1 << 400], notion="gdp", mu="1"), REFUTED, REFUTED),
        # The checker has fewer digits than the workbench.
        (
            make_noise_with_claim([1, 1 << 1500, 1 << 3000], notion="gdp", mu="1"),
            REFUTED,
            UNDECIDED,
        ),
        (make_discrete_gaussian(n=300, sigma=25, excess="1e-4"), PROVEN, PROVEN),
        (make_discrete_gaussian(n=1200, sigma=100, excess="1e-6"), UNDECIDED, UNDECIDED),
        (make_noise_with_claim(BELL, notion="zcdp", rho="1e-5000"), REFUTED, REFUTED),
        (
            make_noise_with_claim([1 << 80, (1 << 80) + 1], notion="zcdp", rho="1e-40"),
            UNDECIDED,
            UNDECIDED,
        ),
    ],
    ids=["far μ", "μ", "tail", "long tail", "nearly tight", "tighter", "tiny ρ", "far orders"],
)
def test_hard_claims_are_decided_or_refused(data, workbench_code, checker_code, tmp_path: Path):
    """The claims need long series, extreme quantiles or many orders α."""
    path = tmp_path / "c.json"
    path.write_text(json.dumps(data))
    workbench_command = [sys.executable, "-m", "workbench", "check", str(path)]
    checker_command = [sys.executable, "-I", "-S", str(TOOL), str(path)]
    for command, code in ((workbench_command, workbench_code), (checker_command, checker_code)):
        # Without the limits on digits and orders, the processes would not end.
        process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        assert process.returncode == code, process.stdout + process.stderr
        assert "Bug" not in process.stderr


def test_only_epsilon_may_have_a_value_for_each_pair(tmp_path: Path):
    path = tmp_path / "c.json"
    claim = {"notion": "dp", "epsilon": "1", "delta": [[[1], "0"], [[3], "0"]]}
    path.write_text(json.dumps(GOOD | {"claim": claim}))
    assert decide_by_both(path) == ("unreadable", "unreadable")
