"""One deal as a value that never changes: chance, moves and what a seat knows, for programs that walk the whole tree.

An engine steps many tables and forgets how it came there; here each action makes a new `Position` and the old one
stays, so that a walk needs no copies. Moves and results are those of the engines, whose tables it reads (tested side by
side). S4 is off, as for given deals; episodes are single deals. Blind games are not played here.

Chance: first who leads, where the lead rotates (S2) and no leader is given, all seats alike; then the deal, hand by
hand where hands are few (so that no order of the same hand is told apart), else tile by tile. What is left over is
never dealt, so that deals which differ by it alone are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from domino_env.deals import lowest
from domino_env.line import _BIT, _EMPTY, _FITS, _ONE_ONE, _REACH, _SIX_SIX, _TURN, _chain_fits
from domino_env.rules import Rules, get_rules
from domino_env.scoring import score
from domino_env.tiles import ALL_TILES, NUM_TILES, PASS, PIPS, action_name, mask_of, tile_name, tiles_of

CHANCE, OVER = -1, -2  # who moves where no seat does
MOST_HANDS = 1000  # hands that one chance node may list; where there are more, it deals tile by tile

_TURN_LIST, _BIT_LIST, _REACH_LIST = (table.tolist() for table in (_TURN, _BIT, _REACH))
_BOTH_ENDS = 1 | 1 << NUM_TILES
_PASS_BIT = 1 << PASS


@dataclass(frozen=True)
class Setup:
    """What is played: a game, and who leads (-1: as the rules say).

    Raises:
        ValueError: a blind game, or a leader that cannot be given.
    """

    rules: Rules
    leader: int = -1
    by_hand: bool = field(init=False)  # whole hands are dealt; else single tiles
    fits: tuple[int, ...] = field(init=False, repr=False)  # grown end << 6 | ends -> the lays that match

    def __post_init__(self) -> None:
        rules = self.rules
        if rules.rows:
            raise ValueError(f"{rules.name} is a blind game: it has no OpenSpiel form; choose a game on an open line")
        if not -1 <= self.leader < rules.seats:
            raise ValueError(f"leader={self.leader} must be in 0..{rules.seats - 1}, or -1 for the rules' own")
        if self.leader >= 0 and rules.lead == "low":
            raise ValueError(f"leader={self.leader}: in {rules.name} the lowest tile dealt leads (B2)")
        table = _chain_fits(rules.labelled_ends) if rules.chains else _FITS[rules.labelled_ends]
        object.__setattr__(self, "by_hand", comb(rules.num_tiles, rules.hand_size) <= MOST_HANDS)
        object.__setattr__(self, "fits", tuple(table.tolist()))

    @property
    def draws_leader(self) -> bool:
        """Whether the first chance node is who leads."""
        return self.leader < 0 and self.rules.lead == "rotation"

    @property
    def most_outcomes(self) -> int:
        """No chance node has more outcomes."""
        hands = comb(self.rules.num_tiles, self.rules.hand_size) if self.by_hand else NUM_TILES
        return max(hands, self.rules.seats)

    @property
    def chance_nodes(self) -> int:
        """Chance nodes of a deal."""
        return self.draws_leader + self.rules.seats * (1 if self.by_hand else self.rules.hand_size)

    @property
    def most_points(self) -> int:
        """No seat wins or loses more in a deal: all pips of the set, and 0-0 at its special value (S8)."""
        return int(PIPS[list(self.rules.tiles)].sum()) + self.rules.lone_blank

    def start(self) -> Position:
        """The deal before anything is dealt."""
        return Position(self, self.leader, (0,) * self.rules.seats, mover=CHANCE)

    def dealt(self, hands: Sequence[int], leader: int = -1) -> Position:
        """A deal that stands before its lead: `hands` are masks of each seat's tiles, `leader` -1 as the rules say."""
        return _ready(Position(self, max(leader, self.leader, 0), tuple(map(int, hands))), leader >= 0)


