"""The table as text for a terminal of 80 columns: render mode "ansi"."""

import math
from collections.abc import Iterable, Mapping
from itertools import groupby, zip_longest
from textwrap import wrap

from domino_env.render.line import Move, Snapshot, Story, story_of
from domino_env.render.seats import Held, Place, Side, View, grown, lying, pile_of, places_of
from domino_env.render.snake import Grid, Heading, Snake, place
from domino_env.render.words import Words, result_of, side_names, words_of
from domino_env.tiles import tile_name

WIDTH = 80  # columns
_EDGE = 10  # columns of the seats on the left and on the right
_GRID = Grid(along=5, thick=1, slim=3, tall=3, width=WIDTH - 2 * _EDGE)
_TILE_WIDTH, _BACK, _TURNED = 5, "[░░░]", "▴ "  # columns of a tile; a tile from its back; before the turned one
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

    In a blind game an open tile is written [1|2], one that lies face down (1|2) where the viewer knows it, {1|2} where
    everyone has seen it.

    Args:
        snapshot: a plain record of one table, as `engine.snapshot(i)` gives it.
        view: None or "all" opens every hand; a seat sits at the bottom and sees no more than its observation holds.
        color: with terminal escape codes; without them the text is the same, only plain.
        lang: "en" or "ru", the language of the words around the table.
    Raises:
        ValueError: an unknown view or language, or moves that do not make the snapshot's line.
    """
    words = words_of(lang)
    story = story_of(snapshot)
    around = places_of(snapshot, story, view)
    end = grown(snapshot)
    only = words[f"only_{end}"] if end else None
    rows = [*_heading(snapshot, words), []]
    if around["top"]:
        rows += [*_abreast([_across(seat, words, only, WIDTH // len(around["top"])) for seat in around["top"]]), []]
    board = _board(place(story.line, _GRID), len(snapshot["moves"]) - 1)
    rows += _middle(board, around["left"], around["right"], words)
    for seat in around["bottom"]:
        rows += [[], *_abreast([_across(seat, words, only, WIDTH)])]
    rows += [[], _last_moves(story, words), *_legend(around, words)]
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


def _heading(snapshot: Snapshot, words: Words) -> list[list[Run]]:
    """Rules, deal, what nobody holds, and the score; in two lines where one is too long."""
    row: list[Run] = [(snapshot["rules"], _BOLD), (f"   {words['deal'].format(snapshot['deal_index'] + 1)}", "")]
    pile = pile_of(snapshot)
    row += [(f"   {words[pile[0]].format(pile[1])}", "")] if pile else []
    score: list[Run] = [(" : ".join(str(points) for points in snapshot["score"]), _BOLD)]
    if snapshot["pairs"]:
        one, two = side_names(snapshot, words)
        score = [(f"{one}  ", _DIM), *score, (f"  {two}", _DIM)]
    else:
        score = [(f"{words['score']}  ", _DIM), *score]
    if _width(row) + 3 + _width(score) > WIDTH:
        return [row, score]
    return [[*row, ("   ", ""), *score]]


def _tile(held: Held) -> list[Run]:
    if held.name is None:
        return [(_BACK, _DIM)]
    low, high = held.name.split("-")
    left, right, code = ("{", "}", "") if held.seen else ("(", ")", _DIM) if held.down else ("[", "]", "")
    return [(left, code), (low, _SUITS[int(low)]), ("|", _DIM), (high, _SUITS[int(high)]), (right, code)]


def _name(seat: Place) -> Run:
    return (f"▶ {seat.name}", _MOVER) if seat.moves else (f"  {seat.name}", "")


def _across(seat: Place, words: Words, only: str | None, width: int) -> list[list[Run]]:
    """A seat at the top or the bottom: its name, its notes, its hand below one another, in the middle of a width."""
    turn = f" {words['goes_on' if seat.laid else 'turn']}" if seat.moves else ""
    head: list[Run] = [_name(seat), (turn, _MOVER)]
    rows = [head]
    notes = [*([only] if only and seat.moves else []), *(note for _, note in seat.notes(words))]
    for note in notes:
        run = (f" · {note}", "")
        if _width(rows[-1]) + len(run[0]) > width - 2:
            rows.append([])
            run = (note, "")
        rows[-1].append(run)
    fit = min(2 * _PER_ROW, (width - 1) // _TILE_WIDTH)
    for start in range(0, len(seat.tiles), fit):
        rows.append([run for held in seat.tiles[start : start + fit] for run in _tile(held)])
    if seat.turned:
        rows.append([(_TURNED, _MOVER), *_tile(Held(seat.turned))])
    return [_centred(row, width) for row in rows]


def _centred(row: list[Run], width: int) -> list[Run]:
    before = (width - _width(row)) // 2
    return [(" " * before, ""), *row, (" " * (width - before - _width(row)), "")]


def _abreast(blocks: list[list[list[Run]]]) -> list[list[Run]]:
    """Seats side by side, each a block of rows of its own width."""
    rows = []
    for parts in zip_longest(*blocks):
        row: list[Run] = []
        for part, block in zip(parts, blocks, strict=True):
            row += part or [(" " * _width(block[0]), "")]
        rows.append(row)
    return rows


def _beside(seats: list[Place], words: Words, upwards: bool) -> list[list[Run]]:
    """The seats of the left (upwards) or the right side, one above the other; a row runs downwards."""
    rows: list[list[Run]] = []
    for seat in reversed(seats) if upwards else seats:
        rows += [[]] if rows else []
        rows.append([_name(seat)])
        rows += [[(f"  {part}", "")] for _, note in seat.notes(words) for part in wrap(note, _EDGE - 2)]
        rows += [[("  ", ""), *_tile(held)] for held in seat.tiles]
        rows += [[(_TURNED, _MOVER), *_tile(Held(seat.turned))]] if seat.turned else []
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


def _last_moves(story: Story, words: Words) -> list[Run]:
    """The last moves, as many as fit into the line; a seat is named where its turn begins."""
    head = (f"{words['moves']} ", _DIM)
    moves = story.moves[-_LAST:]
    while moves:
        row = [head]
        for i, move in enumerate(moves):
            named = move.first or i == 0
            row += [(f" {move.seat}:" if named else " ", _DIM), (_move(move, words), "")]
        if _width(row) <= WIDTH:
            return row
        moves = moves[1:]
    return []


def _move(move: Move, words: Words) -> str:
    """A lay as it is typed, 3-4L; any other move as a word."""
    if move.tile is None:
        return words[f"move_{move.kind}"]
    name = tile_name(move.tile)
    return f"{words['move_turn']}({name})" if move.kind == "turn" else name + "LR"[move.right]


def _legend(around: Mapping[Side, list[Place]], words: Words) -> list[list[Run]]:
    """What the brackets of tiles that lie in a row say, as far as such tiles lie there."""
    notes = [f"{'{·|·}' if key == 'down_seen' else '(·|·)'} {words[key]}" for key in lying(around)]
    return [[("   ".join(notes), _DIM)]] if notes else []
