"""Use all functions that need no solver, with numpy and python-flint as the only packages.

Run it from an empty folder:

    python light_core.py [--blocked]

The program ends with an error if one of them fails. --blocked refuses the import of all other
packages, for environments that have them.
"""

from __future__ import annotations

import importlib.abc
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

ALLOWED = {"numpy", "flint", "workbench"}


class _ImportBlocker(importlib.abc.MetaPathFinder):
    """Refuses imports other than workbench, numpy, python-flint and the standard library."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:
        """Raise the error of a missing package for every other package."""
        root = name.partition(".")[0]
        if (
            root not in ALLOWED
            and root not in sys.stdlib_module_names
            and root not in sys.builtin_module_names
        ):
            raise ModuleNotFoundError(f"No module named {name!r} (blocked)", name=name)


def use_core() -> None:
    """Load, audit, certify, sample and verify mechanisms. Raises an error if a step fails."""
    import workbench as wb

    third = Fraction(1, 3)
    directed = wb.ModuloNoise(n=4, shifts=[1], directed=True)
    directed_noise = wb.AdditiveNoise(directed, [54, 24, 10, 0, 12])
    vector_noise = wb.AdditiveNoise(
        wb.ModuloNoise(sizes=(2, 3), shifts=[(0, 1), (1, 0)]), [6, 4, 4, 5, 4, 4]
    )
    quantizer = wb.PiecewiseAffine.from_laws(
        [-1, 1], [-3, 3], [[2 * third, third], [third, 2 * third]]
    )
    # The certificate repairs this noise.
    wb.save(wb.certify(directed_noise, "pdp", "0.5", "0.05"), "noise.json")
    budgets = {(0, 1): Fraction(1, 2), (1, 0): "0.2"}
    wb.save(wb.certify(vector_noise, "dp", budgets, "0.01"), "vector.json")
    wb.save(wb.certify(quantizer, epsilon="0.7", unbiased=True), "quantizer.json")
    for name in ("noise", "vector", "quantizer"):
        wb.check(f"{name}.json")
        assert wb.audit(wb.load(f"{name}.json"), 1).pure_epsilon > 0
    assert len(wb.sample(wb.load("noise.json"), 5, answer=3)) == 5
    assert len(wb.sample(wb.load("quantizer.json"), 2, answer=Fraction(1, 2))) == 2

    noise = wb.AdditiveNoise.from_pmf(wb.ModuloNoise(n=3, max_shift=1), [0.5, 0.25, 0.125, 0.125])
    certificate = wb.certify(noise, "dp", 1, Fraction(3, 10))
    assert certificate.privacy.meets("dp", 1, Fraction(3, 10))
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
    except wb.WorkbenchError as error:  # A package is missing, or the solver.
        message = str(error)
    else:
        message = "wb.design returned a design without a solver."
    assert "pip install" in message, message


if __name__ == "__main__":
    if "--blocked" in sys.argv:
        sys.meta_path.insert(0, _ImportBlocker())
    use_core()
    from workbench.cli.doctor import doctor

    assert doctor(json=True) == 0
