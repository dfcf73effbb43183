"""Test the command `workbench explore`: its server, its signals and errors, and exported pages.

The last tests are about pages that other commands write (`--html`).
"""

from __future__ import annotations

import html
import json
import os
import re
import shlex
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
from workbench.pipeline.family import Family
from workbench.pipeline.registry import get_family, list_families

EXPLORE = [sys.executable, "-P", "-m", "workbench", "explore"]
# A process must answer or end within this time.
PROCESS_SECONDS = 300
# A small design, as options of `workbench explore`.
SMALL_NOISE = ["--family", "modulo", "--n", "4", "--max-shift", "1", "--epsilon", "1"]
# Only the owner may read or write.
PRIVATE_FILE_MODE = 0o600
PRIVATE_FOLDER_MODE = 0o700


def run_explore(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run `workbench explore` in a process of its own, in the folder cwd."""
    return subprocess.run(
        [*EXPLORE, *arguments], capture_output=True, text=True, timeout=PROCESS_SECONDS, cwd=cwd
    )


def start_explore(cwd: Path, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    """Start the server of `workbench explore`, in the folder cwd.

    variables: environment variables to set.
    """
    return subprocess.Popen(
        [*EXPLORE, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={**os.environ, **variables},
    )


def read_address(server: subprocess.Popen[str]) -> str:
    """Return the address that a server prints when it is ready."""
    assert server.stdout is not None
    return server.stdout.readline().removeprefix("Explorer: ").strip()


def run_here(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run a command in this process. Return (exit code, stdout, stderr)."""
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def read_page_data(path: Path) -> dict[str, Any]:
    """Return the JSON data in a page."""
    text = path.read_text("utf-8")
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', text)
    assert match is not None
    data: dict[str, Any] = json.loads(match[1])
    return data


# The server.


def test_the_server_prints_one_address_and_ends_at_ctrl_c(tmp_path: Path) -> None:
    server = start_explore(tmp_path, "--no-browser", "--port=0", *SMALL_NOISE)
    try:
        address = read_address(server)
        pattern = r"http://127\.0\.0\.1:\d+/\?token=\S{32}#family=modulo&n=4&max_shift=1&epsilon=1"
        assert re.fullmatch(pattern, address), address
        without_fragment = address.partition("#")[0]
        with urllib.request.urlopen(without_fragment, timeout=PROCESS_SECONDS) as answer:
            assert b"dp-workbench" in answer.read()
    finally:
        server.send_signal(signal.SIGINT)
        try:
            out, err = server.communicate(timeout=PROCESS_SECONDS)
        finally:
            server.kill()
    assert server.returncode == 0
    assert out == ""
    assert err.strip() == "Stopped."


def write_recording_browser(folder: Path) -> tuple[Path, Path]:
    """Write a browser that writes its arguments to a file. Return the paths of both files.

    The file of the arguments is moved when it is complete.
    """
    browser = folder / "browser"
    arguments_path = folder / "arguments"
    browser.write_text(
        f'#!/bin/sh\necho "$@" > {arguments_path}.part\nmv {arguments_path}.part {arguments_path}\n'
    )
    browser.chmod(0o700)
    return browser, arguments_path


def read_mode(path: Path) -> int:
    """Return the permission bits of a file or folder."""
    return path.stat().st_mode & 0o777


def test_the_browser_gets_the_token_in_a_private_file(tmp_path: Path) -> None:
    """Other users can see command lines. So the browser opens a file that forwards to the server,
    and the file is removed with the server.
    """
    browser, arguments_path = write_recording_browser(tmp_path)
    server = start_explore(tmp_path, *SMALL_NOISE, BROWSER=f"{browser} %s")
    try:
        address = read_address(server)
        end = time.monotonic() + PROCESS_SECONDS
        while not arguments_path.exists() and time.monotonic() < end:
            time.sleep(0.05)
        token = address.partition("token=")[2].partition("#")[0]
        browser_arguments = arguments_path.read_text().strip()
        assert len(token) == 32
        assert token not in browser_arguments
        forwarding_file = Path(browser_arguments.removeprefix("file://"))
        assert read_mode(forwarding_file) == PRIVATE_FILE_MODE
        assert read_mode(forwarding_file.parent) == PRIVATE_FOLDER_MODE
        target = re.search(r'content="0;url=(.*?)"', forwarding_file.read_text())
        assert target is not None
        assert html.unescape(target[1]) == address
    finally:
        server.send_signal(signal.SIGINT)
        try:
            server.communicate(timeout=PROCESS_SECONDS)
        finally:
            server.kill()
    assert not forwarding_file.parent.exists()


@pytest.mark.parametrize(
    ("signal_name", "has_served"), [("SIGTERM", False), ("SIGTERM", True), ("SIGHUP", True)]
)
def test_a_signal_ends_the_server_without_temporary_files(
    tmp_path: Path, signal_name: str, has_served: bool
) -> None:
    if signal.getsignal(getattr(signal, signal_name)) is signal.SIG_IGN:
        # New processes ignore it as well, for example SIGHUP under `nohup`.
        pytest.skip(f"{signal_name} is ignored here.")
    folder = tmp_path / "temporary"
    folder.mkdir()
    server = start_explore(tmp_path, BROWSER="true %s", TMPDIR=str(folder))
    try:
        address = read_address(server)
        if has_served:
            with urllib.request.urlopen(address, timeout=PROCESS_SECONDS) as answer:
                assert answer.read()
            assert list(folder.iterdir())
        server.send_signal(getattr(signal, signal_name))
        server.communicate(timeout=PROCESS_SECONDS)
    finally:
        server.kill()
        server.wait()
    assert server.returncode == 0
    assert list(folder.iterdir()) == []


# Exported pages.


@pytest.fixture(scope="module")
def exported_noise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Export the page of noise modulo 9 by the command, and return its path."""
    folder = tmp_path_factory.mktemp("export")
    arguments = "--export noise.html --family modulo --n 8 --max-shift 3 --epsilon=1.5 "
    arguments += "--delta 0.1212 --directed --notion pdp"
    process = run_explore(*arguments.split(), cwd=folder)
    assert process.returncode == 0, process.stderr
    return folder / "noise.html"


def test_an_exported_page_is_small_and_fetches_nothing(exported_noise: Path) -> None:
    """It stays small enough to be sent by mail."""
    text = exported_noise.read_text("utf-8")
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//|@import|url\(""", text)
    assert len(text) < 250_000


