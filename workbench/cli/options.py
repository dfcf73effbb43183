"""Commands made from tables: those of commands.toml, and the options of a family."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import tomllib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from rich.markup import escape
from typer.core import TyperCommand

from workbench.cli.console import Report
from workbench.exact.objects import Record, Values

if TYPE_CHECKING:
    from workbench.pipeline.option import Option


_DIGITS = {int: re.compile(r"-?\d{1,15}"), float: re.compile(r"-?\d{1,15}(\.\d{1,15})?")}
_RANGE = re.compile(r"[-+.\deE]+\.\.[-+.\deE]+")
Examples = tuple[Callable[..., None], Iterable[str]]  # a command of a family, and its examples


@cache
def load_entries() -> dict[str, Values]:
    """The commands and groups by their names, in the order of --help."""
    return tomllib.loads(Path(__file__).with_name("commands.toml").read_text("utf-8"))


def format_epilog(examples: Iterable[str], head: str = "Examples:") -> str:
    """Examples as the end of a help text."""
    return "\n\n".join(
        [
            head,
            *[escape(text if text.startswith("(") else f"  workbench {text}") for text in examples],
        ]
    )


class FastParsing:
    """A command or group whose plain values are read without pydantic, and whose help is shown without what typer loads
    for Markdown and tracebacks: these take longer to load than some commands take."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        _load_help()
        super().format_help(ctx, formatter)  # type: ignore[misc]

    def get_params(self, ctx: Any) -> list[Any]:
        """Its parameters, --help among them."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # of the class it is mixed with
        for parameter in parameters:
            parameter.get_runtime_param = partial(_PlainValues, parameter.get_runtime_param)
        return parameters


def _load_help() -> None:
    """Load what typer shows a help text with, which names two classes of Rich that our texts and errors never use."""
    unused = {f"rich.{name.lower()}": name for name in ("Markdown", "Traceback")}
    unused = {module: name for module, name in unused.items() if module not in sys.modules}
    for module, name in unused.items():
        sys.modules[module] = ModuleType(module)
        setattr(sys.modules[module], name, type(name, (), {}))
    importlib.import_module("typer.rich_utils")
    for module in unused:
        del sys.modules[module]


class Command(FastParsing, TyperCommand):
    """A command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read a command line, on which an option whose value is in brackets may stand without it."""
        bare = {
            flag
            for each in self.params
            if (each.metavar or "").startswith("[")
            for flag in each.opts
        }
        return super().parse_args(ctx, _with_values(args, bare))


def _with_values(args: list[str], bare: Collection[str]) -> list[str]:
    """Arguments in which each of some options has a value: the range that follows it, or else "inputs"."""
    return [
        f"{arg}=inputs" if arg in bare and not _RANGE.fullmatch(after) else arg
        for arg, after in zip(args, [*args[1:], ""], strict=False)
    ]


@dataclass(frozen=True)
class _PlainValues:
    """Takes what is a text, a path, a number of digits within its bounds, or nothing; the rest as typer does."""

    others: Callable[[], Any]

    def coerce(self, value: Any, *, param: Any, ctx: typer.Context) -> Any:
        """The value of a parameter."""
        kind, several = param.type_descriptor.annotation, param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        element = get_args(kind)[0] if several else kind
        parts = [
            _read_plain_value(element, part, param) for part in (value if several else [value])
        ]
        if None in parts:
            return self.others().coerce(value, param=param, ctx=ctx)
        return parts if several else parts[0]


def _read_plain_value(kind: Any, value: Any, param: Any) -> Any:
    """A plain value; None for others."""
    if kind in (str, Path) and isinstance(value, (str, Path)):
        return kind(value)
    if kind in _DIGITS and _DIGITS[kind].fullmatch(str(value)):
        number = kind(value)
        if (param.min is None or number >= param.min) and (
            param.max is None or number <= param.max
        ):
            return number
    return None


def make_command(
    name: str,
    function: Callable[..., Report | None],
    options: Iterable[Option] = (),
    without: Collection[str] = (),
    summary: str | None = None,
) -> Callable[..., None]:
    """A function that typer reads as a command, and that tells what `function` reports.

    name: its entry in commands.toml, whose options the function takes by name; options: of a family, before those;
    without: options that the command does not offer.
    """
    parameters = [*map(_option_parameter, options), *_entry_parameters(name, without)]
    taken = inspect.signature(function).parameters
    own_json = "json" in taken
    if "context" in taken:
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters.append(inspect.Parameter("context", keyword, annotation=typer.Context))

    def called(**given: Any) -> None:
        json = given.get("json", False) if own_json else given.pop("json", False)
        report = function(**given)
        if report:
            report.emit(json)

    ordered = sorted(parameters, key=lambda entry: entry.default is not inspect.Parameter.empty)
    called.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    called.__annotations__ = {entry.name: entry.annotation for entry in ordered} | {"return": None}
    called.__doc__ = escape(summary or inspect.getdoc(function) or "")
    return called


def _entry_parameters(name: str, without: Collection[str]) -> list[inspect.Parameter]:
    """The options of an entry of commands.toml, --json last; {} stands for an option of several commands."""
    entry, several = load_entries()[name], load_entries()["options"]
    own = {**load_entries()[entry.get("like", name)].get("options", {}), **entry.get("options", {})}
    if entry.get("json", True):
        own["json"] = {}
    return [
        _make_parameter(each, about or several[each])
        for each, about in own.items()
        if each not in without
    ]


_TYPES = {"text": str, "file": Path, "count": int, "number": float, "flag": bool, "choice": bool}


def _make_parameter(name: str, about: str | Values) -> inspect.Parameter:
    """A parameter. about: its help, or a table as in commands.toml, with min, max, and name where --name is another,
    and the value in brackets where the option may stand without one (bare)."""
    table: Values = {"help": about} if isinstance(about, str) else about
    kind: Any = _TYPES[table.get("type", "text")]
    is_choice = table.get("type") == "choice"  # --name or --no-name, and neither by default
    default = table.get("default", False if kind is bool and not is_choice else None)
    default = inspect.Parameter.empty if table.get("required") else default
    shown = list[kind] if table.get("repeatable") else kind
    words = escape(table.get("help", "")) or None
    if "metavar" in table:
        declared: Any = typer.Argument(metavar=table["metavar"] or None, help=words)
    else:
        flag = f"--{table.get('name', name).replace('_', '-')}"
        flag = (
            f"{flag}/--no-{flag[2:]}" if is_choice or (kind is bool and default is True) else flag
        )
        declared = typer.Option(
            flag, help=words, min=table.get("min"), max=table.get("max"), metavar=table.get("bare")
        )
    annotation: Any = Annotated[shown | None if default is None else shown, declared]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def _option_parameter(option: Option) -> inspect.Parameter:
    """The parameter that an option of a family is."""
    from workbench.pipeline.option import (
        to_json_value,
    )  # a command without a family works where these refuse to load

    several = option.kind is list
    default = to_json_value(option.default) if option.kind is str else option.default
    return _make_parameter(
        option.name,
        {
            "name": option.command or option.name,
            "type": "text"
            if several
            else next(name for name, kind in _TYPES.items() if kind is option.kind),
            "repeatable": several,
            "required": option.required,
            "default": None if several else default,
            "help": option.help,
        },
    )


def select_given(given: Values) -> Record:
    """What was given, or has a default."""
    return {name: value for name, value in given.items() if value is not None}


def list_input_files(options: Iterable[Option], given: Values) -> Record:
    """What a command line gave that may be the name of a file to read."""
    return {
        option.command or option.name: given[option.name]
        for option in options
        if isinstance(given.get(option.name), (str, Path))
    }
