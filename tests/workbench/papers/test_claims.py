"""Test the claims of the papers: every sentence is judged, by numbers that are not typed.

A claim is a sentence that a paper prints. A declared file says from which stored tables it is judged,
or why it cannot be judged. The verdicts are stored in results/claims/claims.csv.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from workbench.papers import PAPERS, claims, load_paper
from workbench.papers.artifact import read_declaration, read_printed_numbers
from workbench.papers.claims import AGREES, DISAGREES, NOT_COMPUTED, compare_series, judge_claims

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "results"
JUDGED_PAPERS = ("modulo-noise", "dql", "optm", "label-dp")

# The verdicts of the sentences that the papers are cited for most.
VERDICTS = {
    ("optm", "vectors"): "cannot be judged: ε and MVU's alphabet are not printed",
    ("optm", "log_growth"): "agrees",
    ("optm", "seconds"): "cannot be judged: another machine and another solver",
    ("optm", "convergence"): "cannot be judged: learning rate and MVU's alphabet are not printed",
    ("optm", "tradeoff"): "agrees",
    ("optm", "conclusion"): "agrees",
    ("label-dp", "losses"): "agrees",
    ("label-dp", "criteo_census"): "cannot be judged: stand-in data",
    ("label-dp", "app_ads"): "cannot be judged: stand-in data",
    ("modulo-noise", "closed_forms"): "does not agree",
    ("modulo-noise", "superior"): "agrees",
    ("modulo-noise", "conclusion"): "does not agree",
    ("dql", "finite"): "cannot be judged: priority is not checked",
    ("dql", "conclusion"): "does not agree",
}


def read_stored_claims(paper: str) -> list[dict[str, str]]:
    """Return the rows of a paper in results/claims/claims.csv."""
    with (RESULTS / "claims/claims.csv").open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["paper"] == paper]


@pytest.mark.parametrize("name", JUDGED_PAPERS)
def test_every_printed_sentence_is_judged_and_has_a_place(name: str) -> None:
    paper = load_paper(name)
    printed_claims = read_printed_numbers(paper.file)["claims"]
    declared_claims = read_declaration(paper.file)["claims"]
    assert [*printed_claims] == [*declared_claims]
    for key, claim in printed_claims.items():
        assert {*claim} == {"place", "sentence"}
        # Exactly one of the two says how the claim is judged.
        assert len(declared_claims[key].keys() & {"agrees", "unjudged"}) == 1
        # One sentence is quoted.
        assert not re.search(r"\. [A-Z]", claim["sentence"])


@pytest.mark.parametrize("name", JUDGED_PAPERS)
def test_abstract_introduction_and_conclusion_have_claims(name: str) -> None:
    places = [
        claim["place"] for claim in read_printed_numbers(load_paper(name).file)["claims"].values()
    ]
    conclusion = {"modulo-noise": "5", "dql": "8", "optm": "7", "label-dp": "6"}[name]
    for start in ("Abstract", "Section 1", f"Section {conclusion}"):
        assert any(place.startswith(start) for place in places), start


@pytest.mark.parametrize("name", JUDGED_PAPERS)
def test_stored_claims_are_those_that_are_computed(name: str) -> None:
    computed_rows = [*judge_claims(load_paper(name), RESULTS)]
    assert computed_rows == read_stored_claims(name)
    assert all(row["verdict"] != NOT_COMPUTED for row in computed_rows)


@pytest.mark.parametrize(("paper", "key"), list(VERDICTS))
def test_the_stored_verdict_of_a_cited_sentence(paper: str, key: str) -> None:
    sentence = read_printed_numbers(load_paper(paper).file)["claims"][key]["sentence"]
    (row,) = (row for row in read_stored_claims(paper) if row["sentence"] == sentence)
    assert row["verdict"] == VERDICTS[paper, key]


def judge_one(key: str, results: Path) -> dict[str, str]:
    """Judge one claim of optm by the stored tables of a folder."""
    paper = load_paper("optm")
    sentence = read_printed_numbers("optm")["claims"][key]["sentence"]
    return next(row for row in judge_claims(paper, results) if row["sentence"] == sentence)


def test_a_verdict_follows_the_stored_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declaration = read_declaration("optm")
    only_tradeoff = {"claims": {"tradeoff": declaration["claims"]["tradeoff"]}}
    monkeypatch.setattr(claims, "read_declaration", lambda file: only_tradeoff)
    (tmp_path / "optm").mkdir()
    path = tmp_path / "optm/table1.csv"
    shutil.copyfile(RESULTS / "optm/table1.csv", path)
    assert judge_one("tradeoff", tmp_path)["verdict"] == AGREES
    table = pd.read_csv(path)
    table.loc[table["mechanism"].eq("MVU") & table["epsilon"].eq(1), "mae"] = 0.5
    table.to_csv(path, index=False)
    row = judge_one("tradeoff", tmp_path)
    assert row["verdict"] == DISAGREES
    assert "at 2 of 3 ε" in row["ours"]


def test_a_claim_without_its_stored_table_is_not_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declaration = read_declaration("optm")
    monkeypatch.setattr(
        claims,
        "read_declaration",
        lambda file: {"claims": {"mnist": declaration["claims"]["mnist"]}},
    )
    row = judge_one("mnist", tmp_path)
    assert row["verdict"] == NOT_COMPUTED
    assert row["ours"] == "optm/fig4d.csv is missing. Reproduce fig4d first."


def test_series_are_compared_with_the_best_of_the_others() -> None:
    rows = [
        *[(x, "ours", y) for x, y in enumerate([1.0, 2.0, 4.0, 4.0, 1.0])],
        *[(x, "a", y) for x, y in enumerate([2.0, 2.0, 3.0, 3.0, 4.0])],
        *[(x, "b", 9.0) for x in range(5)],
    ]
    table = pd.DataFrame(rows, columns=["x", "name", "y"])
    comparison = compare_series(table, x="x", y="y", names="name", name="ours", others=["a", "b"])
    assert comparison == {
        "count": 5,
        "smaller_count": 2,
        "larger_ranges": "1 to 3",
        "least_ratio": 0.75,
        "most_ratio": 4.0,
    }


def test_the_page_shows_the_claims_of_every_paper() -> None:
    page = (ROOT / "docs/claims.md").read_text("utf-8")
    shown_papers = re.findall(r"^```\{claims\} (\S+)$", page, re.MULTILINE)
    papers_with_claims = {
        name for name in PAPERS if load_paper(name).file and read_stored_claims(name)
    }
    assert sorted(shown_papers) == sorted(papers_with_claims) == sorted(JUDGED_PAPERS)


def test_a_claim_does_not_read_a_table_with_other_parameters(tmp_path: Path) -> None:
    shutil.copytree(RESULTS / "optm", tmp_path / "optm")
    record_file = tmp_path / "optm" / "fig4d.json"
    record = json.loads(record_file.read_text("utf-8"))
    record_file.write_text(json.dumps(record | {"parameters": {"runs": 1}}), "utf-8")
    rows = [row for row in judge_claims(load_paper("optm"), tmp_path) if "fig4d" in row["source"]]
    assert rows
    for row in rows:
        assert row["verdict"] == NOT_COMPUTED
        assert row["ours"] == "optm/fig4d.csv has other parameters than in the paper."
