"""Test the methods rqm, erm, optm-theorem6 and optm-authors, and the bounds of OPTM's programs.

Equation, theorem and table numbers are those of Cai et al. 2024. Inputs are in [-1, 1]. A two-bin
quantizer chooses a bin on the left of the input and one on the right, and publishes one of both. A
selection has the probabilities of these choices: row j for j + 1 bins on a side, from the outermost
bin inwards. q is the parameter of RQM, and γ (gamma) the one of ERM.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import workbench as wb
from workbench.errors import InvalidRequest, NotProven
from workbench.families.quantizer.family import FAMILY
from workbench.families.quantizer.laws import LawQuestion
from workbench.families.quantizer.optm import ProgramSolver
from workbench.families.quantizer.optm_programs import OptmChoices
from workbench.families.quantizer.parameter_search import find_best_parameter, find_largest_gamma
from workbench.mechanisms.baselines.two_bin import equal_bins, erm, rqm
from workbench.pipeline.option import read_options
from workbench.privacy.audit import audit_extremes
from workbench.privacy.certificate import Certificate
from workbench.questions.density import normal_density
from workbench.solvers.search import Deadline

BINS = "-3,-0.5,0.5,3"
WIDE_BINS = "-2,-0.9,0.9,2"


def design(bins: str = BINS, **options: Any) -> wb.Design:
    """Design a quantizer for uniform inputs at ε = 1."""
    return wb.design(wb.Quantization(bins), **{"epsilon": 1, **options})


def compute_law(bins: np.ndarray, selection: list[np.ndarray], x: float, count: int) -> np.ndarray:
    """Compute the law (4) at x, with `count` bins left of x, from the definition of Algorithm 1.

    Args:
        bins: The outputs in increasing order. Shape (m,).
        selection: Row j has j + 1 probabilities, for j = 0..m - 2.
        x: The input.
        count: The number of bins left of x.

    Returns:
        The probability of each bin. Shape (m,).
    """
    m = len(bins)
    law = np.zeros(m)
    for left in range(count):
        for right in range(count, m):
            pair_mass = selection[count - 1][left] * selection[m - count - 1][m - 1 - right]
            left_share = (bins[right] - x) / (bins[right] - bins[left])
            law[left] += pair_mass * left_share
            law[right] += pair_mass * (1 - left_share)
    return law


def compute_epsilon(bins: np.ndarray, selection: list[np.ndarray]) -> float:
    """Compute ε from the laws at both ends of every interval between bins."""
    knots = [-1.0, *(b for b in bins if -1 < b < 1), 1.0]
    laws = []
    for a, b in itertools.pairwise(knots):
        count = int(np.searchsorted(bins, a, side="right"))
        laws += [compute_law(bins, selection, a, count), compute_law(bins, selection, b, count)]
    masses = np.array(laws)
    return float(np.log(masses.max(axis=0) / masses.min(axis=0)).max())


def make_rqm_selection(bins: np.ndarray, q: float) -> list[np.ndarray]:
    """Return the selection of RQM for four bins: every inner bin is left out with probability q."""
    rows = [[1.0], [1 - q, q], [(1 - q) ** 2, q * (1 - q), q]]
    return [np.array(row) for row in rows]


def make_erm_selection(bins: np.ndarray, gamma: float) -> list[np.ndarray]:
    """Return the selection of ERM for four bins, with exponential weights of distances."""
    rows = []
    for j in range(3):
        distances = bins[: j + 1] - bins[j]
        weights = np.exp(gamma * distances / (2 * max(bins[j] - bins[0], 1e-9)))
        rows.append(weights / weights.sum())
    return rows


@pytest.mark.parametrize(
    ("method", "parameter", "epsilon"), [("rqm", "q", 1.5), ("erm", "gamma", 2)]
)
def test_a_parameter_method_has_the_largest_private_parameter(
    method: str, parameter: str, epsilon: float
):
    """A step of 1e-4 beyond the parameter breaks privacy, by a float computation of (4)."""
    bins = np.array([-2.7, -0.9, 0.9, 2.7])
    make_selection = make_rqm_selection if method == "rqm" else make_erm_selection
    # The first note is such as "q = 0.22 ...".
    note = design("-2.7,-0.9,0.9,2.7", method=method, epsilon=epsilon).words[0]
    assert note.startswith(f"{parameter} = ")
    value = float(note.split()[2])
    assert compute_epsilon(bins, make_selection(bins, value)) <= epsilon + 1e-9
    assert compute_epsilon(bins, make_selection(bins, value + 1e-4)) > epsilon


@pytest.mark.parametrize("method", ["rqm", "erm"])
def test_a_design_by_a_parameter_is_certified_and_not_proven_optimal(method: str):
    result = design("-2.7,-0.9,0.9,2.7", method=method, epsilon=2)
    assert result.private
    assert isinstance(result.certificate, Certificate)
    assert result.status == "found"
    assert result.bound is None


def test_the_largest_gamma_is_found_by_a_scan_too():
    bins = [Fraction(b) for b in ("-3", "-1", "1", "3")]
    gamma = find_largest_gamma(bins, "1.6", decimals=1)
    tenths = [Fraction(k, 10) for k in range(50)]
    private_tenths = [g for g in tenths if audit_extremes(erm(bins, g), 0).meets("pure", "1.6")]
    assert gamma == max(private_tenths)


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_the_error_never_increases_with_the_parameter(loss: str):
    """This is why the largest private parameter is the best one."""
    bins = (Fraction(-3), Fraction(-7, 10), Fraction(1, 10), Fraction(1), Fraction(4))
    symmetric_bins = (Fraction(-3), Fraction(-7, 10), Fraction(0), Fraction(7, 10), Fraction(3))
    density = normal_density(mu=0.3, sigma=0.5)
    rqm_errors = [rqm(bins, Fraction(k, 10)).expected_loss(loss, density) for k in range(10)]
    erm_errors = [erm(symmetric_bins, k).expected_loss(loss, density) for k in range(10)]
    assert (np.diff(rqm_errors) <= 0).all()
    assert (np.diff(erm_errors) <= 0).all()


def test_erm_without_a_private_parameter_is_an_error():
    """The paper prints N/A for ERM at ε = 0.5; at these bins even γ = 0 is not private."""
    with pytest.raises(NotProven, match="No parameter of ERM is private for these bins"):
        design("-4.5,-0.5,0.5,4.5", method="erm", epsilon=0.5)


def test_the_search_of_erm_is_not_worse_than_the_printed_erm():
    """Table 5 prints bins ±2.7, ±0.4 and γ = 0.043 at ε = 1.5; Table 1 prints the error 1.304."""
    printed = erm(["-2.7", "-0.4", "0.4", "2.7"], "0.043")
    optimum = find_best_parameter("erm", None, 4, LawQuestion(Fraction(3, 2)))
    assert optimum is not None
    assert optimum.quantizer.mae() <= printed.mae()
    assert audit_extremes(optimum.quantizer, 0).meets("pure", "1.5")


def test_the_search_of_erm_with_three_outputs_beats_every_tenth_outer_bin():
    """The only other parameter is γ, whose largest private value a scan confirms above."""
    optimum = find_best_parameter("erm", None, 3, LawQuestion(Fraction(2)))
    assert optimum is not None
    assert not optimum.is_stopped
    errors = []
    for outer in range(14, 40):
        bins = (Fraction(-outer, 10), Fraction(0), Fraction(outer, 10))
        gamma = find_largest_gamma(bins, 2, decimals=3)
        if gamma is not None:
            errors.append(erm(bins, gamma).mae())
    assert optimum.quantizer.mae() <= min(errors)


class CountingDeadline(Deadline):
    """A deadline that has passed after it was asked a number of times.

    Args:
        allowed_count: The number of questions that are answered with "not yet".
    """

    def __init__(self, allowed_count: int) -> None:
        super().__init__(60)
        self.allowed_count = allowed_count
        self.asked_count = 0

    @property
    def has_passed(self) -> bool:
        """Return whether it was asked more often than allowed."""
        self.asked_count += 1
        return self.asked_count > self.allowed_count


@pytest.mark.parametrize("method", ["rqm", "erm"])
def test_a_search_for_bins_keeps_the_best_ones_at_its_deadline(method: str):
    """The first private bins are among the first eight trials at ε = 2."""
    question = LawQuestion(Fraction(2), deadline=CountingDeadline(8))
    best_so_far = find_best_parameter(method, None, 3, question)
    assert best_so_far is not None
    assert best_so_far.is_stopped
    assert audit_extremes(best_so_far.quantizer, 0).meets("pure", 2)


@pytest.mark.parametrize("method", ["rqm", "erm"])
def test_a_search_for_bins_that_ends_without_any_is_not_proven(method: str):
    question = LawQuestion(Fraction(2), deadline=CountingDeadline(0))
    with pytest.raises(NotProven, match=f"a private parameter of {method.upper()} were found"):
        find_best_parameter(method, None, 3, question)


@pytest.mark.parametrize("method", ["rqm", "erm"])
def test_a_design_says_that_its_search_for_bins_was_stopped(
    monkeypatch: pytest.MonkeyPatch, method: str
):
    counter = itertools.count()
    monkeypatch.setattr(Deadline, "has_passed", property(lambda self: next(counter) >= 8))
    result = wb.design(wb.Quantization(levels=3), epsilon=2, method=method)
    assert "The time limit stopped the search for bins. Better bins may exist." in result.words
    assert result.private


@pytest.mark.parametrize(
    ("bins", "options"),
    [
        (BINS, {"method": "optm"}),
        (BINS, {"method": "optm", "slice_width": "0.05"}),
        (BINS, {"method": "optm-authors"}),
        (BINS, {"method": "optm-theorem6"}),
        (BINS, {"method": "product"}),
        ("", {"method": "optm"}),
    ],
)
def test_an_interrupted_search_closes_its_solvers(
    monkeypatch: pytest.MonkeyPatch, bins: str, options: dict[str, str]
):
    closed_solvers: list[ProgramSolver] = []

    def interrupt(solver: ProgramSolver, lp: object) -> None:
        """End like a solver that reaches its time limit."""
        raise NotProven("The time limit ended the search.")

    monkeypatch.setattr(ProgramSolver, "_solve", interrupt)
    monkeypatch.setattr(ProgramSolver, "close", lambda solver: closed_solvers.append(solver))
    question = wb.Quantization(bins) if bins else wb.Quantization(levels=4)
    with pytest.raises(NotProven):
        wb.design(question, epsilon=1, **options)
    assert len(closed_solvers) == 1


def test_two_optimised_outputs_of_rqm_are_randomized_response():
    question = wb.Quantization(levels=2)
    result = wb.design(question, epsilon=1, method="rqm")
    assert result.objective == pytest.approx(wb.design(question, epsilon=1).objective, abs=1e-6)


def test_rqm_in_the_units_of_the_data_is_scaled():
    scaled = wb.design(wb.Quantization("-200,0,100,300", range="0..100"), epsilon=1, method="rqm")
    unscaled = design("-5,-1,1,5", method="rqm")
    assert scaled.objective == pytest.approx(50 * unscaled.objective, rel=1e-12)
    assert scaled.private


def solve_authors_slice(low: float) -> tuple[float, np.ndarray]:
    """Solve the authors' program on one slice at the bins ±3, ±0.5 and ε = 1 by scipy.

    The rows are those of optm.py of DP_Linprog, written out. Returns the objective (inf without a
    solution) and q_2(1), q_3(1), q_3(2).
    """
    b1, b2, b3, b4 = -3.0, -0.5, 0.5, 3.0
    u = low + 0.01
    # Linear expressions: the constant, and the coefficients of q_2(1), q_3(1), q_3(2).
    q21, q31, q32 = np.eye(4)[1:]
    q22 = np.eye(4)[0] - q21
    q33 = np.eye(4)[0] - q31 - q32
    p11 = q33 * (b2 + 1) / (b2 - b1) + q32 * (b3 + 1) / (b3 - b1) + q31 * (b4 + 1) / (b4 - b1)
    lp21 = u * (q22 * (b3 - b2) / (b3 - b1) + q21 * (b4 - b2) / (b4 - b1))
    lp31 = q31 * (b4 - b3) / (b4 - b1)
    sp21 = q32 * (b3 - b2) / (b3 - b1) + q31 * (b4 - b2) / (b4 - b1)
    sp31 = low * q21 * (b4 - b3) / (b4 - b1)
    sp41 = q31 * (b4 - 1) / (b4 - b1)
    inner_smaller = (
        q22 * low * (b4 - b3) / (b4 - b2),
        q32 * (b4 - 1) / (b4 - b2),
        q33 * (b4 - 1) / (b4 - b3),
    )
    pairs = [(z, w) for z in (p11, lp21, lp31) for w in (sp21, sp31, sp41)]
    pairs += [(z, w) for z in (q22, q33) for w in inner_smaller]
    rows = np.array([z - np.e * w for z, w in pairs])
    cost = (b2 + 1) * (q32 * (b3 - b2) + q31 * (b4 - b2)) - 2 * b2 * (b2 - b1) * q21
    result = linprog(
        cost[1:],
        A_ub=np.vstack([rows[:, 1:], [0, 1, 1]]),
        b_ub=np.append(-rows[:, 0], 1 - 1e-5),
        bounds=[(low, u), (1e-5, 1), (1e-5, 1)],
    )
    return (result.fun, result.x) if result.success else (np.inf, np.zeros(3))


def test_the_authors_program_has_the_error_of_an_lp_written_out():
    """The program of the public code gives the printed 1.882 at ε = 1 (Table 1)."""
    _, q = min((solve_authors_slice(k / 100) for k in range(60, 75)), key=lambda pair: pair[0])
    bins = np.array([-3, -0.5, 0.5, 3])
    selection = [np.ones(1), np.array([q[0], 1 - q[0]]), np.array([q[1], q[2], 1 - q[1] - q[2]])]
    points = np.linspace(-1, 1, 51)
    counts = np.searchsorted(bins, points, side="right")
    errors = [
        compute_law(bins, selection, x, int(count)) @ np.abs(bins - x)
        for x, count in zip(points, counts, strict=True)
    ]
    result = design(method="optm-authors")
    assert result.mechanism.mae_51 == pytest.approx(np.mean(errors), abs=1e-6)
    assert result.mechanism.mae_51 == pytest.approx(1.882, abs=5e-4)
    assert result.private
    assert result.certificate is not None


def test_the_authors_program_of_skewed_inputs_has_its_recorded_error():
    """The authors' asymmetric program at the bins of Table 6 has the exact MAE 1.7740.

    Table 2 prints 1.778, an average over 1000 inputs. The best slices are these.
    """
    question = wb.Quantization("-4,0.2,0.6,4", density="normal:0.5,0.1")
    bounds = {"lower_bound": "0.6,0.65", "upper_bound": "0.61,0.66"}
    result = wb.design(question, epsilon=1, method="optm-authors", **bounds)
    assert result.mechanism.mae(question.density) == pytest.approx(1.7740, abs=5e-5)
    assert result.private
    assert result.mechanism.bias == 0


def test_bounds_of_optm_solve_the_program_of_one_slice():
    """The best slice of the search has the objective of the search."""
    best = design(method="optm")
    slices = [(Fraction(k, 100), Fraction(k + 1, 100)) for k in range(67, 72)]
    objectives = []
    for low, high in slices:
        result = design(method="optm", lower_bound=[low], upper_bound=[high], certify=False)
        objectives.append(result.objective)
    assert min(objectives) == pytest.approx(best.objective, abs=1e-7)


def test_thinner_slices_of_optm_have_a_smaller_error_bound():
    wide = design(method="optm", slice_width="0.05")
    thin = design(method="optm", slice_width="0.002")
    assert thin.objective < design(method="optm").objective < wide.objective


def test_the_program_of_theorem_6_is_private_and_not_better_than_theorem_5():
    reduced = design(WIDE_BINS, method="optm-theorem6", epsilon=3)
    assert reduced.private
    assert reduced.objective > design(WIDE_BINS, method="optm", epsilon=3).objective
    grid_point = {"upper_bound": "1", "lower_bound": "0.3,0"}
    assert (
        design(WIDE_BINS, method="optm-theorem6", epsilon=3, **grid_point).objective
        >= reduced.objective
    )


@pytest.mark.parametrize("outer", ["1.5", "2.6", "2.8", "6"])
def test_theorem_6_needs_outer_bins_within_three_times_the_inner_ones(outer: str):
    """Its rows q_2(1) <= q_2(2), q_2(1)/(B_4 - B_3) >= q_1(1)/(B_4 - B_2) need B <= 3b."""
    bins = tuple(Fraction(b) for b in (f"-{outer}", "-0.9", "0.9", outer))
    answer = OptmChoices("optm-theorem6").solve(bins, LawQuestion(Fraction(25)))
    assert (answer is not None) == (Fraction(outer) <= 3 * Fraction("0.9"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "optm", "lower_bound": "0.1,0.2"}, "1 numbers, one each for q_2\\(1\\)"),
        ({"method": "optm", "lower_bound": "0.4", "upper_bound": "0.3"}, "at most upper_bound"),
        ({"method": "optm", "slice_width": "0.9"}, "slice_width must be a number from 0.0001"),
        ({"method": "optm", "slice_width": "0.1", "lower_bound": "0.4"}, "left out with bounds"),
        ({"method": "optm-theorem6", "slice_width": "0.1"}, "which has no slices"),
        ({"method": "exact", "upper_bound": "0.4"}, "optm-authors, not exact. Got 0.4."),
        ({"method": "rqm", "solver": "ortools:glop"}, "solver must be left out with method rqm"),
        ({"method": "optm-authors", "loss": "squared"}, "loss must be absolute with method optm-a"),
        ({"method": "erm", "metric": "absolute"}, "metric must be left out with method erm"),
    ],
)
def test_a_choice_that_does_not_fit_the_method_is_an_error(options: dict[str, Any], message: str):
    with pytest.raises(InvalidRequest, match=message):
        design(**options)


@pytest.mark.parametrize(
    ("question", "options", "message"),
    [
        ({"bins": "-3,-0.5,0.6,3"}, {"method": "erm"}, "symmetric around the middle"),
        ({"bins": "-3,-0.5,0.6,3"}, {"method": "optm-theorem6"}, "symmetric for method optm-t"),
        ({"bins": "-3,0,3"}, {"method": "optm-authors"}, "four numbers for method optm-authors"),
        ({"levels": 4}, {"method": "optm-authors"}, "method must be optm, rqm or erm without bins"),
        ({"levels": 4}, {"method": "optm", "lower_bound": "0.1"}, "unless bins are given"),
        ({"levels": 4}, {"method": "rqm", "reach": 5}, "reach must be left out with method rqm"),
        (
            {"bins": "-3,-0.8,-0.2,0.2,0.8,3"},
            {"method": "optm", "slice_width": "0.1"},
            "slice_width must be left out unless q_2",
        ),
    ],
)
def test_a_question_that_does_not_fit_the_method_is_an_error(
    question: dict[str, Any], options: dict[str, Any], message: str
):
    with pytest.raises(InvalidRequest, match=message):
        wb.design(wb.Quantization(**question), epsilon=1, **options)


def test_equal_bins_of_rqm_are_searched():
    """The outputs of `--levels` are equally spaced, as the papers define RQM."""
    result = wb.design(wb.Quantization(levels=4), epsilon=1, method="rqm")
    outputs = result.mechanism.bins
    assert outputs == equal_bins(4, outputs[-1])
    # Table 1 prints 1.993 for bins ±2.7, ±0.9.
    assert result.mechanism.mae_51 < 1.993


@pytest.mark.parametrize("bins", [("6", "0.4"), ("3", "0.5"), ("2.2", "0.4"), ("2.6", "0.4")])
def test_theorem_6_has_no_solution_at_the_printed_outputs(bins: tuple[str, str]):
    """The symmetric outputs of OPTM in Tables 3-5 and 7-9, even at ε = 25."""
    outer, inner = map(Fraction, bins)
    answer = OptmChoices("optm-theorem6").solve(
        (-outer, -inner, inner, outer), LawQuestion(Fraction(25))
    )
    assert answer is None


def test_a_frontier_has_erm_as_a_method_and_rqm_as_a_baseline():
    table = wb.frontier("quantizer", levels="2", epsilon="1", method="erm").to_frame()
    curves = table.set_index("mechanism")["curve"]
    assert curves["erm"] == "point"
    assert curves["rqm"] == "baseline"
    with pytest.raises(InvalidRequest, match="method"):
        wb.frontier("quantizer", levels="2", epsilon="1", method="rqm")


def test_keys_of_sweeps_without_new_options_are_those_of_older_ledgers():
    options = FAMILY.options_for("sweep")
    old_names = {
        *("bins", "levels", "c", "density", "method", "knots", "loss", "metric", "reach"),
        *("inputs", "starts", "check", "solver", "time_limit", "notion"),
    }
    values = read_options(options, {"levels": 4, "epsilon": 1}, exact_defaults=True)
    assert FAMILY.sweep_key(values).keys() == old_names
    bounds = {"bins": BINS, "epsilon": 1, "method": "optm", "lower_bound": "0.67"}
    key = FAMILY.sweep_key(read_options(options, bounds, exact_defaults=True))
    assert key.keys() - old_names == {"lower_bound"}
