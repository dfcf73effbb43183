"""Test `wb.design` for noise modulo n + 1: results, verdicts, notes and errors for bad input.

A design has a mechanism with a certificate, an objective (its expected loss), a proven lower bound,
and the verdict of the oracle, which is a known formula. `design.raw` is the solution of the solver
in floats. It may violate the budget by rounding errors, so it is repaired before it is certified.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from random import Random

import cvxpy as cp
import pytest

import workbench as wb
from workbench.families.modulo import problem, repair
from workbench.families.modulo.family import FAMILY
from workbench.families.modulo.oracle_check import find_closed_form_bound
from workbench.models.modulo.constraints import NoiseEquations
from workbench.notions.laws import Laws
from workbench.pipeline.loss_scale import LossScale
from workbench.privacy.audit import audit_extremes
from workbench.solvers.backend import get_backend
from workbench.solvers.backends.highs import Highs


def make_paper_question():
    """Return the running example of Kadam et al. 2024: N = 9 and M = {1, 2, 3}, one-sided."""
    return wb.ModuloNoise(n=8, shifts=[1, 2, 3], directed=True)


# Loss 1 - f(0) of the optimal PMF of the paper's example for ε = 1.5 and δ = 0.1212. Table 1 of the
# paper prints f(0) = 0.5432, an erratum. `tests/models/modulo/test_modulo.py` corrects the table.
PAPER_OPTIMUM = 0.450172331


@pytest.fixture(scope="module")
def pdp_design():
    """Return the design of the paper's example under probabilistic DP."""
    question = make_paper_question()
    return wb.design(question, epsilon=1.5, delta=0.1212, notion="pdp", loss="error-rate")


def test_a_pdp_design_has_its_known_optimum(pdp_design):
    assert pdp_design.objective == pytest.approx(PAPER_OPTIMUM, abs=1e-9)
    assert pdp_design.mechanism.pmf[0] == pytest.approx(1 - PAPER_OPTIMUM, abs=1e-9)


def test_a_pdp_design_is_proven_optimal(pdp_design):
    assert pdp_design.bound == pytest.approx(pdp_design.objective, abs=1e-8)
    assert pdp_design.gap <= 1e-8
    assert pdp_design.status == "optimal"
    assert pdp_design.oracle.agrees
    assert pdp_design.oracle.valid


def test_a_pdp_design_has_exact_privacy_values(pdp_design):
    """A shift moves two outcomes of the smallest positive mass to outcomes of mass 0."""
    smallest_mass = pdp_design.mechanism.pmf[pdp_design.mechanism.pmf > 0].min()
    assert float(pdp_design.privacy.pdp_delta) == pytest.approx(2 * smallest_mass, abs=1e-9)
    assert pdp_design.privacy.pure_epsilon == math.inf


def test_the_report_says_that_directed_neighbours_protect_one_side(pdp_design):
    assert any("one side" in sentence for sentence in pdp_design.words)


def test_the_json_of_a_design_is_strict_and_has_the_documented_keys(pdp_design):
    record = json.loads(json.dumps(pdp_design.to_dict(), allow_nan=False))
    result_keys = {"objective", "bound", "gap", "status", "solver", "pmf"}
    request_keys = {"epsilon", "delta", "notion", "directed"}
    assert result_keys | request_keys <= set(record)
    assert set(record["exact"]) == {"pdp_delta", "dp_delta", "pure_epsilon"}
    assert {"name", "value", "valid", "agrees"} <= set(record["oracle"])


def test_the_json_of_a_design_has_numbers_and_the_text_inf(pdp_design):
    record = json.loads(json.dumps(pdp_design.to_dict(), allow_nan=False))
    assert record["exact"]["pure_epsilon"] == "inf"
    assert len(record["pmf"]) == 9
    assert record["epsilon"] == 1.5
    assert record["directed"] is True


