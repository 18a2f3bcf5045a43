"""The table as a list of shapes on a frame of 960 x 720, which the SVG and the RGB renderer only have to paint.

On the left the table: the line in the middle, the hands around it, the mover's hand framed. On the right a panel:
rules, deal, score, whose turn it is, the last moves, the result. Places and sizes are in pixels of that frame.
"""

from textwrap import wrap
from typing import NamedTuple

from domino_env.render.line import Snapshot, Story, story_of
from domino_env.render.seats import Place, Side, View, places_of
from domino_env.render.snake import PICTURE, PICTURE_HEIGHT, Snake, place
from domino_env.render.words import result_of, side_names, words_of
from domino_env.tiles import HIGH, LOW, tile_index

WIDTH, HEIGHT = 960, 720

# Colours.
ROOM, RIM, FELT, FELT_EDGE = "#1d2421", "#6b4426", "#2f7d54", "#1f5c3d"
IVORY, IVORY_EDGE, BACK, BACK_EDGE, BACK_MARK = "#fbf6e6", "#b9ab86", "#3b5575", "#22344b", "#5d7da3"
SHADOW, GOLD, INK, PALE, GREY = "#194a31", "#ffd34d", "#22201a", "#f3f1e7", "#a9b8ae"
PASSED, PASSED_INK = "#b5443a", "#ff9d8f"
SIDES = ("#7cc4ff", "#ffb27a")  # the two pairs
PIPS = ("", "#1f66ad", "#1d8044", "#b3261e", "#6b3fa0", "#b8620a", "#222222")  # one ink for each number

# Places. The table is a square-ish field, the panel a column.
_TABLE = (8.0, 8.0, 738.0, 704.0)
_CENTRE = (377.0, 360.0)
_CELL = 16.0  # a cell of the snake: half of half a tile
_HALF = {"top": 30.0, "bottom": 30.0, "left": 25.0, "right": 25.0}  # half a tile of a hand, at most
_GAP = 3.0  # between tiles of a hand
_STRIP = 20.0  # from the frame of the table to the hands
_HEAD = 70.0  # for the chips above the hand of a side seat
_PANEL = (766.0, 946.0)  # left and right
_LAST = 12  # moves in the panel
_WORDS = words_of("en")


class Rect(NamedTuple):
    """A filled rectangle; a disc where r is half its side."""

    x: float
    y: float
    w: float
    h: float
    r: float  # radius of the corners
    fill: str


class Words(NamedTuple):
    """A line of text; x, y is its left, middle or right point, at half the height of a capital letter."""

    x: float
    y: float
    words: str
    size: float
    fill: str
    anchor: str = "start"  # start, middle, end


class Face(NamedTuple):
    """An open tile, standing where it is higher than wide."""

    x: float
    y: float
    w: float
    h: float
    first: int  # pips of the left or upper half
    second: int
    fresh: bool = False  # the tile of the latest move


class Back(NamedTuple):
    """A tile seen from its back."""

    x: float
    y: float
    w: float
    h: float


Shape = Rect | Words | Face | Back

