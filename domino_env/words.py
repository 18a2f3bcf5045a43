"""Words of the game as data: fewest-holder, rolled, end on a suit, long end, cut-off double.

They are read off the public history of a deal (``engine.history()``), for all rows at once, so every seat may know
them. Seats are counted clockwise from the viewer of the history. A tile is out once it lies on the line, and still to
come until then; of one that was dealt to nobody (B1, K4) the table does not know that it never comes.

They hold for every game. A turn is a run of events of one seat: one of sport dominoes, several of blitz (B3) and of the
blind games (R4-R7), where a turned tile is no tile of the line yet. The seat passes in a turn in which it lays nothing;
the 56 after a lay of the same turn is a stop, and a draw ends a turn as a pass does.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from domino_env.engine import Engine
from domino_env.observation import layout_of
from domino_env.rules import Rules, get_rules
from domino_env.tiles import (
    DRAW,
    HIGH,
    LOW,
    NUM_SUITS,
    NUM_TILES,
    PASS,
    PIPS,
    SUIT_MASK,
    TURN,
    is_whole,
    mask_of,
    tile_index,
)

_DOUBLE = np.array([1 << tile_index(f"{suit}-{suit}") for suit in range(NUM_SUITS)], np.uint32)  # (7,) masks
_BIT = np.array([1 << action % NUM_TILES for action in range(PASS)] + [0] * (64 - PASS), np.uint32)  # (64,) by action
_MOST_SEATS = 8  # a history has room for them in 16 bits
_ROLLS = 3  # bits of `features` for the lays of a seat that rolled an opponent

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Public:
    """What a history says of N deals."""

    out: npt.NDArray[np.uint32]  # (N,) masks of the tiles on the line
    ends: Counts  # (N, 2) open suits left and right, -1 before the lead
    laid: Ints  # (N, seats) tiles that each seat has laid, clockwise from the viewer
    held: Ints  # (N, seats) tiles that each seat holds
    leader: Ints  # (N,) who led, clockwise from the viewer; -1 before the first event


@dataclass(frozen=True)
class Past:
    """Histories taken apart, T the events of the longest and at least 1."""

    event: Ints  # (N, T), -1 where there is none
    there: Bools  # (N, T)
    seat: Ints  # (N, T) clockwise from the viewer, -1 where there is none
    action: Ints  # (N, T), 63 where there is none
    lays: Bools  # (N, T)


def read_history(history: npt.NDArray[np.int16], rules: Rules | None = None) -> Past:
    """Takes histories apart; without `rules` those of any game.

    Raises:
        ValueError: another shape, or numbers that are no events of the game.
    """
    given = np.asarray(history)
    if given.ndim != 2 or given.dtype.kind not in "iu":
        raise ValueError(f"a history is whole numbers of shape (rows, events), not {given.dtype} of {given.shape}")
    there = given >= 0
    event: Ints = given[:, : max(int(there.sum(axis=1).max(initial=0)), 1)].astype(np.int64)
    if not event.shape[1]:
        event = np.full((len(event), 1), -1)
    gap = (there[:, 1:] & ~there[:, :-1]).any()
    there = event >= 0
    action, seat = event & 63, event >> 12
    seats, most = (_MOST_SEATS, DRAW) if rules is None else (rules.seats, DRAW if rules.rows else PASS)
    if gap or (there & ((action > most) | (seat >= seats))).any():
        game = "any game" if rules is None else f"{rules.name} with {rules.seats} seats"
        raise ValueError(f"the history holds numbers that are no events of {game}")
    return Past(event, there, seat, action, there & (action < PASS))


def public(history: npt.NDArray[np.int16], rules: str | Rules = "sport_book") -> Public:
    """Read histories.

    Args:
        history: (N, T) int16 as of ``engine.history()``.
        rules: the game that was played.
    Raises:
        ValueError: another shape, or numbers that are no events of this game.
    """
    rules = get_rules(rules)
    past = read_history(history, rules)
    out = np.bitwise_or.reduce(np.where(past.lays, _BIT.take(past.action), np.uint32(0)), axis=1)
    laid = _by_seat(past, past.lays, rules.seats)
    drawn = _by_seat(past, past.action == DRAW, rules.seats)
    last = np.arange(past.event.shape[1]) * (past.there & (past.action != TURN))
    ends = _after(past.event[np.arange(len(laid)), last.max(axis=1)])
    return Public(out, ends, laid, rules.hand_size - laid + drawn, past.seat[:, 0])


def _by_seat(past: Past, which: Bools, seats: int) -> Ints:
    """(N, seats) how many of these events are of each seat."""
    row, event = np.nonzero(which)
    return np.bincount(row * seats + past.seat[row, event], minlength=len(which) * seats).reshape(-1, seats)


def _after(event: Ints) -> Counts:
    """(..., 2) ends after an event that is no turn of a tile; -1 where the line is empty or there is no event."""
    action, left, right = event & 63, event >> 9 & 7, event >> 6 & 7
    tile, lays = action % NUM_TILES, action < PASS
    first = left == 7  # the line was empty
    pips = PIPS.take(tile).astype(np.int64)
    new_left = np.where(first, LOW.take(tile), np.where(action < NUM_TILES, pips - left, left))
    new_right = np.where(first, HIGH.take(tile), np.where((action >= NUM_TILES) & lays, pips - right, right))
    ends = np.stack([new_left, new_right], axis=-1)
    ends[(event < 0) | (event & 63 == TURN) | (first & ~lays)] = -1
    return ends.astype(np.int8)


def _holder(held: npt.NDArray[np.integer], leader: Ints) -> Ints:
    """The fewest-holder: held (..., seats), leader (...); -1 where no leader is known."""
    seats = held.shape[-1]
    order = (leader[..., None] + np.arange(seats)) % seats
    place = np.take_along_axis(held, order, axis=-1).argmin(axis=-1)
    return np.where(leader < 0, -1, (leader + place) % seats)


def fewest_holder(
    history: npt.NDArray[np.int16], rules: str | Rules = "sport_book", leader: npt.ArrayLike | None = None
) -> Ints:
    """The seat that now holds the fewest tiles; of several, the nearest clockwise from the leader, who is the first.

    Args:
        history: (N, T) int16.
        rules: the game; its hands are of one size, so who has laid most (and drawn least, R5) holds the fewest.
        leader: (N,) or one seat, clockwise from the viewer, for rows without an event; None: -1 for these.
    Returns:
        (N,) int64 seat, clockwise from the viewer.
    """
    seen = public(history, rules)
    return _holder(seen.held, _leader(seen, leader))


def _leader(seen: Public, leader: npt.ArrayLike | None) -> Ints:
    """(N,) who led; where nothing has happened yet, who is said to lead."""
    return np.where(seen.leader < 0, -1 if leader is None else np.asarray(leader), seen.leader)


def rolled(history: npt.NDArray[np.int16]) -> Bools:
    """Lays that made an opponent pass: the next seat's whole turn went by without a lay.

    Of a turn of several lays (B3, R6) it is the last one. An opponent further round passes on account of the same lay
    only where the next one passed already, so each such lay is marked once. A lay that nobody has answered yet is never
    marked, nor one after which the mover has only stopped.

    Args:
        history: (N, T) int16, of any game.
    Returns:
        (N, T) bool, by event.
    """
    marks = _rolled(read_history(history))
    events: int = np.shape(history)[1]
    return np.pad(marks, ((0, 0), (0, max(events - marks.shape[1], 0))))[:, :events]


def _rolled(past: Past) -> Bools:
    at = np.arange(past.there.shape[1])
    begins = np.ones_like(past.there)  # the first event of a turn
    begins[:, 1:] = past.seat[:, 1:] != past.seat[:, :-1]
    start = np.maximum.accumulate(at * begins, axis=1)
    lay = np.maximum.accumulate(np.where(past.lays, at, -1), axis=1)  # the last one so far
    passed = ((past.action == PASS) | (past.action == DRAW)) & (lay < start) & (lay >= 0)
    # Where a seat further round passes, so did all before it, the one next to the lay among them.
    row, event = np.nonzero(passed)
    marks = np.zeros_like(past.there)
    marks[row, lay[row, event]] = True
    return marks


def rolls(history: npt.NDArray[np.int16], rules: str | Rules = "sport_book") -> Ints:
    """How often each seat has rolled an opponent: (N, seats) int64, clockwise from the viewer."""
    rules = get_rules(rules)
    past = read_history(history, rules)
    return _by_seat(past, _rolled(past), rules.seats)


def end_on(history: npt.NDArray[np.int16], rules: str | Rules = "sport_book", k: int | None = None) -> Bools:
    """End on k: k is open, and only one tile of suit k is still to come.

    Args:
        history: (N, T) int16.
        rules: the game, for its set.
        k: a suit of the set, or None for all.
    Returns:
        (N, 7) bool by suit, or (N,) of suit k.
    """
    return _of(_seen_words(public(history, rules), get_rules(rules))[0], rules, k)


def long_end(history: npt.NDArray[np.int16], rules: str | Rules = "sport_book", k: int | None = None) -> Bools:
    """Long end on k: k is open, and its double and one more tile, the last of the suit, are all that is still to come.

    The words leave open whether more may be missing. Read so, every end would be long at first; and an end on k is the
    one where all but one are out, so this is the one where all but these two are.

    Arguments and returns as of :func:`end_on`.
    """
    return _of(_seen_words(public(history, rules), get_rules(rules))[1], rules, k)


def cut_off_double(history: npt.NDArray[np.int16], rules: str | Rules = "sport_book", k: int | None = None) -> Bools:
    """Cut-off double k: every tile of suit k is out but its double, which as a rule can no longer be laid.

    With all seven tiles of a suit in play its other six leave k either at no end or at both; at both the double may
    still come, and the word is the same.

    Arguments and returns as of :func:`end_on`.
    """
    return _of(_seen_words(public(history, rules), get_rules(rules))[2], rules, k)


def _seen_words(seen: Public, rules: Rules) -> tuple[Bools, Bools, Bools]:
    return _words(seen.out, seen.ends, rules)


def _words(out: npt.NDArray[np.uint32], ends: Counts, rules: Rules) -> tuple[Bools, Bools, Bools]:
    """End on, long end, cut-off double of positions: out (...), ends (..., 2) -> (..., 7) bool each."""
    deck = np.uint32(mask_of(rules.tiles))
    to_come = SUIT_MASK & deck & ~out[..., None]  # (..., 7)
    missing = np.bitwise_count(to_come)
    double = to_come & _DOUBLE != 0
    suits = np.arange(NUM_SUITS)
    opened = (ends[..., :1] == suits) | (ends[..., 1:] == suits)
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
        engine: an engine of any game.
        seat: the viewer: None for each row's mover, a seat, or one a row.
    """
    history = engine.history(seat)
    viewer = engine.to_move() if seat is None else np.asarray(seat)
    return _all_words(history, engine.rules, (engine.leader() - viewer) % engine.rules.seats)