def test_neighbours_are_symmetric_by_default():
    design = wb.design(wb.ModuloNoise(n=8, max_shift=3), epsilon=1.5)
    # The optimum for M = {±1, ±2, ±3} in `tests/models/modulo/test_modulo.py`.
    assert design.objective == pytest.approx(0.589887461, abs=1e-9)
    assert not any("one side" in sentence for sentence in design.words)


def test_the_report_says_if_a_raw_design_is_not_private():
    # For some n, a ratio that should equal e^epsilon is rounded up, and the noise is not private.
    refused_count = 0
    for n in range(5, 12):
        design = wb.design(wb.ModuloNoise(n=n, max_shift=2), epsilon=1.0, certify=False)
        assert design.certificate is None
        assert design.private == (not any("NOT private" in sentence for sentence in design.words))
        refused_count += not design.private
    assert refused_count > 0


@pytest.mark.parametrize("n", range(5, 12))
def test_a_design_is_certified_by_default(n: int):
    design = wb.design(wb.ModuloNoise(n=n, max_shift=2), epsilon=1.0)
    assert design.private
    assert design.certificate.mechanism is design.mechanism
    assert design.certificate.delta == 0
    assert design.to_dict()["certified"] is True
    assert "certified" in str(design)


@pytest.mark.parametrize("n", range(5, 12))
def test_the_repair_of_a_design_hardly_changes_its_loss(n: int):
    design = wb.design(wb.ModuloNoise(n=n, max_shift=2), epsilon=1.0)
    assert design.mechanism != design.raw
    assert abs(design.above_claimed) < 1e-12
    assert design.above_claimed == design.objective - design.claimed


def test_an_equation_for_the_mean_holds_exactly_after_the_repair():
    design = wb.design(
        make_paper_question(),
        notion="pdp",
        epsilon=1.5,
        delta=0.05,
        constraints=NoiseEquations(mean_zero_sizes=(9,)),
    )
    f = design.mechanism.exact_pmf
    # The mean is 0 if the noise values 5..8 count as -4..-1.
    assert sum((eta if eta <= 4 else eta - 9) * f[eta] for eta in range(9)) == 0
    assert design.private


def test_equations_between_masses_hold_exactly_after_the_repair():
    equations = NoiseEquations(equal_mass_groups=((1, 8), (2, 7)))
    f = wb.design(make_paper_question(), epsilon=1.5, constraints=equations).mechanism.exact_pmf
    assert f[1] == f[8]
    assert f[2] == f[7]


def test_the_report_says_that_cvxpy_constraints_hold_within_tolerances():
    design = wb.design(
        make_paper_question(), epsilon=1.5, constraints=lambda f: [cp.norm1(f[1:4] - f[4:7]) <= 0.2]
    )
    assert design.private
    assert any("within the solver's tolerances" in sentence for sentence in design.words)


@pytest.mark.parametrize("notion", ["pdp", "dp"])
def test_a_minimised_delta_is_certified_and_the_loss_limit_holds(notion):
    design = wb.design(
        make_paper_question(), epsilon=1.5, minimise="delta", max_loss=0.4425, notion=notion
    )
    assert design.private
    assert design.mechanism.masses[0] >= 1 - Fraction("0.4425")
    assert design.certificate.delta == design.claim.delta
    assert float(design.certificate.delta) == pytest.approx(design.claimed, abs=1e-9)


def test_a_minimised_epsilon_is_compared_with_no_claimed_loss():
    design = wb.design(
        wb.ModuloNoise(n=5, max_shift=1),
        notion="dp",
        delta="1e-3",
        minimise="epsilon",
        max_loss="0.5",
    )
    assert design.above_claimed == 0  # No solver claims an epsilon.
    assert "claim" not in design.proof
    assert design.bound <= design.objective < design.bound * (1 + 1e-8)


def test_a_design_whose_repairs_all_fail_is_not_certified(monkeypatch):
    def fail(*_, **__):
        raise wb.NotCertified("nothing helps.")

    monkeypatch.setattr(repair, "solve_exactly", fail)
    monkeypatch.setattr(repair, "repair_noise", fail)
    with pytest.raises(wb.NotCertified, match="nothing helps"):
        wb.design(make_paper_question(), epsilon=1.5)


