"""The blind games (R1-R9): the engine against the slow reference, each clause by hand, and what a seat may see."""

import ast
import copy
import json
import pickle
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from domino_env import rows as rows_module
from domino_env.deals import Deal, format_deal, parse_deal
from domino_env.line import LineEngine
from domino_env.observation import SCORE_STEPS
from domino_env.rows import RowEngine
from domino_env.rules import Rules, get_rules
from domino_env.tiles import DRAW, PASS, TURN, row_action_index, row_action_name
from tests.rows_reference import BLIND, BLIND_BLITZ, TILES, BlindGame, RowTable, leading, number, shuffled, variant

GAMES = (BLIND_BLITZ, BLIND)
BLIND_NAMES = ("blind_blitz", "blind")
LEADS = ("blank", "low", "high", "lot")


def engine_of(game: BlindGame, num_envs: int, seed: int | None = None, **keywords) -> RowEngine:
    """An engine that plays a reference game."""
    changes = {"seats": game.seats, "lead": game.lead, "memory": game.memory, "max_pip": game.max_pip}
    changes |= {"labelled_ends": game.labelled_ends} | ({"hand_size": game.hand_size} if game.hand_size else {})
    return RowEngine(game.name, num_envs, seed, **changes, **keywords)


def names_of(tiles) -> list[str]:
    """Names of reference tiles."""
    return [f"{a}-{b}" for a, b in tiles]


def tiles_at(engine: RowEngine, row: int):
    """Rows and stock of a fresh deal as the engine dealt them, in reference tiles."""
    deal = engine.record(row)
    return [[TILES[t] for t in hand] for hand in deal.hands], [TILES[t] for t in deal.stock]


def table_at(game: BlindGame, engine: RowEngine, row: int) -> RowTable:
    """A reference table on the deal that a row of the engine begins."""
    rows, stock = tiles_at(engine, row)
    assert sorted(tile for pile in [*rows, stock] for tile in pile) == game.tiles
    assert all(len(hand) == game.hand for hand in rows)
    lead = leading(game, rows)
    leader = int(engine.leader()[row])
    assert lead is None or lead[0] == leader
    return RowTable(game, rows, stock, leader)


class Twin:
    """An engine and a reference table a row; any difference is an AssertionError that says in which deal."""

    def __init__(self, game: BlindGame, num_envs: int, seed: int) -> None:
        self.game = game
        self.engine = engine_of(game, num_envs, seed)
        self.rng = np.random.default_rng(seed)
        self.tables = [table_at(game, self.engine, row) for row in range(num_envs)]
        self.outcomes: Counter[str] = Counter()
        self.longest = 0

    def where(self, row: int) -> str:
        table = self.tables[row]
        deal = Deal(
            self.engine.rules,
            table.leader,
            [[number(tile) for tile in hand] for hand in table.dealt],
            [event.action for event in table.events],
            [number(tile) for tile in table.dealt_stock],
        )
        return format_deal(deal)

    def step(self, look: list[int]) -> None:
        """One action in every row, compared in all its effects; `look`: rows whose observations are compared."""
        engine = self.engine
        legal = engine.legal()
        bits = engine.legal_bits()
        choose = []
        draws = self.rng.random(len(legal))
        assert np.array_equal(legal, bits[:, None] >> np.arange(59, dtype=np.uint64) & np.uint64(1))
        for row, (table, may, draw) in enumerate(zip(self.tables, bits.tolist(), draws.tolist(), strict=True)):
            ids = table.legal()
            assert may == sum(1 << a for a in ids), self.where(row)
            choose.append(ids[int(draw * len(ids))])
        assert engine.to_move().tolist() == [table.turn for table in self.tables]
        assert engine.legal_count().tolist() == [bin(int(b)).count("1") for b in bits]
        self.look(look)
        rewards, done = engine.step(np.array(choose))
        for table, action in zip(self.tables, choose, strict=True):
            table.play(action)
        over = [row for row, table in enumerate(self.tables) if table.result is not None]
        assert np.flatnonzero(done).tolist() == over == engine.finished.rows.tolist()
        expected = np.zeros(rewards.shape, np.float32)
        for j, row in enumerate(over):
            assert engine.finished.info(j) == self.tables[row].result, self.where(row)
            expected[row] = self.tables[row].result["points"]
            self.outcomes[self.tables[row].result["outcome"]] += 1
            self.longest = max(self.longest, self.tables[row].turns)
            self.tables[row] = table_at(self.game, engine, row)
        assert rewards.dtype == np.float32 and done.dtype == np.bool_
        assert np.array_equal(rewards, expected)
        assert not rewards.sum(axis=1).any()

    def look(self, rows: list[int]) -> None:
        """Compare every seat's view of some rows, and the history."""
        engine = self.engine
        if not rows:
            return
        one = engine.take(np.array(rows))
        for seat in range(self.game.seats):
            seen, history, mask = one.observe(seat), one.history(seat), one.legal(seat)
            for j, row in enumerate(rows):
                table = self.tables[row]
                view = table.view(seat)
                assert set(view) == set(engine.layout.slices)
                for name, on in view.items():
                    got = set(np.flatnonzero(seen[j, engine.layout.slices[name]]).tolist())
                    assert got == on, f"{name} of seat {seat}: {got}, not {on}: {self.where(row)}"
                assert int(seen[j].sum()) == sum(map(len, view.values()))
                events = table.history(seat)
                assert history[j, : len(events)].tolist() == events
                assert (history[j, len(events) :] == -1).all()
                own = table.legal() if seat == table.turn else [PASS]
                assert np.flatnonzero(mask[j]).tolist() == own
        snapshot = engine.snapshot(rows[0])
        table = self.tables[rows[0]]
        assert snapshot["rows"] == [names_of(card.tile for card in row) for row in table.face_down]
        assert snapshot["known"] == [[card.seen_by == table.everyone for card in row] for row in table.face_down]
        assert [sorted(hand) for hand in snapshot["hands"]] == [
            sorted(names_of(table.hand(seat))) for seat in range(self.game.seats)
        ]
        assert snapshot["stock"] == names_of(table.stock)
        assert snapshot["movers"] == [event.seat for event in table.events]

    def run(self, deals: int) -> None:
        step = 0
        while self.outcomes.total() < deals:
            self.step(self.rng.integers(len(self.tables), size=3).tolist() if step % 11 == 0 else [])
            step += 1


