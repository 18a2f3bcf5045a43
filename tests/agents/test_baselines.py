"""The rule players: what each prefers, every maxim of club where it decides, and legal play everywhere."""

import numpy as np
import pytest

from agents.base import Decisions, decide, make_agent
from agents.baselines import MAXIMS, Club
from domino_env import PRESETS, get_rules, make_engine
from domino_env.deals import Streams
from domino_env.observation import layout_of
from domino_env.tiles import (
    DRAW,
    HIGH,
    LOW,
    NUM_TILES,
    PASS,
    action_index,
    action_name,
    row_action_index,
    row_action_name,
    tile_index,
    tiles_of,
)
from tests.agents.test_counter import duel

NAMES = ["random", "greedy", "double_first", "club"]
LINE = [name for name, rules in PRESETS.items() if not rules.chains and not rules.rows]
GAMES = [
    *((name, {}) for name in LINE),
    ("sport_book", {"pairs": False}),
    ("sport_book", {"labelled_ends": True}),
    ("sport_book", {"seats": 2, "pairs": False}),
    ("tiny_pairs", {"max_pip": 2, "hand_size": 1}),
    ("tiny_pairs", {"seats": 2, "pairs": False, "hand_size": 4}),
    ("puerto_rico", {"lead": "double_six"}),
]
OTHERS = [  # that club does not play
    ("blitz", {}),
    ("blitz", {"seats": 7, "chain": "one"}),
    ("blitz", {"pairs": True}),
    ("blind_blitz", {"seats": 2}),
    ("blind", {"seats": 3, "memory": "peek"}),
    ("blind", {}),
]
CASES = [(name, *game) for game in GAMES + OTHERS for name in NAMES if name != "club" or game in GAMES]
SEATS = ("me", "left", "partner", "right")


def position(hand: str, ends: tuple[int, int], seen: str = "", passed=None, history=(), size=(5, 5, 5, 5)) -> Decisions:
    """One decision of `sport_book`, built by hand; `seen` lies on the line, `passed` maps a seat to its missing suits.

    The history is a list of (relative seat, left end, right end, move).
    """
    rules = PRESETS["sport_book"]
    layout = layout_of(rules)
    obs = np.zeros((1, layout.size), np.uint8)
    mask = np.zeros((1, PASS + 1), np.int8)

    def put(name: str, bits) -> None:
        part = layout.slices[name]
        obs[0, part][list(bits)] = 1

    tiles = [tile_index(name) for name in hand.split()]
    put("hand", tiles)
    put("played_right", [tile_index(name) for name in seen.split()])
    put("end_left", [ends[0]])
    put("end_right", [ends[1]])
    for seat, who in enumerate(SEATS):
        put(f"size_{who}", range(size[seat]))
        put(f"passed_{who}", (passed or {}).get(seat, ()))
    for tile in tiles:
        for side, end in enumerate(ends):
            if end in (LOW[tile], HIGH[tile]) and (side == 0 or ends[0] != ends[1]):
                mask[0, tile + side * NUM_TILES] = 1
    if not mask.any():
        mask[0, PASS] = 1
    events = np.full((1, rules.max_plies), -1, np.int16)
    for ply, (seat, left, right, move) in enumerate(history):
        events[0, ply] = seat << 12 | left << 9 | right << 6 | action_index(move)
    return Decisions(obs, mask, np.zeros(1, np.int64), events, np.random.default_rng(0), rules=rules)


def only(**weights: float) -> Club:
    """Club with all other maxims off."""
    return Club(**{name: weights.get(name, 0.0) for name in MAXIMS})


def answer(agent, batch: Decisions) -> str:
    actions = agent.act(batch)
    assert actions.shape == (1,) and actions.dtype == np.int64
    return action_name(int(actions[0]))


