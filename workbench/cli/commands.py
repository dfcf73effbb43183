"""The `workbench` command, mounted from commands.toml, and what it says when something goes wrong.

Every command has --help with examples and --json; errors are one line and exit code 2.
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

_INTERRUPTED = 130
_NAME = "workbench"


class _Group(FastParsing, TyperGroup):
    """Commands in the order of commands.toml, and those of the families: each is built when it is named, and all where
    they are listed.

    Auditing, verifying and sampling must work where another package is called `models`; families refuse to load there.
    """

    _built: Record
    _complete: bool

    @property
    def _path(self) -> str:
        return "" if self.name in (None, _NAME) else f"{self.name} "

    def _build(self, name: str | None) -> None:
        """The command of a name, or all."""
        group = typer.Typer(rich_markup_mode="rich")
        group.callback()(lambda: None)  # so that one command makes a group as well
        for path, entry in load_entries().items():
            before, _, last = path.rpartition(" ")
            if path != "options" and f"{before} ".lstrip() == self._path and name in (None, last):
                _mount(group, path, last, entry)
        if makes := load_entries().get(self._path.rstrip(), {}).get("families"):
            from workbench.pipeline.registry import list_families

            for kind in list_families(name):
                _loads_later(
                    *(
                        f"numpy.{part}"
                        for part in ("ctypeslib", "f2py", "ma", "polynomial", "testing")
                    )
                )
                if built := _loaded(makes)(kind):
                    group.command(kind.name, cls=Command, epilog=format_epilog(built[1]))(built[0])
        order = {path: at for at, path in enumerate(load_entries())}
        commands = {**typer.main.get_group(group).commands, **self._built}
        self._built = dict(
            sorted(commands.items(), key=lambda item: order.get(self._path + item[0], -1))
        )

    @property
    def commands(self) -> Any:
        """name -> command: all."""
        if not self._complete:
            self._complete = True
            self._build(None)
        return self._built

    @commands.setter
    def commands(self, commands: Any) -> None:
        self._built, self._complete = dict(commands), False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name, None where there is none."""
        if cmd_name not in self._built and not self._complete:
            self._build(cmd_name)
        return self._built.get(cmd_name)


app = typer.Typer(
    name=_NAME,
    cls=_Group,
    help="Design differential-privacy mechanisms by optimization; judge, audit and reproduce.",
    epilog=format_epilog(
        load_entries()["wishes"]["examples"],
        "Twenty tasks, twenty commands (docs/cheat-sheet.md describes each):",
    ),
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _loaded(place: str) -> Any:
    """The function of "module:name" in workbench.cli."""
    module, name = place.split(":")
    return getattr(importlib.import_module(f"workbench.cli.{module}"), name)


def _loads_later(*names: str) -> None:
    """Load modules of a package when something of them is used: scipy.sparse copies all that numpy has, and so loads
    them, which takes longer than the rest of it."""
    for name in names:
        package, _, own = name.rpartition(".")
        spec = None if name in sys.modules else importlib.util.find_spec(name)
        if spec and spec.loader:
            spec.loader = importlib.util.LazyLoader(spec.loader)
            sys.modules[name] = module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            setattr(sys.modules[package], own, module)


def _mount(group: typer.Typer, path: str, name: str, entry: Values) -> None:
    """Add a command or a group to its group."""
    help_end = format_epilog(entry["examples"]) if "examples" in entry else None
    built = make_command(path, _loaded(entry["run"])) if "run" in entry else None
    panel = entry.get("panel")
    if "help" in entry or "families" in entry:
        group_of = typer.Typer(
            cls=_Group,
            help=entry.get("help") or built.__doc__,
            epilog=help_end,
            rich_markup_mode="rich",
        )
        if built:
            group_of.callback(invoke_without_command=True, epilog=help_end)(built)
        group.add_typer(group_of, name=name, no_args_is_help=built is None, rich_help_panel=panel)
    elif built:
        group.command(
            name,
            cls=Command,
            epilog=help_end,
            context_settings=entry.get("settings"),
            rich_help_panel=panel,
        )(built)


def _version(wanted: bool) -> None:
    if wanted:
        print(workbench.__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and leave."
        ),
    ] = False,
    plugin: Annotated[
        list[Path] | None,
        typer.Option("--plugin", help="A Python file that calls workbench.register (repeatable)."),
    ] = None,
) -> None:
    for file in plugin or ():
        load_plugin_file(file)


