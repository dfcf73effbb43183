"""The `workbench` command: one file per group of commands, mounted here.

Every command has --help with examples and --json; errors are one line and exit code 2.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

import workbench
from workbench.cli import console
from workbench.cli import doctor as doctor_module
from workbench.cli.console import Json, emit_json, epilog, err, interrupted, out, table
from workbench.cli.lazy import CompareGroup, DesignGroup, FrontierGroup
from workbench.cli.output_paths import output_folder
from workbench.cli.usage import usage_words
from workbench.cli.workflow import WorkflowGroup
from workbench.errors import NotProven, WorkbenchError
from workbench.io.extras import says_what_is_missing
from workbench.io.plugins import PluginWarning, load_file

__all__ = ["app", "main"]

app = typer.Typer(
    name="workbench",
    cls=WorkflowGroup,
    help="Design differential-privacy mechanisms by optimization; judge, audit and reproduce.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
design_app = typer.Typer(
    cls=DesignGroup,
    help="Design one mechanism: its model, its solver's answer, its oracle, its exact audit.",
    epilog=epilog(["design modulo --n 8 --max-shift 3 --epsilon 1.5", "design noise --help"]),
)
frontier_app = typer.Typer(
    cls=FrontierGroup,
    help="Trade-offs between privacy and error: solver points, closed forms, baselines; CSV, PNG and SVG.",
    rich_markup_mode="rich",
    epilog=epilog(
        ["frontier modulo --n 8 --max-shift 3 --epsilon 0.1:4:40 --html trade.html", "frontier noise --help"]
    ),
)
privatise_app = typer.Typer(
    help="Run a mechanism on a file of real data; nothing is written on an error.",
    epilog=epilog(["privatise labels --help", "privatise noise --help"]),
)
compare_app = typer.Typer(cls=CompareGroup, rich_markup_mode="rich")


_INTERRUPTED = 130
_PLAIN: dict[str, Any] = {"highlight": False, "markup": False}


def _mount() -> None:
    from workbench.cli import certificate, compare, explore, laplace, privatise, programs, recommend, sweep

    privatise_app.command("labels", epilog=privatise.LABELS_EXAMPLES)(privatise.privatise_labels)
    privatise_app.command("noise", epilog=privatise.NOISE_EXAMPLES)(privatise.privatise_noise)
    privatise_app.command("quantizer", epilog=privatise.QUANTIZER_EXAMPLES)(privatise.privatise_quantizer)
    app.command("recommend", epilog=recommend.EXAMPLES)(recommend.recommend)
    app.add_typer(laplace.app, name="laplace", no_args_is_help=True)
    app.command(epilog=certificate.AUDIT_EXAMPLES)(certificate.audit)
    app.command(epilog=certificate.CHECK_EXAMPLES)(certificate.check)
    app.command(epilog=certificate.SAMPLE_EXAMPLES)(certificate.sample)
    app.command(epilog=certificate.COMPOSE_EXAMPLES)(certificate.compose)
    app.command(epilog=sweep.SWEEP_EXAMPLES)(sweep.sweep)
    app.add_typer(sweep.app, name="results", no_args_is_help=True)
    app.add_typer(programs.app, name="programs", no_args_is_help=True)
    app.add_typer(design_app, name="design", no_args_is_help=True)
    app.command(epilog=explore.EXAMPLES, context_settings=explore.SETTINGS)(explore.explore)
    app.add_typer(frontier_app, name="frontier", no_args_is_help=True)
    compare_app.callback(invoke_without_command=True, epilog=compare.EXAMPLES)(compare.compare)
    app.add_typer(compare_app, name="compare")
    app.add_typer(privatise_app, name="privatise", no_args_is_help=True)


def _version(wanted: bool) -> None:
    if wanted:
        print(workbench.__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
    plugin: Annotated[
        list[Path] | None,
        typer.Option("--plugin", help="A Python file that calls workbench.register (repeatable)."),
    ] = None,
) -> None:
    for file in plugin or ():
        load_file(file)


@app.command(epilog=doctor_module.EXAMPLES)
def doctor(json: Json = False) -> None:
    """What is installed: whether that set is known to work, solvers and licences, extras, folders; exit 1 when bad."""
    raise typer.Exit(doctor_module.doctor(json, console.answers()))


@app.command(epilog="Examples:\n\n  workbench verify\n\n  workbench verify --family all --small --json")
def verify(
    solvers: Annotated[str, typer.Option(help="Solvers to verify, comma-separated.")] = "highs",
    family: Annotated[str, typer.Option(help="Families to verify, comma-separated, or all.")] = "modulo",
    small: Annotated[bool, typer.Option("--small", help="The small grid (seconds) instead of the full one.")] = False,
    json: Json = False,
) -> None:
    """Run the models against their closed forms on a grid; exit 1 when any answer disagrees."""
    from workbench.cli.bars import under_a_bar
    from workbench.comparison.verify import COLUMNS, summary
    from workbench.comparison.verify import verify as run

    result = under_a_bar(lambda tell: run(solvers, family=family, small=small, progress=tell), "verifying")
    bad = [row for row in result if row["agrees"] is False]
    groups = summary(result)
    if json:
        emit_json(
            {
                "requests": len(result),
                "disagreements": len(bad),
                "summary": groups,
                "rows": result.rows,
                "interrupted": result.interrupted,
            }
        )
    else:
        columns = ["solver", "oracle", "kind", "requests", "agree", "disagree", "worst", "exactly_private"]
        caption = (
            "worst: largest |solver - oracle| (for a bound: largest excess beyond it).\n"
            "exactly private: raw solver PMFs that meet the request in exact arithmetic."
        )
        heads = ["solver", "oracle", "kind", "requests", "agree", "disagree", "worst", "exactly private"]
        out.print(table("Models against oracles", heads, [[g[c] for c in columns] for g in groups], caption=caption))
        for row in bad:
            request = " ".join(f"{name}={value}" for name, value in row.items() if name not in COLUMNS)
            reason = row["failure"] or f"{row['objective']:.9g} against {row['oracle_value']:.9g}"
            where = f"{row['solver']} on {row['question']} {request}"
            err.print(f"disagrees: {where}: {reason}", soft_wrap=True, **_PLAIN)
    if result.interrupted:
        interrupted(f"{result.finished} of {result.total} requests are answered.")
    if bad:
        raise typer.Exit(1)


@app.command(
    epilog="Examples:\n\n  workbench reproduce\n\n  workbench reproduce --paper modulo-noise --only fig10 --only table1"
)
def reproduce(
    paper: Annotated[list[str] | None, typer.Option(help="A paper (repeatable); all by default.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="An artifact such as fig10 (repeatable).")] = None,
    results: Annotated[Path, typer.Option(help="Folder to write into.")] = Path("results"),
    full: Annotated[bool, typer.Option("--full", help="Also what takes longer than a few minutes.")] = False,
    jobs: Annotated[int | None, typer.Option(help="Processes of this machine; all its cores by default.")] = None,
    json: Json = False,
) -> None:
    """Regenerate the papers' figures and tables into results/, printed numbers beside ours."""
    from workbench.papers.reproduce import reproduce as run

    output_folder(results, "results")
    result = run(
        paper, only, results, full=full, jobs=jobs, progress=lambda done, total, line: err.print(line, **_PLAIN)
    )
    surprises = [row for row in result if row["surprising"]]
    if json:
        emit_json(
            {
                "results": str(results),
                "surprises": [f"{row['place']}: {row['what']}" for row in surprises],
                "interrupted": result.interrupted,
            }
        )
    else:
        for sentence in result.sentences:
            out.print(sentence, **_PLAIN)
        for row in surprises:
            difference = f"printed {row['printed']:g}, ours {row['ours']:.9g} ({row['verdict']})"
            out.print(f"unexpected: {row['place']}, {row['what']}: {difference}")
    if result.interrupted:
        interrupted(f"{result.finished} of {result.total} artifacts are finished; these are kept.")
    if json:
        return
    out.print(
        f"Results are in {results / 'README.md'} (gallery), with tables as CSV and figures as PNG and SVG beside it."
    )


