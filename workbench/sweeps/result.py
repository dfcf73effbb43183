"""The result of a sweep: counts of its points, and their rows. The ledger is read on demand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from workbench.io.result import Plots, Result, Row
from workbench.sweeps.export import flatten_ledger
from workbench.sweeps.ledger import Ledger

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass
class SweepCounts:
    """The progress of a sweep.

    Attributes:
        name: The name of the specification.
        ledger: The path of the ledger.
        points: The number of points of the specification.
        known: The points that were in the ledger before.
        solved: The points that were solved now.
        given_up: The points of tasks whose processes died repeatedly. The next sweep tries them
            again.
        statuses: The number of points that were solved now, by status ("optimal", ...).
    """

    name: str
    ledger: str
    points: int
    known: int
    solved: int = 0
    given_up: int = 0
    statuses: Counter[str] = field(default_factory=Counter)

    @property
    def left(self) -> int:
        """Return the number of points that still have no row."""
        return self.points - self.known - self.solved

    def to_dict(self) -> Row:
        """Return the counts as JSON-ready values."""
        names = ("name", "ledger", "points", "known", "solved", "left", "given_up")
        counts: Row = {name: getattr(self, name) for name in names}
        return counts | {"statuses": dict(sorted(self.statuses.items()))}


class LedgerRows(Sequence[Row]):
    """The flat rows of some requests, as `flatten_ledger` makes them, sorted by request.

    The ledger is read once, when the first row is used. If this fails, it raises CorruptFile or
    WorkbenchError.

    Args:
        ledger: The path of the ledger.
        keys: The keys (sha256 of the request) whose rows are wanted. Some may have no row.
        count: The number of these keys that have a row.
    """

    def __init__(self, ledger: str, keys: Sequence[str], count: int) -> None:
        self._ledger = ledger
        self._keys = keys
        self._count = count

    @cached_property
    def _rows(self) -> list[Row]:
        """Return the rows of all points, read from the ledger at the first use."""
        with Ledger(self._ledger, create=False) as ledger:
            return flatten_ledger(ledger, set(self._keys), effort=True)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class SweepResult(Result):
    """The rows of all points of a sweep, including those known before, and its counts.

    Attributes:
        counts: The counts in one object.
        points: The number of points of the specification.
        known: The points that were in the ledger before.
        solved: The points that were solved now.
        left: The points without a row.
        given_up: The points of tasks whose processes died repeatedly.
        statuses: The number of points that were solved now, by status ("optimal", ...).
    """

    counts: SweepCounts
    points: int
    known: int
    solved: int
    left: int
    given_up: int
    statuses: Counter[str]

    @classmethod
    def from_counts(cls, counts: SweepCounts, keys: Sequence[str], seconds: float) -> SweepResult:
        """Make the result of a sweep.

        Args:
            counts: The counts at the end of the sweep.
            keys: The keys of all points (sha256 of their requests).
            seconds: The runtime of the sweep in seconds.
        """
        row_count = counts.points - counts.left
        sentences: tuple[str, ...] = ()
        if counts.given_up:
            sentences = (
                f"{counts.given_up} points were given up because their processes died repeatedly. "
                "Run the sweep again.",
            )
        return cls(
            title=f"Sweep {counts.name}",
            rows=LedgerRows(counts.ledger, keys, row_count),
            name="sweep",
            draw=_make_plots,
            finished=row_count,
            total=counts.points,
            seconds=seconds,
            sentences=sentences,
            counts=counts,
            points=counts.points,
            known=counts.known,
            solved=counts.solved,
            left=counts.left,
            given_up=counts.given_up,
            statuses=counts.statuses,
        )

    @property
    def is_interrupted(self) -> bool:
        """Return False: Ctrl-C raises KeyboardInterrupt, and the next sweep continues."""
        return False

    def to_dict(self) -> Row:
        """Return the counts and the rows as JSON-ready values."""
        return self.counts.to_dict() | super().to_dict()


def _make_plots(table: pd.DataFrame) -> Plots:
    """Return the plots of a sweep by name."""
    return {"objective": lambda: _draw_objective(table)}


def _draw_objective(table: pd.DataFrame) -> Figure | None:
    """Draw the objective against the number with most values.

    Every combination of the other parameters is one line. Returns None if no number has two values.
    """
    from workbench.pipeline.frontier_plots import Quantity, draw_by_name
    from workbench.pipeline.registry import get_family

    hot_names: set[str] = set()
    if len(table):
        for model in table["model"].unique():
            hot_names.update(get_family(model).hot_option_names)
    numbers = [name for name in table.columns if name in hot_names and table[name].nunique() > 1]
    if not numbers or "objective" not in table:
        return None
    x_name = max(numbers, key=lambda name: table[name].nunique())
    # The parameters are in the head of a row, whose last column is "workbench".
    parameters = table.loc[:, :"workbench"].columns.difference(
        ["key", "backend_version", "workbench", x_name], sort=False
    )
    varied_names = [name for name in parameters if table[name].nunique(dropna=False) > 1]
    columns = [list(table[name]) for name in varied_names]
    line_names = []
    for index in range(len(table)):
        parts = (
            f"{name} {column[index]}" for name, column in zip(varied_names, columns, strict=True)
        )
        line_names.append(", ".join(parts))
    return draw_by_name(
        table, line_names, Quantity(x_name, x_name), Quantity("objective", "objective")
    )
