"""Frontiers: grids of budgets, rows compared with closed forms, Ctrl-C, plots and refused requests."""

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
from workbench.cli.frontier import _describe_earlier_files, _list_earlier_files
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


def test_numbers_lists_and_arrays_are_grids_too() -> None:
    assert read_grid(0.1, "epsilon") == read_grid([0.1], "epsilon") == [Fraction(1, 10)]
    assert read_grid([2, "0.5", Fraction(1, 3)], "epsilon") == [Fraction(1, 3), Fraction(1, 2), 2]
    assert read_grid(np.array([0.2, 0.1]), "epsilon") == [Fraction(1, 10), Fraction(1, 5)]
    assert read_grid(["0.1:4:40", 5], "epsilon") == [*read_grid("0.1:4:40", "epsilon"), 5]
    assert read_grid_in_order("2:1:3,0.5", "epsilon") == [2, Fraction(3, 2), 1, Fraction(1, 2)]


def test_a_text_with_first_last_and_count_is_a_range() -> None:
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
def test_an_error_in_the_text_of_a_grid_names_the_option(text: str) -> None:
    with pytest.raises(InvalidRequest, match="epsilon must be"):
        read_grid(text, "epsilon")


@pytest.mark.parametrize(
    "value", [None, [], [None], [True], {"a": 1}, object(), [[1, 2]], math.nan]
)
def test_an_error_in_the_values_of_a_grid_names_the_option(value: Any) -> None:
    with pytest.raises(InvalidRequest, match="epsilon must be"):
        read_grid(value, "epsilon")


def test_points_pieces_levels_and_baselines_of_modulo_noise_agree() -> None:
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
        # The exact pieces at the same ε contain the same optimum.
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
    # The data-independent mechanism is additive noise too, so it is not better than the optimum.
    published = table[table["mechanism"] == "data-independent"].merge(
        points, on=["notion", "epsilon", "delta"]
    )
    assert (published["objective_x"] >= published["objective_y"] - 1e-9).all()


def test_the_minimal_epsilon_for_a_loss_is_the_inverse_of_the_minimal_loss() -> None:
    question = wb.ModuloNoise(n=6, max_shift=1)
    table = wb.frontier(
        question, notion="dp,pure", loss="squared", max_loss="1,2", delta="0,0.02"
    ).to_frame()
    assert table["mechanism"].eq("least epsilon").all()
    assert table["certified"].all()
    assert len(table) == 6
    for row in table.to_dict("records"):
        assert row["bound"] <= row["objective"] <= row["bound"] * (1 + 1e-6)
        design = wb.design(
            question,
            notion=row["notion"],
            loss="squared",
            epsilon=row["objective"],
            delta=row["delta"],
        )
        assert design.objective == pytest.approx(row["max_loss"], rel=1e-5)
    table = wb.frontier(
        question, notion="dp", epsilon="0.5,1", max_loss="0.5", baselines=False
    ).to_frame()
    assert {"point", "level", "piece"} == set(table["curve"])
    with pytest.raises(
        InvalidRequest, match=r"epsilon must be given for the notion dp\. Got none\."
    ):
        wb.frontier(question, notion="dp")


def test_data_independent_noise_has_the_smallest_private_error() -> None:
    question = wb.ModuloNoise(n=5, max_shift=2)
    for notion in ("pdp", "dp"):
        for delta in ("0", "0.1", "0.4"):
            error = compute_data_independent_error(6, Fraction(1), Fraction(delta), notion)
            assert wb.audit(data_independent(question, error), 1).meets(notion, 1, delta)
            smaller_error = error - Fraction(1, 1000)
            if smaller_error > 0:
                smaller_audit = wb.audit(data_independent(question, smaller_error), 1)
                assert not smaller_audit.meets(notion, 1, delta)


