"""The table as an array of pixels: render mode "rgb_array". Needs Pillow (extra `render`)."""

from functools import lru_cache
from types import ModuleType

import numpy as np

from domino_env.render import scene
from domino_env.render.line import Snapshot
from domino_env.render.scene import Back, Face, Rect, Words
from domino_env.render.seats import View

_FINE = 4  # every small shape is drawn this many times larger and shrunk once, for smooth edges
_SMALLEST = 16  # pixels


def rgb(snapshot: Snapshot, view: View = None, size: tuple[int, int] = (scene.WIDTH, scene.HEIGHT)) -> np.ndarray:
    """The table as a picture, always with the line and all hands in the frame.

    Args:
        snapshot: a plain record of one table, as `engine.snapshot(i)` gives it.
        view: None or "all" opens every hand; a seat sits at the bottom and sees its own hand only.
        size: width and height in pixels; the table is scaled to fit and centred.
    Returns:
        (height, width, 3) uint8, a new array.
    Raises:
        ImportError: without Pillow.
        ValueError: an unknown view, a size that is none, or moves that do not make the snapshot's line.
    """
    width, height = size
    if not all(isinstance(side, int | np.integer) and side >= _SMALLEST for side in size):
        raise ValueError(f"size must be two whole numbers of pixels, each at least {_SMALLEST}, got {size!r}")
    image_module = _pillow("Image")
    shapes = scene.scene_of(snapshot, view)
    scale = min(width / scene.WIDTH, height / scene.HEIGHT)
    left, top = (width - scale * scene.WIDTH) / 2, (height - scale * scene.HEIGHT) / 2
    image = image_module.fromarray(_ground(int(width), int(height)))
    pen = _pillow("ImageDraw").Draw(image)
    for shape in shapes:
        x, y = left + scale * shape.x, top + scale * shape.y
        match shape:
            case Words(_, _, words, points, fill, anchor):
                font = _font(scale * points)
                # Pillow's own middle takes account of letters that hang down; ours is that of a capital letter.
                pen.text((x, y + 0.35 * scale * points), words, fill, font, _ANCHORS[anchor])
            case Rect(_, _, w, h, r, fill):
                px, py = round(x), round(y)
                mask = _box(max(1, round(x + scale * w) - px), max(1, round(y + scale * h) - py), scale * r)
                image.paste(fill, (px, py), mask)
            case Face() | Back():
                px, py = round(x), round(y)
                sprite = _sprite(shape._replace(x=0.0, y=0.0), scale)
                image.paste(sprite, (px, py), sprite)
    return np.array(image)


_ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}


def _pillow(name: str) -> ModuleType:
    """A module of Pillow, imported only when a picture is asked for."""
    try:
        import importlib

        return importlib.import_module(f"PIL.{name}")
    except ImportError as error:
        raise ImportError("drawing the table as pixels needs Pillow: pip install domino-lab[render]") from error
