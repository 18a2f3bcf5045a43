"""RowEngine: N deals of the two blind games as arrays, one step for all of them.

R1 hands and stock; R2 rows lie face down, `blind_blitz` has looked at its own; R3 who leads, and with which tile; R4 a
seat turns its rightmost tile and lays it where it matches, else it goes back at the left, seen by all; R5 then the seat
declines or draws; R6 after a lay it stops or goes on; R7 three tiles or fewer lie open; R8 the end without an out, and
the guard; R9 memory. Scores are B5's.

Actions are those of the line games, 56 being decline or stop, and 57 turn and 58 draw. How this engine reads R4-R7:

* A turned tile is settled before anything else: where it matches it must be laid, on an end of the seat's choice; where
  it does not, only decline and draw are left (R5), even if an open tile matches.
* At the start of a turn and after each lay, the seat may lay any open tile that matches, or turn.
* Whether three tiles or fewer are left is looked at after every lay and every draw; a tile that lies open stays open.
* A leading tile that the rules name (R3) lies turned when the deal begins, so everyone sees what the leader must lay.

Where a tile lies is public, for every turn and draw is. So the only secret of a tile that lies face down is its face. A
row is a queue: one integer of a byte a tile, the one to be turned next in the lowest. Beside it lies what its owner
sees of it, in the very bits of an observation; the others see of that what is public. Each step sorts the batch by what
is done; no Python loop runs over rows. Deals are made and laid out for many rows at a time.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from domino_env.batch import (
    Options,
    check_actions,
    given_rows,
    mask_array,
    row_number,
    row_numbers,
    seat_numbers,
    seed_keys,
)
from domino_env.deals import Deal, Given, check_hands, check_stock, format_deal, leading_place, shuffle_rows
from domino_env.line import _BIT, _BOTH, _EMPTY, _FITS, _PASS_BIT, _REACH, _SEEN, _TURN, _whole, select_bit
from domino_env.observation import layout_of, score_bits, unpack
from domino_env.rules import GUARD_TURNS, Rules, get_rules
from domino_env.scoring import Finished, nothing, score
from domino_env.tiles import (
    DRAW,
    HIGH,
    LOW,
    NUM_ROW_ACTIONS,
    PASS,
    TURN,
    is_whole,
    row_action_index,
    row_action_name,
    tile_name,
    tiles_of,
)

OPEN = 3  # R7: a seat with so many tiles or fewer shows them

_LIES, _TILE = 128, 31  # the byte of a tile that lies face down: this bit and its number; 0 where none lies
_BYTE = np.uint64(8)
_TURN_BIT, _DRAW_BIT = np.uint64(1 << TURN), np.uint64(1 << DRAW)
# A place of a row in an observation (layout of `row_…`): a tile lies here, everyone knows it, and its two suits.
_HIDDEN, _PUBLIC = np.uint16(1 << 14), np.uint16(1 << 15)
_FACE = (1 << LOW.astype(np.uint16) | 1 << 7 + HIGH.astype(np.uint16) | _HIDDEN).astype(np.uint16)
# What a deal brings along, and the rest of what there is of each row.
_OF_DEAL = ("_order", "_queue", "_faces", "_down", "_shown", "_turned", "_held", "_legal", "_leader")
_PER_ROW = (
    *_OF_DEAL,
    *("_laid", "_drawn", "_ends", "_mover", "_by", "_idle", "_turns", "_deal_index", "_dealt", "_score", "_keys"),
    "_over",
)
_TIMES = ("_start", "_begun")  # counted in the engine's own steps
_SNAPSHOT = ("rules", "overrides", "leader", "dealt", "dealt_stock", "moves", "over", "deal_index", "score", "stream")


def _write(states: np.ndarray, at: np.ndarray, values: np.ndarray) -> None:
    """``states[at] = values`` for what lies along the first axis; where that is several numbers, twice as fast."""
    if states.ndim == 1:
        states[at] = values
    else:
        states, values = states.reshape(len(states), -1), values.reshape(at.size, -1)
        whole = np.dtype((np.void, states.shape[1] * states.itemsize))
        states.view(whole).put(at, values.view(whole))


class RowEngine:
    """A batch of deals of a blind game.

    Args:
        rules: "blind_blitz", "blind", or ``Rules`` of theirs.
        num_envs: rows of the batch, N.
        seed: as of :meth:`reset`.
        episode: "deal", or "match" of ``fours`` fours.
        fours: fours of a match.
        rule_overrides: fields of ``Rules``; ``seats`` brings the hand of R1 along.

    Raises:
        ValueError: anything out of these.
    """

    num_actions = NUM_ROW_ACTIONS

    def __init__(
        self,
        rules: str | Rules = "blind_blitz",
        num_envs: int = 1024,
        seed: int | Sequence[int] | None = None,
        *,
        episode: str = "deal",
        fours: int = 1,
        **rule_overrides: Any,
    ) -> None:
        self.rules = get_rules(rules, **rule_overrides)
        if not self.rules.rows:
            raise ValueError(f"{self.rules.name} is no blind game; RowEngine plays blind_blitz and blind")
        for name, value in (("num_envs", num_envs), ("fours", fours)):
            if not is_whole(value) or value < 1:
                raise ValueError(f"{name}={value!r} must be a whole number >= 1")
        if episode not in ("deal", "match"):
            raise ValueError(f"episode={episode!r} is unknown; choose from deal, match")
        self.num_envs = int(num_envs)
        self.episode = episode
        self.fours = int(fours)
        self.layout = layout_of(self.rules)
        n, seats = self.num_envs, self.rules.seats
        self._fits = _FITS[self.rules.labelled_ends]
        self._clock = np.arange(3 * seats) % seats  # a modulo by look-up
        self._around = (np.arange(seats)[:, None] + np.arange(seats)) % seats  # the seats clockwise from each
        self._who = np.uint32(1 << 28) << self._clock.astype(np.uint32)  # a relative seat as a bit of an observation
        # drawn * (seats + 2) + idle + 1 -> thermometers of the stock and of idle turns
        full = [(1 << self.rules.leftover - drawn) - 1 for drawn in range(self.rules.leftover + 1)]
        self._gauges = np.array([stock | (1 << max(i, 0)) - 1 << 28 for stock in full for i in range(-1, seats + 1)])
        self._hands = seats * self.rules.hand_size  # tiles dealt: where the stock begins in _order
        self._places = self.rules.hand_size + self.rules.leftover  # tiles that a row can have
        # What a seat sees of all rows whatever is public: where a tile lies, and with perfect memory its own faces.
        self._own = np.full(seats * self._places, _HIDDEN)
        if self.rules.memory == "perfect":
            self._own[: self._places] = ~np.uint16(0)
        # Two parts of an observation that are written in one piece: what each seat shows, and their rows.
        self._parts = np.dtype(
            {
                "names": ["shown", "rows"],
                "formats": [f"V{4 * seats}", f"V{2 * seats * self._places}"],
                "offsets": [16, 16 + 4 * seats],
                "itemsize": self.layout.nbytes,
            }
        )
        self._order = np.zeros((n, self.rules.num_tiles), np.uint8)  # the deal: rows from left to right, then the stock
        # bytes of the tiles face down, the rightmost lowest
        self._queue = np.zeros((n, seats, -(-self._places // 8)), np.uint64)
        # the same places as an observation has them for the owner
        self._faces = np.zeros((n, seats, self._places), np.uint16)
        self._down = np.zeros((n, seats), np.uint32)  # the same tiles as masks
        self._shown = np.zeros((n, seats), np.uint32)  # tiles that lie open (R7)
        self._turned = np.zeros(n, np.uint32)  # the tile that the mover has turned and must lay
        self._held = np.zeros(n, np.uint32)  # all tiles in rows
        self._laid = np.zeros(n, np.uint32)
        self._drawn = np.zeros(n, np.int64)  # tiles drawn from the stock
        self._ends = np.full(n, _EMPTY)  # left << 3 | right
        self._legal = np.zeros(n, np.uint64)  # action mask of the mover
        self._leader = np.zeros(n, np.int64)
        self._mover = np.zeros(n, np.int64)
        self._by = np.zeros(n, np.int64)  # who laid last
        self._idle = np.zeros(n, np.int64)  # turns since a tile was laid or drawn, at most seats; -1 while one was
        self._turns = np.zeros(n, np.int64)  # turns that are over
        self._start = np.zeros(n, np.int64)  # value of _time when the deal began
        self._begun = np.zeros(n, np.int64)  # and when the turn began
        self._time = 0  # steps so far; also the place in the ring of events
        self._ring = np.zeros((self.rules.max_plies, n), np.int16)  # events with the absolute seat
        self._deal_index = np.zeros(n, np.int64)
        self._dealt = np.zeros(n, np.int64)  # deals drawn from the row's stream
        self._score = np.zeros((n, seats), np.int64)  # of the match that runs
        self._over = np.zeros(n, bool)
        self._keys = np.zeros(n, np.uint64)
        self._none_ready()
        self.finished = nothing(self.rules)
        self.reset(seed)

    # -- beginning a deal -------------------------------------------------------------------------------------------

    def reset(self, seed: int | Sequence[int] | None = None, options: Options = None) -> None:
        """Begin a new episode in every row.

        Args:
            seed: a whole number (row i has stream i of it), a list of one per row, or None to go on with the streams.
            options: ``hands`` (from left to right), ``stock``, ``leader``, ``deal_index`` (design.md); one dict for all
                rows or a list of one per row.

        Raises:
            ValueError: bad options or seeds, another leader than a tile decides (R3); the engine is as it was.
        """
        rows = np.arange(self.num_envs)
        asked = given_rows(self.rules, options, self.num_envs)
        fresh = seed is not None or not self._dealt.any()
        keys = seed_keys(seed, self.num_envs) if fresh else self._keys
        deals = self._asked(keys, np.zeros_like(self._dealt) if fresh else self._dealt, asked)
        if fresh:
            self._keys = keys
            self._dealt[:] = 0
            self._ready_to[:] = 0
            self._deal_index = rows % 4 - 1 if self.episode == "deal" else np.full(self.num_envs, -1)  # S2
        self._new_episode(rows, deals, asked)

    def reset_rows(self, rows: np.ndarray, options: Options = None) -> None:
        """Begin a new episode in some rows, the next of each row's stream. Arguments and errors as of :meth:`reset`."""
        rows = row_numbers(rows, self.num_envs)
        asked = given_rows(self.rules, options, len(rows))
        self._new_episode(rows, self._asked(self._keys[rows], self._dealt[rows], asked), asked)

    def deal(self, hands: np.ndarray, leader: np.ndarray | None = None, stock: np.ndarray | None = None) -> None:
        """Begin given deals in all rows.

        Args:
            hands: (N, seats, hand_size) tile numbers, each row from left to right.
            leader: (N,) seats; None where a tile decides (R3).
            stock: (N, leftover) tile numbers, the next to be drawn first; None where there is none.

        Raises:
            ValueError: not all tiles of the set once, or another leader than a tile decides; the engine is as it was.
        """
        n, rules = self.num_envs, self.rules
        hands = np.asarray(hands)
        rest = np.zeros((n, 0), np.int64) if stock is None else np.asarray(stock)
        if hands.shape != (n, rules.seats, rules.hand_size) or rest.shape != (n, rules.leftover):
            raise ValueError(
                f"hands {hands.shape} and stock {rest.shape} must be ({n}, {rules.seats}, {rules.hand_size}) and "
                f"({n}, {rules.leftover})"
            )
        order = np.concatenate([hands.reshape(n, -1), rest], axis=1)
        if order.dtype.kind not in "iu" or (np.sort(order, axis=1) != np.array(rules.tiles)).any():
            raise ValueError(f"each row needs all {rules.num_tiles} tile numbers of the set once, not {order.dtype}")
        seats = None if leader is None else seat_numbers(leader, rules.seats, n)
        if seats is None and rules.lead == "lot":
            raise ValueError("leader must be (N,) seats: with lead='lot' no tile decides")
        seat, lead = self._lead(order, np.zeros(n, np.int64) if seats is None else seats, seats)
        rows = np.arange(n)
        self._advance(rows)
        self._deal_index[:] = 0  # a given deal is the first
        self._begin(rows, self._lay_out(order.astype(np.uint8), seat, lead))

    def _asked(self, keys: np.ndarray, counts: np.ndarray, asked: list[Given] | None) -> dict[str, np.ndarray] | None:
        """The deals that are asked for, filled up from the next of each stream; None where nothing is asked."""
        if asked is None:
            return None
        order, lot = shuffle_rows(self.rules, keys, counts)
        for j, one in enumerate(asked):  # options are Python dicts a row; this is no hot path
            if one.rows is not None or one.stock is not None:
                hands = [tile for row in one.rows or () for tile in row]
                stock = one.stock or []
                rest = [tile for tile in order[j].tolist() if tile not in hands and tile not in stock]
                order[j] = (hands or rest) + (rest if one.stock is None else stock)
        seats = np.array([-1 if one.leader is None else one.leader for one in asked])
        return self._lay_out(order, *self._lead(order, lot, seats))

    def _lead(self, order: np.ndarray, lot: np.ndarray, asked: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Leader (R3) and the place of the leading tile in the dealt order, -1 where none is named.

        Args:
            order: (n, num_tiles); lot: (n,) who leads by lot; asked: (n,) leaders asked for, -1 for none.
        Raises:
            ValueError: a tile decides otherwise than asked.
        """
        if self.rules.lead == "lot":
            return (lot if asked is None else np.where(asked < 0, lot, asked)), np.full(len(order), -1)
        place = leading_place(self.rules, order)
        leader = place // self.rules.hand_size
        if asked is not None and ((asked >= 0) & (asked != leader)).any():
            j = int(((asked >= 0) & (asked != leader)).argmax())
            raise ValueError(
                f"option leader={asked[j]}: lead={self.rules.lead!r} has seat {leader[j]} lead, who holds "
                f"{tile_name(int(order[j, place[j]]))}"
            )
        return leader, place

    def _advance(self, rows: np.ndarray) -> None:
        """Count one episode on: the next deal, or a new match where the episode is one."""
        if self.episode == "match":
            self._score[rows] = 0
            self._deal_index[rows] = 0
        else:
            self._deal_index[rows] += 1

    def _new_episode(self, rows: np.ndarray, deals: dict[str, np.ndarray] | None, asked: list[Given] | None) -> None:
        self._advance(rows)
        if asked is not None:
            indices = np.array([-1 if one.deal_index is None else one.deal_index for one in asked])
            self._deal_index[rows] = np.where(indices < 0, self._deal_index[rows], indices)
        if deals is None:
            self._next_deal(rows)
        else:
            self._dealt[rows] += 1
            self._begin(rows, deals)

    def _next_deal(self, rows: np.ndarray) -> None:
        """Begin the next deal of these rows' streams; the episode is counted by the caller."""
        number, n = self._dealt.take(rows), self.num_envs
        if (number >= self._ready_to.take(rows)).any():
            stale = np.flatnonzero(self._dealt >= self._ready_to)
            numbers = self._dealt[stale] + np.arange(self._ahead)[:, None]
            keys = np.broadcast_to(self._keys[stale], numbers.shape)
            order, lot = shuffle_rows(self.rules, keys.ravel(), numbers.ravel())
            at = (numbers % self._ahead * n + stale).ravel()
            for name, made in self._lay_out(order, *self._lead(order, lot, None)).items():
                if name not in self._ready:
                    self._ready[name] = np.empty((self._ahead * n, *made.shape[1:]), made.dtype)
                _write(self._ready[name], at, made)
            self._ready_to[stale] = numbers[-1] + 1
        self._dealt[rows] = number + 1
        at = number % self._ahead * n + rows
        self._begin(rows, {name: made.take(at, axis=0) for name, made in self._ready.items()})

    def _none_ready(self) -> None:
        """Deals are made ahead, for many rows at a time: rows with _dealt >= _ready_to have used theirs up."""
        self._ahead = max(1, 32 // self.num_envs)
        self._ready: dict[str, np.ndarray] = {}  # deal number c of a row lies at c % _ahead * N + row, once one is made
        self._ready_to = np.zeros(self.num_envs, np.int64)

    def _lay_out(self, order: np.ndarray, leader: np.ndarray, lead: np.ndarray) -> dict[str, np.ndarray]:
        """Deals before the first action: `order` (n, num_tiles), `leader` (n,), `lead` (n,) place of the tile or -1."""
        n, seats, size = len(order), self.rules.seats, self.rules.hand_size
        each = np.arange(n)
        dealt = order[:, : self._hands].reshape(n, seats, size)
        down = np.bitwise_or.reduce(np.uint32(1) << dealt.astype(np.uint32), axis=2)
        held = np.bitwise_or.reduce(down, axis=1)
        codes = np.zeros((n, seats, 8 * self._queue.shape[2]), np.uint8)
        codes[:, :, :size] = dealt[:, :, ::-1] | np.uint8(_LIES)
        turned = np.zeros(n, np.uint32)
        if self.rules.lead != "lot":
            turned = np.uint32(1) << order[each, lead].astype(np.uint32)
            down[each, leader] ^= turned
            # The tiles at the left of the leading one move up.
            at = size - 1 - lead % size
            places = np.arange(codes.shape[2])
            mine = np.take_along_axis(
                codes[each, leader], np.minimum(places + (places >= at[:, None]), size - 1), axis=1
            )
            mine[:, size - 1 :] = 0
            codes[each, leader] = mine
        shown = np.zeros_like(down)
        if size <= OPEN:
            down, shown, codes = shown, down, np.zeros_like(codes)
        lies = codes[:, :, : self._places]
        faces = (_FACE.take(lies & _TILE) if self.rules.looked else _HIDDEN) * (lies != 0)  # R2
        legal = turned.astype(np.uint64)
        if self.rules.lead == "lot":
            legal = shown[each, leader].astype(np.uint64) if size <= OPEN else np.full(n, _TURN_BIT)
        laid_out = (order, codes.view("<u8"), faces, down, shown, turned, held, legal, leader)
        return dict(zip(_OF_DEAL, laid_out, strict=True))

    def _begin(self, rows: np.ndarray, deals: dict[str, np.ndarray]) -> None:
        """Begin these deals, one a row."""
        for name, state in deals.items():
            _write(getattr(self, name), rows, state)
        self._mover[rows] = self._by[rows] = deals["_leader"]
        self._ends[rows] = _EMPTY
        for state in (self._laid, self._drawn, self._idle, self._turns, self._over):
            state[rows] = 0
        self._start[rows] = self._begun[rows] = self._time

    # -- playing ----------------------------------------------------------------------------------------------------

    def step(self, actions: np.ndarray, autoreset: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Play one action in every row.

        Args:
            actions: (N,) integers, each legal for its row's mover.
            autoreset: rows whose episode ends begin the next one at once; otherwise they stay at their end, and
                stepping them again is an error until :meth:`reset_rows` or :meth:`take`.

        Returns:
            rewards: (N, seats) float32, zero but where a deal ended; done: (N,) bool, the episode is over.
            What ended is in ``finished``; see :meth:`truncated` for deals that the guard broke off.

        Raises:
            ValueError: wrong shape or dtype, an illegal action, or a row that is over; the engine is as it was.
        """
        acts = check_actions(actions, self._legal, self._over, NUM_ROW_ACTIONS, row_action_name)
        event = acts | self._mover << 12
        event |= self._ends << 6
        self._ring[self._time % len(self._ring)] = event
        turns = acts == TURN
        lays = acts < PASS
        some = turns.nonzero()[0]
        if len(some):
            self._turn(some)
        self._time += 1
        some = lays.nonzero()[0]
        out = self._lay(some, acts.take(some)) if len(some) else some
        some = (acts == DRAW).nonzero()[0]
        if len(some):
            self._draw(some)
        turns |= lays
        some = (~turns).nonzero()[0]
        if len(some):
            self._end_turn(some)
        over = self._blocked(slice(None))
        over |= self._turns >= GUARD_TURNS
        over[out] = True
        rows = over.nonzero()[0]
        rewards = np.zeros((self.num_envs, self.rules.seats), np.float32)
        if len(rows):
            over = self._finish(rows, rewards, over, lays, autoreset)
        elif len(self.finished):
            self.finished = nothing(self.rules)
        return rewards, over

    def _seat_at(self, rows: np.ndarray) -> np.ndarray:
        """Where the mover of these rows lies in what is kept a seat."""
        return rows * self.rules.seats + self._mover.take(rows)

    def _turn(self, rows: np.ndarray) -> None:
        """R4: the rightmost tile comes up; one that does not match goes to the left."""
        seat = self._seat_at(rows)
        queue, down = self._queue.reshape(-1, self._queue.shape[2]), self._down.reshape(-1)
        words = queue.take(seat, axis=0)
        code = words[:, 0] & np.uint64(0xFF)
        tile = (code & np.uint64(_TILE)).view(np.int64)
        self._ring[self._time % len(self._ring)][rows] = tile << 6 | self._mover.take(rows) << 12 | TURN
        for w in range(words.shape[1]):
            words[:, w] >>= _BYTE
            if w + 1 < words.shape[1]:
                words[:, w] |= words[:, w + 1] << np.uint64(56)
        bit = _BIT.take(tile)
        lays = bit * _BOTH
        lays &= self._fits.take(self._ends.take(rows))
        miss = lays == 0
        others = down.take(seat)
        last = np.bitwise_count(others) - np.uint8(1)  # the place at the left
        # NumPy shifts out of the word give 0, and a place before the word is far out of it.
        shift = last.astype(np.uint64) * _BYTE
        code *= miss
        for w in range(words.shape[1]):
            words[:, w] |= code << (shift - np.uint64(64 * w))
        _write(queue, seat, words)
        faces = self._faces.reshape(-1, self._places)
        seen = faces.take(seat, axis=0)
        flat = seen.reshape(-1)
        flat[:-1] = flat[1:]
        seen[:, -1] = 0
        flat[np.arange(0, flat.size, self._places) + last] = (_FACE.take(tile) | _PUBLIC) * miss
        _write(faces, seat, seen)
        bit *= ~miss
        self._turned[rows] = bit
        down[seat] = others ^ bit
        lays |= self._wait(rows) * miss
        self._legal[rows] = lays

    def _lay(self, rows: np.ndarray, acts: np.ndarray) -> np.ndarray:
        """R4, R6, R7: the turned tile, or an open one. Returns the rows that are out."""
        seat = self._seat_at(rows)
        bit = _BIT.take(acts)
        ends = _TURN.take(acts << 6 | self._ends.take(rows)) & 63
        self._ends[rows] = ends
        self._turned[rows] = 0
        self._held[rows] ^= bit
        self._laid[rows] |= bit
        self._by[rows] = self._mover.take(rows)
        self._idle[rows] = -1
        shown = self._shown.reshape(-1)
        shown[seat] &= ~bit
        self._open(seat)
        legal = self._moves(seat, ends)
        legal |= _PASS_BIT
        self._legal[rows] = legal
        return rows[(self._down.take(seat) | shown.take(seat)) == 0]

    def _draw(self, rows: np.ndarray) -> None:
        """R5, R7: the next tile of the stock, unseen, to the right of the row."""
        seat = self._seat_at(rows)
        tile = self._order[rows, self._hands + self._drawn.take(rows)]
        self._drawn[rows] += 1
        queue = self._queue.reshape(-1, self._queue.shape[2])
        words = queue.take(seat, axis=0)
        for w in reversed(range(words.shape[1])):
            words[:, w] <<= _BYTE
            words[:, w] |= words[:, w - 1] >> np.uint64(56) if w else (tile | np.uint8(_LIES)).astype(np.uint64)
        _write(queue, seat, words)
        faces = self._faces.reshape(-1, self._places)
        seen = faces.take(seat, axis=0)
        flat = seen.reshape(-1)
        flat[1:] = flat[:-1]
        seen[:, 0] = _HIDDEN
        _write(faces, seat, seen)
        bit = _BIT.take(tile)
        self._down.reshape(-1)[seat] |= bit
        self._held[rows] |= bit
        self._idle[rows] = -1
        self._open(seat)

    def _open(self, seat: np.ndarray) -> None:
        """R7: three tiles or fewer are laid open."""
        down, shown = self._down.reshape(-1), self._shown.reshape(-1)
        hidden = down.take(seat)
        few = np.bitwise_count(hidden) + np.bitwise_count(shown.take(seat)) <= OPEN
        few &= hidden != 0
        at = seat[few]
        if len(at):
            shown[at] |= down[at]
            down[at] = 0
            self._queue.reshape(-1, self._queue.shape[2])[at] = 0
            self._faces.reshape(-1, self._places)[at] = 0

    def _end_turn(self, rows: np.ndarray) -> None:
        """The left neighbour begins its turn: it turns or lays, and only where it can do neither declines or draws."""
        self._mover[rows] = self._clock.take(self._mover.take(rows) + 1)
        self._idle[rows] = np.minimum(self._idle.take(rows) + 1, self.rules.seats)
        self._turns[rows] += 1
        self._begun[rows] = self._time
        legal = self._moves(self._seat_at(rows), self._ends.take(rows))
        legal |= self._wait(rows) * (legal == 0)
        self._legal[rows] = legal

    def _moves(self, seat: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Open tiles that match, and whether there is one to turn."""
        legal = self._shown.take(seat) * _BOTH
        legal &= self._fits.take(ends)
        legal |= _TURN_BIT * (self._down.take(seat) != 0)
        return legal

    def _wait(self, rows: np.ndarray) -> Any:
        """Decline, or draw while there is a stock: (n,) uint64, or one for all."""
        if not self.rules.leftover:
            return _PASS_BIT
        return _PASS_BIT | _DRAW_BIT * (self._drawn.take(rows) < self.rules.leftover)

    def _blocked(self, rows: Any) -> np.ndarray:
        """R8: no tile of any row matches, and no stock or a full round in which nobody laid or drew."""
        dry = self._held[rows] & _REACH.take(self._ends[rows]) == 0
        if self.rules.leftover:
            dry &= (self._drawn[rows] == self.rules.leftover) | (self._idle[rows] >= self.rules.seats)
        return dry

    def _finish(
        self, rows: np.ndarray, rewards: np.ndarray, over: np.ndarray, lays: np.ndarray, autoreset: bool
    ) -> np.ndarray:
        """Score the deals that ended, and begin the next ones. Returns which episodes are done."""
        self.finished = self._result(rows)
        rewards[rows] = self.finished.rewards
        if self.episode == "match":
            self._score[rows] += self.finished.points
            going = rows[self._deal_index[rows] + 1 < 4 * self.fours]  # S10
            if len(going):
                self._deal_index[going] += 1
                self._next_deal(going)
                over[going] = False
                rows = over.nonzero()[0]
        if not autoreset:
            self._over[rows] = True
            self._legal[rows] = _PASS_BIT
            self._mover[rows] = self._clock.take(
                self._mover[rows] + lays[rows]
            )  # a lay that ends the deal ends the turn
        elif len(rows):
            self._advance(rows)
            self._next_deal(rows)
        return over

    def _result(self, rows: np.ndarray) -> Finished:
        """The result of deals that are over."""
        by = self._by[rows]
        at = rows * self.rules.seats + self._clock.take(by + np.arange(self.rules.seats)[:, None])
        hands = self._down.take(at) | self._shown.take(at)
        guard = self._turns.take(rows) >= GUARD_TURNS
        if guard.any():
            guard &= (hands[0] != 0) & ~self._blocked(rows)
        return score(self.rules, rows, hands, by, self.plies()[rows], guard)

    # -- looking ----------------------------------------------------------------------------------------------------

    def truncated(self) -> np.ndarray:
        """Rows in which the last step's deal was broken off by the guard of R8: (N,) bool."""
        broken = np.zeros(self.num_envs, bool)
        if self.finished.guard is not None:
            broken[self.finished.rows[self.finished.guard]] = True
        return broken

    def to_move(self) -> np.ndarray:
        """Seat to move: (N,) int64; after the end the seat that would come next."""
        return self._mover.copy()

    def over(self) -> np.ndarray:
        """Rows that wait for a reset: (N,) bool."""
        return self._over.copy()

    def leader(self) -> np.ndarray:
        """Seat that led the deal: (N,) int64."""
        return self._leader.copy()

    def plies(self) -> np.ndarray:
        """Actions played in the deal: (N,) int64."""
        return self._time - self._start

    def turns(self) -> np.ndarray:
        """Turns of the deal that are over: (N,) int64."""
        return self._turns.copy()

    def deal_index(self) -> np.ndarray:
        """Number d of the deal (S2): (N,) int64."""
        return self._deal_index.copy()

    def hands(self) -> np.ndarray:
        """What every seat holds: (N, seats) uint32 masks. Nobody at the table sees all of it."""
        hands = self._down | self._shown
        hands.reshape(-1)[self._seat_at(np.arange(self.num_envs))] |= self._turned
        return hands

    def shown(self) -> np.ndarray:
        """What every seat holds open (R7): (N, seats) uint32 masks."""
        return self._shown.copy()

    def rows(self) -> np.ndarray:
        """Tiles that lie face down, the next to be turned first: (N, seats, places) int8 tile numbers, -1 for none."""
        codes = self._queue.astype("<u8", copy=False).view(np.uint8)
        codes = codes[:, :, : self._places]
        return np.where(codes & _LIES, codes & _TILE, 255).astype(np.int8)

    def turned(self) -> np.ndarray:
        """Tile that lies turned and must be laid: (N,) uint32 masks, 0 for none."""
        return self._turned.copy()

    def stock(self) -> np.ndarray:
        """The stock, the next tile first: (N, leftover) int8 tile numbers, -1 where it was drawn. Nobody sees it."""
        places = np.arange(self.rules.leftover) + self._drawn[:, None]
        order = np.pad(self._order[:, self._hands :].astype(np.int8), ((0, 0), (0, 1)), constant_values=-1)
        return np.take_along_axis(order, np.minimum(places, self.rules.leftover), axis=1)

    def ends(self) -> np.ndarray:
        """Suits of the left and the right end: (N, 2) int8, -1 before the first tile."""
        ends = np.stack([self._ends >> 3, self._ends & 7], axis=1).astype(np.int8)
        ends[self._ends == _EMPTY] = -1
        return ends

    def score(self) -> np.ndarray:
        """Points of each seat in the match that runs: (N, seats) int32; zero where episodes are single deals."""
        return self._score.astype(np.int32)

    def legal_bits(self) -> np.ndarray:
        """Legal actions of the mover as words: (N,) uint64, bit a for action a."""
        return self._legal.copy()

    def legal_count(self) -> np.ndarray:
        """Number of legal actions of the mover: (N,) uint8."""
        return np.bitwise_count(self._legal)

    def legal(self, seat: int | np.ndarray | None = None) -> np.ndarray:
        """Action masks.

        Args:
            seat: None for the mover of each row; a seat, or one a row: off turn only PASS is 1.
        Returns:
            (N, 59) int8.
        """
        bits = self._legal
        if seat is not None:
            bits = np.where(seat_numbers(seat, self.rules.seats, self.num_envs) == self._mover, bits, _PASS_BIT)
        return mask_array(bits, NUM_ROW_ACTIONS)

    def sample_legal(self, rng: np.random.Generator) -> np.ndarray:
        """A uniformly random legal action of each row's mover: (N,) int64."""
        draw = rng.integers(0, 1 << 32, self.num_envs, np.uint32).astype(np.uint64)
        draw *= np.bitwise_count(self._legal)
        draw >>= np.uint64(32)
        return select_bit(self._legal, draw.astype(np.uint8))

    def observe(self, seat: int | np.ndarray | None = None, packed: bool = False) -> np.ndarray:
        """What a seat sees, as ``layout`` says.

        Args:
            seat: None for the mover of each row, a seat, or one a row (N,).
            packed: bits packed eight to a byte.
        Returns:
            (N, layout.size) uint8 of 0 and 1, or (N, layout.nbytes) uint8.
        """
        viewer = self._mover if seat is None else seat_numbers(seat, self.rules.seats, self.num_envs)
        data = self._words(viewer).view(np.uint8)
        return data if packed else unpack(data)

    def _words(self, viewer: np.ndarray) -> np.ndarray:
        """Packed observations of a seat a row: (N, words) uint32."""
        n, seats = self.num_envs, self.rules.seats
        back = seats - viewer
        words = np.empty((n, self.layout.size // 32), "<u4")
        words[:, 0] = self._turned | self._who.take(self._leader + back)
        words[:, 1] = self._laid | self._who.take(self._mover + back)
        words[:, 2] = _SEEN.take(self._ends)
        words[:, 3] = self._gauges.take(self._drawn * (seats + 2) + self._idle + 1)
        at = self._around.take(viewer, axis=0)
        at += np.arange(0, n * seats, seats)[:, None]
        parts = words.view(self._parts)[:, 0]
        parts["shown"] = self._shown.take(at).astype("<u4", copy=False).view(self._parts["shown"])[:, 0]
        words[:, -1] = 0  # its second half may be of no row
        rows = self._faces.reshape(-1, self._places).take(at, axis=0).reshape(n, -1)
        if self.rules.looked:
            shows = (rows.view(np.int16) >> 15).view(np.uint16)  # all bits of a place that is public
            shows |= self._own
            if self.rules.memory == "peek":
                shows[:, : self._places] |= -self._is_first(viewer).astype(np.uint16)[:, None]  # R9
            rows &= shows
        parts["rows"] = rows.astype("<u2", copy=False).view(self._parts["rows"])[:, 0]
        if self.episode == "match":
            words[:, 4] |= np.uint32(1 << 28) << (self._deal_index % 4).astype(np.uint32)
            words[:, 2] |= score_bits(self._score, viewer) << np.uint32(14)
        return words

    def _is_first(self, viewer: np.ndarray) -> np.ndarray:
        """R9: the first observation of the deal: as it is dealt, and again when the seat itself is first asked."""
        asked = (viewer == self._mover) & (self._turns < self.rules.seats) & (self._begun == self._time)
        return asked | (self._start == self._time)

    def peeks(self) -> np.ndarray:
        """Rows whose mover is shown its own tiles now and never again (R9), so it must be asked: (N,) bool."""
        if self.rules.memory != "peek":
            return np.zeros(self.num_envs, bool)
        return self._is_first(self._mover)

    def history(self, seat: int | np.ndarray | None = None) -> np.ndarray:
        """The public events of the deal, oldest first.

        Args:
            seat: whose view (None: the mover's).
        Returns:
            (N, max_plies) int16, -1 padded. An event is ``relative_seat << 12 | left << 9 | right << 6 | action`` with
            the ends before the action (7, 7 on an empty line) and relative_seat clockwise from the viewer; a turn is
            ``relative_seat << 12 | tile << 6 | 57``, for it shows the tile to all (R9).
        """
        viewer = self._mover if seat is None else seat_numbers(seat, self.rules.seats, self.num_envs)
        events = np.full((self.num_envs, self.rules.max_plies), -1, np.int16)
        plies = self.plies()
        longest = int(plies.max())
        if longest:
            ply = np.arange(longest)
            raw = self._ring[(self._start[:, None] + ply) % len(self._ring), np.arange(self.num_envs)[:, None]]
            who = ((raw >> 12) - viewer[:, None]) % self.rules.seats
            events[:, :longest] = np.where(ply < plies[:, None], raw & 0xFFF | who << 12, -1)
        return events

    # -- copies -----------------------------------------------------------------------------------------------------

    def take(self, rows: np.ndarray) -> "RowEngine":
        """An engine that holds copies of only these rows, in this order, with their streams.

        Args:
            rows: (n,) row numbers, or (N,) bool.
        """
        rows = row_numbers(rows, self.num_envs)
        if not len(rows):
            raise ValueError("take needs at least one row")
        other = copy.copy(self)
        other.num_envs = len(rows)
        for name in (*_PER_ROW, *_TIMES):
            setattr(other, name, getattr(self, name)[rows])
        other._none_ready()  # most copies come back by `put` before they need another deal
        other._ring = np.empty((len(self._ring), len(rows)), np.int16)
        # Only the events of the deals that run are worth copying.
        recent = np.arange(int(other._start.min()), self._time) % len(self._ring)
        other._ring[recent] = self._ring[np.ix_(recent, rows)]
        other.finished = nothing(self.rules)
        return other

    def put(self, rows: np.ndarray, other: "RowEngine") -> None:
        """Write the rows of `other`, in this order, over these rows: the reverse of `take`.

        Args:
            rows: (n,) distinct row numbers.
            other: an engine of n rows of the same game.
        """
        rows = row_numbers(rows, self.num_envs)
        if other.rules != self.rules or other.num_envs != len(rows):
            raise ValueError(f"{len(rows)} rows of {self.rules} are not the {other.num_envs} of {other.rules}")
        # Deals made ahead serve on where they are of the same stream and the next one is not older than they are.
        oldest = self._ready_to[rows] - self._ahead
        self._ready_to[rows] *= (self._keys[rows] == other._keys) & (other._dealt >= oldest)
        for name in _PER_ROW:
            getattr(self, name)[rows] = getattr(other, name)
        # The two count their steps apart: what is counted in them moves along.
        ahead = self._time - other._time
        for name in _TIMES:
            getattr(self, name)[rows] = getattr(other, name) + ahead
        recent = np.arange(int(other._start.min()), other._time)
        size = len(self._ring)
        self._ring[np.ix_((recent + ahead) % size, rows)] = other._ring[recent % size]

    def record(self, row: int) -> Deal:
        """The deal of a row as it was dealt, and its moves so far."""
        row = row_number(row, self.num_envs)
        order = self._order[row].tolist()
        size, hands = self.rules.hand_size, self._hands
        places = np.arange(int(self._start[row]), self._time) % len(self._ring)
        moves = (self._ring[places, row] & 63).tolist()
        return Deal(self.rules, int(self._leader[row]), self._split(order[:hands], size), moves, order[hands:])

    @staticmethod
    def _split(tiles: list[int], size: int) -> list[list[int]]:
        return [tiles[i : i + size] for i in range(0, len(tiles), size)]

    def text(self, row: int) -> str:
        """The deal of a row in the notation of :mod:`domino_env.deals`."""
        return format_deal(self.record(row))

    def snapshot(self, row: int) -> dict[str, Any]:
        """All of one row as plain JSON values; :meth:`load` reads it.

        ``rows`` are the tiles face down from left to right, ``shown`` those that lie open, ``turned`` the one that must
        be laid now; ``hands`` are all three. ``known`` says which of ``rows`` everyone has seen. ``movers`` are the
        seats of ``moves``.
        """
        one = self.take(np.array([row_number(row, self.num_envs)]))
        deal = one.record(0)
        events = one.history(0)[0, : len(deal.moves)]

        def names(tiles: Sequence[int]) -> list[str]:
            return [tile_name(tile) for tile in tiles]

        faces = one.rows()[0]
        rows = [[tile for tile in faces[seat].tolist() if tile >= 0][::-1] for seat in range(self.rules.seats)]
        shown = [tiles_of(mask) for mask in one._shown[0]]
        turned = tiles_of(int(one._turned[0]))
        mover = int(one._mover[0])
        known = one._faces[0] & _PUBLIC != 0
        ends = one.ends()[0].tolist()
        over = bool(one._over[0])
        return {
            "rules": self.rules.name,
            "overrides": self.rules.overrides(),
            "seats": self.rules.seats,
            "pairs": self.rules.pairs,
            "leader": deal.leader,
            "to_move": mover,
            "hands": [
                names(rows[seat] + shown[seat] + (turned if seat == mover else [])) for seat in range(self.rules.seats)
            ],
            "rows": [names(tiles) for tiles in rows],
            "known": [known[seat, : len(tiles)][::-1].tolist() for seat, tiles in enumerate(rows)],
            "shown": [names(tiles) for tiles in shown],
            "turned": tile_name(turned[0]) if turned else None,
            "stock": names([tile for tile in one.stock()[0].tolist() if tile >= 0]),
            "dealt": [names(hand) for hand in deal.hands],
            "dealt_stock": names(deal.stock),
            "ends": None if ends[0] < 0 else ends,
            "moves": [row_action_name(action) for action in deal.moves],
            "movers": (events >> 12).tolist(),
            "over": over,
            # An over row shows its whole end, so the result is read off it; `finished` knows only of the last step.
            "deal": one._result(np.zeros(1, np.int64)).info(0) if over else None,
            "deal_index": int(one._deal_index[0]),
            "score": one._score[0].tolist(),
            "stream": {"key": int(one._keys[0]), "dealt": int(one._dealt[0])},
        }

    def load(self, row: int, snapshot: Mapping[str, Any]) -> None:
        """Put a snapshot into a row: its deal goes on from there, and the deals after it are those it would have had.

        What follows from the deal and its moves (``hands``, ``rows``, ``ends``, ``deal``, ...) is not read.

        Raises:
            ValueError: a snapshot of other rules, or moves that do not follow from the deal; the engine is as it was.
        """
        row = row_number(row, self.num_envs)
        if not isinstance(snapshot, Mapping):
            raise ValueError(f"a snapshot is a dict, not {snapshot!r}")
        missing = [key for key in _SNAPSHOT if key not in snapshot]
        if missing:
            raise ValueError(f"the snapshot lacks {', '.join(missing)}")
        name, overrides = snapshot["rules"], snapshot["overrides"]
        if not isinstance(overrides, Mapping) or not all(isinstance(field, str) for field in overrides):
            raise ValueError(f"the snapshot's overrides must be a dict of fields of the rules, not {overrides!r}")
        theirs = get_rules(name, **overrides)
        if theirs != self.rules:
            raise ValueError(f"the snapshot is of {theirs}, this engine plays {self.rules}")
        if not isinstance(snapshot["over"], bool):
            raise ValueError(f"the snapshot's over must be True or False, not {snapshot['over']!r}")
        hands = check_hands(self.rules, snapshot["dealt"])
        stock = check_stock(self.rules, snapshot["dealt_stock"], hands)
        points = np.asarray(snapshot["score"])
        if points.shape != (self.rules.seats,) or points.dtype.kind not in "iu":
            raise ValueError(f"the snapshot's score must be {self.rules.seats} numbers, not {snapshot['score']!r}")
        if isinstance(snapshot["moves"], str) or not isinstance(snapshot["moves"], Sequence):
            raise ValueError(f"the snapshot's moves must be a list, not {snapshot['moves']!r}")
        one = RowEngine(self.rules, 1, 0)
        leader = np.array([_whole(snapshot, "leader", 0, self.rules.seats - 1)])
        one.deal(np.array([hands]), leader, np.array([stock], np.int64))
        for move in snapshot["moves"]:
            one.step(np.array([row_action_index(move)]), autoreset=False)
        if bool(one._over[0]) != snapshot["over"]:
            raise ValueError(f"the snapshot says over={snapshot['over']}, its moves say otherwise")
        one._deal_index[0] = _whole(snapshot, "deal_index", 0, 2**62)
        one._score[0] = points
        one._keys[0] = _whole(snapshot["stream"], "key", 0, 2**64 - 1)
        one._dealt[0] = _whole(snapshot["stream"], "dealt", 0, 2**62)
        self.put(np.array([row]), one)
        self.finished = copy.copy(one.finished)
        self.finished.rows = np.full(len(one.finished), row)
