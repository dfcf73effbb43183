"""Frontiers: grids, rows against closed forms, what is kept on Ctrl-C, refusals before anything
runs.
"""

from __future__ import annotations

import json
import math
import pickle
import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from joblib.externals.loky.backend.reduction import dumps
from matplotlib.figure import Figure

import workbench as wb
from workbench.cli import main
from workbench.data.parameter_grid import (
    has_range,
    read_grid,
    read_grid_in_order,
    read_integer_grid,
)
from workbench.errors import InvalidRequest
from workbench.families.modulo.frontier import choose_round_levels
from workbench.families.modulo.published import Scan, compute_data_independent_error
from workbench.frontiers.run import get_frontier, make_frontier_plan, run_frontier_plan
from workbench.io.drawing import Drawing, draw_declared_figure
from workbench.io.result import Result
from workbench.mechanisms.baselines.count_queries import data_independent
from workbench.mechanisms.channel import Channel
from workbench.notions.dp import DP
from workbench.notions.notion import HockeyStick
from workbench.pipeline.frontier_plan import Plan
from workbench.pipeline.frontier_plots import make_proven_band
from workbench.pipeline.option import read_options
from workbench.pipeline.registry import get_family, list_builtin_families
from workbench.privacy.audit import audit


def test_grids_are_exact() -> None:
    assert read_grid("0.1:4:40", "epsilon")[:3] == [
        Fraction(1, 10),
        Fraction(2, 10),
        Fraction(3, 10),
    ]
    assert read_grid("0.01, 0,1e-6", "delta") == [0, Fraction(1, 10**6), Fraction(1, 100)]
    log = read_grid("0.1:10:5:log", "epsilon")
    assert [float(value) for value in log] == pytest.approx(
        [0.1, 0.316228, 1, 3.16228, 10], rel=1e-6
    )
    assert read_integer_grid("2:8:4", "levels") == [2, 4, 6, 8]
    assert read_grid("2:1:3", "epsilon") == [1, Fraction(3, 2), 2]
    assert read_grid("1:1:1", "epsilon") == [1]


def test_grids_of_python_are_the_same() -> None:
    assert read_grid(0.1, "epsilon") == read_grid([0.1], "epsilon") == [Fraction(1, 10)]
    assert read_grid([2, "0.5", Fraction(1, 3)], "epsilon") == [Fraction(1, 3), Fraction(1, 2), 2]
    assert read_grid(np.array([0.2, 0.1]), "epsilon") == [Fraction(1, 10), Fraction(1, 5)]
    assert read_grid(["0.1:4:40", 5], "epsilon") == [*read_grid("0.1:4:40", "epsilon"), 5]
    assert read_grid_in_order("2:1:3,0.5", "epsilon") == [2, Fraction(3, 2), 1, Fraction(1, 2)]


def test_what_spells_a_grid() -> None:
    assert has_range("0.1:4:40")
    assert has_range("0, 0.1 : 4 : 40 : log")
    for value in ("0.1,0.2", "pinball:0.5", "normal:0.5,0.1", "1:2:x", 3):
        assert not has_range(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "1,,2",
        "1:2",
        "1:2:x",
        "1:2:1",
        "0:1:3:log",
        "1:0:3:log",
        "1:2:3:lin",
        "nan",
        ":::",
        "1:2:99999999999",
    ],
)
def test_bad_grids_are_named(text: str) -> None:
    with pytest.raises(InvalidRequest, match="epsilon must be"):
        read_grid(text, "epsilon")


@pytest.mark.parametrize(
    "value", [None, [], [None], [True], {"a": 1}, object(), [[1, 2]], math.nan]
)
def test_bad_grids_of_python_are_named(value: Any) -> None:
    with pytest.raises(InvalidRequest, match="epsilon must be"):
        read_grid(value, "epsilon")


