"""Test `wb.design` for noise modulo n + 1: results, verdicts, notes and errors for bad input."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from random import Random

import pytest

import workbench as wb
from workbench.families.modulo.family import FAMILY
from workbench.families.modulo.oracle_check import find_closed_form_bound
from workbench.notions.laws import Laws
from workbench.pipeline.loss_scale import LossScale
from workbench.privacy.audit import audit_extremes


def paper(**more):
    return wb.ModuloNoise(n=8, shifts=[1, 2, 3], directed=True, **more)


def test_the_example_of_the_readme():
    d = wb.design(
        paper(), epsilon=1.5, delta=0.1212, notion="pdp", loss="error-rate", solver="highs"
    )
    assert d.objective == pytest.approx(0.450172331, abs=1e-9)
    assert d.mechanism.pmf[0] == pytest.approx(0.549827669, abs=1e-9)
    assert d.bound == pytest.approx(d.objective, abs=1e-8)
    assert d.gap <= 1e-8
    assert d.status == "optimal"
    assert d.oracle.agrees
    assert d.oracle.valid
    assert float(d.privacy.pdp_delta) == pytest.approx(0.054748616, abs=1e-9)
    assert d.privacy.pure_epsilon == math.inf
    assert any("one side" in sentence for sentence in d.words)


def test_json_has_the_promised_keys_and_is_strict():
    made = wb.design(paper(), notion="pdp", epsilon=1.5, delta=0.1212).to_dict()
    text = json.dumps(made, allow_nan=False)
    back = json.loads(text)
    assert {
        "objective",
        "bound",
        "gap",
        "status",
        "solver",
        "pmf",
        "epsilon",
        "delta",
        "notion",
        "directed",
    } <= set(back)
    assert set(back["exact"]) == {"pdp_delta", "dp_delta", "pure_epsilon"}
    assert {"name", "value", "valid", "agrees"} <= set(back["oracle"])
    assert back["exact"]["pure_epsilon"] == "inf"
    assert len(back["pmf"]) == 9
    assert back["epsilon"] == 1.5
    assert back["directed"] is True


def test_symmetric_is_the_default():
    d = wb.design(wb.ModuloNoise(n=8, max_shift=3), epsilon=1.5)
    assert d.objective == pytest.approx(0.589887461, abs=1e-9)
    assert not any("one side" in sentence for sentence in d.words)


def test_a_raw_pmf_that_misses_says_so():
    # ratios tight at e^epsilon round the wrong way somewhere on this grid; each must be reported in words
    missed = 0
    for n in range(5, 12):
        d = wb.design(wb.ModuloNoise(n=n, max_shift=2), epsilon=1.0, certify=False)
        assert d.certificate is None
        assert d.private == (not any("NOT private" in sentence for sentence in d.words))
        missed += not d.private
    assert missed > 0


def test_what_leaves_the_workbench_is_certified():
    for n in range(5, 12):
        d = wb.design(wb.ModuloNoise(n=n, max_shift=2), epsilon=1.0)
        assert d.private
        assert d.certificate.mechanism is d.mechanism
        assert d.certificate.delta == 0
        assert d.mechanism != d.raw
        assert abs(d.above_claimed) < 1e-12
        assert d.above_claimed == d.objective - d.claimed
        assert d.to_dict()["certified"] is True
        assert "certified" in str(d)


def test_extra_constraints_are_kept_exactly():
    from workbench.models.modulo.constraints import NoiseEquations

    d = wb.design(paper(), notion="pdp", epsilon=1.5, delta=0.05, constraints=NoiseEquations((9,)))
    f = d.mechanism.exact_pmf
    assert sum((eta if eta <= 4 else eta - 9) * f[eta] for eta in range(9)) == 0
    assert d.private
    d = wb.design(
        paper(), epsilon=1.5, constraints=NoiseEquations(equal_mass_groups=((1, 8), (2, 7)))
    )
    f = d.mechanism.exact_pmf
    assert f[1] == f[8]
    assert f[2] == f[7]


def test_constraints_that_cannot_be_rechecked_say_so():
    import cvxpy as cp

    d = wb.design(paper(), epsilon=1.5, constraints=lambda f: [cp.norm1(f[1:4] - f[4:7]) <= 0.2])
    assert d.private
    assert any("within the solver's tolerances" in sentence for sentence in d.words)


@pytest.mark.parametrize("notion", ["pdp", "dp"])
def test_least_delta_is_certified_and_keeps_its_budget(notion):
    d = wb.design(paper(), epsilon=1.5, minimise="delta", max_loss=0.4425, notion=notion)
    assert d.private
    assert d.mechanism.masses[0] >= 1 - Fraction("0.4425")
    assert d.certificate.delta == d.claim.delta
    assert float(d.certificate.delta) == pytest.approx(d.claimed, abs=1e-9)


def test_the_least_epsilon_is_not_held_against_a_loss():
    made = wb.design(
        wb.ModuloNoise(n=5, max_shift=1),
        notion="dp",
        delta="1e-3",
        minimise="epsilon",
        max_loss="0.5",
    )
    assert made.above_claimed == 0  # no solver claims an epsilon
    assert "claim" not in made.proof
    assert made.bound <= made.objective < made.bound * (1 + 1e-8)


def test_a_repair_that_the_audit_refuses_is_refused(monkeypatch):
    from workbench.families.modulo import repair

    def hopeless(*_, **__):
        raise wb.NotCertified("nothing helps.")

    monkeypatch.setattr(repair, "solve_exactly", hopeless)
    monkeypatch.setattr(repair, "repair_noise", hopeless)
    with pytest.raises(wb.NotCertified, match="nothing helps"):
        wb.design(paper(), epsilon=1.5)


def test_decimals_are_meant():
    d = wb.design(paper(), notion="pdp", epsilon=0.1, delta="0.3")
    assert d.request.claim.epsilon == Fraction(1, 10)
    assert d.request.claim.delta == Fraction(3, 10)


def test_minimum_delta_with_a_limit():
    d = wb.design(paper(), notion="pdp", epsilon=1.5, minimise="delta", max_loss=0.4425)
    assert d.objective == pytest.approx(0.124395064, abs=1e-9)
    with pytest.raises(wb.Infeasible, match=r"needs delta >= 0\.124395"):
        wb.design(paper(), notion="pdp", epsilon=1.5, minimise="delta", max_loss=0.4425, delta=0.1)
    with pytest.raises(wb.Infeasible, match="below 0"):
        wb.design(paper(), notion="pdp", epsilon=1.5, minimise="delta", max_loss=-0.1)


def test_budgets_per_difference_are_audited_one_by_one():
    d = wb.design(
        wb.ModuloNoise(n=6, shifts=[1, 2]), epsilon={1: 0.5, 2: 1.0}, delta=0.05, notion="dp"
    )
    assert d.privacy.audit_at({1: 0.5, 2: 1.0}).dp_delta.upper <= 0.05 + 1e-9
    plain = wb.design(wb.ModuloNoise(n=6, shifts=[1, 2]), epsilon=0.5, delta=0.05, notion="dp")
    assert d.objective < plain.objective
    assert "epsilon = {'1': 0.5, '2': 1.0}, delta = 0.05" in str(d)


def test_extra_constraints_turn_the_oracle_into_a_bound():
    from workbench.models.modulo.constraints import NoiseEquations

    d = wb.design(paper(), epsilon=1.5, constraints=NoiseEquations((9,)))
    assert d.oracle.kind == "lower bound"
    assert not d.oracle.valid
    assert d.oracle.agrees
    assert d.objective > d.oracle.value


def test_infeasible_constraints():
    with pytest.raises(wb.Infeasible, match="extra constraints"):
        wb.design(paper(), epsilon=1.5, constraints=lambda f: [f[0] >= 0.9])


def test_time_limit_gives_incumbent_and_bound():
    question = wb.ModuloNoise(n=60, max_shift=4)
    with pytest.raises(wb.NotProven) as caught:
        wb.design(question, notion="pdp", epsilon=0.5, delta=0.05, time_limit=1.0, method="literal")
    error = caught.value
    assert "time limit" in str(error)
    if error.incumbent is not None:
        assert error.bound is None or error.bound <= error.incumbent + 1e-9
        assert error.design.mechanism.pmf.sum() == pytest.approx(1.0)


def test_fast_is_the_default_and_the_literal_model_agrees():
    request = {"epsilon": 1.0, "delta": 0.1, "notion": "pdp", "loss": "squared"}
    quick, literal = wb.design(paper(), **request), wb.design(paper(), **request, method="literal")
    assert "patterns" in quick.solution.program.name
    assert "patterns" not in literal.solution.program.name
    assert quick.objective == pytest.approx(literal.objective, abs=1e-8)
    assert quick.bound <= quick.objective
    assert quick.status == "optimal"
    assert (
        "patterns" not in wb.design(paper(), epsilon=1.0).solution.program.name
    )  # a linear program needs neither


def test_a_session_keeps_its_solver_and_changes_nothing():
    with FAMILY.open_session(FAMILY.make_request(paper(), epsilon=1.5, notion="dp")) as session:
        path = [
            session.design({"delta": Fraction(delta)}).objective
            for delta in ("0", "0.1", "0.2", "0.1")
        ]
    cold = [
        wb.design(paper(), epsilon=1.5, delta=delta, notion="dp").objective
        for delta in (0.0, 0.1, 0.2, 0.1)
    ]
    assert path == pytest.approx(cold, abs=1e-9)


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
            "max_loss must be given if delta or epsilon is minimised, and only then",
        ),
        ({"minimise": "delta", "max_loss": float("nan")}, "max_loss must be a finite number"),
        ({"time_limit": -1}, "time_limit must be a finite number of seconds > 0"),
        ({"gap": float("nan")}, "gap must be a finite number >= 0"),
        ({"prior": [0.5, 0.5]}, "prior must be given with loss prior-squared"),
    ],
)
def test_bad_requests(change: dict, message: str):
    request = {"epsilon": 1.5, "delta": 0.0} | change
    with pytest.raises(wb.InvalidRequest, match=message):
        wb.design(paper(), **request)


def test_unknown_solver_and_question():
    with pytest.raises(wb.SolverUnavailable, match="solver must be one of"):
        wb.design(paper(), epsilon=1.5, solver="cplex")
    with pytest.raises(wb.InvalidRequest, match="question must be one of"):
        wb.design(9, epsilon=1.5)
    with pytest.raises(wb.InvalidRequest, match="A query domain must be given"):
        wb.design("modulo", epsilon=1.5)
    with pytest.raises(wb.InvalidRequest, match="family must be one of"):
        wb.design("nois", epsilon=1.5)
    assert (
        wb.design("modulo", n=3, max_shift=1, epsilon=1).objective
        == wb.design(wb.ModuloNoise(n=3, max_shift=1), epsilon=1).objective
    )


def test_solver_not_installed(monkeypatch: pytest.MonkeyPatch):
    from workbench.solvers.backends.highs import Highs

    monkeypatch.setattr(Highs, "is_installed", classmethod(lambda cls: False))
    with pytest.raises(wb.SolverUnavailable, match="highs is not installed"):
        wb.design(paper(), epsilon=1.5)


def test_gurobi_licence_is_known_before_building():
    from workbench.solvers.backend import get_backend

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


def test_the_exact_program_proves_what_a_solver_bound_cannot():
    """A solver's bound is off by about 1e-8 where e^epsilon is 1e7, and the least error is as small."""
    d = wb.design(wb.ModuloNoise(n=4, shifts=[4], directed=True), epsilon=17, notion="pure")
    assert d.bound <= d.objective <= d.bound * (1 + 1e-9)
    assert any("refined in exact arithmetic" in note for note in d.solution.notes)
    assert d.oracle.valid
    assert d.oracle.agrees
    assert d.certificate.holds()


