"""Test frontiers: grids of budgets, rows against closed forms, Ctrl-C, plots and refused requests.

A frontier is a table of optima at many budgets. The column `curve` says what a row is: an optimum at
a budget ("point"), a straight piece of the exact optimum as a function of δ ("piece"), the smallest
δ or ε for a given loss ("level"), a proven limit of all quantizers ("limit"), a published mechanism
("baseline") or a task that raised an error ("failed"). A `Plan` has the tasks that compute the rows.
"""

from __future__ import annotations

import itertools
import json
import math
import pickle
import threading
from collections.abc import Callable
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


def test_a_range_is_read_as_exact_fractions_in_increasing_order() -> None:
    tenths = read_grid("0.1:4:40", "epsilon")
    assert tenths[:3] == [Fraction(1, 10), Fraction(2, 10), Fraction(3, 10)]
    assert read_grid("2:1:3", "epsilon") == [1, Fraction(3, 2), 2]
    assert read_grid("1:1:1", "epsilon") == [1]
    assert read_integer_grid("2:8:4", "levels") == [2, 4, 6, 8]


def test_a_list_is_read_as_exact_fractions_in_increasing_order() -> None:
    assert read_grid("0.01, 0,1e-6", "delta") == [0, Fraction(1, 10**6), Fraction(1, 100)]


def test_a_logarithmic_range_has_equal_ratios() -> None:
    grid = [float(value) for value in read_grid("0.1:10:5:log", "epsilon")]
    assert grid == pytest.approx([10**exponent for exponent in (-1, -0.5, 0, 0.5, 1)])


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


@pytest.fixture(scope="module")
def modulo_table() -> pd.DataFrame:
    """Return the rows of a frontier of modulo noise under PDP and DP. No task failed."""
    result = wb.frontier(
        wb.ModuloNoise(n=5, max_shift=2), epsilon="0.5,1.5", delta="0,0.05,0.2", notion="pdp,dp"
    )
    assert not result.is_interrupted
    table = result.to_frame()
    assert table["failure"].isna().all()
    return table


def test_points_are_certified_and_private_and_agree_with_their_bounds(
    modulo_table: pd.DataFrame,
) -> None:
    points = modulo_table[modulo_table["curve"] == "point"]
    assert points["certified"].all()
    assert points["oracle_agrees"].all()
    assert (points["bound"] <= points["objective"] + 1e-9).all()
    for _, point in points.iterrows():
        measured_delta = point[f"{point['notion']}_delta"]
        assert measured_delta <= point["delta"]


def test_the_exact_pieces_contain_the_optima_of_the_points(modulo_table: pd.DataFrame) -> None:
    all_pieces = modulo_table[modulo_table["curve"] == "piece"]
    for _, point in modulo_table[modulo_table["curve"] == "point"].iterrows():
        pieces = all_pieces[
            (all_pieces["notion"] == point["notion"])
            & (all_pieces["epsilon"] == point["epsilon"])
            & (all_pieces["delta"] <= point["delta"])
            & (point["delta"] <= all_pieces["delta_high"])
        ]
        piece = pieces.iloc[-1]
        interpolated_objective = np.interp(
            point["delta"],
            [piece["delta"], piece["delta_high"]],
            [piece["objective"], piece["objective_high"]],
        )
        assert interpolated_objective == pytest.approx(point["objective"], abs=1e-7)


def test_the_objective_of_a_level_is_its_delta(modulo_table: pd.DataFrame) -> None:
    levels = modulo_table[modulo_table["curve"] == "level"]
    assert levels["certified"].all()
    assert levels["delta"].to_numpy() == pytest.approx(levels["objective"].to_numpy(), abs=1e-12)


def test_the_data_independent_mechanism_is_not_better_than_the_optimum(
    modulo_table: pd.DataFrame,
) -> None:
    """The data-independent mechanism is additive noise, too."""
    points = modulo_table[modulo_table["curve"] == "point"]
    published = modulo_table[modulo_table["mechanism"] == "data-independent"]
    joined = published.merge(
        points, on=["notion", "epsilon", "delta"], suffixes=("_published", "_optimal")
    )
    assert len(joined)
    assert (joined["objective_published"] >= joined["objective_optimal"] - 1e-9).all()