def test_noise_rows_agree_with_each_other() -> None:
    outcome = wb.frontier(
        wb.ModuloNoise(n=5, max_shift=2), epsilon="0.5,1.5", delta="0,0.05,0.2", notion="pdp,dp"
    )
    table = outcome.to_frame()
    assert not outcome.is_interrupted
    assert table["failure"].isna().all()
    points = table[table["curve"] == "point"]
    assert points["certified"].all()
    assert points["oracle_agrees"].all()
    for _, row in points.iterrows():
        assert row[f"{row['notion']}_delta"] <= row["delta"]
        assert row["bound"] <= row["objective"] + 1e-9
        # the exact pieces at the same epsilon give the same optimum
        pieces = table[
            (table["curve"] == "piece")
            & (table["notion"] == row["notion"])
            & (table["epsilon"] == row["epsilon"])
        ]
        inside = pieces[
            (pieces["delta"] <= row["delta"]) & (row["delta"] <= pieces["delta_high"])
        ].iloc[-1]
        share = (row["delta"] - inside["delta"]) / (inside["delta_high"] - inside["delta"])
        value = inside["objective"] + share * (inside["objective_high"] - inside["objective"])
        assert value == pytest.approx(row["objective"], abs=1e-7)
    levels = table[table["curve"] == "level"]
    assert levels["certified"].all()
    assert levels["delta"].to_numpy() == pytest.approx(levels["objective"].to_numpy(), abs=1e-12)
    # no published mechanism beats the optimum it contains: the data-independent one is additive
    # noise
    rivals = table[table["mechanism"] == "data-independent"].merge(
        points, on=["notion", "epsilon", "delta"]
    )
    assert (rivals["objective_x"] >= rivals["objective_y"] - 1e-9).all()


def test_noise_rows_of_the_least_epsilon_invert_those_of_the_least_error() -> None:
    question = wb.ModuloNoise(n=6, max_shift=1)
    table = wb.frontier(
        question, notion="dp,pure", loss="squared", max_loss="1,2", delta="0,0.02"
    ).to_frame()
    assert table["mechanism"].eq("least epsilon").all()
    assert table["certified"].all()
    assert len(table) == 6
    for row in table.to_dict("records"):
        assert row["bound"] <= row["objective"] <= row["bound"] * (1 + 1e-6)
        made = wb.design(
            question,
            notion=row["notion"],
            loss="squared",
            epsilon=row["objective"],
            delta=row["delta"],
        )
        assert made.objective == pytest.approx(row["max_loss"], rel=1e-5)
    both = wb.frontier(
        question, notion="dp", epsilon="0.5,1", max_loss="0.5", baselines=False
    ).to_frame()
    assert {"point", "level", "piece"} == set(both["curve"])
    with pytest.raises(
        InvalidRequest, match=r"epsilon must be given for the notion dp\. Got none\."
    ):
        wb.frontier(question, notion="dp")


def test_data_independent_noise_is_private_and_best() -> None:
    question = wb.ModuloNoise(n=5, max_shift=2)
    for notion in ("pdp", "dp"):
        for delta in ("0", "0.1", "0.4"):
            rho = compute_data_independent_error(6, Fraction(1), Fraction(delta), notion)
            found = wb.audit(data_independent(question, rho), 1)
            assert found.meets(notion, 1, delta)
            if rho - Fraction(1, 1000) > 0:
                better = wb.audit(data_independent(question, rho - Fraction(1, 1000)), 1)
                assert not better.meets(notion, 1, delta)


def test_baselines_keep_what_a_notion_requires_not_the_epsilon_it_is_given() -> None:
    class Halved(DP):
        name = "half"

        def requirements(self, values):
            return (HockeyStick(values["epsilon"] / 2, values["delta"]),)

        def measure(self, laws, values):
            return super().measure(laws, {**values, "epsilon": values["epsilon"] / 2})

    half, delta, notion = Fraction(1, 2), Fraction(1, 100), Halved()
    assert compute_data_independent_error(
        6, Fraction(1), delta, notion
    ) == compute_data_independent_error(6, half, delta, "dp")
    found, expected = (
        _least(Scan("geometric", 6, [1]), Fraction(1), delta, notion),
        _least(Scan("geometric", 6, [1]), half, delta, "dp"),
    )
    assert found == pytest.approx(expected, rel=1e-9)


def test_scan_finds_the_geometric_parameter() -> None:
    # clamped geometric noise is exactly ln(1/alpha)-private for neighbours 1 apart, d ln(1/alpha)
    # for d
    for distance in (1, 2):
        found = _least(Scan("geometric", 6, [distance]), Fraction(1), Fraction(0), "pdp")
        assert found == pytest.approx(math.exp(-1 / distance), rel=1e-6)
    assert _least(Scan("gaussian", 6, [1]), Fraction(1, 10**9), Fraction(0), "pdp") is None


