"""The slow, plain second implementation of the blind games, written from rules.md alone (clauses R and B5).

Tiles are tuples ``(a, b)`` with ``a <= b``; a row is a list of them from left to right; nothing here is an array and
nothing is imported from the product. Tests play the engine and this file side by side.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

Tile = tuple[int, int]

TILES: list[Tile] = [(a, b) for a in range(7) for b in range(a, 7)]  # the numbering of rules.md
PASS, TURN, DRAW = 56, 57, 58
GUARD = 400  # R8


@dataclass(frozen=True)
class BlindGame:
    """What rules.md says about one blind game, as data of our own."""

    name: str
    looked: bool  # R2
    lead: str  # R3
    seats: int = 4
    memory: str = "perfect"  # R9
    max_pip: int = 6
    hand_size: int = 0  # 0: as R1
    labelled_ends: bool = False

    @property
    def hand(self) -> int:
        """Tiles a seat is dealt (R1)."""
        return self.hand_size or (7 if self.seats == 4 else 8)

    @property
    def tiles(self) -> list[Tile]:
        """The tiles of the set."""
        return [tile for tile in TILES if tile[1] <= self.max_pip]


BLIND_BLITZ = BlindGame("blind_blitz", looked=True, lead="blank")
BLIND = BlindGame("blind", looked=False, lead="lot")


def variant(game: BlindGame, **changes: Any) -> BlindGame:
    """A game with some fields changed."""
    return replace(game, **changes)


def number(tile: Tile) -> int:
    """Tile number 0..27."""
    return TILES.index(tile)


def leading(game: BlindGame, rows: list[list[Tile]]) -> tuple[int, Tile] | None:
    """R3: who leads with what; None where a lot decides."""
    if game.lead == "lot":
        return None
    dealt = sorted((tile for row in rows for tile in row), key=lambda tile: (tile[0] + tile[1], tile[0]))
    lead = dealt[-1] if game.lead == "high" else dealt[0]
    if game.lead == "blank" and (0, 0) in dealt:
        lead = (0, 0)
    return next(seat for seat, row in enumerate(rows) if lead in row), lead


def shuffled(game: BlindGame, rng: random.Random) -> tuple[list[list[Tile]], list[Tile]]:
    """Rows and stock of a random deal (R1)."""
    tiles = game.tiles
    rng.shuffle(tiles)
    size = game.hand
    rows = [tiles[seat * size : (seat + 1) * size] for seat in range(game.seats)]
    return rows, tiles[game.seats * size :]


@dataclass
class Card:
    """A tile that lies face down, and who has seen it."""

    tile: Tile
    seen_by: set[int]


@dataclass
class Event:
    """One public action; `tile` is the one a turn has shown."""

    seat: int
    ends: Tile | None
    action: int
    tile: Tile | None = None


@dataclass
class RowTable:
    """One deal on the table."""

    game: BlindGame
    dealt: list[list[Tile]]
    dealt_stock: list[Tile]
    leader: int
    events: list[Event] = field(default_factory=list)
    result: dict[str, Any] | None = None
    guard: int = GUARD

    def __post_init__(self) -> None:
        everyone = set(range(self.game.seats))
        self.everyone = everyone
        self.face_down = [
            [Card(tile, {seat} if self.game.looked else set()) for tile in row] for seat, row in enumerate(self.dealt)
        ]
        self.open: list[list[Tile]] = [[] for _ in self.dealt]
        self.stock = list(self.dealt_stock)
        self.chain: list[Tile] = []
        self.turn = self.leader
        self.up: Tile | None = None  # the tile that is turned and must be laid
        self.stage = "start"  # start, turned, missed, laid: where the mover's turn stands
        self.turns = 0  # turns that are over
        self.quiet = 0  # of these, how many at last in which nobody laid or drew
        self.busy = False  # whether somebody laid or drew in this turn
        self.by: int | None = None
        self.acted: set[int] = set()
        lead = leading(self.game, self.dealt)
        if lead is not None:
            assert lead[0] == self.leader
            self.up = lead[1]
            self.stage = "turned"
            row = self.face_down[self.leader]
            row.remove(next(card for card in row if card.tile == lead[1]))
        for seat in everyone:
            self.lay_open(seat)

    @property
    def ends(self) -> Tile | None:
        """The open ends, None before the lead."""
        return (self.chain[0][0], self.chain[-1][1]) if self.chain else None

    def hand(self, seat: int) -> list[Tile]:
        """All that a seat holds."""
        up = [self.up] if self.up is not None and seat == self.turn else []
        return [card.tile for card in self.face_down[seat]] + self.open[seat] + up

    def lay_open(self, seat: int) -> None:
        """R7: three tiles or fewer are shown."""
        if len(self.hand(seat)) <= 3:
            self.open[seat] += [card.tile for card in self.face_down[seat]]
            self.face_down[seat] = []

    def lays(self, tile: Tile) -> list[int]:
        """The actions that lay a tile."""
        if self.ends is None:
            return [number(tile)]
        left, right = self.ends
        ids = [number(tile)] if left in tile else []
        if right in tile and (left != right or self.game.labelled_ends):
            ids.append(number(tile) + 28)
        return ids

    def legal(self) -> list[int]:
        """Legal action ids of the seat to move, ascending (R4-R7)."""
        if self.result is not None:
            return [PASS]
        wait = [PASS, DRAW] if self.stock else [PASS]
        if self.stage == "turned":
            assert self.up is not None
            return sorted(self.lays(self.up))
        if self.stage == "missed":
            return wait
        ids = [action for tile in self.open[self.turn] for action in self.lays(tile)]
        if self.face_down[self.turn]:
            ids.append(TURN)
        if self.stage == "laid":
            ids.append(PASS)
        return sorted(ids) or wait

    def play(self, action: int) -> None:
        """One action of the seat to move; illegal ones raise."""
        if self.result is not None or action not in self.legal():
            raise ValueError(f"action {action} is illegal")
        seat = self.turn
        event = Event(seat, self.ends, action)
        self.events.append(event)
        self.acted.add(seat)
        if action == TURN:
            card = self.face_down[seat].pop()
            event.tile = card.tile
            if self.lays(card.tile):
                self.up = card.tile
                self.stage = "turned"
            else:
                card.seen_by = set(self.everyone)
                self.face_down[seat].insert(0, card)
                self.stage = "missed"
            return
        if action < PASS:
            self.lay(seat, action)
            self.stage = "laid"
            self.busy = True
            if not self.hand(seat):
                self.finish("out")
                return
        else:
            if action == DRAW:
                self.face_down[seat].append(Card(self.stock.pop(0), set()))
                self.lay_open(seat)
                self.busy = True
            self.quiet = 0 if self.busy else self.quiet + 1
            self.turns += 1
            self.busy = False
            self.stage = "start"
            self.turn = (seat + 1) % self.game.seats
        full_round = self.quiet >= self.game.seats and not self.busy
        if self.is_stuck() and (not self.stock or full_round):
            self.finish("block")
        elif self.turns >= self.guard:
            self.finish("guard")

    def lay(self, seat: int, action: int) -> None:
        """Put a tile on an end."""
        tile = TILES[action % 28]
        if self.up is not None:
            self.up = None
        else:
            self.open[seat].remove(tile)
        a, b = tile
        if self.ends is None:
            self.chain = [tile]
        elif action < 28:
            self.chain.insert(0, (a, b) if b == self.ends[0] else (b, a))
        else:
            self.chain.append((a, b) if a == self.ends[1] else (b, a))
        self.by = seat
        self.lay_open(seat)

    def is_stuck(self) -> bool:
        """No tile of any row matches an end."""
        return self.ends is not None and not any(
            end in tile for seat in self.everyone for tile in self.hand(seat) for end in self.ends
        )

    def finish(self, outcome: str) -> None:
        """R8, B5: who won and for how much."""
        pips = [sum(a + b for a, b in self.hand(seat)) for seat in range(self.game.seats)]
        winner: int | None = None
        points = [0] * len(pips)
        if outcome == "out":
            winner = self.turn
            points = [-p for p in pips]
            points[winner] = sum(pips)
        elif outcome == "block" and pips.count(min(pips)) == 1:
            winner = pips.index(min(pips))
            points = [min(pips) - p for p in pips]
            points[winner] = sum(p - min(pips) for p in pips)
        self.result = {
            "outcome": outcome,
            "winner": winner,
            "points": points,
            "pips_left": pips,
            "by": self.by,
            "plies": len(self.events),
        }

    def history(self, observer: int) -> list[int]:
        """Public events as one number each."""
        events = []
        for event in self.events:
            left, right = event.ends or (7, 7)
            middle = left << 3 | right if event.tile is None else number(event.tile)
            events.append((event.seat - observer) % self.game.seats << 12 | middle << 6 | event.action)
        return events

    def knows(self, seat: int, owner: int, card: Card) -> bool:
        """Whether a seat's observation may show a tile that lies face down with `owner` (R2, R9)."""
        if card.seen_by == self.everyone:
            return True
        if seat != owner or seat not in card.seen_by:
            return False
        first = not self.events or (seat == self.turn and seat not in self.acted)
        return self.game.memory == "perfect" or first

    def view(self, seat: int) -> dict[str, set[int]]:
        """What a seat sees of a single deal: for each named part, the numbers of the bits that are on."""
        seats = self.game.seats
        names = {2: ["me", "left"], 3: ["me", "left", "right"], 4: ["me", "left", "across", "right"]}[seats]
        held = {tile for other in range(seats) for tile in self.hand(other)}
        view = {
            "turned": set() if self.up is None else {number(self.up)},
            "leader": {(self.leader - seat) % seats},
            "played": {number(tile) for tile in self.game.tiles if tile not in held and tile not in self.stock},
            "mover": {(self.turn - seat) % seats},
            "end_left": set() if self.ends is None else {self.ends[0]},
            "end_right": set() if self.ends is None else {self.ends[1]},
            "score_ahead": set(),
            "score_behind": set(),
            "stock": set(range(len(self.stock))),
            "idle": set() if self.busy else set(range(min(self.quiet, seats))),
            "deal": set(),
        }
        for offset, name in enumerate(names):
            owner = (seat + offset) % seats
            view[f"shown_{name}"] = {number(tile) for tile in self.open[owner]}
            bits = set()
            for place, card in enumerate(reversed(self.face_down[owner])):
                bits.add(16 * place + 14)
                if card.seen_by == self.everyone:
                    bits.add(16 * place + 15)
                if self.knows(seat, owner, card):
                    bits |= {16 * place + card.tile[0], 16 * place + 7 + card.tile[1]}
            view[f"row_{name}"] = bits
        return view
