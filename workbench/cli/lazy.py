"""Groups whose commands come from the families, which are looked up only when such a group is entered.

Auditing, verifying and sampling must work where another package is called `models`; families refuse to load there.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

import typer
from typer.core import TyperGroup

__all__ = ["CompareGroup", "DesignGroup", "FrontierGroup"]

Named = tuple[str, Callable[..., None], str]  # name, function, epilog


class _FamilyGroup(TyperGroup):
    _commands: dict[str, Any]
    _complete: bool

    @property
    def commands(self) -> Any:
        """name -> command: those that were added by hand, and one for each family."""
        if not self._complete:
            self._complete = True
            group = typer.Typer(rich_markup_mode="rich")
            group.callback()(lambda: None)  # so that one command makes a group as well
            for name, function, epilog in self.of_families():
                group.command(name, epilog=epilog)(function)
            self._commands.update(typer.main.get_group(group).commands)
        return self._commands

    @commands.setter
    def commands(self, commands: Any) -> None:
        self._commands, self._complete = dict(commands), False

    @abstractmethod
    def of_families(self) -> Iterable[Named]:
        """The commands of the families."""


class DesignGroup(_FamilyGroup):
    """`workbench design FAMILY`."""

    def of_families(self) -> Iterable[Named]:
        """One for every family."""
        from workbench.cli.console import epilog
        from workbench.cli.design import design_command
        from workbench.families.registry import families

        return [(kind.name, design_command(kind), epilog(kind.examples)) for kind in families()]


class CompareGroup(_FamilyGroup):
    """`workbench compare FAMILY`."""

    def of_families(self) -> Iterable[Named]:
        """The families whose requests may be given to several solvers."""
        from workbench.cli.compare_request import compare_commands

        return compare_commands()


class FrontierGroup(_FamilyGroup):
    """`workbench frontier FAMILY`."""

    def of_families(self) -> Iterable[Named]:
        """One for every family that has a frontier, and the budget table."""
        from workbench.cli.frontier import frontier_commands

        return frontier_commands()
