"""Valid command lines, calls and files, and wrong values, from which `fuzz_requests` makes cases."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import workbench as wb
from workbench.data.csv_column import read_column
from workbench.mechanisms.dyadic_laplace.randomness import InsecureLocalStream, SharedStream
from workbench.mechanisms.dyadic_laplace.stream import load_bytes, read_stream, write_stream
from workbench.privacy.certificate_file import check
from workbench.privacy.loading import read_mechanism_file
from workbench.privacy.privacy_budget import PrivacyBudget
from workbench.privacy.release_ledger import LedgerEntry
from workbench.questions.labels import Labels
from workbench.sweeps.specification import read_spec

__all__ = ["CALLS", "COMMANDS", "KEY", "READERS", "WORDS", "WRONG", "write_files"]

KEY = bytes(range(32))

# Options that several commands share.
NOISE = {"--n": "4", "--max-shift": "2", "--epsilon": "1"}
DP_WITH_DELTA = {"--delta": "0.1", "--loss": "squared", "--notion": "dp"}
LABELS = {"--labels": "0..3", "--epsilon": "1", "--loss": "squared"}
CHANNEL = {"--answers": "0..3", "--max-shift": "1", "--epsilon": "1"}
QUANTIZER = {"--bins": "-3,-0.5,0.5,3", "--epsilon": "1", "--c": "1", "--density": "uniform"}
DYADIC_LAPLACE = {"--epsilon": "1", "--ell": "2", "--seed-file": "key"}

# (words, options with valid values). An option with the value None has no value. Each command takes
# less than a tenth of a second.
COMMANDS: list[tuple[str, dict[str, str | None]]] = [
    ("design modulo", {**NOISE}),
    ("design modulo", {**NOISE, **DP_WITH_DELTA, "--gap": "0.01", "--seed": "1"}),
    ("design modulo", {"--sizes": "2x2", "--shifts": "0,1;1,0", "--epsilon": "1", "--time-limit": "5"}),
    ("design modulo", {**NOISE, "--minimise": "delta", "--max-loss": "0.5", "--zero-mean": None}),
    ("design modulo", {**NOISE, "--loss": "prior-squared", "--prior": "prior.txt", "--equal": "1=4"}),
    ("design modulo", {**NOISE, "--save": "new.json", "--raw": None, "--method": "fast"}),
    ("design labels", {**LABELS}),
    ("design labels", {**LABELS, "--method": "lp", "--neighbours": "0-1,1-2", "--delta": "0", "--outputs": "0..3"}),
    ("design labels", {"--labels": "labels.csv", "--epsilon": "0.5", "--loss": "pinball:0.3",
                       "--constraint": "unbiased"}),
    ("design channel", {**CHANNEL, "--delta": "0.01", "--loss": "absolute", "--prior": "worst"}),
    ("design channel", {**CHANNEL, "--minimise": "delta", "--max-loss": "0.4", "--outputs": "0..2"}),
    ("design channel", {"--answers": "a,b,c", "--neighbours": "consecutive", "--loss": "error-rate", "--epsilon": "1",
                        "--prior": "1,2,1", "--notion": "pdp", "--constraint": "symmetric", "--raw": None}),
    ("recommend", {**CHANNEL, "--delta": "0.01", "--loss": "absolute"}),
    ("design quantizer", {**QUANTIZER, "--knots": "3"}),
    ("design laplace", {"--epsilon": "1", "--bits": "5", "--code": "delta", "--low": "0", "--high": "2"}),
    ("design laplace", {"--epsilon": "1", "--bits": "6", "--point": "0.5"}),
    ("audit rqm --with q=0.22", {"--with": "bins=-2.7,-0.9,0.9,2.7", "--loss": "squared"}),
    ("audit pbm --with epsilon=1", {"--with": "levels=4", "--data": "normal:0,1"}),
    ("audit pmf.csv", {"--max-shift": "1", "--epsilon": "1"}),
    ("audit matrix.csv", {"--pairs": "0-1", "--epsilon": "1"}),
    ("audit certificate.json", {"--epsilon": "0.5"}),
    ("check certificate.json", {}),
    ("sample certificate.json", {"--count": "3", "--answer": "1"}),
    ("sample matrix.csv", {"--count": "2", "--answer": "0", "--insecure-seed": "1"}),
    ("sample certificate.json", {"--answer": "1", "--ledger": "o.ledger", "--neighbours": "replace", "--total": "9",
                                 "--total-delta": "0.5"}),
    ("sample certificate.json", {"--answer": "1", "--ledger": "releases.ledger", "--neighbours": "replace",
                                 "--count": "2", "--accounting": "basic"}),
    ("publish ledger releases.ledger", {}),
    ("publish again releases.ledger 1", {}),
    ("compose certificate.json", {"--times": "3", "--delta": "1e-6", "--interval": "1e-3"}),
    ("compose matrix.csv", {"--times": "2", "--epsilon": "1", "--interval": "1e-3"}),
    ("privatise labels column.csv", {"--column": "1", "--epsilon": "9", "--out": "o.csv", "--loss": "absolute"}),
    ("privatise labels column.csv", {"--column": "a", "--epsilon": "9", "--out": "o.csv", "--labels": "0..9",
                                       "--snap": None}),
    ("laplace encode column.csv o.bits", {**DYADIC_LAPLACE, "--code": "delta", "--reach": "100", "--column": "1"}),
    ("laplace decode stream.bits", {**DYADIC_LAPLACE}),
    ("laplace decode stream.bits o.csv", {"--seed-file": "key"}),
    ("laplace keygen new.key", {}),
    ("sweep spec.toml", {"--ledger": "o.sqlite", "--jobs": "1"}),
    ("sweep spec.toml", {"--ledger": "ledger.sqlite", "--dry-run": None}),
    ("results list", {"--ledger": "ledger.sqlite", "--limit": "3", "--status": "optimal"}),
    ("results show", {"--ledger": "ledger.sqlite"}),
    ("results export o.csv", {"--ledger": "ledger.sqlite", "--spec": "spec.toml"}),
    ("results export o.csv", {"--ledger": "ledger.sqlite", "--effort": None}),
    ("compare", {"--list": None, "--suite": "small"}),
    ("solvers", {}),
    ("--help", {}),
]  # fmt: skip

# Values of options, most of them wrong for most options: numbers, lists, names, files, and texts
# with special characters.
WORDS = [
    "",
    " ",
    "0",
    "-0",
    "-1",
    "1",
    "2",
    "3",
    "0.5",
    "1/3",
    "1/0",
    "1e-300",
    "1e300",
    "1e-5000",
    "1e5000",
    "9" * 70,
    "9" * 5000,
    "nan",
    "inf",
    "-inf",
    "1_0",
    "0x10",
    "１",
    "١",
    "eight",
    "True",
    "None",
    "1,2",
    "1,,2",
    "1;2",
    "0,0",
    "-3,3",
    "3,-3",
    "1e300,2e300",
    "-1e400,1e400",
    "1..3",
    "3..1",
    "0..99999999999",
    "0..2",
    "",
    "..",
    "normal:0,1",
    "normal:0,1e-300",
    "normal:1e300,1",
    "normal:0,0",
    "normal:x",
    "huber:1e300",
    "huber:0",
    "huber:",
    "pinball:2",
    "pinball:0.5",
    "squared",
    "absolute",
    "poisson",
    "poisson-deviance",
    "error-rate",
    "dp",
    "pdp",
    "pure",
    "metric",
    "rdp",
    "exact",
    "lp",
    "bins",
    "printed",
    "literal",
    "mvu",
    "optm",
    "product",
    "highs",
    "nobody",
    "ortools:pdlp",
    "0-1",
    "0-0",
    "0-99",
    "all",
    "consecutive",
    "unbiased",
    "1=0.5,2=1",
    "1=0.5",
    "1=x",
    "0.1:1:3",
    "1:0:-1",
    "0:1:99999999",
    "none.csv",
    "folder",
    ".",
    "..",
    "/",
    "/dev/null",
    "pipe",
    "pmf.csv",
    "matrix.csv",
    "certificate.json",
    "key",
    "labels.csv",
    "column.csv",
    "spec.toml",
    "ledger.sqlite",
    "releases.ledger",
    "stream.bits",
    "new.png",
    "no/new.json",
    "[bold]",
    "[/]",
    "a b",
    "é",
    "\udcff",
    "\x1b[31m",
    "x" * 300,
    "--",
    "-",
    "--json",
    "\n",
    "a",
    "key*",
    "%s",
    "{}",
    "1e-3",
    "1e6",
    "-5",
]


# Arguments of calls, most of them wrong for most functions.
WRONG: list[Any] = [
    None, True, False, 0, -1, 1, 3, 2.5, 1e300, 1e-300, 10**400, -(10**400), float("nan"), float("inf"), 1j, "",
    "abc", "1e5000",
    "1", "0.5", "nan", b"x", b"", [], [1], [1, 2], ["a"], [[1], [2]], [None], [float("nan")], (), (1, 2), {},
    {"a": 1}, {1: 1},
    set(), object(), type, int, len, lambda *a: 1, lambda *a: [1], range(3), iter([1]), Fraction(1, 3), Decimal("NaN"),
    Decimal("1e9999"), np.array(1.0), np.array([1.0, 2.0]), np.array([]), np.array(["a"]), np.array([[1, 2], [3, 4]]),
    np.array([object()]), np.ma.masked_array([1.0, 2.0], [True, False]), np.float32(0.5), np.int64(2), np.bool_(True),
    np.datetime64("2020-01-01"), np.timedelta64(1, "s"), np.array([1, 2], dtype="m8[s]"), datetime.date(2020, 1, 1),
    Path("none"),
    Path("folder"), "highs", "dp", "squared", "all", "uniform", "auto", slice(3), Ellipsis, NotImplemented,
    memoryview(b"ab"),
]  # fmt: skip


def _encode(x: Any, key: Any, code: Any, epsilon: Any, ell: Any, reach: Any) -> Any:
    """Encode the numbers x, with every argument as a keyword."""
    return write_stream(x, wb.DyadicLaplace(epsilon, ell, reach), key, code)


QUESTION = wb.ModuloNoise(n=3, max_shift=1)
LAW = wb.AdditiveNoise(QUESTION, [4, 2, 1, 2])

# Name of a call -> (function, valid arguments).
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "ModuloNoise": (wb.ModuloNoise, {"n": 3, "sizes": None, "shifts": None, "max_shift": 1, "directed": False}),
    "AdditiveNoise": (wb.AdditiveNoise, {"question": QUESTION, "weights": [4, 2, 1, 2]}),
    "Quantization": (wb.Quantization, {"bins": "-3,-0.5,0.5,3", "c": 1, "density": "uniform"}),
    "Quantization levels": (wb.Quantization, {"levels": 3, "c": 1, "density": "uniform"}),
    "Labels": (Labels, {"values": [0, 1, 2], "prior": [1, 1, 2]}),
    "Labels.uniform": (Labels.uniform, {"low": 0, "high": 3}),
    "Labels.parse": (Labels.parse, {"text": "0..3"}),
    "DyadicLaplace": (wb.DyadicLaplace, {"epsilon": 1, "ell": 2, "reach": 100}),
    "SharedStream": (SharedStream, {"key": KEY, "nonce": bytes(16), "position": 0}),
    "InsecureLocalStream": (InsecureLocalStream, {"seed": 1}),
    "encode": (_encode, {"x": [1.0, 2.0], "key": KEY, "code": "gamma", "epsilon": 1, "ell": 2, "reach": 100}),
    "read_stream": (read_stream, {"data": b"x", "key": KEY, "epsilon": 1, "ell": 2}),
    "DataLaw.point": (wb.DataLaw.point, {"x": 1}),
    "DataLaw.uniform": (wb.DataLaw.uniform, {"low": 0, "high": 1}),
    "design laplace": (wb.design, {"question": wb.DataLaw.point(1.0), "epsilon": 1, "bits": 5, "code": "gamma"}),
    "design": (wb.design, {"question": QUESTION, "epsilon": 1, "delta": 0, "notion": "dp", "loss": "squared",
                           "solver": "highs", "constraints": None, "time_limit": 5.0, "prior": None}),
    "design labels": (wb.design, {"question": Labels.uniform(0, 3), "epsilon": 1, "loss": "squared", "method": "bins"}),
    "audit": (wb.audit, {"mechanism": LAW, "epsilon": 1, "loss": "error-rate", "data": [0, 1]}),
    "certify": (wb.certify, {"mechanism": LAW, "notion": "dp", "epsilon": 3, "delta": 0.1}),
    "certify channel": (wb.certify, {"mechanism": wb.Channel.from_pairs([[1, 2], [2, 1]]), "notion": "pure", "epsilon": 2}),
    "Channel.from_pairs": (wb.Channel.from_pairs, {"rows": [[1, 2], [2, 1]], "pairs": [(0, 1)], "directed": True}),
    "PiecewiseAffine.from_laws": (wb.PiecewiseAffine.from_laws, {"knots": [-1, 1], "outputs": [-3, 3], "ends": [[2, 1], [1, 2]]}),
    "compose": (wb.compose, {"mechanism": LAW, "times": 2, "delta": 0.1, "epsilon": None, "interval": 1e-3}),
    "profile": (wb.profile, {"mechanism": LAW, "notion": "dp"}),
    "sample": (wb.sample, {"mechanism": LAW, "count": 3, "answer": 0, "insecure_seed": 1}),
    "load": (wb.load, {"path": "pmf.csv"}),
    "verify_certificate": (wb.check, {"path": "certificate.json"}),
    "Ledger": (wb.Ledger, {"path": "l/x.sqlite", "create": True, "patience": 1.0}),
    "sweep": (wb.sweep, {"spec": {"grid": {"model": "modulo", "n": 3, "max_shift": 1, "epsilon": 1}},
                         "ledger": "l/y.sqlite", "jobs": 1, "cluster": None}),
    "sweep grid": (lambda **grid: wb.sweep({"grid": {"model": "modulo", **grid}}, "l/z.sqlite", jobs=1),
                   {"n": 3, "max_shift": 1, "epsilon": [0.5, 1], "delta": 0, "notion": "dp", "loss": "squared",
                   "solver": "highs"}),
    "read_column": (read_column, {"path": Path("column.csv"), "column": "1"}),
}  # fmt: skip

# Kind of a file -> (function that reads it, a valid file that `write_files` writes).
READERS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "certificate": (check, "certificate.json"),
    "mechanism": (read_mechanism_file, "mechanism.json"),
    "pmf": (read_mechanism_file, "pmf.csv"),
    "matrix": (read_mechanism_file, "matrix.csv"),
    "labels": (Labels.read, "labels.csv"),
    "column": (read_column, "column.csv"),
    "specification": (read_spec, "spec.toml"),
    "stream": (lambda path: read_stream(load_bytes(path), KEY), "stream.bits"),
    "ledger": (lambda path: _read_ledger(path), "ledger.sqlite"),
    "releases": (lambda path: wb.ReleaseLedger.open(path).to_dict(), "releases.ledger"),
}


def _read_ledger(path: Path) -> None:
    """Read all rows of a ledger."""
    with wb.Ledger(path, create=False) as ledger:
        list(ledger.rows())


def write_files(folder: Path) -> None:
    """Write one valid file of every kind, and two empty folders."""
    (folder / "pmf.csv").write_text("0.5\n0.25\n0.25\n")
    (folder / "matrix.csv").write_text("0.75,0.25\n0.25,0.75\n")
    (folder / "labels.csv").write_text("label,weight\n0,1\n1,2\n2,0.5\n")
    (folder / "column.csv").write_text("a\n" + "1\n2\n3\n" * 10)
    (folder / "prior.txt").write_text("0.2,0.2\n0.2 0.2 0.2\n")
    (folder / "spec.toml").write_text(
        '[[grid]]\nmodel = "modulo"\nn = 4\nmax_shift = [1, 2]\nepsilon = "0.5:1:3"\n'
    )
    (folder / "key").write_bytes(KEY)
    (folder / "key").chmod(0o600)
    (folder / "stream.bits").write_bytes(
        write_stream([1.0, -2.0, 0.5], wb.DyadicLaplace(1, 2, 100), KEY)
    )
    wb.save(wb.certify(LAW, "dp", 3, 0.1), folder / "certificate.json")

    wb.save(LAW, folder / "mechanism.json")
    wb.sweep(folder / "spec.toml", folder / "ledger.sqlite", jobs=1)
    ledger = wb.ReleaseLedger.create(folder / "releases.ledger", wb.LedgerTerms())
    budget = PrivacyBudget(Fraction(1))
    ledger.book(LedgerEntry("count", "", "pure", budget, budget, "", value=b"3\n"))
    (folder / "folder").mkdir()
    (folder / "l").mkdir()
