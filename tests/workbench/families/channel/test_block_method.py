"""The interior point output by output: agrees with the program in CVXPY, certified, and refuses what it cannot take."""

from __future__ import annotations

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

FORMS = ("all", "line", "graph", "metric", "parts", "rectangle")


def asked(seed: int) -> tuple[wb.FiniteQuery, dict[str, object]]:
    """A random question of one of the forms, and its options."""
    rng = np.random.default_rng(seed)
    form = FORMS[seed % len(FORMS)]
    k = int(rng.integers(3, 11))
    m = int(rng.integers(2, 12)) if form == "rectangle" else k
    loss = (
        rng.integers(0, 50, (k, m))
        if seed % 4 == 3
        else (np.arange(k)[:, None] - np.arange(m)) ** 2
    )
    weights = rng.integers(1 if seed % 5 else 0, 20, k)
    prior = "worst" if seed % 3 == 2 else [*map(int, weights + (weights.sum() == 0))]
    tree = [[i, int(rng.integers(0, i))] for i in range(1, k)]
    neighbours: object = {
        "all": "all",
        "line": "consecutive",
        "graph": tree + [[0, k - 1]] * ([0, k - 1] not in tree and [k - 1, 0] not in tree),
        "metric": [[*pair, int(rng.integers(1, 4))] for pair in tree],
        "parts": [[i, i + 1] for i in range(0, k - 2, 2)],
        "rectangle": "consecutive",
    }[form]
    question = wb.FiniteQuery(range(k), range(m), neighbours=neighbours, prior=prior)
    options = {"loss": loss, "epsilon": f"{rng.uniform(0.1, 3):.2f}"}
    if seed % 7 < 3 and form != "metric":
        return question, {**options, "notion": "dp", "delta": f"{10 ** rng.uniform(-7, -0.5):.2g}"}
    return question, {**options, "notion": "metric" if form == "metric" else "pure"}


def agree(seed: int) -> None:
    """Both methods have one optimum."""
    question, options = asked(seed)
    ours = wb.design(question, method="block", **options)
    other = wb.design(question, method="program", **options)
    if (
        needs_no_program := ours.solution is None
    ):  # one output for all costs no more than without privacy
        assert ours.objective == ours.bound
    assert needs_no_program or ours.solution.solver == "block"
    assert ours.certificate is not None
    assert ours.bound is not None
    assert abs(ours.objective - other.objective) <= 1e-8
    assert ours.objective - ours.bound <= 1e-8


@pytest.mark.parametrize("seed", range(200))
def test_random_channels(seed: int) -> None:
    agree(seed)


def own(seed: int, k: int, m: int) -> object:
    """A random constraint of one's own of one of the kinds that fit an output or an input."""
    rng = np.random.default_rng(seed + 1_000_000)
    y, o, even, p = int(rng.integers(k)), int(rng.integers(m)), 1 / m, rng.dirichlet(np.ones(k))
    far = np.abs(np.arange(m) - y)
    kinds: list[object] = [
        lambda M: [M[y, o] >= even * 1.1],
        lambda M: [p @ M[:, o] <= even * 0.9, p @ M[:, (o + 1) % m] >= even * 1.05],
        lambda M: [M[y, :] @ far <= 0.95 * far.mean() + 0.01],
        lambda M: [p @ M[:, o] == even],
        ["column-monotone"],
        lambda M: [M[y, o] == even, max(0.9, 2 * even) >= M],
        ["honest", "row-monotone"] if k <= m else ["column-monotone"],
    ]
    return kinds[seed % len(kinds)]


@pytest.mark.parametrize("seed", [*range(42), 158])
def test_random_channels_with_constraints_of_an_output_or_an_input(seed: int) -> None:
    question, options = asked(seed)
    options |= {"constraints": own(seed, question.k, question.m)}
    ours, other = (wb.design(question, method=method, **options) for method in ("block", "program"))
    assert ours.solution.solver == "block"
    assert abs(ours.objective - other.objective) <= 1e-8
    assert ours.objective - ours.bound <= 1e-8
    assert ours.certificate is not None
    missed = [
        float(word.split(" by ")[1].split(",")[0])
        for word in ours.words
        if "misses the extra" in word
    ]
    assert max(missed, default=0) <= 1e-8


