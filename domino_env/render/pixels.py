"""The table as an array of pixels: render mode "rgb_array". Needs Pillow (extra `render`)."""

import importlib
import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from domino_env.render import scene
from domino_env.render.line import Snapshot
from domino_env.render.scene import Back, Face, Rect, Words
from domino_env.render.seats import View

_FINE = 4  # every small shape is drawn this many times larger and shrunk once, for smooth edges
_SMALLEST = 16  # pixels
_ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}


def rgb(
    snapshot: Snapshot,
    view: View = None,
    size: tuple[int, int] = (scene.WIDTH, scene.HEIGHT),
    lang: str = "en",
) -> np.ndarray:
    """The table as a picture, always with the line and all hands in the frame.

    Args:
        snapshot: a plain record of one table, as `engine.snapshot(i)` gives it.
        view: None or "all" opens every hand; a seat sits at the bottom and sees no more than its observation holds.
        size: width and height in pixels; the table is scaled to fit and centred.
        lang: "en" or "ru", the language of the words around the table.
    Returns:
        (height, width, 3) uint8, a new array.
    Raises:
        ImportError: without Pillow, or for Russian without pygame-ce, which brings the letters.
        ValueError: an unknown view or language, a size that is none, or moves that do not make the snapshot's line.
    """
    width, height = _check_size(size)
    shapes = scene.scene_of(snapshot, view, lang)
    scale = min(width / scene.WIDTH, height / scene.HEIGHT)
    left, top = (width - scale * scene.WIDTH) / 2, (height - scale * scene.HEIGHT) / 2
    image = _ground(width, height).copy()
    pen = _pillow("ImageDraw").Draw(image)
    for shape in shapes:
        x, y = left + scale * shape.x, top + scale * shape.y
        match shape:
            case Words(_, _, words, points, fill, anchor):
                # The middle of a capital letter, whose height is about 0.7 of the size.
                pen.text((x, y + 0.35 * scale * points), words, fill, _font(scale * points, lang), _ANCHORS[anchor])
            case Rect(_, _, w, h, r, fill):
                mask = _box(_at_least_one(scale * w), _at_least_one(scale * h), scale * r)
                image.paste(fill, (round(x), round(y)), mask)
            case Face() | Back():
                sprite = _sprite(shape._replace(x=0.0, y=0.0), scale)
                image.paste(sprite, (round(x), round(y)), sprite)
    return np.array(image)


def _check_size(size: object) -> tuple[int, int]:
    if isinstance(size, tuple | list) and len(size) == 2:
        width, height = size
        if all(isinstance(side, int | np.integer) and side >= _SMALLEST for side in size):
            return int(width), int(height)
    raise ValueError(f"size must be (width, height) in whole pixels, each at least {_SMALLEST}, got {size!r}")


def _at_least_one(length: float) -> int:
    return max(1, round(length))


def _pillow(name: str) -> Any:
    """A module of Pillow, imported only when a picture is asked for."""
    try:
        return importlib.import_module(f"PIL.{name}")
    except ImportError as error:
        raise ImportError("drawing the table as pixels needs Pillow: pip install domino-lab[render]") from error


@lru_cache(maxsize=64)
def _font(points: float, lang: str) -> Any:
    """A font that comes with a package, so that a picture does not depend on the fonts of the machine."""
    fonts = _pillow("ImageFont")
    if lang == "en":
        return fonts.load_default(max(1.0, points))
    spec = importlib.util.find_spec("pygame")  # Pillow's own font has Latin letters only
    if spec is None or spec.origin is None:
        raise ImportError(f"drawing words in {lang!r} as pixels needs pygame-ce: pip install domino-lab[render]")
    return fonts.truetype(str(Path(spec.origin).with_name("freesansbold.ttf")), max(1.0, 0.92 * points))


@lru_cache(maxsize=512)
def _box(w: int, h: int, r: float) -> Any:
    """A mask of a filled rectangle with round corners."""
    mask = _pillow("Image").new("L", (w * _FINE, h * _FINE))
    _pillow("ImageDraw").Draw(mask).rounded_rectangle((0, 0, w * _FINE - 1, h * _FINE - 1), r * _FINE, fill=255)
    return mask.reduce(_FINE)


@lru_cache(maxsize=1024)
def _sprite(tile: Face | Back, scale: float) -> Any:
    """A tile that lies at (0, 0), with a transparent outside."""
    w, h, fine = _at_least_one(scale * tile.w), _at_least_one(scale * tile.h), _FINE * scale
    body, edge, width = scene.plate_of(tile)
    image = _pillow("Image").new("RGB", (w * _FINE, h * _FINE), edge)
    pen = _pillow("ImageDraw").Draw(image)
    box = (width * fine, width * fine, w * _FINE - 1 - width * fine, h * _FINE - 1 - width * fine)
    pen.rounded_rectangle(box, max(0.0, scene.corner_of(tile) - width) * fine, fill=body)
    if isinstance(tile, Back):
        pen.polygon([(x * fine, y * fine) for x, y in scene.diamond_of(tile)], fill=scene.BACK_MARK)
    else:
        ends, colour, width = scene.groove_of(tile)
        pen.line([xy * fine for xy in ends], fill=colour, width=max(1, round(width * fine)))
        for x, y, r, fill in scene.pips_of(tile):
            pen.ellipse([(x - r) * fine, (y - r) * fine, (x + r) * fine, (y + r) * fine], fill=fill)
    image = image.reduce(_FINE)
    image.putalpha(_box(w, h, scale * scene.corner_of(tile)))
    return image


@lru_cache(maxsize=8)
def _ground(width: int, height: int) -> Any:
    """The empty table in its room; the felt grows darker towards the rim."""
    scale = min(width / scene.WIDTH, height / scene.HEIGHT)
    left, top = (width - scale * scene.WIDTH) / 2, (height - scale * scene.HEIGHT) / 2
    image = _pillow("Image").new("RGB", (width, height), scene.ROOM)
    rim, felt = scene.ground()
    for rect, fill in ((rim, rim.fill), (felt, _shade(felt, scale))):
        mask = _box(_at_least_one(scale * rect.w), _at_least_one(scale * rect.h), scale * rect.r)
        image.paste(fill, (round(left + scale * rect.x), round(top + scale * rect.y)), mask)
    return image


def _shade(felt: Rect, scale: float) -> Any:
    w, h = _at_least_one(scale * felt.w), _at_least_one(scale * felt.h)
    y, x = np.ogrid[:h, :w]
    # As the SVG's gradient: the edge's colour is reached at three quarters of the box.
    share = np.minimum(1.0, np.hypot((x + 0.5) / w - 0.5, (y + 0.5) / h - 0.5) / 0.75)[..., None]
    inner, outer = (np.array(_pillow("ImageColor").getrgb(colour)) for colour in (scene.FELT, scene.FELT_EDGE))
    return _pillow("Image").fromarray(np.rint(inner + (outer - inner) * share).astype(np.uint8))