def main(arguments: list[str] | None = None) -> None:
    """The console script: runs the command, prints one line for an error, exits 2 (3 for a bug of ours)."""
    given = sys.argv[1:] if arguments is None else arguments
    console.open_streams()
    console.show_everything()
    show = warnings.showwarning
    warnings.showwarning = lambda message, category, *more: (
        _warn(message) if issubclass(category, PluginWarning) else show(message, category, *more)
    )
    shown = {"--help", "-h", "--version"} & set(given)
    with console.own_stdout() if "--json" in given and not shown else contextlib.nullcontext():
        code = _run_and_report(given)
    sys.exit(code)


def _warn(message: Warning | str) -> None:
    print(f"Warning: {console.one_line(str(message))}", file=sys.stderr)


def _run_and_report(given: list[str]) -> int:
    """Run a command and say what went wrong; its exit code."""
    code, failure = _run(given)
    try:
        if failure is not None and "--json" in given:
            emit_json(failure)
        console.answers().flush()
    except BrokenPipeError:  # the reader has left; say nothing more, not even at exit
        console.drop_output()
    except OSError as error:
        console.drop_output()
        if failure is None:
            code, failure = 2, {"error": "WorkbenchError", "message": _trouble(error)}
    if failure is not None:
        with contextlib.suppress(OSError):
            print(f"{failure['error']}: {console.one_line(failure['message'])}", file=sys.stderr)
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


def _run(given: list[str]) -> tuple[int, dict[str, Any] | None]:
    """Run a command: its exit code, and what went wrong."""
    try:
        with says_what_is_missing("This command"):
            result = app(_plugins_first(given), standalone_mode=False)
        if result == _INTERRUPTED:  # typer's own translation of Ctrl-C
            return 2, {"error": "Interrupted", "message": "Interrupted."}
        return (result if isinstance(result, int) else 0), None
    except NotProven as error:
        more = {"incumbent": error.incumbent, "bound": error.bound}
        return 2, {"error": "NotProven", "message": str(error), **more}
    except WorkbenchError as error:
        return error.exit_code, {"error": type(error).__name__, "message": str(error)}
    except (typer.Abort, KeyboardInterrupt):
        return 2, {"error": "Interrupted", "message": "Interrupted."}
    except SystemExit as stop:
        if not given:  # the completion of a shell ends so
            raise
        message = f"Code that was added to the workbench has ended the command (sys.exit, code {stop.code})."
        return 2, {"error": "WorkbenchError", "message": message}
    except TyperException as error:
        message = usage_words(error.format_message(), given)
        return 2, {"error": "InvalidRequest", "message": message} if message else None
    except BrokenPipeError:
        return 1, None
    except OSError as error:
        return 2, {"error": "WorkbenchError", "message": _trouble(error)}
    except MemoryError:
        return 2, {"error": "WorkbenchError", "message": "The request needs more memory than there is."}
    except Exception as error:  # a bug of ours: still one line, and a way to see where
        if os.environ.get("WORKBENCH_DEBUG"):
            raise
        line = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return 3, {"error": "Bug", "message": f"{line} (this is a bug; WORKBENCH_DEBUG=1 shows where)"}


_mount()

if __name__ == "__main__":
    main()
