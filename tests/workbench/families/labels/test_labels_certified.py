"""Saved label randomizers: certified, proven again from their file, and usable by every command that reads one."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.cli import main
from workbench.families.labels.problem import find_best_bins
from workbench.mechanisms.channel import Channel
from workbench.models.labels.unbiased_levels import find_unbiased_optimum
from workbench.privacy.audit import audit, audit_extremes
from workbench.privacy.certificate import Certificate
from workbench.privacy.certificate_file import certificate_from_dict


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


@pytest.mark.parametrize(
    ("more", "labels"),
    [
        (("--labels", "0..20"), 21),
        (("--labels", "0..20", "--loss", "absolute"), 21),
        (("--labels", "0..20", "--method", "lp"), 21),
        (("--labels", "0..6", "--method", "lp", "--notion", "dp", "--delta", "0.05"), 7),
        (("--labels", "0..6", "--method", "lp", "--notion", "metric"), 7),
        (("--labels", "0..6", "--method", "lp", "--neighbours", "consecutive"), 7),
        (("--labels", "0..2", "--method", "lp", "--neighbours", "0-1,0-2", "--outputs", "0..5"), 3),
        (
            (
                "--labels",
                "0..6",
                "--method",
                "lp",
                "--outputs",
                "-9..15",
                "--constraint",
                "unbiased",
            ),
            7,
        ),
        (("--labels", "0..6", "--method", "unbiased"), 7),
    ],
)
def test_a_saved_randomizer_proves_itself_again(capsys, tmp_path: Path, more, labels):
    file = tmp_path / "labels.json"
    code, out, err = run(
        capsys, "design", "labels", "--epsilon", "1", "--save", str(file), "--json", *more
    )
    assert code == 0, err
    made = json.loads(out)
    assert made["certified"]
    assert made["private"]
    proof = wb.check(file)
    assert len(proof.mechanism.rows) == labels
    assert proof.bias.inputs == tuple(map(Fraction, range(labels)))
    if "unbiased" in more:
        assert proof.bias.worst == 0
    for command in (("check",), ("audit",), ("compose", "--times", "3", "--delta", "1e-5")):
        if made["notion"] == "pure" or command[0] != "compose":
            assert run(capsys, command[0], str(file), *command[1:])[0] == 0
    code, out, _ = run(capsys, "sample", str(file), "--answer", "2", "--count", "40")
    assert code == 0
    assert {float(line) for line in out.splitlines()} <= {
        float(value) for value in proof.bias.outputs
    }


def test_a_saved_randomizer_is_sampled_by_label(capsys, tmp_path: Path):
    file = tmp_path / "labels.json"
    prior = tmp_path / "prior.csv"
    prior.write_text("2.5,1\n10,1\n70,1\n")
    assert (
        run(
            capsys,
            "design",
            "labels",
            "--labels",
            str(prior),
            "--epsilon",
            "12",
            "--save",
            str(file),
        )[0]
        == 0
    )
    out = run(
        capsys, "sample", str(file), "--answer", "70", "--count", "200", "--insecure-seed", "1"
    )[1]
    assert np.mean([abs(float(line) - 70) < 1 for line in out.splitlines()]) > 0.99
    code, _, err = run(capsys, "sample", str(file), "--answer", "3")
    assert code == 2
    assert "answer must be one of the 3 labels from 2.5 to 70. Got 3." in err


def test_many_labels_are_certified_by_bin(capsys, tmp_path: Path):
    file = tmp_path / "labels.json"
    code, _, err = run(
        capsys, "design", "labels", "--labels", "0..5000", "--epsilon", "4", "--save", str(file)
    )
    assert code == 0, err
    proof = wb.check(file)
    assert proof.bias is None
    assert len(proof.mechanism.rows) == len(proof.record["bins"]) == 4
    assert proof.record["rows"] == "one for every bin"


def test_raw_claims_nothing(capsys, tmp_path: Path):
    file = tmp_path / "labels.json"
    arguments = (
        "design",
        "labels",
        "--labels",
        "0..9",
        "--epsilon",
        "1",
        "--method",
        "lp",
        "--raw",
        "--save",
        str(file),
    )
    assert run(capsys, *arguments)[0] == 0
    assert run(capsys, "check", str(file))[0] == 2
    assert isinstance(wb.load(file), Channel)
    assert run(capsys, "audit", str(file), "--epsilon", "1")[0] == 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--labels", "3..3"), "labels must be at least two for a neighbour relation. Got 1."),
        (
            ("--labels", "0..3", "--save", "missing/labels.json"),
            "output folder must be an existing folder",
        ),
        (
            ("--labels", "0..1600", "--method", "lp", "--outputs", "0..1"),
            "labels must be at most 1500 for a certificate",
        ),
        (
            (
                "--labels",
                "0..299",
                "--method",
                "lp",
                "--notion",
                "dp",
                "--delta",
                "0.01",
                "--outputs",
                "0..2",
            ),
            "pairs of neighbours must be at most 24630 for a certificate of 3 outputs. Got 44850 (300 labels).",
        ),
    ],
)
def test_what_cannot_be_saved_is_said(
    capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more, message
):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(
        capsys, "design", "labels", "--epsilon", "1", "--save", "labels.json", *more
    )
    assert (code, out) == (2, "")
    assert message in err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("epsilon", [0.1, 2, 8, 12])
def test_the_unbiased_optimum_is_exact_at_every_budget(epsilon):
    made = wb.design(wb.Labels.uniform(0, 10), epsilon=epsilon, method="unbiased", certify=True)
    assert made.bound <= made.objective <= made.bound * (1 + 1e-7)
    assert made.certificate.bias.worst == 0
    assert "repair_mixed_in" not in made.certificate.record
    assert made.private
    if epsilon == 8:  # k-ary randomized response with its bias taken out is the optimum here
        assert made.objective == pytest.approx(0.0739628031507, rel=1e-8)


def test_a_long_file_is_written_by_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where rows would not fit; what fits is written as before. Both prove the same, here and by the other checker."""
    made = wb.design(wb.Labels.uniform(0, 10), epsilon=1, method="unbiased")
    made.save(tmp_path / "rows.json")
    monkeypatch.setattr(
        "workbench.privacy.certificate.MAX_FILE_BYTES", (tmp_path / "rows.json").stat().st_size - 1
    )
    made.save(tmp_path / "columns.json")
    rows, columns = (
        json.loads((tmp_path / f"{name}.json").read_text()) for name in ("rows", "columns")
    )
    assert columns["mechanism"]["pairs"] == "all"
    assert wb.check(tmp_path / "columns.json").to_dict() == {**rows, "record": columns["record"]}
    tool = Path(__file__).parents[4] / "tools" / "check_certificate.py"
    done = subprocess.run(
        [sys.executable, "-I", str(tool), *map(str, tmp_path.iterdir())], capture_output=True
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda m: m["columns"][0].__setitem__(1, hex(int(m["columns"][0][1], 16) * 2)),
            "does not prove",
        ),
        (lambda m: m["columns"][0].__setitem__(0, 2), "A run|runs and weights"),
        (lambda m: m["columns"][0].pop(), "runs and weights"),
        (lambda m: m.__setitem__("rows", 10**9), "a number of rows"),
        (lambda m: m.__setitem__("pairs", [[0, 1]]), "pairs must be all"),
        (lambda m: m.__setitem__("columns", [[11, "0x0"]] * 3), "not all zero"),
    ],
)
def test_wrong_columns_are_refused(change, words, tmp_path: Path):
    made = wb.design(wb.Labels.uniform(0, 10), epsilon=1, method="unbiased").certificate.to_dict(
        columns=True
    )
    change(made["mechanism"])
    with pytest.raises(wb.CorruptFile, match=words):
        certificate_from_dict(made)
    (tmp_path / "wrong.json").write_text(json.dumps(made))
    tool = Path(__file__).parents[4] / "tools" / "check_certificate.py"
    done = subprocess.run(
        [sys.executable, "-I", str(tool), str(tmp_path / "wrong.json")], capture_output=True
    )
    assert done.returncode == (1 if words == "does not prove" else 2), done.stdout


