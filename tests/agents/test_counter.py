"""counter, the rule player of blitz: every plan of a turn, each rule where it decides, and better than greedy."""

import numpy as np
import pytest

from agents.base import Decisions, decide, make_agent
from agents.counter import RULES, Counter
from domino_env import get_rules, make_engine
from domino_env.deals import boards
from domino_env.observation import layout_of
from domino_env.tiles import (
    HIGH,
    LOW,
    NUM_TILES,
    PASS,
    PIPS,
    action_name,
    mask_of,
    tile_index,
    tiles_of,
)

BLITZ = get_rules("blitz")
PAIRS = get_rules("blitz", pairs=True)
ONE = get_rules("blitz", chain="one")
GAMES = [
    {},
    {"seats": 5},
    {"seats": 8},
    {"chain": "one"},
    {"pairs": True},
    {"pairs": True, "chain": "one"},
    {"labelled_ends": True},
    {"max_pip": 4, "hand_size": 3},
]


def position(
    hand: str,
    ends: tuple[int, int],
    seen: str = "",
    passed=None,
    size=(4, 4, 4, 4),
    laid: bool = False,
    grown: int | None = None,
    rules=BLITZ,
) -> Decisions:
    """One decision, built by hand; `seen` lies on the line, `passed` maps a seat to its missing suits.

    With `laid` the mover has laid in this turn and may stop; `grown` is the end that it grows with `chain="one"`.
    """
    layout = layout_of(rules)
    obs = np.zeros((1, layout.size), np.uint8)
    mask = np.zeros((1, PASS + 1), np.int8)

    def put(name: str, bits) -> None:
        obs[0, layout.slices[name]][list(bits)] = 1

    tiles = [tile_index(name) for name in hand.split()]
    put("hand", tiles)
    put("played_right", [tile_index(name) for name in seen.split()])
    put("end_left", [ends[0]])
    put("end_right", [ends[1]])
    put("laid", [0] if laid else [])
    put("grown", [] if grown is None else [grown])
    names = [name.removeprefix("size_") for name in layout.slices if name.startswith("size_")]
    for seat, who in enumerate(names):
        put(f"size_{who}", range(size[seat] if seat else len(tiles)))
        put(f"passed_{who}", (passed or {}).get(seat, ()))
    for tile in tiles:
        for side, end in enumerate(ends):
            if end in (LOW[tile], HIGH[tile]) and (side == grown or (grown is None and (not side or end != ends[0]))):
                mask[0, tile + side * NUM_TILES] = 1
    mask[0, PASS] = laid or not mask.any()
    return Decisions(obs, mask, np.zeros(1, np.int64), rules=rules)


def only(**weights: float) -> Counter:
    """Counter with all other rules off."""
    return Counter(**{name: weights.get(name, 0.0) for name in RULES})


def answer(agent, batch: Decisions) -> str:
    actions = agent.act(batch)
    assert actions.shape == (1,) and actions.dtype == np.int64
    return action_name(int(actions[0]))


# Without rules counter begins the plan of the lowest action id: 1-3L in all positions but two.
FIVES = "0-5 2-5 3-5 4-5 5-5"
ONES = "0-1 1-1 1-2 1-3 1-4 1-6"
DECIDES = {
    "lay_pips": (position("1-3 1-5 0-4", (1, 2)), "1-5L"),
    "lay_tiles": (position("1-3 1-5 5-6 0-4", (1, 2)), "1-5L"),
    "stop": (position("1-3 0-4", (1, 2), laid=True), "pass"),
    "keep_fits": (position("1-3 1-5 5-6 0-4 0-5", (1, 2)), "1-5L"),
    "stay_in_play": (position("1-3 1-5 5-6 0-4", (1, 2)), "1-5L"),
    "keep_variety": (position("1-3 1-5 5-5 0-4", (1, 2)), "1-5L"),
    "no_dead_tiles": (position("0-4 1-5 5-5", (5, 1), seen="0-5 2-5 3-5 4-5 5-6"), "5-5L"),
    "hold_end": (position("1-3 1-5 5-6 0-4", (1, 2), seen=FIVES), "1-5L"),
    "stop_next": (position("1-3 1-5 0-4", (1, 2), passed={1: [2, 5]}), "1-5L"),
    "stop_others": (position("1-3 1-5 0-4", (1, 2), passed={3: [2, 5]}), "1-5L"),
    "serve_partner": (position("1-3 1-5 0-4", (1, 2), passed={2: [2, 3]}, rules=PAIRS), "1-5L"),
    "close_light": (position("0-0 0-6 1-5", (1, 5), seen=ONES), "1-5R"),
}


