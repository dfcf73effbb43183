"""Channels whose outputs are free reals: never above a linear program over a fine grid that is written here, never
below their bound, which holds for every real output."""

from __future__ import annotations

import json
import math
import re
import shlex
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

import workbench as wb
from workbench.cli import main
from workbench.families.channel.output_cells import find_posterior_points, make_lower_question
from workbench.models.losses import parse_loss


def run(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(line))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def cost(loss: str, r: np.ndarray) -> np.ndarray:
    if loss == "squared":
        return r**2
    if loss == "absolute":
        return np.abs(r)
    kind, parameter = loss.split(":")[0], float(loss.split(":")[1])
    if kind == "pinball":
        return np.where(r < 0, -parameter * r, (1 - parameter) * r)
    return np.where(np.abs(r) <= parameter, r**2 / 2, parameter * (np.abs(r) - parameter / 2))


def grid_optimum(answers, ratios, loss, outputs, prior=None, delta=0.0) -> float:
    """The least loss on these outputs. ratios: {(i, j): ε} of ordered pairs; prior: None for the worst input."""
    x, o = np.array(answers, dtype=float), np.array(outputs, dtype=float)
    k, m, pairs = x.size, o.size, list(ratios)
    losses = cost(loss, o[None, :] - x[:, None])
    slack = len(pairs) * m if delta else 0
    size = k * m + slack + 1  # masses, slacks, the largest loss
    rows, right = [], []
    for p, (i, j) in enumerate(pairs):
        for at in range(m):
            row = np.zeros(size)
            row[i * m + at], row[j * m + at] = 1, -math.exp(ratios[i, j])
            if delta:
                row[k * m + p * m + at] = -1
            rows.append(row)
            right.append(0)
        if delta:
            row = np.zeros(size)
            row[k * m + p * m : k * m + (p + 1) * m] = 1
            rows.append(row)
            right.append(delta)
    objective = np.zeros(size)
    if prior is None:
        objective[-1] = 1
        for i in range(k):
            row = np.zeros(size)
            row[i * m : (i + 1) * m], row[-1] = losses[i], -1
            rows.append(row)
            right.append(0)
    else:
        objective[: k * m] = (losses * (np.array(prior) / sum(prior))[:, None]).ravel()
    equal = np.zeros((k, size))
    for i in range(k):
        equal[i, i * m : (i + 1) * m] = 1
    bounds = [(0, 1)] * (size - 1) + [(0, None)]
    solved = linprog(objective, np.array(rows), right, equal, np.ones(k), bounds, method="highs")
    assert solved.status == 0
    return float(solved.fun)


CASES = [
    ([0, 1, 2, 3, 4], {"max_shift": 1}, "squared", [1, 1, 1, 1, 1], 1, 0),
    ([0, 1, 2, 3, 4], {"max_shift": 2}, "squared", [5, 2, 1, 1, 1], "0.5", "0.02"),
    ([3, 5, 4, 9], {"neighbours": "all"}, "huber:1.5", [1, 2, 3, 1], 1, 0),
    ([-2, -1, 0, 1], {"neighbours": "all"}, "squared", [1, 1, 1, 1], 1, "0.1"),
    ([0, 1, 4, 9], {"neighbours": "consecutive"}, "squared", None, 1, 0),
    ([0, 2, 3, 5], {"max_shift": 2}, "pinball:0.8", [1, 4, 1, 0], 1, 0),
    ([0, 1, 2, 3, 4], {"max_shift": 1}, "absolute", None, "0.7", 0),
]


def relation(answers, neighbours, epsilon: float) -> dict:
    def near(i: int, j: int) -> bool:
        if "max_shift" in neighbours:
            return abs(answers[i] - answers[j]) <= neighbours["max_shift"]
        return neighbours["neighbours"] == "all" or abs(i - j) == 1

    k = len(answers)
    return {(i, j): epsilon for i in range(k) for j in range(k) if i != j and near(i, j)}


