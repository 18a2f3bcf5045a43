"""LineEngine: N deals of a game on an open line as arrays, one step for all of them.

Plays S1-S10 (sport dominoes), K1, K2, K4 and B1-B6 (blitz), as ``rules`` says. What belongs to a seat is kept relative
to the mover, in lists of arrays: ``_hand[0]`` is the hand of each row's mover, ``_hand[1]`` that of its left neighbour.
Where a turn is one action, every row moves one seat on at every step, and the lists are rotated instead of copied; in
blitz a turn may go on, and the rows in which it ends are moved on in place. No Python loop runs over rows.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from domino_env.batch import given_rows, mask_array, row_number, row_numbers, seat_numbers, seed_keys
from domino_env.deals import Deal, Given, check_hands, format_deal, holder, lowest, shuffle
from domino_env.observation import layout_of, score_bits, unpack
from domino_env.rules import Rules, get_rules
from domino_env.scoring import Finished, nothing, score
from domino_env.tiles import (
    ALL_TILES,
    HIGH,
    LOW,
    NUM_ACTIONS,
    NUM_SUITS,
    NUM_TILES,
    PASS,
    SUIT_MASK,
    action_index,
    action_name,
    is_whole,
    mask_of,
    tile_name,
    tiles_of,
)

_EMPTY = 63  # both ends in one number: left << 3 | right; 63 before the first tile
_PASS_BIT = np.uint64(1 << PASS)
_BOTH = np.uint64(1 | 1 << NUM_TILES)  # a hand times this stands for both ends of an action mask
_ONE_ONE = 7
_SIX_SIX = 27


def _tables() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """What an action does: action << 6 | ends -> new ends | suits passed on << 6; and small tables."""
    turn = np.zeros(NUM_ACTIONS << 6, dtype=np.int64)
    bit = np.zeros(NUM_ACTIONS, dtype=np.uint32)
    reach = np.zeros(64, dtype=np.uint32)
    seen = np.zeros(64, dtype=np.uint32)
    reach[_EMPTY] = ALL_TILES
    for left in range(NUM_SUITS):
        for right in range(NUM_SUITS):
            ends = left << 3 | right
            reach[ends] = SUIT_MASK[left] | SUIT_MASK[right]
            seen[ends] = 1 << left | 1 << NUM_SUITS + right
            turn[PASS << 6 | ends] = ends | (1 << left | 1 << right) << 6
            for tile in range(NUM_TILES):
                pair = int(LOW[tile]), int(HIGH[tile])
                if left in pair:
                    turn[tile << 6 | ends] = (sum(pair) - left) << 3 | right
                if right in pair:
                    turn[tile + NUM_TILES << 6 | ends] = left << 3 | (sum(pair) - right)
    for tile in range(NUM_TILES):
        bit[[tile, tile + NUM_TILES]] = 1 << tile
        turn[tile << 6 | _EMPTY] = int(LOW[tile]) << 3 | int(HIGH[tile])
    turn[PASS << 6 | _EMPTY] = _EMPTY  # a wrong pass of the leader (J3)
    return turn, bit, reach, seen


_TURN, _BIT, _REACH, _SEEN = _tables()


def _fits(labelled_ends: bool) -> np.ndarray:
    """ends -> the lays that match, as an action mask for a hand that held every tile: (64,) uint64."""
    fits = np.zeros(64, dtype=np.uint64)
    fits[_EMPTY] = ALL_TILES
    for left in range(NUM_SUITS):
        for right in range(NUM_SUITS):
            on_right = int(SUIT_MASK[right]) if left != right or labelled_ends else 0
            fits[left << 3 | right] = int(SUIT_MASK[left]) | on_right << NUM_TILES
    return fits


def _chain_fits(labelled_ends: bool) -> np.ndarray:
    """B3: (which end the turn has grown: 0 none, 1 left, 2 right) << 6 | ends -> the lays that match: (192,) uint64."""
    fits = np.concatenate([_fits(labelled_ends), np.zeros(128, np.uint64)])
    for left in range(NUM_SUITS):
        for right in range(NUM_SUITS):
            fits[1 << 6 | left << 3 | right] = int(SUIT_MASK[left])
            fits[2 << 6 | left << 3 | right] = int(SUIT_MASK[right]) << NUM_TILES
    return fits


# (plies & seats - 1 | seats) -> who led, as a bit of the first word of an observation: me, then clockwise.
_LED = np.array([1 << 28 + (-i % seats) for seats in (1, 2, 4) for i in range(seats)], np.uint32)
_LED = np.concatenate([np.zeros(1, np.uint32), _LED])

_FITS = {labelled: _fits(labelled) for labelled in (False, True)}


_SNAPSHOT = ("rules", "overrides", "leader", "dealt", "moves", "over", "deal_index", "score", "next_leader", "stream")


def _whole(snapshot: Any, key: str, low: int, high: int) -> int:
    """The whole number called ``key`` of a snapshot, or of a part of one."""
    value = snapshot.get(key) if isinstance(snapshot, Mapping) else None
    if not is_whole(value) or not low <= value <= high:
        raise ValueError(f"the snapshot's {key} must be a whole number in {low}..{high}, not {value!r}")
    return int(value)


def _select_table() -> np.ndarray:
    """(byte << 3 | k) -> position of the k-th set bit of the byte."""
    table = np.zeros(256 << 3, dtype=np.int64)
    for byte in range(256):
        for k, position in enumerate([b for b in range(8) if byte >> b & 1]):
            table[byte << 3 | k] = position
    return table


_SELECT = _select_table()


def select_bit(bits: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Position of the k-th set bit (k from 0) of each word: its byte by running popcounts, then a table.

    Args:
        bits: (n,) uint64, contiguous; k: (n,) uint8 below the popcount of its word.
    Returns:
        (n,) int64.
    """
    every_byte = np.uint64(0x0101010101010101)
    upto = np.bitwise_count(bits.view(np.uint8)).view(np.uint64)
    upto *= every_byte  # byte j: set bits in bytes 0..j
    passed = upto.view(np.uint8) <= (k * every_byte).view(np.uint8)  # bytes that end before the k-th bit
    shift = np.bitwise_count(passed.view(np.uint64)).astype(np.uint64)
    shift <<= np.uint64(3)
    upto <<= np.uint64(8)
    upto >>= shift  # lowest byte: set bits before the byte that holds the k-th
    index = bits >> shift
    index &= np.uint64(255)
    index <<= np.uint64(3)
    index |= k - upto.astype(np.uint8)
    return _SELECT.take(index.view(np.int64)) + shift.view(np.int64)


