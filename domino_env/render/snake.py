"""Where the tiles of a line lie on a board of bounded width: a snake that starts in the centre.

The first tile lies in the middle of the board. The right arm runs to the right and, at the edge, turns down and back;
the left arm runs to the left and turns up: the same picture turned by half a circle, so that the arms never meet.
Doubles lie across the line, all other tiles along it. A turn takes two tiles, both along the line, whatever they are.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from domino_env.render.line import Laid

Heading = Literal["left", "right", "up", "down"]
_OPPOSITE: dict[Heading, Heading] = {"left": "right", "right": "left", "up": "down", "down": "up"}


@dataclass(frozen=True)
class Grid:
    """The size of a tile and of the board in whole cells of some grid."""

    along: int  # width of a lying tile
    thick: int  # height of a lying tile, which is also the height of a row
    slim: int  # width of a standing tile
    tall: int  # height of a standing tile
    width: int  # of the board; even

    @property
    def pitch(self) -> int:
        """Cells from one row of the snake to the next: two standing tiles that share a half with either row."""
        return 2 * self.tall - self.thick


# Four cells to a tile's length. A line stays within PICTURE_HEIGHT cells, unless 26 tiles or more lie on one arm.
PICTURE = Grid(along=4, thick=2, slim=2, tall=4, width=36)
PICTURE_HEIGHT = 28


class Placed(NamedTuple):
    """A tile on the board; x and y count cells from the centre of the board to its left top corner, y downwards."""

    tile: int
    x: int
    y: int
    w: int
    h: int
    first: int  # pips of the left half, of the upper half where it stands
    second: int  # pips of the other half
    ply: int

    @property
    def standing(self) -> bool:
        """Whether its halves lie one above the other."""
        return self.h >= self.w


class End(NamedTuple):
    """The open end of an arm: the middle of the edge where the next tile will touch, in cells, and the way it runs."""

    x: float
    y: float
    heading: Heading


class Snake(NamedTuple):
    """A laid-out line."""

    tiles: list[Placed]  # in the order of the line, left end first
    ends: tuple[End, End] | None  # left, right; None before the lead

    def reach(self, grid: Grid = PICTURE) -> float:
        """Cells from the middle of the first row to the farthest edge of a tile above or below it."""
        middle = grid.thick / 2
        return max((max(middle - tile.y, tile.y + tile.h - middle) for tile in self.tiles), default=0.0)


def place(line: list[Laid], grid: Grid = PICTURE) -> Snake:
    """Lay the line, left end first, on the board. Pure; a tile that lies stays where it is as the line grows."""
    if not line:
        return Snake([], None)
    lead = min(range(len(line)), key=lambda i: line[i].ply)
    tile = line[lead]
    double = tile.left == tile.right
    w, h = (grid.slim, grid.tall) if double else (grid.along, grid.thick)
    centre = Placed(tile.tile, -(w // 2), (grid.thick - h) // 2, w, h, tile.left, tile.right, tile.ply)
    right, right_end = _arm(line[lead + 1 :], centre.x + w, grid)
    # The left arm is laid as if it were a right one and then turned by half a circle about the first tile.
    mirrored = [Laid(t.tile, t.right, t.left, t.ply) for t in reversed(line[:lead])]
    left, left_end = _arm(mirrored, -centre.x, grid)
    turned = [_turn(placed, grid) for placed in reversed(left)]
    turned_end = End(-left_end.x, grid.thick - left_end.y, _OPPOSITE[left_end.heading])
    return Snake([*turned, centre, *right], (turned_end, right_end))


def _turn(p: Placed, grid: Grid) -> Placed:
    return Placed(p.tile, -p.x - p.w, grid.thick - p.y - p.h, p.w, p.h, p.second, p.first, p.ply)


def _arm(tiles: list[Laid], front: int, grid: Grid) -> tuple[list[Placed], End]:
    """Lay the tiles of a right arm, whose row is the cells 0..thick-1, from x = front on."""
    placed: list[Placed] = []
    y, step, turning = 0, 1, 0  # turning: how many tiles of the turn lie
    across = (grid.thick - grid.tall) // 2
    for tile in tiles:
        double = tile.left == tile.right
        w = grid.slim if double else grid.along
        # A tile stays in the row only where a turn still fits behind it.
        if turning == 0 and step * front + w + grid.slim <= grid.width // 2:
            x = front if step > 0 else front - w
            top, h = (y + across, grid.tall) if double else (y, grid.thick)
            halves = (tile.left, tile.right) if step > 0 else (tile.right, tile.left)
            placed.append(Placed(tile.tile, x, top, w, h, *halves, tile.ply))
            front += step * w
            continue
        x = front if step > 0 else front - grid.slim
        top = y + turning * grid.tall
        placed.append(Placed(tile.tile, x, top, grid.slim, grid.tall, tile.left, tile.right, tile.ply))
        turning += 1
        if turning == 2:
            # The next row runs back from the inner side of the turn: `front` is already there.
            turning, step, y = 0, -step, y + grid.pitch
    if turning:
        x = front if step > 0 else front - grid.slim
        return placed, End(x + grid.slim / 2, y + grid.tall, "down")
    return placed, End(front, y + grid.thick / 2, "right" if step > 0 else "left")
