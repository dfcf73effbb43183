"""Test reading and writing of files: what readers and commands refuse, file modes, full disks.

Readers only accept regular files. A pipe or a device may never end, so reading one could wait
forever.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.cli import main
from workbench.data.csv_column import read_column
from workbench.errors import CorruptFile, InvalidRequest
from workbench.io.files import read_bytes, read_text, write_atomically
from workbench.mechanisms.dyadic_laplace.stream import load_bytes
from workbench.privacy.certificate_file import check
from workbench.questions.labels import Labels
from workbench.sweeps.specification import read_spec

# Every function that reads a file of a user, by a short name.
READERS: dict[str, Callable[[Path], Any]] = {
    "load": wb.load,
    "certificate": check,
    "column": read_column,
    "labels": Labels.read,
    "labels as text": lambda path: Labels.parse(str(path) if isinstance(path, Path) else path),
    "stream": load_bytes,
    "specification": read_spec,
    "ledger": lambda path: wb.Ledger(path, create=False),
}

# Command lines with the tested path at {}. fine.csv and key are files that the commands accept.
COMMANDS = (
    "check {}",
    "audit {} --epsilon 1",
    "sample {}",
    "compose {}",
    "sweep {}",
    "results list --ledger {}",
    "design labels --labels {} --epsilon 1",
    "frontier labels --labels {} --epsilon 1 --out out",
    "design modulo --n 4 --max-shift 1 --epsilon 1 --loss prior-squared --prior {}",
    "privatise labels {} --column 1 --epsilon 1 --out o.csv",
    "privatise labels fine.csv --column 1 --epsilon 1 --out o.csv --labels {}",
    "laplace encode --epsilon 1 --ell 2 --seed-file {} fine.csv o.bits",
    "laplace encode --epsilon 1 --ell 2 --seed-file key {} o.bits",
    "laplace decode --seed-file key {}",
    "laplace decode --seed-file {} fine.csv",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with a pipe, a folder, a CSV file and a key, and return its path."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("folder").mkdir()
    Path("fine.csv").write_text("3\n4\n")
    Path("key").write_bytes(bytes(range(32)))
    Path("key").chmod(0o600)
    return tmp_path


@pytest.fixture
def set_umask() -> Iterator[Callable[[int], int]]:
    """Return os.umask. The mask of the process is restored after the test."""
    mask_before = os.umask(0o022)
    yield os.umask
    os.umask(mask_before)


def run(command: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Run a command line. Return its exit code and its text on stderr."""
    with pytest.raises(SystemExit) as stop:
        main(command.split())
    return int(stop.value.code or 0), capsys.readouterr().err


@pytest.mark.timeout(400)  # A reader that opens the pipe waits forever.
@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "path", ["pipe", "/dev/zero", "/dev/null", "folder", "none", "no/file", ""]
)
def test_every_reader_refuses_paths_that_are_no_regular_files(folder: Path, name: str, path: str):
    with pytest.raises(InvalidRequest, match=r"^\w+ must be (a|an existing|a regular) file"):
        READERS[name](Path(path))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_paths_that_are_no_regular_files(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str
):
    for path in ("pipe", "/dev/zero", "folder", "none"):
        code, err = run(command.format(path), capsys)
        assert code == 2
        assert err.startswith("InvalidRequest: "), err
        assert Path(path).name in err
        assert err.count("\n") == 1


def test_an_unreadable_file_is_refused_with_the_reason(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse_access(*_: object) -> None:
        """Raise the error of a file that the user may not read."""
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse_access)
    with pytest.raises(
        InvalidRequest, match=r"^file must be a readable file\. Got fine\.csv: Permission denied\.$"
    ):
        read_bytes("fine.csv", limit=100)


@pytest.mark.parametrize("path", [None, 3, b"x", 2.5, ["x"], "a\0b", object()])
def test_every_reader_refuses_a_path_of_a_wrong_type(path: Any):
    rule = r"(the path of a file|LOW\.\.HIGH, .* or a CSV file)"
    for name, read in READERS.items():
        # These two readers also accept texts and lists that are no paths.
        if name in ("labels as text", "specification") and isinstance(path, (list, str)):
            continue
        with pytest.raises(InvalidRequest, match=rf"^\w+ must be {rule}\. Got "):
            read(path)


def test_a_file_larger_than_the_limit_is_refused(folder: Path):
    Path("fine.csv").write_bytes(b"x" * 100)
    assert len(read_bytes("fine.csv", limit=100)) == 100
    with pytest.raises(CorruptFile, match=r"^fine.csv is larger than 99 bytes\.$"):
        read_bytes("fine.csv", limit=99)


@pytest.mark.parametrize("name", [name for name in READERS if name != "ledger"])
def test_every_reader_has_a_limit(folder: Path, name: str):
    with Path("sparse").open("wb") as file:
        file.truncate(1 << 40)  # A terabyte that uses no space on the disk.
    with pytest.raises(CorruptFile, match=r"^sparse is larger than \d+ bytes\.$"):
        READERS[name](Path("sparse"))


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="This system has no /proc.")
def test_the_limit_holds_for_a_file_that_reports_size_zero():
    with pytest.raises(CorruptFile, match="larger than 10 bytes"):
        read_text("/proc/self/maps", limit=10)


