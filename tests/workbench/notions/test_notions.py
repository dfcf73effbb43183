"""Test that every notion agrees with its definition in exact arithmetic, and user-defined notions.

The definitions, for all neighbouring laws P and Q of a mechanism, in both orders:

    pure           P(o) <= e^ε Q(o) for every outcome o
    metric         the same with ε times the distance of the inputs
    dp             Σ_o max(0, P(o) - e^ε Q(o)) <= δ
    pdp            P(o with P(o) > e^ε Q(o)) <= δ
    renyi          D_α(P‖Q) = ln Σ_o P(o)^α Q(o)^(1-α) / (α - 1) <= ε
    zcdp           D_α(P‖Q) <= ρα for every α > 1
    gdp            the trade-off function is at least that of N(0, 1) and N(μ, 1)
    curve          dp at each point (ε, δ) of a list
    tradeoff       the type II error is at least f(α) for every test with the type I error α

In docs/notions.md they are explained with their sources.
"""

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
from workbench.pipeline.requirements import list_hockey_stick_notions
from workbench.privacy.audit_work import check_work_units, count_work_units
from workbench.privacy.certificate_file import certificate_from_dict

Masses = list[Fraction]  # The law of a mechanism at one input: the mass of each outcome.

# Integer weights of two or three laws on three outcomes. A weight may be 0, but not a whole row.
ROWS = st.lists(
    st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any), min_size=2, max_size=3
)
# The same with positive weights.
POSITIVE_ROWS = st.lists(
    st.lists(st.integers(1, 9), min_size=3, max_size=3), min_size=2, max_size=3
)


def normalise_rows(rows: list[list[int]]) -> list[Masses]:
    """Divide each row of weights by its sum."""
    return [[Fraction(weight, sum(row)) for weight in row] for row in rows]


def enclose_exp(epsilon: Fraction, terms: int = 60) -> tuple[Fraction, Fraction]:
    """Return rationals around e^ε for 0 <= ε <= 8: the Taylor sum, and the sum plus its error bound."""
    low = sum((epsilon**k / factorial(k) for k in range(terms)), Fraction(0))
    return low, low + 2 * epsilon**terms / factorial(terms)


def list_outcomes_above(p: Masses, q: Masses, epsilon: Fraction) -> list[int]:
    """Return the outcomes with P > e^ε Q. No sampled ratio is in the interval around e^ε."""
    low, high = enclose_exp(epsilon)
    assert all(a <= low * b or a > high * b for a, b in zip(p, q, strict=True))
    return [i for i, (a, b) in enumerate(zip(p, q, strict=True)) if a > high * b]


def satisfies_definition(
    name: str, p: Masses, q: Masses, epsilon: Fraction, delta: Fraction
) -> bool:
    """Return whether P and Q, in this order, satisfy pure, metric, dp or pdp by its definition.

    For metric, the distance of the two inputs is 1.
    """
    outcomes_above = list_outcomes_above(p, q, epsilon)
    if name in ("pure", "metric"):
        return not outcomes_above
    if name == "pdp":
        return sum((p[i] for i in outcomes_above), Fraction(0)) <= delta
    # The hockey stick is between its values for both ends of the interval around e^ε.
    low, high = (
        sum((p[i] - factor * q[i] for i in outcomes_above), Fraction(0))
        for factor in enclose_exp(epsilon)
    )
    assert (low <= delta) == (high <= delta)
    return low <= delta


