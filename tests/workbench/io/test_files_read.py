"""Every reader refuses paths that are no regular files, with one form of message."""

from __future__ import annotations

import os
import resource
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.cli import main
from workbench.data.csv_column import read_column
from workbench.errors import CorruptFile, InvalidRequest
from workbench.io.files import read_bytes, read_text, write_atomically, write_new_file
from workbench.mechanisms.dyadic_laplace.stream import load_bytes
from workbench.privacy.certificate_file import check
from workbench.questions.labels import Labels
from workbench.sweeps.specification import read_spec

READERS: dict[str, Callable[[Path], Any]] = {
    "load": wb.load,
    "certificate": check,
    "column": read_column,
    "labels": Labels.read,
    "spelled labels": lambda path: Labels.parse(str(path) if isinstance(path, Path) else path),
    "stream": load_bytes,
    "specification": read_spec,
    "ledger": lambda path: wb.Ledger(path, create=False),
}

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
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("folder").mkdir()
    Path("fine.csv").write_text("3\n4\n")
    Path("key").write_bytes(bytes(range(32)))
    Path("key").chmod(0o600)
    return tmp_path


@pytest.fixture
def umask() -> Iterator[Callable[[int], int]]:
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def run(command: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    with pytest.raises(SystemExit) as stop:
        main(command.split())
    return int(stop.value.code or 0), capsys.readouterr().err


@pytest.mark.timeout(400)  # A reader that opens the pipe waits for ever.
@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "what", ["pipe", "/dev/zero", "/dev/null", "folder", "none", "no/file", ""]
)
def test_every_reader_refuses_paths_that_are_no_regular_files(folder: Path, name: str, what: str):
    with pytest.raises(InvalidRequest, match=r"^\w+ must be (a|an existing) (regular )?file"):
        READERS[name](Path(what))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_paths_that_are_no_regular_files(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str
):
    for what in ("pipe", "/dev/zero", "folder", "none"):
        code, err = run(command.format(what), capsys)
        assert code == 2
        assert err.startswith("InvalidRequest: "), err
        assert Path(what).name in err
        assert err.count("\n") == 1


@pytest.mark.parametrize("path", [None, 3, b"x", 2.5, ["x"], "a\0b", object()])
def test_a_path_of_a_wrong_type_is_one_sentence(path: Any):
    what = r"(the path of a file|LOW\.\.HIGH, .* or a CSV file)"
    for name, read in READERS.items():
        if name not in ("spelled labels", "specification") or not isinstance(path, (list, str)):
            with pytest.raises(InvalidRequest, match=rf"^\w+ must be {what}\. Got "):
                read(path)


def test_a_file_is_cut_off_at_its_limit_even_when_it_hides_its_size(folder: Path):
    Path("fine.csv").write_bytes(b"x" * 100)
    assert len(read_bytes("fine.csv", 100)) == 100
    with pytest.raises(CorruptFile, match=r"^fine.csv is larger than 99 bytes\.$"):
        read_bytes("fine.csv", 99)
    with Path("holes").open("wb") as file:
        file.truncate(1 << 40)
    for name, read in READERS.items():
        if name != "ledger":
            with pytest.raises(CorruptFile, match=r"^holes is larger than \d+ bytes\.$"):
                read(Path("holes"))
    hiding = Path("/proc/self/maps")  # says that it has no bytes
    if hiding.exists():
        with pytest.raises(CorruptFile, match="larger than 10 bytes"):
            read_text(hiding, 10)


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
def test_every_message_names_its_file(folder: Path, reader: str, text: str):
    Path("given.csv").write_text(text, encoding="latin-1")
    with pytest.raises(wb.WorkbenchError, match=r"given\.csv"):
        READERS[reader](Path("given.csv"))


# Modes.


def mode(path: Path | str) -> int:
    return stat.S_IMODE(Path(path).stat().st_mode)


