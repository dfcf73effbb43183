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
    values = sorted(Fraction(source.randint(0, 30), 10) for _ in range(m))  # some of them equal
    return NearestOutputs((Fraction(0), Fraction(3)), tuple(values), source.randint(1, m - 1), odds)


def make_mechanism_with_steps(seed: int) -> NearestOutputs:
    """Make a random mechanism that sometimes publishes the answer itself, in 2 to 8 steps."""
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


@pytest.mark.parametrize("seed", range(40))
def test_the_two_ends_decide_every_pair_of_answers(seed: int):
    mechanism = make_mechanism(seed) if seed < 30 else make_mechanism_with_steps(seed)
    laws = [compute_law(mechanism, x) for x in list_answers(mechanism)]
    values = [float(v) for v in mechanism.published_values]
    for x, law in zip(list_answers(mechanism), laws, strict=True):
        mass = dict.fromkeys(values, Fraction(0))
        for value, p in zip(values, law, strict=True):
            mass[value] += p
        # Only the total mass of equal outputs matters.
        for value, p in zip(values, mechanism.law(x), strict=True):
            mass[value] -= p
        assert not any(mass.values())
    for epsilon in ("0", "0.3", "1", "1.1"):
        audited, e = wb.audit(mechanism, epsilon), math.exp(float(epsilon))
        pairs = [
            [(float(p), float(q)) for p, q in zip(P, Q, strict=True)]
            for P, Q in permutations(laws, 2)
        ]
        sticks = max(sum(max(0.0, p - e * q) for p, q in pair) for pair in pairs)
        masses = max(sum(p for p, q in pair if p > e * q * (1 + 1e-12)) for pair in pairs)
        assert sticks <= audited.dp_delta.upper + 1e-12
        assert masses <= float(audited.pdp_delta) + 1e-12
        # With equal outputs, fewer likelier outputs may differ than at the two ends.
        if len({*values}) == len(values):
            assert sticks == pytest.approx(audited.dp_delta.upper, abs=1e-12)
            assert masses == pytest.approx(float(audited.pdp_delta), abs=1e-12)
    assert audited.pure_epsilon == (math.inf if mechanism.direct else pytest.approx(math.log(2.75)))
    ends = [Distribution(compute_law(mechanism, x)) for x in (Fraction(0), Fraction(3))]
    full = wb.Channel(tuple(ends))
    for notion, budget in (
        ("renyi", {"alpha": 2, "epsilon": 1}),
        ("zcdp", {"rho": "0.3"}),
        ("gdp", {"mu": "0.9"}),
    ):
        held = wb.audit(mechanism).meets(notion, **budget)
        assert wb.audit(full).meets(notion, **budget) >= held
        assert held or len({*values}) < len(values) or not wb.audit(full).meets(notion, **budget)


@pytest.mark.parametrize("loss", ["absolute", "squared"])
@pytest.mark.parametrize("seed", range(18))
def test_reported_losses_equal_the_losses_of_the_laws(seed: int, loss: str):
    """The prior gives the left half of the range the weight 1/4, and the right half 3/4."""
    mechanism = make_mechanism(seed) if seed < 12 else make_mechanism_with_steps(seed)
    power = 1 if loss == "absolute" else 2

    def compute_loss(x: Fraction) -> Fraction:
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
    error_of_two_answers = compute_expected_error(mechanism, loss, [0.5, 2.25]).mean_error
    assert error_of_two_answers == (compute_loss(Fraction(1, 2)) + compute_loss(Fraction(9, 4))) / 2


def test_draws_follow_the_law_and_cuts_are_exact():
    mechanism = NearestOutputs(
        (Fraction(0), Fraction(3)), tuple(Fraction(k, 3) for k in (1, 2, 3, 5, 8)), 2, ODDS
    )
    tiny, seed = Fraction(1, 10**40), 0
    for cut in mechanism.cuts:
        for x in (cut - tiny, cut, cut + tiny, Fraction(float(cut))):
            drawn = mechanism.publish([x] * 4000, insecure_seed=(seed := seed + 1))
            counts = np.bincount(np.searchsorted(mechanism.outputs, drawn), minlength=5)
            expected = 4000 * np.array([*map(float, mechanism.law(x))])
            # A chi-square value of 4 degrees exceeds 30 with probability 5e-6.
            assert float(((counts - expected) ** 2 / expected).sum()) < 30
    direct = replace(mechanism, direct=Fraction(1, 3), steps=4)
    for x in (Fraction(3, 4) - tiny, Fraction(3, 4), Fraction(3)):
        drawn = direct.publish([x] * 4000, insecure_seed=(seed := seed + 1))
        counts = np.array([np.isclose(drawn, output).sum() for output in direct.outputs])
        expected = 4000 * np.array([*map(float, direct.law(x))])
        assert not counts[expected == 0].any()
        assert float(((counts - expected)[expected > 0] ** 2 / expected[expected > 0]).sum()) < 32
    whole = replace(direct, direct=Fraction(1))
    # These answers are clamped into the range.
    beyond = [-0.2, -5.0, -1e300, Fraction(-1, 10**40), 3.5, 1e300]
    assert whole.publish(beyond).tolist() == [0.375] * 4 + [2.625] * 2
    assert whole.publish(np.array([0.75, 2.9], dtype=np.float32)).tolist() == [1.125, 2.625]
    assert mechanism.law(-0.0) == mechanism.law(0)
    assert [*mechanism.publish([-5.0, 9.0], insecure_seed=1)] == [
        *mechanism.publish([0.0, 3.0], insecure_seed=1)
    ]
    for wrong in ([math.nan], [[1.0]]):
        with pytest.raises(wb.InvalidRequest, match="answers must be"):
            mechanism.publish(wrong)
    with pytest.raises(wb.InvalidRequest, match=r"answer must be in \[0, 3\]"):
        mechanism.law("3.5")