@pytest.mark.parametrize("family", ["geometric", "gaussian", "exponential"])
def test_the_pairs_that_a_scan_audits_have_the_largest_measures_of_all(family: str) -> None:
    for distances, epsilon, delta, notion in (
        ([1], Fraction(1), Fraction(0), "pdp"),
        ([1, 3], Fraction(1, 2), Fraction(1, 10), "pdp"),
        ([1, 2], Fraction(1, 3), Fraction(1, 50), "dp"),
        ([2], Fraction(8), Fraction(1, 10**6), "dp"),
    ):
        found = Scan(family, 7, distances).find_private(epsilon, delta, notion)
        assert found is not None
        _, channel, few = found
        every = audit(
            Channel.from_pairs(channel, [(q, q + d) for d in distances for q in range(8 - d)]),
            epsilon,
        )
        assert len(few.pairs) <= len(every.pairs) / 2
        assert (few.pdp_delta, few.dp_delta) == (every.pdp_delta, every.dp_delta)
        assert (few.pure_ratio, few.pure_epsilon) == (every.pure_ratio, every.pure_epsilon)


def _least(scan: Scan, *budget: Any) -> float | None:
    best = scan.find_private(*budget)
    return None if best is None else best[0]


def test_round_levels() -> None:
    assert choose_round_levels([]) == []
    assert choose_round_levels([0.5, 0.5]) == []
    levels = choose_round_levels([0.1, 0.87])
    assert len(levels) == 4
    assert all(0.1 < level < 0.87 for level in levels)


def test_what_is_not_proven_in_time_is_an_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.families.modulo import frontier as module

    monkeypatch.setattr(module, "_MAX_PIECE_SECONDS", 0.2)  # with the pieces
    question = wb.ModuloNoise(n=47, shifts=[3, 7, 11, 20, 22])
    made = wb.frontier(
        question,
        epsilon="0.9,1.2",
        delta=0.1,
        notion="pdp",
        level="none",
        baselines=False,
        time_limit=0.05,
    )
    table = made.to_frame()
    points = table[table["curve"] == "point"]
    late = points[points["status"] == "time_limit"]
    assert len(late)  # 0.05 s is not enough here; if it ever is, take a harder question
    assert (late["bound"].isna() | (late["bound"] < late["objective"] - 1e-6)).all()
    assert late["failure"].str.contains("incumbent").all()
    assert (late["pdp_delta"] <= late["delta"]).all()  # the incumbent is certified all the same
    assert "error_epsilon" in drawn(made, table)


def test_interrupt_keeps_finished_rows() -> None:
    def stop() -> list[dict[str, Any]]:
        raise KeyboardInterrupt

    made = Plan("", [lambda: [{"objective": 1.0}], stop, stop], lambda table: {})
    outcome = run_frontier_plan(made)
    assert outcome.is_interrupted
    assert outcome.finished == 1
    assert outcome.rows == [{"objective": 1.0}]


def test_a_task_that_fails_is_a_row() -> None:
    def fail() -> list[dict[str, Any]]:
        raise InvalidRequest("epsilon is too odd.")

    def stop() -> list[dict[str, Any]]:
        raise KeyboardInterrupt

    def large() -> list[dict[str, Any]]:
        raise MemoryError

    good: list[dict[str, Any]] = [{"objective": 1.0}]
    outcome = run_frontier_plan(Plan("", [fail, lambda: good, large], lambda table: {}))
    assert outcome.finished == 3
    assert outcome.is_interrupted is False
    known = {"curve": "failed", "status": "refused", "failure": "epsilon is too odd."}
    assert outcome.rows[0] == known | {"objective": None, "bound": None}
    assert outcome.rows[1] == good[0]
    assert outcome.rows[2]["failure"] == "The request needs more memory than there is."
    outcome = run_frontier_plan(Plan("", [lambda: good, stop, fail], lambda table: {}))
    assert outcome.rows == good
    assert outcome.is_interrupted is True


