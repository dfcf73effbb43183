"""Test the reproduction of Kadam et al. 2024: values, verdicts, errata, captions and files.

The paper is about additive noise modulo n + 1. Here f is the probability mass function (PMF) of the
noise, and η a noise value. An artifact is a figure or a table of the paper that
`workbench.papers.modulo_noise` computes again. Numbers in an assertion without a derivation are
values of the current program, pinned. Another test compares the solver with the closed forms.
"""

from __future__ import annotations

import copy
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pandas as pd
import pytest

import workbench as wb
from workbench.errors import InvalidRequest
from workbench.mechanisms.baselines.count_queries import BASELINE_FAMILIES
from workbench.mechanisms.channel import Channel, pairs_within
from workbench.models.oracles import error_rate_bounds
from workbench.models.oracles.bounded_difference import column_cut_law
from workbench.models.oracles.single_distance import level_curve, single_distance_law
from workbench.papers import artifact as artifacts
from workbench.papers import gallery as pages
from workbench.papers import reproduce as gallery
from workbench.papers.artifact import Artifact, Comparison, read_declaration, read_printed_numbers
from workbench.papers.modulo_noise import PAPER, common, errata_checks, figures, meters
from workbench.papers.modulo_noise.curves import (
    fit_least_baseline,
    list_delta_steps,
    trace_exact_curve,
)
from workbench.privacy.curve import profile

PRINTED = read_printed_numbers("modulo_noise")

# The colour bar of a heat map is an axis of the figure, too. It has this label and no title.
COLORBAR_LABEL = "<colorbar>"


def make_artifact(name: str) -> Artifact:
    """Compute an artifact of the paper with its default parameters, which are fast."""
    return PAPER.artifacts[name](full=False)


def replace_grids(monkeypatch: pytest.MonkeyPatch, **grids: str) -> None:
    """Replace the grids, such as "0.1:4:40", of parameters in the paper's declared file."""
    declaration = copy.deepcopy(read_declaration("modulo_noise"))
    for entry in declaration.values():
        parameters = entry.get("parameters", {})
        for name, grid in grids.items():
            for parameter, default in parameters.items():
                if name in parameter and ":" in str(default):
                    parameters[parameter] = grid
    monkeypatch.setattr(artifacts, "read_declaration", lambda paper: declaration)


