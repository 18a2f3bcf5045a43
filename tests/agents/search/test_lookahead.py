"""The player that looks one ply ahead: leaves worked out by hand, forced moves, worlds, and what it may not see."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.base import decide, make_agent
from agents.search import solver
from agents.search.lookahead import LEAVES, Lookahead
from agents.search.pimc import Pimc
from agents.search.position import Position, position_at
from agents.search.worlds import Worlds
from domino_env import get_rules, make_engine
from domino_env.line import LineEngine
from domino_env.rules import Rules
from domino_env.tiles import PASS, action_index, mask_of, pips_of, tile_index
from experiments.evaluate import evaluate
from tests.agents.search.test_pimc import ask, asked_blindly, with_choice
from tests.agents.search.test_worlds import BOOK, TINY, Modelled, keys, played

TWO = get_rules("sport_book", seats=2, pairs=False)


class Pips:
    """A judge: pips in the others' hands less those of the mover's side."""

    name = "pips"

    def __init__(self) -> None:
        self.forced = 0  # rows it was asked about whose movers had no choice

    def values(self, engine: LineEngine) -> np.ndarray:
        pips = pips_of(engine.hands()).astype(np.int64)
        net = (pips * np.where(np.arange(pips.shape[1]) % 2 == 0, -1, 1)).sum(axis=1)
        self.forced += int((engine.legal_count() < 2).sum())
        return np.where(engine.to_move() % 2 == 0, net, -net)


class Exact:
    """A judge: what the position is worth if all hands are open from there on."""

    name = "exact"

    def values(self, engine: LineEngine) -> np.ndarray:
        return solver.solve(engine.hands(), engine.ends(), engine.to_move(), engine.rules).max(axis=1)


def late(worlds: list[list[str]], weights: list[float]) -> tuple[Position, Worlds]:
    """Seat 0 to move at an end 3 and an end 5, with worlds in which each seat's hand is a text of tiles."""
    hands = np.array([[mask_of(tile_index(t) for t in hand.split()) for hand in world] for world in worlds], np.uint32)
    held = np.bitwise_or.reduce(hands[0])
    laid = [t for t in range(28) if not int(held) >> t & 1]
    played = np.array([[mask_of(laid[seat::4]) for seat in range(4)]], np.uint32)
    position = Position(
        rules=BOOK,
        viewer=np.zeros(1, np.int64),
        own=hands[0, :1],
        played=played,
        voids=np.zeros((1, 4), np.uint8),
        sizes=np.bitwise_count(hands[:1]).astype(np.int64),
        ends=np.array([[3, 5]]),
        leader=np.zeros(1, np.int64),
        to_move=np.zeros(1, np.int64),
    )
    count = np.array([float(len(worlds))])
    return position, Worlds(hands[None], np.array([weights]), count, np.zeros(1), len(worlds))


def judged(position: Position, worlds: Worlds, actions: list[str], **options: Any) -> tuple[list[float], np.ndarray]:
    """The means of some actions with the judge `Pips`, and the whole row."""
    judge = Pips()
    player = Lookahead(critic=judge, worlds=2, **options)
    player.imagination.draw = lambda *_: worlds  # type: ignore[method-assign]
    legal = np.zeros((1, 57), np.int8)
    numbers = [action_index(action) for action in actions]
    legal[0, numbers] = 1
    mean = player.search(position, legal, keys(1)).mean[0]
    assert np.isneginf(np.delete(mean, numbers)).all() and not judge.forced
    return mean[numbers].tolist(), mean


