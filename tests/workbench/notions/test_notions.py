"""Test that every notion agrees with its definition in exact arithmetic, and user-defined notions."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Mapping
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations, pairwise, permutations
from math import factorial
from statistics import NormalDist
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench import notions
from workbench.exact.numbers import read_number
from workbench.io import plugins
from workbench.mechanisms.channel import Channel
from workbench.notions.dp import DP
from workbench.notions.notion import HockeyStick, Requirement, Values
from workbench.privacy.audit_work import check_work_units, count_work_units
from workbench.privacy.certificate_file import certificate_from_dict

Masses = list[Fraction]


def e_to(epsilon: Fraction, terms: int = 60) -> tuple[Fraction, Fraction]:
    """Return rationals around e^ε for 0 <= ε <= 8: the Taylor sum, and the sum plus its error bound."""
    low = sum((epsilon**k / factorial(k) for k in range(terms)), Fraction(0))
    return low, low + 2 * epsilon**terms / factorial(terms)


def above(p: Masses, q: Masses, epsilon: Fraction) -> list[int]:
    """Return the outcomes with P > e^ε Q. No sampled ratio is in the interval around e^ε."""
    low, high = e_to(epsilon)
    assert all(a <= low * b or a > high * b for a, b in zip(p, q, strict=True))
    return [i for i, (a, b) in enumerate(zip(p, q, strict=True)) if a > high * b]


def meets(name: str, p: Masses, q: Masses, epsilon: Fraction, delta: Fraction) -> bool:
    """Return whether P and Q satisfy a notion, by its definition."""
    broken = above(p, q, epsilon)
    if name in ("pure", "metric"):
        return not broken
    if name == "pdp":
        return sum((p[i] for i in broken), Fraction(0)) <= delta
    stick = [sum((p[i] - e * q[i] for i in broken), Fraction(0)) for e in e_to(epsilon)]
    assert (stick[0] <= delta) == (stick[1] <= delta)
    return stick[0] <= delta


ROWS = st.lists(
    st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any), min_size=2, max_size=3
)


@settings(max_examples=60, deadline=None)
@given(
    ROWS,
    st.sampled_from(["0", "0.1", "0.7", "1.5", "3"]),
    st.sampled_from(["0", "0.01", "0.2", "1/3", "0.9"]),
)
def test_every_notion_agrees_with_its_definition(
    rows: list[list[int]], epsilon: str, delta: str
) -> None:
    channel = Channel.from_rows(rows)
    privacy = wb.audit(channel, epsilon)
    laws = [[Fraction(k, sum(row)) for k in row] for row in rows]
    for name in ("pure", "metric", "dp", "pdp"):
        share = read_number(delta, "delta") if notions.get_notion(name).has_delta else Fraction(0)
        expected = all(
            meets(name, *pair, Fraction(epsilon), share)
            for p, q in combinations(laws, 2)
            for pair in ((p, q), (q, p))
        )
        assert privacy.meets(name, epsilon, share) == expected
        verdict = privacy.verdict(name, epsilon, share)
        answer = "is private" if expected else "is NOT private"
        assert verdict.startswith(f"The mechanism {answer} at the requested budget: exact ")
        # An outcome is shown exactly if the claim is false.
        assert ("where" in verdict or "exceeds" in verdict) != expected


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any), min_size=4, max_size=4
    ),
    st.sampled_from(["0.3", "1", "4"]),
    st.booleans(),
)
def test_metric_privacy_on_real_inputs_is_the_steepest_slope(
    ends: list[list[int]], epsilon: str, continuous: bool
) -> None:
    """On a fine grid no ratio exceeds the slope, and the largest one nearly attains it."""
    if continuous:
        ends[2] = ends[1]
    law = wb.PiecewiseAffine.from_laws([0, 1, 2], [0, 1, 2], ends)
    slope = (
        wb.audit(law, 1)
        .measure_comparisons(wb.audit(law, 1).claim("metric", 1))[0]
        .measurement.value
    )
    jumps = Channel.from_rows([ends[1]]) != Channel.from_rows([ends[2]])
    vanish = any(
        (a == 0) != (b == 0) for k in (0, 2) for a, b in zip(ends[k], ends[k + 1], strict=True)
    )
    assert (slope is None) == (jumps or vanish)
    if slope is None:
        assert not wb.audit(law, 1).meets("metric", "1000000")
        return
    assert wb.audit(law, 1).meets("metric", epsilon) == (slope <= Fraction(epsilon))
    step = Fraction(1, 64)
    places = [step * k for k in range(129)]
    laws = [law.law(x) for x in places]
    growth = [
        (max(p[i], q[i]) / min(p[i], q[i]) - 1) / step
        for p, q in pairwise(laws)
        for i in range(3)
        if p[i]
    ]
    # On the steepest step (e^(slope step) - 1) / step is at least slope / (1 + slope step).
    most = max(growth)
    assert most <= slope * (1 + slope * step * e_to(min(slope * step, Fraction(8)))[1])
    assert slope == 0 or most >= slope / (1 + slope * step)


def test_the_registry_lists_its_names_and_refuses_others() -> None:
    assert tuple(notions.notion_names())[:4] == ("pure", "dp", "pdp", "metric")
    for wrong in ("rdp", None, 3):
        with pytest.raises(wb.InvalidRequest, match="notion must be one of pure, dp, pdp, metric"):
            notions.get_notion(wrong)  # type: ignore[arg-type]
    with pytest.raises(wb.InvalidRequest, match=r"The name 'dp' .* is taken by dp-workbench"):
        notions.register_notion(type("Other", (DP,), {})())
    privacy = wb.audit(Channel.from_rows([[1, 2], [2, 1]]), 1)
    with pytest.raises(
        wb.InvalidRequest, match=r"The parameters of the notion dp must be epsilon, delta. Got rho."
    ):
        privacy.meets("dp", 1, rho=1)
    with pytest.raises(
        wb.InvalidRequest, match=r"epsilon must be given for the notion dp. Got none."
    ):
        privacy.meets("dp", delta=0)


class Halved(DP):
    """DP whose ε is spent on two runs, (ε/2, δ) for each. Only the tests register it."""

    name = "halved"
    title = "halved DP"
    quantity = "halved_delta"

    def measure(self, laws: Any, values: Values) -> Any:
        return super().measure(laws, {**values, "epsilon": values["epsilon"] / 2})

    def describe_witness(self, laws: Any, result: Any, names: Any) -> str | None:
        half: Mapping[str, Any] = {**result.budget, "epsilon": result.budget["epsilon"] / 2}
        return super().describe_witness(
            laws, type(result)(result.label, result.measurement, half), names
        )

    def requirements(self, values: Values) -> tuple[Requirement, ...]:
        return (HockeyStick(values["epsilon"] / 2, values["delta"]),)


@pytest.fixture
def halved(monkeypatch: pytest.MonkeyPatch) -> Halved:
    """Register the notion `Halved` for one test."""
    monkeypatch.setattr(
        plugins, "_plugins", {group: dict(known) for group, known in plugins._plugins.items()}
    )
    added = Halved()
    notions.register_notion(added)
    return added


def test_a_user_defined_notion_audits_and_certifies(halved: Halved) -> None:
    noise = wb.AdditiveNoise(wb.ModuloNoise(n=4, shifts=[1]), [54, 24, 10, 3, 12])
    privacy = wb.audit(noise, "0.5")
    for epsilon, delta in ((1, "0.2"), (2, "0.2"), (2, "0.01"), (6, 0)):
        assert privacy.meets(halved, epsilon, delta) == privacy.meets(
            "dp", Fraction(epsilon, 2), delta
        )
    verdict = privacy.verdict("halved", 2, "0.01")
    assert "NOT private" in verdict
    assert "exact halved DP delta is" in verdict
    proof = wb.certify(noise, "halved", 2, "0.01")
    assert proof.privacy.meets("dp", 1, "0.01")
    assert certificate_from_dict(proof.to_dict()) == proof
    assert proof.to_dict()["claim"] == {"notion": "halved", "epsilon": "2", "delta": "0.01"}
    with pytest.raises(wb.NotCertified, match="halved DP delta"):
        wb.Certificate(noise, "halved", 2, "0.01")
    law = wb.PiecewiseAffine.from_laws([0, 1], [0, 1], [[0.6, 0.4], [0.4, 0.6]])
    assert wb.certify(law, "halved", 1, "0.001").privacy.meets("dp", "0.5", "0.001")


def test_a_subclass_with_other_coefficients_is_not_measured_as_its_base(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Twice(DP):
        name = "twice"
        title = "twice the DP"

        def coefficients(self, a: Fraction, b: Fraction) -> tuple[Fraction, Fraction]:
            return 2 * a, 2 * b

    monkeypatch.setattr(
        plugins, "_plugins", {group: dict(known) for group, known in plugins._plugins.items()}
    )
    notions.register_notion(twice := Twice())
    # Its DP delta is 0.0878 at epsilon 0.5.
    noise = wb.AdditiveNoise(wb.ModuloNoise(n=2, max_shift=1), [2, 1, 1])
    privacy = wb.audit(noise, "0.5")
    for delta in ("0.04", "0.08", "0.1", "0.17", "0.18"):
        assert privacy.meets(twice, "0.5", delta) == privacy.meets("dp", "0.5", Fraction(delta) / 2)
    with pytest.raises(wb.NotCertified, match="twice the DP delta"):
        wb.Certificate(noise, "twice", "0.5", "0.1")


def test_a_subclass_that_counts_the_total_mass_is_not_measured_as_its_base(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Whole(DP):
        name = "whole"
        title = "whole mass"
        counts_excess = False

    monkeypatch.setattr(
        plugins, "_plugins", {group: dict(known) for group, known in plugins._plugins.items()}
    )
    notions.register_notion(whole := Whole())
    # Its PDP delta is 1/2 at epsilon 0.5.
    noise = wb.AdditiveNoise(wb.ModuloNoise(n=2, max_shift=1), [2, 1, 1])
    privacy = wb.audit(noise, "0.5")
    for delta in ("0.1", "0.49", "0.5"):
        assert (
            privacy.meets(whole, "0.5", delta)
            == privacy.meets("pdp", "0.5", delta)
            == (delta == "0.5")
        )


def test_a_user_defined_notion_designs_noise(halved: Halved) -> None:
    question = wb.ModuloNoise(n=8, max_shift=2)
    ours = wb.design(question, epsilon=1, delta="0.05", notion="dp")
    theirs = wb.design(question, epsilon=2, delta="0.05", notion="halved")
    assert theirs.objective == pytest.approx(ours.objective, rel=1e-9)
    assert theirs.oracle.agrees
    assert theirs.private
    assert theirs.certificate is not None
    assert theirs.certificate.notion == "halved"
    least = wb.design(question, epsilon=2, notion="halved", minimise="delta", max_loss=0.6)
    assert least.objective == pytest.approx(
        wb.design(question, epsilon=1, notion="dp", minimise="delta", max_loss=0.6).objective,
        rel=1e-7,
    )


class Certain(Halved):
    """A notion that no model can state."""

    name = "certain"
    quantity = "certain"
    requirements = notions.Notion.requirements


def test_a_notion_that_a_model_cannot_state_is_refused_with_the_alternatives(
    halved: Halved,
) -> None:
    notions.register_notion(Certain())
    with pytest.raises(
        wb.InvalidRequest, match=r"notion must be one of pure, dp, .*, halved, .*gdp. Got 'certain'"
    ):
        wb.design(wb.ModuloNoise(n=8, max_shift=2), epsilon=1, notion="certain")


# Budgets beyond (ε, δ).


def divergence(p: Masses, q: Masses, order: Fraction) -> Decimal | None:
    """Return D_α by its definition, in decimals of 60 digits. None: it is infinite."""
    if any(a and not b for a, b in zip(p, q, strict=True)):
        return None
    with localcontext() as context:
        context.prec = 60
        power = Decimal(order.numerator) / order.denominator
        live = [(decimal(a), decimal(b)) for a, b in zip(p, q, strict=True) if a]
        total = sum((a * ((a / b).ln() * (power - 1)).exp() for a, b in live), Decimal(0))
        return total.ln() / (power - 1)


def decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / value.denominator


@settings(max_examples=100, deadline=None)
@given(
    ROWS,
    st.sampled_from(["2", "3", "3/2", "1.01", "17"]),
    st.sampled_from(["0", "0.05", "0.3", "1", "2.5"]),
)
def test_renyi_agrees_with_its_definition(rows: list[list[int]], alpha: str, epsilon: str) -> None:
    channel = Channel.from_rows(rows)
    laws = [[Fraction(k, sum(row)) for k in row] for row in rows]
    order = Fraction(alpha)
    values = [
        divergence(*pair, order) for p, q in combinations(laws, 2) for pair in ((p, q), (q, p))
    ]
    most = None if None in values else max(value for value in values if value is not None)
    privacy = wb.audit(channel, 0)
    expected = most is not None and most <= decimal(Fraction(epsilon)) + Decimal("1e-40")
    assert privacy.meets("renyi", epsilon, alpha=alpha) == expected
    reached = privacy.worst_result(
        "renyi", epsilon, alpha=alpha
    ).measurement.divergence_upper_bound(order)
    if most is None:
        assert reached == float("inf")
    else:
        assert (
            most - Decimal("1e-40")
            <= Decimal(reached)
            <= most * (1 + Decimal("1e-15")) + Decimal("1e-40")
        )
    assert ("requested" in privacy.verdict("renyi", epsilon, alpha=alpha)) is True


@settings(max_examples=60, deadline=None)
@given(
    ROWS,
    st.lists(st.sampled_from(["0", "0.3", "1", "2"]), min_size=1, max_size=3, unique=True),
    st.data(),
)
def test_a_curve_holds_if_all_its_points_hold(
    rows: list[list[int]], epsilons: list[str], data: st.DataObject
) -> None:
    deltas = sorted(
        (data.draw(st.sampled_from(["0", "0.05", "0.4", "1"])) for _ in epsilons),
        key=float,
        reverse=True,
    )
    points = list(zip(sorted(epsilons, key=float), deltas, strict=True))
    privacy = wb.audit(Channel.from_rows(rows), 0)
    expected = all(privacy.meets("dp", epsilon, delta) for epsilon, delta in points)
    assert privacy.meets("curve", curve=points) == expected
    assert (
        "where" in privacy.verdict("curve", curve=points)
        or "exceeds" in privacy.verdict("curve", curve=points)
    ) != (expected)


@settings(max_examples=80, deadline=None)
@given(
    ROWS,
    st.lists(st.tuples(st.integers(1, 19), st.integers(0, 18)), max_size=3),
    st.integers(1, 20),
)
def test_a_trade_off_function_lies_below_the_errors_of_every_test(
    rows: list[list[int]], inner: list[tuple[int, int]], start: int
) -> None:
    """Every subset of outcomes is a test of two rows. Its type II error must be at least f(α)."""
    lines = [
        (Fraction(start, 20), Fraction(start, 20)),
        *((Fraction(c, 20), Fraction(c, 20) * m) for c, m in inner),
    ]
    lines = [(c, m) for c, m in lines if m >= c]

    def f(alpha: Fraction) -> Fraction:
        return max(Fraction(0), *(c - m * alpha for c, m in lines))

    meetings = [(c - d) / (m - n) for c, m in lines for d, n in lines if m != n] + [
        c / m for c, m in lines
    ]
    alphas = sorted({Fraction(0), Fraction(1), *(alpha for alpha in meetings if 0 < alpha < 1)})
    laws = [[Fraction(k, sum(row)) for k in row] for row in rows]
    tests = [[k >> i & 1 for i in range(len(laws[0]))] for k in range(1 << len(laws[0]))]
    expected = all(
        1 - sum(itertools.compress(q, test)) >= f(Fraction(sum(itertools.compress(p, test))))
        for p in laws
        for q in laws
        if p is not q
        for test in tests
    )
    privacy = wb.audit(Channel.from_rows(rows), 0)
    points = [(alpha, f(alpha)) for alpha in alphas]
    assert privacy.meets("tradeoff", tradeoff=points) == expected
    assert ("exceeds" in privacy.verdict("tradeoff", tradeoff=points)) != expected


def test_certificates_of_other_budgets_are_proven_again() -> None:
    noise = wb.AdditiveNoise(wb.ModuloNoise(n=4, shifts=[1]), [54, 24, 10, 3, 12])
    for notion, budget in (
        ("renyi", {"epsilon": "0.5", "alpha": 2}),
        ("renyi", {"epsilon": {1: "0.7"}, "alpha": "5/2"}),
        ("curve", {"curve": [("0.5", "0.3"), (1, "0.1")]}),
        ("tradeoff", {"tradeoff": "0:0.9,0.2:0.4,0.9:0"}),
    ):
        proof = wb.certify(noise, notion, **budget)  # type: ignore[arg-type]
        assert 0 < proof.record["repair_moved_mass"] < 0.3
        assert certificate_from_dict(proof.to_dict()) == proof
        assert pickle.loads(pickle.dumps(proof)) == proof
        with pytest.raises(wb.NotCertified, match="is NOT private at the requested budget"):
            wb.Certificate(
                noise,
                notion,
                budget.get("epsilon"),
                parameters={k: v for k, v in budget.items() if k != "epsilon"},
            )
        broken = proof.to_dict()
        name, tight = {
            "curve": ("curve", [["0.5", "0.0001"]]),
            "tradeoff": ("tradeoff", [["0", "1"], ["0.45", "0.5"], ["1", "0"]]),
        }.get(notion, ("alpha", "400"))
        broken["claim"][name] = tight
        with pytest.raises(wb.CorruptFile, match="does not prove"):
            certificate_from_dict(broken)
    law = wb.PiecewiseAffine.from_laws([0, 1], [0, 1], [[0.6, 0.4], [0.4, 0.6]])
    assert wb.certify(law, "renyi", "0.05", alpha=2).privacy.meets("renyi", "0.05", alpha=2)
    with pytest.raises(wb.InvalidRequest, match=r"alpha must be a finite number > 1\. Got 1\."):
        wb.certify(noise, "renyi", 1, alpha=1)
    with pytest.raises(wb.InvalidRequest, match="curve must be a list of pairs"):
        wb.certify(noise, "curve", curve=[])


FULL = st.lists(st.lists(st.integers(1, 9), min_size=3, max_size=3), min_size=2, max_size=3)


@settings(max_examples=60, deadline=None)
@given(FULL)
def test_mu_of_gdp_is_the_largest_over_all_tests(rows: list[list[int]]) -> None:
    """The reference takes μ from every set of outcomes, with the quantiles of another library."""
    laws = [[Fraction(k, sum(row)) for k in row] for row in rows]
    quantile = NormalDist().inv_cdf
    needed = [
        quantile(float(sum(p[i] for i in chosen))) - quantile(float(sum(q[i] for i in chosen)))
        for p, q in permutations(laws, 2)
        for size in (1, 2)
        for chosen in combinations(range(3), size)
    ]
    most = max(0.0, *needed)
    privacy = wb.audit(Channel.from_rows(rows), 0)
    assert privacy.worst_result("gdp", mu=1).measurement.smallest_mu == pytest.approx(
        most, abs=1e-9
    )
    assert privacy.meets("gdp", mu=most + 1e-9)
    assert most < 1e-6 or not privacy.meets("gdp", mu=most - 1e-9)


@settings(max_examples=16, deadline=None)
@given(FULL)
@example([[7, 5, 8], [8, 9, 1]])  # The worst order is α = 1.74.
def test_rho_of_zcdp_is_the_largest_over_all_orders(rows: list[list[int]]) -> None:
    laws = [[k / sum(row) for k in row] for row in rows]
    orders = [1 + 2.0**k for k in (*range(-20, -6), *[j / 16 for j in range(-96, 128)])]
    most = max(
        math.log(sum(a * (a / b) ** (order - 1) for a, b in zip(p, q, strict=True)))
        / (order - 1)
        / order
        for p, q in permutations(laws, 2)
        for order in orders
    )
    privacy = wb.audit(Channel.from_rows(rows), 0)
    assert privacy.meets("zcdp", rho=most * 1.01 + 1e-9)
    assert most < 1e-6 or not privacy.meets("zcdp", rho=most * 0.999)
    least = privacy.worst_result("zcdp", rho=1).measurement
    assert least.is_same or least.smallest_rho[0] <= least.smallest_rho[1] <= Fraction(
        most
    ) * Fraction("1.01") + Fraction(1, 10**9)
    pure = privacy.pure_epsilon
    assert privacy.meets("zcdp", rho=pure * pure / 2 + 1e-9)  # ε-DP is ε²/2-zCDP


def test_an_outcome_that_only_one_law_has_exceeds_every_budget() -> None:
    privacy = wb.audit(Channel.from_rows([[1, 1, 0], [1, 0, 1]]), 0)
    for notion, budget in (
        ("renyi", {"epsilon": 9, "alpha": 2}),
        ("zcdp", {"rho": 9}),
        ("gdp", {"mu": 9}),
    ):
        assert not privacy.meets(notion, **budget)  # type: ignore[arg-type]
        assert "unbounded" in privacy.verdict(notion, **budget)  # type: ignore[arg-type]
    same = wb.audit(Channel.from_rows([[1, 2, 0], [2, 4, 0]]), 0)
    for notion, budget in (
        ("renyi", {"epsilon": 0, "alpha": 2}),
        ("zcdp", {"rho": 0}),
        ("gdp", {"mu": 0}),
    ):
        assert same.meets(notion, **budget)  # type: ignore[arg-type]


def test_a_discrete_gaussian_has_its_known_rho() -> None:
    """With σ² = 1 and D = 1 the known ρ = D²/(2σ²) = 1/2 is in the interval."""
    side = 15
    weights = [
        Fraction(math.exp(-(min(k, 2 * side + 1 - k) ** 2) / 2)) for k in range(2 * side + 1)
    ]
    clamped = [Channel.from_rows([weights, weights[1:] + weights[:1]])]
    low, high = wb.audit(clamped[0], 0).worst_result("zcdp", rho=1).measurement.smallest_rho
    assert low == pytest.approx(0.5, rel=1e-5)
    assert low <= high


def test_a_claim_that_needs_too_much_work_is_refused_before_it_starts() -> None:
    wide = wb.AdditiveNoise(wb.ModuloNoise(n=29_999, shifts=[1]), [2] + [1] * 29_999)
    with pytest.raises(wb.CorruptFile, match="units of work is refused"):
        check_work_units(count_work_units(wide, notions.get_notion("zcdp")))
    check_work_units(count_work_units(wide, notions.get_notion("dp")))


def test_designs_of_noise_read_the_properties_of_a_notion() -> None:
    """Designs read whether a notion is one hockey stick, and its Gaussian variance."""
    from workbench.notions import get_notion
    from workbench.pipeline.requirements import list_hockey_stick_notions

    # PDP bounds a mass, and the budget of metric privacy depends on the distance.
    assert list_hockey_stick_notions() == ("dp", "pure")
    assert get_notion("zcdp").gaussian_variance({"rho": Fraction(1, 8)}) == 4
    assert (
        get_notion("renyi").gaussian_variance({"alpha": Fraction(3), "epsilon": Fraction(1, 2)})
        == 3
    )
    assert get_notion("gdp").gaussian_variance({"mu": Fraction(1)}) is None


def test_a_curve_whose_delta_grows_is_refused():
    with pytest.raises(
        wb.InvalidRequest, match=r"does not grow with epsilon\. Got 0\.01 at 0\.5 and 0\.1 at 1\."
    ):
        wb.design(
            wb.FiniteQuery("0..3", max_shift=1),
            loss="absolute",
            notion="curve",
            curve="0.5:0.01,1:0.1",
        )


def test_a_family_lists_its_notions():
    with pytest.raises(wb.InvalidRequest, match=r"notion must be one of dp, pure\. Got 'zcdp'"):
        wb.design("quantizer", levels=2, epsilon=1, notion="zcdp")
