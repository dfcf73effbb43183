"""Test `NearestOutputs`, which publishes the outputs nearest to an answer with a larger probability.

Answers are in 0..3. The `own` outputs nearest to an answer are `odds` times as likely as the other
outputs. With probability `direct`, the answer itself is published, rounded to one of `steps` parts
of the range. The reference `compute_law` follows this definition.
"""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from tests.tools.test_check_certificate import decide
from workbench.exact.distribution import Distribution
from workbench.families.channel.family import FAMILY
from workbench.mechanisms.nearest_outputs import NearestOutputs
from workbench.privacy.certificate_file import certificate_from_dict
from workbench.privacy.expected_error import compute_expected_error

ODDS = Fraction(11, 4)


def make_mechanism(seed: int, odds: Fraction = ODDS) -> NearestOutputs:
    """Make a mechanism with 2 to 9 random outputs that does not publish the answer itself."""
    source = random.Random(seed)
    m = source.randint(2, 9)
    outputs = sorted(Fraction(source.randint(0, 30), 10) for _ in range(m))  # Some may be equal.
    own = source.randint(1, m - 1)
    return NearestOutputs((Fraction(0), Fraction(3)), tuple(outputs), own, odds)


def make_mechanism_with_steps(seed: int) -> NearestOutputs:
    """Make a random mechanism that sometimes publishes the answer in one of 2 to 8 steps."""
    source = random.Random(seed)
    return replace(
        make_mechanism(seed),
        direct=Fraction(source.randint(1, 9), 10),
        steps=2 * source.randint(1, 4),
    )


def list_breaks(mechanism: NearestOutputs) -> list[Fraction]:
    """List the answers at which the law of the output changes, and both ends of the range."""
    return [
        *mechanism.cuts,
        *(Fraction(3 * i, mechanism.steps) for i in range(mechanism.steps + 1)),
        Fraction(3),
    ]


def list_answers(mechanism: NearestOutputs) -> list[Fraction]:
    """List the answers at and beside all breaks. Between two of them the law is constant."""
    tiny = Fraction(1, 10**9)
    answers = {x + offset for x in list_breaks(mechanism) for offset in (-tiny, 0, tiny)}
    return [x for x in answers if 0 <= x <= 3]


def compute_law(mechanism: NearestOutputs, x: Fraction) -> list[Fraction]:
    """Compute the probabilities of the outputs, then of the steps, at an answer x.

    Of two outputs at the same distance, the right one counts as nearer.
    """
    order = sorted(
        range(len(mechanism.bins)),
        key=lambda j: (abs(mechanism.bins[j] - x), -mechanism.bins[j], -j),
    )
    nearest = {*order[: mechanism.own]}
    weights = [mechanism.odds if j in nearest else Fraction(1) for j in range(len(mechanism.bins))]
    law = [weight / sum(weights) * (1 - mechanism.direct) for weight in weights]
    if mechanism.direct:
        steps = [Fraction(3 * i, mechanism.steps) for i in range(mechanism.steps)]
        law += [mechanism.direct * (a <= x < a + steps[1] or x == 3 == a + steps[1]) for a in steps]
    return law


def make_random_mechanism(seed: int) -> NearestOutputs:
    """Make a mechanism without steps for a seed below 30, else one with steps."""
    return make_mechanism(seed) if seed < 30 else make_mechanism_with_steps(seed)


def has_equal_outputs(mechanism: NearestOutputs) -> bool:
    """Return whether two published values are equal.

    Then fewer likelier outputs may differ between two answers than the audit assumes, so the audit
    is only an upper bound.
    """
    return len({*mechanism.published_values}) < len(mechanism.published_values)


@pytest.mark.parametrize("seed", range(40))
def test_the_law_equals_the_definition(seed: int):
    mechanism = make_random_mechanism(seed)
    for x in list_answers(mechanism):
        # Only the total mass of equal outputs matters.
        excess = dict.fromkeys(mechanism.published_values, Fraction(0))
        laws = zip(mechanism.law(x), compute_law(mechanism, x), strict=True)
        for output, (mass, defined_mass) in zip(mechanism.published_values, laws, strict=True):
            excess[output] += mass - defined_mass
        assert not any(excess.values())


