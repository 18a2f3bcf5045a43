"""memory: a rule player of the two blind games, which remembers every tile that was turned and where it lies now.

What everyone has seen stands in the observation as known faces of the rows. What a seat alone knows, its own row in
`blind_blitz`, is shown but once with `memory="peek"` (R9); then the player keeps it, by the deal and the seat
(`batch.key`, `batch.seat`), if it was asked in its first turn. Without a key it plays by what everyone has seen.
It answers whole batches by arrays; an answer depends on the row alone, and on what the same seat saw of the same deal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agents.base import Decisions, one_hot, register_agent
from agents.baselines import (
    _HIGH,
    _LOW,
    _NO_SUIT,
    _PIPS,
    _TILE,
    Floats,
    Ints,
    _by_suit,
    _layout,
    _total,
    best_action,
    checked_weights,
    weigh,
)
from agents.lines import lay, one_line
from domino_env.rules import Rules
from domino_env.tiles import DRAW, HIGH, LOW, NUM_SUITS, NUM_TILES, PASS, TURN

# name: (weight, what the rule says). A weight is points of worth for one unit of the rule's column in `Memory.columns`.
RULES: dict[str, tuple[float, str]] = {
    "go_on": (3.0, "after a lay turn the next tile rather than stop"),
    "turn_fits": (3.0, "the more so, the likelier it matches"),
    "turn_past": (1.0, "turn a tile that does not match away, if the next one does"),
    "turn_stale": (0.3, "turn away a tile of suits that are nearly out, if the next one is of suits that are not"),
    "lay_open": (3.0, "lay an open tile rather than stop"),
    "lay_heavy": (0.3, "lay heavy tiles first"),
    "lay_doubles": (3.0, "lay doubles first, which only one suit can take"),
    "run_on": (1.0, "choose the end after which many of the own next tiles match in a row"),
    "next_fits": (1.0, "choose the end that the own next tile matches"),
    "keep_fits": (2.0, "leave open what many of the own tiles match"),
    "stop_next": (1.0, "leave ends that the next seat's next tile does not match"),
    "stop_others": (0.5, "the same for the seats after it"),
    "break_runs": (0.3, "leave ends on which no other seat has a run of known tiles"),
    "close_light": (3.0, "close the line when the own row is the lightest, and only then"),
    "draw": (-4.0, "draw rather than decline"),
    "draw_fits": (1.0, "the more so, the likelier a drawn tile matches"),
    "draw_heavy": (0.0, "draw where a block would be lost"),
}
_UNKNOWN, _NOTHING = NUM_TILES, NUM_TILES + 1  # at a place: a tile face down that the player does not know; no tile
_LIES, _SEEN = 1 << 14, 1 << 15  # bits of a place: a tile lies here; everyone knows it
_SURE = 1000.0  # worth of going out


@dataclass
class _View:
    """What the player knows; seats are relative, 0 = itself, 1 = the next to play. The rows of the batch come last."""

    place: Ints  # (seats, places + 1, N) tile at each place of a row, the next to be turned first; _UNKNOWN, _NOTHING
    shown: npt.NDArray[np.bool_]  # (seats, 28, N) tiles that lie open
    size: Floats  # (seats, N) tiles of each seat, a turned one of its own counted
    unseen: npt.NDArray[np.bool_]  # (28, N) tiles of the set that the player does not know to lie anywhere
    ends: Ints  # (2, N) suits of the open ends, 7 before the lead


def _faces(bits: npt.NDArray[np.uint8]) -> Ints:
    """(N, places) tiles of a `row_…` slice (N, 16 * places)."""
    return _FACE.take(_codes(bits) & 0x7FFF)


def _codes(bits: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint16]:
    """(N, places) the 16 bits of each place of a `row_…` slice as one number."""
    return np.packbits(np.ascontiguousarray(bits), axis=1, bitorder="little").view("<u2")


def _face_table() -> Ints:
    """(32768,) what the first 15 bits of a place say: which tile lies there, _UNKNOWN or _NOTHING."""
    faces = np.full(1 << 15, _UNKNOWN)
    faces[: 1 << 14] = _NOTHING
    faces[1 << 14 | 1 << LOW.astype(np.int64) | 1 << 7 + HIGH.astype(np.int64)] = np.arange(NUM_TILES)
    return faces


_FACE = _face_table()


def _view(batch: Decisions, rules: Rules) -> _View:
    layout, seats = _layout(rules, "row_")
    if batch.obs.ndim != 2 or batch.obs.shape[1] != layout.size:
        raise ValueError(f"observations of {rules.name} are (N, {layout.size}), not {batch.obs.shape}")

    def of(name: str) -> npt.NDArray[np.bool_]:
        return batch.obs[:, layout.slices[name]].T != 0

    place = np.stack([_faces(batch.obs[:, layout.slices[f"row_{seat}"]]).T for seat in seats])
    place = np.concatenate([place, np.full_like(place[:, :1], _NOTHING)], axis=1)
    shown, turned = np.stack([of(f"shown_{seat}") for seat in seats]), of("turned")
    size = (place != _NOTHING).sum(axis=1) + shown.sum(axis=1)
    size[0] += turned.any(axis=0)
    ends = [of("end_left"), of("end_right")]
    view = _View(
        place=place,
        shown=shown,
        size=size.astype(np.float32),
        unseen=~(of("played") | turned | shown.any(axis=0)) & (rules.max_pip >= HIGH)[:, None],
        ends=np.stack([np.where(end.any(axis=0), end.argmax(axis=0), _NO_SUIT) for end in ends]),
    )
    _strike(view)
    return view


class _Rows:
    """Own rows as they were dealt, kept by deal and seat; the oldest are dropped when there are many."""

    KEPT = 1 << 18

    def __init__(self) -> None:
        self._names = np.zeros(0, np.int64)  # sorted
        self._tiles = np.zeros((0, 0), np.int8)
        self._age = np.zeros(0, np.int64)
        self._clock = 0

    def keep(self, names: Ints, tiles: Ints) -> None:
        """Keep the rows (n, places) of these deals and seats (n,), in place of older ones of the same names."""
        self._clock += 1
        tiles = tiles.astype(np.int8)
        if self._tiles.shape[1] < tiles.shape[1]:
            wider = tiles.shape[1] - self._tiles.shape[1]
            self._tiles = np.pad(self._tiles, ((0, 0), (0, wider)), constant_values=_NOTHING)
        tiles = np.pad(tiles, ((0, 0), (0, self._tiles.shape[1] - tiles.shape[1])), constant_values=_NOTHING)
        old = ~np.isin(self._names, names)
        if old.sum() + len(names) > self.KEPT and old.any():
            old &= self._age > np.median(self._age[old])
        self._names, first = np.unique(np.concatenate([names, self._names[old]]), return_index=True)
        self._tiles = np.concatenate([tiles, self._tiles[old]])[first]
        self._age = np.concatenate([np.full(len(names), self._clock), self._age[old]])[first]

    def recall(self, names: Ints, places: int) -> Ints:
        """(n, places) rows of these names; _NOTHING where none is kept."""
        tiles = np.full((len(names), places), _NOTHING)
        if len(self._names):
            at = np.minimum(np.searchsorted(self._names, names), len(self._names) - 1)
            found = self._names[at] == names
            tiles[found, : self._tiles.shape[1]] = self._tiles[at[found], :places]
        return tiles


class Memory:
    """Remembers each turned tile of a blind game; each rule is a weight, 0 switches it off ("memory:draw=0")."""

    name = "memory"

    def __init__(self, **weights: float) -> None:
        """Take weights by rule, see `RULES`; those left out keep their default.

        Raises:
            ValueError: an unknown rule, or a weight that is no finite number.
        """
        self.weights = checked_weights("memory", "rule", RULES, weights)
        self._rows = _Rows()

    def check(self, rules: Rules) -> None:
        """Refuse a game that is no blind one, by a ValueError."""
        if not rules.rows:
            raise ValueError(f"memory plays the blind games (blind_blitz, blind), not {rules.name}")

    def act(self, batch: Decisions) -> Ints:
        """(N,) int64: the legal action of the highest worth; of equals the lower id."""
        rows, actions, columns = self.columns(batch)
        worth = weigh(np.float32(_SURE) * columns["out"], self.weights, columns)
        return best_action(len(batch), rows, actions, worth)

    def probabilities(self, batch: Decisions) -> npt.NDArray[np.float64]:
        """(N, actions) float64: 1 for what `act` answers, which is certain; else 0.

        Raises:
            ValueError: a game that shows the own row once (R9): what is played then hangs on what was seen before.
        """
        if batch.rules is not None and batch.rules.memory == "peek" and batch.rules.looked:
            raise ValueError("agent memory has no probabilities where it remembers its row (memory='peek', R9)")
        return one_hot(self.act(batch), batch.mask.shape[1])

    def columns(self, batch: Decisions) -> tuple[Ints, Ints, dict[str, Floats]]:
        """What each rule says of each legal action.

        Returns:
            rows (M,) ascending and actions (M,) of all legal actions, and for every rule its (M,) float32 column;
            "out" beside them is 1 where the action goes out.
        """
        rules = batch.rules
        if rules is None:
            raise ValueError("the memory player needs batch.rules")
        self.check(rules)
        seats = rules.seats
        view = _view(batch, rules)
        self._remember(batch, rules, view)
        suits = _by_suit(view.unseen)
        unseen = np.maximum(_total(view.unseen), 1)

        rows, actions = np.nonzero(batch.mask)
        lays = actions < PASS
        tile = np.where(lays, actions % NUM_TILES, _NOTHING)
        left, right = view.ends[:, rows]
        empty = left == _NO_SUIT
        pips = np.append(_PIPS, [0, 0]).astype(np.int64)[tile]
        on_left, on_right = lays & ~empty & (actions < NUM_TILES), lays & ~empty & (actions >= NUM_TILES)
        low, high = np.append(_LOW, [0, 0])[tile], np.append(_HIGH, [0, 0])[tile]
        left = np.where(on_left, pips - left, np.where(lays & empty, low, left))
        right = np.where(on_right, pips - right, np.where(lays & empty, high, right))
        open_line = left != _NO_SUIT

        # The chance that a tile nobody knows matches the new ends, and whether each tile does.
        both = np.where(left == right, 0, view.unseen[_TILE[left, right], rows])
        chance = (suits[left, rows] + np.where(left == right, 0, suits[right, rows]) - both) / unseen[rows]
        chance = np.where(open_line, chance, 1).astype(np.float32)

        def fits(places: Ints) -> Floats:
            """(M,) chance that the tile at a place matches the new ends."""
            match = _FITS[left, right, places].astype(np.float32)
            return np.where(places == _UNKNOWN, chance, match)

        start = one_line(left, right)

        def run(seat: int) -> Floats:
            """(M,) how many tiles from the right of a seat's row are known to match one after the other."""
            count, ends = np.zeros(len(rows), np.float32), start
            for k in range(view.place.shape[1] - 1):
                ends = lay(ends, view.place[seat, k, rows])
                if not ends.any():
                    break
                count += ends != 0
            return count

        shown, each = view.shown[:, :, rows], np.arange(len(rows))
        mine = shown[0] & (np.arange(NUM_TILES)[:, None] != tile)
        fit_open = _FITS[left, right, :NUM_TILES].T
        first, second = view.place[0, 0, rows], view.place[0, 1, rows]
        second = np.where(second == _NOTHING, first, second)  # a single tile comes back to its place
        next_fits, then_fits = fits(first), fits(second)
        cannot = [(1 - fits(view.place[s, 0, rows])) * ~(shown[s] & fit_open).any(axis=0) for s in range(1, seats)]
        others = _total(np.stack(cannot[1:])) / (seats - 2) if seats > 2 else np.zeros_like(cannot[0])
        runs = _total(np.stack([run(s) / s for s in range(1, seats)]))
        keep = _total(np.stack([fits(view.place[0, k, rows]) / (k + 1) for k in range(view.place.shape[1])]))
        keep += _total(mine & fit_open)
        own_run = run(0)

        alive = _alive(view)
        turns, draws = actions == TURN, actions == DRAW
        pips_held = _mean_pips(view)
        lighter = (pips_held[1:].min(axis=0) - pips_held[0])[rows] + pips * shown[0, tile.clip(0, NUM_TILES - 1), each]
        # The line is closed where no known tile matches, and every unknown one that does lies in the stock.
        inside = (view.place == _UNKNOWN).sum(axis=(0, 1)) / unseen
        known = _known(view, 0)[:, rows] & (np.arange(NUM_TILES)[:, None] != tile)
        closed = ~(known & fit_open).any(axis=0) * (1 - inside[rows]).clip(0, 1) ** np.round(chance * unseen[rows])
        still = np.where(turns, 1 - next_fits, 1).astype(np.float32)  # a turned tile that matches changes the ends
        return (
            rows,
            actions,
            {
                "out": (lays & (view.size[0, rows] == 1)).astype(np.float32),
                "go_on": turns.astype(np.float32),
                "turn_fits": turns * next_fits,
                "turn_past": turns * (then_fits - next_fits),
                "turn_stale": turns * (alive[second, rows] - alive[first, rows]),
                "lay_open": lays.astype(np.float32),
                "lay_heavy": (pips / 6).astype(np.float32),
                "lay_doubles": (lays & (low == high)).astype(np.float32),
                "run_on": np.where(lays | turns, own_run, 0).astype(np.float32),
                "next_fits": lays * next_fits,
                "keep_fits": lays * keep,
                "stop_next": cannot[0] * still,
                "stop_others": others * still,
                "break_runs": -runs * still,
                "close_light": (closed * still * lighter / 10).astype(np.float32),
                "draw": draws.astype(np.float32),
                "draw_fits": draws * (chance - next_fits),
                "draw_heavy": (draws & (lighter < 0)).astype(np.float32),
            },
        )

    def _remember(self, batch: Decisions, rules: Rules, view: _View) -> None:
        """Fill in the own row where it was shown once and is not any more (R9)."""
        if rules.memory != "peek" or not rules.looked or batch.key is None:
            return
        names = batch.key * rules.seats + batch.seat
        layout, _ = _layout(rules, "row_")
        codes = _codes(batch.obs[:, layout.slices["row_me"]])
        secret = (codes & _SEEN == 0) & (codes & (_LIES - 1) != 0)  # faces that the player alone sees
        looks = secret.any(axis=1)
        if looks.any():
            self._rows.keep(names[looks], np.where(secret, view.place[0, :-1].T, _NOTHING)[looks])
        hidden = view.place[0, :-1] == _UNKNOWN
        asked = np.flatnonzero(~looks & hidden.any(axis=0))
        if not len(asked):
            return
        # Tiles of the row that nobody has seen yet lie in their old order; a drawn one, at most, lies before them.
        row, hidden = self._rows.recall(names[asked], len(hidden)), hidden[:, asked].T
        left = (row < NUM_TILES) & view.unseen[row.clip(0, NUM_TILES - 1), asked[:, None]]
        drawn = hidden.sum(axis=1) - left.sum(axis=1)
        rank = hidden.cumsum(axis=1) - 1 - drawn[:, None]  # of a hidden place among those that are remembered
        # A row that does not agree with what is seen is of another deal, which bore the same key.
        strange = (drawn < 0) | (drawn > 1)
        strange |= ((row < NUM_TILES) & _known(view, 1)[row.clip(0, NUM_TILES - 1), asked[:, None]]).any(axis=1)
        fill = hidden & (rank >= 0) & ~strange[:, None]
        row = np.take_along_axis(row, np.argsort(~left, axis=1, kind="stable"), axis=1)
        tiles = np.take_along_axis(row, rank.clip(0, None), axis=1)
        view.place[0, :-1, asked] = np.where(fill, tiles, view.place[0, :-1, asked])
        _strike(view)