_SPOTS: dict[int, tuple[tuple[float, float], ...]] = {
    0: (),
    1: ((0, 0),),
    2: ((-1, -1), (1, 1)),
    3: ((-1, -1), (0, 0), (1, 1)),
    4: ((-1, -1), (1, -1), (-1, 1), (1, 1)),
    5: ((-1, -1), (1, -1), (0, 0), (-1, 1), (1, 1)),
    6: ((-1, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (1, 1)),
}


class Pip(NamedTuple):
    """A disc on a tile, measured from the tile's left top corner."""

    x: float
    y: float
    r: float
    fill: str


def pips_of(face: Face) -> list[Pip]:
    """The pips of an open tile; a lying tile is a standing one turned to the left."""
    standing = face.h > face.w
    half = (face.h if standing else face.w) / 2
    short = face.w if standing else face.h
    reach, r = 0.27 * short, 0.115 * short
    pips = []
    for k, number in enumerate((face.first, face.second)):
        for dx, dy in _SPOTS[number]:
            along, aside = half * (k + 0.5) + reach * dy, short / 2 + reach * dx
            x, y = (aside, along) if standing else (along, short - aside)
            pips.append(Pip(x, y, r, PIPS[number]))
    return pips


def plate_of(tile: Face | Back) -> tuple[str, str, float]:
    """Body colour, edge colour and width of the edge, which lies inside the tile's box."""
    if isinstance(tile, Back):
        return BACK, BACK_EDGE, 1.5
    return (IVORY, GOLD, 3.0) if tile.fresh else (IVORY, IVORY_EDGE, 1.0)


def corner_of(tile: Face | Back) -> float:
    """Radius of a tile's corners."""
    return 0.16 * min(tile.w, tile.h)


def groove_of(face: Face) -> tuple[float, float, float, float]:
    """The line between the halves, from (x, y) to (x, y), measured from the tile's left top corner."""
    if face.h > face.w:
        return 0.14 * face.w, face.h / 2, 0.86 * face.w, face.h / 2
    return face.w / 2, 0.14 * face.h, face.w / 2, 0.86 * face.h


def diamond_of(back: Back) -> list[tuple[float, float]]:
    """The corners of the mark on a back, measured from the tile's left top corner."""
    x, y, dx, dy = back.w / 2, back.h / 2, 0.3 * back.w, 0.3 * back.h
    return [(x - dx, y), (x, y - dy), (x + dx, y), (x, y + dy)]


def scene_of(snapshot: Snapshot, view: View = None) -> list[Shape]:
    """All shapes of a table, back to front, without the ground (rim and felt), which never changes.

    view: None or "all" opens every hand, a seat sits at the bottom and sees its own hand only.
    Raises ValueError on an unknown view or moves that do not make the snapshot's line.
    """
    story = story_of(snapshot)
    shapes = _line(place(story.line), len(snapshot["moves"]) - 1)
    for side, seats in places_of(snapshot, story, view).items():
        shapes += _side(snapshot, side, seats)
    return shapes + _panel(snapshot, story)


def ground() -> list[Rect]:
    """The rim of the table under the felt, and the felt."""
    x, y, w, h = _TABLE
    return [Rect(x, y, w, h, 26, RIM), Rect(x + 8, y + 8, w - 16, h - 16, 19, FELT)]


def _shadowed(tiles: list[Face | Back], depth: float) -> list[Shape]:
    """Tiles above their shadows; no shadow falls on a neighbour."""
    return [*(Rect(t.x + depth, t.y + depth, t.w, t.h, corner_of(t), SHADOW) for t in tiles), *tiles]


def _line(snake: Snake, last: int) -> list[Shape]:
    # Nearly all tiles on one arm need a row more than there is room for: the line is then drawn smaller.
    cell = _CELL * min(1.0, PICTURE_HEIGHT / 2 / max(snake.reach(), 1.0))
    x0, y0 = _CENTRE[0], _CENTRE[1] - PICTURE.thick * cell / 2
    tiles: list[Face | Back] = [
        Face(x0 + t.x * cell, y0 + t.y * cell, t.w * cell - 1, t.h * cell - 1, t.first, t.second, t.ply == last)
        for t in snake.tiles
    ]
    shapes = _shadowed(tiles, 2.5)
    for letter, end in zip("LR", snake.ends or ()):
        x, y = x0 + end.x * cell, y0 + end.y * cell
        dx, dy = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}[end.heading]
        r = 10.0
        x, y = x + dx * (r + 4) - 0.5, y + dy * (r + 4) - 0.5
        shapes += [Rect(x - r, y - r, 2 * r, 2 * r, r, GOLD), Words(x, y, letter, 14, INK, "middle")]
    return shapes


def _side(snapshot: Snapshot, side: Side, seats: list[Place]) -> list[Shape]:
    """The hands of one side of the table with what is said of their seats."""
    x0, y0, w, h = _TABLE
    across = side in ("top", "bottom")
    room = ((w - 120) if across else (h - 150)) / max(len(seats), 1)
    shapes: list[Shape] = []
    for i, seat in enumerate(reversed(seats) if side == "left" else seats):
        # The largest hand that fits sets the size; on the sides it stays where it is while tiles go.
        most = max(len(snapshot["dealt"][seat.seat]), len(seat.tiles), 1)
        half = min(_HALF[side], (room - 24 - (0 if across else _HEAD) + _GAP) / most - _GAP)
        middle = room * (i + 0.5)
        if across:
            length = (half + _GAP) * max(len(seat.tiles), 1) - _GAP
            x = x0 + 60 + middle - length / 2
            y = y0 + _STRIP if side == "top" else y0 + h - _STRIP - 2 * half
            chips = _row_of_chips(snapshot, seat, x + length / 2, y + 2 * half + 11 if side == "top" else y - 29)
        else:
            length = (half + _GAP) * most - _GAP
            x = x0 + _STRIP if side == "left" else x0 + w - _STRIP - 2 * half
            y = y0 + 75 + middle - (length - _HEAD) / 2
            chips = _column_of_chips(snapshot, seat, x + half, y - 11)
        shapes += [*_hand(seat, x, y, across, half), *chips]
    return shapes


