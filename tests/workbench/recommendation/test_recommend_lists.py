"""Lists of answers of any start, step and order, any loss and prior: every class against plain programs stated here."""

from __future__ import annotations

import itertools
import json
import math
import random
import shlex
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

import workbench as wb
from workbench.cli import main
from workbench.pipeline.recommendation import TimeShares


def by_class(result) -> dict:
    return {row["class"]: row for row in result}


TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
LOSSES = {
    "squared": lambda r: r * r,
    "absolute": abs,
    "error-rate": lambda r: float(r != 0),
    "pinball:0.8": lambda r: -0.8 * r if r < 0 else 0.2 * r,
    "huber:2": lambda r: r * r / 2 if abs(r) <= 2 else 2 * (abs(r) - 1),
}


def channel_optimum(answers, most, loss, prior, epsilon: float, delta: float) -> float:
    """min Σ p(x) M(o|x) ℓ(o - x) over all channels on the answers, as one linear program."""
    k = len(answers)
    pairs = [
        (i, j)
        for i in range(k)
        for j in range(k)
        if i != j and abs(answers[i] - answers[j]) <= most
    ]
    excess = len(pairs) * k if delta else 0
    cost = [p * loss(o - x) for x, p in zip(answers, prior, strict=True) for o in answers] + [
        0.0
    ] * excess
    entries, high = [], []
    for number, (i, j) in enumerate(pairs):
        for o in range(k):
            row = {i * k + o: 1.0, j * k + o: -math.exp(epsilon)}
            if delta:
                row[k * k + number * k + o] = -1.0
            entries.append(row)
            high.append(0.0)
        if delta:
            entries.append({k * k + number * k + o: 1.0 for o in range(k)})
            high.append(delta)
    upper = sp.lil_array((len(entries), len(cost)))
    for at, row in enumerate(entries):
        for column, value in row.items():
            upper[at, column] = value
    equal = sp.kron(sp.eye_array(k), np.ones((1, k)))
    equal = sp.hstack([equal, sp.csr_array((k, excess))]) if excess else equal
    found = linprog(
        cost, upper.tocsr(), high, sp.csr_array(equal), np.ones(k), method="highs", options=TIGHT
    )
    assert found.status == 0
    return float(found.fun)


def clamped_noise(
    places, last: int, reach: int, loss, prior, epsilon: float, delta: float, far: int
) -> float:
    """The least loss of noise on -far..far, clamped to 0..last: an upper side of the optimum as far grows. Pure noise
    goes on beyond by e^-ε every `reach` at least: its masses beyond are variables, at the loss that clamping leaves."""
    eta = np.arange(-far, far + 1)
    cost = [
        sum(p * loss(min(last, max(0, x + e)), x) for x, p in zip(places, prior, strict=True))
        for e in eta
    ]
    size, shifts = eta.size, [s for s in range(-reach, reach + 1) if s]
    tails = 0 if delta else 2
    excess = len(shifts) * (size + 2 * reach) if delta else 0
    columns = size + tails + excess
    rows, high = [], []
    for number, s in enumerate(shifts):
        for at in range(-reach, size + reach) if delta else range(size):
            row = {at: 1.0} if 0 <= at < size else {}
            if 0 <= at + s < size:
                row[at + s] = -math.exp(epsilon)
            elif not delta:
                continue
            if delta:
                row[size + number * (size + 2 * reach) + at + reach] = -1.0
            rows.append(row)
            high.append(0.0)
        if delta:
            start = size + number * (size + 2 * reach)
            rows.append(dict.fromkeys(range(start, start + size + 2 * reach), 1.0))
            high.append(delta)
    if not delta:
        ratio = math.exp(-epsilon)
        for tail, ends in ((size, range(size - reach, size)), (size + 1, range(reach))):
            rows.append({tail: -1.0} | dict.fromkeys(ends, ratio / (1 - ratio)))
            high.append(0.0)
    upper = sp.lil_array((len(rows), columns))
    for at, row in enumerate(rows):
        for column, value in row.items():
            upper[at, column] = value
    equal = np.concatenate([np.ones(size + tails), np.zeros(excess)])[None, :]
    objective = [*cost, *([cost[-1], cost[0]] if tails else []), *[0.0] * excess]
    found = linprog(objective, upper.tocsr(), high, equal, [1.0], method="highs", options=TIGHT)
    assert found.status == 0
    return float(found.fun)


