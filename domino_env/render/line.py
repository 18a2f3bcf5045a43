"""What a snapshot tells of its deal: the line as it lies (S3), who made each move, what everyone saw of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from domino_env.tiles import DRAW, HIGH, LOW, NUM_TILES, PASS, TURN, row_action_index, tile_index, tile_name

Snapshot = Mapping[str, Any]
Kind = Literal["lay", "pass", "stop", "decline", "turn", "draw"]

_OPEN = 3  # R7: a seat with so many tiles or fewer shows them


class Laid(NamedTuple):
    """One tile of the line, turned the way it lies."""

    tile: int  # 0..27
    left: int  # pips of the half that looks to the left end of the line
    right: int  # pips of the half that looks to the right end
    ply: int  # index of the move that laid it; the lead has the smallest


class Move(NamedTuple):
    """One move as everyone at the table saw it."""

    seat: int
    kind: Kind  # a pass by what it means: it may also stop (B3, R6) or decline to draw (R5)
    tile: int | None = None  # that was laid or turned up
    right: bool = False  # it was laid on the right end
    first: bool = True  # of its turn

    @property
    def ends_turn(self) -> bool:
        """Whether it ends a turn even where a seat may lay several tiles."""
        return self.kind in ("pass", "stop", "decline", "draw")


@dataclass(frozen=True)
class Story:
    """A deal as everyone at the table saw it."""

    line: list[Laid]  # left end first; empty before the lead
    moves: list[Move]
    passed_on: list[list[int]]  # per seat the suits it has passed on, ascending; none in a blind game
    turns: int  # that are over
    begins: bool  # nothing has been done yet in the turn that runs
    laid: int  # tiles laid in the turn that runs


def line_of(snapshot: Snapshot) -> list[Laid]:
    """The tiles of the line from the left end to the right one.

    Raises ValueError where the moves cannot have made a line (a tile twice, a tile that does not match, a lead on the
    right) or where it does not end on the snapshot's `ends`.
    """
    return story_of(snapshot).line


def story_of(snapshot: Snapshot) -> Story:
    """The line, the moves and their movers, the suits passed on; raises as `line_of`."""
    seats, texts = snapshot["seats"], snapshot["moves"]
    movers = snapshot["movers"]
    if len(movers) != len(texts) or not all(seat in range(seats) for seat in movers):
        raise ValueError(f"the snapshot has {len(texts)} moves; its movers must be as many seats, not {movers!r}")
    rows = _Rows(snapshot) if "rows" in snapshot else None
    runs = rows is not None or "turn" in snapshot  # a seat may lay several tiles in a turn
    line: list[Laid] = []
    moves: list[Move] = []
    passed: list[set[int]] = [set() for _ in range(seats)]
    used: set[int] = set()
    turns, laid, begins = 0, 0, True
    for ply, (seat, text) in enumerate(zip(movers, texts, strict=True)):
        action = row_action_index(text)
        ends = {line[0].left, line[-1].right} if line else set()
        if action in (TURN, DRAW) and rows is None:
            raise ValueError(f"move {ply} ({text}) is of the blind games, not of {snapshot['rules']}")
        if action < PASS:
            tile, to_right = action % NUM_TILES, action >= NUM_TILES
            if tile in used:
                raise ValueError(f"move {ply} ({text}) lays {tile_name(tile)} a second time")
            used.add(tile)
            _lay(line, tile, to_right, ply, text)
            if rows is not None:
                rows.lay(seat, tile, ply)
            move = Move(seat, "lay", tile, to_right, begins)
        elif action == TURN:
            assert rows is not None, "checked above"
            move = Move(seat, "turn", rows.turn(seat, ends, ply), first=begins)
        elif action == DRAW:
            assert rows is not None, "checked above"
            rows.draw(seat, ply)
            move = Move(seat, "draw", first=begins)
        else:
            missed = not begins and moves[-1].kind == "turn"
            stops = laid > 0 and not missed
            declines = rows is not None and len(rows.stock) > 0
            move = Move(seat, "stop" if stops else "decline" if declines else "pass", first=begins)
            if move.kind == "pass" and rows is None:
                passed[seat] |= ends
        moves.append(move)
        laid += move.kind == "lay"
        begins = move.ends_turn or not runs
        if begins:
            turns, laid = turns + 1, 0
    after = [line[0].left, line[-1].right] if line else None
    given = None if snapshot["ends"] is None else list(snapshot["ends"])
    if after != given:
        raise ValueError(f"the moves make a line with ends {after}, but the snapshot says {given}")
    return Story(line, moves, [sorted(suits) for suits in passed], turns, begins, laid)


def _lay(line: list[Laid], tile: int, to_right: bool, ply: int, move: str) -> None:
    low, high = int(LOW[tile]), int(HIGH[tile])
    if not line:
        if to_right:
            raise ValueError(f"move {ply} ({move}) leads on the right; the first tile is laid on the left")
        line.append(Laid(tile, low, high, ply))
        return
    end = line[-1].right if to_right else line[0].left
    if end not in (low, high):
        raise ValueError(f"move {ply} ({move}) does not match the {'right' if to_right else 'left'} end {end}")
    other = low + high - end
    if to_right:
        line.append(Laid(tile, end, other, ply))
    else:
        line.insert(0, Laid(tile, other, end, ply))


class _Rows:
    """The rows of a blind game, followed from the deal: only they tell which tile a turn showed to all (R4)."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.rows = [[tile_index(name) for name in row] for row in snapshot["dealt"]]  # face down, left to right
        self.shown: list[list[int]] = [[] for _ in self.rows]
        self.stock = [tile_index(name) for name in snapshot["dealt_stock"]]  # the next to be drawn first
        self.turned: int | None = None
        self.led = False
        for seat in range(len(self.rows)):
            self._open(seat)

    def _open(self, seat: int) -> None:
        if len(self.rows[seat]) + len(self.shown[seat]) <= _OPEN:
            self.shown[seat] += self.rows[seat]
            self.rows[seat] = []

    def lay(self, seat: int, tile: int, ply: int) -> None:
        """R4, R7: the turned tile or an open one; R3: the lead, wherever it lies in the row."""
        if tile == self.turned:
            self.turned = None
        elif tile in self.shown[seat]:
            self.shown[seat].remove(tile)
        elif tile in self.rows[seat] and self.turned is None and not self.led:
            self.rows[seat].remove(tile)
        else:
            raise ValueError(f"move {ply} lays {tile_name(tile)}, which does not lie open with seat {seat}")
        self.led = True
        self._open(seat)

    def turn(self, seat: int, ends: set[int], ply: int) -> int:
        """R4: the rightmost tile; one that does not match goes back at the left."""
        if not self.rows[seat]:
            raise ValueError(f"move {ply} turns a tile, but seat {seat} has none face down")
        tile = self.rows[seat].pop()
        if not ends or int(LOW[tile]) in ends or int(HIGH[tile]) in ends:
            self.turned = tile
        else:
            self.rows[seat].insert(0, tile)
        return tile

    def draw(self, seat: int, ply: int) -> None:
        """R5: the next tile of the stock, unseen, at the right."""
        if not self.stock:
            raise ValueError(f"move {ply} draws a tile, but the stock is empty")
        self.rows[seat].append(self.stock.pop(0))
        self._open(seat)