@settings(max_examples=60, deadline=None)
@given(
    ROWS,
    st.sampled_from(["0", "0.1", "0.7", "1.5", "3"]),
    st.sampled_from(["0", "0.01", "0.2", "1/3", "0.9"]),
)
def test_every_notion_agrees_with_its_definition(
    rows: list[list[int]], epsilon: str, delta: str
) -> None:
    privacy = wb.audit(Channel.from_rows(rows), epsilon)
    for name in ("pure", "metric", "dp", "pdp"):
        has_delta = notions.get_notion(name).has_delta
        exact_delta = read_number(delta, "delta") if has_delta else Fraction(0)
        expected = all(
            satisfies_definition(name, p, q, Fraction(epsilon), exact_delta)
            for p, q in permutations(normalise_rows(rows), 2)
        )
        assert privacy.meets(name, epsilon, exact_delta) == expected
        verdict = privacy.verdict(name, epsilon, exact_delta)
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
    """On a fine grid no ratio exceeds the slope, and the largest one nearly attains it.

    The slope is the largest of |d ln P(o | x) / dx|. `ends` are the weights of the laws at both
    ends of the pieces [0, 1] and [1, 2], between which the masses are affine in x.
    """
    if continuous:
        ends[2] = ends[1]
    law = wb.PiecewiseAffine.from_laws([0, 1, 2], [0, 1, 2], ends)
    privacy = wb.audit(law, 1)
    # It is None if no finite ε is enough.
    slope = privacy.measure_comparisons(privacy.claim("metric", 1))[0].measurement.value
    has_jump = Channel.from_rows([ends[1]]) != Channel.from_rows([ends[2]])
    has_vanishing_mass = any(
        (a == 0) != (b == 0) for k in (0, 2) for a, b in zip(ends[k], ends[k + 1], strict=True)
    )
    assert (slope is None) == (has_jump or has_vanishing_mass)
    if slope is None:
        assert not privacy.meets("metric", "1000000")
        return
    assert privacy.meets("metric", epsilon) == (slope <= Fraction(epsilon))
    step = Fraction(1, 64)
    laws = [law.law(step * k) for k in range(129)]
    relative_growths = [
        (max(p[i], q[i]) / min(p[i], q[i]) - 1) / step
        for p, q in pairwise(laws)
        for i in range(3)
        if p[i]
    ]
    largest_growth = max(relative_growths)
    # A growth is at most (e^(slope step) - 1) / step, and e^z - 1 <= z (1 + z e^z) for z >= 0.
    exp_upper = enclose_exp(min(slope * step, Fraction(8)))[1]
    assert largest_growth <= slope * (1 + slope * step * exp_upper)
    # On the steepest step the growth is at least slope / (1 + slope step).
    assert slope == 0 or largest_growth >= slope / (1 + slope * step)


def test_the_registry_begins_with_four_notions_of_the_workbench() -> None:
    assert tuple(notions.notion_names())[:4] == ("pure", "dp", "pdp", "metric")


@pytest.mark.parametrize("wrong_name", ["rdp", None, 3])
def test_an_unknown_name_of_a_notion_is_refused(wrong_name: Any) -> None:
    with pytest.raises(wb.InvalidRequest, match="notion must be one of pure, dp, pdp, metric"):
        notions.get_notion(wrong_name)


def test_a_second_notion_of_the_same_name_is_refused() -> None:
    with pytest.raises(wb.InvalidRequest, match=r"The name 'dp' .* is taken by dp-workbench"):
        notions.register_notion(type("Other", (DP,), {})())


def test_a_parameter_of_another_notion_is_refused() -> None:
    privacy = wb.audit(Channel.from_rows([[1, 2], [2, 1]]), 1)
    message = r"The parameters of the notion dp must be epsilon, delta. Got rho."
    with pytest.raises(wb.InvalidRequest, match=message):
        privacy.meets("dp", 1, rho=1)


def test_a_notion_without_its_epsilon_is_refused() -> None:
    privacy = wb.audit(Channel.from_rows([[1, 2], [2, 1]]), 1)
    message = r"epsilon must be given for the notion dp. Got none."
    with pytest.raises(wb.InvalidRequest, match=message):
        privacy.meets("dp", delta=0)


class Halved(DP):
    """DP whose ε is spent on two runs, (ε/2, δ) for each. Only the tests register it."""

    name = "halved"
    title = "halved DP"
    quantity = "halved_delta"

    def measure(self, laws: Any, values: Values) -> Any:
        """Measure the DP of one run."""
        return super().measure(laws, {**values, "epsilon": values["epsilon"] / 2})

    def describe_witness(self, laws: Any, result: Any, names: Any) -> str | None:
        """Describe the outcomes that break the DP of one run."""
        budget: Mapping[str, Any] = {**result.budget, "epsilon": result.budget["epsilon"] / 2}
        result_of_run = type(result)(result.label, result.measurement, budget)
        return super().describe_witness(laws, result_of_run, names)

    def requirements(self, values: Values) -> tuple[Requirement, ...]:
        """Require the DP of one run from a design."""
        return (HockeyStick(values["epsilon"] / 2, values["delta"]),)