@pytest.mark.parametrize("seed", range(40))
def test_the_two_ends_decide_the_deltas_of_every_pair_of_answers(seed: int):
    mechanism = make_random_mechanism(seed)
    laws = [compute_law(mechanism, x) for x in list_answers(mechanism)]
    pairs = [
        [(float(p), float(q)) for p, q in zip(P, Q, strict=True)] for P, Q in permutations(laws, 2)
    ]
    for epsilon in ("0", "0.3", "1", "1.1"):
        privacy = wb.audit(mechanism, epsilon)
        ratio = math.exp(float(epsilon))
        dp_delta = max(sum(max(0.0, p - ratio * q) for p, q in pair) for pair in pairs)
        pdp_delta = max(sum(p for p, q in pair if p > ratio * q * (1 + 1e-12)) for pair in pairs)
        assert dp_delta <= privacy.dp_delta.upper + 1e-12
        assert pdp_delta <= float(privacy.pdp_delta) + 1e-12
        if not has_equal_outputs(mechanism):
            assert dp_delta == pytest.approx(privacy.dp_delta.upper, abs=1e-12)
            assert pdp_delta == pytest.approx(float(privacy.pdp_delta), abs=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_pure_epsilon_is_the_logarithm_of_the_odds_unless_steps_are_published(seed: int):
    mechanism = make_random_mechanism(seed)
    expected = math.inf if mechanism.direct else pytest.approx(math.log(ODDS))
    assert wb.audit(mechanism).pure_epsilon == expected


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize(
    ("notion", "budget"),
    [
        ("renyi", {"alpha": 2, "epsilon": 1}),
        ("zcdp", {"rho": "0.3"}),
        ("gdp", {"mu": "0.9"}),
    ],
)
def test_other_notions_hold_if_they_hold_for_the_two_ends(
    notion: str, budget: dict[str, object], seed: int
):
    mechanism = make_random_mechanism(seed)
    ends = [Distribution(compute_law(mechanism, x)) for x in (Fraction(0), Fraction(3))]
    holds = wb.audit(mechanism).meets(notion, **budget)
    holds_for_ends = wb.audit(wb.Channel(tuple(ends))).meets(notion, **budget)
    if has_equal_outputs(mechanism):
        assert holds_for_ends or not holds
    else:
        assert holds == holds_for_ends


@pytest.mark.parametrize("loss", ["absolute", "squared"])
@pytest.mark.parametrize(
    "seed",
    # Mechanisms with steps have the seeds from 12 on. `make test` takes a third of the seeds.
    [seed if seed % 3 == 0 else pytest.param(seed, marks=pytest.mark.slow) for seed in range(18)],
)
def test_reported_losses_equal_the_losses_of_the_laws(seed: int, loss: str):
    """`errors` has a prior of 1/4 for the left half of the range and 3/4 for the right half.

    `compute_expected_error` has a uniform prior, or the answers of `data`. The references are means
    over 600 answers in the middles of equal parts of the range [0, 3].
    """
    mechanism = make_mechanism(seed) if seed < 12 else make_mechanism_with_steps(seed)
    power = 1 if loss == "absolute" else 2

    def compute_loss(x: Fraction) -> Fraction:
        """Compute the expected loss at the answer x from the law at x."""
        law = zip(compute_law(mechanism, x), mechanism.published_values, strict=True)
        return sum(p * abs(output - x) ** power for p, output in law)

    mean, worst, worst_answer = mechanism.errors(loss, (Fraction(1, 4), Fraction(3, 4)))
    assert worst == compute_loss(worst_answer)
    assert worst == max(compute_loss(x) for x in list_breaks(mechanism))
    grid = [Fraction(3 * (2 * k + 1), 1200) for k in range(600)]
    losses = [compute_loss(x) for x in grid]
    assert max(losses) <= worst
    left_mean = float(sum(losses[:300]) / 300)
    right_mean = float(sum(losses[300:]) / 300)
    assert float(mean) == pytest.approx(left_mean / 4 + right_mean * 3 / 4, abs=1e-4)
    error = compute_expected_error(mechanism, loss)
    assert error.worst_error == worst
    assert float(error.mean_error) == pytest.approx(float(sum(losses) / 600), abs=1e-4)
    error_of_two_answers = compute_expected_error(mechanism, loss, data=[0.5, 2.25]).mean_error
    assert error_of_two_answers == (compute_loss(Fraction(1, 2)) + compute_loss(Fraction(9, 4))) / 2


FIVE_OUTPUTS = NearestOutputs(
    (Fraction(0), Fraction(3)), tuple(Fraction(k, 3) for k in (1, 2, 3, 5, 8)), 2, ODDS
)
FIVE_OUTPUTS_AND_STEPS = replace(FIVE_OUTPUTS, direct=Fraction(1, 3), steps=4)
TINY = Fraction(1, 10**40)  # Doubles cannot tell x from x + TINY.


def compute_chi_square(mechanism: NearestOutputs, x: Fraction, seed: int) -> float:
    """Publish x 4000 times, and compare the counts of the outputs with their law at x."""
    published = mechanism.publish([x] * 4000, insecure_seed=seed)
    counts = np.array([np.isclose(published, output).sum() for output in mechanism.outputs])
    expected = 4000 * np.array([*map(float, mechanism.law(x))])
    is_possible = expected > 0
    assert not counts[~is_possible].any()
    return float(((counts - expected)[is_possible] ** 2 / expected[is_possible]).sum())


def test_draws_at_and_beside_cuts_follow_the_law():
    answers = []
    for cut in FIVE_OUTPUTS.cuts:
        answers += [cut - TINY, cut, cut + TINY, Fraction(float(cut))]
    for seed, x in enumerate(answers, 1):
        # A chi-square value of 4 degrees exceeds 30 with probability 5e-6.
        assert compute_chi_square(FIVE_OUTPUTS, x, seed) < 30


def test_draws_at_and_beside_steps_follow_the_law():
    answers = (Fraction(3, 4) - TINY, Fraction(3, 4), Fraction(3))
    for seed, x in enumerate(answers, 13):
        # A chi-square value of 5 degrees exceeds 32 with probability 6e-6.
        assert compute_chi_square(FIVE_OUTPUTS_AND_STEPS, x, seed) < 32


def test_answers_outside_the_range_are_clamped():
    always_step = replace(FIVE_OUTPUTS_AND_STEPS, direct=Fraction(1))
    answers = [-0.2, -5.0, -1e300, -TINY, 3.5, 1e300]
    # The first of the four steps has the middle 3/8, the last 21/8.
    assert always_step.publish(answers).tolist() == [0.375] * 4 + [2.625] * 2
    clamped = FIVE_OUTPUTS.publish([-5.0, 9.0], insecure_seed=1)
    assert clamped.tolist() == FIVE_OUTPUTS.publish([0.0, 3.0], insecure_seed=1).tolist()


def test_answers_may_be_single_precision_floats_or_negative_zero():
    always_step = replace(FIVE_OUTPUTS_AND_STEPS, direct=Fraction(1))
    answers = np.array([0.75, 2.9], dtype=np.float32)
    assert always_step.publish(answers).tolist() == [1.125, 2.625]
    assert FIVE_OUTPUTS.law(-0.0) == FIVE_OUTPUTS.law(0)


@pytest.mark.parametrize("answers", [[math.nan], [[1.0]]])
def test_columns_that_are_no_list_of_finite_numbers_are_refused(answers: list[object]):
    with pytest.raises(wb.InvalidRequest, match="answers must be"):
        FIVE_OUTPUTS.publish(answers)


def test_there_is_no_law_at_an_answer_outside_the_range():
    with pytest.raises(wb.InvalidRequest, match=r"answer must be in \[0, 3\]"):
        FIVE_OUTPUTS.law("3.5")


def test_equal_outputs_are_one_outcome():
    values = tuple(Fraction(k) for k in (0, 0, 1, 1, 1, 3))
    assert [*NearestOutputs((Fraction(0), Fraction(3)), values, 2, ODDS).used_outputs] == [0, 2, 5]


def test_a_certificate_file_is_proven_and_changed_files_are_refused(tmp_path: Path):
    mechanism = make_mechanism(3)
    wb.Certificate(mechanism, "pure", "1.1").save(tmp_path / "f.json")
    assert wb.load(tmp_path / "f.json") == mechanism
    assert wb.check(tmp_path / "f.json").mechanism == mechanism
    data = json.loads((tmp_path / "f.json").read_text())
    record = data["mechanism"]
    assert decide(data) == "proven"
    assert decide({**data, "claim": {**data["claim"], "epsilon": "1"}}) == "false"
    bias = {"outputs": ["0", "1", "2"], "inputs": ["0", "1"], "worst": "1"}
    loss = {
        "name": "absolute",
        "value": "1",
        "labels": ["0"],
        "prior": ["1"],
        "outputs": ["0", "1", "2"],
        "rows": [0],
    }
    changes = [
        {"mechanism": {**record, name: value}}
        for name, value in (
            ("own", 0),
            ("own", len(record["outputs"])),
            ("own", True),
            ("odds", "1/2"),
            ("ends", ["0", "1"]),
            ("ends", ["0"]),
            ("outputs", record["outputs"][::-1]),
            ("outputs", ["1"]),
        )
    ]
    metric_claim = {**data["claim"], "notion": "metric"}
    changes += [{"bias": bias}, {"objective": loss}, {"claim": metric_claim}]
    for change in changes:
        assert decide({**data, **change}) == "unreadable", change
        with pytest.raises((wb.CorruptFile, wb.InvalidRequest)):
            certificate_from_dict({**data, **change})


def test_a_claim_by_distance_or_of_several_budgets_is_refused():
    mechanism = make_mechanism(3)
    with pytest.raises(wb.InvalidRequest, match="without distances"):
        wb.Certificate(mechanism, "metric", 1)
    with pytest.raises(wb.InvalidRequest, match="one number"):
        wb.Certificate(mechanism, "pure", {(0, 1): 2})


def test_a_mechanism_that_publishes_the_step_is_certified_but_not_under_pdp(tmp_path: Path):
    mechanism = replace(make_mechanism(3), direct=Fraction(1, 10), steps=8)
    wb.Certificate(mechanism, "dp", "1.1", "0.1").save(tmp_path / "f.json")
    data = json.loads((tmp_path / "f.json").read_text())
    assert wb.check(tmp_path / "f.json").mechanism == mechanism
    assert decide(data) == "proven"
    assert decide({**data, "claim": {**data["claim"], "delta": "0.0999"}}) == "false"
    assert "itself in 8 steps" in mechanism.describe()
    assert "published itself, to 1/8 of the range" in mechanism.column_cautions[0]
    for name, value in (("direct", "11/10"), ("direct", "-1/10"), ("steps", 0), ("steps", True)):
        changed = {**data, "mechanism": {**data["mechanism"], name: value}}
        assert decide(changed) == "unreadable", changed
        with pytest.raises((wb.CorruptFile, wb.InvalidRequest)):
            certificate_from_dict(changed)
    with pytest.raises(wb.InvalidRequest, match="rounding preserves"):
        wb.Certificate(mechanism, "pdp", "1.1", "0.5")


def test_fifteen_thousand_outputs_are_designed_saved_and_checked(tmp_path: Path):
    design = FAMILY.design_request(
        FAMILY.make_request_from_options(range="0..8", epsilon=20, loss="absolute")
    )
    assert 0.99 * design.objective <= design.bound <= design.objective
    outputs = design.mechanism.outputs
    assert outputs.size > 15_000
    # RR-on-Bins publishes the nearest output with probability `share`.
    x = (np.arange(200) + 0.5) / 25
    share = math.exp(20) / (math.exp(20) + outputs.size - 1)
    errors = np.abs(x[:, None] - outputs)
    nearest_errors = errors.min(axis=1)
    mean_other_errors = (errors.sum(axis=1) - nearest_errors) / (outputs.size - 1)
    expected_errors = share * nearest_errors + (1 - share) * mean_other_errors
    # The tolerance allows for the choice of only 200 answers.
    assert expected_errors.mean() == pytest.approx(design.objective, rel=0.1)
    design.save(tmp_path / "f.json")
    data = json.loads((tmp_path / "f.json").read_text())
    assert decide(data) == "proven"
    loaded = wb.load(tmp_path / "f.json")
    assert compute_expected_error(loaded).mean_error == design.details["loss"]
    assert loaded.publish([3.21] * 5, insecure_seed=1) == pytest.approx([3.21] * 5, abs=1e-3)
    with pytest.raises(wb.InvalidRequest, match="the matrix must be of at most"):
        _ = design.mechanism.matrix


def test_equal_outputs_are_published_as_one_so_that_pdp_is_not_certified():
    """For outputs 0, 0, 1 and odds 9, 0 has probability 10/11 or 2/11, a ratio of 5 > e."""
    ends = (Fraction(0), Fraction(1))
    equal = NearestOutputs(ends, (Fraction(0), Fraction(0), Fraction(1)), 1, Fraction(9))
    with pytest.raises(wb.InvalidRequest, match="rounding preserves"):
        wb.Certificate(equal, notion="pdp", epsilon=1, delta="0.82")
    different = NearestOutputs(ends, (Fraction(0), Fraction(1, 2), Fraction(1)), 1, Fraction(9))
    certificate = wb.Certificate(different, notion="pdp", epsilon=1, delta="0.82")
    content = certificate.content().decode()
    assert decide(json.loads(content)) == "proven"
    assert decide(json.loads(content.replace('"0.5"', '"0"'))) == "unreadable"
    assert wb.Certificate(equal, notion="dp", epsilon=1, delta="0.82").holds()
    assert wb.Certificate(equal, notion="pdp", epsilon=3, delta=0).holds()