def test_two_hundred_labels_are_proven_in_seconds(tmp_path: Path):
    made = wb.design(wb.Labels.uniform(0, 200), epsilon=1, method="unbiased")
    assert made.bound <= made.objective <= made.bound * (1 + 1e-7)
    assert made.certificate.bias.worst == 0
    made.save(tmp_path / "made.json")
    assert wb.check(tmp_path / "made.json").objective == made.certificate.objective


@pytest.mark.parametrize("labels", [48, 80])
def test_what_leaves_without_raw_is_certified_at_any_size(capsys, labels):
    """The solver's own channel on 80 labels has exact ε 1.0000000000000009, on 201 an infinite one."""
    arguments = (
        "design",
        "labels",
        "--labels",
        f"1..{labels}",
        "--epsilon",
        "1",
        "--method",
        "lp",
        "--json",
    )
    code, out, err = run(capsys, *arguments)
    made = json.loads(out)
    assert code == 0, err
    assert (made["certified"], made["private"]) == (True, True)
    assert made["exact"]["epsilon"] <= 1
    if labels == 48:
        raw = json.loads(run(capsys, *arguments, "--raw")[1])
        assert raw["certified"] is False


@pytest.mark.parametrize(
    ("labels", "request_"),
    [
        (wb.Labels.uniform(0, 199), {"epsilon": 8}),
        (wb.Labels.uniform(0, 30_000), {"epsilon": "0.01"}),  # one bin
        (wb.Labels.uniform(0, 12), {"epsilon": 1, "method": "lp", "notion": "dp", "delta": "0.01"}),
    ],
)
def test_every_method_certifies_unless_told_not_to(labels, request_):
    made = wb.design(labels, **request_)
    assert made.certificate is not None
    assert made.certificate.holds()
    assert made.private


