"""Who is seen from where: the view of a picture, the side of the table each seat has, what may be shown of it."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from domino_env.render.line import Snapshot, Story

View = int | Literal["all"] | None
Side = Literal["bottom", "left", "top", "right"]

# Seats on the left, top and right side; one is always at the bottom. Clockwise, as they play.
_SIDES: dict[int, tuple[int, int, int]] = {
    1: (0, 0, 0),
    2: (0, 1, 0),
    3: (1, 0, 1),
    4: (1, 1, 1),
    5: (1, 2, 1),
    6: (1, 3, 1),
    7: (2, 2, 2),
    8: (2, 3, 2),
}


@dataclass(frozen=True)
class Place:
    """One seat at the table, with all that may be shown of it."""

    seat: int
    tiles: list[str | None]  # names in hand, in the snapshot's order; None is a tile seen from its back
    leads: bool  # the leader of the deal
    moves: bool  # whose turn it is; nobody's once the deal is over
    passed: bool  # its last move was a pass
    passed_on: list[int]  # suits

    @property
    def name(self) -> str:
        """The agent's name."""
        return f"seat_{self.seat}"


def places_of(snapshot: Snapshot, story: Story, view: View) -> dict[Side, list[Place]]:
    """The seats on each side of the table, in clockwise order; the seat of the view, else seat_0, is at the bottom.

    view: None or "all" opens every hand, a seat opens its own only. Raises ValueError on any other view.
    """
    seats = snapshot["seats"]
    opened = _check_view(view, seats)
    if seats not in _SIDES:
        raise ValueError(f"cannot draw a table of {seats} seats; 1 to {max(_SIDES)} can sit at it")
    first = 0 if opened is None else opened
    last_move = dict(zip(story.movers, snapshot["moves"], strict=True))
    order = [(first + k) % seats for k in range(seats)]
    places = [
        Place(
            seat=seat,
            tiles=[name if opened in (None, seat) else None for name in snapshot["hands"][seat]],
            leads=seat == snapshot["leader"],
            moves=not snapshot["over"] and seat == snapshot["to_move"],
            passed=last_move.get(seat) == "pass",
            passed_on=story.passed_on[seat],
        )
        for seat in order
    ]
    left, top, _ = _SIDES[seats]
    return {
        "bottom": places[:1],
        "left": places[1 : 1 + left],
        "top": places[1 + left : 1 + left + top],
        "right": places[1 + left + top :],
    }


def _check_view(view: object, seats: int) -> int | None:
    if view is None or view == "all":
        return None
    if isinstance(view, bool) or not isinstance(view, int | np.integer) or not 0 <= view < seats:
        raise ValueError(f'view must be None, "all" or a seat 0..{seats - 1}, got {view!r}')
    return int(view)
