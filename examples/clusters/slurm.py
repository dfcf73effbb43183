"""A sweep on a SLURM cluster: workers are jobs that come and go with the work that is left.

    python slurm.py SPEC.toml --ledger LEDGER.sqlite --workers 40      run it (from the login node, in tmux or as a job)
    python slurm.py --dry-run                                          print the script of one job, submit nothing

Needs dask-jobqueue beside the extra "cluster", on a file system that all nodes share.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile

from dask_jobqueue import SLURMCluster

import workbench as wb


def refusal(script: str) -> str | None:
    """Return why SLURM would not take a job; None where it would."""
    with tempfile.NamedTemporaryFile("w", suffix=".sbatch") as job:
        job.write(script)
        job.flush()
        asked = subprocess.run(
            ["sbatch", "--test-only", job.name], capture_output=True, text=True, timeout=120
        )
    return (
        None
        if asked.returncode == 0
        else " ".join(asked.stderr.split()) or f"exit code {asked.returncode}"
    )


def main() -> None:
    """Read the options, then print one job or sweep."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("specification", nargs="?", metavar="SPEC.toml")
    parser.add_argument("--ledger", default="results/ledger.sqlite")
    parser.add_argument("--queue", help="The partition.")
    parser.add_argument(
        "--hours", type=int, default=4, help="Of one job; its worker ends ten minutes before."
    )
    parser.add_argument("--workers", type=int, default=10, help="At most so many jobs at a time.")
    parser.add_argument("--dry-run", action="store_true")
    given = parser.parse_args()
    if given.specification is None and not given.dry_run:
        parser.error("a SPEC.toml is needed without --dry-run")
    if not given.dry_run and shutil.which("sbatch") is None:
        sys.exit(
            "SLURM's sbatch is not on the PATH: run this where jobs can be submitted, or use --dry-run."
        )
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # dask_jobqueue ends Python at once on Ctrl-C
    cluster = SLURMCluster(
        queue=given.queue,
        walltime=f"{given.hours:02}:00:00",
        cores=1,  # one solve at a time: solvers keep one pool of threads per process
        processes=1,
        memory="4GB",
        worker_extra_args=["--lifetime", f"{60 * given.hours - 10}m", "--lifetime-stagger", "5m"],
    )
    if given.dry_run:
        print(cluster.job_script())
        cluster.close()
        return
    refused = refusal(cluster.job_script())
    if refused is not None:  # else the workers would be waited for for ever
        cluster.close()
        sys.exit(f"SLURM does not take the job: {refused}")
    cluster.adapt(minimum=1, maximum=given.workers)
    with cluster.get_client() as client:
        client.wait_for_workers(1)  # the first job may wait in the queue for hours
        print(wb.sweep(given.specification, given.ledger, cluster=cluster.scheduler_address).counts)
    cluster.close()


if __name__ == "__main__":
    main()