def test_the_minimal_epsilon_for_a_loss_is_the_inverse_of_the_minimal_loss() -> None:
    """Without an ε, the frontier minimises ε. The noise at that ε has the given loss."""
    question = wb.ModuloNoise(n=6, max_shift=1)
    table = wb.frontier(
        question, notion="dp,pure", loss="squared", max_loss="1,2", delta="0,0.02"
    ).to_frame()
    assert table["mechanism"].eq("least epsilon").all()
    assert table["certified"].all()
    # Two losses with two δ under DP, and two losses under pure DP.
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


def test_a_frontier_with_epsilon_and_a_loss_has_points_and_levels() -> None:
    table = wb.frontier(
        wb.ModuloNoise(n=6, max_shift=1),
        notion="dp",
        epsilon="0.5,1",
        max_loss="0.5",
        baselines=False,
    ).to_frame()
    assert set(table["curve"]) == {"point", "level", "piece"}


def test_a_frontier_without_epsilon_and_loss_is_refused() -> None:
    with pytest.raises(
        InvalidRequest, match=r"epsilon must be given for the notion dp\. Got none\."
    ):
        wb.frontier(wb.ModuloNoise(n=6, max_shift=1), notion="dp")


def test_data_independent_noise_has_the_smallest_private_error() -> None:
    question = wb.ModuloNoise(n=5, max_shift=2)
    # The answers are 0..5.
    answer_count = 6
    for notion, delta in itertools.product(("pdp", "dp"), ("0", "0.1", "0.4")):
        error = compute_data_independent_error(answer_count, Fraction(1), Fraction(delta), notion)
        privacy = wb.audit(data_independent(question, error), 1)
        assert privacy.meets(notion, epsilon=1, delta=delta)
        smaller_error = error - Fraction(1, 1000)
        if smaller_error > 0:
            smaller_audit = wb.audit(data_independent(question, smaller_error), 1)
            assert not smaller_audit.meets(notion, epsilon=1, delta=delta)


def test_baselines_satisfy_the_requirements_of_a_notion_and_not_its_epsilon() -> None:
    """A notion may require another ε than its value `epsilon`. Baselines must satisfy that one."""

    class HalvedDP(DP):
        """DP with half of the ε that it is given."""

        name = "half"

        def requirements(self, values):
            """Return the hockey-stick constraint at half of the ε."""
            return (HockeyStick(values["epsilon"] / 2, values["delta"]),)

        def measure(self, laws, values):
            """Measure two laws at half of the ε."""
            return super().measure(laws, {**values, "epsilon": values["epsilon"] / 2})

    half = Fraction(1, 2)
    delta = Fraction(1, 100)
    notion = HalvedDP()
    error = compute_data_independent_error(6, Fraction(1), delta, notion)
    assert error == compute_data_independent_error(6, half, delta, "dp")
    scan = Scan("geometric", n=6, distances=[1])
    parameter = _find_private_parameter(scan, Fraction(1), delta, notion)
    expected_parameter = _find_private_parameter(
        Scan("geometric", n=6, distances=[1]), half, delta, "dp"
    )
    assert parameter == pytest.approx(expected_parameter, rel=1e-9)


# A `Scan` finds the best private parameter of a published mechanism for answers 0..n.


@pytest.mark.parametrize("distance", [1, 2])
def test_a_scan_finds_the_parameter_of_geometric_noise(distance: int) -> None:
    """Clamped geometric noise with ratio r is d ln(1/r)-private for neighbours d apart."""
    scan = Scan("geometric", n=6, distances=[distance])
    ratio = _find_private_parameter(scan, Fraction(1), Fraction(0), "pdp")
    assert ratio == pytest.approx(math.exp(-1 / distance), rel=1e-6)


