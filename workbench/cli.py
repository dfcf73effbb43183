"""The `workbench` command: one file per group of commands, mounted here.

Every command has --help with examples and --json; errors are one line and exit code 2.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

import workbench
from workbench import console
from workbench.console import Json, emit_json, err, out, table
from workbench.errors import NotProven, WorkbenchError

__all__ = ["app", "main"]

app = typer.Typer(
    name="workbench",
    help="Design differential-privacy mechanisms by optimization; judge, audit and reproduce.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
design_app = typer.Typer(help="Design one mechanism: its model, its solver's answer, its oracle, its exact audit.")
evaluate_app = typer.Typer(help="A mechanism given by its parameters: exact epsilon, bias and errors.")
privatise_app = typer.Typer(help="Run a mechanism on a file of real data; nothing is written on an error.")
compare_app = typer.Typer(rich_markup_mode="rich")


_INTERRUPTED = 130


def _mount() -> None:
    from workbench import (
        cli_certificate,
        cli_compare,
        cli_dql,
        cli_frontier,
        cli_labels,
        cli_noise,
        cli_quantizer,
        cli_suite,
        cli_sweep,
    )

    design_app.command("noise", epilog=cli_noise.DESIGN_EXAMPLES)(cli_noise.design_noise)
    compare_app.command("noise", epilog=cli_compare.COMPARE_EXAMPLES)(cli_compare.compare_noise)
    design_app.command("laplace", epilog=cli_dql.LAPLACE_EXAMPLES)(cli_dql.laplace)
    design_app.command("quantizer", epilog=cli_quantizer.DESIGN_EXAMPLES)(cli_quantizer.design_quantizer)
    evaluate_app.command("quantizer", epilog=cli_quantizer.EVALUATE_EXAMPLES)(cli_quantizer.evaluate_quantizer)
    design_app.command("labels", epilog=cli_labels.DESIGN_EXAMPLES)(cli_labels.design_labels)
    privatise_app.command("labels", epilog=cli_labels.PRIVATISE_EXAMPLES)(cli_labels.privatise_labels)
    app.add_typer(cli_dql.app, name="dql", no_args_is_help=True)
    app.command(epilog=cli_certificate.AUDIT_EXAMPLES)(cli_certificate.audit)
    app.command("verify-certificate", epilog=cli_certificate.VERIFY_EXAMPLES)(cli_certificate.verify_certificate)
    app.command(epilog=cli_certificate.SAMPLE_EXAMPLES)(cli_certificate.sample)
    app.command(epilog=cli_certificate.COMPOSE_EXAMPLES)(cli_certificate.compose)
    app.command(epilog=cli_sweep.SWEEP_EXAMPLES)(cli_sweep.sweep)
    app.add_typer(cli_sweep.app, name="results", no_args_is_help=True)
    app.add_typer(design_app, name="design", no_args_is_help=True)
    app.add_typer(cli_frontier.app, name="frontier", no_args_is_help=True)
    compare_app.callback(invoke_without_command=True, epilog=cli_suite.EXAMPLES)(cli_suite.compare)
    app.add_typer(compare_app, name="compare")
    app.add_typer(evaluate_app, name="evaluate", no_args_is_help=True)
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
) -> None:
    pass


@app.command(
    epilog="Examples:\n\n  workbench solvers\n\n  workbench solvers --probe   (also asks Gurobi for its licence)"
)
def solvers(
    probe: Annotated[
        bool, typer.Option("--probe", help="Ask each solver for its licence state (may take one).")
    ] = False,
    json: Json = False,
) -> None:
    """List the solvers: version, capabilities, licence state."""
    from workbench import rooms

    rooms.check()
    from solvers.backend import listing

    rows = listing(probe=probe)
    if json:
        emit_json({"solvers": rows})
        return
    columns = ["solver", "installed", "version", "capabilities", "licence"]
    cells = [[row["name"], row["installed"], row["version"], row["capabilities"], row["licence"]] for row in rows]
    out.print(table("Solvers", columns, cells))


@app.command(epilog="Examples:\n\n  workbench verify\n\n  workbench verify --solvers highs,gurobi --small --json")
def verify(
    solvers: Annotated[str, typer.Option(help="Solvers to verify, comma-separated.")] = "highs",
    small: Annotated[bool, typer.Option("--small", help="The small grid (seconds) instead of the full one.")] = False,
    json: Json = False,
) -> None:
    """Run the models against their closed forms on a grid; exit 1 when any answer disagrees."""
    from rich.progress import Progress

    from workbench.verify import GRID, SMALL_GRID, summary
    from workbench.verify import verify as run

    grid = SMALL_GRID if small else GRID
    with Progress(console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task("verifying", total=None)
        rows = run(_names(solvers), grid, progress=lambda i, n: bar.update(task, completed=i, total=n))
    bad = [row for row in rows if row["agrees"] is False]
    groups = summary(rows)
    if json:
        emit_json({"requests": len(rows), "disagreements": len(bad), "summary": groups, "rows": rows})
    else:
        columns = ["solver", "oracle", "kind", "requests", "agree", "disagree", "worst", "exactly_private"]
        caption = (
            "worst: largest |solver - oracle| (for an upper bound: largest excess above it).\n"
            "exactly private: raw solver PMFs that meet the request in exact arithmetic."
        )
        heads = ["solver", "oracle", "kind", "requests", "agree", "disagree", "worst", "exactly private"]
        out.print(table("Models against oracles", heads, [[g[c] for c in columns] for g in groups], caption=caption))
        for row in bad:
            request = f"{row['question']} {row['notion']} epsilon={row['epsilon']} delta={row['delta']}"
            said = row["error"] or f"{row['objective']:.9g} against {row['value']:.9g}"
            err.print(f"disagrees: {row['solver']} on {request}: {said}", highlight=False, markup=False, soft_wrap=True)
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
    json: Json = False,
) -> None:
    """Regenerate the papers' figures and tables into results/, printed numbers beside ours."""
    from workbench.papers.reproduce import reproduce as run

    def say(line: str) -> None:
        err.print(line, highlight=False, markup=False)

    try:
        surprises = run(paper, only, results, full=full, progress=say)
    except KeyboardInterrupt:
        raise WorkbenchError("Interrupted; every artifact finished so far is kept.") from None
    if json:
        emit_json({"results": str(results), "surprises": [f"{s.place}: {s.what}" for s in surprises]})
        return
    for s in surprises:
        out.print(f"unexpected: {s.place}, {s.what}: printed {s.printed:g}, ours {s.ours:.9g} ({s.verdict})")
    out.print(
        f"Results are in {results / 'README.md'} (gallery), with tables as CSV and figures as PNG and SVG beside it."
    )


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def main(arguments: list[str] | None = None) -> None:
    """The console script: runs the command, prints one line for an error, exits 2 (3 for a bug of ours)."""
    given = sys.argv[1:] if arguments is None else arguments
    console.show_everything()
    with console.own_stdout() if "--json" in given else contextlib.nullcontext():
        code = _speak(given)
    sys.exit(code)


