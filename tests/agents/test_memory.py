"""memory, the rule player of the blind games: what it knows, each rule where it decides, better than random."""

import numpy as np
import pytest

from agents import memory as module
from agents.base import Decisions, decide, make_agent
from agents.memory import RULES, Memory
from domino_env import get_rules, make_engine
from domino_env.observation import layout_of
from domino_env.tiles import DRAW, HIGH, LOW, NUM_TILES, PASS, TURN, row_action_name, tile_index
from tests.agents.test_counter import duel

GAMES = [
    ("blind_blitz", {}),
    ("blind_blitz", {"seats": 3}),
    ("blind_blitz", {"seats": 2, "memory": "peek"}),
    ("blind_blitz", {"lead": "lot", "labelled_ends": True}),
    ("blind", {"seats": 2}),
    ("blind", {"memory": "peek", "seats": 3}),
    ("blind", {"lead": "high"}),
    ("blind_blitz", {"max_pip": 4, "hand_size": 4, "seats": 3}),
]
TWO = get_rules("blind_blitz", seats=2)
THREE = get_rules("blind_blitz", seats=3)


def position(
    rows: list[str],
    ends: tuple[int, int],
    turned: str = "",
    shown: tuple[str, ...] = (),
    seen: str = "",
    stock: int = 0,
    can: str = "",
    rules=THREE,
) -> Decisions:
    """One decision, built by hand.

    Args:
        rows: of each seat from its own one on, the next tile to be turned first; "?" is a tile that it does not know.
        ends: of the line.
        turned: the own tile that must be laid; shown: open tiles of each seat; seen: tiles on the line.
        stock: tiles in it.
        can: legal actions besides the lays of the turned and of the own open tiles.
    """
    layout = layout_of(rules)
    obs, mask = np.zeros((1, layout.size), np.uint8), np.zeros((1, DRAW + 1), np.int8)

    def put(name: str, bits) -> None:
        obs[0, layout.slices[name]][list(bits)] = 1

    put("end_left", [ends[0]])
    put("end_right", [ends[1]])
    put("played", [tile_index(name) for name in seen.split()])
    put("turned", [tile_index(name) for name in turned.split()])
    put("stock", range(stock))
    who = [name.removeprefix("row_") for name in layout.slices if name.startswith("row_")]
    for seat, row in enumerate(rows):
        for place, name in enumerate(row.split()):
            bits = [14]
            if name != "?":
                bits += [int(LOW[tile_index(name)]), 7 + int(HIGH[tile_index(name)]), *([15] if seat else [])]
            put(f"row_{who[seat]}", [16 * place + bit for bit in bits])
    for seat, tiles in enumerate(shown):
        put(f"shown_{who[seat]}", [tile_index(name) for name in tiles.split()])
    for name in turned.split() or (shown[0].split() if shown else ()):
        for side, end in enumerate(ends):
            if end in (LOW[tile_index(name)], HIGH[tile_index(name)]) and (side == 0 or ends[0] != ends[1]):
                mask[0, tile_index(name) + side * NUM_TILES] = 1
    for name in can.split():
        mask[0, {"turn": TURN, "draw": DRAW, "pass": PASS}[name]] = 1
    return Decisions(obs, mask, np.zeros(1, np.int64), rules=rules)


def only(**weights: float) -> Memory:
    """Memory with all other rules off."""
    return Memory(**{name: weights.get(name, 0.0) for name in RULES})


def answer(agent, batch: Decisions) -> str:
    actions = agent.act(batch)
    assert actions.shape == (1,) and actions.dtype == np.int64
    return row_action_name(int(actions[0]))


