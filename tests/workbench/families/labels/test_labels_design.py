"""Label designs and commands from a user's side."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.cli import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def read(path: Path) -> list[list[str]]:
    return list(csv.reader(path.read_text().splitlines()))


def test_bins_are_optimal_private_and_judged():
    made = wb.design(wb.Labels.uniform(0, 20), epsilon=4)
    assert made.objective == pytest.approx(6.75867268725, rel=1e-11)
    assert made.private
    assert made.oracle.agrees
    assert made.oracle.valid
    assert made.to_dict()["d"] == 4
    assert made.mechanism.loss(lambda o, y: (o - y) ** 2) == pytest.approx(
        made.objective, rel=1e-12
    )


@pytest.mark.parametrize(
    ("request_", "value", "kind"),
    [
        ({"loss": "absolute", "epsilon": 1}, 4.47836540514, "optimum"),
        ({"loss": "squared", "epsilon": 4}, 6.77956637, "lower bound"),
        ({"loss": "error-rate", "epsilon": 2}, None, "optimum"),
        ({"loss": "huber:2", "epsilon": 1}, None, None),
    ],
)
def test_the_lp_is_judged_and_a_miss_is_said(request_, value, kind):
    made = wb.design(wb.Labels.uniform(0, 20), method="lp", **request_)
    if value is not None:
        assert made.objective == pytest.approx(value, rel=1e-8)
    assert made.oracle.kind == kind
    assert made.oracle.agrees is (None if kind is None else True)
    assert made.bound == pytest.approx(made.objective, rel=1e-7)
    assert made.private
    assert made.certificate is not None
    assert made.objective == pytest.approx(made.claimed, abs=1e-5)
    assert made.private == (
        not any("is NOT private at the requested budget" in sentence for sentence in made.words)
    )


def test_counts_metric_and_delta():
    counts = wb.design(
        wb.Labels.uniform(0, 7), epsilon=1, loss="absolute", method="lp", neighbours="consecutive"
    )
    assert counts.objective == pytest.approx(0.682707993, abs=1e-9)
    uneven = wb.Labels([0, 1, 5], [1, 1, 1])
    metric = wb.design(uneven, epsilon=0.5, method="lp", notion="metric")
    matrix = metric.mechanism.matrix
    assert (matrix[0] <= np.exp(0.5 * 5) * matrix[2] * (1 + 1e-6) + 1e-9).all()
    assert metric.privacy.budgets[1, 2] == 2
    pure = wb.design(uneven, epsilon=1, method="lp")
    some = wb.design(uneven, epsilon=1, method="lp", notion="dp", delta=0.1)
    assert some.objective < pure.objective
    assert some.privacy.dp_delta.upper <= 0.1 + 1e-7


def test_the_unbiased_optimum():
    made = wb.design(wb.Labels.uniform(0, 10), epsilon=1, method="unbiased")
    assert made.objective == pytest.approx(98.0075420, rel=2e-8)
    assert wb.design(wb.Labels.uniform(0, 10), epsilon=1).objective == pytest.approx(
        8.40878638, abs=5e-9
    )
    assert made.bound <= made.objective <= made.bound * (1 + 2e-8)
    assert made.private
    assert np.abs(made.mechanism.losses(lambda o, y: o - y)).max() < 1e-9
    assert any("exactly" in sentence for sentence in made.words)


def test_json_has_the_promised_keys(capsys):
    code, out, _ = run(
        capsys,
        "design",
        "labels",
        "--labels",
        "0..20",
        "--loss",
        "squared",
        "--epsilon",
        "4",
        "--json",
    )
    made = json.loads(out)
    assert code == 0
    assert made["objective"] == pytest.approx(6.75867268725)
    assert {"lower", "upper", "value"} == set(made["bins"][0])
    assert made["d"] == len(made["bins"]) == 4
    assert made["method"] == "bins"
    assert made["bound"] <= made["objective"]
    assert made["exact"]["epsilon"] <= 4.0


def test_a_report_and_a_plot(capsys, tmp_path: Path):
    prior, plot = tmp_path / "prior.csv", tmp_path / "channel.png"
    prior.write_text("label,weight\n1,1\n3,2\n7,1\n")
    code, out, _ = run(
        capsys,
        "design",
        "labels",
        "--labels",
        str(prior),
        "--epsilon",
        "1",
        "--method",
        "unbiased",
        "--plot",
        str(plot),
    )
    assert code == 0
    assert "E[o|y] = y exactly" in out
    assert plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--labels", "missing.csv"), "labels must be a file that can be read"),
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
def test_bad_requests_are_one_line(capsys, arguments, message):
    given = arguments if "--epsilon" in arguments else (*arguments, "--epsilon", "1")
    code, out, err = run(capsys, "design", "labels", *given)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    path = tmp_path / "sales.csv"
    rows = [f"{i},{value:.2f},x" for i, value in enumerate(rng.exponential(12.0, 3000))]
    path.write_text("id,amount,note\n" + "\n".join(rows) + "\n")
    return path


def test_privatise_a_column(capsys, sales: Path, tmp_path: Path):
    target = tmp_path / "out.csv"
    code, out, _ = run(
        capsys,
        "privatise",
        "labels",
        str(sales),
        "--column",
        "amount",
        "--epsilon",
        "2",
        "--labels",
        "0..40",
        "--snap",
        "--copy",
        "--out",
        str(target),
        "--json",
    )
    assert code == 0
    stated = json.loads(target.with_name("out.csv.json").read_text())
    assert stated["epsilon1"] + stated["epsilon2"] == pytest.approx(2)
    assert stated["epsilon1"] == pytest.approx((41 / 3000) ** 0.5, abs=1e-8)
    assert "Algorithm 3" in stated["method"]
    assert json.loads(out)["rows"] == 3000
    assert (
        stated["words"][-1]
        == "Label DP protects the labels only: the other columns are copied unchanged."
    )
    assert stated["words"][0].startswith("This is the budget of one row")
    rows = read(target)
    assert rows[0] == ["id", "amount", "note"]
    assert len(rows) == 3001
    values = {bin_["value"] for bin_ in stated["bins"]}
    assert {float(row[1]) for row in rows[1:]} <= values
    assert [row[0] for row in rows[1:]] == [str(i) for i in range(3000)]
    truth = np.array([float(row[1]) for row in read(sales)[1:]])
    noisy = np.array([float(row[1]) for row in rows[1:]])
    assert np.corrcoef(truth, noisy)[0, 1] > 0.2


def test_privatise_says_when_the_label_set_is_data(capsys, tmp_path: Path):
    source, target = tmp_path / "weeks.csv", tmp_path / "out.csv"
    source.write_text("weeks\n" + "52\n40\n40\n13\n" * 100)
    code, _, _ = run(
        capsys,
        "privatise",
        "labels",
        str(source),
        "--column",
        "weeks",
        "--epsilon",
        "1",
        "--out",
        str(target),
        "--projection",
        "simplex",
        "--split",
        "1/2",
        "--insecure-seed",
        "1",
    )
    assert code == 0
    words = " ".join(json.loads(target.with_name("out.csv.json").read_text())["words"])
    assert "read from the column. This is not private" in words
    assert "other columns" not in words
    assert "seed" in words


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ("y\n1\n\n3\n", (), "line 3 of in.csv must be 1 cells wide"),
        ("y\n1\nabc\n3\n", (), "line 3 of in.csv, column y, must be a finite number. Got 'abc'"),
        ("y\n1\n2\ninf\n", (), "line 4 of in.csv, column y, must be a finite number. Got 'inf'"),
        (
            "y\n1\n2\n7\n",
            ("--labels", "0..5"),
            "line 4 of in.csv, column y, must be one of the 6 labels. Got '7' (--snap",
        ),
        ("y\n1\n2\n3\n", (), "n must be at least 4 records"),
        ("y\n1\n2\n3\n", ("--column", "z"), "column must be a column of in.csv"),
        ("y\n" + "1\n2\n" * 50, ("--loss", "error-rate"), "for RR-on-Bins"),
        ("y\n" + "1\n2\n" * 50, ("--projection", "l1"), "projection must be"),
        ("y\n" + "1\n2\n" * 50, ("--epsilon1", "3"), "epsilon_prior must be"),
    ],
)
def test_privatise_writes_nothing_on_an_error(capsys, tmp_path: Path, text, more, message):
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text(text)
    base = ["privatise", "labels", str(source), "--epsilon", "1", "--out", str(target), *more]
    code, out, err = run(capsys, *base, *([] if "--column" in more else ["--column", "y"]))
    assert (code, out) == (2, "")
    assert message in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv"]


def test_privatise_states_error_and_bias_and_publishes_without_any(capsys, tmp_path: Path):
    source, target = tmp_path / "ages.csv", tmp_path / "out.csv"
    ages = np.clip(np.random.default_rng(3).gamma(6, 0.6, 20_000).round(), 0, 9)
    source.write_text("age\n" + "\n".join(map(str, ages)))
    base = [
        "privatise",
        "labels",
        str(source),
        "--column",
        "age",
        "--labels",
        "0..9",
        "--epsilon",
        "1",
        "--out",
        str(target),
        "--insecure-seed",
        "5",
        "--overwrite",
    ]
    for method, error in (("bins", None), ("unbiased", 0.0)):
        code, out, _ = run(capsys, *base, "--method", method)
        assert code == 0
        report = json.loads(target.with_name("out.csv.json").read_text())
        stated = report["expected_error"]
        for label in stated:
            assert label in " ".join(out.split())
        noisy = np.array([float(row[0]) for row in read(target)[1:]])
        off, old = np.abs(noisy - ages), ages >= 7
        # what is stated under the private prior is what happens to these 20,000 rows, whose prior it is near
        assert stated["mean absolute error under the private prior"] == pytest.approx(
            off.mean(), rel=0.03
        )
        assert stated["root mean squared error under the private prior"] == pytest.approx(
            (off**2).mean() ** 0.5, rel=0.03
        )
        shift = (noisy - ages)[old].mean()
        if method == "unbiased":
            assert stated["largest shift of the mean of any label"] == error
            assert abs(shift) < 5 * (noisy - ages)[old].std() / old.sum() ** 0.5
            assert "unbiased" in report["method"]
        else:
            assert -stated["largest shift of the mean of any label"] <= shift < -2
            assert (
                max(abs(noisy[ages == y].mean() - y) for y in (0, 9) if (ages == y).sum() > 50) > 2
            )
    for more in (
        ["--method", "lp"],
        ["--method", "unbiased", "--loss", "absolute"],
        ["--seed", "3"],
    ):
        code, _, err = run(capsys, *base[:-2], *more)
        assert code == 2
        assert "must be" in err or "No such option --seed" in err


def test_errors_of_labels_are_those_of_their_laws():
    labels = wb.Labels([0, 1, 3, 7], [0.1, 0.5, 0.4, 0])
    for method in ("bins", "unbiased"):
        mechanism = wb.design(labels, epsilon=1, method=method).mechanism
        for loss in (lambda o, y: np.abs(o - y), lambda o, y: (o - y) ** 2, lambda o, y: o - y):
            table = loss(mechanism.outputs[None, :], labels.values[:, None])
            assert mechanism.losses(loss) == pytest.approx(
                (mechanism.matrix * table).sum(axis=1), abs=1e-9
            )


def test_labels_and_their_weights_are_given_apart(tmp_path: Path, capsys):
    """A list of labels, in any order, with weights as text, as a file, uniform, or from the labels' own file."""
    both, weights = tmp_path / "both.csv", tmp_path / "weights.csv"
    both.write_text("label,weight\n0,3\n1,1\n4,2\n")
    weights.write_text("3\n1\n2\n")
    lines = (
        "--labels 4,0,1 --prior 2,3,1",
        f"--labels 0,1,4 --prior {weights}",
        f"--labels {both}",
    )
    found = {
        json.loads(run(capsys, "design", "labels", *line.split(), "--epsilon", "1", "--json")[1])[
            "objective"
        ]
        for line in lines
    }
    assert len(found) == 1
    even = wb.design("labels", labels=str(both), prior="uniform", epsilon=1).objective
    assert even == wb.design(wb.Labels([0, 1, 4]), epsilon=1).objective
    assert even not in found


def test_the_method_follows_what_is_asked():
    """RR-on-Bins where it is the optimum, the program where outputs, δ or a loss of one's own ask for it."""
    labels = wb.Labels.uniform(0, 5)
    assert wb.design(labels, epsilon=1).request.how.method == "bins"
    ours = wb.design(labels, epsilon=1, loss=lambda output, label: abs(output - label) ** 1.5)
    assert (ours.request.how.method, ours.bound) == ("lp", pytest.approx(ours.objective, rel=1e-9))
    assert wb.design(labels, epsilon=1, delta="0.05").request.how.method == "lp"
    with pytest.raises(wb.InvalidRequest, match="a name if method is bins"):
        wb.design(
            labels, epsilon=1, method="bins", loss=lambda output, label: abs(output - label) ** 1.5
        )
