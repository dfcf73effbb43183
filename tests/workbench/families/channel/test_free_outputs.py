"""Test that channels with free outputs are at least as good as those on a fine grid of outputs.

A channel has free outputs if the search chooses them among all real numbers. Its lower bound holds
for all real outputs, so it is at most the optimum on the grid.
"""

from __future__ import annotations

import functools
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
from workbench.families.channel.family import FAMILY
from workbench.families.channel.free_outputs import FreeOutputsProblem
from workbench.families.channel.output_cells import find_posterior_points, make_lower_question
from workbench.models.losses import parse_loss


def run(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    """Run a command line. Returns (exit code, standard output, standard error)."""
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(line))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def evaluate_loss(loss: str, r: np.ndarray) -> np.ndarray:
    """Evaluate a named loss at errors r, output minus answer. Returns the shape of r."""
    if loss == "squared":
        return r**2
    if loss == "absolute":
        return np.abs(r)
    kind, parameter = loss.split(":")[0], float(loss.split(":")[1])
    if kind == "pinball":
        return np.where(r < 0, -parameter * r, (1 - parameter) * r)
    return np.where(np.abs(r) <= parameter, r**2 / 2, parameter * (np.abs(r) - parameter / 2))


def solve_on_grid(answers, epsilons, loss, outputs, prior=None, delta=0.0) -> float:
    """Compute the smallest loss of a channel on listed outputs with SciPy.

    Args:
        answers: k numbers.
        epsilons: ordered pair (i, j) of neighbouring answers -> its ε.
        loss: name of the loss.
        outputs: m numbers.
        prior: k weights. None: the worst-case loss is minimised.
        delta: δ.
    """
    x = np.array(answers, dtype=float)
    o = np.array(outputs, dtype=float)
    k, m, pairs = x.size, o.size, list(epsilons)
    losses = evaluate_loss(loss, o[None, :] - x[:, None])
    # The variables are the masses, the excess of each pair and output if δ > 0, and the largest
    # loss.
    excess_count = len(pairs) * m if delta else 0
    variable_count = k * m + excess_count + 1
    upper_rows = []
    upper_limits = []
    for p, (i, j) in enumerate(pairs):
        first_excess = k * m + p * m
        for output in range(m):
            row = np.zeros(variable_count)
            row[i * m + output] = 1
            row[j * m + output] = -math.exp(epsilons[i, j])
            if delta:
                row[first_excess + output] = -1
            upper_rows.append(row)
            upper_limits.append(0)
        if delta:
            row = np.zeros(variable_count)
            row[first_excess : first_excess + m] = 1
            upper_rows.append(row)
            upper_limits.append(delta)
    objective = np.zeros(variable_count)
    if prior is None:
        objective[-1] = 1
        for i in range(k):
            row = np.zeros(variable_count)
            row[i * m : (i + 1) * m] = losses[i]
            row[-1] = -1
            upper_rows.append(row)
            upper_limits.append(0)
    else:
        objective[: k * m] = (losses * (np.array(prior) / sum(prior))[:, None]).ravel()
    row_sums = np.zeros((k, variable_count))
    for i in range(k):
        row_sums[i, i * m : (i + 1) * m] = 1
    bounds = [(0, 1)] * (variable_count - 1) + [(0, None)]
    solution = linprog(
        objective, np.array(upper_rows), upper_limits, row_sums, np.ones(k), bounds, method="highs"
    )
    assert solution.status == 0
    return float(solution.fun)


# (answers, neighbours, loss, prior, ε, δ). A prior of None is the worst answer.
CASES = [
    ([0, 1, 2, 3, 4], {"max_shift": 1}, "squared", [1, 1, 1, 1, 1], 1, 0),
    ([0, 1, 2, 3, 4], {"max_shift": 2}, "squared", [5, 2, 1, 1, 1], "0.5", "0.02"),
    ([3, 5, 4, 9], {"neighbours": "all"}, "huber:1.5", [1, 2, 3, 1], 1, 0),
    ([-2, -1, 0, 1], {"neighbours": "all"}, "squared", [1, 1, 1, 1], 1, "0.1"),
    ([0, 1, 4, 9], {"neighbours": "consecutive"}, "squared", None, 1, 0),
    ([0, 2, 3, 5], {"max_shift": 2}, "pinball:0.8", [1, 4, 1, 0], 1, 0),
    ([0, 1, 2, 3, 4], {"max_shift": 1}, "absolute", None, "0.7", 0),
]


