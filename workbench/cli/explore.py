"""The command `explore`: designs and trade-offs in a browser, or as one self-contained file."""

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

# These signals end a process.
_ENDING_SIGNALS = (
    "SIGINT",
    "SIGTERM",
    "SIGHUP",
    "SIGQUIT",
    "SIGBREAK",
    "SIGUSR1",
    "SIGUSR2",
    "SIGALRM",
    "SIGVTALRM",
    "SIGPROF",
    "SIGXCPU",
)


def explore_designs(
    context: typer.Context,
    *,
    family: str | None,
    port: int,
    browser: bool,
    export: Path | None,
) -> None:
    """Explore designs and their trade-offs in a browser, on this machine, until Ctrl-C.

    Args:
        context: Context of the command, with the options of the family.
        family: Name of the family to show first.
        port: Port of the server. 0: any free port.
        browser: Whether to open the page in a browser.
        export: File for one self-contained page, which is written instead.
    """
    from workbench.explorer.given import (
        encode_address_fragment,
        first_example,
        list_file_texts,
        read_arguments,
    )
    from workbench.pipeline.registry import get_family

    if family is None:
        if context.args or export is not None:
            got = " ".join(context.args) or "none"
            raise InvalidRequest(
                "family must be given before its options, and for an export; `workbench audit FILE "
                f"--html PAGE` shows a saved mechanism. Got {got}."
            )
        _serve("", files=(), port=port, browser=browser)
        return
    kind = get_family(family)
    values = read_arguments(kind, context.args)
    files = list_file_texts(kind, values)
    if export is None:
        _serve(encode_address_fragment(family, values), files, port, browser)
        return
    from workbench.explorer.page import build_export_page, write_page

    check_output_file(export, "export")
    write_page(export, build_export_page(family, values or first_example(kind), files))
    print(f"Wrote {export}.")


def _serve(fragment: str, files: FileTexts, port: int, browser: bool) -> None:
    """Serve the page until a signal ends the process."""
    from workbench.explorer.server import Server

    servers: list[Server] = []

    def stop(number: int, frame: object) -> None:
        """Shut the server down at a signal, or interrupt the command if there is no server yet."""
        if not servers:
            raise KeyboardInterrupt
        # An exception may be lost where the signal interrupts, and the server would continue.
        threading.Thread(target=servers[0].shutdown, daemon=True).start()

    handlers = {number: signal.signal(number, stop) for number in _list_ending_signals()}
    try:
        try:
            server = Server(port, files)
        except OSError as error:
            must("port", f"free ({error.strerror})", port)
        with server:
            servers.append(server)
            address = server.make_address(fragment)
            print(f"Explorer: {address}", flush=True)
            with TemporaryDirectory() as folder:
                if browser:
                    import webbrowser

                    if not webbrowser.open(_write_redirect(address, Path(folder))):
                        err.print("No browser was found; open the address above.")
                server.serve_forever(poll_interval=0.2)
            err.print("Stopped.")
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _list_ending_signals() -> list[signal.Signals]:
    """Return the signals that would end this process without removing its temporary files.

    Ignored signals stay ignored (`nohup` ignores SIGHUP), and handlers that are not Python's stay.
    """
    signals = [getattr(signal, name) for name in _ENDING_SIGNALS if hasattr(signal, name)]
    selected = []
    for number in signals:
        is_ignored = signal.getsignal(number) in (signal.SIG_IGN, None)
        if number == signal.SIGINT or not is_ignored:
            selected.append(number)
    return selected


def _write_redirect(address: str, folder: Path) -> str:
    """Write a page that only its owner can read and that opens the address. Returns its URI.

    The command line of a browser is visible to all users, so that it must not contain the address.
    """
    page = folder / "explorer.html"
    redirect = f'<meta http-equiv="refresh" content="0;url={escape(address)}">'
    text = f'<!doctype html><meta name="referrer" content="no-referrer">{redirect}'
    write_new_file(page, text.encode(), private=True)
    return page.as_uri()