def _speak(given: list[str]) -> int:
    """Run a command and say what went wrong; its exit code."""
    code, failure = _run(given)
    try:
        if failure is not None:
            if "--json" in given:
                emit_json(failure)
            print(f"{failure['error']}: {console.one_line(failure['message'])}", file=sys.stderr)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has left; say nothing more, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _run(given: list[str]) -> tuple[int, dict[str, Any] | None]:
    """Run a command: its exit code, and what went wrong."""
    try:
        result = app(given, standalone_mode=False)
        if result == _INTERRUPTED:  # typer's own translation of Ctrl-C
            return 2, {"error": "Interrupted", "message": "Interrupted."}
        return (result if isinstance(result, int) else 0), None
    except NotProven as error:
        more = {"incumbent": error.incumbent, "bound": error.bound}
        return 2, {"error": "NotProven", "message": str(error), **more}
    except WorkbenchError as error:
        return 2, {"error": type(error).__name__, "message": str(error)}
    except (typer.Abort, KeyboardInterrupt):
        return 2, {"error": "Interrupted", "message": "Interrupted."}
    except TyperException as error:
        message = error.format_message().replace("\n", " ")
        return 2, {"error": "InvalidRequest", "message": message} if message.strip() else None
    except BrokenPipeError:
        return 1, None
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        return 2, {"error": "WorkbenchError", "message": f"Cannot use the file{where}: {error.strerror or error}."}
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