def generated(count: int):
    """Queries: start, step, order, relation, loss, prior, budget."""
    draw = random.Random(24)
    for number in range(count):
        n, step = draw.randint(2, 6), draw.choice([1, 2, 5, Fraction(1, 2)])
        low = draw.randint(-6, 6) * step
        answers = [low + step * i for i in range(n + 1)]
        weights = [draw.choice([0, 1, 1, 2, 5]) for _ in answers]
        weights[draw.randrange(n + 1)] = 3
        reach = draw.randint(1, n)
        order = draw.sample(range(n + 1), n + 1)
        budget = draw.choice([0.1, 0.7, 1, 3]), draw.choice([0, 0, 1e-9, 0.01, 0.3])
        loss = [*LOSSES][number % len(LOSSES)]
        yield pytest.param(
            answers, step, reach, weights, order, loss, budget, id=f"{number}-{loss}-{budget}"
        )


def given_of(given):
    """What designs take of it."""
    return {name: given[name] for name in ("loss", "epsilon", "delta")}


@pytest.mark.parametrize(
    ("answers", "step", "reach", "weights", "order", "name", "budget"), [*generated(10)]
)
def test_generated_queries(answers, step, reach, weights, order, name, budget):
    (epsilon, delta), prior = budget, [w / sum(weights) for w in weights]
    numbers, loss = [float(x) for x in answers], LOSSES[name]
    given = {"max_shift": reach * step, "loss": name, "epsilon": epsilon, "delta": delta}
    result = wb.recommend(answers=answers, prior=weights, **given)
    rows = by_class(result)
    least = channel_optimum(numbers, float(reach * step) + 1e-9, loss, prior, epsilon, delta)
    assert rows["best channel"]["objective"] <= least * (1 + 1e-6) + 1e-9  # its outputs are chosen
    confined = wb.design(
        wb.FiniteQuery(answers, max_shift=reach * step, prior=weights), **given_of(given)
    )
    assert confined.objective == pytest.approx(least, rel=1e-6, abs=1e-9)
    assert result[0]["objective"] <= least * (1 + 1e-6) + 1e-9
    n, noise = len(answers) - 1, rows["integer noise, clamped"]
    stated = (
        delta if delta > 1e-6 else 0
    )  # pure noise is private for every δ, and for a tiny one about the best
    far = (
        reach * (3 + math.ceil(math.log1p(math.expm1(epsilon) / (2 * delta)) / epsilon))
        if stated
        else 0
    )
    known = clamped_noise(
        range(n + 1),
        n,
        reach,
        lambda o, x: loss(float(step) * (o - x)),
        prior,
        epsilon,
        stated,
        2 * n + far,
    )
    assert noise["bound"] <= known * (1 + 1e-6) + 1e-9
    assert noise["objective"] <= known * (1 + 1e-6) + 1e-9
    if not delta:
        assert noise["objective"] == pytest.approx(known, rel=1e-6, abs=1e-9)
    assert noise["objective"] - noise["bound"] <= 1e-6 * noise["objective"] + 1e-12
    assert noise["certified"]
    other = by_class(
        wb.recommend(
            answers=[answers[i] for i in order], prior=[weights[i] for i in order], **given
        )
    )
    for row in result:
        again = other[row["class"]]
        if row["objective"] is None:
            assert again["objective"] is None
        else:
            assert again["objective"] == pytest.approx(row["objective"], rel=1e-7, abs=1e-12), row[
                "class"
            ]


def test_the_numbers_that_were_missing():
    shifted = by_class(wb.recommend(answers="3..12", max_shift=1, epsilon=1, delta="0.01"))
    noise = wb.design(wb.IntegerNoise(1, clamp=(3, 12)), epsilon=1, delta="0.01")
    assert shifted["integer noise, clamped"]["objective"] == noise.objective
    assert noise.objective == pytest.approx(1.213654, abs=1e-6)
    named = by_class(
        wb.recommend(answers="0..10", max_shift=1, loss="huber:2", epsilon=1, delta="0.01")
    )
    listed = [min(r, 2) * (r - min(r, 2) / 2) for r in range(11)]
    own = wb.design(wb.IntegerNoise(1, clamp=(0, 10)), epsilon=1, delta="0.01", loss=listed)
    assert named["integer noise, clamped"]["objective"] == pytest.approx(own.objective, rel=1e-9)
    for delta in (0, "1e-12"):
        skewed = wb.recommend(
            answers="0..6", max_shift=1, prior=[5, 2, 1, 1, 1, 0, 0], epsilon=1, delta=delta
        )
        row = by_class(skewed)["integer noise, clamped"]
        assert row["objective"] == pytest.approx(1.04304, abs=1e-5)
        assert row["bound"] == pytest.approx(row["objective"], rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 20.0])