# Without maxims club lays the lowest action id: 1-3L in all positions but the last.
FIVES = "0-5 2-5 3-5 4-5 5-5"
TWOS = "0-2 1-2 2-3 2-4 2-5"
ONES = "0-1 1-1 1-2 1-3 1-4 1-6"
DECIDES = {
    "keep_long": (position("1-3 1-5 5-6 4-5", (1, 2)), "1-5L"),
    "stay_in_play": (position("1-3 1-5 5-6", (1, 2)), "1-5L"),
    "keep_variety": (position("1-3 1-5 5-5", (1, 2)), "1-5L"),
    "repeat_partner": (position("1-3 1-5", (1, 2), history=[(2, 0, 2, "0-5L"), (3, 5, 2, "1-5L")]), "1-5L"),
    "spare_partner": (position("1-3 2-6", (1, 2), history=[(2, 0, 2, "0-1L")]), "2-6R"),
    "cut_opponents": (position("1-3 2-6", (1, 2), history=[(3, 1, 0, "0-2R")]), "2-6R"),
    "starve_opponents": (position("1-3 1-5", (1, 2), history=[(1, 6, 2, "3-6L"), (2, 3, 2, "1-3L")]), "1-5L"),
    "play_heavy": (position("1-3 1-5", (1, 2)), "1-5L"),
    "play_doubles": (position("1-3 2-2", (1, 2)), "2-2R"),
    "stop_next": (position("1-3 1-5", (1, 2), passed={1: [2, 5]}), "1-5L"),
    "stop_right": (position("1-3 1-5", (1, 2), passed={3: [2, 5]}), "1-5L"),
    "serve_partner": (position("1-3 1-5", (1, 2), passed={2: [2, 3]}), "1-5L"),
    "hold_end": (position("1-3 1-5 5-6", (1, 2), seen=FIVES), "1-5L"),
    "guard_doubles": (position("1-3 1-5 5-5", (1, 2)), "1-5L"),
    "cut_doubles": (position("1-3 2-6", (1, 2), seen=TWOS), "2-6R"),
    "close_light": (position("0-0 0-5 1-5", (1, 5), seen=ONES), "1-5R"),
}


def test_maxims__each_has_a_position():
    assert list(DECIDES) == list(MAXIMS)


@pytest.mark.parametrize("maxim", MAXIMS)
def test_maxims__each_decides_alone_and_can_be_switched_off(maxim):
    batch, move = DECIDES[maxim]
    without = answer(only(), batch)
    assert without == ("0-5R" if move == "0-5R" else "1-5L" if maxim == "close_light" else "1-3L") != move
    assert answer(only(**{maxim: 1.0}), batch) == move
    assert answer(only(**{maxim: -1.0}), batch) != move


def test_close_light__not_with_the_heavier_hand():
    heavy = position("5-6 6-6 1-5", (1, 5), seen=ONES + " 4-4 4-6 4-5 3-6", size=(3, 3, 3, 3))
    assert answer(only(close_light=1.0), heavy) != "1-5R"


def test_columns__what_is_certain_is_exact():
    """Seat 1 has passed on both new ends, seat 3 has one tile of the two that are left of them."""
    batch = position("1-3 1-5", (1, 2), passed={1: [2, 3, 5], 2: [2, 3]})
    rows, actions, columns = Club().columns(batch)
    assert rows.tolist() == [0, 0] and [action_name(a) for a in actions] == ["1-3L", "1-5L"]
    assert columns["stop_next"].tolist() == [1, 1]
    assert columns["serve_partner"].tolist()[0] == -1 and -1 < columns["serve_partner"][1] < 0
    assert (columns["stop_right"] < 0.5).all()
    assert set(columns) == set(MAXIMS) and all(column.dtype == np.float32 for column in columns.values())


def test_columns__what_the_own_hand_says_counted_by_hand():
    """The array arithmetic against plain Python sets, on all lays of 200 tables in mid-deal."""
    engine = make_engine("sport_book", 200, seed=3)
    rng = np.random.default_rng(3)
    for _ in range(9):
        engine.step(engine.sample_legal(rng))
    rows, actions, columns = Club().columns(decide(engine))
    ends, hands, movers = engine.ends(), engine.hands(), engine.to_move()
    held = [[set(tiles_of(hand)) for hand in row] for row in hands]
    for i, (row, action) in enumerate(zip(rows.tolist(), actions.tolist())):
        tile, side = action % NUM_TILES, action // NUM_TILES
        pair = {int(LOW[tile]), int(HIGH[tile])}
        new = list(ends[row])
        if new[0] < 0:
            new = [LOW[tile], HIGH[tile]]
        else:
            new[side] = LOW[tile] + HIGH[tile] - new[side]
        left = held[row][movers[row]] - {tile}
        hidden = set().union(*held[row]) - left - {tile}
        suits = {suit for t in left for suit in (int(LOW[t]), int(HIGH[t]))}
        fitting = [t for t in left if {int(LOW[t]), int(HIGH[t])} & set(new)]
        assert columns["keep_long"][i] == len(fitting)
        assert columns["stay_in_play"][i] == -(not fitting)
        assert columns["keep_variety"][i] == len(suits)
        assert columns["guard_doubles"][i] == sum(tile_index(f"{end}-{end}") in left for end in set(new))
        alone = [end for end in set(new) if end in suits and not any(end in (LOW[t], HIGH[t]) for t in hidden)]
        assert columns["hold_end"][i] == len(alone)
        assert columns["play_doubles"][i] == (len(pair) == 1)


