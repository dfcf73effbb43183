"""Test what a new user tries first, with the public functions and on the command line."""

from pathlib import Path

import pytest

import workbench as wb
from workbench.cli import main


def run(line: str) -> int:
    """Run a command line, without the word "workbench". Return its exit code."""
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    return int(stop.value.code or 0)


def test_a_frontier_is_printed_as_a_table():
    result = wb.frontier("channel", answers="0..2", max_shift=1, epsilon="0.5,1", delta=0)
    title, header, *rows = str(result).splitlines()
    assert title == result.title
    assert header.split()[:2] == ["curve", "mechanism"]
    assert len(rows) == len(result)


def test_a_frontier_is_drawn_into_a_file(tmp_path: Path):
    grid = "--answers 0..2 --max-shift 1 --epsilon 0.5,1 --no-baselines"
    assert run(f"frontier channel {grid} --out {tmp_path / 'out'} --plot {tmp_path / 'x.pdf'}") == 0
    assert (tmp_path / "x.pdf").read_bytes().startswith(b"%PDF")


def limit_entry(M):
    """Return a user-defined constraint on the matrix M of a channel: M(1 | 0) <= 0.2."""
    return [M[0, 1] <= 0.2]


def compute_optimal_loss(constraints) -> float:
    """Design a channel for four answers with some constraints. Return its expected loss."""
    design = wb.design("channel", answers="0..3", max_shift=1, epsilon=1, constraints=constraints)
    return design.objective


def test_a_named_constraint_and_a_user_function_hold_together():
    loss_with_both = compute_optimal_loss(["symmetric", limit_entry])
    loss_if_symmetric = compute_optimal_loss(["symmetric"])
    loss_if_limited = compute_optimal_loss([limit_entry])
    assert loss_with_both >= max(loss_if_symmetric, loss_if_limited) - 1e-9
    assert loss_with_both > loss_if_symmetric + 1e-3


def test_a_user_function_may_be_given_without_a_list():
    assert compute_optimal_loss([limit_entry]) == compute_optimal_loss(limit_entry)


def test_two_user_functions_are_refused():
    with pytest.raises(wb.InvalidRequest, match="at most one function"):
        compute_optimal_loss([limit_entry, lambda M: [M[1, 1] <= 0.3]])


def test_an_exported_program_file_can_be_compared(tmp_path: Path, capsys):
    assert run(f"programs export {tmp_path} --names mvu-m2") == 0
    assert run(f"compare --programs {tmp_path / 'mvu-m2.mps'} --solvers highs") == 0
    assert "1 of 1" in capsys.readouterr().out


# Progress is printed after `silent_seconds`: 1e9 s are never reached, -1 s at once.
@pytest.mark.parametrize(
    ("silent_seconds", "epsilon", "has_progress"), [(1e9, 1, False), (-1.0, 2, True)]
)
def test_a_search_reports_progress_on_stderr_after_some_silent_seconds(
    silent_seconds: float, epsilon: int, has_progress: bool, capsys, monkeypatch
):
    monkeypatch.setattr("workbench.io.result.MAX_SILENT_SECONDS", silent_seconds)
    assert run(f"design quantizer --levels 3 --starts 1 --knots 5 --epsilon {epsilon}") == 0
    printed = capsys.readouterr()
    assert "start" not in printed.out
    assert ("start 1:" in printed.err) is has_progress


@pytest.mark.parametrize(
    "make_design",
    [
        lambda: wb.design(wb.IntegerNoise(1), loss="squared", epsilon=1, delta="0.01"),
        lambda: wb.design(wb.FiniteQuery("0..3", max_shift=1), loss="squared", epsilon=1),
        lambda: wb.design(wb.Quantization(levels=2), loss="squared", epsilon=1),
    ],
)
def test_a_report_shows_the_root_of_a_squared_loss(make_design):
    design = make_design()
    (text,) = [text for label, text in design.facts() if label == "RMSE"]
    assert float(text.split()[0]) == pytest.approx(design.objective**0.5, rel=1e-8)


