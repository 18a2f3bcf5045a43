"""Signals that are handled for a while."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType

Handler = Callable[[int, FrameType | None], None]


@contextlib.contextmanager
def handled(handler: Handler, *numbers: int) -> Iterator[None]:
    """These signals go to `handler` meanwhile; outside the main thread, where they go elsewhere, nothing changes."""
    try:
        before = {number: signal.signal(number, handler) for number in numbers}
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        for number, one in before.items():
            signal.signal(number, one)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """A Ctrl-C while modules are imported takes effect when they are: in the midst of an import Python can lose it."""
    pressed: list[int] = []
    with handled(lambda number, frame: pressed.append(number), signal.SIGINT):
        yield
    if pressed:
        raise KeyboardInterrupt
