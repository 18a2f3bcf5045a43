"""What a snapshot tells of its deal: the line as it lies (S3), who made each move, what each seat has passed on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from domino_env.tiles import HIGH, LOW, NUM_TILES, action_index, tile_name

Snapshot = Mapping[str, Any]


class Laid(NamedTuple):
    """One tile of the line, turned the way it lies."""

    tile: int  # 0..27
    left: int  # pips of the half that looks to the left end of the line
    right: int  # pips of the half that looks to the right end
    ply: int  # index of the move that laid it; the lead has the smallest


@dataclass(frozen=True)
class Story:
    """A deal as everyone at the table saw it."""

    line: list[Laid]  # left end first; empty before the lead
    movers: list[int]  # the seat of each move
    passed_on: list[list[int]]  # per seat the suits it has passed on, ascending


def line_of(snapshot: Snapshot) -> list[Laid]:
    """The tiles of the line from the left end to the right one.

    Raises ValueError where the moves cannot have made a line (a tile twice, a tile that does not match, a lead on the
    right) or where it does not end on the snapshot's `ends`.
    """
    return story_of(snapshot).line


def story_of(snapshot: Snapshot) -> Story:
    """The line, the movers and the suits passed on, all from the leader and the moves; raises as `line_of`."""
    seats = snapshot["seats"]
    line: list[Laid] = []
    movers: list[int] = []
    passed: list[set[int]] = [set() for _ in range(seats)]
    used: set[int] = set()
    for ply, move in enumerate(snapshot["moves"]):
        seat = (snapshot["leader"] + ply) % seats
        movers.append(seat)
        action = action_index(move)
        if action >= 2 * NUM_TILES:
            if line:
                passed[seat] |= {line[0].left, line[-1].right}
            continue
        tile, to_right = action % NUM_TILES, action >= NUM_TILES
        if tile in used:
            raise ValueError(f"move {ply} ({move}) lays {tile_name(tile)} a second time")
        used.add(tile)
        _lay(line, tile, to_right, ply, move)
    ends = [line[0].left, line[-1].right] if line else None
    given = None if snapshot["ends"] is None else list(snapshot["ends"])
    if ends != given:
        raise ValueError(f"the moves make a line with ends {ends}, but the snapshot says {given}")
    return Story(line, movers, [sorted(suits) for suits in passed])


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