def test_the_bound_of_a_certified_program_proves_what_a_solver_bound_cannot(
    monkeypatch: pytest.MonkeyPatch,
):
    from workbench.families.modulo import problem

    monkeypatch.setattr(
        problem, "should_refine", lambda *_: False
    )  # the answer is the solver's own
    d = wb.design(wb.ModuloNoise(n=4, shifts=[4], directed=True), epsilon=17, notion="pure")
    assert d.bound <= d.objective <= d.bound * (1 + 1e-9)
    assert d.solution.bound < d.objective / 2  # what the solver proved proves nothing
    assert d.oracle.agrees
    assert d.certificate.holds()


@pytest.mark.parametrize("epsilon", ["16.18", "17.5", "19"])
def test_long_cycles_at_large_epsilon_are_proven(epsilon: str):
    """The masses fall to e^(-8 epsilon), of which a solver sees the first three; it calls an error of 1 optimal."""
    d = wb.design(wb.ModuloNoise(n=8, shifts=[1], directed=True), epsilon=epsilon)
    assert d.objective == pytest.approx(d.oracle.value, rel=1e-12)
    assert d.bound <= d.oracle.value * (1 + 1e-15)
    assert d.bound == pytest.approx(d.objective, rel=1e-9)
    assert d.certificate.holds()


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
        notion, loss = (
            random.choice(["pure", "dp"]),
            random.choice(["error-rate", "squared", "circular-squared"]),
        )
        delta = 0 if notion == "pure" else random.choice([1e-9, random.random()])
        d = wb.design(question, epsilon=epsilon, delta=delta, notion=notion, loss=loss)
        assert d.certificate.holds()
        assert d.objective * (1 - 1e-8) <= d.bound <= d.objective * (1 + 1e-15)
        if d.oracle.value is not None:
            assert d.objective == pytest.approx(d.oracle.value, rel=1e-8)


