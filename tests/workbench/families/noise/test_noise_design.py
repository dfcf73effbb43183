"""Test designs of noise in Python and on the command line, their files and published columns."""

from __future__ import annotations

import csv
import json
import sys
import warnings
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

import workbench as wb
from workbench.cli import main
from workbench.exact.integer_law import IntegerLaw
from workbench.families.noise.bracket import NoiseClaimBounds
from workbench.families.noise.problem import NoiseProblem
from workbench.families.noise.repair import _is_proven_private
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.privacy.audit import audit
from workbench.privacy.claim import Claim
from workbench.privacy.repair import bound_inverse_exponential, build_staircase_law

ROOT = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(ROOT / "tools"))
import check_certificate  # noqa: E402


def run(capsys: pytest.CaptureFixture[str], text: str) -> tuple[int, str, str]:
    """Run a command line in this process.

    Returns:
        The exit code, standard output and standard error.
    """
    with pytest.raises(SystemExit) as stop:
        main(text.split())
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


# The optimum of noise on the reals at ε = 1 and δ = 0.2 for the absolute error is in this interval.
# Its ends are values of the current program with a smaller gap, pinned.
REAL_OPTIMUM_LOW = 0.558576
REAL_OPTIMUM_HIGH = 0.558765


@pytest.fixture(scope="module")
def real_design() -> wb.Design:
    """Return a design of noise on the reals at ε = 1 and δ = 0.2, with a gap of at most 0.5 %."""
    return wb.design(wb.RealNoise(1), epsilon=1, delta="0.2", loss="absolute", gap="0.005")


