"""Test label designs in Python, and the commands `design labels` and `privatise labels`.

A label design is a randomizer of the labels of training data (label DP). The method bins publishes
one of a few numbers (RR-on-Bins of Ghazi et al. 2022), unbiased publishes numbers whose mean is the
label, and lp is the optimal channel to listed outputs.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.cli import main
from workbench.models.losses import parse_loss
from workbench.models.oracles.bins import optimal_bins


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run a command line. Returns (exit code, standard output, standard error)."""
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def read_csv(path: Path) -> list[list[str]]:
    """Return the rows of a CSV file."""
    return list(csv.reader(path.read_text().splitlines()))


def test_bins_are_optimal_and_agree_with_algorithm_2():
    """Algorithm 2 of Ghazi et al. 2022 is the oracle. The numbers are pinned: values of this program."""
    design = wb.design(wb.Labels.uniform(0, 20), epsilon=4)
    assert design.objective == pytest.approx(6.75867268725, rel=1e-11)
    assert design.private
    assert design.oracle.agrees
    assert design.oracle.valid
    assert design.to_dict()["d"] == 4
    loss = design.mechanism.loss(lambda o, y: (o - y) ** 2)
    assert loss == pytest.approx(design.objective, rel=1e-12)


@pytest.mark.parametrize(
    ("options", "formula_kind"),
    [
        ({"loss": "absolute", "epsilon": 1}, "optimum"),
        ({"loss": "squared", "epsilon": 4}, "lower bound"),
        ({"loss": "error-rate", "epsilon": 2}, "optimum"),
    ],
)
def test_a_channel_of_labels_agrees_with_the_known_formula(
    options: dict[str, Any], formula_kind: str
):
    design = wb.design(wb.Labels.uniform(0, 20), method="lp", **options)
    assert design.oracle.kind == formula_kind
    assert design.oracle.agrees


def test_a_channel_of_labels_for_a_loss_without_a_formula_has_no_oracle():
    design = wb.design(wb.Labels.uniform(0, 20), method="lp", loss="huber:2", epsilon=1)
    assert design.oracle.kind is None
    assert design.oracle.agrees is None


# The losses are values of the current program, pinned.
@pytest.mark.parametrize(
    ("options", "objective"),
    [
        ({"loss": "absolute", "epsilon": 1}, 4.47836540514),
        ({"loss": "squared", "epsilon": 4}, 6.77956637),
    ],
)
def test_a_channel_of_labels_has_its_stored_loss(options: dict[str, Any], objective: float):
    design = wb.design(wb.Labels.uniform(0, 20), method="lp", **options)
    assert design.objective == pytest.approx(objective, rel=1e-8)


@pytest.mark.parametrize("loss", ["absolute", "squared", "error-rate", "huber:2"])
def test_a_channel_of_labels_is_proven_optimal_and_private(loss: str):
    """`claimed` is the loss of the solver's channel, before it was repaired to be private."""
    design = wb.design(wb.Labels.uniform(0, 20), method="lp", loss=loss, epsilon=1)
    assert design.bound == pytest.approx(design.objective, rel=1e-7)
    assert design.objective == pytest.approx(design.claimed, abs=1e-5)
    assert design.private
    assert design.certificate is not None
    assert not any("is NOT private" in note for note in design.words)


def test_consecutive_labels_as_neighbours_have_the_known_loss():
    """The loss is that of geometric noise with the best post-processing."""
    labels = wb.Labels.uniform(0, 7)
    design = wb.design(labels, epsilon=1, loss="absolute", method="lp", neighbours="consecutive")
    # Value of the current program, pinned.
    assert design.objective == pytest.approx(0.682707993, abs=1e-9)


UNEVEN_LABELS = wb.Labels([0, 1, 5], [1, 1, 1])


def test_metric_privacy_of_labels_multiplies_epsilon_by_the_distance():
    design = wb.design(UNEVEN_LABELS, epsilon=0.5, method="lp", notion="metric")
    matrix = design.mechanism.matrix
    assert (matrix[0] <= np.exp(0.5 * 5) * matrix[2] * (1 + 1e-6) + 1e-9).all()
    assert design.privacy.budgets[1, 2] == 0.5 * (5 - 1)