# Options of a question about a count from 0 to 2.
_COUNT = "--answers 0..2 --max-shift 1 --epsilon 1"


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("design noise --sensitivity 1 --eps 1", "No such option --eps; did you mean --epsilon?"),
        (
            "design laplace --sensitivity 1",
            "No such option --sensitivity of design laplace; design noise, design channel have it.",
        ),
        (
            "design modulo --answers 0..4",
            "No such option --answers of design modulo; design channel has it.",
        ),
        (
            f"recommend {_COUNT} --loss mae",
            "loss must be absolute, the name of this loss here. Got 'mae'.",
        ),
        (
            f"design channel {_COUNT} --loss rmse",
            "loss must be squared, whose root is the RMSE (max_loss is then its square).",
        ),
        (
            f"design channel {_COUNT} --rho 1",
            "rho must be left out when notion is dp (notion zcdp takes it). Got 1.",
        ),
        (
            f"design channel {_COUNT} --sensitivity 1",
            "(max_shift: the largest difference of neighbours). Got 1.",
        ),
        (
            "design channel --answers none.csv --max-shift 1 --epsilon 1",
            "answers must be an existing file.",
        ),
        (
            "design labels --labels red,green --epsilon 1",
            "must be a number (for names, use `design channel --neighbours all`). Got red.",
        ),
        (
            "design labels --labels 3 --epsilon 1",
            "labels must be LOW..HIGH, \"a,b,c\" or a CSV file. Got '3'.",
        ),
        (
            "frontier channel --answers 0..2 --max-shift 1 --epsilon 0..2",
            "such as 0.1:4:40. Got '0..2'.",
        ),
        (
            f"frontier channel {_COUNT} --plot x.tex",
            "named .png, .svg or .pdf (--html writes a page). Got x.tex.",
        ),
        (
            f"frontier channel {_COUNT} --out x.xyz",
            "a folder, or a file named .csv, .tex, .json, .png, .svg, .pdf or .html. Got x.xyz.",
        ),
        (
            "explore none.json",
            "`workbench audit FILE --html PAGE` shows a saved mechanism. Got none.json.",
        ),
    ],
)
def test_the_error_for_a_wrong_first_guess_states_the_remedy(line: str, remedy: str, capsys):
    assert run(line) == 2
    assert remedy in " ".join(capsys.readouterr().err.split())


def test_a_misspelled_option_in_python_is_corrected():
    with pytest.raises(wb.InvalidRequest, match=r"^No such option eps; did you mean epsilon\?$"):
        wb.design("channel", answers="0..2", max_shift=1, eps=1)


def test_a_path_in_place_of_a_mechanism_gives_a_hint_at_load():
    with pytest.raises(wb.InvalidRequest, match=r"\(wb\.load reads a file\)\. Got str\.$"):
        wb.audit("design.json")
    with pytest.raises(wb.InvalidRequest, match=r"\(wb\.load reads a file\)\. Got str\.$"):
        wb.compose("design.json", times="1,2", delta=1e-6)


def test_an_attribute_that_a_design_lacks_gives_a_hint_at_its_place():
    design = wb.design("channel", answers="0..2", max_shift=1, epsilon=1)
    for name, place in {
        "sample": "wb.sample",
        "matrix": "design.mechanism.matrix",
        "prices": "shadow_prices",
    }.items():
        with pytest.raises(AttributeError, match=rf"'{name}': it is .*{place}"):
            getattr(design, name)


def test_the_number_of_runs_may_be_a_text():
    design = wb.design("channel", answers="0..2", max_shift=1, epsilon=1)
    assert wb.compose(design, "2", delta=1e-6) == wb.compose(design, 2, delta=1e-6)


def test_the_suffix_of_out_selects_the_format_of_a_frontier(tmp_path: Path, capsys):
    line = "frontier modulo --n 4 --max-shift 1 --epsilon 1 --level none --no-baselines --out"
    for name, start in {"f.html": "<!doctype html>", "f.tex": "\\begin{table}"}.items():
        assert run(f"{line} {tmp_path / name}") == 0
        printed = capsys.readouterr().out
        assert str(tmp_path / name) in "".join(printed.split())
        assert (tmp_path / name).read_text("utf-8").startswith(start)
    assert {path.name for path in tmp_path.iterdir()} == {"f.html", "f.tex"}
    assert run(f"{line} {tmp_path / 'f.html'} --html {tmp_path / 'f.html'}") == 2


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (
            wb.ModuloNoise(n=8, max_shift=2, directed=True),
            "Noise modulo 9, directed differences 1, 2",
        ),
        (wb.FiniteQuery("0..4", max_shift=1), "5 inputs 0..4, 5 outputs, 4 pairs of neighbours"),
        (
            wb.IntegerNoise(2, clamp=(0, 9)),
            "Noise on the integers, sensitivity 2, clamped into 0..9",
        ),
        (wb.RealNoise(3), "Noise on the reals, sensitivity 3"),
        (wb.Labels.uniform(0, 4), "5 labels 0..4"),
        (wb.Quantization(levels=4), "Unbiased quantizer of uniform inputs in [-1, 1] to 4 outputs"),
    ],
)
def test_the_text_of_a_question_describes_it(question, text: str):
    assert str(question) == text
