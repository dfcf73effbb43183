"""`workbench explore`: designs and trade-offs in a browser, or as one self-contained file."""

from __future__ import annotations

import signal
import threading
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from workbench.cli.console import err
from workbench.cli.output_paths import output_file
from workbench.errors import InvalidRequest
from workbench.io.files import write_new

__all__ = ["EXAMPLES", "SETTINGS", "explore"]

EXAMPLES = """Examples:

  workbench explore

  workbench explore --family modulo --n 8 --max-shift 3 --epsilon 1.5     (any option of `workbench design modulo`)

  workbench explore --no-browser --port 8765

  workbench explore --export noise.html --family modulo --n 8 --max-shift 3 --epsilon 1.5"""

SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}


def explore(
    context: typer.Context,
    family: Annotated[str | None, typer.Option(help="The family to begin with; its options may follow.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="On 127.0.0.1; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
    export: Annotated[
        Path | None, typer.Option(help="Write one page that needs no server and no network, and end.")
    ] = None,
) -> None:
    """Explore designs and their trade-offs in a browser: on this machine alone, until Ctrl-C."""
    from workbench.explorer.given import from_words
    from workbench.families.registry import family as named

    if family is None and (context.args or export is not None):
        raise InvalidRequest("family must be given before its options, and for an export. Got none.")
    given = {} if family is None else from_words(named(family), context.args)
    texts = {(family, name, text) for name, text in given.items() if family is not None and isinstance(text, str)}
    if export is not None and family is not None:
        _export(export, family, given, texts)
        return
    _serve(family, given, texts, port, browser)


def _export(path: Path, family: str, given: dict[str, object], texts: set[tuple[str, str, str]]) -> None:
    from workbench.explorer.export import write_export

    output_file(path, "export", (".html", ".htm"))
    write_export(path, family, given, texts)
    print(f"Wrote {path}.")


def _serve(
    family: str | None, given: dict[str, object], texts: set[tuple[str, str, str]], port: int, browser: bool
) -> None:
    from workbench.explorer.server import Server

    try:
        server = Server(port, texts)
    except OSError as error:
        InvalidRequest.must("port", f"free ({error.strerror})", port)
    with server:
        state = {"family": family, **{k: str(v).lower() if isinstance(v, bool) else v for k, v in given.items()}}
        address = server.address(state if family is not None else None)

        def stop(number: int, frame: object) -> None:
            # an exception in the middle of anything may be lost there, and the server would go on
            threading.Thread(target=server.shutdown, daemon=True).start()

        before = signal.signal(signal.SIGINT, stop)
        try:
            print(f"Explorer: {address}", flush=True)
            with TemporaryDirectory() as folder:
                if browser:
                    import webbrowser

                    if not webbrowser.open(_forward(address, Path(folder))):
                        err.print("No browser was found; open the address above.", highlight=False)
                server.serve_forever(poll_interval=0.2)
        finally:
            signal.signal(signal.SIGINT, before)
        err.print("Stopped.", highlight=False)


def _forward(address: str, folder: Path) -> str:
    """A page of the owner's alone that goes to the address: the command line of a browser is there for all to see."""
    page = folder / "explorer.html"
    goes = f'<meta http-equiv="refresh" content="0;url={escape(address)}">'
    write_new(page, f'<!doctype html><meta name="referrer" content="no-referrer">{goes}'.encode(), private=True)
    return page.as_uri()