def test_a_solver_that_calls_uniform_noise_infeasible_is_not_believed():
    d = wb.design(wb.ModuloNoise(sizes=(9,), shifts=[2]), epsilon="1e-12")
    assert d.objective == pytest.approx(8 / 9, rel=1e-9)
    assert d.objective < 8 / 9  # it is better than uniform, by about epsilon
    assert d.bound == pytest.approx(d.objective, rel=1e-15)
    assert d.certificate.holds()


@pytest.mark.parametrize("n", [500, 4000])
def test_bounds_of_wide_losses_lose_nothing_to_dual_tolerances(n: int):
    d = wb.design(
        wb.ModuloNoise(n=n, max_shift=2),
        epsilon=1,
        notion="dp",
        delta="0.05",
        loss="circular-squared",
    )
    assert d.objective * (1 - 1e-12) <= d.bound <= d.objective * (1 + 1e-15)
    assert d.certificate.record["bound"] == d.bound


def test_an_unproven_design_has_the_bound_of_the_law_of_dp():
    with pytest.raises(wb.NotProven, match=r"incumbent 0\.95, bound 0\.94") as error:
        wb.design(
            wb.ModuloNoise(n=300, max_shift=140),
            notion="pdp",
            epsilon=1,
            delta="0.05",
            time_limit=1,
        )
    least = wb.design(wb.ModuloNoise(n=300, max_shift=140), epsilon=1, delta="0.05", notion="dp")
    assert error.value.bound == pytest.approx(least.objective, rel=1e-9)
    assert error.value.bound <= least.objective
    assert any(
        "The bound is the closed form's" in sentence for sentence in error.value.design.words
    )