# Without rules memory takes the lowest action id.
FAR = "? ? ? ?"
ONES = "0-1 1-1 1-3 1-4 1-5 1-6"
DECIDES = {
    "go_on": (position(["? ? ? ?", FAR, FAR], (1, 2), can="pass turn"), "turn"),
    "turn_fits": (position(["1-3 4-4 ? ?", FAR, FAR], (1, 2), can="pass turn"), "turn"),
    "turn_past": (position(["3-4 1-5 ? ?", FAR, FAR], (1, 2), can="pass turn"), "turn"),
    "turn_stale": (position(["0-0 4-5 ? ?", FAR, FAR], (1, 2), seen="0-1 0-2 0-3 0-4 0-5", can="pass turn"), "turn"),
    "lay_open": (position(["", FAR, FAR], (1, 2), shown=("4-5 2-6",), can="pass"), "2-6R"),
    "lay_heavy": (position(["", FAR, FAR], (1, 2), shown=("1-3 2-6",)), "2-6R"),
    "lay_doubles": (position(["", FAR, FAR], (1, 2), shown=("1-3 2-2",)), "2-2R"),
    "run_on": (position(["1-5 5-6 ? ?", FAR, FAR], (1, 2), turned="1-2"), "1-2R"),
    "next_fits": (position(["1-5 ? ? ?", FAR, FAR], (1, 2), turned="1-2"), "1-2R"),
    "keep_fits": (position(["0-0 1-5 1-6 ?", FAR, FAR], (1, 2), turned="1-2"), "1-2R"),
    "stop_next": (position([FAR, "2-5 ? ? ?", FAR], (1, 2), turned="1-2"), "1-2R"),
    "stop_others": (position([FAR, FAR, "2-5 ? ? ?"], (1, 2), turned="1-2"), "1-2R"),
    "break_runs": (position([FAR, "2-5 5-6 ? ?", FAR], (1, 2), turned="1-2"), "1-2R"),
    "close_light": (
        position(["0-0 0-3 0-4 0-5", "6-6 5-6 4-6 3-6", "5-5 4-5 3-5 2-4"], (1, 2), turned="1-2", seen=ONES),
        "1-2R",
    ),
    "draw": (position(["3-4 ? ? ?", FAR, FAR], (1, 2), stock=4, can="pass draw"), "draw"),
    "draw_fits": (position(["3-4 ? ? ?", FAR, FAR], (1, 2), stock=4, can="pass draw"), "draw"),
    "draw_heavy": (position(["5-6 6-6 5-5 4-6", FAR, FAR], (1, 2), stock=4, can="pass draw"), "draw"),
}


