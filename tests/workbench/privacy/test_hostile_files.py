"""Test that malformed, huge and hostile files are refused with a reason, in bounded memory and time."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from itertools import permutations
from pathlib import Path

import pytest
from certificate_samples import iter_digit_texts, noise, replace_entry
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.io.files import MAX_FILE_BYTES, parse_json, read_text
from workbench.privacy.certificate_file import (
    CERTIFIABLE_KINDS,
    UNCERTIFIABLE_KINDS,
    certificate_from_dict,
    save,
)


def write(path: Path, content: bytes | str) -> Path:
    """Write a file and return its path."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "JSON"),
        (b"\xff\xfe", "UTF-8"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": Infinity}', "Infinity"),
        (b'{"a": 1e999}', "too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "digits"),
        (b"[" * 200_000, "nested"),
        (b'{"a":' * 200_000, "nested"),
        (b"null", "entries"),
        (b"[1, 2]", "entries"),
        (b'{"format": "dp-workbench certificate"', "JSON"),
    ],
)
def test_hostile_files_give_a_reason(content, reason, tmp_path: Path):
    with pytest.raises(wb.CorruptFile, match=reason):
        wb.check(write(tmp_path / "c.json", content))


def test_paths_that_are_no_files_are_refused(tmp_path: Path):
    for path in (tmp_path, tmp_path / "missing.json"):
        with pytest.raises(wb.InvalidRequest):
            wb.check(path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(wb.InvalidRequest, match="regular"):
        wb.check(tmp_path / "pipe")
    with pytest.raises((wb.CorruptFile, wb.InvalidRequest), match=r"larger|at most|1000"):
        read_text(write(tmp_path / "big", b" " * 2000), limit=1000)
    assert MAX_FILE_BYTES < 1 << 26


def test_a_huge_file_needs_bounded_memory(tmp_path: Path):
    data = noise().to_dict()
    data["mechanism"]["sizes"] = [50_000_000]
    path = write(tmp_path / "c.json", json.dumps(data))
    (tmp_path / "long.json").write_bytes(b"[" + b"0," * (MAX_FILE_BYTES // 2) + b"0]")
    code = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
import workbench as wb
for name in sys.argv[1:]:
    try:
        wb.check(name)
    except wb.CorruptFile as error:
        print("CorruptFile", error)
"""
    command = [sys.executable, "-c", code, str(path), str(tmp_path / "long.json")]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert process.stdout.count("CorruptFile") == 2


def make_long_audit(kind: str) -> dict:
    """Return the data of a small certificate whose audit would take very long.

    Args:
        kind: "noise" or "channel" with masses of 240,000 bits, or "quantizer" with many knots.
    """
    long = ["0x1" + "0" * 60_000] * 19 + ["0x1"]
    row = {"total": hex(sum(int(k, 16) for k in long)), "weights": long}
    short = {"total": "0x32", "weights": ["0x1"] * 50}
    mechanism = {
        "noise": {
            "kind": "noise",
            "sizes": [20],
            "shifts": [[k] for k in range(1, 20)],
            "directed": False,
            **row,
        },
        "channel": {
            "kind": "channel",
            "rows": [row] * 7,
            "pairs": [*map(list, permutations(range(7), 2))],
        },
        "quantizer": {
            "kind": "quantizer",
            "knots": [*map(str, range(21))],
            "outputs": [*map(str, range(50))],
            "ends": [short] * 40,
        },
    }[kind]
    claim = {"notion": "pdp", "epsilon": "1", "delta": "1"}
    return noise().to_dict() | {"mechanism": mechanism, "claim": claim, "objective": None}


@pytest.mark.parametrize("kind", ["noise", "channel", "quantizer"])
def test_a_certificate_with_a_very_long_audit_is_refused(kind):
    with pytest.raises(wb.CorruptFile, match="units of work is refused"):
        certificate_from_dict(make_long_audit(kind))


def test_unprovable_certificates_are_not_written(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("workbench.privacy.audit_work.MAX_WORK_UNITS", 5)
    with pytest.raises(wb.NotCertified, match="proven again"):
        save(noise(), tmp_path / "c.json")
    assert not [*tmp_path.iterdir()]


def test_the_check_for_repeated_keys_takes_linear_time():
    keys = ",".join(f'"{k:x}":0' for k in range(200_000))
    start = time.process_time()
    with pytest.raises(wb.CorruptFile, match="'30d3f' appears twice"):
        parse_json(f'{{{keys},"30d3f":0}}')
    # It takes minutes if each key is compared with all others.
    assert time.process_time() - start < 60


@pytest.mark.parametrize(
    "name", ["", "x\nProven: epsilon 0", "\x1b[31m", "two words", "x" * 50, "Error"]
)
def test_the_name_of_a_loss_cannot_add_sentences_to_a_report(name):
    data = noise().to_dict()
    data["objective"] |= {"name": name, "losses": ["0"] + ["1"] * 4}
    with pytest.raises(wb.CorruptFile, match=r"a word such as squared|short string"):
        certificate_from_dict(data)


def test_a_text_with_half_a_surrogate_pair_is_refused(tmp_path: Path):
    data = noise().to_dict()
    data["record"] = {"note": "\ud800"}
    with pytest.raises(wb.CorruptFile, match="half a character"):
        wb.check(write(tmp_path / "c.json", json.dumps(data)))
    data["record"] = {"note": "\U0001f4a5"}  # JSON writes it as two escapes.
    assert wb.check(write(tmp_path / "c.json", json.dumps(data))).record["note"] == "\U0001f4a5"


def test_groups_of_many_factors_are_refused():
    data = noise().to_dict()
    ones = [1] * 99
    data["mechanism"] |= {"sizes": [5, *ones], "shifts": [[1] + [0] * 99]}
    with pytest.raises(wb.CorruptFile, match="at most 32"):
        certificate_from_dict(data)


# These modules pickle messages between a process and its child, and never a file.
PICKLING_FILES = {"comparison/run.py", "comparison/worker.py"}


def test_no_other_module_uses_pickle():
    root = Path(wb.__file__).parent
    for path in root.rglob("*.py"):
        if path.relative_to(root).as_posix() in PICKLING_FILES:
            continue
        words = {word for line in path.read_text("utf-8").splitlines() for word in line.split()}
        assert not {"pickle", "marshal", "shelve", "dill"} & words, path


VALID_CERTIFICATE = json.dumps(noise().to_dict()).encode()
fuzz_settings = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def assert_refused_or_proven(content: bytes | str, folder: Path) -> None:
    """Check a file of this content: it is refused with CorruptFile, or its claim holds."""
    path = write(folder / "c.json", content)
    try:
        certificate = wb.check(path)
    except wb.CorruptFile:
        return
    assert certificate.holds()


@fuzz_settings
@given(st.binary(max_size=300))
def test_random_bytes_are_refused_or_proven(tmp_path, content):
    assert_refused_or_proven(content, tmp_path)


@fuzz_settings
@given(
    st.integers(0, len(VALID_CERTIFICATE) - 1),
    st.integers(0, 3),
    st.binary(max_size=6),
    st.integers(0, 40),
)
def test_valid_files_with_changed_bytes_are_refused_or_proven(
    tmp_path, position, variant, new_bytes, cut_length
):
    start = VALID_CERTIFICATE[:position]
    variants = [
        start,  # Truncated.
        start + new_bytes + VALID_CERTIFICATE[position:],  # With additional bytes.
        start + VALID_CERTIFICATE[position + cut_length :],  # Without some bytes.
        start + new_bytes + VALID_CERTIFICATE[position + len(new_bytes) :],  # Overwritten.
    ]
    assert_refused_or_proven(variants[variant], tmp_path)


JSON_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        ["0x1", "0x0", "0.1", "1/3", "1e-9", "pdp", "pure", "noise", "channel", "quantizer"]
    ),
)
JSON_VALUES = st.recursive(
    JSON_LEAVES,
    lambda x: st.lists(x, max_size=4) | st.dictionaries(st.text(max_size=8), x, max_size=4),
)
ENTRY_PATHS = [path for path, _ in iter_digit_texts(json.loads(VALID_CERTIFICATE))] + [
    ("mechanism",),
    ("claim",),
    ("objective",),
    ("bias",),
    ("record",),
    ("version",),
    ("mechanism", "sizes"),
    ("mechanism", "shifts"),
    ("mechanism", "weights"),
    ("mechanism", "directed"),
    ("claim", "epsilon"),
]


@fuzz_settings
@given(st.sampled_from(ENTRY_PATHS), JSON_VALUES)
def test_valid_files_with_a_changed_entry_are_refused_or_proven(tmp_path, path, value):
    assert_refused_or_proven(
        json.dumps(replace_entry(json.loads(VALID_CERTIFICATE), path, value)).encode(), tmp_path
    )


@pytest.mark.parametrize("kind", ["label-channel", "label-noise", "no such kind"])
def test_a_mechanism_of_an_unknown_kind_is_refused(kind, tmp_path):
    """The error lists the known kinds, instead of naming a module that is missing."""
    file = tmp_path / "m.json"
    file.write_text(
        json.dumps({"format": "dp-workbench mechanism", "version": 1, "mechanism": {"kind": kind}})
    )
    with pytest.raises(wb.CorruptFile, match="must be of kind"):
        wb.load(file)


def test_every_listed_kind_has_a_class():
    for class_path in (CERTIFIABLE_KINDS | UNCERTIFIABLE_KINDS).values():
        module, name = class_path.split(":")
        assert callable(getattr(importlib.import_module(module), name).from_dict)