def test_floats_are_read_as_the_decimals_that_they_show():
    design = wb.design(make_paper_question(), notion="pdp", epsilon=0.1, delta="0.3")
    assert design.request.claim.epsilon == Fraction(1, 10)
    assert design.request.claim.delta == Fraction(3, 10)


def test_a_limit_below_the_minimum_delta_is_infeasible():
    design = wb.design(
        make_paper_question(), notion="pdp", epsilon=1.5, minimise="delta", max_loss=0.4425
    )
    # The smallest δ in `tests/models/modulo/test_modulo.py`, the optimum of program (15) of the
    # paper.
    assert design.objective == pytest.approx(0.124395064, abs=1e-9)
    with pytest.raises(wb.Infeasible, match=r"needs delta >= 0\.124395"):
        wb.design(
            make_paper_question(),
            notion="pdp",
            epsilon=1.5,
            minimise="delta",
            max_loss=0.4425,
            delta=0.1,
        )


def test_a_negative_limit_of_the_loss_is_infeasible():
    with pytest.raises(wb.Infeasible, match="below 0"):
        wb.design(make_paper_question(), notion="pdp", epsilon=1.5, minimise="delta", max_loss=-0.1)


def test_every_difference_is_audited_at_its_own_budget():
    design = wb.design(
        wb.ModuloNoise(n=6, shifts=[1, 2]), epsilon={1: 0.5, 2: 1.0}, delta=0.05, notion="dp"
    )
    assert design.privacy.audit_at({1: 0.5, 2: 1.0}).dp_delta.upper <= 0.05 + 1e-9
    uniform_budget = wb.design(
        wb.ModuloNoise(n=6, shifts=[1, 2]), epsilon=0.5, delta=0.05, notion="dp"
    )
    assert design.objective < uniform_budget.objective
    assert "epsilon = {'1': 0.5, '2': 1.0}, delta = 0.05" in str(design)


def test_with_extra_constraints_the_known_formula_is_a_lower_bound():
    design = wb.design(make_paper_question(), epsilon=1.5, constraints=NoiseEquations((9,)))
    assert design.oracle.kind == "lower bound"
    assert not design.oracle.valid
    assert design.oracle.agrees
    assert design.objective > design.oracle.value


def test_an_infeasible_request_names_the_extra_constraints():
    with pytest.raises(wb.Infeasible, match="extra constraints"):
        wb.design(make_paper_question(), epsilon=1.5, constraints=lambda f: [f[0] >= 0.9])


def test_the_time_limit_error_has_the_incumbent_and_the_bound():
    question = wb.ModuloNoise(n=60, max_shift=4)
    with pytest.raises(wb.NotProven) as caught:
        wb.design(question, notion="pdp", epsilon=0.5, delta=0.05, time_limit=1.0, method="literal")
    error = caught.value
    assert "time limit" in str(error)
    # The incumbent is None if the solver found no solution in this time.
    if error.incumbent is not None:
        assert error.bound is None or error.bound <= error.incumbent + 1e-9
        assert error.design.mechanism.pmf.sum() == pytest.approx(1.0)


def test_the_default_method_agrees_with_the_literal_program():
    request = {"epsilon": 1.0, "delta": 0.1, "notion": "pdp", "loss": "squared"}
    default = wb.design(make_paper_question(), **request)
    literal = wb.design(make_paper_question(), **request, method="literal")
    assert "patterns" in default.solution.program.name
    assert "patterns" not in literal.solution.program.name
    assert default.objective == pytest.approx(literal.objective, abs=1e-8)
    assert default.bound <= default.objective
    assert default.status == "optimal"


def test_pure_dp_is_designed_by_one_linear_program_without_patterns():
    design = wb.design(make_paper_question(), epsilon=1.0)
    assert "patterns" not in design.solution.program.name