def test_club__a_closed_line_is_seen_as_certain():
    _, actions, columns = Club().columns(DECIDES["close_light"][0])
    closing = [action_name(a) == "1-5R" for a in actions]
    assert (columns["stop_next"][closing] == 1).all() and (columns["close_light"][closing] > 0).all()


def test_club__without_history_plays_by_the_table():
    batch, _ = DECIDES["repeat_partner"]
    batch = Decisions(batch.obs, batch.mask, batch.seat)
    assert answer(only(repeat_partner=1.0), batch) == "1-3L"


def test_club__lead_opens_both_halves():
    """A lead of 5-6 by the partner counts for both suits, a double once."""
    for move, spared in (("5-6L", (1, 1)), ("5-5L", (1, 0))):
        batch = position("1-5 1-6", (1, 1), history=[(2, 7, 7, move)])
        _, _, columns = Club().columns(batch)
        assert tuple(columns["repeat_partner"].tolist()) == spared


def test_club__passes_where_it_must():
    assert answer(Club(), position("3-4", (1, 2))) == "pass"


def test_club__refuses_observations_of_another_game():
    batch = position("1-3", (1, 2))
    batch.rules = get_rules("sport_book", seats=2, pairs=False)
    with pytest.raises(ValueError, match="192"):
        Club().act(batch)


def test_greedy__heaviest_then_double_then_lower_tile_then_left():
    greedy = make_agent("greedy")
    assert answer(greedy, position("1-3 1-5 2-3", (1, 2))) == "1-5L"
    assert answer(greedy, position("1-3 2-2", (1, 2))) == "2-2R"
    assert answer(greedy, position("1-4 2-3", (1, 2))) == "1-4L"
    assert answer(greedy, position("1-2", (1, 2))) == "1-2L"
    assert answer(greedy, position("5-5", (1, 2))) == "pass"


def test_double_first__doubles_then_heaviest():
    agent = make_agent("double_first")
    assert answer(agent, position("1-1 1-6", (1, 2))) == "1-1L"
    assert answer(agent, position("1-1 2-2 1-6", (1, 2))) == "2-2R"
    assert answer(agent, position("1-3 2-6", (1, 2))) == "2-6R"


def choice(options: str, actions: int) -> Decisions:
    """One decision between these actions, of 57 or 59."""
    mask = np.zeros((1, actions), np.int8)
    mask[0, [row_action_index(move) for move in options.split()]] = 1
    return Decisions(np.zeros((1, 8), np.uint8), mask, np.zeros(1, np.int64))


@pytest.mark.parametrize("name", ["greedy", "double_first"])
@pytest.mark.parametrize(
    ("options", "move"),
    [
        ("1-3L 2-6R pass", "2-6R"),  # B3: goes on while it can lay
        ("0-0L pass", "0-0L"),
        ("pass turn", "turn"),  # R6
        ("1-3L pass turn", "1-3L"),  # R7
        ("pass draw", "pass"),  # R5
    ],
)
def test_preference__goes_on_and_never_draws(name, options, move):
    for actions in (57, 59) if "turn" not in options and "draw" not in options else (59,):
        assert row_action_name(int(make_agent(name).act(choice(options, actions))[0])) == move


def test_greedy__declines_because_drawing_loses():
    """R5: on duplicate boards a greedy player that draws loses to one that declines."""
    rules = get_rules("blind", seats=2)

    class Draws:
        name = "draws"

        def act(self, batch):
            return np.where(batch.mask[:, DRAW] == 1, DRAW, make_agent("greedy").act(batch))

    mean, margin = duel(make_agent("greedy"), Draws(), rules, 100, 3)
    assert mean - margin > 0