def _all_words(history: npt.NDArray[np.int16], rules: Rules, leader: npt.ArrayLike | None) -> Words:
    seen = public(history, rules)
    return Words(_holder(seen.held, _leader(seen, leader)), rolls(history, rules), *_seen_words(seen, rules))


# -- for networks and for logs -------------------------------------------------------------------------------------


def feature_names(rules: str | Rules = "sport_book") -> tuple[str, ...]:
    """What each column of :func:`features` says: "fewest_holder_left", "rolls_me_2" (two or more), "end_on_5"."""
    rules = get_rules(rules)
    who = [name.removeprefix("size_") for name in layout_of(rules).slices if name.startswith("size_")]
    who = who or [name.removeprefix("row_") for name in layout_of(rules).slices if name.startswith("row_")]
    suits = range(rules.max_pip + 1)
    return (
        *(f"fewest_holder_{name}" for name in who),
        *(f"rolls_{name}_{count}" for name in who for count in range(1, _ROLLS + 1)),
        *(f"{word}_{k}" for word in ("end_on", "long_end", "cut_off_double") for k in suits),
    )


def features(
    history: npt.NDArray[np.int16], rules: str | Rules = "sport_book", leader: npt.ArrayLike | None = None
) -> npt.NDArray[np.uint8]:
    """All words as bits for a network, beside an observation of the same viewer.

    Args:
        history: (N, T) int16 of each row's viewer.
        rules: the game.
        leader: (N,) or one seat, clockwise from the viewer, for rows without an event; None: no fewest-holder in these.
    Returns:
        (N, F) uint8 of 0 and 1, F the length of :func:`feature_names`.
    """
    rules = get_rules(rules)
    found = _all_words(history, rules, leader)
    suits = rules.max_pip + 1
    return np.concatenate(
        [
            found.fewest_holder[:, None] == np.arange(rules.seats),
            (found.rolls[:, :, None] > np.arange(_ROLLS)).reshape(len(found.rolls), -1),
            *(word[:, :suits] for word in (found.end_on, found.long_end, found.cut_off_double)),
        ],
        axis=1,
    ).view(np.uint8)