def test_a_session_finds_the_same_optima_as_separate_designs():
    with FAMILY.open_session(
        FAMILY.make_request(make_paper_question(), epsilon=1.5, notion="dp")
    ) as session:
        session_losses = [
            session.design({"delta": Fraction(delta)}).objective
            for delta in ("0", "0.1", "0.2", "0.1")
        ]
    separate_losses = [
        wb.design(make_paper_question(), epsilon=1.5, delta=delta, notion="dp").objective
        for delta in (0.0, 0.1, 0.2, 0.1)
    ]
    assert session_losses == pytest.approx(separate_losses, abs=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0}, "epsilon must be a finite number > 0. Got 0."),
        ({"epsilon": -1}, "epsilon must be a finite number > 0. Got -1."),
        ({"epsilon": float("nan")}, "epsilon must be a finite number > 0. Got nan."),
        ({"epsilon": float("inf")}, "epsilon must be a finite number > 0. Got inf."),
        ({"epsilon": "abc"}, "epsilon must be a finite number > 0. Got abc."),
        ({"epsilon": 1000}, "epsilon must be between"),
        ({"epsilon": {1: 0.5}}, "no budget for shift"),
        ({"delta": -0.1}, "delta must be a number in \\[0, 1\\]. Got -0.1."),
        ({"delta": 1.5}, "delta must be a number in \\[0, 1\\]. Got 1.5."),
        ({"delta": float("nan")}, "delta must be a number in \\[0, 1\\]. Got nan."),
        (
            {"notion": "rdp"},
            "notion must be one of pure, dp, .*, gdp. Got 'rdp'.",
        ),
        ({"notion": "pure", "delta": 0.1}, "delta must be 0 when notion is pure"),
        ({"loss": "cubic"}, "loss must be one of"),
        ({"method": "slow"}, "method must be one of fast, literal. Got 'slow'."),
        ({"minimise": "both"}, "minimise must be one of"),
        ({"minimise": "delta"}, "max_loss must be given"),
        (
            {"max_loss": 0.3},
            "max_loss must be left out unless minimise is delta or epsilon",
        ),
        ({"minimise": "delta", "max_loss": float("nan")}, "max_loss must be a finite number"),
        ({"time_limit": -1}, "time_limit must be a finite number of seconds > 0"),
        ({"gap": float("nan")}, "gap must be a finite number >= 0"),
        ({"prior": [0.5, 0.5]}, "prior must be given with loss prior-squared"),
    ],
)
def test_the_error_of_a_wrong_option_states_its_rule_and_value(change: dict, message: str):
    request = {"epsilon": 1.5, "delta": 0.0} | change
    with pytest.raises(wb.InvalidRequest, match=message):
        wb.design(make_paper_question(), **request)


def test_an_unknown_solver_is_refused():
    with pytest.raises(wb.SolverUnavailable, match="solver must be one of"):
        wb.design(make_paper_question(), epsilon=1.5, solver="cplex")


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (9, "question must be one of"),
        ("modulo", "A query domain must be given"),
        ("nois", "family must be one of"),
    ],
)
def test_an_incomplete_question_and_an_unknown_family_are_refused(question, message: str):
    with pytest.raises(wb.InvalidRequest, match=message):
        wb.design(question, epsilon=1.5)


def test_a_family_with_the_options_of_a_question_gives_the_same_design():
    by_name = wb.design("modulo", n=3, max_shift=1, epsilon=1)
    by_question = wb.design(wb.ModuloNoise(n=3, max_shift=1), epsilon=1)
    assert by_name.objective == by_question.objective


def test_a_solver_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Highs, "is_installed", classmethod(lambda cls: False))
    with pytest.raises(wb.SolverUnavailable, match="highs is not installed"):
        wb.design(make_paper_question(), epsilon=1.5)