@pytest.mark.parametrize("loss", ["pinball:0.9", "huber:2", "absolute"])
def test_pure_noise_that_is_not_clamped(epsilon: float, loss: str):
    """Neighbours 1 apart: of an asymmetric loss the law is geometric on each side, whose scale is searched here."""
    design = wb.design(wb.IntegerNoise(1), epsilon=epsilon, loss=loss)
    alpha, eta = math.exp(-epsilon), np.arange(-400, 401)
    losses = np.array(
        [LOSSES[loss](float(e)) if loss in LOSSES else max(-0.9 * e, 0.1 * e) for e in eta]
    )
    best = min(
        float(
            (alpha ** np.abs(eta - centre) * losses).sum() / (alpha ** np.abs(eta - centre)).sum()
        )
        for centre in range(-20, 21)
    )
    assert design.objective == pytest.approx(best, rel=1e-6)
    assert design.bound <= design.objective * (1 + 1e-12)
    assert design.row()["certified"]
    assert design.bound == pytest.approx(design.objective, rel=1e-6)


def test_what_is_no_number_has_no_noise_and_gaps_are_by_value():
    colours = by_class(
        wb.recommend(answers="red,green,blue", neighbours="all", epsilon=1, loss="error-rate")
    )
    served = {name for name, row in colours.items() if row["objective"] is not None}
    assert served == {"best channel", "randomized response"}
    squares = by_class(wb.recommend(answers="0,1,4,9,16", neighbours="consecutive", epsilon=1))
    alpha, places = math.exp(-1 / 7), [0, 1, 4, 9, 16]  # neighbours are up to 7 apart
    eta = np.arange(-2000, 2001)
    mass = alpha ** np.abs(eta)
    mass /= mass.sum()
    nearest = [min(places, key=lambda x: (abs(x - v), x)) for v in range(17)]
    each = [
        sum(m * (nearest[min(16, max(0, x + e))] - x) ** 2 for e, m in zip(eta, mass, strict=True))
        for x in places
    ]
    assert squares["clamped geometric"]["objective"] == pytest.approx(np.mean(each), rel=1e-9)
    ones = by_class(wb.recommend(answers="0..6", max_shift=1, epsilon=1))
    assert ones["clamped staircase"]["objective"] is None
    assert "geometric" in ones["clamped staircase"]["notes"]


def test_bins_at_a_delta():
    """Two answers: every (ε, δ) mechanism is randomized response that tells the answer with probability δ."""
    two = by_class(wb.recommend(answers="0,1", neighbours="all", epsilon="0.5", delta="0.1"))[
        "RR-on-Bins"
    ]
    p = math.exp(0.5) / (1 + math.exp(0.5))
    assert two["objective"] == pytest.approx(0.9 * p * (1 - p), rel=1e-12)
    assert two["bound"] == pytest.approx(two["objective"], rel=1e-9)
    assert two["certified"]
    pure = by_class(wb.recommend(answers="0..6", neighbours="all", epsilon=1))["RR-on-Bins"]
    mixed = by_class(wb.recommend(answers="0..6", neighbours="all", epsilon=1, delta="0.05"))[
        "RR-on-Bins"
    ]
    assert mixed["objective"] == pytest.approx(0.95 * pure["objective"], rel=1e-9)


def test_bins_on_given_outputs_are_the_best_of_all_bins():
    rows = by_class(
        wb.recommend(
            answers="0..5", outputs=[1, 3, 4], neighbours="all", epsilon=1, prior=[3, 1, 1, 1, 1, 2]
        )
    )
    weights, odds, best = np.array([3, 1, 1, 1, 1, 2]) / 9, math.e, math.inf
    for own in itertools.product([1, 3, 4], repeat=6):
        used = sorted(set(own))
        total = odds + len(used) - 1
        each = [
            sum((odds if o == y else 1) * (o - x) ** 2 for o in used) / total
            for x, y in enumerate(own)
        ]
        best = min(best, float(weights @ each))
    assert rows["RR-on-Bins"]["objective"] == pytest.approx(best, rel=1e-9)
    assert rows["best channel"]["objective"] <= best * (1 + 1e-9)


