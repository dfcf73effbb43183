"""`workbench explore`: designs and trade-offs in a browser, or as one self-contained file."""

from __future__ import annotations

import signal
import threading
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

import typer

from workbench.cli.console import err
from workbench.cli.output_paths import output_file
from workbench.errors import InvalidRequest
from workbench.io.files import write_new
from workbench.io.result import Values


def explore(
    context: typer.Context,
    *,
    family: str | None = None,
    port: int = 0,
    browser: bool = True,
    export: Path | None = None,
) -> None:
    """Explore designs and their trade-offs in a browser: on this machine alone, until Ctrl-C."""
    from workbench.explorer.given import from_words
    from workbench.families.registry import family as named

    if family is None and (context.args or export is not None):
        raise InvalidRequest("family must be given before its options, and for an export. Got none.")
    given = {} if family is None else from_words(named(family), context.args)
    texts = {(family, name, text) for name, text in given.items() if family is not None and isinstance(text, str)}
    if export is not None and family is not None:
        from workbench.explorer.page import write_export

        output_file(export, "export")
        write_export(export, family, given, texts)
        print(f"Wrote {export}.")
        return
    _serve(family, given, texts, port, browser)


def _serve(family: str | None, given: Values, texts: set[tuple[str, str, str]], port: int, browser: bool) -> None:
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
                        err.print("No browser was found; open the address above.")
                server.serve_forever(poll_interval=0.2)
        finally:
            signal.signal(signal.SIGINT, before)
        err.print("Stopped.")


def _forward(address: str, folder: Path) -> str:
    """A page of the owner's alone that goes to the address: the command line of a browser is there for all to see."""
    page = folder / "explorer.html"
    goes = f'<meta http-equiv="refresh" content="0;url={escape(address)}">'
    write_new(page, f'<!doctype html><meta name="referrer" content="no-referrer">{goes}'.encode(), private=True)
    return page.as_uri()