def main(arguments: list[str] | None = None) -> None:
    """The console script: runs the command, prints one line for an error, exits 2 (3 for a bug of ours)."""
    given = sys.argv[1:] if arguments is None else arguments
    console.open_streams()
    console.escape_unencodable()
    show = warnings.showwarning
    warnings.showwarning = lambda message, category, *more: (
        _warn(message) if issubclass(category, PluginWarning) else show(message, category, *more)
    )
    shown = {"--help", "-h", "--version"} & set(given)
    with console.reserve_stdout() if "--json" in given and not shown else contextlib.nullcontext():
        code = _run_and_report(given)
    sys.exit(code)


def _warn(message: Warning | str) -> None:
    print(f"Warning: {console.to_one_line(str(message))}", file=sys.stderr)


def _run_and_report(given: list[str]) -> int:
    """Run a command and say what went wrong; its exit code."""
    code, failure = _run(given)
    try:
        if failure and "--json" in given:
            console.emit_json(failure)
        console.result_stream().flush()
    except BrokenPipeError:  # the reader has left; say nothing more, not even at exit
        console.drop_output()
    except OSError as error:
        console.drop_output()
        if failure is None:
            code, failure = 2, {"error": "WorkbenchError", "message": _trouble(error)}
    if failure:
        with contextlib.suppress(OSError):
            print(f"{failure['error']}: {console.to_one_line(failure['message'])}", file=sys.stderr)
    try:
        sys.stderr.flush()
    except OSError:  # no place is left to say it
        console.drop_output(sys.stderr)
    return code


def _trouble(error: OSError) -> str:
    """What an error of the operating system means."""
    if error.filename is None:
        return f"The output cannot be written: {error.strerror or error}."
    return f"Cannot use the file {error.filename}: {error.strerror or error}."


def _plugins_first(given: list[str]) -> list[str]:
    """A command line with every --plugin before the command: what a file adds is known when the rest is read."""
    end = given.index("--") if "--" in given else len(given)
    first: list[str] = []
    rest: list[str] = []
    at = 0
    while at < len(given):
        taken = 2 if given[at] == "--plugin" else 1
        chosen = first if at < end and given[at].partition("=")[0] == "--plugin" else rest
        chosen += given[at : at + taken]
        at += taken
    return [*first, *rest]


