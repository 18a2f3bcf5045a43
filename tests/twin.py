"""The engine and the reference side by side: every row of a batch is mirrored by a plain table, and all is compared."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from domino_env import make_engine
from tests.reference import GAMES, TILES, Game, Match, Table, Tile, number

Array = np.ndarray[Any, Any]

SCORE_STEPS = (1, 5, 10, 20, 35, 50, 75, 100, 150)  # as the layout's table says


def overrides_of(game: Game) -> dict[str, Any]:
    """Keywords that turn the preset of a game's name into this game."""
    base = GAMES[game.name]
    names = [f.name for f in fields(Game)]
    return {name: getattr(game, name) for name in names if getattr(game, name) != getattr(base, name)}


def engine_of(game: Game, num_envs: int, seed: int | None = None, **keywords: Any) -> Any:
    """An engine that plays a reference game."""
    return make_engine(game.name, num_envs, seed, **keywords, **overrides_of(game))


def tiles_in(mask: int) -> list[Tile]:
    """The tiles of a bit mask."""
    return [tile for bit, tile in enumerate(TILES) if int(mask) >> bit & 1]


def mask_in(tiles: list[Tile]) -> int:
    """The bit mask of some tiles."""
    return sum(1 << number(tile) for tile in tiles)


def names_in(tiles: list[Tile]) -> list[str]:
    """Names of some tiles."""
    return [f"{a}-{b}" for a, b in tiles]


