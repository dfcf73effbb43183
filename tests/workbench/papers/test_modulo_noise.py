"""Test the paper of Kadam et al. on modulo noise: values, verdicts, errata, captions, files.

f is the law of the noise, and η a noise value. Numbers with a "pytest.approx" that are not derived
in a test are stored results of the solver, which agree with the closed forms.
"""

from __future__ import annotations

import copy
import itertools
import math
import re
from pathlib import Path

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
from workbench.papers.artifact import Comparison, read_declaration, read_printed_numbers
from workbench.papers.modulo_noise import PAPER, common, errata_checks, figures, meters
from workbench.papers.modulo_noise.curves import (
    fit_least_baseline,
    list_delta_steps,
    trace_exact_curve,
)
from workbench.privacy.curve import profile

PRINTED = read_printed_numbers("modulo_noise")


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
    artifact = PAPER.artifacts[name](False)
    assert artifact.name == name
    assert len(artifact.table) > 3
    assert not [c.what for c in artifact.comparisons if c.surprising]
    assert artifact.caption.endswith((".", ".)"))
    assert "nan" not in artifact.caption
    assert artifact.draw is not None
    figure = artifact.draw(artifact.table)
    for axis in figure.axes:
        assert axis.get_xlabel() or axis.get_label() == "<colorbar>"
        assert axis.get_ylabel()
        assert axis.get_label() == "<colorbar>" or axis.get_title()


def test_solver_and_closed_form_agree_in_every_table_that_has_both() -> None:
    for name in ("fig1", "fig14", "meters", "eq59", "fig13"):
        table = PAPER.artifacts[name](False).table
        assert np.abs(table["law"] - table["solver"]).max() < 1e-8, name
    for name in ("fig9", "fig10"):
        table = PAPER.artifacts[name](False).table
        at_zero = table[table["eta"] == 0]
        assert np.abs(at_zero["law"] - at_zero["solver_f0"]).max() < 1e-8, name
    table = PAPER.artifacts["table1"](False).table
    assert np.abs(table["law_f0"] - table["optimum_f0"]).max() < 1e-8


def test_the_caption_of_eq59_contains_the_error_rates_of_its_table() -> None:
    """The error rate is 1 - f(0), and f(0) is the largest mass."""
    artifact = PAPER.artifacts["eq59"](False)
    joint_error = 1 - artifact.table["law"].max()
    product_error = 1 - artifact.table["product"].max()
    assert f"error rate {joint_error:.4f} against {product_error:.4f}." in artifact.caption


# Stored values.


def test_fig9_has_the_stored_masses_at_delta_0() -> None:
    table = PAPER.artifacts["fig9"](False).table
    masses = table[(table["panel"] == "a") & (table["delta"] == 0)]["law"].tolist()
    assert masses == pytest.approx(
        [0.528945, 0.055750, 0.005876, 0.249856, 0.026335, 0.002776, 0.118023, 0.012440], abs=5e-7
    )


def test_the_left_panel_of_fig11_has_the_stored_error_rates() -> None:
    table = PAPER.artifacts["fig11"](False).table
    table = table[(table["panel"] == "left") & (table["epsilon"] == 1)]
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


def test_fig13_and_fig14_have_the_stored_values() -> None:
    fig13 = PAPER.artifacts["fig13"](False).table
    corner = fig13[(fig13["panel"] == "b") & (fig13["eta1"] == 0) & (fig13["eta2"] == 0)]
    assert corner["law"].item() == pytest.approx(0.8174751, abs=5e-8)
    fig14 = PAPER.artifacts["fig14"](False).table
    right = fig14[(fig14["panel"] == "right") & (fig14["eta"] == 0)]["error_rate"]
    assert right.tolist() == pytest.approx([0.8622908, 0.7335712, 0.5717809], abs=5e-8)


def test_the_stored_meter_table_is_that_of_the_recipe(tmp_path: Path) -> None:
    meters.write_meter_table(tmp_path / "meters.csv")
    assert (tmp_path / "meters.csv").read_bytes() == meters.METER_FILE.read_bytes()


