"""What differs between recorded JSON and today's, one readable line each."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

__all__ = ["EXACT", "SEARCH", "SOLVER", "VOLATILE", "arithmetic", "differences"]

EXACT, SOLVER, SEARCH = 0.0, 1e-9, 1e-4  # tolerances of numbers

# values that differ from run to run, machine to machine or release to release
VOLATILE = frozenset(
    ("seconds", "version", "backend_version", "solver_version", "workbench", "first_run", "exported", "exported_by")
)
# sentences for people: they must stay sentences, but may be worded better
PROSE = frozenset(("message", "words", "proof", "note", "reason", "title", "asked", "meaning"))
# zero up to a solver's rounding: nobody relies on their digits
ROUNDING = frozenset(
    ("gap", "difference", "residual", "worst", "loss", "loss_to_bound", "worst_gap_to_best", "worst_residual")
)


def differences(
    recorded: Any, today: Any, *, tolerance: float, open_keys: Collection[str] = (), path: str = ""
) -> Iterator[str]:
    """Lines "place: recorded X, now Y". Recorded keys must all exist, with values of their type; more may come.

    tolerance: of numbers, relative; 0 for equality. open_keys: keys whose values may be anything.
    """
    key = path.rpartition(".")[2].partition("[")[0]
    where = path or "(the whole)"
    if key in open_keys or (key == "objective" and recorded is None):  # certificates of labels state their loss since
        return
    if key in PROSE or (key == "error" and path != "error"):
        if _kind(recorded) != _kind(today) or (recorded and not today):
            yield f"{where}: recorded {_short(recorded)}, now {_short(today)}"
        return
    if _kind(recorded) != _kind(today):
        yield f"{where}: recorded {_kind(recorded)} {_short(recorded)}, now {_kind(today)} {_short(today)}"
    elif isinstance(recorded, dict):
        for name, value in recorded.items():
            inner = f"{path}.{name}" if path else name
            if name not in today:
                yield f"{inner}: recorded {_short(value)}, now missing"
            else:
                yield from differences(value, today[name], tolerance=tolerance, open_keys=open_keys, path=inner)
    elif isinstance(recorded, list):
        if len(recorded) != len(today):
            yield f"{where}: recorded {len(recorded)} entries, now {len(today)}"
        for k, (old, new) in enumerate(zip(recorded, today, strict=False)):
            yield from differences(old, new, tolerance=tolerance, open_keys=open_keys, path=f"{path}[{k}]")
    elif key not in VOLATILE and not _same(recorded, today, tolerance, key):
        yield f"{where}: recorded {recorded!r}, now {today!r}"


def _same(recorded: Any, today: Any, tolerance: float, key: str) -> bool:
    if recorded == today or not tolerance or _kind(recorded) != "number":
        return bool(recorded == today)
    rounding = 1e-7 if key in ROUNDING else 1e-12 if tolerance <= SOLVER else tolerance
    return math.isclose(recorded, today, rel_tol=tolerance, abs_tol=rounding)


def arithmetic() -> str:
    """A fingerprint of how this processor rounds in numpy, its BLAS and libm, whose kernels differ in the last bit.

    Solvers then stop at points that differ in the last bits too, and so do the certificates of their answers.
    """
    x = np.random.default_rng(0).random((60, 60))
    parts = [x @ x, x @ x[0], np.linalg.solve(x, x[0]), np.exp(x), np.log(x), np.sin(x), x.sum(axis=0), x.ravel().sum()]
    parts += [np.array([f(v) for v in x[0]]) for f in (math.exp, math.log)]
    return hashlib.sha256(b"".join(np.asarray(part).tobytes() for part in parts)).hexdigest()


def _kind(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return {str: "string", list: "array", dict: "object"}[type(value)]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
