"""Files that are written whole or not at all, by one process at a time, and say what they are."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def write_whole(path: str | Path, content: bytes | str) -> Path:
    """Write a file under a temporary name beside it and rename it; what stood there stays until then.

    Raises:
        OSError: it cannot be written; nothing is left behind.
    """
    path = Path(path)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        unfinished.write_bytes(content.encode() if isinstance(content, str) else content)
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    return path


def check_place(path: Path) -> None:
    """OSError where no file of this name can lie."""
    if not path.parent.is_dir() or path.is_dir():
        number = errno.EISDIR if path.is_dir() else errno.ENOENT
        raise OSError(number, os.strerror(number), str(path))


@contextlib.contextmanager
def locked(folder: Path, others: str) -> Iterator[int]:
    """Nobody else writes a folder meanwhile; yields the lock. It goes with its process, however that ends.

    Args:
        others: who may be writing it, and what to do then: "another sweep; wait for it".

    Raises:
        ValueError: somebody is.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"{folder} is being written by {others}") from None
        yield handle
    finally:
        os.close(handle)


def read_record(path: Path, kind: str, version: int) -> dict[str, Any]:
    """The JSON of a file that says what it is: its `record` and `version`.

    Raises:
        ValueError: no JSON, or of something else; OSError: it cannot be read.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: not JSON: {error}") from None
    if not isinstance(data, dict) or data.get("record") != kind or data.get("version") != version:
        raise ValueError(f"{path} is no {kind} of version {version}")
    return data