def test_a_scan_finds_no_gaussian_noise_at_a_tiny_budget() -> None:
    scan = Scan("gaussian", n=6, distances=[1])
    assert _find_private_parameter(scan, Fraction(1, 10**9), Fraction(0), "pdp") is None


@pytest.mark.parametrize("family", ["geometric", "gaussian", "exponential"])
def test_the_pairs_that_a_scan_audits_have_the_largest_measures_of_all(family: str) -> None:
    for distances, epsilon, delta, notion in (
        ([1], Fraction(1), Fraction(0), "pdp"),
        ([1, 3], Fraction(1, 2), Fraction(1, 10), "pdp"),
        ([1, 2], Fraction(1, 3), Fraction(1, 50), "dp"),
        ([2], Fraction(8), Fraction(1, 10**6), "dp"),
    ):
        private_mechanism = Scan(family, n=7, distances=distances).find_private(
            epsilon, delta, notion
        )
        assert private_mechanism is not None
        _, channel, scan_audit = private_mechanism
        # All pairs of neighbouring answers in 0..7.
        pairs = [
            (answer, answer + distance) for distance in distances for answer in range(8 - distance)
        ]
        full_audit = audit(Channel.from_pairs(channel, pairs), epsilon)
        assert len(scan_audit.pairs) <= len(full_audit.pairs) / 2
        assert (scan_audit.pdp_delta, scan_audit.dp_delta) == (
            full_audit.pdp_delta,
            full_audit.dp_delta,
        )
        assert (scan_audit.pure_ratio, scan_audit.pure_epsilon) == (
            full_audit.pure_ratio,
            full_audit.pure_epsilon,
        )


def _find_private_parameter(
    scan: Scan, epsilon: Fraction, delta: Fraction, notion: Any
) -> float | None:
    """Return the parameter of the best private mechanism of a scan, None if none is private.

    `notion` is the name of a notion or a notion.
    """
    private_mechanism = scan.find_private(epsilon, delta, notion)
    if private_mechanism is None:
        return None
    parameter, _, _ = private_mechanism
    return parameter


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


# Tasks of a plan. Each returns its rows.


def return_one_row() -> list[dict[str, Any]]:
    """Return a row like a task that succeeds."""
    return [{"objective": 1.0}]


def press_ctrl_c() -> list[dict[str, Any]]:
    """End like a task during which the user presses Ctrl-C."""
    raise KeyboardInterrupt


def refuse_request() -> list[dict[str, Any]]:
    """End like a task whose request is refused."""
    raise InvalidRequest("epsilon is too odd.")


def exhaust_memory() -> list[dict[str, Any]]:
    """End like a task that needs too much memory."""
    raise MemoryError


def run_tasks(*tasks: Callable[[], list[dict[str, Any]]]) -> Result:
    """Run a plan of these tasks, which draws nothing."""
    return run_frontier_plan(Plan("", list(tasks), draw=lambda table: {}))


def test_ctrl_c_keeps_the_rows_of_finished_tasks() -> None:
    result = run_tasks(return_one_row, press_ctrl_c, refuse_request)
    assert result.is_interrupted
    assert result.finished == 1
    assert result.rows == return_one_row()


def test_a_task_that_is_refused_is_a_row() -> None:
    result = run_tasks(refuse_request, return_one_row)
    assert (result.finished, result.is_interrupted) == (2, False)
    failed_row, finished_row = result.rows
    assert failed_row == {
        "curve": "failed",
        "status": "refused",
        "failure": "epsilon is too odd.",
        "objective": None,
        "bound": None,
    }
    assert finished_row == return_one_row()[0]


def test_a_task_that_needs_too_much_memory_is_a_row() -> None:
    (row,) = run_tasks(exhaust_memory).rows
    assert row["failure"] == "The request needs more memory than there is."