COMMANDS = (
    "--answers -5..5 --max-shift 2 --epsilon 1 --delta 0.01 --loss absolute",
    "--answers 0..30:5 --max-shift 5 --epsilon 0.7 --loss pinball:0.8",
    "--answers 8,3,13 --max-shift 5 --epsilon 1 --delta 0.1 --prior 1,2,5",
    "--answers 2,1,0 --neighbours all --epsilon 1 --loss error-rate",
    "--answers 0..6 --max-shift 1 --epsilon 1 --prior worst --loss huber:1.5",
)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_makes_its_row(line: str, capsys: pytest.CaptureFixture[str]):
    def run(words: str) -> dict:
        with pytest.raises(SystemExit) as stop:
            main(shlex.split(words))
        assert not stop.value.code
        return json.loads(capsys.readouterr().out)

    rows = [row for row in run(f"recommend {line} --json")["rows"] if row["objective"] is not None]
    assert "integer noise, clamped" in {row["class"] for row in rows}
    for row in rows:
        made = run(row["command"].removeprefix("workbench ") + " --json")
        again = made["rows"][0] if "rows" in made else made
        assert again["objective"] == pytest.approx(row["objective"], rel=1e-9)


def test_a_class_that_is_stopped_shows_its_interval(monkeypatch):
    """By the time of its solvers, while exact work has all it needs."""
    monkeypatch.setattr(TimeShares, "solver_seconds", property(lambda self: 0.05))
    monkeypatch.setattr(TimeShares, "class_seconds", 1000.0)
    result = wb.recommend(answers="0..24", max_shift=12, epsilon=1, delta="0.003")
    row = by_class(result)["integer noise, clamped"]
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


def test_rows_are_told_as_they_are_ready_and_an_interrupt_keeps_them():
    told: list[str] = []

    def stop(done: int, total: int, what: str) -> None:
        told.append(what)
        if done == 3:
            raise KeyboardInterrupt

    result = wb.recommend(answers="0..4", max_shift=1, epsilon=1, delta="0.1", progress=stop)
    assert len(told) == len(result) == 3
    assert result.is_interrupted


def test_noise_that_is_best_as_far_out_as_it_may_be():
    """Publishing the lowest answer whatever the answer, but for the answer itself with δ; neighbours 8 steps apart."""
    query = {"answers": [45, 5, 25, 40, 20, 30], "prior": [2, 9, 5, 1, 9, 1], "neighbours": "all"}
    (row,) = wb.recommend(
        **query, loss="error-rate", epsilon="0.1", delta="1e-5", only="integer noise, clamped"
    )
    assert row["objective"] == pytest.approx(18 / 27 * (1 - 1e-5), rel=1e-9)
    assert row["bound"] == pytest.approx(row["objective"], rel=1e-9)
    assert row["certified"]


@pytest.mark.parametrize("loss", ["squared", "absolute", "pinball:0.8"])
@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", "0.3"), ("1", "0.05"), ("3", "1e-5")])
def test_bins_at_a_delta_are_between_the_best_channel_and_what_they_mix(
    loss: str, epsilon: str, delta: str
):
    """Neither pure RR-on-Bins nor randomized response at (ε, δ) costs less; no row costs less than the best channel."""
    query = {
        "answers": [0, 2, 3, 7],
        "prior": [1, 5, 2, 1],
        "neighbours": "all",
        "epsilon": epsilon,
        "loss": loss,
    }
    rows = by_class(wb.recommend(**query, delta=delta))
    (pure,) = wb.recommend(**query, only="RR-on-Bins")
    bins, best = rows["RR-on-Bins"], rows["best channel"]
    assert bins["certified"]
    assert bins["objective"] <= min(pure["objective"], rows["randomized response"]["objective"]) * (
        1 + 1e-9
    )
    assert best["objective"] <= bins["objective"] * (1 + 1e-6)
    assert best["objective"] == pytest.approx(best["bound"], rel=1e-3)
    assert "the best of all (ε, δ) mechanisms is the best channel" in bins["notes"]


