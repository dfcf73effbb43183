"""Compute the numbers that prove the errata of Kadam et al. 2024.

Each function returns a dictionary of numbers; its docstring explains the keys.
declared/modulo_noise.toml prints the numbers and has the condition under which they show the
erratum. Numbers that are expressions of other numbers are only in that file. A new erratum is a
function here and an entry [errata.<name>] there.

Notation: answers are 0..n, and noise with the law f is added modulo n + 1. Neighbouring answers
differ by 1..μ̄ (`mu_bar`). PDP is probabilistic DP. The δ that a PMF needs is the smallest δ for
which it is (ε, δ)-PDP. A hockey stick is the largest δ over all events at a fixed ε. The flat
regions (h, j) of Theorem 3 are intervals of δ on which the printed error is constant. φ₀ᵏ is the
printed f(0) in such a region. The column-cut law is our closed form for differences 1..μ̄.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import read_number
from workbench.exact.objects import Record
from workbench.mechanisms.baselines.count_queries import (
    clamped_geometric,
    discrete_gaussian,
)
from workbench.models.oracles.bounded_difference import column_cut_law
from workbench.models.oracles.limit_law import limit_law
from workbench.models.oracles.printed_theorem3 import (
    phi_35_36,
    printed_level_curve,
    printed_limit,
    printed_pmf,
    staircases,
)
from workbench.models.oracles.single_distance import single_distance_law
from workbench.papers.modulo_noise.common import (
    compute_closed_form,
    compute_needed_delta,
    get_printed_numbers,
    make_question,
    make_staircase,
    solve_each,
)
from workbench.papers.modulo_noise.curves import make_clamped_noise
from workbench.papers.modulo_noise.figures import build_table1_noise, list_levels
from workbench.pipeline.api import design
from workbench.privacy.curve import profile
from workbench.questions.modulo_noise import ModuloNoise

# The ε at which clamped and unclamped geometric noise are compared, and the α of this noise as
# printed. Its staircase δ(ε) has a step between 0.75 and 0.76, at -ln α.
_COMPARED_EPSILONS = ("0.1", "0.5", "0.75", "0.76", "1", "2")
_PRINTED_ALPHA = "0.4717"
_COROLLARY2_ERROR_RATE = 0.4425  # The error rate at which Corollary 2 is evaluated.
_CLAMPED_ANSWER = 8  # Sums of the Gaussian are clamped into 0.._CLAMPED_ANSWER.
_STICK_EPSILONS = np.linspace(0, 3, 301).tolist()  # Hockey sticks are compared at these ε.
# Multiples of the end of a flat region at which f(0) is computed: in the region and beyond it.
_BELOW_BOUNDARY = 0.999
_ABOVE_BOUNDARY = 1.02
_LIMIT_TOLERANCE = 1e-12  # The limit law and (53) agree up to this relative error.


def _format_values(values: Iterable[float], separator: str = ", ") -> str:
    """Return numbers with six decimals as one text."""
    return separator.join(f"{value:.6f}" for value in values)


def measure_clamping(variance: float, epsilon: float) -> Record:
    """Return the PDP δ of a Gaussian before and after clamping, and the growth of its hockey stick.

    Sums are clamped into 0..8, and neighbouring answers differ by 1.

    Args:
        variance: The variance of the Gaussian.
        epsilon: The ε of the PDP δ.

    Returns:
        delta_unclamped, delta_clamped: the PDP δ. max_stick_growth: by how much the hockey stick
        grows at most, over ε in 0..3. It is not positive, because clamping is post-processing.
    """
    radius, masses = discrete_gaussian(read_number(variance, "variance"))
    law = IntegerLaw(-radius, masses)
    unclamped_noise = make_clamped_noise(None, law)
    clamped_noise = make_clamped_noise(_CLAMPED_ANSWER, law)
    clamped_sticks = profile(clamped_noise).deltas(_STICK_EPSILONS)
    unclamped_sticks = profile(unclamped_noise).deltas(_STICK_EPSILONS)
    return {
        "delta_unclamped": profile(unclamped_noise, "pdp").delta(epsilon),
        "delta_clamped": profile(clamped_noise, "pdp").delta(epsilon),
        "max_stick_growth": max(clamped_sticks - unclamped_sticks),
    }


def count_variables(n: int) -> Record:
    """Return the numbers of variables of the programs that minimise the error rate under PDP.

    Args:
        n: The largest answer, >= 3.

    Returns:
        columns_one_distance: for M = {1}. columns_three_distances: for M = {1, 2, 3}.
    """

    def count_columns(question: ModuloNoise) -> int:
        """Return the number of columns of the program that answers the question."""
        solution = design(question, notion="pdp", epsilon=1.5, delta=0.1, certify=False).solution
        assert solution
        return int(solution.program.shape[1])

    return {
        "columns_one_distance": count_columns(make_question(n=n, shifts=[1])),
        "columns_three_distances": count_columns(make_question(n=n, max_shift=3)),
    }


def check_first_linear_section(n: int, epsilon: float) -> Record:
    """Compare the masses of Theorem 2 in its first linear section with those of Appendix 9.

    The section goes from δ̄_0 = a^{n-1} f(0) of Lemma 3 to δ̲_1, with a = e^-ε. δ is its middle.

    Args:
        n: The largest answer, >= 2. Neighbouring answers differ by 1.
        epsilon: The ε of the budget, > 0.

    Returns:
        delta: δ. optimal_mass: f(0) by Theorem 2. corrected_mass, printed_mass: f_(0) with and
        without ε in the exponent. max_difference: the largest difference of the optimal masses
        from the corrected ones, for h < n.
    """
    a = math.exp(-epsilon)
    low = a ** (n - 1) * (1 - a) / (1 - a ** (n + 1))
    high = a ** (n - 1) * (1 - a) / (1 - a**n)
    delta = (low + high) / 2
    pmf = single_distance_law((n + 1,), (1,), epsilon, delta).pmf
    assert pmf is not None
    masses = np.sort(pmf)[::-1]  # The paper's f_(0) >= f_(1) >= ... >= f_(n).
    corrected_masses = delta * np.exp(epsilon * (n - 1 - np.arange(n)))
    return {
        "delta": delta,
        "optimal_mass": masses[0],
        "corrected_mass": corrected_masses[0],
        "printed_mass": delta * math.exp(n - 1),
        "max_difference": np.abs(masses[:n] - corrected_masses).max(),
    }


# Section 3.2: Theorem 3 and its corollary, proof and numbers.


def check_table1_column(n: int, mu_bar: int, epsilon: float, delta: float) -> Record:
    """Return a column of Table 1, the optimum, and the δ that the optimum needs.

    Args:
        n: The largest answer, >= 1.
        mu_bar: The largest difference μ̄ of neighbouring answers, in 1..n.
        epsilon: The ε of the budget, > 0.
        delta: The δ of the column, as printed.

    Returns:
        printed_f0: f(0) in Table 1. optimal_f0: f(0) of the optimum. law_f0, law_masses: f(0) and
        all masses of the column-cut law. law_delta: the δ that this law needs.
    """
    question = make_question(n=n, max_shift=mu_bar)
    printed_table = get_printed_numbers()["table1"]
    printed_f0, *_ = printed_table["pmf"][printed_table["delta"].index(delta)]
    (optimal_error,) = solve_each(question, [(epsilon, delta)])
    pmf = column_cut_law(n, mu_bar, epsilon, delta).pmf
    assert pmf is not None
    return {
        "printed_f0": printed_f0,
        "optimal_f0": 1 - optimal_error,
        "law_f0": float(pmf[0]),
        "law_masses": _format_values(pmf),
        "law_delta": compute_needed_delta(pmf, question, epsilon),
    }


def audit_table1_symmetric(n: int, mu_bar: int, epsilon: float) -> Record:
    """Return the δ that Table 1's PMFs need for symmetric differences, and minimal errors.

    Args:
        n: The largest answer, >= 1.
        mu_bar: The largest difference μ̄ of neighbouring answers, in 1..n.
        epsilon: The ε of the budget, > 0.

    Returns:
        needed_deltas: the δ of each column. min_needed_delta: the smallest of them.
        optimal_error_symmetric, optimal_error_one_sided: the minimal error rates at δ = 0.
    """
    one_sided = make_question(n=n, max_shift=mu_bar)
    symmetric = make_question(n=n, max_shift=mu_bar, directed=False)
    needed_deltas = [
        compute_needed_delta(noise, symmetric, epsilon) for _, noise in build_table1_noise()
    ]
    return {
        "needed_deltas": _format_values(needed_deltas, " / "),
        "min_needed_delta": min(needed_deltas),
        "optimal_error_symmetric": compute_closed_form(symmetric, epsilon).value,
        "optimal_error_one_sided": compute_closed_form(one_sided, epsilon).value,
    }


def audit_flat_region(n: int, mu_bar: int, epsilon: float) -> Record:
    """Return the δ that the printed PMF of the flat region (h, j) = (3, 1) needs.

    Args:
        n: The largest answer, >= 1.
        mu_bar: The largest difference μ̄ of neighbouring answers, in 1..n.
        epsilon: The ε of the budget, > 0.

    Returns:
        printed_delta: the δ of the region. needed_delta: the δ that the PMF needs.
    """
    question = make_question(n=n, max_shift=mu_bar)
    stairs = next(
        region for region in staircases(n, mu_bar, epsilon) if (region.h, region.j) == (3, 1)
    )
    noise = make_staircase(question, list_levels(stairs), epsilon)
    return {
        "printed_delta": stairs.lower,
        "needed_delta": compute_needed_delta(noise, question, epsilon),
    }


def audit_linear_region(n: int, mu_bar: int, epsilon: float) -> Record:
    """Return the printed PMF between the first two flat regions, and the δ that it needs.

    Args:
        n: The largest answer, >= 1.
        mu_bar: The largest difference μ̄ of neighbouring answers, in 1..n.
        epsilon: The ε of the budget, > 0.

    Returns:
        delta: a δ in the region. total_mass: the sum of the PMF. max_rise: by how much a mass
        exceeds the previous one at most. needed_delta: the δ that the PMF needs.
    """
    question = make_question(n=n, max_shift=mu_bar)
    # The region with h = 0 is that of Lemma 4, and not of Theorem 3.
    flat_regions = [region for region in staircases(n, mu_bar, epsilon) if region.h]
    first_region, second_region, *_ = flat_regions
    delta = round((first_region.upper + second_region.lower) / 2, 6)
    pmf = printed_pmf(n, mu_bar, epsilon, delta)
    return {
        "delta": delta,
        "total_mass": pmf.sum(),
        "max_rise": float(np.diff(pmf).max()),
        "needed_delta": compute_needed_delta(pmf, question, epsilon),
    }


def compare_phi_forms(n: int, mu_bar: int, epsilon: float) -> Record:
    """Compare the second form of φ₀ᵏ, (35)-(36), with the first one, for j = h and otherwise.

    Args:
        n: The largest answer, >= 1.
        mu_bar: The largest difference μ̄ of neighbouring answers, in 1..n.
        epsilon: The ε of the budget, > 0.

    Returns:
        differences: second form minus first form in each flat region, as text.
        min_diagonal_difference: the smallest absolute difference for j = h. max_other_difference:
        the largest absolute difference for j ≠ h.
    """
    differences = {}
    for region in staircases(n, mu_bar, epsilon):
        if region.h:  # The region with h = 0 is that of Lemma 4.
            second_form = phi_35_36(n, mu_bar, epsilon, region.h, region.j)
            differences[region.h, region.j] = second_form - region.mass
    diagonal_differences = [abs(gap) for (h, j), gap in differences.items() if h == j]
    other_differences = [abs(gap) for (h, j), gap in differences.items() if h != j]
    parts = [f"{gap:.3g} at (h, j) = {indices}" for indices, gap in differences.items()]
    return {
        "differences": ", ".join(parts),
        "min_diagonal_difference": min(diagonal_differences),
        "max_other_difference": max(other_differences),
    }


def sum_printed_lengths(n: int, mu_bar: int) -> Record:
    """Return the sum of the printed lengths of (38) at (h, j) = (2, 1).

    Args:
        n: The largest answer, >= 1.
        mu_bar: The largest difference μ̄ of neighbouring answers, in 1..n.

    Returns:
        printed_total: the sum. A PMF on 0..n needs n + 1.
    """
    # b and r are the paper's letters: n = b μ̄ + r.
    b, r = divmod(n, mu_bar)
    h = 2
    j = 1
    lengths = []
    for i in range(1, b + 1):
        if i <= b - h:
            lengths.append(mu_bar)
        elif i == b - h + j + 1:
            lengths.append(1)
        else:
            lengths.append(mu_bar - 1)
    first_length = 1  # The group i = 0 is the noise value 0 alone.
    last_length = r + h - 1  # This is the printed length of the group i = b + 2.
    return {"printed_total": first_length + sum(lengths) + last_length}


def check_first_boundary(n: int, mu_bar: int, epsilon: float) -> Record:
    """Return the optimal f(0) just below and above the correct end of the first flat region.

    f(0) is constant up to the correct end and grows beyond it.

    Args:
        n: The largest answer, >= 1.
        mu_bar: The largest difference μ̄ of neighbouring answers, in 1..n.
        epsilon: The ε of the budget, > 0.

    Returns:
        printed_boundary, correct_boundary: the end as printed and the correct one, values of δ.
        f0_below, f0_above: the optimal f(0) at 0.999 and 1.02 times the correct end.
        f0_at_zero: the optimal f(0) at δ = 0.
    """
    question = make_question(n=n, max_shift=mu_bar)
    phi = float(1 - compute_closed_form(question, epsilon).value)
    boundary = phi * math.exp(-(n // mu_bar) * epsilon)
    deltas = (boundary * _BELOW_BOUNDARY, boundary * _ABOVE_BOUNDARY)
    error_below, error_above = solve_each(question, [(epsilon, delta) for delta in deltas])
    first_region, *_ = staircases(n, mu_bar, epsilon)
    return {
        "printed_boundary": first_region.upper,
        "correct_boundary": boundary,
        "f0_below": 1 - error_below,
        "f0_above": 1 - error_above,
        "f0_at_zero": phi,
    }


def audit_short_groups(n: int, mu_bar: int, epsilon: float) -> Record:
    """Return the δ that a staircase needs whose masses have the levels ⌈η/μ̄⌉, and f(n) = 0.

    Args:
        n: The largest answer, >= 1.
        mu_bar: The largest difference μ̄ of neighbouring answers, in 1..n.
        epsilon: The ε of the budget, > 0.

    Returns:
        needed_delta: that δ. single_mass: f(n - μ̄). Both numbers are equal.
    """
    question = make_question(n=n, max_shift=mu_bar)
    levels = [math.ceil(Fraction(eta, mu_bar)) for eta in range(n)]
    # The level -1 means mass zero.
    noise = make_staircase(question, [*levels, -1], epsilon)
    return {
        "needed_delta": compute_needed_delta(noise, question, epsilon),
        "single_mass": float(noise.pmf[n - mu_bar]),
    }


# Section 3.2.3: the limits for n -> ∞.


def compare_printed_limits(mu_bar: int, epsilon: float, c: int, j: int, n: int) -> Record:
    """Compare (54) and (55) with the limits of (36) and (34), and with the limit of the optimum.

    Args:
        mu_bar: The largest difference μ̄ of neighbouring answers, >= 1.
        epsilon: The ε of the budget, >= ln 2.
        c: The number c = b - h of whole groups, >= 1.
        j: The index j of the region, >= 1.
        n: A large multiple of μ̄, at which the lengths (31) are summed and the optimum is computed.

    Returns:
        beta, mass, printed_beta, printed_mass: the limits of β and φ₀, and as printed.
        next_printed_mass: φ₀ of the next region as printed. summed_mass: φ₀ from the lengths (31)
        at n. delta: the start of the region. limit_mass, finite_mass: the optimal f(0) there in the
        limit and at n.
    """
    limit = printed_limit(mu_bar, epsilon, c, j)
    a = math.exp(-epsilon)
    b = n // mu_bar
    total = 1.0
    for i in range(1, b + 1):
        is_whole = i <= c or i == c + j + 1
        total += (mu_bar if is_whole else mu_bar - 1) * a**i
    return {
        "beta": limit.beta,
        "mass": limit.mass,
        "printed_beta": limit.printed_beta,
        "printed_mass": limit.printed_mass,
        "next_printed_mass": printed_limit(mu_bar, epsilon, c, j + 1).printed_mass,
        "summed_mass": 1 / total,
        "delta": limit.lower,
        "limit_mass": 1 - limit_law(mu_bar, epsilon, limit.lower).value,
        "finite_mass": 1 - column_cut_law(n, mu_bar, epsilon, limit.lower).value,
    }


def measure_flat_intervals(epsilon: float, i: int) -> Record:
    """Measure the flat regions i and 2i of f(0) for a single distance in the limit n -> ∞.

    The flat region i has f(0) = (1 - a)/(1 - a^{i+1}), (53). It starts at δ = a^i f(0), where the
    level cut after hop i becomes affordable, and ends at δ = a^{i-1} f(0).

    Args:
        epsilon: The ε of the budget, > 0.
        i: The index of the region, >= 1.

    Returns:
        first, second: the length of the δ interval times e^{iε}, for i and for 2i. last: 2i.
    """
    a = math.exp(-epsilon)
    scaled_lengths = []
    for index in (i, 2 * i):
        mass = (1 - a) / (1 - a ** (index + 1))
        low = a**index * mass
        high = a ** (index - 1) * mass
        # The limit law is flat on this interval, so its value inside is 1 - f(0).
        inside = limit_law(1, epsilon, (low + high) / 2)
        assert math.isclose(inside.value, 1 - mass, rel_tol=_LIMIT_TOLERANCE)
        scaled_lengths.append((high - low) / a**index)
    first_length, second_length = scaled_lengths
    return {"first": first_length, "second": second_length, "last": 2 * i}


# Baselines.


def check_last_row(n: int) -> Record:
    """Check that the printed rows of clamped geometric noise (α = 1/2) lack the mass f(n - q).

    Row q has the probabilities of the outputs 0..n for the answer q.

    Args:
        n: The largest answer, >= 1.

    Returns:
        missing_mass: by how much the worst printed row misses the sum 1. is_confirmed: whether
        every printed row q lacks exactly f(n - q), and our rows have the sum 1.
    """
    ratio = Fraction(1, 2)
    noise = IntegerLaw(first=0, weights=[1], ratio=ratio)
    printed_sums = []
    for q in range(n + 1):
        first = noise.weight_below(1 - q)
        middle = sum(noise.weight(k - q) for k in range(1, n))
        # The printed last entry is Pr[η > n - q] instead of Pr[η >= n - q].
        last = noise.total - noise.weight_below(n - q + 1)
        printed_sums.append((first + middle + last) / noise.total)
    is_complete = all(sum(row.integers) == row.total for row in clamped_geometric(n, ratio).rows)
    is_missing_mass = all(
        1 - row_sum == noise.weight(n - q) / noise.total for q, row_sum in enumerate(printed_sums)
    )
    return {
        "missing_mass": float(1 - min(printed_sums)),
        "is_confirmed": is_complete and is_missing_mass,
    }


def compare_clamped_geometric(n: int) -> Record:
    """Return δ(ε) of geometric noise at six ε, clamped into 0..n and unclamped.

    Args:
        n: The largest answer, >= 1.

    Returns:
        clamped_deltas, unclamped_deltas: the PDP δ at each ε, as text. max_difference: the largest
        absolute difference of both.
    """
    law = IntegerLaw(first=0, weights=[1], ratio=_PRINTED_ALPHA)
    clamped_deltas = profile(make_clamped_noise(n, law), "pdp").deltas(_COMPARED_EPSILONS)
    unclamped_deltas = profile(make_clamped_noise(None, law), "pdp").deltas(_COMPARED_EPSILONS)
    return {
        "clamped_deltas": _format_values(clamped_deltas),
        "unclamped_deltas": _format_values(unclamped_deltas),
        "max_difference": np.abs(clamped_deltas - unclamped_deltas).max(),
    }


def evaluate_corollary2(n: int, mu_bar: int, epsilon: float) -> Record:
    """Return the minimal δ for the error rate 0.4425 by the level curve of Corollary 2 as printed.

    Args:
        n: The largest answer, >= 1.
        mu_bar: The largest difference μ̄ of neighbouring answers, in 1..n.
        epsilon: The ε of the budget, > 0.

    Returns:
        printed_delta: that δ.
    """
    delta = printed_level_curve(n, mu_bar, epsilon, _COROLLARY2_ERROR_RATE)
    return {"printed_delta": delta}