def label(value):
    return f"{value.name}-{value.seats}-{value.lead}-{value.memory}" if isinstance(value, BlindGame) else None


EVERY = [
    variant(game, seats=seats, lead=lead, memory=memory)
    for game in GAMES
    for seats in (2, 3, 4)
    for lead in LEADS
    for memory in ("perfect", "peek")
]
# Half of them: every lead at every number of seats, in turns with either memory.
GRID = [game for i, game in enumerate(EVERY) if i % 4 in (0, 3)]


@pytest.mark.parametrize("game", GRID, ids=label)
def test_reference__every_lead(game):
    twin = Twin(game, 20, seed=301)
    twin.run(30)
    assert not twin.outcomes["guard"]


@pytest.mark.parametrize("game", [BLIND_BLITZ, BLIND, variant(BLIND, seats=2)], ids=label)
def test_reference__400_deals(game):
    twin = Twin(game, 128, seed=300)
    twin.run(400)
    assert twin.outcomes["out"] and twin.outcomes["block"] and not twin.outcomes["guard"]


SMALL = [
    variant(BLIND, seats=2, labelled_ends=True),
    variant(BLIND_BLITZ, labelled_ends=True),
    variant(BLIND_BLITZ, seats=2, max_pip=3, hand_size=4),
    variant(BLIND, seats=3, max_pip=4, hand_size=3),
    variant(BLIND_BLITZ, seats=4, max_pip=2, hand_size=1, memory="peek"),
    variant(BLIND, seats=2, hand_size=1),
    variant(BLIND_BLITZ, seats=2, hand_size=14),
    variant(BLIND_BLITZ, seats=3, max_pip=6, hand_size=2, lead="high"),
]


@pytest.mark.parametrize("game", SMALL, ids=str)
def test_reference__other_sets_and_hands(game):
    """K4: small sets, hands that begin open, a stock of 26 tiles; labelled ends."""
    Twin(game, 16, seed=302).run(40)


@pytest.mark.slow
@pytest.mark.parametrize("game", EVERY, ids=label)
def test_reference__many_deals(game):
    twin = Twin(game, 192, seed=303)
    twin.run(1_000)
    assert not twin.outcomes["guard"] and twin.longest < 200


def test_reference__compares_all_there_is():
    """A twin on other rules than the engine's finds the difference: the comparison can fail."""
    for game, other in [
        (variant(BLIND, seats=2), variant(BLIND, seats=2, looked=True)),
        (BLIND_BLITZ, variant(BLIND_BLITZ, labelled_ends=True)),
        (BLIND_BLITZ, variant(BLIND_BLITZ, memory="peek")),
    ]:
        twin = Twin(game, 64, seed=304)
        twin.tables = [RowTable(other, table.dealt, table.dealt_stock, table.leader) for table in twin.tables]
        with pytest.raises(AssertionError):
            twin.run(60)


# -- the clauses by hand ----------------------------------------------------------------------------------------------

# Two seats. Seat 0 turns from the right: 1-2, 3-3, ...; nothing but what a test says matters.
TWO = [
    ["0-5", "0-6", "4-4", "4-5", "5-5", "6-6", "3-3", "1-2"],
    ["0-1", "0-2", "0-3", "0-4", "1-1", "1-6", "3-6", "2-5"],
]


def two(stock_first=(), hands=TWO, leader=0, game=BLIND, **keywords) -> RowEngine:
    """A table of two seats with these rows, the stock beginning with some tiles."""
    engine = engine_of(variant(game, seats=2, **keywords), 1, seed=5)
    used = {name for hand in hands for name in hand} | set(stock_first)
    stock = [*stock_first, *(name for name in names_of(TILES) if name not in used)]
    options = {"hands": hands, "stock": stock}
    engine.reset(options=options | ({} if leader is None else {"leader": leader}))
    return engine


def play(engine: RowEngine, moves: str) -> dict:
    """Play moves by name in row 0 without reset; the snapshot afterwards."""
    for move in moves.split():
        engine.step(np.array([row_action_index(move)]), autoreset=False)
    return engine.snapshot(0)


def may(engine: RowEngine) -> set[str]:
    """Names of the legal actions of row 0."""
    return {row_action_name(a) for a in np.flatnonzero(engine.legal()[0]).tolist()}


def part(engine: RowEngine, seat: int, name: str, row: int = 0) -> list[int]:
    return np.flatnonzero(engine.observe(seat)[row, engine.layout.slices[name]]).tolist()


@pytest.mark.parametrize("name", BLIND_NAMES)
@pytest.mark.parametrize(("seats", "hand", "stock"), [(2, 8, 12), (3, 8, 4), (4, 7, 0)])
def test_hands_and_stock__by_seats(name, seats, hand, stock):
    """R1."""
    engine = RowEngine(name, 50, 1, seats=seats)
    assert engine.rules == get_rules(name, seats=seats)
    assert (engine.rules.hand_size, engine.rules.leftover) == (hand, stock)
    assert (np.bitwise_count(engine.hands()) == hand).all() and engine.stock().shape == (50, stock)
    assert len({tuple(engine.record(row).hands[0]) for row in range(50)}) == 50


def test_looked__only_blind_blitz_knows_its_row():
    """R2: the owner of blind_blitz sees all its tiles in order, others and the seats of blind none."""
    engine = two(leader=None, game=BLIND_BLITZ, lead="low")
    seen = part(engine, 0, "row_me")
    assert [bit - 16 for bit in seen if 16 <= bit < 32] == [3, 7 + 3, 14]  # 3-3 is turned second
    assert part(engine, 1, "row_left") == [16 * place + 14 for place in range(8)]
    blind = two()
    assert part(blind, 0, "row_me") == part(blind, 1, "row_left") == [16 * place + 14 for place in range(8)]


