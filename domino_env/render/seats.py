"""Who is seen from where: the view of a picture, the side of the table each seat has, what may be shown of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from domino_env.render.line import Kind, Snapshot, Story
from domino_env.render.words import Words

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
# How a turn ended, as a word; that a seat laid and stopped is seen on the line.
_ENDS: dict[Kind, str] = {"pass": "pass", "decline": "declined", "draw": "drew"}


class Held(NamedTuple):
    """A tile of a seat as the view shows it."""

    name: str | None  # None: a tile that the viewer does not know, seen from its back
    down: bool = False  # it lies face down in a row, and yet the viewer knows it (R2)
    seen: bool = False  # and everyone has seen it (R9)


@dataclass(frozen=True)
class Place:
    """One seat at the table, with all that may be shown of it."""

    seat: int
    tiles: list[Held]  # in the snapshot's order; of a row open tiles first, then from left to right
    turned: str | None  # the tile that it has turned up and must lay (R4)
    leads: bool  # the leader of the deal
    moves: bool  # whose turn it is; nobody's once the deal is over
    laid: int  # tiles that it has laid in the turn that goes on, where it may lay several
    ended: str | None  # key of the word for how its last turn ended
    passed_on: list[int]  # suits

    @property
    def name(self) -> str:
        """The agent's name."""
        return f"seat_{self.seat}"

    def notes(self, words: Words) -> list[tuple[str, str]]:
        """What is said of the seat beside its name: keys of the catalogue with their words."""
        notes = [("leads", words["leads"])] if self.leads else []
        notes += [("laid", words["laid"].format(self.laid))] if self.laid else []
        notes += [(self.ended, words[self.ended])] if self.ended else []
        notes += [("no", words["no"].format(" ".join(map(str, self.passed_on))))] if self.passed_on else []
        return notes


def pile_of(snapshot: Snapshot) -> tuple[str, int] | None:
    """Key of the word for the tiles that lie apart, where there were any, and how many there are; nobody sees more."""
    if snapshot.get("dealt_stock"):
        return "stock", len(snapshot["stock"])
    return ("out_of_play", len(snapshot["leftover"])) if snapshot.get("leftover") else None


def grown(snapshot: Snapshot) -> Literal["left", "right"] | None:
    """The only end that the mover may go on at, where its turn binds it to one (B3)."""
    turn = snapshot.get("turn")
    return None if snapshot["over"] or not turn else turn["end"]


def places_of(snapshot: Snapshot, story: Story, view: View) -> dict[Side, list[Place]]:
    """The seats on each side of the table, in clockwise order; the seat of the view, else seat_0, is at the bottom.

    view: None or "all" opens every hand, a seat opens its own only. Raises ValueError on any other view.
    """
    seats = snapshot["seats"]
    opened = _check_view(view, seats)
    if seats not in _SIDES:
        raise ValueError(f"cannot draw a table of {seats} seats; 1 to {max(_SIDES)} can sit at it")
    first = 0 if opened is None else opened
    last_move = {move.seat: move.kind for move in story.moves}
    order = [(first + k) % seats for k in range(seats)]
    places = []
    for seat in order:
        moves = not snapshot["over"] and seat == snapshot["to_move"]
        places.append(
            Place(
                seat=seat,
                tiles=_tiles(snapshot, story, seat, opened),
                turned=snapshot.get("turned") if moves else None,
                leads=seat == snapshot["leader"],
                moves=moves,
                laid=story.laid if moves else 0,
                ended=_ENDS.get(last_move[seat]) if seat in last_move else None,
                passed_on=story.passed_on[seat],
            )
        )
    left, top, _ = _SIDES[seats]
    return {
        "bottom": places[:1],
        "left": places[1 : 1 + left],
        "top": places[1 + left : 1 + left + top],
        "right": places[1 + left + top :],
    }


def lying(around: Mapping[Side, list[Place]]) -> list[str]:
    """Keys of the words for known tiles that lie face down, as far as there are such tiles: "down", "down_seen"."""
    down = {held.seen for seats in around.values() for place in seats for held in place.tiles if held.down}
    return [key for key, seen in (("down", False), ("down_seen", True)) if seen in down]


def _tiles(snapshot: Snapshot, story: Story, seat: int, viewer: int | None) -> list[Held]:
    """What a viewer (None: who sees all) sees of a seat's tiles."""
    if "rows" not in snapshot:
        return [Held(name if viewer in (None, seat) else None) for name in snapshot["hands"][seat]]
    # R2: the owner has looked at what it was dealt, not at what it drew.
    looked = set(snapshot["dealt"][seat]) if viewer == seat and _remembers(snapshot, story, seat) else set()
    tiles = [Held(name) for name in snapshot["shown"][seat]]
    for name, seen in zip(snapshot["rows"][seat], snapshot["known"][seat], strict=True):
        known = viewer is None or seen or name in looked
        tiles.append(Held(name if known else None, known, seen))
    return tiles


def _remembers(snapshot: Snapshot, story: Story, seat: int) -> bool:
    """Whether the observation of a seat repeats its own row (R2, R9)."""
    if snapshot["rules"] == "blind":
        return False
    if snapshot["overrides"].get("memory") != "peek" or not story.moves:
        return True
    # The row is in the first observation only: as it is dealt, and as the seat's first turn begins.
    return story.begins and story.turns < snapshot["seats"] and seat == snapshot["to_move"]


def _check_view(view: object, seats: int) -> int | None:
    if view is None or view == "all":
        return None
    if isinstance(view, bool) or not isinstance(view, int | np.integer) or not 0 <= view < seats:
        raise ValueError(f'view must be None, "all" or a seat 0..{seats - 1}, got {view!r}')
    return int(view)