def test_baselines_satisfy_the_requirements_of_a_notion_and_not_its_epsilon() -> None:
    class HalvedDP(DP):
        """DP with half of the ε that it is given."""

        name = "half"

        def requirements(self, values):
            return (HockeyStick(values["epsilon"] / 2, values["delta"]),)

        def measure(self, laws, values):
            return super().measure(laws, {**values, "epsilon": values["epsilon"] / 2})

    half = Fraction(1, 2)
    delta = Fraction(1, 100)
    notion = HalvedDP()
    assert compute_data_independent_error(
        6, Fraction(1), delta, notion
    ) == compute_data_independent_error(6, half, delta, "dp")
    parameter = _find_private_parameter(
        Scan("geometric", n=6, distances=[1]), Fraction(1), delta, notion
    )
    expected = _find_private_parameter(Scan("geometric", n=6, distances=[1]), half, delta, "dp")
    assert parameter == pytest.approx(expected, rel=1e-9)


def test_scan_finds_the_geometric_parameter() -> None:
    # Clamped geometric noise with ratio r is d ln(1/r)-private for neighbours d apart.
    for distance in (1, 2):
        ratio = _find_private_parameter(
            Scan("geometric", n=6, distances=[distance]), Fraction(1), Fraction(0), "pdp"
        )
        assert ratio == pytest.approx(math.exp(-1 / distance), rel=1e-6)
    assert (
        _find_private_parameter(
            Scan("gaussian", n=6, distances=[1]), Fraction(1, 10**9), Fraction(0), "pdp"
        )
        is None
    )


@pytest.mark.parametrize("family", ["geometric", "gaussian", "exponential"])
def test_the_pairs_that_a_scan_audits_have_the_largest_measures_of_all(family: str) -> None:
    for distances, epsilon, delta, notion in (
        ([1], Fraction(1), Fraction(0), "pdp"),
        ([1, 3], Fraction(1, 2), Fraction(1, 10), "pdp"),
        ([1, 2], Fraction(1, 3), Fraction(1, 50), "dp"),
        ([2], Fraction(8), Fraction(1, 10**6), "dp"),
    ):
        found = Scan(family, n=7, distances=distances).find_private(epsilon, delta, notion)
        assert found is not None
        _, channel, scan_audit = found
        full_audit = audit(
            Channel.from_pairs(channel, [(q, q + d) for d in distances for q in range(8 - d)]),
            epsilon,
        )
        assert len(scan_audit.pairs) <= len(full_audit.pairs) / 2
        assert (scan_audit.pdp_delta, scan_audit.dp_delta) == (
            full_audit.pdp_delta,
            full_audit.dp_delta,
        )
        assert (scan_audit.pure_ratio, scan_audit.pure_epsilon) == (
            full_audit.pure_ratio,
            full_audit.pure_epsilon,
        )


def _find_private_parameter(scan: Scan, *budget: Any) -> float | None:
    """Return the parameter of the best private mechanism of a scan, None if none is private."""
    mechanism = scan.find_private(*budget)
    return None if mechanism is None else mechanism[0]


def test_automatic_levels_are_four_losses_inside_the_range() -> None:
    assert choose_round_levels([]) == []
    assert choose_round_levels([0.5, 0.5]) == []
    levels = choose_round_levels([0.1, 0.87])
    assert len(levels) == 4
    assert all(0.1 < level < 0.87 for level in levels)


def test_a_point_that_reaches_the_time_limit_has_an_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from workbench.families.modulo import frontier as module

    monkeypatch.setattr(module, "_MAX_PIECE_SECONDS", 0.2)
    question = wb.ModuloNoise(n=47, shifts=[3, 7, 11, 20, 22])
    result = wb.frontier(
        question,
        epsilon="0.9,1.2",
        delta=0.1,
        notion="pdp",
        level="none",
        baselines=False,
        time_limit=0.05,
    )
    table = result.to_frame()
    points = table[table["curve"] == "point"]
    late = points[points["status"] == "time_limit"]
    assert len(late)  # If 0.05 s is enough on a faster machine, a harder question is needed.
    assert (late["bound"].isna() | (late["bound"] < late["objective"] - 1e-6)).all()
    assert late["failure"].str.contains("incumbent").all()
    assert (late["pdp_delta"] <= late["delta"]).all()  # The best noise so far is certified.
    assert "error_epsilon" in list_drawable_plots(result, table)