@pytest.mark.parametrize(
    ("lead", "seat", "tile"), [("blank", 1, "0-1"), ("low", 1, "0-1"), ("high", 0, "6-6"), ("lot", None, None)]
)
def test_lead__by_a_tile(lead, seat, tile):
    """R3: the tile that decides is led wherever it lies, turned for all to see; by lot the rightmost is turned."""
    engine = two(leader=None, lead=lead)
    if seat is None:
        assert may(engine) == {"turn"}
        play(engine, "turn")
        return
    assert engine.leader().tolist() == engine.to_move().tolist() == [seat]
    assert may(engine) == {f"{tile}L"}
    assert part(engine, 0, "turned") == part(engine, 1, "turned") == [TILES.index((int(tile[0]), int(tile[2])))]
    left = play(engine, f"{tile}L")
    assert left["rows"][seat] == [name for name in TWO[seat] if name != tile]
    assert may(engine) == {"turn", "pass"}


def test_lead__order_of_tiles():
    """R3, S11: 0-2 stands below 1-1, 5-5 above 4-6, and 0-0 leads where it is dealt."""
    hands = [
        ["0-2", "4-6", "1-3", "1-4", "1-5", "2-3", "2-4", "3-4"],
        ["1-1", "5-5", *TWO[1][1:4], "1-6", "3-5", "2-5"],
    ]
    hands[1][2:5] = ["2-2", "3-3", "4-4"]
    assert two(leader=None, hands=hands, lead="low").snapshot(0)["turned"] == "0-2"
    assert two(leader=None, hands=hands, lead="high").snapshot(0)["turned"] == "5-5"
    hands[1][0] = "0-0"
    assert two(leader=None, hands=hands, lead="blank").snapshot(0)["turned"] == "0-0"


def test_lead__defaults():
    """R3: blank for blind_blitz, lot for blind; a lot falls on every seat alike and is the seed's."""
    assert (get_rules("blind_blitz").lead, get_rules("blind").lead) == ("blank", "lot")
    leaders = RowEngine("blind", 3000, 7).leader()
    assert (abs(np.bincount(leaders, minlength=4) - 750) < 120).all()
    assert np.array_equal(leaders[:10], RowEngine("blind", 10, 7).leader())


def test_lead__by_lot_where_options_name_nobody():
    """R3: it is the stream's lot also where options are given, but no leader."""
    plain, given = RowEngine("blind", 40, 7), RowEngine("blind", 40, 1)
    given.reset(seed=7, options={"deal_index": 3})
    assert set(plain.leader().tolist()) == {0, 1, 2, 3}
    assert [given.text(row) for row in range(40)] == [plain.text(row) for row in range(40)]


def test_turn__matches_or_goes_to_the_left():
    """R4: a match must be laid, on an end of choice; a misfit is seen by all and lies at the left, tracked there."""
    engine = two()
    play(engine, "turn")
    assert may(engine) == {"1-2L"}
    play(engine, "1-2L pass turn")
    assert may(engine) == {"2-5R"}
    play(engine, "2-5R pass turn")  # 3-3 on ends 1 and 5
    after = engine.snapshot(0)
    assert after["rows"][0] == ["3-3", "0-5", "0-6", "4-4", "4-5", "5-5", "6-6"]
    assert after["known"][0] == [True] + [False] * 6 and after["turned"] is None
    for seat, name in ((0, "row_me"), (1, "row_left")):
        assert [bit - 96 for bit in part(engine, seat, name) if bit >= 96] == [3, 10, 14, 15]
    assert engine.history(1)[0, 6] == 1 << 12 | TILES.index((3, 3)) << 6 | TURN
    play(engine, "pass turn pass turn pass")  # 3-6 and 6-6 miss too
    assert engine.snapshot(0)["rows"][0][:3] == ["6-6", "3-3", "0-5"]


def test_turn__both_ends_are_a_choice():
    """R4: a tile that matches both ends may go on either."""
    hands = [["0-5", "0-6", "4-4", "4-5", "5-5", "6-6", "3-3", "1-2"], [*TWO[1][:7], "2-5"]]
    hands[0][6], hands[1][4] = "1-5", "1-1"
    engine = two(hands=hands)
    play(engine, "turn 1-2L pass turn 2-5R pass turn")
    assert may(engine) == {"1-5L", "1-5R"}
    assert play(copy.deepcopy(engine), "1-5R")["ends"] == [1, 1]
    assert play(engine, "1-5L")["ends"] == [5, 5]


def test_misfit__decline_or_draw():
    """R5: a drawn tile lies at the right, nobody has seen it, and the turn is over."""
    for game, lead in ((BLIND, "lot"), (BLIND_BLITZ, "lot")):
        engine = two(["1-5", "2-6"], game=game, lead=lead)
        play(engine, "turn 1-2L pass turn 2-5R pass turn")
        assert may(engine) == {"pass", "draw"}
        after = play(engine, "draw")
        assert after["to_move"] == 1 and after["rows"][0][-1] == "1-5" and after["stock"][0] == "2-6"
        assert [bit for bit in part(engine, 0, "row_me") if bit < 16] == [14]
        assert [bit for bit in part(engine, 1, "row_left") if bit < 16] == [14]
        assert len(part(engine, 1, "stock")) == 11
        play(engine, "turn pass turn")
        assert may(engine) == {"1-5L", "1-5R"}


def test_run__goes_on_until_a_misfit():
    """R6: after a lay the seat stops or turns the next; the last tile laid is an out."""
    hands = [["0-5", "0-6", "4-4", "4-6", "4-5", "1-5", "1-1", "1-2"], [*TWO[1][:4], "3-3", *TWO[1][5:]]]
    engine = two(hands=hands)
    play(engine, "turn 1-2L turn 1-1L")
    assert may(engine) == {"pass", "turn"} and engine.to_move()[0] == 0
    play(engine, "turn 1-5L turn 4-5L turn 4-6L")
    # Three are left and lie open (R7); nothing is face down any more.
    assert may(engine) == {"pass", "0-6L"}
    play(engine, "0-6L 0-5L")
    assert may(engine) == {"pass"}  # 4-4 on ends 5 and 2
    play(engine, "pass")
    miss = two(hands=hands)
    play(miss, "turn 1-2L turn 1-1L pass turn")  # 2-5 matches 2
    play(miss, "2-5R turn")  # 3-6 on ends 1 and 5 ends the run
    assert may(miss) == {"pass", "draw"} and miss.to_move()[0] == 1


