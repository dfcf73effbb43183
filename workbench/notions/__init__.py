"""The notions of privacy, one file each.

pure      P <= e^ε Q                            (Dwork et al. 2006)
dp        Σ max(0, P - e^ε Q) <= δ              the hockey stick
pdp       Σ P over {P > e^ε Q} <= δ             (3), (5), (8) of Kadam et al. 2024
metric    P <= e^ε(x, x') Q                     a budget for each pair, or ε |x - x'| on real inputs
curve     Σ max(0, P - e^ε Q) <= δ              of several (ε, δ) at once
tradeoff  T(P, Q) >= f                          a convex piecewise linear trade-off function f
renyi, zcdp, gdp                                one number each (Mironov 2017, Bun and Steinke 2016, Dong et al. 2022)
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

# one line per notion
_EVERY = (Pure(), DP(), PDP(), Metric(), Curve(), TradeOffFunction(), Renyi(), ZCDP(), GDP())
BUILT_IN_NOTIONS: dict[str, Notion] = {each.name: each for each in _EVERY}


def notion_names() -> Iterator[str]:
    """The names of all notions, those of other packages last: these take time to look for."""
    yield from BUILT_IN_NOTIONS
    yield from plugins.list_extensions("notions")


def get_notion(given: str | Notion) -> Notion:
    """The notion of a name; a Notion is itself. Raises InvalidRequest with the names there are."""
    if isinstance(given, Notion):
        return given
    if isinstance(given, str):
        named = BUILT_IN_NOTIONS.get(given) or plugins.list_extensions("notions").get(given)
        if isinstance(named, Notion):
            return named
    return must("notion", f"one of {', '.join(notion_names())}", given)


def get_delta_notion(given: str | Notion) -> DeltaNotion:
    """A notion with a δ at every ε. Raises InvalidRequest with the names of those there are."""
    measure = (
        BUILT_IN_NOTIONS.get(given) or plugins.list_extensions("notions").get(given)
        if isinstance(given, str)
        else given
    )
    if not isinstance(measure, DeltaNotion):
        choices = [name for name in notion_names() if isinstance(get_notion(name), DeltaNotion)]
        must("notion", f"one of {', '.join(choices)}", getattr(given, "name", given))
    return measure


def register_notion(added: Notion) -> None:
    """Make a notion known by its name, as `workbench.register`. Raises InvalidRequest for a name that is taken."""
    if not isinstance(added, Notion):
        must("notion", "a Notion", type(added).__name__)
    plugins.register(added)
