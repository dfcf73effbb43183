"""Test that parameters of figures can be changed, and that changed figures are not the paper's.

An artifact is a figure or a table of a paper. A file of `workbench/papers/declared` declares its
parameters with their defaults, which are the paper's values.
"""

from __future__ import annotations

import inspect
import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

import workbench as wb
from workbench.cli.commands import app
from workbench.papers import load_paper
from workbench.papers.artifact import compute_declared_table, read_declaration
from workbench.papers.parameters import Parameter, fill_parameters, read_parameters
from workbench.papers.reproduce import list_artifacts, reproduce

RESULTS = Path(__file__).resolve().parents[3] / "results"
PAPERS_WITH_PARAMETERS = ["modulo-noise", "dql", "optm", "label-dp"]
# Artifacts whose only inputs are the numbers that the paper prints.
WITHOUT_PARAMETERS = {
    "modulo-noise": {"table1", "limit"},
    "dql": {"theorem8"},
    "optm": {"fig3", "above", *(f"table{k}" for k in range(1, 10))},
    "label-dp": {"fig5", "channel_lp_large"},
}


def run_command(*arguments: str) -> str:
    """Return the output of `workbench reproduce` with these arguments."""
    result = CliRunner().invoke(app, ["reproduce", *arguments])
    return " ".join((result.output + str(result.exception or "")).split())


def test_a_changed_figure_is_returned_with_its_frame_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = wb.reproduce("modulo-noise", only="fig2", n=3, jobs=1)
    assert set(result.frame["k"]) == {-1, 0, 1, 2, 3}
    assert "n = 3" in result.figure.axes[0].get_title()
    assert not list(tmp_path.iterdir())


def test_the_frame_needs_a_single_artifact(tmp_path: Path) -> None:
    result = wb.reproduce("optm", ["table8", "table9"], tmp_path, jobs=1)
    assert len(result.artifacts) == 2
    with pytest.raises(wb.InvalidRequest, match="only must be one figure or table"):
        result.frame.sum()


@pytest.fixture(scope="module")
def changed_figure() -> Any:
    """Return the result for Fig. 10 of modulo-noise with another δ."""
    return wb.reproduce("modulo-noise", "fig10", jobs=1, deltas="0.2")


def test_the_caption_of_a_changed_figure_names_the_change_and_not_the_paper(
    changed_figure: Any,
) -> None:
    artifact = changed_figure.artifact
    assert artifact.changes == {"deltas": [0.2]}
    assert "deltas = 0.2 (default: 0.1212, 0.1238, 0.1522)" in artifact.caption
    assert "Table 1" not in artifact.caption


def test_a_changed_figure_is_not_compared_with_printed_numbers(changed_figure: Any) -> None:
    assert len(changed_figure) == 0
    assert "no printed number is compared" in changed_figure.sentences[0]
    assert "printed" not in changed_figure.frame


def test_a_changed_figure_has_no_marks_of_printed_numbers(changed_figure: Any) -> None:
    _, labels = changed_figure.figure.axes[1].get_legend_handles_labels()
    assert "printed in Table 1" not in labels


def test_default_values_are_no_change(tmp_path: Path) -> None:
    result = wb.reproduce("modulo-noise", "fig9", tmp_path, jobs=1, n="7", epsilon=0.75)
    assert result.artifact.changes == {}
    # Fig. 9 prints four masses that are 0.
    assert len(result) == 4
    stored = (RESULTS / "modulo-noise/fig9.csv").read_bytes()
    assert (tmp_path / "modulo-noise/fig9.csv").read_bytes() == stored


def test_other_spellings_of_default_values_are_no_change() -> None:
    parameters = load_paper("modulo-noise").parameters["fig9"]
    assert read_parameters(parameters, {"n": "7", "epsilon": 0.75}, "fig9") == {}


def test_an_unknown_parameter_is_refused_with_the_list_of_all() -> None:
    with pytest.raises(wb.InvalidRequest) as error:
        wb.reproduce("modulo-noise", only="fig2", shifts=2)
    assert str(error.value) == (
        "set must name parameters of modulo-noise fig2: n (integer >= 1); shift (integer >= 1); "
        "epsilon (number > 0). Got 'shifts'. Did you mean shift?"
    )