def test_interrupt_keeps_finished_rows() -> None:
    def stop() -> list[dict[str, Any]]:
        raise KeyboardInterrupt

    plan = Plan("", [lambda: [{"objective": 1.0}], stop, stop], draw=lambda table: {})
    outcome = run_frontier_plan(plan)
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
    outcome = run_frontier_plan(Plan("", [fail, lambda: good, large], draw=lambda table: {}))
    assert outcome.finished == 3
    assert outcome.is_interrupted is False
    known = {"curve": "failed", "status": "refused", "failure": "epsilon is too odd."}
    assert outcome.rows[0] == known | {"objective": None, "bound": None}
    assert outcome.rows[1] == good[0]
    assert outcome.rows[2]["failure"] == "The request needs more memory than there is."
    outcome = run_frontier_plan(Plan("", [lambda: good, stop, fail], draw=lambda table: {}))
    assert outcome.rows == good
    assert outcome.is_interrupted is True


def test_one_and_two_processes_compute_the_same_rows() -> None:
    options: dict[str, Any] = {
        "epsilon": "0.5,0.6",
        "delta": [0, 0.1],
        "notion": "pdp",
        "baselines": True,
    }
    one, two = (
        wb.frontier(wb.ModuloNoise(n=3, max_shift=1), **options, jobs=jobs) for jobs in (1, 2)
    )
    timed_columns = {"seconds", "status"}  # They depend on the speed of the machine.

    def rows(result: Result) -> list[dict[str, Any]]:
        return [
            {k: v for k, v in row.items() if k not in timed_columns}
            for row in result
            if row["curve"] != "piece"
        ]

    assert rows(one) == rows(two)
    assert {row["curve"] for row in two} == {"point", "level", "piece", "baseline"}
    assert (one.finished, two.finished) == (one.total, two.total)


def test_tasks_that_cannot_be_pickled_raise_an_error() -> None:
    lock = threading.Lock()
    with pytest.raises(wb.WorkbenchError, match="cannot be sent to other processes"):
        run_frontier_plan(Plan("", [lambda: [{"objective": float(lock.locked())}]] * 2), jobs=2)
    with pytest.raises(InvalidRequest, match="jobs must be"):
        wb.frontier(wb.ModuloNoise(n=4, max_shift=1), epsilon=1, jobs=0)


@pytest.mark.parametrize(
    "name", [kind.name for kind in list_builtin_families() if kind.frontier is not None]
)
def test_tasks_of_every_family_can_be_pickled(name: str) -> None:
    given: dict[str, dict[str, Any]] = {
        "modulo": {"n": 4, "max_shift": 1},
        "labels": {"labels": "0..4"}, "channel": {"answers": "0..4", "max_shift": 1},
    }  # fmt: skip
    kind = get_family(name)
    values = read_options(get_frontier(kind).options, {"epsilon": "1,2", **given.get(name, {})})
    for task in make_frontier_plan(kind, question=None, values=values).tasks:
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
    captured = capsys.readouterr()
    assert json.loads(captured.out)["interrupted"]
    assert captured.err.startswith("Interrupted: 1 of 2 tasks are finished")
    assert len(list(tmp_path.glob("*.csv"))) == 1


def test_the_command_prints_why_rows_have_no_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = (
        "frontier modulo --n 4 --max-shift 1 --epsilon 1,2 --delta 0.1 --notion pdp --level none "
        "--no-baselines --solver ortools:glop"
    )
    with pytest.raises(SystemExit) as end:
        main([*command.split(), "--out", str(tmp_path)])
    assert end.value.code == 0
    assert (
        "2 without a value: ortools:glop cannot solve mixed-integer programs"
        in capsys.readouterr().out
    )


