"""What a sweep returns: its counts, and the rows of its points as they stand in the ledger, read when they are used."""

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
    """Where a sweep stands: points asked for, known before, solved now; statuses of what was solved; given_up: points
    of tasks whose processes died again and again (run the sweep again to retry them)."""

    name: str
    ledger: str
    points: int
    known: int
    solved: int = 0
    given_up: int = 0
    statuses: Counter[str] = field(default_factory=Counter)

    @property
    def left(self) -> int:
        """Points that have no row."""
        return self.points - self.known - self.solved

    def to_dict(self) -> Row:
        """JSON-ready."""
        names = ("name", "ledger", "points", "known", "solved", "left", "given_up")
        return {name: getattr(self, name) for name in names} | {
            "statuses": dict(sorted(self.statuses.items()))
        }


class LedgerRows(Sequence[Row]):
    """The rows of some keys as `workbench results export` writes them, sorted by request; read once, when first used.

    Raises CorruptFile, WorkbenchError where the ledger cannot be read any more.
    """

    def __init__(self, ledger: str, keys: Sequence[str], count: int) -> None:
        self._ledger, self._keys, self._count = ledger, keys, count

    @cached_property
    def _rows(self) -> list[Row]:
        with Ledger(self._ledger, create=False) as book:
            return flatten_ledger(book, set(self._keys), effort=True)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, at: Any) -> Any:
        return self._rows[at]


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class SweepResult(Result):
    """The rows of a sweep's points, those known before included, and its counts: points asked for, known before, solved
    now, left without a row, and given up; statuses of those solved now. outcome: the counts together."""

    counts: SweepCounts
    points: int
    known: int
    solved: int
    left: int
    given_up: int
    statuses: Counter[str]

    @classmethod
    def from_counts(cls, outcome: SweepCounts, keys: Sequence[str], seconds: float) -> SweepResult:
        """keys: of all points."""
        have = outcome.points - outcome.left
        lost = f"{outcome.given_up} points were given up: their processes died again and again. Run the sweep again."
        return cls(
            title=f"Sweep {outcome.name}",
            rows=LedgerRows(outcome.ledger, keys, have),
            name="sweep",
            draw=_make_plots,
            finished=have,
            total=outcome.points,
            seconds=seconds,
            sentences=(lost,) if outcome.given_up else (),
            counts=outcome,
            left=outcome.left,
            **{
                name: getattr(outcome, name)
                for name in ("points", "known", "solved", "given_up", "statuses")
            },
        )

    @property
    def is_interrupted(self) -> bool:
        """No: Ctrl-C is raised, and the same sweep goes on from the ledger."""
        return False

    def to_dict(self) -> Row:
        """JSON-ready: the counts, then the rows."""
        return self.counts.to_dict() | super().to_dict()


def _make_plots(table: pd.DataFrame) -> Plots:
    return {"objective": lambda: _draw_objective(table)}


def _draw_objective(table: pd.DataFrame) -> Figure | None:
    """The objective over the number that takes most values, one line for each value of everything else that differs."""
    from workbench.pipeline.frontier_plots import Quantity, draw_by_name
    from workbench.pipeline.registry import get_family

    hot = (
        {name for model in table["model"].unique() for name in get_family(model).hot_option_names}
        if len(table)
        else set()
    )
    numbers = [name for name in table.columns if name in hot and table[name].nunique() > 1]
    if not numbers or "objective" not in table:
        return None
    across = max(numbers, key=lambda name: table[name].nunique())
    parameters = table.loc[:, :"workbench"].columns.difference(
        ["key", "backend_version", "workbench", across], sort=False
    )
    others = [name for name in parameters if table[name].nunique(dropna=False) > 1]
    values = zip(*(table[name] for name in others), strict=True) if others else [()] * len(table)
    words = (", ".join(map(" ".join, zip(others, map(str, each), strict=True))) for each in values)
    return draw_by_name(table, words, Quantity(across, across), Quantity("objective", "objective"))