def test_all_selected_artifacts_must_have_the_parameter() -> None:
    with pytest.raises(wb.InvalidRequest, match="parameters of modulo-noise fig4"):
        wb.reproduce("modulo-noise", only=["fig2", "fig4"], shift=2)
    with pytest.raises(wb.InvalidRequest, match="set must be left out for modulo-noise table1"):
        wb.reproduce("modulo-noise", only="table1", n=4)


@pytest.mark.parametrize(
    ("type_text", "value", "message"),
    [
        ("integer >= 1", "0", "x must be >= 1. Got '0'."),
        ("integer >= 1", 10**9, "x must be at most 100000000. Got 1000000000."),
        ("integer in 2..6", 7, "x must be in 2..6. Got 7."),
        ("integer >= 1", "1.5", "x must be an integer. Got '1.5'."),
        ("integer >= 1", "abc", "x must be a finite number. Got abc."),
        ("number > 0", "0", "x must be > 0. Got '0'."),
        ("numbers in 0..1", "0.5,1.5", "x must be in 0..1. Got '0.5,1.5'."),
        ("integers >= 1", "1,2.5", "x must be integers >= 1. Got '1,2.5'."),
        ("one of a, b", "c", "x must be one of a, b. Got 'c'."),
    ],
)
def test_a_wrong_value_is_refused_with_its_rule(type_text: str, value: object, message: str):
    # A default of the type, which is not used here.
    default = {"numbers": [1.0], "integers": [1], "one": "a"}.get(type_text.split()[0], 1)
    parameter = Parameter("x", type_text, default, "a number")
    with pytest.raises(wb.InvalidRequest) as error:
        parameter.read(value)
    assert str(error.value) == message


def test_a_text_with_a_dollar_stands_for_the_value_of_a_parameter() -> None:
    entry = {"arguments": {"n": "$n", "shifts": ["$shift"]}, "grid": {"epsilon": [1, 2]}}
    assert fill_parameters(entry, {"n": 4, "shift": 3}) == {
        "arguments": {"n": 4, "shifts": [3]},
        "grid": {"epsilon": [1, 2]},
    }


def test_the_command_refuses_changed_parameters_without_a_folder() -> None:
    output = run_command("--only", "fig10", "--set", "n=16")
    assert "out must be given with --set" in output