def test_leaves_by_hand() -> None:
    """A choice of an opponent or of the partner is judged, with its sign; forced moves are played; an end counts."""
    # 3-4 on the left: seat 1 may lay 4-5 on either end. It judges 23 - 12 = 11 for itself.
    # 5-6 on the right: seat 1 must pass, seat 2 must lay 6-6 and is out: the others' 9 + 3 are won.
    first = ["3-4 5-6", "4-5", "6-6", "1-2"]
    # 3-4: seat 1 must pass, the partner may lay 4-5 on either end. It judges 15 - 20 = -5.
    # 5-6: seats 1 and 2 must pass, seat 3 lays 6-6 and is out: 7 + 9 are lost.
    second = ["3-4 5-6", "1-2", "4-5", "6-6"]
    position, worlds = late([first, second], [0.75, 0.25])
    means, mean = judged(position, worlds, ["3-4L", "5-6R"])
    assert means == [0.75 * -11 + 0.25 * -5, 0.75 * 12 + 0.25 * -16]
    assert mean.argmax() == action_index("5-6R")
    # Exactly, seat 1 goes out at once in the first world (11 + 12 are lost), and the partner in the second (3 + 12).
    means, _ = judged(position, worlds, ["3-4L", "5-6R"], leaf="mean")
    assert means == [0.75 * (-11 - 23) / 2 + 0.25 * (-5 + 15) / 2, 0.75 * 12 + 0.25 * -16]


def test_the_game_goes_round_to_the_seat_itself_and_blocks_count() -> None:
    # After either tile all pass and the seat itself goes out with the other: 3 + 2 are won.
    round_again = ["3-4 5-6", "1-2", "1-1", "0-2"]
    # 3-5 on the left and the line is 5 ... 5, and nobody has a 5: 2 + 3 of the pair against 3 + 4 of the others.
    block = ["3-5 0-2", "1-2", "0-3", "0-4"]
    position, worlds = late([round_again], [1.0])
    assert judged(position, worlds, ["3-4L", "5-6R"])[0] == [5, 5]
    position, worlds = late([block], [1.0])
    assert judged(position, worlds, ["3-5L", "3-5R"])[0][0] == 2
    for leaf in ("critic", "mean"):  # of equals the lower action
        position, worlds = late([round_again], [1.0])
        assert judged(position, worlds, ["3-4L", "5-6R"], leaf=leaf)[1].argmax() == action_index("3-4L")


def test_worlds_without_weight_do_not_count() -> None:
    position, worlds = late([["3-4 5-6", "1-2", "1-1", "0-2"], ["6-6", "6-6", "6-6", "6-6"]], [1.0, 0.0])
    assert judged(position, worlds, ["3-4L", "5-6R"])[0] == [5, 5]


GAMES = [
    (BOOK, 9),
    (get_rules("puerto_rico", lone_blank=10), 12),
    (get_rules("sport_club", labelled_ends=True), 12),
    (TWO, 8),
    (TINY, 2),
]


@pytest.mark.parametrize(("rules", "plies"), GAMES, ids=str)
@pytest.mark.parametrize("options", [{}, {"candidates": 40, "model": Modelled(0.1)}], ids=["plain", "weighed"])
@pytest.mark.parametrize("leaf", ["critic", "mean"])
def test_with_exact_leaves_it_is_pimc(rules: Rules, plies: int, options: dict[str, Any], leaf: str) -> None:
    engine = with_choice(played(rules, 40, plies))
    position = position_at(engine)
    chance = keys(len(position))
    player = Lookahead(critic=Exact(), worlds=6, leaf=leaf, **options)
    found = player.search(position, engine.legal(), chance)
    wanted = Pimc(worlds=6, **options).outlook(position, chance)
    assert np.array_equal(found.mean, wanted.mean)
    assert np.array_equal(found.ess, wanted.ess) and found.worlds == 6 and not found.fell_back.any()
    assert np.array_equal(ask(player, engine), ask(Pimc(worlds=6, **options), engine))


def test_the_mean_is_the_mean_of_both() -> None:
    engine = with_choice(played(BOOK, 30, 10))
    position, chance = position_at(engine), keys(engine.num_envs)
    critic = Lookahead(critic=Pips(), worlds=5).search(position, engine.legal(), chance).mean
    exact = Pimc(worlds=5).outlook(position, chance).mean
    both = Lookahead(critic=Pips(), worlds=5, leaf="mean").search(position, engine.legal(), chance).mean
    legal = engine.legal() == 1
    assert np.allclose(both[legal], (critic[legal] + exact[legal]) / 2) and np.isneginf(both[~legal]).all()
    assert (critic.argmax(axis=1) != exact.argmax(axis=1)).any()


