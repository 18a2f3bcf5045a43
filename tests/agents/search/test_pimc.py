"""The players that solve worlds exactly: `pimc` in worlds it imagines, `cheat` in the true one."""

import time

import numpy as np
import pytest

from agents.base import Decisions, decide, make_agent
from agents.search import solver
from agents.search.beliefs import RulesBelief
from agents.search.pimc import Outlook, world_values
from agents.search.position import imagine, position_at, position_of
from agents.search.worlds import Imagination, keys_of
from domino_env import get_rules, make_engine
from domino_env.deals import Streams
from domino_env.tiles import PASS, mask_of
from experiments.evaluate import evaluate
from tests.agents.search.test_worlds import BOOK, TINY, Modelled, keys, played

PLAIN = "pimc-4"
WEIGHED = "pimc:worlds=4,candidates=40,model=uniform"


def with_choice(engine):
    """The rows whose movers have a choice."""
    return engine.take(np.flatnonzero(engine.legal_count() > 1))


def ask(agent, engine, rows=None, seed: int = 5) -> np.ndarray:
    return agent.act(decide(engine, agent, Streams.of(seed, np.arange(engine.num_envs)), rows))


def minimax(engine) -> int:
    """The value of a deal for the side of seat 0 by plain recursion over the engine, one row."""
    side = 1 if engine.to_move()[0] % 2 == 0 else -1
    best = None
    for action in np.flatnonzero(engine.legal()[0]):
        after = engine.take(np.array([0]))
        rewards, done = after.step(np.array([action]), autoreset=False)
        value = int(rewards[0, 0]) if done[0] else minimax(after)
        best = value if best is None or side * value > side * best else best
    assert best is not None
    return best


@pytest.mark.parametrize("rules", [BOOK, get_rules("puerto_rico")], ids=lambda rules: rules.name)
def test_where_one_deal_is_left_it_plays_exactly(rules) -> None:
    engine = with_choice(played(rules, 3000, 23))
    engine = engine.take(np.flatnonzero(RulesBelief(position_at(engine)).total() == 1))
    assert engine.num_envs >= 3
    answers = ask(make_agent("pimc-2"), engine)
    assert np.array_equal(answers, ask(make_agent("cheat"), engine))
    assert np.array_equal(answers, ask(make_agent("pimc:worlds=2,candidates=4,model=uniform"), engine))
    for row in range(min(engine.num_envs, 4)):
        worth = {}
        for action in np.flatnonzero(engine.legal()[row]):
            after = engine.take(np.array([row]))
            rewards, done = after.step(np.array([action]), autoreset=False)
            value = int(rewards[0, 0]) if done[0] else minimax(after)
            worth[int(action)] = value if engine.to_move()[row] % 2 == 0 else -value
        assert answers[row] == max(worth, key=lambda action: (worth[action], -action))


def test_the_best_mean_over_the_worlds_wins_and_of_equals_the_lower() -> None:
    engine = with_choice(played(BOOK, 800, 16))
    batch = decide(engine, rng=Streams.of(5, np.arange(engine.num_envs)))
    worlds = RulesBelief(position_of(batch)).sample(7, keys_of(batch))
    ends, movers = engine.ends(), engine.to_move()
    total = np.zeros((engine.num_envs, 57), np.int64)
    for number in range(7):  # sevenths do not add up exactly: without rounding some of the ties would be broken
        values = solver.solve(worlds[:, number], ends, movers, BOOK)
        total += np.where(values == solver.ILLEGAL, -10_000, values)
    assert np.array_equal(ask(make_agent("pimc-7"), engine), total.argmax(axis=1))
    ties = (total == total.max(axis=1, keepdims=True)).sum(axis=1)
    assert (ties > 1).any()


def test_the_error_of_weighted_worlds_is_of_weighing_and_of_choosing() -> None:
    values = np.full((1, 2, 57), solver.ILLEGAL, np.int32)
    values[0, :, 3] = 0, 8  # mean 6, variance 12
    outlook = Outlook(values, np.array([[0.25, 0.75]]), np.array([4.0]), np.zeros(1, np.bool_), True, 8)
    assert outlook.mean[0, 3] == 6 and outlook.error[0, 3] == pytest.approx(np.sqrt(12 / 4 + 12 / 8))


