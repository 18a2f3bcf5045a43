"""The slow, plain second implementation of the line games, written from rules.md alone (clauses S, B5, K1, K2, K4).

Tiles are tuples ``(a, b)`` with ``a <= b``; hands are lists of them; nothing here is an array and nothing is imported
from the product. Tests play the engine and this file side by side and compare every mask, result and observation.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

Tile = tuple[int, int]

TILES: list[Tile] = [(a, b) for a in range(7) for b in range(a, 7)]  # the numbering of rules.md
PASS = 56


@dataclass(frozen=True)
class Game:
    """What rules.md says about one game, as data of our own."""

    name: str
    seats: int = 4
    pairs: bool = True
    hand_size: int = 7
    max_pip: int = 6
    lead: str = "rotation"
    lone_blank: int = 0
    block_score: str = "difference"
    equal_block: str = "nothing"
    out_score: str = "losers"
    redeal: bool = False
    labelled_ends: bool = False
    match_to: int | None = None

    @property
    def tiles(self) -> list[Tile]:
        """The tiles of the set (K4)."""
        return [tile for tile in TILES if tile[1] <= self.max_pip]

    def sides(self) -> list[list[int]]:
        """The seats of every side that scores."""
        return [[0, 2], [1, 3]] if self.pairs else [[seat] for seat in range(self.seats)]


GAMES = {
    game.name: game
    for game in [
        Game("sport_book", lone_blank=10, redeal=True),  # S7, S8 book
        Game("sport_club", block_score="loser_total", equal_block="credit", redeal=True),  # S7, S8 club
        Game("puerto_rico", out_score="others", block_score="both_totals"),  # K1
        Game("kozyol", lead="winner", block_score="loser_total", lone_blank=25, match_to=101),  # K2
        Game("tiny_pairs", hand_size=2, max_pip=3),  # K4
    ]
}


def make_game(name: str, **changes: Any) -> Game:
    """A preset with some fields changed."""
    return replace(GAMES[name], **changes)


def number(tile: Tile) -> int:
    """Tile number 0..27."""
    return TILES.index(tile)


def action_of(tile: Tile, end: str) -> int:
    """Action id that lays ``tile`` on the end "L" or "R"."""
    return number(tile) + (28 if end == "R" else 0)


def name_of(action: int) -> str:
    """Text of an action, "3-4L", "3-4R" or "pass"."""
    if action == PASS:
        return "pass"
    a, b = TILES[action % 28]
    return f"{a}-{b}{'R' if action >= 28 else 'L'}"


def is_redeal(hands: list[list[Tile]]) -> bool:
    """Whether S4 has this deal dealt again: five doubles, or six tiles of one suit, in any hand."""
    for hand in hands:
        if sum(1 for a, b in hand if a == b) >= 5:
            return True
        for suit in range(7):
            if sum(1 for tile in hand if suit in tile) >= 6:
                return True
    return False


def shuffled(game: Game, rng: random.Random) -> list[list[Tile]]:
    """A random deal of the game, with S4 where it has it."""
    while True:
        tiles = game.tiles
        rng.shuffle(tiles)
        hands = [tiles[seat * game.hand_size : (seat + 1) * game.hand_size] for seat in range(game.seats)]
        if not (game.redeal and is_redeal(hands)):
            return hands


def count(hand: list[Tile], lone_blank: int) -> int:
    """Pips of a hand; 0-0 alone counts ``lone_blank`` (S8)."""
    if hand == [(0, 0)]:
        return lone_blank
    return sum(a + b for a, b in hand)


@dataclass
class Event:
    """One public action."""

    seat: int
    ends: Tile | None  # left and right end before it
    action: int


@dataclass
class Table:
    """One deal on the table."""

    game: Game
    hands: list[list[Tile]]
    leader: int
    opening: Tile | None = None  # the tile that must be led, where the rules name it
    chain: list[Tile] = field(default_factory=list)  # the line from left to right, each tile as it lies
    events: list[Event] = field(default_factory=list)
    result: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        self.hands = [list(hand) for hand in self.hands]
        self.dealt = [list(hand) for hand in self.hands]
        self.turn = self.leader

    @property
    def ends(self) -> Tile | None:
        """The open ends, None before the lead."""
        return (self.chain[0][0], self.chain[-1][1]) if self.chain else None

    def legal(self) -> list[int]:
        """Legal action ids of the seat to move, ascending (S3)."""
        if self.result is not None:
            return [PASS]
        hand = self.hands[self.turn]
        if self.ends is None:
            return sorted(action_of(tile, "L") for tile in hand if self.opening in (None, tile))
        left, right = self.ends
        ids = []
        for tile in hand:
            if left in tile:
                ids.append(action_of(tile, "L"))
            if right in tile and (left != right or self.game.labelled_ends):
                ids.append(action_of(tile, "R"))
        return sorted(ids) or [PASS]

    def play(self, action: int) -> None:
        """One action of the seat to move; illegal ones raise."""
        if self.result is not None or action not in self.legal():
            raise ValueError(f"{name_of(action)} is illegal")
        seat = self.turn
        self.events.append(Event(seat, self.ends, action))
        if action != PASS:
            tile = TILES[action % 28]
            self.hands[seat].remove(tile)
            a, b = tile
            if self.ends is None:
                self.chain = [tile]
            elif action < 28:
                self.chain.insert(0, (a, b) if b == self.ends[0] else (b, a))
            else:
                self.chain.append((a, b) if a == self.ends[1] else (b, a))
            if not self.hands[seat]:
                self.finish("out", seat)
            elif self.is_blocked():
                self.finish("block", seat)
        self.turn = (seat + 1) % self.game.seats

    def is_blocked(self) -> bool:
        """S5: no tile in any hand matches either end."""
        assert self.ends is not None
        return not any(end in tile for hand in self.hands for tile in hand for end in self.ends)

    def finish(self, outcome: str, closer: int) -> None:
        """Write down who won and for how much (S6-S8, B5, K1, K2)."""
        game = self.game
        pips = [count(hand, game.lone_blank) for hand in self.hands]
        winner, points = score_pairs(game, outcome, closer, pips) if game.pairs else score_seats(outcome, closer, pips)
        self.result = {
            "outcome": outcome,
            "winner": winner,
            "points": points,
            "pips_left": pips,
            "by": closer,
            "plies": len(self.events),
        }

    def rewards(self) -> list[int]:
        """S9: what each seat is given at the end of the deal."""
        assert self.result is not None
        points = self.result["points"]
        if self.game.pairs:
            gain = points[0] - points[1]
            return [gain, -gain, gain, -gain]
        return list(points)

    def passed(self, seat: int) -> set[int]:
        """Suits the seat is known not to hold, because it passed on them."""
        return {end for event in self.events if event.seat == seat and event.action == PASS for end in event.ends or ()}

    def played(self, seat: int) -> list[Tile]:
        """Tiles the seat has laid, in order."""
        return [TILES[event.action % 28] for event in self.events if event.seat == seat and event.action != PASS]

    def history(self, observer: int) -> list[tuple[int, int, int, int]]:
        """Public events as (relative seat, left end, right end, action); 7, 7 is the empty line."""
        return [
            ((event.seat - observer) % self.game.seats, *(event.ends or (7, 7)), event.action) for event in self.events
        ]

    def view(self, seat: int) -> dict[str, set[int]]:
        """What a seat sees of the deal: for each named part, the numbers of the bits that are on."""
        seats = self.game.seats
        names = ["me", "left", "partner" if self.game.pairs else "across", "right"][: 4 if seats == 4 else 2]
        view = {
            "hand": {number(tile) for tile in self.hands[seat]},
            "leader": {(self.leader - seat) % seats},
            "end_left": set() if self.ends is None else {self.ends[0]},
            "end_right": set() if self.ends is None else {self.ends[1]},
        }
        for offset, name in enumerate(names):
            other = (seat + offset) % seats
            view[f"played_{name}"] = {number(tile) for tile in self.played(other)}
            view[f"passed_{name}"] = self.passed(other)
            view[f"size_{name}"] = set(range(len(self.hands[other])))
        return view


def score_pairs(game: Game, outcome: str, closer: int, pips: list[int]) -> tuple[int | None, list[int]]:
    """Winner and points of both pairs (S6, S7, K1, K2)."""
    totals = [pips[0] + pips[2], pips[1] + pips[3]]
    points = [0, 0]
    if outcome == "out":
        winner = closer % 2
        points[winner] = totals[1 - winner] if game.out_score == "losers" else sum(pips)
        return winner, points
    if totals[0] == totals[1]:
        return None, list(totals) if game.equal_block == "credit" else points
    winner = 0 if totals[0] < totals[1] else 1
    points[winner] = {
        "difference": totals[1 - winner] - totals[winner],
        "loser_total": totals[1 - winner],
        "both_totals": sum(totals),
    }[game.block_score]
    return winner, points


def score_seats(outcome: str, closer: int, pips: list[int]) -> tuple[int | None, list[int]]:
    """Winner and signed gains where every seat plays for itself (B5)."""
    if outcome == "out":
        gains = [-p for p in pips]
        gains[closer] = sum(pips) - pips[closer]
        return closer, gains
    lowest = min(pips)
    if pips.count(lowest) > 1:
        return None, [0] * len(pips)
    winner = pips.index(lowest)
    gains = [lowest - p for p in pips]
    gains[winner] = sum(p - lowest for p in pips)
    return winner, gains


def leader_after(table: Table) -> int:
    """K2: who leads the next deal of a kozyol match."""
    assert table.result is not None
    result = table.result
    if result["outcome"] == "out":
        return result["by"]
    if result["winner"] is None:
        return table.leader
    seats = table.game.seats
    clockwise = [(result["by"] + step) % seats for step in range(seats)]
    side = table.game.sides()[result["winner"]]
    return next(seat for seat in clockwise if seat in side)


@dataclass
class Match:
    """The deals of one row of a batch one after the other: who leads, and what they add up to (S2, S10, K1, K2)."""

    game: Game
    deal: int = 0  # deals since the last seeded reset, or of the match
    previous: Table | None = None  # the deal before, None at the first of a match
    score: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.score = [0] * len(self.game.sides())

    def lead(self, hands: list[list[Tile]]) -> tuple[int, Tile | None]:
        """Leader of the next deal with these hands, and the tile that must be led, if the rules name one."""
        if self.game.lead == "double_six":  # K1
            return next(seat for seat, hand in enumerate(hands) if (6, 6) in hand), (6, 6)
        if self.game.lead == "winner":  # K2
            if self.previous is None:
                return next(seat for seat, hand in enumerate(hands) if (1, 1) in hand), (1, 1)
            return leader_after(self.previous), None
        return self.deal % self.game.seats, None  # S2

    def begin(self, hands: list[list[Tile]]) -> Table:
        """The next deal, on these hands."""
        leader, opening = self.lead(hands)
        return Table(self.game, hands, leader, opening)

    def end(self, table: Table) -> None:
        """Book a finished deal."""
        assert table.result is not None
        self.score = [total + gain for total, gain in zip(self.score, table.result["points"], strict=True)]
        self.previous = table
        self.deal += 1