def list_epsilons(answers, neighbours, epsilon: float) -> dict:
    """Return the ordered pairs of neighbouring positions, each with the same ε.

    `neighbours` is the second entry of a case of CASES.
    """

    def are_neighbours(i: int, j: int) -> bool:
        """Return whether the answers at two positions are neighbours."""
        if "max_shift" in neighbours:
            return abs(answers[i] - answers[j]) <= neighbours["max_shift"]
        return neighbours["neighbours"] == "all" or abs(i - j) == 1

    k = len(answers)
    return {(i, j): epsilon for i in range(k) for j in range(k) if i != j and are_neighbours(i, j)}


@functools.cache
def design_case(index: int) -> wb.Design:
    """Design the channel with free outputs of a case of CASES."""
    answers, neighbours, loss, prior, epsilon, delta = CASES[index]
    prior = "worst" if prior is None else prior
    query = wb.FiniteQuery(answers, "free", prior=prior, **neighbours)
    return wb.design(query, loss=loss, epsilon=epsilon, delta=delta)


@pytest.mark.parametrize("index", range(len(CASES)))
def test_free_outputs_are_at_least_as_good_as_a_fine_grid(index: int):
    answers, neighbours, loss, prior, epsilon, delta = CASES[index]
    design = design_case(index)
    epsilons = list_epsilons(answers, neighbours, float(epsilon))
    low = min(answers)
    high = max(answers)
    grid = np.unique([*np.linspace(low, high, 61), *answers])
    grid_loss = solve_on_grid(answers, epsilons, loss, grid, prior, float(delta))
    assert design.objective <= grid_loss * (1 + 1e-9)
    assert design.bound <= grid_loss
    # Rounding an output at random to two outputs of the grid, h apart, adds at most h²/4.
    step = (high - low) / 60
    assert grid_loss - design.bound <= step**2 / 4 + 1e-6 * grid_loss


@pytest.mark.parametrize("index", range(len(CASES)))
def test_free_outputs_have_the_smallest_loss_of_a_channel_on_them(index: int):
    answers, neighbours, loss, prior, epsilon, delta = CASES[index]
    design = design_case(index)
    epsilons = list_epsilons(answers, neighbours, float(epsilon))
    outputs = [float(output) for output in design.question.outputs]
    loss_on_outputs = solve_on_grid(answers, epsilons, loss, outputs, prior, float(delta))
    assert design.objective == pytest.approx(loss_on_outputs, rel=1e-6)


@pytest.mark.parametrize("index", range(len(CASES)))
def test_free_outputs_are_proven_optimal_and_private(index: int):
    design = design_case(index)
    assert design.objective - design.bound <= 1e-6 * design.objective
    assert design.certificate is not None
    assert design.private


def design_metric(answers) -> wb.Design:
    """Design a channel with free outputs at ε = 0.4 per unit of distance."""
    query = wb.FiniteQuery(answers, "free", neighbours="all")
    return wb.design(query, notion="metric", epsilon="0.4")


def test_free_outputs_under_metric_privacy_are_at_least_as_good_as_a_fine_grid():
    epsilons = {(i, j): 0.4 * abs(i - j) for i in range(6) for j in range(6) if i != j}
    grid_loss = solve_on_grid(range(6), epsilons, "squared", np.linspace(0, 5, 41), [1] * 6)
    assert design_metric("0..5").objective <= grid_loss + 1e-9


@pytest.mark.parametrize("answers", [[3, 2, 5, 0, 1, 4], "7..12"])
def test_the_order_and_a_shift_of_the_answers_do_not_change_the_loss(answers):
    design = design_metric(answers)
    assert design.objective == pytest.approx(design_metric("0..5").objective, rel=1e-7)