@pytest.mark.parametrize("name", [PLAIN, WEIGHED, "cheat"])
def test_only_the_actions_that_the_mask_allows(name: str) -> None:
    engine = played(BOOK, 60, 8)
    engine = engine.take(np.flatnonzero(engine.legal_count() > 2))
    agent, rows = make_agent(name), np.arange(engine.num_envs)
    batch = decide(engine, agent, Streams.of(5, rows))
    first = agent.act(batch)
    batch.mask, batch.rng = batch.mask.copy(), Streams.of(5, rows)
    batch.mask[rows, first] = 0
    assert batch.mask[rows, agent.act(batch)].all()


def test_an_outlook_is_made_of_its_worlds() -> None:
    engine = with_choice(played(BOOK, 30, 10))
    batch = decide(engine, rng=Streams.of(5, np.arange(engine.num_envs)))
    position, chance = position_of(batch), keys_of(batch)
    agent = make_agent("pimc-20")
    outlook: Outlook = agent.outlook(position, chance)
    drawn = RulesBelief(position).sample(20, chance)
    for row in range(engine.num_envs):
        one = solver.solve(
            drawn[row], np.repeat(engine.ends()[[row]], 20, 0), np.repeat(engine.to_move()[row], 20), BOOK
        )
        legal = engine.legal()[row] != 0
        assert np.array_equal(outlook.legal[row], legal)
        assert np.allclose(outlook.mean[row, legal], one[:, legal].mean(axis=0))
        assert np.allclose(outlook.error[row, legal], one[:, legal].std(axis=0) / np.sqrt(20))
        assert np.allclose(outlook.win[row, legal], (one[:, legal] > 0).mean(axis=0))
        assert np.allclose(outlook.tie[row, legal], (one[:, legal] == 0).mean(axis=0))
        assert np.isneginf(outlook.mean[row, ~legal]).all()
        assert not (outlook.win + outlook.tie + outlook.error)[row, ~legal].any()
    assert (outlook.ess == 20).all() and not outlook.fell_back.any()


def scrambled(engine, rng):
    """The same tables with the tiles that the mover does not see dealt anew, consistently with nothing at all."""
    hands, mover = engine.hands(), engine.to_move()
    for row, mine in enumerate(mover):
        seats = [seat for seat in range(4) if seat != mine]
        tiles = rng.permutation([t for seat in seats for t in range(28) if hands[row, seat] >> t & 1])
        sizes = [int(hands[row, seat]).bit_count() for seat in seats]
        for seat, part in zip(seats, np.split(tiles, np.cumsum(sizes)[:-1]), strict=True):
            hands[row, seat] = mask_of(part.tolist())
    other = imagine(position_at(engine), np.arange(engine.num_envs), hands)
    assert (engine.hands() != other.hands()).any(axis=1).mean() > 0.9
    return other


def asked_blindly(names, plies, tables: int) -> int:
    """How many decisions were asked for, as many tables as given for each ply. The hidden tiles are dealt anew,
    consistently with nothing at all; not a decision changes."""
    rng, answered = np.random.default_rng(6), 0
    agents = [make_agent(name) for name in names]
    for ply in plies:
        engine = with_choice(played(BOOK, tables * ply, ply, seed=ply))
        other = scrambled(engine, rng)
        for agent in agents:
            first, second = ask(agent, engine), ask(agent, other)
            assert np.array_equal(first, second)
            answered += len(first)
    return answered


def test_no_world_depends_on_what_the_seat_cannot_see() -> None:
    names = (PLAIN, WEIGHED, f"{WEIGHED},floor=0.3,temperature=0.5")
    assert asked_blindly(names, (2, 6, 10, 14, 18), 4) > 100
    engine = with_choice(played(BOOK, 4 * 18, 18, seed=18))
    other = scrambled(engine, np.random.default_rng(6))
    assert (ask(make_agent("cheat"), engine) != ask(make_agent("cheat"), other)).any()


def test_only_the_cheat_is_shown_the_table() -> None:
    assert not make_agent(PLAIN).sees_everything and not make_agent(WEIGHED).sees_everything
    assert not make_agent(PLAIN).needs_history and make_agent(WEIGHED).needs_history
    cheat = make_agent("cheat")
    engine = make_engine(BOOK, 2, seed=0)
    assert cheat.sees_everything
    with pytest.raises(ValueError, match="all hands open"):
        cheat.act(decide(engine))
    with pytest.raises(ValueError, match="rng"):
        make_agent(PLAIN).act(decide(engine))