def test_one_and_two_processes_compute_the_same_rows() -> None:
    options: dict[str, Any] = {
        "epsilon": "0.5,0.6",
        "delta": [0, 0.1],
        "notion": "pdp",
        "baselines": True,
    }
    question = wb.ModuloNoise(n=3, max_shift=1)
    single = wb.frontier(question, **options, jobs=1)
    several = wb.frontier(question, **options, jobs=2)
    timed_columns = {"seconds", "status"}  # They depend on the speed of the machine.

    def list_comparable_rows(result: Result) -> list[dict[str, Any]]:
        """Return the rows without timed columns. The number of pieces depends on the time, too."""
        return [
            {column: value for column, value in row.items() if column not in timed_columns}
            for row in result
            if row["curve"] != "piece"
        ]

    assert list_comparable_rows(single) == list_comparable_rows(several)
    assert {row["curve"] for row in several} == {"point", "level", "piece", "baseline"}
    assert (single.finished, several.finished) == (single.total, several.total)


def test_tasks_that_cannot_be_pickled_raise_an_error() -> None:
    lock = threading.Lock()
    # A lock cannot be pickled, so neither can a function that uses it.
    with pytest.raises(wb.WorkbenchError, match="cannot be sent to other processes"):
        run_frontier_plan(Plan("", [lambda: [{"objective": float(lock.locked())}]] * 2), jobs=2)


def test_a_frontier_on_zero_processes_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="jobs must be"):
        wb.frontier(wb.ModuloNoise(n=4, max_shift=1), epsilon=1, jobs=0)


@pytest.mark.parametrize(
    "name", [family.name for family in list_builtin_families() if family.frontier is not None]
)
def test_tasks_of_every_family_can_be_pickled(name: str) -> None:
    required_options: dict[str, dict[str, Any]] = {
        "modulo": {"n": 4, "max_shift": 1},
        "labels": {"labels": "0..4"},
        "channel": {"answers": "0..4", "max_shift": 1},
    }
    family = get_family(name)
    user_values = {"epsilon": "1,2", **required_options.get(name, {})}
    values = read_options(get_frontier(family).options, user_values)
    for task in make_frontier_plan(family, question=None, values=values).tasks:
        assert callable(pickle.loads(dumps(task)))


def test_interrupted_json_is_one_object(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["modulo", "--n", "4", "--max-shift", "1", "--epsilon", "1"]

    def run_first_task(plan: Plan, progress: Any, jobs: int = 1) -> Result:
        """Run the first task, and return a result as if Ctrl-C had stopped the second one."""
        result = run_frontier_plan(replace(plan, tasks=plan.tasks[:1]))
        return replace(result, total=result.total + 1)

    monkeypatch.setattr("workbench.frontiers.run.run_frontier_plan", run_first_task)
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
    command = (
        "frontier modulo --n 4 --max-shift 1 --epsilon 0.5:1.5:2 --delta 0,0.1 --notion pdp,dp "
        "--json"
    )
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
        in outputs[1]
    )
    assert outputs[1].endswith("frontier: error_delta, error_epsilon_delta.")


@pytest.mark.parametrize(
    ("option", "value", "named_option"),
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
    option: str, value: str, named_option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"--epsilon": "1", "--delta": "0,0.1", "--out": str(tmp_path), option: value}
    arguments = [text for pair in options.items() for text in pair]
    with pytest.raises(SystemExit) as end:
        main(["frontier", "modulo", "--n", "4", "--max-shift", "1", *arguments])
    assert end.value.code == 2
    message = capsys.readouterr().err.strip()
    assert len(message.splitlines()) == 1
    assert named_option in message
    assert not list(tmp_path.iterdir())


def list_drawable_plots(result: Result, table: Any) -> set[str]:
    """Return the names of the plots that the rows allow."""
    figures = {name: plot() for name, plot in result.draw(table).items()}
    return {name for name, figure in figures.items() if figure is not None}


# Quantizers of numbers in [-1, 1] with two outputs.


@pytest.fixture(scope="module")
def quantizer_result() -> Result:
    """Return a frontier of quantizers with two outputs at ε = 1 and 2."""
    return wb.frontier("quantizer", levels=2, epsilon="1,2", method="exact,optm", starts=1)


@pytest.fixture(scope="module")
def quantizer_table(quantizer_result: Result) -> pd.DataFrame:
    """Return the rows of `quantizer_result`. No task failed."""
    table = quantizer_result.to_frame()
    assert table["failure"].isna().all()
    return table


