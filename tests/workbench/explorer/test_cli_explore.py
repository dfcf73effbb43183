"""Test `workbench explore` as a process, and the page that it exports."""

from __future__ import annotations

import html
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.cli import main
from workbench.explorer.given import (
    make_suggestions,
    read_arguments,
    read_option_values,
    write_command_line,
    write_python_call,
)
from workbench.explorer.page import build_page
from workbench.models.modulo.frontier import compute_delta_frontier
from workbench.pipeline.registry import get_family, list_families

EXPLORE = [sys.executable, "-P", "-m", "workbench", "explore"]


def run(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*EXPLORE, *words], capture_output=True, text=True, timeout=300, cwd=cwd)


def here(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Run a command in this process. Return (exit code, stdout, stderr)."""
    with pytest.raises(SystemExit) as stop:
        main(list(words))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def test_one_line_then_ctrl_c(tmp_path: Path) -> None:
    server = subprocess.Popen(
        [
            *EXPLORE,
            "--no-browser",
            "--port=0",
            "--family=modulo",
            "--n",
            "4",
            "--max-shift",
            "1",
            "--epsilon",
            "1",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert server.stdout is not None
    try:
        line = server.stdout.readline()
        found = re.search(
            r"http://127\.0\.0\.1:\d+/\?token=\S{32}#family=modulo&n=4&max_shift=1&epsilon=1$",
            line.strip(),
        )
        assert found is not None, line
        with urllib.request.urlopen(found[0].partition("#")[0], timeout=300) as answer:
            assert b"dp-workbench" in answer.read()
    finally:
        server.send_signal(signal.SIGINT)
        try:
            out, err = server.communicate(timeout=300)
        finally:
            server.kill()
    assert server.returncode == 0
    assert out == ""
    assert err.strip() == "Stopped."


def test_no_command_line_shows_the_token(tmp_path: Path) -> None:
    """The browser opens a private file that forwards to the server and is removed with it."""
    said, browser = tmp_path / "said", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" > {said}.part\nmv {said}.part {said}\n')
    browser.chmod(0o700)
    server = subprocess.Popen(
        [*EXPLORE, "--family=modulo", "--n", "4", "--max-shift", "1", "--epsilon", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "BROWSER": f"{browser} %s"},
    )
    assert server.stdout is not None
    try:
        address = server.stdout.readline().removeprefix("Explorer: ").strip()
        end = time.monotonic() + 300
        while not said.exists() and time.monotonic() < end:
            time.sleep(0.05)
        token = address.partition("token=")[2].partition("#")[0]
        words = said.read_text().strip()
        assert len(token) == 32
        assert token not in words
        forward = Path(words.removeprefix("file://"))
        assert (forward.stat().st_mode & 0o777, forward.parent.stat().st_mode & 0o777) == (
            0o600,
            0o700,
        )
        goes = re.search(r'content="0;url=(.*?)"', forward.read_text())
        assert goes is not None
        assert html.unescape(goes[1]) == address
    finally:
        server.send_signal(signal.SIGINT)
        try:
            server.communicate(timeout=300)
        finally:
            server.kill()
    assert not forward.parent.exists()


@pytest.mark.parametrize(
    ("name", "moment"), [("SIGTERM", "at once"), ("SIGTERM", "serving"), ("SIGHUP", "serving")]
)
def test_a_signal_leaves_no_temporary_file(tmp_path: Path, name: str, moment: str) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    server = subprocess.Popen(
        EXPLORE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "BROWSER": "true %s", "TMPDIR": str(folder)},
    )
    assert server.stdout is not None
    try:
        address = server.stdout.readline().removeprefix("Explorer: ").strip()
        if moment == "serving":
            with urllib.request.urlopen(address, timeout=300) as answer:
                assert answer.read()
            assert list(folder.iterdir())
        server.send_signal(getattr(signal, name))
        server.communicate(timeout=300)
    finally:
        server.kill()
        server.wait()
    assert server.returncode == 0
    assert list(folder.iterdir()) == []


def data_of(path: Path) -> dict[str, Any]:
    text = path.read_text("utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_an_export_is_whole_and_needs_nobody(tmp_path: Path) -> None:
    made = run(
        "--export",
        "noise.html",
        "--family",
        "modulo",
        "--n",
        "8",
        "--max-shift",
        "3",
        "--epsilon=1.5",
        "--delta",
        "0.1212",
        "--directed",
        "--notion",
        "pdp",
        cwd=tmp_path,
    )
    assert made.returncode == 0, made.stderr
    text = (tmp_path / "noise.html").read_text("utf-8")
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//|@import|url\(""", text)
    assert len(text) < 250_000
    export = data_of(tmp_path / "noise.html")["export"]
    design = wb.design(
        wb.ModuloNoise(n=8, max_shift=3, directed=True), epsilon=1.5, delta=0.1212, notion="pdp"
    )
    assert export["view"]["objective"] == design.objective
    assert export["view"]["certified"]
    assert design.certificate is not None
    assert export["view"]["certificate"] == design.certificate.content().decode()
    pieces = [part for part in export["rivals"]["overlays"]["delta"] if part["look"] == "segments"]
    exact = compute_delta_frontier((9,), ((1,), (2,), (3,)), 1.5)
    assert pieces[0]["x"][1::2] == pytest.approx([piece.delta_high for piece in exact])
    assert export["errors"] == {}