def test_rules__each_has_a_position():
    assert list(DECIDES) == list(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_rules__each_decides_alone_and_can_be_switched_off(rule):
    batch, move = DECIDES[rule]
    without = answer(only(), batch)
    assert without == ("1-5L" if rule in ("no_dead_tiles", "close_light") else "1-3L") != move
    assert answer(only(**{rule: 1.0}), batch) == move
    assert answer(only(**{rule: -1.0}), batch) != move


def test_close_light__not_with_the_heavier_hand():
    heavy = position("5-6 6-6 1-5", (1, 5), seen=ONES + " 4-4 4-6 4-5 3-6", size=(3, 3, 3, 3))
    assert answer(only(close_light=1.0), heavy) != "1-5R"


def test_counter__goes_out_when_it_can():
    """B4: all seven tiles in one turn, which only one order of laying them allows at first."""
    engine = make_engine("blitz", 1)
    hand = "0-0 0-1 1-2 2-3 3-4 4-5 5-6"
    mine = mask_of(tile_index(name) for name in hand.split())
    rest = [tile for tile in range(NUM_TILES) if not mine >> tile & 1]
    engine.deal(np.array([[mine, *(mask_of(rest[i : i + 7]) for i in (0, 7, 14))]], np.uint32))
    counter, moves = make_agent("counter"), 0
    while not len(engine.finished):
        assert engine.to_move()[0] == 0
        engine.step(counter.act(decide(engine, counter)), autoreset=False)
        moves += 1
    assert moves == 7 and engine.finished.by[0] == 0 and engine.finished.out[0]


def plainly(hand, left, right, grown, rules, labelled=False):
    """All (rest, left, right) in which a turn may end, by trying every order of laying (B3)."""
    found = {(frozenset(hand), left, right)}
    for tile in hand:
        pair = int(LOW[tile]), int(HIGH[tile])
        for side, end in enumerate((left, right)):
            if end in pair and grown in (None, side):
                new = [left, right]
                new[side] = sum(pair) - end
                then = None if rules.chain == "both" else side
                found |= plainly(hand - {tile}, *new, then, rules)
    return found


@pytest.mark.parametrize("options", GAMES, ids=str)
def test_plans__every_way_on_and_no_other(options):
    engine = make_engine("blitz", 10, seed=6, **options)
    rules, rng, counter = engine.rules, np.random.default_rng(6), Counter()
    for step in range(24):
        hands, ends, movers = engine.hands(), engine.ends(), engine.to_move()
        batch = decide(engine)
        rows, actions, plan, columns = counter.plans(batch)
        assert (np.diff(plan) >= 0).all() and (np.diff(rows) >= 0).all()
        assert sorted(zip(rows, actions)) == sorted(zip(*np.nonzero(engine.legal())))
        if step % 3 == 0:
            for i in range(len(rows)):
                row, action = rows[i], int(actions[i])
                hand = frozenset(tiles_of(hands[row, movers[row]]))
                left, right = (int(end) for end in ends[row])
                wanted = {(hand, left, right)}
                if action < PASS:
                    tile, side = action % NUM_TILES, action // NUM_TILES
                    new = [int(LOW[tile]), int(HIGH[tile])] if left < 0 else [left, right]
                    if left >= 0:
                        new[side] = int(PIPS[tile]) - new[side]
                    grown = None if left < 0 or rules.chain == "both" else side
                    wanted = plainly(hand - {tile}, *new, grown, rules)
                of = plan == i
                assert of.sum() == len(wanted)
                pips = sorted(sum(int(PIPS[t]) for t in rest) for rest, _, _ in wanted)
                assert sorted(np.round(-columns["lay_pips"][of] * 6).astype(int)) == pips
                assert columns["out"][of].sum() == sum(not rest for rest, _, _ in wanted)
                fits = sorted(sum(bool({int(LOW[t]), int(HIGH[t])} & {a, b}) for t in rest) for rest, a, b in wanted)
                assert sorted(columns["keep_fits"][of]) == fits
        assert all(column.dtype == np.float32 and column.shape == plan.shape for column in columns.values())
        engine.step(engine.sample_legal(rng))


@pytest.mark.parametrize("options", [{}, {"chain": "one"}], ids=str)
def test_counter__keeps_to_its_plan(options):
    """What the best plan is worth does not change while it is carried out."""
    engine, counter = make_engine("blitz", 40, seed=2, **options), Counter()
    before, mover, going = np.zeros(40), np.zeros(40), np.zeros(40, bool)
    kept = 0
    for _ in range(20):
        batch = decide(engine)
        rows, _, plan, columns = counter.plans(batch)
        worth = sum(np.float32(weight) * columns[name] for name, weight in counter.weights.items() if name != "stop")
        best = np.full(40, -np.inf)
        np.maximum.at(best, rows[plan], worth + np.float32(1000) * columns["out"])
        assert best[going] == pytest.approx(before[going], abs=1e-3)
        kept += going.sum()
        before, mover = best, engine.to_move()
        _, done = engine.step(counter.act(batch))
        going = ~done & (engine.to_move() == mover)
    assert kept > 100


def test_counter__passes_where_it_must():
    assert answer(Counter(), position("3-4", (1, 2))) == "pass"


@pytest.mark.parametrize("options", GAMES, ids=str)
def test_counter__plays_every_kind_of_blitz(options):
    """All seats, over many deals: the engine refuses what is illegal."""
    agent, deals = make_agent("counter"), 0
    engine = make_engine("blitz", 40, seed=5, **options)
    while deals < 60:
        engine.step(agent.act(decide(engine, agent)))
        deals += len(engine.finished)


@pytest.mark.parametrize("options", GAMES[1:5], ids=str)
def test_counter__an_answer_depends_on_its_row_alone(options):
    """A batch of all rows, of some, and of one: the same answers."""
    agent, engine = make_agent("counter"), make_engine("blitz", 12, seed=9, **options)
    for _ in range(8):
        actions = agent.act(decide(engine, agent))
        for size in (1, 5):
            parts = [np.arange(12)[start : start + size] for start in range(0, 12, size)]
            split = [agent.act(decide(engine, agent, None, part)) for part in parts]
            assert (np.concatenate(split) == actions).all()
        engine.step(actions)


def test_counter__names_the_games_that_it_plays():
    for game in ("sport_book", "tiny_pairs", "blind", "blind_blitz"):
        with pytest.raises(ValueError, match=rf"counter plays .*blitz.*, not {game}$"):
            make_agent("counter", game)
        engine = make_engine(game, 2)
        with pytest.raises(ValueError, match=f"not {game}$"):
            Counter().act(decide(engine))
    assert make_agent("counter:stop=0.5", PAIRS).weights["stop"] == 0.5
    with pytest.raises(ValueError, match=r"counter has no rule 'stopp'; rules are .*stop"):
        make_agent("counter:stopp=1")
    with pytest.raises(ValueError, match=r"batch\.rules"):
        Counter().act(Decisions(np.zeros((1, 256), np.uint8), np.ones((1, 57), np.int8), np.zeros(1, np.int64)))


def duel(a, b, rules, count: int, seed: int) -> tuple[float, float]:
    """Mean net points of A a deal on duplicate boards, and the half of its 95 % interval."""
    engine = make_engine(rules, 2 * count, seed=0)
    engine.deal(*(np.concatenate([part, part]) for part in boards(rules, seed, 0, count)))
    table, rng = np.repeat([0, 1], count), np.random.default_rng(seed)
    net, live = np.zeros(2 * count), np.arange(2 * count)
    while len(live):
        side = (engine.to_move() + table[live]) % 2
        actions = np.zeros(len(live), np.int64)
        for which, agent in enumerate((a, b)):
            rows = np.flatnonzero(side == which)
            if len(rows):
                actions[rows] = agent.act(decide(engine, agent, rng, rows, live))
        _, done = engine.step(actions, autoreset=False)
        over = engine.finished
        even = over.rewards[:, 0] if rules.pairs else over.rewards[:, ::2].sum(axis=1)
        net[live[over.rows]] = np.where(table[live[over.rows]] == 0, even, -even)
        live = live[~done]
        if len(live):
            engine = engine.take(~done)
    values = net.reshape(2, count).mean(axis=0)
    return float(values.mean()), float(1.96 * values.std(ddof=1) / np.sqrt(count))


def test_counter__beats_greedy():
    mean, margin = duel(make_agent("counter"), make_agent("greedy"), BLITZ, 250, 7)
    assert mean - margin > 0


@pytest.mark.slow
@pytest.mark.parametrize("other", ["random", "greedy", "double_first"])
@pytest.mark.parametrize("options", [{}, *({"seats": seats} for seats in (5, 6, 7, 8)), {"chain": "one"}], ids=str)
def test_counter__beats_the_players_without_rules(options, other):
    rules = get_rules("blitz", **options)
    count = 1000 if rules.seats == 4 else 6000  # short hands leave less to choose
    mean, margin = duel(make_agent("counter"), make_agent(other), rules, count, 8)
    assert mean - margin > 0
