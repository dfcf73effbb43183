"""Test certificates of joint releases: both checkers prove them, and see every missing part.

The convolutions of the tests are their own: sums over all outcomes of several coordinates, in
fractions or in floats. They share no code with the workbench.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.fuzz.fuzz_certificates import decide_by_both
from workbench.exact.integer_law import IntegerLaw
from workbench.mechanisms.joint_noise import JointNoise
from workbench.privacy.audit import audit as audit_exactly
from workbench.privacy.certificate import Certificate
from workbench.privacy.certificate_file import check, save
from workbench.privacy.joint_bound import JointBounds
from workbench.questions.joint_query import JointQuery

# A joint release publishes several counts (the bins of a histogram) with independent noise. A person
# has a limited number of rows, so neighbours differ by a vector of shifts. The rows of a person are in
# any bins ("rows-anywhere") or at most one in each bin ("row-per-bin").

HALF = Fraction(1, 2)
TRIANGLE = IntegerLaw(-2, [1, 2, 3, 2, 1])
LOPSIDED = IntegerLaw(-1, [4, 5, 2, 1])


def geometric(ratio: Fraction) -> IntegerLaw:
    """Return f(η) ∝ ratio^|η|."""
    return IntegerLaw(first=0, weights=[1], period=1, ratio=ratio)


def decide(data: dict[str, Any], folder: Path) -> str:
    """Return the verdict of both checkers on a certificate. It must be the same."""
    path = folder / "certificate.json"
    path.write_text(json.dumps(data))
    by_workbench, by_tool = decide_by_both(path)
    assert by_workbench == by_tool
    return by_tool


def certify_histogram(release: str = "rows-anywhere", neighbours: str = "replace") -> Certificate:
    """Certify noise ∝ (4/5)^|η| for three rows, at ε = norm · ln 1.25 rounded up to 0.001."""
    query = JointQuery(release, neighbours=neighbours, rows=3)
    epsilon = math.ceil(1000 * query.max_norm * math.log(1.25)) / 1000
    return wb.certify(JointNoise(query, geometric(Fraction(4, 5))), "dp", str(epsilon))


def compute_hockey_stick(
    masses: dict[int, Fraction], vector: tuple[int, ...], ratio: Fraction
) -> Fraction:
    """Return Σ max(0, P - ratio Q) over all outcomes of several coordinates of finite noise.

    Args:
        masses: Noise value -> its mass, the same for each coordinate.
        vector: The shift of each coordinate.
        ratio: The factor of Q, such as e^ε.
    """
    hockey_stick = Fraction(0)
    supports = [sorted({*masses, *(eta - shift for eta in masses)}) for shift in vector]
    for outcome in product(*supports):
        p = math.prod(masses.get(eta, Fraction(0)) for eta in outcome)
        shifted_outcome = [eta + shift for eta, shift in zip(outcome, vector, strict=True)]
        q = math.prod(masses.get(eta, Fraction(0)) for eta in shifted_outcome)
        hockey_stick += max(Fraction(0), p - ratio * q)
    return hockey_stick


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("noise", [TRIANGLE, LOPSIDED])
def test_the_audit_is_the_sum_over_all_outcomes_of_all_coordinates(
    noise: IntegerLaw, neighbours: str
) -> None:
    query = JointQuery("rows-anywhere", neighbours=neighbours, rows=2)
    privacy = wb.audit(JointNoise(query, noise), 0)
    total = sum(noise.weights)
    masses = {noise.first + k: Fraction(weight, total) for k, weight in enumerate(noise.weights)}
    for pair in privacy.pairs:
        # At ε = 0 the exact δ = a - b e^ε is a - b.
        delta = compute_hockey_stick(masses, pair.label, Fraction(1))
        assert pair.dp_delta.a - pair.dp_delta.b == delta


def convolve_geometric_losses(ratio: float, vector: tuple[int, ...], epsilon: float) -> float:
    """Return δ of geometric noise at a shift vector, by convolution of its losses in floats.

    The loss of η at the shift s is (|η + s| - |η|) ln 1/ratio, an integer multiple.
    """
    eta = np.arange(-200, 201)
    masses = (1 - ratio) / (1 + ratio) * ratio ** np.abs(eta)
    # Entry k of the law of a loss has the mass of the multiple k - norm.
    law_of_loss = np.ones(1)
    for shift in vector:
        multiples = np.abs(eta + shift) - np.abs(eta)
        law_of_coordinate = np.zeros(2 * abs(shift) + 1)
        np.add.at(law_of_coordinate, multiples + abs(shift), masses)
        law_of_loss = np.convolve(law_of_loss, law_of_coordinate)
    norm = sum(map(abs, vector))
    privacy_losses = -math.log(ratio) * np.arange(-norm, norm + 1)
    excess_shares = np.maximum(0, 1 - np.exp(epsilon - privacy_losses))
    return float(law_of_loss @ excess_shares)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("release", ["rows-anywhere", "row-per-bin"])
def test_three_rows_have_the_deltas_of_convolutions_in_floats(
    release: str, neighbours: str
) -> None:
    mechanism = JointNoise(
        JointQuery(release, neighbours=neighbours, rows=3), geometric(Fraction(4, 5))
    )
    privacy = wb.audit(mechanism, "0.3")
    for pair in privacy.pairs:
        delta = convolve_geometric_losses(ratio=0.8, vector=pair.label, epsilon=0.3)
        assert pair.dp_delta.upper == pytest.approx(delta, rel=1e-12)
    assert privacy.dp_delta.upper > 0.05


def test_all_partitions_of_geometric_noise_have_the_same_largest_ratio() -> None:
    query = JointQuery("rows-anywhere", neighbours="add-remove", rows=3)
    privacy = wb.audit(JointNoise(query, geometric(HALF)), 0)
    ratios = {pair.label: pair.ratio for pair in privacy.pairs}
    # Three rows change the exponent of 2 by three in all.
    assert ratios[3,] == ratios[2, 1] == ratios[1, 1, 1] == 2**3
    assert privacy.pure_ratio == 2**3


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("release", ["rows-anywhere", "row-per-bin"])
def test_both_checkers_prove_a_histogram(release: str, neighbours: str, tmp_path: Path) -> None:
    certificate = certify_histogram(release, neighbours)
    assert decide(certificate.to_dict(), tmp_path) == "proven"
    save(certificate, tmp_path / "histogram.json")
    assert check(tmp_path / "histogram.json") == certificate
    assert wb.load(tmp_path / "histogram.json") == certificate.mechanism


def drop_a_partition(mechanism: dict[str, Any]) -> None:
    """Leave out the neighbours with two rows in one bin and one row in another."""
    mechanism["shifts"].remove([2, 1])


def drop_a_sign(mechanism: dict[str, Any]) -> None:
    """Leave out the neighbours with three rows less in one bin."""
    mechanism["shifts"].remove([-3])


def shrink_a_shift(mechanism: dict[str, Any]) -> None:
    """Replace three rows in one bin by two."""
    mechanism["shifts"][mechanism["shifts"].index([3])] = [2]


def repeat_a_vector(mechanism: dict[str, Any]) -> None:
    """List the last shift twice."""
    mechanism["shifts"].append(mechanism["shifts"][-1])


def claim_more_rows(mechanism: dict[str, Any]) -> None:
    """Claim that a person may have four rows in place of three."""
    mechanism["rows"] = 4


def claim_to_replace(mechanism: dict[str, Any]) -> None:
    """Claim that the rows of a person may be replaced, and not only added or removed."""
    mechanism["neighbours"] = "replace"


CHANGES = [
    drop_a_partition,
    drop_a_sign,
    shrink_a_shift,
    repeat_a_vector,
    claim_more_rows,
    claim_to_replace,
]


@pytest.mark.parametrize("change", CHANGES)
def test_both_checkers_call_a_changed_relation_false(
    change: Callable[[dict[str, Any]], None], tmp_path: Path
) -> None:
    data = certify_histogram(neighbours="add-remove").to_dict()
    assert decide(data, tmp_path) == "proven"
    change(data["mechanism"])
    assert decide(data, tmp_path) == "false"


def shrink_vector(vector: list[int]) -> list[int]:
    """Return a vector whose largest part is one step closer to 0."""
    shrunk = [*vector]
    k = max(range(len(vector)), key=lambda k: abs(vector[k]))
    shrunk[k] -= 1 if vector[k] > 0 else -1
    return shrunk


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize(
    ("release", "span"), [("rows-anywhere", None), ("row-per-bin", None), ("pair-of-sums", 3)]
)
@pytest.mark.parametrize("noise", [geometric(Fraction(4, 5)), TRIANGLE])
def test_both_checkers_refuse_every_relation_with_any_vector_away_or_shrunk(
    noise: IntegerLaw, release: str, span: int | None, neighbours: str, tmp_path: Path
) -> None:
    query = JointQuery(release, neighbours=neighbours, rows=2, span=span)
    claim = ("pure", 50, None) if noise.ratio else ("dp", 1, 1)
    data = wb.certify(JointNoise(query, noise), *claim[:2], delta=claim[2]).to_dict()
    assert decide(data, tmp_path) == "proven"
    vectors = data["mechanism"]["shifts"]
    for k, vector in enumerate(vectors):
        data["mechanism"]["shifts"] = [*vectors[:k], *vectors[k + 1 :]]
        assert decide(data, tmp_path) == "false"
        data["mechanism"]["shifts"] = [*vectors[:k], shrink_vector(vector), *vectors[k + 1 :]]
        assert decide(data, tmp_path) == "false"


def test_both_checkers_see_that_one_bin_is_more_private_than_a_histogram(tmp_path: Path) -> None:
    """A claim that holds for one bin at the shift 1 is false for three bins at once."""
    one_bin = JointNoise(JointQuery("row-per-bin", rows=1), TRIANGLE)
    certificate = wb.certify(one_bin, "dp", "0.8", delta="0.12")
    data = certificate.to_dict()
    data["mechanism"] = JointNoise(JointQuery("row-per-bin", rows=3), TRIANGLE).to_dict()
    assert decide(data, tmp_path) == "false"


def test_a_claim_slightly_below_the_largest_loss_is_false(tmp_path: Path) -> None:
    data = certify_histogram(neighbours="add-remove").to_dict()
    largest_loss = 3 * math.log(1.25)
    data["claim"]["epsilon"] = f"{largest_loss - 1e-9:.12f}"
    assert decide(data, tmp_path) == "false"
    data["claim"]["epsilon"] = f"{largest_loss + 1e-9:.12f}"
    assert decide(data, tmp_path) == "proven"


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_a_pair_of_sums_on_a_fine_grid_is_proven_by_both_checkers(
    neighbours: str, tmp_path: Path
) -> None:
    query = JointQuery("pair-of-sums", neighbours=neighbours, rows=1, span=1000)
    epsilon = f"{-query.max_norm * math.log(1 - 2**-11) + 1e-9:.12f}"
    mechanism = JointNoise(query, geometric(1 - Fraction(1, 2**11)))
    data = wb.certify(mechanism, "pure", epsilon).to_dict()
    assert decide(data, tmp_path) == "proven"
    data["mechanism"]["shifts"].remove([-400, -600])
    assert decide(data, tmp_path) == "false"


def test_the_largest_ratio_alone_decides_as_all_comparisons_do() -> None:
    """The second noise is the first one with more weights, so all its vectors are compared."""
    query = JointQuery("pair-of-sums", neighbours="replace", rows=2, span=2)
    short = JointNoise(query, geometric(HALF))
    long = JointNoise(query, geometric(HALF).cover(low=-3, high=3))
    assert len([*short.extremes()]) == 1 < len([*long.extremes()])
    ratios = []
    for mechanism in (short, long):
        laws = [(comparison.p, comparison.q) for comparison in mechanism.extremes()]
        ratios.append(max(max(a / b for a, b in zip(p, q, strict=True) if b) for p, q in laws))
    assert ratios[0] == ratios[1] == 2**8


def make_long_noise() -> JointNoise:
    """Return discrete Gaussian noise, whose exact convolution is refused."""
    from workbench.mechanisms.baselines.count_queries import discrete_gaussian

    radius, law = discrete_gaussian(Fraction(30))
    return JointNoise(JointQuery("row-per-bin", rows=4), IntegerLaw(-radius, law))


def test_an_exact_audit_of_long_gaussian_noise_is_refused_before_it_is_convolved() -> None:
    with pytest.raises(wb.InvalidRequest, match="units of work"):
        audit_exactly(make_long_noise(), 1)


def test_the_audit_of_long_gaussian_noise_is_bounds_on_delta() -> None:
    """δ is 5.50390e-4 by a convolution in floats. Continuous noise has 5.54e-4 at the shift 2."""
    privacy = wb.audit(make_long_noise(), 1, loss="squared")
    assert isinstance(privacy, JointBounds)
    low, high = map(float, privacy.delta_bounds)
    assert 5.2e-4 < low < 5.5039e-4 < high < 5.52e-4
    assert privacy.error is not None
    with pytest.raises(wb.InvalidRequest, match="delta_bounds must be read"):
        _ = privacy.dp_delta
    assert privacy.audit_at(2).epsilon == 2
    with pytest.raises(wb.InvalidRequest, match="one number for a joint release"):
        wb.audit(make_long_noise(), {(1,): 1})


def test_a_release_adds_noise_to_every_coordinate() -> None:
    mechanism = JointNoise(JointQuery("rows-anywhere", rows=1), geometric(HALF))
    noise = wb.sample(mechanism, 4000, answer=[0, 100, 10**6], insecure_seed=5)
    noise = noise - np.array([0, 100, 10**6])
    assert noise.shape == (4000, 3)
    # Var η = 2a / (1 - a)² = 4 at a = 1/2.
    assert np.allclose(noise.var(axis=0), 4, rtol=0.2)
    assert np.abs(np.corrcoef(noise.T) - np.eye(3)).max() < 0.06


@pytest.mark.parametrize("answer", [[], [1], [1, 2, 3], [0.5, 1], "12", None, [True, 1]])
def test_a_pair_publishes_two_integers_only(answer: object) -> None:
    mechanism = JointNoise(JointQuery("pair-of-sums", rows=1, span=3), geometric(HALF))
    with pytest.raises(wb.InvalidRequest, match="answer must be a list of"):
        mechanism.read_answer(answer)


def test_a_joint_release_has_one_budget() -> None:
    mechanism = JointNoise(JointQuery("row-per-bin", rows=1), geometric(HALF))
    with pytest.raises(wb.InvalidRequest, match="one number for a joint release"):
        wb.audit(mechanism, {(1,): 1, (-1,): 1})
