"""Designed channels against known values, against plain linear programs, and proven from both sides."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import lil_array

import workbench as wb
from workbench.pipeline.registry import get_family

Q = wb.FiniteQuery


def close(design: wb.Design, relative: float = 1e-9) -> bool:
    """Certified, and no further above its bound than this."""
    assert design.bound is not None
    assert design.certificate is not None
    assert design.private
    return design.bound <= design.objective <= design.bound + relative * abs(design.objective)


@pytest.mark.parametrize(
    ("question", "request_", "value"),
    [
        # libqif 1.6.0, min_loss_given_d
        (
            Q("0..8", neighbours="consecutive"),
            {"loss": "absolute", "epsilon": 1, "notion": "pure"},
            0.7013662913104529,
        ),
        (
            Q("0..9", max_shift=1),
            {"loss": "error-rate", "epsilon": "0.99", "notion": "pure"},
            0.487641739771,
        ),
        # geometric noise with the best post-processing
        (
            Q("0..20", max_shift=1),
            {"loss": "absolute", "epsilon": 1, "notion": "pure"},
            0.78681657313,
        ),
        (
            Q("0..49", max_shift=1),
            {"loss": "absolute", "epsilon": 1, "notion": "pure"},
            0.823995475,
        ),
        (Q("0..100", max_shift=1), {"epsilon": 1, "delta": "1e-5"}, 1.79167543),
    ],
)
def test_known_optima_are_certified_to_a_billionth(question, request_, value):
    made = wb.design(question, **request_)
    assert made.objective == pytest.approx(value, rel=2e-9)
    assert close(made)
    assert made.oracle.agrees


def least(question: wb.FiniteQuery, losses: np.ndarray, epsilon: float, delta: float) -> float:
    """The least loss, by SciPy from the definition."""
    k, m = losses.shape
    pairs = [*question.neighbour_pairs, *((j, i) for i, j in question.neighbour_pairs)]
    n = k * m + len(pairs) * m + 1
    above, right = lil_array((len(pairs) * (m + 1) + k, n)), np.zeros(len(pairs) * (m + 1) + k)
    row = 0
    for p, (i, j) in enumerate(pairs):
        for o in range(m):
            above[row, i * m + o], above[row, j * m + o] = 1, -math.exp(epsilon)
            above[row, k * m + p * m + o] = -1
            row += 1
        above[row, k * m + p * m : k * m + (p + 1) * m] = 1
        right[row] = delta
        row += 1
    loss = np.zeros(n)
    if question.prior is None:
        loss[-1] = 1
        for y in range(k):
            above[row, y * m : (y + 1) * m], above[row, n - 1] = losses[y], -1
            row += 1
    else:
        loss[: k * m] = (np.array([float(p) for p in question.prior])[:, None] * losses).ravel()
    equal = lil_array((k, n))
    for y in range(k):
        equal[y, y * m : (y + 1) * m] = 1
    found = linprog(loss, A_ub=above.tocsr(), b_ub=right, A_eq=equal.tocsr(), b_eq=np.ones(k))
    return float(found.fun)


@pytest.mark.parametrize("seed", range(12))
def test_any_graph_prior_and_loss(seed: int):
    source = np.random.default_rng(seed)
    k, m = int(source.integers(2, 7)), int(source.integers(2, 6))
    pairs = [(i, j) for i in range(k) for j in range(i) if source.random() < 0.5] or [(0, 1)]
    prior = "worst" if seed % 3 == 0 else [float(f"{p:.6f}") for p in source.dirichlet(np.ones(k))]
    losses = np.round(source.uniform(0, 5, (k, m)), 6)
    epsilon, delta = (
        float(f"{source.uniform(0.1, 3):.6f}"),
        [0, 1e-3, 0.2][seed % 3 if seed < 6 else seed % 2],
    )
    question = Q(range(k), range(m), neighbours=pairs, prior=prior)
    made = wb.design(question, loss=losses, epsilon=epsilon, delta=delta)
    assert close(made)
    assert made.objective == pytest.approx(least(question, losses, epsilon, delta), rel=1e-6)
    expected = made.details["loss"]
    each = made.mechanism.matrix * losses
    told = (
        each.sum(axis=1).max()
        if question.prior is None
        else float(np.array(question.prior, float) @ each.sum(axis=1))
    )
    assert float(expected) == pytest.approx(told, rel=1e-12)
    assert len(made.words) == (len(question.components) > 1)


def test_losses_by_name_matrix_and_function_are_one():
    question, request = (
        Q("0..6", max_shift=2, prior=[1, 2, 3, 4, 3, 2, 0]),
        {"epsilon": "0.7", "delta": "0.01"},
    )
    made = [
        wb.design(question, loss=loss, **request).details["loss"]
        for loss in (
            "squared",
            [[(x - o) ** 2 for o in range(7)] for x in range(7)],
            lambda o, x: (x - o) ** 2,
        )
    ]
    assert made[0] == made[1] == made[2]
    half = wb.design(Q("0..2:0.5", max_shift="0.5"), loss=lambda o, x: abs(x - o), epsilon=1)
    assert (
        half.details["loss"]
        == wb.design(Q("0..2:0.5", max_shift="0.5"), loss="absolute", epsilon=1).details["loss"]
    )


def test_every_inputs_worst_case_and_the_minimax_oracle():
    made = wb.design(
        Q("0..12", max_shift=1, prior="worst"), epsilon=1, loss="absolute", notion="pure"
    )
    assert close(made)
    assert (made.oracle.name, made.oracle.kind, made.oracle.agrees) == (
        "geometric, minimax",
        "optimum",
        True,
    )
    uniform = wb.design(Q("0..12", max_shift=1), epsilon=1, loss="absolute", notion="pure")
    assert made.objective > uniform.objective


def test_all_neighbours_and_their_oracles():
    cases = (
        ("0..7", "absolute", "extremal channels"),
        ("a,b,c", "error-rate", "randomized response"),
        ("0..14", "squared", "RR-on-Bins"),
    )
    for answers, loss, name in cases:
        made = wb.design(Q(answers, neighbours="all"), epsilon=1, loss=loss, notion="pure")
        assert close(made)
        assert (made.oracle.name, made.oracle.agrees) == (name, True)


def test_metric_privacy_along_a_line_and_on_a_graph():
    line = wb.design(Q("0..10", neighbours="all"), epsilon=1, loss="absolute", notion="metric")
    pure = wb.design(Q("0..10", max_shift=1), epsilon=1, loss="absolute", notion="pure")
    assert close(line)
    assert line.objective == pytest.approx(pure.objective, rel=1e-9)  # consecutive ones decide
    graph = Q("a,b,c", neighbours=[("a", "b", 1), ("b", "c", 2)])
    made = wb.design(graph, epsilon="0.5", loss="error-rate", notion="metric")
    assert close(made)
    assert wb.audit(made, {(0, 1): Fraction(1, 2), (1, 2): 1}).meets(
        "metric", {(0, 1): Fraction(1, 2), (1, 2): 1}
    )
    with pytest.raises(wb.InvalidRequest, match="no numbers"):
        wb.design(Q("a,b", neighbours="all"), epsilon=1, loss="error-rate", notion="metric")


@pytest.mark.parametrize("unit", [Fraction(1, 100), Fraction(1), Fraction(50_000)])
def test_the_least_epsilon_per_unit_of_distance_is_sought_up_to_the_limit_of_the_farthest_pair(
    unit: Fraction,
):
    """Two of three neighbours are two units apart, which made 20 per unit a budget of 40 and was refused."""
    query = Q([0, unit, 3 * unit], neighbours="all", prior=[2, 1, 1])
    made = wb.design(query, loss="absolute", notion="metric", minimise="epsilon", max_loss=unit / 2)
    (a, b, c), outputs = made.mechanism.rows, made.mechanism.outputs
    ratios = [np.abs(np.log(p.floats / q.floats)).max() for p, q in ((a, b), (b, c))]
    assert max(ratios[0], ratios[1] / 2) / float(unit) == pytest.approx(made.objective, rel=1e-9)
    inputs = np.array([0.0, unit, 3 * unit], dtype=float)
    losses = (made.mechanism.matrix * np.abs(outputs - inputs[:, None])).sum(axis=1)
    assert np.average(losses, weights=[2, 1, 1]) == pytest.approx(float(unit) / 2, rel=1e-6)
    assert made.certificate is not None


def test_least_delta_and_least_epsilon_invert_the_least_error():
    question = Q("0..10", max_shift=1)
    error = wb.design(question, epsilon=1, delta="0.01")
    max_loss = Fraction(error.objective) * (1 + Fraction(1, 10**9))
    delta = wb.design(question, epsilon=1, minimise="delta", max_loss=max_loss)
    assert delta.objective == pytest.approx(0.01, rel=1e-6)
    assert close(delta, 1e-8)
    assert delta.details["loss"] <= max_loss
    epsilon = wb.design(question, delta="0.01", minimise="epsilon", max_loss=max_loss)
    assert epsilon.objective == pytest.approx(1, rel=1e-7)
    assert epsilon.bound < epsilon.objective <= epsilon.bound * (1 + 1e-8)
    assert epsilon.details["loss"] <= max_loss
    assert epsilon.certificate.epsilon == Fraction(repr(epsilon.objective))
    with pytest.raises(wb.Infeasible, match="needs delta >="):
        wb.design(question, epsilon=1, minimise="delta", max_loss=max_loss, delta="0.001")
    with pytest.raises(wb.Infeasible, match="needs epsilon >"):
        wb.design(question, epsilon="0.5", delta="0.01", minimise="epsilon", max_loss=max_loss)


@pytest.mark.parametrize(
    ("k", "neighbours", "epsilon", "delta", "loss"),
    [
        (4, "consecutive", "0.01", "0.5", "absolute"),
        (5, "consecutive", "0.01", "0.5", "squared"),
        (5, "all", "1.5", "1e-6", "squared"),
        (5, "all", "1.5", "1e-6", "absolute"),
    ],
)
def test_binaries_of_pdp_leak_no_mass(k: int, neighbours: str, epsilon: str, delta: str, loss: str):
    """At a solver's usual tolerance a binary of 1e-6 stands for as much probability above the ratio."""
    question = wb.FiniteQuery(range(k), neighbours=neighbours)
    made = wb.design(question, epsilon=epsilon, delta=delta, notion="pdp", loss=loss)
    assert made.private
    assert made.privacy.pdp_delta <= Fraction(delta)
    assert made.objective == pytest.approx(made.bound, rel=1e-9)


