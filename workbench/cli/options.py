"""A family's options as the parameters of a command: names, types, defaults and help from one table."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from workbench.families.base import Family
from workbench.families.option import Option, spell

__all__ = ["command", "files_of", "given_values", "keyword", "parameter", "values_of"]


def parameter(option: Option, *, default: Any = ...) -> inspect.Parameter:
    """The parameter of a command that an option is; default: another one than the option's."""
    name = option.command or option.name
    text = spell(option.default) if option.kind is str and option.default is not None else option.default
    shown = text if default is ... else default
    kind: Any
    if option.kind is list:
        kind, shown = list[str] | None, None
    elif option.kind is bool:
        kind = bool
    else:
        kind = option.kind if option.required or shown is not None else option.kind | None
    flag = f"--{name.replace('_', '-')}"
    words = f"{flag}/--no-{flag[2:]}" if option.kind is bool and shown else flag
    declared = typer.Option(words, help=escape(option.help), min=option.least, max=option.most)
    given = inspect.Parameter.empty if option.required else shown
    return inspect.Parameter(
        option.name, inspect.Parameter.KEYWORD_ONLY, default=given, annotation=Annotated[kind, declared]
    )


def command(run: Callable[..., None], parameters: Iterable[inspect.Parameter], summary: str) -> Callable[..., None]:
    """A function that typer reads as a command with these parameters, and that calls `run` with all of them by name."""

    def called(**given: Any) -> None:
        run(**given)

    ordered = sorted(parameters, key=lambda entry: entry.default is not inspect.Parameter.empty)
    called.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    called.__annotations__ = {entry.name: entry.annotation for entry in ordered} | {"return": None}
    called.__doc__ = escape(summary)
    return called


def keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    """A parameter of a command that is no option of a family."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def given_values(given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, or has a default."""
    return {name: value for name, value in given.items() if value is not None}


def values_of(kind: Family, given: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The exact value of every option of a family from what a command line gave. Raises InvalidRequest."""
    known = {option.name for option in kind.given_in("command")}
    return (
        kind.read({name: value for name, value in given.items() if name in known and value is not None}, "command")
        | more
    )


def files_of(kind: Family, given: Mapping[str, Any]) -> dict[str, Path | str | None]:
    """What a command line gave that may be the name of a file to read."""
    return {
        option.command or option.name: given[option.name]
        for option in kind.given_in("command")
        if isinstance(given.get(option.name), (str, Path))
    }
