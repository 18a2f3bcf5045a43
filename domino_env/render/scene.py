"""The table as a list of shapes on a frame of 960 x 720, which the SVG and the RGB renderer only have to paint.

On the left the table: the line in the middle, the hands around it, the mover's hand framed. On the right a panel:
rules, deal, score, whose turn it is, the last moves, the result. Places and sizes are in pixels of that frame.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from domino_env.render.line import Move, Snapshot, Story, story_of
from domino_env.render.seats import Held, Place, Side, View, grown, lying, pile_of, places_of
from domino_env.render.snake import PICTURE, PICTURE_HEIGHT, Snake, place
from domino_env.render.words import Words as Phrases, result_of, side_names, words_of
from domino_env.tiles import HIGH, LOW, tile_index

WIDTH, HEIGHT = 960, 720

# Colours.
ROOM, RIM, FELT, FELT_EDGE = "#1d2421", "#6b4426", "#2f7d54", "#1f5c3d"
IVORY, IVORY_EDGE, BACK, BACK_EDGE, BACK_MARK = "#fbf6e6", "#b9ab86", "#3b5575", "#22344b", "#5d7da3"
DOWN_PIPS = "#c3d3e6"  # of a tile that lies face down, as the viewer knows it
SHADOW, GOLD, INK, PALE, GREY = "#194a31", "#ffd34d", "#22201a", "#f3f1e7", "#a9b8ae"
PASSED, PASSED_INK = "#b5443a", "#ff9d8f"
# The two pairs; where each plays for itself, the seats.
SIDES = ("#7cc4ff", "#ffb27a", "#9fe08f", "#e2a9f5", "#74e0d0", "#ff9fb5", "#d6cfae", "#b9b6ff")
PIPS = ("", "#1f66ad", "#1d8044", "#b3261e", "#6b3fa0", "#b8620a", "#222222")  # one ink for each number

# Places. The table is a square-ish field, the panel a column.
_TABLE = (8.0, 8.0, 738.0, 704.0)
_CENTRE = (377.0, 360.0)
_CELL = 16.0  # a cell of the snake: half of half a tile
_HALF = {"top": 30.0, "bottom": 30.0, "left": 25.0, "right": 25.0}  # half a tile of a hand, at most
_GAP = 3.0  # between tiles of a hand
_STRIP = 20.0  # from the frame of the table to the hands
_HEAD = 70.0  # for the chips above the hand of a side seat
_CHIP_SIZE, _CHIP_MOST = 13.0, 66.0  # of the words in a chip; width of a chip at the side, at most
_PANEL = (766.0, 946.0)  # left and right
_LAST = 12  # moves in the panel
_APART = 12.0  # between a row and the tile that was turned up
_NARROW, _WIDE = set(" .,:;'|!()ijlIft1"), set("mwMWжмшщфыюЖМШЩФЫЮ")  # letters of unusual width


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
    # open on the line or in a hand | fresh: the latest move | down: lies face down, but the viewer knows it | seen: and
    # so does everyone
    look: Literal["open", "fresh", "down", "seen"] = "open"

    @property
    def lies(self) -> bool:
        """Whether it lies face down."""
        return self.look in ("down", "seen")


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
            pips.append(Pip(x, y, r, DOWN_PIPS if face.lies else PIPS[number]))
    return pips


def plate_of(tile: Face | Back) -> tuple[str, str, float]:
    """Body colour, edge colour and width of the edge, which lies inside the tile's box."""
    if isinstance(tile, Back) or tile.lies:
        return BACK, BACK_EDGE, 1.5
    return (IVORY, GOLD, 3.0) if tile.look == "fresh" else (IVORY, IVORY_EDGE, 1.0)


def corner_of(tile: Face | Back) -> float:
    """Radius of a tile's corners."""
    return 0.16 * min(tile.w, tile.h)


def groove_of(face: Face) -> tuple[tuple[float, float, float, float], str, float]:
    """The line between the halves, from (x, y) to (x, y), measured from the tile's left top corner; colour and width.

    It is golden on a tile that lies face down though everyone has seen it.
    """
    colour, width = (GOLD, 2.5) if face.look == "seen" else (BACK_MARK if face.lies else IVORY_EDGE, 1.2)
    if face.h > face.w:
        return (0.14 * face.w, face.h / 2, 0.86 * face.w, face.h / 2), colour, width
    return (face.w / 2, 0.14 * face.h, face.w / 2, 0.86 * face.h), colour, width


