"""Compare `compose` and both checkers of composed claims with an enumeration of all outcomes.

The exact δ of several runs at ε is enumerated in two ways (`truth`): for neighbours that are the
same in every run, and for an adversary who chooses the neighbours of each run after seeing the
earlier outputs. The lower bound of `compose` must not exceed the first, and the upper bound must
not be below the second.
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

Law = tuple[Fraction, ...]
Pair = tuple[Law, Law]

ROWS = wb.Channel.from_rows([[9, 1], [5, 5]])


def pairs(mechanism: Any) -> list[Pair]:
    """Return the laws (P, Q) of every comparison of a mechanism."""
    return [
        tuple(tuple(Fraction(k, law.total) for k in law.integers) for law in (c.p, c.q))
        for c in mechanism.comparisons()
    ]


def power(epsilon: str) -> Fraction:
    """Return e^ε with 60 digits."""
    return Fraction(Context(prec=60).exp(Decimal(epsilon)))


def fixed(runs: list[Pair], e: Fraction) -> Fraction:
    """Return Σ max(0, P - e Q) over all sequences of outcomes, for one given pair for each run."""
    total = Fraction(0)
    for outcomes in product(*(range(len(p)) for p, _ in runs)):
        a = b = Fraction(1)
        for (p, q), i in zip(runs, outcomes, strict=True):
            a, b = a * p[i], b * q[i]
        total += max(Fraction(0), a - e * b)
    return total


def adaptive(
    runs: list[list[Pair]], e: Fraction, a: Fraction = Fraction(1), b: Fraction = Fraction(1)
) -> Fraction:
    """Return the largest δ if each pair is chosen when the outcomes before it are known.

    Args:
        runs: The pairs to choose from, for each remaining run.
        e: The ratio e^ε.
        a: Probability under P of the outcomes so far.
        b: Probability under Q of the outcomes so far.
    """
    if not runs or not a:
        return max(Fraction(0), a - e * b)
    first, *others = runs
    return max(
        sum(adaptive(others, e, a * x, b * y) for x, y in zip(p, q, strict=True)) for p, q in first
    )


def truth(subjects: list[tuple[Any, int]], epsilon: str) -> tuple[Fraction, Fraction]:
    """Return the exact δ for the worst fixed neighbours, and for the worst adaptive choice."""
    e = power(epsilon)
    runs = [pairs(subject) for subject, times in subjects for _ in range(times)]
    choices = product(*(pairs(subject) for subject, _ in subjects))
    constant = max(
        fixed(
            [pair for pair, (_, times) in zip(choice, subjects, strict=True) for _ in range(times)],
            e,
        )
        for choice in choices
    )
    return constant, adaptive(runs, e)


SUBJECTS = {
    "two rows": ROWS,
    "three rows": wb.Channel.from_rows([[7, 2, 1], [2, 7, 1], [1, 4, 5]]),
    "a hole": wb.Channel.from_rows([[7, 2, 1], [3, 7, 0]]),
    "noise": wb.AdditiveNoise(wb.ModuloNoise(n=3, max_shift=1), [6, 3, 1, 2]),
    "one order": wb.AdditiveNoise(wb.ModuloNoise(n=2, shifts=[1], directed=True), [6, 3, 1]),
    "quantizer": wb.PiecewiseAffine.from_laws([-1, 1], [-3, 3], [[7, 3], [2, 8]]),
}


def assert_between(found: wb.Composition, exact: tuple[Fraction, Fraction]) -> None:
    """Assert that the bounds of a composition enclose the results of `truth`, and are not loose."""
    constant, worst = exact
    assert found.delta_low <= float(constant) * (1 + 1e-12)
    assert float(worst) <= found.delta * (1 + 1e-12)
    assert found.delta_low >= float(constant) * 0.995


@pytest.mark.parametrize("name", SUBJECTS)
@pytest.mark.parametrize(("runs", "epsilon"), [(2, "1"), (3, "0.4")])
def test_both_bounds_enclose_the_exact_composition(name, runs, epsilon):
    subject = SUBJECTS[name]
    exact = truth([(subject, runs)], epsilon)
    found = wb.compose(subject, runs, epsilon=epsilon, interval=1e-3)
    assert_between(found, exact)
    back = wb.compose(subject, runs, delta=Decimal(repr(float(exact[0]))), interval=1e-3)
    assert back.epsilon_low <= float(epsilon) + 1e-9
    assert back.epsilon >= float(epsilon) - 1e-9


@pytest.mark.parametrize(
    ("first", "second"), [("two rows", "noise"), ("a hole", "quantizer"), ("one order", "two rows")]
)
def test_both_bounds_enclose_the_composition_of_two_mechanisms(first, second):
    subjects = [(SUBJECTS[first], 2), (SUBJECTS[second], 1)]
    found = wb.compose([subject for subject, _ in subjects], [2, 1], epsilon="0.8", interval=1e-3)
    assert_between(found, truth(subjects, "0.8"))


def test_the_command_states_for_which_neighbours_a_bound_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "m.csv").write_text("0.9,0.1\n0.5,0.5\n")
    with pytest.raises(SystemExit):
        main(["compose", str(tmp_path / "m.csv"), "--times", "2", "--epsilon", "1", "--json"])
    found = json.loads(capsys.readouterr().out)
    constant, worst = truth([(ROWS, 2)], "1")
    assert (round(float(constant), 5), round(float(worst), 5)) == (0.23353, 0.31944)
    assert 0.2334 < found["delta_low"] <= float(constant)
    assert float(worst) < found["delta"]
    with pytest.raises(SystemExit):
        main(["compose", str(tmp_path / "m.csv"), "--times", "2", "--epsilon", "1"])
    assert "for neighbours that stay the same" in " ".join(capsys.readouterr().out.split())


# The claim of a certificate.


def verdicts(data: dict[str, Any]) -> tuple[str, str]:
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


def claimed(mechanism: Any, runs: int, epsilon: str, delta: Fraction) -> dict[str, Any]:
    """Return the data of a certificate with a composed claim, which may be false."""
    claim = ComposedClaim.for_mechanism(mechanism, runs, Fraction(epsilon), Fraction(delta))
    return Certificate(mechanism, "dp", epsilon=0, delta=1).to_dict() | {
        "composed": claim.to_dict()
    }


@pytest.mark.parametrize("name", SUBJECTS)
@pytest.mark.parametrize(("runs", "epsilon"), [(1, "0.3"), (2, "1"), (3, "0.4")])
def test_both_checkers_decide_the_claim(name, runs, epsilon):
    subject = SUBJECTS[name]
    constant, worst = truth([(subject, runs)], epsilon)
    above = Fraction(wb.compose(subject, runs, epsilon=epsilon, interval=1e-3).delta)
    assert (
        verdicts(claimed(subject, runs, epsilon, min(Fraction(1), above * Fraction("1.0001"))))
        == ("proven",) * 2
    )
    assert verdicts(claimed(subject, runs, epsilon, constant * Fraction("0.98"))) == ("false",) * 2
    if worst > constant:  # Only an adaptive adversary exceeds this δ.
        assert "proven" not in verdicts(
            claimed(subject, runs, epsilon, worst * Fraction("0.999999"))
        )
    assert verdicts(claimed(subject, runs, epsilon, Fraction(0))) == ("false",) * 2


def random_channel(source: random.Random) -> wb.Channel:
    """Return a channel of two or three rows and outputs, with masses of 2 to 200 bits."""
    columns, rows = source.randrange(2, 4), source.randrange(2, 4)
    bits = source.choice([2, 8, 60, 200])
    made = [
        [source.getrandbits(bits) + source.choice([0, 1]) for _ in range(columns)]
        for _ in range(rows)
    ]
    return wb.Channel.from_rows([row if any(row) else [1] * columns for row in made])


@pytest.mark.parametrize("seed", range(30))
def test_no_checker_proves_a_delta_below_the_exact_one(seed):
    source = random.Random(seed)
    subject, runs = random_channel(source), source.randrange(2, 4)
    epsilon = source.choice(["0.1", "0.5", "1", "2"])
    constant, worst = truth([(subject, runs)], epsilon)
    for share in (Fraction(9, 10), Fraction(999999, 10**6)):
        # No step of the grid, which the file may choose freely, makes a false claim pass.
        for step in (None, Fraction(1, source.choice([1, 3, 50, 10**30]))):
            data = claimed(subject, runs, epsilon, worst * share)
            if step is not None:
                data["composed"]["step"] = str(step)
            assert not worst or "proven" not in verdicts(data)
    true = claimed(subject, runs, epsilon, worst)
    assert "false" not in verdicts(true)
    assert_between(wb.compose(subject, runs, epsilon=epsilon, interval=1e-3), (constant, worst))


@pytest.mark.parametrize(
    "mechanism",
    [
        wb.AdditiveIntegerNoise(
            wb.IntegerNoise(), IntegerLaw(first=-2, weights=[1, 3, 9, 3, 1], period=1, ratio="1/3")
        ),
        wb.AdditiveIntegerNoise(
            wb.IntegerNoise(2, clamp=(0, 4)),
            IntegerLaw(first=-2, weights=[1, 3, 9, 3, 1], period=1, ratio="1/3"),
        ),
        wb.AdditiveRealNoise(
            wb.RealNoise(1), 2, IntegerLaw(first=-2, weights=[1, 3, 9, 3, 1], period=1, ratio="1/3")
        ),
        wb.AdditiveRealNoise(
            wb.RealNoise(1),
            2,
            IntegerLaw(first=-2, weights=[1, 3, 9, 3, 1], period=1, ratio="1/3"),
            Fraction(1, 50),
        ),
    ],
)
@pytest.mark.parametrize(("runs", "epsilon"), [(4, "2"), (100, "40")])
def test_both_checkers_decide_claims_about_integer_and_real_noise(mechanism, runs, epsilon):
    above = wb.compose(mechanism, runs, epsilon=epsilon, interval=1e-2)
    larger_delta = min(Fraction(1), Fraction(above.delta) * 2 + Fraction(1, 10**9))
    assert verdicts(claimed(mechanism, runs, epsilon, larger_delta)) == ("proven",) * 2
    if above.delta_low > 0.01:
        smaller_delta = Fraction(above.delta_low) / 2
        assert "proven" not in verdicts(claimed(mechanism, runs, epsilon, smaller_delta))


def test_claims_at_delta_zero_are_decided_by_the_sum_of_epsilons():
    """The largest ratio is 7/5 (1/2 against 5/14), so two runs need ε = 2 ln 7/5 = 0.67294447324..."""
    subject = wb.Channel.from_rows([[9, 5], [5, 5]])
    for text, expected in (("0.672944474", "proven"), ("0.672944473", "false")):
        assert verdicts(claimed(subject, runs=2, epsilon=text, delta=Fraction(0))) == (
            expected,
            expected,
        )


def test_the_claim_is_saved_and_described():
    claim = ComposedClaim.for_mechanism(ROWS, 2, Fraction(1), Fraction("0.41"))
    proof = Certificate(ROWS, "pure", "1.7", composed=claim)
    assert "2 adaptive runs together are private at epsilon = 1, delta = 0.41." in proof.sentences
    for again in (
        pickle.loads(pickle.dumps(proof)),
        copy.deepcopy(proof),
        certificate_from_dict(proof.to_dict()),
    ):
        assert again.composed == claim
    assert "2 runs together: dp at epsilon = 1, delta = 0.41" in checker.prove_statement(
        proof.to_dict()
    )
    with pytest.raises(wb.NotCertified, match="It is false that"):
        Certificate(
            ROWS,
            "pure",
            "1.7",
            composed=ComposedClaim.for_mechanism(ROWS, 2, Fraction(1), Fraction("0.2")),
        )
    with pytest.raises(wb.NotProven, match="does not decide"):
        Certificate(
            ROWS,
            "pure",
            "1.7",
            composed=ComposedClaim.for_mechanism(ROWS, 2, Fraction(1), Fraction("0.3")),
        )


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
    data = claimed(ROWS, runs=2, epsilon="1", delta=Fraction(1, 2))
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
    data = claimed(
        wb.Channel.from_rows([[10**9, 5, 1], [1, 7, 10**9], [3, 3, 3]]),
        runs=2,
        epsilon="1",
        delta=Fraction(1, 2),
    )
    data["composed"] |= hostile
    start = time.process_time()
    ours, theirs = verdicts(data)
    assert time.process_time() - start < 120  # Of both; without limits they do not end.
    assert {ours, theirs} != {"proven", "false"}
