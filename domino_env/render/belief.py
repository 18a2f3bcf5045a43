"""What a seat believes of the tiles it does not see, as text for a terminal of 80 columns."""

from collections.abc import Mapping, Sequence

WIDTH = 80  # columns
_CELL = 8  # columns of one seat in a block
_NAME = 5  # columns of the tile's name
_GAP = 3  # columns between blocks
_LEAST = 26  # columns of a block: it has room for where a tile is
_SHADES = "░▒▓"  # below a quarter, below a half, more
_TINY = 1e-12  # rounding; what is so near to certain is
_BOLD, _DIM = "1", "2"


def belief(
    tiles: Mapping[str, Sequence[float] | str],
    heads: Sequence[tuple[str, str]],
    color: bool = False,
    width: int = WIDTH,
) -> str:
    """Tiles down, seats across: a shade and a percentage for every tile that a seat may hold.

    A full block and 100 are certain, and so is a dot, which stands for a tile that the seat cannot hold; <1 and >99 are
    not.

    Args:
        tiles: name of a tile -> its probability at each head; or, for a tile that is seen, where it is.
        heads: of each column two words, one above the other.
        color: with terminal escape codes; without them the text is the same, only plain.
        width: columns that may be used; two blocks stand side by side where they fit.
    """
    block = max(_NAME + _CELL * len(heads), _LEAST)
    abreast = 2 if 2 * block + _GAP <= width else 1
    height = -(-len(tiles) // abreast)
    names = list(tiles)
    columns = [names[start : start + height] for start in range(0, len(names), height)]
    gap = " " * _GAP
    rows = []
    for line in (0, 1):
        head = " " * _NAME + "".join(f"{words[line]:<{_CELL}}" for words in heads)
        rows.append(gap.join(head.ljust(block) for _ in columns))
    for i in range(height):
        rows.append(gap.join(_row(column[i], tiles[column[i]], block, color) for column in columns if i < len(column)))
    return "".join(f"{row.rstrip()}\n" for row in rows)


def _row(name: str, where: Sequence[float] | str, width: int, color: bool) -> str:
    if isinstance(where, str):
        text = f"{name:<{_NAME}}{where}"[:width]
        return _paint(text, _DIM if color else "") + " " * (width - len(text))
    cells = [(_cell(value), color and value >= 0.5) for value in map(float, where)]
    row = "".join(_paint(cell, _BOLD if bold else "") + " " * (_CELL - len(cell)) for cell, bold in cells)
    return f"{name:<{_NAME}}{row}" + " " * (width - _NAME - _CELL * len(cells))


def _cell(value: float) -> str:
    if value < _TINY:
        return f"{'·':>5}"
    if value > 1 - _TINY:
        return "██100"
    shade = _SHADES[(value >= 0.25) + (value >= 0.5)]
    per_cent = "<1" if value < 0.01 else ">99" if value > 0.99 else f"{100 * value:.0f}"
    return f"{shade}{shade}{per_cent:>3}"


def _paint(text: str, code: str) -> str:
    return f"\033[{code}m{text}\033[0m" if code else text
