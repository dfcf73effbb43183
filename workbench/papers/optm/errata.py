"""Compute the numbers that prove the errata of Cai, Zhang and Khalili 2024.

Each function returns a dictionary of numbers and texts. declared/optm.toml prints them and has the
condition under which they show the erratum. A new erratum is a function here and an entry there.

OPTM, MVU, RQM and ERM are the mechanisms that the paper compares, for inputs in [-1, 1]. MAE is the
mean absolute error, and "51 points" its mean on a grid of 51 inputs. B_i is bin i. q_j(i) is the
probability that bin i is drawn from the first j bins, or from the last j bins, counted from the
end. Equation, theorem and table numbers are the paper's.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from workbench.data.intervals import read_bins
from workbench.exact.numbers import ONE
from workbench.exact.objects import Record
from workbench.families.quantizer.laws import LawQuestion, solve_exact_quantizer
from workbench.families.quantizer.optm import ProgramSolver, make_two_bin_shape
from workbench.families.quantizer.vectors import compute_vector_privacy
from workbench.mechanisms.baselines.two_bin import (
    equal_bins,
    erm,
    erm_epsilon_bound,
    erm_proven_epsilon_bound,
    rqm,
    two_bin,
)
from workbench.papers.optm.common import (
    EPSILONS,
    SAMPLE_SIZE,
    design_mvu,
    format_values,
    get_printed_numbers,
    list_published_mechanisms,
    make_authors_optm,
)
from workbench.papers.optm.tables import (
    ALLOWED_STANDARD_ERRORS,
    HALF_UNIT,
    compute_standard_error,
    find_best_rqm,
    find_erms,
    make_authors_gaussian_optm,
    make_gaussian_density,
)
from workbench.papers.optm.vectors import compute_metric_floor
from workbench.privacy.audit import audit_extremes
from workbench.questions.density import uniform_density
from workbench.solvers.search import bisect

_WORST_INPUT_POINTS = 4001  # The error at the worst input is the largest on this many inputs.
_MAX_METRIC_EPSILON = 8.0  # The smallest ε of squared-distance privacy is searched below this.
_METRIC_EPSILON_TOLERANCE = 1e-3  # That ε is computed up to this error.
_SLICE_WIDTH = 0.05  # Theorem 6's program is solved at multiples of this q_2(1).
_LARGE_EPSILON = 20.0  # At this ε privacy hardly restricts Theorem 6's program.
# A mechanism that satisfies the pairs of Theorem 5 at ε = 4.33: its bins and q_1, ..., q_7.
_THEOREM5_BINS = "-10,-4,-0.1,-0.05,0.05,0.1,4,10"
_THEOREM5_SELECTIONS = (
    ("1",),
    ("0.053", "0.947"),
    ("0.001", "0.314", "0.685"),
    ("0.003", "0.456", "0.424", "0.117"),
    ("0.071", "0.696", "0.066", "0.036", "0.131"),
    ("0.293", "0.431", "0.017", "0.003", "0.003", "0.253"),
    ("0.009", "0.539", "0.001", "0.001", "0.445", "0.004", "0.001"),
)


def audit_rqm_ends() -> Record:
    """Compare the ε of RQM for the two end inputs only with its ε over all inputs.

    Returns:
        end_epsilon: for the inputs -1 and 1. audited_epsilon: for all pairs of inputs.
    """
    quantizer = rqm(equal_bins(5, "1.8"), "0.4")
    first_law, *_, last_law = quantizer.matrix
    losses = np.abs(np.log(first_law / last_law))
    return {
        "end_epsilon": float(losses.max()),
        "audited_epsilon": audit_extremes(quantizer, 0).pure_epsilon,
    }


def check_theorem1() -> Record:
    """Compare the exact ε of ERM with the printed bound of Theorem 1 and with the proven bound.

    Returns:
        epsilon, printed_bound, proven_bound: for m = 4, c = 1, γ = 0.1, Δ = 0.1. epsilon_at_zero: ε
        for Δ = 0, as text. count, false_count, exceeding_count: the number of points of a grid of
        m, Δ and γ, and the numbers of those where ε exceeds the printed and the proven bound.
    """
    epsilons = {}
    grid = itertools.product((4, 8, 16, 32), ("0.01", "0.1", "0.5", "1", "5"), ("0.1", "1", "8"))
    for m, margin, gamma in grid:
        quantizer = erm(equal_bins(m, 1 + Fraction(margin)), gamma)
        epsilons[m, gamma, margin] = audit_extremes(quantizer, 0).pure_epsilon
    first_point = 4, "0.1", "0.1"
    epsilon_at_zero = audit_extremes(erm(equal_bins(4, 1), "0.1"), 0).pure_epsilon
    return {
        "epsilon": epsilons[first_point],
        "printed_bound": erm_epsilon_bound(*first_point),
        "proven_bound": erm_proven_epsilon_bound(*first_point),
        "epsilon_at_zero": "infinite" if math.isinf(epsilon_at_zero) else f"{epsilon_at_zero:.4f}",
        "count": len(epsilons),
        "false_count": sum(value > erm_epsilon_bound(*point) for point, value in epsilons.items()),
        "exceeding_count": sum(
            value > erm_proven_epsilon_bound(*point) for point, value in epsilons.items()
        ),
    }


def check_theorem5() -> Record:
    """Compare the printed pairs of Theorem 5 with the exact ε of a mechanism with eight bins.

    The bounds are o = u = q, so that z and w are the exact probabilities p. The bins 3 to 6 are in
    (-1, 1). The theorem prints its second item for k = m = 8 too. There w is 0, so no mechanism
    satisfies the pair, and k = m is left out. The other gaps of the print are filled in its favour:
    j is read as i, and w(c, i) counts for i = 6 too, for which no k exists.

    Returns:
        printed_epsilon: the smallest ε at which every pair holds. exact_epsilon: the exact ε.
        missing_epsilon: the ε that the pair p(B_6, 1), lim p(B_4, 1) needs, which is not printed.
        last_limit: the largest w(B_m, i) of the second item. is_ordered: whether the third item
        holds, q_i(i) >= q_j(i).
    """
    selections = [[Fraction(value) for value in row] for row in _THEOREM5_SELECTIONS]
    quantizer = two_bin(read_bins(_THEOREM5_BINS), selections)
    bins = [float(value) for value in quantizer.bins]
    q = [[float(value) for value in row] for row in selections]
    m = len(bins)
    # The numbers of the bins count from 1, so q_j(i) is q[j - 1][i - 1] and B_k is bins[k - 1].
    inner = [k for k in range(1, m + 1) if abs(bins[k - 1]) <= 1]
    outer = range(1, inner[0])

    def compute_left_law(i: int, x: float, j: int) -> float:
        """Compute the probability of a bin i <= j at input x, by (4)."""
        # j bins are at or left of x.
        right_law = q[m - j - 1][::-1]
        shares = [(bins[r] - x) / (bins[r] - bins[i - 1]) for r in range(j, m)]
        return q[j - 1][i - 1] * sum(p * s for p, s in zip(right_law, shares, strict=True))

    def compute_limit(i: int, k: int) -> float:
        """Compute the limit of the probability of bin i as x rises to bin k."""
        return compute_left_law(i, bins[k - 1], k - 1)

    ratios = []
    # The first item of the theorem.
    for i in inner:
        smallest = [compute_limit(i, k) for k in inner if k > i]
        smallest.append(compute_left_law(i, 1.0, inner[-1]))
        ratios.append(max(q[i - 1][i - 1], q[m - i][m - i]) / min(smallest))
    # The second item.
    for i, k in itertools.product(outer, range(inner[0], m)):
        smallest = [compute_limit(i, k), compute_left_law(i, 1.0, inner[-1])]
        largest = [
            compute_left_law(i, bins[k - 1], k),
            compute_left_law(i, -1.0, outer[-1]),
        ]
        ratios.append(max(largest) / min(smallest))
    return {
        "printed_epsilon": math.log(max(ratios)),
        "exact_epsilon": audit_extremes(quantizer, 0).pure_epsilon,
        # B_6 is bins[5], and six bins are at or left of it.
        "missing_epsilon": math.log(compute_left_law(1, bins[5], 6) / compute_limit(1, 4)),
        "last_limit": max(compute_limit(i, m) for i in outer),
        "is_ordered": all(
            q[i - 1][i - 1] >= q[j - 1][i - 1]
            for j in range(outer[-1], inner[-1] + 1)
            for i in range(1, j + 1)
        ),
    }


def compare_authors_optm() -> Record:
    """Compare the errors of the authors' program and of Theorem 5 with the printed cells.

    Returns:
        authors_errors, theorem5_errors: the MAE at each ε, as text. max_excess: by how much the
        exact ε of the authors' program exceeds the requested ε at most. max_authors_difference:
        the largest difference of its MAE from a printed cell. min_theorem5_difference: the smallest
        difference of Theorem 5's MAE from a cell.
    """
    printed_errors = np.array(get_printed_numbers()["table1"]["OPTM"])
    authors_quantizers = [make_authors_optm(epsilon) for epsilon in EPSILONS]
    authors_errors = np.array([quantizer.mae_51 for quantizer in authors_quantizers])
    theorem5_errors = np.array(
        [list_published_mechanisms(epsilon)["OPTM"].mae_51 for epsilon in EPSILONS]
    )
    excesses = []
    for quantizer, epsilon in zip(authors_quantizers, EPSILONS, strict=True):
        excesses.append(audit_extremes(quantizer, 0).pure_epsilon - float(epsilon))
    return {
        "authors_errors": format_values(authors_errors),
        "theorem5_errors": format_values(theorem5_errors),
        "max_excess": max(excesses),
        "max_authors_difference": np.abs(authors_errors - printed_errors).max(),
        "min_theorem5_difference": np.abs(theorem5_errors - printed_errors).min(),
    }


def check_table2_units() -> Record:
    """Show that the MVU row of Table 2 is in the units of inputs in [0, 1].

    Two printed values exceed the error at the worst input.

    Returns:
        printed_errors: the printed values. expected_errors: exact expectations for inputs in
        [-1, 1]. min_printed: the smaller of the first two printed values. worst_error: the error at
        the worst input. other_unit_errors: the expected distance of the input in [-1, 1] from the
        output in [0, 1], doubled, with standard errors of 1000 inputs. max_gap: the largest
        difference of a printed value from these, in standard errors.
    """
    table2 = get_printed_numbers()["table2"]
    quantizer = design_mvu(get_printed_numbers()["table6"]["MVU"]["bins"], "1")
    # The alphabet for inputs in [0, 1].
    y = (quantizer.outputs + 1) / 2
    expected_errors = []
    other_unit_errors = []
    max_gap = 0.0
    for sigma, cell in zip(table2["sigma"], table2["MVU"], strict=True):
        density = make_gaussian_density(sigma)
        expected_errors.append(quantizer.mae(density))

        # The integrand has kinks at the knots of the law and at the outputs.
        breaks = np.concatenate([[float(knot) for knot in quantizer.knots], y[np.abs(y) < 1]])
        x, weights = density.quadrature(breaks)
        distances = 2 * np.abs(x[:, None] - y)
        joint_law = weights[:, None] * quantizer.probabilities(x)
        mean = float((joint_law * distances).sum())
        variance = float((joint_law * distances**2).sum()) - mean * mean
        standard_error = math.sqrt(variance / SAMPLE_SIZE)
        other_unit_errors.append(f"{mean:.3f} ± {standard_error:.3f}")
        max_gap = max(max_gap, abs(cell - mean) / standard_error)
    return {
        "printed_errors": format_values(table2["MVU"], ".3f"),
        "expected_errors": format_values(expected_errors, ".3f"),
        "min_printed": min(table2["MVU"][:2]),
        "worst_error": float(quantizer.error_at(np.linspace(-1, 1, _WORST_INPUT_POINTS)).max()),
        "other_unit_errors": ", ".join(other_unit_errors),
        "max_gap": max_gap,
    }


def compare_chosen_bins() -> Record:
    """Return the bins that the authors' program chooses, and its error at σ = 0.3.

    Table 6 has one line of bins for all σ.

    Returns:
        last_bins, last_error, last_standard_error, last_printed: for the last σ, the bins and the
        MAE of the program, the standard error of 1000 inputs, and the printed MAE. same_sigmas:
        the σ for which the program chooses the bins of Table 6. max_excess: by how much the
        difference of a printed MAE from the program's exceeds rounding and three standard errors
        (negative if nowhere).
    """
    table2 = get_printed_numbers()["table2"]
    bins = read_bins(get_printed_numbers()["table6"]["OPTM"]["bins"])
    max_excess = -math.inf
    same_sigmas = []
    last: Record = {}
    for sigma, cell in zip(table2["sigma"], table2["OPTM"], strict=True):
        quantizer = make_authors_gaussian_optm(sigma)
        density = make_gaussian_density(sigma)
        mae = quantizer.mae(density)
        standard_error = compute_standard_error(quantizer, density)
        # A printed MAE may differ by rounding and by three standard errors.
        sampling_error = ALLOWED_STANDARD_ERRORS * standard_error
        max_excess = max(max_excess, abs(mae - cell) - HALF_UNIT - sampling_error)
        if np.array_equal(quantizer.outputs, [float(value) for value in bins]):
            same_sigmas.append(sigma)
        last = {
            "last_bins": format_values(quantizer.outputs, "g"),
            "last_error": mae,
            "last_standard_error": standard_error,
            "last_printed": cell,
        }
    return {**last, "same_sigmas": format_values(same_sigmas, "g"), "max_excess": max_excess}


def find_missing_mechanisms() -> Record:
    """Find the best RQM and ERM at ε = 0.5, where the paper has none.

    Returns:
        rqm_text: the MAE of RQM, or "none". erm_error, erm_epsilon: the MAE and the exact ε of ERM.
        private_erm_count: the number of ε-private ERMs with inner bins within [-1, 1].
    """
    quantizer = find_best_rqm("0.5")
    count, erm_quantizer = find_erms("0.5")
    rqm_text = "none"
    if quantizer:
        rqm_text = f"{quantizer.mae():.4f} (51 points {quantizer.mae_51:.4f})"
    return {
        "rqm_text": rqm_text,
        "erm_error": erm_quantizer.mae(),
        "erm_epsilon": audit_extremes(erm_quantizer, 0).pure_epsilon,
        "private_erm_count": count,
    }


def _find_least_metric_epsilon(point_count: int) -> float:
    """Return the smallest ε at which a private quantizer exists on a grid of inputs, to 1e-3.

    Privacy is squared-distance metric privacy: the privacy loss of the inputs x and x' is at most
    ε (x - x')². The outputs are -3, -1, 1, 3, and the quantizer is unbiased.
    """
    bins = tuple(Fraction(value) for value in (-3, -1, 1, 3))
    question = LawQuestion(Fraction(1), loss="squared", metric="squared")

    def is_feasible(epsilon: float) -> bool:
        """Return whether a private quantizer exists on the grid at this ε."""
        law = replace(question, epsilon=Fraction(epsilon))
        return solve_exact_quantizer(bins, law, knots=point_count) is not None

    _, smallest_epsilon = bisect(
        is_feasible, 0.0, _MAX_METRIC_EPSILON, tolerance=_METRIC_EPSILON_TOLERANCE
    )
    return smallest_epsilon


def find_least_metric_epsilons() -> Record:
    """Compute the smallest ε of squared-distance privacy on grids of 2 to 17 inputs.

    Returns:
        epsilons: ε and its lower bound (`compute_metric_floor`) for each grid, as text. min_margin:
        the smallest difference of both. coarse_epsilon, fine_epsilon: ε on 3 and on 17 inputs.
    """
    least_values = {count: _find_least_metric_epsilon(count) for count in (2, 3, 5, 9, 17)}
    floors = {count: compute_metric_floor(count, 3.0) for count in least_values}
    parts = []
    for count, value in least_values.items():
        parts.append(f"{count} points {value:.3f} (floor {floors[count]:.3f})")
    return {
        "epsilons": ", ".join(parts),
        "min_margin": min(least_values[count] - floors[count] for count in least_values),
        "coarse_epsilon": least_values[3],
        "fine_epsilon": least_values[17],
    }


def check_metric_vectors() -> Record:
    """Compare ε B² of Section 5 with the exact ε of two vectors that are no knots.

    A coordinate is quantized by the mechanism with squared-distance privacy on the knots -1, -1/2,
    0, 1/2, 1 and the smallest squared error. Its ε is 1. An input between two knots is first
    rounded to one of them at random. The two vectors are 0 and (0.1, ..., 0.1) in dimension 4, so
    their distance B is 0.2.

    Returns:
        knot_epsilon: ε B². exact_epsilon: the largest privacy loss of the two vectors.
        proven_epsilon: the ε that holds for all vectors.
    """
    dimension = 4
    step = Fraction(1, 10)
    bins = tuple(read_bins("-3,-0.5,0.5,3"))
    question = LawQuestion(ONE, loss="squared", metric="squared")
    answer = solve_exact_quantizer(bins, question, knots=5)
    assert answer is not None
    quantizer = answer.quantizer
    law_at_zero, law_at_step = quantizer.probabilities(np.array([0.0, float(step)]))
    privacy = compute_vector_privacy(quantizer, ONE, "squared", dimension, 2 * step)
    assert privacy.knot_vectors is not None
    return {
        "knot_epsilon": float(privacy.knot_vectors),
        "exact_epsilon": dimension * float(np.abs(np.log(law_at_zero / law_at_step)).max()),
        "proven_epsilon": float(privacy.all_vectors),
    }


def check_objective_constant() -> Record:
    """Return the MAE of stochastic rounding, and the constant of (8).

    Stochastic rounding to the two nearest bins has all ζ = 0 in the objective (8), so the objective
    is its constant.

    Returns:
        rounding_error: the MAE. bound: the constant.
    """
    bins = read_bins("-2.7,-0.9,0.9,2.7")
    rounding = two_bin(bins, [[1], [0, 1], [0, 0, 1]])
    shape = make_two_bin_shape(bins, uniform_density())
    # Every selection distribution has all its mass on its last entry, the bin nearest to the input.
    constant = sum(shape.losses[columns[-1]] for columns in shape.columns.values())
    return {"rounding_error": rounding.mae(), "bound": float(constant)}


def check_theorem6() -> Record:
    """Return the smallest q_2(1) that Theorem 6 allows, and how many slices have a solution.

    For k = 2, r = 4 the theorem requires q_2(1) (B_4 - B_2) >= q_1(1) (B_4 - B_3), where q_1(1) =
    1. It also requires q_2(1) <= q_2(2) = 1 - q_2(1), so q_2(1) is at most 1/2.

    Returns:
        requirements: the smallest q_2(1) for the bins of Tables 3, 4 and 6, as text.
        min_requirement: the smallest of them. solved_count: the number of slices that have a
        solution. narrow_count, wide_count: the same for the bins ±0.9, ±B with B = 2.99 * 0.9 and
        B = 3.01 * 0.9.
    """
    least_values = {}
    for number in (3, 4, 6):
        bins = read_bins(get_printed_numbers()[f"table{number}"]["OPTM"]["bins"])
        _, b2, b3, b4 = bins
        least_values[number] = float((b4 - b3) / (b4 - b2))
    parts = [f"Table {number}: q_2(1) >= {value:.3f}" for number, value in least_values.items()]
    return {
        "requirements": ", ".join(parts),
        "min_requirement": min(least_values.values()),
        "solved_count": _count_theorem6_slices("-3,-0.5,0.5,3"),
        "narrow_count": _count_theorem6_slices("-2.691,-0.9,0.9,2.691"),
        "wide_count": _count_theorem6_slices("-2.709,-0.9,0.9,2.709"),
    }


def _count_theorem6_slices(bins: str) -> int:
    """Count the slices of Theorem 6's program that have a solution at ε = 20.

    q_2(1) is fixed to 0.05, 0.1, ..., 0.95, with the lower bounds o = 0.
    """
    shape = make_two_bin_shape(read_bins(bins), uniform_density())
    solver = ProgramSolver(LawQuestion(ONE))
    solved_count = 0
    for q in np.arange(_SLICE_WIDTH, 1, _SLICE_WIDTH):
        program = shape.theorem6(epsilon=_LARGE_EPSILON, u=1.0, o_before=float(q), o_last=0.0)
        solved_count += solver.solve(program) is not None
    solver.close()
    return solved_count