@pytest.mark.parametrize(
    ("reader", "text"),
    [
        ("load", "[1, "),
        ("load", '{"format": "dp-workbench certificate"}'),
        ("load", "1,x\n"),
        ("certificate", "["),
        ("certificate", "{}"),
        ("load", "\xff"),
        ("column", "1\nx\n"),
        ("labels", "1,2,3\n"),
        ("specification", "["),
    ],
)
def test_errors_in_the_content_name_the_file(folder: Path, reader: str, text: str):
    Path("given.csv").write_text(text, encoding="latin-1")
    with pytest.raises(wb.WorkbenchError, match=r"given\.csv"):
        READERS[reader](Path("given.csv"))


# Modes.


def read_mode(path: Path | str) -> int:
    """Return the permission bits of a file, such as 0o644."""
    return stat.S_IMODE(Path(path).stat().st_mode)


@pytest.mark.parametrize(("mask", "expected"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_mode_of_the_umask_unless_it_is_private(
    tmp_path: Path, set_umask: Callable[[int], int], mask: int, expected: int
):
    set_umask(mask)
    write_atomically(tmp_path / "new", b"1")
    assert read_mode(tmp_path / "new") == expected
    write_atomically(tmp_path / "private", b"1", private=True)
    assert read_mode(tmp_path / "private") == 0o600


@pytest.mark.parametrize("old_mode", [0o600, 0o640])
def test_an_existing_file_keeps_its_mode(tmp_path: Path, old_mode: int):
    (tmp_path / "old").write_bytes(b"1")
    (tmp_path / "old").chmod(old_mode)
    for private in (False, True):
        write_atomically(tmp_path / "old", b"2", private=private)
        assert read_mode(tmp_path / "old") == old_mode
    assert (tmp_path / "old").read_bytes() == b"2"


def test_a_read_only_file_is_not_replaced(folder: Path, capsys: pytest.CaptureFixture[str]):
    Path("old.json").write_bytes(b"1")
    Path("old.json").chmod(0o444)
    with pytest.raises(
        InvalidRequest,
        match=r"^file must be a writable file\. Got old.json, which is read-on",
    ):
        write_atomically("old.json", b"2")
    code, err = run("design modulo --n 4 --max-shift 1 --epsilon 1 --save old.json", capsys)
    assert code == 2
    assert "saved file must be a writable file. Got old.json" in err
    assert Path("old.json").read_bytes() == b"1"


def test_a_folder_is_not_replaced_by_a_file(folder: Path):
    with pytest.raises(InvalidRequest, match=r"^file must be a file\. Got the folder folder\.$"):
        wb.save(wb.Channel.from_rows([[1, 1], [1, 2]]), "folder")
    assert Path("folder").is_dir()


def test_a_release_with_copied_columns_is_readable_by_its_owner_only(
    folder: Path, capsys: pytest.CaptureFixture[str], set_umask: Callable[[int], int]
):
    set_umask(0o022)
    Path("two.csv").write_text("name,age\nA,1\nB,2\n")
    with_names = "privatise labels two.csv --column age --id name --epsilon 9 --out named.csv"
    code, _ = run(with_names, capsys)
    assert code == 0
    assert read_mode("named.csv") == 0o600
    assert read_mode("named.csv.json") == 0o644
    without_names = "privatise labels fine.csv --column 1 --epsilon 9 --out bare.csv"
    code, _ = run(without_names, capsys)
    assert code == 0
    assert read_mode("bare.csv") == 0o644


def test_a_key_that_others_can_read_causes_a_warning(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    code, _ = run("laplace keygen new.key", capsys)
    assert code == 0
    assert read_mode("new.key") == 0o600
    encode = "laplace encode --epsilon 1 --ell 2 --seed-file new.key fine.csv o.bits"
    decode = "laplace decode --seed-file new.key o.bits d.csv"
    assert run(encode, capsys) == (0, "")
    Path("new.key").chmod(0o640)
    for command in (encode, f"{encode} --json", decode):
        code, err = run(command, capsys)
        assert code == 0
        assert err.count("\n") == 1
        assert "other users can read the key new.key" in err


# Full disks.

# A program that sets a limit of 0 bytes for its own files, as if the disk were full, and then runs
# one of the WRITERS in the folder that is its argument. Python ignores SIGXFSZ, so a write raises
# OSError. The limit must not be set in the process of the tests, which writes files itself.
PROGRAM_WITHOUT_SPACE = """
import resource
import sys
from pathlib import Path

from workbench.cli import main
from workbench.io.files import write_atomically, write_new_file

folder = Path(sys.argv[1])
_, hard_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard_limit))
"""
WRITERS = {
    "write_new_file": "write_new_file(folder / 'key', b'1')",
    "write_atomically": "write_atomically(folder / 'file', b'1')",
    "laplace keygen": "main(['laplace', 'keygen', str(folder / 'key')])",
}


@pytest.mark.parametrize("name", WRITERS)
def test_nothing_is_left_on_a_full_disk(tmp_path: Path, name: str):
    program = PROGRAM_WITHOUT_SPACE + WRITERS[name]
    completed = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    # A traceback ends with code 1, and an error of the command line with code 2.
    assert completed.returncode == (2 if name == "laplace keygen" else 1), completed.stderr
    assert "File too large" in completed.stderr
    assert not [*tmp_path.iterdir()]


def test_concurrent_writers_leave_one_whole_file(tmp_path: Path):
    path = tmp_path / "shared"
    contents = [letter * 100_000 for letter in (b"A", b"B", b"C", b"D")]

    def write_repeatedly(content: bytes) -> None:
        """Write the content twenty times."""
        for _ in range(20):
            write_atomically(path, content)

    writers = [threading.Thread(target=write_repeatedly, args=(content,)) for content in contents]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert path.read_bytes() in contents
    assert [*tmp_path.iterdir()] == [path]
