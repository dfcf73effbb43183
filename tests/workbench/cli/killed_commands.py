"""Run commands that die at a chosen moment, and read what they printed.

The tests of `sample --ledger` and `publish --ledger` call these functions. Their output has no
buffer, so that a kill loses no text that was printed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# Replaces one function of the workbench by one that ends the process with SIGKILL.
_SCRIPT = """\
import importlib, os, signal, sys

module, owner, name, moment, *command = sys.argv[1:]
namespace = importlib.import_module(module)
if owner:
    namespace = getattr(namespace, owner)
original = getattr(namespace, name)

def die(*args, **options):
    if moment == "after":
        original(*args, **options)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(namespace, name, die)
from workbench.cli import main
main(command)
"""


def run_and_kill(function: str, moment: str, command: list[str], folder: Path) -> tuple[int, str]:
    """Run a command that is killed before or after it calls a function.

    Args:
        function: The function, as "module:name" or "module:Class.name".
        moment: "before" or "after" the function has completed its work.
        command: Arguments of `workbench`.
        folder: Folder in which the command runs.

    Returns:
        The exit code, -9 if it was killed, and the text on stdout.
    """
    module, _, path = function.partition(":")
    owner, _, name = path.rpartition(".")
    completed = subprocess.run(
        [sys.executable, "-u", "-c", _SCRIPT, module, owner, name, moment, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    return completed.returncode, completed.stdout


def kill_after(seconds: float, command: list[str], folder: Path) -> tuple[int, str]:
    """Run a command and kill it after a time, if it still runs.

    Args:
        seconds: Time from the start of the process.
        command: Arguments of `workbench`.
        folder: Folder in which the command runs.

    Returns:
        The exit code, -9 if it was killed, and the text on stdout.
    """
    arguments = [sys.executable, "-u", "-m", "workbench", *command]
    with subprocess.Popen(
        arguments, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            out, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            out, _ = process.communicate()
    return process.returncode, out