def test_an_own_function_says_what_outputs_between_those_listed_may_gain():
    """At most s h/2, s its slope, h the largest gap: each is rounded to the nearest."""
    query = {"max_shift": 1, "epsilon": 1, "prior": [3, 1, 1, 2], "answers": "0..3"}

    def loss(x, o):
        return abs(abs(x - o) - 0.25)

    def channel(outputs):
        return by_class(wb.recommend(**query, loss=loss, outputs=outputs))["best channel"]

    few = by_class(wb.recommend(**query, loss=loss))["best channel"]
    bound = (
        "if the loss changes by at most s a unit, other outputs between them reduce it by at most"
    )
    assert f"{bound} 0.5 s" in few["notes"]
    halves, fine = channel("0..3:0.5"), channel("0..3:0.0625")
    assert few["objective"] - 0.5 <= fine["bound"] <= fine["objective"] < few["objective"] - 0.1
    assert halves["objective"] - 0.25 <= fine["bound"]


def test_a_table_is_linear_between_its_outputs():
    """No channel on a finer list costs less than one on the outputs of the table, which is said of all real outputs."""
    rng = np.random.default_rng(3)
    table = rng.integers(0, 9, (4, 4))
    query = {
        "answers": "0..3",
        "max_shift": 1,
        "epsilon": 1,
        "delta": "0.01",
        "prior": [3, 1, 1, 2],
    }
    row = by_class(wb.recommend(**query, loss=table.tolist()))["best channel"]
    assert "linear between" in row["notes"]
    fine = np.linspace(0, 3, 13)
    between = np.array([np.interp(fine, range(4), each) for each in table])
    finer = by_class(wb.recommend(**query, outputs=fine.tolist(), loss=between.tolist()))[
        "best channel"
    ]
    assert row["objective"] == pytest.approx(finer["objective"], rel=1e-7)
    question = wb.FiniteQuery("0..3", "free", max_shift=1, prior=[3, 1, 1, 2])
    design = wb.design(question, loss=table.tolist(), epsilon=1, delta="0.01")
    assert design.objective == pytest.approx(row["objective"], rel=1e-9)
    assert (
        "The loss is read as linear between the outputs of its table. No outputs beyond them are "
        "considered."
    ) in design.words
    least = wb.design(
        question,
        loss=table.tolist(),
        delta="0.01",
        minimise="epsilon",
        max_loss=design.objective * 1.01,
    )
    assert 0.9 < least.objective <= 1


def test_an_own_function_is_asked_at_every_output_that_is_listed():
    given = {"answers": "0..3", "max_shift": 1, "epsilon": 1}
    few, many = (
        by_class(wb.recommend(**given, loss=lambda o, x: (x - o) ** 2, **outputs))["best channel"]
        for outputs in ({}, {"outputs": "0..3:0.125"})
    )
    free = by_class(wb.recommend(**given))["best channel"]
    assert free["bound"] <= many["objective"] < 0.99 * few["objective"]
    assert many["objective"] == pytest.approx(free["objective"], rel=5e-3)


def test_the_least_epsilon_where_every_two_answers_are_neighbours():
    rows = by_class(
        wb.recommend(answers="0..3", neighbours="all", minimise="epsilon", max_loss="0.6")
    )
    bins, best = rows["RR-on-Bins"], rows["best channel"]
    assert best["objective"] == pytest.approx(
        bins["objective"], rel=1e-4
    )  # the least of all pure mechanisms
    assert bins["certified"]


def test_exact_work_ends_with_the_time_as_a_solver_does(monkeypatch):
    """A class whose audit has no time says so, with its bound and the command that goes on."""
    monkeypatch.setattr(TimeShares, "class_seconds", -1.0)
    late = by_class(wb.recommend(answers="0..5", max_shift=1, epsilon=1, delta="0.01"))
    monkeypatch.undo()
    proven = by_class(wb.recommend(answers="0..5", max_shift=1, epsilon=1, delta="0.01"))
    for name in ("best channel", "modulo noise", "exponential"):
        row = late[name]
        assert row["notes"] == "stopped: not certified in time"
        assert row["objective"] is None
        assert row["command"].endswith("--time-limit 600")
        assert 0 <= row["bound"] <= proven[name]["objective"]
    assert late["best channel"]["bound"] == pytest.approx(proven["best channel"]["bound"], rel=1e-6)


def test_the_time_of_a_class_is_for_solvers_and_exact_work():
    time = TimeShares(100)
    time.waiting_classes = 3
    assert 19 < time.solver_seconds < 20
    assert time.class_seconds > 0
    assert TimeShares(-1.0).class_seconds < 0
    assert TimeShares(-1.0).solver_seconds == 0.2