def test_out__scores():
    """R6, B5: laying the last tile ends the deal in the middle of a turn; the winner gets what the others hold."""
    hands = [["0-6", "0-5", "2-4", "4-6", "4-5", "1-5", "1-1", "1-2"], [*TWO[1][:4], "1-6", "3-6", "2-5", "3-3"]]
    engine = two(hands=hands)
    after = play(engine, "turn 1-2L turn 1-1L turn 1-5L turn 4-5L turn 4-6L 0-6L 0-5L 2-4R")
    assert after["over"] and after["to_move"] == 1
    assert after["deal"] == {
        "outcome": "out",
        "winner": 0,
        "points": [39, -39],
        "pips_left": [0, 39],
        "by": 0,
        "plies": 13,
    }


OTHERS = ["0-4", "0-5", "1-3", "1-4", "5-5", "1-5", "4-4", "3-4"]


def drawn_fourth() -> RowEngine:
    """Seat 0 holds 0-1, 0-3 and 1-1 open and one drawn tile, 2-2, face down; the ends are 6 and 2."""
    hands = [["0-1", "0-3", "1-1", "4-6", "4-5", "3-5", "3-3", "2-3"], OTHERS]
    engine = two(["2-2", "1-2", "1-6"], hands=hands)
    play(engine, "turn 2-3L turn 3-3R turn 3-5R turn 4-5R turn 4-6R")  # ends 2, 6
    assert engine.ends()[0].tolist() == [2, 6] and engine.snapshot(0)["shown"][0] == ["0-1", "0-3", "1-1"]
    play(engine, "pass turn pass")
    assert may(engine) == {"pass", "draw"}  # R7: nothing matches, nothing to turn
    play(engine, "draw")
    return engine


def test_shown__three_or_fewer():
    """R7: three tiles are shown to all at once; one that matches must be laid at the start of a turn."""
    hands = [["0-2", "0-6", "1-1", "4-6", "4-5", "3-5", "3-3", "2-3"], OTHERS]
    engine = two(hands=hands)
    after = play(engine, "turn 2-3L turn 3-3R turn 3-5R turn 4-5R turn 4-6R")  # ends 2, 6
    assert after["shown"][0] == ["0-2", "0-6", "1-1"] and after["rows"][0] == []
    assert part(engine, 0, "shown_me") == part(engine, 1, "shown_left") == [2, 6, 7]
    assert may(engine) == {"0-2L", "0-6R", "pass"}  # any of them, or stop (R6)
    play(engine, "pass turn pass")
    assert may(engine) == {"0-2L", "0-6R"}
    play(engine, "0-6R")
    assert may(engine) == {"0-2L", "0-2R", "pass"}


def test_shown__a_drawn_fourth_lies_face_down():
    """R7: the fourth lies face down and may be turned; what was shown stays layable; three again are shown again."""
    engine = drawn_fourth()
    after = engine.snapshot(0)
    assert (after["rows"][0], after["shown"][0], after["known"][0]) == (["2-2"], ["0-1", "0-3", "1-1"], [False])
    play(engine, "turn pass")  # 4-4
    assert may(engine) == {"turn"}
    play(engine, "turn")
    assert may(engine) == {"2-2L"}
    after = play(engine, "2-2L")
    assert (after["rows"][0], after["shown"][0]) == ([], ["0-1", "0-3", "1-1"])


def test_shown__a_fourth_that_misses():
    """R7, R4, R5: it goes back face down, known to all; drawing on, a fifth lies to its right and is turned first."""
    engine = drawn_fourth()
    snapshot = engine.snapshot(0)
    snapshot["dealt_stock"][0], snapshot["dealt_stock"][3] = snapshot["dealt_stock"][3], "2-2"
    fourth = snapshot["dealt_stock"][0]
    assert not {"2", "6"} & set(fourth.split("-"))
    engine.load(0, snapshot)
    play(engine, "turn pass turn")
    assert may(engine) == {"pass", "draw"}  # even with open tiles, a miss ends the run
    after = play(engine, "draw")
    assert (after["rows"][0], after["known"][0]) == ([fourth, "1-2"], [True, False])
    play(engine, "turn pass")
    assert may(engine) == {"turn"}
    play(engine, "turn 1-2L")  # ends 1, 6
    assert may(engine) == {"0-1L", "1-1L", "turn", "pass"}  # at any point an open tile or the next one
    after = play(engine, "0-1L")  # three left: all open
    assert (after["rows"][0], sorted(after["shown"][0])) == ([], sorted(["0-3", "1-1", fourth]))


def idle_table() -> RowEngine:
    """Three seats of two open tiles in the double-three set; after 0-0 nobody holds a blank, the stock does."""
    engine = engine_of(variant(BLIND, seats=3, max_pip=3, hand_size=2), 1, seed=5)
    hands = [["0-0", "3-3"], ["1-1", "1-2"], ["1-3", "2-2"]]
    engine.reset(options={"hands": hands, "stock": ["2-3", "0-1", "0-2", "0-3"], "leader": 0})
    return engine


def test_end__a_full_round_with_a_stock():
    """R8: with a stock the deal goes on until every seat had a turn in which nobody laid or drew; lowest pips wins."""
    engine = idle_table()
    play(engine, "0-0L pass")
    assert may(engine) == {"pass", "draw"}
    play(engine, "pass pass")
    assert not engine.over()[0] and part(engine, 0, "idle") == [0, 1]
    after = play(engine, "pass")
    assert after["over"] and may(engine) == {"pass"} and engine.finished.outcome.tolist() == [1]
    assert after["deal"] == {
        "outcome": "block",
        "winner": 1,
        "points": [-1, 4, -3],
        "pips_left": [6, 5, 8],
        "by": 0,
        "plies": 5,
    }


