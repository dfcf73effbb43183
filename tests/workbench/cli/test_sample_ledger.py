"""Test that `sample --ledger` books every draw before it prints it, and refuses unknown costs.

A ledger is a file with a total budget and all releases about the same people. The costs of the
draws of one release add up. The tests kill commands at chosen places, and compare what was printed
with what was booked.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import random
import shlex
import stat
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from killed_commands import kill_after, run_and_kill

import workbench as wb
from workbench.cli import main, sample
from workbench.exact.distribution import Distribution
from workbench.exact.integer_law import IntegerLaw
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.joint_noise import JointNoise
from workbench.questions.joint_query import JointQuery

# The command draws one number. The first release also needs the option --total.
SAMPLE = "sample noise.json --answer 3 --ledger account --neighbours add-remove"
# Functions before or after which a command is killed.
BOOK = "workbench.privacy.release_ledger:ReleaseLedger.book"
INSERT = "workbench.privacy.release_ledger:ReleaseLedger._insert"
PRINT = "workbench.cli.sample:_print_draws"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with certificates of several notions and neighbours."""
    folder = tmp_path_factory.mktemp("certificates")
    noise = AdditiveNoise(wb.ModuloNoise(n=4, max_shift=1), [2, 1, 1, 1, 1])
    wb.Certificate(noise, "pure", 1).save(folder / "noise.json")
    wb.Certificate(noise, "zcdp", parameters={"rho": "1/4"}).save(folder / "zcdp.json")
    wb.Certificate(noise, "dp", "1/2", "1/10").save(folder / "dp.json")
    noise.save(folder / "raw.json")
    directed = AdditiveNoise(wb.ModuloNoise(n=4, shifts=[1], directed=True), [2, 1, 1, 1, 1])
    wb.Certificate(directed, "pure", 1).save(folder / "directed.json")
    channel = wb.Channel(tuple(map(Distribution, [[3, 1], [1, 3]])))
    wb.certify(channel, epsilon="3/2", notion="metric").save(folder / "metric.json")
    return folder