@dataclass(frozen=True)
class Position:
    """A deal at one moment; `after` makes the next. Seats are absolute."""

    setup: Setup
    leader: int  # -1 while chance has not drawn it
    hands: tuple[int, ...]  # masks of what each seat holds
    dealt: tuple[int, ...] = ()  # what each was dealt; () while cards are dealt
    moves: tuple[int, ...] = ()  # actions so far
    mover: int = 0  # seat, CHANCE or OVER
    ends: int = _EMPTY  # left << 3 | right, 63 before the lead
    legal: int = 0  # bit a: action a may be played
    by: int = -1  # who made the last move

    def __deepcopy__(self, memo: Any) -> Position:
        return self

    # -- chance --

    def _dealing(self) -> tuple[int, list[int]]:
        """The seat that is dealt to, and the tiles that nobody has."""
        size, taken = self.setup.rules.hand_size, 0
        for hand in self.hands:
            taken |= hand
        seat = next(s for s, hand in enumerate(self.hands) if hand.bit_count() < size)
        return seat, [tile for tile in self.setup.rules.tiles if not taken >> tile & 1]

    def _lots(self) -> bool:
        """Whether chance is to say who leads."""
        return self.leader < 0 and self.setup.draws_leader

    def _numbers(self) -> Sequence[int]:
        """The outcomes of a chance node, all of them alike likely."""
        if self._lots():
            return range(self.setup.rules.seats)
        _, free = self._dealing()
        return range(comb(len(free), self.setup.rules.hand_size)) if self.setup.by_hand else free

    def outcomes(self) -> list[tuple[int, float]]:
        """Of a chance node: (outcome, probability). A seat, the rank of a hand among those left, or a tile."""
        numbers = self._numbers()
        return [(number, 1 / len(numbers)) for number in numbers]

    def outcome_name(self, outcome: int) -> str:
        """Text of a chance node's outcome."""
        if self._lots():
            return f"seat {outcome} leads"
        seat, tiles = self._given(outcome)
        return f"seat {seat} gets {' '.join(map(tile_name, tiles_of(tiles)))}"

    def _given(self, outcome: int) -> tuple[int, int]:
        """Who is dealt what by an outcome: seat, mask."""
        seat, free = self._dealing()
        if not self.setup.by_hand:
            return seat, 1 << outcome
        return seat, mask_of(free[i] for i in _choices(len(free), self.setup.rules.hand_size)[outcome])

    def _chance(self, outcome: int) -> Position:
        if outcome not in self._numbers():
            raise ValueError(f"outcome {outcome} of this chance node does not exist")
        if self._lots():
            return Position(self.setup, outcome, self.hands, mover=CHANCE)
        seat, tiles = self._given(outcome)
        hands = tuple(hand | tiles if s == seat else hand for s, hand in enumerate(self.hands))
        size = self.setup.rules.hand_size
        if hands[-1].bit_count() < size:
            return Position(self.setup, self.leader, hands, mover=CHANCE)
        return _ready(Position(self.setup, self.leader, hands), self.setup.leader >= 0)

    # -- play --

    def legal_actions(self) -> list[int]:
        """Ids of the legal actions, ascending; none where no seat moves."""
        return list(_bits(self.legal))

    def may(self, seat: int) -> int:
        """What `legal(seat)` of the engines says, as a word: bit a for action a; off turn a pass alone."""
        return self.legal if seat == self.mover else _PASS_BIT

    def after(self, action: int) -> Position:
        """The position after an action, or a chance node's outcome.

        Raises:
            ValueError: it is illegal, or the deal is over.
        """
        if self.mover == CHANCE:
            return self._chance(action)
        if self.mover == OVER or not 0 <= action <= PASS or not self.legal >> action & 1:
            may = ", ".join(action_name(a) for a in _bits(self.legal)) or "none: the deal is over"
            raise ValueError(f"action {action} is illegal; legal are {may}")
        rules, mover = self.setup.rules, self.mover
        bit = _BIT_LIST[action]
        ends = _TURN_LIST[action << 6 | self.ends] & 63
        hands = tuple(hand & ~bit if s == mover else hand for s, hand in enumerate(self.hands)) if bit else self.hands
        held = 0
        for hand in hands:
            held |= hand
        moves = (*self.moves, action)
        if not hands[mover] or not held & _REACH_LIST[ends]:  # S5, B4
            return Position(self.setup, self.leader, hands, self.dealt, moves, OVER, ends, by=mover)
        stays = bool(bit) and rules.chains  # B3
        grown = 0
        if stays and rules.chain == "one" and self.ends != _EMPTY:
            grown = 1 if action < NUM_TILES else 2
        follower = mover if stays else (mover + 1) % rules.seats
        legal = hands[follower] * _BOTH_ENDS & self.setup.fits[grown << 6 | ends]
        if stays or not legal:
            legal |= _PASS_BIT
        return Position(self.setup, self.leader, hands, self.dealt, moves, follower, ends, legal, mover)

    def returns(self) -> tuple[float, ...]:
        """Points of each seat, zero-sum (S9); all 0 before the end."""
        if self.mover != OVER:
            return (0.0,) * len(self.hands)
        return _returns(self.setup.rules, self.hands, self.by)

    def key(self, seat: int) -> str:
        """All that a seat knows, as text: equal exactly where the own hand and the public past are (perfect recall)."""
        return information_key(seat, self.leader, (self.dealt or self.hands)[seat], self.moves)


