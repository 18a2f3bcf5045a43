"""Kinds of moves in words that hang on no suit's name: what was opened, covered, left alone, and whose suits these are.

A lay covers the suit of the end that it is laid on and opens that of its other half, which is the new end; it leaves
the suit of the other end alone. A lead opens both its halves and covers nothing. A seat's suits are those that it has
opened and has not passed on since: a pass shows that it holds none (`domino_env.choices`).

Each kind is a predicate over all moves of a decision, not only over the one that was made, so that it can be told how
often a kind was chosen where it could be. Most kinds are public: who sees the move and the line sees the kind. Some
hang on the mover's own hand; they are for who looks at the deal afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import numpy.typing as npt

from agents.search.position import Position, mask_of_bits, position_of
from domino_env.choices import KINDS, choices
from domino_env.decisions import Decisions
from domino_env.rules import Rules
from domino_env.tiles import HIGH, LOW, NUM_SUITS, NUM_TILES, PASS, SUIT_MASK, mask_of
from experiments.signaling.record import Moments

Bools = npt.NDArray[np.bool_]
Bits = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]
Masks = npt.NDArray[np.uint32]
Suits = npt.NDArray[np.uint8]  # sets of suits, bit k for suit k

CHOOSES_END = "chooses_end"  # the kind that only games with labelled ends have: elsewhere left and right are one move
SCARCE = 4  # tiles still to come that fit the ends: with so few of them or fewer a block is near

_TILE = np.arange(PASS) % NUM_TILES  # (56,) of each lay
_RIGHT = np.arange(PASS) >= NUM_TILES
_LOW, _HIGH = LOW.astype(np.int64)[_TILE], HIGH.astype(np.int64)[_TILE]
_DOUBLE = _LOW == _HIGH
_HALVES = (1 << _LOW | 1 << _HIGH).astype(np.uint8)
_TILE_BIT = (np.uint32(1) << _TILE.astype(np.uint32)).astype(np.uint32)
#: (128,) the tiles that have one of the suits of a set.
_OF_SUITS = np.array(
    [np.bitwise_or.reduce(SUIT_MASK[[k for k in range(NUM_SUITS) if mask >> k & 1]], initial=0) for mask in range(128)],
    np.uint32,
)


@dataclass(frozen=True)
class Situation:
    """N decisions and what their movers hold."""

    position: Position  # (N,) with events; whoever views it
    hand: Masks  # (N,) of the mover
    legal: Bits  # (N,) bit a for action a

    def __post_init__(self) -> None:
        if self.position.events is None:
            raise ValueError("kinds of moves need the past: these positions have no events")

    def __len__(self) -> int:
        return len(self.hand)

    # -- seen by all: sets of suits ---------------------------------------------------------------------------------

    @cached_property
    def _told(self) -> tuple[npt.NDArray[np.uint8], Masks]:
        """The masks of `choices` with absolute seats, and the tile that led."""
        events = cast(Ints, self.position.events).astype(np.int16)
        return choices(events, self.position.rules)

    def suits(self, place: int, kind: str = "opened") -> Suits:
        """(N, 1) what the seat `place` seats clockwise from the mover has opened, but for what it has passed on.

        Args:
            kind: one of `domino_env.choices.KINDS`: "opened", "left" (alone), "last" (opened by its last lay), …
        """
        seat = (self.position.to_move + place) % self.position.rules.seats
        rows = np.arange(len(self))
        masks = self._told[0][rows, KINDS.index(kind), seat] & ~self.position.voids[rows, seat]
        return masks.astype(np.uint8)[:, None]

    @cached_property
    def ever(self) -> Suits:
        """(N, 1) suits that anybody has opened."""
        return np.bitwise_or.reduce(self._told[0][:, KINDS.index("opened")], axis=1)[:, None]

    @cached_property
    def just_opened(self) -> Suits:
        """(N, 1) what the seat before the mover has opened with the last move; nothing where it passed."""
        events = cast(Ints, self.position.events)
        last = events[np.arange(len(self)), self.position.plies - 1] if events.shape[1] else np.full(len(self), PASS)
        laid = (self.position.plies > 0) & (last & 63 != PASS)
        return np.where(laid[:, None], self.suits(-1, "last"), 0).astype(np.uint8)

    @cached_property
    def led(self) -> Suits:
        """(N, 1) the suits of the tile that led, where they still lie open at an end."""
        tile = np.bitwise_count(self._told[1] - np.uint32(1)) % NUM_TILES  # its number, of a mask with one bit
        return np.where(self._told[1] > 0, _HALVES[tile], 0).astype(np.uint8)[:, None] & self.ends

    def leader(self, place: int) -> Bools:
        """(N, 1) whether the seat `place` seats clockwise from the mover has led the deal."""
        return ((self.position.to_move + place) % self.position.rules.seats == self.position.leader)[:, None]

    @cached_property
    def ends(self) -> Suits:
        """(N, 1) the suits at the ends, none before the lead."""
        return np.bitwise_or.reduce(_sets(self.position.ends), axis=1)[:, None]

    @cached_property
    def met(self) -> Suits:
        """(N, 1) suits that lay at an end in an earlier turn of the mover."""
        events = cast(Ints, self.position.events)
        mine = (events >= 0) & (events >> 12 == self.position.to_move[:, None]) & (events >> 9 & 7 < NUM_SUITS)
        both = np.where(mine, 1 << (events >> 9 & 7) | 1 << (events >> 6 & 7), 0)
        return np.bitwise_or.reduce(both, axis=1, initial=0).astype(np.uint8)[:, None]

    # -- of each move: (N, 56) --------------------------------------------------------------------------------------

    @cached_property
    def lead(self) -> Bools:
        """(N, 1) whether the line is empty."""
        return self.position.ends[:, :1] < 0

    @cached_property
    def covered(self) -> Suits:
        """(N, 56) the suit that a lay covers; nothing for a lead."""
        return self._end(_RIGHT)

    @cached_property
    def kept(self) -> Suits:
        """(N, 56) the suit of the other end; nothing for a lead."""
        return self._end(~_RIGHT)

    def _end(self, right: Bools) -> Suits:
        return _sets(self.position.ends)[:, right.astype(np.int64)]

    @cached_property
    def possible(self) -> Bools:
        """(N, 56) what the line allows, were the tile in the hand."""
        rules, position = self.position.rules, self.position
        laid = np.bitwise_or.reduce(position.played, axis=1)[:, None]
        free = (laid & _TILE_BIT == 0) & (np.uint32(mask_of(rules.tiles)) & _TILE_BIT != 0)
        alike = self.lead | ((self.covered == self.kept) & (not rules.labelled_ends))
        return free & (self.lead | (self.covered & _HALVES != 0)) & ~(alike & _RIGHT)

    @cached_property
    def opened(self) -> Suits:
        """(N, 56) what a lay opens: its other half, the same suit where it is a double; a lead both halves."""
        return np.where(self.lead | _DOUBLE, _HALVES, _HALVES & ~self.covered).astype(np.uint8)

    @cached_property
    def fresh(self) -> Suits:
        """(N, 56) what a lay opens anew: nothing for a double, which leaves its suit where it was, and for a lead."""
        return np.where(self.lead, 0, self.opened & ~self.covered).astype(np.uint8)

    @cached_property
    def closed(self) -> Suits:
        """(N, 56) the suit that lies at no end any more after a lay."""
        return self.covered & ~self.kept & ~self.opened

    @cached_property
    def legal_lays(self) -> Bools:
        """(N, 56) what the mover may lay."""
        return mask_of_bits(self.legal)[:, :PASS] != 0

    def others(self) -> npt.NDArray[np.uint8]:
        """(N, 56) how many other tiles of the suits that it opens the mover would hold after a lay."""
        return np.bitwise_count(_OF_SUITS[self.opened] & self.hand[:, None] & ~_TILE_BIT)

    def to_come(self, suits: Suits) -> Ints:
        """How many tiles that are not on the line yet have one of these suits: of (N, …) sets."""
        laid = np.bitwise_or.reduce(self.position.played, axis=1)
        deck = np.uint32(mask_of(self.position.rules.tiles))
        return np.bitwise_count(_OF_SUITS[suits] & (deck & ~laid)[:, None]).astype(np.int64)


def _sets(suits: Ints) -> Suits:
    """Each suit as a set of its own; the empty one for -1."""
    return np.where(suits >= 0, 1 << np.maximum(suits, 0), 0).astype(np.uint8)


def situation(moments: Moments) -> Situation:
    """The decisions of a record."""
    return Situation(moments.position, moments.hand(), moments.legal)


def asked(batch: Decisions) -> Situation:
    """The decisions that an agent is asked.

    Raises:
        ValueError: a batch without history, or of a blind game.
    """
    position = position_of(batch)
    weights = np.uint64(1) << np.arange(batch.mask.shape[1], dtype=np.uint64)
    legal = np.where(batch.mask != 0, weights, np.uint64(0)).sum(axis=1, dtype=np.uint64)
    return Situation(position, position.own, legal)


@dataclass(frozen=True)
class Kind:
    """A kind of moves."""

    name: str
    text: str  # what such a move does, in one line
    public: bool  # whether all see that a move is of this kind
    holds: Callable[[Situation], Bools]  # (N, 56); what no tile can do may be True, `kinds` takes it out


def _double_held_back(s: Situation) -> Bools:
    could = (s.legal_lays & _DOUBLE).any(axis=1, keepdims=True)
    return ~s.lead & could & ~_DOUBLE


def _other_end(s: Situation) -> Bools:
    left = (s.legal_lays & ~_RIGHT).any(axis=1, keepdims=True)
    right = (s.legal_lays & _RIGHT).any(axis=1, keepdims=True)
    return (s.closed != 0) & np.where(_RIGHT, left, right)


def _chooses_end(s: Situation) -> Bools:
    return ~s.lead & (s.covered == s.kept) & s.position.rules.labelled_ends


def _breaks(s: Situation) -> Bools:
    now = s.to_come(s.ends)
    then = s.to_come(s.opened | s.kept) - 1  # the tile itself has come
    return ~s.lead & (now <= SCARCE) & (then > now)


_ALL = (
    Kind("lead_double", "leads a double", True, lambda s: s.lead & _DOUBLE),
    Kind(
        "lead_accompanied",
        "leads a double and holds other tiles of its suit",
        False,
        lambda s: s.lead & _DOUBLE & (s.others() > 0),
    ),
    Kind(
        "lead_bare",
        "leads a double and holds no other tile of its suit",
        False,
        lambda s: s.lead & _DOUBLE & (s.others() == 0),
    ),
    Kind("lead_mixed", "leads a tile that is no double", True, lambda s: s.lead & ~_DOUBLE),
    Kind("repeats_partner", "opens a suit that the partner has opened", True, lambda s: s.fresh & s.suits(2) != 0),
    Kind(
        "covers_partner",
        "closes the only end of a suit that the partner has opened",
        True,
        lambda s: s.closed & s.suits(2) != 0,
    ),
    Kind("squares", "makes both ends the same suit", True, lambda s: (s.fresh != 0) & (s.fresh == s.kept)),
    Kind("reopens_own", "opens a suit that it has opened before", True, lambda s: s.fresh & s.suits(0) != 0),
    Kind(
        "covers_left",
        "closes the only end of a suit that the left opponent has opened",
        True,
        lambda s: s.closed & s.suits(1) != 0,
    ),
    Kind(
        "leaves_right",
        "lays elsewhere and leaves open what the right opponent has just opened",
        True,
        lambda s: (s.kept & s.just_opened != 0) & (s.covered & s.just_opened == 0),
    ),
    Kind(
        "double_at_once",
        "lays a double in its first turn in which it can",
        True,
        lambda s: ~s.lead & _DOUBLE & (s.opened & s.met == 0),
    ),
    Kind(
        "double_late",
        "lays a double that it could have laid before",
        True,
        lambda s: ~s.lead & _DOUBLE & (s.opened & s.met != 0),
    ),
    Kind("holds_double", "could lay a double and lays another tile", False, _double_held_back),
    Kind("first_exposure", "opens a suit that nobody has opened before", True, lambda s: s.fresh & ~s.ever != 0),
    Kind("covers_by_choice", "closes a suit though it could have laid at the other end", False, _other_end),
    Kind(CHOOSES_END, "lays left or right where both ends are the same suit", True, _chooses_end),
    Kind("breaks_block", f"makes more tiles fit where at most {SCARCE} that are to come did", True, _breaks),
)
MOVES: dict[str, Kind] = {kind.name: kind for kind in _ALL}


def kinds(s: Situation) -> dict[str, Bools]:
    """Which moves are of which kind; none is where the game has no such kind (`of_game`).

    Returns:
        by name of `MOVES`, (N, actions): a public kind has all that the line allows, whatever is in the hand; one that
        hangs on the hand has legal moves alone.

    Raises:
        ValueError: a game without partners.
    """
    rules = s.position.rules
    if not rules.pairs:
        raise ValueError(f"kinds of moves speak of partners, and {rules.title} has none")
    out = {}
    for name, kind in MOVES.items():
        out[name] = np.zeros((len(s), rules.num_actions), np.bool_)
        out[name][:, :PASS] = kind.holds(s) & (s.possible if kind.public else s.legal_lays)
    return out


def of_game(rules: Rules) -> list[str]:
    """Names of the kinds that a game has."""
    return [name for name in MOVES if name != CHOOSES_END or rules.labelled_ends]


def made(kind: Bools, action: Ints) -> Bools:
    """(N,) whether the move that was made is of a kind: (N, actions) and (N,)."""
    return kind[np.arange(len(action)), action]


def open_to(kind: Bools, legal: Bits) -> Bools:
    """(N,) whether the mover could choose: some legal move is of the kind, and some is not."""
    may = mask_of_bits(legal)[:, : kind.shape[1]] != 0
    return (kind & may).any(axis=1) & (~kind & may).any(axis=1)


@dataclass(frozen=True)
class Touched:
    """What N moves did, as (N,) sets of suits."""

    opened: Suits
    covered: Suits  # nothing for a lead, nor for a double
    left: Suits  # the suit of the other end, where that is another one
    partner: Suits  # what the partner had opened


def touched(s: Situation, action: Ints) -> Touched:
    """The suits of some lays: (N,)."""
    rows = np.arange(len(s))
    covered, kept, opened = (part[rows, action] for part in (s.covered, s.kept, s.opened))
    return Touched(opened, covered & ~opened, np.where(s.lead[:, 0], 0, kept & ~covered), s.suits(2)[:, 0])
