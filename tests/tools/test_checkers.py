"""Tests of both independent checkers: hostile files, versions of Python, exit codes and output.

The exit code of a checker is 0 if all files are proven, 1 if a claim is false, and 2 if a file
cannot be decided.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
FORMATS = {"check_certificate": "dp-workbench certificate", "check_formula": "dp-workbench formula"}


@pytest.fixture(params=sorted(FORMATS))
def tool(request: pytest.FixtureRequest) -> ModuleType:
    """One of the two checkers as a module."""
    spec = importlib.util.spec_from_file_location(request.param, TOOLS / f"{request.param}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_file(path: Path, content: bytes | str | Any) -> str:
    """Write bytes, a text, or an object as JSON, and return the path as a text."""
    if not isinstance(content, (bytes, str)):
        content = json.dumps(content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"format": "X", "format": "X"}',
        b'{"format": "X", "version": Infinity}',
        b'{"format": "X", "version": NaN}',
        b'{"format": "X", "version": 1e999}',
        b'{"format": "X", "version": ' + b"1" * 5000 + b"}",
        b'{"format": "X", "version": "\\ud800"}',
        b'{"format": "X", "version": 1}',
        b'{"format": "X", "version": true}',
        b'{"format": "X", "version": 2}',
    ],
)
def test_a_file_that_cannot_be_read_is_undecided(
    tool: ModuleType, content: bytes, tmp_path: Path
) -> None:
    """In each content, "X" stands for the name of the format that the checker reads."""
    format_name = json.dumps(FORMATS[tool.__name__]).encode()
    path = write_file(tmp_path / "f.json", content.replace(b'"X"', format_name))
    assert tool.main([path]) == 2


def test_no_device_pipe_socket_or_folder_is_read(tool: ModuleType, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        places = [
            tmp_path,
            tmp_path / "none",
            tmp_path / "pipe",
            tmp_path / "socket",
            "/dev/zero",
            "/dev/null",
        ]
        for place in places:
            assert tool.main([str(place)]) == 2, place


@pytest.mark.parametrize(
    "error", [MemoryError, OverflowError, RecursionError, ArithmeticError, KeyError, AssertionError]
)
def test_a_file_is_undecided_after_an_error_of_the_checker(
    tool: ModuleType, error: type[Exception], tmp_path: Path, monkeypatch
) -> None:
    def raise_error(data: object) -> str:
        """Fail with the error, as a checker with a bug."""
        raise error("1")

    monkeypatch.setattr(tool, "prove_statement", raise_error)
    assert tool.main([write_file(tmp_path / "f.json", "{}")]) == 2


def test_a_file_is_undecided_at_the_time_limit(
    tool: ModuleType, tmp_path: Path, monkeypatch, capsys
) -> None:
    def run_forever(data: object) -> str:
        """Use CPU time without end."""
        while True:
            pass

    monkeypatch.setattr(tool, "prove_statement", run_forever)
    monkeypatch.setattr(tool, "MAX_CPU_SECONDS", 0.05)
    assert tool.main([write_file(tmp_path / "f.json", "{}")]) == 2
    assert "too large" in capsys.readouterr().out


def test_texts_of_a_file_are_printed_in_one_line_without_control_characters(
    tool: ModuleType, tmp_path: Path, monkeypatch, capsys
) -> None:
    forged_line = "x\nother.json: proven: \x1b[32mall\u202e\x07"

    def refuse(data: object) -> str:
        """Refuse a file with a reason that forges the line of another file."""
        raise tool.Refused("false", forged_line)

    monkeypatch.setattr(tool, "prove_statement", refuse)
    path = write_file(tmp_path / "a\nb.json", "{}")
    assert tool.main([path]) == 1
    output = capsys.readouterr().out
    assert len(output.splitlines()) == 1
    assert output.strip().isprintable()
    assert "x\\nother.json" in output


def make_command(tool: ModuleType, *arguments: str, python: str = sys.executable) -> list[str]:
    """Return the command line that runs a checker."""
    return [python, str(TOOLS / f"{tool.__name__}.py"), *arguments]


def write_valid_file(tool: ModuleType, folder: Path) -> str:
    """Write a file that the checker proves, and return its path."""
    content = CERTIFICATE if tool.__name__ == "check_certificate" else FORMULA
    return write_file(folder / "f.json", content)


def test_a_terminal_without_greek_letters_changes_no_exit_code(
    tool: ModuleType, tmp_path: Path
) -> None:
    path = write_file(tmp_path / "ε.json", "{}")
    process = subprocess.run(
        make_command(tool, path),
        capture_output=True,
        check=False,
        timeout=600,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert process.returncode == 2
    assert process.stderr == b""


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-"]])
def test_without_a_file_nothing_is_decided(tool: ModuleType, arguments: list[str]) -> None:
    command = make_command(tool, *arguments)
    assert subprocess.run(command, capture_output=True, check=False, timeout=600).returncode == 2


def test_a_verdict_that_cannot_be_printed_is_undecided(tool: ModuleType, tmp_path: Path) -> None:
    with open("/dev/full", "w") as full_device:
        process = subprocess.run(
            make_command(tool, write_valid_file(tool, tmp_path)),
            stdout=full_device,
            stderr=subprocess.PIPE,
            check=False,
            timeout=600,
        )
    assert process.returncode == 2
    assert process.stderr == b""


def test_closed_output_streams_change_no_exit_code(tool: ModuleType, tmp_path: Path) -> None:
    command = make_command(tool, write_valid_file(tool, tmp_path))
    close_streams = ["bash", "-c", '"$0" "$1" "$2" >&- 2>&-']
    process = subprocess.run([*close_streams, *command], check=False, timeout=600)
    assert process.returncode == 0


# Names of the standard library that Python 3.8 does not have.
NEWER_NAMES = {
    "pairwise",
    "removeprefix",
    "removesuffix",
    "bit_count",
    "batched",
    "cache",
    "nextafter",
    "sumprod",
}


def test_the_source_uses_only_syntax_and_functions_of_python_3_8(tool: ModuleType) -> None:
    """The syntax is even that of Python 3.6, which must read the file to print that it is too old.

    Before Python 3.9, math.gcd takes exactly two arguments and math.lcm does not exist.
    """
    source = (TOOLS / f"{tool.__name__}.py").read_text("utf-8")
    tree = ast.parse(source, feature_version=(3, 6))
    own_functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            assert node.attr not in NEWER_NAMES
            assert ast.unparse(node) != "math.lcm"
        elif isinstance(node, ast.ImportFrom):
            assert node.module != "__future__"
            assert not NEWER_NAMES & {alias.name for alias in node.names}
        elif isinstance(node, ast.Call):
            assert "strict" not in {keyword.arg for keyword in node.keywords}
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("gcd", "lcm"):
                assert len(node.args) == 2
                assert not any(isinstance(argument, ast.Starred) for argument in node.args)
            if isinstance(node.func, ast.Name):
                assert node.func.id in own_functions or node.func.id not in NEWER_NAMES


def test_python_3_7_is_refused_with_the_needed_version(tool: ModuleType) -> None:
    code = (
        "import sys\n"
        "sys.version_info = (3, 7)\n"
        "exec(compile(open(sys.argv[1]).read(), 'f', 'exec'))\n"
    )
    command = [sys.executable, "-c", code, str(TOOLS / f"{tool.__name__}.py")]
    process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert process.returncode == 2
    assert process.stdout.count("3.8") == 1


@pytest.mark.parametrize("version", ["3.7", "3.8", "3.9", "3.10", "3.12", "3.13"])
def test_installed_versions_of_python_run_the_checker(
    tool: ModuleType, version: str, tmp_path: Path
) -> None:
    python = shutil.which(f"python{version}")
    is_usable = False
    if python is not None:  # It may be a stub that fails.
        trial = subprocess.run([python, "-c", ""], capture_output=True, check=False, timeout=600)
        is_usable = trial.returncode == 0
    if python is None or not is_usable:
        pytest.skip(f"There is no Python {version}.")
    process = subprocess.run(
        make_command(tool, write_valid_file(tool, tmp_path), python=python),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    expected_code = 2 if version == "3.7" else 0
    assert process.returncode == expected_code, process.stdout + process.stderr


# Noise modulo 3 with the probabilities 1/2, 1/4 and 1/4: pure DP at ln 2 = 0.693.
CERTIFICATE = {
    "format": "dp-workbench certificate",
    "version": 1,
    "mechanism": {
        "kind": "noise",
        "sizes": [3],
        "shifts": [[1]],
        "directed": False,
        "total": "0x4",
        "weights": ["0x2", "0x1", "0x1"],
    },
    "claim": {"notion": "pure", "epsilon": "0.7", "delta": "0"},
    "composed": None,
    "objective": {"name": "error-rate", "value": "0.5", "losses": None},
    "bias": None,
    "record": {},
}

# The optimal noise modulo 3 is randomized response. Its error rate is 2/(x + 2) with x = e^ε.
FORMULA = {
    "what": "best noise modulo 3, error-rate loss",
    "variable": "x = exp(epsilon)",
    "pieces": [
        {
            "epsilon": [0.0, None],
            "numerator": [2],
            "denominator": [2, 1],
            "delta": [0.0, 0.0],
            "formula": "2 / (e^ε + 2)",
            "proven": True,
        }
    ],
    "open": [],
    "format": "dp-workbench formula",
    "version": 1,
    "question": {"family": "modulo", "options": {"sizes": [3], "shifts": [1]}},
    "epsilon": None,
    "delta": ["0", "0"],
    "regions": [
        {
            "low": "1",
            "high": None,
            "sample": "2",
            "feasible": True,
            "bases": [["000", "++00+00"]] * 2,
        }
    ],
}