def test_processes_find_the_same_rows() -> None:
    asked: dict[str, Any] = {
        "epsilon": "0.5,0.6",
        "delta": [0, 0.1],
        "notion": "pdp",
        "baselines": True,
    }
    one, two = (
        wb.frontier(wb.ModuloNoise(n=3, max_shift=1), **asked, jobs=jobs) for jobs in (1, 2)
    )
    clock = {
        "seconds",
        "status",
    }  # pieces between the asked ε are traced for so many seconds in all

    def rows(result: Result) -> list[dict[str, Any]]:
        return [
            {k: v for k, v in row.items() if k not in clock}
            for row in result
            if row["curve"] != "piece"
        ]

    assert rows(one) == rows(two)
    assert {row["curve"] for row in two} == {
        "point",
        "level",
        "piece",
        "baseline",
    }  # levels wait for all points
    assert (one.finished, two.finished) == (one.total, two.total)


def test_tasks_that_cannot_be_sent_are_one_sentence() -> None:
    held = threading.Lock()
    with pytest.raises(wb.WorkbenchError, match="cannot be sent to other processes"):
        run_frontier_plan(Plan("", [lambda: [{"objective": float(held.locked())}]] * 2), jobs=2)
    with pytest.raises(InvalidRequest, match="jobs must be"):
        wb.frontier(wb.ModuloNoise(n=4, max_shift=1), epsilon=1, jobs=0)


@pytest.mark.parametrize(
    "name", [kind.name for kind in list_builtin_families() if kind.frontier is not None]
)
def test_tasks_of_every_family_can_be_sent(name: str) -> None:
    given: dict[str, dict[str, Any]] = {
        "modulo": {"n": 4, "max_shift": 1},
        "labels": {"labels": "0..4"}, "channel": {"answers": "0..4", "max_shift": 1},
    }  # fmt: skip
    kind = get_family(name)
    values = read_options(get_frontier(kind).options, {"epsilon": "1,2", **given.get(name, {})})
    for task in make_frontier_plan(kind, None, values).tasks:
        assert callable(pickle.loads(dumps(task)))


def test_interrupted_json_is_one_object(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["modulo", "--n", "4", "--max-shift", "1", "--epsilon", "1"]

    def first_only(plan: Plan, progress: Any, jobs: int = 1) -> Result:
        result = run_frontier_plan(replace(plan, tasks=plan.tasks[:1]))
        return replace(result, total=result.total + 1)

    monkeypatch.setattr("workbench.frontiers.run.run_frontier_plan", first_only)
    with pytest.raises(SystemExit) as end:
        main(["frontier", *arguments, "--out", str(tmp_path), "--json"])
    assert end.value.code == 2
    said = capsys.readouterr()
    assert json.loads(said.out)["interrupted"]
    assert said.err.startswith("Interrupted: 1 of 2 tasks are finished")
    assert len(list(tmp_path.glob("*.csv"))) == 1


def test_why_rows_have_no_value_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "--n",
        "4",
        "--max-shift",
        "1",
        "--epsilon",
        "1,2",
        "--delta",
        "0.1",
        "--solver",
        "ortools:glop",
    ]
    with pytest.raises(SystemExit) as end:
        main(
            [
                "frontier",
                "modulo",
                *arguments,
                "--notion",
                "pdp",
                "--level",
                "none",
                "--no-baselines",
                "--out",
                str(tmp_path),
            ]
        )
    assert end.value.code == 0
    assert (
        "2 without a value: ortools:glop cannot solve mixed-integer programs"
        in capsys.readouterr().out
    )


def test_command_writes_table_and_plots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "frontier",
        "modulo",
        "--n",
        "4",
        "--max-shift",
        "1",
        "--epsilon",
        "0.5:1.5:2",
        "--delta",
        "0,0.1",
    ]
    with pytest.raises(SystemExit) as end:
        main([*arguments, "--notion", "pdp,dp", "--out", str(tmp_path), "--json"])
    assert end.value.code == 0
    answer = json.loads(capsys.readouterr().out)
    names = {"frontier.csv"} | {
        f"{name}.{ending}"
        for name in ("error_epsilon", "error_epsilon_delta", "error_delta", "level_curves")
        for ending in ("png", "svg", "pdf")
    }
    assert {Path(path).name for path in answer["files"]} == names
    assert {path.name for path in tmp_path.iterdir()} == names
    assert answer["finished"] == answer["tasks"]
    assert {row["curve"] for row in answer["rows"]} == {"point", "piece", "level", "baseline"}