@pytest.mark.parametrize(("answers", "neighbours", "loss", "prior", "epsilon", "delta"), CASES)
def test_the_best_of_all_real_outputs_beside_a_finer_grid(
    answers, neighbours, loss, prior, epsilon, delta
):
    query = wb.FiniteQuery(answers, "free", prior="worst" if prior is None else prior, **neighbours)
    design = wb.design(query, loss=loss, epsilon=epsilon, delta=delta)
    low, high = min(answers), max(answers)
    grid = np.unique([*np.linspace(low, high, 61), *answers])
    ratios = relation(answers, neighbours, float(epsilon))
    finer = grid_optimum(answers, ratios, loss, grid, prior, float(delta))
    own = [float(o) for o in design.question.outputs]
    assert design.objective <= finer * (1 + 1e-9)
    assert design.bound <= finer
    assert design.objective - design.bound <= 1e-6 * design.objective
    assert design.objective == pytest.approx(
        grid_optimum(answers, ratios, loss, own, prior, float(delta)), rel=1e-6
    )
    # all that the finer grid can cost more is the rounding of one output to two of the grid
    assert finer - design.bound <= (high - low) ** 2 / 60**2 / 4 + 1e-6 * finer
    assert design.certificate is not None
    assert design.private


def test_metric_privacy_and_the_order_of_answers_and_a_shift():
    plain = wb.design(
        wb.FiniteQuery("0..5", "free", neighbours="all"), notion="metric", epsilon="0.4"
    )
    ratios = {(i, j): 0.4 * abs(i - j) for i in range(6) for j in range(6) if i != j}
    assert (
        plain.objective
        <= grid_optimum(range(6), ratios, "squared", np.linspace(0, 5, 41), [1] * 6) + 1e-9
    )
    for answers in ([3, 2, 5, 0, 1, 4], "7..12"):
        other = wb.design(
            wb.FiniteQuery(answers, "free", neighbours="all"), notion="metric", epsilon="0.4"
        )
        assert other.objective == pytest.approx(plain.objective, rel=1e-7)


def test_the_losses_of_the_lower_question_are_below_the_loss_between_its_knots():
    rng = np.random.default_rng(5)
    inputs = [Fraction(0), Fraction(1), Fraction(5, 2), Fraction(7)]
    anchors = sorted(
        {Fraction(round(float(a), 3)).limit_denominator(1000) for a in rng.uniform(0, 7, 9)}
        | {*inputs}
    )
    dense = np.linspace(0, 7, 4001)
    for name in ("squared", "huber:1.25"):
        question = make_lower_question(inputs, anchors, parse_loss(name))
        assert question.losses.values.min() >= 0
        knots = np.array([float(z) for z in question.knots])
        for x, row in zip(inputs, question.losses.floats - float(question.shift), strict=True):
            above = cost(name, dense - float(x)) - np.interp(dense, knots, row)
            assert above.min() >= -1e-12
            assert above.max() <= float(max(np.diff(anchors))) ** 2 / 4 + 1e-9  # and not far below


def test_a_huber_point_costs_least():
    x, weights = np.array([0.0, 1.0, 4.0, 9.0]), np.random.default_rng(2).random((4, 6))
    points = find_posterior_points(parse_loss("huber:1.5"), x, weights)
    for point, column in zip(points, weights.T, strict=True):
        dense = np.linspace(0, 9, 20001)
        values = cost("huber:1.5", dense[None, :] - x[:, None]).T @ column
        assert (cost("huber:1.5", point - x) @ column) <= values.min() + 1e-9


def test_labels_that_are_all_neighbours_cost_no_more_than_their_own_optimum():
    design = wb.design(wb.FiniteQuery("0..10", "free", neighbours="all"), epsilon=1)
    bins = wb.design(wb.Labels.uniform(0, 10), epsilon=1, loss="squared")
    assert design.objective == pytest.approx(bins.objective, rel=1e-9)
    assert not {*design.question.outputs} & {*design.question.inputs}


def test_the_least_delta_and_the_least_epsilon():
    query = wb.FiniteQuery("0..4", "free", max_shift=1)
    reached = wb.design(query, epsilon=1, minimise="delta", max_loss="0.6")
    at = wb.design(query, epsilon=1, delta=reached.objective)
    assert at.objective == pytest.approx(0.6, rel=1e-5)
    assert reached.bound <= reached.objective
    listed = wb.design(
        wb.FiniteQuery("0..4", max_shift=1), epsilon=1, minimise="delta", max_loss="0.6"
    )
    assert reached.objective < listed.objective
    least = wb.design(query, minimise="epsilon", max_loss="0.9")
    assert wb.design(query, epsilon=least.objective).objective == pytest.approx(0.9, rel=1e-5)
    assert least.question.m == len(least.mechanism.outputs)


