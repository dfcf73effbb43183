"""Test the example files for clusters: jobs for a queue, workers that come and go."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import workbench as wb
from workbench.sweeps.export import flatten_ledger
from workbench.sweeps.ledger import Ledger

distributed = pytest.importorskip("distributed")

# Tests of real clusters belong to `make test-all`. test_cluster_client.py has fast ones.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
CLUSTERS = ROOT / "examples" / "clusters"


def _check_bash_syntax(script: str) -> None:
    """Raise an error if bash cannot parse a script."""
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_the_slurm_example_prints_a_job_that_bash_and_slurm_can_read() -> None:
    # The package is not imported here, because its import changes the handling of Ctrl-C.
    if importlib.util.find_spec("dask_jobqueue") is None:
        pytest.skip("no dask_jobqueue")
    options = ["--dry-run", "--queue", "short", "--hours", "2"]
    script = subprocess.run(
        [sys.executable, CLUSTERS / "slurm.py", *options],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    ).stdout
    _check_bash_syntax(script)
    assert script.startswith("#!/usr/bin/env bash")
    settings = re.findall(r"^#SBATCH (.+)$", script, re.MULTILINE)
    assert {"-p short", "-n 1", "--cpus-per-task=1", "-t 02:00:00"} <= set(settings)
    assert "--lifetime 110m" in script  # The worker ends before the job.
    assert "--nthreads 1" in script


# A stand-in for dask_jobqueue that starts no jobs.
_DASK_JOBQUEUE_STUB = """
class SLURMCluster:
    scheduler_address = "tcp://nowhere:1"
    def __init__(self, **given): pass
    def job_script(self): return "#!/usr/bin/env bash"
    def close(self): pass
    def adapt(self, **given): raise SystemExit("it would wait for workers")
"""


# sbatch fails with the text `sbatch_error`. None: there is no sbatch.
@pytest.mark.parametrize(
    ("sbatch_error", "message"),
    [(None, "sbatch is not on the PATH"), ("no partition", "no partition")],
)
def test_the_slurm_example_ends_with_a_sentence_where_no_job_can_run(
    sbatch_error: str | None, message: str, tmp_path: Path
) -> None:
    (tmp_path / "dask_jobqueue.py").write_text(_DASK_JOBQUEUE_STUB)
    programs = tmp_path / "bin"
    programs.mkdir()
    if sbatch_error is not None:
        (programs / "sbatch").write_text(f"#!/bin/sh\necho {sbatch_error} >&2\nexit 1\n")
        (programs / "sbatch").chmod(0o755)
    completed = subprocess.run(
        [sys.executable, CLUSTERS / "slurm.py", "spec.toml"],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PATH": str(programs), "PYTHONPATH": str(tmp_path)},
    )
    assert completed.returncode == 1
    assert message in completed.stderr
    assert "Traceback" not in completed.stderr


def test_the_sbatch_script_calls_a_make_target_that_exists() -> None:
    script = (CLUSTERS / "full.sbatch").read_text("utf-8")
    _check_bash_syntax(script)
    assert re.findall(r"^make ([a-z-]+)$", script, re.MULTILINE) == ["full"]
    assert re.search(r"^full:", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)


def test_workers_that_come_and_go_give_the_rows_of_one_process(tmp_path: Path) -> None:
    grid = {
        "model": "modulo",
        "n": 6,
        "max_shift": [1, 2],
        "notion": "dp",
        "delta": 0.1,
        "epsilon": "0.5:1.5:5",
    }
    wb.sweep({"grid": grid}, tmp_path / "alone.sqlite", jobs=1)
    with distributed.LocalCluster(
        n_workers=0, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    ) as cluster:
        cluster.adapt(minimum=0, maximum=2)
        outcome = wb.sweep(
            {"grid": grid}, tmp_path / "many.sqlite", cluster=cluster.scheduler_address
        ).counts
    assert (outcome.points, outcome.solved, outcome.given_up) == (10, 10, 0)
    with Ledger(tmp_path / "alone.sqlite") as alone, Ledger(tmp_path / "many.sqlite") as many:
        assert flatten_ledger(alone) == flatten_ledger(many)
