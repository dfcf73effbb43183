"""What a reproduction is made of: artifacts (a table, a figure, printed numbers beside ours) and errata with checks.

A paper's module defines functions that return an `Artifact` and registers them in its `Paper`; `reproduce` writes each
as CSV, PNG and SVG, and assembles results/README.md. Printed numbers live in papers/printed/<paper>.toml, are only ever
compared with, and never used to compute ours.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Artifact", "Comparison", "Erratum", "Paper", "printed"]


@dataclass(frozen=True)
class Comparison:
    """A printed number beside ours.

    what: the quantity; place: where the paper prints it; printed, ours: the numbers; tolerance: half a unit of the
    last printed digit (or wider, with the reason in `remark`); expected: whether they should agree at all, False where
    the printed number is wrong and `remark` says which erratum shows it.
    """

    what: str
    place: str
    printed: float
    ours: float
    tolerance: float
    expected: bool = True
    remark: str = ""

    @property
    def difference(self) -> float:
        """ours - printed."""
        return self.ours - self.printed

    @property
    def agrees(self) -> bool:
        """Whether they agree within the tolerance."""
        return math.isfinite(self.ours) and abs(self.difference) <= self.tolerance * (1 + 1e-9)

    @property
    def verdict(self) -> str:
        """In words: "agrees", "differs: erratum", or the two surprising ones."""
        if self.agrees:
            return "agrees" if self.expected else "agrees, although an erratum says otherwise"
        return "DIFFERS" if self.expected else "differs: erratum"

    @property
    def surprising(self) -> bool:
        """Whether the verdict is not the expected one."""
        return self.agrees != self.expected


@dataclass(frozen=True)
class Erratum:
    """A printed claim that is wrong, what is right, and the computation that shows it.

    place, printed, right: sentences; evidence: the numbers of the check, in words; holds: whether the check ran and
    showed it.
    """

    place: str
    printed: str
    right: str
    evidence: str
    holds: bool


@dataclass(frozen=True)
class Artifact:
    """One figure or table of a paper, recomputed.

    Attributes:
        name: "fig10", "table1": the file stem and the argument of --only.
        title: one line.
        table: the data behind it, one row per point or cell.
        draw: table -> Figure; None for a table without a figure.
        caption: how it was computed and every way in which it differs from the paper's.
        comparisons: printed numbers beside ours.
    """

    name: str
    title: str
    table: pd.DataFrame
    draw: Callable[[pd.DataFrame], Figure] | None
    caption: str
    comparisons: Sequence[Comparison] = ()


@dataclass(frozen=True)
class Paper:
    """A paper: its artifacts by name, each a function that computes it, and its errata.

    A function takes `full` (False: the minutes-long default; True: everything) and returns the Artifact.
    only_full: names of artifacts that are recomputed with full only; what they left in the results stays otherwise.
    """

    name: str
    title: str
    citation: str
    artifacts: Mapping[str, Callable[[bool], Artifact]]
    errata: Callable[[], Sequence[Erratum]] | None = None
    remarks: Sequence[str] = field(default_factory=tuple)
    only_full: Collection[str] = ()
    on_demand: bool = False  # recomputed only when named or with --full: it takes minutes and times machines


def printed(paper: str) -> dict[str, Any]:
    """The printed numbers of a paper, from papers/printed/<paper>.toml."""
    text = resources.files("workbench.papers").joinpath(f"printed/{paper}.toml").read_text("utf-8")
    return tomllib.loads(text)