def information_key(seat: int, leader: int, hand: int, moves: Sequence[int]) -> str:
    """What a seat knows, as text: "seat 1 leader 0 | 0-1 2-3 | 0-0L 0-2R".

    Args:
        seat: who knows it; leader: who led; hand: mask of what the seat was dealt; moves: actions so far.
    """
    return f"seat {seat} leader {leader} | {_tile_names(hand)} | {' '.join(map(action_name, moves))}"


@lru_cache(1 << 16)
def _tile_names(mask: int) -> str:
    return " ".join(map(tile_name, tiles_of(mask)))


@cache
def _choices(free: int, size: int) -> list[tuple[int, ...]]:
    """The hands there are, as places among the free tiles, in the order of their ranks."""
    return list(combinations(range(free), size))


@lru_cache(1 << 16)
def _bits(word: int) -> tuple[int, ...]:
    return tuple(a for a in range(PASS + 1) if word >> a & 1)


@lru_cache(1 << 16)
def _returns(rules: Rules, hands: tuple[int, ...], by: int) -> tuple[float, ...]:
    around = np.array([[hands[(by + r) % rules.seats]] for r in range(rules.seats)], np.uint32)
    done = score(rules, np.zeros(1, np.int64), around, np.array([by]), np.zeros(1, np.int64))
    return tuple(done.rewards[0].astype(float).tolist())


def _ready(deal: Position, given: bool) -> Position:
    """The deal before its lead: who leads, with what (S2, K1, K2, B2); a leader who is given may lay any tile."""
    rules, hands, leader, tile = deal.setup.rules, deal.hands, deal.leader, None
    if rules.lead == "low":
        leader, tile = (int(x[0]) for x in lowest(rules, np.array([hands], np.uint32)))
    elif rules.lead in ("double_six", "winner") and not given:
        tile = _SIX_SIX if rules.lead == "double_six" else _ONE_ONE
        leader = next(s for s, hand in enumerate(hands) if hand >> tile & 1)
    bound = ALL_TILES if tile is None else 1 << tile
    return Position(deal.setup, leader, hands, hands, (), leader, legal=hands[leader] & bound)


def make_setup(rules: str | Rules = "tiny_pairs", leader: int = -1, **rule_overrides: Any) -> Setup:
    """What is played, from a preset's name and fields of the rules; errors as of `get_rules` and `Setup`."""
    return Setup(get_rules(rules, **rule_overrides), leader)