def test_the_certificate_holds_the_outputs_and_is_checked_again(capsys, tmp_path: Path):
    file = tmp_path / "free.json"
    line = f"design channel --answers 0..10 --max-shift 1 --outputs free --epsilon 1 --save {file}"
    code, out, _ = run(capsys, line)
    assert code == 0
    assert "optimal channel with real outputs" in out
    assert "publishes 11 values (not only answers)" in out
    code, out, _ = run(capsys, f"check {file}")
    assert code == 0
    assert "squared loss is 1.34593406" in out
    code, out, _ = run(capsys, f"{line} --json")
    found = json.loads(out)
    assert found["question"]["free"] is True
    assert len(found["channel"][0]) == len(found["question"]["outputs"])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"answers": "red,green"}, "outputs must be a list if answers are not numbers"),
        (
            {"loss": "poisson-deviance", "answers": "1..4"},
            "unless the loss is a table or one of squared, huber",
        ),
        (
            {"loss": lambda o, x: abs(x - o), "answers": "0,1"},
            "unless the loss is a table or one of squared",
        ),
        ({"constraints": ["unbiased"]}, "if there are extra constraints"),
        ({"notion": "pdp", "delta": "0.1"}, "if notion is pdp with delta > 0"),
    ],
)
def test_what_no_proof_covers_is_refused(given, words):
    options = {"answers": "0..3", "epsilon": 1, "loss": "squared", **given}
    if options["answers"] == "red,green":
        options["loss"] = "error-rate"
    with pytest.raises(wb.errors.InvalidRequest, match=words):
        wb.design("channel", outputs="free", neighbours="all", **options)


CONVEX_BUDGETS = [
    {"notion": "zcdp", "rho": "0.1"},
    {"notion": "gdp", "mu": 1},
    {"notion": "renyi", "alpha": 2, "epsilon": "0.5"},
    {"notion": "curve", "curve": [(1, "0.01"), (2, "1e-4")]},
    {"notion": "tradeoff", "tradeoff": "0:1,0.1:0.6,0.4:0.2,1:0"},
]


@pytest.mark.parametrize("budget", CONVEX_BUDGETS, ids=lambda budget: budget["notion"])
def test_under_notions_of_several_bounds_the_outputs_must_be_listed(budget):
    words = f"outputs must be a list if notion is {budget['notion']}. Got 'free'. List them, for example --outputs "
    with pytest.raises(wb.InvalidRequest, match=re.escape(f"{words}-1..2:0.5.")) as refused:
        wb.design(wb.FiniteQuery([-1, 0, 2, 1], "free", max_shift=1), **budget)
    listed = str(refused.value).removesuffix(".").split()[-1]
    assert wb.design(wb.FiniteQuery([-1, 0, 2, 1], listed, max_shift=1), **budget).question.m == 7


def test_recommend_lists_the_outputs_under_notions_of_several_bounds():
    asked = {
        "answers": "0..3",
        "max_shift": 1,
        "notion": "zcdp",
        "rho": "0.1",
        "only": "best channel",
    }
    (squared,) = wb.recommend(**asked)
    assert "outputs are listed; values between them may have a smaller loss" in squared["notes"]
    (absolute,) = wb.recommend(**asked, loss="absolute")
    assert "publishes only the outputs, 2 bits" in absolute["notes"]
    assert "smaller loss" not in absolute["notes"]
    assert "--outputs" not in squared["command"]


