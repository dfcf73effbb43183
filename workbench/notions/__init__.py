"""The notions of privacy that the workbench can design for and verify, one file each.

P and Q are the laws of the output for two neighbouring inputs x, x'. T(P, Q) is the smallest type
II error of a test between them, as a function of its type I error.

pure      P <= e^ε Q                            (Dwork et al. 2006)
dp        Σ max(0, P - e^ε Q) <= δ              the hockey stick
pdp       Σ P over {P > e^ε Q} <= δ             (3), (5), (8) of Kadam et al. 2024
metric    P <= e^ε(x, x') Q                     a budget for each pair, or ε |x - x'| on real inputs
curve     Σ max(0, P - e^ε Q) <= δ              of several (ε, δ) at once
tradeoff  T(P, Q) >= f                          a convex piecewise linear trade-off function f
renyi, zcdp, gdp                                one number each (Mironov 2017, Bun and Steinke
                                                2016, Dong et al. 2022)
"""

from __future__ import annotations

from collections.abc import Iterator

from workbench.errors import must
from workbench.io import plugins
from workbench.notions.curve import Curve
from workbench.notions.dp import DP, DeltaNotion
from workbench.notions.gdp import GDP
from workbench.notions.metric import Metric
from workbench.notions.notion import (
    HockeyStick,
    MassAboveRatio,
    Notion,
    PowerCone,
    RelativeEntropy,
    Requirement,
    SlopedHockeyStick,
)
from workbench.notions.pdp import PDP
from workbench.notions.pure import Pure
from workbench.notions.renyi import Renyi
from workbench.notions.tradeoff import TradeOffFunction
from workbench.notions.zcdp import ZCDP

__all__ = [
    "BUILT_IN_NOTIONS",
    "HockeyStick",
    "MassAboveRatio",
    "Notion",
    "PowerCone",
    "RelativeEntropy",
    "Requirement",
    "SlopedHockeyStick",
    "get_delta_notion",
    "get_notion",
    "notion_names",
    "register_notion",
]

# A new notion of this package needs one entry here.
_ALL_NOTIONS = (
    Pure(),
    DP(),
    PDP(),
    Metric(),
    Curve(),
    TradeOffFunction(),
    Renyi(),
    ZCDP(),
    GDP(),
)
BUILT_IN_NOTIONS: dict[str, Notion] = {notion.name: notion for notion in _ALL_NOTIONS}


def notion_names() -> Iterator[str]:
    """Yield the names of all notions.

    Those of other packages come last because finding them takes time.
    """
    yield from BUILT_IN_NOTIONS
    yield from plugins.list_extensions("notions")


def _find_notion(name: str) -> Notion | None:
    """Return the notion of a name, or None."""
    notion = BUILT_IN_NOTIONS.get(name) or plugins.list_extensions("notions").get(name)
    return notion if isinstance(notion, Notion) else None


def get_notion(notion: str | Notion) -> Notion:
    """Return the notion of a name.

    Args:
        notion: A name, or a Notion, which is returned itself.

    Raises:
        InvalidRequest: If no notion has the name. The message lists all names.
    """
    if isinstance(notion, Notion):
        return notion
    if isinstance(notion, str):
        registered = _find_notion(notion)
        if registered is not None:
            return registered
    return must("notion", f"one of {', '.join(notion_names())}", notion)


def get_delta_notion(notion: str | Notion) -> DeltaNotion:
    """Return a notion that has a δ at every ε.

    Args:
        notion: A name, or a Notion.

    Raises:
        InvalidRequest: If the notion has no δ. The message lists the notions that have one.
    """
    registered = _find_notion(notion) if isinstance(notion, str) else notion
    if not isinstance(registered, DeltaNotion):
        choices = [name for name in notion_names() if isinstance(get_notion(name), DeltaNotion)]
        must("notion", f"one of {', '.join(choices)}", getattr(notion, "name", notion))
    return registered


def register_notion(notion: Notion) -> None:
    """Make a notion available by its name, as `workbench.register` does.

    Args:
        notion: The notion of a new name.

    Raises:
        InvalidRequest: If another notion has the name.
    """
    if not isinstance(notion, Notion):
        must("notion", "a Notion", type(notion).__name__)
    plugins.register(notion)
