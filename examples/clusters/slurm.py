"""Run a sweep on a SLURM cluster. Workers are jobs that start and end with the remaining work.

    python slurm.py SPEC.toml --ledger LEDGER.sqlite --workers 40
        Run the sweep, from the login node in tmux, or as a job.
    python slurm.py --dry-run
        Print the script of one job and submit nothing.

The program needs dask-jobqueue, the extra "cluster", and a file system that all nodes share.
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


def find_refusal(script: str) -> str | None:
    """Ask SLURM whether it would accept a job, without submitting it.

    Args:
        script: the script of the job.

    Returns:
        SLURM's reason for refusing the job. None if it would accept it.
    """
    with tempfile.NamedTemporaryFile("w", suffix=".sbatch") as job:
        job.write(script)
        job.flush()
        test = subprocess.run(
            ["sbatch", "--test-only", job.name], capture_output=True, text=True, timeout=120
        )
    if test.returncode == 0:
        return None
    return " ".join(test.stderr.split()) or f"exit code {test.returncode}"


def main() -> None:
    """Read the options, then print the script of one job or run the sweep."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("specification", nargs="?", metavar="SPEC.toml")
    parser.add_argument("--ledger", default="results/ledger.sqlite")
    parser.add_argument("--queue", help="SLURM partition.")
    parser.add_argument(
        "--hours",
        type=int,
        default=4,
        help="Hours of one job. Its worker ends ten minutes earlier.",
    )
    parser.add_argument("--workers", type=int, default=10, help="Largest number of jobs at a time.")
    parser.add_argument("--dry-run", action="store_true")
    options = parser.parse_args()
    if options.specification is None and not options.dry_run:
        parser.error("a SPEC.toml is needed without --dry-run")
    if not options.dry_run and shutil.which("sbatch") is None:
        sys.exit(
            "SLURM's sbatch is not on the PATH. "
            "Run this where jobs can be submitted, or use --dry-run."
        )
    # dask_jobqueue would end Python at once on Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    cluster = SLURMCluster(
        queue=options.queue,
        walltime=f"{options.hours:02}:00:00",
        # One solve runs at a time, because solvers have one pool of threads for each process.
        cores=1,
        processes=1,
        memory="4GB",
        worker_extra_args=["--lifetime", f"{60 * options.hours - 10}m", "--lifetime-stagger", "5m"],
    )
    if options.dry_run:
        print(cluster.job_script())
        cluster.close()
        return
    reason = find_refusal(cluster.job_script())
    # Without this check the program would wait for its workers forever.
    if reason is not None:
        cluster.close()
        sys.exit(f"SLURM refuses the job: {reason}")
    cluster.adapt(minimum=1, maximum=options.workers)
    with cluster.get_client() as client:
        # The first job may wait in the queue for hours.
        client.wait_for_workers(1)
        print(
            wb.sweep(
                options.specification, options.ledger, cluster=cluster.scheduler_address
            ).counts
        )
    cluster.close()


if __name__ == "__main__":
    main()