@pytest.mark.parametrize("name", ["squared", "huber:1.25"])
def test_the_losses_of_the_lower_question_are_slightly_below_the_loss(name: str):
    """The lower question bounds the loss of all real outputs: its losses are never above the loss.

    Between the knots they are linear, and below the loss by at most the largest step²/4.
    """
    inputs = [Fraction(0), Fraction(1), Fraction(5, 2), Fraction(7)]
    random_floats = np.random.default_rng(5).uniform(low=0, high=7, size=9).round(3)
    random_points = [Fraction(value).limit_denominator(1000) for value in random_floats.tolist()]
    anchors = sorted({*random_points, *inputs})
    question = make_lower_question(inputs, anchors, parse_loss(name))
    assert question.losses.values.min() >= 0
    points = np.linspace(0, 7, 4001)
    knots = np.array([float(z) for z in question.knots])
    for x, row in zip(inputs, question.losses.floats - float(question.shift), strict=True):
        shortfalls = evaluate_loss(name, points - float(x)) - np.interp(points, knots, row)
        assert shortfalls.min() >= -1e-12
        assert shortfalls.max() <= float(max(np.diff(anchors))) ** 2 / 4 + 1e-9


def test_the_posterior_point_of_the_huber_loss_has_the_smallest_loss():
    x = np.array([0.0, 1.0, 4.0, 9.0])
    weights = np.random.default_rng(2).random((4, 6))
    points = find_posterior_points(parse_loss("huber:1.5"), x, weights)
    grid = np.linspace(0, 9, 20001)
    grid_losses = evaluate_loss("huber:1.5", grid[None, :] - x[:, None])
    for point, column in zip(points, weights.T, strict=True):
        loss = evaluate_loss("huber:1.5", point - x) @ column
        assert loss <= (column @ grid_losses).min() + 1e-9


def test_free_outputs_for_all_neighbours_have_the_optimum_of_bins():
    design = wb.design(wb.FiniteQuery("0..10", "free", neighbours="all"), epsilon=1)
    bins = wb.design(wb.Labels.uniform(0, 10), epsilon=1, loss="squared")
    assert design.objective == pytest.approx(bins.objective, rel=1e-9)
    assert not {*design.question.outputs} & {*design.question.inputs}


def test_the_smallest_delta_for_a_loss_inverts_the_smallest_loss():
    query = wb.FiniteQuery("0..4", "free", max_shift=1)
    options = {"epsilon": 1, "minimise": "delta", "max_loss": "0.6"}
    design = wb.design(query, **options)
    assert design.bound <= design.objective
    at_delta = wb.design(query, epsilon=1, delta=design.objective)
    assert at_delta.objective == pytest.approx(0.6, rel=1e-5)
    on_answers = wb.design(wb.FiniteQuery("0..4", max_shift=1), **options)
    assert design.objective < on_answers.objective


def test_the_smallest_epsilon_for_a_loss_inverts_the_smallest_loss():
    query = wb.FiniteQuery("0..4", "free", max_shift=1)
    design = wb.design(query, minimise="epsilon", max_loss="0.9")
    at_epsilon = wb.design(query, epsilon=design.objective)
    assert at_epsilon.objective == pytest.approx(0.9, rel=1e-5)
    assert design.question.m == len(design.mechanism.outputs)


FREE_COMMAND = "design channel --answers 0..10 --max-shift 1 --outputs free --epsilon 1"


def test_the_command_states_that_a_channel_publishes_other_values_than_answers(capsys):
    code, out, _ = run(capsys, FREE_COMMAND)
    assert code == 0
    assert "optimal channel with real outputs" in out
    assert "publishes 11 values (not only answers)" in out


def test_a_saved_channel_with_free_outputs_is_proven(capsys, tmp_path: Path):
    path = tmp_path / "free.json"
    assert run(capsys, f"{FREE_COMMAND} --save {path}")[0] == 0
    code, out, _ = run(capsys, f"check {path}")
    assert code == 0
    # Value of the current program, pinned.
    assert "squared loss is 1.34593406" in out