def test_delta_reduces_the_loss_of_a_channel_of_labels():
    pure = wb.design(UNEVEN_LABELS, epsilon=1, method="lp")
    with_delta = wb.design(UNEVEN_LABELS, epsilon=1, method="lp", notion="dp", delta=0.1)
    assert with_delta.objective < pure.objective
    assert with_delta.privacy.dp_delta.upper <= 0.1 + 1e-7


def test_bins_have_a_smaller_loss_than_the_unbiased_optimum_and_are_biased():
    """The loss is about a twelfth of the unbiased optimum 98.0. Labels near the ends move inwards."""
    design = wb.design(wb.Labels.uniform(0, 10), epsilon=1)
    optimum = optimal_bins(np.arange(11.0), np.full(11, 1 / 11), 1.0, parse_loss("squared"))
    assert design.objective == pytest.approx(optimum.objective, abs=5e-9)
    assert design.objective < 98 / 11
    biases = design.mechanism.losses(lambda output, label: output - label)
    assert np.abs(biases).max() > 2


def test_the_unbiased_optimum_is_unbiased_and_proven():
    design = wb.design(wb.Labels.uniform(0, 10), epsilon=1, method="unbiased")
    # Value of the current program, pinned.
    assert design.objective == pytest.approx(98.0075420, rel=2e-8)
    assert design.bound <= design.objective <= design.bound * (1 + 2e-8)
    assert design.private
    biases = design.mechanism.losses(lambda output, label: output - label)
    assert np.abs(biases).max() < 1e-9
    assert any("exactly" in note for note in design.words)


def test_the_json_report_of_bins_has_its_documented_keys(capsys):
    line = "design labels --labels 0..20 --loss squared --epsilon 4 --json"
    code, out, _ = run(capsys, *line.split())
    report = json.loads(out)
    assert code == 0
    assert report["method"] == "bins"
    assert report["bound"] <= report["objective"]
    assert report["exact"]["epsilon"] <= 4.0
    # The number of bins.
    assert report["d"] == len(report["bins"]) == 4
    assert set(report["bins"][0]) == {"lower", "upper", "value"}