def test_command_writes_table_and_plots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = "frontier modulo --n 4 --max-shift 1 --epsilon 0.5:1.5:2 --delta 0,0.1 --notion pdp,dp --json"
    with pytest.raises(SystemExit) as end:
        main([*command.split(), "--out", str(tmp_path)])
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


def test_plots_of_an_earlier_frontier_that_remain_are_named(tmp_path: Path) -> None:
    assert _list_earlier_files(tmp_path) == []
    for name in ("frontier.csv", "error_delta.png", "error_delta.svg", "error_epsilon.png"):
        (tmp_path / name).touch()
    earlier_files = _list_earlier_files(tmp_path)
    files = [tmp_path / "frontier.csv", tmp_path / "error_epsilon.png"]
    (sentence,) = _describe_earlier_files(tmp_path, earlier_files, files)
    assert sentence.endswith("These plots in it are not of this frontier: error_delta.")
    (sentence,) = _describe_earlier_files(tmp_path, earlier_files, earlier_files)
    assert sentence.endswith("contained an earlier frontier, which is replaced.")
    assert not [*_describe_earlier_files(tmp_path, [], files)]


def test_the_command_says_that_it_replaces_an_earlier_frontier(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = []
    for delta in ("0,0.1", "0"):
        command = f"frontier noise --epsilon 1,2 --delta {delta} --no-baselines"
        with pytest.raises(SystemExit):
            main([*command.split(), "--out", str(tmp_path)])
        outputs.append(" ".join(capsys.readouterr().out.split()))
    assert "contained an earlier frontier" not in outputs[0]
    assert (
        "contained an earlier frontier, which is replaced. These plots in it are not of this"
        in (outputs[1])
    )
    assert outputs[1].endswith("frontier: error_delta, error_epsilon_delta.")


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
    options = {"--epsilon": "1", "--delta": "0,0.1", "--out": str(tmp_path), option: value}
    arguments = [text for pair in options.items() for text in pair]
    with pytest.raises(SystemExit) as end:
        main(["frontier", "modulo", "--n", "4", "--max-shift", "1", *arguments])
    assert end.value.code == 2
    message = capsys.readouterr().err.strip()
    assert len(message.splitlines()) == 1
    assert word in message
    assert not list(tmp_path.iterdir())


def list_drawable_plots(result: Result, table: Any) -> set[str]:
    """Return the names of the plots that the rows allow."""
    figures = {name: plot() for name, plot in result.draw(table).items()}
    return {name for name, figure in figures.items() if figure is not None}


def test_quantizer_rows_agree_with_randomized_response_and_laplace_noise() -> None:
    result = wb.frontier("quantizer", levels=2, epsilon="1,2", method="exact,optm", starts=1)
    table = result.to_frame()
    assert table["failure"].isna().all()
    points = table[(table["curve"] == "point") & (table["mechanism"] == "exact")].set_index(
        "epsilon"
    )
    assert points["certified"].all()
    assert (points["pure_epsilon"] <= points.index).all()
    # With two outputs -B and B the optimum is randomized response. The smallest private B is
    # coth(ε/2), and the mean absolute error is B - 1/(3B).
    for epsilon, row in points.iterrows():
        output = 1 / math.tanh(float(str(epsilon)) / 2)
        assert row["objective"] == pytest.approx(output - 1 / (3 * output), rel=1e-6)
    limits = table[table["curve"] == "limit"].set_index("epsilon")
    assert (limits["bound"] <= limits["objective"]).all()
    assert (limits["bound"] <= points["objective"]).all()
    laplace = table[table["mechanism"] == "laplace"].set_index("epsilon")
    assert laplace["mae"].to_dict() == {1.0: 2.0, 2.0: 1.0}
    rivals = table[table["mechanism"].isin(["rqm", "pbm"])]
    assert (rivals["pure_epsilon"] <= rivals["epsilon"]).all()
    assert list_drawable_plots(result, table) == {"error_epsilon"}


def test_label_rows_are_ordered_by_method() -> None:
    result = wb.frontier(
        wb.Labels.uniform(0, 4), epsilon="0.5,2", delta="0,0.1", method="bins,lp,unbiased"
    )
    table = result.to_frame()
    assert table["failure"].isna().all()
    assert table["oracle_agrees"].dropna().all()
    for epsilon in (0.5, 2.0):
        here = table[table["epsilon"] == epsilon]
        loss = {(row["mechanism"], row["delta"]): row["objective"] for _, row in here.iterrows()}
        # The method bins may publish any number, and lp only labels.
        assert loss["bins", 0.0] <= loss["lp", 0.0] + 1e-9
        assert loss["lp", 0.1] < loss["lp", 0.0] <= loss["unbiased", 0.0]
        assert all(
            loss["bins", 0.0] <= value + 1e-9 for (_, delta), value in loss.items() if delta == 0
        )
    private = table[(table["mechanism"] == "lp") & (table["delta"] > 0)]
    assert (private["dp_delta"] <= private["delta"]).all()
    assert list_drawable_plots(result, table) == {
        "error_epsilon",
        "error_epsilon_delta",
        "error_delta",
    }


def test_laplace_rows_fit_their_bits_or_are_unreachable() -> None:
    result = wb.frontier("laplace", epsilon="0.5,1,30", bits="3,6", ell=2)
    table = result.to_frame()
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
    assert list_drawable_plots(result, table) == {
        "baselines",
        "decoder_epsilon",
        "error_epsilon",
        "level_curves",
    }


def test_published_mechanisms_are_drawn_beside_the_quantized_laplace_mechanism() -> None:
    result = wb.frontier("laplace", epsilon="0.5,1", bits="6", ell=2)
    figure = result.plot(which="baselines")
    labels = {text.get_text() for text in figure.legends[0].get_texts()}
    # The decoder has no guarantee under dithering without local noise.
    assert labels == {"DQL", "quantized Laplace", "Laplace, any real output"}


def test_points_of_a_frontier_are_the_designs_at_their_budgets() -> None:
    progress_calls: list[tuple[int, int]] = []
    result = wb.frontier(
        wb.ModuloNoise(n=4, max_shift=1),
        epsilon=[0.5, 1],
        delta=0.1,
        notion="dp",
        level="none",
        baselines=False,
        progress=lambda done, total, what: progress_calls.append((done, total)),
    )
    assert progress_calls[-1] == (result.finished, result.total)
    points = [row for row in result if row["curve"] == "point"]
    for row in points:
        design = wb.design(
            wb.ModuloNoise(n=4, max_shift=1), epsilon=row["epsilon"], delta=0.1, notion="dp"
        )
        assert row["objective"] == pytest.approx(design.objective, abs=1e-12)
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


def test_a_question_object_and_a_family_name_give_the_same_frontier() -> None:
    for question, name, options in (
        (wb.Labels.uniform(0, 3), "labels", {"labels": "0..3", "method": "bins"}),
        (wb.Quantization(levels=2), "quantizer", {"levels": 2, "method": "exact", "starts": 1}),
        (wb.DataLaw.uniform(-1.0, 1.0), "laplace", {"bits": 5, "ell": 2}),
    ):
        question_options = {
            key: value for key, value in options.items() if key not in ("labels", "levels")
        }
        by_question = (
            wb.frontier(question, epsilon=1, **question_options).to_frame().drop(columns="seconds")
        )
        by_name = wb.frontier(name, epsilon=1, **options).to_frame().drop(columns="seconds")
        assert by_question.equals(by_name)


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
def test_a_bad_frontier_request_is_refused_with_rule_and_value(
    question: Any, options: dict[str, Any]
) -> None:
    with pytest.raises(
        wb.WorkbenchError,
        match=r" must be .* Got (?s:.)*\.$|^No such option n; did you mean notion",
    ):
        wb.frontier(question, **{"epsilon": 1, **options})


def test_a_scan_gives_the_same_result_after_other_budgets() -> None:
    scan = Scan("geometric", n=4, distances=[1, 2])
    budgets = [
        (Fraction(e), Fraction(d), notion)
        for e in (1, 2)
        for notion in ("pdp", "dp")
        for d in ("0", "0.1")
    ]
    for budget in [*budgets, *budgets[::-3]]:
        assert _find_private_parameter(scan, *budget) == _find_private_parameter(
            Scan("geometric", n=4, distances=[1, 2]), *budget
        )


def _styles(figure: Any) -> dict[str, set[str]]:
    """Return the draw style of every labelled line of a figure, by panel and label."""
    return {
        f"{axis.get_title()}: {line.get_label()}": line.get_drawstyle()
        for axis in figure.axes
        for line in axis.lines
        if len(line.get_xdata()) > 1
    }


def test_curves_that_may_jump_are_drawn_in_steps() -> None:
    # At error 0.24 the smallest δ under PDP is 0.76 up to ε = 2.94, and nearly 0 above.
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
    step_index = np.searchsorted(np.asarray(x), 2.92, side="right") - 1
    drawn_delta = float(np.asarray(y)[step_index])
    exact_delta = wb.design(
        wb.ModuloNoise(n=8, max_shift=3),
        epsilon=2.92,
        notion="pdp",
        minimise="delta",
        max_loss="0.24",
    ).objective
    assert drawn_delta == pytest.approx(exact_delta, abs=1e-9) == 0.76
    styles = _styles(table.plot(which="error_epsilon_delta"))
    assert styles["PDP: δ = 0.1"] == "steps-post"
    assert {styles[f"{name}"] for name in ("PDP: δ = 0", "DP: δ = 0", "DP: δ = 0.1")} == {"default"}


def test_the_band_of_a_curve_that_may_jump_reaches_down_to_the_next_bound() -> None:
    rows = pd.DataFrame({"epsilon": [1.0, 2.0], "delta": 0.1, "notion": "pdp", "bound": [0.4, 0.1],
                         "objective": [0.5, 0.2]})  # fmt: skip
    figure = draw_declared_figure(
        Drawing({"series": [make_proven_band(rows, "epsilon", "objective")]}), rows
    )
    (band,) = figure.axes[0].collections
    # The rows do not exclude an optimum of 0.15 at ε = 1.5.
    assert band.get_paths()[0].contains_point((1.5, 0.15))


def test_searches_over_a_grid_of_parameters_are_drawn_in_steps() -> None:
    table = wb.frontier("quantizer", levels=3, epsilon="0.5,1,1.5", method="optm")
    styles = _styles(table.plot(which="error_epsilon"))
    assert (styles["3 outputs: RQM"], styles["3 outputs: OPTM"]) == ("steps-post", "default")


def test_rows_of_zcdp_gdp_and_renyi_are_designs_at_their_budgets():
    table = wb.frontier(
        wb.ModuloNoise(n=6, max_shift=1), loss="squared", notion="zcdp,gdp,renyi", rho="0.05,0.2", mu="0.5,1", alpha=2,
        epsilon="0.5,1",
    ).to_frame()  # fmt: skip
    assert table.groupby("notion").size().to_dict() == {"gdp": 2, "renyi": 2, "zcdp": 2}
    # Pieces, levels and published mechanisms only exist for ε and δ.
    assert set(table["curve"]) == {"point"}
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
    design_for_two_runs = wb.design(question, epsilon=1, delta="1e-3", runs=2, loss="squared")
    assert rows[2]["objective"] == pytest.approx(design_for_two_runs.objective, rel=1e-9)
    assert all(
        row["epsilon"] == 1 for row in result if row["curve"] == "baseline" and "objective" in row
    )
    assert "loss_runs" in result.plots