def test_an_exported_page_has_the_certified_design(exported_noise: Path) -> None:
    export = read_page_data(exported_noise)["export"]
    design = wb.design(
        wb.ModuloNoise(n=8, max_shift=3, directed=True), epsilon=1.5, delta=0.1212, notion="pdp"
    )
    assert export["errors"] == {}
    assert export["view"]["objective"] == design.objective
    assert export["view"]["certified"]
    assert design.certificate is not None
    assert export["view"]["certificate"] == design.certificate.content().decode()


def test_the_curve_over_delta_of_an_exported_page_has_the_exact_pieces(
    exported_noise: Path,
) -> None:
    """The x of the curve lists the two ends of every piece."""
    curves = read_page_data(exported_noise)["export"]["rivals"]["overlays"]["delta"]
    exact_curve = next(curve for curve in curves if curve["look"] == "segments")
    pieces = compute_delta_frontier(sizes=(9,), shifts=((1,), (2,), (3,)), epsilon=1.5)
    assert exact_curve["x"][1::2] == pytest.approx([piece.delta_high for piece in pieces])


def test_an_export_reads_a_file_that_an_option_names(tmp_path: Path) -> None:
    (tmp_path / "prior.csv").write_text("label,weight\n0,1\n1,2\n2,1\n")
    arguments = "--export labels.html --family labels --labels prior.csv --epsilon 1"
    process = run_explore(*arguments.split(), cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    assert read_page_data(tmp_path / "labels.html")["export"]["view"]["certified"]


@pytest.mark.parametrize(
    ("arguments", "message"),
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
def test_wrong_arguments_give_an_error_of_one_line_and_no_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run_here(capsys, "explore", *arguments)
    assert code == 2
    assert message in err
    assert len(err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_text_with_tags_is_not_read_as_html() -> None:
    """The page has two scripts of its own: its data and its program."""
    hostile = "</script><script>alert(1)</script><!-- &amp;"
    page = build_page(hostile, {"mode": "document", "title": hostile, "sections": []})
    assert page.count("<script") == 2
    assert "alert(1)</script>" not in page
    data = re.search(r'id="data">(.*?)</script>', page)
    assert data is not None
    assert json.loads(data[1])["title"] == hostile


# Smaller problems than those of the examples, so that the test is fast.
FASTER_VALUES = {"0..7": "0..3", "0..20": "0..4"}


def list_example_options(family: Family) -> list[dict[str, Any]]:
    """Return the options of the first two examples that the page suggests for a family."""
    options = []
    for example in make_suggestions(family)["examples"][:2]:
        faster_options = {}
        for name, value in example["given"].items():
            is_text = isinstance(value, str)
            faster_options[name] = FASTER_VALUES.get(value, value) if is_text else value
        options.append(faster_options)
    return options


@pytest.mark.parametrize("name", [family.name for family in list_families()])
def test_a_copied_command_has_the_options_of_the_page(name: str) -> None:
    family = get_family(name)
    for options in list_example_options(family):
        program, command, family_name, *arguments = shlex.split(write_command_line(family, options))
        assert (program, command, family_name) == ("workbench", "design", name)
        assert read_arguments(family, arguments) == options


@pytest.mark.parametrize("name", [family.name for family in list_families()])
def test_a_copied_python_call_gives_the_design_of_the_page(name: str) -> None:
    """The copied code assigns the design to the variable d."""
    family = get_family(name)
    for options in list_example_options(family):
        variables: dict[str, Any] = {}
        exec(write_python_call(family, options), variables)
        values = read_option_values(family, options) | {"check": "certify"}
        with family.open_session(family.make_request_from_values(values)) as session:
            assert variables["d"].row() == session.design().row()


# Pages of other commands.


# The same design, by the command `workbench design`.
DESIGN_NOISE = ["design", *SMALL_NOISE[1:]]


def test_the_page_of_design_has_its_numbers_and_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ["--html", "design.html", "--json"]
    code, out, err = run_here(capsys, *DESIGN_NOISE, *options)
    assert code == 0, err
    export = read_page_data(tmp_path / "design.html")["export"]
    assert export["view"]["row"]["objective"] == json.loads(out)["objective"]
    # The command of the page is "workbench design modulo ...".
    assert export["view"]["command"].split()[1:3] == DESIGN_NOISE[:2]
    assert export["along"]


def test_the_page_of_audit_states_whether_the_mechanism_is_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run_here(capsys, *DESIGN_NOISE, "--save", "noise.json")
    code, _, err = run_here(capsys, "audit", "noise.json", "--html", "audit.html", "--json")
    assert code == 0, err
    facts_part = read_page_data(tmp_path / "audit.html")["sections"][0]["parts"][0]
    certificate_text = dict(facts_part["rows"])["certificate"]
    assert certificate_text.startswith("The mechanism is private at the requested budget")


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([*DESIGN_NOISE, "--save", "a.html", "--html", "a.html"], id="same file"),
        pytest.param(["audit", "noise.json", "--html", "noise.json"], id="input file"),
        pytest.param([*DESIGN_NOISE, "--html", "page.txt"], id="not HTML"),
        pytest.param([*DESIGN_NOISE, "--html", "missing/page.html"], id="missing folder"),
    ],
)
def test_a_page_is_not_written_to_a_wrong_path(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    code, *_ = run_here(capsys, *DESIGN_NOISE, "--save", "noise.json")
    assert code == 0
    code, _, err = run_here(capsys, *arguments)
    assert code == 2
    assert err.startswith("InvalidRequest")


def test_a_family_of_another_package_is_explored(tmp_path: Path) -> None:
    """The explorer needs no code for the family."""
    package = Path(__file__).parents[2] / "plugin_package"
    paths = os.pathsep.join([str(package), *filter(None, [os.environ.get("PYTHONPATH")])])
    arguments = "--export response.html --family response --k 3 --epsilon 1"
    process = subprocess.run(
        [*EXPLORE, *arguments.split()],
        capture_output=True,
        text=True,
        timeout=PROCESS_SECONDS,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert process.returncode == 0, process.stderr
    export = read_page_data(tmp_path / "response.html")["export"]
    assert export["view"]["certified"]
    assert [figure["kind"] for figure in export["view"]["figures"]] == ["heat"]
    assert export["view"]["row"]["oracle_agrees"]
    assert set(export["along"]) == {"epsilon"}
    assert len(export["steps"]) > 5
    assert export["errors"] == {}