def test_the_report_of_a_channel_contains_its_chosen_outputs(capsys):
    _, out, _ = run(capsys, f"{FREE_COMMAND} --json")
    report = json.loads(out)
    assert report["question"]["free"] is True
    assert len(report["channel"][0]) == len(report["question"]["outputs"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"answers": "red,green", "loss": "error-rate"},
            "outputs must be a list if answers are not numbers",
        ),
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
def test_free_outputs_without_a_proven_bound_are_refused(options, message):
    request = {"answers": "0..3", "epsilon": 1, "loss": "squared", **options}
    with pytest.raises(wb.errors.InvalidRequest, match=message):
        wb.design("channel", outputs="free", neighbours="all", **request)


CONVEX_BUDGETS = [
    {"notion": "zcdp", "rho": "0.1"},
    {"notion": "gdp", "mu": 1},
    {"notion": "renyi", "alpha": 2, "epsilon": "0.5"},
    {"notion": "curve", "curve": [(1, "0.01"), (2, "1e-4")]},
    {"notion": "tradeoff", "tradeoff": "0:1,0.1:0.6,0.4:0.2,1:0"},
]


@pytest.mark.parametrize("budget", CONVEX_BUDGETS, ids=lambda budget: budget["notion"])
def test_under_a_notion_of_several_bounds_the_error_suggests_a_list_of_outputs(budget):
    answers = [-1, 0, 2, 1]
    message = f"outputs must be a list if notion is {budget['notion']}. Got 'free'. "
    message += "List them, for example --outputs -1..2:0.5."
    with pytest.raises(wb.InvalidRequest, match=re.escape(message)):
        wb.design(wb.FiniteQuery(answers, "free", max_shift=1), **budget)
    design = wb.design(wb.FiniteQuery(answers, "-1..2:0.5", max_shift=1), **budget)
    assert design.question.m == 7


def test_recommend_states_whether_unlisted_outputs_could_help_under_zcdp():
    query = {
        "answers": "0..3",
        "max_shift": 1,
        "notion": "zcdp",
        "rho": "0.1",
        "only": "best channel",
        "time_limit": 300,
    }
    (squared,) = wb.recommend(**query)
    assert "outputs are listed; values between them may have a smaller loss" in squared["notes"]
    (absolute,) = wb.recommend(**query, loss="absolute")
    assert "publishes only the outputs, 2 bits" in absolute["notes"]
    assert "smaller loss" not in absolute["notes"]
    assert "--outputs" not in squared["command"]


@pytest.mark.parametrize("mu", [0.5, 1.0])
def test_a_channel_under_gaussian_dp_agrees_with_a_plain_program(mu: float):
    """The program states the hockey sticks of N(0, 1) and N(μ, 1) on a fine grid of ε."""
    k, m = 3, 9
    query = wb.FiniteQuery("0..2", "0..2:0.25", max_shift=1)
    design = wb.design(query, notion="gdp", mu=repr(mu), time_limit=300)
    sticks = [(i, i + 1, e) for i in range(k - 1) for e in np.linspace(-4, 4, 65) * mu]
    # The variables are the masses, and the excess of each hockey stick at each output.
    variable_count = k * m + len(sticks) * m
    upper_rows = []
    upper_limits: list[float] = []
    for index, (i, j, e) in enumerate(sticks):
        outputs = np.arange(m)
        excess_columns = k * m + index * m + outputs
        shape = (m, variable_count)
        excess = sp.csr_array((np.ones(m), (outputs, excess_columns)), shape=shape)
        first = sp.csr_array((np.ones(m), (outputs, i * m + outputs)), shape=shape)
        second = sp.csr_array((np.ones(m), (outputs, j * m + outputs)), shape=shape)
        upper_rows += [first - math.exp(e) * second - excess, excess.sum(axis=0)[None, :]]
        normal = NormalDist()
        delta = normal.cdf(mu / 2 - e / mu) - math.exp(e) * normal.cdf(-mu / 2 - e / mu)
        upper_limits += [0.0] * m + [delta]
    losses = (np.linspace(0, 2, m) - np.arange(k)[:, None]) ** 2 / k
    objective = np.concatenate([losses.ravel(), np.zeros(variable_count - k * m)])
    row_sums = sp.hstack(
        [sp.kron(sp.eye_array(k), np.ones((1, m))), sp.csr_array((k, variable_count - k * m))]
    )
    solution = linprog(
        objective, sp.vstack(upper_rows), upper_limits, row_sums, np.ones(k), method="highs-ipm"
    )
    assert design.certificate is not None
    assert solution.fun * (1 - 1e-6) <= design.objective <= solution.fun * 1.01
    assert design.objective * 0.99 <= design.bound <= design.objective


