"""Make commands from tables: commands.toml and the options of a family."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from rich.markup import escape
from typer.core import TyperCommand

from workbench.cli.console import Report
from workbench.errors import must
from workbench.exact.objects import Record, Values

if TYPE_CHECKING:
    from workbench.pipeline.option import Option


# Numbers of this form are read without pydantic.
_PLAIN_NUMBERS = {
    int: re.compile(r"-?[0-9]{1,15}"),
    float: re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?"),
}
# Python reads 1_000 as 1000, and digits of other scripts as digits.
_ODD_NUMBER = re.compile(r"[^\0-\x7f]|_")
_RANGE = re.compile(r"[-+.\deE]+\.\.[-+.\deE]+")
# The help of an option may end with what Python accepts in addition.
_PYTHON_REMARK = re.compile(r" \(in Python[^()]*\)")
# After the options of the question, --help lists these options of a family first, in this order.
_LEADING_OPTIONS = (
    "epsilon",
    "delta",
    "loss",
    "prior",
    "notion",
    "alpha",
    "rho",
    "mu",
    "curve",
    "tradeoff",
    "scale",
    "minimise",
    "max_loss",
    "runs",
)
Examples = tuple[Callable[..., None], Iterable[str]]  # A command of a family, and its examples.


@cache
def load_entries() -> dict[str, Values]:
    """Return the commands and groups by name, in the order of --help."""
    return tomllib.loads(Path(__file__).with_name("commands.toml").read_text("utf-8"))


def format_epilog(examples: Iterable[str], head: str = "Examples:") -> str:
    """Format the end of a help text.

    Args:
        examples: Command lines without the program, and texts in parentheses.
        head: First line.
    """
    lines = [text if text.startswith("(") else f"  workbench {text}" for text in examples]
    return "\n\n".join([head, *map(escape, lines)])


class FastParsing:
    """A command or group that starts fast, and refuses options that are given twice.

    Plain values are read without pydantic. Help is shown without the modules for Markdown and
    tracebacks, whose import takes longer than some commands.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read a command line. Raises InvalidRequest for an option with two values.

        Args:
            ctx: Context of the command.
            args: The arguments.
        """
        # The parser of typer would take the last value without a word.
        parser = self.make_parser(ctx)  # type: ignore[attr-defined]
        given_names = set()
        # The third result lists the parameters in the order in which they were given.
        for parameter in parser.parse_args([*args])[2]:
            is_plain_flag = getattr(parameter, "is_flag", False) and not parameter.secondary_opts
            if parameter.multiple or is_plain_flag or parameter.param_type_name == "argument":
                continue
            if parameter.name in given_names:
                must(parameter.opts[0], "given once", "it more than once")
            given_names.add(parameter.name)
        rest: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]
        return rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help.

        Args:
            ctx: Context of the command.
            formatter: Formatter of typer.
        """
        _load_help()
        super().format_help(ctx, formatter)  # type: ignore[misc]

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, including --help.

        Args:
            ctx: Context of the command.
        """
        # The method belongs to the class that this one is mixed with.
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False) and parameter.metavar is None:
                # A flag takes no value, so --help shows no placeholder for one.
                parameter.metavar = ""
            parameter.get_runtime_param = partial(_PlainValues, parameter.get_runtime_param)
        return parameters


def _load_help() -> None:
    """Load the help module of typer without two classes of Rich that it names but does not need."""
    stubs = {f"rich.{name.lower()}": name for name in ("Markdown", "Traceback")}
    stubs = {module: name for module, name in stubs.items() if module not in sys.modules}
    for module, name in stubs.items():
        sys.modules[module] = ModuleType(module)
        setattr(sys.modules[module], name, type(name, (), {}))
    importlib.import_module("typer.rich_utils")
    for module in stubs:
        del sys.modules[module]


class Command(FastParsing, TyperCommand):
    """A command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read a command line.

        Args:
            ctx: Context of the command.
            args: The arguments. An option whose value is in brackets may be given without it.
        """
        optional_value_flags = set()
        for parameter in self.params:
            if (parameter.metavar or "").startswith("["):
                optional_value_flags |= set(parameter.opts)
        return super().parse_args(ctx, _add_values(args, optional_value_flags))


def _add_values(args: list[str], flags: Collection[str]) -> list[str]:
    """Return the arguments with the value "inputs" for each flag that no range follows."""
    next_args = [*args[1:], ""]
    result = []
    for arg, next_arg in zip(args, next_args, strict=False):
        needs_value = arg in flags and not _RANGE.fullmatch(next_arg)
        result.append(f"{arg}=inputs" if needs_value else arg)
    return result


@dataclass(frozen=True)
class _PlainValues:
    """Reads texts, paths and plain numbers. Other values are read by typer.

    Attributes:
        typer_reader: Function that returns the reader of typer.
    """

    typer_reader: Callable[[], Any]

    def coerce(self, value: Any, *, param: Any, ctx: typer.Context) -> Any:
        """Return the value of a parameter.

        Args:
            value: Its texts.
            param: The parameter.
            ctx: Context of the command.
        """
        kind = param.type_descriptor.annotation
        is_list = param.multiple or param.nargs == -1
        if value is None:
            return () if is_list else None
        element = kind
        texts = [value]
        if is_list:
            element = get_args(kind)[0]
            texts = value
        parts = [_read_plain_value(element, text, param) for text in texts]
        if None in parts:
            return self.typer_reader().coerce(value, param=param, ctx=ctx)
        return parts if is_list else parts[0]


def _read_plain_value(kind: Any, value: Any, param: Any) -> Any:
    """Read a plain value within its limits, None for other values."""
    if kind in (str, Path) and isinstance(value, (str, Path)):
        return kind(value)
    text = str(value)
    # NaN is neither below a minimum nor above a maximum.
    is_limited_nan = "nan" in text.lower() and param.min is not None
    if kind in _PLAIN_NUMBERS and (is_limited_nan or _ODD_NUMBER.search(text)):
        rule = "an integer such as 12" if kind is int else "a number such as 12.5"
        must(param.opts[0], rule, repr(value))
    if kind not in _PLAIN_NUMBERS or not _PLAIN_NUMBERS[kind].fullmatch(text):
        return None
    number = kind(value)
    is_above_min = param.min is None or number >= param.min
    is_below_max = param.max is None or number <= param.max
    if is_above_min and is_below_max:
        return number
    return None


def make_command(
    name: str,
    function: Callable[..., Report | None],
    options: Iterable[Option] = (),
    without: Collection[str] = (),
    summary: str | None = None,
) -> Callable[..., None]:
    """Make a function that typer reads as a command, and that prints the report of `function`.

    Args:
        name: Entry in commands.toml. `function` takes its options by name.
        function: Function that runs the command.
        options: Options of a family, which come before those of the entry.
        without: Options of the entry that the command does not have.
        summary: Help text. None: the docstring of `function`.
    """
    family_options = list(options)
    metavars = _find_metavars(name)
    parameters = [_option_parameter(option, metavars) for option in family_options]
    parameters += _entry_parameters(name, without, metavars)
    if family_options:
        question_names = {option.name for option in family_options if option.question}
        parameters.sort(key=lambda entry: _help_rank(entry.name, question_names))
    function_parameters = inspect.signature(function).parameters
    handles_json = "json" in function_parameters
    if "context" in function_parameters:
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters.append(inspect.Parameter("context", keyword, annotation=typer.Context))

    def run_command(**values: Any) -> None:
        """Run the command and print its report."""
        json = values.get("json", False)
        if not handles_json:
            values.pop("json", None)
        report = function(**values)
        if report:
            report.emit(json)

    has_default = {entry.name: entry.default is not inspect.Parameter.empty for entry in parameters}
    sorted_parameters = sorted(parameters, key=lambda entry: has_default[entry.name])
    annotations = {entry.name: entry.annotation for entry in sorted_parameters}
    signature = inspect.Signature(sorted_parameters)
    run_command.__signature__ = signature  # type: ignore[attr-defined]
    run_command.__annotations__ = annotations | {"return": None}
    run_command.__doc__ = escape(summary or _summary_of(function))
    return run_command


def _summary_of(function: Callable[..., Any]) -> str:
    """Return the docstring of a function without its sections for programmers."""
    text = inspect.getdoc(function) or ""
    return re.split(r"\n\n(?:Args|Returns|Raises):\n", text)[0]


def _help_rank(name: str, question_names: Collection[str]) -> int:
    """Return the rank of an option of a family in --help.

    The question has rank 0. The budget, the loss and the aim follow, and then all other options.
    """
    if name in question_names:
        return 0
    if name in _LEADING_OPTIONS:
        return 1 + _LEADING_OPTIONS.index(name)
    return 1 + len(_LEADING_OPTIONS)


def _find_metavars(name: str) -> dict[str, str]:
    """Return the placeholders of a command's values in --help, by option or type.

    Placeholders of a group, such as GRID for the ε of `frontier FAMILY`, replace the general ones.
    """
    metavars = load_entries()["metavars"]
    return {**metavars["all"], **metavars.get(name.split()[0], {})}


def _entry_parameters(
    name: str, without: Collection[str], metavars: Mapping[str, str]
) -> list[inspect.Parameter]:
    """Return the options of an entry of commands.toml, --json last.

    {} stands for an option of several commands. `without` and `metavars` are as in `make_command`
    and `_make_parameter`.
    """
    entry = load_entries()[name]
    shared_options = load_entries()["options"]
    base_options = load_entries()[entry.get("like", name)].get("options", {})
    options = {**base_options, **entry.get("options", {})}
    if entry.get("json", True):
        options["json"] = {}
    parameters = []
    # An entry like another one may lack some of its options.
    missing_options = {*without, *entry.get("without", ())}
    for option, about in options.items():
        if option not in missing_options:
            parameters.append(_make_parameter(option, about or shared_options[option], metavars))
    return parameters


_TYPES = {"text": str, "file": Path, "count": int, "number": float, "flag": bool, "choice": bool}


def _make_parameter(
    name: str, about: str | Values, metavars: Mapping[str, str]
) -> inspect.Parameter:
    """Make the parameter of an option.

    Args:
        name: Keyword of the function that runs the command.
        about: Help of the option, or its table as in commands.toml.
        metavars: Placeholder of the value in --help, by the option's name or its type.
    """
    table: Values = {"help": about} if isinstance(about, str) else about
    type_name = table.get("type", "text")
    kind: Any = _TYPES[type_name]
    # A choice is --name or --no-name, and neither is the default.
    is_choice = type_name == "choice"
    is_flag = kind is bool and not is_choice
    default = table.get("default")
    if is_flag and "default" not in table:
        default = False
    if table.get("required"):
        default = inspect.Parameter.empty
    value_type = kind
    if table.get("repeatable"):
        value_type = list[kind]
    if default is None:
        value_type = value_type | None
    help_text = escape(table.get("help", "")) or None
    if "metavar" in table:
        declaration: Any = typer.Argument(metavar=table["metavar"] or None, help=help_text)
    else:
        flag = f"--{table.get('name', name).replace('_', '-')}"
        if is_choice or (kind is bool and default is True):
            flag = f"{flag}/--no-{flag.removeprefix('--')}"
        metavar = table.get("bare")
        if metavar is None and kind is not bool:
            metavar = metavars.get(name, metavars[type_name])
        declaration = typer.Option(
            flag,
            help=help_text,
            min=table.get("min"),
            max=table.get("max"),
            metavar=metavar,
        )
    annotation: Any = Annotated[value_type, declaration]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def _option_parameter(option: Option, metavars: Mapping[str, str]) -> inspect.Parameter:
    """Return the parameter of an option of a family. metavars: as in `_make_parameter`."""
    # A command without a family must work if families refuse to load.
    from workbench.pipeline.option import to_json_value

    is_list = option.kind is list
    type_name = "text"
    default = option.default
    if is_list:
        default = None
    else:
        type_name = next(name for name, kind in _TYPES.items() if kind is option.kind)
        if option.kind is str:
            default = to_json_value(default)
    table = {
        "name": option.command or option.name,
        "type": type_name,
        "repeatable": is_list,
        "required": option.required,
        "default": default,
        "help": _PYTHON_REMARK.sub("", option.help),
    }
    return _make_parameter(option.name, table, metavars)


def select_given(values: Values) -> Record:
    """Return the values that were given or have a default.

    Args:
        values: Values by name, None for a missing one.
    """
    return {name: value for name, value in values.items() if value is not None}


def list_input_files(options: Iterable[Option], values: Values) -> Record:
    """Return the values that may be names of files to read.

    Args:
        options: Options of the command.
        values: Values by name.
    """
    files = {}
    for option in options:
        value = values.get(option.name)
        if isinstance(value, (str, Path)):
            files[option.command or option.name] = value
    return files