@pytest.mark.parametrize("mu", ["0.5", "1"])
def test_under_gaussian_dp_listed_outputs_are_as_good_as_a_program_says(mu):
    """Beside hockey sticks of N(0, 1) against N(μ, 1) on a fine grid of ε, all in one program."""
    m, k, normal = 9, 3, NormalDist()
    design = wb.design(
        wb.FiniteQuery("0..2", "0..2:0.25", max_shift=1), notion="gdp", mu=mu, time_limit=300
    )
    outputs, levels = np.linspace(0, 2, m), np.linspace(-4, 4, 65) * float(mu)
    pairs = [(i, i + 1, e) for i in range(k - 1) for e in levels]
    size, rows, high = k * m + len(pairs) * m, [], []
    for at, (i, j, e) in enumerate(pairs):
        slack = sp.csr_array(
            (-np.ones(m), (range(m), k * m + at * m + np.arange(m))), shape=(m, size)
        )
        sides = sp.csr_array(
            (
                np.repeat([1, -math.exp(e)], m),
                ([*range(m)] * 2, [*range(i * m, i * m + m), *range(j * m, j * m + m)]),
            ),
            shape=(m, size),
        )
        rows += [slack + sides, -slack.sum(axis=0)[None, :]]
        a, b = e / float(mu), float(mu) / 2
        high += [0.0] * m + [normal.cdf(b - a) - math.exp(e) * normal.cdf(-a - b)]
    losses = (outputs - np.arange(k)[:, None]) ** 2 / k
    equal = sp.hstack([sp.kron(sp.eye_array(k), np.ones((1, m))), sp.csr_array((k, size - k * m))])
    c = np.concatenate([losses.ravel(), np.zeros(size - k * m)])
    least = linprog(c, sp.vstack(rows), high, equal, np.ones(k), method="highs-ipm").fun
    assert design.certificate is not None
    assert least * (1 - 1e-6) <= design.objective <= least * 1.01
    assert design.objective * 0.99 <= design.bound <= design.objective


def test_a_channel_of_several_bounds_whose_masses_are_many_goes_by_its_program():
    with pytest.raises(wb.errors.NotProven, match="proven lower bound"):
        wb.design("channel", answers="0..35", max_shift=1, notion="zcdp", rho=1, time_limit=0.2)


def test_free_outputs_for_several_runs_are_the_best_found(capsys):
    """One run is optimal at its own budget. No bound is proven over all designs for the runs."""
    question = "--answers 0..5 --max-shift 1 --outputs free"
    code, out, _ = run(capsys, f"design channel {question} --epsilon 1 --delta .01 --runs 2")
    assert code == 0
    assert "best channel found with real outputs for 2 runs" in out
    assert "optimal channel" not in out
    assert "none: not proven optimal among all designs for 2 runs" in out


def test_recommend_chooses_outputs_unless_they_are_given(capsys):
    rows = {row["class"]: row for row in wb.recommend(answers="0..6", neighbours="all", epsilon=1)}
    best = rows["best channel"]
    assert best["objective"] == pytest.approx(rows["RR-on-Bins"]["objective"], rel=1e-7)
    assert "values (not only answers)" in best["notes"]
    _, made, _ = run(capsys, best["command"].removeprefix("workbench ") + " --json")
    assert json.loads(made)["objective"] == pytest.approx(best["objective"], rel=1e-12)
    given = {
        row["class"]: row
        for row in wb.recommend(answers="0..6", outputs="0..6", neighbours="all", epsilon=1)
    }
    assert "publishes only the outputs" in given["RR-on-Bins"]["notes"]
    assert given["RR-on-Bins"]["objective"] >= given["best channel"]["objective"] * (1 - 1e-9)
    assert given["best channel"]["objective"] > best["objective"] * 1.001
    assert "publishes only the outputs" in given["best channel"]["notes"]


def test_the_search_of_outputs_tells_what_it_has():
    told: list[str] = []
    best = wb.design(
        wb.FiniteQuery("0..4", "free", max_shift=1), epsilon=1, loss="squared", progress=told.append
    )
    assert told
    assert all(re.fullmatch(r"outputs, round \d+: loss \S+, bound \S+", line) for line in told)
    bounds = [float(line.split()[-1]) for line in told]
    assert bounds == sorted(bounds)
    assert bounds[-1] <= best.objective * (1 + 1e-9)


def test_a_bound_at_a_delta_is_over_all_outputs():
    """Not by the losses of the few outputs that were chosen, which lie in the middle."""
    from workbench.families.channel.family import FAMILY
    from workbench.families.channel.free_outputs import FreeOutputsProblem

    question = wb.FiniteQuery("0..6", "free", max_shift=1, prior=[0, 0, 1, 1, 1, 0, 0])
    request = FAMILY.make_request(question, epsilon="0.1", delta="1e-6", loss="squared")
    problem = FreeOutputsProblem(request)
    before = problem.bound_at_delta(4)
    problem.answer_by_search()
    assert min(problem.request.question.outputs) > 0
    assert problem.bound_at_delta(4) == before < 4
