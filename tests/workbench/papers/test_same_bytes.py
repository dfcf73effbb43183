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

# A program that computes the artifacts "above" of optm and "quantizer" of frontier, with few
# points. It prints its kernels of linear algebra, and values of e^x that depend on libm and SIMD.
# "above" has 4 and 5 outputs: a search for more than 4 outputs has no random starts, and also starts
# from the best outputs of the previous number. The best 4 outputs at ε = 2 are asymmetric, so the
# mirror image has the same loss, and rounding must not decide which of the two is found.
_PROGRAM = """
import sys, numpy
from threadpoolctl import threadpool_info
import scipy.linalg
from workbench.papers.artifact import read_declaration
from workbench.papers.optm import tables
from workbench.papers.reproduce import reproduce
# Shorten the artifact "above" of optm.
tables.MAX_OUTPUTS = 5
read_declaration("optm")["above"]["rows"][0]["grid"]["epsilon"] = ["1"]
# Shorten the artifact "quantizer" of frontier.
few = dict(levels="2,4", epsilon="2", method="exact", starts=1)
read_declaration("frontier")["frontiers"]["quantizer"] = {"arguments": few}
# Print the two lines that describe the machine.
print(*sorted({d.get("architecture") for d in threadpool_info() if d["internal_api"] == "openblas"}))
print(numpy.exp(numpy.linspace(0.1, 3, 2001)).tobytes().hex())
reproduce(["optm", "frontier"], ["above", "quantizer"], sys.argv[1], jobs=1)
"""


def compute_artifacts(folder: Path, kernel: str, threads: int, **variables: str) -> list[str]:
    """Run `_PROGRAM` in a new process and return what it prints about its machine.

    folder: the folder of the results. kernel: the kernel of OpenBLAS. threads: the number of
    threads of each library. variables: further environment variables.
    """
    thread_variables = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "RAYON_NUM_THREADS")
    environment = os.environ | dict.fromkeys(thread_variables, str(threads))
    environment |= {"OPENBLAS_CORETYPE": kernel, "MPLBACKEND": "Agg", **variables}
    process = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return process.stdout.splitlines()[:2]


def test_two_kernels_and_two_numbers_of_threads_give_the_same_bytes(tmp_path: Path):
    extensions = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    # These variables make a new processor compute like an old one.
    old_processor = {
        "NPY_DISABLE_CPU_FEATURES": " ".join(extensions),
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F,-AVX2_Usable,-FMA_Usable",
    }
    new_folder = tmp_path / "new"
    old_folder = tmp_path / "old"
    new_machine = compute_artifacts(new_folder, "Haswell", threads=2)
    old_machine = compute_artifacts(old_folder, "Nehalem", threads=1, **old_processor)
    if new_machine == old_machine:
        pytest.skip("this machine has one kernel only")
    files = {
        path.relative_to(new_folder) for path in new_folder.rglob("*.*") if path.suffix != ".png"
    }
    for name in ("optm/above.csv", "frontier/quantizer.csv", "frontier/quantizer.svg"):
        assert Path(name) in files
    for file in sorted(files):
        assert (new_folder / file).read_bytes() == (old_folder / file).read_bytes(), file
