"""Test that designed channels have the optimum of a formula or of a plain program, and a proven bound.

M[y, o] is the probability of output o for answer y. k is the number of answers, and m the number of
outputs.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import lil_array

import workbench as wb
from workbench.pipeline.registry import get_family


def assert_proven_optimal(design: wb.Design, relative_gap: float = 1e-9) -> None:
    """Assert that a design is certified, with a loss within a relative gap of its bound."""
    assert design.bound is not None
    assert design.certificate is not None
    assert design.private
    gap = relative_gap * abs(design.objective)
    assert design.bound <= design.objective <= design.bound + gap


@pytest.mark.parametrize(
    ("answers", "neighbours", "options", "optimum"),
    [
        # These two optima were computed with libqif 1.6.0, min_loss_given_d.
        (
            "0..8",
            {"neighbours": "consecutive"},
            {"loss": "absolute", "epsilon": 1, "notion": "pure"},
            0.7013662913104529,
        ),
        (
            "0..9",
            {"max_shift": 1},
            {"loss": "error-rate", "epsilon": "0.99", "notion": "pure"},
            0.487641739771,
        ),
        # These are the losses of geometric noise with the best post-processing.
        (
            "0..20",
            {"max_shift": 1},
            {"loss": "absolute", "epsilon": 1, "notion": "pure"},
            0.78681657313,
        ),
        (
            "0..49",
            {"max_shift": 1},
            {"loss": "absolute", "epsilon": 1, "notion": "pure"},
            0.823995475,
        ),
        ("0..100", {"max_shift": 1}, {"epsilon": 1, "delta": "1e-5"}, 1.79167543),
    ],
)
def test_known_optima_are_reached_and_proven(answers, neighbours, options, optimum):
    design = wb.design(wb.FiniteQuery(answers, **neighbours), **options)
    assert design.objective == pytest.approx(optimum, rel=2e-9)
    assert_proven_optimal(design)
    assert design.oracle.agrees


def solve_plain_program(
    question: wb.FiniteQuery, losses: np.ndarray, epsilon: float, delta: float
) -> float:
    """Compute the smallest loss of an (ε, δ)-private channel with SciPy, from the definition.

    The variables are the masses M[y, o], the excess of M[i, o] over e^ε M[j, o] for each ordered
    pair p = (i, j) and output, and the largest loss. losses: shape (k, m).
    """
    k, m = losses.shape
    pairs = [*question.neighbour_pairs, *((j, i) for i, j in question.neighbour_pairs)]
    variable_count = k * m + len(pairs) * m + 1
    row_count = len(pairs) * (m + 1) + k
    upper_rows = lil_array((row_count, variable_count))
    upper_limits = np.zeros(row_count)
    row = 0
    for p, (i, j) in enumerate(pairs):
        first_excess = k * m + p * m
        for o in range(m):
            upper_rows[row, i * m + o] = 1
            upper_rows[row, j * m + o] = -math.exp(epsilon)
            upper_rows[row, first_excess + o] = -1
            row += 1
        upper_rows[row, first_excess : first_excess + m] = 1
        upper_limits[row] = delta
        row += 1
    objective = np.zeros(variable_count)
    if question.prior is None:
        objective[-1] = 1
        for y in range(k):
            upper_rows[row, y * m : (y + 1) * m] = losses[y]
            upper_rows[row, -1] = -1
            row += 1
    else:
        prior = np.array([float(p) for p in question.prior])
        objective[: k * m] = (prior[:, None] * losses).ravel()
    row_sums = lil_array((k, variable_count))
    for y in range(k):
        row_sums[y, y * m : (y + 1) * m] = 1
    solution = linprog(
        objective,
        A_ub=upper_rows.tocsr(),
        b_ub=upper_limits,
        A_eq=row_sums.tocsr(),
        b_eq=np.ones(k),
    )
    return float(solution.fun)


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_priors_and_losses_have_the_optimum_of_a_plain_program(seed: int):
    generator = np.random.default_rng(seed)
    k = int(generator.integers(low=2, high=7))
    m = int(generator.integers(low=2, high=6))
    all_pairs = [(i, j) for i in range(k) for j in range(i)]
    pairs = [pair for pair in all_pairs if generator.random() < 0.5] or [(0, 1)]
    prior = "worst"
    if seed % 3 != 0:
        prior = generator.dirichlet(np.ones(k)).round(6).tolist()
    losses = generator.uniform(low=0, high=5, size=(k, m)).round(6)
    epsilon = round(generator.uniform(low=0.1, high=3), 6)
    delta = [0, 1e-3, 0.2][seed % 3 if seed < 6 else seed % 2]
    question = wb.FiniteQuery(range(k), range(m), neighbours=pairs, prior=prior)
    design = wb.design(question, loss=losses, epsilon=epsilon, delta=delta)
    assert_proven_optimal(design)
    optimum = solve_plain_program(question, losses, epsilon, delta)
    assert design.objective == pytest.approx(optimum, rel=1e-6)
    answer_losses = (design.mechanism.matrix * losses).sum(axis=1)
    expected_loss = answer_losses.max()
    if question.prior is not None:
        expected_loss = float(np.array(question.prior, float) @ answer_losses)
    assert float(design.details["loss"]) == pytest.approx(expected_loss, rel=1e-12)
    # The only note is on separate parts of the graph.
    has_separate_parts = len(question.components) > 1
    assert len(design.words) == int(has_separate_parts)


@pytest.mark.parametrize(
    "loss",
    [[[(x - o) ** 2 for o in range(7)] for x in range(7)], lambda o, x: (x - o) ** 2],
    ids=["matrix", "function"],
)
def test_a_loss_by_matrix_or_function_equals_the_named_loss(loss):
    query = wb.FiniteQuery("0..6", max_shift=2, prior=[1, 2, 3, 4, 3, 2, 0])
    budget = {"epsilon": "0.7", "delta": "0.01"}
    named_design = wb.design(query, loss="squared", **budget)
    assert wb.design(query, loss=loss, **budget).details["loss"] == named_design.details["loss"]


def test_a_loss_function_receives_fractional_answers():
    query = wb.FiniteQuery("0..2:0.5", max_shift="0.5")
    by_function = wb.design(query, loss=lambda o, x: abs(x - o), epsilon=1)
    by_name = wb.design(query, loss="absolute", epsilon=1)
    assert by_function.details["loss"] == by_name.details["loss"]


def test_the_worst_case_loss_has_the_minimax_optimum_of_geometric_noise():
    options = {"epsilon": 1, "loss": "absolute", "notion": "pure"}
    worst = wb.design(wb.FiniteQuery("0..12", max_shift=1, prior="worst"), **options)
    assert_proven_optimal(worst)
    assert (worst.oracle.name, worst.oracle.kind) == ("geometric, minimax", "optimum")
    assert worst.oracle.agrees
    uniform = wb.design(wb.FiniteQuery("0..12", max_shift=1), **options)
    assert worst.objective > uniform.objective


@pytest.mark.parametrize(
    ("answers", "loss", "formula"),
    [
        ("0..7", "absolute", "extremal channels"),
        ("a,b,c", "error-rate", "randomized response"),
        ("0..14", "squared", "RR-on-Bins"),
    ],
)
def test_channels_of_all_pairs_agree_with_the_known_formula(answers, loss, formula):
    query = wb.FiniteQuery(answers, neighbours="all")
    design = wb.design(query, epsilon=1, loss=loss, notion="pure")
    assert_proven_optimal(design)
    assert design.oracle.name == formula
    assert design.oracle.agrees


def test_metric_privacy_on_a_line_equals_pure_privacy_of_consecutive_answers():
    options = {"epsilon": 1, "loss": "absolute"}
    metric = wb.design(wb.FiniteQuery("0..10", neighbours="all"), notion="metric", **options)
    pure = wb.design(wb.FiniteQuery("0..10", max_shift=1), notion="pure", **options)
    assert_proven_optimal(metric)
    assert metric.objective == pytest.approx(pure.objective, rel=1e-9)


def test_metric_privacy_on_a_graph_multiplies_epsilon_by_the_distance():
    graph = wb.FiniteQuery("a,b,c", neighbours=[("a", "b", 1), ("b", "c", 2)])
    design = wb.design(graph, epsilon="0.5", loss="error-rate", notion="metric")
    assert_proven_optimal(design)
    budgets = {(0, 1): Fraction(1, 2), (1, 2): 1}
    assert wb.audit(design, budgets).meets("metric", budgets)


def test_metric_privacy_of_names_needs_listed_distances():
    query = wb.FiniteQuery("a,b", neighbours="all")
    with pytest.raises(wb.InvalidRequest, match="no numbers"):
        wb.design(query, epsilon=1, loss="error-rate", notion="metric")


@pytest.mark.parametrize("unit", [Fraction(1, 100), Fraction(1), Fraction(50_000)])
def test_the_smallest_epsilon_per_unit_of_distance_is_found_in_any_unit(unit: Fraction):
    """The budget of the farthest pair, ε times two units, must be at most 20."""
    query = wb.FiniteQuery([0, unit, 3 * unit], neighbours="all", prior=[2, 1, 1])
    design = wb.design(
        query, loss="absolute", notion="metric", minimise="epsilon", max_loss=unit / 2
    )
    a, b, c = (np.log(row.floats) for row in design.mechanism.rows)
    epsilon_per_unit = max(np.abs(a - b).max(), np.abs(b - c).max() / 2)
    assert epsilon_per_unit / float(unit) == pytest.approx(design.objective, rel=1e-9)
    inputs = np.array([0.0, unit, 3 * unit], dtype=float)
    errors = np.abs(design.mechanism.outputs - inputs[:, None])
    answer_losses = (design.mechanism.matrix * errors).sum(axis=1)
    expected_loss = np.average(answer_losses, weights=[2, 1, 1])
    assert expected_loss == pytest.approx(float(unit) / 2, rel=1e-6)
    assert design.certificate is not None


COUNT = wb.FiniteQuery("0..10", max_shift=1)


@pytest.fixture(scope="module")
def max_loss() -> Fraction:
    """Return the smallest loss of COUNT at ε = 1 and δ = 0.01, increased by one billionth."""
    smallest_loss = wb.design(COUNT, epsilon=1, delta="0.01").objective
    return Fraction(smallest_loss) * (1 + Fraction(1, 10**9))


def test_the_smallest_delta_for_a_loss_is_the_delta_of_that_loss(max_loss: Fraction):
    design = wb.design(COUNT, epsilon=1, minimise="delta", max_loss=max_loss)
    assert design.objective == pytest.approx(0.01, rel=1e-6)
    assert_proven_optimal(design, 1e-8)
    assert design.details["loss"] <= max_loss


def test_the_smallest_epsilon_for_a_loss_is_the_epsilon_of_that_loss(max_loss: Fraction):
    design = wb.design(COUNT, delta="0.01", minimise="epsilon", max_loss=max_loss)
    assert design.objective == pytest.approx(1, rel=1e-7)
    assert design.bound < design.objective <= design.bound * (1 + 1e-8)
    assert design.details["loss"] <= max_loss
    assert design.certificate.epsilon == Fraction(repr(design.objective))


def test_a_limit_below_the_smallest_delta_or_epsilon_is_infeasible(max_loss: Fraction):
    with pytest.raises(wb.Infeasible, match="needs delta >="):
        wb.design(COUNT, epsilon=1, minimise="delta", max_loss=max_loss, delta="0.001")
    with pytest.raises(wb.Infeasible, match="needs epsilon >"):
        wb.design(COUNT, epsilon="0.5", delta="0.01", minimise="epsilon", max_loss=max_loss)


@pytest.mark.parametrize(
    ("k", "neighbours", "epsilon", "delta", "loss"),
    [
        (4, "consecutive", "0.01", "0.5", "absolute"),
        (5, "consecutive", "0.01", "0.5", "squared"),
        (5, "all", "1.5", "1e-6", "squared"),
        (5, "all", "1.5", "1e-6", "absolute"),
    ],
)
def test_pdp_channels_have_no_mass_above_the_ratio_beyond_delta(
    k: int, neighbours: str, epsilon: str, delta: str, loss: str
):
    """A binary of 1e-6, within the tolerance of a solver, would allow as much mass above the ratio."""
    question = wb.FiniteQuery(range(k), neighbours=neighbours)
    design = wb.design(question, epsilon=epsilon, delta=delta, notion="pdp", loss=loss)
    assert design.private
    assert design.privacy.pdp_delta <= Fraction(delta)
    assert design.objective == pytest.approx(design.bound, rel=1e-9)


def test_the_loss_under_pdp_is_between_those_under_dp_and_pure_dp():
    question = wb.FiniteQuery("0..4", max_shift=1)
    pure = wb.design(question, epsilon=1, notion="pure")
    pdp = wb.design(question, epsilon=1, delta="0.05", notion="pdp")
    dp = wb.design(question, epsilon=1, delta="0.05", notion="dp")
    assert dp.objective < pdp.objective < pure.objective
    assert_proven_optimal(pdp, 1e-6)
    assert pdp.privacy.pdp_delta <= Fraction(1, 20)


def test_user_defined_constraints_hold():
    question = wb.FiniteQuery("0..4", max_shift=1)
    unconstrained = wb.design(question, epsilon=1, delta="0.01")
    design = wb.design(
        question, epsilon=1, delta="0.01", constraints=lambda M: [M[0, 4] == 0, M[1, 1] == M[2, 2]]
    )
    assert_proven_optimal(design, 1e-6)
    assert design.objective > unconstrained.objective
    assert design.mechanism.matrix[0, 4] < 1e-12
    with pytest.raises(wb.InvalidRequest, match="a function of the CVXPY variable M"):
        wb.design(question, epsilon=1, constraints=lambda M: [1 / 0])


def test_in_an_honest_channel_the_answer_is_the_likeliest_output():
    question = wb.FiniteQuery("0..4", max_shift=1)
    design = wb.design(question, epsilon=1, constraints=["honest", "row-monotone"])
    matrix = design.mechanism.matrix
    assert (matrix.diagonal() >= matrix.max(axis=1) - 1e-12).all()


def test_an_unbiased_channel_is_exactly_unbiased():
    question = wb.FiniteQuery("0..3", "-8..11", max_shift=1)
    design = wb.design(question, epsilon=1, constraints=["unbiased"])
    assert design.certificate.bias.worst == 0


def test_a_long_line_is_answered_by_the_formula_for_geometric_noise():
    design = wb.design(wb.FiniteQuery("0..400", max_shift=1), epsilon=1, notion="pure")
    assert_proven_optimal(design)
    assert design.solution is None
    assert design.status == "optimal"


def test_a_line_whose_loss_does_not_grow_is_answered_by_a_program(monkeypatch: pytest.MonkeyPatch):
    query = wb.FiniteQuery("0..75", max_shift=1)
    options = {"epsilon": 1, "loss": lambda o, x: (x + o) % 7, "notion": "pure"}
    design = wb.design(query, **options)
    assert_proven_optimal(design)
    assert design.solution is not None
    # If the program is too large, geometric noise is not called optimal.
    monkeypatch.setattr("workbench.families.channel.request.ChannelRequest.MAX_COMPARISONS", 10_000)
    with pytest.raises(wb.NotProven, match="proven lower bound"):
        wb.design(query, **options)


def test_a_large_program_omits_masses_that_delta_makes_unnecessary_and_proves_the_optimum():
    question = wb.FiniteQuery("0..80", max_shift=1)
    request = get_family("channel").make_request(question, epsilon=2, delta="1e-4")
    support = request.stated_masses
    assert support.sum() < support.size / 3
    assert_proven_optimal(wb.design(question, epsilon=2, delta="1e-4"))


def test_a_raw_channel_has_no_certificate_and_a_note_if_it_is_not_private():
    question = wb.FiniteQuery("0..4", max_shift=1)
    design = wb.design(question, epsilon=1, delta="0.01", certify=False)
    has_warning = any("is NOT private at the requested budget" in note for note in design.words)
    assert design.certificate is None
    assert design.private != has_warning


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "epsilon must be given"),
        ({"epsilon": 21}, "epsilon must be between 1e-09 and 20"),
        ({"epsilon": 1, "delta": "0.1", "notion": "pure"}, "delta must be 0 when notion is pure"),
        (
            {"epsilon": 1, "minimise": "delta", "max_loss": 1, "notion": "pure"},
            "minimise must be loss or epsilon",
        ),
        (
            {"epsilon": 1, "minimise": "delta", "max_loss": 1, "notion": "pdp"},
            "notion must be dp if delta is minimised",
        ),
        (
            {"epsilon": 1, "minimise": "delta"},
            "max_loss must be given to minimise delta",
        ),
        (
            {"epsilon": 1, "max_loss": 1},
            "max_loss must be left out unless minimise is delta or epsilon",
        ),
        ({"epsilon": 1, "loss": [[1, 2], [3, 4]]}, "loss must be a matrix of 5 rows and 5 columns"),
        ({"epsilon": 1, "loss": 3}, "loss must be a name, a matrix"),
        (
            {"epsilon": 1, "loss": lambda o, x: o - x},
            r"loss\(0, 1\) must be a finite number >= 0. Got -1",
        ),
        (
            {"epsilon": 1, "loss": lambda o, x: math.nan},
            r"loss\(0, 0\) must be a finite number >= 0. Got nan",
        ),
        (
            {"epsilon": 1, "loss": lambda o, x: 1 / 0},
            "loss must be a function .* ZeroDivisionError",
        ),
        ({"epsilon": 1, "constraints": ["fair"]}, "constraints must be one of unbiased"),
    ],
)
def test_an_invalid_option_is_named_in_the_error(options, message: str):
    with pytest.raises(wb.InvalidRequest, match=message):
        wb.design(wb.FiniteQuery("0..4", max_shift=1), **options)


def test_a_program_that_is_too_large_is_refused_with_the_size_that_fits():
    message = r"at most 1000000 compared masses; 408 inputs, .* would fit"
    question = wb.FiniteQuery("0..900", max_shift=3)
    with pytest.raises(wb.InvalidRequest, match=message) as error:
        wb.design(question, epsilon=1, delta="0.01", method="program")
    assert "Got 4859994 (901 inputs, 901 outputs, 2697 pairs)" in str(error.value)
    fitting_question = wb.FiniteQuery("0..407", max_shift=3)
    get_family("channel").make_request(fitting_question, epsilon=1, delta="0.01")


def test_too_many_binaries_leave_the_optimum_at_delta_0():
    with pytest.raises(wb.NotProven, match="at most 4000 binaries") as stopped:
        wb.design(wb.FiniteQuery("0..60", max_shift=1), epsilon=1, delta="0.01", notion="pdp")
    # The loss of geometric noise with the best post-processing.
    assert stopped.value.design.objective == pytest.approx(1.76169089)


def test_a_channel_that_is_too_large_is_refused_with_the_size_that_fits():
    with pytest.raises(wb.InvalidRequest, match="at most 1100000 masses; 1048 inputs"):
        wb.design(wb.FiniteQuery("0..3000", max_shift=1), epsilon=1, notion="pure")
