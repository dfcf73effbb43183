"""Test `wb.explore` in JupyterLab."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from bench.chromium import Chromium

MISSING = [name for name in ("jupyterlab", "ipykernel") if find_spec(name) is None]
pytestmark = pytest.mark.skipif(
    bool(MISSING), reason=f"{', '.join(MISSING)} missing: pip install jupyterlab"
)

CELL = 'import workbench as wb\nwb.explore("modulo", n=8, max_shift=3, epsilon=1.5)'
FRAME = "document.querySelector('iframe[title=dp-workbench]')?.contentDocument"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    """Return the address of a notebook with one cell."""
    cell = {
        "cell_type": "code",
        "id": "one",
        "metadata": {},
        "outputs": [],
        "execution_count": None,
        "source": CELL,
    }
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    book = {"cells": [cell], "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "one.ipynb").write_text(json.dumps(book), "utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folders = {name: str(tmp_path / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR",
               "IPYTHONDIR", "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR")}  # fmt: skip
    options = {"ServerApp.port": port, "ServerApp.root_dir": tmp_path, "IdentityProvider.token": "t",
               "ServerApp.open_browser": False, "ServerApp.allow_root": True, "LabApp.expose_app_in_browser": True,
               "LabApp.extension_manager": "readonly"}  # fmt: skip
    words = [f"--{name}={value}" for name, value in options.items()]
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *words],
        env=os.environ | folders,
        cwd=tmp_path,
        stderr=subprocess.DEVNULL,
    )
    yield f"http://127.0.0.1:{port}/lab/tree/one.ipynb?token=t"
    server.send_signal(signal.SIGTERM)
    server.wait(300)


def test_the_page_opens_in_jupyterlab(browser: Chromium, lab: str) -> None:
    page = browser.open("about:blank", load=False)
    page.reach(lab)
    page.wait("window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel", 90)
    page.js("void window.jupyterapp.commands.execute('notebook:run-all-cells')")
    page.wait(f"{FRAME}?.querySelector('.badge.proven')", 90)
    assert float(page.js(f"{FRAME}.querySelector('.value').textContent")) == pytest.approx(
        0.589887461, abs=1e-9
    )
    loopback = ("http://127.0.0.1", "ws:", "data:", "blob:", "about:")
    assert not [url for url in page.requests if not url.startswith(loopback)]
    browser.close_pages()
