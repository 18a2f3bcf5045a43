"""What each seat has opened and what it has left alone: the choices of a deal, read off its public history.

A lay opens the suit that becomes the new end; the first tile opens its two. Whoever lays on one end leaves the suit of
the other alone, where that is another one. Both say something of a hand that the tiles on the line do not: which of
two ends was chosen, and what was made of it. What a seat could not do stands in the observation already (a pass).

They hold for every game. Each seat has five masks of suits, bit k for suit k: opened at least once, at least twice,
left alone at least once, at least twice, and what its last lay opened. Beside them stands the first tile of the deal.
"""

import numpy as np
import numpy.typing as npt

from domino_env.rules import Rules, get_rules
from domino_env.tiles import HIGH, LOW, NUM_TILES, PIPS
from domino_env.words import read_history

KINDS = ("opened", "opened_twice", "left", "left_twice", "last")
_SUITS = 8  # bits of a mask: one for each suit, rounded up to a byte


def num_bytes(rules: Rules) -> int:
    """Bytes of :func:`packed`: a mask of each kind for each seat, and the first tile."""
    return len(KINDS) * rules.seats + 4


def choices(
    history: npt.NDArray[np.int16], rules: str | Rules = "sport_book"
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint32]]:
    """The choices of N deals.

    Args:
        history: (N, T) int16 as of ``engine.history()``.
        rules: the game that was played.

    Returns:
        (N, 5, seats) uint8, the masks of `KINDS` of each seat, clockwise from the viewer of the history; (N,) uint32,
        the first tile on the line as a mask of tiles, 0 before it.

    Raises:
        ValueError: another shape, or numbers that are no events of this game.
    """
    rules = get_rules(rules)
    past = read_history(history, rules)
    row, event = np.nonzero(past.lays)
    action, before = past.action[row, event], past.event[row, event]
    left, right, tile = before >> 9 & 7, before >> 6 & 7, action % NUM_TILES
    first, on_left = left == 7, action < NUM_TILES  # 7: the line was empty
    end, other = np.where(on_left, left, right), np.where(on_left, right, left)
    new = np.where(first, LOW.take(tile), PIPS.take(tile).astype(np.int64) - end)
    also = np.where(first, HIGH.take(tile), new)  # the other suit of the first tile
    who, deals = row * rules.seats + past.seat[row, event], len(past.event)
    opened = np.concatenate([who * _SUITS + new, (who * _SUITS + also)[also != new]])
    alone = (who * _SUITS + other)[~first & (other != end)]
    masks = []
    for kind in (opened, alone):
        times = np.bincount(kind, minlength=deals * rules.seats * _SUITS).reshape(-1, _SUITS)
        masks += [np.packbits(times >= least, axis=1, bitorder="little")[:, 0] for least in (1, 2)]
    last = np.zeros(deals * rules.seats, np.uint8)
    last[who] = 1 << new | 1 << also  # of several lays of a seat the last one stays
    lead = np.zeros(deals, np.uint32)
    lead[row[first]] = 1 << tile[first]
    return np.stack([*masks, last]).reshape(len(KINDS), deals, rules.seats).transpose(1, 0, 2).copy(), lead


def packed(history: npt.NDArray[np.int16], rules: str | Rules = "sport_book") -> npt.NDArray[np.uint8]:
    """The same as bytes for a network, beside an observation of the same viewer: (N, `num_bytes(rules)`) uint8."""
    masks, lead = choices(history, rules)
    flat = masks.reshape(len(masks), masks.shape[1] * masks.shape[2])
    return np.concatenate([flat, lead.astype("<u4").view(np.uint8).reshape(-1, 4)], axis=1)