def diamond_of(back: Back) -> list[tuple[float, float]]:
    """The corners of the mark on a back, measured from the tile's left top corner."""
    x, y, dx, dy = back.w / 2, back.h / 2, 0.3 * back.w, 0.3 * back.h
    return [(x - dx, y), (x, y - dy), (x + dx, y), (x, y + dy)]


def scene_of(snapshot: Snapshot, view: View = None, lang: str = "en") -> list[Shape]:
    """All shapes of a table, back to front, without the ground (rim and felt), which never changes.

    view: None or "all" opens every hand, a seat sits at the bottom and sees no more than its observation holds.
    lang: of the words. Raises ValueError on an unknown view or language or moves that do not make the snapshot's line.
    """
    words = words_of(lang)
    story = story_of(snapshot)
    around = places_of(snapshot, story, view)
    shapes = _line(place(story.line), len(snapshot["moves"]) - 1, grown(snapshot))
    for side, seats in around.items():
        shapes += _side(snapshot, side, seats, words)
    return shapes + _panel(snapshot, story, around, words)


def ground() -> list[Rect]:
    """The rim of the table under the felt, and the felt."""
    x, y, w, h = _TABLE
    return [Rect(x, y, w, h, 26, RIM), Rect(x + 8, y + 8, w - 16, h - 16, 19, FELT)]


def _shadowed(tiles: list[Face | Back], depth: float) -> list[Shape]:
    """Tiles above their shadows; no shadow falls on a neighbour."""
    return [*(Rect(t.x + depth, t.y + depth, t.w, t.h, corner_of(t), SHADOW) for t in tiles), *tiles]


def _line(snake: Snake, last: int, only: Literal["left", "right"] | None) -> list[Shape]:
    """The line with the marks of its ends; pale where the turn is bound to the other one (`only`)."""
    # Nearly all tiles on one arm need a row more than there is room for: the line is then drawn smaller.
    cell = _CELL * min(1.0, PICTURE_HEIGHT / 2 / max(snake.reach(), 1.0))
    x0, y0 = _CENTRE[0], _CENTRE[1] - PICTURE.thick * cell / 2
    tiles: list[Face | Back] = [
        Face(
            x0 + t.x * cell,
            y0 + t.y * cell,
            t.w * cell - 1,
            t.h * cell - 1,
            t.first,
            t.second,
            "fresh" if t.ply == last else "open",
        )
        for t in snake.tiles
    ]
    shapes = _shadowed(tiles, 2.5)
    for which, end in zip(("left", "right"), snake.ends or ()):
        x, y = x0 + end.x * cell, y0 + end.y * cell
        dx, dy = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}[end.heading]
        r = 10.0
        x, y = x + dx * (r + 4) - 0.5, y + dy * (r + 4) - 0.5
        fill = GOLD if only in (None, which) else GREY
        shapes += [Rect(x - r, y - r, 2 * r, 2 * r, r, fill), Words(x, y, which[0].upper(), 14, INK, "middle")]
    return shapes


def _side(snapshot: Snapshot, side: Side, seats: list[Place], words: Phrases) -> list[Shape]:
    """The hands of one side of the table with what is said of their seats."""
    x0, y0, w, h = _TABLE
    across = side in ("top", "bottom")
    room = ((w - 120) if across else (h - 150)) / max(len(seats), 1)
    shapes: list[Shape] = []
    for i, seat in enumerate(reversed(seats) if side == "left" else seats):
        # The largest hand that fits sets the size; on the sides it stays where it is while tiles go.
        count = len(seat.tiles) + (seat.turned is not None)
        most = max(len(snapshot["dealt"][seat.seat]), count, 1)
        apart = _APART if "rows" in snapshot else 0.0
        half = min(_HALF[side], (room - 24 - apart - (0 if across else _HEAD) + _GAP) / most - _GAP)
        middle = room * (i + 0.5)
        chips = _chips(snapshot, seat, words)
        if across:
            length = (half + _GAP) * max(count, 1) - _GAP + (apart if seat.turned else 0)
            x = x0 + 60 + middle - length / 2
            y = y0 + _STRIP if side == "top" else y0 + h - _STRIP - 2 * half
            below = y + 2 * half + 11 if side == "top" else y - 29
            said = _row_of_chips(chips, x + length / 2, below, room - 8)
        else:
            length = (half + _GAP) * most - _GAP + apart
            x = x0 + _STRIP if side == "left" else x0 + w - _STRIP - 2 * half
            y = y0 + 75 + middle - (length - _HEAD) / 2
            said = _column_of_chips(chips, x + half, y - 11)
        shapes += [*_hand(seat, x, y, across, half), *said]
    return shapes