def test_a_program_beyond_the_gurobi_licence_is_refused():
    licence = get_backend("gurobi").licence()
    if licence.max_columns is None:
        pytest.skip("a full Gurobi licence is present")
    with pytest.raises(wb.LicenceLimit, match="licence"):
        wb.design(
            wb.ModuloNoise(n=200, max_shift=5),
            notion="pdp",
            epsilon=1.0,
            delta=0.1,
            solver="gurobi",
            method="literal",
        )


def test_a_tiny_optimum_is_refined_and_proven_in_exact_arithmetic():
    """If e^epsilon is 1e7, the bound of a solver is wrong by about 1e-8, as much as the optimum."""
    design = wb.design(wb.ModuloNoise(n=4, shifts=[4], directed=True), epsilon=17, notion="pure")
    assert design.bound <= design.objective <= design.bound * (1 + 1e-9)
    assert any("refined in exact arithmetic" in note for note in design.solution.notes)
    assert design.oracle.valid
    assert design.oracle.agrees
    assert design.certificate.holds()


def test_a_tiny_optimum_is_proven_although_the_solver_bound_is_far_below(
    monkeypatch: pytest.MonkeyPatch,
):
    # Without refinement the design is the repaired solution of the solver.
    monkeypatch.setattr(problem, "should_refine", lambda *_: False)
    design = wb.design(wb.ModuloNoise(n=4, shifts=[4], directed=True), epsilon=17, notion="pure")
    assert design.bound <= design.objective <= design.bound * (1 + 1e-9)
    assert design.solution.bound < design.objective / 2  # The solver's bound is far too low.
    assert design.oracle.agrees
    assert design.certificate.holds()


@pytest.mark.parametrize("epsilon", ["16.18", "17.5", "19"])
def test_long_cycles_at_large_epsilon_are_proven(epsilon: str):
    """The masses fall to e^(-8 epsilon). A solver in floats only distinguishes the first three."""
    design = wb.design(wb.ModuloNoise(n=8, shifts=[1], directed=True), epsilon=epsilon)
    assert design.objective == pytest.approx(design.oracle.value, rel=1e-12)
    assert design.bound <= design.oracle.value * (1 + 1e-15)
    assert design.bound == pytest.approx(design.objective, rel=1e-9)
    assert design.certificate.holds()


@pytest.mark.parametrize(("low", "high"), [(15, 20), (1e-12, 1e-6)])
def test_linear_designs_at_extreme_budgets_are_proven_to_many_digits(low: float, high: float):
    random = Random(f"extreme budgets from {low}")
    for _ in range(25):
        n = random.randint(2, 14)
        question = wb.ModuloNoise(
            n=n,
            shifts=random.sample(range(1, n + 1), random.randint(1, min(3, n))),
            directed=random.random() < 0.5,
        )
        epsilon = math.exp(random.uniform(math.log(low), math.log(high)))
        notion = random.choice(["pure", "dp"])
        loss = random.choice(["error-rate", "squared", "circular-squared"])
        delta = 0 if notion == "pure" else random.choice([1e-9, random.random()])
        design = wb.design(question, epsilon=epsilon, delta=delta, notion=notion, loss=loss)
        assert design.certificate.holds()
        assert design.objective * (1 - 1e-8) <= design.bound <= design.objective * (1 + 1e-15)
        if design.oracle.value is not None:
            assert design.objective == pytest.approx(design.oracle.value, rel=1e-8)


def test_a_tiny_epsilon_has_a_proven_design_slightly_better_than_uniform_noise():
    design = wb.design(wb.ModuloNoise(sizes=(9,), shifts=[2]), epsilon="1e-12")
    assert design.objective == pytest.approx(8 / 9, rel=1e-9)
    assert design.objective < 8 / 9  # Uniform noise has the error rate 8/9.
    assert design.bound == pytest.approx(design.objective, rel=1e-15)
    assert design.certificate.holds()


