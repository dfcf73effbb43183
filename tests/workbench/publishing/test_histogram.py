"""Test the noise of histograms: values by hand, and audits by a convolution of the tests alone.

A histogram is published with the same noise in every bin. A person who comes, goes or changes moves
the bins by a vector of integers, the *move*. The noise is private if δ at every move is small
enough. `convolve` computes δ at a move in floats, and shares no code with the workbench. The tests
call its result "exact". A candidate is a kind of noise with the smallest private parameter and a
certificate.

The workbench computes δ exactly, or encloses it on a grid of privacy losses if the exact
computation has too many units of work.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import combinations_with_replacement
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import workbench as wb
from tests.fuzz.fuzz_certificates import checker, decide_by_both
from workbench.exact.distribution import Distribution
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import Real
from workbench.exact.time_limit import check_time_limit
from workbench.mechanisms import joint_noise
from workbench.mechanisms.baselines.count_queries import discrete_gaussian
from workbench.mechanisms.joint_noise import JointNoise
from workbench.privacy import audit_work, joint_bound
from workbench.privacy.audit import audit as audit_exactly
from workbench.privacy.certificate_file import check
from workbench.privacy.joint_bound import JointBounds, bound_joint_delta
from workbench.privacy.joint_estimate import DeltaEstimator, FloatLaw, list_maximal_vectors
from workbench.publishing import histogram
from workbench.publishing.histogram import (
    NoiseCandidate,
    _Budget,
    _fit_geometric,
    _fit_truncated_geometric,
    find_best_candidate,
    search_histogram_noise,
    search_noise_candidates,
)
from workbench.questions.joint_query import JointQuery

Floats = NDArray[np.float64]
# Where the rows of a person may be, and the relation of neighbours.
RELATIONS = [
    (release, neighbours)
    for release in ("rows-anywhere", "row-per-bin")
    for neighbours in ("add-remove", "replace")
]


def list_moves(release: str, neighbours: str, rows: int) -> set[tuple[int, ...]]:
    """Return the moves of all bins by people with up to `rows` rows, without zeros and order.

    With 2 · rows bins every move is possible.
    """
    bin_count = 2 * rows
    people = set()
    for count in range(rows + 1):
        for bins in combinations_with_replacement(range(bin_count), count):
            if release == "rows-anywhere" or len(set(bins)) == count:
                people.add(tuple(bins.count(k) for k in range(bin_count)))
    moves = set()
    nobody = (0,) * bin_count
    for old in people:
        for new in people:
            if neighbours == "replace" or nobody in (old, new):
                differences = (b - a for a, b in zip(old, new, strict=True))
                moves.add(tuple(sorted(part for part in differences if part)))
    return moves - {()}


def list_masses(noise: IntegerLaw, last: int) -> Floats:
    """Return the masses of the noise values -last..last as floats."""
    weights = noise.weights_between(-last, last)
    return np.array([float(Fraction(weight) / noise.total) for weight in weights])


def convolve(masses: Floats, move: tuple[int, ...], epsilon: float) -> float:
    """Return δ at a move: Σ max(0, P - e^ε Q) over all outcomes of all coordinates.

    Outcomes that no test can tell apart by their privacy loss to 12 digits are merged.
    """
    p: Floats = np.ones(1)
    q: Floats = np.ones(1)
    for shift in move:
        padded = np.pad(masses, abs(shift))
        shifted = np.roll(padded, -shift)
        p = np.outer(p, padded).ravel()
        q = np.outer(q, shifted).ravel()
        is_possible = (p > 1e-18) | (q > 1e-18)
        p, q = p[is_possible], q[is_possible]
        with np.errstate(divide="ignore"):
            losses = np.round(np.log(p) - np.log(q), 12)
        _, loss_index = np.unique(losses, return_inverse=True)
        p = np.bincount(loss_index, p).astype(np.float64)
        q = np.bincount(loss_index, q).astype(np.float64)
    return float(np.maximum(0, p - math.exp(epsilon) * q).sum())


def check_with_tool(candidate: NoiseCandidate) -> str:
    """Return "proven", or the reason why tools/check_certificate.py refuses the certificate."""
    try:
        checker.prove_statement(json.loads(candidate.certificate.content()))
    except checker.Refused as refused:
        return str(refused.args[0])
    return "proven"


def test_three_rows_at_epsilon_1_have_the_variance_of_the_formula() -> None:
    """The variance is 2a / (1 - a)² = 17.834 with a = e^(-1/3)."""
    best = find_best_candidate(JointQuery("rows-anywhere", rows=3), 1)
    assert best.name == "geometric"
    assert float(best.variance) == pytest.approx(17.834, abs=5e-4)


@pytest.mark.parametrize(("release", "neighbours"), RELATIONS)
def test_pure_noise_of_three_rows_is_private_by_an_own_convolution(
    release: str, neighbours: str
) -> None:
    best = find_best_candidate(JointQuery(release, neighbours, 3), 1)
    masses = list_masses(best.mechanism.noise, 250)
    for move in list_moves(release, neighbours, 3):
        assert convolve(masses, move, 1 + 1e-9) < 1e-14
    assert check_with_tool(best) == "proven"


@pytest.mark.parametrize(("release", "neighbours"), RELATIONS)
def test_truncated_noise_of_three_rows_is_private_by_an_own_convolution(
    release: str, neighbours: str
) -> None:
    delta = 0.02
    query = JointQuery(release, neighbours, 3)
    truncated = _fit_truncated_geometric(_Budget(query, Fraction(1), Fraction("0.02")))
    masses = list_masses(truncated.mechanism.noise, int(truncated.value))
    moves = list_moves(release, neighbours, 3)
    deltas = {move: convolve(masses, move, 1 + 1e-9) for move in moves}
    assert 0.3 * delta < max(deltas.values()) <= delta
    # The next smaller end is not private.
    shorter = IntegerLaw(1 - int(truncated.value), truncated.mechanism.noise.weights[1:-1])
    short_masses = list_masses(shorter, int(truncated.value))
    worst_move = max(deltas, key=lambda move: deltas[move])
    assert convolve(short_masses, worst_move, 1) > delta
    assert check_with_tool(truncated) == "proven"


@pytest.mark.parametrize(("release", "neighbours"), RELATIONS)
def test_every_candidate_for_three_rows_is_private_by_an_own_convolution(
    release: str, neighbours: str
) -> None:
    """All partitions of up to 3 rows are compared, and δ is used up to the last per mille."""
    delta = 0.02
    query = JointQuery(release, neighbours, 3)
    candidates = search_noise_candidates(query, 1, "0.02").candidates
    assert sorted(candidate.name for candidate in candidates) == [
        "discrete Gaussian",
        "geometric",
        "truncated geometric",
    ]
    for candidate in candidates:
        noise = candidate.mechanism.noise
        masses = list_masses(noise, noise.last if noise.last else 200)
        moves = list_moves(release, neighbours, 3)
        worst = max(convolve(masses, move, 1) for move in moves)
        assert worst <= delta * (1 + 1e-9)
        if candidate.name != "truncated geometric":  # Its parameter is an integer.
            assert worst >= 0.999 * delta


def test_a_gaussian_is_best_for_six_rows_in_six_bins(tmp_path: Path) -> None:
    """The L2 norm of 6 shifts of 1 is √6 and the L1 norm is 6.

    So the variance of Gaussian noise is 6 times that for one bin, that of geometric noise 36 times.
    """
    query = JointQuery("row-per-bin", rows=6)
    candidates = search_noise_candidates(query, 1, "0.01").candidates
    assert candidates[0].name == "discrete Gaussian"
    assert candidates == sorted(candidates, key=lambda candidate: candidate.variance)
    gaussian = candidates[0]
    assert check_with_tool(gaussian) == "proven"
    gaussian.certificate.save(tmp_path / "gaussian.json")
    assert check(tmp_path / "gaussian.json") == gaussian.certificate
    # δ of continuous Gaussian noise with σ and the shift √6 (Balle and Wang 2018).
    sigma = math.sqrt(gaussian.variance / 6)
    normal = NormalDist()
    tail = normal.cdf(-1 / (2 * sigma) - sigma)
    delta = normal.cdf(1 / (2 * sigma) - sigma) - math.e * tail
    assert delta == pytest.approx(0.01, rel=2e-3)


def make_geometric(ratio: Fraction, end: int | None) -> IntegerLaw:
    """Return geometric noise, on -end..end unless end is None."""
    if end is None:
        return IntegerLaw(0, [1], 1, ratio)
    weights = [ratio ** abs(eta) for eta in range(-end, end + 1)]
    return IntegerLaw(-end, Distribution(weights))


def make_gaussian(variance: int, query: JointQuery) -> JointNoise:
    """Return a histogram with discrete Gaussian noise."""
    radius, law = discrete_gaussian(Fraction(variance))
    return JointNoise(query, IntegerLaw(-radius, law))


@pytest.mark.parametrize(("release", "neighbours"), RELATIONS)
def test_the_bounds_on_a_grid_enclose_an_own_convolution(release: str, neighbours: str) -> None:
    query = JointQuery(release, neighbours, 2)
    mechanism = make_gaussian(20, query)
    bounds = JointBounds.for_mechanism(mechanism, Fraction(1), Fraction(1, 10**4))
    lower, upper = map(float, bounds.delta_bounds)
    masses = list_masses(mechanism.noise, mechanism.noise.last)
    worst = max(convolve(masses, move, 1) for move in list_moves(release, neighbours, 2))
    assert lower <= worst <= upper <= 1.01 * worst
    assert lower >= 0.9 * worst


def bound_delta_at_epsilon_1(mechanism: JointNoise) -> Fraction:
    """Return the upper bound on δ at ε = 1 on a grid of step 10^-4, rounded up to 18 decimals."""
    delta = bound_joint_delta(mechanism, Fraction(1), Fraction(1, 10**4))
    return Fraction(math.ceil(delta * 10**18), 10**18)


def test_a_claim_on_a_grid_is_proven_refuted_or_left_open() -> None:
    mechanism = make_gaussian(30, JointQuery("row-per-bin", rows=4))
    assert mechanism.needs_grid
    delta = bound_delta_at_epsilon_1(mechanism)
    certificate = wb.certify(mechanism, "dp", 1, delta=delta)
    assert "the DP delta lies between" in certificate.sentences[1]
    with pytest.raises(wb.NotProven, match="does not decide"):
        wb.certify(mechanism, "dp", 1, delta=delta * Fraction(9999, 10000))
    with pytest.raises(wb.NotCertified, match="NOT private"):
        wb.certify(mechanism, "dp", 1, delta=delta / 2)


@pytest.mark.parametrize(
    ("share", "verdict"), [("1", "proven"), ("9999/10000", "unknown"), ("1/2", "false")]
)
def test_both_checkers_agree_on_a_grid(share: str, verdict: str, tmp_path: Path) -> None:
    mechanism = make_gaussian(30, JointQuery("row-per-bin", rows=4))
    delta = bound_delta_at_epsilon_1(mechanism)
    data = wb.certify(mechanism, "dp", 1, delta=delta).to_dict()
    data["claim"]["delta"] = str(delta * Fraction(share))
    path = tmp_path / "gaussian.json"
    path.write_text(json.dumps(data))
    assert decide_by_both(path) == (verdict, verdict)


def test_other_notions_need_an_exact_convolution() -> None:
    mechanism = make_gaussian(30, JointQuery("row-per-bin", rows=4))
    with pytest.raises(wb.InvalidRequest, match="units of work"):
        wb.certify(mechanism, "pdp", 1, delta="0.1")


def test_a_design_for_two_runs_is_taken_as_it_is_for_two_bins() -> None:
    """Noise for 2 runs is private for one row in each of 2 bins, but not for 2 rows in one bin."""
    noise = IntegerLaw(-2, [1, 50, 1000, 50, 1])
    two_bins = JointQuery("row-per-bin", rows=2)
    delta = wb.audit(JointNoise(two_bins, noise), 3).dp_delta.upper
    scales = {}
    for release in ("row-per-bin", "rows-anywhere"):
        query = JointQuery(release, rows=2)
        candidates = search_noise_candidates(query, 3, Fraction(delta), noise).candidates
        scales[release] = next(c.value for c in candidates if c.name == "design, scaled")
    assert scales["row-per-bin"] == 1
    assert 0.5 < scales["rows-anywhere"] < 1


@pytest.mark.parametrize("end", [None, 8])
def test_noise_is_audited_exactly_for_ten_moved_rows(end: int | None) -> None:
    """Moving 5 rows from 5 bins to 5 others is the worst move, by an own convolution."""
    query = JointQuery("row-per-bin", "replace", 5)
    noise = make_geometric(Fraction(4, 5), end)
    mechanism = JointNoise(query, noise)
    assert not mechanism.needs_grid
    masses = list_masses(noise, end or 150)
    exact = max(convolve(masses, (1,) * count, 1) for count in range(1, 11))
    assert wb.audit(mechanism, 1).dp_delta.upper == pytest.approx(exact, rel=1e-9)


def test_geometric_noise_of_twelve_moved_rows_is_found_without_a_grid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(joint_bound, "MAX_WORK_UNITS", 1000)
    query = JointQuery("row-per-bin", "replace", 6)
    candidate = _fit_geometric(_Budget(query, Fraction(1), Fraction("0.01")))
    masses = list_masses(candidate.mechanism.noise, 200)
    deltas = [convolve(masses, (1,) * count, 1) for count in range(1, 13)]
    assert max(deltas) == pytest.approx(0.01, rel=1e-3)
    # Pure noise has a = e^(-1/12) = 0.920.
    assert candidate.value < 0.86


def test_a_search_returns_the_reasons_of_missing_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histogram, "_MAX_VALUES", 20)
    search = search_noise_candidates(JointQuery("row-per-bin", "replace", 5), 1, "0.01")
    assert [candidate.name for candidate in search.candidates] == ["geometric"]
    assert search.refusals == {
        "truncated geometric": "Truncated geometric noise has too many values at this budget.",
        "discrete Gaussian": "The discrete Gaussian has too many values at this budget.",
    }


def test_pure_noise_replaces_geometric_noise_that_is_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(histogram, "_MAX_VALUES", 20)
    monkeypatch.setattr(joint_noise, "MAX_GEOMETRIC_UNITS", 1000)
    search = search_noise_candidates(JointQuery("row-per-bin", "replace", 5), 1, "0.01")
    (pure,) = search.candidates
    assert pure.value == pytest.approx(math.exp(-1 / 10), abs=1e-9)
    assert pure.certificate.claim.values["delta"] == 0
    assert "1000 units" in search.refusals["geometric"]


@pytest.mark.parametrize(("release", "neighbours"), RELATIONS)
@pytest.mark.parametrize("end", [None, 9])
def test_an_estimate_of_geometric_noise_is_delta_by_an_own_convolution(
    release: str, neighbours: str, end: int | None
) -> None:
    query = JointQuery(release, neighbours, 2)
    noise = make_geometric(Fraction(4, 5), end)
    estimator = DeltaEstimator(
        FloatLaw.from_law(noise), shifts=[1, 2], delta=1e-9, step=math.log(1.25)
    )
    masses = list_masses(noise, end or 250)
    for epsilon in (0.3, 0.5):
        vectors = list_maximal_vectors(query)
        estimate = max(estimator.delta_at(vector, epsilon) for vector in vectors)
        moves = list_moves(release, neighbours, 2)
        exact = max(convolve(masses, move, epsilon) for move in moves)
        assert estimate == pytest.approx(exact, rel=1e-9)


def test_an_estimate_of_noise_with_periodic_tails_is_close_to_delta() -> None:
    """The law f^(1/2) of a staircase has the tails of the rooted weights."""
    noise = IntegerLaw(-3, [9, 16, 64, 64, 64, 16, 9], 2, Fraction(1, 4))
    rooted = IntegerLaw(-3, [3, 4, 8, 8, 8, 4, 3], 2, Fraction(1, 2))
    estimator = DeltaEstimator(FloatLaw.from_law(noise, 0.5), [1, 2, -2], 1e-3)
    masses = list_masses(rooted, 120)
    for move in [(1,), (1, 1), (-2, 1), (1, 1, 2)]:
        exact = convolve(masses, move, 0.4)
        vector = tuple(sorted(move))
        assert (1 - 1e-9) * exact <= estimator.delta_at(vector, 0.4) <= 1.01 * exact


def test_a_search_for_forty_rows_ends() -> None:
    query = JointQuery("row-per-bin", rows=40)
    search = search_noise_candidates(query, 3, "1e-5")
    assert [candidate.name for candidate in search.candidates] == [
        "geometric",
        "truncated geometric",
    ]
    # Pure geometric noise has the variance 2a / (1 - a)² = 355 with a = e^(-3/40). A small δ helps.
    assert search.candidates[0].variance < 13**2
    assert "units of work" in search.refusals["discrete Gaussian"]


def test_noise_with_long_weights_has_a_certificate_that_both_checkers_prove(
    tmp_path: Path,
) -> None:
    """An exact proof would be too long to be checked, so the proof is one on the grid."""
    query = JointQuery("row-per-bin", "replace", 8)
    mechanism = JointNoise(query, make_geometric(Fraction(2**24 // 17 * 16 + 1, 2**24), 140))
    assert mechanism.needs_grid
    path = tmp_path / "truncated.json"
    wb.certify(mechanism, "dp", 1, delta="0.01").save(path)
    assert decide_by_both(path) == ("proven", "proven")


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_the_design_for_runs_is_the_best_candidate_for_one_row_per_bin(neighbours: str) -> None:
    """The noise of `design noise --runs` is private for K rows (2K under replace) as it is."""
    query = JointQuery("row-per-bin", neighbours, 2)
    search = search_histogram_noise(query, 1, "1e-3")
    best = search.candidates[0]
    assert best.name == "design, scaled"
    assert 0.9999 < best.value <= 1
    noise = best.mechanism.noise
    moves = list_moves("row-per-bin", neighbours, 2)
    worst = max(convolve(list_masses(noise, 60), move, 1) for move in moves)
    assert 0.9e-3 < worst <= 1e-3 * (1 + 1e-9)
    assert check_with_tool(best) == "proven"
    geometric = next(c for c in search.candidates if c.name == "geometric")
    assert best.variance < 0.97 * geometric.variance


@pytest.mark.parametrize(
    ("query", "runs"),
    [
        (JointQuery("row-per-bin", rows=2), 2),
        (JointQuery("row-per-bin", "replace", 2), 4),
        (JointQuery("rows-anywhere", "replace", 1), 2),
    ],
)
def test_noise_is_designed_for_as_many_runs_as_bins_move(
    query: JointQuery, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    designed_runs = []

    def design_runs(runs: int, *_: Real) -> IntegerLaw:
        """Record the number of runs, and return the same noise for every number."""
        designed_runs.append(runs)
        return IntegerLaw(-2, [1, 50, 1000, 50, 1])

    monkeypatch.setattr(histogram, "_design_runs", design_runs)
    search = search_histogram_noise(query, 16, "0.01")
    assert designed_runs == [runs]
    assert "design, scaled" in [candidate.name for candidate in search.candidates]


def test_the_grid_is_sharp_for_losses_of_a_share_of_epsilon() -> None:
    """Three losses of ε/3 add up to ε, where a grid that misses ε adds a false excess."""
    ratio = Fraction(math.ceil(math.exp(-0.1 / 3) * 2**24), 2**24)
    noise = make_geometric(ratio, 150)
    mechanism = JointNoise(JointQuery("row-per-bin", rows=3), noise)
    bound = float(bound_joint_delta(mechanism, Fraction(1, 10), Fraction(1, 1000)))
    exact = convolve(list_masses(noise, 150), (1, 1, 1), 0.1)
    assert exact <= bound <= exact + 1e-6


@pytest.mark.parametrize(
    ("query", "delta", "seconds", "reason"),
    [
        (JointQuery("rows-anywhere", rows=2), "1e-3", None, None),
        (JointQuery("row-per-bin", rows=2), 0, None, None),
        (JointQuery("row-per-bin", rows=2), "1e-3", 4, "The time limit must be at least 5 s"),
    ],
)
def test_no_design_is_made_where_it_does_not_help(
    query: JointQuery, delta: Real, seconds: float | None, reason: str | None
) -> None:
    search = search_histogram_noise(query, 1, delta, seconds)
    assert "design, scaled" not in [candidate.name for candidate in search.candidates]
    assert search.refusals.get("design, scaled", "").startswith(reason or "")
    assert ("design, scaled" in search.refusals) == (reason is not None)


def test_a_ratio_whose_proof_is_too_long_is_followed_by_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    certify = _Budget.certify
    failures = [wb.NotProven("The proof is too long.")]

    def fail_once(self: _Budget, *arguments: Any) -> NoiseCandidate:
        """Raise NotProven at the first certificate with δ > 0. Certify all others as usual."""
        if self.delta and failures:
            raise failures.pop()
        return certify(self, *arguments)

    monkeypatch.setattr(_Budget, "certify", fail_once)
    query = JointQuery("rows-anywhere", rows=2)
    candidate = _fit_geometric(_Budget(query, Fraction(1), Fraction(1, 1000)))
    assert (candidate.name, failures) == ("geometric", [])


@pytest.mark.parametrize("limited_search", ["_fit_truncated_geometric", "_fit_geometric"])
def test_a_search_ends_at_its_deadline_with_the_candidates_so_far(
    limited_search: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wait(_: _Budget) -> NoiseCandidate:
        """Compute until the time limit raises an error."""
        while True:
            check_time_limit()

    monkeypatch.setattr(histogram, limited_search, wait)
    query = JointQuery("row-per-bin", rows=2)
    search = search_noise_candidates(query, 1, "0.01", seconds=0.3)
    assert [candidate.name for candidate in search.candidates] == ["geometric"]
    is_pure = search.candidates[0].certificate.claim.values["delta"] == 0
    assert is_pure == (limited_search == "_fit_geometric")
    assert search.refusals["discrete Gaussian"] == "The time limit of 0.3 s was reached."


def test_noise_whose_certificate_no_checker_would_prove_is_no_candidate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(audit_work, "MAX_WORK_UNITS", 5000)
    search = search_noise_candidates(JointQuery("row-per-bin", "replace", 3), 1, "0.01")
    pure = next(c for c in search.candidates if c.name == "geometric")
    assert pure.certificate.claim.values["delta"] == 0
    assert "units of work is refused" in search.refusals["geometric"]


def test_geometric_noise_is_not_advised_in_place_of_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(joint_noise, "MAX_GEOMETRIC_UNITS", 10)
    monkeypatch.setattr(joint_bound, "MAX_WORK_UNITS", 10)
    mechanism = JointNoise(JointQuery("row-per-bin", rows=4), IntegerLaw(0, [1], 1, Fraction(1, 2)))
    with pytest.raises(wb.InvalidRequest, match=r"Use fewer rows or a coarser grid\.$"):
        audit_exactly(mechanism, 1)
    with pytest.raises(wb.NotProven, match=r"Use fewer rows\.$"):
        bound_joint_delta(mechanism, Fraction(1), Fraction(1, 100))


def test_a_pair_of_sums_is_no_histogram() -> None:
    with pytest.raises(wb.InvalidRequest, match="histogram"):
        search_noise_candidates(JointQuery("pair-of-sums", rows=1, span=3), 1)


@pytest.mark.parametrize(
    ("epsilon", "delta", "message"),
    [
        (1, Fraction(1, 10**400), "delta must be 0, or between 0 and 1"),
        (1, 1 - Fraction(1, 10**20), "delta must be 0, or between 0 and 1"),
        (1, 1, "delta must be 0, or between 0 and 1"),
        (800, Fraction(1, 10**6), "epsilon must be at most 300"),
    ],
)
def test_budgets_beyond_floats_are_refused(epsilon: int, delta: Fraction, message: str) -> None:
    with pytest.raises(wb.InvalidRequest, match=message):
        find_best_candidate(JointQuery("rows-anywhere"), epsilon, delta)