class Twin:
    """An engine and one reference match a row.

    Raises ``AssertionError`` at the first difference, naming the row and the moves that led to it.
    """

    def __init__(self, game: Game, num_envs: int, seed: int, episode: str = "deal", fours: int = 1) -> None:
        self.game = game
        self.episode = episode
        self.engine = engine_of(game, num_envs, seed, episode=episode, fours=fours)
        self.fours = fours
        self.rng = np.random.default_rng(seed)
        self.deals = 0  # deals compared so far
        self.matches = 0  # episodes compared so far
        self.rows = [Match(game, deal=self.first_deal(i)) for i in range(num_envs)]
        hands = self.engine.hands()
        self.tables = [self.begin(i, hands[i]) for i in range(num_envs)]

    def first_deal(self, row: int) -> int:
        """S2: single deals of row i start the rotation at i mod 4; a match starts at its first deal."""
        return row % 4 if self.episode == "deal" else 0

    def begin(self, row: int, masks: Array) -> Table:
        """The reference table on the hands that the engine has dealt."""
        hands = [tiles_in(mask) for mask in masks]
        assert all(len(hand) == self.game.hand_size for hand in hands)
        assert len({tile for hand in hands for tile in hand}) == self.game.seats * self.game.hand_size
        assert all(tile in self.game.tiles for hand in hands for tile in hand)
        return self.rows[row].begin(hands)

    def where(self, row: int) -> str:
        """Says which deal went wrong."""
        table = self.tables[row]
        hands = " | ".join(" ".join(names_in(hand)) for hand in table.dealt)
        return f"row {row}: {self.game} leader={table.leader} | {hands} | {[e.action for e in table.events]}"

    def legal(self) -> list[list[int]]:
        """Legal ids of every row, after comparing them with the engine's masks."""
        legal = [table.legal() for table in self.tables]
        mask = np.zeros((len(legal), 57), np.int8)
        for row, ids in enumerate(legal):
            mask[row, ids] = 1
        given = self.engine.legal()
        assert given.dtype == np.int8
        for row in np.flatnonzero((given != mask).any(axis=1)):
            raise AssertionError(f"{np.flatnonzero(given[row])} is legal, not {legal[row]}: {self.where(row)}")
        turn = np.array([table.turn for table in self.tables])
        leader = np.array([table.leader for table in self.tables])
        ends = np.array([table.ends or (-1, -1) for table in self.tables])
        assert np.array_equal(self.engine.to_move(), turn)
        assert np.array_equal(self.engine.leader(), leader)
        assert np.array_equal(self.engine.ends(), ends)
        return legal

    def look(self, rows: list[int]) -> None:
        """Compare what every seat of these rows sees, and its history."""
        engine, layout = self.engine, self.engine.layout
        for seat in range(self.game.seats):
            seen = engine.observe(seat)
            history = engine.history(seat)
            assert seen.dtype == np.uint8 and history.dtype == np.int16
            assert seen.shape == (len(self.tables), layout.size)
            for row in rows:
                table = self.tables[row]
                view = table.view(seat) | self.extras(row, seat)
                assert set(view) == set(layout.slices)
                covered = 0
                for name, bits in view.items():
                    got = set(np.flatnonzero(seen[row, layout.slices[name]]).tolist())
                    assert got == bits, f"{name} of seat {seat} is {got}, not {bits}: {self.where(row)}"
                    covered += len(bits)
                assert int(seen[row].sum()) == covered, f"bits outside the slices: {self.where(row)}"
                events = [s << 12 | a << 9 | b << 6 | action for s, a, b, action in table.history(seat)]
                assert history[row, : len(events)].tolist() == events, self.where(row)
                assert (history[row, len(events) :] == -1).all()

    def extras(self, row: int, seat: int) -> dict[str, set[int]]:
        """The parts of an observation that tell of the match: deal of the four and score."""
        if self.episode == "deal":
            return {"deal": set(), "score_ahead": set(), "score_behind": set()}
        match = self.rows[row]
        side = seat % len(match.score)
        ahead = match.score[side] - max(score for other, score in enumerate(match.score) if other != side)
        return {
            "deal": {match.deal % 4},
            "score_ahead": {bit for bit, points in enumerate(SCORE_STEPS) if ahead >= points},
            "score_behind": {bit for bit, points in enumerate(SCORE_STEPS) if -ahead >= points},
        }

    def step(self, choose: list[int] | None = None) -> None:
        """One action in every row, compared in all its effects."""
        legal = self.legal()
        if choose is None:
            draws = self.rng.random(len(legal))
            choose = [ids[int(draw * len(ids))] for ids, draw in zip(legal, draws, strict=True)]
        rewards, done = self.engine.step(np.array(choose))
        for table, action in zip(self.tables, choose, strict=True):
            table.play(action)
        finished = self.engine.finished
        over = [row for row, table in enumerate(self.tables) if table.result is not None]
        assert np.asarray(finished.rows).tolist() == over
        expected = np.zeros((len(legal), self.game.seats), np.float32)
        for j, row in enumerate(over):
            table = self.tables[row]
            expected[row] = table.rewards()
            assert finished.info(j) == table.result, self.where(row)
        assert rewards.dtype == np.float32
        assert np.array_equal(rewards, expected)
        assert done.dtype == np.bool_
        ends = np.zeros(len(legal), bool)
        hands = self.engine.hands() if over else None
        for row in over:
            self.rows[row].end(self.tables[row])
            self.deals += 1
            ends[row] = self.episode == "deal" or self.is_match_over(row)
            self.matches += int(ends[row])
            if self.is_match_over(row):
                deal = self.rows[row].deal if self.episode == "deal" else 0
                self.rows[row] = Match(self.game, deal=deal)
            self.tables[row] = self.begin(row, hands[row])
        assert np.array_equal(done, ends)
        if over:
            shown = [match.score if self.episode == "match" else [0] * len(match.score) for match in self.rows]
            assert self.engine.score().tolist() == shown
            assert self.engine.deal_index().tolist() == [match.deal for match in self.rows]

    def is_match_over(self, row: int) -> bool:
        """S10, K2: after the last four, or at the score played to; single deals of kozyol make running matches."""
        match = self.rows[row]
        if self.game.match_to is not None:
            return max(match.score) >= self.game.match_to
        return self.episode == "match" and match.deal == 4 * self.fours

    def run(self, deals: int, look_every: int = 7) -> None:
        """Play at random until so many deals have been compared."""
        step = 0
        while self.deals < deals:
            if step % look_every == 0:
                self.look(self.rng.integers(len(self.tables), size=4).tolist())
            self.step()
            step += 1
