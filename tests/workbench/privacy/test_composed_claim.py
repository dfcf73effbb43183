"""Compare `compose` and both checkers of composed claims with an enumeration of all outcomes.

The exact δ of several runs at ε is enumerated in two ways (`truth`): for neighbours that are the
same in every run, and for an adversary who chooses the neighbours of each run after seeing the
earlier outputs (adaptive). The lower bound of `compose` must not exceed the first, and the upper
bound must not be below the second. A composed claim of a certificate says that so many runs are
(ε, δ)-private together. `checker` is the independent checker in tools/check_certificate.py.
"""

from __future__ import annotations

import copy
import json
import pickle
import random
import time
from decimal import Context, Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from tests.tools.test_check_certificate import checker
from workbench.cli import main
from workbench.exact.integer_law import IntegerLaw
from workbench.privacy.certificate import Certificate
from workbench.privacy.certificate_file import certificate_from_dict
from workbench.privacy.composition import ComposedClaim

Law = tuple[Fraction, ...]  # The mass of each outcome.
Pair = tuple[Law, Law]  # The laws (P, Q) of two neighbours.

ROWS = wb.Channel.from_rows([[9, 1], [5, 5]])


def list_pairs(mechanism: Any) -> list[Pair]:
    """Return the laws (P, Q) of every comparison of a mechanism."""
    pairs = []
    for comparison in mechanism.comparisons():
        p = tuple(Fraction(weight, comparison.p.total) for weight in comparison.p.integers)
        q = tuple(Fraction(weight, comparison.q.total) for weight in comparison.q.integers)
        pairs.append((p, q))
    return pairs


def compute_max_ratio(epsilon: str) -> Fraction:
    """Return e^ε with 60 digits."""
    return Fraction(Context(prec=60).exp(Decimal(epsilon)))


def compute_fixed_delta(runs: list[Pair], max_ratio: Fraction) -> Fraction:
    """Return Σ max(0, P - e^ε Q) over all sequences of outcomes.

    Args:
        runs: The pair (P, Q) of each run.
        max_ratio: e^ε.
    """
    delta = Fraction(0)
    for outcomes in product(*(range(len(p)) for p, _ in runs)):
        p_mass = Fraction(1)
        q_mass = Fraction(1)
        for (p, q), outcome in zip(runs, outcomes, strict=True):
            p_mass *= p[outcome]
            q_mass *= q[outcome]
        delta += max(Fraction(0), p_mass - max_ratio * q_mass)
    return delta


def compute_adaptive_delta(
    runs: list[list[Pair]],
    max_ratio: Fraction,
    p_mass: Fraction = Fraction(1),
    q_mass: Fraction = Fraction(1),
) -> Fraction:
    """Return the largest δ if each pair is chosen when the outcomes before it are known.

    Args:
        runs: The pairs to choose from, for each remaining run.
        max_ratio: e^ε.
        p_mass: Probability under P of the outcomes so far.
        q_mass: Probability under Q of the outcomes so far.
    """
    if not runs or not p_mass:
        return max(Fraction(0), p_mass - max_ratio * q_mass)
    first_pairs, *other_runs = runs
    deltas = []
    for p, q in first_pairs:
        delta = Fraction(0)
        for p_factor, q_factor in zip(p, q, strict=True):
            delta += compute_adaptive_delta(
                other_runs, max_ratio, p_mass * p_factor, q_mass * q_factor
            )
        deltas.append(delta)
    return max(deltas)


def compute_exact_deltas(
    subjects: list[tuple[Any, int]], epsilon: str
) -> tuple[Fraction, Fraction]:
    """Return the exact δ for the worst fixed neighbours, and for the worst adaptive choice.

    Args:
        subjects: Mechanisms with their numbers of runs.
        epsilon: ε of all runs together.
    """
    max_ratio = compute_max_ratio(epsilon)
    fixed_deltas = []
    for pairs in product(*(list_pairs(mechanism) for mechanism, _ in subjects)):
        fixed_runs: list[Pair] = []
        for pair, (_, times) in zip(pairs, subjects, strict=True):
            fixed_runs += [pair] * times
        fixed_deltas.append(compute_fixed_delta(fixed_runs, max_ratio))
    adaptive_runs: list[list[Pair]] = []
    for mechanism, times in subjects:
        adaptive_runs += [list_pairs(mechanism)] * times
    return max(fixed_deltas), compute_adaptive_delta(adaptive_runs, max_ratio)