def report_integer_noise(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Run the command for noise on the integers at ε = 1 and δ = 1/1000, and return its report."""
    line = "design noise --on integers --sensitivity 1 --epsilon 1 --delta 1e-3 --json"
    code, out, _ = run(capsys, line)
    assert code == 0
    return dict(json.loads(out))


def test_command_line_designs_optimal_integer_noise(capsys):
    report = report_integer_noise(capsys)
    assert (report["status"], report["certified"], report["private"]) == ("optimal", True, True)
    assert 0 <= report["gap"] <= 1e-8
    # Value of the current program, pinned.
    assert report["objective"] == pytest.approx(1.7739, abs=5e-5)


def test_the_reported_masses_have_the_reported_variance(capsys):
    """The default loss is the squared error, and the first mass is the one of noise `first`."""
    report = report_integer_noise(capsys)
    masses = dict(enumerate(report["pmf"], report["first"]))
    assert sum(masses.values()) == pytest.approx(1)
    variance = sum(eta**2 * mass for eta, mass in masses.items())
    assert variance == pytest.approx(report["objective"])


def test_the_report_of_noise_has_the_losses_of_published_noise(capsys):
    """Geometric noise has the mass (1 - α)/(1 + α) α^|η| at η, and the variance 2α/(1 - α)².

    The least private α satisfies 1/(1 + α) - e^ε α/(1 + α) = δ.
    """
    published_losses = report_integer_noise(capsys)["beside"]
    alpha = (1 - 1e-3) / (np.e + 1e-3)
    assert published_losses["geometric"] == pytest.approx(2 * alpha / (1 - alpha) ** 2, rel=1e-6)
    # Value of the current program, pinned.
    assert published_losses["discrete Gaussian"] == pytest.approx(6.4833, abs=5e-3)
    # For sensitivity 1 the staircase is geometric noise, which is listed already.
    assert "staircase" not in published_losses


@pytest.mark.parametrize(
    ("line", "class_name"),
    [
        (
            "design noise --on integers --clamp 0..20 --epsilon 1 --delta 1e-5 --notion dp",
            "optimal noise on all integers, private before it is clamped to 0..20",
        ),
        (
            "design modulo --n 20 --max-shift 1 --epsilon 1 --loss squared --notion dp",
            "optimal noise modulo 21",
        ),
    ],
)
def test_report_names_the_class_in_which_noise_is_optimal(capsys, line: str, class_name: str):
    code, out, _ = run(capsys, line)
    assert code == 0
    assert class_name in " ".join(out.split())


def test_clamped_noise_is_private_before_it_is_clamped():
    """Clamped noise may be private although the noise misses the budget by 4e-17."""
    for epsilon in ("0.7", "1"):
        clamped = wb.design(wb.IntegerNoise(1, clamp=(0, 2)), epsilon=epsilon, delta="1e-4")
        noise = AdditiveIntegerNoise(wb.IntegerNoise(1), clamped.mechanism.noise)
        privacy = audit(noise, Fraction(epsilon))
        assert privacy.meets("dp", epsilon=epsilon, delta="1e-4")


def test_noise_for_many_clamped_answers_is_certified():
    design = wb.design(wb.IntegerNoise(3, clamp=(0, 1000)), epsilon=1, delta="1e-5")
    assert design.certificate.holds()
    assert design.objective == pytest.approx(design.bound, rel=1e-8)


def test_pure_noise_for_many_clamped_answers_raises():
    """Its tails are infinite, so the audit of every answer works with long integers."""
    with pytest.raises(wb.InvalidRequest, match=r"Got 1001 answers\. Clamp to at most \d+ answers"):
        wb.design(wb.IntegerNoise(3, clamp=(0, 1000)), epsilon=1)


def test_grid_finer_than_the_first_grids_can_be_requested():
    """The search begins with at most 32 cells for a sensitivity; this request begins with 33."""
    design = wb.design(wb.RealNoise(1), epsilon=2, delta="0.3", loss="absolute", steps=33)
    assert design.mechanism.steps == 33
    assert design.private


@pytest.mark.parametrize("weights", [[1, 2, 4, 8, 4], [4, 8, 4, 2, 1], [1, 2, 4, 2, 1]])
@pytest.mark.parametrize("delta", ["0.02", "0.2", "0.5", "0.8"])
def test_repair_and_audit_agree_on_privacy(weights: list[int], delta: str):
    noise = AdditiveIntegerNoise(wb.IntegerNoise(2), IntegerLaw(-2, weights))
    claim = Claim("dp", Fraction(1), Fraction(delta))
    assert _is_proven_private(noise, NoiseClaimBounds(claim)) == audit(noise, 1).holds(claim)


def test_fixed_grid_is_not_compared_with_the_optimum_over_grids():
    design = wb.design(wb.RealNoise(1), notion="pure", epsilon="1.5", steps=2)
    assert design.oracle.agrees
    assert design.objective > design.oracle.value * 1.01


def test_frontier_without_values_gives_the_reason(capsys, tmp_path: Path):
    code, out, err = run(capsys, f"frontier noise --max-loss 1e-12 --out {tmp_path}")
    assert (code, err) == (0, "")
    assert "needs epsilon > 20" in " ".join(out.split())


def test_report_at_a_tiny_budget_has_one_table():
    """Published noise is not compared, because its laws have billions of values."""
    design = wb.design(wb.IntegerNoise(1), notion="pure", epsilon="1e-9")
    assert len(design.family.list_tables(design)) <= 1


@pytest.mark.parametrize(
    ("question", "loss"),
    [
        (wb.IntegerNoise(3), "absolute"),
        (wb.IntegerNoise(1, clamp=(0, 6)), "squared"),
        (wb.RealNoise(2), "squared"),
    ],
)
def test_pure_noise_is_the_staircase(question, loss):
    design = wb.design(question, epsilon=1, notion="pure", loss=loss)
    assert design.privacy.meets("pure", 1)
    assert design.objective >= design.bound
    assert design.objective == pytest.approx(design.bound, rel=3e-4)
    assert design.oracle.agrees in (True, None)  # None: no formula for clamped noise.


def test_certificate_states_a_user_defined_loss(tmp_path: Path):
    design = wb.design(wb.IntegerNoise(), epsilon=1, delta="0.01", loss=[0, 1, 1, 5, 9, 9])
    assert design.objective == pytest.approx(design.bound, rel=1e-7)
    design.save(tmp_path / "own.json")
    assert wb.check(tmp_path / "own.json").objective.name == "own"


def test_prior_of_clamped_answers_changes_the_loss():
    options = {"epsilon": 1, "delta": "0.1", "loss": "absolute"}
    question = wb.IntegerNoise(clamp=(0, 3))
    one_answer = wb.design(question, prior=[1, 0, 0, 0], **options)
    uniform = wb.design(question, **options)
    assert one_answer.objective < uniform.objective
    assert one_answer.objective == pytest.approx(one_answer.bound, rel=1e-7)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("--on integers --sensitivity 0 --epsilon 1", "sensitivity must be"),
        ("--on integers --sensitivity 1/2 --epsilon 1", "sensitivity must be an integer"),
        ("--on reals --epsilon 1 --delta 1", "delta must be less for noise on the reals"),
        ("--on integers --clamp 4..0 --epsilon 1", "clamp must be"),
        ("--on integers --epsilon 1 --loss missing.csv", "loss must be"),
        ("--on integers --epsilon 1 --delta 0.1 --notion pure", "delta must be 0"),
        ("--on integers --epsilon 1 --notion pdp", "notion must be one of dp, pure"),
        (
            "--on integers --sensitivity 5000 --notion zcdp --rho 0.1",
            "Use a sensitivity of at most",
        ),
        ("--on moon --epsilon 1", "on must be one of integers, reals"),
        ("--on integers --epsilon 1e300 --delta 0.01", "epsilon must be between"),
        ("--on integers --epsilon 1e6 --notion pure", "epsilon must be between"),
        ("--on reals --epsilon 1e-300 --delta 0.01", "epsilon must be between"),
        ("--on integers --notion curve --curve 1e300:0.1", "epsilon must be between"),
        ("--on reals --notion curve --curve 0.5:1", "delta must be less for noise on the reals"),
        ("--on reals --minimise epsilon --max-loss -1 --notion pure", "max_loss must be > 0"),
    ],
)
def test_invalid_options_print_one_sentence(capsys, text: str, sentence: str):
    code, _, err = run(capsys, f"design noise {text}")
    assert code == 2
    assert sentence in err
    assert err.count("\n") == 1


def test_real_noise_is_bounded_from_both_sides(real_design: wb.Design):
    assert real_design.bound >= REAL_OPTIMUM_LOW * (1 - 5e-3)
    assert real_design.bound <= real_design.objective
    assert real_design.objective <= REAL_OPTIMUM_HIGH * (1 + 5e-3)
    assert real_design.oracle.name == "truncated Laplace"


def test_the_certificate_of_real_noise_holds_for_all_real_shifts(real_design: wb.Design):
    certificate = real_design.certificate
    assert certificate.holds()
    assert any("all real shifts" in sentence for sentence in certificate.sentences)


def test_real_noise_is_drawn_beside_published_noise(real_design: wb.Design, tmp_path: Path):
    real_design.plot(tmp_path / "r.svg")
    picture = (tmp_path / "r.svg").read_text()
    assert "truncated Laplace" in picture
    assert "Gaussian" in picture


@pytest.mark.parametrize("solver", ["gurobi", "cvxpy:clarabel", "ortools:pdlp"])
def test_every_solver_with_duals_bounds_real_noise(solver: str):
    design = wb.design(
        wb.RealNoise(1), epsilon=1, delta="0.2", loss="absolute", gap="0.01", solver=solver
    )
    assert design.certificate.holds()
    assert design.bound <= REAL_OPTIMUM_HIGH
    assert REAL_OPTIMUM_LOW <= design.objective <= design.bound * 1.01
    assert design.details["solver"] == solver


def test_solver_without_duals_raises():
    with pytest.raises(wb.InvalidRequest, match="dual values"):
        wb.design(wb.RealNoise(1), epsilon=1, delta="0.2", loss="absolute", solver="scip")


@pytest.mark.parametrize("shift", ["1/3", "0.77", "0.999", "1"])
def test_shifts_between_grid_points_are_covered(real_design: wb.Design, shift: str):
    """The hockey stick at a real shift is a sum over the intervals between all edges of cells.

    The atom at 0 adds its whole mass, because the shifted law has no atom there.
    """
    mechanism = real_design.mechanism
    s = float(Fraction(shift))
    edges, densities = mechanism.density()
    cuts = np.unique(np.concatenate([edges, edges - s, edges + s]))
    middles = (cuts[1:] + cuts[:-1]) / 2

    def compute_density(x: np.ndarray) -> np.ndarray:
        """Return the density without the atom at x. It is 0 beyond the cells."""
        cells = np.searchsorted(edges, x) - 1
        is_inside = (cells >= 0) & (cells < densities.size)
        return np.where(is_inside, densities[np.clip(cells, 0, densities.size - 1)], 0.0)

    excesses = np.maximum(compute_density(middles) - np.e * compute_density(middles + s), 0)
    atom = float(mechanism.atom / mechanism.total)
    assert (excesses * np.diff(cuts)).sum() + atom <= 0.2 + 1e-9


def test_changed_certificate_is_rejected(real_design: wb.Design, tmp_path: Path):
    real_design.save(tmp_path / "r.json")
    data = json.loads((tmp_path / "r.json").read_text())
    check_certificate.prove_statement(data)
    for change in (
        lambda d: d["claim"].update(delta="0.19"),
        lambda d: d["claim"].update(epsilon="0.9"),
        lambda d: d["objective"].update(value="0.5"),
        lambda d: d["mechanism"].update(atom="1e200"),
        lambda d: d["mechanism"].update(sensitivity="2"),
    ):
        changed_data = json.loads(json.dumps(data))
        change(changed_data)
        (tmp_path / "changed.json").write_text(json.dumps(changed_data))
        with pytest.raises(check_certificate.Refused):
            check_certificate.prove_statement(changed_data)
        with pytest.raises(wb.CorruptFile):
            wb.check(tmp_path / "changed.json")


def test_draws_of_real_noise_follow_the_density():
    """Half of the mass is an atom at 0. The rest lies on the cells -0.75..-0.25..0.25..0.75.

    Their shares are 1/4, 1/2 and 1/4.
    """
    noise = wb.AdditiveRealNoise.from_masses(
        wb.RealNoise(1, grid="1/1024"), steps=2, first=-1, weights=[1, 2, 1], atom=4
    )
    answer = Fraction(1, 3)
    draws = wb.sample(noise, 40_000, answer=answer, insecure_seed=5)
    assert np.array_equal(draws * 1024, np.round(draws * 1024))
    # Published values are rounded to the grid, so the noise 0 gives the rounded answer.
    is_atom = draws == round(1024 * answer) / 1024
    assert np.mean(is_atom) == pytest.approx(0.5, abs=0.01)
    noise_draws = draws[~is_atom] - float(answer)

    def compute_cdf(x):
        """Return the probability that noise without the atom is at most x."""
        return np.interp(x, [-0.75, -0.25, 0.25, 0.75], [0, 0.25, 0.75, 1])

    assert kstest(noise_draws, compute_cdf).pvalue > 1e-4


def test_draws_reach_into_the_tails():
    """The law is geometric with the masses 2^-|η|/3. All noise beyond ±6 is counted together."""
    law = IntegerLaw(first=0, weights=[1], period=1, ratio=Fraction(1, 2))
    draws = wb.sample(wb.AdditiveIntegerNoise(wb.IntegerNoise(), law), 40_000, insecure_seed=3)
    eta = np.arange(-6, 7)
    masses = 0.5 ** abs(eta) / 3
    expected_shares = np.append(masses, 1 - masses.sum())
    counts = np.append((draws[:, None] == eta).sum(axis=0), (abs(draws) > 6).sum())
    assert chisquare(counts, 40_000 * expected_shares).pvalue > 1e-4


@pytest.mark.parametrize(
    "law",
    [
        IntegerLaw(first=-2, weights=[1, 2, 5, 2, 1], period=2, ratio=Fraction(1, 3)),
        IntegerLaw(first=-3, weights=[0, 0, 1, 1], period=3, ratio=Fraction(3, 10)),
        IntegerLaw(first=0, weights=[1], period=1, ratio=Fraction(1, 2)),
    ],
)
def test_laws_with_tails_sum_to_one(law: IntegerLaw):
    wide = law.weights_between(low=-60, high=60)
    assert float(sum(wide)) == pytest.approx(float(law.total))
    for eta in (-9, -3, -2, 0, 1, 3, 4, 10):
        assert float(law.weight_below(eta)) == pytest.approx(
            float(sum(law.weights_between(-80, eta - 1)))
        )
    for power, beyond in ((1, (0, 1)), (2, (0, 0, 1))):
        mean = law.mean(lambda eta, p=power: Fraction(abs(eta) ** p), tuple(map(Fraction, beyond)))
        near = sum(w * abs(eta) ** power for eta, w in zip(range(-60, 61), wide, strict=True))
        assert float(mean) == pytest.approx(float(near / law.total))
    for shift in (-3, 1, 2):
        p, q, _ = law.compare_with_shift(shift)
        assert sum(p) == sum(q) == law.total
    assert sum(law.clamp(-1, 5).integers) == law.clamp(-1, 5).total


def test_noise_that_is_not_private_is_repaired():
    rough = wb.AdditiveIntegerNoise(wb.IntegerNoise(), IntegerLaw(first=-1, weights=[1, 4, 1]))
    proof = wb.certify(rough, "dp", 1, "0.1")
    assert proof.holds()
    pure = wb.certify(rough, "pure", 1)
    assert pure.privacy.pure_epsilon <= 1
    stairs = wb.AdditiveIntegerNoise(
        wb.IntegerNoise(4),
        build_staircase_law(bound_inverse_exponential(Fraction(1)), reach=4, inner=2),
    )
    assert wb.audit(stairs, 1).holds(Claim.for_mechanism("pure", stairs, {"epsilon": 1}))


def test_column_of_salaries_is_published(capsys, tmp_path: Path):
    design = wb.design(
        wb.RealNoise(200_000), epsilon="0.5", delta="0.05", loss="absolute", gap="0.02"
    )
    # The loss of noise for sensitivity 1 at this budget: value of the current program, pinned.
    assert design.objective == pytest.approx(200_000 * 1.3572, rel=0.02)
    design.save(tmp_path / "noise.json")
    rows = [[k, f"{(k * 7919) % 200_000}.25"] for k in range(500)]
    with (tmp_path / "in.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", "salary"], *rows])
    target = tmp_path / "out.csv"
    command = (
        f"privatise noise {tmp_path}/in.csv --column salary "
        f"--mechanism {tmp_path}/noise.json --out {target}"
    )
    code, _, err = run(capsys, f"{command} --id id --clip 0..200000")
    assert (code, err) == (0, "")
    with target.open() as file:
        published = [float(row["salary"]) for row in csv.DictReader(file)]
    errors = np.abs(np.array(published) - [float(salary) for _, salary in rows])
    assert errors.mean() == pytest.approx(design.objective, rel=0.3)
    report = json.loads((tmp_path / "out.csv.json").read_text())
    assert report["expected_error"]["mean absolute error"] == pytest.approx(design.objective)
    assert report["budget"] == {"epsilon": 0.5, "delta": 0.05, "per_distance": False}


@pytest.mark.parametrize(
    "options",
    [
        "--on integers --minimise epsilon --max-loss 4",
        "--on integers --minimise delta --epsilon 1 --max-loss 1",
        "--on reals --minimise epsilon --max-loss 4",
    ],
)
def test_table_compares_losses_if_a_budget_is_minimised(
    capsys: pytest.CaptureFixture[str], options: str
):
    """The report prints the smallest ε or δ, but its table of published noise shows losses."""
    _, out, _ = run(capsys, f"design noise {options} --loss squared")
    (line,) = [line for line in out.splitlines() if line.strip().startswith("this design")]
    shown_loss = float(line.split()[-1])
    max_loss = float(options.split()[-1])
    assert shown_loss == pytest.approx(max_loss, rel=1e-6)
    assert shown_loss <= max_loss


@pytest.mark.timeout(600)
def test_large_sensitivity_is_solved():
    """About 2,900 of 32,352 excesses are stated. The whole program takes a minute."""
    design = wb.design(wb.IntegerNoise(sensitivity=32), epsilon=1, delta="1e-5", time_limit=300)
    # Value of the current program, pinned.
    assert design.objective == pytest.approx(1962.28493, abs=1e-5)
    assert design.objective * (1 - 1e-8) <= design.bound <= design.objective
    assert design.certificate.holds()


@pytest.mark.parametrize("question", [wb.IntegerNoise(2), wb.RealNoise(1)])
def test_uncertified_loss_below_its_bound_is_not_proven(question):
    """Programs stopped by a time limit return laws that are not private and cost too little."""
    d = wb.design(question, epsilon=1, delta="0.01", loss="absolute", gap="0.01", certify=False)
    problem = NoiseProblem(d.request)
    assert problem.require_proof(d).objective == d.objective
    with pytest.raises(wb.NotProven, match="before its noise was private") as stop:
        problem.require_proof(replace(d, objective=0.9 * d.bound))
    assert stop.value.incumbent is None
    assert stop.value.bound == d.bound


def test_steep_staircase_has_narrow_cells():
    """γ = 0.0075 at ε = 14. 64 cells of at least 1/128 of the sensitivity cost 0.2 % more."""
    steep = wb.design(wb.RealNoise(1), epsilon=14, loss="squared")
    assert steep.private
    assert 0 <= steep.objective - steep.bound <= 1e-8 * steep.objective


def test_many_runs_at_a_large_epsilon_do_not_warn() -> None:
    question = wb.IntegerNoise(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        design = wb.design(question, epsilon=400, delta="1e-6", runs=64)
    assert 0 <= design.objective <= 0.004
    assert design.bound is None  # No bound is proven over designs for several runs.