def test_an_unbiased_design_is_reported_and_plotted(capsys, tmp_path: Path):
    prior = tmp_path / "prior.csv"
    plot = tmp_path / "channel.png"
    prior.write_text("label,weight\n1,1\n3,2\n7,1\n")
    line = f"design labels --labels {prior} --epsilon 1 --method unbiased --plot {plot}"
    code, out, _ = run(capsys, *line.split())
    assert code == 0
    assert "E[o|y] = y exactly" in out
    assert plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--labels", "missing.csv"), "labels must be an existing file"),
        (("--labels", "0..5", "--epsilon", "0"), "epsilon must be a finite number > 0. Got 0."),
        (("--labels", "0..5", "--epsilon", "31"), "epsilon must be at most 30"),
        (("--labels", "0..5", "--loss", "cubic"), "loss must be one of"),
        (("--labels", "0..5", "--loss", "error-rate"), "for RR-on-Bins"),
        (("--labels", "-3..5", "--loss", "poisson"), "labels must be >= 0"),
        (("--labels", "0..5", "--method", "sat"), "method must be one of"),
        (("--labels", "0..5", "--method", "bins", "--delta", "0.1"), "method must be lp"),
        (
            ("--labels", "0..5", "--method", "lp", "--notion", "pure", "--delta", "0.1"),
            "delta must be 0",
        ),
        (
            ("--labels", "0..5", "--prior", "1,2"),
            "prior must be one weight for each of the 6 labels",
        ),
        (
            ("--labels", "0..5", "--method", "lp", "--neighbours", "0-9"),
            "pairs of different positions in 0..5",
        ),
        (
            ("--labels", "0..5", "--method", "lp", "--neighbours", "0-x"),
            "neighbours must be all, consecutive, or pairs",
        ),
        (("--labels", "0..5", "--method", "lp", "--outputs", "six"), "outputs must be LOW..HIGH"),
        (
            ("--labels", "0..5", "--method", "unbiased", "--epsilon", "13"),
            "epsilon must be at most 12",
        ),
        (
            ("--labels", "0..5", "--method", "lp", "--constraint", "fair"),
            "constraints must be one of",
        ),
        (
            ("--labels", "0..3000", "--method", "lp"),
            "the channel must be of at most 2000000 masses",
        ),
        (
            ("--labels", "0..5", "--method", "lp", "--constraint", "unbiased"),
            "No channel meets the constraints",
        ),
        (
            ("--labels", "0..5", "--method", "unbiased", "--loss", "absolute"),
            "loss must be squared",
        ),
        (("--labels", "0..5", "--method", "lp", "--solver", "cplex"), "solver must be one of"),
    ],
)
def test_an_invalid_request_is_refused_in_one_line(capsys, arguments, message):
    if "--epsilon" not in arguments:
        arguments = (*arguments, "--epsilon", "1")
    code, out, err = run(capsys, "design", "labels", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    """Write a table of 3000 amounts with the columns id, amount and note."""
    rng = np.random.default_rng(3)
    path = tmp_path / "sales.csv"
    rows = [f"{i},{value:.2f},x" for i, value in enumerate(rng.exponential(12.0, 3000))]
    path.write_text("id,amount,note\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture
def published_sales(capsys, sales: Path, tmp_path: Path) -> Path:
    """Publish the amounts of `sales` at ε = 2, and return the path of the published table."""
    path = tmp_path / "out.csv"
    line = f"privatise labels {sales} --column amount --epsilon 2 --labels 0..40 --snap --copy"
    code, out, _ = run(capsys, *line.split(), "--out", str(path), "--json")
    assert code == 0
    assert json.loads(out)["rows"] == 3000
    return path


def read_report(path: Path) -> dict[str, Any]:
    """Read the report that `privatise labels` writes beside the published table at `path`."""
    return dict(json.loads(path.with_name(f"{path.name}.json").read_text()))


def test_privatise_divides_the_budget_as_in_algorithm_3(published_sales: Path):
    """Algorithm 3 of Ghazi et al. 2022 uses ε₁ = sqrt(k/n) of the budget for the prior.

    Here k = 41 labels and n = 3000 rows.
    """
    report = read_report(published_sales)
    assert "Algorithm 3" in report["method"]
    assert report["epsilon1"] == pytest.approx((41 / 3000) ** 0.5, abs=1e-8)
    assert report["epsilon1"] + report["epsilon2"] == pytest.approx(2)


def test_the_report_of_privatise_says_what_the_budget_protects(published_sales: Path):
    notes = read_report(published_sales)["words"]
    assert notes[0].startswith("This is the budget of one row")
    assert notes[-1] == (
        "Label DP protects the labels only: the other columns are copied unchanged."
    )


def test_privatise_copies_the_other_columns(published_sales: Path):
    header, *rows = read_csv(published_sales)
    assert header == ["id", "amount", "note"]
    assert [row[0] for row in rows] == [str(i) for i in range(3000)]


def test_privatise_publishes_values_of_bins_near_the_amounts(published_sales: Path, sales: Path):
    published_amounts = np.array([float(row[1]) for row in read_csv(published_sales)[1:]])
    bin_values = {row["value"] for row in read_report(published_sales)["bins"]}
    assert set(published_amounts.tolist()) <= bin_values
    amounts = np.array([float(row[1]) for row in read_csv(sales)[1:]])
    assert np.corrcoef(amounts, published_amounts)[0, 1] > 0.2


def test_privatise_warns_that_labels_read_from_the_data_are_not_private(capsys, tmp_path: Path):
    source = tmp_path / "weeks.csv"
    target = tmp_path / "out.csv"
    source.write_text("weeks\n" + "52\n40\n40\n13\n" * 100)
    line = f"privatise labels {source} --column weeks --epsilon 1 --out {target}"
    line += " --projection simplex --split 1/2 --insecure-seed 1"
    assert run(capsys, *line.split())[0] == 0
    notes = " ".join(json.loads(target.with_name("out.csv.json").read_text())["words"])
    assert "read from the column. This is not private" in notes
    assert "other columns" not in notes
    assert "seed" in notes


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("y\n1\n\n3\n", (), "line 3 of in.csv must be 1 cells wide"),
        (
            "y\n1\nabc\n3\n",
            (),
            "line 3 of in.csv, column y, must be a finite number. Got another text",
        ),
        (
            "y\n1\n2\ninf\n",
            (),
            "line 4 of in.csv, column y, must be a finite number. Got another text",
        ),
        (
            "y\n1\n2\n7\n",
            ("--labels", "0..5"),
            "line 4 of in.csv, column y, must be one of the 6 labels. Got another text (--snap",
        ),
        ("y\n1\n2\n3\n", (), "n must be at least 4 records"),
        ("y\n1\n2\n3\n", ("--column", "z"), "column must be a column of in.csv"),
        ("y\n" + "1\n2\n" * 50, ("--loss", "error-rate"), "for RR-on-Bins"),
        ("y\n" + "1\n2\n" * 50, ("--projection", "l1"), "projection must be"),
        ("y\n" + "1\n2\n" * 50, ("--epsilon1", "3"), "epsilon_prior must be"),
    ],
)
def test_privatise_writes_nothing_on_an_error(capsys, tmp_path: Path, text, options, message):
    source = tmp_path / "in.csv"
    target = tmp_path / "out.csv"
    source.write_text(text)
    if "--column" not in options:
        options = (*options, "--column", "y")
    line = ["privatise", "labels", str(source), "--epsilon", "1", "--out", str(target)]
    code, out, err = run(capsys, *line, *options)
    assert (code, out) == (2, "")
    assert message in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv"]


