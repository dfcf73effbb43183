"""What a query may say in other words: a prior counted from a column of data, a vector of answers with one budget.

vector of d answers, of which one person changes k at most: each is published with (ε/k, δ/k), which adds up to (ε, δ)
for the whole vector (basic composition).
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import exact
from workbench.exact.objects import Record, Values
from workbench.exact.plain import whole_number
from workbench.families.requirements import is_hockey_stick
from workbench.io.csv_column import read_column
from workbench.io.files import spelled
from workbench.mechanisms.points import points, shown

_MOST = 10_000  # answers of a vector


def restated(given: Values) -> tuple[Record, list[str]]:
    """The same query without column, vector and changed, and sentences on what that means. Raises InvalidRequest."""
    values = {name: value for name, value in given.items() if name not in ("column", "vector", "changed")}
    words = []
    if given.get("column") is not None:
        words += _counted(values, str(given["column"]))
    if given.get("vector") is not None:
        words += _shared(values, given["vector"], given.get("changed"))
    elif given.get("changed") is not None:
        raise InvalidRequest("changed must be left out without a vector.")
    return values, words


def _counted(values: Record, column: str) -> list[str]:
    """The prior is how often every answer stands in a column."""
    prior = values.get("prior")
    if not isinstance(prior, (str, Path)) or not Path(prior).is_file():
        must("prior", "a CSV file that has the column", repr(prior))
    counts = Counter(Fraction(value) for value in read_column(Path(prior), column).tolist())
    if values.get("answers") is None:
        values["answers"] = [*map(shown, sorted(counts))]
        if values.get("max_shift") is None and values.get("neighbours") is None:
            values["neighbours"] = "all"
    answers = points(values["answers"], "answers")
    if missing := next((x for x in counts if x not in answers), None):
        must("the column", f"made of the {len(answers)} answers", shown(missing))
    values["prior"] = [counts[answer] for answer in answers]  # type: ignore[index]
    return [
        f"The prior was counted from {sum(counts.values())} values of the column {column}: where these are private, so "
        "is the table. A prior of public or earlier data is none of the budget."
    ]


def _shared(values: Record, vector: Any, changed: Any) -> list[str]:
    """The budget of one answer of a vector."""
    size = whole_number(_digits(vector), "vector", 1, _MOST)
    most = size if changed is None else whole_number(_digits(changed), "changed", 1, size)
    if not is_hockey_stick(values["notion"]) or values.get("epsilon") is None:
        must("vector", "left out but for a given epsilon under dp or pure", vector)
    epsilon, delta = exact(values["epsilon"], "epsilon"), exact(values["delta"] or 0, "delta")
    values |= {"epsilon": spelled(epsilon / most), "delta": spelled(delta / most) if delta else 0}
    budget = f"epsilon = {values['epsilon']}" + (f", delta = {values['delta']}" if delta else "")
    whole = f"epsilon = {spelled(epsilon)}" + (f", delta = {spelled(delta)}" if delta else "")
    return [
        f"Each of the {size} answers is published on its own with {budget}; one person changes at most {most} of them, "
        f"for whom that adds up to {whole} (basic composition). The losses are those of one answer."
    ]


def _digits(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.isdigit() else value