@pytest.mark.parametrize("name", [PLAIN, WEIGHED])
def test_answers_depend_on_neither_batch_nor_threads_nor_calls(name: str) -> None:
    engine = with_choice(played(BOOK, 40, 8))
    agent = make_agent(name)
    answers = ask(agent, engine)
    assert np.array_equal(answers, ask(agent, engine))
    assert np.array_equal(answers, ask(make_agent(f"{name.replace('-', ':worlds=')},threads=1"), engine))
    for size in (1, 7):
        parts = [
            ask(agent, engine, np.arange(start, min(start + size, engine.num_envs)))
            for start in range(0, engine.num_envs, size)
        ]
        assert np.array_equal(answers, np.concatenate(parts))
    assert not np.array_equal(answers, ask(agent, engine, seed=6))


def test_chunks_change_nothing(monkeypatch) -> None:
    engine = with_choice(played(BOOK, 40, 8))
    answers = ask(make_agent(WEIGHED), engine)
    monkeypatch.setattr("agents.search.pimc._AT_ONCE", 100)
    assert np.array_equal(answers, ask(make_agent(WEIGHED), engine))


def test_a_number_after_a_dash_is_the_number_of_worlds() -> None:
    engine = with_choice(played(BOOK, 30, 10))
    assert np.array_equal(ask(make_agent("pimc-5"), engine), ask(make_agent("pimc:worlds=5"), engine))
    assert make_agent("pimc").name == make_agent("pimc:worlds=30").name == "pimc-30"
    assert make_agent(WEIGHED).name == "pimc:worlds=4,candidates=40,model=uniform,temperature=1.7,floor=0.05"
    assert make_agent("pimc:ms=20,lead_sign=true").name == "pimc:worlds=10000,candidates=0,ms=20,lead_sign=true"


def test_a_model_changes_what_is_played_and_the_defaults_are_stated() -> None:
    engine = with_choice(played(BOOK, 60, 12))
    plain = ask(make_agent("pimc-20"), engine)
    agent = make_agent("pimc:worlds=20", BOOK)
    agent.imagination = Imagination(20, 200, Modelled(1.0))
    batch = decide(engine, rng=Streams.of(5, np.arange(engine.num_envs)))
    assert (agent.act(batch) != plain).any()
    assert agent.outlook(position_of(batch), keys_of(batch)).ess.max() < 200


def test_at_the_lead_the_sign_may_do() -> None:
    engine = make_engine(BOOK, 2, seed=1)
    batch = decide(engine, rng=Streams.of(5, np.arange(2)))
    position, chance = position_of(batch), keys_of(batch)
    signs = make_agent("pimc:worlds=2,lead_sign=true").outlook(position, chance).values
    points = make_agent("pimc-2").outlook(position, chance).values
    legal = points != solver.ILLEGAL
    assert np.array_equal(signs[legal], np.sign(points[legal])) and np.array_equal(legal, signs != solver.ILLEGAL)
    later = with_choice(played(BOOK, 10, 9))
    assert np.array_equal(ask(make_agent("pimc:worlds=3,lead_sign=true"), later), ask(make_agent("pimc-3"), later))


def test_world_values_are_those_of_the_solver() -> None:
    engine = with_choice(played(BOOK, 10, 16))
    position = position_at(engine)
    worlds = Imagination(30).draw(position, keys(len(position)))
    values = world_values(position, worlds)
    row, world = np.nonzero(worlds.weights)
    assert (values[worlds.weights == 0] == solver.ILLEGAL).all()
    there = solver.solve(worlds.hands[row, world], position.ends[row], position.to_move[row], BOOK)
    assert np.array_equal(values[row, world], there)