@pytest.fixture
def coarse_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use coarse grids, so that slow artifacts are fast."""
    replace_grids(monkeypatch, epsilon="0.5,2", delta="0,0.2,0.5")


# Facts about every artifact.


@pytest.mark.usefixtures("coarse_grids")
@pytest.mark.parametrize("name", PAPER.artifacts)
def test_every_artifact_runs_and_draws_and_nothing_is_surprising(name: str) -> None:
    """One computation serves all facts, because some artifacts take seconds."""
    artifact = make_artifact(name)
    assert artifact.name == name
    assert len(artifact.table) > 3
    assert not [comparison.what for comparison in artifact.comparisons if comparison.surprising]
    check_caption(artifact)
    check_axis_labels(artifact)


def check_caption(artifact: Artifact) -> None:
    """Assert that the caption ends a sentence and contains no missing number."""
    assert artifact.caption.endswith((".", ".)"))
    assert "nan" not in artifact.caption


def check_axis_labels(artifact: Artifact) -> None:
    """Assert that all axes of the figure are labelled, and that all panels have a title."""
    assert artifact.draw is not None
    figure = artifact.draw(artifact.table)
    for axis in figure.axes:
        assert axis.get_ylabel()
        if axis.get_label() != COLORBAR_LABEL:
            assert axis.get_xlabel()
            assert axis.get_title()


@pytest.mark.parametrize("name", ["fig1", "fig14", "meters", "eq59", "fig13"])
def test_every_row_of_the_solver_agrees_with_the_closed_form(name: str) -> None:
    table = make_artifact(name).table
    assert np.abs(table["law"] - table["solver"]).max() < 1e-8


@pytest.mark.parametrize("name", ["fig9", "fig10"])
def test_the_mass_of_the_solver_at_zero_agrees_with_the_closed_form(name: str) -> None:
    table = make_artifact(name).table
    at_zero = table[table["eta"] == 0]
    assert np.abs(at_zero["law"] - at_zero["solver_f0"]).max() < 1e-8


def test_the_solved_optima_of_table1_agree_with_the_closed_form() -> None:
    table = make_artifact("table1").table
    assert np.abs(table["law_f0"] - table["optimum_f0"]).max() < 1e-8


def test_the_caption_of_eq59_contains_the_error_rates_of_its_table() -> None:
    """The error rate is 1 - f(0), and f(0) is the largest mass."""
    artifact = make_artifact("eq59")
    joint_error = 1 - artifact.table["law"].max()
    product_error = 1 - artifact.table["product"].max()
    assert f"error rate {joint_error:.4f} against {product_error:.4f}." in artifact.caption


# Pinned values.


def test_fig9_has_the_stored_masses_at_delta_0() -> None:
    table = make_artifact("fig9").table
    masses = table[(table["panel"] == "a") & (table["delta"] == 0)]["law"].tolist()
    # Masses f(0), ..., f(7): values of the current program, pinned.
    assert masses == pytest.approx(
        [0.528945, 0.055750, 0.005876, 0.249856, 0.026335, 0.002776, 0.118023, 0.012440], abs=5e-7
    )


def test_the_left_panel_of_fig11_has_the_stored_error_rates() -> None:
    table = make_artifact("fig11").table
    table = table[(table["panel"] == "left") & (table["epsilon"] == 1)]
    # Error rates for the nine rows of the panel at ε = 1: values of the current program, pinned.
    error_rates = [
        0.334759,
        0.4843226,
        0.5957772,
        0.652479,
        0.6918719,
        0.7124741,
        0.7281718,
        0.7463883,
        0.7680307,
    ]
    assert table["solver"].tolist() == pytest.approx(error_rates, abs=5e-7)
    assert table["law"].tolist() == pytest.approx(error_rates, abs=5e-7)


def test_fig13_has_the_stored_mass_at_zero() -> None:
    table = make_artifact("fig13").table
    corner = table[(table["panel"] == "b") & (table["eta1"] == 0) & (table["eta2"] == 0)]
    # Value of the current program, pinned.
    assert corner["law"].item() == pytest.approx(0.8174751, abs=5e-8)


def test_the_right_panel_of_fig14_has_the_stored_error_rates() -> None:
    table = make_artifact("fig14").table
    error_rates = table[(table["panel"] == "right") & (table["eta"] == 0)]["error_rate"]
    # Values of the current program, pinned.
    assert error_rates.tolist() == pytest.approx([0.8622908, 0.7335712, 0.5717809], abs=5e-8)


# The artifact `meters`, which derives its shifts from a synthetic table of loads.


def test_the_stored_meter_table_is_the_one_that_its_recipe_writes(tmp_path: Path) -> None:
    meters.write_meter_table(tmp_path / "meters.csv")
    assert (tmp_path / "meters.csv").read_bytes() == meters.METER_FILE.read_bytes()


def test_the_shifts_of_the_meters_come_from_all_pairs_of_loads_of_one_house() -> None:
    """One house changes its load from `first` to `second`, and the others have any sum.

    Loads are multiples of 0.1, and the query counts steps of 14 tenths. Only the remainder of the
    sum of the other houses matters, so it runs over 0..13 tenths.
    """
    table = make_artifact("meters").table
    tenths = {round(10 * load) for load in pd.read_csv(meters.METER_FILE)["charger"]}
    differences = set()
    for first, second, others in itertools.product(tenths, tenths, range(14)):
        differences.add(abs((first + others) // 14 - (second + others) // 14))
    shift_text = ", ".join(map(str, sorted(differences - {0})))
    assert set(table[table["panel"] == "b"]["shifts"]) == {f"{{{shift_text}}}"}


def test_the_noise_of_the_meters_has_the_error_rate_of_a_design_from_the_data() -> None:
    table = make_artifact("meters").table
    row = table[(table["panel"] == "b") & (table["epsilon"] == 1)].iloc[0]
    design = wb.design("modulo", n=16, data=meters.METER_FILE, query=row["query"], epsilon=1)
    assert design.objective == pytest.approx(row["error_rate"], abs=1e-9)
    assert row["error_rate"] < row["bounded_error_rate"]


# Table 1: one row for each of its four printed δ. Its numbers below are values of the current
# program, pinned. `privacy/test_audit.py` checks the printed staircases by an exact audit, too.


@pytest.fixture(scope="module")
def staircase_table() -> pd.DataFrame:
    """Return the rows of Table 1."""
    return figures.make_staircase_table().table


def test_table1_has_the_stored_optima(staircase_table: pd.DataFrame) -> None:
    # The masses f(0) for one-sided differences, and the error rate for symmetric ones.
    assert staircase_table["optimum_f0"].tolist() == pytest.approx(
        [0.543191999, 0.549827669, 0.554833107, 0.558290369], abs=1e-9
    )
    assert 1 - staircase_table["optimum_f0_symmetric"][0] == pytest.approx(0.589887, abs=5e-7)


def test_the_optima_of_table1_are_private_at_their_delta(staircase_table: pd.DataFrame) -> None:
    assert (staircase_table["optimum_needs_delta"] <= staircase_table["delta"] + 1e-12).all()
    assert staircase_table["optimum_needs_delta"][1] == pytest.approx(0.054749, abs=5e-7)


def test_table1_has_the_deltas_that_printed_staircases_need_for_symmetric_neighbours(
    staircase_table: pd.DataFrame,
) -> None:
    needed_deltas = staircase_table["printed_needs_delta_symmetric"].tolist()
    assert needed_deltas == pytest.approx([0.785597, 0.785597, 0.802456, 0.806317], abs=5e-7)


def test_the_error_rates_under_pdp_and_dp_are_the_stored_ones() -> None:
    question = common.make_question(n=8, max_shift=3)
    # Values of the current program at ε = 1.5 and δ = 0.2, pinned.
    assert common.solve_each(question, [(1.5, 0.2)]) == pytest.approx([0.4346976], abs=5e-8)
    assert common.solve_each(question, [(1.5, 0.2)], notion="dp") == pytest.approx(
        [0.3654464], abs=5e-8
    )


def test_in_fig7_every_baseline_has_a_smaller_delta_than_symmetric_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replace_grids(monkeypatch, epsilon="0.25,1,2,3")
    table = make_artifact("fig7").table
    panel = table[table["panel"] == "a2"]
    symmetric_delta = panel[panel["mechanism"] == "symmetric"]["delta"].min()
    assert panel[panel["curve"] == "steps"]["delta"].max() < symmetric_delta


# Errata and captions.


def list_errata() -> Sequence[Mapping[str, Any]]:
    """Check all errata of the paper. Each has the keys place, printed and holds."""
    assert PAPER.errata is not None
    return PAPER.errata()


def test_every_erratum_is_shown_by_its_check() -> None:
    errata = list_errata()
    assert [erratum["place"] for erratum in errata if not erratum["holds"]] == []


def test_the_errata_name_all_places_and_none_is_listed_twice() -> None:
    errata = list_errata()
    places = " ".join(erratum["place"] for erratum in errata)
    expected_places = (
        "Section 2.1 / (13h) / Remark 3 / (23) / δ = 0.1212 / δ = 0.1522 / (15) / (31) / (38) / "
        "(41) / (34) / (37b) / Appendix 10 / (46) / (50) / (54), (55) / (53) / Figs 6 and 8 / (58)"
    )
    for place in expected_places.split(" / "):
        assert place in places, place
    assert len({(erratum["place"], erratum["printed"]) for erratum in errata}) == len(errata)


def test_an_erratum_check_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """`holds` is computed: it is false if Table 1's printed optimum is replaced by the right one."""
    altered = copy.deepcopy(common.get_printed_numbers())
    altered["table1"]["pmf"][1][0] = 0.5498
    monkeypatch.setattr(errata_checks, "get_printed_numbers", lambda: altered)
    checks_of_columns = [
        erratum["holds"] for erratum in list_errata() if "Table 1, column" in erratum["place"]
    ]
    assert checks_of_columns == [False, True]