def test_constraints_by_blocks_where_they_take_less_work() -> None:
    """Every place is published as itself with at least .1."""
    places = [(i, j) for i in range(10) for j in range(10)]
    question = wb.FiniteQuery(
        places,
        neighbours="within 1 L1",
        prior=np.random.default_rng(1).integers(1, 20, 100).tolist(),
    )
    design = wb.design(
        question,
        loss="euclidean",
        epsilon="0.7",
        notion="pure",
        constraints=lambda M: [cp.diag(M) >= 0.1],
    )
    assert design.solution.solver == "block"
    assert min(float(design.mechanism.rows[y][y]) for y in range(100)) >= 0.1 - 1e-9
    assert design.objective == pytest.approx(1.7628954957, abs=5e-10)
    assert design.objective - design.bound <= 1e-8


def test_constraints_that_conflict_are_named() -> None:
    with pytest.raises(wb.Infeasible, match="constraints"):
        wb.design(wb.FiniteQuery("0..9", max_shift=1), epsilon="0.1", notion="pure", method="block",
                  constraints=lambda M: [M[0, 0] >= 0.9, M[9, 9] >= 0.9])  # fmt: skip


def test_neighbours_on_a_grid_have_the_known_optimum() -> None:
    side = 8
    points = [(i, j) for i in range(side) for j in range(side)]
    loss = [[float(np.hypot(a - c, b - d)) for c, d in points] for a, b in points]
    near = [
        [p, q] for p in points for q in points if p < q and abs(p[0] - q[0]) + abs(p[1] - q[1]) == 1
    ]
    prior = np.random.default_rng(1).integers(1, 20, side * side).tolist()
    question = wb.FiniteQuery(points, neighbours=near, prior=prior)
    design = wb.design(question, loss=loss, epsilon="0.7", notion="pure")
    assert design.solution is not None
    assert design.solution.solver == "block"  # taken by itself: it takes less work
    assert design.objective == pytest.approx(1.6230696097, abs=5e-10)
    assert design.objective - (design.bound or 0) <= 1e-8


def test_all_pairs_take_their_own_form() -> None:
    design = wb.design(
        wb.FiniteQuery("0..99", neighbours="all"), epsilon=1, notion="pure", method="block"
    )
    assert design.objective == pytest.approx(699.78263456, abs=5e-7)


