"""What numpy and python-flint alone must be enough for; run in an environment without any solver, from an empty folder.

python light_core.py [--blocked]: --blocked refuses every other package first, for environments that have them.
"""

from __future__ import annotations

import importlib.abc
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

ALLOWED = {"numpy", "flint", "workbench"}


class _Blocked(importlib.abc.MetaPathFinder):
    """Every import that is neither ours, numpy, python-flint nor the standard library fails."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:
        root = name.partition(".")[0]
        if (
            root not in ALLOWED
            and root not in sys.stdlib_module_names
            and root not in sys.builtin_module_names
        ):
            raise ModuleNotFoundError(f"No module named {name!r} (blocked)", name=name)


def run() -> None:
    """Load, audit, certify, sample and verify; raises where one of them fails."""
    import workbench as wb

    third = Fraction(1, 3)
    answers = wb.AdditiveNoise(wb.ModuloNoise(n=4, shifts=[1], directed=True), [54, 24, 10, 0, 12])
    vector = wb.AdditiveNoise(
        wb.ModuloNoise(sizes=(2, 3), shifts=[(0, 1), (1, 0)]), [6, 4, 4, 5, 4, 4]
    )
    affine = wb.PiecewiseAffine.from_laws(
        [-1, 1], [-3, 3], [[2 * third, third], [third, 2 * third]]
    )
    wb.save(wb.certify(answers, "pdp", "0.5", "0.05"), "noise.json")  # repaired
    wb.save(
        wb.certify(vector, "dp", {(0, 1): Fraction(1, 2), (1, 0): "0.2"}, "0.01"), "vector.json"
    )
    wb.save(wb.certify(affine, epsilon="0.7", unbiased=True), "quantizer.json")
    for name in ("noise", "vector", "quantizer"):
        wb.check(f"{name}.json")
        assert wb.audit(wb.load(f"{name}.json"), 1).pure_epsilon > 0
    assert len(wb.sample(wb.load("noise.json"), 5, answer=3)) == 5
    assert len(wb.sample(wb.load("quantizer.json"), 2, answer=Fraction(1, 2))) == 2

    noise = wb.AdditiveNoise.from_pmf(wb.ModuloNoise(n=3, max_shift=1), [0.5, 0.25, 0.125, 0.125])
    certified = wb.certify(noise, "dp", 1, Fraction(3, 10))
    assert certified.privacy.meets("dp", 1, Fraction(3, 10))
    Path("rows.csv").write_text("3,1,1\n1,3,1\n1,1,3\n")
    channel = wb.load("rows.csv")
    assert float(wb.audit(channel, 1).pure_ratio) == 3
    certificate = wb.certify(channel, "pure", Fraction(6, 5))
    wb.save(certificate, "channel.json")
    wb.check("channel.json")
    assert len(wb.sample(wb.load("channel.json"), 3, answer=1)) == 3
    assert wb.profile(channel)

    try:
        wb.design(wb.ModuloNoise(n=3, max_shift=1), epsilon=1)
    except wb.WorkbenchError as error:  # a package is missing, or the solver
        said = str(error)
    else:
        said = "a design without a solver"
    assert "pip install" in said, said


if __name__ == "__main__":
    if "--blocked" in sys.argv:
        sys.meta_path.insert(0, _Blocked())
    run()
    from workbench.cli.doctor import doctor

    assert doctor(json=True) == 0