def test_pdp_is_stricter_than_dp_and_free_masses_keep_delta():
    question = Q("0..4", max_shift=1)
    pure, pdp, dp = (
        wb.design(question, epsilon=1, delta=delta, notion=notion)
        for notion, delta in (("pure", 0), ("pdp", "0.05"), ("dp", "0.05"))
    )
    assert dp.objective < pdp.objective < pure.objective
    assert close(pdp, 1e-6)
    assert pdp.privacy.pdp_delta <= Fraction(1, 20)


def test_constraints_by_name_and_of_ones_own():
    question = Q("0..4", max_shift=1)
    free = wb.design(question, epsilon=1, delta="0.01")
    mine = wb.design(
        question, epsilon=1, delta="0.01", constraints=lambda M: [M[0, 4] == 0, M[1, 1] == M[2, 2]]
    )
    assert close(mine, 1e-6)
    assert mine.objective > free.objective
    assert mine.mechanism.matrix[0, 4] < 1e-12
    honest = wb.design(question, epsilon=1, constraints=["honest", "row-monotone"])
    rows = honest.mechanism.matrix
    assert (rows.diagonal() >= rows.max(axis=1) - 1e-12).all()
    unbiased = wb.design(Q("0..3", "-8..11", max_shift=1), epsilon=1, constraints=["unbiased"])
    assert unbiased.certificate.bias.worst == 0
    with pytest.raises(wb.InvalidRequest, match="a function of the CVXPY variable M"):
        wb.design(question, epsilon=1, constraints=lambda M: [1 / 0])


