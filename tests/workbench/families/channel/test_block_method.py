"""Test that the block method agrees with the linear program, and refuses unsuitable requests.

The block method is an interior-point method that solves one output at a time (`--method block`).
"""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import workbench as wb
from workbench.families.channel import block_work, blocks
from workbench.families.channel.extra_rows import ExtraRows
from workbench.families.channel.family import FAMILY
from workbench.solvers.data import Data
from workbench.solvers.program import Program
from workbench.solvers.solution import PointStatus

# Kinds of random questions: all pairs are neighbours, consecutive answers are, or the edges of a
# random tree are (with one more edge, with distances, or without most edges). A rectangle has other
# outputs than inputs.
KINDS = ("all", "line", "graph", "metric", "parts", "rectangle")


def list_seeds(count: int, fast_count: int) -> list[Any]:
    """Return the seeds 0..count-1. Those from fast_count on are left to `make test-all`."""
    slow_seeds = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(fast_count, count)]
    return [*range(fast_count), *slow_seeds]


def make_random_request(seed: int) -> tuple[wb.FiniteQuery, dict[str, object]]:
    """Make a random question of the kind `seed` modulo 6, and its options (loss and budget).

    Other remainders of the seed decide about the loss, the prior and the notion, such that many
    combinations occur.
    """
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    k = int(rng.integers(3, 11))
    m = int(rng.integers(2, 12)) if kind == "rectangle" else k
    loss = (np.arange(k)[:, None] - np.arange(m)) ** 2
    if seed % 4 == 3:
        loss = rng.integers(0, 50, (k, m))
    # Every fifth prior may have weights 0.
    smallest_weight = 1 if seed % 5 else 0
    weights = rng.integers(low=smallest_weight, high=20, size=k)
    if not weights.any():
        weights += 1
    prior: object = weights.tolist()
    if seed % 3 == 2:
        prior = "worst"
    tree = [[i, int(rng.integers(0, i))] for i in range(1, k)]
    is_closed = [0, k - 1] in tree or [k - 1, 0] in tree
    neighbours: object = {
        "all": "all",
        "line": "consecutive",
        "graph": tree if is_closed else [*tree, [0, k - 1]],
        "metric": [[*pair, int(rng.integers(1, 4))] for pair in tree],
        "parts": [[i, i + 1] for i in range(0, k - 2, 2)],
        "rectangle": "consecutive",
    }[kind]
    question = wb.FiniteQuery(range(k), range(m), neighbours=neighbours, prior=prior)
    options = {"loss": loss, "epsilon": f"{rng.uniform(0.1, 3):.2f}"}
    if seed % 7 < 3 and kind != "metric":
        return question, {**options, "notion": "dp", "delta": f"{10 ** rng.uniform(-7, -0.5):.2g}"}
    return question, {**options, "notion": "metric" if kind == "metric" else "pure"}


def assert_methods_agree(seed: int) -> None:
    """Assert that both methods find the same optimum of a random request, and that it is proven."""
    question, options = make_random_request(seed)
    by_blocks = wb.design(question, method="block", **options)
    by_program = wb.design(question, method="program", **options)
    if by_blocks.solution is None:
        # No method is needed if one output for all answers has the loss without privacy.
        assert by_blocks.objective == by_blocks.bound
    else:
        assert by_blocks.solution.solver == "block"
    assert by_blocks.certificate is not None
    assert by_blocks.bound is not None
    assert abs(by_blocks.objective - by_program.objective) <= 1e-8
    assert by_blocks.objective - by_blocks.bound <= 1e-8


@pytest.mark.parametrize("seed", list_seeds(200, fast_count=40))
def test_random_channels_have_the_optimum_of_the_program(seed: int) -> None:
    assert_methods_agree(seed)