def get_exact_quantizers(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of optimal quantizers by ε."""
    is_exact = (table["curve"] == "point") & (table["mechanism"] == "exact")
    return table[is_exact].set_index("epsilon")


def test_the_optimal_quantizer_with_two_outputs_is_randomized_response(
    quantizer_table: pd.DataFrame,
) -> None:
    """The smallest private output B is coth(ε/2), and the mean absolute error is B - 1/(3B)."""
    points = get_exact_quantizers(quantizer_table)
    assert points["certified"].all()
    for epsilon in (1.0, 2.0):
        largest_output = 1 / math.tanh(epsilon / 2)
        expected_error = largest_output - 1 / (3 * largest_output)
        assert points["objective"][epsilon] == pytest.approx(expected_error, rel=1e-6)


def test_quantizers_of_a_frontier_are_private(quantizer_table: pd.DataFrame) -> None:
    is_quantizer = quantizer_table["mechanism"].isin(["exact", "rqm", "pbm"])
    quantizers = quantizer_table[is_quantizer & (quantizer_table["curve"] != "limit")]
    assert set(quantizers["mechanism"]) == {"exact", "rqm", "pbm"}
    assert (quantizers["pure_epsilon"] <= quantizers["epsilon"]).all()


def test_the_proven_limit_of_a_frontier_is_below_its_quantizers(
    quantizer_table: pd.DataFrame,
) -> None:
    limits = quantizer_table[quantizer_table["curve"] == "limit"].set_index("epsilon")
    assert (limits["bound"] <= limits["objective"]).all()
    assert (limits["bound"] <= get_exact_quantizers(quantizer_table)["objective"]).all()


def test_a_frontier_of_quantizers_has_the_error_of_laplace_noise(
    quantizer_table: pd.DataFrame,
) -> None:
    """Inputs have the sensitivity 2, and Laplace noise has the mean absolute error 2/ε."""
    laplace = quantizer_table[quantizer_table["mechanism"] == "laplace"].set_index("epsilon")
    assert laplace["mae"].to_dict() == {1.0: 2.0, 2.0: 1.0}


def test_a_frontier_of_quantizers_has_one_plot(
    quantizer_result: Result, quantizer_table: pd.DataFrame
) -> None:
    assert list_drawable_plots(quantizer_result, quantizer_table) == {"error_epsilon"}


def test_label_rows_are_ordered_by_method() -> None:
    """The method bins may publish any number, lp only labels, and unbiased has one constraint more.

    A larger δ reduces the loss.
    """
    result = wb.frontier(
        wb.Labels.uniform(0, 4), epsilon="0.5,2", delta="0,0.1", method="bins,lp,unbiased"
    )
    table = result.to_frame()
    assert table["failure"].isna().all()
    assert table["oracle_agrees"].dropna().all()
    for epsilon in (0.5, 2.0):
        rows = table[table["epsilon"] == epsilon]
        losses = {(row["mechanism"], row["delta"]): row["objective"] for _, row in rows.iterrows()}
        pure_losses = [loss for (_, delta), loss in losses.items() if delta == 0]
        assert losses["bins", 0.0] <= min(pure_losses) + 1e-9
        assert losses["lp", 0.1] < losses["lp", 0.0] <= losses["unbiased", 0.0]
    with_delta = table[(table["mechanism"] == "lp") & (table["delta"] > 0)]
    assert (with_delta["dp_delta"] <= with_delta["delta"]).all()
    assert list_drawable_plots(result, table) == {
        "error_epsilon",
        "error_epsilon_delta",
        "error_delta",
    }


def test_laplace_rows_fit_their_bits_or_are_unreachable() -> None:
    result = wb.frontier("laplace", epsilon="0.5,1,30", bits="3,6", ell=2)
    table = result.to_frame()
    points = table[table["curve"] == "point"]
    reachable = points[points["mean_bits"].notna()]
    assert (reachable["mean_bits"] <= reachable["bits"]).all()
    # The mean squared error is 2/ε².
    assert points[points["epsilon"] == 1.0]["objective"].tolist() == [2.0, 2.0]
    unreachable = points[points["status"] == "unreachable"]
    assert unreachable["epsilon"].tolist() == [30.0, 30.0]
    assert unreachable["objective"].isna().all()
    levels = table[table["curve"] == "level"].set_index("epsilon")
    assert levels["mean_bits"][1.0] == pytest.approx(
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
    # The second pass visits some budgets again, in another order.
    for budget in [*budgets, *budgets[::-3]]:
        new_scan = Scan("geometric", n=4, distances=[1, 2])
        assert _find_private_parameter(scan, *budget) == _find_private_parameter(new_scan, *budget)


def _get_draw_styles(figure: Any) -> dict[str, str]:
    """Return the draw style of every line of a figure. The keys are "panel: label"."""
    return {
        f"{axis.get_title()}: {line.get_label()}": line.get_drawstyle()
        for axis in figure.axes
        for line in axis.lines
        if len(line.get_xdata()) > 1
    }


def test_curves_that_may_jump_are_drawn_in_steps() -> None:
    """At error 0.24 the smallest δ under PDP is 0.76 up to ε = 2.94, and nearly 0 above."""
    result = wb.frontier(
        wb.ModuloNoise(n=8, max_shift=3),
        epsilon="2.4,2.8,3.2",
        delta="0,0.1",
        notion="pdp,dp",
        level="0.24",
        baselines=False,
    )
    figure = result.plot(which="level_curves")
    assert isinstance(figure, Figure)
    pdp, dp = (axis.lines[0] for axis in figure.axes)
    assert (pdp.get_drawstyle(), dp.get_drawstyle()) == ("steps-post", "default")
    epsilons = np.asarray(pdp.get_xdata())
    deltas = np.asarray(pdp.get_ydata())
    step_index = np.searchsorted(epsilons, 2.92, side="right") - 1
    drawn_delta = float(deltas[step_index])
    exact_delta = wb.design(
        wb.ModuloNoise(n=8, max_shift=3),
        epsilon=2.92,
        notion="pdp",
        minimise="delta",
        max_loss="0.24",
    ).objective
    assert drawn_delta == pytest.approx(exact_delta, abs=1e-9) == 0.76
    styles = _get_draw_styles(result.plot(which="error_epsilon_delta"))
    assert styles["PDP: δ = 0.1"] == "steps-post"
    assert {styles[name] for name in ("PDP: δ = 0", "DP: δ = 0", "DP: δ = 0.1")} == {"default"}


def test_the_band_of_a_curve_that_may_jump_reaches_down_to_the_next_bound() -> None:
    rows = pd.DataFrame(
        {
            "epsilon": [1.0, 2.0],
            "delta": 0.1,
            "notion": "pdp",
            "bound": [0.4, 0.1],
            "objective": [0.5, 0.2],
        }
    )
    figure = draw_declared_figure(
        Drawing({"series": [make_proven_band(rows, "epsilon", "objective")]}), rows
    )
    (band,) = figure.axes[0].collections
    # The rows do not exclude an optimum of 0.15 at ε = 1.5.
    assert band.get_paths()[0].contains_point((1.5, 0.15))


def test_searches_over_a_grid_of_parameters_are_drawn_in_steps() -> None:
    result = wb.frontier("quantizer", levels=3, epsilon="0.5,1,1.5", method="optm")
    styles = _get_draw_styles(result.plot(which="error_epsilon"))
    assert (styles["3 outputs: RQM"], styles["3 outputs: OPTM"]) == ("steps-post", "default")


def test_rows_of_zcdp_gdp_and_renyi_are_designs_at_their_budgets():
    table = wb.frontier(
        wb.ModuloNoise(n=6, max_shift=1),
        loss="squared",
        notion="zcdp,gdp,renyi",
        rho="0.05,0.2",
        mu="0.5,1",
        alpha=2,
        epsilon="0.5,1",
    ).to_frame()
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