@pytest.mark.parametrize("notion", ["pure", "dp", "pdp"])
def test_no_request_at_large_epsilon_stays_unproven_where_a_closed_form_is_an_optimum(notion: str):
    random = Random(f"large epsilon, {notion}")
    for _ in range(10):
        n = random.randint(2, 8)
        question = wb.ModuloNoise(
            n=n,
            shifts=random.sample(range(1, n + 1), random.randint(1, 2)),
            directed=random.random() < 0.5,
        )
        epsilon, delta = (
            Fraction(random.randint(1500, 2000), 100),
            random.choice(["0", "1e-6", "0.1"]),
        )
        d = wb.design(
            question, epsilon=epsilon, notion=notion, delta=0 if notion == "pure" else delta
        )
        assert d.oracle.kind == "optimum"
        assert d.objective == pytest.approx(d.oracle.value, rel=1e-6, abs=2e-9)
        assert d.bound <= d.objective + 1e-15


def test_a_closed_form_proves_no_answer_that_is_worse():
    question = wb.ModuloNoise(n=3, shifts=[2], directed=True)
    bound, _ = find_closed_form_bound(FAMILY.make_request(question, epsilon=18, notion="pure"))
    assert bound == pytest.approx(1.523e-8, rel=1e-3)
    assert not LossScale(width=0.75).proves(bound + 1e-8, bound)
    constrained = FAMILY.make_request(
        question, epsilon=18, notion="pure", zero_mean=True
    )  # which can only raise the error
    assert find_closed_form_bound(constrained)[0] == bound


