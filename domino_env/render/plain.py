"""The table as text for a terminal of 80 columns: render mode "ansi"."""

import math
from collections.abc import Iterable
from itertools import groupby
from textwrap import wrap

from domino_env.render.line import Snapshot, Story, story_of
from domino_env.render.seats import Place, View, places_of
from domino_env.render.snake import Grid, Heading, Snake, place
from domino_env.render.words import Words, result_of, side_names, words_of

WIDTH = 80  # columns
_EDGE = 10  # columns of the seats on the left and on the right
_GRID = Grid(along=5, thick=1, slim=3, tall=3, width=WIDTH - 2 * _EDGE)
_TILE, _BACK = "[{}|{}]", "[░░░]"
_PER_ROW = 7  # tiles of a hand side by side
_LEAST = 9  # rows of the board, so that a short line does not make the table jump
_LAST = 8  # moves shown
_MARKS: dict[Heading, str] = {"left": "◂", "right": "▸", "up": "▴", "down": "▾"}

# Escape codes (SGR), used only with color=True. Suits have the same hues as on the drawn tiles.
_SUITS = ("38;5;245", "38;5;39", "38;5;77", "38;5;203", "38;5;141", "38;5;214", "38;5;116")
_BOLD, _DIM, _MOVER, _END, _NEW = "1", "2", "1;33", "1;33", "1;7"

Run = tuple[str, str]  # some text and its escape code, "" for none


def text(snapshot: Snapshot, view: View = None, color: bool = False, lang: str = "en") -> str:
    """The table as lines of text: score, the hands around the line, the last moves, the result once there is one.

    Args:
        snapshot: a plain record of one table, as `engine.snapshot(i)` gives it.
        view: None or "all" opens every hand; a seat sits at the bottom and sees its own hand only.
        color: with terminal escape codes; without them the text is the same, only plain.
        lang: "en" or "ru", the language of the words around the table.
    Raises:
        ValueError: an unknown view or language, or moves that do not make the snapshot's line.
    """
    words = words_of(lang)
    story = story_of(snapshot)
    around = places_of(snapshot, story, view)
    rows: list[list[Run]] = [_heading(snapshot, words), []]
    for seat in around["top"]:
        rows += [*_across(seat, words), []]
    board = _board(place(story.line, _GRID), len(snapshot["moves"]) - 1)
    rows += _middle(board, around["left"], around["right"], words)
    for seat in around["bottom"]:
        rows += [[], *_across(seat, words)]
    rows += [[], _last_moves(snapshot, story, words)]
    result = result_of(snapshot, words)
    for part in (result[:2], result[2:]):
        rows += [[(line, _BOLD)] for line in wrap("   ".join(part), WIDTH)]
    return "\n".join(_join(row, color) for row in rows) + "\n"


def _join(row: Iterable[Run], color: bool) -> str:
    line = ""
    for code, runs in groupby(row, key=lambda run: run[1] if color else ""):
        part = "".join(run[0] for run in runs)
        line += f"\033[{code}m{part}\033[0m" if code and part else part
    return line.rstrip()


def _width(row: Iterable[Run]) -> int:
    return sum(len(part) for part, _ in row)


def _heading(snapshot: Snapshot, words: Words) -> list[Run]:
    row: list[Run] = [(snapshot["rules"], _BOLD), (f"   {words['deal'].format(snapshot['deal_index'] + 1)}   ", "")]
    score = (" : ".join(str(points) for points in snapshot["score"]), _BOLD)
    if snapshot["pairs"]:
        one, two = side_names(snapshot, words)
        return [*row, (f"{one}  ", _DIM), score, (f"  {two}", _DIM)]
    return [*row, (f"{words['score']}  ", _DIM), score]


def _tile(name: str | None) -> list[Run]:
    if name is None:
        return [(_BACK, _DIM)]
    low, high = name.split("-")
    return [("[", ""), (low, _SUITS[int(low)]), ("|", _DIM), (high, _SUITS[int(high)]), ("]", "")]


def _name(seat: Place) -> Run:
    return (f"▶ {seat.name}", _MOVER) if seat.moves else (f"  {seat.name}", "")


def _notes(seat: Place, words: Words) -> list[str]:
    notes = [words["leads"]] if seat.leads else []
    notes += [words["pass"]] if seat.passed else []
    return notes + ([words["no"].format(" ".join(map(str, seat.passed_on)))] if seat.passed_on else [])