def test_an_export_reads_a_file_of_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "prior.csv").write_text("label,weight\n0,1\n1,2\n2,1\n")
    made = run(
        "--export",
        "labels.html",
        "--family",
        "labels",
        "--labels",
        "prior.csv",
        "--epsilon",
        "1",
        cwd=tmp_path,
    )
    assert made.returncode == 0, made.stderr
    assert data_of(tmp_path / "labels.html")["export"]["view"]["certified"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--epsilon", "1"], "family must be given"),
        (["--family", "nothing"], "family must be one of"),
        (["--family", "modulo", "--colour", "red"], "argument must be an option of modulo"),
        (["--family", "modulo", "--n"], "--n must have a value"),
        (["--export", "a.html"], "family must be given"),
        (
            ["--export", "a.txt", "--family", "modulo", "--n", "4"],
            "export must be named .html or .htm",
        ),
        (
            ["--export", "a.html", "--family", "modulo", "--n", "4", "--max-shift", "1"],
            "epsilon must be given",
        ),
    ],
)
def test_mistakes_are_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = here(capsys, "explore", *words)
    assert code == 2
    assert said in err
    assert len(err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_text_that_looks_like_a_tag_ends_nothing() -> None:
    hostile = "</script><script>alert(1)</script><!-- &amp;"
    made = build_page(hostile, {"mode": "document", "title": hostile, "sections": []})
    assert made.count("<script") == 2
    assert "alert(1)</script>" not in made
    assert json.loads(re.search(r'id="data">(.*?)</script>', made)[1])["title"] == hostile  # type: ignore[index]


@pytest.mark.parametrize("name", [kind.name for kind in list_families()])
def test_what_is_copied_designs_what_is_shown(name: str) -> None:
    """The command is parsed to the same texts again, and the Python call runs."""
    import shlex

    fewer = {"0..7": "0..3", "0..20": "0..4"}
    kind = get_family(name)
    for example in make_suggestions(kind)["examples"][:2]:
        given = {
            option: fewer.get(value, value) if isinstance(value, str) else value
            for option, value in example["given"].items()
        }
        values = read_option_values(kind, given)
        words = shlex.split(write_command_line(kind, given))
        assert words[:3] == ["workbench", "design", name]
        assert read_arguments(kind, words[3:]) == given
        scope: dict[str, Any] = {}
        exec(write_python_call(kind, given), scope)
        with kind.open_session(
            kind.make_request_from_values(values | {"check": "certify"})
        ) as session:
            assert scope["d"].row() == session.design().row()


def test_commands_write_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    noise = ["design", "modulo", "--n", "4", "--max-shift", "1", "--epsilon", "1"]
    code, out, err = here(capsys, *noise, "--save", "noise.json", "--html", "design.html", "--json")
    assert code == 0, err
    said = json.loads(out)
    (row,) = [
        dict(part["rows"])
        for section in data_of(tmp_path / "design.html")["sections"]
        for part in section["parts"]
        if part["kind"] == "numbers"
    ]
    assert row["objective"] == said["objective"]
    assert here(capsys, "audit", "noise.json", "--html", "audit.html", "--json")[0] == 0
    facts = dict(data_of(tmp_path / "audit.html")["sections"][0]["parts"][0]["rows"])
    assert facts["certificate"].startswith("The mechanism is private at the requested budget")
    for words in (
        [*noise, "--save", "a.html", "--html", "a.html"],
        ["audit", "noise.json", "--html", "noise.json"],
        [*noise, "--html", "page.txt"],
        [*noise, "--html", "missing/page.html"],
    ):
        code, _, err = here(capsys, *words)
        assert code == 2
        assert err.startswith("InvalidRequest")


def test_a_family_of_another_package_is_explored(tmp_path: Path) -> None:
    """The explorer needs no code for the family."""
    package = Path(__file__).parents[2] / "plugin_package"
    words = ["--export", "response.html", "--family", "response", "--k", "3", "--epsilon", "1"]
    places = os.pathsep.join([str(package), *filter(None, [os.environ.get("PYTHONPATH")])])
    made = subprocess.run(
        [*EXPLORE, *words],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": places},
    )
    assert made.returncode == 0, made.stderr
    export = data_of(tmp_path / "response.html")["export"]
    assert export["view"]["certified"]
    assert [figure["kind"] for figure in export["view"]["figures"]] == ["heat"]
    assert export["view"]["row"]["oracle_agrees"]
    assert set(export["along"]) == {"epsilon"}
    assert len(export["steps"]) > 5
    assert export["errors"] == {}
