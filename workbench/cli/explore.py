"""`workbench explore`: designs and trade-offs in a browser, or as one self-contained file."""

from __future__ import annotations

import signal
import threading
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import typer

from workbench.cli.console import err
from workbench.cli.output_paths import check_output_file
from workbench.errors import InvalidRequest, must
from workbench.io.files import write_new_file

if TYPE_CHECKING:
    from workbench.explorer.given import FileTexts

_ENDING = (
    "SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGBREAK", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGPROF",
    "SIGXCPU",
)  # fmt: skip


def explore(
    context: typer.Context,
    *,
    family: str | None,
    port: int,
    browser: bool,
    export: Path | None,
) -> None:
    """Explore designs and their trade-offs in a browser: on this machine alone, until Ctrl-C."""
    from workbench.explorer.given import (
        encode_address_fragment,
        first_example,
        list_file_texts,
        read_arguments,
    )
    from workbench.pipeline.registry import get_family as named

    if family is None:
        if context.args or export is not None:
            got = " ".join(context.args) or "none"
            page = "a saved mechanism is shown by `workbench audit FILE --html PAGE`"
            raise InvalidRequest(
                f"family must be given before its options, and for an export; {page}. Got {got}."
            )
        _serve("", (), port, browser)
        return
    kind = named(family)
    given = read_arguments(kind, context.args)
    files = list_file_texts(kind, given)
    if export is None:
        _serve(encode_address_fragment(family, given), files, port, browser)
        return
    from workbench.explorer.page import build_export_page, write_page

    check_output_file(export, "export")
    write_page(export, build_export_page(family, given or first_example(kind), files))
    print(f"Wrote {export}.")


def _serve(state: str, files: FileTexts, port: int, browser: bool) -> None:
    from workbench.explorer.server import Server

    servers: list[Server] = []

    def stop(number: int, frame: object) -> None:
        if not servers:
            raise KeyboardInterrupt
        # an exception in the middle of anything may be lost there, and the server would go on
        threading.Thread(target=servers[0].shutdown, daemon=True).start()

    before = {number: signal.signal(number, stop) for number in _ending_signals()}
    try:
        try:
            server = Server(port, files)
        except OSError as error:
            must("port", f"free ({error.strerror})", port)
        with server:
            servers.append(server)
            address = server.make_address(state)
            print(f"Explorer: {address}", flush=True)
            with TemporaryDirectory() as folder:
                if browser:
                    import webbrowser

                    if not webbrowser.open(_forward(address, Path(folder))):
                        err.print("No browser was found; open the address above.")
                server.serve_forever(poll_interval=0.2)
            err.print("Stopped.")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ending_signals() -> list[signal.Signals]:
    """List the signals that would end this process and leave its temporary files, as far as they can be caught."""
    ignored = (
        signal.SIG_IGN,
        None,
    )  # as `nohup` does with SIGHUP; None: of a handler that is not Python's
    named = [getattr(signal, name) for name in _ENDING if hasattr(signal, name)]
    return [
        number
        for number in named
        if number == signal.SIGINT or signal.getsignal(number) not in ignored
    ]


def _forward(address: str, folder: Path) -> str:
    """A page of the owner's alone that goes to the address: the command line of a browser is there for all to see."""
    page = folder / "explorer.html"
    goes = f'<meta http-equiv="refresh" content="0;url={escape(address)}">'
    write_new_file(
        page,
        f'<!doctype html><meta name="referrer" content="no-referrer">{goes}'.encode(),
        private=True,
    )
    return page.as_uri()