def test_rules__each_has_a_position():
    assert list(DECIDES) == list(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_rules__each_decides_alone_and_can_be_switched_off(rule):
    batch, move = DECIDES[rule]
    lowest = row_action_name(int(batch.mask[0].argmax()))
    assert answer(only(), batch) == lowest
    assert answer(only(**{rule: 1.0}), batch) == move
    # Lays come first among the ids, so that one rule shows in that it can be turned round.
    other = answer(only(**{rule: -1.0}), batch)
    assert other == "pass" if rule == "lay_open" else other == lowest != move


def test_memory__goes_out_when_it_can():
    """R6: laying the last tile is an out; no weight can keep it from that."""
    batch = position(["", FAR, FAR], (1, 2), shown=("2-6",), can="pass")
    assert answer(only(lay_open=-50.0), batch) == "2-6R"


def test_close_light__only_where_nothing_can_match():
    heavy = position(["6-6 5-6 4-6 3-6", "0-0 0-3 0-4 0-5", FAR], (1, 2), turned="1-2", seen=ONES)
    assert answer(only(close_light=1.0), heavy) == "1-2L", "the row is the heavier one"
    rows = ["0-0 0-3 0-4 0-5", "6-6 5-6 4-6 3-6", "5-5 4-5 3-5 2-4"]
    known = position(rows, (1, 2), turned="1-2", seen=ONES.replace(" 1-6", ""))
    _, _, columns = Memory().columns(known)
    assert columns["close_light"][1] > 0, "1-6 lies in the stock: all rows are known"
    hidden = position([rows[0], rows[1], "1-6 4-5 3-5 2-4"], (1, 2), turned="1-2", seen=ONES.replace(" 1-6", ""))
    _, _, columns = Memory().columns(hidden)
    assert columns["close_light"].tolist() == [0, 0], "1-6 lies in a row"


def test_columns__chances_are_counted_over_the_unseen_tiles():
    """The own next tile is unknown: of 17 unseen ones it may be, three match 1-1 and five 2-2."""
    seen = "1-3 1-4 1-5 1-6 0-1 0-0 0-3"
    batch = position(["? ? ? ?", "4-4 ? ? ?", "5-5 6-6 ? ?"], (1, 2), turned="1-2", seen=seen)
    rows, actions, columns = Memory().columns(batch)
    assert [row_action_name(a) for a in actions] == ["1-2L", "1-2R"] and rows.tolist() == [0, 0]
    # 1-2L leaves 2 and 2: 0-2, 2-2 … 2-6 are unseen, six; 1-2R leaves 1 and 1: 1-1 alone.
    unseen = 28 - 7 - 1 - 3
    assert columns["next_fits"] == pytest.approx([6 / unseen, 1 / unseen])
    assert columns["stop_next"].tolist() == [1, 1], "4-4 is known not to match"


def places(engine, viewer):
    """What each row holds, as an engine that is asked for all of it says, clockwise from the viewer."""
    seats = engine.rules.seats
    rows = np.take_along_axis(engine.rows(), ((viewer[:, None] + np.arange(seats)) % seats)[:, :, None], axis=1)
    return rows.transpose(1, 2, 0)


def looked(agent, batch):
    """The player's own view of a batch, with what it remembers."""
    view = module._view(batch, batch.rules)
    agent._remember(batch, batch.rules, view)
    return view


@pytest.mark.parametrize(("game", "options"), GAMES, ids=str)
def test_memory__knows_where_the_turned_tiles_lie(game, options):
    """R4: through whole deals every face that it knows is the right one, and each turned one is known to it (R9)."""
    engine, agent = make_engine(game, 24, seed=3, **options), Memory()
    rng, known, live = np.random.default_rng(3), 0, np.arange(24)
    for _ in range(60):
        batch = decide(engine, None, rng, None, live)
        view, truth = looked(agent, batch), places(engine, engine.to_move())
        tiles = view.place[:, :-1]
        assert ((tiles == module._NOTHING) == (truth < 0)).all()
        sure = tiles < NUM_TILES
        assert (tiles[sure] == truth[sure]).all()
        known += sure.sum()
        turned = np.zeros((NUM_TILES, len(live)), bool)
        row, event = np.nonzero((batch.history >= 0) & (batch.history & 63 == TURN))
        turned[batch.history[row, event] >> 6 & 31, row] = True
        hidden = (tiles == module._UNKNOWN) & turned[truth.clip(0), np.arange(len(live))]
        assert not hidden.any(), "a tile that was turned is known"
        if engine.rules.looked:
            unknown = (tiles[0] == module._UNKNOWN).sum(axis=0)
            assert (unknown <= 1).all(), "of its own row it knows all but one that was drawn"
        actions = engine.sample_legal(rng)
        actions[::2] = agent.act(batch)[::2]
        _, done = engine.step(actions, autoreset=False)
        live = live[~done]
        if not len(live):
            break
        engine = engine.take(~done)
    assert known > 500


def test_memory__peek_and_perfect_are_one_to_it():
    """R9: what was shown once is remembered, so it plays both alike; without a key it forgets, and plays on."""
    seats = {"seats": 3}
    engines = [make_engine("blind_blitz", 40, seed=4, memory=name, **seats) for name in ("perfect", "peek")]
    agents = [Memory(), Memory()]
    differs = 0
    for _ in range(50):
        key = engines[0].deal_index() * 40 + np.arange(40)
        batches = [decide(engine, agent, None, None, key) for engine, agent in zip(engines, agents)]
        actions = [agent.act(batch) for agent, batch in zip(agents, batches)]
        assert (actions[0] == actions[1]).all()
        forgets = agents[1].act(decide(engines[1], agents[1]))
        assert batches[1].mask[np.arange(40), forgets].all()
        differs += (forgets != actions[1]).sum()
        for engine in engines:
            engine.step(actions[0])
    assert differs > 0, "it matters what it remembers"


def test_memory__a_row_that_cannot_be_is_not_believed():
    """A key that comes again for another deal, whose first look the player was not asked at: it sees what is wrong."""
    agent, key = Memory(), np.arange(100)
    first, second = (make_engine("blind_blitz", 100, seed=seed, memory="peek", seats=2) for seed in (1, 2))
    agent.act(decide(first, agent, None, None, key))
    refused = 0
    for step in range(14):
        if step > 4:  # no first look any more
            batch = decide(second, agent, None, None, key)
            bare = module._view(batch, batch.rules)
            kept = agent._rows.recall(key * 2 + batch.seat, 8)
            theirs = (bare.place[1].T[:, :, None] == kept[:, None]) & (kept < NUM_TILES)[:, None]
            wrong = theirs.any(axis=(1, 2))
            assert (looked(agent, batch).place[0][:, wrong] == bare.place[0][:, wrong]).all()
            refused += wrong.sum()
        second.step(second.sample_legal(np.random.default_rng(step)))
    assert refused > 50


def test_rows__kept_by_name_the_oldest_dropped():
    rows = module._Rows()
    rows.KEPT = 8
    for start in range(0, 40, 4):
        names = np.arange(start, start + 4)
        rows.keep(names, np.stack([names % 28, names % 5], axis=1))
        assert (rows.recall(names, 3)[:, :2] == np.stack([names % 28, names % 5], axis=1)).all()
        assert len(rows._names) <= 8
    assert rows.recall(np.array([0, 39]), 2).tolist() == [[module._NOTHING] * 2, [39 % 28, 39 % 5]]
    rows.keep(np.array([39]), np.array([[1, 2, 3]]))
    assert rows.recall(np.array([39]), 3).tolist() == [[1, 2, 3]], "the newest of a name"


def test_memory__passes_where_it_must():
    assert answer(Memory(), position(["", FAR, FAR], (1, 2), shown=("3-4",), can="pass")) == "pass"


@pytest.mark.parametrize(("game", "options"), GAMES, ids=str)
def test_memory__plays_every_blind_game(game, options):
    """All seats, over many deals: the engine refuses what is illegal, and none is broken off by the guard (R8)."""
    agent, deals = make_agent("memory"), 0
    engine = make_engine(game, 50, seed=5, **options)
    while deals < 60:
        engine.step(agent.act(decide(engine, agent, None, None, np.arange(50))))
        deals += len(engine.finished)
        assert not engine.truncated().any()


@pytest.mark.parametrize(("game", "options"), GAMES[:4], ids=str)
def test_memory__an_answer_depends_on_its_row_alone(game, options):
    """A batch of all rows, of some, and of one: the same answers, each asked in the order of its own deal."""
    engine, key = make_engine(game, 12, seed=9, **options), np.arange(12)
    agents = {size: make_agent("memory") for size in (1, 5, 12)}
    for _ in range(10):
        answers = []
        for size, agent in agents.items():
            parts = [np.arange(12)[start : start + size] for start in range(0, 12, size)]
            answers.append(np.concatenate([agent.act(decide(engine, agent, None, part, key)) for part in parts]))
        assert (answers[0] == answers[2]).all() and (answers[1] == answers[2]).all()
        engine.step(answers[2])


def test_memory__names_the_games_that_it_plays():
    for game in ("sport_book", "tiny_pairs", "blitz"):
        with pytest.raises(ValueError, match=rf"memory plays the blind games .*, not {game}$"):
            make_agent("memory", game)
        with pytest.raises(ValueError, match=f"not {game}$"):
            Memory().act(decide(make_engine(game, 2)))
    assert make_agent("memory:draw=0", "blind").weights["draw"] == 0
    with pytest.raises(ValueError, match=r"memory has no rule 'drew'; rules are .*draw"):
        make_agent("memory:drew=1")
    batch = position([FAR, FAR, FAR], (1, 2), can="pass turn")
    with pytest.raises(ValueError, match=r"observations of blind_blitz are \(N, \d+\), not"):
        Memory().act(Decisions(batch.obs, batch.mask, batch.seat, rules=TWO))
    with pytest.raises(ValueError, match=r"batch\.rules"):
        Memory().act(Decisions(batch.obs, batch.mask, batch.seat))


@pytest.mark.slow
@pytest.mark.parametrize("other", ["random", "greedy", "double_first"])
@pytest.mark.parametrize("seats", [2, 3, 4])
@pytest.mark.parametrize("game", ["blind_blitz", "blind"])
def test_memory__beats_the_players_without_rules(game, seats, other):
    mean, margin = duel(make_agent("memory"), make_agent(other), get_rules(game, seats=seats), 3000, 8)
    assert mean - margin > 0


@pytest.mark.parametrize("game", ["blind_blitz", "blind"])
def test_memory__beats_random(game):
    mean, margin = duel(make_agent("memory"), make_agent("random"), get_rules(game, seats=3), 60, 7)
    assert mean - margin > 0