@pytest.mark.parametrize(
    ("option", "value", "word"),
    [
        ("--epsilon", "0:4:5", "epsilon"),
        ("--delta", "0,2", "delta"),
        ("--notion", "pure", "delta"),
        ("--notion", "x", "notion"),
        ("--loss", "x", "loss"),
        ("--solver", "x", "solver"),
        ("--level", "a", "level"),
        ("--level", "-0.1", "level"),
        ("--out", "/proc/no", "out"),
    ],
)
def test_bad_input_is_refused_in_one_line(
    option: str, value: str, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"--epsilon": "1", "--delta": "0,0.1", "--out": str(tmp_path)} | {option: value}
    with pytest.raises(SystemExit) as end:
        main(
            [
                "frontier",
                "modulo",
                "--n",
                "4",
                "--max-shift",
                "1",
                *[part for pair in given.items() for part in pair],
            ]
        )
    assert end.value.code == 2
    said = capsys.readouterr().err.strip()
    assert len(said.splitlines()) == 1
    assert word in said
    assert not list(tmp_path.iterdir())


def drawn(made: Result, table: Any) -> set[str]:
    """The names of the plots that the rows allow."""
    figures = {name: plot() for name, plot in made.draw(table).items()}
    return {name for name, figure in figures.items() if figure is not None}


def test_quantizer_rows() -> None:
    made = wb.frontier("quantizer", levels=2, epsilon="1,2", method="exact,optm", starts=1)
    table = made.to_frame()
    assert table["failure"].isna().all()
    points = table[(table["curve"] == "point") & (table["mechanism"] == "exact")].set_index(
        "epsilon"
    )
    assert points["certified"].all()
    assert (points["pure_epsilon"] <= points.index).all()
    # two outputs: randomized response, MAE (B² - 1/3)/B at the least private B = coth(ε/2), or at a
    # larger one
    for epsilon, row in points.iterrows():
        least = 1 / math.tanh(float(str(epsilon)) / 2)
        assert row["objective"] == pytest.approx(least - 1 / (3 * least), rel=1e-6)
    limits = table[table["curve"] == "limit"].set_index("epsilon")
    assert (limits["bound"] <= limits["objective"]).all()
    assert (limits["bound"] <= points["objective"]).all()
    laplace = table[table["mechanism"] == "laplace"].set_index("epsilon")
    assert laplace["mae"].to_dict() == {1.0: 2.0, 2.0: 1.0}
    rivals = table[table["mechanism"].isin(["rqm", "pbm"])]
    assert (rivals["pure_epsilon"] <= rivals["epsilon"]).all()
    assert drawn(made, table) == {"error_epsilon"}  # one number of outputs has no other plots


def test_label_rows() -> None:
    made = wb.frontier(
        wb.Labels.uniform(0, 4), epsilon="0.5,2", delta="0,0.1", method="bins,lp,unbiased"
    )
    table = made.to_frame()
    assert table["failure"].isna().all()
    assert table["oracle_agrees"].dropna().all()
    for epsilon in (0.5, 2.0):
        here = table[table["epsilon"] == epsilon]
        loss = {(row["mechanism"], row["delta"]): row["objective"] for _, row in here.iterrows()}
        assert (
            loss["bins", 0.0] <= loss["lp", 0.0] + 1e-9
        )  # bins may publish anything, the LP only labels
        assert loss["lp", 0.1] < loss["lp", 0.0] <= loss["unbiased", 0.0]
        assert all(
            loss["bins", 0.0] <= value + 1e-9 for (_, delta), value in loss.items() if delta == 0
        )
    private = table[(table["mechanism"] == "lp") & (table["delta"] > 0)]
    assert (private["dp_delta"] <= private["delta"]).all()
    assert drawn(made, table) == {"error_epsilon", "error_epsilon_delta", "error_delta"}


def test_laplace_rows() -> None:
    made = wb.frontier("laplace", epsilon="0.5,1,30", bits="3,6", ell=2)
    table = made.to_frame()
    points = table[table["curve"] == "point"]
    assert (points["mean_bits"].dropna() <= points["bits"][points["mean_bits"].notna()]).all()
    assert points[points["epsilon"] == 1.0]["objective"].tolist() == [2.0, 2.0]
    unreachable = points[points["status"] == "unreachable"]
    assert unreachable["epsilon"].tolist() == [30.0, 30.0]
    assert unreachable["objective"].isna().all()
    fixed = table[table["curve"] == "level"].set_index("epsilon")
    assert fixed["mean_bits"][1.0] == pytest.approx(
        wb.DyadicLaplace(1.0, 2.0).mean_bits(), rel=1e-6
    )
    assert drawn(made, table) == {"decoder_epsilon", "error_epsilon", "level_curves"}