def make_random_constraints(seed: int, k: int, m: int) -> object:
    """Make constraints, each of which is linear in one row or one column of the channel.

    Returns names, or a function of the CVXPY variable M of shape (k, m).
    """
    rng = np.random.default_rng(seed + 1_000_000)
    y = int(rng.integers(k))  # An answer.
    o = int(rng.integers(m))  # An output.
    uniform_mass = 1 / m
    weights = rng.dirichlet(np.ones(k))
    distances = np.abs(np.arange(m) - y)
    # A uniform channel nearly satisfies each of these constraints, so they are feasible.
    choices: list[object] = [
        lambda M: [M[y, o] >= uniform_mass * 1.1],
        lambda M: [
            weights @ M[:, o] <= uniform_mass * 0.9,
            weights @ M[:, (o + 1) % m] >= uniform_mass * 1.05,
        ],
        lambda M: [M[y, :] @ distances <= 0.95 * distances.mean() + 0.01],
        lambda M: [weights @ M[:, o] == uniform_mass],
        ["column-monotone"],
        lambda M: [M[y, o] == uniform_mass, max(0.9, 2 * uniform_mass) >= M],
        ["honest", "row-monotone"] if k <= m else ["column-monotone"],
    ]
    return choices[seed % len(choices)]


@pytest.mark.parametrize("seed", [*list_seeds(42, fast_count=12), 158])
def test_random_constrained_channels_have_the_optimum_of_the_program(seed: int) -> None:
    question, options = make_random_request(seed)
    options |= {"constraints": make_random_constraints(seed, question.k, question.m)}
    by_blocks = wb.design(question, method="block", **options)
    by_program = wb.design(question, method="program", **options)
    assert by_blocks.solution.solver == "block"
    assert abs(by_blocks.objective - by_program.objective) <= 1e-8
    assert by_blocks.objective - by_blocks.bound <= 1e-8
    assert by_blocks.certificate is not None
    for note in by_blocks.words:
        violation = re.search(r"violates the extra constraints by (\S+),", note)
        assert violation is None or float(violation[1]) <= 1e-8


def test_a_large_constrained_channel_is_solved_by_blocks_by_default() -> None:
    """Every place is published as itself with a probability of at least 0.1."""
    places = [(i, j) for i in range(10) for j in range(10)]
    weights = np.random.default_rng(1).integers(low=1, high=20, size=len(places)).tolist()
    question = wb.FiniteQuery(places, neighbours="within 1 L1", prior=weights)
    design = wb.design(
        question,
        loss="euclidean",
        epsilon="0.7",
        notion="pure",
        constraints=lambda M: [cp.diag(M) >= 0.1],
    )
    assert design.solution.solver == "block"
    true_masses = [float(row[index]) for index, row in enumerate(design.mechanism.rows)]
    assert min(true_masses) >= 0.1 - 1e-9
    # Value of the current program, pinned.
    assert design.objective == pytest.approx(1.7628954957, abs=5e-10)
    assert design.objective - design.bound <= 1e-8


def test_constraints_that_conflict_are_named() -> None:
    with pytest.raises(wb.Infeasible, match="constraints"):
        wb.design(
            wb.FiniteQuery("0..9", max_shift=1),
            epsilon="0.1",
            notion="pure",
            method="block",
            constraints=lambda M: [M[0, 0] >= 0.9, M[9, 9] >= 0.9],
        )


def test_neighbours_on_a_grid_have_the_optimum_of_the_program() -> None:
    """The optimum 1.6230696097 was computed by the linear program."""
    points = [(i, j) for i in range(8) for j in range(8)]
    # The Euclidean distance of each pair of points, and the pairs of adjacent points.
    loss = [[math.dist(point, output) for output in points] for point in points]
    adjacent_pairs = [
        [first, second]
        for first, second in itertools.combinations(points, 2)
        if math.dist(first, second) == 1
    ]
    prior = np.random.default_rng(1).integers(low=1, high=20, size=len(points)).tolist()
    question = wb.FiniteQuery(points, neighbours=adjacent_pairs, prior=prior)
    design = wb.design(question, loss=loss, epsilon="0.7", notion="pure")
    assert design.solution is not None
    assert design.solution.solver == "block"  # The default method is the faster one.
    assert design.objective == pytest.approx(1.6230696097, abs=5e-10)
    assert design.objective - (design.bound or 0) <= 1e-8


