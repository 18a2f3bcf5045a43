"""The 28 tiles as bits, their suits, doubles and pips, and the action ids of the line games.

Tiles are numbered 0..27 in the order 0-0, 0-1, ... 0-6, 1-1, ... 6-6. A set of tiles is a mask: bit t of an unsigned
integer says that tile t is in it. Small sets keep the numbers and ids of the double-six set (K4).
"""

from collections.abc import Iterable
from typing import TypeGuard

import numpy as np

NUM_TILES = 28
NUM_SUITS = 7
PASS = 2 * NUM_TILES  # action 56; 0..27 lay tile t on the left end, 28..55 tile t - 28 on the right end
NUM_ACTIONS = PASS + 1
TURN, DRAW = PASS + 1, PASS + 2  # the blind games' own actions: turn the rightmost tile, draw one from the stock
NUM_ROW_ACTIONS = DRAW + 1

_PAIRS = [(low, high) for low in range(NUM_SUITS) for high in range(low, NUM_SUITS)]
LOW = np.array([low for low, _ in _PAIRS], dtype=np.uint8)  # (28,) the smaller half of each tile
HIGH = np.array([high for _, high in _PAIRS], dtype=np.uint8)  # (28,) the larger half
PIPS = LOW + HIGH  # (28,) uint8
SUIT_MASK = np.array(
    [sum(1 << t for t, pair in enumerate(_PAIRS) if suit in pair) for suit in range(NUM_SUITS)], dtype=np.uint32
)  # (7,) the tiles that hold a suit
DOUBLES_MASK = sum(1 << t for t, (low, high) in enumerate(_PAIRS) if low == high)
ALL_TILES = (1 << NUM_TILES) - 1

_NAMES = [f"{low}-{high}" for low, high in _PAIRS]
_INDEX = {name: t for t, (low, high) in enumerate(_PAIRS) for name in (f"{low}-{high}", f"{high}-{low}")}
_WHOLE = (int, np.integer)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is an integer, Python's or NumPy's; True and False are none."""
    return isinstance(value, _WHOLE) and not isinstance(value, bool)


def tile_name(tile: int) -> str:
    """Name of a tile, smaller half first: ``tile_name(6) == "0-6"``."""
    if not is_whole(tile) or not 0 <= tile < NUM_TILES:
        raise ValueError(f"tile {tile!r} does not exist; tiles are 0..27")
    return _NAMES[tile]


def tile_index(name: str) -> int:
    """Number of the tile called ``name``; both orders of the halves are understood ("0-6", "6-0")."""
    if not isinstance(name, str) or name not in _INDEX:
        raise ValueError(f"unknown tile {name!r}; tiles are written a-b with a and b in 0..6, like '0-6'")
    return _INDEX[name]


def action_name(action: int) -> str:
    """Text of an action of the line games: "3-4L", "3-4R" or "pass"."""
    if not is_whole(action) or not 0 <= action <= PASS:
        raise ValueError(f"action {action!r} does not exist; actions are 0..{PASS}")
    if action == PASS:
        return "pass"
    return _NAMES[action % NUM_TILES] + ("L" if action < NUM_TILES else "R")


def action_index(text: str) -> int:
    """Id of an action written as by :func:`action_name`."""
    if text == "pass":
        return PASS
    if not isinstance(text, str) or text[-1:] not in ("L", "R") or text[:-1] not in _INDEX:
        raise ValueError(f"unknown move {text!r}; moves are written a-bL, a-bR or pass, like '3-4L'")
    return _INDEX[text[:-1]] + (NUM_TILES if text[-1] == "R" else 0)


def row_action_name(action: int) -> str:
    """Text of an action of the blind games: those of the line games, "turn" or "draw"."""
    if not is_whole(action) or not 0 <= action < NUM_ROW_ACTIONS:
        raise ValueError(f"action {action!r} does not exist; actions are 0..{NUM_ROW_ACTIONS - 1}")
    return {TURN: "turn", DRAW: "draw"}.get(int(action)) or action_name(action)


def row_action_index(text: str) -> int:
    """Id of an action written as by :func:`row_action_name`."""
    if text in ("turn", "draw"):
        return TURN if text == "turn" else DRAW
    if text != "pass" and (not isinstance(text, str) or text[-1:] not in ("L", "R") or text[:-1] not in _INDEX):
        raise ValueError(f"unknown move {text!r}; moves are written a-bL, a-bR, turn, draw or pass, like '3-4L'")
    return action_index(text)


def tiles_of(mask: int) -> list[int]:
    """Numbers of the tiles in a mask, ascending."""
    mask = int(mask)
    return [t for t in range(NUM_TILES) if mask >> t & 1]


def mask_of(tiles: Iterable[int]) -> int:
    """Mask of some tile numbers."""
    mask = 0
    for tile in tiles:
        mask |= 1 << tile
    return mask


def _pip_tables() -> tuple[np.ndarray, np.ndarray]:
    half = np.arange(1 << 14)
    bits = half[:, None] >> np.arange(14) & 1
    return (bits @ PIPS[:14]).astype(np.int16), (bits @ PIPS[14:]).astype(np.int16)


_PIPS_LOW, _PIPS_HIGH = _pip_tables()


def pips_of(masks: np.ndarray) -> np.ndarray:
    """Sum of the pips of each mask, by two look-ups of 14 bits.

    Args:
        masks: (...) uint32.
    Returns:
        (...) int16.
    """
    return _PIPS_LOW[masks & 0x3FFF] + _PIPS_HIGH[masks >> 14 & 0x3FFF]