def test_frontier_in_python() -> None:
    seen: list[tuple[int, int]] = []
    result = wb.frontier(
        wb.ModuloNoise(n=4, max_shift=1),
        epsilon=[0.5, 1],
        delta=0.1,
        notion="dp",
        level="none",
        baselines=False,
        progress=lambda done, total, what: seen.append((done, total)),
    )
    assert seen[-1] == (result.finished, result.total)
    points = [row for row in result if row["curve"] == "point"]
    for row in points:
        alone = wb.design(
            wb.ModuloNoise(n=4, max_shift=1), epsilon=row["epsilon"], delta=0.1, notion="dp"
        )
        assert row["objective"] == pytest.approx(alone.objective, abs=1e-12)
    by_name = wb.frontier(
        "modulo",
        n=4,
        max_shift=1,
        epsilon="0.5,1",
        delta="0.1",
        notion=["dp"],
        level="none",
        baselines=False,
    )
    assert [row["objective"] for row in by_name] == [row["objective"] for row in result]
    assert "error_epsilon" in result.plots
    assert result.plot() is not None


def test_frontiers_of_questions_and_of_names_are_the_same() -> None:
    for question, name, options in (
        (wb.Labels.uniform(0, 3), "labels", {"labels": "0..3", "method": "bins"}),
        (wb.Quantization(levels=2), "quantizer", {"levels": 2, "method": "exact", "starts": 1}),
        (wb.DataLaw.uniform(-1.0, 1.0), "laplace", {"bits": 5, "ell": 2}),
    ):
        own = {key: value for key, value in options.items() if key not in ("labels", "levels")}
        one = wb.frontier(question, epsilon=1, **own).to_frame().drop(columns="seconds")
        other = wb.frontier(name, epsilon=1, **options).to_frame().drop(columns="seconds")
        assert one.equals(other)


@pytest.mark.parametrize(
    ("question", "options"),
    [
        ("fancy", {}),
        (3, {}),
        ("modulo", {"n": 4, "max_shift": 1, "colour": 1}),
        (wb.ModuloNoise(n=4, max_shift=1), {"n": 4}),
        (wb.ModuloNoise(n=4, max_shift=1), {"delta": 2}),
        (wb.ModuloNoise(n=4, max_shift=1), {"notion": "fancy"}),
        (wb.ModuloNoise(n=4, max_shift=1), {"solver": "x"}),
        (wb.ModuloNoise(n=4, max_shift=1), {"epsilon": "1:2"}),
        (wb.ModuloNoise(n=4, max_shift=1), {"epsilon": None}),
        (wb.ModuloNoise(n=4, max_shift=1), {"progress": 3}),
        (wb.ModuloNoise(n=4, max_shift=1), {"baselines": "no"}),
        (wb.Quantization("-3,3"), {}),
        (wb.DataLaw.uniform(0.0, 1.0), {}),
        (wb.Labels.uniform(0, 3), {"loss": 3}),
    ],
)
def test_bad_frontiers_are_refused_in_one_form(question: Any, options: dict[str, Any]) -> None:
    with pytest.raises(
        wb.WorkbenchError,
        match=r" must be .* Got (?s:.)*\.$|^No such option n; did you mean notion",
    ):
        wb.frontier(question, **{"epsilon": 1, **options})


def test_a_scan_asked_at_several_budgets_answers_as_a_new_one() -> None:
    scan = Scan("geometric", 4, [1, 2])
    budgets = [
        (Fraction(e), Fraction(d), notion)
        for e in (1, 2)
        for notion in ("pdp", "dp")
        for d in ("0", "0.1")
    ]
    for max_loss in [*budgets, *budgets[::-3]]:
        assert _least(scan, *max_loss) == _least(Scan("geometric", 4, [1, 2]), *max_loss)


def _styles(figure: Any) -> dict[str, set[str]]:
    """How every labelled line of a figure is drawn between its points, by panel and label."""
    return {
        f"{axis.get_title()}: {line.get_label()}": line.get_drawstyle()
        for axis in figure.axes
        for line in axis.lines
        if len(line.get_xdata()) > 1
    }