def rates(history: npt.NDArray[np.int16], rules: str | Rules = "sport_book") -> dict[str, float]:
    """How often the words came up in whole deals, whoever views them.

    A position is the table as it stands before an action of the deal, forced ones counted.

    Args:
        history: (N, T) int16, each a deal from its first event to its last; at least one.
        rules: the game.

    Returns:
        rolls_per_deal: lays that made an opponent pass, a deal.
        end_on_rate, long_end_rate, cut_off_double_rate: share of all positions that have one, of whichever suit.
        fewest_holder_share: of the positions after the lead, in deals that ended with a seat out, the share whose
            fewest-holder was of the side that went out; 0 where no deal did. 1 / sides would be chance.

    Raises:
        ValueError: no deal, or one without an event.
    """
    rules = get_rules(rules)
    past = read_history(history, rules)
    if not past.there[:, 0].all() or not len(past.there):
        raise ValueError("rates are of whole deals: at least one history, none of them without an event")
    at = np.arange(past.event.shape[1])
    known = np.maximum.accumulate(at * (past.there & (past.action != TURN)), axis=1)
    ends = _after(np.take_along_axis(past.event, known, axis=1))
    out = np.bitwise_or.accumulate(np.where(past.lays, _BIT.take(past.action), np.uint32(0)), axis=1)
    mine = np.stack([past.seat == r for r in range(rules.seats)], axis=2)
    change = (past.action == DRAW).astype(np.int8) - past.lays.astype(np.int8)
    held = rules.hand_size + (mine * change[:, :, None]).cumsum(axis=1, dtype=np.int16)
    # The position after the last event of a deal is nobody's to play on; before the first no word holds.
    played = past.there[:, 1:]
    positions = int(past.there.sum())
    found: Bools = np.asarray(np.stack(_words(out, ends, rules)).any(axis=3))
    shares = (found[:, :, :-1] & played).sum(axis=(1, 2)) / positions
    holder = _holder(held, np.broadcast_to(past.seat[:, :1], held.shape[:2]))
    empty = held[:, -1] == 0
    winner: Ints = np.where(empty.any(axis=1), empty.argmax(axis=1), -1)  # -1: nobody went out
    after = played & (out[:, :-1] != 0) & (winner >= 0)[:, None]
    won = (holder[:, :-1] - winner[:, None]) % rules.num_sides == 0
    return {
        "rolls_per_deal": int(_rolled(past).sum()) / len(played),
        "end_on_rate": float(shares[0]),
        "long_end_rate": float(shares[1]),
        "cut_off_double_rate": float(shares[2]),
        "fewest_holder_share": int((won & after).sum()) / max(int(after.sum()), 1),
    }
