"""The slow, plain second implementation of blitz, written from rules.md alone (clauses B, and S6, S7 book for pairs).

Tiles are tuples ``(a, b)`` with ``a <= b``; hands are lists of them; nothing here is an array and nothing is imported
from the product. Tests play the engine and this file side by side.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

Tile = tuple[int, int]

TILES: list[Tile] = [(a, b) for a in range(7) for b in range(a, 7)]  # the numbering of rules.md
PASS = 56
HANDS = {4: 7, 5: 5, 6: 4, 7: 4, 8: 3}  # B1
NAMES = {
    4: ["me", "left", "across", "right"],
    5: ["me", "left", "left_2", "left_3", "right"],
    6: ["me", "left", "left_2", "left_3", "left_4", "right"],
    7: ["me", "left", "left_2", "left_3", "left_4", "left_5", "right"],
    8: ["me", "left", "left_2", "left_3", "left_4", "left_5", "left_6", "right"],
}


@dataclass(frozen=True)
class BlitzGame:
    """What rules.md says about blitz, as data of our own."""

    seats: int = 4
    pairs: bool = False  # B6
    chain: str = "both"  # B3
    labelled_ends: bool = False
    max_pip: int = 6
    hand_size: int = 0  # 0: as B1

    @property
    def hand(self) -> int:
        """Tiles a seat is dealt (B1)."""
        return self.hand_size or HANDS[self.seats]

    @property
    def tiles(self) -> list[Tile]:
        """The tiles of the set."""
        return [tile for tile in TILES if tile[1] <= self.max_pip]

    @property
    def names(self) -> list[str]:
        """What a seat calls itself and the others, clockwise."""
        return ["me", "left", "partner", "right"] if self.pairs else NAMES[self.seats]


BLITZ = BlitzGame()


def variant(**changes: Any) -> BlitzGame:
    """Blitz with some fields changed."""
    return replace(BLITZ, **changes)


def number(tile: Tile) -> int:
    """Tile number 0..27."""
    return TILES.index(tile)


def lowest(hands: list[list[Tile]]) -> tuple[int, Tile]:
    """B2: who holds the lowest tile dealt, and that tile: fewest pips, then the smaller suit."""
    best: tuple[int, Tile] | None = None
    for seat, hand in enumerate(hands):
        for tile in hand:
            if best is None or (sum(tile), tile[0]) < (sum(best[1]), best[1][0]):
                best = seat, tile
    assert best is not None
    return best


def shuffled(game: BlitzGame, rng: random.Random) -> list[list[Tile]]:
    """A random deal (B1); what is not in a hand is left over."""
    tiles = game.tiles
    rng.shuffle(tiles)
    return [tiles[seat * game.hand : (seat + 1) * game.hand] for seat in range(game.seats)]


@dataclass
class Event:
    """One public action."""

    seat: int
    ends: Tile | None  # left and right end before it
    action: int
    is_stop: bool = False  # 56 after a lay of the same turn, no pass


@dataclass
class BlitzTable:
    """One deal on the table."""

    game: BlitzGame
    dealt: list[list[Tile]]
    line: list[Tile] = field(default_factory=list)  # from left to right, each tile as it lies
    events: list[Event] = field(default_factory=list)
    result: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.hands = [list(hand) for hand in self.dealt]
        self.leader, self.opening = lowest(self.hands)
        self.turn = self.leader
        self.laid = 0  # tiles laid in this turn
        self.grown = ""  # "L" or "R": with chain="one" the end that this turn has grown

    @property
    def ends(self) -> Tile | None:
        """The open ends, None before the lead."""
        return (self.line[0][0], self.line[-1][1]) if self.line else None

    @property
    def left_over(self) -> list[Tile]:
        """Tiles that nobody was dealt."""
        return [tile for tile in self.game.tiles if not any(tile in hand for hand in self.dealt)]

    def lays(self) -> list[int]:
        """The lays that the mover may choose from (B2, B3)."""
        if self.ends is None:
            return [number(self.opening)]
        left, right = self.ends
        ids = []
        for tile in self.hands[self.turn]:
            if left in tile and self.grown != "R":
                ids.append(number(tile))
            # With equal ends a right action is another only where ends are labelled, or where the turn grew the right.
            another = left != right or self.game.labelled_ends or self.grown == "R"
            if right in tile and self.grown != "L" and another:
                ids.append(number(tile) + 28)
        return sorted(ids)

    def legal(self) -> list[int]:
        """Legal action ids of the seat to move, ascending."""
        if self.result is not None:
            return [PASS]
        lays = self.lays()
        if self.laid or not lays:
            lays.append(PASS)
        return lays

    def play(self, action: int) -> None:
        """One action of the seat to move; illegal ones raise."""
        if self.result is not None or action not in self.legal():
            raise ValueError(f"action {action} is illegal")
        seat = self.turn
        self.events.append(Event(seat, self.ends, action, self.laid > 0))
        if action == PASS:
            self.turn = (seat + 1) % self.game.seats
            self.laid = 0
            self.grown = ""
            return
        tile = TILES[action % 28]
        self.hands[seat].remove(tile)
        a, b = tile
        if self.ends is None:
            self.line = [tile]
        else:
            if action < 28:
                self.line.insert(0, (a, b) if b == self.ends[0] else (b, a))
            else:
                self.line.append((a, b) if a == self.ends[1] else (b, a))
            if self.game.chain == "one":
                self.grown = "L" if action < 28 else "R"
        self.laid += 1
        if not self.hands[seat]:
            self.finish("out", seat)
        elif self.is_blocked():
            self.finish("block", seat)

    def is_blocked(self) -> bool:
        """B4: no tile in any hand matches an end."""
        assert self.ends is not None
        return not any(end in tile for hand in self.hands for tile in hand for end in self.ends)

    def finish(self, outcome: str, closer: int) -> None:
        """Write down who won and for how much (B5, B6)."""
        pips = [sum(a + b for a, b in hand) for hand in self.hands]
        if self.game.pairs:
            winner, points = score_pairs(outcome, closer, pips)
        else:
            winner, points = score_seats(outcome, closer, pips)
        self.result = {
            "outcome": outcome,
            "winner": winner,
            "points": points,
            "pips_left": pips,
            "by": closer,
            "plies": len(self.events),
        }

    def rewards(self) -> list[int]:
        """What each seat is given at the end of the deal."""
        assert self.result is not None
        points = self.result["points"]
        if self.game.pairs:
            gain = points[0] - points[1]
            return [gain, -gain, gain, -gain]
        return list(points)

    def passed(self, seat: int) -> set[int]:
        """Suits the seat passed on; to stop is no pass."""
        return {
            end
            for event in self.events
            if event.seat == seat and event.action == PASS and not event.is_stop
            for end in event.ends or ()
        }

    def played(self, seat: int) -> list[Tile]:
        """Tiles the seat has laid, in order."""
        return [TILES[event.action % 28] for event in self.events if event.seat == seat and event.action != PASS]

    def history(self, observer: int) -> list[int]:
        """Public events as one number each; 7, 7 is the empty line."""
        events = []
        for event in self.events:
            left, right = event.ends or (7, 7)
            who = (event.seat - observer) % self.game.seats
            events.append(who << 12 | left << 9 | right << 6 | event.action)
        return events

    def view(self, seat: int) -> dict[str, set[int]]:
        """What a seat sees of a single deal: for each named part, the numbers of the bits that are on."""
        seats = self.game.seats
        view = {
            "hand": {number(tile) for tile in self.hands[seat]},
            "leader": {(self.leader - seat) % seats},
            "mover": {(self.turn - seat) % seats},
            "laid": {0} if self.laid else set(),
            "grown": {"": set(), "L": {0}, "R": {1}}[self.grown],
            "end_left": set() if self.ends is None else {self.ends[0]},
            "end_right": set() if self.ends is None else {self.ends[1]},
            "deal": set(),
            "score_ahead": set(),
            "score_behind": set(),
        }
        for offset, name in enumerate(self.game.names):
            other = (seat + offset) % seats
            view[f"played_{name}"] = {number(tile) for tile in self.played(other)}
            view[f"passed_{name}"] = self.passed(other)
            view[f"size_{name}"] = set(range(len(self.hands[other])))
        return view


def score_seats(outcome: str, closer: int, pips: list[int]) -> tuple[int | None, list[int]]:
    """B5: winner and what each seat gains."""
    if outcome == "out":
        gains = [-own for own in pips]
        gains[closer] = sum(pips)
        return closer, gains
    low = min(pips)
    if pips.count(low) > 1:
        return None, [0] * len(pips)
    gains = [low - own for own in pips]
    gains[pips.index(low)] = sum(own - low for own in pips)
    return pips.index(low), gains


def score_pairs(outcome: str, closer: int, pips: list[int]) -> tuple[int | None, list[int]]:
    """B6: winning pair and what both pairs score, S6 on an out, S7 of the book on a block."""
    totals = [pips[0] + pips[2], pips[1] + pips[3]]
    if outcome == "out":
        winner = closer % 2
        scored = totals[1 - winner]
    elif totals[0] == totals[1]:
        return None, [0, 0]
    else:
        winner = totals.index(min(totals))
        scored = abs(totals[0] - totals[1])
    return winner, [scored, 0] if winner == 0 else [0, scored]
