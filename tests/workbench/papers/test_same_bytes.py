"""Test that different machines write the same bytes.

The machines differ in the kernels of linear algebra, libm, SIMD code, and the number of threads.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

_RUN = """
import sys, numpy
from threadpoolctl import threadpool_info
import scipy.linalg
from workbench.papers.artifact import read_declaration
from workbench.papers.optm import tables
from workbench.papers.reproduce import reproduce
tables.MAX_OUTPUTS = 5  # more than 4: symmetric outputs first, each number after the one before
read_declaration("optm")["above"]["rows"][0]["grid"]["epsilon"] = ["1"]
few = dict(levels="2,4", epsilon="2", method="exact", starts=1)  # the best at 2 are asymmetric
read_declaration("frontier")["frontiers"]["quantizer"] = {"arguments": few}
print(*sorted({d.get("architecture") for d in threadpool_info() if d["internal_api"] == "openblas"}))
print(numpy.exp(numpy.linspace(0.1, 3, 2001)).tobytes().hex())
reproduce(["optm", "frontier"], ["above", "quantizer"], sys.argv[1], jobs=1)
"""


def run(folder: Path, kernel: str, threads: int, **more: str) -> list[str]:
    """Compute two artifacts of searches in a new process. Return its kernels and some e^x."""
    counts = dict.fromkeys(
        ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "RAYON_NUM_THREADS"), str(threads)
    )
    environment = os.environ | {"OPENBLAS_CORETYPE": kernel, "MPLBACKEND": "Agg", **counts, **more}
    done = subprocess.run(
        [sys.executable, "-c", _RUN, str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[:2]


def test_two_kernels_and_two_numbers_of_threads_give_the_same_bytes(tmp_path: Path):
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    old = {
        "NPY_DISABLE_CPU_FEATURES": " ".join(found),
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F,-AVX2_Usable,-FMA_Usable",
    }
    one = run(tmp_path / "one", "Haswell", 2)
    two = run(tmp_path / "two", "Nehalem", 1, **old)
    if one == two:
        pytest.skip("this machine has one kernel only")
    files = sorted(
        p.relative_to(tmp_path / "one")
        for p in (tmp_path / "one").rglob("*.*")
        if p.suffix != ".png"
    )
    assert {
        Path("optm/above.csv"),
        Path("frontier/quantizer.csv"),
        Path("frontier/quantizer.svg"),
    } <= set(files)
    assert [
        f
        for f in files
        if (tmp_path / "one" / f).read_bytes() != (tmp_path / "two" / f).read_bytes()
    ] == []