def test_the_differences_of_the_meters_are_those_of_all_pairs_of_loads() -> None:
    """With one other house of any load, the difference is floor(d / step) or floor(d / step) + 1."""
    table = PAPER.artifacts["meters"](False).table
    tenths = {round(10 * load) for load in pd.read_csv(meters.METER_FILE)["charger"]}
    differences = set()
    for first, second, other in itertools.product(tenths, tenths, range(14)):
        differences.add(abs((first + other) // 14 - (second + other) // 14))
    names = ", ".join(map(str, sorted(differences - {0})))
    assert {*table[table["panel"] == "b"]["shifts"]} == {f"{{{names}}}"}


def test_the_noise_of_the_meters_is_that_of_a_design_from_data() -> None:
    table = PAPER.artifacts["meters"](False).table
    row = table[(table["panel"] == "b") & (table["epsilon"] == 1)].iloc[0]
    design = wb.design("modulo", n=16, data=meters.METER_FILE, query=row["query"], epsilon=1)
    assert design.objective == pytest.approx(row["error_rate"], abs=1e-9)
    assert row["error_rate"] < row["bounded_error_rate"]


def test_table1_has_the_stored_optima_and_the_deltas_of_printed_staircases() -> None:
    table = figures.make_staircase_table().table
    assert table["optimum_f0"].tolist() == pytest.approx(
        [0.543191999, 0.549827669, 0.554833107, 0.558290369], abs=1e-9
    )
    assert table["optimum_needs_delta"][1] == pytest.approx(0.054749, abs=5e-7)
    symmetric = table["printed_needs_delta_symmetric"].tolist()
    assert symmetric == pytest.approx([0.785597, 0.785597, 0.802456, 0.806317], abs=5e-7)
    assert 1 - table["optimum_f0_symmetric"][0] == pytest.approx(0.589887, abs=5e-7)
    assert (table["optimum_needs_delta"] <= table["delta"] + 1e-12).all()


def test_the_error_rates_under_pdp_and_dp_are_the_stored_ones() -> None:
    question = common.make_question(n=8, max_shift=3)
    assert common.solve_each(question, [(1.5, 0.2)]) == pytest.approx([0.4346976], abs=5e-8)
    assert common.solve_each(question, [(1.5, 0.2)], notion="dp") == pytest.approx(
        [0.3654464], abs=5e-8
    )


def test_in_fig7_every_baseline_has_a_smaller_delta_than_symmetric_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replace_grids(monkeypatch, epsilon="0.25,1,2,3")
    table = PAPER.artifacts["fig7"](False).table
    panel = table[table["panel"] == "a2"]
    symmetric_delta = panel[panel["mechanism"] == "symmetric"]["delta"].min()
    assert panel[panel["curve"] == "steps"]["delta"].max() < symmetric_delta


# Errata and captions.


def test_every_erratum_is_shown_by_its_check() -> None:
    errata = (PAPER.errata or list)()
    assert [erratum["place"] for erratum in errata if not erratum["holds"]] == []
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
    assert [e["holds"] for e in (PAPER.errata or list)() if "Table 1, column" in e["place"]] == [
        False,
        True,
    ]


@pytest.mark.parametrize("name", ["table1", "eq59", "fig10", "fig1"])
def test_a_printed_number_is_never_used_to_compute_ours(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = [c.ours for c in PAPER.artifacts[name](False).comparisons]
    altered = copy.deepcopy(common.get_printed_numbers())
    altered["table1"]["pmf"] = [[0.5] * 9] * 4
    altered["eq59"] |= {"scalar": [0.5] * 5, "joint": [[0.5] * 5] * 5, "marginal": [0.5] * 5}
    altered["fig10"]["names"] = ["a", "b", "c"]
    altered["fig1"]["order_a"]["order"] = [9] * 8
    monkeypatch.setattr(figures, "get_printed_numbers", lambda: altered)
    monkeypatch.setattr(artifacts, "read_printed_numbers", lambda paper: altered)
    assert [c.ours for c in PAPER.artifacts[name](False).comparisons] == numbers


def test_the_printed_numbers_are_complete() -> None:
    figures = [f"fig{k}" for k in range(1, 15)]
    assert set(PRINTED) == {*figures, "table1", "eq59", "text", "claims"}
    assert set(figures) | {"table1", "eq59"} <= set(PAPER.artifacts)
    for key in (*figures, "table1", "eq59"):
        assert PRINTED[key]["place"]
    assert np.shape(PRINTED["table1"]["pmf"]) == (4, 9)
    assert np.shape(PRINTED["eq59"]["joint"]) == (5, 5)
    for column in PRINTED["table1"]["pmf"]:
        assert sum(column) == pytest.approx(1, abs=5e-4)
    assert sum(map(sum, PRINTED["eq59"]["joint"])) == pytest.approx(1, abs=2e-3)
    for stairs in PRINTED["fig10"]["step_lengths"]:
        assert sum(stairs) == 9


def test_captions_say_what_the_paper_omits_and_what_is_one_sided() -> None:
    for name in ("fig1", "fig3", "fig9", "fig14", "eq59", "table1"):
        assert "differences are one-sided, as in the paper" in PAPER.artifacts[name](False).caption
    for name in ("fig1", "fig2", "fig9", "fig14", "fig6"):
        assert re.search(r"paper omits|sketch", PAPER.artifacts[name](False).caption), name
    assert any("[10] is missing" in remark for remark in PAPER.remarks)


def compare_with_half(ours: float, *, expected: bool = True) -> Comparison:
    """Compare a number with the printed number 0.5000, whose tolerance is 0.00005."""
    return Comparison("x", "p", printed=0.5, ours=ours, tolerance=0.5e-4, expected=expected)


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
        assert np.interp(delta, deltas, masses) == pytest.approx(1 - error_rate, abs=1e-12)


def test_the_exact_curve_passes_through_the_law_of_a_single_distance() -> None:
    """The distances 1 and 3 give the same error rates modulo 8, because both generate 0..7."""
    deltas, masses = np.array(trace_exact_curve(0.6, n=7, shifts=[1])).T
    for delta in np.linspace(0, 1, 57):
        law = error_rate_bounds((8,), [(3,)], True, 0.6, float(delta), "mass-above-ratio").strongest
        assert law is not None
        assert np.interp(delta, deltas, masses) == pytest.approx(1 - law.value, abs=1e-12)


def test_the_level_curve_is_the_smallest_delta_for_an_error_rate() -> None:
    for epsilon in (0.4, 1.2, 1.6, 1.72, 2.5):
        least = level_curve(8, epsilon, 0.3, both_ways=True)
        assert single_distance_law((8,), (1,), epsilon, least, both_ways=True).value <= 0.3 + 1e-12
        if least > 0:
            assert (
                single_distance_law((8,), (1,), epsilon, least * 0.999, both_ways=True).value > 0.3
            )


@pytest.mark.parametrize(
    ("family", "parameter"), [("geometric", 0.4), ("gaussian", 1.3), ("exponential", 0.9)]
)
def test_steps_are_the_masses_beyond_e_to_the_epsilon(family: str, parameter: float) -> None:
    channel = BASELINE_FAMILIES[family].build(6, parameter)
    steps = list_delta_steps(Channel.from_pairs(channel, pairs_within(6, 1)), parameter)
    # The rows of all ordered pairs of neighbouring answers.
    p = np.concatenate([channel.matrix[:-1], channel.matrix[1:]])
    q = np.concatenate([channel.matrix[1:], channel.matrix[:-1]])
    starts = steps["epsilon"].to_numpy()
    middles = [*((starts[:-1] + starts[1:]) / 2), starts[-1] + 0.01]
    for epsilon, delta in zip(middles, steps["delta"], strict=True):
        masses_above_ratio = np.where(p > math.exp(epsilon) * q, p, 0).sum(axis=1)
        assert masses_above_ratio.max() == pytest.approx(delta, abs=1e-12)


def fit_parameter(family: str) -> float:
    """Return the smallest parameter of a baseline on 0..8 that is (1, 0.3)-PDP."""
    return float(fit_least_baseline(family, 8, [1.0], 0.3)["parameter"].item())


def test_geometric_noise_has_the_parameter_of_pure_dp() -> None:
    assert fit_parameter("geometric") == pytest.approx(math.exp(-1), rel=1e-7)


@pytest.mark.parametrize("family", ["gaussian", "exponential"])
def test_a_smaller_parameter_of_a_baseline_is_not_private(family: str) -> None:
    below = BASELINE_FAMILIES[family].build(8, fit_parameter(family) * (1 - 1e-6))
    assert profile(Channel.from_pairs(below, pairs_within(8, 1)), "pdp").delta(1.0) > 0.3


# Files of a reproduction.


ONLY = ("fig1", "table1")  # The artifacts of these tests.


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the folders of two runs of the same artifacts."""
    folders = tmp_path_factory.mktemp("a"), tmp_path_factory.mktemp("b")
    for folder in folders:
        result = gallery.reproduce(["modulo-noise"], ONLY, folder)
        assert (result.finished, result.is_interrupted) == (len(ONLY), False)
        assert not result.to_frame()["surprising"].any()
        assert len(result) == 52
    return folders


def test_files_are_the_same_bytes_twice_and_the_gallery_links_to_them(
    twice: tuple[Path, Path],
) -> None:
    one, two = twice
    files = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    # README.md and index.html, and five files of each artifact.
    assert len(files) == 2 + 5 * len(ONLY)
    for path in files:
        assert (one / path).read_bytes() == (two / path).read_bytes(), path
    links = re.findall(r"\]\((?!http)([^)]+)\)", (one / "README.md").read_text("utf-8"))
    assert len(links) == 1 + 4 * len(ONLY)
    for link in links:
        assert (one / link).is_file(), link
    for name in ONLY:
        image = matplotlib.image.imread(one / "modulo-noise" / f"{name}.png")
        assert min(image.shape[:2]) > 400
        assert len(np.unique(image[::3, ::3, :3].sum(axis=2))) > 20


def test_markdown_is_escaped() -> None:
    assert pages._escape_markdown("ρ* and |M| and f_0 < 1") == r"ρ\* and \|M\| and f\_0 \< 1"


def test_the_gallery_folds_long_tables_and_escapes_markdown(
    twice: tuple[Path, Path],
) -> None:
    text = (twice[0] / "README.md").read_text("utf-8")
    assert "<summary>16 of 16 printed numbers agree</summary>" in text
    assert "37 of 52 printed numbers agree, 15 differ because of an erratum." in text
    for line in text.splitlines():
        if line.startswith("| "):
            assert len(re.findall(r"(?<!\\)\|", line)) == 8


def test_an_unknown_artifact_or_paper_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="only must be one of fig1"):
        gallery.reproduce(["modulo-noise"], ["fig99"], tmp_path)
    with pytest.raises(
        InvalidRequest, match=r"dp_vs_pdp \(modulo-noise\); fig2, .* \(dql\); .* Got 'fig99'\.$"
    ):
        gallery.reproduce(None, ["fig99"], tmp_path)
    with pytest.raises(InvalidRequest, match="paper must be one of modulo-noise"):
        gallery.load_paper("nothing")
