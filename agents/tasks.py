"""Work side by side: a trainer's threads."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch


class Tasks:
    """Runs tasks side by side on a run's threads, each operation on one core."""

    def __init__(self, threads: int, name: str) -> None:
        self._intraop = torch.get_num_threads()
        torch.set_num_threads(1)  # here and in each thread: cores are shared out by task, not within an operation
        self._pool = ThreadPoolExecutor(threads, name, initializer=torch.set_num_threads, initargs=(1,))

    def together(self, *tasks: Callable[[], Any]) -> list[Any]:
        """The result of each task, in the order of the tasks."""
        return [future.result() for future in [self._pool.submit(task) for task in tasks]]

    def close(self) -> None:
        """Ends the threads."""
        self._pool.shutdown()
        torch.set_num_threads(self._intraop)


def timed(task: Callable[[], Any]) -> Callable[[], tuple[Any, float]]:
    """A task that also answers the seconds that it took."""

    def run() -> tuple[Any, float]:
        begin = time.perf_counter()
        result = task()
        return result, time.perf_counter() - begin

    return run