@pytest.fixture
def ages(tmp_path: Path) -> np.ndarray:
    """Write 20,000 ages from 0 to 9 to ages.csv, and return them."""
    random_ages = np.random.default_rng(3).gamma(shape=6, scale=0.6, size=20_000).round()
    clipped_ages = np.clip(random_ages, 0, 9)
    (tmp_path / "ages.csv").write_text("age\n" + "\n".join(map(str, clipped_ages)))
    return clipped_ages


def privatise_ages(capsys, folder: Path, *options: str) -> tuple[int, str, str]:
    """Publish ages.csv of a folder as out.csv at ε = 1. Returns (exit code, output, error)."""
    line = f"privatise labels {folder}/ages.csv --column age --labels 0..9 --epsilon 1"
    return run(capsys, *line.split(), "--out", str(folder / "out.csv"), *options)


def publish_ages(capsys, folder: Path, ages: np.ndarray, method: str) -> np.ndarray:
    """Publish ages.csv of a folder, and return the errors: published minus true ages."""
    options = ["--method", method, "--insecure-seed", "5"]
    code, out, _ = privatise_ages(capsys, folder, *options)
    assert code == 0
    for name in read_report(folder / "out.csv")["expected_error"]:
        assert name in " ".join(out.split())
    published_ages = np.array([float(row[0]) for row in read_csv(folder / "out.csv")[1:]])
    return published_ages - ages


@pytest.mark.parametrize("method", ["bins", "unbiased"])
def test_privatise_states_the_error_of_the_published_column(
    capsys, tmp_path: Path, ages: np.ndarray, method: str
):
    """The private prior of 20,000 rows is near their distribution."""
    errors = publish_ages(capsys, tmp_path, ages, method)
    expected_errors = read_report(tmp_path / "out.csv")["expected_error"]
    mean_error = expected_errors["mean absolute error under the private prior"]
    root_mean_square = expected_errors["root mean squared error under the private prior"]
    assert mean_error == pytest.approx(np.abs(errors).mean(), rel=0.03)
    assert root_mean_square == pytest.approx((errors**2).mean() ** 0.5, rel=0.03)


def test_unbiased_labels_have_no_bias(capsys, tmp_path: Path, ages: np.ndarray):
    errors_of_old = publish_ages(capsys, tmp_path, ages, "unbiased")[ages >= 7]
    report = read_report(tmp_path / "out.csv")
    assert "unbiased" in report["method"]
    assert report["expected_error"]["largest shift of the mean of any label"] == 0
    standard_error = errors_of_old.std() / errors_of_old.size**0.5
    assert abs(errors_of_old.mean()) < 5 * standard_error