def test_a_channel_of_all_pairs_has_the_optimum_of_the_program() -> None:
    """The optimum 699.78263456 was computed by the linear program."""
    design = wb.design(
        wb.FiniteQuery("0..99", neighbours="all"), epsilon=1, notion="pure", method="block"
    )
    assert design.objective == pytest.approx(699.78263456, abs=5e-7)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 1, "delta": "1e-3", "notion": "pdp"}, "delta = 0 for pdp"),
        (
            {"epsilon": 1, "notion": "pure", "constraints": ["symmetric"]},
            "in one row or one column of the channel with --method block",
        ),
        (
            {"epsilon": 1, "constraints": lambda M: [M[0, 0] == M[1, 1]]},
            "in one row or one column of the channel",
        ),
        (
            {"epsilon": 1, "constraints": lambda M: [cp.abs(M[0, 0] - 0.2) <= 0.1]},
            "must be linear in one row or one column",
        ),
        ({"notion": "zcdp", "rho": 1}, "one bound on ratios"),
        ({"epsilon": 1, "minimise": "delta", "max_loss": 1}, "a given delta"),
    ],
)
def test_requests_that_the_block_method_cannot_answer_are_refused_in_one_line(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(wb.InvalidRequest, match=message) as error:
        wb.design(wb.FiniteQuery("0..5", max_shift=1), method="block", **options)
    assert str(error.value).count("\n") == 0


@pytest.mark.parametrize(
    ("shift", "delta", "optimum"), [(1, "1e-5", 0.8373337726784), (2, "0.01", 1.71058905632)]
)
def test_masses_that_delta_makes_unnecessary_are_omitted_with_a_valid_bound(
    shift: int, delta: str, optimum: float
) -> None:
    """The optima are values of the current program, pinned. The bound proves that none is smaller."""
    question = wb.FiniteQuery("0..99", max_shift=shift)
    design = wb.design(question, loss="absolute", epsilon=1, delta=delta, method="block")
    request = design.request
    assert request.stated_masses.sum() < request.stated_masses.size // 2
    assert design.bound <= optimum + 1e-7
    assert design.objective == pytest.approx(optimum, abs=2e-7)
    assert design.objective - design.bound <= 1e-8


def test_all_masses_are_stated_after_too_many_were_omitted(monkeypatch: pytest.MonkeyPatch) -> None:
    question = wb.FiniteQuery("0..19", max_shift=1)
    request = FAMILY.make_request(
        question, loss="absolute", epsilon=1, delta="0.01", method="block"
    )
    is_adjacent = np.abs(np.subtract.outer(np.arange(20), np.arange(20))) <= 1
    monkeypatch.setitem(vars(request), "stated_masses", is_adjacent)
    design = FAMILY.design_request(request)
    assert design.objective - design.bound <= 1e-8
    reduced_outcome = blocks.solve_by_blocks(request, is_adjacent)
    assert reduced_outcome.solution.point is PointStatus.INFEASIBLE


# Requests that take several iterations: name -> (question, budget).
SLOW_REQUESTS = {
    "all pairs": (wb.FiniteQuery("0..39", neighbours="all"), {"epsilon": 1, "notion": "pure"}),
    "delta": (wb.FiniteQuery("0..39", max_shift=1), {"epsilon": 1, "delta": "0.01"}),
    "delta, worst": (
        wb.FiniteQuery("0..19", max_shift=1, prior="worst"),
        {"epsilon": 1, "delta": "0.01"},
    ),
}


@pytest.mark.parametrize(("question", "options"), SLOW_REQUESTS.values(), ids=[*SLOW_REQUESTS])
def test_a_time_limit_leaves_a_certified_channel(
    question: wb.FiniteQuery, options: dict[str, object]
) -> None:
    with pytest.raises(wb.NotProven) as error:
        wb.design(question, **options, method="block", time_limit=1e-6)
    stopped = error.value.design
    assert stopped.certificate is not None
    assert stopped.solution.raw_status == "time limit"
    assert stopped.objective >= stopped.bound >= 0


@pytest.mark.parametrize(
    ("options", "solver"),
    [({}, "block"), ({"method": "program"}, "highs"), ({"solver": "ortools:glop"}, "ortools:glop")],
)
def test_a_named_method_or_solver_replaces_the_default_blocks(
    options: dict[str, str], solver: str
) -> None:
    question = wb.FiniteQuery("0..39", neighbours="all")
    design = wb.design(question, epsilon=1, notion="pure", **options)
    assert design.solution.solver == solver


def test_progress_reports_increasing_iterations_and_decreasing_gaps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(blocks, "_PROGRESS_PERIOD_SECONDS", 0.0)
    lines: list[str] = []
    question = wb.FiniteQuery("0..39", neighbours="all")
    wb.design(question, epsilon=1, notion="pure", method="block", progress=lines.append)
    form = re.compile(r"iteration (\d+): loss (\S+), gap (\S+), about \d+ s left")
    matches = [match for line in lines if (match := form.fullmatch(line))]
    assert len(matches) == len(lines) >= 3
    gaps = [float(match[3]) for match in matches]
    assert gaps == sorted(gaps, reverse=True)
    iterations = [int(match[1]) for match in matches]
    assert iterations == sorted({*iterations})


@pytest.mark.parametrize(("question", "options"), SLOW_REQUESTS.values(), ids=[*SLOW_REQUESTS])
def test_ctrl_c_keeps_the_best_channel_certified(
    monkeypatch: pytest.MonkeyPatch, question: wb.FiniteQuery, options: dict[str, object]
) -> None:
    monkeypatch.setattr(blocks, "_PROGRESS_PERIOD_SECONDS", 0.0)
    lines: list[str] = []

    def interrupt_third_line(line: str) -> None:
        """Note a line of the progress, and raise KeyboardInterrupt like Ctrl-C at the third one."""
        lines.append(line)
        if len(lines) == 3:
            raise KeyboardInterrupt

    with pytest.raises(wb.NotProven) as error:
        wb.design(question, **options, method="block", progress=interrupt_third_line)
    design = error.value.design
    assert error.value.interrupted
    assert design.certificate is not None
    losses = design.request.losses.floats
    output_losses = losses.max(axis=0) if question.prior is None else losses.mean(axis=0)
    best_constant_loss = output_losses.min()
    assert design.bound < design.objective < best_constant_loss


@pytest.mark.parametrize("seed", [3180, 3186, 3290, 3354])
def test_the_optimum_is_proven_for_a_small_delta(seed: int) -> None:
    """These requests have δ from 2e-7 to 1e-5, at which the blocks are nearly singular."""
    assert_methods_agree(seed)


def test_a_channel_too_large_for_the_memory_is_refused_with_the_size_that_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The machine seems to have 2^14 pages of 2^14 bytes.
    monkeypatch.setattr(block_work.os, "sysconf", lambda _: 1 << 14)
    with pytest.raises(
        wb.InvalidRequest, match=r"memory of this machine; about \d+ inputs would"
    ) as error:
        wb.design(
            wb.FiniteQuery("0..499", neighbours="all"), epsilon=1, notion="pure", method="block"
        )
    fitting_inputs = int(re.findall(r"about (\d+) inputs", str(error.value))[0])
    fitting_size = block_work.BlocksSize(fitting_inputs, fitting_inputs, None)
    double_size = block_work.BlocksSize(2 * fitting_inputs, 2 * fitting_inputs, None)
    assert block_work.explain_memory_shortfall(fitting_size) is None
    assert block_work.explain_memory_shortfall(double_size) is not None


@pytest.mark.parametrize(
    ("text", "prior", "message"),
    [
        ("0,0\n0,1\n0,0\n", None, "all different"),
        ("0,0\n0,nan\n", None, "line 2, column 2 of city.csv must be a finite number"),
        ("0,0,0\n0,1,0\n", None, "weights >= 0, not all 0"),
        ("0,0\n0,1\n", [0, 0], "weights >= 0, not all 0"),
        (
            "\n".join(f"{i},0" for i in range(4001)),
            None,
            "places must be at most 4000. Got 4001",
        ),
    ],
)
def test_an_invalid_file_of_places_is_refused_in_one_line(
    tmp_path: Path, text: str, prior: object, message: str
) -> None:
    path = tmp_path / "city.csv"
    path.write_text(text)
    with pytest.raises(wb.InvalidRequest, match=message) as error:
        wb.FiniteQuery(str(path), neighbours="within 1 L1", prior=prior)
    assert "\n" not in str(error.value)


def test_a_note_states_that_places_are_in_two_separate_parts() -> None:
    places = [(0, 0), (0, 1), (5, 5), (5, 6)]
    question = wb.FiniteQuery(places, neighbours="within 1 L1")
    design = wb.design(question, loss="euclidean", epsilon=1, notion="pure", method="block")
    assert any("2 separate parts" in note for note in design.words)


@pytest.mark.parametrize("right_side", [-1.0, 1.0])
def test_an_equation_without_a_mass_makes_the_request_infeasible(right_side: float) -> None:
    """The equation 0 = ±1 has no coefficient, but it must not be dropped with the empty rows."""
    data = Data(
        np.zeros(4),
        offset=0.0,
        A=sp.csc_array(([1.0], ([1], [0])), shape=(2, 4)),
        row_lower=np.array([right_side, -np.inf]),
        row_upper=np.array([right_side, 0.5]),
        lower=np.zeros(4),
        upper=np.ones(4),
        integrality=np.zeros(4, dtype=bool),
    )
    assert ExtraRows.from_program(Program("an equation, and a row", data), 2).has_mixed_rows(2)
    constraint = [lambda M: [0 * cp.sum(M) == right_side, M[0, 0] <= 0.5]]
    with pytest.raises(wb.Infeasible, match="This constraint alone is infeasible"):
        wb.design(
            wb.FiniteQuery(range(4), neighbours="all"),
            loss="squared",
            epsilon=1,
            constraints=constraint,
        )


def test_an_output_that_is_best_for_no_input_may_be_omitted():
    """The outputs 0.5, 1.5, ... are best for no answer, so δ makes their masses unnecessary."""
    design = wb.design(
        "channel",
        answers="0..70",
        outputs="0..70:0.5",
        max_shift=3,
        prior="worst",
        loss="squared",
        epsilon=1,
        delta="0.3",
        method="block",
    )
    assert design.request.stated_masses is not None
    assert not design.request.stated_masses.any(axis=0).all()
    assert design.objective == pytest.approx(design.bound, rel=1e-7)


def test_a_channel_whose_objective_is_infinite_is_saved(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """The objective is infinite while the row sums are not 1. The repair still gives a channel."""
    find_point = blocks._find_block_point

    def find_unfinished_point(*arguments: Any) -> Any:
        """Find the point of the method, and change it to one of a search that was stopped early."""
        return replace(find_point(*arguments), objective=math.inf, stop_reason="time limit")

    monkeypatch.setattr(blocks, "_find_block_point", find_unfinished_point)
    question = wb.FiniteQuery("0..4", neighbours="consecutive", prior="worst")
    with pytest.raises(wb.NotProven) as stopped:
        wb.design(question, loss=np.arange(25).reshape(5, 5) % 7, epsilon=1, method="block")
    stopped.value.design.save(tmp_path / "channel.json")
    certificate = wb.check(tmp_path / "channel.json")
    assert "claimed" not in certificate.record


@pytest.mark.parametrize("unit", [1, 1000])
def test_a_stopped_method_returns_no_channel_that_violates_the_constraints(unit: int):
    """The repair restores the privacy of the channel, but not the constraints."""
    answers = [i * unit for i in range(9)]
    outputs = [i * unit for i in range(-4, 13)]
    question = wb.FiniteQuery(answers, outputs, neighbours="consecutive")
    options = {"loss": "squared", "epsilon": 1, "constraints": ["unbiased"], "method": "block"}
    with pytest.raises(
        wb.NotProven, match="before it had a channel that satisfies the constraints"
    ) as stopped:
        wb.design(question, time_limit="0.000001", **options)
    assert stopped.value.design is None
    assert stopped.value.incumbent is None
    assert wb.design(question, **options).certificate.bias.worst == 0
