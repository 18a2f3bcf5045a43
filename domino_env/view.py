"""What the env views share: names and spaces of the seats, one seat's observation, checks of an action, drawing.

A view of one table is a batch of one row; every view takes what it shows from the engine and keeps no rules of its own.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from domino_env.engine import Engine
from domino_env.rows import RowEngine
from domino_env.rules import Rules
from domino_env.solo import OneTable
from domino_env.tiles import NUM_TILES, is_whole

Observation = dict[str, npt.NDArray[Any]]  # observation uint8, action_mask int8 and, when asked for, history int16


def has_display() -> bool:
    """Whether a window can be opened here: a desktop, or a video driver named in SDL_VIDEODRIVER."""
    desktop = sys.platform in ("win32", "darwin") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    return bool(desktop or os.environ.get("SDL_VIDEODRIVER"))


# A mode that would fail is not offered: a window needs a display.
RENDER_MODES = [*(["human"] if has_display() else []), "ansi", "rgb_array"]


def fresh_seed() -> int:
    """A seed nobody chose, for an env whose first reset has none: it, too, begins with deal 0 (S2)."""
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])


def seat_names(rules: Rules) -> list[str]:
    """Agents of a game in clockwise order: seat_0, seat_1, ..."""
    return [f"seat_{seat}" for seat in range(rules.seats)]


def seat_space(engine: Engine, history: bool) -> spaces.Dict:
    """Space of one seat's observation: `observation` uint8, `action_mask` int8, `history` int16 (-1 where none yet)."""
    parts: dict[str, spaces.Space[Any]] = {
        "observation": spaces.Box(0, 1, (engine.layout.size,), np.uint8),
        "action_mask": spaces.Box(0, 1, (engine.num_actions,), np.int8),
    }
    if history:
        parts["history"] = spaces.Box(-1, np.iinfo(np.int16).max, (engine.rules.max_plies,), np.int16)
    return spaces.Dict(parts)


def seat_view(table: OneTable, seat: int, history: bool) -> Observation:
    """What a seat sees of a table, in new arrays; off turn its mask allows only the pass."""
    observation, mask = table.see(seat)
    view: Observation = {"observation": observation, "action_mask": mask}
    if history:
        view["history"] = table.history(seat)[0]
    return view


class Actions(spaces.Discrete):
    """The actions of one seat. Samples by a mask are uniform, as in Discrete, and ten times faster.

    Args:
        num_actions: how many there are.
        legal: gives the seat's own mask, which then stands in for a mask that is not given: drivers that know no masks
            (PettingZoo's parallel_seed_test is one) then play the game instead of breaking it.
    """

    def __init__(self, num_actions: int, legal: Callable[[], npt.NDArray[np.int8]] | None = None) -> None:
        super().__init__(num_actions)
        self._own = legal

    def contains(self, x: Any) -> bool:
        """Whether `x` is an action; True and False, which Discrete takes for 1 and 0, are none."""
        return not isinstance(x, bool) and super().contains(x)

    def sample(self, mask: Any = None, probability: Any = None) -> Any:
        """One action, np.int64, by the mask (int8) or the probabilities given."""
        if mask is None and probability is None and self._own is not None:
            mask = self._own()
        if probability is None and isinstance(mask, np.ndarray) and mask.dtype == np.int8 and mask.shape == (self.n,):
            legal = mask.nonzero()[0]
            if len(legal):
                return legal[int(self.np_random.random() * len(legal))]
        return super().sample(mask, probability)


def broken_off(engine: Engine) -> npt.NDArray[np.bool_]:
    """(N,) bool, episodes that the last step broke off (R8). A match is never: it goes on, or ends with that deal."""
    return engine.truncated() if engine.episode == "deal" else np.zeros(engine.num_envs, np.bool_)


def table_space(engine: Engine) -> spaces.Box:
    """Space of the whole table, see `table_state`."""
    seats = engine.rules.seats
    places = seats - 1
    if isinstance(engine, RowEngine):
        places = seats * engine.rows().shape[2] + engine.rules.leftover
    return spaces.Box(0, 1, (engine.layout.size + NUM_TILES * places,), np.uint8)


def table_state(table: OneTable) -> npt.NDArray[np.uint8]:
    """All that there is to know of a table: seat_0's observation, then what no seat sees.

    Returns:
        (size,) uint8, 0 or 1. On a line 28 bits follow for each further seat's hand. In a blind game 28 bits for each
        place of each seat's row, the tile to be turned first in the first one, then 28 for each place of the stock, the
        tile to be drawn first in the first one; a place where no tile lies is all 0.
    """
    seen = table.see(0)[0]
    if isinstance(table, RowEngine):
        tiles = np.concatenate([table.rows()[0].ravel(), table.stock()[0]])
        return np.concatenate([seen, (tiles[:, None] == np.arange(NUM_TILES)).view(np.uint8).ravel()])
    others = np.ascontiguousarray(table.hands()[0, 1:], dtype="<u4").view(np.uint8).reshape(-1, 4)
    bits = np.unpackbits(others, axis=1, bitorder="little")[:, :NUM_TILES]
    return np.concatenate([seen, bits.ravel()])


_PLAIN = (int, np.int64)