def test_with_nearly_all_tiles_in_hands_the_critic_judges_alone() -> None:
    for plies, alike in ((0, True), (3, True), (7, False)):
        engine = with_choice(played(BOOK, 10, plies))
        position, legal, chance = position_at(engine), engine.legal(), keys(engine.num_envs)
        means = [Lookahead(critic=Pips(), worlds=3, leaf=leaf).search(position, legal, chance).mean for leaf in LEAVES]
        assert np.array_equal(*means) == alike


def players(folder: Path) -> list[str]:
    start = f"lookahead:model={folder},worlds=4"
    return [f"{start},candidates=0", f"{start},candidates=40", f"{start},candidates=40,floor=0.3,leaf=mean"]


def test_no_world_depends_on_what_the_seat_cannot_see(folder: Path) -> None:
    assert asked_blindly(players(folder), (2, 6, 10, 14, 18), 4) > 100


@pytest.mark.parametrize("number", [0, 1, 2])
def test_answers_depend_on_neither_batch_nor_threads_nor_calls(folder: Path, number: int, monkeypatch) -> None:
    name = players(folder)[number]
    engine = with_choice(played(BOOK, 40, 11))
    agent = make_agent(name)
    answers = ask(agent, engine)
    assert np.array_equal(answers, ask(agent, engine))
    for threads in (1, 3):
        assert np.array_equal(answers, ask(make_agent(f"{name},threads={threads}"), engine))
    for size in (1, 7):
        parts = [
            ask(agent, engine, np.arange(start, min(start + size, engine.num_envs)))
            for start in range(0, engine.num_envs, size)
        ]
        assert np.array_equal(answers, np.concatenate(parts))
    assert not np.array_equal(answers, ask(agent, engine, seed=6))
    monkeypatch.setattr("agents.search.lookahead._ROWS", 100)
    assert np.array_equal(answers, ask(agent, engine))


def test_the_means_of_a_row_are_the_same_to_the_last_bit(folder: Path) -> None:
    engine = with_choice(played(BOOK, 40, 11))
    agent = make_agent(players(folder)[1])
    position, legal, chance = position_at(engine), engine.legal(), keys(engine.num_envs)
    whole = agent.search(position, legal, chance).mean
    for rows in (np.array([3]), np.arange(10, 25)):
        assert np.array_equal(agent.search(position.take(rows), legal[rows], chance[rows]).mean, whole[rows])


def test_rows_without_a_choice_are_not_searched(folder: Path) -> None:
    engine = played(BOOK, 60, 11)
    forced = engine.legal_count() == 1
    assert forced.any() and not forced.all()
    agent = make_agent(players(folder)[1])
    answers = ask(agent, engine)
    assert np.array_equal(answers[forced], engine.legal()[forced].argmax(axis=1))
    assert np.array_equal(answers[~forced], ask(agent, engine, np.flatnonzero(~forced)))
    agent.imagination.draw = None
    ask(agent, engine, np.flatnonzero(forced))
    assert not agent.sees_everything and agent.needs_history and not make_agent(players(folder)[0]).needs_history
    with pytest.raises(ValueError, match="rng"):
        agent.act(decide(engine, agent))


def test_a_wrong_pass_that_stood_is_played_on_with(folder: Path) -> None:
    engine = make_engine(BOOK, 30, seed=2)
    rng = np.random.default_rng(2)
    for ply in range(5):
        actions = engine.sample_legal(rng)
        if ply == 3:
            engine.allow_pass(np.arange(30))
            actions[:] = PASS
        engine.step(actions, autoreset=False)
    engine.allow_pass(np.arange(30))  # a judge would now forgive the mover, too
    could = (engine.legal()[:, :PASS] == 1).any(axis=1)
    for name in players(folder)[:2]:
        answers = ask(make_agent(name), engine)
        assert (engine.legal()[np.arange(30), answers] == 1).all() and (answers[could] != PASS).all()