@pytest.mark.parametrize("n", [500, 4000])
def test_the_bound_of_a_wide_loss_agrees_with_the_optimum_to_12_digits(n: int):
    design = wb.design(
        wb.ModuloNoise(n=n, max_shift=2),
        epsilon=1,
        notion="dp",
        delta="0.05",
        loss="circular-squared",
    )
    assert design.objective * (1 - 1e-12) <= design.bound <= design.objective * (1 + 1e-15)
    assert design.certificate.record["bound"] == design.bound


def test_a_stopped_pdp_search_names_the_gap_that_accepts_its_interval():
    question = wb.ModuloNoise(sizes="6x6", max_shift="1 L1")
    request = {"notion": "pdp", "epsilon": 1, "delta": "0.05", "loss": "circular-squared"}
    limit = {"node_limit": 1}
    with pytest.raises(wb.NotProven, match=r"accept this interval with gap 0\.2\.") as error:
        wb.design(question, **request, options=limit)
    assert 0.1 < 1 - error.value.bound / error.value.incumbent <= 0.2
    design = wb.design(question, **request, options=limit, gap=0.2)
    assert design.objective == error.value.incumbent
    assert any("Stopped within the allowed gap" in sentence for sentence in design.words)


def test_an_unproven_pdp_design_has_the_optimum_under_dp_as_its_bound():
    with pytest.raises(wb.NotProven, match=r"incumbent 0\.95, bound 0\.94") as error:
        wb.design(
            wb.ModuloNoise(n=300, max_shift=140),
            notion="pdp",
            epsilon=1,
            delta="0.05",
            time_limit=1,
        )
    dp_design = wb.design(
        wb.ModuloNoise(n=300, max_shift=140), epsilon=1, delta="0.05", notion="dp"
    )
    assert error.value.bound == pytest.approx(dp_design.objective, rel=1e-9)
    assert error.value.bound <= dp_design.objective
    assert any(
        "The bound is the closed form's" in sentence for sentence in error.value.design.words
    )


@pytest.mark.parametrize("notion", ["pure", "dp", "pdp"])
def test_designs_at_large_epsilon_are_proven_if_a_closed_form_is_the_optimum(notion: str):
    random = Random(f"large epsilon, {notion}")
    for _ in range(10):
        n = random.randint(2, 8)
        question = wb.ModuloNoise(
            n=n,
            shifts=random.sample(range(1, n + 1), random.randint(1, 2)),
            directed=random.random() < 0.5,
        )
        epsilon = Fraction(random.randint(1500, 2000), 100)
        delta = random.choice(["0", "1e-6", "0.1"])
        design = wb.design(
            question, epsilon=epsilon, notion=notion, delta=0 if notion == "pure" else delta
        )
        assert design.oracle.kind == "optimum"
        assert design.objective == pytest.approx(design.oracle.value, rel=1e-6, abs=2e-9)
        assert design.bound <= design.objective + 1e-15


def test_a_closed_form_does_not_prove_a_larger_loss():
    question = wb.ModuloNoise(n=3, shifts=[2], directed=True)
    bound, _ = find_closed_form_bound(FAMILY.make_request(question, epsilon=18, notion="pure"))
    assert bound == pytest.approx(math.exp(-18), rel=1e-3)
    assert not LossScale(width=0.75).proves(bound + 1e-8, bound)
    # A constraint can only increase the optimum, so the bound stays valid.
    constrained = FAMILY.make_request(question, epsilon=18, notion="pure", zero_mean=True)
    assert find_closed_form_bound(constrained)[0] == bound


def test_without_time_for_the_exact_program_floats_are_repaired(monkeypatch):
    question = wb.ModuloNoise(n=8, max_shift=3)
    exact = wb.design(question, notion="pdp", epsilon=1.5, delta=0.1, time_limit=600)
    assert exact.origin == "exact optimum of the pattern"
    monkeypatch.setattr(problem, "_EXACT_TIME_FACTOR", 0.0)
    repaired = wb.design(question, notion="pdp", epsilon=1.5, delta=0.1, time_limit=600)
    assert repaired.origin == "solver's floats"
    assert repaired.certificate.privacy.pdp_delta <= Fraction(1, 10)
    assert repaired.objective == pytest.approx(exact.objective, abs=1e-9)