def _hand(seat: Place, x: float, y: float, standing: bool, half: float) -> list[Shape]:
    """The tiles of a hand from (x, y) to the right (standing) or downwards, framed in gold where it is to move.

    The tile that was turned up lies behind them, a little apart.
    """
    w, h = (half, 2 * half) if standing else (2 * half, half)
    step = half + _GAP
    places = [(held, i * step) for i, held in enumerate(seat.tiles)]
    tiles = [_held(held, x + far * standing, y + far * (not standing), w, h) for held, far in places]
    frame: list[Shape] = []
    if seat.moves and tiles:
        frame = _framed(x, y, tiles[-1].x + w - x, tiles[-1].y + h - y)
    if seat.turned:
        far = len(tiles) * step + (_APART if tiles else 0.0)
        tile = tile_index(seat.turned)
        left, top = x + far * standing, y + far * (not standing)
        tiles.append(Face(left, top, w, h, int(LOW[tile]), int(HIGH[tile]), "fresh"))
    return frame + _shadowed(tiles, 2)


def _held(held: Held, x: float, y: float, w: float, h: float) -> Face | Back:
    if held.name is None:
        return Back(x, y, w, h)
    tile = tile_index(held.name)
    return Face(x, y, w, h, int(LOW[tile]), int(HIGH[tile]), "seen" if held.seen else "down" if held.down else "open")


def _framed(x: float, y: float, w: float, h: float) -> list[Shape]:
    return [
        Rect(x - 6, y - 6, w + 12, h + 12, 8, GOLD),
        Rect(x - 4, y - 4, w + 8, h + 8, 6, FELT_EDGE),
    ]


_CHIPS = {  # key of a note -> fill and ink of its chip
    "leads": (GOLD, INK),
    "laid": (IVORY, INK),
    "pass": (PASSED, PALE),
    "declined": (PASSED, PALE),
    "drew": (BACK, PALE),
    "no": (FELT_EDGE, PALE),
}


def width_of(words: str, size: float) -> float:
    """About how wide a line of text is: half of its size a letter, less or more where the letter is narrow or wide."""
    return size * sum(0.3 if c in _NARROW else 0.85 if c in _WIDE else 0.6 if c > "~" else 0.56 for c in words)


def _chips(snapshot: Snapshot, seat: Place, words: Phrases) -> list[tuple[str, float, str, str]]:
    """What is said of a seat: words, width, fill and ink of each chip."""
    chips = [(seat.name, 56.0, _colour(snapshot, seat.seat), INK)]
    for key, note in seat.notes(words):
        line = (
            words["no"].format("".join(map(str, seat.passed_on))) if key == "no" and len(seat.passed_on) > 3 else note
        )
        chips.append((line, width_of(line, _CHIP_SIZE) + 12, *_CHIPS[key]))
    return chips


def _row_of_chips(chips: list[tuple[str, float, str, str]], middle: float, y: float, room: float) -> list[Shape]:
    """Chips side by side, smaller where the room is too narrow."""
    length = sum(width + 4 for _, width, _, _ in chips) - 4
    scale = min(1.0, room / length)
    x = middle - scale * length / 2
    shapes: list[Shape] = []
    for note, width, fill, ink in chips:
        shapes += _chip(x, y, note, scale * width, fill, ink, scale)
        x += scale * (width + 4)
    return shapes


def _column_of_chips(chips: list[tuple[str, float, str, str]], middle: float, bottom: float) -> list[Shape]:
    """Chips one above the other."""
    shapes: list[Shape] = []
    for i, (note, width, fill, ink) in enumerate(reversed(chips)):
        scale = min(1.0, _CHIP_MOST / width)
        shapes += _chip(middle - scale * width / 2, bottom - 18 - 21 * i, note, scale * width, fill, ink, scale)
    return shapes


def _chip(x: float, y: float, words: str, width: float, fill: str, ink: str, scale: float) -> list[Shape]:
    return [
        Rect(x, y, width, 18, 6, fill),
        Words(x + width / 2, y + 9, words, scale * _CHIP_SIZE, ink, "middle"),
    ]