@pytest.mark.parametrize("options", [{}, {"model": Modelled(0.1)}], ids=["plain", "weighed"])
def test_time_is_kept(options: dict[str, Any]) -> None:
    engine = with_choice(played(BOOK, 6, 9))
    position, legal, chance = position_at(engine), engine.legal(), keys(6)
    rows = np.arange(len(position))

    def search(**more: Any) -> Any:
        wanted = {"worlds": 100_000, **more}  # more than there is time for
        return Lookahead(critic=Pips(), **options, **wanted).search(position, legal, chance[rows])

    search(ms=60)  # compiles
    begun = time.perf_counter()
    found = search(ms=60)
    assert time.perf_counter() - begun < 3 * 0.06 * len(position) + 0.5  # other programs take their share
    assert 4 < found.worlds < 100_000
    assert search(ms=0.001).worlds == 1
    few = search(worlds=7, ms=60_000)
    assert few.worlds == 7
    if not options:  # the same worlds, block by block
        assert np.allclose(few.mean[legal == 1], search(worlds=7).mean[legal == 1])
    engine = with_choice(played(BOOK, 20, 9))
    agent = Lookahead(critic=Pips(), ms=2, **options)
    assert (engine.legal()[np.arange(engine.num_envs), ask(agent, engine)] == 1).all()


def test_what_is_said_and_defaults(folder: Path) -> None:
    agent = make_agent(f"lookahead:model={folder}", "sport_book")
    assert (agent.imagination.worlds, agent.imagination.candidates) == (100, 500)
    for part in ("worlds=100", "candidates=500", f"model={folder}", "leaf=critic", f"critic={folder}"):
        assert part in agent.name
    assert make_agent(f"lookahead-30:model={folder}").imagination.candidates == 150
    other = make_agent(f"lookahead:critic={folder},model=uniform,worlds=3,candidates=9")
    assert other.imagination.model == "uniform" and other.judge.name == str(folder)
    assert make_agent(f"lookahead:critic={folder}").imagination.candidates == 0
    hints = [
        make_agent(f"lookahead:critic={folder},{more}").batch_hint for more in ("worlds=5", "worlds=300", "ms=15000")
    ]
    assert hints == sorted(hints, reverse=True) and len(set(hints)) == 3 and hints[-1] == 1


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("", "needs model=FOLDER"),
        ("worlds=5", "needs model=FOLDER"),
        ("model=uniform", "'uniform' is not the folder of a checkpoint"),
        ("model={}/nothing", "is not the folder of a checkpoint"),
        ("model={},worlds=0", "worlds=0"),
        ("model={},candidates=5", "candidates=5 must be at least worlds=100"),
        ("model={},leaf=exact", "leaf='exact' is unknown; choose from critic, mean"),
        ("model={},ms=0", "ms=0 must be a number of milliseconds > 0"),
        ("model={},threads=0", "threads=0"),
        ("model={},temperature=0", "temperature=0"),
        ("model={},floor=2", "floor=2"),
        ("model={},reads=both", "reads='both'"),
        ("critic={},candidates=200", "need a model="),
        ("model={},depth=2", "no option 'depth'"),
    ],
)
def test_refusals(folder: Path, options: str, text: str) -> None:
    with pytest.raises(ValueError) as raised:
        make_agent(f"lookahead:{options}".rstrip(":").format(folder))
    assert text in str(raised.value) and "\n" not in str(raised.value)


def test_refusals_of_judges_and_games(folder: Path) -> None:
    with pytest.raises(ValueError, match="critic=5 is neither"):
        Lookahead(critic=5)  # type: ignore[arg-type]
    for rules in ("blitz", "blind", "sport_club", get_rules("sport_book", seats=4, pairs=False)):
        with pytest.raises(ValueError):
            make_agent(f"lookahead:model={folder}", rules)
    with pytest.raises(ValueError, match="trained for sport_book, not for sport_club"):
        make_agent(f"lookahead:critic={folder}", "sport_club")
    with pytest.raises(ValueError, match="trained for sport_book"):
        ask(make_agent(f"lookahead:critic={folder}"), make_engine("kozyol", 2, seed=0))


def test_it_plays_whole_deals(folder: Path) -> None:
    name = f"lookahead:model={folder},worlds=5,candidates=20"
    assert evaluate(name, name, boards=4).points_per_deal == 0
    result = evaluate(Lookahead(critic=Pips(), worlds=10), "random", boards=40)
    assert result.low > 0
    assert evaluate(Lookahead(critic=Pips(), worlds=10), "random", TWO, boards=20).errors == 0
