"""Recommendations for lists of answers with any start, step, order, loss and prior.

The rows are compared with plain linear programs that are written here.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import shlex
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

import workbench as wb
from workbench.cli import main
from workbench.pipeline.recommendation import TimeShares


def index_by_class(result) -> dict:
    """Return class -> row of a table."""
    return {row["class"]: row for row in result}


# Options of HiGHS for the programs of this file.
TIGHT_TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
# Name of a loss -> the loss of an error, output minus answer.
LOSSES = {
    "squared": lambda r: r * r,
    "absolute": abs,
    "error-rate": lambda r: float(r != 0),
    "pinball:0.8": lambda r: -0.8 * r if r < 0 else 0.2 * r,
    "huber:2": lambda r: r * r / 2 if abs(r) <= 2 else 2 * (abs(r) - 1),
}


def solve_program(
    objective: list[float],
    upper_rows: list[dict[int, float]],
    upper_limits: list[float],
    equations: Any,
) -> float:
    """Return the smallest objective with rows <= limits and all equations equal to 1.

    Args:
        objective: cost of each variable. Variables are >= 0.
        upper_rows: column -> coefficient, for each row.
        upper_limits: the limit of each row.
        equations: matrix with a row for each equation.
    """
    upper_matrix = sp.lil_array((len(upper_rows), len(objective)))
    for index, row in enumerate(upper_rows):
        for column, value in row.items():
            upper_matrix[index, column] = value
    right_sides = np.ones(equations.shape[0])
    solution = linprog(
        objective,
        upper_matrix.tocsr(),
        upper_limits,
        equations,
        right_sides,
        method="highs",
        options=TIGHT_TOLERANCES,
    )
    assert solution.status == 0
    return float(solution.fun)


def solve_channel(answers, max_shift, loss, prior, epsilon: float, delta: float) -> float:
    """Compute min Σ p(x) M(o|x) ℓ(o - x) over all private channels onto the answers.

    The variables are the masses, and for δ > 0 the excess of M(o|x) over e^ε M(o|y) for each pair
    of neighbours and each output.
    """
    k = len(answers)
    pairs = [
        (i, j)
        for i in range(k)
        for j in range(k)
        if i != j and abs(answers[i] - answers[j]) <= max_shift
    ]
    excess_count = len(pairs) * k if delta else 0
    objective = [p * loss(o - x) for x, p in zip(answers, prior, strict=True) for o in answers]
    objective += [0.0] * excess_count
    upper_rows = []
    upper_limits = []
    for index, (i, j) in enumerate(pairs):
        first_excess = k * k + index * k
        for o in range(k):
            row = {i * k + o: 1.0, j * k + o: -math.exp(epsilon)}
            if delta:
                row[first_excess + o] = -1.0
            upper_rows.append(row)
            upper_limits.append(0.0)
        if delta:
            upper_rows.append(dict.fromkeys(range(first_excess, first_excess + k), 1.0))
            upper_limits.append(delta)
    row_sums = sp.kron(sp.eye_array(k), np.ones((1, k)))
    if excess_count:
        row_sums = sp.hstack([row_sums, sp.csr_array((k, excess_count))])
    return solve_program(objective, upper_rows, upper_limits, sp.csr_array(row_sums))


def solve_clamped_noise(
    last: int, reach: int, loss, prior, epsilon: float, delta: float, largest_noise: int
) -> float:
    """Compute the smallest loss of noise on -largest_noise..largest_noise, clamped to 0..last.

    Neighbours are at most `reach` steps apart. The result is an upper bound on the optimum of all
    noise, and decreases to it as `largest_noise` grows. Pure noise continues beyond both ends: it
    falls by the factor e^-ε every `reach` steps. The masses of both tails are variables, with the
    loss of the clamped ends.

    Args:
        last: largest answer; the answers are 0..last.
        reach: largest difference of neighbours.
        loss: function of an output and an answer.
        prior: probabilities of the answers, shape (last + 1,).
        epsilon: ε.
        delta: δ. If it is 0, pure noise is found.
        largest_noise: the largest noise value whose mass is a variable of its own.
    """
    noise = np.arange(-largest_noise, largest_noise + 1)
    noise_losses = []
    for eta in noise:
        losses = [p * loss(min(last, max(0, x + eta)), x) for x, p in enumerate(prior)]
        noise_losses.append(sum(losses))
    size = noise.size
    shifts = [s for s in range(-reach, reach + 1) if s]
    # With δ > 0 there is one excess for each shift and each noise value of either law.
    excess_size = size + 2 * reach
    excess_count = len(shifts) * excess_size if delta else 0
    tail_count = 0 if delta else 2
    upper_rows = []
    upper_limits = []
    for index, s in enumerate(shifts):
        first_excess = size + index * excess_size
        for position in range(-reach, size + reach) if delta else range(size):
            row = {position: 1.0} if 0 <= position < size else {}
            if 0 <= position + s < size:
                row[position + s] = -math.exp(epsilon)
            elif not delta:
                continue
            if delta:
                row[first_excess + position + reach] = -1.0
            upper_rows.append(row)
            upper_limits.append(0.0)
        if delta:
            upper_rows.append(dict.fromkeys(range(first_excess, first_excess + excess_size), 1.0))
            upper_limits.append(delta)
    if not delta:
        ratio = math.exp(-epsilon)
        for tail, last_masses in ((size, range(size - reach, size)), (size + 1, range(reach))):
            upper_rows.append({tail: -1.0} | dict.fromkeys(last_masses, ratio / (1 - ratio)))
            upper_limits.append(0.0)
    objective = [*noise_losses]
    if tail_count:
        objective += [noise_losses[-1], noise_losses[0]]
    objective += [0.0] * excess_count
    total_mass = np.concatenate([np.ones(size + tail_count), np.zeros(excess_count)])[None, :]
    return solve_program(objective, upper_rows, upper_limits, total_mass)


class RandomQuery(NamedTuple):
    """A random query.

    Attributes:
        answers: increasing answers.
        step: difference of consecutive answers.
        reach: neighbours are at most this many steps apart.
        weights: weight of each answer in the prior.
        loss: name of the loss.
        epsilon: ε.
        delta: δ.
        order: a random order of the positions of the answers.
    """

    answers: list[Fraction | int]
    step: Fraction | int
    reach: int
    weights: list[int]
    loss: str
    epsilon: float
    delta: float
    order: list[int]

    @property
    def options(self) -> dict[str, Any]:
        """Return the loss and the budget."""
        return {"loss": self.loss, "epsilon": self.epsilon, "delta": self.delta}

    @property
    def prior(self) -> list[float]:
        """Return the probability of each answer."""
        return [weight / sum(self.weights) for weight in self.weights]


def draw_queries(count: int) -> Iterator[RandomQuery]:
    """Draw random queries with 3 to 7 answers."""
    rng = random.Random(24)
    for index in range(count):
        n = rng.randint(2, 6)
        step = rng.choice([1, 2, 5, Fraction(1, 2)])
        low = rng.randint(-6, 6) * step
        answers = [low + step * i for i in range(n + 1)]
        weights = [rng.choice([0, 1, 1, 2, 5]) for _ in answers]
        weights[rng.randrange(n + 1)] = 3
        reach = rng.randint(1, n)
        order = rng.sample(range(n + 1), n + 1)
        epsilon = rng.choice([0.1, 0.7, 1, 3])
        delta = rng.choice([0, 0, 1e-9, 0.01, 0.3])
        loss = [*LOSSES][index % len(LOSSES)]
        yield RandomQuery(answers, step, reach, weights, loss, epsilon, delta, order)


QUERIES = [*draw_queries(10)]
QUERY_NAMES = [f"{q.loss}-{q.epsilon}-{q.delta}" for q in QUERIES]


@pytest.fixture(scope="module", params=QUERIES, ids=QUERY_NAMES)
def query(request: pytest.FixtureRequest) -> RandomQuery:
    """Return each of the random queries."""
    random_query: RandomQuery = request.param
    return random_query


@pytest.fixture(scope="module")
def table(query: RandomQuery) -> wb.Result:
    """Return the recommendation for a random query, which is computed once."""
    return recommend_query(query)


def recommend_query(query: RandomQuery, order: list[int] | None = None) -> wb.Result:
    """Return the recommendation for a query, with its answers in another order if one is given."""
    positions = range(len(query.answers)) if order is None else order
    return wb.recommend(
        answers=[query.answers[i] for i in positions],
        prior=[query.weights[i] for i in positions],
        max_shift=query.reach * query.step,
        **query.options,
    )


def test_the_best_channel_of_a_random_query_agrees_with_a_plain_program(
    query: RandomQuery, table: wb.Result
):
    max_shift = query.reach * query.step
    optimum = solve_channel(
        [float(x) for x in query.answers],
        float(max_shift) + 1e-9,
        loss=LOSSES[query.loss],
        prior=query.prior,
        epsilon=query.epsilon,
        delta=query.delta,
    )
    # The best channel of the table chooses its outputs, so its loss may be smaller.
    best = index_by_class(table)["best channel"]
    assert best["objective"] <= optimum * (1 + 1e-6) + 1e-9
    assert table[0]["objective"] <= optimum * (1 + 1e-6) + 1e-9
    question = wb.FiniteQuery(query.answers, max_shift=max_shift, prior=query.weights)
    design = wb.design(question, **query.options)
    assert design.objective == pytest.approx(optimum, rel=1e-6, abs=1e-9)


def test_the_clamped_noise_of_a_random_query_agrees_with_a_plain_program(
    query: RandomQuery, table: wb.Result
):
    last = len(query.answers) - 1
    epsilon = query.epsilon
    # Pure noise is private for every δ, and nearly optimal for a tiny one.
    delta = query.delta if query.delta > 1e-6 else 0
    largest_noise = 2 * last
    if delta:
        # Truncated Laplace noise is (ε, δ)-private. Its largest value is this many times the
        # largest difference of neighbours, so noise of about this size is nearly optimal.
        truncated_laplace_end = math.log1p(math.expm1(epsilon) / (2 * delta)) / epsilon
        largest_noise += query.reach * (3 + math.ceil(truncated_laplace_end))
    loss = LOSSES[query.loss]
    upper_bound = solve_clamped_noise(
        last,
        query.reach,
        loss=lambda o, x: loss(float(query.step) * (o - x)),
        prior=query.prior,
        epsilon=epsilon,
        delta=delta,
        largest_noise=largest_noise,
    )
    noise = index_by_class(table)["integer noise, clamped"]
    assert noise["bound"] <= upper_bound * (1 + 1e-6) + 1e-9
    assert noise["objective"] <= upper_bound * (1 + 1e-6) + 1e-9
    if not query.delta:
        assert noise["objective"] == pytest.approx(upper_bound, rel=1e-6, abs=1e-9)
    assert noise["objective"] - noise["bound"] <= 1e-6 * noise["objective"] + 1e-12
    assert noise["certified"]


def test_the_order_of_the_answers_does_not_change_the_losses(query: RandomQuery, table: wb.Result):
    reordered = index_by_class(recommend_query(query, query.order))
    for row in table:
        loss = reordered[row["class"]]["objective"]
        if row["objective"] is None:
            assert loss is None
        else:
            assert loss == pytest.approx(row["objective"], rel=1e-7, abs=1e-12), row["class"]


def get_clamped_noise(**query) -> dict:
    """Return the row of clamped integer noise at ε = 1."""
    (row,) = wb.recommend(**query, epsilon=1, only="integer noise, clamped")
    return row


def test_clamped_noise_for_answers_from_3_to_12_is_the_design():
    row = get_clamped_noise(answers="3..12", max_shift=1, delta="0.01")
    design = wb.design(wb.IntegerNoise(1, clamp=(3, 12)), epsilon=1, delta="0.01")
    assert row["objective"] == design.objective
    # The value of the current program, pinned.
    assert design.objective == pytest.approx(1.213654, abs=1e-6)


def test_clamped_noise_for_the_huber_loss_is_that_of_its_listed_values():
    row = get_clamped_noise(answers="0..10", max_shift=1, loss="huber:2", delta="0.01")
    losses = [min(r, 2) * (r - min(r, 2) / 2) for r in range(11)]
    noise = wb.IntegerNoise(1, clamp=(0, 10))
    design = wb.design(noise, epsilon=1, delta="0.01", loss=losses)
    assert row["objective"] == pytest.approx(design.objective, rel=1e-9)


@pytest.mark.parametrize("delta", [0, "1e-12"])
def test_clamped_noise_for_a_skewed_prior_is_proven_optimal(delta):
    row = get_clamped_noise(answers="0..6", max_shift=1, prior=[5, 2, 1, 1, 1, 0, 0], delta=delta)
    # The value of the current program, pinned.
    assert row["objective"] == pytest.approx(1.04304, abs=1e-5)
    assert row["bound"] == pytest.approx(row["objective"], rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 20.0])
@pytest.mark.parametrize("loss", ["pinball:0.9", "huber:2", "absolute"])
def test_pure_noise_without_clamping_is_geometric_around_the_best_centre(epsilon: float, loss: str):
    """For an asymmetric loss the centre is not 0. The best one is found by trying all near 0."""
    design = wb.design(wb.IntegerNoise(1), epsilon=epsilon, loss=loss)
    noise = np.arange(-400, 401)
    evaluate = LOSSES.get(loss, lambda e: max(-0.9 * e, 0.1 * e))  # pinball:0.9
    losses = np.array([evaluate(float(eta)) for eta in noise])
    centre_losses = []
    for centre in range(-20, 21):
        weights = math.exp(-epsilon) ** np.abs(noise - centre)
        centre_losses.append(np.average(losses, weights=weights))
    assert design.objective == pytest.approx(min(centre_losses), rel=1e-6)
    assert design.bound <= design.objective * (1 + 1e-12)
    assert design.row()["certified"]
    assert design.bound == pytest.approx(design.objective, rel=1e-6)


def test_only_channels_and_randomized_response_apply_to_names():
    table = wb.recommend(answers="red,green,blue", neighbours="all", epsilon=1, loss="error-rate")
    names = {row["class"] for row in table if row["objective"] is not None}
    assert names == {"best channel", "randomized response"}


def test_noise_on_answers_with_gaps_is_added_to_their_values():
    """Neighbouring answers differ by at most 7. The sum is clamped, then moved to an answer."""
    answers = [0, 1, 4, 9, 16]
    rows = index_by_class(wb.recommend(answers=answers, neighbours="consecutive", epsilon=1))
    noise = np.arange(-2000, 2001)
    masses = math.exp(-1 / 7) ** np.abs(noise)
    masses /= masses.sum()
    nearest = np.array([min(answers, key=lambda x: (abs(x - v), x)) for v in range(17)])
    losses = [masses @ (nearest[np.clip(x + noise, 0, 16)] - x) ** 2 for x in answers]
    assert rows["clamped geometric"]["objective"] == pytest.approx(np.mean(losses), rel=1e-9)


def test_the_staircase_for_neighbours_one_step_apart_is_geometric_noise():
    rows = index_by_class(wb.recommend(answers="0..6", max_shift=1, epsilon=1))
    assert rows["clamped staircase"]["objective"] is None
    assert "geometric" in rows["clamped staircase"]["notes"]


def recommend_bins(**query) -> dict:
    """Return the row of RR-on-Bins for answers that are all neighbours."""
    return index_by_class(wb.recommend(neighbours="all", **query))["RR-on-Bins"]


def test_bins_for_two_answers_with_delta_are_optimal():
    """Every (ε, δ) mechanism is randomized response that tells the answer with probability δ."""
    row = recommend_bins(answers="0,1", epsilon="0.5", delta="0.1")
    p = math.exp(0.5) / (1 + math.exp(0.5))
    assert row["objective"] == pytest.approx(0.9 * p * (1 - p), rel=1e-12)
    assert row["bound"] == pytest.approx(row["objective"], rel=1e-9)
    assert row["certified"]


def test_the_loss_of_bins_with_delta_is_reduced_by_the_factor_1_minus_delta():
    pure = recommend_bins(answers="0..6", epsilon=1)
    with_delta = recommend_bins(answers="0..6", epsilon=1, delta="0.05")
    assert with_delta["objective"] == pytest.approx(0.95 * pure["objective"], rel=1e-9)


def test_bins_on_listed_outputs_are_the_best_of_all_assignments():
    """All 3^6 assignments of an output to each of six answers are compared."""
    weights = [3, 1, 1, 1, 1, 2]
    rows = index_by_class(
        wb.recommend(answers="0..5", outputs=[1, 3, 4], neighbours="all", epsilon=1, prior=weights)
    )
    smallest_loss = math.inf
    for assigned in itertools.product([1, 3, 4], repeat=6):
        outputs = {*assigned}
        total_odds = math.e + len(outputs) - 1
        losses = []
        for x, y in enumerate(assigned):
            odds_and_errors = [((math.e if o == y else 1), (o - x) ** 2) for o in outputs]
            losses.append(sum(odds * error for odds, error in odds_and_errors) / total_odds)
        smallest_loss = min(smallest_loss, float(np.average(losses, weights=weights)))
    assert rows["RR-on-Bins"]["objective"] == pytest.approx(smallest_loss, rel=1e-9)
    assert rows["best channel"]["objective"] <= smallest_loss * (1 + 1e-9)


QUERY_OPTIONS = (
    "--answers -5..5 --max-shift 2 --epsilon 1 --delta 0.01 --loss absolute",
    "--answers 0..30:5 --max-shift 5 --epsilon 0.7 --loss pinball:0.8",
    "--answers 8,3,13 --max-shift 5 --epsilon 1 --delta 0.1 --prior 1,2,5",
    "--answers 2,1,0 --neighbours all --epsilon 1 --loss error-rate",
    "--answers 0..6 --max-shift 1 --epsilon 1 --prior worst --loss huber:1.5",
)


@pytest.mark.parametrize("options", QUERY_OPTIONS)
def test_the_command_of_every_row_computes_its_loss(
    options: str, capsys: pytest.CaptureFixture[str]
):
    def run_json(line: str) -> dict:
        """Run a command line with --json, and return its output."""
        with pytest.raises(SystemExit) as stop:
            main([*shlex.split(line), "--json"])
        assert not stop.value.code
        return json.loads(capsys.readouterr().out)

    all_rows = run_json(f"recommend {options}")["rows"]
    rows = [row for row in all_rows if row["objective"] is not None]
    assert "integer noise, clamped" in {row["class"] for row in rows}
    for row in rows:
        report = run_json(row["command"].removeprefix("workbench "))
        # `recommend --only` prints a table of one row, and `design` one design.
        computed_row = report["rows"][0] if "rows" in report else report
        assert computed_row["objective"] == pytest.approx(row["objective"], rel=1e-9)


def test_a_class_whose_solver_is_stopped_shows_its_interval(monkeypatch):
    """Its solver has 0.05 seconds, and the exact audit as much time as it needs."""
    monkeypatch.setattr(TimeShares, "solver_seconds", property(lambda self: 0.05))
    monkeypatch.setattr(TimeShares, "class_seconds", 1000.0)
    result = wb.recommend(answers="0..24", max_shift=12, epsilon=1, delta="0.003")
    row = index_by_class(result)["integer noise, clamped"]
    assert "stopped" in row["notes"]
    assert (row["bound"] or 0.0) < row["objective"]
    assert (row["bound"] is None) == ("no bound is known" in row["notes"])
    assert all(
        row["objective"] <= other["objective"]
        for other in result
        if other["class"].startswith("clamped")
    )
    assert row["command"].endswith("--time-limit 600")
    assert row["certified"]


def test_an_interrupt_keeps_the_rows_that_were_reported():
    messages: list[str] = []

    def stop_after_three(done: int, total: int, message: str) -> None:
        """Press Ctrl-C when three classes are reported."""
        messages.append(message)
        if done == 3:
            raise KeyboardInterrupt

    result = wb.recommend(
        answers="0..4", max_shift=1, epsilon=1, delta="0.1", progress=stop_after_three
    )
    assert len(messages) == len(result) == 3
    assert result.is_interrupted


def test_optimal_clamped_noise_may_publish_the_lowest_answer_with_probability_1_minus_delta():
    """The answer itself is published with probability δ. So the output is wrong with probability
    1 - δ if the answer is not the lowest one, 5.
    """
    (row,) = wb.recommend(
        answers=[45, 5, 25, 40, 20, 30],
        prior=[2, 9, 5, 1, 9, 1],
        neighbours="all",
        loss="error-rate",
        epsilon="0.1",
        delta="1e-5",
        only="integer noise, clamped",
    )
    prior_of_other_answers = (2 + 5 + 1 + 9 + 1) / 27
    assert row["objective"] == pytest.approx(prior_of_other_answers * (1 - 1e-5), rel=1e-9)
    assert row["bound"] == pytest.approx(row["objective"], rel=1e-9)
    assert row["certified"]


@pytest.mark.parametrize("loss", ["squared", "absolute", "pinball:0.8"])
@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", "0.3"), ("1", "0.05"), ("3", "1e-5")])
def test_the_loss_of_bins_with_delta_is_between_those_of_related_mechanisms(
    loss: str, epsilon: str, delta: str
):
    """It is at most that of pure bins and of randomized response, and at least the optimal loss."""
    query = {
        "answers": [0, 2, 3, 7],
        "prior": [1, 5, 2, 1],
        "neighbours": "all",
        "epsilon": epsilon,
        "loss": loss,
    }
    rows = index_by_class(wb.recommend(**query, delta=delta))
    (pure,) = wb.recommend(**query, only="RR-on-Bins")
    bins, best = rows["RR-on-Bins"], rows["best channel"]
    assert bins["certified"]
    upper_bound = min(pure["objective"], rows["randomized response"]["objective"])
    assert bins["objective"] <= upper_bound * (1 + 1e-9)
    assert best["objective"] <= bins["objective"] * (1 + 1e-6)
    assert best["objective"] == pytest.approx(best["bound"], rel=1e-3)
    assert "the best of all (ε, δ) mechanisms is the best channel" in bins["notes"]


def get_best_channel(**query) -> dict:
    """Return the row of the best channel."""
    return index_by_class(wb.recommend(**query))["best channel"]


def test_a_note_bounds_what_unlisted_outputs_can_save_for_a_user_defined_loss():
    """Rounding an output to the nearest listed one changes the loss by at most s h/2.

    s is the slope of the loss (here 1), and h the distance of listed outputs.
    """

    def loss(x, o):
        """Return a loss with the slope 1 whose minima are not at x but at x ± 1/4."""
        return abs(abs(x - o) - 0.25)

    query = {"answers": "0..3", "max_shift": 1, "epsilon": 1, "prior": [3, 1, 1, 2], "loss": loss}
    integers = get_best_channel(**query)
    halves = get_best_channel(**query, outputs="0..3:0.5")
    sixteenths = get_best_channel(**query, outputs="0..3:0.0625")
    note = (
        "if the loss changes by at most s a unit, other outputs between them reduce it by at most"
    )
    assert f"{note} 0.5 s" in integers["notes"]
    assert integers["objective"] - 0.5 <= sixteenths["bound"] <= sixteenths["objective"]
    assert sixteenths["objective"] < integers["objective"] - 0.1
    assert halves["objective"] - 0.25 <= sixteenths["bound"]


TABLE = np.random.default_rng(3).integers(0, 9, (4, 4))
TABLE_QUERY = {"answers": "0..3", "max_shift": 1, "prior": [3, 1, 1, 2]}


def test_a_loss_table_is_linear_between_its_outputs():
    """A channel on a finer list with interpolated losses is not better."""
    budget = {"epsilon": 1, "delta": "0.01"}
    row = get_best_channel(**TABLE_QUERY, **budget, loss=TABLE.tolist())
    assert "linear between" in row["notes"]
    outputs = np.linspace(0, 3, 13)
    losses = [np.interp(outputs, range(4), table_row).tolist() for table_row in TABLE]
    finer = get_best_channel(**TABLE_QUERY, **budget, outputs=outputs.tolist(), loss=losses)
    assert row["objective"] == pytest.approx(finer["objective"], rel=1e-7)
    question = wb.FiniteQuery("0..3", "free", max_shift=1, prior=[3, 1, 1, 2])
    design = wb.design(question, **budget, loss=TABLE.tolist())
    assert design.objective == pytest.approx(row["objective"], rel=1e-9)
    note = (
        "The loss is read as linear between the outputs of its table. No outputs beyond them are "
        "considered."
    )
    assert note in design.words


def test_the_smallest_epsilon_for_a_loss_table_inverts_the_smallest_loss():
    question = wb.FiniteQuery("0..3", "free", max_shift=1, prior=[3, 1, 1, 2])
    options = {"loss": TABLE.tolist(), "delta": "0.01"}
    max_loss = wb.design(question, epsilon=1, **options).objective * 1.01
    design = wb.design(question, minimise="epsilon", max_loss=max_loss, **options)
    assert 0.9 < design.objective <= 1


def test_a_user_defined_loss_is_evaluated_at_every_listed_output():
    query = {"answers": "0..3", "max_shift": 1, "epsilon": 1}

    def loss(o, x):
        """Return the squared loss of the output o for the answer x."""
        return (x - o) ** 2

    on_answers = get_best_channel(**query, loss=loss)
    on_eighths = get_best_channel(**query, loss=loss, outputs="0..3:0.125")
    free = get_best_channel(**query)
    assert free["bound"] <= on_eighths["objective"] < 0.99 * on_answers["objective"]
    assert on_eighths["objective"] == pytest.approx(free["objective"], rel=5e-3)


def test_the_smallest_epsilon_of_bins_is_that_of_the_best_channel():
    """RR-on-Bins is optimal among all pure mechanisms."""
    rows = index_by_class(
        wb.recommend(answers="0..3", neighbours="all", minimise="epsilon", max_loss="0.6")
    )
    bins, best = rows["RR-on-Bins"], rows["best channel"]
    assert best["objective"] == pytest.approx(bins["objective"], rel=1e-4)
    assert bins["certified"]


def test_a_class_whose_audit_has_no_time_has_a_bound_and_a_longer_command(monkeypatch):
    query = {"answers": "0..5", "max_shift": 1, "epsilon": 1, "delta": "0.01"}
    monkeypatch.setattr(TimeShares, "class_seconds", -1.0)
    late = index_by_class(wb.recommend(**query))
    monkeypatch.undo()
    proven = index_by_class(wb.recommend(**query))
    for name in ("best channel", "modulo noise", "exponential"):
        row = late[name]
        assert row["notes"] == "stopped: not certified in time"
        assert row["objective"] is None
        assert row["command"].endswith("--time-limit 600")
        assert 0 <= row["bound"] <= proven[name]["objective"]
    assert late["best channel"]["bound"] == pytest.approx(proven["best channel"]["bound"], rel=1e-6)


def test_the_solver_of_one_of_four_classes_gets_most_of_a_quarter_of_the_time():
    time = TimeShares(100)
    time.waiting_classes = 3
    assert 19 < time.solver_seconds < 20
    assert time.class_seconds > 0


def test_a_solver_gets_a_little_time_after_the_time_limit():
    assert TimeShares(-1.0).class_seconds < 0
    assert TimeShares(-1.0).solver_seconds == 0.2