def _strike(view: _View) -> None:
    """Tiles known to lie in a row are not unseen."""
    view.unseen &= ~_known(view, 0)


def _known(view: _View, first: int) -> npt.NDArray[np.bool_]:
    """(28, N) tiles that lie open, or in a row where the player knows of them, with the seats from `first` on."""
    known = np.logical_or.reduce(view.shown[first:])
    for tiles in view.place[first:].reshape(-1, view.place.shape[2]):
        at = np.flatnonzero(tiles < NUM_TILES)
        known[tiles[at], at] = True
    return known


def _alive(view: _View) -> Floats:
    """(30, N) how many tiles that others may lay have a suit of each tile, in sixes; of an unknown tile the mean."""
    suits = _by_suit(view.unseen | _known(view, 1))
    count = (suits[_LOW] + suits[_HIGH] * (LOW != HIGH)[:, None]) / 6
    mean = _total(count * view.unseen) / np.maximum(_total(view.unseen), 1)
    return np.stack([*count, mean, 0 * mean])


def _mean_pips(view: _View) -> Floats:
    """(seats, N) pips of each seat, a tile that is not known counted as the mean of all unseen ones."""
    mean = _total(view.unseen * _PIPS[:, None]) / np.maximum(_total(view.unseen), 1)
    values = np.stack([*np.broadcast_to(_PIPS[:, None], (NUM_TILES, len(mean))), mean, 0 * mean])
    each = np.arange(len(mean))
    total = np.stack([_total(open_tiles * _PIPS[:, None]) for open_tiles in view.shown])
    for k in range(view.place.shape[1]):
        total += values[view.place[:, k], each]
    return total


def _matches() -> npt.NDArray[np.bool_]:
    """(8, 8, 30) whether a tile matches one of two ends; with no line every tile does."""
    fits = np.zeros((NUM_SUITS + 1, NUM_SUITS + 1, NUM_TILES + 2), bool)
    suits = np.arange(NUM_SUITS + 1)
    for tile in range(NUM_TILES):
        has = (suits == LOW[tile]) | (suits == HIGH[tile]) | (suits == NUM_SUITS)
        fits[:, :, tile] = has[:, None] | has
    return fits


_FITS = _matches()

register_agent("memory", Memory)