@pytest.fixture
def temporary_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget after the test which notions it has registered."""
    copies = {group: dict(plugins_of_group) for group, plugins_of_group in plugins._plugins.items()}
    monkeypatch.setattr(plugins, "_plugins", copies)


@pytest.fixture
def halved(temporary_registry: None) -> Halved:
    """Register the notion `Halved` for one test."""
    notion = Halved()
    notions.register_notion(notion)
    return notion


def make_noise_modulo_5() -> wb.AdditiveNoise:
    """Return noise on 0..4 for answers that differ by 1 modulo 5. Its probabilities are unequal."""
    return wb.AdditiveNoise(wb.ModuloNoise(n=4, shifts=[1]), [54, 24, 10, 3, 12])


@pytest.mark.parametrize(("epsilon", "delta"), [(1, "0.2"), (2, "0.2"), (2, "0.01"), (6, 0)])
def test_an_audit_measures_a_user_defined_notion(
    halved: Halved, epsilon: int, delta: int | str
) -> None:
    privacy = wb.audit(make_noise_modulo_5(), "0.5")
    is_private_in_one_run = privacy.meets("dp", Fraction(epsilon, 2), delta)
    assert privacy.meets(halved, epsilon, delta) == is_private_in_one_run


def test_a_verdict_names_a_user_defined_notion(halved: Halved) -> None:
    verdict = wb.audit(make_noise_modulo_5(), "0.5").verdict("halved", 2, "0.01")
    assert "NOT private" in verdict
    assert "exact halved DP delta is" in verdict


def test_a_certificate_proves_a_user_defined_notion_after_repair(halved: Halved) -> None:
    certificate = wb.certify(make_noise_modulo_5(), "halved", 2, "0.01")
    assert certificate.privacy.meets("dp", 1, "0.01")
    claim = certificate.to_dict()["claim"]
    assert claim == {"notion": "halved", "epsilon": "2", "delta": "0.01"}
    assert certificate_from_dict(certificate.to_dict()) == certificate


def test_a_certificate_of_a_false_user_defined_claim_is_refused(halved: Halved) -> None:
    with pytest.raises(wb.NotCertified, match="halved DP delta"):
        wb.Certificate(make_noise_modulo_5(), "halved", 2, "0.01")


def test_a_law_of_real_inputs_is_certified_for_a_user_defined_notion(halved: Halved) -> None:
    law = wb.PiecewiseAffine.from_laws([0, 1], [0, 1], [[0.6, 0.4], [0.4, 0.6]])
    assert wb.certify(law, "halved", 1, "0.001").privacy.meets("dp", "0.5", "0.001")


@pytest.mark.usefixtures("temporary_registry")
def test_a_subclass_with_other_coefficients_is_not_measured_as_its_base() -> None:
    class Twice(DP):
        """DP whose δ is twice as large."""

        name = "twice"
        title = "twice the DP"

        def coefficients(self, a: Fraction, b: Fraction) -> tuple[Fraction, Fraction]:
            """Return the factors of P and Q in the hockey stick, doubled."""
            return 2 * a, 2 * b

    notions.register_notion(twice := Twice())
    # Its DP delta is 0.0878 at epsilon 0.5.
    noise = wb.AdditiveNoise(wb.ModuloNoise(n=2, max_shift=1), [2, 1, 1])
    privacy = wb.audit(noise, "0.5")
    for delta in ("0.04", "0.08", "0.1", "0.17", "0.18"):
        assert privacy.meets(twice, "0.5", delta) == privacy.meets("dp", "0.5", Fraction(delta) / 2)
    with pytest.raises(wb.NotCertified, match="twice the DP delta"):
        wb.Certificate(noise, "twice", "0.5", "0.1")


@pytest.mark.usefixtures("temporary_registry")
@pytest.mark.parametrize(("delta", "is_private"), [("0.1", False), ("0.49", False), ("0.5", True)])
def test_a_subclass_that_counts_the_total_mass_is_not_measured_as_its_base(
    delta: str, is_private: bool
) -> None:
    class Whole(DP):
        """DP that counts the whole mass of an outcome above e^ε, as PDP does."""

        name = "whole"
        title = "whole mass"
        counts_excess = False

    notions.register_notion(whole := Whole())
    # Its PDP delta is 1/2 at epsilon 0.5: only the ratio 2 at the first outcome is above e^0.5.
    noise = wb.AdditiveNoise(wb.ModuloNoise(n=2, max_shift=1), [2, 1, 1])
    privacy = wb.audit(noise, "0.5")
    assert privacy.meets(whole, "0.5", delta) == is_private
    assert privacy.meets("pdp", "0.5", delta) == is_private


def test_a_user_defined_notion_designs_noise(halved: Halved) -> None:
    question = wb.ModuloNoise(n=8, max_shift=2)
    dp_design = wb.design(question, epsilon=1, delta="0.05", notion="dp")
    halved_design = wb.design(question, epsilon=2, delta="0.05", notion="halved")
    assert halved_design.objective == pytest.approx(dp_design.objective, rel=1e-9)
    assert halved_design.oracle.agrees
    assert halved_design.private
    assert halved_design.certificate is not None
    assert halved_design.certificate.notion == "halved"


def test_a_design_minimises_the_delta_of_a_user_defined_notion(halved: Halved) -> None:
    question = wb.ModuloNoise(n=8, max_shift=2)
    options = {"minimise": "delta", "max_loss": 0.6}
    halved_design = wb.design(question, epsilon=2, notion="halved", **options)
    dp_design = wb.design(question, epsilon=1, notion="dp", **options)
    assert halved_design.objective == pytest.approx(dp_design.objective, rel=1e-7)


class Certain(Halved):
    """A notion that no model can state, because it has no requirements for a design."""

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


# Notions with other budgets than (ε, δ).


def compute_divergence(p: Masses, q: Masses, alpha: Fraction) -> Decimal | None:
    """Return D_α(P‖Q) by its definition, in decimals of 60 digits. None: it is infinite."""
    if any(a and not b for a, b in zip(p, q, strict=True)):
        return None
    with localcontext() as context:
        context.prec = 60
        order = to_decimal(alpha)
        positive_masses = [(to_decimal(a), to_decimal(b)) for a, b in zip(p, q, strict=True) if a]
        total = Decimal(0)
        for a, b in positive_masses:
            total += a * ((a / b).ln() * (order - 1)).exp()
        return total.ln() / (order - 1)


def to_decimal(value: Fraction) -> Decimal:
    """Convert a fraction with the digits of the current decimal context."""
    return Decimal(value.numerator) / value.denominator


@settings(max_examples=100, deadline=None)
@given(
    ROWS,
    st.sampled_from(["2", "3", "3/2", "1.01", "17"]),
    st.sampled_from(["0", "0.05", "0.3", "1", "2.5"]),
)
def test_renyi_agrees_with_its_definition(rows: list[list[int]], alpha: str, epsilon: str) -> None:
    rounding_error = Decimal("1e-40")  # The reference has 60 digits.
    divergences = [
        compute_divergence(p, q, Fraction(alpha)) for p, q in permutations(normalise_rows(rows), 2)
    ]
    # None: infinite.
    largest = None if None in divergences else max(d for d in divergences if d is not None)
    privacy = wb.audit(Channel.from_rows(rows), 0)
    expected = largest is not None and largest <= to_decimal(Fraction(epsilon)) + rounding_error
    assert privacy.meets("renyi", epsilon, alpha=alpha) == expected
    result = privacy.worst_result("renyi", epsilon, alpha=alpha)
    upper_bound = result.measurement.divergence_upper_bound(Fraction(alpha))
    if largest is None:
        assert upper_bound == float("inf")
    else:
        assert largest - rounding_error <= Decimal(upper_bound)
        assert Decimal(upper_bound) <= largest * (1 + Decimal("1e-15")) + rounding_error
    assert "requested" in privacy.verdict("renyi", epsilon, alpha=alpha)


@settings(max_examples=60, deadline=None)
@given(
    ROWS,
    st.lists(st.sampled_from(["0", "0.3", "1", "2"]), min_size=1, max_size=3, unique=True),
    st.data(),
)
def test_a_curve_holds_if_all_its_points_hold(
    rows: list[list[int]], epsilons: list[str], data: st.DataObject
) -> None:
    """The ε of the points grow and their δ fall, as a curve requires."""
    delta_strategy = st.sampled_from(["0", "0.05", "0.4", "1"])
    drawn_deltas = [data.draw(delta_strategy) for _ in epsilons]
    deltas = sorted(drawn_deltas, key=float, reverse=True)
    points = list(zip(sorted(epsilons, key=float), deltas, strict=True))
    privacy = wb.audit(Channel.from_rows(rows), 0)
    expected = all(privacy.meets("dp", epsilon, delta) for epsilon, delta in points)
    assert privacy.meets("curve", curve=points) == expected
    verdict = privacy.verdict("curve", curve=points)
    # An outcome is shown exactly if the claim is false.
    assert ("where" in verdict or "exceeds" in verdict) != expected


@settings(max_examples=80, deadline=None)
@given(
    ROWS,
    st.lists(st.tuples(st.integers(1, 19), st.integers(0, 18)), max_size=3),
    st.integers(1, 20),
)
def test_a_trade_off_function_lies_below_the_errors_of_every_test(
    rows: list[list[int]], drawn_lines: list[tuple[int, int]], start: int
) -> None:
    """Every subset of outcomes is a test of two rows. Its type II error must be at least f(α).

    The trade-off function is f(α) = max(0, c - mα over some lines (c, m)). A line with m < c would
    be positive at α = 1, so such lines are left out. The first line is that of f(0) = start / 20
    and f(1) = 0.
    """
    lines = [(Fraction(start, 20), Fraction(start, 20))]
    for intercept, slope in drawn_lines:
        c = Fraction(intercept, 20)
        if c * slope >= c:
            lines.append((c, c * slope))

    def evaluate_f(alpha: Fraction) -> Fraction:
        """Compute f(α)."""
        return max(Fraction(0), *(c - m * alpha for c, m in lines))

    # f is linear between these α: where two lines meet, and where a line becomes 0.
    knots = [(c - d) / (m - n) for c, m in lines for d, n in lines if m != n]
    knots += [c / m for c, m in lines]
    alphas = sorted({Fraction(0), Fraction(1), *(alpha for alpha in knots if 0 < alpha < 1)})
    tests = list(itertools.product([0, 1], repeat=3))  # 1 for each outcome that a test rejects.
    expected = True
    for p, q in permutations(normalise_rows(rows), 2):
        for test in tests:
            type_1_error = Fraction(sum(itertools.compress(p, test)))
            type_2_error = 1 - sum(itertools.compress(q, test))
            expected = expected and type_2_error >= evaluate_f(type_1_error)
    privacy = wb.audit(Channel.from_rows(rows), 0)
    points = [(alpha, evaluate_f(alpha)) for alpha in alphas]
    assert privacy.meets("tradeoff", tradeoff=points) == expected
    assert ("exceeds" in privacy.verdict("tradeoff", tradeoff=points)) != expected


# Notion, budget, and an entry of the claim with a value that makes the claim false.
CLAIMS_AND_FALSE_ENTRIES: list[tuple[str, dict[str, Any], tuple[str, Any]]] = [
    ("renyi", {"epsilon": "0.5", "alpha": 2}, ("alpha", "400")),
    ("renyi", {"epsilon": {1: "0.7"}, "alpha": "5/2"}, ("alpha", "400")),
    ("curve", {"curve": [("0.5", "0.3"), (1, "0.1")]}, ("curve", [["0.5", "0.0001"]])),
    (
        "tradeoff",
        {"tradeoff": "0:0.9,0.2:0.4,0.9:0"},
        ("tradeoff", [["0", "1"], ["0.45", "0.5"], ["1", "0"]]),
    ),
]


@pytest.mark.parametrize(("notion", "budget", "false_entry"), CLAIMS_AND_FALSE_ENTRIES)
def test_a_certificate_of_another_budget_is_proven_again(
    notion: str, budget: dict[str, Any], false_entry: tuple[str, Any]
) -> None:
    certificate = wb.certify(make_noise_modulo_5(), notion, **budget)
    assert 0 < certificate.record["repair_moved_mass"] < 0.3
    assert certificate_from_dict(certificate.to_dict()) == certificate
    assert pickle.loads(pickle.dumps(certificate)) == certificate


@pytest.mark.parametrize(("notion", "budget", "false_entry"), CLAIMS_AND_FALSE_ENTRIES)
def test_a_certificate_of_another_budget_needs_the_repair(
    notion: str, budget: dict[str, Any], false_entry: tuple[str, Any]
) -> None:
    parameters = {name: value for name, value in budget.items() if name != "epsilon"}
    with pytest.raises(wb.NotCertified, match="is NOT private at the requested budget"):
        wb.Certificate(make_noise_modulo_5(), notion, budget.get("epsilon"), parameters=parameters)


@pytest.mark.parametrize(("notion", "budget", "false_entry"), CLAIMS_AND_FALSE_ENTRIES)
def test_a_certificate_with_a_false_entry_is_refused(
    notion: str, budget: dict[str, Any], false_entry: tuple[str, Any]
) -> None:
    record = wb.certify(make_noise_modulo_5(), notion, **budget).to_dict()
    name, false_value = false_entry
    record["claim"][name] = false_value
    with pytest.raises(wb.CorruptFile, match="does not prove"):
        certificate_from_dict(record)


def test_a_law_of_real_inputs_is_certified_for_renyi_privacy() -> None:
    law = wb.PiecewiseAffine.from_laws([0, 1], [0, 1], [[0.6, 0.4], [0.4, 0.6]])
    assert wb.certify(law, "renyi", "0.05", alpha=2).privacy.meets("renyi", "0.05", alpha=2)


def test_alpha_1_is_refused() -> None:
    with pytest.raises(wb.InvalidRequest, match=r"alpha must be a finite number > 1\. Got 1\."):
        wb.certify(make_noise_modulo_5(), "renyi", 1, alpha=1)


def test_an_empty_curve_is_refused() -> None:
    with pytest.raises(wb.InvalidRequest, match="curve must be a list of pairs"):
        wb.certify(make_noise_modulo_5(), "curve", curve=[])


@settings(max_examples=60, deadline=None)
@given(POSITIVE_ROWS)
def test_mu_of_gdp_is_the_largest_over_all_tests(rows: list[list[int]]) -> None:
    """A set S of outcomes needs μ >= Φ⁻¹(P(S)) - Φ⁻¹(Q(S)), with Φ⁻¹ of another library."""
    quantile = NormalDist().inv_cdf
    needed_mus = [0.0]
    for p, q in permutations(normalise_rows(rows), 2):
        for size in (1, 2):
            for outcomes in combinations(range(3), size):
                p_mass = float(sum(p[i] for i in outcomes))
                q_mass = float(sum(q[i] for i in outcomes))
                needed_mus.append(quantile(p_mass) - quantile(q_mass))
    mu = max(needed_mus)
    privacy = wb.audit(Channel.from_rows(rows), 0)
    measurement = privacy.worst_result("gdp", mu=1).measurement
    assert measurement.smallest_mu == pytest.approx(mu, abs=1e-9)
    assert privacy.meets("gdp", mu=mu + 1e-9)
    assert mu < 1e-6 or not privacy.meets("gdp", mu=mu - 1e-9)


@settings(max_examples=16, deadline=None)
@given(POSITIVE_ROWS)
@example([[7, 5, 8], [8, 9, 1]])  # The worst order is α = 1.74.
def test_rho_of_zcdp_is_the_largest_over_all_orders(rows: list[list[int]]) -> None:
    """The reference is the largest D_α / α on a grid of α from 1 + 2^-20 to 1 + 2^8.

    The grid is finer than a factor of 1.05 in α - 1 between 2^-6 and 2^8.
    """
    exponents = [*range(-20, -6), *[j / 16 for j in range(-96, 128)]]
    orders = [1 + 2.0**exponent for exponent in exponents]
    ratios = []
    for p, q in permutations(normalise_rows(rows), 2):
        pairs = [(float(a), float(b)) for a, b in zip(p, q, strict=True)]
        for alpha in orders:
            divergence = math.log(sum(a * (a / b) ** (alpha - 1) for a, b in pairs)) / (alpha - 1)
            ratios.append(divergence / alpha)
    rho = max(ratios)
    privacy = wb.audit(Channel.from_rows(rows), 0)
    assert privacy.meets("zcdp", rho=rho * 1.01 + 1e-9)
    assert rho < 1e-6 or not privacy.meets("zcdp", rho=rho * 0.999)
    measurement = privacy.worst_result("zcdp", rho=1).measurement
    if not measurement.is_same:
        low, high = measurement.smallest_rho
        assert low <= high <= Fraction(rho) * Fraction("1.01") + Fraction(1, 10**9)


@settings(max_examples=16, deadline=None)
@given(POSITIVE_ROWS)
def test_pure_privacy_implies_zcdp(rows: list[list[int]]) -> None:
    """A mechanism with ε-DP has ε²/2-zCDP."""
    privacy = wb.audit(Channel.from_rows(rows), 0)
    rho = privacy.pure_epsilon**2 / 2
    assert privacy.meets("zcdp", rho=rho + 1e-9)


@pytest.mark.parametrize(
    ("notion", "budget"),
    [
        ("renyi", {"epsilon": 9, "alpha": 2}),
        ("zcdp", {"rho": 9}),
        ("gdp", {"mu": 9}),
    ],
)
def test_an_outcome_that_only_one_law_has_exceeds_every_budget(
    notion: str, budget: dict[str, Any]
) -> None:
    privacy = wb.audit(Channel.from_rows([[1, 1, 0], [1, 0, 1]]), 0)
    assert not privacy.meets(notion, **budget)
    assert "unbounded" in privacy.verdict(notion, **budget)


@pytest.mark.parametrize(
    ("notion", "budget"),
    [
        ("renyi", {"epsilon": 0, "alpha": 2}),
        ("zcdp", {"rho": 0}),
        ("gdp", {"mu": 0}),
    ],
)
def test_equal_laws_are_private_at_the_budget_0(notion: str, budget: dict[str, Any]) -> None:
    privacy = wb.audit(Channel.from_rows([[1, 2, 0], [2, 4, 0]]), 0)
    assert privacy.meets(notion, **budget)


def test_a_discrete_gaussian_has_its_known_rho() -> None:
    """With σ² = 1 and shift D = 1, ρ = D²/(2σ²) = 1/2 (Canonne, Kamath and Steinke, 2020).

    The noise lives on the 31 integers modulo 31, where the masses beyond 15 are negligible.
    """
    reach = 15
    size = 2 * reach + 1
    weights = [Fraction(math.exp(-(min(k, size - k) ** 2) / 2)) for k in range(size)]
    shifted_weights = weights[1:] + weights[:1]
    privacy = wb.audit(Channel.from_rows([weights, shifted_weights]), 0)
    low, high = privacy.worst_result("zcdp", rho=1).measurement.smallest_rho
    assert low == pytest.approx(0.5, rel=1e-5)
    assert low <= high


def test_a_claim_that_needs_too_much_work_is_refused_before_it_starts() -> None:
    """The audit of 30,000 outcomes by zCDP needs more work than is allowed, by DP it does not."""
    wide_noise = wb.AdditiveNoise(wb.ModuloNoise(n=29_999, shifts=[1]), [2] + [1] * 29_999)
    with pytest.raises(wb.CorruptFile, match="units of work is refused"):
        check_work_units(count_work_units(wide_noise, notions.get_notion("zcdp")))
    check_work_units(count_work_units(wide_noise, notions.get_notion("dp")))


def test_dp_and_pure_are_the_notions_of_one_hockey_stick() -> None:
    """PDP bounds a mass, and the budget of metric privacy depends on the distance."""
    assert list_hockey_stick_notions() == ("dp", "pure")


def test_a_notion_states_the_variance_of_gaussian_noise_for_its_budget() -> None:
    """At sensitivity 1 it is 1/(2ρ) for zCDP and α/(2ε) for Rényi. None: no such formula."""
    zcdp, renyi, gdp = (notions.get_notion(name) for name in ("zcdp", "renyi", "gdp"))
    assert zcdp.gaussian_variance({"rho": Fraction(1, 8)}) == 4
    assert renyi.gaussian_variance({"alpha": Fraction(3), "epsilon": Fraction(1, 2)}) == 3
    assert gdp.gaussian_variance({"mu": Fraction(1)}) is None


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
