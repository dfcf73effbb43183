"""Saved label randomizers: certified, proven again from their file, and usable by every command that reads one."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.cli import main
from workbench.families.labels.certify import certified
from workbench.families.labels.design import best_bins
from workbench.families.labels.family import FAMILY
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.label_randomizers.label_channel import LabelChannel
from workbench.privacy.audit import audit, audit_extremes
from workbench.privacy.certificate import Certificate
from workbench.privacy.certificate_file import from_dict


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


@pytest.mark.parametrize(
    ("more", "labels"),
    [
        (("--prior", "uniform:0..20"), 21),
        (("--prior", "uniform:0..20", "--loss", "absolute", "--method", "printed"), 21),
        (("--prior", "uniform:0..20", "--method", "lp"), 21),
        (("--prior", "uniform:0..6", "--method", "lp", "--notion", "dp", "--delta", "0.05"), 7),
        (("--prior", "uniform:0..6", "--method", "lp", "--notion", "metric"), 7),
        (("--prior", "uniform:0..6", "--method", "lp", "--neighbours", "consecutive"), 7),
        (("--prior", "uniform:0..2", "--method", "lp", "--neighbours", "0-1,0-2", "--outputs", "0..5"), 3),
        (("--prior", "uniform:0..6", "--method", "lp", "--outputs", "-9..15", "--constraint", "unbiased"), 7),
        (("--prior", "uniform:0..6", "--method", "unbiased"), 7),
    ],
)
def test_a_saved_randomizer_proves_itself_again(capsys, tmp_path: Path, more, labels):
    file = tmp_path / "labels.json"
    code, out, err = run(capsys, "design", "labels", "--epsilon", "1", "--save", str(file), "--json", *more)
    assert code == 0, err
    made = json.loads(out)
    assert made["certified"]
    assert made["private"]
    proof = wb.verify_certificate(file)
    assert len(proof.mechanism.rows) == labels
    assert proof.bias.inputs == tuple(map(Fraction, range(labels)))
    if "unbiased" in more:
        assert proof.bias.worst == 0
    for command in (("verify-certificate",), ("audit",), ("compose", "--times", "3", "--delta", "1e-5")):
        if made["notion"] == "pure" or command[0] != "compose":
            assert run(capsys, command[0], str(file), *command[1:])[0] == 0
    code, out, _ = run(capsys, "sample", str(file), "--answer", "2", "--count", "40")
    assert code == 0
    assert {float(line) for line in out.splitlines()} <= {float(value) for value in proof.bias.outputs}


def test_a_saved_randomizer_is_sampled_by_label(capsys, tmp_path: Path):
    file = tmp_path / "labels.json"
    prior = tmp_path / "prior.csv"
    prior.write_text("2.5,1\n10,1\n70,1\n")
    assert run(capsys, "design", "labels", "--prior", str(prior), "--epsilon", "12", "--save", str(file))[0] == 0
    out = run(capsys, "sample", str(file), "--answer", "70", "--count", "200", "--insecure-seed", "1")[1]
    assert np.mean([abs(float(line) - 70) < 1 for line in out.splitlines()]) > 0.99
    code, _, err = run(capsys, "sample", str(file), "--answer", "3")
    assert code == 2
    assert "answer must be one of the 3 labels from 2.5 to 70. Got 3." in err


def test_many_labels_are_certified_by_bin(capsys, tmp_path: Path):
    file = tmp_path / "labels.json"
    code, _, err = run(capsys, "design", "labels", "--prior", "uniform:0..5000", "--epsilon", "4", "--save", str(file))
    assert code == 0, err
    proof = wb.verify_certificate(file)
    assert proof.bias is None
    assert len(proof.mechanism.rows) == len(proof.record["bins"]) == 4
    assert proof.record["rows"] == "one for every bin"


def test_raw_claims_nothing(capsys, tmp_path: Path):
    file = tmp_path / "labels.json"
    arguments = (
        "design",
        "labels",
        "--prior",
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
    assert run(capsys, "verify-certificate", str(file))[0] == 2
    assert isinstance(wb.load(file), Channel)
    assert run(capsys, "audit", str(file), "--epsilon", "1")[0] == 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--prior", "3..3"), "labels must be at least two for a neighbour relation. Got 1."),
        (("--prior", "0..3", "--save", "missing/labels.json"), "output folder must be an existing folder"),
        (
            ("--prior", "0..1600", "--method", "lp", "--outputs", "0..1"),
            "labels must be at most 1500 for a certificate",
        ),
        (
            ("--prior", "0..299", "--method", "lp", "--notion", "dp", "--outputs", "0..2"),
            "pairs of neighbours must be at most 24630 for a certificate of 3 outputs. Got 44850 (300 labels).",
        ),
    ],
)
def test_what_cannot_be_saved_is_said(capsys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "design", "labels", "--epsilon", "1", "--save", "labels.json", *more)
    assert (code, out) == (2, "")
    assert message in err
    assert not list(tmp_path.iterdir())


def test_a_biased_vertex_is_repaired_and_its_bias_stated():
    labels = wb.Labels([0, 1, 2])
    outputs = np.array([-4.0, 1, 6])
    request = FAMILY.request(labels, epsilon=1, method="unbiased")
    nearly = np.array([[0.4, 0.4, 0.2], [0.3, 0.4, 0.3], [0.2, 0.4, 0.4]]) + 1e-12
    exact = certified(LabelChannel(labels, outputs, Channel.from_rows(nearly)), request, unbiased=True)
    assert exact.bias.worst == 0
    assert [row.mean(exact.bias.outputs) for row in exact.mechanism.rows] == [0, 1, 2]
    narrow = LabelChannel(labels, np.array([0.0, 1, 2]), Channel.from_rows(np.eye(3)))
    left = certified(narrow, request, unbiased=True)
    assert left.bias.worst > Fraction(1, 10)
    assert left.privacy.meets("pure", Fraction(1), 0)
    assert any("largest bias" in sentence for sentence in left.words)


@pytest.mark.parametrize("epsilon", [0.1, 2, 8, 12])
def test_the_unbiased_optimum_is_exact_at_every_budget(epsilon):
    made = wb.design(wb.Labels.uniform(0, 10), epsilon=epsilon, method="unbiased", certify=True)
    assert made.bound <= made.objective <= made.bound * (1 + 1e-8)
    assert made.certificate.bias.worst == 0
    assert "repair_mixed_in" not in made.certificate.record
    assert made.private
    if epsilon == 8:  # k-ary randomized response with its bias taken out is the optimum here
        assert made.objective == pytest.approx(0.0739628031507, rel=1e-8)


def test_a_long_file_is_written_by_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where rows would not fit; what fits is written as before. Both prove the same, here and by the other checker."""
    made = wb.design(wb.Labels.uniform(0, 10), epsilon=1, method="unbiased")
    made.save(tmp_path / "rows.json")
    monkeypatch.setattr("workbench.privacy.certificate.LIMIT", (tmp_path / "rows.json").stat().st_size - 1)
    made.save(tmp_path / "columns.json")
    rows, columns = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("rows", "columns"))
    assert (rows["version"], columns["version"], columns["mechanism"]["pairs"]) == (2, 3, "all")
    assert wb.verify_certificate(tmp_path / "columns.json").to_dict() == {**rows, "record": columns["record"]}
    tool = Path(__file__).parents[2] / "tools" / "check_certificate.py"
    done = subprocess.run([sys.executable, "-I", str(tool), *map(str, tmp_path.iterdir())], capture_output=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: m["columns"][0].__setitem__(1, hex(int(m["columns"][0][1], 16) * 2)), "does not prove"),
        (lambda m: m["columns"][0].__setitem__(0, 2), "A run|runs and weights"),
        (lambda m: m["columns"][0].pop(), "runs and weights"),
        (lambda m: m.__setitem__("rows", 10**9), "a number of rows"),
        (lambda m: m.__setitem__("pairs", [[0, 1]]), "pairs must be all"),
        (lambda m: m.__setitem__("columns", [[11, "0x0"]] * 3), "not all zero"),
    ],
)  # fmt: skip
def test_wrong_columns_are_refused(change, words, tmp_path: Path):
    made = wb.design(wb.Labels.uniform(0, 10), epsilon=1, method="unbiased").certificate.to_dict(columns=True)
    change(made["mechanism"])
    with pytest.raises(wb.CorruptFile, match=words):
        from_dict(made)
    (tmp_path / "wrong.json").write_text(json.dumps(made))
    tool = Path(__file__).parents[2] / "tools" / "check_certificate.py"
    done = subprocess.run([sys.executable, "-I", str(tool), str(tmp_path / "wrong.json")], capture_output=True)
    assert done.returncode == 1, done.stdout
    with pytest.raises(wb.CorruptFile, match="from version 3 on"):
        from_dict(made | {"version": 2})


