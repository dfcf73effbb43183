"""Test that plug-ins of another package work with every command and function.

A plug-in is a family, a notion, a backend (a solver), a baseline or a kind of mechanism. A package
declares its plug-ins as entry points, and a file is loaded by `--plugin FILE`. The package of these
tests is in tests/plugin_package. It is not installed: new processes find it by PYTHONPATH.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import re
import shlex
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import workbench as wb
from workbench.cli import main
from workbench.io import plugins
from workbench.io.plugins import Plugin
from workbench.pipeline import published
from workbench.pipeline.registry import get_family
from workbench.solvers.conformance import BackendContract

# The folder of the package workbench-example 1.2: family "response", notion "halved", backend
# "linprog", mechanism "coin", and two baselines.
PACKAGE = Path(__file__).parents[2] / "plugin_package"


# A program that runs the commands of argument 1 one after the other and prints their results. The
# imports of a process take longer than most commands.
COMMANDS = """
import contextlib, io, json, sys
from workbench.cli import main

results = []
for arguments in json.loads(sys.argv[1]):
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as stop:
            code = stop.code or 0
    results.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(results))
"""


class CommandResult(NamedTuple):
    """The exit code and the output of a command of `workbench`."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def answer(self) -> dict:
        """Return the object of a command with --json, which must have succeeded."""
        assert self.returncode == 0, self.stderr
        return json.loads(self.stdout)


def run_python(
    *arguments: str, folder: Path, packages: tuple[Path, ...] = (PACKAGE,)
) -> subprocess.CompletedProcess[str]:
    """Run Python in `folder`. The new process finds the packages in the folders `packages`."""
    inherited = os.environ.get("PYTHONPATH")
    search_path = [*map(str, packages), *([inherited] if inherited else [])]
    # The explorer and sweeps set PYTHONSAFEPATH in their process, which may be this one.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**environment, "PYTHONPATH": os.pathsep.join(search_path), "COLUMNS": "200"},
    )


def run_commands(
    *commands: str, folder: Path, packages: tuple[Path, ...] = (PACKAGE,)
) -> list[CommandResult]:
    """Run commands of `workbench`, given as lines of a shell, in one new process.

    The process runs in `folder` and finds the packages in the folders `packages`.
    """
    arguments = json.dumps([shlex.split(command) for command in commands])
    completed = run_python("-c", COMMANDS, arguments, folder=folder, packages=packages)
    assert completed.returncode == 0, completed.stderr
    return [CommandResult(*fields) for fields in json.loads(completed.stdout)]


def test_a_family_of_a_plugin_designs_and_certifies_its_mechanism(tmp_path: Path) -> None:
    """The certificate names the package. `check` needs the package to verify it."""
    help_screen, designed, checked = run_commands(
        "design --help",
        "design response --k 3 --epsilon 1 --save proof.json --json",
        "check proof.json",
        folder=tmp_path,
    )
    assert "response" in help_screen.stdout
    design = designed.answer
    # The expected error rate of randomized response with k answers: (k - 1) / (e^ε + k - 1).
    assert design["objective"] == pytest.approx(2 / (math.e + 2), rel=1e-6)
    assert design["oracle"]["agrees"]
    assert design["certified"]
    certificate = json.loads((tmp_path / "proof.json").read_text())
    assert certificate["mechanism"]["kind"] == "answers"
    foreign_packages = certificate["record"]["checked_by"]
    assert foreign_packages == {"mechanism of kind answers": "workbench-example 1.2"}
    assert checked.returncode == 0, checked.stderr
    assert "code of workbench-example 1.2" in " ".join(checked.stdout.split())
    (without_package,) = run_commands("check proof.json", folder=tmp_path, packages=())
    assert without_package.returncode == 2
    assert "must be of kind" in without_package.stderr


def test_a_route_of_a_plugin_is_used_where_it_applies(tmp_path: Path) -> None:
    """The plug-in states its closed form for large ε only."""
    command = "design response --k 4 --json --epsilon"
    small, large = run_commands(f"{command} 1", f"{command} 12", folder=tmp_path)
    assert small.answer["route"] == "program"
    assert large.answer["route"] == "closed form"
    assert large.answer["certified"]
    # The expected error rate of randomized response with k answers: (k - 1) / (e^ε + k - 1).
    assert large.answer["objective"] == pytest.approx(3 / (math.exp(12) + 3), rel=1e-6)


