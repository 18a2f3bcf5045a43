"""What every engine checks and answers alike: row and seat numbers, seeds, options, actions and masks of a batch."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from domino_env.deals import Given, given, row_keys
from domino_env.rules import Rules
from domino_env.tiles import is_whole

Options = Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None


def row_numbers(rows: Any, num_envs: int) -> np.ndarray:
    """Row numbers (n,), from numbers or a (num_envs,) bool mask; a ValueError for anything else."""
    rows = np.asarray(rows)
    if rows.dtype == bool and rows.shape == (num_envs,):
        return np.flatnonzero(rows)
    if not rows.size:
        return np.zeros(0, np.int64)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= num_envs:
        raise ValueError(f"rows {rows!r} must be numbers in 0..{num_envs - 1}, or {num_envs} bools")
    return rows.astype(np.int64)


def row_number(row: Any, num_envs: int) -> int:
    """One row number; a ValueError for anything else."""
    if not is_whole(row) or not 0 <= row < num_envs:
        raise ValueError(f"row {row!r} must be in 0..{num_envs - 1}")
    return int(row)


def seat_numbers(seat: Any, seats: int, num_envs: int) -> np.ndarray:
    """A seat, or one a row, as (num_envs,) int64; a ValueError for anything else."""
    numbers = np.asarray(seat)
    known = numbers.dtype.kind in "iu" and numbers.shape in ((), (num_envs,))
    if not known or ((numbers < 0) | (numbers >= seats)).any():
        raise ValueError(f"seat {seat!r} must be in 0..{seats - 1}, or {num_envs} of them, one a row")
    return np.broadcast_to(numbers, (num_envs,)).astype(np.int64)


def seed_keys(seed: Any, num_envs: int) -> np.ndarray:
    """Stream keys (num_envs,) uint64 of a seed (row i has its stream i; None: fresh entropy), or of one seed a row."""
    if seed is None or is_whole(seed):
        return row_keys(seed, np.arange(num_envs))
    if isinstance(seed, Sequence | np.ndarray) and not isinstance(seed, str) and len(seed) == num_envs:
        return np.concatenate([row_keys(one, np.zeros(1, np.int64)) for one in seed])
    raise ValueError(f"seed={seed!r} must be a whole number, None, or a list of {num_envs} of them")


def given_rows(rules: Rules, options: Any, rows: int) -> list[Given] | None:
    """Checked options of a reset, one a row, from a dict for all or a list of one a row; None where there are none."""
    if options is None:
        return None
    if isinstance(options, Mapping):
        return [given(rules, options)] * rows
    if isinstance(options, str) or not isinstance(options, Sequence) or len(options) != rows:
        raise ValueError(f"options must be a dict or a list of {rows} dicts, not {options!r}")
    return [given(rules, one) for one in options]


def check_actions(
    actions: Any, legal: np.ndarray, over: np.ndarray, num_actions: int, name: Callable[[int], str]
) -> np.ndarray:
    """Actions of a step as (N,) int64.

    Args:
        actions: (N,) integers.
        legal: (N,) uint64 masks of what is legal.
        over: (N,) bool, rows that must be reset first.
        num_actions: actions there are; name: text of one.
    Raises:
        ValueError: wrong shape or dtype, an unknown or illegal action, a row that is over.
    """
    acts = np.asarray(actions)
    if acts.shape != legal.shape or acts.dtype.kind not in "iu":
        raise ValueError(
            f"actions must be whole numbers of shape {legal.shape}, not {acts.dtype} of shape {acts.shape}"
        )
    codes = acts.astype(np.int64).view(np.uint64)
    if (codes >= num_actions).any():
        row = int((codes >= num_actions).argmax())
        raise ValueError(f"action {acts[row]} in row {row} does not exist; actions are 0..{num_actions - 1}")
    if over.any():
        raise ValueError(f"row {int(over.argmax())} is over; reset it or take the others first")
    wrong = legal >> codes & np.uint64(1) == 0
    if wrong.any():
        row = int(wrong.argmax())
        may = ", ".join(name(a) for a in range(num_actions) if int(legal[row]) >> a & 1)
        raise ValueError(f"action {acts[row]} ({name(int(acts[row]))}) in row {row} is illegal; legal are {may}")
    return codes.view(np.int64)


def mask_array(bits: np.ndarray, num_actions: int) -> np.ndarray:
    """Action masks (N, num_actions) int8 from (N,) uint64 words."""
    words = bits.astype("<u8", copy=False).view(np.uint8).reshape(len(bits), 8)
    return np.unpackbits(words, axis=1, count=num_actions, bitorder="little").view(np.int8)
