"""Words of the game as data: fewest-holder, rolled, end on a suit, long end, cut-off double.

They are read off the public history of a deal on an open line (``engine.history()``), for all rows at once, so every
seat may know them. Seats are counted clockwise from the viewer of the history. A tile is out once it lies on the line,
and still to come until then; of one that was dealt to nobody (K4) the table does not know that it never comes.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from domino_env.engine import Engine
from domino_env.rules import Rules, get_rules
from domino_env.tiles import HIGH, LOW, NUM_SUITS, NUM_TILES, PASS, PIPS, SUIT_MASK, is_whole, mask_of, tile_index

_DOUBLE = np.array([1 << tile_index(f"{suit}-{suit}") for suit in range(NUM_SUITS)], np.uint32)  # (7,) masks
_BIT = np.array([1 << action % NUM_TILES for action in range(PASS)] + [0] * (64 - PASS), np.uint32)  # (64,) by action

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Public:
    """What a history says of N deals."""

    out: npt.NDArray[np.uint32]  # (N,) masks of the tiles on the line
    ends: npt.NDArray[np.int8]  # (N, 2) open suits left and right, -1 before the lead
    laid: Ints  # (N, seats) tiles that each seat has laid, clockwise from the viewer
    leader: Ints  # (N,) who led, clockwise from the viewer; -1 before the lead


def public(history: npt.NDArray[np.int16], rules: str | Rules = "sport_book") -> Public:
    """Read histories.

    Args:
        history: (N, T) int16 as of ``engine.history()``.
        rules: the game that was played.
    Raises:
        ValueError: another shape, or numbers that are no events of this game.
    """
    rules = get_rules(rules)
    given = np.asarray(history)
    if given.ndim != 2 or given.dtype.kind not in "iu":
        raise ValueError(f"a history is whole numbers of shape (rows, events), not {given.dtype} of {given.shape}")
    events: Ints = given.astype(np.int64)
    if not events.shape[1]:
        events = np.full((len(events), 1), -1)
    there = events >= 0
    action, seat = events & 63, events >> 12
    if (there & ((action > PASS) | (seat >= rules.seats))).any() or (there[:, 1:] & ~there[:, :-1]).any():
        raise ValueError(f"the history holds numbers that are no events of {rules.name} with {rules.seats} seats")
    bits = np.where(there, _BIT.take(action), np.uint32(0))
    lays = bits != 0
    laid = np.stack([(lays & (seat == r)).sum(axis=1) for r in range(rules.seats)], axis=1)
    leader = np.where(there[:, 0], seat[:, 0], -1)
    return Public(np.bitwise_or.reduce(bits, axis=1), _ends(events, there), laid, leader)


def _ends(events: Ints, there: Bools) -> npt.NDArray[np.int8]:
    """(N, 2) ends after the last event of each row."""
    last = events[np.arange(len(events)), np.maximum(there.sum(axis=1) - 1, 0)]
    action, left, right = last & 63, last >> 9 & 7, last >> 6 & 7
    tile = action % NUM_TILES
    first = left == 7  # the line was empty
    on_left = (action < NUM_TILES) & ~first
    on_right = (action >= NUM_TILES) & (action < PASS)
    pips = PIPS.take(tile).astype(np.int64)
    new_left = np.where(first, LOW.take(tile), np.where(on_left, pips - left, left))
    new_right = np.where(first, HIGH.take(tile), np.where(on_right, pips - right, right))
    ends = np.stack([new_left, new_right], axis=1)
    ends[~there[:, 0]] = -1
    return ends.astype(np.int8)


def fewest_holder(
    history: npt.NDArray[np.int16], rules: str | Rules = "sport_book", leader: npt.ArrayLike | None = None
) -> Ints:
    """The seat that now holds the fewest tiles; of several, the nearest clockwise from the leader, who is the first.

    Args:
        history: (N, T) int16.
        rules: the game; its hands are of one size, so who has laid most holds the fewest.
        leader: (N,) or one seat, clockwise from the viewer, for rows without an event; None: -1 for these.
    Returns:
        (N,) int64 seat, clockwise from the viewer.
    """
    rules = get_rules(rules)
    seen = public(history, rules)
    lead = np.where(seen.leader < 0, -1 if leader is None else np.asarray(leader), seen.leader)
    order = (lead[:, None] + np.arange(rules.seats)) % rules.seats
    place = np.take_along_axis(seen.laid, order, axis=1).argmax(axis=1)
    return np.where(lead < 0, -1, (lead + place) % rules.seats)


def rolled(history: npt.NDArray[np.int16]) -> Bools:
    """Lays that made an opponent pass: the next seat had nothing that matches.

    An opponent further round passes on account of the same lay only where the next one passed already, so each such lay
    is marked once. The last event of a history is never marked: nobody has answered it yet.

    Args:
        history: (N, T) int16, of a game with one tile a turn.
    Returns:
        (N, T) bool, by event.
    """
    events = np.asarray(history)
    passed = (events >= 0) & (events & 63 == PASS)
    marks = np.zeros(events.shape, bool)
    marks[:, :-1] = (events[:, :-1] >= 0) & ~passed[:, :-1] & passed[:, 1:]
    return marks


def rolls(history: npt.NDArray[np.int16], rules: str | Rules = "sport_book") -> Ints:
    """How often each seat has rolled an opponent: (N, seats) int64, clockwise from the viewer."""
    marks, seat = rolled(history), np.asarray(history) >> 12
    return np.stack([(marks & (seat == r)).sum(axis=1) for r in range(get_rules(rules).seats)], axis=1)


def end_on(history: npt.NDArray[np.int16], rules: str | Rules = "sport_book", k: int | None = None) -> Bools:
    """End on k: k is open, and only one tile of suit k is still to come.

    Args:
        history: (N, T) int16.
        rules: the game, for its set.
        k: a suit of the set, or None for all.
    Returns:
        (N, 7) bool by suit, or (N,) of suit k.
    """
    return _of(_words(public(history, rules), get_rules(rules))[0], rules, k)


def long_end(history: npt.NDArray[np.int16], rules: str | Rules = "sport_book", k: int | None = None) -> Bools:
    """Long end on k: k is open, and its double and one more tile, the last of the suit, are all that is still to come.

    The words leave open whether more may be missing. Read so, every end would be long at first; and an end on k is the
    one where all but one are out, so this is the one where all but these two are.

    Arguments and returns as of :func:`end_on`.
    """
    return _of(_words(public(history, rules), get_rules(rules))[1], rules, k)


def cut_off_double(history: npt.NDArray[np.int16], rules: str | Rules = "sport_book", k: int | None = None) -> Bools:
    """Cut-off double k: every tile of suit k is out but its double, which as a rule can no longer be laid.

    With all seven tiles of a suit in play its other six leave k either at no end or at both; at both the double may
    still come, and the word is the same.

    Arguments and returns as of :func:`end_on`.
    """
    return _of(_words(public(history, rules), get_rules(rules))[2], rules, k)


def _words(seen: Public, rules: Rules) -> tuple[Bools, Bools, Bools]:
    """End on, long end, cut-off double: (N, 7) bool each."""
    deck = np.uint32(mask_of(rules.tiles))
    to_come = SUIT_MASK & deck & ~seen.out[:, None]  # (N, 7)
    missing = np.bitwise_count(to_come)
    double = to_come & _DOUBLE != 0
    opened = (seen.ends[:, :, None] == np.arange(NUM_SUITS)).any(axis=1)
    return opened & (missing == 1), opened & double & (missing == 2), double & (missing == 1)


def _of(words: Bools, rules: str | Rules, k: int | None) -> Bools:
    highest = get_rules(rules).max_pip
    if k is None:
        return words
    if not is_whole(k) or not 0 <= k <= highest:
        raise ValueError(f"suit k={k!r} must be in 0..{highest}")
    return words[:, k]


@dataclass(frozen=True)
class Words:
    """All words of N running deals, as one seat of each may know them."""

    fewest_holder: Ints  # (N,) seat, clockwise from the viewer
    rolls: Ints  # (N, seats) lays of each seat, clockwise from the viewer, that made an opponent pass
    end_on: Bools  # (N, 7) by suit
    long_end: Bools  # (N, 7)
    cut_off_double: Bools  # (N, 7)


def words(engine: Engine, seat: int | npt.NDArray[np.int64] | None = None) -> Words:
    """All words of an engine's running deals.

    Args:
        engine: a LineEngine.
        seat: the viewer: None for each row's mover, a seat, or one a row.
    """
    history = engine.history(seat)
    viewer = engine.to_move() if seat is None else np.asarray(seat)
    leader = (engine.leader() - viewer) % engine.rules.seats
    holder = fewest_holder(history, engine.rules, leader)
    return Words(holder, rolls(history, engine.rules), *_words(public(history, engine.rules), engine.rules))