def _colour(snapshot: Snapshot, seat: int) -> str:
    return SIDES[seat % 2 if snapshot["pairs"] else seat]


def _panel(snapshot: Snapshot, story: Story, around: Mapping[Side, list[Place]], words: Phrases) -> list[Shape]:
    """Rules, deal, tiles apart, score, turn, last moves, what the tiles' looks say and result, from the top down."""
    x, end = _PANEL
    deal = words["deal"].format(snapshot["deal_index"] + 1)
    shapes: list[Shape] = [
        Words(x, 32, snapshot["rules"], 22, PALE),
        Words(x, 60, deal, 15, GREY),
    ]
    y = 88.0
    pile = pile_of(snapshot)
    if pile:
        apart = words[pile[0]].format(pile[1])
        narrow = width_of(deal, 15) + width_of(apart, 15) + 10 > end - x
        shapes.append(Words(end, 80 if narrow else 60, apart, 15, GREY, "end"))
        y += 20 * narrow
    step = 28.0 if snapshot["pairs"] else 22.0
    for side, (name, points) in enumerate(zip(side_names(snapshot, words), snapshot["score"])):
        shapes.append(Words(x, y, name, 16, _colour(snapshot, side)))
        shapes.append(Words(end, y, str(points), 20, PALE, "end"))
        y += step
    if not snapshot["over"]:
        y += 8
        turn = words["goes_on" if story.laid else "turn"]
        shapes.append(Words(x, y, f"seat_{snapshot['to_move']} {turn}", 17, GOLD))
        only = grown(snapshot)
        if only:
            y += 20
            shapes.append(Words(x, y, words[f"only_{only}"], 14, GREY))
        y += step
    result = [
        (line, size, gap)
        for part, (size, gap) in zip(result_of(snapshot, words), ((17, 26.0), (17, 26.0), (14, 20.0), (14, 20.0)))
        for line in _lines(part, size, end - x)
    ]
    notes = [(key, line) for key in lying(around) for line in _lines(words[key], 13, end - x - 50)]
    bottom = HEIGHT - 10.0
    for line, size, gap in reversed(result):
        bottom -= gap
        shapes.append(Words(x, bottom, line, size, GOLD if size == 17 else PALE))
    bottom -= 22
    for i, (key, line) in reversed(list(enumerate(notes))):
        bottom -= 20
        shapes.append(Words(x + 50, bottom + 10, line, 13, GREY))
        if i == 0 or notes[i - 1][0] != key:
            shapes.append(Face(x, bottom, 40, 20, 1, 2, "seen" if key == "down_seen" else "down"))
            bottom -= 6
    return shapes + _moves(snapshot, story, words, y + 8, bottom)


def _lines(words: str, size: float, width: float) -> list[str]:
    """Words broken into lines of a width; a colon stays with what it follows."""
    lines = [""]
    for word in words.replace(" :", "\n:").split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and width_of(longer, size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return [line.replace("\n", " ") for line in lines]


def _moves(snapshot: Snapshot, story: Story, words: Phrases, y: float, bottom: float) -> list[Shape]:
    """The last moves, as many as fit, the latest at the bottom; a seat is named where its turn begins."""
    x = _PANEL[0]
    shapes: list[Shape] = [Words(x, y, words["moves"], 14, GREY)]
    y += 24
    fit = max(1, min(_LAST, int((bottom - y) // 26)))
    for i, move in enumerate(story.moves[-fit:]):
        if move.first or i == 0:
            shapes.append(Words(x, y, f"seat_{move.seat}", 15, _colour(snapshot, move.seat)))
        shapes += _move(move, words, x + 64, y)
        y += 26
    return shapes


def _move(move: Move, words: Phrases, x: float, y: float) -> list[Shape]:
    if move.tile is None:
        key = {"draw": "drew", "decline": "declined"}.get(move.kind, f"move_{move.kind}")
        return [Words(x, y, words[key], 15, PASSED_INK if move.kind == "pass" else GREY)]
    said = "turned" if move.kind == "turn" else "to_right" if move.right else "to_left"
    tile = Face(x, y - 10, 40, 20, int(LOW[move.tile]), int(HIGH[move.tile]))
    return [tile, Words(x + 56, y, words[said], 15, PALE)]