def test_changed_figures_do_not_replace_those_of_the_paper(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    (folder / "modulo-noise").mkdir(parents=True)
    stored = folder / "modulo-noise/fig2.json"
    shutil.copy(RESULTS / "modulo-noise/fig2.json", stored)
    content = stored.read_bytes()
    with pytest.raises(wb.InvalidRequest, match="out must be a folder without the fig2"):
        wb.reproduce("modulo-noise", "fig2", folder, n=3)
    assert stored.read_bytes() == content


@pytest.mark.parametrize("text", ["n", "n=", "full=1", "progress=1"])
def test_the_command_refuses_what_is_no_parameter(text: str, tmp_path: Path) -> None:
    output = run_command("--only", "fig10", "--set", text, "--out", str(tmp_path))
    assert "set must be NAME=VALUE" in output


def test_the_command_writes_a_png_with_the_requested_resolution(tmp_path: Path) -> None:
    artifact = ("--paper", "modulo-noise", "--only", "fig2", "--set", "n=3")
    output = run_command(*artifact, "--jobs", "1", "--dpi", "50", "--out", str(tmp_path))
    assert "no printed number is compared" in output
    record = json.loads((tmp_path / "modulo-noise/fig2.json").read_text("utf-8"))
    assert record["parameters"] == {"n": 3}
    assert record["comparisons"] == []
    image = (tmp_path / "modulo-noise/fig2.png").read_bytes()
    # The bytes 16 to 19 of a PNG file are its width in pixels. The figure is 3.3 inches wide.
    width = int.from_bytes(image[16:20], "big")
    assert width == 3.3 * 50


def test_parameters_that_leave_an_empty_table_are_refused() -> None:
    # One record leaves no budget for the bins, so `measure_budget_splits` returns no row.
    functions = {"measure_budget_splits": lambda **arguments: pd.DataFrame()}
    with pytest.raises(wb.InvalidRequest, match=r"splits has a row. Got record_counts = 1\."):
        compute_declared_table("label_dp", "splits", functions, changes={"record_counts": [1]})


@pytest.mark.parametrize("dpi", [0, 19, 2401, 1.5, True])
def test_the_resolution_is_an_integer_from_20_to_2400(dpi: object) -> None:
    with pytest.raises(wb.InvalidRequest, match=r"dpi must be an integer in 20\.\.2400"):
        wb.reproduce("modulo-noise", "fig2", dpi=dpi)


def test_the_list_shows_every_parameter_with_its_default() -> None:
    output = run_command("--list", "--paper", "dql", "--json")
    rows = json.loads(output)["artifacts"]
    assert {
        "paper": "dql",
        "artifact": "fig2",
        "parameter": "ell",
        "type": "number > 1",
        "default": "2",
        "meaning": "ratio ℓ of the decoder's ε to the database's",
    } in rows


@pytest.mark.parametrize("name", PAPERS_WITH_PARAMETERS)
def test_every_artifact_of_the_four_papers_has_parameters(name: str) -> None:
    rows = list_artifacts(name)
    assert {row["artifact"] for row in rows} == {*load_paper(name).artifacts}
    names_without_parameter = {row["artifact"] for row in rows if not row["parameter"]}
    assert names_without_parameter == WITHOUT_PARAMETERS[name]


@pytest.mark.parametrize("name", PAPERS_WITH_PARAMETERS)
def test_parameters_are_declared_used_and_no_arguments_of_reproduce(name: str) -> None:
    declaration = read_declaration(name.replace("-", "_"))
    used_names = set()
    for artifact, parameters in load_paper(name).parameters.items():
        used_names |= parameters.keys()
        for parameter_name, parameter in parameters.items():
            assert parameter.read(parameter.default) == parameter.default
            # Declared rows contain "$name" in place of the value. Other artifacts have a function.
            if "rows" in declaration[artifact]:
                is_used = f"'${parameter_name}'" in str(declaration[artifact]["rows"])
                assert is_used, (artifact, parameter_name)
    assert used_names == declaration.get("parameters", {}).keys()
    assert not used_names & inspect.signature(reproduce).parameters.keys()


@pytest.mark.parametrize(
    ("paper", "artifact", "changes"),
    [
        ("modulo-noise", "fig3", {"n": 9, "max_shift": 3, "delta_a": 0.1}),
        ("modulo-noise", "fig4", {"n": 8, "solver_deltas": "0,0.2"}),
        ("modulo-noise", "fig6", {"n": 12, "alpha": 0.5}),
        ("modulo-noise", "fig9", {"n": 9, "deltas": "0,0.2"}),
        ("modulo-noise", "fig11", {"n": 5, "max_shifts": "1,5", "epsilon_left": "1"}),
        ("modulo-noise", "fig14", {"n_left": 6, "shifts_left": "1,2"}),
        ("modulo-noise", "meters", {"n_load": 8, "load_step": 2}),
        ("dql", "bits", {"epsilons": "1,2,3", "points": 5}),
        ("optm", "fig2", {"gamma": 0.5}),
        ("label-dp", "channel_lp", {"labels": "11", "epsilons": "1"}),
        ("label-dp", "splits", {"epsilon": 2, "record_counts": "1000,3000", "repeats": 2}),
    ],
)
def test_artifacts_are_computed_and_drawn_with_other_parameters(
    paper: str, artifact: str, changes: dict[str, object]
) -> None:
    result = wb.reproduce(paper, artifact, jobs=1, **changes)
    assert result.artifact.changes.keys() == changes.keys()
    assert "nan" not in result.artifact.caption
    assert "With other parameters" in result.artifact.caption
    assert len(result.frame) > 0
    if result.artifact.draw:
        result.figure.draw_without_rendering()


def test_errata_have_no_parameters(tmp_path: Path) -> None:
    with pytest.raises(wb.InvalidRequest, match="set must be left out for errata, which have no"):
        wb.reproduce("dql", "errata", tmp_path, n=5)
    assert list(tmp_path.iterdir()) == []


def test_too_large_parameters_are_refused() -> None:
    with pytest.raises(wb.InvalidRequest, match="must be small enough for"):
        wb.reproduce("modulo-noise", only="fig2", epsilon=1000)