@pytest.mark.parametrize(("notion", "delta"), [("pdp", 0), ("pure", 0), ("dp", 0.1), ("pdp", 0.1)])
def test_a_certified_design_measures_every_difference_once(monkeypatch, notion, delta):
    """Repair, certificate, design and row share one audit of the 4 differences.

    A raw design measures at most one more, to name an outcome that exceeds the budget.
    """
    measured_pairs = []
    original_init = Laws.__init__

    def count_and_init(self, p, q):
        """Record the pair of laws, which is measured once for each `Laws`."""
        measured_pairs.append((p, q))
        original_init(self, p, q)

    monkeypatch.setattr(Laws, "__init__", count_and_init)
    design = wb.design(wb.ModuloNoise(n=8, max_shift=2), epsilon=1, delta=delta, notion=notion)
    assert design.privacy is design.certificate.privacy is design.certificate.deciding_audit
    design.row()
    str(design)
    assert len(measured_pairs) == 4
    measured_pairs.clear()
    wb.design(
        wb.ModuloNoise(n=8, max_shift=2), epsilon=1, delta=delta, notion=notion, certify=False
    ).row()
    assert len(measured_pairs) <= 5


def test_a_certificate_refuses_the_audit_of_another_mechanism():
    mechanism = wb.design(wb.ModuloNoise(n=4, max_shift=1), epsilon=1).mechanism
    twin = wb.AdditiveNoise(mechanism.question, mechanism.masses.integers)
    with pytest.raises(wb.InvalidRequest, match="audited must be an audit of the mechanism itself"):
        wb.Certificate(mechanism, "pure", 1, audited=wb.audit(twin, 1))


def test_a_certificate_audits_again_at_its_own_budget():
    mechanism = wb.design(wb.ModuloNoise(n=4, max_shift=1), epsilon=1).mechanism
    audit_at_larger_epsilon = wb.audit(mechanism, 2)
    with pytest.raises(wb.NotCertified):
        wb.Certificate(mechanism, "pure", "0.5", audited=audit_at_larger_epsilon)


def test_an_audit_of_extremes_does_not_decide_a_claim_with_delta():
    rows = [[2, 1, 1], [1, 2, 1], [1, 1, 2]]
    channel = wb.Channel.from_pairs(rows)
    extremes = audit_extremes(channel, "0.1")
    certificate = wb.Certificate(channel, "dp", "0.1", "0.3", audited=extremes)
    assert certificate.deciding_audit is not extremes
    assert len(certificate.deciding_audit.pairs) == 6  # All ordered pairs of three rows.


def test_the_report_says_how_much_loss_wrapping_around_causes():
    design = wb.design(
        wb.ModuloNoise(n=100, max_shift=1), epsilon=1, delta="1e-5", notion="dp", loss="squared"
    )
    assert any("Wrapping around causes 98% of this loss" in sentence for sentence in design.words)


def test_the_report_does_not_mention_wrapping_around_if_the_loss_is_circular():
    design = wb.design(wb.ModuloNoise(n=8, max_shift=3), epsilon=1.5, loss="circular-squared")
    assert not any("Wrapping" in sentence for sentence in design.words)


@pytest.mark.parametrize("notion", ["pdp", "dp"])
def test_a_delta_within_its_budget_is_not_displayed_above_it(notion):
    """The nearest float is below 0.0018, so the exact delta is rounded up to a float above it.

    The report shows the requested decimal instead.
    """
    design = wb.design(
        wb.ModuloNoise(n=16, shifts=[2]), epsilon=1, delta="0.0018", loss="squared", notion=notion
    )
    assert design.exact[f"{notion}_delta"] > 0.0018
    assert getattr(design.privacy, f"{notion}_delta") <= Fraction(18, 10_000)
    verified = dict(design.family.facts(design))["verified"]
    assert f"{notion.upper()} delta 0.0018," in verified