@pytest.mark.parametrize("options", ["", "model=uniform,"])
def test_time_is_kept(options: str) -> None:
    engine = with_choice(played(BOOK, 6, 5))
    agent = make_agent(f"pimc:{options}ms=60")
    ask(agent, engine)  # compiles
    position = position_at(engine)
    chance = keys(len(position))
    begun = time.perf_counter()
    outlook = agent.outlook(position, chance)
    taken = time.perf_counter() - begun
    assert taken < 3 * 0.06 * len(position) + 0.5  # other programs take their share
    assert 4 < outlook.worlds < 10_000
    little = make_agent(f"pimc:{options}ms=0.001").outlook(position, chance)
    assert little.worlds == 1
    few = make_agent(f"pimc:{options}worlds=7,ms=60000").outlook(position, chance)
    assert few.worlds == 7 and np.allclose(few.weights.sum(axis=1), 1)
    if not options:  # the same worlds, block by block
        assert np.allclose(few.mean, make_agent("pimc-7").outlook(position, chance).mean)


def test_a_wrong_pass_that_stood_is_played_on_with() -> None:
    engine = make_engine(BOOK, 30, seed=2)
    rng = np.random.default_rng(2)
    for ply in range(5):
        actions = engine.sample_legal(rng)
        if ply == 3:
            engine.allow_pass(np.arange(30))
            actions[:] = PASS
        engine.step(actions, autoreset=False)
    engine.allow_pass(np.arange(30))  # a judge would now forgive the mover, too: it need not be used
    for name in (PLAIN, WEIGHED):
        answers = ask(make_agent(name), engine)
        assert (engine.legal()[np.arange(30), answers] == 1).all()


def test_only_games_that_the_solver_plays() -> None:
    for name in (PLAIN, WEIGHED, "cheat"):
        for rules in ("blitz", "blind"):
            with pytest.raises(ValueError):
                make_agent(name, rules)
    with pytest.raises(ValueError):
        make_agent(PLAIN).act(decide(make_engine("blitz", 2, seed=0), rng=Streams.of(0, np.arange(2))))


@pytest.mark.parametrize(
    "name",
    [
        "pimc-0",
        "pimc:ms=0",
        "pimc:ms=-5",
        "pimc:ms=soon",
        "pimc:lead_sign=1",
        "pimc:threads=0",
        "pimc:worlds=x",
        "cheat:ms=5",
    ],
)
def test_refusals(name: str) -> None:
    with pytest.raises(ValueError) as raised:
        make_agent(name)
    assert "\n" not in str(raised.value)


def test_the_cheat_beats_all_and_pimc_beats_greedy() -> None:
    assert evaluate("cheat", "greedy", boards=25).low > 10
    assert evaluate("pimc-3", "greedy", boards=25, batch=16).points_per_deal > 2
    small = evaluate("cheat", "pimc-5", TINY, boards=300)
    assert small.low > 0


def test_it_plays_two_seats_and_small_sets() -> None:
    two = get_rules("sport_book", seats=2, pairs=False)
    result = evaluate(PLAIN, "greedy", two, boards=12)
    assert result.boards == 12 and result.errors == 0
    assert evaluate(WEIGHED, WEIGHED, TINY, boards=20).points_per_deal == 0


class Hinting:
    """Plays greedily, in small batches, and notes their sizes."""

    needs_history = False

    def __init__(self, hint: int | None) -> None:
        self.name, self.batch_hint = "hinting", hint
        self._greedy = make_agent("greedy")
        self.sizes: list[int] = []

    def act(self, batch: Decisions) -> np.ndarray:
        self.sizes.append(len(batch))
        return self._greedy.act(batch)


@pytest.mark.parametrize("side", [0, 1])
def test_the_smallest_hint_sets_the_pace_and_no_result(side: int) -> None:
    def run(*hints: int | None):
        steps: list[int] = []
        agents = [Hinting(hint) for hint in hints]
        sides = [tuple(agents), "random"]
        result = evaluate(*sides[:: 1 - 2 * side], boards=50, batch=40, progress=lambda done, _: steps.append(done))
        return result.values, steps, max(max(agent.sizes) for agent in agents)

    values, steps, _ = run(None, None)
    assert steps == [40, 50]
    few, many, size = run(20, None)
    assert many == [20, 40, 50] and size <= 40 and np.array_equal(few, values)
    few, many, size = run(70, 15)
    assert many == [15, 30, 45, 50] and size <= 30 and np.array_equal(few, values)


def test_hints_follow_the_work() -> None:
    hints = [make_agent(name).batch_hint for name in ("pimc-3", "pimc-30", "pimc-1000", "pimc:ms=15000")]
    assert hints == sorted(hints, reverse=True) and hints[-1] == 1 and len(set(hints)) == 4