_PER_ROW = ("_ends", "_legal", "_leader", "_deal_index", "_dealt", "_score", "_next_leader", "_keys", "_over")
_PER_TURN = ("_stayed", "_run", "_grown")  # in games in which a turn may have several actions
_VIEWS = ("_hand", "_played", "_voids", "_size")


class LineEngine:
    """A batch of deals on an open line.

    Args:
        rules: a preset's name or a ``Rules``.
        num_envs: rows of the batch, N.
        seed: as of :meth:`reset`.
        episode: "deal", or "match" of ``fours`` fours (K2: to ``match_to`` points).
        fours: fours of a match.
        rule_overrides: fields of ``Rules``.

    Raises:
        ValueError: anything out of these.
    """

    num_actions = NUM_ACTIONS

    def __init__(
        self,
        rules: str | Rules = "sport_book",
        num_envs: int = 1024,
        seed: int | Sequence[int] | None = None,
        *,
        episode: str = "deal",
        fours: int = 1,
        **rule_overrides: Any,
    ) -> None:
        self.rules = get_rules(rules, **rule_overrides)
        if self.rules.rows:
            raise ValueError(f"{self.rules.name} is a blind game; it is played by RowEngine")
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
        self._chain_fits = _chain_fits(self.rules.labelled_ends) if self.rules.chains else self._fits
        self._per_row = _PER_ROW + (_PER_TURN if self.rules.chains else ())
        self._deck = np.uint32(mask_of(self.rules.tiles))
        # What belongs to the seats lies in blocks of one type and is read through the four lists after them.
        size_type = np.uint8 if self.rules.hand_size <= 8 else np.uint16
        self._tiles = np.zeros((2 * seats, n), np.uint32)
        self._suits = np.zeros((seats, n), np.uint8)
        self._sizes = np.zeros((seats, n), size_type)
        self._hand: list[np.ndarray] = []  # relative to the mover, like the other three
        self._played: list[np.ndarray] = []
        self._voids: list[np.ndarray] = []  # bit k: passed while suit k was an end
        self._size: list[np.ndarray] = []  # thermometer: (1 << tiles in hand) - 1
        self._ends = np.full(n, _EMPTY)  # (N,) int64
        self._legal = np.zeros(n, np.uint64)  # action mask of the mover
        self._leader = np.zeros(n, np.int64)
        turns = n if self.rules.chains else 0
        self._stayed = np.zeros(turns, np.int64)  # actions of the deal after which the turn went on (B3)
        self._run = np.zeros(turns, np.int64)  # tiles that the mover has laid in this turn
        self._grown = np.zeros(turns, np.int64)  # chain="one": the end that this turn grows: 0 either, 1 left, 2 right
        self._start = np.zeros(n, np.int64)  # value of _time when the deal began; plies are counted from it
        self._time = 0  # steps so far; also the place in the ring of events
        self._view()
        # action | ends before << 6, in blitz | seat << 12 too; written at _time
        self._ring = np.zeros((self.rules.max_plies, n), np.int16)
        self._deal_index = np.zeros(n, np.int64)
        self._dealt = np.zeros(n, np.int64)  # deals drawn from the row's stream
        # Deals are made ahead, for many rows at a time: rows with _dealt >= _ready_to have used theirs up.
        self._ahead = max(1, 32 // n)
        self._ready = np.zeros((self._ahead, n, seats), np.uint32)  # deal number c of a row lies at c % _ahead
        self._ready_to = np.zeros(n, np.int64)
        self._score = np.zeros((n, self.rules.num_sides), np.int64)  # of the match that runs
        self._next_leader = np.full(n, -1)  # K2: who leads by the last result; -1 for the first deal of a match
        self._over = np.zeros(n, bool)
        self._any_over = False
        self._keys = np.zeros(n, np.uint64)
        self.finished = nothing(self.rules)
        self.reset(seed)

    def _place(self, r: int) -> int:
        """Where in the blocks lies what belongs to the seat r places after the mover."""
        return r if self.rules.chains else (r + self._time) % self.rules.seats

    def _seat(self, number: np.ndarray) -> np.ndarray:
        """Seats counted on round the table, from 0 again after the last."""
        seats = self.rules.seats
        return number % seats if seats & seats - 1 else number & seats - 1  # the division is the slower one

    def _view(self) -> None:
        """Make the lists of what belongs to each seat: views of the cells, the mover's first."""
        seats = self.rules.seats
        order = [self._place(r) for r in range(seats)]
        self._hand = [self._tiles[place] for place in order]
        self._played = [self._tiles[seats + place] for place in order]
        self._voids = [self._suits[place] for place in order]
        self._size = [self._sizes[place] for place in order]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in _VIEWS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._view()

    # -- beginning a deal -------------------------------------------------------------------------------------------

    def reset(
        self,
        seed: int | Sequence[int] | None = None,
        options: Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None = None,
    ) -> None:
        """Begin a new episode in every row.

        Args:
            seed: a whole number (row i has stream i of it), a list of one per row, or None to go on with the streams.
            options: ``hands``, ``leader``, ``deal_index`` (design.md); one dict for all rows or a list of one per row.

        Raises:
            ValueError: bad options or seeds, another leader than a tile decides (B2); the engine is as it was.
        """
        rows = np.arange(self.num_envs)
        asked = given_rows(self.rules, options, self.num_envs)
        fresh = seed is not None or not self._dealt.any()
        keys = seed_keys(seed, self.num_envs) if fresh else self._keys
        self._check_lead(keys, np.zeros_like(self._dealt) if fresh else self._dealt, asked)
        if fresh:
            self._keys = keys
            self._dealt[:] = 0
            self._ready_to[:] = 0
            self._deal_index = rows % 4 - 1 if self.episode == "deal" else np.full(self.num_envs, -1)  # S2
            self._score[:] = 0
            self._next_leader[:] = -1
        self._new_episode(rows, asked)

    def reset_rows(
        self,
        rows: np.ndarray,
        options: Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None = None,
    ) -> None:
        """Begin a new episode in some rows, the next of each row's stream. Arguments and errors as of :meth:`reset`."""
        rows = row_numbers(rows, self.num_envs)
        asked = given_rows(self.rules, options, len(rows))
        self._check_lead(self._keys[rows], self._dealt[rows], asked)
        self._new_episode(rows, asked)

    def _check_lead(self, keys: np.ndarray, counts: np.ndarray, asked: list[Given] | None) -> None:
        """B2: refuse a leader who is asked for and does not hold the lowest tile of the deals that come next."""
        if self.rules.lead != "low" or asked is None or all(one.leader is None for one in asked):
            return
        hands = shuffle(self.rules, keys, counts)
        for j, one in enumerate(asked):
            if one.hands is not None:
                hands[j] = one.hands
        self._lowest(hands, np.array([-1 if one.leader is None else one.leader for one in asked]))

    def _lowest(self, hands: np.ndarray, asked: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Who leads by the lowest tile, and that tile as a mask (B2); a ValueError for another seat that is asked for.

        Args:
            hands: (n, seats) uint32 masks; asked: (n,) seats, -1 for none; None where nobody asked.
        """
        leader, tile = lowest(self.rules, hands)
        if asked is not None and ((asked >= 0) & (asked != leader)).any():
            j = int(((asked >= 0) & (asked != leader)).argmax())
            raise ValueError(
                f"leader={asked[j]}: seat {leader[j]} leads, who holds the lowest tile dealt, {tile_name(int(tile[j]))}"
            )
        return leader, np.uint32(1) << tile.astype(np.uint32)

    def deal(self, hands: np.ndarray, leader: np.ndarray | None = None, lead: np.ndarray | None = None) -> None:
        """Begin given deals in all rows; S4 is off.

        Args:
            hands: (N, seats) uint32 masks of ``hand_size`` tiles each.
            leader: (N,) seats; None where a tile decides.
            lead: (N,) uint32 masks of the tiles that may be led (K1); None: any, unless a tile decides (B2).

        Raises:
            ValueError: not such hands or seats, another leader than a tile decides, or a leader who holds none of the
                tiles that may be led; the engine is as it was.
        """
        hands, seats = np.asarray(hands), self.rules.seats
        if leader is None and self.rules.lead != "low":
            raise ValueError(f"leader must be ({self.num_envs},) seats: in {self.rules.name} no tile decides")
        leader = np.full(self.num_envs, -1) if leader is None else np.asarray(leader)
        if hands.shape != (self.num_envs, seats) or leader.shape != (self.num_envs,):
            raise ValueError(
                f"hands {hands.shape} and leader {leader.shape} must be ({self.num_envs}, {seats}) and (N,)"
            )
        if (
            hands.dtype.kind not in "iu"
            or leader.dtype.kind not in "iu"
            or (hands.astype(np.uint64) >> NUM_TILES).any()
        ):
            raise ValueError(f"hands {hands.dtype} must be masks of tiles, leader {leader.dtype} seat numbers")
        hands = hands.astype(np.uint32)
        all_tiles = np.bitwise_or.reduce(hands, axis=1)
        if (
            (np.bitwise_count(hands) != self.rules.hand_size).any()
            or (np.bitwise_count(all_tiles) != seats * self.rules.hand_size).any()
            or (all_tiles & ~self._deck).any()
        ):
            raise ValueError(f"each row needs {seats} disjoint hands of {self.rules.hand_size} tiles of the set")
        if self.rules.lead == "low":
            leader, lead = self._lowest(hands, leader)
        if ((leader < 0) | (leader >= seats)).any():
            raise ValueError(f"leaders must be in 0..{seats - 1}")
        rows = np.arange(self.num_envs)
        if lead is not None:
            lead = np.asarray(lead)
            if lead.shape != rows.shape or lead.dtype.kind not in "iu" or not (hands[rows, leader] & lead).all():
                raise ValueError(f"lead must be ({self.num_envs},) masks of tiles, one or more of them the leader's")
            lead = lead.astype(np.uint32)
        self._advance(rows)
        if self.episode == "deal":
            # The lead rotates on from here (S2); where the lowest tile leads, a given deal is the first.
            self._deal_index = leader.astype(np.int64) if self.rules.lead != "low" else np.zeros_like(rows)
        self._begin(rows, hands, leader.astype(np.int64), lead)

    def _advance(self, rows: np.ndarray) -> None:
        """Count one episode on: the next deal, or a new match where the episode is one."""
        if self.episode == "match":
            self._score[rows] = 0
            self._deal_index[rows] = 0
            self._next_leader[rows] = -1
        else:
            self._deal_index[rows] += 1

    def _new_episode(self, rows: np.ndarray, asked: list[Given] | None) -> None:
        self._advance(rows)
        self._draw(rows, asked)

    def _draw(self, rows: np.ndarray, asked: list[Given] | None = None) -> None:
        """Deal these rows, from their streams or as asked."""
        if asked is not None:
            indices = np.array([-1 if one.deal_index is None else one.deal_index for one in asked])
            self._deal_index[rows] = np.where(indices < 0, self._deal_index[rows], indices)
        hands = self._shuffled(rows)
        if asked is not None:
            for j, one in enumerate(asked):  # options are Python dicts a row; this is no hot path
                if one.hands is not None:
                    hands[j] = one.hands
        lead = None  # the tiles that may be led; None: any
        if self.rules.lead == "rotation":
            leader = self._seat(self._deal_index.take(rows))  # S2
        elif self.rules.lead == "double_six":
            leader = holder(hands, _SIX_SIX)  # K1: who holds it leads with it
            lead = np.full(len(rows), 1 << _SIX_SIX, np.uint32)
        elif self.rules.lead == "low":
            leader, lead = self._lowest(hands)
        else:
            leader = self._next_leader[rows]
            first = leader < 0
            leader = np.where(first, holder(hands, _ONE_ONE), leader)
            lead = np.where(first, np.uint32(1 << _ONE_ONE), np.uint32(ALL_TILES))
        if asked is not None and self.rules.lead != "low":
            seats = np.array([-1 if one.leader is None else one.leader for one in asked])
            leader = np.where(seats < 0, leader, seats)
            if lead is not None:
                lead[seats >= 0] = ALL_TILES
        self._begin(rows, hands, leader, lead)

    def _shuffled(self, rows: np.ndarray) -> np.ndarray:
        """The next deal of the stream of each row: (n, seats) uint32."""
        number = self._dealt.take(rows)
        if (number >= self._ready_to.take(rows)).any():
            stale = np.flatnonzero(self._dealt >= self._ready_to)
            numbers = self._dealt[stale] + np.arange(self._ahead)[:, None]
            keys = np.broadcast_to(self._keys[stale], numbers.shape)
            made = shuffle(self.rules, keys.ravel(), numbers.ravel()).reshape(*numbers.shape, self.rules.seats)
            self._ready[numbers % self._ahead, stale] = made
            self._ready_to[stale] = numbers[-1] + 1
        self._dealt[rows] = number + 1
        return self._ready[number % self._ahead, rows]

    def _begin(self, rows: np.ndarray, hands: np.ndarray, leader: np.ndarray, lead: np.ndarray | None) -> None:
        seats = self.rules.seats
        first = np.arange(0, len(rows) * seats, seats)  # where each row's hands begin
        tiles = np.zeros((2 * seats, len(rows)), np.uint32)
        for r in range(seats):
            tiles[self._place(r)] = hands.take(first + self._seat(leader + r))
        self._tiles[:, rows] = tiles
        self._suits[:, rows] = 0
        self._sizes[:, rows] = (1 << self.rules.hand_size) - 1
        self._ends[rows] = _EMPTY
        self._start[rows] = self._time
        self._leader[rows] = leader
        if self.rules.chains:
            for state in (self._stayed, self._run, self._grown):
                state[rows] = 0
        mine = tiles[self._place(0)]
        self._legal[rows] = mine if lead is None else mine & lead
        if self._any_over:
            self._over[rows] = False
            self._any_over = bool(self._over.any())

    # -- playing ----------------------------------------------------------------------------------------------------

    def step(self, actions: np.ndarray, autoreset: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Play one action in every row.

        Args:
            actions: (N,) integers, each legal for its row's mover.
            autoreset: rows whose episode ends begin the next one at once; otherwise they stay at their end, and
                stepping them again is an error until :meth:`reset_rows` or :meth:`take`.

        Returns:
            rewards: (N, seats) float32, zero but where a deal ended (S9); done: (N,) bool, the episode is over.
            What ended is in ``finished``.

        Raises:
            ValueError: wrong shape or dtype, an illegal action, or a row that is over; the engine is as it was.
        """
        acts = self._checked(actions)
        over = self._play_chain(acts) if self.rules.chains else self._play(acts)
        rows = over.nonzero()[0]
        rewards = np.zeros((self.num_envs, self.rules.seats), np.float32)
        if len(rows):
            over = self._finish(rows, rewards, over, autoreset)
        elif len(self.finished):
            self.finished = nothing(self.rules)
        return rewards, over

    def _play(self, acts: np.ndarray) -> np.ndarray:
        """One action of every row, each a turn (S3). Returns the rows whose deals are over: (N,) bool."""
        ends = self._ends
        index = acts << 6
        index |= ends
        self._ring[self._time % len(self._ring)] = acts | ends << 6
        turned = _TURN.take(index)
        bit = _BIT.take(acts)
        hand, played, voids, size = self._hand, self._played, self._voids, self._size
        hand[0] ^= bit
        played[0] |= bit
        voids[0] |= (turned >> 6).astype(np.uint8)
        size[0] >>= (bit != 0).view(np.uint8)
        turned &= 63
        self._ends = ends = turned
        for state in (hand, played, voids, size):
            state.append(state.pop(0))
        self._time += 1
        self._legal = self._lays_or_pass(hand[0], ends)
        over = self._blocked(ends)
        over |= hand[-1] == 0
        return over

    def _lays_or_pass(self, hands: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """S3: the lays of (n,) hands that match (n,) ends, a pass where there is none: (n,) uint64 bits by action."""
        legal = hands * _BOTH
        legal &= self._fits.take(ends)
        legal |= (legal == 0) * _PASS_BIT
        return legal

    def _play_chain(self, acts: np.ndarray) -> np.ndarray:
        """One action of every row, where a turn goes on after a lay (B3, B4). Returns the rows whose deals are over."""
        before = self._ends
        self._ring[self._time % len(self._ring)] = acts | before << 6 | self._mover() << 12
        turned = _TURN.take(acts << 6 | before)
        bit = _BIT.take(acts)
        lays = bit != 0
        self._hand[0] ^= bit
        self._played[0] |= bit
        self._voids[0] |= (turned >> 6).astype(np.uint8) * (self._run == 0)  # a stop tells nothing of the hand
        self._size[0] >>= lays.view(np.uint8)
        turned &= 63
        self._ends = ends = turned
        self._time += 1
        over = self._blocked(ends)
        over |= self._hand[0] == 0
        stays = lays & ~over
        self._stayed += stays
        self._run += 1
        self._run *= stays
        self._move_on(~stays)
        if self.rules.chain == "one":
            # The lead tile leaves both ends open.
            self._grown = np.where(acts < NUM_TILES, 1, 2) * (stays & (before != _EMPTY))
            ends = self._grown << 6 | ends
        legal = self._hand[0] * _BOTH
        legal &= self._chain_fits.take(ends)
        legal |= (stays | (legal == 0)) * _PASS_BIT
        self._legal = legal
        return over

    def _move_on(self, rows: np.ndarray) -> None:
        """The left neighbour is the mover now, in the rows of a (N,) bool: all that is relative moves one place."""
        seats = self.rules.seats
        for block in (self._tiles[:seats], self._tiles[seats:], self._suits, self._sizes):
            change = np.concatenate([block[1:], block[:1]])
            change ^= block
            change &= -rows.astype(block.dtype)
            block ^= change

    def _blocked(self, ends: np.ndarray) -> np.ndarray:
        """S5, B4: no tile in any hand matches an end, seen at once: (N,) bool."""
        held = self._hand[0] | self._hand[1]
        for other in self._hand[2:]:
            held |= other
        held &= _REACH.take(ends)
        return held == 0

    def _checked(self, actions: np.ndarray) -> np.ndarray:
        acts = np.asarray(actions)
        if acts.shape != (self.num_envs,) or acts.dtype.kind not in "iu":
            raise ValueError(
                f"actions must be whole numbers of shape ({self.num_envs},), not {acts.dtype} of shape {acts.shape}"
            )
        acts = acts.astype(np.int64)
        codes = acts.view(np.uint64)
        if (codes > PASS).any():
            row = int((codes > PASS).argmax())
            raise ValueError(f"action {actions[row]} in row {row} does not exist; actions are 0..{PASS}")
        if self._any_over:
            row = int(self._over.argmax())
            raise ValueError(f"row {row} is over; reset it or take the others first")
        wrong = self._legal >> codes & np.uint64(1) == 0
        if wrong.any():
            row = int(wrong.argmax())
            legal = ", ".join(action_name(a) for a in range(NUM_ACTIONS) if int(self._legal[row]) >> a & 1)
            raise ValueError(
                f"action {acts[row]} ({action_name(acts[row])}) in row {row} is illegal; legal are {legal}"
            )
        return acts

    def allow_pass(self, rows: np.ndarray) -> None:
        """Let the movers of these rows pass though they could lay: a wrong pass that is judged, and goes on (J3)."""
        self._legal[row_numbers(rows, self.num_envs)] |= _PASS_BIT

    def add_points(self, rows: np.ndarray, points: np.ndarray) -> None:
        """Add to the score of the match that runs in these rows, as a judge does (J1-J3).

        Args:
            rows: (n,) distinct row numbers; points: (n, sides) or (sides,) whole numbers.
        """
        if self.episode == "match":
            self._score[row_numbers(rows, self.num_envs)] += np.asarray(points)

    def stop(self, rows: np.ndarray) -> None:
        """End the episodes of these rows where they stand, as a judge does (J1, J2, J5); they wait for a reset."""
        rows = row_numbers(rows, self.num_envs)
        self._over[rows] = True
        self._any_over = bool(self._over.any())
        self._legal[rows] = _PASS_BIT

    def deal_on(self, rows: np.ndarray, options: Sequence[Mapping[str, Any] | None] | None = None) -> None:
        """The next deals of these rows' streams within their episodes: a match goes on with its score.

        Arguments and errors as of :meth:`reset_rows`; ``deal_index`` numbers the deal, which is counted on without it.
        """
        rows = row_numbers(rows, self.num_envs)
        asked = given_rows(self.rules, options, len(rows))
        self._check_lead(self._keys[rows], self._dealt[rows], asked)
        self._deal_index[rows] += 1
        self._draw(rows, asked)

    def _finish(self, rows: np.ndarray, rewards: np.ndarray, over: np.ndarray, autoreset: bool) -> np.ndarray:
        """Score the deals that ended, and begin the next ones. Returns which episodes are done."""
        self.finished = self._result(rows)
        rewards[rows] = self.finished.rewards
        if self.rules.lead == "winner":
            self._count_lead(self.finished)
        if self.episode == "match" or self.rules.match_to is not None:
            ended = self._count_match(self.finished)
            if self.episode == "match":
                over, rows = over & ended, rows[ended[rows]]
        if not autoreset:
            self._over[rows] = True
            self._any_over = bool(len(rows)) or self._any_over
            self._legal[rows] = _PASS_BIT
        elif len(rows):
            self._new_episode(rows, None)
        return over

    def _result(self, rows: np.ndarray) -> Finished:
        """The result of deals that are over."""
        seats = self.rules.seats
        plies = self._time - self._start.take(rows)
        turns = plies - self._stayed.take(rows) if self.rules.chains else plies
        by = self._seat(self._leader.take(rows) + turns - 1)
        hands = np.array([self._hand[r - 1].take(rows) for r in range(seats)])
        return score(self.rules, rows, hands, by, plies)

    def _count_lead(self, done: Finished) -> None:
        """K2: next leads the winning side's first seat clockwise from the one that laid last, itself after an out."""
        leads = (done.by + (done.winner - done.by) % self.rules.num_sides) % self.rules.seats
        self._next_leader[done.rows] = np.where(done.winner < 0, self._leader[done.rows], leads)

    def _count_match(self, done: Finished) -> np.ndarray:
        """Add up the matches of these rows; deal the next of those that go on. Returns (N,) bool: False for those."""
        rows = done.rows
        self._score[rows] += done.points
        if self.rules.match_to is not None:
            won = (self._score[rows] >= self.rules.match_to).any(axis=1)  # K2
        else:
            won = self._deal_index[rows] + 1 >= 4 * self.fours  # S10
        ended = np.ones(self.num_envs, bool)
        if self.episode == "match":
            going = rows[~won]
            ended[going] = False
            if len(going):
                self._deal_index[going] += 1
                self._draw(going)
        else:  # single deals of kozyol follow each other as in a running match
            self._score[rows[won]] = 0
            self._next_leader[rows[won]] = -1
        return ended

    # -- looking ----------------------------------------------------------------------------------------------------

    def _turns(self, rows: Any = slice(None)) -> np.ndarray:
        """Turns of the deal that are over; after its end all of them."""
        plies = self._time - self._start[rows]
        return plies - self._stayed[rows] if self.rules.chains else plies

    def _mover(self, rows: Any = slice(None)) -> np.ndarray:
        return self._seat(self._leader[rows] + self._turns(rows))

    def _absolute(self, relative: list[np.ndarray], rows: Any, mover: np.ndarray) -> np.ndarray:
        """What belongs to each seat, (n, seats), from the lists that are relative to the mover."""
        stacked = np.stack([state[rows] for state in relative], axis=1)
        return np.take_along_axis(stacked, (np.arange(self.rules.seats) - mover[:, None]) % self.rules.seats, axis=1)

    def to_move(self) -> np.ndarray:
        """Seat to move: (N,) int64; after the end the seat that would come next."""
        return self._mover()

    def over(self) -> np.ndarray:
        """Rows that wait for a reset: (N,) bool."""
        return self._over.copy()

    def leader(self) -> np.ndarray:
        """Seat that led the deal: (N,) int64."""
        return self._leader.copy()

    def truncated(self) -> np.ndarray:
        """Rows in which the last step's deal was broken off: (N,) bool; on an open line none ever is."""
        return np.zeros(self.num_envs, bool)

    def peeks(self) -> np.ndarray:
        """Rows whose mover is shown its own tiles now and never again (R9): (N,) bool; on an open line none."""
        return np.zeros(self.num_envs, bool)

    def plies(self) -> np.ndarray:
        """Actions played in the deal: (N,) int64."""
        return self._time - self._start

    def deal_index(self) -> np.ndarray:
        """Number d of the deal (S2): (N,) int64."""
        return self._deal_index.copy()

    def hands(self) -> np.ndarray:
        """What every seat holds: (N, seats) uint32 masks. Nobody at the table sees all of it."""
        return self._absolute(self._hand, slice(None), self._mover())

    def played(self) -> np.ndarray:
        """What every seat has laid: (N, seats) uint32 masks."""
        return self._absolute(self._played, slice(None), self._mover())

    def passed(self) -> np.ndarray:
        """Suits that were ends when a seat passed: (N, seats) uint32, bit k for suit k."""
        return self._absolute(self._voids, slice(None), self._mover())

    def ends(self) -> np.ndarray:
        """Suits of the left and the right end: (N, 2) int8, -1 before the first tile."""
        ends = np.stack([self._ends >> 3, self._ends & 7], axis=1).astype(np.int8)
        ends[self._ends == _EMPTY] = -1
        return ends

    def score(self) -> np.ndarray:
        """Points of each side in the match that runs: (N, sides) int32; zero where episodes are single deals."""
        return (self._score if self.episode == "match" else np.zeros_like(self._score)).astype(np.int32)

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
            (N, 57) int8.
        """
        bits = self._legal
        if seat is not None:
            bits = np.where(seat_numbers(seat, self.rules.seats, self.num_envs) == self._mover(), bits, _PASS_BIT)
        return mask_array(bits, NUM_ACTIONS)

    def sample_legal(self, rng: np.random.Generator) -> np.ndarray:
        """A uniformly random legal action of each row's mover: (N,) int64."""
        count = np.bitwise_count(self._legal)
        draw = rng.integers(0, 1 << 32, self.num_envs, np.uint32).astype(np.uint64)
        draw *= count
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
        if seat is None:
            words = self._words(0, None)
        else:
            offset = (seat_numbers(seat, self.rules.seats, self.num_envs) - self._mover()) % self.rules.seats
            words = np.empty((self.num_envs, self.layout.size // 32), "<u4")
            for r in range(self.rules.seats):
                rows = np.flatnonzero(offset == r)
                words[rows] = self._words(r, rows)
        data = words.view(np.uint8)
        return data if packed else unpack(data)

    def _words(self, viewer: int, rows: np.ndarray | None) -> np.ndarray:
        """Packed observations of the seat ``viewer`` places after the mover: (n, words) uint32 of ``rows`` or all."""
        seats = self.rules.seats

        def of(state: np.ndarray) -> np.ndarray:
            return state if rows is None else state[rows]

        def around(states: list[np.ndarray], r: int) -> np.ndarray:
            return of(states[(viewer + r) % seats])

        if self.rules.chains:
            return self._chain_words(viewer, slice(None) if rows is None else rows)
        plies = self._time - of(self._start)
        led = _LED.take(viewer + plies & seats - 1 | seats)
        words = np.empty((len(plies), self.layout.size // 32), "<u4")
        words[:, 0] = around(self._hand, 0) | led
        for r in range(seats):
            words[:, 1 + r] = around(self._played, r)
        words[:, 1 + seats] = _SEEN.take(of(self._ends))
        suits, sizes = words[:, 2 + seats :].view(np.uint8), words[:, 2 + seats :].view(self._sizes.dtype)
        if seats < 4:
            words[:, 2 + seats :] = 0
        for r in range(seats):
            suits[:, r] = around(self._voids, r)
            sizes[:, sizes.shape[1] // 2 + r] = around(self._size, r)
        if self.episode == "match":
            words[:, 1] |= (np.uint32(1 << 28) << (of(self._deal_index) % 4).astype(np.uint32)).astype("<u4")
            words[:, 1 + seats] |= self._score_bits(viewer, plies, rows)
        return words

    def _chain_words(self, viewer: int, rows: Any) -> np.ndarray:
        """What `_words` is to the sport games, of blitz."""
        seats, turns = self.rules.seats, self._turns(rows)
        around = [(viewer + r) % seats for r in range(seats)]
        words = np.zeros((len(turns), self.layout.size // 32), "<u4")
        words[:, 0] = self._hand[viewer][rows]
        for r, place in enumerate(around):
            words[:, 1 + r] = self._played[place][rows]
        words[:, 1 + seats] = _SEEN.take(self._ends[rows])
        table = np.uint32(1) << self._seat(seats - viewer + (seats - 1) * turns).astype(np.uint32)  # who led
        table |= np.uint32(1 << 8 + (seats - viewer) % seats)
        table |= (self._run[rows] > 0).astype(np.uint32) << np.uint32(16)
        table |= (self._grown[rows] << 17).astype(np.uint32)  # 1 left, 2 right
        words[:, 2 + seats] = table
        each = words[:, 3 + seats :].view(np.uint8)
        for r, place in enumerate(around):
            each[:, r] = self._voids[place][rows]
            each[:, each.shape[1] // 2 + r] = self._size[place][rows]
        if self.episode == "match":
            words[:, 1] |= (np.uint32(1 << 28) << (self._deal_index[rows] % 4).astype(np.uint32)).astype("<u4")
            words[:, 1 + seats] |= self._score_bits(viewer, turns, rows)
        return words

    def _score_bits(self, viewer: int, turns: np.ndarray, rows: Any) -> np.ndarray:
        """Score bits of the word of the ends: own side against the best of the others."""
        leader, score = (self._leader, self._score) if rows is None else (self._leader[rows], self._score[rows])
        return score_bits(score, (leader + turns + viewer) % self.rules.num_sides) << np.uint32(14)

    def history(self, seat: int | np.ndarray | None = None) -> np.ndarray:
        """The public events of the deal, oldest first.

        Args:
            seat: whose view (None: the mover's).
        Returns:
            (N, max_plies) int16, -1 padded; an event is ``relative_seat << 12 | left << 9 | right << 6 | action``
            with the ends before the action (7, 7 on an empty line) and relative_seat clockwise from the viewer.
        """
        viewer = self._mover() if seat is None else seat_numbers(seat, self.rules.seats, self.num_envs)
        events = np.full((self.num_envs, self.rules.max_plies), -1, np.int16)
        plies = self.plies()
        longest = int(plies.max())
        if longest:
            ply = np.arange(longest)
            raw = self._ring[(self._start[:, None] + ply) % len(self._ring), np.arange(self.num_envs)[:, None]]
            who = raw >> 12 if self.rules.chains else self._leader[:, None] + ply
            who = (who - viewer[:, None]) % self.rules.seats
            events[:, :longest] = np.where(ply < plies[:, None], raw & 0xFFF | who << 12, -1)
        return events

    # -- copies -----------------------------------------------------------------------------------------------------

    def take(self, rows: np.ndarray) -> "LineEngine":
        """An engine that holds copies of only these rows, in this order, with their streams.

        Args:
            rows: (n,) row numbers, or (N,) bool.
        """
        rows = row_numbers(rows, self.num_envs)
        if not len(rows):
            raise ValueError("take needs at least one row")
        other = copy.copy(self)
        other.num_envs = len(rows)
        other._tiles, other._suits = self._tiles[:, rows], self._suits[:, rows]
        other._sizes = self._sizes[:, rows]
        other._view()
        for name in (*self._per_row, "_start", "_ready_to"):
            setattr(other, name, getattr(self, name)[rows])
        other._ready = self._ready[:, rows]
        other._any_over = bool(other._over.any())
        other._ring = np.empty((len(self._ring), len(rows)), np.int16)
        # Only the events of the deals that run are worth copying.
        recent = np.arange(self._time - int((self._time - other._start).max()), self._time) % len(self._ring)
        other._ring[recent] = self._ring[np.ix_(recent, rows)]
        other.finished = nothing(self.rules)
        return other

    def put(self, rows: np.ndarray, other: "LineEngine") -> None:
        """Write the rows of `other`, in this order, over these rows: the reverse of `take`.

        Args:
            rows: (n,) distinct row numbers.
            other: an engine of n rows of the same game.

        Raises:
            ValueError: another game, or another number of rows; the engine is as it was.
        """
        same = other.rules is self.rules or other.rules == self.rules  # to compare them takes longer
        if not same or other.num_envs != len(rows):
            raise ValueError(f"{len(rows)} rows of {self.rules} are not the {other.num_envs} of {other.rules}")
        for name in _VIEWS:
            for mine, theirs in zip(getattr(self, name), getattr(other, name), strict=True):
                mine[rows] = theirs
        # Deals made ahead serve on where they are of the same stream and the next one is not older than they are.
        oldest = self._ready_to[rows] - self._ahead
        self._ready_to[rows] *= (self._keys[rows] == other._keys) & (other._dealt >= oldest)
        for name in self._per_row:
            getattr(self, name)[rows] = getattr(other, name)
        # The two count their steps apart: the events of the running deals move along.
        ahead = self._time - other._time
        self._start[rows] = other._start + ahead
        recent = np.arange(int(other._start.min()), other._time)
        size = len(self._ring)
        self._ring[np.ix_((recent + ahead) % size, rows)] = other._ring[recent % size]
        self._any_over = bool(self._over.any())

    def suppose(self, rows: np.ndarray, hands: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the movers of some rows would see and could do if they held other hands.

        Args:
            rows: (q,) row numbers, a row may stand several times.
            hands: (q,) uint32 masks of as many tiles as the mover holds.
        Returns:
            obs (q, layout.nbytes) uint8 packed observations, legal (q,) uint64, bit a for action a. A tile that the
            rules bind the leader to (K1, K2, B2) is not looked at: all that match are legal.
        """
        hands = np.asarray(hands, np.uint32)
        words = self._words(0, rows)
        words[:, 0] = words[:, 0] & ~np.uint32(ALL_TILES) | hands
        if self.rules.chains:
            legal = hands * _BOTH
            legal &= self._chain_fits.take(self._grown[rows] << 6 | self._ends[rows])
            legal |= ((self._run[rows] > 0) | (legal == 0)) * _PASS_BIT
        else:
            legal = self._lays_or_pass(hands, self._ends[rows])
        return words.view(np.uint8), legal

    @classmethod
    def standing(
        cls,
        rules: Rules,
        hands: np.ndarray,
        played: np.ndarray,
        voids: np.ndarray,
        ends: np.ndarray,
        leader: np.ndarray,
        plies: np.ndarray,
        events: np.ndarray | None = None,
    ) -> "LineEngine":
        """An engine of single deals that stand in the middle, for games with one tile a turn.

        Nothing is checked: the caller answers for a position that can be. After a deal's end rows must not be reset.

        Args:
            rules: the game.
            hands: (N, seats) uint32 what each seat holds; played: (N, seats) uint32 what it has laid.
            voids: (N, seats) uint8, bit k: the seat passed while suit k was an end.
            ends: (N, 2) suits, -1 before the lead.
            leader: (N,) seats; plies: (N,) actions so far, which tell the mover.
            events: (N, T) what :meth:`history` answers to seat 0, for those who will ask for it; None: not kept.
        """
        if rules.chains:
            raise ValueError(f"in {rules.name} a turn has several actions: it cannot be set up from the middle")
        n, seats = len(hands), rules.seats
        one = cls(rules, 1, 0)
        other = copy.copy(one)
        other.num_envs = n
        for name in (*one._per_row, "_ready_to"):
            array = getattr(one, name)
            setattr(other, name, np.zeros((n, *array.shape[1:]), array.dtype))
        other._ready = np.zeros((one._ahead, n, seats), np.uint32)
        other._leader = leader.astype(np.int64)
        other._deal_index = other._leader.copy()
        other._next_leader -= 1
        other._time = int(plies.max(initial=0))
        other._start = other._time - plies.astype(np.int64)
        other._tiles = np.empty((2 * seats, n), np.uint32)
        other._suits = np.empty((seats, n), np.uint8)
        other._sizes = np.empty((seats, n), one._sizes.dtype)
        every, mover = np.arange(n), (leader + plies) % seats
        for r in range(seats):
            place, seat = other._place(r), (mover + r) % seats
            other._tiles[place] = hands[every, seat]
            other._tiles[seats + place] = played[every, seat]
            other._suits[place] = voids[every, seat]
            other._sizes[place] = (1 << np.bitwise_count(other._tiles[place]).astype(np.int64)) - 1
        other._view()
        other._ends = np.where(ends[:, 0] < 0, _EMPTY, ends[:, 0].astype(np.int64) << 3 | ends[:, 1])
        other._legal = other._lays_or_pass(other._hand[0], other._ends)
        other._ring = np.zeros((len(one._ring), n), np.int16)
        if events is not None:
            row, ply = np.nonzero(events >= 0)
            other._ring[(other._start[row] + ply) % len(other._ring), row] = events[row, ply] & 0xFFF
        other.finished = nothing(rules)
        return other

    def record(self, row: int) -> Deal:
        """The deal of a row as it was dealt, and its moves so far."""
        return self._record(row_number(row, self.num_envs))

    def text(self, row: int) -> str:
        """The deal of a row in the notation of :mod:`domino_env.deals`."""
        return format_deal(self.record(row))

    def _record(self, row: int) -> Deal:
        one = self.take(np.array([row]))
        hands = (one.hands() | one.played())[0]
        events = one.history()[0, : one.plies()[0]]
        return Deal(self.rules, int(one._leader[0]), [tiles_of(hand) for hand in hands], (events & 63).tolist())

    def snapshot(self, row: int) -> dict[str, Any]:
        """All of one row as plain JSON values; :meth:`load` and the renderers read it."""
        one = self.take(np.array([row_number(row, self.num_envs)]))
        deal = self._record(row)
        ends = one.ends()[0].tolist()
        over = bool(self._over[row])
        # The row shows its whole end, so the result is read off it; `finished` knows only of the last step. A deal that
        # a judge stopped has none.
        ended = one._result(np.zeros(1, np.int64)) if over and one._ended() else None
        lead = int(one._legal[0]) if not deal.moves and not over else 0
        events = one.history(0)[0, : one.plies()[0]]
        forced = lead not in (0, mask_of(deal.hands[deal.leader]))
        return {
            "rules": self.rules.name,
            "overrides": self.rules.overrides(),
            "seats": self.rules.seats,
            "pairs": self.rules.pairs,
            "leader": deal.leader,
            "to_move": int(one._mover()[0]),
            "hands": [[tile_name(t) for t in tiles_of(hand)] for hand in one.hands()[0]],
            "dealt": [[tile_name(t) for t in hand] for hand in deal.hands],
            "ends": None if ends[0] < 0 else ends,
            "moves": [action_name(a) for a in deal.moves],
            "movers": (events >> 12).tolist(),
            **self._turn_of(one, deal),
            "lead_tile": tile_name(tiles_of(lead)[0]) if forced else None,
            "over": over,
            "deal": None if ended is None else ended.info(0),
            "deal_index": int(self._deal_index[row]),
            "score": one._score[0].tolist(),
            "next_leader": int(self._next_leader[row]),
            "stream": {"key": int(self._keys[row]), "dealt": int(self._dealt[row])},
        }

    def _ended(self) -> bool:
        """Whether the deal of a batch of one is over by the rules: out or blocked."""
        return bool(self._blocked(self._ends)[0]) or not all(hand[0] for hand in self._hand)

    def _turn_of(self, one: "LineEngine", deal: Deal) -> dict[str, Any]:
        """What a snapshot of blitz has beyond those of the other games: how far the turn is, and what lies apart."""
        if not self.rules.chains:
            return {}
        held = mask_of(tile for hand in deal.hands for tile in hand)
        return {
            "turn": {"laid": int(one._run[0]), "end": (None, "left", "right")[int(one._grown[0])]},
            "leftover": [tile_name(tile) for tile in self.rules.tiles if not held >> tile & 1],
        }

    def load(self, row: int, snapshot: Mapping[str, Any]) -> None:
        """Put a snapshot into a row: its deal goes on from there, and the deals after it are those it would have had.

        What follows from the deal and its moves (``hands``, ``ends``, ``to_move``, ``deal``, ...) is not read.

        Raises:
            ValueError: a snapshot of other rules, or moves that do not follow from the deal, as where a judge let a
                wrong pass stand or stopped the deal (copies of an engine keep these); the engine is as it was.
        """
        row = row_number(row, self.num_envs)
        if not isinstance(snapshot, Mapping):
            raise ValueError(f"a snapshot is a dict, not {snapshot!r}")
        missing = [key for key in _SNAPSHOT if key not in snapshot]
        if missing:
            raise ValueError(f"the snapshot lacks {', '.join(missing)}")
        overrides = snapshot["overrides"]
        if not isinstance(overrides, Mapping) or not all(isinstance(field, str) for field in overrides):
            raise ValueError(f"the snapshot's overrides must be a dict of fields of the rules, not {overrides!r}")
        theirs = get_rules(snapshot["rules"], **overrides)
        if theirs != self.rules:
            raise ValueError(f"the snapshot is of {theirs}, this engine plays {self.rules}")
        if not isinstance(snapshot["over"], bool):
            raise ValueError(f"the snapshot's over must be True or False, not {snapshot['over']!r}")
        tiles = check_hands(self.rules, snapshot["dealt"])
        leader = _whole(snapshot, "leader", 0, self.rules.seats - 1)
        points = np.asarray(snapshot["score"])
        if points.shape != (self.rules.num_sides,) or points.dtype.kind not in "iu":
            raise ValueError(f"the snapshot's score must be {self.rules.num_sides} numbers, not {snapshot['score']!r}")
        if isinstance(snapshot["moves"], str) or not isinstance(snapshot["moves"], Sequence):
            raise ValueError(f"the snapshot's moves must be a list, not {snapshot['moves']!r}")
        one = LineEngine(self.rules, 1, 0, episode=self.episode, fours=self.fours)
        one.reset(options={"hands": [[tile_name(t) for t in hand] for hand in tiles], "leader": leader})
        if snapshot.get("lead_tile") is not None:
            lead = np.uint64(mask_of([action_index(f"{snapshot['lead_tile']}L")]))
            if not one._legal[0] & lead:
                raise ValueError(f"lead_tile {snapshot['lead_tile']} is not in the leader's hand")
            one._legal[0] = lead
        one._play_on([action_index(move) for move in snapshot["moves"]])
        one._deal_index[0] = _whole(snapshot, "deal_index", 0, 2**62)
        one._score[0] = points  # after the moves: at the end of a deal they would be counted twice
        one._next_leader[0] = _whole(snapshot, "next_leader", -1, self.rules.seats - 1)
        one._keys[0] = _whole(snapshot["stream"], "key", 0, 2**64 - 1)
        one._dealt[0] = _whole(snapshot["stream"], "dealt", 0, 2**62)
        if bool(one._over[0]) != snapshot["over"]:
            raise ValueError(f"the snapshot says over={snapshot['over']}, its moves say otherwise")
        self.put(np.array([row]), one)
        self.finished = copy.copy(one.finished)
        self.finished.rows = np.full(len(one.finished), row)

    def _play_on(self, moves: Sequence[int]) -> None:
        """Play the moves of one deal in a batch of one, staying at its end."""
        episode, self.episode = self.episode, "deal"
        try:
            for move in moves:
                self.step(np.array([move]), autoreset=False)
        finally:
            self.episode = episode