@pytest.mark.parametrize("name", ["table1", "eq59", "fig10", "fig1"])
def test_a_printed_number_is_never_used_to_compute_ours(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    our_numbers = [comparison.ours for comparison in make_artifact(name).comparisons]
    altered = copy.deepcopy(common.get_printed_numbers())
    altered["table1"]["pmf"] = [[0.5] * 9] * 4
    altered["eq59"] |= {"scalar": [0.5] * 5, "joint": [[0.5] * 5] * 5, "marginal": [0.5] * 5}
    altered["fig10"]["names"] = ["a", "b", "c"]
    altered["fig1"]["order_a"]["order"] = [9] * 8
    monkeypatch.setattr(figures, "get_printed_numbers", lambda: altered)
    monkeypatch.setattr(artifacts, "read_printed_numbers", lambda paper: altered)
    assert [comparison.ours for comparison in make_artifact(name).comparisons] == our_numbers


# The figures 1 to 14, Table 1 and equation (59): all places of the paper that print results.
PRINTED_ARTIFACTS = (*(f"fig{k}" for k in range(1, 15)), "table1", "eq59")


def test_every_printed_result_has_numbers_a_place_and_an_artifact() -> None:
    assert set(PRINTED) == {*PRINTED_ARTIFACTS, "text", "claims"}
    assert set(PRINTED_ARTIFACTS) <= set(PAPER.artifacts)
    for name in PRINTED_ARTIFACTS:
        assert PRINTED[name]["place"]


def test_the_printed_masses_have_sum_1_up_to_their_rounding() -> None:
    assert np.shape(PRINTED["table1"]["pmf"]) == (4, 9)
    for column in PRINTED["table1"]["pmf"]:
        assert sum(column) == pytest.approx(1, abs=5e-4)
    joint_masses = np.array(PRINTED["eq59"]["joint"])
    assert joint_masses.shape == (5, 5)
    assert joint_masses.sum() == pytest.approx(1, abs=2e-3)


def test_the_printed_steps_of_fig10_cover_the_nine_noise_values() -> None:
    for step_lengths in PRINTED["fig10"]["step_lengths"]:
        assert sum(step_lengths) == 9


@pytest.mark.parametrize("name", ["fig1", "fig3", "fig9", "fig14", "eq59", "table1"])
def test_a_caption_says_that_differences_are_one_sided(name: str) -> None:
    assert "differences are one-sided, as in the paper" in make_artifact(name).caption


@pytest.mark.parametrize("name", ["fig1", "fig2", "fig9", "fig14", "fig6"])
def test_a_caption_says_what_the_paper_omits(name: str) -> None:
    assert re.search(r"paper omits|sketch", make_artifact(name).caption)


def test_a_remark_says_that_a_reference_of_the_paper_is_missing() -> None:
    assert any("[10] is missing" in remark for remark in PAPER.remarks)


# Verdicts: agreement of a printed number with ours.


def compare_with_half(ours: float, *, expected: bool = True) -> Comparison:
    """Compare a number with the printed number 0.5000, whose tolerance is 0.00005.

    `expected` says whether the numbers should agree.
    """
    return Comparison(
        what="x", place="p", printed=0.5, ours=ours, tolerance=0.5e-4, expected=expected
    )


def test_a_number_within_the_tolerance_agrees() -> None:
    assert compare_with_half(0.50004).verdict == "agrees"
    assert not compare_with_half(0.50004).surprising


def test_a_number_outside_the_tolerance_differs() -> None:
    assert compare_with_half(0.6).verdict == "DIFFERS"
    assert compare_with_half(0.6, expected=False).verdict == "differs: erratum"


def test_an_unexpected_agreement_and_a_missing_number_are_surprising() -> None:
    assert compare_with_half(0.5, expected=False).surprising
    assert compare_with_half(math.nan).surprising


# Curves and baselines.


@pytest.mark.parametrize(("n", "mu_bar", "epsilon"), [(8, 3, 1.5), (12, 4, 1.0), (9, 3, 0.75)])
def test_the_exact_curve_passes_through_the_column_cut_law(
    n: int, mu_bar: int, epsilon: float
) -> None:
    deltas, masses = np.array(trace_exact_curve(epsilon, n=n, max_shift=mu_bar)).T
    assert (np.diff(deltas) >= -1e-15).all()
    assert deltas[-1] == masses[-1] == 1
    for delta in np.linspace(0, 1, 173):
        error_rate = column_cut_law(n, mu_bar, epsilon, float(delta)).value
        # `masses` are masses f(0), so 1 - f(0) is the error rate.
        assert np.interp(delta, deltas, masses) == pytest.approx(1 - error_rate, abs=1e-12)


def test_the_exact_curve_passes_through_the_law_of_a_single_distance() -> None:
    """The distances 1 and 3 give the same error rates modulo 8, because both generate 0..7."""
    epsilon = 0.6
    deltas, masses = np.array(trace_exact_curve(epsilon, n=7, shifts=[1])).T
    for delta in np.linspace(0, 1, 57):
        law = error_rate_bounds(
            sizes=(8,),
            shifts=[(3,)],
            is_directed=True,
            epsilon=epsilon,
            delta=float(delta),
            requires="mass-above-ratio",
        ).strongest
        assert law is not None
        assert np.interp(delta, deltas, masses) == pytest.approx(1 - law.value, abs=1e-12)


def test_the_level_curve_is_the_smallest_delta_for_an_error_rate() -> None:
    max_error_rate = 0.3

    def compute_error_rate(epsilon: float, delta: float) -> float:
        """Return the smallest error rate for answers 0..7 and the differences ±1."""
        return single_distance_law((8,), (1,), epsilon, delta, both_ways=True).value

    for epsilon in (0.4, 1.2, 1.6, 1.72, 2.5):
        smallest_delta = level_curve(8, epsilon, max_error_rate, both_ways=True)
        assert compute_error_rate(epsilon, smallest_delta) <= max_error_rate + 1e-12
        if smallest_delta > 0:
            assert compute_error_rate(epsilon, smallest_delta * 0.999) > max_error_rate


@pytest.mark.parametrize(
    ("family", "parameter"), [("geometric", 0.4), ("gaussian", 1.3), ("exponential", 0.9)]
)
def test_the_pdp_delta_on_a_step_is_the_mass_above_e_to_the_epsilon_times_the_other_mass(
    family: str, parameter: float
) -> None:
    """δ is constant between two steps, so it is compared in the middle of each interval."""
    channel = BASELINE_FAMILIES[family].build(6, parameter)
    steps = list_delta_steps(Channel.from_pairs(channel, pairs_within(6, 1)), parameter)
    # Row k of p and row k of q are the laws of two neighbouring answers, in both orders.
    p = np.concatenate([channel.matrix[:-1], channel.matrix[1:]])
    q = np.concatenate([channel.matrix[1:], channel.matrix[:-1]])
    starts = steps["epsilon"].to_numpy()
    middles = [*((starts[:-1] + starts[1:]) / 2), starts[-1] + 0.01]
    for epsilon, delta in zip(middles, steps["delta"], strict=True):
        masses_above_ratio = np.where(p > math.exp(epsilon) * q, p, 0).sum(axis=1)
        assert masses_above_ratio.max() == pytest.approx(delta, abs=1e-12)


def fit_parameter(family: str) -> float:
    """Return the smallest parameter of a baseline on 0..8 that is (1, 0.3)-PDP."""
    table = fit_least_baseline(family, n=8, epsilon=[1.0], delta=0.3)
    return float(table["parameter"].item())


def test_geometric_noise_has_the_parameter_of_pure_dp() -> None:
    assert fit_parameter("geometric") == pytest.approx(math.exp(-1), rel=1e-7)


@pytest.mark.parametrize("family", ["gaussian", "exponential"])
def test_a_smaller_parameter_of_a_baseline_is_not_private(family: str) -> None:
    smaller_parameter = fit_parameter(family) * (1 - 1e-6)
    channel = Channel.from_pairs(
        BASELINE_FAMILIES[family].build(8, smaller_parameter), pairs_within(8, 1)
    )
    assert profile(channel, "pdp").delta(1.0) > 0.3


# Files of a reproduction.


# The artifacts of these tests. Together they print 52 numbers.
ONLY = ("fig1", "table1")


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the folders of two runs of the same artifacts."""
    folders = tmp_path_factory.mktemp("a"), tmp_path_factory.mktemp("b")
    for folder in folders:
        result = gallery.reproduce(["modulo-noise"], ONLY, folder)
        assert (result.finished, result.is_interrupted) == (len(ONLY), False)
        assert not result.to_frame()["surprising"].any()
        assert len(result) == 52
    return folders


def test_two_runs_write_files_with_the_same_bytes(two_runs: tuple[Path, Path]) -> None:
    first, second = two_runs
    files = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
    # README.md and index.html, and five files of each artifact.
    assert len(files) == 2 + 5 * len(ONLY)
    for path in files:
        assert (first / path).read_bytes() == (second / path).read_bytes(), path


def test_the_links_of_the_readme_lead_to_files(two_runs: tuple[Path, Path]) -> None:
    folder = two_runs[0]
    links = re.findall(r"\]\((?!http)([^)]+)\)", (folder / "README.md").read_text("utf-8"))
    # index.html, and four files of each artifact.
    assert len(links) == 1 + 4 * len(ONLY)
    for link in links:
        assert (folder / link).is_file(), link


@pytest.mark.parametrize("name", ONLY)
def test_the_image_of_an_artifact_is_large_and_not_blank(
    name: str, two_runs: tuple[Path, Path]
) -> None:
    image = matplotlib.image.imread(two_runs[0] / "modulo-noise" / f"{name}.png")
    assert min(image.shape[:2]) > 400
    # The sum of red, green and blue at every third pixel.
    assert len(np.unique(image[::3, ::3, :3].sum(axis=2))) > 20


def test_markdown_is_escaped() -> None:
    assert pages._escape_markdown("ρ* and |M| and f_0 < 1") == r"ρ\* and \|M\| and f\_0 \< 1"


def test_the_readme_folds_a_long_table_under_its_count_of_agreements(
    two_runs: tuple[Path, Path],
) -> None:
    text = (two_runs[0] / "README.md").read_text("utf-8")
    assert "<summary>16 of 16 printed numbers agree</summary>" in text
    assert "37 of 52 printed numbers agree, 15 differ because of an erratum." in text


def test_no_cell_of_a_table_of_the_readme_adds_a_column(two_runs: tuple[Path, Path]) -> None:
    text = (two_runs[0] / "README.md").read_text("utf-8")
    for line in text.splitlines():
        if line.startswith("| "):
            # Seven columns have eight bars. The bars in the text of a cell are escaped.
            assert len(re.findall(r"(?<!\\)\|", line)) == 8


def test_an_unknown_artifact_of_a_paper_is_refused_with_its_artifacts(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="only must be one of fig1"):
        gallery.reproduce(["modulo-noise"], ["fig99"], tmp_path)


def test_an_unknown_artifact_of_all_papers_is_refused_with_all_artifacts(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidRequest, match=r"dp_vs_pdp \(modulo-noise\); fig2, .* \(dql\); .* Got 'fig99'\.$"
    ):
        gallery.reproduce(None, ["fig99"], tmp_path)


def test_an_unknown_paper_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="paper must be one of modulo-noise"):
        gallery.load_paper("nothing")