SUBJECTS = {
    "two rows": ROWS,
    "three rows": wb.Channel.from_rows([[7, 2, 1], [2, 7, 1], [1, 4, 5]]),
    "a hole": wb.Channel.from_rows([[7, 2, 1], [3, 7, 0]]),
    "noise": wb.AdditiveNoise(wb.ModuloNoise(n=3, max_shift=1), [6, 3, 1, 2]),
    "one order": wb.AdditiveNoise(wb.ModuloNoise(n=2, shifts=[1], directed=True), [6, 3, 1]),
    "quantizer": wb.PiecewiseAffine.from_laws([-1, 1], [-3, 3], [[7, 3], [2, 8]]),
}


def assert_between(composition: wb.Composition, exact_deltas: tuple[Fraction, Fraction]) -> None:
    """Assert that the bounds of a composition enclose the exact δ, and that the lower one is tight.

    `exact_deltas` is a result of `compute_exact_deltas`.
    """
    fixed_delta, adaptive_delta = exact_deltas
    assert composition.delta_low <= float(fixed_delta) * (1 + 1e-12)
    assert float(adaptive_delta) <= composition.delta * (1 + 1e-12)
    assert composition.delta_low >= float(fixed_delta) * 0.995


@pytest.mark.parametrize("name", SUBJECTS)
@pytest.mark.parametrize(("runs", "epsilon"), [(2, "1"), (3, "0.4")])
def test_both_bounds_on_delta_enclose_the_exact_composition(name, runs, epsilon):
    composition = wb.compose(SUBJECTS[name], runs, epsilon=epsilon, interval=1e-3)
    assert_between(composition, compute_exact_deltas([(SUBJECTS[name], runs)], epsilon))


@pytest.mark.parametrize("name", SUBJECTS)
@pytest.mark.parametrize(("runs", "epsilon"), [(2, "1"), (3, "0.4")])
def test_both_bounds_on_epsilon_enclose_the_epsilon_of_the_exact_delta(name, runs, epsilon):
    fixed_delta, _ = compute_exact_deltas([(SUBJECTS[name], runs)], epsilon)
    delta = Decimal(repr(float(fixed_delta)))
    composition = wb.compose(SUBJECTS[name], runs, delta=delta, interval=1e-3)
    assert composition.epsilon_low <= float(epsilon) + 1e-9
    assert composition.epsilon >= float(epsilon) - 1e-9


@pytest.mark.parametrize(
    ("first", "second"), [("two rows", "noise"), ("a hole", "quantizer"), ("one order", "two rows")]
)
def test_both_bounds_enclose_the_composition_of_two_mechanisms(first, second):
    subjects = [(SUBJECTS[first], 2), (SUBJECTS[second], 1)]
    mechanisms = [SUBJECTS[first], SUBJECTS[second]]
    composition = wb.compose(mechanisms, [2, 1], epsilon="0.8", interval=1e-3)
    assert_between(composition, compute_exact_deltas(subjects, "0.8"))


@pytest.fixture
def rows_path(tmp_path: Path) -> Path:
    """Return the path of a file with the channel ROWS."""
    path = tmp_path / "m.csv"
    path.write_text("0.9,0.1\n0.5,0.5\n")
    return path


def run_compose(rows_path: Path, *options: str) -> None:
    """Run the command `compose` for two runs of ROWS at ε = 1."""
    with pytest.raises(SystemExit):
        main(["compose", str(rows_path), "--times", "2", "--epsilon", "1", *options])


def test_the_deltas_of_fixed_and_adaptive_neighbours_differ():
    """The values of the enumeration, pinned."""
    fixed_delta, adaptive_delta = compute_exact_deltas([(ROWS, 2)], "1")
    assert float(fixed_delta) == pytest.approx(0.23353, abs=5e-6)
    assert float(adaptive_delta) == pytest.approx(0.31944, abs=5e-6)


def test_the_command_reports_bounds_for_fixed_and_adaptive_neighbours(
    rows_path: Path, capsys: pytest.CaptureFixture[str]
):
    run_compose(rows_path, "--json")
    report = json.loads(capsys.readouterr().out)
    fixed_delta, adaptive_delta = compute_exact_deltas([(ROWS, 2)], "1")
    assert float(fixed_delta) * 0.999 < report["delta_low"] <= float(fixed_delta)
    assert float(adaptive_delta) < report["delta"]


def test_the_command_states_for_which_neighbours_a_bound_holds(
    rows_path: Path, capsys: pytest.CaptureFixture[str]
):
    run_compose(rows_path)
    assert "for neighbours that stay the same" in " ".join(capsys.readouterr().out.split())


# The claim of a certificate.