@pytest.fixture
def folder(tmp_path: Path, certificates: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with the certificates, and return its path."""
    monkeypatch.chdir(tmp_path)
    for file in certificates.iterdir():
        Path(file.name).write_bytes(file.read_bytes())
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], command: str) -> tuple[int, str, str]:
    """Run a command line. Return its exit code, its stdout, and its stderr with single spaces."""
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(command))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, " ".join(captured.err.split())


def test_sample_warns_that_every_draw_costs_its_budget_once_more(folder: Path, capsys):
    code, out, err = run(capsys, "sample noise.json --answer 3 --count 200")
    assert (code, len(out.splitlines())) == (0, 200)
    assert "Each draw about the same true answer costs epsilon = 1 once more" in err
    assert "These 200 draws cost epsilon = 200 together" in err
    assert "The mean of many draws reveals the answer" in err


@pytest.mark.parametrize(
    ("options", "warning"),
    [
        ("zcdp.json --answer 3", "costs rho = 0.25"),
        ("raw.json --answer 3", "no certificate states"),
    ],
)
def test_the_warning_states_the_budget_of_the_file(
    folder: Path, capsys, options: str, warning: str
):
    _, _, err = run(capsys, f"sample {options}")
    assert warning in err


def test_draws_with_an_insecure_seed_cause_no_warning(folder: Path, capsys):
    _, _, err = run(capsys, "sample noise.json --answer 3 --insecure-seed 1")
    assert err == ""


def test_the_draws_of_a_ledger_cost_their_number_times_the_budget(folder: Path, capsys):
    code, out, err = run(capsys, f"{SAMPLE} --total 4 --count 3")
    assert code == 0
    assert "release 1 of account, which has epsilon = 1 left" in err
    (release,) = wb.ReleaseLedger.open("account").releases
    assert release.charge is not None
    assert release.charge.epsilon == 3
    assert release.zcdp_rho == Fraction(3, 2)  # 3 ε²/2, not (3 ε)²/2.
    assert (release.value or b"").decode() == out


def test_a_ledger_of_draws_is_readable_by_its_owner_only(folder: Path, capsys):
    run(capsys, f"{SAMPLE} --total 4")
    assert stat.S_IMODE(Path("account").stat().st_mode) == 0o600
    (release,) = wb.ReleaseLedger.open("account").releases
    assert release.digest == ""  # The digest of one number would reveal the number.


def test_draws_beyond_the_budget_that_is_left_are_refused(folder: Path, capsys):
    run(capsys, f"{SAMPLE} --total 4 --count 3")
    code, out, err = run(capsys, f"{SAMPLE} --count 2")
    assert (code, out) == (2, "")
    assert "epsilon = 2 left. Got account, which has epsilon = 1 left" in err
    assert len(wb.ReleaseLedger.open("account").releases) == 1


def test_the_last_of_the_budget_can_be_spent(folder: Path, capsys):
    run(capsys, f"{SAMPLE} --total 4 --count 3")
    code, out, _ = run(capsys, f"{SAMPLE} --json")
    assert code == 0
    report = json.loads(out)
    assert (report["number"], report["left"]) == (2, "epsilon = 0")
    assert report["budget_of_a_draw"]["epsilon"] == 1
    code, _, _ = run(capsys, SAMPLE)
    assert code == 2
    assert len(wb.ReleaseLedger.open("account").releases) == 2


ZCDP_OPTIONS = "--answer 3 --ledger account --neighbours replace"


def find_largest_rho(epsilon: float, delta: float) -> float:
    """Return the largest ρ with ρ + 2 √(ρ ln(1/δ)) <= ε, so that ρ-zCDP implies (ε, δ)-DP."""
    return (math.sqrt(epsilon - math.log(delta)) - math.sqrt(-math.log(delta))) ** 2


@pytest.mark.parametrize("file", ["noise.json", "zcdp.json"])
def test_under_zcdp_a_draw_beyond_the_largest_rho_is_refused(folder: Path, capsys, file: str):
    """The largest ρ is 0.147. A pure draw costs 0.5, and a draw of zcdp.json 0.25."""
    terms = "--total 3 --total-delta 1e-6 --accounting zcdp"
    code, _, err = run(capsys, f"sample {file} {ZCDP_OPTIONS} {terms}")
    assert code == 2
    assert "account, which has rho = 0.14" in err
    assert not Path("account").exists()


def test_under_zcdp_draws_add_up_their_rho(folder: Path, capsys):
    terms = "--total 9 --total-delta 1e-6 --accounting zcdp"
    remaining_rho = find_largest_rho(9, 1e-6)
    for file, rho in (("noise.json", 0.5), ("zcdp.json", 0.25)):
        remaining_rho -= rho
        code, _, err = run(capsys, f"sample {file} {ZCDP_OPTIONS} {terms}")
        assert code == 0
        assert f"has rho = {remaining_rho:.6g} left" in err
    releases = wb.ReleaseLedger.open("account").releases
    assert [release.zcdp_rho for release in releases] == [Fraction(1, 2), Fraction(1, 4)]


def test_under_zcdp_a_draw_with_delta_is_refused(folder: Path, capsys):
    terms = "--total 9 --total-delta 1e-6 --accounting zcdp"
    code, _, err = run(capsys, f"sample dp.json {ZCDP_OPTIONS} {terms}")
    assert code == 2
    assert "release must be zCDP or pure (delta = 0), as account adds up rho. Got dp, eps" in err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("noise.json --answer 3 --ledger l --total 9", "neighbours must be given with a ledger"),
        ("noise.json --answer 3 --ledger l --neighbours near --total 9", "neighbours must be"),
        ("noise.json --answer 3 --ledger l --neighbours replace", "total must be given, as l is"),
        ("noise.json --answer 3 --total 9", "total must be given with a ledger"),
        ("noise.json --answer 3 --neighbours replace", "neighbours must be given with a ledger"),
        ("noise.json --ledger l --neighbours replace --total 9", "noise alone is not published"),
        ("noise.json --answer 3 --ledger l --neighbours replace --total 9 --count 0", "count must"),
        ("noise.json --answer 3 --ledger l --neighbours replace --total 9 --count 100001", "count"),
        (
            "noise.json --answer 3 --ledger l --neighbours replace --total 9 --insecure-seed 1",
            "insecure_seed must be left out",
        ),
        (
            "raw.json --answer 3 --ledger l --neighbours replace --total 9",
            "raw.json, a mechanism without a certificate",
        ),
        (
            "directed.json --answer 3 --ledger l --neighbours replace --total 9",
            "directed.json, a certificate of directed neighbours",
        ),
        (
            "metric.json --answer 1 --ledger l --neighbours replace --total 9",
            "a certificate with a budget per unit of distance",
        ),
        (
            "zcdp.json --answer 3 --ledger l --neighbours replace --total 9",
            "release must be one with a budget (epsilon, delta)",
        ),
        (
            "noise.json --answer 3 --ledger noise.json --neighbours replace --total 9",
            "ledger must be another file than the FILE",
        ),
    ],
)
def test_draws_of_unknown_cost_are_not_booked_and_not_printed(
    folder: Path, capsys, command: str, message: str
):
    code, out, err = run(capsys, f"sample {command}")
    assert (code, out) == (2, "")
    assert message in err
    assert not Path("l").exists() or not wb.ReleaseLedger.open("l").releases


def test_draws_of_another_relation_than_that_of_the_ledger_are_refused(folder: Path, capsys):
    run(capsys, f"{SAMPLE} --total 9 --person who")
    command = SAMPLE.replace("add-remove", "replace")
    code, out, err = run(capsys, f"{command} --person who")
    assert (code, out) == (2, "")
    assert "account, for data sets with and without a person (add-remove)" in err


def test_draws_of_another_person_than_that_of_the_ledger_are_refused(folder: Path, capsys):
    run(capsys, f"{SAMPLE} --total 9 --person who")
    code, out, err = run(capsys, SAMPLE)
    assert (code, out) == (2, "")
    assert "person must be 'who', as account says" in err


def test_a_ledger_under_add_remove_refuses_a_release_of_privatise(folder: Path, capsys):
    """`privatise` publishes one row for each row, so its releases are private under replace."""
    run(capsys, f"{SAMPLE} --total 9 --person who")
    Path("p.csv").write_text("who,age\nann,1\n")
    code, _, err = run(
        capsys,
        "privatise labels p.csv --column age --labels 0..4 --epsilon 1 --person who "
        "--ledger account --out o.csv",
    )
    assert code == 2
    assert "one for data sets of equal size (replace), as this release is" in err
    assert not Path("o.csv").exists()


def test_a_joint_release_knows_its_relation(folder: Path, capsys):
    query = JointQuery("rows-anywhere", neighbours="add-remove", rows=1)
    mechanism = JointNoise(query, IntegerLaw(0, [1], ratio="1/2"))
    wb.Certificate(mechanism, "pure", "7/10").save("joint.json")
    command = "sample joint.json --answer 3,4 --ledger account --total 1"
    code, _, err = run(capsys, f"{command} --neighbours replace")
    assert code == 2
    assert "neighbours must be add-remove, as the certificate says" in err
    code, out, _ = run(capsys, command)
    assert code == 0
    assert len(out.split(",")) == 2
    _, again_out, _ = run(capsys, "publish again account 1")
    assert again_out == out
    assert wb.ReleaseLedger.open("account").terms.relation == "add-remove"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python warns of forks beside threads.
def test_six_commands_at_once_book_six_draws(folder: Path, capsys):
    """The total is enough for four draws. The others are refused."""
    fork = multiprocessing.get_context("fork")
    barrier = fork.Barrier(6)

    def run_together(number: int) -> None:
        """Wait for the other processes, and draw one number into the file out<number>."""
        with Path(f"out{number}").open("w") as file:
            os.dup2(file.fileno(), 1)
        barrier.wait(20)
        main(shlex.split(f"{SAMPLE} --total 4"))

    workers = [fork.Process(target=run_together, args=(number,)) for number in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(50)
    assert sorted(worker.exitcode or 0 for worker in workers) == [0, 0, 0, 0, 2, 2]
    assert len(wb.ReleaseLedger.open("account").releases) == 4


@pytest.mark.parametrize(
    ("function", "moment", "booked_count"),
    [(BOOK, "before", 0), (INSERT, "after", 0), (BOOK, "after", 1), (PRINT, "before", 1)],
)
def test_a_killed_command_has_printed_nothing_that_is_not_booked(
    folder: Path, capsys, function: str, moment: str, booked_count: int
):
    """A killed transaction is rolled back. A booked draw can be printed again."""
    command = shlex.split(f"{SAMPLE} --total 4")
    assert run_and_kill(function, moment, command, folder) == (-9, "")
    ledger = wb.ReleaseLedger.open("account")
    assert len(ledger.releases) == booked_count
    assert ledger.describe_remaining_budget(ledger.releases) == f"epsilon = {4 - booked_count}"
    if booked_count:
        code, out, _ = run(capsys, "publish again account 1")
        assert (code, out.encode()) == (0, ledger.releases[0].value)
        assert out.strip() in "01234"
    # The next release books as usual.
    code, _, _ = run(capsys, SAMPLE)
    assert code == 0
    assert len(ledger.releases) == booked_count + 1


def test_thirty_killed_commands_lose_nothing_and_print_nothing_unbooked(folder: Path, capsys):
    command = shlex.split(f"{SAMPLE} --count 20 --total inf")
    start = time.perf_counter()
    code, _ = kill_after(600, command, folder)
    assert code == 0
    run_seconds = time.perf_counter() - start
    generator = random.Random(5)
    printed = []
    killed_count = 0
    for _ in range(30):
        seconds = generator.uniform(0.5, 1.02) * run_seconds
        start = time.perf_counter()
        code, out = kill_after(seconds, command, folder)
        if code == -9:
            killed_count += 1
        else:
            # The machine may be less busy than before, and then commands take less time.
            run_seconds = time.perf_counter() - start
        if out:
            printed.append(out)
    releases = wb.ReleaseLedger.open("account").releases
    values = [(release.value or b"").decode() for release in releases]
    assert killed_count > 5
    assert all(len(value.splitlines()) == 20 for value in values)
    # Every printed text is that of a release. A killed print may have lost its end.
    for out in printed:
        assert any(value.startswith(out) for value in values)
    assert len(releases) > len(printed)
    assert [release.number for release in releases] == [*range(1, len(releases) + 1)]


def test_a_closed_output_loses_no_booked_draws(folder: Path, capsys, monkeypatch):
    def refuse(*_: Any) -> None:
        """Raise the error of an output that is closed, as by `| head`."""
        raise BrokenPipeError

    monkeypatch.setattr(sample, "_print_draws", refuse)
    code, *_ = run(capsys, f"{SAMPLE} --total 4")
    assert code == 2
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    code, out, _ = run(capsys, "publish again account 1")
    assert code == 0
    assert out.strip() in "01234"