def test_what_may_jump_is_drawn_in_steps() -> None:
    # at error .24 the least δ under PDP is .76 up to ε = 2.94, and nearly 0 from there on
    given: dict[str, Any] = {
        "epsilon": "2.4,2.8,3.2",
        "notion": "pdp,dp",
        "level": "0.24",
        "baselines": False,
    }
    table = wb.frontier(wb.ModuloNoise(n=8, max_shift=3), delta="0,0.1", **given)
    figure = table.plot(which="level_curves")
    assert isinstance(figure, Figure)
    pdp, dp = (axis.lines[0] for axis in figure.axes)
    assert (pdp.get_drawstyle(), dp.get_drawstyle()) == ("steps-post", "default")
    x, y = pdp.get_xdata(), pdp.get_ydata()
    drawn = float(
        np.asarray(y)[np.searchsorted(np.asarray(x), 2.92, side="right") - 1]
    )  # of steps, at ε = 2.92
    truth = wb.design(
        wb.ModuloNoise(n=8, max_shift=3),
        epsilon=2.92,
        notion="pdp",
        minimise="delta",
        max_loss="0.24",
    ).objective
    assert drawn == pytest.approx(truth, abs=1e-9) == 0.76
    styles = _styles(table.plot(which="error_epsilon_delta"))
    assert styles["PDP: δ = 0.1"] == "steps-post"
    assert {styles[f"{name}"] for name in ("PDP: δ = 0", "DP: δ = 0", "DP: δ = 0.1")} == {"default"}


def test_bands_of_what_may_jump_reach_down_to_the_next_bound() -> None:
    rows = pd.DataFrame({"epsilon": [1.0, 2.0], "delta": 0.1, "notion": "pdp", "bound": [0.4, 0.1],
                         "objective": [0.5, 0.2]})  # fmt: skip
    figure = draw_declared_figure(
        Drawing({"series": [make_proven_band(rows, "epsilon", "objective")]}), rows
    )
    (drawn,) = figure.axes[0].collections
    assert drawn.get_paths()[0].contains_point(
        (1.5, 0.15)
    )  # an optimum of .15 at 1.5 is not excluded


def test_searches_over_a_grid_of_parameters_are_drawn_in_steps() -> None:
    table = wb.frontier("quantizer", levels=3, epsilon="0.5,1,1.5", method="optm")
    styles = _styles(table.plot(which="error_epsilon"))
    assert (styles["3 outputs: RQM"], styles["3 outputs: OPTM"]) == ("steps-post", "default")


def test_modulo_noise_against_every_budget():
    """ρ, μ and Rényi's ε are drawn as those of channels are; a row is the design at its budget."""
    table = wb.frontier(
        wb.ModuloNoise(n=6, max_shift=1), loss="squared", notion="zcdp,gdp,renyi", rho="0.05,0.2", mu="0.5,1", alpha=2,
        epsilon="0.5,1",
    ).to_frame()  # fmt: skip
    assert table.groupby("notion").size().to_dict() == {"gdp": 2, "renyi": 2, "zcdp": 2}
    assert set(table["curve"]) == {
        "point"
    }  # pieces, levels and published mechanisms are of ε and δ
    design = wb.design(wb.ModuloNoise(n=6, max_shift=1), loss="squared", notion="zcdp", rho="0.2")
    (row,) = table[table["rho"].eq(0.2)].to_dict("records")
    assert row["objective"] == pytest.approx(design.objective, rel=1e-9)


@pytest.mark.parametrize(
    "question",
    [wb.ModuloNoise(n=4, max_shift=1), wb.FiniteQuery("0..3", max_shift=1)],
    ids=["modulo", "channel"],
)
def test_runs_share_a_budget_in_frontiers(question: object):
    result = wb.frontier(question, epsilon=1, delta="1e-3", runs="1,2", loss="squared")
    rows = {row["runs"]: row for row in result if row["curve"] == "point"}
    assert rows[1]["objective"] < rows[2]["objective"]
    several = wb.design(question, epsilon=1, delta="1e-3", runs=2, loss="squared")
    assert rows[2]["objective"] == pytest.approx(several.objective, rel=1e-9)
    assert all(
        row["epsilon"] == 1 for row in result if row["curve"] == "baseline" and "objective" in row
    )
    assert "loss_runs" in result.plots
