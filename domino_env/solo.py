"""A batch of one, played in Python ints: what the one-table envs step.

NumPy pays its overhead on every call, so an array of length one costs as much as one of a hundred. `Solo` is a
LineEngine of one row with two more verbs, `play` and `see`, which read and write the same state number by number,
several times faster. All other verbs are the engine's own, and either way the game is the same: a test plays both
side by side. `ChainSolo` is the same for blitz; `RowSolo`, for the blind games, uses the batch's own verbs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from domino_env.line import _BIT, _EMPTY, _FITS, _REACH, _SEEN, _TURN, LineEngine
from domino_env.rows import RowEngine
from domino_env.rules import Rules, get_rules
from domino_env.scoring import nothing
from domino_env.tiles import NUM_TILES, PASS

_TURN_LIST, _BIT_LIST, _REACH_LIST, _SEEN_LIST = (table.tolist() for table in (_TURN, _BIT, _REACH, _SEEN))
_FITS_LISTS = {labelled: table.tolist() for labelled, table in _FITS.items()}
_BOTH_ENDS = 1 | 1 << NUM_TILES  # a hand times this stands for both ends of an action mask
_PASS_BIT = 1 << PASS
_ROW = np.zeros(1, np.int64)


class Solo(LineEngine):
    """A LineEngine of one row, of a game with one tile a turn. Arguments and errors as there."""

    def __init__(
        self, rules: str | Rules = "sport_book", *, episode: str = "deal", fours: int = 1, **rule_overrides: Any
    ) -> None:
        super().__init__(get_rules(rules, **rule_overrides), 1, episode=episode, fours=fours)

    def mover(self) -> int:
        """Seat to move; after the end the seat that would come next."""
        return (self._leader.item() + self._time - self._start.item()) % self.rules.seats

    def play(self, action: int) -> tuple[list[float] | None, bool]:
        """What `step([action], autoreset=False)` does.

        Args:
            action: 0..56, legal for the mover.

        Returns:
            rewards: one a seat if a deal ended, else None; done: the episode is over. What ended is in `finished`.

        Raises:
            ValueError: an illegal action, or after the end; nothing is changed.
        """
        if self._any_over or not 0 <= action <= PASS or not self._legal.item() >> action & 1:
            raise _refusal(self, action, self._any_over)
        ends = self._ends.item()
        turned = _TURN_LIST[action << 6 | ends]
        bit = _BIT_LIST[action]
        self._ring[self._time % len(self._ring), 0] = action | ends << 6
        hand, size = self._hand, self._size
        left = hand[0].item() & ~bit
        hand[0][0] = left
        if bit:
            played = self._played[0]
            played[0] = played.item() | bit
            size[0][0] = size[0].item() >> 1
        else:
            voids = self._voids[0]
            voids[0] = voids.item() | turned >> 6
        self._ends[0] = ends = turned & 63
        for state in (hand, self._played, self._voids, size):
            state.append(state.pop(0))
        self._time += 1
        self._legal[0] = hand[0].item() * _BOTH_ENDS & _FITS_LISTS[self.rules.labelled_ends][ends] or _PASS_BIT
        held = 0
        for other in hand:
            held |= other.item()
        if left and held & _REACH_LIST[ends]:
            if len(self.finished):
                self.finished = nothing(self.rules)
            return None, False
        return _finish(self)

    def see(self, seat: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int8]]:
        """What `observe(seat)` and `legal(seat)` give, as rows: (layout.size,) uint8 and (57,) int8, new arrays."""
        seats = self.rules.seats
        plies = self._time - self._start.item()
        viewer = (seat - self._leader.item() - plies) % seats
        around = [(viewer + r) % seats for r in range(seats)]
        bits = self._hand[viewer].item() | 1 << NUM_TILES + (-viewer - plies) % seats
        passed = size = 0
        for r, place in enumerate(around):
            bits |= self._played[place].item() << 32 * (1 + r)
            passed |= self._voids[place].item() << 8 * r
            size |= self._size[place].item() << 8 * self._sizes.itemsize * r
        public = _SEEN_LIST[self._ends.item()]
        if self.episode == "match":
            bits |= 1 << 32 + NUM_TILES + self._deal_index.item() % 4
            public |= self._score_bits(viewer, np.array([plies]), None).item()
        bits |= (public | passed << 32 | size << 64) << 32 * (1 + seats)
        legal = self._legal.item() if viewer == 0 else _PASS_BIT
        return _seen(bits.to_bytes(self.layout.nbytes, "little"), legal, self.num_actions)


class ChainSolo(LineEngine):
    """A LineEngine of one row, of a game with several tiles a turn. Verbs as of `Solo`."""

    def __init__(self, rules: str | Rules, *, episode: str = "deal", fours: int = 1, **rule_overrides: Any) -> None:
        super().__init__(get_rules(rules, **rule_overrides), 1, episode=episode, fours=fours)
        self._fits_list = self._chain_fits.tolist()

    def mover(self) -> int:
        """Seat to move; after the end the seat that would come next."""
        return (self._leader.item() + self._turns_over()) % self.rules.seats

    def _turns_over(self) -> int:
        return self._time - self._start.item() - self._stayed.item()

    def play(self, action: int) -> tuple[list[float] | None, bool]:
        """What `step([action], autoreset=False)` does; arguments and errors as of `Solo.play`."""
        if self._any_over or not 0 <= action <= PASS or not self._legal.item() >> action & 1:
            raise _refusal(self, action, self._any_over)
        before, run = self._ends.item(), self._run.item()
        turned, bit = _TURN_LIST[action << 6 | before], _BIT_LIST[action]
        self._ring[self._time % len(self._ring), 0] = action | before << 6 | self.mover() << 12
        left = self._hand[0].item() & ~bit
        if bit:
            self._hand[0][0] = left
            self._played[0][0] = self._played[0].item() | bit
            self._size[0][0] = self._size[0].item() >> 1
        elif not run:
            self._voids[0][0] = self._voids[0].item() | turned >> 6
        self._ends[0] = ends = turned & 63
        self._time += 1
        held = 0
        for hand in self._hand:
            held |= hand.item()
        over = not left or not held & _REACH_LIST[ends]
        stays = bool(bit) and not over
        self._run[0] = run + 1 if stays else 0
        if stays:
            self._stayed[0] += 1
            if self.rules.chain == "one":
                self._grown[0] = (1 if action < NUM_TILES else 2) if before != _EMPTY else 0
        else:
            self._grown[0] = 0
            seats = self.rules.seats
            for block in (self._tiles[:seats], self._tiles[seats:], self._suits, self._sizes):
                first = block[0].item()
                block[:-1] = block[1:]
                block[-1] = first
        legal = self._hand[0].item() * _BOTH_ENDS & self._fits_list[self._grown.item() << 6 | ends]
        self._legal[0] = legal | _PASS_BIT if stays or not legal else legal
        if over:
            return _finish(self)
        if len(self.finished):
            self.finished = nothing(self.rules)
        return None, False

    def see(self, seat: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int8]]:
        """What `observe(seat)` and `legal(seat)` give, as rows: (layout.size,) uint8 and (57,) int8, new arrays."""
        seats, turns = self.rules.seats, self._turns_over()
        viewer = (seat - self._leader.item() - turns) % seats
        bits = self._hand[viewer].item()
        passed = size = 0
        for r in range(seats):
            place = (viewer + r) % seats
            bits |= self._played[place].item() << 32 * (1 + r)
            passed |= self._voids[place].item() << 8 * r
            size |= self._size[place].item() << 8 * r
        public = _SEEN_LIST[self._ends.item()]
        if self.episode == "match":
            bits |= 1 << 32 + NUM_TILES + self._deal_index.item() % 4
            public |= self._score_bits(viewer, np.array([turns]), None).item()
        table = 1 << (-viewer - turns) % seats | 1 << 8 + -viewer % seats  # who led, who is to move
        table |= bool(self._run.item()) << 16 | self._grown.item() << 17
        each = 32 * -(-seats // 4)
        bits |= (public | table << 32 | passed << 64 | size << 64 + each) << 32 * (1 + seats)
        legal = self._legal.item() if viewer == 0 else _PASS_BIT
        return _seen(bits.to_bytes(self.layout.nbytes, "little"), legal, self.num_actions)


class RowSolo(RowEngine):
    """A RowEngine of one row. Verbs as of `Solo`."""

    def mover(self) -> int:
        """Seat to move; after the end the seat that would come next."""
        return self._mover.item()

    def play(self, action: int) -> tuple[list[float] | None, bool]:
        """What `step([action], autoreset=False)` does; arguments and errors as of `Solo.play`."""
        if self._over.item() or not 0 <= action < self.num_actions or not self._legal.item() >> action & 1:
            raise _refusal(self, action, self._over.item())
        rewards, done = self.step(np.array([action]), autoreset=False)
        return (rewards[0].tolist() if len(self.finished) else None), bool(done[0])

    def see(self, seat: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int8]]:
        """What `observe(seat)` and `legal(seat)` give, as rows: (layout.size,) uint8 and (59,) int8, new arrays."""
        legal = self._legal.item() if seat == self.mover() else _PASS_BIT
        return _seen(self._words(np.array([seat])).tobytes(), legal, self.num_actions)


def _refusal(engine: LineEngine | RowEngine, action: int, over: bool) -> ValueError:
    """Why an action may not be played."""
    if over:
        return ValueError(f"action {action} after the end of the episode: reset it first")
    name, legal = engine.rules.action_name, engine._legal.item()
    allowed = ", ".join(f"{a} ({name(a)})" for a in range(engine.num_actions) if legal >> a & 1)
    return ValueError(f"action {action} is illegal; legal are {allowed}")


def _finish(engine: LineEngine) -> tuple[list[float], bool]:
    """The end of a `play` that ends the deal."""
    rewards = np.zeros((1, engine.rules.seats), np.float32)
    done = engine._finish(_ROW, rewards, np.ones(1, np.bool_), False)
    return rewards[0].tolist(), bool(done[0])


def _seen(packed: bytes, legal: int, num_actions: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int8]]:
    """An observation and a mask as arrays, from their bits."""
    mask = np.frombuffer(legal.to_bytes(8, "little"), np.uint8)
    return (
        np.unpackbits(np.frombuffer(packed, np.uint8), bitorder="little"),
        np.unpackbits(mask, count=num_actions, bitorder="little").view(np.int8),
    )


OneTable = Solo | ChainSolo | RowSolo


def make_table(
    rules: str | Rules = "sport_book", *, episode: str = "deal", fours: int = 1, **rule_overrides: Any
) -> OneTable:
    """One table of any game. Arguments and errors as of :func:`domino_env.make_engine`."""
    game = get_rules(rules, **rule_overrides)
    if game.rows:
        return RowSolo(game, 1, episode=episode, fours=fours)
    if game.chains:
        return ChainSolo(game, episode=episode, fours=fours)
    return Solo(game, episode=episode, fours=fours)