def test_long_lines_need_no_program(monkeypatch: pytest.MonkeyPatch):
    made = wb.design(Q("0..400", max_shift=1), epsilon=1, notion="pure")
    assert close(made)
    assert made.solution is None
    assert made.status == "optimal"
    # a loss that does not grow is stated as a program, and refused rather than guessed where that would be too large
    made = wb.design(
        Q("0..75", max_shift=1), epsilon=1, loss=lambda o, x: (x + o) % 7, notion="pure"
    )
    assert close(made)
    assert made.solution is not None
    monkeypatch.setattr("workbench.families.channel.request.ChannelRequest.MAX_COMPARISONS", 10_000)
    with pytest.raises(wb.NotProven, match="proven lower bound"):
        wb.design(made.question, epsilon=1, loss=lambda o, x: (x + o) % 7, notion="pure")


def test_large_programs_leave_out_what_delta_makes_needless_and_prove_it():
    request = get_family("channel").make_request(Q("0..80", max_shift=1), epsilon=2, delta="1e-4")
    support = request.stated_masses
    assert support.sum() < support.size / 3
    assert close(wb.design(request.question, epsilon=2, delta="1e-4"))


def test_raw_answers_are_audited_and_claim_nothing():
    made = wb.design(Q("0..4", max_shift=1), epsilon=1, delta="0.01", certify=False)
    assert made.certificate is None
    assert made.private == (
        not any("is NOT private at the requested budget" in sentence for sentence in made.words)
    )


@pytest.mark.parametrize(
    ("request_", "sentence"),
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
            "max_loss must be given if delta or epsilon is minimised",
        ),
        (
            {"epsilon": 1, "max_loss": 1},
            "max_loss must be given if delta or epsilon is minimised, and only then",
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
def test_bad_requests_are_one_sentence(request_, sentence: str):
    with pytest.raises(wb.InvalidRequest, match=sentence):
        wb.design(Q("0..4", max_shift=1), **request_)


def test_what_is_too_large_is_refused_with_the_size_that_would_fit():
    with pytest.raises(
        wb.InvalidRequest, match=r"at most 1000000 compared masses; 408 inputs, .* would fit"
    ) as error:
        wb.design(Q("0..900", max_shift=3), epsilon=1, delta="0.01", method="program")
    assert "Got 4859994 (901 inputs, 901 outputs, 2697 pairs)" in str(error.value)
    get_family("channel").make_request(Q("0..407", max_shift=3), epsilon=1, delta="0.01")
    with pytest.raises(wb.NotProven, match="at most 4000 binaries") as stopped:
        wb.design(Q("0..60", max_shift=1), epsilon=1, delta="0.01", notion="pdp")
    assert stopped.value.design.objective == pytest.approx(1.76169089)  # of delta = 0
    with pytest.raises(wb.InvalidRequest, match="at most 1100000 masses; 1048 inputs"):
        wb.design(Q("0..3000", max_shift=1), epsilon=1, notion="pure")
