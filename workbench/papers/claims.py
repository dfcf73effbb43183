"""Judge sentences for which the papers are cited, by our numbers (results/claims).

printed/<paper>.toml has the sentences and declared/<paper>.toml how each is judged. Both are tables
[claims.<name>] with the same names:

    printed     `place` (in the paper) and `sentence` (as printed)
    declared    `ours` (a template with our numbers) and one of
                `agrees`: an expression that is true if our numbers agree with the sentence
                `unjudged`: why our numbers can neither confirm nor refute it, such as "stand-in
                data": the paper's data are not available, and ours are another data set

Templates and expressions use these values by name:

    arguments   The keyword arguments of `function`.
    function    Its result, a dictionary of numbers and texts. If `stored` names a stored table, the
                table is its first argument.
    numbers     Constants, expressions of the values before, or tables with `stored`, `value` and
                `where`: an expression on the rows of a stored table that satisfy a condition.

A stored table is a file that an artifact or a benchmark wrote: "fig4a" is results/<paper>/fig4a.csv
and "bench/quantizer" is results/bench/quantizer.csv. Claims are therefore judged after all other
artifacts. If a stored table is missing, the claim has the verdict NOT_COMPUTED.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from workbench.exact.objects import Record, Values
from workbench.papers.artifact import (
    Artifact,
    Paper,
    evaluate_expression,
    evaluate_numbers,
    make_artifact,
    read_declaration,
    read_printed_numbers,
)

AGREES = "agrees"
DISAGREES = "does not agree"
UNJUDGED = "cannot be judged"
NOT_COMPUTED = "not computed"

NAME = "claims"  # The name of the paper and of its only artifact.


class MissingTable(Exception):
    """A stored table does not exist, or has other parameters than in the paper."""


def compare_series(
    table: pd.DataFrame,
    x: str,
    y: str,
    names: str,
    name: str,
    others: Sequence[str],
    where: str = "",
) -> Record:
    """Compare one series of a stored table with the best of others, at each x where both exist.

    Args:
        table: The stored table.
        x: The column of positions, such as ε.
        y: The column of values, such as errors. Smaller is better.
        names: The column with the name of the series.
        name: The series that is compared.
        others: The series with which it is compared.
        where: A condition on the rows. Default: all rows.

    Returns:
        count: the number of x. smaller_count: the number where `name` is smaller than all others.
        larger_ranges: the ranges of x where it is not, as text. least_ratio, most_ratio: the
        extremes of the best other value, divided by that of `name`.
    """
    rows = table.query(where) if where else table
    pivot = rows.pivot_table(y, x, names)
    ratios = (pivot[[*others]].min(axis=1) / pivot[name]).dropna()
    return {
        "count": len(ratios),
        "smaller_count": int((ratios > 1).sum()),
        "larger_ranges": _describe_ranges(ratios.index.tolist(), (ratios <= 1).tolist()),
        "least_ratio": ratios.min(),
        "most_ratio": ratios.max(),
    }


def _describe_ranges(positions: Sequence[float], are_chosen: Sequence[bool]) -> str:
    """Return chosen positions as text, each run of neighbours as a range: "1, 3 to 5"."""
    runs: list[list[float]] = []
    extends_run = False
    for position, is_chosen in zip(positions, are_chosen, strict=True):
        if is_chosen and extends_run:
            runs[-1].append(position)
        elif is_chosen:
            runs.append([position])
        extends_run = is_chosen
    texts = [f"{run[0]:g} to {run[-1]:g}" if len(run) > 1 else f"{run[0]:g}" for run in runs]
    return ", ".join(texts) or "none"


# The functions that every declared file may name.
_FUNCTIONS: Mapping[str, Callable[..., Record]] = {"compare_series": compare_series}


def judge_claims(paper: Paper, results: Path) -> Iterator[Record]:
    """Judge the claims of a paper in the order of its declared file.

    Args:
        paper: The paper.
        results: The folder of the results.

    Yields:
        For each claim: paper (its name), place, sentence, ours, verdict, and source (the stored
        tables, or "computed").
    """
    declared_claims = read_declaration(paper.file).get("claims", {})
    printed_claims = read_printed_numbers(paper.file)["claims"] if declared_claims else {}
    for name, claim in declared_claims.items():
        row: Record = {"paper": paper.name, **printed_claims[name]}
        try:
            row |= _judge_claim(claim, paper, results)
        except MissingTable as missing:
            row |= {"ours": str(missing), "verdict": NOT_COMPUTED}
        yield row | {"source": ", ".join(_list_stored_names(claim)) or "computed"}


def _list_stored_names(claim: Values) -> list[str]:
    """Return the names of the stored tables that a claim reads."""
    parts = [claim, *claim.get("numbers", {}).values()]
    names = [part["stored"] for part in parts if isinstance(part, Mapping) and "stored" in part]
    return list(dict.fromkeys(names))


def _judge_claim(claim: Values, paper: Paper, results: Path) -> Record:
    """Return our numbers and the verdict. Raises MissingTable."""
    values: Record = {**claim.get("arguments", {})}
    if "function" in claim:
        function = {**paper.functions, **_FUNCTIONS}[claim["function"]]
        tables = [_read_stored_table(claim, paper, results)] if "stored" in claim else []
        values |= function(*tables, **claim.get("arguments", {}))

    def read_rows(number: Values) -> pd.DataFrame:
        """Return the rows of a stored table that a declared number is computed from."""
        rows = _read_stored_table(number, paper, results)
        return rows.query(number["where"]) if "where" in number else rows

    values = evaluate_numbers(claim.get("numbers", {}), values, read_rows)
    ours = claim["ours"].format(**values)
    if "unjudged" in claim:
        return {"ours": ours, "verdict": f"{UNJUDGED}: {claim['unjudged']}"}
    verdict = AGREES if evaluate_expression(claim["agrees"], values) else DISAGREES
    return {"ours": ours, "verdict": verdict}


def _read_stored_table(part: Values, paper: Paper, results: Path) -> pd.DataFrame:
    """Read the table that `part` names by "stored". Raises MissingTable."""
    name = part["stored"]
    if "/" not in name:
        name = f"{paper.name}/{name}"
    path = results / f"{name}.csv"
    if not path.exists():
        raise MissingTable(f"{name}.csv is missing. Reproduce {name.partition('/')[2]} first.")
    record = path.with_suffix(".json")
    if record.exists() and "parameters" in json.loads(record.read_text("utf-8")):
        raise MissingTable(f"{name}.csv has other parameters than in the paper.")
    return pd.read_csv(path)


def make_claims_table(full: bool, results: Path, papers: Sequence[Paper]) -> Artifact:
    """Make the table of all claims.

    Args:
        full: Not used: the table takes seconds.
        results: The folder of the results, whose stored tables are read.
        papers: The papers in the order of the table.
    """
    rows: list[Record] = []
    for paper in papers:
        # Comparisons that are no papers have no printed file.
        if paper.file:
            rows += judge_claims(paper, results)
    table = pd.DataFrame(rows)
    counts = Counter(verdict.partition(":")[0] for verdict in table["verdict"])
    summary = ", ".join(f"{verdict} {counts[verdict]}" for verdict in sorted(counts))
    return make_artifact(NAME, NAME, table, count=len(table), summary=summary)


PAPER = Paper(
    **read_declaration(NAME)["paper"],
    artifacts={NAME: make_claims_table},
    reads_results=(NAME,),
)