@pytest.fixture
def coin(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the mechanism of a plug-in that publishes the wrong one of 0 and 1 with Pr = 1/4."""
    monkeypatch.syspath_prepend(str(PACKAGE))
    # Entry points are read once in a process, and another test may have read them.
    monkeypatch.setattr(plugins, "_read", set())
    monkeypatch.setattr(plugins, "_plugins", {group: {} for group in plugins.PLUGIN_GROUPS})
    return importlib.import_module("workbench_example.coin").Coin("1/4")


def test_a_mechanism_of_a_plugin_is_certified_down_to_its_exact_epsilon(coin: Any) -> None:
    """The exact pure ε is ln 3 = 1.0986, the logarithm of (3/4) / (1/4)."""
    certificate = wb.certify(coin, "pure", "1.2")
    assert certificate.foreign_packages == {"mechanism of kind coin": "workbench-example 1.2"}
    with pytest.raises(wb.NotCertified, match="exact pure epsilon"):
        wb.certify(coin, "pure", 1)


@pytest.mark.parametrize("is_certified", [False, True])
def test_every_function_accepts_a_mechanism_of_a_plugin(coin: Any, is_certified: bool) -> None:
    mechanism = wb.certify(coin, "pure", "1.2") if is_certified else coin
    assert wb.audit(mechanism, 1).pure_epsilon == pytest.approx(math.log(3))
    assert {*wb.sample(mechanism, 100, answer=1)} == {0, 1}
    assert wb.compose(mechanism, 2, delta=0).epsilon == pytest.approx(2 * math.log(3))
    # The total variation distance of the two laws is 3/4 - 1/4.
    assert wb.profile(mechanism, "dp").deltas([0])[0] == pytest.approx(0.5)
    assert wb.risk(mechanism).advantage == 0.5
    assert wb.audit(mechanism, loss="absolute").error.mean_error == Fraction(1, 4)


def test_privatise_publishes_rows_by_a_mechanism_of_a_plugin(coin: Any, tmp_path: Path) -> None:
    """A row that is not an answer of the mechanism is refused."""
    (tmp_path / "coin.json").write_bytes(wb.certify(coin, "pure", "1.2").content())
    (tmp_path / "rows.csv").write_text("x\n" + "0\n1\n" * 50)
    (tmp_path / "strange.csv").write_text("x\n2\n")
    options = "--column x --mechanism coin.json --insecure-seed 1"
    privatised, refused = run_commands(
        f"privatise noise rows.csv {options} --out out.csv --json",
        f"privatise noise strange.csv {options} --out none.csv",
        folder=tmp_path,
    )
    report = privatised.answer
    assert report["expected_error"] == {"probability of a wrong answer": 0.25}
    assert 1.2 <= report["budget"]["epsilon"] < 1.2 + 1e-12
    assert "One coin for every row." in report["words"]
    published = (tmp_path / "out.csv").read_text().split()[1:]
    error_count = sum(a != b for a, b in zip(published, ["0", "1"] * 50, strict=True))
    assert 5 <= error_count <= 50  # 25 of 100 are expected.
    assert "must be 0 or 1" in refused.stderr


def test_a_family_of_a_plugin_has_sweeps_frontiers_and_comparisons(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text('[[grid]]\nmodel = "response"\nk = [2, 3]\nepsilon = [1]\n')
    swept, frontier, compared = run_commands(
        "sweep spec.toml --ledger rows.db --jobs 2 --json",
        "frontier response --k 2 --epsilon 1 --json",
        "compare response --k 3 --epsilon 1 --solvers highs,linprog --json",
        folder=tmp_path,
    )
    assert swept.answer["statuses"] == {"optimal": 2}
    # The expected error rate of randomized response with k answers: (k - 1) / (e^ε + k - 1).
    assert frontier.answer["rows"][0]["objective"] == pytest.approx(1 / (math.e + 1), rel=1e-6)
    rows = compared.answer["rows"]
    assert [row["solver"] for row in rows] == ["highs", "linprog"]
    assert all(row["oracle_agrees"] for row in rows)


MODULO_OPTIONS = "modulo --n 4 --max-shift 1 --delta 0.1 --json"


def test_a_notion_and_a_backend_of_a_plugin_are_used(tmp_path: Path) -> None:
    """The notion "halved" at ε = 2 is DP at ε = 1."""
    solvers, halved, dp = run_commands(
        "doctor --json",
        f"design {MODULO_OPTIONS} --epsilon 2 --notion halved",
        f"design {MODULO_OPTIONS} --epsilon 1 --notion dp --solver linprog",
        folder=tmp_path,
    )
    assert "linprog" in {row["name"] for row in solvers.answer["solvers"]}
    assert halved.answer["objective"] == pytest.approx(dp.answer["objective"], rel=1e-6)
    assert dp.answer["solver"] == "linprog"


def test_a_frontier_has_the_private_baselines_of_a_plugin(tmp_path: Path) -> None:
    """The baseline "impudent" is listed with its failure, because it is not private."""
    (frontier,) = run_commands(
        f"frontier {MODULO_OPTIONS} --epsilon 1 --level none --notion dp", folder=tmp_path
    )
    rows = {row["mechanism"]: row for row in frontier.answer["rows"]}
    private = rows["half-uniform"]
    assert private["curve"] == "baseline"
    # The output is uniform on 5 values with probability 1 - δ = 0.9, and right otherwise.
    assert private["objective"] == pytest.approx(0.9 * 4 / 5)
    assert private["private"] is True
    assert rows["impudent"]["objective"] is None
    assert "is NOT private at the requested budget" in rows["impudent"]["failure"]


def _write_package(folder: Path, name: str, entries: str, code: str) -> Path:
    """Write an installed package with one module and its entry points, and return its folder.

    entries: the text of the file entry_points.txt. code: the text of the module.
    """
    info = folder / f"{name}-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(entries)
    (folder / f"{name}.py").write_text(code)
    return folder


def run_doctor(folder: Path, *packages: Path) -> subprocess.CompletedProcess[str]:
    """Run `workbench doctor --json`, which loads all plug-ins of the packages."""
    completed = run_python("-m", "workbench", "doctor", "--json", folder=folder, packages=packages)
    assert completed.returncode == 0
    return completed


def test_a_failing_plugin_causes_one_warning(tmp_path: Path) -> None:
    broken = _write_package(
        tmp_path / "broken",
        "broken",
        "[workbench.backends]\nx = broken:X\n",
        "raise RuntimeError('no\\nway')",
    )
    completed = run_doctor(tmp_path, PACKAGE, broken)
    assert "linprog" in {row["name"] for row in json.loads(completed.stdout)["solvers"]}
    (warning,) = completed.stderr.splitlines()
    assert "broken 1" in warning
    assert "RuntimeError: no way" in warning


def test_each_plugin_with_a_taken_name_causes_one_warning(tmp_path: Path) -> None:
    """The name highs is taken by the workbench, and the name linprog by another package."""
    taking = _write_package(
        tmp_path / "taking",
        "taking",
        "[workbench.backends]\nhighs = taking:H\nlinprog = taking:L\n",
        "from workbench.solvers.backends.highs import Highs\n"
        "class H(Highs): pass\nclass L(Highs):\n    name = 'linprog'\n",
    )
    completed = run_doctor(tmp_path, PACKAGE, taking)
    assert "linprog" in {row["name"] for row in json.loads(completed.stdout)["solvers"]}
    warnings = completed.stderr.splitlines()
    assert len(warnings) == 2
    assert any("'highs' of taking 1 is taken by dp-workbench" in line for line in warnings)
    (linprog_warning,) = [line for line in warnings if "'linprog'" in line]
    assert "workbench-example 1.2" in linprog_warning
    assert "taking 1" in linprog_warning


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
    design = "design modulo --n 4 --max-shift 1 --epsilon 1 --notion mine"
    without_plugin, missing_file, designed, swept = run_commands(
        design,
        "--plugin none.py doctor",
        f"--plugin mine.py {design} --save proof.json",
        "--plugin mine.py sweep spec.toml --ledger rows.db --jobs 2 --json",
        folder=tmp_path,
        packages=(),
    )
    assert designed.returncode == 0, designed.stderr
    assert json.loads((tmp_path / "proof.json").read_text())["record"]["checked_by"] == {
        "notion mine": "mine.py"
    }
    assert swept.answer["statuses"] == {"optimal": 2}
    assert without_plugin.returncode == 2
    assert "notion must be one of" in without_plugin.stderr
    assert "plugin must be a Python file" in missing_file.stderr


ADDING_PAGE = Path(__file__).parents[3] / "docs" / "adding.md"


def read_documented_file(name: str) -> str:
    """Return the file of this name on the page docs/adding.md."""
    return ADDING_PAGE.read_text().partition(f"```python\n# {name}\n")[2].partition("```")[0]


def test_the_documented_backend_takes_part_in_a_comparison(tmp_path: Path) -> None:
    """The backend gets no default time limit, and a requested one is refused."""
    code = read_documented_file("linprog.py")
    (tmp_path / "documented.py").write_text(code.replace('"linprog"', '"documented"'))
    compare = (
        "--plugin documented.py compare modulo --n 4 --max-shift 1 --epsilon 1 --notion pure"
        " --solvers highs,documented --json"
    )
    unlimited, limited = run_commands(
        compare, f"{compare} --time-limit 5", folder=tmp_path, packages=()
    )
    highs, documented = unlimited.answer["rows"]
    assert (highs["status"], documented["status"]) == ("optimal", "optimal")
    assert documented["objective"] == pytest.approx(highs["objective"], rel=1e-6)
    assert [row["status"] for row in limited.answer["rows"]] == ["optimal", "refused"]
    assert "time_limit" in limited.answer["rows"][1]["failure"]


# The tests of the contract that every backend must pass.
CLAUSES = [name for name in dir(BackendContract) if name.startswith("test_")]


def test_a_package_runs_the_contract_on_its_backend(tmp_path: Path) -> None:
    """Run the contract by pytest in a separate folder. Features that linprog lacks are skipped."""
    code = read_documented_file("test_linprog.py").replace(
        "from linprog", "from workbench_example.linprog"
    )
    (tmp_path / "test_theirs.py").write_text(code)
    completed = run_python(
        "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "test_theirs.py", folder=tmp_path
    )
    assert completed.returncode == 0, completed.stdout
    summary = re.search(r"^(\d+) passed, (\d+) skipped in", completed.stdout, re.MULTILINE)
    assert summary is not None, completed.stdout
    passed, skipped = map(int, summary.groups())
    assert passed >= 30
    assert passed + skipped == len(CLAUSES)
    for reason in (
        "does not claim the capability milp",
        "does not support the option time_limit",
        "SciPy returns to",
    ):
        assert reason in completed.stdout


def test_the_contract_names_the_clauses_that_a_wrong_backend_breaks(tmp_path: Path) -> None:
    """The backend has one wrong sign. The contract runs by unittest, without pytest."""
    code = read_documented_file("linprog.py")
    right, wrong = "row_dual[has_upper] += upper_slopes", "row_dual[has_upper] -= upper_slopes"
    assert right in code
    (tmp_path / "linprog.py").write_text(code.replace(right, wrong))
    (tmp_path / "test_linprog.py").write_text(
        "import sys\nsys.modules['pytest'] = None\nimport unittest\n"
        + read_documented_file("test_linprog.py").replace(
            "(BackendContract)", "(BackendContract, unittest.TestCase)"
        )
    )
    completed = run_python("-m", "unittest", "test_linprog", folder=tmp_path, packages=())
    assert completed.returncode == 1, completed.stderr
    failed = {*re.findall(r"^FAIL: (\w+)", completed.stderr, re.MULTILINE)}
    assert failed == {
        "test_duals_signs",
        "test_duals_are_slopes",
        "test_lagrangian_bound",
        "test_an_optimal_lp_has_a_bound",
        "test_resolve_equals_cold",
        "test_maximisation",
    }, completed.stderr
    assert (
        "linprog breaks the clause 'duals', test_duals_signs: Report row duals" in completed.stderr
    )
    assert "ERROR" not in completed.stderr


def run_with_plugin_file(file: str, command: str, folder: Path) -> CommandResult:
    """Run a command of `workbench`, given as a line of a shell, with the option --plugin.

    Nothing captures the prints of the process.
    """
    arguments = ("-m", "workbench", "--plugin", file, *shlex.split(command))
    completed = run_python(*arguments, folder=folder, packages=())
    return CommandResult(completed.returncode, completed.stdout, completed.stderr)


@pytest.fixture
def folder_with_noisy_plugin(tmp_path: Path) -> Path:
    """Return a folder with noisy.py: one baseline prints, the other calls sys.exit."""
    (tmp_path / "noisy.py").write_text(
        "import sys\nimport workbench as wb\nfrom workbench.pipeline.published import Baseline\n"
        "def prints(request):\n    print('said meanwhile')\n"
        "def leaves(request): sys.exit(0)\n"
        "wb.register(Baseline('b[red]x', 'modulo', prints))\n"
        "wb.register(Baseline('[/nope]', 'modulo', leaves))\n"
        "print('said at the start')\n"
    )
    return tmp_path


MODULO_FRONTIER = "frontier modulo --n 4 --max-shift 1 --epsilon 1 --level none"


def test_prints_and_exits_of_plugins_do_not_change_the_output(
    folder_with_noisy_plugin: Path,
) -> None:
    """With --json prints go to stderr. A call of sys.exit is a failure of the baseline."""
    frontier = run_with_plugin_file(
        "noisy.py", f"{MODULO_FRONTIER} --json", folder=folder_with_noisy_plugin
    )
    failures = {row["mechanism"]: row["failure"] for row in frontier.answer["rows"]}
    assert "no mechanism of it" in failures["b[red]x"]
    assert "SystemExit" in failures["[/nope]"]
    assert frontier.stderr.count("said") == 2


def test_names_of_plugins_are_not_markup(folder_with_noisy_plugin: Path) -> None:
    frontier = run_with_plugin_file("noisy.py", MODULO_FRONTIER, folder=folder_with_noisy_plugin)
    assert frontier.returncode == 0, frontier.stderr
    assert "b[red]x" in frontier.stdout
    assert "[/nope]" in frontier.stdout


def test_a_plugin_file_that_exits_cannot_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "leaves.py").write_text("import sys\nsys.exit(0)\n")
    doctor = run_with_plugin_file("leaves.py", "doctor", folder=tmp_path)
    assert (doctor.returncode, doctor.stdout) == (2, "")
    assert "plugin leaves.py cannot be loaded. SystemExit" in doctor.stderr


def test_a_notion_that_exits_ends_the_command_with_an_error(tmp_path: Path) -> None:
    (tmp_path / "notion.py").write_text(
        "import sys\nimport workbench as wb\nfrom workbench.notions.dp import DP\n"
        "@wb.register\nclass Mine(DP):\n    name, title = 'mine', 'my DP'\n"
        "    def measure(self, laws, values):\n        sys.exit(0)\n"
    )
    command = "design modulo --n 4 --max-shift 1 --epsilon 1 --notion mine --json"
    design = run_with_plugin_file("notion.py", command, folder=tmp_path)
    assert design.returncode == 2
    assert "sys.exit" in json.loads(design.stdout)["message"]


def test_register_refuses_objects_of_unknown_kinds() -> None:
    with pytest.raises(wb.InvalidRequest, match="plugin must be a Family, a Notion"):
        wb.register(3)


def test_baselines_of_a_plugin_are_compared_with_quantized_laplace_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A baseline must be private and have at most 2^bits outputs.

    Both baselines are quantizers with the outputs -1 and 1, whose law is affine in the value x.
    """

    def make_quantizer(steepest_slope: Fraction) -> wb.PiecewiseAffine:
        """Return the quantizer whose ln p has this largest slope, (1/2 - share) / share."""
        share = Fraction(1, 2) - steepest_slope / 8
        return wb.PiecewiseAffine.from_laws(
            [-1, 1], [-1, 1], [[1 - share, share], [share, 1 - share]]
        )

    builders = {
        "private": lambda request: make_quantizer(Fraction(1, 2)),
        "steep": lambda request: make_quantizer(Fraction(3)),
    }
    baselines = {
        name: Plugin(published.Baseline(name, "laplace", build), "theirs")
        for name, build in builders.items()
    }
    monkeypatch.setattr(published, "load_plugins", lambda group: baselines)
    rows = wb.frontier("laplace", epsilon=1, bits="1/2,2", ell=2).rows
    baseline_rows = {
        (row["mechanism"], row["bits"]): row for row in rows if row["curve"] == "baseline"
    }
    private = baseline_rows["private", 2.0]
    assert private["private"] is True
    # E[M(x)] = (1 - 2 share) x and M(x)² = 1. The mean of x² over [-1, 1] is 1/3.
    share = 1 / 2 - 1 / 16
    assert private["objective"] == pytest.approx(1 + 1 / 3 - 2 * (1 - 2 * share) / 3)
    assert "at most 2^0.5 outputs" in baseline_rows["private", 0.5]["failure"]
    assert "objective" not in baseline_rows["steep", 2.0]
    assert "is NOT private at the requested budget" in baseline_rows["steep", 2.0]["failure"]


def test_a_plugin_file_that_raises_a_base_exception_cannot_be_loaded(tmp_path: Path) -> None:
    file = tmp_path / "odd.py"
    file.write_text("class Odd(BaseException): pass\nraise Odd('at import')\n")
    with pytest.raises(wb.InvalidRequest, match=r"plugin odd.py cannot be loaded. Odd: at import"):
        plugins.load_plugin_file(file)


class _UnusualError(BaseException):
    """An error that a plug-in raises and that `except Exception` does not catch."""


def test_a_plugin_that_raises_a_base_exception_is_reported_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_unusual_error(*_: Any, **__: Any) -> Any:
        raise _UnusualError("while it designs")

    monkeypatch.setattr(type(get_family("channel")), "open_session", raise_unusual_error)
    with pytest.raises(SystemExit) as stop:
        main(shlex.split("design channel --answers 0..2 --max-shift 1 --epsilon 1"))
    assert stop.value.code == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "_UnusualError: while it designs" in message