def decide_by_both(data: dict[str, Any]) -> tuple[str, str]:
    """Return the verdicts of the workbench and of the second checker: proven, false, or neither."""
    try:
        certificate_from_dict(data)
        ours = "proven"
    except wb.CorruptFile as error:
        ours = "false" if "It is false that" in str(error) else "neither"
    try:
        checker.prove_statement(data)
        theirs = "proven"
    except checker.Refused as refused:
        theirs = "false" if refused.args[0] == "false" else "neither"
    return ours, theirs


BOTH_PROVEN = ("proven", "proven")
BOTH_FALSE = ("false", "false")


def make_claim_data(mechanism: Any, runs: int, epsilon: str, delta: Fraction) -> dict[str, Any]:
    """Return the data of a certificate with a composed claim, which may be false."""
    claim = ComposedClaim.for_mechanism(mechanism, runs, Fraction(epsilon), Fraction(delta))
    certificate = Certificate(mechanism, "dp", epsilon=0, delta=1)
    return certificate.to_dict() | {"composed": claim.to_dict()}


@pytest.mark.parametrize("name", SUBJECTS)
@pytest.mark.parametrize(("runs", "epsilon"), [(1, "0.3"), (2, "1"), (3, "0.4")])
def test_both_checkers_decide_the_claim(name, runs, epsilon):
    subject = SUBJECTS[name]

    def decide_delta(delta: Fraction) -> tuple[str, str]:
        """Return both verdicts about the claim with this δ."""
        return decide_by_both(make_claim_data(subject, runs, epsilon, delta))

    fixed_delta, adaptive_delta = compute_exact_deltas([(subject, runs)], epsilon)
    upper_bound = Fraction(wb.compose(subject, runs, epsilon=epsilon, interval=1e-3).delta)
    assert decide_delta(min(Fraction(1), upper_bound * Fraction("1.0001"))) == BOTH_PROVEN
    assert decide_delta(fixed_delta * Fraction("0.98")) == BOTH_FALSE
    assert decide_delta(Fraction(0)) == BOTH_FALSE
    if adaptive_delta > fixed_delta:
        # Only an adaptive adversary exceeds this δ.
        assert "proven" not in decide_delta(adaptive_delta * Fraction("0.999999"))


def make_random_channel(source: random.Random) -> wb.Channel:
    """Return a channel of two or three rows and outputs, with weights of 2 to 200 bits."""
    column_count = source.randrange(2, 4)
    row_count = source.randrange(2, 4)
    bits = source.choice([2, 8, 60, 200])
    rows = []
    for _ in range(row_count):
        row = [source.getrandbits(bits) + source.choice([0, 1]) for _ in range(column_count)]
        rows.append(row if any(row) else [1] * column_count)
    return wb.Channel.from_rows(rows)


@pytest.mark.parametrize("seed", range(30))
def test_no_checker_proves_a_delta_below_the_exact_one(seed):
    """A file may choose the step of the grid freely. No step makes a false claim pass."""
    source = random.Random(seed)
    subject = make_random_channel(source)
    runs = source.randrange(2, 4)
    epsilon = source.choice(["0.1", "0.5", "1", "2"])
    exact_deltas = compute_exact_deltas([(subject, runs)], epsilon)
    _, adaptive_delta = exact_deltas
    for share in (Fraction(9, 10), Fraction(999999, 10**6)):
        data = make_claim_data(subject, runs, epsilon, adaptive_delta * share)
        usual_step = data["composed"]["step"]
        random_step = str(Fraction(1, source.choice([1, 3, 50, 10**30])))
        for step in (usual_step, random_step):
            data["composed"]["step"] = step
            if adaptive_delta > 0:
                assert "proven" not in decide_by_both(data)
    true_data = make_claim_data(subject, runs, epsilon, adaptive_delta)
    assert "false" not in decide_by_both(true_data)
    assert_between(wb.compose(subject, runs, epsilon=epsilon, interval=1e-3), exact_deltas)


# The law of noise on -2..2 with geometric tails.
TAILED_LAW = IntegerLaw(first=-2, weights=[1, 3, 9, 3, 1], period=1, ratio="1/3")