def test_end__drawing_begins_the_round_anew():
    """R8: a turn with a draw is not idle; and a drawn tile that matches keeps the deal alive."""
    engine = idle_table()
    play(engine, "0-0L pass pass pass draw")
    assert part(engine, 1, "idle") == [] and engine.to_move()[0] == 1
    play(engine, "pass pass")
    assert not engine.over()[0] and part(engine, 0, "idle") == [0, 1]
    alive = play(copy.deepcopy(engine), "draw")
    assert not alive["over"]
    assert play(engine, "pass")["deal"]["outcome"] == "block"


def test_end__the_last_drawn_tile():
    """R8: looked at after every action: where the last tile of the stock matches nothing, drawing it ends the deal."""
    engine = RowEngine("blind", 500, 31, seats=3)
    rng = np.random.default_rng(31)
    ended: Counter[str] = Counter()
    for _ in range(200):
        left = (engine.stock() >= 0).sum(axis=1)
        acts = engine.sample_legal(rng)
        engine.step(acts)
        for j, row in enumerate(engine.finished.rows.tolist()):
            if acts[row] == DRAW:
                assert left[row] == 1  # a draw is no idle turn, so only an empty stock ends the deal
                ended[engine.finished.info(j)["outcome"]] += 1
    assert set(ended) == {"block"}


def test_end__empty_stock_at_once():
    """R8: without a stock a block is seen at once, in the middle of a turn."""
    engine = engine_of(variant(BLIND, seats=2, max_pip=2, hand_size=3), 1, seed=5)
    engine.reset(options={"hands": [["0-0", "1-1", "0-1"], ["1-2", "0-2", "2-2"]], "stock": [], "leader": 0})
    play(engine, "0-1L pass 1-2R 0-2R pass")
    after = play(engine, "0-0L")
    assert after["over"] and after["to_move"] == 1
    assert (after["deal"]["outcome"], after["deal"]["points"], after["deal"]["by"]) == ("block", [2, -2], 0)


def test_end__equal_lowest():
    """R8, B5: two lowest hands: nobody scores."""
    engine = idle_table()
    options = {"hands": [["0-0", "3-3"], ["1-1", "1-3"], ["1-2", "2-2"]], "stock": ["2-3", "0-1", "0-2", "0-3"]}
    engine.reset(options=options | {"leader": 0})
    after = play(engine, "0-0L pass pass pass pass")
    assert (after["deal"]["winner"], after["deal"]["points"]) == (None, [0, 0, 0])
    assert after["deal"]["pips_left"] == [6, 6, 7]


def test_guard__truncates(monkeypatch):
    """R8: so many turns and the deal is broken off, all rewards zero; the engine says in which rows."""
    assert rows_module.GUARD_TURNS == 400
    monkeypatch.setattr(rows_module, "GUARD_TURNS", 6)
    game = variant(BLIND, seats=3)
    engine = engine_of(game, 200, seed=9)
    rng = np.random.default_rng(9)
    tables = [table_at(game, engine, row) for row in range(200)]
    for table in tables:
        table.guard = 6
    seen = 0
    for _ in range(60):
        acts = engine.sample_legal(rng)
        rewards, done = engine.step(acts)
        for table, action in zip(tables, acts.tolist(), strict=True):
            table.play(action)
        cut = engine.truncated()
        assert cut.tolist() == [bool(t.result and t.result["outcome"] == "guard") for t in tables]
        assert not rewards[cut].any() and done[cut].all()
        for j, row in enumerate(engine.finished.rows.tolist()):
            assert engine.finished.info(j) == tables[row].result
        seen += int(cut.sum())
        for row in np.flatnonzero(done).tolist():
            tables[row] = table_at(game, engine, row)
            tables[row].guard = 6
    assert seen > 200
    while not engine.over().any():
        engine.step(engine.sample_legal(rng), autoreset=False)
    row = int(engine.finished.rows[0])
    assert engine.snapshot(row)["deal"] == engine.finished.info(0)


def test_guard__not_where_the_deal_is_over_anyway(monkeypatch):
    """R8: a deal that ends by itself with the last turn that it may have is scored, not broken off."""
    monkeypatch.setattr(rows_module, "GUARD_TURNS", 4)
    engine = idle_table()
    after = play(engine, "0-0L pass pass pass pass")
    assert engine.turns().tolist() == [4] and not engine.truncated()[0]
    assert (after["deal"]["outcome"], after["deal"]["points"]) == ("block", [-1, 4, -3])


def test_memory__peek_shows_the_row_once():
    """R9: as it is dealt, and again when the seat is first asked; then only what everyone has seen."""

    def faces(seat: int) -> list[int]:
        return [bit for bit in part(engine, seat, "row_me") if bit % 16 < 14]

    engine = two(game=BLIND_BLITZ, lead="lot", memory="peek")
    assert len(faces(0)) == len(faces(1)) == 16
    play(engine, "turn")
    assert faces(0) == faces(1) == []
    play(engine, "1-2L pass")
    assert faces(0) == [] and len(faces(1)) == 16  # seat 1 is asked for the first time
    play(engine, "turn")
    assert faces(1) == []
    play(engine, "2-5R pass turn pass")
    assert faces(0) == [16 * 6 + 3, 16 * 6 + 10]  # 3-3, at the left, as everyone knows
    perfect = two(game=BLIND_BLITZ, lead="lot")
    play(perfect, "turn 1-2L pass turn 2-5R pass turn pass")
    assert len([b for b in part(perfect, 0, "row_me") if b % 16 < 14]) == 14


