"""The commands in the order of a day's work, in panels of `workbench --help`; what is not listed here comes last."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

__all__ = ["WorkflowGroup"]

_PANELS = {
    "Design": ("explore", "design", "recommend", "frontier"),
    "Prove and use": ("audit", "check", "sample", "privatise", "compose", "laplace"),
    "Study": ("sweep", "results", "compare", "verify", "reproduce", "programs"),
    "This machine": ("doctor",),
}
_PANEL = {name: panel for panel, names in _PANELS.items() for name in names}


class WorkflowGroup(TyperGroup):
    """The root command."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names, in the order of the panels."""
        places = {name: place for place, name in enumerate(_PANEL)}
        names = sorted(super().list_commands(ctx), key=lambda name: places.get(name, len(places)))
        for name in names:
            command: Any = self.commands[name]
            command.rich_help_panel = _PANEL.get(name, "More")
        return names