@pytest.mark.parametrize("question", [wb.Labels.uniform(0, 5), wb.Quantization("-3,-0.5,0.5,3")])
@pytest.mark.parametrize("wrong", [None, 0, "yes"])
def test_certify_is_true_or_false(question, wrong):
    with pytest.raises(wb.InvalidRequest, match="certify must be true or false"):
        wb.design(question, epsilon=1, certify=wrong)


def test_a_randomizer_that_spends_more_than_its_share_is_refused():
    """`optimise` is anybody's function: what it returns is compared with the budget it was given."""
    greedy = wb.LabelRandomizer(
        [0, 1, 2], 2, lambda prior, second: find_best_bins(prior, 2 * second)
    )
    with pytest.raises(wb.NotCertified, match="A ratio of masses of the mechanism exceeds"):
        greedy.run([0, 1, 2] * 100)


def test_the_short_proof_decides_as_every_pair_does():
    rng = np.random.default_rng(7)
    answers = set()
    for _ in range(60):
        rows = rng.integers(0, 4, (5, 4)) + np.array([1, 0, 2, 1])
        subject = Channel.from_rows(rows.astype(float))
        whole = audit(subject, Fraction(13, 10))
        short = audit_extremes(subject, Fraction(13, 10))
        assert short.pure_ratio == whole.pure_ratio
        try:
            proof = Certificate(subject, "pure", Fraction(13, 10))
        except wb.NotCertified:
            answers.add(False)
            assert not whole.meets("pure", Fraction(13, 10))
            continue
        answers.add(True)
        assert len(proof.deciding_audit.pairs) < len(subject.pairs)
        assert proof.privacy.pure_epsilon == proof.deciding_audit.pure_epsilon
        assert proof.privacy.dp_delta == proof.deciding_audit.dp_delta
    assert answers == {True, False}


@pytest.mark.parametrize(
    ("k", "epsilon", "loss", "outputs", "notion"),
    [
        (7, 4, "absolute", range(-6, 10), {}),
        (5, 2, "absolute", range(-2, 12), {}),
        (9, 4, "squared", range(-4, 12), {}),
        (8, "0.25", "squared", range(-10, 17), {}),
        (6, 2, "absolute", range(-8, 14), {"notion": "dp", "delta": "1e-3"}),
    ],
)
def test_repair_of_unbiased_channels_costs_nothing(
    k: int, epsilon: object, loss: str, outputs: range, notion: dict
):
    """Rows that keep their means cost much, so a repair of a solver's last digits did."""
    made = wb.design(
        wb.Labels(range(k)),
        epsilon=epsilon,
        method="lp",
        loss=loss,
        outputs=list(outputs),
        neighbours="consecutive",
        constraints=["unbiased"],
        **notion,
    )
    assert made.private
    assert made.certificate is not None
    assert made.certificate.bias is not None
    assert made.certificate.bias.worst == 0
    assert made.bound is not None
    assert made.bound <= made.objective <= made.bound * (1 + 2e-9)


@pytest.mark.parametrize(
    ("gap", "status"), [(1e-9, "optimal"), (1.9e-3, "gap_limit"), (3e-3, None)]
)
def test_an_unbiased_design_with_a_gap_states_its_interval(
    monkeypatch: pytest.MonkeyPatch, gap, status
):
    def loosen(*arguments):
        point = find_unbiased_optimum(*arguments)
        return replace(point, proof=replace(point.proof, bound=point.bound * (1 - gap)))

    monkeypatch.setattr("workbench.families.labels.unbiased.find_unbiased_optimum", loosen)
    if status is None:
        with pytest.raises(wb.NotProven, match=r"the optimum between 97\.7\d+ and 98\.0075"):
            wb.design(wb.Labels.uniform(0, 10), epsilon=1, method="unbiased")
        return
    made = wb.design(wb.Labels.uniform(0, 10), epsilon=1, method="unbiased")
    assert made.status == status
    assert made.bound == pytest.approx(98.0075419783 * (1 - gap), rel=1e-10)
    interval = f"between {made.bound:.9g} and {made.objective:.9g}."
    assert any(words.endswith(interval) for words in made.words) == (status == "gap_limit")


def test_the_bound_of_bins_at_a_delta_is_at_least_the_loss_without_privacy() -> None:
    labels = wb.Labels([0, 5, 20, 21], prior=[3, 1, 1, 2])
    design = wb.design(labels, loss="squared", epsilon="0.1", delta="0.001")
    assert design.bound == 0