def test_the_bias_of_bins_is_within_the_stated_one(capsys, tmp_path: Path, ages: np.ndarray):
    """The prior of large ages is small, so bins publish them as smaller ages."""
    errors_of_old = publish_ages(capsys, tmp_path, ages, "bins")[ages >= 7]
    report = read_report(tmp_path / "out.csv")
    largest_shift = report["expected_error"]["largest shift of the mean of any label"]
    assert -largest_shift <= errors_of_old.mean() < -2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "lp"], "must be"),
        (["--method", "unbiased", "--loss", "absolute"], "must be"),
        (["--seed", "3"], "No such option --seed"),
    ],
)
@pytest.mark.usefixtures("ages")
def test_privatise_refuses_options_that_it_does_not_have(
    capsys, tmp_path: Path, options: list[str], message: str
):
    code, _, err = privatise_ages(capsys, tmp_path, *options)
    assert code == 2
    assert message in err


@pytest.mark.parametrize("method", ["bins", "unbiased"])
def test_the_losses_of_a_randomizer_are_means_over_its_outputs(method: str):
    labels = wb.Labels([0, 1, 3, 7], [0.1, 0.5, 0.4, 0])
    mechanism = wb.design(labels, epsilon=1, method=method).mechanism
    errors = mechanism.outputs[None, :] - labels.values[:, None]
    for loss in (lambda o, y: np.abs(o - y), lambda o, y: (o - y) ** 2, lambda o, y: o - y):
        # The second argument is 0, so the loss is evaluated at the errors.
        expected_losses = (mechanism.matrix * loss(errors, 0)).sum(axis=1)
        assert mechanism.losses(loss) == pytest.approx(expected_losses, abs=1e-9)


def test_weights_are_the_same_from_a_list_a_file_and_the_file_of_labels(tmp_path: Path, capsys):
    labels = tmp_path / "labels.csv"
    weights = tmp_path / "weights.csv"
    labels.write_text("label,weight\n0,3\n1,1\n4,2\n")
    weights.write_text("3\n1\n2\n")
    objectives = set()
    for line in (
        "--labels 4,0,1 --prior 2,3,1",  # labels in another order
        f"--labels 0,1,4 --prior {weights}",
        f"--labels {labels}",
    ):
        out = run(capsys, "design", "labels", *line.split(), "--epsilon", "1", "--json")[1]
        objectives.add(json.loads(out)["objective"])
    assert len(objectives) == 1


def test_a_uniform_prior_replaces_the_weights_of_the_file_of_labels(tmp_path: Path):
    path = tmp_path / "labels.csv"
    path.write_text("label,weight\n0,3\n1,1\n4,2\n")
    uniform = wb.design("labels", labels=str(path), prior="uniform", epsilon=1)
    weighted = wb.design("labels", labels=str(path), epsilon=1)
    assert uniform.objective == wb.design(wb.Labels([0, 1, 4]), epsilon=1).objective
    assert uniform.objective != weighted.objective


def user_loss(output, label):
    """Return a loss that Theorem 5 of Ghazi et al. 2022 does not cover."""
    return abs(output - label) ** 1.5


@pytest.mark.parametrize(
    ("options", "method"),
    [({}, "bins"), ({"loss": user_loss}, "lp"), ({"delta": "0.05"}, "lp")],
    ids=["default", "user-defined loss", "delta"],
)
def test_the_default_method_is_bins_unless_an_option_needs_the_program(options, method: str):
    design = wb.design(wb.Labels.uniform(0, 5), epsilon=1, **options)
    assert design.request.how.method == method


def test_a_channel_with_a_user_defined_loss_is_proven():
    design = wb.design(wb.Labels.uniform(0, 5), epsilon=1, loss=user_loss)
    assert design.bound == pytest.approx(design.objective, rel=1e-9)


def test_bins_refuse_a_user_defined_loss():
    with pytest.raises(wb.InvalidRequest, match="a name if method is bins"):
        wb.design(wb.Labels.uniform(0, 5), epsilon=1, method="bins", loss=user_loss)