@pytest.mark.parametrize(("mask", "expected"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_the_umask_is_obeyed(tmp_path: Path, umask: Callable[[int], int], mask: int, expected: int):
    umask(mask)
    write_atomically(tmp_path / "new", b"1")
    assert mode(tmp_path / "new") == expected
    write_atomically(tmp_path / "private", b"1", private=True)
    assert mode(tmp_path / "private") == 0o600


@pytest.mark.parametrize("before", [0o600, 0o640])
def test_an_existing_file_keeps_its_mode(tmp_path: Path, before: int):
    (tmp_path / "old").write_bytes(b"1")
    (tmp_path / "old").chmod(before)
    for private in (False, True):
        write_atomically(tmp_path / "old", b"2", private=private)
        assert mode(tmp_path / "old") == before
    assert (tmp_path / "old").read_bytes() == b"2"


def test_a_read_only_file_is_not_replaced(folder: Path, capsys: pytest.CaptureFixture[str]):
    Path("old.json").write_bytes(b"1")
    Path("old.json").chmod(0o444)
    with pytest.raises(
        InvalidRequest,
        match=r"^file must be a file that can be written\. Got old.json, which is read-on",
    ):
        write_atomically("old.json", b"2")
    code, err = run("design modulo --n 4 --max-shift 1 --epsilon 1 --save old.json", capsys)
    assert (code, "saved file must be a file that can be written. Got old.json" in err) == (2, True)
    with pytest.raises(InvalidRequest, match=r"^file must be a file\. Got the folder folder\.$"):
        wb.save(wb.Channel.from_rows([[1, 1], [1, 2]]), "folder")
    assert Path("old.json").read_bytes() == b"1"


def test_a_release_with_copied_columns_is_readable_by_its_owner_only(
    folder: Path, capsys: pytest.CaptureFixture[str], umask: Callable[[int], int]
):
    umask(0o022)
    Path("two.csv").write_text("name,age\nA,1\nB,2\n")
    assert (
        run("privatise labels two.csv --column age --id name --epsilon 9 --out o.csv", capsys)[0]
        == 0
    )
    assert (mode("o.csv"), mode("o.csv.json")) == (0o600, 0o644)
    assert run("privatise labels fine.csv --column 1 --epsilon 9 --out p.csv", capsys)[0] == 0
    assert mode("p.csv") == 0o644


def test_a_key_that_others_can_read_causes_a_warning(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    assert run("laplace keygen new.key", capsys)[0] == 0
    assert mode("new.key") == 0o600
    encode = "laplace encode --epsilon 1 --ell 2 --seed-file new.key fine.csv o.bits"
    assert run(encode, capsys) == (0, "")
    Path("new.key").chmod(0o640)
    for command in (encode, encode + " --json", "laplace decode --seed-file new.key o.bits d.csv"):
        code, err = run(command, capsys)
        assert (code, err.count("\n")) == (0, 1)
        assert "other users can read the key new.key" in err


@pytest.fixture
def full() -> Iterator[None]:
    """No file may grow: what a full disk is to a program."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_nothing_is_left_on_a_full_disk(tmp_path: Path, full: None):
    with pytest.raises(OSError, match="large"):
        write_new_file(tmp_path / "key", b"1")
    with pytest.raises(OSError, match="large"):
        write_atomically(tmp_path / "file", b"1")
    with pytest.raises(SystemExit) as stop:
        main(["laplace", "keygen", str(tmp_path / "key")])
    assert stop.value.code == 2
    assert not [*tmp_path.iterdir()]


def test_two_writers_leave_one_whole_file(tmp_path: Path):
    texts = [bytes([65 + k]) * 100_000 for k in range(4)]
    writers = [
        threading.Thread(
            target=lambda t=t: [write_atomically(tmp_path / "f", t) for _ in range(20)]
        )
        for t in texts
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert (tmp_path / "f").read_bytes() in texts
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
