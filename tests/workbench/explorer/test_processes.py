"""Test the worker processes that solve the tasks of a page."""

from __future__ import annotations

from typing import Any

from workbench.explorer.processes import _run_task, worker_memory_limit


def test_an_error_states_the_memory_that_a_page_may_use() -> None:
    class GreedyTasks:
        """Tasks that need more memory than there is."""

        def run(self, *_: Any) -> Any:
            """Raise the error of a process without memory."""
            raise MemoryError

    limit = worker_memory_limit()
    assert limit >= 4 << 30  # 4 GB, in bytes.
    message = _run_task(GreedyTasks(), "design", {}, lambda *_: None)["message"]
    assert f"more than the {limit >> 30} GB that a page may use" in message