# -- what a seat sees -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("game", [g for g in GRID if g.lead in ("low", "lot")], ids=label)
def test_hidden_tiles__change_no_byte(game):
    """R2, R9: two deals that differ in tiles the seat has not seen look alike, masks and all, until one is turned."""
    rng = random.Random(310)
    compared = 0
    for _ in range(5):
        rows, stock = shuffled(game, rng)
        lead = leading(game, rows)
        leader = lead[0] if lead else rng.randrange(game.seats)
        table = RowTable(game, rows, stock, leader)
        for _ in range(rng.randrange(2, 40)):
            if table.result is None:
                table.play(rng.choice(table.legal()))
        actions = [event.action for event in table.events]
        for seat in range(game.seats):
            # Tiles whose faces this seat has not seen by now; with peek it has seen its own row.
            hidden = [c.tile for row in table.face_down for c in row if seat not in c.seen_by] + table.stock
            rng.shuffle(hidden)
            order = iter(hidden)
            swap = {tile: next(order) for tile in sorted(hidden)}
            other_rows = [[swap.get(tile, tile) for tile in row] for row in rows]
            other_stock = [swap.get(tile, tile) for tile in stock]
            if leading(game, other_rows) != lead or other_rows + [other_stock] == [*rows, stock]:
                continue
            pair = engine_of(game, 2, seed=1)
            options = [
                {"hands": [names_of(row) for row in r], "stock": names_of(s), "leader": leader}
                for r, s in ((rows, stock), (other_rows, other_stock))
            ]
            pair.reset(options=options)
            twin = RowTable(game, other_rows, other_stock, leader)
            for action in [*actions, None]:
                seen, history, mask = pair.observe(seat, packed=True), pair.history(seat), pair.legal(seat)
                assert (seen[0] == seen[1]).all() and (history[0] == history[1]).all() and (mask[0] == mask[1]).all()
                compared += 1
                if action is None or action not in twin.legal():
                    break
                twin.play(action)
                if twin.result is not None:
                    break  # whether a deal is over may hang on tiles nobody has seen (R8)
                pair.step(np.array([action, action]), autoreset=False)
    assert compared > 50


def test_packed__is_the_same():
    for game in (BLIND, variant(BLIND_BLITZ, seats=3), variant(BLIND, seats=2)):
        engine = engine_of(game, 100, seed=8)
        rng = np.random.default_rng(8)
        used = np.zeros(engine.layout.size, int)
        for name, bits in engine.layout.slices.items():
            used[bits] += 1
            assert f"`{name}`" in engine.layout.table()
        assert used.max() == 1 and engine.layout.size == 8 * engine.layout.nbytes
        for _ in range(60):
            engine.step(engine.sample_legal(rng))
            seen = engine.observe()
            packed = engine.observe(packed=True)
            assert np.array_equal(np.unpackbits(packed, axis=1, bitorder="little"), seen)
            assert not seen[:, used == 0].any()
            mover = engine.to_move()
            assert np.array_equal(engine.observe(mover), seen)
            for seat in range(game.seats):
                assert np.array_equal(engine.observe(seat)[mover == seat], seen[mover == seat])


def test_match__score_in_the_observation():
    """S10: a match of the blind games is a number of fours; score and deal stand in the observation."""
    engine = RowEngine("blind", 40, 11, episode="match", fours=1)
    rng = np.random.default_rng(11)
    total, ended = np.zeros((40, 4)), 0
    while ended < 24:
        rewards, done = engine.step(engine.sample_legal(rng))
        total += rewards
        total[done] = 0
        ended += int(done.sum())
        assert np.array_equal(engine.score(), total)
        seen = engine.observe(2)
        ahead = total[:, 2] - np.delete(total, 2, axis=1).max(axis=1)
        slices = engine.layout.slices
        assert seen[:, slices["score_ahead"]].tolist() == [[int(a >= s) for s in SCORE_STEPS] for a in ahead]
        assert seen[:, slices["score_behind"]].tolist() == [[int(-a >= s) for s in SCORE_STEPS] for a in ahead]
        assert (seen[:, slices["deal"]].argmax(axis=1) == engine.deal_index() % 4).all()


# -- tiles, copies, streams, bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize("seats", [2, 3, 4])
@pytest.mark.parametrize("name", BLIND_NAMES)
def test_tiles__are_conserved(name, seats):
    """Every tile is in one place, and every deal is zero-sum and shorter than the layout of the history allows."""
    engine = RowEngine(name, 300, 12, seats=seats)
    rng = np.random.default_rng(12)
    for _ in range(150):
        rewards, _ = engine.step(engine.sample_legal(rng))
        assert not rewards.sum(axis=1).any()
        stock = engine.stock()
        piles = [engine.hands()[:, seat] for seat in range(seats)] + [engine._laid]
        piles.append(np.where(stock >= 0, 1 << np.maximum(stock, 0).astype(np.uint32), 0).sum(axis=1).astype(np.uint32))
        assert (sum(np.bitwise_count(pile).astype(int) for pile in piles) == 28).all()
        assert (np.bitwise_or.reduce(np.array(piles), axis=0) == (1 << 28) - 1).all()
        rows = engine.rows()
        masks = np.where(rows >= 0, 1 << np.maximum(rows, 0).astype(np.uint32), 0).sum(axis=2)
        assert np.array_equal(masks, engine._down)
        assert engine.plies().max() < engine.rules.max_plies


def fingerprint(engine: RowEngine):
    """All that can be asked of an engine."""
    seats = range(engine.rules.seats)
    arrays = [engine.hands(), engine.shown(), engine.rows(), engine.turned(), engine.stock(), engine.ends()]
    arrays += [engine.to_move(), engine.leader(), engine.plies(), engine.turns(), engine.over(), engine.deal_index()]
    arrays += [engine.score(), engine.legal_bits()]
    arrays += [engine.observe(seat, packed=True) for seat in seats] + [engine.history(seat) for seat in seats]
    return [(array.dtype.str, array.shape, array.tobytes()) for array in arrays]


def future(engine: RowEngine, steps: int = 90):
    """What becomes of an engine when it is played by a fixed rule, several deals on."""
    seen = []
    for step in range(steps):
        legal = engine.legal()
        rewards, done = engine.step((((np.arange(59) * 7 + step * 5) % 61 + 1) * legal).argmax(axis=1))
        seen.append((rewards.tobytes(), done.tobytes(), engine.observe(packed=True).tobytes()))
    return seen


