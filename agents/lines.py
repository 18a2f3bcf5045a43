"""Sets of ends: where the ends of a line may come to lie when tiles are laid one after the other.

A set has 49 bits, bit ``left * 7 + right`` for a line that lies open so; laying a tile shifts whole rows and columns.
"""

import numpy as np
import numpy.typing as npt

from domino_env.tiles import HIGH, LOW, NUM_SUITS, NUM_TILES

NO_TILE = NUM_TILES  # fits nowhere; so does the number after it

Ends = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]

_LOW, _HIGH = np.append(LOW, [0, 0]).astype(np.uint64), np.append(HIGH, [0, 0]).astype(np.uint64)
_SEVEN = np.uint64(NUM_SUITS)
_ROW = np.uint64((1 << NUM_SUITS) - 1)  # all right ends beside the left end 0
_COLUMN = np.uint64(sum(1 << NUM_SUITS * left for left in range(NUM_SUITS)))  # all left ends beside the right end 0


def one_line(left: Ints, right: Ints) -> Ends:
    """The set of one line; the empty set for one that is empty, whose ends are 7."""
    some = left < NUM_SUITS
    return some.astype(np.uint64) << np.where(some, left * NUM_SUITS + right, 0).astype(np.uint64)


def lay_left(ends: Ends, tile: Ints) -> Ends:
    """Lines after a tile is laid at the left end of any of a set: (n,) from (n,) sets and tiles."""
    low, high = _LOW[tile], _HIGH[tile]
    after = (ends >> _SEVEN * low & _ROW) << _SEVEN * high
    after |= (ends >> _SEVEN * high & _ROW) << _SEVEN * low
    return np.where(tile < NUM_TILES, after, np.uint64(0))


def lay_right(ends: Ends, tile: Ints) -> Ends:
    """The same at the right end."""
    low, high = _LOW[tile], _HIGH[tile]
    after = (ends >> low & _COLUMN) << high
    after |= (ends >> high & _COLUMN) << low
    return np.where(tile < NUM_TILES, after, np.uint64(0))


def lay(ends: Ends, tile: Ints) -> Ends:
    """The same at either end."""
    return lay_left(ends, tile) | lay_right(ends, tile)


def lines_of(ends: Ends) -> tuple[Ints, Ints, Ints]:
    """What is in each of n sets.

    Returns:
        set (M,) ascending, left (M,) and right (M,) ends of each line in it.
    """
    words = np.ascontiguousarray(ends).astype("<u8", copy=False).view(np.uint8).reshape(-1, 8)
    bits = np.unpackbits(words, axis=1, bitorder="little")
    which, bit = np.nonzero(bits)
    return which, bit // NUM_SUITS, bit % NUM_SUITS