def action_id(action: Any, num_actions: int) -> int:
    """A single action as a Python int.

    Args:
        action: int, any NumPy integer, or a 0-d integer array.
        num_actions: how many actions there are.

    Raises:
        ValueError: of another type or shape, or there is no such action.
    """
    if type(action) in _PLAIN and 0 <= action < num_actions:  # the usual case, and the quick one
        return int(action)
    kind = getattr(action, "dtype", None)
    if not is_whole(action) and (kind is None or kind.kind not in "iu" or np.shape(action) != ()):
        last = num_actions - 1
        raise ValueError(f"action {action!r} must be one whole number in 0..{last} (an int or an integer scalar)")
    number = int(action)
    if not 0 <= number < num_actions:
        raise ValueError(f"action {number} is out of range: actions are 0..{num_actions - 1}")
    return number


def action_ids(actions: Any, rows: int, num_actions: int) -> npt.NDArray[np.int64]:
    """A batch of actions as (rows,) int64.

    Raises:
        ValueError: another shape, no integers, or one that there is not.
    """
    numbers = np.asarray(actions)
    if numbers.shape != (rows,) or numbers.dtype.kind not in "iu":
        raise ValueError(
            f"actions must be whole numbers of shape ({rows},), not {numbers.dtype} of shape {numbers.shape}"
        )
    out = (numbers < 0) | (numbers >= num_actions)
    if out.any():
        row = int(out.argmax())
        raise ValueError(f"action {numbers[row]} in row {row} is out of range: actions are 0..{num_actions - 1}")
    return numbers.astype(np.int64)


def check_reset(seed: Any, options: Any, mode: str | None) -> None:
    """Refuse with a ValueError what one table cannot begin with.

    These are seeds and options a row, which only a batch takes, and a window that cannot be opened: else the first move
    would be made before the first frame fails. (An env for a window can be made: PettingZoo's render_test does so.)
    """
    if seed is not None and not is_whole(seed):
        raise ValueError(f"seed={seed!r} must be a whole number >= 0 or None")
    if options is not None and not isinstance(options, Mapping):
        raise ValueError(f"options must be a dict, not {options!r}")
    if mode == "human":
        check_window()


def check_window() -> None:
    """Refuse with a ValueError that says what is missing where no window can be opened."""
    if not has_display():
        raise ValueError("render_mode='human' needs a display and there is none: use 'ansi' or 'rgb_array'")
    if importlib.util.find_spec("pygame") is None:
        raise ValueError("render_mode='human' needs pygame: pip install 'domino-lab[render]'")


def check_render_mode(mode: str | None) -> None:
    """Refuse an unknown render mode with a ValueError that names the modes."""
    if mode not in (None, "human", "ansi", "rgb_array"):
        raise ValueError(f"unknown render_mode {mode!r}: choose 'human', 'ansi', 'rgb_array' or None")


def check_illegal(illegal: str) -> None:
    """Refuse an unknown way to treat illegal actions with a ValueError that names the ways."""
    if illegal not in ("lose", "raise"):
        raise ValueError(f"illegal={illegal!r} is unknown: choose 'lose' (the deal, 0:10) or 'raise'")


class Window:
    """A desktop window that shows frames; opened at the first frame. Copies of it are closed windows."""

    def __init__(self, title: str, fps: int) -> None:
        self.title = title
        self.fps = fps
        self._screen: Any = None
        self._clock: Any = None

    def show(self, frame: npt.NDArray[np.uint8]) -> None:
        """Show one frame, (height, width, 3) uint8, and keep to the frame rate.

        Raises:
            ValueError: where there is no display or pygame is not installed.
        """
        check_window()
        import pygame

        height, width = frame.shape[:2]
        if self._screen is None:
            pygame.display.init()
            pygame.display.set_caption(self.title)
            self._clock = pygame.time.Clock()
        if self._screen is None or self._screen.get_size() != (width, height):
            self._screen = pygame.display.set_mode((width, height))
        pygame.event.pump()
        self._screen.blit(pygame.surfarray.make_surface(np.ascontiguousarray(frame.swapaxes(0, 1))), (0, 0))
        pygame.display.flip()
        self._clock.tick(self.fps)

    def close(self) -> None:
        """Close the window, if it is open; may be called twice."""
        if self._screen is not None:
            import pygame

            pygame.display.quit()
            self._screen = None

    def __reduce__(self) -> tuple[type[Window], tuple[str, int]]:
        return Window, (self.title, self.fps)


def draw(engine: Engine, row: int, mode: str | None, seat: int | None, window: Window | None) -> Any:
    """One row drawn: text ("ansi"), (height, width, 3) uint8 ("rgb_array"), or None after showing it ("human").

    Args:
        seat: whose hand lies open; None: all hands.

    Raises:
        ValueError: without a render mode.
    """
    if mode is None:
        raise ValueError("nothing to render: make the env with render_mode='human', 'ansi' or 'rgb_array'")
    from domino_env import render  # drawing is an extra; the games run without it

    snapshot = engine.snapshot(row)
    if mode == "ansi":
        return render.text(snapshot, view=seat)
    frame = render.rgb(snapshot, view=seat)
    if mode == "rgb_array":
        return frame
    assert window is not None, "views that offer 'human' bring a window"
    window.show(frame)
    return None