def test_a_large_channel_under_zcdp_reaches_a_short_time_limit():
    with pytest.raises(wb.errors.NotProven, match="proven lower bound"):
        wb.design("channel", answers="0..35", max_shift=1, notion="zcdp", rho=1, time_limit=0.2)


def test_free_outputs_for_several_runs_are_the_best_found(capsys):
    """No bound over all designs for two runs is proven at δ > 0."""
    question = "--answers 0..5 --max-shift 1 --outputs free"
    code, out, _ = run(capsys, f"design channel {question} --epsilon 1 --delta .01 --runs 2")
    assert code == 0
    assert "best channel found with real outputs for 2 runs" in out
    assert "optimal channel" not in out
    assert "none: not proven optimal among all designs for 2 runs" in out


def test_the_best_channel_of_a_recommendation_chooses_its_outputs(capsys):
    rows = {row["class"]: row for row in wb.recommend(answers="0..6", neighbours="all", epsilon=1)}
    best = rows["best channel"]
    assert best["objective"] == pytest.approx(rows["RR-on-Bins"]["objective"], rel=1e-7)
    assert "values (not only answers)" in best["notes"]
    _, out, _ = run(capsys, best["command"].removeprefix("workbench ") + " --json")
    assert json.loads(out)["objective"] == pytest.approx(best["objective"], rel=1e-12)


def test_a_recommendation_with_listed_outputs_publishes_only_these():
    query = {"answers": "0..6", "neighbours": "all", "epsilon": 1}
    free_loss = wb.recommend(**query, only="best channel")[0]["objective"]
    rows = {row["class"]: row for row in wb.recommend(**query, outputs="0..6")}
    best = rows["best channel"]
    assert "publishes only the outputs" in best["notes"]
    assert "publishes only the outputs" in rows["RR-on-Bins"]["notes"]
    assert rows["RR-on-Bins"]["objective"] >= best["objective"] * (1 - 1e-9)
    assert best["objective"] > free_loss * 1.001


def test_the_search_for_outputs_reports_increasing_bounds():
    lines: list[str] = []
    query = wb.FiniteQuery("0..4", "free", max_shift=1)
    design = wb.design(query, epsilon=1, loss="squared", progress=lines.append)
    assert lines
    for line in lines:
        assert re.fullmatch(r"outputs, round \d+: loss \S+, bound \S+", line)
    bounds = [float(line.split()[-1]) for line in lines]
    assert bounds == sorted(bounds)
    assert bounds[-1] <= design.objective * (1 + 1e-9)


def test_a_bound_at_delta_holds_for_all_real_outputs():
    """It must not depend on the outputs that the search chooses, which lie in the middle."""
    question = wb.FiniteQuery("0..6", "free", max_shift=1, prior=[0, 0, 1, 1, 1, 0, 0])
    request = FAMILY.make_request(question, epsilon="0.1", delta="1e-6", loss="squared")
    problem = FreeOutputsProblem(request)
    # 4 stands for any lower bound at δ = 0. The bound at δ is smaller by the gain that δ allows.
    bound_before_search = problem.bound_at_delta(bound=4)
    problem.answer_by_search()
    assert min(problem.request.question.outputs) > 0
    assert problem.bound_at_delta(bound=4) == bound_before_search < 4