def test_two_hundred_labels_are_proven_in_seconds(tmp_path: Path):
    made = wb.design(wb.Labels.uniform(0, 200), epsilon=1, method="unbiased")
    assert made.bound <= made.objective <= made.bound * (1 + 1e-7)
    assert made.certificate.bias.worst == 0
    made.save(tmp_path / "made.json")
    assert wb.verify_certificate(tmp_path / "made.json").objective == made.certificate.objective


@pytest.mark.parametrize("labels", [48, 80])
def test_what_leaves_without_raw_is_certified_at_any_size(capsys, labels):
    """The solver's own channel on 80 labels has exact ε 1.0000000000000009, on 201 an infinite one."""
    arguments = ("design", "labels", "--prior", f"uniform:1..{labels}", "--epsilon", "1", "--method", "lp", "--json")
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
        (wb.Labels.uniform(0, 59), {"epsilon": 8, "method": "printed"}),
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
    with pytest.raises(wb.InvalidRequest, match="certify must be True or False"):
        wb.design(question, epsilon=1, certify=wrong)


def test_a_randomizer_that_spends_more_than_its_share_is_refused():
    """`optimise` is anybody's function: what it returns is compared with the budget it was given."""
    greedy = wb.LabelRandomizer([0, 1, 2], 2, lambda prior, second: best_bins(prior, 2 * second))
    with pytest.raises(wb.NotCertified, match="the mechanism for the response"):
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
        assert len(proof.deciding.pairs) < len(subject.pairs)
        assert proof.privacy.pure_epsilon == proof.deciding.pure_epsilon
        assert proof.privacy.dp_delta == proof.deciding.dp_delta
    assert answers == {True, False}