def _across(seat: Place, words: Words) -> list[list[Run]]:
    """A seat at the top or the bottom: its name, its hand, its notes below one another, in the middle."""
    turn = f" {words['turn']}" if seat.moves else ""
    head: list[Run] = [_name(seat), (turn, _MOVER)]
    head += [(f" · {note}", "") for note in _notes(seat, words)]
    rows = [head]
    for start in range(0, len(seat.tiles), 2 * _PER_ROW):
        row: list[Run] = []
        for name in seat.tiles[start : start + 2 * _PER_ROW]:
            row += _tile(name)
        rows.append(row)
    return [[(" " * ((WIDTH - _width(row)) // 2), ""), *row] for row in rows]


def _beside(seats: list[Place], words: Words, upwards: bool) -> list[list[Run]]:
    """The seats of the left (upwards) or the right side, one above the other."""
    rows: list[list[Run]] = []
    for seat in reversed(seats) if upwards else seats:
        rows += [[]] if rows else []
        rows.append([_name(seat)])
        rows += [[(f"  {part}", "")] for note in _notes(seat, words) for part in wrap(note, _EDGE - 2)]
        rows += [[("  ", ""), *_tile(name)] for name in seat.tiles]
    return rows


def _middle(board: list[list[Run]], left: list[Place], right: list[Place], words: Words) -> list[list[Run]]:
    """Board and side seats next to each other, each in the middle of the height."""
    columns = [_beside(left, words, True), board, _beside(right, words, False)]
    height = max(_LEAST, *(len(column) for column in columns))
    padded: list[list[list[Run]]] = []
    for column in columns:
        above = (height - len(column)) // 2
        padded.append([[] for _ in range(above)] + column + [[] for _ in range(height - above - len(column))])
    rows: list[list[Run]] = []
    for left_row, board_row, right_row in zip(*padded, strict=True):
        row: list[Run] = [*left_row, (" " * (_EDGE - _width(left_row)), ""), *board_row]
        row.append((" " * (WIDTH - _EDGE - _width(row)), ""))
        rows.append([*row, *right_row])
    return rows


def _board(snake: Snake, last: int) -> list[list[Run]]:
    """The line as rows of the board's width; empty without a line. `last`: the ply of the latest move."""
    cells: dict[tuple[int, int], Run] = {}

    def put(x: int, y: int, line: str, code: str) -> None:
        cells.update({(y, x + i): (char, code) for i, char in enumerate(line)})

    for tile in snake.tiles:
        edge = _NEW if tile.ply == last else ""
        if tile.standing:
            put(tile.x, tile.y, "╭ ╮", edge)
            put(tile.x, tile.y + 1, "├─┤", edge)
            put(tile.x, tile.y + 2, "╰ ╯", edge)
            halves = ((tile.x + 1, tile.y, tile.first), (tile.x + 1, tile.y + 2, tile.second))
        else:
            put(tile.x, tile.y, "[ | ]", edge)
            halves = ((tile.x + 1, tile.y, tile.first), (tile.x + 3, tile.y, tile.second))
        for x, y, pips in halves:
            put(x, y, str(pips), edge or _SUITS[pips])
    for letter, end in zip("LR", snake.ends or (), strict=False):
        x, y = math.floor(end.x), math.floor(end.y)
        mark = _MARKS[end.heading]
        if end.heading == "left":
            put(x - 2, y, letter + mark, _END)
        elif end.heading == "right":
            put(x, y, mark + letter, _END)
        else:
            put(x, y - (end.heading == "up"), mark + letter, _END)
    if not cells:
        return []
    ys = [y for y, _ in cells]
    half = _GRID.width // 2
    return [[cells.get((y, x), (" ", "")) for x in range(-half, half)] for y in range(min(ys), max(ys) + 1)]


def _last_moves(snapshot: Snapshot, story: Story, words: Words) -> list[Run]:
    moves = list(zip(story.movers, snapshot["moves"], strict=True))[-_LAST:]
    row: list[Run] = [(f"{words['moves']} ", _DIM)] if moves else []
    for seat, move in moves:
        row += [(f" {seat}:", _DIM), (words["pass"] if move == "pass" else move, "")]
    return row