@pytest.mark.parametrize(
    "game", [BLIND, variant(BLIND_BLITZ, seats=3, memory="peek"), variant(BLIND, seats=2)], ids=label
)
def test_copies__keep_the_future(game):
    """take, put, deepcopy, pickle, snapshot and load: the deals that run and the deals after them."""
    engine = engine_of(game, 24, seed=13)
    rng = np.random.default_rng(13)
    for _ in range(57):
        engine.step(engine.sample_legal(rng))
    state = fingerprint(engine)
    copies = [copy.deepcopy(engine), pickle.loads(pickle.dumps(engine)), engine.take(np.arange(24))]
    loaded = engine_of(game, 24, seed=99)
    for _ in range(5):
        loaded.step(loaded.sample_legal(rng))
    put = copy.deepcopy(loaded)
    for row in range(24):
        loaded.load(row, json.loads(json.dumps(engine.snapshot(row))))
    order = rng.permutation(24)
    put.put(order, engine.take(order))
    copies += [loaded, put]
    for other in copies:
        assert fingerprint(other) == state
    expected = future(engine)
    for other in copies:
        assert future(other) == expected


@pytest.mark.parametrize("rows", [5, 40])
def test_put__a_row_goes_back_to_an_older_deal(rows):
    """Deals made ahead do not get in the way: a row that is put back where it was plays on as it did from there."""
    engine = engine_of(variant(BLIND, seats=3), rows, seed=14)
    rng = np.random.default_rng(14)
    old = copy.deepcopy(engine)
    kept = engine.take(np.arange(rows))
    for _ in range(700):
        engine.step(engine.sample_legal(rng))
    assert engine.deal_index().min() >= 2
    engine.put(np.arange(rows), kept)
    assert fingerprint(engine) == fingerprint(old)
    assert future(engine, 250) == future(old, 250)
    once = kept.take(np.zeros(3, int))  # a row may be taken several times
    assert once.text(0) == once.text(2) == old_text(rows)


def old_text(rows: int) -> str:
    """The first deal of row 0 above."""
    return engine_of(variant(BLIND, seats=3), rows, seed=14).text(0)


def test_rows__do_not_depend_on_the_batch():
    """Row i of a seed plays the same deals in a batch of any size, whatever was played before."""
    few, many = RowEngine("blind_blitz", 3, 21), RowEngine("blind_blitz", 50, 21)
    rng = np.random.default_rng(1)
    for _ in range(20):
        many.step(many.sample_legal(rng))
    many.reset(21)
    assert [few.text(i) for i in range(3)] == [many.text(i) for i in range(3)]
    few.reset()
    many.reset_rows(np.arange(3))
    assert [few.text(i) for i in range(3)] == [many.text(i) for i in range(3)]
    one = RowEngine("blind_blitz", 2, [21, 21])
    assert one.text(0) == one.text(1)


def test_autoreset_off__rows_stay():
    engine = RowEngine("blind", 30, 22)
    rng = np.random.default_rng(22)
    while not engine.over().any():
        _, done = engine.step(engine.sample_legal(rng), autoreset=False)
    assert np.array_equal(done, engine.over())
    row = int(done.argmax())
    assert np.flatnonzero(engine.legal()[row]).tolist() == [PASS]
    assert engine.snapshot(row)["deal"] == engine.finished.info(int((engine.finished.rows == row).argmax()))
    with pytest.raises(ValueError, match=f"row {row} is over"):
        engine.step(engine.sample_legal(rng))
    engine.reset_rows(engine.over())
    engine.step(engine.sample_legal(rng))


@pytest.mark.parametrize(
    "game", [BLIND, variant(BLIND_BLITZ, seats=2), variant(BLIND, seats=3, lead="high")], ids=label
)
def test_text__reads_back(game):
    engine = engine_of(game, 20, seed=23)
    rng = np.random.default_rng(23)
    for _ in range(25):
        engine.step(engine.sample_legal(rng))
    for row in range(20):
        deal = parse_deal(engine.text(row))
        assert deal == engine.record(row) and format_deal(deal) == engine.text(row)
    assert ("turn" in engine.text(0)) and row_action_name(DRAW) == "draw" and row_action_index("turn") == TURN
    for bad in ("5-5X", "hold", 3):
        with pytest.raises(ValueError, match="turn, draw or pass"):
            row_action_index(bad)
    with pytest.raises(ValueError, match=r"0\.\.58"):
        row_action_name(59)
    with pytest.raises(ValueError, match="line 1, column"):
        parse_deal(engine.text(0).replace("turn", "tern"))


BAD_OPTIONS = [
    ({"hands": TWO, "stock": ["0-0"]}, "12 tile names"),
    ({"hands": TWO, "stock": ["0-1", *names_of(TILES)[1:12]]}, "twice"),
    ({"stock": ["6-6"] * 12}, "twice"),
    ({"hands": TWO[:1]}, "2 hands"),
    ({"hands": [TWO[0], [*TWO[1][:7], "0-5"]]}, "twice"),
    ({"hands": [TWO[0], [*TWO[1][:7], "7-7"]]}, "unknown tile"),
    ({"hands": [TWO[0], TWO[1][:7]]}, "8 tile names"),
    ({"hands": TWO, "leader": 2}, "leader"),
    ({"rows": TWO}, "unknown option"),
    ({"deal_index": -1}, "deal_index"),
    (3, "options"),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS, ids=str)
def test_options__bad_ones_change_nothing(options, message):
    engine = RowEngine("blind", 2, 24, seats=2)
    engine.step(engine.sample_legal(np.random.default_rng(1)))
    state = fingerprint(engine)
    with pytest.raises(ValueError, match=message):
        engine.reset(options=options)
    with pytest.raises(ValueError, match=message):
        engine.reset(seed=5, options=[{}, options])
    with pytest.raises(ValueError, match=message):
        engine.reset_rows(np.array([1]), [options])
    assert fingerprint(engine) == state
    untouched = RowEngine("blind", 2, 24, seats=2)
    untouched.step(untouched.sample_legal(np.random.default_rng(1)))
    assert future(engine) == future(untouched)


def test_options__leader_is_bound_by_a_tile():
    """R3: where a tile decides, another leader is refused, whether or not the hands are given."""
    engine = RowEngine("blind_blitz", 1, 25, seats=2)
    state = fingerprint(engine)
    for options in ({"hands": TWO}, {}):
        leads = copy.deepcopy(engine)
        leads.reset(options=options)
        with pytest.raises(ValueError, match="lead='blank' has seat"):
            engine.reset(options=options | {"leader": 1 - int(leads.leader()[0])})
        assert fingerprint(engine) == state
    engine.reset(options={"hands": TWO, "leader": 1, "deal_index": 6})
    assert engine.leader().tolist() == [1] and engine.deal_index().tolist() == [6]
    engine.reset(options={"stock": names_of(TILES)[:12]})
    assert engine.stock()[0].tolist() == list(range(12))


