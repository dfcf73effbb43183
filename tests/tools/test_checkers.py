"""Both checkers: hostile files, old versions of Python, exit codes and output."""

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


def write(path: Path, content: bytes | str | Any) -> str:
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
def test_what_cannot_be_read_is_not_called_false(
    tool: ModuleType, content: bytes, tmp_path: Path
) -> None:
    path = write(
        tmp_path / "f.json", content.replace(b'"X"', json.dumps(FORMATS[tool.__name__]).encode())
    )
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
        assert [tool.main([str(place)]) for place in places] == [2] * 6


@pytest.mark.parametrize(
    "error", [MemoryError, OverflowError, RecursionError, ArithmeticError, KeyError, AssertionError]
)
def test_an_error_is_no_verdict(
    tool: ModuleType, error: type[Exception], tmp_path: Path, monkeypatch
) -> None:
    def failing(data: object) -> str:
        raise error("1")

    monkeypatch.setattr(tool, "prove_statement", failing)
    assert tool.main([write(tmp_path / "f.json", "{}")]) == 2


def test_a_file_that_takes_too_long_is_left_undecided(
    tool: ModuleType, tmp_path: Path, monkeypatch, capsys
) -> None:
    def endless(data: object) -> str:
        while True:
            pass

    monkeypatch.setattr(tool, "prove_statement", endless)
    monkeypatch.setattr(tool, "MAX_CPU_SECONDS", 0.05)
    assert tool.main([write(tmp_path / "f.json", "{}")]) == 2
    assert "too large" in capsys.readouterr().out


def test_a_file_writes_neither_lines_nor_colours(
    tool: ModuleType, tmp_path: Path, monkeypatch, capsys
) -> None:
    forged = "x\nother.json: proven: \x1b[32mall\u202e\x07"

    def refused(data: object) -> str:
        raise tool.Refused("false", forged)

    monkeypatch.setattr(tool, "prove_statement", refused)
    path = write(tmp_path / "a\nb.json", "{}")
    assert tool.main([path]) == 1
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) == 1
    assert printed.strip().isprintable()
    assert "x\\nother.json" in printed


def test_a_terminal_without_greek_letters_changes_no_exit_code(
    tool: ModuleType, tmp_path: Path
) -> None:
    path = write(tmp_path / "ε.json", "{}")
    command = [sys.executable, str(TOOLS / f"{tool.__name__}.py"), path]
    done = subprocess.run(
        command,
        capture_output=True,
        check=False,
        timeout=600,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (2, b"")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-"]])
def test_without_a_file_nothing_is_proven_or_false(tool: ModuleType, arguments: list[str]) -> None:
    command = [sys.executable, str(TOOLS / f"{tool.__name__}.py"), *arguments]
    assert subprocess.run(command, capture_output=True, check=False, timeout=600).returncode == 2


def test_a_verdict_that_cannot_be_printed_is_not_false(tool: ModuleType, tmp_path: Path) -> None:
    path = write(
        tmp_path / "f.json", CERTIFICATE if tool.__name__ == "check_certificate" else FORMULA
    )
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, str(TOOLS / f"{tool.__name__}.py"), path],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=600,
        )
    assert (done.returncode, done.stderr) == (2, b"")
    closed = subprocess.run(
        [
            "bash",
            "-c",
            '"$0" "$1" "$2" >&- 2>&-',
            sys.executable,
            str(TOOLS / f"{tool.__name__}.py"),
            path,
        ],
        check=False,
        timeout=600,
    )
    assert closed.returncode == 0


NEWER = {
    "pairwise",
    "removeprefix",
    "removesuffix",
    "bit_count",
    "batched",
    "cache",
    "nextafter",
    "sumprod",
}


def test_the_source_is_that_of_an_old_python(tool: ModuleType) -> None:
    """Python 3.6 and 3.7 must read it to say that they are too old; 3.8 runs it."""
    source = (TOOLS / f"{tool.__name__}.py").read_text("utf-8")
    tree = ast.parse(source, feature_version=(3, 6))
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            assert node.attr not in NEWER
            assert not (
                isinstance(node.value, ast.Name) and node.value.id == "math" and node.attr == "lcm"
            )
        elif isinstance(node, ast.ImportFrom):
            assert node.module != "__future__"
            assert not NEWER & {alias.name for alias in node.names}
        elif isinstance(node, ast.Call):
            assert "strict" not in {word.arg for word in node.keywords}
            if isinstance(node.func, ast.Attribute) and node.func.attr in ("gcd", "lcm"):
                assert len(node.args) == 2
                assert not any(isinstance(argument, ast.Starred) for argument in node.args)
            if isinstance(node.func, ast.Name):
                assert node.func.id in own or node.func.id not in NEWER
    code = "import sys; sys.version_info = (3, 7); exec(compile(open(sys.argv[1]).read(), 'f', 'exec'))"
    command = [sys.executable, "-c", code, str(TOOLS / f"{tool.__name__}.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, done.stdout.count("3.8")) == (2, 1)


@pytest.mark.parametrize("version", ["3.7", "3.8", "3.9", "3.10", "3.12", "3.13"])
def test_other_versions_of_python(tool: ModuleType, version: str, tmp_path: Path) -> None:
    program = shutil.which(f"python{version}")
    if (
        program is None
        or subprocess.run(
            [program, "-c", ""], capture_output=True, check=False, timeout=600
        ).returncode
    ):
        pytest.skip(f"There is no Python {version}.")
    samples = {"check_certificate": CERTIFICATE, "check_formula": FORMULA}
    path = write(tmp_path / "f.json", samples[tool.__name__])
    done = subprocess.run(
        [program, str(TOOLS / f"{tool.__name__}.py"), path],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == (2 if version == "3.7" else 0), done.stdout + done.stderr


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

FORMULA = {  # randomised response among three answers: 2/(x + 2)
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