def test_club__names_the_games_that_it_plays():
    """Pairs on a line, one tile a turn: neither blitz, in pairs or not, nor the blind games."""
    for game, overrides in OTHERS:
        rules = get_rules(game, **overrides)
        with pytest.raises(ValueError, match=rf"club plays games with one tile a turn .*sport_book.*, not {game}$"):
            make_agent("club", rules)
        with pytest.raises(ValueError, match=f"not {game}$"):
            Club().act(decide(make_engine(rules, 2)))
    for game, overrides in GAMES:
        make_agent("club", get_rules(game, **overrides))


def test_random__uniform_over_the_legal_actions():
    batch = position("1-3 1-5 2-6", (1, 2))
    many = Decisions(batch.obs.repeat(30_000, 0), batch.mask.repeat(30_000, 0), batch.seat.repeat(30_000))
    many.rng = np.random.default_rng(3)
    moves, counts = np.unique(make_agent("random").act(many), return_counts=True)
    assert [action_name(a) for a in moves] == ["1-3L", "1-5L", "2-6R"]
    assert np.abs(counts / 30_000 - 1 / 3).max() < 0.015


def test_random__the_ends_of_the_unit_interval():
    class Edge:
        def random(self, size):
            return np.array([0.0, np.nextafter(1, 0)])

    batch = position("1-3 1-5 2-6", (1, 2))
    both = Decisions(batch.obs.repeat(2, 0), batch.mask.repeat(2, 0), batch.seat.repeat(2), rng=Edge())
    assert [action_name(a) for a in make_agent("random").act(both)] == ["1-3L", "2-6R"]
    with pytest.raises(ValueError, match="rng"):
        make_agent("random").act(batch_without_rng(batch))


def batch_without_rng(batch: Decisions) -> Decisions:
    return Decisions(batch.obs, batch.mask, batch.seat)


@pytest.mark.parametrize(("name", "game", "overrides"), CASES, ids=str)
def test_play__always_legal(name, game, overrides):
    """All seats by the same agent, over a thousand deals of every game: the engine refuses what is illegal."""
    agent = make_agent(name)
    engine = make_engine(game, 256, seed=5, **overrides)
    rng, deals = np.random.default_rng(1), 0
    while deals < (1000 if game in LINE else 300):
        engine.step(agent.act(decide(engine, agent, rng)))
        deals += len(engine.finished)


@pytest.mark.parametrize(("name", "game", "overrides"), CASES, ids=str)
def test_play__an_answer_depends_on_its_row_alone(name, game, overrides):
    agent = make_agent(name)
    engine = make_engine(game, 24, seed=9, **overrides)
    for ply in range(14):
        streams = Streams.of(ply, np.arange(24))
        actions = agent.act(decide(engine, agent, streams.take(np.arange(24))))
        for size in (1, 5):
            parts = [np.arange(24)[start : start + size] for start in range(0, 24, size)]
            split = [agent.act(decide(engine, agent, Streams.of(ply, np.arange(24)), part)) for part in parts]
            assert (np.concatenate(split) == actions).all()
        engine.step(actions)


def test_club__worth_is_bit_equal_at_any_batch_size():
    """Sums of floats round alike: near ties must not fall differently in another batch."""
    engine = make_engine("sport_book", 200, seed=2)
    rng = np.random.default_rng(4)
    for _ in range(10):
        engine.step(engine.sample_legal(rng))
    _, _, columns = Club().columns(decide(engine))
    for row in range(0, 200, 7):
        _, _, alone = Club().columns(decide(engine, rows=np.array([row])))
        rows, _, _ = Club().columns(decide(engine))
        for name, column in columns.items():
            assert (column[rows == row] == alone[name]).all(), name


def test_agents__see_only_the_observation():
    """No house player asks for the table, and another deal of the hidden tiles changes no answer."""
    rng = np.random.default_rng(8)
    engine = make_engine("sport_book", 300, seed=11)
    hands = engine.hands()
    shuffled = hands.copy()
    leader = engine.leader()
    for row in range(len(hands)):
        others = [seat for seat in range(4) if seat != leader[row]]
        shuffled[row, others] = hands[row, rng.permutation(others)]
    twin = make_engine("sport_book", 300, seed=0)
    engine.deal(hands, leader)
    twin.deal(shuffled, leader)
    for name in NAMES:
        agent = make_agent(name)
        assert not getattr(agent, "sees_everything", False)
        one, two = (decide(each, agent, Streams.of(1, np.arange(300))) for each in (engine, twin))
        assert (agent.act(one) == agent.act(two)).all()
