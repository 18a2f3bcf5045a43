"""The table as SVG: one self-contained picture that any browser shows."""

from xml.sax.saxutils import escape

from domino_env.render import scene
from domino_env.render.line import Snapshot
from domino_env.render.scene import Back, Face, Rect, Shape, Words
from domino_env.render.seats import View
from domino_env.render.words import words_of


def svg(snapshot: Snapshot, view: View = None, lang: str = "en") -> str:
    """The table as an SVG document without external resources.

    Args:
        snapshot: a plain record of one table, as `engine.snapshot(i)` gives it.
        view: None or "all" opens every hand; a seat sits at the bottom and sees no more than its observation holds.
            What is hidden is not in the document.
        lang: "en" or "ru", the language of the words around the table.
    Raises:
        ValueError: an unknown view or language, or moves that do not make the snapshot's line.
    """
    rim, felt = scene.ground()
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {scene.WIDTH} {scene.HEIGHT}" '
        f'width="{scene.WIDTH}" height="{scene.HEIGHT}" font-family="Helvetica, Arial, sans-serif">',
        f"<title>{escape(words_of(lang)['table'])}</title>",
        f'<defs><radialGradient id="felt" r="0.75"><stop offset="0" stop-color="{scene.FELT}"/>'
        f'<stop offset="1" stop-color="{scene.FELT_EDGE}"/></radialGradient></defs>',
        f'<rect width="{scene.WIDTH}" height="{scene.HEIGHT}" fill="{scene.ROOM}"/>',
        _shape(rim),
        _shape(felt._replace(fill="url(#felt)")),
        *(_shape(shape) for shape in scene.scene_of(snapshot, view, lang)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _shape(shape: Shape) -> str:
    match shape:
        case Rect(x, y, w, h, r, fill):
            return f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(w)}" height="{_n(h)}" rx="{_n(r)}" fill="{fill}"/>'
        case Words(x, y, words, size, fill, anchor):
            # y is the middle of a capital letter, whose height is about 0.7 of the size.
            place = f'x="{_n(x)}" y="{_n(y + 0.35 * size)}" font-size="{_n(size)}"'
            return f'<text {place} fill="{fill}" text-anchor="{anchor}">{escape(words)}</text>'
        case Back():
            return _back(shape)
        case Face():
            return _face(shape)


def _plate(tile: Face | Back) -> str:
    body, edge, width = scene.plate_of(tile)
    box = f'x="{_n(tile.x + width / 2)}" y="{_n(tile.y + width / 2)}" width="{_n(tile.w - width)}"'
    paint = f'fill="{body}" stroke="{edge}" stroke-width="{_n(width)}"'
    return f'<rect {box} height="{_n(tile.h - width)}" rx="{_n(scene.corner_of(tile) - width / 2)}" {paint}/>'


def _back(tile: Back) -> str:
    points = " ".join(f"{_n(tile.x + x)},{_n(tile.y + y)}" for x, y in scene.diamond_of(tile))
    return f'<g class="back">{_plate(tile)}<polygon points="{points}" fill="{scene.BACK_MARK}"/></g>'


def _face(tile: Face) -> str:
    parts = [_plate(tile)]
    (x1, y1, x2, y2), colour, width = scene.groove_of(tile)
    parts.append(
        f'<path d="M{_n(tile.x + x1)} {_n(tile.y + y1)}L{_n(tile.x + x2)} {_n(tile.y + y2)}" '
        f'stroke="{colour}" stroke-width="{_n(width)}"/>'
    )
    for pip in scene.pips_of(tile):
        centre = f'cx="{_n(tile.x + pip.x)}" cy="{_n(tile.y + pip.y)}"'
        parts.append(f'<circle {centre} r="{_n(pip.r)}" fill="{pip.fill}"/>')
    look = "tile" if tile.look in ("open", "fresh") else tile.look
    return f'<g class="{look}" data-halves="{tile.first}-{tile.second}">{"".join(parts)}</g>'
