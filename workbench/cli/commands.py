"""The `workbench` command: its groups and commands from commands.toml, and its errors.

Every command has --help with examples, and --json. An error is one line with exit code 2.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import re
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

import workbench
from workbench.cli import console
from workbench.cli.options import Command, FastParsing, format_epilog, load_entries, make_command
from workbench.errors import NotProven, WorkbenchError
from workbench.exact.objects import Record, Values
from workbench.io.extras import explaining_missing_modules
from workbench.io.plugins import PluginWarning, load_plugin_file

# Tables of commands.toml that describe no command.
_SHARED_TABLES = ("options", "metavars", "wishes")
# Typer returns this after Ctrl-C.
_INTERRUPTED_CODE = 130
_NAME = "workbench"
# SciPy imports these modules of NumPy. This takes longer than the rest of the import, so they are
# loaded when an attribute of them is first used.
_LAZY_MODULES = tuple(
    f"numpy.{part}" for part in ("ctypeslib", "f2py", "ma", "polynomial", "testing")
)


class _Group(FastParsing, TyperGroup):
    """The commands of commands.toml in their order, and the commands of families.

    A command is built when it is called. All are built when they are listed. If another installed
    package is called `models`, families cannot be loaded; audit, check and sample must still work.
    So only `_build_family_commands` loads families.
    """

    _built: Record
    _complete: bool

    @property
    def _path(self) -> str:
        """Return the names of the groups before the name of a command."""
        if self.name in (None, _NAME):
            return ""
        return f"{self.name} "

    def _build(self, name: str | None) -> None:
        """Build the command of a name, or all commands."""
        group = typer.Typer(rich_markup_mode="rich")
        # With a callback, a single command also makes a group.
        group.callback()(lambda: None)
        for path, entry in load_entries().items():
            group_path, _, command_name = path.rpartition(" ")
            is_member = path not in _SHARED_TABLES and group_path == self._path.rstrip()
            if is_member and name in (None, command_name):
                _mount(group, path, command_name, entry)
        factory = load_entries().get(self._path.rstrip(), {}).get("families")
        if factory:
            self._build_family_commands(group, factory, name)
        order = {path: position for position, path in enumerate(load_entries())}
        # The commands of families are in no table. They come first.
        commands = {**typer.main.get_group(group).commands, **self._built}
        self._built = dict(
            sorted(commands.items(), key=lambda item: order.get(self._path + item[0], -1))
        )

    def _build_family_commands(self, group: typer.Typer, factory: str, name: str | None) -> None:
        """Build the command of one family, or of all families."""
        from workbench.pipeline.registry import list_families

        for family in list_families(name):
            _load_lazily(*_LAZY_MODULES)
            result = _load_function(factory)(family)
            if result:
                command, examples = result
                epilog = format_epilog(examples) if examples else None
                group.command(family.name, cls=Command, epilog=epilog)(command)

    @property
    def commands(self) -> Any:
        """Return all commands by name."""
        if not self._complete:
            self._complete = True
            self._build(name=None)
        return self._built

    @commands.setter
    def commands(self, commands: Any) -> None:
        """Replace the built commands. The missing ones are built when `commands` is read."""
        self._built = dict(commands)
        self._complete = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, None if there is none.

        Args:
            ctx: Context of the group.
            cmd_name: Name of the command.
        """
        if cmd_name not in self._built and not self._complete:
            self._build(cmd_name)
        return self._built.get(cmd_name)