def _hand(seat: Place, x: float, y: float, standing: bool, half: float) -> list[Shape]:
    """The tiles of a hand from (x, y) to the right (standing) or downwards, framed in gold where it is to move."""
    w, h = (half, 2 * half) if standing else (2 * half, half)
    step = half + _GAP
    tiles: list[Face | Back] = []
    for i, name in enumerate(seat.tiles):
        left, top = (x + i * step, y) if standing else (x, y + i * step)
        if name is None:
            tiles.append(Back(left, top, w, h))
        else:
            tile = tile_index(name)
            tiles.append(Face(left, top, w, h, int(LOW[tile]), int(HIGH[tile])))
    shapes: list[Shape] = []
    if seat.moves and tiles:
        far, low = tiles[-1].x + w, tiles[-1].y + h
        shapes += [
            Rect(x - 6, y - 6, far - x + 12, low - y + 12, 8, GOLD),
            Rect(x - 4, y - 4, far - x + 8, low - y + 8, 6, FELT_EDGE),
        ]
    return shapes + _shadowed(tiles, 2)


def _chips(snapshot: Snapshot, seat: Place) -> list[tuple[str, float, str, str]]:
    """What is said of a seat: words, width, fill and ink of each chip."""
    chips = [(seat.name, 56.0, _colour(snapshot, seat.seat), INK)]
    if seat.leads:
        chips.append((_WORDS["leads"], 44.0, GOLD, INK))
    if seat.passed:
        chips.append((_WORDS["pass"], 40.0, PASSED, PALE))
    if seat.passed_on:
        words = _WORDS["no"].format(("" if len(seat.passed_on) > 3 else " ").join(map(str, seat.passed_on)))
        chips.append((words, 20.0 + 6.5 * (len(words) - 2), FELT_EDGE, PALE))
    return chips


def _row_of_chips(snapshot: Snapshot, seat: Place, middle: float, y: float) -> list[Shape]:
    chips = _chips(snapshot, seat)
    x = middle - (sum(width for _, width, _, _ in chips) + 4 * (len(chips) - 1)) / 2
    shapes: list[Shape] = []
    for words, width, fill, ink in chips:
        shapes += _chip(x, y, words, width, fill, ink)
        x += width + 4
    return shapes


def _column_of_chips(snapshot: Snapshot, seat: Place, middle: float, bottom: float) -> list[Shape]:
    shapes: list[Shape] = []
    for i, (words, width, fill, ink) in enumerate(reversed(_chips(snapshot, seat))):
        shapes += _chip(middle - width / 2, bottom - 18 - 21 * i, words, width, fill, ink)
    return shapes


def _chip(x: float, y: float, words: str, width: float, fill: str, ink: str) -> list[Shape]:
    return [Rect(x, y, width, 18, 6, fill), Words(x + width / 2, y + 9, words, 13, ink, "middle")]


def _colour(snapshot: Snapshot, seat: int) -> str:
    return SIDES[seat % 2] if snapshot["pairs"] else SIDES[0]


def _panel(snapshot: Snapshot, story: Story) -> list[Shape]:
    """Rules, deal, score, turn, last moves and result, from the top of the panel down."""
    x, end = _PANEL
    shapes: list[Shape] = [
        Words(x, 32, snapshot["rules"], 22, PALE),
        Words(x, 60, _WORDS["deal"].format(snapshot["deal_index"] + 1), 15, GREY),
    ]
    y = 88.0
    step = 28.0 if snapshot["pairs"] else 22.0
    for side, (name, points) in enumerate(zip(side_names(snapshot), snapshot["score"])):
        shapes.append(Words(x, y, name, 16, _colour(snapshot, side)))
        shapes.append(Words(end, y, str(points), 20, PALE, "end"))
        y += step
    result = [line for words in result_of(snapshot) for line in wrap(words, 24)]
    if not snapshot["over"]:
        y += 8
        shapes.append(Words(x, y, f"seat_{snapshot['to_move']} {_WORDS['turn']}", 17, GOLD))
        y += step
    shapes += _moves(snapshot, story, y + 8, HEIGHT - 24 - 26.0 * len(result))
    y = HEIGHT - 10 - 26.0 * len(result)
    for i, words in enumerate(result):
        shapes.append(Words(x, y + 26 * i, words, 17 if i < 2 else 14, GOLD if i < 2 else PALE))
    return shapes


def _moves(snapshot: Snapshot, story: Story, y: float, bottom: float) -> list[Shape]:
    """The last moves, as many as fit, the latest at the bottom."""
    x = _PANEL[0]
    shapes: list[Shape] = [Words(x, y, _WORDS["moves"], 14, GREY)]
    y += 24
    fit = max(1, min(_LAST, int((bottom - y) // 26)))
    for seat, move in list(zip(story.movers, snapshot["moves"]))[-fit:]:
        shapes.append(Words(x, y, f"seat_{seat}", 15, _colour(snapshot, seat)))
        if move == "pass":
            shapes.append(Words(x + 64, y, _WORDS["pass"], 15, PASSED_INK))
        else:
            tile = tile_index(move[:-1])
            shapes.append(Face(x + 64, y - 10, 40, 20, int(LOW[tile]), int(HIGH[tile])))
            shapes.append(Words(x + 120, y, {"L": "left", "R": "right"}[move[-1]], 15, PALE))
        y += 26
    return shapes