def test_where_no_time_is_left_for_the_exact_program_floats_are_repaired(monkeypatch):
    from workbench.families.modulo import problem

    question = wb.ModuloNoise(n=8, max_shift=3)
    exact = wb.design(question, notion="pdp", epsilon=1.5, delta=0.1, time_limit=60)
    assert exact.origin == "exact optimum of the pattern"
    monkeypatch.setattr(problem, "_EXACT_TIME_FACTOR", 0.0)
    late = wb.design(question, notion="pdp", epsilon=1.5, delta=0.1, time_limit=60)
    assert late.origin == "solver's floats"
    assert late.certificate.privacy.pdp_delta <= Fraction(1, 10)
    assert late.objective == pytest.approx(exact.objective, abs=1e-9)


@pytest.mark.parametrize(("notion", "delta"), [("pdp", 0), ("pure", 0), ("dp", 0.1), ("pdp", 0.1)])
def test_a_certified_design_measures_every_difference_once(monkeypatch, notion, delta):
    """Repair, certificate, design and row share one audit; a raw design measures once more for its witness at most."""
    measured = []
    begin = Laws.__init__
    monkeypatch.setattr(
        Laws, "__init__", lambda self, p, q: measured.append(1) or begin(self, p, q)
    )
    d = wb.design(wb.ModuloNoise(n=8, max_shift=2), epsilon=1, delta=delta, notion=notion)
    assert d.privacy is d.certificate.privacy is d.certificate.deciding_audit
    d.row()
    str(d)
    assert len(measured) == 4
    measured.clear()
    wb.design(
        wb.ModuloNoise(n=8, max_shift=2), epsilon=1, delta=delta, notion=notion, certify=False
    ).row()
    assert len(measured) <= 5


def test_a_certificate_takes_no_audit_of_another_mechanism():
    mechanism = wb.design(wb.ModuloNoise(n=4, max_shift=1), epsilon=1).mechanism
    twin = wb.AdditiveNoise(mechanism.question, mechanism.masses.integers)
    with pytest.raises(wb.InvalidRequest, match="audited must be an audit of the mechanism itself"):
        wb.Certificate(mechanism, "pure", 1, audited=wb.audit(twin, 1))
    louder = wb.audit(mechanism, 2)  # at another budget: measured again
    with pytest.raises(wb.NotCertified):
        wb.Certificate(mechanism, "pure", "0.5", audited=louder)


def test_extreme_comparisons_prove_no_delta():
    rows = [[2, 1, 1], [1, 2, 1], [1, 1, 2]]
    channel = wb.Channel.from_pairs(rows)
    few = audit_extremes(channel, "0.1")
    proof = wb.Certificate(channel, "dp", "0.1", "0.3", audited=few)
    assert proof.deciding_audit is not few
    assert len(proof.deciding_audit.pairs) == 6


def test_noise_that_wraps_at_a_price_says_so():
    design = wb.design(
        wb.ModuloNoise(n=100, max_shift=1), epsilon=1, delta="1e-5", notion="dp", loss="squared"
    )
    assert any("Wrapping around causes 98% of this loss" in word for word in design.words)
    design = wb.design(wb.ModuloNoise(n=8, max_shift=3), epsilon=1.5, loss="circular-squared")
    assert not any("Wrapping" in word for word in design.words)


@pytest.mark.parametrize("notion", ["pdp", "dp"])
def test_a_delta_that_is_kept_does_not_look_exceeded(notion):
    """The float nearest to .0018 is below it: the next one above the exact delta would be read as more than asked."""
    made = wb.design(
        wb.ModuloNoise(n=16, shifts=[2]), epsilon=1, delta="0.0018", loss="squared", notion=notion
    )
    assert made.exact[f"{notion}_delta"] > 0.0018
    assert getattr(made.privacy, f"{notion}_delta") <= Fraction(18, 10_000)
    words = dict(made.family.facts(made))["verified"]
    assert f"{notion.upper()} delta 0.0018," in words