@pytest.mark.parametrize(
    "mechanism",
    [
        wb.AdditiveIntegerNoise(wb.IntegerNoise(), TAILED_LAW),
        wb.AdditiveIntegerNoise(wb.IntegerNoise(2, clamp=(0, 4)), TAILED_LAW),
        wb.AdditiveRealNoise(wb.RealNoise(1), 2, TAILED_LAW),
        wb.AdditiveRealNoise(wb.RealNoise(1), 2, TAILED_LAW, Fraction(1, 50)),
    ],
)
@pytest.mark.parametrize(("runs", "epsilon"), [(4, "2"), (100, "40")])
def test_both_checkers_decide_claims_about_integer_and_real_noise(mechanism, runs, epsilon):
    composition = wb.compose(mechanism, runs, epsilon=epsilon, interval=1e-2)
    larger_delta = min(Fraction(1), Fraction(composition.delta) * 2 + Fraction(1, 10**9))
    true_data = make_claim_data(mechanism, runs, epsilon, larger_delta)
    assert decide_by_both(true_data) == BOTH_PROVEN
    if composition.delta_low > 0.01:
        smaller_delta = Fraction(composition.delta_low) / 2
        false_data = make_claim_data(mechanism, runs, epsilon, smaller_delta)
        assert "proven" not in decide_by_both(false_data)


@pytest.mark.parametrize(
    ("epsilon", "verdicts"), [("0.672944474", BOTH_PROVEN), ("0.672944473", BOTH_FALSE)]
)
def test_claims_at_delta_zero_are_decided_by_the_sum_of_epsilons(epsilon, verdicts):
    """The largest ratio is 7/5 (1/2 against 5/14), so two runs need ε = 2 ln 7/5 = 0.67294447324..."""
    subject = wb.Channel.from_rows([[9, 5], [5, 5]])
    data = make_claim_data(subject, runs=2, epsilon=epsilon, delta=Fraction(0))
    assert decide_by_both(data) == verdicts


def make_certificate(delta: str) -> Certificate:
    """Make a certificate of ROWS that claims δ for two runs at ε = 1."""
    claim = ComposedClaim.for_mechanism(ROWS, 2, Fraction(1), Fraction(delta))
    return Certificate(ROWS, "pure", "1.7", composed=claim)


def test_copies_of_a_certificate_have_its_composed_claim():
    proof = make_certificate("0.41")
    for copied in (
        pickle.loads(pickle.dumps(proof)),
        copy.deepcopy(proof),
        certificate_from_dict(proof.to_dict()),
    ):
        assert copied.composed == proof.composed


def test_both_checkers_describe_a_composed_claim():
    proof = make_certificate("0.41")
    assert "2 adaptive runs together are private at epsilon = 1, delta = 0.41." in proof.sentences
    statement = checker.prove_statement(proof.to_dict())
    assert "2 runs together: dp at epsilon = 1, delta = 0.41" in statement


def test_a_certificate_with_a_false_composed_claim_is_refused():
    """δ is below the exact 0.23353 of fixed neighbours."""
    with pytest.raises(wb.NotCertified, match="It is false that"):
        make_certificate("0.2")


def test_a_certificate_with_an_undecided_composed_claim_is_refused():
    """δ is between the exact values for fixed and for adaptive neighbours."""
    with pytest.raises(wb.NotProven, match="does not decide"):
        make_certificate("0.3")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("runs", 0),
        ("runs", True),
        ("runs", "2"),
        ("runs", 10**9),
        ("epsilon", "-1"),
        ("epsilon", 1),
        ("delta", "2"),
        ("delta", "-1/2"),
        ("step", "0"),
        ("step", "-1"),
        ("step", "1e-90"),
        ("step", None),
        ("other", 1),
    ],
)
def test_inconsistent_claims_are_refused(name, value):
    data = make_claim_data(ROWS, runs=2, epsilon="1", delta=Fraction(1, 2))
    data["composed"][name] = value
    with pytest.raises(wb.CorruptFile, match="must"):
        certificate_from_dict(data)
    with pytest.raises(checker.Refused):
        checker.prove_statement(data)


@pytest.mark.parametrize(
    "hostile",
    [
        {"step": "1e-70"},
        {"step": "1e-8"},
        {"runs": 10**6, "epsilon": "1000", "step": "1e-3"},
        {"epsilon": "1000000"},
        {"delta": "1e-4900"},
        {"delta": "1e-1200"},
        {"epsilon": "2500", "runs": 10**6},
        {"epsilon": "1/" + "9" * 4000},
        {"runs": 1000, "delta": "1e-300", "epsilon": "300"},
    ],
)
def test_both_checkers_limit_the_time_of_hostile_claims(hostile):
    data = make_claim_data(
        wb.Channel.from_rows([[10**9, 5, 1], [1, 7, 10**9], [3, 3, 3]]),
        runs=2,
        epsilon="1",
        delta=Fraction(1, 2),
    )
    data["composed"] |= hostile
    start = time.process_time()
    verdicts = decide_by_both(data)
    assert time.process_time() - start < 120  # Of both; without limits they do not end.
    assert set(verdicts) != {"proven", "false"}