def _run(given: list[str]) -> tuple[int, Record | None]:
    """Run a command: its exit code, and what went wrong."""

    def failed(kind: str, message: str, code: int = 2, **more: Any) -> tuple[int, Record]:
        return code, {"error": kind, "message": message, **more}

    try:
        with explaining_missing_modules("This command"):
            result = app(_plugins_first(given), standalone_mode=False)
        if result == _INTERRUPTED:  # typer's own translation of Ctrl-C
            return failed("Interrupted", "Interrupted.")
        return (result if isinstance(result, int) else 0), None
    except NotProven as error:
        return failed("NotProven", str(error), incumbent=error.incumbent, bound=error.bound)
    except WorkbenchError as error:
        return failed(type(error).__name__, str(error), error.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        return failed("Interrupted", "Interrupted.")
    except SystemExit as stop:
        if not given:  # the completion of a shell ends so
            raise
        if isinstance(
            stop.__context__, BrokenPipeError
        ):  # Rich, in a help text whose reader has left
            return 2, None
        words = f"Code that was added to the workbench has ended the command (sys.exit, code {stop.code})."
        return failed("WorkbenchError", words)
    except TyperException as error:
        message = _no_such_option(error) or _usage(error.format_message(), given)
        return failed("InvalidRequest", message) if message else (2, None)
    except BrokenPipeError:
        return 2, None
    except OSError as error:
        return failed("WorkbenchError", _trouble(error))
    except MemoryError:
        return failed("WorkbenchError", "The request needs more memory than there is.")
    except Exception as error:  # a bug of ours: still one line, and a way to see where
        if os.environ.get("WORKBENCH_DEBUG"):
            raise
        line = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return failed("Bug", f"{line} (this is a bug; WORKBENCH_DEBUG=1 shows where)", 3)
    except BaseException as error:  # nothing of ours is derived from it alone
        if os.environ.get("WORKBENCH_DEBUG"):
            raise
        line = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return failed(
            "WorkbenchError",
            f"Code that was added to the workbench has ended the command ({line}).",
        )


# A message of the parser of command lines -> the same in the one form of a message.
_FORMS = {
    r"Invalid value for '?(?P<name>[^':]+)'?: (?:Input should be )?(?P<why>.*?)(?:, unable.*)?\.?":
        "{name} must be {why}. Got {value}.",
    r"Option '(?P<name>[^']+)' does not take a value\.": "{name} must be given without a value. Got {value}.",
    r"(?:Missing (?:option|argument)|Option) '(?P<name>[^']+)'(?: requires an argument)?\.?":
        "{name} must be given. Got none.",
    r"No such (?P<kind>option|command):? '?(?P<got>[^' ]+?)'?\.? (?:\(Possible options:|Did you mean) (?P<near>.*)[)?]":
        "No such {kind} {got}; did you mean {near}?",
    r"No such (?P<kind>option|command):? '?(?P<got>[^' ]+?)'?\.?": "No such {kind} {got}; --help lists the {kind}s.",
    r"Got unexpected extra arguments?(?:\(s\))? \((?P<got>.*)\)":
        "arguments must be those that --help lists. Got {got} besides.",
}  # fmt: skip
_OURS = {
    "a valid": "a",
    "a integer": "an integer",
    "greater than or equal to": "at least",
    "less than or equal to": "at most",
}
_LONGEST = 300


def _no_such_option(error: Any) -> str:
    """What an option that a command does not have may be: one that it begins, one of families, or one like it."""
    option, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if option is None or context is None:
        return ""
    from workbench.pipeline.option import suggest_names

    near = suggest_names(option, [name for each in context.command.params for name in each.opts])
    of = [] if any(name.startswith(option) for name in near) else _commands_with(option, context)
    if of:
        return f"No such option {option} of {_path(context)}; {', '.join(of)} {'have' if of[1:] else 'has'} it."
    words = " or ".join(", ".join(sorted(near)).rsplit(", ", 1))
    return f"No such option {option}; did you mean {words}?" if near else ""


def _path(context: Any) -> str:
    """A command as it is called, without the name of the program."""
    return str(context.command_path).partition(" ")[2] or str(context.command_path)


def _commands_with(option: str, context: Any) -> list[str]:
    """The other commands of a group of families that do have an option."""
    group = getattr(context.parent, "command", None)
    if not isinstance(group, _Group) or "families" not in load_entries().get(str(group.name), {}):
        return []
    before = _path(context).rpartition(" ")[0]
    return [
        f"{before} {name}"
        for name, each in group.commands.items()
        if each is not context.command
        and any(option in parameter.opts for parameter in each.params)
    ]


def _usage(message: str, given: Sequence[str]) -> str:
    """A message of the parser as one of ours. given: the command line, which holds the value that was wrong."""
    words = " ".join(message.split())
    for form, ours in _FORMS.items():
        if match := re.fullmatch(form, words):
            parts = match.groupdict()
            flag = parts.get("name", "")
            why = parts.get("why", "")
            for theirs, word in _OURS.items():
                why = why.replace(theirs, word)
            near = " or ".join(parts.get("near", "").rsplit(", ", 1))
            name = flag.split(" / ")[0].lstrip("-")  # --time-limit -> time-limit; FILE.csv stays
            words = ours.format_map(
                parts | {"name": name, "why": why, "near": near, "value": _value(flag, given)}
            )
            break
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."


def _value(name: str, given: Sequence[str]) -> str:
    """What the command line gave an option; its last value counts."""
    for at in range(len(given) - 1, -1, -1):
        if given[at].startswith(f"{name}="):
            return given[at][len(name) + 1 :]
        if given[at] == name and at + 1 < len(given):
            return given[at + 1]
    return "another"


if __name__ == "__main__":
    main()