def test_equal_outputs_are_one_outcome():
    values = tuple(Fraction(k) for k in (0, 0, 1, 1, 1, 3))
    assert [*NearestOutputs((Fraction(0), Fraction(3)), values, 2, ODDS).used_outputs] == [0, 2, 5]


def test_a_file_contains_only_the_outputs_of_the_mechanism(tmp_path: Path):
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
    wrong = [
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
    wrong += [{"bias": bias}, {"objective": loss}, {"claim": {**data["claim"], "notion": "metric"}}]
    for changed in wrong:
        assert decide({**data, **changed}) == "unreadable", changed
        with pytest.raises((wb.CorruptFile, wb.InvalidRequest)):
            certificate_from_dict({**data, **changed})
    with pytest.raises(wb.InvalidRequest, match="without distances"):
        wb.Certificate(mechanism, "metric", 1)
    with pytest.raises(wb.InvalidRequest, match="one number"):
        wb.Certificate(mechanism, "pure", {(0, 1): 2})


def test_a_file_that_publishes_the_step_is_certified_but_not_under_pdp(tmp_path: Path):
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


def test_twenty_thousand_outputs_are_designed_saved_and_checked(tmp_path: Path):
    value = FAMILY.design_request(
        FAMILY.make_request_from_options(range="0..8", epsilon=20, loss="absolute")
    )
    assert 0.99 * value.objective <= value.bound <= value.objective
    outputs = value.mechanism.outputs
    assert outputs.size > 15_000
    x = (np.arange(200) + 0.5) / 25
    share = math.exp(20) / (math.exp(20) + outputs.size - 1)
    errors = np.abs(x[:, None] - outputs)
    nearest = errors.min(axis=1)
    mean = share * nearest + (1 - share) * (errors.sum(axis=1) - nearest) / (outputs.size - 1)
    assert mean.mean() == pytest.approx(value.objective, rel=0.1)  # of 200 answers
    value.save(tmp_path / "f.json")
    data = json.loads((tmp_path / "f.json").read_text())
    assert decide(data) == "proven"
    assert compute_expected_error(wb.load(tmp_path / "f.json")).mean_error == value.details["loss"]
    assert wb.load(tmp_path / "f.json").publish([3.21] * 5, insecure_seed=1) == pytest.approx(
        [3.21] * 5, abs=1e-3
    )
    with pytest.raises(wb.InvalidRequest, match="the matrix must be of at most"):
        _ = value.mechanism.matrix


def test_equal_outputs_are_published_as_one_so_that_pdp_is_not_certified():
    """For outputs 0, 0, 1 and odds 9, 0 has probability 10/11 or 2/11, a ratio of 5 > e."""
    equal = NearestOutputs(
        (Fraction(0), Fraction(1)), (Fraction(0), Fraction(0), Fraction(1)), 1, Fraction(9)
    )
    claimed = {"epsilon": 1, "delta": "0.82"}
    with pytest.raises(wb.InvalidRequest, match="rounding preserves"):
        wb.Certificate(equal, notion="pdp", **claimed)
    apart = NearestOutputs(
        (Fraction(0), Fraction(1)), (Fraction(0), Fraction(1, 2), Fraction(1)), 1, Fraction(9)
    )
    content = wb.Certificate(apart, notion="pdp", **claimed).content().decode()
    assert decide(json.loads(content)) == "proven"
    assert decide(json.loads(content.replace('"0.5"', '"0"'))) == "unreadable"
    assert wb.Certificate(equal, notion="dp", epsilon=1, delta="0.82").holds()
    assert wb.Certificate(equal, notion="pdp", epsilon=3, delta=0).holds()