@pytest.mark.parametrize(
    ("options", "words"),
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
def test_what_ties_outputs_is_refused_in_one_sentence(
    options: dict[str, object], words: str
) -> None:
    with pytest.raises(wb.InvalidRequest, match=words) as error:
        wb.design(wb.FiniteQuery("0..5", max_shift=1), method="block", **options)
    assert str(error.value).count("\n") == 0


@pytest.mark.parametrize(
    ("shift", "delta", "optimum"), [(1, "1e-5", 0.8373337726784), (2, "0.01", 1.71058905632)]
)
def test_outputs_share_the_slack_of_every_pair(shift: int, delta: str, optimum: float) -> None:
    """Masses that delta makes needless are left out, and the bound is exact all the same."""
    question = wb.FiniteQuery("0..99", max_shift=shift)
    design = wb.design(question, loss="absolute", epsilon=1, delta=delta, method="block")
    request = design.request
    assert request.stated_masses.sum() < request.stated_masses.size // 2
    assert design.bound <= optimum + 1e-7
    assert design.objective == pytest.approx(optimum, abs=2e-7)
    assert design.objective - design.bound <= 1e-8


def test_masses_that_were_needed_after_all_are_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A support that is too small proves nothing: all masses follow."""
    question = wb.FiniteQuery("0..19", max_shift=1)
    request = FAMILY.make_request(
        question, loss="absolute", epsilon=1, delta="0.01", method="block"
    )
    near = np.abs(np.subtract.outer(np.arange(20), np.arange(20))) <= 1
    monkeypatch.setitem(vars(request), "stated_masses", near)
    design = FAMILY.design_request(request)
    assert design.objective - design.bound <= 1e-8
    few = blocks.solve_by_blocks(request, near)
    assert few.solution.point is PointStatus.INFEASIBLE


FORTY = {
    "all pairs": (wb.FiniteQuery("0..39", neighbours="all"), {"epsilon": 1, "notion": "pure"}),
    "delta": (wb.FiniteQuery("0..39", max_shift=1), {"epsilon": 1, "delta": "0.01"}),
    "delta, worst": (
        wb.FiniteQuery("0..19", max_shift=1, prior="worst"),
        {"epsilon": 1, "delta": "0.01"},
    ),
}


@pytest.mark.parametrize(("question", "options"), FORTY.values(), ids=[*FORTY])
def test_a_time_limit_leaves_a_certified_channel(
    question: wb.FiniteQuery, options: dict[str, object]
) -> None:
    with pytest.raises(wb.NotProven) as error:
        wb.design(question, **options, method="block", time_limit=1e-6)
    stopped = error.value.design
    assert stopped.certificate is not None
    assert stopped.solution.raw_status == "time limit"
    assert stopped.objective >= stopped.bound >= 0


def test_every_backend_can_still_be_asked() -> None:
    question = wb.FiniteQuery("0..39", neighbours="all")
    names = [wb.design(question, epsilon=1, notion="pure", **options).solution.solver
             for options in ({}, {"method": "program"}, {"solver": "ortools:glop"})]  # fmt: skip
    assert names == ["block", "highs", "ortools:glop"]


def test_progress_says_iteration_gap_and_seconds_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_PROGRESS_PERIOD_SECONDS", 0.0)
    lines: list[str] = []
    wb.design(wb.FiniteQuery("0..39", neighbours="all"), epsilon=1, notion="pure", method="block",
              progress=lines.append)  # fmt: skip
    read = [
        re.fullmatch(r"iteration (\d+): loss (\S+), gap (\S+), about \d+ s left", line)
        for line in lines
    ]
    told = [match for match in read if match is not None]
    assert len(told) == len(lines) >= 3
    gaps = [float(match[3]) for match in told]
    assert gaps == sorted(gaps, reverse=True)
    assert [int(match[1]) for match in told] == sorted({int(match[1]) for match in told})


@pytest.mark.parametrize(("question", "options"), FORTY.values(), ids=[*FORTY])
def test_ctrl_c_keeps_the_best_channel_certified(
    monkeypatch: pytest.MonkeyPatch, question: wb.FiniteQuery, options: dict[str, object]
) -> None:
    monkeypatch.setattr(blocks, "_PROGRESS_PERIOD_SECONDS", 0.0)
    lines: list[str] = []

    def stop(line: str) -> None:
        lines.append(line)
        if len(lines) == 3:
            raise KeyboardInterrupt

    with pytest.raises(wb.NotProven) as error:
        wb.design(question, **options, method="block", progress=stop)
    kept = error.value.design
    assert error.value.interrupted
    assert kept.certificate is not None
    losses = kept.request.losses.floats
    one = (
        losses.max(axis=0).min() if question.prior is None else losses.mean(axis=0).min()
    )  # one output for all
    assert kept.bound < kept.objective < one


@pytest.mark.parametrize("seed", [3180, 3186, 3290, 3354])
def test_floats_end_late_enough_where_delta_is_small(seed: int) -> None:
    """δ of 2e-7 to 1e-5: blocks are nearly singular along their own masses."""
    agree(seed)


def test_what_does_not_fit_into_memory_is_refused_with_the_size_that_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(block_work.os, "sysconf", lambda _: 1 << 14)  # 2^14 pages of 2^14 bytes
    with pytest.raises(
        wb.InvalidRequest, match=r"memory of this machine; about \d+ inputs would"
    ) as error:
        wb.design(
            wb.FiniteQuery("0..499", neighbours="all"), epsilon=1, notion="pure", method="block"
        )
    fit = int(re.findall(r"about (\d+) inputs", str(error.value))[0])
    assert block_work.explain_memory_shortfall(block_work.BlocksSize(fit, fit, None)) is None
    assert (
        block_work.explain_memory_shortfall(block_work.BlocksSize(2 * fit, 2 * fit, None))
        is not None
    )


@pytest.mark.parametrize(
    ("text", "prior", "words"),
    [
        ("0,0\n0,1\n0,0\n", None, "all different"),
        ("0,0\n0,nan\n", None, "line 2, column 2 of city.csv must be a finite number"),
        ("0,0,0\n0,1,0\n", None, "weights >= 0, not all 0"),
        ("0,0\n0,1\n", [0, 0], "weights >= 0, not all 0"),
        (
            "\n".join(f"{i},0" for i in range(100_000)),
            None,
            "places must be at most 4000. Got 100000",
        ),
    ],
)
def test_bad_places_get_one_sentence(tmp_path: Path, text: str, prior: object, words: str) -> None:
    path = tmp_path / "city.csv"
    path.write_text(text)
    with pytest.raises(wb.InvalidRequest, match=words) as error:
        wb.FiniteQuery(str(path), neighbours="within 1 L1", prior=prior)
    assert "\n" not in str(error.value)


def test_places_in_two_parts_are_said_to_be() -> None:
    places = [(0, 0), (0, 1), (5, 5), (5, 6)]
    question = wb.FiniteQuery(places, neighbours="within 1 L1")
    design = wb.design(question, loss="euclidean", epsilon=1, notion="pure", method="block")
    assert [word for word in design.words if "2 separate parts" in word]


@pytest.mark.parametrize("right", [-1.0, 1.0])
def test_an_equation_without_a_mass_is_kept(right: float) -> None:
    A, none = sp.csc_array(([1.0], ([1], [0])), shape=(2, 4)), np.zeros(4, dtype=bool)
    data = Data(
        np.zeros(4),
        0.0,
        A,
        np.array([right, -np.inf]),
        np.array([right, 0.5]),
        np.zeros(4),
        np.ones(4),
        none,
    )
    assert ExtraRows.from_program(Program("an equation, and a row", data), 2).has_mixed_rows(2)
    constraint = [lambda M: [0 * cp.sum(M) == right, M[0, 0] <= 0.5]]
    with pytest.raises(wb.Infeasible, match="This constraint alone is infeasible"):
        wb.design(
            wb.FiniteQuery(range(4), neighbours="all"),
            loss="squared",
            epsilon=1,
            constraints=constraint,
        )


def test_outputs_that_are_best_for_no_input_may_have_no_mass_stated():
    """Where δ makes masses needless: those between answers, which are far more outputs than answers."""
    design = wb.design("channel", answers="0..70", outputs="0..70:0.5", max_shift=3, prior="worst", loss="squared",
                       epsilon=1, delta="0.3", method="block")  # fmt: skip
    assert design.request.stated_masses is not None
    assert not design.request.stated_masses.any(axis=0).all()
    assert design.objective == pytest.approx(design.bound, rel=1e-7)


def test_a_channel_whose_objective_is_infinite_is_saved(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """The method has no finite objective if it stops before the sums of rows are 1. Its repair is private."""
    find_point = blocks._find_block_point

    def find_unfinished_point(*arguments: Any) -> Any:
        return replace(find_point(*arguments), objective=math.inf, stop_reason="time limit")

    monkeypatch.setattr(blocks, "_find_block_point", find_unfinished_point)
    question = wb.FiniteQuery("0..4", neighbours="consecutive", prior="worst")
    with pytest.raises(wb.NotProven) as stopped:
        wb.design(question, loss=np.arange(25).reshape(5, 5) % 7, epsilon=1, method="block")
    stopped.value.design.save(tmp_path / "channel.json")
    certificate = wb.check(tmp_path / "channel.json")
    assert "claimed" not in certificate.record


@pytest.mark.parametrize("unit", [1, 1000])
def test_a_stopped_method_has_no_channel_that_misses_the_constraints(unit: int):
    """The repair restores privacy, not the constraints, so the loss of its channel is no incumbent."""
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