app = typer.Typer(
    name=_NAME,
    cls=_Group,
    help="Design differential-privacy mechanisms by optimization, and check, audit and use them.",
    epilog=format_epilog(
        load_entries()["wishes"]["examples"],
        "Twenty tasks, twenty commands (docs/cheat-sheet.md describes each):",
    ),
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _load_function(place: str) -> Any:
    """Return the function of "module:name" in workbench.cli."""
    module, name = place.split(":")
    return getattr(importlib.import_module(f"workbench.cli.{module}"), name)


def _load_lazily(*names: str) -> None:
    """Load modules of a package when one of their attributes is used."""
    for name in names:
        package, _, attribute = name.rpartition(".")
        if name in sys.modules:
            continue
        spec = importlib.util.find_spec(name)
        if spec and spec.loader:
            spec.loader = importlib.util.LazyLoader(spec.loader)
            sys.modules[name] = module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            setattr(sys.modules[package], attribute, module)


def _mount(group: typer.Typer, path: str, name: str, entry: Values) -> None:
    """Add a command or a group of commands.toml to its group.

    Args:
        group: The group that gets the command.
        path: The command as it is called, such as "publish count".
        name: Its last word.
        entry: Its entry in commands.toml.
    """
    epilog = None
    if "examples" in entry:
        epilog = format_epilog(entry["examples"])
    command = None
    if "run" in entry:
        command = make_command(path, _load_function(entry["run"]))
    panel = entry.get("panel")
    if "help" in entry or "families" in entry:
        subgroup = typer.Typer(
            cls=_Group,
            help=entry.get("help") or command.__doc__,
            epilog=epilog,
            rich_markup_mode="rich",
        )
        if command:
            subgroup.callback(invoke_without_command=True, epilog=epilog)(command)
        group.add_typer(subgroup, name=name, no_args_is_help=command is None, rich_help_panel=panel)
    elif command:
        group.command(
            name,
            cls=Command,
            epilog=epilog,
            context_settings=entry.get("settings"),
            rich_help_panel=panel,
        )(command)


def _print_version(is_requested: bool) -> None:
    """Print the version and exit, if this is requested."""
    if is_requested:
        print(workbench.__version__)
        raise typer.Exit


@app.callback()
def _load_plugins(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
    plugin: Annotated[
        list[Path] | None,
        typer.Option("--plugin", help="Python file that calls workbench.register (repeatable)."),
    ] = None,
) -> None:
    for file in plugin or ():
        load_plugin_file(file)


def main(arguments: list[str] | None = None) -> None:
    """Run a command line and exit. An error prints one line and exits with 2, a bug with 3.

    Args:
        arguments: The command line. None: the command line of the process.
    """
    command_line = sys.argv[1:] if arguments is None else arguments
    console.open_streams()
    console.escape_unencodable()
    show_warning = warnings.showwarning

    def show_on_one_line(
        message: Warning | str, category: type[Warning], *details: Any, **options: Any
    ) -> None:
        """Print a warning about a plug-in on one line, and other warnings as before."""
        if issubclass(category, PluginWarning):
            _print_warning(message)
        else:
            show_warning(message, category, *details, **options)

    warnings.showwarning = show_on_one_line
    prints_text = {"--help", "-h", "--version"} & set(command_line)
    has_json = "--json" in command_line and not prints_text
    with console.reserve_stdout() if has_json else contextlib.nullcontext():
        code = _run_and_report(command_line)
    sys.exit(code)


def _print_warning(message: Warning | str) -> None:
    """Print a warning on one line of stderr."""
    print(f"Warning: {console.to_one_line(str(message))}", file=sys.stderr)


def _run_and_report(command_line: list[str]) -> int:
    """Run a command, print its error, and return the exit code."""
    console.note_booked_release(None)
    code, failure = _run_command(command_line)
    booked_release = console.describe_booked_release()
    # A command without a message has code 2 if the reader of its output has left.
    lost_output = code == 2 and failure is None
    if failure and booked_release:
        failure["message"] += f" {booked_release}"
    try:
        if failure and "--json" in command_line:
            console.emit_json(failure)
        console.result_stream().flush()
    except BrokenPipeError:
        # The reader of the output has left. Nothing more is printed, not even at exit.
        lost_output = True
        console.drop_output()
    except OSError as error:
        console.drop_output()
        if failure is None:
            code = 2
            message = " ".join(filter(None, (_explain_os_error(error), booked_release)))
            failure = {"error": "WorkbenchError", "message": message}
    if failure:
        with contextlib.suppress(OSError):
            print(f"{failure['error']}: {console.to_one_line(failure['message'])}", file=sys.stderr)
    elif lost_output and booked_release:
        with contextlib.suppress(OSError):
            print(f"note: {console.to_one_line(booked_release)}", file=sys.stderr)
    try:
        sys.stderr.flush()
    except OSError:
        # There is no stream left for the message.
        console.drop_output(sys.stderr)
    return code


def _explain_os_error(error: OSError) -> str:
    """Return the message for an error of the operating system."""
    if error.filename is None:
        return f"The output cannot be written: {error.strerror or error}."
    return f"Cannot use the file {error.filename}: {error.strerror or error}."


def _move_plugins_first(command_line: list[str]) -> list[str]:
    """Move every --plugin before the command, so that the plug-ins are loaded before it is read."""
    end = len(command_line)
    if "--" in command_line:
        end = command_line.index("--")
    plugins: list[str] = []
    other_arguments: list[str] = []
    position = 0
    while position < len(command_line):
        argument = command_line[position]
        count = 1
        if argument == "--plugin":
            count = 2
        arguments = command_line[position : position + count]
        if position < end and argument.partition("=")[0] == "--plugin":
            plugins += arguments
        else:
            other_arguments += arguments
        position += count
    return [*plugins, *other_arguments]


def _make_failure(kind: str, message: str, code: int = 2, **entries: Any) -> tuple[int, Record]:
    """Return the exit code and the JSON object of an error."""
    return code, {"error": kind, "message": message, **entries}


def _run_command(command_line: list[str]) -> tuple[int, Record | None]:
    """Run a command. Return its exit code, and the JSON object of its error or None."""
    try:
        with explaining_missing_modules("This command"):
            result = app(_move_plugins_first(command_line), standalone_mode=False, prog_name=_NAME)
        if result == _INTERRUPTED_CODE:
            return _make_failure("Interrupted", "Interrupted.")
        code = result if isinstance(result, int) else 0
        return code, None
    except NotProven as error:
        return _make_failure("NotProven", str(error), incumbent=error.incumbent, bound=error.bound)
    except WorkbenchError as error:
        return _make_failure(type(error).__name__, str(error), error.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        return _make_failure("Interrupted", "Interrupted.")
    except SystemExit as stop:
        return _handle_exit(stop, command_line)
    except TyperException as error:
        message = _suggest_option(error) or _translate_usage(error.format_message(), command_line)
        if not message:
            return 2, None
        return _make_failure("InvalidRequest", message)
    except BrokenPipeError:
        return 2, None
    except OSError as error:
        return _make_failure("WorkbenchError", _explain_os_error(error))
    except MemoryError:
        return _make_failure("WorkbenchError", "The request needs more memory than is available.")
    except BaseException as error:
        return _handle_unknown_error(error)


def _handle_exit(stop: SystemExit, command_line: list[str]) -> tuple[int, Record | None]:
    """Return the exit code and the error of a call of sys.exit inside a command."""
    if not command_line:
        # The completion of a shell ends in this way.
        raise stop
    if isinstance(stop.__context__, BrokenPipeError):
        # Rich exits if the reader of a help text has left.
        return 2, None
    return _make_failure(
        "WorkbenchError", f"A plug-in has ended the command (sys.exit, code {stop.code})."
    )


def _handle_unknown_error(error: BaseException) -> tuple[int, Record | None]:
    """Return the exit code and the JSON object of a bug, or of an error of a plug-in."""
    if os.environ.get("WORKBENCH_DEBUG"):
        raise error
    line = f"{type(error).__name__}: {' '.join(str(error).split())}"
    if isinstance(error, Exception):
        message = f"{line} (this is a bug; WORKBENCH_DEBUG=1 shows where)"
        return _make_failure("Bug", message, code=3)
    # No error of the workbench is derived from BaseException alone.
    return _make_failure("WorkbenchError", f"A plug-in has ended the command ({line}).")


# Messages of the parser of command lines, and the messages of the workbench for them.
_USAGE_FORMS = {
    r"Invalid value for '?(?P<name>[^':]+)'?: "
    r"(?:Input should be )?(?P<why>.*?)(?:, unable.*)?\.?": "{name} must be {why}. Got {value}.",
    r"Option '(?P<name>[^']+)' does not take a value\.": (
        "{name} must be given without a value. Got {value}."
    ),
    r"(?:Missing (?:option|argument)|Option) '(?P<name>[^']+)'(?: requires an argument)?\.?": (
        "{name} must be given. Got none."
    ),
    r"No such (?P<kind>option|command):? '?(?P<got>[^' ]+?)'?\.? "
    r"(?:\(Possible options:|Did you mean) (?P<near>.*)[)?]": (
        "No such {kind} {got}; did you mean {near}?"
    ),
    r"No such (?P<kind>option|command):? '?(?P<got>[^' ]+?)'?\.?": (
        "No such {kind} {got}; --help lists the {kind}s."
    ),
    r"Got unexpected extra arguments?(?:\(s\))? \((?P<got>.*)\)": (
        "arguments must be among those that --help lists. Got {got}."
    ),
}
# Phrases of the parser, and the phrases of the workbench for them.
_USAGE_PHRASES = {
    "a valid": "a",
    "a integer": "an integer",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
}
# A message of the parser is cut to this many characters.
_MAX_USAGE_LENGTH = 300


def _suggest_option(error: Any) -> str:
    """Return a message with suggestions for an unknown option, "" if there are none."""
    option = getattr(error, "option_name", None)
    context = getattr(error, "ctx", None)
    if option is None or context is None:
        return ""
    from workbench.pipeline.option import suggest_names

    names = [name for parameter in context.command.params for name in parameter.opts]
    suggestions = suggest_names(option, names)
    if not any(name.startswith(option) for name in suggestions):
        commands = _list_commands_with(option, context)
        if commands:
            verb = "has"
            if len(commands) > 1:
                verb = "have"
            return (
                f"No such option {option} of {_command_path(context)}; "
                f"{', '.join(commands)} {verb} it."
            )
    if not suggestions:
        return ""
    choices = " or ".join(", ".join(sorted(suggestions)).rsplit(", ", 1))
    return f"No such option {option}; did you mean {choices}?"


def _command_path(context: Any) -> str:
    """Return a command as it is called, without the name of the program."""
    whole_path = str(context.command_path)
    _, _, path = whole_path.partition(" ")
    return path or whole_path


def _list_commands_with(option: str, context: Any) -> list[str]:
    """Return the other commands of a group of families that have an option."""
    group = getattr(context.parent, "command", None)
    if not isinstance(group, _Group) or "families" not in load_entries().get(str(group.name), {}):
        return []
    group_path = _command_path(context).rpartition(" ")[0]
    paths = []
    for name, command in group.commands.items():
        has_option = any(option in parameter.opts for parameter in command.params)
        if has_option and command is not context.command:
            paths.append(f"{group_path} {name}")
    return paths


def _translate_usage(message: str, command_line: Sequence[str]) -> str:
    """Return the workbench's message for a message of the parser of command lines."""
    text = " ".join(message.split())
    for form, template in _USAGE_FORMS.items():
        match = re.fullmatch(form, text)
        if match:
            text = _fill_usage(template, match.groupdict(), command_line)
            break
    if len(text) <= _MAX_USAGE_LENGTH:
        return text
    return f"{text[:_MAX_USAGE_LENGTH]}..."


def _fill_usage(template: str, parts: Record, command_line: Sequence[str]) -> str:
    """Fill the template of a message with the parts of the parser's message."""
    flag = parts.get("name", "")
    reason = parts.get("why", "")
    for phrase, replacement in _USAGE_PHRASES.items():
        reason = reason.replace(phrase, replacement)
    suggestions = " or ".join(parts.get("near", "").rsplit(", ", 1))
    # "--time-limit" becomes "time-limit". "FILE.csv" stays.
    name = flag.split(" / ")[0].lstrip("-")
    value = _find_value(flag, command_line)
    texts = {"name": name, "why": reason, "near": suggestions, "value": value}
    return template.format_map(parts | texts)


def _find_value(flag: str, command_line: Sequence[str]) -> str:
    """Return the last value of an option on the command line."""
    for position in range(len(command_line) - 1, -1, -1):
        argument = command_line[position]
        if argument.startswith(f"{flag}="):
            return argument.removeprefix(f"{flag}=")
        if argument == flag and position + 1 < len(command_line):
            return command_line[position + 1]
    return "another"


if __name__ == "__main__":
    main()
