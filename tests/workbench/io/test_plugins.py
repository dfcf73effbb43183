"""Plug-ins of another package work with every command. Nothing is installed for the tests."""

from __future__ import annotations

import importlib
import json
import math
import os
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import workbench as wb
from workbench.cli import main
from workbench.io import plugins
from workbench.pipeline.registry import get_family
from workbench.solvers.conformance import BackendContract

PACKAGE = Path(__file__).parents[2] / "plugin_package"


# A program that runs the commands of argument 1 one after the other and prints their results. The
# imports of a process take longer than most commands.
COMMANDS = """
import contextlib, io, json, sys
from workbench.cli import main

done = []
for arguments in json.loads(sys.argv[1]):
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as stop:
            code = stop.code or 0
    done.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(done))
"""


class Completed(NamedTuple):
    """The exit code and the output of a command."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def answer(self) -> dict:
        """Return the object of a command with --json, which must have succeeded."""
        assert self.returncode == 0, self.stderr
        return json.loads(self.stdout)


def run_python(
    *arguments: str, folder: Path, path: tuple[Path, ...] = (PACKAGE,)
) -> subprocess.CompletedProcess[str]:
    """Run Python in a new process that can import the packages in the folders of `path`."""
    places = os.pathsep.join([*map(str, path), *filter(None, [os.environ.get("PYTHONPATH")])])
    # The explorer and sweeps set PYTHONSAFEPATH in their process, which may be this one.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**environment, "PYTHONPATH": places, "COLUMNS": "200"},
    )


def run_commands(
    *commands: tuple[str, ...], folder: Path, path: tuple[Path, ...] = (PACKAGE,)
) -> list[Completed]:
    """Run commands in one new process, and return their results."""
    done = run_python("-c", COMMANDS, json.dumps(commands), folder=folder, path=path)
    assert done.returncode == 0, done.stderr
    return [Completed(*fields) for fields in json.loads(done.stdout)]


def test_a_family_of_a_plugin_designs_and_certifies_its_mechanism(tmp_path: Path) -> None:
    listing, designed, shown = run_commands(
        ("design", "--help"),
        ("design", "response", "--k", "3", "--epsilon", "1", "--save", "proof.json", "--json"),
        ("check", "proof.json"),
        folder=tmp_path,
    )
    assert "response" in listing.stdout
    design = designed.answer
    assert design["objective"] == pytest.approx(2 / (math.e + 2), rel=1e-6)
    assert design["oracle"]["agrees"]
    assert design["certified"]
    written = json.loads((tmp_path / "proof.json").read_text())
    assert written["mechanism"]["kind"] == "answers"
    assert written["record"]["checked_by"] == {"mechanism of kind answers": "workbench-example 1.2"}
    assert shown.returncode == 0, shown.stderr
    assert "code of workbench-example 1.2" in " ".join(shown.stdout.split())
    without = run_python("-m", "workbench", "check", "proof.json", folder=tmp_path, path=())
    assert without.returncode == 2
    assert "must be of kind" in without.stderr


def test_a_route_of_a_plugin_is_used_where_it_applies(tmp_path: Path) -> None:
    options = ("design", "response", "--k", "4", "--json", "--epsilon")
    small, large = run_commands((*options, "1"), (*options, "12"), folder=tmp_path)
    assert small.answer["route"] == "program"
    assert large.answer["route"] == "closed form"
    assert large.answer["certified"]
    assert large.answer["objective"] == pytest.approx(3 / (math.exp(12) + 3), rel=1e-6)


def test_every_function_accepts_a_mechanism_of_a_plugin(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(PACKAGE))
    # Entry points are read once in a process, and another test may have read them.
    monkeypatch.setattr(plugins, "_read", set())
    monkeypatch.setattr(plugins, "_plugins", {group: {} for group in plugins.PLUGIN_GROUPS})
    coin = importlib.import_module("workbench_example.coin").Coin("1/4")
    proof = wb.certify(coin, "pure", "1.2")
    assert proof.foreign_packages == {"mechanism of kind coin": "workbench-example 1.2"}
    with pytest.raises(wb.NotCertified, match="exact pure epsilon"):
        wb.certify(coin, "pure", 1)
    for form in (coin, proof):
        assert wb.audit(form, 1).pure_epsilon == pytest.approx(math.log(3))
        assert {*wb.sample(form, 100, answer=1)} == {0, 1}
        assert wb.compose(form, 2, delta=0).epsilon == pytest.approx(2 * math.log(3))
        assert wb.profile(form, "dp").deltas([0])[0] == pytest.approx(0.5)
        assert wb.audit(form, loss="absolute").error.mean_error == Fraction(1, 4)
        assert wb.risk(form).advantage == 0.5
    (tmp_path / "coin.json").write_bytes(proof.content())
    (tmp_path / "rows.csv").write_text("x\n" + "0\n1\n" * 50)
    (tmp_path / "strange.csv").write_text("x\n2\n")
    options = ("--column", "x", "--mechanism", "coin.json", "--insecure-seed", "1")
    done, refused = run_commands(
        ("privatise", "noise", "rows.csv", *options, "--out", "out.csv", "--json"),
        ("privatise", "noise", "strange.csv", *options, "--out", "none.csv"),
        folder=tmp_path,
    )
    report = done.answer
    assert report["expected_error"] == {"probability of a wrong answer": 0.25}
    assert 1.2 <= report["budget"]["epsilon"] < 1.2 + 1e-12
    assert "One coin for every row." in report["words"]
    published = (tmp_path / "out.csv").read_text().split()[1:]
    assert 5 <= sum(a != b for a, b in zip(published, ["0", "1"] * 50, strict=True)) <= 50
    assert "must be 0 or 1" in refused.stderr


def test_a_family_of_a_plugin_has_sweeps_frontiers_and_comparisons(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text('[[grid]]\nmodel = "response"\nk = [2, 3]\nepsilon = [1]\n')
    swept, frontier, compared = run_commands(
        ("sweep", "spec.toml", "--ledger", "rows.db", "--jobs", "2", "--json"),
        ("frontier", "response", "--k", "2", "--epsilon", "1", "--json"),
        (
            "compare",
            "response",
            "--k",
            "3",
            "--epsilon",
            "1",
            "--solvers",
            "highs,linprog",
            "--json",
        ),
        folder=tmp_path,
    )
    assert swept.answer["statuses"] == {"optimal": 2}
    assert frontier.answer["rows"][0]["objective"] == pytest.approx(1 / (math.e + 1), rel=1e-6)
    rows = compared.answer["rows"]
    assert [row["solver"] for row in rows] == ["highs", "linprog"]
    assert all(row["oracle_agrees"] for row in rows)


def test_a_notion_a_backend_and_baselines_of_a_plugin_are_used(tmp_path: Path) -> None:
    options = ("modulo", "--n", "4", "--max-shift", "1", "--delta", "0.1", "--json")
    solvers, halved, dp, table = (
        done.answer
        for done in run_commands(
            ("doctor", "--json"),
            ("design", *options, "--epsilon", "2", "--notion", "halved"),
            ("design", *options, "--epsilon", "1", "--notion", "dp", "--solver", "linprog"),
            ("frontier", *options, "--epsilon", "1", "--level", "none", "--notion", "dp"),
            folder=tmp_path,
        )
    )
    assert "linprog" in {row["name"] for row in solvers["solvers"]}
    assert halved["objective"] == pytest.approx(dp["objective"], rel=1e-6)
    assert dp["solver"] == "linprog"
    good = next(row for row in table["rows"] if row["mechanism"] == "half-uniform")
    assert good["curve"] == "baseline"
    assert good["objective"] == pytest.approx(0.9 * 4 / 5)
    assert good["private"] is True
    bad = next(row for row in table["rows"] if row["mechanism"] == "impudent")
    assert bad["objective"] is None
    assert "is NOT private at the requested budget" in bad["failure"]


def _write_package(folder: Path, name: str, entries: str, code: str) -> Path:
    """Write an installed package with one module and its entry points, and return its folder."""
    info = folder / f"{name}-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(entries)
    (folder / f"{name}.py").write_text(code)
    return folder


def test_a_failing_plugin_and_a_duplicate_name_cause_one_warning_each(tmp_path: Path) -> None:
    broken = _write_package(
        tmp_path / "a",
        "broken",
        "[workbench.backends]\nx = broken:X\n",
        "raise RuntimeError('no\\nway')",
    )
    taking = _write_package(
        tmp_path / "b",
        "taking",
        "[workbench.backends]\nhighs = taking:H\nlinprog = taking:L\n",
        "from workbench.solvers.backends.highs import Highs\n"
        "class H(Highs): pass\nclass L(Highs):\n    name = 'linprog'\n",
    )
    done = run_python(
        "-m", "workbench", "doctor", "--json", folder=tmp_path, path=(PACKAGE, broken, taking)
    )
    assert done.returncode == 0
    assert "linprog" in {row["name"] for row in json.loads(done.stdout)["solvers"]}
    lines = done.stderr.splitlines()
    assert len(lines) == 3
    assert any("broken 1" in line and "RuntimeError: no way" in line for line in lines)
    assert any("'highs' of taking 1 is taken by dp-workbench" in line for line in lines)
    both = [line for line in lines if "'linprog'" in line]
    assert "workbench-example 1.2" in both[0]
    assert "taking 1" in both[0]


def test_a_notion_and_a_backend_of_a_plugin_file_are_used_in_the_same_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugins, "_read", set(plugins.PLUGIN_GROUPS))
    monkeypatch.setattr(plugins, "_plugins", {group: {} for group in plugins.PLUGIN_GROUPS})
    monkeypatch.syspath_prepend(str(PACKAGE))
    # Loading the file sets this variable for new processes. It is restored after the test.
    monkeypatch.setenv(plugins.PLUGIN_FILES_VARIABLE, "")
    question = wb.ModuloNoise(n=3, max_shift=1)
    with pytest.raises(wb.InvalidRequest, match="notion must be one of"):
        wb.design(question, epsilon=1, notion="mine")
    file = tmp_path / "mine.py"
    file.write_text(
        "import workbench as wb\nfrom workbench.notions.dp import DP\n"
        "@wb.register\nclass Mine(DP):\n    name, title = 'mine', 'my DP'\n"
        "from workbench_example.linprog import Linprog\nwb.register(Linprog)\n"
    )
    plugins.load_plugin_file(file)
    options = {"epsilon": 1, "delta": "0.1"}
    design = wb.design(question, notion="mine", solver="linprog", **options)
    assert design.solution.solver == "linprog"
    dp_design = wb.design(question, notion="dp", **options)
    assert design.objective == pytest.approx(dp_design.objective, rel=1e-9)
    assert design.certificate is not None
    assert design.certificate.foreign_packages == {"notion mine": "mine.py"}


def test_a_plugin_file_is_loaded_by_the_option_plugin(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import workbench as wb\nfrom workbench.notions.dp import DP\n"
        "@wb.register\nclass Mine(DP):\n    name, title = 'mine', 'my DP'\n"
    )
    (tmp_path / "spec.toml").write_text(
        '[[grid]]\nmodel = "modulo"\nn = [3, 4]\nmax_shift = 1\nepsilon = 1\nnotion = "mine"\n'
    )
    options = (
        "design",
        "modulo",
        "--n",
        "4",
        "--max-shift",
        "1",
        "--epsilon",
        "1",
        "--notion",
        "mine",
    )
    refused, missing, designed, swept = run_commands(
        options,
        ("--plugin", "none.py", "doctor"),
        ("--plugin", "mine.py", *options, "--save", "proof.json"),
        (
            "--plugin",
            "mine.py",
            "sweep",
            "spec.toml",
            "--ledger",
            "rows.db",
            "--jobs",
            "2",
            "--json",
        ),
        folder=tmp_path,
        path=(),
    )
    assert designed.returncode == 0, designed.stderr
    assert json.loads((tmp_path / "proof.json").read_text())["record"]["checked_by"] == {
        "notion mine": "mine.py"
    }
    assert swept.answer["statuses"] == {"optimal": 2}
    assert refused.returncode == 2
    assert "notion must be one of" in refused.stderr
    assert "plugin must be a Python file" in missing.stderr


ADDING_PAGE = Path(__file__).parents[3] / "docs" / "adding.md"


def read_documented_file(name: str) -> str:
    """Return the file of this name on the page docs/adding.md."""
    return ADDING_PAGE.read_text().partition(f"```python\n# {name}\n")[2].partition("```")[0]


def test_the_documented_backend_takes_part_in_a_comparison(tmp_path: Path) -> None:
    """The backend gets no default time limit, and a requested one is refused."""
    code = read_documented_file("linprog.py")
    (tmp_path / "documented.py").write_text(code.replace('"linprog"', '"documented"'))
    options = (
        "--plugin",
        "documented.py",
        "compare",
        "modulo",
        "--n",
        "4",
        "--max-shift",
        "1",
        "--epsilon",
        "1",
        "--notion",
        "pure",
        "--solvers",
        "highs,documented",
        "--json",
    )
    plain, limited = run_commands(
        options, (*options, "--time-limit", "5"), folder=tmp_path, path=()
    )
    first, second = plain.answer["rows"]
    assert (first["status"], second["status"]) == ("optimal", "optimal")
    assert second["objective"] == pytest.approx(first["objective"], rel=1e-6)
    assert [row["status"] for row in limited.answer["rows"]] == ["optimal", "refused"]
    assert "time_limit" in limited.answer["rows"][1]["failure"]


CLAUSES = [name for name in dir(BackendContract) if name.startswith("test_")]


def test_a_package_runs_the_contract_on_its_backend(tmp_path: Path) -> None:
    """Run the contract by pytest in a separate folder. Features that linprog lacks are skipped."""
    code = read_documented_file("test_linprog.py").replace(
        "from linprog", "from workbench_example.linprog"
    )
    (tmp_path / "test_theirs.py").write_text(code)
    done = run_python(
        "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "test_theirs.py", folder=tmp_path
    )
    assert done.returncode == 0, done.stdout
    counts = re.search(r"^(\d+) passed, (\d+) skipped in", done.stdout, re.MULTILINE)
    assert counts is not None, done.stdout
    assert int(counts[1]) >= 30
    assert int(counts[1]) + int(counts[2]) == len(CLAUSES)
    for reason in (
        "does not claim the capability milp",
        "does not support the option time_limit",
        "SciPy returns to",
    ):
        assert reason in done.stdout


def test_the_contract_names_the_clauses_that_a_wrong_backend_breaks(tmp_path: Path) -> None:
    """One sign of the documented backend is wrong. The contract runs by unittest, without pytest."""
    code, right = read_documented_file("linprog.py"), "row_dual[has_upper] += upper_slopes"
    assert right in code
    (tmp_path / "linprog.py").write_text(code.replace(right, "row_dual[has_upper] -= upper_slopes"))
    (tmp_path / "test_linprog.py").write_text(
        "import sys\nsys.modules['pytest'] = None\nimport unittest\n"
        + read_documented_file("test_linprog.py").replace(
            "(BackendContract)", "(BackendContract, unittest.TestCase)"
        )
    )
    done = run_python("-m", "unittest", "test_linprog", folder=tmp_path, path=())
    assert done.returncode == 1, done.stderr
    failed = {*re.findall(r"^FAIL: (\w+)", done.stderr, re.MULTILINE)}
    assert failed == {
        "test_duals_signs",
        "test_duals_are_slopes",
        "test_lagrangian_bound",
        "test_an_optimal_lp_has_a_bound",
        "test_resolve_equals_cold",
        "test_maximisation",
    }, done.stderr
    assert "linprog breaks the clause 'duals', test_duals_signs: Report row duals" in done.stderr
    assert "ERROR" not in done.stderr


def test_prints_and_exits_of_plugins_do_not_change_the_output(tmp_path: Path) -> None:
    """With --json prints go to stderr. A call of sys.exit is a failure. Names are not markup."""
    (tmp_path / "noisy.py").write_text(
        "import sys\nimport workbench as wb\nfrom workbench.pipeline.published import Baseline\n"
        "def prints(request):\n    print('said meanwhile')\n"
        "def leaves(request): sys.exit(0)\n"
        "wb.register(Baseline('b[red]x', 'modulo', prints))\n"
        "wb.register(Baseline('[/nope]', 'modulo', leaves))\n"
        "print('said at the start')\n"
    )
    (tmp_path / "leaves.py").write_text("import sys\nsys.exit(0)\n")
    (tmp_path / "family.py").write_text(
        "import sys\nimport workbench as wb\nfrom workbench.notions.dp import DP\n"
        "@wb.register\nclass Mine(DP):\n    name, title = 'mine', 'my DP'\n"
        "    def measure(self, laws, values):\n        sys.exit(0)\n"
    )
    options = ("modulo", "--n", "4", "--max-shift", "1", "--epsilon", "1")
    run = ("-m", "workbench", "--plugin")
    done = run_python(
        *run,
        "noisy.py",
        "frontier",
        *options,
        "--level",
        "none",
        "--json",
        folder=tmp_path,
        path=(),
    )
    assert done.returncode == 0, done.stderr
    errors = {row["mechanism"]: row["failure"] for row in json.loads(done.stdout)["rows"]}
    assert "no mechanism of it" in errors["b[red]x"]
    assert "SystemExit" in errors["[/nope]"]
    assert done.stderr.count("said") == 2
    shown = run_python(
        *run, "noisy.py", "frontier", *options, "--level", "none", folder=tmp_path, path=()
    )
    assert shown.returncode == 0, shown.stderr
    assert "b[red]x" in shown.stdout
    assert "[/nope]" in shown.stdout
    left = run_python(*run, "leaves.py", "doctor", folder=tmp_path, path=())
    assert (left.returncode, left.stdout) == (2, "")
    assert "plugin leaves.py cannot be loaded. SystemExit" in left.stderr
    ended = run_python(
        *run,
        "family.py",
        "design",
        *options,
        "--notion",
        "mine",
        "--json",
        folder=tmp_path,
        path=(),
    )
    assert ended.returncode == 2
    assert "sys.exit" in json.loads(ended.stdout)["message"]


def test_register_refuses_objects_of_unknown_kinds() -> None:
    with pytest.raises(wb.InvalidRequest, match="plugin must be a Family, a Notion"):
        wb.register(3)


def test_baselines_of_a_plugin_are_compared_with_quantized_laplace_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Build a quantizer whose law is affine from -1 to 1. Its mean error is an exact integral."""
    from workbench.io.plugins import Plugin
    from workbench.pipeline import published

    def randomized(request: object, steepest: str = "0.5") -> wb.PiecewiseAffine:
        # The largest slope of ln p is (1/2 - share)/share.
        share = Fraction(1, 2) - Fraction(steepest) / 8
        return wb.PiecewiseAffine.from_laws(
            [-1, 1], [-1, 1], [[1 - share, share], [share, 1 - share]]
        )

    made = [("two", randomized), ("steep", lambda request: randomized(request, "3"))]
    kinds = {
        name: Plugin(published.Baseline(name, "laplace", build), "theirs") for name, build in made
    }
    monkeypatch.setattr(published, "load_plugins", lambda group: kinds)
    rows = wb.frontier("laplace", epsilon=1, bits="1/2,2", ell=2).rows
    theirs = {(row["mechanism"], row["bits"]): row for row in rows if row["curve"] == "baseline"}
    good = theirs["two", 2.0]
    share = 1 / 2 - 1 / 16
    assert good["private"] is True
    assert good["objective"] == pytest.approx(
        1 + 1 / 3 - 2 * (1 - 2 * share) / 3
    )  # 1 + x² - 2x E[M(x)], E[M(x)] ~ x
    assert "at most 2^0.5 outputs" in theirs["two", 0.5]["failure"]
    assert "objective" not in theirs["steep", 2.0]
    assert "is NOT private at the requested budget" in theirs["steep", 2.0]["failure"]


class _UnusualError(BaseException):
    """An error of a plug-in that is no Exception."""


def test_a_plugin_that_raises_a_base_exception_is_reported_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "odd.py"
    file.write_text("class Odd(BaseException): pass\nraise Odd('at import')\n")
    with pytest.raises(wb.InvalidRequest, match=r"plugin odd.py cannot be loaded. Odd: at import"):
        plugins.load_plugin_file(file)

    def fails(*_: Any, **__: Any) -> Any:
        raise _UnusualError("while it designs")

    monkeypatch.setattr(type(get_family("channel")), "open_session", fails)
    with pytest.raises(SystemExit) as stop:
        main(["design", "channel", "--answers", "0..2", "--max-shift", "1", "--epsilon", "1"])
    assert stop.value.code == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "_UnusualError: while it designs" in message