@pytest.mark.parametrize(
    "keywords",
    [
        {"seats": 5},
        {"seats": 1},
        {"seats": "2"},
        {"lead": "rotation"},
        {"memory": "none"},
        {"pairs": True},
        {"redeal": True},
        {"lone_blank": 10},
        {"match_to": 50},
        {"hand_size": 8},
        {"rules": "sport_book"},
        {"rules": "bind"},
        {"rules": 3},
        {"num_envs": 0},
        {"num_envs": True},
        {"episode": "four"},
        {"fours": 0},
        {"seed": -1},
        {"seed": [1]},
        {"seed": 1.5},
        {"unknown": 1},
    ],
    ids=str,
)
def test_engine__bad_input(keywords):
    keywords = dict(keywords)
    with pytest.raises(ValueError):
        RowEngine(keywords.pop("rules", "blind"), keywords.pop("num_envs", 3), **keywords)


def test_line_rules__refuse_what_is_of_the_blind_games():
    for keywords in ({"lead": "low"}, {"memory": "peek"}, {"seats": 3, "pairs": False}):
        with pytest.raises(ValueError):
            get_rules("sport_book", **keywords)
    with pytest.raises(ValueError, match="RowEngine"):
        LineEngine("blind")


@pytest.mark.parametrize("seats", [2, 3, 4])
@pytest.mark.parametrize("hand_size", [None, 5, 7])
def test_rules__overrides_read_back(seats, hand_size):
    keywords = {"seats": seats} | ({} if hand_size is None else {"hand_size": hand_size})
    for base in BLIND_NAMES:
        rules = get_rules(base, **keywords)
        assert isinstance(rules, Rules) and get_rules(base, **rules.overrides()) == rules


def test_step__bad_actions_change_nothing():
    engine = RowEngine("blind", 2, 26)
    state = fingerprint(engine)
    for actions in ([57], [[57, 57]], [57.0, 57.0], [57, 59], [57, -1], [57, 56], [57, 58], [True, True], None):
        with pytest.raises(ValueError):
            engine.step(np.array(actions))
        assert fingerprint(engine) == state
    for bad in (5, [0], "1", 1.0):
        with pytest.raises(ValueError):
            engine.observe(bad)
    for rows in ([2], [0.5], [[0]]):
        with pytest.raises(ValueError):
            engine.take(np.array(rows))
    with pytest.raises(ValueError):
        engine.take(np.array([], int))
    with pytest.raises(ValueError):
        engine.snapshot(2)
    with pytest.raises(ValueError):
        engine.put(np.array([0]), engine)
    engine.step(np.array([TURN, TURN]))


def test_deal__arrays():
    """Given deals as arrays play as the same deals given as options."""
    source = RowEngine("blind", 5, 27, seats=3)
    records = [source.record(row) for row in range(5)]
    hands, stock = np.array([r.hands for r in records]), np.array([r.stock for r in records])
    leader = np.array([r.leader for r in records])
    engine = RowEngine("blind", 5, 1, seats=3)
    state = fingerprint(engine)
    for bad in ((hands[:, :2], leader, stock), (hands, leader, None), (hands * 0, leader, stock), (hands, None, stock)):
        with pytest.raises(ValueError):
            engine.deal(*bad)
    with pytest.raises(ValueError):
        engine.deal(hands, leader + 3, stock)
    assert fingerprint(engine) == state
    engine.deal(hands, leader, stock)
    assert [engine.text(row) for row in range(5)] == [source.text(row) for row in range(5)]


@pytest.mark.parametrize(
    "change", ["missing", "rules", "over", "dealt", "stock", "move", "score", "leader", "key", "no dict"]
)
def test_load__refuses_what_does_not_follow(change):
    engine = RowEngine("blind", 2, 28, seats=2)
    rng = np.random.default_rng(28)
    for _ in range(12):
        engine.step(engine.sample_legal(rng))
    state, snapshot = fingerprint(engine), engine.snapshot(0)
    bad = {
        "missing": lambda s: s.pop("moves"),
        "rules": lambda s: s.update(rules="blind_blitz"),
        "over": lambda s: s.update(over=True),
        "dealt": lambda s: s["dealt"][0].pop(),
        "stock": lambda s: s["dealt_stock"].reverse() or s["dealt_stock"].__setitem__(0, s["dealt"][0][0]),
        "move": lambda s: s["moves"].append("6-6R") or s["moves"].append("6-6R"),
        "score": lambda s: s.update(score=[0]),
        "leader": lambda s: s.update(leader=2),
        "key": lambda s: s["stream"].update(key=-1),
        "no dict": lambda s: None,
    }[change]
    bad(snapshot)
    with pytest.raises(ValueError):
        engine.load(1, snapshot if change != "no dict" else "text")
    assert fingerprint(engine) == state


def test_reference__is_independent():
    """The second implementation imports nothing from the product, and no arrays."""
    tree = ast.parse((Path(__file__).parents[1] / "rows_reference.py").read_text(encoding="utf-8"))
    modules = {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    modules |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert modules <= {"__future__", "random", "dataclasses", "typing"}


def test_engine__no_python_loop_over_rows():
    """No `for` of a step or a view runs over the batch."""
    tree = ast.parse(Path(rows_module.__file__).read_text(encoding="utf-8"))
    hot = {"step", "_turn", "_lay", "_draw", "_open", "_end_turn", "_moves", "_wait", "_blocked", "_finish", "_result"}
    hot |= {"_begin", "_lead", "legal", "sample_legal", "observe", "_words", "history", "hands"}
    loops = [
        ast.unparse(node.iter)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and function.name in hot
        for node in ast.walk(function)
        if isinstance(node, ast.For | ast.comprehension)
    ]
    assert loops and all("num_envs" not in text and "rows" not in text for text in loops), loops
