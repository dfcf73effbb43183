"""Test that `wb.explore` shows a design in JupyterLab, as the result of a cell."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

import workbench as wb
from bench.chromium import Chromium

MISSING = [name for name in ("jupyterlab", "ipykernel") if find_spec(name) is None]
pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"{', '.join(MISSING)} missing: pip install jupyterlab"
)

CELL = 'import workbench as wb\nwb.explore("modulo", n=8, max_shift=3, epsilon=1.5)'
# The document of the explorer, inside the frame of the cell's result.
FRAME = "document.querySelector('iframe[title=dp-workbench]')?.contentDocument"
# The server must start, and end, within this time.
SERVER_SECONDS = 300


def read_port(info_path: Path) -> int:
    """Return the free port that JupyterLab has found, from the file that it then writes."""
    end = time.monotonic() + SERVER_SECONDS
    while time.monotonic() < end:
        # At first the file is missing or incomplete.
        with contextlib.suppress(OSError, ValueError):
            port: int = json.loads(info_path.read_text("utf-8"))["port"]
            return port
        time.sleep(0.1)
    raise AssertionError("JupyterLab has not started.")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    """Start JupyterLab and yield the address of a notebook with the code CELL."""
    cell = {
        "cell_type": "code",
        "id": "one",
        "metadata": {},
        "outputs": [],
        "execution_count": None,
        "source": CELL,
    }
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    notebook = {"cells": [cell], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "one.ipynb").write_text(json.dumps(notebook), "utf-8")
    # Settings and sessions of the user are neither read nor changed.
    folder_variables = (
        "JUPYTER_CONFIG_DIR",
        "JUPYTER_DATA_DIR",
        "JUPYTER_RUNTIME_DIR",
        "IPYTHONDIR",
        "JUPYTERLAB_SETTINGS_DIR",
        "JUPYTERLAB_WORKSPACES_DIR",
    )
    folders = {name: str(tmp_path / name) for name in folder_variables}
    options = {
        "ServerApp.root_dir": tmp_path,
        "IdentityProvider.token": "t",
        "ServerApp.open_browser": False,
        "ServerApp.allow_root": True,
        # This defines `window.jupyterapp`.
        "LabApp.expose_app_in_browser": True,
        "LabApp.extension_manager": "readonly",
    }
    arguments = [f"--{name}={value}" for name, value in options.items()]
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *arguments],
        env=os.environ | folders,
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
    )
    try:
        port = read_port(tmp_path / "JUPYTER_RUNTIME_DIR" / f"jpserver-{server.pid}.json")
        yield f"http://127.0.0.1:{port}/lab/tree/one.ipynb?token=t"
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(SERVER_SECONDS)


def test_a_cell_shows_the_certified_design_in_jupyterlab(browser: Chromium, lab: str) -> None:
    page = browser.open("about:blank", load=False)
    page.reach(lab)
    notebook = "window.jupyterapp?.shell.currentWidget"
    page.wait(f"{notebook}?.context?.isReady && {notebook}.sessionContext?.session?.kernel")
    page.js("void window.jupyterapp.commands.execute('notebook:run-all-cells')")
    page.wait(f"{FRAME}?.querySelector('.badge.proven')")
    shown_loss = float(page.js(f"{FRAME}.querySelector('.value').textContent"))
    design = wb.design("modulo", n=8, max_shift=3, epsilon=1.5)
    assert shown_loss == pytest.approx(design.objective, abs=1e-9)
    local_addresses = ("http://127.0.0.1", "ws:", "data:", "blob:", "about:")
    assert not [url for url in page.requests if not url.startswith(local_addresses)]
    browser.close_pages()
